/* Layers in 8 bits: see fuse_quantize.h. One walk over the nodes copies the graph; a layer that can
 * be is replaced by its form in words. */
#include "profiler/network/fusion/fuse_quantize_internal.h"

#include <math.h>
#include <string.h>

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
        if (!w->live[i] || !cd_fuse_quantize_layer_is(&g->node[i]) ||
            cd_fuse_quantize_layer_refuse(g, &g->node[i]))
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
    const cd_quantize_code c = cd_fuse_quantize_layer_code(w, i);
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

/* A bias stands behind the layer that takes it up. */
uint32_t cd_fuse_quantize_constant(cd_quantize_walk *w, uint32_t i) {
    const cd_fuse_node *n = &w->from->node[i];
    for (uint32_t k = 0; k < n->n_in; k++) (void)cd_fuse_quantize_constant(w, n->in[k]);
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
    if (n->is_const || !cd_fuse_quantize_layer_is(n)) return false;
    if (n->a.dot4) { /* of whole numbers in the file already: in every mode */
        list(w, n, NULL);
        return false;
    }
    const char *why = cd_fuse_quantize_layer_refuse(w->from, n);
    if (!why && w->q->mode == CD_QUANTIZE_FILE)
        why = cd_fuse_quantize_layer_refuse_file(w->from, n);
    if (!why && (w->q->mode == CD_QUANTIZE_FLOAT || w->q->mode == CD_QUANTIZE_OBSERVE))
        why = "in float";
    list(w, n, why);
    if (!why) cd_fuse_quantize_layer_emit(w, i);
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
