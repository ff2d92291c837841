/* cdmpp-mpi extract: the options of cdmpp-extract that make sense for several ranks, and their report. */
#include <signal.h>

#include "dataset/extract/extract.h"
#include "learner/cmd/main_mpi.h"

typedef struct {
    cd_extract x;
    cd_texts task;
} options;

#define AT(member) offsetof(options, member)
static const cd_option table[] = {
    {"tasks", 0, "FILE", CD_OPTION_FILES, AT(task), NULL, 0, "Task definitions, as for cdmpp-extract"},
    {"out", 'o', "FILE", CD_OPTION_FILE, AT(x.out), "*.h5", 0, "Data set to write (HDF5); parts are FILE.rank<r>of<N> beside it, in a folder that all ranks see"},
    {"jobs", 'j', "N", CD_OPTION_INT, AT(x.jobs), "1..1024", 0, "Threads of each rank (default: 1)"},
    {"restart", 0, NULL, CD_OPTION_FLAG, AT(x.restart), NULL, 0, "Do not go on from what a run left that was stopped"},
    {"strict", 0, NULL, CD_OPTION_FLAG, AT(x.strict), NULL, 0, "Stop at the first line that cannot be used"},
};

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    const options *w = to;
    if (!w->task.n) return CD_FAIL(err, EUSAGE, "--tasks is missing");
    if (!said->operand.n) return CD_FAIL(err, EUSAGE, "nothing to read");
    if (!w->x.out) return CD_FAIL(err, EUSAGE, "--out is missing");
    return CDMPP_OK;
}

static const char *const use[] = {"--tasks FILE --out OUT [OPTION...] LOG|FOLDER...", NULL};
const cd_command cd_main_mpi_extract_options = {
    "cdmpp-mpi extract", "turn measure logs into a data set, each rank its share of the files", use,
    "As cdmpp-extract, with the same contents for any number of ranks: files are dealt out by size, cut between files.",
    table, sizeof table / sizeof *table, NULL, "", NULL, NULL, NULL, NULL, check};

static atomic_bool stop;
static void on_signal(int sig) {
    (void)sig;
    stop = true;
}

static cdmpp_status extract(const cd_extract *x, const void *group, cd_extract_stats *s, cdmpp_err *err) {
    return cd_distributed_extract(x, group, s, err);
}

int cd_main_mpi_extract(int argc, char **argv, const cd_process_group *group) {
    options o = {.x = {.jobs = 1, .stop = &stop}};
    const struct sigaction act = {.sa_handler = on_signal};
    cd_extract_stats s = {0};
    cdmpp_err err = {0};
    cd_command_run f;
    int code;
    if (!cd_command_begin(&f, &cd_main_mpi_extract_options, argc, argv, &o, &code)) return code;
    o.x.input = f.said.operand.v, o.x.n_input = f.said.operand.n;
    o.x.task_file = o.task.v, o.x.n_task_file = o.task.n;
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    signal(SIGXFSZ, SIG_IGN);
    const double begin = cd_clock_wall();
    const cdmpp_status st = cd_extract_report_run(&o.x, extract, group, &f.log, &s, &err);
    if (st || !group->rank) code = cd_extract_report_end(&f.log, o.x.out, &s, cd_clock_wall() - begin, f.said.json, st, &err);
    cd_command_end(&f);
    return code;
}
