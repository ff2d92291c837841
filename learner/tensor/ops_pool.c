/* From the rows of a program to one row: mean, maximum and sum, slots, or the logarithm of a sum of
 * exponentials. */
#include <math.h>
#include <string.h>

#include "learner/tensor/ops_math.h"

/* The maximum is updated after its row number, for the number compares with the old maximum. The
 * first of equal ones counts. */
CD_SIMD static void pool_one(const float *x, size_t n, size_t w, float *y, uint32_t *arg) {
    float *mean = y, *most = y + w, *sum = y + 2 * w;
    for (size_t c = 0; c < w; c++) sum[c] = most[c] = x[c];
    if (arg)
        for (size_t c = 0; c < w; c++) arg[c] = 0;
    for (size_t i = 1; i < n; i++) {
        x += w;
        for (size_t c = 0; c < w; c++) sum[c] += x[c];
        if (arg)
            for (size_t c = 0; c < w; c++) arg[c] = x[c] > most[c] ? (uint32_t)i : arg[c];
        for (size_t c = 0; c < w; c++) most[c] = x[c] > most[c] ? x[c] : most[c];
    }
    for (size_t c = 0; c < w; c++) mean[c] = sum[c] / (float)n;
}

void cd_ops_pool(const float *x, const uint32_t *ptr, size_t p0, size_t p1, size_t w, float *y,
                 uint32_t *arg) {
    for (size_t p = p0; p < p1; p++)
        pool_one(x + (size_t)ptr[p] * w, ptr[p + 1] - ptr[p], w, y + p * 3 * w,
                 arg ? arg + p * w : NULL);
}

CD_SIMD static void pool_one_back(const float *dy, size_t n, size_t w, const uint32_t *arg,
                                  float *dx) {
    const float *mean = dy, *most = dy + w, *sum = dy + 2 * w;
    for (size_t i = 0; i < n; i++, dx += w)
        for (size_t c = 0; c < w; c++)
            dx[c] = sum[c] + mean[c] / (float)n + (arg[c] == (uint32_t)i ? most[c] : 0);
}

void cd_ops_pool_back(const float *dy, const uint32_t *ptr, size_t p0, size_t p1, size_t w,
                      const uint32_t *arg, float *dx) {
    for (size_t p = p0; p < p1; p++)
        pool_one_back(dy + p * 3 * w, ptr[p + 1] - ptr[p], w, arg + p * w, dx + (size_t)ptr[p] * w);
}

CD_SIMD static void mean_one(const float *x, size_t n, size_t w, float *y) {
    for (size_t c = 0; c < w; c++) y[c] = 0;
    for (size_t i = 0; i < n; i++, x += w)
        for (size_t c = 0; c < w; c++) y[c] += x[c];
    for (size_t c = 0; c < w; c++) y[c] /= (float)n;
}

void cd_ops_mean(const float *x, const uint32_t *ptr, size_t p0, size_t p1, size_t w, float *y) {
    for (size_t p = p0; p < p1; p++)
        mean_one(x + (size_t)ptr[p] * w, ptr[p + 1] - ptr[p], w, y + p * w);
}

void cd_ops_mean_back(const float *dy, const uint32_t *ptr, size_t p0, size_t p1, size_t w,
                      float *dx) {
    for (size_t p = p0; p < p1; p++) {
        const float share = 1.0f / (float)(ptr[p + 1] - ptr[p]);
        for (size_t i = ptr[p]; i < ptr[p + 1]; i++)
            for (size_t c = 0; c < w; c++) dx[i * w + c] += share * dy[p * w + c];
    }
}

/* ---- slots ---- */
static size_t slot(size_t l, size_t slots) { return l < slots ? l : slots - 1; }

void cd_ops_flatten(const float *x, const uint32_t *ptr, size_t p0, size_t p1, size_t w,
                    size_t slots, float *y) {
    for (size_t p = p0; p < p1; p++) {
        const size_t n = ptr[p + 1] - ptr[p], full = n < slots ? n : slots;
        float *to = y + p * slots * w;
        memcpy(to, x + (size_t)ptr[p] * w, full * w * sizeof *to);
        memset(to + full * w, 0, (slots - full) * w * sizeof *to);
        for (size_t l = slots; l < n; l++)
            for (size_t c = 0; c < w; c++) to[(slots - 1) * w + c] += x[(ptr[p] + l) * w + c];
    }
}

void cd_ops_flatten_back(const float *dy, const uint32_t *ptr, size_t p0, size_t p1, size_t w,
                         size_t slots, float *dx) {
    for (size_t p = p0; p < p1; p++)
        for (size_t l = 0; l < ptr[p + 1] - ptr[p]; l++)
            memcpy(dx + (ptr[p] + l) * w, dy + (p * slots + slot(l, slots)) * w, w * sizeof *dx);
}

/* ---- sums of exponentials ---- */
/* The largest value is taken out of the sum, so nothing overflows. */
void cd_ops_lse(const float *x, const uint32_t *ptr, size_t p0, size_t p1, size_t w, float t,
                float *y) {
    for (size_t p = p0; p < p1; p++)
        for (size_t c = 0; c < w; c++) {
            float most = -INFINITY, sum = 0;
            for (size_t i = ptr[p]; i < ptr[p + 1]; i++) most = fmaxf(most, x[i * w + c]);
            for (size_t i = ptr[p]; i < ptr[p + 1]; i++) sum += expf(t * (x[i * w + c] - most));
            y[p * w + c] = most + logf(sum) / t;
        }
}

void cd_ops_lse_back(const float *dy, const float *x, const float *y, const uint32_t *ptr,
                     size_t p0, size_t p1, size_t w, float t, float *dx) {
    for (size_t p = p0; p < p1; p++)
        for (size_t i = ptr[p]; i < ptr[p + 1]; i++)
            for (size_t c = 0; c < w; c++)
                dx[i * w + c] = dy[p * w + c] * expf(t * (x[i * w + c] - y[p * w + c]));
}
