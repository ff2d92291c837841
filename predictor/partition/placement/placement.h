/* The door of predictor/partition/placement: other rooms include this header and no other of the room.
 *
 * Which device runs which operator. */
#ifndef CD_PREDICTOR_PARTITION_PLACEMENT_DOOR_H
#define CD_PREDICTOR_PARTITION_PLACEMENT_DOOR_H
#include "predictor/partition/placement/place.h"
#include "predictor/partition/placement/variable_elimination.h"
#endif
