/* A graph of TVM nodes -> a definition: operators in stage order, their axes, bodies and reducers,
 * and the expressions in them. */
#include <string.h>

#include "features/tvm/tvm_internal.h"

/* The type named in an attribute. Errors: EUNSUPPORTED.
 *
 * Expression nodes of a graph -> expressions of the definition's pool, as they are: nothing is
 * folded, because TVM's own form decides the features. */
static cdmpp_status tvm_dtype(cd_tvm *t, uint32_t node, const char *attr, cd_dtype *out) {
    cd_str s;
    CD_TRY(cd_tvm_graph_str(&t->g, node, attr, &s));
    if (cd_expr_dtype_parse(s.p, s.n, out)) return CDMPP_OK;
    return cd_tvm_graph_error_at(&t->g, node, attr,
                                 CD_FAIL(t->err, EUNSUPPORTED,
                                         "type \"%.*s\" is not one that can be read",
                                         cd_str_shown(s, 40), s.p));
}

/* C string in the dag's arena; ESCHEMA when it holds a NUL. */
static cdmpp_status tvm_cstr(cd_tvm *t, uint32_t node, cd_str s, const char **out) {
    if (s.n && memchr(s.p, 0, s.n))
        return cd_tvm_graph_error_at(&t->g, node, NULL,
                                     CD_FAIL(t->err, ESCHEMA, "a name with a NUL byte"));
    *out = cd_str_dup(&t->dag->arena, s);
    return *out ? CDMPP_OK : CD_FAIL(t->err, ENOMEM, "name");
}

/* The variable of a tir.Var node, numbered at its first declaration. */
static cdmpp_status tvm_declare(cd_tvm *t, uint32_t node, const cd_expr **out) {
    const cd_tvm_node_kind k = cd_tvm_graph_kind(&t->g, node);
    if (k != CD_TVM_SIZEVAR) CD_TRY(cd_tvm_graph_expect(&t->g, node, CD_TVM_VAR));
    if (!t->memo[node]) {
        cd_dtype type;
        CD_TRY(tvm_dtype(t, node, "dtype", &type));
        t->memo[node] =
            cd_expr_new_var(&t->dag->pool, type, cd_expr_pool_var_number(&t->dag->pool));
    }
    *out = t->memo[node];
    return CDMPP_OK;
}

static cdmpp_status build_expr(cd_tvm *t, uint32_t node, uint32_t depth, const cd_expr **out);

static cdmpp_status build_ref(cd_tvm *t, uint32_t node, const char *attr, uint32_t depth,
                              const cd_expr **out) {
    uint32_t child;
    CD_TRY(cd_tvm_graph_ref(&t->g, node, attr, &child));
    return build_expr(t, child, depth, out);
}

static cdmpp_status build_array(cd_tvm *t, cd_arena *a, uint32_t array, uint32_t depth,
                                const cd_expr ***out, uint32_t *n) {
    const cd_json *it;
    uint32_t item;
    it = cd_tvm_graph_items(&t->g, array, n);
    *out = CD_NEWN(a, const cd_expr *, *n);
    if (!*out) return CD_FAIL(t->err, ENOMEM, "operands");
    for (uint32_t k = 0; k < *n; k++) {
        item = cd_tvm_graph_item(&it);
        CD_TRY(build_expr(t, item, depth, &(*out)[k]));
    }
    return CDMPP_OK;
}

/* The kind of the node and its type must agree. */
static cdmpp_status build_literal(cd_tvm *t, uint32_t node, const cd_expr **out) {
    cd_expr_pool *p = &t->dag->pool;
    const bool is_int = cd_tvm_graph_kind(&t->g, node) == CD_TVM_INT;
    cd_dtype type;
    int64_t i;
    double f;
    CD_TRY(tvm_dtype(t, node, "dtype", &type));
    if (cd_expr_dtype_is_float(type) == is_int || cd_expr_dtype_kind(type) == CD_T_HANDLE)
        return cd_tvm_graph_error_at(&t->g, node, "dtype",
                                     CD_FAIL(t->err, ESCHEMA, "a literal of another type"));
    if (is_int) {
        CD_TRY(cd_tvm_graph_int(&t->g, node, "value", &i));
        *out = cd_expr_new_int(p, type, i);
    } else {
        CD_TRY(cd_tvm_graph_real(&t->g, node, "value", &f));
        *out = cd_expr_new_float(p, type, f);
    }
    return CDMPP_OK;
}

static cdmpp_status build_string(cd_tvm *t, uint32_t node, const cd_expr **out) {
    cd_str s;
    const char *z = NULL;
    CD_TRY(cd_tvm_graph_str(&t->g, node, "value", &s));
    CD_TRY(tvm_cstr(t, node, s, &z));
    *out = cd_expr_new_str(&t->dag->pool, z);
    return CDMPP_OK;
}

