/* cdmpp-predict -- latencies of measure records, one JSON object a line. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "base/io/io.h"
#include "dataset/extract/extract.h"
#include "learner/export/export.h"
#include "predictor/cmd/predict/main_predict.h"
#include "predictor/serve/serve.h"

typedef struct {
    const char *model, *device, *devices, *explain, *out, *profile;
    cd_texts task, input;
    int jobs, export_to, member; /* -1: not asked */
    int batch, max_delay_ms, format, cache;
    bool eval, json, info, operators, strict, stream, nearest, verbose;
    cd_log *log;
} options;

#define AT(member) offsetof(options, member)
static const cd_option table[] = {
    {"model", 0, "FILE", CD_OPTION_FILE, AT(model), "*.cdmpp", 0, "Model file of cdmpp-train"},
    {"tasks", 0, "FILE", CD_OPTION_FILES, AT(task), NULL, 0, "Task definitions: all_tasks.pkl, *.task.pkl, our text form, or a folder of these"},
    {"device", 0, "NAME", CD_OPTION_TEXT, AT(device), NULL, 0, "Device of all records (default: -model= of the target, else the folder of the file)"},
    {"profile", 0, "NAME", CD_OPTION_TEXT, AT(profile), "full|tuner|two-stage", 0, "Who answers: full, the whole model (default), or tuner, the small network for schedule search; two-stage only with --format packed (docs/reference/model.md)"},
    {"operators", 0, NULL, CD_OPTION_FLAG, AT(operators), NULL, 0, "The files are tables of library operators (docs/reference/operators.md), the model is one of operators"},
    {"devices", 0, "FILE", CD_OPTION_FILE, AT(devices), "*.yaml", 0, "With --operators and --nearest: descriptions of devices (default: beside the installed configurations)"},
    {"eval", 0, NULL, CD_OPTION_FLAG, AT(eval), NULL, 0, "Also the measured median and the relative error; a summary on standard error. With --json: the figures alone, as one JSON object"},
    {"jobs", 'j', "N", CD_OPTION_INT, AT(jobs), "1..1024", 0, "Threads (default: one per CPU, with --stream 1); output and order do not depend on it"},
    {"stream", 0, NULL, CD_OPTION_FLAG, AT(stream), NULL, 1, "Answer requests on standard input, one after another (docs/reference/stream.md)"},
    {"format", 0, "FORM", CD_OPTION_WORD, AT(format), CD_SERVE_FORMATS, 1, "JSON objects a line (default), a table, or TVM's packed features"},
    {"batch", 0, "N", CD_OPTION_INT, AT(batch), "1..65536", 1, "Score at most so many requests at once (default: 256)"},
    {"max-delay-ms", 0, "N", CD_OPTION_INT, AT(max_delay_ms), "0..60000", 1, "Longest that a request waits for others to share its batch (default: 2)"},
    {"cache", 0, "N", CD_OPTION_INT, AT(cache), "0..100000000", 1, "Keep the answers of so many candidates for when they come again, 0.2 kB each (default: 65536, 0: none)"},
    {"nearest", 0, NULL, CD_OPTION_FLAG, AT(nearest), NULL, 1, "For a device that the model does not know the most similar one answers, and says so"},
    {"verbose", 'v', NULL, CD_OPTION_FLAG, AT(verbose), NULL, 1, "Counts and cache hits on standard error at the end, with --json as an object"},
    {"explain", 0, "FILE[:LINE]", CD_OPTION_FILE, AT(explain), NULL, 0, "Print the loop nest of one record and, beside it, which stores and feature groups carry its time (docs/reference/explain.md)"},
    {"strict", 0, NULL, CD_OPTION_FLAG, AT(strict), NULL, 0, "Stop at the first line that cannot be scored"},
    {"export", 0, "FORM", CD_OPTION_WORD, AT(export_to), CD_EXPORTS, 0, "Write the model in another form, safetensors (networks), onnx (the ensemble) or xgboost (trees), and stop (docs/reference/export.md)"},
    {"member", 0, "N", CD_OPTION_INT, AT(member), "0..1000", 0, "With --export: this one of the header's model.members (default: all)"},
    {"out", 0, "FILE", CD_OPTION_FILE, AT(out), NULL, 0, "With --export: file to write"},
    {"info", 0, NULL, CD_OPTION_FLAG, AT(info), NULL, 0, "Print the model's header, one JSON object, and stop"},
};

