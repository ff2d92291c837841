/* cdmpp-tune calibrate: a model corrected for this machine, for its processor or a GPU of it. Here
 * are its options and the tasks that programs are drawn of; the work is done by
 * predictor/calibrate. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/calibrate/calibrate.h"
#include "predictor/cmd/tune/main_tune.h"

typedef cd_main_tune options;
enum { LIMIT_S = 300, LEAST_S = 15, MOST_S = 3600, RUN_S = 4, BUILD_S = 15, BUDGET_MS = 50 };

/* Networks of all families, whose operators other networks have too: programs are drawn of their
 * tasks. The first RUN are run, too, large and small ones by turns. The recurrent one makes a
 * thousand short calls: without it, what large operators pay in a network is taken for the cost of
 * a call. */
enum { RUN = 8, FEW = 12 }; /* FEW: with less --trials there is nothing to learn from */
static const char *usual[] = {"mobilenet-v3-small",
                              "resnext-50",
                              "alexnet",
                              "bert-medium",
                              "efficientnet-b0",
                              "yolov3-tiny",
                              "dcgan",
                              "lstm",
                              "densenet-121",
                              "dpn-68",
                              "inception-v1",
                              "vgg-11",
                              "t5-small",
                              "vit",
                              "gcn",
                              "yolov2",
                              "resnet3d-18",
                              "squeezenet-1.1",
                              "mobilenet-v2"};

bool cd_main_tune_is_calibrate(const options *o) {
    return o->operand.n && !strcmp(o->operand.v[0], "calibrate");
}

static bool is_gpu(const options *o) {
    return o->what.target && cd_target_is_gpu((cd_str){o->what.target, strlen(o->what.target)});
}

/* "here.cdmpp" -> "here.records.json" */
static cdmpp_status name_log(options *o, cdmpp_err *err) {
    static const char end[] = ".cdmpp", records[] = ".records.json";
    const size_t n = strlen(o->out),
                 cut = n > sizeof end - 1 && !strcmp(o->out + n - (sizeof end - 1), end)
                           ? n - (sizeof end - 1)
                           : n;
    char *s = cd_arena_zalloc(&o->arena, cut + sizeof records, 1);
    if (!s) return CD_FAIL(err, ENOMEM, "name of the log");
    (void)snprintf(s, cut + sizeof records, "%.*s%s", (int)cut, o->out, records);
    o->records = s;
    return CDMPP_OK;
}

/* Whose logs they are, no file of this machine's name may claim. */
static cdmpp_status check_given(const options *o, cdmpp_err *err) {
    const cd_tune_session_options *s = &o->session;
    if (!o->what.file.n)
        return CD_FAIL(err, EUSAGE, "--records needs --tasks: the definitions of their tasks");
    if (!o->out)
        return CD_FAIL(err, EUSAGE,
                       "--records needs --out: logs do not say whether they are of this machine");
    if (s->seconds || s->trials || s->budget_ms || s->timeout_s || s->build_timeout_s || s->isa ||
        s->cflags || s->jobs || s->cache || s->seed || o->what.target || o->what.threads ||
        o->networks.n)
        return CD_FAIL(err, EUSAGE,
                       "--records measures nothing: options of measuring do not go with it");
    return CDMPP_OK;
}

/* Networks run in one queue of OpenCL; there is no such queue of CUDA yet. */
static bool runs_networks(const cd_backend_kind *k) { return k->dialect != CD_DIALECT_CUDA; }

/* What is about processors or their compiler. */
static cdmpp_status check_gpu(const options *o, cdmpp_err *err) {
    const cd_tune_session_options *s = &o->session;
    if (o->what.threads || s->isa || s->cflags)
        return CD_FAIL(err, EUSAGE,
                       "--threads, --isa and --cflags are about processors: they do not go with "
                       "--target %.20s",
                       o->what.target);
    if (o->networks.n && strcmp(o->networks.v[0], "none") != 0 &&
        !runs_networks(cd_backend_for_target((cd_str){o->what.target, strlen(o->what.target)})))
        return CD_FAIL(err, EUSAGE,
                       "--run-networks: networks are not run on CUDA: the time of a network is the "
                       "sum of its operators there");
    return CDMPP_OK;
}

