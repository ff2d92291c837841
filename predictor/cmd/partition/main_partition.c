/* cdmpp-partition -- which device runs which part of a network, by predictions. Reads its options,
 * calls predictor/partition/plan, prints with predictor/partition/report. */
#include "predictor/cmd/partition/main_partition.h"

#include <math.h>
#include <string.h>

#include "predictor/partition/report/report.h"

typedef struct {
    cd_partition_options plan;
    cd_texts model, network, cost_model;
    cd_texts models; /* cost models of --cost-model, then those of --model */
    const char *margin, *min_us, *cover, *share, *budget; /* numbers as text */
    const char *save_plan, *annotate, *html, *trace;
    bool split, explain, verbose, list_devices;
} request;

#define AT(member) (offsetof(request, plan) + offsetof(cd_partition_options, member))
enum { WHAT, SCHEDULES, PLAN, RUN, OUTPUT };
static const char *const group[] = {"What", "Schedules", "The plan", "The run", "Output"};
static const cd_option table[] = {
    {"network", 0, "NAME|FILE", CD_OPTION_TEXTS, offsetof(request, network), NULL, WHAT,
     "The network: an ONNX file or a name of the zoo"},
    {"cost-model", 0, "FILE", CD_OPTION_FILES, offsetof(request, cost_model), "*.cdmpp", WHAT,
     "A cost model of cdmpp-train; several: of those that know a device the first one answers for "
     "it. Those in the folders of $CDMPP_MODELS come last (default: the installed default model)"},
    /* either of the two, by content */
    {"model", 'm', "FILE|NAME", CD_OPTION_FILES, offsetof(request, model), "*.cdmpp|*.onnx", WHAT,
     NULL},
    {"devices", 'd', "A,B,...", CD_OPTION_TEXT, AT(devices), NULL, WHAT,
     "Devices of the machine; the first one holds inputs and results (default: all of --machine, "
     "else cpu0,ocl0, or cpu0,cpu1 where there is no OpenCL)"},
    {"machine", 0, "FILE", CD_OPTION_FILE, AT(machine), "*.json", WHAT,
     "Description of the machine by cdmpp-partition link measure (default: usual values of cpuN "
     "and oclN, not measured)"},
    {"as", 0, "NAME", CD_OPTION_TEXTS, AT(as), NULL, WHAT,
     "The cost model's device that stands for all devices, or DEVICE=NAME for one; here: this "
     "machine (default: as the machine says, else the only one that the model knows)"},
    {"list-devices", 0, NULL, CD_OPTION_FLAG, offsetof(request, list_devices), NULL, WHAT,
     "Only list the devices that --as may name: those of the models and those that are described"},
    {"times", 0, "DEVICE=N", CD_OPTION_TEXTS, AT(times), NULL, WHAT,
     "Run every program N times on this device: makes it slower on purpose"},
    {"target", 0, "TARGET", CD_OPTION_TEXTS, AT(target), NULL, WHAT,
     "Target of the programs, or DEVICE=TARGET for one device (default: as the machine says, else "
     "by the device's description)"},
    {"device-file", 0, "FILE", CD_OPTION_FILE, AT(descriptions), "*.yaml", WHAT,
     "Descriptions of the cost model's devices, before those that everybody has "
     "(configs/devices.yaml here, else the installed one)"},
    {"batch", 'b', "N", CD_OPTION_INT, AT(batch), "1..1048576", WHAT,
     "Batch size (default: 1, or what the file says)"},
    /* as OpBench calls it */
    {"batch-size", 0, "N", CD_OPTION_INT, AT(batch), "1..1048576", WHAT, NULL},
    {"input-size", 0, "N", CD_OPTION_INT, AT(input_size), "1..1048576", WHAT,
     "Edge of the image or length of the sequence of networks of the zoo (default: as published)"},
    {"dim", 0, "NAME=N", CD_OPTION_TEXTS, AT(dim), NULL, WHAT,
     "Value of a symbolic dimension of an ONNX file, or of a dimension of an input: 'ids[1]=128'; "
     "the branch of an If: if_3=then; the runs of a Loop: loop_1=10"},
    {"input", 0, "NAME", CD_OPTION_TEXTS, AT(input), NULL, WHAT,
     "This input of an ONNX file is data; those that are not named are weights"},
    {"layout", 0, "LAYOUT", CD_OPTION_TEXT, AT(layout), NULL, WHAT,
     "Layout of images: auto, nchw or nhwc (auto: by the first device)"},
    {"schedules", 0, "FILE", CD_OPTION_FILES, AT(schedules), "*.json", SCHEDULES,
     "Schedule databases of cdmpp-replay --save-schedules; they come before logs"},
    {"records", 0, "LOG", CD_OPTION_FILES, AT(records), NULL, SCHEDULES,
     "Measure logs or folders of logs: the best record of each task on this device is its "
     "schedule"},
    {"store", 0, "DB", CD_OPTION_FILES, AT(store), "*.db", SCHEDULES,
     "The same from a store of measurements"},
    {"trials", 0, "N", CD_OPTION_INT, AT(trials), "1..1000000", SCHEDULES,
     "Candidates sampled for each shard beside the schedule of the whole operator (default: none, "
     "but 160 where there is no schedule, as of cdmpp-replay)"},
    {"seed", 0, "N", CD_OPTION_INT, AT(seed), "0..2000000000", SCHEDULES,
     "Seed of the candidates (default: 0)"},
    {"jobs", 'j', "N", CD_OPTION_INT, AT(jobs), "1..1024", SCHEDULES,
     "Threads that score candidates, and compilers at a time (default: one for each CPU)"},
    {"split", 0, NULL, CD_OPTION_FLAG, offsetof(request, split), NULL, PLAN,
     "Operators may be split over devices (the default)"},
    {"allow-missing", 0, NULL, CD_OPTION_FLAG, AT(allow_missing), NULL, PLAN,
     "Operators that nobody defines (NonMaxSuppression, TopK) stay on the first device, and no "
     "time counts them"},
    {"no-split", 0, NULL, CD_OPTION_FLAG, AT(no_split), NULL, PLAN,
     "Every operator runs whole, on one device"},
    {"dims", 0, "H,N,...", CD_OPTION_TEXT, AT(dims), NULL, PLAN,
     "Dimensions to split: N O H W I of convolutions, M N K of products, B of batches, C (default: "
     "all that are legal)"},
    {"granules", 0, "N", CD_OPTION_INT, AT(granules), "2..64", PLAN,
     "Shares are multiples of one N-th (default: 8)"},
    {"margin", 0, "X", CD_OPTION_TEXT, offsetof(request, margin), NULL, PLAN,
     "Split only where that saves this fraction of an operator's time, 0 to 1 (default: 0.05)"},
    {"min-us", 0, "X", CD_OPTION_TEXT, offsetof(request, min_us), NULL, PLAN,
     "Split only where that saves at least so many microseconds (default: 20)"},
    {"least-us", 0, "X", CD_OPTION_TEXT, offsetof(request, min_us), NULL, PLAN, NULL},
    {"cover", 0, "X", CD_OPTION_TEXT, offsetof(request, cover), NULL, PLAN,
     "Consider the operators that hold this fraction of all that splitting could save, 0 to 1 "
     "(default: 1)"},
    {"fixed-share", 0, "X", CD_OPTION_TEXT, offsetof(request, share), NULL, PLAN,
     "Share of the first device in the baseline of fixed shares, 0 to 1 (default: 0.5)"},
    {"goal", 0, "GOAL", CD_OPTION_WORD, AT(goal), CD_PLACE_GOALS, PLAN,
     "Also place whole operators: by the sum of all times, or by the makespan with overlap; "
     "printed below the table"},
    {"stages", 0, "[HOW]", CD_OPTION_WORD, AT(stages), CD_PARTITION_STAGES, PLAN,
     "Also stages, block by block (IOS): parallel: operators side by side on the devices; "
     "sequential: one after the other; merge: convolutions that read one tensor as one, where that "
     "is predicted to pay; both: merge and parallel; split: parallel, or one operator in pieces on "
     "all devices. With --run they are measured too, beside one operator after the other (default: "
     "parallel)"},
    {"save-merged", 0, "FILE", CD_OPTION_OUTPUT, AT(save_merged), "*.onnx", PLAN,
     "Write the network with convolutions merged by --stages=merge or both as an ONNX file, in "
     "which weights hold made-up numbers: to tune its tasks"},
    {"stage-length", 'r', "N", CD_OPTION_INT, AT(stage_length), "0..64", PLAN,
     "Operators one behind the other in a group of a stage; 0: any number (default: 3)"},
    {"stage-groups", 's', "N", CD_OPTION_INT, AT(stage_groups), "0..64", PLAN,
     "Groups in a stage; 0: any number (default: 8)"},
    {"rules", 0, "FILE", CD_OPTION_FILE, AT(rules), NULL, PLAN,
     "Which device may run what, patterns, places (docs/reference/offload.md): the plan keeps to "
     "them, and whole operators are also placed by cost under them"},
    {"mac", 0, NULL, CD_OPTION_FLAG, AT(mac), NULL, PLAN,
     "With --rules: regions without a multiply-add stay on the first device"},
    {"plan", 0, "FILE", CD_OPTION_FILE, AT(plan), "*.json", PLAN,
     "Make no plan: print, draw or run the plan of this file (docs/reference/plan.md), or of an "
     "ONNX file that --annotate wrote"},
    {"run", 0, NULL, CD_OPTION_FLAG, AT(run), NULL, RUN,
     "Run the plan on this machine in turns with each device alone, equal and greedy shares: times "
     "and values. What measures best is kept as the plan"},
    {"compare", 0, NULL, CD_OPTION_FLAG, AT(compare), NULL, RUN,
     "Print all baselines: equal, fixed and greedy shares, placement; with --run they are measured "
     "too"},
    {"budget", 0, "S", CD_OPTION_TEXT, offsetof(request, budget), NULL, RUN,
     "Seconds for measuring (default: 2 for the plan, 2 for the comparison)"},
    {"ignore-load", 0, NULL, CD_OPTION_FLAG, AT(ignore_load), NULL, RUN,
     "Plan as if nobody else used the machine. Without it a device whose processor others use is "
     "planned as slow as it is now"},
    {"inject", 0, "slow:D=N|break:D", CD_OPTION_TEXTS, AT(inject), NULL, RUN,
     "While the plan runs, device D takes N times as long, or fails: a new plan is made, and the "
     "result stays right. Times of that run are not the plan's"},
    {"explain", 0, NULL, CD_OPTION_FLAG, offsetof(request, explain), NULL, OUTPUT,
     "Every operator: where it runs, what each device would take, why"},
    {"list-patterns", 0, NULL, CD_OPTION_FLAG, AT(list_patterns), NULL, OUTPUT,
     "With --rules: print what they match in the network, and nothing else"},
    {"emit", 0, "FOLDER", CD_OPTION_FOLDER, AT(emit), NULL, OUTPUT,
     "Write regions as sources with a makefile: with --rules those below the table, else those of "
     "the plan, which must not split operators"},
    {"save-plan", 0, "FILE", CD_OPTION_OUTPUT, offsetof(request, save_plan), "*.json", OUTPUT,
     "Write the plan (docs/reference/plan.md)"},
    {"annotate", 0, "FILE", CD_OPTION_FILE, offsetof(request, annotate), "*.onnx", OUTPUT,
     "Write the network's ONNX file with the plan in its metadata, from where --plan reads it"},
    {"lp", 0, "FILE", CD_OPTION_OUTPUT, AT(lp), "*.lp", OUTPUT,
     "Write the placement of whole operators as a 0/1 problem in CPLEX LP format, for any solver"},
    {"html", 0, "FILE", CD_OPTION_OUTPUT, offsetof(request, html), "*.html", OUTPUT,
     "Write a page: table, timeline, operators"},
    {"trace", 0, "FILE", CD_OPTION_OUTPUT, offsetof(request, trace), "*.json", OUTPUT,
     "Write the timeline for chrome://tracing and Perfetto"},
    {"verbose", 'v', NULL, CD_OPTION_FLAG, offsetof(request, verbose), NULL, OUTPUT,
     "Print what is read and where the time goes"},
};

