/* Builds an iteration of training: copies the forward network, with normalisations and recurrent
 * layers decomposed into operators that have gradients; adds the loss; walks back through the copy,
 * operator by operator; adds the update of each weight. */
#include <stdio.h>
#include <string.h>

#include "profiler/network/gradient/autodiff_internal.h"

/* Normalisations: taken apart in the forward part, so that means and deviations are kept, and their
 * gradients.
 *
 *   xh = (x - mean) inv, y = xh scale + shift, N elements normalised over
 *   dx = inv (dyg - mean(dyg) - xh mean(dyg xh)), dyg = dy scale
 *
 * A batch norm's sums of dy and dy xh are the gradients of shift and scale, too: two reductions,
 * not four. xh is computed again where it is needed, so that it is part of what reads it and never
 * in memory. */

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

/* Append n in operators that have gradients; in, out: tensors of b->g. False: nothing appended, n
 * stays one operator. */
static bool autodiff_decompose_norm(cd_autodiff_builder *b, const cd_graph_node *n,
                                    const uint32_t *in, uint32_t *out) {
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

/* Gradients of a normalisation that was decomposed, for all of its nodes at once. */
static void autodiff_norm_backward(cd_autodiff_builder *b, const cd_autodiff_norm *v) {
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

/* Gradients of pooling and of reductions. Pooling's are operators of our own (MaxPoolGrad,
 * AveragePoolGrad), reductions' are made of ONNX's. */

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

static const cd_autodiff_rule *rule_of(const char *op) {
    const cd_autodiff_rule *const table[] = {cd_autodiff_rules_elementwise, cd_autodiff_rules_conv,
                                             cd_autodiff_rules_matmul,      cd_autodiff_rules_norm,
                                             cd_autodiff_rules_pool,        cd_autodiff_rules_move,
                                             cd_autodiff_rules_gather};
    for (size_t t = 0; t < sizeof table / sizeof *table; t++)
        for (const cd_autodiff_rule *r = table[t]; r->op; r++)
            if (!strcmp(r->op, op)) return r;
    return NULL;
}

static uint32_t no_memory(cd_autodiff_builder *b) {
    return cd_autodiff_fail(b, CD_FAIL(b->err, ENOMEM, "out of memory for an iteration"));
}

/* ---- which weights are learned ---- */

/* Statistics that a batch norm keeps are not. */
static void mark_statistics(cd_autodiff_builder *b) {
    for (uint32_t i = 0; i < b->from->n_node; i++) {
        const cd_graph_node *n = &b->from->node[i];
        for (uint32_t k = 3; k < n->n_in && k < 5 && !strcmp(n->op, "BatchNormalization"); k++)
            b->frozen[n->in[k]] = true;
    }
}

/* Not learned: integers, masks, the statistics of batch norms, and the weights that the options
 * name. A name that fits no weight is an error. */
static void mark_frozen(cd_autodiff_builder *b) {
    const cd_graph *g = b->from;
    mark_statistics(b);
    for (uint32_t t = 0; t < g->n_tensor; t++) {
        const cd_graph_tensor *x = &g->tensor[t];
        if (!x->is_weight || !cd_expr_dtype_is_float(x->dtype) ||
            (x->name && strstr(x->name, "mask")))
            b->frozen[t] = true;
    }
    for (uint32_t i = 0; i < b->o->n_frozen && !b->st; i++) {
        bool any = false;
        for (uint32_t t = 0; t < g->n_tensor; t++) {
            if (!g->tensor[t].is_weight || g->tensor[t].node != CD_GRAPH_NONE ||
                strcmp(g->tensor[t].name, b->o->frozen[i]))
                continue;
            any = b->frozen[t] = true;
        }
        if (!any)
            cd_autodiff_fail(
                b, CD_FAIL(b->err, EINVALID, "no weight is called \"%s\"", b->o->frozen[i]));
    }
}

/* ---- the forward part ---- */

/* A weight with known content that is learned loses the content: it changes. */
static void copy_source(cd_autodiff_builder *b, uint32_t t) {
    const cd_graph_tensor *x = &b->from->tensor[t];
    uint32_t *to = &b->map[t];
    if (b->st) return;
    if (x->is_input) {
        b->st = cd_graph_input(b->g, x->name, x->dtype, &x->shape, to, b->err);
    } else if (x->is_weight && (!b->frozen[t] || !(x->value || x->fvalue))) {
        b->st = cd_graph_weight(b->g, x->name, x->dtype, &x->shape, to, b->err);
        if (!b->st) b->g->tensor[*to].is_trained = !b->frozen[t];
    } else {
        b->st =
            cd_graph_constant(b->g, x->name, x->dtype, &x->shape, x->value, x->fvalue, to, b->err);
        if (!b->st) b->g->tensor[*to].is_weight = x->is_weight;
    }
}

/* An operator that the graph does not know is copied with the shapes that it had. */
static cdmpp_status opaque(cd_autodiff_builder *b, const cd_graph_node *n, const uint32_t *in,
                           uint32_t *out) {
    cd_graph_shape *s = CD_NEWN(&b->g->arena, cd_graph_shape, n->n_out + 1U);
    cd_dtype *t = CD_NEWN(&b->g->arena, cd_dtype, n->n_out + 1U);
    if (!s || !t) return CD_FAIL(b->err, ENOMEM, "out of memory for an iteration");
    for (uint32_t k = 0; k < n->n_out; k++) {
        s[k] = b->from->tensor[n->out[k]].shape;
        t[k] = b->from->tensor[n->out[k]].dtype;
    }
    return cd_graph_opaque(b->g, n->name, n->domain, n->op, in, n->n_in, s, t, out, n->n_out,
                           b->err);
}

/* Files without their weights fill them with a number that is not zero: such a tensor is a
 * weight. */
static bool is_filled(cd_autodiff_builder *b, const cd_graph_node *n) {
    const cd_graph_tensor *x = &b->from->tensor[n->out[0]];
    uint32_t *to = &b->map[n->out[0]];
    if (strcmp(n->op, "ConstantOfShape") || !x->is_weight || b->frozen[n->out[0]] ||
        cd_graph_node_float(n, "value", 0) == 0)
        return false;
    if (!b->st) b->st = cd_graph_weight(b->g, x->name, x->dtype, &x->shape, to, b->err);
    if (!b->st) b->g->tensor[*to].is_trained = true;
    return true;
}

/* Results keep the names that they have in the forward network. */
static void copy_node(cd_autodiff_builder *b, const cd_graph_node *n) {
    if (is_filled(b, n)) return;
    uint32_t *in = CD_NEWN(&b->g->arena, uint32_t, n->n_in + 1U),
             *out = CD_NEWN(&b->g->arena, uint32_t, n->n_out + 1U);
    if (!in || !out) {
        no_memory(b);
        return;
    }
    for (uint32_t k = 0; k < n->n_in; k++)
        in[k] = n->in[k] == CD_GRAPH_NONE ? n->in[k] : b->map[n->in[k]];
    b->at = n->name;
    if (n->opaque) b->st = opaque(b, n, in, out);
    else if (!autodiff_decompose_norm(b, n, in, out) && !cd_autodiff_decompose_rnn(b, n, in, out))
        b->st = cd_graph_add(b->g, n->name, n->op, in, n->n_in, n->attr, n->n_attr, out, n->n_out,
                             b->err);
    for (uint32_t k = 0; k < n->n_out && !b->st; k++) {
        b->map[n->out[k]] = out[k];
        if (out[k] != CD_GRAPH_NONE)
            b->st = cd_graph_rename(b->g, out[k], b->from->tensor[n->out[k]].name, b->err);
    }
}

static void forward(cd_autodiff_builder *b) {
    const cd_graph *g = b->from;
    for (uint32_t t = 0; t < g->n_tensor; t++) b->map[t] = CD_GRAPH_NONE;
    for (uint32_t t = 0; t < g->n_tensor; t++)
        if (g->tensor[t].node == CD_GRAPH_NONE) copy_source(b, t);
    for (uint32_t i = 0; i < g->n_node && !b->st; i++) copy_node(b, &g->node[i]);
    for (uint32_t k = 0; k < g->n_output && !b->st; k++)
        b->st = cd_graph_result(b->g, b->map[g->output[k]], b->err);
}

/* ---- back ---- */

/* What depends on a weight that is learned, through real numbers. */
static void mark_need(cd_autodiff_builder *b) {
    const cd_graph *g = b->g;
    for (uint32_t t = 0; t < b->n_tensor; t++) {
        b->grad[t] = CD_GRAPH_NONE;
        b->need[t] = g->tensor[t].is_trained;
    }
    for (uint32_t i = 0; i < b->n_forward; i++) {
        const cd_graph_node *n = &g->node[i];
        const cd_autodiff_rule *r = n->opaque ? NULL : rule_of(n->op);
        bool any = false;
        for (uint32_t k = 0; k < n->n_in; k++)
            any = any || (n->in[k] != CD_GRAPH_NONE && b->need[n->in[k]]);
        for (uint32_t k = 0; k < n->n_out; k++)
            b->need[n->out[k]] = any && !(r && !r->fn) &&
                                 cd_expr_dtype_is_float(g->tensor[n->out[k]].dtype) &&
                                 !cd_graph_tensor_is_static(&g->tensor[n->out[k]]);
    }
}

/* Gradients of the results: ones, 2 (y - target)/n, or (p - label)/rows. */
static void seed_of(cd_autodiff_builder *b, uint32_t y, const uint32_t *seed) {
    const cd_graph_shape s = *cd_autodiff_shape(b, y);
    if (y == CD_GRAPH_NONE || b->st || !b->need[y]) return;
    if (seed[0] == CD_GRAPH_NONE) {
        cd_autodiff_accumulate_tensor(b, y,
                                      cd_autodiff_expand(b, cd_autodiff_const_scalar(b, y, 1), &s));
        return;
    }
    if (seed[1] == CD_GRAPH_NONE) {
        cd_autodiff_accumulate_tensor(
            b, y,
            cd_autodiff_binary_scalar(
                b, "Mul", seed[0],
                2 / (double)(cd_graph_shape_elements(&s) ? cd_graph_shape_elements(&s) : 1)));
        return;
    }
    const int64_t classes = s.dim[s.rank == 3 ? 2 : 1];
    const double rows = classes ? (double)(cd_graph_shape_elements(&s) / classes) : 1;
    const uint32_t d = cd_autodiff_binary(b, "Sub", cd_autodiff_unary(b, "Exp", seed[1]), seed[0]);
    cd_autodiff_accumulate_tensor(b, y,
                                  cd_autodiff_binary_scalar(b, "Div", d, rows > 0 ? rows : 1));
}

/* The reason is static text, the names are copied into the graph. */
static void list_missing(cd_autodiff_builder *b, const cd_graph_node *n, const char *name,
                         const char *why) {
    cd_gradient *r = b->result;
    if (CD_GROW_IN(&b->g->arena, r->missing, r->n_missing, b->cap_missing)) {
        no_memory(b);
        return;
    }
    name = cd_graph_keep(b->g, name);
    if (!name) no_memory(b);
    else r->missing[r->n_missing++] = (cd_gradient_miss){n->op, n->name, name, why};
}

/* An operator that nobody knows, in place of the gradient: it has the operands, the gradients of
 * the results, and gives those of the operands. */
static void unknown(cd_autodiff_builder *b, const cd_graph_node *n, const char *why) {
    const uint32_t most = n->n_in + n->n_out;
    uint32_t n_in = 0, n_out = 0, *in = CD_NEWN(&b->g->arena, uint32_t, most + 1),
             *out = CD_NEWN(&b->g->arena, uint32_t, n->n_in + 1U);
    cd_graph_shape *s = CD_NEWN(&b->g->arena, cd_graph_shape, n->n_in + 1U);
    cd_dtype *t = CD_NEWN(&b->g->arena, cd_dtype, n->n_in + 1U);
    char op[80], name[160];
    if (!in || !out || !s || !t) {
        no_memory(b);
        return;
    }
    for (uint32_t k = 0; k < n->n_in; k++) {
        if (n->in[k] != CD_GRAPH_NONE) in[n_in++] = n->in[k];
        if (!cd_autodiff_needs_grad(b, k)) continue;
        s[n_out] = b->g->tensor[n->in[k]].shape;
        t[n_out++] = b->g->tensor[n->in[k]].dtype;
    }
    for (uint32_t k = 0; k < n->n_out; k++)
        if (cd_autodiff_output_grad(b, k) != CD_GRAPH_NONE)
            in[n_in++] = cd_autodiff_output_grad(b, k);
    snprintf(op, sizeof op, "%.60sGrad", n->op);
    snprintf(name, sizeof name, "%.120s/%sGrad", n->name, n->op);
    list_missing(b, n, name, why);
    if (!b->st)
        b->st =
            cd_graph_opaque(b->g, name, CD_GRADIENT_DOMAIN, op, in, n_in, s, t, out, n_out, b->err);
    for (uint32_t k = 0, o = 0; k < n->n_in && !b->st; k++)
        if (cd_autodiff_needs_grad(b, k)) cd_autodiff_accumulate(b, k, out[o++]);
}

/* The node is copied, because appending operators moves the array. */
static void one(cd_autodiff_builder *b, uint32_t i) {
    const cd_graph_node n = b->g->node[i]; /* a copy: the array grows */
    bool any = false, wanted = false;
    b->n = &n;
    b->why = NULL;
    b->at = n.name;
    for (uint32_t k = 0; k < n.n_out; k++) any = any || b->grad[n.out[k]] != CD_GRAPH_NONE;
    for (uint32_t k = 0; k < n.n_in; k++) wanted = wanted || cd_autodiff_needs_grad(b, k);
    if (!any || !wanted || n.folded) return;
    const cd_autodiff_rule *r = n.opaque ? NULL : rule_of(n.op);
    if (r && r->fn) r->fn(b);
    if (!r || b->why) unknown(b, &n, b->why ? b->why : "this operator has no gradient");
    b->n = NULL;
}

/* Nodes in reverse order; a decomposed normalisation is one step, over all its nodes. */
static void backward(cd_autodiff_builder *b) {
    uint32_t norm = b->n_norm;
    for (uint32_t i = b->n_forward; i-- > 0 && !b->st;) {
        while (norm && b->norm[norm - 1].last > i) norm--;
        if (norm && b->norm[norm - 1].last == i) {
            b->at = b->g->node[i].name;
            autodiff_norm_backward(b, &b->norm[norm - 1]);
            i = b->norm[norm - 1].first;
        } else one(b, i);
    }
}

/* ---- all of it ---- */

static void list_weights(cd_autodiff_builder *b) {
    cd_gradient *r = b->result;
    r->weight = CD_NEWN(&b->g->arena, cd_gradient_weight, b->n_tensor + 1);
    if (!r->weight) {
        no_memory(b);
        return;
    }
    for (uint32_t t = 0; t < b->n_tensor && !b->st; t++) {
        if (!b->g->tensor[t].is_trained) continue;
        r->weight[r->n_weight++] = (cd_gradient_weight){t, b->grad[t], CD_GRAPH_NONE};
        if (b->grad[t] != CD_GRAPH_NONE) b->st = cd_graph_result(b->g, b->grad[t], b->err);
    }
}

static void set_phases(cd_autodiff_builder *b, uint32_t back, uint32_t update) {
    const uint32_t n = b->g->n_node;
    b->result->phase = CD_NEWN(&b->g->arena, uint8_t, n + 1);
    if (!b->result->phase) no_memory(b);
    for (uint32_t i = 0; i < n && !b->st; i++)
        b->result->phase[i] = i < back     ? CD_GRADIENT_FORWARD
                              : i < update ? CD_GRADIENT_BACKWARD
                                           : CD_GRADIENT_UPDATE;
}

/* The order of the phases: forward, loss, backward, update. Arrays by tensor have the size of the
 * forward part: gradients of gradients are not asked for. */
static void iteration(cd_autodiff_builder *b) {
    uint32_t *seed = CD_NEWN(&b->g->arena, uint32_t, 2 * b->from->n_output + 1);
    b->map = CD_NEWN(&b->g->arena, uint32_t, b->from->n_tensor + 1);
    b->frozen = CD_NEWN(&b->g->arena, bool, b->from->n_tensor + 1);
    if (!seed || !b->map || !b->frozen) no_memory(b);
    if (!b->st) mark_frozen(b);
    if (!b->st) forward(b);
    b->n_tensor = b->g->n_tensor;
    b->n_forward = b->g->n_node;
    b->grad = CD_NEWN(&b->g->arena, uint32_t, b->n_tensor + 1);
    b->need = CD_NEWN(&b->g->arena, bool, b->n_tensor + 1);
    if (!b->grad || !b->need) no_memory(b);
    if (!b->st) mark_need(b);
    if (!b->st) cd_autodiff_add_loss(b, &b->result->loss, seed);
    if (!b->st) b->st = cd_graph_result(b->g, b->result->loss, b->err);
    const uint32_t back = b->g->n_node;
    for (uint32_t k = 0; k < b->from->n_output && !b->st; k++)
        seed_of(b, b->map[b->from->output[k]], seed + 2 * k);
    backward(b);
    if (!b->st) list_weights(b);
    const uint32_t update = b->g->n_node;
    if (!b->st && !b->o->no_update) cd_autodiff_add_update(b);
    if (!b->st) set_phases(b, back, update);
}

cdmpp_status cd_autodiff(const cd_graph *from, const cd_gradient_options *o, cd_gradient *out,
                         cdmpp_err *err) {
    static const cd_gradient_options none = {0};
    *out = (cd_gradient){.loss = CD_GRAPH_NONE};
    CD_TRY(cd_graph_new(from->name, &out->graph, err));
    out->graph->opset = from->opset;
    out->graph->training = true;
    cd_autodiff_builder b = {
        .from = from, .g = out->graph, .o = o ? o : &none, .err = err, .result = out, .at = ""};
    iteration(&b);
    if (b.st) cd_gradient_free(out);
    return b.st;
}

void cd_gradient_free(cd_gradient *g) {
    if (!g) return;
    cd_graph_free(g->graph);
    *g = (cd_gradient){0};
}
