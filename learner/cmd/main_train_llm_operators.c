/* cdmpp-train with data.kind: llm_operators: a model of operators of language models from tables of measured times. */
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "learner/cmd/main_train.h"

enum { SHOWN = 20 }; /* bad lines that are printed one by one */

typedef struct {
    cd_log *log;
    size_t n;
} bad_lines;

static void on_bad(void *ctx, const cdmpp_err *err) {
    bad_lines *t = ctx;
    char buf[600];
    if (t->n++ < SHOWN) cd_log_put(t->log, CD_LOG_WARNING, "skipped: %s", cdmpp_err_format(err, buf, sizeof buf));
}

static cdmpp_status load(const cd_config *c, const char *config, cd_main_options *o, cd_device_table **devices, cd_llm_op_table *t, cdmpp_err *err) {
    bad_lines bad = {.log = o->log};
    cd_arena a = {0};
    cd_diag diag = {0};
    const char *path;
    cdmpp_status st = cd_device_table_path(&a, c->device_file, config, &path, err);
    if (!st) st = cd_device_table_load(path, &diag, devices, err);
    if (st && diag.n) cd_log_lines(o->log, CD_LOG_ERROR, diag.text.p);
    for (size_t i = 0; !st && i < c->data_files.n; i++) st = cd_llm_op_table_add(t, c->data_files.v[i], *devices, &c->data_devices, on_bad, &bad, err);
    if (!st) st = cd_llm_op_table_index(t, err);
    cd_diag_free(&diag);
    cd_arena_free(&a);
    return st;
}

/* What became of the lines, by reason. */
static void put_counts(cd_buf *b, const cd_config *c, const cd_llm_op_table *t, const cd_llm_op_train_result *l) {
    cd_buf_putf(b, "%zu of %zu rows trained on, %zu devices\n", l->n_row - l->n_refused, t->n_line, t->n_known);
    for (int k = 0; k < CD_LLM_OP_N_DROP; k++)
        if (t->drop[k]) cd_buf_putf(b, "left out %zu rows: %s\n", t->drop[k], cd_llm_op_drop_text((cd_llm_op_drop)k));
    if (t->repeated) cd_buf_putf(b, "averaged %zu rows into others: the same operator again\n", t->repeated);
    if (l->n_refused) cd_buf_putf(b, "left out %zu rows: the device is described without units for their type, or without a number that is needed\n", l->n_refused);
    if (l->n_row < t->n)
        cd_buf_putf(b, "left out %zu rows: more than operators.max_rows, %lld of one kind and device (as neighbours they count)\n", t->n - l->n_row,
                    (long long)c->operators_max_rows);
}

static void put_json(cd_buf *b, const cd_llm_op_table *t, const cd_llm_op_train_result *l, const char *path) {
    cd_buf_puts(b, "{\"schema\":\"cdmpp.train\",\"command\":\"cdmpp-train\",\"model_file\":");
    cd_buf_put_json_str(b, path, strlen(path));
    cd_buf_putf(b, ",\"rows\":{\"lines\":%zu,\"trained\":%zu,\"bad\":%zu,\"no_time\":%zu,\"questions\":%zu,\"other_devices\":%zu,\"averaged\":%zu,\"refused\":%zu}}\n",
                t->n_line, l->n_row - l->n_refused, t->drop[CD_LLM_OP_DROP_BAD], t->drop[CD_LLM_OP_DROP_TIME], t->drop[CD_LLM_OP_DROP_QUESTION],
                t->drop[CD_LLM_OP_DROP_DEVICE], t->repeated, l->n_refused);
}

static void put_text(cd_buf *b, const cd_config *c, const cd_llm_op_table *t, const cd_llm_op_train_result *l, const char *path) {
    bool none = false;
    put_counts(b, c, t, l);
    for (size_t f = 0; f < CD_LLM_OP_N_FAMILY; f++) none |= l->model->part[f][CD_LLM_OP_SET_UNSEEN].gbt && !l->model->part[f][CD_LLM_OP_SET_UNSEEN].spread;
    if (none) cd_buf_puts(b, "no interval for a device that was not trained on, of some operators: that takes three devices and 60 rows\n");
    cd_buf_putf(b, "model %s, %zu bytes\n", path, l->file.n);
}

cdmpp_status cd_main_llm_operators(const cd_config *c, const char *config, cd_main_options *o, cdmpp_err *err) {
    const char *path = o->out ? o->out : c->output_model;
    const unsigned sets = 1u << CD_LLM_OP_SET_UNSEEN | 1u << CD_LLM_OP_SET_SEEN | 1u << CD_LLM_OP_SET_NEAR;
    cd_device_table *devices = NULL;
    cd_threads *pool = NULL;
    cd_llm_op_table t = {0};
    cd_llm_op_train_result l = {0};
    cd_train_progress progress;
    cd_buf b = {0};
    cdmpp_status st = cd_main_out_apart(c, path, err);
    if (!st) st = load(c, config, o, &devices, &t, err);
    if (!st) st = cd_threads_new(o->jobs, &pool, err);
    cd_train_progress_begin(&progress, o->log);
    if (!st) st = cd_llm_op_train(c, &t, sets, pool, cd_main_tick, &progress, &l, err);
    cd_train_progress_end(&progress);
    if (!st) st = cd_file_write(path, l.file.p, l.file.n, err);
    if (!st && o->json) put_json(&b, &t, &l, path);
    else if (!st) put_text(&b, c, &t, &l, path);
    if (!st) st = cd_command_print(&b, err);
    cd_buf_free(&b);
    o->skipped = t.drop[CD_LLM_OP_DROP_BAD] + t.drop[CD_LLM_OP_DROP_TIME] > 0;
    cd_llm_op_train_result_free(&l);
    cd_threads_free(pool);
    cd_llm_op_table_free(&t);
    cd_device_table_free(devices);
    return st;
}
