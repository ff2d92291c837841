/* cdmpp-replay: estimates the latency of whole networks. Options in, predictor/network_estimate
 * computes, predictor/network_report prints. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/cmd/replay/main_replay_llm.h"
#include "predictor/cmd/replay/main_replay_operands.h"
#include "predictor/dynamic/dynamic.h"
#include "predictor/network/network.h"
#include "predictor/network_report/network_report.h"
#include "predictor/quantize/quantize.h"
#include "predictor/score/score.h"
#include "profiler/network/source/source.h"
#include "profiler/network/zoo/zoo.h"

/* cdmpp-replay my.onnx: what an operand is decides which option it is as if it were given by. */

/* The list with room for n more. */
static cdmpp_status grow(cd_arena *a, cd_texts *l, size_t n, cdmpp_err *err) {
    const char **v = CD_NEWN(a, const char *, l->n + n + 1);
    if (!v) return CD_FAIL(err, ENOMEM, "%zu names", l->n + n);
    for (size_t k = 0; k < l->n; k++) v[k] = l->v[k];
    l->v = v;
    return CDMPP_OK;
}

static cdmpp_status find_language(cd_arena *a, const cd_texts *operand,
                                  const cd_network_estimate_options *ask, cd_replay_operands *out,
                                  cdmpp_err *err) {
    if (ask->network.n == 1 &&
        cd_network_operand_of(ask->network.v[0]) == CD_NETWORK_OPERAND_LANGUAGE) {
        out->language = ask->network.v[0];
        out->by_network = true;
        out->rest = *operand;
        return CDMPP_OK;
    }
    CD_TRY(grow(a, &out->rest, operand->n, err));
    for (size_t k = 0; k < operand->n; k++) {
        const bool is = cd_network_operand_of(operand->v[k]) == CD_NETWORK_OPERAND_LANGUAGE;
        if (is && out->language)
            return CD_FAIL(err, EUSAGE,
                           "%.80s and %.80s are two language models: one is answered at a time",
                           out->language, operand->v[k]);
        if (is) out->language = operand->v[k];
        else out->rest.v[out->rest.n++] = operand->v[k];
    }
    if (out->language && (ask->network.n || ask->graph.n))
        return CD_FAIL(
            err, EUSAGE,
            "%.80s is a language model, which is answered alone, without --network and --graph",
            out->language);
    return CDMPP_OK;
}

static cdmpp_status add(const char *name, cd_network_estimate_options *ask, cdmpp_err *err) {
    switch (cd_network_operand_of(name)) {
    case CD_NETWORK_OPERAND_GRAPH: ask->graph.v[ask->graph.n++] = name; break;
    case CD_NETWORK_OPERAND_TASKS: ask->tasks.v[ask->tasks.n++] = name; break;
    case CD_NETWORK_OPERAND_MODEL:
        return CD_FAIL(err, EUSAGE, "%.80s is a cost model: --cost-model names it", name);
    case CD_NETWORK_OPERAND_LANGUAGE:
    case CD_NETWORK_OPERAND_NETWORK: ask->network.v[ask->network.n++] = name; break;
    }
    return CDMPP_OK;
}

/* Before anything is read: else the error would come below messages about models. */
static cdmpp_status check_foreign(const cd_texts *network, cdmpp_err *err) {
    for (size_t k = 0; k < network->n; k++)
        if (!strchr(network->v[k], '@')) CD_TRY(cd_network_source_foreign(network->v[k], err));
    return CDMPP_OK;
}

/* Adds each operand to the networks, graphs or tasks of `ask`, in `a`, by what the file is. Of a
 * language model nothing is added. Errors: EUSAGE (a cost model; a language model beside others),
 * ENOMEM. */
static cdmpp_status replay_operands_sort(cd_arena *a, const cd_texts *operand,
                                         cd_network_estimate_options *ask, cd_replay_operands *out,
                                         cdmpp_err *err) {
    cd_texts *const list[] = {&ask->network, &ask->graph, &ask->tasks};
    CD_TRY(find_language(a, operand, ask, out, err));
    if (out->language) return CDMPP_OK;
    for (size_t i = 0; operand->n && i < sizeof list / sizeof *list; i++)
        CD_TRY(grow(a, list[i], operand->n, err));
    for (size_t k = 0; k < operand->n; k++) CD_TRY(add(operand->v[k], ask, err));
    return check_foreign(&ask->network, err);
}

typedef struct options {
    cd_network_estimate_options ask;
    /* numbers of `ask` as text */
    const char *gap_us, *issue_us, *link_gbs, *link_us, *level, *shared, *refill_gbs, *deadline_ms;
    double deadline_s;
    const char *save_graph, *save_schedules, *fit_costs, *trace, *html, *prices;
    cd_texts power;
    const char *quantize;
    const char *at;
    int calibrate, compare, executor;
    cd_replay_llm llm;
    cd_arena own;
    cd_replay_operands given;
    bool ops, csv, measured, energy, verbose, list_networks, list_devices;
} options;

#define AT(member) offsetof(options, member)
enum { WHAT, SCHEDULES, COSTS, QUEUES, LLM, OUTPUT };
static const char *const group[] = {"Networks and devices",     "Schedules",
                                    "Times of operators",       "Queues",
                                    "Serving a language model", "Results"};
