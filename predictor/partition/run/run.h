/* The door of predictor/partition/run: other rooms include this header and no other of the room.
 *
 * Networks, plans, stages and programs of records run on the devices of this machine, measured, and
 * their values compared with the network run whole. */
#ifndef CD_PREDICTOR_PARTITION_RUN_DOOR_H
#define CD_PREDICTOR_PARTITION_RUN_DOOR_H
#include "predictor/partition/run/network_run.h"
#include "predictor/partition/run/network_values.h"
#include "predictor/partition/run/plan_run.h"
#include "predictor/partition/run/stage_run.h"
#include "predictor/partition/run/together_run.h"
#endif
