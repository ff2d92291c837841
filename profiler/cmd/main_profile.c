/* cdmpp-profile -- measures tensor programs. This file has the options, the modes and main(), and what several modes use. */
#include <string.h>

#include "base/io/io.h"
#include "features/sketch/sketch.h"
#include "profiler/cmd/main_profile.h"
#include "profiler/network/source/source.h"
#include "profiler/store/store.h"

#define AT(member) offsetof(cd_main_profile, member)
enum { WHAT, HOW, STORE, NETWORK, FUSION, KERNELS, HOSTS, TRACE };
static const char *const group[] = {"What", "How", "Store", "Network", "Fusion", "Kernels", "Other hosts", "Traces"};
static const cd_option table[] = {
    {"tasks", 0, "FILE", CD_OPTION_FILES, AT(task), NULL, WHAT, "Task definitions: all_tasks.pkl, *.task.pkl, our text form, or a folder of these"},
    {"dry-run", 0, NULL, CD_OPTION_FLAG, AT(dry_run), NULL, WHAT, "Only read the records and lower their programs; say which cannot be"},
    {"emit-source", 0, NULL, CD_OPTION_FLAG, AT(emit_source), NULL, WHAT, "Only print the source code of the programs, to standard output or --out"},
    {"dialect", 0, "DIALECT", CD_OPTION_WORD, AT(dialect), CD_DIALECTS, WHAT, "With --emit-source: which language (default: the target's)"},
    {"no-check", 0, NULL, CD_OPTION_FLAG, AT(no_check), NULL, WHAT, "Do not compare the results of every program with those of its task without a schedule"},
    {"check", 0, NULL, CD_OPTION_FLAG, AT(check), NULL, WHAT, NULL}, /* what is done without it */
    {"stats", 0, "FILE", CD_OPTION_OUTPUT, AT(stats), "*.jsonl", WHAT, "Also write statistics of every measurement, one JSON object a line"},
    {"trials", 0, "N", CD_OPTION_INT, AT(trials), "1..1000000", WHAT, "draw: different programs of a task (default: 10). corun --group: groups (default: 10)"},
    {"pool", 0, "N", CD_OPTION_INT, AT(pool), "1..1000000", WHAT, "kernels, curves, --ops: of N random schedules of a task measure the --trials with the least analytic time (default: 256; 1: the first --trials that are drawn)"},
    {"seed", 0, "N", CD_OPTION_INT, AT(seed), "0..2000000000", WHAT, "draw: of the random schedules (default: 0). corun --group: of the groups"},
    {"group", 0, "N", CD_OPTION_INT, AT(corun_group), "2..4", WHAT, "corun: groups of N of the programs, each group measured and predicted from the pairs"},
    {"pairs", 0, "CSV", CD_OPTION_FILE, AT(pairs), "*.csv", WHAT, "corun --group: the pairs are in this file of corun --out (default: they are measured first)"},
    {"host", 0, "USER@BOARD", CD_OPTION_TEXTS, AT(host), NULL, HOSTS, "Measure there, by ssh; of several hosts each has one program at a time"},
    {"port", 0, "N", CD_OPTION_INT, AT(port), "1..65535", HOSTS, "Port of ssh there"},
    {"transport", 0, "COMMAND", CD_OPTION_TEXT, AT(transport), NULL, HOSTS, "Reach hosts by this shell command in place of ssh: host and port are $1 and $2, options for cdmpp-profile the words behind"},
    {"lease", 0, "S", CD_OPTION_INT, AT(lease_s), "1..1000000", HOSTS, "Seconds that a host may take for one program until another one gets it (default: 120)"},
    {"worker", 0, NULL, CD_OPTION_FLAG, AT(worker), NULL, HOSTS, "Be what --host reaches: a line of JSON comes in for each program and one goes out"},
    {"factor", 0, "LIST", CD_OPTION_TEXT, AT(factor), NULL, WHAT, "sweep: what is changed: tile, reorder, compute_at, fuse, unroll, vectorize, parallel, threads, cache, or several with commas between (default: all)"},
    {"plot", 0, "FILE", CD_OPTION_OUTPUT, AT(plot), "*.svg", WHAT, "sweep: also draw the variants there"},
    {"sizes", 0, "LIST", CD_OPTION_TEXT, AT(sizes), NULL, NETWORK, "curves: batch=1,4,8 or input=64,128,224: the network at these sizes; input=1..4096: at the powers of two from 1 to 4096"},
    {"describe-device", 0, NULL, CD_OPTION_FLAG, AT(describe), NULL, WHAT, "Print entries of devices.yaml for the devices named: cpu (default), opencl[:NAME], cuda[:NUMBER]"},
    {"measure", 0, NULL, CD_OPTION_FLAG, AT(measure), NULL, WHAT, "kernels predict: run the networks, too. With --describe-device: measure the units of a core, the memory bandwidth and the hardware descriptor (two seconds)"},
    {"from-records", 0, NULL, CD_OPTION_FLAG, AT(from_records), NULL, WHAT, "With --describe-device: descriptors of the devices of measure records, from what all of them have run"},
    {"jobs", 'j', "N", CD_OPTION_INT, AT(jobs), "1..1024", HOW, "Compiler processes at a time (default: one per CPU)"},
    {"threads", 0, "N", CD_OPTION_INT, AT(threads), "1..1024", HOW, "Threads of a program on a CPU (default: -num-cores of the target, else all CPUs)"},
    {"isa", 0, "SET", CD_OPTION_TEXT, AT(isa), CD_ISAS, HOW, "Instructions that C code may use (default: by -mcpu of the target, else native)"},
    {"cflags", 0, "FLAGS", CD_OPTION_TEXT, AT(cflags), NULL, HOW, "More flags for the C compiler ($CC, else cc), behind the usual ones"},
    {"cold", 0, NULL, CD_OPTION_FLAG, AT(cold), NULL, HOW, "Empty the caches before every run"},
    {"cool", 0, NULL, CD_OPTION_FLAG, AT(cool), NULL, HOW, "Empty the core's own caches before every run: its data stay in the shared one, as those of most operators are in a network"},
    {"rounds", 0, "N", CD_OPTION_INT, AT(rounds), "1..1000000", HOW, "Until every record stands N times in the output, one round after the other (default: 1)"},
    {"retry", 0, NULL, CD_OPTION_FLAG, AT(retry), NULL, HOW, "Measure again what failed by the records in --out; their lines stay"},
    {"budget-ms", 0, "N", CD_OPTION_INT, AT(budget_ms), "1..1000000", HOW, "At most so long for the repeats of one program (default: 100)"},
    {"timeout", 0, "S", CD_OPTION_INT, AT(timeout_s), "1..100000", HOW, "Seconds until a program that runs is given up (default: 10)"},
    {"build-timeout", 0, "S", CD_OPTION_INT, AT(build_timeout_s), "1..100000", HOW, "Seconds until a compiler is given up (default: 30)"},
    {"memory-mb", 0, "N", CD_OPTION_INT, AT(memory_mb), "16..100000000", HOW, "Mebibytes that a program may have (default: no limit)"},
    {"no-pin", 0, NULL, CD_OPTION_FLAG, AT(no_pin), NULL, HOW, "Do not keep programs on the last CPUs and compilers on the others"},
    {"cache", 0, "FOLDER", CD_OPTION_FOLDER, AT(cache), NULL, HOW, "Where compiled programs are kept; empty: nowhere (default: $XDG_CACHE_HOME/cdmpp, ~/.cache/cdmpp)"},
    {"cache-mb", 0, "N", CD_OPTION_INT, AT(cache_mb), "1..100000000", HOW, "Mebibytes of programs that are kept, those used least recently go (default: 1024)"},
    {"store", 0, "FILE", CD_OPTION_FILE, AT(store), "*.db", STORE, "The store: one SQLite file, made where it is not there. Records: what is measured goes there too"},
    {"form", 0, "FORM", CD_OPTION_WORD, AT(form), CD_STORE_FORMS, STORE, "Form of the files to import (default: by their first bytes)"},
    {"strict", 0, NULL, CD_OPTION_FLAG, AT(strict), NULL, STORE, "Stop at the first line that cannot be used"},
    {"device", 0, "NAME", CD_OPTION_TEXT, AT(device), NULL, STORE, "Records: which device, as its back end counts them (default: the first). Store: only of this device; of imported files, the device that they were measured on"},
    {"target", 0, "TARGET", CD_OPTION_TEXT, AT(target), NULL, STORE, "Records: measure and write for this target in place of the record's own. Store: only of this target, or of this kind of target (cuda, llvm ...). Draw: for this target (default: the task's)"},
    {"operator", 0, "NAME", CD_OPTION_TEXT, AT(operator_name), NULL, STORE, "Only of this operator, as list names it"},
    {"workload", 0, "KEY", CD_OPTION_TEXT, AT(workload), NULL, STORE, "Only of this workload key"},
    {"shape", 0, "JSON", CD_OPTION_TEXT, AT(shape), NULL, STORE, "Sizes to be near to: [[1,64,56,56],[64,64,3,3]]"},
    {"dtype", 0, "TYPE", CD_OPTION_TEXT, AT(dtype), NULL, STORE, "Only of this type"},
    {"layout", 0, "LAYOUT", CD_OPTION_TEXT, AT(layout), NULL, STORE, "Only of this layout (nchw, nhwc ...)"},
    {"limit", 'n', "N", CD_OPTION_INT, AT(limit), "1..2000000000", STORE, "At most N records. Store: at most N lines (default: best 10, near 5 workloads, list and export all)"},
    {"each", 0, "N", CD_OPTION_INT, AT(each), "1..1000000", STORE, "Of each near workload the N best (default: 1)"},
    {"errors", 0, NULL, CD_OPTION_FLAG, AT(errors), NULL, STORE, "Failed measurements too"},
    {"steps", 0, NULL, CD_OPTION_FLAG, AT(steps), NULL, STORE, "Show the schedules"},
    {"as", 0, "FORM", CD_OPTION_WORD, AT(as), CD_STORE_EXPORT_FORMS, STORE, "Form of what is exported (default: records)"},
    {"list-networks", 0, NULL, CD_OPTION_FLAG, AT(list_networks), NULL, NETWORK, "List the built-in networks"},
    {"list-ops", 0, NULL, CD_OPTION_FLAG, AT(list_ops), NULL, NETWORK, "List the operators of a network with their shapes and operations"},
    {"list-tasks", 0, NULL, CD_OPTION_FLAG, AT(list_tasks), NULL, NETWORK, "List the tasks that a network consists of, with TVM's workload keys and weights; --layout: auto, nchw or nhwc (auto: nhwc for CPUs)"},
    {"out-tasks", 0, "FILE", CD_OPTION_OUTPUT, AT(out_tasks), "*.json", NETWORK, "list-tasks: write the tasks there in our own text form"},
    {"ops", 0, NULL, CD_OPTION_FLAG, AT(run_ops), NULL, NETWORK, "Measure a network on this machine: its groups of operators, alone and in place, and as a whole"},
    {"cover", 0, "PERCENT", CD_OPTION_INT, AT(cover), "1..100", NETWORK, "--ops: key groups are the largest that make up so much of the time (default: those of 1 % each)"},
    {"passes", 0, "N", CD_OPTION_INT, AT(passes), "1..100000000", NETWORK, "--ops: time exactly N passes of the network (default: until the time is known)"},
    {"key-only", 0, NULL, CD_OPTION_FLAG, AT(key_only), NULL, NETWORK, "--ops: show the key groups only"},
    {"csv", 0, "LAYOUT", CD_OPTION_WORD, AT(csv), CD_MAIN_PROFILE_CSV, NETWORK, "--ops: print CSV, a row a group, or a row a type of operators in the layout of EOP's files"},
    {"model-source", 0, "SOURCE", CD_OPTION_WORD, AT(model_source), CD_NETWORK_SOURCES, NETWORK, "Where the network comes from (default: onnx for a path or NAME.onnx, else zoo, built in)"},
    {"network", 0, "NAME|FILE", CD_OPTION_TEXT, AT(network), NULL, NETWORK, "Name of the network (resnet-50 ...; --list-networks), or with --model-source onnx the ONNX file"},
    {"model-name", 0, "NAME|FILE", CD_OPTION_TEXT, AT(network), NULL, NETWORK, NULL},
    {"training", 0, NULL, CD_OPTION_FLAG, AT(training), NULL, NETWORK, "--list-ops, --list-tasks: an iteration of training: forward, backward, update"},
    {"batch-size", 0, "N", CD_OPTION_INT, AT(batch), "1..1048576", NETWORK, "Batch size (default: 1, or what the file says)"},
    {"input-size", 0, "N", CD_OPTION_INT, AT(input_size), "1..1048576", NETWORK, "Edge of the image or length of the sequence (default: as published)"},
    {"dim", 0, "NAME=N", CD_OPTION_TEXTS, AT(dim), NULL, NETWORK, "Value of a symbolic dimension of an ONNX file, or of a dimension of an input: 'ids[1]=128'; the branch of an If: if_3=then; the runs of a Loop: loop_1=10"},
    {"input", 0, "NAME", CD_OPTION_TEXTS, AT(input), NULL, NETWORK, "This input of an ONNX file is data; those that are not named are weights"},
    {"fusion-rules", 0, "FILE", CD_OPTION_FILE, AT(fusion_rules), "*.json", FUSION, "--list-tasks, --ops: only operators that these rules name are fused (fusion detect finds the rules of a back end)"},
    {"backend", 0, "NAME", CD_OPTION_WORD, AT(fusion_backend), CD_MAIN_PROFILE_FUSION_BACKENDS, FUSION, "detect: whose rules: our executor on a CPU or an OpenCL device, or whatever --command runs (default: cpu)"},
    {"command", 0, "COMMAND", CD_OPTION_TEXT, AT(fusion_command), NULL, FUSION, "detect, --backend command: this shell command runs the ONNX file $1 and prints seconds as its last line"},
    {"operators", 0, "LIST", CD_OPTION_TEXT, AT(operators), NULL, FUSION, "detect: operators to test in pairs, with commas between (default: those that networks have most, docs/reference/fusion.md)"},
    {"chains", 0, "LIST", CD_OPTION_TEXT, AT(chains), NULL, FUSION, "detect: chains to test, too: Conv+BatchNormalization+Relu,... (default: this one and the one of DepthwiseConv)"},
    {"alpha", 0, "X", CD_OPTION_TEXT, AT(alpha), NULL, FUSION, "detect: fused where more than X of the shorter time is saved (default: 0.5)"},
    {"confidence", 0, "X", CD_OPTION_TEXT, AT(confidence), NULL, FUSION, "detect: below it an answer is \"undecided\" (default: 0.99)"},
    {"repeats", 0, "N", CD_OPTION_INT, AT(repeats), "1..1000", FUSION, "detect: repeats of a test; up to four times as many where it is undecided (default: 7)"},
    {"channels", 0, "N", CD_OPTION_INT, AT(channels), "1..4096", FUSION, "detect: channels of the image that operators read; --input-size is its edge (default: 4, 256)"},
    {"planted", 0, "FILE", CD_OPTION_FILE, AT(planted), "*.json", FUSION, "detect: our executor fuses by these rules, to try the detection on it (default: by TVM's rules)"},
    {"seconds", 0, "N", CD_OPTION_INT, AT(seconds), "1..100000000", KERNELS, "sample: at most so long (default: no limit; --limit is one of samples in the file)"},
    {"target-error", 0, "PERCENT", CD_OPTION_INT, AT(target_error), "1..100", KERNELS, "sample: an error up to this is small; predict --measure: counts networks with one (default: 10)"},
    {"within", 0, "PERCENT", CD_OPTION_INT, AT(within), "1..100", KERNELS, "sample: until so many of the samples held out have a small error (default: 95)"},
    {"first", 0, "N", CD_OPTION_INT, AT(first), "1..1000000", KERNELS, "sample: draws around the networks' own sizes before the first training (default: 100)"},
    {"plain", 0, NULL, CD_OPTION_FLAG, AT(plain), NULL, KERNELS, "sample: draw around the networks' own sizes alone, not where the error is large"},
    {"range", 0, "PATTERN", CD_OPTION_TEXT, AT(range), NULL, TRACE, "trace: each range of such a name (NVTX, 'ProfilerStep*') is a repeat of its own (default: each file is one)"},
    {"map", 0, "FILE", CD_OPTION_FILE, AT(map), "*.csv|*.json", TRACE, "trace: which operators the kernels are: CSV with columns kernel (a pattern) and operator, or Habana's graph (JSON)"},
    {"save-graph", 0, "FILE", CD_OPTION_OUTPUT, AT(save_graph), "*.json", TRACE, "trace: write the launches as a network with their times, for cdmpp-replay --graph"},
    {"labels", 0, "FILE", CD_OPTION_OUTPUT, AT(labels), "*.csv", TRACE, "trace: write the operators whose sizes are known as a table for cdmpp-train"},
    {"out", 'o', "FILE", CD_OPTION_OUTPUT, AT(out), NULL, STORE, "Records: the file that grows; what it has already is not measured again. Store: write there what is exported (default: standard output); wrap: what it tells"},
};

