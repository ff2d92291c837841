/* Gradients of operators that move elements: the elements move back, and are summed where they had
 * been copied. */
#include <string.h>

#include "profiler/network/gradient/autodiff_internal.h"

/* Reshape, Flatten, Squeeze, Unsqueeze */
static void view(cd_autodiff_builder *b) {
    cd_autodiff_accumulate(b, 0,
                           cd_autodiff_reshape(b, cd_autodiff_output_grad(b, 0),
                                               cd_autodiff_shape(b, cd_autodiff_input(b, 0))));
}

static void transpose(cd_autodiff_builder *b) {
    const uint32_t rank = cd_autodiff_shape(b, cd_autodiff_input(b, 0))->rank;
    int64_t back[CD_GRAPH_MAX_RANK] = {0};
    uint32_t n;
    const int64_t *perm = cd_autodiff_get_ints(b, "perm", &n);
    for (uint32_t d = 0; d < rank; d++) back[perm && n == rank ? perm[d] : rank - 1 - d] = d;
    cd_autodiff_accumulate(b, 0,
                           cd_autodiff_transpose(b, cd_autodiff_output_grad(b, 0), rank, back));
}

static void expand(cd_autodiff_builder *b) {
    cd_autodiff_accumulate(b, 0, cd_autodiff_output_grad(b, 0));
}

static void concat(cd_autodiff_builder *b) {
    int64_t start[CD_GRAPH_MAX_RANK] = {0};
    const int64_t axis = cd_graph_node_int(b->n, "axis", 0);
    for (uint32_t k = 0; k < b->n->n_in; k++) {
        const cd_graph_shape s = *cd_autodiff_shape(b, cd_autodiff_input(b, k));
        if (cd_autodiff_needs_grad(b, k))
            cd_autodiff_accumulate(b, k,
                                   cd_autodiff_slice(b, cd_autodiff_output_grad(b, 0), start, &s));
        start[axis] += s.dim[axis];
    }
}

/* Results that nothing depends on have zeros. */
static void split(cd_autodiff_builder *b) {
    const cd_graph_attr axis = cd_autodiff_attr_int("axis", cd_graph_node_int(b->n, "axis", 0));
    uint32_t *dy = CD_NEWN(&b->g->arena, uint32_t, b->n->n_out);
    if (!dy) {
        cd_autodiff_fail(b, CD_FAIL(b->err, ENOMEM, "out of memory for operators"));
        return;
    }
    for (uint32_t k = 0; k < b->n->n_out; k++) {
        dy[k] = cd_autodiff_output_grad(b, k);
        if (dy[k] == CD_GRAPH_NONE)
            dy[k] = cd_autodiff_zeros(b, cd_autodiff_shape(b, cd_autodiff_output(b, k)),
                                      cd_autodiff_input(b, 0));
    }
    cd_autodiff_accumulate(b, 0, cd_autodiff_op(b, "Concat", b->n->n_out, dy, 1, &axis));
}

/* Zeros between elements: step - 1 zeros after each, in a dimension of their own that is then
 * merged. */
static uint32_t apart(cd_autodiff_builder *b, uint32_t x, uint32_t d, int64_t step) {
    const cd_graph_shape s = *cd_autodiff_shape(b, x);
    cd_graph_shape one = {s.rank + 1, {0}}, wide = s;
    int64_t before[CD_GRAPH_MAX_RANK] = {0}, after[CD_GRAPH_MAX_RANK] = {0};
    if (b->st || step == 1 || s.rank == CD_GRAPH_MAX_RANK) return x;
    for (uint32_t k = 0; k <= s.rank; k++)
        one.dim[k] = k <= d ? s.dim[k] : k == d + 1 ? 1 : s.dim[k - 1];
    after[d + 1] = step - 1;
    wide.dim[d] = s.dim[d] * step;
    return cd_autodiff_reshape(
        b, cd_autodiff_pad(b, cd_autodiff_reshape(b, x, &one), before, after), &wide);
}

static int64_t begin_of(int64_t start, int64_t dim) {
    if (start < 0) start += dim;
    return start < 0 ? 0 : start > dim ? dim : start;
}

/* The reverse of a slice: dy at every step-th element from `start` of a tensor of shape s, zeros
 * elsewhere. Fewer than 8 dimensions where a step is not 1.
 *
 * Zeros around what was taken; the last step's zeros may be cut. */
