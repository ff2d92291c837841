/* cdmpp-extract -- measure logs to a data set. */
#include <argp.h>
#include <signal.h>
#include <time.h>

#include "base/progress.h"
#include "dataset/report.h"
#include "features/cols.h"

typedef struct options {
    const char *out, *merge, *print;
    const char **task, **input; /* (n) */
    size_t n_task, n_input;
    int jobs;
    unsigned shard, n_shard;
    bool strict, restart, quiet, json, columns, write_tasks;
} options;

enum { OPT_TASKS = 256, OPT_SHARD, OPT_MERGE, OPT_STRICT, OPT_RESTART, OPT_JSON, OPT_PRINT, OPT_COLUMNS, OPT_WRITE };
static const struct argp_option table[] = {
    {"tasks", OPT_TASKS, "FILE", 0, "Task definitions: all_tasks.pkl, *.task.pkl, networks.json, or a folder of these (repeatable)", 0},
    {"out", 'o', "FILE", 0, "Data set to write (HDF5)", 0},
    {"jobs", 'j', "N", 0, "Threads (default: one per CPU); the result does not depend on it", 0},
    {"shard", OPT_SHARD, "I/N", 0, "Only the I-th of N parts of the input, cut between files by size", 0},
    {"restart", OPT_RESTART, NULL, 0, "Do not go on from FILE.partial of a run that was stopped", 0},
    {"strict", OPT_STRICT, NULL, 0, "Stop at the first line that cannot be used", 0},
    {"merge", OPT_MERGE, "OUT", 0, "Join data sets (the arguments), in order, into OUT", 1},
    {"print", OPT_PRINT, "FILE[:LINE]", 0, "Print the loop nest of one record", 1},
    {"write-tasks", OPT_WRITE, NULL, 0, "Print all tasks and networks in our own text form (docs/tasks.md)", 1},
    {"list-columns", OPT_COLUMNS, NULL, 0, "Print the manual of the feature columns (docs/columns.md)", 1},
    {"quiet", 'q', NULL, 0, "Only errors on standard error", 2},
    {"json", OPT_JSON, NULL, 0, "Summary as one JSON object on standard output", 2},
    {0},
};

static atomic_bool stop;
/* The third one kills, which loses nothing either. Not the second: timeout(1)
 * sends two. */
static void on_signal(int sig) {
    static atomic_int n;
    stop = true;
    if (atomic_fetch_add(&n, 1) < 2) return;
    signal(sig, SIG_DFL);
    raise(sig);
}

