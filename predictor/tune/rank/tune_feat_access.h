/* tune_feat_access -- which loops of a program touch which buffers, as AutoTVM's features count it.
 *
 *   for i (8)                    loop 0   length 8, level 1, topdown 8, bottomup 32
 *     for j (4)                  loop 1   length 4, level 2, topdown 32, bottomup 4
 *       C[i, j] = A[i, j]*2      access C_0, A_0; in loop 0: stride 4, count 32, in loop 1: stride 1, count 4
 *
 *   (1) loops are in the order of the nest, those of extent 1 among them; a virtual thread that was met
 *       before is no new loop;
 *   (2) strides are those of the buffer laid out row by row: a parameter whole, others as much as is realized;
 *   (3) the touches of a loop are in the order of their accesses' names, byte by byte;
 *   (4) stride 0: the index does not use the loop. Of an index that is no sum of products, the literal by
 *       which a variable is multiplied, else 1.
 * Everything lives until the next walk. One thread. */
#ifndef CD_TUNE_FEAT_ACCESS_H
#define CD_TUNE_FEAT_ACCESS_H
#include "base/core/core.h"
#include "features/program/program.h"

/* autotvm's kinds of loops, in its order. */
typedef enum cd_tune_loop_kind {
    CD_TUNE_BLOCK_X, CD_TUNE_BLOCK_Y, CD_TUNE_BLOCK_Z, CD_TUNE_THREAD_X, CD_TUNE_THREAD_Y, CD_TUNE_THREAD_Z,
    CD_TUNE_UNROLLED, CD_TUNE_VECTORIZED, CD_TUNE_PARALLEL, CD_TUNE_SERIAL, CD_TUNE_VTHREAD, CD_TUNE_LOOP_KINDS
} cd_tune_loop_kind;

typedef struct cd_tune_feat_access {
    uint32_t access;
    double stride;
    double count, reuse;        /* of this loop and those in it: steps that move the access, that do not */
    double thread_count, thread_reuse; /* by how much more than without the threads right below; 0: not above such */
    struct cd_tune_feat_access *next; /* of the loop */
} cd_tune_feat_access;

typedef struct cd_tune_loop {
    cd_tune_loop_kind kind;
    int32_t level;              /* 1: outermost */
    uint32_t var;
    double length, topdown, bottomup; /* -1: touches nothing */
    double n_add, n_mul, n_div; /* float operations right inside */
    cd_tune_feat_access *touch, **last;
} cd_tune_loop;

typedef struct cd_tune_access {
    const char *name;           /* "A.shared_2" */
    size_t n_raw;               /* of these letters "A" */
    uint32_t depth;
    cd_tune_feat_access *touch;       /* (depth) outermost loop first */
    const uint32_t *loop;       /* (depth) */
} cd_tune_access;

typedef struct cd_tune_touches {
    cd_arena a;
    cd_tune_loop *loop;         /* (n_loop) */
    cd_tune_access *access;     /* (n_access) in the order of the nest */
    uint32_t *by_name;          /* (n_access) which, in the order of names */
    uint32_t n_loop, n_access, cap_loop, cap_access;
} cd_tune_touches;

void cd_tune_touches_free(cd_tune_touches *t); /* zeroed is fine */
/* Errors: ENOMEM. */
cdmpp_status cd_tune_touches_walk(cd_tune_touches *t, const cd_nest *nest, cdmpp_err *err);
#endif
