/* Runs small programs on one processor and says how fast they are, and which events they cause in a
 * second. All devices run the same ones: sizes do not follow the machine's caches, so that a number
 * means the same everywhere. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/describe/describe.h"
#include "profiler/host/host.h"

#define PROBE_S 0.02 /* of one probe in a round */
#define MANY    ((size_t)128 << 20)
enum { KIB = 1024, ROUNDS = 5, TURNS = 3, LINE = 64, PAGE = 4096, STEPS = 20000, EXPS = 4096 };

typedef struct {
    uint64_t *a;           /* (MANY bytes) */
    int bits;              /* of a vector */
    volatile uint64_t sum; /* keeps what is read */
} ground;

/* A probe gives the work of one call, in units of its key without their power of ten. */
typedef double probe(ground *g);

static double compute(ground *g) { return 2 * cd_describe_fma(g->bits); }

static double read_all(ground *g, size_t bytes, int times) {
    uint64_t s[4] = {0};
    for (int k = 0; k < times; k++)
        for (size_t i = 0; i < bytes / sizeof *g->a; i += 4)
            for (size_t j = 0; j < 4; j++) s[j] += g->a[i + j] ^ (uint64_t)k;
    g->sum += s[0] + s[1] + s[2] + s[3];
    return (double)bytes * times;
}

static double l1(ground *g) { return read_all(g, 16 * KIB, 64); }
static double l2(ground *g) { return read_all(g, 256 * KIB, 8); }
static double l3(ground *g) { return read_all(g, (size_t)8192 * KIB, 1); }
static double memory(ground *g) { return read_all(g, MANY, 1); }

static double stride(ground *g) {
    const size_t n = (size_t)8192 * KIB / PAGE;
    uint64_t s = 0;
    for (int k = 0; k < 16; k++)
        for (size_t i = 0; i < n; i++) s += g->a[i * PAGE / sizeof *g->a];
    g->sum += s;
    return 16.0 * (double)n;
}

/* Each line holds the number of the next: one ring through all of them, in an order that no
 * prefetcher knows. */
static void lay_ring(ground *g) {
    const size_t n = (size_t)65536 * KIB / LINE, step = LINE / sizeof *g->a;
    for (size_t i = 0; i < n; i++) g->a[i * step] = i;
    for (size_t i = n - 1; i > 0; i--) { /* Sattolo's: a permutation of one cycle */
        const size_t j = (size_t)(cd_rng_at(1, i) % i);
        const uint64_t was = g->a[i * step];
        g->a[i * step] = g->a[j * step];
        g->a[j * step] = was;
    }
}

static double latency(ground *g) {
    uint64_t at = g->sum % ((uint64_t)65536 * KIB / LINE);
    for (int i = 0; i < STEPS; i++) at = g->a[at * (LINE / sizeof *g->a)];
    g->sum = at;
    return STEPS;
}

static double exponentials(ground *g) {
    float x = 0;
    for (int i = 0; i < EXPS; i++) x += expf(-0.001F * (float)i);
    g->sum += (uint64_t)x;
    return EXPS;
}

static const struct {
    int key, counted; /* of the rate; the first of its events, -1: they are not counted */
    probe *run;
    double unit;
} list[] = {
    {CD_DEVICE_PROBE_probe_compute, CD_DEVICE_PROBE_count_compute_instructions, compute, 1e9},
    {CD_DEVICE_PROBE_probe_l1, -1, l1, 1e9},
    {CD_DEVICE_PROBE_probe_l2, CD_DEVICE_PROBE_count_l2_instructions, l2, 1e9},
    {CD_DEVICE_PROBE_probe_l3, -1, l3, 1e9},
    {CD_DEVICE_PROBE_probe_memory, CD_DEVICE_PROBE_count_memory_instructions, memory, 1e9},
    {CD_DEVICE_PROBE_probe_stride, -1, stride, 1e9},
    {CD_DEVICE_PROBE_probe_exp, -1, exponentials, 1e9},
    /* last: it needs the ring */
    {CD_DEVICE_PROBE_probe_latency, CD_DEVICE_PROBE_count_latency_instructions, latency, 1e6}};

enum { N_LIST = sizeof list / sizeof *list };

/* The fastest call counts: another process on the processor makes one longer, never shorter.
 * *seconds: of all calls. */
static double rate(ground *g, probe *run, double *seconds) {
    double best = INFINITY, work = 0;
    *seconds = 0;
    for (int i = 0; i < ROUNDS || *seconds < PROBE_S; i++) {
        const double t0 = cd_clock_wall();
        work = run(g);
        const double t = cd_clock_wall() - t0;
        best = fmin(best, t);
        *seconds += t;
        if (work <= 0) return 0;
    }
    return best > 0 ? work / best : 0;
}

