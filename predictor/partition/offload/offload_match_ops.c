/* Lists the operators of a loaded network as rules see them, with their edges, and the groups in
 * which each one is. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "predictor/partition/offload/offload_match_internal.h"

/* The names that rules use for operators of a network (TVM's, not ONNX's), and their attributes as
 * texts, because rules compare texts. */

/* ---- types ---- */

/* TVM's names where they are not ONNX's in small letters. */
static const char *const name_names[][2] = {
    {"Gemm", "dense"},
    {"Sub", "subtract"},
    {"Mul", "multiply"},
    {"Div", "divide"},
    {"Pow", "power"},
    {"Neg", "negative"},
    {"MaxPool", "max_pool2d"},
    {"AveragePool", "avg_pool2d"},
    {"GlobalAveragePool", "global_avg_pool2d"},
    {"GlobalMaxPool", "global_max_pool2d"},
    {"BatchNormalization", "batch_norm"},
    {"LayerNormalization", "layer_norm"},
    {"InstanceNormalization", "instance_norm"},
    {"GroupNormalization", "group_norm"},
    {"LRN", "lrn"},
    {"Concat", "concatenate"},
    {"Slice", "strided_slice"},
    {"Gather", "take"},
    {"Upsample", "resize"},
    {"ReduceMean", "mean"},
    {"ReduceSum", "sum"},
    {"ReduceMax", "max"},
    {"ReduceMin", "min"},
    {"ReduceProd", "prod"},
    {"ArgMax", "argmax"},
    {"ArgMin", "argmin"},
    {"PRelu", "prelu"},
    {"Expand", "broadcast_to"},
    {"LSTM", "lstm"},
    {"GRU", "gru"},
    {"RNN", "rnn"},
    {"TopK", "topk"},
    {"Max", "maximum"},
    {"Min", "minimum"},
    {"QuantizeLinear", "quantize"},
    {"DequantizeLinear", "dequantize"},
    {"And", "logical_and"},
    {"Or", "logical_or"},
    {"Not", "logical_not"},
    {"Trilu", "trilu"},
};

static const cd_graph_tensor *operand(const cd_graph *g, const cd_graph_node *n, uint32_t k) {
    return k < n->n_in && n->in[k] != CD_GRAPH_NONE ? &g->tensor[n->in[k]] : NULL;
}

static bool is_window(const cd_graph_node *n) {
    return !strcmp(n->op, "Conv") || !strcmp(n->op, "ConvTranspose") ||
           !strcmp(n->op, "ConvInteger") || !strcmp(n->op, "QLinearConv");
}

static bool is_product(const cd_graph_node *n) {
    return !strcmp(n->op, "Gemm") || !strcmp(n->op, "MatMul") || !strcmp(n->op, "MatMulInteger") ||
           !strcmp(n->op, "QLinearMatMul");
}

static bool is_quantized(const cd_graph_node *n) { return !strncmp(n->op, "QLinear", 7); }

/* QLinearConv and QLinearMatMul have a scale and a zero point behind each tensor: x, x_scale,
 * x_zero_point, w, ... */
static const cd_graph_tensor *second_factor(const cd_graph *g, const cd_graph_node *n) {
    return operand(g, n, is_quantized(n) ? 3 : 1);
}

/* The third operand of ConvInteger and MatMulInteger is a zero point. */
static bool has_bias(const cd_graph *g, const cd_graph_node *n) {
    if (!strcmp(n->op, "QLinearConv")) return operand(g, n, 8) != NULL;
    return (!strcmp(n->op, "Conv") || !strcmp(n->op, "ConvTranspose") || !strcmp(n->op, "Gemm")) &&
           operand(g, n, 2);
}

static bool is_weight(const cd_graph_tensor *t) { return t && cd_graph_tensor_is_static(t); }

bool cd_offload_is_mac(const cd_graph_node *n) {
    return is_window(n) || is_product(n) || !strcmp(n->op, "LSTM") || !strcmp(n->op, "GRU") ||
           !strcmp(n->op, "RNN") || !strcmp(n->op, "Einsum");
}

/* HardSwish: hard_swish. */
static void snake(const char *op, char *to, size_t room) {
    size_t k = 0;
    for (const char *p = op; *p && k + 3 < room; p++) {
        if (isupper((unsigned char)*p) && p > op &&
            (islower((unsigned char)p[-1]) || isdigit((unsigned char)p[-1])))
            to[k++] = '_';
        to[k++] = (char)tolower((unsigned char)*p);
    }
    to[k] = 0;
}

