/* cdmpp-extract: options, and which call of dataset/extract does them. */
#include <signal.h>
#include <stdlib.h>

#include "base/io/io.h"
#include "dataset/extract/extract.h"

typedef struct options {
    const char *out, *merge, *copies, *slow_text, *print, *shard_text, *device;
    cd_texts task, input, assumed;
    unsigned assume;
    int jobs;
    unsigned shard, n_shard;
    double slow;
    bool strict, restart, steps, ids, json, columns, write_tasks;
} options;

enum { MAIN, OTHER };
static const char *const group[] = {"Extraction", "Other work"};
#define AT(member) offsetof(options, member)
static const cd_option table[] = {
    {"tasks", 0, "FILE", CD_OPTION_FILES, AT(task), NULL, MAIN,
     "Task definitions: all_tasks.pkl, *.task.pkl, networks.json, our text form, a text in which "
     "TVM printed definitions beside their keys (*.out), or a folder of these"},
    {"assume", 0, "symmetric-padding|float32", CD_OPTION_TEXTS, AT(assumed), NULL, MAIN,
     "Where definitions that TVM printed leave something open: padding is as wide behind as "
     "before; a type that nothing fixes is float32. Without it such tasks are refused"},
    {"out", 'o', "FILE", CD_OPTION_OUTPUT, AT(out), "*.h5", MAIN, "Data set to write (HDF5)"},
    {"jobs", 'j', "N", CD_OPTION_INT, AT(jobs), "1..1024", MAIN,
     "Threads (default: one per CPU); the result does not depend on it"},
    {"steps", 0, NULL, CD_OPTION_FLAG, AT(steps), NULL, MAIN,
     "Keep the steps of the schedules too, which model.members=[tlp] reads"},
    {"ids", 0, NULL, CD_OPTION_FLAG, AT(ids), NULL, MAIN,
     "Keep an identity of each program too, which --merge-copies reads"},
    {"device", 0, "NAME", CD_OPTION_TEXT, AT(device), NULL, MAIN,
     "Device of the records whose target has no -model= (default: the folder of their log)"},
    {"shard", 0, "I/N", CD_OPTION_TEXT, AT(shard_text), NULL, MAIN,
     "Only the I-th of N parts of the input, cut between files by size"},
    {"restart", 0, NULL, CD_OPTION_FLAG, AT(restart), NULL, MAIN,
     "Do not go on from FILE.partial of a run that was stopped"},
    {"strict", 0, NULL, CD_OPTION_FLAG, AT(strict), NULL, MAIN,
     "Stop at the first line that cannot be used"},
    {"merge", 0, "OUT", CD_OPTION_OUTPUT, AT(merge), "*.h5", OTHER,
     "Join data sets (the arguments), in order, into OUT"},
    {"merge-copies", 0, "OUT", CD_OPTION_OUTPUT, AT(copies), "*.h5", OTHER,
     "Join data sets of --ids into OUT, each program once: the median of its copies; runs that are "
     "slow as a whole are left out"},
    {"slow-run", 0, "X", CD_OPTION_TEXT, AT(slow_text), NULL, OTHER,
     "With --merge-copies: a run (a folder of logs) is slow that takes more than X times as long "
     "as others for the same programs (default: 1.25; 0: none is)"},
    {"print", 0, "FILE[:LINE]", CD_OPTION_FILE, AT(print), NULL, OTHER,
     "Print the loop nest of one record"},
    {"write-tasks", 0, NULL, CD_OPTION_FLAG, AT(write_tasks), NULL, OTHER,
     "Print all tasks and networks in our own text form (docs/reference/tasks.md)"},
    {"list-columns", 0, NULL, CD_OPTION_FLAG, AT(columns), NULL, OTHER,
     "Print the manual of the feature columns (docs/reference/columns.md)"},
};

