/* Verb "together" of cdmpp-partition: how many threads each of several operators has, when they
 * share the processors: from a table, or of records that are measured. */
#include "base/io/io.h"
#include "predictor/cmd/partition/main_partition.h"
#include "predictor/partition/games/games.h"
#include "predictor/partition/report/report.h"

typedef struct {
    int threads;
    const char *machine;
    cd_texts tasks;
    int limit, budget_ms, rounds, timeout_s, jobs;
    const char *target, *isa, *cache, *out;
    bool run;
} request;

enum { HOW, RECORDS };
static const char *const group[] = {"How", "Records"};
static const cd_option table[] = {
    {"threads", 0, "N", CD_OPTION_INT, offsetof(request, threads), "1..4096", HOW,
     "Threads in all (default: the most in the table; of records as many as processors)"},
    {"contention", 0, "MACHINE", CD_OPTION_FILE, offsetof(request, machine), "*.json", HOW,
     "What running at the same time costs, by this file (link measure --contention); a table needs "
     "a column bytes"},
    {"tasks", 0, "FILE", CD_OPTION_FILES, offsetof(request, tasks), NULL, RECORDS,
     "The operands are measure records of the tasks of this file: the fastest record of each "
     "workload is measured alone with each number of threads"},
    {"run", 0, NULL, CD_OPTION_FLAG, offsetof(request, run), NULL, RECORDS,
     "Run them on this machine, in turns one after the other, together as it is found best, and "
     "together with equal shares; what measures best is kept"},
    {"limit", 'n', "N", CD_OPTION_INT, offsetof(request, limit), "2..4", RECORDS,
     "Of the first N workloads (default: 2)"},
    {"out", 'o', "CSV", CD_OPTION_OUTPUT, offsetof(request, out), "*.csv", RECORDS,
     "Write the measured table there, which together reads"},
    {"target", 0, "TARGET", CD_OPTION_TEXT, offsetof(request, target), NULL, RECORDS,
     "Target of the programs (default: the records' own)"},
    {"isa", 0, "SET", CD_OPTION_TEXT, offsetof(request, isa), NULL, RECORDS,
     "Instructions that the programs may use (default: by -mcpu of the target, else native)"},
    {"budget-ms", 0, "N", CD_OPTION_INT, offsetof(request, budget_ms), "1..1000000", RECORDS,
     "At most so long for the repeats of one program, and for one turn of a way (default: 100)"},
    {"rounds", 0, "N", CD_OPTION_INT, offsetof(request, rounds), "1..32", RECORDS,
     "Turns of each way (default: 9)"},
    {"timeout", 0, "S", CD_OPTION_INT, offsetof(request, timeout_s), "1..86400", RECORDS,
     "Seconds until a program that runs is given up (default: 10)"},
    {"jobs", 'j', "N", CD_OPTION_INT, offsetof(request, jobs), "1..1024", RECORDS,
     "Compiler processes at a time (default: one for each CPU)"},
    {"cache", 0, "FOLDER", CD_OPTION_TEXT, offsetof(request, cache), NULL, RECORDS,
     "Where compiled programs are kept; empty: nowhere (default: $XDG_CACHE_HOME/cdmpp, "
     "~/.cache/cdmpp)"},
};
static const char *const use[] = {
    "[--threads N] [--contention MACHINE.json] TIMES.csv|SWEEP.csv...",
    "--tasks FILE [--limit N] [--run] [OPTION...] LOG|FOLDER...", NULL};
static const char *const example[] = {"Eight threads for three operators",
                                      "cdmpp-partition together --threads 8 times.csv",
                                      "Two operators whose times were measured",
                                      "cdmpp-partition together conv.csv dense.csv",
                                      "Two operators measured here, and the answer run",
                                      "cdmpp-partition together --tasks tasks.json --run best.json",
                                      NULL};