/* The first row whose flag is given or whose word comes first. */
typedef struct {
    const char *name;           /* a word, or the option that is its flag */
    long flag;                  /* offset of a bool; -1: it is a word */
    cdmpp_status (*check)(const cd_main_profile *o, cdmpp_err *err); /* NULL: nothing to check */
    cdmpp_status (*run)(cd_main_profile *o, cdmpp_err *err);
} mode;
static const mode modes[] = {
    {"records", -1, cd_main_profile_records_check, cd_main_profile_records},
    {"draw", -1, cd_main_profile_draw_check, cd_main_profile_draw},
    {"sweep", -1, cd_main_profile_sweep_check, cd_main_profile_sweep},
    {"corun", -1, cd_main_profile_corun_check, cd_main_profile_corun},
    {"curves", -1, cd_main_profile_curves_check, cd_main_profile_curves},
    {"kernels", -1, cd_main_profile_kernels_check, cd_main_profile_kernels},
    {"fusion", -1, cd_main_profile_fusion_check, cd_main_profile_fusion},
    {"store", -1, cd_main_profile_store_check, cd_main_profile_store},
    {"--list-networks", (long)AT(list_networks), NULL, cd_main_profile_networks},
    {"--list-ops", (long)AT(list_ops), cd_main_profile_ops_check, cd_main_profile_ops},
    {"--list-tasks", (long)AT(list_tasks), cd_main_profile_tasks_check, cd_main_profile_tasks},
    {"--ops", (long)AT(run_ops), cd_main_profile_run_check, cd_main_profile_run},
    {"--describe-device", (long)AT(describe), cd_main_profile_describe_check, cd_main_profile_describe},
    {"--worker", (long)AT(worker), cd_main_profile_worker_check, cd_main_profile_worker},
    {"wrap", -1, cd_main_profile_wrap_check, cd_main_profile_wrap},
    {"trace", -1, cd_main_profile_trace_check, cd_main_profile_trace},
};
enum { N_MODE = sizeof modes / sizeof *modes };