static error_t parse_one(int key, char *arg, struct argp_state *state) {
    options *o = state->input;
    char rest;
    switch (key) {
    case OPT_TASKS: o->task[o->n_task++] = arg; break;
    case 'o': o->out = arg; break;
    case 'j':
        if (sscanf(arg, "%d%c", &o->jobs, &rest) != 1 || o->jobs < 1 || o->jobs > 1024)
            argp_error(state, "-j: expected 1..1024, found %s", arg);
        break;
    case OPT_SHARD:
        if (sscanf(arg, "%u/%u%c", &o->shard, &o->n_shard, &rest) != 2 || o->shard < 1 || o->shard > o->n_shard)
            argp_error(state, "--shard: expected I/N with 1 <= I <= N, found %s", arg);
        break;
    case OPT_MERGE: o->merge = arg; break;
    case OPT_PRINT: o->print = arg; break;
    case OPT_STRICT: o->strict = true; break;
    case OPT_RESTART: o->restart = true; break;
    case OPT_COLUMNS: o->columns = true; break;
    case OPT_WRITE: o->write_tasks = true; break;
    case OPT_JSON: o->json = true; break;
    case 'q': o->quiet = true; break;
    case ARGP_KEY_ARG: o->input[o->n_input++] = arg; break;
    case ARGP_KEY_END:
        if (o->columns) break;
        if (!o->merge && !o->n_task) argp_error(state, "--tasks is missing");
        if (o->write_tasks) break;
        if (!o->print && !o->n_input) argp_error(state, "nothing to read");
        if (!o->print && !o->merge && !o->out) argp_error(state, "--out is missing");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* What the file says about how it was made: the options that change its contents. */
static void put_command(cd_buf *b, const options *o) {
    cd_buf_puts(b, o->merge ? "cdmpp-extract --merge" : "cdmpp-extract");
    for (size_t i = 0; i < o->n_task && !o->merge; i++) cd_buf_putf(b, " --tasks '%s'", o->task[i]);
    if (o->n_shard) cd_buf_putf(b, " --shard %u/%u", o->shard, o->n_shard);
    for (size_t i = 0; i < o->n_input; i++) cd_buf_putf(b, " '%s'", o->input[i]);
}

static void on_progress(void *ctx, const cd_extract_stats *s) {
    cd_progress *p = ctx;
    if (s->bytes) p->total = (uint64_t)((double)s->records * (double)s->bytes_total / (double)s->bytes);
    cd_progress_step(p, s->records);
}

static cdmpp_status extract(const options *o, const char *command, cd_log *log, cd_extract_stats *s, cdmpp_err *err) {
    cd_progress bar;
    cd_extract x = {.out = o->out, .input = o->input, .n_input = o->n_input, .task_file = o->task,
                    .n_task_file = o->n_task, .jobs = o->jobs, .shard = o->shard, .n_shard = o->n_shard,
                    .strict = o->strict, .restart = o->restart, .command_line = command, .stop = &stop,
                    .progress = on_progress, .progress_ctx = &bar};
    cd_progress_begin(&bar, log, "extract", "records", 0);
    const cdmpp_status st = cd_extract_logs(&x, s, err);
    if (st == CDMPP_OK || bar.done) cd_progress_end(&bar);
    return st;
}

static cdmpp_status print_text(const options *o, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = CDMPP_OK;
    if (o->columns) cd_cols_print(&b);
    else if (o->write_tasks) st = cd_extract_tasks(o->task, o->n_task, &b, err);
    else st = cd_extract_print(o->task, o->n_task, o->print, &b, err);
    if (st == CDMPP_OK && b.oom) st = CD_FAIL(err, ENOMEM, "text of %zu bytes", b.n);
    if (st == CDMPP_OK && b.p && fwrite(b.p, 1, b.n, stdout) != b.n) st = CD_FAIL(err, EIO, "cannot write to standard output");
    cd_buf_free(&b);
    return st;
}

static cdmpp_status work(const options *o, cd_log *log, cd_extract_stats *s, cdmpp_err *err) {
    cd_buf command = {0};
    cdmpp_status st;
    put_command(&command, o);
    if (command.oom) st = CD_FAIL(err, ENOMEM, "command line");
    else if (o->merge) st = cd_merge(o->merge, o->input, o->n_input, command.p, s, err);
    else st = extract(o, command.p, log, s, err);
    cd_buf_free(&command);
    return st;
}

/* The extraction or merge, its report and the exit code. */
static int run(const options *o, cd_log *log) {
    cd_extract_stats s = {0};
    cdmpp_err err = {0};
    cd_buf b = {0};
    struct timespec t0, t1;
    const char *out = o->merge ? o->merge : o->out;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    const cdmpp_status st = work(o, log, &s, &err);
    clock_gettime(CLOCK_MONOTONIC, &t1);
    const double seconds = (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec);
    if (st) {
        cd_log_err(log, CD_LOG_ERROR, &err);
        return cdmpp_exit_code(st);
    }
    cd_report_text(log, out, &s);
    if (o->json) cd_report_json(&b, out, &s, seconds);
    const bool ok = !b.oom && (!b.p || fwrite(b.p, 1, b.n, stdout) == b.n) && fflush(stdout) == 0;
    cd_buf_free(&b);
    return !ok ? 1 : s.skipped ? 3 : 0;
}

static int text(const options *o, cd_log *log) {
    cdmpp_err err = {0};
    const cdmpp_status st = print_text(o, &err);
    if (st) cd_log_err(log, CD_LOG_ERROR, &err);
    return cdmpp_exit_code(st);
}

int main(int argc, char **argv) {
    static const struct argp argp = {table, parse_one, "--tasks FILE --out OUT LOG|FOLDER...\n--merge OUT IN...",
                                     "Turn measure logs of Ansor or TenSet into a data set of features and labels.",
                                     NULL, NULL, NULL};
    options o = {.task = cd_calloc((size_t)argc + 1, sizeof *o.task), .input = cd_calloc((size_t)argc + 1, sizeof *o.input)};
    const struct sigaction act = {.sa_handler = on_signal};
    cd_log log;
    int rc = 1;
    argp_err_exit_status = 2;
    argp_program_version = "cdmpp-extract (cdmpp) " CDMPP_VERSION;
    cd_log_init(&log, "cdmpp-extract", stderr);
    if (o.task && o.input) {
        argp_parse(&argp, argc, argv, 0, NULL, &o);
        if (o.quiet) log.level = CD_LOG_ERROR;
        sigaction(SIGINT, &act, NULL);
        sigaction(SIGTERM, &act, NULL);
        signal(SIGXFSZ, SIG_IGN); /* a limit on file size becomes an error of write() */
        rc = o.columns || o.print || o.write_tasks ? text(&o, &log) : run(&o, &log);
    }
    cd_log_done(&log);
    cd_free(o.task);
    cd_free(o.input);
    return rc;
}
