/* Element-wise operators. */
#include <string.h>

#include "profiler/network/graph/graph_call.h"

/* Output as operand 0: activations and other functions of one element; alpha, beta, gamma: defaults of their own. */
cdmpp_status cd_ginfer_same(cd_gcall *c, cdmpp_err *err) {
    (void)err;
    const cd_gtensor *x = cd_gcall_in(c, 0);
    for (uint32_t o = 0; o < c->n_out; o++) cd_gcall_out(c, o, x->dtype, &x->shape);
    return CDMPP_OK;
}

cdmpp_status cd_ginfer_attr_alpha(cd_gcall *c, cdmpp_err *err) {
    static const struct {
        const char *op, *name;
        double value;
    } absent[] = {{"LeakyRelu", "alpha", 0.01}, {"Elu", "alpha", 1}, {"Celu", "alpha", 1}, {"ThresholdedRelu", "alpha", 1},
                  {"Selu", "alpha", 1.67326319217681884765625}, {"Selu", "gamma", 1.05070102214813232421875},
                  {"HardSigmoid", "alpha", 0.2}, {"HardSigmoid", "beta", 0.5}, {"Shrink", "bias", 0}, {"Shrink", "lambd", 0.5}};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (!strcmp(c->op, absent[i].op)) CD_TRY(cd_gcall_default_float(c, absent[i].name, absent[i].value, err));
    return cd_ginfer_same(c, err);
}

/* Shape of all operands broadcast together. */
static cdmpp_status together(const cd_gcall *c, cd_shape *s, cdmpp_err *err) {
    *s = (cd_shape){0};
    for (uint32_t i = 0; i < c->n_in; i++) {
        const cd_gtensor *x = cd_gcall_in(c, i);
        if (!x) return CD_FAIL(err, ESCHEMA, "%s: operand %u is missing", c->op, i);
        CD_TRY(cd_gshape_broadcast(s, &x->shape, err));
    }
    return CDMPP_OK;
}

/* Two or any number of operands; the type is the first one's. */
cdmpp_status cd_ginfer_binary(cd_gcall *c, cdmpp_err *err) {
    cd_shape s;
    CD_TRY(together(c, &s, err));
    cd_gcall_out(c, 0, cd_gcall_in(c, 0)->dtype, &s);
    return CDMPP_OK;
}

cdmpp_status cd_ginfer_bitwise(cd_gcall *c, cdmpp_err *err) {
    for (uint32_t i = 0; i < c->n_in; i++)
        if (cd_gcall_in(c, i) && cd_dtype_is_float(cd_gcall_in(c, i)->dtype))
            return CD_FAIL(err, ESCHEMA, "%s: operand %u: expected integers", c->op, i);
    return cd_ginfer_binary(c, err);
}

cdmpp_status cd_ginfer_compare(cd_gcall *c, cdmpp_err *err) {
    CD_TRY(cd_ginfer_binary(c, err));
    c->out[0].dtype = CD_BOOL;
    return CDMPP_OK;
}

cdmpp_status cd_ginfer_bool_unary(cd_gcall *c, cdmpp_err *err) {
    (void)err;
    cd_gcall_out(c, 0, CD_BOOL, &cd_gcall_in(c, 0)->shape);
    return CDMPP_OK;
}

double cd_gflop_variadic(const cd_gcall *c) { return cd_gflop_out(c) * (c->n_in > 1 ? c->n_in - 1 : 0); }

cdmpp_status cd_ginfer_where(cd_gcall *c, cdmpp_err *err) {
    cd_shape s;
    CD_TRY(together(c, &s, err));
    cd_gcall_out(c, 0, cd_gcall_in(c, 1)->dtype, &s);
    return CDMPP_OK;
}

