/* unlike_law: on made kinds whose truth is known, nine in ten programs of the next kind are inside;
 * few kinds are wider, one says nothing. */
#include "check.h"
#include "learner/train/unlike_range.h"

#include <math.h>
#include <string.h>

enum { EACH = 31, MOST_KINDS = 60, RUNS = 300, NEXT = 10 };

static double normal(uint64_t seed, uint64_t i) {
    const double u = fmax(cd_rng_unit(seed, 2 * i), 1e-12), v = cd_rng_unit(seed, 2 * i + 1);
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

/* Kinds that are off by `shift` each, their programs by `own` beyond. */
static size_t make(cd_unlike_error *e, uint32_t kinds, double shift, double own, uint64_t seed) {
    size_t n = 0;
    for (uint32_t k = 0; k < kinds; k++) {
        const double common = shift * normal(seed, k);
        for (uint32_t i = 0; i < EACH; i++, n++)
            e[n] = (cd_unlike_error){common + own * normal(seed + 7, n), k, 0};
    }
    return n;
}

/* Share of programs of kinds that come next, over many draws of what was left out. */
static double inside(uint32_t kinds, double shift, double own) {
    static cd_unlike_error e[MOST_KINDS * EACH];
    double in = 0;
    for (uint64_t run = 0; run < RUNS; run++) {
        cd_unlike_law l;
        cd_unlike_law_of(e, make(e, kinds, shift, own, 1000 * run + 1), 0.9, &l);
        assert_int_equal(l.n, kinds);
        for (uint64_t k = 0; k < NEXT; k++) {
            const double r =
                shift * normal(1000 * run + 501, k) + own * normal(1000 * run + 503, k);
            in += (l.low <= r && r <= l.high) / (double)(RUNS * NEXT);
        }
    }
    return in;
}

/* A run's law holds more or less of what comes next, so that draws of one run go together: three
 * deviations of 300 runs are some five percent. */
TEST(nine_in_ten_of_the_next_kind) {
    static const struct {
        uint32_t kinds;
        double shift, own;
    } t[] = {{3, 0.4, 0.2}, {6, 0.4, 0.2}, {6, 0.1, 0.5}, {12, 0.3, 0.3}, {40, 0.4, 0.2}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        const double share = inside(t[k].kinds, t[k].shift, t[k].own);
        assert_true(share > 0.86 && share < 0.965);
    }
}

/* A law that was made of its own programs alone, as if each were a kind, holds too few: the test
 * above would notice. */
TEST(programs_are_no_kinds) {
    static cd_unlike_error e[MOST_KINDS * EACH];
    double in = 0;
    for (uint64_t run = 0; run < RUNS; run++) {
        cd_unlike_law l;
        const size_t n = make(e, 3, 0.4, 0.05, 1000 * run + 1);
        for (size_t i = 0; i < n; i++) e[i].group = (uint32_t)i;
        cd_unlike_law_of(e, n, 0.9, &l);
        const double r = 0.4 * normal(1000 * run + 501, 0);
        in += (l.low <= r && r <= l.high) / (double)RUNS;
    }
    assert_true(in < 0.8);
}

TEST(one_kind_says_nothing) {
    cd_unlike_error e[EACH];
    cd_unlike_law l;
    cd_unlike_law_of(e, make(e, 1, 0.4, 0.2, 1), 0.9, &l);
    assert_int_equal(l.n, 0);
    cd_unlike_law_of(e, 0, 0.9, &l);
    assert_int_equal(l.n, 0);
}

/* Each kind counts the same: programs that are there ten times change nothing. */
TEST(a_kind_of_many_programs_is_one) {
    static cd_unlike_error e[20 * EACH];
    cd_unlike_law once, often;
    cd_unlike_law_of(e, make(e, 4, 0.4, 0.2, 3), 0.9, &once);
    size_t n = make(e, 4, 0.4, 0.2, 3);
    for (size_t i = 0; i < EACH; i++)
        for (int k = 0; k < 9; k++) e[n++] = e[i];
    cd_unlike_law_of(e, n, 0.9, &often);
    assert_close(once.shift, often.shift, 1e-9, 0);
    assert_close(once.low, often.low, 1e-9, 0);
    assert_close(once.high, often.high, 1e-9, 0);
}

TESTS(NULL, NULL, nine_in_ten_of_the_next_kind, programs_are_no_kinds, one_kind_says_nothing,
      a_kind_of_many_programs_is_one)
