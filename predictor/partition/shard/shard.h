/* The door of predictor/partition/shard: other rooms include this header and no other of the room.
 *
 * Plans that may split operators over devices: the ratio of one operator, one option for each operator of a network, what a shard costs by a cost model, and the plan
 * as a value that is written, read and drawn. */
#ifndef CD_PREDICTOR_PARTITION_SHARD_DOOR_H
#define CD_PREDICTOR_PARTITION_SHARD_DOOR_H
#include "predictor/partition/shard/shard_cost.h"
#include "predictor/partition/shard/shard_plan.h"
#endif
