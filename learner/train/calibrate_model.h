/* calibrate_model -- the uncertainty of a trained model, from programs that its members never saw. */
#ifndef CD_CALIBRATE_MODEL_H
#define CD_CALIBRATE_MODEL_H
#include "base/core/core.h"
#include "learner/model/model.h"
#include "learner/train/training_set.h"

/* m->calib from kind_log_s (m->n_kind, n), the answers for programs program[0 .. n). The range of training is of
 * the programs in all folds but `without` (-1: in all). plain: a width without trees, which costs no time to
 * predict. Errors: those of cd_calibration_fit. */
cdmpp_status cd_calibrate_model(const cd_training_set *t, const uint32_t *program, size_t n, int without, bool plain, const double *kind_log_s,
                          cd_threads *pool, cd_model *m, cdmpp_err *err);
#endif
