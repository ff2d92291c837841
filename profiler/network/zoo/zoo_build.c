/* The calls that networks are written with. Each makes the weights that its operator needs, with
 * shapes that follow from the operand. */
#include <stdio.h>

#include "profiler/network/zoo/zoo_internal.h"

/* ---- tensors ---- */

static const char *name_of(cd_zoo_builder *z, const char *what, char buf[64]) {
    snprintf(buf, 64, "%s_%u", what, (unsigned)z->count++);
    return buf;
}

static cd_graph_shape shape_of(uint32_t rank, const int64_t *dim) {
    cd_graph_shape s = {.rank = rank};
    for (uint32_t d = 0; d < rank && d < CD_GRAPH_MAX_RANK; d++) s.dim[d] = dim[d];
    return s;
}

uint32_t cd_zoo_input(cd_zoo_builder *z, const char *name, cd_dtype t, uint32_t rank,
                      const int64_t *dim) {
    uint32_t x = CD_GRAPH_NONE;
    const cd_graph_shape s = shape_of(rank, dim);
    if (!z->st) z->st = cd_graph_input(z->g, name, t, &s, &x, z->err);
    return x;
}

uint32_t cd_zoo_image(cd_zoo_builder *z) {
    return cd_zoo_input(z, "input", CD_F32, 4, (const int64_t[]){z->batch, 3, z->size, z->size});
}

uint32_t cd_zoo_weight(cd_zoo_builder *z, uint32_t rank, const int64_t *dim) {
    char name[64];
    uint32_t x = CD_GRAPH_NONE;
    const cd_graph_shape s = shape_of(rank, dim);
    if (!z->st) z->st = cd_graph_weight(z->g, name_of(z, "w", name), CD_F32, &s, &x, z->err);
    return x;
}

static uint32_t vector(cd_zoo_builder *z, int64_t n) { return cd_zoo_weight(z, 1, &n); }

uint32_t cd_zoo_const(cd_zoo_builder *z, cd_dtype t, uint32_t rank, const int64_t *dim,
                      const int64_t *value, const double *fvalue) {
    char name[64];
    uint32_t x = CD_GRAPH_NONE;
    const cd_graph_shape s = shape_of(rank, dim);
    if (!z->st)
        z->st = cd_graph_constant(z->g, name_of(z, "c", name), t, &s, value, fvalue, &x, z->err);
    return x;
}

uint32_t cd_zoo_const_scalar(cd_zoo_builder *z, double v) {
    return cd_zoo_const(z, CD_F32, 0, NULL, NULL, &v);
}

uint32_t cd_zoo_const_ints(cd_zoo_builder *z, uint32_t n, const int64_t *v) {
    return cd_zoo_const(z, CD_I64, 1, (const int64_t[]){n}, v, NULL);
}

int64_t cd_zoo_dim(const cd_zoo_builder *z, uint32_t x, uint32_t d) {
    return z->st ? 1 : z->g->tensor[x].shape.dim[d];
}

void cd_zoo_result(cd_zoo_builder *z, uint32_t x) {
    if (!z->st) z->st = cd_graph_result(z->g, x, z->err);
}

/* ---- any operator ---- */

uint32_t cd_zoo_op(cd_zoo_builder *z, const char *op, uint32_t n_in, const uint32_t *in,
                   uint32_t n_attr, const cd_graph_attr *attr) {
    char name[64];
    uint32_t y = CD_GRAPH_NONE;
    if (!z->st)
        z->st = cd_graph_add(z->g, name_of(z, op, name), op, in, n_in, attr, n_attr, &y, 1, z->err);
    return y;
}

uint32_t cd_zoo_unary(cd_zoo_builder *z, const char *op, uint32_t x) {
    return cd_zoo_op(z, op, 1, &x, 0, NULL);
}
uint32_t cd_zoo_binary(cd_zoo_builder *z, const char *op, uint32_t a, uint32_t b) {
    return cd_zoo_op(z, op, 2, (const uint32_t[]){a, b}, 0, NULL);
}

cd_graph_attr cd_zoo_attr_int(const char *name, int64_t v) {
    return (cd_graph_attr){.name = name, .kind = CD_GRAPH_ATTR_INT, .i = v};
}
cd_graph_attr cd_zoo_attr_float(const char *name, double v) {
    return (cd_graph_attr){.name = name, .kind = CD_GRAPH_ATTR_FLOAT, .f = v};
}
cd_graph_attr cd_zoo_attr_string(const char *name, const char *v) {
    return (cd_graph_attr){.name = name, .kind = CD_GRAPH_ATTR_STR, .s = v};
}
cd_graph_attr cd_zoo_attr_ints(const char *name, uint32_t n, const int64_t *v) {
    return (cd_graph_attr){.name = name, .kind = CD_GRAPH_ATTR_INTS, .n = n, .ints = v};
}

