/* Operators on quantised numbers whose results are whole numbers: MatMulInteger, ConvInteger, and
 * DynamicQuantizeLinear, which makes their input as the network runs.
 *
 *   sum (a - za)(b - zb)  =  sum a b  -  za sum (b - zb)  -  zb sum a       a: uint8, b: int8
 *                            dot4        of weights alone    no part where zb is 0
 *
 * int8 data are taken as uint8, 128 higher, and uint8 weights as int8, 128 lower, each with its
 * zero point: the sum is the same. What this does not fit (two tensors of data, or of weights,
 * groups, one dimension) multiplies numbers of 32 bits. */
#include <string.h>

#include "profiler/network/fusion/fuse_import_internal.h"
#include "profiler/network/fusion/fuse_quantize_internal.h"

/* ---- numbers with their zero point, in 32 bits ---- */

typedef struct quantised {
    uint32_t node, zero; /* of type int32; zero 0: there is none */
    bool low;            /* the file has int8 */
} quantised;

/* Of many that are known and equal one is enough. */
static uint32_t zero_of(cd_fuse_importer *m, uint32_t k) {
    const cd_graph_tensor *t = cd_fuse_import_has(m, k) ? cd_fuse_import_tensor(m, k) : NULL;
    const int64_t n = t ? cd_graph_shape_elements(&t->shape) : 0;
    int64_t same = 1;
    if (!t) return 0;
    while (t->value && same < n && t->value[same] == t->value[0]) same++;
    if (!t->value || !n || same < n) return cd_fuse_cast(m->f, cd_fuse_import_input(m, k), CD_I32);
    return t->value[0] ? cd_fuse_const(m->f, CD_I32, (double)t->value[0]) : 0;
}

static quantised operand(cd_fuse_importer *m, uint32_t k, uint32_t zero) {
    const uint32_t x = cd_fuse_import_input(m, k);
    return (quantised){cd_fuse_cast(m->f, x, CD_I32), zero_of(m, zero),
                       m->f->node[x].dtype == CD_QUANTIZE_I8};
}

static uint32_t less(cd_fuse_graph *f, uint32_t x, uint32_t y) {
    return y ? cd_fuse_binary(f, CD_FUSE_OP_SUB, x, y) : x;
}

static uint32_t times(cd_fuse_graph *f, uint32_t x, uint32_t y) {
    return cd_fuse_binary(f, CD_FUSE_OP_MUL, x, y);
}

/* x + by, its zero point, too. */
static quantised moved(cd_fuse_graph *f, quantised x, int by) {
    const uint32_t c = cd_fuse_const(f, CD_I32, by);
    double zero = x.zero ? f->node[x.zero].value : 0;
    x.node = cd_fuse_binary(f, CD_FUSE_OP_ADD, x.node, c);
    if (x.zero && f->node[x.zero].op != CD_FUSE_OP_CONST)
        x.zero = cd_fuse_binary(f, CD_FUSE_OP_ADD, x.zero, c);
    else x.zero = zero + by != 0 ? cd_fuse_const(f, CD_I32, zero + by) : 0;
    return x;
}

/* [E] or a single number against that dimension of a tensor. */
static uint32_t along(cd_fuse_graph *f, uint32_t x, uint32_t d, uint32_t rank) {
    cd_graph_shape s = {rank, {1, 1, 1, 1, 1, 1, 1, 1}};
    if (!x || cd_graph_shape_elements(&f->node[x].shape) == 1)
        return x && f->node[x].shape.rank ? cd_fuse_reshape(f, x, &(cd_graph_shape){0}) : x;
    s.dim[d] = cd_graph_shape_elements(&f->node[x].shape);
    return cd_fuse_reshape(f, x, &s);
}

static bool is_along(const cd_fuse_graph *f, uint32_t x, int64_t n) {
    const int64_t have = x ? cd_graph_shape_elements(&f->node[x].shape) : 1;
    return have == 1 || have == n;
}

/* All dimensions but one. */
static uint32_t sum_but(cd_fuse_graph *f, uint32_t x, uint32_t but) {
    int64_t axis[CD_GRAPH_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t d = 0; d < f->node[x].shape.rank; d++)
        if (d != but) axis[n++] = d;
    return cd_fuse_reduce(f, CD_FUSE_REDUCE_SUM, x, axis, n, false);
}

/* The data as uint8; it is what the file has where that is uint8. */
static uint32_t bytes(cd_fuse_graph *f, const quantised *x, uint32_t own) {
    return x->low ? cd_fuse_cast(f, x->node, CD_QUANTIZE_U8) : own;
}

/* ---- products ---- */

