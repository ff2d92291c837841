/* Ratios of a sweep when the machine is not quiet: the base is measured round every few variants,
 * by a made-up meter. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "profiler/records/schedule_sweep_internal.h"

typedef struct {
    double base_s[64]; /* (64) of each measurement of the base */
    unsigned n_base, n_variant;
    bool fails;
} machine;

static void put(cd_measure_result *out, double seconds) {
    *out = (cd_measure_result){.time = {.median_s = seconds, .ci = 0.01}};
}

static cdmpp_status base(void *ctx, cd_measure_result *out, cdmpp_err *err) {
    machine *m = ctx;
    (void)err;
    put(out, m->base_s[m->n_base++]);
    if (m->fails) *out = (cd_measure_result){.status = CDMPP_EBACKEND, .error_no = 4};
    return CDMPP_OK;
}

/* All variants take 2 s. */
static cdmpp_status variant(void *ctx, size_t k, cd_measure_result *out, cdmpp_err *err) {
    machine *m = ctx;
    (void)k, (void)err;
    m->n_variant++;
    put(out, 2);
    return CDMPP_OK;
}

static machine quiet(void) {
    machine m = {0};
    for (size_t i = 0; i < 64; i++) m.base_s[i] = 1;
    return m;
}

static void sweep(machine *m, cd_schedule_sweep_row *row, size_t n, cd_schedule_sweep_base *b) {
    cdmpp_err err = {0};
    memset(row, 0, n * sizeof *row);
    *b = (cd_schedule_sweep_base){0};
    assert_ok(
        cd_schedule_sweep_frames(&(cd_schedule_sweep_meter){m, base, variant}, row, n, b, &err));
}

static void test_quiet(void **state) {
    (void)state;
    machine m = quiet();
    static cd_schedule_sweep_row row[20];
    cd_schedule_sweep_base b;
    sweep(&m, row, 20, &b);
    assert_int_equal(b.n, 4); /* three frames */
    assert_int_equal(m.n_variant, 20);
    for (int i = 0; i < 20; i++) {
        assert_close(row[i].ratio, 2, 1e-12, 0);
        assert_true(row[i].ratio_low < 2 && row[i].ratio_low > 1.9 && row[i].ratio_high > 2 &&
                    row[i].ratio_high < 2.1 && !row[i].disturbed);
    }
}

/* The first measurement of the base is twice as long: the frame behind it is measured again, and no
 * ratio is half of what it should be. */
static void test_disturbed_once(void **state) {
    (void)state;
    machine m = quiet();
    static cd_schedule_sweep_row row[20];
    cd_schedule_sweep_base b;
    m.base_s[0] = 2;
    sweep(&m, row, 20, &b);
    assert_int_equal(b.n, 5);
    assert_int_equal(m.n_variant, 28);
    assert_true(b.low_s == 1 && b.high_s == 2);
    for (int i = 0; i < 20; i++) assert_true(fabs(row[i].ratio - 2) < 1e-9 && !row[i].disturbed);
}

/* Never quiet: the ratios are marked, and their intervals hold both bases. */
static void test_always_disturbed(void **state) {
    (void)state;
    machine m = quiet();
    static cd_schedule_sweep_row row[4];
    cd_schedule_sweep_base b;
    for (size_t i = 0; i < 64; i += 2) m.base_s[i] = 2;
    sweep(&m, row, 4, &b);
    for (int i = 0; i < 4; i++)
        assert_true(row[i].disturbed && row[i].ratio_low < 1 && row[i].ratio_high > 2);
    assert_true(m.n_variant > 4 && m.n_variant < 40);
}

/* The base is equally slow before and behind a frame: what it took at other times tells. */
static void test_slow_for_long(void **state) {
    (void)state;
    machine m = quiet();
    static cd_schedule_sweep_row row[16];
    cd_schedule_sweep_base b;
    for (size_t i = 0; i < 2; i++) m.base_s[i] = 5;
    sweep(&m, row, 16, &b);
    cd_schedule_sweep_mark(row, 16, &b);
    for (int i = 0; i < 8; i++) assert_true(row[i].disturbed);
    for (int i = 8; i < 16; i++) assert_true(!row[i].disturbed && fabs(row[i].ratio - 2) < 1e-9);
}

static void test_base_fails(void **state) {
    (void)state;
    machine m = quiet();
    static cd_schedule_sweep_row row[10];
    cd_schedule_sweep_base b;
    m.fails = true;
    sweep(&m, row, 10, &b);
    assert_int_equal(b.n, 0);
    assert_int_equal(m.n_variant, 10);
    for (int i = 0; i < 10; i++)
        assert_true(row[i].ratio == 0 && isnan(row[i].ratio_low) && isnan(row[i].ratio_high) &&
                    row[i].out.time.median_s == 2);
}

/* The marks are printed. */
static void test_printed(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_variant v[2] = {{.factor = CD_VARY_BASE, .value = "base"},
                       {.factor = CD_VARY_UNROLL, .value = "16"}};
    cd_schedule_sweep_row row[2] = {
        {.v = &v[0], .ratio = 1, .ratio_low = 1, .ratio_high = 1},
        {.v = &v[1], .ratio = 2, .ratio_low = 1, .ratio_high = 3, .disturbed = true}};
    cd_schedule_sweep s = {.row = row,
                           .n = 2,
                           .measured = {.n = 3, .low_s = 1e-3, .high_s = 2e-3},
                           .base = {.workload_key = {"k", 1}}};
    cd_buf b = {0};
    assert_ok(cd_schedule_sweep_text(&b, &s, &err));
    assert_ok(cd_schedule_sweep_csv(&b, &s, &err));
    assert_ok(cd_schedule_sweep_json(&b, &s, &err));
    cd_buf_put(&b, "", 1);
    assert_non_null(strstr(b.p, "base 1.0000 to 2.0000 ms, measured 3 times"));
    assert_non_null(strstr(b.p, "2.000? 16"));
    assert_non_null(strstr(b.p, ",2,0,1,3,1\n"));
    assert_non_null(strstr(b.p, "\"disturbed\":true"));
    cd_buf_free(&b);
}

TESTS(NULL, NULL, test_quiet, test_disturbed_once, test_always_disturbed, test_slow_for_long,
      test_base_fails, test_printed)
