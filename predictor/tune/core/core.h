/* The door of predictor/tune/core: other rooms include this header and no other of the room.
 *
 * What every part of the tuner shares: its job, its keys, its knobs. */
#ifndef CD_PREDICTOR_TUNE_CORE_DOOR_H
#define CD_PREDICTOR_TUNE_CORE_DOOR_H
#include "predictor/tune/core/tune.h"
#include "predictor/tune/core/tune_key_set.h"
#include "predictor/tune/core/tune_knobs.h"
#endif
