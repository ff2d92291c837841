/* Convolutions and matrix products, in both layouts: channels behind the batch (nchw) or last
 * (nhwc). Order and names of axes differ between the layouts exactly as TOPI's functions do. */

#include "profiler/network/compute/compute_internal.h"

typedef struct conv {
    const cd_fuse_node *n;
    const cd_fuse_attr *a;
    const cd_graph_shape *x, *w, *out;
    uint32_t dims;
    bool last;
} conv;

static conv conv_of(const cd_te_compute *c, const cd_fuse_node *n) {
    const cd_fuse_node *x = &c->f->node[n->in[0]], *w = &c->f->node[n->in[1]];
    return (conv){.n = n,
                  .a = &n->a,
                  .x = &x->shape,
                  .w = &w->shape,
                  .out = &n->shape,
                  .dims = n->a.n,
                  .last = n->a.last};
}

static int64_t channels(const conv *v) { return v->x->dim[v->last ? v->dims + 1 : 1]; }
static int64_t filters(const conv *v) { return v->out->dim[v->last ? v->dims + 1 : 1]; }

/* The padded operand; spatial dimensions stand behind the batch (last) or the channels. */
static uint32_t padded(cd_te_compute *c, const conv *v, uint32_t x, const char *name) {
    int64_t before[CD_GRAPH_MAX_RANK] = {0}, after[CD_GRAPH_MAX_RANK] = {0};
    for (uint32_t d = 0; d < v->dims; d++) {
        before[d + (v->last ? 1 : 2)] = v->a->before[d];
        after[d + (v->last ? 1 : 2)] = v->a->after[d];
    }
    return cd_compute_pad(c, x, name, true, before, after, v->a->dot4 ? v->a->p : 0, v->n->dtype);
}

/* x*y, or of four pairs of 8 bits each, unsigned times signed: their sum. */
static void multiply(cd_te_compute *c, bool dot4, uint32_t x, char (*ix)[CD_COMPUTE_INDEX_SIZE],
                     uint32_t y, char (*iy)[CD_COMPUTE_INDEX_SIZE]) {
    if (dot4) cd_compute_put(c, "dot4:int32(");
    cd_compute_load(c, x, ix);
    cd_compute_put(c, dot4 ? ", " : "*");
    cd_compute_load(c, y, iy);
    if (dot4) cd_compute_put(c, ")");
}

/* y*stride + r*dilation */
static void slide(char out[CD_COMPUTE_INDEX_SIZE], const char *y, int64_t stride, const char *r,
                  int64_t dilation) {
    char a[CD_COMPUTE_INDEX_SIZE], b[CD_COMPUTE_INDEX_SIZE];
    cd_compute_index_mul(a, y, stride);
    cd_compute_index_mul(b, r, dilation);
    cd_compute_index_format(out, "%.80s + %.80s", a, b);
}

/* ff // (filters of a group) * (channels of a group) + rc */
static void channel_index(const conv *v, char out[CD_COMPUTE_INDEX_SIZE]) {
    const int64_t per = filters(v) / v->a->groups, in = channels(v) / v->a->groups;
    char ff[CD_COMPUTE_INDEX_SIZE], t[CD_COMPUTE_INDEX_SIZE];
    if (v->a->groups == 1) {
        cd_compute_index_format(out, "rc");
        return;
    }
    if (per == 1) cd_compute_index_format(ff, "ff");
    else cd_compute_index_format(ff, "ff // %lld", (long long)per);
    cd_compute_index_format(t, in == 1 ? "%s" : "%s*%lld", ff, (long long)in);
    cd_compute_index_format(out, "%s + rc", t);
}

/* conv1d, 2d, 3d, with or without groups. In the layout with channels last the filter axis and the
 * channel reduction come last too. Only TOPI's conv2d_nhwc without groups lets its weight be
 * packed. */