static const char *const use[] = {
    "FILE.onnx [--cost-model FILE] [--devices A,B] [OPTION...]",
    "--network NAME|FILE --cost-model FILE [--devices A,B] [--machine FILE] [OPTION...]",
    "--network NAME|FILE --plan FILE [--run] [OPTION...]",
    "link|curve|correlate|equilibrium|together|pack|qos ...", NULL};
static const char *const example[] = {
    "A plan for two cores beside all baselines, and a page",
    "cdmpp-partition --network bert-tiny --devices cpu0,ocl0 --cost-model m.cdmpp --compare --html "
    "plan.html",
    "The same, measured here",
    "cdmpp-partition --network bert-tiny --machine machine.json --cost-model m.cdmpp --schedules "
    "schedules.json --run --json",
    "With a second device that is 30 times slower",
    "cdmpp-partition --network bert-tiny --devices cpu0,ocl0 --times ocl0=30 --cost-model m.cdmpp "
    "--explain",
    NULL};
static const char *const see[] = {"cdmpp-replay(1)", "cdmpp-profile(1)", "cdmpp-predict(1)", NULL};
static const cd_main_partition_verb *const tool[] = {
    &cd_main_partition_link,        &cd_main_partition_curve,    &cd_main_partition_correlate,
    &cd_main_partition_equilibrium, &cd_main_partition_together, &cd_main_partition_pack,
    &cd_main_partition_qos};
