/* Convolutions, matrix products, pooling, normalisation. Each becomes the nodes that TVM's ONNX
 * frontend and its passes make of it: a bias is an add of its own, normalisations are reductions
 * and element-wise nodes. */
#include <string.h>

#include "profiler/network/fusion/fuse_import_internal.h"

static void ints(const cd_fuse_importer *m, const char *name, int64_t *to, uint32_t n,
                 int64_t absent) {
    const cd_graph_attr *a = cd_graph_node_attr(m->n, name);
    for (uint32_t i = 0; i < n; i++)
        to[i] = a && a->kind == CD_GRAPH_ATTR_INTS && i < a->n ? a->ints[i] : absent;
}

/* Window of a convolution or pooling over n dimensions. */
static bool window(cd_fuse_importer *m, cd_fuse_attr *a, uint32_t n) {
    int64_t pads[6];
    if (n < 1 || n > 3) {
        m->why = "only 1 to 3 spatial dimensions have a compute definition";
        return false;
    }
    a->n = n;
    ints(m, "kernel_shape", a->kernel, n, 1);
    ints(m, "strides", a->stride, n, 1);
    ints(m, "dilations", a->dilation, n, 1);
    ints(m, "pads", pads, 2 * n, 0);
    memcpy(a->before, pads, n * sizeof *pads);
    memcpy(a->after, pads + n, n * sizeof *pads);
    return true;
}

/* A Pad node in front becomes the window's own padding; an average then counts the zeros, as it
 * would have. */
static uint32_t take_padding(cd_fuse_importer *m, uint32_t x, cd_fuse_attr *a, bool pool) {
    const cd_fuse_node *p = &m->f->node[x];
    bool own = false;
    for (uint32_t d = 0; d < a->n; d++) own = own || a->before[d] || a->after[d];
    if (p->op != CD_FUSE_OP_PAD || p->a.mode || p->a.p != 0 || cd_fuse_import_is_shared(m, x) ||
        (pool && (own || a->is_max || a->ceil)))
        return x;
    for (uint32_t d = 0; d < a->n + 2; d++)
        if (p->a.before[d] < 0 || p->a.after[d] < 0 || (d < 2 && (p->a.before[d] || p->a.after[d])))
            return x;
    for (uint32_t d = 0; d < a->n; d++) {
        a->before[d] += p->a.before[d + 2];
        a->after[d] += p->a.after[d + 2];
    }
    a->include_pad = true;
    return p->in[0];
}

/* x + bias of each channel, operand k. */
static uint32_t biased(cd_fuse_importer *m, uint32_t x, uint32_t k) {
    if (!cd_fuse_import_has(m, k)) return x;
    return cd_fuse_binary(
        m->f, CD_FUSE_OP_ADD, x,
        cd_fuse_import_channels(m, cd_fuse_import_input(m, k), cd_fuse_import_shape(m, x)->rank));
}

uint32_t cd_fuse_import_conv(cd_fuse_importer *m, cd_fuse_op op, uint32_t x, uint32_t w) {
    uint32_t in[2] = {x, w};
    cd_fuse_attr a = {.groups = cd_graph_node_int(m->n, "group", 1)};
    if (!window(m, &a, cd_fuse_import_shape(m, in[0])->rank - 2)) return 0;
    memcpy(a.kernel, cd_fuse_import_shape(m, in[1])->dim + 2, a.n * sizeof *a.kernel);
    if (op == CD_FUSE_OP_CONVT) ints(m, "output_padding", a.v, a.n, 0);
    else in[0] = take_padding(m, in[0], &a, false);
    return cd_fuse_add_node(m->f, op, m->f->node[in[0]].dtype, cd_fuse_import_result_shape(m), in,
                            2, &a);
}

static void convolution(cd_fuse_importer *m, cd_fuse_op op) {
    const uint32_t y =
        cd_fuse_import_conv(m, op, cd_fuse_import_input(m, 0), cd_fuse_import_input(m, 1));
    if (!m->why) cd_fuse_import_output(m, 0, biased(m, y, 2));
}

