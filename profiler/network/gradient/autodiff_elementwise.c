/* Gradients of element-wise operators. They use the forward result y where it saves work (sigmoid,
 * tanh, exp), and are made of the same operators as ONNX networks, so that they fuse like them. */
#include <float.h>
#include <string.h>

#include "profiler/network/gradient/autodiff_internal.h"

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
static void same(cd_autodiff_builder *b) { cd_autodiff_accumulate(b, 0, dd(b)); }

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
                b, "Neg",
                cd_autodiff_sum_to(b, dy, cd_autodiff_shape(b, cd_autodiff_input(b, 1)))));
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
    const bool known = cd_autodiff_known_number(b, 1, &e);
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
    {"Identity", same},
    {"Dropout", same},
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
