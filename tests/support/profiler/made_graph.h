/* made_graph.h -- graphs in one line each: `gm_add(&m, "Conv", "strides=2,2 group=1", x, w)`.
 * Attributes: name=1 an integer, name=1.5 a real, name=1,2 integers, name=1. reals,
 * name=[] no integers, name=[4] one, anything else a text. Errors stay in m.err. */
#ifndef MADE_GRAPH_H
#define MADE_GRAPH_H
#include <stdlib.h>
#include <string.h>

#include "profiler/network/graph/graph.h"

typedef struct gm {
    cd_graph *g;
    cdmpp_err err;
    cdmpp_status st; /* of the last gm_add */
    uint32_t n_out;  /* results to ask for; 0: one. Back to 0 after each gm_add */
    uint32_t out[16];
} gm;

static inline cd_graph_shape gm_shape(uint32_t n, const int64_t *d) {
    cd_graph_shape s = {.rank = n};
    memcpy(s.dim, d, n * sizeof *d);
    return s;
}
#define GM_SHAPE(...) gm_shape(sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__})
#define gm_x(m, ...)  gm_source((m), false, GM_SHAPE(__VA_ARGS__))
#define gm_w(m, ...)  gm_source((m), true, GM_SHAPE(__VA_ARGS__))
#define gm_ints(m, ...)                                                                            \
    gm_const_ints((m), sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__})
#define gm_reals(m, ...)                                                                           \
    gm_const_reals((m), sizeof((double[]){__VA_ARGS__}) / 8, (double[]){__VA_ARGS__})

static inline uint32_t gm_source(gm *m, bool weight, cd_graph_shape s) {
    uint32_t t = CD_GRAPH_NONE;
    m->st = weight ? cd_graph_weight(m->g, "w", CD_F32, &s, &t, &m->err)
                   : cd_graph_input(m->g, "x", CD_F32, &s, &t, &m->err);
    return t;
}

static inline uint32_t gm_const_ints(gm *m, int64_t n, const int64_t *v) {
    uint32_t t = CD_GRAPH_NONE;
    const cd_graph_shape s = {1, {n}};
    m->st = cd_graph_constant(m->g, "c", CD_I64, &s, v, NULL, &t, &m->err);
    return t;
}

static inline uint32_t gm_const_reals(gm *m, int64_t n, const double *v) {
    uint32_t t = CD_GRAPH_NONE;
    const cd_graph_shape s = {1, {n}};
    m->st = cd_graph_constant(m->g, "c", CD_F32, &s, NULL, v, &t, &m->err);
    return t;
}

static inline uint32_t gm_scalar(gm *m, int64_t v) {
    uint32_t t = CD_GRAPH_NONE;
    const cd_graph_shape s = {0};
    m->st = cd_graph_constant(m->g, "c", CD_I64, &s, &v, NULL, &t, &m->err);
    return t;
}

/* One attribute from its text; the numbers stay in the static arrays of the caller. */
static inline cd_graph_attr gm_attr(char *text, int64_t *ints, double *reals) {
    cd_graph_attr a = {.name = text, .ints = ints, .floats = reals};
    char *v = strchr(text, '='), *end;
    *v++ = 0;
    const bool list = strchr(v, ',') || *v == '[';
    if (*v == '[') v++;
    a.kind = list ? CD_GRAPH_ATTR_INTS : CD_GRAPH_ATTR_INT;
    for (end = v; *v && *v != ']'; v = end + (*end == ',')) {
        ints[a.n] = strtoll(v, &end, 10);
        if (*end == '.' || *end == 'e') a.kind = list ? CD_GRAPH_ATTR_FLOATS : CD_GRAPH_ATTR_FLOAT;
        if (*end == '.' || *end == 'e') reals[a.n] = strtod(v, &end);
        else reals[a.n] = (double)ints[a.n];
        if (end == v) break;
        a.n++;
    }
    a.i = ints[0];
    a.f = reals[0];
    if (*v && *v != ']') a = (cd_graph_attr){.name = text, .kind = CD_GRAPH_ATTR_STR, .s = v};
    return a;
}

static inline uint32_t gm_addv(gm *m, const char *op, const char *attrs, const uint32_t *in,
                               uint32_t n_in) {
    char text[512];
    int64_t ints[12][16];
    double reals[12][16];
    cd_graph_attr attr[12];
    uint32_t n = 0;
    strncpy(text, attrs, sizeof text - 1);
    text[sizeof text - 1] = 0;
    for (char *p = strtok(text, " "); p; p = strtok(NULL, " "), n++)
        attr[n] = gm_attr(p, ints[n], reals[n]);
    memset(&m->err, 0, sizeof m->err);
    m->st =
        cd_graph_add(m->g, "n", op, in, n_in, attr, n, m->out, m->n_out ? m->n_out : 1, &m->err);
    m->n_out = 0;
    return m->st ? CD_GRAPH_NONE : m->out[0];
}
#define gm_add(m, op, attrs, ...)                                                                  \
    gm_addv((m), (op), (attrs), (uint32_t[]){__VA_ARGS__},                                         \
            sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
#endif
