/* One layer in 8 bits: which can be, and the nodes that it becomes. */
#include <string.h>

#include "profiler/network/fusion/fuse_quantize_internal.h"

#define MOST_BIAS 1073741824.0 /* of a bias in units of its channel: sums stay within 32 bits */

bool cd_fuse_quantize_layer_is(const cd_fuse_node *n) {
    return n->op == CD_FUSE_OP_CONV || n->op == CD_FUSE_OP_CONVT || n->op == CD_FUSE_OP_DENSE ||
           n->op == CD_FUSE_OP_BMM;
}

const char *cd_fuse_quantize_layer_refuse(const cd_fuse_graph *g, const cd_fuse_node *n) {
    if (n->is_const) return "it works on weights alone";
    if (n->dtype != CD_F32) return "it is not float32";
    if (n->op == CD_FUSE_OP_CONVT) return "a transposed convolution";
    if (n->op == CD_FUSE_OP_BMM || !g->node[n->in[1]].is_const)
        return "a product of two tensors of data";
    if (n->op == CD_FUSE_OP_CONV && n->a.groups != 1) return "a convolution in groups";
    if (n->op == CD_FUSE_OP_CONV && n->a.n < 2) return "a convolution of one dimension";
    if (n->a.mode || g->node[n->in[0]].is_const) return "a product of transposed operands";
    return NULL;
}

/* ---- what a file says ---- */

static uint32_t behind_views(const cd_fuse_graph *g, uint32_t i) {
    while (g->node[i].op == CD_FUSE_OP_RESHAPE) i = g->node[i].in[0];
    return i;
}

static const cd_fuse_node *data_of(const cd_fuse_graph *g, const cd_fuse_node *n) {
    return &g->node[behind_views(g, n->in[0])];
}

/* The dequantised weight, also behind a transpose of two dimensions. */
static const cd_fuse_node *weight_of(const cd_fuse_graph *g, const cd_fuse_node *n, bool *turned) {
    const cd_fuse_node *w = &g->node[n->in[1]];
    *turned = w->op == CD_FUSE_OP_TRANSPOSE && w->shape.rank == 2;
    return *turned ? &g->node[w->in[0]] : w;
}

/* Is it one number, or one for each of the channels of the result, and for no other dimension? */
static bool fits_channels(const cd_fuse_graph *g, const cd_fuse_node *w, uint32_t axis) {
    const cd_graph_shape *s = &g->node[w->in[1]].shape;
    return cd_graph_shape_elements(s) == 1 ||
           (s->rank == w->shape.rank && cd_graph_shape_elements(s) == s->dim[axis] &&
            s->dim[axis] == w->shape.dim[axis]);
}

/* Numbers of 8 bits less zero points that are not one known number, times a scale
 * (fuse_import_quantize.c). */
static bool has_zeros(const cd_fuse_graph *g, const cd_fuse_node *x) {
    const cd_fuse_node *c = x->op == CD_FUSE_OP_MUL ? &g->node[x->in[0]] : x;
    return c->op == CD_FUSE_OP_CAST && g->node[c->in[0]].op == CD_FUSE_OP_SUB &&
           g->node[c->in[0]].dtype == CD_I32;
}

const char *cd_fuse_quantize_layer_refuse_file(const cd_fuse_graph *g, const cd_fuse_node *n) {
    bool turned;
    const cd_fuse_node *x = data_of(g, n), *w = weight_of(g, n, &turned);
    if (has_zeros(g, x)) return "its input has a zero point that is not one known number";
    if (x->op != CD_FUSE_OP_DEQUANTIZE || x->is_const) return "its input is not quantised";
    if (g->node[x->in[1]].op != CD_FUSE_OP_CONST)
        return "its input has more than one scale, or one that is not known";
    if (has_zeros(g, w)) return "its weight has a zero point that is not one known number";
    if (w->op != CD_FUSE_OP_DEQUANTIZE) return "its weight is not quantised";
    const cd_dtype tx = g->node[x->in[0]].dtype, tw = g->node[w->in[0]].dtype;
    if ((tx != CD_QUANTIZE_U8 && tx != CD_QUANTIZE_I8) ||
        (tw != CD_QUANTIZE_U8 && tw != CD_QUANTIZE_I8))
        return "an operand is not of 8 bits";
    if (w->a.s != (tw == CD_QUANTIZE_U8 ? 128 : 0)) return "its weight has a zero point";
    return fits_channels(g, w, turned)
               ? NULL
               : "its weight has a scale for each of something else than channels of the result";
}

