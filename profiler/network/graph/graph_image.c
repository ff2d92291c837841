/* Images: resizing, sampling, channels to space and back. Scales are multiplied in float32 and
 * rounded down, as ONNX Runtime does: the size of the result depends on it. */
#include <math.h>
#include <string.h>

#include "profiler/network/graph/graph_call_internal.h"

static cdmpp_status block(cd_graph_call *c, int64_t *b, cdmpp_err *err) {
    CD_TRY(cd_graph_call_rank(c, 0, 4, 4, err));
    CD_TRY(cd_graph_call_int(c, "blocksize", 0, b, err));
    return *b < 1 || *b > 1 << 20
               ? CD_FAIL(err, ESCHEMA, "%s: blocksize %lld", c->op, (long long)*b)
               : CDMPP_OK;
}

cdmpp_status cd_graph_infer_depth_to_space(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    int64_t b;
    CD_TRY(block(c, &b, err));
    cd_graph_shape o = x->shape;
    if (o.dim[1] % (b * b) || o.dim[2] > (int64_t)1 << 40 || o.dim[3] > (int64_t)1 << 40)
        return CD_FAIL(err, ESCHEMA, "%s: %lld channels in blocks of %lld", c->op,
                       (long long)o.dim[1], (long long)b);
    o = (cd_graph_shape){4, {o.dim[0], o.dim[1] / (b * b), o.dim[2] * b, o.dim[3] * b}};
    return cd_graph_call_set_output(c, 0, x->dtype, &o, err);
}

cdmpp_status cd_graph_infer_space_to_depth(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    int64_t b;
    CD_TRY(block(c, &b, err));
    cd_graph_shape o = x->shape;
    if (o.dim[2] % b || o.dim[3] % b || o.dim[1] > (int64_t)1 << 22)
        return CD_FAIL(err, ESCHEMA, "%s: %lld by %lld in blocks of %lld", c->op,
                       (long long)o.dim[2], (long long)o.dim[3], (long long)b);
    o = (cd_graph_shape){4, {o.dim[0], o.dim[1] * b * b, o.dim[2] / b, o.dim[3] / b}};
    return cd_graph_call_set_output(c, 0, x->dtype, &o, err);
}

/* Known reals of operand i, or of the attribute `scales`. */
static cdmpp_status scales(const cd_graph_call *c, uint32_t i, const double **v, uint32_t *n,
                           cdmpp_err *err) {
    const cd_graph_tensor *t = cd_graph_call_input(c, i);
    const cd_graph_attr *a = cd_graph_call_attr(c, "scales");
    *v = NULL;
    *n = 0;
    if (t && !cd_graph_call_is_known(t))
        return CD_FAIL(err, EUNSUPPORTED, "%s: its shape depends on the content of \"%s\"", c->op,
                       t->name);
    if (t && !t->fvalue) return CD_FAIL(err, ESCHEMA, "%s: expected real numbers as scales", c->op);
    if (t) {
        *v = t->fvalue;
        *n = (uint32_t)cd_graph_shape_elements(&t->shape);
    } else if (a && a->kind == CD_GRAPH_ATTR_FLOATS) {
        *v = a->floats;
        *n = a->n;
    }
    return CDMPP_OK;
}

/* The dimensions that numbers are for: attribute axes of opset 18, or all of them. */
static cdmpp_status resize_axes(const cd_graph_call *c, uint32_t rank, uint32_t *axes, uint32_t *n,
                                cdmpp_err *err) {
    const int64_t *v;
    CD_TRY(cd_graph_call_attr_ints(c, "axes", &v, n, err));
    if (!v) *n = rank;
    if (*n > rank) return CD_FAIL(err, ESCHEMA, "%s: %u axes of %u dimensions", c->op, *n, rank);
    for (uint32_t i = 0; i < *n; i++)
        CD_TRY(cd_graph_call_normalize_axis(v ? v[i] : i, rank, &axes[i], err));
    return CDMPP_OK;
}

