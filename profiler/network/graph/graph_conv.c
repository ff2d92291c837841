/* Operators with a sliding window: convolutions and pooling. All of them resolve kernel_shape,
 * strides, dilations and pads in the same way, so that later stages need not know auto_pad and
 * defaults. */
#include <string.h>

#include "profiler/network/graph/graph_call_internal.h"

enum { MOST = CD_GRAPH_MAX_RANK - 2 }; /* spatial dimensions */

typedef struct window {
    uint32_t n;
    int64_t kernel[MOST], stride[MOST], dilation[MOST], pad[2 * MOST]; /* pad: begins, then ends */
    bool same, upper, valid;                                           /* auto_pad */
} window;

/* Attribute of n integers within lo .. 2^24; filled with `absent` where it is left out. */
static cdmpp_status ints(const cd_graph_call *c, const char *name, uint32_t n, int64_t lo,
                         int64_t absent, int64_t *out, cdmpp_err *err) {
    const int64_t *v;
    uint32_t m;
    CD_TRY(cd_graph_call_attr_ints(c, name, &v, &m, err));
    if (v && m != n)
        return CD_FAIL(err, ESCHEMA, "%s: attribute %s: expected %u integers, found %u", c->op,
                       name, n, m);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = v ? v[i] : absent;
        if (out[i] < lo || out[i] > (int64_t)1 << 24)
            return CD_FAIL(err, ERANGE, "%s: attribute %s[%u] is %lld", c->op, name, i,
                           (long long)out[i]);
    }
    return CDMPP_OK;
}

static cdmpp_status read_auto_pad(const cd_graph_call *c, window *w, cdmpp_err *err) {
    const char *s;
    CD_TRY(cd_graph_call_str(c, "auto_pad", "NOTSET", &s, err));
    w->upper = !strcmp(s, "SAME_UPPER");
    w->same = w->upper || !strcmp(s, "SAME_LOWER");
    w->valid = !strcmp(s, "VALID");
    if (!w->same && !w->valid && strcmp(s, "NOTSET") && *s)
        return CD_FAIL(err, ESCHEMA,
                       "%s: auto_pad \"%s\": expected NOTSET, SAME_UPPER, SAME_LOWER or VALID",
                       c->op, s);
    return CDMPP_OK;
}

/* kernel_shape where the weight says it, too. */
static cdmpp_status check_kernel(const cd_graph_call *c, uint32_t n, const int64_t *kernel,
                                 cdmpp_err *err) {
    const int64_t *v;
    uint32_t m;
    CD_TRY(cd_graph_call_attr_ints(c, "kernel_shape", &v, &m, err));
    if (v && (m != n || memcmp(v, kernel, n * sizeof *v) != 0))
        return CD_FAIL(err, ESCHEMA, "%s: attribute kernel_shape is not the extent of the weight",
                       c->op);
    return CDMPP_OK;
}

/* kernel: of the weight; NULL: the attribute, which must then be there. */
static cdmpp_status read_window(const cd_graph_call *c, uint32_t n, const int64_t *kernel,
                                window *w, cdmpp_err *err) {
    *w = (window){.n = n};
    if (kernel) {
        CD_TRY(check_kernel(c, n, kernel, err));
        memcpy(w->kernel, kernel, n * sizeof *kernel);
    } else if (!cd_graph_call_attr(c, "kernel_shape"))
        return CD_FAIL(err, ESCHEMA, "%s: expected attribute kernel_shape", c->op);
    else CD_TRY(ints(c, "kernel_shape", n, 1, 0, w->kernel, err));
    CD_TRY(ints(c, "strides", n, 1, 1, w->stride, err));
    CD_TRY(ints(c, "dilations", n, 1, 1, w->dilation, err));
    CD_TRY(read_auto_pad(c, w, err));
    if (w->same || w->valid) return CDMPP_OK; /* pads: by auto_pad */
    return ints(c, "pads", 2 * n, 0, 0, w->pad, err);
}