static cdmpp_status build_load(cd_tvm *t, uint32_t node, uint32_t depth, const cd_expr **out) {
    uint32_t array, n, tensor, op, value;
    const cd_expr **a;
    cd_dtype type;
    CD_TRY(cd_tvm_graph_array(&t->g, node, "indices", &array));
    CD_TRY(build_array(t, t->a, array, depth, &a, &n));
    CD_TRY(cd_tvm_graph_ref(&t->g, node, "producer", &tensor));
    CD_TRY(cd_tvm_tensor(t, tensor, &op, &value));
    CD_TRY(tvm_dtype(t, node, "dtype", &type));
    if (op >= t->dag->n_op) /* met only now: in a place that TVM does not search for reads */
        return cd_tvm_graph_error_at(
            &t->g, node, "producer",
            CD_FAIL(t->err, ESCHEMA, "reads a tensor outside an operator's body"));
    *out = cd_expr_new_load(&t->dag->pool, type, t->op[op].first_tensor + value, a, n);
    return CDMPP_OK;
}

/* Operators are kept by name, without "tir.". */
static cdmpp_status build_call(cd_tvm *t, uint32_t node, uint32_t depth, const cd_expr **out) {
    uint32_t op, array, n;
    const cd_expr **a;
    cd_dtype type;
    cd_str name;
    const char *z = NULL;
    CD_TRY(cd_tvm_graph_ref(&t->g, node, "op", &op));
    if (cd_tvm_graph_kind(&t->g, op) != CD_TVM_OP) return cd_tvm_unsupported(t, op);
    CD_TRY(cd_tvm_graph_text(&t->g, op, &name));
    if (name.n > 4 && memcmp(name.p, "tir.", 4) == 0) name = (cd_str){name.p + 4, name.n - 4};
    if (name.n == 0)
        return cd_tvm_graph_error_at(&t->g, op, NULL,
                                     CD_FAIL(t->err, ESCHEMA, "an operator without a name"));
    CD_TRY(tvm_cstr(t, op, name, &z));
    CD_TRY(tvm_dtype(t, node, "dtype", &type));
    CD_TRY(cd_tvm_graph_array(&t->g, node, "args", &array));
    CD_TRY(build_array(t, t->a, array, depth, &a, &n));
    *out = cd_expr_new_call(&t->dag->pool, type, z, a, n);
    return CDMPP_OK;
}

static cdmpp_status build_operands(cd_tvm *t, uint32_t node, uint32_t depth, const cd_expr **out) {
    const cd_tvm_node_kind k = cd_tvm_graph_kind(&t->g, node);
    const char *const *attr = cd_tvm_operands(k);
    const cd_expr *a[3] = {NULL};
    cd_expr_pool *p = &t->dag->pool;
    if (!attr || !attr[0]) return cd_tvm_unsupported(t, node);
    for (uint32_t i = 0; attr[i]; i++) CD_TRY(build_ref(t, node, attr[i], depth, &a[i]));
    if (k >= CD_TVM_ADD && k <= CD_TVM_OR) { /* same order in both tables */
        *out = cd_expr_new_bin(p, (cd_expr_op)(CD_ADD + (k - CD_TVM_ADD)), a[0], a[1]);
    } else if (k == CD_TVM_NOT) {
        *out = cd_expr_new_not(p, a[0]);
    } else if (k == CD_TVM_SELECT) {
        *out = cd_expr_new_select(p, a[0], a[1], a[2]);
    } else {
        cd_dtype type;
        CD_TRY(tvm_dtype(t, node, "dtype", &type));
        *out = cd_expr_new_cast(p, type, a[0]);
    }
    return CDMPP_OK;
}
_Static_assert((int)CD_TVM_OR - (int)CD_TVM_ADD == (int)CD_OR - (int)CD_ADD &&
                   (int)CD_TVM_EQ - (int)CD_TVM_ADD == (int)CD_EQ - (int)CD_ADD &&
                   (int)CD_TVM_FMOD - (int)CD_TVM_ADD == (int)CD_FMOD - (int)CD_ADD,
               "node and expression kinds in the same order");

