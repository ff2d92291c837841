/* The door of learner/trees: other rooms include this header and no other of the room.
 *
 * Gradient-boosted trees: training by XGBoost (xgb.h), inference by our own walk with the same bits
 * (tree_inference.h). Takes matrices of float, gives scores; knows nothing of programs. For
 * learner/model, learner/train, learner/operators, learner/export. */
#ifndef CD_LEARNER_TREES_DOOR_H
#define CD_LEARNER_TREES_DOOR_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"

/* tree_inference -- the trees of a booster, walked without XGBoost.
 *
 *   tree 0 | tree 1 | ...  node: {cut, column, kid[2]}
 *     root[0]  root[1]     x[column] < cut ? kid[0] : kid[1]; a leaf is its own kids, cut is its
 *                          value
 *
 * A call of XGBoost costs about 20 us and 80 trips to the heap for its own sake, however few rows;
 * a walk through the 200 trees of a booster costs less.
 *
 * (1) The same bits as XGBoost: leaf values are added in float, in the order of the trees, behind
 *     base_score; NaN takes the default side. tests/learner/trees/test_tree_inference.c compares
 *     both.
 * (2) Only what XGBoost writes for numerical regression trees of squared error is read. Every field
 *     is checked, and nothing is passed over: a key that is not known, a number out of its range,
 *     nodes that are no tree are errors with their place. No byte of a file reaches XGBoost's own
 *     reader.
 * (3) Trees are kept in two more forms, for one row and for many (tree_inference.c, tree_bytes.c),
 *     where they fit into these; the plain walk is what tests compare them with.
 * Immutable: any thread. No heap after reading. */

typedef struct cd_tree_inference cd_tree_inference;

/* The booster's bytes (n) in place: gains, weights and sums of hessians of all nodes are 0
 * afterwards. Errors: EMODEL. */
cdmpp_status cd_tree_inference_forget(void *ubj, size_t n, cdmpp_err *err);
/* From a booster in UBJ form over `width` columns. Any bytes are safe. Errors: EMODEL (with the
 * key, see (2)), ENOMEM. */
cdmpp_status cd_tree_inference_read(const void *ubj, size_t n, size_t width,
                                    CD_GIVE cd_tree_inference **out, cdmpp_err *err);
size_t cd_tree_inference_count(const cd_tree_inference *f); /* trees */
void cd_tree_inference_free(CD_TAKE cd_tree_inference *f);  /* NULL is fine */
/* Writes the scores, out (n), of x (n, width). */
void cd_tree_inference_score(const cd_tree_inference *f, const float *x, size_t n, size_t width,
                             float *out);
/* The same of the first `most` trees, of all where there are fewer: the score of the booster after
 * `most` rounds. */
void cd_tree_inference_score_some(const cd_tree_inference *f, const float *x, size_t n,
                                  size_t width, size_t most, float *out);

#define CD_TREE_INFERENCE_MISSING_RIGHT 0x80000000U /* a bit of `column`: NaN goes to kid[1] */

typedef struct cd_tree_inference_node {
    float cut; /* of a leaf: its value */
    uint32_t column;
    uint32_t kid[2]; /* numbers of nodes; of a leaf: the leaf itself */
} cd_tree_inference_node;

/* All nodes, for who writes the trees in another form. The pointers live as long as the trees. */
typedef struct cd_tree_inference_view {
    float base; /* score before the first tree */
    size_t n_tree, n_node;
    /* (n_tree) first node of each tree; a tree's nodes are in one piece */
    const uint32_t *root;
    const cd_tree_inference_node *node; /* (n_node) */
} cd_tree_inference_view;
/* Shows what f consists of. */
cd_tree_inference_view cd_tree_inference_view_of(const cd_tree_inference *f);

/* xgb -- XGBoost's C API behind our errors: one booster, dense float input.
 *
 * (1) Thread counts are always explicit: 1 unless training asks for more, for
 *     OpenMP's default spins on a busy machine and hangs after fork.
 * (2) XGBoost prints nothing; its errors carry a C++ stack trace of which only
 *     the first line is kept.
 * (3) A loaded booster is immutable: cd_xgb_predict may run in many threads. It walks the trees
 *     itself (tree_inference), to the same bits, without XGBoost's cost of a call and without the
 *     heap. XGBoost never reads it, so it can be applied and saved, but not trained further. */

typedef struct cd_xgb cd_xgb;           /* booster */
typedef struct cd_xgb_data cd_xgb_data; /* matrix, copied and quantised by XGBoost */

/* Matrix of n x width values, NaN = missing. Errors: EBACKEND, ENOMEM. */
cdmpp_status cd_xgb_data_new(const float *x, size_t n, size_t width, int nthread,
                             CD_GIVE cd_xgb_data **out, cdmpp_err *err);
/* The same without the values: only the bins of each column, as cd_xgb_data_new would get from
 * `max_bin` bins; of another such matrix where `bins` is not NULL. For training only. */
cdmpp_status cd_xgb_data_binned(const float *x, size_t n, size_t width, int nthread,
                                int64_t max_bin, const cd_xgb_data *bins, CD_GIVE cd_xgb_data **out,
                                cdmpp_err *err);
