/* Recurrent layers, one cell a time step, in operators that have gradients.
 *
 *   all steps at once: x W' + Wb, a product       step t: h R' + Rb, the gates, the new state
 *
 * The gradients of W and its bias are one product and one sum over all steps again; those of R are
 * added up step by step. */
#include <string.h>

#include "profiler/network/gradient/autodiff_internal.h"

typedef struct layer {
    cd_autodiff_builder *b;
    int64_t seq, batch, in, hidden, gates;
    uint32_t w, r, wb, rb, h, c; /* of one direction; CD_GRAPH_NONE: absent, of states: zeros */
    bool after;                  /* GRU: the reset gate comes behind the product */
} layer;

static const uint32_t NONE = CD_GRAPH_NONE;

static void parts(cd_autodiff_builder *b, uint32_t x, int64_t axis, uint32_t n, uint32_t *out) {
    const cd_graph_attr a = cd_autodiff_attr_int("axis", axis);
    if (n == 1) out[0] = x;
    else cd_autodiff_op_outputs(b, "Split", 1, &x, 1, &a, n, out);
}

/* Where neither is absent their sum. */
static uint32_t sum(cd_autodiff_builder *b, uint32_t x, uint32_t y) {
    return x == NONE ? y : y == NONE ? x : cd_autodiff_binary(b, "Add", x, y);
}
static uint32_t product_or_none(cd_autodiff_builder *b, uint32_t x, uint32_t y) {
    return x == NONE || y == NONE ? NONE : cd_autodiff_binary(b, "Mul", x, y);
}

/* h R' + Rb; of a state of zeros the bias. */
static uint32_t recur(layer *l, uint32_t h, uint32_t r, uint32_t rb) {
    return sum(l->b, h == NONE ? NONE : cd_autodiff_gemm(l->b, h, r, false, true), rb);
}

static void lstm_cell(layer *l, uint32_t x) {
    cd_autodiff_builder *b = l->b;
    uint32_t g[4]; /* i o f c */
    parts(b, sum(b, recur(l, l->h, l->r, l->rb), x), 1, 4, g);
    const uint32_t i = cd_autodiff_unary(b, "Sigmoid", g[0]),
                   o = cd_autodiff_unary(b, "Sigmoid", g[1]);
    const uint32_t old =
        l->c == NONE ? NONE
                     : cd_autodiff_binary(b, "Mul", cd_autodiff_unary(b, "Sigmoid", g[2]), l->c);
    l->c = sum(b, old, cd_autodiff_binary(b, "Mul", i, cd_autodiff_unary(b, "Tanh", g[3])));
    l->h = cd_autodiff_binary(b, "Mul", o, cd_autodiff_unary(b, "Tanh", l->c));
}

/* linear_before_reset (l->after) decides whether the reset gate multiplies the product, or h before
 * it; then the last third of R is used alone. */
static uint32_t candidate(layer *l, uint32_t x, uint32_t r, uint32_t hs) {
    cd_autodiff_builder *b = l->b;
    if (l->after) return sum(b, x, product_or_none(b, r, hs));
    uint32_t w[3], bias[3] = {NONE, NONE, NONE};
    parts(b, l->r, 0, 3, w);
    if (l->rb != NONE) parts(b, l->rb, 0, 3, bias);
    return sum(b, x, recur(l, product_or_none(b, r, l->h), w[2], bias[2]));
}

/* The gates of x and of h are summed where both are there. */
static void gru_cell(layer *l, uint32_t x) {
    cd_autodiff_builder *b = l->b;
    uint32_t xs[3], hs[3] = {NONE, NONE, NONE}; /* z r h */
    parts(b, x, 1, 3, xs);
    const uint32_t all = recur(l, l->h, l->r, l->rb);
    if (all != NONE) parts(b, all, (int64_t)cd_autodiff_shape(b, all)->rank - 1, 3, hs);
    const uint32_t z = cd_autodiff_unary(b, "Sigmoid", sum(b, xs[0], hs[0])),
                   r = cd_autodiff_unary(b, "Sigmoid", sum(b, xs[1], hs[1]));
    const uint32_t g = cd_autodiff_unary(b, "Tanh", candidate(l, xs[2], r, hs[2]));
    const uint32_t more =
        cd_autodiff_binary(b, "Mul", cd_autodiff_scalar_binary(b, "Sub", 1, z), g);
    l->h = sum(b, more, product_or_none(b, z, l->h));
}

static void rnn_cell(layer *l, uint32_t x) {
    l->h = cd_autodiff_unary(l->b, "Tanh", sum(l->b, recur(l, l->h, l->r, l->rb), x));
}

/* x of every step, times W': (seq) tensors of [batch, gates*hidden]. */
static void inputs(layer *l, uint32_t x, uint32_t *out) {
    cd_autodiff_builder *b = l->b;
    const cd_graph_shape flat = {2, {l->seq * l->batch, l->in}};
    const cd_graph_shape apart = {3, {l->seq, l->batch, l->gates * l->hidden}};
    const cd_graph_shape one = {2, {l->batch, l->gates * l->hidden}};
    const uint32_t all =
        sum(b, cd_autodiff_gemm(b, cd_autodiff_reshape(b, x, &flat), l->w, false, true), l->wb);
    parts(b, cd_autodiff_reshape(b, all, &apart), 0, (uint32_t)l->seq, out);
    for (int64_t t = 0; t < l->seq; t++) out[t] = cd_autodiff_reshape(b, out[t], &one);
}

