/* What the files of features/rows share among themselves. */
#ifndef CD_FEATURES_ROWS_INTERNAL_H
#define CD_FEATURES_ROWS_INTERNAL_H
#include "features/rows/rows.h"

/* Which loops an expression depends on, as bits.
 *
 * A loop's bit is its depth in the nest. Masks are memoised by expression until a
 * variable turns up at another depth: a thread of a reduction is one loop in the
 * nest that clears the element and in the one that adds up. Loops deeper than 62
 * share the last bit: there the answer may be "yes" too often. */

#define CD_LOOPMASK_LAST 63U

typedef struct cd_loopmask_slot {
    uint64_t mask;
    uint32_t stamp;
} cd_loopmask_slot;

typedef struct cd_loopmask {
    cd_loopmask_slot *memo, *var; /* by expression id; by variable number */
    uint32_t cap_memo, cap_var, epoch, memo_epoch;
    bool oom;
} cd_loopmask;

void cd_loopmask_begin(cd_loopmask *m); /* a new program */
void cd_loopmask_free(cd_loopmask *m);
/* The variable is that of the loop at this depth; the loops that `e` depends on. */
void cd_loopmask_set(cd_loopmask *m, const cd_expr *var, uint32_t depth);
uint64_t cd_loopmask_get(cd_loopmask *m, const cd_expr *e);
static inline uint64_t cd_loopmask_bit(uint32_t depth) {
    return (uint64_t)1 << (depth < CD_LOOPMASK_LAST ? depth : CD_LOOPMASK_LAST);
}

/* What one store reads and writes: touched regions, strides, reuse.
 *
 * Loops are numbered 0 (outermost) to n-1. Buffers of a store are kept in the
 * order of their first appearance; the stored one is number 0. Private to
 * leaf.c and access.c. */

enum { CD_ACC_READ, CD_ACC_WRITE, CD_ACC_READ_WRITE };
enum { CD_REUSE_LOOP, CD_REUSE_SERIAL, CD_REUSE_NONE };

typedef struct cd_loop {
    const cd_expr *var;
    /* as the nest has it; no literal where a reduction's extent depends on the element */
    const cd_expr *extent_e;
    int64_t extent;   /* the literal, or the largest value over all elements */
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
    uint32_t *slot, n_slot; /* vectors by their expressions + 1, where there are many */
    cd_bound *region;       /* (rank) bounds over all vectors at the loop at hand */
    uint64_t *mask, all;    /* (rank) loops that a dimension depends on; their union */
    int64_t elements;       /* touched by the loop at hand */
    /* results */
    float bytes, unique_bytes, lines, unique_lines, stride;
    uint8_t reuse;
    float reuse_iter, reuse_bytes, reuse_count;
} cd_access;

/* access.c -- one store's use of one buffer under one loop. */
typedef struct cd_touch {
    uint32_t bytes; /* of an element */
    uint32_t next;  /* entry of the same buffer */
    int64_t elements;
} cd_touch;
/* A buffer's entries: (n) from `first` on. */
typedef struct cd_touch_buffer {
    uint32_t tensor, first, last, n;
    float least; /* elements */
} cd_touch_buffer;
typedef struct cd_touch_list {
    cd_touch *p;
    uint32_t n, cap;
    cd_touch_buffer *buffer; /* (n_buffer) by first appearance */
    uint32_t n_buffer, cap_buffer;
    uint32_t *slot, n_slot; /* buffers by tensor + 1, where there are many */
    float sum_bytes, sum_element;
    bool summed;
} cd_touch_list;

/* No entries; keeps the memory. */
void cd_touch_clear(cd_touch_list *l);
void cd_touch_free(cd_touch_list *l);

typedef struct cd_store_ctx {
    cd_arena *arena;
    cd_expr_pool *pool;
    cd_analyzer *ana; /* bounds of loop variables */
    cd_loopmask *masks;
    const cd_tensors *tensors;
    int64_t cache_line;
    const cd_loop *loop; /* (n_loop), outermost first */
    uint32_t n_loop;
    float prod;           /* product of the extents */
    cd_touch_list *touch; /* by identity */
    bool oom;
    /* the store */
    /* (tensors) k with acc[k].tensor == tensor and k < n_acc; else anything */
    uint32_t *acc_of;
    cd_access *acc; /* (n_acc) */
    uint32_t n_acc, cap_acc;
    float *mem_log, *ops_log; /* (n_loop) innermost first: log2 of bytes and of operations */
} cd_store_ctx;

/* Collect the buffers of a store: `value` and the stored element. */
void cd_access_collect(cd_store_ctx *c, uint32_t tensor, const cd_expr *const *index,
                       const cd_expr *value);
/* Regions loop by loop: fills touch tables, mem_log, ops_log. ops: operations of one execution. */
void cd_access_regions(cd_store_ctx *c, double ops);
/* bytes .. reuse_count of every buffer. */
void cd_access_measure(cd_store_ctx *c);

/* The numbers of one store, and how they become the columns of a row. */

enum { CD_N_ANN = 3, CD_N_CURVE = 10 };

/* Loops of one kind around the store. */
typedef struct cd_annotation {
    float num, prod, len;
    bool any;
} cd_annotation;

/* One store's numbers; those that need no other store are final columns. */
typedef struct cd_store_set {
    float count[CD_CNT_COUNT];
    cd_annotation ann[CD_N_ANN]; /* vectorize, unroll, parallel */
    float gpu[8];                /* is_gpu, block x y z, thread x y z, vthread */
    float block[CD_MAX_BUFFERS * CD_BLOCK];
    float curve[CD_N_CURVE];
    float outer_prod, n_loop, unroll;
} cd_store_set;

/* Arithmetic intensity at ten points; ops: operations of all executions; `out` is zeroed. */
void cd_feature_row_curve(const cd_store_ctx *c, double ops, float *out);
#endif
