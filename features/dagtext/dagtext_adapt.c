/* Adaptive pools. The window of an element begins and ends where its place says, so the extents of
 * the reduction are expressions. They are not printed there; but TVM's average divides by them, as
 * float32(extent)*float32(extent). */
#include <string.h>

#include "features/dagtext/dagtext_internal.h"

typedef struct {
    const cd_te_op *from, *to;
} axes;

/* The average's axes are the sum's. */
static const cd_expr *rename_axis(void *ctx, const cd_expr *e) {
    const axes *x = ctx;
    for (uint32_t i = 0; e->op == CD_VAR && i < x->from->n_axis; i++)
        if (x->from->axis[i].var == e) return x->to->axis[i].var;
    return e;
}

/* Does the load read the element at the reader's own place? */
static bool is_own(const cd_te_op *op, const cd_expr *load) {
    bool own = load->n == op->n_axis;
    for (uint32_t i = 0; own && i < load->n; i++) own = load->a[i] == op->axis[i].var;
    return own;
}

/* Factors of a product from the right to the left; false: one is no cast of an integer, or they are
 * not n. */
static bool factors(const cd_expr *e, uint32_t n, const cd_expr **out) {
    for (; n > 1; n--, e = e->a[0]) {
        if (e->op != CD_MUL || e->a[1]->op != CD_CAST) return false;
        out[n - 1] = e->a[1]->a[0];
    }
    if (e->op != CD_CAST) return false;
    out[0] = e->a[0];
    return true;
}

/* The average of operator s: its line divides s by as many casts as s has reduction axes. */
static bool average_of(const cd_te_dag *dag, uint32_t s, const cd_expr **extent,
                       const cd_te_op **average) {
    const uint32_t n = dag->op[s].n_raxis;
    for (uint32_t i = s + 1; i < dag->n_op; i++) {
        const cd_te_op *op = &dag->op[i];
        const cd_expr *e = op->is_placeholder ? NULL : op->body[0];
        if (!e || e->op != CD_DIV || e->a[0]->op != CD_LOAD || e->a[0]->u.i != s ||
            !is_own(op, e->a[0]) || !factors(e->a[1], n, extent))
            continue;
        *average = op;
        return true;
    }
    return false;
}

/* The name that pools of TVM v0.9 have, adaptive or not. A cast for each axis tells them apart
 * where there are two; of one, both have it. */
static bool is_old(const cd_te_op *op) { return !strcmp(op->name, "tensor"); }

static cdmpp_status adapt(cd_dagtext *t, cd_te_dag *dag, uint32_t s) {
    const cd_expr *extent[CD_TE_MAX_AXIS];
    cd_te_op *op = &dag->op[s];
    axes x = {NULL, op};
    const bool named = !strncmp(op->name, "adaptive_pool", 13),
               found = op->red->result[0]->op == CD_ADD && average_of(dag, s, extent, &x.from);
    if (!named && !(found && is_old(op))) return CDMPP_OK;
    if (!found || (!named && op->n_raxis < 2))
        return CD_FAIL(t->err, EUNSUPPORTED,
                       "the extents of %s are expressions, which are not printed", op->name);
    cd_te_iter *it = CD_NEWN(&dag->arena, cd_te_iter, op->n_raxis);
    if (!it) return CD_FAIL(t->err, ENOMEM, "axes");
    for (uint32_t i = 0; i < op->n_raxis; i++) {
        it[i] = op->raxis[i];
        it[i].extent = cd_expr_map(&dag->pool, t->a, extent[i], rename_axis, &x);
        if (cd_expr_is_int(it[i].extent))
            return CD_FAIL(t->err, EUNSUPPORTED, "the extents of %s are numbers", op->name);
    }
    op->raxis = it;
    return CDMPP_OK;
}

cdmpp_status cd_dagtext_adapt(cd_dagtext *t, cd_te_dag *dag) {
    for (uint32_t i = 0; i < dag->n_op; i++)
        if (dag->op[i].n_raxis) CD_TRY(adapt(t, dag, i));
    return CDMPP_OK;
}
