/* From a candidate (record, steps or rows) to its latency: the device is matched, the program is
 * lowered, its features go into a batch, the model predicts the batch, and each candidate gets its
 * answer or its error. */
#include "predictor/score/scorer.h"

#include <math.h>
#include <string.h>

#include "features/task/task.h"
#include "predictor/score/batch_builder_internal.h"
#include "predictor/score/kinds_internal.h"
#include "predictor/score/launch.h"
#include "predictor/score/program_facts.h"
#include "predictor/score/rows_json.h"

/* Collects the feature rows and loop nests of several programs into the arrays that a model reads.
 * Buffers grow and are kept for the next batch. */

/* A list that grows: n items in use. */
typedef struct {
    void *p;
    size_t n, cap;
} list;

struct cd_batch_builder {
    bool leaves, order;
    size_t n, n_stepped, n_facts;    /* programs; those with steps, with facts */
    list row, row_ptr, device, flop; /* float rows; int64; uint32; double */
    /* float rows; pointers; int64; int32; int32 */
    list leaf, leaf_x, leaf_ptr, leaf_pos, leaf_node;
    list path_ptr, path_extent, path_kind; /* int64; int64; uint8 */
    list tree_ptr, tree;                   /* int64; int32 */
    list step_ptr, step;                   /* int64; int32 */
    list facts, analytic;                  /* float rows */
    int facts_set;                         /* of all programs alike */
};

cdmpp_status cd_batch_builder_new(bool leaves, bool order, cd_batch_builder **out, cdmpp_err *err) {
    cd_batch_builder *g = cd_mem_zalloc(1, sizeof *g);
    if (!g) return CD_FAIL(err, ENOMEM, "programs to score");
    g->leaves = leaves;
    g->order = order;
    *out = g;
    return CDMPP_OK;
}

void cd_batch_builder_free(cd_batch_builder *g) {
    if (!g) return;
    list *all[] = {&g->row,         &g->row_ptr,   &g->device,   &g->flop,      &g->leaf,
                   &g->leaf_x,      &g->leaf_ptr,  &g->leaf_pos, &g->leaf_node, &g->path_ptr,
                   &g->path_extent, &g->path_kind, &g->tree_ptr, &g->tree,      &g->step_ptr,
                   &g->step,        &g->facts,     &g->analytic};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) cd_mem_free(all[i]->p);
    cd_mem_free(g);
}

void cd_batch_builder_clear(cd_batch_builder *g) { g->n = g->n_stepped = g->n_facts = 0; }

/* Room for `more` items of `size` behind the n in use. */
static bool room_builder(list *l, size_t n, size_t more, size_t size) {
    if (n + more <= l->cap) return true;
    const size_t cap = 2 * (n + more) + 64;
    void *p = cd_mem_realloc(l->p, n * size, cap * size);
    if (!p) return false;
    l->p = p;
    l->cap = cap;
    return true;
}

static int64_t last(const list *l, size_t n) { return n ? ((const int64_t *)l->p)[n] : 0; }

/* Offset array: entry 0 is 0, entry i+1 the end of item i. */
static bool put_end(list *l, size_t i, int64_t end) {
    if (!room_builder(l, i + 1, 1, sizeof(int64_t))) return false;
    int64_t *p = l->p;
    if (!i) p[0] = 0;
    p[i + 1] = end;
    return true;
}

static bool put(list *l, size_t at, const void *src, size_t n, size_t size) {
    if (!room_builder(l, at, n, size)) return false;
    if (n) memcpy((char *)l->p + at * size, src, n * size);
    return true;
}