static const mode *mode_of(const cd_main_profile *o, const char *word) {
    for (const mode *m = modes; m < modes + N_MODE; m++)
        if (m->flag >= 0 ? *((const bool *)o + m->flag) : word && !strcmp(m->name, word)) return m;
    return NULL;
}

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    cd_main_profile *o = to;
    const char *word = said->operand.n ? said->operand.v[0] : NULL;
    const mode *m = mode_of(o, word);
    if (!m) {
        cd_buf b = {0};
        const char *name[N_MODE];
        for (size_t i = 0; i < N_MODE; i++) cd_buf_putf(&b, "%s%s", i ? ", " : "", name[i] = modes[i].name);
        const char *near = word ? cd_did_you_mean_nearest(word, name, N_MODE) : NULL;
        (void)CD_FAIL(err, EUSAGE, "expected what to do (%s), found '%.60s'%s%s%s", b.p ? b.p : "", word ? word : "", near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
        cd_buf_free(&b);
        return CDMPP_EUSAGE;
    }
    o->operand = said->operand;
    if (m->flag < 0) o->operand.v++, o->operand.n--; /* without the mode's word */
    return m->check ? m->check(o, err) : CDMPP_OK;
}

static const char *const use[] = {"records --tasks FILE --out OUT.json [OPTION...] LOG|FOLDER...",
                                  "records --tasks FILE --dry-run|--emit-source [OPTION...] LOG|FOLDER...",
                                  "draw --tasks FILE [--trials N] [--seed N] [--target TARGET] [--out FILE]",
                                  "sweep --tasks FILE [--workload KEY] [--factor LIST] [--out CSV] [--plot SVG] [OPTION...] LOG...",
                                  "corun --tasks FILE [--limit N] [--threads N] [--rounds N] [--out CSV] [OPTION...] LOG...",
                                  "corun --tasks FILE --group N [--trials N] [--seed N] [--pairs CSV] [OPTION...] LOG...",
                                  "curves --network NAME|FILE --sizes batch=N,N,...|input=N,N,... [--trials N] [--out TSV] [OPTION...] [LOG...]",
                                  "fusion detect [--backend cpu|opencl|command] [--command COMMAND] [--operators LIST] [--out RULES.json] [OPTION...]",
                                  "kernels sample --network NAME,NAME,... --out SAMPLES.jsonl [--seconds N] [--limit N] [OPTION...]",
                                  "kernels predict --network NAME,NAME,... [--measure] [OPTION...] SAMPLES.jsonl",
                                  "store import|list|best|near|export|stats|tables --store FILE [OPTION...] [LOG|TABLE|TRACE|FOLDER...]",
                                  "--list-ops --network NAME|FILE [OPTION...]",
                                  "--list-tasks --network NAME|FILE [--target TARGET] [--layout LAYOUT] [--out-tasks FILE]",
                                  "--describe-device [--measure] [cpu|opencl[:NAME]|cuda[:NUMBER]...]",
                                  "--describe-device --from-records --tasks FILE LOG|FOLDER...",
                                  "records --host USER@BOARD... --tasks FILE --out OUT.json [OPTION...] LOG|FOLDER...",
                                  "--ops --network NAME|FILE [--trials N] [--cover PERCENT] [--out FILE] [OPTION...] [LOG...]",
                                  "wrap [--json] [--out FILE] -- COMMAND [ARGUMENT...]",
                                  "trace [--range PATTERN] [--map CSV] [--network NAME|FILE] [--save-graph FILE] [--labels CSV] FILE...",
                                  NULL};