static cdmpp_status read_slow(options *o, cdmpp_err *err) {
    char *rest;
    o->slow = 1.25;
    if (!o->slow_text) return CDMPP_OK;
    if (!o->copies) return CD_FAIL(err, EUSAGE, "--slow-run: only with --merge-copies");
    o->slow = strtod(o->slow_text, &rest);
    if (*o->slow_text && !*rest && (o->slow == 0 || (o->slow > 1 && o->slow < 1e6)))
        return CDMPP_OK;
    return CD_FAIL(err, EUSAGE, "--slow-run: expected 0 or a number above 1, found '%.60s'",
                   o->slow_text);
}

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    options *o = to;
    char rest;
    const size_t n_input = said->operand.n;
    if (o->shard_text && (sscanf(o->shard_text, "%u/%u%c", &o->shard, &o->n_shard, &rest) != 2 ||
                          o->shard < 1 || o->shard > o->n_shard))
        return CD_FAIL(err, EUSAGE, "--shard: expected I/N with 1 <= I <= N, found '%.60s'",
                       o->shard_text);
    CD_TRY(read_slow(o, err));
    CD_TRY(cd_task_assumptions(o->assumed.v, o->assumed.n, &o->assume, err));
    if (o->columns) return CDMPP_OK;
    if (o->merge && o->copies)
        return CD_FAIL(err, EUSAGE, "--merge and --merge-copies: one of both");
    if (!o->merge && !o->copies && !o->task.n) return CD_FAIL(err, EUSAGE, "--tasks is missing");
    if (o->write_tasks) return CDMPP_OK;
    if (!o->print && !n_input) return CD_FAIL(err, EUSAGE, "nothing to read");
    if (!o->print && !o->merge && !o->copies && !o->out)
        return CD_FAIL(err, EUSAGE, "--out is missing");
    return CDMPP_OK;
}

static const char *const use[] = {"--tasks FILE --out OUT [OPTION...] LOG|FOLDER...",
                                  "--merge OUT IN...", "--merge-copies OUT [--slow-run X] IN...",
                                  "--tasks FILE --print FILE[:LINE]", NULL};
static const char *const example[] = {
    "TenSet's logs of a device, with all cores",
    "cdmpp-extract --tasks network_info --out epyc.h5 measure_records/epyc-7452/",
    "The second of four parts, and all of them joined",
    "cdmpp-extract --tasks network_info --shard 2/4 --out part2.h5 measure_records/\ncdmpp-extract "
    "--merge all.h5 part1.h5 part2.h5 part3.h5 part4.h5",
    "Programs that several runs on one machine measured, once each",
    "cdmpp-extract --ids --device epyc --tasks tasks.pkl --out runs.h5 logs/\ncdmpp-extract "
    "--merge-copies once.h5 runs.h5",
    "The loop nest of line 7",
    "cdmpp-extract --tasks network_info --print new_records.json:7",
    NULL};
static const char *const file[] = {
    "OUT.partial",
    "A folder: what a run that was stopped has done. The same command goes on from it.",
    "OUT.skipped.tsv", "The lines that could not be used: file, line, reason.", NULL};
static const char *const see[] = {"cdmpp-train(1)", "cdmpp-predict(1)", "cdmpp-mpi(1)", NULL};
static const cd_option_usual usual[] = {
    {"tasks", "Task definitions: a file or a folder"},
    {"out", "Data set to write (HDF5)"},
    {"device", "Device of records that name none"},
    {"jobs", "Threads (default: one per CPU)"},
    {"ids", "Keep an identity of each program too"},
    {"shard", "Only the I-th of N parts of the input"},
    {"strict", "Stop at the first line that cannot be used"},
    {"merge", "Join data sets into one"},
    {"merge-copies", "Join data sets of --ids, each program once"},
    {"print", "Show the program of a record"},
    {"list-columns", "Explain the feature columns"},
    {NULL, NULL},
};

static const cd_command self = {"cdmpp-extract",
                                "turn measure logs into a data set of features and labels",
                                use,
                                "Reads measure logs of TVM's auto_scheduler (Ansor) or of TenSet, "
                                "plain or packed with gzip, xz or zstd, rebuilds every "
                                "program and writes its features and its measured latency into an "
                                "HDF5 file, which h5py reads as well.\n\n"
                                "A line that cannot be used is counted, listed with file, line and "
                                "reason, and skipped; the exit status is 3 then. A "
                                "signal ends a run at the next record, exit status 130, and the "
                                "same command goes on from there.",
                                table,
                                sizeof table / sizeof *table,
                                group,
                                "",
                                example,
                                file,
                                see,
                                NULL,
                                check,
                                usual};

static cdmpp_status extract_here(const cd_extract *x, const void *ctx, cd_extract_stats *s,
                                 cdmpp_err *err) {
    (void)ctx;
    return cd_extract_logs(x, s, err);
}

static cdmpp_status extract(const options *o, cd_command_run *r, cd_extract_stats *s,
                            cdmpp_err *err) {
    cd_extract x = {.out = o->out,
                    .input = o->input.v,
                    .n_input = o->input.n,
                    .task_file = o->task.v,
                    .n_task_file = o->task.n,
                    .assume = o->assume,
                    .jobs = o->jobs,
                    .shard = o->shard,
                    .n_shard = o->n_shard,
                    .strict = o->strict,
                    .restart = o->restart,
                    .steps = o->steps,
                    .ids = o->ids,
                    .device = o->device,
                    .stop = r->stop};
    return cd_extract_report_run(&x, extract_here, NULL, &r->log, s, err);
}

