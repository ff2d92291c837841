/* Nodes of the fusion graph, and how their shapes follow from their operands. Nodes that would do
 * nothing (a reshape to the same shape, a transpose of dimensions of 1) are not made, as in TVM. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "profiler/network/fusion/fuse_import_internal.h"
#include "profiler/network/fusion/fusion.h"

static const struct {
    const char *name;
    cd_fuse_pattern pattern;
} op_row[] = {
#define CD_X(id, name, pattern) {name, CD_FUSE_PATTERN_##pattern},
    CD_FUSE_OPS_SPECIAL(CD_X)
#undef CD_X
#define CD_X(id, name, pattern, ...) {name, CD_FUSE_PATTERN_##pattern},
        CD_FUSE_OPS_EXPR(CD_X)
#undef CD_X
};

const char *cd_fuse_op_name(cd_fuse_op op) { return op_row[op].name; }
cd_fuse_pattern cd_fuse_op_pattern(cd_fuse_op op) { return op_row[op].pattern; }

cdmpp_status cd_fuse_new(const cd_graph *g, cd_fuse_graph **out, cdmpp_err *err) {
    cd_fuse_graph *f = cd_mem_zalloc(1, sizeof *f);
    *out = NULL;
    if (!f) return CD_FAIL(err, ENOMEM, "out of memory for a graph");
    f->g = g;
    f->err = err;
    f->origin = CD_GRAPH_NONE;
    const cd_graph_shape none = {0, {0}};
    cd_fuse_add_node(f, CD_FUSE_OP_LEAF, CD_F32, &none, NULL, 0, NULL); /* the sentinel */
    if (f->st) {
        const cdmpp_status st = f->st;
        cd_fuse_free(f);
        return st;
    }
    f->node[0].is_const = true;
    f->node[0].tensor = CD_GRAPH_NONE;
    *out = f;
    return CDMPP_OK;
}

void cd_fuse_free(cd_fuse_graph *f) {
    if (!f) return;
    cd_arena_free(&f->arena);
    cd_fusion_rules_free(&f->open);
    cd_mem_free(f->node);
    cd_mem_free(f);
}

uint32_t cd_fuse_fail(cd_fuse_graph *f, cdmpp_status st, const char *fmt, ...) {
    char text[160];
    va_list ap;
    if (f->st) return 0;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    f->st = st;
    cd_err_raise(f->err, st, __FILE__, __LINE__, "%s", text);
    return 0;
}

/* A node is constant when it has operands or a value and all its operands are constant: it is
 * computed once, before the network runs. */
static bool from_weights(const cd_fuse_graph *f, cd_fuse_op op, const uint32_t *in, uint32_t n) {
    if (op == CD_FUSE_OP_LEAF || op == CD_FUSE_OP_EXTERN) return false;
    for (uint32_t i = 0; i < n; i++)
        if (!f->node[in[i]].is_const) return false;
    return true;
}

/* ---- what is made of weights is made once: the same operator on the same operands is the same
 * node ---- */

static bool is_same_attr(const cd_fuse_attr *a, const cd_fuse_attr *b) {
#define SAME(member) (memcmp(a->member, b->member, sizeof a->member) == 0)
    return a->n == b->n && SAME(kernel) && SAME(stride) && SAME(dilation) && SAME(before) &&
           SAME(after) && SAME(v) && SAME(step) && a->groups == b->groups && a->axis == b->axis &&
           a->last == b->last && a->keepdims == b->keepdims && a->ceil == b->ceil &&
           a->include_pad == b->include_pad && a->is_max == b->is_max && a->mode == b->mode &&
           !memcmp(&a->p, &b->p, sizeof a->p) && !memcmp(&a->q, &b->q, sizeof a->q) &&
           !memcmp(&a->s, &b->s, sizeof a->s) && a->dot4 == b->dot4 && SAME(scale);
#undef SAME
}

static bool is_same_shape(const cd_graph_shape *a, const cd_graph_shape *b) {
    return a->rank == b->rank && !memcmp(a->dim, b->dim, a->rank * sizeof *a->dim);
}