static cdmpp_status check_stream(const options *o, const cd_cli_args *said, cdmpp_err *err) {
    const bool packed = o->format == CD_SERVE_PACKED;
    if (said->operand.n) return CD_FAIL(err, EUSAGE, "--stream reads standard input and no files");
    if (o->operators || o->explain || o->strict) return CD_FAIL(err, EUSAGE, "--stream goes without --operators, --explain and --strict");
    if (o->eval && o->format > 0) return CD_FAIL(err, EUSAGE, "--eval reads the costs of records, which only --format ndjson has");
    if (o->profile && !strcmp(o->profile, "two-stage") && !packed)
        return CD_FAIL(err, EUSAGE, "--profile two-stage compares the candidates of one task: with --stream only in --format packed");
    return CDMPP_OK;
}

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    const options *o = to;
    if (!o->model) return CD_FAIL(err, EUSAGE, "--model is missing");
    if (o->export_to < 0 && (o->out || o->member >= 0)) return CD_FAIL(err, EUSAGE, "--out and --member go with --export");
    if (o->export_to >= 0 && (!o->out || o->operators || said->operand.n)) return CD_FAIL(err, EUSAGE, o->out ? "--export reads no records, and no model of operators" : "--out is missing");
    if (o->info || o->export_to >= 0) return CDMPP_OK;
    if (o->stream) return check_stream(o, said, err);
    if (o->format >= 0 || o->batch >= 0 || o->max_delay_ms >= 0 || o->cache >= 0 || o->nearest || o->verbose)
        return CD_FAIL(err, EUSAGE, "--format, --batch, --max-delay-ms, --cache, --nearest and --verbose go with --stream");
    if (!o->operators && !o->task.n) return CD_FAIL(err, EUSAGE, "--tasks is missing");
    if (o->explain) return o->operators || said->operand.n ? CD_FAIL(err, EUSAGE, "--explain takes one record and no other input") : CDMPP_OK;
    if (!said->operand.n) return CD_FAIL(err, EUSAGE, "no records to read");
    return CDMPP_OK;
}

static const char *const group[] = {"Records", "Requests"};
static const char *const use[] = {"--model FILE --tasks FILE [OPTION...] LOG|FOLDER...",
                                  "--model FILE --stream [--tasks FILE] [OPTION...]",
                                  "--model FILE --tasks FILE --explain FILE[:LINE]",
                                  "--operators --model FILE [OPTION...] TABLE...", "--model FILE --export FORM --out FILE", "--model FILE --info", NULL};
static const char *const example[] = {
    "How good is it on new measurements", "cdmpp-predict --model epyc.cdmpp --tasks network_info --eval new.json >predicted.jsonl",
    "From a pipe", "zcat new.json.gz | cdmpp-predict --model epyc.cdmpp --tasks network_info -",
    "Where does the time of line 7 go", "cdmpp-predict --model epyc.cdmpp --tasks network_info --explain new.json:7",
    "For another program: a JSON object a line, an answer each", "cdmpp-predict --model epyc.cdmpp --tasks network_info --stream --profile tuner",
    "What is in a model file", "cdmpp-predict --model epyc.cdmpp --info", NULL};
static const char *const see[] = {"cdmpp-train(1)", "cdmpp-extract(1)", NULL};
static const cd_command self = {
    "cdmpp-predict", "predict the latency of every record of measure logs", use,
    "Writes one JSON object a line, in the order of the input: the file, the line, the workload and the latency in seconds, "
    "with an interval and a flag for programs unlike those that the model was trained on. \"-\" is standard input.\n\n"
    "A line that cannot be scored gets an object with its error, the others are scored, and the exit status is 3. With --json "
    "there are no lines, only one object with the counts and, with --eval, the figures.",
    table, sizeof table / sizeof *table, group, "", example, NULL, see, NULL, check};

