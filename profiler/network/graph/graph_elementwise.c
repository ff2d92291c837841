/* Element-wise operators: the shape is that of the operand, or of all operands broadcast together; the type is the first operand's
 * unless the operator says otherwise. */
#include <string.h>

#include "profiler/network/graph/graph_call_internal.h"

/* For functions of one element (Relu, Sqrt, ...). Operators whose parameters have defaults use attr_alpha, which sets them first. */
cdmpp_status cd_graph_infer_same(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    for (uint32_t o = 0; o < c->n_out; o++) CD_TRY(cd_graph_call_set_output(c, o, x->dtype, &x->shape, err));
    return CDMPP_OK;
}

cdmpp_status cd_graph_infer_attr_alpha(cd_graph_call *c, cdmpp_err *err) {
    static const struct {
        const char *op, *name;
        double value;
    } absent[] = {{"LeakyRelu", "alpha", 0.01}, {"Elu", "alpha", 1}, {"Celu", "alpha", 1}, {"ThresholdedRelu", "alpha", 1},
                  {"Selu", "alpha", 1.67326319217681884765625}, {"Selu", "gamma", 1.05070102214813232421875},
                  {"HardSigmoid", "alpha", 0.2}, {"HardSigmoid", "beta", 0.5}, {"Shrink", "bias", 0}, {"Shrink", "lambd", 0.5}};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (!strcmp(c->op, absent[i].op)) CD_TRY(cd_graph_call_default_float(c, absent[i].name, absent[i].value, err));
    return cd_graph_infer_same(c, err);
}

/* Shape of all operands broadcast together. */
static cdmpp_status together(const cd_graph_call *c, cd_graph_shape *s, cdmpp_err *err) {
    *s = (cd_graph_shape){0};
    for (uint32_t i = 0; i < c->n_in; i++) {
        const cd_graph_tensor *x = cd_graph_call_input(c, i);
        if (!x) return CD_FAIL(err, ESCHEMA, "%s: operand %u is missing", c->op, i);
        CD_TRY(cd_graph_shape_broadcast(s, &x->shape, err));
    }
    return CDMPP_OK;
}

/* Two or any number of operands; the type is the first one's. */
cdmpp_status cd_graph_infer_binary(cd_graph_call *c, cdmpp_err *err) {
    cd_graph_shape s;
    CD_TRY(together(c, &s, err));
    return cd_graph_call_set_output(c, 0, cd_graph_call_input(c, 0)->dtype, &s, err);
}

cdmpp_status cd_graph_infer_bitwise(cd_graph_call *c, cdmpp_err *err) {
    for (uint32_t i = 0; i < c->n_in; i++)
        if (cd_graph_call_input(c, i) && cd_expr_dtype_is_float(cd_graph_call_input(c, i)->dtype))
            return CD_FAIL(err, ESCHEMA, "%s: operand %u: expected integers", c->op, i);
    return cd_graph_infer_binary(c, err);
}

cdmpp_status cd_graph_infer_compare(cd_graph_call *c, cdmpp_err *err) {
    CD_TRY(cd_graph_infer_binary(c, err));
    c->out[0].dtype = CD_BOOL;
    return CDMPP_OK;
}

cdmpp_status cd_graph_infer_bool_unary(cd_graph_call *c, cdmpp_err *err) {
    return cd_graph_call_set_output(c, 0, CD_BOOL, &cd_graph_call_input(c, 0)->shape, err);
}

double cd_graph_flop_variadic(const cd_graph_call *c) { return cd_graph_flop_out(c) * (c->n_in > 1 ? c->n_in - 1 : 0); }

cdmpp_status cd_graph_infer_where(cd_graph_call *c, cdmpp_err *err) {
    cd_graph_shape s;
    CD_TRY(together(c, &s, err));
    return cd_graph_call_set_output(c, 0, cd_graph_call_input(c, 1)->dtype, &s, err);
}

/* The slope broadcasts into X, never the other way. */
cdmpp_status cd_graph_infer_prelu(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    cd_graph_shape s = x->shape;
    CD_TRY(cd_graph_shape_broadcast(&s, &cd_graph_call_input(c, 1)->shape, err));
    if (s.rank != x->shape.rank || memcmp(s.dim, x->shape.dim, s.rank * sizeof *s.dim))
        return CD_FAIL(err, ESCHEMA, "%s: the slope is larger than what it is for", c->op);
    return cd_graph_call_set_output(c, 0, x->dtype, &s, err);
}

cdmpp_status cd_graph_infer_cast(cd_graph_call *c, cdmpp_err *err) {
    int64_t to;
    cd_dtype t;
    CD_TRY(cd_graph_call_int(c, "to", 0, &to, err));
    if (!cd_graph_dtype(to, &t)) return CD_FAIL(err, EUNSUPPORTED, "%s: type %lld", c->op, (long long)to);
    return cd_graph_call_set_output(c, 0, t, &cd_graph_call_input(c, 0)->shape, err);
}

cdmpp_status cd_graph_infer_castlike(cd_graph_call *c, cdmpp_err *err) {
    return cd_graph_call_set_output(c, 0, cd_graph_call_input(c, 1)->dtype, &cd_graph_call_input(c, 0)->shape, err);
}

/* A bound as an operand, resolved where its content is known. */
static cdmpp_status bound(cd_graph_call *c, uint32_t i, const char *name, cdmpp_err *err) {
    const cd_graph_tensor *t = cd_graph_call_input(c, i);
    if (!t || !cd_graph_call_is_known(t) || cd_graph_shape_elements(&t->shape) != 1) return CDMPP_OK;
    return cd_graph_call_set_float(c, name, t->fvalue ? t->fvalue[0] : (double)t->value[0], err);
}

cdmpp_status cd_graph_infer_clip(cd_graph_call *c, cdmpp_err *err) {
    CD_TRY(bound(c, 1, "min", err));
    CD_TRY(bound(c, 2, "max", err));
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    return cd_graph_call_set_output(c, 0, x->dtype, &x->shape, err);
}

/* The mask is all true outside training. */
cdmpp_status cd_graph_infer_dropout(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &x->shape, err));
    return cd_graph_call_set_output(c, 1, CD_BOOL, &x->shape, err);
}

/* ---- quantized numbers ---- */
cdmpp_status cd_graph_infer_quantize(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *zero = cd_graph_call_input(c, 2);
    int64_t axis;
    CD_TRY(cd_graph_call_default_int(c, "axis", 1, &axis, err));
    return cd_graph_call_set_output(c, 0, zero ? zero->dtype : CD_DTYPE(CD_T_UINT, 8), &cd_graph_call_input(c, 0)->shape, err);
}

cdmpp_status cd_graph_infer_dequantize(cd_graph_call *c, cdmpp_err *err) {
    int64_t axis;
    CD_TRY(cd_graph_call_default_int(c, "axis", 1, &axis, err));
    return cd_graph_call_set_output(c, 0, cd_graph_call_input(c, 1)->dtype, &cd_graph_call_input(c, 0)->shape, err);
}

/* y, its scale, its zero point */
cdmpp_status cd_graph_infer_dynamic_quantize(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_shape one = {0};
    CD_TRY(cd_graph_call_set_output(c, 0, CD_DTYPE(CD_T_UINT, 8), &cd_graph_call_input(c, 0)->shape, err));
    CD_TRY(cd_graph_call_set_output(c, 1, CD_F32, &one, err));
    return cd_graph_call_set_output(c, 2, CD_DTYPE(CD_T_UINT, 8), &one, err);
}

double cd_graph_flop_two(const cd_graph_call *c) { return 2 * cd_graph_flop_out(c); }
