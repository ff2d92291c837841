/* Facts of a GPU program and the numbers of a device to seconds.
 *
 *   blocks 1792, 112 threads, 80 registers ─> 5 blocks fit a multiprocessor, 80 of them hold a wave
 *                                             of 400
 *   4 full waves, a last one of 192 blocks ─> the busiest multiprocessor runs 4 * 5 + 3 blocks
 *
 *   part     a multiprocessor's share of         for each clock
 *   compute  instructions of warps               lanes / warp of float arithmetic, 4 of all
 *   shared   waves of the banks                  1
 *   L2       sectors of its blocks               1 (4 of loads that L1 may hold)
 *   memory   sectors that a wave loads together  bandwidth of the device
 *   latency  waves * what a thread waits         500 clocks for memory, 30 for a barrier, 5 for a
 *                                                sum
 *   start    blocks                              1/3 of the GPU
 *
 * Tiles that a loop indexes, and what is over seven eighths of a thread's registers, are in memory:
 * in L1 where the tiles of all resident threads fit it, else in L2, else in memory. A thread has so
 * many registers that its block can start: 65536 over the threads of the block at most. The rates
 * for each clock and the clocks of waiting are round numbers of GPUs since 2014; nothing is
 * fitted. */
#include <math.h>

#include "features/analytic/analytic.h"

/* Facts and the numbers of a device to seconds: roofline, ECM (transfers between levels do not
 * overlap), and a plain sum. */

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
} cpu_machine;

static double cpu_fact(const cpu_machine *m, int k) { return (double)m->fact[k]; }

/* Lines at a capacity in bytes: between two columns along the logarithm. */
static double at_capacity(const cpu_machine *m, int first, double bytes) {
    const double x = log2(bytes / CD_FACT_CAPACITY_LEAST), last = CD_N_FACT_CAPACITY - 1;
    const double k = fmin(fmax(floor(x), 0), last - 1), part = fmin(fmax(x - k, 0), 1);
    const double a = cpu_fact(m, first + (int)k), b = cpu_fact(m, first + (int)k + 1);
    return a + (b - a) * part;
}

/* Lines that cross the border below a cache. A program that fits finds its data there from the run
 * before. */
static double crossing(const cpu_machine *m, double bytes) {
    if (bytes <= 0 || cpu_fact(m, CD_FACT_LINES) * LINE <= bytes) return 0;
    return at_capacity(m, CD_FACT_FETCHED_0, bytes) + at_capacity(m, CD_FACT_WRITTEN_0, bytes);
}

static double by_rule(cpu_machine *m, double measured, double rule, unsigned mark) {
    if (measured > 0) return measured;
    m->out->rules |= mark;
    return rule;
}

/* The time of core_cycles on so many threads over that on one. A thread gets as many iterations of
 * a parallel loop as any other, or one more: the last round counts in full. Loops beyond those that
 * the facts tell apart divide evenly. */
static double share_on(const cpu_machine *m, double threads) {
    double all = cpu_fact(m, CD_FACT_SERIAL_SHARE), left = 1 - all;
    for (int k = 0; k < CD_N_FACT_REGION; k++) {
        const double chunks = cpu_fact(m, CD_FACT_REGION_1_CHUNKS + 2 * k),
                     part = cpu_fact(m, CD_FACT_REGION_1_SHARE + 2 * k);
        if (chunks > 0) all += part * ceil(chunks / threads) / chunks;
        left -= chunks > 0 ? part : 0;
    }
    return all + fmax(left, 0) / threads;
}

/* Threads that work at a time. */
static double useful_threads(const cpu_machine *m) {
    const double share = share_on(m, fmax(floor(m->cores), 1));
    return share > 0 ? 1 / share : 1;
}

static void compute(cpu_machine *m) {
    const double lanes = by_rule(m, m->d->lanes, MODEL_LANES * cpu_fact(m, CD_FACT_WIDTH) / 4,
                                 CD_ANALYTIC_RULE_LANES);
    const double ports =
        cpu_fact(m, CD_FACT_PORT_CYCLES) * MODEL_LANES * cpu_fact(m, CD_FACT_WIDTH) / 4 / lanes;
    m->out->compute_s = fmax(cpu_fact(m, CD_FACT_CORE_CYCLES), ports) / m->clock / m->threads;
}

