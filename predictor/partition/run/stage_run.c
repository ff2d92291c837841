/* Stages as actions of the multi-device executor: each group on a processor, a wait for all between
 * stages. */
#include "predictor/partition/run/stage_run.h"

#include <math.h>
#include <string.h>

#define NONE UINT32_MAX
enum { MOST_PASSES = 4001, LEAST_PASSES = 9 };

struct cd_stage_run {
    cd_arena arena;
    cd_stage_run_options ask;
    double *solo_s; /* (n_op) */
};

struct cd_stage_exec {
    cd_arena arena;
    cd_stage_run *of;
    cd_multi_net dn;
    cd_multi_device *device;
    cd_multi_buffer *buffer;
    cd_multi_action *action;
    cd_multi_action_time *ran; /* (actions) of a pass */
    uint32_t *where;           /* (n_buffer of the workload) */
    uint32_t *wbuffer;         /* (dn.n_buffer) */
    /* (n_op) NONE: not in it; a split operator's first action, and how many */
    uint32_t *action_of, *n_piece;
    cd_multi_executor *net;
};

static bool has_program(const cd_workload *w, const cd_program_select *p, uint32_t g) {
    const cd_workload_group *x = &w->group[g];
    return x->task != CD_GRAPH_NONE && !x->weights && !p->task[x->task].status;
}

/* ---- a block ---- */

/* Nothing is compiled or opened here: programs come from the selection, and each stage opens an
 * executor of its own. */
cdmpp_status cd_stage_run_open(const cd_stage_run_options *a, cd_stage_run **out, cdmpp_err *err) {
    if (!a->n_op || a->n_op > CD_STAGE_OPS || !a->n_core)
        return CD_FAIL(err, ERANGE, "%u operators (1 to %d) on %u processors", a->n_op,
                       CD_STAGE_OPS, a->n_core);
    for (uint32_t k = 0; k < a->n_op; k++)
        if (a->group[k] >= a->work->n_group || !has_program(a->work, a->pick, a->group[k]))
            return CD_FAIL(err, EBACKEND, "group %u has no program", a->group[k]);
    cd_stage_run *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "block");
    r->ask = *a;
    r->solo_s = CD_NEWN(&r->arena, double, a->n_op);
    if (!r->solo_s) {
        cd_stage_run_close(r);
        return CD_FAIL(err, ENOMEM, "block");
    }
    for (uint32_t k = 0; k < a->n_op; k++)
        r->solo_s[k] = a->solo_s
                           ? a->solo_s[k]
                           : a->pick->task[a->work->group[a->group[k]].task].item.out.time.median_s;
    *out = r;
    return CDMPP_OK;
}

void cd_stage_run_close(cd_stage_run *r) {
    if (!r) return;
    cd_arena_free(&r->arena);
    cd_mem_free(r);
}

/* ---- stages as actions ---- */

static uint32_t add_buffer(cd_stage_exec *s, uint32_t wbuffer, cd_multi_buffer b) {
    s->wbuffer[s->dn.n_buffer] = wbuffer;
    s->buffer[s->dn.n_buffer] = b;
    return s->dn.n_buffer++;
}

/* The buffer of a parameter; a packed one is a window of it that has the shape in which the program
 * sees it. */
static uint32_t buffer_of(cd_stage_exec *s, uint32_t wbuffer, const cd_codegen_buffer *c,
                          const cd_measure_arg *arg) {
    const cd_workload_buffer *x = &s->of->ask.work->buffer[wbuffer];
    const int64_t bytes =
        cd_graph_shape_elements(&x->shape) * (int64_t)cd_expr_dtype_bytes(x->dtype);
    if (s->where[wbuffer] == NONE)
        s->where[wbuffer] = add_buffer(s, wbuffer,
                                       (cd_multi_buffer){.name = c->name,
                                                         .of = CD_MULTI_OWN,
                                                         .bytes = bytes,
                                                         .constant = x->is_const,
                                                         .dtype = x->dtype,
                                                         .rank = x->shape.rank,
                                                         .shape = x->shape.dim});
    if (!c->n_digit) return s->where[wbuffer];
    return add_buffer(s, NONE,
                      (cd_multi_buffer){.name = c->name,
                                        .of = s->where[wbuffer],
                                        .bytes = bytes,
                                        .constant = x->is_const,
                                        .dtype = x->dtype,
                                        .rank = arg->rank,
                                        .shape = arg->shape});
}