static void conv(cd_fuse_importer *m) { convolution(m, CD_FUSE_OP_CONV); }

static void conv_transpose(cd_fuse_importer *m) { convolution(m, CD_FUSE_OP_CONVT); }

static void pool(cd_fuse_importer *m, bool is_max) {
    uint32_t x = cd_fuse_import_input(m, 0);
    cd_fuse_attr a = {.is_max = is_max,
                      .ceil = cd_graph_node_int(m->n, "ceil_mode", 0) != 0,
                      .include_pad = cd_graph_node_int(m->n, "count_include_pad", 0) != 0};
    if (cd_fuse_import_is_used(m, 1))
        m->why = "the indices of a maximum have no compute definition";
    if (m->why || !window(m, &a, cd_fuse_import_shape(m, x)->rank - 2)) return;
    x = take_padding(m, x, &a, true);
    cd_fuse_import_output(m, 0,
                          cd_fuse_add_node(m->f, CD_FUSE_OP_POOL, m->f->node[x].dtype,
                                           cd_fuse_import_result_shape(m), &x, 1, &a));
}

/* The gradient needs the forward window: its padding is not folded away. */
static void pool_grad(cd_fuse_importer *m, bool is_max) {
    /* an average reads no x */
    const uint32_t dy = cd_fuse_import_input(m, 1);
    const uint32_t in[2] = {is_max ? cd_fuse_import_input(m, 0) : dy, dy};
    cd_fuse_attr a = {.is_max = is_max,
                      .ceil = cd_graph_node_int(m->n, "ceil_mode", 0) != 0,
                      .include_pad = cd_graph_node_int(m->n, "count_include_pad", 0) != 0};
    if (window(m, &a, cd_fuse_import_shape(m, dy)->rank - 2))
        cd_fuse_import_output(m, 0,
                              cd_fuse_add_node(m->f, CD_FUSE_OP_POOLGRAD, m->f->node[dy].dtype,
                                               cd_fuse_import_result_shape(m), in, 2, &a));
}

static void max_pool_grad(cd_fuse_importer *m) { pool_grad(m, true); }
static void average_pool_grad(cd_fuse_importer *m) { pool_grad(m, false); }

static void max_pool(cd_fuse_importer *m) { pool(m, true); }
static void average_pool(cd_fuse_importer *m) { pool(m, false); }

static void global_pool(cd_fuse_importer *m, bool is_max) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    const cd_fuse_attr a = {.n = cd_fuse_import_shape(m, x)->rank - 2, .is_max = is_max};
    if (a.n < 1 || a.n > 3) m->why = "only 1 to 3 spatial dimensions have a compute definition";
    else
        cd_fuse_import_output(m, 0,
                              cd_fuse_add_node(m->f, CD_FUSE_OP_ADAPTIVE, m->f->node[x].dtype,
                                               cd_fuse_import_result_shape(m), &x, 1, &a));
}

static void global_max(cd_fuse_importer *m) { global_pool(m, true); }
static void global_average(cd_fuse_importer *m) { global_pool(m, false); }

static uint32_t eps_of(cd_fuse_importer *m, uint32_t like) {
    return cd_fuse_const(m->f, m->f->node[like].dtype, cd_graph_node_float(m->n, "epsilon", 1e-5));
}

/* x*s + t with s = gamma/sqrt(var + eps), t = beta - mean*s: weights of weights. */
static void batch_norm(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0), rank = cd_fuse_import_shape(m, x)->rank,
                   var = cd_fuse_import_input(m, 4);
    if (cd_graph_node_int(m->n, "training_mode", 0)) {
        m->why = "batch norm that trains";
        return;
    }
    const uint32_t root = cd_fuse_unary(
        m->f, CD_FUSE_OP_SQRT, cd_fuse_binary(m->f, CD_FUSE_OP_ADD, var, eps_of(m, var)), 0, 0);
    const uint32_t s = cd_fuse_binary(m->f, CD_FUSE_OP_DIV, cd_fuse_import_input(m, 1), root);
    const uint32_t t =
        cd_fuse_binary(m->f, CD_FUSE_OP_SUB, cd_fuse_import_input(m, 2),
                       cd_fuse_binary(m->f, CD_FUSE_OP_MUL, cd_fuse_import_input(m, 3), s));
    const uint32_t y = cd_fuse_import_scale(m, x, cd_fuse_import_channels(m, s, rank));
    cd_fuse_import_output(m, 0, cd_fuse_import_shift(m, y, cd_fuse_import_channels(m, t, rank)));
}

