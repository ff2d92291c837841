/* kmeans: planted clusters, fixed points, threads, against a slow Lloyd step. */
#include "dataset/select/kmeans.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "fault.h"

enum { N = 2000, DIM = 13, K = 7 };
static float x[N * DIM];

/* K clusters of unequal size, `spread` wide, centres about 10 apart. */
static void plant(double spread, uint64_t seed) {
    for (size_t i = 0; i < N; i++) {
        const size_t c = i % 28 < 7 ? i % 7 : i % 4; /* some are larger */
        for (size_t j = 0; j < DIM; j++)
            x[i * DIM + j] = (float)(10 * cd_rng_unit(99, c * DIM + j) * 3 +
                                     spread * (cd_rng_unit(seed, i * DIM + j) - 0.5));
    }
}

static cd_kmeans find(size_t n, size_t k, uint64_t seed, cd_threads *pool) {
    cdmpp_err err = {0};
    cd_kmeans m;
    assert_ok(cd_kmeans_find(x, n, DIM, k, seed, pool, &m, &err));
    size_t sum = 0;
    for (size_t c = 0; c < k; c++) sum += m.size[c];
    assert_int_equal(sum, n);
    return m;
}

TEST(planted) {
    plant(1, 1);
    for (uint64_t seed = 0; seed < 10; seed++) {
        cd_kmeans m = find(N, K, seed, NULL);
        for (size_t i = 28; i < N; i++) assert_int_equal(m.label[i], m.label[i % 28]);
        for (size_t i = 0; i < 7; i++)
            for (size_t j = 0; j < i; j++) assert_int_not_equal(m.label[i], m.label[j]);
        cd_kmeans_free(&m);
    }
}

static double square(const float *a, const float *b) {
    double s = 0;
    for (size_t j = 0; j < DIM; j++)
        s += ((double)a[j] - (double)b[j]) * ((double)a[j] - (double)b[j]);
    return s;
}

/* Each point has its nearest centre, each centre is the mean of its points. */
TEST(fixed_point) {
    plant(25, 2);
    cd_kmeans m = find(N, K, 5, NULL);
    double inertia = 0;
    for (size_t i = 0; i < N; i++) {
        const double own = square(x + i * DIM, m.centre + m.label[i] * DIM);
        inertia += own;
        for (size_t c = 0; c < K; c++)
            assert_true(own <= square(x + i * DIM, m.centre + c * DIM) * (1 + 1e-5));
    }
    assert_close(inertia, m.inertia, 1e-5, 0);
    for (size_t c = 0; c < K; c++)
        for (size_t j = 0; j < DIM; j++) {
            double s = 0;
            for (size_t i = 0; i < N; i++)
                if (m.label[i] == c) s += (double)x[i * DIM + j];
            assert_close((double)m.centre[c * DIM + j], s / (double)m.size[c], 1e-6, 1e-9);
        }
    cd_kmeans_free(&m);
}

TEST(threads) {
    cdmpp_err err = {0};
    cd_threads *two, *five;
    plant(25, 3);
    assert_ok(cd_threads_new(2, &two, &err));
    assert_ok(cd_threads_new(5, &five, &err));
    cd_kmeans a = find(N, K, 1, NULL), b = find(N, K, 1, two), c = find(N, K, 1, five);
    assert_memory_equal(a.centre, b.centre, K * DIM * sizeof(float));
    assert_memory_equal(a.centre, c.centre, K * DIM * sizeof(float));
    assert_memory_equal(a.label, b.label, N * sizeof *a.label);
    assert_memory_equal(&a.inertia, &c.inertia, sizeof a.inertia);
    cd_kmeans_free(&a);
    cd_kmeans_free(&b);
    cd_kmeans_free(&c);
    cd_threads_free(two);
    cd_threads_free(five);
}

TEST(corners) {
    plant(25, 4);
    cd_kmeans m = find(1, 1, 0, NULL);
    assert_memory_equal(m.centre, x, DIM * sizeof(float));
    cd_kmeans_free(&m);
    m = find(40, 1, 0, NULL); /* one centre: the mean of all, with all that is left around it */
    double left = 0;
    for (size_t j = 0; j < DIM; j++) {
        double s = 0, squares = 0;
        for (size_t i = 0; i < 40; i++) s += (double)x[i * DIM + j] / 40;
        for (size_t i = 0; i < 40; i++)
            squares += ((double)x[i * DIM + j] - s) * ((double)x[i * DIM + j] - s);
        assert_close((double)m.centre[j], s, 1e-6, 1e-9);
        left += squares;
    }
    assert_close(m.inertia, left, 1e-5, 0);
    cd_kmeans_free(&m);
    m = find(40, 40, 0, NULL); /* each point its own centre */
    assert_true(m.inertia <= 1e-9);
    for (size_t c = 0; c < 40; c++) assert_int_equal(m.size[c], 1);
    cd_kmeans_free(&m);
    for (size_t i = 1; i < 50; i++) memcpy(x + i * DIM, x + (i % 3) * DIM, DIM * sizeof(float));
    m = find(50, 8, 0, NULL); /* three different points */
    assert_true(m.inertia <= 0);
    cd_kmeans_free(&m);
}

static void out_of_memory(void **st) {
    (void)st;
    plant(25, 3);
    FAULT_SWEEP(f, 1) {
        cd_kmeans m;
        f.st = cd_kmeans_find(x, 100, DIM, 3, 1, NULL, &m, &f.err);
        if (!f.st) cd_kmeans_free(&m);
    }
}

TESTS(NULL, NULL, planted, fixed_point, threads, out_of_memory, corners)
