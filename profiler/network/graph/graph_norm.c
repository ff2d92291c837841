/* Normalisations and softmax. The operation count for an element follows the formula, one pass for
 * each sum: it does not depend on what a compiler can fuse. */
#include <string.h>

#include "profiler/network/graph/graph_call_internal.h"

/* Operand i holds one number for each of n channels. */
static cdmpp_status channels(const cd_graph_call *c, uint32_t i, int64_t n, cdmpp_err *err) {
    const cd_graph_tensor *t = cd_graph_call_input(c, i);
    if (!t || cd_graph_shape_elements(&t->shape) == n) return CDMPP_OK;
    return CD_FAIL(err, ESCHEMA, "%s: operand %u: expected %lld elements, found %lld", c->op, i,
                   (long long)n, (long long)cd_graph_shape_elements(&t->shape));
}

cdmpp_status cd_graph_infer_batchnorm(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    CD_TRY(cd_graph_call_rank(c, 0, 1, CD_GRAPH_MAX_RANK, err));
    const cd_graph_shape one = {1, {x->shape.rank > 1 ? x->shape.dim[1] : 1}};
    int64_t spatial;
    CD_TRY(cd_graph_call_int(c, "spatial", 1, &spatial, err));
    if (!spatial)
        return CD_FAIL(err, EUNSUPPORTED, "%s with spatial 0: statistics of each element", c->op);
    for (uint32_t i = 1; i < 5; i++) CD_TRY(channels(c, i, one.dim[0], err));
    CD_TRY(cd_graph_call_default_float(c, "epsilon", 1e-5, err));
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &x->shape, err));
    for (uint32_t o = 1; o < c->n_out; o++)
        CD_TRY(cd_graph_call_set_output(c, o, cd_graph_call_input(c, 3)->dtype, &one, err));
    return CDMPP_OK;
}

/* Scale and shift: the statistics are known, so their part is done once. */
double cd_graph_flop_batchnorm(const cd_graph_call *c) { return 2 * cd_graph_flop_out(c); }

cdmpp_status cd_graph_infer_instancenorm(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    CD_TRY(cd_graph_call_rank(c, 0, 2, CD_GRAPH_MAX_RANK, err));
    for (uint32_t i = 1; i < 3; i++) CD_TRY(channels(c, i, x->shape.dim[1], err));
    CD_TRY(cd_graph_call_default_float(c, "epsilon", 1e-5, err));
    return cd_graph_call_set_output(c, 0, x->dtype, &x->shape, err);
}

cdmpp_status cd_graph_infer_groupnorm(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    int64_t n;
    CD_TRY(cd_graph_call_rank(c, 0, 2, CD_GRAPH_MAX_RANK, err));
    CD_TRY(cd_graph_call_int(c, "num_groups", 0, &n, err));
    if (n < 1 || x->shape.dim[1] % n)
        return CD_FAIL(err, ESCHEMA, "%s: %lld groups of %lld channels", c->op, (long long)n,
                       (long long)x->shape.dim[1]);
    CD_TRY(cd_graph_call_default_float(c, "epsilon", 1e-5, err));
    return cd_graph_call_set_output(c, 0, x->dtype, &x->shape, err);
}

cdmpp_status cd_graph_infer_layernorm(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    uint32_t axis;
    CD_TRY(cd_graph_call_axis(c, -1, x->shape.rank, &axis, err));
    CD_TRY(cd_graph_call_default_float(c, "epsilon", 1e-5, err));
    cd_graph_shape stat = x->shape;
    int64_t stash;
    cd_dtype t;
    char text[64];
    CD_TRY(cd_graph_call_int(c, "stash_type", 1, &stash, err));
    if (!cd_graph_dtype(stash, &t))
        return CD_FAIL(err, EUNSUPPORTED, "%s: stash_type: %s", c->op,
                       cd_graph_dtype_name(stash, text, sizeof text));
    for (uint32_t d = axis; d < stat.rank; d++) stat.dim[d] = 1;
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &x->shape, err));
    CD_TRY(cd_graph_call_set_output(c, 1, t, &stat, err));
    return cd_graph_call_set_output(c, 2, t, &stat, err);
}

