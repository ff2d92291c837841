/* Sizes of a kernel: what its buffers and its first windowed operator say. They do not depend on
 * the layout of the data, so that a kernel is the same inside a network and alone. */
#include <string.h>

#include "learner/kernels/kernels.h"

enum {
    FLOP,
    READ,
    WEIGHTS,
    WRITTEN,
    OUT_BATCH,
    OUT_CHANNELS,
    OUT_PLACES,
    IN_CHANNELS,
    IN_PLACES,
    WINDOW,
    STRIDE,
    GROUPS,
    BUFFERS
};
static const char *const column[CD_KERNEL_WIDTH] = {
    "flop",         "read_bytes", "weight_bytes", "written_bytes", "out_batch",
    "out_channels", "out_places", "in_channels",  "in_places",     "window",
    "stride",       "groups",     "buffers"};

const char *cd_kernel_column_name(size_t k) { return column[k]; }

/* Operators of the group as rules of fusion name them, views left out, runs of equal ones once. */
static void put_type(cd_buf *b, const cd_workload *w, const cd_workload_group *g) {
    const char *last = "";
    for (uint32_t k = 0; k < g->n_node; k++) {
        const cd_graph_node *n = &w->graph->node[g->node[k]];
        const char *name = cd_fusion_rules_name(w->graph, n);
        if (n->view || !strcmp(name, last)) continue;
        cd_buf_putf(b, "%s%s", b->n ? "+" : "", name);
        last = name;
    }
    if (!b->n) cd_buf_puts(b, "LayoutTransform");
}

static double product_of(const cd_graph_attr *a) {
    double v = 1;
    for (uint32_t k = 0; a && a->kind == CD_GRAPH_ATTR_INTS && k < a->n; k++)
        v *= (double)a->ints[k];
    return v;
}

/* Batch, channels and places of the graph's tensor: [N, C, H, W]; of matrices columns are
 * channels. */
static void put_shape(const cd_graph_shape *s, double *batch, double *channels, double *places) {
    *batch = s->rank > 2 ? (double)s->dim[0] : 1;
    *channels = s->rank > 2 ? (double)s->dim[1] : s->rank ? (double)s->dim[s->rank - 1] : 1;
    *places =
        (double)cd_graph_shape_elements(s) / (*batch * *channels > 0 ? *batch * *channels : 1);
}

/* Of a change of layout there is no operator: its buffer says how much it is. */
static void put_operators(const cd_workload *w, const cd_workload_group *g, double *x) {
    const cd_graph *graph = w->graph;
    double batch;
    x[WINDOW] = x[STRIDE] = x[GROUPS] = 1;
    if (!g->n_node) {
        x[OUT_BATCH] = x[OUT_CHANNELS] = x[IN_CHANNELS] = 1;
        x[OUT_PLACES] = x[IN_PLACES] = (double)cd_graph_shape_elements(&w->buffer[g->write].shape);
        return;
    }
    const cd_graph_node *first = &graph->node[g->node[0]],
                        *last = &graph->node[g->node[g->n_node - 1]];
    put_shape(&graph->tensor[last->out[0]].shape, &x[OUT_BATCH], &x[OUT_CHANNELS], &x[OUT_PLACES]);
    if (first->n_in && first->in[0] != CD_GRAPH_NONE)
        put_shape(&graph->tensor[first->in[0]].shape, &batch, &x[IN_CHANNELS], &x[IN_PLACES]);
    for (uint32_t k = 0; k < g->n_node; k++) {
        const cd_graph_node *n = &graph->node[g->node[k]];
        if (!cd_graph_node_attr(n, "kernel_shape")) continue;
        x[WINDOW] = product_of(cd_graph_node_attr(n, "kernel_shape"));
        x[STRIDE] = product_of(cd_graph_node_attr(n, "strides"));
        x[GROUPS] = (double)cd_graph_node_int(n, "group", 1);
        return;
    }
}

cdmpp_status cd_kernel_of(const cd_workload *w, uint32_t group, cd_arena *a, cd_kernel *out,
                          cdmpp_err *err) {
    const cd_workload_group *g = &w->group[group];
    cd_buf b = {0};
    *out = (cd_kernel){0};
    put_type(&b, w, g);
    if (!b.oom) out->type = cd_str_dup(a, (cd_str){b.p, b.n});
    cd_buf_free(&b);
    if (!out->type) return CD_FAIL(err, ENOMEM, "kernels");
    out->x[FLOP] = w->task[g->task].flop;
    for (uint32_t k = 0; k < g->n_read; k++) {
        const cd_workload_buffer *x = &w->buffer[g->read[k]];
        out->x[x->is_const ? WEIGHTS : READ] +=
            (double)(cd_graph_shape_elements(&x->shape) * (int64_t)cd_expr_dtype_bytes(x->dtype));
    }
    const cd_workload_buffer *x = &w->buffer[g->write];
    out->x[WRITTEN] =
        (double)(cd_graph_shape_elements(&x->shape) * (int64_t)cd_expr_dtype_bytes(x->dtype));
    out->x[BUFFERS] = g->n_read + 1;
    put_operators(w, g, out->x);
    return CDMPP_OK;
}
