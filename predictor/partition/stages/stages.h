/* The door of predictor/partition/stages: other rooms include this header and no other of the room.
 *
 * Which operators of a block run at the same time: a sequence of stages, found by dynamic
 * programming (IOS). It takes a graph and a callback for the time of a stage, and gives a plan. */
#ifndef CD_PREDICTOR_PARTITION_STAGES_DOOR_H
#define CD_PREDICTOR_PARTITION_STAGES_DOOR_H
#include "predictor/partition/stages/stage_schedule.h"
#endif
