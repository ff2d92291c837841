/* Layers in 8 bits: see fuse_quantize.h. One walk over the nodes copies the graph; a layer that can
 * be is replaced by its form in words. */
#include <math.h>
#include <string.h>

#include "profiler/network/fusion/fuse_quantize_internal.h"

/* One layer in 8 bits: which can be, and the nodes that it becomes. */

#define MOST_BIAS 1073741824.0 /* of a bias in units of its channel: sums stay within 32 bits */

/* A convolution or product. Why it cannot be in 8 bits, whatever its operands hold; NULL: it can.
 * Why not as the file has it. */
static bool fuse_quantize_layer_is(const cd_fuse_node *n) {
    return n->op == CD_FUSE_OP_CONV || n->op == CD_FUSE_OP_CONVT || n->op == CD_FUSE_OP_DENSE ||
           n->op == CD_FUSE_OP_BMM;
}

static const char *fuse_quantize_layer_refuse(const cd_fuse_graph *g, const cd_fuse_node *n) {
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
 * (fuse_import_nn.c). */
static bool has_zeros(const cd_fuse_graph *g, const cd_fuse_node *x) {
    const cd_fuse_node *c = x->op == CD_FUSE_OP_MUL ? &g->node[x->in[0]] : x;
    return c->op == CD_FUSE_OP_CAST && g->node[c->in[0]].op == CD_FUSE_OP_SUB &&
           g->node[c->in[0]].dtype == CD_I32;
}

static const char *fuse_quantize_layer_refuse_file(const cd_fuse_graph *g, const cd_fuse_node *n) {
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

/* Node i of the old graph, which has a range, as uint8. */
static cd_quantize_code fuse_quantize_layer_code(cd_quantize_walk *w, uint32_t i) {
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

static uint32_t fuse_quantize_constant(cd_quantize_walk *w, uint32_t i);

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
            bias ? flat(f, fuse_quantize_constant(w, w->from->node[bias].in[1])) : k->lost;
        const uint32_t in[2] = {
            bias && k->lost ? cd_fuse_binary(f, CD_FUSE_OP_ADD, own, k->lost) : own, scale};
        const cd_graph_shape s = f->node[in[0]].shape;
        b = cd_fuse_add_node(f, CD_FUSE_OP_QUANTIZE, CD_I32, &s, in, 2,
                             &(cd_fuse_attr){.p = -MOST_BIAS, .q = MOST_BIAS});
    }
    return b && sum ? cd_fuse_binary(f, CD_FUSE_OP_ADD, b, sum) : b + sum;
}

/* Layer i in 8 bits, with its bias where nobody else reads the layer: sets w->to of the layer, or
 * of the addition of its bias. */
static void fuse_quantize_layer_emit(cd_quantize_walk *w, uint32_t i) {
    const cd_fuse_node *n = &w->from->node[i];
    const bool file = w->q->mode == CD_QUANTIZE_FILE;
    cd_fuse_graph *f = w->f;
    const uint32_t base = behind_views(w->from, n->in[0]);
    const cd_quantize_code c = file ? file_code(w, n) : fuse_quantize_layer_code(w, base);
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

void cd_fuse_quantize_scale(float low, float high, float *scale, int *zero) {
    const double lo = low < 0 ? (double)low : 0, hi = high > 0 ? (double)high : 0;
    const float s = (float)((hi - lo) / 255);
    *scale = s > 0 ? s : 1;
    *zero = (int)lrint(-lo / (double)*scale);
    if (*zero > 255) *zero = 255;
}

static bool is_data_dequantize(const cd_fuse_node *n) {
    return n->op == CD_FUSE_OP_DEQUANTIZE && !n->is_const;
}

/* ---- what reads what ---- */

/* What a result or an unsupported operator needs: folding leaves nodes behind that nobody reads. */
static void mark_live(cd_quantize_walk *w) {
    const cd_fuse_graph *g = w->from;
    for (uint32_t k = 0; k < g->n_out; k++) w->live[g->out[k]] = true;
    for (uint32_t i = g->n; i-- > 1;) {
        w->live[i] = w->live[i] || g->node[i].op == CD_FUSE_OP_EXTERN;
        for (uint32_t k = 0; w->live[i] && k < g->node[i].n_in; k++)
            w->live[g->node[i].in[k]] = true;
    }
}

/* How many operators and results read each node, and the last of them; whether all undo a
 * quantisation. */
static void count_readers(cd_quantize_walk *w) {
    const cd_fuse_graph *g = w->from;
    for (uint32_t i = 0; i < g->n; i++) w->undone[i] = true;
    for (uint32_t i = 1; i < g->n; i++)
        for (uint32_t k = 0; w->live[i] && k < g->node[i].n_in; k++) {
            const uint32_t x = g->node[i].in[k];
            w->readers[x]++;
            w->reader[x] = i;
            w->undone[x] = w->undone[x] && is_data_dequantize(&g->node[i]);
        }
    for (uint32_t k = 0; k < g->n_out; k++) {
        w->readers[g->out[k]] += 2; /* a result, too, is nobody's to take up */
        w->undone[g->out[k]] = false;
    }
}

/* The node behind views. */
static uint32_t base_of(const cd_fuse_graph *g, uint32_t i) {
    while (g->node[i].op == CD_FUSE_OP_RESHAPE) i = g->node[i].in[0];
    return i;
}

/* Tensors that layers read and that get a range, in the order of the first layer that reads
 * them. */
static void find_observed(cd_quantize_walk *w) {
    const cd_fuse_graph *g = w->from;
    for (uint32_t i = 0; i < g->n; i++) w->observed[i] = CD_GRAPH_NONE;
    w->n_observed = 0;
    for (uint32_t i = 1; i < g->n; i++) {
        if (!w->live[i] || !fuse_quantize_layer_is(&g->node[i]) ||
            fuse_quantize_layer_refuse(g, &g->node[i]))
            continue;
        const uint32_t x = base_of(g, g->node[i].in[0]);
        if (w->observed[x] == CD_GRAPH_NONE) w->observed[x] = w->n_observed++;
    }
}

/* ---- copies ---- */

static bool is_shifted(const cd_quantize_walk *w, uint32_t i) {
    const cd_fuse_node *n = &w->from->node[i];
    return w->q->mode == CD_QUANTIZE_FILE && n->op == CD_FUSE_OP_QUANTIZE &&
           n->dtype == CD_QUANTIZE_I8 && !n->is_const && w->undone[i];
}

/* Who undoes a quantisation does it in its own program: a node for each reader. */
static uint32_t undo(cd_quantize_walk *w, uint32_t i) {
    const cd_fuse_node *n = &w->from->node[i];
    cd_fuse_attr a = n->a;
    const uint32_t in[2] = {w->to[n->in[0]], w->to[n->in[1]]};
    if (is_shifted(w, n->in[0])) a.s += 128;
    return cd_fuse_add_node(w->f, n->op, n->dtype, &n->shape, in, 2, &a);
}

static uint32_t operand(cd_quantize_walk *w, uint32_t i) {
    if (w->q->mode == CD_QUANTIZE_FILE && is_data_dequantize(&w->from->node[i])) return undo(w, i);
    if (w->q->mode != CD_QUANTIZE_RANGES || w->observed[i] == CD_GRAPH_NONE) return w->to[i];
    const cd_quantize_code c = fuse_quantize_layer_code(w, i);
    const uint32_t in[2] = {c.node, cd_fuse_const(w->f, CD_F32, (double)c.scale)};
    const cd_graph_shape s = w->from->node[i].shape;
    return cd_fuse_add_node(w->f, CD_FUSE_OP_DEQUANTIZE, CD_F32, &s, in, 2,
                            &(cd_fuse_attr){.s = c.zero});
}

static void copy(cd_quantize_walk *w, uint32_t i) {
    const cd_fuse_node *n = &w->from->node[i];
    cd_fuse_attr a = n->a;
    cd_dtype t = n->dtype;
    uint32_t *in = CD_NEWN(&w->f->arena, uint32_t, n->n_in + 1);
    if (!in) {
        cd_fuse_fail(w->f, CDMPP_ENOMEM, "out of memory for operators");
        return;
    }
    for (uint32_t k = 0; k < n->n_in; k++) in[k] = operand(w, n->in[k]);
    if (is_shifted(w, i)) t = CD_QUANTIZE_U8, a.p = 0, a.q = 255, a.s += 128;
    const uint32_t id = cd_fuse_add_node(w->f, n->op, t, &n->shape, in, n->n_in, &a);
    w->to[i] = id;
    if (!id) return;
    w->f->node[id].value = n->value;
    w->f->node[id].tensor = n->tensor;
    if (n->op == CD_FUSE_OP_LEAF) w->f->node[id].is_const = n->is_const;
}

/* A constant node in the new graph, made now if it is not yet.
 *
 * A bias stands behind the layer that takes it up. */
static uint32_t fuse_quantize_constant(cd_quantize_walk *w, uint32_t i) {
    const cd_fuse_node *n = &w->from->node[i];
    for (uint32_t k = 0; k < n->n_in; k++) (void)fuse_quantize_constant(w, n->in[k]);
    if (!w->to[i] && i) copy(w, i);
    return w->to[i];
}

/* The data between two quantisations, in float. */
static bool skip(cd_quantize_walk *w, uint32_t i) {
    const cd_fuse_node *n = &w->from->node[i], *q = n->n_in ? &w->from->node[n->in[0]] : NULL;
    if (w->q->mode == CD_QUANTIZE_FILE || !is_data_dequantize(n) || q->op != CD_FUSE_OP_QUANTIZE)
        return false;
    w->to[i] = w->to[q->in[0]];
    return true;
}

/* ---- layers ---- */

static double flop_of(const cd_fuse_graph *g, const cd_fuse_node *n) {
    const cd_graph_shape *x = &g->node[n->in[0]].shape, *y = &g->node[n->in[1]].shape;
    const double out = (double)cd_graph_shape_elements(&n->shape) * (n->a.dot4 ? 4 : 1);
    if (n->op == CD_FUSE_OP_CONV)
        return 2 * out * (double)cd_graph_shape_elements(y) / (double)(y->dim[0] ? y->dim[0] : 1);
    if (n->op == CD_FUSE_OP_CONVT)
        return 2 * (double)cd_graph_shape_elements(x) * (double)cd_graph_shape_elements(y) /
               (double)(y->dim[0] ? y->dim[0] : 1);
    return 2 * out * (double)x->dim[x->rank - (n->a.mode & CD_FUSE_TRANSPOSED_X ? 2 : 1)];
}

static void list(cd_quantize_walk *w, const cd_fuse_node *n, const char *why) {
    if (CD_GROW_IN(&w->f->arena, w->f->layer, w->f->n_layer, w->f->cap_layer)) {
        cd_fuse_fail(w->f, CDMPP_ENOMEM, "out of memory for a list");
        return;
    }
    w->f->layer[w->f->n_layer++] = (cd_quantize_layer){n->origin, flop_of(w->from, n), why};
}

static bool layer(cd_quantize_walk *w, uint32_t i) {
    const cd_fuse_node *n = &w->from->node[i];
    if (n->is_const || !fuse_quantize_layer_is(n)) return false;
    if (n->a.dot4) { /* of whole numbers in the file already: in every mode */
        list(w, n, NULL);
        return false;
    }
    const char *why = fuse_quantize_layer_refuse(w->from, n);
    if (!why && w->q->mode == CD_QUANTIZE_FILE) why = fuse_quantize_layer_refuse_file(w->from, n);
    if (!why && (w->q->mode == CD_QUANTIZE_FLOAT || w->q->mode == CD_QUANTIZE_OBSERVE))
        why = "in float";
    list(w, n, why);
    if (!why) fuse_quantize_layer_emit(w, i);
    return !why;
}

static void one(cd_quantize_walk *w, uint32_t i) {
    w->f->origin = w->from->node[i].origin;
    if (!w->live[i] || w->to[i] || skip(w, i) || layer(w, i)) return;
    copy(w, i);
}

static cdmpp_status set_up(cd_quantize_walk *w, cdmpp_err *err) {
    cd_arena *a = &w->f->arena;
    const uint32_t n = w->from->n;
    w->to = CD_NEWN(a, uint32_t, n);
    w->code = CD_NEWN(a, uint32_t, n);
    w->readers = CD_NEWN(a, uint32_t, n);
    w->reader = CD_NEWN(a, uint32_t, n);
    w->observed = CD_NEWN(a, uint32_t, n);
    w->undone = CD_NEWN(a, bool, n);
    w->live = CD_NEWN(a, bool, n);
    if (!w->live || !w->to || !w->code || !w->readers || !w->reader || !w->observed || !w->undone)
        return CD_FAIL(err, ENOMEM, "out of memory for a graph");
    mark_live(w);
    count_readers(w);
    find_observed(w);
    if (w->q->mode == CD_QUANTIZE_RANGES && w->q->n != w->n_observed)
        return CD_FAIL(err, EINVALID, "%u ranges for %u tensors", w->q->n, w->n_observed);
    w->f->out = CD_NEWN(a, uint32_t, w->from->n_out + w->n_observed + 1);
    return w->f->out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "out of memory for a graph");
}

/* Results are those of the float nodes. */
static void results(cd_quantize_walk *w) {
    cd_fuse_graph *f = w->f;
    f->origin = CD_GRAPH_NONE;
    for (uint32_t k = 0; k < w->from->n_out; k++) {
        const bool undone =
            w->q->mode == CD_QUANTIZE_FILE && is_data_dequantize(&w->from->node[w->from->out[k]]);
        f->out[f->n_out++] = undone ? undo(w, w->from->out[k]) : w->to[w->from->out[k]];
    }
    if (w->q->mode != CD_QUANTIZE_OBSERVE) return;
    f->n_observed = w->n_observed;
    for (uint32_t i = 1; i < w->from->n; i++)
        if (w->observed[i] != CD_GRAPH_NONE) f->out[f->n_out + w->observed[i]] = w->to[i];
    f->n_out += w->n_observed;
}

static cdmpp_status walk(const cd_fuse_graph *from, const cd_quantize *q, cd_fuse_graph **out,
                         cdmpp_err *err) {
    cd_quantize_walk w = {.from = from, .q = q};
    *out = NULL;
    CD_TRY(cd_fuse_new(from->g, &w.f, err));
    cdmpp_status st = set_up(&w, err);
    for (uint32_t i = 1; !st && i < from->n && !w.f->st; i++) one(&w, i);
    if (!st) results(&w);
    if (!st) st = w.f->st;
    if (st) cd_fuse_free(w.f);
    else *out = w.f;
    return st;
}

/* Ranges are of the network in float: what the file quantises is left out first. */
cdmpp_status cd_fuse_quantize(const cd_fuse_graph *from, const cd_quantize *q, cd_fuse_graph **out,
                              cdmpp_err *err) {
    static const cd_quantize file = {.mode = CD_QUANTIZE_FILE}, plain = {.mode = CD_QUANTIZE_FLOAT};
    cd_fuse_graph *float_net = NULL;
    if (!q) q = &file;
    if (q->mode == CD_QUANTIZE_FILE || q->mode == CD_QUANTIZE_FLOAT) return walk(from, q, out, err);
    CD_TRY(walk(from, &plain, &float_net, err));
    const cdmpp_status st = walk(float_net, q, out, err);
    cd_fuse_free(float_net);
    return st;
}
