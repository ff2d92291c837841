/* Gradients of pooling and of reductions. Pooling's are operators of our own (MaxPoolGrad,
 * AveragePoolGrad), reductions' are made of ONNX's. */
#include <string.h>

#include "profiler/network/gradient/autodiff_internal.h"

/* The window as the operator had it, for the operator that goes back. */
static void window_back(cd_autodiff_builder *b, const char *op, uint32_t n_in, const uint32_t *in) {
    static const char *const names[] = {"kernel_shape", "strides", "dilations", "pads"};
    cd_graph_attr attr[8];
    uint32_t n = 0, k;
    for (int i = 0; i < 4; i++) {
        const int64_t *v = cd_autodiff_get_ints(b, names[i], &k);
        if (v) attr[n++] = cd_autodiff_attr_ints(names[i], k, v);
    }
    attr[n++] = cd_autodiff_attr_int("ceil_mode", cd_graph_node_int(b->n, "ceil_mode", 0));
    if (cd_graph_node_attr(b->n, "count_include_pad"))
        attr[n++] = cd_autodiff_attr_int("count_include_pad",
                                         cd_graph_node_int(b->n, "count_include_pad", 0));
    cd_autodiff_accumulate(b, 0, cd_autodiff_op(b, op, n_in, in, n, attr));
}

static void max_pool(cd_autodiff_builder *b) {
    window_back(b, "MaxPoolGrad", 2,
                (const uint32_t[]){cd_autodiff_input(b, 0), cd_autodiff_output_grad(b, 0)});
}

/* Of the operand only its shape counts. */
static void average_pool(cd_autodiff_builder *b) {
    window_back(b, "AveragePoolGrad", 2,
                (const uint32_t[]){cd_autodiff_input(b, 0), cd_autodiff_output_grad(b, 0)});
}

static void global_average(cd_autodiff_builder *b) {
    const cd_graph_shape x = *cd_autodiff_shape(b, cd_autodiff_input(b, 0));
    double n = 1;
    for (uint32_t d = 2; d < x.rank; d++) n *= (double)x.dim[d];
    cd_autodiff_accumulate(
        b, 0,
        cd_autodiff_expand(b, cd_autodiff_binary_scalar(b, "Div", cd_autodiff_output_grad(b, 0), n),
                           &x));
}

/* Equal ones share, as in PyTorch's amax: dy/their number, where x is the result. `axes` are
 * reduced, y and dy have them. */
static uint32_t to_extremes(cd_autodiff_builder *b, uint32_t y, uint32_t dy, uint32_t axes) {
    const uint32_t is = cd_autodiff_binary(b, "Equal", cd_autodiff_input(b, 0), y);
    if (b->st) return CD_GRAPH_NONE;
    const uint32_t count = cd_autodiff_reduce(
        b, "ReduceSum", cd_autodiff_cast(b, is, b->g->tensor[dy].dtype), axes, true);
    return cd_autodiff_where(b, is, cd_autodiff_binary(b, "Div", dy, count),
                             cd_autodiff_const_scalar(b, dy, 0));
}

static void global_max(cd_autodiff_builder *b) {
    const uint32_t rank = cd_autodiff_shape(b, cd_autodiff_input(b, 0))->rank;
    cd_autodiff_accumulate(b, 0,
                           to_extremes(b, cd_autodiff_output(b, 0), cd_autodiff_output_grad(b, 0),
                                       ((1U << rank) - 1) & ~3U));
}

/* ---- reductions ---- */

/* The reduced shape with its dimensions kept; the dimensions that went, as bits. */
static cd_graph_shape kept(cd_autodiff_builder *b, double *count, uint32_t *axes) {
    cd_graph_shape s = *cd_autodiff_shape(b, cd_autodiff_input(b, 0));
    uint32_t n;
    const int64_t *v = cd_autodiff_get_ints(b, "axes", &n);
    *count = 1;
    *axes = 0;
    for (uint32_t i = 0; i < n; i++) {
        *axes |= 1U << v[i];
        *count *= (double)s.dim[v[i]];
        s.dim[v[i]] = 1;
    }
    return s;
}

static uint32_t mul(cd_autodiff_builder *b, uint32_t x, uint32_t y) {
    return cd_autodiff_binary(b, "Mul", x, y);
}

/* Gradient with all dimensions: d and y are dy and the result with the reduced dimensions kept as
 * 1. */
static uint32_t reduced(cd_autodiff_builder *b, const char *how, uint32_t d, uint32_t y,
                        double count, uint32_t axes) {
    const uint32_t x = cd_autodiff_input(b, 0);
    if (!strcmp(how, "Sum")) return d;
    if (!strcmp(how, "Mean")) return cd_autodiff_binary_scalar(b, "Div", d, count);
    if (!strcmp(how, "Max") || !strcmp(how, "Min")) return to_extremes(b, y, d, axes);
    if (!strcmp(how, "SumSquare")) return mul(b, d, cd_autodiff_binary_scalar(b, "Mul", x, 2));
    if (!strcmp(how, "L1")) return mul(b, d, cd_autodiff_unary(b, "Sign", x));
    if (!strcmp(how, "L2")) return mul(b, cd_autodiff_binary(b, "Div", d, y), x);
    if (!strcmp(how, "LogSum"))
        return mul(b, d, cd_autodiff_unary(b, "Exp", cd_autodiff_unary(b, "Neg", y)));
    if (!strcmp(how, "LogSumExp"))
        return mul(b, d, cd_autodiff_unary(b, "Exp", cd_autodiff_binary(b, "Sub", x, y)));
    return cd_autodiff_binary(b, "Div", mul(b, d, y), x); /* Prod */
}

static void reduce(cd_autodiff_builder *b) {
    const cd_graph_shape x = *cd_autodiff_shape(b, cd_autodiff_input(b, 0));
    double count;
    uint32_t axes;
    const cd_graph_shape s = kept(b, &count, &axes);
    const uint32_t d = cd_autodiff_reshape(b, cd_autodiff_output_grad(b, 0), &s),
                   y = cd_autodiff_reshape(b, cd_autodiff_output(b, 0), &s);
    cd_autodiff_accumulate(
        b, 0,
        cd_autodiff_expand(b, reduced(b, b->n->op + strlen("Reduce"), d, y, count, axes), &x));
}

const cd_autodiff_rule cd_autodiff_rules_pool[] = {
    {"MaxPool", max_pool},
    {"AveragePool", average_pool},
    {"GlobalAveragePool", global_average},
    {"GlobalMaxPool", global_max},
    {"ReduceSum", reduce},
    {"ReduceMean", reduce},
    {"ReduceMax", reduce},
    {"ReduceMin", reduce},
    {"ReduceProd", reduce},
    {"ReduceSumSquare", reduce},
    {"ReduceL1", reduce},
    {"ReduceL2", reduce},
    {"ReduceLogSum", reduce},
    {"ReduceLogSumExp", reduce},
    {NULL, NULL},
};
