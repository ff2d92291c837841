/* cdmpp-tune -- schedules searched for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/text.h"
#include "predictor/cmd/tune/main_tune.h"
#include "profiler/host/host.h"

#define AT(member) offsetof(cd_main_tune, member)
enum { WHAT, SEARCH, END, KEEP, HOW, REPLAY };
static const char *const group[] = {"What", "Search", "When it ends", "What is kept", "Measuring", "Replays"};
static const cd_option table[] = {
    {"model-source", 0, "SOURCE", CD_OPTION_WORD, AT(model_source), CD_MAIN_TUNE_SOURCES, WHAT, "Where the network comes from (default: zoo, built in)"},
    {"model-name", 0, "NAME", CD_OPTION_TEXT, AT(model_name), NULL, WHAT, "Name of the network (resnet-50 ...), or the ONNX file: all its tasks are tuned"},
    {"batch-size", 0, "N", CD_OPTION_INT, AT(batch), "1..1048576", WHAT, "Batch size of the network (default: 1, or what the file says)"},
    {"input-size", 0, "N", CD_OPTION_INT, AT(input_size), "1..1048576", WHAT, "Edge of the image or length of the sequence (default: as published)"},
    {"dim", 0, "NAME=N", CD_OPTION_TEXTS, AT(dim), NULL, WHAT, "Value of a symbolic dimension of an ONNX file, or of a dimension of an input: 'ids[1]=128'"},
    {"input", 0, "NAME", CD_OPTION_TEXTS, AT(input), NULL, WHAT, "This input of an ONNX file is data; those that are not named are weights"},
    {"layout", 0, "LAYOUT", CD_OPTION_TEXT, AT(layout), NULL, WHAT, "Layout of the network's images: auto, nchw or nhwc (auto: nhwc for CPUs)"},
    {"tasks", 0, "FILE", CD_OPTION_FILES, AT(tasks), NULL, WHAT, "Task definitions to tune: all_tasks.pkl, *.task.pkl, our text form, or a folder of these"},
    {"task", 0, "KEY|#I", CD_OPTION_TEXTS, AT(task), NULL, WHAT, "Only this task: its workload key, what that begins with, or its number from 0"},
    {"network", 0, "NAME", CD_OPTION_TEXT, AT(network), NULL, WHAT, "Of --tasks: the tasks of this network, with its weights"},
    {"target", 0, "TARGET", CD_OPTION_TEXT, AT(target), NULL, WHAT, "Target of the programs: llvm, cuda, opencl, with TVM's options (default: the task's own, else llvm)"},
    {"threads", 0, "N", CD_OPTION_INT, AT(threads), "1..1024", WHAT, "Threads of a program on a CPU, its cores in the records too (default: -num-cores of the target, else all CPUs)"},
    {"tune", 0, "[BOOL]", CD_OPTION_WORD, AT(tune), "false|true", SEARCH, "Search (default); false: only check and measure the untuned programs"},
    {"tuner", 0, "NAME", CD_OPTION_WORD, AT(tuner), CD_TUNERS, SEARCH, "Who searches (default: cdmpp with --model, else ansor); --list-tuners tells about them"},
    {"model", 0, "FILE", CD_OPTION_FILE, AT(model), "*.cdmpp", SEARCH, "Cost model of cdmpp-train, for tuners that start from one"},
    {"device", 0, "NAME", CD_OPTION_TEXT, AT(device), NULL, SEARCH, "Device of the model (default: -model of the target)"},
    {"nearest", 0, NULL, CD_OPTION_FLAG, AT(nearest), NULL, SEARCH, "A device that the model does not know is taken for its nearest"},
    {"frozen", 0, NULL, CD_OPTION_FLAG, AT(frozen), NULL, SEARCH, "The model is not corrected by what is measured"},
    {"seed", 0, "N", CD_OPTION_INT, AT(seed), "0..2000000000", SEARCH, "Of all random choices (default: 0)"},
    {"population", 0, "N", CD_OPTION_INT, AT(population), "2..1000000", SEARCH, "Candidates that a search keeps at a time (default: its own)"},
    {"generations", 0, "N", CD_OPTION_INT, AT(generations), "1..100000", SEARCH, "Generations between two measurements (default: the search's own)"},
    {"epsilon", 0, "SHARE", CD_OPTION_TEXT, AT(epsilon), NULL, SEARCH, "Share of random candidates, 0 to 1 (default: the search's own)"},
    {"compare", 0, "A,B,...", CD_OPTION_TEXT, AT(compare), NULL, SEARCH, "Run several tuners with the same budget, logs OUT.A.json, OUT.B.json ..., and print their best at --at"},
    {"at", 0, "N,N,...", CD_OPTION_TEXT, AT(at), NULL, SEARCH, "Numbers of trials of a task to tell the best at (default: 10,50,100,300)"},
    {"trials", 0, "N", CD_OPTION_INT, AT(trials), "1..100000000", END, "Measurements of all tasks together, as TVM's num_measure_trials; those in --out count (default: 64 of each task)"},
    {"trials-per-task", 0, "N", CD_OPTION_INT, AT(trials_per_task), "1..100000000", END, "At most so many of one task"},
    {"per-round", 0, "N", CD_OPTION_INT, AT(per_round), "1..10000", END, "Candidates that are asked for at a time (default: 16, fewer where trials are few)"},
    {"seconds", 0, "N", CD_OPTION_INT, AT(seconds), "1..100000000", END, "No round begins later than this"},
    {"early-stopping", 0, "N", CD_OPTION_INT, AT(early_stopping), "1..100000000", END, "Leave a task after so many trials without a better one"},
    {"runs", 0, "N", CD_OPTION_INT, AT(runs), "1..2000000000", END, "How often it will run: stop when a round costs more time than it is expected to save"},
    {"min-gain", 0, "PERCENT", CD_OPTION_TEXT, AT(min_gain), NULL, END, "Stop when the later half of the trials made it faster by less than this"},
    {"out", 'o', "FILE", CD_OPTION_FILE, AT(out), "*.json", KEEP, "The log that grows: records of TVM's auto_scheduler. What it has already is told to the tuner and counts"},
    {"warm", 0, "FILE", CD_OPTION_FILES, AT(warm), NULL, KEEP, "Logs or a store (*.db): the best of the same task, or of the nearest shapes of the same operator, are tried first"},
    {"best", 0, "FILE", CD_OPTION_FILE, AT(best), "*.json", KEEP, "Write the best record of each task there, for apply_history_best"},
    {"emit", 0, "LANGUAGE", CD_OPTION_WORD, AT(emit), CD_MAIN_TUNE_EMITS, KEEP, "Write the best program of each task as source with a host program that runs and times it"},
    {"emit-dir", 0, "FOLDER", CD_OPTION_FOLDER, AT(emit_dir), NULL, KEEP, "Where (default: .)"},
    {"stats", 0, "FILE", CD_OPTION_FILE, AT(stats), "*.jsonl", KEEP, "Also write a JSON object of every round"},
    {"curves", 0, "FILE", CD_OPTION_FILE, AT(curves), "*.csv", KEEP, "Also write every trial, in the layout of OpBench's op_costs"},
    {"jobs", 'j', "N", CD_OPTION_INT, AT(jobs), "1..1024", HOW, "Compiler processes at a time (default: one per CPU)"},
    {"executor", 0, "NAME", CD_OPTION_WORD, AT(executor), "default", HOW, "How a network runs: default, one task after the other"},
    {"isa", 0, "SET", CD_OPTION_TEXT, AT(isa), CD_ISAS, HOW, "Instructions that C code may use (default: by -mcpu of the target, else native)"},
    {"cflags", 0, "FLAGS", CD_OPTION_TEXT, AT(cflags), NULL, HOW, "More flags for the C compiler ($CC, else cc), behind the usual ones"},
    {"gpu", 0, "NAME", CD_OPTION_TEXT, AT(opencl_device), NULL, HOW, "Which GPU, as its back end counts them (default: the first)"},
    {"budget-ms", 0, "N", CD_OPTION_INT, AT(budget_ms), "1..1000000", HOW, "At most so long for the repeats of one program (default: 100)"},
    {"timeout", 0, "S", CD_OPTION_INT, AT(timeout_s), "1..100000", HOW, "Seconds until a program that runs is given up (default: 10)"},
    {"build-timeout", 0, "S", CD_OPTION_INT, AT(build_timeout_s), "1..100000", HOW, "Seconds until a compiler is given up (default: 30)"},
    {"memory-mb", 0, "N", CD_OPTION_INT, AT(memory_mb), "16..100000000", HOW, "Mebibytes that a program may have (default: no limit)"},
    {"no-pin", 0, NULL, CD_OPTION_FLAG, AT(no_pin), NULL, HOW, "Do not keep programs on the last CPUs and compilers on the others"},
    {"check", 0, NULL, CD_OPTION_FLAG, AT(check), NULL, HOW, "Compare the results of every candidate with those of its task, not only of the best one"},
    {"cache", 0, "FOLDER", CD_OPTION_FOLDER, AT(cache), NULL, HOW, "Where compiled programs are kept; empty: nowhere (default: $XDG_CACHE_HOME/cdmpp, ~/.cache/cdmpp)"},
    {"cache-mb", 0, "N", CD_OPTION_INT, AT(cache_mb), "1..100000000", HOW, "Mebibytes of programs that are kept, those used least recently go (default: 1024)"},
    {"dry-run", 0, NULL, CD_OPTION_FLAG, AT(dry_run), NULL, WHAT, "Only say what would be tuned"},
    {"replay", 0, NULL, CD_OPTION_FLAG, AT(replay), NULL, REPLAY, "Measure nothing: simulate tuners on the records of logs, --trials of each task (default: 300), --per-round at a time (default: 10)"},
    {"seeds", 0, "N", CD_OPTION_INT, AT(seeds), "1..100000", REPLAY, "Runs of each tuner and task, with seeds from --seed on (default: 5)"},
    {"min", 0, "N", CD_OPTION_INT, AT(min), "1..1000000", REPLAY, "Leave out tasks with fewer different programs (default: 32)"},
    {"held-out", 0, "[BOOL]", CD_OPTION_WORD, AT(held_out), "false|true", REPLAY, "Only tasks that --model was not trained on (default); false: all, which says nothing about new tasks"},
    {"data", 0, "FILE", CD_OPTION_FILES, AT(data), "*.h5", REPLAY, "The data set that the model was trained on, where it is not at the path that the model names"},
    {"svg", 0, "FILE", CD_OPTION_FILE, AT(svg), "*.svg", REPLAY, "Draw best found over trials and over simulated seconds"},
    {"opbench", 0, "FOLDER", CD_OPTION_FOLDER, AT(opbench), NULL, REPLAY, "Also write OpBench's partial_res and op_costs files there"},
    {"list-tuners", 0, NULL, CD_OPTION_FLAG, AT(list_tuners), NULL, SEARCH, "List the tuners"},
    {"space-dump", 0, NULL, CD_OPTION_FLAG, AT(space_dump), NULL, WHAT, "Print the choices that make up the space of each task, and its size, as JSON"},
};

/* The first row whose flag is given; the last one is for none. */
typedef struct {
    long flag;                  /* offset of a bool; -1: has none */
    cdmpp_status (*check)(const cd_main_tune *o, cdmpp_err *err);
    cdmpp_status (*run)(cd_main_tune *o, cdmpp_err *err);
} mode;
static const mode modes[] = {
    {(long)AT(list_tuners), cd_main_tune_tuners_check, cd_main_tune_tuners},
    {(long)AT(space_dump), cd_main_tune_space_check, cd_main_tune_space},
    {(long)AT(replay), cd_main_tune_replay_check, cd_main_tune_replay},
    {-1, cd_main_tune_live_check, cd_main_tune_live_mode},
};

