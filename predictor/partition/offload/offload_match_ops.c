/* Lists the operators of a loaded network as rules see them, with their edges, and the groups in
 * which each one is. */
#include <stdio.h>
#include <string.h>

#include "predictor/partition/offload/offload_match_internal.h"

typedef struct {
    const cd_network_loaded *l;
    const cd_workload *w;
    cd_arena *a;
    cd_offload_ops *out;
    cd_offload_op *op;
    uint32_t *edge, n_edge;
    uint32_t *first_op, *last_op; /* (graph's nodes) CD_GRAPH_NONE: no operator; last: its bias */
} lister;

static bool runs(const lister *m, uint32_t node) {
    const cd_workload_state s = m->w->node[node].state;
    return s == CD_WORKLOAD_NODE_TASK || s == CD_WORKLOAD_NODE_UNSUPPORTED;
}

/* The operator that makes a tensor; views are followed. CD_GRAPH_NONE: an input, a weight or a
 * folded node. */
static uint32_t maker_of(const lister *m, uint32_t tensor) {
    const cd_graph *g = m->l->source;
    while (tensor != CD_GRAPH_NONE && g->tensor[tensor].node != CD_GRAPH_NONE) {
        const uint32_t node = g->tensor[tensor].node;
        if (runs(m, node)) return m->last_op[node];
        if (m->w->node[node].state != CD_WORKLOAD_NODE_VIEW || !g->node[node].n_in) break;
        tensor = g->node[node].in[0];
    }
    return CD_GRAPH_NONE;
}

/* The bias that Conv and Gemm add: CD_GRAPH_NONE: none. */
static uint32_t bias_of(const cd_graph_node *n) {
    const bool may =
        !strcmp(n->op, "Conv") || !strcmp(n->op, "ConvTranspose") || !strcmp(n->op, "Gemm");
    return may && n->n_in > 2 ? n->in[2] : CD_GRAPH_NONE;
}

static cdmpp_status finish(lister *m, const char *name, const char *type, cd_offload_attrs *at,
                           uint32_t node, uint32_t first, cdmpp_err *err) {
    cd_offload_attr *v = CD_NEWN(m->a, cd_offload_attr, (size_t)at->n + 1);
    cd_offload_op *o = &m->op[m->out->graph.n_op];
    o->name = cd_str_dup(m->a, (cd_str){name, strlen(name)});
    o->type = cd_str_dup(m->a, (cd_str){type, strlen(type)});
    if (!v || at->oom || !o->name || !o->type) return CD_FAIL(err, ENOMEM, "operator");
    memcpy(v, at->v, at->n * sizeof *v);
    o->attr = v;
    o->n_attr = at->n;
    o->first = first;
    o->n_in = m->n_edge - first;
    m->out->node[m->out->graph.n_op++] = node;
    return CDMPP_OK;
}

static cdmpp_status add_bias(lister *m, const cd_graph_node *n, uint32_t node, uint32_t bias,
                             cdmpp_err *err) {
    cd_offload_attrs at = {.arena = m->a};
    char name[512], dtype[40];
    const uint32_t first = m->n_edge;
    const uint32_t from = maker_of(m, bias);
    m->edge[m->n_edge++] = m->first_op[node];
    if (from != CD_GRAPH_NONE) m->edge[m->n_edge++] = from;
    snprintf(name, sizeof name, "%.480s.bias", n->name);
    cd_offload_put_tensor(&at, &m->l->source->tensor[n->out[0]]);
    cd_offload_put_attr(
        &at, "from",
        cd_expr_dtype_format(m->l->source->tensor[n->out[0]].dtype, dtype, sizeof dtype));
    cd_offload_put_number(&at, "mac", 0);
    m->last_op[node] = m->out->graph.n_op;
    return finish(m, name, "bias_add", &at, node, first, err);
}

/* A bias becomes an operator behind this one, so it is no input here; last_op is then the bias, and
 * readers of the node read that. */
