/* Normalisations: taken apart in the forward part, so that means and deviations are kept, and their
 * gradients.
 *
 *   xh = (x - mean) inv, y = xh scale + shift, N elements normalised over
 *   dx = inv (dyg - mean(dyg) - xh mean(dyg xh)), dyg = dy scale
 *
 * A batch norm's sums of dy and dy xh are the gradients of shift and scale, too: two reductions,
 * not four. xh is computed again where it is needed, so that it is part of what reads it and never
 * in memory. */
#include <string.h>

#include "profiler/network/gradient/autodiff_internal.h"

/* ---- forward ---- */

/* Backward needs mean, inverse deviation and the range of nodes. */
static void remember(cd_autodiff_builder *b, const cd_autodiff_norm *v) {
    if (b->st) return;
    if (CD_GROW_IN(&b->g->arena, b->norm, b->n_norm, b->cap_norm))
        cd_autodiff_fail(b, CD_FAIL(b->err, ENOMEM, "out of memory for operators"));
    else b->norm[b->n_norm++] = *v;
}

static uint32_t normal(cd_autodiff_builder *b, const cd_autodiff_norm *v) {
    return cd_autodiff_binary(b, "Mul", cd_autodiff_binary(b, "Sub", v->x, v->mean), v->inv);
}

/* The normalisation in single operators; shift_full: CD_GRAPH_NONE: absent. */
static uint32_t apart(cd_autodiff_builder *b, cd_autodiff_norm *v, uint32_t shift_full,
                      double eps) {
    v->first = b->g->n_node;
    v->mean = cd_autodiff_reduce(b, "ReduceMean", v->x, v->axes, true);
    const uint32_t d = cd_autodiff_binary(b, "Sub", v->x, v->mean);
    const uint32_t var =
        cd_autodiff_reduce(b, "ReduceMean", cd_autodiff_binary(b, "Mul", d, d), v->axes, true);
    v->inv = cd_autodiff_unary(
        b, "Reciprocal",
        cd_autodiff_unary(b, "Sqrt", cd_autodiff_binary_scalar(b, "Add", var, eps)));
    uint32_t y = normal(b, v);
    if (v->scale != CD_GRAPH_NONE) y = cd_autodiff_binary(b, "Mul", y, v->scale_full);
    if (shift_full != CD_GRAPH_NONE) y = cd_autodiff_binary(b, "Add", y, shift_full);
    v->last = b->g->n_node - 1;
    remember(b, v);
    return y;
}

/* [C] against the channels of x: [C,1,..]. */
static uint32_t channels(cd_autodiff_builder *b, uint32_t c, uint32_t rank) {
    cd_graph_shape s = {rank > 1 ? rank - 1 : 1,
                        {cd_graph_shape_elements(cd_autodiff_shape(b, c))}};
    for (uint32_t d = 1; d < s.rank; d++) s.dim[d] = 1;
    return cd_autodiff_reshape(b, c, &s);
}

static uint32_t all_but(uint32_t rank, uint32_t d) { return ((1U << rank) - 1) & ~(1U << d); }

static uint32_t batch_norm(cd_autodiff_builder *b, const cd_graph_node *n, const uint32_t *in) {
    const uint32_t rank = cd_autodiff_shape(b, in[0])->rank;
    cd_autodiff_norm v = {.x = in[0],
                          .scale = in[1],
                          .shift = in[2],
                          .axes = all_but(rank, rank > 1),
                          .param = all_but(rank, rank > 1)};
    v.scale_full = channels(b, in[1], rank);
    const uint32_t shift = channels(b, in[2], rank);
    return apart(b, &v, shift, cd_graph_node_float(n, "epsilon", 1e-5));
}

static uint32_t layer_norm(cd_autodiff_builder *b, const cd_graph_node *n, const uint32_t *in) {
    const uint32_t rank = cd_autodiff_shape(b, in[0])->rank,
                   axis = (uint32_t)cd_graph_node_int(n, "axis", 0);
    const uint32_t shift = n->n_in > 2 ? in[2] : CD_GRAPH_NONE;
    cd_autodiff_norm v = {
        .x = in[0], .scale = in[1], .scale_full = in[1], .shift = shift, .param = (1U << axis) - 1};
    v.axes = ((1U << rank) - 1) & ~v.param;
    return apart(b, &v, shift, cd_graph_node_float(n, "epsilon", 1e-5));
}