/* ONNX has one Conv and one MatMul; TVM's names depend on the rank of the weights and on whether
 * the second operand is a weight. */
void cd_offload_op_type(const cd_graph *g, const cd_graph_node *n, char *to, size_t room) {
    const cd_graph_tensor *w = second_factor(g, n);
    if (is_window(n) && w) {
        snprintf(to, room, "conv%ud%s", w->shape.rank > 2 ? w->shape.rank - 2 : 1,
                 n->op[4] == 'T' ? "_transpose" : "");
        return;
    }
    if (!strncmp(n->op, "MatMul", 6)) {
        snprintf(to, room, "%s", is_weight(w) && w->shape.rank == 2 ? "dense" : "batch_matmul");
        return;
    }
    for (size_t i = 0; i < sizeof name_names / sizeof *name_names; i++)
        if (!strcmp(name_names[i][0], n->op)) {
            snprintf(to, room, "%s", name_names[i][1]);
            return;
        }
    snake(n->op, to, room);
}

/* ---- attributes ---- */

/* Adds an attribute. The first value of a key stays; attributes beyond CD_OFFLOAD_ATTRS are left
 * out. oom is set where memory fails. number: as text, whole numbers without a point; tensor: type,
 * shape and sizes of a tensor; node: all attributes of a node. */
static void offload_put_attr(cd_offload_attrs *a, const char *key, const char *value) {
    for (uint32_t i = 0; i < a->n; i++)
        if (!strcmp(a->v[i].key, key)) return; /* ours before ONNX's */
    if (a->n == CD_OFFLOAD_ATTRS) return;
    const char *k = cd_str_dup(a->arena, (cd_str){key, strlen(key)}),
               *v = cd_str_dup(a->arena, (cd_str){value, strlen(value)});
    a->oom = a->oom || !k || !v;
    if (k && v) a->v[a->n++] = (cd_offload_attr){k, v};
}

static void offload_put_number(cd_offload_attrs *a, const char *key, double v) {
    char text[40];
    snprintf(text, sizeof text, "%.17g", v);
    if (v == (double)(int64_t)v) snprintf(text, sizeof text, "%lld", (long long)v);
    offload_put_attr(a, key, text);
}

static void list_text(char *to, size_t room, const int64_t *v, uint32_t n) {
    size_t k = 0;
    to[0] = 0;
    for (uint32_t i = 0; i < n && k + 24 < room; i++)
        k += (size_t)snprintf(to + k, room - k, "%s%lld", i ? "x" : "", (long long)v[i]);
}

/* Each dimension is listed by number (d0), and at ranks 2 to 4 also by the letter that TVM's
 * layouts use for it. */
static void offload_put_tensor(cd_offload_attrs *a, const cd_graph_tensor *t) {
    static const char *const letter[5][4] = {
        {0}, {0}, {"n", "c"}, {"n", "c", "w"}, {"n", "c", "h", "w"}};
    static const char *const digit[CD_GRAPH_MAX_RANK] = {"d0", "d1", "d2", "d3",
                                                         "d4", "d5", "d6", "d7"};
    char text[200];
    const uint32_t rank = t->shape.rank;
    const double elements = (double)cd_graph_shape_elements(&t->shape);
    cd_expr_dtype_format(t->dtype, text, sizeof text);
    offload_put_attr(a, "dtype", text);
    list_text(text, sizeof text, t->shape.dim, rank);
    offload_put_attr(a, "shape", text);
    offload_put_number(a, "rank", rank);
    for (uint32_t d = 0; d < rank; d++) offload_put_number(a, digit[d], (double)t->shape.dim[d]);
    for (uint32_t d = 0; d < rank && rank <= 4 && letter[rank][0]; d++)
        offload_put_number(a, letter[rank][d], (double)t->shape.dim[d]);
    offload_put_number(a, "elements", elements);
    offload_put_number(a, "bytes", elements * (double)cd_expr_dtype_bytes(t->dtype));
}

/* The largest as `key`, of two dimensions each as key_h, key_w. */
static void put_each(cd_offload_attrs *a, const char *key, const cd_graph_attr *v, uint32_t n) {
    static const char *const end[] = {"_h", "_w"};
    char text[40];
    int64_t most = 0;
    if (!v || v->kind != CD_GRAPH_ATTR_INTS) return;
    for (uint32_t i = 0; i < v->n; i++) most = v->ints[i] > most ? v->ints[i] : most;
    offload_put_number(a, key, (double)most);
    for (uint32_t i = 0; n == 2 && i < 2 && v->n >= 2; i++) {
        snprintf(text, sizeof text, "%s%s", key, end[i]);
        offload_put_number(a, text, (double)v->ints[i]);
    }
}

