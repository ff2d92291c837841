/* From a piece of the result backward: the box of every operator and argument that it needs. Ranges
 * of indices come from te_shard_range.c. */
#include <string.h>

#include "features/te_shard/te_shard_internal.h"

static cdmpp_status no_memory(cdmpp_err *err) {
    return CD_FAIL(err, ENOMEM, "parts of an operator");
}

uint32_t cd_te_shard_result(const cd_te_dag *d) {
    uint32_t result = UINT32_MAX;
    if (!d->n_arg) return UINT32_MAX;
    for (uint32_t i = 0; i < d->n_op; i++) {
        if (d->op[i].is_placeholder || !d->op[i].is_output) continue;
        if (result != UINT32_MAX) return UINT32_MAX;
        result = i;
    }
    if (result == UINT32_MAX || d->op[result].n_out != 1 ||
        d->arg[d->n_arg - 1] != d->op[result].first_tensor)
        return UINT32_MAX;
    for (uint32_t k = 0; k + 1 < d->n_arg; k++)
        if (!d->op[d->tensor_op[d->arg[k]]].is_placeholder) return UINT32_MAX;
    return result;
}

/* ---- one expression ---- */

typedef struct {
    cd_te_shard_footprint *n;
    uint32_t op;
    bool oom;
} walker;

static void note_read(walker *w, uint32_t tensor) {
    cd_te_shard_footprint *n = w->n;
    if (n->seen[tensor] == w->op + 1) return;
    n->seen[tensor] = w->op + 1;
    const uint32_t at = n->n_in[w->op];
    if (!(at & (at - 1))) { /* room for the next power of two */
        uint32_t *in = CD_NEWN(n->a, uint32_t, at ? 2 * (size_t)at : 1);
        if (!in) {
            w->oom = true;
            return;
        }
        if (at) memcpy(in, n->in[w->op], at * sizeof *in);
        n->in[w->op] = in;
    }
    n->in[w->op][n->n_in[w->op]++] = n->dag->tensor_op[tensor];
}

static void note_load(walker *w, const cd_te_shard_env *env, const cd_expr *e) {
    const uint32_t src = w->n->dag->tensor_op[e->u.i];
    const cd_te_op *op = &w->n->dag->op[src];
    w->n->live[src] = true;
    note_read(w, (uint32_t)e->u.i);
    for (uint32_t d = 0; d < e->n; d++) {
        cd_te_shard_span *all = &w->n->read[(size_t)src * CD_BOX_RANK + d];
        cd_te_shard_span s = cd_te_shard_range(env, e->a[d]);
        if (s.lo < 0) s.lo = 0;
        if (s.hi >= op->shape[d]) s.hi = op->shape[d] - 1;
        /* out of bounds: no valid definition reads there */
        if (s.lo > s.hi) s = (cd_te_shard_span){0, op->shape[d] - 1};
        const bool first = all->lo > all->hi;
        if (first || s.lo < all->lo) all->lo = s.lo;
        if (first || s.hi > all->hi) all->hi = s.hi;
    }
}

/* In TVM's order of first occurrence: operands before the load itself. */
static void walk(walker *w, const cd_te_shard_env *env, const cd_expr *e) {
    cd_te_shard_fork f;
    if (!(e->flags & CD_EXPR_HAS_LOAD) || w->oom) return;
    if (cd_te_shard_is_fork(e)) {
        if (!cd_te_shard_fork_make(env, e, w->n->a, &f)) {
            w->oom = true;
            return;
        }
        if (f.takes_then && f.takes_else) walk(w, env, e->a[0]);
        if (f.takes_then) walk(w, &f.then_env, e->a[1]);
        if (f.takes_else) walk(w, &f.else_env, e->a[2]);
        return;
    }
    for (uint32_t i = 0; i < e->n; i++) walk(w, env, e->a[i]);
    if (e->op == CD_LOAD) note_load(w, env, e);
}

void cd_te_shard_visit_loads(const cd_expr *e, cd_te_shard_load_fn *fn, void *ctx) {
    if (!(e->flags & CD_EXPR_HAS_LOAD)) return;
    if (e->op == CD_LOAD) fn(ctx, e);
    for (uint32_t i = 0; i < e->n; i++) cd_te_shard_visit_loads(e->a[i], fn, ctx);
}

/* ---- one operator ---- */

/* An extent may depend on the axes: adaptive pooling. */
static cdmpp_status raxis_span(const cd_te_shard_footprint *n, uint32_t i, uint32_t r,
                               cd_te_shard_env *env) {
    const cd_te_op *op = &n->dag->op[i];
    const cd_te_iter *it = &op->raxis[r];
    const cd_te_shard_span min = cd_te_shard_range(env, it->min),
                           ext = cd_te_shard_range(env, it->extent);
    cd_te_shard_var *v = &env->v[op->n_axis + r];
    *v = (cd_te_shard_var){.number = (uint32_t)it->var->u.i, .s = {min.lo, min.hi + ext.hi - 1}};
    if (i == n->cut_op && r == n->cut_raxis) {
        v->s = (cd_te_shard_span){n->lo, n->hi - 1};
        v->shift = n->lo;
    }
    return CDMPP_OK;
}

/* Spatial axes have the range of the operator's box, reduction axes their own, or the shard's if
 * this sum is split. */
