/* What one store reads and writes: touched regions, strides, reuse.
 *
 * Loops are numbered 0 (outermost) to n-1. Buffers of a store are kept in the
 * order of their first appearance; the stored one is number 0. Private to
 * leaf.c, access.c and feature_row.c. */
#ifndef CD_ACCESS_H
#define CD_ACCESS_H
#include "features/rows/leaf.h"
#include "features/rows/loopmask.h"

enum { CD_ACC_READ, CD_ACC_WRITE, CD_ACC_READ_WRITE };
enum { CD_REUSE_LOOP, CD_REUSE_SERIAL, CD_REUSE_NONE };

typedef struct cd_loop {
    const cd_expr *var;
    int64_t extent;
    int32_t identity; /* number of its touch table */
    uint8_t kind;     /* cd_loop_kind */
} cd_loop;

/* One buffer as one store uses it. */
typedef struct cd_access {
    uint32_t tensor;
    uint8_t type;
    cd_tensor_info info;
    const cd_expr *const **vec; /* (n_vec)(rank) index vectors */
    uint32_t n_vec, cap_vec;
    cd_bound *region;           /* (rank) bounds over all vectors at the loop at hand */
    uint64_t *mask, all;        /* (rank) loops that a dimension depends on; their union */
    int64_t elements;           /* touched by the loop at hand */
    /* results */
    float bytes, unique_bytes, lines, unique_lines, stride;
    uint8_t reuse;
    float reuse_iter, reuse_bytes, reuse_count;
} cd_access;

/* Touch table entry: one store under one loop. */
typedef struct cd_touch {
    uint32_t tensor;
    uint32_t bytes;   /* of an element */
    int64_t elements;
} cd_touch;
typedef struct cd_touch_list {
    cd_touch *p;
    uint32_t n, cap;
} cd_touch_list;

typedef struct cd_store_ctx {
    cd_arena *arena;
    cd_expr_pool *pool;
    cd_analyzer *ana;           /* bounds of loop variables */
    cd_loopmask *masks;
    const cd_tensors *tensors;
    int64_t cache_line;
    const cd_loop *loop;   /* (n_loop), outermost first */
    uint32_t n_loop;
    float prod;            /* product of the extents */
    cd_touch_list *touch;  /* by identity */
    bool oom;
    /* the store */
    cd_access *acc;        /* (n_acc) */
    uint32_t n_acc, cap_acc;
    float *mem_log, *ops_log; /* (n_loop) innermost first: log2 of bytes and of operations */
} cd_store_ctx;

/* Collect the buffers of a store: `value` and the stored element. */
void cd_access_collect(cd_store_ctx *c, uint32_t tensor, const cd_expr *const *index, const cd_expr *value);
/* Regions loop by loop: fills touch tables, mem_log, ops_log. ops: operations of one execution. */
void cd_access_regions(cd_store_ctx *c, double ops);
/* bytes .. reuse_count of every buffer. */
void cd_access_measure(cd_store_ctx *c);
#endif
