/* Decides which inputs are data and which are weights: rules a to e of onnx.h. Rule d follows each
 * input through the graph with a label: which input a tensor depends on, and for a score of
 * attention which input stood behind its product. */
#include <stdio.h>
#include <string.h>

#include "profiler/network/onnx/onnx_internal.h"

/* Label of a tensor: it depends on constants alone, on input i alone (i + 1), or on more. */
enum { CONSTANT = 0 };
#define MIXED UINT32_MAX

typedef struct labels {
    cd_onnx_reader *r;
    const CdOnnx__GraphProto *g;
    cd_onnx_map of; /* name -> label */
    /* name -> label of the second operand of the product that it was made from, by element-wise
     * operators and Softmax */
    cd_onnx_map second;
    bool *data; /* (n_input) */
} labels;

/* Operators whose first operand is data, and whose other operands are weights or absent. A new
 * operator of this kind belongs here. */
static const char *const heads[] = {"Conv",
                                    "ConvTranspose",
                                    "ConvInteger",
                                    "DeformConv",
                                    "QLinearConv",
                                    "Gemm",
                                    "MatMul",
                                    "MatMulInteger",
                                    "QLinearMatMul",
                                    "Einsum",
                                    "BatchNormalization",
                                    "InstanceNormalization",
                                    "GroupNormalization",
                                    "LayerNormalization",
                                    "RMSNormalization",
                                    "SimplifiedLayerNormalization",
                                    "LSTM",
                                    "GRU",
                                    "RNN",
                                    "PRelu",
                                    "MaxPool",
                                    "AveragePool",
                                    "LpPool",
                                    "GlobalAveragePool",
                                    "GlobalMaxPool",
                                    "GlobalLpPool",
                                    "MaxRoiPool",
                                    "RoiAlign",
                                    "Softmax",
                                    "LogSoftmax",
                                    "Hardmax",
                                    "LRN",
                                    "LpNormalization",
                                    "MeanVarianceNormalization",
                                    "Resize",
                                    "Upsample",
                                    "GridSample",
                                    "ArgMax",
                                    "TopK",
                                    "DepthToSpace",
                                    "SpaceToDepth",
                                    "FusedMatMul",
                                    "FusedConv",
                                    "FusedGemm",
                                    "MatMulNBits",
                                    "RotaryEmbedding"};
/* Operators whose first operands are all data: queries, keys and values, what is skipped. */
static const struct {
    const char *op;
    size_t n;
} all_data[] = {{"Attention", 1},
                {"MultiHeadAttention", 3},
                {"GroupQueryAttention", 5},
                {"PackedMultiHeadAttention", 3},
                {"SkipLayerNormalization", 2},
                {"SkipSimplifiedLayerNormalization", 2},
                {"LinearAttention", 3}};
/* What a score goes through between its product and Softmax, and a product's operand before it. */
static const char *const carriers[] = {
    "Mul",  "Div",  "Add",       "Sub",      "Where",   "Cast",   "Reshape", "Softmax",
    "Clip", "Tanh", "Transpose", "Identity", "Dropout", "Expand", "Squeeze", "Unsqueeze"};

#define IS_IN(op, list) is_in(op, list, sizeof(list) / sizeof *(list))
static bool is_in(const char *op, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(list[i], op)) return true;
    return false;
}

static uint32_t found(const cd_onnx_map *m, const CdOnnx__NodeProto *n, size_t k) {
    const uint32_t *l = k < n->n_input ? cd_onnx_map_find(m, cd_onnx_text(n->input[k])) : NULL;
    return l ? *l : CONSTANT; /* initializers, and what is left out */
}

static void mark(labels *m, uint32_t l) {
    if (l != CONSTANT && l != MIXED) m->data[l - 1] = true;
}

static uint32_t combined(const labels *m, const CdOnnx__NodeProto *n) {
    uint32_t l = CONSTANT;
    for (size_t k = 0; k < n->n_input; k++) {
        const uint32_t x = found(&m->of, n, k);
        if (x != CONSTANT) l = l == CONSTANT || l == x ? x : MIXED;
    }
    return l;
}

static const CdOnnx__TensorShapeProto *shape_of(const labels *m, uint32_t l) {
    if (l == CONSTANT || l == MIXED) return NULL;
    const CdOnnx__TypeProto *t = m->g->input[l - 1]->type;
    return t && t->value_case == CD_ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? t->tensor_type->shape
                                                                        : NULL;
}

/* The second operand of a product of matrices: a weight has two dimensions, and those with more
 * begin with the number of experts. What begins as the first operand does, or has four dimensions,
 * is data. */