/* (x - mean)/sqrt(var + eps) over some dimensions; the variance subtracts for itself, as TVM's
 * does, and is one task. */
static uint32_t normal(cd_fuse_importer *m, uint32_t x, const int64_t *axis, uint32_t n) {
    cd_fuse_graph *f = m->f;
    const uint32_t mu = cd_fuse_reduce(f, CD_FUSE_REDUCE_MEAN, x, axis, n, true);
    const uint32_t d = cd_fuse_binary(f, CD_FUSE_OP_SUB, x, mu);
    const uint32_t var = cd_fuse_reduce(f, CD_FUSE_REDUCE_MEAN,
                                        cd_fuse_binary(f, CD_FUSE_OP_MUL, d, d), axis, n, true);
    const uint32_t root = cd_fuse_unary(f, CD_FUSE_OP_SQRT,
                                        cd_fuse_binary(f, CD_FUSE_OP_ADD, var, eps_of(m, x)), 0, 0);
    return cd_fuse_binary(f, CD_FUSE_OP_DIV, cd_fuse_binary(f, CD_FUSE_OP_SUB, x, mu), root);
}

static void layer_norm(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0), rank = cd_fuse_import_shape(m, x)->rank;
    int64_t axis[CD_GRAPH_MAX_RANK];
    uint32_t n = 0;
    for (int64_t d =
             cd_fuse_import_axis(cd_fuse_import_shape(m, x), cd_graph_node_int(m->n, "axis", -1));
         d >= 0 && d < rank; d++)
        axis[n++] = d;
    uint32_t y =
        cd_fuse_binary(m->f, CD_FUSE_OP_MUL, normal(m, x, axis, n), cd_fuse_import_input(m, 1));
    if (cd_fuse_import_has(m, 2))
        y = cd_fuse_binary(m->f, CD_FUSE_OP_ADD, y, cd_fuse_import_input(m, 2));
    cd_fuse_import_output(m, 0, y);
}

/* Dimensions from `from` on. */
static uint32_t rest(int64_t *axis, uint32_t from, uint32_t rank) {
    for (uint32_t d = from; d < rank; d++) axis[d - from] = d;
    return rank > from ? rank - from : 0;
}

static uint32_t affine(cd_fuse_importer *m, uint32_t x) {
    const uint32_t rank = cd_fuse_import_shape(m, x)->rank;
    const uint32_t y = cd_fuse_binary(m->f, CD_FUSE_OP_MUL, x,
                                      cd_fuse_import_channels(m, cd_fuse_import_input(m, 1), rank));
    return cd_fuse_binary(m->f, CD_FUSE_OP_ADD, y,
                          cd_fuse_import_channels(m, cd_fuse_import_input(m, 2), rank));
}

static void instance_norm(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    int64_t axis[CD_GRAPH_MAX_RANK];
    const uint32_t n = rest(axis, 2, cd_fuse_import_shape(m, x)->rank);
    cd_fuse_import_output(m, 0, affine(m, normal(m, x, axis, n)));
}

static void group_norm(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    const cd_graph_shape s = *cd_fuse_import_shape(m, x);
    const int64_t groups = cd_graph_node_int(m->n, "num_groups", 1), axis[1] = {2};
    if (cd_graph_shape_elements(cd_fuse_import_shape(m, cd_fuse_import_input(m, 1))) != s.dim[1]) {
        m->why = "scales of groups, not of channels";
        return;
    }
    const cd_graph_shape by = {
        3, {s.dim[0], groups, cd_graph_shape_elements(&s) / (s.dim[0] * groups)}};
    cd_fuse_import_output(
        m, 0,
        affine(m, cd_fuse_reshape(m->f, normal(m, cd_fuse_reshape(m->f, x, &by), axis, 1), &s)));
}

