/* What the files of operators of language models share. */
#ifndef CD_LLM_OP_INTERNAL_H
#define CD_LLM_OP_INTERNAL_H
#include "learner/llm_op/llm_op_table.h"

/* Sorts what repeated rows differ. Errors: ENOMEM. */
cdmpp_status cd_llm_op_repeats_index(cd_llm_op_table *t, cdmpp_err *err);
#endif
