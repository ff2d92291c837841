/* cdmpp-partition -- which device runs which part of a network, by predictions. */
#include <math.h>
#include <string.h>

#include "predictor/cmd/partition/main_partition.h"

#define AT(member) offsetof(cd_main_partition, member)
enum { WHAT, SCHEDULES, PLAN, RUN, TOLD };
static const char *const group[] = {"What", "Schedules", "The plan", "The run", "What is told"};
static const cd_option table[] = {
    {"model", 'm', "FILE|NAME", CD_OPTION_FILES, AT(model), "*.cdmpp|*.onnx", WHAT, "The network, an ONNX file or a name of the zoo, or a cost model of cdmpp-train. Told apart by content"},
    {"network", 0, "NAME|FILE", CD_OPTION_TEXTS, AT(network), NULL, WHAT, "The same, the network"},
    {"cost-model", 0, "FILE", CD_OPTION_FILES, AT(cost_model), "*.cdmpp", WHAT, "The same, a cost model. The first one that knows the devices answers; then come those in the folders of $CDMPP_MODELS"},
    {"devices", 'd', "A,B,...", CD_OPTION_TEXT, AT(devices), NULL, WHAT, "Devices of the machine, the first one holds inputs and results (default: all of --machine, else cpu0,ocl0)"},
    {"machine", 0, "FILE", CD_OPTION_FILE, AT(machine), "*.json", WHAT, "What the machine is, of cdmpp-partition link measure (default: cpuN and oclN as they usually are, not measured)"},
    {"as", 0, "NAME", CD_OPTION_TEXTS, AT(as), NULL, WHAT, "Device of the cost model that all are; DEVICE=NAME: that this one is (default: as the machine says, else the only one that the model knows)"},
    {"times", 0, "DEVICE=N", CD_OPTION_TEXTS, AT(times), NULL, WHAT, "This device runs every program N times: a device made slower on purpose"},
    {"target", 0, "TARGET", CD_OPTION_TEXTS, AT(target), NULL, WHAT, "Target of the programs; DEVICE=TARGET: of that device (default: as the machine says, else by the device's description)"},
    {"device-file", 0, "FILE", CD_OPTION_FILE, AT(descriptions), "*.yaml", WHAT, "Descriptions of the cost model's devices (default: configs/devices.yaml here, then the installed one)"},
    {"batch", 'b', "N", CD_OPTION_INT, AT(batch), "1..1048576", WHAT, "Batch size (default: 1, or what the file says)"},
    {"input-size", 0, "N", CD_OPTION_INT, AT(input_size), "1..1048576", WHAT, "Edge of the image or length of the sequence of networks of the zoo (default: as published)"},
    {"dim", 0, "NAME=N", CD_OPTION_TEXTS, AT(dim), NULL, WHAT, "Value of a symbolic dimension of an ONNX file, or of a dimension of an input: 'ids[1]=128'"},
    {"input", 0, "NAME", CD_OPTION_TEXTS, AT(input), NULL, WHAT, "This input of an ONNX file is data; those that are not named are weights"},
    {"layout", 0, "LAYOUT", CD_OPTION_TEXT, AT(layout), NULL, WHAT, "Layout of images: auto, nchw or nhwc (auto: by the first device)"},
    {"schedules", 0, "FILE", CD_OPTION_FILES, AT(schedules), "*.json", SCHEDULES, "Books of cdmpp-replay --save-schedules; they come before logs"},
    {"records", 0, "LOG", CD_OPTION_FILES, AT(records), NULL, SCHEDULES, "Measure logs or folders of these: of each task the best record of this device is its schedule"},
    {"store", 0, "DB", CD_OPTION_FILES, AT(store), "*.db", SCHEDULES, "The same from a store of measurements"},
    {"trials", 0, "N", CD_OPTION_INT, AT(trials), "1..1000000", SCHEDULES, "Candidates drawn for each part beside the whole's schedule (default: none, but 64 where there is no schedule)"},
    {"seed", 0, "N", CD_OPTION_INT, AT(seed), "0..2000000000", SCHEDULES, "Of the candidates (default: 0)"},
    {"jobs", 'j', "N", CD_OPTION_INT, AT(jobs), "1..1024", SCHEDULES, "Threads that score candidates, compilers at a time (default: one for each CPU)"},
    {"split", 0, NULL, CD_OPTION_FLAG, AT(split), NULL, PLAN, "Operators may be split over devices (the default)"},
    {"no-split", 0, NULL, CD_OPTION_FLAG, AT(no_split), NULL, PLAN, "Every operator runs whole, on one device"},
    {"dims", 0, "H,N,...", CD_OPTION_TEXT, AT(dims), NULL, PLAN, "Dimensions to split: N O H W I of convolutions, M N K of products, B of batches, C (default: all that are legal)"},
    {"granules", 0, "N", CD_OPTION_INT, AT(granules), "2..64", PLAN, "Shares are multiples of one N-th (default: 8)"},
    {"margin", 0, "X", CD_OPTION_TEXT, AT(margin), NULL, PLAN, "Split only where that saves this part of an operator's time, 0 to 1 (default: 0.05)"},
    {"least-us", 0, "X", CD_OPTION_TEXT, AT(least_us), NULL, PLAN, "And at least so many microseconds (default: 20)"},
    {"cover", 0, "X", CD_OPTION_TEXT, AT(cover), NULL, PLAN, "Look at the operators that hold this part of all that splitting could save, 0 to 1 (default: 1)"},
    {"fixed-share", 0, "X", CD_OPTION_TEXT, AT(share), NULL, PLAN, "Share of the first device in the baseline of fixed shares, 0 to 1 (default: 0.5)"},
    {"goal", 0, "GOAL", CD_OPTION_WORD, AT(goal), CD_PLACE_GOALS, PLAN, "Also place whole operators by the sum of all times, or by the makespan of what overlaps; told below the table"},
    {"stages", 0, NULL, CD_OPTION_FLAG, AT(stages), NULL, PLAN, "Also the stages in which operators run side by side on the devices, block by block (IOS); with --run they run here too, beside one operator after the other"},
    {"stage-length", 'r', "N", CD_OPTION_INT, AT(stage_r), "0..64", PLAN, "Operators one behind the other in a group of a stage; 0: any number (default: 3)"},
    {"stage-groups", 's', "N", CD_OPTION_INT, AT(stage_s), "0..64", PLAN, "Groups in a stage; 0: any number (default: 8)"},
    {"rules", 0, "FILE", CD_OPTION_FILE, AT(rules), NULL, PLAN, "Which device may run what, patterns, places (docs/reference/offload.md): the plan keeps to them, and whole operators are also placed by cost under them"},
    {"mac", 0, NULL, CD_OPTION_FLAG, AT(mac), NULL, PLAN, "With --rules: regions without a multiply-add stay on the first device"},
    {"plan", 0, "FILE", CD_OPTION_FILE, AT(plan), "*.json", PLAN, "Make none: tell, draw or run the plan of this file (docs/reference/plan.md)"},
    {"run", 0, NULL, CD_OPTION_FLAG, AT(run), NULL, RUN, "Run the plan on this machine, and each device alone, in turns: times and values"},
    {"compare", 0, NULL, CD_OPTION_FLAG, AT(compare), NULL, RUN, "All baselines: equal, fixed and greedy shares, placement; with --run measured too"},
    {"budget", 0, "S", CD_OPTION_TEXT, AT(budget), NULL, RUN, "Seconds for measuring (default: 2 for the plan, 2 for the comparison)"},
    {"inject", 0, "slow:D=N|break:D", CD_OPTION_TEXTS, AT(inject), NULL, RUN, "While the plan runs: device D takes N times as long, or fails. It is planned again, and the result stays right"},
    {"explain", 0, NULL, CD_OPTION_FLAG, AT(explain), NULL, TOLD, "Every operator: where it runs, what each device would take, why"},
    {"list-patterns", 0, NULL, CD_OPTION_FLAG, AT(list_patterns), NULL, TOLD, "With --rules: what they match in the network, and nothing else"},
    {"emit", 0, "FOLDER", CD_OPTION_FOLDER, AT(emit), NULL, TOLD, "Write regions as sources with a makefile: with --rules those below the table, else the plan's, which may split nothing"},
    {"save-plan", 0, "FILE", CD_OPTION_FILE, AT(save_plan), "*.json", TOLD, "Write the plan (docs/reference/plan.md)"},
    {"lp", 0, "FILE", CD_OPTION_FILE, AT(lp), "*.lp", TOLD, "Write the placement of whole operators as a 0/1 problem in CPLEX form, for any solver"},
    {"html", 0, "FILE", CD_OPTION_FILE, AT(html), "*.html", TOLD, "A page of its own: table, timeline, operators"},
    {"trace", 0, "FILE", CD_OPTION_FILE, AT(trace), "*.json", TOLD, "The timeline for chrome://tracing and Perfetto"},
    {"verbose", 'v', NULL, CD_OPTION_FLAG, AT(verbose), NULL, TOLD, "Say what is read and where the time goes"},
};