static void transfers(cpu_machine *m) {
    const cd_device *d = m->d;
    const double l1 = by_rule(m, d->probe[CD_DEVICE_PROBE_probe_l1] * 1e9,
                              2 * cpu_fact(m, CD_FACT_WIDTH) * m->clock, CD_ANALYTIC_RULE_L1);
    const double l2 = by_rule(m, d->probe[CD_DEVICE_PROBE_probe_l2] * 1e9,
                              L2_BYTES_A_CLOCK * m->clock, CD_ANALYTIC_RULE_L2);
    const double l3 = by_rule(m, d->probe[CD_DEVICE_PROBE_probe_l3] * 1e9,
                              L3_BYTES_A_CLOCK * m->clock, CD_ANALYTIC_RULE_L3);
    const double one = d->probe[CD_DEVICE_PROBE_probe_memory]; /* what one thread gets of it */
    const double memory =
        1e9 * (one > 0 ? fmin(d->bandwidth_gb_s, one * m->threads) : d->bandwidth_gb_s);
    const double width = cpu_fact(m, CD_FACT_WIDTH), moves = cpu_fact(m, CD_FACT_LOADS_UNIT) +
                                                             cpu_fact(m, CD_FACT_STORES_UNIT) +
                                                             cpu_fact(m, CD_FACT_SPILLS);
    m->out->l1_s =
        (moves * width + 4 * (cpu_fact(m, CD_FACT_LOADS_SAME) + cpu_fact(m, CD_FACT_LOADS_STRIDED) +
                              cpu_fact(m, CD_FACT_STORES_STRIDED))) /
        l1 / m->threads;
    m->out->l2_s = crossing(m, d->l1_kb * 1024) * LINE / l2 / m->threads;
    m->out->l3_s = d->l3_kb > 0 ? crossing(m, d->l2_kb * 1024) * LINE / l3 / m->threads : 0;
    m->out->memory_s =
        crossing(m, 1024 * (d->l3_kb > 0 ? d->l3_kb : d->l2_kb * m->threads)) * LINE / memory;
}

static cdmpp_status check_cpu(const float *facts, const cd_device *d, cdmpp_err *err) {
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
    CD_TRY(check_cpu(facts, device, err));
    *out = (cd_analytic_time){0};
    const double cores = cd_device_cores(device);
    cpu_machine m = {.fact = facts,
                     .d = device,
                     .clock = device->clock_mhz * 1e6,
                     .cores = cores > 0 ? cores : 1,
                     .out = out};
    m.threads = useful_threads(&m);
    out->threads = m.threads;
    compute(&m);
    transfers(&m);
    if (m.cores > 1) out->rules |= CD_ANALYTIC_RULE_OVERHEAD;
    out->overhead_s = CALL_S + (m.cores > 1 ? cpu_fact(&m, CD_FACT_REGIONS) * FORK_S : 0);
    const double moved = out->l2_s + out->l3_s + out->memory_s;
    out->roofline_s =
        fmax(fmax(out->compute_s, out->l1_s), fmax(fmax(out->l2_s, out->l3_s), out->memory_s)) +
        out->overhead_s;
    out->ecm_s = fmax(out->compute_s, out->l1_s + moved) + out->overhead_s;
    out->sum_s = out->compute_s + out->l1_s + moved + out->overhead_s;
    return CDMPP_OK;
}

#define ISSUE              4.0 /* instructions of warps that a multiprocessor starts in a clock */
#define SECTORS_A_CLOCK    1.0 /* from L2 to a multiprocessor */
#define L1_SECTORS_A_CLOCK 4.0
#define MEMORY_CLOCKS      500.0
#define SYNC_CLOCKS        30.0
#define SUM_CLOCKS         5.0
/* accesses to local tiles in memory that a thread has on their way */
#define AT_ONCE        8.0
#define L1_CLOCKS      30.0
#define BLOCK_CLOCKS   3.0 /* of the GPU, to start a block */
#define LAUNCH_S       3e-6
#define REGISTERS      65536.0 /* of a multiprocessor; of a block at most */
#define MOST_REGISTERS 255.0   /* of a thread */
#define SPARE          0.125   /* of the registers of a thread that tiles cannot have */
#define BANDWIDTH      0.8     /* of the peak that a kernel reaches */
#define BLOCKS         32.0

