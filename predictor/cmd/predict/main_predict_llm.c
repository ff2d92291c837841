/* cdmpp-predict --operators with a model of operators of language models: tables of questions, and
 * of what was measured. */
#include <stdio.h>
#include <unistd.h>

#include "base/io/io.h"
#include "predictor/cmd/predict/main_predict.h"
#include "predictor/serve/serve.h"

static void on_bad(void *ctx, const cdmpp_err *err) { cd_log_err(ctx, CD_LOG_WARNING, err); }

/* Bad rows of the tables are told and count for the exit status. */
static cdmpp_status read_measured(const cd_predict_llm *o, const cd_device_table *devices,
                                  cd_llm_op_table *t, size_t *bad, cdmpp_err *err) {
    uint32_t empty;
    CD_TRY(cd_dict_add(&t->names, (cd_str){"", 0}, &empty, err));
    for (size_t i = 0; i < o->measured->n; i++)
        CD_TRY(cd_llm_op_table_add(t, o->measured->v[i], devices, NULL, on_bad, o->log, err));
    *bad = t->drop[CD_LLM_OP_DROP_BAD] + t->drop[CD_LLM_OP_DROP_TIME];
    if (t->drop[CD_LLM_OP_DROP_TIME])
        cd_log_put(o->log, CD_LOG_WARNING, "%zu measured rows left out: %s",
                   t->drop[CD_LLM_OP_DROP_TIME], cd_llm_op_drop_text(CD_LLM_OP_DROP_TIME));
    if (o->measured->n && !t->n)
        return cd_err_key(
            err,
            CD_FAIL(err, ENODATA,
                    "no row has a measured time that can be used, %zu could not be read", *bad),
            "--measured");
    CD_TRY(cd_llm_op_table_index(t, err));
    cd_llm_op_table_say(t, o->log);
    return CDMPP_OK;
}

/* Measured rows that no answer rests on: with which devices they are, as that is what most often
 * does not fit. */
static void warn_unused(const cd_predict_llm *o, const cd_llm_op_stream *s,
                        const cd_llm_op_table *t, const cd_device_table *devices) {
    enum { SHOWN = 4 };
    cd_buf b = {0};
    size_t n = 0;
    if (!t->n || cd_llm_op_stream_helped(s) || cd_llm_op_stream_rows(s) == cd_llm_op_stream_bad(s))
        return;
    for (size_t i = 0; i < cd_device_table_count(devices); i++) {
        const cd_device *d = cd_device_table_at(devices, i);
        if (cd_llm_op_table_device(t, d) >= 0 && n++ < SHOWN)
            cd_buf_putf(&b, "%s%s", b.n ? ", " : "", d->name);
    }
    cd_log_put(o->log, CD_LOG_WARNING,
               "--measured changes no answer: none of its %zu rows (of %s%s) is of the device, "
               "operator, stack and type of a question, near its sizes",
               t->n, b.n ? b.p : "no device", n > SHOWN ? ", ..." : "");
    cd_buf_free(&b);
}

static cdmpp_status print_llm(const cd_predict_llm *o, const cd_llm_op_stream *s, cdmpp_err *err) {
    const size_t rows = cd_llm_op_stream_rows(s), bad = cd_llm_op_stream_bad(s);
    const bool figures = o->eval && cd_llm_op_stream_scored(s);
    cd_buf b = {0};
    cdmpp_status st = figures ? cd_llm_op_stream_print_text(s, &b, err) : CDMPP_OK;
    if (!st && figures) cd_log_lines(o->log, CD_LOG_INFO, b.p);
    if (!st && figures && cd_llm_op_stream_own(s))
        cd_log_put(o->log, CD_LOG_WARNING,
                   "%zu of %zu rows are in --measured: they are answered with the time there, so "
                   "their error says nothing",
                   cd_llm_op_stream_own(s), cd_llm_op_stream_scored(s));
    cd_buf_clear(&b);
    if (!st && o->json) st = cd_llm_op_stream_print_json(s, &b, err);
    if (!st && o->json) st = cd_command_print(&b, err);
    cd_buf_free(&b);
    if (!st && bad)
        cd_log_put(o->log, CD_LOG_WARNING, "%zu of %zu rows could not be scored", bad, rows);
    if (!st && !rows) return cd_predict_no_figures(0, 0, err);
    return st || !o->eval || figures ? st : cd_predict_no_figures(rows, rows - bad, err);
}

