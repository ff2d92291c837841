/* Layer norm for each row and batch norm for each column. Sums over a row run in 16 lanes
 * (ops_math.h); sums over a column go from the first row to the last. Both orders are fixed, so the
 * bits are. */
#include <assert.h>
#include <math.h>

#include "learner/tensor/ops_math.h"

/* ---- layer norm ---- */
CD_INLINE float row_sum(const float *x, size_t w) {
    float a[CD_LANES] = {0};
    size_t c = 0;
    for (; c + CD_LANES <= w; c += CD_LANES)
        for (size_t l = 0; l < CD_LANES; l++) a[l] += x[c + l];
    for (size_t l = 0; c < w; c++, l++) a[l] += x[c];
    return cd_lanes_sum(a);
}

/* Sum of x*y over a row. */
CD_INLINE float row_dot(const float *x, const float *y, size_t w) {
    float a[CD_LANES] = {0};
    size_t c = 0;
    for (; c + CD_LANES <= w; c += CD_LANES)
        for (size_t l = 0; l < CD_LANES; l++) a[l] += x[c + l] * y[c + l];
    for (size_t l = 0; c < w; c++, l++) a[l] += x[c] * y[c];
    return cd_lanes_sum(a);
}

CD_SIMD void cd_ops_layernorm(float *x, size_t n, size_t w, const float *g, const float *b,
                              float *rstd, float *y) {
    for (size_t i = 0; i < n; i++, x += w, y += w) {
        const float mean = row_sum(x, w) / (float)w;
        for (size_t c = 0; c < w; c++) x[c] -= mean;
        const float r = 1.0f / sqrtf(row_dot(x, x, w) / (float)w + CD_OPS_EPS);
        for (size_t c = 0; c < w; c++) x[c] *= r;
        if (x == y) /* a loop of its own, so that both vectorise */
            for (size_t c = 0; c < w; c++) x[c] = x[c] * g[c] + b[c];
        else
            for (size_t c = 0; c < w; c++) y[c] = x[c] * g[c] + b[c];
        rstd[i] = r;
    }
}

/* dx = (rstd/w) (w g dy - sum(g dy) - x sum(g dy x)) */
CD_SIMD void cd_ops_layernorm_back(float *dy, const float *x, size_t n, size_t w, const float *g,
                                   const float *rstd, float *dg, float *db) {
    for (size_t i = 0; i < n; i++, x += w, dy += w) {
        for (size_t c = 0; c < w; c++) {
            dg[c] += dy[c] * x[c];
            db[c] += dy[c];
            dy[c] *= g[c];
        }
        const float m1 = row_sum(dy, w) / (float)w, m2 = row_dot(dy, x, w) / (float)w, r = rstd[i];
        for (size_t c = 0; c < w; c++) dy[c] = r * (dy[c] - m1 - x[c] * m2);
    }
}

/* ---- batch norm ---- */
CD_SIMD static void columns_mean(const float *x, size_t n, size_t w, size_t k, float *m) {
    for (size_t c = 0; c < k; c++) m[c] = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < k; c++) m[c] += x[i * w + c];
    for (size_t c = 0; c < k; c++) m[c] /= (float)n;
}

CD_SIMD static void columns_centre(float *x, size_t n, size_t w, size_t k, const float *m,
                                   float *v) {
    for (size_t c = 0; c < k; c++) v[c] = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < k; c++) {
            x[i * w + c] -= m[c];
            v[c] += x[i * w + c] * x[i * w + c];
        }
    for (size_t c = 0; c < k; c++) v[c] /= (float)n;
}

CD_SIMD static void columns_scale(float *x, size_t n, size_t w, size_t k, const float *r,
                                  const float *g, const float *b, float *y) {
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < k; c++) {
            const float v = x[i * w + c] * r[c];
            x[i * w + c] = v;
            y[i * w + c] = v * g[c] + b[c];
        }
}

void cd_ops_batchnorm(float *x, size_t n, size_t w, size_t c0, size_t c1, const float *g,
                      const float *b, float *rstd, float *mean, float *var, float *y) {
    const size_t k = c1 - c0;
    float m[CD_OPS_COLS], v[CD_OPS_COLS];
    assert(k <= CD_OPS_COLS && n > 1);
    columns_mean(x + c0, n, w, k, m);
    columns_centre(x + c0, n, w, k, m, v);
    for (size_t c = 0; c < k; c++) {
        rstd[c0 + c] = 1.0f / sqrtf(v[c] + CD_OPS_EPS);
        mean[c0 + c] += 0.1f * (m[c] - mean[c0 + c]);
        var[c0 + c] += 0.1f * (v[c] * (float)n / (float)(n - 1) - var[c0 + c]);
    }
    columns_scale(x + c0, n, w, k, rstd + c0, g + c0, b + c0, y + c0);
}

CD_SIMD static void columns_sums(const float *dy, const float *x, size_t n, size_t w, size_t k,
                                 float *s1, float *s2) {
    for (size_t c = 0; c < k; c++) s1[c] = s2[c] = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < k; c++) {
            s1[c] += dy[i * w + c];
            s2[c] += dy[i * w + c] * x[i * w + c];
        }
}

/* dx = g rstd (dy - mean(dy) - x mean(dy x)) */
CD_SIMD static void columns_back(float *dy, const float *x, size_t n, size_t w, size_t k,
                                 const float *gr, const float *m1, const float *m2) {
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < k; c++)
            dy[i * w + c] = gr[c] * (dy[i * w + c] - m1[c] - x[i * w + c] * m2[c]);
}

void cd_ops_batchnorm_back(float *dy, const float *x, size_t n, size_t w, size_t c0, size_t c1,
                           const float *g, const float *rstd, float *dg, float *db) {
    const size_t k = c1 - c0;
    float s1[CD_OPS_COLS], s2[CD_OPS_COLS], gr[CD_OPS_COLS];
    assert(k <= CD_OPS_COLS);
    columns_sums(dy + c0, x + c0, n, w, k, s1, s2);
    for (size_t c = 0; c < k; c++) {
        db[c0 + c] += s1[c];
        dg[c0 + c] += s2[c];
        s1[c] /= (float)n;
        s2[c] /= (float)n;
        gr[c] = g[c0 + c] * rstd[c0 + c];
    }
    columns_back(dy + c0, x + c0, n, w, k, gr, s1, s2);
}

CD_SIMD void cd_ops_batchnorm_eval(float *x, size_t n, size_t w, const float *g, const float *b,
                                   const float *mean, const float *var, float *s, float *t) {
    for (size_t c = 0; c < w; c++) {
        s[c] = g[c] / sqrtf(var[c] + CD_OPS_EPS);
        t[c] = b[c] - mean[c] * s[c];
    }
    for (size_t i = 0; i < n; i++, x += w)
        for (size_t c = 0; c < w; c++) x[c] = x[c] * s[c] + t[c];
}
