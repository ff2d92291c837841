/* Windows that slide: padding, pooling, adaptive pooling, local response normalisation, as TOPI
 * declares them. */
#include <float.h>
#include <string.h>

#include "profiler/network/compute/compute_internal.h"

typedef struct bounds {
    cd_te_compute *c;
    bool any;
} bounds;

static void bound(bounds *b, const char *axis, const char *sign, int64_t v) {
    cd_compute_put(b->c, "%s%s %s %lld", b->any ? " && " : "if_then_else(", axis, sign,
                   (long long)v);
    b->any = true;
}

/* One condition for each bound that matters; without any bound the stage is a copy, which TOPI
 * writes too. */
uint32_t cd_compute_pad(cd_te_compute *c, uint32_t x, const char *name, bool python,
                        const int64_t *before, const int64_t *after, double value, cd_dtype t) {
    if (c->st) return 0;
    const cd_te_compute_stage *s = &c->stage[x];
    cd_graph_shape out = {s->rank, {0}};
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE], axis[CD_COMPUTE_INDEX_SIZE];
    bounds b = {c, false};
    for (uint32_t d = 0; d < out.rank; d++) out.dim[d] = s->dim[d] + before[d] + after[d];
    cd_compute_begin_axes(c, python ? "i" : "ax", &out);
    for (uint32_t d = 0; d < out.rank; d++) {
        const bool low = before[d] != 0, high = after[d] != 0;
        cd_compute_index_format(axis, "%s%u", python ? "i" : "ax", d);
        cd_compute_index_add(ix[d], axis, -before[d]);
        if (low || (python && high)) bound(&b, axis, ">=", before[d]);
        if (high || (python && low)) bound(&b, axis, "<", before[d] + s->dim[d]);
    }
    if (b.any) cd_compute_put(c, ", ");
    cd_compute_load(c, x, ix);
    if (b.any) {
        cd_compute_put(c, ", ");
        cd_compute_put_literal(c, value, t);
        cd_compute_put(c, ")");
    }
    return cd_compute_end(c, name, python ? "injective,pad" : "elemwise", NULL);
}

/* ---- pooling ---- */

/* x padded for the windows of n, a pooling: with the least number of the type for a maximum, else
 * with 0. x itself where nothing is to pad. */
static uint32_t compute_pad_window(cd_te_compute *c, const cd_fuse_node *n, uint32_t x,
                                   const int64_t *before, const int64_t *after) {
    const double least = n->dtype == CD_F32                 ? -(double)FLT_MAX
                         : cd_expr_dtype_is_float(n->dtype) ? -65504
                                                            : 0;
    bool any = false;
    for (uint32_t d = 0; d < n->shape.rank; d++) any = any || before[d] || after[d];
    return any ? cd_compute_pad(c, x, "pad_temp", false, before, after, n->a.is_max ? least : 0,
                                n->dtype)
               : x;
}

/* The last position of a window may hang over: pad for it. */
static uint32_t padded(cd_te_compute *c, const cd_fuse_node *n, uint32_t x) {
    int64_t before[CD_GRAPH_MAX_RANK] = {0}, after[CD_GRAPH_MAX_RANK] = {0};
    for (uint32_t d = 0; d < n->a.n; d++) {
        before[d + cd_compute_spatial(n)] = n->a.before[d];
        after[d + cd_compute_spatial(n)] = n->a.after[d] + (n->a.ceil ? n->a.stride[d] - 1 : 0);
    }
    return compute_pad_window(c, n, x, before, after);
}

/* Axes rv0 ... over the window of n, a pooling, and as ix the element that the open stage's own
 * position ax0 ... reads through the window: position*stride + rv*dilation in each spatial
 * dimension. */