static cdmpp_status merge_copies(const options *o, const char *command, cd_log *log,
                                 cd_extract_stats *s, cdmpp_err *err) {
    cd_copies_stats c = {0};
    CD_TRY(cd_merge_copies(o->copies, o->input.v, o->input.n, o->slow, command, log, s, &c, err));
    cd_log_put(log, CD_LOG_INFO,
               "%llu programs of %llu records; %llu of them were measured more than once, in %llu "
               "records: the slowest copy over the fastest is %.3f (median), %.3f (p90)",
               (unsigned long long)c.programs, (unsigned long long)s->records,
               (unsigned long long)c.several, (unsigned long long)c.records_of_several,
               c.spread_median, c.spread_p90);
    if (c.slow_runs)
        cd_log_put(log, CD_LOG_INFO, "%llu slow runs with %llu records were left out",
                   (unsigned long long)c.slow_runs, (unsigned long long)c.left_out);
    return CDMPP_OK;
}

static cdmpp_status once(options *o, cd_log *log, cdmpp_err *err) {
    cd_buf said = {0};
    const cdmpp_status st = cd_file_once(o->input.v, &o->input.n, &said, err);
    if (!st && said.n) cd_log_put(log, CD_LOG_WARNING, "%s", said.p);
    cd_buf_free(&said);
    return st;
}

static cdmpp_status merge(options *o, cd_log *log, cd_extract_stats *s, cdmpp_err *err) {
    cd_buf command = {0};
    CD_TRY(once(o, log, err));
    cd_buf_puts(&command, o->copies ? "cdmpp-extract --merge-copies" : "cdmpp-extract --merge");
    if (o->copies) cd_buf_putf(&command, " --slow-run %g", o->slow);
    for (size_t i = 0; i < o->input.n; i++) {
        cd_buf_puts(&command, " ");
        if (strchr(o->input.v[i], '\'')) cd_escape_shell(&command, cd_str_of(o->input.v[i]));
        else cd_buf_putf(&command, "'%s'", o->input.v[i]);
    }
    cdmpp_status st;
    if (command.oom) st = CD_FAIL(err, ENOMEM, "command line");
    else if (o->copies) st = merge_copies(o, command.p, log, s, err);
    else st = cd_merge(o->merge, o->input.v, o->input.n, command.p, s, err);
    cd_buf_free(&command);
    return st;
}

/* The tasks' text form is an object by itself. */
static cdmpp_status print_json(const options *o, cd_buf *text, cdmpp_err *err) {
    cd_buf quoted = {0}, b = {0};
    if (o->write_tasks && !o->columns) return cd_command_print(text, err);
    if (!o->columns) cd_command_quote(&quoted, text);
    cd_command_json(&b, o->columns ? "cdmpp.columns" : "cdmpp.nest", self.name, NULL,
                    o->columns ? text : &quoted);
    return cd_command_print(&b, err);
}

static cdmpp_status print_text(const options *o, cd_command_run *r, cdmpp_err *err) {
    cd_buf b = {0};
    size_t n_task = 1;
    cdmpp_status st = CDMPP_OK;
    if (o->columns) (o->json ? cd_cols_json : cd_cols_print)(&b);
    else if (o->write_tasks)
        st = cd_extract_tasks(o->task.v, o->task.n, o->assume, &r->log, &b, &n_task, err);
    else st = cd_extract_print(o->task.v, o->task.n, o->assume, o->print, &r->log, &b, err);
    if (!st && !n_task) {
        cd_log_put(&r->log, CD_LOG_WARNING, "--write-tasks: no definition of a task could be used");
        r->exit_code = 3;
    }
    if (st == CDMPP_OK) return o->json ? print_json(o, &b, err) : cd_command_print(&b, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    options *o = to;
    cd_extract_stats s = {0};
    o->input = r->said.operand;
    o->json = r->said.json;
    signal(SIGPIPE, SIG_DFL);
    if (o->columns || o->print || o->write_tasks) return print_text(o, r, err);
    cd_signals_kill_at(3);    /* that loses nothing either, but timeout(1) sends two */
    signal(SIGXFSZ, SIG_IGN); /* a limit on file size becomes an error of write() */
    const double begin = cd_clock_wall();
    CD_TRY(o->merge || o->copies ? merge(o, &r->log, &s, err) : extract(o, r, &s, err));
    return cd_extract_report_end(r,
                                 o->copies  ? o->copies
                                 : o->merge ? o->merge
                                            : o->out,
                                 &s, cd_clock_wall() - begin, err);
}

int main(int argc, char **argv) {
    options o = {0};
    return cd_command_main(&self, argc, argv, &o, run);
}
