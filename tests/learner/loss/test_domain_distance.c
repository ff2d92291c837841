/* Distances of latents against a restatement in double and central differences. */
#include "learner/loss/loss.h"
#include "check.h"
#include "fault.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"

enum { N = 150, M = 131, D = 70 };
static float x[N * D], y[M * D];

static double unit(uint64_t seed, uint64_t i) {
    return cd_rng_unit(seed, i) + cd_rng_unit(seed + 1, i) - 1;
}

static int make(void **s) {
    (void)s;
    for (uint64_t i = 0; i < N * D; i++) x[i] = (float)(3 + 0.3 * unit(1, i));
    for (uint64_t i = 0; i < M * D; i++) y[i] = (float)(3.05 + 0.4 * unit(7, i));
    return 0;
}

typedef double fn(cd_domain_distance *s, cd_threads *pool, const float *x, size_t n, const float *y,
                  size_t m, double weight, float *gx, float *gy);

/* ---- slow truth ---- */
static double slow_cmd(const float *a, size_t n, const float *b, size_t m, size_t d) {
    double sum = 0;
    for (int k = 1; k <= 5; k++) {
        double sq = 0;
        for (size_t c = 0; c < d; c++) {
            double ma = 0, mb = 0, va = 0, vb = 0;
            for (size_t i = 0; i < n; i++) ma += (double)a[i * d + c] / (double)n;
            for (size_t i = 0; i < m; i++) mb += (double)b[i * d + c] / (double)m;
            for (size_t i = 0; i < n; i++) va += pow((double)a[i * d + c] - ma, k) / (double)n;
            for (size_t i = 0; i < m; i++) vb += pow((double)b[i * d + c] - mb, k) / (double)m;
            sq += k == 1 ? (ma - mb) * (ma - mb) : (va - vb) * (va - vb);
        }
        sum += sqrt(sq);
    }
    return sum;
}

static double kernel(const float *a, const float *b, size_t d) {
    double sq = 0;
    for (size_t c = 0; c < d; c++)
        sq += ((double)a[c] - (double)b[c]) * ((double)a[c] - (double)b[c]);
    return exp(-sq) + exp(-0.1 * sq) + exp(-0.001 * sq);
}

static double slow_mmd(const float *a, size_t n, const float *b, size_t m, size_t d) {
    double xx = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t q = 0; q < n; q++) xx += kernel(a + i * d, a + q * d, d);
    for (size_t i = 0; i < m; i++)
        for (size_t q = 0; q < m; q++) yy += kernel(b + i * d, b + q * d, d);
    for (size_t i = 0; i < n; i++)
        for (size_t q = 0; q < m; q++) xy += kernel(a + i * d, b + q * d, d);
    return xx / (double)(n * n) + yy / (double)(m * m) - 2 * xy / (double)(n * m);
}

TEST(as_slow) {
    cdmpp_err err = {0};
    cd_domain_distance *dom;
    assert_ok(cd_domain_distance_new(N + M, D, 1, &dom, &err));
    assert_close(cd_domain_distance_cmd(dom, NULL, x, N, y, M, 1, NULL, NULL),
                 slow_cmd(x, N, y, M, D), 1e-9, 0);
    assert_close(cd_domain_distance_mmd(dom, NULL, x, N, y, M, 1, NULL, NULL),
                 slow_mmd(x, N, y, M, D), 1e-4, 1e-6);
    cd_domain_distance_free(dom);
}

/* Few rows and columns, so that each number weighs enough for differences in float. */
static void differences(fn *f, double tolerance) {
    enum { n = 7, m = 5, d = 4 };
    cdmpp_err err = {0};
    cd_domain_distance *dom;
    float p[(n + m) * d], g[(n + m) * d] = {0}, q[(n + m) * d];
    const double weight = 0.7;
    for (uint64_t i = 0; i < (n + m) * d; i++)
        p[i] = (float)(unit(20, i) * (i < n * d ? 1 : 0.6) + (i < n * d ? 0.1 : 0.4));
    assert_ok(cd_domain_distance_new(n + m, d, 1, &dom, &err));
    f(dom, NULL, p, n, p + n * d, m, weight, g, g + n * d);
    for (size_t k = 0; k < (n + m) * d; k++) {
        const float h = 1e-2f;
        memcpy(q, p, sizeof q);
        q[k] = p[k] + h;
        const double up = f(dom, NULL, q, n, q + n * d, m, 1, NULL, NULL), top = (double)q[k];
        q[k] = p[k] - h;
        const double down = f(dom, NULL, q, n, q + n * d, m, 1, NULL, NULL);
        assert_close((double)g[k], weight * (up - down) / (top - (double)q[k]), 0.01, tolerance);
    }
    cd_domain_distance_free(dom);
}