static void compute_window(cd_te_compute *c, const cd_fuse_node *n, const cd_graph_shape *out,
                           char (*ix)[CD_COMPUTE_INDEX_SIZE]) {
    char axis[CD_COMPUTE_INDEX_SIZE], r[CD_COMPUTE_INDEX_SIZE], a[CD_COMPUTE_INDEX_SIZE],
        b[CD_COMPUTE_INDEX_SIZE];
    for (uint32_t d = 0; d < out->rank; d++) cd_compute_index_format(ix[d], "ax%u", d);
    for (uint32_t d = 0; d < n->a.n; d++) {
        const uint32_t at = d + cd_compute_spatial(n);
        cd_compute_index_format(axis, "ax%u", at);
        cd_compute_index_format(r, "rv%u", d);
        cd_compute_add_reduce_axis(c, r, n->a.kernel[d]);
        cd_compute_index_mul(a, axis, n->a.stride[d]);
        cd_compute_index_mul(b, r, n->a.dilation[d]);
        cd_compute_index_format(ix[at], "%.80s + %.80s", a, b);
    }
}

/* The reduction over a window. */
static uint32_t windowed(cd_te_compute *c, const cd_fuse_node *n, uint32_t x, const char *tag,
                         const char *how) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    cd_compute_begin_axes(c, "ax", &n->shape);
    compute_window(c, n, &n->shape, ix);
    cd_compute_load(c, x, ix);
    return cd_compute_end(c, "tensor", tag, how);
}

/* Text of the number of a window's elements along dimension d that count in an average: all within
 * the operand, or with include_pad within the padded operand. With a dilation the elements are
 * counted in steps of it. */
static void counted(const cd_fuse_node *n, uint32_t d, int64_t in,
                    char out[CD_COMPUTE_INDEX_SIZE]) {
    const uint32_t at = d + cd_compute_spatial(n);
    const int64_t dil = n->a.dilation[d], reach = (n->a.kernel[d] - 1) * dil;
    const int64_t most = n->a.include_pad ? in + n->a.after[d] - 1 : in - 1;
    char axis[CD_COMPUTE_INDEX_SIZE], start[CD_COMPUTE_INDEX_SIZE], end[CD_COMPUTE_INDEX_SIZE],
        s[CD_COMPUTE_INDEX_SIZE];
    cd_compute_index_format(axis, "ax%u", at);
    cd_compute_index_mul(start, axis, n->a.stride[d]);
    cd_compute_index_add(start, start, -n->a.before[d]);
    cd_compute_index_add(end, start, reach);
    cd_compute_index_format(s, strchr(start, ' ') ? "(%.100s)" : "%.100s", start);
    if (n->a.include_pad && dil == 1)
        cd_compute_index_format(out, "(min(%.50s, %lld) - %.40s + 1)", end, (long long)most, s);
    else if (n->a.include_pad)
        cd_compute_index_format(out, "(truncdiv(min(%.50s, %lld) - %.40s, %lld) + 1)", end,
                                (long long)most, s, (long long)dil);
    else if (dil == 1)
        cd_compute_index_format(out, "(min(%.40s, %lld) - (%.35s + max(0 - %.35s, 0)) + 1)", end,
                                (long long)most, start, s);
    else
        cd_compute_index_format(out,
                                "(truncdiv(min(%.30s, %lld) - (%.30s + max(truncdiv(%lld - %.30s, "
                                "%lld), 0)*%lld), %lld) + 1)",
                                end, (long long)most, start, (long long)(dil - 1), s,
                                (long long)dil, (long long)dil, (long long)dil);
}

static uint32_t divided(cd_te_compute *c, const cd_fuse_node *n, uint32_t sum) {
    char type[16], one[CD_COMPUTE_INDEX_SIZE];
    const cd_graph_shape *in = &c->f->node[n->in[0]].shape;
    cd_compute_begin_axes(c, "ax", &n->shape);
    cd_compute_load_at(c, sum, "ax", &n->shape);
    cd_compute_put(c, "/%s(%s", cd_expr_dtype_format(n->dtype, type, sizeof type),
                   n->a.include_pad ? "" : "max(");
    for (uint32_t d = 0; d < n->a.n; d++) {
        counted(n, d, in->dim[d + cd_compute_spatial(n)], one);
        cd_compute_put(c, "%s%s", d ? "*" : "", one);
    }
    cd_compute_put(c, n->a.include_pad ? ")" : ", 1))");
    return cd_compute_end(c, "tensor", "elemwise", NULL);
}