/* The same from pages, so that the values are never in memory together. */
typedef struct cd_xgb_pages {
    /* Points *x at the next page, read until the next call, and returns its rows, 0: there is no
     * more; x NULL: from the first page again. */
    size_t (*next)(void *ctx, const float **x);
    void *ctx;
    size_t n, width; /* of all pages */
} cd_xgb_pages;
cdmpp_status cd_xgb_data_paged(const cd_xgb_pages *p, int nthread, int64_t max_bin,
                               const cd_xgb_data *bins, CD_GIVE cd_xgb_data **out, cdmpp_err *err);
void cd_xgb_data_free(CD_TAKE cd_xgb_data *d); /* NULL is fine */
size_t cd_xgb_data_rows(const cd_xgb_data *d);
/* The lower end of the bin of each value: out (n, width), NaN where it is missing. Of a matrix that
 * has bins alone. */
cdmpp_status cd_xgb_data_lower(const cd_xgb_data *d, size_t width, float *out, cdmpp_err *err);

/* xgb_cuts -- bins of a matrix whose columns are not together.
 *
 *   some columns, all rows -> cd_xgb_cuts -> max_bin + 1 values a column - of all columns ->
 *                                            cd_xgb_data_of_cuts -> `bins` of any rows
 *
 * The values are some of the column that XGBoost cuts at the same places as all of it; that it does
 * is looked at. */
/* cuts (width, max_bin + 1): those of x (n, width). Errors: EBACKEND, ENOMEM. */
cdmpp_status cd_xgb_cuts(const float *x, size_t n, size_t width, int nthread, int64_t max_bin,
                         float *cuts, cdmpp_err *err);
/* A matrix for `bins`. */
cdmpp_status cd_xgb_data_of_cuts(const float *cuts, size_t width, int nthread, int64_t max_bin,
                                 CD_GIVE cd_xgb_data **out, cdmpp_err *err);

typedef struct cd_xgb_param {
    const char *name, *value;
} cd_xgb_param;

/* A booster to be trained on `train`; valid may be NULL. */
cdmpp_status cd_xgb_new(const cd_xgb_data *train, const cd_xgb_data *valid,
                        const cd_xgb_param *param, size_t n_param, CD_GIVE cd_xgb **out,
                        cdmpp_err *err);
/* One tree from gradients and Hessians (n), which XGBoost only reads. */
cdmpp_status cd_xgb_boost(cd_xgb *g, const cd_xgb_data *train, float *grad, float *hess,
                          cdmpp_err *err);
/* Raw scores (n) of a matrix under the trees so far; copied to out. */
cdmpp_status cd_xgb_scores(cd_xgb *g, const cd_xgb_data *d, float *out, cdmpp_err *err);
/* Keep the first n trees. */
cdmpp_status cd_xgb_cut(cd_xgb *g, int n, cdmpp_err *err);

/* From here to cd_xgb_leave, the boosters of this thread add up their histograms over all n_rank
 * processes, which make the same calls; the tracker (learner/distributed/distributed.h) connects
 * them. Nobody waits longer than limit_s for another. Errors: EBACKEND. */
typedef struct cd_xgb_rendezvous {
    const char *address; /* of the tracker */
    int port, limit_s;
    size_t rank, n_rank;
} cd_xgb_rendezvous;
/* Joins, leaves; see above. */
cdmpp_status cd_xgb_join(const cd_xgb_rendezvous *m, cdmpp_err *err);
cdmpp_status cd_xgb_leave(cdmpp_err *err);

/* Raw scores (n) of n x width values in place. Errors: EBACKEND, EMODEL. */
cdmpp_status cd_xgb_predict(const cd_xgb *g, const float *x, size_t n, size_t width, float *out,
                            cdmpp_err *err);
/* By its first `most` trees alone; of a booster that is being trained, by all. */
cdmpp_status cd_xgb_predict_some(const cd_xgb *g, const float *x, size_t n, size_t width,
                                 size_t most, float *out, cdmpp_err *err);

/* Its trees; NULL: it is being trained. */
struct cd_tree_inference;
CD_KEEP const struct cd_tree_inference *cd_xgb_tree_inference(const cd_xgb *g);

/* XGBoost's own UBJ form. Loading checks every field (tree_inference (2)) and that the trees are
 * over `width` columns. Errors: EMODEL, ENOMEM, EBACKEND. */
cdmpp_status cd_xgb_save(const cd_xgb *g, cd_buf *out, cdmpp_err *err);
/* The same without gains, weights and sums of hessians of nodes, which no answer needs and which
 * pack badly: they are 0. Explanations by cover need them. */
cdmpp_status cd_xgb_save_bare(const cd_xgb *g, cd_buf *out, cdmpp_err *err);
cdmpp_status cd_xgb_load(const void *p, size_t n, size_t width, CD_GIVE cd_xgb **out,
                         cdmpp_err *err);
void cd_xgb_free(CD_TAKE cd_xgb *g); /* NULL is fine */
/* Trees so far. */
int cd_xgb_rounds(const cd_xgb *g);
void cd_xgb_version(char out[32]); /* "1.7.4" */
#endif
