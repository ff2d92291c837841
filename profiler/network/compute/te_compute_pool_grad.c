/* Gradients of pooling: each element of x collects from the windows that it lies under.
 *
 *   dim d of x, element h: windows y with y*stride <= h + before <= y*stride + (kernel -
 *   1)*dilation
 *   y = (h + before) // stride - w, w = 0 .. reach // stride; it counts where it is one, and where
 *   h is on its raster
 *
 * Of a maximum only the window's first largest element gets the gradient: TVM's pool_grad, with
 * bounds on both sides. */
#include "profiler/network/compute/compute_internal.h"

static int64_t reach(const cd_fuse_node *n, uint32_t d) {
    return (n->a.kernel[d] - 1) * n->a.dilation[d];
}

/* Element number of a position, row by row, over the spatial dimensions: "(ix*W + iy)" of the
 * padded operand. */
static void number(const cd_fuse_node *n, const int64_t *padded, char (*at)[CD_COMPUTE_INDEX_SIZE],
                   char out[CD_COMPUTE_INDEX_SIZE]) {
    char sum[CD_COMPUTE_INDEX_SIZE];
    cd_compute_index_format(out, "(%.90s)", at[0]);
    for (uint32_t d = 1; d < n->a.n; d++) {
        cd_compute_index_format(sum, "%.110s", out);
        cd_compute_index_format(out, "(%.110s*%lld + (%.50s))", sum, (long long)padded[d], at[d]);
    }
}

/* The operand as long as its windows reach, and its spatial extents. */
static uint32_t padded(cd_te_compute *c, const cd_fuse_node *n, uint32_t x, int64_t *extent) {
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
    return cd_compute_pad_window(c, n, x, before, after);
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
    cd_compute_window(c, n, y, ix);
    number(n, extent, ix + cd_compute_spatial(n), num);
    cd_compute_put(c, "[\"%s\", \"", num);
    cd_compute_load(c, x, ix);
    cd_compute_put(c, "\"]");
    return cd_compute_end(c, "maxpool_grad_argmax", NULL, how);
}

/* Elements of window `y` along dimension d that count in an average. */
static void counted(const cd_fuse_node *n, uint32_t d, const char *y,
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
        counted(n, d, y[d], one);
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
    const uint32_t pair = n->a.is_max ? largest(c, n, padded(c, n, x, extent), extent) : 0;
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
