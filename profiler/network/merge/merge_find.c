/* Which convolutions could be one, and what window covers those of all. */
#include <stdlib.h>
#include <string.h>

#include "profiler/network/merge/merge_internal.h"

/* Element by element, so a stack of channels passes through them like each part alone. */
static const char *const ACTIVATIONS[] = {"Relu",      "LeakyRelu", "Clip",    "Sigmoid",
                                          "Tanh",      "Elu",       "Selu",    "HardSigmoid",
                                          "HardSwish", "Softplus",  "Softsign"};

const int64_t *cd_merge_ints(const cd_graph_node *n, const char *name) {
    const cd_graph_attr *a = cd_graph_node_attr(n, name);
    return a ? a->ints : NULL;
}

cdmpp_status cd_merge_count_readers(const cd_graph *g, cd_arena *a, cd_merge_readers *out,
                                    cdmpp_err *err) {
    *out = (cd_merge_readers){CD_NEWN(a, uint32_t, (size_t)g->n_tensor + 1),
                              CD_NEWN(a, uint32_t, (size_t)g->n_tensor + 1)};
    if (!out->n || !out->last) return CD_FAIL(err, ENOMEM, "readers of %u tensors", g->n_tensor);
    for (uint32_t k = 0; k < g->n_node; k++)
        for (uint32_t i = 0; i < g->node[k].n_in; i++)
            if (g->node[k].in[i] != CD_GRAPH_NONE)
                out->n[g->node[k].in[i]]++, out->last[g->node[k].in[i]] = k;
    for (uint32_t k = 0; k < g->n_output; k++) out->n[g->output[k]]++;
    return CDMPP_OK;
}

/* ---- members ---- */

/* A weight that is there when node `first` is reached. */
static bool is_ready(const cd_graph *g, uint32_t tensor, uint32_t first) {
    const cd_graph_tensor *t = &g->tensor[tensor];
    return cd_graph_tensor_is_static(t) && (t->node == CD_GRAPH_NONE || t->node < first);
}

static uint32_t bias_of(const cd_graph_node *n) { return n->n_in > 2 ? n->in[2] : CD_GRAPH_NONE; }

bool cd_merge_is_member(const cd_graph *g, uint32_t node, uint32_t first) {
    const cd_graph_node *n = &g->node[node];
    if (n->opaque || n->folded || strcmp(n->op, "Conv") != 0 ||
        cd_graph_node_int(n, "group", 1) != 1)
        return false;
    const uint32_t bias = bias_of(n);
    return is_ready(g, n->in[1], first) && (bias == CD_GRAPH_NONE || is_ready(g, bias, first));
}

static bool alike(const cd_graph *g, const cd_graph_node *a, const cd_graph_node *b) {
    const cd_graph_tensor *x = &g->tensor[a->out[0]], *y = &g->tensor[b->out[0]];
    const uint32_t rank = x->shape.rank;
    if (a->in[0] != b->in[0] || (bias_of(a) == CD_GRAPH_NONE) != (bias_of(b) == CD_GRAPH_NONE))
        return false;
    if (x->dtype != y->dtype || g->tensor[a->in[1]].dtype != g->tensor[b->in[1]].dtype)
        return false;
    for (uint32_t d = 2; d < rank; d++)
        if (x->shape.dim[d] != y->shape.dim[d]) return false;
    const size_t bytes = (rank - 2) * sizeof(int64_t);
    return !memcmp(cd_merge_ints(a, "strides"), cd_merge_ints(b, "strides"), bytes) &&
           !memcmp(cd_merge_ints(a, "dilations"), cd_merge_ints(b, "dilations"), bytes);
}

bool cd_merge_fits(const cd_graph *g, const cd_merge_set *s) {
    cd_merge_window w;
    if (s->n < 2 || s->n > CD_MERGE_MOST) return false;
    uint32_t first = s->node[0];
    for (uint32_t i = 1; i < s->n; i++)
        if (s->node[i] < first) first = s->node[i];
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->node[i] >= g->n_node || !cd_merge_is_member(g, s->node[i], first)) return false;
        if (i && !alike(g, &g->node[s->node[0]], &g->node[s->node[i]])) return false;
        for (uint32_t j = 0; j < i; j++)
            if (s->node[j] == s->node[i]) return false;
    }
    return cd_merge_window_of(g, s, &w);
}

/* Along d: begins at the earliest, ends at the latest place that any member reads; the padding
 * behind is what the last position needs. */
