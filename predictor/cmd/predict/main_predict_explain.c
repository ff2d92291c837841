/* cdmpp-predict --explain: one record. */
#include "dataset/extract/extract.h"
#include "predictor/score/score.h"
#include "predictor/cmd/predict/main_predict.h"

static cdmpp_status explain(const cd_main_explain *o, const cd_predict_line *line, cdmpp_err *err) {
    cd_buf b = {0};
    cd_explanation e;
    const cd_device_match_options which = {.device = o->device};
    const cdmpp_status st = cd_explain(o->m, o->tasks, &which, line, &e, err);
    if (!st && o->json) cd_explain_json(&b, &e, line);
    else if (!st) cd_explain_text(&b, &e);
    cd_explain_free(&e);
    if (!st) return cd_command_print(&b, err);
    cd_buf_free(&b);
    return st;
}

cdmpp_status cd_main_predict_explain(const cd_main_explain *o, cdmpp_err *err) {
    cd_buf path = {0}, text = {0};
    long number;
    cdmpp_status st = cd_extract_line(o->where, &path, &number, &text, err);
    if (!st) {
        const cd_predict_line line = {text.p ? text.p : "", text.n, path.p, number};
        st = explain(o, &line, err);
    }
    cd_buf_free(&path);
    cd_buf_free(&text);
    return st;
}
