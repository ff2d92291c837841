/* The door of predictor/tune/core: other rooms include this header and no other of the room.
 *
 * The words of the search: candidates, spaces, rankers and searches as interfaces, sets of programs, steps as numbers. */
#ifndef CD_PREDICTOR_TUNE_CORE_DOOR_H
#define CD_PREDICTOR_TUNE_CORE_DOOR_H
#include "predictor/tune/core/tune.h"
#include "predictor/tune/core/tune_key_set.h"
#include "predictor/tune/core/tune_knobs.h"
#endif
