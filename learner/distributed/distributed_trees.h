/* distributed_trees -- all ranks of a process group grow the trees of one member.
 *
 *   programs   0 .. 5 | 6 .. 11 | 12 .. 17     ranks 0, 1, 2: equal runs in their order
 *   bins       of the rows of all programs, made by every rank; rows kept: its own
 *   a round    own gradients -> XGBoost, which adds up histograms over the ranks -> the same tree
 *              own scores    -> all ranks -> the loss and the gradients of all programs
 *
 * (1) Gradients are multiples of 2^-20 (learner/loss/tree_loss.h), so sums in double are exact, in whatever order
 *     the ranks are added: the trees are those of one process with the same bins and rows.
 * (2) Rows are drawn (train.subsample) by our own numbers, by tree and row: not by rank.
 * (3) At the end the ranks compare the digests of their trees.
 * (4) A rank that fails keeps its connections and returns; the others wait for it until whoever
 *     started the ranks ends them, or for limits of some minutes.
 * (5) One member at a time, from begin to end in the same thread. */
#ifndef CD_DISTRIBUTED_TREES_H
#define CD_DISTRIBUTED_TREES_H
#include "base/core/core.h"
#include "learner/distributed/process_group.h"
#include "learner/distributed/rabit_tracker.h"

typedef struct cd_distributed_trees {
    const cd_process_group *ranks;     /* NULL: this process alone, and all calls do nothing */
    cd_rabit_tracker *tracker;     /* of rank 0 */
} cd_distributed_trees;

/* Items beg .. end of n are this rank's. */
void cd_distributed_trees_own(const cd_process_group *ranks, size_t n, size_t *beg, size_t *end);
/* XGBoost's collective around all that happens until the end. Errors: EBACKEND, ENOMEM. */
cdmpp_status cd_distributed_trees_begin(cd_distributed_trees *t, const cd_process_group *ranks, cdmpp_err *err);
/* st: how it went; returned if it is an error. */
cdmpp_status cd_distributed_trees_end(cd_distributed_trees *t, cdmpp_status st, cdmpp_err *err);
/* v (n), of which each rank knows beg .. end, to all. */
cdmpp_status cd_distributed_trees_share(const cd_distributed_trees *t, float *v, size_t n, size_t beg, size_t end, cdmpp_err *err);
/* *stop of any rank. */
cdmpp_status cd_distributed_trees_stop(const cd_distributed_trees *t, bool *stop, cdmpp_err *err);
/* Do all ranks have these bytes? EBACKEND. */
cdmpp_status cd_distributed_trees_same(const cd_distributed_trees *t, const cd_buf *bytes, cdmpp_err *err);
#endif
