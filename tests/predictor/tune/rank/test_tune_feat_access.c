/* autotvm's features of small programs, counted by hand. */
#include <math.h>

#include "check.h"
#include "features/program/program.h"
#include "prog.h"
#include "predictor/tune/rank/rank_internal.h"

static const char *const task[] = {
    /* C[i, j] = A[i, j]*2 + 1 of 8 x 4 */
    "\"ops\": [{\"name\": \"A\", \"shape\": [8, 4], \"dtype\": \"float32\"},"
    "{\"name\": \"C\", \"axis\": [[\"i\", 0, 8], [\"j\", 0, 4]], \"body\": \"A[i, j]*2.0 + 1.0\"}]",
    /* M[i, j] += A[i, k]*B[k, j] of 8 x 4 x 16 */
    "\"ops\": [{\"name\": \"A\", \"shape\": [8, 16], \"dtype\": \"float32\"},"
    "{\"name\": \"B\", \"shape\": [16, 4], \"dtype\": \"float32\"},"
    "{\"name\": \"M\", \"axis\": [[\"i\", 0, 8], [\"j\", 0, 4]], \"reduce_axis\": [[\"k\", 0, "
    "16]], \"reduce\": \"sum\","
    "\"body\": \"A[i, k]*B[k, j]\"}]",
    "\"ops\": [{\"name\": \"A\", \"shape\": [64], \"dtype\": \"float32\"},"
    "{\"name\": \"D\", \"axis\": [[\"i\", 0, 64]], \"body\": \"A[i] + A[63 - i]\"}]",
};

typedef struct {
    cd_task_registry *tasks;
    cd_arena a;
    cd_tune_feat feat;
    cd_tune_row row;
} fixture;

static int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    f = (fixture){0};
    assert_ok(prog_tasks(task, sizeof task / sizeof *task, &f.tasks, &err));
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_task_registry_free(f->tasks);
    cd_tune_feat_free(&f->feat);
    cd_tune_row_free(&f->row);
    cd_arena_free(&f->a);
    return 0;
}

static cdmpp_status read(fixture *f, size_t k, cd_tune_feat_kind kind, const char *steps) {
    cdmpp_err err = {0};
    char key[8];
    cd_record r;
    snprintf(key, sizeof key, "%zu", k);
    assert_ok(prog_record(&f->a, key, PROG_CPU, steps, &r, &err));
    const cd_tune_cand c = {
        .key = cd_record_steps_key(r.step, r.n_step), .n_step = r.n_step, .step = r.step};
    const cd_tune_task t = {.task = cd_task_registry_at(f->tasks, k),
                            .target = "llvm",
                            .hardware = r.hardware,
                            .flop = -1};
    f->row.n = 0;
    return cd_tune_feat_read(&f->feat, kind, &t, &c, &f->row, &err);
}

static double log2p(double x) { return x < 0 ? -log2(1 - x) : log2(1 + x); }

static size_t check_loop(const fixture *f, size_t at, double length, int level, double topdown,
                         double bottomup, int kind) {
    const float *v = f->row.v + at;
    assert_close((double)v[0], log2p(length), 1e-6, 0);
    assert_int_equal((int)v[1], level);
    assert_close((double)v[2], log2p(topdown), 1e-6, 0);
    assert_close((double)v[3], log2p(bottomup), 1e-6, 1e-6);
    for (int k = 0; k < CD_TUNE_LOOP_KINDS; k++) assert_int_equal((int)v[4 + k], k == kind);
    return at + 4 + CD_TUNE_LOOP_KINDS;
}

