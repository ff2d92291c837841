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

/* Zeros around what was taken; the last step's zeros may be cut. */
uint32_t cd_autodiff_unslice(cd_autodiff_builder *b, uint32_t dy, const int64_t *start,
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
    cd_autodiff_accumulate(b, 0, cd_autodiff_unslice(b, dy, start, step, &x));
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
