/* A network computed from contents by name: first what is computed from weights alone, then the
 * network with these results as its weights. */
#include "predictor/partition/run/network_values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "features/sketch/sketch.h"
#include "predictor/partition/run/network_run.h"
#include "profiler/backend/backend.h"

/* A whole network on this machine: programs are chosen, run in its order and timed, and each
 * operator alone beside it. */

enum { VECTOR_BYTES = 64 };

void cd_network_run_free(cd_network_run *r) {
    if (!r) return;
    cd_arena_free(&r->arena);
    cd_mem_free(r);
}

/* ---- programs ---- */

static const char *key_of(const cd_workload *w, uint32_t task) {
    return cd_task_registry_at(w->tasks, w->task[task].task)->workload_key;
}

static const cd_schedule_db_entry *in_book(const cd_network_run_options *a, const cd_workload *w,
                                           uint32_t task) {
    return a->schedules ? cd_schedule_db_find(a->schedules, key_of(w, task)) : NULL;
}

static int threads_of(const cd_network_run_options *a) {
    const char *target = a->target ? a->target : "";
    if (a->threads > 0) return a->threads;
    return strstr(target, "-num-cores=") ? cd_backend_cpu_threads(target) : 1;
}

int cd_network_run_processors(const cd_network_run_options *a) {
    return (a->workers > 1 ? (int)a->workers : 1) * threads_of(a);
}

/* Tasks in the database pass their record. The others have no line: cd_program_select_run samples
 * `trials` schedules and takes the fastest measured one. */
static cdmpp_status pick(const cd_network_loaded *l, const cd_network_run_options *a,
                         cd_program_select **out, cdmpp_err *err) {
    const cd_workload *w = l->work;
    const char **line = cd_mem_zalloc(w->n_task + 1, sizeof *line);
    if (!line) return CD_FAIL(err, ENOMEM, "%u tasks", w->n_task);
    cd_program_select_options o = {.line = line,
                                   .reference = a->check,
                                   .trials = a->trials,
                                   .seed = a->seed,
                                   .target = a->target && a->target[0] ? a->target : "llvm",
                                   .threads = threads_of(a),
                                   .measure = a->measure,
                                   .until_s = a->until_s,
                                   .stop = a->stop};
    const cd_backend_kind *kind = cd_backend_for_target((cd_str){o.target, strlen(o.target)});
    const bool gpu = kind && kind->dialect != CD_DIALECT_C;
    o.hardware =
        a->hardware ? *a->hardware : cd_target_hardware(gpu, gpu ? 0 : threads_of(a), VECTOR_BYTES);
    for (uint32_t k = 0; k < w->n_task; k++) {
        const cd_schedule_db_entry *s = in_book(a, w, k);
        if (s) line[o.n_line++] = s->line;
    }
    const cdmpp_status st = cd_program_select_run(w, &o, out, err);
    cd_mem_free(line);
    return st;
}

/* ---- results ---- */

static const char *text(cd_arena *a, const char *s) {
    return cd_str_dup(a, (cd_str){s, strlen(s)});
}

static cdmpp_status say_drawn(cd_network_run *r, const cd_program_select_task *t, uint64_t seed,
                              const char **out, cdmpp_err *err) {
    char s[96];
    snprintf(s, sizeof s, "drawn: best of %u measured here, seed %llu", t->tried,
             (unsigned long long)seed);
    *out = text(&r->arena, s);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "origin of a schedule");
}

/* A group that did not run keeps CD_NETWORK_RUN_NOTHING and the reason. Texts are copied: the
 * selection is freed before the result. */