/* ---- of images ---- */

static uint32_t conv(cd_zoo_builder *z, uint32_t x, int64_t out, cd_zoo_window w, int64_t groups,
                     bool bias) {
    const int64_t in = cd_zoo_dim(z, x, 1);
    const uint32_t weight = cd_zoo_weight(z, 4, (const int64_t[]){out, in / groups, w.k, w.k});
    const uint32_t from[3] = {x, weight, bias ? vector(z, out) : CD_GRAPH_NONE};
    const cd_graph_attr attr[] = {
        cd_zoo_attr_ints("kernel_shape", 2, (const int64_t[]){w.k, w.k}),
        cd_zoo_attr_ints("strides", 2, (const int64_t[]){w.stride, w.stride}),
        cd_zoo_attr_ints("pads", 4, (const int64_t[]){w.pad, w.pad, w.pad, w.pad}),
        cd_zoo_attr_int("group", groups)};
    return cd_zoo_op(z, "Conv", bias ? 3 : 2, from, 4, attr);
}

uint32_t cd_zoo_conv(cd_zoo_builder *z, uint32_t x, int64_t out, cd_zoo_window w, int64_t groups) {
    return conv(z, x, out, w, groups, false);
}
uint32_t cd_zoo_conv_bias(cd_zoo_builder *z, uint32_t x, int64_t out, cd_zoo_window w,
                          int64_t groups) {
    return conv(z, x, out, w, groups, true);
}

uint32_t cd_zoo_conv_rect(cd_zoo_builder *z, uint32_t x, int64_t out, int64_t kh, int64_t kw) {
    const uint32_t weight =
        cd_zoo_weight(z, 4, (const int64_t[]){out, cd_zoo_dim(z, x, 1), kh, kw});
    const cd_graph_attr attr[] = {
        cd_zoo_attr_ints("kernel_shape", 2, (const int64_t[]){kh, kw}),
        cd_zoo_attr_ints("pads", 4, (const int64_t[]){kh / 2, kw / 2, kh / 2, kw / 2})};
    return cd_zoo_op(z, "Conv", 2, (const uint32_t[]){x, weight}, 2, attr);
}

uint32_t cd_zoo_batch_norm(cd_zoo_builder *z, uint32_t x) {
    const int64_t c = cd_zoo_dim(z, x, 1);
    uint32_t in[5] = {x};
    for (int k = 1; k < 5; k++) in[k] = vector(z, c);
    return cd_zoo_op(z, "BatchNormalization", 5, in, 0, NULL);
}

uint32_t cd_zoo_relu(cd_zoo_builder *z, uint32_t x) { return cd_zoo_unary(z, "Relu", x); }

uint32_t cd_zoo_relu6(cd_zoo_builder *z, uint32_t x) {
    const uint32_t low = cd_zoo_const_scalar(z, 0), high = cd_zoo_const_scalar(z, 6);
    return cd_zoo_op(z, "Clip", 3, (const uint32_t[]){x, low, high}, 0, NULL);
}

uint32_t cd_zoo_conv_bn_relu(cd_zoo_builder *z, uint32_t x, int64_t out, cd_zoo_window w,
                             int64_t groups) {
    return cd_zoo_relu(z, cd_zoo_batch_norm(z, cd_zoo_conv(z, x, out, w, groups)));
}

static uint32_t pool(cd_zoo_builder *z, const char *op, uint32_t x, cd_zoo_window w,
                     cd_graph_attr extra) {
    const cd_graph_attr attr[] = {
        cd_zoo_attr_ints("kernel_shape", 2, (const int64_t[]){w.k, w.k}),
        cd_zoo_attr_ints("strides", 2, (const int64_t[]){w.stride, w.stride}),
        cd_zoo_attr_ints("pads", 4, (const int64_t[]){w.pad, w.pad, w.pad, w.pad}), extra};
    return cd_zoo_op(z, op, 1, &x, 4, attr);
}

uint32_t cd_zoo_max_pool(cd_zoo_builder *z, uint32_t x, cd_zoo_window w, bool ceil) {
    return pool(z, "MaxPool", x, w, cd_zoo_attr_int("ceil_mode", ceil));
}

uint32_t cd_zoo_avg_pool(cd_zoo_builder *z, uint32_t x, cd_zoo_window w) {
    return pool(z, "AveragePool", x, w, cd_zoo_attr_int("count_include_pad", 1));
}

uint32_t cd_zoo_global_pool(cd_zoo_builder *z, uint32_t x) {
    return cd_zoo_unary(z, "GlobalAveragePool", x);
}

uint32_t cd_zoo_flatten(cd_zoo_builder *z, uint32_t x) {
    const cd_graph_attr axis = cd_zoo_attr_int("axis", 1);
    return cd_zoo_op(z, "Flatten", 1, &x, 1, &axis);
}

