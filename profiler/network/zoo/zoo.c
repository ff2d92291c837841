/* The table of built-in networks, and building one by name. */
#include "profiler/network/zoo/zoo.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/network/zoo/zoo_internal.h"

/* The calls that networks are written with. Each makes the weights that its operator needs, with
 * shapes that follow from the operand. */

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

static uint32_t zoo_layer_norm(cd_zoo_builder *z, uint32_t x) {
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
static uint32_t zoo_gelu(cd_zoo_builder *z, uint32_t x) {
    const uint32_t e = cd_zoo_unary(
        z, "Erf", cd_zoo_binary(z, "Div", x, cd_zoo_const_scalar(z, 1.4142135623730951)));
    const uint32_t y =
        cd_zoo_binary(z, "Mul", x, cd_zoo_binary(z, "Add", e, cd_zoo_const_scalar(z, 1)));
    return cd_zoo_binary(z, "Mul", y, cd_zoo_const_scalar(z, 0.5));
}

/* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), GPT-2's. */
static uint32_t zoo_gelu_tanh(cd_zoo_builder *z, uint32_t x) {
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

/* Rows of a table (entries, width) by a tensor of indices. */
static uint32_t zoo_embedding(cd_zoo_builder *z, uint32_t index, int64_t entries, int64_t width) {
    const uint32_t table = cd_zoo_weight(z, 2, (const int64_t[]){entries, width});
    return cd_zoo_binary(z, "Gather", table, index);
}

/* Transformers: BERT (Devlin 2018; tiny by Turc 2019), RoBERTa (Liu 2019), GPT-2 small (Radford
 * 2019), ViT-B/16 (Dosovitskiy 2020). */

typedef struct {
    int64_t length, width, heads;
} stream;

/* (batch, length, width) -> (batch, heads, length, width of a head); the key also swaps the last
 * two. */
static uint32_t heads_of(cd_zoo_builder *z, uint32_t x, stream s, bool key) {
    x = cd_zoo_reshape(z, x, 4, (const int64_t[]){z->batch, s.length, s.heads, s.width / s.heads});
    return cd_zoo_transpose(z, x, 4,
                            key ? (const int64_t[]){0, 2, 3, 1} : (const int64_t[]){0, 2, 1, 3});
}

/* mask: added to the scores; CD_GRAPH_NONE for none. */
static uint32_t attention(cd_zoo_builder *z, uint32_t x, stream s, uint32_t mask) {
    const uint32_t q = heads_of(z, cd_zoo_linear(z, x, s.width), s, false);
    const uint32_t k = heads_of(z, cd_zoo_linear(z, x, s.width), s, true);
    const uint32_t v = heads_of(z, cd_zoo_linear(z, x, s.width), s, false);
    double root = 1; /* sqrt of the width of a head, 64 in all of these */
    while (root * root < (double)(s.width / s.heads)) root++;
    uint32_t score =
        cd_zoo_binary(z, "Div", cd_zoo_binary(z, "MatMul", q, k), cd_zoo_const_scalar(z, root));
    if (mask != CD_GRAPH_NONE) score = cd_zoo_binary(z, "Add", score, mask);
    const uint32_t y = cd_zoo_transpose(z, cd_zoo_binary(z, "MatMul", cd_zoo_softmax(z, score), v),
                                        4, (const int64_t[]){0, 2, 1, 3});
    return cd_zoo_linear(z, cd_zoo_reshape(z, y, 3, (const int64_t[]){z->batch, s.length, s.width}),
                         s.width);
}

static uint32_t feed_forward(cd_zoo_builder *z, uint32_t x, stream s,
                             uint32_t (*act)(cd_zoo_builder *, uint32_t)) {
    return cd_zoo_linear(z, act(z, cd_zoo_linear(z, x, 4 * s.width)), s.width);
}

/* ---- BERT: normalises after each half ---- */

static uint32_t token_embedding(cd_zoo_builder *z, int64_t words, stream s) {
    const uint32_t id =
        cd_zoo_input(z, "input_ids", CD_I64, 2, (const int64_t[]){z->batch, s.length});
    const uint32_t position = cd_zoo_weight(z, 2, (const int64_t[]){s.length, s.width});
    return cd_zoo_binary(z, "Add", zoo_embedding(z, id, words, s.width), position);
}

/* x: the embedding before its norm. The second result is the pooled first token. */
static void encoder(cd_zoo_builder *z, uint32_t x, stream s, int layers) {
    x = zoo_layer_norm(z, x);
    const uint32_t mask =
        cd_zoo_input(z, "mask", CD_F32, 4, (const int64_t[]){z->batch, 1, 1, z->size});
    for (int k = 0; k < layers; k++) {
        x = zoo_layer_norm(z, cd_zoo_binary(z, "Add", x, attention(z, x, s, mask)));
        x = zoo_layer_norm(z, cd_zoo_binary(z, "Add", x, feed_forward(z, x, s, zoo_gelu)));
    }
    const uint32_t first = cd_zoo_op(
        z, "Gather", 2, (const uint32_t[]){x, cd_zoo_const_ints(z, 1, (const int64_t[]){0})}, 1,
        (const cd_graph_attr[]){cd_zoo_attr_int("axis", 1)});
    cd_zoo_result(z, x);
    cd_zoo_result(z, cd_zoo_unary(z, "Tanh", cd_zoo_linear(z, first, s.width)));
}

/* The widths are those of the published sizes: 128 tiny, 512 medium, 768 base, 1024 large; a head
 * is 64 wide. */
static void zoo_bert(cd_zoo_builder *z, int64_t width) {
    const stream s = {z->size, width, width / 64};
    const int layers = width == 128 ? 2 : width == 512 ? 8 : width == 768 ? 12 : 24;
    const uint32_t x = token_embedding(z, 30522, s);
    const uint32_t type =
        cd_zoo_input(z, "token_type_ids", CD_I64, 2, (const int64_t[]){z->batch, z->size});
    encoder(z, cd_zoo_binary(z, "Add", x, zoo_embedding(z, type, 2, width)), s, layers);
}

/* BERT base with more words, and one type for all of them. */
static void zoo_roberta(cd_zoo_builder *z, int64_t width) {
    const stream s = {z->size, width, width / 64};
    encoder(z, cd_zoo_binary(z, "Add", token_embedding(z, 50265, s), cd_zoo_weight(z, 1, &width)),
            s, 12);
}

/* ---- before each half ---- */

static uint32_t pre_norm_block(cd_zoo_builder *z, uint32_t x, stream s, uint32_t mask,
                               uint32_t (*act)(cd_zoo_builder *, uint32_t)) {
    x = cd_zoo_binary(z, "Add", x, attention(z, zoo_layer_norm(z, x), s, mask));
    return cd_zoo_binary(z, "Add", x, feed_forward(z, zoo_layer_norm(z, x), s, act));
}

static void zoo_gpt2(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    const stream s = {z->size, 768, 12};
    uint32_t x = token_embedding(z, 50257, s);
    const uint32_t causal = cd_zoo_weight(z, 2, (const int64_t[]){s.length, s.length});
    for (int k = 0; k < 12; k++) x = pre_norm_block(z, x, s, causal, zoo_gelu_tanh);
    const uint32_t words = cd_zoo_weight(z, 2, (const int64_t[]){s.width, 50257});
    cd_zoo_result(z, cd_zoo_binary(z, "MatMul", zoo_layer_norm(z, x), words));
}

/* The image is cut into patches of 16 x 16 by a convolution of stride 16; a class token comes
 * first. */
static void zoo_vit(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    const int64_t patches = (z->size / 16) * (z->size / 16);
    const stream s = {patches + 1, 768, 12};
    uint32_t x = cd_zoo_conv_bias(z, cd_zoo_image(z), 768, (cd_zoo_window){16, 16, 0}, 1);
    x = cd_zoo_transpose(z, cd_zoo_reshape(z, x, 3, (const int64_t[]){z->batch, 768, patches}), 3,
                         (const int64_t[]){0, 2, 1});
    const uint32_t class = cd_zoo_weight(z, 3, (const int64_t[]){z->batch, 1, 768});
    x = cd_zoo_concat(z, 2, (const uint32_t[]){class, x}, 1);
    x = cd_zoo_binary(z, "Add", x, cd_zoo_weight(z, 3, (const int64_t[]){1, s.length, 768}));
    for (int k = 0; k < 12; k++) x = pre_norm_block(z, x, s, CD_GRAPH_NONE, zoo_gelu);
    const uint32_t first = cd_zoo_op(
        z, "Gather", 2,
        (const uint32_t[]){zoo_layer_norm(z, x), cd_zoo_const_ints(z, 1, (const int64_t[]){0})}, 1,
        (const cd_graph_attr[]){cd_zoo_attr_int("axis", 1)});
    cd_zoo_result(z, cd_zoo_linear(z, first, 1000));
}

/* Networks of one operator, to measure it over a range of sizes. */

static uint32_t square(cd_zoo_builder *z, const char *name) {
    return cd_zoo_input(z, name, CD_F32, 3, (const int64_t[]){z->batch, z->size, z->size});
}

static uint32_t by_weight(cd_zoo_builder *z, uint32_t x) {
    return cd_zoo_binary(z, "MatMul", x, cd_zoo_weight(z, 2, (const int64_t[]){z->size, z->size}));
}

/* products: how many, one after the other; with two of them a vector is added. */
static void zoo_matmul(cd_zoo_builder *z, int64_t products) {
    uint32_t x = by_weight(z, square(z, "input"));
    if (products == 2) x = cd_zoo_binary(z, "Add", by_weight(z, x), cd_zoo_weight(z, 1, &z->size));
    cd_zoo_result(z, x);
}

/* 3x3 from 64 channels to 64; groups: 1, or 64 for depthwise. */
static void zoo_conv2d(cd_zoo_builder *z, int64_t groups) {
    const uint32_t x =
        cd_zoo_input(z, "input", CD_F32, 4, (const int64_t[]){z->batch, 64, z->size, z->size});
    cd_zoo_result(z, cd_zoo_conv(z, x, 64, (cd_zoo_window){3, 1, 1}, groups));
}

static void zoo_add(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    cd_zoo_result(z, cd_zoo_binary(z, "Add", square(z, "a"), square(z, "b")));
}

/* softmax, or layer norm */
static void zoo_rows(cd_zoo_builder *z, int64_t norm) {
    const uint32_t x = square(z, "input");
    cd_zoo_result(z, norm ? zoo_layer_norm(z, x) : cd_zoo_softmax(z, x));
}

/* A generator (DCGAN, Radford 2015), graph convolution (GCN, Kipf 2016) and recurrent networks of
 * two layers. */

/* ---- DCGAN: 100 numbers become an image of `size`, a multiple of 16 ---- */

static uint32_t up(cd_zoo_builder *z, uint32_t x, int64_t out) {
    const uint32_t w = cd_zoo_weight(z, 4, (const int64_t[]){cd_zoo_dim(z, x, 1), out, 4, 4});
    const cd_graph_attr attr[] = {cd_zoo_attr_ints("kernel_shape", 2, (const int64_t[]){4, 4}),
                                  cd_zoo_attr_ints("strides", 2, (const int64_t[]){2, 2}),
                                  cd_zoo_attr_ints("pads", 4, (const int64_t[]){1, 1, 1, 1})};
    return cd_zoo_op(z, "ConvTranspose", 2, (const uint32_t[]){x, w}, 3, attr);
}

static void zoo_dcgan(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    const int64_t edge = z->size / 16;
    uint32_t x = cd_zoo_input(z, "code", CD_F32, 2, (const int64_t[]){z->batch, 100});
    x = cd_zoo_reshape(z, cd_zoo_fully_connected(z, x, 1024 * edge * edge), 4,
                       (const int64_t[]){z->batch, 1024, edge, edge});
    x = cd_zoo_relu(z, cd_zoo_batch_norm(z, x));
    for (int64_t c = 512; c >= 128; c /= 2) x = cd_zoo_relu(z, cd_zoo_batch_norm(z, up(z, x, c)));
    cd_zoo_result(z, cd_zoo_unary(z, "Tanh", up(z, x, 3)));
}

/* ---- GCN: relu(A X W0), then A H W1; `size` vertices, or those of a file of edges; features and
 * classes of Cora ---- */

static void zoo_gcn(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    if (z->edges) {
        cd_zoo_gcn_edges(z, z->edges);
        return;
    }
    const uint32_t a =
        cd_zoo_input(z, "adjacency", CD_F32, 3, (const int64_t[]){z->batch, z->size, z->size});
    const uint32_t x = cd_zoo_input(z, "features", CD_F32, 3,
                                    (const int64_t[]){z->batch, z->size, CD_ZOO_GCN_FEATURES});
    const uint32_t h =
        cd_zoo_relu(z, cd_zoo_binary(z, "MatMul", a, cd_zoo_linear(z, x, CD_ZOO_GCN_HIDDEN)));
    cd_zoo_result(z, cd_zoo_binary(z, "MatMul", a, cd_zoo_linear(z, h, CD_ZOO_GCN_CLASSES)));
}

/* ---- recurrent: words -> two layers of 256 -> the last state's class ---- */

static uint32_t layer(cd_zoo_builder *z, uint32_t x, int64_t gates) {
    enum { HIDDEN = 256 };
    const int64_t in = cd_zoo_dim(z, x, 2);
    const uint32_t w = cd_zoo_weight(z, 3, (const int64_t[]){1, gates * HIDDEN, in});
    const uint32_t r = cd_zoo_weight(z, 3, (const int64_t[]){1, gates * HIDDEN, HIDDEN});
    const uint32_t b = cd_zoo_weight(z, 2, (const int64_t[]){1, 2 * gates * HIDDEN});
    const cd_graph_attr attr[] = {cd_zoo_attr_int("hidden_size", HIDDEN),
                                  cd_zoo_attr_int("linear_before_reset", 1)};
    const uint32_t y = cd_zoo_op(z,
                                 gates == 4   ? "LSTM"
                                 : gates == 3 ? "GRU"
                                              : "RNN",
                                 4, (const uint32_t[]){x, w, r, b}, gates == 3 ? 2 : 1, attr);
    /* its direction */
    return cd_zoo_binary(z, "Squeeze", y, cd_zoo_const_ints(z, 1, (const int64_t[]){1}));
}

/* 4: lstm, 3: gru, 1: rnn */
static void zoo_recurrent(cd_zoo_builder *z, int64_t gates) {
    const uint32_t words =
        cd_zoo_input(z, "words", CD_I64, 2, (const int64_t[]){z->size, z->batch});
    uint32_t x = layer(z, layer(z, zoo_embedding(z, words, 10000, 256), gates), gates);
    x = cd_zoo_binary(z, "Gather", x, cd_zoo_const_ints(z, 1, (const int64_t[]){z->size - 1}));
    cd_zoo_result(z, cd_zoo_linear(z, x, 2));
}

/* The Transformer (Vaswani 2017), base: an encoder and a decoder that reads it, both whole
 * sequences at a time. Each half is normalised behind its sum; one table of words is the embedding
 * of both and makes the result. */

enum { WIDTH = 512, HEADS = 8, INNER = 2048, LAYERS = 6, WORDS_TRANSFORMER = 37000 };

static uint32_t heads_of_transformer(cd_zoo_builder *z, uint32_t x, bool key) {
    x = cd_zoo_reshape(z, cd_zoo_linear(z, x, WIDTH), 4,
                       (const int64_t[]){z->batch, z->size, HEADS, WIDTH / HEADS});
    return cd_zoo_transpose(z, x, 4,
                            key ? (const int64_t[]){0, 2, 3, 1} : (const int64_t[]){0, 2, 1, 3});
}

/* Norm of x + attention of x to `from`. */
static uint32_t attend(cd_zoo_builder *z, uint32_t x, uint32_t from, uint32_t mask) {
    const uint32_t q = heads_of_transformer(z, x, false), k = heads_of_transformer(z, from, true),
                   v = heads_of_transformer(z, from, false);
    const uint32_t score = cd_zoo_binary(z, "Div", cd_zoo_binary(z, "MatMul", q, k),
                                         cd_zoo_const_scalar(z, sqrt(WIDTH / HEADS)));
    const uint32_t y =
        cd_zoo_binary(z, "MatMul", cd_zoo_softmax(z, cd_zoo_binary(z, "Add", score, mask)), v);
    const uint32_t all = cd_zoo_reshape(z, cd_zoo_transpose(z, y, 4, (const int64_t[]){0, 2, 1, 3}),
                                        3, (const int64_t[]){z->batch, z->size, WIDTH});
    return zoo_layer_norm(z, cd_zoo_binary(z, "Add", x, cd_zoo_linear(z, all, WIDTH)));
}

static uint32_t feed_forward_transformer(cd_zoo_builder *z, uint32_t x) {
    return zoo_layer_norm(
        z, cd_zoo_binary(z, "Add", x,
                         cd_zoo_linear(z, cd_zoo_relu(z, cd_zoo_linear(z, x, INNER)), WIDTH)));
}

/* Words times sqrt(WIDTH), and the waves that tell their places, which are no weights. */
static uint32_t words_of(cd_zoo_builder *z, const char *name, uint32_t table, uint32_t places) {
    const uint32_t x = cd_zoo_binary(
        z, "Gather", table, cd_zoo_input(z, name, CD_I64, 2, (const int64_t[]){z->batch, z->size}));
    return cd_zoo_binary(z, "Add", cd_zoo_binary(z, "Mul", x, cd_zoo_const_scalar(z, sqrt(WIDTH))),
                         places);
}

static void zoo_transformer(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    const cd_graph_attr turned = cd_zoo_attr_int("transB", 1);
    const uint32_t table = cd_zoo_weight(z, 2, (const int64_t[]){WORDS_TRANSFORMER, WIDTH});
    const uint32_t places =
        cd_zoo_input(z, "places", CD_F32, 3, (const int64_t[]){1, z->size, WIDTH});
    uint32_t x = words_of(z, "source", table, places), y = words_of(z, "target", table, places);
    const uint32_t mask =
        cd_zoo_input(z, "mask", CD_F32, 4, (const int64_t[]){z->batch, 1, 1, z->size});
    const uint32_t causal =
        cd_zoo_input(z, "target_mask", CD_F32, 4, (const int64_t[]){z->batch, 1, z->size, z->size});
    for (int k = 0; k < LAYERS; k++) x = feed_forward_transformer(z, attend(z, x, x, mask));
    for (int k = 0; k < LAYERS; k++)
        y = feed_forward_transformer(z, attend(z, attend(z, y, y, causal), x, mask));
    y = cd_zoo_reshape(z, y, 2, (const int64_t[]){z->batch * z->size, WIDTH});
    y = cd_zoo_op(z, "Gemm", 2, (const uint32_t[]){y, table}, 1, &turned);
    cd_zoo_result(z,
                  cd_zoo_reshape(z, y, 3, (const int64_t[]){z->batch, z->size, WORDS_TRANSFORMER}));
}

typedef struct {
    cd_zoo_entry e;
    cd_zoo_fn build;
    int64_t variant, least; /* least: the smallest size that leaves something */
} row;

/* What other systems call them, where that is not the same letters and digits: OpBench, EOP,
 * TenSet, torchvision, Hugging Face. */
static const struct {
    const char *theirs, *ours;
} also[] = {
    {"mobilenet", "mobilenet-v1"},
    {"mobilenet-v3-large", "mobilenet-v3"},
    {"squeezenet-v1.0", "squeezenet-1.0"},
    {"squeezenet-v1.1", "squeezenet-1.1"},
    {"inception", "inception-v3"},
    {"googlenet", "inception-v1"},
    {"densenet", "densenet-121"},
    {"vgg", "vgg-16"},
    {"nasnetalarge", "nasnet-large"},
    {"nasnet", "nasnet-large"},
    {"resnext-50-32x4d", "resnext-50"},
    {"wide-resnet-50-2", "wide-resnet-50"},
    {"r3d-18", "resnet3d-18"},
    {"gan", "dcgan"},
    {"rcnn", "faster-rcnn"},
    {"fasterrcnn-vgg16", "faster-rcnn"},
    {"yolov5", "yolov5s"},
    {"bert", "bert-base"},
    {"bert-base-uncased", "bert-base"},
    {"bert-large-uncased", "bert-large"},
    {"prajjwal1/bert-tiny", "bert-tiny"},
    {"prajjwal1/bert-medium", "bert-medium"},
    {"roberta", "roberta-base"},
    {"t5", "t5-small"},
    {"vit-b-16", "vit"},
    {"google/vit-base-patch16-224", "vit"},
    {"dense", "matmul"},
};

#define IMAGE    "pixels an edge"
#define WORDS    "words a sequence"
#define ROWS     "rows and columns"
#define OPERATOR "operator"
static const row zoo[] = {
    {{"resnet-18", "cnn", 224, IMAGE}, cd_zoo_resnet, 18, 32},
    {{"resnet-34", "cnn", 224, IMAGE}, cd_zoo_resnet, 34, 32},
    {{"resnet-50", "cnn", 224, IMAGE}, cd_zoo_resnet, 50, 32},
    {{"resnet-101", "cnn", 224, IMAGE}, cd_zoo_resnet, 101, 32},
    {{"resnet-152", "cnn", 224, IMAGE}, cd_zoo_resnet, 152, 32},
    {{"resnext-50", "cnn", 224, IMAGE}, cd_zoo_resnext50, 0, 32},
    {{"wide-resnet-50", "cnn", 224, IMAGE}, cd_zoo_wide_resnet50, 0, 32},
    {{"resnet3d-18", "cnn3d", 112, IMAGE " of 16 frames"}, cd_zoo_resnet3d, 18, 16},
    {{"resnet3d-34", "cnn3d", 112, IMAGE " of 16 frames"}, cd_zoo_resnet3d, 34, 16},
    {{"alexnet", "cnn", 224, IMAGE}, cd_zoo_alexnet, 0, 63},
    {{"vgg-11", "cnn", 224, IMAGE}, cd_zoo_vgg, 11, 32},
    {{"vgg-13", "cnn", 224, IMAGE}, cd_zoo_vgg, 13, 32},
    {{"vgg-16", "cnn", 224, IMAGE}, cd_zoo_vgg, 16, 32},
    {{"vgg-19", "cnn", 224, IMAGE}, cd_zoo_vgg, 19, 32},
    {{"mobilenet-v1", "cnn", 224, IMAGE}, cd_zoo_mobilenet_v1, 0, 32},
    {{"mobilenet-v2", "cnn", 224, IMAGE}, cd_zoo_mobilenet_v2, 0, 32},
    {{"mobilenet-v3", "cnn", 224, IMAGE}, cd_zoo_mobilenet_v3, 1, 32},
    {{"mobilenet-v3-small", "cnn", 224, IMAGE}, cd_zoo_mobilenet_v3, 0, 32},
    {{"squeezenet-1.0", "cnn", 224, IMAGE}, cd_zoo_squeezenet, 0, 32},
    {{"squeezenet-1.1", "cnn", 224, IMAGE}, cd_zoo_squeezenet, 1, 32},
    {{"densenet-121", "cnn", 224, IMAGE}, cd_zoo_densenet, 121, 32},
    {{"densenet-161", "cnn", 224, IMAGE}, cd_zoo_densenet, 161, 32},
    {{"densenet-169", "cnn", 224, IMAGE}, cd_zoo_densenet, 169, 32},
    {{"densenet-201", "cnn", 224, IMAGE}, cd_zoo_densenet, 201, 32},
    {{"inception-v1", "cnn", 224, IMAGE}, cd_zoo_inception_v1, 0, 32},
    {{"inception-v3", "cnn", 299, IMAGE}, cd_zoo_inception_v3, 0, 75},
    {{"efficientnet-b0", "cnn", 224, IMAGE}, cd_zoo_efficientnet_b0, 0, 32},
    {{"nasnet-large", "cnn", 331, IMAGE}, cd_zoo_nasnet_large, 0, 32},
    {{"dpn-68", "cnn", 224, IMAGE}, cd_zoo_dpn68, 0, 32},
    {{"dcgan", "gan", 64, IMAGE ", in sixteens"}, zoo_dcgan, 0, 16},
    {{"yolov2", "cnn", 416, IMAGE ", in thirty-twos"}, cd_zoo_yolov2, 0, 32},
    {{"yolov3", "cnn", 416, IMAGE ", in thirty-twos"}, cd_zoo_yolov3, 0, 32},
    {{"yolov3-tiny", "cnn", 416, IMAGE ", in thirty-twos"}, cd_zoo_yolov3_tiny, 0, 32},
    {{"yolov5n", "cnn", 640, IMAGE ", in thirty-twos"}, cd_zoo_yolov5, 16, 32},
    {{"yolov5s", "cnn", 640, IMAGE ", in thirty-twos"}, cd_zoo_yolov5, 32, 32},
    {{"lstm", "rnn", 128, WORDS}, zoo_recurrent, 4, 1},
    {{"gru", "rnn", 128, WORDS}, zoo_recurrent, 3, 1},
    {{"rnn", "rnn", 128, WORDS}, zoo_recurrent, 1, 1},
    {{"bert-tiny", "transformer", 128, WORDS}, zoo_bert, 128, 1},
    {{"bert-medium", "transformer", 128, WORDS}, zoo_bert, 512, 1},
    {{"bert-base", "transformer", 128, WORDS}, zoo_bert, 768, 1},
    {{"bert-large", "transformer", 128, WORDS}, zoo_bert, 1024, 1},
    {{"roberta-base", "transformer", 128, WORDS}, zoo_roberta, 768, 1},
    {{"t5-small", "transformer", 128, WORDS}, cd_zoo_t5_small, 0, 1},
    {{"gpt2", "transformer", 1024, WORDS}, zoo_gpt2, 0, 1},
    {{"vit", "transformer", 224, IMAGE}, zoo_vit, 0, 16},
    {{"gcn", "gcn", 2708, "vertices"}, zoo_gcn, 0, 1},
    {{"transformer", "transformer", 128, WORDS}, zoo_transformer, 0, 1},
    {{"faster-rcnn", "rcnn", 600, IMAGE}, cd_zoo_faster_rcnn, 0, 32},
    {{"matmul", OPERATOR, 1024, ROWS}, zoo_matmul, 1, 1},
    {{"matmul-matmul-add", OPERATOR, 1024, ROWS}, zoo_matmul, 2, 1},
    {{"conv2d", OPERATOR, 56, IMAGE}, zoo_conv2d, 1, 1},
    {{"depthwise-conv2d", OPERATOR, 56, IMAGE}, zoo_conv2d, 64, 1},
    {{"add", OPERATOR, 1024, ROWS}, zoo_add, 0, 1},
    {{"softmax", OPERATOR, 1024, ROWS}, zoo_rows, 0, 1},
    {{"layer-norm", OPERATOR, 1024, ROWS}, zoo_rows, 1, 1},
};
enum { N_ZOO = sizeof zoo / sizeof *zoo };

size_t cd_zoo_count(void) { return N_ZOO; }
const cd_zoo_entry *cd_zoo_at(size_t i) { return &zoo[i].e; }

/* Letters and digits of both up to '@', without case. */
static bool same_name(const char *a, const char *b) {
    for (;; a++, b++) {
        while (*a && *a != '@' && !isalnum((unsigned char)*a)) a++;
        while (*b && *b != '@' && !isalnum((unsigned char)*b)) b++;
        if (*a == '@') a = "";
        if (*b == '@') b = "";
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) return false;
        if (!*a) return true;
    }
}

/* The name here of one that other systems use; else the name itself. */
static const char *our_name(const char *name) {
    for (size_t k = 0; k < sizeof also / sizeof *also; k++)
        if (same_name(name, also[k].theirs)) return also[k].ours;
    return name;
}

const cd_zoo_entry *cd_zoo_find(const char *name) {
    for (size_t k = 0; k < N_ZOO; k++)
        if (same_name(our_name(name), zoo[k].e.name)) return &zoo[k].e;
    return NULL;
}

static cdmpp_status find(const char *said, const row **out, cdmpp_err *err) {
    const char *names[N_ZOO], *name = our_name(said);
    for (size_t k = 0; k < N_ZOO; k++) {
        names[k] = zoo[k].e.name;
        if (!same_name(name, names[k])) continue;
        *out = &zoo[k];
        return CDMPP_OK;
    }
    const char *near[6];
    const size_t n = cd_did_you_mean_several(name, names, N_ZOO, near, sizeof near / sizeof *near);
    cd_buf b = {0};
    for (size_t k = 0; k < n; k++)
        cd_buf_putf(&b, "%s%s", !k ? "; did you mean " : k + 1 < n ? ", " : " or ", near[k]);
    const cdmpp_status st =
        CD_FAIL(err, ESCHEMA, "no network \"%.60s\" in the zoo%s%s (cdmpp-replay --list-networks)",
                name, b.p ? b.p : "", n ? "?" : "");
    cd_buf_free(&b);
    return st;
}

static cdmpp_status check(const row *r, const cd_zoo_builder *z, cdmpp_err *err) {
    if (z->batch < 1)
        return CD_FAIL(err, ERANGE, "batch: expected at least 1, found %lld", (long long)z->batch);
    if (z->size < r->least)
        return CD_FAIL(err, ERANGE, "size of %s (%s): expected at least %lld, found %lld",
                       r->e.name, r->e.what, (long long)r->least, (long long)z->size);
    return CDMPP_OK;
}

cdmpp_status cd_zoo_build(const char *name, const cd_zoo_options *o, cd_graph **out,
                          cdmpp_err *err) {
    const row *r = NULL;
    CD_TRY(find(name, &r, err));
    const char *at = strchr(name, '@');
    if (at && r->build != zoo_gcn)
        return CD_FAIL(err, ESCHEMA, "%.60s: a file of edges is for gcn", name);
    if (at && o->size)
        return CD_FAIL(err, ERANGE, "size of %.60s: the vertices are those of its file", name);
    cd_zoo_builder z = {.edges = at ? at + 1 : NULL,
                        .err = err,
                        .batch = o->batch ? o->batch : 1,
                        .size = o->size ? o->size : r->e.size};
    CD_TRY(check(r, &z, err));
    CD_TRY(cd_graph_new(r->e.name, &z.g, err));
    z.g->opset = 17; /* LayerNormalization is 17's; everything else is as in 13 */
    r->build(&z, r->variant);
    if (z.st) cd_graph_free(z.g);
    else *out = z.g;
    return z.st;
}
