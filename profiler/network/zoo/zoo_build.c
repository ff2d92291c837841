#include <stdio.h>

#include "profiler/network/zoo/zoo_internal.h"

/* ---- tensors ---- */

static const char *name_of(cd_z *z, const char *what, char buf[64]) {
    snprintf(buf, 64, "%s_%u", what, (unsigned)z->count++);
    return buf;
}

static cd_shape shape_of(uint32_t rank, const int64_t *dim) {
    cd_shape s = {.rank = rank};
    for (uint32_t d = 0; d < rank && d < CD_GRAPH_MAX_RANK; d++) s.dim[d] = dim[d];
    return s;
}

uint32_t cd_z_input(cd_z *z, const char *name, cd_dtype t, uint32_t rank, const int64_t *dim) {
    uint32_t x = CD_GRAPH_NONE;
    const cd_shape s = shape_of(rank, dim);
    if (!z->st) z->st = cd_graph_input(z->g, name, t, &s, &x, z->err);
    return x;
}

uint32_t cd_z_image(cd_z *z) { return cd_z_input(z, "input", CD_F32, 4, (const int64_t[]){z->batch, 3, z->size, z->size}); }

uint32_t cd_z_weight(cd_z *z, uint32_t rank, const int64_t *dim) {
    char name[64];
    uint32_t x = CD_GRAPH_NONE;
    const cd_shape s = shape_of(rank, dim);
    if (!z->st) z->st = cd_graph_weight(z->g, name_of(z, "w", name), CD_F32, &s, &x, z->err);
    return x;
}

uint32_t cd_z_vector(cd_z *z, int64_t n) { return cd_z_weight(z, 1, &n); }

uint32_t cd_z_scalar(cd_z *z, double v) {
    char name[64];
    uint32_t x = CD_GRAPH_NONE;
    const cd_shape s = {.rank = 0};
    if (!z->st) z->st = cd_graph_constant(z->g, name_of(z, "c", name), CD_F32, &s, NULL, &v, &x, z->err);
    return x;
}

uint32_t cd_z_ints(cd_z *z, uint32_t n, const int64_t *v) {
    char name[64];
    uint32_t x = CD_GRAPH_NONE;
    const cd_shape s = {.rank = 1, .dim = {n}};
    if (!z->st) z->st = cd_graph_constant(z->g, name_of(z, "c", name), CD_I64, &s, v, NULL, &x, z->err);
    return x;
}

int64_t cd_z_dim(const cd_z *z, uint32_t x, uint32_t d) { return z->st ? 1 : z->g->tensor[x].shape.dim[d]; }

void cd_z_result(cd_z *z, uint32_t x) {
    if (!z->st) z->st = cd_graph_result(z->g, x, z->err);
}

/* ---- any operator ---- */

uint32_t cd_z_op(cd_z *z, const char *op, uint32_t n_in, const uint32_t *in, uint32_t n_attr, const cd_gattr *attr) {
    char name[64];
    uint32_t y = CD_GRAPH_NONE;
    if (!z->st) z->st = cd_graph_add(z->g, name_of(z, op, name), op, in, n_in, attr, n_attr, &y, 1, z->err);
    return y;
}

uint32_t cd_z_op1(cd_z *z, const char *op, uint32_t x) { return cd_z_op(z, op, 1, &x, 0, NULL); }
uint32_t cd_z_op2(cd_z *z, const char *op, uint32_t a, uint32_t b) { return cd_z_op(z, op, 2, (const uint32_t[]){a, b}, 0, NULL); }

cd_gattr cd_z_i(const char *name, int64_t v) { return (cd_gattr){.name = name, .kind = CD_GATTR_INT, .i = v}; }
cd_gattr cd_z_f(const char *name, double v) { return (cd_gattr){.name = name, .kind = CD_GATTR_FLOAT, .f = v}; }
cd_gattr cd_z_s(const char *name, const char *v) { return (cd_gattr){.name = name, .kind = CD_GATTR_STR, .s = v}; }
cd_gattr cd_z_is(const char *name, uint32_t n, const int64_t *v) {
    return (cd_gattr){.name = name, .kind = CD_GATTR_INTS, .n = n, .ints = v};
}

