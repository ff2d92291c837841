/* main_mpi -- what the parts of cdmpp-mpi share. Built only where Open MPI is.
 *
 *   mpirun -n 4 cdmpp-mpi train ..      rank 0 prints and writes; the others' output is kept
 *                                       and shown only when one of them fails alone
 *
 * (1) Sums are taken in the order of ranks by our own code: MPI only moves bytes.
 * (2) Waiting for others sleeps (2 ms) where it may last; inside a step it does not.
 * (3) A rank that fails alone prints its error and ends all with its exit code. */
#ifndef CD_MAIN_MPI_H
#define CD_MAIN_MPI_H
#include <mpi.h>

#include "base/cli/cli.h"
#include "learner/distributed/distributed.h"

typedef struct cd_mpi {
    MPI_Comm comm, end;      /* `end` is for the last barrier alone */
    float *buf;              /* of allreduce, owned */
    size_t cap;
} cd_mpi;

cd_process_group cd_mpi_group(cd_mpi *m);
void cd_mpi_free(cd_mpi *m);
/* Until all ranks are here, asleep; at most limit_s (0: for ever). False: not all came. */
bool cd_mpi_meet(MPI_Comm comm, double limit_s);
/* `cdmpp-mpi extract`; the exit code. */
extern const cd_command cd_main_mpi_extract_options;
int cd_main_mpi_extract(int argc, char **argv, const cd_process_group *crew);
#endif
