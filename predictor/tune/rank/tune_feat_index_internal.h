/* tune_feat_index -- the stride of every variable in the flat index of an access.
 *
 *   A[i*4 + j, k] of A[32, 8]      i: 32, j: 8, k: 1
 *
 * The index is a sum of terms, each a variable or something else times a number; what the realized region
 * begins at is subtracted, so what both have vanishes. No memory of its own. */
#ifndef CD_TUNE_FEAT_INDEX_INTERNAL_H
#define CD_TUNE_FEAT_INDEX_INTERNAL_H
#include "features/program/program.h"

enum { CD_TUNE_INDEX_TERMS = 48 }; /* what is beyond is not looked at; the reference sets need 19 */

typedef struct cd_tune_feat_index {
    uint32_t n_term, n_var;
    struct {
        const cd_expr *e;
        double times;
    } term[CD_TUNE_INDEX_TERMS];
    struct {
        uint32_t var;
        double stride;
    } var[CD_TUNE_INDEX_TERMS];
} cd_tune_feat_index;

/* x (n): where; region: (min, extent) of each dimension, or NULL: all of shape (n). */
void cd_tune_feat_index_read(cd_tune_feat_index *w, const cd_expr *const *x, uint32_t n, const cd_expr *const *region, const int64_t *shape);
double cd_tune_feat_index_stride(const cd_tune_feat_index *w, uint32_t var); /* 0: not there */
#endif
