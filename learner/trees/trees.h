/* The door of learner/trees: other rooms include this header and no other of the room.
 *
 * Gradient-boosted trees: training by XGBoost (xgb.h), inference by our own walk with the same bits (tree_inference.h). Takes
 * matrices of float, gives scores; knows nothing of programs. For learner/model, learner/train, learner/operators, learner/export. */
#ifndef CD_LEARNER_TREES_DOOR_H
#define CD_LEARNER_TREES_DOOR_H
#include "learner/trees/tree_inference.h"
#include "learner/trees/xgb.h"
#endif
