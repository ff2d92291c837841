/* The names that rules use for operators of a network (TVM's, not ONNX's), and their attributes as
 * texts, because rules compare texts. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "predictor/partition/offload/offload_match_internal.h"

/* ---- types ---- */

/* TVM's names where they are not ONNX's in small letters. */
static const char *const name[][2] = {
    {"Gemm", "dense"},
    {"Sub", "subtract"},
    {"Mul", "multiply"},
    {"Div", "divide"},
    {"Pow", "power"},
    {"Neg", "negative"},
    {"MaxPool", "max_pool2d"},
    {"AveragePool", "avg_pool2d"},
    {"GlobalAveragePool", "global_avg_pool2d"},
    {"GlobalMaxPool", "global_max_pool2d"},
    {"BatchNormalization", "batch_norm"},
    {"LayerNormalization", "layer_norm"},
    {"InstanceNormalization", "instance_norm"},
    {"GroupNormalization", "group_norm"},
    {"LRN", "lrn"},
    {"Concat", "concatenate"},
    {"Slice", "strided_slice"},
    {"Gather", "take"},
    {"Upsample", "resize"},
    {"ReduceMean", "mean"},
    {"ReduceSum", "sum"},
    {"ReduceMax", "max"},
    {"ReduceMin", "min"},
    {"ReduceProd", "prod"},
    {"ArgMax", "argmax"},
    {"ArgMin", "argmin"},
    {"PRelu", "prelu"},
    {"Expand", "broadcast_to"},
    {"LSTM", "lstm"},
    {"GRU", "gru"},
    {"RNN", "rnn"},
    {"TopK", "topk"},
    {"Max", "maximum"},
    {"Min", "minimum"},
    {"QuantizeLinear", "quantize"},
    {"DequantizeLinear", "dequantize"},
    {"And", "logical_and"},
    {"Or", "logical_or"},
    {"Not", "logical_not"},
    {"Trilu", "trilu"},
};

static const cd_graph_tensor *operand(const cd_graph *g, const cd_graph_node *n, uint32_t k) {
    return k < n->n_in && n->in[k] != CD_GRAPH_NONE ? &g->tensor[n->in[k]] : NULL;
}

static bool is_window(const cd_graph_node *n) {
    return !strcmp(n->op, "Conv") || !strcmp(n->op, "ConvTranspose") ||
           !strcmp(n->op, "ConvInteger") || !strcmp(n->op, "QLinearConv");
}

static bool is_product(const cd_graph_node *n) {
    return !strcmp(n->op, "Gemm") || !strcmp(n->op, "MatMul") || !strcmp(n->op, "MatMulInteger") ||
           !strcmp(n->op, "QLinearMatMul");
}

static bool is_quantized(const cd_graph_node *n) { return !strncmp(n->op, "QLinear", 7); }

/* QLinearConv and QLinearMatMul have a scale and a zero point behind each tensor: x, x_scale,
 * x_zero_point, w, ... */
static const cd_graph_tensor *second_factor(const cd_graph *g, const cd_graph_node *n) {
    return operand(g, n, is_quantized(n) ? 3 : 1);
}

/* The third operand of ConvInteger and MatMulInteger is a zero point. */
static bool has_bias(const cd_graph *g, const cd_graph_node *n) {
    if (!strcmp(n->op, "QLinearConv")) return operand(g, n, 8) != NULL;
    return (!strcmp(n->op, "Conv") || !strcmp(n->op, "ConvTranspose") || !strcmp(n->op, "Gemm")) &&
           operand(g, n, 2);
}

static bool is_weight(const cd_graph_tensor *t) { return t && cd_graph_tensor_is_static(t); }

bool cd_offload_is_mac(const cd_graph_node *n) {
    return is_window(n) || is_product(n) || !strcmp(n->op, "LSTM") || !strcmp(n->op, "GRU") ||
           !strcmp(n->op, "RNN") || !strcmp(n->op, "Einsum");
}

/* HardSwish: hard_swish. */
static void snake(const char *op, char *to, size_t room) {
    size_t k = 0;
    for (const char *p = op; *p && k + 3 < room; p++) {
        if (isupper((unsigned char)*p) && p > op &&
            (islower((unsigned char)p[-1]) || isdigit((unsigned char)p[-1])))
            to[k++] = '_';
        to[k++] = (char)tolower((unsigned char)*p);
    }
    to[k] = 0;
}

