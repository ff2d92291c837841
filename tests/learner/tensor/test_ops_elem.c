/* ops_elem: activations against formulas and their slopes; dropout keeps the share it
 * says, the mean, and no memory. */
#include "learner/tensor/tensor.h"

#include <string.h>

#include "check.h"
#include "finite.h"

enum { N = 23, W = 37, LD = 50, ALL = N * LD };

static const cd_dropout none = {.scale = 1};

TEST(exponential) {
    float x[4002];
    for (int i = 0; i <= 4000; i++) x[i] = (float)(i - 2000) * 0.04f;
    x[4001] = 7;
    cd_ops_exp(x, 4001);
    assert_true(x[4001] == 7);
    for (int i = 0; i <= 4000; i++) {
        const double want = exp((double)((float)(i - 2000) * 0.04f));
        assert_close((double)x[i], want, 3e-7, 1e-37);
    }
    float edge[] = {-1000, -88, 0, 1000, -INFINITY};
    cd_ops_exp(edge, 5);
    assert_true(edge[0] == 0 && edge[1] == 0 && edge[2] == 1 && isfinite(edge[3]) && edge[4] == 0);
}

/* ---- activations: y = act(x + b), by rows with room between them ---- */
static double relu(double x) { return x > 0 ? x : 0; }
static double gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
static double elu(double x) { return x > 0 ? x : expm1(x); }
static double relu_slope(double x) { return x > 0; }
static double gelu_slope(double x) {
    const double h = 1e-5;
    return (gelu(x + h) - gelu(x - h)) / (2 * h);
}

static double elu_slope(double x) { return x > 0 ? 1 : exp(x); }

enum { RELU, GELU, ELU };
static double (*const value[])(double) = {relu, gelu, elu},
                      (*const slope_of[])(double) = {relu_slope, gelu_slope, elu_slope};

static void activation(int act, const cd_dropout *drop) {
    static float x[ALL], y[ALL], pre[ALL], dy[ALL], got[ALL], b[W], db[W];
    double sum[W] = {0};
    finite_values(x, NULL, ALL, 1);
    finite_values(b, NULL, W, 2);
    finite_values(dy, NULL, ALL, 3);
    memcpy(y, x, sizeof y);
    memcpy(got, dy, sizeof got);
    memset(db, 0, sizeof db);
    if (act == GELU) cd_ops_gelu(y, pre, N, W, LD, b, 7, 5, drop);
    else (act == ELU ? cd_ops_elu : cd_ops_relu)(y, N, W, LD, b, 7, 5, drop);
    if (act == GELU) cd_ops_gelu_back(got, pre, N, W, LD, 7, 5, drop, db);
    else (act == ELU ? cd_ops_elu_back : cd_ops_relu_back)(got, y, N, W, LD, drop, db);
    for (size_t i = 0; i < N; i++)
        for (size_t c = 0; c < LD; c++) {
            const size_t k = i * LD + c;
            if (c >= W) { /* untouched */
                assert_true(y[k] == x[k] && got[k] == dy[k]);
                continue;
            }
            const double v = (double)x[k] + (double)b[c], f = value[act](v);
            const double keep = !drop->below ? 1 : y[k] != 0 || f == 0 ? (double)drop->scale : 0;
            const double slope = slope_of[act](v) * keep;
            assert_close((double)y[k], f * keep, 1e-5, 1e-6);
            assert_close((double)got[k], slope * (double)dy[k], 1e-4, 1e-6);
            sum[c] += slope * (double)dy[k];
        }
    for (size_t c = 0; c < W; c++) assert_close((double)db[c], sum[c], 1e-4, 1e-5);
}

TEST(activations) {
    const cd_dropout half = cd_ops_drop(0.5, 99, 1);
    for (int act = RELU; act <= ELU; act++) {
        activation(act, &none);
        activation(act, &half);
    }
}

/* ---- dropout ---- */
TEST(dropout) {
    static float x[400 * 256], again[400 * 256], part[400 * 256];
    const double ps[] = {0.1, 0.5, 0.9};
    for (int k = 0; k < 3; k++) {
        const cd_dropout d = cd_ops_drop(ps[k], 1234, 3), other = cd_ops_drop(ps[k], 1234, 4);
        size_t kept = 0, same = 0;
        for (size_t i = 0; i < 400 * 256; i++) x[i] = again[i] = part[i] = 1;
        cd_ops_dropout(x, 400, 256, 0, &d);
        cd_ops_dropout(part + 100 * 256, 300, 256, 100, &d); /* rows by themselves: the same */
        assert_memory_equal(x + 100 * 256, part + 100 * 256, 300 * 256 * sizeof *x);
        cd_ops_dropout(again, 400, 256, 0, &other);
        for (size_t i = 0; i < 400 * 256; i++) {
            assert_true(x[i] == 0 || x[i] == d.scale);
            kept += x[i] != 0;
            same += (x[i] != 0) == (again[i] != 0);
        }
        const double n = 400 * 256, q = 1 - ps[k];
        assert_close((double)kept / n, q, 0, 5 * sqrt(q * ps[k] / n)); /* 5 standard errors */
        /* streams are independent */
        assert_close((double)same / n, q * q + ps[k] * ps[k], 0, 5 * 0.5 / sqrt(n));
        assert_close((double)d.scale * q, 1, 1e-6, 0);
    }
    const cd_dropout off = cd_ops_drop(0.5, 0, 1);
    assert_true(off.below == 0 && off.scale == 1);
}

/* Rows and columns of a mask are uncorrelated. */
TEST(mask_is_white) {
    static float x[512 * 512];
    const cd_dropout d = cd_ops_drop(0.5, 7, 7);
    size_t row = 0, col = 0;
    for (size_t i = 0; i < 512 * 512; i++) x[i] = 1;
    cd_ops_dropout(x, 512, 512, 0, &d);
    for (size_t i = 0; i < 511; i++)
        for (size_t c = 0; c < 511; c++) {
            row += (x[i * 512 + c] != 0) == (x[i * 512 + c + 1] != 0);
            col += (x[i * 512 + c] != 0) == (x[(i + 1) * 512 + c] != 0);
        }
    assert_close((double)row / (511 * 511), 0.5, 0, 0.005);
    assert_close((double)col / (511 * 511), 0.5, 0, 0.005);
}

TEST(sums) {
    static float x[N * W], y[N * W], r[N * W], b[W], s[W], z[N * W];
    const cd_dropout d = cd_ops_drop(0.3, 5, 5);
    finite_values(x, NULL, N * W, 1);
    finite_values(r, NULL, N * W, 2);
    finite_values(b, NULL, W, 3);
    memset(s, 0, sizeof s);
    cd_ops_colsum(x, N, W, s);
    memcpy(y, x, sizeof y);
    cd_ops_residual(y, N, W, b, r, 4, &d);
    memcpy(z, x, sizeof z);
    cd_ops_bias(z, N, W, b);
    cd_ops_dropout(z, N, W, 4, &d);
    for (size_t c = 0; c < W; c++) {
        double want = 0;
        for (size_t i = 0; i < N; i++) want += (double)x[i * W + c];
        assert_close((double)s[c], want, 1e-5, 1e-6);
    }
    for (size_t i = 0; i < N * W; i++)
        assert_close((double)y[i], (double)z[i] + (double)r[i], 1e-6, 1e-6);
}

TESTS(NULL, NULL, exponential, activations, dropout, mask_is_white, sums)
