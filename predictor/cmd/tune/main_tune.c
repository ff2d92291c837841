/* cdmpp-tune: its options, and which of them go together. The work is done by predictor/tune. */
#include <string.h>

#include "predictor/cmd/tune/main_tune.h"
#include "predictor/score/score.h"
#include "predictor/network/network.h"
#include "profiler/network/source/source.h"

typedef cd_main_tune options;

#define AT(member) offsetof(options, member)
enum { WHAT, SEARCH, END, KEEP, HOW, HOSTS, REPLAY };
static const char *const group[] = {"What",      "Search",      "When it ends", "What is kept",
                                    "Measuring", "Other hosts", "Replays"};
static const cd_option table[] = {
    {"network", 0, "NAME|FILE", CD_OPTION_TEXT, AT(network), NULL, WHAT,
     "The network: a name of the zoo (resnet-50 ...) or an ONNX file, all its tasks are tuned; "
     "with --tasks one that those files name, with its weights"},
    /* older name; a file only with the next one */
    {"model-name", 0, "NAME", CD_OPTION_TEXT, AT(what.network), NULL, WHAT, NULL},
    {"model-source", 0, "SOURCE", CD_OPTION_WORD, AT(what.source), CD_NETWORK_SOURCES, WHAT, NULL},
    {"batch", 'b', "N", CD_OPTION_INT, AT(what.batch), "1..1048576", WHAT,
     "Batch size of the network (default: 1, or what the file says)"},
    /* older name */
    {"batch-size", 0, "N", CD_OPTION_INT, AT(what.batch), "1..1048576", WHAT, NULL},
    {"input-size", 0, "N", CD_OPTION_INT, AT(what.input_size), "1..1048576", WHAT,
     "Edge of the image or length of the sequence (default: as published)"},
    {"dim", 0, "NAME=N", CD_OPTION_TEXTS, AT(what.dim), NULL, WHAT,
     "Value of a symbolic dimension of an ONNX file, or of a dimension of an input: 'ids[1]=128'; "
     "the branch of an If: if_3=then; the runs of a Loop: loop_1=10; with --executor vm "
     "seq=16..512 (five sizes), seq=16..512:9 (nine)"},
    {"input", 0, "NAME", CD_OPTION_TEXTS, AT(what.input), NULL, WHAT,
     "This input of an ONNX file is data; those that are not named are weights"},
    {"layout", 0, "LAYOUT", CD_OPTION_TEXT, AT(what.layout), NULL, WHAT,
     "Layout of the network's images: auto, nchw or nhwc (auto: nhwc for CPUs)"},
    {"tasks", 0, "FILE", CD_OPTION_FILES, AT(what.file), NULL, WHAT,
     "Task definitions to tune: all_tasks.pkl, *.task.pkl, our text form, a text that TVM printed "
     "(*.out), or a folder of these"},
    {"task", 0, "KEY|#I", CD_OPTION_TEXTS, AT(what.only), NULL, WHAT,
     "Only this task: its workload key, what that begins with, or its number from 0"},
    {"target", 0, "TARGET", CD_OPTION_TEXT, AT(what.target), NULL, WHAT,
     "Target of the programs: llvm, cuda, opencl, with TVM's options (default: the task's own, "
     "else llvm)"},
    {"threads", 0, "N", CD_OPTION_INT, AT(what.threads), "1..1024", WHAT,
     "Threads of a program on a CPU, its cores in the records too (default: -num-cores of the "
     "target, else all CPUs of what measures)"},
    {"tune", 0, "[BOOL]", CD_OPTION_WORD, AT(tune), "false|true", SEARCH,
     "Search (default); false: only check and measure the untuned programs"},
    {"tuner", 0, "NAME", CD_OPTION_WORD, AT(tuner), CD_TUNERS, SEARCH,
     "Who searches (default: cdmpp with a cost model, else ansor); --list-tuners tells about them"},
    {"cost-model", 0, "FILE", CD_OPTION_FILE, AT(model), "*.cdmpp", SEARCH,
     "Cost model of cdmpp-train, for tuners that start from one (default: the installed default "
     "model, for a GPU here-gpu.cdmpp of calibrate, else that of GPUs)"},
    {"model", 0, "FILE", CD_OPTION_FILE, AT(model), "*.cdmpp", SEARCH, NULL}, /* older name */
    {"device", 0, "NAME", CD_OPTION_TEXT, AT(session.device), NULL, SEARCH,
     "Device of the model (default: -model of the target)"},
    {"nearest", 0, NULL, CD_OPTION_FLAG, AT(session.nearest), NULL, SEARCH,
     "A device that the model does not know is taken for its nearest"},
    {"frozen", 0, NULL, CD_OPTION_FLAG, AT(session.frozen), NULL, SEARCH,
     "The model is not corrected by what is measured"},
    {"seed", 0, "N", CD_OPTION_INT, AT(session.seed), "0..2000000000", SEARCH,
     "Of all random choices (default: 0)"},
    {"population", 0, "N", CD_OPTION_INT, AT(session.population), "2..1000000", SEARCH,
     "Candidates that a search keeps at a time (default: its own)"},
    {"generations", 0, "N", CD_OPTION_INT, AT(session.generations), "1..100000", SEARCH,
     "Generations between two measurements (default: the search's own)"},
    {"epsilon", 0, "SHARE", CD_OPTION_TEXT, AT(epsilon), NULL, SEARCH,
     "Share of random candidates, 0 to 1 (default: the search's own)"},
    {"machine", 0, "NAME", CD_OPTION_TEXT, AT(machine), NULL, SEARCH,
     "Tuners of templates: caches and vectors of this described CPU (default: of this machine)"},
    {"fallback", 0, "TUNER", CD_OPTION_WORD, AT(fallback), CD_TUNERS, SEARCH,
     "Tuners of templates: who searches the tasks that no template fits (default: nobody)"},
    {"compare", 0, "A,B,...", CD_OPTION_TEXT, AT(compare), NULL, SEARCH,
     "Run several tuners with the same budget, logs OUT.A.json, OUT.B.json ..., and print their "
     "best at --at"},
    {"at", 0, "N,N,...", CD_OPTION_TEXT, AT(at), NULL, SEARCH,
     "Numbers of trials of a task to tell the best at (default: 10,50,100,300)"},
    {"trials", 0, "N", CD_OPTION_INT, AT(session.trials), "1..100000000", END,
     "Measurements of all tasks together, as TVM's num_measure_trials; those in --out count "
     "(default: 64 of each task). calibrate: at most so many programs"},
    {"trials-per-task", 0, "N", CD_OPTION_INT, AT(session.trials_per_task), "1..100000000", END,
     "At most so many of one task"},
    {"per-round", 0, "N", CD_OPTION_INT, AT(session.per_round), "1..10000", END,
     "Candidates that are asked for at a time (default: 16, fewer where trials are few)"},
    {"seconds", 0, "N", CD_OPTION_INT, AT(session.seconds), "1..100000000", END,
     "No round begins later than this. calibrate: the whole run (default: 300, 15 to 3600)"},
    {"early-stopping", 0, "N", CD_OPTION_INT, AT(session.early_stopping), "1..100000000", END,
     "Leave a task after so many trials without a better one"},
    {"runs", 0, "N", CD_OPTION_INT, AT(session.runs), "1..2000000000", END,
     "How often it will run: stop when a round costs more time than it is expected to save"},
    {"min-gain", 0, "PERCENT", CD_OPTION_TEXT, AT(min_gain), NULL, END,
     "Stop when the later half of the trials made it faster by less than this"},
    {"out", 'o', "FILE", CD_OPTION_OUTPUT, AT(out), "*.json", KEEP,
     "The log that grows: records of TVM's auto_scheduler. What it has already is told to the "
     "tuner and counts. calibrate: the model (default: of this machine, in "
     "$XDG_DATA_HOME/cdmpp/models, ~/.local/share/cdmpp/models); its log is beside it, "
     "*.records.json"},
    {"warm", 0, "FILE", CD_OPTION_FILES, AT(session.warm), NULL, KEEP,
     "Logs or a store (*.db): the best of the same task, or of the nearest shapes of the same "
     "operator, are tried first"},
    {"best", 0, "FILE", CD_OPTION_OUTPUT, AT(best), "*.json", KEEP,
     "Write the best record of each task there, for apply_history_best"},
    {"emit", 0, "LANGUAGE", CD_OPTION_WORD, AT(emit), CD_DIALECTS, KEEP,
     "Write the best program of each task as source with a host program that runs and times it"},
    {"emit-dir", 0, "FOLDER", CD_OPTION_FOLDER, AT(emit_dir), NULL, KEEP, "Where (default: .)"},
    {"stats", 0, "FILE", CD_OPTION_OUTPUT, AT(session.stats), "*.jsonl", KEEP,
     "Also write a JSON object of every round"},
    {"curves", 0, "FILE", CD_OPTION_OUTPUT, AT(curves), "*.csv", KEEP,
     "Also write every trial, in the layout of OpBench's op_costs"},
    {"jobs", 'j', "N", CD_OPTION_INT, AT(session.jobs), "1..1024", HOW,
     "Compiler processes at a time (default: one per CPU)"},
    {"executor", 0, "NAME", CD_OPTION_WORD, AT(executor), "default|debug|vm", HOW,
     "How a network runs: default, one task after the other; vm: a size is known only at run time, "
     "and the tasks of several sizes are tuned (--dim NAME=A..B; cdmpp-replay --executor vm runs "
     "them); debug: OpBench's, an error says what is here in its place"},
    {"isa", 0, "SET", CD_OPTION_TEXT, AT(session.isa), CD_ISAS, HOW,
     "Instructions that C code may use (default: by -mcpu of the target, else those of what "
     "measures)"},
    {"core-type", 0, "TYPE", CD_OPTION_WORD, AT(core_type), CD_CORE_TYPES, HOW,
     "Measure on cores of this type alone: the fast or the slow ones, or one thread of each core "
     "while its siblings are idle or busy (default: any). The name of the device in records ends "
     "in it"},
    {"cflags", 0, "FLAGS", CD_OPTION_TEXT, AT(session.cflags), NULL, HOW,
     "More flags for the C compiler ($CC, else cc), behind the usual ones"},
    {"gpu", 0, "NAME", CD_OPTION_TEXT, AT(session.gpu), NULL, HOW,
     "Which GPU, as its back end counts them (default: the first)"},
    {"budget-ms", 0, "N", CD_OPTION_INT, AT(session.budget_ms), "1..1000000", HOW,
     "At most so long for the repeats of one program (default: 100)"},
    {"timeout", 0, "S", CD_OPTION_INT, AT(session.timeout_s), "1..100000", HOW,
     "Seconds until a program that runs is given up (default: 10)"},
    {"build-timeout", 0, "S", CD_OPTION_INT, AT(session.build_timeout_s), "1..100000", HOW,
     "Seconds until a compiler is given up (default: 30)"},
    {"memory-mb", 0, "N", CD_OPTION_INT, AT(session.memory_mb), "16..100000000", HOW,
     "Mebibytes that a program may have (default: no limit)"},
    {"no-pin", 0, NULL, CD_OPTION_FLAG, AT(session.no_pin), NULL, HOW,
     "Do not keep programs on the last CPUs and compilers on the others"},
    {"no-check", 0, NULL, CD_OPTION_FLAG, AT(session.no_check), NULL, HOW,
     "Do not compare the results of every candidate with those of its task, only of the best one"},
    {"check", 0, NULL, CD_OPTION_FLAG, AT(check), NULL, HOW, NULL}, /* what is done without it */
    {"cache", 0, "FOLDER", CD_OPTION_FOLDER, AT(session.cache), NULL, HOW,
     "Where compiled programs are kept; empty: nowhere (default: $XDG_CACHE_HOME/cdmpp, "
     "~/.cache/cdmpp)"},
    {"cache-mb", 0, "N", CD_OPTION_INT, AT(session.cache_mb), "1..100000000", HOW,
     "Mebibytes of programs that are kept, those used least recently go (default: 1024)"},
    {"host", 0, "USER@BOARD", CD_OPTION_TEXTS, AT(session.host), NULL, HOSTS,
     "Measure there, by ssh; of several boards of one kind each has one program at a time"},
    {"port", 0, "N", CD_OPTION_INT, AT(session.port), "1..65535", HOSTS, "Port of ssh there"},
    {"transport", 0, "COMMAND", CD_OPTION_TEXT, AT(session.transport), NULL, HOSTS,
     "Reach boards by this shell command in place of ssh: host and port are $1 and $2, options for "
     "cdmpp-profile the words behind"},
    {"lease", 0, "S", CD_OPTION_INT, AT(session.lease_s), "1..1000000", HOSTS,
     "Seconds that a board may take for one program (default: 120)"},
    {"dry-run", 0, NULL, CD_OPTION_FLAG, AT(dry_run), NULL, WHAT, "Only say what would be tuned"},
    {"replay", 0, NULL, CD_OPTION_FLAG, AT(replays), NULL, REPLAY,
     "Measure nothing: simulate tuners on the records of logs, --trials of each task (default: "
     "300), --per-round at a time (default: 10)"},
    {"seeds", 0, "N", CD_OPTION_INT, AT(replay.seeds), "1..100000", REPLAY,
     "Runs of each tuner and task, with seeds from --seed on (default: 5)"},
    {"min", 0, "N", CD_OPTION_INT, AT(replay.min), "1..1000000", REPLAY,
     "Leave out tasks with fewer different programs (default: 32)"},
    {"held-out", 0, "[BOOL]", CD_OPTION_WORD, AT(held_out), "false|true", REPLAY,
     "Only tasks that the cost model was not trained on (default); false: all, which says nothing "
     "about new tasks"},
    {"data", 0, "FILE", CD_OPTION_FILES, AT(replay.data), "*.h5", REPLAY,
     "The data set that the model was trained on, where it is not at the path that the model "
     "names"},
    {"svg", 0, "FILE", CD_OPTION_OUTPUT, AT(svg), "*.svg", REPLAY,
     "Draw best found over trials and over simulated seconds"},
    {"opbench", 0, "FOLDER", CD_OPTION_FOLDER, AT(opbench), NULL, REPLAY,
     "Also write OpBench's partial_res and op_costs files there"},
    {"records", 0, "LOG|FOLDER", CD_OPTION_FILES, AT(given), "*.json", KEEP,
     "calibrate: measure nothing; these logs of another device, a GPU or a board, correct the "
     "model, and --tasks has their tasks"},
    {"devices", 0, "FILE", CD_OPTION_FILE, AT(devices), "*.yaml", KEEP,
     "calibrate: descriptions of devices, before the installed ones: who is like whom, and what "
     "analytic times of a device that the model does not know are computed with"},
    {"run-networks", 0, "NAME|FILE|none", CD_OPTION_TEXTS, AT(networks), NULL, KEEP,
     "calibrate: a network that is run at the end, so that what a network adds to its operators is "
     "known; at least four of them, or none (default: seven built-in ones; on CUDA none)"},
    {"cpu-time", 0, NULL, CD_OPTION_FLAG, AT(cpu_time), NULL, END,
     "calibrate: --seconds counts processor time of this command and of what it starts, not the "
     "clock's: on a machine that others use the run takes longer, and measures as many programs. "
     "Not for a GPU or a board"},
    {"force", 0, NULL, CD_OPTION_FLAG, AT(force), NULL, KEEP,
     "calibrate: measure also where the machine is too busy (with --out), and write the model also "
     "where times are too noisy, or held out programs are no better. Its intervals are wider by "
     "the noise, and never narrower than before"},
    {"list-tuners", 0, NULL, CD_OPTION_FLAG, AT(list_tuners), NULL, SEARCH, "List the tuners"},
    {"templates", 0, NULL, CD_OPTION_FLAG, AT(templates), NULL, WHAT,
     "Print the templates of each task that would be tried, --trials-per-task of each (default: "
     "10); --out: as records without times"},
    {"space-dump", 0, NULL, CD_OPTION_FLAG, AT(space_dump), NULL, WHAT,
     "Print the choices that make up the space of each task, and its size, as JSON"},
};

