/* Where the threads of a block must meet (TVM's ThreadSync).
 *
 * Walks the kernel in its order with two facts for each tensor that other threads
 * see: written, and read by another statement, since the last barrier. A statement
 * that reads what is written, or writes what is read, gets a barrier before it.
 * The body of a loop is walked again when its end state adds to its start state,
 * for what the next turn meets.
 *
 * A store never conflicts with the other stores of its tensor, nor with the load of
 * the very element that it writes: TVM's schedules give an element of a stage to
 * one thread, which starts it and adds to it.
 *
 * Below a condition that threads may see differently nobody can wait: such a branch
 * counts as one statement, and must not need a barrier inside. */
#include "profiler/codegen/gpu/codegen_gpu_internal.h"

#include <string.h>

#define MAX_WORK 2000000

enum { WRITTEN = 1, READ = 2 };

typedef struct {
    cd_gpu *g;
    uint8_t *state, *unit; /* (n_slot) since the last barrier; of the statement at hand */
    bool *watched;         /* (n_slot) stored and loaded in this kernel, and shared */
    long work;
    const cd_ast_node *store; /* while the loads of a store are looked at */
    cdmpp_err *err;
} syncer;

static cdmpp_status sync_range(syncer *s, int32_t from, int32_t to);

/* ---- what a statement touches ---- */

static bool same_element(const cd_ast_node *store, const cd_expr *load) {
    if (!store || (uint32_t)load->u.i != store->tensor || load->n != store->n) return false;
    for (uint32_t d = 0; d < load->n; d++)
        if (load->a[d] != store->x[d]) return false;
    return true;
}

static bool touch_load(void *ctx, const cd_expr *e) {
    syncer *s = ctx;
    if (e->op == CD_LOAD && s->watched[e->u.i] && !same_element(s->store, e))
        s->unit[e->u.i] |= READ;
    return true;
}

static void touch(syncer *s, int32_t k) {
    const cd_ast_node *n = &s->g->t->node[k];
    if (n->kind != CD_AST_STORE && n->kind != CD_AST_IF && n->kind != CD_AST_EVAL) return;
    if (n->kind == CD_AST_STORE && s->watched[n->tensor]) s->unit[n->tensor] |= WRITTEN;
    s->store = n->kind == CD_AST_STORE ? n : NULL;
    for (uint32_t i = 0; i < n->n; i++) cd_expr_visit(n->x[i], touch_load, s);
    if (n->kind != CD_AST_EVAL) cd_expr_visit(n->e, touch_load, s);
}

/* Nodes from .. to-1 as one statement, which begins at node `from`. */
static cdmpp_status statement(syncer *s, int32_t from, int32_t to) {
    const uint32_t n = s->g->plan.n_slot;
    bool conflict = false;
    memset(s->unit, 0, n);
    for (int32_t k = from; k < to; k++) {
        if (s->g->t->node[k].dead) continue;
        if (k > from && s->g->t->node[k].kind == CD_AST_EVAL)
            return CD_FAIL(s->err, EUNSUPPORTED,
                           "a reduction over threads below a condition that differs between them");
        touch(s, k);
    }
    for (uint32_t t = 0; t < n; t++) {
        if (s->unit[t] == (READ | WRITTEN))
            return CD_FAIL(
                s->err, EUNSUPPORTED,
                "\"%.60s\" is stored and loaded where threads cannot wait for each other",
                s->g->plan.nest->tensor[t].name);
        conflict |= (s->unit[t] & READ && s->state[t] & WRITTEN) ||
                    (s->unit[t] & WRITTEN && s->state[t] & READ);
    }
    if (conflict) {
        s->g->barrier[from] = true;
        memset(s->state, 0, n);
    }
    for (uint32_t t = 0; t < n; t++) s->state[t] |= s->unit[t];
    return CDMPP_OK;
}

/* Nothing below that could meet: no tensor is stored and loaded, no reduction over threads.
 * Such a loop or branch gets its barrier before it, not inside. */
static bool is_simple(syncer *s, int32_t k) {
    memset(s->unit, 0, s->g->plan.n_slot);
    for (int32_t i = k; i < s->g->t->node[k].end; i++) {
        if (s->g->t->node[i].dead) continue;
        if (s->g->t->node[i].kind == CD_AST_EVAL) return false;
        touch(s, i);
    }
    for (uint32_t t = 0; t < s->g->plan.n_slot; t++)
        if (s->unit[t] == (READ | WRITTEN)) return false;
    return true;
}