static cdmpp_status add_action(cd_stage_exec *s, uint32_t op, uint32_t device, cdmpp_err *err) {
    s->n_piece[op] = 1;
    const cd_stage_run_options *a = &s->of->ask;
    const cd_workload_group *g = &a->work->group[a->group[op]];
    const cd_program_select_task *t = &a->pick->task[g->task];
    uint32_t *arg = CD_NEWN(&s->arena, uint32_t, g->n_read + 2);
    if (!arg) return CD_FAIL(err, ENOMEM, "stages");
    for (uint32_t k = 0; k <= g->n_read; k++)
        arg[k] = buffer_of(s, k < g->n_read ? g->read[k] : g->write, &t->item.build.code->buffer[k],
                           &t->job.arg[k]);
    s->action_of[op] = s->dn.n_action;
    s->action[s->dn.n_action++] = (cd_multi_action){
        .name = cd_task_registry_at(a->work->tasks, a->work->task[g->task].task)->workload_key,
        .device = device,
        .build = &t->item.build,
        .buffer = arg};
    return CDMPP_OK;
}

/* Groups to processors, the longest first, each to the one that is free first; ties: the lower
 * number. */
static void spread(const cd_stage_run *r, const cd_stage_step *g, uint32_t *device) {
    double load[CD_STAGE_OPS] = {0}, length[CD_STAGE_OPS] = {0};
    const uint32_t n = r->ask.n_core < CD_STAGE_OPS ? r->ask.n_core : CD_STAGE_OPS;
    for (uint32_t k = 0; k < g->n_group; k++)
        for (uint32_t i = g->first[k]; i < g->first[k + 1]; i++) length[k] += r->solo_s[g->op[i]];
    for (uint32_t left = g->n_group; left-- > 0;) {
        uint32_t longest = NONE, at = 0;
        for (uint32_t k = 0; k < g->n_group; k++)
            if (length[k] >= 0 && (longest == NONE || length[k] > length[longest])) longest = k;
        for (uint32_t d = 1; d < n; d++)
            if (load[d] < load[at]) at = d;
        device[longest] = at;
        load[at] += length[longest];
        length[longest] = -1;
    }
}

/* Pieces of one operator, one on each of the first processors. */
static cdmpp_status add_pieces(cd_stage_exec *s, const cd_stage_step *g, const uint32_t *barrier,
                               uint32_t n_barrier, uint32_t *mine, cdmpp_err *err) {
    const uint32_t op = g->op[g->first[0]], at = s->dn.n_action, n = g->split;
    if (n > s->of->ask.n_core)
        return CD_FAIL(err, ERANGE, "an operator in %u pieces on %u processors", n,
                       s->of->ask.n_core);
    CD_TRY(add_action(s, op, 0, err));
    const cd_codegen_code *c = s->action[at].build->code;
    if (!cd_multi_splits(c) || c->part[0].iterations < (int64_t)n)
        return CD_FAIL(err, EINVALID, "operator %u does not run in %u pieces", op, n);
    for (uint32_t u = 0; u < n; u++) {
        s->action[at + u] = s->action[at];
        s->action[at + u].device = u;
        s->action[at + u].begin = c->part[0].iterations * u / n,
                       s->action[at + u].end = c->part[0].iterations * (u + 1) / n;
        s->action[at + u].after = barrier, s->action[at + u].n_after = n_barrier;
        mine[u] = at + u;
    }
    s->n_piece[op] = n;
    s->dn.n_action = at + n;
    return CDMPP_OK;
}