/* Sum; deviation, its square and their sum; division by the root; scale and shift. */
double cd_graph_flop_norm(const cd_graph_call *c) { return 7 * cd_graph_flop_out(c); }

/* Before opset 13 Softmax sees a matrix: the dimensions from `axis` on are one. */
cdmpp_status cd_graph_infer_softmax(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    int64_t axes[CD_GRAPH_MAX_RANK];
    uint32_t axis, n = 0;
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &x->shape, err));
    if (x->shape.rank == 0) return cd_graph_call_set_ints(c, "axes", axes, 0, err);
    const bool matrix = c->g->opset < 13;
    CD_TRY(cd_graph_call_axis(c, matrix ? 1 : -1, x->shape.rank + (matrix && x->shape.rank == 1),
                              &axis, err));
    for (uint32_t d = axis; d < x->shape.rank && (matrix || n == 0); d++) axes[n++] = d;
    return cd_graph_call_set_ints(c, "axes", axes, n, err);
}

/* Maximum, difference, exponential, sum, division. */
double cd_graph_flop_softmax(const cd_graph_call *c) { return 5 * cd_graph_flop_out(c); }

cdmpp_status cd_graph_infer_axis_same(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    uint32_t axis;
    CD_TRY(cd_graph_call_axis(c, -1, x->shape.rank, &axis, err));
    return cd_graph_call_set_output(c, 0, x->dtype, &x->shape, err);
}

cdmpp_status cd_graph_infer_lrn(cd_graph_call *c, cdmpp_err *err) {
    int64_t size;
    CD_TRY(cd_graph_call_rank(c, 0, 2, CD_GRAPH_MAX_RANK, err));
    CD_TRY(cd_graph_call_int(c, "size", 0, &size, err));
    if (size < 1) return CD_FAIL(err, ESCHEMA, "%s: size %lld", c->op, (long long)size);
    CD_TRY(cd_graph_call_default_float(c, "alpha", 1e-4, err));
    CD_TRY(cd_graph_call_default_float(c, "beta", 0.75, err));
    CD_TRY(cd_graph_call_default_float(c, "bias", 1, err));
    return cd_graph_call_set_output(c, 0, cd_graph_call_input(c, 0)->dtype,
                                    &cd_graph_call_input(c, 0)->shape, err);
}

/* A square and a sum over the window; scaled, shifted, to the power, divided. */
double cd_graph_flop_lrn(const cd_graph_call *c) {
    return cd_graph_flop_out(c) * ((double)cd_graph_call_attr(c, "size")->i + 5);
}

cdmpp_status cd_graph_infer_mvn(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    static const int64_t absent[] = {0, 2, 3};
    uint32_t axes[CD_GRAPH_MAX_RANK], n;
    CD_TRY(cd_graph_call_axes(c, CD_GRAPH_NONE, x->shape.rank, axes, &n, err));
    if (n == 0) CD_TRY(cd_graph_call_set_ints(c, "axes", absent, 3, err));
    if (n == 0) CD_TRY(cd_graph_call_rank(c, 0, 4, 4, err));
    return cd_graph_call_set_output(c, 0, x->dtype, &x->shape, err);
}

/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: a number, or one for each label;
 * log-probabilities behind it. */
cdmpp_status cd_graph_infer_nll(cd_graph_call *c, cdmpp_err *err) {
    const char *s;
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    const cd_graph_shape one = {0};
    CD_TRY(cd_graph_call_str(c, "reduction", "mean", &s, err));
    CD_TRY(cd_graph_call_set_output(
        c, 0, x->dtype, !strcmp(s, "none") ? &cd_graph_call_input(c, 1)->shape : &one, err));
    return cd_graph_call_set_output(c, 1, x->dtype, &x->shape, err);
}
