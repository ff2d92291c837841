/* cdmpp-mpi extract: the options of cdmpp-extract that make sense for several ranks, and their
 * report. */
#include <signal.h>

#include "learner/cmd/main_mpi.h"

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

static const char *const use[] = {"--tasks FILE --out OUT [OPTION...] LOG|FOLDER...", NULL};
const cd_command cd_main_mpi_extract_options = {
    "cdmpp-mpi extract",
    "turn measure logs into a data set, each rank its share of the files",
    use,
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

int cd_main_mpi_extract(int argc, char **argv, const cd_process_group *group) {
    options o = {.x = {.jobs = 1}, .group = group};
    return cd_command_main(&cd_main_mpi_extract_options, argc, argv, &o, run);
}