/* Of groups of channels; scale and shift are operators of their own. */
static uint32_t group_norm(cd_autodiff_builder *b, const cd_graph_node *n, const uint32_t *in,
                           int64_t groups) {
    const cd_graph_shape s = *cd_autodiff_shape(b, in[0]);
    const int64_t of = s.dim[0] * groups;
    const cd_graph_shape by = {3, {s.dim[0], groups, of ? cd_graph_shape_elements(&s) / of : 0}};
    cd_autodiff_norm v = {.x = cd_autodiff_reshape(b, in[0], &by),
                          .scale = CD_GRAPH_NONE,
                          .shift = CD_GRAPH_NONE,
                          .axes = 4};
    const uint32_t y = cd_autodiff_reshape(
        b, apart(b, &v, CD_GRAPH_NONE, cd_graph_node_float(n, "epsilon", 1e-5)), &s);
    return cd_autodiff_binary(b, "Add", cd_autodiff_binary(b, "Mul", y, channels(b, in[1], s.rank)),
                              channels(b, in[2], s.rank));
}

bool cd_autodiff_decompose_norm(cd_autodiff_builder *b, const cd_graph_node *n, const uint32_t *in,
                                uint32_t *out) {
    const bool batch = !strcmp(n->op, "BatchNormalization");
    if (batch && cd_autodiff_shape(b, in[0])->rank > 1) out[0] = batch_norm(b, n, in);
    else if (!strcmp(n->op, "LayerNormalization") && n->n_out == 1) out[0] = layer_norm(b, n, in);
    else if (!strcmp(n->op, "InstanceNormalization"))
        out[0] = group_norm(b, n, in, cd_autodiff_shape(b, in[0])->dim[1]);
    else if (!strcmp(n->op, "GroupNormalization") &&
             cd_graph_shape_elements(cd_autodiff_shape(b, in[1])) ==
                 cd_autodiff_shape(b, in[0])->dim[1])
        out[0] = group_norm(b, n, in, cd_graph_node_int(n, "num_groups", 1));
    else return false;
    for (uint32_t k = 1; k < n->n_out; k++) out[k] = CD_GRAPH_NONE;
    return true;
}

/* ---- backward ---- */

static uint32_t scaled(cd_autodiff_builder *b, const cd_autodiff_norm *v, uint32_t dy) {
    return v->scale == CD_GRAPH_NONE ? dy : cd_autodiff_binary(b, "Mul", dy, v->scale_full);
}

static void give_param(cd_autodiff_builder *b, uint32_t to, uint32_t sum) {
    if (to != CD_GRAPH_NONE && !b->st && b->need[to])
        cd_autodiff_accumulate_tensor(b, to, cd_autodiff_reshape(b, sum, cd_autodiff_shape(b, to)));
}

/* Where scale and shift have exactly the dimensions that are not normalised over, their gradients
 * are the sums that dx needs. */
static uint32_t batch_back(cd_autodiff_builder *b, const cd_autodiff_norm *v, uint32_t dy) {
    const cd_graph_shape s = *cd_autodiff_shape(b, v->x);
    double n = 1;
    for (uint32_t d = 0; d < s.rank; d++)
        n *= cd_autodiff_has_axis(v->axes, d) ? (double)s.dim[d] : 1;
    const uint32_t shift = cd_autodiff_reduce(b, "ReduceSum", dy, v->axes, true);
    const uint32_t scale = cd_autodiff_reduce(
        b, "ReduceSum", cd_autodiff_binary(b, "Mul", dy, normal(b, v)), v->axes, true);
    give_param(b, v->shift, shift);
    give_param(b, v->scale, scale);
    if (!b->need[v->x]) return CD_GRAPH_NONE;
    const uint32_t less = cd_autodiff_binary(
        b, "Add", cd_autodiff_binary_scalar(b, "Div", shift, n),
        cd_autodiff_binary(b, "Mul", normal(b, v), cd_autodiff_binary_scalar(b, "Div", scale, n)));
    return cd_autodiff_binary(b, "Mul", cd_autodiff_binary(b, "Sub", dy, less),
                              cd_autodiff_binary(b, "Mul", v->scale_full, v->inv));
}

/* The general form: means of dyg and of dyg*xh over the normalised dimensions. */
static uint32_t layer_back(cd_autodiff_builder *b, const cd_autodiff_norm *v, uint32_t dy) {
    if (v->shift != CD_GRAPH_NONE && b->need[v->shift])
        give_param(b, v->shift, cd_autodiff_reduce(b, "ReduceSum", dy, v->param, false));
    if (v->scale != CD_GRAPH_NONE && b->need[v->scale])
        give_param(b, v->scale,
                   cd_autodiff_reduce(b, "ReduceSum",
                                      cd_autodiff_binary(b, "Mul", dy, normal(b, v)), v->param,
                                      false));
    if (b->st || !b->need[v->x]) return CD_GRAPH_NONE;
    const uint32_t one = cd_autodiff_reduce(b, "ReduceMean", scaled(b, v, dy), v->axes, true);
    const uint32_t two = cd_autodiff_reduce(
        b, "ReduceMean", cd_autodiff_binary(b, "Mul", scaled(b, v, dy), normal(b, v)), v->axes,
        true);
    const uint32_t less =
        cd_autodiff_binary(b, "Add", one, cd_autodiff_binary(b, "Mul", normal(b, v), two));
    return cd_autodiff_binary(b, "Mul", cd_autodiff_binary(b, "Sub", scaled(b, v, dy), less),
                              v->inv);
}

