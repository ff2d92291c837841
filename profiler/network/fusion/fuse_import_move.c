/* Operators that move elements, and reductions. What the graph inferred (result shapes, resolved
 * attributes) is not inferred again. */
#include <string.h>

#include "profiler/network/fusion/fuse_import_internal.h"

static void same(cd_fuse_importer *m) { cd_fuse_import_output(m, 0, cd_fuse_import_input(m, 0)); }

/* Reshape, Flatten, Squeeze, Unsqueeze: the graph knows the shape. */
static void view(cd_fuse_importer *m) {
    cd_fuse_import_output(
        m, 0, cd_fuse_reshape(m->f, cd_fuse_import_input(m, 0), cd_fuse_import_result_shape(m)));
}

static void transpose(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0), rank = cd_fuse_import_shape(m, x)->rank;
    int64_t perm[CD_GRAPH_MAX_RANK];
    uint32_t n;
    const int64_t *p = cd_fuse_import_ints(m, CD_GRAPH_NONE, "perm", &n);
    for (uint32_t d = 0; d < rank; d++) perm[d] = p && n == rank ? p[d] : rank - 1 - d;
    cd_fuse_import_output(m, 0, cd_fuse_transpose(m->f, x, perm));
}

static void concat(cd_fuse_importer *m) {
    uint32_t *in = CD_NEWN(&m->f->arena, uint32_t, m->n->n_in + 1), n = 0;
    if (!in) {
        cd_fuse_fail(m->f, CDMPP_ENOMEM, "out of memory for operators");
        return;
    }
    for (uint32_t k = 0; k < m->n->n_in; k++)
        if (cd_fuse_import_has(m, k) &&
            cd_graph_shape_elements(&cd_fuse_import_tensor(m, k)->shape))
            in[n++] = cd_fuse_import_input(m, k);
    if (n)
        cd_fuse_import_output(
            m, 0,
            cd_fuse_concat(m->f, in, n,
                           cd_fuse_import_axis(cd_fuse_import_result_shape(m),
                                               cd_graph_node_int(m->n, "axis", 1))));
    else m->why = "nothing to put together";
}

/* Where a slice begins: Python's rules for what lies outside. */
static int64_t begin_of(int64_t start, int64_t step, int64_t dim) {
    const int64_t hi = step > 0 ? dim : dim - 1;
    if (start < 0) start += dim;
    return start < 0 ? 0 : start > hi ? hi : start;
}

/* starts, axes and steps are resolved attributes of the graph; the result's shape says where the
 * slice ends. */
static void slice(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    const cd_graph_shape s = *cd_fuse_import_shape(m, x);
    int64_t start[CD_GRAPH_MAX_RANK] = {0}, step[CD_GRAPH_MAX_RANK];
    uint32_t n, n_axis, n_step;
    const int64_t *b = cd_fuse_import_ints(m, 1, "starts", &n),
                  *axes = cd_fuse_import_ints(m, 3, "axes", &n_axis),
                  *st = cd_fuse_import_ints(m, 4, "steps", &n_step);
    if (!b || (!axes && cd_fuse_import_has(m, 3)) || (!st && cd_fuse_import_has(m, 4))) {
        m->why = "where the slice begins is not known";
        return;
    }
    for (uint32_t d = 0; d < s.rank; d++) step[d] = 1;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t d = axes && i < n_axis ? cd_fuse_import_axis(&s, axes[i]) : i;
        if (d < 0 || d >= s.rank) continue;
        step[d] = st && i < n_step ? st[i] : 1;
        start[d] = begin_of(b[i], step[d], s.dim[d]);
    }
    cd_fuse_import_output(m, 0,
                          cd_fuse_slice(m->f, x, start, step, cd_fuse_import_result_shape(m)));
}

static void split(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    int64_t start[CD_GRAPH_MAX_RANK] = {0};
    const int64_t axis =
        cd_fuse_import_axis(cd_fuse_import_shape(m, x), cd_graph_node_int(m->n, "axis", 0));
    for (uint32_t k = 0; k < m->n->n_out; k++) {
        const cd_graph_shape s = m->g->tensor[m->n->out[k]].shape;
        cd_fuse_import_output(m, k, cd_fuse_slice(m->f, x, start, NULL, &s));
        start[axis] += s.dim[axis];
    }
}

