/* label, device_name: labels of good and bad measurements, the device of a record. */
#include "features/task/task.h"

#include <string.h>

#include "check.h"

static cd_label label_of(const double *cost, uint32_t n, int64_t error_no) {
    double copy[8] = {0};
    memcpy(copy, cost, n * sizeof *cost);
    return cd_label_of(copy, n, error_no);
}

TEST(good) {
    cd_label it = label_of((const double[]){3, 1, 2}, 3, 0);
    assert_close(it.latency_s, 2, 0, 0);
    assert_close(it.mean_s, 2, 0, 0);
    assert_close(it.std_s, sqrt(2.0 / 3), 1e-15, 0);
    assert_close(it.min_s, 1, 0, 0);
    assert_int_equal(it.repeats, 3);
    it = label_of((const double[]){4, 1, 2, 100}, 4, 0);
    assert_close(it.latency_s, 3, 0, 0);
    it = label_of((const double[]){5e-6}, 1, 0);
    assert_close(it.std_s, 0, 0, 0);
    assert_int_equal(it.error, 0);
}

TEST(bad) {
    static const struct {
        double cost[2];
        uint32_t n;
        int error_no, want;
    } t[] = {{{1e10}, 1, 6, 6}, {{1e10}, 1, 0, 8}, {{1, 1e10}, 2, 0, 8},
             {{0}, 1, 0, 255},  {{0}, 0, 0, 255},  {{-1}, 1, 0, 255},
             {{1}, 1, 2, 2},    {{1}, 1, 400, 8},  {{(double)NAN}, 1, 0, 255}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const cd_label it = label_of(t[i].cost, t[i].n, t[i].error_no);
        assert_int_equal(it.error, t[i].want);
        assert_true(isnan(it.latency_s) && isnan(it.mean_s) && isnan(it.std_s) && isnan(it.min_s));
        assert_int_equal(it.repeats, 0);
    }
}

TEST(device) {
    static const struct {
        const char *target, *source, *want;
    } t[] = {{"llvm -keys=cpu -model=zen5-avx2 -x=1", "a/b/c.json", "zen5-avx2"},
             {"llvm -model=unknown", "a/b/c.json", "b"},
             {"cuda -keys=cuda,gpu", "v100/([k],cuda).json", "v100"},
             {"cuda -not-model=x", "/k80//c.json", "k80"},
             {"cuda", "c.json", "unknown"},
             {"cuda -model=", "/c.json", "unknown"}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const cd_str d = cd_device_name_of((cd_str){t[i].target, strlen(t[i].target)}, t[i].source);
        if (!cd_str_is(d, t[i].want)) print_error("%s: %.*s\n", t[i].target, (int)d.n, d.p);
        assert_true(cd_str_is(d, t[i].want));
    }
}

TESTS(NULL, NULL, good, bad, device)
