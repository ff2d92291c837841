/* Facts and the numbers of a device to seconds: roofline, ECM (transfers between levels do not
 * overlap), and a plain sum. */
#include "features/analytic/analytic.h"

#include <math.h>

#define LINE 64.0
/* General rules, where nothing was measured: bytes that a core moves in a clock from L2 and from
 * L3, regions of threads in seconds. */
#define L2_BYTES_A_CLOCK 32.0
#define L3_BYTES_A_CLOCK 12.0
#define FORK_S           5e-6
#define CALL_S           2e-8
#define MODEL_LANES      2.0 /* vector operations a cycle of the core that facts count for */

typedef struct {
    const float *fact;
    const cd_device *d;
    double clock, threads, cores;
    cd_analytic_time *out;
} machine;

static double fact(const machine *m, int k) { return (double)m->fact[k]; }

/* Lines at a capacity in bytes: between two columns along the logarithm. */
static double at_capacity(const machine *m, int first, double bytes) {
    const double x = log2(bytes / CD_FACT_CAPACITY_LEAST), last = CD_N_FACT_CAPACITY - 1;
    const double k = fmin(fmax(floor(x), 0), last - 1), part = fmin(fmax(x - k, 0), 1);
    const double a = fact(m, first + (int)k), b = fact(m, first + (int)k + 1);
    return a + (b - a) * part;
}

/* Lines that cross the border below a cache. A program that fits finds its data there from the run
 * before. */
static double crossing(const machine *m, double bytes) {
    if (bytes <= 0 || fact(m, CD_FACT_LINES) * LINE <= bytes) return 0;
    return at_capacity(m, CD_FACT_FETCHED_0, bytes) + at_capacity(m, CD_FACT_WRITTEN_0, bytes);
}

static double by_rule(machine *m, double measured, double rule, unsigned mark) {
    if (measured > 0) return measured;
    m->out->rules |= mark;
    return rule;
}

/* The time of core_cycles on so many threads over that on one. A thread gets as many iterations of
 * a parallel loop as any other, or one more: the last round counts in full. Loops beyond those that
 * the facts tell apart divide evenly. */
static double share_on(const machine *m, double threads) {
    double all = fact(m, CD_FACT_SERIAL_SHARE), left = 1 - all;
    for (int k = 0; k < CD_N_FACT_REGION; k++) {
        const double chunks = fact(m, CD_FACT_REGION_1_CHUNKS + 2 * k),
                     part = fact(m, CD_FACT_REGION_1_SHARE + 2 * k);
        if (chunks > 0) all += part * ceil(chunks / threads) / chunks;
        left -= chunks > 0 ? part : 0;
    }
    return all + fmax(left, 0) / threads;
}

/* Threads that work at a time. */
static double useful_threads(const machine *m) {
    const double share = share_on(m, fmax(floor(m->cores), 1));
    return share > 0 ? 1 / share : 1;
}

static void compute(machine *m) {
    const double lanes =
        by_rule(m, m->d->lanes, MODEL_LANES * fact(m, CD_FACT_WIDTH) / 4, CD_ANALYTIC_RULE_LANES);
    const double ports =
        fact(m, CD_FACT_PORT_CYCLES) * MODEL_LANES * fact(m, CD_FACT_WIDTH) / 4 / lanes;
    m->out->compute_s = fmax(fact(m, CD_FACT_CORE_CYCLES), ports) / m->clock / m->threads;
}

