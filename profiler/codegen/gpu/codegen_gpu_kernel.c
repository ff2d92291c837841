/* Studies one kernel: its thread axes and virtual threads, which tensors it loads and stores, which
 * of them need a copy for each virtual thread. It also refuses what TVM's own checks refuse. */
#include "profiler/codegen/gpu/codegen_gpu_internal.h"

#include <string.h>

bool cd_gpu_is_shared(const cd_gpu *g, uint32_t tensor) {
    return g->plan.slot[tensor].is_arg || g->plan.slot[tensor].rank < 3;
}

/* ---- axes ---- */

static cdmpp_status add_vthread(cd_gpu *g, const cd_ast_node *n, cdmpp_err *err) {
    uint8_t *number = &g->vt[n->var->u.i];
    if (!cd_expr_is_int(n->extent_e))
        return CD_FAIL(err, EUNSUPPORTED, "virtual threads without a constant number");
    if (*number || n->extent <= 1) return CDMPP_OK;
    if (g->n_vt == CD_GPU_MAX_VTHREAD)
        return CD_FAIL(err, EUNSUPPORTED, "more than %d virtual thread axes", CD_GPU_MAX_VTHREAD);
    g->vt_extent[g->n_vt] = n->extent;
    *number = (uint8_t)++g->n_vt;
    return CDMPP_OK;
}

static cdmpp_status add_axis(cd_gpu *g, const cd_ast_node *n, cdmpp_err *err) {
    g->tag[n->var->u.i] = (uint8_t)(n->tag + 1);
    if (n->tag == CD_AST_TAG_VTHREAD) return add_vthread(g, n, err);
    if (!cd_expr_is_int(n->extent_e) || n->extent < 1)
        return CD_FAIL(err, EUNSUPPORTED, "%s without a constant length",
                       cd_ast_tag_name((cd_ast_tag)n->tag));
    if (g->extent[n->tag] && g->extent[n->tag] != n->extent)
        return CD_FAIL(err, EREJECTED, "%s has extents %lld and %lld in one kernel",
                       cd_ast_tag_name((cd_ast_tag)n->tag), (long long)g->extent[n->tag],
                       (long long)n->extent);
    g->extent[n->tag] = n->extent;
    return CDMPP_OK;
}

/* ---- virtual threads ---- */

static uint32_t vt_of(const cd_gpu *g, const cd_expr *e) {
    uint32_t m = 0;
    if (e->op == CD_VAR)
        return e->u.i < (int64_t)g->plan.nest->n_var && g->vt[e->u.i] ? 1U << (g->vt[e->u.i] - 1)
                                                                      : 0;
    if (e->op == CD_LOAD) m = g->vt_mask[e->u.i];
    if (!(e->flags & (CD_EXPR_HAS_VAR | CD_EXPR_HAS_LOAD))) return 0;
    for (uint32_t k = 0; k < e->n; k++) m |= vt_of(g, e->a[k]);
    return m;
}

uint32_t cd_gpu_vt_around(const cd_gpu *g, int32_t k) {
    uint32_t m = 0;
    for (int32_t p = g->t->node[k].parent; p >= 0; p = g->t->node[p].parent) {
        const cd_ast_node *n = &g->t->node[p];
        if (n->kind == CD_AST_THREAD && n->tag == CD_AST_TAG_VTHREAD && g->vt[n->var->u.i])
            m |= 1U << (g->vt[n->var->u.i] - 1);
    }
    return m;
}

uint32_t cd_gpu_vt_of_node(const cd_gpu *g, int32_t k) {
    const cd_ast_node *n = &g->t->node[k];
    uint32_t m = n->e ? vt_of(g, n->e) : 0;
    if (n->kind == CD_AST_STORE) m |= g->vt_mask[n->tensor];
    for (uint32_t i = 0; i < n->n; i++) m |= vt_of(g, n->x[i]);
    return m;
}

