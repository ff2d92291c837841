/* Transformers: BERT (Devlin 2018; tiny by Turc 2019), RoBERTa (Liu 2019), GPT-2 small (Radford
 * 2019), ViT-B/16 (Dosovitskiy 2020). */
#include "profiler/network/zoo/zoo_internal.h"

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
    return cd_zoo_binary(z, "Add", cd_zoo_embedding(z, id, words, s.width), position);
}

/* x: the embedding before its norm. The second result is the pooled first token. */
static void encoder(cd_zoo_builder *z, uint32_t x, stream s, int layers) {
    x = cd_zoo_layer_norm(z, x);
    const uint32_t mask =
        cd_zoo_input(z, "mask", CD_F32, 4, (const int64_t[]){z->batch, 1, 1, z->size});
    for (int k = 0; k < layers; k++) {
        x = cd_zoo_layer_norm(z, cd_zoo_binary(z, "Add", x, attention(z, x, s, mask)));
        x = cd_zoo_layer_norm(z, cd_zoo_binary(z, "Add", x, feed_forward(z, x, s, cd_zoo_gelu)));
    }
    const uint32_t first = cd_zoo_op(
        z, "Gather", 2, (const uint32_t[]){x, cd_zoo_const_ints(z, 1, (const int64_t[]){0})}, 1,
        (const cd_graph_attr[]){cd_zoo_attr_int("axis", 1)});
    cd_zoo_result(z, x);
    cd_zoo_result(z, cd_zoo_unary(z, "Tanh", cd_zoo_linear(z, first, s.width)));
}

/* The widths are those of the published sizes: 128 tiny, 512 medium, 768 base, 1024 large; a head
 * is 64 wide. */
void cd_zoo_bert(cd_zoo_builder *z, int64_t width) {
    const stream s = {z->size, width, width / 64};
    const int layers = width == 128 ? 2 : width == 512 ? 8 : width == 768 ? 12 : 24;
    const uint32_t x = token_embedding(z, 30522, s);
    const uint32_t type =
        cd_zoo_input(z, "token_type_ids", CD_I64, 2, (const int64_t[]){z->batch, z->size});
    encoder(z, cd_zoo_binary(z, "Add", x, cd_zoo_embedding(z, type, 2, width)), s, layers);
}

/* BERT base with more words, and one type for all of them. */
void cd_zoo_roberta(cd_zoo_builder *z, int64_t width) {
    const stream s = {z->size, width, width / 64};
    encoder(z, cd_zoo_binary(z, "Add", token_embedding(z, 50265, s), cd_zoo_weight(z, 1, &width)),
            s, 12);
}

/* ---- before each half ---- */

static uint32_t pre_norm_block(cd_zoo_builder *z, uint32_t x, stream s, uint32_t mask,
                               uint32_t (*act)(cd_zoo_builder *, uint32_t)) {
    x = cd_zoo_binary(z, "Add", x, attention(z, cd_zoo_layer_norm(z, x), s, mask));
    return cd_zoo_binary(z, "Add", x, feed_forward(z, cd_zoo_layer_norm(z, x), s, act));
}

void cd_zoo_gpt2(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    const stream s = {z->size, 768, 12};
    uint32_t x = token_embedding(z, 50257, s);
    const uint32_t causal = cd_zoo_weight(z, 2, (const int64_t[]){s.length, s.length});
    for (int k = 0; k < 12; k++) x = pre_norm_block(z, x, s, causal, cd_zoo_gelu_tanh);
    const uint32_t words = cd_zoo_weight(z, 2, (const int64_t[]){s.width, 50257});
    cd_zoo_result(z, cd_zoo_binary(z, "MatMul", cd_zoo_layer_norm(z, x), words));
}

/* The image is cut into patches of 16 x 16 by a convolution of stride 16; a class token comes
 * first. */
void cd_zoo_vit(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    const int64_t patches = (z->size / 16) * (z->size / 16);
    const stream s = {patches + 1, 768, 12};
    uint32_t x = cd_zoo_conv_bias(z, cd_zoo_image(z), 768, (cd_zoo_window){16, 16, 0}, 1);
    x = cd_zoo_transpose(z, cd_zoo_reshape(z, x, 3, (const int64_t[]){z->batch, 768, patches}), 3,
                         (const int64_t[]){0, 2, 1});
    const uint32_t class = cd_zoo_weight(z, 3, (const int64_t[]){z->batch, 1, 768});
    x = cd_zoo_concat(z, 2, (const uint32_t[]){class, x}, 1);
    x = cd_zoo_binary(z, "Add", x, cd_zoo_weight(z, 3, (const int64_t[]){1, s.length, 768}));
    for (int k = 0; k < 12; k++) x = pre_norm_block(z, x, s, CD_GRAPH_NONE, cd_zoo_gelu);
    const uint32_t first = cd_zoo_op(
        z, "Gather", 2,
        (const uint32_t[]){cd_zoo_layer_norm(z, x), cd_zoo_const_ints(z, 1, (const int64_t[]){0})},
        1, (const cd_graph_attr[]){cd_zoo_attr_int("axis", 1)});
    cd_zoo_result(z, cd_zoo_linear(z, first, 1000));
}
