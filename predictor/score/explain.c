/* Explains one prediction: which stores carry the time, and which groups of features change it.
 * Both come from the model's own predictions of changed inputs. */
#include "predictor/score/explain.h"

#include <string.h>

#include "base/text/text.h"
#include "learner/model/model.h"
#include "predictor/score/batch_builder_internal.h"
#include "predictor/score/kinds_internal.h"
#include "predictor/score/program_facts.h"
#include "predictor/score/rows_json.h"

/* Reads the rows of a program from JSON text without building a tree of values: rows are most of
 * the bytes of a request. */

static const char *blanks(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
    return p;
}

/* The place behind `c`, or an error. */
static cdmpp_status need(cd_rows_json *t, char c, const char *where, cdmpp_err *err) {
    t->at = blanks(t->at, t->end);
    if (t->at < t->end && *t->at == c) {
        t->at++;
        return CDMPP_OK;
    }
    if (t->at == t->end)
        return CD_FAIL(err, EPARSE, "expected '%c' %s, found end of text", c, where);
    return CD_FAIL(err, EPARSE, "expected '%c' %s, found byte 0x%02x", c, where,
                   (unsigned)(unsigned char)*t->at);
}

static bool is_next(cd_rows_json *t, char c) {
    t->at = blanks(t->at, t->end);
    return t->at < t->end && *t->at == c;
}

/* Numbers and the closing bracket; how many there are, even if more than there is room for. */
static cdmpp_status numbers(cd_rows_json *t, double *v, size_t room, size_t *n, cdmpp_err *err) {
    double x;
    for (*n = 0;; (*n)++) {
        if (is_next(t, ']')) break;
        if (*n) CD_TRY(need(t, ',', "between numbers", err));
        const char *p = cd_json_number(t->at, t->end, &x);
        if (!p) return CD_FAIL(err, EPARSE, "expected a number in column %zu", *n);
        if (*n < room) v[*n] = x;
        t->at = p;
    }
    t->at++;
    return CDMPP_OK;
}

static cdmpp_status row(cd_rows_json *t, double *v, size_t n_col, cdmpp_err *err) {
    size_t n = 0;
    CD_TRY(need(t, '[', "of a row", err));
    CD_TRY(numbers(t, v, n_col, &n, err));
    return n == n_col ? CDMPP_OK
                      : CD_FAIL(err, EMODEL, "expected rows of %zu numbers, found %zu", n_col, n);
}

cdmpp_status cd_rows_json_next(cd_rows_json *t, double *v, size_t n_col, bool *more,
                               cdmpp_err *err) {
    *more = false;
    if (!t->begun) CD_TRY(need(t, '[', "of the list of rows", err));
    t->begun = true;
    if (is_next(t, ']')) {
        t->at = blanks(t->at + 1, t->end);
        return t->at == t->end ? CDMPP_OK
                               : CD_FAIL(err, EPARSE, "expected the end behind the rows");
    }
    if (t->n) CD_TRY(need(t, ',', "between rows", err));
    CD_TRY(cd_err_index(err, row(t, v, n_col, err), t->n));
    t->n++;
    *more = true;
    return CDMPP_OK;
}

/* What one record needs while it is explained. */
typedef struct {
    const cd_model *m;
    cd_device_match *which;
    cd_arena arena;
    cd_program *program;
    cd_model_scratch *scratch;
    cd_batch_builder *gather;
    cd_program_facts facts;
    cd_rows rows;
    cd_device_pick pick;
    double flop;
} work;

static void end(work *w) {
    cd_device_match_free(w->which);
    cd_arena_free(&w->arena);
    cd_program_free(w->program);
    cd_program_facts_free(&w->facts);
    cd_model_scratch_free(w->scratch);
    cd_batch_builder_free(w->gather);
}

/* As cd_scorer_finish does it. */
static cdmpp_status compare_kind(work *w, const cd_task *t, const cd_record *r,
                                 const cd_device_pick *pick, cd_explanation *e, cdmpp_err *err) {
    const cd_hardware *hardware = r->has_hardware   ? &r->hardware
                                  : t->has_hardware ? &t->hardware
                                                    : NULL;
    cd_kinds *kinds;
    CD_TRY(cd_kinds_new(w->m, false, &kinds, err));
    const cdmpp_status st = cd_kinds_check(kinds, t, r->target, hardware, pick, &e->unlike, err);
    cd_kinds_free(kinds);
    return st;
}

static cdmpp_status begin(work *w, const cd_model *m, const cd_device_match_options *which,
                          cdmpp_err *err) {
    *w = (work){.m = m};
    CD_TRY(cd_device_match_new(m, which, &w->which, err));
    CD_TRY(cd_program_new(&w->program, err));
    CD_TRY(cd_program_facts_new(&w->facts, m, err));
    CD_TRY(cd_model_scratch_new(&w->scratch, err));
    return cd_batch_builder_new(true, cd_model_orders_rows(m), &w->gather, err);
}

