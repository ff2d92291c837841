/* A graph of TVM nodes -> a definition: operators in stage order, their axes, bodies and reducers.
 * Expressions are built by tvm_expr.c. */

#include <string.h>

#include "features/tvm/tvm_internal.h"

static cdmpp_status op_name(cd_tvm *t, uint32_t node, cd_te_op *op) {
    cd_str s;
    CD_TRY(cd_tvm_graph_str(&t->g, node, "name", &s));
    CD_TRY(cd_tvm_cstr(t, node, s, &op->name));
    CD_TRY(cd_tvm_graph_str(&t->g, node, "tag", &s));
    return cd_tvm_cstr(t, node, s, &op->tag);
}

static cdmpp_status new_shape(cd_tvm *t, cd_te_op *op, uint32_t rank, int64_t **shape,
                              cd_dtype **dtype) {
    op->rank = rank;
    op->shape = *shape = CD_NEWN(&t->dag->arena, int64_t, rank);
    op->dtype = *dtype = CD_NEWN(&t->dag->arena, cd_dtype, op->n_out);
    return *shape && *dtype ? CDMPP_OK : CD_FAIL(t->err, ENOMEM, "shape");
}

/* A shape with a variable (dynamic batch) is refused: nothing here could schedule it. */
static cdmpp_status fill_placeholder(cd_tvm *t, uint32_t node, cd_te_op *op) {
    uint32_t array, rank, item;
    const cd_json *it;
    int64_t *shape;
    cd_dtype *dtype;
    op->is_placeholder = true;
    CD_TRY(op_name(t, node, op));
    CD_TRY(cd_tvm_graph_array(&t->g, node, "shape", &array));
    it = cd_tvm_graph_items(&t->g, array, &rank);
    CD_TRY(new_shape(t, op, rank, &shape, &dtype));
    for (uint32_t k = 0; k < rank; k++) {
        item = cd_tvm_graph_item(&it);
        if (cd_tvm_graph_kind(&t->g, item) != CD_TVM_INT)
            return cd_tvm_graph_error_at(
                &t->g, node, "shape",
                CD_FAIL(t->err, EUNSUPPORTED, "dimension %u is not a number", k));
        CD_TRY(cd_tvm_graph_int(&t->g, item, "value", &shape[k]));
    }
    return cd_tvm_dtype(t, node, "dtype", dtype);
}

/* The variable is declared before the range: the extent of an adaptive pooling refers to axes in
 * front of it. */
static cdmpp_status fill_iter(cd_tvm *t, uint32_t node, cd_te_iter *out) {
    uint32_t var, name, dom, child;
    cd_str s;
    CD_TRY(cd_tvm_graph_expect(&t->g, node, CD_TVM_ITERVAR));
    CD_TRY(cd_tvm_graph_ref(&t->g, node, "var", &var));
    CD_TRY(cd_tvm_declare(t, var, &out->var));
    CD_TRY(cd_tvm_graph_ref(&t->g, var, "name", &name));
    CD_TRY(cd_tvm_graph_expect(&t->g, name, CD_TVM_STRING));
    CD_TRY(cd_tvm_graph_text(&t->g, name, &s));
    CD_TRY(cd_tvm_cstr(t, name, s, &out->name));
    CD_TRY(cd_tvm_graph_ref(&t->g, node, "dom", &dom));
    CD_TRY(cd_tvm_graph_expect(&t->g, dom, CD_TVM_RANGE));
    CD_TRY(cd_tvm_graph_ref(&t->g, dom, "min", &child));
    CD_TRY(cd_tvm_expr(t, child, &out->min));
    CD_TRY(cd_tvm_graph_ref(&t->g, dom, "extent", &child));
    return cd_tvm_expr(t, child, &out->extent);
}

static cdmpp_status fill_iters(cd_tvm *t, uint32_t node, const char *attr, const cd_te_iter **out,
                               uint32_t *n) {
    uint32_t array, item;
    const cd_json *it;
    CD_TRY(cd_tvm_graph_array(&t->g, node, attr, &array));
    it = cd_tvm_graph_items(&t->g, array, n);
    cd_te_iter *list = CD_NEWN(&t->dag->arena, cd_te_iter, *n);
    if (!list) return CD_FAIL(t->err, ENOMEM, "axes");
    *out = list;
    for (uint32_t k = 0; k < *n; k++) {
        item = cd_tvm_graph_item(&it);
        CD_TRY(fill_iter(t, item, &list[k]));
    }
    return CDMPP_OK;
}

