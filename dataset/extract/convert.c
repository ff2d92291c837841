/* Rebuilds the program of a record, computes its rows and packs them for the file. Most leaves of a
 * program share the row of their buffer, so only the rows of other leaves are kept a second
 * time. */
#include <stdlib.h>
#include <string.h>

#include "dataset/extract/extract.h"

/* The identity of a program, by which records of the same program are found in files of
 * millions. */

/* Each text with its length, so that no two lists of texts run into the same bytes. */
static void add_text(cd_sha256 *h, cd_str s) {
    const uint64_t n = s.n;
    cd_sha256_add(h, &n, sizeof n);
    cd_sha256_add(h, s.p, s.n);
}

static void add_step(cd_sha256 *h, const cd_record_step *t) {
    const bool split = t->kind == CD_RECORD_STEP_SP;
    const int32_t head[] = {(int32_t)t->kind,    t->stage, t->i[0],
                            split ? 0 : t->i[1], t->i[2],  (int32_t)t->n_list};
    cd_sha256_add(h, head, sizeof head);
    cd_sha256_add(h, t->list, t->n_list * sizeof *t->list);
    add_text(h, t->s);
}

void cd_program_id_of(const cd_record *r, cd_str device, uint64_t out[2]) {
    cd_sha256 h;
    char hex[65];
    cd_sha256_init(&h);
    add_text(&h, r->workload_key);
    add_text(&h, r->target);
    add_text(&h, r->target_host);
    add_text(&h, device);
    if (r->has_hardware) cd_sha256_add(&h, &r->hardware, sizeof r->hardware);
    if (r->has_layout) cd_sha256_add(&h, &r->layout_rewrite, sizeof r->layout_rewrite);
    for (uint32_t i = 0; i < r->n_step; i++) add_step(&h, &r->step[i]);
    cd_sha256_hex(&h, hex);
    hex[32] = 0;
    out[1] = strtoull(hex + 16, NULL, 16);
    hex[16] = 0;
    out[0] = strtoull(hex, NULL, 16);
}

cdmpp_status cd_convert_open(cd_convert_state *c, const cd_feature_engine *e,
                             cd_convert_extra extra, cdmpp_err *err) {
    memset(c, 0, sizeof *c);
    c->engine = e;
    c->extra = extra;
    return e->open(e->ctx, &c->program, err);
}

void cd_convert_close(cd_convert_state *c) {
    if (c->program) c->engine->close(c->program);
    cd_arena_free(&c->scratch);
    cd_arena_free(&c->kinds);
    c->program = NULL;
}