/* Up to opset 12 softmax is of everything from `axis` on. */
static void softmax_of(cd_fuse_importer *m, cd_fuse_op op) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    const cd_graph_shape s = *cd_fuse_import_shape(m, x);
    const bool flat = m->g->opset < 13;
    const int64_t axis = cd_fuse_import_axis(&s, cd_graph_node_int(m->n, "axis", flat ? 1 : -1));
    if (axis + 1 == s.rank || !flat) {
        cd_fuse_import_output(m, 0, cd_fuse_softmax(m->f, op, x, axis));
        return;
    }
    cd_graph_shape two = {2, {1, 1}};
    for (uint32_t d = 0; d < s.rank; d++) two.dim[d >= axis] *= s.dim[d];
    cd_fuse_import_output(
        m, 0,
        cd_fuse_reshape(m->f, cd_fuse_softmax(m->f, op, cd_fuse_reshape(m->f, x, &two), 1), &s));
}

static void softmax(cd_fuse_importer *m) { softmax_of(m, CD_FUSE_OP_SOFTMAX); }
static void log_softmax(cd_fuse_importer *m) { softmax_of(m, CD_FUSE_OP_LOGSOFTMAX); }

static void lrn(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    const cd_fuse_attr a = {.v = {cd_graph_node_int(m->n, "size", 1)},
                            .p = cd_graph_node_float(m->n, "alpha", 1e-4),
                            .q = cd_graph_node_float(m->n, "beta", 0.75),
                            .s = cd_graph_node_float(m->n, "bias", 1)};
    cd_fuse_import_output(m, 0,
                          cd_fuse_add_node(m->f, CD_FUSE_OP_LRN, m->f->node[x].dtype,
                                           cd_fuse_import_result_shape(m), &x, 1, &a));
}

/* ---- products ---- */

static uint32_t flip(cd_fuse_importer *m, uint32_t x) {
    static const int64_t two[] = {1, 0}, three[] = {0, 2, 1};
    return cd_fuse_transpose(m->f, x, cd_fuse_import_shape(m, x)->rank == 2 ? two : three);
}

/* In training an operand whose last two dimensions a transpose has swapped is used in place, with
 * the flag *how: a tensor that is new in every iteration would else be moved in every one. */
static uint32_t as_it_lies(cd_fuse_importer *m, uint32_t x, int bit, int *how) {
    const cd_fuse_node *n = &m->f->node[x];
    if (!m->g->training || n->is_const || n->op != CD_FUSE_OP_TRANSPOSE || n->shape.rank < 2)
        return x;
    for (uint32_t d = 0; d < n->shape.rank; d++) {
        const uint32_t rank = n->shape.rank, from = d + 2 < rank    ? d
                                                    : d + 2 == rank ? rank - 1
                                                                    : rank - 2;
        if (n->a.v[d] != from) return x;
    }
    *how ^= bit;
    return n->in[0];
}

/* A constant is turned once, before. */
static uint32_t product(cd_fuse_importer *m, uint32_t x, uint32_t y, int how) {
    if (how & CD_FUSE_TRANSPOSED_X && m->f->node[x].is_const)
        x = flip(m, x), how &= ~CD_FUSE_TRANSPOSED_X;
    if (how & CD_FUSE_TRANSPOSED_Y && m->f->node[y].is_const)
        y = flip(m, y), how &= ~CD_FUSE_TRANSPOSED_Y;
    return cd_fuse_product(m->f, x, y, how);
}

static uint32_t times(cd_fuse_importer *m, uint32_t x, double v) {
    return v == 1 ? x
                  : cd_fuse_binary(m->f, CD_FUSE_OP_MUL, x,
                                   cd_fuse_const(m->f, m->f->node[x].dtype, v));
}

