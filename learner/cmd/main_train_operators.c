/* main_train_operators -- cdmpp-train with data.kind: operators. */
#include <stdio.h>

#include "base/io/io.h"
#include "learner/cmd/main_train.h"
#include "learner/train/train.h"

enum { TELL = 20 }; /* bad lines that are shown one by one */

typedef struct {
    cd_log *log;
    size_t n;
} telling;

static void tell_bad(void *ctx, const cdmpp_err *err) {
    telling *t = ctx;
    char buf[600];
    if (t->n++ < TELL) cd_log_put(t->log, CD_LOG_WARNING, "skipped: %s", cdmpp_err_format(err, buf, sizeof buf));
}

static bool tick(void *ctx, const cd_progress_event *t) {
    cd_train_progress_step(ctx, t);
    return cd_main_go_on();
}

static cdmpp_status load(const cd_config *c, const char *config, cd_main_options *o, cd_device_table **devices, cd_library_op_data *d, cdmpp_err *err) {
    const cd_library_op_filter f = {c->data_devices, c->operators_exclude};
    telling bad = {.log = o->log};
    cd_arena a = {0};
    cd_diag diag = {0};
    const char *path;
    cdmpp_status st = cd_device_table_path(&a, c->device_file, config, &path, err);
    if (!st) st = cd_device_table_load(path, &diag, devices, err);
    if (st && diag.n) cd_log_lines(o->log, CD_LOG_ERROR, diag.text.p);
    for (size_t i = 0; !st && i < c->data_files.n; i++) st = cd_library_op_data_add(d, c->data_files.v[i], *devices, &f, tell_bad, &bad, err);
    cd_diag_free(&diag);
    cd_arena_free(&a);
    return st;
}

static const char *check_words(const cd_config *c) {
    static const char *const words[] = {"", "the tenth with the most work of each operator and device, held out",
                                        "each device held out in turn"};
    return words[c->operators_check];
}

static cdmpp_status print_text(const cd_config *c, const cd_library_op_data *d, cd_library_op_train_result *l, const char *path, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = CDMPP_OK;
    printf("%zu of %zu rows trained on, %zu devices\n", l->n_row, d->n_line, d->n_known);
    for (int k = 0; k < CD_LIBRARY_OP_N_DROP; k++)
        if (d->drop[k]) printf("left out %zu rows: %s\n", d->drop[k], cd_library_op_drop_text((cd_library_op_drop)k));
    if (l->check.n) {
        st = cd_library_op_score_text(&l->check, &b, err);
        printf("\ncheck: %s (n=%zu, seed=%lld)\n\n%s\n", check_words(c), l->check.n, (long long)c->operators_seed, b.p ? b.p : "");
    }
    printf("model %s, %zu bytes\n", path, l->file.n);
    cd_buf_free(&b);
    return st;
}

static void print_json(const cd_library_op_train_result *l, const char *path) {
    cd_buf b = {0};
    cd_buf_puts(&b, "{\"schema\":\"cdmpp.train\",\"command\":\"cdmpp-train\",\"model_file\":");
    cd_buf_put_json_str(&b, path, strlen(path));
    cd_buf_puts(&b, ",\"check\":[");
    for (size_t i = 0; i < l->check.n; i++) {
        const cd_library_op_score_row *r = &l->check.row[i];
        cd_buf_putf(&b, "%s[\"%s\",\"%s\",%.6g]", i ? "," : "", cd_library_op_class_name(r->class), r->device, r->error);
    }
    cd_buf_puts(&b, "]}\n");
    if (!b.oom) fputs(b.p, stdout);
    cd_buf_free(&b);
}

cdmpp_status cd_main_operators(const cd_config *c, const char *config, cd_main_options *o, cdmpp_err *err) {
    const char *path = o->out ? o->out : c->output_model;
    cd_device_table *devices = NULL;
    cd_threads *pool = NULL;
    cd_library_op_data d = {0};
    cd_library_op_train_result l = {0};
    cd_train_progress progress;
    cdmpp_status st = load(c, config, o, &devices, &d, err);
    if (!st) st = cd_threads_new(o->jobs, &pool, err);
    cd_train_progress_begin(&progress, o->log);
    if (!st) st = cd_library_op_train(c, &d, pool, tick, &progress, &l, err);
    cd_train_progress_end(&progress);
    if (!st) st = cd_file_write(path, l.file.p, l.file.n, err);
    if (!st && o->json) print_json(&l, path);
    else if (!st) st = print_text(c, &d, &l, path, err);
    o->skipped = d.drop[CD_LIBRARY_OP_DROP_BAD] > 0;
    cd_library_op_train_result_free(&l);
    cd_threads_free(pool);
    cd_library_op_data_free(&d);
    cd_device_table_free(devices);
    return st;
}