/* Constants of one value are one operand, too. */
static uint64_t key_of(const cd_fuse_graph *f, const cd_fuse_node *n) {
    uint64_t h = ((uint64_t)n->op << 32 | n->dtype) * 0x9e3779b97f4a7c15U;
    for (uint32_t i = 0; i < n->n_in; i++) {
        const cd_fuse_node *x = &f->node[n->in[i]];
        uint64_t v = n->in[i];
        if (x->op == CD_FUSE_OP_CONST) memcpy(&v, &x->value, sizeof v);
        h = (h ^ v) * 0x100000001b3U;
    }
    for (uint32_t d = 0; d < n->shape.rank; d++)
        h = (h ^ (uint64_t)n->shape.dim[d]) * 0x100000001b3U;
    return h ^ h >> 29;
}

static bool is_same_operand(const cd_fuse_node *a, const cd_fuse_node *b) {
    return a == b || (a->op == CD_FUSE_OP_CONST && b->op == CD_FUSE_OP_CONST &&
                      a->dtype == b->dtype && !memcmp(&a->value, &b->value, sizeof a->value));
}

static bool is_same(const cd_fuse_graph *f, const cd_fuse_node *a, const cd_fuse_node *b) {
    if (a->op != b->op || a->dtype != b->dtype || a->n_in != b->n_in || !b->is_const ||
        !is_same_shape(&a->shape, &b->shape) || !is_same_attr(&a->a, &b->a))
        return false;
    for (uint32_t i = 0; i < a->n_in; i++)
        if (!is_same_operand(&f->node[a->in[i]], &f->node[b->in[i]])) return false;
    return true;
}

/* The place of this node in the table: an equal one's, or a free one. */
static uint32_t *place_of(const cd_fuse_graph *f, const cd_fuse_node *n) {
    uint64_t k = key_of(f, n);
    for (;; k++) {
        uint32_t *s = &f->made[k & (f->cap_made - 1)];
        if (!*s || is_same(f, n, &f->node[*s])) return s;
    }
}

/* Room for one more. The table is rebuilt, as keys are not kept. */
static bool make_room(cd_fuse_graph *f) {
    const uint32_t *old = f->made, n = f->cap_made;
    if (f->n_made * 2 < f->cap_made) return true;
    uint32_t *more = cd_arena_zalloc(&f->arena, n ? 2 * (size_t)n : 64, sizeof *more);
    if (!more) return false;
    f->made = more;
    f->cap_made = n ? 2 * n : 64;
    for (uint32_t i = 0; i < n; i++)
        if (old[i]) *place_of(f, &f->node[old[i]]) = old[i];
    return true;
}

/* Number of an equal node, or of this one, which stands at the end of the nodes and stays there
 * where it is the first. */
static uint32_t once(cd_fuse_graph *f) {
    if (!make_room(f)) return cd_fuse_fail(f, CDMPP_ENOMEM, "out of memory for operators");
    uint32_t *s = place_of(f, &f->node[f->n]);
    if (*s) return *s;
    f->n_made++;
    return *s = f->n++;
}

uint32_t cd_fuse_add_node(cd_fuse_graph *f, cd_fuse_op op, cd_dtype t, const cd_graph_shape *s,
                          const uint32_t *in, uint32_t n_in, const cd_fuse_attr *a) {
    if (f->st) return 0;
    if (f->n == CD_FUSE_MAX_NODE)
        return cd_fuse_fail(f, CDMPP_ERANGE, "more than %u operators after they are taken apart",
                            CD_FUSE_MAX_NODE);
    if (CD_GROW(f->node, f->n, f->cap))
        return cd_fuse_fail(f, CDMPP_ENOMEM, "out of memory for operators");
    uint32_t *copy = CD_NEWN(&f->arena, uint32_t, n_in + 1);
    if (!copy) return cd_fuse_fail(f, CDMPP_ENOMEM, "out of memory for operators");
    if (n_in) memcpy(copy, in, n_in * sizeof *in);
    const bool is_const = from_weights(f, op, in, n_in);
    f->node[f->n] = (cd_fuse_node){.op = op,
                                   .dtype = t,
                                   .n_in = n_in,
                                   .in = copy,
                                   .shape = *s,
                                   .is_const = is_const,
                                   .origin = f->origin,
                                   .tensor = CD_GRAPH_NONE};
    if (a) f->node[f->n].a = *a;
    return is_const && n_in ? once(f) : f->n++;
}