/* Its model may not be found by itself. */
static cdmpp_status check_board(options *o, cdmpp_err *err) {
    if (o->given.n)
        return CD_FAIL(err, EUSAGE, "--records measures nothing: --host does not go with it");
    if (is_gpu(o))
        return CD_FAIL(err, EUSAGE,
                       "--host: the processor of a board is measured, not --target %.20s",
                       o->what.target);
    if (!o->out)
        return CD_FAIL(err, EUSAGE,
                       "--host needs --out: the user's models are found on this machine, and a "
                       "board is another one");
    if (o->networks.n && strcmp(o->networks.v[0], "none") != 0)
        return CD_FAIL(err, EUSAGE, "--run-networks: networks are not run on a board");
    static const char *none[] = {"none"};
    o->networks = (cd_texts){1, none};
    return CDMPP_OK;
}

/* What takes its time on a quiet machine, however few programs are measured. */
static cdmpp_status check_seconds(const options *o, cdmpp_err *err) {
    if (o->session.seconds > MOST_S)
        return CD_FAIL(err, EUSAGE, "calibrate: expected --seconds %d to %d, found %d", LEAST_S,
                       MOST_S, o->session.seconds);
    if (!o->session.seconds || o->session.seconds >= LEAST_S) return CDMPP_OK;
    return CD_FAIL(err, EUSAGE,
                   "calibrate: expected --seconds %d or more, found %d: the check of noise (2 s), "
                   "reading the model and the tasks (1 s), drawing (2 s), the least number of "
                   "programs (7 s) and the fit (3 s) take "
                   "so long",
                   LEAST_S, o->session.seconds);
}

cdmpp_status cd_main_tune_calibrate_check(options *o, cdmpp_err *err) {
    const char *target = o->what.target ? o->what.target : "llvm";
    const cd_backend_kind *k = cd_backend_for_target((cd_str){target, strlen(target)});
    if (o->operand.n > 1)
        return CD_FAIL(err, EUSAGE, "calibrate: unexpected '%.60s'", o->operand.v[1]);
    if (o->network && o->what.file.n)
        return CD_FAIL(err, EUSAGE, "expected either --network or --tasks, found both");
    if (!k)
        return CD_FAIL(
            err, EUSAGE,
            "--target: calibrate measures programs of llvm, c, opencl or cuda, found '%.60s'",
            target);
    if (o->compare || o->replays || o->best || o->emit >= 0 || o->tuner >= 0 || o->session.warm.n ||
        o->curves || o->what.only.n)
        return CD_FAIL(err, EUSAGE,
                       "calibrate searches nothing: --compare, --replay, --best, --emit, --tuner, "
                       "--warm, --curves and --task do not go with it");
    if (o->core_type >= 0)
        return CD_FAIL(err, EUSAGE,
                       "calibrate measures on all types of cores: --core-type does not go with it");
    if (o->session.host.n) CD_TRY(check_board(o, err));
    if (is_gpu(o)) CD_TRY(check_gpu(o, err));
    else if (o->session.gpu) return CD_FAIL(err, EUSAGE, "--gpu goes with --target cuda or opencl");
    if (o->given.n) CD_TRY(check_given(o, err));
    if (o->cpu_time && (o->session.host.n || is_gpu(o) || o->given.n))
        return CD_FAIL(
            err, EUSAGE,
            "--cpu-time: the time of a GPU, a board or logs is not that of this processor");
    CD_TRY(check_seconds(o, err));
    if (!o->session.seconds) o->session.seconds = LIMIT_S;
    if (!o->networks.n && runs_networks(k)) o->networks = (cd_texts){RUN, usual};
    if (o->networks.n == 1 && !strcmp(o->networks.v[0], "none")) o->networks.n = 0;
    if (o->networks.n && o->networks.n < CD_NETWORK_COST_FEWEST)
        return CD_FAIL(err, EUSAGE,
                       "--run-networks: expected %d networks or more, or none, found %zu",
                       CD_NETWORK_COST_FEWEST, o->networks.n);
    o->default_model = !o->model;
    if (!o->model && (is_gpu(o) || cd_record_first_is_gpu(o->given.v, o->given.n)))
        o->model = cd_default_model_gpu_plain(&o->arena);
    /* where it knows no GPU, calibrating says so */
    if (!o->model) o->model = cd_default_model_plain(&o->arena);
    return o->model ? CDMPP_OK : cd_default_model_missing(err);
}

