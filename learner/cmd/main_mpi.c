/* cdmpp-mpi: extraction and training by several processes under mpirun. Rank 0 prints and writes;
 * the output of the others is kept and shown only when one of them fails alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "learner/cmd/main_mpi.h"
#include "learner/cmd/main_train.h"

static const char *const use[] = {"train [OPTION...] CONFIG.yaml",
                                  "extract --tasks FILE --out OUT [OPTION...] LOG|FOLDER...", NULL};
static const char *const example[] = {
    "Four ranks on this machine",
    "mpirun -n 4 cdmpp-mpi extract --tasks tasks/ --out d.h5 measure_records/\n"
    "mpirun -n 4 cdmpp-mpi train v100.yaml --set data.files=d.h5 --checkpoint ck --out m.cdmpp",
    NULL};
static const char *const file[] = {
    "OUT.rank<r>of<N>",
    "A finished part of an extraction. The same command with as many ranks keeps it.", NULL};
static const char *const see[] = {"cdmpp-train(1)", "cdmpp-extract(1)", "mpirun(1)", NULL};
static const cd_command *const verb[] = {&cd_main_train_options_mpi, &cd_main_mpi_extract_options,
                                         NULL};
static const cd_command mpi = {"cdmpp-mpi",
                               "extraction and training by several processes",
                               use,
                               "Runs under mpirun. The result has the same contents for any number "
                               "of ranks (docs/reference/mpi.md); rank 0 prints and writes.",
                               NULL,
                               0,
                               NULL,
                               NULL,
                               example,
                               file,
                               see,
                               verb,
                               NULL};

/* Ranks but 0 print to a file without a name. Returns the real standard error, or -1. */
static int be_quiet(FILE **kept) {
    const int real = dup(STDERR_FILENO);
    FILE *null = fopen("/dev/null", "w");
    *kept = tmpfile();
    fflush(stdout);
    if (null) (void)dup2(fileno(null), STDOUT_FILENO), fclose(null);
    if (*kept) (void)dup2(fileno(*kept), STDERR_FILENO);
    return real;
}

/* A rank that fails alone prints what it kept, because its error is the reason why all end. */
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
    (void)CD_FAIL(&err, EUSAGE, "expected train or extract first, found '%.60s'",
                  argc > 1 ? argv[1] : "");
    code = cd_command_usage(&f, &err);
    cd_command_end(&f);
    return code;
}

static int command(int argc, char **argv, const cd_process_group *group) {
    if (argc > 1 && strcmp(argv[1], "train") == 0)
        return cd_main_train(argc - 1, argv + 1, verb[0], group);
    if (argc > 1 && strcmp(argv[1], "extract") == 0)
        return cd_main_mpi_extract(argc - 1, argv + 1, group);
    return no_verb(argc, argv);
}

int main(int argc, char **argv) {
    cd_process_group group;
    FILE *kept = NULL;
    int real = -1;
    /* The manual page and the completions are made where no rank can start. */
    if (argc == 2 && strncmp(argv[1], "--help=", 7) == 0) return no_verb(argc, argv);
    cd_mpi_group *m = cd_mpi_group_start(&argc, &argv, &group);
    if (!m) return 6;
    const int rank = (int)group.rank;
    if (rank) real = be_quiet(&kept);
    const int code = command(argc, argv, &group);
    fflush(stdout);
    fflush(stderr);
    /* Either all ranks failed alike, or this one alone: then the others wait for it somewhere
     * else. */
    if (!cd_mpi_group_meet(m, code && code != 3 ? 3 : 0)) {
        speak(real, kept, rank);
        cd_mpi_group_abort(m, code ? code : 1);
    }
    if (kept) fclose(kept);
    cd_mpi_group_end(m);
    return rank ? 0 : code;
}