/* last (n_core): each processor's last action of the stage before; this one's afterwards. */
static cdmpp_status add_stage(cd_stage_exec *s, const cd_stage_step *g, uint32_t *last,
                              cdmpp_err *err) {
    const uint32_t n = s->of->ask.n_core;
    uint32_t device[CD_STAGE_OPS], *mine = CD_NEWN(&s->arena, uint32_t, n),
                                   *barrier = CD_NEWN(&s->arena, uint32_t, n), n_barrier = 0;
    if (!mine || !barrier) return CD_FAIL(err, ENOMEM, "stages");
    for (uint32_t d = 0; d < n; d++) {
        mine[d] = NONE;
        if (last[d] != NONE) barrier[n_barrier++] = last[d];
    }
    if (g->split) CD_TRY(add_pieces(s, g, barrier, n_barrier, mine, err));
    else spread(s->of, g, device);
    for (uint32_t k = 0; k < g->n_group && !g->split; k++)
        for (uint32_t i = g->first[k]; i < g->first[k + 1]; i++) {
            const uint32_t d = device[k], at = s->dn.n_action;
            CD_TRY(add_action(s, g->op[i], d, err));
            if (mine[d] == NONE) {
                s->action[at].after = barrier;
                s->action[at].n_after = n_barrier;
            }
            mine[d] = at;
        }
    memcpy(last, mine, n * sizeof *last);
    return CDMPP_OK;
}

static cdmpp_status add_all(cd_stage_exec *s, const cd_stage_step *stage, uint32_t n_stage,
                            cdmpp_err *err) {
    const uint32_t n = s->of->ask.n_core;
    uint32_t *last = CD_NEWN(&s->arena, uint32_t, n);
    if (!last) return CD_FAIL(err, ENOMEM, "stages");
    for (uint32_t d = 0; d < n; d++) last[d] = NONE;
    for (uint32_t k = 0; k < n_stage; k++) CD_TRY(add_stage(s, &stage[k], last, err));
    for (uint32_t op = 0; !n_stage && op < s->of->ask.n_op; op++) CD_TRY(add_action(s, op, 0, err));
    return CDMPP_OK;
}

/* Two buffers an argument at most: a packed one needs a window beside the buffer itself. */
static cdmpp_status make_arrays(cd_stage_exec *s, cdmpp_err *err) {
    const cd_stage_run_options *a = &s->of->ask;
    size_t args = 0;
    for (uint32_t k = 0; k < a->n_op; k++) args += a->work->group[a->group[k]].n_read + 1;
    s->device = CD_NEWN(&s->arena, cd_multi_device, a->n_core);
    s->buffer = CD_NEWN(&s->arena, cd_multi_buffer, 2 * args);
    s->wbuffer = CD_NEWN(&s->arena, uint32_t, 2 * args);
    s->action = CD_NEWN(&s->arena, cd_multi_action, (size_t)a->n_op * a->n_core);
    s->action_of = CD_NEWN(&s->arena, uint32_t, a->n_op);
    s->n_piece = CD_NEWN(&s->arena, uint32_t, a->n_op);
    s->ran = CD_NEWN(&s->arena, cd_multi_action_time, (size_t)a->n_op * a->n_core);
    s->where = CD_NEWN(&s->arena, uint32_t, a->work->n_buffer + 1);
    if (!s->device || !s->buffer || !s->wbuffer || !s->action || !s->action_of || !s->n_piece ||
        !s->ran || !s->where)
        return CD_FAIL(err, ENOMEM, "stages");
    for (uint32_t d = 0; d < a->n_core; d++)
        s->device[d] = (cd_multi_device){.name = "processor", .core = a->core[d]};
    for (uint32_t k = 0; k < a->n_op; k++) s->action_of[k] = NONE;
    for (uint32_t b = 0; b < a->work->n_buffer; b++) s->where[b] = NONE;
    s->dn = (cd_multi_net){
        .n_device = a->n_core, .device = s->device, .buffer = s->buffer, .action = s->action};
    return CDMPP_OK;
}