static bool is_data_by_shape(const labels *m, uint32_t first, uint32_t second) {
    const CdOnnx__TensorShapeProto *a = shape_of(m, first), *b = shape_of(m, second);
    if (!b || b->n_dim < 3) return false;
    if (b->n_dim > 3 || !a || !a->n_dim) return b->n_dim > 3;
    return a->n_dim == b->n_dim && a->dim[0]->dim_value == b->dim[0]->dim_value;
}

/* Does the second term of an equation begin with the letter of the first one's batch, and the
 * result, too? */
static bool is_data_by_equation(const CdOnnx__NodeProto *n) {
    for (size_t k = 0; k < n->n_attribute; k++) {
        const CdOnnx__AttributeProto *a = n->attribute[k];
        if (strcmp(cd_onnx_text(a->name), "equation") != 0 || !a->has_s || !a->s.len) continue;
        const char *s = (const char *)a->s.data, *comma = memchr(s, ',', a->s.len),
                   *end = s + a->s.len;
        while (comma && ++comma < end && *comma == ' ') {
        }
        while (s < end && *s == ' ') s++;
        return comma && comma < end && s < end && *s == *comma;
    }
    return false;
}

/* A product of two tensors: where its first operand is a softmax of scores, it is attention, and
 * what stood behind the scores is data (keys), as is its own second operand (values). */
static void product(labels *m, const CdOnnx__NodeProto *n, bool einsum) {
    const uint32_t first = found(&m->of, n, 0), second = found(&m->of, n, 1),
                   keys = found(&m->second, n, 0);
    const bool scores = keys != CONSTANT && (keys & 1U << 31);
    if (scores) mark(m, keys & ~(1U << 31));
    if (scores || (einsum ? is_data_by_equation(n) : is_data_by_shape(m, first, second)))
        mark(m, second);
}

/* Which label its second operand has goes on with the result: bit 31 says that a Softmax was
 * passed. */
static cdmpp_status carry(labels *m, const CdOnnx__NodeProto *n, bool made, cdmpp_err *err) {
    const char *op = cd_onnx_text(n->op_type);
    uint32_t l = made ? found(&m->of, n, 1) : CONSTANT;
    bool old;
    for (size_t k = 0; !made && l == CONSTANT && k < n->n_input && IS_IN(op, carriers); k++)
        l = found(&m->second, n, k);
    if (l == CONSTANT || l == MIXED || !n->n_output) return CDMPP_OK;
    return cd_onnx_map_put(&m->second, m->r->a, cd_onnx_text(n->output[0]),
                           !strcmp(op, "Softmax") ? l | 1U << 31 : l, &old, err);
}

/* Marks inputs that reach a first operand, then labels the node's results. */
static cdmpp_status node(labels *m, const CdOnnx__NodeProto *n, cdmpp_err *err) {
    const char *op = cd_onnx_text(n->op_type);
    const bool einsum = !strcmp(op, "Einsum"),
               made = einsum || !strcmp(op, "MatMul") || !strcmp(op, "FusedMatMul");
    bool old;
    uint32_t l = combined(m, n);
    if (made) product(m, n, einsum);
    CD_TRY(carry(m, n, made, err));
    for (size_t i = 0; i < sizeof all_data / sizeof *all_data; i++) {
        /* com.microsoft's has weights behind its first operand */
        const bool own = cd_onnx_own_domain(n->domain) && !strcmp(op, "Attention");
        if (strcmp(all_data[i].op, op) != 0) continue;
        for (size_t k = 0; k < (own ? 3 : all_data[i].n); k++) mark(m, found(&m->of, n, k));
        l = MIXED;
    }
    if (IS_IN(op, heads)) {
        mark(m, found(&m->of, n, 0));
        l = MIXED;
    } else if (!strcmp(op, "Gather")) mark(m, found(&m->of, n, 1));
    else if (!strcmp(op, "Shape") || !strcmp(op, "Size")) l = CONSTANT;
    /* they read more than their operands */
    else if (!strcmp(op, "If") || !strcmp(op, "Loop") || !strcmp(op, "Scan")) l = MIXED;
    for (size_t k = 0; k < n->n_output; k++)
        CD_TRY(cd_onnx_map_put(&m->of, m->r->a, cd_onnx_text(n->output[k]), l, &old, err));
    return CDMPP_OK;
}

/* Rule d. */
static cdmpp_status by_use(cd_onnx_reader *r, const CdOnnx__GraphProto *g, const uint32_t *order,
                           bool *data, cdmpp_err *err) {
    labels m = {.r = r, .g = g, .data = data};
    bool old;
    CD_TRY(cd_onnx_map_put(&m.of, r->a, "", CONSTANT, &old, err));
    for (uint32_t i = 0; i < g->n_input; i++)
        CD_TRY(cd_onnx_map_put(&m.of, r->a, cd_onnx_text(g->input[i]->name), i + 1, &old, err));
    for (size_t i = 0; i < g->n_node; i++) CD_TRY(node(&m, g->node[order[i]], err));
    for (size_t i = 0; i < g->n_output; i++) {
        const uint32_t *l = cd_onnx_map_find(&m.of, cd_onnx_text(g->output[i]->name));
        if (l) mark(&m, *l);
    }
    return CDMPP_OK;
}