uint32_t cd_fuse_leaf(cd_fuse_graph *f, uint32_t tensor, bool is_const) {
    const cd_graph_tensor *t = &f->g->tensor[tensor];
    const uint32_t origin = f->origin;
    f->origin = CD_GRAPH_NONE;
    const uint32_t id = cd_fuse_add_node(f, CD_FUSE_OP_LEAF, t->dtype, &t->shape, NULL, 0, NULL);
    f->origin = origin;
    if (!id) return 0;
    f->node[id].tensor = tensor;
    f->node[id].is_const = is_const;
    return id;
}

uint32_t cd_fuse_const(cd_fuse_graph *f, cd_dtype t, double v) {
    const cd_graph_shape scalar = {0, {0}};
    const uint32_t id = cd_fuse_add_node(f, CD_FUSE_OP_CONST, t, &scalar, NULL, 0, NULL);
    if (id) f->node[id].value = v;
    return id;
}

uint32_t cd_fuse_unary(cd_fuse_graph *f, cd_fuse_op op, uint32_t x, double p, double q) {
    const cd_fuse_node *n = &f->node[x];
    const cd_graph_shape s = n->shape;
    const cd_fuse_attr a = {.p = p, .q = q};
    return cd_fuse_add_node(
        f, op, op == CD_FUSE_OP_NOT || op == CD_FUSE_OP_ISNAN ? CD_BOOL : n->dtype, &s, &x, 1, &a);
}

uint32_t cd_fuse_cast(cd_fuse_graph *f, uint32_t x, cd_dtype t) {
    const cd_graph_shape s = f->node[x].shape;
    if (f->node[x].dtype == t) return x;
    return cd_fuse_add_node(f, CD_FUSE_OP_CAST, t, &s, &x, 1, NULL);
}

/* s = the shape that s and t broadcast to. */
static bool broadcast(cd_graph_shape *s, const cd_graph_shape *t) {
    const cd_graph_shape a = *s;
    s->rank = a.rank > t->rank ? a.rank : t->rank;
    for (uint32_t d = 0; d < s->rank; d++) { /* from the last dimension */
        const int64_t x = d < a.rank ? a.dim[a.rank - 1 - d] : 1,
                      y = d < t->rank ? t->dim[t->rank - 1 - d] : 1;
        if (x != y && x != 1 && y != 1) return false;
        s->dim[s->rank - 1 - d] = x == 1 ? y : x;
    }
    return true;
}

uint32_t cd_fuse_binary(cd_fuse_graph *f, cd_fuse_op op, uint32_t x, uint32_t y) {
    cd_graph_shape s = f->node[x].shape;
    const uint32_t in[2] = {x, y};
    if (!broadcast(&s, &f->node[y].shape))
        return cd_fuse_fail(f, CDMPP_ESCHEMA, "%s: operands do not broadcast", cd_fuse_op_name(op));
    const bool cmp = op >= CD_FUSE_OP_EQ && op <= CD_FUSE_OP_OR;
    return cd_fuse_add_node(f, op, cmp ? CD_BOOL : f->node[x].dtype, &s, in, 2, NULL);
}

uint32_t cd_fuse_where(cd_fuse_graph *f, uint32_t c, uint32_t x, uint32_t y) {
    cd_graph_shape s = f->node[c].shape;
    const uint32_t in[3] = {c, x, y};
    if (!broadcast(&s, &f->node[x].shape) || !broadcast(&s, &f->node[y].shape))
        return cd_fuse_fail(f, CDMPP_ESCHEMA, "where: operands do not broadcast");
    return cd_fuse_add_node(f, CD_FUSE_OP_WHERE, f->node[x].dtype, &s, in, 3, NULL);
}

static bool same_shape(const cd_graph_shape *a, const cd_graph_shape *b) {
    return a->rank == b->rank && !memcmp(a->dim, b->dim, a->rank * sizeof a->dim[0]);
}

uint32_t cd_fuse_reshape(cd_fuse_graph *f, uint32_t x, const cd_graph_shape *s) {
    /* only the last of several counts */
    while (f->node[x].op == CD_FUSE_OP_RESHAPE) x = f->node[x].in[0];
    if (same_shape(&f->node[x].shape, s)) return x;
    if (!f->st && cd_graph_shape_elements(&f->node[x].shape) != cd_graph_shape_elements(s))
        return cd_fuse_fail(f, CDMPP_ESCHEMA, "reshape: another number of elements");
    return cd_fuse_add_node(f, CD_FUSE_OP_RESHAPE, f->node[x].dtype, s, &x, 1, NULL);
}