/* A fixed point: copies of one tensor may make another one depend on the virtual thread. */
static void spread(cd_gpu *g) {
    for (bool more = true; more;) {
        more = false;
        for (int32_t k = g->begin; k < g->end; k++) {
            const cd_ast_node *n = &g->t->node[k];
            uint32_t result = 0;
            const cd_te_reducer *r = NULL;
            const bool call = n->kind == CD_AST_EVAL && !cd_gpu_allreduce(g, k, &result, &r, NULL);
            if (n->dead || (n->kind != CD_AST_STORE && !call)) continue;
            for (uint32_t o = 0; o < (call ? r->n : 1); o++) {
                const uint32_t tensor = call ? result + o : n->tensor,
                               m = cd_gpu_vt_of_node(g, k) & g->around[tensor];
                more |= (m & ~g->vt_mask[tensor]) != 0;
                g->vt_mask[tensor] |= m;
            }
        }
    }
}

/* ---- tensors ---- */

static bool note_load(void *ctx, const cd_expr *e) {
    cd_gpu *g = ctx;
    if (e->op == CD_LOAD) g->use[e->u.i] |= CD_GPU_LOADED;
    return true;
}

static void note_uses(cd_gpu *g, int32_t k) {
    const cd_ast_node *n = &g->t->node[k];
    if (n->kind != CD_AST_STORE && n->kind != CD_AST_IF && n->kind != CD_AST_EVAL) return;
    if (n->kind == CD_AST_STORE) g->use[n->tensor] |= CD_GPU_STORED;
    for (uint32_t i = 0; i < n->n; i++) cd_expr_visit(n->x[i], note_load, g);
    if (n->kind != CD_AST_EVAL) cd_expr_visit(n->e, note_load, g);
}

/* The store of the reduced values comes right behind. */
static const cd_ast_node *store_behind(const cd_gpu *g, int32_t k) {
    do k++;
    while (k < g->t->n && (g->t->node[k].dead || g->t->node[k].kind != CD_AST_STORE));
    return k < g->t->n ? &g->t->node[k] : NULL;
}

cdmpp_status cd_gpu_allreduce(const cd_gpu *g, int32_t k, uint32_t *result, const cd_te_reducer **r,
                              cdmpp_err *err) {
    const cd_ast_node *n = &g->t->node[k], *store = store_behind(g, k);
    *r = store ? g->plan.nest->tensor[store->tensor].reducer : NULL;
    if (!*r || !n->e->n || n->e->a[0]->op != CD_LOAD || n->n < (*r)->n)
        return CD_FAIL(err, EUNSUPPORTED, "an evaluation that is no reduction over threads");
    *result = (uint32_t)n->e->a[0]->u.i;
    return CDMPP_OK;
}

/* A thread axis that is reduced must not index the result. */
static cdmpp_status note_result(cd_gpu *g, int32_t k, cdmpp_err *err) {
    uint32_t result = 0;
    const cd_te_reducer *r = NULL;
    CD_TRY(cd_gpu_allreduce(g, k, &result, &r, err));
    const cd_ast_node *n = &g->t->node[k], *store = store_behind(g, k);
    for (uint32_t i = r->n; i < n->n; i++)
        for (uint32_t d = 0; d < store->n; d++)
            if (n->x[i]->op == CD_VAR && cd_expr_uses(store->x[d], n->x[i]))
                return CD_FAIL(err, EREJECTED, "a thread axis that is reduced and kept");
    for (uint32_t o = 0; o < r->n; o++) g->use[result + o] |= CD_GPU_STORED;
    return CDMPP_OK;
}

/* Memory that a kernel cannot have. */
static cdmpp_status check_places(const cd_gpu *g, cdmpp_err *err) {
    for (uint32_t t = 0; t < g->plan.n_slot; t++) {
        const cd_codegen_slot *s = &g->plan.slot[t];
        if (!g->use[t] || s->is_arg) continue;
        if (s->node >= g->begin && s->node < g->end && s->rank == 0)
            return CD_FAIL(err, EUNSUPPORTED, "global memory for \"%.60s\" inside a kernel",
                           g->plan.nest->tensor[t].name);
        if ((s->node < g->begin || s->node >= g->end) && s->rank > 0)
            return CD_FAIL(err, EREJECTED, "memory of a block for \"%.60s\" outside of all blocks",
                           g->plan.nest->tensor[t].name);
    }
    return CDMPP_OK;
}

