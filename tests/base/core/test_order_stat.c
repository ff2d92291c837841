/* The mean of a least number: by drawing, by closed forms, by its laws. */
#include <math.h>

#include "base/core/order_stat.h"
#include "base/core/core.h"
#include "check.h"

static double normal(uint64_t seed, uint64_t i) {
    return sqrt(-2 * log(1 - cd_rng_unit(seed, 2 * i))) *
           cos(2 * M_PI * cd_rng_unit(seed, 2 * i + 1));
}

/* All numbers drawn, those kept in which `which` is the least. */
static double drawn(const double *mean, size_t n, size_t which, double sd, int tries, int *kept) {
    double sum = 0;
    *kept = 0;
    for (int t = 0; t < tries; t++) {
        double y = 0, least = INFINITY;
        for (size_t i = 0; i < n; i++) {
            const double v = mean[i] + sd * normal(7, (uint64_t)t * n + i);
            if (i == which) y = v;
            else least = fmin(least, v);
        }
        if (y < least) sum += y, (*kept)++;
    }
    return sum / *kept;
}

TEST(test_equals_drawing) {
    for (uint64_t c = 0; c < 8; c++) {
        double mean[6];
        const size_t n = 2 + c % 5, which = c % n;
        int kept;
        for (size_t i = 0; i < n; i++) mean[i] = cd_rng_unit(100 + c, i);
        const double want = drawn(mean, n, which, 0.5, 200000, &kept);
        assert_true(kept > 4000);
        assert_close(cd_order_stat_mean(mean, NULL, n, which, 0.5), want, 0, 0.02);
    }
}

/* Of two equal ones -sd/sqrt(pi); of three -3 sd/(2 sqrt(pi)). */
TEST(test_closed_forms) {
    const double mean[3] = {-12, -12, -12};
    assert_close(cd_order_stat_mean(mean, NULL, 2, 0, 0.3), -12 - 0.3 / sqrt(M_PI), 0, 1e-6);
    assert_close(cd_order_stat_mean(mean, NULL, 3, 1, 0.3), -12 - 1.5 * 0.3 / sqrt(M_PI), 0, 1e-6);
    assert_close(cd_order_stat_mean(mean, NULL, 1, 0, 0.3), -12, 0, 0);
    assert_close(cd_order_stat_mean(mean, NULL, 3, 0, 0), -12, 0, 0);
}

/* Others far above say nothing; one far below says nearly all: y is below it by sd * phi/Phi of the
 * difference. */
TEST(test_far_others) {
    const double far[2] = {0, 50}, low[2] = {0, -4};
    assert_close(cd_order_stat_mean(far, NULL, 2, 0, 1), 0, 0, 1e-9);
    const double a = 4 / sqrt(2), p = 0.5 * erfc(a * M_SQRT1_2),
                 d = exp(-a * a / 2) / sqrt(2 * M_PI);
    assert_close(cd_order_stat_mean(low, NULL, 2, 0, 1), -d / p / sqrt(2), 0, 1e-3);
}

TEST(test_laws) {
    double mean[40], moved[40], times[2] = {0, 39}, pair[2] = {-3, -3};
    for (size_t i = 0; i < 40; i++) mean[i] = -3, moved[i] = 5 + 2 * mean[i];
    double last = 0;
    for (size_t n = 1; n <= 40; n++) { /* more others: lower */
        const double now = cd_order_stat_mean(mean, NULL, n, 0, 0.4);
        assert_true(n == 1 ? now == -3 : now < last);
        last = now;
    }
    /* one that stands for 39 */
    assert_close(cd_order_stat_mean(pair, times, 2, 0, 0.4), last, 0, 1e-9);
    assert_close(cd_order_stat_mean(moved, NULL, 40, 0, 0.8), 5 + 2 * last, 0, 1e-9); /* units */
    const double below[2] = {0, -60};
    assert_true(isfinite(cd_order_stat_mean(below, NULL, 2, 0, 0.01)));
    assert_close(cd_order_stat_mean(below, NULL, 2, 0, 0.01), -30, 0, 0.05);
}

TESTS(NULL, NULL, test_equals_drawing, test_closed_forms, test_far_others, test_laws)