static const cd_option table[] = {
    {"graph", 'g', "FILE", CD_OPTION_FILES, AT(ask.graph), "*.json|*.csv", WHAT,
     "Networks as graphs: our own form, measured runs of TVM, a graph executor's JSON, or a "
     "torch.fx table of library operators"},
    {"network", 0, "NAME|FILE", CD_OPTION_TEXTS, AT(ask.network), NULL, WHAT,
     "A network: a name of the zoo (--list-networks), an ONNX file, or with --tasks one that those "
     "files name"},
    {"list-networks", 0, NULL, CD_OPTION_FLAG, AT(list_networks), NULL, WHAT,
     "Only list the networks of the zoo"},
    {"list-devices", 0, NULL, CD_OPTION_FLAG, AT(list_devices), NULL, WHAT,
     "Only list the devices that --device may name: those of the models and those that are "
     "described"},
    {"cost-model", 0, "FILE", CD_OPTION_FILES, AT(ask.cost_model), "*.cdmpp", WHAT,
     "A cost model of cdmpp-train. Each device is served by the first one that knows it; then come "
     "those in the folders of $CDMPP_MODELS (default: the installed default model)"},
    /* older name of both: the content decides */
    {"model", 'm', "FILE|NAME", CD_OPTION_FILES, AT(ask.mixed), "*.cdmpp|*.onnx", WHAT, NULL},
    {"tasks", 0, "FILE", CD_OPTION_FILES, AT(ask.tasks), NULL, WHAT,
     "Task definitions of a graph: all_tasks.pkl, *.task.pkl, our text form, a text that TVM "
     "printed (*.out), or a folder of these"},
    {"device", 'd', "A,B,...", CD_OPTION_TEXT, AT(ask.device), NULL, WHAT,
     "Devices; here: this machine, as without --device (default: what the graph says, or the only "
     "one that the models know, or this machine)"},
    {"batch", 'b', "N,N,...", CD_OPTION_TEXT, AT(ask.batch), NULL, WHAT,
     "Batch sizes of networks, or a range: 1..64 estimates five sizes, 1..64:9 nine, and a law "
     "tells those between (default: 1, or what the file says)"},
    /* as OpBench calls it */
    {"batch-size", 0, "N,N,...", CD_OPTION_TEXT, AT(ask.batch), NULL, WHAT, NULL},
    {"input-size", 0, "N", CD_OPTION_INT, AT(ask.input_size), "1..1048576", WHAT,
     "Edge of the image or length of the sequence of networks of the zoo (default: as published)"},
    {"dim", 0, "NAME=N", CD_OPTION_TEXTS, AT(ask.dim), NULL, WHAT,
     "Value of a symbolic dimension of an ONNX file, or of a dimension of an input: 'ids[1]=128'; "
     "the branch of an If: if_3=then; the runs of a Loop: loop_1=10; seq=16..512 is a range as in "
     "--batch"},
    {"input", 0, "NAME", CD_OPTION_TEXTS, AT(ask.input), NULL, WHAT,
     "This input of an ONNX file is data; those that are not named are weights"},
    {"layout", 0, "LAYOUT", CD_OPTION_TEXT, AT(ask.layout), NULL, WHAT,
     "Layout of images: auto, nchw or nhwc (auto: nhwc for CPUs)"},
    {"training", 0, NULL, CD_OPTION_FLAG, AT(ask.training), NULL, WHAT,
     "An iteration of training: forward, backward and update"},
    {"save-graph", 0, "FILE", CD_OPTION_FILE, AT(save_graph), "*.json", WHAT,
     "Write the networks as graphs in our own form, to change and to give to --graph, or as "
     "NAME.dot for Graphviz; tasks of loaded networks come from cdmpp-profile --list-tasks "
     "--out-tasks"},
    {"target", 0, "TARGET", CD_OPTION_TEXTS, AT(ask.target), NULL, WHAT,
     "Target of the devices' programs; DEVICE=TARGET: of that device (default: from its "
     "description)"},
    {"devices", 0, "FILE", CD_OPTION_FILE, AT(ask.devices), "*.yaml", WHAT,
     "Descriptions of devices, before those that everybody has (configs/devices.yaml here, else "
     "the installed one)"},
    {"records", 'r', "LOG", CD_OPTION_FILES, AT(ask.records), NULL, SCHEDULES,
     "Measure logs or folders of these: the best record of a task on this device is its schedule; "
     "its time is not used"},
    {"store", 0, "DB", CD_OPTION_FILES, AT(ask.store), "*.db", SCHEDULES,
     "The same from a store of measurements"},
    {"schedules", 0, "FILE", CD_OPTION_FILES, AT(ask.schedules), "*.json", SCHEDULES,
     "Schedule databases of --save-schedules; they come before logs"},
    {"save-schedules", 0, "FILE", CD_OPTION_OUTPUT, AT(save_schedules), "*.json", SCHEDULES,
     "Write the schedules that were used, one record a line"},
    {"trials", 0, "N", CD_OPTION_INT, AT(ask.trials), "1..1000000", SCHEDULES,
     "Tasks without a schedule get the best predicted of N candidates (default: 160; where "
     "schedules are given, none)"},
    {"seed", 0, "N", CD_OPTION_INT, AT(ask.seed), "0..2000000000", SCHEDULES,
     "Of the candidates and of the interval (default: 0)"},
    {"cache", 0, "FOLDER", CD_OPTION_FOLDER, AT(ask.cache), NULL, SCHEDULES,
     "Where chosen candidates are kept; empty: nowhere (default: $XDG_CACHE_HOME/cdmpp/books, "
     "~/.cache/cdmpp/books)"},
    {"jobs", 'j', "N", CD_OPTION_INT, AT(ask.jobs), "1..1024", SCHEDULES,
     "Threads that look for candidates, or answer configurations of --llm --sweep (default: one "
     "for each CPU)"},
    {"allow-missing", 0, NULL, CD_OPTION_FLAG, AT(ask.allow_missing), NULL, COSTS,
     "A total without the operators that have no estimate; their share is reported"},
    {"nearest", 0, NULL, CD_OPTION_FLAG, AT(ask.nearest), NULL, COSTS,
     "A device that no model knows and nobody describes is taken for the only one that a model "
     "knows; described ones are taken for their nearest anyway, with a warning"},
    {"from-records", 0, NULL, CD_OPTION_FLAG, AT(ask.from_records), NULL, COSTS,
     "Tasks take the measured time of their record: the replay without the model"},
    {"replay-given", 0, NULL, CD_OPTION_FLAG, AT(ask.replay_given), NULL, COSTS,
     "Operators take the times in the graph, where it has them"},
    {"fit-network-cost", 0, "FILE", CD_OPTION_OUTPUT, AT(fit_costs), "*.yaml", COSTS,
     "Fit what networks cost on this device over their operators from the measured times in the "
     "graphs, and write it into FILE, which $CDMPP_NETWORK_COSTS names to later runs; the table is "
     "without it"},
    {"what-if", 0, "op=A,scale=X", CD_OPTION_TEXTS, AT(ask.what_if), NULL, COSTS,
     "Another time for an operator, a type of operators or a pattern with *: scale=0.5 or "
     "seconds=1e-3; the results have the latency before and after"},
    {"policy", 0, "NAME", CD_OPTION_WORD, AT(ask.policy), CD_REPLAY_POLICIES, QUEUES,
     "Which ready operator is next (default: stream on GPUs, order on CPUs)"},
    {"workers", 0, "N", CD_OPTION_INT, AT(ask.workers), "1..1024", QUEUES,
     "Operators that a device runs at a time: streams, groups of threads (default: 1)"},
    {"gap-us", 0, "US", CD_OPTION_TEXT, AT(gap_us), NULL, QUEUES,
     "Microseconds between two operators (default: 0)"},
    {"refill-gbs", 0, "GBS", CD_OPTION_TEXT, AT(refill_gbs), NULL, COSTS,
     "On CPUs, gigabytes a second at which an operator's data come into a core's caches: records "
     "are measured with warm caches, networks run with cold ones (default: nothing is added; "
     "bench_network_run measures it)"},
    {"issue-us", 0, "US", CD_OPTION_TEXT, AT(issue_us), NULL, QUEUES,
     "Microseconds that the host takes to hand out an operator (default: 3 for GPUs, 0 for CPUs)"},
    {"link-gbs", 0, "GBS", CD_OPTION_TEXT, AT(link_gbs), NULL, QUEUES,
     "Gigabytes a second between devices of one graph (default: 12)"},
    {"link-us", 0, "US", CD_OPTION_TEXT, AT(link_us), NULL, QUEUES,
     "Latency of a copy between them (default: 10)"},
    {"parallel", 0, "HOW", CD_OPTION_TEXT, AT(ask.parallel), NULL, QUEUES,
     "Also an iteration of training on N equal devices in a ring of --link-gbs, --link-us: data:N, "
     "tensor:N, pipeline:NxM or pipeline-1f1b:NxM (N stages, the graph is one of M micro-batches)"},
    {"level", 0, "SHARE", CD_OPTION_TEXT, AT(level), NULL, QUEUES,
     "Level of the interval (default: 0.9)"},
    {"shared", 0, "SHARE", CD_OPTION_TEXT, AT(shared), NULL, QUEUES,
     "Part of the variance of an operator's error that all have in common (default: 0.3)"},
#include "predictor/cmd/replay/main_replay_llm_options.def"
    {"ops", 0, NULL, CD_OPTION_FLAG, AT(ops), NULL, OUTPUT,
     "Also each operator: time, share, whether it is on the critical path, source of its time, "
     "schedule"},
    {"measured", 0, NULL, CD_OPTION_FLAG, AT(measured), NULL, OUTPUT,
     "Compare with the measured times in the graph: error of each network, mean, most"},
    {"run", 0, NULL, CD_OPTION_FLAG, AT(ask.run), NULL, OUTPUT,
     "Also run the network here with the same schedules and compare"},
    {"cpu-time", 0, NULL, CD_OPTION_FLAG, AT(ask.cpu_time), NULL, OUTPUT,
     "With --run: processor time in place of the clock's, for a machine that others use too"},
    {"quantize", 0, "TYPE", CD_OPTION_TEXT, AT(quantize), NULL, OUTPUT,
     "int8. No estimate: make one network of --network 8 bits long here and compare with float: "
     "values on other inputs than those of --calibrate, with --run also times in turns. A file "
     "with QuantizeLinear is compared as it is, too"},
    {"calibrate", 0, "N", CD_OPTION_INT, AT(calibrate), "1..1000000", OUTPUT,
     "With --quantize: inputs that ranges are taken from (default: 16)"},
    {"compare", 0, "N", CD_OPTION_INT, AT(compare), "1..1000000", OUTPUT,
     "With --quantize: inputs whose results are compared (default: 100)"},
    {"executor", 0, "NAME", CD_OPTION_WORD, AT(executor), "default|vm", OUTPUT,
     "vm: no estimate. One network of --network with a range (--batch 1..64, --dim seq=16..512) is "
     "compiled for the sizes of the range and called here with the sizes of --at: the nearest "
     "program that holds a size takes it. Its time stands beside that of programs of just this "
     "size"},
    {"at", 0, "N,N,...", CD_OPTION_TEXT, AT(at), NULL, OUTPUT,
     "With --executor vm: the sizes that are asked for"},
    {"csv", 0, NULL, CD_OPTION_FLAG, AT(csv), NULL, OUTPUT,
     "The table as comma-separated values; with --ops that of operators"},
    {"trace", 0, "FILE", CD_OPTION_OUTPUT, AT(trace), "*.json", OUTPUT,
     "Write a trace for Perfetto or chrome://tracing; of several networks or devices, a file each"},
    {"html", 0, "FILE", CD_OPTION_OUTPUT, AT(html), "*.html", OUTPUT,
     "Write a page with the timeline and the tables; it needs nothing from outside"},
    {"prices", 0, "FILE", CD_OPTION_FILE, AT(prices), "*.csv", OUTPUT,
     "Prices: device,price_per_hour[,currency]; the cheapest device is reported"},
    {"energy", 0, NULL, CD_OPTION_FLAG, AT(energy), NULL, OUTPUT,
     "What an item takes at most, by the power in the data sheet of the device; the device of "
     "least energy is reported"},
    {"power", 0, "DEVICE=W", CD_OPTION_TEXTS, AT(power), NULL, OUTPUT,
     "With --energy: watts of a device in place of the data sheet's, as a cap under which its "
     "times were measured or the power that was measured then"},
    {"deadline-ms", 0, "MS", CD_OPTION_TEXT, AT(deadline_ms), NULL, OUTPUT,
     "Slower estimates are not among the cheapest and those of least energy"},
    {"verbose", 'v', NULL, CD_OPTION_FLAG, AT(verbose), NULL, OUTPUT,
     "Report what is read and where the time goes"},
};

