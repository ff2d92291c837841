/* Verb "link" of cdmpp-partition: devices and links of a machine, measured, shown, fitted. */
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/cmd/partition/main_partition_tools.h"

#define AT(member) offsetof(cd_partition_link_options, member)
enum { MEASURE, FIT, BOTH };
static const char *const group[] = {"measure", "fit", "All"};
static const cd_option table[] = {
    {"devices", 0, "LIST", CD_OPTION_TEXT, AT(devices), NULL, MEASURE, "Which: cpuN a core, oclN an OpenCL device, cudaN a CUDA device, with commas between (default: cpu0 and all others that are here)"},
    {"as", 0, "NAME", CD_OPTION_TEXT, AT(as), NULL, MEASURE, "The cost model's device that the processors of this machine are"},
    {"own-memory", 0, NULL, CD_OPTION_FLAG, AT(own_memory), NULL, MEASURE, "OpenCL devices that are processors have buffers of their own, as if their memory were another one"},
    {"contention", 0, NULL, CD_OPTION_FLAG, AT(contention), NULL, MEASURE, "Also measure how much slower programs make each other (some seconds)"},
    {"corun", 0, "FILE", CD_OPTION_FILE, AT(corun), "*.csv", MEASURE, "Take that from here, a table that cdmpp-profile corun --out wrote"},
    {"repeats", 0, "N", CD_OPTION_INT, AT(repeats), "1..99", MEASURE, "Rounds over all sizes (default: 9)"},
    {"max-mb", 0, "N", CD_OPTION_INT, AT(max_mb), "1..65536", MEASURE, "Largest transfer in mebibytes (default: 64)"},
    {"from", 0, "NAME", CD_OPTION_TEXT, AT(from), NULL, FIT, "Device that the bytes come from (default: host)"},
    {"to", 0, "NAME", CD_OPTION_TEXT, AT(to), NULL, FIT, "Device that they go to (default: device)"},
    {"how", 0, "WORD", CD_OPTION_TEXT, AT(how), NULL, FIT, "How they were sent: copy, write, read, map (default: copy)"},
    {"out", 'o', "FILE", CD_OPTION_FILE, AT(out), "*.json", BOTH, "measure: write the machine there; fit: the link"},
    {"svg", 0, "FILE", CD_OPTION_FILE, AT(svg), "*.svg", BOTH, "Draw seconds against bytes there"},
};
static const char *const use[] = {"measure [--devices LIST] [--own-memory] [--contention|--corun CSV] [--out MACHINE.json]", "show [--svg FILE] MACHINE.json|LINKS.json",
                                  "fit [--from NAME] [--to NAME] [--out LINKS.json] PAIRS.csv", NULL};
static const char *const example[] = {"This machine, for plans", "cdmpp-partition link measure --devices cpu0,ocl0 --out machine.json\ncdmpp-partition link show machine.json", NULL};
static const char *const see[] = {"cdmpp-profile(1)", NULL};

/* ---- the words ---- */
static const char *word_of(const cd_cli_args *said) { return said->operand.n ? said->operand.v[0] : ""; }

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    const cd_partition_link_options *o = to;
    const char *word = word_of(said);
    const bool measure = !strcmp(word, "measure");
    if (!measure && strcmp(word, "show") && strcmp(word, "fit")) return CD_FAIL(err, EUSAGE, "expected measure, show or fit, found '%.60s'", word);
    if (measure && said->operand.n > 1) return CD_FAIL(err, EUSAGE, "unexpected '%.60s'", said->operand.v[1]);
    if (!measure && said->operand.n != 2) return CD_FAIL(err, EUSAGE, "%s: expected one file, found %zu", word, said->operand.n - 1);
    if (!measure && (o->devices || o->as || o->own_memory || o->contention || o->corun)) return CD_FAIL(err, EUSAGE, "%s measures nothing", word);
    if (o->contention && o->corun) return CD_FAIL(err, EUSAGE, "--contention and --corun are two sources of one thing");
    return CDMPP_OK;
}

const cd_command cd_partition_link_command = {
    "cdmpp-partition link", "devices of a machine, and what it takes to bring bytes from one to the other", use,
    "measure: finds the devices of this machine, measures what starting a program and waiting for another device costs and the transfers in both directions, and "
    "writes a description that plans are made with.\n\n"
    "show: tells such a file, or a file of links alone.\n\n"
    "fit: makes a link of measured pairs, a CSV table with the columns bytes and seconds.",
    table, sizeof table / sizeof *table, group, "*.json|*.csv", example, NULL, see, NULL, check};