/* Events over the time of the calls, so that slow and fast devices compare. */
static void count(cd_describe_entry *d, int first, const double value[CD_PERF_COUNT],
                  double seconds) {
    static const int event[] = {CD_PERF_INSTRUCTIONS, CD_PERF_CYCLES,        CD_PERF_L1_MISSES,
                                CD_PERF_CACHE_MISSES, CD_PERF_BRANCH_MISSES, CD_PERF_TLB_MISSES};
    for (int k = 0; k < (int)(sizeof event / sizeof *event); k++)
        if (value[event[k]] > 0) d->device.probe[first + k] = value[event[k]] / seconds;
}

/* each_s (N_LIST): of a unit of work. */
static void run_list(cd_describe_entry *d, ground *g, double *each_s) {
    for (size_t i = 0; i < N_LIST; i++) {
        double value[CD_PERF_COUNT], seconds;
        cd_perf_counters p;
        if (list[i].run == latency) lay_ring(g);
        (void)list[i].run(g); /* caches and pages are as they will be */
        cd_perf_counters_open(&p);
        cd_perf_counters_start(&p);
        const double now = rate(g, list[i].run, &seconds) / list[i].unit;
        each_s[i] = now > 0 ? 1 / now : 0;
        d->device.probe[list[i].key] = fmax(d->device.probe[list[i].key], now);
        cd_perf_counters_stop(&p, value);
        cd_perf_counters_close(&p);
        if (list[i].counted >= 0 && seconds > 0) count(d, list[i].counted, value, seconds);
    }
}

/* ---- all processors ---- */
static cdmpp_status one_of(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    (void)w, (void)err;
    for (size_t i = beg; i < end; i++)
        for (int k = 0; k < ROUNDS; k++) (void)compute(ctx);
    return CDMPP_OK;
}

/* The time of n times the work on n threads; the fastest of several. */
static cdmpp_status speed_up(cd_describe_entry *d, ground *g, cdmpp_err *err) {
    const int n = cd_affinity_count();
    double one = INFINITY, all_s[ROUNDS];
    cd_threads *t = NULL;
    if (!(d->device.probe[CD_DEVICE_PROBE_probe_compute] > 0)) return CDMPP_OK;
    CD_TRY(cd_threads_new(n, &t, err));
    cdmpp_status st = CDMPP_OK;
    for (int i = 0; !st && i < ROUNDS; i++) {
        const double t0 = cd_clock_wall();
        (void)one_of(g, 0, 1, 0, err);
        const double t1 = cd_clock_wall();
        st = cd_threads_run(t, (size_t)n, 1, one_of, g, err);
        one = fmin(one, t1 - t0);
        all_s[i] = cd_clock_wall() - t1;
    }
    cd_threads_free(t);
    if (!st) cd_noise_repeats(&d->noise, "probe_all", all_s, ROUNDS);
    if (!st && all_s[0] > 0) d->device.probe[CD_DEVICE_PROBE_probe_all] = n * one / all_s[0];
    return st;
}

cdmpp_status cd_describe_probes(cd_describe_entry *d, cdmpp_err *err) {
    ground g = {.a = cd_mem_alloc(MANY), .bits = (int)d->device.simd_bits};
    if (!g.a) return CD_FAIL(err, ENOMEM, "%zu MB for probes", MANY >> 20);
    memset(g.a, 1, MANY);
    double each_s[TURNS][N_LIST];
    /* what disturbs one turn is gone in another */
    for (int turn = 0; turn < TURNS; turn++) run_list(d, &g, each_s[turn]);
    for (size_t i = 0; i < N_LIST; i++)
        cd_noise_repeats(&d->noise, cd_device_probe_name((size_t)list[i].key),
                         (double[TURNS]){each_s[0][i], each_s[1][i], each_s[2][i]}, TURNS);
    const cdmpp_status st = speed_up(d, &g, err);
    size_t counted = 0, all = 0;
    for (int i = CD_DEVICE_PROBE_count_compute_instructions;
         i <= CD_DEVICE_PROBE_count_latency_tlb_misses; i++, all++)
        counted += d->device.probe[i] > 0;
    snprintf(d->probed, sizeof d->probed,
             counted < all ? "count_*: %zu of %zu not known: this system does not let a process "
                             "count them (perf_event_open), or the events did not happen"
                           : "",
             all - counted, all);
    cd_mem_free(g.a);
    return st;
}