uint32_t cd_zoo_concat(cd_zoo_builder *z, uint32_t n, const uint32_t *x, int64_t axis) {
    const cd_graph_attr a = cd_zoo_attr_int("axis", axis);
    return cd_zoo_op(z, "Concat", n, x, 1, &a);
}

uint32_t cd_zoo_fully_connected(cd_zoo_builder *z, uint32_t x, int64_t out) {
    const uint32_t w = cd_zoo_weight(z, 2, (const int64_t[]){out, cd_zoo_dim(z, x, 1)});
    const cd_graph_attr trans = cd_zoo_attr_int("transB", 1);
    return cd_zoo_op(z, "Gemm", 3, (const uint32_t[]){x, w, vector(z, out)}, 1, &trans);
}

void cd_zoo_classify(cd_zoo_builder *z, uint32_t x, int64_t classes) {
    cd_zoo_result(z,
                  cd_zoo_fully_connected(z, cd_zoo_flatten(z, cd_zoo_global_pool(z, x)), classes));
}

/* ---- of sequences ---- */

static uint32_t last_axis(const cd_zoo_builder *z, uint32_t x) {
    return z->st ? 0 : z->g->tensor[x].shape.rank - 1;
}

uint32_t cd_zoo_linear(cd_zoo_builder *z, uint32_t x, int64_t out) {
    const uint32_t w =
        cd_zoo_weight(z, 2, (const int64_t[]){cd_zoo_dim(z, x, last_axis(z, x)), out});
    return cd_zoo_binary(z, "Add", cd_zoo_binary(z, "MatMul", x, w), vector(z, out));
}

uint32_t cd_zoo_layer_norm(cd_zoo_builder *z, uint32_t x) {
    const int64_t n = cd_zoo_dim(z, x, last_axis(z, x));
    const uint32_t scale = vector(z, n), shift = vector(z, n);
    const cd_graph_attr attr[] = {cd_zoo_attr_int("axis", -1), cd_zoo_attr_float("epsilon", 1e-5)};
    return cd_zoo_op(z, "LayerNormalization", 3, (const uint32_t[]){x, scale, shift}, 2, attr);
}

uint32_t cd_zoo_softmax(cd_zoo_builder *z, uint32_t x) {
    const cd_graph_attr axis = cd_zoo_attr_int("axis", -1);
    return cd_zoo_op(z, "Softmax", 1, &x, 1, &axis);
}

/* 0.5 x (1 + erf(x / sqrt 2)), in the operators that exporters write. */
uint32_t cd_zoo_gelu(cd_zoo_builder *z, uint32_t x) {
    const uint32_t e = cd_zoo_unary(
        z, "Erf", cd_zoo_binary(z, "Div", x, cd_zoo_const_scalar(z, 1.4142135623730951)));
    const uint32_t y =
        cd_zoo_binary(z, "Mul", x, cd_zoo_binary(z, "Add", e, cd_zoo_const_scalar(z, 1)));
    return cd_zoo_binary(z, "Mul", y, cd_zoo_const_scalar(z, 0.5));
}

/* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), GPT-2's. */
uint32_t cd_zoo_gelu_tanh(cd_zoo_builder *z, uint32_t x) {
    const uint32_t cube =
        cd_zoo_binary(z, "Mul", cd_zoo_binary(z, "Pow", x, cd_zoo_const_scalar(z, 3)),
                      cd_zoo_const_scalar(z, 0.044715));
    const uint32_t in = cd_zoo_binary(z, "Mul", cd_zoo_binary(z, "Add", x, cube),
                                      cd_zoo_const_scalar(z, 0.7978845608028654));
    const uint32_t t =
        cd_zoo_binary(z, "Add", cd_zoo_unary(z, "Tanh", in), cd_zoo_const_scalar(z, 1));
    return cd_zoo_binary(z, "Mul", cd_zoo_binary(z, "Mul", x, cd_zoo_const_scalar(z, 0.5)), t);
}

uint32_t cd_zoo_reshape(cd_zoo_builder *z, uint32_t x, uint32_t rank, const int64_t *dim) {
    return cd_zoo_binary(z, "Reshape", x, cd_zoo_const_ints(z, rank, dim));
}

uint32_t cd_zoo_transpose(cd_zoo_builder *z, uint32_t x, uint32_t rank, const int64_t *perm) {
    const cd_graph_attr p = cd_zoo_attr_ints("perm", rank, perm);
    return cd_zoo_op(z, "Transpose", 1, &x, 1, &p);
}

uint32_t cd_zoo_embedding(cd_zoo_builder *z, uint32_t index, int64_t entries, int64_t width) {
    const uint32_t table = cd_zoo_weight(z, 2, (const int64_t[]){entries, width});
    return cd_zoo_binary(z, "Gather", table, index);
}
