/* cdmpp-train with data.kind: operators: a model of library operators from tables of measured times. */
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

static cdmpp_status load(const cd_config *c, const char *config, cd_main_options *o, cd_device_table **devices, cd_library_op_data *d, cdmpp_err *err) {
    const cd_library_op_filter f = {c->data_devices, c->operators_exclude};
    bad_lines bad = {.log = o->log};
    cd_arena a = {0};
    cd_diag diag = {0};
    const char *path;
    cdmpp_status st = cd_device_table_path(&a, c->device_file, config, &path, err);
    if (!st) st = cd_device_table_load(path, &diag, devices, err);
    if (st && diag.n) cd_log_lines(o->log, CD_LOG_ERROR, diag.text.p);
    for (size_t i = 0; !st && i < c->data_files.n; i++) st = cd_library_op_data_add(d, c->data_files.v[i], *devices, &f, on_bad, &bad, err);
    cd_diag_free(&diag);
    cd_arena_free(&a);
    return st;
}

/* The error is about no rows; these are the reasons why. */
static void warn_all_left_out(const cd_config *c, const cd_library_op_data *d, cd_log *log) {
    cd_buf b = {0};
    cd_train_print_left_out(&b, c, d, 0);
    for (char *line = b.p, *end; line && (end = strchr(line, '\n')); line = end + 1) cd_log_put(log, CD_LOG_WARNING, "%.*s", (int)(end - line), line);
    cd_buf_free(&b);
}

cdmpp_status cd_main_operators(const cd_config *c, const char *config, cd_main_options *o, cdmpp_err *err) {
    const char *path = o->out ? o->out : c->output_model;
    cd_device_table *devices = NULL;
    cd_threads *pool = NULL;
    cd_library_op_data d = {0};
    cd_library_op_train_result l = {0};
    cd_train_progress progress;
    cd_buf b = {0};
    cdmpp_status st = cd_main_out_apart(c, path, err);
    if (!st) st = load(c, config, o, &devices, &d, err);
    if (!st && !d.n) warn_all_left_out(c, &d, o->log);
    if (!st) st = cd_threads_new(o->jobs, &pool, err);
    cd_train_progress_begin(&progress, o->log);
    if (!st) st = cd_library_op_train(c, &d, pool, cd_main_tick, &progress, &l, err);
    cd_train_progress_end(&progress);
    if (!st) st = cd_file_write(path, l.file.p, l.file.n, err);
    if (!st && o->json) cd_train_print_operators_json(&b, c, &d, &l, path);
    else if (!st) st = cd_train_print_operators_text(&b, c, &d, &l, path, err);
    if (!st) st = cd_command_print(&b, err);
    cd_buf_free(&b);
    o->skipped = d.drop[CD_LIBRARY_OP_DROP_BAD] > 0;
    cd_library_op_train_result_free(&l);
    cd_threads_free(pool);
    cd_library_op_data_free(&d);
    cd_device_table_free(devices);
    return st;
}