/* Part d of D along dimension 0, without that dimension. */
static uint32_t part(cd_autodiff_builder *b, uint32_t x, int64_t d) {
    cd_graph_shape s = *cd_autodiff_shape(b, x);
    int64_t start[CD_GRAPH_MAX_RANK] = {d};
    if (b->st || x == NONE) return NONE;
    s.dim[0] = 1;
    const uint32_t y = cd_autodiff_slice(b, x, start, &s);
    memmove(s.dim, s.dim + 1, (s.rank - 1) * sizeof s.dim[0]);
    s.rank--;
    return cd_autodiff_reshape(b, y, &s);
}

static uint32_t operand(const cd_graph_node *n, const uint32_t *in, uint32_t k) {
    return k < n->n_in ? in[k] : NONE;
}

static void direction(layer *l, const cd_graph_node *n, const uint32_t *in, int64_t d) {
    cd_autodiff_builder *b = l->b;
    uint32_t both[2] = {NONE, NONE};
    l->w = part(b, in[1], d);
    l->r = part(b, in[2], d);
    if (operand(n, in, 3) != NONE) parts(b, part(b, in[3], d), 0, 2, both);
    l->wb = both[0];
    l->rb = both[1];
    l->h = part(b, operand(n, in, 5), d);
    l->c = l->gates == 4 ? part(b, operand(n, in, 6), d) : NONE;
}

static uint32_t put_together(cd_autodiff_builder *b, uint32_t *v, uint32_t n, int64_t axis,
                             const cd_graph_shape *one) {
    const cd_graph_attr a = cd_autodiff_attr_int("axis", axis);
    for (uint32_t k = 0; k < n; k++) v[k] = cd_autodiff_reshape(b, v[k], one);
    return n == 1 ? v[0] : cd_autodiff_op(b, "Concat", n, v, 1, &a);
}

static bool strange(const cd_graph_node *n, const uint32_t *in) {
    const cd_graph_attr *act = cd_graph_node_attr(n, "activations");
    return (act && act->n) || cd_graph_node_attr(n, "clip") ||
           cd_graph_node_int(n, "input_forget", 0) || operand(n, in, 4) != NONE ||
           operand(n, in, 7) != NONE || cd_graph_node_int(n, "layout", 0);
}

/* y: hidden states of a direction, by time. */
static void run(layer *l, bool back, void (*cell)(layer *l, uint32_t x), uint32_t x, uint32_t *xs,
                uint32_t *y) {
    inputs(l, x, xs);
    for (int64_t i = 0; i < l->seq; i++) {
        const int64_t t = back ? l->seq - 1 - i : i;
        cell(l, xs[t]);
        y[t] = l->h;
    }
}

/* Each direction runs over its steps; states are joined to the shapes that ONNX's results have.
 * Layers with activations, clipping or lengths of their own stay one operator, without a
 * gradient. */
bool cd_autodiff_decompose_rnn(cd_autodiff_builder *b, const cd_graph_node *n, const uint32_t *in,
                               uint32_t *out) {
    const int64_t gates = !strcmp(n->op, "LSTM")  ? 4
                          : !strcmp(n->op, "GRU") ? 3
                          : !strcmp(n->op, "RNN") ? 1
                                                  : 0;
    void (*const cell)(layer * l, uint32_t x) = gates == 4   ? lstm_cell
                                                : gates == 3 ? gru_cell
                                                             : rnn_cell;
    if (!gates || strange(n, in)) return false;
    const cd_graph_shape s = *cd_autodiff_shape(b, in[0]);
    const cd_graph_attr *way = cd_graph_node_attr(n, "direction");
    const bool two = way && way->s && !strcmp(way->s, "bidirectional"),
               back = way && way->s && !strcmp(way->s, "reverse");
    layer l = {.b = b,
               .seq = s.dim[0],
               .batch = s.dim[1],
               .in = s.dim[2],
               .hidden = cd_autodiff_shape(b, in[2])->dim[2],
               .gates = gates,
               .after = cd_graph_node_int(n, "linear_before_reset", 0) != 0};
    uint32_t h[2], c[2], all[2], *y = CD_NEWN(&b->g->arena, uint32_t, (size_t)(2 * l.seq + 2));
    if (!l.seq) return false;
    if (!y) {
        cd_autodiff_fail(b, CD_FAIL(b->err, ENOMEM, "out of memory for operators"));
        return true;
    }
    const cd_graph_shape step = {4, {1, 1, l.batch, l.hidden}};
    const cd_graph_shape state = {3, {1, l.batch, l.hidden}};
    const cd_graph_shape whole = {4, {l.seq, 1, l.batch, l.hidden}};
    for (int64_t d = 0; d <= two && !b->st; d++) {
        direction(&l, n, in, d);
        run(&l, d || back, cell, in[0], y + l.seq, y);
        all[d] = put_together(b, y, (uint32_t)l.seq, 0, &step);
        h[d] = l.h;
        c[d] = l.c;
    }
    if (b->st) return true;
    out[0] = put_together(b, all, 1U + two, 1, &whole);
    if (n->n_out > 1) out[1] = put_together(b, h, 1U + two, 0, &state);
    if (n->n_out > 2) out[2] = put_together(b, c, 1U + two, 0, &state);
    return true;
}
