/* Verb "pack" of cdmpp-partition: tasks of many operators packed onto the units of a device in one
 * launch, from a table or of a network. */
#include <math.h>
#include <string.h>

#include "predictor/cmd/partition/main_partition.h"
#include "predictor/partition/report/report.h"

typedef struct {
    int units;
    cd_texts network;
    const char *budget; /* a number as text */
    cd_partition_pack_options pack;
    bool verbose;
} request;

#define AT(member)                                                                                 \
    (offsetof(request, pack) + offsetof(cd_partition_pack_options, network) +                      \
     offsetof(cd_partition_options, member))
enum { HOW, WHAT, SCHEDULES, RUN };
static const char *const group[] = {"How", "A network", "Schedules", "The run"};
static const cd_option table[] = {
    {"units", 0, "N", CD_OPTION_INT, offsetof(request, units), "1..1000000", HOW,
     "Units of the device that run tasks, as the multiprocessors of a GPU; of a network: threads"},
    {"verbose", 'v', NULL, CD_OPTION_FLAG, offsetof(request, verbose), NULL, HOW,
     "Print what is read"},
    {"network", 0, "NAME|FILE", CD_OPTION_TEXTS, offsetof(request, network), NULL, WHAT,
     "In place of a table the operators of a network: an ONNX file or a name of the zoo"},
    {"cost-model", 0, "FILE", CD_OPTION_FILES, AT(cost_model), "*.cdmpp", WHAT,
     "A cost model of cdmpp-train (default: those in the folders of $CDMPP_MODELS, then the "
     "installed default model)"},
    {"as", 0, "NAME", CD_OPTION_TEXTS, AT(as), NULL, WHAT,
     "The cost model's device that stands for a unit (default: this machine, else the nearest that "
     "the model knows)"},
    {"machine", 0, "FILE", CD_OPTION_FILE, AT(machine), "*.json", WHAT,
     "What starting and waiting cost, by cdmpp-partition link measure: of its device cpu0 "
     "(default: usual values, not measured)"},
    {"target", 0, "TARGET", CD_OPTION_TEXTS, AT(target), NULL, WHAT,
     "Target of the programs (default: by the device's description)"},
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
    {"schedules", 0, "FILE", CD_OPTION_FILES, AT(schedules), "*.json", SCHEDULES,
     "Schedule databases of cdmpp-replay --save-schedules; they come before logs"},
    {"records", 0, "LOG", CD_OPTION_FILES, AT(records), NULL, SCHEDULES,
     "Measure logs or folders of logs: the best record of each task on this device is its "
     "schedule"},
    {"store", 0, "DB", CD_OPTION_FILES, AT(store), "*.db", SCHEDULES,
     "The same from a store of measurements"},
    {"trials", 0, "N", CD_OPTION_INT, AT(trials), "1..1000000", SCHEDULES,
     "Candidates of an operator without a schedule (default: 160)"},
    {"seed", 0, "N", CD_OPTION_INT, AT(seed), "0..2000000000", SCHEDULES,
     "Seed of the candidates (default: 0)"},
    {"jobs", 'j', "N", CD_OPTION_INT, AT(jobs), "1..1024", SCHEDULES,
     "Threads that score candidates, and compilers at a time (default: one for each CPU)"},
    {"run", 0, NULL, CD_OPTION_FLAG, AT(run), NULL, RUN,
     "Run the network on N processors of this machine, in turns on one thread, one operator after "
     "the other on all, and packed; values are compared, and what measures best is kept"},
    {"budget", 0, "S", CD_OPTION_TEXT, offsetof(request, budget), NULL, RUN,
     "Seconds for measuring (default: 2)"},
};
static const char *const use[] = {
    "--units N TASKS.csv", "--units N --network NAME|FILE [--cost-model FILE] [--run] [OPTION...]",
    NULL};
static const char *const example[] = {
    "Two small operators beside a large one, in one launch",
    "printf 'operator,tasks,seconds\\na,6,1e-5\\nb,6,1e-5\\nc,20,2e-5\\n' | cdmpp-partition pack "
    "--units 16 -",
    "A network on two threads, measured",
    "cdmpp-partition pack --units 2 --network inception-v1 --input-size 64 --run", NULL};

