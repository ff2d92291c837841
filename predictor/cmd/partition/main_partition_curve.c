/* Verb "curve" of cdmpp-partition: the law that a time follows over a size. */
#include <stdlib.h>

#include "predictor/cmd/partition/main_partition.h"
#include "profiler/curves/curves.h"

enum { SIZES = 64 };

typedef struct {
    cd_curve_set set;
    const char *at, *level, *tolerance, *svg, *store, *device, *dim;
    int limit;
    /* numbers of the texts above */
    double at_v[SIZES], level_v;
    size_t n_at;
} request;

#define AT(member) offsetof(request, member)
enum { WHAT, STORE, OUTPUT };
static const char *const group[] = {"What", "Curves of a store", "Output"};
static const cd_option table[] = {
    {"operator", 0, "NAME", CD_OPTION_TEXT, AT(set.op), NULL, WHAT, "Only of this operator"},
    {"limit", 'n', "N", CD_OPTION_INT, AT(limit), "1..2000000000", WHAT, "At most N curves"},
    {"store", 0, "FILE", CD_OPTION_FILE, AT(store), "*.db", STORE,
     "Curves of measurements in this store, of --operator over --dim"},
    {"device", 0, "NAME", CD_OPTION_TEXT, AT(device), NULL, STORE,
     "Only measured on this device (default: each device its own curves)"},
    {"dim", 0, "A.D", CD_OPTION_TEXT, AT(dim), NULL, STORE,
     "Size: dimension D of operand A, both from 0 (default: 0.0)"},
    {"at", 0, "N,N,...", CD_OPTION_TEXT, AT(at), NULL, OUTPUT, "Also the seconds at these sizes"},
    {"level", 0, "P", CD_OPTION_TEXT, AT(level), NULL, OUTPUT,
     "Probability of the interval of --at (default: 0.9)"},
    {"tolerance", 0, "R", CD_OPTION_TEXT, AT(tolerance), NULL, OUTPUT,
     "A misfit below this is no reason to refuse a law (default: 0.05)"},
    {"svg", 0, "FILE", CD_OPTION_OUTPUT, AT(svg), "*.svg", OUTPUT, "Draw the first eight there"},
};
static const char *const use[] = {
    "[--at N,N] [--operator NAME] [--svg FILE] [OPTION...] TABLE...",
    "--store DB --operator NAME [--device NAME] [--dim A.D] [OPTION...]", NULL};
static const char *const example[] = {
    "Where does each operator turn, and what does it take at 48?",
    "cdmpp-partition curve --at 48 curves.tsv", "One curve of one's own",
    "printf 'size,seconds\\n1,2e-6\\n64,2.1e-6\\n128,4e-6\\n256,8e-6\\n' | cdmpp-partition curve -",
    NULL};
static const char *const see[] = {"cdmpp-profile(1)", NULL};

static cdmpp_status sizes(request *r, cdmpp_err *err) {
    char *end;
    for (const char *at = r->at; at; at = *end ? end + 1 : NULL) {
        const double v = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !(v > 0 && v <= 1e15))
            return CD_FAIL(err, EUSAGE,
                           "--at: expected sizes above 0 with commas between, found '%.60s'", at);
        if (r->n_at == SIZES) return CD_FAIL(err, EUSAGE, "--at: at most %d sizes", SIZES);
        r->at_v[r->n_at++] = v;
    }
    return CDMPP_OK;
}

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    request *r = to;
    CD_TRY(cd_option_number("level", r->level, 0.01, 0.999, &r->level_v, err));
    CD_TRY(cd_option_number("tolerance", r->tolerance, 1e-6, 1, &r->set.tolerance, err));
    CD_TRY(sizes(r, err));
    if (r->store && !r->set.op) return CD_FAIL(err, EUSAGE, "--store: --operator is missing");
    if (!r->store && (r->device || r->dim))
        return CD_FAIL(err, EUSAGE, "--device and --dim go with --store");
    if (!r->store && !said->operand.n) return CD_FAIL(err, EUSAGE, "no table to read");
    return CDMPP_OK;
}

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err);
static request asked = {.level_v = 0.9};
const cd_main_partition_verb cd_main_partition_curve = {
    "curve",
    &asked,
    run,
    {"cdmpp-partition curve", "which law a time follows over a size, and where it turns", use,
     "Fits a law to each curve: constant, affine, hinge, slopes, stairs, table, or irregular where "
     "none fits; the class by EOP's three patterns: flat (launch bound), "
     "linear (throughput bound), piecewise (changes inside); the turning point with its standard "
     "error.\n\n"
     "Tables: what cdmpp-profile curves writes, or CSV with the columns size and seconds; with a "
     "column curve, several.",
     table, sizeof table / sizeof *table, group, "*.tsv|*.csv|*.xz", example, NULL, see, NULL,
     check, NULL}};

static void on_skip(void *log, const cdmpp_err *why) { cd_log_err(log, CD_LOG_WARNING, why); }

static cdmpp_status all(request *r, const cd_cli_args *said, cdmpp_err *err) {
    cd_buf b = {0};
    cd_curve_set *c = &r->set;
    c->limit = (size_t)r->limit;
    if (r->store) CD_TRY(cd_curve_set_read_store(c, r->store, r->device, r->dim, err));
    for (size_t i = 0; i < said->operand.n; i++)
        CD_TRY(cd_curve_set_read(c, said->operand.v[i], err));
    if (!c->n)
        return CD_FAIL(err, ENODATA, "no curve%s%.60s%s", c->op ? " of operator " : "",
                       c->op ? c->op : "", c->skipped ? " that can be used" : "");
    if (r->svg) CD_TRY(cd_curve_set_draw(c, r->svg, err));
    if (said->json) cd_curve_set_print_json(c, r->at_v, r->n_at, r->level_v, &b);
    else cd_curve_set_print(c, r->at_v, r->n_at, r->level_v, &b);
    return cd_command_result(said->json, "cdmpp.partition_curve", "cdmpp-partition", r->set.ctx, &b,
                             err);
}

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    request *o = to;
    o->set.skip = on_skip;
    o->set.ctx = &r->log;
    const cdmpp_status st = all(o, &r->said, err);
    if (o->set.skipped) r->exit_code = 3;
    cd_curve_set_free(&o->set);
    return st;
}