static const cd_command *const verb[] = {
    &cd_main_partition_link.command,      &cd_main_partition_curve.command,
    &cd_main_partition_correlate.command, &cd_main_partition_equilibrium.command,
    &cd_main_partition_together.command,  &cd_main_partition_pack.command,
    &cd_main_partition_qos.command,       NULL};

/* ---- options ---- */

/* Of --model: each file or name is a cost model or the network. *n: networks in all. */
static cdmpp_status sort_models(request *r, cd_arena *a, size_t *n, cdmpp_err *err) {
    const char **v = CD_NEWN(a, const char *, r->cost_model.n + r->model.n + 1);
    if (!v) return CD_FAIL(err, ENOMEM, "names");
    *n = r->network.n;
    r->plan.network = r->network.n ? r->network.v[0] : NULL;
    for (size_t k = 0; k < r->cost_model.n; k++) v[r->models.n++] = r->cost_model.v[k];
    for (size_t k = 0; k < r->model.n; k++) {
        if (cd_model_set_is_model(r->model.v[k])) v[r->models.n++] = r->model.v[k];
        else if (!(*n)++) r->plan.network = r->model.v[k];
    }
    r->models.v = v;
    r->plan.cost_model = r->models;
    return CDMPP_OK;
}

static cdmpp_status numbers(request *r, cdmpp_err *err) {
    CD_TRY(cd_option_number("margin", r->margin, 0, 1, &r->plan.margin, err));
    CD_TRY(cd_option_number("min-us", r->min_us, 0, 1e9, &r->plan.min_us, err));
    CD_TRY(cd_option_number("cover", r->cover, 0, 1, &r->plan.cover, err));
    CD_TRY(cd_option_number("fixed-share", r->share, 0, 1, &r->plan.fixed_share, err));
    return cd_option_number("budget", r->budget, 1e-3, 1e5, &r->plan.budget_s, err);
}

