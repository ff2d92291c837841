/* convert: labels of good and bad measurements, the device rule, GPU targets. */
#include "dataset/extract/convert.h"

#include <string.h>

#include "check.h"

static cd_item label_of(const double *cost, uint32_t n, int64_t error_no) {
    double copy[8] = {0};
    cd_item it = {0};
    memcpy(copy, cost, n * sizeof *cost);
    cd_convert_label(copy, n, error_no, &it);
    return it;
}

static void good(void **state) {
    (void)state;
    cd_item it = label_of((const double[]){3, 1, 2}, 3, 0);
    assert_close(it.latency_s, 2, 0, 0);
    assert_close(it.latency_mean_s, 2, 0, 0);
    assert_close(it.latency_std_s, sqrt(2.0 / 3), 1e-15, 0);
    assert_close(it.latency_min_s, 1, 0, 0);
    assert_int_equal(it.repeats, 3);
    it = label_of((const double[]){4, 1, 2, 100}, 4, 0);
    assert_close(it.latency_s, 3, 0, 0);
    it = label_of((const double[]){5e-6}, 1, 0);
    assert_close(it.latency_std_s, 0, 0, 0);
    assert_int_equal(it.error, 0);
}

static void bad(void **state) {
    static const struct {
        double cost[2];
        uint32_t n;
        int error_no, want;
    } t[] = {{{1e10}, 1, 6, 6}, {{1e10}, 1, 0, 8}, {{1, 1e10}, 2, 0, 8}, {{0}, 1, 0, 255}, {{0}, 0, 0, 255},
             {{-1}, 1, 0, 255}, {{1}, 1, 2, 2},    {{1}, 1, 400, 8},    {{(double)NAN}, 1, 0, 255}};
    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const cd_item it = label_of(t[i].cost, t[i].n, t[i].error_no);
        assert_int_equal(it.error, t[i].want);
        assert_true(isnan(it.latency_s) && isnan(it.latency_mean_s) && isnan(it.latency_std_s) && isnan(it.latency_min_s));
        assert_int_equal(it.repeats, 0);
    }
}

static void device(void **state) {
    static const struct { const char *target, *source, *want; } t[] = {
        {"llvm -keys=cpu -model=zen5-avx2 -x=1", "a/b/c.json", "zen5-avx2"},
        {"llvm -model=unknown", "a/b/c.json", "b"},
        {"cuda -keys=cuda,gpu", "v100/([k],cuda).json", "v100"},
        {"cuda -not-model=x", "/k80//c.json", "k80"},
        {"cuda", "c.json", "unknown"},
        {"cuda -model=", "/c.json", "unknown"}};
    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const cd_str d = cd_convert_device_name((cd_str){t[i].target, strlen(t[i].target)}, t[i].source);
        if (!cd_str_is(d, t[i].want)) print_error("%s: %.*s\n", t[i].target, (int)d.n, d.p);
        assert_true(cd_str_is(d, t[i].want));
    }
}

static bool gpu(const char *s) { return cd_target_is_gpu((cd_str){s, strlen(s)}); }
static void kinds(void **state) {
    (void)state;
    assert_true(gpu("cuda") && gpu("rocm -x") && gpu("opencl -device=mali") && gpu("nvptx"));
    assert_false(gpu("llvm -keys=cpu -model=gpu") || gpu("llvm -keys=arm,gpu"));
    assert_false(gpu("cudax") || gpu(""));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(good), cmocka_unit_test(bad), cmocka_unit_test(device),
                                       cmocka_unit_test(kinds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
