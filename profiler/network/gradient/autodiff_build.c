/* Operators of an iteration, one call each. Those that would change nothing (a reshape to the same
 * shape, a cast to the same type) are not appended: they would be tasks. */
#include <stdio.h>
#include <string.h>

#include "profiler/network/gradient/autodiff_internal.h"

enum { OPSET = 18 };

uint32_t cd_autodiff_fail(cd_autodiff_builder *b, cdmpp_status st) {
    if (!b->st) b->st = st;
    return CD_GRAPH_NONE;
}

const cd_graph_shape *cd_autodiff_shape(const cd_autodiff_builder *b, uint32_t t) {
    static const cd_graph_shape none = {0, {0}};
    return b->st || t == CD_GRAPH_NONE ? &none : &b->g->tensor[t].shape;
}

void cd_autodiff_op_outputs(cd_autodiff_builder *b, const char *op, uint32_t n_in,
                            const uint32_t *in, uint32_t n_attr, const cd_graph_attr *attr,
                            uint32_t n_out, uint32_t *out) {
    char name[160];
    for (uint32_t k = 0; k < n_out; k++) out[k] = CD_GRAPH_NONE;
    if (b->st) return;
    const int opset = b->g->opset;
    snprintf(name, sizeof name, "%.100s/%s_%u", b->at, op, b->count++);
    b->g->opset = OPSET;
    b->st = cd_graph_add(b->g, name, op, in, n_in, attr, n_attr, out, n_out, b->err);
    b->g->opset = opset;
}

uint32_t cd_autodiff_op(cd_autodiff_builder *b, const char *op, uint32_t n_in, const uint32_t *in,
                        uint32_t n_attr, const cd_graph_attr *attr) {
    uint32_t y;
    cd_autodiff_op_outputs(b, op, n_in, in, n_attr, attr, 1, &y);
    return y;
}

uint32_t cd_autodiff_unary(cd_autodiff_builder *b, const char *op, uint32_t x) {
    return cd_autodiff_op(b, op, 1, &x, 0, NULL);
}
uint32_t cd_autodiff_binary(cd_autodiff_builder *b, const char *op, uint32_t x, uint32_t y) {
    return cd_autodiff_op(b, op, 2, (const uint32_t[]){x, y}, 0, NULL);
}
uint32_t cd_autodiff_where(cd_autodiff_builder *b, uint32_t c, uint32_t x, uint32_t y) {
    return cd_autodiff_op(b, "Where", 3, (const uint32_t[]){c, x, y}, 0, NULL);
}

static const char *constant_name(cd_autodiff_builder *b, char buf[160]) {
    snprintf(buf, 160, "%.100s/c_%u", b->at, b->count++);
    return buf;
}

uint32_t cd_autodiff_const_scalar(cd_autodiff_builder *b, uint32_t like, double v) {
    char name[160];
    const cd_graph_shape s = {0, {0}};
    uint32_t t = CD_GRAPH_NONE;
    if (b->st) return t;
    b->st = cd_graph_constant(b->g, constant_name(b, name), b->g->tensor[like].dtype, &s, NULL, &v,
                              &t, b->err);
    return t;
}

uint32_t cd_autodiff_binary_scalar(cd_autodiff_builder *b, const char *op, uint32_t x, double v) {
    return cd_autodiff_binary(b, op, x, cd_autodiff_const_scalar(b, x, v));
}
uint32_t cd_autodiff_scalar_binary(cd_autodiff_builder *b, const char *op, double v, uint32_t x) {
    return cd_autodiff_binary(b, op, cd_autodiff_const_scalar(b, x, v), x);
}

uint32_t cd_autodiff_const_ints(cd_autodiff_builder *b, uint32_t n, const int64_t *v) {
    char name[160];
    const cd_graph_shape s = {1, {n}};
    uint32_t t = CD_GRAPH_NONE;
    if (!b->st)
        b->st = cd_graph_constant(b->g, constant_name(b, name), CD_I64, &s, v, NULL, &t, b->err);
    return t;
}

/* ONNX's number of a type; 0: none. */
static int64_t number_of(cd_dtype t) {
    cd_dtype u;
    for (int64_t k = 1; k <= 16; k++)
        if (cd_graph_dtype(k, &u) && u == t) return k;
    return 0;
}

