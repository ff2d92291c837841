/* The ends of an iteration: the loss after the results, and the optimizer after the gradients. The
 * loss also gives the tensors that the gradients of the results begin from. */
#include <stdio.h>

#include "profiler/network/gradient/autodiff_internal.h"

/* ---- the loss ---- */

static cd_gradient_loss kind_of(const cd_autodiff_builder *b, const cd_graph_shape *s) {
    if (b->o->loss == CD_GRADIENT_AUTO)
        return s->rank == 2 || s->rank == 3 ? CD_GRADIENT_CROSS_ENTROPY : CD_GRADIENT_SQUARES;
    if (b->o->loss == CD_GRADIENT_CROSS_ENTROPY && (s->rank < 2 || s->rank > 4))
        return CD_GRADIENT_SQUARES;
    return b->o->loss;
}

static uint32_t all_of(uint32_t rank) { return (1U << rank) - 1; }

/* Labels as rows of zeros and a one, in y's shape: the comparison of the labels with 0 .. classes -
 * 1. */
static uint32_t one_hot(cd_autodiff_builder *b, uint32_t y, uint32_t axis) {
    char name[48];
    const cd_graph_shape s = *cd_autodiff_shape(b, y);
    cd_graph_shape one = s, labels = {0, {0}}, line = {s.rank, {0}};
    uint32_t t = CD_GRAPH_NONE, classes = CD_GRAPH_NONE;
    /* Of more classes than a graph keeps contents the constant has only its shape. */
    const int64_t n = s.dim[axis] <= CD_GRAPH_MAX_VALUES ? s.dim[axis] : 0;
    int64_t *v = CD_NEWN(&b->g->arena, int64_t, (size_t)n + 1);
    if (!v) return cd_autodiff_fail(b, CD_FAIL(b->err, ENOMEM, "out of memory for classes"));
    for (int64_t k = 0; k < n; k++) v[k] = k;
    for (uint32_t d = 0; d < s.rank; d++) {
        line.dim[d] = d == axis ? s.dim[d] : 1;
        if (d != axis) labels.dim[labels.rank++] = s.dim[d];
    }
    one.dim[axis] = 1;
    snprintf(name, sizeof name, b->count ? "labels_%u" : "labels", b->count);
    if (!b->st) b->st = cd_graph_input(b->g, name, CD_I64, &labels, &t, b->err);
    if (!b->st)
        b->st = cd_graph_constant(b->g, "classes", CD_I64, &line, v, NULL, &classes, b->err);
    return cd_autodiff_cast(
        b, cd_autodiff_binary(b, "Equal", cd_autodiff_reshape(b, t, &one), classes),
        b->g->tensor[y].dtype);
}

/* -mean over rows of log p[label]; its gradient (p - label)/rows. */
static uint32_t cross_entropy(cd_autodiff_builder *b, uint32_t y, uint32_t *seed) {
    const cd_graph_shape s = *cd_autodiff_shape(b, y);
    const uint32_t axis = s.rank == 3 ? 2 : 1;
    const cd_graph_attr at = cd_autodiff_attr_int("axis", axis);
    const double rows = s.dim[axis] ? (double)(cd_graph_shape_elements(&s) / s.dim[axis]) : 1;
    const uint32_t label = one_hot(b, y, axis), p = cd_autodiff_op(b, "LogSoftmax", 1, &y, 1, &at);
    const uint32_t sum = cd_autodiff_reduce(b, "ReduceSum", cd_autodiff_binary(b, "Mul", label, p),
                                            all_of(s.rank), false);
    seed[0] = label;
    seed[1] = p;
    return cd_autodiff_binary_scalar(b, "Mul", sum, -1 / (rows > 0 ? rows : 1));
}

/* mean((y - target)^2) */
static uint32_t squares(cd_autodiff_builder *b, uint32_t y, uint32_t *seed) {
    char name[48];
    const cd_graph_shape s = *cd_autodiff_shape(b, y);
    const double n = (double)cd_graph_shape_elements(&s);
    uint32_t t = CD_GRAPH_NONE;
    snprintf(name, sizeof name, b->count ? "target_%u" : "target", b->count);
    if (!b->st) b->st = cd_graph_input(b->g, name, b->g->tensor[y].dtype, &s, &t, b->err);
    const uint32_t d = seed[0] = cd_autodiff_binary(b, "Sub", y, t);
    return cd_autodiff_binary_scalar(b, "Div",
                                     cd_autodiff_reduce(b, "ReduceSum",
                                                        cd_autodiff_binary(b, "Mul", d, d),
                                                        all_of(s.rank), false),
                                     n > 0 ? n : 1);
}