static void transfers(machine *m) {
    const cd_device *d = m->d;
    const double l1 = by_rule(m, d->probe[CD_DEVICE_PROBE_probe_l1] * 1e9,
                              2 * fact(m, CD_FACT_WIDTH) * m->clock, CD_ANALYTIC_RULE_L1);
    const double l2 = by_rule(m, d->probe[CD_DEVICE_PROBE_probe_l2] * 1e9,
                              L2_BYTES_A_CLOCK * m->clock, CD_ANALYTIC_RULE_L2);
    const double l3 = by_rule(m, d->probe[CD_DEVICE_PROBE_probe_l3] * 1e9,
                              L3_BYTES_A_CLOCK * m->clock, CD_ANALYTIC_RULE_L3);
    const double one = d->probe[CD_DEVICE_PROBE_probe_memory]; /* what one thread gets of it */
    const double memory =
        1e9 * (one > 0 ? fmin(d->bandwidth_gb_s, one * m->threads) : d->bandwidth_gb_s);
    const double width = fact(m, CD_FACT_WIDTH), moves = fact(m, CD_FACT_LOADS_UNIT) +
                                                         fact(m, CD_FACT_STORES_UNIT) +
                                                         fact(m, CD_FACT_SPILLS);
    m->out->l1_s =
        (moves * width + 4 * (fact(m, CD_FACT_LOADS_SAME) + fact(m, CD_FACT_LOADS_STRIDED) +
                              fact(m, CD_FACT_STORES_STRIDED))) /
        l1 / m->threads;
    m->out->l2_s = crossing(m, d->l1_kb * 1024) * LINE / l2 / m->threads;
    m->out->l3_s = d->l3_kb > 0 ? crossing(m, d->l2_kb * 1024) * LINE / l3 / m->threads : 0;
    m->out->memory_s =
        crossing(m, 1024 * (d->l3_kb > 0 ? d->l3_kb : d->l2_kb * m->threads)) * LINE / memory;
}

static cdmpp_status check(const float *facts, const cd_device *d, cdmpp_err *err) {
    if (d->kind != CD_DEVICE_CPU)
        return CD_FAIL(err, EUNSUPPORTED, "facts of CPU programs say nothing about a %s",
                       cd_device_kind_name(d->kind));
    const struct {
        const char *key;
        double value;
    } need[] = {{"clock_mhz", d->clock_mhz},
                {"l1_kb", d->l1_kb},
                {"l2_kb", d->l2_kb},
                {"bandwidth_gb_s", d->bandwidth_gb_s}};
    for (size_t i = 0; i < sizeof need / sizeof *need; i++)
        if (!(need[i].value > 0))
            return CD_FAIL(
                err, ESCHEMA,
                "the device does not say %s, which the estimate from the loop nest needs",
                need[i].key);
    if (!(d->l3_kb >= 0))
        return CD_FAIL(
            err, ESCHEMA,
            "the device does not say l3_kb, which the estimate from the loop nest needs");
    for (size_t i = 0; i < CD_N_FACTS; i++)
        if (!(facts[i] >= 0))
            return CD_FAIL(err, ERANGE, "fact %s is %g", cd_facts_cols(CD_FACTS_OF_CPU)[i].name,
                           (double)facts[i]);
    return CDMPP_OK;
}

cdmpp_status cd_analytic_seconds(const float *facts, const cd_device_numbers *device,
                                 cd_analytic_time *out, cdmpp_err *err) {
    CD_TRY(check(facts, device, err));
    *out = (cd_analytic_time){0};
    const double cores = cd_device_cores(device);
    machine m = {.fact = facts,
                 .d = device,
                 .clock = device->clock_mhz * 1e6,
                 .cores = cores > 0 ? cores : 1,
                 .out = out};
    m.threads = useful_threads(&m);
    out->threads = m.threads;
    compute(&m);
    transfers(&m);
    if (m.cores > 1) out->rules |= CD_ANALYTIC_RULE_OVERHEAD;
    out->overhead_s = CALL_S + (m.cores > 1 ? fact(&m, CD_FACT_REGIONS) * FORK_S : 0);
    const double moved = out->l2_s + out->l3_s + out->memory_s;
    out->roofline_s =
        fmax(fmax(out->compute_s, out->l1_s), fmax(fmax(out->l2_s, out->l3_s), out->memory_s)) +
        out->overhead_s;
    out->ecm_s = fmax(out->compute_s, out->l1_s + moved) + out->overhead_s;
    out->sum_s = out->compute_s + out->l1_s + moved + out->overhead_s;
    return CDMPP_OK;
}
