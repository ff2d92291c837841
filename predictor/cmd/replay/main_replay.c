/* cdmpp-replay -- what a network will take on a device. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "predictor/cmd/replay/main_replay.h"

#define AT(member) offsetof(cd_main_replay, member)
enum { WHAT, SCHEDULES, COSTS, QUEUES, TOLD };
static const char *const group[] = {"What", "Schedules", "Costs", "Queues", "What is told"};
static const cd_option table[] = {
    {"graph", 'g', "FILE", CD_OPTION_FILES, AT(graph), "*.json|*.csv", WHAT, "Networks as graphs: our own form, measured runs of TVM, a graph executor's JSON, or a torch.fx table of library operators"},
    {"model", 'm', "FILE|NAME", CD_OPTION_FILES, AT(model), "*.cdmpp|*.onnx", WHAT, "A cost model of cdmpp-train, or a network: an ONNX file or a name of the zoo. Told apart by content"},
    {"cost-model", 0, "FILE", CD_OPTION_FILES, AT(cost_model), "*.cdmpp", WHAT, "The same, a cost model. Each device is served by the first one that knows it; then come those in the folders of $CDMPP_MODELS"},
    {"network", 0, "NAME|FILE", CD_OPTION_TEXTS, AT(network), NULL, WHAT, "The same, a network; with --tasks also one that those files know"},
    {"tasks", 0, "FILE", CD_OPTION_FILES, AT(tasks), NULL, WHAT, "Task definitions of a graph: all_tasks.pkl, *.task.pkl, our text form, or a folder of these"},
    {"device", 'd', "A,B,...", CD_OPTION_TEXT, AT(device), NULL, WHAT, "Devices (default: what the graph says, or the only one that the models know)"},
    {"batch", 'b', "N,N,...", CD_OPTION_TEXT, AT(batch), NULL, WHAT, "Batch sizes of networks (default: 1, or what the file says)"},
    {"input-size", 0, "N", CD_OPTION_INT, AT(input_size), "1..1048576", WHAT, "Edge of the image or length of the sequence of networks of the zoo (default: as published)"},
    {"dim", 0, "NAME=N", CD_OPTION_TEXTS, AT(dim), NULL, WHAT, "Value of a symbolic dimension of an ONNX file, or of a dimension of an input: 'ids[1]=128'"},
    {"input", 0, "NAME", CD_OPTION_TEXTS, AT(input), NULL, WHAT, "This input of an ONNX file is data; those that are not named are weights"},
    {"layout", 0, "LAYOUT", CD_OPTION_TEXT, AT(layout), NULL, WHAT, "Layout of images: auto, nchw or nhwc (auto: nhwc for CPUs)"},
    {"training", 0, NULL, CD_OPTION_FLAG, AT(training), NULL, WHAT, "An iteration of training: forward, backward and update"},
    {"save-graph", 0, "FILE", CD_OPTION_FILE, AT(save_graph), "*.json", WHAT, "Write the networks as graphs in our own form, to change and to give to --graph; tasks of loaded networks come from cdmpp-profile --list-tasks --out-tasks"},
    {"target", 0, "TARGET", CD_OPTION_TEXTS, AT(target), NULL, WHAT, "Target of the devices' programs; DEVICE=TARGET: of that device (default: from its description)"},
    {"devices", 0, "FILE", CD_OPTION_FILE, AT(devices), "*.yaml", WHAT, "Descriptions of devices (default: configs/devices.yaml here, then the installed one)"},
    {"records", 'r', "LOG", CD_OPTION_FILES, AT(records), NULL, SCHEDULES, "Measure logs or folders of these: of each task the best record of this device is its schedule. Its time is not used"},
    {"store", 0, "DB", CD_OPTION_FILES, AT(store), "*.db", SCHEDULES, "The same from a store of measurements"},
    {"schedules", 0, "FILE", CD_OPTION_FILES, AT(schedules), "*.json", SCHEDULES, "Books of --save-schedules; they come before logs"},
    {"save-schedules", 0, "FILE", CD_OPTION_FILE, AT(save_schedules), "*.json", SCHEDULES, "Record the schedules that were used, one record a line"},
    {"trials", 0, "N", CD_OPTION_INT, AT(trials), "1..1000000", SCHEDULES, "Tasks without a schedule get the best predicted of N candidates (default: 160; where logs or books are given, none)"},
    {"seed", 0, "N", CD_OPTION_INT, AT(seed), "0..2000000000", SCHEDULES, "Of the candidates and of the interval (default: 0)"},
    {"cache", 0, "FOLDER", CD_OPTION_FOLDER, AT(cache), NULL, SCHEDULES, "Where chosen candidates are kept; empty: nowhere (default: $XDG_CACHE_HOME/cdmpp/books, ~/.cache/cdmpp/books)"},
    {"jobs", 'j', "N", CD_OPTION_INT, AT(jobs), "1..1024", SCHEDULES, "Threads that look for candidates (default: one for each CPU)"},
    {"allow-missing", 0, NULL, CD_OPTION_FLAG, AT(allow_missing), NULL, COSTS, "A total without the operators that nobody can score; their share is told"},
    {"nearest", 0, NULL, CD_OPTION_FLAG, AT(nearest), NULL, COSTS, "A device that no model knows is taken for its nearest"},
    {"from-records", 0, NULL, CD_OPTION_FLAG, AT(from_records), NULL, COSTS, "Tasks take the measured time of their record: the replay without the model"},
    {"replay-given", 0, NULL, CD_OPTION_FLAG, AT(replay_given), NULL, COSTS, "Operators take the times in the graph, where it has them"},
    {"what-if", 0, "op=A,scale=X", CD_OPTION_TEXTS, AT(what_if), NULL, COSTS, "Another time for an operator, a type of operators or a pattern with *: scale=0.5 or seconds=1e-3; before and after are told"},
    {"policy", 0, "NAME", CD_OPTION_WORD, AT(policy), CD_REPLAY_POLICIES, QUEUES, "Which ready operator is next (default: stream on GPUs, order on CPUs)"},
    {"workers", 0, "N", CD_OPTION_INT, AT(workers), "1..1024", QUEUES, "Operators that a device runs at a time: streams, groups of threads (default: 1)"},
    {"gap-us", 0, "US", CD_OPTION_TEXT, AT(gap_us), NULL, QUEUES, "Microseconds between two operators (default: 0)"},
    {"refill-gbs", 0, "GBS", CD_OPTION_TEXT, AT(refill_gbs), NULL, COSTS, "On CPUs, gigabytes a second at which an operator's data come into a core's caches: records are of warm ones, networks are not (default: nothing is added; bench_network_run measures it)"},
    {"issue-us", 0, "US", CD_OPTION_TEXT, AT(issue_us), NULL, QUEUES, "Microseconds that the host takes to hand out an operator (default: 3 for GPUs, 0 for CPUs)"},
    {"link-gbs", 0, "GBS", CD_OPTION_TEXT, AT(link_gbs), NULL, QUEUES, "Gigabytes a second between devices of one graph (default: 12)"},
    {"link-us", 0, "US", CD_OPTION_TEXT, AT(link_us), NULL, QUEUES, "Latency of a copy between them (default: 10)"},
    {"parallel", 0, "HOW", CD_OPTION_TEXT, AT(parallel), NULL, QUEUES, "Also an iteration of training on N equal devices in a ring of --link-gbs, --link-us: data:N, tensor:N, pipeline:NxM or pipeline-1f1b:NxM (N stages, the graph is one of M micro-batches)"},
    {"level", 0, "SHARE", CD_OPTION_TEXT, AT(level), NULL, QUEUES, "Level of the interval (default: 0.9)"},
    {"shared", 0, "SHARE", CD_OPTION_TEXT, AT(shared), NULL, QUEUES, "Part of the variance of an operator's error that all have in common (default: 0.3)"},
    {"ops", 0, NULL, CD_OPTION_FLAG, AT(ops), NULL, TOLD, "Also tell each operator: time, share, whether it is on the critical path, who said so, its schedule"},
    {"measured", 0, NULL, CD_OPTION_FLAG, AT(measured), NULL, TOLD, "Compare with the measured times in the graph: error of each network, mean, most"},
    {"run", 0, NULL, CD_OPTION_FLAG, AT(run), NULL, TOLD, "Also run the network here with the same schedules and compare"},
    {"cpu-time", 0, NULL, CD_OPTION_FLAG, AT(cpu_time), NULL, TOLD, "With --run: processor time in place of the clock's, for a machine that others use too"},
    {"csv", 0, NULL, CD_OPTION_FLAG, AT(csv), NULL, TOLD, "The table as comma-separated values; with --ops that of operators"},
    {"trace", 0, "FILE", CD_OPTION_FILE, AT(trace), "*.json", TOLD, "Write a trace for Perfetto or chrome://tracing; of several networks or devices, a file each"},
    {"html", 0, "FILE", CD_OPTION_FILE, AT(html), "*.html", TOLD, "Write a page with the timeline and the tables; it needs nothing from outside"},
    {"prices", 0, "FILE", CD_OPTION_FILE, AT(prices), "*.csv", TOLD, "Prices: device,price_per_hour[,currency]; the cheapest is told"},
    {"deadline-ms", 0, "MS", CD_OPTION_TEXT, AT(deadline_ms), NULL, TOLD, "What takes longer is not among the cheapest"},
    {"verbose", 'v', NULL, CD_OPTION_FLAG, AT(verbose), NULL, TOLD, "Say what is read and where the time goes"},
};

static const char *const use[] = {"--graph FILE --cost-model FILE --tasks FILE... --records LOG... [--device NAME] [OPTION...]",
                                  "--network NAME|FILE --cost-model FILE... --device A,B,... [--batch N,N,...] [OPTION...]",
                                  "--graph FILE --replay-given [OPTION...]", NULL};
static const char *const example[] = {
    "Measured networks, predicted from the best schedules of a log", "cdmpp-replay --graph e2e.json --model m.cdmpp --tasks network_info --records measure_records/zen5 --measured",
    "A table over devices and batches, and a page", "cdmpp-replay --model resnet-50 --model gpus.cdmpp --model zen5.cdmpp --device v100,k80,zen5 --batch 1,4,8 --html r50.html",
    "The cheapest under 20 ms", "cdmpp-replay --network net.onnx --cost-model gpus.cdmpp --device v100,k80 --batch 1,8 --prices prices.csv --deadline-ms 20",
    "Were convolutions twice as fast", "cdmpp-replay --network resnet-50 --cost-model m.cdmpp --device v100 --what-if 'op=Conv*,scale=0.5'", NULL};
static const char *const see[] = {"cdmpp-predict(1)", "cdmpp-tune(1)", "cdmpp-profile(1)", NULL};
static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err);
static const cd_command self = {
    "cdmpp-replay", "predict the latency of whole networks", use,
    "Gives every operator of a network a time, from a cost model and a schedule that is fixed before, and simulates the queues of the "
    "device: latency with an interval, critical path, peak memory. Devices need not be here.\n\n"
    "An operator that nobody can score is named, and the network gets no total unless --allow-missing. Where some networks "
    "have none, the others are told and the exit status is 3; so it is where lines of books or logs could not be used.",
    table, sizeof table / sizeof *table, group, NULL, example, NULL, see, NULL, check};

/* ---- options ---- */
static cdmpp_status number(const char *option, const char *text, double lo, double hi, double scale, double *out, cdmpp_err *err) {
    char *end;
    if (!text) return CDMPP_OK;
    const double v = strtod(text, &end);
    if (end == text || *end || !(v >= lo && v <= hi)) return CD_FAIL(err, EUSAGE, "--%s: expected a number in %g..%g, found '%.60s'", option, lo, hi, text);
    *out = v * scale;
    return CDMPP_OK;
}

