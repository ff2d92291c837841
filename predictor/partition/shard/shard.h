/* The door of predictor/partition/shard: other rooms include this header and no other of the room.
 *
 * Plans that cut operators between devices, and what a shard costs. */
#ifndef CD_PREDICTOR_PARTITION_SHARD_DOOR_H
#define CD_PREDICTOR_PARTITION_SHARD_DOOR_H
#include "predictor/partition/shard/shard_cost.h"
#include "predictor/partition/shard/shard_plan.h"
#endif
