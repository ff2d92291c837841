/* The door of learner/llm_op: other rooms include this header and no other of the room.
 *
 * Operators of language models (products, attention, experts, collectives): the analytic estimate,
 * features, tables of measured times, the model, its file, and who answers questions with both.
 * learner/train trains them, predictor/serve and predictor/serving use them. Rows and forests are
 * those of learner/operators. */
#ifndef CD_LEARNER_LLM_OP_DOOR_H
#define CD_LEARNER_LLM_OP_DOOR_H
#include "learner/llm_op/llm_op_model.h"
#include "learner/llm_op/llm_op_oracle.h"
#endif