static const char *const use[] = {
    "NETWORK... [--device A,B,...] [--batch N,N,...] [OPTION...]",
    "CONFIG.json --gpu A,... [OPTION...]",
    "--graph FILE --cost-model FILE --tasks FILE... --records LOG... [--device NAME] [OPTION...]",
    "--network NAME|FILE --cost-model FILE... --device A,B,... [--batch N,N,...] [OPTION...]",
    "--graph FILE --replay-given [OPTION...]",
    "--llm MODEL.json --gpu A,... --cost-model FILE [--measured FOLDER] [OPTION...]",
    "--llm MODEL.json --gpu A --cost-model FILE [--measured FOLDER] --stream [OPTION...]",
    NULL};
static const char *const example[] = {
    "The latency of an ONNX file on this machine",
    "cdmpp-replay my.onnx",
    "On other devices, for several batch sizes, and a page",
    "cdmpp-replay my.onnx --device a100,t4 --batch 1,4,8 --html page.html",
    "A language model on eight GPUs",
    "cdmpp-replay config.json --gpu h100 --tp 8 --concurrency 8,32",
    "The cheapest under 20 ms",
    "cdmpp-replay --network net.onnx --cost-model gpus.cdmpp --device v100,k80 --batch 1,8 "
    "--prices prices.csv --deadline-ms 20",
    "Measured networks, predicted from the best schedules of a log",
    "cdmpp-replay --graph e2e.json --cost-model m.cdmpp --tasks network_info --records "
    "measure_records/zen5 --measured",
    "Were convolutions twice as fast",
    "cdmpp-replay --network resnet-50 --cost-model m.cdmpp --device v100 --what-if "
    "'op=Conv*,scale=0.5'",
    NULL};