/* Everything that no operator of it makes: the same numbers in each run of the block. */
static cdmpp_status fill(cd_stage_exec *s, cdmpp_err *err) {
    for (uint32_t b = 0; b < s->dn.n_buffer; b++) {
        if (s->wbuffer[b] == NONE) continue;
        const cd_workload_buffer *x = &s->of->ask.work->buffer[s->wbuffer[b]];
        const float f = (float)x->value;
        if (!isnan(x->value) && x->dtype == CD_F32 && s->buffer[b].bytes == sizeof f)
            CD_TRY(cd_multi_executor_write(s->net, b, &f, err));
        else CD_TRY(cd_multi_executor_fill(s->net, b, s->wbuffer[b], err));
    }
    return CDMPP_OK;
}

cdmpp_status cd_stage_exec_open(cd_stage_run *r, const cd_stage_step *stage, uint32_t n_stage,
                                cd_stage_exec **out, cdmpp_err *err) {
    cd_stage_exec *s = cd_mem_zalloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "stages");
    s->of = r;
    cdmpp_status st = make_arrays(s, err);
    if (!st) st = add_all(s, stage, n_stage, err);
    if (!st) st = cd_multi_executor_open(&s->dn, &s->net, err);
    if (!st) st = fill(s, err);
    if (st) cd_stage_exec_close(s);
    else *out = s;
    return st;
}

void cd_stage_exec_close(cd_stage_exec *s) {
    if (!s) return;
    cd_multi_executor_close(s->net);
    cd_arena_free(&s->arena);
    cd_mem_free(s);
}

/* ---- running ---- */

/* Of an operator in pieces from the first one's start to the last one's end. */
static cd_multi_action_time time_of(const cd_stage_exec *s, uint32_t op) {
    cd_multi_action_time t = {0};
    if (s->action_of[op] == NONE) return t;
    t = s->ran[s->action_of[op]];
    for (uint32_t i = 1; i < s->n_piece[op]; i++) {
        const cd_multi_action_time *x = &s->ran[s->action_of[op] + i];
        t = (cd_multi_action_time){fmin(t.start_s, x->start_s), fmax(t.end_s, x->end_s),
                                   t.done && x->done};
    }
    return t;
}

cdmpp_status cd_stage_exec_pass(cd_stage_exec *s, cd_multi_action_time *ran, double *total_s,
                                cdmpp_err *err) {
    CD_TRY(cd_multi_executor_pass(s->net, ran ? s->ran : NULL, total_s, NULL, err));
    for (uint32_t k = 0; ran && k < s->of->ask.n_op; k++) ran[k] = time_of(s, k);
    return CDMPP_OK;
}

cdmpp_status cd_stage_exec_result(cd_stage_exec *s, uint32_t op, void *to, cdmpp_err *err) {
    if (op >= s->of->ask.n_op || s->action_of[op] == NONE)
        return CD_FAIL(err, ERANGE, "operator %u is not in these stages", op);
    return cd_multi_executor_read(
        s->net, s->where[s->of->ask.work->group[s->of->ask.group[op]].write], to, err);
}

cdmpp_status cd_stage_exec_compare(cd_stage_exec *const *s, uint32_t n, double budget_s,
                                   double *seconds, cdmpp_err *err) {
    double *v = cd_mem_zalloc((size_t)n * MOST_PASSES, sizeof *v);
    const double end = cd_clock_wall() + budget_s;
    cdmpp_status st = v ? CDMPP_OK : CD_FAIL(err, ENOMEM, "passes");
    unsigned m = 0;
    /* not counted */
    for (uint32_t k = 0; k < n && !st; k++) st = cd_stage_exec_pass(s[k], NULL, &v[0], err);
    for (; !st && m < MOST_PASSES && (m < LEAST_PASSES || cd_clock_wall() < end); m += !st)
        for (uint32_t k = 0; k < n && !st; k++)
            st = cd_stage_exec_pass(s[k], NULL, &v[(size_t)k * MOST_PASSES + m], err);
    for (uint32_t k = 0; k < n && !st; k++)
        seconds[k] = cd_sort_to_median(v + (size_t)k * MOST_PASSES, m);
    cd_mem_free(v);
    return st;
}
