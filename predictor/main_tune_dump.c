/* Mode --list-tuners of cdmpp-tune. */
#include <string.h>

#include "predictor/main_tune.h"

cdmpp_status cd_main_tune_tuners_check(const cd_main_tune *o, cdmpp_err *err) {
    return o->operand.n ? CD_FAIL(err, EUSAGE, "unexpected '%.60s'", o->operand.v[0]) : CDMPP_OK;
}

static void put(cd_buf *b, const char *name, const char *text) {
    cd_buf_putf(b, "\"%s\":", name);
    cd_buf_put_json_str(b, text, strlen(text));
}

cdmpp_status cd_main_tune_tuners(cd_main_tune *o, cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    const cd_tuner *t;
    if (o->json) cd_buf_puts(&b, "[");
    for (size_t i = 0; (t = cd_tuner_at(i)); i++) {
        const bool model = t->ranker && t->ranker->needs_model;
        if (!o->json) {
            cd_buf_putf(&b, "%-14s %s%s\n", t->name, t->brief, model ? " (needs --model)" : "");
            continue;
        }
        cd_buf_puts(&b, i ? ",{" : "{");
        put(&b, "name", t->name);
        cd_buf_puts(&b, ",");
        put(&b, "brief", t->brief);
        cd_buf_putf(&b, ",\"needs_model\":%s}", model ? "true" : "false");
    }
    if (!o->json) return cd_face_print(&b, err);
    cd_buf_puts(&b, "]");
    cd_face_json(&all, "cdmpp.tune_tuners", "cdmpp-tune", &b);
    return cd_face_print(&all, err);
}
