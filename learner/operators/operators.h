/* The door of learner/operators: other rooms include this header and no other of the room.
 *
 * Models of library operators: features, data, model file, scores. */
#ifndef CD_LEARNER_OPERATORS_DOOR_H
#define CD_LEARNER_OPERATORS_DOOR_H
#include "learner/operators/library_op_data.h"
#include "learner/operators/library_op_model.h"
#include "learner/operators/library_op_model_build.h"
#include "learner/operators/library_op_score.h"
#endif