uint32_t cd_te_compute_pool(cd_te_compute *c, const cd_fuse_node *n) {
    const uint32_t x = padded(c, n, cd_compute_operand(c, n, 0));
    if (n->a.is_max) return windowed(c, n, x, "pool_max", "\"max\"");
    return divided(c, n, windowed(c, n, x, "pool_sum", "\"sum\""));
}

/* ---- adaptive: output d reads ax*in/out .. (ax + 1)*in/out, rounded outwards; here out is 1
 * ---- */

static void adaptive_extent(char out[CD_COMPUTE_INDEX_SIZE], const char *axis, int64_t in) {
    char start[CD_COMPUTE_INDEX_SIZE], next[CD_COMPUTE_INDEX_SIZE], end[CD_COMPUTE_INDEX_SIZE];
    cd_compute_index_mul(start, axis, in);
    cd_compute_index_format(next, "%s + 1", axis);
    cd_compute_index_mul(end, next, in);
    cd_compute_index_format(out, "select(true, %.50s, %.50s + 1) - %.30s", end, end, start);
}

/* Sum or maximum over the window of an adaptive pool; its extent is an expression of the output
 * axis, hence text. */
static uint32_t adaptive_sum(cd_te_compute *c, const cd_fuse_node *n, uint32_t x,
                             const cd_graph_shape *in) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE], axis[CD_COMPUTE_INDEX_SIZE],
        r[CD_COMPUTE_INDEX_SIZE], extent[CD_COMPUTE_INDEX_SIZE], start[CD_COMPUTE_INDEX_SIZE];
    cd_compute_begin_axes(c, "ax", &n->shape);
    for (uint32_t d = 0; d < n->shape.rank; d++) cd_compute_index_format(ix[d], "ax%u", d);
    for (uint32_t d = 0; d < n->a.n; d++) {
        const uint32_t at = d + cd_compute_spatial(n);
        cd_compute_index_format(axis, "ax%u", at);
        cd_compute_index_format(r, "rv%u", d);
        adaptive_extent(extent, axis, in->dim[at]);
        cd_compute_add_reduce_axis_text(c, r, extent);
        cd_compute_index_mul(start, axis, in->dim[at]);
        cd_compute_index_format(ix[at], "%.80s + %s", start, r);
    }
    cd_compute_load(c, x, ix);
    return cd_compute_end(c, "tensor", n->a.is_max ? "adaptive_pool_max" : "adaptive_pool_sum",
                          n->a.is_max ? "\"max\"" : "\"sum\"");
}

/* An average divides the sum by the window's extent, which is written as one factor a dimension. */
uint32_t cd_te_compute_adaptive(cd_te_compute *c, const cd_fuse_node *n) {
    char type[16], axis[CD_COMPUTE_INDEX_SIZE], extent[CD_COMPUTE_INDEX_SIZE];
    const cd_graph_shape *in = &c->f->node[n->in[0]].shape;
    const uint32_t sum = adaptive_sum(c, n, cd_compute_operand(c, n, 0), in);
    if (n->a.is_max) return sum;
    cd_compute_begin_axes(c, "ax", &n->shape);
    cd_compute_load_at(c, sum, "ax", &n->shape);
    cd_compute_put(c, n->a.n > 1 ? "/(" : "/");
    for (uint32_t d = 0; d < n->a.n; d++) {
        cd_compute_index_format(axis, "ax%u", d + cd_compute_spatial(n));
        adaptive_extent(extent, axis, in->dim[d + cd_compute_spatial(n)]);
        cd_compute_put(c, "%s%s(%s)", d ? "*" : "",
                       cd_expr_dtype_format(n->dtype, type, sizeof type), extent);
    }
    if (n->a.n > 1) cd_compute_put(c, ")");
    return cd_compute_end(c, "tensor", "elemwise", NULL);
}

/* ---- x / (bias + alpha/size * sum of squares of near channels)^beta ---- */