/* ---- tasks ---- */
/* A key does not tell everything (padding is not in it): of two networks with tasks of one key the
 * first has it. */
static cdmpp_status add_task(cd_task_registry *all, const cd_task *t, cdmpp_err *err) {
    const cd_str key = {t->workload_key, strlen(t->workload_key)};
    const cd_task *added;
    if (!t->dag || cd_task_registry_find(all, key)) return CDMPP_OK;
    return cd_task_registry_add(all, key, t->dag, &added, err);
}

static cdmpp_status add_network(const options *o, const char *name, cd_task_registry *all,
                                cdmpp_err *err) {
    const cd_tune_tasks_options *w = &o->what;
    const bool named = w->network != NULL;
    const cd_network_source source = {.kind = named ? w->source : CD_NETWORK_SOURCE_ZOO,
                                      .name = name,
                                      .batch = w->batch,
                                      .size = named ? w->input_size : 0,
                                      .dim = w->dim.v,
                                      .n_dim = (uint32_t)w->dim.n,
                                      .input = w->input.v,
                                      .n_input = (uint32_t)w->input.n};
    const cd_hardware hw = cd_target_hardware(is_gpu(o), is_gpu(o) ? 0 : o->what.threads, 64);
    const cd_workload_options wo = {.target = o->what.target, .hardware = &hw};
    const cd_onnx_miss *miss;
    uint32_t n_miss;
    cd_graph *g = NULL;
    cd_workload *work = NULL;
    cdmpp_status st = cd_network_source_read(&source, &g, &miss, &n_miss, err);
    if (!st) cd_network_source_say(g, o->log);
    for (uint32_t k = 0; !st && k < n_miss; k++)
        cd_log_put(o->log, CD_LOG_WARNING, "%.80s: %.60s (%.60s) is left out: %s", name,
                   miss[k].node, miss[k].op, miss[k].reason);
    if (!st) st = cd_workload_build(g, &wo, &work, err);
    for (uint32_t k = 0; !st && k < work->n_task; k++) {
        if (work->task[k].weight >= 1)
            st = add_task(all, cd_task_registry_at(work->tasks, work->task[k].task), err);
    }
    cd_workload_free(work);
    cd_graph_free(g);
    return st;
}

static cdmpp_status read_tasks(const options *o, cd_task_registry **out, cdmpp_err *err) {
    CD_TRY(cd_task_registry_new(out, err));
    if (o->what.file.n)
        return cd_task_registry_load_all(*out, o->what.file.v, o->what.file.n, o->log, err);
    if (o->what.network) return add_network(o, o->what.network, *out, err);
    for (size_t k = 0; k < sizeof usual / sizeof *usual; k++)
        CD_TRY(add_network(o, usual[k], *out, err));
    return CDMPP_OK;
}

/* ---- run ---- */
/* One thread: the records that models are trained on are mostly of one. The target says so to the
 * generators. */
