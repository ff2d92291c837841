/* The door of learner/operators: other rooms include this header and no other of the room.
 *
 * Cost models of library operators (matrix products, convolutions, softmax ... as cuBLAS and cuDNN run them) for devices where no
 * schedule exists: the tables of measurements, features, the model, its file and its figures. learner/train trains them,
 * predictor/network uses them. */
#ifndef CD_LEARNER_OPERATORS_DOOR_H
#define CD_LEARNER_OPERATORS_DOOR_H
#include "learner/operators/library_op_data.h"
#include "learner/operators/library_op_interval.h"
#include "learner/operators/library_op_model.h"
#include "learner/operators/library_op_model_build.h"
#include "learner/operators/library_op_score.h"
#endif
