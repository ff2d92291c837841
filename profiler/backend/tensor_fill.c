/* Fills buffers with numbers from a counter-based generator: element i of buffer k depends on k and
 * i alone, so that devices and threads can fill parts in any order. */
#include "profiler/backend/backend.h"

#include <math.h>
#include <string.h>

static uint64_t draw(uint32_t k, uint64_t i) { return cd_rng_at(0xf111ULL + k, i); }
static float real_of(uint64_t r) { return 0.25f + 0.75f * (float)(r >> 40) * 0x1p-24f; }

/* Positive normal numbers in [0.25, 1): the exponent needs no care. Rounded down. */
static uint16_t half_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint16_t)((((u >> 23) - 112) << 10) | (u >> 13 & 0x3ff));
}

static uint16_t bfloat_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint16_t)(u >> 16);
}

static bool fill_reals(unsigned bits, bool brain, uint32_t k, uint64_t first, size_t n, void *to) {
    uint16_t *h = to;
    float *f = to;
    double *d = to;
    for (size_t i = 0; i < n; i++) {
        const float x = real_of(draw(k, first + i));
        if (bits == 16) h[i] = brain ? bfloat_of(x) : half_of(x);
        else if (bits == 32) f[i] = x;
        else if (bits == 64) d[i] = (double)x;
        else return false;
    }
    return true;
}

static bool fill_integers(unsigned bytes, uint32_t k, uint64_t first, size_t n, unsigned char *to) {
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) return false;
    memset(to, 0, n * bytes);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const size_t low = 0;
#else
    const size_t low = bytes - 1;
#endif
    for (size_t i = 0; i < n; i++) to[i * bytes + low] = (unsigned char)(draw(k, first + i) >> 63);
    return true;
}

bool cd_tensor_fill(cd_dtype type, uint32_t k, uint64_t first, size_t n, void *to) {
    if (cd_expr_dtype_is_float(type))
        return fill_reals(cd_expr_dtype_bits(type), cd_expr_dtype_kind(type) == CD_T_BFLOAT, k,
                          first, n, to);
    return cd_expr_dtype_kind(type) <= CD_T_UINT &&
           fill_integers(cd_expr_dtype_bytes(type), k, first, n, to);
}

/* The fan-in is taken as the number of elements over the widest dimension. A uniform number within
 * 0.375 has a deviation of 0.217, hence 4.6. */
bool cd_tensor_fill_weight(cd_dtype type, uint32_t k, uint32_t rank, const int64_t *shape,
                           void *to) {
    int64_t widest = 1, n = 1;
    float *v = to;
    for (uint32_t d = 0; d < rank; d++) {
        widest = shape[d] > widest ? shape[d] : widest;
        n *= shape[d];
    }
    if (!cd_tensor_fill(type, k, 0, (size_t)n, to)) return false;
    /* uniform within 0.375 has a deviation of 0.217 */
    const float scale = 4.6f / sqrtf(fmaxf(1, (float)n / (float)widest));
    for (int64_t i = 0; type == CD_F32 && rank > 1 && i < n; i++) v[i] = (v[i] - 0.625f) * scale;
    return true;
}