/* New extents: floor(extent * scale) in float32. */
static cdmpp_status scaled(cd_graph_call *c, const double *s, const uint32_t *axes, uint32_t n,
                           cd_graph_shape *o, cdmpp_err *err) {
    for (uint32_t i = 0; i < n; i++) {
        const double d = floor((double)((float)o->dim[axes[i]] * (float)s[i]));
        if (!(s[i] > 0) || !(d < 1e15))
            return CD_FAIL(err, ERANGE, "%s: scale %g of dimension %u", c->op, s[i], axes[i]);
        o->dim[axes[i]] = (int64_t)d;
    }
    return CDMPP_OK;
}

/* Sizes are the bounds of a result whose sides keep their ratio: one scale for all axes, the least
 * or the largest that the sizes ask for. *scale 0: each axis for itself. */
static cdmpp_status sized(cd_graph_call *c, const int64_t *v, const uint32_t *axes, uint32_t n,
                          cd_graph_shape *o, double *scale, cdmpp_err *err) {
    const char *policy;
    *scale = 0;
    CD_TRY(cd_graph_call_str(c, "keep_aspect_ratio_policy", "stretch", &policy, err));
    const bool keep = strcmp(policy, "stretch") != 0, larger = !strcmp(policy, "not_smaller");
    for (uint32_t i = 0; keep && i < n; i++) {
        const int64_t in = o->dim[axes[i]];
        const double s = in ? (double)v[i] / (double)in : 0;
        if (!(s > 0))
            return CD_FAIL(err, ESCHEMA, "%s: size %lld of dimension %u of %lld", c->op,
                           (long long)v[i], axes[i], (long long)in);
        if (i == 0 || (larger ? s > *scale : s < *scale)) *scale = s;
    }
    for (uint32_t i = 0; i < n; i++) {
        const double d = keep ? floor(*scale * (double)o->dim[axes[i]] + 0.5) : 0;
        if (!(d < 1e15))
            return CD_FAIL(err, ERANGE, "%s: scale %g of dimension %u", c->op, *scale, axes[i]);
        o->dim[axes[i]] = keep ? (int64_t)d : v[i];
    }
    return CDMPP_OK;
}

/* Resolved: a scale for each dimension, where the file has some: with 0.6 of 4 elements positions
 * are divided by 0.6, not by 2/4. */
static cdmpp_status put_scales(cd_graph_call *c, const double *s, double same, const uint32_t *axes,
                               uint32_t n, const cd_graph_shape *o, cdmpp_err *err) {
    const cd_graph_shape *x = &cd_graph_call_input(c, 0)->shape;
    double all[CD_GRAPH_MAX_RANK];
    if (!s && !(same > 0)) return CDMPP_OK;
    for (uint32_t d = 0; d < x->rank; d++)
        all[d] = x->dim[d] ? (double)o->dim[d] / (double)x->dim[d] : 1;
    for (uint32_t i = 0; i < n; i++) all[axes[i]] = s ? s[i] : same;
    return cd_graph_call_set_floats(c, "scales", all, x->rank, err);
}

/* Operands `at_scales`, `at_sizes` give the result; sizes win. */
static cdmpp_status resize(cd_graph_call *c, uint32_t at_scales, uint32_t at_sizes,
                           cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0), *size = cd_graph_call_input(c, at_sizes);
    const double *s = NULL;
    const int64_t *v = NULL;
    uint32_t axes[CD_GRAPH_MAX_RANK], n, m = 0;
    cd_graph_shape o = x->shape;
    double same = 0;
    CD_TRY(resize_axes(c, o.rank, axes, &n, err));
    if (size && cd_graph_shape_elements(&size->shape) > 0)
        CD_TRY(cd_graph_call_ints(c, at_sizes, &v, &m, err));
    else CD_TRY(scales(c, at_scales, &s, &m, err));
    if (m != n)
        return CD_FAIL(err, ESCHEMA, "%s: %u scales or sizes for %u dimensions", c->op, m, n);
    if (v) CD_TRY(sized(c, v, axes, n, &o, &same, err));
    if (s) CD_TRY(scaled(c, s, axes, n, &o, err));
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &o, err));
    return put_scales(c, s, same, axes, n, &o, err);
}