static const char *const see[] = {"cdmpp-predict(1)", "cdmpp-tune(1)", "cdmpp-profile(1)", NULL};
static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err);
static const cd_option_usual usual[] = {
    {"network", "An ONNX file or a name"},
    {"list-networks", "Names of networks that are built in"},
    {"device", "Devices (default: this machine)"},
    {"list-devices", "Names of devices"},
    {"batch", "Batch sizes: 1,8 or 1..64"},
    {"dim", "Value of a symbolic dimension"},
    {"cost-model", "Cost model (default: the installed one)"},
    {"training", "An iteration of training"},
    {"run", "Also measure it on this machine"},
    {"ops", "A line for each operator"},
    {"html", "Write a page"},
    {"llm", "Latency of serving a language model"},
    {"gpu", "GPUs of --llm"},
    {NULL, NULL},
};

static const cd_command self = {
    "cdmpp-replay",
    "predict the latency of whole networks",
    use,
    "Gives every operator of a network a time, from a cost model and a schedule that is fixed "
    "before, and simulates the queues of the "
    "device: latency with an interval, critical path, peak memory. Devices need not be here.\n\n"
    "A NETWORK is an ONNX file, a name of the zoo, a graph file or a task file, each as if it were "
    "given by --network, --graph or --tasks. The config.json of a language model is as --llm.\n\n"
    "from and to are the ends of the 90 % interval. chain is the longest chain of operators, sum "
    "is all operators one after another. memory is what results, inputs and weights take at most. "
    "unlike is the share of the time "
    "by programs unlike those of the training: the interval is wider for them, or there is none. "
    "missing is the share without an estimate.\n\n"
    "An operator without an estimate is named, and the network gets no total unless "
    "--allow-missing. Where some networks "
    "have none, the others are reported and the exit status is 3. It is also 3 where lines of "
    "schedule databases or logs could not be used, and where --run could not run a network or an "
    "operator of it; "
    "and where --llm refused some configurations, but not with --sweep, which counts them, or "
    "could not use lines of --measured or --stream or rows of --runs.",
    table,
    sizeof table / sizeof *table,
    group,
    "*.onnx|*.json|*.csv",
    example,
    NULL,
    see,
    NULL,
    check,
    usual};

