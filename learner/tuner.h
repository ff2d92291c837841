/* tuner -- profile tuner of a model: one small network for schedule search.
 *
 *   programs of folds 1 .. F-1 --> ln label = (ln measured + ln answer out of fold) / 2 --> transformer, 64 wide, of rows
 *   programs of fold 0 ---------> when to stop, and a constant uncertainty
 *
 * It is to put the schedules of a task in the order of the whole model, in a fortieth of its time (rows to score). Half of the
 * measurement in the label: with the teacher's answers alone it ranks the schedules of a network never seen worse
 * than with measurements alone, with both better (Spearman 0.750, 0.769, 0.779; Inception held out on zen5, 3 seeds of the
 * network, seen on that test part). */
#ifndef CD_TUNER_H
#define CD_TUNER_H
#include "learner/ensemble.h"

/* m->tuner of a trained and calibrated model; kind_log_s (n_kind, n_oof) as the members answered out of fold.
 * Errors: those of cd_fit, ENOMEM, EINTERRUPTED. */
cdmpp_status cd_tuner_train(const cd_trainset *t, const double *kind_log_s, const cd_ensemble_run *run, cd_model *m, cdmpp_err *err);
#endif
