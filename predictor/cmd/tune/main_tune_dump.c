/* Modes --list-tuners and --space-dump of cdmpp-tune: what there is to search with, and in. */
#include <string.h>

#include "predictor/cmd/tune/main_tune.h"

cdmpp_status cd_main_tune_tuners_check(const cd_main_tune *o, cdmpp_err *err) {
    return o->operand.n ? CD_FAIL(err, EUSAGE, "unexpected '%.60s'", o->operand.v[0]) : CDMPP_OK;
}

static void put(cd_buf *b, const char *name, const char *text) {
    cd_buf_putf(b, "\"%s\":", name);
    cd_buf_put_json_str(b, text, strlen(text));
}

cdmpp_status cd_main_tune_tuners(cd_main_tune *o, cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    const cd_tune_tuner *t;
    if (o->json) cd_buf_puts(&b, "[");
    for (size_t i = 0; (t = cd_tune_tuner_at(i)); i++) {
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
    if (!o->json) return cd_command_print(&b, err);
    cd_buf_puts(&b, "]");
    cd_command_json(&all, "cdmpp.tune_tuners", "cdmpp-tune", &b);
    return cd_command_print(&all, err);
}

/* ---- --space-dump ---- */
cdmpp_status cd_main_tune_space_check(const cd_main_tune *o, cdmpp_err *err) { return cd_main_tune_tasks_check(o, err); }

static cdmpp_status dump(cd_buf *b, const cd_tune_unit *u, cdmpp_err *err) {
    cd_sketch_space *s;
    CD_TRY(cd_sketch_space_new(u->of.task, &u->of.hardware, u->of.gpu, &s, err));
    cd_buf_puts(b, "{");
    put(b, "workload_key", u->of.task->workload_key);
    cd_buf_puts(b, ",");
    put(b, "target", u->of.target);
    cd_buf_puts(b, ",\"space\":");
    const cdmpp_status st = cd_sketch_space_dump(s, b, err);
    while (b->n && b->p[b->n - 1] == '\n') b->p[--b->n] = 0; /* the object's own line end */
    cd_buf_puts(b, "}");
    cd_sketch_space_free(s);
    return st;
}

/* A task without a space costs only itself. */
static cdmpp_status dump_all(cd_main_tune *o, const cd_main_tune_tasks *t, cd_buf *b, cdmpp_err *err) {
    bool first = true;
    cd_buf_puts(b, "[");
    for (uint32_t i = 0; i < t->n; i++) {
        cdmpp_err why = {0};
        const size_t from = b->n;
        if (!first) cd_buf_puts(b, ",\n");
        const cdmpp_status st = dump(b, &t->unit[i], &why);
        if (st == CDMPP_ENOMEM || b->oom) return CD_FAIL(err, ENOMEM, "spaces");
        first &= st != CDMPP_OK;
        if (!st) continue;
        b->p[b->n = from] = 0;
        o->bad++;
        cd_log_put(o->log, CD_LOG_WARNING, "%s has no space: %s", t->unit[i].name, why.msg);
    }
    cd_buf_puts(b, "]");
    return CDMPP_OK;
}

cdmpp_status cd_main_tune_space(cd_main_tune *o, cdmpp_err *err) {
    cd_main_tune_tasks t = {0};
    cd_buf b = {0}, all = {0};
    cdmpp_status st = cd_main_tune_tasks_get(o, &t, err);
    if (!st) st = dump_all(o, &t, &b, err);
    if (st) cd_buf_free(&b);
    else {
        cd_command_json(&all, "cdmpp.tune_space", "cdmpp-tune", &b);
        st = cd_command_print(&all, err);
    }
    cd_main_tune_tasks_free(&t);
    return st;
}