static bool cover(const cd_graph *g, const cd_merge_set *s, uint32_t d, cd_merge_window *w) {
    const cd_graph_node *a = &g->node[s->node[0]];
    const int64_t in = g->tensor[a->in[0]].shape.dim[d + 2],
                  out = g->tensor[a->out[0]].shape.dim[d + 2],
                  step = cd_merge_ints(a, "strides")[d];
    const int64_t *pad = cd_merge_ints(a, "pads"), *kernel = cd_merge_ints(a, "kernel_shape"),
                  by = cd_merge_ints(a, "dilations")[d];
    int64_t begin = pad[d], size = kernel[d];
    bool same = true;
    for (uint32_t i = 1; i < s->n; i++) {
        const int64_t *p = cd_merge_ints(&g->node[s->node[i]], "pads"),
                      *k = cd_merge_ints(&g->node[s->node[i]], "kernel_shape");
        same = same && p[d] == pad[d] && p[w->n + d] == pad[w->n + d] && k[d] == kernel[d];
        if (p[d] > begin) begin = p[d];
    }
    for (uint32_t i = 0; i < s->n; i++) {
        const cd_graph_node *m = &g->node[s->node[i]];
        const int64_t end =
            begin - cd_merge_ints(m, "pads")[d] + cd_merge_ints(m, "kernel_shape")[d];
        if (end > size) size = end;
    }
    const int64_t behind = (out - 1) * step + size - in - begin;
    w->kernel[d] = size, w->pad[d] = begin,
    w->pad[w->n + d] = same         ? pad[w->n + d]
                       : behind > 0 ? behind
                                    : 0;
    return same || (by == 1 && (in + begin + w->pad[w->n + d] - size) / step + 1 == out);
}

bool cd_merge_window_of(const cd_graph *g, const cd_merge_set *s, cd_merge_window *out) {
    *out = (cd_merge_window){.n = g->tensor[g->node[s->node[0]].out[0]].shape.rank - 2};
    for (uint32_t d = 0; d < out->n; d++)
        if (!cover(g, s, d, out)) return false;
    return true;
}

double cd_merge_work(const cd_graph *g, const cd_merge_set *s) {
    cd_merge_window w;
    double before = 0, after = 0;
    if (!cd_merge_fits(g, s) || !cd_merge_window_of(g, s, &w)) return 1;
    for (uint32_t i = 0; i < s->n; i++) {
        const cd_graph_shape *k = &g->tensor[g->node[s->node[i]].in[1]].shape;
        double all = (double)(k->dim[0] * k->dim[1]);
        before += (double)cd_graph_shape_elements(k);
        for (uint32_t d = 0; d < w.n; d++) all *= (double)w.kernel[d];
        after += all;
    }
    return after / before;
}

/* ---- what follows ---- */

static bool same_attr(const cd_graph_attr *a, const cd_graph_attr *b) {
    if (!b || a->kind != b->kind || a->n != b->n || a->i != b->i ||
        memcmp(&a->f, &b->f, sizeof a->f) != 0)
        return false;
    if (a->kind == CD_GRAPH_ATTR_STR) return !strcmp(a->s, b->s);
    const void *x = a->kind == CD_GRAPH_ATTR_INTS ? (const void *)a->ints : a->floats,
               *y = b->kind == CD_GRAPH_ATTR_INTS ? (const void *)b->ints : b->floats;
    return !a->n || !memcmp(x, y, a->n * sizeof *a->ints);
}

static bool same_attrs(const cd_graph_node *a, const cd_graph_node *b) {
    if (a->n_attr != b->n_attr) return false;
    for (uint32_t k = 0; k < a->n_attr; k++)
        if (!same_attr(&a->attr[k], cd_graph_node_attr(b, a->attr[k].name))) return false;
    return true;
}

static bool is_activation(const char *op) {
    for (size_t k = 0; k < sizeof ACTIVATIONS / sizeof *ACTIVATIONS; k++)
        if (!strcmp(op, ACTIVATIONS[k])) return true;
    return false;
}

