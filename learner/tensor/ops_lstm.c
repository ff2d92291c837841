/* One step of an LSTM for many sequences at once: the matrix products are done elsewhere, here are
 * the gates. */
#include "learner/tensor/ops_math.h"

/* One row of z holds the four gates of a sequence, w floats each. */
CD_SIMD void cd_ops_lstm(float *z, size_t n, size_t w, const float *b, const float *c0, float *c,
                         float *h) {
    for (size_t r = 0; r < n; r++, z += 4 * w, c += w, h += w) {
        float *in = z, *forget = z + w, *cell = z + 2 * w, *out = z + 3 * w;
        for (size_t i = 0; i < w; i++) {
            in[i] = cd_sigmoidf(in[i] + b[i]);
            cell[i] = cd_tanhf(cell[i] + b[2 * w + i]);
            c[i] = in[i] * cell[i];
        }
        for (size_t i = 0; i < w; i++) forget[i] = cd_sigmoidf(forget[i] + b[w + i]);
        if (c0)
            for (size_t i = 0; i < w; i++) c[i] += forget[i] * c0[r * w + i];
        for (size_t i = 0; i < w; i++) {
            out[i] = cd_sigmoidf(out[i] + b[3 * w + i]);
            h[i] = out[i] * cd_tanhf(c[i]);
        }
    }
}

/* A row; the compiler must know that the arrays are apart. */
CD_INLINE void row_back(float *restrict in, float *restrict forget, float *restrict cell,
                        float *restrict out, size_t w, const float *restrict c,
                        const float *restrict dh, float *restrict dc) {
    for (size_t i = 0; i < w; i++) {
        const float t = cd_tanhf(c[i]), o = out[i], g = in[i], k = cell[i], f = forget[i],
                    d = dc[i] + dh[i] * o * (1.0f - t * t);
        out[i] = dh[i] * t * o * (1.0f - o);
        in[i] = d * k * g * (1.0f - g);
        cell[i] = d * g * (1.0f - k * k);
        forget[i] = d * f * (1.0f - f); /* times c0 */
        dc[i] = d * f;
    }
}

CD_SIMD void cd_ops_lstm_back(float *z, size_t n, size_t w, const float *c0, const float *c,
                              const float *dh, float *dc) {
    for (size_t r = 0; r < n; r++, z += 4 * w, c += w, dh += w, dc += w) {
        float *forget = z + w;
        row_back(z, forget, z + 2 * w, z + 3 * w, w, c, dh, dc);
        if (c0)
            for (size_t i = 0; i < w; i++) forget[i] *= c0[r * w + i];
        else
            for (size_t i = 0; i < w; i++) forget[i] = 0;
    }
}