static bool add_leaves(cd_batch_builder *g, const cd_rows *r) {
    const size_t l0 = (size_t)last(&g->leaf_ptr, g->n), t0 = (size_t)last(&g->tree_ptr, g->n),
                 p0 = (size_t)last(&g->path_ptr, l0);
    const size_t n_path = r->n_leaf ? (size_t)r->path_ptr[r->n_leaf] : 0;
    if (!put(&g->leaf, l0, r->leaf, r->n_leaf, CD_N_COL * sizeof(float)) ||
        !put(&g->leaf_pos, l0, r->leaf_pos, r->n_leaf, 4) ||
        !put(&g->leaf_node, l0, r->leaf_node, r->n_leaf, 4) ||
        !put(&g->tree, t0, r->tree, r->n_tree, 4) ||
        !put(&g->path_extent, p0, r->path_extent, n_path, 8) ||
        !put(&g->path_kind, p0, r->path_kind, n_path, 1))
        return false;
    for (size_t k = 0; g->order && k < r->n_leaf; k++)
        cd_rows_order_blocks((float *)g->leaf.p + (l0 + k) * CD_N_COL);
    for (size_t k = 0; k < r->n_leaf; k++)
        if (!put_end(&g->path_ptr, l0 + k, (int64_t)p0 + r->path_ptr[k + 1])) return false;
    return put_end(&g->leaf_ptr, g->n, (int64_t)(l0 + r->n_leaf)) &&
           put_end(&g->tree_ptr, g->n, (int64_t)(t0 + r->n_tree)) &&
           room_builder(&g->leaf_x, l0, r->n_leaf, sizeof(const float *)) &&
           room_builder(&g->path_ptr, 0, 1, sizeof(int64_t));
}

static cdmpp_status check(const float *v, size_t n, cdmpp_err *err) {
    for (size_t k = 0; k < n; k++)
        if (!isfinite(v[k]))
            return CD_FAIL(err, ENUMERIC, "feature column %d is not a finite number",
                           (int)(k % CD_N_COL));
    return CDMPP_OK;
}

cdmpp_status cd_batch_builder_add(cd_batch_builder *g, const cd_rows *r, uint32_t device,
                                  double flop, cdmpp_err *err) {
    const size_t r0 = (size_t)last(&g->row_ptr, g->n);
    CD_TRY(check(r->row, (size_t)r->n_row * CD_N_COL, err));
    if (g->leaves) CD_TRY(check(r->leaf, (size_t)r->n_leaf * CD_N_COL, err));
    if (!put(&g->row, r0, r->row, r->n_row, CD_N_COL * sizeof(float)) ||
        !put_end(&g->row_ptr, g->n, (int64_t)(r0 + r->n_row)) ||
        !put(&g->device, g->n, &device, 1, sizeof device) ||
        !put(&g->flop, g->n, &flop, 1, sizeof flop) || (g->leaves && !add_leaves(g, r)))
        return CD_FAIL(err, ENOMEM, "%u feature rows", r->n_row);
    if (g->order) cd_rows_order((float *)g->row.p + r0 * CD_N_COL, r->n_row, NULL);
    g->n++;
    return CDMPP_OK;
}

cdmpp_status cd_batch_builder_add_steps(cd_batch_builder *g, const int32_t *code, size_t n,
                                        cdmpp_err *err) {
    const size_t at = (size_t)last(&g->step_ptr, g->n_stepped);
    if (!put(&g->step, at, code, n, sizeof *code) ||
        !put_end(&g->step_ptr, g->n_stepped, (int64_t)(at + n)))
        return CD_FAIL(err, ENOMEM, "steps of %zu programs", g->n);
    g->n_stepped++;
    return CDMPP_OK;
}

cdmpp_status cd_batch_builder_add_facts(cd_batch_builder *g, int set, const float *facts,
                                        const float *analytic, cdmpp_err *err) {
    if (!put(&g->facts, g->n_facts, facts, 1, CD_N_FACTS * sizeof *facts) ||
        !put(&g->analytic, g->n_facts, analytic, 1, CD_N_ANALYTIC * sizeof *analytic))
        return CD_FAIL(err, ENOMEM, "facts of %zu programs", g->n);
    g->n_facts++;
    g->facts_set = set;
    return CDMPP_OK;
}

size_t cd_batch_builder_rows(const cd_batch_builder *g) { return (size_t)last(&g->row_ptr, g->n); }

/* Rows of the program that was added last, as the model reads them, until the next add; NULL: there
 * is none. */
static const float *batch_builder_last(const cd_batch_builder *g) {
    return g->n ? (const float *)g->row.p + last(&g->row_ptr, g->n - 1) * CD_N_COL : NULL;
}