static volatile sig_atomic_t stop;
/* Files end before their next line. A read of standard input may wait for ever: it ends
 * there too. The second signal kills. */
static void on_signal(int sig) {
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0) (void)dup2(null, STDIN_FILENO);
    stop = sig;
}

static void take_signals(void) {
    struct sigaction act = {.sa_handler = on_signal};
    act.sa_flags = (int)SA_RESETHAND; /* and no SA_RESTART */
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
}

/* Every file of the arguments, in order. "-" is standard input. */
static cdmpp_status each_input(const options *o, cd_stream *s, cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; !st && i < o->input.n; i++) {
        cd_inputs in = {0};
        const cd_extract one = {.input = &o->input.v[i], .n_input = 1};
        if (!strcmp(o->input.v[i], "-")) {
            st = cd_stream_file(s, "-", err);
            continue;
        }
        st = cd_inputs_list(&one, &in, err);
        for (size_t k = 0; !st && k < in.n; k++) st = cd_stream_file(s, in.path[k], err);
        cd_inputs_free(&in);
    }
    CD_TRY(st ? st : cd_stream_end(s, err));
    return stop ? CD_FAIL(err, EINTERRUPTED, "after %zu lines", cd_stream_counts(s)->lines) : CDMPP_OK;
}

static void summary(options *o, const cd_stream_stats *n, const cd_metric *m) {
    cd_buf b = {0};
    if (o->eval) cd_metric_text(&b, "evaluation", "all records", m);
    if (b.p) cd_log_put(o->log, CD_LOG_INFO, "%.*s", (int)b.n - 1, b.p);
    cd_buf_free(&b);
    if (o->eval && n->unmeasured)
        cd_log_put(o->log, CD_LOG_INFO, "%zu scored records whose measurement failed are not in these figures", n->unmeasured);
    if (!n->bad) return;
    cd_log_put(o->log, CD_LOG_WARNING, "%zu of %zu lines could not be scored:", n->bad, n->lines);
    for (int k = 1; k < CDMPP_STATUS_COUNT; k++)
        if (n->reason[k]) cd_log_put(o->log, CD_LOG_WARNING, "%10zu  %s", n->reason[k], cdmpp_status_name((cdmpp_status)k));
}

/* {"schema":"cdmpp.evaluation","lines":9,...,"evaluation":{"n":8,"mape":...}} */
static cdmpp_status put_json(const cd_stream_stats *n, const cd_metric *m, cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_putf(&b, "{\"schema\":\"cdmpp.evaluation\",\"command\":\"cdmpp-predict\",\"lines\":%zu,\"scored\":%zu,\"unmeasured\":%zu,\"out_of_range\":%zu,\"inside_interval\":%zu,",
                n->lines, n->scored, n->unmeasured, n->out_of_range, n->inside);
    cd_buf_putf(&b, "\"bad\":%zu,\"reasons\":{", n->bad);
    for (int k = 1, any = 0; k < CDMPP_STATUS_COUNT; k++)
        if (n->reason[k]) cd_buf_putf(&b, "%s\"%s\":%zu", any++ ? "," : "", cdmpp_status_name((cdmpp_status)k), n->reason[k]);
    cd_buf_puts(&b, "},\"evaluation\":");
    if (m) cd_metric_json(&b, m);
    else cd_buf_puts(&b, "null");
    cd_buf_puts(&b, "}\n");
    return cd_command_print(&b, err);
}