/* In iterations of training two transposes are one; at inference they stay TVM's. */
static uint32_t both_transposes(cd_fuse_graph *f, uint32_t x, const int64_t *perm) {
    int64_t both[CD_GRAPH_MAX_RANK];
    const cd_fuse_node *n = &f->node[x];
    for (uint32_t d = 0; d < n->shape.rank; d++) {
        if (perm[d] < 0 || perm[d] >= n->shape.rank)
            return cd_fuse_fail(f, CDMPP_ESCHEMA, "transpose: no dimension %lld",
                                (long long)perm[d]);
        both[d] = n->a.v[perm[d]];
    }
    return cd_fuse_transpose(f, n->in[0], both);
}

/* It is a view where no dimension above 1 changes its place among the others. */
uint32_t cd_fuse_transpose(cd_fuse_graph *f, uint32_t x, const int64_t *perm) {
    if (f->g->training && f->node[x].op == CD_FUSE_OP_TRANSPOSE) return both_transposes(f, x, perm);
    const cd_graph_shape in = f->node[x].shape;
    cd_graph_shape s = {in.rank, {0}};
    cd_fuse_attr a = {.n = in.rank};
    bool view = true;
    int64_t last = -1;
    for (uint32_t d = 0; d < in.rank; d++) {
        if (perm[d] < 0 || perm[d] >= in.rank)
            return cd_fuse_fail(f, CDMPP_ESCHEMA, "transpose: no dimension %lld",
                                (long long)perm[d]);
        a.v[d] = perm[d];
        s.dim[d] = in.dim[perm[d]];
        if (s.dim[d] == 1) continue;
        view = view && perm[d] > last;
        last = perm[d];
    }
    if (view) return cd_fuse_reshape(f, x, &s);
    return cd_fuse_add_node(f, CD_FUSE_OP_TRANSPOSE, f->node[x].dtype, &s, &x, 1, &a);
}

uint32_t cd_fuse_reduce(cd_fuse_graph *f, cd_fuse_reduction how, uint32_t x, const int64_t *axis,
                        uint32_t n, bool keepdims) {
    if (f->st) return 0; /* out of memory: there may be no node */
    const cd_graph_shape in = f->node[x].shape;
    cd_graph_shape s = {0, {0}};
    cd_fuse_attr a = {.keepdims = keepdims, .mode = (int)how};
    unsigned gone = 0;
    for (uint32_t i = 0; i < n; i++) gone |= 1U << (unsigned)(axis[i] & 7);
    for (uint32_t d = 0; d < in.rank; d++) {
        const bool out = gone >> d & 1U;
        if (out) a.v[a.n++] = d;
        if (!out || keepdims) s.dim[s.rank++] = out ? 1 : in.dim[d];
    }
    if (!a.n) return x;
    return cd_fuse_add_node(f, CD_FUSE_OP_REDUCE, f->node[x].dtype, &s, &x, 1, &a);
}

uint32_t cd_fuse_slice(cd_fuse_graph *f, uint32_t x, const int64_t *start, const int64_t *step,
                       const cd_graph_shape *s) {
    const cd_graph_shape in = f->node[x].shape;
    cd_fuse_attr a = {.n = in.rank};
    bool whole = true;
    for (uint32_t d = 0; d < in.rank; d++) {
        a.v[d] = start[d];
        a.step[d] = step ? step[d] : 1;
        whole = whole && !start[d] && a.step[d] == 1 && s->dim[d] == in.dim[d];
    }
    if (whole) return x;
    return cd_fuse_add_node(f, CD_FUSE_OP_SLICE, f->node[x].dtype, s, &x, 1, &a);
}

uint32_t cd_fuse_expand(cd_fuse_graph *f, uint32_t x, const cd_graph_shape *s) {
    if (cd_graph_shape_elements(&f->node[x].shape) == cd_graph_shape_elements(s))
        return cd_fuse_reshape(f, x, s);
    return cd_fuse_add_node(f, CD_FUSE_OP_EXPAND, f->node[x].dtype, s, &x, 1, NULL);
}

/* As TVM's SplitArgs: concatenations of as equal numbers of parts as can be, then one of these.
 * Each element is moved once more for each further level; one program of all parts would have more
 * arguments than a kernel may have, and choose among all of them for each element. */