static cdmpp_status score_llm(const cd_predict_llm *o, const cd_llm_op_model *m, size_t *bad,
                              cdmpp_err *err) {
    const cd_llm_op_stream_options so = {.device = o->device,
                                         .eval = o->eval,
                                         .strict = o->strict,
                                         .silent = o->json,
                                         .stop = o->stop,
                                         .warn = on_bad,
                                         .ctx = o->log};
    cd_device_table *devices = NULL;
    cd_llm_op_table t = {0};
    cd_llm_op_stream *s = NULL;
    cdmpp_status st = cd_predict_devices(o->devices, o->log, &devices, err);
    if (!st) st = read_measured(o, devices, &t, bad, err);
    if (!st) st = cd_llm_op_stream_new(m, &t, devices, &so, stdout, &s, err);
    for (size_t i = 0; !st && i < o->input->n; i++)
        st = cd_llm_op_stream_file(s, o->input->v[i], err);
    if (s) cd_llm_op_stream_say_new(s, o->log);
    if (!st && *o->stop)
        st = CD_FAIL(err, EINTERRUPTED, "after %zu rows", cd_llm_op_stream_rows(s));
    if (!st) warn_unused(o, s, &t, devices);
    if (!st) st = print_llm(o, s, err);
    if (!st) *bad += cd_llm_op_stream_bad(s);
    cd_llm_op_stream_free(s);
    cd_llm_op_table_free(&t);
    cd_device_table_free(devices);
    return st;
}

/* Counts are printed after an error too. */
static void print_counts(const cd_predict_llm *o, const cd_llm_op_requests_stats *n) {
    if (o->json)
        fprintf(stderr,
                "{\"schema\":\"cdmpp.stream\",\"command\":\"cdmpp-predict\",\"requests\":%zu,"
                "\"answered\":%zu,\"bad\":%zu}\n",
                n->asked, n->answered, n->bad);
    else if (o->verbose)
        cd_log_put(o->log, CD_LOG_INFO, "%zu requests, %zu operators answered, %zu bad", n->asked,
                   n->answered, n->bad);
}

/* --stream: questions on standard input. */
static cdmpp_status serve_llm(const cd_predict_llm *o, size_t *bad, cdmpp_err *err) {
    const cd_llm_op_oracle_options how = {.model = o->model,
                                          .devices_file = o->devices,
                                          .device = o->device,
                                          .measured = o->measured->v,
                                          .n_measured = o->measured->n,
                                          .bad = on_bad,
                                          .ctx = o->log};
    const cd_llm_op_requests_options so = {
        .in = STDIN_FILENO, .out = STDOUT_FILENO, .stop = o->stop};
    cd_llm_op_requests_stats n = {0};
    cd_llm_op_oracle oracle = {0};
    cdmpp_status st = cd_llm_op_oracle_open(&oracle, &how, err);
    if (!st) {
        cd_llm_op_table_say(&oracle.t, o->log);
        st = cd_llm_op_requests(&oracle, &so, &n, err);
        print_counts(o, &n);
    }
    *bad = n.bad + cd_llm_op_oracle_bad(&oracle);
    cd_llm_op_oracle_free(&oracle);
    return st;
}

cdmpp_status cd_predict_llm_operators(const cd_predict_llm *o, bool *is, size_t *bad,
                                      cdmpp_err *err) {
    cd_llm_op_model *m = NULL;
    char *data = NULL;
    size_t n = 0;
    CD_TRY(cd_file_read(o->model, 0, &data, &n, err));
    *is = cd_llm_op_model_is(data, n);
    cdmpp_status st = CDMPP_OK;
    if (*is && o->scales)
        st = CD_FAIL(err, EUSAGE,
                     "--from and --to go without a model of operators of language models");
    if (*is && !st && !o->stream)
        st = cd_err_at(err, cd_llm_op_model_from_bytes(data, n, &m, err), o->model, 0);
    cd_mem_free(data);
    if (*is && !st && o->stream) st = serve_llm(o, bad, err);
    else if (*is && !st && o->info) st = cd_predict_info(o->model, m->header, o->json, err);
    else if (*is && !st) st = score_llm(o, m, bad, err);
    cd_llm_op_model_free(m);
    return st;
}

cdmpp_status cd_predict_operators_info(const char *path, bool json, bool *is, cdmpp_err *err) {
    cd_llm_op_model *m = NULL;
    cd_library_op_model *library = NULL;
    char *data = NULL;
    size_t n = 0;
    cdmpp_status st = CDMPP_OK;
    *is = false;
    if (cd_file_read(path, 0, &data, &n, NULL)) return CDMPP_OK;
    const bool llm = !cd_llm_op_model_from_bytes(data, n, &m, NULL),
               other = !llm && !cd_library_op_model_load(path, &library, NULL);
    cd_mem_free(data);
    if (llm) st = cd_predict_info(path, m->header, json, err);
    if (other) st = cd_predict_info(path, cd_library_op_model_header(library), json, err);
    cd_llm_op_model_free(m);
    cd_library_op_model_free(library);
    *is = llm || other;
    return st;
}