/* ONNX has one Conv and one MatMul; TVM's names depend on the rank of the weights and on whether
 * the second operand is a weight. */
void cd_offload_op_type(const cd_graph *g, const cd_graph_node *n, char *to, size_t room) {
    const cd_graph_tensor *w = second_factor(g, n);
    if (is_window(n) && w) {
        snprintf(to, room, "conv%ud%s", w->shape.rank > 2 ? w->shape.rank - 2 : 1,
                 n->op[4] == 'T' ? "_transpose" : "");
        return;
    }
    if (!strncmp(n->op, "MatMul", 6)) {
        snprintf(to, room, "%s", is_weight(w) && w->shape.rank == 2 ? "dense" : "batch_matmul");
        return;
    }
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (!strcmp(name[i][0], n->op)) {
            snprintf(to, room, "%s", name[i][1]);
            return;
        }
    snake(n->op, to, room);
}

/* ---- attributes ---- */

void cd_offload_put_attr(cd_offload_attrs *a, const char *key, const char *value) {
    for (uint32_t i = 0; i < a->n; i++)
        if (!strcmp(a->v[i].key, key)) return; /* ours before ONNX's */
    if (a->n == CD_OFFLOAD_ATTRS) return;
    const char *k = cd_str_dup(a->arena, (cd_str){key, strlen(key)}),
               *v = cd_str_dup(a->arena, (cd_str){value, strlen(value)});
    a->oom = a->oom || !k || !v;
    if (k && v) a->v[a->n++] = (cd_offload_attr){k, v};
}

void cd_offload_put_number(cd_offload_attrs *a, const char *key, double v) {
    char text[40];
    snprintf(text, sizeof text, "%.17g", v);
    if (v == (double)(int64_t)v) snprintf(text, sizeof text, "%lld", (long long)v);
    cd_offload_put_attr(a, key, text);
}

static void list_text(char *to, size_t room, const int64_t *v, uint32_t n) {
    size_t k = 0;
    to[0] = 0;
    for (uint32_t i = 0; i < n && k + 24 < room; i++)
        k += (size_t)snprintf(to + k, room - k, "%s%lld", i ? "x" : "", (long long)v[i]);
}

/* Each dimension is listed by number (d0), and at ranks 2 to 4 also by the letter that TVM's
 * layouts use for it. */
void cd_offload_put_tensor(cd_offload_attrs *a, const cd_graph_tensor *t) {
    static const char *const letter[5][4] = {
        {0}, {0}, {"n", "c"}, {"n", "c", "w"}, {"n", "c", "h", "w"}};
    static const char *const digit[CD_GRAPH_MAX_RANK] = {"d0", "d1", "d2", "d3",
                                                         "d4", "d5", "d6", "d7"};
    char text[200];
    const uint32_t rank = t->shape.rank;
    const double elements = (double)cd_graph_shape_elements(&t->shape);
    cd_expr_dtype_format(t->dtype, text, sizeof text);
    cd_offload_put_attr(a, "dtype", text);
    list_text(text, sizeof text, t->shape.dim, rank);
    cd_offload_put_attr(a, "shape", text);
    cd_offload_put_number(a, "rank", rank);
    for (uint32_t d = 0; d < rank; d++) cd_offload_put_number(a, digit[d], (double)t->shape.dim[d]);
    for (uint32_t d = 0; d < rank && rank <= 4 && letter[rank][0]; d++)
        cd_offload_put_number(a, letter[rank][d], (double)t->shape.dim[d]);
    cd_offload_put_number(a, "elements", elements);
    cd_offload_put_number(a, "bytes", elements * (double)cd_expr_dtype_bytes(t->dtype));
}