static cdmpp_status numbers(cd_main_replay *o, cdmpp_err *err) {
    CD_TRY(number("gap-us", o->gap_us, 0, 1e9, 1e-6, &o->gap_s, err));
    CD_TRY(number("issue-us", o->issue_us, 0, 1e9, 1e-6, &o->issue_s, err));
    CD_TRY(number("refill-gbs", o->refill_gbs, 1e-3, 1e6, 1e9, &o->refill_bytes_per_s, err));
    CD_TRY(number("link-gbs", o->link_gbs, 1e-6, 1e9, 1e9, &o->link_bytes_per_s, err));
    CD_TRY(number("link-us", o->link_us, 0, 1e9, 1e-6, &o->link_latency_s, err));
    CD_TRY(number("level", o->level, 0.01, 0.999, 1, &o->level_v, err));
    CD_TRY(number("shared", o->shared, 0, 1, 1, &o->shared_v, err));
    return number("deadline-ms", o->deadline_ms, 0, 1e12, 1e-3, &o->deadline_s, err);
}

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    cd_main_replay *o = to;
    if (said->operand.n) return CD_FAIL(err, EUSAGE, "unexpected '%.60s'", said->operand.v[0]);
    if (o->csv && said->json) return CD_FAIL(err, EUSAGE, "--csv and --json are two forms of one output");
    if (o->from_records && o->replay_given) return CD_FAIL(err, EUSAGE, "--from-records and --replay-given are two sources of one time");
    if (o->deadline_ms && !o->prices) return CD_FAIL(err, EUSAGE, "--deadline-ms goes with --prices");
    CD_TRY(numbers(o, err));
    CD_TRY(cd_main_replay_parallel_plan(o, err));
    return cd_main_replay_plan_check(o, err);
}

