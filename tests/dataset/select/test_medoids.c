/* medoids: planted clusters, and the laws of the choice against a slow one written from the
 * definition. */
#include "dataset/select/select.h"

#include <math.h>
#include <string.h>

#include "check.h"
#include "fault.h"

enum { PLANTED = 7, PER = 12, N = PLANTED * PER, DIM = 5 };
static float x[N * DIM];

/* Point i lies near planted place i % PLANTED; the first PLANTED points are the places
 * themselves. */
static void build(double spread) {
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < DIM; j++)
            x[i * DIM + j] =
                (float)(40 * cd_rng_unit(3, i % PLANTED * DIM + j) +
                        (i < PLANTED ? 0 : spread * (cd_rng_unit(4, i * DIM + j) - 0.5)));
}

static size_t pay(const double *price, double budget, cd_threads *pool, uint32_t *chosen) {
    cdmpp_err err = {0};
    size_t n = 99;
    assert_ok(cd_select_medoids(x, N, DIM, price, budget, N, pool, chosen, &n, &err));
    return n;
}

/* All at one price, and k of them paid for. */
static size_t take(size_t k, cd_threads *pool, uint32_t *chosen) {
    double price[N];
    for (size_t i = 0; i < N; i++) price[i] = 2;
    return pay(price, 2 * (double)k, pool, chosen);
}

static double distance(size_t a, size_t b) {
    double s = 0;
    for (size_t j = 0; j < DIM; j++)
        s += ((double)x[a * DIM + j] - (double)x[b * DIM + j]) *
             ((double)x[a * DIM + j] - (double)x[b * DIM + j]);
    return sqrt(s);
}

/* Sum over all points of the distance to the nearest of `chosen` and `also`. */
static double left(const uint32_t *chosen, size_t n, size_t also) {
    double sum = 0;
    for (size_t i = 0; i < N; i++) {
        double near = distance(i, also);
        for (size_t c = 0; c < n; c++) near = fmin(near, distance(i, chosen[c]));
        sum += near;
    }
    return sum;
}

TEST(each_planted_place_once) {
    uint32_t c[N];
    int seen[PLANTED] = {0};
    build(2);
    assert_int_equal(take(PLANTED, NULL, c), PLANTED);
    for (size_t k = 0; k < PLANTED; k++) seen[c[k] % PLANTED]++;
    for (size_t p = 0; p < PLANTED; p++) assert_int_equal(seen[p], 1);
}

TEST(each_turn_leaves_least) {
    uint32_t c[N];
    build(30);
    assert_int_equal(take(20, NULL, c), 20);
    for (size_t k = 0; k < 20; k++)
        for (size_t i = 0; i < N; i++) assert_true(left(c, k, c[k]) <= left(c, k, i) * (1 + 1e-5));
}

TEST(fewer_are_the_first_of_more_for_any_threads) {
    uint32_t c[N], few[N], same[N];
    cdmpp_err err = {0};
    cd_threads *two;
    build(30);
    take(20, NULL, c);
    assert_int_equal(take(8, NULL, few), 8);
    assert_memory_equal(c, few, 8 * sizeof *c);
    assert_ok(cd_threads_new(2, &two, &err));
    take(20, two, same);
    assert_memory_equal(c, same, 20 * sizeof *c);
    cd_threads_free(two);
}

TEST(no_point_twice) {
    uint32_t c[N];
    build(0); /* PLANTED different points */
    assert_int_equal(take(N, NULL, c), PLANTED);
    memset(x, 0, sizeof x);
    assert_int_equal(take(N, NULL, c), 1);
    assert_int_equal(c[0], 0);
}

/* The places themselves are dear, their neighbours cheap: a budget of cheap ones reaches all
 * places. */
TEST(a_budget_takes_cheap_ones) {
    uint32_t c[N];
    double price[N], sum = 0;
    int seen[PLANTED] = {0};
    build(2);
    for (size_t i = 0; i < N; i++) price[i] = i < PLANTED ? 10 : 1;
    assert_int_equal(pay(price, PLANTED + 0.5, NULL, c), PLANTED);
    for (size_t k = 0; k < PLANTED; k++) {
        sum += price[c[k]];
        seen[c[k] % PLANTED]++;
    }
    assert_true(sum <= PLANTED + 0.5);
    for (size_t q = 0; q < PLANTED; q++) assert_int_equal(seen[q], 1);
    assert_int_equal(pay(price, 0.5, NULL, c), 0);
}

TEST(refusals) {
    uint32_t c[N];
    size_t n;
    cdmpp_err err = {0};
    build(1);
    x[17] = NAN;
    static const double price[N] = {0};
    assert_status(cd_select_medoids(x, N, DIM, price, 3, 3, NULL, c, &n, &err), CDMPP_ENUMERIC);
    assert_ok(cd_select_medoids(x, 0, DIM, price, 3, 3, NULL, c, &n, &err));
    assert_int_equal(n, 0);
}

static void out_of_memory(void **st) {
    (void)st;
    uint32_t c[N];
    size_t n;
    double price[N];
    build(1);
    for (size_t i = 0; i < N; i++) price[i] = 1;
    FAULT_SWEEP(f, 1) f.st = cd_select_medoids(x, N, DIM, price, 3, 3, NULL, c, &n, &f.err);
}

TESTS(NULL, NULL, each_planted_place_once, each_turn_leaves_least,
      fewer_are_the_first_of_more_for_any_threads, no_point_twice, a_budget_takes_cheap_ones,
      refusals, out_of_memory)
