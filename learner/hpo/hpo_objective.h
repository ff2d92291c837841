/* hpo_objective -- the search whose objective is a training on loaded data.
 *
 *   -j 8, in_flight 4  ->  4 trainings side by side, 2 threads each
 *
 * The validation figures of cd_learner_try are all that a trial sees; the test part
 * is left to the training of the winner, which is the caller's. */
#ifndef CD_HPO_OBJECTIVE_H
#define CD_HPO_OBJECTIVE_H
#include "learner/hpo/hpo.h"
#include "learner/train/train.h"

typedef struct cd_hpo_objective {
    const cd_hpo_space *space;
    const cd_config *base;
    const cd_dataset *data;      /* what base->data_files hold */
    const char *journal;
    int jobs;                    /* threads; <= 0: one per CPU */
    cd_hpo_event_fn *tell;          /* NULL is fine */
    cd_progress_event_fn *tick;                 /* of every training; NULL is fine */
    void *ctx;                   /* of both */
} cd_hpo_objective;

/* What is made small of the figures of a part: smaller is better, NaN where there is none. */
double cd_hpo_metric_value(cd_hpo_metric e, const cd_metric *m);
/* As cd_hpo. */
cdmpp_status cd_hpo_objective_run(const cd_hpo_objective *t, cd_hpo_result *out, cdmpp_err *err);
#endif