/* Pooling has a window too, but no groups, weights or bias. */
static void put_window(cd_offload_attrs *a, const cd_graph *g, const cd_graph_node *n) {
    const cd_graph_attr *kernel = cd_graph_node_attr(n, "kernel_shape");
    const uint32_t rank = kernel ? kernel->n : 0;
    put_each(a, "kernel", kernel, rank);
    put_each(a, "stride", cd_graph_node_attr(n, "strides"), rank);
    put_each(a, "dilation", cd_graph_node_attr(n, "dilations"), rank);
    put_each(a, "pad", cd_graph_node_attr(n, "pads"), 0);
    const cd_graph_tensor *x = operand(g, n, 0);
    const int64_t in_c = x && x->shape.rank > 1 ? x->shape.dim[1] : 0,
                  groups = cd_graph_node_int(n, "group", 1);
    if (!is_window(n)) return;
    offload_put_number(a, "groups", (double)groups);
    offload_put_number(a, "in_c", (double)in_c);
    offload_put_number(a, "depthwise", groups > 1 && groups == in_c);
    offload_put_number(a, "bias", has_bias(g, n));
}

/* [M,K] x [K,N], of the last two dimensions. */
static void put_product(cd_offload_attrs *a, const cd_graph *g, const cd_graph_node *n) {
    const cd_graph_tensor *x = operand(g, n, 0), *w = second_factor(g, n),
                          *y = &g->tensor[n->out[0]];
    if (!x || !w || !x->shape.rank || !y->shape.rank) return;
    const bool across = cd_graph_node_int(n, "transA", 0) && x->shape.rank > 1;
    const int64_t cols = y->shape.dim[y->shape.rank - 1],
                  rows = y->shape.rank > 1 ? y->shape.dim[y->shape.rank - 2] : 1;
    offload_put_number(a, "m", (double)rows);
    offload_put_number(a, "n", (double)cols);
    offload_put_number(a, "k", (double)x->shape.dim[x->shape.rank - (across ? 2 : 1)]);
    offload_put_number(a, "weights", is_weight(w));
    offload_put_number(a, "bias", has_bias(g, n));
}

static void put_onnx(cd_offload_attrs *a, const cd_graph_attr *v) {
    char text[200];
    switch (v->kind) {
    case CD_GRAPH_ATTR_INT: offload_put_number(a, v->name, (double)v->i); break;
    case CD_GRAPH_ATTR_FLOAT: offload_put_number(a, v->name, v->f); break;
    case CD_GRAPH_ATTR_STR: offload_put_attr(a, v->name, v->s ? v->s : ""); break;
    case CD_GRAPH_ATTR_INTS:
        list_text(text, sizeof text, v->ints, v->n);
        offload_put_attr(a, v->name, text);
        break;
    case CD_GRAPH_ATTR_FLOATS: break;
    }
}

void cd_offload_put_node(cd_offload_attrs *a, const cd_graph *g, const cd_graph_node *n) {
    char text[40];
    const cd_graph_tensor *x = operand(g, n, 0);
    offload_put_number(a, "mac", cd_offload_is_mac(n));
    offload_put_number(a, "flop", n->flop);
    if (is_product(n) && n->n_out) put_product(a, g, n);
    if (n->n_out) offload_put_tensor(a, &g->tensor[n->out[0]]);
    if (x) {
        cd_expr_dtype_format(x->dtype, text, sizeof text);
        offload_put_attr(a, "from", text);
    }
    if (is_window(n) || strstr(n->op, "Pool")) put_window(a, g, n);
    for (uint32_t i = 0; i < n->n_attr; i++) put_onnx(a, &n->attr[i]);
}

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
    offload_put_tensor(&at, &m->l->source->tensor[n->out[0]]);
    offload_put_attr(
        &at, "from",
        cd_expr_dtype_format(m->l->source->tensor[n->out[0]].dtype, dtype, sizeof dtype));
    offload_put_number(&at, "mac", 0);
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
    offload_put_tensor(&at, &(cd_graph_tensor){.dtype = b->dtype, .shape = b->shape});
    offload_put_number(&at, "mac", 0);
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