/* ---- axes that are bound twice ---- */

typedef struct {
    const cd_gpu *g;
    const cd_expr *bound[CD_AST_TAG_COUNT]; /* what the innermost node above binds */
    bool clash;
} clash_ctx;

static bool find_clash(void *ctx, const cd_expr *e) {
    clash_ctx *c = ctx;
    const uint8_t tag =
        e->op == CD_VAR && e->u.i < (int64_t)c->g->plan.nest->n_var ? c->g->tag[e->u.i] : 0;
    if (tag && tag != CD_AST_TAG_VTHREAD + 1 && c->bound[tag - 1] != e) c->clash = true;
    return !c->clash;
}

/* Registers of which every thread would fill a part, for all to read. */
static bool shares_out_registers(const cd_gpu *g, int32_t k) {
    const cd_ast_node *n = &g->t->node[k];
    const cd_codegen_slot *s = &g->plan.slot[n->tensor];
    if (n->kind != CD_AST_STORE || s->is_arg || s->rank != 3) return false;
    for (int32_t p = n->parent; p > s->node; p = g->t->node[p].parent)
        for (uint32_t d = 0; d < n->n && g->t->node[p].kind == CD_AST_THREAD &&
                             g->t->node[p].tag != CD_AST_TAG_VTHREAD;
             d++)
            if (cd_expr_uses(n->x[d], g->t->node[p].var)) return true;
    return false;
}

/* Memory that threads fill for each other without sharing it, and statements in two turns of one
 * axis, have no meaning. */
static cdmpp_status check_axes(const cd_gpu *g, cdmpp_err *err) {
    for (int32_t k = g->begin; k < g->end; k++) {
        const cd_ast_node *n = &g->t->node[k];
        clash_ctx c = {.g = g};
        if (n->dead || (n->kind != CD_AST_STORE && n->kind != CD_AST_IF)) continue;
        for (int32_t p = n->parent; p >= 0; p = g->t->node[p].parent)
            if (g->t->node[p].kind == CD_AST_THREAD && !c.bound[g->t->node[p].tag])
                c.bound[g->t->node[p].tag] = g->t->node[p].var;
        for (uint32_t i = 0; i < n->n; i++) cd_expr_visit(n->x[i], find_clash, &c);
        cd_expr_visit(n->e, find_clash, &c);
        if (c.clash)
            return CD_FAIL(err, EREJECTED, "a statement below two loops over the same thread axis");
        if (shares_out_registers(g, k))
            return CD_FAIL(err, EREJECTED, "local memory that threads fill for each other");
    }
    return CDMPP_OK;
}

/* The nodes once, then tensors, then the checks. */
cdmpp_status cd_gpu_kernel_study(cd_gpu *g, cdmpp_err *err) {
    const uint32_t n_slot = g->plan.n_slot;
    memset(g->extent, 0, sizeof g->extent);
    memset(g->vt, 0, g->plan.nest->n_var);
    memset(g->vt_mask, 0, n_slot * sizeof *g->vt_mask);
    memset(g->use, 0, n_slot);
    g->n_vt = 0;
    g->active = 0;
    for (int32_t k = g->begin; k < g->end; k++) {
        const cd_ast_node *n = &g->t->node[k];
        if (n->dead) continue;
        if (n->kind == CD_AST_THREAD) CD_TRY(add_axis(g, n, err));
        note_uses(g, k);
        if (n->kind == CD_AST_EVAL) CD_TRY(note_result(g, k, err));
    }
    for (uint32_t t = 0; t < n_slot; t++) {
        const cd_codegen_slot *s = &g->plan.slot[t];
        g->around[t] = s->node >= 0 && !s->is_arg ? cd_gpu_vt_around(g, s->node) : 0;
    }
    if (g->n_vt) spread(g);
    CD_TRY(check_axes(g, err));
    return check_places(g, err);
}
