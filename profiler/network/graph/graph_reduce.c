/* Operators along axes: reductions, largest and smallest elements, sorting, cumulative sums. */

#include "profiler/network/graph/graph_call_internal.h"

/* Axes: an operand (ReduceSum from opset 13, the others from 18) or an attribute. None: all, or
 * nothing where noop_with_empty_axes says so. */
cdmpp_status cd_graph_infer_reduce(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    uint32_t axes[CD_GRAPH_MAX_RANK], n, mask = 0;
    int64_t keep, noop, all[CD_GRAPH_MAX_RANK];
    cd_graph_shape o = {0};
    CD_TRY(cd_graph_call_default_int(c, "keepdims", 1, &keep, err));
    CD_TRY(cd_graph_call_int(c, "noop_with_empty_axes", 0, &noop, err));
    CD_TRY(cd_graph_call_axes(c, 1, x->shape.rank, axes, &n, err));
    for (uint32_t i = 0; i < n; i++) mask |= 1U << axes[i];
    if (n == 0 && !noop) {
        mask = (1U << x->shape.rank) - 1;
        for (uint32_t d = 0; d < x->shape.rank; d++) all[d] = d;
        CD_TRY(cd_graph_call_set_ints(c, "axes", all, x->shape.rank, err));
    } else if (n == 0) CD_TRY(cd_graph_call_set_ints(c, "axes", all, 0, err));
    for (uint32_t d = 0; d < x->shape.rank; d++) {
        const bool gone = mask >> d & 1;
        if (!gone || keep) CD_TRY(cd_graph_shape_push(&o, gone ? 1 : x->shape.dim[d], err));
    }
    return cd_graph_call_set_output(c, 0, x->dtype, &o, err);
}

cdmpp_status cd_graph_infer_arg(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    uint32_t axis;
    int64_t keep;
    cd_graph_shape o = {0};
    CD_TRY(cd_graph_call_axis(c, 0, x->shape.rank, &axis, err));
    CD_TRY(cd_graph_call_default_int(c, "keepdims", 1, &keep, err));
    for (uint32_t d = 0; d < x->shape.rank; d++)
        if (d != axis || keep)
            CD_TRY(cd_graph_shape_push(&o, d == axis ? 1 : x->shape.dim[d], err));
    return cd_graph_call_set_output(c, 0, CD_I64, &o, err);
}

/* k is an attribute before opset 10 and an operand since; it is resolved as an attribute. */
cdmpp_status cd_graph_infer_topk(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    const int64_t *k;
    uint32_t axis, n = 1;
    int64_t attr;
    CD_TRY(cd_graph_call_axis(c, -1, x->shape.rank, &axis, err));
    CD_TRY(cd_graph_call_int(c, "k", -1, &attr, err));
    if (cd_graph_call_input(c, 1)) CD_TRY(cd_graph_call_ints(c, 1, &k, &n, err));
    else k = &attr;
    if (n != 1 || k[0] < 0 || k[0] > x->shape.dim[axis])
        return CD_FAIL(err, ESCHEMA, "TopK: %lld of %lld elements", n ? (long long)k[0] : 0LL,
                       (long long)x->shape.dim[axis]);
    cd_graph_shape o = x->shape;
    o.dim[axis] = k[0];
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &o, err));
    CD_TRY(cd_graph_call_set_output(c, 1, CD_I64, &o, err));
    return cd_graph_call_set_int(c, "k", k[0], err);
}

/* A comparison for each level of a heap of k. */
double cd_graph_flop_topk(const cd_graph_call *c) {
    int64_t k = cd_graph_call_attr(c, "k")->i, levels = 1;
    while (k > 1) k /= 2, levels++;
    return cd_graph_flop_in(c) * (double)levels;
}

cdmpp_status cd_graph_infer_cumsum(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0), *a = cd_graph_call_input(c, 1);
    uint32_t axis;
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &x->shape, err));
    if (!a->value || cd_graph_shape_elements(&a->shape) != 1) return CDMPP_OK;
    CD_TRY(cd_graph_call_normalize_axis(a->value[0], x->shape.rank, &axis, err));
    return cd_graph_call_set_int(c, "axis", axis, err);
}

/* Determinants of the last two dimensions. */
cdmpp_status cd_graph_infer_det(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    CD_TRY(cd_graph_call_rank(c, 0, 2, CD_GRAPH_MAX_RANK, err));
    cd_graph_shape o = x->shape;
    o.rank -= 2;
    if (o.dim[o.rank] != o.dim[o.rank + 1])
        return CD_FAIL(err, ESCHEMA, "%s: matrices of %lld x %lld", c->op, (long long)o.dim[o.rank],
                       (long long)o.dim[o.rank + 1]);
    return cd_graph_call_set_output(c, 0, x->dtype, &o, err);
}