TEST(gradients) {
    differences(cd_domain_distance_cmd, 3e-4);
    differences(cd_domain_distance_mmd, 1e-4);
}

static void laws(fn *f) {
    cdmpp_err err = {0};
    cd_domain_distance *dom;
    static float g[2][2 * N * D];
    assert_ok(cd_domain_distance_new(2 * N, D, 1, &dom, &err));
    memset(g, 0, sizeof g);
    assert_close(f(dom, NULL, x, N, x, N, 1, g[0], g[0] + N * D), 0, 0, 1e-6); /* equal samples */
    for (size_t k = 0; k < 2 * N * D; k++) assert_close((double)g[0][k], 0, 0, 1e-6);

    const double ab = f(dom, NULL, x, N, y, M, 1, NULL, NULL),
                 ba = f(dom, NULL, y, M, x, N, 1, NULL, NULL);
    assert_true(ab > 0.01);
    assert_close(ab, ba, 1e-4, 0);

    memset(g, 0, sizeof g); /* gradients are added, and linear in the weight */
    f(dom, NULL, x, N, y, M, 1, g[0], g[0] + N * D);
    f(dom, NULL, x, N, y, M, 1, g[0], g[0] + N * D);
    f(dom, NULL, x, N, y, M, 2, g[1], g[1] + N * D);
    for (size_t k = 0; k < 2 * N * D; k++)
        assert_close((double)g[0][k], (double)g[1][k], 1e-5, 1e-9);
    cd_domain_distance_free(dom);
}

TEST(cmd_laws) { laws(cd_domain_distance_cmd); }

TEST(mmd_laws) { laws(cd_domain_distance_mmd); }

TEST(any_pool) {
    cdmpp_err err = {0};
    static float g[2][(N + M) * D];
    fn *const all[] = {cd_domain_distance_cmd, cd_domain_distance_mmd};
    for (int k = 0; k < 2; k++) {
        double v[2];
        for (int p = 0; p < 2; p++) {
            cd_threads *pool;
            cd_domain_distance *dom;
            assert_ok(cd_threads_new(p ? 3 : 1, &pool, &err));
            assert_ok(cd_domain_distance_new(N + M, D, cd_threads_count(pool), &dom, &err));
            memset(g[p], 0, sizeof g[p]);
            v[p] = all[k](dom, pool, x, N, y, M, 1, g[p], g[p] + N * D);
            cd_domain_distance_free(dom);
            cd_threads_free(pool);
        }
        assert_memory_equal(&v[0], &v[1], sizeof v[0]);
        assert_memory_equal(g[0], g[1], sizeof g[0]);
    }
}

/* A step against the gradient brings the samples closer. */
TEST(descent) {
    cdmpp_err err = {0};
    fn *const all[] = {cd_domain_distance_cmd, cd_domain_distance_mmd};
    for (int k = 0; k < 2; k++) {
        static float p[N * D], g[N * D], h[M * D];
        cd_domain_distance *dom;
        memcpy(p, x, sizeof p);
        assert_ok(cd_domain_distance_new(N + M, D, 1, &dom, &err));
        const double before = all[k](dom, NULL, p, N, y, M, 1, NULL, NULL);
        for (int t = 0; t < 20; t++) {
            memset(g, 0, sizeof g);
            all[k](dom, NULL, p, N, y, M, 1, g, h);
            for (int i = 0; i < N * D; i++) p[i] -= 3 * g[i];
        }
        assert_true(all[k](dom, NULL, p, N, y, M, 1, NULL, NULL) < 0.6 * before);
        cd_domain_distance_free(dom);
    }
}

TEST(out_of_memory) {
    /* so many rows that the arrays need several chunks of the arena */
    FAULT_SWEEP(f, 4) {
        cd_domain_distance *dom = NULL;
        f.st = cd_domain_distance_new(3000, 16, 2, &dom, &f.err);
        if (!f.st) cd_domain_distance_free(dom);
    }
}

TESTS(make, NULL, as_slow, gradients, cmd_laws, mmd_laws, any_pool, descent, out_of_memory)