static cdmpp_status take_target(options *o, cdmpp_err *err) {
    char text[160];
    if (is_gpu(o)) return cd_target_check(o->what.target, o->log, err);
    if (!o->what.threads)
        o->what.threads = o->what.target && cd_target_option(o->what.target, "-num-cores").n
                              ? cd_backend_cpu_threads(o->what.target)
                              : 1;
    if (o->what.target) return cd_target_check(o->what.target, o->log, err);
    (void)snprintf(text, sizeof text, "llvm -num-cores=%d", o->what.threads);
    o->what.target = cd_arena_text(&o->arena, text);
    return o->what.target ? CDMPP_OK : CD_FAIL(err, ENOMEM, "target");
}

/* A program that hangs may not cost the whole limit. */
static cd_measure_options how_measured(options *o) {
    if (!o->session.build_timeout_s) o->session.build_timeout_s = BUILD_S;
    if (!o->session.timeout_s) o->session.timeout_s = RUN_S;
    if (!o->session.budget_ms) o->session.budget_ms = BUDGET_MS;
    return cd_tune_session_measure(&o->session);
}

static void on_note(void *ctx, const char *text) { cd_log_put(ctx, CD_LOG_WARNING, "%s", text); }

/* The board, or this machine: that one first of all, for it forks. */
static cdmpp_status open_machine(options *o, const cd_measure_options *mo,
                                 const cd_record_listener *l, cd_measure **here,
                                 cd_remote_measure **there, cdmpp_err *err) {
    if (!o->session.host.n) {
        if (!o->given.n) CD_TRY(cd_measure_open(mo, here, err));
        return take_target(o, err);
    }
    CD_TRY(take_target(o, err));
    o->session.threads = o->what.threads;
    CD_TRY(cd_tune_session_open_board(&o->session, l, there, err));
    const char *isa = cd_remote_measure_about(*there)->isa;
    if (o->session.isa || cd_target_option(o->what.target, "-mcpu").n) return CDMPP_OK;
    if (!isa[0])
        return CD_FAIL(err, EUSAGE,
                       "--isa is missing: %.60s does not say which instructions it has",
                       cd_remote_measure_name(*there));
    o->session.isa = isa;
    return CDMPP_OK;
}

static cdmpp_status given_once(options *o, cdmpp_err *err) {
    cd_buf said = {0};
    const cdmpp_status st = cd_file_once(o->given.v, &o->given.n, &said, err);
    if (!st && said.n) cd_log_put(o->log, CD_LOG_WARNING, "--records: %s", said.p);
    cd_buf_free(&said);
    return st;
}

/* Without --out the user's model of this processor, or of the GPU that is measured. */
static cdmpp_status name_out(options *o, cdmpp_err *err) {
    cd_describe_identity machine;
    const char *backend = NULL;
    if (o->out) return name_log(o, err);
    if (is_gpu(o)) {
        cd_describe_entry e;
        backend = cd_backend_for_target((cd_str){o->what.target, strlen(o->what.target)})->name;
        CD_TRY(cd_describe_gpu_apart(backend, o->session.gpu ? o->session.gpu : "", &e, err));
        cd_describe_identity_gpu(&e, &machine);
    } else CD_TRY(cd_describe_identity_cpu("", &machine, err));
    CD_TRY(cd_user_model_path(&o->arena, backend, &machine, &o->out, err));
    return name_log(o, err);
}

static void put_word(cd_buf *b, const char *word) {
    if (b->n) cd_buf_puts(b, " ");
    cd_escape_shell(b, cd_str_of(word));
}

/* The command as it was given, without --seconds, and without --trials where it asks
 * for too few programs. */