/* Of one known index a slice, of others take: data[.., index, ..]. */
static void gather(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    cd_graph_shape s = *cd_fuse_import_shape(m, x);
    const int64_t axis = cd_fuse_import_axis(&s, cd_graph_node_int(m->n, "axis", 0));
    double at;
    if (cd_fuse_import_number(m, 1, &at)) {
        int64_t start[CD_GRAPH_MAX_RANK] = {0};
        start[axis] = at < 0 ? (int64_t)at + s.dim[axis] : (int64_t)at;
        s.dim[axis] = 1;
        cd_fuse_import_output(m, 0,
                              cd_fuse_reshape(m->f, cd_fuse_slice(m->f, x, start, NULL, &s),
                                              cd_fuse_import_result_shape(m)));
        return;
    }
    const uint32_t in[2] = {x, cd_fuse_import_input(m, 1)};
    const cd_fuse_attr a = {.axis = axis};
    cd_fuse_import_output(m, 0,
                          cd_fuse_add_node(m->f, CD_FUSE_OP_TAKE, m->f->node[x].dtype,
                                           cd_fuse_import_result_shape(m), in, 2, &a));
}

static void gather_elements(cd_fuse_importer *m) {
    const uint32_t in[2] = {cd_fuse_import_input(m, 0), cd_fuse_import_input(m, 1)};
    const cd_fuse_attr a = {.axis = cd_fuse_import_axis(cd_fuse_import_shape(m, in[0]),
                                                        cd_graph_node_int(m->n, "axis", 0))};
    cd_fuse_import_output(m, 0,
                          cd_fuse_add_node(m->f, CD_FUSE_OP_GATHER, m->f->node[in[0]].dtype,
                                           cd_fuse_import_result_shape(m), in, 2, &a));
}

static int pad_mode(const cd_fuse_importer *m) {
    const cd_graph_attr *a = cd_graph_node_attr(m->n, "mode");
    if (!a || a->kind != CD_GRAPH_ATTR_STR || !strcmp(a->s, "constant")) return 0;
    return !strcmp(a->s, "reflect") ? 1 : !strcmp(a->s, "edge") ? 2 : -1;
}

/* Axes: all, or those of operand 3. */
static void pad(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0), rank = cd_fuse_import_shape(m, x)->rank;
    cd_fuse_attr a = {.n = rank, .mode = pad_mode(m), .p = cd_graph_node_float(m->n, "value", 0)};
    uint32_t n, n_axis;
    const int64_t *p = cd_fuse_import_ints(m, 1, "pads", &n),
                  *axes = cd_fuse_import_ints(m, 3, NULL, &n_axis);
    const uint32_t half = n / 2;
    bool any = false;
    if (a.mode < 0) m->why = "this mode of padding has no compute definition";
    else if (!p || (cd_fuse_import_has(m, 2) && !cd_fuse_import_number(m, 2, &a.p)))
        m->why = "the padding is not known";
    for (uint32_t i = 0; !m->why && i < half; i++) {
        const int64_t d =
            axes && i < n_axis ? cd_fuse_import_axis(cd_fuse_import_shape(m, x), axes[i]) : i;
        if (d < 0 || d >= rank) continue;
        a.before[d] = p[i];
        a.after[d] = p[i + half];
        any = any || p[i] || p[i + half];
    }
    if (!m->why)
        cd_fuse_import_output(m, 0,
                              any ? cd_fuse_add_node(m->f, CD_FUSE_OP_PAD, m->f->node[x].dtype,
                                                     cd_fuse_import_result_shape(m), &x, 1, &a)
                                  : x);
}

static void expand(cd_fuse_importer *m) {
    cd_fuse_import_output(
        m, 0, cd_fuse_expand(m->f, cd_fuse_import_input(m, 0), cd_fuse_import_result_shape(m)));
}