/* ---- options ---- */
/* In the unit of the library: the number times `scale`. */
static cdmpp_status number(const char *option, const char *text, double lo, double hi, double scale,
                           double *out, cdmpp_err *err) {
    double v = *out / scale;
    CD_TRY(cd_option_number(option, text, lo, hi, &v, err));
    if (text) *out = v * scale;
    return CDMPP_OK;
}

static cdmpp_status numbers(options *o, cdmpp_err *err) {
    CD_TRY(number("gap-us", o->gap_us, 0, 1e9, 1e-6, &o->ask.gap_s, err));
    CD_TRY(number("issue-us", o->issue_us, 0, 1e9, 1e-6, &o->ask.issue_s, err));
    CD_TRY(number("refill-gbs", o->refill_gbs, 1e-3, 1e6, 1e9, &o->ask.refill_bytes_per_s, err));
    CD_TRY(number("link-gbs", o->link_gbs, 1e-6, 1e9, 1e9, &o->ask.link_bytes_per_s, err));
    CD_TRY(number("link-us", o->link_us, 0, 1e9, 1e-6, &o->ask.link_latency_s, err));
    CD_TRY(number("level", o->level, 0.01, 0.999, 1, &o->ask.level, err));
    CD_TRY(number("shared", o->shared, 0, 1, 1, &o->ask.shared, err));
    o->ask.alone = o->fit_costs != NULL;
    return number("deadline-ms", o->deadline_ms, 0, 1e12, 1e-3, &o->deadline_s, err);
}

/* A graph may be written over itself, because all of it is read before. Over any other file that is
 * read it may not. */
static cdmpp_status graph_apart(const options *o, const cd_cli_args *said, cdmpp_err *err) {
    cd_option row[sizeof table / sizeof *table];
    cd_command c = {.row = row};
    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        if (!strcmp(table[k].name, "graph")) continue;
        row[c.n_row] = table[k];
        if (!strcmp(table[k].name, "save-graph")) row[c.n_row].kind = CD_OPTION_OUTPUT;
        c.n_row++;
    }
    return cd_option_outputs_apart(&c, o, said, err);
}

/* Models, devices, schedules and all else of an estimate would be read by nobody. `its`: NULL
 * behind the last. */
static cdmpp_status check_reads(const cd_cli_args *said, const char *mode, const char *const *its,
                                const char *programs, cdmpp_err *err) {
    for (size_t k = 0; said->given && k < sizeof table / sizeof *table; k++) {
        bool reads = !said->given[k];
        for (size_t i = 0; its[i]; i++) reads |= !strcmp(table[k].name, its[i]);
        if (!reads)
            return CD_FAIL(err, EUSAGE,
                           "%s gives no estimate and does not read --%s: its programs are %s", mode,
                           table[k].name, programs);
    }
    return CDMPP_OK;
}

static cdmpp_status check_quantize_reads(const cd_cli_args *said, cdmpp_err *err) {
    static const char *const its[] = {"quantize",   "calibrate",  "compare", "network", "batch",
                                      "batch-size", "input-size", "dim",     "input",   "layout",
                                      "target",     "trials",     "seed",    "jobs",    "run",
                                      "cpu-time",   "verbose",    NULL};
    return check_reads(said, "--quantize", its,
                       "templates and samples (--trials) that it makes itself", err);
}

static cdmpp_status check_layout(const options *o, cdmpp_err *err) {
    cd_workload_layout layout;
    if (!o->ask.layout || cd_workload_layout_parse(o->ask.layout, &layout)) return CDMPP_OK;
    return CD_FAIL(err, EUSAGE, "--layout: expected auto, nchw or nhwc, found \"%.40s\"",
                   o->ask.layout);
}