static cdmpp_status put_window(cd_graph_call *c, const window *w, cdmpp_err *err) {
    CD_TRY(cd_graph_call_set_ints(c, "kernel_shape", w->kernel, w->n, err));
    CD_TRY(cd_graph_call_set_ints(c, "strides", w->stride, w->n, err));
    CD_TRY(cd_graph_call_set_ints(c, "dilations", w->dilation, w->n, err));
    return cd_graph_call_set_ints(c, "pads", w->pad, 2 * w->n, err);
}

/* auto_pad: an odd element of padding goes to the end with SAME_UPPER, to the beginning with
 * SAME_LOWER. */
static void split_pad(window *w, uint32_t d, int64_t total) {
    const int64_t small = total / 2;
    w->pad[d] = w->upper ? small : total - small;
    w->pad[w->n + d] = total - w->pad[d];
}

static int64_t extent(const window *w, uint32_t d) {
    return (w->kernel[d] - 1) * w->dilation[d] + 1;
}

/* Positions of the window along dimension d of `in` elements. With `ceil` the last one may hang
 * over the end but not begin in the padding there (opset 22's text, which run times follow in older
 * ones). */
static cdmpp_status slide(const cd_graph_call *c, window *w, uint32_t d, int64_t in, bool ceil,
                          int64_t *out, cdmpp_err *err) {
    const int64_t s = w->stride[d], e = extent(w, d);
    if (w->same) {
        *out = (in + s - 1) / s;
        const int64_t total = (*out - 1) * s + e - in;
        split_pad(w, d, total > 0 ? total : 0);
        return CDMPP_OK;
    }
    const int64_t room = in + w->pad[d] + w->pad[w->n + d] - e;
    if (room < 0)
        return CD_FAIL(err, ESCHEMA, "%s: window of %lld over %lld padded elements", c->op,
                       (long long)e, (long long)(room + e));
    *out = room / s + 1;
    if (ceil && room % s && *out * s < in + w->pad[d]) ++*out;
    return CDMPP_OK;
}

/* Longer ones would overflow where strides and dilations multiply. */
static cdmpp_status check_spatial(const cd_graph_call *c, const cd_graph_shape *s, cdmpp_err *err) {
    for (uint32_t d = 2; d < s->rank; d++)
        if (s->dim[d] > (int64_t)1 << 32)
            return CD_FAIL(err, ERANGE, "%s: dimension %u is %lld", c->op, d, (long long)s->dim[d]);
    return CDMPP_OK;
}

/* A convolution of operand `ix` by operand `iw`, biased by operand `ib`. */
static cdmpp_status conv(cd_graph_call *c, uint32_t ix, uint32_t iw, uint32_t ib, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, ix), *k = cd_graph_call_input(c, iw),
                          *b = cd_graph_call_input(c, ib);
    window w;
    int64_t group;
    CD_TRY(cd_graph_call_rank(c, ix, 3, CD_GRAPH_MAX_RANK, err));
    CD_TRY(cd_graph_call_rank(c, iw, x->shape.rank, x->shape.rank, err));
    CD_TRY(check_spatial(c, &x->shape, err));
    CD_TRY(check_spatial(c, &k->shape, err));
    CD_TRY(cd_graph_call_default_int(c, "group", 1, &group, err));
    const int64_t cin = x->shape.dim[1], m = k->shape.dim[0];
    if (group < 1 || cin % group || m % group || cin / group != k->shape.dim[1])
        return CD_FAIL(err, ESCHEMA,
                       "%s: %lld channels, %lld groups and a weight of [%lld,%lld,...] do not fit",
                       c->op, (long long)cin, (long long)group, (long long)m,
                       (long long)k->shape.dim[1]);
    if (b && cd_graph_shape_elements(&b->shape) != m)
        return CD_FAIL(err, ESCHEMA, "%s: bias for other than %lld channels", c->op, (long long)m);
    cd_graph_shape o = x->shape;
    o.dim[1] = m;
    CD_TRY(read_window(c, o.rank - 2, k->shape.dim + 2, &w, err));
    for (uint32_t d = 0; d < w.n; d++) {
        if (w.kernel[d] < 1) return CD_FAIL(err, ESCHEMA, "%s: empty kernel", c->op);
        CD_TRY(slide(c, &w, d, x->shape.dim[d + 2], false, &o.dim[d + 2], err));
    }
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &o, err));
    return put_window(c, &w, err);
}

