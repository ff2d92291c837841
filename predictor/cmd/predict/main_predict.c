/* cdmpp-predict: its options, which of them go together, and its modes. Predictions are made and
 * printed by predictor/serve and predictor/score. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/io.h"
#include "dataset/extract/extract.h"
#include "features/task/task.h"
#include "learner/export/export.h"
#include "learner/operators/operators.h"
#include "predictor/cmd/predict/main_predict.h"
#include "predictor/score/score.h"
#include "predictor/serve/serve.h"
#include "profiler/records/records.h"

/* The default cost model of cdmpp-predict: that of processors or that of GPUs, by the device that
 * the user names, else by the first record. One file answers for all records: those of the other
 * kind name a device that it does not know, and get an error each. */

cdmpp_status cd_predict_devices(const char *file, cd_log *log, cd_device_table **out,
                                cdmpp_err *err) {
    cd_arena a = {0};
    cd_diag diag = {0};
    cdmpp_status st = cd_device_table_open(&a, file, NULL, &diag, NULL, out, err);
    if (st && diag.n) cd_log_lines(log, CD_LOG_ERROR, diag.text.p);
    if (!st && log) cd_device_table_say(*out, log);
    cd_diag_free(&diag);
    cd_arena_free(&a);
    return st;
}

/* -1: nobody describes it. */
static int kind_of(const char *device, const char *devices) {
    cd_device_table *t = NULL;
    const cd_device *d;
    if (cd_predict_devices(devices, NULL, &t, NULL)) return -1;
    const int gpu = cd_device_table_find(t, device, &d, NULL) ? -1 : d->kind == CD_DEVICE_GPU;
    cd_device_table_free(t);
    return gpu;
}

/* "FILE:LINE" */
static bool place_is_gpu(const char *where) {
    cd_buf path = {0}, text = {0};
    cd_arena a = {0};
    cd_record record;
    long number;
    const bool gpu = !cd_extract_line(where, &path, &number, &text, NULL) &&
                     !cd_record_read(&a, text.p ? text.p : "", text.n, &record, NULL) &&
                     cd_target_is_gpu(record.target);
    cd_arena_free(&a);
    cd_buf_free(&path);
    cd_buf_free(&text);
    return gpu;
}

/* Its path, in `a`. Errors: EUSAGE: there is none. */
static cdmpp_status predict_default_model(const cd_predict_asked *o, cd_arena *a, const char **out,
                                          cdmpp_err *err) {
    int gpu = o->device ? kind_of(o->device, o->devices) : -1;
    if (gpu < 0 && o->explain) gpu = place_is_gpu(o->explain);
    if (gpu < 0 && o->input->n) gpu = cd_record_first_is_gpu(o->input->v, 1);
    *out = gpu > 0 ? cd_default_model_for_gpu(a, NULL, NULL) : NULL;
    if (!*out) *out = cd_default_model_path(a);
    return *out ? CDMPP_OK : cd_default_model_missing(err);
}

/* A model that is corrected for a machine: how many answers are of another device, once. */
static void predict_say_other(const cd_model *m, const char *path, const cd_stream_stats *n,
                              cd_log *log) {
    const cd_here *h = cd_model_here(m);
    if (n->assumed)
        cd_log_put(
            log, CD_LOG_WARNING,
            "%zu of %zu answers are for %s, because it is the only device of the model: no -model= "
            "of a target and no folder says whose they are (first: %s); --device %s says so",
            n->assumed, n->scored, cd_model_device(m, 0), n->assumed_at, cd_model_device(m, 0));
    if (h && n->uncorrected)
        cd_log_put(log, CD_LOG_WARNING,
                   "%s corrects times of %s alone: %zu of %zu answers are of another device "
                   "(%.60s), and are not corrected",
                   path, h->name, n->uncorrected, n->scored, n->other);
}

/* Tables of operators that cdmpp-predict reads: files as they are named, and of a folder all tables
 * below it. */

static bool is_folder(const char *path) {
    struct stat s;
    return strcmp(path, "-") != 0 && !stat(path, &s) && S_ISDIR(s.st_mode);
}

static cdmpp_status of_folder(const char *path, cd_arena *a, const char *const **v, size_t *n,
                              cdmpp_err *err) {
    CD_TRY(cd_file_list(a, path, cd_op_rows_is_table, NULL, v, n, err));
    return *n ? CDMPP_OK
              : cd_err_at(
                    err,
                    CD_FAIL(err, ESCHEMA, "expected tables (*.tsv, *.csv, *.h5) in this folder"),
                    path, 0);
}

