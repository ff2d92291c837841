/* plan_run_move -- private to plan_run*.c: where pieces of tensors are, and how they get to where
 * they are read.
 *
 *   tensor y (56 rows)     memory 0: whole buffer, rows 0..20 by action 3, rows 20..56 by action 9
 *                          memory 1: a buffer of rows 19..56, by action 8
 *   read rows 19..30 in memory 1    a window of the second: after 8
 *   read rows 0..30 in memory 1     a run of the whole: rows 0..19 are copied from memory 0, rows
 *                                   19..30 within memory 1
 *
 *   (1) a run goes to its place in the memory's whole buffer, another box has a buffer of its own;
 *   (2) what is in a memory already is never fetched again: a copy is as small as it can be;
 *   (3) between memories other than 0 it goes by memory 0. One thread. */
#ifndef CD_PLAN_RUN_MOVE_INTERNAL_H
#define CD_PLAN_RUN_MOVE_INTERNAL_H
#include "predictor/partition/run/plan_run_internal.h"

typedef struct cd_plan_exec_place {
    struct cd_plan_exec_place *next; /* in the order of the actions */
    /* action: that puts it there; CD_PLAN_EXEC_NONE: it is there before a pass */
    uint32_t buffer, action;
    /* what the buffer holds of the tensor, row-major; what of it this is */
    cd_box store, box;
} cd_plan_exec_place;

typedef struct cd_plan_exec_tensor {
    const char *name;
    uint32_t rank;
    int64_t shape[CD_BOX_RANK];
    cd_dtype dtype;
    size_t size; /* of an element */
    cd_plan_exec_place *place, **last;
    /* its buffers, by memory (slot); CD_PLAN_EXEC_NONE: none yet */
    uint32_t whole[CD_MACHINE_DEVICES + 1];
} cd_plan_exec_tensor;

typedef struct cd_plan_exec_maker {
    cd_plan_exec *m;
    const struct cd_plan_run *r;
    const cd_plan_run_options *a;
    uint32_t n_tensor, op;       /* op: the one that is being made ready */
    cd_plan_exec_tensor *tensor; /* (n_tensor) the network's, then partial sums */
    uint32_t *after;             /* (n_after, cap_after) what the next action comes after */
    uint32_t n_after, cap_after;
} cd_plan_exec_maker;

/* A box of a tensor as a definition sees it: `shape` may be another one than the tensor's. */
typedef struct cd_plan_exec_view {
    uint32_t tensor, rank;
    const int64_t *shape; /* (rank) */
    const cd_box *box;
} cd_plan_exec_view;

#endif
