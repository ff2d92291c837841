/* Which types the text fixes. Nothing prints the type of a placeholder, but a literal has one, and
 * both sides of a sum have the same. All tensors were taken as float32 so far; here those are found
 * for which every other type would do as well. */
#include "features/dagtext/dagtext_internal.h"

typedef struct {
    /* (tensors + expressions) union-find; a tensor is its number, an expression n_tensor + its
     * id */
    uint32_t *up;
    uint32_t n_tensor, fixed; /* fixed: the class of all that has a type of its own */
} classes;

static uint32_t root(classes *c, uint32_t i) {
    while (c->up[i] != i) i = c->up[i] = c->up[c->up[i]];
    return i;
}

static void join(classes *c, uint32_t a, uint32_t b) { c->up[root(c, a)] = root(c, b); }

static uint32_t node(const classes *c, const cd_expr *e) { return c->n_tensor + e->id; }

/* Joins what must have one type. Types of conditions, axes, literals and casts are their own. */
static void walk(classes *c, const cd_expr *e) {
    const uint32_t me = node(c, e);
    for (uint32_t i = 0; i < e->n; i++) walk(c, e->a[i]);
    if (e->op == CD_LOAD) {
        join(c, me, (uint32_t)e->u.i);
    } else if (cd_expr_op_is_arith((cd_expr_op)e->op) || cd_expr_op_is_cmp((cd_expr_op)e->op)) {
        join(c, node(c, e->a[0]), node(c, e->a[1]));
        join(c, me, cd_expr_op_is_cmp((cd_expr_op)e->op) ? c->fixed : node(c, e->a[0]));
    } else if (e->op == CD_SELECT || (e->op == CD_CALL && e->n == 3)) {
        join(c, node(c, e->a[1]), node(c, e->a[2]));
        join(c, me, node(c, e->a[1]));
    } else if (e->op == CD_CALL && e->n) {
        join(c, me, node(c, e->a[0]));
    } else {
        join(c, me, c->fixed);
    }
}

cdmpp_status cd_dagtext_types(cd_dagtext *t, const cd_te_dag *dag) {
    const uint32_t n = dag->n_tensor + dag->pool.n;
    classes c = {CD_NEWN(t->a, uint32_t, n + 1u), dag->n_tensor, n};
    if (!c.up) return CD_FAIL(t->err, ENOMEM, "types");
    for (uint32_t i = 0; i <= n; i++) c.up[i] = i;
    for (uint32_t i = 0; i < dag->n_op; i++) {
        if (dag->op[i].is_placeholder) continue;
        walk(&c, dag->op[i].body[0]);
        join(&c, node(&c, dag->op[i].body[0]), i);
    }
    for (uint32_t i = 0; i < dag->n_op; i++) {
        if (root(&c, i) == root(&c, n)) continue;
        if (!(t->allowed & CD_DAGTEXT_FLOAT32))
            return CD_FAIL(t->err, ENOTASK,
                           "the type of %s is open: no literal and no cast fixes it",
                           dag->op[i].name);
        t->rests |= CD_DAGTEXT_FLOAT32;
    }
    return CDMPP_OK;
}
