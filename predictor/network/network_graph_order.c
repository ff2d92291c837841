/* The order to run in: depth first along the edges into a node, from the nodes as they were added.
 * A graph that is already in an order keeps it. */
#include <stdio.h>
#include <string.h>

#include "predictor/network/network_internal.h"

enum { MOST_NAMED = 8 };

/* path (n): each comes after the next, the last after the first. */
static cdmpp_status fail_cycle(const cd_network_builder *m, const uint32_t *path, uint32_t n,
                               cdmpp_err *err) {
    char text[512];
    size_t at = 0;
    for (uint32_t i = 0; i < n && i < MOST_NAMED; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "\"%.40s\" after ",
                               m->node[path[i]].name);
    snprintf(text + at, sizeof text - at, n > MOST_NAMED ? "... after \"%.40s\"" : "\"%.40s\"",
             m->node[path[0]].name);
    return CD_FAIL(err, EINVALID, "a cycle of %u: %s", n, text);
}

static cdmpp_status cycle_at(const cd_network_builder *m, const uint32_t *stack, uint32_t depth,
                             uint32_t again, cdmpp_err *err) {
    uint32_t from = depth - 1;
    while (stack[from] != again) from--;
    return fail_cycle(m, stack + from, depth - from, err);
}

/* Depth-first search with its own stack: a graph may be a chain of a million nodes. A node is put
 * down when all before it are; an edge to an open node closes a cycle. */
cdmpp_status cd_network_graph_order(const cd_network_builder *m, const cd_network_in_edges *e,
                                    cd_arena *scratch, uint32_t *order, cdmpp_err *err) {
    enum { NEW, OPEN, DONE };
    const uint32_t n = (uint32_t)m->n_node;
    uint32_t *stack = cd_arena_alloc(scratch, (size_t)n + 1, sizeof *stack), end = 0;
    uint32_t *next = cd_arena_alloc(scratch, (size_t)n + 1, sizeof *next);
    unsigned char *is = CD_NEWN(scratch, unsigned char, (size_t)n + 1);
    if (!stack || !next || !is) return CD_FAIL(err, ENOMEM, "order of %u nodes", n);
    memcpy(next, e->first, n * sizeof *next);
    for (uint32_t root = 0; root < n; root++) {
        uint32_t depth = 0;
        if (is[root] == NEW) is[root] = OPEN, stack[depth++] = root;
        while (depth) {
            const uint32_t k = stack[depth - 1];
            if (next[k] == e->first[k + 1]) {
                is[k] = DONE;
                order[end++] = k;
                depth--;
                continue;
            }
            const uint32_t before = e->into[next[k]++];
            if (is[before] == OPEN) return cycle_at(m, stack, depth, before, err);
            if (is[before] == NEW) is[before] = OPEN, stack[depth++] = before;
        }
    }
    return CDMPP_OK;
}
