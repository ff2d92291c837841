/* Seconds of GPU programs on a made device: each part by hand, what more of each number does, and
 * what is refused. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "features/analytic/analytic.h"

/* 10 multiprocessors of 1 GHz, 64 lanes, 100 GB/s. */
static cd_device made(void) {
    cd_device d = {.name = "made", .kind = CD_DEVICE_GPU};
#define X(key, low, high, unit, meaning) d.key = CD_DEVICE_UNKNOWN;
#include "features/device/device_keys.def"
    d.clock_mhz = 1000, d.cores = 10, d.lanes = 64, d.warp = 32, d.core_threads = 2048,
    d.core_registers = 65536, d.thread_registers = 255;
    d.core_blocks = 32, d.shared_kb = 64, d.l1_kb = 64, d.l2_kb = 1024, d.bandwidth_gb_s = 100;
    return d;
}

/* 100 blocks of 128 threads, 64 registers, 16 KB of shared memory: 4 blocks a multiprocessor, 3
 * waves, the busiest runs 10 blocks. */
static void program(float x[CD_N_FACTS]) {
    memset(x, 0, CD_N_FACTS * sizeof *x);
    x[CD_GPU_FACT_KERNELS] = 1;
    x[CD_GPU_FACT_BLOCKS] = x[CD_GPU_FACT_BLOCKS_ALL] = 100;
    x[CD_GPU_FACT_THREADS] = 128;
    x[CD_GPU_FACT_THREADS_ALL] = 12800;
    x[CD_GPU_FACT_LANES_32] = x[CD_GPU_FACT_LANES_64] = 1;
    x[CD_GPU_FACT_REGISTERS] = 64;
    x[CD_GPU_FACT_SHARED_BYTES] = 16384;
    x[CD_GPU_FACT_THREAD_INSTRUCTIONS] = 1000;
    x[CD_GPU_FACT_WARPS_32] = 400000;
    x[CD_GPU_FACT_WARPS_64] = 200000;
    x[CD_GPU_FACT_FP_SHARE] = 0.75F;
    x[CD_GPU_FACT_PHASES] = 10;
    x[CD_GPU_FACT_SHARED_LOAD_WAVES_32] = 100000;
    x[CD_GPU_FACT_SHARED_STORE_WAVES_32] = 20000;
    x[CD_GPU_FACT_LOAD_SECTORS_32] = 200000;
    x[CD_GPU_FACT_STORE_SECTORS_32] = 50000;
    for (int k = 0; k < CD_N_GPU_FACT_GROUP; k++) x[CD_GPU_FACT_GROUP_1 + k] = (float)(160000 >> k);
    x[CD_GPU_FACT_SECTORS_LOADED] = 10000;
    x[CD_GPU_FACT_SECTORS_STORED] = 50000;
}

static cd_analytic_time of(const float *x, const cd_device *d) {
    cd_analytic_time t;
    cdmpp_err err = {0};
    assert_ok(cd_analytic_gpu_seconds(x, d, &t, &err));
    return t;
}

TEST(by_hand) {
    float x[CD_N_FACTS];
    const cd_device d = made();
    program(x);
    const cd_analytic_time t = of(x, &d);
    assert_close(t.waves, 3, 0, 0);
    assert_close(t.threads, 512, 0, 0);
    /* 10 blocks each: nobody is busier than the mean */
    const double clock = 1e-9, core = clock / 10;
    assert_close(t.compute_s, core * 400000 * 0.75 / 2, 1e-9, 0);
    assert_close(t.l1_s, core * 120000, 1e-9, 0);
    assert_close(t.l2_s, core * (160000 + 50000), 1e-9, 0);
    /* 40 blocks at a time: between the groups of 16 and of 64, by the logarithm */
    const double part = log2(40) / 2 - 2, loaded = 40000 - part * 20000;
    assert_close(t.memory_s, (loaded + 50000) * 32 / (0.8 * 100e9), 1e-9, 0);
    assert_close(t.latency_s, 3 * clock * (500 * 10 + 1000), 1e-9, 0);
    assert_close(t.overhead_s, 3e-6 + 300 * clock, 1e-9, 0);
    assert_close(t.roofline_s, fmax(t.memory_s, fmax(t.l2_s, t.latency_s)) + 3e-6, 1e-9, 0);
    assert_close(t.ecm_s,
                 fmax(t.compute_s + t.l1_s, fmax(t.memory_s, fmax(t.l2_s, t.latency_s))) + 3e-6,
                 1e-9, 0);
    assert_true(t.roofline_s <= t.ecm_s && t.ecm_s <= t.sum_s);
    assert_int_equal(t.rules & (CD_ANALYTIC_RULE_REGISTERS | CD_ANALYTIC_RULE_BLOCKS), 0);
}