/* At inference TVM transposes weights beforehand, and other operands with operators of their
 * own. */
static uint32_t turned_product(cd_fuse_importer *m, double alpha) {
    uint32_t a = cd_fuse_import_input(m, 0), b = cd_fuse_import_input(m, 1);
    if (cd_graph_node_int(m->n, "transA", 0)) a = flip(m, a);
    if (!cd_graph_node_int(m->n, "transB", 0)) b = flip(m, b);
    a = times(m, a, alpha);
    return cd_fuse_dense(m->f, a, b);
}

static uint32_t lying_product(cd_fuse_importer *m, double alpha) {
    int how = (cd_graph_node_int(m->n, "transA", 0) ? CD_FUSE_TRANSPOSED_X : 0) |
              (cd_graph_node_int(m->n, "transB", 0) ? 0 : CD_FUSE_TRANSPOSED_Y);
    const uint32_t a = as_it_lies(m, cd_fuse_import_input(m, 0), CD_FUSE_TRANSPOSED_X, &how),
                   b = as_it_lies(m, cd_fuse_import_input(m, 1), CD_FUSE_TRANSPOSED_Y, &how);
    return product(m, times(m, a, alpha), b, how);
}

static void gemm(cd_fuse_importer *m) {
    const double alpha = cd_graph_node_float(m->n, "alpha", 1);
    uint32_t y = m->g->training ? lying_product(m, alpha) : turned_product(m, alpha);
    if (cd_fuse_import_has(m, 2))
        y = cd_fuse_binary(
            m->f, CD_FUSE_OP_ADD, y,
            times(m, cd_fuse_import_input(m, 2), cd_graph_node_float(m->n, "beta", 1)));
    cd_fuse_import_output(m, 0, y);
}

/* [.., M, K] as [rows, K]. */
static uint32_t rows(cd_fuse_importer *m, uint32_t x) {
    const cd_graph_shape s = *cd_fuse_import_shape(m, x);
    const int64_t k = s.dim[s.rank - 1];
    const cd_graph_shape two = {2, {k ? cd_graph_shape_elements(&s) / k : 0, k}};
    return cd_fuse_reshape(m->f, x, &two);
}

/* Batches of `lead` in front, as one dimension. */
static uint32_t batches(cd_fuse_importer *m, uint32_t x, const cd_graph_shape *lead) {
    const cd_graph_shape s = *cd_fuse_import_shape(m, x);
    cd_graph_shape full = *lead, three = {3, {1, s.dim[s.rank - 2], s.dim[s.rank - 1]}};
    for (uint32_t d = 0; d < lead->rank; d++) three.dim[0] *= lead->dim[d];
    full.dim[full.rank++] = s.dim[s.rank - 2];
    full.dim[full.rank++] = s.dim[s.rank - 1];
    if (cd_graph_shape_elements(&s) != cd_graph_shape_elements(&full))
        x = cd_fuse_expand(m->f, x, &full);
    return cd_fuse_reshape(m->f, x, &three);
}

static uint32_t at_least_two(cd_fuse_importer *m, uint32_t x, bool row) {
    const cd_graph_shape s = *cd_fuse_import_shape(m, x);
    const cd_graph_shape two = {2, {row ? 1 : s.dim[0], row ? s.dim[0] : 1}};
    return s.rank == 1 ? cd_fuse_reshape(m->f, x, &two) : x;
}

/* Dimensions in front of both operands' matrices, broadcast. */
static cd_graph_shape lead_of(const cd_graph_shape *a, const cd_graph_shape *b) {
    const uint32_t most = a->rank > b->rank ? a->rank : b->rank;
    cd_graph_shape lead = {most - 2, {0}};
    for (uint32_t d = 0; d < lead.rank; d++) {
        const int64_t da = d + a->rank < most ? 1 : a->dim[d + a->rank - most],
                      db = d + b->rank < most ? 1 : b->dim[d + b->rank - most];
        lead.dim[d] = da == 1 ? db : da;
    }
    return lead;
}

