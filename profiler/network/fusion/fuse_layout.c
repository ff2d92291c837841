/* The same network in the layout that TVM schedules: channels last around convolutions, rows of
 * products as matrices. Old node i becomes to[i] in form[i]: PLAIN as the network has it, LAST
 * [N,C,H,W] as [N,H,W,C], ROWS [..,N] as [M,N]. Element-wise operators take the form of their
 * operands; operators for which the order of dimensions matters ask for PLAIN, by a transpose
 * (LAST) or view (ROWS) that is made once. */
#include <string.h>

#include "profiler/network/fusion/fusion.h"

typedef enum form { PLAIN, LAST, ROWS } form;

typedef struct place { /* of a node */
    bool live;
    uint32_t to, plain, other; /* new nodes; 0: not made */
    form form;
} place;

typedef struct layout {
    const cd_fuse_graph *from;
    cd_fuse_graph *f;
    bool last;
    place *node; /* (from->n) */
} layout;

static const cd_fuse_node *old(const layout *l, uint32_t i) { return &l->from->node[i]; }

static void to_last(uint32_t rank, int64_t *perm) {
    for (uint32_t d = 0; d < rank; d++) perm[d] = d == 0 ? 0 : d + 1 == rank ? 1 : d + 1;
}

static void from_last(uint32_t rank, int64_t *perm) {
    for (uint32_t d = 0; d < rank; d++) perm[d] = d == 0 ? 0 : d == 1 ? rank - 1 : d - 1;
}

static cd_graph_shape last_shape(const cd_graph_shape *s) {
    cd_graph_shape o = {s->rank, {0}};
    int64_t perm[CD_GRAPH_MAX_RANK];
    to_last(s->rank, perm);
    for (uint32_t d = 0; d < s->rank; d++) o.dim[d] = s->dim[perm[d]];
    return o;
}

/* Values of each dimension, in the order of channels last. */
static void permute(int64_t *v, uint32_t rank) {
    int64_t perm[CD_GRAPH_MAX_RANK], copy[CD_GRAPH_MAX_RANK];
    memcpy(copy, v, sizeof copy);
    to_last(rank, perm);
    for (uint32_t d = 0; d < rank; d++) v[d] = copy[perm[d]];
}

/* Where dimension d stands with channels last. */
static int64_t moved(int64_t d, uint32_t rank) { return d == 0 ? 0 : d == 1 ? rank - 1 : d - 1; }

/* Node i in the plain form. A change of form belongs to no operator of the network: its origin is
 * none. */
static uint32_t plain(layout *l, uint32_t i) {
    int64_t perm[CD_GRAPH_MAX_RANK];
    place *n = &l->node[i];
    if (n->form == PLAIN) return n->to;
    if (n->plain) return n->plain;
    const uint32_t origin = l->f->origin;
    l->f->origin = CD_GRAPH_NONE;
    from_last(old(l, i)->shape.rank, perm);
    n->plain = n->form == ROWS ? cd_fuse_reshape(l->f, n->to, &old(l, i)->shape)
                               : cd_fuse_transpose(l->f, n->to, perm);
    l->f->origin = origin;
    return n->plain;
}

/* Node i with channels last. */
static uint32_t last(layout *l, uint32_t i) {
    int64_t perm[CD_GRAPH_MAX_RANK];
    if (l->node[i].form == LAST) return l->node[i].to;
    if (l->node[i].other) return l->node[i].other;
    const uint32_t origin = l->f->origin;
    l->f->origin = CD_GRAPH_NONE;
    to_last(old(l, i)->shape.rank, perm);
    l->node[i].other = cd_fuse_transpose(l->f, plain(l, i), perm);
    l->f->origin = origin;
    return l->node[i].other;
}

/* A copy of n with other operands, shape and attributes. */
static uint32_t same_as(layout *l, const cd_fuse_node *n, const cd_graph_shape *s,
                        const uint32_t *in, const cd_fuse_attr *a) {
    const uint32_t id = cd_fuse_add_node(l->f, n->op, n->dtype, s, in, n->n_in, a);
    if (!id) return 0;
    l->f->node[id].value = n->value;
    l->f->node[id].tensor = n->tensor;
    if (n->op == CD_FUSE_OP_LEAF) l->f->node[id].is_const = n->is_const;
    return id;
}

