/* Facts of GPU programs: one by hand, laws that hold whatever the schedule, what is refused,
 * memory. */
#include <math.h>
#include <stdlib.h>

#include "facts_checks.h"

typedef struct {
    int fact;
    double value;
} wanted;

static void check_facts(const float *x, const wanted *is, size_t n) {
    for (size_t k = 0; k < n; k++)
        if (fabs(fact_at(x, is[k].fact) - is[k].value) > 1e-6)
            fail_msg("%s is %g, not %g",
                     is[k].fact < CD_N_GPU_FACTS ? cd_facts_cols(CD_FACTS_OF_GPU)[is[k].fact].name
                                                 : "",
                     fact_at(x, is[k].fact), is[k].value);
}

/* T[i, j] = A[j, i] + 1, 48 x 32, as 24 blocks of 64 threads: two rows of T a block, each thread
 * reads another row of A. */
static void test_example(void **state) {
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_facts *f;
    cd_nest nest;
    float x[CD_N_FACTS];
    assert_ok(cd_facts_new(&f, &err));
    facts_lower(*state, MADE_F_TRANSPOSE, PROG_GPU,
                "[[\"FU\", 1, [0, 1]], [\"SP\", 1, 0, 1536, [64], 1], [\"AN\", 1, 0, 5], [\"AN\", "
                "1, 1, 6]]",
                &a, &nest);
    assert_int_equal(cd_facts_set_of_nest(&nest), CD_FACTS_OF_GPU);
    assert_ok(cd_facts_of(f, CD_FACTS_OF_GPU, &nest, x, &err));
    const wanted is[] = {
        {CD_GPU_FACT_KERNELS, 1},
        {CD_GPU_FACT_BLOCKS, 24},
        {CD_GPU_FACT_BLOCKS_ALL, 24},
        {CD_GPU_FACT_STEP_1, 24 * 32},
        {CD_GPU_FACT_STEP_16, 128 * 1.5},
        {CD_GPU_FACT_THREADS, 64},
        {CD_GPU_FACT_THREADS_ALL, 1536},
        {CD_GPU_FACT_VTHREADS, 1},
        {CD_GPU_FACT_LANES_32, 1},
        {CD_GPU_FACT_LANES_64, 1},
        {CD_GPU_FACT_SHARED_BYTES, 0},
        {CD_GPU_FACT_ACCUMULATORS, 0},
        {CD_GPU_FACT_FLOP, 1536},
        {CD_GPU_FACT_GLOBAL_LOADS, 1536},
        {CD_GPU_FACT_GLOBAL_STORES, 1536},
        {CD_GPU_FACT_LOAD_INSTRUCTIONS, 1536},
        {CD_GPU_FACT_STORE_INSTRUCTIONS, 1536},
        /* 32 rows of A for either warp, where the other one's elements lie beside; T in a
               * row */
        {CD_GPU_FACT_LOAD_SECTORS_32, 24 * 64},
        {CD_GPU_FACT_LOAD_SECTORS_64, 24 * 32},
        {CD_GPU_FACT_STORE_SECTORS_32, 24 * 8},
        /* 4 blocks have 8 neighbours of each row: a sector */
        {CD_GPU_FACT_GROUP_1, 24 * 32},
        {CD_GPU_FACT_GROUP_4, 6 * 32},
        {CD_GPU_FACT_GROUP_1024, 192},
        {CD_GPU_FACT_SECTORS_LOADED, 192},
        {CD_GPU_FACT_SECTORS_STORED, 192},
        {CD_GPU_FACT_SECTORS_SCRATCH, 0},
        {CD_GPU_FACT_LOAD_SPREAD_32, 8},
        {CD_GPU_FACT_LOAD_SPREAD_64, 4},
        {CD_GPU_FACT_STORE_SPREAD_32, 1},
        {CD_GPU_FACT_ACTIVE, 1},
        {CD_GPU_FACT_PHASES, 1},
        {CD_GPU_FACT_SYNCS, 0},
        {CD_GPU_FACT_CHAIN, 0},
        {CD_GPU_FACT_LOOP_TURNS, 0},
        {CD_GPU_FACT_MAIN_SHARE, 1},
        {CD_GPU_FACT_INEXACT, 0},
        {CD_N_GPU_FACTS, 0},
        {CD_N_FACTS - 1, 0}};
    check_facts(x, is, sizeof is / sizeof *is);
    assert_true(fact_at(x, CD_GPU_FACT_REGISTERS) >= 16 && fact_at(x, CD_GPU_FACT_REGISTERS) < 24);
    cd_facts_free(f);
    cd_arena_free(&a);
}

