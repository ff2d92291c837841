/* Sobol's sequence in up to 40 dimensions: points that fill a space more evenly than random
 * ones. */
#include "learner/hpo/hpo_internal.h"

#include <stdbool.h>

/* Which of 256 draws gives axis d its initial numbers. Found one axis after another: the
 * least sum over earlier axes and 2^m points, m = 2..12, of 4^t / 2^m, where t tells how
 * far the pair is from (2) of the header. The worst t of all pairs of the first 1,024
 * points is 6; with the first draw everywhere it would be 9. */
static const uint8_t pick[CD_HPO_SOBOL_DIMS] = {
    0,  0,  0,  1,   4,   16, 147, 126, 82,  122, 14,  12,  104, 62,  235, 148, 58, 22, 156, 204,
    30, 85, 19, 248, 107, 20, 66,  248, 159, 114, 186, 182, 98,  246, 240, 198, 34, 4,  12,  52};

/* x generates all 2^degree - 1 residues of the polynomial. */
static bool primitive(uint32_t poly, unsigned degree) {
    uint32_t x = 1;
    for (uint32_t k = 1; k < 1u << degree; k++) {
        x <<= 1;
        if (x >> degree & 1) x ^= poly;
        if (x == 1) return k == (1u << degree) - 1;
    }
    return false;
}

static void axis(uint32_t v[32], unsigned d, uint32_t poly, unsigned degree) {
    uint32_t m[33];
    for (unsigned k = 1; k <= 32; k++) {
        if (k <= degree) { /* odd and below 2^k, else free */
            m[k] = (uint32_t)(cd_rng_at(d, 64u * pick[d] + k) >> 40 & ((1u << k) - 1)) | 1;
        } else {
            m[k] = m[k - degree] ^ m[k - degree] << degree;
            for (unsigned i = 1; i < degree; i++)
                if (poly >> (degree - i) & 1) m[k] ^= m[k - i] << i;
        }
        v[k - 1] = m[k] << (32 - k);
    }
}

void cd_hpo_sobol_init(cd_hpo_sobol *s) {
    unsigned d = 1;
    for (unsigned k = 0; k < 32; k++) s->v[0][k] = 0x80000000u >> k;
    for (unsigned degree = 1; d < CD_HPO_SOBOL_DIMS; degree++)
        for (uint32_t poly = (1u << degree) + 1; poly < 2u << degree && d < CD_HPO_SOBOL_DIMS;
             poly += 2)
            if (primitive(poly, degree)) {
                axis(s->v[d], d, poly, degree);
                d++;
            }
}

uint32_t cd_hpo_sobol_digits(const cd_hpo_sobol *s, uint32_t i, unsigned d) {
    uint32_t x = 0;
    for (unsigned k = 0; i; k++, i >>= 1)
        if (i & 1) x ^= s->v[d][k];
    return x;
}

double cd_hpo_sobol_unit(const cd_hpo_sobol *s, uint64_t seed, uint32_t i, unsigned d) {
    const uint32_t x = cd_hpo_sobol_digits(s, i, d);
    const uint64_t stream = cd_rng_at(seed, d);
    uint32_t y = 0;
    /* node of the tree of digits: its depth and the digits before */
    for (unsigned k = 0; k < 32; k++) {
        const uint64_t node = (uint64_t)1 << k | (k ? x >> (32 - k) : 0);
        const uint32_t coin = (uint32_t)(cd_rng_at(stream, node) >> 63);
        y = y << 1 | ((x >> (31 - k) & 1) ^ coin);
    }
    return (double)y * 0x1p-32;
}