/* Pointers to rows are set only here: the buffers may move while programs are added. */
cd_program_view cd_batch_builder_view(cd_batch_builder *g) {
    cd_program_view v = {.n = g->n,
                         .row = g->row.p,
                         .row_ptr = g->row_ptr.p,
                         .device = g->device.p,
                         .flop = g->flop.p};
    if (g->n && g->n_stepped == g->n) v.step_ptr = g->step_ptr.p, v.step = g->step.p;
    if (g->n && g->n_facts == g->n)
        v.facts = g->facts.p, v.analytic = g->analytic.p, v.facts_set = g->facts_set;
    if (!g->leaves || !g->n) return v;
    const float **x = g->leaf_x.p;
    const float *leaf = g->leaf.p;
    const int64_t n_leaf = last(&g->leaf_ptr, g->n);
    for (int64_t l = 0; l < n_leaf; l++) x[l] = leaf + l * CD_N_COL;
    v.leaf_ptr = g->leaf_ptr.p;
    v.leaf_x = x;
    v.leaf_pos = g->leaf_pos.p;
    v.leaf_node = g->leaf_node.p;
    v.path_ptr = g->path_ptr.p;
    v.path_extent = g->path_extent.p;
    v.path_kind = g->path_kind.p;
    v.tree_ptr = g->tree_ptr.p;
    v.tree = g->tree.p;
    return v;
}

/* The launch of a program from its feature rows and its task. */

static double argument_bytes(const cd_te_dag *dag) {
    double sum = 0;
    for (uint32_t i = 0; i < dag->n_arg; i++) {
        const cd_te_op *op = &dag->op[dag->tensor_op[dag->arg[i]]];
        double n = cd_expr_dtype_bytes(op->dtype[dag->arg[i] - op->first_tensor]);
        for (uint32_t k = 0; k < op->rank; k++) n *= (double)op->shape[k];
        sum += n;
    }
    return sum;
}

/* The three extents from column c on; columns hold log2(1 + extent). */
static double extents(const float *x, size_t c) {
    double n = 1;
    for (size_t k = 0; k < 3; k++) n *= fmax(1, round(exp2((double)x[c + k]) - 1));
    return n;
}

void cd_launch_of(const cd_task *task, const cd_rows *rows, cd_launch *out) {
    const double flop = cd_task_flop(task);
    *out = (cd_launch){.flop = flop >= 0 ? flop : (double)NAN, .bytes = argument_bytes(task->dag)};
    double most = 0;
    for (uint32_t i = 0; i < rows->n_row; i++) {
        const float *x = rows->row + (size_t)i * CD_N_COL;
        const double blocks = extents(x, CD_COL_BLOCK_X), threads = extents(x, CD_COL_THREAD_X);
        if (x[CD_COL_IS_GPU] <= 0 || blocks * threads <= most) continue;
        most = blocks * threads;
        out->blocks = blocks;
        out->block_threads = threads;
    }
}

/* Facts of a candidate, for models that read them. */

cdmpp_status cd_program_facts_new(cd_program_facts *f, const cd_model *m, cdmpp_err *err) {
    f->m = m;
    f->scratch = NULL;
    f->numbers = NULL;
    return cd_model_needs_facts(m) ? cd_facts_new(&f->scratch, err) : CDMPP_OK;
}

void cd_program_facts_free(cd_program_facts *f) { cd_facts_free(f->scratch); }

cdmpp_status cd_program_facts_fill(cd_program_facts *f, cd_program *p, bool rows,
                                   const cd_device_pick *which, cdmpp_err *err) {
    const cd_device_numbers *device = f->numbers   ? f->numbers
                                      : which->own ? which->own
                                                   : cd_model_device_numbers(f->m, which->device);
    cd_nest nest;
    if (!f->scratch) return CDMPP_OK;
    if (rows)
        return CD_FAIL(err, EMODEL, "the model reads facts of loop nests, rows do not hold them");
    CD_TRY(cd_program_nest(p, &nest, err));
    const cd_facts_set set = cd_model_facts_set(f->m), have = cd_facts_set_of_nest(&nest);
    if (cd_facts_set_is_gpu(set) != cd_facts_set_is_gpu(have))
        return CD_FAIL(
            err, EMODEL, "the model reads facts of loop nests of %s programs, this is a %s program",
            cd_facts_set_is_gpu(set) ? "GPU" : "CPU", cd_facts_set_is_gpu(have) ? "GPU" : "CPU");
    CD_TRY(cd_facts_of(f->scratch, set, &nest, f->fact, err));
    return cd_facts_input_times(set, f->fact, device, f->analytic, err);
}

