/* Ranges: which sizes are estimated, which are told, and by what. Networks themselves:
 * tests/cli/cases/replay_range. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "predictor/network_estimate/network_estimate_internal.h"

static cdmpp_err err;

static cdmpp_status sizes(cd_network_estimate *e, cd_network_estimate_options *o, const char *batch,
                          const char *dim, const char *more) {
    static const char *text[2];
    *o = cd_network_estimate_defaults();
    o->batch = batch;
    text[0] = dim, text[1] = more;
    o->dim = (cd_texts){(size_t)(dim != NULL) + (size_t)(more != NULL), text};
    memset(e, 0, sizeof *e);
    e->o = o;
    return cd_network_estimate_sizes(e, &err);
}

static void are(const cd_network_estimate *e, const int64_t *want, size_t n) {
    assert_int_equal(e->n_size, n);
    for (size_t k = 0; k < n; k++) assert_int_equal(e->size[k], want[k]);
}

static void test_sizes(void **state) {
    cd_network_estimate e;
    cd_network_estimate_options o;
    (void)state;
    assert_ok(sizes(&e, &o, "1..64", NULL, NULL));
    are(&e, (const int64_t[]){1, 3, 8, 23, 64}, 5);
    assert_string_equal(e.over, "batch");
    assert_true(e.n_batch == 5 && e.batch[4] == 64 && e.range_dim == SIZE_MAX);
    cd_arena_free(&e.arena);
    assert_ok(sizes(&e, &o, "2..4:64", NULL, NULL)); /* each size once */
    are(&e, (const int64_t[]){2, 3, 4}, 3);
    cd_arena_free(&e.arena);
    assert_ok(sizes(&e, &o, "4,1,4", NULL, NULL)); /* a list, each once */
    assert_true(!e.over && e.n_batch == 2 && e.batch[0] == 4 && e.batch[1] == 1);
    cd_arena_free(&e.arena);
}

static void test_dimension(void **state) {
    cd_network_estimate e;
    cd_network_estimate_options o;
    cd_network_estimate_source s = {.size = 91};
    cd_onnx_options onnx = {0};
    (void)state;
    assert_ok(sizes(&e, &o, "4", "a=3", "ids[1]=16..512:3"));
    are(&e, (const int64_t[]){16, 91, 512}, 3);
    assert_string_equal(e.over, "ids[1]");
    assert_true(e.n_batch == 1 && e.batch[0] == 4 && e.range_dim == 1);
    onnx.dim = o.dim.v;
    assert_ok(cd_network_estimate_dims(&e, &s, &onnx, &err));
    assert_string_equal(onnx.dim[0], "a=3");
    assert_string_equal(onnx.dim[1], "ids[1]=91");
    cd_arena_free(&e.arena);
    assert_ok(sizes(&e, &o, NULL, "a=3", NULL)); /* no range: the options as they are */
    assert_true(!e.over && !e.n_size && e.n_batch == 1 && !e.batch[0]);
    onnx.dim = o.dim.v;
    assert_ok(cd_network_estimate_dims(&e, &s, &onnx, &err));
    assert_ptr_equal(onnx.dim, o.dim.v);
    cd_arena_free(&e.arena);
}

static void test_refused(void **state) {
    cd_network_estimate e;
    cd_network_estimate_options o;
    (void)state;
    static const char *const bad[][3] = {
        {"1..2"},     {"0..9"},          {"9..1"},           {"1..64:2"},
        {"1..64:65"}, {"1..1048577"},    {"1..64:"},         {"1..64,9"},
        {","},        {"1,2", "n=1..9"}, {"1..9", "n=1..9"}, {NULL, "n=1..9", "m=1..9"}};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        assert_status(sizes(&e, &o, bad[k][0], bad[k][1], bad[k][2]), CDMPP_EUSAGE);
        cd_arena_free(&e.arena);
    }
}

/* Estimated sizes keep their estimates; between them is the law, and beside an interval that holds
 * it. */
