/* What there is to search with, and in: the tuners and the spaces of tasks. */
#include "predictor/tune/report/report.h"

/* ---- tuners ---- */
void cd_tune_tuner_print_text(cd_buf *b) {
    const cd_tune_tuner *t;
    for (size_t i = 0; (t = cd_tune_tuner_at(i)); i++)
        cd_buf_putf(b, "%-14s %s%s\n", t->name, t->brief,
                    cd_tune_tuner_needs_model(t) ? " (needs --cost-model)" : "");
}

void cd_tune_tuner_print_json(cd_buf *b) {
    const cd_tune_tuner *t;
    cd_json_writer w = {.out = b};
    cd_json_write_open(&w, '[');
    for (size_t i = 0; (t = cd_tune_tuner_at(i)); i++) {
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "name", t->name);
        cd_json_write_member_str(&w, "brief", t->brief);
        cd_json_write_member_bool(&w, "needs_model", cd_tune_tuner_needs_model(t));
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
}

/* ---- spaces ---- */
static cdmpp_status space(cd_buf *b, const cd_tune_unit *u, cdmpp_err *err) {
    cd_sketch_space *s;
    cd_json_writer w = {.out = b};
    CD_TRY(cd_sketch_space_new(u->of.task, &u->of.hardware, u->of.gpu, &s, err));
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "workload_key", u->of.task->workload_key);
    cd_json_write_member_str(&w, "target", u->of.target);
    cd_json_write_key(&w, "space");
    const cdmpp_status st = cd_sketch_space_dump(s, b, err);
    while (b->n && b->p[b->n - 1] == '\n') b->p[--b->n] = 0; /* the object's own line end */
    cd_json_write_close(&w, '}');
    cd_sketch_space_free(s);
    return st;
}

/* A task without a space is cut off again, with the comma before it, so that the list stays valid
 * JSON. */
cdmpp_status cd_tune_space_print(cd_buf *b, cd_tune_tasks *t, cd_log *log, cdmpp_err *err) {
    bool first = true;
    cd_buf_puts(b, "[");
    for (uint32_t i = 0; i < t->n; i++) {
        cdmpp_err why = {0};
        const size_t from = b->n;
        if (!first) cd_buf_puts(b, ",\n");
        const cdmpp_status st = space(b, &t->unit[i], &why);
        if (st == CDMPP_ENOMEM || b->oom) return CD_FAIL(err, ENOMEM, "spaces");
        first &= st != CDMPP_OK;
        if (!st) continue;
        b->p[b->n = from] = 0;
        t->n_left_out++;
        cd_log_put(log, CD_LOG_WARNING, "%s has no space: %s", t->unit[i].name, why.msg);
    }
    cd_buf_puts(b, "]");
    return CDMPP_OK;
}