/* The first option that is about networks and was given with a table; NULL: none. */
static const char *idle(const request *r) {
    const cd_partition_options *o = &r->pack.network;
    const struct {
        const char *option;
        bool said;
    } v[] = {{"--run", o->run},
             {"--budget", r->budget != NULL},
             {"--cost-model", o->cost_model.n > 0},
             {"--as", o->as.n > 0},
             {"--machine", o->machine != NULL},
             {"--target", o->target.n > 0},
             {"--device-file", o->descriptions != NULL},
             {"--batch", o->batch > 0},
             {"--input-size", o->input_size > 0},
             {"--dim", o->dim.n > 0},
             {"--input", o->input.n > 0},
             {"--schedules", o->schedules.n > 0},
             {"--records", o->records.n > 0},
             {"--store", o->store.n > 0},
             {"--trials", o->trials > 0},
             {"--jobs", o->jobs > 0},
             {"--seed", o->seed >= 0}};
    for (size_t k = 0; k < sizeof v / sizeof *v; k++)
        if (v[k].said) return v[k].option;
    return NULL;
}

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    request *r = to;
    cd_partition_options *o = &r->pack.network;
    if (!r->units) return CD_FAIL(err, EUSAGE, "--units is missing");
    if (!r->network.n) {
        if (idle(r)) return CD_FAIL(err, EUSAGE, "%s is about a --network", idle(r));
        return said->operand.n == 1
                   ? CDMPP_OK
                   : CD_FAIL(err, EUSAGE, "expected one table or a --network, found %zu tables",
                             said->operand.n);
    }
    if (said->operand.n)
        return CD_FAIL(err, EUSAGE, "a --network or a table: unexpected '%.60s'",
                       said->operand.v[0]);
    if (r->network.n > 1) return CD_FAIL(err, EUSAGE, "one network at a time");
    if (r->budget && !o->run) return CD_FAIL(err, EUSAGE, "--budget is about --run");
    o->network = r->network.v[0];
    if (o->seed < 0) o->seed = 0;
    r->pack.units = (uint32_t)r->units;
    return cd_option_number("budget", r->budget, 1e-3, 1e5, &o->budget_s, err);
}

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err);
static request asked = {.pack.network.seed = -1}; /* -1: not said */
const cd_main_partition_verb cd_main_partition_pack = {
    "pack",
    &asked,
    run,
    {"cdmpp-partition pack", "tasks of several operators on the units of one device, in one launch",
     use,
     "The table has the columns operator, tasks (how many equal tasks it has) and seconds (of one "
     "task), and optionally after: the operators that come before it, blanks "
     "between. A free unit takes a task of the operator with the longest chain of operators behind "
     "it (Rammer, OSDI 2020). Printed are the start and end of each operator, and "
     "the makespan beside its lower bound and beside one operator after the other.\n\n"
     "With --network the operators are those of the network: the iterations of a program's "
     "parallel loops are its tasks, their seconds are predicted by the cost model, and as many of "
     "them are put together as make the shortest plan. --run measures the plan here, on threads "
     "that each have their list of calls and wait for each other only where one needs the "
     "other's result. The exit status is 3 when lines of schedule databases or logs could not be "
     "used, and when results differ.",
     table, sizeof table / sizeof *table, group, "*.csv", example, NULL, NULL, NULL, check, NULL}};

static cdmpp_status pack_table(cd_command_run *r, const char *path, uint32_t units,
                               cdmpp_err *err) {
    cd_pack_table t = {0};
    cd_pack p = {0};
    cd_buf b = {0};
    cdmpp_status st = cd_pack_read(path, &t, err);
    if (!st)
        st =
            cd_err_at(err, cd_pack_make(t.op, t.n_op, t.after, t.n_after, units, &p, err), path, 0);
    if (!st) {
        if (r->said.json) cd_pack_print_json(&t, units, &p, &b);
        else cd_pack_print(&t, units, &p, &b);
        st = cd_command_result(r->said.json, "cdmpp.partition_pack", "cdmpp-partition", &r->log, &b,
                               err);
    }
    cd_pack_free(&p);
    cd_arena_free(&t.arena);
    return st;
}

/* What is no option of this verb has the defaults of a plan; one device stands for all units, and
 * others' load meets all ways alike. */
static cdmpp_status pack_network(cd_command_run *r, request *o, cdmpp_err *err) {
    const cd_partition_options d = cd_partition_defaults();
    cd_partition_options *n = &o->pack.network;
    cd_partition_pack p = {0};
    cd_buf b = {0};
    cd_command_verbose(r, o->verbose);
    n->devices = "cpu0";
    n->ignore_load = true;
    n->goal = d.goal, n->stages = d.stages, n->stage_length = d.stage_length,
    n->stage_groups = d.stage_groups;
    n->margin = d.margin, n->min_us = d.min_us, n->cover = d.cover, n->fixed_share = d.fixed_share;
    n->log = &r->log;
    n->stop = r->stop;
    cdmpp_status st = cd_partition_pack_make(&o->pack, &p, err);
    if (!st) {
        if (r->said.json) cd_partition_report_pack_json(&p, &b);
        else cd_partition_report_pack(&p, &b);
        st = cd_command_result(r->said.json, "cdmpp.partition_pack_network", "cdmpp-partition",
                               &r->log, &b, err);
    }
    bool differ = false;
    for (int k = 0; k < CD_PACK_WAYS; k++) differ = differ || p.way[k].ran.differ;
    if (p.of.bad_lines || differ) r->exit_code = 3;
    cd_partition_pack_free(&p);
    return st;
}

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    request *o = to;
    return o->network.n ? pack_network(r, o, err)
                        : pack_table(r, r->said.operand.v[0], (uint32_t)o->units, err);
}
