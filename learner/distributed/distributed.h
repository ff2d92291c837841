/* The door of learner/distributed: other rooms include this header and no other of the room.
 *
 * Extraction and training by several processes: the group as five calls (process_group.h), how MPI makes them (mpi_group.h, only in
 * cdmpp-mpi), one data set by all ranks, and trees that all ranks grow together. Results do not depend on the number of ranks. */
#ifndef CD_LEARNER_DISTRIBUTED_DOOR_H
#define CD_LEARNER_DISTRIBUTED_DOOR_H
#include "learner/distributed/distributed_extract.h"
#include "learner/distributed/distributed_trees.h"
#include "learner/distributed/mpi_group.h"
#include "learner/distributed/process_group.h"
#endif
