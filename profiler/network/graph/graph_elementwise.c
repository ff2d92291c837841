/* Element-wise operators: the shape is that of the operand, or of all operands broadcast together;
 * the type is the first operand's unless the operator says otherwise. */
#include <string.h>

#include "profiler/network/graph/graph_call_internal.h"

/* For functions of one element (Relu, Sqrt, ...). Operators whose parameters have defaults use
 * attr_alpha, which sets them first. */
cdmpp_status cd_graph_infer_same(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    for (uint32_t o = 0; o < c->n_out; o++)
        CD_TRY(cd_graph_call_set_output(c, o, x->dtype, &x->shape, err));
    return CDMPP_OK;
}

cdmpp_status cd_graph_infer_attr_alpha(cd_graph_call *c, cdmpp_err *err) {
    static const struct {
        const char *op, *name;
        double value;
    } absent[] = {{"LeakyRelu", "alpha", 0.01},
                  {"Elu", "alpha", 1},
                  {"Celu", "alpha", 1},
                  {"ThresholdedRelu", "alpha", 1},
                  {"Selu", "alpha", 1.67326319217681884765625},
                  {"Selu", "gamma", 1.05070102214813232421875},
                  {"HardSigmoid", "alpha", 0.2},
                  {"HardSigmoid", "beta", 0.5},
                  {"Shrink", "bias", 0},
                  {"Shrink", "lambd", 0.5}};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (!strcmp(c->op, absent[i].op))
            CD_TRY(cd_graph_call_default_float(c, absent[i].name, absent[i].value, err));
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

double cd_graph_flop_variadic(const cd_graph_call *c) {
    return cd_graph_flop_out(c) * (c->n_in > 1 ? c->n_in - 1 : 0);
}

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
    char text[64];
    if (!cd_graph_call_attr(c, "to"))
        return CD_FAIL(err, ESCHEMA, "%s: expected attribute to", c->op);
    CD_TRY(cd_graph_call_int(c, "to", 0, &to, err));
    if (!cd_graph_dtype(to, &t))
        return CD_FAIL(err, EUNSUPPORTED, "%s: %s", c->op,
                       cd_graph_dtype_name(to, text, sizeof text));
    return cd_graph_call_set_output(c, 0, t, &cd_graph_call_input(c, 0)->shape, err);
}

cdmpp_status cd_graph_infer_castlike(cd_graph_call *c, cdmpp_err *err) {
    return cd_graph_call_set_output(c, 0, cd_graph_call_input(c, 1)->dtype,
                                    &cd_graph_call_input(c, 0)->shape, err);
}

/* A bound as an operand, resolved where its content is known. */
static cdmpp_status bound(cd_graph_call *c, uint32_t i, const char *name, cdmpp_err *err) {
    const cd_graph_tensor *t = cd_graph_call_input(c, i);
    if (!t || !cd_graph_call_is_known(t) || cd_graph_shape_elements(&t->shape) != 1)
        return CDMPP_OK;
    return cd_graph_call_set_float(c, name, t->fvalue ? t->fvalue[0] : (double)t->value[0], err);
}

cdmpp_status cd_graph_infer_clip(cd_graph_call *c, cdmpp_err *err) {
    CD_TRY(bound(c, 1, "min", err));
    CD_TRY(bound(c, 2, "max", err));
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    return cd_graph_call_set_output(c, 0, x->dtype, &x->shape, err);
}

/* The mask is all true outside training. From opset 12 on a file may ask for training, and with a
 * ratio of 0 that changes nothing. */
cdmpp_status cd_graph_infer_dropout(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0), *ratio = cd_graph_call_input(c, 1),
                          *trains = cd_graph_call_input(c, 2);
    const bool none = ratio && ratio->fvalue && cd_graph_shape_elements(&ratio->shape) == 1 &&
                      !(ratio->fvalue[0] > 0);
    if (trains && !none && !trains->value)
        return CD_FAIL(err, EUNSUPPORTED,
                       "Dropout: whether it trains depends on the content of \"%s\"", trains->name);
    if (trains && !none && cd_graph_shape_elements(&trains->shape) == 1 && trains->value[0])
        return CD_FAIL(err, EUNSUPPORTED,
                       "Dropout with training_mode: it draws a mask in each run");
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &x->shape, err));
    return cd_graph_call_set_output(c, 1, CD_BOOL, &x->shape, err);
}