static cdmpp_status add_node(lister *m, uint32_t node, cdmpp_err *err) {
    const cd_graph_node *n = &m->l->source->node[node];
    const uint32_t bias = bias_of(n), first = m->n_edge;
    cd_offload_attrs at = {.arena = m->a};
    char type[128];
    for (uint32_t k = 0; k < n->n_in; k++) {
        const uint32_t from = n->in[k] == bias ? CD_GRAPH_NONE : maker_of(m, n->in[k]);
        if (from != CD_GRAPH_NONE) m->edge[m->n_edge++] = from;
    }
    cd_offload_op_type(m->l->source, n, type, sizeof type);
    cd_offload_put_node(&at, m->l->source, n);
    m->first_op[node] = m->last_op[node] = m->out->graph.n_op;
    CD_TRY(finish(m, n->name && n->name[0] ? n->name : n->op, type, &at, node, first, err));
    return bias == CD_GRAPH_NONE || !n->n_out ? CDMPP_OK : add_bias(m, n, node, bias, err);
}

static cdmpp_status add_layout(lister *m, uint32_t group, cdmpp_err *err) {
    cd_offload_attrs at = {.arena = m->a};
    const cd_workload_buffer *b = &m->w->buffer[m->w->group[group].write];
    cd_offload_put_tensor(&at, &(cd_graph_tensor){.dtype = b->dtype, .shape = b->shape});
    cd_offload_put_number(&at, "mac", 0);
    return finish(m, m->l->graph->node[group].name, "layout_transform", &at, CD_GRAPH_NONE,
                  m->n_edge, err);
}

/* ---- groups ---- */

/* The graph's operator that a group without nodes stands for; CD_GRAPH_NONE: a change of layout. */
static uint32_t alone_in(const lister *m, uint32_t group) {
    const cd_workload_buffer *b = &m->w->buffer[m->w->group[group].write];
    return b->tensor == CD_GRAPH_NONE ? CD_GRAPH_NONE : m->l->source->tensor[b->tensor].node;
}

static void put_in_group(lister *m, uint32_t group, uint32_t node, uint32_t *n) {
    if (node == CD_GRAPH_NONE || m->first_op[node] == CD_GRAPH_NONE) return;
    for (uint32_t k = m->first_op[node]; k <= m->last_op[node]; k++, ++*n) {
        if (m->out->in) m->out->in[*n] = k;
        m->out->in_n[group]++;
        m->out->mac[group] = m->out->mac[group] || (k == m->first_op[node] &&
                                                    cd_offload_is_mac(&m->l->source->node[node]));
    }
}

/* Fills in[] once there is one; else counts. */
static uint32_t walk_groups(lister *m, const uint32_t *layout) {
    uint32_t n = 0;
    for (uint32_t g = 0; g < m->w->n_group; g++) {
        const cd_workload_group *x = &m->w->group[g];
        m->out->in_first[g] = n;
        m->out->in_n[g] = 0;
        for (uint32_t k = 0; k < x->n_node; k++) put_in_group(m, g, x->node[k], &n);
        if (!x->n_node && layout[g] == CD_GRAPH_NONE) put_in_group(m, g, alone_in(m, g), &n);
        if (layout[g] == CD_GRAPH_NONE) continue;
        if (m->out->in) m->out->in[n] = layout[g];
        m->out->in_n[g] = 1;
        n++;
    }
    return n;
}

/* The groups' lists are walked twice, to count and to fill. The inverse lists (groups of an
 * operator) come from them by a counting sort; an operator may be in several groups. */
