/* What there is to search with, and in: the tuners and the spaces of tasks. */
#include <string.h>

#include "predictor/tune/report/report.h"

/* The table of a comparison: a row for each task and tuner, a column for each number of trials, in
 * OpBench's layout. */

static const char *name_of(const cd_tune_tasks *t, uint32_t i, const char *sum) {
    return i < t->n ? t->unit[i].of.task->workload_key : sum;
}
/* With one task the sum says nothing new. */
static uint32_t rows(const cd_tune_compare *c) { return c->n_task == 1 ? 1 : c->n_task + 1; }

/* Keys hold commas and quotes, so the first field is always quoted. */
void cd_tune_compare_print_csv(cd_buf *b, const cd_tune_compare *c, const cd_tune_tasks *t,
                               const char *name) {
    const cd_tune_compare_plan *p = c->plan;
    cd_buf_puts(b, "modelname,tuner,0");
    for (size_t k = 0; k < p->n_at; k++) cd_buf_putf(b, ",%zu", p->at[k]);
    cd_buf_puts(b, "\n");
    for (uint32_t i = 0; i < rows(c); i++)
        for (size_t j = 0; j < p->n_tuner; j++) {
            const char *of = name_of(t, i, name);
            cd_csv_fields_put(b, of, strlen(of));
            cd_buf_putf(b, ",%s", p->tuner[j]->name);
            for (size_t k = 0; k <= p->n_at; k++) {
                const double s = cd_tune_compare_at(c, i, j)[k];
                cd_buf_puts(b, ",");
                if (s < CD_TUNE_FAILED_S) cd_buf_put_json_real(b, s * 1e3);
            }
            cd_buf_puts(b, "\n");
        }
}

/* The same rows as the CSV; null in place of an empty field. */
void cd_tune_compare_print_json(cd_buf *b, const cd_tune_compare *c, const cd_tune_tasks *t,
                                const char *name) {
    const cd_tune_compare_plan *p = c->plan;
    cd_json_writer w = {.out = b};
    cd_json_write_open(&w, '{');
    cd_json_write_key(&w, "at");
    cd_json_write_open(&w, '[');
    cd_json_write_int(&w, 0);
    for (size_t k = 0; k < p->n_at; k++) cd_json_write_int(&w, (int64_t)p->at[k]);
    cd_json_write_close(&w, ']');
    cd_json_write_key(&w, "rows");
    cd_json_write_open(&w, '[');
    for (uint32_t i = 0; i < rows(c); i++)
        for (size_t j = 0; j < p->n_tuner; j++) {
            cd_json_write_open(&w, '{');
            cd_json_write_member_str(&w, "modelname", name_of(t, i, name));
            cd_json_write_member_str(&w, "tuner", p->tuner[j]->name);
            cd_json_write_key(&w, "ms");
            cd_json_write_open(&w, '[');
            for (size_t k = 0; k <= p->n_at; k++) {
                const double s = cd_tune_compare_at(c, i, j)[k];
                if (s < CD_TUNE_FAILED_S) cd_json_write_real(&w, s * 1e3);
                else cd_json_write_null(&w);
            }
            cd_json_write_close(&w, ']');
            cd_json_write_close(&w, '}');
        }
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}

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