/* What both warps of a wavefront touch counts once for it and once for each of them. A product as 4
 * blocks of 8 x 16 threads: a warp has 2 rows of 16 columns, and so 2 sectors of A, 2 of B, 4 of C.
 * A row over its sum as a block of 48 threads: 6 sectors of the row, the one of the sum for either
 * warp; before it a kernel of single threads. */
static void test_halves(void **state) {
    const struct {
        size_t task;
        const char *steps;
        double narrow, wide; /* loads of a warp, of a wavefront */
    } row[] = {{MADE_F_MATMUL,
                "[[\"SP\", 2, 0, 16, [8], 1], [\"SP\", 2, 2, 32, [16], 1], [\"RE\", 2, [0, 2, 1, "
                "3, 4]], [\"AN\", 2, 0, 7], [\"AN\", 2, 1, 5], "
                "[\"AN\", 2, 2, 8], [\"AN\", 2, 3, 6]]",
                4 * 4 * (24 * (2 + 2) + 4), 4 * 2 * (24 * (4 + 2) + 8)},
               {MADE_F_NORM, "[[\"AN\", 1, 0, 5], [\"AN\", 2, 0, 5], [\"AN\", 2, 1, 6]]",
                24 * (49 + 6 + 2), 24 * (49 + 6 + 1)}};
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_facts *f;
    assert_ok(cd_facts_new(&f, &err));
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        cd_nest nest;
        float x[CD_N_FACTS];
        facts_lower(*state, row[k].task, PROG_GPU, row[k].steps, &a, &nest);
        assert_ok(cd_facts_gpu(f, &nest, x, &err));
        const wanted is[] = {{CD_GPU_FACT_LOAD_SECTORS_32, row[k].narrow},
                             {CD_GPU_FACT_LOAD_SECTORS_64, row[k].wide}};
        check_facts(x, is, sizeof is / sizeof *is);
    }
    cd_facts_free(f);
    cd_arena_free(&a);
}

/* Threads with 12 sums for each of 10 x 24 elements of a tile in registers, which a compiler writes
 * out: 2880 copies. Of 20 x 24 elements it would be 5760, and the outer loop stays: it indexes the
 * tile, so it is in memory, where each sum is a load and a store, and each zero a store. */
static void test_copies(void **state) {
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_facts *f;
    cd_nest nest;
    float x[CD_N_FACTS];
    assert_ok(cd_facts_new(&f, &err));
    facts_lower(*state, MADE_F_MATMUL_RELU, PROG_GPU,
                "[[\"SP\", 3, 0, 20, [10], 1], [\"CA\", 2, 3, 0], [\"AN\", 3, 0, 6]]", &a, &nest);
    assert_ok(cd_facts_of(f, CD_FACTS_OF_GPU, &nest, x, &err));
    const wanted few[] = {{CD_GPU_FACT_THREADS, 2},
                          {CD_GPU_FACT_ACCUMULATORS, 240},
                          {CD_GPU_FACT_LOCAL_ACCESSES, 0},
                          {CD_GPU_FACT_LOOP_TURNS, 0}};
    check_facts(x, few, sizeof few / sizeof *few);
    facts_lower(*state, MADE_F_MATMUL_RELU, PROG_GPU,
                "[[\"SP\", 3, 0, 20, [20], 1], [\"CA\", 2, 3, 0], [\"AN\", 3, 0, 6]]", &a, &nest);
    assert_ok(cd_facts_of(f, CD_FACTS_OF_GPU, &nest, x, &err));
    const wanted many[] = {{CD_GPU_FACT_THREADS, 1},
                           {CD_GPU_FACT_ACCUMULATORS, 480},
                           {CD_GPU_FACT_LOCAL_ACCESSES, 2 * 5760 + 480},
                           {CD_GPU_FACT_LOOP_TURNS, 20}};
    check_facts(x, many, sizeof many / sizeof *many);
    cd_facts_free(f);
    cd_arena_free(&a);
}

