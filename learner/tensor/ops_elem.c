/* Activations, dropout, bias and sums of columns. Loops with and without dropout are written apart,
 * because a condition inside would keep the compiler from vectorising them. */
#include "learner/tensor/ops_math.h"

cd_dropout cd_ops_drop(double p, uint64_t key, uint64_t layer) {
    if (p <= 0 || !key) return (cd_dropout){.scale = 1};
    return (cd_dropout){.key = cd_rng_at(key, layer),
                        .below = (uint32_t)(p * 0x1p32),
                        .scale = (float)(1 / (1 - p))};
}

CD_SIMD void cd_ops_dropout(float *x, size_t n, size_t w, size_t row0, const cd_dropout *d) {
    const uint32_t below = d->below;
    const float scale = d->scale;
    if (!below) return;
    for (size_t i = 0; i < n; i++, x += w) {
        const uint32_t row = cd_drop_row(d, row0 + i);
        for (size_t c = 0; c < w; c++) x[c] = cd_drop_keep(row, c, below) ? x[c] * scale : 0;
    }
}

CD_SIMD void cd_ops_bias(float *x, size_t n, size_t w, const float *b) {
    for (size_t i = 0; i < n; i++, x += w)
        for (size_t c = 0; c < w; c++) x[c] += b[c];
}

CD_SIMD void cd_ops_axpy(float *y, float f, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] += f * x[i];
}

CD_SIMD void cd_ops_colsum(const float *x, size_t n, size_t w, float *sum) {
    for (size_t i = 0; i < n; i++, x += w)
        for (size_t c = 0; c < w; c++) sum[c] += x[c];
}

/* One row: bias, and dropout where there is one. */
CD_INLINE void add_bias(float *x, const float *b, size_t w) {
    if (b)
        for (size_t c = 0; c < w; c++) x[c] += b[c];
}
CD_INLINE void drop_row(float *x, size_t w, uint32_t row, size_t col0, uint32_t below,
                        float scale) {
    if (below)
        for (size_t c = 0; c < w; c++) x[c] = cd_drop_keep(row, col0 + c, below) ? x[c] * scale : 0;
}

CD_SIMD void cd_ops_residual(float *x, size_t n, size_t w, const float *b, const float *r,
                             size_t row0, const cd_dropout *d) {
    const uint32_t below = d->below;
    const float scale = d->scale;
    for (size_t i = 0; i < n; i++, x += w, r += w) {
        const uint32_t row = below ? cd_drop_row(d, row0 + i) : 0;
        if (!below)
            for (size_t c = 0; c < w; c++) x[c] = x[c] + b[c] + r[c];
        else
            for (size_t c = 0; c < w; c++)
                x[c] = (cd_drop_keep(row, c, below) ? (x[c] + b[c]) * scale : 0) + r[c];
    }
}

/* ---- ReLU ---- */
/* y = 0 means "negative or dropped", which is all that backward needs to know. */
CD_SIMD void cd_ops_relu(float *x, size_t n, size_t w, size_t ld, const float *b, size_t row0,
                         size_t col0, const cd_dropout *d) {
    const uint32_t below = d->below;
    const float scale = d->scale;
    for (size_t i = 0; i < n; i++, x += ld) {
        const uint32_t row = below ? cd_drop_row(d, row0 + i) : 0;
        add_bias(x, b, w);
        if (!below)
            for (size_t c = 0; c < w; c++) x[c] = x[c] > 0 ? x[c] : 0;
        else
            for (size_t c = 0; c < w; c++)
                x[c] = x[c] > 0 && cd_drop_keep(row, col0 + c, below) ? x[c] * scale : 0;
    }
}

/* y > 0 exactly where the input was positive and kept, so the draw of dropout need not be
 * repeated. */
CD_SIMD void cd_ops_relu_back(float *dy, const float *y, size_t n, size_t w, size_t ld,
                              const cd_dropout *d, float *db) {
    const float scale = d->scale;
    for (size_t i = 0; i < n; i++, dy += ld, y += ld) {
        if (db)
            for (size_t c = 0; c < w; c++) {
                const float v = y[c] > 0 ? dy[c] * scale : 0;
                dy[c] = v;
                db[c] += v;
            }
        else
            for (size_t c = 0; c < w; c++) dy[c] = y[c] > 0 ? dy[c] * scale : 0;
    }
}

/* ---- GELU: x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3) ---- */
#define GELU_A 1.59576912f   /* 2 sqrt(2/pi) */
#define GELU_B 0.0713548162f /* GELU_A * 0.044715 */

CD_INLINE float sigmoid2u(float x) {
    return 1.0f / (1.0f + cd_expf(-(GELU_A * x + GELU_B * (x * x * x))));
}

CD_SIMD void cd_ops_gelu(float *x, float *pre, size_t n, size_t w, size_t ld, const float *b,
                         size_t row0, size_t col0, const cd_dropout *d) {
    const uint32_t below = d->below;
    const float scale = d->scale;
    for (size_t i = 0; i < n; i++, x += ld) {
        const uint32_t row = below ? cd_drop_row(d, row0 + i) : 0;
        add_bias(x, b, w);
        if (pre) memcpy(pre + i * ld, x, w * sizeof *x);
        for (size_t c = 0; c < w; c++) x[c] *= sigmoid2u(x[c]);
        drop_row(x, w, row, col0, below, scale);
    }
}

/* d/dx of x s(u(x)), s the sigmoid and u = A x + B x^3: s + x s (1 - s) u'. */
CD_SIMD void cd_ops_gelu_back(float *dy, const float *pre, size_t n, size_t w, size_t ld,
                              size_t row0, size_t col0, const cd_dropout *d, float *db) {
    const uint32_t below = d->below;
    const float scale = d->scale;
    for (size_t i = 0; i < n; i++, dy += ld, pre += ld) {
        const uint32_t row = below ? cd_drop_row(d, row0 + i) : 0;
        drop_row(dy, w, row, col0, below, scale);
        for (size_t c = 0; c < w; c++) {
            const float x = pre[c], s = sigmoid2u(x);
            dy[c] *= s + x * s * (1.0f - s) * (GELU_A + 3.0f * GELU_B * x * x);
        }
        if (db) add_bias(db, dy, w);
    }
}

/* ---- ELU ---- */
CD_SIMD void cd_ops_elu(float *x, size_t n, size_t w, size_t ld, const float *b, size_t row0,
                        size_t col0, const cd_dropout *d) {
    const uint32_t below = d->below;
    const float scale = d->scale;
    for (size_t i = 0; i < n; i++, x += ld) {
        const uint32_t row = below ? cd_drop_row(d, row0 + i) : 0;
        add_bias(x, b, w);
        for (size_t c = 0; c < w; c++) {
            const float e = cd_expf(x[c]) - 1.0f;
            x[c] = x[c] > 0 ? x[c] : e;
        }
        drop_row(x, w, row, col0, below, scale);
    }
}

/* Its slope below 0 is y + 1, of the y before dropout. */
CD_SIMD void cd_ops_elu_back(float *dy, const float *y, size_t n, size_t w, size_t ld,
                             const cd_dropout *d, float *db) {
    const float scale = d->scale, zero = d->below ? 0 : scale;
    for (size_t i = 0; i < n; i++, dy += ld, y += ld) {
        for (size_t c = 0; c < w; c++) dy[c] *= y[c] > 0 ? scale : y[c] < 0 ? y[c] + scale : zero;
        if (db) add_bias(db, dy, w);
    }
}

CD_SIMD void cd_ops_exp(float *x, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = cd_expf(x[i]);
}