static bool has_range(const options *o) {
    cd_size_range r;
    for (size_t k = 0; k < o->what.dim.n; k++) {
        const char *is = strrchr(o->what.dim.v[k], '=');
        if (is && cd_network_sizes_parse(is + 1, &r)) return true;
    }
    return false;
}

static cdmpp_status check_tasks(const options *o, cdmpp_err *err) {
    const cd_tune_tasks_options *w = &o->what;
    cd_workload_layout layout;
    if (o->operand.n) return CD_FAIL(err, EUSAGE, "unexpected '%.60s'", o->operand.v[0]);
    if (!w->network == !w->file.n)
        return CD_FAIL(err, EUSAGE, "expected either --network or --tasks%s",
                       w->network ? ", found both" : "");
    if (w->file.n && (w->batch || w->input_size || w->dim.n || w->input.n || w->layout))
        return CD_FAIL(err, EUSAGE,
                       "--batch, --input-size, --dim, --input and --layout are for a --network "
                       "without --tasks");
    if (w->source == CD_NETWORK_SOURCE_ZOO && (w->input.n || (w->dim.n && !has_range(o))))
        return CD_FAIL(err, EUSAGE, "--dim and --input are for ONNX files");
    if (w->source == CD_NETWORK_SOURCE_ONNX && w->input_size)
        return CD_FAIL(err, EUSAGE, "--input-size is for networks of the zoo; use --dim");
    if (w->layout && !cd_workload_layout_parse(w->layout, &layout))
        return CD_FAIL(err, EUSAGE,
                       "--layout: expected one of " CD_WORKLOAD_LAYOUTS ", found '%.40s'",
                       w->layout);
    if (w->target && !cd_backend_for_target((cd_str){w->target, strlen(w->target)}))
        return CD_FAIL(err, EUSAGE,
                       "--target: expected llvm, c, opencl or cuda, with options, found '%.60s'",
                       w->target);
    return CDMPP_OK;
}