struct cd_scorer {
    const cd_model *m;
    const cd_task_registry *tasks;
    size_t max_rows, slots;
    bool traits, launch, sketch, steps; /* traits: the caller corrects */
    bool here;                          /* answers get the model's own correction */
    cd_scorer_tap tap;
    cd_device_match *which;
    cd_kinds *kinds;        /* what is unlike of tasks */
    cd_program_facts facts; /* of one candidate */
    cd_arena arena;         /* one record */
    cd_program *program;
    cd_model_scratch *scratch;
    cd_batch_builder *gather;  /* programs since the last call of the model */
    cd_model_prediction *pred; /* (cap) */
    cd_scored **open;          /* (cap) whose programs these are */
    size_t n, cap;
    /* (devices of the model) descriptions, NULL: not described; NULL: none */
    const cd_device **peaks;
    float *row; /* (cap_row, CD_N_COL) of one candidate, converted */
    size_t cap_row;
};

void cd_scorer_free(cd_scorer *s) {
    if (!s) return;
    cd_arena_free(&s->arena);
    cd_program_facts_free(&s->facts);
    cd_program_free(s->program);
    cd_model_scratch_free(s->scratch);
    cd_batch_builder_free(s->gather);
    cd_device_match_free(s->which);
    cd_kinds_free(s->kinds);
    cd_mem_free(s->pred);
    cd_mem_free(s->open);
    cd_mem_free(s->row);
    cd_mem_free(s->peaks);
    cd_mem_free(s);
}

static cdmpp_status find_peaks(cd_scorer *s, const cd_device_table *t, cdmpp_err *err) {
    if (!t) return CDMPP_OK;
    if (!(s->peaks = cd_mem_zalloc(cd_model_n_device(s->m) + 1, sizeof *s->peaks)))
        return CD_FAIL(err, ENOMEM, "devices");
    for (size_t i = 0; i < cd_model_n_device(s->m); i++)
        if (cd_device_table_find(t, cd_model_device(s->m, i), &s->peaks[i], NULL))
            s->peaks[i] = NULL;
    return CDMPP_OK;
}

/* A scorer belongs to one thread: program, scratch memory and batch are its own, the model is
 * shared. */
cdmpp_status cd_scorer_new(const cd_model *m, const cd_task_registry *tasks,
                           const cd_scorer_options *o, cd_scorer **out, cdmpp_err *err) {
    cd_scorer *s = cd_mem_zalloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "scorer");
    s->m = m;
    s->tasks = tasks;
    s->max_rows = o->max_rows;
    s->traits = o->traits;
    s->launch = o->launch;
    s->here = !o->uncorrected && cd_model_here(m);
    s->tap = o->tap;
    s->sketch = o->sketch;
    s->slots = cd_model_slots(m);
    s->steps = cd_model_needs_steps(m);
    cdmpp_status st = cd_device_match_new(m, &o->which, &s->which, err);
    if (!st) st = find_peaks(s, o->peaks, err);
    if (!st) st = cd_kinds_new(m, o->uncorrected, &s->kinds, err);
    if (!st) st = cd_program_new(&s->program, err);
    if (!st) st = cd_program_facts_new(&s->facts, m, err);
    s->facts.numbers = o->numbers;
    if (!st) st = cd_model_scratch_new(&s->scratch, err);
    if (!st)
        st = cd_batch_builder_new(cd_model_needs_leaves(m), cd_model_orders_rows(m), &s->gather,
                                  err);
    if (st) cd_scorer_free(s);
    else *out = s;
    return st;
}

