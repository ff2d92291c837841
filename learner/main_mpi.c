/* cdmpp-mpi -- extraction and training by several processes, under mpirun. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "learner/main_mpi.h"
#include "learner/main_train.h"

static const char usage[] =
    "usage: mpirun -n N cdmpp-mpi train [options of cdmpp-train] CONFIG.yaml\n"
    "       mpirun -n N cdmpp-mpi extract --tasks FILE --out OUT [options] LOG|FOLDER...\n"
    "The result has the same contents for any N; docs/mpi.md.\n";

/* Ranks but 0 print to a file without a name. The real standard error, or -1. */
static int be_quiet(FILE **kept) {
    const int real = dup(STDERR_FILENO);
    FILE *null = fopen("/dev/null", "w");
    *kept = tmpfile();
    fflush(stdout);
    if (null) (void)dup2(fileno(null), STDOUT_FILENO), fclose(null);
    if (*kept) (void)dup2(fileno(*kept), STDERR_FILENO);
    return real;
}

static void speak(int real, FILE *kept, int rank) {
    char b[4096];
    fflush(stderr);
    if (real < 0 || !kept) return;
    dprintf(real, "cdmpp-mpi: rank %d ends all\n", rank);
    rewind(kept);
    for (size_t n; (n = fread(b, 1, sizeof b, kept)) > 0;)
        if (write(real, b, n) < 0) return;
}

static int command(int argc, char **argv, const cd_crew *crew) {
    if (argc > 1 && strcmp(argv[1], "train") == 0) return cd_main_train(argc - 1, argv + 1, "cdmpp-mpi train", crew);
    if (argc > 1 && strcmp(argv[1], "extract") == 0) return cd_main_mpi_extract(argc - 1, argv + 1, crew);
    const bool help = argc > 1 && strcmp(argv[1], "--help") == 0;
    if (argc > 1 && strcmp(argv[1], "--version") == 0) printf("cdmpp-mpi (cdmpp) %s\n", cdmpp_version());
    else fputs(usage, help ? stdout : stderr);
    return argc > 1 && argv[1][0] == '-' && argv[1][1] == '-' ? 0 : 2;
}

int main(int argc, char **argv) {
    cd_mpi m = {0};
    FILE *kept = NULL;
    int rank, got, real = -1;
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &got) != MPI_SUCCESS) return 6;
    MPI_Comm_dup(MPI_COMM_WORLD, &m.comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &m.end);
    MPI_Comm_set_errhandler(m.comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(m.comm, &rank);
    if (rank) real = be_quiet(&kept);
    const cd_crew crew = cd_mpi_crew(&m);
    const int code = command(argc, argv, &crew);
    fflush(stdout);
    fflush(stderr);
    /* All fail alike, or this one alone: then the others wait for it somewhere else. */
    if (!cd_mpi_meet(m.end, code && code != 3 ? 3 : 0)) {
        speak(real, kept, rank);
        MPI_Abort(MPI_COMM_WORLD, code ? code : 1);
    }
    cd_mpi_free(&m);
    MPI_Comm_free(&m.comm);
    MPI_Comm_free(&m.end);
    if (kept) fclose(kept);
    MPI_Finalize();
    return rank ? 0 : code;
}