/* A single tuner is a plan of one. */
static cdmpp_status check_tuner(options *o, const char *fallback, cdmpp_err *err) {
    const cd_tune_tuner *t =
        o->tuner >= 0 ? cd_tune_tuner_at((size_t)o->tuner) : cd_tune_tuner_find(fallback);
    CD_TRY(cd_tune_compare_read(o->compare, o->compare || o->replays ? o->at : NULL, o->model,
                                &o->plan, err));
    if (o->compare) return CDMPP_OK;
    if (cd_tune_tuner_needs_model(t) && !o->model)
        return CD_FAIL(err, EUSAGE, "--tuner %s needs --cost-model", t->name);
    o->plan.tuner[0] = t;
    o->plan.n_tuner = 1;
    return CDMPP_OK;
}

static bool has_templates(const options *o) {
    for (size_t k = 0; k < o->plan.n_tuner; k++)
        if (o->plan.tuner[k]->templates) return true;
    return false;
}

/* The fallback is a search in Ansor's space. */
static cdmpp_status check_templates(options *o, cdmpp_err *err) {
    if (!has_templates(o))
        return o->machine || o->fallback >= 0
                   ? CD_FAIL(err, EUSAGE, "--machine and --fallback are for tuners of templates")
                   : CDMPP_OK;
    if (o->session.host.n && !o->machine)
        return CD_FAIL(err, EUSAGE,
                       "tuners of templates need --machine beside --host: they do not know the "
                       "caches of a board");
    if (o->fallback < 0) return CDMPP_OK;
    o->session.fallback = cd_tune_tuner_at((size_t)o->fallback);
    if (o->session.fallback->templates)
        return CD_FAIL(err, EUSAGE, "--fallback %s has no more templates than --tuner",
                       o->session.fallback->name);
    return cd_tune_tuner_needs_model(o->session.fallback) && !o->model
               ? CD_FAIL(err, EUSAGE, "--fallback %s needs --cost-model", o->session.fallback->name)
               : CDMPP_OK;
}

