/* ensemble -- the members of a model, trained, and what they say out of fold.
 *
 *   kinds x folds --> one training each, side by side on the pool
 *   out-of-fold programs --> kind_log_s (n_kind, n_oof) --> weights, point, uncertainty
 */
#ifndef CD_ENSEMBLE_H
#define CD_ENSEMBLE_H
#include "base/core/core.h"
#include "learner/distributed/distributed.h"
#include "learner/train/member_checkpoint.h"
#include "learner/model/model.h"
#include "learner/fit/fit.h"
#include "learner/train/training_set.h"

typedef struct cd_ensemble_run {
    cd_threads *pool;        /* NULL: one thread */
    cd_progress_event_fn *tick;      /* NULL: none; by any thread */
    void *ctx;
    bool alone;              /* set by the callee: one member has the pool to itself */
    const cd_model *start;   /* fine-tuning: networks go on from its members; NULL: from scratch */
    const char *folder;      /* members are kept there (learner/train/member_checkpoint.h); NULL: nowhere */
    const cd_member_checkpoint *keep;     /* set by the callee */
    const cd_process_group *ranks;     /* NULL: this process alone */
    bool together;           /* set by the callee: all ranks train this member */
} cd_ensemble_run;

/* Share of the programs that trees of a kind are grown from (train), or are stopped by: 1 where the data are in memory; of data on disk
 * as many as their matrix has room for in train.memory, drawn by train.seed and program. Networks see all. */
double cd_ensemble_share(const cd_training_set *t, cd_member_kind kind, int fold, bool train);
/* Fills kinds, members and calib of m, whose devices are set. *kind_log_s (n_kind, n_oof)
 * is the caller's to free; ranks but 0 of a process group get NULL and members of their own only. Errors: those of training a member, EINTERRUPTED. */
cdmpp_status cd_ensemble_train(const cd_training_set *t, const cd_ensemble_run *run, cd_model *m, CD_GIVE double **kind_log_s,
                               cdmpp_err *err);
#endif