static const char *const use[] = {"--model NAME|FILE --cost-model FILE [--devices A,B] [--machine FILE] [OPTION...]",
                                  "--model NAME|FILE --plan FILE [--run] [OPTION...]",
                                  "link|curve|correlate|equilibrium|together ...", NULL};
static const char *const example[] = {
    "A plan for two cores, what others would take, and a page", "cdmpp-partition --model bert-tiny --devices cpu0,ocl0 --cost-model m.cdmpp --compare --html plan.html",
    "The same, run here", "cdmpp-partition --model bert-tiny --machine machine.json --cost-model m.cdmpp --schedules book.json --run --json",
    "Were the second device 30 times as slow", "cdmpp-partition --model bert-tiny --devices cpu0,ocl0 --times ocl0=30 --cost-model m.cdmpp --explain", NULL};
static const char *const see[] = {"cdmpp-replay(1)", "cdmpp-profile(1)", "cdmpp-predict(1)", NULL};
static const cd_command *const verb[] = {&cd_partition_link_command, &cd_partition_curve_command, &cd_partition_correlate_command, &cd_partition_equilibrium_command, &cd_partition_together_command, NULL};
static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} tool[] = {{"link", cd_partition_link}, {"curve", cd_partition_curve}, {"correlate", cd_partition_correlate}, {"equilibrium", cd_partition_equilibrium}, {"together", cd_partition_together}};
static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err);
static const cd_command self = {
    "cdmpp-partition", "plan which device runs which part of a network", use,
    "Predicts what each operator of a network, and parts of it, take on each device of a machine, and what bringing bytes from one to the other takes; "
    "chooses a device for each operator, or a dimension and shares to split it over several; and says what that gains over the better device alone, "
    "beside the most that it could gain. Where splitting does not pay the plan says so.\n\n"
    "--run measures the plan and each device alone on this machine, in turns, and compares the values. The exit status is 3 when lines of books or logs could not be used.",
    table, sizeof table / sizeof *table, group, NULL, example, NULL, see, verb, check};