static void tile(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    const cd_graph_shape *s = cd_fuse_import_result_shape(m);
    if (cd_graph_shape_elements(s) == cd_graph_shape_elements(cd_fuse_import_shape(m, x)))
        cd_fuse_import_output(m, 0, x);
    else
        cd_fuse_import_output(
            m, 0, cd_fuse_add_node(m->f, CD_FUSE_OP_TILE, m->f->node[x].dtype, s, &x, 1, NULL));
}

/* [N, C*b*b, H, W] <-> [N, C, H*b, W*b]: a transpose between two views. */
static void depth_to_space(cd_fuse_importer *m) {
    static const int64_t dcr[] = {0, 3, 4, 1, 5, 2}, crd[] = {0, 1, 4, 2, 5, 3};
    const uint32_t x = cd_fuse_import_input(m, 0);
    const cd_graph_shape s = *cd_fuse_import_shape(m, x);
    const int64_t b = cd_graph_node_int(m->n, "blocksize", 1), c = s.dim[1] / (b * b);
    const cd_graph_attr *mode = cd_graph_node_attr(m->n, "mode");
    const bool is_crd = mode && mode->kind == CD_GRAPH_ATTR_STR && !strcmp(mode->s, "CRD");
    const cd_graph_shape six = {6,
                                {s.dim[0], is_crd ? c : b, b, is_crd ? b : c, s.dim[2], s.dim[3]}};
    cd_fuse_import_output(
        m, 0,
        cd_fuse_reshape(m->f,
                        cd_fuse_transpose(m->f, cd_fuse_reshape(m->f, x, &six), is_crd ? crd : dcr),
                        cd_fuse_import_result_shape(m)));
}

static void space_to_depth(cd_fuse_importer *m) {
    static const int64_t perm[] = {0, 3, 5, 1, 2, 4};
    const uint32_t x = cd_fuse_import_input(m, 0);
    const cd_graph_shape s = *cd_fuse_import_shape(m, x);
    const int64_t b = cd_graph_node_int(m->n, "blocksize", 1);
    const cd_graph_shape six = {6, {s.dim[0], s.dim[1], s.dim[2] / b, b, s.dim[3] / b, b}};
    cd_fuse_import_output(
        m, 0,
        cd_fuse_reshape(m->f, cd_fuse_transpose(m->f, cd_fuse_reshape(m->f, x, &six), perm),
                        cd_fuse_import_result_shape(m)));
}

/* ---- resize ---- */

static const char *text(const cd_fuse_importer *m, const char *name, const char *absent) {
    const cd_graph_attr *a = cd_graph_node_attr(m->n, name);
    return a && a->kind == CD_GRAPH_ATTR_STR ? a->s : absent;
}