/* ---- quantized numbers ---- */
/* Attribute output_dtype; `absent` where it is 0 or left out. */
static cdmpp_status output_type(const cd_graph_call *c, cd_dtype absent, cd_dtype *t,
                                cdmpp_err *err) {
    int64_t v;
    char text[64];
    CD_TRY(cd_graph_call_int(c, "output_dtype", 0, &v, err));
    *t = absent;
    if (v && !cd_graph_dtype(v, t))
        return CD_FAIL(err, EUNSUPPORTED, "%s: %s", c->op,
                       cd_graph_dtype_name(v, text, sizeof text));
    return CDMPP_OK;
}

/* Operand 1: one scale, one for each position of the axis, or one for each block along the axis. */
static cdmpp_status check_scales(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_shape *x = &cd_graph_call_input(c, 0)->shape,
                         *s = &cd_graph_call_input(c, 1)->shape;
    int64_t given, block;
    uint32_t axis;
    char a[96], b[96];
    CD_TRY(cd_graph_call_default_int(c, "axis", 1, &given, err));
    CD_TRY(cd_graph_call_int(c, "block_size", 0, &block, err));
    if (block < 0) return CD_FAIL(err, ESCHEMA, "%s: block_size %lld", c->op, (long long)block);
    if (cd_graph_shape_elements(s) == 1 && !block) return CDMPP_OK;
    CD_TRY(cd_graph_call_normalize_axis(given, x->rank, &axis, err));
    bool fits = block ? s->rank == x->rank : s->rank == 1 && s->dim[0] == x->dim[axis];
    for (uint32_t d = 0; block && fits && d < x->rank; d++)
        fits = s->dim[d] == (d == axis ? (x->dim[d] + block - 1) / block : x->dim[d]);
    if (fits) return CDMPP_OK;
    return CD_FAIL(err, ESCHEMA, "%s: scales %s do not fit %s along axis %u", c->op,
                   cd_graph_shape_text(s, a, sizeof a), cd_graph_shape_text(x, b, sizeof b), axis);
}

cdmpp_status cd_graph_infer_quantize(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *zero = cd_graph_call_input(c, 2);
    const cd_dtype absent = zero ? zero->dtype : CD_DTYPE(CD_T_UINT, 8);
    cd_dtype t;
    CD_TRY(check_scales(c, err));
    CD_TRY(output_type(c, absent, &t, err));
    if (zero && t != absent)
        return CD_FAIL(err, ESCHEMA, "%s: output_dtype is another type than the zero point's",
                       c->op);
    return cd_graph_call_set_output(c, 0, t, &cd_graph_call_input(c, 0)->shape, err);
}

cdmpp_status cd_graph_infer_dequantize(cd_graph_call *c, cdmpp_err *err) {
    cd_dtype t;
    CD_TRY(check_scales(c, err));
    CD_TRY(output_type(c, cd_graph_call_input(c, 1)->dtype, &t, err));
    return cd_graph_call_set_output(c, 0, t, &cd_graph_call_input(c, 0)->shape, err);
}

/* y, its scale, its zero point */
cdmpp_status cd_graph_infer_dynamic_quantize(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_shape one = {0};
    CD_TRY(cd_graph_call_set_output(c, 0, CD_DTYPE(CD_T_UINT, 8), &cd_graph_call_input(c, 0)->shape,
                                    err));
    CD_TRY(cd_graph_call_set_output(c, 1, CD_F32, &one, err));
    return cd_graph_call_set_output(c, 2, CD_DTYPE(CD_T_UINT, 8), &one, err);
}

double cd_graph_flop_two(const cd_graph_call *c) { return 2 * cd_graph_flop_out(c); }
