/* The door of predictor/partition/shard: other rooms include this header and no other of the room.
 *
 * Plans that may split operators over several devices. shard_plan.h takes a network, a machine and
 * a function that estimates the time of a shard, and gives a plan: for each operator the devices,
 * the split axis and the shares. A plan is a value: it is written and read as JSON, checked against
 * a network, and replayed. shard_cost.h is such a function: it predicts the time of a shard by a
 * cost model. For predictor/partition/plan and run. Private headers: shard_ratio.h (shares of one
 * operator), shard_select.h (one option for each operator of a network). */
#ifndef CD_PREDICTOR_PARTITION_SHARD_DOOR_H
#define CD_PREDICTOR_PARTITION_SHARD_DOOR_H
#include "predictor/partition/shard/shard_cost.h"
#include "predictor/partition/shard/shard_plan.h"
#endif
