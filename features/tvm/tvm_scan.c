/* Which operators a graph holds and which tensors each of them reads, in TVM's order of first use.
 * Stage order depends on that order, so the scan walks expressions exactly as TVM's visitor
 * does. */
#include "features/tvm/tvm_internal.h"

const char *const *cd_tvm_operands(cd_tvm_node_kind k) {
    static const char *const binary[] = {"a", "b", NULL}, *const unary[] = {"a", NULL},
                             *const cast[] = {"value", NULL},
                             *const select[] = {"condition", "true_value", "false_value", NULL},
                             *const leaf[] = {NULL};
    switch (k) {
    case CD_TVM_INT:
    case CD_TVM_FLOAT:
    case CD_TVM_STR:
    case CD_TVM_VAR:
    case CD_TVM_SIZEVAR: return leaf;
    case CD_TVM_CAST: return cast;
    case CD_TVM_NOT: return unary;
    case CD_TVM_SELECT: return select;
    default: return k >= CD_TVM_ADD && k <= CD_TVM_OR ? binary : NULL;
    }
}

cdmpp_status cd_tvm_unsupported(cd_tvm *t, uint32_t node) {
    const cd_str key = cd_tvm_graph_type_key(&t->g, node);
    return cd_tvm_graph_error_at(&t->g, node, NULL,
                                 CD_FAIL(t->err, EUNSUPPORTED,
                                         "\"%.*s\" is not an expression of a task that can be read",
                                         cd_str_shown(key, 60), key.p));
}

static cdmpp_status no_memory(cd_tvm *t) { return CD_FAIL(t->err, ENOMEM, "operators"); }

static cdmpp_status count_outputs(cd_tvm *t, uint32_t node, uint32_t *n) {
    *n = 1;
    if (cd_tvm_graph_kind(&t->g, node) == CD_TVM_PLACEHOLDER) return CDMPP_OK;
    uint32_t body;
    CD_TRY(cd_tvm_graph_array(&t->g, node, "body", &body));
    (void)cd_tvm_graph_items(&t->g, body, n);
    if (*n == 0 || *n > CD_TE_MAX_OUT)
        return cd_tvm_graph_error_at(
            &t->g, node, "body", CD_FAIL(t->err, EUNSUPPORTED, "an operator with %u outputs", *n));
    return CDMPP_OK;
}

/* The number of an operator, made when it is met first. */
static cdmpp_status discover(cd_tvm *t, uint32_t node, uint32_t *op) {
    if (t->op_of_node[node]) {
        *op = t->op_of_node[node] - 1;
        return CDMPP_OK;
    }
    const cd_tvm_node_kind k = cd_tvm_graph_kind(&t->g, node);
    if (k != CD_TVM_PLACEHOLDER && k != CD_TVM_COMPUTE) {
        const cd_str key = cd_tvm_graph_type_key(&t->g, node);
        return cd_tvm_graph_error_at(&t->g, node, NULL,
                                     CD_FAIL(t->err, EUNSUPPORTED,
                                             "\"%.*s\" is not an operator that can be read",
                                             cd_str_shown(key, 60), key.p));
    }
    uint32_t n_out;
    CD_TRY(count_outputs(t, node, &n_out));
    if (CD_GROW_IN(t->a, t->op, t->n_op, t->cap_op)) return no_memory(t);
    t->op[t->n_op] = (cd_tvm_op){.node = node, .n_out = n_out, .first_seen = t->n_seen};
    for (uint32_t k2 = 0; k2 < n_out; k2++) {
        if (CD_GROW_IN(t->a, t->seen, t->n_seen, t->cap_seen)) return no_memory(t);
        t->seen[t->n_seen++] = 0;
    }
    *op = t->n_op++;
    t->op_of_node[node] = *op + 1;
    return CDMPP_OK;
}

cdmpp_status cd_tvm_tensor(cd_tvm *t, uint32_t node, uint32_t *op, uint32_t *value) {
    uint32_t op_node;
    int64_t v;
    CD_TRY(cd_tvm_graph_expect(&t->g, node, CD_TVM_TENSOR));
    CD_TRY(cd_tvm_graph_ref(&t->g, node, "op", &op_node));
    CD_TRY(discover(t, op_node, op));
    CD_TRY(cd_tvm_graph_int(&t->g, node, "value_index", &v));
    if (v < 0 || v >= t->op[*op].n_out)
        return cd_tvm_graph_error_at(&t->g, node, "value_index",
                                     CD_FAIL(t->err, ESCHEMA, "output %lld of an operator with %u",
                                             (long long)v, t->op[*op].n_out));
    *value = (uint32_t)v;
    return CDMPP_OK;
}

static cdmpp_status visit(cd_tvm *t, uint32_t self, uint32_t node, uint32_t depth);

static cdmpp_status visit_items(cd_tvm *t, uint32_t self, uint32_t node, const char *attr,
                                uint32_t depth) {
    uint32_t array, n, item;
    const cd_json *it;
    CD_TRY(cd_tvm_graph_array(&t->g, node, attr, &array));
    it = cd_tvm_graph_items(&t->g, array, &n);
    while (it) {
        item = cd_tvm_graph_item(&it);
        CD_TRY(visit(t, self, item, depth));
    }
    return CDMPP_OK;
}

static cdmpp_status visit_ref(cd_tvm *t, uint32_t self, uint32_t node, const char *attr,
                              uint32_t depth) {
    uint32_t child;
    CD_TRY(cd_tvm_graph_ref(&t->g, node, attr, &child));
    return visit(t, self, child, depth);
}