/* Tables that are named, and those of folders, in `a`. Errors: EIO, ESCHEMA (a folder without
 * tables), ENOMEM. */
static cdmpp_status predict_tables(const cd_texts *input, cd_arena *a, cd_texts *out,
                                   cdmpp_err *err) {
    const char **all = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < input->n; i++) {
        const char *const *v = &input->v[i];
        size_t n_v = 1;
        if (is_folder(input->v[i])) CD_TRY(of_folder(input->v[i], a, &v, &n_v, err));
        for (size_t k = 0; k < n_v; k++) {
            if (CD_GROW_IN(a, all, n, cap)) return CD_FAIL(err, ENOMEM, "%zu tables", n);
            all[n++] = v[k];
        }
    }
    *out = (cd_texts){n, all};
    return CDMPP_OK;
}

typedef struct {
    const char *model, *device, *devices, *explain, *out, *profile, *from, *to;
    cd_texts task, input, measured;
    bool default_model; /* `model` is the default one */
    cd_arena arena;
    int jobs, export_to, member; /* -1: not asked */
    int batch, max_delay_ms, format, cache;
    bool eval, json, info, operators, strict, stream, nearest, verbose;
    cd_log *log;
} options;

#define AT(member) offsetof(options, member)
static const cd_option table[] = {
    {"cost-model", 0, "FILE", CD_OPTION_FILE, AT(model), "*.cdmpp", 0,
     "Cost model of cdmpp-train (default: the installed default model, for a GPU that of GPUs)"},
    {"model", 0, "FILE", CD_OPTION_FILE, AT(model), "*.cdmpp", 0, NULL}, /* older name */
    {"tasks", 0, "FILE", CD_OPTION_FILES, AT(task), NULL, 0,
     "Task definitions: all_tasks.pkl, *.task.pkl, our text form, a text that TVM printed (*.out), "
     "or a folder of these"},
    {"device", 0, "NAME", CD_OPTION_TEXT, AT(device), NULL, 0,
     "Device of all records (default: -model= of the target, else the folder of the file)"},
    {"profile", 0, "NAME", CD_OPTION_TEXT, AT(profile), "full|tuner|two-stage", 0,
     "Who answers: full, the whole model (default), or tuner, the small network for schedule "
     "search; two-stage only with --format packed (docs/reference/model.md)"},
    {"operators", 0, NULL, CD_OPTION_FLAG, AT(operators), NULL, 0,
     "The files are tables of operators (docs/reference/operators.md, llm-operators.md), the model "
     "is one of operators; with --stream requests are operators of language models"},
    {"devices", 0, "FILE", CD_OPTION_FILE, AT(devices), "*.yaml", 0,
     "Descriptions of devices: peaks that no answer passes, and who is like whom; they come before "
     "the installed ones"},
    {"from", 0, "NAME", CD_OPTION_TEXT, AT(from), NULL, 0,
     "Scale the times that were measured on this GPU (docs/reference/operators.md); with "
     "--operators a cost model may be missing"},
    {"to", 0, "NAME", CD_OPTION_TEXT, AT(to), NULL, 0,
     "With --from: the GPU whose times are asked for"},
    {"measured", 0, "LOG|FOLDER", CD_OPTION_FILES, AT(measured), NULL, 0,
     "Records measured on the device: they correct the answers for its other programs "
     "(docs/guide/own-machine.md); with --operators tables of operators of language models: what "
     "is in them is answered as it was measured, what is between it interpolated"},
    {"eval", 0, NULL, CD_OPTION_FLAG, AT(eval), NULL, 0,
     "Also the measured median and the relative error; a summary on standard error. With --json: "
     "the figures alone, as one JSON object"},
    {"jobs", 'j', "N", CD_OPTION_INT, AT(jobs), "1..1024", 0,
     "Threads (default: one per CPU, with --stream 1); output and order do not depend on it"},
    {"stream", 0, NULL, CD_OPTION_FLAG, AT(stream), NULL, 1,
     "Answer requests on standard input, one after another (docs/reference/stream.md)"},
    {"format", 0, "FORM", CD_OPTION_WORD, AT(format), CD_SERVE_FORMATS, 1,
     "JSON objects a line (default), a table, or TVM's packed features"},
    {"batch", 0, "N", CD_OPTION_INT, AT(batch), "1..65536", 1,
     "Score at most so many requests at once (default: 256)"},
    {"max-delay-ms", 0, "N", CD_OPTION_INT, AT(max_delay_ms), "0..60000", 1,
     "Longest that a request waits for others to share its batch (default: 2)"},
    {"cache", 0, "N", CD_OPTION_INT, AT(cache), "0..100000000", 1,
     "Keep the answers of so many candidates for when they come again, 0.2 kB each (default: "
     "65536, 0: none)"},
    {"nearest", 0, NULL, CD_OPTION_FLAG, AT(nearest), NULL, 0,
     "For a device that the model does not know the most similar one answers, and says so"},
    {"verbose", 'v', NULL, CD_OPTION_FLAG, AT(verbose), NULL, 1,
     "Counts and cache hits on standard error at the end, with --json as an object"},
    {"explain", 0, "FILE[:LINE]", CD_OPTION_FILE, AT(explain), NULL, 0,
     "Print the loop nest of one record and, beside it, which stores and feature groups carry its "
     "time (docs/reference/explain.md)"},
    {"strict", 0, NULL, CD_OPTION_FLAG, AT(strict), NULL, 0,
     "Stop at the first line that cannot be scored"},
    {"export", 0, "FORM", CD_OPTION_WORD, AT(export_to), CD_EXPORTS, 0,
     "Write the model in another form, safetensors (networks), onnx (the ensemble) or xgboost "
     "(trees), and stop (docs/reference/export.md)"},
    {"member", 0, "N", CD_OPTION_INT, AT(member), "0..1000", 0,
     "With --export: this one of the header's model.members (default: all)"},
    {"out", 0, "FILE", CD_OPTION_OUTPUT, AT(out), NULL, 0, "With --export: file to write"},
    {"info", 0, NULL, CD_OPTION_FLAG, AT(info), NULL, 0,
     "Print what the model is: devices, training, errors, version. With --json its whole header, "
     "one JSON object"},
};