void cd_autodiff_norm_backward(cd_autodiff_builder *b, const cd_autodiff_norm *v) {
    const uint32_t dy = b->grad[b->g->node[v->last].out[0]];
    if (b->st || dy == CD_GRAPH_NONE) return;
    const bool alike = v->scale != CD_GRAPH_NONE && v->param == v->axes;
    const uint32_t dx = alike ? batch_back(b, v, dy) : layer_back(b, v, dy);
    if (dx != CD_GRAPH_NONE) cd_autodiff_accumulate_tensor(b, v->x, dx);
}

/* ---- softmax: y (dy - sum(dy y)), over the dimensions that it runs over together ---- */

static uint32_t over(const cd_autodiff_builder *b) {
    uint32_t n, bits = 0;
    const int64_t *v = cd_autodiff_get_ints(b, "axes", &n);
    for (uint32_t i = 0; i < n; i++) bits |= 1U << v[i];
    return bits;
}

static void softmax(cd_autodiff_builder *b) {
    const uint32_t dy = cd_autodiff_output_grad(b, 0), y = cd_autodiff_output(b, 0);
    const uint32_t sum =
        cd_autodiff_reduce(b, "ReduceSum", cd_autodiff_binary(b, "Mul", dy, y), over(b), true);
    cd_autodiff_accumulate(b, 0,
                           cd_autodiff_binary(b, "Mul", y, cd_autodiff_binary(b, "Sub", dy, sum)));
}

static void log_softmax(cd_autodiff_builder *b) {
    const uint32_t dy = cd_autodiff_output_grad(b, 0),
                   sum = cd_autodiff_reduce(b, "ReduceSum", dy, over(b), true);
    cd_autodiff_accumulate(
        b, 0,
        cd_autodiff_binary(b, "Sub", dy,
                           cd_autodiff_binary(b, "Mul",
                                              cd_autodiff_unary(b, "Exp", cd_autodiff_output(b, 0)),
                                              sum)));
}

/* ---- local response: y = x s^-beta, s = bias + alpha mean(x^2 of near channels) ---- */

/* Mean over windows of channels; `back`: over the windows that a channel is in. */
static uint32_t near_mean(cd_autodiff_builder *b, uint32_t x, bool back) {
    const cd_graph_shape s = *cd_autodiff_shape(b, x);
    const int64_t size = cd_graph_node_int(b->n, "size", 1), one = (size - 1) / 2,
                  two = size - 1 - one, n = s.dim[0] * s.dim[1];
    const cd_graph_shape four = {4,
                                 {s.dim[0], 1, s.dim[1], n ? cd_graph_shape_elements(&s) / n : 0}};
    const int64_t kernel[] = {size, 1}, pads[] = {back ? two : one, 0, back ? one : two, 0};
    const cd_graph_attr attr[] = {cd_autodiff_attr_ints("kernel_shape", 2, kernel),
                                  cd_autodiff_attr_ints("pads", 4, pads),
                                  cd_autodiff_attr_int("count_include_pad", 1)};
    const uint32_t in = cd_autodiff_reshape(b, x, &four);
    return cd_autodiff_reshape(b, cd_autodiff_op(b, "AveragePool", 1, &in, 3, attr), &s);
}

/* dy s^-beta - 2 alpha beta x mean(dy x s^(-beta - 1)) */
static void lrn(cd_autodiff_builder *b) {
    const double alpha = cd_graph_node_float(b->n, "alpha", 1e-4),
                 beta = cd_graph_node_float(b->n, "beta", 0.75),
                 bias = cd_graph_node_float(b->n, "bias", 1);
    const uint32_t x = cd_autodiff_input(b, 0), dy = cd_autodiff_output_grad(b, 0);
    const uint32_t mean = near_mean(b, cd_autodiff_binary(b, "Mul", x, x), false),
                   s = cd_autodiff_binary_scalar(
                       b, "Add", cd_autodiff_binary_scalar(b, "Mul", mean, alpha), bias);
    const uint32_t d =
        cd_autodiff_binary(b, "Mul", dy, cd_autodiff_binary_scalar(b, "Pow", s, -beta));
    const uint32_t all =
        near_mean(b, cd_autodiff_binary(b, "Div", cd_autodiff_binary(b, "Mul", d, x), s), true);
    cd_autodiff_accumulate(
        b, 0,
        cd_autodiff_binary(
            b, "Sub", d,
            cd_autodiff_binary(b, "Mul", cd_autodiff_binary_scalar(b, "Mul", x, 2 * alpha * beta),
                               all)));
}

const cd_autodiff_rule cd_autodiff_rules_norm[] = {
    {"LRN", lrn}, {"Softmax", softmax}, {"LogSoftmax", log_softmax}, {NULL, NULL}};