static uint32_t autodiff_unslice(cd_autodiff_builder *b, uint32_t dy, const int64_t *start,
                                 const int64_t *step, const cd_graph_shape *x) {
    int64_t after[CD_GRAPH_MAX_RANK] = {0};
    for (uint32_t d = 0; d < x->rank; d++) dy = apart(b, dy, d, step[d]);
    for (uint32_t d = 0; d < x->rank; d++)
        after[d] = x->dim[d] - start[d] - cd_autodiff_shape(b, dy)->dim[d];
    return cd_autodiff_pad(b, dy, start, after);
}

/* A slice with negative steps: reverse dy, so that the slice has positive steps and begins at what
 * was its last element. */
static uint32_t turn(cd_autodiff_builder *b, uint32_t dy, uint32_t which, int64_t *start,
                     int64_t *step) {
    const cd_graph_shape s = *cd_autodiff_shape(b, dy);
    int64_t from[CD_GRAPH_MAX_RANK], to[CD_GRAPH_MAX_RANK], axis[CD_GRAPH_MAX_RANK],
        by[CD_GRAPH_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t d = 0; d < s.rank; d++) {
        if (!cd_autodiff_has_axis(which, d)) continue;
        axis[n] = d;
        from[n] = by[n] = -1;
        to[n++] = -s.dim[d] - 1;
        start[d] += (s.dim[d] - 1) * step[d];
        step[d] = -step[d];
    }
    if (b->st || !n) return dy;
    return cd_autodiff_op(
        b, "Slice", 5,
        (const uint32_t[]){dy, cd_autodiff_const_ints(b, n, from), cd_autodiff_const_ints(b, n, to),
                           cd_autodiff_const_ints(b, n, axis), cd_autodiff_const_ints(b, n, by)},
        0, NULL);
}

/* Starts, axes and steps as resolved by the graph, or as operands. */
static void slice(cd_autodiff_builder *b) {
    const cd_graph_shape x = *cd_autodiff_shape(b, cd_autodiff_input(b, 0));
    int64_t start[CD_GRAPH_MAX_RANK] = {0}, step[CD_GRAPH_MAX_RANK];
    uint32_t n, n_axis, n_step, turned = 0;
    const int64_t *v = cd_autodiff_known_ints(b, 1, &n),
                  *axes = cd_autodiff_known_ints(b, 3, &n_axis),
                  *st = cd_autodiff_known_ints(b, 4, &n_step);
    if (b->n->n_in == 1) {
        v = cd_autodiff_get_ints(b, "starts", &n);
        axes = cd_autodiff_get_ints(b, "axes", &n_axis);
    }
    for (uint32_t d = 0; d < x.rank; d++) step[d] = 1;
    if (!v) b->why = "where the slice begins is not known";
    for (uint32_t i = 0; v && i < n; i++) {
        const int64_t d = axes && i < n_axis ? (axes[i] < 0 ? axes[i] + x.rank : axes[i]) : i;
        if (d < 0 || d >= x.rank) continue;
        step[d] = st && i < n_step ? st[i] : 1;
        start[d] = begin_of(v[i], x.dim[d]);
        if (step[d] < 0) turned |= 1U << d;
        if (step[d] > 1 && x.rank == CD_GRAPH_MAX_RANK)
            b->why = "steps in a tensor of 8 dimensions";
    }
    if (b->why) return;
    const uint32_t dy = turn(b, cd_autodiff_output_grad(b, 0), turned, start, step);
    cd_autodiff_accumulate(b, 0, autodiff_unslice(b, dy, start, step, &x));
}

/* The reverse of padding is slicing, and the other way round where pads are negative. */
static void pad(cd_autodiff_builder *b) {
    const cd_graph_attr *mode = cd_graph_node_attr(b->n, "mode");
    const cd_graph_shape x = *cd_autodiff_shape(b, cd_autodiff_input(b, 0));
    int64_t before[CD_GRAPH_MAX_RANK], after[CD_GRAPH_MAX_RANK];
    uint32_t n;
    const int64_t *v = cd_autodiff_get_ints(b, "pads", &n);
    if (mode && mode->kind == CD_GRAPH_ATTR_STR && strcmp(mode->s, "constant"))
        b->why = "padding that repeats elements";
    if (!v || n != 2 * x.rank) b->why = "the padding is not known";
    if (b->why) return;
    for (uint32_t d = 0; d < x.rank; d++) {
        before[d] = -v[d];
        after[d] = -v[d + x.rank];
    }
    bool shorter = true;
    for (uint32_t d = 0; d < x.rank; d++) shorter = shorter && before[d] <= 0 && after[d] <= 0;
    for (uint32_t d = 0; d < x.rank && shorter; d++) before[d] = v[d];
    cd_autodiff_accumulate(b, 0,
                           shorter
                               ? cd_autodiff_slice(b, cd_autodiff_output_grad(b, 0), before, &x)
                               : cd_autodiff_pad(b, cd_autodiff_output_grad(b, 0), before, after));
}