static const mode *mode_of(const cd_main_tune *o) {
    const mode *m = modes;
    while (m->flag >= 0 && !*((const bool *)o + m->flag)) m++;
    return m;
}

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    cd_main_tune *o = to;
    o->operand = said->operand;
    return mode_of(o)->check(o, err);
}

/* ---- what the modes share ---- */
bool cd_main_tune_word(const char *list, int i, char *out, size_t cap) {
    const char *s = list;
    for (; i > 0 && s; i--)
        if ((s = strchr(s, '|'))) s++;
    if (!s) return false;
    const size_t n = strcspn(s, "|");
    if (n >= cap) return false;
    memcpy(out, s, n);
    out[n] = 0;
    return true;
}

cdmpp_status cd_main_tune_real(const char *option, const char *text, double lo, double hi, double *out, cdmpp_err *err) {
    char *end;
    const double v = strtod(text, &end);
    if (end == text || *end || !(v >= lo && v <= hi)) return CD_FAIL(err, EUSAGE, "--%s: expected a number in %g..%g, found '%.60s'", option, lo, hi, text);
    *out = v;
    return CDMPP_OK;
}

cdmpp_status cd_main_tune_tuner(const cd_main_tune *o, const char *fallback, const cd_tune_tuner **out, cdmpp_err *err) {
    char name[32];
    if (o->tuner < 0 || !cd_main_tune_word(CD_TUNERS, o->tuner, name, sizeof name)) {
        const size_t n = strlen(fallback);
        memcpy(name, fallback, n < sizeof name ? n + 1 : 0);
    }
    *out = cd_tune_tuner_find(name);
    return *out ? CDMPP_OK : CD_FAIL(err, EUSAGE, "--tuner: '%.40s' is not in this build; --list-tuners lists those that are", name);
}

