/* Operators that move elements: each is a stage whose index expressions say which element of the
 * operand is read. The expressions are in the form that TVM's simplifier leaves, since they are
 * part of the workload key. */
#include <string.h>

#include "profiler/network/compute/compute_internal.h"

/* A stage with axes ax0 ... that copies x at the indices ix. */
static uint32_t moved(cd_te_compute *c, const cd_fuse_node *n, uint32_t x,
                      char (*ix)[CD_COMPUTE_INDEX_SIZE], const char *name) {
    cd_compute_begin_axes(c, "ax", &n->shape);
    cd_compute_load(c, x, ix);
    return cd_compute_end(c, name, "injective", NULL);
}

uint32_t cd_te_compute_transpose(cd_te_compute *c, const cd_fuse_node *n) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    const uint32_t x = cd_compute_operand(c, n, 0);
    for (uint32_t d = 0; d < n->shape.rank; d++) cd_compute_index_format(ix[n->a.v[d]], "ax%u", d);
    return moved(c, n, x, ix, "T_transpose");
}

/* ---- reshape ---- */

/* Position within dimensions from .. to of the result, as one number. */
static void ravel(const cd_graph_shape *s, uint32_t from, uint32_t to,
                  char out[CD_COMPUTE_INDEX_SIZE]) {
    char t[CD_COMPUTE_INDEX_SIZE];
    cd_compute_index_format(out, "%s", "");
    for (uint32_t d = from; d < to; d++) {
        if (s->dim[d] == 1) continue;
        cd_compute_index_mul(t, out, s->dim[d]);
        cd_compute_index_format(out, *out ? "%.150s + ax%u" : "%.0sax%u", t, d);
    }
    if (!*out) cd_compute_index_format(out, "0");
}

/* Number `at` below the product of dimensions from .. to of the operand, as positions in them. */
static void unravel(const cd_graph_shape *s, uint32_t from, uint32_t to, const char *at,
                    char (*ix)[CD_COMPUTE_INDEX_SIZE]) {
    int64_t below = 1;
    bool top = true; /* nothing but ones above */
    char t[CD_COMPUTE_INDEX_SIZE];
    for (uint32_t d = from; d < to; d++) below *= s->dim[d];
    for (uint32_t d = from; d < to; d++) {
        below /= s->dim[d] ? s->dim[d] : 1;
        if (s->dim[d] == 1) {
            cd_compute_index_format(ix[d], "0");
            continue;
        }
        cd_compute_index_format(t, strchr(at, ' ') ? "(%.120s)" : "%.120s", at);
        if (below > 1)
            cd_compute_index_format(ix[d], top ? "%.120s // %lld" : "%.120s // %lld %% %lld", t,
                                    (long long)below, (long long)s->dim[d]);
        else if (top) cd_compute_index_format(ix[d], "%s", at);
        else cd_compute_index_format(ix[d], "%.120s %% %lld", t, (long long)s->dim[d]);
        top = false;
    }
}

/* Dimensions fall into runs of equal products; in each a number is put together and taken apart. */
uint32_t cd_te_compute_reshape(cd_te_compute *c, const cd_fuse_node *n) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE], at[CD_COMPUTE_INDEX_SIZE];
    const uint32_t x = cd_compute_operand(c, n, 0);
    const cd_graph_shape *in = &c->f->node[n->in[0]].shape, *out = &n->shape;
    uint32_t i = 0, o = 0;
    while (i < in->rank || o < out->rank) {
        const uint32_t i0 = i, o0 = o;
        int64_t a = i < in->rank ? in->dim[i++] : 1, b = o < out->rank ? out->dim[o++] : 1;
        while (a != b) {
            if (a < b && i < in->rank) a *= in->dim[i++];
            else if (o < out->rank) b *= out->dim[o++];
            else return cd_compute_fail(c, "a view of another size");
        }
        if (a == 1 && i == in->rank) o = out->rank; /* only ones are left */
        if (b == 1 && o == out->rank)
            while (i < in->rank && in->dim[i] == 1) i++;
        ravel(out, o0, o, at);
        unravel(in, i0, i, at, ix);
    }
    return moved(c, n, x, ix, "T_reshape");
}

/* ---- parts ---- */

uint32_t cd_te_compute_slice(cd_te_compute *c, const cd_fuse_node *n) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE], t[CD_COMPUTE_INDEX_SIZE];
    const uint32_t x = cd_compute_operand(c, n, 0);
    for (uint32_t d = 0; d < n->shape.rank; d++) {
        cd_compute_index_format(t, "ax%u", d);
        if (n->a.step[d] < 0)
            cd_compute_index_format(ix[d], "%lld - %s*%lld", (long long)n->a.v[d], t,
                                    (long long)-n->a.step[d]);
        else cd_compute_index_mul(t, t, n->a.step[d]), cd_compute_index_add(ix[d], t, n->a.v[d]);
    }
    return moved(c, n, x, ix, "T_strided_slice");
}