/* ---- show ---- */
/* A machine, or links alone: a machine without devices then. */
static cdmpp_status read_either(cd_machine *m, const char *path, cdmpp_err *err) {
    const cdmpp_status st = cd_machine_read(m, path, err);
    if (st != CDMPP_ESCHEMA || !err || strcmp(err->key, "cdmpp_machine") != 0) return st;
    cdmpp_err other = {0};
    const cdmpp_status as_links = cd_link_table_read(&m->links, path, &other);
    if (!as_links) *err = (cdmpp_err){0};
    else if (strcmp(other.key, "cdmpp_links") != 0) *err = other; /* it is a file of links, a bad one */
    return as_links ? err->code : CDMPP_OK;
}

static cdmpp_status show(const cd_partition_link_options *o, cdmpp_err *err) {
    cd_machine m;
    cd_machine_init(&m);
    cdmpp_status st = read_either(&m, o->operand.v[0], err);
    if (!st) st = cd_partition_link_print(o, &m, err);
    cd_machine_free(&m);
    return st;
}

/* ---- fit ---- */
static cdmpp_status pairs_of(const cd_partition_table *t, double **bytes, double **seconds, cdmpp_err *err) {
    size_t b, s;
    CD_TRY(cd_partition_table_need(t, "bytes", &b, err));
    CD_TRY(cd_partition_table_need(t, "seconds", &s, err));
    *bytes = cd_mem_zalloc(2 * t->n_row, sizeof **bytes);
    if (!*bytes) return CD_FAIL(err, ENOMEM, "%zu pairs", t->n_row);
    *seconds = *bytes + t->n_row;
    for (size_t i = 0; i < t->n_row; i++) {
        CD_TRY(cd_partition_table_number(t, i, b, &(*bytes)[i], err));
        CD_TRY(cd_partition_table_number(t, i, s, &(*seconds)[i], err));
    }
    return CDMPP_OK;
}

static cd_partition_link_error errors_of(const cd_link *k, const double *bytes, const double *seconds, size_t n) {
    cd_partition_link_error e = {0};
    for (size_t i = 0; i < n; i++) {
        const double off = fabs(cd_link_cost(k, (int64_t)bytes[i]) / seconds[i] - 1);
        e.mean += off / (double)n;
        if (off >= e.worst) e.worst = off, e.worst_bytes = bytes[i];
    }
    return e;
}

static cdmpp_status fit_table(cd_partition_link_options *o, const cd_partition_table *t, cd_machine *m, cdmpp_err *err) {
    double *bytes = NULL, *seconds = NULL;
    cdmpp_status st = pairs_of(t, &bytes, &seconds, err);
    if (!st)
        st = cd_err_at(err, cd_link_table_fit(&m->links, o->from ? o->from : "host", o->to ? o->to : "device", o->how ? o->how : "copy", bytes, seconds, t->n_row, err),
                       t->path, 0);
    cd_partition_link_error e = {0};
    if (!st) e = errors_of(&m->links.link[0], bytes, seconds, t->n_row);
    o->error = &e;
    cd_mem_free(bytes);
    if (!st && o->out) st = cd_link_table_write(&m->links, o->out, err);
    if (!st) st = cd_partition_link_print(o, m, err);
    o->error = NULL;
    return st;
}

static cdmpp_status fit(cd_partition_link_options *o, cdmpp_err *err) {
    cd_partition_table t;
    cd_machine m;
    cd_machine_init(&m);
    cdmpp_status st = cd_partition_table_read(&t, o->operand.v[0], err);
    if (!st) st = fit_table(o, &t, &m, err);
    cd_partition_table_free(&t);
    cd_machine_free(&m);
    return st;
}

int cd_partition_link(int argc, char **argv) {
    cd_partition_link_options o = {0};
    cdmpp_err err = {0};
    cd_command_run f;
    int code;
    if (!cd_command_begin(&f, &cd_partition_link_command, argc, argv, &o, &code)) return code;
    const char *word = word_of(&f.said);
    o.json = f.said.json;
    o.log = &f.log;
    o.operand = f.said.operand;
    o.operand.v++, o.operand.n--;
    cdmpp_status st = CDMPP_OK;
    if (word[0] == 'm') st = cd_partition_link_measure(&o, &err);
    else if (word[0] == 's') st = show(&o, &err);
    else st = fit(&o, &err);
    return cd_partition_finish(&f, st, &err, false);
}
