/* cdmpp-mpi -- extraction and training by several processes, under mpirun. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "learner/cmd/main_mpi.h"
#include "learner/cmd/main_train.h"

static const char *const use[] = {"train [OPTION...] CONFIG.yaml", "extract --tasks FILE --out OUT [OPTION...] LOG|FOLDER...", NULL};
static const char *const example[] = {
    "Four ranks on this machine", "mpirun -n 4 cdmpp-mpi extract --tasks tasks/ --out d.h5 measure_records/\n"
    "mpirun -n 4 cdmpp-mpi train v100.yaml --set data.files=d.h5 --checkpoint ck --out m.cdmpp", NULL};
static const char *const file[] = {"OUT.rank<r>of<N>", "A finished part of an extraction. The same command with as many ranks keeps it.", NULL};
static const char *const see[] = {"cdmpp-train(1)", "cdmpp-extract(1)", "mpirun(1)", NULL};
static const cd_command *const verb[] = {&cd_main_train_options_mpi, &cd_main_mpi_extract_options, NULL};
static const cd_command mpi = {
    "cdmpp-mpi", "extraction and training by several processes", use,
    "Runs under mpirun. The result has the same contents for any number of ranks (docs/reference/mpi.md); rank 0 prints and writes.",
    NULL, 0, NULL, NULL, example, file, see, verb, NULL};

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

/* Nothing but options before a verb, and those end it. */
static int no_verb(int argc, char **argv) {
    cd_command_run f;
    int code;
    cdmpp_err err = {0};
    if (!cd_command_begin(&f, &mpi, argc, argv, NULL, &code)) return code;
    (void)CD_FAIL(&err, EUSAGE, "expected train or extract first, found '%.60s'", argc > 1 ? argv[1] : "");
    code = cd_command_usage(&f, &err);
    cd_command_end(&f);
    return code;
}

static int command(int argc, char **argv, const cd_process_group *crew) {
    if (argc > 1 && strcmp(argv[1], "train") == 0) return cd_main_train(argc - 1, argv + 1, verb[0], crew);
    if (argc > 1 && strcmp(argv[1], "extract") == 0) return cd_main_mpi_extract(argc - 1, argv + 1, crew);
    return no_verb(argc, argv);
}

int main(int argc, char **argv) {
    cd_mpi m = {0};
    FILE *kept = NULL;
    int rank, got, real = -1;
    /* The page and the scripts are made where no rank can start. */
    if (argc == 2 && strncmp(argv[1], "--help=", 7) == 0) return no_verb(argc, argv);
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &got) != MPI_SUCCESS) return 6;
    MPI_Comm_dup(MPI_COMM_WORLD, &m.comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &m.end);
    MPI_Comm_set_errhandler(m.comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(m.comm, &rank);
    if (rank) real = be_quiet(&kept);
    const cd_process_group crew = cd_mpi_group(&m);
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
