/* The door of predictor/partition/plan: other rooms include this header and no other of the room.
 *
 * The work of cdmpp-partition without its printing: reads a network, cost models and a machine, and
 * makes a plan. It connects the rooms below it: shard (plans that split operators), placement
 * (whole operators), stages, offload (rules), emit (sources), run (plans on this machine). */
#ifndef CD_PREDICTOR_PARTITION_PLAN_DOOR_H
#define CD_PREDICTOR_PARTITION_PLAN_DOOR_H
#include "predictor/partition/plan/partition.h"
#include "predictor/partition/plan/partition_pack.h"
#include "predictor/partition/plan/partition_rules.h"
#endif
