/* A graph becomes an ONNX file, so that other runtimes can run what was built here. A graph knows
 * shapes of weights, no content: the file gets numbers between 1/4 and 3/4, with which no operator
 * fails. */
#include <string.h>

#include "profiler/network/onnx/onnx_internal.h"

/* Attributes that ONNX has of an operator in the writer's opset. A graph has more: resolved values
 * that came as operands or are not in this opset. An operator that is not here has none. */
static const struct {
    const char *op, *attrs; /* with a blank in front of and behind each */
} known[] = {
    {"Conv", " dilations group kernel_shape pads strides "},
    {"ConvTranspose", " dilations group kernel_shape output_padding pads strides "},
    {"MaxPool", " ceil_mode kernel_shape pads strides "},
    {"AveragePool", " ceil_mode count_include_pad kernel_shape pads strides "},
    {"BatchNormalization", " epsilon "},
    {"Concat", " axis "},
    {"Softmax", " axis "},
    {"Flatten", " axis "},
    {"Transpose", " perm "},
    {"LeakyRelu", " alpha "},
    {"Elu", " alpha "},
    {"HardSigmoid", " alpha beta "},
    {"Gemm", " alpha beta transA transB "},
    {"Relu", ""},
    {"Clip", ""},
    {"Sigmoid", ""},
    {"Tanh", ""},
    {"HardSwish", ""},
    {"Exp", ""},
    {"Sqrt", ""},
    {"Erf", ""},
    {"Abs", ""},
    {"Neg", ""},
    {"Add", ""},
    {"Sub", ""},
    {"Mul", ""},
    {"Div", ""},
    {"MatMul", ""},
    {"GlobalAveragePool", ""},
    {"GlobalMaxPool", ""},
    {"Identity", ""},
    {"Slice", ""},
    {"Pad", " mode "},
};

static const char *attributes_of(const char *op) {
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (!strcmp(known[k].op, op)) return known[k].attrs;
    return NULL;
}

static bool is_listed(const char *list, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = strstr(list, name); at; at = strstr(at + 1, name))
        if (at[-1] == ' ' && at[n] == ' ') return true;
    return false;
}

/* ---- tensors ---- */

static cdmpp_status no_memory(cdmpp_err *err) { return CD_FAIL(err, ENOMEM, "ONNX file"); }

/* Numbers that repeat after 97 elements. */
static cdmpp_status put_weight(cd_onnx_writer *f, const cd_graph_tensor *t, cdmpp_err *err) {
    const int64_t n = cd_graph_shape_elements(&t->shape);
    float *v = CD_NEWN(&f->arena, float, (size_t)n + 1);
    if (!v) return no_memory(err);
    for (int64_t i = 0; i < n; i++) v[i] = 0.25f + 0.5f * (float)(i * 37 % 97) / 97;
    cd_onnx_writer_constant(f, t->name, CD_ONNX_F32, t->shape.dim, t->shape.rank, v);
    return CDMPP_OK;
}

static cdmpp_status put_known(cd_onnx_writer *f, const cd_graph_tensor *t, cdmpp_err *err) {
    const int64_t n = cd_graph_shape_elements(&t->shape);
    if (t->value && t->dtype == CD_I64) {
        cd_onnx_writer_constant(f, t->name, CD_ONNX_I64, t->shape.dim, t->shape.rank, t->value);
        return CDMPP_OK;
    }
    if (!t->fvalue || t->dtype != CD_F32)
        return CD_FAIL(err, EUNSUPPORTED,
                       "%.60s: a known tensor of another type than float32 and int64", t->name);
    float *v = CD_NEWN(&f->arena, float, (size_t)n + 1);
    if (!v) return no_memory(err);
    for (int64_t i = 0; i < n; i++) v[i] = (float)t->fvalue[i];
    cd_onnx_writer_constant(f, t->name, CD_ONNX_F32, t->shape.dim, t->shape.rank, v);
    return CDMPP_OK;
}