static cdmpp_status score(options *o, const cd_model *m, const cd_task_registry *tasks, size_t *bad, cdmpp_err *err) {
    cd_threads *pool = NULL;
    cd_stream *s = NULL;
    cd_metric metrics;
    cdmpp_status st = cd_threads_new(o->jobs, &pool, err);
    if (!st) st = cd_stream_new(m, tasks, o->device, pool, stdout, &s, err);
    if (!st) {
        cd_stream_options(s, o->eval, o->strict);
        cd_stream_stop(s, &stop);
        if (o->json) cd_stream_silence(s);
        st = each_input(o, s, err);
        if (!st && o->eval) st = cd_stream_metrics(s, &metrics, err);
        if (!st) summary(o, cd_stream_counts(s), &metrics);
        if (!st && o->json) st = put_json(cd_stream_counts(s), o->eval ? &metrics : NULL, err);
        *bad = cd_stream_counts(s)->bad;
    }
    cd_stream_free(s);
    cd_threads_free(pool);
    return st;
}

static cdmpp_status write_export(const options *o, const cd_model *m, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = cd_export_model(m, (cd_export_form)o->export_to, o->member, &b, err);
    if (!st) st = cd_file_write(o->out, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status pick_profile(const options *o, const cd_model **m, cdmpp_err *err) {
    if (!o->profile || !strcmp(o->profile, "full")) return CDMPP_OK;
    if (strcmp(o->profile, "tuner") != 0)
        return CD_FAIL(err, EUSAGE, "--profile: expected full or tuner, found '%.60s' (two-stage is for batches of one task, see cdmpp.h)", o->profile);
    *m = cd_model_tuner(*m);
    return *m ? CDMPP_OK : CD_FAIL(err, EMODEL, "no profile tuner: the model was trained without model.tuner");
}

static cdmpp_status run(options *o, size_t *bad, cdmpp_err *err) {
    cd_model *m = NULL;
    cd_task_registry *tasks = NULL;
    const cd_main_operators op = {o->model, o->devices, o->input.v, o->input.n, o->info, o->json, {o->device, o->eval, o->strict, o->json, &stop}, o->log};
    if (o->operators) return cd_main_predict_operators(&op, bad, err);
    if (o->stream) return cd_main_predict_stream(&(cd_main_stream){.model = o->model, .task = o->task, .device = o->device, .devices = o->devices,
        .profile = o->profile, .nearest = o->nearest, .eval = o->eval, .verbose = o->verbose, .json = o->json, .jobs = o->jobs, .format = o->format,
        .batch = o->batch, .max_delay_ms = o->max_delay_ms, .cache = o->cache, .stop = &stop, .log = o->log}, bad, err);
    cdmpp_status st = cd_model_load(o->model, &m, err);
    if (!st && o->info) {
        puts(cd_model_header(m));
    } else if (!st && o->export_to >= 0) {
        st = write_export(o, m, err);
    } else if (!st) {
        st = cd_task_registry_new(&tasks, err);
        for (size_t i = 0; !st && i < o->task.n; i++) st = cd_task_registry_load(tasks, o->task.v[i], err);
        const cd_model *who = m;
        if (!st) st = pick_profile(o, &who, err);
        const cd_main_explain one = {who, tasks, o->explain, o->device, o->json};
        if (!st) st = o->explain ? cd_main_predict_explain(&one, err) : score(o, who, tasks, bad, err);
    }
    cd_task_registry_free(tasks);
    cd_model_free(m);
    if ((fflush(stdout) != 0 || ferror(stdout)) && !st) st = CD_FAIL(err, EIO, "cannot write to standard output");
    return st;
}

int main(int argc, char **argv) {
    options o = {.export_to = -1, .member = -1, .batch = -1, .max_delay_ms = -1, .format = -1, .cache = -1};
    cdmpp_err err = {0};
    size_t bad = 0;
    cd_command_run f;
    int code;
    if (!cd_command_begin(&f, &self, argc, argv, &o, &code)) return code;
    o.input = f.said.operand;
    o.json = f.said.json;
    o.log = &f.log;
    take_signals();
    const cdmpp_status st = run(&o, &bad, &err);
    if (st) cd_log_err(&f.log, CD_LOG_ERROR, &err);
    cd_command_end(&f);
    return st ? cdmpp_exit_code(st) : bad ? 3 : 0;
}