static uint32_t near_squares(cd_te_compute *c, const cd_fuse_node *n, uint32_t x, int64_t size) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    cd_compute_begin_axes(c, "ax", &n->shape);
    cd_compute_add_reduce_axis(c, "rxs", size);
    for (uint32_t d = 0; d < n->shape.rank; d++)
        cd_compute_index_format(ix[d], d == 1 ? "ax%u + rxs" : "ax%u", d);
    cd_compute_load(c, x, ix);
    cd_compute_put(c, "*");
    cd_compute_load(c, x, ix);
    return cd_compute_end(c, "tensor", NULL, "\"sum\"");
}

/* Four stages: padded channels, sum of squares, power, division. */
uint32_t cd_te_compute_lrn(cd_te_compute *c, const cd_fuse_node *n) {
    const int64_t size = n->a.v[0];
    const int64_t before[CD_GRAPH_MAX_RANK] = {0, (size - 1) / 2};
    const int64_t after[CD_GRAPH_MAX_RANK] = {0, size - 1 - (size - 1) / 2};
    const uint32_t x = cd_compute_operand(c, n, 0);
    const uint32_t sum = near_squares(
        c, n, cd_compute_pad(c, x, "pad_data", false, before, after, 0, n->dtype), size);
    cd_compute_begin_axes(c, "ax", &n->shape);
    cd_compute_put(c, "pow(");
    cd_compute_put_literal(c, n->a.s, n->dtype);
    cd_compute_put(c, " + ");
    cd_compute_put_literal(c, n->a.p, n->dtype);
    cd_compute_put(c, "*");
    cd_compute_load_at(c, sum, "ax", &n->shape);
    cd_compute_put(c, "/%lld, ", (long long)size);
    cd_compute_put_literal(c, n->a.q, n->dtype);
    cd_compute_put(c, ")");
    const uint32_t power = cd_compute_end(c, "tensor", "elemwise", NULL);
    cd_compute_begin_axes(c, "ax", &n->shape);
    cd_compute_load_at(c, x, "ax", &n->shape);
    cd_compute_put(c, "/");
    cd_compute_load_at(c, power, "ax", &n->shape);
    return cd_compute_end(c, "T_divide", "broadcast", NULL);
}

/* Gradients of pooling: each element of x collects from the windows that it lies under.
 *
 *   dim d of x, element h: windows y with y*stride <= h + before <= y*stride + (kernel -
 *   1)*dilation
 *   y = (h + before) // stride - w, w = 0 .. reach // stride; it counts where it is one, and where
 *   h is on its raster
 *
 * Of a maximum only the window's first largest element gets the gradient: TVM's pool_grad, with
 * bounds on both sides. */

static int64_t reach(const cd_fuse_node *n, uint32_t d) {
    return (n->a.kernel[d] - 1) * n->a.dilation[d];
}

/* Element number of a position, row by row, over the spatial dimensions: "(ix*W + iy)" of the
 * padded operand. */
static void number(const cd_fuse_node *n, const int64_t *padded_grad,
                   char (*at)[CD_COMPUTE_INDEX_SIZE], char out[CD_COMPUTE_INDEX_SIZE]) {
    char sum[CD_COMPUTE_INDEX_SIZE];
    cd_compute_index_format(out, "(%.90s)", at[0]);
    for (uint32_t d = 1; d < n->a.n; d++) {
        cd_compute_index_format(sum, "%.110s", out);
        cd_compute_index_format(out, "(%.110s*%lld + (%.50s))", sum, (long long)padded_grad[d],
                                at[d]);
    }
}

/* The operand as long as its windows reach, and its spatial extents. */
static uint32_t padded_grad(cd_te_compute *c, const cd_fuse_node *n, uint32_t x, int64_t *extent) {
    int64_t before[CD_GRAPH_MAX_RANK] = {0}, after[CD_GRAPH_MAX_RANK] = {0};
    const cd_graph_shape *y = &c->f->node[n->in[1]].shape;
    for (uint32_t d = 0; d < n->a.n; d++) {
        const uint32_t at = d + cd_compute_spatial(n);
        const int64_t end = (y->dim[at] - 1) * n->a.stride[d] + reach(n, d) + 1;
        before[at] = n->a.before[d];
        after[at] = end - before[at] - n->shape.dim[at];
        if (after[at] < 0) after[at] = 0; /* elements that no window reaches */
        extent[d] = n->shape.dim[at] + before[at] + after[at];
    }
    return compute_pad_window(c, n, x, before, after);
}

