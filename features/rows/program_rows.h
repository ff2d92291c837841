/* program_rows -- the features of one program: rows as TVM counts them, and the leaves of the compact AST.
 * Made by cd_leaf_extract (leaf.h) and cd_program_build (program.h). */
#ifndef CD_PROGRAM_ROWS_H
#define CD_PROGRAM_ROWS_H
#include <stdint.h>

typedef struct cd_rows {
    uint32_t n_row;
    const float *row;           /* (n_row, CD_N_COL) row-major: one per written buffer, TVM's order (spec 6.6) */
    /* The compact AST (spec cdmpp.md 2.1). Leaves = buffer stores in pre-order. */
    uint32_t n_leaf;
    const float *leaf;          /* (n_leaf, CD_N_COL): features of each store, allocation columns filled in */
    const int32_t *leaf_node;   /* (n_leaf) pre-order number of the leaf, root = 0 */
    const int32_t *leaf_pos;    /* (n_leaf) index of the leaf in `tree`, what CDMPP's positional encoding counts */
    const int32_t *leaf_row;    /* (n_leaf) row of the same buffer */
    uint32_t n_tree;
    const int32_t *tree;        /* (n_tree) pre-order ids, -1 after the last child of every node */
    /* Loops on the path to each leaf, outermost first, flat with offsets. */
    const int32_t *path_ptr;    /* (n_leaf + 1) into path_* */
    const int64_t *path_extent; /* trip count */
    const uint8_t *path_kind;   /* cd_loop_kind, see ast.h */
} cd_rows;
#endif