static cdmpp_status check_stream(const options *o, const cd_cli_args *said, cdmpp_err *err) {
    const bool packed = o->format == CD_SERVE_PACKED;
    if (said->operand.n) return CD_FAIL(err, EUSAGE, "--stream reads standard input and no files");
    if (o->explain || o->strict || (o->measured.n && !o->operators))
        return CD_FAIL(err, EUSAGE,
                       "--stream goes without --explain, --strict and, of records, --measured");
    if (o->operators && (o->eval || o->profile || o->nearest || o->format > 0 || o->batch >= 0 ||
                         o->max_delay_ms >= 0 || o->cache >= 0 || o->jobs > 0 || o->task.n))
        return CD_FAIL(err, EUSAGE,
                       "--stream --operators takes --cost-model, --measured, --device, --devices, "
                       "--json and --verbose alone");
    if (o->eval && o->format > 0)
        return CD_FAIL(err, EUSAGE,
                       "--eval reads the costs of records, which only --format ndjson has");
    if (o->profile && !strcmp(o->profile, "two-stage") && !packed)
        return CD_FAIL(err, EUSAGE,
                       "--profile two-stage compares the candidates of one task: with --stream "
                       "only in --format packed");
    return CDMPP_OK;
}

/* The modes that need least are decided first: --info and --export read no records, --stream may
 * have no tasks. What is left is records. */