static uint32_t concat_in_pieces(cd_fuse_graph *f, const uint32_t *in, uint32_t n, int64_t axis) {
    const uint32_t n_piece = n / CD_FUSE_MAX_READS + (n % CD_FUSE_MAX_READS != 0);
    uint32_t *piece = CD_NEWN(&f->arena, uint32_t, n_piece);
    if (!piece) return cd_fuse_fail(f, CDMPP_ENOMEM, "out of memory for operators");
    for (uint32_t k = 0, from = 0; k < n_piece && !f->st; k++) {
        const uint32_t size = (n - from) / (n_piece - k);
        piece[k] = cd_fuse_concat(f, in + from, size, axis);
        from += size;
    }
    return f->st ? 0 : cd_fuse_concat(f, piece, n_piece, axis);
}

uint32_t cd_fuse_concat(cd_fuse_graph *f, const uint32_t *in, uint32_t n, int64_t axis) {
    cd_graph_shape s = f->node[in[0]].shape;
    const cd_fuse_attr a = {.axis = axis};
    if (n == 1) return in[0];
    if (n > CD_FUSE_MAX_READS) return concat_in_pieces(f, in, n, axis);
    if (axis < 0 || axis >= s.rank)
        return cd_fuse_fail(f, CDMPP_ESCHEMA, "concatenate: no dimension %lld", (long long)axis);
    for (uint32_t i = 1; i < n; i++) s.dim[axis] += f->node[in[i]].shape.dim[axis];
    const uint32_t tuple =
        cd_fuse_add_node(f, CD_FUSE_OP_TUPLE, f->node[in[0]].dtype, &s, in, n, NULL);
    return cd_fuse_add_node(f, CD_FUSE_OP_CONCAT, f->node[in[0]].dtype, &s, &tuple, 1, &a);
}

uint32_t cd_fuse_dense(cd_fuse_graph *f, uint32_t x, uint32_t w) {
    const cd_graph_shape a = f->node[x].shape, b = f->node[w].shape;
    const cd_graph_shape s = {2, {a.dim[0], b.dim[0]}};
    const uint32_t in[2] = {x, w};
    if (!f->st && (a.rank != 2 || b.rank != 2 || a.dim[1] != b.dim[1]))
        return cd_fuse_fail(f, CDMPP_ESCHEMA, "dense: operands do not fit");
    return cd_fuse_add_node(f, CD_FUSE_OP_DENSE, f->node[x].dtype, &s, in, 2, NULL);
}

uint32_t cd_fuse_bmm(cd_fuse_graph *f, uint32_t x, uint32_t y) {
    const cd_graph_shape a = f->node[x].shape, b = f->node[y].shape;
    const cd_graph_shape s = {3, {a.dim[0] > b.dim[0] ? a.dim[0] : b.dim[0], a.dim[1], b.dim[1]}};
    const uint32_t in[2] = {x, y};
    if (!f->st && (a.rank != 3 || b.rank != 3 || a.dim[2] != b.dim[2]))
        return cd_fuse_fail(f, CDMPP_ESCHEMA, "batch_matmul: operands do not fit");
    return cd_fuse_add_node(f, CD_FUSE_OP_BMM, f->node[x].dtype, &s, in, 2, NULL);
}

/* Extents of the inner dimension must agree after the transposes that `how` names. */
uint32_t cd_fuse_product(cd_fuse_graph *f, uint32_t x, uint32_t y, int how) {
    const cd_graph_shape a = f->node[x].shape, b = f->node[y].shape;
    const cd_fuse_attr attr = {.mode = how};
    const uint32_t in[2] = {x, y};
    const bool three = a.rank == 3, tx = how & CD_FUSE_TRANSPOSED_X,
               ty = how & CD_FUSE_TRANSPOSED_Y;
    if (!how) return three ? cd_fuse_bmm(f, x, y) : cd_fuse_dense(f, x, y);
    const bool fit =
        a.rank == b.rank && (three || a.rank == 2) && a.dim[three + !tx] == b.dim[three + !ty];
    if (!f->st && !fit) return cd_fuse_fail(f, CDMPP_ESCHEMA, "matmul: operands do not fit");
    cd_graph_shape s = {2, {a.dim[three + tx], b.dim[three + ty]}};
    if (three)
        s = (cd_graph_shape){3, {a.dim[0] > b.dim[0] ? a.dim[0] : b.dim[0], s.dim[0], s.dim[1]}};
    return cd_fuse_add_node(f, three ? CD_FUSE_OP_BMM : CD_FUSE_OP_DENSE, f->node[x].dtype, &s, in,
                            2, &attr);
}