static cdmpp_status fill_node(cd_network_run *r, uint32_t k, const cd_network_loaded *l,
                              const cd_network_run_options *a, const cd_program_select *p,
                              const cd_op_profile_group *g, cdmpp_err *err) {
    cd_network_run_node *n = &r->node[k];
    const uint32_t task = l->work->group[k].task;
    if (task == CD_GRAPH_NONE) return CDMPP_OK;
    const cd_program_select_task *t = &p->task[task];
    n->why = t->status ? text(&r->arena, t->err.msg) : NULL;
    if (t->status || !g->ran)
        return !t->status || n->why ? CDMPP_OK : CD_FAIL(err, ENOMEM, "reason");
    const cd_schedule_db_entry *s = in_book(a, l->work, task);
    n->from = t->from_log ? CD_NETWORK_RUN_DB : CD_NETWORK_RUN_SAMPLED;
    n->schedule = t->from_log && s ? text(&r->arena, s->origin ? s->origin : "") : NULL;
    if (!t->from_log) CD_TRY(say_drawn(r, t, a->seed, &n->schedule, err));
    if (!n->schedule) return CD_FAIL(err, ENOMEM, "origin of a schedule");
    n->place_s = g->place_s;
    n->alone_s = g->alone_s;
    n->warm_s = g->warm_s;
    n->cool_s = g->cool_s;
    n->start_s = g->start_s;
    n->end_s = g->end_s;
    n->worker = g->worker;
    return CDMPP_OK;
}

static cdmpp_status fill_run(cd_network_run *r, const cd_network_loaded *l,
                             const cd_network_run_options *a, const cd_program_select *p,
                             const cd_op_profile *o, cdmpp_err *err) {
    const double none = (double)NAN;
    r->n = l->graph->n_node;
    r->node = CD_NEWN(&r->arena, cd_network_run_node, r->n + 1);
    if (!r->node) return CD_FAIL(err, ENOMEM, "%u nodes", r->n);
    for (uint32_t k = 0; k < r->n; k++) {
        cd_network_run_node *n = &r->node[k];
        n->place_s = n->alone_s = n->warm_s = n->cool_s = n->start_s = n->end_s = none;
        n->why = l->graph->node[k].why; /* in the graph's memory, which must outlive this */
        if (k < l->work->n_group) CD_TRY(fill_node(r, k, l, a, p, &o->group[k], err));
        r->n_ran += n->from != CD_NETWORK_RUN_NOTHING;
        r->n_sampled += n->from == CD_NETWORK_RUN_SAMPLED;
        r->n_left += n->from == CD_NETWORK_RUN_NOTHING && l->graph->node[k].kind != CD_NODE_FREE;
    }
    r->workers = a->workers ? a->workers : 1;
    r->pass = o->pass;
    r->pass_s = o->pass.median_s;
    r->cold_s = o->cold_s;
    r->max_error = o->max_error;
    r->memory = o->memory;
    return CDMPP_OK;
}

/* Sampled schedules are added without their times: the estimate that is compared with this run must
 * not know the measured time. */
static cdmpp_status keep_drawn(const cd_network_loaded *l, const cd_network_run_options *a,
                               const cd_program_select *p, const cd_network_run *r,
                               cdmpp_err *err) {
    for (uint32_t k = 0; a->sampled && k < l->work->n_group; k++) {
        const uint32_t task = l->work->group[k].task;
        if (r->node[k].from != CD_NETWORK_RUN_SAMPLED ||
            cd_schedule_db_find(a->sampled, key_of(l->work, task)))
            continue;
        CD_TRY(cd_schedule_db_add(a->sampled, &p->task[task].job.record, r->node[k].schedule,
                                  (double)NAN, err));
    }
    return CDMPP_OK;
}

/* Of all passes: what is left of the time, where that is less. */
static cdmpp_status limit_of(const cd_network_run_options *a, double *out, cdmpp_err *err) {
    const double left = a->until_s > 0 ? a->until_s - cd_clock_wall() : (double)INFINITY;
    *out = a->until_s > 0 ? fmin(left, a->limit_s > 0 ? a->limit_s : left) : a->limit_s;
    return left > 0 ? CDMPP_OK : CD_FAIL(err, EBACKEND, "the time is over before the network runs");
}

static cdmpp_status run(const cd_network_loaded *l, const cd_network_run_options *a,
                        cd_program_select **p, cd_op_profile **o, cd_network_run *r,
                        cdmpp_err *err) {
    cd_op_profile_options no = {.threads = threads_of(a),
                                .budget_s = a->budget_s,
                                .workers = a->workers,
                                .by_chain = true,
                                .pin = a->pin,
                                .alone = a->alone,
                                .check = a->check,
                                .cpu_time = a->cpu_time,
                                .device = a->device};
    CD_TRY(pick(l, a, p, err));
    CD_TRY(limit_of(a, &no.limit_s, err));
    CD_TRY(cd_op_profile_run(l->work, *p, &no, o, err));
    CD_TRY(fill_run(r, l, a, *p, *o, err));
    return keep_drawn(l, a, *p, r, err);
}