typedef struct {
    const float *fact;
    const cd_device *d;
    cd_analytic_time *out;
    bool wide;              /* wavefronts of 64 */
    double clock, resident; /* blocks of a multiprocessor */
    double busiest;         /* blocks that one runs, over the mean */
    double start_s;         /* of all blocks */
    double most;            /* registers of a thread */
} machine;

static double fact(const machine *m, int k) { return (double)m->fact[k]; }
static double by_warp(const machine *m, int of_32, int of_64) {
    return fact(m, m->wide ? of_64 : of_32);
}

static double known(machine *m, double value, double rule, unsigned mark) {
    if (value > 0) return value;
    m->out->rules |= mark;
    return rule;
}

/* Threads of a block, whole warps. */
static double whole(const machine *m) {
    return ceil(fact(m, CD_GPU_FACT_THREADS) / m->d->warp) * m->d->warp;
}

/* Compilers know the threads of the block (__launch_bounds__, amdgpu-flat-work-group-size), and
 * keep its registers within what a block can have. */
static double most_registers(machine *m) {
    const double thread =
        known(m, m->d->thread_registers, MOST_REGISTERS, CD_ANALYTIC_RULE_REGISTERS);
    return fmin(thread, fmax(1, floor(REGISTERS / fmax(1, whole(m)))));
}

/* Blocks that fit: by threads, registers, shared memory, and their number. */
static double resident(machine *m) {
    const cd_device *d = m->d;
    const double threads = whole(m);
    const double registers = known(m, d->core_registers, REGISTERS, CD_ANALYTIC_RULE_REGISTERS);
    double n = known(m, d->core_blocks, BLOCKS, CD_ANALYTIC_RULE_BLOCKS);
    n = fmin(n, floor(d->core_threads / fmax(threads, 1)));
    n = fmin(n,
             floor(registers / fmax(1, threads * fmin(fact(m, CD_GPU_FACT_REGISTERS), m->most))));
    if (fact(m, CD_GPU_FACT_SHARED_BYTES) > 0)
        n = fmin(n, floor(d->shared_kb * 1024 / fact(m, CD_GPU_FACT_SHARED_BYTES)));
    return fmax(n, 1);
}

static void waves(machine *m) {
    const double blocks = fmax(1, fact(m, CD_GPU_FACT_BLOCKS)), cores = m->d->cores;
    m->most = most_registers(m);
    m->resident = resident(m);
    const double full = floor(blocks / (cores * m->resident)),
                 last = blocks - full * cores * m->resident;
    m->busiest = (full * m->resident + ceil(last / cores)) * cores / blocks;
    m->out->waves = full + (last > 0);
    m->out->threads = fmin(m->resident, ceil(blocks / cores)) * fact(m, CD_GPU_FACT_THREADS);
}

/* Accesses of warps to tiles that are no registers, and where these are. */
typedef struct {
    double warps;    /* of the whole program; each is 4 sectors of a warp of 32 */
    double sectors;  /* of one */
    bool l2, memory; /* beyond L1, beyond L2 */
    double wait;     /* clocks that a thread waits for all of them */
} tiles;

