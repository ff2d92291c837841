#include "dataset/extract/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COST_FAILED 1e10  /* TVM's mark for a failed measurement */
#define NOT_MEASURED 255  /* a record that claims success without a time */

cdmpp_status cd_convert_open(cd_convert_state *c, const cd_feature_engine *e, cdmpp_err *err) {
    memset(c, 0, sizeof *c);
    c->engine = e;
    return e->open(e->ctx, &c->program, err);
}

void cd_convert_close(cd_convert_state *c) {
    if (c->program) c->engine->close(c->program);
    cd_arena_free(&c->scratch);
    c->program = NULL;
}

/* --- labels and keys --------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint8_t error_of(const double *cost, uint32_t n, int64_t error_no) {
    if (error_no != 0) return error_no > 0 && error_no < NOT_MEASURED ? (uint8_t)error_no : 8;
    if (n == 0) return NOT_MEASURED;
    for (uint32_t i = 0; i < n; i++) {
        if (cost[i] >= COST_FAILED) return 8;
        if (!(cost[i] > 0)) return NOT_MEASURED; /* 0 in files that are still to be measured; NaN */
    }
    return 0;
}

void cd_convert_label(double *cost, uint32_t n, int64_t error_no, cd_item *out) {
    double sum = 0, square = 0;
    out->error = error_of(cost, n, error_no);
    out->repeats = 0;
    out->latency_s = out->latency_mean_s = out->latency_std_s = out->latency_min_s = (double)NAN;
    if (out->error) return;
    qsort(cost, n, sizeof *cost, by_value);
    for (uint32_t i = 0; i < n; i++) sum += cost[i];
    const double mean = sum / n;
    for (uint32_t i = 0; i < n; i++) square += (cost[i] - mean) * (cost[i] - mean);
    out->repeats = n;
    out->latency_s = n % 2 ? cost[n / 2] : (cost[n / 2 - 1] + cost[n / 2]) / 2;
    out->latency_mean_s = mean;
    out->latency_std_s = sqrt(square / n);
    out->latency_min_s = cost[0];
}

static cd_str word_at(cd_str s, size_t at) {
    size_t end = at;
    while (end < s.n && s.p[end] != ' ' && s.p[end] != '\t') end++;
    return (cd_str){s.p + at, end - at};
}

/* Value of an option like "-model=" at the start of a word; n 0 when absent. */
static cd_str option(cd_str target, const char *name) {
    const size_t len = strlen(name);
    for (size_t i = 0; i + len <= target.n; i++)
        if ((i == 0 || target.p[i - 1] == ' ') && memcmp(target.p + i, name, len) == 0) return word_at(target, i + len);
    return (cd_str){target.p, 0};
}

cd_str cd_convert_device_name(cd_str target, const char *source) {
    const cd_str model = option(target, "-model=");
    if (model.n && !cd_str_is(model, "unknown")) return model; /* TVM writes unknown when it was not told */
    const char *end = strrchr(source, '/');
    while (end && end > source && end[-1] == '/') end--; /* "v100//a.json" */
    const char *p = end;
    while (p && p > source && p[-1] != '/') p--;
    return p && end > p ? (cd_str){p, (size_t)(end - p)} : (cd_str){"unknown", 7};
}

/* --- rows -------------------------------------------------------------------- */

static const void *copy(cd_arena *a, const void *p, size_t n, size_t size, bool *ok) {
    void *q = n ? cd_arena_alloc(a, n, size) : NULL;
    if (q) memcpy(q, p, n * size);
    else if (n) *ok = false;
    return q;
}

/* Bit for bit: what is not kept must be restored exactly. */
static bool same_row(const float *a, const float *b) {
    const void *p = a, *q = b;
    return memcmp(p, q, CD_N_COL * sizeof *a) == 0;
}

/* Most leaves are the only store to their buffer and equal its row: those are
 * not kept twice. */
static bool copy_leaves(cd_arena *a, const cd_rows *r, cd_item *it) {
    const size_t row = CD_N_COL * sizeof(float);
    uint8_t *own = CD_NEWN(a, uint8_t, r->n_leaf ? r->n_leaf : 1);
    float *rows = NULL;
    if (!own) return false;
    for (uint32_t i = 0; i < r->n_leaf; i++) {
        const int32_t k = r->leaf_row[i];
        own[i] = k < 0 || (uint32_t)k >= r->n_row ||
                 !same_row(r->leaf + (size_t)i * CD_N_COL, r->row + (size_t)k * CD_N_COL);
        it->n_own += own[i];
    }
    if (it->n_own && !(rows = cd_arena_alloc(a, it->n_own, row))) return false;
    for (uint32_t i = 0, n = 0; i < r->n_leaf; i++)
        if (own[i] && rows) memcpy(rows + (size_t)n++ * CD_N_COL, r->leaf + (size_t)i * CD_N_COL, row);
    it->leaf_own = own;
    it->own = rows;
    return true;
}

