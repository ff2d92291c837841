/* Operators of an iteration, one call each. */
#include <stdio.h>
#include <string.h>

#include "profiler/network/gradient/autodiff_internal.h"

enum { OPSET = 18 };

uint32_t cd_gg_fail(cd_gg *b, cdmpp_status st) {
    if (!b->st) b->st = st;
    return CD_GRAPH_NONE;
}

const cd_shape *cd_gg_shape(const cd_gg *b, uint32_t t) {
    static const cd_shape none = {0, {0}};
    return b->st || t == CD_GRAPH_NONE ? &none : &b->g->tensor[t].shape;
}

void cd_gg_ops(cd_gg *b, const char *op, uint32_t n_in, const uint32_t *in, uint32_t n_attr, const cd_gattr *attr, uint32_t n_out, uint32_t *out) {
    char name[160];
    for (uint32_t k = 0; k < n_out; k++) out[k] = CD_GRAPH_NONE;
    if (b->st) return;
    const int opset = b->g->opset;
    snprintf(name, sizeof name, "%.100s/%s_%u", b->at, op, b->count++);
    b->g->opset = OPSET;
    b->st = cd_graph_add(b->g, name, op, in, n_in, attr, n_attr, out, n_out, b->err);
    b->g->opset = opset;
}

uint32_t cd_gg_op(cd_gg *b, const char *op, uint32_t n_in, const uint32_t *in, uint32_t n_attr, const cd_gattr *attr) {
    uint32_t y;
    cd_gg_ops(b, op, n_in, in, n_attr, attr, 1, &y);
    return y;
}

uint32_t cd_gg_un(cd_gg *b, const char *op, uint32_t x) { return cd_gg_op(b, op, 1, &x, 0, NULL); }
uint32_t cd_gg_bi(cd_gg *b, const char *op, uint32_t x, uint32_t y) { return cd_gg_op(b, op, 2, (const uint32_t[]){x, y}, 0, NULL); }
uint32_t cd_gg_where(cd_gg *b, uint32_t c, uint32_t x, uint32_t y) { return cd_gg_op(b, "Where", 3, (const uint32_t[]){c, x, y}, 0, NULL); }

static const char *constant_name(cd_gg *b, char buf[160]) {
    snprintf(buf, 160, "%.100s/c_%u", b->at, b->count++);
    return buf;
}

uint32_t cd_gg_num(cd_gg *b, uint32_t like, double v) {
    char name[160];
    const cd_shape s = {0, {0}};
    uint32_t t = CD_GRAPH_NONE;
    if (b->st) return t;
    b->st = cd_graph_constant(b->g, constant_name(b, name), b->g->tensor[like].dtype, &s, NULL, &v, &t, b->err);
    return t;
}

uint32_t cd_gg_bis(cd_gg *b, const char *op, uint32_t x, double v) { return cd_gg_bi(b, op, x, cd_gg_num(b, x, v)); }
uint32_t cd_gg_sbi(cd_gg *b, const char *op, double v, uint32_t x) { return cd_gg_bi(b, op, cd_gg_num(b, x, v), x); }

uint32_t cd_gg_ints(cd_gg *b, uint32_t n, const int64_t *v) {
    char name[160];
    const cd_shape s = {1, {n}};
    uint32_t t = CD_GRAPH_NONE;
    if (!b->st) b->st = cd_graph_constant(b->g, constant_name(b, name), CD_I64, &s, v, NULL, &t, b->err);
    return t;
}

/* ONNX's number of a type; 0: none. */
static int64_t number_of(cd_dtype t) {
    cd_dtype u;
    for (int64_t k = 1; k <= 16; k++)
        if (cd_graph_dtype(k, &u) && u == t) return k;
    return 0;
}

uint32_t cd_gg_cast(cd_gg *b, uint32_t x, cd_dtype t) {
    const cd_gattr to = cd_gg_i("to", number_of(t));
    if (b->st || b->g->tensor[x].dtype == t) return x;
    return cd_gg_op(b, "Cast", 1, &x, 1, &to);
}

static bool same(const cd_shape *a, const cd_shape *s) { return a->rank == s->rank && !memcmp(a->dim, s->dim, s->rank * sizeof *s->dim); }

uint32_t cd_gg_reshape(cd_gg *b, uint32_t x, const cd_shape *s) {
    if (b->st || same(cd_gg_shape(b, x), s)) return x;
    const cd_gattr zero = cd_gg_i("allowzero", 1);
    return cd_gg_op(b, "Reshape", 2, (const uint32_t[]){x, cd_gg_ints(b, s->rank, s->dim)}, 1, &zero);
}

uint32_t cd_gg_transpose(cd_gg *b, uint32_t x, uint32_t rank, const int64_t *perm) {
    const cd_gattr p = cd_gg_is("perm", rank, perm);
    return cd_gg_op(b, "Transpose", 1, &x, 1, &p);
}

uint32_t cd_gg_swap(cd_gg *b, uint32_t x) {
    const uint32_t rank = cd_gg_shape(b, x)->rank;
    int64_t perm[CD_GRAPH_MAX_RANK] = {0};
    if (b->st) return x;
    for (uint32_t d = 0; d < rank; d++) perm[d] = d;
    perm[rank - 1] = rank - 2;
    perm[rank - 2] = rank - 1;
    return cd_gg_transpose(b, x, rank, perm);
}

uint32_t cd_gg_expand(cd_gg *b, uint32_t x, const cd_shape *s) {
    if (b->st || same(cd_gg_shape(b, x), s)) return x;
    return cd_gg_bi(b, "Expand", x, cd_gg_ints(b, s->rank, s->dim));
}