/* A model that nobody reads was meant for another tuner. */
static cdmpp_status check_model(const options *o, cdmpp_err *err) {
    if (!o->model || o->default_model ||
        (o->session.fallback && cd_tune_tuner_needs_model(o->session.fallback)))
        return CDMPP_OK;
    for (size_t k = 0; k < o->plan.n_tuner; k++)
        if (cd_tune_tuner_needs_model(o->plan.tuner[k])) return CDMPP_OK;
    return CD_FAIL(err, EUSAGE, "--cost-model: %s%s reads none (--list-tuners tells which do)",
                   o->plan.tuner[0]->name, o->plan.n_tuner > 1 ? ", nor the others," : "");
}

static cdmpp_status check_search(options *o, cdmpp_err *err) {
    if (!o->compare) CD_TRY(check_tuner(o, o->model ? "cdmpp" : "ansor", err));
    if (!o->model && (o->session.device || o->session.nearest || o->session.frozen))
        return CD_FAIL(err, EUSAGE, "--device, --nearest and --frozen are about --cost-model");
    CD_TRY(cd_option_number("epsilon", o->epsilon, 0, 1, &o->session.epsilon, err));
    CD_TRY(cd_option_number("min-gain", o->min_gain, 0, 100, &o->session.min_gain, err));
    o->session.min_gain /= 100;
    if (!o->tune && (o->tuner >= 0 || o->compare || o->session.trials ||
                     o->session.trials_per_task || o->session.warm.n || o->curves))
        return CD_FAIL(err, EUSAGE,
                       "--tune=false leaves nothing for --tuner, --compare, --trials, "
                       "--trials-per-task, --warm and --curves");
    if (o->at && !o->compare) return CD_FAIL(err, EUSAGE, "--at goes with --compare or --replay");
    if (!o->compare) {
        CD_TRY(check_templates(o, err));
        return check_model(o, err);
    }
    if (o->tuner >= 0) return CD_FAIL(err, EUSAGE, "--compare and --tuner do not go together");
    if (o->best || o->emit >= 0)
        return CD_FAIL(err, EUSAGE, "--best and --emit are for a single tuner, not for --compare");
    CD_TRY(check_tuner(o, "", err));
    CD_TRY(check_templates(o, err));
    return check_model(o, err);
}