cdmpp_status cd_network_run_measure(const cd_network_loaded *l, const cd_network_run_options *a,
                                    cd_network_run **out, cdmpp_err *err) {
    cd_program_select *p = NULL;
    cd_op_profile *o = NULL;
    cd_network_run *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "run");
    const cdmpp_status st = run(l, a, &p, &o, r, err);
    cd_op_profile_free(o);
    cd_program_select_free(p);
    if (st) cd_network_run_free(r);
    else *out = r;
    return st;
}

typedef struct {
    cd_executor_net net;
    cd_executor_net_tensor *tensor;
    cd_executor_net_step *step;
} part;

struct cd_network_live {
    const cd_network_values_options *o;
    cd_workload *w;
    cd_program_select *pick;
    cd_arena arena;
    void **made; /* (buffers) weights that operators computed; NULL: none */
    part main;
    cd_executor *run;
};
typedef struct cd_network_live values;

/* ---- contents ---- */

static int64_t bytes_of(const cd_workload_buffer *b) {
    return cd_graph_shape_elements(&b->shape) * (int64_t)cd_expr_dtype_bytes(b->dtype);
}

static uint32_t number_of(const char *name) {
    cd_hash h = cd_hash_start();
    if (name) cd_hash_add(&h, name, strlen(name));
    return (uint32_t)h.a;
}

/* Known numbers are themselves; all others follow from the name, those of data also from the number
 * of the draw. */
static cdmpp_status fill(void *ctx, const cd_graph *g, uint32_t tensor, float *to, cdmpp_err *err) {
    const cd_graph_tensor *t = &g->tensor[tensor];
    const size_t n = (size_t)cd_graph_shape_elements(&t->shape);
    const uint32_t k = number_of(t->name);
    (void)ctx;
    if (t->dtype != CD_F32)
        return CD_FAIL(err, EUNSUPPORTED, "%.80s is not float32: values are not compared", t->name);
    for (size_t i = 0; i < n && (t->value || t->fvalue); i++)
        to[i] = t->fvalue ? (float)t->fvalue[i] : (float)t->value[i];
    if (t->value || t->fvalue) return CDMPP_OK;
    if (t->is_weight) (void)cd_tensor_fill_weight(CD_F32, k, t->shape.rank, t->shape.dim, to);
    else (void)cd_tensor_fill(CD_F32, k, 0, n, to);
    return CDMPP_OK;
}

/* The same of integers: known ones; else of 8 bits any, of data 0 or 1. */
static cdmpp_status fill_integers(const cd_graph *g, uint32_t tensor, uint32_t draw, void *to,
                                  cdmpp_err *err) {
    const cd_graph_tensor *t = &g->tensor[tensor];
    const size_t n = (size_t)cd_graph_shape_elements(&t->shape),
                 bytes = cd_expr_dtype_bytes(t->dtype);
    const uint32_t k = number_of(t->name) + draw;
    unsigned char *p = to;
    /* little endian */
    for (size_t i = 0; t->value && i < n; i++) memcpy(p + i * bytes, &t->value[i], bytes);
    for (size_t i = 0; !t->value && bytes == 1 && t->is_weight && i < n; i++)
        p[i] = (unsigned char)(cd_rng_at(k, i) >> 56);
    if (t->value || (bytes == 1 && t->is_weight)) return CDMPP_OK;
    return cd_tensor_fill(t->dtype, k, 0, n, to)
               ? CDMPP_OK
               : CD_FAIL(err, EUNSUPPORTED, "%.80s: numbers of its type are not made", t->name);
}

/* A known scalar, of the buffer's type. */
static cdmpp_status write_scalar(const values *v, cd_executor *r, uint32_t b, cdmpp_err *err) {
    const cd_workload_buffer *x = &v->w->buffer[b];
    const float real = (float)x->value;
    const int64_t whole = (int64_t)x->value;
    if (x->dtype == CD_F32) return cd_executor_write(r, b, &real, err);
    return cd_expr_dtype_is_float(x->dtype) ? CDMPP_OK : cd_executor_write(r, b, &whole, err);
}