static tiles spilled(const machine *m) {
    const cd_device *d = m->d;
    const double threads = fmax(1, fact(m, CD_GPU_FACT_THREADS)),
                 blocks = fmin(m->resident, ceil(fact(m, CD_GPU_FACT_BLOCKS) / d->cores));
    const double lanes = fact(m, m->wide ? CD_GPU_FACT_LANES_64 : CD_GPU_FACT_LANES_32),
                 bytes = 4 * fact(m, CD_GPU_FACT_ACCUMULATORS) * threads / lanes * blocks;
    const double over = fmin(1, fmax(0, fact(m, CD_GPU_FACT_ACCUMULATORS) - (1 - SPARE) * m->most) /
                                    fmax(1, fact(m, CD_GPU_FACT_ACCUMULATORS)));
    /* a sum of a tile that does not fit is a load and a store */
    const double all =
        fmax(fact(m, CD_GPU_FACT_LOCAL_ACCESSES), 2 * over * fact(m, CD_GPU_FACT_FP_INSTRUCTIONS));
    tiles t = {.warps = all / d->warp / fmax(lanes, 1e-9), .sectors = 4 * d->warp / CD_GPU_SECTOR};
    if (all <= 0) return (tiles){0};
    t.l2 = bytes > d->l1_kb * 1024;
    t.memory = bytes * d->cores > d->l2_kb * 1024;
    const double each = fmax(1, fact(m, CD_GPU_FACT_THREADS_ALL));
    t.wait = all / each / AT_ONCE *
             (t.memory ? MEMORY_CLOCKS
              : t.l2   ? MEMORY_CLOCKS / 2
                       : L1_CLOCKS);
    return t;
}

/* Sectors that are loaded where the blocks of a wave share L2: between two columns along the
 * logarithm. */
static double loaded(const machine *m) {
    const double blocks = fmin(fact(m, CD_GPU_FACT_BLOCKS), m->d->cores * m->resident);
    const double x = log2(fmax(blocks, 1)) / 2, last = CD_N_GPU_FACT_GROUP - 1,
                 k = fmin(floor(x), last - 1), part = fmin(x - k, 1);
    const double a = fact(m, CD_GPU_FACT_GROUP_1 + (int)k),
                 b = fact(m, CD_GPU_FACT_GROUP_1 + (int)k + 1);
    const double all = fact(m, CD_GPU_FACT_SECTORS_LOADED) + fact(m, CD_GPU_FACT_SECTORS_STORED);
    if (all * CD_GPU_SECTOR <= m->d->l2_kb * 1024) return fact(m, CD_GPU_FACT_SECTORS_LOADED);
    /* a wave that loads more than L2 between two waits finds nothing of the last time */
    const double y = x / 2, j = fmin(floor(y), 2), rest = fmin(y - j, 1),
                 c = fact(m, CD_GPU_FACT_STEP_1 + (int)j),
                 e = fact(m, CD_GPU_FACT_STEP_1 + (int)j + 1);
    const double step = c + (e - c) * rest,
                 wave = step * blocks /
                        fmax(1, fact(m, CD_GPU_FACT_BLOCKS) * fact(m, CD_GPU_FACT_PHASES));
    return fmax(fact(m, CD_GPU_FACT_SECTORS_LOADED),
                wave * CD_GPU_SECTOR > m->d->l2_kb * 1024 ? step : a + (b - a) * part);
}