/* ---- options ---- */
static cdmpp_status numbers(cd_main_partition *o, cdmpp_err *err) {
    CD_TRY(cd_partition_number("margin", o->margin, 0, 1, &o->margin_v, err));
    CD_TRY(cd_partition_number("least-us", o->least_us, 0, 1e9, &o->least_v, err));
    CD_TRY(cd_partition_number("cover", o->cover, 0, 1, &o->cover_v, err));
    CD_TRY(cd_partition_number("fixed-share", o->share, 0, 1, &o->share_v, err));
    return cd_partition_number("budget", o->budget, 1e-3, 1e5, &o->budget_v, err);
}

static size_t networks(const cd_main_partition *o) {
    size_t n = o->network.n;
    for (size_t k = 0; k < o->model.n; k++) n += !cd_model_set_is_model(o->model.v[k]);
    return n;
}

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    cd_main_partition *o = to;
    cd_workload_layout layout;
    if (said->operand.n) return CD_FAIL(err, EUSAGE, "unexpected '%.60s'", said->operand.v[0]);
    if (networks(o) != 1) return CD_FAIL(err, EUSAGE, networks(o) ? "one network at a time" : "there is no network: --model NAME|FILE");
    if (o->split && o->no_split) return CD_FAIL(err, EUSAGE, "--split or --no-split");
    if (o->no_split && o->dims) return CD_FAIL(err, EUSAGE, "--no-split leaves nothing for --dims");
    if (o->plan && (o->dims || o->no_split || o->save_plan || o->compare)) return CD_FAIL(err, EUSAGE, "--plan makes no plan: --dims, --no-split, --compare and --save-plan go without it");
    if (o->layout && !cd_workload_layout_parse(o->layout, &layout)) return CD_FAIL(err, EUSAGE, "--layout: expected one of " CD_WORKLOAD_LAYOUTS ", found '%.40s'", o->layout);
    if (!o->rules && (o->list_patterns || o->mac)) return CD_FAIL(err, EUSAGE, "--list-patterns and --mac are about --rules");
    if (!o->run && (o->budget || o->inject.n)) return CD_FAIL(err, EUSAGE, "--budget and --inject are about --run");
    CD_TRY(numbers(o, err));
    return cd_partition_run_check(o, err);
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

