/* Tasks in types of 16 and 8 bits that a model of operators of language models answers: matrix
 * products, and in 16 bits what is done element by element. Anything else stays with the model of
 * programs, which says that it answers as for float32.
 *
 *   sum over k of A[b, i, k] * B[b, k, j], with or without steps behind it  ─> gemm, m = i, n = j,
 *     k, batches = b
 *   sum over k of dot4(A[i, k], B[j, k]): words of four numbers of 8 bits   ─> gemm in int8, m = i,
 *     n = j, k of four times as many
 *   element by element, every tensor of the result's size, in its order     ─> elementwise, m rows
 *     of the last axis
 *
 * What stands behind a product in its program (bias, activation) is taken to run in the product's
 * kernel. The library is not named: a device's is not known. */
#include <math.h>
#include <string.h>

#include "predictor/estimate/estimate_internal.h"

static const double LEVEL = 0.9;
#define NORMAL 1.6448536269514722 /* half of an interval of that level, in standard deviations */

/* ---- which operator ---- */
static bool half(cd_dtype t, uint8_t *type) {
    *type = t == CD_DTYPE(CD_T_FLOAT, 16) ? CD_LLM_OP_T_F16 : CD_LLM_OP_T_BF16;
    return t == CD_DTYPE(CD_T_FLOAT, 16) || t == CD_DTYPE(CD_T_BFLOAT, 16);
}

static const cd_expr *uncast(const cd_expr *e) {
    while (e->op == CD_CAST) e = e->a[0];
    return e;
}

static const cd_te_op *source_of(const cd_te_dag *d, const cd_expr *load) {
    return &d->op[d->tensor_op[load->u.i]];
}

/* Is the axis an index of the tensor by itself? *plain: all its indices are axes, each once. */
static bool reads(const cd_expr *load, const cd_expr *axis) {
    for (uint32_t k = 0; k < load->n; k++)
        if (load->a[k]->op == CD_VAR && load->a[k]->u.i == axis->u.i) return true;
    return false;
}

/* The only index of a dimension of 1, which stands for all rows. */
static bool is_zero(const cd_expr *e) { return e->op == CD_INT && e->u.i == 0; }

static bool by_axes(const cd_expr *load) {
    for (uint32_t k = 0; k < load->n; k++) {
        if (load->a[k]->op != CD_VAR && !is_zero(load->a[k])) return false;
        for (uint32_t j = 0; j < k; j++)
            if (load->a[j]->op == CD_VAR && load->a[k]->op == CD_VAR &&
                load->a[j]->u.i == load->a[k]->u.i)
                return false;
    }
    return true;
}

static bool is_sum(const cd_te_op *o) {
    const cd_expr *r = o->red && o->red->n == 1 ? o->red->result[0] : NULL;
    return r && r->op == CD_ADD && r->a[0]->op == CD_VAR && r->a[1]->op == CD_VAR && !o->cond &&
           o->n_out == 1 && !o->init;
}

/* What is multiplied, its type, and how many numbers an element holds. */
typedef struct operands {
    const cd_expr *a, *b;
    uint8_t type;
    double per;
} operands;

static bool operands_of(const cd_te_dag *d, const cd_te_op *o, operands *x) {
    const cd_expr *body = is_sum(o) ? uncast(o->body[0]) : NULL;
    const bool words = body && cd_expr_is_dot4(body);
    if (!body || (body->op != CD_MUL && !words)) return false;
    *x = (operands){uncast(body->a[0]), uncast(body->a[1]), CD_LLM_OP_T_INT8, words ? 4 : 1};
    if (x->a->op != CD_LOAD || x->b->op != CD_LOAD || !by_axes(x->a) || !by_axes(x->b))
        return false;
    const cd_dtype ta = source_of(d, x->a)->dtype[0], tb = source_of(d, x->b)->dtype[0];
    return words || (ta == tb && half(ta, &x->type));
}

/* Axes of the result are of one side, of the other, or of both; those of the sum of both. */
static bool product_of(const cd_te_dag *d, const cd_te_op *o, cd_llm_op_record *r) {
    operands x;
    if (!operands_of(d, o, &x)) return false;
    const cd_expr *a = x.a, *b = x.b;
    double m = 1, n = 1, k = x.per, batches = 1;
    for (uint32_t i = 0; i < o->n_axis; i++) {
        const bool left = reads(a, o->axis[i].var), right = reads(b, o->axis[i].var);
        const double size = (double)o->shape[i];
        if (!left && !right && size > 1) return false;
        *(left && right ? &batches : left ? &m : &n) *= size;
    }
    for (uint32_t i = 0; i < o->n_raxis; i++) {
        if (!reads(a, o->raxis[i].var) || !reads(b, o->raxis[i].var) ||
            o->raxis[i].extent->op != CD_INT)
            return false;
        k *= (double)o->raxis[i].extent->u.i;
    }
    *r = (cd_llm_op_record){
        .kind = CD_LLM_OP_GEMM, .type = x.type, .kv = x.type, .size = {m, n, k, batches}};
    return true;
}

