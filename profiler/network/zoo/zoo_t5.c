/* T5 small (Raffel 2019): an encoder and a decoder that reads it, both whole sequences at a time.
 * Layers have no bias, norms no mean; scores get a learned number for each distance between words;
 * the table of words also makes the result. */
#include <math.h>
#include <stdlib.h>

#include "profiler/network/zoo/zoo_internal.h"

enum {
    WIDTH = 512,
    HEADS = 8,
    INNER = 2048,
    LAYERS = 6,
    WORDS = 32128,
    BUCKETS = 32,
    FARTHEST = 128
};

static uint32_t product(cd_zoo_builder *z, uint32_t x, int64_t in, int64_t out) {
    return cd_zoo_binary(z, "MatMul", x, cd_zoo_weight(z, 2, (const int64_t[]){in, out}));
}

/* x / sqrt(mean of x^2), in the operators that exporters write. */
static uint32_t rms_norm(cd_zoo_builder *z, uint32_t x) {
    const int64_t width = WIDTH;
    const cd_graph_attr last = cd_zoo_attr_ints("axes", 1, (const int64_t[]){-1});
    uint32_t mean = cd_zoo_binary(z, "Pow", x, cd_zoo_const_scalar(z, 2));
    mean = cd_zoo_op(z, "ReduceMean", 1, &mean, 1, &last);
    const uint32_t root =
        cd_zoo_unary(z, "Sqrt", cd_zoo_binary(z, "Add", mean, cd_zoo_const_scalar(z, 1e-6)));
    return cd_zoo_binary(z, "Mul", cd_zoo_binary(z, "Div", x, root), cd_zoo_weight(z, 1, &width));
}

/* Near distances have a number each, far ones share it, by logarithms. The encoder tells before
 * from behind; the decoder sees only what is before. */
static int64_t bucket(int64_t query, int64_t key, bool both) {
    const int64_t n = both ? BUCKETS / 2 : BUCKETS, exact = n / 2,
                  behind = both && key > query ? n : 0;
    const int64_t d = both ? llabs(key - query) : key < query ? query - key : 0;
    if (d < exact) return behind + d;
    const int64_t far =
        exact + (int64_t)(log((double)d / (double)exact) / log((double)FARTHEST / (double)exact) *
                          (double)(n - exact));
    return behind + (far < n ? far : n - 1);
}

/* (heads, length, length), added to the scores. */
static uint32_t distances(cd_zoo_builder *z, bool both) {
    const int64_t n = z->size;
    int64_t *v = z->st ? NULL : cd_mem_alloc((size_t)n * (size_t)n * sizeof *v);
    if (!z->st && !v) z->st = CD_FAIL(z->err, ENOMEM, "distances of %lld words", (long long)n);
    if (z->st) return CD_GRAPH_NONE;
    for (int64_t q = 0; q < n; q++)
        for (int64_t k = 0; k < n; k++) v[q * n + k] = bucket(q, k, both);
    const uint32_t table = cd_zoo_weight(z, 2, (const int64_t[]){BUCKETS, HEADS});
    const uint32_t x =
        cd_zoo_binary(z, "Gather", table, cd_zoo_const_ints(z, (uint32_t)(n * n), v));
    cd_mem_free(v);
    return cd_zoo_transpose(z, cd_zoo_reshape(z, x, 3, (const int64_t[]){n, n, HEADS}), 3,
                            (const int64_t[]){2, 0, 1});
}

/* ---- layers ---- */

static uint32_t heads_of(cd_zoo_builder *z, uint32_t x, bool key) {
    x = cd_zoo_reshape(z, product(z, x, WIDTH, WIDTH), 4,
                       (const int64_t[]){z->batch, z->size, HEADS, WIDTH / HEADS});
    return cd_zoo_transpose(z, x, 4,
                            key ? (const int64_t[]){0, 2, 3, 1} : (const int64_t[]){0, 2, 1, 3});
}

/* x + attention of x to what `from` has, or to x itself; bias: CD_GRAPH_NONE for none. */
static uint32_t attend(cd_zoo_builder *z, uint32_t x, uint32_t from, uint32_t bias, uint32_t mask) {
    const uint32_t in = rms_norm(z, x), to = from == CD_GRAPH_NONE ? in : from;
    const uint32_t q = heads_of(z, in, false), k = heads_of(z, to, true),
                   v = heads_of(z, to, false);
    uint32_t score = cd_zoo_binary(z, "MatMul", q, k);
    if (bias != CD_GRAPH_NONE) score = cd_zoo_binary(z, "Add", score, bias);
    score = cd_zoo_softmax(z, cd_zoo_binary(z, "Add", score, mask));
    const uint32_t y =
        cd_zoo_transpose(z, cd_zoo_binary(z, "MatMul", score, v), 4, (const int64_t[]){0, 2, 1, 3});
    return cd_zoo_binary(
        z, "Add", x,
        product(z, cd_zoo_reshape(z, y, 3, (const int64_t[]){z->batch, z->size, WIDTH}), WIDTH,
                WIDTH));
}

static uint32_t feed_forward(cd_zoo_builder *z, uint32_t x) {
    return cd_zoo_binary(
        z, "Add", x,
        product(z, cd_zoo_relu(z, product(z, rms_norm(z, x), WIDTH, INNER)), INNER, WIDTH));
}

static uint32_t words_of(cd_zoo_builder *z, const char *name, uint32_t table) {
    return cd_zoo_binary(z, "Gather", table,
                         cd_zoo_input(z, name, CD_I64, 2, (const int64_t[]){z->batch, z->size}));
}

void cd_zoo_t5_small(cd_zoo_builder *z, int64_t unused) {
    (void)unused;
    const cd_graph_attr turned = cd_zoo_attr_int("transB", 1);
    const uint32_t table = cd_zoo_weight(z, 2, (const int64_t[]){WORDS, WIDTH});
    uint32_t x = words_of(z, "input_ids", table), y = words_of(z, "decoder_input_ids", table);
    const uint32_t mask =
        cd_zoo_input(z, "mask", CD_F32, 4, (const int64_t[]){z->batch, 1, 1, z->size});
    const uint32_t causal = cd_zoo_input(z, "decoder_mask", CD_F32, 4,
                                         (const int64_t[]){z->batch, 1, z->size, z->size});
    const uint32_t there = distances(z, true), here = distances(z, false);
    for (int k = 0; k < LAYERS; k++) x = feed_forward(z, attend(z, x, CD_GRAPH_NONE, there, mask));
    x = rms_norm(z, x);
    for (int k = 0; k < LAYERS; k++)
        y = feed_forward(
            z, attend(z, attend(z, y, CD_GRAPH_NONE, here, causal), x, CD_GRAPH_NONE, mask));
    y = cd_zoo_binary(z, "Mul", rms_norm(z, y), cd_zoo_const_scalar(z, 1 / sqrt(WIDTH)));
    y = cd_zoo_reshape(z, y, 2, (const int64_t[]){z->batch * z->size, WIDTH});
    y = cd_zoo_op(z, "Gemm", 2, (const uint32_t[]){y, table}, 1, &turned);
    cd_zoo_result(z, cd_zoo_reshape(z, y, 3, (const int64_t[]){z->batch, z->size, WORDS}));
}
