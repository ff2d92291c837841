/* Shares against a search through all of them, for any time curves. */
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "predictor/partition/shard/shard_ratio.h"

static cdmpp_err err;

typedef struct {
    double t[64]; /* any curve: seconds of 1 .. 63 granules */
} any_curve;

static double any_time(const void *c, double granules) {
    return ((const any_curve *)c)->t[(int)granules];
}
static double time_of(const cd_shard_ratio_device *d, uint32_t granules) {
    return granules ? d->time(d->ctx, granules) : 0;
}
static double unit(uint64_t seed, uint64_t *at) { return cd_rng_unit(seed, (*at)++); }

/* The slow truth: every share of devices i.. */
static double brute(const cd_shard_ratio_device *d, uint32_t n, uint32_t left) {
    double best = HUGE_VAL;
    if (n == 1) return time_of(d, left);
    for (uint32_t g = 0; g <= left; g++)
        best = fmin(best, fmax(time_of(d, g), brute(d + 1, n - 1, left - g)));
    return best;
}

static double plan(const cd_shard_ratio_device *d, uint32_t n, uint32_t granules, uint32_t *share) {
    double most = 0;
    uint32_t sum = 0;
    assert_ok(cd_shard_ratio_best(d, n, granules, share, &err));
    for (uint32_t i = 0; i < n; i++) {
        most = fmax(most, time_of(&d[i], share[i]));
        sum += share[i];
    }
    assert_int_equal(sum, granules);
    return most;
}

static void test_any_curves(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 600; seed++) {
        uint64_t at = 0;
        any_curve c[4];
        cd_shard_ratio_device d[4];
        uint32_t share[4];
        const uint32_t n = 1 + (uint32_t)(3.99 * unit(seed, &at));
        const uint32_t granules = 2 + (uint32_t)((n < 3 ? 60 : n == 3 ? 28 : 14) * unit(seed, &at));
        for (uint32_t i = 0; i < n; i++) {
            /* rising or not */
            for (int u = 1; u < 64; u++)
                c[i].t[u] = (0.05 + unit(seed, &at)) * (seed % 2 ? u * 0.1 : 1);
            d[i] = (cd_shard_ratio_device){any_time, &c[i]};
        }
        assert_close(plan(d, n, granules, share), brute(d, n, granules), 1e-12, 0);
    }
}

/* A device that would have to be given more than it saves gets nothing; of equals the first one
 * runs all where nothing is gained. */
static void test_do_not_split(void **state) {
    (void)state;
    any_curve flat, even;
    uint32_t share[3];
    for (int u = 0; u < 64; u++) {
        flat.t[u] = 1;
        even.t[u] = u;
    }
    const cd_shard_ratio_device same[3] = {{any_time, &flat}, {any_time, &flat}, {any_time, &flat}};
    const cd_shard_ratio_device rising[3] = {
        {any_time, &even}, {any_time, &even}, {any_time, &even}};
    for (uint32_t n = 1; n <= 3; n++) {
        assert_true(plan(same, n, 30, share) == 1);
        assert_int_equal(share[0], 30);
        assert_true(plan(rising, n, 30, share) == 30 / n);
    }
}

TESTS(NULL, NULL, test_any_curves, test_do_not_split)