static cdmpp_status check_emit(const options *o, cdmpp_err *err) {
    static const char *const kind[] = {"cpu", "opencl", "cuda"};
    if (o->emit_dir && o->emit < 0) return CD_FAIL(err, EUSAGE, "--emit-dir goes with --emit");
    /* a task file may say its own target */
    if (o->emit < 0 || (!o->what.target && !o->what.network)) return CDMPP_OK;
    const char *target = o->what.target ? o->what.target : "llvm";
    const cd_backend_kind *k = cd_backend_for_target((cd_str){target, strlen(target)});
    if (k && !strcmp(k->name, kind[o->emit])) return CDMPP_OK;
    return CD_FAIL(err, EUSAGE, "--emit: programs for target '%.40s' are not in that language",
                   target);
}

/* That of this machine's GPU, or the installed one where the device is a GPU: an OpenCL device may
 * be a processor. */
static const char *default_of_gpu(options *o, const char *backend) {
    const char *gpu = o->session.gpu ? o->session.gpu : "",
               *here = cd_default_model_gpu(&o->arena, backend, gpu);
    const char *plain = here ? NULL : cd_default_model_gpu_plain(&o->arena);
    cd_describe_entry e;
    return here ? here
           : plain && !cd_describe_gpu_apart(backend, gpu, &e, NULL) && cd_describe_is_gpu(&e)
               ? plain
               : NULL;
}

/* Without --cost-model the default one: the installed one or this machine's, of CPUs or of GPUs. A
 * board is neither. The tasks of a file may be of any target, so there the user names the target or
 * the model. */