static bool copy_rows(cd_arena *a, const cd_rows *r, cd_item *it) {
    bool ok = true;
    const size_t n_path = r->n_leaf ? (size_t)r->path_ptr[r->n_leaf] : 0;
    it->n_row = r->n_row, it->n_leaf = r->n_leaf, it->n_tree = r->n_tree;
    it->row = copy(a, r->row, r->n_row, CD_N_COL * sizeof *r->row, &ok);
    it->leaf_node = copy(a, r->leaf_node, r->n_leaf, sizeof *r->leaf_node, &ok);
    it->leaf_pos = copy(a, r->leaf_pos, r->n_leaf, sizeof *r->leaf_pos, &ok);
    it->leaf_row = copy(a, r->leaf_row, r->n_leaf, sizeof *r->leaf_row, &ok);
    it->tree = copy(a, r->tree, r->n_tree, sizeof *r->tree, &ok);
    it->path_ptr = copy(a, r->path_ptr, r->n_leaf ? r->n_leaf + 1 : 0, sizeof *r->path_ptr, &ok);
    it->path_extent = copy(a, r->path_extent, n_path, sizeof *r->path_extent, &ok);
    it->path_kind = copy(a, r->path_kind, n_path, sizeof *r->path_kind, &ok);
    return ok && copy_leaves(a, r, it);
}

/* --- a line ------------------------------------------------------------------ */

static bool set_keys(cd_arena *a, const cd_task *t, const cd_record *r, const char *source, cd_item *it) {
    char *target = cd_str_dup(a, r->target);
    if (!target) return false;
    const cd_str s = {target, strlen(target)}; /* an escaped NUL ends it */
    it->text[CD_LAYOUT_DICT_TASK] = (cd_str){t->workload_key, strlen(t->workload_key)};
    it->text[CD_LAYOUT_DICT_TARGET] = s;
    it->text[CD_LAYOUT_DICT_DEVICE] = cd_convert_device_name(s, source);
    it->text[CD_LAYOUT_DICT_SOURCE] = (cd_str){source, strlen(source)};
    it->is_gpu = cd_target_is_gpu(s);
    it->flop = cd_task_flop(t);
    return true;
}

/* TVM answers for a program that it rejects with a single row of zeros. */
static void zero_row(cd_rows *out) {
    static const float zero[CD_N_COL];
    *out = (cd_rows){.n_row = 1, .row = zero};
}

static cdmpp_status convert(cd_convert_state *c, cd_arena *a, const char *line, size_t n, const char *source,
                            cd_item **out, cdmpp_err *err) {
    cd_record r;
    cd_rows rows;
    CD_TRY(cd_record_read(&c->scratch, line, n, &r, err));
    const cd_task *task = c->engine->find(c->engine->ctx, r.workload_key);
    if (!task) {
        const cdmpp_status st = CD_FAIL(err, ENOTASK, "no task file defines %.*s",
                                        r.workload_key.n > 150 ? 150 : (int)r.workload_key.n, r.workload_key.p);
        return cd_err_key(err, st, "i[0][0]");
    }
    const cdmpp_status built = c->engine->build(c->program, task, &r, &rows, err);
    if (built == CDMPP_EREJECTED) zero_row(&rows);
    else CD_TRY(built);
    cd_item *it = CD_NEW(a, cd_item);
    double *cost = cd_arena_alloc(&c->scratch, r.n_cost ? r.n_cost : 1, sizeof *cost);
    if (!it || !cost || !copy_rows(a, &rows, it) || !set_keys(a, task, &r, source, it))
        return CD_FAIL(err, ENOMEM, "program of %u rows", rows.n_row);
    memcpy(cost, r.cost_s, r.n_cost * sizeof *cost);
    cd_convert_label(cost, r.n_cost, built ? CD_CONVERT_REJECTED : r.error_no, it);
    *out = it;
    return built;
}

cd_convert_result cd_convert(cd_convert_state *c, cd_arena *a, const char *line, size_t n, const char *source, long number) {
    cd_convert_result o = {CDMPP_OK, NULL, NULL};
    cdmpp_err err = {0};
    cd_arena_reset(&c->scratch);
    o.st = convert(c, a, line, n, source, &o.item, &err);
    if (o.item) o.item->source_line = (uint64_t)number;
    if (o.st == CDMPP_OK) return o;
    (void)cd_err_at(&err, o.st, source, number);
    o.err = cd_arena_alloc(a, 1, sizeof err);
    if (o.err) *o.err = err;
    else o.st = CDMPP_ENOMEM;
    return o;
}