/* n reads `tensor` first and could stand behind a stack of channels, as `like` does. */
static bool follows(const cd_graph *g, const cd_graph_node *n, uint32_t tensor,
                    const cd_graph_node *like, uint32_t first) {
    const bool norm = !strcmp(n->op, "BatchNormalization");
    if (n->opaque || n->n_out != 1 || n->in[0] != tensor || n->n_in != like->n_in ||
        strcmp(n->op, like->op) != 0 || !same_attrs(n, like))
        return false;
    if (!norm && !is_activation(n->op)) return false;
    for (uint32_t i = 1; i < n->n_in; i++) {
        if (n->in[i] == CD_GRAPH_NONE && like->in[i] == CD_GRAPH_NONE && !norm) continue;
        if (n->in[i] == CD_GRAPH_NONE || !is_ready(g, n->in[i], first) ||
            (!norm && n->in[i] != like->in[i]))
            return false;
    }
    return true;
}

bool cd_merge_next(const cd_graph *g, const cd_merge_readers *r, const cd_merge_set *s,
                   const uint32_t *tensor, uint32_t *next) {
    uint32_t first = s->node[0];
    for (uint32_t i = 0; i < s->n; i++) {
        if (r->n[tensor[i]] != 1 || g->tensor[tensor[i]].is_output) return false;
        next[i] = r->last[tensor[i]];
        if (s->node[i] < first) first = s->node[i];
    }
    for (uint32_t i = 0; i < s->n; i++)
        if (!follows(g, &g->node[next[i]], tensor[i], &g->node[next[0]], first)) return false;
    return true;
}

void cd_merge_ends(const cd_graph *g, const cd_merge_readers *r, const cd_merge_set *s,
                   uint32_t *tensor) {
    uint32_t next[CD_MERGE_MOST];
    for (uint32_t i = 0; i < s->n; i++) tensor[i] = g->node[s->node[i]].out[0];
    while (cd_merge_next(g, r, s, tensor, next))
        for (uint32_t i = 0; i < s->n; i++) tensor[i] = g->node[next[i]].out[0];
}

/* ---- sets ---- */

/* Members in the order in which the first Concat behind them reads them; those that it does not
 * read keep their order behind them. */
static void order_by_concat(const cd_graph *g, const cd_merge_readers *r, cd_merge_set *s) {
    uint32_t end[CD_MERGE_MOST], at = CD_GRAPH_NONE, n = 0;
    cd_merge_set out = {0};
    bool taken[CD_MERGE_MOST] = {false};
    cd_merge_ends(g, r, s, end);
    for (uint32_t i = 0; i < s->n; i++)
        if (r->n[end[i]] && !g->tensor[end[i]].is_output &&
            !strcmp(g->node[r->last[end[i]]].op, "Concat") && r->last[end[i]] < at)
            at = r->last[end[i]];
    for (uint32_t k = 0; at != CD_GRAPH_NONE && k < g->node[at].n_in; k++)
        for (uint32_t i = 0; i < s->n; i++)
            if (!taken[i] && end[i] == g->node[at].in[k])
                taken[i] = true, out.node[n++] = s->node[i];
    for (uint32_t i = 0; i < s->n; i++)
        if (!taken[i]) out.node[n++] = s->node[i];
    out.n = s->n;
    *s = out;
}

/* All that may join the convolution `node`: those behind it that read the same tensor. */
static void gather(const cd_graph *g, uint32_t node, bool *taken, cd_merge_set *s) {
    *s = (cd_merge_set){1, {node}};
    for (uint32_t k = node + 1; k < g->n_node && s->n < CD_MERGE_MOST; k++) {
        if (taken[k] || g->node[k].n_in < 2 || g->node[k].in[0] != g->node[node].in[0]) continue;
        s->node[s->n++] = k;
        if (!cd_merge_fits(g, s)) s->n--;
    }
    for (uint32_t i = 0; i < s->n && s->n > 1; i++) taken[s->node[i]] = true;
}

cdmpp_status cd_merge_find(const cd_graph *g, cd_arena *a, cd_merge_set **out, uint32_t *n,
                           cdmpp_err *err) {
    cd_merge_readers r;
    bool *taken = CD_NEWN(a, bool, (size_t)g->n_node + 1);
    *out = CD_NEWN(a, cd_merge_set, (size_t)g->n_node / 2 + 1);
    *n = 0;
    if (!taken || !*out) return CD_FAIL(err, ENOMEM, "%u operators", g->n_node);
    CD_TRY(cd_merge_count_readers(g, a, &r, err));
    for (uint32_t k = 0; k < g->n_node; k++) {
        cd_merge_set s;
        if (taken[k] || !cd_merge_is_member(g, k, k)) continue;
        gather(g, k, taken, &s);
        if (s.n < 2) continue;
        order_by_concat(g, &r, &s);
        (*out)[(*n)++] = s;
    }
    return CDMPP_OK;
}
