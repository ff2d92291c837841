/* cdmpp-train with data.kind: operators or llm_operators: a model of operators from tables of
 * measured times. */
#include "base/io/io.h"
#include "learner/cmd/main_train.h"

enum { SHOWN = 20, LLM = 2 }; /* bad lines that are printed one by one; data.kind llm_operators */

/* One run, of either kind: what it reads, and what it makes of it. */
typedef struct {
    const cd_config *c;
    cd_main_options *o;
    cd_device_table *devices;
    size_t told;
    cd_library_op_data data;
    cd_library_op_train_result library;
    cd_llm_op_table table;
    cd_llm_op_train_result llm;
} running;

/* What the kinds of operators differ in. */
typedef struct {
    cdmpp_status (*add)(running *r, const char *path, cdmpp_err *err);
    cdmpp_status (*read)(running *r, cdmpp_err *err);
    cdmpp_status (*train)(running *r, cd_threads *pool, cd_train_progress *p, const cd_buf **file,
                          cdmpp_err *err);
    cdmpp_status (*print)(running *r, const char *path, cd_buf *b, cdmpp_err *err);
} of_kind;

static void on_bad(void *ctx, const cdmpp_err *err) {
    running *r = ctx;
    char buf[600];
    if (r->told++ < SHOWN)
        cd_log_put(r->o->log, CD_LOG_WARNING, "skipped: %s",
                   cdmpp_err_format(err, buf, sizeof buf));
}

/* ---- library operators ---- */
static cdmpp_status add_library(running *r, const char *path, cdmpp_err *err) {
    const cd_library_op_filter f = {r->c->data_devices, r->c->operators_exclude};
    return cd_library_op_data_add(&r->data, path, r->devices, &f, on_bad, r, err);
}

/* The error is about no rows; these are the reasons why. */
static cdmpp_status read_library(running *r, cdmpp_err *err) {
    cd_buf b = {0};
    (void)err;
    r->o->skipped = r->data.drop[CD_LIBRARY_OP_DROP_BAD] > 0;
    if (!r->data.n) cd_train_print_left_out(&b, r->c, &r->data, 0);
    for (char *line = b.p, *end; line && (end = strchr(line, '\n')); line = end + 1)
        cd_log_put(r->o->log, CD_LOG_WARNING, "%.*s", (int)(end - line), line);
    cd_buf_free(&b);
    return CDMPP_OK;
}

static cdmpp_status train_library(running *r, cd_threads *pool, cd_train_progress *p,
                                  const cd_buf **file, cdmpp_err *err) {
    *file = &r->library.file;
    return cd_library_op_train(r->c, &r->data, pool, cd_main_tick, p, &r->library, err);
}

static cdmpp_status print_library(running *r, const char *path, cd_buf *b, cdmpp_err *err) {
    if (!r->o->json)
        return cd_train_print_operators_text(b, r->c, &r->data, &r->library, path, err);
    cd_train_print_operators_json(b, r->c, &r->data, &r->library, path);
    return CDMPP_OK;
}

/* ---- operators of language models ---- */
static cdmpp_status add_llm(running *r, const char *path, cdmpp_err *err) {
    return cd_llm_op_table_add(&r->table, path, r->devices, &r->c->data_devices, on_bad, r, err);
}

static cdmpp_status read_llm(running *r, cdmpp_err *err) {
    r->o->skipped = r->table.drop[CD_LLM_OP_DROP_BAD] + r->table.drop[CD_LLM_OP_DROP_TIME] > 0;
    CD_TRY(cd_llm_op_table_index(&r->table, err));
    cd_llm_op_table_say(&r->table, r->o->log);
    return CDMPP_OK;
}

static cdmpp_status train_llm(running *r, cd_threads *pool, cd_train_progress *p,
                              const cd_buf **file, cdmpp_err *err) {
    const unsigned sets =
        1u << CD_LLM_OP_SET_UNSEEN | 1u << CD_LLM_OP_SET_SEEN | 1u << CD_LLM_OP_SET_NEAR;
    *file = &r->llm.file;
    return cd_llm_op_train(r->c, &r->table, sets, pool, cd_main_tick, p, &r->llm, err);
}

static cdmpp_status print_llm(running *r, const char *path, cd_buf *b, cdmpp_err *err) {
    (void)err;
    if (r->o->json) cd_train_print_llm_json(b, &r->table, &r->llm, path);
    else cd_train_print_llm_text(b, r->c, &r->table, &r->llm, path);
    return CDMPP_OK;
}

/* ---- all ---- */
static cdmpp_status load(running *r, const of_kind *k, const char *config, cdmpp_err *err) {
    cd_arena a = {0};
    cd_diag diag = {0};
    cdmpp_status st =
        cd_device_table_open(&a, r->c->device_file, config, &diag, NULL, &r->devices, err);
    if (st && diag.n) cd_log_lines(r->o->log, CD_LOG_ERROR, diag.text.p);
    if (!st) cd_device_table_say(r->devices, r->o->log);
    for (size_t i = 0; !st && i < r->c->data_files.n; i++)
        st = k->add(r, r->c->data_files.v[i], err);
    if (!st) st = k->read(r, err);
    cd_diag_free(&diag);
    cd_arena_free(&a);
    return st;
}

cdmpp_status cd_main_operators(const cd_config *c, const char *config, cd_main_options *o,
                               cdmpp_err *err) {
    static const of_kind library = {add_library, read_library, train_library, print_library};
    static const of_kind llm = {add_llm, read_llm, train_llm, print_llm};
    const of_kind *k = c->data_kind == LLM ? &llm : &library;
    const char *path = o->out ? o->out : c->output_model;
    running r = {.c = c, .o = o};
    cd_threads *pool = NULL;
    const cd_buf *file = NULL;
    cd_train_progress progress;
    cd_buf b = {0};
    cdmpp_status st = cd_main_out_apart(c, path, err);
    if (!st) st = load(&r, k, config, err);
    if (!st) st = cd_threads_new(o->jobs, &pool, err);
    cd_train_progress_begin(&progress, o->log);
    if (!st) st = k->train(&r, pool, &progress, &file, err);
    cd_train_progress_end(&progress);
    if (!st) st = cd_file_write(path, file->p, file->n, err);
    if (!st) st = k->print(&r, path, &b, err);
    if (!st) st = cd_command_print(&b, err);
    cd_buf_free(&b);
    cd_library_op_train_result_free(&r.library);
    cd_llm_op_train_result_free(&r.llm);
    cd_threads_free(pool);
    cd_library_op_data_free(&r.data);
    cd_llm_op_table_free(&r.table);
    cd_device_table_free(r.devices);
    return st;
}