/* [r0*x0, r1*x1] as [r0, x0, r1, x1], summed over the repeats. */
static void tile(cd_autodiff_builder *b) {
    const cd_graph_shape x = *cd_autodiff_shape(b, cd_autodiff_input(b, 0));
    cd_graph_shape apart_ = {2 * x.rank, {0}};
    uint32_t n, axes = 0;
    const int64_t *v = cd_autodiff_get_ints(b, "repeats", &n);
    if (!v || n != x.rank || 2 * x.rank > CD_GRAPH_MAX_RANK) {
        b->why = "tiles of more than 4 dimensions, or of unknown number";
        return;
    }
    for (uint32_t d = 0; d < x.rank; d++) {
        apart_.dim[2 * d] = v[d];
        apart_.dim[2 * d + 1] = x.dim[d];
        axes |= 1U << (2 * d);
    }
    cd_autodiff_accumulate(
        b, 0,
        cd_autodiff_reduce(b, "ReduceSum",
                           cd_autodiff_reshape(b, cd_autodiff_output_grad(b, 0), &apart_), axes,
                           false));
}

/* [N, C*b*b, H, W] <-> [N, C, H*b, W*b] */
static void depth_to_space(cd_autodiff_builder *b) {
    static const int64_t dcr[] = {0, 3, 5, 1, 2, 4}, crd[] = {0, 1, 3, 5, 2, 4};
    const cd_graph_shape x = *cd_autodiff_shape(b, cd_autodiff_input(b, 0));
    const cd_graph_attr *mode = cd_graph_node_attr(b->n, "mode");
    const bool is_crd = mode && mode->kind == CD_GRAPH_ATTR_STR && !strcmp(mode->s, "CRD");
    const int64_t k = cd_graph_node_int(b->n, "blocksize", 1);
    const cd_graph_shape six = {6, {x.dim[0], x.dim[1] / (k * k), x.dim[2], k, x.dim[3], k}};
    const uint32_t y = cd_autodiff_transpose(
        b, cd_autodiff_reshape(b, cd_autodiff_output_grad(b, 0), &six), 6, is_crd ? crd : dcr);
    cd_autodiff_accumulate(b, 0, cd_autodiff_reshape(b, y, &x));
}

static void space_to_depth(cd_autodiff_builder *b) {
    const cd_graph_attr by =
        cd_autodiff_attr_int("blocksize", cd_graph_node_int(b->n, "blocksize", 1));
    const uint32_t dy = cd_autodiff_output_grad(b, 0);
    cd_autodiff_accumulate(b, 0, cd_autodiff_op(b, "DepthToSpace", 1, &dy, 1, &by));
}

static const char *text(const cd_autodiff_builder *b, const char *name) {
    const cd_graph_attr *a = cd_graph_node_attr(b->n, name);
    return a && a->kind == CD_GRAPH_ATTR_STR ? a->s : "";
}

/* Do the elements that are repeated stand together? */
static bool blocks(const cd_autodiff_builder *b) {
    const char *at = text(b, "coordinate_transformation_mode"), *to = text(b, "nearest_mode");
    if (!strcmp(b->n->op, "Upsample") || b->g->opset < 11) return true;
    if (!strcmp(at, "asymmetric")) return !strcmp(to, "floor");
    return (!*at || !strcmp(at, "half_pixel") || !strcmp(at, "pytorch_half_pixel")) &&
           strcmp(to, "floor") && strcmp(to, "ceil");
}