typedef struct parts {
    const cd_fuse_node *n, *tuple;
    const uint32_t *stage;
    const int64_t *from; /* where part k begins */
    uint32_t axis;
} parts;

static void part(cd_te_compute *c, const parts *p, uint32_t k) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    for (uint32_t d = 0; d < p->n->shape.rank; d++) cd_compute_index_format(ix[d], "ax%u", d);
    cd_compute_index_add(ix[p->axis], ix[p->axis], -p->from[k]);
    cd_compute_load(c, p->stage[k], ix);
}

/* Of parts lo .. hi: TVM asks from the last to the first; many are halved, so that the expression
 * stays flat. */
static void choose(cd_te_compute *c, const parts *p, uint32_t lo, uint32_t hi) {
    if (hi - lo == 1) {
        part(c, p, lo);
        return;
    }
    const uint32_t mid = p->tuple->n_in > 64 ? lo + (hi - lo) / 2 : hi - 1;
    cd_compute_put(c, "if_then_else(ax%u >= %lld, ", p->axis, (long long)p->from[mid]);
    choose(c, p, mid, hi);
    cd_compute_put(c, ", ");
    choose(c, p, lo, mid);
    cd_compute_put(c, ")");
}

/* The chain of if_then_else compares the axis with where each part begins; offsets are those of the
 * parts before. */
uint32_t cd_te_compute_concat(cd_te_compute *c, const cd_fuse_node *n) {
    const cd_fuse_node *tuple = &c->f->node[n->in[0]];
    uint32_t *stage = CD_NEWN(&c->arena, uint32_t, tuple->n_in + 1);
    int64_t *from = CD_NEWN(&c->arena, int64_t, tuple->n_in + 1), at = 0;
    if (!stage || !from) {
        if (!c->st) c->st = CD_FAIL(c->err, ENOMEM, "out of memory for a definition");
        return 0;
    }
    for (uint32_t k = 0; k < tuple->n_in; k++) {
        stage[k] = cd_compute_operand(c, tuple, k);
        from[k] = at;
        at += c->f->node[tuple->in[k]].shape.dim[n->a.axis];
    }
    const parts p = {n, tuple, stage, from, (uint32_t)n->a.axis};
    cd_compute_begin_axes(c, "ax", &n->shape);
    choose(c, &p, 0, tuple->n_in);
    return cd_compute_end(c, "T_concat", "injective", NULL);
}

/* ---- padding: 0 a number, 1 mirrored, 2 the edge again ---- */

static void mirrored(char out[CD_COMPUTE_INDEX_SIZE], uint32_t d, int64_t before, int64_t dim) {
    cd_compute_index_format(
        out, "select(ax%u < %lld, %lld - ax%u, select(ax%u >= %lld, %lld - ax%u, ax%u - %lld))", d,
        (long long)before, (long long)before, d, d, (long long)(before + dim),
        (long long)(before + 2 * dim - 2), d, d, (long long)before);
}

uint32_t cd_te_compute_padding(cd_te_compute *c, const cd_fuse_node *n) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    const uint32_t x = cd_compute_operand(c, n, 0);
    const cd_graph_shape *in = &c->f->node[n->in[0]].shape;
    if (n->a.mode == 0)
        return cd_compute_pad(c, x, "PadInput", true, n->a.before, n->a.after, n->a.p, n->dtype);
    for (uint32_t d = 0; d < in->rank; d++) {
        if (!n->a.before[d] && !n->a.after[d]) cd_compute_index_format(ix[d], "ax%u", d);
        else if (n->a.mode == 1) mirrored(ix[d], d, n->a.before[d], in->dim[d]);
        else
            cd_compute_index_format(ix[d], "min(max(ax%u - %lld, 0), %lld)", d,
                                    (long long)n->a.before[d], (long long)(in->dim[d] - 1));
    }
    return moved(c, n, x, ix, n->a.mode == 1 ? "MirrorPadInput" : "EdgePadInput");
}

/* Four numbers of 8 bits along the axis as one word, the first in its lowest bits. Negative ones
 * stand in two's complement, which of the fourth is the sign of the word. */