static cdmpp_status offload(cd_partition_job *p, cdmpp_err *err) {
    const cd_main_partition *o = p->o;
    const cd_place_goal goal = o->goal > 0 ? CD_PLACE_MAKESPAN : CD_PLACE_SUM;
    if (o->rules) CD_TRY(cd_partition_offload_place(&p->offload, p->ask.time, p->ask.ctx, goal, o->mac, err));
    const cd_shard_plan *plan = o->rules && !o->plan ? NULL : p->plan; /* under rules: the regions that are told */
    return o->emit ? cd_partition_offload_emit(&p->offload, plan, p->ask.time, p->ask.ctx, p->cost, o->emit, o->log, err) : CDMPP_OK;
}

static cdmpp_status all(cd_partition_job *p, cdmpp_err *err) {
    const cd_main_partition *o = p->o;
    cd_buf b = {0};
    CD_TRY(cd_partition_run_open(p, err));
    CD_TRY(cd_partition_load(p, err));
    if (o->list_patterns) {
        cd_partition_offload_list(&p->offload, &b);
        return cd_command_print(&b, err);
    }
    if (o->run && o->stages) CD_TRY(cd_partition_stage_run_check(p, err));
    CD_TRY(cd_partition_costs(p, err));
    CD_TRY(cd_partition_plan(p, err));
    if (*o->stop) return CD_FAIL(err, EINTERRUPTED, "before anything was run");
    if (o->goal >= 0 || o->lp) CD_TRY(cd_partition_place(p, err));
    CD_TRY(offload(p, err));
    if (o->stages) CD_TRY(cd_partition_stages(p, err));
    if (o->run) CD_TRY(cd_partition_run_measure(p, err));
    if (o->run && o->stages) CD_TRY(cd_partition_stage_run(p, err));
    if (o->save_plan) CD_TRY(cd_partition_save_plan(p, err));
    if (o->trace) CD_TRY(cd_partition_write_trace(p, err));
    if (o->html) CD_TRY(cd_partition_write_html(p, err));
    if (o->json) cd_partition_json(p, &b);
    else cd_partition_print(p, &b);
    return cd_command_print(&b, err);
}

int main(int argc, char **argv) {
    cd_main_partition o = {.goal = -1, .stage_r = 3, .stage_s = 8, .margin_v = NAN, .least_v = NAN, .cover_v = NAN, .share_v = NAN, .stop = &stop};
    cd_partition_job p = {.o = &o};
    cdmpp_err err = {0};
    cd_command_run f;
    int code;
    for (size_t k = 0; argc > 1 && k < sizeof tool / sizeof *tool; k++)
        if (!strcmp(argv[1], tool[k].name)) return tool[k].run(argc - 1, argv + 1);
    if (!cd_command_begin(&f, &self, argc, argv, &o, &code)) return code;
    o.json = f.said.json;
    o.log = &f.log;
    if (o.verbose) f.log.level = CD_LOG_DEBUG;
    take_signals();
    const cdmpp_status st = all(&p, &err);
    if (st) cd_log_err(&f.log, CD_LOG_ERROR, &err);
    cd_partition_free(&p);
    cd_command_end(&f);
    return st ? cdmpp_exit_code(st) : o.bad ? 3 : 0;
}