/* Each element was written a whole number of times: their sum. */
static void resize(cd_autodiff_builder *b) {
    const cd_graph_shape x = *cd_autodiff_shape(b, cd_autodiff_input(b, 0)),
                         y = *cd_autodiff_shape(b, cd_autodiff_output(b, 0));
    cd_graph_shape apart_ = {0, {0}};
    uint32_t axes = 0;
    const char *mode = text(b, "mode");
    const cd_graph_attr *scale = cd_graph_node_attr(b->n, "scales");
    bool whole = !*mode || !strcmp(mode, "nearest");
    for (uint32_t d = 0; scale && scale->kind == CD_GRAPH_ATTR_FLOATS && d < scale->n && d < x.rank;
         d++)
        /* else positions are not those of whole multiples */
        whole = whole && (float)scale->floats[d] * (float)x.dim[d] == (float)y.dim[d];
    for (uint32_t d = 0; d < x.rank; d++) {
        whole = whole && x.dim[d] > 0 && y.dim[d] % x.dim[d] == 0 &&
                apart_.rank + 2 <= CD_GRAPH_MAX_RANK;
        if (!whole) break;
        apart_.dim[apart_.rank++] = x.dim[d];
        if (y.dim[d] == x.dim[d]) continue;
        axes |= 1U << apart_.rank;
        apart_.dim[apart_.rank++] = y.dim[d] / x.dim[d];
    }
    if (!whole || !blocks(b))
        b->why = "only resizing to whole multiples of the nearest element has a gradient";
    else
        cd_autodiff_accumulate(
            b, 0,
            cd_autodiff_reduce(b, "ReduceSum",
                               cd_autodiff_reshape(b, cd_autodiff_output_grad(b, 0), &apart_), axes,
                               false));
}

const cd_autodiff_rule cd_autodiff_rules_move[] = {
    {"Reshape", view},
    {"Flatten", view},
    {"Squeeze", view},
    {"Unsqueeze", view},
    {"Transpose", transpose},
    {"Expand", expand},
    {"Concat", concat},
    {"Split", split},
    {"Slice", slice},
    {"Pad", pad},
    {"Tile", tile},
    {"DepthToSpace", depth_to_space},
    {"SpaceToDepth", space_to_depth},
    {"Resize", resize},
    {"Upsample", resize},
    {"ConstantOfShape", NULL},
    {NULL, NULL},
};

/* Gradients of convolutions: of the data the transposed one, of the weight a convolution whose
 * kernel is dy.
 *
 *   y[n,m,i] = sum_c,r x[n,c,i*s + r*d] w[m,c,r]     dw[m,c,r] = sum_n,i x[n,c,i*s + r*d] dy[n,m,i]
 *
 * dw is a convolution of x with dy as its weight, where the batch is summed and stride and dilation
 * change places: of g groups x is [C/g, g*N, ..] and dy [M, N, ..]. */

enum { MOST = CD_GRAPH_MAX_RANK - 2 };

typedef struct window {
    uint32_t n;
    int64_t group;
    const int64_t *stride, *dilation, *pad;
} window;

static window window_of(const cd_autodiff_builder *b) {
    window w = {.group = cd_graph_node_int(b->n, "group", 1)};
    uint32_t k;
    w.stride = cd_autodiff_get_ints(b, "strides", &w.n);
    w.dilation = cd_autodiff_get_ints(b, "dilations", &k);
    w.pad = cd_autodiff_get_ints(b, "pads", &k);
    return w;
}

/* [N, g*C, ..] -> [C, g*N, ..]: the batch of each group where its channels were. */
static uint32_t batch_inside(cd_autodiff_builder *b, uint32_t x, int64_t group) {
    const cd_graph_shape s = *cd_autodiff_shape(b, x);
    int64_t perm[CD_GRAPH_MAX_RANK];
    if (group == 1) {
        for (uint32_t d = 0; d < s.rank; d++) perm[d] = d < 2 ? 1 - d : d;
        return cd_autodiff_transpose(b, x, s.rank, perm);
    }
    cd_graph_shape apart = {s.rank + 1, {s.dim[0], group, s.dim[1] / group}};
    cd_graph_shape together = {s.rank, {s.dim[1] / group, group * s.dim[0]}};
    for (uint32_t d = 2; d < s.rank; d++) apart.dim[d + 1] = together.dim[d] = s.dim[d];
    for (uint32_t d = 0; d < apart.rank; d++) perm[d] = d == 0 ? 2 : d == 2 ? 0 : d;
    return cd_autodiff_reshape(
        b, cd_autodiff_transpose(b, cd_autodiff_reshape(b, x, &apart), apart.rank, perm),
        &together);
}

