/* novelty: what values held out tell of one more value, by hand and on drawn data whose truth is
 * known. */
#include "learner/operators/novelty.h"
#include "check.h"
#include "fault.h"

#include <math.h>

/* Two values, three rows each: means 0.3 and -0.1, rows 0.1 around them. t of 2 degrees of freedom
 * at 0.95 is 2.92. */
TEST(by_hand) {
    cd_novelty_residual r[] = {{7, 0.3}, {9, -0.2}, {7, 0.4}, {9, -0.1}, {7, 0.2}, {9, 0}};
    cd_novelty v;
    cdmpp_err err = {0};
    assert_ok(cd_novelty_fit(r, 6, &v, &err));
    assert_int_equal(v.n_value, 2);
    assert_int_equal(v.n_row, 6);
    assert_close(v.between, sqrt((0.09 + 0.01) / 2), 1e-12, 0);
    assert_close(v.rest[0], 0.1, 1e-9, 0); /* of 0, 0, 0.1, 0.1, 0.1, 0.1 */
    assert_close(v.rest[4], 0.1, 1e-9, 0);
    assert_close(cd_novelty_half(&v, 0.9), hypot(0.1, 2.91999 * sqrt(0.05)), 1e-4, 0);
    assert_close(cd_novelty_half(&v, 0.25), hypot(0.05, 0.365148 * sqrt(0.05)), 1e-4, 0);
}

/* A value of a thousand rows is one draw, as one of ten is. */
TEST(a_value_counts_once) {
    enum { MANY = 1000, FEW = 10 };
    static cd_novelty_residual r[MANY + FEW];
    cd_novelty v;
    cdmpp_err err = {0};
    for (size_t i = 0; i < MANY + FEW; i++)
        r[i] = (cd_novelty_residual){i < MANY, i < MANY ? 0.1 : 0.7};
    assert_ok(cd_novelty_fit(r, MANY + FEW, &v, &err));
    assert_close(v.between, sqrt((0.01 + 0.49) / 2), 1e-9, 0);
    for (size_t i = 0; i < MANY; i++) r[i] = (cd_novelty_residual){1, i % 2 ? 0.1 : -0.1};
    for (size_t i = 0; i < FEW; i++) r[MANY + i] = (cd_novelty_residual){2, i % 2 ? 0.9 : -0.9};
    assert_ok(cd_novelty_fit(r, MANY + FEW, &v, &err));
    assert_close(v.rest[0], 0.1, 1e-9, 0);
    assert_close(v.rest[1], 0.9, 1e-9, 0); /* half of the weight has it */
}

TEST(too_few) {
    cd_novelty_residual r[] = {{7, 0.3}, {7, 0.4}};
    cd_novelty v = {0};
    cdmpp_err err = {0};
    assert_true(isnan(cd_novelty_half(&v, 0.9)));
    assert_ok(cd_novelty_fit(r, 2, &v, &err));
    assert_int_equal(v.n_value, 1);
    assert_true(isnan(cd_novelty_half(&v, 0.9)));
    assert_ok(cd_novelty_fit(r, 0, &v, &err));
    assert_int_equal(v.n_value, 0);
}

TEST(wider_levels) {
    cd_novelty_residual r[60];
    cd_novelty v;
    cdmpp_err err = {0};
    double before = 0;
    for (size_t i = 0; i < 60; i++) r[i] = (cd_novelty_residual){i % 3, cd_rng_unit(5, i) - 0.3};
    assert_ok(cd_novelty_fit(r, 60, &v, &err));
    for (double level = 0.02; level < 0.999; level += 0.02) {
        const double half = cd_novelty_half(&v, level);
        assert_true(half >= before && isfinite(half));
        before = half;
    }
}

/* Squares add up; what nobody knows makes all of it unknown; rows like those of the training are no
 * surer. */
TEST(several) {
    const double two[] = {0.3, 0.4}, unknown[] = {0.3, NAN};
    assert_close(cd_novelty_join(0.1, two, 2), 0.5, 1e-12, 0);
    assert_close(cd_novelty_join(0.9, two, 2), 0.9, 1e-12, 0);
    assert_close(cd_novelty_join(NAN, two, 2), 0.5, 1e-12, 0);
    assert_true(isnan(cd_novelty_join(0.1, unknown, 2)));
}

static double normal(uint64_t seed, uint64_t i) {
    double sum = -6;
    for (uint64_t k = 0; k < 12; k++) sum += cd_rng_unit(cd_rng_at(seed, i), k);
    return sum;
}

/* Values whose means are drawn with a deviation of 0.2 and rows with one of 0.1: of so many
 * experiments with few values nine of ten rows of one more value are inside. */
static double coverage(uint64_t values, double level) {
    enum { ROWS = 20, TRIES = 400 };
    double inside = 0;
    for (uint64_t t = 0; t < TRIES; t++) {
        cd_novelty_residual r[8 * ROWS];
        cd_novelty v;
        cdmpp_err err = {0};
        size_t n = 0;
        const uint64_t seed = cd_rng_at(values, t);
        for (uint64_t k = 0; k < values; k++)
            for (uint64_t i = 0; i < ROWS; i++)
                r[n++] = (cd_novelty_residual){k, 0.2 * normal(seed, k) +
                                                      0.1 * normal(seed, 100 + k * ROWS + i)};
        assert_ok(cd_novelty_fit(r, n, &v, &err));
        const double half = cd_novelty_half(&v, level);
        for (uint64_t i = 0; i < ROWS; i++)
            inside += fabs(0.2 * normal(seed, 99) + 0.1 * normal(seed, 1000 + i)) <= half;
    }
    return inside / (ROWS * TRIES);
}

TEST(one_more_value) {
    for (uint64_t values = 2; values <= 8; values += 2) {
        assert_true(coverage(values, 0.9) > 0.86 && coverage(values, 0.9) < 0.96);
        assert_true(coverage(values, 0.5) > 0.42 && coverage(values, 0.5) < 0.66);
    }
}

TEST(no_memory) {
    cd_novelty_residual r[] = {{7, 0.3}, {9, -0.2}};
    cd_novelty v;
    FAULT_SWEEP(s, 1) s.st = cd_novelty_fit(r, 2, &v, &s.err);
}

TESTS(NULL, NULL, by_hand, a_value_counts_once, too_few, wider_levels, several, one_more_value,
      no_memory)