/* Operands of rank 1 get a dimension. A right operand with two dimensions is a weight for all rows:
 * one dense product. Else leading dimensions broadcast and become the batch. */
uint32_t cd_fuse_import_matmul(cd_fuse_importer *m, uint32_t a, uint32_t b) {
    uint32_t y;
    a = at_least_two(m, a, true), b = at_least_two(m, b, false);
    const cd_graph_shape sa = *cd_fuse_import_shape(m, a), sb = *cd_fuse_import_shape(m, b),
                         *out = cd_fuse_import_result_shape(m);
    int how = CD_FUSE_TRANSPOSED_Y;
    if (sa.rank < 2 || sb.rank < 2) return 0;
    if (sa.rank == 2 || sb.rank > 2) a = as_it_lies(m, a, CD_FUSE_TRANSPOSED_X, &how);
    b = as_it_lies(m, b, CD_FUSE_TRANSPOSED_Y, &how);
    if (sb.rank == 2) {
        const uint32_t left = how & CD_FUSE_TRANSPOSED_X ? a : rows(m, a);
        y = m->g->training ? product(m, left, b, how) : cd_fuse_dense(m->f, left, flip(m, b));
    } else {
        const cd_graph_shape lead = lead_of(&sa, &sb);
        const uint32_t left = batches(m, a, &lead), right = batches(m, b, &lead);
        y = m->g->training ? product(m, left, right, how) : cd_fuse_bmm(m->f, left, flip(m, right));
    }
    return cd_fuse_reshape(m->f, y, out);
}

static void matmul(cd_fuse_importer *m) {
    const uint32_t y =
        cd_fuse_import_matmul(m, cd_fuse_import_input(m, 0), cd_fuse_import_input(m, 1));
    if (y) cd_fuse_import_output(m, 0, y);
}

const cd_fuse_import_rule cd_fuse_import_rules_nn[] = {
    {"Conv", conv},
    {"ConvTranspose", conv_transpose},
    {"MaxPool", max_pool},
    {"AveragePool", average_pool},
    {"MaxPoolGrad", max_pool_grad},
    {"AveragePoolGrad", average_pool_grad},
    {"GlobalMaxPool", global_max},
    {"GlobalAveragePool", global_average},
    {"BatchNormalization", batch_norm},
    {"LayerNormalization", layer_norm},
    {"InstanceNormalization", instance_norm},
    {"GroupNormalization", group_norm},
    {"Softmax", softmax},
    {"LogSoftmax", log_softmax},
    {"LRN", lrn},
    {"Gemm", gemm},
    {"MatMul", matmul},
    {NULL, NULL},
};

/* Operators of quantised files. QuantizeLinear and DequantizeLinear become one node each; operators
 * on quantised numbers are the same operators between them, as the standard defines them.
 * cd_fuse_quantize makes programs in 8 bits of both. */

/* Operand k, a zero point, is one number that is known. Absent: 0. */
static bool zero_is_known(const cd_fuse_importer *m, uint32_t k, double *zero) {
    *zero = 0;
    if (!cd_fuse_import_has(m, k)) return true;
    const cd_graph_tensor *t = cd_fuse_import_tensor(m, k);
    const int64_t n = cd_graph_shape_elements(&t->shape);
    if (!t->value) return false;
    for (int64_t i = 1; i < n; i++)
        if (t->value[i] != t->value[0]) return false;
    if (n > 0) *zero = (double)t->value[0];
    return true;
}