/* The first option that is about records and was given with a table; NULL: none. */
static const char *idle(const request *r) {
    const struct {
        const char *option;
        bool said;
    } v[] = {{"--run", r->run},           {"--limit", r->limit > 0},
             {"--out", r->out != NULL},   {"--target", r->target != NULL},
             {"--isa", r->isa != NULL},   {"--budget-ms", r->budget_ms > 0},
             {"--rounds", r->rounds > 0}, {"--timeout", r->timeout_s > 0},
             {"--jobs", r->jobs > 0},     {"--cache", r->cache != NULL}};
    for (size_t k = 0; k < sizeof v / sizeof *v; k++)
        if (v[k].said) return v[k].option;
    return NULL;
}

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    const request *r = to;
    if (!r->tasks.n && idle(r))
        return CD_FAIL(err, EUSAGE, "%s is about records, and needs --tasks", idle(r));
    if (said->operand.n)
        return r->rounds && !r->run ? CD_FAIL(err, EUSAGE, "--rounds is about --run") : CDMPP_OK;
    return r->tasks.n ? CD_FAIL(err, EUSAGE, "expected a log of records, found none")
                      : CD_FAIL(err, EUSAGE, "expected a table, found none");
}

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err);
static request asked;
const cd_main_partition_verb cd_main_partition_together = {
    "together",
    &asked,
    run,
    {"cdmpp-partition together",
     "threads for each of several operators at a time, or one after the other", use,
     "The table has the columns operator, threads, seconds, and bytes with --contention: what each "
     "takes alone. In place of a table, one file for each operator as cdmpp-profile sweep --factor "
     "threads --out measured it; the operator has the name of the file. Every way of sharing is "
     "tried, or, where these are too many, "
     "hill climbing is done from equal shares. Running together is refused where it is not faster "
     "than one after the other with the best number of threads each.\n\n"
     "With --tasks the times are measured here, of programs of records, and --run also runs the "
     "answer: each program with its threads on processors of its own, against one after the other. "
     "The exit status is 3 when a program fails with some number of threads.",
     table, sizeof table / sizeof *table, group, "*.csv", example, NULL, NULL, NULL, check, NULL}};

static cdmpp_status of_table(cd_command_run *r, const request *o, cdmpp_err *err) {
    cd_cotune_table t = {0};
    cd_cotune c = {0};
    cd_buf b = {0};
    cdmpp_status st = cd_cotune_read(r->said.operand.v, r->said.operand.n, (uint32_t)o->threads,
                                     o->machine, &t, err);
    if (!st) st = cd_cotune_search(t.n_op, t.threads, cd_cotune_table_time, &t, &c, err);
    if (!st) {
        if (r->said.json) cd_cotune_print_json(&t, &c, &b);
        else cd_cotune_print(&t, &c, &b);
        st = cd_command_result(r->said.json, "cdmpp.partition_together", "cdmpp-partition", &r->log,
                               &b, err);
    }
    cd_cotune_free(&c);
    cd_arena_free(&t.arena);
    return st;
}

static cdmpp_status save(const request *o, const cd_together *t, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = CDMPP_OK;
    cd_together_csv(t, &b);
    if (b.oom) st = CD_FAIL(err, ENOMEM, "table");
    else st = cd_file_write(o->out, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status put(cd_command_run *r, const request *o, const cd_together *t, cdmpp_err *err) {
    cd_buf b = {0};
    if (t->programs->bad) r->exit_code = 3;
    if (o->out) CD_TRY(save(o, t, err));
    (r->said.json ? cd_partition_report_together_json : cd_partition_report_together)(t, &b);
    return cd_command_result(r->said.json, "cdmpp.partition_together", "cdmpp-partition", &r->log,
                             &b, err);
}

static void on_bad(void *ctx, const cdmpp_err *why) { cd_log_err(ctx, CD_LOG_WARNING, why); }
static void on_note(void *ctx, const char *text) { cd_log_put(ctx, CD_LOG_WARNING, "%s", text); }

static cdmpp_status of_records(cd_command_run *r, const request *o, cdmpp_err *err) {
    const double turn_s = (o->budget_ms > 0 ? o->budget_ms : 100) * 1e-3,
                 limit_s = o->timeout_s > 0 ? o->timeout_s : 10;
    const cd_record_listener l = {on_bad, on_note, &r->log};
    const cd_together_options t = {
        .measure = {.task_file = o->tasks.v,
                    .n_task_file = o->tasks.n,
                    .log = &r->log,
                    .target = o->target,
                    .threads = o->threads,
                    .best = {r->said.operand.v, r->said.operand.n, NULL,
                             o->limit > 0 ? (size_t)o->limit : 2, &l, r->stop},
                    .measure = {.isa = o->isa,
                                .cache = o->cache,
                                .jobs = o->jobs,
                                .run_limit_s = limit_s,
                                .timing = {.budget_s = turn_s},
                                .stop = r->stop}},
        .machine = o->machine,
        .run = o->run,
        .policy = {.window_s = turn_s,
                   .rounds = o->rounds > 0 ? (unsigned)o->rounds : 9,
                   .limit_s = limit_s,
                   .stop = r->stop}};
    cd_together got = {0};
    cdmpp_status st = cd_together_make(&t, &got, err);
    if (!st) st = put(r, o, &got, err);
    cd_together_free(&got);
    return st;
}

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    const request *o = to;
    return o->tasks.n ? of_records(r, o, err) : of_table(r, o, err);
}
