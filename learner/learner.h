/* learner -- the training door: configuration -> model, file and figures.
 *
 *   load -> filter -> split -> trees on train, rounds and mix on validation
 *        -> figures of all three parts -> model file
 *
 * The test part is looked at once, after everything is decided. The same
 * configuration and data give the same file for any number of threads. */
#ifndef CD_LEARNER_H
#define CD_LEARNER_H
#include "base/threads.h"
#include "dataset/filter.h"
#include "learner/boost.h"
#include "learner/metric.h"
#include "learner/model.h"
#include "learner/trainkeep.h"

typedef struct cd_learned {
    cd_model *model;             /* owned */
    cd_buf file;                 /* the model file */
    cd_filter_count filter;
    size_t n_program[CD_N_PART], n_task[CD_N_PART];
    cd_split_kind kind;
    char split_digest[65];
    cd_buf notes;                /* lines on the split, for people; may be empty */
    cd_metrics metrics[CD_N_PART];
    cd_trainkeep *keep;          /* owned; NULL unless output.report names a page */
} cd_learned;

/* What data.files hold, all that the model of `c` needs. Errors: those of loading. */
cdmpp_status cd_learner_load(const cd_config *c, CD_GIVE cd_dataset **out, cdmpp_err *err);
/* `d`: what cd_learner_load gives, loaded by the caller; NULL: loaded here. `pool` NULL: one
 * thread. Errors: those of loading, splitting and boosting. */
cdmpp_status cd_learner_train(const cd_config *c, const cd_dataset *d, cd_threads *pool, cd_tick_call *tick, void *ctx,
                              cd_learned *out, cdmpp_err *err);
/* One trial of a search: the same training, then only the figures of the validation
 * part. Nothing reads the latencies of the test part, no file is made. */
cdmpp_status cd_learner_try(const cd_config *c, const cd_dataset *d, cd_threads *pool, cd_tick_call *tick, void *ctx,
                            cd_metrics *valid, cdmpp_err *err);
void cd_learned_free(cd_learned *l);
#endif