static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    options *o = to;
    if (!o->from != !o->to) return CD_FAIL(err, EUSAGE, "--from and --to go together");
    if (o->from && (o->info || o->stream || o->explain || o->export_to >= 0))
        return CD_FAIL(err, EUSAGE, "--from and --to read tables or records");
    if (o->from && !o->operators && (o->device || o->eval))
        return CD_FAIL(err, EUSAGE, "--from and --to of records go without --device and --eval");
    if (!o->model && o->operators && !o->from) o->model = cd_default_model_llm(&o->arena);
    if (!o->model && o->operators && !o->from)
        return CD_FAIL(err, EUSAGE, "--cost-model is missing");
    if (!o->model && !o->operators) {
        CD_TRY(predict_default_model(
            &(cd_predict_asked){o->device, o->devices, o->explain, &said->operand}, &o->arena,
            &o->model, err));
        o->default_model = true;
    }
    if (o->export_to < 0 && (o->out || o->member >= 0))
        return CD_FAIL(err, EUSAGE, "--out and --member go with --export");
    if (o->export_to >= 0 && (!o->out || o->operators || said->operand.n))
        return CD_FAIL(err, EUSAGE,
                       o->out ? "--export reads no records, and no model of operators"
                              : "--out is missing");
    if (o->info || o->export_to >= 0) return CDMPP_OK;
    if (o->stream) return check_stream(o, said, err);
    if (o->format >= 0 || o->batch >= 0 || o->max_delay_ms >= 0 || o->cache >= 0 || o->verbose)
        return CD_FAIL(err, EUSAGE,
                       "--format, --batch, --max-delay-ms, --cache and --verbose go with --stream");
    if ((o->measured.n || o->nearest) && (o->explain || o->from))
        return CD_FAIL(err, EUSAGE, "--measured and --nearest go without --explain and --from");
    if (o->nearest && o->operators)
        return CD_FAIL(err, EUSAGE, "--nearest goes without --operators");
    if (!o->operators && !o->task.n) return CD_FAIL(err, EUSAGE, "--tasks is missing");
    if (o->explain)
        return o->operators || said->operand.n
                   ? CD_FAIL(err, EUSAGE, "--explain takes one record and no other input")
                   : CDMPP_OK;
    if (!said->operand.n) return CD_FAIL(err, EUSAGE, "no records to read");
    return CDMPP_OK;
}

static const char *const group[] = {"Records", "Requests"};
static const char *const use[] = {
    "--cost-model FILE --tasks FILE [OPTION...] LOG|FOLDER...",
    "--cost-model FILE --stream [--tasks FILE] [OPTION...]",
    "--cost-model FILE --stream --operators [--measured FOLDER] [OPTION...]",
    "--cost-model FILE --tasks FILE --explain FILE[:LINE]",
    "--operators --cost-model FILE [OPTION...] TABLE|FOLDER...",
    "--operators --from NAME --to NAME [--cost-model FILE] [OPTION...] TABLE|FOLDER...",
    "--cost-model FILE --export FORM --out FILE",
    "--cost-model FILE --info",
    NULL};
static const char *const example[] = {
    "How good is it on new measurements",
    "cdmpp-predict --cost-model epyc.cdmpp --tasks network_info --eval new.json >predicted.jsonl",
    "From a pipe",
    "zcat new.json.gz | cdmpp-predict --cost-model epyc.cdmpp --tasks network_info -",
    "Where does the time of line 7 go",
    "cdmpp-predict --cost-model epyc.cdmpp --tasks network_info --explain new.json:7",
    "For another program: a JSON object a line, an answer each",
    "cdmpp-predict --cost-model epyc.cdmpp --tasks network_info --stream --profile tuner",
    "What is in a model file",
    "cdmpp-predict --cost-model epyc.cdmpp --info",
    NULL};
static const char *const see[] = {"cdmpp-train(1)", "cdmpp-extract(1)", NULL};
static const cd_option_usual usual[] = {
    {"cost-model", "Cost model (default: the installed one)"},
    {"tasks", "Task definitions: a file or a folder"},
    {"device", "Device of records that name none"},
    {"eval", "Also the measured time and the error"},
    {"measured", "Programs measured on the same device"},
    {"explain", "Where the time of a program goes"},
    {"operators", "The files are tables of operators"},
    {"stream", "Answer requests on standard input"},
    {"jobs", "Threads (default: one per CPU)"},
    {"info", "What the model is"},
    {"export", "Write the model in another form"},
    {NULL, NULL},
};