/* It needs no model and no device, and takes one network. */
static cdmpp_status check_quantize(const options *o, const cd_cli_args *said, cdmpp_err *err) {
    double batch;
    if (strcmp(o->quantize, CD_QUANTIZE_TYPES) != 0)
        return CD_FAIL(err, EUSAGE, "--quantize: expected %s, found \"%.40s\"", CD_QUANTIZE_TYPES,
                       o->quantize);
    CD_TRY(cd_option_number("batch", o->ask.batch, 1, 1e6, &batch, err));
    if (o->ask.network.n != 1 || o->ask.graph.n)
        return CD_FAIL(err, EUSAGE, "--quantize: expected one --network, and no --graph");
    CD_TRY(check_quantize_reads(said, err));
    if (o->ask.cpu_time && !o->ask.run) return CD_FAIL(err, EUSAGE, "--cpu-time goes with --run");
    return check_layout(o, err);
}

static cdmpp_status read_sizes(const char *text, int64_t *size, size_t *n, cdmpp_err *err) {
    *n = 0;
    for (const char *p = text;; p++) {
        char *end;
        const long v = strtol(p, &end, 10);
        if (end == p || (*end && *end != ',') || v < 1 || v > CD_SIZE_RANGE_MAX ||
            *n == CD_DYNAMIC_MOST_ASKED)
            return CD_FAIL(err, EUSAGE, "--at: expected 1 to %d numbers in 1..%d, found '%.60s'",
                           CD_DYNAMIC_MOST_ASKED, CD_SIZE_RANGE_MAX, text);
        size[(*n)++] = v;
        if (!*(p = end)) return CDMPP_OK;
    }
}

static cdmpp_status check_vm(const options *o, const cd_cli_args *said, cdmpp_err *err) {
    static const char *const its[] = {
        "executor", "at",     "network", "batch",  "batch-size", "input-size", "dim",     "input",
        "layout",   "target", "records", "trials", "seed",       "jobs",       "verbose", NULL};
    int64_t size[CD_DYNAMIC_MOST_ASKED];
    size_t n;
    if (o->ask.network.n != 1 || o->ask.graph.n)
        return CD_FAIL(err, EUSAGE, "--executor vm: expected one --network, and no --graph");
    CD_TRY(
        check_reads(said, "--executor vm", its, "those of --records and samples (--trials)", err));
    if (!o->at)
        return CD_FAIL(err, EUSAGE,
                       "--executor vm: expected --at N,N,..., the sizes that are asked for");
    CD_TRY(read_sizes(o->at, size, &n, err));
    return check_layout(o, err);
}

/* Options of networks say nothing about --llm, and those of its group nothing about networks. */
static cdmpp_status check_llm_reads(bool llm, bool network, const cd_cli_args *said,
                                    cdmpp_err *err) {
    static const char *const its[] = {"cost-model", "devices", "measured", "prices", "level",
                                      "shared",     "jobs",    "verbose",  NULL};
    for (size_t k = 0; said->given && k < sizeof table / sizeof *table; k++) {
        bool reads = !said->given[k] || (table[k].group == LLM) == llm ||
                     (network && !strcmp(table[k].name, "network"));
        for (size_t i = 0; llm && its[i]; i++) reads |= !strcmp(table[k].name, its[i]);
        if (!reads && llm && !strcmp(table[k].name, "device"))
            return CD_FAIL(
                err, EUSAGE,
                "--device: a language model is served on GPUs, which --gpu names: --gpu h100");
        if (!reads)
            return llm ? CD_FAIL(err, EUSAGE, "--llm does not read --%s", table[k].name)
                       : CD_FAIL(err, EUSAGE, "--%s goes with --llm", table[k].name);
    }
    return CDMPP_OK;
}