/* ---- operands in 8 bits ---- */

cd_quantize_code cd_fuse_quantize_layer_code(cd_quantize_walk *w, uint32_t i) {
    cd_quantize_code c;
    const uint32_t k = w->observed[i];
    const cd_graph_shape s = w->from->node[i].shape;
    cd_fuse_quantize_scale(w->q->low[k], w->q->high[k], &c.scale, &c.zero);
    if (!w->code[i]) {
        const uint32_t origin = w->f->origin;
        const uint32_t in[2] = {
            w->to[i], cd_fuse_const(w->f, CD_F32, (double)(float)(1.0 / (double)c.scale))};
        w->f->origin = w->from->node[i].origin;
        w->code[i] = cd_fuse_add_node(w->f, CD_FUSE_OP_REQUANTIZE, CD_QUANTIZE_U8, &s, in, 2,
                                      &(cd_fuse_attr){.p = 0, .q = 255, .s = c.zero});
        w->f->origin = origin;
    }
    c.node = w->code[i];
    return c;
}

/* int8 data as uint8: quantised so at once where a quantisation made them, else each 128 higher. */
static uint32_t raised(cd_quantize_walk *w, uint32_t i) {
    const cd_fuse_node *n = &w->from->node[i];
    cd_fuse_graph *f = w->f;
    if (n->dtype == CD_QUANTIZE_U8 || f->node[w->to[i]].dtype == CD_QUANTIZE_U8) return w->to[i];
    if (w->code[i]) return w->code[i];
    if (n->op == CD_FUSE_OP_QUANTIZE) {
        const cd_fuse_node *made = &f->node[w->to[i]];
        const uint32_t in[2] = {made->in[0], made->in[1]};
        const cd_fuse_attr a = {.p = 0, .q = 255, .s = made->a.s + 128};
        return w->code[i] =
                   cd_fuse_add_node(f, CD_FUSE_OP_QUANTIZE, CD_QUANTIZE_U8, &n->shape, in, 2, &a);
    }
    const uint32_t y = cd_fuse_binary(f, CD_FUSE_OP_ADD, cd_fuse_cast(f, w->to[i], CD_I32),
                                      cd_fuse_const(f, CD_I32, 128));
    return w->code[i] = cd_fuse_cast(f, y, CD_QUANTIZE_U8);
}

static cd_quantize_code file_code(cd_quantize_walk *w, const cd_fuse_node *n) {
    const cd_fuse_node *x = data_of(w->from, n);
    const bool low = w->from->node[x->in[0]].dtype == CD_QUANTIZE_I8;
    return (cd_quantize_code){raised(w, x->in[0]), (float)w->from->node[x->in[1]].value,
                              (int)x->a.s + (low ? 128 : 0)};
}

typedef struct weight {
    uint32_t node;  /* int32, within int8 */
    uint32_t scale; /* (channels), or one */
    /* (channels) what rounding takes from the result of mean data; 0: not known */
    uint32_t lost;
} weight;

/* All dimensions but the first. */
static uint32_t rest(int64_t *axis, uint32_t rank) {
    for (uint32_t d = 1; d < rank; d++) axis[d - 1] = d;
    return rank - 1;
}

static uint32_t flat(cd_fuse_graph *f, uint32_t x) {
    const cd_graph_shape one = {1, {cd_graph_shape_elements(&f->node[x].shape)}};
    return cd_fuse_reshape(f, x, &one);
}

/* Sum of (x - rounded) times the mean of the data, of each channel of the result. 0: the mean is
 * not known, or of something else than the channels. */
