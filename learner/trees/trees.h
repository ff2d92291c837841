/* The door of learner/trees: other rooms include this header and no other of the room.
 *
 * XGBoost through its C API, and trees applied without it. */
#ifndef CD_LEARNER_TREES_DOOR_H
#define CD_LEARNER_TREES_DOOR_H
#include "learner/trees/tree_inference.h"
#include "learner/trees/xgb.h"
#endif