const cd_device_pick *cd_scorer_fixed(const cd_scorer *s) {
    return cd_device_match_fixed(s->which);
}

/* ---- one candidate: everything fallible first, then it is entered ---- */
static cdmpp_status room(cd_scorer *s, cdmpp_err *err) {
    if (s->n < s->cap) return CDMPP_OK;
    const size_t cap = s->cap ? 2 * s->cap : 64;
    cd_model_prediction *pred = cd_mem_zalloc(cap, sizeof *pred);
    cd_scored **open = cd_mem_zalloc(cap, sizeof *open);
    if (!pred || !open) {
        cd_mem_free(pred);
        cd_mem_free(open);
        return CD_FAIL(err, ENOMEM, "%zu candidates", cap);
    }
    if (s->n) memcpy(open, s->open, s->n * sizeof *open);
    cd_mem_free(s->pred);
    cd_mem_free(s->open);
    s->pred = pred;
    s->open = open;
    s->cap = cap;
    return CDMPP_OK;
}

/* Rows behind those gathered so far; r NULL: their schedule is not known. */
static cdmpp_status enter(cd_scorer *s, const cd_rows *rows, const cd_record *r, double flop,
                          cd_scored *o, cdmpp_err *err) {
    int32_t *code = NULL;
    uint32_t n_code = 0;
    if (!rows->n_row) return CD_FAIL(err, EINVALID, "the program stores nothing");
    if (s->max_rows && rows->n_row > s->max_rows)
        return CD_FAIL(err, ERANGE, "expected at most %zu rows, found %u", s->max_rows,
                       rows->n_row);
    if (s->steps && !r)
        return CD_FAIL(err, EMODEL,
                       "the model reads the steps of schedules, rows do not hold them");
    if (s->steps) CD_TRY(cd_step_codes(&s->arena, r, &code, &n_code, err));
    CD_TRY(cd_program_facts_fill(&s->facts, s->program, !r, &o->which, err));
    CD_TRY(room(s, err));
    CD_TRY(cd_batch_builder_add(s->gather, rows, o->which.device, flop, err));
    if (s->facts.scratch)
        CD_TRY(cd_batch_builder_add_facts(s->gather, (int)cd_model_facts_set(s->facts.m),
                                          s->facts.fact, s->facts.analytic, err));
    if (s->steps) CD_TRY(cd_batch_builder_add_steps(s->gather, code, n_code, err));
    const cd_rows seen = {.row = batch_builder_last(s->gather), .n_row = rows->n_row};
    if (s->traits) cd_online_adapt_traits(seen.row, seen.n_row, o->trait);
    if (s->launch && o->task) cd_launch_of(o->task, &seen, &o->launch);
    o->truncated = s->slots && rows->n_leaf > s->slots;
    s->open[s->n++] = o;
    return CDMPP_OK;
}

static double measured(cd_arena *a, const cd_record *r) {
    double *cost = cd_arena_alloc(a, r->n_cost + 1, sizeof *cost);
    if (!cost) return (double)NAN;
    if (r->n_cost) memcpy(cost, r->cost_s, r->n_cost * sizeof *cost);
    const cd_label it = cd_label_of(cost, r->n_cost, r->error_no);
    return it.error ? (double)NAN : it.latency_s;
}

/* As features/program takes it: the record's own come first; NULL: not known. */
static const cd_hardware *hardware_of(const cd_task *t, bool has, const cd_hardware *own) {
    return has ? own : t->has_hardware ? &t->hardware : NULL;
}

/* A record that was read into s->arena. */
static cdmpp_status enter_record(cd_scorer *s, const cd_record *r, const char *source,
                                 const cd_aim *aim, cd_scored *o, cdmpp_err *err) {
    cd_rows rows;
    o->measured_s = measured(&s->arena, r);
    o->task = s->tasks ? cd_task_registry_find(s->tasks, r->workload_key) : NULL;
    if (!o->task)
        return cd_err_key(err,
                          CD_FAIL(err, ENOTASK, "no task file defines %.*s",
                                  r->workload_key.n > 150 ? 150 : (int)r->workload_key.n,
                                  r->workload_key.p),
                          "i[0][0]");
    o->key = o->task->workload_key;
    if (aim && aim->device.n)
        CD_TRY(cd_device_match_named(s->which, aim->device, r->target, &o->which, err));
    else CD_TRY(cd_device_match_pick(s->which, r->target, source, &o->which, err));
    CD_TRY(cd_kinds_check(s->kinds, o->task, r->target,
                          hardware_of(o->task, r->has_hardware, &r->hardware), &o->which,
                          &o->unlike, err));
    CD_TRY(cd_program_build(s->program, o->task, r, &rows, err));
    return enter(s, &rows, r, cd_task_flop(o->task), o, err);
}