uint32_t cd_fuse_softmax(cd_fuse_graph *f, cd_fuse_op op, uint32_t x, int64_t axis) {
    const cd_graph_shape s = f->node[x].shape;
    const cd_fuse_attr a = {.axis = axis};
    return cd_fuse_add_node(f, op, f->node[x].dtype, &s, &x, 1, &a);
}

/* Recurrent layers: one cell a time step, as TVM unrolls them.
 *
 *   gates = (h R' + Rb) + (x_t W' + Wb);  LSTM: i o f c  GRU: z r h  RNN: one
 *
 * The sum is one task with the product of h, as in TVM's. Each node is made by a statement of its
 * own: their order decides which product that is. */

typedef struct layer {
    cd_fuse_importer *m;
    int64_t seq, batch, in, hidden, gates;
    uint32_t x, w, r, wb, rb, h, c; /* of one direction; 0: absent */
    bool after;                     /* GRU: the reset gate comes behind the product */
} layer;

/* Rows from .. from+n of dimension d, of a tensor of any rank. */
static uint32_t part(cd_fuse_importer *m, uint32_t x, uint32_t d, int64_t from, int64_t n) {
    int64_t start[CD_GRAPH_MAX_RANK] = {0};
    cd_graph_shape s = *cd_fuse_import_shape(m, x);
    start[d] = from;
    s.dim[d] = n;
    return cd_fuse_slice(m->f, x, start, NULL, &s);
}

/* Row i of the first dimension, without that dimension. */
static uint32_t row(cd_fuse_importer *m, uint32_t x, int64_t i) {
    const uint32_t y = part(m, x, 0, i, 1);
    cd_graph_shape s = *cd_fuse_import_shape(m, y);
    memmove(s.dim, s.dim + 1, (s.rank - 1) * sizeof s.dim[0]);
    s.rank--;
    return cd_fuse_reshape(m->f, y, &s);
}

static uint32_t gate(layer *l, uint32_t all, int64_t k) {
    return part(l->m, all, 1, k * l->hidden, l->hidden);
}
static uint32_t un(layer *l, cd_fuse_op op, uint32_t x) {
    return cd_fuse_unary(l->m->f, op, x, 0, 0);
}
static uint32_t bi(layer *l, cd_fuse_op op, uint32_t x, uint32_t y) {
    return cd_fuse_binary(l->m->f, op, x, y);
}

static uint32_t product(layer *l, uint32_t x, uint32_t w, uint32_t bias) {
    const uint32_t y = cd_fuse_dense(l->m->f, x, w);
    return bias ? bi(l, CD_FUSE_OP_ADD, y, bias) : y;
}

static uint32_t both_products(layer *l, uint32_t x) {
    const uint32_t h = product(l, l->h, l->r, l->rb), in = product(l, x, l->w, l->wb);
    return bi(l, CD_FUSE_OP_ADD, h, in);
}

static void lstm_cell(layer *l, uint32_t x) {
    const uint32_t all = both_products(l, x);
    const uint32_t i = un(l, CD_FUSE_OP_SIGMOID, gate(l, all, 0)),
                   o = un(l, CD_FUSE_OP_SIGMOID, gate(l, all, 1));
    const uint32_t f = un(l, CD_FUSE_OP_SIGMOID, gate(l, all, 2)),
                   g = un(l, CD_FUSE_OP_TANH, gate(l, all, 3));
    const uint32_t old = bi(l, CD_FUSE_OP_MUL, f, l->c), more = bi(l, CD_FUSE_OP_MUL, i, g);
    l->c = bi(l, CD_FUSE_OP_ADD, old, more);
    l->h = bi(l, CD_FUSE_OP_MUL, o, un(l, CD_FUSE_OP_TANH, l->c));
}

/* linear_before_reset (l->after) decides whether the reset gate multiplies h before the product
 * with R_h or the product itself. In the second case all three products of h are one. */