/* ---- of images ---- */

static uint32_t conv(cd_z *z, uint32_t x, int64_t out, cd_z_window w, int64_t groups, bool bias) {
    const int64_t in = cd_z_dim(z, x, 1);
    const uint32_t weight = cd_z_weight(z, 4, (const int64_t[]){out, in / groups, w.k, w.k});
    const uint32_t from[3] = {x, weight, bias ? cd_z_vector(z, out) : CD_GRAPH_NONE};
    const cd_gattr attr[] = {cd_z_is("kernel_shape", 2, (const int64_t[]){w.k, w.k}),
                             cd_z_is("strides", 2, (const int64_t[]){w.stride, w.stride}),
                             cd_z_is("pads", 4, (const int64_t[]){w.pad, w.pad, w.pad, w.pad}), cd_z_i("group", groups)};
    return cd_z_op(z, "Conv", bias ? 3 : 2, from, 4, attr);
}

uint32_t cd_z_conv(cd_z *z, uint32_t x, int64_t out, cd_z_window w, int64_t groups) { return conv(z, x, out, w, groups, false); }
uint32_t cd_z_conv_bias(cd_z *z, uint32_t x, int64_t out, cd_z_window w, int64_t groups) { return conv(z, x, out, w, groups, true); }

uint32_t cd_z_conv_rect(cd_z *z, uint32_t x, int64_t out, int64_t kh, int64_t kw) {
    const uint32_t weight = cd_z_weight(z, 4, (const int64_t[]){out, cd_z_dim(z, x, 1), kh, kw});
    const cd_gattr attr[] = {cd_z_is("kernel_shape", 2, (const int64_t[]){kh, kw}),
                             cd_z_is("pads", 4, (const int64_t[]){kh / 2, kw / 2, kh / 2, kw / 2})};
    return cd_z_op(z, "Conv", 2, (const uint32_t[]){x, weight}, 2, attr);
}

uint32_t cd_z_bn(cd_z *z, uint32_t x) {
    const int64_t c = cd_z_dim(z, x, 1);
    uint32_t in[5] = {x};
    for (int k = 1; k < 5; k++) in[k] = cd_z_vector(z, c);
    return cd_z_op(z, "BatchNormalization", 5, in, 0, NULL);
}

uint32_t cd_z_relu(cd_z *z, uint32_t x) { return cd_z_op1(z, "Relu", x); }

uint32_t cd_z_relu6(cd_z *z, uint32_t x) {
    const uint32_t low = cd_z_scalar(z, 0), high = cd_z_scalar(z, 6);
    return cd_z_op(z, "Clip", 3, (const uint32_t[]){x, low, high}, 0, NULL);
}

uint32_t cd_z_cbr(cd_z *z, uint32_t x, int64_t out, cd_z_window w, int64_t groups) {
    return cd_z_relu(z, cd_z_bn(z, cd_z_conv(z, x, out, w, groups)));
}

static uint32_t pool(cd_z *z, const char *op, uint32_t x, cd_z_window w, cd_gattr extra) {
    const cd_gattr attr[] = {cd_z_is("kernel_shape", 2, (const int64_t[]){w.k, w.k}),
                             cd_z_is("strides", 2, (const int64_t[]){w.stride, w.stride}),
                             cd_z_is("pads", 4, (const int64_t[]){w.pad, w.pad, w.pad, w.pad}), extra};
    return cd_z_op(z, op, 1, &x, 4, attr);
}

uint32_t cd_z_max_pool(cd_z *z, uint32_t x, cd_z_window w, bool ceil) {
    return pool(z, "MaxPool", x, w, cd_z_i("ceil_mode", ceil));
}

uint32_t cd_z_avg_pool(cd_z *z, uint32_t x, cd_z_window w) {
    return pool(z, "AveragePool", x, w, cd_z_i("count_include_pad", 1));
}

uint32_t cd_z_global_pool(cd_z *z, uint32_t x) { return cd_z_op1(z, "GlobalAveragePool", x); }

uint32_t cd_z_flatten(cd_z *z, uint32_t x) {
    const cd_gattr axis = cd_z_i("axis", 1);
    return cd_z_op(z, "Flatten", 1, &x, 1, &axis);
}

