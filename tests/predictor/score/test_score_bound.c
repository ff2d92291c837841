/* Times below what a device can: where they move, with and without an interval. */
#include "predictor/score/scorer.h"

#include <math.h>

#include "check.h"

static cd_model_prediction bound(uint32_t reason, double low_s, double high_s) {
    cd_scored o = {.least_s = 1,
                   .pred = {.latency_s = 0.25,
                            .median_s = 0.3,
                            .order_s = 0.3,
                            .low_s = low_s,
                            .high_s = high_s,
                            .rel_std = isnan(low_s) ? (double)NAN : 0.4,
                            .like_std = 0.4,
                            .reason = reason}};
    cd_score_bound(&o);
    assert_true(o.model_s == 0.3 && o.pred.order_s == 0.3); /* the order stays the model's */
    assert_true(o.pred.reason == (reason | CD_UNLIKE_PEAK) && o.pred.flags & CD_MODEL_OUT_OF_RANGE);
    assert_true(o.pred.median_s == o.pred.latency_s && o.pred.like_std == 0);
    assert_true(!isnan(o.pred.low_s) == !isnan(low_s));
    assert_true(!isnan(o.pred.high_s) == !isnan(high_s));
    if (!isnan(low_s))
        assert_true(o.pred.low_s >= 1 && o.pred.low_s <= o.pred.latency_s &&
                    o.pred.latency_s <= o.pred.high_s);
    return o.pred;
}

/* In the range of training the point moves to what the device can. */
TEST(in_range) {
    assert_close(bound(0, 0.125, 0.5).latency_s, 1, 1e-12, 0);
    assert_close(bound(CD_UNLIKE_OPERATOR, NAN, NAN).latency_s, 1, 1e-12, 0);
}

/* Beyond it the point keeps its distance from the lower end, up to twice of what the device can:
 * and that much where nothing tells the lower end, as of the widest interval. That the interval is
 * unknown must not make the program faster. */
TEST(beyond_the_range) {
    assert_close(bound(CD_UNLIKE_RANGE, 0.2, 0.5).latency_s, 1.25, 1e-12, 0);
    assert_close(bound(CD_UNLIKE_RANGE, 0.01, 0.5).latency_s, 2, 1e-12, 0);
    assert_close(bound(CD_UNLIKE_RANGE, NAN, NAN).latency_s, 2, 1e-12, 0);
}

/* A time that the device can reach stays, whatever is known of it. */
TEST(above) {
    cd_scored o = {.least_s = 1,
                   .pred = {.latency_s = 2,
                            .median_s = 2.5,
                            .order_s = 2.5,
                            .low_s = NAN,
                            .high_s = NAN,
                            .rel_std = NAN,
                            .like_std = 0.4,
                            .reason = CD_UNLIKE_RANGE}};
    cd_score_bound(&o);
    assert_true(o.pred.latency_s == 2 && o.pred.median_s == 2.5 &&
                o.pred.reason == CD_UNLIKE_RANGE && o.pred.like_std == 0.4);
}

TESTS(NULL, NULL, in_range, beyond_the_range, above)