static void parts(machine *m) {
    const cd_device *d = m->d;
    /* seconds for a unit of the whole program that takes a clock */
    const double share = m->busiest / d->cores / m->clock;
    const double warps = by_warp(m, CD_GPU_FACT_WARPS_32, CD_GPU_FACT_WARPS_64),
                 rate = d->lanes / d->warp;
    const double moved = by_warp(m, CD_GPU_FACT_LOAD_SECTORS_32, CD_GPU_FACT_LOAD_SECTORS_64),
                 stored = by_warp(m, CD_GPU_FACT_STORE_SECTORS_32, CD_GPU_FACT_STORE_SECTORS_64);
    const double waves =
        by_warp(m, CD_GPU_FACT_SHARED_LOAD_WAVES_32, CD_GPU_FACT_SHARED_LOAD_WAVES_64) +
        by_warp(m, CD_GPU_FACT_SHARED_STORE_WAVES_32, CD_GPU_FACT_SHARED_STORE_WAVES_64);
    const tiles t = spilled(m);
    const double far =
        fmin(fact(m, CD_GPU_FACT_GROUP_1), moved) + stored + (t.l2 ? t.warps * t.sectors : 0);
    m->out->compute_s =
        share * fmax(warps * fact(m, CD_GPU_FACT_FP_SHARE) / rate, warps / fmax(ISSUE, rate));
    m->out->l1_s = share * waves;
    m->out->l2_s = share * fmax(far / SECTORS_A_CLOCK,
                                (moved + stored + t.warps * t.sectors) / L1_SECTORS_A_CLOCK);
    m->out->memory_s =
        (loaded(m) + fact(m, CD_GPU_FACT_SECTORS_STORED) + (t.memory ? t.warps * t.sectors : 0)) *
        CD_GPU_SECTOR / (BANDWIDTH * d->bandwidth_gb_s * 1e9);
    m->out->rules |= CD_ANALYTIC_RULE_L2 | CD_ANALYTIC_RULE_LATENCY;
    const double wait =
        MEMORY_CLOCKS * fact(m, CD_GPU_FACT_PHASES) + SYNC_CLOCKS * fact(m, CD_GPU_FACT_SYNCS) +
        fmax(SUM_CLOCKS * fact(m, CD_GPU_FACT_CHAIN), fact(m, CD_GPU_FACT_THREAD_INSTRUCTIONS)) +
        t.wait;
    m->out->latency_s = m->out->waves * wait / m->clock;
    m->start_s = BLOCK_CLOCKS * fact(m, CD_GPU_FACT_BLOCKS_ALL) / m->clock;
    m->out->overhead_s = LAUNCH_S * fact(m, CD_GPU_FACT_KERNELS) + m->start_s;
}

static cdmpp_status check(const float *facts, const cd_device *d, cdmpp_err *err) {
    if (d->kind != CD_DEVICE_GPU)
        return CD_FAIL(err, EUNSUPPORTED, "facts of GPU programs say nothing about a %s",
                       cd_device_kind_name(d->kind));
    const struct {
        const char *key;
        double value;
    } need[] = {{"clock_mhz", d->clock_mhz},
                {"cores", d->cores},
                {"lanes", d->lanes},
                {"warp", d->warp},
                {"core_threads", d->core_threads},
                {"shared_kb", d->shared_kb},
                {"l1_kb", d->l1_kb},
                {"l2_kb", d->l2_kb},
                {"bandwidth_gb_s", d->bandwidth_gb_s}};
    for (size_t i = 0; i < sizeof need / sizeof *need; i++)
        if (!(need[i].value > 0))
            return CD_FAIL(
                err, ESCHEMA,
                "the device does not say %s, which the estimate from the loop nest needs",
                need[i].key);
    for (size_t i = 0; i < CD_N_GPU_FACTS; i++)
        if (!(facts[i] >= 0))
            return CD_FAIL(err, ERANGE, "fact %s is %g", cd_facts_cols(CD_FACTS_OF_GPU)[i].name,
                           (double)facts[i]);
    return CDMPP_OK;
}

cdmpp_status cd_analytic_gpu_seconds(const float *facts, const cd_device_numbers *device,
                                     cd_analytic_time *out, cdmpp_err *err) {
    CD_TRY(check(facts, device, err));
    *out = (cd_analytic_time){0};
    machine m = {.fact = facts,
                 .d = device,
                 .out = out,
                 .wide = device->warp > 32,
                 .clock = device->clock_mhz * 1e6};
    waves(&m);
    parts(&m);
    const double launch = out->overhead_s - m.start_s, far = fmax(out->l2_s, out->memory_s),
                 least = fmax(out->latency_s, m.start_s);
    out->roofline_s = fmax(fmax(out->compute_s, out->l1_s), fmax(far, least)) + launch;
    out->ecm_s = fmax(out->compute_s + out->l1_s, fmax(far, least)) + launch;
    out->sum_s = fmax(out->compute_s + out->l1_s + far + out->latency_s, m.start_s) + launch;
    return CDMPP_OK;
}

cdmpp_status cd_analytic_seconds_of(cd_facts_set set, const float *facts,
                                    const cd_device_numbers *device, cd_analytic_time *out,
                                    cdmpp_err *err) {
    return cd_facts_set_is_gpu(set) ? cd_analytic_gpu_seconds(facts, device, out, err)
                                    : cd_analytic_seconds(facts, device, out, err);
}
