/* Recurrent layers: one cell a time step, as TVM unrolls them.
 *
 *   gates = (h R' + Rb) + (x_t W' + Wb);  LSTM: i o f c  GRU: z r h  RNN: one
 *
 * The sum is one task with the product of h, as in TVM's. Each node is made by a statement of its
 * own: their order decides which product that is. */
#include <string.h>
#include <strings.h>

#include "profiler/network/fusion/fuse_import_internal.h"

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
