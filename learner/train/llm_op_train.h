/* llm_op_train -- the training door of models of operators of language models: a table -> model,
 * file.
 *
 *   rows (llm_op_table.h) -> of each kind and device at most operators.max_rows, drawn by a number
 *                            of the row itself
 *     -> set unseen, seen   ln(time / estimate)
 *     -> set near           ln(time / what neighbours say); some rows with hidden neighbours, as
 *                           rows of curves that nobody measured
 *   held out in turn: of unseen one device after another, of the others a third of the sites (all
 *   sizes but the axis's), unless
 *   operators.calibration_rows is 0 -> residuals -> trees of the spread, quantiles (llm_op_model.h)
 *   and one library, kernel, type and operator after another, of some of the rows -> how far off
 *     what is new is (llm_op_novel.c)
 *
 * The same table and configuration give the same file for any number of threads. */
#ifndef CD_LLM_OP_TRAIN_H
#define CD_LLM_OP_TRAIN_H
#include "learner/config/config.h"
#include "learner/llm_op/llm_op.h"

typedef struct cd_llm_op_train_result {
    cd_llm_op_model *model; /* owned */
    cd_buf file;            /* the model file */
    size_t n_row;           /* drawn */
    /* of these, rows that the device cannot have run: no units for the type */
    size_t n_refused;
} cd_llm_op_train_result;

/* `t` is indexed. `sets`: bits of cd_llm_op_set that are trained. `pool` NULL: one thread. Errors:
 * ERANGE (no rows), EBACKEND, ENOMEM, EINTERRUPTED, ENUMERIC. */
cdmpp_status cd_llm_op_train(const cd_config *c, const cd_llm_op_table *t, unsigned sets,
                             cd_threads *pool, cd_progress_event_fn *tick, void *ctx,
                             cd_llm_op_train_result *out, cdmpp_err *err);
void cd_llm_op_train_result_free(cd_llm_op_train_result *l);
#endif
