/* batch_builder -- collects programs into the arrays that a model reads (cd_program_view).
 *
 *   add, add, add ... -> view -> clear -> add ...
 *
 * Copies what cd_program_build returns, for that lives until the next build only. Memory is kept
 * between rounds. One thread. */
#ifndef CD_BATCH_BUILDER_INTERNAL_H
#define CD_BATCH_BUILDER_INTERNAL_H
#include "features/program/program.h"
#include "learner/inputs/inputs.h"

typedef struct cd_batch_builder cd_batch_builder;

/* `leaves`: the model reads the compact AST, not rows alone. `order`: rows go into the order of
 * cd_rows_order, as in the data sets that the model was trained on (cd_model_orders_rows). */
cdmpp_status cd_batch_builder_new(bool leaves, bool order, CD_GIVE cd_batch_builder **out,
                                  cdmpp_err *err);
void cd_batch_builder_free(CD_TAKE cd_batch_builder *g); /* NULL is fine */
void cd_batch_builder_clear(cd_batch_builder *g);
/* flop: operations of the task, -1 unknown. Errors: ENOMEM, ENUMERIC (a feature that is
 * not a finite number: trees would send it left or right); nothing is added then. */
cdmpp_status cd_batch_builder_add(cd_batch_builder *g, const cd_rows *r, uint32_t device,
                                  double flop, cdmpp_err *err);
/* Steps of the program that was added last, as cd_step_codes gives them, for models that read them:
 * then of every program. Errors: ENOMEM. */
cdmpp_status cd_batch_builder_add_steps(cd_batch_builder *g, const int32_t *code, size_t n,
                                        cdmpp_err *err);
/* Facts and analytic times of the program that was added last, for models that read them: then of
 * every program. Errors: ENOMEM. */
cdmpp_status cd_batch_builder_add_facts(cd_batch_builder *g, int set, const float *facts,
                                        const float *analytic, cdmpp_err *err);
/* Rows of all programs since the last clear. */
size_t cd_batch_builder_rows(const cd_batch_builder *g);
/* All programs since the last clear; borrows from g until the next add. */
cd_program_view cd_batch_builder_view(cd_batch_builder *g);
#endif