static uint32_t plain_matmul(cd_fuse_importer *m, quantised a, quantised b) {
    const uint32_t ra = cd_fuse_import_shape(m, a.node)->rank,
                   rows = a.zero && cd_fuse_import_shape(m, a.zero)->rank == 1
                              ? along(m->f, a.zero, 0, 2)
                              : a.zero;
    if (ra < 2 && a.zero && !is_along(m->f, a.zero, 1))
        m->why = "a zero point for each row of a vector";
    return m->why ? 0
                  : cd_fuse_import_matmul(m, less(m->f, a.node, rows), less(m->f, b.node, b.zero));
}

/* One number, or one for each row of a result of this shape. */
static uint32_t by_rows(cd_fuse_graph *f, uint32_t x, const cd_graph_shape *result) {
    cd_graph_shape s = *result;
    s.dim[s.rank - 1] = 1;
    return cd_graph_shape_elements(&f->node[x].shape) == 1 ? along(f, x, 0, s.rank)
                                                           : cd_fuse_reshape(f, x, &s);
}

/* b: [K, N] of weights. Leading dimensions are back before the zero points count, so that all of it
 * is one program (fuse_layout.c). */
static uint32_t word_matmul(cd_fuse_importer *m, quantised a, quantised b, uint32_t own,
                            int64_t rows) {
    static const int64_t two[] = {1, 0};
    cd_fuse_graph *f = m->f;
    const cd_graph_shape *out = cd_fuse_import_result_shape(m);
    const cd_graph_shape s = {2, {rows, cd_fuse_import_shape(m, b.node)->dim[0]}};
    if (a.low) a = moved(f, a, 128);
    if (!b.low) b = moved(f, b, -128);
    const uint32_t x = bytes(f, &a, own), w = cd_fuse_transpose(f, b.node, two),
                   zb = along(f, b.zero, 1, 2);
    const int64_t last[] = {cd_fuse_import_shape(m, x)->rank - 1};
    uint32_t y = cd_fuse_dense(f, cd_fuse_quantize_words(f, cd_fuse_reshape(f, x, &s), 0),
                               cd_fuse_quantize_words(f, w, 0));
    f->node[y].a.dot4 = true;
    y = cd_fuse_reshape(f, y, out);
    if (a.zero)
        y = less(f, y,
                 times(f, along(f, sum_but(f, less(f, b.node, zb), 1), out->rank - 1, out->rank),
                       by_rows(f, a.zero, out)));
    if (zb)
        y = less(
            f, y,
            times(f,
                  cd_fuse_reduce(f, CD_FUSE_REDUCE_SUM, cd_fuse_cast(f, x, CD_I32), last, 1, true),
                  along(f, zb, out->rank - 1, out->rank)));
    return y;
}

static void matmul_integer(cd_fuse_importer *m) {
    const uint32_t own = cd_fuse_import_input(m, 0);
    const quantised a = operand(m, 0, 2), b = operand(m, 1, 3);
    const cd_graph_shape *sa = cd_fuse_import_shape(m, own), *sb = cd_fuse_import_shape(m, b.node);
    const int64_t k = sa->dim[sa->rank ? sa->rank - 1 : 0],
                  rows = k ? cd_graph_shape_elements(sa) / k : 0;
    const bool fits = sa->rank && sb->rank == 2 && k > 0 && m->f->node[b.node].is_const &&
                      !m->f->node[own].is_const && is_along(m->f, a.zero, rows) &&
                      is_along(m->f, b.zero, sb->dim[1]);
    const uint32_t y = fits && !m->f->st ? word_matmul(m, a, b, own, rows) : plain_matmul(m, a, b);
    if (y) cd_fuse_import_output(m, 0, y);
}

/* ---- convolutions ---- */

static bool pads(const cd_fuse_attr *a) {
    for (uint32_t d = 0; d < a->n; d++)
        if (a->before[d] || a->after[d]) return true;
    return false;
}

/* What the zero point of the data adds: weights less theirs, summed over what of the window is
 * inside. Where its value is known, padding holds it, and all is inside. */
static uint32_t inside(cd_fuse_importer *m, const quantised *w, const quantised *x, bool known) {
    cd_fuse_graph *f = m->f;
    const uint32_t rank = cd_fuse_import_shape(m, w->node)->rank;
    cd_graph_shape s = *cd_fuse_import_shape(m, x->node);
    const uint32_t each = less(f, w->node, along(f, w->zero, 0, rank));
    if (known) return along(f, sum_but(f, each, 0), 1, rank);
    s.dim[0] = 1;
    const uint32_t y = cd_fuse_import_conv(
        m, CD_FUSE_OP_CONV, cd_fuse_expand(f, cd_fuse_const(f, CD_I32, 1), &s), each);
    f->node[y].shape.dim[0] = 1;
    return y;
}

