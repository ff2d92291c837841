/* ranking_profile -- profile tuner of a model: one small network for schedule search.
 *
 *   ln label = (ln measured + ln answer of members that never saw the program) / 2
 *   programs of all folds ---------> transformer of rows, 64 wide, one layer of attention = the tuner
 *   programs of all folds but f ---> another like it, f = 0 .. F-1 --> answers for fold f --> constant uncertainty,
 *                                                                                   figures out of fold; then dropped
 *
 * It is to put the schedules of a task in the order of the whole model, in a twentieth of its time (rows to score).
 * docs/internals/decisions.md has what was tried. */
#ifndef CD_RANKING_PROFILE_H
#define CD_RANKING_PROFILE_H
#include "learner/train/ensemble.h"

/* m->tuner of a trained and calibrated model; kind_log_s (n_kind, n_oof) as the members answered out of fold.
 * *log_s (n_oof): ln seconds of t->oof by networks that never saw them. Errors: those of cd_fit, ENOMEM, EINTERRUPTED. */
cdmpp_status cd_ranking_profile_train(const cd_training_set *t, const double *kind_log_s, const cd_ensemble_run *run, cd_model *m,
                            CD_GIVE double **log_s, cdmpp_err *err);
#endif
