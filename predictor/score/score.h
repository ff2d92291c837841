/* The door of predictor/score: other rooms include this header and no other of the room.
 *
 * Programs to seconds: batches, device match, cache, intervals. */
#ifndef CD_PREDICTOR_SCORE_DOOR_H
#define CD_PREDICTOR_SCORE_DOOR_H
#include "predictor/score/answer_cache.h"
#include "predictor/score/explain.h"
#include "predictor/score/scorer.h"
#include "predictor/score/tvm_packed.h"
#include "predictor/score/default_model.h"
#endif