static void take_default_model(options *o) {
    const char *target = o->what.target ? o->what.target : o->what.network ? "llvm" : "";
    const cd_backend_kind *k = cd_backend_for_target((cd_str){target, strlen(target)});
    if (o->model || o->compare || !o->tune || o->dry_run || o->session.host.n || !k) return;
    if (o->tuner >= 0 && !cd_tune_tuner_needs_model(cd_tune_tuner_at((size_t)o->tuner))) return;
    o->model =
        k->dialect == CD_DIALECT_C ? cd_default_model_path(&o->arena) : default_of_gpu(o, k->name);
    o->default_model = o->model != NULL;
}

/* Words of OpBench for which another command is here. */
static cdmpp_status check_executor(const options *o, cdmpp_err *err) {
    if (o->executor == 1)
        return CD_FAIL(err, EUSAGE,
                       "--executor debug: cdmpp-profile --ops times each operator of a network, "
                       "and takes the log of --out");
    if (o->executor == 2 && !has_range(o))
        return CD_FAIL(err, EUSAGE,
                       "--executor vm: expected --dim NAME=A..B, the dimension that is known only "
                       "at run time; batch=A..B of a network of the zoo");
    if (o->executor != 2 && has_range(o))
        return CD_FAIL(err, EUSAGE, "--dim: a range of sizes goes with --executor vm");
    return CDMPP_OK;
}

static cdmpp_status check_host(const options *o, cdmpp_err *err) {
    const cd_tune_session_options *s = &o->session;
    if (!s->host.n)
        return s->port || s->transport || s->lease_s
                   ? CD_FAIL(err, EUSAGE, "--port, --transport and --lease go with --host")
                   : CDMPP_OK;
    return s->jobs || s->cache || s->cache_mb
               ? CD_FAIL(err, EUSAGE,
                         "--jobs, --cache and --cache-mb are about compilers of this machine: a "
                         "board has its own")
               : CDMPP_OK;
}

/* OpBench's words for targets, as TVM's own targets of these devices say it. */
static cdmpp_status take_target(options *o, cdmpp_err *err) {
    static const char *const word[][2] = {
        {"arm", "llvm -device=arm_cpu -mtriple=aarch64-linux-gnu"},
        {"mali", "opencl -device=mali"},
        {"pynq", "llvm -device=arm_cpu -model=pynq -mtriple=armv7a-linux-gnueabihf -mattr=+neon"}};
    const char **target = &o->what.target;
    o->pynq = *target && !strcmp(*target, "pynq");
    if (*target && !strcmp(*target, "vta"))
        return CD_FAIL(err, EUSAGE,
                       "--target vta: programs for this accelerator are not supported; --target "
                       "pynq is the ARM processor beside it");
    for (size_t k = 0; *target && k < sizeof word / sizeof *word; k++)
        if (!strcmp(*target, word[k][0])) *target = word[k][1];
    return CDMPP_OK;
}

/* Found before anything is searched: a program for another processor runs on a board, not here. */
static cdmpp_status check_runs_here(const options *o, cdmpp_err *err) {
    const cd_backend_kind *k =
        o->what.target ? cd_backend_for_target((cd_str){o->what.target, strlen(o->what.target)})
                       : NULL;
    cd_isa_choice c;
    cdmpp_err why = {0};
    if (!k || strcmp(k->name, "cpu") != 0 || o->session.host.n || o->dry_run ||
        (o->session.isa && o->session.isa[0]))
        return CDMPP_OK;
    if (!cd_isa_choose(NULL, o->what.target, &c, &why)) return CDMPP_OK;
    return CD_FAIL(err, EUSAGE, "--target: %s; --host USER@BOARD measures on a board", why.msg);
}

static cdmpp_status check_session(options *o, cdmpp_err *err) {
    cd_isa_choice c;
    CD_TRY(take_target(o, err));
    CD_TRY(check_tasks(o, err));
    CD_TRY(check_runs_here(o, err));
    CD_TRY(check_host(o, err));
    CD_TRY(check_executor(o, err));
    if (o->check && o->session.no_check)
        return CD_FAIL(err, EUSAGE, "--check and --no-check do not go together");
    take_default_model(o);
    CD_TRY(cd_main_tune_device_check(o, err));
    CD_TRY(check_search(o, err));
    CD_TRY(check_emit(o, err));
    if (o->session.isa && o->session.isa[0])
        CD_TRY(cd_err_key(err, cd_isa_choose(o->session.isa, "", &c, err), "--isa"));
    return o->out || !o->tune || o->dry_run ? CDMPP_OK : CD_FAIL(err, EUSAGE, "--out is missing");
}