/* ---- the whole ---- */
static volatile sig_atomic_t stop;
static void on_signal(int sig) { stop = sig; }

static void take_signals(void) {
    struct sigaction act = {.sa_handler = on_signal};
    act.sa_flags = (int)SA_RESETHAND; /* and no SA_RESTART */
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static cdmpp_status tell(const cd_main_replay_plan *p, cdmpp_err *err) {
    cd_buf b = {0};
    if (p->o->json) cd_main_replay_json(p, &b);
    else if (p->o->csv) cd_main_replay_csv(p, &b);
    else cd_main_replay_print(p, &b);
    return cd_command_print(&b, err);
}

/* All failed: the first one's reason is the command's. */
static cdmpp_status verdict(cd_main_replay_plan *p, cdmpp_err *err) {
    const cd_main_replay_case *first = NULL;
    for (size_t k = 0; k < p->n_item; k++) {
        if (!p->item[k].st) continue;
        p->o->bad++;
        if (!first) first = &p->item[k];
    }
    for (size_t k = 0; k < p->n_item && p->o->bad < p->n_item; k++)
        if (p->item[k].st) cd_log_err(p->o->log, CD_LOG_WARNING, &p->item[k].err);
    if (!first || p->o->bad < p->n_item) return CDMPP_OK;
    if (err) *err = first->err;
    return first->st;
}

static cdmpp_status run(cd_main_replay_plan *p, cdmpp_err *err) {
    CD_TRY(cd_main_replay_plan_make(p, err));
    CD_TRY(cd_main_replay_save_graph(p, err));
    for (size_t k = 0; k < p->n_item; k++) {
        if (*p->o->stop) return CD_FAIL(err, EINTERRUPTED, "after %zu of %zu estimates", k, p->n_item);
        cd_main_replay_case_run(p, &p->item[k]);
    }
    CD_TRY(verdict(p, err));
    CD_TRY(cd_main_replay_save_schedules(p, err));
    if (p->o->trace) CD_TRY(cd_main_replay_write_trace(p, err));
    if (p->o->html) CD_TRY(cd_main_replay_write_html(p, err));
    return tell(p, err);
}

int main(int argc, char **argv) {
    cd_main_replay o = {.policy = -1, .gap_s = NAN, .issue_s = NAN, .link_bytes_per_s = 12e9, .link_latency_s = 10e-6, .level_v = 0.9,
                        .shared_v = 0.3, .deadline_s = NAN, .stop = &stop};
    cd_main_replay_plan p = {.o = &o};
    cdmpp_err err = {0};
    cd_command_run f;
    int code;
    if (!cd_command_begin(&f, &self, argc, argv, &o, &code)) return code;
    o.json = f.said.json;
    o.log = &f.log;
    if (o.verbose) f.log.level = CD_LOG_DEBUG;
    take_signals();
    const cdmpp_status st = run(&p, &err);
    if (st) cd_log_err(&f.log, CD_LOG_ERROR, &err);
    cd_main_replay_plan_free(&p);
    cd_command_end(&f);
    return st ? cdmpp_exit_code(st) : o.bad || o.bad_lines ? 3 : 0;
}