uint32_t cd_te_compute_pack4(cd_te_compute *c, const cd_fuse_node *n) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    const uint32_t x = cd_compute_operand(c, n, 0), axis = (uint32_t)n->a.axis;
    cd_compute_begin_axes(c, "ax", &n->shape);
    for (uint32_t d = 0; d < n->shape.rank; d++) cd_compute_index_format(ix[d], "ax%u", d);
    for (int64_t k = 0; k < 4; k++) {
        cd_compute_index_format(ix[axis], "ax%u*4 + %lld", axis, (long long)k);
        cd_compute_put(c, k < 3 ? "int32(" : "((int32(");
        cd_compute_load(c, x, ix);
        if (k < 3) cd_compute_put(c, ") %% 256*%d + ", 1 << 8 * k);
        else cd_compute_put(c, ") + 128) %% 256 - 128)*16777216");
    }
    return cd_compute_end(c, "pack4", "injective", NULL);
}

/* ---- the same again ---- */

uint32_t cd_te_compute_expand(cd_te_compute *c, const cd_fuse_node *n) {
    const uint32_t x = cd_compute_operand(c, n, 0);
    cd_compute_begin_axes(c, "ax", &n->shape);
    cd_compute_load_at(c, x, "ax", &n->shape);
    return cd_compute_end(c, "T_broadcast_to", "broadcast", NULL);
}

uint32_t cd_te_compute_tile(cd_te_compute *c, const cd_fuse_node *n) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    const uint32_t x = cd_compute_operand(c, n, 0);
    const cd_graph_shape *in = &c->f->node[n->in[0]].shape;
    for (uint32_t d = 0; d < in->rank; d++) {
        if (in->dim[d] == n->shape.dim[d]) cd_compute_index_format(ix[d], "ax%u", d);
        else cd_compute_index_format(ix[d], "ax%u %% %lld", d, (long long)in->dim[d]);
    }
    return moved(c, n, x, ix, "T_tile");
}

/* ---- by index: negative ones count from the end, those outside read the nearest ---- */

/* Position along `dim` elements that stage t's element (text) names. */
static void put_index(cd_te_compute *c, uint32_t t, char (*at)[CD_COMPUTE_INDEX_SIZE],
                      int64_t dim) {
    for (int k = 0; k < 3; k++) {
        if (k == 2) cd_compute_put(c, ") + %lld, int32(", (long long)dim);
        else cd_compute_put(c, k ? ") < 0, int32(" : "min(max(select(int32(");
        cd_compute_load(c, t, at);
    }
    cd_compute_put(c, ")), 0), %lld)", (long long)(dim - 1));
}

/* Gathers along one axis by the elements of stage t at `at`; the other axes read x at ix. */
static uint32_t indexed(cd_te_compute *c, const cd_fuse_node *n, uint32_t x, uint32_t t,
                        char (*at)[CD_COMPUTE_INDEX_SIZE], char (*ix)[CD_COMPUTE_INDEX_SIZE],
                        const char *name) {
    const cd_graph_shape *in = &c->f->node[n->in[0]].shape;
    const uint32_t axis = (uint32_t)n->a.axis;
    cd_compute_begin_axes(c, "ax", &n->shape);
    cd_compute_mark_read(c, x);
    cd_compute_put(c, "t%u[", x);
    for (uint32_t d = 0; d < in->rank; d++) {
        if (d) cd_compute_put(c, ", ");
        if (d == axis) put_index(c, t, at, in->dim[d]);
        else cd_compute_put(c, "%s", ix[d]);
    }
    cd_compute_put(c, "]");
    return cd_compute_end(c, name, "injective", NULL);
}

/* out[.., index.., ..] = x[.., index[index..], ..] */
uint32_t cd_te_compute_take(cd_te_compute *c, const cd_fuse_node *n) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE], at[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    const uint32_t x = cd_compute_operand(c, n, 0), t = cd_compute_operand(c, n, 1);
    const uint32_t axis = (uint32_t)n->a.axis, more = c->f->node[n->in[1]].shape.rank;
    for (uint32_t d = 0; d < more; d++) cd_compute_index_format(at[d], "ax%u", axis + d);
    for (uint32_t d = 0; d < c->f->node[n->in[0]].shape.rank; d++)
        cd_compute_index_format(ix[d], "ax%u", d < axis ? d : d + more - 1);
    return indexed(c, n, x, t, at, ix, "T_take");
}

uint32_t cd_te_compute_gather(cd_te_compute *c, const cd_fuse_node *n) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    const uint32_t x = cd_compute_operand(c, n, 0), t = cd_compute_operand(c, n, 1);
    for (uint32_t d = 0; d < n->shape.rank; d++) cd_compute_index_format(ix[d], "ax%u", d);
    return indexed(c, n, x, t, ix, ix, "T_gather");
}