/* A dimension without a number, or integers: exporters do not write weights so. */
static bool is_data_by_type(const CdOnnx__ValueInfoProto *v) {
    if (!v->type || v->type->value_case != CD_ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) return true;
    const CdOnnx__TypeProto__Tensor *t = v->type->tensor_type;
    cd_dtype type;
    if (cd_graph_dtype(t->elem_type, &type) && !cd_graph_type_is_float(type)) return true;
    for (size_t k = 0; t->shape && k < t->shape->n_dim; k++)
        if (t->shape->dim[k]->value_case != CD_ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            return true;
    return false;
}

static cdmpp_status by_option(const cd_onnx_reader *r, const CdOnnx__GraphProto *g, bool *data,
                              cdmpp_err *err) {
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

/* Names of the inputs of one kind, as many as there is room for. */
static const char *names(const CdOnnx__GraphProto *g, const bool *data, bool which, char *text,
                         size_t room) {
    enum { MOST = 12 };
    size_t at = 0, n = 0;
    text[0] = 0;
    for (size_t i = 0; i < g->n_input; i++) {
        if (data[i] != which || ++n > MOST) continue;
        at += (size_t)snprintf(text + at, room - at, "%s%.30s", n > 1 ? ", " : "",
                               cd_onnx_text(g->input[i]->name));
    }
    if (n > MOST) snprintf(text + at, room - at, " and %zu more", n - MOST);
    return text;
}

/* "layer1.conv.weight", "bn/moving_mean": PyTorch's, TensorFlow's and Keras' names of parameters
 * end so. */
static bool is_parameter_name(const char *name) {
    static const char *const word[] = {"weight", "weights", "bias", "kernel", "gamma",
                                       "beta",   "scale",   "mean", "var",    "variance"};
    const char *last = name;
    for (const char *p = name; *p; p++)
        if (strchr("._/:", *p)) last = p + 1;
    return is_in(last, word, sizeof word / sizeof *word);
}

/* The names say of each input what rule d says. */
static bool names_agree(const CdOnnx__GraphProto *g, const bool *data) {
    for (size_t i = 0; i < g->n_input; i++)
        if (data[i] == is_parameter_name(cd_onnx_text(g->input[i]->name))) return false;
    return true;
}

/* A guess: the time and the memory depend on it. An only input needs none, and one that the names
 * confirm is none. */
static cdmpp_status say(cd_onnx_reader *r, const CdOnnx__GraphProto *g, const bool *data,
                        cdmpp_err *err) {
    char weights[460], inputs[460];
    const size_t n = count(data, g->n_input);
    if (g->n_input < 2 || (n < g->n_input && names_agree(g, data))) return CDMPP_OK;
    names(g, data, false, weights, sizeof weights);
    names(g, data, true, inputs, sizeof inputs);
    if (n == g->n_input)
        return cd_graph_note(r->g, err,
                             "the file has no weights, and all its inputs are taken for data: %s "
                             "(--input NAME says which are; the others are weights)",
                             inputs);
    return cd_graph_note(r->g, err,
                         "the file has no weights: taken for weights: %s; for data: %s (--input "
                         "NAME says which are data)",
                         weights, inputs);
}

/* A file with any initializer is whole: its inputs without one are data. Only files without weights
 * need rule d. */
cdmpp_status cd_onnx_roles(cd_onnx_reader *r, const CdOnnx__GraphProto *g, const uint32_t *order,
                           bool *data, cdmpp_err *err) {
    cd_onnx_map init = {0};
    bool old;
    if (r->o->n_input) return by_option(r, g, data, err);
    for (size_t i = 0; i < g->n_initializer; i++)
        CD_TRY(cd_onnx_map_put(&init, r->a, cd_onnx_text(g->initializer[i]->name), 0, &old, err));
    for (size_t i = 0; i < g->n_sparse_initializer; i++)
        if (g->sparse_initializer[i]->values)
            CD_TRY(cd_onnx_map_put(
                &init, r->a, cd_onnx_text(g->sparse_initializer[i]->values->name), 0, &old, err));
    const bool whole = g->n_initializer + g->n_sparse_initializer > 0;
    for (size_t i = 0; i < g->n_input; i++)
        data[i] = whole ? !cd_onnx_map_find(&init, cd_onnx_text(g->input[i]->name))
                        : is_data_by_type(g->input[i]);
    if (!whole) CD_TRY(by_use(r, g, order, data, err));
    if (!whole && !count(data, g->n_input)) memset(data, 1, g->n_input * sizeof *data);
    return whole ? CDMPP_OK : say(r, g, data, err);
}
