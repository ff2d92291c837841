/* made_onnx.h -- an ONNX file written byte by byte, weights without content; and a network of many
 * small branches (as RandWire, ICCV 2019).
 *
 *   mo_randwire(&b, seed, nodes, channels, edge):  x ─ node 0 ─┬─ node 2 ── ...
 *                                                             └─ node 3 ── ...  node: sum of up to
 *     three nodes before, Relu, a depthwise and a 1x1 Conv */
#ifndef MADE_ONNX_H
#define MADE_ONNX_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"

static inline void mo_varint(cd_buf *b, uint64_t v) {
    for (; v > 127; v >>= 7) cd_buf_put(b, &(char){(char)(v | 128)}, 1);
    cd_buf_put(b, &(char){(char)v}, 1);
}
static inline void mo_int(cd_buf *b, uint32_t field, uint64_t v) {
    mo_varint(b, field << 3);
    mo_varint(b, v);
}
static inline void mo_bytes(cd_buf *b, uint32_t field, const char *p, size_t n) {
    mo_varint(b, field << 3 | 2);
    mo_varint(b, n);
    if (n) cd_buf_put(b, p, n);
}
static inline void mo_text(cd_buf *b, uint32_t field, const char *s) {
    mo_bytes(b, field, s, strlen(s));
}
/* A message made in `from`, which is freed. */
static inline void mo_message(cd_buf *b, uint32_t field, cd_buf *from) {
    if (from->oom) abort();
    mo_bytes(b, field, from->p, from->n);
    cd_buf_free(from);
}

/* float32 tensors without content, among the initializers (5), and inputs and outputs (11, 12). */
static inline void mo_weight(cd_buf *graph, const char *name, uint32_t rank, const int64_t *dim) {
    cd_buf t = {0};
    for (uint32_t k = 0; k < rank; k++) mo_int(&t, 1, (uint64_t)dim[k]);
    mo_int(&t, 2, 1);
    mo_text(&t, 8, name);
    mo_message(graph, 5, &t);
}
static inline void mo_value(cd_buf *graph, uint32_t field, const char *name, uint32_t rank,
                            const int64_t *dim) {
    cd_buf shape = {0}, tensor = {0}, type = {0}, value = {0};
    for (uint32_t k = 0; k < rank; k++) {
        cd_buf d = {0};
        mo_int(&d, 1, (uint64_t)dim[k]);
        mo_message(&shape, 1, &d);
    }
    mo_int(&tensor, 1, 1);
    mo_message(&tensor, 2, &shape);
    mo_message(&type, 1, &tensor);
    mo_text(&value, 1, name);
    mo_message(&value, 2, &type);
    mo_message(graph, field, &value);
}
static inline void mo_ints(cd_buf *node, const char *name, uint32_t n, int64_t each) {
    cd_buf a = {0};
    mo_text(&a, 1, name);
    for (uint32_t k = 0; k < n; k++) mo_int(&a, 8, (uint64_t)each);
    mo_int(&a, 20, 7);
    mo_message(node, 5, &a);
}
/* inputs: words with blanks between. group 0: no attributes; else a Conv of `kernel` x `kernel`. */
static inline void mo_node(cd_buf *graph, const char *op, const char *inputs, const char *output,
                           int64_t kernel, int64_t group) {
    cd_buf n = {0}, a = {0};
    for (const char *s = inputs; *s; s += strcspn(s, " "), s += *s == ' ')
        mo_bytes(&n, 1, s, strcspn(s, " "));
    mo_text(&n, 2, output);
    mo_text(&n, 3, output);
    mo_text(&n, 4, op);
    if (group) {
        mo_ints(&n, "kernel_shape", 2, kernel);
        mo_ints(&n, "pads", 4, kernel / 2);
        mo_text(&a, 1, "group");
        mo_int(&a, 3, (uint64_t)group);
        mo_int(&a, 20, 2);
        mo_message(&n, 5, &a);
    }
    mo_message(graph, 1, &n);
}

/* One node of the network: what it reads summed up, then the two convolutions. */
static inline void mo_randwire_node(cd_buf *g, uint64_t seed, uint32_t k, int64_t channels) {
    const uint32_t reads = k ? 1 + (uint32_t)(cd_rng_at(seed, 8 * k) % 3) : 1;
    char sum[32] = "x", in[80], out[32];
    for (uint32_t i = 0; i < reads && k; i++) {
        const uint32_t window = k < 8 ? k : 8;
        snprintf(out, sizeof out, "n%u",
                 k - 1 - (uint32_t)(cd_rng_at(seed, 8 * k + 1 + i) % window));
        snprintf(in, sizeof in, "%s %s", sum, out);
        if (i) snprintf(sum, sizeof sum, "s%u_%u", k, i), mo_node(g, "Add", in, sum, 0, 0);
        else snprintf(sum, sizeof sum, "%s", out);
    }
    snprintf(out, sizeof out, "r%u", k), mo_node(g, "Relu", sum, out, 0, 0);
    snprintf(in, sizeof in, "r%u dw%u", k, k), snprintf(out, sizeof out, "d%u", k);
    mo_node(g, "Conv", in, out, 3, channels);
    snprintf(in, sizeof in, "d%u pw%u", k, k), snprintf(out, sizeof out, "n%u", k);
    mo_node(g, "Conv", in, out, 1, 1);
    snprintf(out, sizeof out, "dw%u", k), mo_weight(g, out, 4, (int64_t[]){channels, 1, 3, 3});
    snprintf(out, sizeof out, "pw%u", k),
        mo_weight(g, out, 4, (int64_t[]){channels, channels, 1, 1});
}

/* The result is the sum of the last eight nodes. */
static inline void mo_randwire(cd_buf *model, uint64_t seed, uint32_t nodes, int64_t channels,
                               int64_t edge) {
    const int64_t dim[] = {1, channels, edge, edge};
    char in[80], out[32] = "";
    cd_buf g = {0}, opset = {0};
    for (uint32_t k = 0; k < nodes; k++) mo_randwire_node(&g, seed, k, channels);
    snprintf(out, sizeof out, "n%u", nodes - 1);
    for (uint32_t k = nodes < 8 ? 0 : nodes - 8; k + 1 < nodes; k++) {
        snprintf(in, sizeof in, "%s n%u", out, k);
        snprintf(out, sizeof out, k + 2 < nodes ? "y%u" : "y", k);
        mo_node(&g, "Add", in, out, 0, 0);
    }
    mo_text(&g, 2, "randwire");
    mo_value(&g, 11, "x", 4, dim);
    mo_value(&g, 12, "y", 4, dim);
    mo_int(model, 1, 8);
    mo_int(&opset, 2, 13);
    mo_message(model, 7, &g);
    mo_message(model, 8, &opset);
}
#endif
