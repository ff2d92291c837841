/* A generator (DCGAN, Radford 2015), a detector (YOLOv3-tiny, Redmon 2018), graph convolution (GCN, Kipf 2016) and
 * recurrent networks of two layers. */
#include "profiler/network/zoo/zoo_internal.h"

/* ---- DCGAN: 100 numbers become an image of `size`, a multiple of 16 ---- */

static uint32_t up(cd_z *z, uint32_t x, int64_t out) {
    const uint32_t w = cd_z_weight(z, 4, (const int64_t[]){cd_z_dim(z, x, 1), out, 4, 4});
    const cd_gattr attr[] = {cd_z_is("kernel_shape", 2, (const int64_t[]){4, 4}), cd_z_is("strides", 2, (const int64_t[]){2, 2}),
                             cd_z_is("pads", 4, (const int64_t[]){1, 1, 1, 1})};
    return cd_z_op(z, "ConvTranspose", 2, (const uint32_t[]){x, w}, 3, attr);
}

void cd_zoo_dcgan(cd_z *z, int64_t unused) {
    (void)unused;
    const int64_t edge = z->size / 16;
    uint32_t x = cd_z_input(z, "code", CD_F32, 2, (const int64_t[]){z->batch, 100});
    x = cd_z_reshape(z, cd_z_fc(z, x, 1024 * edge * edge), 4, (const int64_t[]){z->batch, 1024, edge, edge});
    x = cd_z_relu(z, cd_z_bn(z, x));
    for (int64_t c = 512; c >= 128; c /= 2) x = cd_z_relu(z, cd_z_bn(z, up(z, x, c)));
    cd_z_result(z, cd_z_op1(z, "Tanh", up(z, x, 3)));
}

/* ---- YOLOv3-tiny ---- */

static uint32_t leaky(cd_z *z, uint32_t x, int64_t out, int64_t k) {
    const cd_gattr alpha = cd_z_f("alpha", 0.1);
    x = cd_z_bn(z, cd_z_conv(z, x, out, (cd_z_window){k, 1, k / 2}, 1));
    return cd_z_op(z, "LeakyRelu", 1, &x, 1, &alpha);
}

/* Pool 2x2 of stride 1, one row and column of padding behind: the size stays. */
static uint32_t pool_in_place(cd_z *z, uint32_t x) {
    const cd_gattr attr[] = {cd_z_is("kernel_shape", 2, (const int64_t[]){2, 2}), cd_z_is("strides", 2, (const int64_t[]){1, 1}),
                             cd_z_is("pads", 4, (const int64_t[]){0, 0, 1, 1})};
    return cd_z_op(z, "MaxPool", 1, &x, 3, attr);
}

/* 3 boxes a cell, each 4 edges, 1 score, 80 classes. */
static void detect(cd_z *z, uint32_t x) { cd_z_result(z, cd_z_conv_bias(z, x, 255, (cd_z_window){1, 1, 0}, 1)); }

static uint32_t upsample(cd_z *z, uint32_t x) {
    const int64_t size[4] = {z->batch, cd_z_dim(z, x, 1), cd_z_dim(z, x, 2) * 2, cd_z_dim(z, x, 3) * 2};
    const uint32_t in[4] = {x, CD_GRAPH_NONE, CD_GRAPH_NONE, cd_z_ints(z, 4, size)};
    const cd_gattr attr[] = {cd_z_s("mode", "nearest"), cd_z_s("coordinate_transformation_mode", "asymmetric"),
                             cd_z_s("nearest_mode", "floor")};
    return cd_z_op(z, "Resize", 4, in, 3, attr);
}

void cd_zoo_yolov3_tiny(cd_z *z, int64_t unused) {
    (void)unused;
    uint32_t x = cd_z_image(z), route = x;
    for (int64_t c = 16; c <= 512; c *= 2) {
        x = leaky(z, x, c, 3);
        if (c == 256) route = x;
        x = c < 512 ? cd_z_max_pool(z, x, (cd_z_window){2, 2, 0}, false) : pool_in_place(z, x);
    }
    x = leaky(z, leaky(z, x, 1024, 3), 256, 1);
    detect(z, leaky(z, x, 512, 3));
    x = cd_z_concat(z, 2, (const uint32_t[]){upsample(z, leaky(z, x, 128, 1)), route}, 1);
    detect(z, leaky(z, x, 256, 3));
}

/* ---- GCN: relu(A X W0), then A H W1; `size` vertices, features and classes of Cora ---- */

void cd_zoo_gcn(cd_z *z, int64_t unused) {
    (void)unused;
    const uint32_t a = cd_z_input(z, "adjacency", CD_F32, 3, (const int64_t[]){z->batch, z->size, z->size});
    const uint32_t x = cd_z_input(z, "features", CD_F32, 3, (const int64_t[]){z->batch, z->size, 1433});
    const uint32_t h = cd_z_relu(z, cd_z_op2(z, "MatMul", a, cd_z_linear(z, x, 16)));
    cd_z_result(z, cd_z_op2(z, "MatMul", a, cd_z_linear(z, h, 7)));
}

/* ---- recurrent: words -> two layers of 256 -> the last state's class ---- */

static uint32_t layer(cd_z *z, uint32_t x, int64_t gates) {
    enum { HIDDEN = 256 };
    const int64_t in = cd_z_dim(z, x, 2);
    const uint32_t w = cd_z_weight(z, 3, (const int64_t[]){1, gates * HIDDEN, in});
    const uint32_t r = cd_z_weight(z, 3, (const int64_t[]){1, gates * HIDDEN, HIDDEN});
    const uint32_t b = cd_z_weight(z, 2, (const int64_t[]){1, 2 * gates * HIDDEN});
    const cd_gattr attr[] = {cd_z_i("hidden_size", HIDDEN), cd_z_i("linear_before_reset", 1)};
    const uint32_t y = cd_z_op(z, gates == 4 ? "LSTM" : gates == 3 ? "GRU" : "RNN", 4, (const uint32_t[]){x, w, r, b},
                               gates == 3 ? 2 : 1, attr);
    return cd_z_op2(z, "Squeeze", y, cd_z_ints(z, 1, (const int64_t[]){1})); /* its direction */
}

void cd_zoo_recurrent(cd_z *z, int64_t gates) {
    const uint32_t words = cd_z_input(z, "words", CD_I64, 2, (const int64_t[]){z->size, z->batch});
    uint32_t x = layer(z, layer(z, cd_z_embed(z, words, 10000, 256), gates), gates);
    x = cd_z_op2(z, "Gather", x, cd_z_ints(z, 1, (const int64_t[]){z->size - 1}));
    cd_z_result(z, cd_z_linear(z, x, 2));
}