static uint32_t lost_of(cd_quantize_walk *w, uint32_t base, uint32_t x, uint32_t rounded,
                        uint32_t scale) {
    cd_fuse_graph *f = w->f;
    int64_t axis[CD_GRAPH_MAX_RANK];
    const cd_graph_shape s = f->node[x].shape;
    if (!w->q->mean) return 0;
    const uint32_t mean = cd_fuse_leaf(f, w->q->mean[w->observed[base]], true),
                   n = rest(axis, s.rank);
    cd_graph_shape along = {s.rank, {1, s.dim[1], 1, 1, 1, 1, 1, 1}};
    if (cd_graph_shape_elements(&f->node[mean].shape) != s.dim[1]) return 0;
    const uint32_t off =
        cd_fuse_binary(f, CD_FUSE_OP_SUB, x,
                       cd_fuse_binary(f, CD_FUSE_OP_MUL, cd_fuse_cast(f, rounded, CD_F32), scale));
    return cd_fuse_reduce(f, CD_FUSE_REDUCE_SUM,
                          cd_fuse_binary(f, CD_FUSE_OP_MUL, off, cd_fuse_reshape(f, mean, &along)),
                          axis, n, false);
}

/* By the largest of each channel. */
static weight own_weight(cd_quantize_walk *w, uint32_t base, uint32_t x) {
    cd_fuse_graph *f = w->f;
    int64_t axis[CD_GRAPH_MAX_RANK];
    const cd_graph_shape s = f->node[x].shape;
    const uint32_t n = rest(axis, s.rank),
                   most = cd_fuse_reduce(f, CD_FUSE_REDUCE_MAX,
                                         cd_fuse_unary(f, CD_FUSE_OP_ABS, x, 0, 0), axis, n, true);
    const uint32_t in[2] = {x, cd_fuse_unary(f, CD_FUSE_OP_QSCALE, most, 1.0 / 127, 0)};
    const uint32_t rounded = cd_fuse_add_node(f, CD_FUSE_OP_QUANTIZE, CD_I32, &s, in, 2,
                                              &(cd_fuse_attr){.p = -127, .q = 127});
    return (weight){rounded, flat(f, in[1]), lost_of(w, base, x, rounded, in[1])};
}

static weight file_weight(cd_quantize_walk *w, const cd_fuse_node *n) {
    static const int64_t two[] = {1, 0};
    bool turned;
    cd_fuse_graph *f = w->f;
    const cd_fuse_node *x = weight_of(w->from, n, &turned);
    uint32_t y = cd_fuse_cast(f, w->to[x->in[0]], CD_I32);
    if (x->a.s != 0) y = cd_fuse_binary(f, CD_FUSE_OP_SUB, y, cd_fuse_const(f, CD_I32, x->a.s));
    return (weight){turned ? cd_fuse_transpose(f, y, two) : y, flat(f, w->to[x->in[1]]), 0};
}

uint32_t cd_fuse_quantize_words(cd_fuse_graph *f, uint32_t x, int fill) {
    cd_graph_shape s = f->node[x].shape;
    const int64_t more = (4 - s.dim[1] % 4) % 4;
    cd_fuse_attr pad = {.n = s.rank, .p = fill};
    pad.after[1] = more;
    s.dim[1] += more;
    if (more) x = cd_fuse_add_node(f, CD_FUSE_OP_PAD, f->node[x].dtype, &s, &x, 1, &pad);
    s.dim[1] /= 4;
    return cd_fuse_add_node(f, CD_FUSE_OP_PACK4, CD_I32, &s, &x, 1, &(cd_fuse_attr){.axis = 1});
}

/* ---- the layer ---- */

/* The addition of a bias that is all that reads the layer; 0: none. */
static uint32_t bias_of(const cd_quantize_walk *w, uint32_t i) {
    const cd_fuse_graph *g = w->from;
    const cd_fuse_node *n = &g->node[i], *r = &g->node[w->reader[i]];
    if (w->readers[i] != 1 || r->op != CD_FUSE_OP_ADD || r->in[0] != i ||
        !g->node[r->in[1]].is_const)
        return 0;
    const cd_graph_shape *b = &g->node[r->in[1]].shape;
    const int64_t channels = n->shape.dim[1];
    const uint32_t at = n->op == CD_FUSE_OP_CONV ? n->shape.rank - 1 : 1;
    if (b->rank < at || cd_graph_shape_elements(b) != channels || b->dim[b->rank - at] != channels)
        return 0;
    return r->shape.rank == n->shape.rank ? w->reader[i] : 0;
}

