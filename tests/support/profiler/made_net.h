/* made_net.h -- small graphs for tests, written tersely.
 *
 *   mg m = mg_new("case");
 *   uint32_t x = mg_in(&m, 3, 1, 3, 8), w = mg_w(&m, 3, 4, 3, 3);
 *   mg_end(&m, mg_op(&m, "Conv", "pads:1,1 strides:2 group=1 alpha~0.5 mode'linear", 2, x, w)); */
#ifndef MADE_NET_H
#define MADE_NET_H
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "profiler/network/graph/graph.h"

typedef struct mg {
    cd_graph *g;
    uint32_t n_made, n_named;
    uint32_t out[8]; /* results of the last operator */
} mg;

static inline mg mg_new(const char *name, int opset) {
    cdmpp_err err = {0};
    mg m = {0};
    assert_ok(cd_graph_new(name, &m.g, &err));
    m.g->opset = opset;
    return m;
}

static inline cd_graph_shape mg_shape(int rank, va_list ap) {
    cd_graph_shape s = {(uint32_t)rank, {0}};
    for (int d = 0; d < rank; d++) s.dim[d] = va_arg(ap, int);
    return s;
}

static inline uint32_t mg_tensor(mg *m, bool weight, cd_dtype t, int rank, va_list ap) {
    cdmpp_err err = {0};
    char name[32];
    uint32_t id;
    const cd_graph_shape s = mg_shape(rank, ap);
    /* its number among inputs and weights seeds its content */
    snprintf(name, sizeof name, "%u", m->n_made++);
    if (weight) assert_ok(cd_graph_weight(m->g, name, t, &s, &id, &err));
    else assert_ok(cd_graph_input(m->g, name, t, &s, &id, &err));
    return id;
}

static inline uint32_t mg_in(mg *m, int rank, ...) {
    va_list ap;
    va_start(ap, rank);
    const uint32_t id = mg_tensor(m, false, CD_F32, rank, ap);
    va_end(ap);
    return id;
}

static inline uint32_t mg_w(mg *m, int rank, ...) {
    va_list ap;
    va_start(ap, rank);
    const uint32_t id = mg_tensor(m, true, CD_F32, rank, ap);
    va_end(ap);
    return id;
}

/* A weight of n squares. */
static inline uint32_t mg_squares(mg *m, int n) {
    cdmpp_err err = {0};
    const cd_graph_shape s = {1, {n}};
    char name[32];
    uint32_t id;
    snprintf(name, sizeof name, "%u", 1000 + m->n_made++);
    assert_ok(cd_graph_weight(m->g, name, CD_F32, &s, &id, &err));
    return id;
}

/* n known integers, and a known real without dimensions. */
static inline uint32_t mg_ints(mg *m, int n, ...) {
    cdmpp_err err = {0};
    int64_t v[16];
    va_list ap;
    uint32_t id;
    char name[32];
    const cd_graph_shape s = {1, {n}};
    va_start(ap, n);
    for (int i = 0; i < n; i++) v[i] = va_arg(ap, int);
    va_end(ap);
    snprintf(name, sizeof name, "ints%u", m->n_named++);
    assert_ok(cd_graph_constant(m->g, name, CD_I64, &s, v, NULL, &id, &err));
    return id;
}

static inline uint32_t mg_real(mg *m, double v) {
    cdmpp_err err = {0};
    uint32_t id;
    char name[32];
    const cd_graph_shape s = {0, {0}};
    snprintf(name, sizeof name, "real%u", m->n_named++);
    assert_ok(cd_graph_constant(m->g, name, CD_F32, &s, NULL, &v, &id, &err));
    return id;
}

static inline void mg_attr(const char *word, char *name, int64_t *ints, char *text,
                           cd_graph_attr *a) {
    const size_t n = strcspn(word, ":=~'");
    memcpy(name, word, n);
    name[n] = '\0';
    *a = (cd_graph_attr){.name = name};
    const char *p = word + n + 1;
    switch (word[n]) {
    case '=': a->kind = CD_GRAPH_ATTR_INT, a->i = atol(p); break;
    case '~': a->kind = CD_GRAPH_ATTR_FLOAT, a->f = atof(p); break;
    case '\'': a->kind = CD_GRAPH_ATTR_STR, a->s = strcpy(text, p); break;
    default:
        a->kind = CD_GRAPH_ATTR_INTS;
        a->ints = ints;
        for (char *end; *p; p = end + (*end == ',')) ints[a->n++] = strtol(p, &end, 10);
    }
}

/* Operator with n operands (CD_GRAPH_NONE: absent) and `results`; the first one's number. */
static inline uint32_t mg_ops(mg *m, const char *op, const char *attrs, uint32_t results, int n,
                              ...) {
    cdmpp_err err = {0};
    char words[256], name[8][40], text[8][40];
    int64_t ints[8][16];
    cd_graph_attr a[8];
    uint32_t in[8], k = 0;
    va_list ap;
    va_start(ap, n);
    for (int i = 0; i < n; i++) in[i] = va_arg(ap, uint32_t);
    va_end(ap);
    snprintf(words, sizeof words, "%s", attrs);
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " "), k++)
        mg_attr(w, name[k], ints[k], text[k], &a[k]);
    snprintf(words, sizeof words, "%s_%u", op, m->n_named++);
    assert_ok(cd_graph_add(m->g, words, op, in, (uint32_t)n, a, k, m->out, results, &err));
    return m->out[0];
}
#define mg_op(m, op, attrs, ...) mg_ops(m, op, attrs, 1, __VA_ARGS__)

static inline void mg_end(mg *m, uint32_t result) {
    cdmpp_err err = {0};
    assert_ok(cd_graph_result(m->g, result, &err));
}

/* Small multiples of 1/8 in -0.75 .. 0.75; of the tensor called k. */
static inline double mg_content(const cd_graph *g, uint32_t tensor, int64_t i) {
    const long name = atol(g->tensor[tensor].name), k = name % 1000;
    const double v = (double)((i * 7 + k * 5 + i * i % 3) % 13 - 6) / 8.0;
    return name < 1000 ? v : v * v;
}
#endif