/* With --llm the flag --measured has a folder behind it, which is the only operand. */
static cdmpp_status check_llm(options *o, const cd_cli_args *said, cdmpp_err *err) {
    const cd_texts *rest = o->given.language ? &o->given.rest : &said->operand;
    CD_TRY(check_llm_reads(true, o->given.by_network, said, err));
    if (rest->n > (size_t)o->measured) return cd_network_load_unexpected(rest->v[o->measured], err);
    if (o->given.language && !o->llm.list.gpu && !o->llm.runs)
        return CD_FAIL(err, EUSAGE,
                       "%.80s is a language model: name the GPU that is to serve it: cdmpp-replay "
                       "%.80s --gpu h100",
                       o->llm.model, o->llm.model);
    if (o->measured && !rest->n)
        return CD_FAIL(err, EUSAGE,
                       "--measured: with --llm expected a folder of measured operators");
    if (o->ask.cost_model.n > 1) return CD_FAIL(err, EUSAGE, "--llm takes one --cost-model");
    o->llm.measured = o->measured ? rest->v[0] : NULL;
    o->llm.cost_model =
        o->ask.cost_model.n ? o->ask.cost_model.v[0] : cd_default_model_llm(&o->own);
    o->llm.devices = o->ask.devices, o->llm.prices = o->prices;
    CD_TRY(numbers(o, err));
    o->llm.jobs = o->ask.jobs;
    o->llm.level_given = o->level, o->llm.level = o->ask.level, o->llm.shared = o->ask.shared;
    return cd_replay_llm_check(&o->llm, err);
}

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    options *o = to;
    if (!o->llm.model)
        CD_TRY(replay_operands_sort(&o->own, &said->operand, &o->ask, &o->given, err));
    if (o->given.language) o->llm.model = o->given.language;
    if (o->llm.model) return check_llm(o, said, err);
    CD_TRY(check_llm_reads(false, false, said, err));
    if (o->list_networks || o->list_devices) return CDMPP_OK;
    if (o->quantize) return check_quantize(o, said, err);
    if (o->executor) return check_vm(o, said, err);
    if (o->at) return CD_FAIL(err, EUSAGE, "--at goes with --executor vm");
    if (o->calibrate || o->compare)
        return CD_FAIL(err, EUSAGE, "--calibrate and --compare go with --quantize");
    if (o->csv && said->json)
        return CD_FAIL(err, EUSAGE, "--csv and --json are two forms of one output");
    if (o->ask.from_records && o->ask.replay_given)
        return CD_FAIL(err, EUSAGE,
                       "--from-records and --replay-given are two sources of one time");
    if (o->fit_costs && (!o->ask.graph.n || o->ask.replay_given))
        return CD_FAIL(err, EUSAGE,
                       "--fit-network-cost: expected measured networks of --graph whose tasks are "
                       "predicted or of --from-records");
    if (o->ask.cpu_time && !o->ask.run) return CD_FAIL(err, EUSAGE, "--cpu-time is about --run");
    if (o->power.n && !o->energy) return CD_FAIL(err, EUSAGE, "--power goes with --energy");
    if (o->deadline_ms && !o->prices && !o->energy)
        return CD_FAIL(err, EUSAGE, "--deadline-ms goes with --prices or --energy");
    CD_TRY(numbers(o, err));
    CD_TRY(cd_network_estimate_check(&o->ask, err));
    return graph_apart(o, said, err);
}

/* ---- run ---- */
static cdmpp_status print(const cd_network_report *r, const options *o, bool json, cdmpp_err *err) {
    cd_buf b = {0};
    if (json) cd_network_report_json(r, &b);
    else if (o->csv) cd_network_report_csv(r, &b);
    else cd_network_report_text(r, &b);
    return cd_command_print(&b, err);
}

/* Prices are read before anything is estimated: a mistake in them should not cost the time of the
 * estimates. */
static cdmpp_status estimate(const options *o, bool json, cd_network_estimate *e,
                             cd_network_prices *prices, cdmpp_err *err) {
    cd_network_report r = {.e = e,
                           .ops = o->ops,
                           .measured = o->measured,
                           .prices = o->prices ? prices : NULL,
                           .energy = o->energy,
                           .deadline_s = o->deadline_s};
    CD_TRY(cd_network_estimate_open(&o->ask, e, err));
    if (o->prices) CD_TRY(cd_network_prices_read(o->prices, e, prices, err));
    if (o->power.n)
        CD_TRY(cd_network_powers_read(o->power.v, o->power.n, e, &prices->arena, &r.power_w, err));
    if (o->save_graph) CD_TRY(cd_network_estimate_save_graph(e, o->save_graph, err));
    CD_TRY(cd_network_estimate_run(e, err));
    if (o->save_schedules) CD_TRY(cd_network_estimate_save_schedules(e, o->save_schedules, err));
    if (o->fit_costs) CD_TRY(cd_network_estimate_fit_costs(e, o->fit_costs, err));
    if (o->trace) CD_TRY(cd_network_report_trace(&r, o->trace, err));
    if (o->html) CD_TRY(cd_network_report_html(&r, o->html, err));
    return print(&r, o, json, err);
}

static cd_network_source source_of(const options *o, int64_t batch) {
    const cd_network_estimate_options *k = &o->ask;
    const char *name = k->network.v[0];
    return (cd_network_source){.kind = cd_network_source_is_file(name) ? CD_NETWORK_SOURCE_ONNX
                                                                       : CD_NETWORK_SOURCE_ZOO,
                               .name = name,
                               .batch = batch,
                               .size = k->input_size,
                               .dim = k->dim.v,
                               .n_dim = (uint32_t)k->dim.n,
                               .input = k->input.v,
                               .n_input = (uint32_t)k->input.n};
}

static cdmpp_status quantize(const options *o, cd_command_run *r, cdmpp_err *err) {
    const cd_network_estimate_options *k = &o->ask;
    double batch = 0;
    CD_TRY(cd_option_number("batch", k->batch, 1, 1e6, &batch, err));
    const cd_quantize_options q = {.network = source_of(o, (int64_t)batch),
                                   .layout = k->layout,
                                   .target = k->target.n ? k->target.v[0] : NULL,
                                   .calibrate = (uint32_t)o->calibrate,
                                   .inputs = (uint32_t)o->compare,
                                   .trials = (uint32_t)k->trials,
                                   .seed = (uint64_t)k->seed,
                                   .jobs = (int)k->jobs,
                                   .run = k->run,
                                   .cpu_time = k->cpu_time,
                                   .log = &r->log,
                                   .stop = r->stop};
    cd_quantize_result *got = NULL;
    cd_buf b = {0};
    CD_TRY(cd_quantize_compare(&q, &got, err));
    (r->said.json ? cd_quantize_json : cd_quantize_text)(&b, got);
    cd_quantize_result_free(got);
    return cd_command_result(r->said.json, "cdmpp.quantize", "cdmpp-replay", &r->log, &b, err);
}

