/* mpi_group -- a process group over MPI. Compiled into cdmpp-mpi alone, for the library does without MPI.
 *
 * (1) Sums are taken in the order of ranks by our own code, so that they have the same bits for any MPI; MPI only moves bytes.
 * (2) Where waiting for other ranks may last, it sleeps (2 ms); inside a step of training it does not. */
#ifndef CD_MPI_GROUP_H
#define CD_MPI_GROUP_H
#include "learner/distributed/process_group.h"

typedef struct cd_mpi_group cd_mpi_group;

/* Starts MPI. *group is how the library sees it, until cd_mpi_group_end. NULL: MPI cannot start. */
CD_GIVE cd_mpi_group *cd_mpi_group_start(int *argc, char ***argv, cd_process_group *group);
/* Waits, asleep, until all ranks have called this; at most limit_s (0: for ever). False: not all came. */
bool cd_mpi_group_meet(cd_mpi_group *m, double limit_s);
/* Ends all ranks with that exit code. */
void cd_mpi_group_abort(cd_mpi_group *m, int code);
/* Ends MPI, after all ranks have met. */
void cd_mpi_group_end(CD_TAKE cd_mpi_group *m);
#endif