static uint32_t *operands(layout *l, const cd_fuse_node *n) {
    uint32_t *in = CD_NEWN(&l->f->arena, uint32_t, n->n_in + 1);
    if (!in) cd_fuse_fail(l->f, CDMPP_ENOMEM, "out of memory for operators");
    return in;
}

/* The node in the plain form, on plain operands. */
static void keep(layout *l, uint32_t i) {
    const cd_fuse_node *n = old(l, i);
    uint32_t *in = operands(l, n);
    for (uint32_t k = 0; in && k < n->n_in; k++) in[k] = plain(l, n->in[k]);
    if (in) l->node[i].to = same_as(l, n, &n->shape, in, &n->a);
}

static bool any_is(const layout *l, const cd_fuse_node *n, form want) {
    for (uint32_t k = 0; k < n->n_in; k++)
        if (l->node[n->in[k]].form == want && old(l, n->in[k])->shape.rank == n->shape.rank)
            return true;
    return false;
}

/* ---- convolutions and what follows their layout ---- */

static bool depthwise(const layout *l, const cd_fuse_node *n) {
    const cd_graph_shape *x = &old(l, n->in[0])->shape, *w = &old(l, n->in[1])->shape;
    return n->a.n == 2 && n->a.groups > 1 && x->dim[1] == n->a.groups && w->dim[0] == n->a.groups;
}

/* [O,I,h,w] -> [h,w,I,O], of depthwise ones [h,w,O,1]. Of a weight that is no constant it is a
 * change of layout of its own. */
static uint32_t last_weight(layout *l, const cd_fuse_node *n) {
    const uint32_t dims = n->a.n;
    int64_t perm[CD_GRAPH_MAX_RANK];
    const bool dw = depthwise(l, n);
    for (uint32_t d = 0; d < dims; d++) perm[d] = d + 2;
    perm[dims] = !dw;
    perm[dims + 1] = dw;
    const uint32_t origin = l->f->origin, w = plain(l, n->in[1]);
    if (!l->f->node[w].is_const) l->f->origin = CD_GRAPH_NONE;
    const uint32_t y = cd_fuse_transpose(l->f, w, perm);
    l->f->origin = origin;
    return y;
}

static void conv(layout *l, uint32_t i) {
    const cd_fuse_node *n = old(l, i);
    cd_fuse_attr a = n->a;
    if (!l->last || a.n < 2) {
        keep(l, i);
        return;
    }
    a.last = true;
    const cd_graph_shape s = last_shape(&n->shape);
    const uint32_t in[2] = {last(l, n->in[0]), last_weight(l, n)};
    l->node[i].to = same_as(l, n, &s, in, &a);
    l->node[i].form = LAST;
}

/* Pooling, padding, slices, resizing, concatenation: as their operands are. */
static void follow(layout *l, uint32_t i) {
    const cd_fuse_node *n = old(l, i);
    cd_fuse_attr a = n->a;
    if (!any_is(l, n, LAST)) {
        keep(l, i);
        return;
    }
    const uint32_t rank = n->shape.rank;
    const cd_graph_shape s = last_shape(&n->shape);
    uint32_t *in = operands(l, n);
    for (uint32_t k = 0; in && k < n->n_in; k++) in[k] = last(l, n->in[k]);
    if (!in) return;
    a.last = true;
    if (n->op == CD_FUSE_OP_CONCAT) a.axis = moved(a.axis, rank);
    if (n->op == CD_FUSE_OP_PAD) permute(a.before, rank), permute(a.after, rank);
    if (n->op == CD_FUSE_OP_SLICE) permute(a.v, rank), permute(a.step, rank);
    l->node[i].to = same_as(l, n, &s, in, &a);
    l->node[i].form = LAST;
}

/* Without its dimensions kept the result is the same in both orders, if the
 * channels or all of the rest are gone. */