/* Exit code 3: a size was not served, or results differ. */
static cdmpp_status run_vm(const options *o, const cd_dynamic_options *q, cd_command_run *r,
                           cdmpp_err *err) {
    int64_t size[CD_DYNAMIC_MOST_ASKED];
    size_t n;
    cd_dynamic *d = NULL;
    cd_dynamic_result *got = cd_mem_zalloc(1, sizeof *got);
    cd_buf b = {0};
    if (!got) return CD_FAIL(err, ENOMEM, "sizes");
    cdmpp_status st = read_sizes(o->at, size, &n, err);
    if (!st) st = cd_dynamic_open(q, &d, err);
    if (!st) st = cd_dynamic_measure(d, size, n, got, err);
    for (size_t k = 0; !st && k < got->n; k++)
        if (got->row[k].st) r->exit_code = 3;
    if (!st) (r->said.json ? cd_dynamic_json : cd_dynamic_text)(&b, d, got);
    cd_dynamic_close(d);
    cd_mem_free(got);
    return st ? st
              : cd_command_result(r->said.json, "cdmpp.dynamic", "cdmpp-replay", &r->log, &b, err);
}

static cdmpp_status vm(const options *o, cd_command_run *r, cdmpp_err *err) {
    const cd_network_estimate_options *k = &o->ask;
    cd_arena a = {0};
    cd_network_sizes z;
    cdmpp_status st = cd_network_sizes_read(&a, k->batch, &k->dim, &z, err);
    double batch = 0;
    if (!st && !z.over)
        st = CD_FAIL(err, EUSAGE,
                     "--executor vm: expected a range, --batch A..B or --dim NAME=A..B");
    if (!st && z.place != SIZE_MAX) st = cd_option_number("batch", k->batch, 1, 1e6, &batch, err);
    const cd_dynamic_options q = {.network = source_of(o, (int64_t)batch),
                                  .sizes = &z,
                                  .layout = k->layout,
                                  .target = k->target.n ? k->target.v[0] : NULL,
                                  .log = k->records.v,
                                  .n_log = k->records.n,
                                  .trials = (uint32_t)k->trials,
                                  .seed = (uint64_t)k->seed,
                                  .jobs = k->jobs,
                                  .stop = r->stop};
    if (!st) st = run_vm(o, &q, r, err);
    cd_arena_free(&a);
    return st;
}

static cdmpp_status list_networks(bool json, cdmpp_err *err) {
    cd_buf b = {0};
    (json ? cd_zoo_print_json : cd_zoo_print_text)(&b);
    return cd_command_result(json, "cdmpp.networks", "cdmpp-replay", NULL, &b, err);
}

static cdmpp_status list_devices(const options *o, bool json, cdmpp_err *err) {
    const cd_model_set_options a = {.model = &o->ask.cost_model,
                                    .mixed = &o->ask.mixed,
                                    .devices = o->ask.devices,
                                    .use_default = true,
                                    .language = true};
    cd_model_set m = {0};
    cd_buf b = {0};
    const cdmpp_status st = cd_model_set_open(&a, &m, err);
    if (!st) cd_model_set_put_devices(&m, json, &b);
    cd_model_set_free(&m);
    return st ? st : cd_command_result(json, "cdmpp.devices", "cdmpp-replay", o->ask.log, &b, err);
}

/* Exit code 3: some estimates failed, some networks were not run, or some lines could not be
 * used. */
static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    options *o = to;
    cd_network_estimate e = {0};
    cd_network_prices prices = {0};
    cd_command_verbose(r, o->verbose);
    o->ask.log = &r->log;
    o->ask.stop = r->stop;
    o->ask.run_ops = o->ops;
    if (o->llm.model) return cd_replay_llm_run(&o->llm, r, err);
    if (o->quantize && !o->list_networks && !o->list_devices) return quantize(o, r, err);
    if (o->executor && !o->list_networks && !o->list_devices) return vm(o, r, err);
    const cdmpp_status st = o->list_networks  ? list_networks(r->said.json, err)
                            : o->list_devices ? list_devices(o, r->said.json, err)
                                              : estimate(o, r->said.json, &e, &prices, err);
    if (e.n_failed || e.n_not_run || e.bad_lines) r->exit_code = 3;
    cd_network_prices_free(&prices);
    cd_network_estimate_free(&e);
    return st;
}

int main(int argc, char **argv) {
    options o = {.ask = cd_network_estimate_defaults(), .deadline_s = NAN, .llm.prompts = -1};
    const int code = cd_command_main(&self, argc, argv, &o, run);
    cd_arena_free(&o.own);
    return code;
}
