/* Verb "qos" of cdmpp-partition: queries with deadlines, and which of them are admitted. */
#include "predictor/cmd/partition/main_partition.h"
#include "predictor/partition/games/games.h"

typedef struct {
    int places, queries, runs, seed, draw;
    const char *load, *level, *risk, *deadline; /* numbers as text */
    const char *device, *machine, *pairs, *arrivals;
    double deadline_s;
    cd_qos_options o;
} request;

#define AT(member) offsetof(request, member)
enum { WHAT, HOW };
static const char *const group[] = {"What", "How"};
static const cd_option table[] = {
    {"load", 0, "X", CD_OPTION_TEXT, AT(load), NULL, WHAT,
     "Arrivals per second times the mean time of a query alone, over --places (default: 0.9)"},
    {"places", 0, "N", CD_OPTION_INT, AT(places), "1..64", WHAT,
     "Queries that run at a time, each on processors of its own (default: 1)"},
    {"deadline", 0, "S", CD_OPTION_TEXT, AT(deadline), NULL, WHAT,
     "Seconds after its arrival by which a query must be done, where the table does not say"},
    {"device", 0, "NAME", CD_OPTION_TEXT, AT(device), NULL, WHAT,
     "Of the estimates of several devices, those of this one"},
    {"contention", 0, "MACHINE", CD_OPTION_FILE, AT(machine), "*.json", WHAT,
     "What running at the same time costs, by this file (link measure --contention) and the column "
     "bytes"},
    {"pairs", 0, "CSV", CD_OPTION_FILE, AT(pairs), "*.csv", WHAT,
     "The same by measured pairs (cdmpp-profile corun --out); queries are named as they are there"},
    {"arrivals", 0, "CSV", CD_OPTION_FILE, AT(arrivals), "*.csv", WHAT,
     "Which query arrives when: columns at_s (seconds from the beginning) and query (default: by "
     "chance, by --load)"},
    {"queries", 0, "N", CD_OPTION_INT, AT(queries), "1..1000000", HOW,
     "Arrivals of a run (default: 1000)"},
    {"runs", 0, "N", CD_OPTION_INT, AT(runs), "1..1000000", HOW, "Runs (default: 1000)"},
    {"seed", 0, "N", CD_OPTION_INT, AT(seed), "0..2000000000", HOW,
     "Of arrivals and times (default: 0)"},
    {"level", 0, "X", CD_OPTION_TEXT, AT(level), NULL, HOW,
     "Of the intervals (default: what the file says, else 0.9)"},
    {"risk", 0, "X", CD_OPTION_TEXT, AT(risk), NULL, HOW,
     "Policy bound: probability that any admitted query of a run is late (default: 1e-5)"},
    {"draw", 0, "HOW", CD_OPTION_WORD, AT(draw), CD_QOS_DRAWS, HOW,
     "True times are drawn for each query, or for each run and kind of query: a model that is "
     "wrong stays wrong (default: query)"},
};
static const char *const use[] = {
    "[--load X] [--places N] [--deadline S] [OPTION...] QUERIES.csv|REPLAY.json", NULL};
static const char *const example[] = {
    "Networks of a replay, 50 ms each, two at a time",
    "cdmpp-replay --network resnet-18,bert-tiny --device epyc --json >replay.json\ncdmpp-partition "
    "qos --deadline 0.05 --places 2 replay.json",
    NULL};

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    request *r = to;
    r->o = (cd_qos_options){.load = 0.9, .risk = 1e-5};
    if (said->operand.n != 1)
        return CD_FAIL(err, EUSAGE, "expected one file of queries, found %zu", said->operand.n);
    if (r->machine && r->pairs) return CD_FAIL(err, EUSAGE, "--contention or --pairs");
    if (r->arrivals && (r->load || r->queries))
        return CD_FAIL(err, EUSAGE,
                       "--arrivals says all arrivals: --load and --queries go without it");
    CD_TRY(cd_option_number("load", r->load, 1e-6, 1e3, &r->o.load, err));
    CD_TRY(cd_option_number("level", r->level, 1e-3, 1 - 1e-6, &r->o.level, err));
    CD_TRY(cd_option_number("risk", r->risk, 1e-9, 0.5, &r->o.risk, err));
    return cd_option_number("deadline", r->deadline, 1e-9, 1e9, &r->deadline_s, err);
}

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err);
static request asked;
const cd_main_partition_verb cd_main_partition_qos = {
    "qos",
    &asked,
    run,
    {"cdmpp-partition qos", "queries with deadlines: which are admitted, which are late", use,
     "Simulates queries that arrive by chance, or as a file says. Each kind of query has a "
     "predicted time, its interval and a deadline: columns query, seconds, and optionally low_s, "
     "high_s, deadline_s, bytes, "
     "weight; or the estimates that cdmpp-replay --json printed. Policies: fifo and edf (earliest "
     "deadline first) admit all. upper and bound admit a query where it and all that are "
     "admitted already would be in time if each took its upper time beside the worst company: the "
     "end of the interval, or the quantile by --risk. Printed are, for each policy, the queries "
     "admitted and late, those in time per second, and quantiles of the latency.",
     table, sizeof table / sizeof *table, group, "*.csv|*.json", example, NULL, NULL, NULL, check,
     NULL}};

static cdmpp_status contention_of(request *r, cd_corun_table *pairs, cd_qos_file *f,
                                  cdmpp_err *err) {
    if (r->pairs) {
        CD_TRY(cd_corun_table_read(r->pairs, pairs, err));
        r->o.pairs = pairs;
        return cd_err_at(err, cd_qos_pairs(f, pairs, err), r->pairs, 0);
    }
    if (!r->machine) return CDMPP_OK;
    CD_TRY(cd_machine_contention(r->machine, &r->o.contention, err));
    return f->bytes ? CDMPP_OK
                    : CD_FAIL(err, ESCHEMA, "--contention needs queries with a column bytes");
}

static cdmpp_status simulate(cd_command_run *r, request *q, cd_qos_file *f, cdmpp_err *err) {
    cd_qos_result result[CD_QOS_N_POLICY];
    cd_buf b = {0};
    cd_qos_options *o = &q->o;
    o->places = q->places ? (uint32_t)q->places : 1;
    o->queries = q->queries ? (uint32_t)q->queries : 1000;
    o->runs = q->runs ? (uint32_t)q->runs : 1000;
    o->seed = (uint64_t)q->seed;
    o->draw = (cd_qos_draw)q->draw;
    o->stop = r->stop;
    if (q->arrivals) CD_TRY(cd_qos_read_arrivals(q->arrivals, f, &o->arrival, &o->queries, err));
    if (!q->level) o->level = f->level > 0 ? f->level : 0.9;
    for (int p = 0; p < CD_QOS_N_POLICY; p++)
        CD_TRY(cd_qos_run(f->kind, f->n, o, (cd_qos_policy)p, &result[p], err));
    (r->said.json ? cd_qos_print_json : cd_qos_print)(f, o, result, &b);
    return cd_command_result(r->said.json, "cdmpp.partition_qos", "cdmpp-partition", &r->log, &b,
                             err);
}

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    request *q = to;
    cd_qos_file f = {0};
    cd_corun_table pairs = {0};
    cdmpp_status st = cd_qos_read(r->said.operand.v[0], q->device, q->deadline_s, &f, err);
    if (!st) st = contention_of(q, &pairs, &f, err);
    if (!st) st = simulate(r, q, &f, err);
    cd_corun_table_free(&pairs);
    cd_qos_free(&f);
    return st;
}
