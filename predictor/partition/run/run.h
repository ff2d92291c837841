/* The door of predictor/partition/run: other rooms include this header and no other of the room.
 *
 * Plans run and measured on devices that are here. */
#ifndef CD_PREDICTOR_PARTITION_RUN_DOOR_H
#define CD_PREDICTOR_PARTITION_RUN_DOOR_H
#include "predictor/partition/run/network_run.h"
#include "predictor/partition/run/plan_run.h"
#include "predictor/partition/run/stage_run.h"
#endif