static void reduce(layout *l, uint32_t i) {
    const cd_fuse_node *n = old(l, i);
    const uint32_t x = n->in[0], rank = old(l, x)->shape.rank;
    int64_t axis[CD_GRAPH_MAX_RANK];
    bool channels = false;
    for (uint32_t k = 0; k < n->a.n; k++) {
        axis[k] = moved(n->a.v[k], rank);
        channels = channels || n->a.v[k] == 1;
    }
    const uint32_t spatial = n->a.n - channels;
    if (l->node[x].form != LAST || (!n->a.keepdims && !channels && spatial + 2 < rank)) {
        keep(l, i);
        return;
    }
    l->node[i].to = cd_fuse_reduce(l->f, (cd_fuse_reduction)n->a.mode, l->node[x].to, axis, n->a.n,
                                   n->a.keepdims);
    l->node[i].form = n->a.keepdims ? LAST : PLAIN;
}

/* ---- element by element ---- */

/* Operand k at the full rank of the result. */
static uint32_t full_rank(layout *l, const cd_fuse_node *n, uint32_t k) {
    const uint32_t x = n->in[k];
    const cd_graph_shape *s = &old(l, x)->shape;
    cd_graph_shape full = n->shape;
    for (uint32_t d = 0; d < full.rank; d++)
        full.dim[d] = d + s->rank < full.rank ? 1 : s->dim[d + s->rank - full.rank];
    return s->rank ? cd_fuse_reshape(l->f, plain(l, x), &full) : plain(l, x);
}

static uint32_t last_operand(layout *l, const cd_fuse_node *n, uint32_t k) {
    const uint32_t x = n->in[k];
    int64_t perm[CD_GRAPH_MAX_RANK];
    if (old(l, x)->shape.rank == n->shape.rank) return last(l, x);
    const uint32_t y = full_rank(l, n, k);
    if (!old(l, x)->shape.rank) return y;
    to_last(n->shape.rank, perm);
    return cd_fuse_transpose(l->f, y, perm);
}

/* Operand k as rows: 0 where it cannot be. What a reduction made keeps its dimensions, and with it
 * who reads it: means and variances are tasks over the network's own shape, as TVM's are. */
static uint32_t rows_operand(layout *l, const cd_fuse_node *n, uint32_t k) {
    const uint32_t x = n->in[k], r = n->shape.rank;
    const cd_graph_shape *s = &old(l, x)->shape;
    const int64_t cols = n->shape.dim[r - 1], all = cd_graph_shape_elements(&n->shape),
                  mine = cd_graph_shape_elements(s);
    if (l->node[x].form == ROWS && mine == all) return l->node[x].to;
    if (mine == 1) return s->rank ? 0 : plain(l, x);
    const bool one_row = mine == cols && s->dim[s->rank - 1] == cols;
    const cd_graph_shape two = {2, {one_row ? 1 : all / cols, cols}};
    if (mine != all && !one_row) return 0;
    return cd_fuse_reshape(l->f, plain(l, x), &two);
}

static bool as_rows(layout *l, uint32_t i) {
    const cd_fuse_node *n = old(l, i);
    uint32_t in[3];
    if (!any_is(l, n, ROWS) || n->n_in > 3) return false;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (!(in[k] = rows_operand(l, n, k))) return false;
    const int64_t cols = n->shape.dim[n->shape.rank - 1];
    const cd_graph_shape two = {2, {cd_graph_shape_elements(&n->shape) / cols, cols}};
    l->node[i].to = same_as(l, n, &two, in, &n->a);
    l->node[i].form = ROWS;
    return true;
}

static void element(layout *l, uint32_t i) {
    const cd_fuse_node *n = old(l, i);
    uint32_t in[3] = {0};
    const bool is_last = any_is(l, n, LAST);
    if (!is_last && as_rows(l, i)) return;
    for (uint32_t k = 0; k < n->n_in && k < 3; k++)
        in[k] = is_last ? last_operand(l, n, k) : l->last ? full_rank(l, n, k) : plain(l, n->in[k]);
    const cd_graph_shape s = is_last ? last_shape(&n->shape) : n->shape;
    l->node[i].to = same_as(l, n, &s, in, &n->a);
    l->node[i].form = is_last ? LAST : PLAIN;
}

/* Rows of a product that only got their leading dimensions back stay rows. */
static void view(layout *l, uint32_t i) {
    const cd_fuse_node *n = old(l, i), *x = old(l, n->in[0]);
    const bool is_rows = x->op == CD_FUSE_OP_DENSE && n->shape.rank > 2 &&
                         n->shape.dim[n->shape.rank - 1] == x->shape.dim[1] && x->shape.dim[1] > 0;
    const uint32_t y = l->node[n->in[0]].form == LAST ? plain(l, n->in[0]) : l->node[n->in[0]].to;
    l->node[i].to = is_rows ? y : cd_fuse_reshape(l->f, y, &n->shape);
    l->node[i].form = is_rows ? ROWS : PLAIN;
}