/* Operand k, which stands along the axis where it has many elements. */
static uint32_t along(cd_fuse_importer *m, uint32_t k, const cd_graph_shape *x, int64_t axis) {
    const uint32_t s = cd_fuse_import_input(m, k);
    const int64_t n = cd_graph_shape_elements(cd_fuse_import_shape(m, s));
    cd_graph_shape full = {x->rank, {0}};
    axis = cd_fuse_import_axis(x, axis);
    if (n != 1 && (axis < 0 || axis >= x->rank || x->dim[axis] != n ||
                   cd_fuse_import_shape(m, s)->rank != 1)) {
        m->why = "scales and zero points of blocks have no compute definition";
        return 0;
    }
    for (uint32_t d = 0; d < full.rank; d++) full.dim[d] = d == axis ? n : 1;
    if (n == 1) full.rank = 0;
    return cd_fuse_reshape(m->f, s, &full);
}

/* Operand k, a scale: a number that is known, or a weight. */
static uint32_t scale_of(cd_fuse_importer *m, uint32_t k, const cd_graph_shape *x, int64_t axis) {
    double v;
    return cd_fuse_import_number(m, k, &v) ? cd_fuse_const(m->f, CD_F32, v) : along(m, k, x, axis);
}

static bool is_byte(cd_dtype t) { return cd_expr_dtype_bits(t) == 8; }

/* A zero point that is known only as the network runs, or that differs among channels, is added to
 * the rounded quotient. */
static uint32_t quantized_by_data(cd_fuse_importer *m, uint32_t x, uint32_t scale, uint32_t zero,
                                  cd_dtype t, const cd_fuse_attr *a) {
    cd_fuse_graph *f = m->f;
    const uint32_t q =
        cd_fuse_unary(f, CD_FUSE_OP_ROUND, cd_fuse_binary(f, CD_FUSE_OP_DIV, x, scale), 0, 0);
    return cd_fuse_cast(
        f,
        cd_fuse_unary(f, CD_FUSE_OP_CLIP,
                      cd_fuse_binary(f, CD_FUSE_OP_ADD, q, cd_fuse_cast(f, zero, CD_F32)), a->p,
                      a->q),
        t);
}

static uint32_t quantized(cd_fuse_importer *m, uint32_t x, uint32_t k, cd_dtype t, int64_t axis) {
    const bool is_unsigned = cd_expr_dtype_kind(t) == CD_T_UINT;
    const cd_graph_shape s = *cd_fuse_import_shape(m, x);
    cd_fuse_attr a = {.p = is_unsigned ? 0 : -128, .q = is_unsigned ? 255 : 127};
    if (!is_byte(t) || m->f->node[x].dtype != CD_F32 ||
        cd_fuse_import_tensor(m, k)->dtype != CD_F32)
        m->why = "only float32 to 8 bits has a compute definition";
    if (cd_graph_node_int(m->n, "precision", 0) > 1)
        m->why = "a quotient in another type than float32 has no compute definition";
    const uint32_t in[2] = {x, m->why ? 0 : scale_of(m, k, &s, axis)};
    if (m->why) return 0;
    if (zero_is_known(m, k + 1, &a.s))
        return cd_fuse_add_node(m->f, CD_FUSE_OP_QUANTIZE, t, &s, in, 2, &a);
    const uint32_t zero = along(m, k + 1, &s, axis);
    return m->why ? 0 : quantized_by_data(m, x, in[1], zero, t, &a);
}

/* Operand x, with its scale and zero point as operands k and k + 1. *scale: its node. A zero point
 * that is known only as the network runs, or that differs among channels, is taken off in whole
 * numbers. */
static uint32_t dequantized(cd_fuse_importer *m, uint32_t x, uint32_t k, int64_t axis,
                            uint32_t *scale) {
    const cd_graph_shape s = *cd_fuse_import_shape(m, x);
    const cd_dtype t = m->f->node[x].dtype;
    cd_fuse_attr a = {0};
    /* output_dtype */
    const bool other =
        !strcmp(m->n->op, "DequantizeLinear") && m->g->tensor[m->n->out[0]].dtype != CD_F32;
    if ((!is_byte(t) && t != CD_I32) || other || cd_fuse_import_tensor(m, k)->dtype != CD_F32)
        m->why = "only 8 bits or int32 to float32 has a compute definition";
    const uint32_t in[2] = {x, m->why ? 0 : scale_of(m, k, &s, axis)};
    *scale = in[1];
    if (m->why) return 0;
    if (zero_is_known(m, k + 1, &a.s))
        return cd_fuse_add_node(m->f, CD_FUSE_OP_DEQUANTIZE, CD_F32, &s, in, 2, &a);
    const uint32_t zero = along(m, k + 1, &s, axis);
    if (m->why) return 0;
    const uint32_t whole = cd_fuse_binary(m->f, CD_FUSE_OP_SUB, cd_fuse_cast(m->f, x, CD_I32),
                                          cd_fuse_cast(m->f, zero, CD_I32));
    return cd_fuse_binary(m->f, CD_FUSE_OP_MUL, cd_fuse_cast(m->f, whole, CD_F32), in[1]);
}