cdmpp_status cd_graph_infer_conv(cd_graph_call *c, cdmpp_err *err) { return conv(c, 0, 1, 2, err); }

cdmpp_status cd_graph_infer_conv_integer(cd_graph_call *c, cdmpp_err *err) {
    CD_TRY(conv(c, 0, 1, CD_GRAPH_NONE, err)); /* operands 2, 3: zero points */
    c->out[0].dtype = CD_I32;
    return CDMPP_OK;
}

/* X, scale, zero point, W, scale, zero point, scale and zero point of Y, B */
cdmpp_status cd_graph_infer_qconv(cd_graph_call *c, cdmpp_err *err) {
    CD_TRY(conv(c, 0, 3, 8, err));
    c->out[0].dtype = cd_graph_call_input(c, 7)->dtype;
    return CDMPP_OK;
}

/* X, W, offset, B, mask */
cdmpp_status cd_graph_infer_deform_conv(cd_graph_call *c, cdmpp_err *err) {
    return conv(c, 0, 1, 3, err);
}

/* Multiply-adds of one output element of a convolution: what its weight has behind dimension
 * `from`. */
static double taps(const cd_graph_tensor *w, uint32_t from) {
    double n = 1;
    for (uint32_t d = from; d < w->shape.rank; d++) n *= (double)w->shape.dim[d];
    return n;
}

/* Of weight iw and bias ib. */
static double flop(const cd_graph_call *c, uint32_t iw, uint32_t ib) {
    return cd_graph_flop_out(c) *
           (2 * taps(cd_graph_call_input(c, iw), 1) + (cd_graph_call_input(c, ib) != NULL));
}

double cd_graph_flop_conv(const cd_graph_call *c) { return flop(c, 1, 2); }
double cd_graph_flop_conv_integer(const cd_graph_call *c) { return flop(c, 1, CD_GRAPH_NONE); }
double cd_graph_flop_qconv(const cd_graph_call *c) { return flop(c, 3, 8); }
double cd_graph_flop_deform_conv(const cd_graph_call *c) { return flop(c, 1, 3); }

/* Extent of a transposed convolution, or the padding that gives the wanted one. */
static cdmpp_status unslide(const cd_graph_call *c, window *w, uint32_t d, int64_t in, int64_t more,
                            const int64_t *want, int64_t *out, cdmpp_err *err) {
    const int64_t full = w->stride[d] * (in - 1) + more + extent(w, d);
    if (want || w->same) {
        *out = want ? want[d] : in * w->stride[d];
        if (*out > full) w->pad[d] = w->pad[w->n + d] = 0;
        else split_pad(w, d, full - *out);
    } else *out = full - w->pad[d] - w->pad[w->n + d];
    return *out < 0 ? CD_FAIL(err, ESCHEMA, "%s: dimension %u would be %lld", c->op, d + 2,
                              (long long)*out)
                    : CDMPP_OK;
}