static uint32_t plain_conv(cd_te_compute *c, const conv *v, uint32_t x, uint32_t w) {
    static const char *const ys[] = {"yy", "xx", "zz"}, *const rs[] = {"ry", "rx", "rz"};
    static const char *const orders[2][3] = {{"ncw", "nchw", "ncdhw"}, {"nwc", "nhwc", "ndhwc"}};
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE], iw[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE],
        name[CD_COMPUTE_INDEX_SIZE];
    const uint32_t n = v->dims, at = v->last ? 1 : 2, wat = v->last ? 0 : 2;
    const uint32_t pad = padded(c, v, x, "pad_temp");
    cd_compute_begin(c);
    cd_compute_add_axis(c, "nn", v->out->dim[0]);
    if (!v->last) cd_compute_add_axis(c, "ff", filters(v));
    for (uint32_t d = 0; d < n; d++) cd_compute_add_axis(c, ys[d], v->out->dim[d + at]);
    if (v->last) cd_compute_add_axis(c, "ff", filters(v));
    if (!v->last) cd_compute_add_reduce_axis(c, "rc", channels(v) / v->a->groups);
    for (uint32_t d = 0; d < n; d++) cd_compute_add_reduce_axis(c, rs[d], v->w->dim[d + wat]);
    if (v->last) cd_compute_add_reduce_axis(c, "rc", channels(v) / v->a->groups);
    cd_compute_index_format(ix[0], "nn");
    channel_index(v, ix[v->last ? n + 1 : 1]);
    for (uint32_t d = 0; d < n; d++) {
        slide(ix[d + at], ys[d], v->a->stride[d], rs[d], v->a->dilation[d]);
        cd_compute_index_format(iw[d + wat], "%s", rs[d]);
    }
    cd_compute_index_format(iw[v->last ? n + 1 : 0], "ff");
    cd_compute_index_format(iw[v->last ? n : 1], "rc");
    multiply(c, v->a->dot4, pad, ix, w, iw);
    if (v->last && n == 2 && v->a->groups == 1) cd_compute_mark_layout_free(c, w);
    cd_compute_index_format(name, "%sconv%ud_%s", v->a->groups > 1 ? "group_" : "", n,
                            orders[v->last][n - 1]);
    return cd_compute_end(c, name, name, "\"sum\"");
}

/* One filter a channel: TOPI has a function of its own, with other axis names, and only for two
 * dimensions. */
static uint32_t depthwise(cd_te_compute *c, const conv *v, uint32_t x, uint32_t w) {
    char ix[4][CD_COMPUTE_INDEX_SIZE], iw[4][CD_COMPUTE_INDEX_SIZE];
    const uint32_t at = v->last ? 1 : 2, wat = v->last ? 0 : 2;
    const uint32_t pad = padded(c, v, x, "PaddedInput");
    cd_compute_begin(c);
    cd_compute_add_axis(c, "b", v->out->dim[0]);
    if (!v->last) cd_compute_add_axis(c, "c", filters(v));
    cd_compute_add_axis(c, "i", v->out->dim[at]);
    cd_compute_add_axis(c, "j", v->out->dim[at + 1]);
    if (v->last) cd_compute_add_axis(c, "c", filters(v));
    cd_compute_add_reduce_axis(c, "di", v->w->dim[wat]);
    cd_compute_add_reduce_axis(c, "dj", v->w->dim[wat + 1]);
    cd_compute_index_format(ix[0], "b");
    cd_compute_index_format(ix[v->last ? 3 : 1], "c");
    slide(ix[at], "i", v->a->stride[0], "di", v->a->dilation[0]);
    slide(ix[at + 1], "j", v->a->stride[1], "dj", v->a->dilation[1]);
    cd_compute_index_format(iw[v->last ? 2 : 0], "c");
    cd_compute_index_format(iw[v->last ? 3 : 1], "0");
    cd_compute_index_format(iw[wat], "di");
    cd_compute_index_format(iw[wat + 1], "dj");
    cd_compute_load(c, pad, ix);
    cd_compute_put(c, "*");
    cd_compute_load(c, w, iw);
    return cd_compute_end(c, "DepthwiseConv2d",
                          v->last ? "depthwise_conv2d_nhwc" : "depthwise_conv2d_nchw", "\"sum\"");
}

uint32_t cd_te_compute_conv(cd_te_compute *c, const cd_fuse_node *n) {
    const conv v = conv_of(c, n);
    const uint32_t x = cd_compute_operand(c, n, 0), w = cd_compute_operand(c, n, 1);
    const bool dw =
        v.dims == 2 && v.a->groups > 1 && channels(&v) == v.a->groups && filters(&v) == v.a->groups;
    return dw ? depthwise(c, &v, x, w) : plain_conv(c, &v, x, w);
}

/* ---- transposed ---- */

