/* The door of features/rows: other rooms include this header and no other of the room.
 *
 * From a loop nest to numbers: one row of 164 columns per buffer, as TVM's auto_scheduler has them,
 * and one per store, the leaves of the compact AST (leaf.h). The table of columns with names, units
 * and meanings (cols.h). */
#ifndef CD_FEATURES_ROWS_DOOR_H
#define CD_FEATURES_ROWS_DOOR_H
#include <stddef.h>

#include "features/nest/nest.h"

/* cols -- the columns of a feature row: names, units, groups, meaning.
 * One table, leaf_cols.def, gives the enum, the HDF5 names and the manual
 * (docs/reference/columns.md). Read-only: any thread. */

/* CD_COL_FLOAT_MAD .. CD_COL_AUTO_UNROLL: index of a column in a row. The five
 * buffer blocks repeat every CD_COL_BUFFER_STRIDE columns from CD_COL_B0_READ. */
enum {
#define X(ID, name, unit, group, meaning) CD_COL_##ID,
#include "features/rows/leaf_cols.def"
    CD_COL_COUNT
};
#define CD_COL_BUFFER_STRIDE (CD_COL_B1_READ - CD_COL_B0_READ)
#define CD_N_COL             164
/* of the meaning: raise it when a value changes under the same name */
#define CD_COLS_VERSION 1

typedef struct cd_col {
    const char *name, *unit, *group, *meaning;
} cd_col;

const cd_col *cd_cols(void); /* (CD_N_COL) */
/* Hex digest of version, names and order; changes whenever a column changes. 64 chars + NUL. */
void cd_cols_digest(char out[65]);
/* The manual: docs/reference/columns.md as Markdown. */
struct cd_buf;
void cd_cols_print(struct cd_buf *out);
/* {"digest":"..","columns":[{"name":..,"unit":..,"group":..,"meaning":..},...]} */
void cd_cols_json(struct cd_buf *out);

/* Features of a simplified loop nest (docs/internals/ansor.md, Feature rows), and the leaves of the
 * compact AST from the same walk.
 *
 *   walk in program order, keeping the stack of loops around
 *     STORE    -> accesses (access.c) -> the store's numbers -> its buffer's set
 *     REALIZE  -> allocation numbers of its buffer, after its body
 *   rows: one per buffer that was written or allocated, last one first (TVM's
 *   order); leaves: one per store, in pre-order.
 *
 * All arithmetic is float32 in TVM's order of operations where TVM's is. */

#define CD_MAX_BUFFERS 5  /* blocks of a row */
#define CD_BLOCK       18 /* columns of a block */
/* loops around a store; with more of them the product of extents leaves float */
#define CD_MAX_LOOP 256

/* Shape and element of a tensor; asked once per tensor. */
typedef struct cd_tensor_info {
    uint32_t rank;
    const int64_t *shape;
    uint32_t elem_bytes;
} cd_tensor_info;
typedef struct cd_tensors {
    cd_tensor_info (*info)(const void *ctx, uint32_t tensor);
    const void *ctx;
    uint32_t n;
} cd_tensors;

/* The features of one program. */
typedef struct cd_rows {
    uint32_t n_row;
    /* (n_row, CD_N_COL) row-major: one per written buffer, TVM's order */
    const float *row;
    /* The compact AST (docs/reference/ast.md). Leaves = buffer stores in pre-order. */
    uint32_t n_leaf;
    /* (n_leaf, CD_N_COL): features of each store, allocation columns filled in */
    const float *leaf;
    const int32_t *leaf_node; /* (n_leaf) pre-order number of the leaf, root = 0 */
    /* (n_leaf) index of the leaf in `tree`, what CDMPP's positional encoding counts */
    const int32_t *leaf_pos;
    const int32_t *leaf_row; /* (n_leaf) row of the same buffer */
    uint32_t n_tree;
    const int32_t *tree; /* (n_tree) pre-order ids, -1 after the last child of every node */
    /* Loops on the path to each leaf, outermost first, flat with offsets. */
    const int32_t *path_ptr;    /* (n_leaf + 1) into path_* */
    const int64_t *path_extent; /* trip count */
    const uint8_t *path_kind;   /* cd_loop_kind, see features/nest/nest.h */
} cd_rows;

typedef struct cd_leaf_ws cd_leaf_ws; /* memory that stays between programs */
/* Errors: ENOMEM. */
cdmpp_status cd_leaf_ws_new(CD_GIVE cd_leaf_ws **out, cdmpp_err *err);
void cd_leaf_ws_free(cd_leaf_ws *w);

/* Rows and leaves of `t`. What *out points to lives in `a` until its reset.
 * Errors: ENOMEM, EUNSUPPORTED (a value of more than 10^7 nodes, too many loops). */
cdmpp_status cd_leaf_extract(cd_leaf_ws *w, cd_arena *a, const cd_ast *t, cd_expr_pool *pool,
                             cd_simplifier *simp, const cd_tensors *tensors, int64_t cache_line,
                             cd_rows *out, cdmpp_err *err);

/* row_order -- rows as models read them.
 *
 *   TVM's, ours, any order ─> buffers of a row by (lines, bytes, the rest), rows of a program by
 *                             (trips, the rest), all falling
 *
 * TVM orders rows, and buffers of equal lines and bytes, by addresses. Data sets (dataset/file) and
 * scorers (predictor/score) put them in this order; the extractor does not, its rows are compared
 * with TVM's.
 *   (1) equal bits for the same program whatever order its rows and buffers came in; doing it twice
 *       changes nothing;
 *   (2) buffers with the lines and bytes of a row's last block keep these two alone: TVM may have
 *       left one like them out by chance;
 *   (3) reuse_dis_bytes is rounded to a multiple of 1/64 (it is a logarithm): TVM's sum of floats
 *       depends on the order. Sums that straddle a step still differ, about one in 10^5 of those
 *       that differ at all.
 * The leaves of a program stay in its order, their buffers are ordered. No heap, no state. */

/* The blocks of one row or leaf (CD_N_COL). */
void cd_rows_order_blocks(float *row);
/* The rows of a program (n, CD_N_COL); from (n): where each stood before, NULL: not wanted. */
void cd_rows_order(float *row, size_t n, uint32_t *from);
#endif