/* The variables of a combiner, one per output. */
static cdmpp_status declare_vars(cd_tvm *t, uint32_t node, const char *attr, uint32_t n,
                                 const cd_expr *const **out) {
    uint32_t array, m, item;
    const cd_json *it;
    CD_TRY(cd_tvm_graph_array(&t->g, node, attr, &array));
    it = cd_tvm_graph_items(&t->g, array, &m);
    if (m != n)
        return cd_tvm_graph_error_at(
            &t->g, node, attr, CD_FAIL(t->err, ESCHEMA, "expected %u variables, found %u", n, m));
    const cd_expr **list = CD_NEWN(&t->dag->arena, const cd_expr *, n);
    if (!list) return CD_FAIL(t->err, ENOMEM, "reducer");
    *out = list;
    for (uint32_t k = 0; k < n; k++) {
        item = cd_tvm_graph_item(&it);
        CD_TRY(cd_tvm_declare(t, item, &list[k]));
    }
    return CDMPP_OK;
}

static cdmpp_status fill_exprs(cd_tvm *t, uint32_t node, const char *attr, uint32_t n,
                               const cd_expr *const **out) {
    uint32_t array, m;
    CD_TRY(cd_tvm_graph_array(&t->g, node, attr, &array));
    CD_TRY(cd_tvm_exprs(t, array, out, &m));
    if (m == n) return CDMPP_OK;
    return cd_tvm_graph_error_at(&t->g, node, attr,
                                 CD_FAIL(t->err, ESCHEMA, "expected %u items, found %u", n, m));
}

static cdmpp_status fill_reducer(cd_tvm *t, uint32_t reduce, cd_te_op *op) {
    uint32_t node;
    cd_te_reducer *r = CD_NEW(&t->dag->arena, cd_te_reducer);
    if (!r) return CD_FAIL(t->err, ENOMEM, "reducer");
    op->red = r;
    r->n = op->n_out;
    CD_TRY(cd_tvm_graph_ref(&t->g, reduce, "combiner", &node));
    CD_TRY(cd_tvm_graph_expect(&t->g, node, CD_TVM_COMBINER));
    CD_TRY(declare_vars(t, node, "lhs", r->n, &r->lhs));
    CD_TRY(declare_vars(t, node, "rhs", r->n, &r->rhs));
    CD_TRY(fill_exprs(t, node, "result", r->n, &r->result));
    return fill_exprs(t, node, "identity_element", r->n, &r->identity);
}

/* All outputs of a reduction are one Reduce, seen through value_index. */
static cdmpp_status check_siblings(cd_tvm *t, uint32_t first, uint32_t body, uint32_t n) {
    static const char *const same[] = {"axis", "combiner", "source", "init", "condition"};
    const cd_json *it;
    uint32_t item, a, b;
    int64_t v;
    it = cd_tvm_graph_items(&t->g, body, &n);
    for (uint32_t k = 0; it; k++) {
        item = cd_tvm_graph_item(&it);
        CD_TRY(cd_tvm_graph_expect(&t->g, item, CD_TVM_REDUCE));
        for (size_t s = 0; s < sizeof same / sizeof *same; s++) {
            CD_TRY(cd_tvm_graph_ref(&t->g, first, same[s], &a));
            CD_TRY(cd_tvm_graph_ref(&t->g, item, same[s], &b));
            if (a != b)
                return cd_tvm_graph_error_at(
                    &t->g, item, same[s],
                    CD_FAIL(t->err, EUNSUPPORTED, "outputs of different reductions"));
        }
        CD_TRY(cd_tvm_graph_int(&t->g, item, "value_index", &v));
        if (v != (int64_t)k)
            return cd_tvm_graph_error_at(
                &t->g, item, "value_index",
                CD_FAIL(t->err, EUNSUPPORTED, "expected %u, found %lld", k, (long long)v));
    }
    return CDMPP_OK;
}

/* The axes of a Reduce are the operator's reduction axes. */
static cdmpp_status check_axes(cd_tvm *t, uint32_t reduce, uint32_t node) {
    uint32_t a, b, na, nb, x = 0, y = 0;
    const cd_json *ia, *ib;
    CD_TRY(cd_tvm_graph_array(&t->g, reduce, "axis", &a));
    CD_TRY(cd_tvm_graph_array(&t->g, node, "reduce_axis", &b));
    ia = cd_tvm_graph_items(&t->g, a, &na);
    ib = cd_tvm_graph_items(&t->g, b, &nb);
    bool equal = na == nb;
    while (equal && ia) {
        x = cd_tvm_graph_item(&ia);
        y = cd_tvm_graph_item(&ib);
        equal = x == y;
    }
    if (equal) return CDMPP_OK;
    return cd_tvm_graph_error_at(
        &t->g, node, "reduce_axis",
        CD_FAIL(t->err, ESCHEMA, "differs from the axes of the body's reduction"));
}

