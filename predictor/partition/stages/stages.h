/* The door of predictor/partition/stages: other rooms include this header and no other of the room.
 *
 * Which operators run at the same time: stages (IOS) and games. */
#ifndef CD_PREDICTOR_PARTITION_STAGES_DOOR_H
#define CD_PREDICTOR_PARTITION_STAGES_DOOR_H
#include "predictor/partition/stages/stage_game.h"
#include "predictor/partition/stages/stage_schedule.h"
#endif