static void quantize_linear(cd_fuse_importer *m) {
    const uint32_t y = quantized(m, cd_fuse_import_input(m, 0), 1, m->g->tensor[m->n->out[0]].dtype,
                                 cd_graph_node_int(m->n, "axis", 1));
    if (!m->why) cd_fuse_import_output(m, 0, y);
}

static void dequantize_linear(cd_fuse_importer *m) {
    uint32_t scale;
    const uint32_t y =
        dequantized(m, cd_fuse_import_input(m, 0), 1, cd_graph_node_int(m->n, "axis", 1), &scale);
    if (!m->why) cd_fuse_import_output(m, 0, y);
}

static cd_dtype result_type(const cd_fuse_importer *m) { return m->g->tensor[m->n->out[0]].dtype; }

/* x, its scale and zero point, w, its scale and zero point, those of the result, bias: of int32 in
 * units of both scales. */
static void qlinear_conv(cd_fuse_importer *m) {
    uint32_t of_x, of_w = 0;
    const uint32_t x = dequantized(m, cd_fuse_import_input(m, 0), 1, 1, &of_x),
                   w = m->why ? 0 : dequantized(m, cd_fuse_import_input(m, 3), 4, 0, &of_w);
    if (m->why) return;
    uint32_t y = cd_fuse_import_conv(m, CD_FUSE_OP_CONV, x, w);
    if (m->why) return;
    if (cd_fuse_import_has(m, 8)) {
        const cd_graph_shape per = {1, {cd_graph_shape_elements(cd_fuse_import_shape(m, of_w))}};
        const uint32_t ws = cd_fuse_reshape(m->f, of_w, &per), b = cd_fuse_import_input(m, 8);
        const uint32_t in[2] = {b, cd_fuse_binary(m->f, CD_FUSE_OP_MUL, ws, of_x)};
        const cd_graph_shape s = *cd_fuse_import_shape(m, b);
        const uint32_t bias =
            cd_fuse_add_node(m->f, CD_FUSE_OP_DEQUANTIZE, CD_F32, &s, in, 2, NULL);
        y = cd_fuse_binary(m->f, CD_FUSE_OP_ADD, y,
                           cd_fuse_import_channels(m, bias, cd_fuse_import_shape(m, y)->rank));
    }
    y = quantized(m, y, 6, result_type(m), 1);
    if (!m->why) cd_fuse_import_output(m, 0, y);
}

static void qlinear_matmul(cd_fuse_importer *m) {
    uint32_t scale;
    const uint32_t a = dequantized(m, cd_fuse_import_input(m, 0), 1, -2, &scale),
                   b = m->why ? 0 : dequantized(m, cd_fuse_import_input(m, 3), 4, -1, &scale);
    if (m->why) return;
    const uint32_t y = quantized(m, cd_fuse_import_matmul(m, a, b), 6, result_type(m), 1);
    if (!m->why) cd_fuse_import_output(m, 0, y);
}

const cd_fuse_import_rule cd_fuse_import_rules_quantize[] = {
    {"QuantizeLinear", quantize_linear},
    {"DequantizeLinear", dequantize_linear},
    {"QLinearConv", qlinear_conv},
    {"QLinearMatMul", qlinear_matmul},
    {NULL, NULL},
};
