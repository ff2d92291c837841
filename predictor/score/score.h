/* The door of predictor/score: other rooms include this header and no other of the room.
 *
 * Predicts seconds. It takes candidates (records, steps, or rows of features), finds the device of
 * the model, lowers the program, collects a batch, and gives latency, interval and flags for each;
 * it also keeps answers and explains them. */
#ifndef CD_PREDICTOR_SCORE_DOOR_H
#define CD_PREDICTOR_SCORE_DOOR_H
#include "predictor/score/answer_cache.h"
#include "predictor/score/explain.h"
#include "predictor/score/scorer.h"
#include "predictor/score/tvm_packed.h"
#include "predictor/score/default_model.h"
#include "predictor/score/user_model.h"
#endif