/* The rows as the model reads them, so that the shares of rows belong to these. */
static cdmpp_status order(work *w, cdmpp_err *err) {
    const size_t n = w->rows.n_row, n_leaf = w->rows.n_leaf;
    if (!cd_model_orders_rows(w->m)) return CDMPP_OK;
    float *row = cd_arena_alloc(&w->arena, n * CD_N_COL, sizeof *row);
    uint32_t *from = cd_arena_alloc(&w->arena, n, sizeof *from);
    int32_t *to = cd_arena_alloc(&w->arena, n, sizeof *to),
            *leaf = cd_arena_alloc(&w->arena, n_leaf + 1, sizeof *leaf);
    if (!row || !from || !to || !leaf) return CD_FAIL(err, ENOMEM, "%zu feature rows", n);
    memcpy(row, w->rows.row, n * CD_N_COL * sizeof *row);
    cd_rows_order(row, n, from);
    for (size_t k = 0; k < n; k++) to[from[k]] = (int32_t)k;
    for (size_t l = 0; l < n_leaf; l++) leaf[l] = to[w->rows.leaf_row[l]];
    w->rows.row = row;
    w->rows.leaf_row = leaf;
    return CDMPP_OK;
}

/* Reads one record and builds its program as a scorer does, but keeps the program: its loop nest is
 * printed later. */
static cdmpp_status build(work *w, const cd_task_registry *tasks, const cd_predict_line *l,
                          cd_explanation *e, cdmpp_err *err) {
    cd_record r;
    CD_TRY(cd_record_read(&w->arena, l->text, l->len, &r, err));
    const cd_task *t = cd_task_registry_find(tasks, r.workload_key);
    if (!t)
        return cd_err_key(err,
                          CD_FAIL(err, ENOTASK, "no task file defines %.*s",
                                  r.workload_key.n > 150 ? 150 : (int)r.workload_key.n,
                                  r.workload_key.p),
                          "i[0][0]");
    CD_TRY(cd_device_match_pick(w->which, r.target, l->source, &w->pick, err));
    CD_TRY(compare_kind(w, t, &r, &w->pick, e, err));
    CD_TRY(cd_program_build(w->program, t, &r, &w->rows, err));
    if (!w->rows.n_row) return CD_FAIL(err, EINVALID, "the program stores nothing");
    CD_TRY(order(w, err));
    CD_TRY(cd_program_facts_fill(&w->facts, w->program, false, &w->pick, err));
    w->flop = cd_task_flop(t);
    e->workload_key = cd_str_dup(&e->arena, r.workload_key);
    e->device = cd_model_device(w->m, w->pick.device);
    e->n_row = w->rows.n_row;
    e->n_leaf = w->rows.n_leaf;
    return e->workload_key ? CDMPP_OK : CD_FAIL(err, ENOMEM, "a workload key");
}

/* ---- the nest ---- */
/* "    C[i, j] = ..." -> "C" */
static const char *buffer_name(cd_arena *a, const char *nest, int32_t line) {
    while (line > 0 && *nest) line -= *nest++ == '\n';
    nest += strspn(nest, " ");
    return cd_str_dup(a, (cd_str){nest, strcspn(nest, "[\n")});
}

/* A leaf is a store. Its line in the printed nest names the buffer that a row of features belongs
 * to. */
static cdmpp_status show(work *w, cd_explanation *e, cdmpp_err *err) {
    cd_buf b = {0};
    int32_t *line = cd_arena_alloc(&e->arena, e->n_leaf + 1, sizeof *line),
            *row = cd_arena_alloc(&e->arena, e->n_leaf + 1, sizeof *row);
    e->buffer = cd_arena_alloc(&e->arena, e->n_row, sizeof *e->buffer);
    cdmpp_status st = cd_program_print(w->program, &b, err);
    if (!st) e->nest = cd_str_dup(&e->arena, (cd_str){b.p ? b.p : "", b.n});
    cd_buf_free(&b);
    CD_TRY(st);
    if (!line || !row || !e->buffer || !e->nest)
        return CD_FAIL(err, ENOMEM, "loop nest of %zu leaves", e->n_leaf);
    cd_program_leaf_lines(w->program, line, e->n_leaf);
    for (size_t r = 0; r < e->n_row; r++) e->buffer[r] = "";
    for (size_t l = 0; l < e->n_leaf; l++) {
        row[l] = w->rows.leaf_row[l];
        if (!(e->buffer[row[l]] = buffer_name(&e->arena, e->nest, line[l])))
            return CD_FAIL(err, ENOMEM, "name of a buffer");
    }
    e->leaf_line = line;
    e->leaf_row = row;
    return CDMPP_OK;
}

/* ---- groups ---- */
static const char *const group_name[CD_EXPLAIN_GROUPS] = {"computation", "buffers", "intensity",
                                                          "allocation", "outer"};

static bool in_group(size_t column, size_t g) {
    const char *of = cd_cols()[column].group;
    return strcmp(group_name[g], "buffers") == 0 ? strncmp(of, "buffer ", 7) == 0
                                                 : strcmp(of, group_name[g]) == 0;
}