/* Made once, as what is made of constants alone. */
uint32_t cd_gg_zeros(cd_gg *b, const cd_shape *s, uint32_t like) { return cd_gg_expand(b, cd_gg_num(b, like, 0), s); }

uint32_t cd_gg_reduce(cd_gg *b, const char *op, uint32_t x, uint32_t axes, bool keep) {
    int64_t v[CD_GRAPH_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t d = 0; d < CD_GRAPH_MAX_RANK; d++)
        if (cd_gg_axis_in(axes, d)) v[n++] = d;
    const cd_gattr attr[] = {cd_gg_is("axes", n, v), cd_gg_i("keepdims", keep)};
    return n ? cd_gg_op(b, op, 1, &x, 2, attr) : x;
}

uint32_t cd_gg_sum_to(cd_gg *b, uint32_t x, const cd_shape *s) {
    const cd_shape full = *cd_gg_shape(b, x);
    uint32_t axes = 0;
    if (b->st || same(&full, s)) return x;
    for (uint32_t d = 0; d < full.rank; d++) {
        const uint32_t lead = full.rank - s->rank;
        if (d < lead || (s->dim[d - lead] == 1 && full.dim[d] != 1)) axes |= 1U << d;
    }
    return cd_gg_reshape(b, cd_gg_reduce(b, "ReduceSum", x, axes, false), s);
}

uint32_t cd_gg_slice(cd_gg *b, uint32_t x, const int64_t *start, const cd_shape *s) {
    const cd_shape in = *cd_gg_shape(b, x);
    int64_t from[CD_GRAPH_MAX_RANK], to[CD_GRAPH_MAX_RANK], axis[CD_GRAPH_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t d = 0; d < in.rank; d++) {
        if (!start[d] && s->dim[d] == in.dim[d]) continue;
        axis[n] = d;
        from[n] = start[d];
        to[n++] = start[d] + s->dim[d];
    }
    if (b->st || !n) return x;
    const uint32_t in4[4] = {x, cd_gg_ints(b, n, from), cd_gg_ints(b, n, to), cd_gg_ints(b, n, axis)};
    return cd_gg_op(b, "Slice", 4, in4, 0, NULL);
}

uint32_t cd_gg_pad(cd_gg *b, uint32_t x, const int64_t *before, const int64_t *after) {
    const uint32_t rank = cd_gg_shape(b, x)->rank;
    int64_t pads[2 * CD_GRAPH_MAX_RANK];
    bool any = false;
    for (uint32_t d = 0; d < rank; d++) {
        pads[d] = before[d];
        pads[d + rank] = after[d];
        any = any || before[d] || after[d];
    }
    if (b->st || !any) return x;
    return cd_gg_op(b, "Pad", 3, (const uint32_t[]){x, cd_gg_ints(b, 2 * rank, pads), cd_gg_num(b, x, 0)}, 0, NULL);
}

uint32_t cd_gg_gemm(cd_gg *b, uint32_t x, uint32_t y, bool tx, bool ty) {
    const cd_gattr attr[] = {cd_gg_i("transA", tx), cd_gg_i("transB", ty)};
    return cd_gg_op(b, "Gemm", 2, (const uint32_t[]){x, y}, 2, attr);
}

/* ---- the operator at work ---- */

uint32_t cd_gg_dy(const cd_gg *b, uint32_t k) {
    const uint32_t t = cd_gg_out(b, k);
    return t == CD_GRAPH_NONE ? t : b->grad[t];
}

bool cd_gg_wants(const cd_gg *b, uint32_t k) {
    const uint32_t t = cd_gg_in(b, k);
    return t != CD_GRAPH_NONE && b->need[t];
}

void cd_gg_add_to(cd_gg *b, uint32_t t, uint32_t dx) {
    if (b->st || !b->need[t]) return;
    const cd_shape s = b->g->tensor[t].shape;
    dx = cd_gg_cast(b, cd_gg_sum_to(b, dx, &s), b->g->tensor[t].dtype);
    b->grad[t] = b->grad[t] == CD_GRAPH_NONE ? dx : cd_gg_bi(b, "Add", b->grad[t], dx);
}

void cd_gg_give(cd_gg *b, uint32_t k, uint32_t dx) {
    if (cd_gg_wants(b, k)) cd_gg_add_to(b, cd_gg_in(b, k), dx);
}

const int64_t *cd_gg_attr(const cd_gg *b, const char *name, uint32_t *n) {
    const cd_gattr *a = cd_gnode_attr(b->n, name);
    *n = a && a->kind == CD_GATTR_INTS ? a->n : 0;
    return *n ? a->ints : NULL;
}

const int64_t *cd_gg_known(const cd_gg *b, uint32_t k, uint32_t *n) {
    const uint32_t t = cd_gg_in(b, k);
    *n = 0;
    if (b->st || t == CD_GRAPH_NONE || !b->g->tensor[t].value) return NULL;
    *n = (uint32_t)cd_shape_elements(cd_gg_shape(b, t));
    return b->g->tensor[t].value;
}

bool cd_gg_number(const cd_gg *b, uint32_t k, double *v) {
    const uint32_t t = cd_gg_in(b, k);
    if (b->st || t == CD_GRAPH_NONE || cd_shape_elements(cd_gg_shape(b, t)) != 1) return false;
    const cd_gtensor *x = &b->g->tensor[t];
    if (!x->value && !x->fvalue) return false;
    *v = x->value ? (double)x->value[0] : x->fvalue[0];
    return true;
}
