/* Columns of facts. Trees do not care for logarithms; what is learned from the same columns later
 * may. */
#include "learner/inputs/facts_input.h"

#include <math.h>
#include <string.h>

static float log_s(double seconds) { return (float)log(fmax(seconds, 1e-12)); }

cdmpp_status cd_facts_input_times(cd_facts_set set, const float *facts,
                                  const cd_device_numbers *device, float *out, cdmpp_err *err) {
    cd_analytic_time t;
    CD_TRY(cd_analytic_seconds_of(set, facts, device, &t, err));
    const double third = cd_facts_set_is_gpu(set) ? t.latency_s : t.l3_s;
    const double all[CD_N_ANALYTIC] = {
        t.roofline_s, t.ecm_s, t.sum_s,    t.compute_s,  t.l1_s,
        t.l2_s,       third,   t.memory_s, t.overhead_s, cd_facts_set_is_gpu(set) ? 1 : t.threads};
    for (size_t k = 0; k < CD_N_ANALYTIC; k++) {
        if (!(all[k] >= 0) || !isfinite(all[k]))
            return CD_FAIL(err, ENUMERIC, "an analytic time of %g s", all[k]);
        out[k] = log_s(all[k]);
    }
    return CDMPP_OK;
}

bool cd_facts_input_has(const cd_program_view *v, size_t p) {
    return v->facts && v->analytic && !isnan(v->analytic[p * CD_N_ANALYTIC]);
}

/* ---- columns ---- */
cd_facts_group cd_facts_input_group(const char *name) {
    static const char *const names[CD_N_FACTS_GROUP] = {"traffic", "work",    "cycles",
                                                        "shape",   "threads", "times"};
    int g = 0;
    while (g < CD_N_FACTS_GROUP && strcmp(names[g], name) != 0) g++;
    return (cd_facts_group)g;
}

static cd_facts_group group_of(size_t c) {
    if (c < CD_N_TRAFFIC) return CD_FACTS_TRAFFIC;
    if (c >= CD_FACT_CORE_CYCLES && c <= CD_FACT_CALL_CYCLES) return CD_FACTS_CYCLES;
    if (c >= CD_FACT_REGIONS && c < CD_FACT_INEXACT) return CD_FACTS_THREADS;
    if (c < CD_FACT_WIDTH || c == CD_FACT_INIT_STORES || c == CD_FACT_COPY_STORES)
        return CD_FACTS_WORK;
    return CD_FACTS_SHAPE;
}

/* Does the fact grow with the size of the program? */
static bool counts(size_t c) {
    return c < CD_FACT_WIDTH || c == CD_FACT_INIT_STORES || c == CD_FACT_COPY_STORES;
}

static void relative(const float *fact, unsigned without, float *x) {
    const float work = log2f(fact[CD_FACT_INSTRUCTIONS] + 1),
                lines = log2f(fact[CD_FACT_LINES] + 1);
    for (size_t c = 0; c < CD_N_FACTS; c++) {
        const float own = log2f(fact[c] + 1),
                    value = c == CD_FACT_INSTRUCTIONS || !counts(c) ? own : own - work;
        x[c] = without >> group_of(c) & 1 ? 0 : value;
        if (c < CD_N_TRAFFIC)
            x[CD_N_FACTS + c] = without >> CD_FACTS_TRAFFIC & 1 ? 0
                                : c == CD_FACT_LINES            ? lines
                                                                : own - lines;
    }
}

/* Of GPU programs counts and totals are as they are. */
void cd_facts_input_fill(const cd_program_view *v, size_t p, float *x) {
    const float *fact = v->facts + p * CD_N_FACTS, *t = v->analytic + p * CD_N_ANALYTIC;
    const bool gpu = cd_facts_set_is_gpu(v->facts_set),
               without = v->facts_without >> CD_FACTS_TIMES & 1;
    if (gpu) {
        for (size_t c = 0; c < CD_N_FACTS; c++) x[c] = log2f(fact[c] + 1);
        memset(x + CD_N_FACTS, 0, CD_N_TRAFFIC * sizeof *x);
    } else {
        relative(fact, v->facts_without, x);
    }
    x += CD_N_FACTS + CD_N_TRAFFIC;
    for (size_t k = 0; k < CD_N_ANALYTIC; k++)
        x[k] = without ? 0
               : k == CD_N_PRIOR - 1 || k == CD_N_ANALYTIC - 1 || (gpu && k < CD_N_PRIOR)
                   ? t[k]
                   : t[k] - t[CD_N_PRIOR - 1];
}
