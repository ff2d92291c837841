/* The numbers of one store, and how they become the columns of a row. */
#ifndef CD_LEAFROW_H
#define CD_LEAFROW_H
#include "features/rows/access.h"
#include "features/rows/cols.h"
#include "features/expr/expr.h"

enum { CD_N_ANN = 3, CD_N_CURVE = 10 };

/* Loops of one kind around the store. */
typedef struct cd_annotation {
    float num, prod, len;
    bool any;
} cd_annotation;

/* One store's numbers; those that need no other store are final columns. */
typedef struct cd_store_set {
    float count[CD_CNT_COUNT];
    cd_annotation ann[CD_N_ANN];    /* vectorize, unroll, parallel */
    float gpu[8];             /* is_gpu, block x y z, thread x y z, vthread */
    float block[CD_MAX_BUFFERS * CD_BLOCK];
    float curve[CD_N_CURVE];
    float outer_prod, n_loop, unroll;
} cd_store_set;

/* sign(x) * log2(|x| + 1) in float32 */
float cd_feature_slog(float x);
/* Five blocks of the store's buffers; `out` is zeroed. */
void cd_feature_row_blocks(const cd_store_ctx *c, float *out);
/* Arithmetic intensity at ten points; ops: operations of all executions; `out` is zeroed. */
void cd_feature_row_curve(const cd_store_ctx *c, double ops, float *out);
/* The 164 columns. alloc: size, prod, outer_prod, inner_prod. */
void cd_feature_row_put(float *out, const cd_store_set *s, const float *alloc);
#endif
