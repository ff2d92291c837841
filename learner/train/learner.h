/* learner -- the training door: configuration -> model, file and figures.
 *
 *   load -> filter -> split -> folds -> members (trees, networks)
 *        -> weights and uncertainty from out-of-fold answers
 *        -> figures of all three parts -> model file
 *
 * The test part is looked at once, after everything is decided. The same
 * configuration and data give the same file for any number of threads. */
#ifndef CD_LEARNER_H
#define CD_LEARNER_H
#include "base/core/core.h"
#include "dataset/split/split.h"
#include "learner/train/selection_bias.h"
#include "learner/report/report.h"
#include "learner/model/model.h"

typedef struct cd_learner_result {
    cd_model *model;             /* owned */
    cd_buf file;                 /* the model file */
    cd_filter_count filter;
    size_t n_program[CD_SPLIT_N_PART], n_task[CD_SPLIT_N_PART];
    cd_split_kind kind;
    char split_digest[65];
    cd_metric metrics[CD_SPLIT_N_PART]; /* validation: of out-of-fold answers (training_set.h) */
    cd_uncertainty unsure[CD_SPLIT_N_PART];
    cd_selection_bias best[CD_SPLIT_N_PART];     /* of each task's fastest program */
    cd_buf best_of[CD_SPLIT_N_PART];   /* cd_selection_bias_by_device */
    cd_buf tasks;                /* trained on, cd_selection_bias_tasks */
    cd_metric tuner[2];         /* profile tuner's (model.tuner, else zeros): out of fold, of the test part */
    cd_buf notes;                /* lines on the split, for people; may be empty */
    cd_train_artifacts *keep;          /* owned; NULL unless output.report names a page */
} cd_learner_result;

/* What data.files hold, all that the model of `c` needs. Errors: those of loading. */
cdmpp_status cd_learner_load(const cd_config *c, CD_GIVE cd_dataset **out, cdmpp_err *err);
/* How to train; all may be zero. */
typedef struct cd_learner_options {
    cd_threads *pool;            /* NULL: one thread */
    cd_progress_event_fn *tick;          /* NULL: none */
    void *ctx;
    const cd_model *start;       /* fine-tuning: networks go on from its members (EMODEL: it has none of their
                                  * kind); trees are trained anew. NULL: from scratch */
    const char *folder;          /* trained members and checkpoints are kept there, and taken from there
                                  * (learner/train/member_checkpoint.h); NULL: none */
    const struct cd_process_group *ranks;  /* learner/distributed/distributed.h; NULL: this process alone. *out stays empty on ranks but 0 */
} cd_learner_options;

/* `d`: what cd_learner_load gives, loaded by the caller; NULL: loaded here. Errors: those of loading, splitting and boosting. */
cdmpp_status cd_learner_run(const cd_config *c, const cd_dataset *d, const cd_learner_options *how, cd_learner_result *out, cdmpp_err *err);
/* One trial of a search: the same training, then only the figures of the validation
 * part. Nothing reads the latencies of the test part, no file is made. */
cdmpp_status cd_learner_try(const cd_config *c, const cd_dataset *d, cd_threads *pool, cd_progress_event_fn *tick, void *ctx,
                            cd_metric *valid, cdmpp_err *err);
void cd_learner_result_free(cd_learner_result *l);
#endif