/* A stage with stride - 1 zeros between elements; x itself where no stride is above 1. */
static uint32_t dilate(cd_te_compute *c, const conv *v, uint32_t x) {
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    cd_graph_shape s = *v->x;
    bool any = false;
    cd_compute_begin(c);
    for (uint32_t d = 0; d < v->dims; d++) {
        s.dim[d + 2] = s.dim[d + 2] ? (s.dim[d + 2] - 1) * v->a->stride[d] + 1 : 0;
        any = any || v->a->stride[d] != 1;
    }
    if (!any) return x;
    cd_compute_add_axes(c, "i", &s);
    cd_compute_put(c, "if_then_else(");
    any = false;
    for (uint32_t d = 0; d < s.rank; d++) {
        const int64_t stride = d < 2 ? 1 : v->a->stride[d - 2];
        cd_compute_index_format(ix[d], stride == 1 ? "i%u" : "i%u // %lld", d, (long long)stride);
        if (stride != 1)
            cd_compute_put(c, "%si%u %% %lld == 0", any ? " && " : "", d, (long long)stride);
        any = any || stride != 1;
    }
    cd_compute_put(c, ", ");
    cd_compute_load(c, x, ix);
    cd_compute_put(c, ", ");
    cd_compute_put_literal(c, 0, v->n->dtype);
    cd_compute_put(c, ")");
    return cd_compute_end(c, "data_dilate", "injective,dilate", NULL);
}

/* The weight [I,O,h,w] as [O,I,h,w], turned by 180 degrees: the transposed convolution is then a
 * plain one. */
static uint32_t turned(cd_te_compute *c, const conv *v, uint32_t w) {
    static const char *const names[3][5] = {
        {"o", "i", "w"}, {"o", "i", "h", "w"}, {"o", "i", "d", "h", "w"}};
    char iw[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE];
    cd_compute_begin(c);
    cd_compute_add_axis(c, "o", v->w->dim[1]);
    cd_compute_add_axis(c, "i", v->w->dim[0]);
    cd_compute_index_format(iw[0], "i");
    cd_compute_index_format(iw[1], "o");
    for (uint32_t d = 0; d < v->dims; d++) {
        cd_compute_add_axis(c, names[v->dims - 1][d + 2], v->w->dim[d + 2]);
        cd_compute_index_format(iw[d + 2], "%lld - %s", (long long)(v->w->dim[d + 2] - 1),
                                names[v->dims - 1][d + 2]);
    }
    cd_compute_load(c, w, iw);
    return cd_compute_end(c, "kernel_transform", NULL, NULL);
}

/* The dilated operand, padded so that a plain convolution over it gives the wanted extent, output
 * padding included. */
static uint32_t spread(cd_te_compute *c, const conv *v, uint32_t x) {
    int64_t before[CD_GRAPH_MAX_RANK] = {0}, after[CD_GRAPH_MAX_RANK] = {0};
    for (uint32_t d = 0; d < v->dims; d++) {
        const int64_t reach = (v->w->dim[d + 2] - 1) * v->a->dilation[d];
        const int64_t wide = v->x->dim[d + 2] ? (v->x->dim[d + 2] - 1) * v->a->stride[d] + 1 : 0;
        before[d + 2] = reach - v->a->before[d];
        after[d + 2] = v->out->dim[d + 2] + reach - before[d + 2] - wide; /* output padding too */
    }
    return cd_compute_pad(c, dilate(c, v, x), "data_pad", true, before, after, 0, v->n->dtype);
}

/* Channel of the operand, and of the weight's [O/groups, I]: those of c's group. */
static void transposed_channels(const conv *v, char in[CD_COMPUTE_INDEX_SIZE],
                                char out[CD_COMPUTE_INDEX_SIZE]) {
    const long long per = (long long)v->w->dim[1], from = (long long)(v->x->dim[1] / v->a->groups);
    cd_compute_index_format(in, "dc");
    cd_compute_index_format(out, "c");
    if (v->a->groups == 1) return;
    if (per == 1) cd_compute_index_format(out, "0");
    else cd_compute_index_format(out, "c %% %lld", per);
    if (per == 1 && from == 1) cd_compute_index_format(in, "c + dc");
    else if (per == 1) cd_compute_index_format(in, "c*%lld + dc", from);
    else if (from == 1) cd_compute_index_format(in, "c // %lld + dc", per);
    else cd_compute_index_format(in, "c // %lld*%lld + dc", per, from);
}