cdmpp_status cd_te_shard_env_of(const cd_te_shard_footprint *n, uint32_t i, cd_te_shard_env *env) {
    const cd_te_op *op = &n->dag->op[i];
    *env = (cd_te_shard_env){.v = CD_NEWN(n->a, cd_te_shard_var, op->n_axis + op->n_raxis + 1)};
    if (!env->v) return no_memory(n->err);
    for (uint32_t d = 0; d < op->n_axis; d++) {
        const cd_box *b = &n->box[i];
        if (!cd_expr_is_int_value(op->axis[d].min, 0))
            return CD_FAIL(n->err, EUNSUPPORTED, "axis \"%s\" of \"%s\" does not begin at 0",
                           op->axis[d].name, op->name);
        env->v[d] = (cd_te_shard_var){
            (uint32_t)op->axis[d].var->u.i, b->lo[d], {b->lo[d], b->lo[d] + b->n[d] - 1}};
    }
    env->n = op->n_axis;
    for (uint32_t r = 0; r < op->n_raxis; r++) {
        CD_TRY(raxis_span(n, i, r, env));
        env->n++;
    }
    return CDMPP_OK;
}

static cdmpp_status walk_op(cd_te_shard_footprint *n, uint32_t i) {
    const cd_te_op *op = &n->dag->op[i];
    walker w = {n, i, false};
    cd_te_shard_env env;
    CD_TRY(cd_te_shard_env_of(n, i, &env));
    for (uint32_t k = 0; op->init && k < op->n_out; k++) walk(&w, &env, op->init[k]);
    if (op->cond) walk(&w, &env, op->cond);
    for (uint32_t k = 0; k < op->n_out; k++) walk(&w, &env, op->body[k]);
    return w.oom ? no_memory(n->err) : CDMPP_OK;
}

/* What is read of operator i, but dimensions of which the whole reads no more stay whole. */
static void settle(cd_te_shard_footprint *n, uint32_t i) {
    const cd_te_op *op = &n->dag->op[i];
    n->box[i] = cd_box_whole(op->rank, op->shape);
    for (uint32_t d = 0; n->whole && d < op->rank; d++) {
        const cd_te_shard_span *s = &n->read[(size_t)i * CD_BOX_RANK + d],
                               *all = &n->whole->read[(size_t)i * CD_BOX_RANK + d];
        if (s->lo == all->lo && s->hi == all->hi) continue;
        n->box[i].lo[d] = s->lo;
        n->box[i].n[d] = s->hi - s->lo + 1;
    }
}

/* Empty tensors are refused here, so every box has an element. */
static cdmpp_status prepare(cd_te_shard_footprint *n) {
    const cd_te_dag *d = n->dag;
    for (uint32_t i = 0; i < d->n_op; i++) {
        if (d->op[i].rank > CD_BOX_RANK)
            return CD_FAIL(n->err, EUNSUPPORTED, "\"%s\" has %u dimensions, %d are the most",
                           d->op[i].name, d->op[i].rank, CD_BOX_RANK);
        for (uint32_t k = 0; k < d->op[i].rank; k++)
            if (!d->op[i].shape[k])
                return CD_FAIL(n->err, EUNSUPPORTED, "\"%s\" is empty", d->op[i].name);
    }
    n->read = CD_NEWN(n->a, cd_te_shard_span, (size_t)d->n_op * CD_BOX_RANK);
    n->live = CD_NEWN(n->a, bool, d->n_op);
    n->box = CD_NEWN(n->a, cd_box, d->n_op);
    n->in = CD_NEWN(n->a, uint32_t *, d->n_op);
    n->n_in = CD_NEWN(n->a, uint32_t, d->n_op);
    n->seen = CD_NEWN(n->a, uint32_t, d->n_tensor);
    if (!n->read || !n->live || !n->box || !n->in || !n->n_in || !n->seen) return no_memory(n->err);
    for (size_t k = 0; k < (size_t)d->n_op * CD_BOX_RANK; k++)
        n->read[k] = (cd_te_shard_span){0, -1};
    return CDMPP_OK;
}

cdmpp_status cd_te_shard_footprint_grow(cd_te_shard_footprint *n, uint32_t result,
                                        const cd_box *box) {
    CD_TRY(prepare(n));
    n->result = result;
    n->live[result] = true;
    for (uint32_t i = result + 1; i-- > 0;) {
        if (!n->live[i]) continue;
        if (i == result) n->box[i] = *box;
        else settle(n, i);
        if (n->dag->op[i].is_placeholder || i == n->given) continue;
        CD_TRY(walk_op(n, i));
    }
    return CDMPP_OK;
}

cdmpp_status cd_te_shard_footprint_whole(const cd_te_dag *dag, cd_arena *a, uint32_t result,
                                         uint32_t given, cd_te_shard_footprint *out,
                                         cdmpp_err *err) {
    *out = (cd_te_shard_footprint){.dag = dag,
                                   .a = a,
                                   .given = given,
                                   .cut_op = UINT32_MAX,
                                   .cut_raxis = UINT32_MAX,
                                   .err = err};
    if (dag->op[result].rank > CD_BOX_RANK)
        return CD_FAIL(err, EUNSUPPORTED, "\"%s\" has %u dimensions, %d are the most",
                       dag->op[result].name, dag->op[result].rank, CD_BOX_RANK);
    const cd_box box = cd_box_whole(dag->op[result].rank, dag->op[result].shape);
    return cd_te_shard_footprint_grow(out, result, &box);
}
