/* Columns of facts of CPU programs: counts are relative to the size, which stands once; groups that
 * are left out are 0. */
#include "check.h"
#include "learner/inputs/facts_input.h"

#include <string.h>

enum { N = CD_N_FACTS_COL };

/* A program whose counts are 2^k - 1, times `size` where they grow with it. */
static void fill(double size, unsigned without, float *x) {
    static float facts[CD_N_FACTS], analytic[CD_N_ANALYTIC];
    const cd_program_view v = {.n = 1,
                               .facts = facts,
                               .analytic = analytic,
                               .facts_set = CD_FACTS_OF_CPU,
                               .facts_without = without};
    for (size_t c = 0; c < CD_N_FACTS; c++) {
        const bool grows =
            c < CD_FACT_WIDTH || c == CD_FACT_INIT_STORES || c == CD_FACT_COPY_STORES;
        facts[c] = (float)((double)(2ULL << c % 17) * (grows ? size : 1) - 1);
    }
    /* the last are threads */
    for (size_t k = 0; k < CD_N_ANALYTIC; k++)
        analytic[k] = (float)((k < CD_N_ANALYTIC - 1 ? log(size) : 0) - (double)(1 + k * k));
    memset(x, 0x7f, N * sizeof *x);
    cd_facts_input_fill(&v, 0, x);
}

/* A program that is eight times as large differs in its size alone: instructions, lines,
 * seconds. */
TEST(size_stands_once) {
    float a[N], b[N];
    const size_t total = CD_N_FACTS + CD_N_TRAFFIC + CD_N_PRIOR - 1,
                 lines = CD_N_FACTS + CD_FACT_LINES;
    fill(1, 0, a);
    fill(8, 0, b);
    for (size_t c = 0; c < N; c++) {
        const bool size = c == CD_FACT_INSTRUCTIONS || c == lines;
        assert_close((double)b[c] - (double)a[c], size ? 3 : c == total ? log(8) : 0, 0, 1e-5);
    }
    assert_close((double)a[CD_FACT_INSTRUCTIONS], 1 + CD_FACT_INSTRUCTIONS % 17, 1e-6, 0);
    assert_close((double)a[lines], 1 + CD_FACT_LINES % 17, 1e-6, 0);
    assert_close((double)a[CD_FACT_FLOP], (double)(CD_FACT_FLOP % 17) - CD_FACT_INSTRUCTIONS % 17,
                 0, 1e-6);
    assert_close((double)a[CD_N_FACTS], (double)(CD_FACT_FETCHED_0 % 17) - CD_FACT_LINES % 17, 0,
                 1e-6);
    /* no count of the program */
    assert_close((double)a[CD_FACT_MAIN_TURNS], 1 + CD_FACT_MAIN_TURNS % 17, 1e-6, 0);
}

/* The last of the times are the threads that work at a time: 48 iterations on 47 cores take two
 * rounds, as on 24. */
TEST(threads_stand_behind_the_times) {
    float facts[CD_N_FACTS] = {0}, out[CD_N_ANALYTIC], one[CD_N_ANALYTIC];
    cd_device d = {.name = "made", .kind = CD_DEVICE_CPU};
    cdmpp_err err = {0};
#define X(key, low, high, unit, meaning) d.key = CD_DEVICE_UNKNOWN;
#include "features/device/device_keys.def"
    d.clock_mhz = 1000, d.l1_kb = 32, d.l2_kb = 1024, d.l3_kb = 32768, d.bandwidth_gb_s = 10,
    d.lanes = 32, d.cores = d.cores_used = 1;
    facts[CD_FACT_CORE_CYCLES] = 1e9F, facts[CD_FACT_LINES] = 1, facts[CD_FACT_WIDTH] = 64,
    facts[CD_FACT_REGIONS] = 1;
    facts[CD_FACT_REGION_1_CHUNKS] = 48, facts[CD_FACT_REGION_1_SHARE] = 1;
    assert_ok(cd_facts_input_times(CD_FACTS_OF_CPU, facts, &d, one, &err));
    assert_close((double)one[CD_N_ANALYTIC - 1], 0, 0, 1e-6);
    d.cores = d.cores_used = 47;
    assert_ok(cd_facts_input_times(CD_FACTS_OF_CPU, facts, &d, out, &err));
    assert_close((double)out[CD_N_ANALYTIC - 1], log(24), 1e-6, 0);
    /* arithmetic is shared */
    assert_close((double)one[CD_N_PRIOR] - (double)out[CD_N_PRIOR], log(24), 1e-5, 0);
}

/* Each column is of one group, and without all groups there is none. */
TEST(groups) {
    static const char *const names[] = {"traffic", "work", "cycles", "shape", "threads", "times"};
    float all[N], x[N];
    int gone[N] = {0};
    fill(1, 0, all);
    for (int g = 0; g < CD_N_FACTS_GROUP; g++) {
        assert_int_equal(cd_facts_input_group(names[g]), g);
        fill(1, 1U << g, x);
        for (size_t c = 0; c < N; c++) {
            assert_true(x[c] == 0 || x[c] == all[c]);
            gone[c] += all[c] != 0 && x[c] == 0;
        }
    }
    assert_int_equal(cd_facts_input_group("prior"), CD_N_FACTS_GROUP);
    for (size_t c = 0; c < N; c++) assert_int_equal(gone[c], all[c] != 0);
    fill(1, 1U << CD_FACTS_THREADS, x);
    assert_true(x[CD_FACT_SHARE_64] == 0 && x[CD_FACT_INEXACT] == all[CD_FACT_INEXACT] &&
                x[CD_FACT_CODE] == all[CD_FACT_CODE]);
    fill(1, 1U << CD_FACTS_CYCLES, x);
    assert_true(x[CD_FACT_CALL_CYCLES] == 0 && x[CD_FACT_WIDTH] == all[CD_FACT_WIDTH] &&
                x[CD_FACT_INSTRUCTIONS] == all[CD_FACT_INSTRUCTIONS]);
    fill(1, 1U << CD_FACTS_WORK, x);
    assert_true(x[CD_FACT_INSTRUCTIONS] == 0 && x[CD_FACT_COPY_STORES] == 0 &&
                x[CD_FACT_CORE_CYCLES] == all[CD_FACT_CORE_CYCLES]);
    fill((1U << CD_N_FACTS_GROUP) - 1, (1U << CD_N_FACTS_GROUP) - 1, x);
    for (size_t c = 0; c < N; c++) assert_true(x[c] == 0);
}

TESTS(NULL, NULL, size_stands_once, threads_stand_behind_the_times, groups)