/* Rows of the program, as they are or changed; facts stay as they are. */
static cdmpp_status gather(work *w, const cd_rows *r, cdmpp_err *err) {
    CD_TRY(cd_batch_builder_add(w->gather, r, w->pick.device, w->flop, err));
    return w->facts.scratch
               ? cd_batch_builder_add_facts(w->gather, (int)cd_model_facts_set(w->facts.m),
                                            w->facts.fact, w->facts.analytic, err)
               : CDMPP_OK;
}

/* The program once more, with a group of columns set to `middle`. */
static cdmpp_status add_changed(work *w, size_t g, const float *middle, float *x, cdmpp_err *err) {
    cd_rows r = w->rows;
    const size_t n_row = r.n_row, n = n_row + r.n_leaf;
    memcpy(x, r.row, n_row * CD_N_COL * sizeof *x);
    memcpy(x + n_row * CD_N_COL, r.leaf, r.n_leaf * CD_N_COL * sizeof *x);
    for (size_t c = 0; c < CD_N_COL; c++)
        for (size_t k = 0; in_group(c, g) && k < n; k++) x[k * CD_N_COL + c] = middle[c];
    r.row = x;
    r.leaf = x + n_row * CD_N_COL;
    return gather(w, &r, err);
}

/* As cd_scorer_finish does it. */
static cdmpp_status settle(const work *w, const cd_program_view *v, size_t i, uint32_t reason,
                           cd_model_prediction *p, cdmpp_err *err) {
    const cd_model_asked asked = {
        .compared = true, .reason = reason, .doubt = w->pick.unknown ? &w->pick.doubt : NULL};
    return cd_model_settle(w->m, v, i, &asked, p, err);
}

/* The program is predicted once for each group, with the columns of that group set to the middle of
 * their range in training. */
static cdmpp_status groups(work *w, cd_explanation *e, cdmpp_err *err) {
    float middle[CD_N_COL];
    cd_model_prediction pred[CD_EXPLAIN_GROUPS];
    e->has_groups = cd_model_middle(w->m, middle);
    if (!e->has_groups) return CDMPP_OK;
    float *x = cd_mem_zalloc((e->n_row + e->n_leaf) * CD_N_COL, sizeof *x);
    cdmpp_status st = x ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu feature rows", e->n_row + e->n_leaf);
    cd_batch_builder_clear(w->gather);
    for (size_t g = 0; !st && g < CD_EXPLAIN_GROUPS; g++) st = add_changed(w, g, middle, x, err);
    cd_mem_free(x);
    CD_TRY(st);
    const cd_program_view v = cd_batch_builder_view(w->gather);
    CD_TRY(cd_model_predict(w->m, w->scratch, &v, NULL, CD_EXPLAIN_GROUPS, pred, err));
    for (size_t g = 0; g < CD_EXPLAIN_GROUPS; g++) {
        /* as the program itself, so that they differ by the group alone */
        CD_TRY(settle(w, &v, g, e->unlike.reason, &pred[g], err));
        e->group[g] = (cd_explain_group){.name = group_name[g], .latency_s = pred[g].latency_s};
        for (size_t c = 0; c < CD_N_COL; c++) e->group[g].n_col += in_group(c, g);
    }
    return CDMPP_OK;
}

static cdmpp_status shares(work *w, cd_explanation *e, cdmpp_err *err) {
    e->row_share = cd_arena_alloc(&e->arena, e->n_row, sizeof *e->row_share);
    e->leaf_share = cd_arena_alloc(&e->arena, e->n_leaf + 1, sizeof *e->leaf_share);
    if (!e->row_share || !e->leaf_share)
        return CD_FAIL(err, ENOMEM, "shares of %zu leaves", e->n_leaf);
    CD_TRY(gather(w, &w->rows, err));
    const cd_program_view v = cd_batch_builder_view(w->gather);
    CD_TRY(cd_model_predict(w->m, w->scratch, &v, NULL, 1, &e->pred, err));
    CD_TRY(settle(w, &v, 0, e->unlike.reason, &e->pred, err));
    if (e->pred.reason & CD_UNLIKE_RANGE) cd_trained_on_add(&e->unlike, CD_UNLIKE_BIT_RANGE, "", 0);
    return cd_attribution_shares(w->m, &v, w->rows.leaf_row, e->row_share, e->leaf_share, err);
}

cdmpp_status cd_explain(const cd_model *m, const cd_task_registry *tasks,
                        const cd_device_match_options *which, const cd_predict_line *line,
                        cd_explanation *out, cdmpp_err *err) {
    work w;
    *out = (cd_explanation){0};
    if (cd_model_needs_steps(m))
        return CD_FAIL(err, EUNSUPPORTED,
                       "the model's tlp reads the steps of schedules and no rows or leaves that "
                       "could take time");
    cdmpp_status st = begin(&w, m, which, err);
    if (!st) st = build(&w, tasks, line, out, err);
    if (!st) st = show(&w, out, err);
    if (!st) st = shares(&w, out, err);
    if (!st) st = groups(&w, out, err);
    end(&w);
    return cd_err_at(err, st, line->source, line->number);
}

void cd_explain_free(cd_explanation *e) {
    cd_arena_free(&e->arena);
    *e = (cd_explanation){0};
}
