/* Windows that slide: padding, pooling, adaptive pooling, local response normalisation. */
#include <float.h>
#include <string.h>

#include "profiler/network/compute/compute.h"

typedef struct bounds {
    cd_te_compute *c;
    bool any;
} bounds;

static void bound(bounds *b, const char *axis, const char *sign, int64_t v) {
    cd_cs_put(b->c, "%s%s %s %lld", b->any ? " && " : "if_then_else(", axis, sign, (long long)v);
    b->any = true;
}

uint32_t cd_cs_pad(cd_te_compute *c, uint32_t x, const char *name, bool python, const int64_t *before, const int64_t *after,
                   double value, cd_dtype t) {
    if (c->st) return 0;
    const cd_te_compute_stage *s = &c->stage[x];
    cd_shape out = {s->rank, {0}};
    char ix[CD_GRAPH_MAX_RANK][CD_CTEXT], axis[CD_CTEXT];
    bounds b = {c, false};
    for (uint32_t d = 0; d < out.rank; d++) out.dim[d] = s->dim[d] + before[d] + after[d];
    cd_cs_begin(c);
    cd_cs_axes(c, python ? "i" : "ax", &out);
    for (uint32_t d = 0; d < out.rank; d++) {
        const bool low = before[d] != 0, high = after[d] != 0;
        cd_cs_set(axis, "%s%u", python ? "i" : "ax", d);
        cd_cs_plus(ix[d], axis, -before[d]);
        if (low || (python && high)) bound(&b, axis, ">=", before[d]);
        if (high || (python && low)) bound(&b, axis, "<", before[d] + s->dim[d]);
    }
    if (b.any) cd_cs_put(c, ", ");
    cd_cs_load(c, x, ix);
    if (b.any) {
        cd_cs_put(c, ", ");
        cd_cs_number(c, value, t);
        cd_cs_put(c, ")");
    }
    return cd_cs_end(c, name, python ? "injective,pad" : "elemwise", NULL);
}

/* ---- pooling ---- */

static uint32_t spatial(const cd_fnode *n) { return n->a.last ? 1 : 2; }

/* The last position of a window may hang over: pad for it. */
static uint32_t padded(cd_te_compute *c, const cd_fnode *n, uint32_t x) {
    int64_t before[CD_GRAPH_MAX_RANK] = {0}, after[CD_GRAPH_MAX_RANK] = {0};
    bool any = false;
    for (uint32_t d = 0; d < n->a.n; d++) {
        const uint32_t at = d + spatial(n);
        before[at] = n->a.before[d];
        after[at] = n->a.after[d] + (n->a.ceil ? n->a.stride[d] - 1 : 0);
        any = any || before[at] || after[at];
    }
    const double least = n->dtype == CD_F32 ? -(double)FLT_MAX : cd_dtype_is_float(n->dtype) ? -65504 : 0;
    return any ? cd_cs_pad(c, x, "pad_temp", false, before, after, n->a.is_max ? least : 0, n->dtype) : x;
}

static uint32_t windowed(cd_te_compute *c, const cd_fnode *n, uint32_t x, const char *tag, const char *how) {
    char ix[CD_GRAPH_MAX_RANK][CD_CTEXT], axis[CD_CTEXT], r[CD_CTEXT], a[CD_CTEXT], b[CD_CTEXT];
    cd_cs_begin(c);
    cd_cs_axes(c, "ax", &n->shape);
    for (uint32_t d = 0; d < n->shape.rank; d++) cd_cs_set(ix[d], "ax%u", d);
    for (uint32_t d = 0; d < n->a.n; d++) {
        const uint32_t at = d + spatial(n);
        cd_cs_set(axis, "ax%u", at);
        cd_cs_set(r, "rv%u", d);
        cd_cs_raxis(c, r, n->a.kernel[d]);
        cd_cs_times(a, axis, n->a.stride[d]);
        cd_cs_times(b, r, n->a.dilation[d]);
        cd_cs_set(ix[at], "%.80s + %.80s", a, b);
    }
    cd_cs_load(c, x, ix);
    return cd_cs_end(c, "tensor", tag, how);
}