static cdmpp_status enter_line(cd_scorer *s, const char *text, size_t len, const char *source,
                               const cd_aim *aim, cd_scored *o, cdmpp_err *err) {
    cd_record r;
    cd_arena_reset(&s->arena);
    CD_TRY(cd_record_read(&s->arena, text, len, &r, err));
    return enter_record(s, &r, source, aim, o, err);
}

static cdmpp_status enter_parts(cd_scorer *s, const cd_candidate *ask, cd_scored *o,
                                cdmpp_err *err) {
    cd_record r;
    cd_arena_reset(&s->arena);
    CD_TRY(cd_record_read_parts(&s->arena, ask->text, ask->costs, ask->version, &r, err));
    return enter_record(s, &r, "", ask->aim, o, err);
}

static cdmpp_status enter_steps(cd_scorer *s, const cd_candidate *ask, cd_scored *o,
                                cdmpp_err *err) {
    const cd_aim *aim = ask->aim;
    cd_rows rows;
    cd_record r = {.target = aim->target,
                   .has_hardware = aim->has_hardware,
                   .hardware = aim->hardware,
                   .layout_rewrite = cd_target_layout(cd_target_is_gpu(aim->target))};
    o->task = aim->task;
    o->key = aim->workload_key;
    if (!o->task)
        return CD_FAIL(err, ENOTASK, "%.120s: the task has no definition", aim->workload_key);
    cd_arena_reset(&s->arena);
    if (ask->form == CD_CANDIDATE_STEPS)
        CD_TRY(cd_record_read_steps(&s->arena, ask->text.p, ask->text.n, &r, err));
    else r.step = ask->step, r.n_step = ask->n_step;
    CD_TRY(cd_device_match_named(s->which, aim->device, aim->target, &o->which, err));
    CD_TRY(cd_kinds_check(s->kinds, o->task, aim->target,
                          hardware_of(o->task, aim->has_hardware, &aim->hardware), &o->which,
                          &o->unlike, err));
    CD_TRY(cd_program_build(s->program, aim->task, &r, &rows, err));
    return enter(s, &rows, &r, aim->flop, o, err);
}

static cdmpp_status room_row(cd_scorer *s, size_t n_row, cdmpp_err *err) {
    if (n_row <= s->cap_row) return CDMPP_OK;
    float *x =
        cd_mem_realloc(s->row, s->cap_row * CD_N_COL * sizeof *x, 2 * n_row * CD_N_COL * sizeof *x);
    if (!x) return CD_FAIL(err, ENOMEM, "%zu feature rows", n_row);
    s->row = x;
    s->cap_row = 2 * n_row;
    return CDMPP_OK;
}

/* A row of doubles behind the k rows in s->row. */
static cdmpp_status narrow(cd_scorer *s, const double *v, size_t k, cdmpp_err *err) {
    float *x = s->row + k * CD_N_COL;
    for (size_t c = 0; c < CD_N_COL; c++) {
        if (fabs(v[c]) > 3.4e38)
            return CD_FAIL(err, ENUMERIC, "feature column %zu is beyond float", c);
        x[c] = (float)v[c];
    }
    return CDMPP_OK;
}

