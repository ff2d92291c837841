/* shuffle_rows.h -- rows as TVM might have given them: those of a program in another order, and so
 * the buffers of a row with the same lines and bytes. */
#ifndef SHUFFLE_ROWS_H
#define SHUFFLE_ROWS_H
#include <string.h>

#include "base/core/core.h"
#include "features/rows/rows.h"

static inline size_t shuffle_below(uint64_t seed, uint64_t *at, size_t n) {
    return (size_t)(cd_rng_unit(seed, (*at)++) * (double)n);
}

static inline void shuffle_swap(float *a, float *b, size_t n) {
    float x[CD_N_COL];
    memcpy(x, a, n * sizeof *x);
    memcpy(a, b, n * sizeof *x);
    memcpy(b, x, n * sizeof *x);
}

static inline void shuffle_blocks(float *row, uint64_t seed, uint64_t *at) {
    enum { BYTES = 3, LINES = 5 };
    float *b = row + CD_COL_B0_READ;
    for (size_t i = 0; i < CD_MAX_BUFFERS; i++)
        for (size_t k = i + 1; k < CD_MAX_BUFFERS; k++) {
            float *x = b + i * CD_BLOCK, *y = b + k * CD_BLOCK;
            if (x[LINES] == y[LINES] && x[BYTES] == y[BYTES] && shuffle_below(seed, at, 2))
                shuffle_swap(x, y, CD_BLOCK);
        }
}

/* rows (n, CD_N_COL) of one program. */
static inline void shuffle_rows(float *row, size_t n, uint64_t seed) {
    uint64_t at = 0;
    for (size_t k = 0; k < n; k++) shuffle_blocks(row + k * CD_N_COL, seed, &at);
    for (size_t k = n; k > 1; k--) {
        const size_t j = shuffle_below(seed, &at, k);
        if (j != k - 1) shuffle_swap(row + j * CD_N_COL, row + (k - 1) * CD_N_COL, CD_N_COL);
    }
}
#endif
