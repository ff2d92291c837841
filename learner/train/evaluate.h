/* evaluate -- a model's answers on the programs of a training, in parallel.
 *
 * Chunks do not depend on the number of threads, and an answer only on its program. */
#ifndef CD_EVALUATE_H
#define CD_EVALUATE_H
#include "base/core/core.h"
#include "learner/model/model.h"
#include "learner/train/training_set.h"

/* kind_log_s (n_kind, n) of programs program[0 .. n), which lie by fold, each by the members of its fold. */
cdmpp_status cd_evaluate_oof(const cd_training_set *t, const cd_model *m, cd_threads *pool, const uint32_t *program, size_t n,
                          double *kind_log_s, cdmpp_err *err);
/* out (n) of programs program[0 .. n) by the whole model. */
cdmpp_status cd_evaluate(const cd_training_set *t, const cd_model *m, cd_threads *pool, const uint32_t *program, size_t n, cd_model_prediction *out,
                      cdmpp_err *err);
/* out (n) of programs program[0 .. n) from kind_log_s (n_kind, n), as cd_evaluate_oof gives them. */
cdmpp_status cd_evaluate_answers(const cd_training_set *t, const cd_model *m, cd_threads *pool, const uint32_t *program, size_t n,
                              const double *kind_log_s, cd_model_prediction *out, cdmpp_err *err);
/* out (n) of programs program[0 .. n) by the members that never saw `fold`. */
cdmpp_status cd_evaluate_unseen(const cd_training_set *t, const cd_model *m, cd_threads *pool, int fold, const uint32_t *program, size_t n,
                             cd_model_prediction *out, cdmpp_err *err);
#endif