/* ---- what it says about itself ---- */
static const char *const use[] = {"--model-name NAME|FILE [--target TARGET] [--tuner NAME] [--trials N] --out LOG [OPTION...]",
                                  "--tasks FILE [--task KEY|#I] [--target TARGET] [--tuner NAME] [--trials N] --out LOG [OPTION...]",
                                  "--compare A,B,... [--at N,N,...] --tasks FILE --out LOG [OPTION...]",
                                  "--space-dump --tasks FILE [--task KEY|#I] [--target TARGET]",
                                  "--replay [--compare A,B,...] [--at N,N,...] --tasks FILE [--model FILE] [OPTION...] LOG|FOLDER...",
                                  "--list-tuners",
                                  NULL};
static const char *const example[] = {
    "Tune a network with a model of this processor, 1000 measurements", "cdmpp-tune --model-name resnet-18 --model zen.cdmpp --trials 1000 --out r18.json --best r18.best.json",
    "Go on with it until a round costs more than it saves in a million runs", "cdmpp-tune --model-name resnet-18 --model zen.cdmpp --trials 100000 --runs 1000000 --out r18.json",
    "One task on one thread, and its code", "cdmpp-tune --tasks net.tasks.json --task '#3' --threads 1 --trials 100 --out t3.json --emit c --emit-dir t3",
    "Two tuners against each other", "cdmpp-tune --compare random,ansor --at 10,50,100 --trials 100 --tasks net.tasks.json --task '#3' --out cmp.json",
    "How good would they have been on what was measured", "cdmpp-tune --replay --compare random,cdmpp --model v100.cdmpp --tasks network_info measure_records/v100", NULL};