static void gru_cell(layer *l, uint32_t x) {
    cd_fuse_importer *m = l->m;
    const int64_t n = l->hidden;
    const uint32_t xs = product(l, x, l->w, l->wb), one = cd_fuse_const(m->f, CD_F32, 1);
    const int64_t side = l->after ? 3 * n : 2 * n;
    const uint32_t w = part(m, l->r, 0, 0, side), b = l->rb ? part(m, l->rb, 0, 0, side) : 0,
                   hs = product(l, l->h, w, b);
    const uint32_t xz = gate(l, xs, 0), hz = gate(l, hs, 0),
                   z = un(l, CD_FUSE_OP_SIGMOID, bi(l, CD_FUSE_OP_ADD, xz, hz));
    const uint32_t xr = gate(l, xs, 1), hr = gate(l, hs, 1),
                   r = un(l, CD_FUSE_OP_SIGMOID, bi(l, CD_FUSE_OP_ADD, xr, hr));
    uint32_t hn;
    if (l->after) {
        hn = bi(l, CD_FUSE_OP_MUL, r, gate(l, hs, 2));
    } else {
        const uint32_t v = part(m, l->r, 0, 2 * n, n), d = l->rb ? part(m, l->rb, 0, 2 * n, n) : 0;
        hn = product(l, bi(l, CD_FUSE_OP_MUL, r, l->h), v, d);
    }
    const uint32_t g = un(l, CD_FUSE_OP_TANH, bi(l, CD_FUSE_OP_ADD, gate(l, xs, 2), hn));
    const uint32_t more = bi(l, CD_FUSE_OP_MUL, bi(l, CD_FUSE_OP_SUB, one, z), g),
                   old = bi(l, CD_FUSE_OP_MUL, z, l->h);
    l->h = bi(l, CD_FUSE_OP_ADD, more, old);
}

static void rnn_cell(layer *l, uint32_t x) { l->h = un(l, CD_FUSE_OP_TANH, both_products(l, x)); }

/* Initial state of direction d: operand k, or zeros where it is left out. */
static uint32_t state(layer *l, uint32_t k, int64_t d) {
    const cd_graph_shape s = {2, {l->batch, l->hidden}};
    if (cd_fuse_import_has(l->m, k)) return row(l->m, cd_fuse_import_input(l->m, k), d);
    return cd_fuse_add_node(l->m->f, CD_FUSE_OP_EXPAND, CD_F32, &s,
                            (uint32_t[]){cd_fuse_const(l->m->f, CD_F32, 0)}, 1, NULL);
}

static void direction(layer *l, int64_t d) {
    cd_fuse_importer *m = l->m;
    l->w = row(m, cd_fuse_import_input(m, 1), d);
    l->r = row(m, cd_fuse_import_input(m, 2), d);
    l->wb = l->rb = 0;
    if (cd_fuse_import_has(m, 3)) {
        const uint32_t b = row(m, cd_fuse_import_input(m, 3), d);
        l->wb = part(m, b, 0, 0, l->gates * l->hidden);
        l->rb = part(m, b, 0, l->gates * l->hidden, l->gates * l->hidden);
    }
    l->h = state(l, 5, d);
    l->c = l->gates == 4 ? state(l, 6, d) : 0;
}

/* Is the list of activations, with commas between them, the usual one, once for each direction?
 * Their names have no case. */
static bool is_usual(const cd_fuse_importer *m, const char *s) {
    static const char *const usual[][3] = {
        {"LSTM", "sigmoid,tanh,tanh", "sigmoid,tanh,tanh,sigmoid,tanh,tanh"},
        {"GRU", "sigmoid,tanh", "sigmoid,tanh,sigmoid,tanh"},
        {"RNN", "tanh", "tanh,tanh"}};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (!strcmp(m->n->op, usual[i][0]))
            return !*s || !strcasecmp(s, usual[i][1]) || !strcasecmp(s, usual[i][2]);
    return false;
}

/* Why a layer cannot be taken apart; NULL: it can. */
static const char *strange(const cd_fuse_importer *m, int64_t steps) {
    const cd_graph_attr *act = cd_graph_node_attr(m->n, "activations");
    if (act && (act->kind != CD_GRAPH_ATTR_STR || !is_usual(m, act->s)))
        return "other activations than the usual ones";
    if (steps > CD_FUSE_MAX_STEPS)
        return "a recurrent layer of more than 16384 steps is not taken apart";
    if (cd_graph_node_attr(m->n, "clip") || cd_graph_node_int(m->n, "input_forget", 0))
        return "a recurrent layer with clip or input_forget";
    if (cd_fuse_import_has(m, 4)) return "sequences of different lengths";
    if (cd_fuse_import_has(m, 7)) return "an LSTM with peepholes";
    if (cd_graph_node_int(m->n, "layout", 0)) return "a recurrent layer with batches first";
    return NULL;
}

