/* The door of learner/distributed: other rooms include this header and no other of the room.
 *
 * Training by several processes: groups, XGBoost's tracker, distributed trees. */
#ifndef CD_LEARNER_DISTRIBUTED_DOOR_H
#define CD_LEARNER_DISTRIBUTED_DOOR_H
#include "learner/distributed/distributed_extract.h"
#include "learner/distributed/distributed_trees.h"
#include "learner/distributed/mpi_group.h"
#include "learner/distributed/process_group.h"
#endif
