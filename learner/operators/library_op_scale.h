/* library_op_scale -- the time of a library operator on one GPU, from its time measured on another.
 *
 *   by a model   predicted(to) * (measured(from) / predicted(from))^a
 *   without one  closed forms of features/device/wave_scale.h; the balance is that of the
 *                operator's shape
 *
 * a = 0.5 where the operator's class was trained on `from`, else 0: the model's error on a GPU that
 * it does not know is mostly that GPU's own. Chosen on NeuSight's train tables, over pairs of GPUs:
 * docs/internals/learner-choices.md.
 *
 * Interval of an answer by a model: that of the model on `to`, around the answer. Of a closed form:
 * the errors of the form on the train tables, by class (library_op_scale_spread.def). No state, any
 * thread. */
#ifndef CD_LIBRARY_OP_SCALE_H
#define CD_LIBRARY_OP_SCALE_H
#include "learner/operators/operators.h"

typedef struct cd_library_op_scaled {
    double latency_s;     /* the answer: by the model, else closed.time_s; > 0 */
    double low_s, high_s; /* its interval of level 0.9; NaN: there is none */
    double from_s;        /* what the model predicts for `from`; NaN without a model */
    /* CD_LIBRARY_OP_UNLIKE_* of `to`; without a model DTYPE alone: the forms' errors are of
     * float32 */
    unsigned unlike;
    cd_wave_scale_answer closed;
} cd_library_op_scaled;

#define CD_LIBRARY_OP_SCALE_LEVEL   0.9
#define CD_LIBRARY_OP_SCALE_CARRIED 0.5 /* a; of programs too */

/* n records that were measured on `from`, out (n); m NULL: closed forms alone. Errors: EMODEL (the
 * model does not know the family, or a description lacks a number), with the index of the record in
 * the key where it is of one record; ERANGE: a record without a time; EBACKEND, ENOMEM, ENUMERIC of
 * the model. */
cdmpp_status cd_library_op_scale(const cd_library_op_model *m, const cd_library_op_record *r,
                                 size_t n, const cd_device *from, const cd_device *to,
                                 cd_library_op_scaled *out, cdmpp_err *err);
#endif
