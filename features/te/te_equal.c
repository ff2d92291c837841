/* Equality of definitions up to the numbers of their variables. Two files with the same workload
 * key must define the same; their variables are numbered by whoever read them. */
#include <string.h>

#include "features/te/te.h"

typedef struct {
    uint32_t *map, n; /* a's variable -> b's + 1 */
} matcher;

static bool pair(matcher *m, const cd_expr *x, const cd_expr *y) {
    if (x->type != y->type || x->u.i < 0 || x->u.i >= m->n) return false;
    m->map[x->u.i] = (uint32_t)y->u.i + 1;
    return true;
}

static bool equal(const matcher *m, const cd_expr *x, const cd_expr *y) {
    if (x->op != y->op || x->type != y->type || x->n != y->n) return false;
    if (x->op == CD_VAR) return m->map[x->u.i] == (uint32_t)y->u.i + 1;
    if (x->op == CD_CALL || x->op == CD_STR ? strcmp(x->u.name, y->u.name) != 0
                                            : memcmp(&x->u, &y->u, sizeof x->u) != 0)
        return false;
    for (uint32_t i = 0; i < x->n; i++)
        if (!equal(m, x->a[i], y->a[i])) return false;
    return true;
}

static bool equal_list(const matcher *m, const cd_expr *const *x, const cd_expr *const *y,
                       uint32_t n) {
    if (!x || !y) return x == y;
    for (uint32_t i = 0; i < n; i++)
        if (!equal(m, x[i], y[i])) return false;
    return true;
}

static bool pair_iters(matcher *m, const cd_te_iter *x, const cd_te_iter *y, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(x[i].name, y[i].name) != 0 || !pair(m, x[i].var, y[i].var)) return false;
    return true;
}

static bool equal_iters(const matcher *m, const cd_te_iter *x, const cd_te_iter *y, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!equal(m, x[i].min, y[i].min) || !equal(m, x[i].extent, y[i].extent)) return false;
    return true;
}

static bool equal_reducer(matcher *m, const cd_te_reducer *x, const cd_te_reducer *y) {
    if (!x || !y) return x == y;
    if (x->n != y->n) return false;
    for (uint32_t k = 0; k < x->n; k++)
        if (!pair(m, x->lhs[k], y->lhs[k]) || !pair(m, x->rhs[k], y->rhs[k])) return false;
    return equal_list(m, x->result, y->result, x->n) &&
           equal_list(m, x->identity, y->identity, x->n);
}

static bool equal_op(matcher *m, const cd_te_op *x, const cd_te_op *y) {
    if (strcmp(x->name, y->name) != 0 || strcmp(x->tag, y->tag) != 0 ||
        x->is_placeholder != y->is_placeholder || x->is_output != y->is_output ||
        x->const_matrix != y->const_matrix || x->simplify_const != y->simplify_const ||
        x->flop_attr != y->flop_attr || x->layout_free != y->layout_free ||
        x->n_axis != y->n_axis || x->n_raxis != y->n_raxis || x->n_out != y->n_out ||
        x->rank != y->rank || x->first_tensor != y->first_tensor)
        return false;
    if (memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) != 0 ||
        memcmp(x->dtype, y->dtype, x->n_out * sizeof *x->dtype) != 0)
        return false;
    if (x->is_placeholder) return true;
    return pair_iters(m, x->axis, y->axis, x->n_axis) &&
           pair_iters(m, x->raxis, y->raxis, x->n_raxis) &&
           equal_iters(m, x->axis, y->axis, x->n_axis) &&
           equal_iters(m, x->raxis, y->raxis, x->n_raxis) &&
           equal_list(m, x->body, y->body, x->n_out) && equal_list(m, x->init, y->init, x->n_out) &&
           !x->cond == !y->cond && (!x->cond || equal(m, x->cond, y->cond)) &&
           equal_reducer(m, x->red, y->red);
}

bool cd_te_dag_equal(const cd_te_dag *a, const cd_te_dag *b) {
    if (a->n_op != b->n_op || a->n_tensor != b->n_tensor || a->n_arg != b->n_arg ||
        memcmp(&a->flop, &b->flop, sizeof a->flop) != 0 ||
        memcmp(a->arg, b->arg, a->n_arg * sizeof *a->arg) != 0)
        return false;
    matcher m = {cd_mem_zalloc(a->pool.n_var + 1, sizeof *m.map), a->pool.n_var};
    bool same = m.map != NULL;
    for (uint32_t i = 0; same && i < a->n_op; i++) same = equal_op(&m, &a->op[i], &b->op[i]);
    cd_mem_free(m.map);
    return same;
}