static const cd_command self = {
    "cdmpp-predict",
    "predict the latency of every record of measure logs",
    use,
    "Writes one JSON object a line, in the order of the input: the file, the line, the workload "
    "and the latency in seconds, "
    "with an interval and a flag for programs unlike those that the model was trained on. \"-\" is "
    "standard input.\n\n"
    "latency_s is the predicted time. low_s to high_s holds the true time in 90 % of cases. "
    "rel_std is the standard deviation of ln(time), so how uncertain the answer is. "
    "out_of_range is true for a program unlike those of the training: its interval is as wide as "
    "errors on such programs were, and null where nothing tells. With --eval, measured_s is the "
    "measured time, and error is latency_s / measured_s - 1. "
    "In the summary of --eval, MAPE is the mean of |error| and median the middle one. RMSE(log) "
    "and MAE(log) are of ln(latency_s / measured_s). "
    "Spearman, pairwise and top-k are of the order of the programs of one task; \"-\" stands where "
    "no task has two programs.\n\n"
    "A line that cannot be scored gets an object with its error, the others are scored, and the "
    "exit status is 3. With --json "
    "there are no lines, only one object with the counts and, with --eval, the figures.",
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

enum { CACHE = 65536 };

static volatile sig_atomic_t stop;
/* Files end before their next line. A read of standard input may wait for ever, so the input
 * becomes empty. The second signal kills. */
static void on_signal(int sig) {
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0) (void)dup2(null, STDIN_FILENO);
    stop = sig;
}

/* A closed output pipe ends the process silently, even if the parent process ignores SIGPIPE. */
static void take_signals(void) {
    struct sigaction act = {.sa_handler = on_signal};
    sigset_t set;
    act.sa_flags = (int)SA_RESETHAND; /* and no SA_RESTART */
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Without a row, and where --eval asks for figures without one of them, the command has failed, as
 * an extraction without a record has. */
cdmpp_status cd_predict_no_figures(size_t rows, size_t scored, cdmpp_err *err) {
    if (!rows) return CD_FAIL(err, ENODATA, "no row was scored: the input is empty");
    if (!scored) return CD_FAIL(err, ENODATA, "no row was scored: none of %zu could be", rows);
    return CD_FAIL(err, ENODATA, "--eval: none of %zu scored rows has a measured time", scored);
}

/* ---- records ---- */
/* Both GPUs of --from and --to, what --nearest goes by, peaks of devices. Only for peaks a file
 * that nobody named may be missing. The caller frees the table. */
static cdmpp_status ends_of(const options *o, cd_stream_options *so, cd_device_table **devices,
                            cdmpp_err *err) {
    const cdmpp_status st = cd_predict_devices(o->devices, o->log, devices, err);
    so->devices = *devices;
    so->nearest = o->nearest;
    if (st && (o->from || o->nearest || o->devices || st != CDMPP_EIO)) return st;
    if (!o->from) return CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_device_table_find(*devices, o->from, &so->from, err), "--from"));
    return cd_err_key(err, cd_device_table_find(*devices, o->to, &so->to, err), "--to");
}

static cdmpp_status learn(const options *o, cd_stream *s, size_t *bad, cdmpp_err *err) {
    size_t used = 0;
    if (!o->measured.n) return CDMPP_OK;
    const cdmpp_status st = cd_stream_measured(s, &o->measured, o->log, &used, bad, err);
    if (!st)
        cd_log_put(o->log, CD_LOG_INFO, "the answers are corrected by %zu records of --measured",
                   used);
    return st;
}

static cdmpp_status score(options *o, const cd_model *m, const cd_task_registry *tasks, size_t *bad,
                          cdmpp_err *err) {
    cd_stream_options so = {.device = o->device,
                            .eval = o->eval,
                            .strict = o->strict,
                            .silent = o->json,
                            .adapt = o->measured.n > 0,
                            .stop = &stop};
    size_t refused = 0;
    cd_device_table *devices = NULL;
    cd_threads *pool = NULL;
    cd_stream *s = NULL;
    cd_metric metrics;
    cd_buf b = {0};
    const cd_metric *eval = o->eval ? &metrics : NULL;
    cdmpp_status st = ends_of(o, &so, &devices, err);
    if (!st) st = cd_threads_new(o->jobs, &pool, err);
    if (!st) st = cd_stream_new(m, tasks, &so, pool, stdout, &s, err);
    if (!st) st = learn(o, s, &refused, err);
    if (!st) {
        st = cd_stream_inputs(s, &o->input, err);
        if (!st && eval) st = cd_stream_metrics(s, &metrics, err);
        if (!st) cd_stream_print_log(cd_stream_counts(s), eval, o->log);
        if (!st) predict_say_other(m, o->model, cd_stream_counts(s), o->log);
        if (!st && o->json) {
            cd_stream_print_json(&b, cd_stream_counts(s), eval);
            st = cd_command_print(&b, err);
        }
        *bad = refused + cd_stream_counts(s)->bad;
    }
    if (!st && (eval ? !eval->n : !cd_stream_counts(s)->lines))
        st = cd_predict_no_figures(cd_stream_counts(s)->lines, cd_stream_counts(s)->scored, err);
    cd_stream_free(s);
    cd_threads_free(pool);
    cd_device_table_free(devices);
    return st;
}

