/* Verb "link" of cdmpp-partition: devices and links of a machine, measured, shown, fitted. */
#include <string.h>

#include "predictor/cmd/partition/main_partition.h"
#include "profiler/machine/machine.h"

typedef struct {
    cd_machine_measure_options measure;
    const char *out, *svg, *from, *to, *how;
    int repeats, max_mb;
    bool json;
} request;

#define AT(member) offsetof(request, member)
enum { MEASURE, FIT, BOTH };
static const char *const group[] = {"measure", "fit", "All"};
static const cd_option table[] = {
    {"devices", 0, "LIST", CD_OPTION_TEXT, AT(measure.list), NULL, MEASURE,
     "Which: cpuN a core, oclN an OpenCL device, cudaN a CUDA device, with commas between "
     "(default: cpu0 and all others that are here)"},
    {"as", 0, "NAME", CD_OPTION_TEXT, AT(measure.as), NULL, MEASURE,
     "The cost model's device that the processors of this machine are"},
    {"own-memory", 0, NULL, CD_OPTION_FLAG, AT(measure.own_memory), NULL, MEASURE,
     "OpenCL devices that are processors have buffers of their own, as if their memory were "
     "another one"},
    {"contention", 0, NULL, CD_OPTION_FLAG, AT(measure.contention), NULL, MEASURE,
     "Also measure how much slower programs make each other (some seconds)"},
    {"corun", 0, "FILE", CD_OPTION_FILE, AT(measure.corun), "*.csv", MEASURE,
     "Take that from here, a table that cdmpp-profile corun --out wrote"},
    {"keep-noisy", 0, NULL, CD_OPTION_FLAG, AT(measure.keep_noisy), NULL, MEASURE,
     "Write also what was measured while the machine was too noisy, marked as such"},
    {"repeats", 0, "N", CD_OPTION_INT, AT(repeats), "1..99", MEASURE,
     "Rounds over all sizes (default: 9)"},
    {"max-mb", 0, "N", CD_OPTION_INT, AT(max_mb), "1..65536", MEASURE,
     "Largest transfer in mebibytes (default: 64)"},
    {"from", 0, "NAME", CD_OPTION_TEXT, AT(from), NULL, FIT,
     "Device that the bytes come from (default: host)"},
    {"to", 0, "NAME", CD_OPTION_TEXT, AT(to), NULL, FIT,
     "Device that they go to (default: device)"},
    {"how", 0, "WORD", CD_OPTION_TEXT, AT(how), NULL, FIT,
     "How they were sent: copy, write, read, map (default: copy)"},
    {"out", 'o', "FILE", CD_OPTION_OUTPUT, AT(out), "*.json", BOTH,
     "measure: write the machine there; fit: the link"},
    {"svg", 0, "FILE", CD_OPTION_OUTPUT, AT(svg), "*.svg", BOTH,
     "Draw seconds against bytes there"},
};
static const char *const use[] = {
    "measure [--devices LIST] [--own-memory] [--contention|--corun CSV] [--out MACHINE.json]",
    "show [--svg FILE] MACHINE.json|LINKS.json",
    "fit [--from NAME] [--to NAME] [--out LINKS.json] PAIRS.csv", NULL};
static const char *const example[] = {"This machine, for plans",
                                      "cdmpp-partition link measure --devices cpu0,ocl0 --out "
                                      "machine.json\ncdmpp-partition link show machine.json",
                                      NULL};
static const char *const see[] = {"cdmpp-profile(1)", NULL};

static const char *word_of(const cd_cli_args *said) {
    return said->operand.n ? said->operand.v[0] : "";
}

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    const request *r = to;
    const cd_machine_measure_options *m = &r->measure;
    const char *word = word_of(said);
    const bool measure = !strcmp(word, "measure");
    if (!measure && strcmp(word, "show") && strcmp(word, "fit"))
        return CD_FAIL(err, EUSAGE, "expected measure, show or fit, found '%.60s'", word);
    if (measure && said->operand.n > 1)
        return CD_FAIL(err, EUSAGE, "unexpected '%.60s'", said->operand.v[1]);
    if (!measure && said->operand.n != 2)
        return CD_FAIL(err, EUSAGE, "%s: expected one file, found %zu", word, said->operand.n - 1);
    if (!measure &&
        (m->list || m->as || m->own_memory || m->contention || m->corun || m->keep_noisy))
        return CD_FAIL(err, EUSAGE, "%s measures nothing", word);
    if (m->contention && m->corun)
        return CD_FAIL(err, EUSAGE, "--contention and --corun are two sources of one thing");
    return CDMPP_OK;
}

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err);
static request asked;
const cd_main_partition_verb cd_main_partition_link = {
    "link",
    &asked,
    run,
    {"cdmpp-partition link",
     "devices of a machine, and what it takes to bring bytes from one to the other", use,
     "measure: finds the devices of this machine, measures what starting a program and waiting for "
     "another device costs and the transfers in both directions, and "
     "writes a description that plans are made with.\n\n"
     "show: prints such a file, or a file of links alone.\n\n"
     "fit: makes a link of measured pairs, a CSV table with the columns bytes and seconds.",
     table, sizeof table / sizeof *table, group, "*.json|*.csv", example, NULL, see, NULL, check,
     NULL}};

static cdmpp_status print(const request *r, const cd_machine *m, const cd_link_error *error,
                          cdmpp_err *err) {
    cd_buf b = {0};
    if (r->svg) CD_TRY(cd_link_draw(&m->links, r->svg, err));
    if (r->json) cd_machine_report_json(m, error, &b);
    else cd_machine_report_text(m, error, &b);
    return cd_command_result(r->json, "cdmpp.partition_link", "cdmpp-partition", NULL, &b, err);
}

static cdmpp_status measure(request *r, cd_machine *m, cdmpp_err *err) {
    r->measure.repeats = (unsigned)r->repeats;
    r->measure.max_bytes = (size_t)r->max_mb << 20;
    CD_TRY(cd_machine_measure_all(m, &r->measure, err));
    if (r->out) CD_TRY(cd_machine_write(m, r->out, err));
    return print(r, m, NULL, err);
}

static cdmpp_status show(const request *r, const char *path, cd_machine *m, cdmpp_err *err) {
    CD_TRY(cd_machine_read_or_links(m, path, err));
    return print(r, m, NULL, err);
}

static cdmpp_status fit(const request *r, const char *path, cd_machine *m, cdmpp_err *err) {
    cd_link_error e;
    CD_TRY(cd_link_pairs_fit(path, r->from ? r->from : "host", r->to ? r->to : "device",
                             r->how ? r->how : "copy", &m->links, &e, err));
    if (r->out) CD_TRY(cd_link_table_write(&m->links, r->out, err));
    return print(r, m, &e, err);
}

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    request *o = to;
    const char *word = word_of(&r->said),
               *path = r->said.operand.n > 1 ? r->said.operand.v[1] : NULL;
    cd_machine m;
    o->json = r->said.json;
    cd_machine_init(&m);
    const cdmpp_status st = word[0] == 'm'   ? measure(o, &m, err)
                            : word[0] == 's' ? show(o, path, &m, err)
                                             : fit(o, path, &m, err);
    cd_machine_free(&m);
    return st;
}