uint32_t cd_autodiff_cast(cd_autodiff_builder *b, uint32_t x, cd_dtype t) {
    const cd_graph_attr to = cd_autodiff_attr_int("to", number_of(t));
    if (b->st || b->g->tensor[x].dtype == t) return x;
    return cd_autodiff_op(b, "Cast", 1, &x, 1, &to);
}

static bool same(const cd_graph_shape *a, const cd_graph_shape *s) {
    return a->rank == s->rank && !memcmp(a->dim, s->dim, s->rank * sizeof *s->dim);
}

uint32_t cd_autodiff_reshape(cd_autodiff_builder *b, uint32_t x, const cd_graph_shape *s) {
    if (b->st || same(cd_autodiff_shape(b, x), s)) return x;
    const cd_graph_attr zero = cd_autodiff_attr_int("allowzero", 1);
    return cd_autodiff_op(b, "Reshape", 2,
                          (const uint32_t[]){x, cd_autodiff_const_ints(b, s->rank, s->dim)}, 1,
                          &zero);
}

uint32_t cd_autodiff_transpose(cd_autodiff_builder *b, uint32_t x, uint32_t rank,
                               const int64_t *perm) {
    const cd_graph_attr p = cd_autodiff_attr_ints("perm", rank, perm);
    return cd_autodiff_op(b, "Transpose", 1, &x, 1, &p);
}

uint32_t cd_autodiff_swap_last(cd_autodiff_builder *b, uint32_t x) {
    const uint32_t rank = cd_autodiff_shape(b, x)->rank;
    int64_t perm[CD_GRAPH_MAX_RANK] = {0};
    if (b->st) return x;
    for (uint32_t d = 0; d < rank; d++) perm[d] = d;
    perm[rank - 1] = rank - 2;
    perm[rank - 2] = rank - 1;
    return cd_autodiff_transpose(b, x, rank, perm);
}

uint32_t cd_autodiff_expand(cd_autodiff_builder *b, uint32_t x, const cd_graph_shape *s) {
    if (b->st || same(cd_autodiff_shape(b, x), s)) return x;
    return cd_autodiff_binary(b, "Expand", x, cd_autodiff_const_ints(b, s->rank, s->dim));
}

/* It is made of constants alone, so the graph folds it. */
uint32_t cd_autodiff_zeros(cd_autodiff_builder *b, const cd_graph_shape *s, uint32_t like) {
    return cd_autodiff_expand(b, cd_autodiff_const_scalar(b, like, 0), s);
}

uint32_t cd_autodiff_reduce(cd_autodiff_builder *b, const char *op, uint32_t x, uint32_t axes,
                            bool keep) {
    int64_t v[CD_GRAPH_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t d = 0; d < CD_GRAPH_MAX_RANK; d++)
        if (cd_autodiff_has_axis(axes, d)) v[n++] = d;
    const cd_graph_attr attr[] = {cd_autodiff_attr_ints("axes", n, v),
                                  cd_autodiff_attr_int("keepdims", keep)};
    return n ? cd_autodiff_op(b, op, 1, &x, 2, attr) : x;
}

/* Dimensions that the operand does not have, and those of 1 that were repeated. */
uint32_t cd_autodiff_sum_to(cd_autodiff_builder *b, uint32_t x, const cd_graph_shape *s) {
    const cd_graph_shape full = *cd_autodiff_shape(b, x);
    uint32_t axes = 0;
    if (b->st || same(&full, s)) return x;
    for (uint32_t d = 0; d < full.rank; d++) {
        const uint32_t lead = full.rank - s->rank;
        if (d < lead || (s->dim[d - lead] == 1 && full.dim[d] != 1)) axes |= 1U << d;
    }
    return cd_autodiff_reshape(b, cd_autodiff_reduce(b, "ReduceSum", x, axes, false), s);
}

uint32_t cd_autodiff_slice(cd_autodiff_builder *b, uint32_t x, const int64_t *start,
                           const cd_graph_shape *s) {
    const cd_graph_shape in = *cd_autodiff_shape(b, x);
    int64_t from[CD_GRAPH_MAX_RANK], to[CD_GRAPH_MAX_RANK], axis[CD_GRAPH_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t d = 0; d < in.rank; d++) {
        if (!start[d] && s->dim[d] == in.dim[d]) continue;
        axis[n] = d;
        from[n] = start[d];
        to[n++] = start[d] + s->dim[d];
    }
    if (b->st || !n) return x;
    const uint32_t in4[4] = {x, cd_autodiff_const_ints(b, n, from),
                             cd_autodiff_const_ints(b, n, to), cd_autodiff_const_ints(b, n, axis)};
    return cd_autodiff_op(b, "Slice", 4, in4, 0, NULL);
}

