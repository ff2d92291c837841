/* Transformers: BERT (Devlin 2018; tiny by Turc 2019), GPT-2 small (Radford 2019), ViT-B/16 (Dosovitskiy 2020). */
#include "profiler/network/zoo/zoo_internal.h"

typedef struct {
    int64_t length, width, heads;
} stream;

/* (batch, length, width) -> (batch, heads, length, width of a head); the key also swaps the last two. */
static uint32_t heads_of(cd_z *z, uint32_t x, stream s, bool key) {
    x = cd_z_reshape(z, x, 4, (const int64_t[]){z->batch, s.length, s.heads, s.width / s.heads});
    return cd_z_transpose(z, x, 4, key ? (const int64_t[]){0, 2, 3, 1} : (const int64_t[]){0, 2, 1, 3});
}

/* mask: added to the scores; CD_GRAPH_NONE for none. */
static uint32_t attention(cd_z *z, uint32_t x, stream s, uint32_t mask) {
    const uint32_t q = heads_of(z, cd_z_linear(z, x, s.width), s, false);
    const uint32_t k = heads_of(z, cd_z_linear(z, x, s.width), s, true);
    const uint32_t v = heads_of(z, cd_z_linear(z, x, s.width), s, false);
    double root = 1; /* sqrt of the width of a head, 64 in all of these */
    while (root * root < (double)(s.width / s.heads)) root++;
    uint32_t score = cd_z_op2(z, "Div", cd_z_op2(z, "MatMul", q, k), cd_z_scalar(z, root));
    if (mask != CD_GRAPH_NONE) score = cd_z_op2(z, "Add", score, mask);
    const uint32_t y = cd_z_transpose(z, cd_z_op2(z, "MatMul", cd_z_softmax(z, score), v), 4, (const int64_t[]){0, 2, 1, 3});
    return cd_z_linear(z, cd_z_reshape(z, y, 3, (const int64_t[]){z->batch, s.length, s.width}), s.width);
}

static uint32_t feed_forward(cd_z *z, uint32_t x, stream s, uint32_t (*act)(cd_z *, uint32_t)) {
    return cd_z_linear(z, act(z, cd_z_linear(z, x, 4 * s.width)), s.width);
}

/* ---- BERT: normalises after each half ---- */

static uint32_t token_embedding(cd_z *z, int64_t words, stream s) {
    const uint32_t id = cd_z_input(z, "input_ids", CD_I64, 2, (const int64_t[]){z->batch, s.length});
    const uint32_t position = cd_z_weight(z, 2, (const int64_t[]){s.length, s.width});
    return cd_z_op2(z, "Add", cd_z_embed(z, id, words, s.width), position);
}

void cd_zoo_bert(cd_z *z, int64_t width) {
    const stream s = {z->size, width, width / 64};
    const int layers = width == 128 ? 2 : width == 512 ? 8 : width == 768 ? 12 : 24;
    uint32_t x = token_embedding(z, 30522, s);
    const uint32_t type = cd_z_input(z, "token_type_ids", CD_I64, 2, (const int64_t[]){z->batch, z->size});
    x = cd_z_layer_norm(z, cd_z_op2(z, "Add", x, cd_z_embed(z, type, 2, width)));
    const uint32_t mask = cd_z_input(z, "mask", CD_F32, 4, (const int64_t[]){z->batch, 1, 1, z->size});
    for (int k = 0; k < layers; k++) {
        x = cd_z_layer_norm(z, cd_z_op2(z, "Add", x, attention(z, x, s, mask)));
        x = cd_z_layer_norm(z, cd_z_op2(z, "Add", x, feed_forward(z, x, s, cd_z_gelu)));
    }
    const uint32_t first = cd_z_op(z, "Gather", 2, (const uint32_t[]){x, cd_z_ints(z, 1, (const int64_t[]){0})}, 1,
                                   (const cd_gattr[]){cd_z_i("axis", 1)});
    cd_z_result(z, x);
    cd_z_result(z, cd_z_op1(z, "Tanh", cd_z_linear(z, first, width)));
}

/* ---- before each half ---- */

static uint32_t pre_norm_block(cd_z *z, uint32_t x, stream s, uint32_t mask, uint32_t (*act)(cd_z *, uint32_t)) {
    x = cd_z_op2(z, "Add", x, attention(z, cd_z_layer_norm(z, x), s, mask));
    return cd_z_op2(z, "Add", x, feed_forward(z, cd_z_layer_norm(z, x), s, act));
}

void cd_zoo_gpt2(cd_z *z, int64_t unused) {
    (void)unused;
    const stream s = {z->size, 768, 12};
    uint32_t x = token_embedding(z, 50257, s);
    const uint32_t causal = cd_z_weight(z, 2, (const int64_t[]){s.length, s.length});
    for (int k = 0; k < 12; k++) x = pre_norm_block(z, x, s, causal, cd_z_gelu_tanh);
    const uint32_t words = cd_z_weight(z, 2, (const int64_t[]){s.width, 50257});
    cd_z_result(z, cd_z_op2(z, "MatMul", cd_z_layer_norm(z, x), words));
}

void cd_zoo_vit(cd_z *z, int64_t unused) {
    (void)unused;
    const int64_t patches = (z->size / 16) * (z->size / 16);
    const stream s = {patches + 1, 768, 12};
    uint32_t x = cd_z_conv_bias(z, cd_z_image(z), 768, (cd_z_window){16, 16, 0}, 1);
    x = cd_z_transpose(z, cd_z_reshape(z, x, 3, (const int64_t[]){z->batch, 768, patches}), 3, (const int64_t[]){0, 2, 1});
    const uint32_t class = cd_z_weight(z, 3, (const int64_t[]){z->batch, 1, 768});
    x = cd_z_concat(z, 2, (const uint32_t[]){class, x}, 1);
    x = cd_z_op2(z, "Add", x, cd_z_weight(z, 3, (const int64_t[]){1, s.length, 768}));
    for (int k = 0; k < 12; k++) x = pre_norm_block(z, x, s, CD_GRAPH_NONE, cd_z_gelu);
    const uint32_t first = cd_z_op(z, "Gather", 2, (const uint32_t[]){cd_z_layer_norm(z, x), cd_z_ints(z, 1, (const int64_t[]){0})},
                                   1, (const cd_gattr[]){cd_z_i("axis", 1)});
    cd_z_result(z, cd_z_linear(z, first, 1000));
}