static cdmpp_status write_one(const values *v, cd_executor *r, uint32_t b, uint32_t draw,
                              cdmpp_err *err) {
    const cd_workload_buffer *x = &v->w->buffer[b];
    if (v->made[b]) return cd_executor_write(r, b, v->made[b], err);
    if (!isnan(x->value)) return write_scalar(v, r, b, err);
    if (x->tensor == CD_GRAPH_NONE) return CD_FAIL(err, EUNSUPPORTED, "a tensor that nobody makes");
    const cd_graph_tensor *t = &v->w->graph->tensor[x->tensor];
    float *to = cd_mem_zalloc((size_t)bytes_of(x) + sizeof *to, 1);
    if (!to) return CD_FAIL(err, ENOMEM, "a tensor");
    cdmpp_status st = CDMPP_OK;
    if (draw && v->o->input && !x->is_const) st = v->o->input(v->o->ctx, t, draw, to, err);
    else if (!cd_expr_dtype_is_float(t->dtype))
        st = fill_integers(v->w->graph, x->tensor, draw, to, err);
    else st = cd_merge_weight(v->w->graph, x->tensor, fill, NULL, to, err);
    if (!st) st = cd_executor_write(r, b, to, err);
    cd_mem_free(to);
    return st;
}

/* ---- the networks ---- */

static cdmpp_status add_step(values *v, part *p, uint32_t group, cdmpp_err *err) {
    const cd_workload_group *g = &v->w->group[group];
    const cd_program_select_task *t = g->task == CD_GRAPH_NONE ? NULL : &v->pick->task[g->task];
    if (!t)
        return CD_FAIL(err, EUNSUPPORTED,
                       "an operator without a definition: values are not compared");
    if (t->status) return CD_FAIL(err, EBACKEND, "an operator without a program: %s", t->err.msg);
    uint32_t *arg = CD_NEWN(&v->arena, uint32_t, g->n_read + 1);
    cd_executor_net_shape *shape = CD_NEWN(&v->arena, cd_executor_net_shape, g->n_read + 1);
    if (!arg || !shape) return CD_FAIL(err, ENOMEM, "an operator");
    for (uint32_t k = 0; k <= g->n_read; k++) {
        arg[k] = k < g->n_read ? g->read[k] : g->write;
        shape[k] = (cd_executor_net_shape){t->job.arg[k].rank, t->job.arg[k].shape};
        const cd_workload_buffer *b = &v->w->buffer[arg[k]];
        cd_executor_net_tensor *x = &p->tensor[arg[k]];
        if (x->bytes) continue; /* known already */
        *x = (cd_executor_net_tensor){
            .bytes = bytes_of(b), .dtype = b->dtype, .rank = b->shape.rank, .shape = b->shape.dim};
        x->role = k == g->n_read ? (g->weights ? CD_TENSOR_RESULT : CD_TENSOR_INNER)
                  : b->is_const  ? CD_TENSOR_WEIGHT
                                 : CD_TENSOR_INPUT;
    }
    p->step[p->net.n_step++] = (cd_executor_net_step){
        cd_task_registry_at(v->w->tasks, v->w->task[g->task].task)->workload_key, &t->item.build,
        arg, shape};
    return CDMPP_OK;
}

/* The groups that work on weights, or the others. */
static cdmpp_status make(values *v, bool weights, part *p, cdmpp_err *err) {
    *p = (part){.tensor = CD_NEWN(&v->arena, cd_executor_net_tensor, (size_t)v->w->n_buffer + 1),
                .step = CD_NEWN(&v->arena, cd_executor_net_step, (size_t)v->w->n_group + 1)};
    if (!p->tensor || !p->step) return CD_FAIL(err, ENOMEM, "a network");
    for (uint32_t g = 0; g < v->w->n_group; g++)
        if (v->w->group[g].weights == weights) CD_TRY(add_step(v, p, g, err));
    for (uint32_t k = 0; k < v->w->graph->n_output + v->w->n_observed && !weights; k++) {
        cd_executor_net_tensor *x = &p->tensor[v->w->output[k]];
        if (x->role == CD_TENSOR_INNER) x->role = CD_TENSOR_RESULT;
    }
    p->net.n_tensor = v->w->n_buffer, p->net.tensor = p->tensor, p->net.step = p->step;
    return CDMPP_OK;
}