uint32_t cd_autodiff_pad(cd_autodiff_builder *b, uint32_t x, const int64_t *before,
                         const int64_t *after) {
    const uint32_t rank = cd_autodiff_shape(b, x)->rank;
    int64_t pads[2 * CD_GRAPH_MAX_RANK];
    bool any = false;
    for (uint32_t d = 0; d < rank; d++) {
        pads[d] = before[d];
        pads[d + rank] = after[d];
        any = any || before[d] || after[d];
    }
    if (b->st || !any) return x;
    return cd_autodiff_op(b, "Pad", 3,
                          (const uint32_t[]){x, cd_autodiff_const_ints(b, 2 * rank, pads),
                                             cd_autodiff_const_scalar(b, x, 0)},
                          0, NULL);
}

uint32_t cd_autodiff_gemm(cd_autodiff_builder *b, uint32_t x, uint32_t y, bool tx, bool ty) {
    const cd_graph_attr attr[] = {cd_autodiff_attr_int("transA", tx),
                                  cd_autodiff_attr_int("transB", ty)};
    return cd_autodiff_op(b, "Gemm", 2, (const uint32_t[]){x, y}, 2, attr);
}

/* ---- the operator at work ---- */

uint32_t cd_autodiff_output_grad(const cd_autodiff_builder *b, uint32_t k) {
    const uint32_t t = cd_autodiff_output(b, k);
    return t == CD_GRAPH_NONE ? t : b->grad[t];
}

bool cd_autodiff_needs_grad(const cd_autodiff_builder *b, uint32_t k) {
    const uint32_t t = cd_autodiff_input(b, k);
    return t != CD_GRAPH_NONE && b->need[t];
}

/* The first gradient is taken as it is, later ones are added. */
void cd_autodiff_accumulate_tensor(cd_autodiff_builder *b, uint32_t t, uint32_t dx) {
    if (b->st || !b->need[t]) return;
    const cd_graph_shape s = b->g->tensor[t].shape;
    dx = cd_autodiff_cast(b, cd_autodiff_sum_to(b, dx, &s), b->g->tensor[t].dtype);
    b->grad[t] = b->grad[t] == CD_GRAPH_NONE ? dx : cd_autodiff_binary(b, "Add", b->grad[t], dx);
}

void cd_autodiff_accumulate(cd_autodiff_builder *b, uint32_t k, uint32_t dx) {
    if (cd_autodiff_needs_grad(b, k)) cd_autodiff_accumulate_tensor(b, cd_autodiff_input(b, k), dx);
}

const int64_t *cd_autodiff_get_ints(const cd_autodiff_builder *b, const char *name, uint32_t *n) {
    const cd_graph_attr *a = cd_graph_node_attr(b->n, name);
    *n = a && a->kind == CD_GRAPH_ATTR_INTS ? a->n : 0;
    return *n ? a->ints : NULL;
}

const int64_t *cd_autodiff_known_ints(const cd_autodiff_builder *b, uint32_t k, uint32_t *n) {
    const uint32_t t = cd_autodiff_input(b, k);
    *n = 0;
    if (b->st || t == CD_GRAPH_NONE || !b->g->tensor[t].value) return NULL;
    *n = (uint32_t)cd_graph_shape_elements(cd_autodiff_shape(b, t));
    return b->g->tensor[t].value;
}

bool cd_autodiff_known_number(const cd_autodiff_builder *b, uint32_t k, double *v) {
    const uint32_t t = cd_autodiff_input(b, k);
    if (b->st || t == CD_GRAPH_NONE || cd_graph_shape_elements(cd_autodiff_shape(b, t)) != 1)
        return false;
    const cd_graph_tensor *x = &b->g->tensor[t];
    if (!x->value && !x->fvalue) return false;
    *v = x->value ? (double)x->value[0] : x->fvalue[0];
    return true;
}