/* The pair (element number, value) of each window's first largest element. */
static uint32_t largest(cd_te_compute *c, const cd_fuse_node *n, uint32_t x,
                        const int64_t *extent) {
    static const char *const how =
        "{\"lhs\": [\"x0\", \"x1\"], \"rhs\": [\"y0\", \"y1\"], \"result\": [\"select(x1 > y1 || "
        "x1 == y1 && x0 < y0, x0, y0)\", "
        "\"select(x1 > y1, x1, y1)\"], \"identity\": [\"2147483647:int32\", "
        "\"-3.402823466e+38:float32\"]}";
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE], num[CD_COMPUTE_INDEX_SIZE];
    const cd_graph_shape *y = &c->f->node[n->in[1]].shape;
    cd_compute_begin_axes(c, "ax", y);
    compute_window(c, n, y, ix);
    number(n, extent, ix + cd_compute_spatial(n), num);
    cd_compute_put(c, "[\"%s\", \"", num);
    cd_compute_load(c, x, ix);
    cd_compute_put(c, "\"]");
    return cd_compute_end(c, "maxpool_grad_argmax", NULL, how);
}

/* Elements of window `y` along dimension d that count in an average. */
static void counted_grad(const cd_fuse_node *n, uint32_t d, const char *y,
                         char out[CD_COMPUTE_INDEX_SIZE]) {
    const int64_t x = n->shape.dim[d + cd_compute_spatial(n)], s = n->a.stride[d];
    const int64_t k = n->a.kernel[d], before = n->a.before[d], dil = n->a.dilation[d];
    const int64_t most = n->a.include_pad ? x + before + n->a.after[d] : x + before;
    /* positions y*s + r*dil with lo <= . < most, from r0 = the first, to r1 = behind the last */
    const int64_t lo = n->a.include_pad ? 0 : before;
    if (lo == 0)
        cd_compute_index_format(out, "min(%lld, truncdiv(%lld - %.40s*%lld, %lld))", (long long)k,
                                (long long)(most + dil - 1), y, (long long)s, (long long)dil);
    else
        cd_compute_index_format(out,
                                "(min(%lld, truncdiv(%lld - %.28s*%lld, %lld)) - max(0, "
                                "truncdiv(%lld - %.28s*%lld, %lld)))",
                                (long long)k, (long long)(most + dil - 1), y, (long long)s,
                                (long long)dil, (long long)(lo + dil - 1), y, (long long)s,
                                (long long)dil);
}

/* Does the average of every window have the same number of elements? */
static bool all_full(const cd_te_compute *c, const cd_fuse_node *n) {
    const cd_graph_shape *y = &c->f->node[n->in[1]].shape;
    for (uint32_t d = 0; d < n->a.n; d++) {
        const uint32_t at = d + cd_compute_spatial(n);
        const int64_t end = (y->dim[at] - 1) * n->a.stride[d] + reach(n, d) + 1,
                      x = n->shape.dim[at];
        if (n->a.include_pad ? end > x + n->a.before[d] + n->a.after[d]
                             : (n->a.before[d] || end > x))
            return false;
    }
    return true;
}

/* The divisor of an average: a literal where all windows are full, else the count of each window,
 * at least 1. */
static void put_share(cd_te_compute *c, const cd_fuse_node *n, char (*y)[CD_COMPUTE_INDEX_SIZE]) {
    char one[CD_COMPUTE_INDEX_SIZE], type[16];
    double full = 1;
    for (uint32_t d = 0; d < n->a.n; d++) full *= (double)n->a.kernel[d];
    cd_compute_put(c, "/");
    if (all_full(c, n)) {
        cd_compute_put_literal(c, full, n->dtype);
        return;
    }
    cd_compute_put(c, "%s(", cd_expr_dtype_format(n->dtype, type, sizeof type));
    for (uint32_t d = 0; d < n->a.n; d++) {
        counted_grad(n, d, y[d], one);
        cd_compute_put(c, "%smax(1, %s)", d ? "*" : "", one);
    }
    cd_compute_put(c, ")");
}