/* ---- laws ---- */

typedef struct {
    cd_facts *f;
    /* operations; elements that are written. 0: not the same in all programs */
    double flop, out;
    size_t n, shared;
} laws;

static void check_memory(const float *x) {
    const double more = 1.00001;
    for (int k = 1; k < CD_N_GPU_FACT_GROUP; k++)
        assert_true(fact_at(x, CD_GPU_FACT_GROUP_1 + k) <=
                    fact_at(x, CD_GPU_FACT_GROUP_1 + k - 1) * more);
    assert_true(fact_at(x, CD_GPU_FACT_GROUP_4096) * more >=
                fact_at(x, CD_GPU_FACT_SECTORS_LOADED));
    for (int k = 0; k < 2; k++) {
        const int wide = k ? CD_GPU_FACT_STORE_SECTORS_64 : CD_GPU_FACT_LOAD_SECTORS_64,
                  narrow = k ? CD_GPU_FACT_STORE_SECTORS_32 : CD_GPU_FACT_LOAD_SECTORS_32;
        assert_true(fact_at(x, wide) <= fact_at(x, narrow) * more &&
                    2 * fact_at(x, wide) * more >= fact_at(x, narrow));
    }
    assert_true(fact_at(x, CD_GPU_FACT_WARPS_64) <= fact_at(x, CD_GPU_FACT_WARPS_32) * more &&
                2 * fact_at(x, CD_GPU_FACT_WARPS_64) * more >= fact_at(x, CD_GPU_FACT_WARPS_32));
    assert_true(fact_at(x, CD_GPU_FACT_ACTIVE) <= more && fact_at(x, CD_GPU_FACT_LANES_32) <= 1 &&
                fact_at(x, CD_GPU_FACT_LANES_64) <= fact_at(x, CD_GPU_FACT_LANES_32));
    if (fact_at(x, CD_GPU_FACT_SHARED_BYTES) > 0)
        assert_true(fact_at(x, CD_GPU_FACT_SYNCS) >= 1 &&
                    fact_at(x, CD_GPU_FACT_SHARED_LOADS) > 0 &&
                    fact_at(x, CD_GPU_FACT_SHARED_STORES) > 0);
}

static void one(void *ctx, const cd_nest *nest) {
    laws *l = ctx;
    float x[CD_N_FACTS];
    facts_twice(l->f, CD_FACTS_OF_GPU, nest, x);
    check_memory(x);
    /* where no thread of the last block has nothing to do */
    if (l->flop > 0 && fact_at(x, CD_GPU_FACT_BRANCHES) <= 0)
        assert_close(fact_at(x, CD_GPU_FACT_FLOP), l->flop, 1e-6, 0);
    if (l->out > 0 && fact_at(x, CD_GPU_FACT_BRANCHES) <= 0)
        assert_close(fact_at(x, CD_GPU_FACT_GLOBAL_STORES), l->out, 1e-6, 0);
    if (fact_at(x, CD_GPU_FACT_KERNELS) <= 1)
        assert_close(fact_at(x, CD_GPU_FACT_THREADS_ALL),
                     fact_at(x, CD_GPU_FACT_BLOCKS_ALL) * fact_at(x, CD_GPU_FACT_THREADS), 1e-6, 0);
    for (int k = 0; k < 4; k++)
        assert_true(fact_at(x, CD_GPU_FACT_STEP_1 + k) * 1.00001 >=
                    fact_at(x, CD_GPU_FACT_GROUP_1 + 2 * k));
    l->shared += fact_at(x, CD_GPU_FACT_SHARED_BYTES) > 0;
    l->n++;
}