/* A condition that is literally true is none. */
static cdmpp_status fill_reduction(cd_tvm *t, uint32_t node, uint32_t body, uint32_t first,
                                   cd_te_op *op) {
    uint32_t array, child, n;
    CD_TRY(check_siblings(t, first, body, op->n_out));
    CD_TRY(check_axes(t, first, node));
    CD_TRY(fill_reducer(t, first, op));
    CD_TRY(fill_exprs(t, first, "source", op->n_out, &op->body));
    CD_TRY(cd_tvm_graph_array(&t->g, first, "init", &array));
    CD_TRY(cd_tvm_exprs(t, array, &op->init, &n));
    if (n == 0) op->init = NULL;
    else if (n != op->n_out)
        return cd_tvm_graph_error_at(
            &t->g, first, "init",
            CD_FAIL(t->err, ESCHEMA, "expected %u items, found %u", op->n_out, n));
    CD_TRY(cd_tvm_graph_ref(&t->g, first, "condition", &child));
    CD_TRY(cd_tvm_expr(t, child, &op->cond));
    if (cd_expr_is_int(op->cond) && op->cond->u.i) op->cond = NULL;
    return CDMPP_OK;
}

/* The attributes of an operator, one after another. */
typedef struct {
    uint32_t map, value;
    cd_tvm_graph_map m;
    cd_str key;
    bool more; /* key and value are those of one */
} attrs;

static cdmpp_status attr_next(cd_tvm *t, attrs *a) {
    return a->map ? cd_tvm_graph_map_next(&t->g, a->map, &a->m, &a->key, &a->value, &a->more)
                  : CDMPP_OK;
}

static cdmpp_status attr_first(cd_tvm *t, uint32_t node, attrs *a) {
    *a = (attrs){0};
    CD_TRY(cd_tvm_graph_ref(&t->g, node, "attrs", &a->map));
    if (a->map) CD_TRY(cd_tvm_graph_map_open(&t->g, a->map, &a->m));
    return attr_next(t, a);
}

static cdmpp_status fill_attrs(cd_tvm *t, uint32_t node, cd_te_op *op) {
    attrs a;
    CD_TRY(attr_first(t, node, &a));
    while (a.more) {
        if (cd_str_is(a.key, "const_matrix")) op->const_matrix = true;
        if (cd_str_is(a.key, "auto_scheduler_simplify_const_tensor_indices"))
            op->simplify_const = true;
        if (cd_str_is(a.key, "FLOP")) {
            CD_TRY(cd_tvm_graph_real(&t->g, a.value, "value", &op->flop_attr));
            if (!(op->flop_attr >= 0))
                return cd_tvm_graph_error_at(&t->g, a.value, "value",
                                             CD_FAIL(t->err, ERANGE, "a negative flop count"));
        }
        CD_TRY(attr_next(t, &a));
    }
    return CDMPP_OK;
}

/* Axes first, so that the body's variables are known. */
static cdmpp_status fill_compute(cd_tvm *t, uint32_t node, cd_te_op *op) {
    uint32_t body, first, n;
    const cd_json *it;
    int64_t *shape;
    cd_dtype *dtype;
    CD_TRY(op_name(t, node, op));
    CD_TRY(fill_iters(t, node, "axis", &op->axis, &op->n_axis));
    CD_TRY(fill_iters(t, node, "reduce_axis", &op->raxis, &op->n_raxis));
    CD_TRY(cd_tvm_graph_array(&t->g, node, "body", &body));
    it = cd_tvm_graph_items(&t->g, body, &n);
    first = cd_tvm_graph_item(&it);
    if (cd_tvm_graph_kind(&t->g, first) == CD_TVM_REDUCE)
        CD_TRY(fill_reduction(t, node, body, first, op));
    else CD_TRY(cd_tvm_exprs(t, body, &op->body, &n));
    CD_TRY(new_shape(t, op, op->n_axis, &shape, &dtype));
    for (uint32_t k = 0; k < op->n_axis; k++)
        shape[k] = cd_expr_is_int(op->axis[k].extent) ? op->axis[k].extent->u.i : 0;
    for (uint32_t k = 0; k < op->n_out; k++) dtype[k] = op->body[k]->type;
    return fill_attrs(t, node, op);
}

