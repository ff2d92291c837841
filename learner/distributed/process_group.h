/* process_group -- several processes that train one model.
 *
 *   members      lstm 0  transformer 0  program 0  program 1  rows 0 ..
 *   dealt to     rank 0  rank 1         rank 2     rank 1     rank 2 ..   each trains its own
 *   gathered     ------------------> rank 0: weights, figures, model file
 *
 * (1) A member depends on the configuration and the data, never on who trains it, so the
 *     model has the same bytes for any number of ranks.
 * (2) Who trains what is a function of the members and the number of ranks.
 * (3) With fewer networks than ranks, and fit.slices of at least as many as ranks, all
 *     ranks train each network together (invariant 6 of learner/fit/fit.h); the bits are
 *     those of one rank with the same slices.
 * (4) train.together: all ranks grow the trees of each member together (learner/distributed/distributed_trees.h).
 * (5) A rank that fails alone returns at once; whoever started the ranks ends the others.
 *
 * The library knows no MPI: a process group is four calls. Each is made by all ranks in the same
 * order, from the thread that called cd_learner_run. */
#ifndef CD_PROCESS_GROUP_H
#define CD_PROCESS_GROUP_H
#include "base/core/core.h"
#include "learner/fit/fit.h"
#include "learner/model/model.h"

typedef struct cd_process_group {
    size_t rank, n_rank;
    bool one_host;           /* all ranks are on this machine */
    void *ctx;               /* of the calls */
    cd_fit_allreduce *allreduce;
    /* own of every rank to all (n_rank) of rank 0, appended; NULL on the others. */
    cdmpp_status (*gather)(void *ctx, const cd_buf *own, cd_buf *all, cdmpp_err *err);
    /* The status and error of the first rank whose st is not OK, on every rank. */
    cdmpp_status (*agree)(void *ctx, cdmpp_status st, cdmpp_err *err);
} cd_process_group;

#define CD_PROCESS_GROUP_ALL SIZE_MAX

/* owner (n): rank of each member, CD_PROCESS_GROUP_ALL: trained by all together, as trees are if so asked. */
void cd_process_group_deal(const cd_member *member, size_t n, size_t n_rank, int64_t slices, bool trees, size_t *owner);
/* bytes[k] of the members that a rank trained to rank 0, whose own bytes stay. */
cdmpp_status cd_process_group_gather(const cd_process_group *ranks, cd_buf *bytes, size_t n, cdmpp_err *err);
/* Did all ranks find it? EMODEL: some did. */
cdmpp_status cd_process_group_agree(const cd_process_group *ranks, bool found, cdmpp_err *err);
#endif