/* A kernel of one element: y reads every stride-th x. */
static bool is_point(const window *w, const cd_graph_shape *k) {
    for (uint32_t d = 0; d < w->n; d++)
        if (w->pad[d] || w->pad[d + w->n] || k->dim[d + 2] != 1) return false;
    return true;
}

static bool dense(const window *w) {
    for (uint32_t d = 0; d < w->n; d++)
        if (w->stride[d] != 1) return false;
    return true;
}

/* Every stride-th element, as many as `small` has. */
static uint32_t picked(cd_autodiff_builder *b, uint32_t x, uint32_t small, const window *w) {
    int64_t from[MOST] = {0}, to[MOST], axis[MOST];
    if (dense(w)) return x;
    for (uint32_t d = 0; d < w->n; d++) {
        axis[d] = d + 2;
        to[d] = (cd_autodiff_shape(b, small)->dim[d + 2] - 1) * w->stride[d] + 1;
    }
    const uint32_t in[5] = {
        x, cd_autodiff_const_ints(b, w->n, from), cd_autodiff_const_ints(b, w->n, to),
        cd_autodiff_const_ints(b, w->n, axis), cd_autodiff_const_ints(b, w->n, w->stride)};
    return cd_autodiff_op(b, "Slice", 5, in, 0, NULL);
}

/* [N, C, ..] as [N * .., C]. */
static uint32_t rows(cd_autodiff_builder *b, uint32_t x) {
    const cd_graph_shape s = *cd_autodiff_shape(b, x);
    int64_t perm[CD_GRAPH_MAX_RANK], n = s.dim[0];
    for (uint32_t d = 0; d < s.rank; d++) perm[d] = d == 0 ? 0 : d + 1 == s.rank ? 1 : d + 1;
    for (uint32_t d = 2; d < s.rank; d++) n *= s.dim[d];
    const cd_graph_shape two = {2, {n, s.dim[1]}};
    return cd_autodiff_reshape(b, cd_autodiff_transpose(b, x, s.rank, perm), &two);
}

/* The operand without the elements at its end that no window reaches; less padding where that is
 * enough. */
static uint32_t reached(cd_autodiff_builder *b, uint32_t x, uint32_t small, const cd_graph_shape *k,
                        const window *w, int64_t *pad) {
    cd_graph_shape s = *cd_autodiff_shape(b, x);
    const int64_t none[CD_GRAPH_MAX_RANK] = {0};
    memcpy(pad, w->pad, 2 * w->n * sizeof *pad);
    for (uint32_t d = 0; d < w->n; d++) {
        const int64_t end = (cd_autodiff_shape(b, small)->dim[d + 2] - 1) * w->stride[d] +
                            (k->dim[d + 2] - 1) * w->dilation[d] + 1;
        const int64_t over = pad[d] + s.dim[d + 2] + pad[d + w->n] - end;
        const int64_t less = over > pad[d + w->n] ? pad[d + w->n] : over;
        pad[d + w->n] -= less;
        s.dim[d + 2] -= over - less;
    }
    return cd_autodiff_slice(b, x, none, &s);
}

/* Gradient of the weight [M, C/g, ..] that made `small` [N, M, ..] from `big` [N, C, ..]. */
static uint32_t weight(cd_autodiff_builder *b, uint32_t big, uint32_t small,
                       const cd_graph_shape *k, const window *w) {
    int64_t perm[CD_GRAPH_MAX_RANK], pad[2 * MOST];
    if (b->st) return CD_GRAPH_NONE;
    if (w->group == 1 && is_point(w, k))
        return cd_autodiff_reshape(
            b, cd_autodiff_gemm(b, rows(b, small), rows(b, picked(b, big, small, w)), true, false),
            k);
    const uint32_t in[2] = {batch_inside(b, reached(b, big, small, k, w, pad), w->group),
                            batch_inside(b, small, 1)};
    const cd_graph_attr attr[] = {cd_autodiff_attr_ints("strides", w->n, w->dilation),
                                  cd_autodiff_attr_ints("dilations", w->n, w->stride),
                                  cd_autodiff_attr_ints("pads", 2 * w->n, pad),
                                  cd_autodiff_attr_int("group", w->group)};
    for (uint32_t d = 0; d < k->rank; d++) perm[d] = d < 2 ? 1 - d : d;
    return cd_autodiff_transpose(b, cd_autodiff_op(b, "Conv", 2, in, 4, attr), k->rank, perm);
}