cdmpp_status cd_graph_infer_upsample(cd_graph_call *c, cdmpp_err *err) {
    return resize(c, 1, CD_GRAPH_NONE, err);
}

cdmpp_status cd_graph_infer_resize(cd_graph_call *c, cdmpp_err *err) {
    return c->g->opset < 11 ? resize(c, 1, CD_GRAPH_NONE, err) : resize(c, 2, 3, err);
}

/* Interpolating along k dimensions: 2^k - 1 lines of 3 operations, or products with 4^k cubic
 * weights. */
static double interpolation(const cd_graph_call *c, uint32_t k) {
    const cd_graph_attr *mode = cd_graph_call_attr(c, "mode");
    const char *s = mode && mode->kind == CD_GRAPH_ATTR_STR ? mode->s : "nearest";
    if (strstr(s, "linear")) return 3 * (ldexp(1, (int)k) - 1);
    return strstr(s, "cubic") ? 2 * ldexp(1, 2 * (int)k) : 0;
}

double cd_graph_flop_resize(const cd_graph_call *c) {
    const cd_graph_shape *x = &cd_graph_call_input(c, 0)->shape, *o = &c->out[0].shape;
    uint32_t k = 0;
    const cd_graph_attr *s = cd_graph_call_attr(c, "scales");
    for (uint32_t d = 0; d < o->rank; d++)
        k += x->dim[d] != o->dim[d] || (s && (s->floats[d] > 1 || s->floats[d] < 1));
    return cd_graph_flop_out(c) * interpolation(c, k);
}

cdmpp_status cd_graph_infer_grid_sample(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0), *grid = cd_graph_call_input(c, 1);
    CD_TRY(cd_graph_call_rank(c, 0, 3, CD_GRAPH_MAX_RANK, err));
    CD_TRY(cd_graph_call_rank(c, 1, x->shape.rank, x->shape.rank, err));
    const uint32_t r = x->shape.rank;
    if (grid->shape.dim[r - 1] != r - 2 || grid->shape.dim[0] != x->shape.dim[0])
        return CD_FAIL(
            err, ESCHEMA,
            "GridSample: %lld grids of %lld coordinates for %lld images of %u dimensions",
            (long long)grid->shape.dim[0], (long long)grid->shape.dim[r - 1],
            (long long)x->shape.dim[0], r - 2);
    cd_graph_shape o = x->shape;
    for (uint32_t d = 2; d < r; d++) o.dim[d] = grid->shape.dim[d - 1];
    return cd_graph_call_set_output(c, 0, x->dtype, &o, err);
}

double cd_graph_flop_grid_sample(const cd_graph_call *c) {
    const cd_graph_attr *mode = cd_graph_call_attr(c, "mode");
    const uint32_t k = c->out[0].shape.rank - 2;
    /* bilinear where it is left out */
    return cd_graph_flop_out(c) * (mode ? interpolation(c, k) : 3 * (ldexp(1, (int)k) - 1));
}

/* Cut or pad around the centre to the wanted shape. */
cdmpp_status cd_graph_infer_center_crop(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    const int64_t *v;
    uint32_t axes[CD_GRAPH_MAX_RANK], n, m;
    cd_graph_shape o = x->shape;
    CD_TRY(resize_axes(c, o.rank, axes, &n, err));
    CD_TRY(cd_graph_call_ints(c, 1, &v, &m, err));
    if (m != n) return CD_FAIL(err, ESCHEMA, "%s: %u numbers for %u dimensions", c->op, m, n);
    for (uint32_t i = 0; i < n; i++) o.dim[axes[i]] = v[i];
    return cd_graph_call_set_output(c, 0, x->dtype, &o, err);
}
