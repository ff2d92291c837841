/* Which convolutions could be one, and what window covers those of all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/network/merge/merge.h"

#define CD_MERGE_MARK "cdmpp.merge/" /* names of operators on weights begin so */
enum { CD_MERGE_SPATIAL = CD_GRAPH_MAX_RANK - 2 };

typedef struct cd_merge_readers {
    /* (tensors of the graph) how many read it, a result of the network counts as one; the last that
     * does */
    uint32_t *n, *last;
} cd_merge_readers;

typedef struct cd_merge_window {
    uint32_t n;
    int64_t kernel[CD_MERGE_SPATIAL], pad[2 * CD_MERGE_SPATIAL]; /* pad: begins, then ends */
} cd_merge_window;

/* Element by element, so a stack of channels passes through them like each part alone. */
static const char *const ACTIVATIONS[] = {"Relu",      "LeakyRelu", "Clip",    "Sigmoid",
                                          "Tanh",      "Elu",       "Selu",    "HardSigmoid",
                                          "HardSwish", "Softplus",  "Softsign"};

/* Strides, dilations, pads ...: resolved ints of a node (graph.h, 6). */
static const int64_t *merge_ints(const cd_graph_node *n, const char *name) {
    const cd_graph_attr *a = cd_graph_node_attr(n, name);
    return a ? a->ints : NULL;
}

/* Errors: ENOMEM. */
static cdmpp_status merge_count_readers(const cd_graph *g, cd_arena *a, cd_merge_readers *out,
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

/* Could the convolution be merged with any other, one that stands at node `first` or behind it? */
static bool merge_is_member(const cd_graph *g, uint32_t node, uint32_t first) {
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
    return !memcmp(merge_ints(a, "strides"), merge_ints(b, "strides"), bytes) &&
           !memcmp(merge_ints(a, "dilations"), merge_ints(b, "dilations"), bytes);
}

static bool merge_window_of(const cd_graph *g, const cd_merge_set *s, cd_merge_window *out);

/* Whether the set keeps to rule (1). */
static bool merge_fits(const cd_graph *g, const cd_merge_set *s) {
    cd_merge_window w;
    if (s->n < 2 || s->n > CD_MERGE_MOST) return false;
    uint32_t first = s->node[0];
    for (uint32_t i = 1; i < s->n; i++)
        if (s->node[i] < first) first = s->node[i];
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->node[i] >= g->n_node || !merge_is_member(g, s->node[i], first)) return false;
        if (i && !alike(g, &g->node[s->node[0]], &g->node[s->node[i]])) return false;
        for (uint32_t j = 0; j < i; j++)
            if (s->node[j] == s->node[i]) return false;
    }
    return merge_window_of(g, s, &w);
}

/* Along d: begins at the earliest, ends at the latest place that any member reads; the padding
 * behind is what the last position needs. */
static bool cover(const cd_graph *g, const cd_merge_set *s, uint32_t d, cd_merge_window *w) {
    const cd_graph_node *a = &g->node[s->node[0]];
    const int64_t in = g->tensor[a->in[0]].shape.dim[d + 2],
                  out = g->tensor[a->out[0]].shape.dim[d + 2], step = merge_ints(a, "strides")[d];
    const int64_t *pad = merge_ints(a, "pads"), *kernel = merge_ints(a, "kernel_shape"),
                  by = merge_ints(a, "dilations")[d];
    int64_t begin = pad[d], size = kernel[d];
    bool same = true;
    for (uint32_t i = 1; i < s->n; i++) {
        const int64_t *p = merge_ints(&g->node[s->node[i]], "pads"),
                      *k = merge_ints(&g->node[s->node[i]], "kernel_shape");
        same = same && p[d] == pad[d] && p[w->n + d] == pad[w->n + d] && k[d] == kernel[d];
        if (p[d] > begin) begin = p[d];
    }
    for (uint32_t i = 0; i < s->n; i++) {
        const cd_graph_node *m = &g->node[s->node[i]];
        const int64_t end = begin - merge_ints(m, "pads")[d] + merge_ints(m, "kernel_shape")[d];
        if (end > size) size = end;
    }
    const int64_t behind = (out - 1) * step + size - in - begin;
    w->kernel[d] = size, w->pad[d] = begin,
    w->pad[w->n + d] = same         ? pad[w->n + d]
                       : behind > 0 ? behind
                                    : 0;
    return same || (by == 1 && (in + begin + w->pad[w->n + d] - size) / step + 1 == out);
}