/* The largest as `key`, of two dimensions each as key_h, key_w. */
static void put_each(cd_offload_attrs *a, const char *key, const cd_graph_attr *v, uint32_t n) {
    static const char *const end[] = {"_h", "_w"};
    char text[40];
    int64_t most = 0;
    if (!v || v->kind != CD_GRAPH_ATTR_INTS) return;
    for (uint32_t i = 0; i < v->n; i++) most = v->ints[i] > most ? v->ints[i] : most;
    cd_offload_put_number(a, key, (double)most);
    for (uint32_t i = 0; n == 2 && i < 2 && v->n >= 2; i++) {
        snprintf(text, sizeof text, "%s%s", key, end[i]);
        cd_offload_put_number(a, text, (double)v->ints[i]);
    }
}

/* Pooling has a window too, but no groups, weights or bias. */
static void put_window(cd_offload_attrs *a, const cd_graph *g, const cd_graph_node *n) {
    const cd_graph_attr *kernel = cd_graph_node_attr(n, "kernel_shape");
    const uint32_t rank = kernel ? kernel->n : 0;
    put_each(a, "kernel", kernel, rank);
    put_each(a, "stride", cd_graph_node_attr(n, "strides"), rank);
    put_each(a, "dilation", cd_graph_node_attr(n, "dilations"), rank);
    put_each(a, "pad", cd_graph_node_attr(n, "pads"), 0);
    const cd_graph_tensor *x = operand(g, n, 0);
    const int64_t in_c = x && x->shape.rank > 1 ? x->shape.dim[1] : 0,
                  groups = cd_graph_node_int(n, "group", 1);
    if (!is_window(n)) return;
    cd_offload_put_number(a, "groups", (double)groups);
    cd_offload_put_number(a, "in_c", (double)in_c);
    cd_offload_put_number(a, "depthwise", groups > 1 && groups == in_c);
    cd_offload_put_number(a, "bias", has_bias(g, n));
}

/* [M,K] x [K,N], of the last two dimensions. */
static void put_product(cd_offload_attrs *a, const cd_graph *g, const cd_graph_node *n) {
    const cd_graph_tensor *x = operand(g, n, 0), *w = second_factor(g, n),
                          *y = &g->tensor[n->out[0]];
    if (!x || !w || !x->shape.rank || !y->shape.rank) return;
    const bool across = cd_graph_node_int(n, "transA", 0) && x->shape.rank > 1;
    const int64_t cols = y->shape.dim[y->shape.rank - 1],
                  rows = y->shape.rank > 1 ? y->shape.dim[y->shape.rank - 2] : 1;
    cd_offload_put_number(a, "m", (double)rows);
    cd_offload_put_number(a, "n", (double)cols);
    cd_offload_put_number(a, "k", (double)x->shape.dim[x->shape.rank - (across ? 2 : 1)]);
    cd_offload_put_number(a, "weights", is_weight(w));
    cd_offload_put_number(a, "bias", has_bias(g, n));
}

static void put_onnx(cd_offload_attrs *a, const cd_graph_attr *v) {
    char text[200];
    switch (v->kind) {
    case CD_GRAPH_ATTR_INT: cd_offload_put_number(a, v->name, (double)v->i); break;
    case CD_GRAPH_ATTR_FLOAT: cd_offload_put_number(a, v->name, v->f); break;
    case CD_GRAPH_ATTR_STR: cd_offload_put_attr(a, v->name, v->s ? v->s : ""); break;
    case CD_GRAPH_ATTR_INTS:
        list_text(text, sizeof text, v->ints, v->n);
        cd_offload_put_attr(a, v->name, text);
        break;
    case CD_GRAPH_ATTR_FLOATS: break;
    }
}

void cd_offload_put_node(cd_offload_attrs *a, const cd_graph *g, const cd_graph_node *n) {
    char text[40];
    const cd_graph_tensor *x = operand(g, n, 0);
    cd_offload_put_number(a, "mac", cd_offload_is_mac(n));
    cd_offload_put_number(a, "flop", n->flop);
    if (is_product(n) && n->n_out) put_product(a, g, n);
    if (n->n_out) cd_offload_put_tensor(a, &g->tensor[n->out[0]]);
    if (x) {
        cd_expr_dtype_format(x->dtype, text, sizeof text);
        cd_offload_put_attr(a, "from", text);
    }
    if (is_window(n) || strstr(n->op, "Pool")) put_window(a, g, n);
    for (uint32_t i = 0; i < n->n_attr; i++) put_onnx(a, &n->attr[i]);
}