/* Rows as aligned floats: where they are if they already lie so, else in s->row. */
static cdmpp_status convert(cd_scorer *s, const void *row, size_t n_row, bool wide,
                            const float **out, cdmpp_err *err) {
    const char *from = row;
    double v[CD_N_COL];
    *out = row;
    if (!n_row || (!wide && (uintptr_t)row % _Alignof(float) == 0)) return CDMPP_OK;
    CD_TRY(room_row(s, n_row, err));
    *out = s->row;
    if (!wide) memcpy(s->row, from, n_row * CD_N_COL * sizeof *s->row);
    for (size_t k = 0; wide && k < n_row; k++, from += sizeof v) {
        memcpy(v, from, sizeof v);
        CD_TRY(narrow(s, v, k, err));
    }
    return CDMPP_OK;
}

/* [[164 numbers], ...] into s->row. */
static cdmpp_status read_rows(cd_scorer *s, cd_str text, size_t *n_row, cdmpp_err *err) {
    double v[CD_N_COL];
    cd_rows_json t = {.at = text.p, .end = text.p + text.n};
    bool more = false;
    for (*n_row = 0;; (*n_row)++) {
        CD_TRY(cd_rows_json_next(&t, v, CD_N_COL, &more, err));
        if (!more) return CDMPP_OK;
        if (s->max_rows && *n_row == s->max_rows)
            return CD_FAIL(err, ERANGE, "expected at most %zu rows, found more", s->max_rows);
        CD_TRY(room_row(s, *n_row + 1, err));
        CD_TRY(narrow(s, v, *n_row, err));
    }
}

/* Rows come as text or as numbers, and without a schedule: task, target and flop are those that the
 * caller says. */
static cdmpp_status enter_rows(cd_scorer *s, const cd_candidate *ask, cd_scored *o,
                               cdmpp_err *err) {
    const cd_aim *aim = ask->aim;
    const cd_str none = {"", 0};
    size_t n_row = ask->n_row;
    cd_rows rows = {0};
    o->key = aim ? aim->workload_key : "";
    if (aim) o->task = aim->task;
    if (s->max_rows && n_row > s->max_rows)
        return CD_FAIL(err, ERANGE, "expected at most %zu rows, found %zu", s->max_rows, n_row);
    if (n_row > INT32_MAX) return CD_FAIL(err, ERANGE, "%zu rows in a candidate", n_row);
    CD_TRY(cd_device_match_named(s->which, aim ? aim->device : none, aim ? aim->target : none,
                                 &o->which, err));
    CD_TRY(cd_kinds_check(s->kinds, o->task, aim ? aim->target : none,
                          aim && aim->has_hardware ? &aim->hardware : NULL, &o->which, &o->unlike,
                          err));
    if (ask->form == CD_CANDIDATE_ROWS_TEXT) {
        CD_TRY(cd_err_key(err, read_rows(s, ask->text, &n_row, err), "rows"));
        rows.row = s->row;
    } else {
        CD_TRY(convert(s, ask->row, n_row, ask->form == CD_CANDIDATE_ROWS_F64, &rows.row, err));
    }
    rows.n_row = (uint32_t)n_row;
    return enter(s, &rows, NULL, aim ? aim->flop : -1, o, err);
}

/* ---- the least that a device can ---- */
static bool raise_to(cd_model_prediction *p, double least_s) {
    const bool below = p->latency_s < least_s;
    /* an end that nothing tells may be anywhere below: fmin leaves it out */
    const bool beyond = p->reason & CD_UNLIKE_RANGE && !(p->low_s >= p->latency_s);
    const double times = !below   ? 1
                         : beyond ? fmin(least_s / p->low_s, 2 * least_s / p->latency_s)
                                  : least_s / p->latency_s;
    p->latency_s = fmax(p->latency_s * times, least_s);
    p->median_s = below ? p->latency_s : fmax(p->median_s, least_s);
    if (!isnan(p->high_s)) p->high_s = fmax(p->high_s * times, p->latency_s);
    if (!isnan(p->low_s)) p->low_s = fmax(p->low_s * times, least_s);
    if (!below) return false;
    p->like_std = fmin(p->like_std, 0);
    p->flags |= CD_MODEL_OUT_OF_RANGE;
    p->reason |= CD_UNLIKE_PEAK;
    return true;
}