/* Where y is a window, and h one of its elements. */
static void put_bounds(cd_te_compute *c, const cd_fuse_node *n, char (*y)[CD_COMPUTE_INDEX_SIZE],
                       char (*h)[CD_COMPUTE_INDEX_SIZE]) {
    const cd_graph_shape *s = &c->f->node[n->in[1]].shape;
    for (uint32_t d = 0; d < n->a.n; d++) {
        cd_compute_put(c, "%s%s >= 0 && %s < %lld", d ? " && " : "", y[d], y[d],
                       (long long)s->dim[d + cd_compute_spatial(n)]);
        cd_compute_put(c, " && (%s) - (%s)*%lld <= %lld", h[d], y[d], (long long)n->a.stride[d],
                       (long long)reach(n, d));
        if (n->a.dilation[d] > 1 && n->a.kernel[d] > 1)
            cd_compute_put(c, " && ((%s) - (%s)*%lld) %% %lld == 0", h[d], y[d],
                           (long long)n->a.stride[d], (long long)n->a.dilation[d]);
    }
}

/* A sum over the windows that may hold element h, guarded by the condition that the window exists
 * and reaches h; for a maximum also that h is the window's first largest element (stage
 * `largest`). */
uint32_t cd_te_compute_pool_grad(cd_te_compute *c, const cd_fuse_node *n) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE], y[3][CD_COMPUTE_INDEX_SIZE],
        h[3][CD_COMPUTE_INDEX_SIZE], r[CD_COMPUTE_INDEX_SIZE], num[CD_COMPUTE_INDEX_SIZE];
    int64_t extent[3] = {0};
    const uint32_t x = n->a.is_max ? cd_compute_operand(c, n, 0) : 0,
                   dy = cd_compute_operand(c, n, 1);
    const uint32_t pair = n->a.is_max ? largest(c, n, padded_grad(c, n, x, extent), extent) : 0;
    cd_compute_begin_axes(c, "ax", &n->shape);
    for (uint32_t d = 0; d < n->shape.rank; d++) cd_compute_index_format(ix[d], "ax%u", d);
    for (uint32_t d = 0; d < n->a.n; d++) {
        const uint32_t at = d + cd_compute_spatial(n);
        cd_compute_index_format(r, "w%u", d);
        cd_compute_add_reduce_axis(c, r, reach(n, d) / n->a.stride[d] + 1);
        cd_compute_index_add(h[d], ix[at], n->a.before[d]);
        if (n->a.stride[d] == 1) cd_compute_index_format(y[d], "%.60s - %s", h[d], r);
        else
            cd_compute_index_format(y[d],
                                    n->a.before[d] ? "(%.60s) // %lld - %s" : "%.60s // %lld - %s",
                                    h[d], (long long)n->a.stride[d], r);
        cd_compute_index_format(ix[at], "%s", y[d]);
    }
    cd_compute_put(c, "if_then_else(");
    put_bounds(c, n, y, h);
    if (n->a.is_max) {
        number(n, extent, h, num);
        cd_compute_put(c, " && ");
        cd_compute_load_first(c, pair, ix);
        cd_compute_put(c, " == %s", num);
    }
    cd_compute_put(c, ", ");
    cd_compute_load(c, dy, ix);
    for (uint32_t d = 0; d < n->a.n; d++) cd_compute_index_format(h[d], "(%.100s)", y[d]);
    if (!n->a.is_max) put_share(c, n, h);
    cd_compute_put(c, ", ");
    cd_compute_put_literal(c, 0, n->dtype);
    cd_compute_put(c, ")");
    return cd_compute_end(c, "T_pool_grad", n->a.is_max ? "pool_grad_max" : "pool_grad_avg",
                          "\"sum\"");
}
