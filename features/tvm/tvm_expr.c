/* Expression nodes of a graph -> expressions of the definition's pool, as they are: nothing is
 * folded, because TVM's own form decides the features. */
#include <string.h>

#include "features/tvm/tvm_internal.h"

cdmpp_status cd_tvm_dtype(cd_tvm *t, uint32_t node, const char *attr, cd_dtype *out) {
    cd_str s;
    CD_TRY(cd_tvm_graph_str(&t->g, node, attr, &s));
    if (cd_expr_dtype_parse(s.p, s.n, out)) return CDMPP_OK;
    return cd_tvm_graph_error_at(&t->g, node, attr,
                                 CD_FAIL(t->err, EUNSUPPORTED,
                                         "type \"%.*s\" is not one that can be read",
                                         cd_str_shown(s, 40), s.p));
}

cdmpp_status cd_tvm_cstr(cd_tvm *t, uint32_t node, cd_str s, const char **out) {
    if (s.n && memchr(s.p, 0, s.n))
        return cd_tvm_graph_error_at(&t->g, node, NULL,
                                     CD_FAIL(t->err, ESCHEMA, "a name with a NUL byte"));
    *out = cd_str_dup(&t->dag->arena, s);
    return *out ? CDMPP_OK : CD_FAIL(t->err, ENOMEM, "name");
}

cdmpp_status cd_tvm_declare(cd_tvm *t, uint32_t node, const cd_expr **out) {
    const cd_tvm_node_kind k = cd_tvm_graph_kind(&t->g, node);
    if (k != CD_TVM_SIZEVAR) CD_TRY(cd_tvm_graph_expect(&t->g, node, CD_TVM_VAR));
    if (!t->memo[node]) {
        cd_dtype type;
        CD_TRY(cd_tvm_dtype(t, node, "dtype", &type));
        t->memo[node] =
            cd_expr_new_var(&t->dag->pool, type, cd_expr_pool_var_number(&t->dag->pool));
    }
    *out = t->memo[node];
    return CDMPP_OK;
}

static cdmpp_status build(cd_tvm *t, uint32_t node, uint32_t depth, const cd_expr **out);

static cdmpp_status build_ref(cd_tvm *t, uint32_t node, const char *attr, uint32_t depth,
                              const cd_expr **out) {
    uint32_t child;
    CD_TRY(cd_tvm_graph_ref(&t->g, node, attr, &child));
    return build(t, child, depth, out);
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
        CD_TRY(build(t, item, depth, &(*out)[k]));
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
    CD_TRY(cd_tvm_dtype(t, node, "dtype", &type));
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
    CD_TRY(cd_tvm_cstr(t, node, s, &z));
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
    CD_TRY(cd_tvm_dtype(t, node, "dtype", &type));
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
    CD_TRY(cd_tvm_cstr(t, op, name, &z));
    CD_TRY(cd_tvm_dtype(t, node, "dtype", &type));
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
        CD_TRY(cd_tvm_dtype(t, node, "dtype", &type));
        *out = cd_expr_new_cast(p, type, a[0]);
    }
    return CDMPP_OK;
}
_Static_assert((int)CD_TVM_OR - (int)CD_TVM_ADD == (int)CD_OR - (int)CD_ADD &&
                   (int)CD_TVM_EQ - (int)CD_TVM_ADD == (int)CD_EQ - (int)CD_ADD &&
                   (int)CD_TVM_FMOD - (int)CD_TVM_ADD == (int)CD_FMOD - (int)CD_ADD,
               "node and expression kinds in the same order");

/* Each node once; sharing in the graph is sharing in the pool. */
static cdmpp_status build(cd_tvm *t, uint32_t node, uint32_t depth, const cd_expr **out) {
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

cdmpp_status cd_tvm_expr(cd_tvm *t, uint32_t node, const cd_expr **out) {
    return build(t, node, 1, out);
}

cdmpp_status cd_tvm_exprs(cd_tvm *t, uint32_t array, const cd_expr *const **out, uint32_t *n) {
    const cd_expr **list;
    CD_TRY(build_array(t, &t->dag->arena, array, 1, &list, n));
    *out = list;
    return CDMPP_OK;
}