/* The bounds on groups and channels keep their products within int64. */
cdmpp_status cd_graph_infer_conv_transpose(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0), *k = cd_graph_call_input(c, 1);
    const int64_t *want;
    int64_t group, more[MOST];
    uint32_t n_want;
    window w;
    CD_TRY(cd_graph_call_rank(c, 0, 3, CD_GRAPH_MAX_RANK, err));
    CD_TRY(check_spatial(c, &x->shape, err));
    CD_TRY(cd_graph_call_rank(c, 1, x->shape.rank, x->shape.rank, err));
    CD_TRY(check_spatial(c, &k->shape, err));
    CD_TRY(cd_graph_call_default_int(c, "group", 1, &group, err));
    if (group < 1 || group > (int64_t)1 << 24 || k->shape.dim[0] != x->shape.dim[1] ||
        x->shape.dim[1] % group || k->shape.dim[1] > (int64_t)1 << 38)
        return CD_FAIL(err, ESCHEMA,
                       "%s: %lld channels, %lld groups and a weight for %lld channels do not fit",
                       c->op, (long long)x->shape.dim[1], (long long)group,
                       (long long)k->shape.dim[0]);
    cd_graph_shape o = x->shape;
    o.dim[1] = k->shape.dim[1] * group;
    CD_TRY(read_window(c, o.rank - 2, k->shape.dim + 2, &w, err));
    CD_TRY(ints(c, "output_padding", w.n, 0, 0, more, err));
    CD_TRY(cd_graph_call_attr_ints(c, "output_shape", &want, &n_want, err));
    if (want && n_want == o.rank) want += 2; /* some exporters give all dimensions */
    else if (want && n_want != w.n)
        return CD_FAIL(err, ESCHEMA, "%s: attribute output_shape: expected %u integers", c->op,
                       w.n);
    for (uint32_t d = 0; d < w.n; d++)
        CD_TRY(unslide(c, &w, d, x->shape.dim[d + 2], more[d], want, &o.dim[d + 2], err));
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &o, err));
    CD_TRY(cd_graph_call_set_ints(c, "output_padding", more, w.n, err));
    return put_window(c, &w, err);
}

/* Each input element meets every weight of its channel. */
double cd_graph_flop_conv_transpose(const cd_graph_call *c) {
    return 2 * cd_graph_flop_in(c) * taps(cd_graph_call_input(c, 1), 1) +
           (cd_graph_call_input(c, 2) ? cd_graph_flop_out(c) : 0);
}

cdmpp_status cd_graph_infer_pool(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    window w;
    int64_t ceil;
    CD_TRY(cd_graph_call_rank(c, 0, 3, CD_GRAPH_MAX_RANK, err));
    CD_TRY(check_spatial(c, &x->shape, err));
    CD_TRY(cd_graph_call_default_int(c, "ceil_mode", 0, &ceil, err));
    CD_TRY(read_window(c, x->shape.rank - 2, NULL, &w, err));
    cd_graph_shape o = x->shape;
    for (uint32_t d = 0; d < w.n; d++)
        CD_TRY(slide(c, &w, d, x->shape.dim[d + 2], ceil != 0, &o.dim[d + 2], err));
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &o, err));
    CD_TRY(cd_graph_call_set_output(c, 1, CD_I64, &o, err));
    return put_window(c, &w, err);
}

/* Operands: x and the gradient of the pooled result; the result is the gradient of x. Our own
 * operator, made by the gradient room. The window is slid over x to check the shape of the
 * gradient. */
cdmpp_status cd_graph_infer_pool_grad(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0), *dy = cd_graph_call_input(c, 1);
    window w;
    int64_t ceil, o;
    CD_TRY(cd_graph_call_rank(c, 0, 3, CD_GRAPH_MAX_RANK, err));
    CD_TRY(cd_graph_call_rank(c, 1, x->shape.rank, x->shape.rank, err));
    CD_TRY(check_spatial(c, &x->shape, err));
    CD_TRY(cd_graph_call_default_int(c, "ceil_mode", 0, &ceil, err));
    CD_TRY(read_window(c, x->shape.rank - 2, NULL, &w, err));
    for (uint32_t d = 0; d < x->shape.rank; d++) {
        o = x->shape.dim[d];
        if (d > 1) CD_TRY(slide(c, &w, d - 2, o, ceil != 0, &o, err));
        if (o != dy->shape.dim[d])
            return CD_FAIL(err, ESCHEMA, "%s: operand 1: dimension %u: expected %lld, found %lld",
                           c->op, d, (long long)o, (long long)dy->shape.dim[d]);
    }
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &x->shape, err));
    return put_window(c, &w, err);
}

