/* train_net -- one network as a member: cd_fit on some programs of a training set. */
#ifndef CD_TRAIN_NET_H
#define CD_TRAIN_NET_H
#include "learner/train/boost.h"
#include "learner/train/ensemble.h"
#include "learner/fit/fit.h"

/* Network, scalers and label of e. Errors: those of cd_fit, EMODEL (nothing in `start` to go on from). */
cdmpp_status cd_train_net(const cd_training_set *t, const cd_boost_set *train, const cd_boost_set *valid, const cd_ensemble_run *er,
                         const cd_boost_run *run, cd_member *e, cdmpp_err *err);
/* What was fitted becomes the member's; f is empty afterwards, also on error. Errors: ENOMEM. */
cdmpp_status cd_train_net_store(CD_TAKE cd_fit_result *f, cd_member *e, cdmpp_err *err);
#endif