static const char *const example[] = {
    "Measure on one thread what others have measured elsewhere", "cdmpp-profile records --tasks network_info --threads 1 --target 'llvm -model=here' --out here.json measure_records/",
    "The C code of the first ten", "cdmpp-profile records --tasks network_info --emit-source --dialect c --limit 10 measure_records/",
    "Which records can be lowered", "cdmpp-profile records --dry-run --tasks network_info measure_records/",
    "Keep what others measured, and ask for the best schedules of a task",
    "cdmpp-profile store import --store all.db --tasks network_info measure_records/\n"
    "cdmpp-profile store best --store all.db --device v100 --workload '[\"9f8e...\", [1, 64, 56, 56]]'",
    "Shapes and operations of an ONNX file", "cdmpp-profile --list-ops --model-source onnx --network net.onnx --batch-size 8", NULL};
static const char *const see[] = {"cdmpp-extract(1)", "cdmpp-train(1)", NULL};
static const cd_command self = {
    "cdmpp-profile", "measure tensor programs", use,
    "Makes measure records in the format of TVM's auto_scheduler on this machine.\n\n"
    "records: compiles and measures the programs of measure records, of any tuner and machine, and appends a record of each to --out. "
    "\"-\" is standard input. A program that crashes, hangs, does not compile or is wrong is a record with its error number; a line that cannot be used is "
    "counted and named. The others are done, and the exit status is 3. A run that was stopped or killed goes on with the same command.\n\n"
    "draw: writes records of random schedules of all tasks, by the rules of TVM's auto_scheduler; they have no time yet.\n\n"
    "sweep: takes the fastest record of a workload and measures variants of it that differ in one thing each: a tile length, the "
    "order of two loops, where a stage is computed, what is fused, unrolling, vectors, threads, a cache that others use or that is cold.\n\n"
    "corun: takes the fastest record of each of the first workloads (--limit, default 6) and measures all pairs of them alone and at the same "
    "time, on different processors and on the same: how much slower does each make the other? With --group it draws groups of two to four of the programs, measures them, and prints what "
    "the pairs predict beside that.\n\n"
    "curves: measures the operators of a network at several sizes and writes a table of time against size, which store import reads.\n\n"
    "fusion detect: measures test networks of two or more operators on a back end and tells which operators it runs as one program, as a table and with "
    "--out as a file of rules for --fusion-rules.\n\n"
    "kernels sample: measures groups of operators of networks, with other sizes, where predictions of their times are wrong, until they are not. "
    "kernels predict: the sum of predicted times of a network's groups.\n\n"
    "store: keeps measurements in one SQLite file that many may write at once. import reads logs, tables of operators, "
    "Nsight Systems' exports and PyTorch's traces; list shows workloads, best the fastest measurements, near those of the "
    "nearest shapes of the same operator; export writes records, CSV or JSON; stats counts; tables shows which factors of which operators were measured on what, and what fills empty cells.\n\n"
    "wrap: runs a program and tells on standard error its time, resident memory, and heap by a library that is loaded into it; "
    "the exit status is the program's.\n\n"
    "trace: reads what a profiler wrote (nvprof, Nsight Systems, Nsight Compute, cutlass_profiler, PyTorch's profiler, Habana's), several files as repeats "
    "of one run, and tells the time of each kernel and operator, how busy the device was, and the gaps.",
    table, sizeof table / sizeof *table, group, "", example, NULL, see, NULL, check};

