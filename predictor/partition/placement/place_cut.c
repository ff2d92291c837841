/* Minimum cut by Dinic's algorithm. Depth-first search keeps its own stack, because a network can
 * be thousands of operators deep. */
#include "predictor/partition/placement/place_cut_internal.h"

#include <string.h>

typedef struct {
    uint32_t n_node, source, sink;
    uint32_t *first, *to, *twin; /* arcs of node v: first[v] .. first[v+1]; the arc back */
    int64_t *room;
    uint32_t *level, *at, *queue, *path;
} net;

/* A counting sort of the arcs by node. Each arc is stored twice, once at either end, and twin leads
 * from one to the other. */
static cdmpp_status build(cd_arena *a, const cd_place_cut_arc *arc, uint32_t n_arc, net *g,
                          cdmpp_err *err) {
    const size_t n = (size_t)g->n_node + 2, m = (size_t)n_arc * 2 + 1;
    g->first = CD_NEWN(a, uint32_t, n + 1), g->to = CD_NEWN(a, uint32_t, m),
    g->twin = CD_NEWN(a, uint32_t, m), g->room = CD_NEWN(a, int64_t, m);
    g->level = CD_NEWN(a, uint32_t, n), g->at = CD_NEWN(a, uint32_t, n),
    g->queue = CD_NEWN(a, uint32_t, n), g->path = CD_NEWN(a, uint32_t, n);
    if (!g->first || !g->to || !g->twin || !g->room || !g->level || !g->at || !g->queue || !g->path)
        return CD_FAIL(err, ENOMEM, "cut of %u nodes", g->n_node);
    for (uint32_t k = 0; k < n_arc; k++) g->first[arc[k].from + 2]++, g->first[arc[k].to + 2]++;
    for (uint32_t v = 0; v < g->n_node; v++) g->first[v + 2] += g->first[v + 1];
    for (uint32_t k = 0; k < n_arc; k++) {
        const uint32_t i = g->first[arc[k].from + 1]++, j = g->first[arc[k].to + 1]++;
        g->to[i] = arc[k].to, g->twin[i] = j, g->room[i] = arc[k].there;
        g->to[j] = arc[k].from, g->twin[j] = i, g->room[j] = arc[k].back;
    }
    return CDMPP_OK;
}

static bool levels(net *g) {
    uint32_t n = 1;
    memset(g->level, 0, g->n_node * sizeof *g->level);
    g->level[g->source] = 1, g->queue[0] = g->source;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t v = g->queue[i];
        for (uint32_t j = g->first[v]; j < g->first[v + 1]; j++)
            if (g->room[j] > 0 && !g->level[g->to[j]])
                g->level[g->to[j]] = g->level[v] + 1, g->queue[n++] = g->to[j];
    }
    return g->level[g->sink] != 0;
}

static int64_t push(net *g, uint32_t depth) {
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < depth; i++)
        if (g->room[g->path[i]] < least) least = g->room[g->path[i]];
    for (uint32_t i = 0; i < depth; i++)
        g->room[g->path[i]] -= least, g->room[g->twin[g->path[i]]] += least;
    return least;
}

/* Paths of one round of levels, with the path as a stack of arcs. */
static int64_t blocking(net *g) {
    int64_t sum = 0;
    uint32_t depth = 0, v = g->source;
    memcpy(g->at, g->first, g->n_node * sizeof *g->at);
    for (;;) {
        if (v == g->sink) {
            sum += push(g, depth);
            uint32_t keep = 0;
            while (keep < depth && g->room[g->path[keep]] > 0) keep++;
            v = g->to[g->twin[g->path[keep]]], depth = keep;
            continue;
        }
        uint32_t j = g->at[v];
        while (j < g->first[v + 1] && !(g->room[j] > 0 && g->level[g->to[j]] == g->level[v] + 1))
            j++;
        g->at[v] = j;
        if (j < g->first[v + 1]) {
            g->path[depth++] = j;
            v = g->to[j];
        } else if (depth) {
            v = g->to[g->twin[g->path[--depth]]];
            g->at[v]++;
        } else return sum;
    }
}

cdmpp_status cd_place_cut_solve(const cd_place_cut_arc *arc, uint32_t n_arc, uint32_t n_node,
                                uint32_t source, uint32_t sink, bool *side, int64_t *flow,
                                cdmpp_err *err) {
    cd_arena own = {0};
    net g = {.n_node = n_node, .source = source, .sink = sink};
    const cdmpp_status st = build(&own, arc, n_arc, &g, err);
    *flow = 0;
    if (!st) {
        while (levels(&g)) *flow += blocking(&g);
        for (uint32_t v = 0; v < n_node; v++) side[v] = g.level[v] != 0;
    }
    cd_arena_free(&own);
    return st;
}