/* Results of operators have names of the writer's; all others keep theirs. */
static cdmpp_status put_tensor(cd_onnx_writer *f, const cd_graph_tensor *t, cdmpp_err *err) {
    if (t->is_input && t->dtype == CD_F32) {
        cd_onnx_writer_input(f, t->name, CD_ONNX_F32, t->shape.dim, t->shape.rank);
        return CDMPP_OK;
    }
    if (t->value || t->fvalue) return put_known(f, t, err);
    if (t->dtype != CD_F32)
        return CD_FAIL(err, EUNSUPPORTED, "%.60s: a tensor of another type than float32", t->name);
    return put_weight(f, t, err);
}

/* ---- operators ---- */

static void put_attribute(cd_onnx_writer *f, const cd_graph_attr *a) {
    if (a->kind == CD_GRAPH_ATTR_INT) cd_onnx_writer_attr_int(f, a->name, a->i);
    if (a->kind == CD_GRAPH_ATTR_FLOAT) cd_onnx_writer_attr_float(f, a->name, (float)a->f);
    if (a->kind == CD_GRAPH_ATTR_STR) cd_onnx_writer_attr_text(f, a->name, a->s);
    if (a->kind == CD_GRAPH_ATTR_INTS) cd_onnx_writer_attr_ints(f, a->name, a->ints, a->n);
}

/* An attribute may stand twice, as given and resolved: the last one is the resolved one. */
static cdmpp_status put_operator(cd_onnx_writer *f, const cd_graph_node *n, const char **name,
                                 cdmpp_err *err) {
    const char *list = attributes_of(n->op), **in = CD_NEWN(&f->arena, const char *, n->n_in + 1);
    if (!in) return no_memory(err);
    if (!list || n->n_out != 1 || n->opaque)
        return CD_FAIL(err, EUNSUPPORTED, "%.60s: not known to the writer of ONNX files", n->op);
    for (uint32_t k = 0; k < n->n_in; k++) in[k] = n->in[k] == CD_GRAPH_NONE ? "" : name[n->in[k]];
    for (uint32_t k = 0; k < n->n_attr; k++) {
        bool again = false;
        for (uint32_t j = k + 1; j < n->n_attr; j++)
            again |= !strcmp(n->attr[j].name, n->attr[k].name);
        if (!again && is_listed(list, n->attr[k].name)) put_attribute(f, &n->attr[k]);
    }
    name[n->out[0]] = cd_onnx_writer_node(f, n->op, in, n->n_in);
    return CDMPP_OK;
}

static cdmpp_status put_graph(cd_onnx_writer *f, const cd_graph *g, cdmpp_err *err) {
    const char **name = CD_NEWN(&f->arena, const char *, g->n_tensor + 1);
    if (!name) return no_memory(err);
    for (uint32_t t = 0; t < g->n_tensor; t++) {
        name[t] = g->tensor[t].name;
        if (g->tensor[t].node == CD_GRAPH_NONE) CD_TRY(put_tensor(f, &g->tensor[t], err));
    }
    for (uint32_t i = 0; i < g->n_node; i++) CD_TRY(put_operator(f, &g->node[i], name, err));
    for (uint32_t k = 0; k < g->n_output; k++) {
        const cd_graph_tensor *t = &g->tensor[g->output[k]];
        cd_onnx_writer_output(f, t->name, name[g->output[k]], CD_ONNX_F32, t->shape.dim,
                              t->shape.rank);
    }
    return CDMPP_OK;
}

cdmpp_status cd_onnx_write(const cd_graph *g, cd_buf *out, cdmpp_err *err) {
    cd_onnx_writer f = {0};
    cdmpp_status st = put_graph(&f, g, err);
    if (!st) st = cd_onnx_writer_end(&f, g->name, out, err);
    cd_onnx_writer_free(&f);
    return st;
}
