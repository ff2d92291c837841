/* A generator (DCGAN, Radford 2015), graph convolution (GCN, Kipf 2016) and recurrent networks of
 * two layers. */
#include "profiler/network/zoo/zoo_internal.h"

/* ---- DCGAN: 100 numbers become an image of `size`, a multiple of 16 ---- */

static uint32_t up(cd_zoo_builder *z, uint32_t x, int64_t out) {
    const uint32_t w = cd_zoo_weight(z, 4, (const int64_t[]){cd_zoo_dim(z, x, 1), out, 4, 4});
    const cd_graph_attr attr[] = {cd_zoo_attr_ints("kernel_shape", 2, (const int64_t[]){4, 4}),
                                  cd_zoo_attr_ints("strides", 2, (const int64_t[]){2, 2}),
                                  cd_zoo_attr_ints("pads", 4, (const int64_t[]){1, 1, 1, 1})};
    return cd_zoo_op(z, "ConvTranspose", 2, (const uint32_t[]){x, w}, 3, attr);
}

void cd_zoo_dcgan(cd_zoo_builder *z, int64_t unused) {
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

void cd_zoo_gcn(cd_zoo_builder *z, int64_t unused) {
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

void cd_zoo_recurrent(cd_zoo_builder *z, int64_t gates) {
    const uint32_t words =
        cd_zoo_input(z, "words", CD_I64, 2, (const int64_t[]){z->size, z->batch});
    uint32_t x = layer(z, layer(z, cd_zoo_embedding(z, words, 10000, 256), gates), gates);
    x = cd_zoo_binary(z, "Gather", x, cd_zoo_const_ints(z, 1, (const int64_t[]){z->size - 1}));
    cd_zoo_result(z, cd_zoo_linear(z, x, 2));
}