/* How positions of the result become those of the operand; -1: unknown. */
static int coordinates(const cd_fuse_importer *m) {
    static const char *const names[] = {"half_pixel", "asymmetric", "align_corners",
                                        "pytorch_half_pixel", "half_pixel_symmetric"};
    const bool old = !strcmp(m->n->op, "Upsample") || m->g->opset < 11;
    const char *s = text(m, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
    for (int i = 0; i < 5; i++)
        if (!strcmp(s, names[i])) return i;
    return -1;
}

static int rounding(const cd_fuse_importer *m) {
    static const char *const names[] = {"round_prefer_floor", "floor", "ceil", "round_prefer_ceil"};
    const char *s =
        text(m, "nearest_mode",
             !strcmp(m->n->op, "Upsample") || m->g->opset < 11 ? "floor" : "round_prefer_floor");
    for (int i = 0; i < 4; i++)
        if (!strcmp(s, names[i])) return i;
    return -1;
}

/* Scales as the file has them: positions are divided by these, and by the ratio of the extents only
 * where both are the same. *less: some are below 1. */
static void scales_of(const cd_fuse_importer *m, const cd_graph_shape *x, cd_fuse_attr *a,
                      bool *less) {
    const cd_graph_attr *s = cd_graph_node_attr(m->n, "scales");
    const cd_graph_shape *y = cd_fuse_import_result_shape(m);
    *less = false;
    for (uint32_t d = 0; d < x->rank; d++) {
        const float ratio = x->dim[d] ? (float)y->dim[d] / (float)x->dim[d] : 1;
        const double given =
            s && s->kind == CD_GRAPH_ATTR_FLOATS && s->n == x->rank ? s->floats[d] : (double)ratio;
        if ((float)given < ratio || (float)given > ratio) a->scale[d] = given;
        *less = *less || given < 1;
    }
}

/* mode: 0 nearest, 1 linear; groups: coordinates; axis: rounding. */
static void resize(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    const char *mode = text(m, "mode", "nearest");
    cd_fuse_attr a = {
        .mode = !strcmp(mode, "linear"), .groups = coordinates(m), .axis = rounding(m)};
    bool less;
    scales_of(m, cd_fuse_import_shape(m, x), &a, &less);
    if (a.groups < 0 || a.axis < 0 || (!a.mode && strcmp(mode, "nearest")))
        m->why = "this kind of resize has no compute definition";
    else if (a.mode && less && cd_graph_node_int(m->n, "antialias", 0))
        m->why = "resizing to less with antialias has no compute definition";
    else if (a.mode && cd_graph_node_int(m->n, "exclude_outside", 0))
        m->why = "resizing with exclude_outside has no compute definition";
    else
        cd_fuse_import_output(m, 0,
                              cd_fuse_add_node(m->f, CD_FUSE_OP_RESIZE, m->f->node[x].dtype,
                                               cd_fuse_import_result_shape(m), &x, 1, &a));
}

/* ---- reductions ---- */

static uint32_t axes_of(const cd_fuse_importer *m, const cd_graph_shape *s, int64_t *axis) {
    uint32_t n, count = 0;
    const int64_t *v = cd_fuse_import_ints(m, 1, "axes", &n);
    for (uint32_t i = 0; v && i < n && count < CD_GRAPH_MAX_RANK; i++)
        axis[count++] = cd_fuse_import_axis(s, v[i]);
    if (n || cd_graph_node_int(m->n, "noop_with_empty_axes", 0)) return count;
    for (uint32_t d = 0; d < s->rank; d++) axis[d] = d;
    return s->rank;
}

/* The mean of (x - mean)^2 subtracts for itself: TVM's variance, one task. */
static uint32_t own_difference(cd_fuse_importer *m, uint32_t x) {
    const cd_fuse_node sq = m->f->node[x];
    if (sq.op != CD_FUSE_OP_MUL || sq.in[0] != sq.in[1] ||
        m->f->node[sq.in[0]].op != CD_FUSE_OP_SUB)
        return x;
    const cd_fuse_node d = m->f->node[sq.in[0]];
    const uint32_t again = cd_fuse_binary(m->f, CD_FUSE_OP_SUB, d.in[0], d.in[1]);
    return cd_fuse_binary(m->f, CD_FUSE_OP_MUL, again, again);
}

static uint32_t reduced(cd_fuse_importer *m, cd_fuse_reduction how, uint32_t x) {
    int64_t axis[CD_GRAPH_MAX_RANK];
    const uint32_t n = axes_of(m, cd_fuse_import_shape(m, x), axis);
    return cd_fuse_reduce(m->f, how, x, axis, n, cd_graph_node_int(m->n, "keepdims", 1) != 0);
}

static bool axes_known(cd_fuse_importer *m) {
    if (cd_fuse_import_has(m, 1) && !cd_fuse_import_tensor(m, 1)->value &&
        !cd_graph_node_attr(m->n, "axes"))
        m->why = "the dimensions are not known";
    return !m->why;
}

static void reduce(cd_fuse_importer *m) {
    static const struct {
        const char *op;
        cd_fuse_reduction how;
    } kinds[] = {{"ReduceMean", CD_FUSE_REDUCE_MEAN},
                 {"ReduceMax", CD_FUSE_REDUCE_MAX},
                 {"ReduceMin", CD_FUSE_REDUCE_MIN},
                 {"ReduceProd", CD_FUSE_REDUCE_PROD}};
    cd_fuse_reduction how = CD_FUSE_REDUCE_SUM;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].op, m->n->op)) how = kinds[i].how;
    if (!axes_known(m)) return;
    uint32_t x = cd_fuse_import_input(m, 0);
    if (how == CD_FUSE_REDUCE_MEAN) x = own_difference(m, x);
    cd_fuse_import_output(m, 0, reduced(m, how, x));
}

