/* Which dimension of an input is the batch: the first, unless the input reaches a recurrent layer
 * that reads [time, batch, ...]. Then its time steps are no items, and a batch size is for the
 * other dimension. The way there is followed through operators that keep dimensions or move them in
 * a known way. */
#include <string.h>

#include "profiler/network/onnx/onnx_internal.h"

/* A tensor that is made of one input: which of the input's dimensions each of its own is; -1:
 * none. */
typedef struct trace {
    uint32_t input, rank;
    int at[CD_GRAPH_MAX_RANK];
} trace;

typedef struct tracer {
    cd_onnx_reader *r;
    cd_onnx_map of; /* name -> number in list */
    trace *list;    /* (n of cap) */
    uint32_t n, cap;
} tracer;

/* Operators whose first result has its operand's dimensions. */
static const char *const keeping[] = {"Identity",
                                      "Cast",
                                      "Dropout",
                                      "Relu",
                                      "Tanh",
                                      "Sigmoid",
                                      "LeakyRelu",
                                      "Elu",
                                      "Gelu",
                                      "Clip",
                                      "Add",
                                      "Sub",
                                      "Mul",
                                      "Div",
                                      "Concat",
                                      "LayerNormalization",
                                      "Softmax",
                                      "QuantizeLinear",
                                      "DequantizeLinear"};

static const trace *found(const tracer *t, const CdOnnx__NodeProto *n, size_t k) {
    const uint32_t *i =
        k < n->n_input && *cd_onnx_text(n->input[k]) ? cd_onnx_map_find(&t->of, n->input[k]) : NULL;
    return i ? &t->list[*i] : NULL;
}

static cdmpp_status put(tracer *t, const char *name, const trace *x, cdmpp_err *err) {
    const trace copy = *x; /* the list may move */
    bool old;
    if (CD_GROW_IN(t->r->a, t->list, t->n, t->cap)) return CD_FAIL(err, ENOMEM, "inputs");
    t->list[t->n] = copy;
    return cd_onnx_map_put(&t->of, t->r->a, name, t->n++, &old, err);
}

static const CdOnnx__AttributeProto *attr(const CdOnnx__NodeProto *n, const char *name) {
    return cd_onnx_attr(NULL, n, name);
}

/* The operand that x is, as the result of this node; false: its dimensions are lost. */
static bool moved(const CdOnnx__NodeProto *n, trace *x, size_t operand) {
    const char *op = cd_onnx_text(n->op_type);
    const trace from = *x;
    if (!strcmp(op, "Transpose")) {
        const CdOnnx__AttributeProto *p = attr(n, "perm");
        if (p && p->n_ints != x->rank) return false;
        for (uint32_t d = 0; d < x->rank; d++) {
            const int64_t at = p ? p->ints[d] : (int64_t)(x->rank - 1 - d);
            if (at < 0 || at >= x->rank) return false;
            x->at[d] = from.at[at];
        }
        return true;
    }
    /* rows of a table */
    if (!strcmp(op, "Gather") && operand == 1 && x->rank < CD_GRAPH_MAX_RANK &&
        (!attr(n, "axis") || !attr(n, "axis")->i)) {
        x->at[x->rank++] = -1;
        return true;
    }
    if (!strcmp(op, "MatMul") && operand == 0 && x->rank) {
        x->at[x->rank - 1] = -1;
        return true;
    }
    for (size_t i = 0; i < sizeof keeping / sizeof *keeping; i++)
        if (!strcmp(keeping[i], op)) return true;
    return false;
}

/* Data and states have the batch second, lengths of sequences are one for each item. */
static void recurrent(const tracer *t, const CdOnnx__NodeProto *n, uint32_t *axis) {
    static const struct {
        size_t operand;
        uint32_t dim;
    } batch[] = {{0, 1}, {4, 0}, {5, 1}, {6, 1}};
    if (attr(n, "layout") && attr(n, "layout")->i) return;
    for (size_t i = 0; i < sizeof batch / sizeof *batch; i++) {
        const trace *x = found(t, n, batch[i].operand);
        if (x && batch[i].dim < x->rank && x->at[batch[i].dim] >= 0)
            axis[x->input] = (uint32_t)x->at[batch[i].dim];
    }
}

static cdmpp_status node(tracer *t, const CdOnnx__NodeProto *n, uint32_t *axis, cdmpp_err *err) {
    const char *op = cd_onnx_text(n->op_type);
    if (!strcmp(op, "LSTM") || !strcmp(op, "GRU") || !strcmp(op, "RNN"))
        return recurrent(t, n, axis), CDMPP_OK;
    for (size_t k = 0; k < n->n_input && k < 2 && n->n_output; k++) {
        const trace *x = found(t, n, k);
        trace y = x ? *x : (trace){0};
        if (x && moved(n, &y, k)) return put(t, cd_onnx_text(n->output[0]), &y, err);
    }
    return CDMPP_OK;
}

cdmpp_status cd_onnx_batch_axes(cd_onnx_reader *r, const CdOnnx__GraphProto *g,
                                const uint32_t *order, uint32_t *axis, cdmpp_err *err) {
    tracer t = {.r = r};
    for (uint32_t i = 0; i < g->n_input; i++) {
        const CdOnnx__TypeProto *type = g->input[i]->type;
        const CdOnnx__TensorShapeProto *s =
            type && type->value_case == CD_ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
                ? type->tensor_type->shape
                : NULL;
        trace x = {.input = i, .rank = s && s->n_dim <= CD_GRAPH_MAX_RANK ? (uint32_t)s->n_dim : 0};
        axis[i] = 0;
        for (uint32_t d = 0; d < x.rank; d++) x.at[d] = (int)d;
        if (x.rank) CD_TRY(put(&t, cd_onnx_text(g->input[i]->name), &x, err));
    }
    for (size_t i = 0; i < g->n_node; i++) CD_TRY(node(&t, g->node[order[i]], axis, err));
    return CDMPP_OK;
}