/* What bounds the resident blocks, and the last wave. */
TEST(occupancy) {
    float x[CD_N_FACTS];
    cd_device d = made();
    program(x);
    x[CD_GPU_FACT_REGISTERS] = 200; /* 65536 / (128 * 200): 2 blocks */
    assert_close(of(x, &d).threads, 256, 0, 0);
    x[CD_GPU_FACT_REGISTERS] = 1000; /* a thread has at most 255 of them */
    assert_close(of(x, &d).threads, 256, 0, 0);
    x[CD_GPU_FACT_REGISTERS] = 16;
    x[CD_GPU_FACT_SHARED_BYTES] = 0;
    assert_close(of(x, &d).threads, 1280, 0, 0); /* there are 10 for each */
    d.core_threads = 1024;
    assert_close(of(x, &d).threads, 1024, 0, 0);
    d.core_blocks = 3;
    assert_close(of(x, &d).threads, 384, 0, 0);
    d.core_blocks = d.core_registers = CD_DEVICE_UNKNOWN;
    assert_int_equal(of(x, &d).rules & (CD_ANALYTIC_RULE_REGISTERS | CD_ANALYTIC_RULE_BLOCKS),
                     CD_ANALYTIC_RULE_REGISTERS | CD_ANALYTIC_RULE_BLOCKS);
    const double even = of(x, &d).compute_s;
    x[CD_GPU_FACT_BLOCKS] = 101; /* one more multiprocessor has to run an 11th */
    assert_close(of(x, &d).compute_s / even, 11 / 10.1, 1e-6, 0);
}

/* Wavefronts of 64 have columns of their own. */
TEST(wavefronts) {
    float x[CD_N_FACTS];
    cd_device d = made();
    program(x);
    d.warp = 64;
    assert_close(of(x, &d).compute_s, 1e-10 * 200000 * 0.75, 1e-9, 0);
    assert_close(of(x, &d).l1_s, 0, 0, 0);
}

/* Tiles in memory: from L1, from L2, from memory. */
TEST(spilled) {
    float x[CD_N_FACTS];
    cd_device d = made();
    program(x);
    const cd_analytic_time none = of(x, &d);
    x[CD_GPU_FACT_LOCAL_ACCESSES] = 3.2e9F;
    x[CD_GPU_FACT_ACCUMULATORS] = 8; /* 4 * 128 threads * 32 bytes */
    const cd_analytic_time l1 = of(x, &d);
    x[CD_GPU_FACT_ACCUMULATORS] = 48; /* 98 KB a multiprocessor */
    const cd_analytic_time l2 = of(x, &d);
    d.l2_kb = 512;
    const cd_analytic_time memory = of(x, &d);
    assert_close(l1.l2_s, 1e-10 * (250000 + 4e8) / 4, 1e-6, 0);
    assert_close(l1.memory_s, none.memory_s, 1e-9, 0);
    assert_close(l2.l2_s, 1e-10 * (210000 + 4e8), 1e-6, 0);
    assert_close(l2.memory_s, none.memory_s, 1e-9, 0);
    assert_true(memory.memory_s > 100 * none.memory_s && memory.latency_s > l2.latency_s &&
                l2.latency_s > l1.latency_s);
}

/* A thread has no more registers than its block can start with: 65536 over its threads, in whole
 * warps. */