/* A verb that is misspelt, or a network without its option. */
static cdmpp_status unexpected(const char *word, cdmpp_err *err) {
    const char *name[sizeof tool / sizeof *tool];
    for (size_t k = 0; k < sizeof tool / sizeof *tool; k++) name[k] = tool[k]->name;
    const char *near = cd_did_you_mean_nearest(word, name, sizeof tool / sizeof *tool);
    if (near) return CD_FAIL(err, EUSAGE, "unexpected '%.60s', did you mean '%s'?", word, near);
    return cd_network_load_unexpected(word, err);
}

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    request *r = to;
    size_t n;
    if (said->operand.n == 1 && !r->network.n && cd_network_operand_is_onnx(said->operand.v[0]))
        r->network = said->operand;
    else if (said->operand.n) return unexpected(said->operand.v[0], err);
    CD_TRY(sort_models(r, (cd_arena *)(uintptr_t)&said->arena, &n, err));
    if (r->list_devices) return CDMPP_OK;
    if (n != 1)
        return CD_FAIL(err, EUSAGE,
                       n ? "one network at a time" : "there is no network: --network NAME|FILE");
    if (r->split && r->plan.no_split) return CD_FAIL(err, EUSAGE, "--split or --no-split");
    if (r->plan.plan && (r->save_plan || r->annotate))
        return CD_FAIL(err, EUSAGE,
                       "--plan makes no plan: --dims, --no-split, --compare, --save-plan and "
                       "--annotate go without it");
    const cd_partition_options d = cd_partition_defaults();
    if (r->plan.stages < 0 &&
        (r->plan.stage_length != d.stage_length || r->plan.stage_groups != d.stage_groups))
        return CD_FAIL(err, EUSAGE, "--stage-length and --stage-groups are about --stages");
    CD_TRY(numbers(r, err));
    return cd_partition_check(&r->plan, err);
}

