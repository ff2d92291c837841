/* select: the laws of choosing tasks, against a slow one written from the definition. */
#include "dataset/select/select.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "fault.h"
#include "dataset/select/kmeans.h"

enum { T = 24, PER = 20, N = T * PER, DIM = 6, PLANTED = 8 };
typedef struct {
    float x[N * DIM];
    uint32_t task[N];
    uint64_t key[T];
} set;

/* Task t lies at planted place t % PLANTED; task ids are 0 .. T-1 in a permuted order. */
static void build(set *s, double spread) {
    memset(s, 0, sizeof *s);
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t t = i / PER;
        s->task[i] = t;
        for (uint32_t j = 0; j < DIM; j++)
            s->x[i * DIM + j] = (float)(20 * cd_rng_unit(7, t % PLANTED * DIM + j) +
                                        0.3 * cd_rng_unit(8, t * DIM + j) +
                                        spread * (cd_rng_unit(9, i * DIM + j) - 0.5));
    }
    for (uint32_t t = 0; t < T; t++) s->key[t] = cd_rng_at(1, t);
}

static cd_select_input input(const set *s) {
    return (cd_select_input){N, DIM, s->x, s->task, T, s->key};
}

static size_t take(const set *s, cd_select_kind kind, size_t k, uint64_t seed, cd_threads *pool,
                   uint32_t *chosen) {
    cdmpp_err err = {0};
    size_t n = 99;
    const cd_select_input in = input(s);
    assert_ok(cd_select_tasks(&in, kind, k, seed, pool, chosen, &n, &err));
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < a; b++) assert_int_not_equal(chosen[a], chosen[b]);
    return n;
}

TEST(how_many) {
    static set s;
    uint32_t c[T + 5];
    build(&s, 1);
    for (int kind = 0; kind < 3; kind++) {
        for (size_t k = 0; k <= T; k += 4)
            assert_int_equal(take(&s, (cd_select_kind)kind, k, 3, NULL, c), k);
        assert_int_equal(take(&s, (cd_select_kind)kind, T + 5, 3, NULL, c), T);
    }
    for (int i = 0; i < N; i++)
        if (s.task[i] == 5) s.task[i] = 6; /* a task without programs is none */
    for (int kind = 0; kind < 3; kind++) {
        assert_int_equal(take(&s, (cd_select_kind)kind, T, 3, NULL, c), T - 1);
        for (int k = 0; k < T - 1; k++) assert_int_not_equal(c[k], 5);
    }
}

TEST(planted) {
    static set s;
    uint32_t c[T];
    build(&s, 1);
    for (uint64_t seed = 0; seed < 20; seed++) {
        int seen[PLANTED] = {0};
        assert_int_equal(take(&s, CD_SELECT_KMEANS, PLANTED, seed, NULL, c), PLANTED);
        for (int k = 0; k < PLANTED; k++) seen[c[k] % PLANTED]++;
        for (int p = 0; p < PLANTED; p++) assert_int_equal(seen[p], 1);
    }
}

/* Programs in another order, tasks by other numbers: the same choice in the same order. */
TEST(order_is_nothing) {
    static set s, r;
    uint32_t c[T], d[T];
    build(&s, 8);
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t k = (i * 7 + 11) % N; /* 7 and N have no common divisor */
        r.task[k] = (s.task[i] * 5 + 3) % T;
        r.key[r.task[k]] = s.key[s.task[i]];
        memcpy(r.x + k * DIM, s.x + i * DIM, DIM * sizeof(float));
    }
    for (int kind = 0; kind < 3; kind++) {
        const size_t n = take(&s, (cd_select_kind)kind, 10, 3, NULL, c);
        assert_int_equal(take(&r, (cd_select_kind)kind, 10, 3, NULL, d), n);
        for (size_t k = 0; k < n; k++) assert_int_equal(d[k], (c[k] * 5 + 3) % T);
    }
}

TEST(threads) {
    static set s;
    cdmpp_err err = {0};
    cd_threads *two;
    uint32_t c[T], d[T];
    build(&s, 8);
    assert_ok(cd_threads_new(2, &two, &err));
    for (int kind = 0; kind < 3; kind++) {
        assert_int_equal(take(&s, (cd_select_kind)kind, 9, 3, NULL, c), 9);
        assert_int_equal(take(&s, (cd_select_kind)kind, 9, 3, two, d), 9);
        assert_memory_equal(c, d, 9 * sizeof *c);
    }
    cd_threads_free(two);
}