/* The operators of a list of tensors. */
static cdmpp_status mark_listed(cd_tvm *t, uint32_t list) {
    uint32_t n, tensor, op_node;
    const cd_json *it;
    it = cd_tvm_graph_items(&t->g, list, &n);
    while (it) {
        tensor = cd_tvm_graph_item(&it);
        CD_TRY(cd_tvm_graph_expect(&t->g, tensor, CD_TVM_TENSOR));
        CD_TRY(cd_tvm_graph_ref(&t->g, tensor, "op", &op_node));
        const uint32_t op = t->op_of_node[op_node];
        if (op) t->dag->op[t->op[op - 1].dag_index].layout_free = true;
    }
    return CDMPP_OK;
}

/* attrs["layout_free_placeholders"] of one operator: mark what it lists. */
static cdmpp_status mark_layout_free(cd_tvm *t, uint32_t node) {
    attrs a;
    CD_TRY(attr_first(t, node, &a));
    while (a.more) {
        if (cd_str_is(a.key, "layout_free_placeholders") &&
            cd_tvm_graph_kind(&t->g, a.value) == CD_TVM_ARRAY)
            CD_TRY(mark_listed(t, a.value));
        CD_TRY(attr_next(t, &a));
    }
    return CDMPP_OK;
}

/* Stage order and tensor numbers. */
static cdmpp_status place_ops(cd_tvm *t) {
    cd_te_dag *d = t->dag;
    uint32_t *in_ptr = CD_NEWN(t->a, uint32_t, t->n_op + 1),
             *order = CD_NEWN(t->a, uint32_t, t->n_op);
    d->op = CD_NEWN(&d->arena, cd_te_op, t->n_op);
    d->arg = CD_NEWN(&d->arena, uint32_t, t->n_arg);
    if (!in_ptr || !order || !d->op || !d->arg) return CD_FAIL(t->err, ENOMEM, "operators");
    for (uint32_t i = 0; i < t->n_op; i++) in_ptr[i] = t->op[i].first_in;
    in_ptr[t->n_op] = t->n_in;
    const cd_te_reads reads = {t->n_op, t->n_arg, in_ptr, t->in, t->arg_op};
    CD_TRY(cd_te_stage_order(t->a, &reads, order, &d->n_op, t->err));
    for (uint32_t i = 0; i < d->n_op; i++) {
        cd_tvm_op *op = &t->op[order[i]];
        op->dag_index = i;
        op->first_tensor = d->n_tensor;
        d->op[i] = (cd_te_op){.first_tensor = d->n_tensor, .n_out = op->n_out, .flop_attr = -1};
        d->n_tensor += op->n_out;
    }
    d->n_arg = t->n_arg;
    for (uint32_t k = 0; k < t->n_arg; k++)
        d->arg[k] = t->op[t->arg_op[k]].first_tensor + t->arg_value[k];
    uint32_t *node = order; /* from here on: dag index -> node */
    for (uint32_t i = 0; i < d->n_op; i++) node[i] = t->op[order[i]].node;
    for (uint32_t i = 0; i < d->n_op; i++)
        CD_TRY(cd_tvm_graph_kind(&t->g, node[i]) == CD_TVM_PLACEHOLDER
                   ? fill_placeholder(t, node[i], &d->op[i])
                   : fill_compute(t, node[i], &d->op[i]));
    for (uint32_t i = 0; i < d->n_op; i++)
        if (!d->op[i].is_placeholder) CD_TRY(mark_layout_free(t, node[i]));
    return CDMPP_OK;
}

static cdmpp_status build(cd_tvm *t, const char *text, size_t len) {
    CD_TRY(cd_tvm_graph_open(t->a, text, len, &t->g, t->err));
    t->op_of_node = CD_NEWN(t->a, uint32_t, t->g.n);
    t->stamp = CD_NEWN(t->a, uint32_t, t->g.n);
    t->memo = CD_NEWN(t->a, const cd_expr *, t->g.n);
    t->budget = 64ULL * t->g.n + 1000000;
    if (!t->op_of_node || !t->stamp || !t->memo) return CD_FAIL(t->err, ENOMEM, "node graph");
    CD_TRY(cd_tvm_scan(t));
    CD_TRY(place_ops(t));
    return cd_te_dag_finish(t->dag, t->err);
}

cdmpp_status cd_tvm_graph_dag(cd_arena *scratch, const char *text, size_t len, cd_te_dag **out,
                              cdmpp_err *err) {
    cd_tvm t = {.a = scratch, .err = err};
    *out = NULL;
    CD_TRY(cd_te_dag_new(&t.dag, err));
    cdmpp_status st = build(&t, text, len);
    /* whatever else it looked like */
    if (t.dag->pool.oom) st = CD_FAIL(err, ENOMEM, "expressions");
    if (st) cd_te_dag_free(t.dag);
    else *out = t.dag;
    return st;
}