static void test_between(void **state) {
    cd_network_estimate e;
    cd_network_estimate_options o;
    int64_t size[] = {1, 3, 8, 23, 64}, at = 0;
    double x[5], s[5], low[5], high[5], v, from, to;
    bool estimated;
    (void)state;
    assert_ok(sizes(&e, &o, "1..64", NULL, NULL));
    for (int k = 0; k < 5; k++)
        x[k] = (double)size[k], s[k] = 1 + 2 * x[k], low[k] = 0.5 + x[k], high[k] = 2 + 4 * x[k];
    cd_network_estimate_curve c = {
        .n = 5, .size = size, .seconds = s, .low_s = low, .high_s = high};
    assert_ok(cd_perf_curve_fit(x, s, 5, NULL, &c.law, &err));
    assert_ok(cd_perf_curve_fit(x, low, 5, NULL, &c.low, &err));
    assert_ok(cd_perf_curve_fit(x, high, 5, NULL, &c.high, &err));
    static const int64_t shown[] = {1, 2, 3, 4, 8, 16, 23, 32, 64};
    for (size_t k = 0; k < 9; k++) {
        at = cd_network_estimate_curve_next(&e, at);
        assert_int_equal(at, shown[k]);
        cd_network_estimate_curve_at(&c, at, &v, &from, &to, &estimated);
        assert_true(estimated == (at != 2 && at != 4 && at != 16 && at != 32));
        assert_close(v, 1 + 2 * (double)at, 1e-6, 0);
        assert_close(from, 0.5 + (double)at, 1e-6, 0);
        assert_close(to, 2 + 4 * (double)at, 1e-6, 0);
    }
    assert_int_equal(cd_network_estimate_curve_next(&e, at), 0);
    s[1] = 100; /* an estimate that the law does not follow stays */
    cd_network_estimate_curve_at(&c, 3, &v, &from, &to, &estimated);
    assert_true(estimated && v == 100);
    /* of that size nothing tells: its time stays, and the law of times */
    low[4] = high[4] = (double)NAN;
    cd_network_estimate_curve_at(&c, 64, &v, &from, &to, &estimated);
    assert_true(estimated && v == s[4] && isnan(from) && isnan(to));
    cd_network_estimate_curve_at(&c, 23, &v, &from, &to, &estimated);
    assert_true(estimated && from == low[3] && to == high[3]);
    cd_network_estimate_curve_at(&c, 32, &v, &from, &to, &estimated);
    assert_close(v, 65, 1e-6, 0);
    assert_true(!estimated && isnan(from) && isnan(to));
    cd_perf_curve_free(&c.law);
    cd_perf_curve_free(&c.low);
    cd_perf_curve_free(&c.high);
    cd_arena_free(&e.arena);
}

/* Estimates of which one has no interval have a law of their times all the same. */
static void test_a_size_without_an_interval(void **state) {
    (void)state;
    enum { N = 5 };
    static const int64_t size[N] = {1, 3, 8, 23, 64};
    cd_network_estimate_options o;
    cd_network_estimate_device device = {.name = "chip"};
    cd_network_estimate_source source[N] = {{0}};
    cd_network_estimate_case item[N] = {{0}};
    cd_network_estimate e;
    double v, from, to;
    bool estimated;
    assert_ok(sizes(&e, &o, "1..64", NULL, NULL));
    for (size_t k = 0; k < N; k++) {
        const double s = 1 + 2 * (double)size[k];
        source[k] =
            (cd_network_estimate_source){.given = "net", .asked_for = true, .asked = size[k]};
        item[k] = (cd_network_estimate_case){.source = &source[k],
                                             .device = &device,
                                             .replay.makespan_s = s,
                                             .interval = {.low_s = k == 4 ? (double)NAN : s / 2,
                                                          .high_s = k == 4 ? (double)NAN : s * 2}};
    }
    e.item = item, e.n_item = N;
    assert_ok(cd_network_estimate_curves(&e, &err));
    assert_int_equal(e.n_curve, 1);
    assert_int_equal(e.curve[0].st, CDMPP_OK);
    cd_network_estimate_curve_at(&e.curve[0], 16, &v, &from, &to, &estimated);
    assert_close(v, 33, 1e-6, 0);
    assert_true(!estimated && isnan(from) && isnan(to));
    cd_network_estimate_curve_at(&e.curve[0], 8, &v, &from, &to, &estimated);
    assert_true(estimated && v == 17 && from == 8.5 && to == 34);
    cd_perf_curve_free(&e.curve[0].law);
    cd_arena_free(&e.arena);
}

TESTS(NULL, NULL, test_sizes, test_dimension, test_refused, test_between,
      test_a_size_without_an_interval)
