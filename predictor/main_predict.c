/* cdmpp-predict -- latencies of measure records, one JSON object a line. */
#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "dataset/inputs.h"
#include "predictor/main_predict.h"
#include "predictor/stream.h"

typedef struct {
    const char *model, *device, *devices;
    const char **task, **input; /* (n) */
    size_t n_task, n_input;
    int jobs;
    bool eval, json, info, operators, strict, quiet;
    cd_log log;
} options;

enum { OPT_MODEL = 256, OPT_TASKS, OPT_DEVICE, OPT_EVAL, OPT_INFO, OPT_STRICT, OPT_OPERATORS, OPT_DEVICES, OPT_JSON };
static const struct argp_option table[] = {
    {"model", OPT_MODEL, "FILE", 0, "Model file of cdmpp-train", 0},
    {"tasks", OPT_TASKS, "FILE", 0, "Task definitions: all_tasks.pkl, *.task.pkl, our text form, or a folder of these (repeatable)", 0},
    {"device", OPT_DEVICE, "NAME", 0, "Device of all records (default: -model= of the target, else the folder of the file)", 0},
    {"operators", OPT_OPERATORS, NULL, 0, "The files are tables of library operators (docs/operators.md), the model is one of operators", 0},
    {"devices", OPT_DEVICES, "FILE", 0, "With --operators: descriptions of devices (default: beside the installed configurations)", 0},
    {"eval", OPT_EVAL, NULL, 0, "Also the measured median and the relative error; a summary on standard error", 0},
    {"json", OPT_JSON, NULL, 0, "With --eval: not a line for each record but one JSON object with the figures", 0},
    {"jobs", 'j', "N", 0, "Threads (default: one per CPU); output and order do not depend on it", 0},
    {"strict", OPT_STRICT, NULL, 0, "Stop at the first line that cannot be scored", 0},
    {"info", OPT_INFO, NULL, 0, "Print the model's header, one JSON object, and stop", 1},
    {"quiet", 'q', NULL, 0, "Nothing but errors on standard error", 2},
    {0},
};