static void set_label(cd_item *it, const cd_label *l) {
    it->latency_s = l->latency_s;
    it->latency_mean_s = l->mean_s;
    it->latency_std_s = l->std_s;
    it->latency_min_s = l->min_s;
    it->repeats = l->repeats;
    it->error = l->error;
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
        if (own[i] && rows)
            memcpy(rows + (size_t)n++ * CD_N_COL, r->leaf + (size_t)i * CD_N_COL, row);
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

/* Records of a task follow each other in a log: the signature of the last one is kept. */
static cdmpp_status find_kind(cd_convert_state *c, const cd_task *t, const cd_record *r,
                              cdmpp_err *err) {
    const cd_hardware *h = r->has_hardware ? &r->hardware : t->has_hardware ? &t->hardware : NULL;
    const int64_t threads = h ? h->num_cores : -1;
    cd_signature s;
    if (c->kind && c->task == t && c->threads == threads && c->target.n == r->target.n &&
        !memcmp(c->target.p, r->target.p, r->target.n))
        return CDMPP_OK;
    cd_arena_reset(&c->kinds);
    c->kind = NULL;
    char *target = cd_str_dup(&c->kinds, r->target);
    if (!target) return CD_FAIL(err, ENOMEM, "signature");
    CD_TRY(cd_signature_of(&c->kinds, t->dag, r->target, h, &s, err));
    CD_TRY(cd_signature_text(&c->kinds, &s, &c->kind, err));
    c->task = t;
    c->threads = threads;
    c->target = (cd_str){target, r->target.n};
    return CDMPP_OK;
}

/* A definition that nobody has leaves the kind open. */
static cdmpp_status set_kind(cd_convert_state *c, cd_arena *a, const cd_task *t, const cd_record *r,
                             cd_item *it, cdmpp_err *err) {
    it->text[CD_LAYOUT_DICT_KIND] = (cd_str){"", 0};
    if (!t->dag) return CDMPP_OK;
    CD_TRY(find_kind(c, t, r, err));
    const size_t n = strlen(c->kind);
    const char *text = cd_str_dup(a, (cd_str){c->kind, n});
    if (!text) return CD_FAIL(err, ENOMEM, "signature");
    it->text[CD_LAYOUT_DICT_KIND] = (cd_str){text, n};
    return CDMPP_OK;
}

static cdmpp_status set_id(cd_arena *a, const cd_record *r, cd_item *it, cdmpp_err *err) {
    uint64_t *id = CD_NEWN(a, uint64_t, 2);
    if (!id) return CD_FAIL(err, ENOMEM, "identity of a program");
    cd_program_id_of(r, it->text[CD_LAYOUT_DICT_DEVICE], id);
    it->id = id;
    return CDMPP_OK;
}

static cdmpp_status set_steps(cd_arena *a, const cd_record *r, cd_item *it, cdmpp_err *err) {
    int32_t *code;
    CD_TRY(cd_step_codes(a, r, &code, &it->n_step, err));
    it->step = code;
    return CDMPP_OK;
}

/* A program that has no facts says why. */
static cdmpp_status set_facts(const cd_convert_state *c, cd_arena *a, cd_item *it, cdmpp_err *err) {
    it->facts_state = CD_FACTS_ABSENT;
    if (!c->engine->facts) return CDMPP_OK;
    float *x = CD_NEWN(a, float, CD_N_FACTS);
    if (!x) return CD_FAIL(err, ENOMEM, "facts of a program");
    const cdmpp_status st =
        c->engine->facts(c->program, it->is_gpu ? CD_FACTS_OF_GPU : CD_FACTS_OF_CPU, x, err);
    it->facts = st ? NULL : x;
    it->facts_state = st ? CD_FACTS_UNSUPPORTED : it->is_gpu ? CD_FACTS_THERE_GPU : CD_FACTS_THERE;
    return st == CDMPP_EUNSUPPORTED ? CDMPP_OK : st;
}

static cd_str device_of(const cd_convert_state *c, cd_str target, const char *source) {
    if (!c->extra.device || !cd_str_is(cd_device_name_of(target, ""), "unknown"))
        return cd_device_name_of(target, source);
    return (cd_str){c->extra.device, strlen(c->extra.device)};
}

static bool set_keys(const cd_convert_state *c, cd_arena *a, const cd_task *t, const cd_record *r,
                     const char *source, cd_item *it) {
    char *target = cd_str_dup(a, r->target);
    if (!target) return false;
    const cd_str s = {target, strlen(target)}; /* an escaped NUL ends it */
    it->text[CD_LAYOUT_DICT_TASK] = (cd_str){t->workload_key, strlen(t->workload_key)};
    it->text[CD_LAYOUT_DICT_TARGET] = s;
    it->text[CD_LAYOUT_DICT_DEVICE] = device_of(c, s, source);
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

/* A program that its target rejects stays in the data, as TVM has it: one row of zeros and an error
 * number. */
static cdmpp_status convert(cd_convert_state *c, cd_arena *a, const char *line, size_t n,
                            const char *source, cd_item **out, cdmpp_err *err) {
    cd_record r;
    cd_rows rows;
    CD_TRY(cd_record_read(&c->scratch, line, n, &r, err));
    const cd_task *task = c->engine->find(c->engine->ctx, r.workload_key);
    if (!task) {
        const cdmpp_status st =
            CD_FAIL(err, ENOTASK, "no task file defines %.*s",
                    r.workload_key.n > 150 ? 150 : (int)r.workload_key.n, r.workload_key.p);
        return cd_err_key(err, st, "i[0][0]");
    }
    if (c->engine->choose)
        CD_TRY(cd_err_key(err, c->engine->choose(c->program, &r, &task, err), "i[0][0]"));
    const cdmpp_status built = c->engine->build(c->program, task, &r, &rows, err);
    if (built == CDMPP_EREJECTED) zero_row(&rows);
    else CD_TRY(built);
    cd_item *it = CD_NEW(a, cd_item);
    double *cost = cd_arena_alloc(&c->scratch, r.n_cost ? r.n_cost : 1, sizeof *cost);
    if (!it || !cost || !copy_rows(a, &rows, it) || !set_keys(c, a, task, &r, source, it))
        return CD_FAIL(err, ENOMEM, "program of %u rows", rows.n_row);
    CD_TRY(set_kind(c, a, task, &r, it, err));
    if (built) it->facts_state = CD_FACTS_ABSENT;
    else CD_TRY(set_facts(c, a, it, err));
    if (c->extra.steps) CD_TRY(set_steps(a, &r, it, err));
    if (c->extra.ids) CD_TRY(set_id(a, &r, it, err));
    memcpy(cost, r.cost_s, r.n_cost * sizeof *cost);
    const cd_label label = cd_label_of(cost, r.n_cost, built ? CD_LABEL_REJECTED : r.error_no);
    set_label(it, &label);
    *out = it;
    return built;
}

cd_convert_result cd_convert(cd_convert_state *c, cd_arena *a, const char *line, size_t n,
                             const char *source, long number) {
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