/* Each node once; sharing in the graph is sharing in the pool. */
static cdmpp_status build_expr(cd_tvm *t, uint32_t node, uint32_t depth, const cd_expr **out) {
    if (!t->memo[node]) {
        if (depth > CD_TE_MAX_DEPTH)
            return cd_tvm_graph_error_at(&t->g, node, NULL,
                                         CD_FAIL(t->err, EUNSUPPORTED,
                                                 "an expression is nested deeper than %d",
                                                 CD_TE_MAX_DEPTH));
        const cd_expr *e = NULL;
        switch (cd_tvm_graph_kind(&t->g, node)) {
        case CD_TVM_INT:
        case CD_TVM_FLOAT: CD_TRY(build_literal(t, node, &e)); break;
        case CD_TVM_STR: CD_TRY(build_string(t, node, &e)); break;
        case CD_TVM_LOAD: CD_TRY(build_load(t, node, depth + 1, &e)); break;
        case CD_TVM_CALL: CD_TRY(build_call(t, node, depth + 1, &e)); break;
        case CD_TVM_VAR:
        case CD_TVM_SIZEVAR:
            return cd_tvm_graph_error_at(
                &t->g, node, NULL,
                CD_FAIL(t->err, ESCHEMA, "a variable that is no axis of its operator"));
        case CD_TVM_REDUCE:
            return cd_tvm_graph_error_at(
                &t->g, node, NULL,
                CD_FAIL(t->err, EUNSUPPORTED, "a reduction inside another expression"));
        default: CD_TRY(build_operands(t, node, depth + 1, &e)); break;
        }
        t->memo[node] = e;
    }
    *out = t->memo[node];
    return CDMPP_OK;
}

/* Expression of a node; variables must have been declared. */
static cdmpp_status tvm_expr(cd_tvm *t, uint32_t node, const cd_expr **out) {
    return build_expr(t, node, 1, out);
}

/* Expressions of an Array node's items, in the dag's arena. */
static cdmpp_status tvm_exprs(cd_tvm *t, uint32_t array, const cd_expr *const **out, uint32_t *n) {
    const cd_expr **list;
    CD_TRY(build_array(t, &t->dag->arena, array, 1, &list, n));
    *out = list;
    return CDMPP_OK;
}

static cdmpp_status op_name(cd_tvm *t, uint32_t node, cd_te_op *op) {
    cd_str s;
    CD_TRY(cd_tvm_graph_str(&t->g, node, "name", &s));
    CD_TRY(tvm_cstr(t, node, s, &op->name));
    CD_TRY(cd_tvm_graph_str(&t->g, node, "tag", &s));
    return tvm_cstr(t, node, s, &op->tag);
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
    return tvm_dtype(t, node, "dtype", dtype);
}

/* The variable is declared before the range: the extent of an adaptive pooling refers to axes in
 * front of it. */
static cdmpp_status fill_iter(cd_tvm *t, uint32_t node, cd_te_iter *out) {
    uint32_t var, name, dom, child;
    cd_str s;
    CD_TRY(cd_tvm_graph_expect(&t->g, node, CD_TVM_ITERVAR));
    CD_TRY(cd_tvm_graph_ref(&t->g, node, "var", &var));
    CD_TRY(tvm_declare(t, var, &out->var));
    CD_TRY(cd_tvm_graph_ref(&t->g, var, "name", &name));
    CD_TRY(cd_tvm_graph_expect(&t->g, name, CD_TVM_STRING));
    CD_TRY(cd_tvm_graph_text(&t->g, name, &s));
    CD_TRY(tvm_cstr(t, name, s, &out->name));
    CD_TRY(cd_tvm_graph_ref(&t->g, node, "dom", &dom));
    CD_TRY(cd_tvm_graph_expect(&t->g, dom, CD_TVM_RANGE));
    CD_TRY(cd_tvm_graph_ref(&t->g, dom, "min", &child));
    CD_TRY(tvm_expr(t, child, &out->min));
    CD_TRY(cd_tvm_graph_ref(&t->g, dom, "extent", &child));
    return tvm_expr(t, child, &out->extent);
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
        CD_TRY(tvm_declare(t, item, &list[k]));
    }
    return CDMPP_OK;
}

static cdmpp_status fill_exprs(cd_tvm *t, uint32_t node, const char *attr, uint32_t n,
                               const cd_expr *const **out) {
    uint32_t array, m;
    CD_TRY(cd_tvm_graph_array(&t->g, node, attr, &array));
    CD_TRY(tvm_exprs(t, array, out, &m));
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
    CD_TRY(tvm_exprs(t, array, &op->init, &n));
    if (n == 0) op->init = NULL;
    else if (n != op->n_out)
        return cd_tvm_graph_error_at(
            &t->g, first, "init",
            CD_FAIL(t->err, ESCHEMA, "expected %u items, found %u", op->n_out, n));
    CD_TRY(cd_tvm_graph_ref(&t->g, first, "condition", &child));
    CD_TRY(tvm_expr(t, child, &op->cond));
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
    else CD_TRY(tvm_exprs(t, body, &op->body, &n));
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
