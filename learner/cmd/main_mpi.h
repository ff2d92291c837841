/* main_mpi -- what the parts of cdmpp-mpi share. Built only where Open MPI is. */
#ifndef CD_MAIN_MPI_H
#define CD_MAIN_MPI_H
#include "learner/distributed/distributed.h"

/* `cdmpp-mpi extract`; returns the exit code. */
extern const cd_command cd_main_mpi_extract_options;
#endif
