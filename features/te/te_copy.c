/* A copy of a definition that shares nothing with the original: operators by value, expressions
 * made anew in a pool of its own. A registry needs one when the caller keeps the original. */
#include <string.h>

#include "features/te/te.h"

typedef struct {
    const cd_te_dag *from;
    cd_te_dag *to;
    const cd_expr **made; /* (from's pool) by id, NULL: not yet */
    bool oom;
} copier;

static const cd_expr *leaf(cd_expr_pool *p, const cd_expr *e) {
    switch ((cd_expr_op)e->op) {
    case CD_INT: return cd_expr_new_int(p, e->type, e->u.i);
    case CD_FLOAT: return cd_expr_new_float(p, e->type, e->u.f);
    case CD_STR: return cd_expr_new_str(p, e->u.name);
    case CD_VAR: return cd_expr_new_var(p, e->type, (uint32_t)e->u.i);
    case CD_CALL: return cd_expr_new_call(p, e->type, e->u.name, NULL, 0);
    default: return cd_expr_new_load(p, e->type, (uint32_t)e->u.i, NULL, 0);
    }
}

/* Depth is bounded, te.h (6). */
static const cd_expr *copied(copier *c, const cd_expr *e) {
    if (c->made[e->id]) return c->made[e->id];
    const cd_expr *small[8], **a = small;
    if (e->n > 8 && !(a = cd_arena_alloc(&c->to->arena, e->n, sizeof *a))) {
        c->oom = true;
        return e;
    }
    for (uint32_t i = 0; i < e->n; i++) a[i] = copied(c, e->a[i]);
    return c->made[e->id] = e->n ? cd_expr_new_like(&c->to->pool, e, a) : leaf(&c->to->pool, e);
}

static void *block(copier *c, const void *p, size_t n, size_t size) {
    if (!p) return NULL;
    void *q = cd_arena_alloc(&c->to->arena, n ? n : 1, size);
    if (!q) c->oom = true;
    else if (n) memcpy(q, p, n * size);
    return q;
}

static const char *text(copier *c, const char *s) { return block(c, s, strlen(s) + 1, 1); }

static const cd_expr *const *list(copier *c, const cd_expr *const *e, uint32_t n) {
    const cd_expr **out = block(c, e, n, sizeof *out);
    for (uint32_t k = 0; out && k < n; k++) out[k] = copied(c, e[k]);
    return out;
}

static const cd_te_iter *iters(copier *c, const cd_te_iter *it, uint32_t n) {
    cd_te_iter *out = block(c, it, n, sizeof *out);
    for (uint32_t k = 0; out && k < n; k++)
        out[k] = (cd_te_iter){copied(c, it[k].var), copied(c, it[k].min), copied(c, it[k].extent),
                              text(c, it[k].name)};
    return out;
}

static const cd_te_reducer *reducer(copier *c, const cd_te_reducer *r) {
    cd_te_reducer *out = block(c, r, 1, sizeof *out);
    if (!out) return NULL;
    out->lhs = list(c, r->lhs, r->n);
    out->rhs = list(c, r->rhs, r->n);
    out->result = list(c, r->result, r->n);
    out->identity = list(c, r->identity, r->n);
    return out;
}

static void copy_op(copier *c, const cd_te_op *op, cd_te_op *out) {
    *out = *op;
    out->name = text(c, op->name);
    out->tag = text(c, op->tag);
    out->axis = iters(c, op->axis, op->n_axis);
    out->raxis = iters(c, op->raxis, op->n_raxis);
    out->shape = block(c, op->shape, op->rank, sizeof *op->shape);
    out->dtype = block(c, op->dtype, op->n_out, sizeof *op->dtype);
    out->body = list(c, op->body, op->n_out);
    out->red = reducer(c, op->red);
    out->cond = op->cond ? copied(c, op->cond) : NULL;
    out->init = list(c, op->init, op->n_out);
}

static void copy_all(copier *c) {
    const cd_te_dag *d = c->from;
    cd_te_dag *o = c->to;
    o->n_op = d->n_op;
    o->n_tensor = d->n_tensor;
    o->n_arg = d->n_arg;
    o->flop = d->flop;
    o->least = d->least;
    o->op = block(c, d->op, d->n_op, sizeof *d->op);
    o->tensor_op = block(c, d->tensor_op, d->n_tensor, sizeof *d->tensor_op);
    o->arg = block(c, d->arg, d->n_arg, sizeof *d->arg);
    for (uint32_t i = 0; !c->oom && i < d->n_op; i++) copy_op(c, &d->op[i], &o->op[i]);
    o->pool.n_var = d->pool.n_var;
}

/* Nothing is checked again: the original was. */
cdmpp_status cd_te_dag_copy(const cd_te_dag *dag, cd_te_dag **out, cdmpp_err *err) {
    copier c = {.from = dag};
    CD_TRY(cd_te_dag_new(&c.to, err));
    c.made = cd_mem_zalloc((size_t)dag->pool.n + 1, sizeof *c.made);
    if (c.made) copy_all(&c);
    const bool oom = !c.made || c.oom || c.to->pool.oom;
    cd_mem_free(c.made);
    if (oom) {
        cd_te_dag_free(c.to);
        return CD_FAIL(err, ENOMEM, "compute DAG");
    }
    cd_expr_pool_freeze(&c.to->pool);
    *out = c.to;
    return CDMPP_OK;
}