/* [D] states of [batch, hidden] as [D, batch, hidden]. */
static uint32_t together(cd_fuse_importer *m, uint32_t *v, uint32_t n, const cd_graph_shape *s) {
    cd_graph_shape one = *s;
    one.dim[0] = 1;
    if (s->rank == 4) one.dim[1] = 1;
    for (uint32_t i = 0; i < n; i++) v[i] = cd_fuse_reshape(m->f, v[i], &one);
    return n > 1 ? cd_fuse_concat(m->f, v, n, 0) : v[0];
}

/* y: (directions, seq) hidden states -> [seq, D, batch, hidden]. */
static uint32_t sequence(cd_fuse_importer *m, uint32_t *y, int64_t seq, int64_t directions) {
    uint32_t both[2];
    cd_graph_shape s = *cd_fuse_import_result_shape(m);
    s.dim[1] = 1;
    for (int64_t d = 0; d < directions; d++) both[d] = together(m, y + d * seq, (uint32_t)seq, &s);
    return directions > 1 ? cd_fuse_concat(m->f, both, 2, 1) : both[0];
}

static void steps(layer *l, bool back, void (*cell)(layer *l, uint32_t x), uint32_t *y) {
    for (int64_t i = 0; i < l->seq; i++) {
        const int64_t t = back ? l->seq - 1 - i : i;
        cell(l, row(l->m, l->x, t));
        y[t] = l->h;
    }
}

/* One cell for each time step and direction; results that nobody reads are not put together. */
static void recurrent(cd_fuse_importer *m, int64_t gates, void (*cell)(layer *l, uint32_t x)) {
    const char *way = cd_graph_node_attr(m->n, "direction")
                          ? cd_graph_node_attr(m->n, "direction")->s
                          : "forward";
    const int64_t directions = way && !strcmp(way, "bidirectional") ? 2 : 1;
    const uint32_t x = cd_fuse_import_input(m, 0);
    const cd_graph_shape s = *cd_fuse_import_shape(m, x);
    layer l = {.m = m,
               .seq = s.dim[0],
               .batch = s.dim[1],
               .in = s.dim[2],
               .hidden = cd_fuse_import_shape(m, cd_fuse_import_input(m, 2))->dim[2],
               .gates = gates,
               .x = x,
               .after = cd_graph_node_int(m->n, "linear_before_reset", 0) != 0};
    m->why = strange(m, l.seq);
    if (m->why || m->f->st) return;
    uint32_t h[2], c[2], *y = CD_NEWN(&m->f->arena, uint32_t, (size_t)(2 * l.seq + 1));
    if (!y) cd_fuse_fail(m->f, CDMPP_ENOMEM, "out of memory for operators");
    if (m->f->st) return;
    for (int64_t d = 0; d < directions; d++) {
        direction(&l, d);
        steps(&l, d || (way && !strcmp(way, "reverse")), cell, y + d * l.seq);
        h[d] = l.h;
        c[d] = l.c;
    }
    if (cd_fuse_import_is_used(m, 0))
        cd_fuse_import_output(m, 0, sequence(m, y, l.seq, directions));
    const cd_graph_shape last = {3, {directions, l.batch, l.hidden}};
    if (cd_fuse_import_is_used(m, 1))
        cd_fuse_import_output(m, 1, together(m, h, (uint32_t)directions, &last));
    if (cd_fuse_import_is_used(m, 2))
        cd_fuse_import_output(m, 2, together(m, c, (uint32_t)directions, &last));
}

static void lstm(cd_fuse_importer *m) { recurrent(m, 4, lstm_cell); }
static void gru(cd_fuse_importer *m) { recurrent(m, 3, gru_cell); }
static void rnn(cd_fuse_importer *m) { recurrent(m, 1, rnn_cell); }

const cd_fuse_import_rule cd_fuse_import_rules_rnn[] = {
    {"LSTM", lstm}, {"GRU", gru}, {"RNN", rnn}, {NULL, NULL}};
