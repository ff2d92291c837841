/* device_law_fit -- how far off a model is on a device that it never saw (learner/model/model.h),
 * from machines that are left out in turn.
 *
 *   a machine's programs, by small trees of all others, asked as for its stand-in
 *       ──> mean error, spread ──────────────┐
 *   the same machine's programs, out of fold by the model itself
 *       ──> spread that the model knows of ──┴──> shift, own
 *
 * The trees are few and see program vectors, as in unlike_fit: they stand for the model, which
 * would take a training for each machine. What they err more than the model does is in `own`, which
 * is no smaller for that. Where trees read facts, analytic times are the machine's own, as in
 * prediction: the stand-in is what trees are told, not what the times are computed with. Devices
 * that differ in nothing but the width of their vectors are one machine, and so are GPUs of one
 * chip. A machine is left out twice, as one draw: of all others, and of the least similar one
 * alone. Where no other GPU of a lockstep width is there, all of this width are left out for a law
 * of their own. Kinds do not stand for each other: a model of one machine of a kind learns nothing
 * of it. */
#ifndef CD_DEVICE_LAW_FIT_H
#define CD_DEVICE_LAW_FIT_H
#include "learner/model/model.h"
#include "learner/train/training_set.h"

/* Sets m->law of a model that is calibrated; kind_log_s (n_kind, n_oof) as its members answered out
 * of fold. Errors: EBACKEND, ENOMEM, ENUMERIC. */
cdmpp_status cd_device_law_fit(const cd_training_set *t, cd_threads *pool, const double *kind_log_s,
                               cd_model *m, cdmpp_err *err);
#endif