uint32_t cd_z_concat(cd_z *z, uint32_t n, const uint32_t *x, int64_t axis) {
    const cd_gattr a = cd_z_i("axis", axis);
    return cd_z_op(z, "Concat", n, x, 1, &a);
}

uint32_t cd_z_fc(cd_z *z, uint32_t x, int64_t out) {
    const uint32_t w = cd_z_weight(z, 2, (const int64_t[]){out, cd_z_dim(z, x, 1)});
    const cd_gattr trans = cd_z_i("transB", 1);
    return cd_z_op(z, "Gemm", 3, (const uint32_t[]){x, w, cd_z_vector(z, out)}, 1, &trans);
}

void cd_z_classify(cd_z *z, uint32_t x, int64_t classes) {
    cd_z_result(z, cd_z_fc(z, cd_z_flatten(z, cd_z_global_pool(z, x)), classes));
}

/* ---- of sequences ---- */

static uint32_t last_axis(const cd_z *z, uint32_t x) { return z->st ? 0 : z->g->tensor[x].shape.rank - 1; }

uint32_t cd_z_linear(cd_z *z, uint32_t x, int64_t out) {
    const uint32_t w = cd_z_weight(z, 2, (const int64_t[]){cd_z_dim(z, x, last_axis(z, x)), out});
    return cd_z_op2(z, "Add", cd_z_op2(z, "MatMul", x, w), cd_z_vector(z, out));
}

uint32_t cd_z_layer_norm(cd_z *z, uint32_t x) {
    const int64_t n = cd_z_dim(z, x, last_axis(z, x));
    const uint32_t scale = cd_z_vector(z, n), shift = cd_z_vector(z, n);
    const cd_gattr attr[] = {cd_z_i("axis", -1), cd_z_f("epsilon", 1e-5)};
    return cd_z_op(z, "LayerNormalization", 3, (const uint32_t[]){x, scale, shift}, 2, attr);
}

uint32_t cd_z_softmax(cd_z *z, uint32_t x) {
    const cd_gattr axis = cd_z_i("axis", -1);
    return cd_z_op(z, "Softmax", 1, &x, 1, &axis);
}

/* 0.5 x (1 + erf(x / sqrt 2)), in the operators that exporters write. */
uint32_t cd_z_gelu(cd_z *z, uint32_t x) {
    const uint32_t e = cd_z_op1(z, "Erf", cd_z_op2(z, "Div", x, cd_z_scalar(z, 1.4142135623730951)));
    const uint32_t y = cd_z_op2(z, "Mul", x, cd_z_op2(z, "Add", e, cd_z_scalar(z, 1)));
    return cd_z_op2(z, "Mul", y, cd_z_scalar(z, 0.5));
}

/* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), GPT-2's. */
uint32_t cd_z_gelu_tanh(cd_z *z, uint32_t x) {
    const uint32_t cube = cd_z_op2(z, "Mul", cd_z_op2(z, "Pow", x, cd_z_scalar(z, 3)), cd_z_scalar(z, 0.044715));
    const uint32_t in = cd_z_op2(z, "Mul", cd_z_op2(z, "Add", x, cube), cd_z_scalar(z, 0.7978845608028654));
    const uint32_t t = cd_z_op2(z, "Add", cd_z_op1(z, "Tanh", in), cd_z_scalar(z, 1));
    return cd_z_op2(z, "Mul", cd_z_op2(z, "Mul", x, cd_z_scalar(z, 0.5)), t);
}

uint32_t cd_z_reshape(cd_z *z, uint32_t x, uint32_t rank, const int64_t *dim) {
    return cd_z_op2(z, "Reshape", x, cd_z_ints(z, rank, dim));
}

uint32_t cd_z_transpose(cd_z *z, uint32_t x, uint32_t rank, const int64_t *perm) {
    const cd_gattr p = cd_z_is("perm", rank, perm);
    return cd_z_op(z, "Transpose", 1, &x, 1, &p);
}

uint32_t cd_z_embed(cd_z *z, uint32_t index, int64_t entries, int64_t width) {
    const uint32_t table = cd_z_weight(z, 2, (const int64_t[]){entries, width});
    return cd_z_op2(z, "Gather", table, index);
}