/* ---- shared by the modes ---- */
cdmpp_status cd_main_profile_logs_check(const cd_main_profile *o, const char *none, cdmpp_err *err) {
    if (!o->task.n) return CD_FAIL(err, EUSAGE, "--tasks is missing");
    return o->operand.n ? CDMPP_OK : CD_FAIL(err, EUSAGE, "%s", none);
}

cdmpp_status cd_main_profile_tasks_load(const cd_main_profile *o, cd_task_registry **out, cdmpp_err *err) {
    CD_TRY(cd_task_registry_new(out, err));
    return cd_task_registry_load_all(*out, o->task.v, o->task.n, o->log, err);
}

cd_measure_options cd_main_profile_measure_options(const cd_main_profile *o) {
    return (cd_measure_options){.device = o->device, .isa = o->isa, .flags = o->cflags, .cache = o->cache, .cache_bytes = (uint64_t)o->cache_mb << 20, .pin = !o->no_pin,
                                .build_limit_s = o->build_timeout_s, .run_limit_s = o->timeout_s, .memory_bytes = (uint64_t)o->memory_mb << 20,
                                .timing = {.budget_s = o->budget_ms * 1e-3, .cold = o->cold, .cool = o->cool}, .stop = o->stop};
}

cd_hardware cd_main_profile_hardware(const char *target) {
    const bool gpu = cd_target_is_gpu((cd_str){target, strlen(target)});
    return cd_target_hardware(gpu, gpu ? 0 : cd_backend_cpu_threads(target), 64);
}