/* Operations and results do not depend on the schedule, wider warps and larger groups share more,
 * the same program gives the same bits. */
static void test_laws(void **state) {
    static const struct {
        size_t task;
        double flop, out;
    } row[] = {{MADE_F_MATMUL, 2 * 16 * 32 * 24, 16 * 32},
               {MADE_F_MATMUL_RELU, 2 * 20 * 24 * 12 + 20 * 24, 20 * 24},
               {MADE_F_CONV, 0, 64 * 16},
               {MADE_F_DEPTHWISE, 2 * 25 * 16 * 9 + 25 * 16, 25 * 16},
               {MADE_F_TRANSPOSE, 48 * 32, 48 * 32},
               {MADE_F_BATCH, 2 * 4 * 16 * 16 * 16, 1024},
               {MADE_F_NORM, 0, 0},
               {MADE_F_STENCIL, 2 * 640, 640},
               {MADE_F_FLAT, 384, 384}};
    cdmpp_err err = {0};
    laws l = {0};
    assert_ok(cd_facts_new(&l.f, &err));
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        l.flop = row[k].flop;
        l.out = row[k].out;
        made_facts_draws(*state, row[k].task, true, 60, one, &l);
    }
    if (getenv("CD_SHOW")) printf("%zu programs, %zu with shared memory\n", l.n, l.shared);
    assert_true(l.n > 150 && l.shared > 20);
    cd_facts_free(l.f);
}

/* ---- refused ---- */

static void test_refused(void **state) {
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_facts *f;
    cd_nest nest;
    float x[CD_N_FACTS];
    assert_ok(cd_facts_new(&f, &err));
    facts_lower(*state, MADE_F_TRANSPOSE, PROG_CPU, "[]", &a, &nest);
    assert_int_equal(cd_facts_set_of_nest(&nest), CD_FACTS_OF_CPU);
    assert_status(cd_facts_gpu(f, &nest, x, &err), CDMPP_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "thread axes"));
    assert_ok(cd_facts_of(f, CD_FACTS_OF_CPU, &nest, x, &err));
    facts_lower(*state, MADE_F_TRANSPOSE, PROG_GPU, "[[\"AN\", 1, 0, 5], [\"AN\", 1, 1, 6]]", &a,
                &nest);
    assert_ok(cd_facts_gpu(f, &nest, x, &err));
    assert_status(cd_facts_cpu(f, &nest, x, &err), CDMPP_EUNSUPPORTED);
    cd_ast t = facts_copy(&a, nest.ast);
    nest.ast = &t;
    int32_t axis = 0;
    while (t.node[axis].kind != CD_AST_THREAD) axis++;
    t.node[axis].extent_e = t.node[axis].var;
    assert_status(cd_facts_gpu(f, &nest, x, &err), CDMPP_EUNSUPPORTED);
    t.node[axis] = nest.ast->node[axis];
    /* nothing is left of the kernel's head */
    for (int32_t k = 0; k < t.n; k++)
        t.node[k].dead = t.node[k].dead || t.node[k].kind == CD_AST_THREAD;
    assert_status(cd_facts_gpu(f, &nest, x, &err), CDMPP_EUNSUPPORTED);
    cd_facts_free(f);
    cd_arena_free(&a);
}

TEST(odd_tasks) { facts_odd_tasks(CD_FACTS_OF_GPU); }

/* ---- memory ---- */

static void test_no_heap_after_warm_up(void **state) { facts_no_heap(*state, CD_FACTS_OF_GPU); }

static void test_faults(void **state) {
    facts_faults(*state, CD_FACTS_OF_GPU, MADE_F_TRANSPOSE,
                 "[[\"AN\", 1, 0, 5], [\"AN\", 1, 1, 6]]");
}

TESTS(made_facts_up, made_facts_down, test_example, test_halves, test_copies, test_laws,
      test_refused, odd_tasks, test_no_heap_after_warm_up, test_faults)