/* The slope broadcasts into X, never the other way. */
cdmpp_status cd_ginfer_prelu(cd_gcall *c, cdmpp_err *err) {
    const cd_gtensor *x = cd_gcall_in(c, 0);
    cd_shape s = x->shape;
    CD_TRY(cd_gshape_broadcast(&s, &cd_gcall_in(c, 1)->shape, err));
    if (s.rank != x->shape.rank || memcmp(s.dim, x->shape.dim, s.rank * sizeof *s.dim))
        return CD_FAIL(err, ESCHEMA, "%s: the slope is larger than what it is for", c->op);
    cd_gcall_out(c, 0, x->dtype, &s);
    return CDMPP_OK;
}

cdmpp_status cd_ginfer_cast(cd_gcall *c, cdmpp_err *err) {
    int64_t to;
    cd_dtype t;
    CD_TRY(cd_gcall_int(c, "to", 0, &to, err));
    if (!cd_graph_dtype(to, &t)) return CD_FAIL(err, EUNSUPPORTED, "%s: type %lld", c->op, (long long)to);
    cd_gcall_out(c, 0, t, &cd_gcall_in(c, 0)->shape);
    return CDMPP_OK;
}

cdmpp_status cd_ginfer_castlike(cd_gcall *c, cdmpp_err *err) {
    (void)err;
    cd_gcall_out(c, 0, cd_gcall_in(c, 1)->dtype, &cd_gcall_in(c, 0)->shape);
    return CDMPP_OK;
}

/* A bound as an operand, resolved where its content is known. */
static cdmpp_status bound(cd_gcall *c, uint32_t i, const char *name, cdmpp_err *err) {
    const cd_gtensor *t = cd_gcall_in(c, i);
    if (!t || !cd_gcall_knows(t) || cd_shape_elements(&t->shape) != 1) return CDMPP_OK;
    return cd_gcall_put_float(c, name, t->fvalue ? t->fvalue[0] : (double)t->value[0], err);
}

cdmpp_status cd_ginfer_clip(cd_gcall *c, cdmpp_err *err) {
    CD_TRY(bound(c, 1, "min", err));
    CD_TRY(bound(c, 2, "max", err));
    const cd_gtensor *x = cd_gcall_in(c, 0);
    cd_gcall_out(c, 0, x->dtype, &x->shape);
    return CDMPP_OK;
}

/* The mask is all true outside training. */
cdmpp_status cd_ginfer_dropout(cd_gcall *c, cdmpp_err *err) {
    (void)err;
    const cd_gtensor *x = cd_gcall_in(c, 0);
    cd_gcall_out(c, 0, x->dtype, &x->shape);
    cd_gcall_out(c, 1, CD_BOOL, &x->shape);
    return CDMPP_OK;
}

/* ---- quantized numbers ---- */
cdmpp_status cd_ginfer_quantize(cd_gcall *c, cdmpp_err *err) {
    const cd_gtensor *zero = cd_gcall_in(c, 2);
    int64_t axis;
    CD_TRY(cd_gcall_default_int(c, "axis", 1, &axis, err));
    cd_gcall_out(c, 0, zero ? zero->dtype : CD_DTYPE(CD_T_UINT, 8), &cd_gcall_in(c, 0)->shape);
    return CDMPP_OK;
}

cdmpp_status cd_ginfer_dequantize(cd_gcall *c, cdmpp_err *err) {
    int64_t axis;
    CD_TRY(cd_gcall_default_int(c, "axis", 1, &axis, err));
    cd_gcall_out(c, 0, cd_gcall_in(c, 1)->dtype, &cd_gcall_in(c, 0)->shape);
    return CDMPP_OK;
}

/* y, its scale, its zero point */
cdmpp_status cd_ginfer_dynamic_quantize(cd_gcall *c, cdmpp_err *err) {
    (void)err;
    const cd_shape one = {0};
    cd_gcall_out(c, 0, CD_DTYPE(CD_T_UINT, 8), &cd_gcall_in(c, 0)->shape);
    cd_gcall_out(c, 1, CD_F32, &one);
    cd_gcall_out(c, 2, CD_DTYPE(CD_T_UINT, 8), &one);
    return CDMPP_OK;
}

double cd_gflop_two(const cd_gcall *c) { return 2 * cd_gflop_out(c); }