static cdmpp_status open_part(values *v, const part *p, cd_executor **out, cdmpp_err *err) {
    CD_TRY(cd_executor_open(
        &p->net, &(cd_executor_options){.threads = v->o->threads ? v->o->threads : 1}, out, err));
    for (uint32_t b = 0; b < p->net.n_tensor; b++)
        if (p->tensor[b].bytes &&
            (p->tensor[b].role == CD_TENSOR_INPUT || p->tensor[b].role == CD_TENSOR_WEIGHT))
            CD_TRY(write_one(v, *out, b, 0, err));
    return CDMPP_OK;
}

/* What is computed from weights, once. */
static cdmpp_status weights(values *v, cdmpp_err *err) {
    part p;
    double total;
    cd_executor *r = NULL;
    CD_TRY(make(v, true, &p, err));
    if (!p.net.n_step) return CDMPP_OK;
    cdmpp_status st = open_part(v, &p, &r, err);
    if (!st) cd_executor_pass(r, NULL, &total);
    for (uint32_t b = 0; b < p.net.n_tensor && !st; b++) {
        if (!p.tensor[b].bytes || p.tensor[b].role != CD_TENSOR_RESULT) continue;
        if (!(v->made[b] = cd_mem_alloc((size_t)p.tensor[b].bytes)))
            st = CD_FAIL(err, ENOMEM, "a weight");
        else st = cd_executor_read(r, b, v->made[b], err);
    }
    cd_executor_close(r);
    return st;
}

/* The caller's records win; else the first program of templates, where they have one, or one
 * sampled schedule. */
static cdmpp_status choose(values *v, cdmpp_err *err) {
    const cd_network_values_options *o = v->o;
    cd_program_select_options s = {.line = o->line,
                                   .n_line = o->n_line,
                                   .log = o->log,
                                   .n_log = o->n_log,
                                   .trials = o->trials ? o->trials : 1,
                                   .seed = o->seed,
                                   .target = o->target,
                                   .hardware = o->hardware,
                                   .threads = o->threads ? o->threads : 1,
                                   .measure = o->measure,
                                   .stop = o->stop};
    if (o->schedule) CD_TRY(o->schedule(o->ctx, v->w, &v->arena, &s.line, &s.n_line, err));
    return cd_program_select_run(v->w, &s, &v->pick, err);
}

static cdmpp_status open_all(values *v, cdmpp_err *err) {
    const cd_network_values_options *o = v->o;
    const cd_workload_options a = {.layout = o->layout,
                                   .target = o->target,
                                   .hardware = &o->hardware,
                                   .quantize = o->quantize,
                                   .weights = true};
    CD_TRY(cd_workload_build(o->graph, &a, &v->w, err));
    CD_TRY(choose(v, err));
    if (!(v->made = cd_mem_zalloc((size_t)v->w->n_buffer + 1, sizeof *v->made)))
        return CD_FAIL(err, ENOMEM, "weights");
    CD_TRY(weights(v, err));
    CD_TRY(make(v, false, &v->main, err));
    return open_part(v, &v->main, &v->run, err);
}

cdmpp_status cd_network_live_open(const cd_network_values_options *o, cd_network_live **out,
                                  cdmpp_err *err) {
    values *v = cd_mem_zalloc(1, sizeof *v);
    *out = NULL;
    if (!v) return CD_FAIL(err, ENOMEM, "a network");
    v->o = o;
    const cdmpp_status st = open_all(v, err);
    if (st) cd_network_live_close(v);
    else *out = v;
    return st;
}

void cd_network_live_close(cd_network_live *v) {
    if (!v) return;
    cd_executor_close(v->run);
    for (uint32_t b = 0; v->made && b < v->w->n_buffer; b++) cd_mem_free(v->made[b]);
    cd_mem_free(v->made);
    cd_program_select_free(v->pick);
    cd_workload_free(v->w);
    cd_arena_free(&v->arena);
    cd_mem_free(v);
}