static size_t check(const fixture *f, size_t at, const double *want, size_t n) {
    for (size_t k = 0; k < n; k++)
        assert_close((double)f->row.v[at + k], log2p(want[k]), 1e-6, 1e-6);
    return at + n;
}
#define CHECK(f, at, ...)                                                                          \
    check(f, at, (const double[]){__VA_ARGS__},                                                    \
          sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static void test_element_wise(void **state) {
    fixture *f = *state;
    size_t at = CD_TUNE_FEAT_UNROLLS;
    assert_int_equal(read(f, 0, CD_TUNE_ITERVAR, "[]"), CDMPP_OK);
    at = check_loop(f, at, 8, 1, 8, 32, CD_TUNE_SERIAL);
    at = CHECK(f, at, 0, 0, 0, /* A_0 */ 4, -1, 32, 1, 0, 0, /* C_0 */ 4, -1, 32, 1, 0, 0);
    at = check_loop(f, at, 4, 2, 32, 4, CD_TUNE_SERIAL);
    at = CHECK(f, at, 1, 1, 0, 1, -1, 4, 1, 0, 0, 1, -1, 4, 1, 0, 0);
    assert_int_equal(at, f->row.n);
}

/* i in parallel, j split in 2 and 2, the inner a vector, unroll step 16: loops of extent 1 stay, a
 * border of what runs side by side lies below i. */
static void test_kinds_and_borders(void **state) {
    fixture *f = *state;
    size_t at = CD_TUNE_FEAT_UNROLLS;
    assert_int_equal(
        read(f, 0, CD_TUNE_ITERVAR,
             "[[\"SP\", 1, 0, 8, [1], 1], [\"SP\", 1, 2, 4, [2], 1], [\"AN\", 1, 0, 3], "
             "[\"AN\", 1, 3, 2], [\"PR\", 1, 0, \"auto_unroll_max_step$16\"]]"),
        CDMPP_OK);
    assert_close((double)f->row.v[0], 16, 0, 0);
    assert_close((double)f->row.v[1], 0, 0, 0);
    at = check_loop(f, at, 8, 1, 8, 32, CD_TUNE_PARALLEL);
    at = CHECK(f, at, 0, 0, 0, 4, -1, 32, 1, 8, 1, 4, -1, 32, 1, 8, 1);
    at = check_loop(f, at, 1, 2, 8, 4, CD_TUNE_SERIAL);
    at = CHECK(f, at, 0, 0, 0, 0, -1, 4, 1, 0, 0, 0, -1, 4, 1, 0, 0);
    at = check_loop(f, at, 2, 3, 16, 4, CD_TUNE_SERIAL);
    at = CHECK(f, at, 0, 0, 0, 2, -1, 4, 1, 0, 0, 2, -1, 4, 1, 0, 0);
    at = check_loop(f, at, 2, 4, 32, 2, CD_TUNE_VECTORIZED);
    at = CHECK(f, at, 1, 1, 0, 1, -1, 2, 1, 0, 0, 1, -1, 2, 1, 0, 0);
    assert_int_equal(at, f->row.n);
}

/* The sum: M_0 is the start at zero, M_1 is stored, M_2 is what it is added to. */
static void test_reuse(void **state) {
    fixture *f = *state;
    size_t at = CD_TUNE_FEAT_UNROLLS;
    assert_int_equal(read(f, 1, CD_TUNE_ITERVAR, "[]"), CDMPP_OK);
    at = check_loop(f, at, 8, 1, 8, 512, CD_TUNE_SERIAL);
    at = CHECK(f, at, 0, 0, 0, /* A */ 16, -1, 128, 4, 0, 0, /* B */ 0, -1, 64, 8, 0, 0, /* M */ 4,
               -1, 32, 1, 0, 0, 4, -1, 32, 16, 0, 0, 4, -1, 32, 16, 0, 0);
    at = check_loop(f, at, 4, 2, 32, 64, CD_TUNE_SERIAL);
    at = CHECK(f, at, 0, 0, 0, 0, -1, 16, 4, 0, 0, 1, -1, 64, 1, 0, 0, 1, -1, 4, 1, 0, 0, 1, -1, 4,
               16, 0, 0, 1, -1, 4, 16, 0, 0);
    at = check_loop(f, at, 16, 3, 512, 16, CD_TUNE_SERIAL);
    at = CHECK(f, at, 1, 1, 0, 1, -1, 16, 1, 0, 0, 4, -1, 16, 1, 0, 0, 0, -1, 1, 16, 0, 0, 0, -1, 1,
               16, 0, 0);
    assert_int_equal(at, f->row.n);
}

/* A cache of 2 x 2 tiles: its index is that of the tile, and its name comes after M's. */
static void test_cache_is_as_large_as_its_tile(void **state) {
    fixture *f = *state;
    assert_int_equal(
        read(f, 1, CD_TUNE_ITERVAR,
             "[[\"CHW\", 2, \"local\"], [\"SP\", 3, 0, 8, [2], 1], [\"SP\", 3, 2, 4, [2], 1], "
             "[\"RE\", 3, [0, 2, 1, 3]], [\"CA\", 2, 3, 1]]"),
        CDMPP_OK);
    const cd_tune_touches *t = &f->feat.touches;
    uint32_t found = 0;
    for (uint32_t k = 0; k < t->n_access; k++) {
        const cd_tune_access *c = &t->access[k];
        if (strcmp(c->name, "M.local_1") != 0) continue; /* the sum's store: loops i0 j0 | i j k */
        found++;
        assert_int_equal(c->n_raw, 1);
        assert_int_equal(c->depth, 5);
        const double stride[] = {0, 0, 2, 1, 0};
        for (uint32_t d = 0; d < 5; d++) assert_close(c->touch[d].stride, stride[d], 0, 0);
    }
    assert_int_equal(found, 1);
}

static void test_signs_of_strides(void **state) {
    fixture *f = *state;
    size_t at = CD_TUNE_FEAT_UNROLLS;
    assert_int_equal(read(f, 2, CD_TUNE_ITERVAR, "[]"), CDMPP_OK);
    at = check_loop(f, at, 64, 1, 64, 64, CD_TUNE_SERIAL);
    at = CHECK(f, at, 1, 0, 0, 1, -1, 64, 1, 0, 0, -1, -1, 64, 1, 0, 0, 1, -1, 64, 1, 0, 0);
    assert_int_equal(at, f->row.n);
}

/* Of the element-wise program: count 2, 5 over topdown 3, 5 (all log2), reuse 0 everywhere. */
static void test_curves(void **state) {
    fixture *f = *state;
    const double count[] = {0, 2, 5}, topdown[] = {0, 3, 5}, zero[] = {0, 0, 0};
    const double *const pair[4][2] = {
        {count, zero}, {zero, count}, {count, topdown}, {topdown, count}};
    assert_int_equal(read(f, 0, CD_TUNE_CURVE, "[]"), CDMPP_OK);
    assert_int_equal(f->row.n, CD_TUNE_FEAT_UNROLLS + 2 * 4 * 2 * CD_TUNE_CURVE_POINTS);
    for (int b = 0; b < 2; b++)
        for (int p = 0; p < 4; p++)
            for (int i = 0; i < CD_TUNE_CURVE_POINTS; i++) {
                int j = 2;
                while (j && pair[p][0][j] > i) j--;
                const float *v =
                    f->row.v + CD_TUNE_FEAT_UNROLLS + 2 * ((b * 4 + p) * CD_TUNE_CURVE_POINTS + i);
                assert_close((double)v[0], pair[p][1][j], 1e-6, 1e-6);
                assert_close((double)v[1], i - pair[p][0][j], 1e-6, 1e-6);
            }
}

static void test_knobs_keep_their_columns(void **state) {
    fixture *f = *state;
    assert_int_equal(
        read(f, 0, CD_TUNE_KNOB,
             "[[\"SP\", 1, 0, 8, [2, 4], 1], [\"PR\", 1, 0, \"auto_unroll_max_step$64\"]]"),
        CDMPP_OK);
    assert_int_equal(f->row.n, 3);
    assert_close((double)f->row.v[0], 2, 0, 0);
    assert_close((double)f->row.v[1], 4, 0, 0);
    assert_close((double)f->row.v[2], 64, 0, 0);
    assert_int_equal(read(f, 0, CD_TUNE_KNOB,
                          "[[\"PR\", 1, 0, \"auto_unroll_max_step$16\"], [\"AN\", 1, 0, 3]]"),
                     CDMPP_OK);
    assert_int_equal(f->row.n, 4); /* no split; a new knob */
    assert_close((double)f->row.v[0], 0, 0, 0);
    assert_close((double)f->row.v[2], 16, 0, 0);
    assert_close((double)f->row.v[3], 3, 0, 0);
    assert_int_equal(read(f, 0, CD_TUNE_KNOB, "[]"), CDMPP_OK);
    assert_int_equal(f->row.n, 1);
}

static void test_no_program(void **state) {
    fixture *f = *state;
    static const char bad[] = "[[\"SP\", 1, 7, 8, [2], 1]]";
    assert_int_equal(read(f, 0, CD_TUNE_STORE, bad), CDMPP_EREJECTED);
    assert_int_equal(read(f, 0, CD_TUNE_ITERVAR, bad), CDMPP_EREJECTED);
    assert_int_equal(f->row.n, 0);
    assert_int_equal(read(f, 0, CD_TUNE_STORE, "[]"), CDMPP_OK);
    assert_int_equal(f->row.n, CD_N_COL);
}

TESTS(up, down, test_element_wise, test_kinds_and_borders, test_reuse,
      test_cache_is_as_large_as_its_tile, test_signs_of_strides, test_curves,
      test_knobs_keep_their_columns, test_no_program)
