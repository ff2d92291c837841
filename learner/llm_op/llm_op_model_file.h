/* Parts of the header of a model file that stand in a file of their own (llm_op_model_file.c). */
#ifndef CD_LLM_OP_MODEL_FILE_H
#define CD_LLM_OP_MODEL_FILE_H
#include "learner/llm_op/llm_op_model.h"

#endif