static double away(const set *s, uint32_t task, const double *from) {
    double mean = 0;
    for (size_t i = 0; i < N; i++) {
        double d = 0;
        if (s->task[i] != task) continue;
        for (size_t j = 0; j < DIM; j++)
            d += ((double)s->x[i * DIM + j] - from[j]) * ((double)s->x[i * DIM + j] - from[j]);
        mean += sqrt(d) / PER;
    }
    return mean;
}

static int by_contents(const void *a, const void *b) {
    const float *p = a, *q = b;
    for (int j = 0; j < DIM; j++)
        if (p[j] != q[j]) return p[j] < q[j] ? -1 : 1;
    return 0;
}

/* kmeans: the definition, slowly: clusters from large to small, the nearest task left. */
TEST(definition) {
    enum { K = 9 };
    static set s;
    static float sorted[N * DIM];
    cdmpp_err err = {0};
    cd_kmeans m;
    uint32_t c[T];
    int taken[T] = {0}, served[K] = {0};
    build(&s, 12);
    memcpy(sorted, s.x, sizeof sorted);
    qsort(sorted, N, DIM * sizeof(float), by_contents);
    assert_ok(cd_kmeans_find(sorted, N, DIM, K, 5, NULL, &m, &err));
    assert_int_equal(take(&s, CD_SELECT_KMEANS, K, 5, NULL, c), K);
    for (int turn = 0; turn < K; turn++) {
        int large = -1;
        double at[DIM], least = INFINITY;
        for (int k = 0; k < K; k++)
            if (!served[k] && (large < 0 || m.size[k] > m.size[large])) large = k;
        served[large] = 1;
        for (int j = 0; j < DIM; j++) at[j] = (double)m.centre[large * DIM + j];
        for (uint32_t t = 0; t < T; t++)
            if (!taken[t]) least = fmin(least, away(&s, t, at));
        assert_false(taken[c[turn]]);
        assert_true(away(&s, c[turn], at) <= least * (1 + 1e-6));
        taken[c[turn]] = 1;
    }
    cd_kmeans_free(&m);
}

/* center: no task left out is nearer to the mean than one taken, and in order. */
TEST(center) {
    static set s;
    uint32_t c[T];
    double mean[DIM] = {0};
    build(&s, 8);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < DIM; j++) mean[j] += (double)s.x[i * DIM + j] / N;
    assert_int_equal(take(&s, CD_SELECT_CENTER, T, 0, NULL, c), T);
    for (size_t k = 1; k < T; k++)
        assert_true(away(&s, c[k - 1], mean) <= away(&s, c[k], mean) + 1e-5);
}

TEST(random_by_seed) {
    static set s;
    uint32_t c[T], d[T], few[T];
    build(&s, 1);
    take(&s, CD_SELECT_RANDOM, T, 1, NULL, c);
    take(&s, CD_SELECT_RANDOM, T, 2, NULL, d);
    assert_memory_not_equal(c, d, sizeof c);
    take(&s, CD_SELECT_RANDOM, 7, 1, NULL, few);
    assert_memory_equal(c, few, 7 * sizeof *c); /* fewer: the first of them */
}

TEST(refusals) {
    static set s;
    uint32_t c[T];
    size_t n;
    cdmpp_err err = {0};
    build(&s, 1);
    const cd_select_input in = input(&s);
    s.x[17] = NAN;
    assert_status(cd_select_tasks(&in, CD_SELECT_KMEANS, 3, 0, NULL, c, &n, &err), CDMPP_ENUMERIC);
    const cd_select_input none = {0, DIM, s.x, s.task, T, s.key};
    assert_ok(cd_select_tasks(&none, CD_SELECT_KMEANS, 3, 0, NULL, c, &n, &err));
    assert_int_equal(n, 0);
}

static void out_of_memory(void **st) {
    (void)st;
    static set s;
    uint32_t c[T];
    size_t n;
    build(&s, 1);
    const cd_select_input in = input(&s);
    for (int kind = 0; kind < 3; kind++) FAULT_SWEEP(f, 1)
    f.st = cd_select_tasks(&in, (cd_select_kind)kind, 3, 0, NULL, c, &n, &f.err);
}

TESTS(NULL, NULL, how_many, planted, order_is_nothing, threads, center, definition, random_by_seed,
      out_of_memory, refusals)