/* The answer lies the farther below its median the less sure the model is: no order. */
void cd_score_bound(cd_scored *o) {
    o->model_s = o->pred.median_s;
    if (o->least_s > 0 && raise_to(&o->pred, o->least_s))
        cd_trained_on_add(&o->unlike, CD_UNLIKE_BIT_PEAK, "", 0);
}

/* ---- batches ---- */
void cd_scorer_start(cd_scorer *s) {
    s->n = 0;
    cd_batch_builder_clear(s->gather);
}

cdmpp_status cd_scorer_finish(cd_scorer *s, cdmpp_err *err) {
    const cd_program_view v = cd_batch_builder_view(s->gather);
    CD_TRY((s->sketch ? cd_model_sketch : cd_model_predict)(s->m, s->scratch, &v, NULL, s->n,
                                                            s->pred, err));
    for (size_t k = 0; k < s->n; k++) {
        cd_scored *o = s->open[k];
        o->pred = s->pred[k];
        if (s->tap.see) s->tap.see(s->tap.ctx, o, &v, k);
        const cd_model_asked asked = {.compared = o->task && o->task->dag,
                                      .reason = o->unlike.reason,
                                      .uncorrected = !s->here,
                                      .doubt = o->which.unknown ? &o->which.doubt : NULL};
        CD_TRY(cd_model_settle(s->m, &v, k, &asked, &o->pred, err));
        if (o->pred.reason & CD_UNLIKE_RANGE)
            cd_trained_on_add(&o->unlike, CD_UNLIKE_BIT_RANGE, "", 0);
        if (s->peaks && o->task && o->task->dag)
            o->least_s = cd_device_least_s(
                o->which.unknown ? o->which.own : s->peaks[o->which.device], &o->task->dag->least);
        if (!s->traits) cd_score_bound(o);
    }
    cd_scorer_start(s);
    return CDMPP_OK;
}

/* What became of a candidate that was entered, or was not. */
static cdmpp_status entered(cd_scorer *s, cdmpp_status st, cd_scored *o, cdmpp_err *err) {
    o->st = st;
    if (st == CDMPP_ENOMEM) return CD_FAIL(err, ENOMEM, "%s", o->err.msg);
    return cd_batch_builder_rows(s->gather) >= CD_SCORER_ROWS ? cd_scorer_finish(s, err) : CDMPP_OK;
}

static const cd_scored nothing = {.measured_s = (double)NAN};

cdmpp_status cd_scorer_line(cd_scorer *s, const cd_predict_line *line, cd_scored *out,
                            cdmpp_err *err) {
    *out = nothing;
    const cdmpp_status st =
        enter_line(s, line->text, line->len, line->source, NULL, out, &out->err);
    if (st) cd_err_add_place(&out->err, line->source, line->number);
    return entered(s, st, out, err);
}

static cdmpp_status enter_ask(cd_scorer *s, const cd_candidate *ask, cd_scored *o, cdmpp_err *err) {
    switch (ask->form) {
    case CD_CANDIDATE_REFUSED: break;
    case CD_CANDIDATE_LINE: return enter_line(s, ask->text.p, ask->text.n, "", ask->aim, o, err);
    case CD_CANDIDATE_PARTS: return enter_parts(s, ask, o, err);
    case CD_CANDIDATE_STEPS:
    case CD_CANDIDATE_SCHEDULE: return enter_steps(s, ask, o, err);
    case CD_CANDIDATE_ROWS_F32:
    case CD_CANDIDATE_ROWS_F64:
    case CD_CANDIDATE_ROWS_TEXT: return enter_rows(s, ask, o, err);
    }
    *err = *ask->why;
    return ask->why->code;
}

cdmpp_status cd_scorer_add(cd_scorer *s, const cd_candidate *ask, cd_scored *out, cdmpp_err *err) {
    *out = nothing;
    return entered(s, enter_ask(s, ask, out, &out->err), out, err);
}

cdmpp_status cd_scorer_run(cd_scorer *s, const cd_predict_line *line, size_t n, cd_scored *out,
                           cdmpp_err *err) {
    cd_scorer_start(s);
    for (size_t i = 0; i < n; i++) CD_TRY(cd_scorer_line(s, &line[i], &out[i], err));
    return cd_scorer_finish(s, err);
}