TEST(registers_of_a_block) {
    float x[CD_N_FACTS];
    cdmpp_err err = {0};
    cd_analytic_time now;
    const cd_device d = made();
    program(x);
    x[CD_GPU_FACT_SHARED_BYTES] = 0;
    x[CD_GPU_FACT_FP_INSTRUCTIONS] = 1e9F;
    x[CD_GPU_FACT_ACCUMULATORS] = 100;
    x[CD_GPU_FACT_REGISTERS] = 120;
    const double none = of(x, &d).l2_s, wait = of(x, &d).latency_s;
    x[CD_GPU_FACT_THREADS] = 550; /* 576: 113 registers, of which tiles may have 98.875 */
    const cd_analytic_time over = of(x, &d);
    /* tiles of 220 KB */
    assert_close(over.l2_s, 1e-10 * (210000 + 4 * 2 * (100 - 98.875) / 100 * 1e9 / 32), 1e-6, 0);
    assert_close(over.threads, 550, 0, 0);
    x[CD_GPU_FACT_THREADS] = 512; /* 128: they have 112 */
    assert_close(of(x, &d).l2_s, none, 1e-9, 0);
    x[CD_GPU_FACT_THREADS] = 1024; /* 64 */
    assert_ok(cd_analytic_seconds_of(CD_FACTS_OF_GPU, x, &d, &now, &err));
    assert_true(now.l2_s > 10 * none && now.latency_s > wait);
    x[CD_GPU_FACT_THREADS] = 1e9F; /* of a block that no device starts: one */
    assert_true(isfinite(of(x, &d).sum_s));
}

/* A wave that loads more than L2 holds before it waits loads again what the sectors held. */
TEST(forgotten) {
    float x[CD_N_FACTS];
    cd_device d = made();
    program(x);
    /* 40 of 100 blocks, 10 times: 2.6 MB each */
    for (int k = 0; k < 4; k++) x[CD_GPU_FACT_STEP_1 + k] = 2e6F;
    assert_close(of(x, &d).memory_s, (2e6 + 50000) * 32 / 80e9, 1e-6, 0);
    d.l2_kb = 4096;
    assert_true(of(x, &d).memory_s < 1e-4);
}

/* A great many small blocks take the time to start them. */
TEST(starts) {
    float x[CD_N_FACTS];
    const cd_device d = made();
    memset(x, 0, sizeof x);
    x[CD_GPU_FACT_KERNELS] = 1;
    x[CD_GPU_FACT_BLOCKS] = x[CD_GPU_FACT_BLOCKS_ALL] = 1e7F;
    x[CD_GPU_FACT_THREADS] = 1;
    x[CD_GPU_FACT_LANES_32] = 1.0F / 32;
    assert_close(of(x, &d).roofline_s, 0.03 + 3e-6, 1e-6, 0);
    assert_close(of(x, &d).sum_s, 0.03 + 3e-6, 1e-6, 0);
}

TEST(refused) {
    float x[CD_N_FACTS];
    cd_analytic_time t;
    cdmpp_err err = {0};
    cd_device d = made();
    program(x);
    double *const need[] = {&d.clock_mhz, &d.cores, &d.lanes, &d.warp,          &d.core_threads,
                            &d.shared_kb, &d.l1_kb, &d.l2_kb, &d.bandwidth_gb_s};
    for (size_t i = 0; i < sizeof need / sizeof *need; i++) {
        const double kept = *need[i];
        *need[i] = CD_DEVICE_UNKNOWN;
        assert_status(cd_analytic_gpu_seconds(x, &d, &t, &err), CDMPP_ESCHEMA);
        *need[i] = kept;
    }
    d.kind = CD_DEVICE_CPU;
    assert_status(cd_analytic_gpu_seconds(x, &d, &t, &err), CDMPP_EUNSUPPORTED);
    d.kind = CD_DEVICE_GPU;
    x[3] = NAN;
    assert_status(cd_analytic_seconds_of(CD_FACTS_OF_GPU, x, &d, &t, &err), CDMPP_ERANGE);
    assert_status(cd_analytic_seconds_of(CD_FACTS_OF_CPU, x, &d, &t, &err), CDMPP_EUNSUPPORTED);
}

TESTS(NULL, NULL, by_hand, occupancy, wavefronts, spilled, registers_of_a_block, forgotten, starts,
      refused)
