/* Decides which inputs are data and which are weights: rules a to e of onnx.h. Rule d follows each input through the graph with a
 * label: which input a tensor depends on. */
#include <string.h>

#include "profiler/network/onnx/onnx_internal.h"

/* Label of a tensor: it depends on constants alone, on input i alone (i + 1), or on more. */
enum { CONSTANT = 0 };
#define MIXED UINT32_MAX

/* Operators whose first operand is data, and whose other operands are weights or absent. A new operator of this kind belongs here. */
static const char *const heads[] = {"Conv", "ConvTranspose", "ConvInteger", "DeformConv", "QLinearConv", "Gemm", "MatMul", "MatMulInteger",
    "QLinearMatMul", "BatchNormalization", "InstanceNormalization", "GroupNormalization", "LayerNormalization", "LSTM", "GRU", "RNN", "PRelu",
    "MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "MaxRoiPool", "RoiAlign", "Softmax",
    "LogSoftmax", "Hardmax", "LRN", "LpNormalization", "MeanVarianceNormalization", "Resize", "Upsample", "GridSample", "ArgMax", "TopK",
    "DepthToSpace", "SpaceToDepth"};

static bool is_head(const char *op) {
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (!strcmp(heads[i], op)) return true;
    return false;
}

static uint32_t label(const cd_onnx_map *m, const CdOnnx__NodeProto *n, size_t k) {
    const uint32_t *l = k < n->n_input ? cd_onnx_map_find(m, cd_onnx_text(n->input[k])) : NULL;
    return l ? *l : CONSTANT; /* initializers, and what is left out */
}

static void mark(uint32_t l, bool *data) {
    if (l != CONSTANT && l != MIXED) data[l - 1] = true;
}

static uint32_t combined(const cd_onnx_map *m, const CdOnnx__NodeProto *n) {
    uint32_t l = CONSTANT;
    for (size_t k = 0; k < n->n_input; k++) {
        const uint32_t x = label(m, n, k);
        if (x != CONSTANT) l = l == CONSTANT || l == x ? x : MIXED;
    }
    return l;
}

/* Marks inputs that reach a first operand, then labels the node's results. */
static cdmpp_status node(cd_onnx_reader *r, cd_onnx_map *m, const CdOnnx__NodeProto *n, bool *data, cdmpp_err *err) {
    const char *op = cd_onnx_text(n->op_type);
    bool old;
    uint32_t l = combined(m, n);
    if (is_head(op)) {
        mark(label(m, n, 0), data);
        l = MIXED;
    } else if (!strcmp(op, "Gather")) mark(label(m, n, 1), data);
    else if (!strcmp(op, "Shape") || !strcmp(op, "Size")) l = CONSTANT;
    else if (!strcmp(op, "If") || !strcmp(op, "Loop") || !strcmp(op, "Scan")) l = MIXED; /* they read more than their operands */
    for (size_t k = 0; k < n->n_output; k++) CD_TRY(cd_onnx_map_put(m, r->a, cd_onnx_text(n->output[k]), l, &old, err));
    return CDMPP_OK;
}

/* Rule d. */
static cdmpp_status by_use(cd_onnx_reader *r, const CdOnnx__GraphProto *g, const uint32_t *order, bool *data, cdmpp_err *err) {
    cd_onnx_map m = {0};
    bool old;
    CD_TRY(cd_onnx_map_put(&m, r->a, "", CONSTANT, &old, err));
    for (uint32_t i = 0; i < g->n_input; i++) CD_TRY(cd_onnx_map_put(&m, r->a, cd_onnx_text(g->input[i]->name), i + 1, &old, err));
    for (size_t i = 0; i < g->n_node; i++) CD_TRY(node(r, &m, g->node[order[i]], data, err));
    for (size_t i = 0; i < g->n_output; i++) {
        const uint32_t *l = cd_onnx_map_find(&m, cd_onnx_text(g->output[i]->name));
        if (l) mark(*l, data);
    }
    return CDMPP_OK;
}

/* A dimension without a number, or integers: exporters do not write weights so. */
static bool is_data_by_type(const CdOnnx__ValueInfoProto *v) {
    if (!v->type || v->type->value_case != CD_ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) return true;
    const CdOnnx__TypeProto__Tensor *t = v->type->tensor_type;
    cd_dtype type;
    if (cd_graph_dtype(t->elem_type, &type) && !cd_expr_dtype_is_float(type)) return true;
    for (size_t k = 0; t->shape && k < t->shape->n_dim; k++)
        if (t->shape->dim[k]->value_case != CD_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) return true;
    return false;
}

static cdmpp_status by_option(const cd_onnx_reader *r, const CdOnnx__GraphProto *g, bool *data, cdmpp_err *err) {
    for (uint32_t k = 0; k < r->o->n_input; k++) {
        bool found = false;
        for (size_t i = 0; i < g->n_input; i++)
            if (!strcmp(cd_onnx_text(g->input[i]->name), r->o->input[k])) data[i] = found = true;
        if (!found) return CD_FAIL(err, EUSAGE, "no input is called \"%s\"", r->o->input[k]);
    }
    return CDMPP_OK;
}

static size_t count(const bool *data, size_t n) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++) k += data[i];
    return k;
}

/* A file with any initializer is whole: its inputs without one are data. Only files without weights need rule d. */
cdmpp_status cd_onnx_roles(cd_onnx_reader *r, const CdOnnx__GraphProto *g, const uint32_t *order, bool *data, cdmpp_err *err) {
    cd_onnx_map init = {0};
    bool old;
    if (r->o->n_input) return by_option(r, g, data, err);
    for (size_t i = 0; i < g->n_initializer; i++) CD_TRY(cd_onnx_map_put(&init, r->a, cd_onnx_text(g->initializer[i]->name), 0, &old, err));
    for (size_t i = 0; i < g->n_sparse_initializer; i++)
        if (g->sparse_initializer[i]->values)
            CD_TRY(cd_onnx_map_put(&init, r->a, cd_onnx_text(g->sparse_initializer[i]->values->name), 0, &old, err));
    const bool whole = g->n_initializer + g->n_sparse_initializer > 0;
    for (size_t i = 0; i < g->n_input; i++)
        data[i] = whole ? !cd_onnx_map_find(&init, cd_onnx_text(g->input[i]->name)) : is_data_by_type(g->input[i]);
    if (!whole) CD_TRY(by_use(r, g, order, data, err));
    if (!whole && !count(data, g->n_input)) memset(data, 1, g->n_input * sizeof *data);
    return CDMPP_OK;
}