static cdmpp_status check_replay(options *o, cdmpp_err *err) {
    if (!o->operand.n) return CD_FAIL(err, EUSAGE, "--replay reads logs; none is named");
    if (o->compare && o->tuner >= 0)
        return CD_FAIL(err, EUSAGE, "--compare and --tuner do not go together");
    if (o->out || o->best || o->emit >= 0 || o->session.warm.n || o->session.stats)
        return CD_FAIL(err, EUSAGE,
                       "--replay measures nothing: --out, --best, --emit, --warm and --stats do "
                       "not go with it");
    if (o->what.network || o->what.only.n || o->what.of_network || o->what.target)
        return CD_FAIL(err, EUSAGE,
                       "--replay takes the tasks of its logs: --network, --task and --target do "
                       "not go with it");
    CD_TRY(cd_option_number("epsilon", o->epsilon, 0, 1, &o->session.epsilon, err));
    if (!o->model &&
        (o->session.device || o->session.nearest || o->session.frozen || o->replay.data.n))
        return CD_FAIL(err, EUSAGE,
                       "--device, --nearest, --frozen and --data are about --cost-model");
    CD_TRY(check_tuner(o, o->model ? "cdmpp" : "random", err));
    if (has_templates(o))
        return CD_FAIL(
            err, EUSAGE,
            "--replay has the programs of its logs only: tuners of templates make their own");
    if (!cd_tune_replay_ranks(&o->plan) || o->what.file.n) return CDMPP_OK;
    return CD_FAIL(err, EUSAGE, "--tasks is missing: %s reads programs",
                   o->plan.tuner[0]->ranker ? o->plan.tuner[0]->name : "a tuner");
}

/* --network is one of the task files, where there are some; else it says itself whether it is a
 * file or a name of the zoo. */
static cdmpp_status take_network(options *o, cdmpp_err *err) {
    cd_tune_tasks_options *w = &o->what;
    if (!o->network) return CDMPP_OK;
    if (w->network)
        return CD_FAIL(err, EUSAGE, "--network and --model-name are two names of one option");
    if (w->file.n) {
        w->of_network = o->network;
        return CDMPP_OK;
    }
    w->network = o->network;
    return CDMPP_OK;
}

static cdmpp_status check_all(options *o, const cd_cli_args *said, cdmpp_err *err) {
    o->operand = said->operand;
    if (o->operand.n == 1 && !o->network && !o->replays &&
        cd_network_operand_is_onnx(o->operand.v[0])) {
        o->network = o->operand.v[0];
        o->operand.n = 0;
    }
    CD_TRY(take_network(o, err));
    CD_TRY(cd_network_source_kind(o->what.source, o->what.network, &o->what.source, err));
    if (cd_main_tune_is_calibrate(o)) return cd_main_tune_calibrate_check(o, err);
    if (o->force || o->cpu_time || o->given.n || o->networks.n || o->devices)
        return CD_FAIL(
            err, EUSAGE,
            "--force, --cpu-time, --run-networks, --records and --devices go with calibrate");
    if (o->core_type >= 0 && (o->list_tuners || o->space_dump || o->templates || o->replays))
        return CD_FAIL(err, EUSAGE, "--core-type goes with a search: nothing is measured here");
    if (o->session.host.n && (o->list_tuners || o->space_dump || o->templates || o->replays))
        return CD_FAIL(err, EUSAGE, "--host goes with a search: nothing is measured here");
    if (o->list_tuners)
        return o->operand.n ? CD_FAIL(err, EUSAGE, "unexpected '%.60s'", o->operand.v[0])
                            : CDMPP_OK;
    return o->space_dump || o->templates ? check_tasks(o, err)
           : o->replays                  ? check_replay(o, err)
                                         : check_session(o, err);
}

/* Nothing runs after an error, so nothing frees what a check has looked up. */
static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    options *o = to;
    const cdmpp_status st = check_all(o, said, err);
    if (st) cd_arena_free(&o->arena);
    return st;
}

/* ---- what it says about itself ---- */
static const char *const use[] = {
    "FILE.onnx [--target TARGET] [--tuner NAME] [--trials N] --out LOG [OPTION...]",
    "--network NAME|FILE [--target TARGET] [--tuner NAME] [--trials N] --out LOG [OPTION...]",
    "--tasks FILE [--task KEY|#I] [--target TARGET] [--tuner NAME] [--trials N] --out LOG "
    "[OPTION...]",
    "--compare A,B,... [--at N,N,...] --tasks FILE --out LOG [OPTION...]",
    "--host USER@BOARD... [--port N] [--transport COMMAND] --network NAME|FILE --out LOG "
    "[OPTION...]",
    "--space-dump --tasks FILE [--task KEY|#I] [--target TARGET]",
    "--replay [--compare A,B,...] [--at N,N,...] --tasks FILE [--cost-model FILE] [OPTION...] "
    "LOG|FOLDER...",
    "--templates --tasks FILE [--task KEY|#I] [--machine NAME] [--out FILE]",
    "calibrate [--seconds N] [--target TARGET] [--cost-model FILE] [--network NAME|FILE | --tasks "
    "FILE] [--out FILE] [--force]",
    "--list-tuners",
    NULL};
