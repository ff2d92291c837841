/* Parts of the header of a model file that stand in a file of their own (llm_op_model_novel.c). */
#ifndef CD_LLM_OP_MODEL_FILE_H
#define CD_LLM_OP_MODEL_FILE_H
#include "learner/llm_op/llm_op_model.h"

/* "seen" and "novelties", a comma behind each. */
void cd_llm_op_novel_put(cd_buf *b, const cd_llm_op_model *m);
/* What a file without them lacks is not known. Names are read before. Errors: ESCHEMA, ERANGE,
 * ENOMEM. */
cdmpp_status cd_llm_op_novel_read(cd_llm_op_model *m, const cd_json *model, cdmpp_err *err);
/* "kv" of a range, behind its list of types. */
void cd_llm_op_kv_put(cd_buf *b, const cd_llm_op_range *g);
#endif
