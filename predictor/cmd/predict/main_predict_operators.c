/* main_predict_operators -- cdmpp-predict --operators. */
#include "predictor/cmd/predict/main_predict.h"

static cdmpp_status devices_of(const char *file, cd_log *log, cd_device_table **out, cdmpp_err *err) {
    cd_arena a = {0};
    cd_diag diag = {0};
    const char *path;
    cdmpp_status st = cd_device_table_path(&a, file, NULL, &path, err);
    if (!st) st = cd_device_table_load(path, &diag, out, err);
    if (st && diag.n) cd_log_lines(log, CD_LOG_ERROR, diag.text.p);
    cd_diag_free(&diag);
    cd_arena_free(&a);
    return st;
}

/* The table of errors, line by line, on standard error. */
static cdmpp_status summary(cd_library_op_stream *s, cd_log *log, cdmpp_err *err) {
    cd_buf b = {0};
    const cdmpp_status st = cd_library_op_score_text(cd_library_op_stream_score(s), &b, err);
    if (!st) cd_log_lines(log, CD_LOG_INFO, b.p);
    cd_buf_free(&b);
    return st;
}

/* {"schema":"cdmpp.evaluation","command":"cdmpp-predict","lines":9,"bad":1,"evaluation":[...]} */
static cdmpp_status put_json(cd_library_op_stream *s, bool eval, cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_putf(&b, "{\"schema\":\"cdmpp.evaluation\",\"command\":\"cdmpp-predict\",\"lines\":%zu,\"bad\":%zu,\"evaluation\":",
                cd_library_op_stream_rows(s), cd_library_op_stream_bad(s));
    const cdmpp_status st = eval ? cd_library_op_score_json(cd_library_op_stream_score(s), &b, err) : CDMPP_OK;
    cd_buf_puts(&b, eval ? "}\n" : "null}\n");
    if (!st) return cd_command_print(&b, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status score(const cd_main_operators *o, const cd_library_op_model *m, size_t *bad, cdmpp_err *err) {
    cd_device_table *devices = NULL;
    cd_library_op_stream *s = NULL;
    cdmpp_status st = devices_of(o->devices, o->log, &devices, err);
    if (!st) st = cd_library_op_stream_new(m, devices, &o->stream, stdout, &s, err);
    for (size_t i = 0; !st && i < o->n_input; i++) st = cd_library_op_stream_file(s, o->input[i], err);
    if (!st && *o->stream.stop) st = CD_FAIL(err, EINTERRUPTED, "after %zu rows", cd_library_op_stream_rows(s));
    if (!st && o->stream.eval) st = summary(s, o->log, err);
    if (!st && o->json) st = put_json(s, o->stream.eval, err);
    if (!st) *bad = cd_library_op_stream_bad(s);
    if (!st && *bad) cd_log_put(o->log, CD_LOG_WARNING, "%zu of %zu rows could not be scored", *bad, cd_library_op_stream_rows(s));
    cd_library_op_stream_free(s);
    cd_device_table_free(devices);
    return st;
}

cdmpp_status cd_main_predict_operators(const cd_main_operators *o, size_t *bad, cdmpp_err *err) {
    cd_library_op_model *m = NULL;
    cdmpp_status st = cd_library_op_model_load(o->model, &m, err);
    if (!st && o->info) puts(cd_library_op_model_header(m));
    else if (!st) st = score(o, m, bad, err);
    cd_library_op_model_free(m);
    return st;
}
