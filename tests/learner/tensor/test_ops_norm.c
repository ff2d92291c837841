/* ops_norm: layer and batch norm against slow references and their slopes. */
#include "learner/tensor/tensor.h"

#include <string.h>

#include "check.h"
#include "finite.h"

enum { N = 7, W = 37 };

typedef struct {
    bool columns;
    float dy[N * W];
} setting;

/* Normalised values of x (N, W), then gain and shift (W) behind it. */
static void reference(bool columns, const double *x, double *y) {
    const double *g = x + N * W, *b = g + W;
    const size_t outer = columns ? W : N, inner = columns ? N : W;
    for (size_t o = 0; o < outer; o++) {
        double m = 0, v = 0;
        for (size_t i = 0; i < inner; i++) m += x[columns ? i * W + o : o * W + i] / (double)inner;
        for (size_t i = 0; i < inner; i++)
            v += pow(x[columns ? i * W + o : o * W + i] - m, 2) / (double)inner;
        for (size_t i = 0; i < inner; i++) {
            const size_t k = columns ? i * W + o : o * W + i;
            y[k] = (x[k] - m) / sqrt(v + 1e-5) * g[k % W] + b[k % W];
        }
    }
}

static double scalar(void *ctx, const double *x) {
    const setting *s = ctx;
    double y[N * W];
    reference(s->columns, x, y);
    return finite_dot(y, s->dy, N * W);
}

static void check_norm(bool columns) {
    static float x[N * W + 2 * W], y[N * W], rstd[N + W], mean[W], var[W], dx[N * W], dg[W], db[W];
    static double xd[N * W + 2 * W], want[N * W];
    setting s = {.columns = columns};
    const float *g = x + N * W, *b = g + W;
    finite_values(x, xd, N * W + 2 * W, 1);
    finite_values(s.dy, NULL, N * W, 2);
    memcpy(dx, s.dy, sizeof dx);
    memset(dg, 0, sizeof dg);
    memset(db, 0, sizeof db);
    memset(mean, 0, sizeof mean);
    for (size_t c = 0; c < W; c++) var[c] = 1;
    reference(columns, xd, want);
    if (columns) { /* in two pieces, as over a pool */
        cd_ops_batchnorm(x, N, W, 0, 20, g, b, rstd, mean, var, y);
        cd_ops_batchnorm(x, N, W, 20, W, g, b, rstd, mean, var, y);
        cd_ops_batchnorm_back(dx, x, N, W, 0, 20, g, rstd, dg, db);
        cd_ops_batchnorm_back(dx, x, N, W, 20, W, g, rstd, dg, db);
    } else {
        cd_ops_layernorm(x, N, W, g, b, rstd, y);
        cd_ops_layernorm_back(dx, x, N, W, g, rstd, dg, db);
    }
    for (size_t i = 0; i < N * W; i++) {
        assert_close((double)y[i], want[i], 1e-5, 1e-5);
        assert_close((double)dx[i], finite_slope(scalar, &s, xd, i), 1e-4, 1e-4);
    }
    for (size_t c = 0; c < W; c++) {
        assert_close((double)dg[c], finite_slope(scalar, &s, xd, N * W + c), 1e-4, 1e-4);
        assert_close((double)db[c], finite_slope(scalar, &s, xd, N * W + W + c), 1e-4, 1e-4);
    }
}

TEST(layer) { check_norm(false); }

TEST(batch) { check_norm(true); }

/* In place, as when predicting, and a constant row. */
TEST(in_place) {
    float x[2 * W], y[2 * W], z[2 * W], g[W], b[W], rstd[2];
    finite_values(x, NULL, W, 1);
    for (size_t c = 0; c < W; c++) x[W + c] = 3;
    finite_values(g, NULL, W, 2);
    finite_values(b, NULL, W, 3);
    memcpy(z, x, sizeof z);
    cd_ops_layernorm(x, 2, W, g, b, rstd, y);
    cd_ops_layernorm(z, 2, W, g, b, rstd, z);
    assert_memory_equal(y, z, sizeof y);
    for (size_t c = 0; c < W; c++) assert_true(y[W + c] == b[c]);
}

/* Batches of one distribution: running statistics end up at its mean and variance,
 * and eval mode then does what they say. */
TEST(running) {
    enum { R = 200 };
    static float x[R * 2], y[R * 2], raw[R * 2];
    float g[2] = {2, 0.5f}, b[2] = {1, -1}, rstd[2], mean[2] = {0}, var[2] = {1, 1}, s[2], t[2];
    for (uint64_t k = 0; k < 100; k++) {
        /* variance 16/12 */
        for (size_t i = 0; i < R * 2; i++) raw[i] = x[i] = (float)(3 + 4 * cd_rng_unit(k, i));
        cd_ops_batchnorm(x, R, 2, 0, 2, g, b, rstd, mean, var, y);
    }
    for (size_t c = 0; c < 2; c++) {
        assert_close((double)mean[c], 5, 0, 0.1);
        assert_close((double)var[c], 16.0 / 12, 0, 0.1);
    }
    memcpy(x, raw, sizeof x);
    cd_ops_batchnorm_eval(x, R, 2, g, b, mean, var, s, t);
    for (size_t i = 0; i < R * 2; i++) {
        const size_t c = i % 2;
        const double want =
            ((double)raw[i] - (double)mean[c]) / sqrt((double)var[c] + 1e-5) * (double)g[c] +
            (double)b[c];
        assert_close((double)x[i], want, 1e-5, 1e-5);
    }
}

TESTS(NULL, NULL, layer, batch, in_place, running)