/* ---- nodes ---- */

static bool differs(const cd_gpu *g, const cd_expr *e) {
    if (e->op == CD_LOAD) return true;
    if (e->op == CD_VAR)
        return g->vt[e->u.i] || g->tag[e->u.i] == CD_AST_TAG_TX + 1 ||
               g->tag[e->u.i] == CD_AST_TAG_TY + 1 || g->tag[e->u.i] == CD_AST_TAG_TZ + 1;
    for (uint32_t k = 0; k < e->n; k++)
        if (differs(g, e->a[k])) return true;
    return false;
}

static cdmpp_status loop(syncer *s, int32_t k) {
    const cd_ast_node *n = &s->g->t->node[k];
    const uint32_t n_slot = s->g->plan.n_slot;
    uint8_t *before = cd_arena_alloc(s->g->a, n_slot + 1, 1);
    if (!before) return CD_FAIL(s->err, ENOMEM, "barriers");
    memcpy(before, s->state, n_slot);
    CD_TRY(sync_range(s, k + 1, n->end));
    bool more = false;
    for (uint32_t t = 0; t < n_slot; t++) more |= (s->state[t] & ~before[t]) != 0;
    return more ? sync_range(s, k + 1, n->end) : CDMPP_OK;
}

static cdmpp_status branch(syncer *s, int32_t k) {
    const cd_ast_node *n = &s->g->t->node[k];
    const uint32_t n_slot = s->g->plan.n_slot;
    uint8_t *before = cd_arena_alloc(s->g->a, n_slot + 1, 1);
    if (!before) return CD_FAIL(s->err, ENOMEM, "barriers");
    memcpy(before, s->state, n_slot);
    CD_TRY(sync_range(s, k + 1, n->end));
    for (uint32_t t = 0; t < n_slot; t++) s->state[t] |= before[t];
    return CDMPP_OK;
}

/* A loop or branch that differs between threads cannot hold a barrier: it counts as one
 * statement. */
static cdmpp_status sync_node(syncer *s, int32_t k) {
    const cd_ast_node *n = &s->g->t->node[k];
    if (++s->work > MAX_WORK)
        return CD_FAIL(s->err, EUNSUPPORTED, "loops too deep to place barriers in");
    switch ((cd_ast_kind)n->kind) {
    case CD_AST_FOR:
        if (differs(s->g, n->extent_e) || n->loop == CD_LOOP_VECTORIZED || is_simple(s, k))
            return statement(s, k, n->end);
        return loop(s, k);
    case CD_AST_IF:
        return differs(s->g, n->e) || is_simple(s, k) ? statement(s, k, n->end) : branch(s, k);
    case CD_AST_STORE: return statement(s, k, k + 1);
    case CD_AST_EVAL:
        CD_TRY(statement(s, k, k + 1));
        memset(s->state, 0, s->g->plan.n_slot); /* it ends with a barrier */
        return CDMPP_OK;
    default: return sync_range(s, k + 1, n->end);
    }
}

static cdmpp_status sync_range(syncer *s, int32_t from, int32_t to) {
    for (int32_t k = from; k < to;) {
        if (s->g->t->node[k].dead) {
            k++;
            continue;
        }
        CD_TRY(sync_node(s, k));
        k = s->g->t->node[k].end;
    }
    return CDMPP_OK;
}

/* Only tensors that are stored and loaded in this kernel and seen by other threads matter. */
cdmpp_status cd_gpu_sync(cd_gpu *g, cdmpp_err *err) {
    const uint32_t n = g->plan.n_slot;
    syncer s = {.g = g,
                .state = CD_NEWN(g->a, uint8_t, n + 1),
                .unit = CD_NEWN(g->a, uint8_t, n + 1),
                .watched = CD_NEWN(g->a, bool, n + 1),
                .err = err};
    if (!s.state || !s.unit || !s.watched) return CD_FAIL(err, ENOMEM, "barriers");
    for (uint32_t t = 0; t < n; t++)
        s.watched[t] = g->use[t] == (CD_GPU_LOADED | CD_GPU_STORED) && cd_gpu_is_shared(g, t);
    return sync_range(&s, g->begin, g->end);
}
