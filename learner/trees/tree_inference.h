/* tree_inference -- the trees of a booster, walked without XGBoost.
 *
 *   tree 0 | tree 1 | ...        node: {cut, column, kid[2]}
 *     root[0]  root[1]           x[column] < cut ? kid[0] : kid[1]; a leaf is its own kids, cut is its value
 *
 * A call of XGBoost costs about 20 us and 80 trips to the heap for its own sake, however few rows; a
 * walk through the 200 trees of a booster costs less.
 *
 * (1) The same bits as XGBoost: leaf values are added in float, in the order of the trees, behind
 *     base_score; NaN takes the default side. tests/learner/trees/test_tree_inference.c compares both.
 * (2) Only what XGBoost writes for numerical regression trees of squared error is read, and nothing is passed over that
 *     changes an answer; anything else is no forest, and XGBoost reads and walks.
 * Immutable: any thread. No heap after reading. */
#ifndef CD_TREE_INFERENCE_H
#define CD_TREE_INFERENCE_H
#include <stdbool.h>

#include "base/core/core.h"

typedef struct cd_tree_inference cd_tree_inference;

/* From a booster in UBJ form over `width` columns. *out NULL: see (2). Any bytes are safe. Errors: ENOMEM. */
cdmpp_status cd_tree_inference_read(const void *ubj, size_t n, size_t width, CD_GIVE cd_tree_inference **out, cdmpp_err *err);
size_t cd_tree_inference_count(const cd_tree_inference *f); /* trees */
void cd_tree_inference_free(CD_TAKE cd_tree_inference *f); /* NULL is fine */
/* Writes the scores, out (n), of x (n, width). */
void cd_tree_inference_score(const cd_tree_inference *f, const float *x, size_t n, size_t width, float *out);
/* The same of the first `most` trees, of all where there are fewer: the score of the booster after `most` rounds. */
void cd_tree_inference_score_some(const cd_tree_inference *f, const float *x, size_t n, size_t width, size_t most, float *out);

#define CD_TREE_INFERENCE_MISSING_RIGHT 0x80000000U /* a bit of `column`: NaN goes to kid[1] */

typedef struct cd_tree_inference_node {
    float cut;         /* of a leaf: its value */
    uint32_t column;
    uint32_t kid[2];   /* numbers of nodes; of a leaf: the leaf itself */
} cd_tree_inference_node;

/* All nodes, for who writes the trees in another form. The pointers live as long as the trees. */
typedef struct cd_tree_inference_view {
    float base;                         /* score before the first tree */
    size_t n_tree, n_node;
    const uint32_t *root;               /* (n_tree) first node of each tree; a tree's nodes are in one piece */
    const cd_tree_inference_node *node; /* (n_node) */
} cd_tree_inference_view;
/* Shows what f consists of. */
cd_tree_inference_view cd_tree_inference_view_of(const cd_tree_inference *f);
#endif
