/* graph_check.h -- the invariants of graph.h; aborts where one does not hold. */
#ifndef GRAPH_CHECK_H
#define GRAPH_CHECK_H
#include <math.h>
#include <stdlib.h>

#include "profiler/network/graph/graph.h"

static inline void graph_check_node(const cd_graph *g, uint32_t i) {
    const cd_graph_node *n = &g->node[i];
    if (!(n->flop >= 0) || isinf(n->flop) || ((n->folded || n->view) && n->flop > 0)) abort();
    for (uint32_t o = 0; o < n->n_out; o++) {
        if (g->tensor[n->out[o]].node != i) abort();
        if (n->folded && !cd_graph_tensor_is_static(&g->tensor[n->out[o]])) abort();
        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k] != CD_GRAPH_NONE && n->in[k] >= n->out[o]) abort();
    }
    for (uint32_t a = 0; a < n->n_attr; a++)
        if (cd_graph_node_attr(n, n->attr[a].name) == NULL) abort();
}

static inline void graph_check(const cd_graph *g) {
    int64_t kept = 0;
    for (uint32_t i = 0; i < g->n_tensor; i++) {
        const cd_graph_tensor *t = &g->tensor[i];
        if (cd_graph_shape_check(&t->shape, NULL) || !t->dtype) abort();
        if (t->node != CD_GRAPH_NONE && t->node >= g->n_node) abort();
        if ((t->value || t->fvalue) && cd_graph_shape_elements(&t->shape) > CD_GRAPH_MAX_VALUE)
            abort();
        if ((t->value && cd_expr_dtype_is_float(t->dtype)) ||
            (t->fvalue && !cd_expr_dtype_is_float(t->dtype)))
            abort();
        /* readable */
        for (int64_t k = 0; t->value && k < cd_graph_shape_elements(&t->shape); k++)
            kept += t->value[k] != 0;
    }
    if (g->n_value > CD_GRAPH_MAX_VALUES || kept < 0) abort();
    for (uint32_t i = 0; i < g->n_node; i++) graph_check_node(g, i);
}
#endif