static cdmpp_status name_again(const options *o, cd_buf *b, cdmpp_err *err) {
    static const char *const valued[] = {"--seconds", "--trials"};
    if (o->argc) put_word(b, o->argv[0]); /* with its folder, where it is not found without */
    for (int i = 1; i < o->argc; i++) {
        const char *word = o->argv[i];
        bool left_out = false;
        for (size_t k = 0; k < sizeof valued / sizeof *valued; k++) {
            const size_t n = strlen(valued[k]);
            if (strncmp(word, valued[k], n) != 0 || (word[n] && word[n] != '=') ||
                (k == 1 && o->session.trials >= FEW))
                continue;
            left_out = true;
            i += !word[n];
        }
        if (!left_out) put_word(b, word);
    }
    return b->oom ? CD_FAIL(err, ENOMEM, "command line") : CDMPP_OK;
}

/* The check of noise is the first of all. A busy machine gets more time for each program, so that
 * none is taken for one that hangs. */
static cdmpp_status check_quiet(const options *o, cd_measure *measure, cd_noise_program *quiet,
                                cdmpp_err *err) {
    if (!measure || is_gpu(o)) return CDMPP_OK;
    /* without --out the model would answer for this machine in all commands */
    const bool keep = o->force && o->out;
    CD_TRY(cd_calibrate_quiet(o->what.threads, keep, o->log, quiet, err));
    if (quiet->noise > CD_CALIBRATE_NOISE)
        cd_measure_run_limit(measure, o->session.timeout_s * fmin(4, quiet->high_s / quiet->low_s));
    return CDMPP_OK;
}

cdmpp_status cd_main_tune_calibrate(options *o, cdmpp_err *err) {
    const cd_measure_options mo = how_measured(o);
    const double begin = cd_clock_wall();
    cd_task_registry *tasks = NULL;
    const cd_record_listener l = {.note = on_note, .ctx = o->log};
    cd_measure *measure = NULL;
    cd_calibrate_board board = {0};
    cd_buf b = {0}, again = {0};
    cd_noise_program quiet = {0};
    cdmpp_status st = open_machine(o, &mo, &l, &measure, &board.measure, err);
    if (!st) st = check_quiet(o, measure, &quiet, err);
    if (!st) st = name_again(o, &again, err);
    if (!st) st = name_out(o, err);
    if (!st) st = given_once(o, err);
    if (!st) st = read_tasks(o, &tasks, err);
    board.tasks = tasks;
    cd_calibrate_here here = {.measure = measure, .cpu_time = o->cpu_time};
    const cd_calibrate_clock clock =
        board.measure ? cd_calibrate_clock_board(&board) : cd_calibrate_clock_here(&here);
    const cd_calibrate_options co = {
        .model = o->model,
        .by_default = o->default_model && cd_default_model_is_gpu_plain(o->model),
        .out = o->out,
        .records = o->records,
        .given = o->given.v,
        .n_given = o->given.n,
        .device = o->session.device,
        .devices = o->devices,
        .tasks = tasks,
        .network = o->networks.v,
        .n_network = o->networks.n,
        .target = o->what.target,
        .isa = o->session.isa,
        .gpu = o->session.gpu,
        .board = board.measure ? cd_remote_measure_about(board.measure) : NULL,
        .threads = o->what.threads,
        .jobs = cd_affinity_count(),
        .seed = (uint64_t)o->session.seed,
        .most = (size_t)o->session.trials,
        .limit_s = o->session.seconds,
        .force = o->force,
        .json = o->json,
        .clock = &clock,
        .begin_s = o->cpu_time ? 1e-9 : begin,
        .quiet = quiet.low_s > 0 ? &quiet : NULL,
        .again = again.p,
        .log = o->log,
        .stop = o->session.stop};
    if (!st) st = cd_calibrate_run(&co, &b, err);
    const cdmpp_status told = b.n ? cd_command_result(o->json, "cdmpp.calibrate", "cdmpp-tune",
                                                      o->log, &b, st ? NULL : err)
                                  : CDMPP_OK;
    cd_buf_free(&b);
    cd_buf_free(&again);
    cd_task_registry_free(tasks);
    cd_measure_close(measure);
    cd_remote_measure_close(board.measure);
    return st ? st : told;
}
