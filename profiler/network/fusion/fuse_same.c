/* Weights that a file makes several times of one tensor: exporters write a Transpose for each use
 * of a table. */
#include <string.h>

#include "profiler/network/fusion/fuse_import_internal.h"

typedef struct table {
    const cd_graph *g;
    uint32_t *same;      /* (tensors) */
    uint32_t *slot, cap; /* 1 + number of a folded node; 0: free */
} table;

static uint64_t mix(uint64_t h, uint64_t v) { return (h ^ v) * 0x100000001b3U; }

static uint32_t operand(const table *t, const cd_graph_node *n, uint32_t k) {
    return n->in[k] == CD_GRAPH_NONE ? CD_GRAPH_NONE : t->same[n->in[k]];
}

static uint64_t key_of(const table *t, const cd_graph_node *n) {
    uint64_t h = 0xcbf29ce484222325U;
    for (const char *s = n->op; *s; s++) h = mix(h, (unsigned char)*s);
    for (uint32_t k = 0; k < n->n_in; k++) h = mix(h, operand(t, n, k));
    return h ^ h >> 31;
}

static bool is_same_attr(const cd_graph_attr *a, const cd_graph_attr *b) {
    if (a->kind != b->kind || strcmp(a->name, b->name) != 0) return false;
    switch (a->kind) {
    case CD_GRAPH_ATTR_INT: return a->i == b->i;
    case CD_GRAPH_ATTR_FLOAT: return !memcmp(&a->f, &b->f, sizeof a->f);
    case CD_GRAPH_ATTR_STR: return !strcmp(a->s, b->s);
    case CD_GRAPH_ATTR_INTS:
        return a->n == b->n && (!a->n || !memcmp(a->ints, b->ints, a->n * sizeof *a->ints));
    default:
        return a->n == b->n && (!a->n || !memcmp(a->floats, b->floats, a->n * sizeof *a->floats));
    }
}

static bool is_same(const table *t, const cd_graph_node *a, const cd_graph_node *b) {
    if (strcmp(a->op, b->op) != 0 || a->n_in != b->n_in || a->n_out != b->n_out ||
        a->n_attr != b->n_attr)
        return false;
    for (uint32_t k = 0; k < a->n_in; k++)
        if (operand(t, a, k) != operand(t, b, k)) return false;
    for (uint32_t k = 0; k < a->n_attr; k++)
        if (!is_same_attr(&a->attr[k], &b->attr[k])) return false;
    for (uint32_t k = 0; k < a->n_out; k++)
        if (t->g->tensor[a->out[k]].dtype != t->g->tensor[b->out[k]].dtype) return false;
    return true;
}

/* A node is told by what it reads: names of its own do not count. */
static void take(table *t, uint32_t node) {
    const cd_graph_node *n = &t->g->node[node];
    uint64_t k = key_of(t, n);
    uint32_t *s = &t->slot[k & (t->cap - 1)];
    while (*s && !is_same(t, n, &t->g->node[*s - 1])) s = &t->slot[++k & (t->cap - 1)];
    if (!*s) *s = node + 1;
    else
        for (uint32_t o = 0; o < n->n_out; o++) t->same[n->out[o]] = t->g->node[*s - 1].out[o];
}

cdmpp_status cd_fuse_same_weights(const cd_graph *g, cd_arena *a, uint32_t **same, cdmpp_err *err) {
    table t = {.g = g, .same = CD_NEWN(a, uint32_t, g->n_tensor + 1), .cap = 64};
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_node; i++) n += g->node[i].folded;
    while (t.cap < 2 * n) t.cap *= 2;
    t.slot = CD_NEWN(a, uint32_t, t.cap);
    if (!t.same || !t.slot) return CD_FAIL(err, ENOMEM, "out of memory for a graph");
    for (uint32_t i = 0; i < g->n_tensor; i++) t.same[i] = i;
    for (uint32_t i = 0; i < g->n_node; i++)
        if (g->node[i].folded && g->node[i].n_in && !g->node[i].opaque) take(&t, i);
    *same = t.same;
    return CDMPP_OK;
}