/* The window that covers those of all members; false: there is none. */
static bool merge_window_of(const cd_graph *g, const cd_merge_set *s, cd_merge_window *out) {
    *out = (cd_merge_window){.n = g->tensor[g->node[s->node[0]].out[0]].shape.rank - 2};
    for (uint32_t d = 0; d < out->n; d++)
        if (!cover(g, s, d, out)) return false;
    return true;
}

double cd_merge_work(const cd_graph *g, const cd_merge_set *s) {
    cd_merge_window w;
    double before = 0, after = 0;
    if (!merge_fits(g, s) || !merge_window_of(g, s, &w)) return 1;
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

/* What follows each member in the same way: next[i] of the node that reads tensor[i] (set->n).
 * false: nothing, or not the same. */
static bool merge_next(const cd_graph *g, const cd_merge_readers *r, const cd_merge_set *s,
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

/* The members' tensors behind all that follows in the same way. */
static void merge_ends(const cd_graph *g, const cd_merge_readers *r, const cd_merge_set *s,
                       uint32_t *tensor) {
    uint32_t next[CD_MERGE_MOST];
    for (uint32_t i = 0; i < s->n; i++) tensor[i] = g->node[s->node[i]].out[0];
    while (merge_next(g, r, s, tensor, next))
        for (uint32_t i = 0; i < s->n; i++) tensor[i] = g->node[next[i]].out[0];
}

/* ---- sets ---- */

/* Members in the order in which the first Concat behind them reads them; those that it does not
 * read keep their order behind them. */
static void order_by_concat(const cd_graph *g, const cd_merge_readers *r, cd_merge_set *s) {
    uint32_t end[CD_MERGE_MOST], at = CD_GRAPH_NONE, n = 0;
    cd_merge_set out = {0};
    bool taken[CD_MERGE_MOST] = {false};
    merge_ends(g, r, s, end);
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
        if (!merge_fits(g, s)) s->n--;
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
    CD_TRY(merge_count_readers(g, a, &r, err));
    for (uint32_t k = 0; k < g->n_node; k++) {
        cd_merge_set s;
        if (taken[k] || !merge_is_member(g, k, k)) continue;
        gather(g, k, taken, &s);
        if (s.n < 2) continue;
        order_by_concat(g, &r, &s);
        (*out)[(*n)++] = s;
    }
    return CDMPP_OK;
}

/* A graph written anew, with sets of convolutions merged. Parts of a merged result are cut out only
 * for those who need them apart. */

enum { OPSET = 18 }; /* of the operators that are added */

typedef struct {
    uint32_t whole;                /* tensor of the new graph; CD_GRAPH_NONE: not made yet */
    uint32_t end[CD_MERGE_MOST];   /* tensors of the old graph: parts */
    int64_t at[CD_MERGE_MOST + 1]; /* first channel of each part */
} merged;

typedef struct {
    const cd_graph *from;
    cd_graph *g;
    cd_arena own;
    const cd_merge_set *set;
    merged *made; /* (sets) */
    cd_merge_readers readers;
    uint32_t *map;       /* (tensors of from) */
    uint32_t *of, *part; /* (tensors of from) set, number in it; CD_GRAPH_NONE: no part */
    /* (nodes of from) set whose first member it is; not 0: merged into another */
    uint32_t *first, *gone;
    uint32_t *origin, n_origin, cap_origin; /* (nodes of g) */
    /* node of from that is written; tensors and operators on weights that were added */
    uint32_t now, count;
    cdmpp_err *err;
} writer;

/* ---- operators ---- */

static cdmpp_status note(writer *w) {
    for (; w->n_origin < w->g->n_node; w->n_origin++) {
        if (w->n_origin == w->cap_origin) {
            const uint32_t cap = w->cap_origin ? w->cap_origin * 2 : 256;
            uint32_t *p = CD_NEWN(&w->g->arena, uint32_t, cap);
            if (!p) return CD_FAIL(w->err, ENOMEM, "operators");
            if (w->n_origin) memcpy(p, w->origin, w->n_origin * sizeof *p);
            w->origin = p, w->cap_origin = cap;
        }
        w->origin[w->n_origin] = w->now;
    }
    return CDMPP_OK;
}

static cdmpp_status add(writer *w, const char *name, const char *op, const uint32_t *in,
                        uint32_t n_in, const cd_graph_attr *attr, uint32_t n_attr, uint32_t *out) {
    const int opset = w->g->opset;
    w->g->opset = OPSET;
    const cdmpp_status st = cd_graph_add(w->g, name, op, in, n_in, attr, n_attr, out, 1, w->err);
    w->g->opset = opset;
    return st ? st : note(w);
}

/* Names that nobody else has. */
static const char *numbered(writer *w, char name[48]) {
    snprintf(name, 48, CD_MERGE_MARK "%u", w->count++);
    return name;
}

static cdmpp_status ints(writer *w, const int64_t *v, uint32_t n, uint32_t *out) {
    char name[48];
    return cd_graph_constant(w->g, numbered(w, name), CD_I64, &(cd_graph_shape){1, {n}}, v, NULL,
                             out, w->err);
}

/* Channels lo to hi of a merged result. */
static cdmpp_status cut(writer *w, uint32_t whole, int64_t lo, int64_t hi, const char *name,
                        uint32_t *out) {
    static const int64_t channel = 1;
    uint32_t in[4] = {whole};
    CD_TRY(ints(w, &lo, 1, &in[1]));
    CD_TRY(ints(w, &hi, 1, &in[2]));
    CD_TRY(ints(w, &channel, 1, &in[3]));
    return add(w, name, "Slice", in, 4, NULL, 0, out);
}

/* The new tensor of an old one; a part is cut out when it is first asked for, and keeps the name
 * that it had. */
static cdmpp_status resolve(writer *w, uint32_t t, uint32_t *out) {
    if (w->map[t] == CD_GRAPH_NONE && w->of[t] != CD_GRAPH_NONE) {
        const merged *m = &w->made[w->of[t]];
        const uint32_t i = w->part[t];
        CD_TRY(cut(w, m->whole, m->at[i], m->at[i + 1], w->from->tensor[t].name, &w->map[t]));
    }
    *out = w->map[t];
    return CDMPP_OK;
}

static cdmpp_status copy_source(writer *w, uint32_t t) {
    const cd_graph_tensor *x = &w->from->tensor[t];
    uint32_t *to = &w->map[t];
    if (x->is_input) CD_TRY(cd_graph_input(w->g, x->name, x->dtype, &x->shape, to, w->err));
    else if (x->value || x->fvalue)
        CD_TRY(
            cd_graph_constant(w->g, x->name, x->dtype, &x->shape, x->value, x->fvalue, to, w->err));
    else CD_TRY(cd_graph_weight(w->g, x->name, x->dtype, &x->shape, to, w->err));
    w->g->tensor[*to].is_weight = x->is_weight;
    w->g->tensor[*to].is_trained = x->is_trained;
    return CDMPP_OK;
}

static cdmpp_status copy_node(writer *w, const cd_graph_node *n) {
    const size_t room = (size_t)n->n_in + n->n_out + 1;
    uint32_t *in = CD_NEWN(&w->own, uint32_t, room), *out = in + n->n_in;
    cd_graph_shape *s = CD_NEWN(&w->own, cd_graph_shape, room);
    cd_dtype *t = CD_NEWN(&w->own, cd_dtype, room);
    if (!in || !s || !t) return CD_FAIL(w->err, ENOMEM, "an operator");
    for (uint32_t k = 0; k < n->n_in; k++) {
        in[k] = CD_GRAPH_NONE;
        if (n->in[k] != CD_GRAPH_NONE) CD_TRY(resolve(w, n->in[k], &in[k]));
    }
    for (uint32_t k = 0; k < n->n_out; k++)
        s[k] = w->from->tensor[n->out[k]].shape, t[k] = w->from->tensor[n->out[k]].dtype;
    if (n->opaque)
        CD_TRY(cd_graph_opaque(w->g, n->name, n->domain, n->op, in, n->n_in, s, t, out, n->n_out,
                               w->err));
    else
        CD_TRY(cd_graph_add(w->g, n->name, n->op, in, n->n_in, n->attr, n->n_attr, out, n->n_out,
                            w->err));
    for (uint32_t k = 0; k < n->n_out; k++) {
        w->map[n->out[k]] = out[k];
        CD_TRY(cd_graph_rename(w->g, out[k], w->from->tensor[n->out[k]].name, w->err));
    }
    return note(w);
}

/* ---- a set ---- */

static void name_of(const writer *w, const cd_merge_set *s, const uint32_t *node, char name[200]) {
    size_t n = 0;
    name[0] = 0;
    for (uint32_t i = 0; i < s->n && n < 150; i++)
        n += (size_t)snprintf(name + n, 200 - n, "%s%.40s", i ? "+" : "",
                              w->from->node[node[i]].name);
}

/* Operand k of all members as one, along the first dimension. */
static cdmpp_status stack(writer *w, const cd_merge_set *s, const uint32_t *node, uint32_t k,
                          uint32_t *out) {
    const cd_graph_attr axis = {.name = "axis", .kind = CD_GRAPH_ATTR_INT};
    uint32_t in[CD_MERGE_MOST];
    char name[48];
    for (uint32_t i = 0; i < s->n; i++) in[i] = w->map[w->from->node[node[i]].in[k]];
    return add(w, numbered(w, name), "Concat", in, s->n, &axis, 1, out);
}

/* A kernel with zeros around it: the window begins where its padding says. */
static cdmpp_status widen(writer *w, const cd_graph_node *n, const cd_merge_window *x,
                          uint32_t *out) {
    const int64_t *pad = merge_ints(n, "pads"), *kernel = merge_ints(n, "kernel_shape");
    const uint32_t rank = x->n + 2;
    static const double zero = 0;
    int64_t by[2 * CD_GRAPH_MAX_RANK] = {0}, any = 0;
    char name[48];
    uint32_t in[3] = {w->map[n->in[1]]};
    for (uint32_t d = 0; d < x->n; d++) {
        by[d + 2] = x->pad[d] - pad[d];
        by[rank + d + 2] = x->kernel[d] - kernel[d] - by[d + 2];
        any += by[d + 2] + by[rank + d + 2];
    }
    *out = in[0];
    if (!any) return CDMPP_OK;
    CD_TRY(ints(w, by, 2 * rank, &in[1]));
    CD_TRY(cd_graph_constant(w->g, numbered(w, name), w->g->tensor[in[0]].dtype,
                             &(cd_graph_shape){0}, NULL, &zero, &in[2], w->err));
    return add(w, numbered(w, name), "Pad", in, 3, NULL, 0, out);
}

static cdmpp_status convolution(writer *w, const cd_merge_set *s, uint32_t *out) {
    const cd_graph_node *a = &w->from->node[s->node[0]];
    const cd_graph_attr axis = {.name = "axis", .kind = CD_GRAPH_ATTR_INT};
    const bool bias = a->n_in > 2 && a->in[2] != CD_GRAPH_NONE;
    cd_merge_window x;
    uint32_t kernel[CD_MERGE_MOST], in[3];
    char name[200];
    if (!merge_window_of(w->from, s, &x))
        return CD_FAIL(w->err, EINVALID, "%.80s cannot be merged", a->name);
    for (uint32_t i = 0; i < s->n; i++)
        CD_TRY(widen(w, &w->from->node[s->node[i]], &x, &kernel[i]));
    CD_TRY(resolve(w, a->in[0], &in[0]));
    CD_TRY(add(w, numbered(w, name), "Concat", kernel, s->n, &axis, 1, &in[1]));
    if (bias) CD_TRY(stack(w, s, s->node, 2, &in[2]));
    const cd_graph_attr attr[] = {
        {.name = "kernel_shape", .kind = CD_GRAPH_ATTR_INTS, .n = x.n, .ints = x.kernel},
        {.name = "strides", .kind = CD_GRAPH_ATTR_INTS, .n = x.n, .ints = merge_ints(a, "strides")},
        {.name = "dilations",
         .kind = CD_GRAPH_ATTR_INTS,
         .n = x.n,
         .ints = merge_ints(a, "dilations")},
        {.name = "pads", .kind = CD_GRAPH_ATTR_INTS, .n = 2 * x.n, .ints = x.pad}};
    name_of(w, s, s->node, name);
    return add(w, name, "Conv", in, bias ? 3 : 2, attr, 4, out);
}

/* A batch norm has its statistics stacked; other operands of activations are the same tensor in all
 * members. */
static cdmpp_status follower(writer *w, const cd_merge_set *s, const uint32_t *node,
                             uint32_t *whole) {
    const cd_graph_node *n = &w->from->node[node[0]];
    const bool norm = !strcmp(n->op, "BatchNormalization");
    uint32_t *in = CD_NEWN(&w->own, uint32_t, (size_t)n->n_in + 1);
    char name[200];
    if (!in) return CD_FAIL(w->err, ENOMEM, "an operator");
    in[0] = *whole;
    for (uint32_t k = 1; k < n->n_in; k++) {
        in[k] = n->in[k] == CD_GRAPH_NONE ? CD_GRAPH_NONE : w->map[n->in[k]];
        if (norm) CD_TRY(stack(w, s, node, k, &in[k]));
    }
    name_of(w, s, node, name);
    CD_TRY(cd_graph_add(w->g, name, n->op, in, n->n_in, n->attr, n->n_attr, whole, 1, w->err));
    return note(w);
}

/* All members at the place of the first one: what they read is there. */
static cdmpp_status write_set(writer *w, uint32_t k) {
    const cd_merge_set *s = &w->set[k];
    merged *m = &w->made[k];
    uint32_t tensor[CD_MERGE_MOST], next[CD_MERGE_MOST];
    CD_TRY(convolution(w, s, &m->whole));
    for (uint32_t i = 0; i < s->n; i++) tensor[i] = w->from->node[s->node[i]].out[0];
    while (merge_next(w->from, &w->readers, s, tensor, next)) {
        CD_TRY(follower(w, s, next, &m->whole));
        for (uint32_t i = 0; i < s->n; i++) tensor[i] = w->from->node[next[i]].out[0];
    }
    return CDMPP_OK;
}

/* ---- a Concat ---- */

/* Parts from operand `at` on that stand side by side in one merged result: how many. */
static uint32_t run_of(const writer *w, const cd_graph_node *n, uint32_t at) {
    const uint32_t set = w->of[n->in[at]], part = w->part[n->in[at]];
    uint32_t k = 1;
    while (set != CD_GRAPH_NONE && at + k < n->n_in && w->of[n->in[at + k]] == set &&
           w->part[n->in[at + k]] == part + k)
        k++;
    return k;
}

static cdmpp_status run(writer *w, const cd_graph_node *n, uint32_t at, uint32_t k, uint32_t *out) {
    const uint32_t set = w->of[n->in[at]], part = w->part[n->in[at]];
    if (k == 1) return resolve(w, n->in[at], out);
    const merged *m = &w->made[set];
    *out = m->whole;
    return k == w->set[set].n ? CDMPP_OK
                              : cut(w, m->whole, m->at[part], m->at[part + k], n->name, out);
}

static cdmpp_status join(writer *w, const cd_graph_node *n) {
    uint32_t *in = CD_NEWN(&w->own, uint32_t, (size_t)n->n_in + 1), m = 0, *to = &w->map[n->out[0]];
    if (!in) return CD_FAIL(w->err, ENOMEM, "an operator");
    for (uint32_t at = 0, k; at < n->n_in; at += k, m++) {
        k = run_of(w, n, at);
        CD_TRY(run(w, n, at, k, &in[m]));
    }
    if (m == 1) *to = in[0];
    else CD_TRY(cd_graph_add(w->g, n->name, n->op, in, m, n->attr, n->n_attr, to, 1, w->err));
    CD_TRY(cd_graph_rename(w->g, *to, w->from->tensor[n->out[0]].name, w->err));
    return note(w);
}

/* ---- all of it ---- */

static cdmpp_status prepare_set(writer *w, uint32_t k) {
    const cd_merge_set *s = &w->set[k];
    merged *m = &w->made[k];
    uint32_t tensor[CD_MERGE_MOST], next[CD_MERGE_MOST], first = s->node[0];
    if (!merge_fits(w->from, s))
        return CD_FAIL(w->err, EINVALID, "%.80s and those beside it cannot be merged",
                       s->n ? w->from->node[s->node[0]].name : "nothing");
    for (uint32_t i = 0; i < s->n; i++) {
        if (w->gone[s->node[i]])
            return CD_FAIL(w->err, EINVALID, "%.80s is in two sets",
                           w->from->node[s->node[i]].name);
        w->gone[s->node[i]] = 1;
        if (s->node[i] < first) first = s->node[i];
        tensor[i] = w->from->node[s->node[i]].out[0];
        m->at[i + 1] = m->at[i] + w->from->tensor[tensor[i]].shape.dim[1];
    }
    w->first[first] = k;
    while (merge_next(w->from, &w->readers, s, tensor, next))
        for (uint32_t i = 0; i < s->n; i++)
            w->gone[next[i]] = 1, tensor[i] = w->from->node[next[i]].out[0];
    for (uint32_t i = 0; i < s->n; i++) w->of[tensor[i]] = k, w->part[tensor[i]] = i;
    return CDMPP_OK;
}

static cdmpp_status make_arrays(writer *w, uint32_t n) {
    const cd_graph *g = w->from;
    w->made = CD_NEWN(&w->own, merged, (size_t)n + 1);
    w->map = CD_NEWN(&w->own, uint32_t, (size_t)g->n_tensor + 1);
    w->of = CD_NEWN(&w->own, uint32_t, (size_t)g->n_tensor + 1);
    w->part = CD_NEWN(&w->own, uint32_t, (size_t)g->n_tensor + 1);
    w->first = CD_NEWN(&w->own, uint32_t, (size_t)g->n_node + 1);
    w->gone = CD_NEWN(&w->own, uint32_t, (size_t)g->n_node + 1);
    if (!w->made || !w->map || !w->of || !w->part || !w->first || !w->gone)
        return CD_FAIL(w->err, ENOMEM, "%u operators", g->n_node);
    for (uint32_t t = 0; t < g->n_tensor; t++) w->map[t] = w->of[t] = CD_GRAPH_NONE;
    for (uint32_t k = 0; k < g->n_node; k++) w->first[k] = CD_GRAPH_NONE;
    return merge_count_readers(g, &w->own, &w->readers, w->err);
}

static cdmpp_status node(writer *w, uint32_t k) {
    const cd_graph_node *n = &w->from->node[k];
    w->now = k;
    if (w->first[k] != CD_GRAPH_NONE) return write_set(w, w->first[k]);
    if (w->gone[k]) return CDMPP_OK;
    const cd_graph_attr *axis = cd_graph_node_attr(n, "axis");
    bool parts = false;
    for (uint32_t i = 0; i < n->n_in; i++)
        parts |= n->in[i] != CD_GRAPH_NONE && w->of[n->in[i]] != CD_GRAPH_NONE;
    return parts && !n->opaque && !strcmp(n->op, "Concat") && axis && axis->i == 1
               ? join(w, n)
               : copy_node(w, n);
}

static cdmpp_status write_all(writer *w, uint32_t n) {
    const cd_graph *g = w->from;
    CD_TRY(cd_graph_new(g->name, &w->g, w->err));
    w->g->opset = g->opset;
    w->g->training = g->training;
    CD_TRY(make_arrays(w, n));
    for (uint32_t k = 0; k < n; k++) CD_TRY(prepare_set(w, k));
    for (uint32_t t = 0; t < g->n_tensor; t++)
        if (g->tensor[t].node == CD_GRAPH_NONE) CD_TRY(copy_source(w, t));
    for (uint32_t k = 0; k < g->n_node; k++) CD_TRY(node(w, k));
    for (uint32_t k = 0; k < g->n_output; k++) {
        uint32_t t;
        CD_TRY(resolve(w, g->output[k], &t));
        CD_TRY(cd_graph_result(w->g, t, w->err));
    }
    return note(w);
}

cdmpp_status cd_merge_apply(const cd_graph *g, const cd_merge_set *set, uint32_t n, cd_graph **out,
                            const uint32_t **origin, cdmpp_err *err) {
    writer w = {.from = g, .set = set, .err = err};
    const cdmpp_status st = write_all(&w, n);
    cd_arena_free(&w.own);
    if (st) cd_graph_free(w.g);
    else *out = w.g;
    if (!st && origin) *origin = w.origin;
    return st;
}

/* Content of stacked weights, from that of the weights in them. */

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