/* Every index of the expression's reads is the axis of its place; what has fewer dimensions stands
 * for rows. */
static bool in_place(const cd_te_op *o, const cd_expr *e) {
    for (uint32_t k = 0; k < e->n; k++) {
        if (e->op == CD_LOAD &&
            !(e->n <= o->n_axis &&
              (is_zero(e->a[k]) ||
               (e->a[k]->op == CD_VAR && e->a[k]->u.i == o->axis[o->n_axis - e->n + k].var->u.i))))
            return false;
        if (e->op != CD_LOAD && !in_place(o, e->a[k])) return false;
    }
    return true;
}

/* A rank of 1 has one row. */
static bool element_of(const cd_te_op *o, cd_llm_op_record *r) {
    uint8_t type;
    double rows = 1;
    if (o->n_out != 1 || !o->rank || !half(o->dtype[0], &type)) return false;
    for (uint32_t i = 0; i + 1 < o->rank; i++) rows *= (double)o->shape[i];
    *r = (cd_llm_op_record){.kind = CD_LLM_OP_ELEMENTWISE,
                            .type = type,
                            .kv = type,
                            .size = {rows, (double)o->shape[o->rank - 1]}};
    return true;
}

bool cd_node_cost_narrow_of(const cd_te_dag *d, cd_llm_op_record *out) {
    const cd_te_op *product = NULL, *last = NULL;
    for (uint32_t i = 0; i < d->n_op; i++) {
        const cd_te_op *o = &d->op[i];
        if (o->is_placeholder) continue;
        if (o->red && product) return false;
        if (o->red) product = o;
        if (o->is_output && last) return false;
        if (o->is_output) last = o;
    }
    if (!last) return false;
    for (uint32_t i = 0; i < d->n_op; i++) {
        const cd_te_op *o = &d->op[i];
        if (!o->is_placeholder && !o->red && (o->n_out != 1 || !in_place(o, o->body[0])))
            return false;
    }
    return product ? product_of(d, product, out) : element_of(last, out);
}

/* ---- its time ---- */
/* A type that is answered as one alike is none that nobody has seen. */
static uint32_t reason_of(unsigned news, bool alike) {
    return (news & CD_LLM_OP_NEW_DEVICE ? CD_UNLIKE_DEVICE : 0u) |
           (news & CD_LLM_OP_NEW_TYPE && !alike ? CD_UNLIKE_DTYPE : 0u) |
           (news & CD_LLM_OP_NEW_SIZE ? CD_UNLIKE_RANGE : 0u);
}

bool cd_node_cost_narrow(const cd_llm_op_asker *a, const cd_task *t, const cd_device *d,
                         cd_node_cost_entry *n) {
    cd_llm_op_record r;
    cd_llm_op_answer v;
    if (!t || !t->dag || d->kind != CD_DEVICE_GPU || !cd_node_cost_narrow_of(t->dag, &r) ||
        cd_llm_op_ask(a, &r, d, LEVEL, &v, NULL))
        return false;
    cd_node_cost_known(n, v.latency_s, CD_COST_LIBRARY);
    n->schedule = NULL; /* it runs a library's kernel */
    n->low_s = v.low_s, n->high_s = v.high_s;
    n->spread = v.low_s > 0 ? log(v.high_s / v.low_s) / (2 * NORMAL) : 0;
    n->alike = v.alike ? cd_llm_op_type_name((cd_llm_op_type)(v.alike - 1)) : NULL;
    n->reason = reason_of(v.news, v.alike > 0);
    n->flags = n->reason ? CD_MODEL_OUT_OF_RANGE : 0;
    n->least_s = v.roof_s;
    return true;
}

static bool is_narrow(const cd_node_cost *c, const cd_network_graph *g, uint32_t i) {
    return g->node[i].kind == CD_NODE_TASK && c->node[i].source == CD_COST_LIBRARY;
}

void cd_node_cost_narrow_alike(cd_node_cost *c, const cd_network_graph *g, uint32_t like) {
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t first = 0;
        if (!is_narrow(c, g, i)) continue;
        while (first < i &&
               !(is_narrow(c, g, first) && !strcmp(g->node[first].key, g->node[i].key)))
            first++;
        c->node[i].like = first < i ? c->node[first].like : like++;
    }
}