const cd_workload *cd_network_live_workload(const cd_network_live *v) { return v->w; }

cdmpp_status cd_network_live_input(cd_network_live *v, uint32_t draw, cdmpp_err *err) {
    for (uint32_t b = 0; b < v->main.net.n_tensor; b++)
        if (v->main.tensor[b].bytes && v->main.tensor[b].role == CD_TENSOR_INPUT)
            CD_TRY(write_one(v, v->run, b, draw, err));
    return CDMPP_OK;
}

/* Buffer of input k, CD_GRAPH_NONE: there are fewer. */
static uint32_t input_buffer(const values *v, uint32_t k) {
    for (uint32_t b = 0; b < v->main.net.n_tensor; b++) {
        const cd_workload_buffer *x = &v->w->buffer[b];
        if (!v->main.tensor[b].bytes || v->main.tensor[b].role != CD_TENSOR_INPUT ||
            !isnan(x->value) || x->tensor == CD_GRAPH_NONE)
            continue;
        if (v->w->graph->tensor[x->tensor].is_input && !k--) return b;
    }
    return CD_GRAPH_NONE;
}

uint32_t cd_network_live_inputs(const cd_network_live *v) {
    uint32_t n = 0;
    while (input_buffer(v, n) != CD_GRAPH_NONE) n++;
    return n;
}

const cd_graph_tensor *cd_network_live_input_tensor(const cd_network_live *v, uint32_t k) {
    const uint32_t b = input_buffer(v, k);
    return b == CD_GRAPH_NONE ? NULL : &v->w->graph->tensor[v->w->buffer[b].tensor];
}

cdmpp_status cd_network_live_write(cd_network_live *v, uint32_t k, const void *from,
                                   cdmpp_err *err) {
    const uint32_t b = input_buffer(v, k);
    if (b == CD_GRAPH_NONE) return CD_FAIL(err, ERANGE, "input %u: the network has fewer", k);
    return cd_executor_write(v->run, b, from, err);
}

cd_executor_bytes_used cd_network_live_bytes(const cd_network_live *v) {
    return cd_executor_bytes(v->run);
}

void cd_network_live_pass(cd_network_live *v, double *seconds) {
    cd_executor_pass(v->run, NULL, seconds);
}

const cd_workload_buffer *cd_network_live_result(const cd_network_live *v, uint32_t k) {
    return &v->w->buffer[v->w->output[k]];
}

cdmpp_status cd_network_live_read(const cd_network_live *v, uint32_t k, void *to, cdmpp_err *err) {
    return cd_executor_read(v->run, v->w->output[k], to, err);
}

static cdmpp_status results(values *v, float **out, size_t *n, cdmpp_err *err) {
    double total;
    *n = 0;
    for (uint32_t k = 0; k < v->w->graph->n_output; k++) {
        if (cd_network_live_result(v, k)->dtype != CD_F32)
            return CD_FAIL(err, EUNSUPPORTED, "result %u is not float32: values are not compared",
                           k);
        *n += (size_t)cd_graph_shape_elements(&cd_network_live_result(v, k)->shape);
    }
    if (!(*out = cd_mem_alloc(*n * sizeof **out + 1))) return CD_FAIL(err, ENOMEM, "results");
    cd_network_live_pass(v, &total);
    float *to = *out;
    for (uint32_t k = 0; k < v->w->graph->n_output; k++) {
        CD_TRY(cd_network_live_read(v, k, to, err));
        to += cd_graph_shape_elements(&cd_network_live_result(v, k)->shape);
    }
    return CDMPP_OK;
}

cdmpp_status cd_network_values(const cd_network_values_options *o, float **out, size_t *n,
                               cdmpp_err *err) {
    cd_network_live *v = NULL;
    *out = NULL;
    cdmpp_status st = cd_network_live_open(o, &v, err);
    if (!st) st = results(v, out, n, err);
    cd_network_live_close(v);
    if (st) cd_mem_free(*out), *out = NULL;
    return st;
}
