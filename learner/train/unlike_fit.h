/* unlike_fit -- which kinds of programs a model was trained on, and how far off it is for an operator that was left out.
 *
 *   kinds of the training programs ──> marks (learner/model/model.h)
 *   reductions of the kinds ──> 4 folds of whole operator kinds ──> trees without a fold ──> their errors on it ──> low, high
 *
 * The trees are few and see program vectors: they stand for the model, which would take four trainings. Each operator kind counts the
 * same in the quantiles, as each is one draw of "an operator that was never seen". With fewer than three operator kinds nothing can be
 * left out, and the interval is from a tenth to ten times the answer. Types, threads and devices are not left out: a program that is
 * unlike in these has the interval of an unseen operator, at least. */
#ifndef CD_UNLIKE_FIT_H
#define CD_UNLIKE_FIT_H
#include "learner/model/model.h"
#include "learner/train/training_set.h"

/* Sets m->trained_on, in the arena of m. Where the data set does not know the kinds of all programs: NULL, and a line in `notes`.
 * Errors: EBACKEND, ENOMEM, ENUMERIC. */
cdmpp_status cd_unlike_fit(const cd_training_set *t, cd_threads *pool, cd_model *m, cd_buf *notes, cdmpp_err *err);
#endif