static uint32_t loss_of(cd_autodiff_builder *b, uint32_t y, uint32_t *seed) {
    const cd_graph_shape s = *cd_autodiff_shape(b, y);
    switch (kind_of(b, &s)) {
    case CD_GRADIENT_CROSS_ENTROPY: return cross_entropy(b, y, seed);
    case CD_GRADIENT_SQUARES: return squares(b, y, seed);
    default: return cd_autodiff_reduce(b, "ReduceSum", y, all_of(s.rank), false);
    }
}

/* seed: (2 * results) what the gradients are made from: labels and logarithms of p, or the
 * differences; CD_GRAPH_NONE: ones. */
void cd_autodiff_add_loss(cd_autodiff_builder *b, uint32_t *loss, uint32_t *seed) {
    *loss = CD_GRAPH_NONE;
    b->at = "loss";
    b->count = 0;
    for (uint32_t k = 0; k < b->from->n_output && !b->st; k++) {
        const uint32_t y = b->map[b->from->output[k]];
        seed[2 * k] = seed[2 * k + 1] = CD_GRAPH_NONE;
        if (y == CD_GRAPH_NONE || !cd_expr_dtype_is_float(b->g->tensor[y].dtype)) continue;
        const uint32_t one = loss_of(b, y, seed + 2 * k);
        *loss = *loss == CD_GRAPH_NONE ? one : cd_autodiff_binary(b, "Add", *loss, one);
    }
    if (!b->st && *loss == CD_GRAPH_NONE)
        cd_autodiff_fail(b, CD_FAIL(b->err, EINVALID,
                                    "expected a result of a real type: nothing to learn from"));
}

/* ---- the optimizer ---- */

static const double BETA1 = 0.9, BETA2 = 0.999, EPSILON = 1e-8;

/* A number for each element of the weight that lives from iteration to iteration. */
static uint32_t state(cd_autodiff_builder *b, uint32_t w, const char *what) {
    char name[160];
    uint32_t t = CD_GRAPH_NONE;
    const cd_graph_tensor of = b->g->tensor[w];
    snprintf(name, sizeof name, "%.120s.%s", of.name, what);
    if (!b->st) b->st = cd_graph_weight(b->g, name, of.dtype, &of.shape, &t, b->err);
    if (!b->st) b->g->tensor[t].is_trained = true;
    return t;
}

/* keep x + add y */
static uint32_t blend(cd_autodiff_builder *b, uint32_t x, double keep, uint32_t y, double add) {
    const uint32_t old = cd_autodiff_binary_scalar(b, "Mul", x, keep);
    return cd_autodiff_binary(b, "Add", old,
                              add == 1 ? y : cd_autodiff_binary_scalar(b, "Mul", y, add));
}

static void result(cd_autodiff_builder *b, uint32_t t) {
    if (!b->st) b->st = cd_graph_result(b->g, t, b->err);
}

static uint32_t sgd(cd_autodiff_builder *b, uint32_t w, uint32_t g, double rate) {
    const double momentum = b->o->momentum == 0 ? 0.9 : b->o->momentum;
    uint32_t v = g;
    if (momentum > 0) result(b, v = blend(b, state(b, w, "momentum"), momentum, g, 1));
    return cd_autodiff_binary(b, "Sub", w, cd_autodiff_binary_scalar(b, "Mul", v, rate));
}

/* The corrections of the first iterations are left to the rate. */
static uint32_t adam(cd_autodiff_builder *b, uint32_t w, uint32_t g, double rate) {
    const uint32_t m = blend(b, state(b, w, "mean"), BETA1, g, 1 - BETA1);
    const uint32_t v =
        blend(b, state(b, w, "square"), BETA2, cd_autodiff_binary(b, "Mul", g, g), 1 - BETA2);
    result(b, m);
    result(b, v);
    const uint32_t step = cd_autodiff_binary(
        b, "Div", m, cd_autodiff_binary_scalar(b, "Add", cd_autodiff_unary(b, "Sqrt", v), EPSILON));
    return cd_autodiff_binary(b, "Sub", w, cd_autodiff_binary_scalar(b, "Mul", step, rate));
}

void cd_autodiff_add_update(cd_autodiff_builder *b) {
    const double rate = b->o->rate > 0 ? b->o->rate : 0.01;
    for (uint32_t k = 0; k < b->result->n_weight && !b->st; k++) {
        cd_gradient_weight *w = &b->result->weight[k];
        if (w->grad == CD_GRAPH_NONE) continue;
        b->at = b->g->tensor[w->weight].name;
        w->now = b->o->optimizer == CD_GRADIENT_ADAM ? adam(b, w->weight, w->grad, rate)
                                                     : sgd(b, w->weight, w->grad, rate);
        result(b, w->now);
    }
}