/* ---- resize: mode 0 nearest, 1 linear ---- */

enum { HALF, ASYMMETRIC, CORNERS, TORCH_HALF, SYMMETRIC };

/* Position in the operand of position axD of the result, a real number. */
static void source(const cd_fuse_node *n, uint32_t d, int64_t in, char out[CD_COMPUTE_INDEX_SIZE]) {
    const int64_t size = n->shape.dim[d];
    const double scale = n->a.scale[d], ratio = scale > 0 ? 1 / scale : (double)in / (double)size;
    if (n->a.groups == CORNERS)
        cd_compute_index_format(out, "(float32(ax%u)*%.9e)", d,
                                size > 1 ? (double)(in - 1) / (double)(size - 1) : 0.0);
    else if (n->a.groups == ASYMMETRIC)
        cd_compute_index_format(out, "(float32(ax%u)*%.9e)", d, ratio);
    else if (n->a.groups == TORCH_HALF && size == 1)
        cd_compute_index_format(out, "(float32(ax%u)*0.0)", d);
    /* the rest that is cut off is cut off at both sides */
    else if (n->a.groups == SYMMETRIC && scale > 0)
        cd_compute_index_format(out, "((float32(ax%u) + 0.5)*%.9e + %.9e)", d, ratio,
                                0.5 * (double)in * (1 - (double)size / (scale * (double)in)) - 0.5);
    else cd_compute_index_format(out, "((float32(ax%u) + 0.5)*%.9e - 0.5)", d, ratio);
}

/* Does dimension d stay as it is? An extent that stays may still be read between its elements: 3 by
 * 1.2 are 3. */
static bool stays(const cd_fuse_node *n, uint32_t d, int64_t in) {
    return in == n->shape.dim[d] && !(n->a.scale[d] > 0);
}

static void nearest(const cd_fuse_node *n, uint32_t d, int64_t in,
                    char out[CD_COMPUTE_INDEX_SIZE]) {
    char s[CD_COMPUTE_INDEX_SIZE], r[CD_COMPUTE_INDEX_SIZE];
    if (stays(n, d, in)) {
        cd_compute_index_format(out, "ax%u", d);
        return;
    }
    source(n, d, in, s);
    switch (n->a.axis) {
    case 0: cd_compute_index_format(r, "ceil(%.100s - 0.5)", s); break;
    /* TVM's, too: 3*(1/3) may be below 1 */
    case 1: cd_compute_index_format(r, "floor(%.100s + 1e-05)", s); break;
    case 2: cd_compute_index_format(r, "ceil(%.100s - 1e-05)", s); break;
    default: cd_compute_index_format(r, "floor(%.100s + 0.5)", s); break;
    }
    cd_compute_index_format(out, "min(max(int32(%.130s), 0), %lld)", r, (long long)(in - 1));
}

/* The mean of both neighbours along dimension d, weighted by nearness; and so on for the dimensions
 * behind. */
static void blend(cd_te_compute *c, const cd_fuse_node *n, uint32_t x, const cd_graph_shape *in,
                  uint32_t d, char (*ix)[CD_COMPUTE_INDEX_SIZE]) {
    char s[CD_COMPUTE_INDEX_SIZE];
    while (d < in->rank && stays(n, d, in->dim[d])) d++;
    if (d == in->rank) {
        cd_compute_load(c, x, ix);
        return;
    }
    source(n, d, in->dim[d], s);
    for (int side = 0; side < 2; side++) {
        cd_compute_index_format(ix[d], "min(max(int32(floor(%.100s)) + %d, 0), %lld)", s, side,
                                (long long)(in->dim[d] - 1));
        cd_compute_put(c, side ? " + (" : "(");
        blend(c, n, x, in, d + 1, ix);
        if (side) cd_compute_put(c, ")*(%s - floor(%s))", s, s);
        else cd_compute_put(c, ")*(1.0 - (%s - floor(%s)))", s, s);
    }
}

uint32_t cd_te_compute_resize(cd_te_compute *c, const cd_fuse_node *n) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    const uint32_t x = cd_compute_operand(c, n, 0);
    const cd_graph_shape *in = &c->f->node[n->in[0]].shape;
    cd_compute_begin_axes(c, "ax", &n->shape);
    for (uint32_t d = 0; d < in->rank; d++) {
        if (n->a.mode) cd_compute_index_format(ix[d], "ax%u", d);
        else nearest(n, d, in->dim[d], ix[d]);
    }
    if (n->a.mode) blend(c, n, x, in, 0, ix);
    else cd_compute_load(c, x, ix);
    return cd_compute_end(c, "resize", "injective", NULL);
}
