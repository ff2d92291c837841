/* cdmpp-mpi: extraction and training by several processes under mpirun. Rank 0 prints and writes;
 * the output of the others is kept and shown only when one of them fails alone. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "learner/cmd/main_mpi.h"
#include "learner/cmd/main_train.h"

/* cdmpp-mpi extract: the options of cdmpp-extract that make sense for several ranks, and their
 * report. */

typedef struct {
    cd_extract x;
    cd_texts task, assumed;
    const cd_process_group *group;
} options;

#define AT(member) offsetof(options, member)
static const cd_option table[] = {
    {"tasks", 0, "FILE", CD_OPTION_FILES, AT(task), NULL, 0,
     "Task definitions, as for cdmpp-extract"},
    {"assume", 0, "symmetric-padding|float32", CD_OPTION_TEXTS, AT(assumed), NULL, 0,
     "Where printed definitions leave something open, as for cdmpp-extract"},
    {"out", 'o', "FILE", CD_OPTION_OUTPUT, AT(x.out), "*.h5", 0,
     "Data set to write (HDF5); parts are FILE.rank<r>of<N> beside it, in a folder that all ranks "
     "see"},
    {"jobs", 'j', "N", CD_OPTION_INT, AT(x.jobs), "1..1024", 0,
     "Threads of each rank (default: 1)"},
    {"steps", 0, NULL, CD_OPTION_FLAG, AT(x.steps), NULL, 0,
     "Keep the steps of the schedules too, which model.members=[tlp] reads"},
    {"ids", 0, NULL, CD_OPTION_FLAG, AT(x.ids), NULL, 0,
     "Keep an identity of each program too, which cdmpp-extract --merge-copies reads"},
    {"device", 0, "NAME", CD_OPTION_TEXT, AT(x.device), NULL, 0,
     "Device of the records whose target has no -model= (default: the folder of their log)"},
    {"restart", 0, NULL, CD_OPTION_FLAG, AT(x.restart), NULL, 0,
     "Do not go on from what a run left that was stopped"},
    {"strict", 0, NULL, CD_OPTION_FLAG, AT(x.strict), NULL, 0,
     "Stop at the first line that cannot be used"},
};

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    options *w = to;
    CD_TRY(cd_task_assumptions(w->assumed.v, w->assumed.n, &w->x.assume, err));
    if (!w->task.n) return CD_FAIL(err, EUSAGE, "--tasks is missing");
    if (!said->operand.n) return CD_FAIL(err, EUSAGE, "nothing to read");
    if (!w->x.out) return CD_FAIL(err, EUSAGE, "--out is missing");
    return CDMPP_OK;
}

static const char *const use_extract[] = {"--tasks FILE --out OUT [OPTION...] LOG|FOLDER...", NULL};
const cd_command cd_main_mpi_extract_options = {
    "cdmpp-mpi extract",
    "turn measure logs into a data set, each rank its share of the files",
    use_extract,
    "As cdmpp-extract, with the same contents for any number of ranks: files are dealt out by "
    "size, cut between files.",
    table,
    sizeof table / sizeof *table,
    NULL,
    "",
    NULL,
    NULL,
    NULL,
    NULL,
    check};

static cdmpp_status extract(const cd_extract *x, const void *group, cd_extract_stats *s,
                            cdmpp_err *err) {
    return cd_distributed_extract(x, group, s, err);
}

/* Rank 0 reports for all. No signal kills: mpirun sends them to every rank, and each ends in
 * order. */
static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    options *o = to;
    cd_extract_stats s = {0};
    o->x.input = r->said.operand.v, o->x.n_input = r->said.operand.n;
    o->x.task_file = o->task.v, o->x.n_task_file = o->task.n;
    o->x.stop = r->stop;
    cd_signals_kill_at(0);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_IGN);
    const double begin = cd_clock_wall();
    CD_TRY(cd_extract_report_run(&o->x, extract, o->group, &r->log, &s, err));
    return o->group->rank ? CDMPP_OK
                          : cd_extract_report_end(r, o->x.out, &s, cd_clock_wall() - begin, err);
}

static int main_mpi_extract(int argc, char **argv, const cd_process_group *group) {
    options o = {.x = {.jobs = 1}, .group = group};
    return cd_command_main(&cd_main_mpi_extract_options, argc, argv, &o, run);
}

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
        return main_mpi_extract(argc - 1, argv + 1, group);
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
