/* The door of predictor/partition/placement: other rooms include this header and no other of the
 * room.
 *
 * Which device runs which whole operator, when every device has its own seconds for it and copies
 * cost: exact where the graph is narrow, else with a bound. It takes a problem of numbers and gives
 * a placement; it knows no networks and no models. */
#ifndef CD_PREDICTOR_PARTITION_PLACEMENT_DOOR_H
#define CD_PREDICTOR_PARTITION_PLACEMENT_DOOR_H
#include "predictor/partition/placement/place.h"
#include "predictor/partition/placement/variable_elimination.h"
#endif