/* Elements of the window along dimension d that count: the text of one factor. */
static void counted(const cd_fnode *n, uint32_t d, int64_t in, char out[CD_CTEXT]) {
    const uint32_t at = d + spatial(n);
    const int64_t dil = n->a.dilation[d], reach = (n->a.kernel[d] - 1) * dil;
    const int64_t most = n->a.include_pad ? in + n->a.after[d] - 1 : in - 1;
    char axis[CD_CTEXT], start[CD_CTEXT], end[CD_CTEXT], s[CD_CTEXT];
    cd_cs_set(axis, "ax%u", at);
    cd_cs_times(start, axis, n->a.stride[d]);
    cd_cs_plus(start, start, -n->a.before[d]);
    cd_cs_plus(end, start, reach);
    cd_cs_set(s, strchr(start, ' ') ? "(%.100s)" : "%.100s", start);
    if (n->a.include_pad && dil == 1) cd_cs_set(out, "(min(%.50s, %lld) - %.40s + 1)", end, (long long)most, s);
    else if (n->a.include_pad) cd_cs_set(out, "(truncdiv(min(%.50s, %lld) - %.40s, %lld) + 1)", end, (long long)most, s, (long long)dil);
    else if (dil == 1) cd_cs_set(out, "(min(%.40s, %lld) - (%.35s + max(0 - %.35s, 0)) + 1)", end, (long long)most, start, s);
    else cd_cs_set(out, "(truncdiv(min(%.30s, %lld) - (%.30s + max(truncdiv(%lld - %.30s, %lld), 0)*%lld), %lld) + 1)", end, (long long)most,
                   start, (long long)(dil - 1), s, (long long)dil, (long long)dil, (long long)dil);
}

static uint32_t divided(cd_te_compute *c, const cd_fnode *n, uint32_t sum) {
    char type[16], one[CD_CTEXT];
    const cd_shape *in = &c->f->node[n->in[0]].shape;
    cd_cs_begin(c);
    cd_cs_axes(c, "ax", &n->shape);
    cd_cs_load_at(c, sum, "ax", &n->shape);
    cd_cs_put(c, "/%s(%s", cd_dtype_format(n->dtype, type, sizeof type), n->a.include_pad ? "" : "max(");
    for (uint32_t d = 0; d < n->a.n; d++) {
        counted(n, d, in->dim[d + spatial(n)], one);
        cd_cs_put(c, "%s%s", d ? "*" : "", one);
    }
    cd_cs_put(c, n->a.include_pad ? ")" : ", 1))");
    return cd_cs_end(c, "tensor", "elemwise", NULL);
}

uint32_t cd_te_compute_pool(cd_te_compute *c, const cd_fnode *n) {
    const uint32_t x = padded(c, n, cd_cs_operand(c, n, 0));
    if (n->a.is_max) return windowed(c, n, x, "pool_max", "\"max\"");
    return divided(c, n, windowed(c, n, x, "pool_sum", "\"sum\""));
}

/* ---- adaptive: output d reads ax*in/out .. (ax + 1)*in/out, rounded outwards; here out is 1 ---- */

static void adaptive_extent(char out[CD_CTEXT], const char *axis, int64_t in) {
    char start[CD_CTEXT], next[CD_CTEXT], end[CD_CTEXT];
    cd_cs_times(start, axis, in);
    cd_cs_set(next, "%s + 1", axis);
    cd_cs_times(end, next, in);
    cd_cs_set(out, "select(true, %.50s, %.50s + 1) - %.30s", end, end, start);
}