static cdmpp_status list_groups(lister *m, const uint32_t *layout, cdmpp_err *err) {
    cd_offload_ops *o = m->out;
    const uint32_t n_op = o->graph.n_op;
    o->in_first = CD_NEWN(m->a, uint32_t, (size_t)m->w->n_group + 1),
    o->in_n = CD_NEWN(m->a, uint32_t, (size_t)m->w->n_group + 1);
    o->mac = CD_NEWN(m->a, bool, (size_t)m->w->n_group + 1);
    o->of_first = CD_NEWN(m->a, uint32_t, (size_t)n_op + 1),
    o->of_n = CD_NEWN(m->a, uint32_t, (size_t)n_op + 1);
    if (!o->in_first || !o->in_n || !o->mac || !o->of_first || !o->of_n)
        return CD_FAIL(err, ENOMEM, "groups");
    const uint32_t n = walk_groups(m, layout);
    o->in = CD_NEWN(m->a, uint32_t, (size_t)n + 1), o->of = CD_NEWN(m->a, uint32_t, (size_t)n + 1);
    if (!o->in || !o->of) return CD_FAIL(err, ENOMEM, "groups");
    walk_groups(m, layout);
    for (uint32_t i = 0; i < n; i++) o->of_n[o->in[i]]++;
    for (uint32_t k = 0, at = 0; k < n_op; k++)
        o->of_first[k] = at, at += o->of_n[k], o->of_n[k] = 0;
    for (uint32_t g = 0; g < m->w->n_group; g++)
        for (uint32_t i = 0; i < o->in_n[g]; i++) {
            const uint32_t k = o->in[o->in_first[g] + i];
            o->of[o->of_first[k] + o->of_n[k]++] = g;
        }
    return CDMPP_OK;
}

/* ---- all of it ---- */

static cdmpp_status make_room(lister *m, cdmpp_err *err) {
    const cd_graph *g = m->l->source;
    size_t edges = 1;
    for (uint32_t k = 0; k < g->n_node; k++) edges += (size_t)g->node[k].n_in + 1;
    const size_t n = 2 * (size_t)g->n_node + m->w->n_group + 1;
    m->op = CD_NEWN(m->a, cd_offload_op, n);
    m->out->node = CD_NEWN(m->a, uint32_t, n);
    m->edge = CD_NEWN(m->a, uint32_t, edges);
    m->first_op = CD_NEWN(m->a, uint32_t, (size_t)g->n_node + 1),
    m->last_op = CD_NEWN(m->a, uint32_t, (size_t)g->n_node + 1);
    if (!m->op || !m->out->node || !m->edge || !m->first_op || !m->last_op)
        return CD_FAIL(err, ENOMEM, "%u operators", g->n_node);
    memset(m->first_op, 0xff, ((size_t)g->n_node + 1) * sizeof *m->first_op);
    memset(m->last_op, 0xff, ((size_t)g->n_node + 1) * sizeof *m->last_op);
    return CDMPP_OK;
}

/* Layout changes come last: nobody reads them, so the order of the others stays one to run in. */
cdmpp_status cd_offload_ops_list(const cd_network_loaded *l, cd_arena *a, cd_offload_ops *out,
                                 cdmpp_err *err) {
    lister m = {.l = l, .w = l->work, .a = a, .out = out};
    *out = (cd_offload_ops){0};
    CD_TRY(make_room(&m, err));
    uint32_t *layout = CD_NEWN(a, uint32_t, (size_t)l->work->n_group + 1);
    if (!layout) return CD_FAIL(err, ENOMEM, "groups");
    for (uint32_t k = 0; k < l->source->n_node; k++)
        if (runs(&m, k)) CD_TRY(add_node(&m, k, err));
    for (uint32_t g = 0; g < l->work->n_group; g++) {
        const bool is = !l->work->group[g].n_node && alone_in(&m, g) == CD_GRAPH_NONE;
        layout[g] = is ? out->graph.n_op : CD_GRAPH_NONE;
        if (is) CD_TRY(add_layout(&m, g, err));
    }
    out->graph.op = m.op;
    out->graph.in = m.edge;
    out->graph.n_in = m.n_edge;
    return list_groups(&m, layout, err);
}