/* In training two transposes in a row are one: cd_fuse_transpose does that on the plain operand. */
static void transpose(layout *l, uint32_t i) {
    const cd_fuse_node *n = old(l, i);
    if (l->from->g->training) l->node[i].to = cd_fuse_transpose(l->f, plain(l, n->in[0]), n->a.v);
    else keep(l, i);
}

/* Channels in words: they lie in a row where they are last. */
static void pack(layout *l, uint32_t i) {
    const cd_fuse_node *n = old(l, i);
    if (!l->last || n->shape.rank < 4) {
        keep(l, i);
        return;
    }
    const cd_graph_shape s = last_shape(&n->shape);
    const cd_fuse_attr a = {.axis = moved(n->a.axis, n->shape.rank)};
    const uint32_t in = last(l, n->in[0]);
    l->node[i].to = same_as(l, n, &s, &in, &a);
    l->node[i].form = LAST;
}

static void one(layout *l, uint32_t i) {
    const cd_fuse_node *n = old(l, i);
    l->f->origin = n->origin;
    if (n->is_const || n->op == CD_FUSE_OP_LEAF) keep(l, i);
    else if (n->op == CD_FUSE_OP_CONV) conv(l, i);
    else if (n->op == CD_FUSE_OP_PACK4) pack(l, i);
    else if (n->op == CD_FUSE_OP_RESHAPE) view(l, i);
    else if (n->op == CD_FUSE_OP_TRANSPOSE) transpose(l, i);
    else if (n->op == CD_FUSE_OP_REDUCE) reduce(l, i);
    else if (n->op == CD_FUSE_OP_POOL || n->op == CD_FUSE_OP_POOLGRAD ||
             n->op == CD_FUSE_OP_ADAPTIVE)
        follow(l, i);
    else if (n->op == CD_FUSE_OP_PAD || n->op == CD_FUSE_OP_SLICE || n->op == CD_FUSE_OP_RESIZE)
        follow(l, i);
    else if (n->op == CD_FUSE_OP_TUPLE || n->op == CD_FUSE_OP_CONCAT) follow(l, i);
    else if (cd_fuse_op_is_expr(n->op)) element(l, i);
    else keep(l, i);
}

/* `live` marks the nodes that a result or an unsupported operator needs; others are dropped. */
static cdmpp_status set_up(layout *l, cdmpp_err *err) {
    cd_arena *a = &l->f->arena;
    const uint32_t n = l->from->n;
    l->node = CD_NEWN(a, place, n);
    l->f->out = CD_NEWN(a, uint32_t, l->from->n_out + 1);
    if (!l->node || !l->f->out) return CD_FAIL(err, ENOMEM, "out of memory for a graph");
    for (uint32_t k = 0; k < l->from->n_out; k++) l->node[l->from->out[k]].live = true;
    for (uint32_t i = n; i-- > 0;)
        for (uint32_t k = 0;
             (l->node[i].live || old(l, i)->op == CD_FUSE_OP_EXTERN) && k < old(l, i)->n_in; k++)
            l->node[old(l, i)->in[k]].live = true;
    return CDMPP_OK;
}

/* One pass in topological order; results are asked for in the plain form. */
cdmpp_status cd_fuse_layout(const cd_fuse_graph *from, bool channels_last, cd_fuse_graph **out,
                            cdmpp_err *err) {
    layout l = {.from = from, .last = channels_last};
    *out = NULL;
    CD_TRY(cd_fuse_new(from->g, &l.f, err));
    cdmpp_status st = set_up(&l, err);
    for (uint32_t i = 1; !st && i < from->n && !l.f->st; i++)
        if (l.node[i].live || old(&l, i)->op == CD_FUSE_OP_EXTERN) one(&l, i);
    for (uint32_t k = 0; !st && k < from->n_out; k++)
        l.f->out[l.f->n_out++] = plain(&l, from->out[k]);
    if (!st) st = l.f->st;
    if (st) {
        cd_fuse_free(l.f);
        return st;
    }
    *out = l.f;
    return CDMPP_OK;
}