/* `line` borrows path and text, so they are freed last. */
static cdmpp_status explain(const options *o, const cd_model *m, const cd_task_registry *tasks,
                            cdmpp_err *err) {
    cd_buf path = {0}, text = {0}, b = {0};
    cd_explanation e;
    long number;
    cd_device_table *devices = NULL;
    /* both are filled in part when it fails */
    cdmpp_status st = cd_extract_line(o->explain, &path, &number, &text, err);
    /* exact names alone */
    if (!st && (st = cd_predict_devices(o->devices, o->log, &devices, err)) == CDMPP_EIO &&
        !o->devices)
        st = CDMPP_OK;
    if (!st) {
        const cd_predict_line line = {text.p ? text.p : "", text.n, path.p, number};
        st = cd_explain(m, tasks,
                        &(cd_device_match_options){.device = o->device, .devices = devices}, &line,
                        &e, err);
        if (!st && o->json) cd_explain_json(&b, &e, &line);
        else if (!st) cd_explain_text(&b, &e);
        cd_explain_free(&e);
    }
    if (!st) st = cd_command_print(&b, err);
    cd_device_table_free(devices);
    cd_buf_free(&b);
    cd_buf_free(&path);
    cd_buf_free(&text);
    return st;
}

static cdmpp_status pick_profile(const options *o, const cd_model **m, cdmpp_err *err) {
    if (!o->profile || !strcmp(o->profile, "full")) return CDMPP_OK;
    if (strcmp(o->profile, "tuner") != 0)
        return CD_FAIL(err, EUSAGE,
                       "--profile: expected full or tuner, found '%.60s' (two-stage is for batches "
                       "of one task, see cdmpp.h)",
                       o->profile);
    *m = cd_model_tuner(*m);
    return *m ? CDMPP_OK
              : CD_FAIL(err, EMODEL, "no profile tuner: the model was trained without model.tuner");
}

static cdmpp_status with_tasks(options *o, const cd_model *m, size_t *bad, cdmpp_err *err) {
    cd_task_registry *tasks = NULL;
    cdmpp_status st = cd_task_registry_new(&tasks, err);
    if (!st) st = cd_task_registry_load_all(tasks, o->task.v, o->task.n, o->log, err);
    if (!st) st = pick_profile(o, &m, err);
    if (!st) cd_score_warn(m, o->model, o->log);
    if (!st) st = o->explain ? explain(o, m, tasks, err) : score(o, m, tasks, bad, err);
    cd_task_registry_free(tasks);
    return st;
}