static uint32_t adaptive_sum(cd_te_compute *c, const cd_fnode *n, uint32_t x, const cd_shape *in) {
    char ix[CD_GRAPH_MAX_RANK][CD_CTEXT], axis[CD_CTEXT], r[CD_CTEXT], extent[CD_CTEXT], start[CD_CTEXT];
    cd_cs_begin(c);
    cd_cs_axes(c, "ax", &n->shape);
    for (uint32_t d = 0; d < n->shape.rank; d++) cd_cs_set(ix[d], "ax%u", d);
    for (uint32_t d = 0; d < n->a.n; d++) {
        const uint32_t at = d + spatial(n);
        cd_cs_set(axis, "ax%u", at);
        cd_cs_set(r, "rv%u", d);
        adaptive_extent(extent, axis, in->dim[at]);
        cd_cs_raxis_text(c, r, extent);
        cd_cs_times(start, axis, in->dim[at]);
        cd_cs_set(ix[at], "%.80s + %s", start, r);
    }
    cd_cs_load(c, x, ix);
    return cd_cs_end(c, "tensor", n->a.is_max ? "adaptive_pool_max" : "adaptive_pool_sum", n->a.is_max ? "\"max\"" : "\"sum\"");
}

uint32_t cd_te_compute_adaptive(cd_te_compute *c, const cd_fnode *n) {
    char type[16], axis[CD_CTEXT], extent[CD_CTEXT];
    const cd_shape *in = &c->f->node[n->in[0]].shape;
    const uint32_t sum = adaptive_sum(c, n, cd_cs_operand(c, n, 0), in);
    if (n->a.is_max) return sum;
    cd_cs_begin(c);
    cd_cs_axes(c, "ax", &n->shape);
    cd_cs_load_at(c, sum, "ax", &n->shape);
    cd_cs_put(c, n->a.n > 1 ? "/(" : "/");
    for (uint32_t d = 0; d < n->a.n; d++) {
        cd_cs_set(axis, "ax%u", d + spatial(n));
        adaptive_extent(extent, axis, in->dim[d + spatial(n)]);
        cd_cs_put(c, "%s%s(%s)", d ? "*" : "", cd_dtype_format(n->dtype, type, sizeof type), extent);
    }
    if (n->a.n > 1) cd_cs_put(c, ")");
    return cd_cs_end(c, "tensor", "elemwise", NULL);
}

/* ---- x / (bias + alpha/size * sum of squares of near channels)^beta ---- */

static uint32_t near_squares(cd_te_compute *c, const cd_fnode *n, uint32_t x, int64_t size) {
    char ix[CD_GRAPH_MAX_RANK][CD_CTEXT];
    cd_cs_begin(c);
    cd_cs_axes(c, "ax", &n->shape);
    cd_cs_raxis(c, "rxs", size);
    for (uint32_t d = 0; d < n->shape.rank; d++) cd_cs_set(ix[d], d == 1 ? "ax%u + rxs" : "ax%u", d);
    cd_cs_load(c, x, ix);
    cd_cs_put(c, "*");
    cd_cs_load(c, x, ix);
    return cd_cs_end(c, "tensor", NULL, "\"sum\"");
}

uint32_t cd_te_compute_lrn(cd_te_compute *c, const cd_fnode *n) {
    const int64_t size = n->a.v[0];
    const int64_t before[CD_GRAPH_MAX_RANK] = {0, (size - 1) / 2}, after[CD_GRAPH_MAX_RANK] = {0, size - 1 - (size - 1) / 2};
    const uint32_t x = cd_cs_operand(c, n, 0);
    const uint32_t sum = near_squares(c, n, cd_cs_pad(c, x, "pad_data", false, before, after, 0, n->dtype), size);
    cd_cs_begin(c);
    cd_cs_axes(c, "ax", &n->shape);
    cd_cs_put(c, "pow(");
    cd_cs_number(c, n->a.s, n->dtype);
    cd_cs_put(c, " + ");
    cd_cs_number(c, n->a.p, n->dtype);
    cd_cs_put(c, "*");
    cd_cs_load_at(c, sum, "ax", &n->shape);
    cd_cs_put(c, "/%lld, ", (long long)size);
    cd_cs_number(c, n->a.q, n->dtype);
    cd_cs_put(c, ")");
    const uint32_t power = cd_cs_end(c, "tensor", "elemwise", NULL);
    cd_cs_begin(c);
    cd_cs_axes(c, "ax", &n->shape);
    cd_cs_load_at(c, x, "ax", &n->shape);
    cd_cs_put(c, "/");
    cd_cs_load_at(c, power, "ax", &n->shape);
    return cd_cs_end(c, "T_divide", "broadcast", NULL);
}