static void on_note(void *ctx, const char *text) { cd_log_put(((cd_main_profile *)ctx)->log, CD_LOG_WARNING, "%s", text); }
int cd_main_profile_source(const cd_main_profile *o) {
    return o->network && cd_network_source_is_file(o->network) ? CD_NETWORK_SOURCE_ONNX : o->model_source;
}

static void on_bad(void *ctx, const cdmpp_err *why) {
    cd_main_profile *o = ctx;
    o->bad++;
    cd_log_err(o->log, CD_LOG_WARNING, why);
}
cd_record_listener cd_main_profile_listener(cd_main_profile *o) { return (cd_record_listener){on_bad, on_note, o}; }

cdmpp_status cd_main_profile_print(const cd_main_profile *o, const char *schema, cd_buf *b, cdmpp_err *err) {
    return cd_command_result(o->json, schema, "cdmpp-profile", o->log, b, err);
}

cdmpp_status cd_main_profile_write(const char *path, cd_buf *b, cdmpp_err *err) {
    if (!path) return cd_command_print(b, err);
    cdmpp_status st = CDMPP_OK;
    if (b->oom) st = CD_FAIL(err, ENOMEM, "output");
    else st = cd_file_write(path, b->p ? b->p : "", b->n, err);
    cd_buf_free(b);
    return st;
}

/* Exit status: of an error its own, 3 where items failed, else that of a wrapped program. */
static cdmpp_status run(cd_command_run *r, void *options, cdmpp_err *err) {
    cd_main_profile *o = options;
    o->json = r->said.json;
    o->log = &r->log;
    o->stop = r->stop;
    const mode *m = mode_of(o, r->said.operand.n ? r->said.operand.v[0] : NULL);
    cdmpp_status st = o->target && m->run != cd_main_profile_store ? cd_target_check(o->target, o->log, err) : CDMPP_OK; /* of the store it is a filter */
    if (!st) st = m->run(o, err);
    r->exit_code = o->bad ? 3 : o->exit_code;
    return st;
}

int main(int argc, char **argv) {
    cd_main_profile o = {.dialect = -1, .csv = CD_MAIN_PROFILE_NO_CSV};
    return cd_command_main(&self, argc, argv, &o, run);
}
