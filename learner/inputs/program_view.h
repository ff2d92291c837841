/* program_view -- programs as a model sees them: borrowed ragged arrays, one index base.
 *
 *   program i --+-- rows   row_ptr[i] .. row_ptr[i+1]        of row
 *               +-- leaves leaf_ptr[i] .. leaf_ptr[i+1]      of leaf_pos, leaf_node
 *               |     leaf l: cd_program_view_leaf, its 164 columns
 *               |             loops path_ptr[l] .. path_ptr[l+1], outermost first
 *               +-- tree   tree_ptr[i] .. tree_ptr[i+1]      pre-order numbers, -1 closes a node
 *               +-- steps  step_ptr[i] .. step_ptr[i+1]      of step: numbers, cd_step_codes in
 *               |                                            features/task/task.h
 *               +-- facts, analytic  CD_N_FACTS and CD_N_ANALYTIC numbers (facts_input.h);
 *               |                    all of the view of one set of facts
 *               +-- device[i], flop[i]
 *
 *   (1) offsets are absolute: the view of programs p .. q of a data set is the same arrays with
 *       row_ptr + p, leaf_ptr + p, tree_ptr + p, step_ptr + p, device + p, flop + p, and so facts
 *       and analytic by their widths;
 *   (2) a program has at least one row; one without leaves (rows alone were given)
 *       has leaf_ptr[i] == leaf_ptr[i+1], and only the models that need rows score it;
 *   (3) leaf columns are those of a row (features/rows/leaf_cols.def), not yet scaled.
 * Nothing here is owned; any thread may read. Who reads many programs lets the spool rest now and
 * then. */
#ifndef CD_PROGRAM_VIEW_H
#define CD_PROGRAM_VIEW_H
#include <stddef.h>
#include <stdint.h>

#include "features/rows/rows.h"

typedef struct cd_program_view {
    size_t n;
    const float *row;           /* (n_row, 164) */
    const int64_t *row_ptr;     /* (n+1) */
    const int64_t *leaf_ptr;    /* (n+1); NULL: no program has leaves */
    const float *const *leaf_x; /* (n_leaf) where their columns are; NULL: leaf_row says it */
    /* (n_leaf) numbers of `row`, or ~ numbers of `own`; without pointers several processes can
     * share it */
    const int64_t *leaf_row;
    const float *own;           /* (n_own, 164) */
    const int32_t *leaf_pos;    /* (n_leaf) index of the leaf in the program's tree list */
    const int32_t *leaf_node;   /* (n_leaf) its node number in pre-order */
    const int64_t *path_ptr;    /* (n_leaf+1) */
    const int64_t *path_extent; /* trip counts */
    /* cd_loop_kind: 0 serial 1 parallel 2 vectorized 3 unrolled 4 thread axis */
    const uint8_t *path_kind;
    const int64_t *tree_ptr; /* (n+1) */
    const int32_t *tree;
    const int64_t *step_ptr; /* (n+1); NULL: no program has steps */
    const int32_t *step;
    /* (n, CD_N_FACTS) facts of loop nests; NULL: no program has them */
    const float *facts;
    /* (n, CD_N_ANALYTIC) analytic times on the program's device; NaN where a program has no facts;
     * NULL with facts */
    const float *analytic;
    int facts_set; /* cd_facts_set: which facts they are */
    /* groups of facts that trees do not see, a bit each: CD_FACTS_GROUPS of facts_input.h */
    unsigned facts_without;
    const uint32_t *device; /* (n) number of the device in the model */
    const double *flop;     /* (n) operations of the task, -1 unknown; NULL: all unknown */
    struct cd_spool *spool; /* where the arrays are (base/core/spool.h); NULL: in memory */
} cd_program_view;

/* The columns of leaf l. */
static inline const float *cd_program_view_leaf(const cd_program_view *v, size_t l) {
    if (v->leaf_x) return v->leaf_x[l];
    return v->leaf_row[l] >= 0 ? v->row + v->leaf_row[l] * CD_N_COL
                               : v->own + ~v->leaf_row[l] * CD_N_COL;
}
#endif