/* [C] against the channels of the layer's result. */
static uint32_t channels(cd_fuse_graph *f, uint32_t c, const cd_fuse_node *n) {
    cd_graph_shape s = {n->shape.rank - 1, {cd_graph_shape_elements(&f->node[c].shape)}};
    for (uint32_t d = 1; d < s.rank; d++) s.dim[d] = 1;
    return cd_fuse_reshape(f, c, &s);
}

/* What is added to the sums, of each channel: the bias in units of the scale, less the sum of the
 * weights for each unit of the zero point. 0: nothing. */
static uint32_t shift_of(cd_quantize_walk *w, const weight *k, uint32_t scale, int zero,
                         uint32_t bias) {
    cd_fuse_graph *f = w->f;
    int64_t axis[CD_GRAPH_MAX_RANK];
    uint32_t sum = 0, b = 0;
    if (f->st) return 0;
    if (zero) {
        const uint32_t n = rest(axis, f->node[k->node].shape.rank),
                       all = cd_fuse_reduce(f, CD_FUSE_REDUCE_SUM, k->node, axis, n, false);
        sum = cd_fuse_binary(f, CD_FUSE_OP_MUL, all, cd_fuse_const(f, CD_I32, -zero));
    }
    if (bias || k->lost) {
        const uint32_t own =
            bias ? flat(f, cd_fuse_quantize_constant(w, w->from->node[bias].in[1])) : k->lost;
        const uint32_t in[2] = {
            bias && k->lost ? cd_fuse_binary(f, CD_FUSE_OP_ADD, own, k->lost) : own, scale};
        const cd_graph_shape s = f->node[in[0]].shape;
        b = cd_fuse_add_node(f, CD_FUSE_OP_QUANTIZE, CD_I32, &s, in, 2,
                             &(cd_fuse_attr){.p = -MOST_BIAS, .q = MOST_BIAS});
    }
    return b && sum ? cd_fuse_binary(f, CD_FUSE_OP_ADD, b, sum) : b + sum;
}

void cd_fuse_quantize_layer_emit(cd_quantize_walk *w, uint32_t i) {
    const cd_fuse_node *n = &w->from->node[i];
    const bool file = w->q->mode == CD_QUANTIZE_FILE;
    cd_fuse_graph *f = w->f;
    const uint32_t base = behind_views(w->from, n->in[0]);
    const cd_quantize_code c = file ? file_code(w, n) : cd_fuse_quantize_layer_code(w, base);
    const weight k = file ? file_weight(w, n) : own_weight(w, base, w->to[n->in[1]]);
    const uint32_t bias = bias_of(w, i),
                   scale = cd_fuse_binary(f, CD_FUSE_OP_MUL, k.scale,
                                          cd_fuse_const(f, CD_F32, (double)c.scale));
    const uint32_t shift = shift_of(w, &k, scale, c.zero, bias);
    const uint32_t in[2] = {
        cd_fuse_quantize_words(f, cd_fuse_reshape(f, c.node, &w->from->node[n->in[0]].shape),
                               c.zero),
        cd_fuse_quantize_words(f, k.node, 0)};
    cd_fuse_attr a = n->a;
    a.dot4 = true;
    a.p = (double)(int32_t)((uint32_t)c.zero * 0x01010101U);
    uint32_t y = cd_fuse_add_node(f, n->op, CD_I32, &n->shape, in, 2, &a);
    if (shift) y = cd_fuse_binary(f, CD_FUSE_OP_ADD, y, channels(f, shift, n));
    y = cd_fuse_binary(f, CD_FUSE_OP_MUL, cd_fuse_cast(f, y, CD_F32), channels(f, scale, n));
    w->to[bias ? bias : i] = y;
}
