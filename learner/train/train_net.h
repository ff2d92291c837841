/* train_net -- one network as a member: cd_fit on some programs of a training set. */
#ifndef CD_TRAIN_NET_H
#define CD_TRAIN_NET_H
#include "learner/train/boost.h"
#include "learner/train/ensemble.h"
#include "learner/fit/fit.h"

/* Network, scalers and label of e. Errors: those of cd_fit, EMODEL (nothing in `start` to go on from). */
cdmpp_status cd_train_net(const cd_training_set *t, const cd_boost_set *train, const cd_boost_set *valid, const cd_ensemble_run *er,
                         const cd_boost_run *run, cd_member *e, cdmpp_err *err);
/* For cd_fit_run.tick, of a network called `name` with batches of n_sample programs: passes its steps on as events. */
typedef struct cd_train_net_tick {
    cd_progress_event_fn *tick; /* NULL: nobody */
    void *ctx;
    const char *name;
    size_t n_sample;
} cd_train_net_tick;
/* A cd_fit_run.tick; `tick` is a cd_train_net_tick. False: training is to stop. */
bool cd_train_net_step(void *tick, const cd_fit_progress *p);
/* What was fitted becomes the member's; f is empty afterwards, also on error. Errors: ENOMEM. */
cdmpp_status cd_train_net_store(CD_TAKE cd_fit_result *f, cd_member *e, cdmpp_err *err);
#endif