static const char *const see[] = {"cdmpp-profile(1)", "cdmpp-train(1)", "cdmpp-predict(1)", NULL};
static const cd_command self = {
    "cdmpp-tune", "search fast schedules", use,
    "Searches the schedules of tasks or of a whole network: a tuner asks for candidates, they are compiled and measured on this "
    "machine, and each is appended to --out as a record of TVM's auto_scheduler at once. A run that was stopped or killed goes on "
    "with the same command: nothing is measured twice.\n\n"
    "Trials of a network go where weight x latency is expected to fall most, after a first round for every task. At the end the best "
    "program of each task is compared with the reference on its real shapes and measured by turns with the untuned one; a best one that is wrong or "
    "slower is refused and the untuned one kept. The exit status is 3 when some task has no program that runs.",
    table, sizeof table / sizeof *table, group, "", example, NULL, see, NULL, check};

static volatile sig_atomic_t stop;
/* The next candidate is not begun; the second signal kills. */
static void on_signal(int sig) { stop = sig; }

static void take_signals(void) {
    struct sigaction act = {.sa_handler = on_signal};
    act.sa_flags = (int)SA_RESETHAND; /* and no SA_RESTART */
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv) {
    cd_main_tune o = {.tune = 1, .held_out = 1, .tuner = -1, .emit = CD_MAIN_TUNE_NO_EMIT, .stop = &stop};
    cdmpp_err err = {0};
    cd_command_run f;
    int code;
    if (!cd_command_begin(&f, &self, argc, argv, &o, &code)) return code;
    o.json = f.said.json;
    o.log = &f.log;
    take_signals();
    cdmpp_status st = mode_of(&o)->run(&o, &err);
    if ((fflush(stdout) != 0 || ferror(stdout)) && !st) st = CD_FAIL(&err, EIO, "cannot write to standard output");
    if (st) cd_log_err(&f.log, CD_LOG_ERROR, &err);
    cd_command_end(&f);
    return st ? cdmpp_exit_code(st) : o.bad ? 3 : 0;
}