static const char *const example[] = {
    "Tune a network with a model of this processor, 1000 measurements",
    "cdmpp-tune --network resnet-18 --cost-model zen.cdmpp --trials 1000 --out r18.json --best "
    "r18.best.json",
    "Go on with it until a round costs more than it saves in a million runs",
    "cdmpp-tune --network resnet-18 --cost-model zen.cdmpp --trials 100000 --runs 1000000 --out "
    "r18.json",
    "One task on one thread, and its code",
    "cdmpp-tune --tasks net.tasks.json --task '#3' --threads 1 --trials 100 --out t3.json --emit c "
    "--emit-dir t3",
    "Two tuners against each other",
    "cdmpp-tune --compare random,ansor --at 10,50,100 --trials 100 --tasks net.tasks.json --task "
    "'#3' --out cmp.json",
    "Search on a board, which has cdmpp-profile and a C compiler",
    "cdmpp-tune --host pi@board-1 --network mobilenet-v2 --trials 1000 --out board.json",
    "Correct the default model for this machine in five minutes",
    "cdmpp-tune calibrate",
    "Correct the default model of GPUs for the GPU of this machine",
    "cdmpp-tune calibrate --target cuda",
    "How good would they have been on what was measured",
    "cdmpp-tune --replay --compare random,cdmpp --cost-model v100.cdmpp --tasks network_info "
    "measure_records/v100",
    NULL};
static const char *const see[] = {"cdmpp-profile(1)", "cdmpp-train(1)", "cdmpp-predict(1)", NULL};
static const cd_option_usual usual[] = {
    {"network", "An ONNX file or a name"},
    {"tasks", "Task definitions"},
    {"task", "Only this task"},
    {"target", "Target of the programs: llvm, cuda, opencl"},
    {"threads", "Threads of a program on a CPU"},
    {"cost-model", "Cost model that guides the search"},
    {"tuner", "Search method (--list-tuners)"},
    {"trials", "Measurements of all tasks together"},
    {"seconds", "End after so long"},
    {"out", "The log that grows"},
    {"best", "Write the best record of each task"},
    {"emit", "Write the best programs as source"},
    {NULL, NULL},
};

static const cd_command self = {
    "cdmpp-tune",
    "search fast schedules",
    use,
    "Searches the schedules of tasks or of a whole network: a tuner asks for candidates, they are "
    "compiled and measured on this "
    "machine, and each is appended to --out as a record of TVM's auto_scheduler at once. A run "
    "that was stopped or killed goes on "
    "with the same command: nothing is measured twice. With --host a board compiles and measures "
    "them; a connection that is lost ends the run (exit status 6), "
    "and the same command goes on.\n\n"
    "Trials of a network go where weight x latency is expected to fall most, after a short first "
    "round for every task. At the end the best "
    "program of each task is compared with the reference on its real shapes and measured by turns "
    "with the untuned one; a best one that is wrong or "
    "slower is refused and the untuned one kept.\n\n"
    "calibrate measures programs of built-in networks, or of those that are named, for at most "
    "--seconds. First it looks whether the machine is quiet: where the same program takes now this "
    "long and now that long, it ends at once. It runs some networks, too. It corrects the cost "
    "model by them, tells what that "
    "changes on programs held out, and writes a model that all commands of this user use on this "
    "machine where no model is named. With --target cuda or opencl it measures a GPU; with --host "
    "a board.\n\n"
    "The exit status is 3 when some task has no program that runs.",
    table,
    sizeof table / sizeof *table,
    group,
    "",
    example,
    NULL,
    see,
    NULL,
    check,
    usual};

/* ---- run ---- */
static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    options *o = to;
    cd_device_table *devices = NULL;
    o->json = r->said.json;
    o->log = o->session.log = &r->log;
    o->session.stop = r->stop;
    o->argc = r->argc, o->argv = r->argv;
    if (o->pynq)
        cd_log_put(o->log, CD_LOG_WARNING,
                   "--target pynq: programs for the ARM processor of the board; its accelerator, "
                   "VTA, is not supported");
    o->session.threads = o->what.threads;
    if (o->core_type >= 0) o->session.core = cd_core_type_name((cd_core_type)o->core_type);
    cdmpp_status st = o->machine
                          ? cd_err_key(err,
                                       cd_tune_template_machine(&o->arena, o->machine, o->log,
                                                                &devices, &o->session.machine, err),
                                       "--machine")
                          : CDMPP_OK;
    if (!st) st = cd_main_tune_run(o, err);
    cd_device_table_free(devices);
    cd_arena_free(&o->arena);
    if (o->bad) r->exit_code = 3;
    return st;
}

int main(int argc, char **argv) {
    options o = {.tune = 1,
                 .held_out = 1,
                 .tuner = -1,
                 .fallback = -1,
                 .core_type = -1,
                 .emit = -1,
                 .session = {.epsilon = -1}};
    return cd_command_main(&self, argc, argv, &o, run);
}