/* Dilate, pad, turn the weight, then a plain convolution of stride 1: TOPI's declaration. */
uint32_t cd_te_compute_conv_transpose(cd_te_compute *c, const cd_fuse_node *n) {
    static const char *const names[3][3] = {{"w"}, {"h", "w"}, {"d", "h", "w"}};
    static const char *const tags[3] = {"conv1d_transpose_ncw", "conv2d_transpose_nchw",
                                        "conv3d_transpose_ncdhw"};
    char ix[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE], iw[CD_GRAPH_MAX_RANK][CD_COMPUTE_INDEX_SIZE],
        r[CD_COMPUTE_INDEX_SIZE];
    const conv v = conv_of(c, n);
    const uint32_t x = cd_compute_operand(c, n, 0), w = cd_compute_operand(c, n, 1);
    const uint32_t pad = spread(c, &v, x), kernel = turned(c, &v, w);
    cd_compute_begin(c);
    cd_compute_add_axis(c, "b", n->shape.dim[0]);
    cd_compute_add_axis(c, "c", n->shape.dim[1]);
    cd_compute_add_reduce_axis(c, "dc", v.x->dim[1] / v.a->groups);
    cd_compute_index_format(ix[0], "b");
    transposed_channels(&v, ix[1], iw[0]);
    cd_compute_index_format(iw[1], "%s", ix[1]);
    for (uint32_t d = 0; d < v.dims; d++) {
        const char *at = names[v.dims - 1][d];
        cd_compute_add_axis(c, at, n->shape.dim[d + 2]);
        cd_compute_index_format(r, "d%s", at);
        cd_compute_add_reduce_axis(c, r, v.w->dim[d + 2]);
        slide(ix[d + 2], at, 1, r, v.a->dilation[d]);
        cd_compute_index_format(iw[d + 2], "%s", r);
    }
    cd_compute_load(c, pad, ix);
    cd_compute_put(c, "*");
    cd_compute_load(c, kernel, iw);
    return cd_compute_end(c, "compute", tags[v.dims - 1], "\"sum\"");
}

/* ---- matrices ---- */

/* x*y over k: x[b,i,k] * y[b,j,k], where a batch of 1 broadcasts; without `batch` both are
 * matrices. Operands may be read transposed in place (training needs this): TOPI's matmul and
 * batch_matmul with transpose_a, transpose_b. */
static uint32_t product(cd_te_compute *c, const cd_fuse_node *n, bool batch) {
    char ix[3][CD_COMPUTE_INDEX_SIZE] = {"b", "i", "k"};
    char iy[3][CD_COMPUTE_INDEX_SIZE] = {"b", "j", "k"};
    char name[CD_COMPUTE_INDEX_SIZE];
    const uint32_t x = cd_compute_operand(c, n, 0), y = cd_compute_operand(c, n, 1);
    const bool tx = n->a.mode & CD_FUSE_TRANSPOSED_X, ty = n->a.mode & CD_FUSE_TRANSPOSED_Y;
    const cd_graph_shape *a = &c->f->node[n->in[0]].shape, *b = &c->f->node[n->in[1]].shape;
    if (tx) cd_compute_index_format(ix[1], "k"), cd_compute_index_format(ix[2], "i");
    if (ty) cd_compute_index_format(iy[1], "k"), cd_compute_index_format(iy[2], "j");
    if (batch && a->dim[0] == 1) cd_compute_index_format(ix[0], "0");
    if (batch && b->dim[0] == 1) cd_compute_index_format(iy[0], "0");
    cd_compute_index_format(name, "T_%smatmul_%c%c", batch ? "batch_" : "", tx ? 'T' : 'N',
                            ty ? 'N' : 'T');
    cd_compute_begin(c);
    if (batch) cd_compute_add_axis(c, "b", n->shape.dim[0]);
    cd_compute_add_axis(c, "i", n->shape.dim[batch]);
    cd_compute_add_axis(c, "j", n->shape.dim[1 + batch]);
    cd_compute_add_reduce_axis(c, "k", a->dim[batch + !tx]);
    multiply(c, n->a.dot4, x, ix + !batch, y, iy + !batch);
    if (!n->a.mode) cd_compute_mark_layout_free(c, y);
    return cd_compute_end(c, name,
                          batch       ? "batch_matmul"
                          : n->a.mode ? "matmul"
                                      : "dense",
                          "\"sum\"");
}

uint32_t cd_te_compute_dense(cd_te_compute *c, const cd_fuse_node *n) {
    return product(c, n, false);
}
uint32_t cd_te_compute_bmm(cd_te_compute *c, const cd_fuse_node *n) { return product(c, n, true); }