/* Norms and logarithms of sums: what comes before the sum, and behind it. */
static void reduce_norm(cd_fuse_importer *m) {
    const char *op = m->n->op + strlen("Reduce");
    uint32_t x = cd_fuse_import_input(m, 0);
    if (!axes_known(m)) return;
    if (!strcmp(op, "L1")) x = cd_fuse_unary(m->f, CD_FUSE_OP_ABS, x, 0, 0);
    if (!strcmp(op, "L2") || !strcmp(op, "SumSquare"))
        x = cd_fuse_binary(m->f, CD_FUSE_OP_MUL, x, x);
    if (!strcmp(op, "LogSumExp")) x = cd_fuse_unary(m->f, CD_FUSE_OP_EXP, x, 0, 0);
    x = reduced(m, CD_FUSE_REDUCE_SUM, x);
    if (!strcmp(op, "L2")) x = cd_fuse_unary(m->f, CD_FUSE_OP_SQRT, x, 0, 0);
    if (!strncmp(op, "Log", 3)) x = cd_fuse_unary(m->f, CD_FUSE_OP_LOG, x, 0, 0);
    cd_fuse_import_output(m, 0, x);
}

static void arg(cd_fuse_importer *m) {
    const uint32_t x = cd_fuse_import_input(m, 0);
    const cd_fuse_attr a = {
        .axis = cd_fuse_import_axis(cd_fuse_import_shape(m, x), cd_graph_node_int(m->n, "axis", 0)),
        .keepdims = cd_graph_node_int(m->n, "keepdims", 1) != 0,
        .is_max = !strcmp(m->n->op, "ArgMax")};
    const uint32_t y =
        cd_fuse_add_node(m->f, CD_FUSE_OP_ARG, CD_I32, cd_fuse_import_result_shape(m), &x, 1, &a);
    if (cd_graph_node_int(m->n, "select_last_index", 0))
        m->why = "the last of equal elements has no compute definition";
    else cd_fuse_import_output(m, 0, cd_fuse_cast(m->f, y, CD_I64));
}

/* Filled with one number: a weight to the network. */
static void filled(cd_fuse_importer *m) {
    cd_fuse_import_output(m, 0, cd_fuse_leaf(m->f, m->n->out[0], true));
}

const cd_fuse_import_rule cd_fuse_import_rules_move[] = {
    {"Identity", same},
    {"Dropout", same},
    {"Reshape", view},
    {"Flatten", view},
    {"Squeeze", view},
    {"Unsqueeze", view},
    {"Transpose", transpose},
    {"Concat", concat},
    {"Slice", slice},
    {"Split", split},
    {"Gather", gather},
    {"GatherElements", gather_elements},
    {"Pad", pad},
    {"Expand", expand},
    {"Tile", tile},
    {"DepthToSpace", depth_to_space},
    {"SpaceToDepth", space_to_depth},
    {"Resize", resize},
    {"Upsample", resize},
    {"ReduceSum", reduce},
    {"ReduceMean", reduce},
    {"ReduceMax", reduce},
    {"ReduceMin", reduce},
    {"ReduceProd", reduce},
    {"ReduceL1", reduce_norm},
    {"ReduceL2", reduce_norm},
    {"ReduceSumSquare", reduce_norm},
    {"ReduceLogSum", reduce_norm},
    {"ReduceLogSumExp", reduce_norm},
    {"ArgMax", arg},
    {"ArgMin", arg},
    {"ConstantOfShape", filled},
    {NULL, NULL},
};