static cdmpp_status write_export(const options *o, const cd_model *m, cdmpp_err *err) {
    cd_buf b = {0};
    if (cd_model_here(m))
        cd_log_put(o->log, CD_LOG_WARNING,
                   "the export is the model alone, without its correction for %s",
                   cd_model_here(m)->cpu);
    if (cd_model_order(m) && o->export_to != CD_EXPORT_ONNX)
        cd_log_put(
            o->log, CD_LOG_WARNING,
            "the export is of members for the seconds, without those for the order (model.order)");
    cdmpp_status st = cd_export_model(m, (cd_export_form)o->export_to, o->member, &b, err);
    if (!st) st = cd_file_write(o->out, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status records(options *o, size_t *bad, cdmpp_err *err) {
    cd_model *m = NULL;
    bool is = false;
    if (o->info) CD_TRY(cd_predict_operators_info(o->model, o->json, &is, err));
    if (is) return CDMPP_OK;
    CD_TRY(cd_model_load(o->model, &m, err));
    cdmpp_status st = CDMPP_OK;
    if (o->info) st = cd_predict_info(o->model, cd_model_header(m), o->json, err);
    else st = o->export_to >= 0 ? write_export(o, m, err) : with_tasks(o, m, bad, err);
    cd_model_free(m);
    return st;
}

/* ---- --operators ---- */
/* What is known of the destination, for --from with --eval: all measured rows of it. Bad lines are
 * told when they are scored. */
static cdmpp_status read_truth(const options *o, const cd_device_table *devices,
                               cd_library_op_data *truth, cdmpp_err *err) {
    const char *only[] = {o->to};
    const cd_library_op_filter f = {.devices = {1, only}};
    for (size_t i = 0; o->from && o->eval && i < o->input.n; i++)
        CD_TRY(cd_library_op_data_add(truth, o->input.v[i], devices, &f, NULL, NULL, err));
    return CDMPP_OK;
}

/* The tables of errors; with a model and --from those of the closed forms follow. */
static cdmpp_status print_errors(const options *o, cd_library_op_stream *s, bool model,
                                 cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = cd_library_op_score_text(cd_library_op_stream_score(s), &b, err);
    if (!st && o->from && model) {
        cd_buf_puts(&b, "closed forms:\n");
        st = cd_library_op_score_text(cd_library_op_stream_closed(s), &b, err);
    }
    if (!st) cd_log_lines(o->log, CD_LOG_INFO, b.p);
    cd_buf_free(&b);
    return st;
}

static void warn_rows(const options *o, const cd_library_op_stream *s) {
    const size_t bad = cd_library_op_stream_bad(s);
    if (bad)
        cd_log_put(o->log, CD_LOG_WARNING, "%zu of %zu rows could not be scored", bad,
                   cd_library_op_stream_rows(s));
}

static cdmpp_status no_rows(const options *o, const cd_library_op_stream *s, cdmpp_err *err) {
    const size_t other = cd_library_op_stream_other(s);
    if (other)
        return CD_FAIL(err, ENODATA, "no row was scored: of %zu none is of %s", other,
                       o->from ? o->from : "the device");
    return cd_predict_no_figures(0, 0, err);
}

/* Figures are printed before the object with --json and before the warning; a stop by a signal is
 * an error, so nothing of this is printed then. */
static cdmpp_status score_operators(const options *o, const cd_library_op_model *m, size_t *bad,
                                    cdmpp_err *err) {
    cd_device_table *devices = NULL;
    cd_library_op_stream *s = NULL;
    cd_library_op_data truth = {0};
    const cd_library_op_stream_options so = {.device = o->device,
                                             .from = o->from,
                                             .to = o->to,
                                             .truth = &truth,
                                             .eval = o->eval,
                                             .strict = o->strict,
                                             .silent = o->json,
                                             .stop = &stop};
    cd_buf json = {0};
    cdmpp_status st = cd_predict_devices(o->devices, o->log, &devices, err);
    if (!st) st = cd_library_op_stream_new(m, devices, &so, stdout, &s, err);
    if (!st) st = read_truth(o, devices, &truth, err);
    for (size_t i = 0; !st && i < o->input.n; i++)
        st = cd_library_op_stream_file(s, o->input.v[i], err);
    if (!st && stop)
        st = CD_FAIL(err, EINTERRUPTED, "after %zu rows", cd_library_op_stream_rows(s));
    const bool figures = !st && o->eval && cd_library_op_stream_score(s)->n;
    if (figures) st = print_errors(o, s, m != NULL, err);
    if (!st && o->json) st = cd_library_op_stream_print_json(s, &json, err);
    if (!st && o->json) st = cd_command_print(&json, err);
    if (!st) *bad = cd_library_op_stream_bad(s);
    if (!st) warn_rows(o, s);
    if (!st && !cd_library_op_stream_rows(s)) st = no_rows(o, s, err);
    if (!st && o->eval && !figures)
        st = cd_predict_no_figures(cd_library_op_stream_rows(s),
                                   cd_library_op_stream_rows(s) - *bad, err);
    cd_buf_free(&json);
    cd_library_op_stream_free(s);
    cd_library_op_data_free(&truth);
    cd_device_table_free(devices);
    return st;
}

static cdmpp_status operators(options *o, size_t *bad, cdmpp_err *err) {
    cd_library_op_model *m = NULL;
    bool is = false;
    CD_TRY(predict_tables(&o->input, &o->arena, &o->input, err));
    const cd_predict_llm llm = {.model = o->model,
                                .device = o->device,
                                .devices = o->devices,
                                .measured = &o->measured,
                                .input = &o->input,
                                .eval = o->eval,
                                .json = o->json,
                                .strict = o->strict,
                                .info = o->info,
                                .scales = o->from != NULL,
                                .stream = o->stream,
                                .verbose = o->verbose,
                                .log = o->log,
                                .stop = &stop};
    if (o->model) CD_TRY(cd_predict_llm_operators(&llm, &is, bad, err));
    if (is) return CDMPP_OK;
    if (o->stream)
        return CD_FAIL(err, EUSAGE,
                       "--stream --operators takes a model of operators of language models");
    if (o->measured.n)
        return CD_FAIL(err, EUSAGE,
                       "--measured goes with --operators only where the model is one of operators "
                       "of language models");
    cdmpp_status st = o->model ? cd_library_op_model_load(o->model, &m, err) : CDMPP_OK;
    if (!st && o->info) st = cd_predict_info(o->model, cd_library_op_model_header(m), o->json, err);
    else if (!st) st = score_operators(o, m, bad, err);
    cd_library_op_model_free(m);
    return st;
}

/* ---- --stream ---- */
static void print_counts(const options *o, const cd_serve_stats *n) {
    cd_buf b = {0};
    if (o->json) cd_serve_print_json(&b, n);
    else if (o->verbose) cd_serve_print_log(n, o->log);
    if (b.p) fputs(b.p, stderr);
    cd_buf_free(&b);
}

/* Counts are printed after an error too. */
static cdmpp_status serve(const options *o, const cdmpp_model *m, const cdmpp_tasks *tasks,
                          size_t *bad, cdmpp_err *err) {
    const cdmpp_options opt = {.size = sizeof opt,
                               .device = o->device,
                               .profile = o->profile,
                               .nearest_device = o->nearest,
                               .devices_file = o->devices,
                               .nthreads = o->jobs > 0 ? o->jobs : 1,
                               .cache = o->cache < 0 ? CACHE : (size_t)o->cache};
    const cd_serve_options so = {.in = STDIN_FILENO,
                                 .out = STDOUT_FILENO,
                                 .format =
                                     o->format < 0 ? CD_SERVE_NDJSON : (cd_serve_format)o->format,
                                 .batch = o->batch < 0 ? 0 : (size_t)o->batch,
                                 .max_delay_ms = o->max_delay_ms,
                                 .costs = o->eval,
                                 .profile = o->profile,
                                 .stop = &stop};
    cdmpp_context *c = NULL;
    cd_serve_stats stats;
    CD_TRY(cdmpp_context_new(m, tasks, &opt, &c, err));
    cd_score_warn_header(cdmpp_model_info(m), o->model, o->log);
    const cdmpp_status st = cd_serve(c, m, tasks, &so, &stats, err);
    print_counts(o, &stats);
    *bad = stats.bad;
    cdmpp_context_free(c);
    return st;
}

static cdmpp_status requests(const options *o, size_t *bad, cdmpp_err *err) {
    cdmpp_model *m = NULL;
    cdmpp_tasks *tasks = NULL;
    cdmpp_status st = cdmpp_model_load(o->model, &m, err);
    if (!st && o->task.n) st = cdmpp_tasks_new(&tasks, err);
    for (size_t i = 0; !st && i < o->task.n; i++) st = cdmpp_tasks_load(tasks, o->task.v[i], err);
    for (size_t i = 0; tasks && cdmpp_tasks_warning(tasks, i); i++)
        cd_log_err(o->log, CD_LOG_WARNING, cdmpp_tasks_warning(tasks, i));
    if (!st) st = serve(o, m, tasks, bad, err);
    cdmpp_tasks_free(tasks);
    cdmpp_model_free(m);
    return st;
}

/* Exit status 3: done, but some lines could not be scored. */
static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    options *o = to;
    char what[CD_DEFAULT_MODEL_SAID];
    size_t bad = 0;
    o->input = r->said.operand;
    o->json = r->said.json;
    o->log = &r->log;
    if (o->default_model)
        cd_log_put(o->log,
                   strstr(cd_default_model_what(o->model, what), "not used") ? CD_LOG_WARNING
                                                                             : CD_LOG_INFO,
                   "cost model: %s, %s", o->model, what);
    take_signals();
    const cdmpp_status st = o->operators ? operators(o, &bad, err)
                            : o->stream  ? requests(o, &bad, err)
                                         : records(o, &bad, err);
    cd_arena_free(&o->arena);
    r->exit_code = bad ? 3 : 0;
    return st;
}

int main(int argc, char **argv) {
    options o = {
        .export_to = -1, .member = -1, .batch = -1, .max_delay_ms = -1, .format = -1, .cache = -1};
    return cd_command_main(&self, argc, argv, &o, run);
}
