/* Operators of an iteration, one call each. Those that would change nothing (a reshape to the same
 * shape, a cast to the same type) are not appended: they would be tasks. */
#include <float.h>
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

/* the last two dimensions */
static uint32_t autodiff_swap_last(cd_autodiff_builder *b, uint32_t x) {
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

/* the sum over dimensions that broadcasting repeated, in shape s.
 *
 * Dimensions that the operand does not have, and those of 1 that were repeated. */
static uint32_t autodiff_sum_to(cd_autodiff_builder *b, uint32_t x, const cd_graph_shape *s) {
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
    dx = cd_autodiff_cast(b, autodiff_sum_to(b, dx, &s), b->g->tensor[t].dtype);
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

/* The one known number of operand k; false: not known. */
static bool autodiff_known_number(const cd_autodiff_builder *b, uint32_t k, double *v) {
    const uint32_t t = cd_autodiff_input(b, k);
    if (b->st || t == CD_GRAPH_NONE || cd_graph_shape_elements(cd_autodiff_shape(b, t)) != 1)
        return false;
    const cd_graph_tensor *x = &b->g->tensor[t];
    if (!x->value && !x->fvalue) return false;
    *v = x->value ? (double)x->value[0] : x->fvalue[0];
    return true;
}

/* Gradients of element-wise operators. They use the forward result y where it saves work (sigmoid,
 * tanh, exp), and are made of the same operators as ONNX networks, so that they fuse like them. */

static uint32_t mul(cd_autodiff_builder *b, uint32_t x, uint32_t y) {
    return cd_autodiff_binary(b, "Mul", x, y);
}
static uint32_t scaled(cd_autodiff_builder *b, uint32_t x, double v) {
    return v == 1 ? x : cd_autodiff_binary_scalar(b, "Mul", x, v);
}
static uint32_t one_minus(cd_autodiff_builder *b, uint32_t x) {
    return cd_autodiff_scalar_binary(b, "Sub", 1, x);
}
static uint32_t positive(cd_autodiff_builder *b, uint32_t x) {
    return cd_autodiff_binary_scalar(b, "Greater", x, 0);
}
static uint32_t xx(const cd_autodiff_builder *b) { return cd_autodiff_input(b, 0); }
static uint32_t yy(const cd_autodiff_builder *b) { return cd_autodiff_output(b, 0); }
static uint32_t dd(const cd_autodiff_builder *b) { return cd_autodiff_output_grad(b, 0); }
/* dy times what the result changes with operand 0. */
static void times(cd_autodiff_builder *b, uint32_t slope) {
    cd_autodiff_accumulate(b, 0, mul(b, dd(b), slope));
}
/* dy where c holds, else nothing. */
static uint32_t where_else_0(cd_autodiff_builder *b, uint32_t c, uint32_t dy) {
    return cd_autodiff_where(b, c, dy, cd_autodiff_const_scalar(b, dy, 0));
}

/* ---- of one operand ---- */

static void relu(cd_autodiff_builder *b) {
    cd_autodiff_accumulate(b, 0, where_else_0(b, positive(b, yy(b)), dd(b)));
}
static void sigmoid(cd_autodiff_builder *b) { times(b, mul(b, yy(b), one_minus(b, yy(b)))); }
static void tanh_(cd_autodiff_builder *b) { times(b, one_minus(b, mul(b, yy(b), yy(b)))); }
static void exp_(cd_autodiff_builder *b) { times(b, yy(b)); }
static void log_(cd_autodiff_builder *b) {
    cd_autodiff_accumulate(b, 0, cd_autodiff_binary(b, "Div", dd(b), xx(b)));
}
static void sqrt_(cd_autodiff_builder *b) {
    cd_autodiff_accumulate(b, 0, cd_autodiff_binary(b, "Div", scaled(b, dd(b), 0.5), yy(b)));
}
static void neg(cd_autodiff_builder *b) {
    cd_autodiff_accumulate(b, 0, cd_autodiff_unary(b, "Neg", dd(b)));
}
static void abs_(cd_autodiff_builder *b) { times(b, cd_autodiff_unary(b, "Sign", xx(b))); }
static void sin_(cd_autodiff_builder *b) { times(b, cd_autodiff_unary(b, "Cos", xx(b))); }
static void cos_(cd_autodiff_builder *b) {
    times(b, cd_autodiff_unary(b, "Neg", cd_autodiff_unary(b, "Sin", xx(b))));
}
static void reciprocal(cd_autodiff_builder *b) {
    times(b, cd_autodiff_unary(b, "Neg", mul(b, yy(b), yy(b))));
}
static void same_elementwise(cd_autodiff_builder *b) { cd_autodiff_accumulate(b, 0, dd(b)); }

/* exp(-x^2) * 2/sqrt(pi) */
static uint32_t bell(cd_autodiff_builder *b, uint32_t x) {
    return scaled(b, cd_autodiff_unary(b, "Exp", cd_autodiff_unary(b, "Neg", mul(b, x, x))),
                  1.1283791670955126);
}
static void erf_(cd_autodiff_builder *b) { times(b, bell(b, xx(b))); }

/* At a bound ONNX's functions stand still. */
static void clip(cd_autodiff_builder *b) {
    const double lo = cd_graph_node_float(b->n, "min", -DBL_MAX),
                 hi = cd_graph_node_float(b->n, "max", DBL_MAX);
    uint32_t dx = dd(b);
    if (cd_autodiff_needs_grad(b, 1) || cd_autodiff_needs_grad(b, 2))
        b->why = "bounds that are learned";
    if (lo > -(double)FLT_MAX)
        dx = where_else_0(b, cd_autodiff_binary_scalar(b, "Greater", xx(b), lo), dx);
    else if (cd_autodiff_input(b, 1) != CD_GRAPH_NONE)
        dx = where_else_0(b, cd_autodiff_binary(b, "Greater", xx(b), cd_autodiff_input(b, 1)), dx);
    if (hi < (double)FLT_MAX)
        dx = where_else_0(b, cd_autodiff_binary_scalar(b, "Less", xx(b), hi), dx);
    else if (cd_autodiff_input(b, 2) != CD_GRAPH_NONE)
        dx = where_else_0(b, cd_autodiff_binary(b, "Less", xx(b), cd_autodiff_input(b, 2)), dx);
    if (!b->why) cd_autodiff_accumulate(b, 0, dx);
}

static void leaky(cd_autodiff_builder *b) {
    const uint32_t dy = dd(b);
    cd_autodiff_accumulate(
        b, 0,
        cd_autodiff_where(b, positive(b, xx(b)), dy,
                          scaled(b, dy, cd_graph_node_float(b->n, "alpha", 0.01))));
}

/* q x, or p (e^x - 1): there it changes with y + p. */
static void exponential_unit(cd_autodiff_builder *b, double p, double q) {
    const uint32_t dy = dd(b);
    cd_autodiff_accumulate(
        b, 0,
        cd_autodiff_where(b, positive(b, xx(b)), scaled(b, dy, q),
                          mul(b, dy, cd_autodiff_binary_scalar(b, "Add", yy(b), p))));
}

static void elu(cd_autodiff_builder *b) {
    exponential_unit(b, cd_graph_node_float(b->n, "alpha", 1), 1);
}
static void selu(cd_autodiff_builder *b) {
    const double gamma = cd_graph_node_float(b->n, "gamma", 1.0507009873554805);
    exponential_unit(b, gamma * cd_graph_node_float(b->n, "alpha", 1.6732632423543772), gamma);
}

/* Is lo < x < hi? */
static uint32_t within(cd_autodiff_builder *b, uint32_t x, double lo, double hi) {
    return cd_autodiff_binary(b, "And", cd_autodiff_binary_scalar(b, "Greater", x, lo),
                              cd_autodiff_binary_scalar(b, "Less", x, hi));
}

static void hardsigmoid(cd_autodiff_builder *b) {
    const double alpha = cd_graph_node_float(b->n, "alpha", 0.2);
    cd_autodiff_accumulate(b, 0, where_else_0(b, within(b, yy(b), 0, 1), scaled(b, dd(b), alpha)));
}

/* 0, (2x + 3)/6, 1 */
static void hardswish(cd_autodiff_builder *b) {
    const uint32_t dy = dd(b), x = xx(b);
    const uint32_t slope =
        scaled(b, cd_autodiff_binary_scalar(b, "Add", scaled(b, x, 2), 3), 1.0 / 6);
    const uint32_t low =
        where_else_0(b, cd_autodiff_binary_scalar(b, "Greater", x, -3), mul(b, dy, slope));
    cd_autodiff_accumulate(
        b, 0, cd_autodiff_where(b, cd_autodiff_binary_scalar(b, "Less", x, 3), low, dy));
}

static void softplus(cd_autodiff_builder *b) { times(b, cd_autodiff_unary(b, "Sigmoid", xx(b))); }

static void softsign(cd_autodiff_builder *b) {
    const uint32_t d = cd_autodiff_binary_scalar(b, "Add", cd_autodiff_unary(b, "Abs", xx(b)), 1);
    cd_autodiff_accumulate(b, 0, cd_autodiff_binary(b, "Div", dd(b), mul(b, d, d)));
}

/* t + x (1 - t^2) sigmoid(x), t = tanh(softplus(x)) */
static void mish(cd_autodiff_builder *b) {
    const uint32_t x = xx(b), t = cd_autodiff_unary(b, "Tanh", cd_autodiff_unary(b, "Softplus", x));
    const uint32_t more =
        mul(b, mul(b, x, one_minus(b, mul(b, t, t))), cd_autodiff_unary(b, "Sigmoid", x));
    times(b, cd_autodiff_binary(b, "Add", t, more));
}

/* (1 + erf(x/sqrt 2))/2 + x exp(-x^2/2)/sqrt(2 pi) */
static uint32_t gelu_slope(cd_autodiff_builder *b, uint32_t x) {
    const uint32_t u = scaled(b, x, 0.7071067811865476);
    const uint32_t half =
        cd_autodiff_binary_scalar(b, "Add", scaled(b, cd_autodiff_unary(b, "Erf", u), 0.5), 0.5);
    return cd_autodiff_binary(b, "Add", half, scaled(b, mul(b, x, bell(b, u)), 0.3535533905932738));
}

/* With t = tanh(k (x + c x^3)): (1 + t)/2 + x (1 - t^2) k (1 + 3 c x^2)/2 */
static uint32_t gelu_tanh_slope(cd_autodiff_builder *b, uint32_t x) {
    const double k = 0.7978845608028654, c = 0.044715;
    const uint32_t sq = mul(b, x, x);
    const uint32_t t = cd_autodiff_unary(
        b, "Tanh",
        scaled(b, mul(b, x, cd_autodiff_binary_scalar(b, "Add", scaled(b, sq, c), 1)), k));
    const uint32_t in =
        scaled(b, cd_autodiff_binary_scalar(b, "Add", scaled(b, sq, 3 * c), 1), 0.5 * k);
    const uint32_t half = cd_autodiff_binary_scalar(b, "Add", scaled(b, t, 0.5), 0.5);
    return cd_autodiff_binary(b, "Add", half, mul(b, mul(b, x, one_minus(b, mul(b, t, t))), in));
}

static void gelu(cd_autodiff_builder *b) {
    const cd_graph_attr *how = cd_graph_node_attr(b->n, "approximate");
    const bool t = how && how->kind == CD_GRAPH_ATTR_STR && !strcmp(how->s, "tanh");
    times(b, t ? gelu_tanh_slope(b, xx(b)) : gelu_slope(b, xx(b)));
}

static void cast(cd_autodiff_builder *b) {
    cd_autodiff_accumulate(b, 0, cd_autodiff_cast(b, dd(b), b->g->tensor[xx(b)].dtype));
}

/* ---- of several ---- */

static void add(cd_autodiff_builder *b) {
    for (uint32_t k = 0; k < b->n->n_in; k++) cd_autodiff_accumulate(b, k, dd(b));
}

static void mean(cd_autodiff_builder *b) {
    const uint32_t dx = scaled(b, dd(b), 1.0 / b->n->n_in);
    for (uint32_t k = 0; k < b->n->n_in; k++) cd_autodiff_accumulate(b, k, dx);
}

static void sub(cd_autodiff_builder *b) {
    const uint32_t dy = dd(b);
    cd_autodiff_accumulate(b, 0, dy);
    if (cd_autodiff_needs_grad(b, 1))
        cd_autodiff_accumulate(
            b, 1,
            cd_autodiff_unary(
                b, "Neg", autodiff_sum_to(b, dy, cd_autodiff_shape(b, cd_autodiff_input(b, 1)))));
}

static void multiply(cd_autodiff_builder *b) {
    for (uint32_t k = 0; k < 2; k++)
        if (cd_autodiff_needs_grad(b, k))
            cd_autodiff_accumulate(b, k, mul(b, dd(b), cd_autodiff_input(b, 1 - k)));
}

static void divide(cd_autodiff_builder *b) {
    const uint32_t dy = dd(b), d = cd_autodiff_input(b, 1);
    if (cd_autodiff_needs_grad(b, 0))
        cd_autodiff_accumulate(b, 0, cd_autodiff_binary(b, "Div", dy, d));
    if (cd_autodiff_needs_grad(b, 1))
        cd_autodiff_accumulate(
            b, 1, cd_autodiff_unary(b, "Neg", cd_autodiff_binary(b, "Div", mul(b, dy, yy(b)), d)));
}

/* e x^(e-1); y log(x) */
static void power(cd_autodiff_builder *b) {
    const uint32_t dy = dd(b), x = xx(b), to = cd_autodiff_input(b, 1);
    double e;
    const bool known = autodiff_known_number(b, 1, &e);
    if (cd_autodiff_needs_grad(b, 1))
        cd_autodiff_accumulate(b, 1, mul(b, dy, mul(b, yy(b), cd_autodiff_unary(b, "Log", x))));
    if (!cd_autodiff_needs_grad(b, 0)) return;
    uint32_t slope;
    if (known && e == 2) slope = scaled(b, x, 2);
    else if (known && e == 3) slope = scaled(b, mul(b, x, x), 3);
    else if (known) slope = scaled(b, cd_autodiff_binary_scalar(b, "Pow", x, e - 1), e);
    else
        slope =
            mul(b, to, cd_autodiff_binary(b, "Pow", x, cd_autodiff_binary_scalar(b, "Sub", to, 1)));
    cd_autodiff_accumulate(b, 0, mul(b, dy, slope));
}

/* To those operands that are the result; equal ones share. */
static void extreme(cd_autodiff_builder *b) {
    uint32_t is[8], count = CD_GRAPH_NONE;
    const uint32_t n = b->n->n_in;
    if (n > sizeof is / sizeof *is) {
        b->why = "an extreme of more than 8 operands";
        return;
    }
    for (uint32_t k = 0; k < n && !b->st; k++) {
        is[k] = cd_autodiff_binary(b, "Equal", cd_autodiff_input(b, k), yy(b));
        const uint32_t one = cd_autodiff_cast(b, is[k], b->g->tensor[yy(b)].dtype);
        count = count == CD_GRAPH_NONE ? one : cd_autodiff_binary(b, "Add", count, one);
    }
    if (b->st) return;
    const uint32_t share = n > 1 ? cd_autodiff_binary(b, "Div", dd(b), count) : dd(b);
    for (uint32_t k = 0; k < n; k++)
        if (cd_autodiff_needs_grad(b, k))
            cd_autodiff_accumulate(b, k, where_else_0(b, is[k], share));
}

static void prelu(cd_autodiff_builder *b) {
    const uint32_t dy = dd(b), x = xx(b);
    if (cd_autodiff_needs_grad(b, 0))
        cd_autodiff_accumulate(
            b, 0, cd_autodiff_where(b, positive(b, x), dy, mul(b, dy, cd_autodiff_input(b, 1))));
    if (cd_autodiff_needs_grad(b, 1)) {
        const uint32_t none = cd_autodiff_const_scalar(b, dy, 0);
        cd_autodiff_accumulate(b, 1, cd_autodiff_where(b, positive(b, x), none, mul(b, dy, x)));
    }
}

static void where(cd_autodiff_builder *b) {
    const uint32_t c = xx(b), dy = dd(b);
    if (cd_autodiff_needs_grad(b, 1)) cd_autodiff_accumulate(b, 1, where_else_0(b, c, dy));
    if (cd_autodiff_needs_grad(b, 2))
        cd_autodiff_accumulate(b, 2,
                               cd_autodiff_where(b, c, cd_autodiff_const_scalar(b, dy, 0), dy));
}

const cd_autodiff_rule cd_autodiff_rules_elementwise[] = {
    {"Relu", relu},
    {"Sigmoid", sigmoid},
    {"Tanh", tanh_},
    {"Exp", exp_},
    {"Log", log_},
    {"Sqrt", sqrt_},
    {"Neg", neg},
    {"Abs", abs_},
    {"Sin", sin_},
    {"Cos", cos_},
    {"Reciprocal", reciprocal},
    {"Erf", erf_},
    {"Clip", clip},
    {"LeakyRelu", leaky},
    {"Elu", elu},
    {"Selu", selu},
    {"HardSigmoid", hardsigmoid},
    {"HardSwish", hardswish},
    {"Softplus", softplus},
    {"Softsign", softsign},
    {"Mish", mish},
    {"Gelu", gelu},
    {"Cast", cast},
    {"CastLike", cast},
    {"Identity", same_elementwise},
    {"Dropout", same_elementwise},
    {"Add", add},
    {"Sum", add},
    {"Mean", mean},
    {"Sub", sub},
    {"Mul", multiply},
    {"Div", divide},
    {"Pow", power},
    {"Max", extreme},
    {"Min", extreme},
    {"PRelu", prelu},
    {"Where", where},
    {"Floor", NULL},
    {"Ceil", NULL},
    {"Round", NULL},
    {"Sign", NULL},
    {NULL, NULL},
};

/* Gradients of products: two products each, with the operands transposed in place. */

/* y = alpha op(A) op(B) + beta C: dA = alpha dy op(B)', dB = alpha op(A)' dy, each transposed as
 * its operand was. */
static void gemm(cd_autodiff_builder *b) {
    const bool ta = cd_graph_node_int(b->n, "transA", 0) != 0,
               tb = cd_graph_node_int(b->n, "transB", 0) != 0;
    const double alpha = cd_graph_node_float(b->n, "alpha", 1),
                 beta = cd_graph_node_float(b->n, "beta", 1);
    const uint32_t dy = cd_autodiff_output_grad(b, 0), x = cd_autodiff_input(b, 0),
                   y = cd_autodiff_input(b, 1);
    if (cd_autodiff_needs_grad(b, 2))
        cd_autodiff_accumulate(
            b, 2,
            beta == 1
                ? dy
                : cd_autodiff_binary_scalar(
                      b, "Mul",
                      autodiff_sum_to(b, dy, cd_autodiff_shape(b, cd_autodiff_input(b, 2))), beta));
    const uint32_t d = alpha == 1 || !(cd_autodiff_needs_grad(b, 0) || cd_autodiff_needs_grad(b, 1))
                           ? dy
                           : cd_autodiff_binary_scalar(b, "Mul", dy, alpha);
    if (cd_autodiff_needs_grad(b, 1))
        cd_autodiff_accumulate(
            b, 1, tb ? cd_autodiff_gemm(b, d, x, true, ta) : cd_autodiff_gemm(b, x, d, !ta, false));
    if (cd_autodiff_needs_grad(b, 0))
        cd_autodiff_accumulate(
            b, 0, ta ? cd_autodiff_gemm(b, y, d, tb, true) : cd_autodiff_gemm(b, d, y, false, !tb));
}

/* [.., M, N] as [rows, N]. */
static uint32_t rows(cd_autodiff_builder *b, uint32_t x) {
    const cd_graph_shape s = *cd_autodiff_shape(b, x);
    if (b->st || !s.rank) return x;
    const int64_t k = s.dim[s.rank - 1];
    const cd_graph_shape two = {2, {k ? cd_graph_shape_elements(&s) / k : 0, k}};
    return cd_autodiff_reshape(b, x, &two);
}

/* With dimensions of 1 where a vector has none. */
static uint32_t matrix(cd_autodiff_builder *b, uint32_t x, bool row) {
    const cd_graph_shape s = *cd_autodiff_shape(b, x);
    const cd_graph_shape two = {2, {row ? 1 : s.dim[0], row ? s.dim[0] : 1}};
    return s.rank == 1 ? cd_autodiff_reshape(b, x, &two) : x;
}

/* A matrix for all batches: its gradient is one product over all rows. */
static void one_matrix(cd_autodiff_builder *b, uint32_t x, uint32_t y, uint32_t dy) {
    const cd_graph_shape sx = *cd_autodiff_shape(b, x),
                         sa = *cd_autodiff_shape(b, cd_autodiff_input(b, 0)),
                         sb = *cd_autodiff_shape(b, cd_autodiff_input(b, 1));
    const uint32_t d = rows(b, dy);
    if (cd_autodiff_needs_grad(b, 1))
        cd_autodiff_accumulate(
            b, 1, cd_autodiff_reshape(b, cd_autodiff_gemm(b, rows(b, x), d, true, false), &sb));
    if (cd_autodiff_needs_grad(b, 0))
        cd_autodiff_accumulate(
            b, 0,
            cd_autodiff_reshape(
                b, cd_autodiff_reshape(b, cd_autodiff_gemm(b, d, y, false, true), &sx), &sa));
}

/* Vectors get a dimension of 1, which dy needs too. Batches that broadcast are summed. */
static void matmul(cd_autodiff_builder *b) {
    const cd_graph_shape sa = *cd_autodiff_shape(b, cd_autodiff_input(b, 0)),
                         sb = *cd_autodiff_shape(b, cd_autodiff_input(b, 1));
    const uint32_t x = matrix(b, cd_autodiff_input(b, 0), true),
                   y = matrix(b, cd_autodiff_input(b, 1), false);
    cd_graph_shape full = *cd_autodiff_shape(b, cd_autodiff_output(b, 0));
    if (sb.rank == 1) full.dim[full.rank++] = 1;
    if (sa.rank == 1) { /* a row that the product lost */
        const int64_t last = full.dim[full.rank - 1];
        full.dim[full.rank - 1] = 1;
        full.dim[full.rank++] = last;
    }
    const uint32_t dy = cd_autodiff_reshape(b, cd_autodiff_output_grad(b, 0), &full);
    if (cd_autodiff_shape(b, y)->rank == 2) {
        one_matrix(b, x, y, dy);
        return;
    }
    if (cd_autodiff_needs_grad(b, 1)) {
        const cd_graph_shape s = *cd_autodiff_shape(b, y);
        cd_autodiff_accumulate(
            b, 1,
            cd_autodiff_reshape(
                b,
                autodiff_sum_to(b, cd_autodiff_binary(b, "MatMul", autodiff_swap_last(b, x), dy),
                                &s),
                &sb));
    }
    if (cd_autodiff_needs_grad(b, 0)) {
        const cd_graph_shape s = *cd_autodiff_shape(b, x);
        cd_autodiff_accumulate(
            b, 0,
            cd_autodiff_reshape(
                b,
                autodiff_sum_to(b, cd_autodiff_binary(b, "MatMul", dy, autodiff_swap_last(b, y)),
                                &s),
                &sa));
    }
}

const cd_autodiff_rule cd_autodiff_rules_matmul[] = {
    {"Gemm", gemm}, {"MatMul", matmul}, {NULL, NULL}};