static error_t parse_one(int key, char *arg, struct argp_state *state) {
    options *o = state->input;
    char rest;
    switch (key) {
    case OPT_MODEL: o->model = arg; break;
    case OPT_TASKS: o->task[o->n_task++] = arg; break;
    case OPT_DEVICE: o->device = arg; break;
    case OPT_EVAL: o->eval = true; break;
    case OPT_INFO: o->info = true; break;
    case OPT_JSON: o->json = true; break;
    case OPT_OPERATORS: o->operators = true; break;
    case OPT_DEVICES: o->devices = arg; break;
    case OPT_STRICT: o->strict = true; break;
    case 'q': o->quiet = true; break;
    case 'j':
        if (sscanf(arg, "%d%c", &o->jobs, &rest) != 1 || o->jobs < 1 || o->jobs > 1024)
            argp_error(state, "-j: expected 1..1024, found %s", arg);
        break;
    case ARGP_KEY_ARG: o->input[o->n_input++] = arg; break;
    case ARGP_KEY_END:
        if (!o->model) argp_error(state, "--model is missing");
        if (!o->info && !o->operators && !o->n_task) argp_error(state, "--tasks is missing");
        if (o->json && (!o->eval || o->operators)) argp_error(state, "--json goes with --eval of records");
        if (!o->info && !o->n_input) argp_error(state, "no records to read");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* Every file of the arguments, in order. "-" is standard input. */
static cdmpp_status each_input(const options *o, cd_stream *s, cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; !st && i < o->n_input; i++) {
        cd_inputs in = {0};
        const cd_extract one = {.input = &o->input[i], .n_input = 1};
        if (!strcmp(o->input[i], "-")) {
            st = cd_stream_file(s, "-", err);
            continue;
        }
        st = cd_inputs_list(&one, &in, err);
        for (size_t k = 0; !st && k < in.n; k++) st = cd_stream_file(s, in.path[k], err);
        cd_inputs_free(&in);
    }
    return st ? st : cd_stream_end(s, err);
}

static void summary(options *o, const cd_stream_stats *n, const cd_metrics *m) {
    cd_buf b = {0};
    if (o->eval) cd_metrics_text(&b, "evaluation", "all records", m);
    if (b.p) cd_log_put(&o->log, CD_LOG_INFO, "%.*s", (int)b.n - 1, b.p);
    cd_buf_free(&b);
    if (o->eval && n->unmeasured)
        cd_log_put(&o->log, CD_LOG_INFO, "%zu scored records whose measurement failed are not in these figures", n->unmeasured);
    if (!n->bad) return;
    cd_log_put(&o->log, CD_LOG_WARNING, "%zu of %zu lines could not be scored:", n->bad, n->lines);
    for (int k = 1; k < CDMPP_STATUS_COUNT; k++)
        if (n->reason[k]) cd_log_put(&o->log, CD_LOG_WARNING, "%10zu  %s", n->reason[k], cdmpp_status_name((cdmpp_status)k));
}

/* {"schema":"cdmpp.evaluation","lines":9,...,"evaluation":{"n":8,"mape":...}} */
static void put_json(const cd_stream_stats *n, const cd_metrics *m) {
    cd_buf b = {0};
    cd_buf_putf(&b, "{\"schema\":\"cdmpp.evaluation\",\"lines\":%zu,\"scored\":%zu,\"unmeasured\":%zu,\"out_of_range\":%zu,\"inside_interval\":%zu,",
                n->lines, n->scored, n->unmeasured, n->out_of_range, n->inside);
    cd_buf_putf(&b, "\"bad\":%zu,\"reasons\":{", n->bad);
    for (int k = 1, any = 0; k < CDMPP_STATUS_COUNT; k++)
        if (n->reason[k]) cd_buf_putf(&b, "%s\"%s\":%zu", any++ ? "," : "", cdmpp_status_name((cdmpp_status)k), n->reason[k]);
    cd_buf_puts(&b, "},\"evaluation\":");
    cd_metrics_json(&b, m);
    cd_buf_puts(&b, "}");
    if (!b.oom) puts(b.p);
    cd_buf_free(&b);
}

static cdmpp_status score(options *o, const cd_model *m, const cd_tasks *tasks, size_t *bad, cdmpp_err *err) {
    cd_threads *pool = NULL;
    cd_stream *s = NULL;
    cd_metrics metrics;
    cdmpp_status st = cd_threads_new(o->jobs, &pool, err);
    if (!st) st = cd_stream_new(m, tasks, o->device, pool, stdout, &s, err);
    if (!st) {
        cd_stream_options(s, o->eval, o->strict);
        if (o->json) cd_stream_silence(s);
        st = each_input(o, s, err);
        if (!st && o->eval) st = cd_stream_metrics(s, &metrics, err);
        if (!st) summary(o, cd_stream_counts(s), &metrics);
        if (!st && o->json) put_json(cd_stream_counts(s), &metrics);
        *bad = cd_stream_counts(s)->bad;
    }
    cd_stream_free(s);
    cd_threads_free(pool);
    return st;
}

static cdmpp_status run(options *o, size_t *bad, cdmpp_err *err) {
    cd_model *m = NULL;
    cd_tasks *tasks = NULL;
    const cd_main_operators op = {o->model, o->devices, o->input, o->n_input, o->info, {o->device, o->eval, o->strict}, &o->log};
    if (o->operators) return cd_main_predict_operators(&op, bad, err);
    cdmpp_status st = cd_model_load(o->model, &m, err);
    if (!st && o->info) {
        puts(cd_model_header(m));
    } else if (!st) {
        st = cd_tasks_new(&tasks, err);
        for (size_t i = 0; !st && i < o->n_task; i++) st = cd_tasks_load(tasks, o->task[i], err);
        if (!st) st = score(o, m, tasks, bad, err);
    }
    cd_tasks_free(tasks);
    cd_model_free(m);
    if (!st && (fflush(stdout) != 0 || ferror(stdout))) st = CD_FAIL(err, EIO, "cannot write to standard output");
    return st;
}

int main(int argc, char **argv) {
    static const struct argp parser = {table, parse_one, "FILE|FOLDER...",
                                       "Predict the latency of every record of measure logs.", NULL, NULL, NULL};
    options o = {.task = calloc((size_t)argc + 1, sizeof *o.task), .input = calloc((size_t)argc + 1, sizeof *o.input)};
    cdmpp_err err = {0};
    size_t bad = 0;
    if (!o.task || !o.input) return cdmpp_exit_code(CDMPP_ENOMEM);
    argp_program_version = "cdmpp-predict (cdmpp) " CDMPP_VERSION;
    argp_err_exit_status = cdmpp_exit_code(CDMPP_EUSAGE);
    argp_parse(&parser, argc, argv, 0, NULL, &o);
    cd_log_init(&o.log, "cdmpp-predict", stderr);
    if (o.quiet) o.log.level = CD_LOG_ERROR;
    const cdmpp_status st = run(&o, &bad, &err);
    if (st) cd_log_err(&o.log, CD_LOG_ERROR, &err);
    cd_log_done(&o.log);
    free(o.task);
    free(o.input);
    return st ? cdmpp_exit_code(st) : bad ? 3 : 0;
}