static const cd_option_usual usual[] = {
    {"network", "An ONNX file or a name"},
    {"devices", "Devices of this machine: cpu0,ocl0"},
    {"cost-model", "Cost model (default: the installed one)"},
    {"compare", "Print all baselines"},
    {"run", "Measure the plan here, and the others"},
    {"html", "Write a page"},
    {NULL, NULL},
};

static const cd_command self = {
    "cdmpp-partition",
    "plan which device runs which part of a network",
    use,
    "Predicts what each operator of a network, and shards of it, take on each device of a machine, "
    "and what copies between devices take; "
    "chooses a device for each operator, or a dimension and shares to split it over several; and "
    "prints what that gains over the better device alone, "
    "beside the most that it could gain. Where splitting does not pay the plan says so.\n\n"
    "--run measures the plan and the other candidates on this machine, in turns, keeps what "
    "measured best, and compares the values. It says how much of the processors others used "
    "meanwhile. The exit status is 3 when lines of schedule databases or logs could not be used, "
    "and when a plan, a device alone or a block of stages could not be measured.",
    table,
    sizeof table / sizeof *table,
    group,
    NULL,
    example,
    NULL,
    see,
    verb,
    check,
    usual};

/* ---- the whole ---- */

static cdmpp_status list_devices(const request *r, bool json, cdmpp_err *err) {
    const cd_model_set_options a = {.model = &r->plan.cost_model,
                                    .devices = r->plan.descriptions,
                                    .file_option = "--device-file",
                                    .name_option = "--as",
                                    .use_default = true};
    cd_model_set m = {0};
    cd_buf b = {0};
    const cdmpp_status st = cd_model_set_open(&a, &m, err);
    if (!st) cd_model_set_put_devices(&m, json, &b);
    cd_model_set_free(&m);
    return st ? st
              : cd_command_result(json, "cdmpp.devices", "cdmpp-partition", r->plan.log, &b, err);
}

/* Files that were asked for are written before anything is printed, so that output means that all
 * is done. */
static cdmpp_status all(const request *r, cd_partition *p, bool json, cdmpp_err *err) {
    cd_buf b = {0};
    CD_TRY(cd_partition_open(&r->plan, p, err));
    if (r->plan.list_patterns) {
        cd_partition_report_rules(p, &b);
        return cd_command_print(&b, err);
    }
    CD_TRY(cd_partition_compute(p, err));
    if (r->save_plan) CD_TRY(cd_partition_save_plan(p, r->save_plan, err));
    if (r->annotate) CD_TRY(cd_partition_annotate(p, r->annotate, err));
    if (r->trace) CD_TRY(cd_partition_report_trace(p, r->trace, err));
    if (r->html) CD_TRY(cd_partition_report_html(p, r->html, err));
    if (json) cd_partition_report_json(p, &b);
    else cd_partition_report_text(p, r->explain, &b);
    return cd_command_result(json, "cdmpp.partition", "cdmpp-partition", r->plan.log, &b, err);
}

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    request *o = to;
    cd_partition p = {0};
    cd_command_verbose(r, o->verbose);
    o->plan.log = &r->log;
    o->plan.stop = r->stop;
    const cdmpp_status st =
        o->list_devices ? list_devices(o, r->said.json, err) : all(o, &p, r->said.json, err);
    if (p.bad_lines || p.n_not_run) r->exit_code = 3;
    cd_partition_free(&p);
    return st;
}

/* Signals are not taken: a verb does not look whether it should stop, so ^C ends it at once. */
static int run_verb(const cd_main_partition_verb *v, int argc, char **argv) {
    cdmpp_err err = {0};
    cd_command_run r;
    int code;
    if (!cd_command_begin(&r, &v->command, argc, argv, v->request, &code)) return code;
    const cdmpp_status st = v->run(&r, v->request, &err);
    return cd_command_finish(&r, st, &err, r.exit_code == 3);
}

/* A verb has options of its own, so it is looked for before any option is read. */
int main(int argc, char **argv) {
    request r = {.plan = cd_partition_defaults()};
    for (size_t k = 0; argc > 1 && k < sizeof tool / sizeof *tool; k++)
        if (!strcmp(argv[1], tool[k]->name)) return run_verb(tool[k], argc - 1, argv + 1);
    return cd_command_main(&self, argc, argv, &r, run);
}