/* Over all dimensions but the channels. */
static void bias(cd_autodiff_builder *b, uint32_t k) {
    if (!cd_autodiff_needs_grad(b, k)) return;
    const uint32_t rank = cd_autodiff_shape(b, cd_autodiff_output_grad(b, 0))->rank;
    cd_autodiff_accumulate(b, k,
                           cd_autodiff_reduce(b, "ReduceSum", cd_autodiff_output_grad(b, 0),
                                              ((1U << rank) - 1) & ~2U, false));
}

/* By how much the transposed convolution of dy is shorter than x. */
static void output_padding(const cd_autodiff_builder *b, const window *w, const cd_graph_shape *x,
                           const cd_graph_shape *k, int64_t *more) {
    const cd_graph_shape *y = cd_autodiff_shape(b, cd_autodiff_output(b, 0));
    for (uint32_t d = 0; d < w->n; d++) {
        const int64_t reach = (k->dim[d + 2] - 1) * w->dilation[d] + 1;
        more[d] = x->dim[d + 2] -
                  ((y->dim[d + 2] - 1) * w->stride[d] + reach - w->pad[d] - w->pad[d + w->n]);
    }
}

/* The weight with its kernel turned by 180 degrees and its channels exchanged within each group:
 * [M, C/g, ..] -> [C, M/g, ..]. */
static uint32_t turned(cd_autodiff_builder *b, uint32_t w, int64_t group) {
    const cd_graph_shape k = *cd_autodiff_shape(b, w);
    int64_t perm[CD_GRAPH_MAX_RANK], from[MOST], to[MOST], axis[MOST], step[MOST];
    cd_graph_shape apart = {k.rank + 1, {group, k.dim[0] / group, k.dim[1]}};
    cd_graph_shape whole = {k.rank, {group * k.dim[1], k.dim[0] / group}};
    uint32_t n = 0;
    for (uint32_t d = 2; d < k.rank; d++) {
        apart.dim[d + 1] = whole.dim[d] = k.dim[d];
        if (k.dim[d] == 1) continue;
        axis[n] = d;
        from[n] = step[n] = -1;
        to[n++] = -k.dim[d] - 1;
    }
    if (n)
        w = cd_autodiff_op(b, "Slice", 5,
                           (const uint32_t[]){w, cd_autodiff_const_ints(b, n, from),
                                              cd_autodiff_const_ints(b, n, to),
                                              cd_autodiff_const_ints(b, n, axis),
                                              cd_autodiff_const_ints(b, n, step)},
                           0, NULL);
    if (group == 1) {
        for (uint32_t d = 0; d < k.rank; d++) perm[d] = d < 2 ? 1 - d : d;
        return cd_autodiff_transpose(b, w, k.rank, perm);
    }
    for (uint32_t d = 0; d < apart.rank; d++) perm[d] = d == 1 ? 2 : d == 2 ? 1 : d;
    return cd_autodiff_reshape(
        b, cd_autodiff_transpose(b, cd_autodiff_reshape(b, w, &apart), apart.rank, perm), &whole);
}

/* A kernel of one element: multiply first, then put the elements where the strides took them
 * from. */
static uint32_t point_back(cd_autodiff_builder *b, uint32_t dy, const window *w,
                           const cd_graph_shape *x) {
    const cd_graph_attr group = cd_autodiff_attr_int("group", w->group);
    int64_t start[CD_GRAPH_MAX_RANK] = {0}, step[CD_GRAPH_MAX_RANK] = {1, 1};
    for (uint32_t d = 0; d < w->n; d++) step[d + 2] = w->stride[d];
    const uint32_t d = cd_autodiff_op(
        b, "Conv", 2, (const uint32_t[]){dy, turned(b, cd_autodiff_input(b, 1), w->group)}, 1,
        &group);
    return autodiff_unslice(b, d, start, step, x);
}

/* Without strides the gradient of the data is a convolution with the turned weight. False where the
 * padding is wider than the kernel. */