cdmpp_status cd_graph_infer_lp_pool(cd_graph_call *c, cdmpp_err *err) {
    int64_t p;
    CD_TRY(cd_graph_call_default_int(c, "p", 2, &p, err));
    return cd_graph_infer_pool(c, err);
}

double cd_graph_flop_pool(const cd_graph_call *c) {
    double n = cd_graph_flop_out(c);
    const cd_graph_attr *k = cd_graph_call_attr(c, "kernel_shape");
    for (uint32_t d = 0; d < k->n; d++) n *= (double)k->ints[d];
    return n;
}

/* Each element of dy meets its window. */
double cd_graph_flop_pool_grad(const cd_graph_call *c) {
    double n = (double)cd_graph_shape_elements(&cd_graph_call_input(c, 1)->shape);
    const cd_graph_attr *k = cd_graph_call_attr(c, "kernel_shape");
    for (uint32_t d = 0; d < k->n; d++) n *= (double)k->ints[d];
    return n;
}

cdmpp_status cd_graph_infer_global_pool(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    CD_TRY(cd_graph_call_rank(c, 0, 2, CD_GRAPH_MAX_RANK, err));
    cd_graph_shape o = x->shape;
    for (uint32_t d = 2; d < o.rank; d++) o.dim[d] = 1;
    return cd_graph_call_set_output(c, 0, x->dtype, &o, err);
}

/* Operands: pooled values, their positions, optionally the wanted shape. Without it the result is
 * as large as the windows can reach. */
cdmpp_status cd_graph_infer_max_unpool(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    const int64_t *want;
    uint32_t n;
    window w;
    CD_TRY(cd_graph_call_rank(c, 0, 3, CD_GRAPH_MAX_RANK, err));
    CD_TRY(check_spatial(c, &x->shape, err));
    CD_TRY(read_window(c, x->shape.rank - 2, NULL, &w, err));
    cd_graph_shape o = x->shape;
    for (uint32_t d = 0; d < w.n; d++)
        CD_TRY(unslide(c, &w, d, x->shape.dim[d + 2], 0, NULL, &o.dim[d + 2], err));
    if (cd_graph_call_input(c, 2)) {
        CD_TRY(cd_graph_call_ints(c, 2, &want, &n, err));
        if (n != o.rank)
            return CD_FAIL(err, ESCHEMA, "%s: output_shape: expected %u integers, found %u", c->op,
                           o.rank, n);
        memcpy(o.dim, want, n * sizeof *want);
    }
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &o, err));
    return put_window(c, &w, err);
}

/* Regions of interest: attributes pooled_shape (MaxRoiPool) or output_height, output_width
 * (RoiAlign). */
cdmpp_status cd_graph_infer_roi(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0), *roi = cd_graph_call_input(c, 1);
    const int64_t *pooled;
    int64_t h, v;
    uint32_t n;
    CD_TRY(cd_graph_call_rank(c, 0, 4, 4, err));
    CD_TRY(cd_graph_call_rank(c, 1, 2, 2, err));
    CD_TRY(cd_graph_call_attr_ints(c, "pooled_shape", &pooled, &n, err));
    CD_TRY(cd_graph_call_int(c, "output_height", 1, &h, err));
    CD_TRY(cd_graph_call_int(c, "output_width", 1, &v, err));
    if (pooled && n != 2)
        return CD_FAIL(err, ESCHEMA, "%s: attribute pooled_shape: expected 2 integers, found %u",
                       c->op, n);
    const cd_graph_shape o = {
        4, {roi->shape.dim[0], x->shape.dim[1], pooled ? pooled[0] : h, pooled ? pooled[1] : v}};
    return cd_graph_call_set_output(c, 0, x->dtype, &o, err);
}