/* Ranges of reduction axes may read, too. */
static cdmpp_status visit_axes(cd_tvm *t, uint32_t self, uint32_t node, uint32_t depth) {
    uint32_t array, n, iter, dom;
    const cd_json *it;
    CD_TRY(cd_tvm_graph_array(&t->g, node, "axis", &array));
    it = cd_tvm_graph_items(&t->g, array, &n);
    while (it) {
        iter = cd_tvm_graph_item(&it);
        CD_TRY(cd_tvm_graph_expect(&t->g, iter, CD_TVM_ITERVAR));
        CD_TRY(cd_tvm_graph_ref(&t->g, iter, "dom", &dom));
        CD_TRY(cd_tvm_graph_expect(&t->g, dom, CD_TVM_RANGE));
        CD_TRY(visit_ref(t, self, dom, "min", depth));
        CD_TRY(visit_ref(t, self, dom, "extent", depth));
    }
    return CDMPP_OK;
}

static cdmpp_status visit_load(cd_tvm *t, uint32_t self, uint32_t node, uint32_t depth) {
    uint32_t tensor, op, value;
    CD_TRY(visit_items(t, self, node, "indices", depth));
    CD_TRY(cd_tvm_graph_ref(&t->g, node, "producer", &tensor));
    CD_TRY(cd_tvm_tensor(t, tensor, &op, &value));
    uint32_t *seen = &t->seen[t->op[op].first_seen + value];
    if (*seen == self + 1) return CDMPP_OK;
    *seen = self + 1;
    if (CD_GROW_IN(t->a, t->in, t->n_in, t->cap_in)) return no_memory(t);
    t->in[t->n_in++] = op;
    return CDMPP_OK;
}

/* The order of the parts of a reduction is TVM's: axes, source, init, condition. */
static cdmpp_status visit_children(cd_tvm *t, uint32_t self, uint32_t node, uint32_t depth) {
    switch (cd_tvm_graph_kind(&t->g, node)) {
    case CD_TVM_LOAD: return visit_load(t, self, node, depth);
    case CD_TVM_CALL: return visit_items(t, self, node, "args", depth);
    case CD_TVM_REDUCE:
        CD_TRY(visit_axes(t, self, node, depth));
        CD_TRY(visit_items(t, self, node, "source", depth));
        CD_TRY(visit_items(t, self, node, "init", depth));
        return visit_ref(t, self, node, "condition", depth);
    default: break;
    }
    const char *const *attr = cd_tvm_operands(cd_tvm_graph_kind(&t->g, node));
    if (!attr) return cd_tvm_unsupported(t, node);
    for (; *attr; attr++) CD_TRY(visit_ref(t, self, node, *attr, depth));
    return CDMPP_OK;
}

/* Post-order over one operator's expression, each node once (TVM's order of
 * InputTensors). stamp: 2*self + 2 while open, 2*self + 3 when done. */
static cdmpp_status visit(cd_tvm *t, uint32_t self, uint32_t node, uint32_t depth) {
    const uint32_t open = 2 * self + 2;
    if (t->stamp[node] == open + 1) return CDMPP_OK;
    if (t->stamp[node] == open)
        return cd_tvm_graph_error_at(&t->g, node, NULL,
                                     CD_FAIL(t->err, ESCHEMA, "is part of itself (a cycle)"));
    if (depth > CD_TE_MAX_DEPTH)
        return cd_tvm_graph_error_at(&t->g, node, NULL,
                                     CD_FAIL(t->err, EUNSUPPORTED,
                                             "an expression is nested deeper than %d",
                                             CD_TE_MAX_DEPTH));
    if (t->budget-- == 0)
        return CD_FAIL(t->err, EUNSUPPORTED, "operators share too many expressions");
    t->stamp[node] = open;
    CD_TRY(visit_children(t, self, node, depth + 1));
    t->stamp[node] = open + 1;
    return CDMPP_OK;
}

/* The root is the list of the function's tensors: inputs, then outputs. */
static cdmpp_status scan_root(cd_tvm *t) {
    const cd_json *it;
    uint32_t node;
    CD_TRY(cd_tvm_graph_expect(&t->g, t->g.root, CD_TVM_ARRAY));
    it = cd_tvm_graph_items(&t->g, t->g.root, &t->n_arg);
    if (t->n_arg == 0)
        return cd_tvm_graph_error_at(&t->g, t->g.root, NULL,
                                     CD_FAIL(t->err, ESCHEMA, "a task without tensors"));
    t->arg_op = CD_NEWN(t->a, uint32_t, t->n_arg);
    t->arg_value = CD_NEWN(t->a, uint32_t, t->n_arg);
    if (!t->arg_op || !t->arg_value) return CD_FAIL(t->err, ENOMEM, "tensors");
    for (uint32_t k = 0; k < t->n_arg; k++) {
        node = cd_tvm_graph_item(&it);
        CD_TRY(cd_tvm_tensor(t, node, &t->arg_op[k], &t->arg_value[k]));
    }
    return CDMPP_OK;
}

cdmpp_status cd_tvm_scan(cd_tvm *t) {
    CD_TRY(scan_root(t));
    for (uint32_t i = 0; i < t->n_op; i++) { /* grows while it runs */
        t->op[i].first_in = t->n_in;
        const uint32_t node = t->op[i].node;
        if (cd_tvm_graph_kind(&t->g, node) == CD_TVM_COMPUTE)
            CD_TRY(visit_items(t, i, node, "body", 1));
    }
    return CDMPP_OK;
}
