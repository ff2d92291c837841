/* Content of stacked weights, from that of the weights in them. */
#include <string.h>

#include "profiler/network/merge/merge_internal.h"

typedef struct {
    const cd_graph *g;
    cd_merge_fill *fill;
    void *ctx;
    cdmpp_err *err;
} reader;

static bool is_ours(const cd_graph *g, uint32_t t) {
    const uint32_t node = g->tensor[t].node;
    return node != CD_GRAPH_NONE && g->node[node].folded &&
           !strncmp(g->node[node].name, CD_MERGE_MARK, sizeof CD_MERGE_MARK - 1);
}

/* Every element to its place in the wider kernel; the rest is zero. */
static void place(const cd_graph_shape *in, const cd_graph_shape *out, const int64_t *pad,
                  const float *from, float *to) {
    const int64_t n = cd_graph_shape_elements(in);
    memset(to, 0, (size_t)cd_graph_shape_elements(out) * sizeof *to);
    for (int64_t i = 0; i < n; i++) {
        int64_t left = i, at = 0, step = 1;
        for (uint32_t d = in->rank; d-- > 0; left /= in->dim[d], step *= out->dim[d])
            at += (left % in->dim[d] + pad[d]) * step;
        to[at] = from[i];
    }
}

static cdmpp_status content(const reader *r, uint32_t t, float *to);

static cdmpp_status widened(const reader *r, const cd_graph_node *n, float *to) {
    const cd_graph_shape *in = &r->g->tensor[n->in[0]].shape;
    float *from = cd_mem_zalloc((size_t)cd_graph_shape_elements(in) + 1, sizeof *from);
    if (!from) return CD_FAIL(r->err, ENOMEM, "a weight");
    const cdmpp_status st = content(r, n->in[0], from);
    if (!st) place(in, &r->g->tensor[n->out[0]].shape, r->g->tensor[n->in[1]].value, from, to);
    cd_mem_free(from);
    return st;
}

static cdmpp_status content(const reader *r, uint32_t t, float *to) {
    if (!is_ours(r->g, t)) return r->fill(r->ctx, r->g, t, to, r->err);
    const cd_graph_node *n = &r->g->node[r->g->tensor[t].node];
    if (!strcmp(n->op, "Pad")) return widened(r, n, to);
    for (uint32_t k = 0; k < n->n_in; k++) { /* stacked along the first dimension */
        CD_TRY(content(r, n->in[k], to));
        to += cd_graph_shape_elements(&r->g->tensor[n->in[k]].shape);
    }
    return CDMPP_OK;
}

cdmpp_status cd_merge_weight(const cd_graph *g, uint32_t tensor, cd_merge_fill *fill, void *ctx,
                             float *to, cdmpp_err *err) {
    return content(&(reader){g, fill, ctx, err}, tensor, to);
}