static uint32_t word_conv(cd_fuse_importer *m, quantised x, quantised w, uint32_t own) {
    cd_fuse_graph *f = m->f;
    if (x.low) x = moved(f, x, 128);
    if (!w.low) w = moved(f, w, -128);
    const bool known = !x.zero || f->node[x.zero].op == CD_FUSE_OP_CONST;
    const int zero = known && x.zero ? (int)f->node[x.zero].value : 0;
    const uint32_t y =
        cd_fuse_import_conv(m, CD_FUSE_OP_CONV, cd_fuse_quantize_words(f, bytes(f, &x, own), zero),
                            cd_fuse_quantize_words(f, w.node, 0));
    f->node[y].a.dot4 = true;
    f->node[y].a.p = (double)(int32_t)((uint32_t)zero * 0x01010101U);
    return x.zero ? less(f, y,
                         times(f, inside(m, &w, &x, known || !pads(&f->node[y].a)),
                               along(f, x.zero, 0, 1)))
                  : y;
}

/* uint8 weights that are not 128 off would need the sum of each window. */
static void conv_integer(cd_fuse_importer *m) {
    const uint32_t own = cd_fuse_import_input(m, 0), rank = cd_fuse_import_shape(m, own)->rank;
    const quantised x = operand(m, 0, 2), w = operand(m, 1, 3);
    const double zero = w.zero ? m->f->node[w.zero].value : 0;
    const bool fits =
        rank > 3 && rank < 6 && cd_graph_node_int(m->n, "group", 1) == 1 &&
        m->f->node[w.node].is_const && !m->f->node[own].is_const && is_along(m->f, x.zero, 1) &&
        (!w.zero || m->f->node[w.zero].op == CD_FUSE_OP_CONST) && zero == (w.low ? 0 : 128);
    if (m->f->st) return;
    const uint32_t y = fits ? word_conv(m, x, w, own)
                            : cd_fuse_import_conv(m, CD_FUSE_OP_CONV,
                                                  less(m->f, x.node, along(m->f, x.zero, 0, 1)),
                                                  less(m->f, w.node, along(m->f, w.zero, 0, rank)));
    if (!m->why) cd_fuse_import_output(m, 0, y);
}

/* ---- data, quantised as the network runs ---- */

/* Least or largest of all, and 0. Rows first: these can run side by side. */
static uint32_t extreme(cd_fuse_graph *f, uint32_t x, bool most) {
    const cd_fuse_reduction how = most ? CD_FUSE_REDUCE_MAX : CD_FUSE_REDUCE_MIN;
    const uint32_t rank = f->node[x].shape.rank;
    int64_t axis[CD_GRAPH_MAX_RANK];
    for (uint32_t d = 0; d < CD_GRAPH_MAX_RANK; d++) axis[d] = d;
    const uint32_t rows = rank > 1 ? cd_fuse_reduce(f, how, x, axis + rank - 1, 1, false) : x;
    return cd_fuse_binary(f, most ? CD_FUSE_OP_MAX : CD_FUSE_OP_MIN,
                          cd_fuse_reduce(f, how, rows, axis, f->node[rows].shape.rank, false),
                          cd_fuse_const(f, CD_F32, 0));
}

/* As the standard has it: the range with 0 in 255 steps. A range without extent has scale 1. */
static void dynamic_quantize(cd_fuse_importer *m) {
    cd_fuse_graph *f = m->f;
    const uint32_t x = cd_fuse_import_input(m, 0);
    if (f->node[x].dtype != CD_F32) {
        m->why = "only float32 to 8 bits has a compute definition";
        return;
    }
    const uint32_t low = extreme(f, x, false), high = extreme(f, x, true),
                   steps = cd_fuse_const(f, CD_F32, 255);
    const uint32_t scale = cd_fuse_unary(
        f, CD_FUSE_OP_QSCALE, cd_fuse_binary(f, CD_FUSE_OP_DIV, less(f, high, low), steps), 1, 0);
    const uint32_t at = cd_fuse_unary(
        f, CD_FUSE_OP_ROUND,
        cd_fuse_unary(
            f, CD_FUSE_OP_CLIP,
            cd_fuse_binary(f, CD_FUSE_OP_DIV, cd_fuse_unary(f, CD_FUSE_OP_NEG, low, 0, 0), scale),
            0, 255),
        0, 0);
    const uint32_t q = cd_fuse_binary(
        f, CD_FUSE_OP_ADD,
        cd_fuse_unary(f, CD_FUSE_OP_ROUND, cd_fuse_binary(f, CD_FUSE_OP_DIV, x, scale), 0, 0), at);
    cd_fuse_import_output(
        m, 0, cd_fuse_cast(f, cd_fuse_unary(f, CD_FUSE_OP_CLIP, q, 0, 255), CD_QUANTIZE_U8));
    cd_fuse_import_output(m, 1, scale);
    cd_fuse_import_output(m, 2, cd_fuse_cast(f, at, CD_QUANTIZE_U8));
}

const cd_fuse_import_rule cd_fuse_import_rules_integer[] = {
    {"MatMulInteger", matmul_integer},
    {"ConvInteger", conv_integer},
    {"DynamicQuantizeLinear", dynamic_quantize},
    {NULL, NULL},
};
