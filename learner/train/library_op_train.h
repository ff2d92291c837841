/* library_op_train -- the training door of operator models: tables -> model, file, figures.
 *
 *   rows (library_op_data.h) -> at most operators.max_rows of each operator and device, drawn by a
 *   number of the row itself -> for each family two sets of trees: with and without what
 *   tells devices apart -> model file
 *
 * Before that, operators.check trains on a part and predicts the rest:
 *   large    the tenth of the rows of each operator and device with the most work
 *   device   one device after another, by a model that never saw it
 * Nothing is chosen by these figures; they say what to expect beyond the tables.
 *
 * Behind it trainings without a fold of rows of like sizes, without the largest rows and without a device give the intervals
 * (library_op_calibrate.c, learner/operators/operators.h), unless operators.calibration_rows is 0.
 *
 * The same tables and configuration give the same file for any number of threads. */
#ifndef CD_LIBRARY_OP_TRAIN_H
#define CD_LIBRARY_OP_TRAIN_H
#include "base/core/core.h"
#include "learner/config/config.h"
#include "learner/operators/operators.h"
#include "learner/fit/fit.h"

typedef struct cd_library_op_train_result {
    cd_library_op_model *model; /* owned */
    cd_buf file;       /* the model file */
    cd_library_op_score check;  /* of operators.check; rows point into the list of devices */
    cd_library_op_coverage coverage[CD_LIBRARY_OP_N_HELD][CD_N_LIBRARY_OP_CLASS + 1]; /* of the level 0.9; the last: all classes */
    size_t n_row;      /* trained on */
} cd_library_op_train_result;

/* `pool` NULL: one thread. Errors: ERANGE (no rows), EMODEL (a device that lacks a
 * number), EBACKEND, ENOMEM, EINTERRUPTED. */
cdmpp_status cd_library_op_train(const cd_config *c, const cd_library_op_data *d, cd_threads *pool, cd_progress_event_fn *tick, void *ctx,
                                cd_library_op_train_result *out, cdmpp_err *err);
void cd_library_op_train_result_free(cd_library_op_train_result *l);
#endif