static bool turned_conv(cd_autodiff_builder *b, uint32_t dy, const window *w,
                        const cd_graph_shape *k) {
    int64_t pad[2 * MOST];
    if (!dense(w) || k->rank == CD_GRAPH_MAX_RANK) return false;
    for (uint32_t d = 0; d < 2 * w->n; d++) {
        pad[d] = (k->dim[d % w->n + 2] - 1) * w->dilation[d % w->n] - w->pad[d];
        if (pad[d] < 0) return false;
    }
    const cd_graph_attr attr[] = {cd_autodiff_attr_ints("dilations", w->n, w->dilation),
                                  cd_autodiff_attr_ints("pads", 2 * w->n, pad),
                                  cd_autodiff_attr_int("group", w->group)};
    cd_autodiff_accumulate(
        b, 0,
        cd_autodiff_op(b, "Conv", 2,
                       (const uint32_t[]){dy, turned(b, cd_autodiff_input(b, 1), w->group)}, 3,
                       attr));
    return true;
}

/* The bias, the weight, then the data in the cheapest of three forms: a kernel of one element with
 * strides, a convolution with the turned weight where no stride is above 1, else a transposed
 * convolution. */
static void conv(cd_autodiff_builder *b) {
    const window w = window_of(b);
    const uint32_t dy = cd_autodiff_output_grad(b, 0);
    const cd_graph_shape x = *cd_autodiff_shape(b, cd_autodiff_input(b, 0)),
                         k = *cd_autodiff_shape(b, cd_autodiff_input(b, 1));
    int64_t more[MOST];
    bias(b, 2);
    if (cd_autodiff_needs_grad(b, 1))
        cd_autodiff_accumulate(b, 1, weight(b, cd_autodiff_input(b, 0), dy, &k, &w));
    if (!cd_autodiff_needs_grad(b, 0)) return;
    if (is_point(&w, &k) && !dense(&w) && x.rank < CD_GRAPH_MAX_RANK) {
        cd_autodiff_accumulate(b, 0, point_back(b, dy, &w, &x));
        return;
    }
    if (turned_conv(b, dy, &w, &k)) return;
    output_padding(b, &w, &x, &k, more);
    const cd_graph_attr attr[] = {cd_autodiff_attr_ints("strides", w.n, w.stride),
                                  cd_autodiff_attr_ints("dilations", w.n, w.dilation),
                                  cd_autodiff_attr_ints("pads", 2 * w.n, w.pad),
                                  cd_autodiff_attr_ints("output_padding", w.n, more),
                                  cd_autodiff_attr_int("group", w.group)};
    cd_autodiff_accumulate(b, 0,
                           cd_autodiff_op(b, "ConvTranspose", 2,
                                          (const uint32_t[]){dy, cd_autodiff_input(b, 1)}, 5,
                                          attr));
}

/* The data's gradient is a plain convolution of dy; the weight's is that of a convolution with the
 * roles of x and dy exchanged. */
static void conv_transpose(cd_autodiff_builder *b) {
    const window w = window_of(b);
    const uint32_t dy = cd_autodiff_output_grad(b, 0), x = cd_autodiff_input(b, 0);
    const cd_graph_shape s = *cd_autodiff_shape(b, x),
                         k = *cd_autodiff_shape(b, cd_autodiff_input(b, 1));
    int64_t none[CD_GRAPH_MAX_RANK] = {0};
    bias(b, 2);
    if (cd_autodiff_needs_grad(b, 1)) cd_autodiff_accumulate(b, 1, weight(b, dy, x, &k, &w));
    if (!cd_autodiff_needs_grad(b, 0)) return;
    const cd_graph_attr attr[] = {cd_autodiff_attr_ints("strides", w.n, w.stride),
                                  cd_autodiff_attr_ints("dilations", w.n, w.dilation),
                                  cd_autodiff_attr_ints("pads", 2 * w.n, w.pad),
                                  cd_autodiff_attr_int("group", w.group)};
    const uint32_t dx =
        cd_autodiff_op(b, "Conv", 2, (const uint32_t[]){dy, cd_autodiff_input(b, 1)}, 4, attr);
    /* output padding beyond a stride gives more */
    cd_autodiff_accumulate(b, 0, cd_autodiff_slice(b, dx, none, &s));
}

const cd_autodiff_rule cd_autodiff_rules_conv[] = {
    {"Conv", conv}, {"ConvTranspose", conv_transpose}, {NULL, NULL}};
