/* ops_math -- small pieces that the loops of ops_*.c inline. */
#ifndef CD_OPS_MATH_H
#define CD_OPS_MATH_H
#include <string.h>

#include "learner/tensor/tensor.h"

#define CD_INLINE static inline __attribute__((always_inline))

/* Sums run in 16 lanes that are added up in a fixed order at the end: the one
 * order that vectors of 4, 8 and 16 floats can all keep. */
enum { CD_LANES = 16 };

/* The sum of the lanes. */
CD_INLINE float cd_lanes_sum(const float a[CD_LANES]) {
    float s[8];
    for (int i = 0; i < 8; i++) s[i] = a[i] + a[i + 8];
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* Hash of 32 bits to 32 bits in which every input bit reaches every output bit
 * (multiply and xor-shift; the constants are lowbias32's). */
CD_INLINE uint32_t cd_hash32(uint32_t h) {
    h ^= h >> 16;
    h *= 0x7feb352du;
    h ^= h >> 15;
    h *= 0x846ca68bu;
    return h ^ h >> 16;
}
/* What dropout draws for a row, and whether an element of it stays. */
CD_INLINE uint32_t cd_drop_row(const cd_dropout *d, size_t row) {
    return (uint32_t)(cd_rng_at(d->key, row) >> 32);
}
/* Does element (row, col) stay? `row`: of cd_drop_row. */
CD_INLINE bool cd_drop_keep(uint32_t row, size_t col, uint32_t below) {
    return cd_hash32(row + (uint32_t)col * 0x9e3779b9u) >= below;
}

/* e^x: x = k ln 2 + r, a polynomial for e^r, k into the exponent. A number rounded by adding
 * `magic` has k in its last bits. */
CD_INLINE float cd_expf(float x) {
    const float lo = x < -87.0f ? -87.0f : x, v = lo > 88.0f ? 88.0f : lo;
    const float magic = 12582912.0f, rounded = v * 1.44269504f + magic, k = rounded - magic;
    const float r = (v - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = (p * r) * r + r + 1.0f;
    uint32_t bits;
    float scale;
    memcpy(&bits, &rounded, sizeof bits);
    bits = (bits + 127) << 23; /* what magic adds is shifted out */
    memcpy(&scale, &bits, sizeof scale);
    return x < -87.0f ? 0.0f : p * scale;
}

/* tanh: near 0 a polynomial, because 1 - 2/(1 + e^2x) loses its digits there. */
CD_INLINE float cd_tanhf(float x) {
    const float z = x * x, far = 1.0f - 2.0f / (1.0f + cd_expf(2.0f * x));
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    return z < 0.390625f ? x + x * (z * p) : far;
}

/* 1 / (1 + e^-x) */
CD_INLINE float cd_sigmoidf(float x) { return 1.0f / (1.0f + cd_expf(-x)); }
#endif
