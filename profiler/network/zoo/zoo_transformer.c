/* The Transformer (Vaswani 2017), base: an encoder and a decoder that reads it, both whole
 * sequences at a time. Each half is normalised behind its sum; one table of words is the embedding
 * of both and makes the result. */
#include <math.h>

#include "profiler/network/zoo/zoo_internal.h"

enum { WIDTH = 512, HEADS = 8, INNER = 2048, LAYERS = 6, WORDS = 37000 };

static uint32_t heads_of(cd_zoo_builder *z, uint32_t x, bool key) {
    x = cd_zoo_reshape(z, cd_zoo_linear(z, x, WIDTH), 4,
                       (const int64_t[]){z->batch, z->size, HEADS, WIDTH / HEADS});
    return cd_zoo_transpose(z, x, 4,
                            key ? (const int64_t[]){0, 2, 3, 1} : (const int64_t[]){0, 2, 1, 3});
}

/* Norm of x + attention of x to `from`. */
static uint32_t attend(cd_zoo_builder *z, uint32_t x, uint32_t from, uint32_t mask) {
    const uint32_t q = heads_of(z, x, false), k = heads_of(z, from, true),
                   v = heads_of(z, from, false);
    const uint32_t score = cd_zoo_binary(z, "Div", cd_zoo_binary(z, "MatMul", q, k),
                                         cd_zoo_const_scalar(z, sqrt(WIDTH / HEADS)));
    const uint32_t y =
        cd_zoo_binary(z, "MatMul", cd_zoo_softmax(z, cd_zoo_binary(z, "Add", score, mask)), v);
    const uint32_t all = cd_zoo_reshape(z, cd_zoo_transpose(z, y, 4, (const int64_t[]){0, 2, 1, 3}),
                                        3, (const int64_t[]){z->batch, z->size, WIDTH});
    return cd_zoo_layer_norm(z, cd_zoo_binary(z, "Add", x, cd_zoo_linear(z, all, WIDTH)));
}

static uint32_t feed_forward(cd_zoo_builder *z, uint32_t x) {
    return cd_zoo_layer_norm(
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

void cd_zoo_transformer(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    const cd_graph_attr turned = cd_zoo_attr_int("transB", 1);
    const uint32_t table = cd_zoo_weight(z, 2, (const int64_t[]){WORDS, WIDTH});
    const uint32_t places =
        cd_zoo_input(z, "places", CD_F32, 3, (const int64_t[]){1, z->size, WIDTH});
    uint32_t x = words_of(z, "source", table, places), y = words_of(z, "target", table, places);
    const uint32_t mask =
        cd_zoo_input(z, "mask", CD_F32, 4, (const int64_t[]){z->batch, 1, 1, z->size});
    const uint32_t causal =
        cd_zoo_input(z, "target_mask", CD_F32, 4, (const int64_t[]){z->batch, 1, z->size, z->size});
    for (int k = 0; k < LAYERS; k++) x = feed_forward(z, attend(z, x, x, mask));
    for (int k = 0; k < LAYERS; k++)
        y = feed_forward(z, attend(z, attend(z, y, y, causal), x, mask));
    y = cd_zoo_reshape(z, y, 2, (const int64_t[]){z->batch * z->size, WIDTH});
    y = cd_zoo_op(z, "Gemm", 2, (const uint32_t[]){y, table}, 1, &turned);
    cd_zoo_result(z, cd_zoo_reshape(z, y, 3, (const int64_t[]){z->batch, z->size, WORDS}));
}
