/* Reading the operands and attributes of the operator that is being added, and writing its resolved
 * attributes. Every rule reads through these functions, so that wrong kinds and missing operands
 * give one form of message. */
#include <stdio.h>
#include <string.h>

#include "profiler/network/graph/graph_call_internal.h"

const cd_graph_tensor *cd_graph_call_input(const cd_graph_call *c, uint32_t i) {
    return i < c->n_in && c->in[i] != CD_GRAPH_NONE ? &c->g->tensor[c->in[i]] : NULL;
}

const char *cd_graph_shape_text(const cd_graph_shape *s, char *buf, size_t n) {
    size_t at = (size_t)snprintf(buf, n, "[");
    for (uint32_t d = 0; d < s->rank && at < n; d++)
        at += (size_t)snprintf(buf + at, n - at, "%s%lld", d ? "," : "", (long long)s->dim[d]);
    if (at < n) snprintf(buf + at, n - at, "]");
    return buf;
}

cdmpp_status cd_graph_call_rank(const cd_graph_call *c, uint32_t i, uint32_t lo, uint32_t hi,
                                cdmpp_err *err) {
    char text[192];
    const cd_graph_tensor *t = cd_graph_call_input(c, i);
    if (t->shape.rank >= lo && t->shape.rank <= hi) return CDMPP_OK;
    cd_graph_shape_text(&t->shape, text, sizeof text);
    if (lo == hi)
        return CD_FAIL(err, ESCHEMA, "%s: operand %u: expected %u dimensions, found %s", c->op, i,
                       lo, text);
    return CD_FAIL(err, ESCHEMA, "%s: operand %u: expected %u to %u dimensions, found %s", c->op, i,
                   lo, hi, text);
}

cdmpp_status cd_graph_call_ints(const cd_graph_call *c, uint32_t i, const int64_t **v, uint32_t *n,
                                cdmpp_err *err) {
    const cd_graph_tensor *t = cd_graph_call_input(c, i);
    if (!t) return CD_FAIL(err, ESCHEMA, "%s: operand %u is missing", c->op, i);
    if (cd_expr_dtype_is_float(t->dtype))
        return CD_FAIL(err, ESCHEMA, "%s: operand %u: expected integers", c->op, i);
    if (!t->value)
        return CD_FAIL(
            err, EUNSUPPORTED,
            "%s: its shape depends on the content of \"%s\", which is not known before it runs",
            c->op, t->name);
    if (t->shape.rank > 1)
        return CD_FAIL(err, ESCHEMA, "%s: operand %u: expected one dimension, found %u", c->op, i,
                       t->shape.rank);
    *v = t->value;
    *n = (uint32_t)cd_graph_shape_elements(&t->shape);
    return CDMPP_OK;
}

const cd_graph_attr *cd_graph_call_attr(const cd_graph_call *c, const char *name) {
    for (uint32_t i = 0; i < c->n_attr; i++)
        if (!strcmp(c->attr[i].name, name)) return &c->attr[i];
    return NULL;
}

/* Attribute of one kind; *out NULL where it is absent. */
static cdmpp_status kind(const cd_graph_call *c, const char *name, cd_graph_attr_kind want,
                         const cd_graph_attr **out, cdmpp_err *err) {
    static const char *const what[] = {"an integer", "a real number", "a text", "integers",
                                       "real numbers"};
    *out = cd_graph_call_attr(c, name);
    if (!*out || (*out)->kind == want) return CDMPP_OK;
    return CD_FAIL(err, ESCHEMA, "%s: attribute %s: expected %s, found %s", c->op, name, what[want],
                   what[(*out)->kind]);
}

cdmpp_status cd_graph_call_int(const cd_graph_call *c, const char *name, int64_t absent, int64_t *v,
                               cdmpp_err *err) {
    const cd_graph_attr *a;
    CD_TRY(kind(c, name, CD_GRAPH_ATTR_INT, &a, err));
    *v = a ? a->i : absent;
    return CDMPP_OK;
}

static cdmpp_status read_float(const cd_graph_call *c, const char *name, double absent, double *v,
                               cdmpp_err *err) {
    const cd_graph_attr *a;
    CD_TRY(kind(c, name, CD_GRAPH_ATTR_FLOAT, &a, err));
    *v = a ? a->f : absent;
    return CDMPP_OK;
}

cdmpp_status cd_graph_call_str(const cd_graph_call *c, const char *name, const char *absent,
                               const char **v, cdmpp_err *err) {
    const cd_graph_attr *a;
    CD_TRY(kind(c, name, CD_GRAPH_ATTR_STR, &a, err));
    *v = a ? a->s : absent;
    return CDMPP_OK;
}

cdmpp_status cd_graph_call_attr_ints(const cd_graph_call *c, const char *name, const int64_t **v,
                                     uint32_t *n, cdmpp_err *err) {
    const cd_graph_attr *a;
    CD_TRY(kind(c, name, CD_GRAPH_ATTR_INTS, &a, err));
    *v = a ? a->ints : NULL;
    *n = a ? a->n : 0;
    return CDMPP_OK;
}

/* The place of a resolved attribute: the given one of that name is replaced. New names are literals
 * and need no copy. */
static cdmpp_status slot(cd_graph_call *c, const char *name, cd_graph_attr **out, cdmpp_err *err) {
    for (uint32_t i = 0; i < c->n_attr; i++)
        if (!strcmp(c->attr[i].name, name)) {
            *out = &c->attr[i];
            return CDMPP_OK;
        }
    if (c->n_attr == c->cap_attr) return CD_FAIL(err, ERANGE, "%s: too many attributes", c->op);
    *out = &c->attr[c->n_attr++];
    **out = (cd_graph_attr){.name = name}; /* a literal */
    return CDMPP_OK;
}

cdmpp_status cd_graph_call_set_int(cd_graph_call *c, const char *name, int64_t v, cdmpp_err *err) {
    cd_graph_attr *a;
    CD_TRY(slot(c, name, &a, err));
    *a = (cd_graph_attr){.name = a->name, .kind = CD_GRAPH_ATTR_INT, .i = v};
    return CDMPP_OK;
}

static cdmpp_status graph_call_set_float(cd_graph_call *c, const char *name, double v,
                                         cdmpp_err *err) {
    cd_graph_attr *a;
    CD_TRY(slot(c, name, &a, err));
    *a = (cd_graph_attr){.name = a->name, .kind = CD_GRAPH_ATTR_FLOAT, .f = v};
    return CDMPP_OK;
}

cdmpp_status cd_graph_call_set_ints(cd_graph_call *c, const char *name, const int64_t *v,
                                    uint32_t n, cdmpp_err *err) {
    cd_graph_attr *a;
    CD_TRY(slot(c, name, &a, err));
    int64_t *p = CD_NEWN(&c->g->arena, int64_t, (size_t)n + 1);
    if (!p) return CD_FAIL(err, ENOMEM, "an attribute");
    if (n) memcpy(p, v, n * sizeof *p);
    *a = (cd_graph_attr){.name = a->name, .kind = CD_GRAPH_ATTR_INTS, .n = n, .ints = p};
    return CDMPP_OK;
}

cdmpp_status cd_graph_call_set_floats(cd_graph_call *c, const char *name, const double *v,
                                      uint32_t n, cdmpp_err *err) {
    cd_graph_attr *a;
    CD_TRY(slot(c, name, &a, err));
    double *p = CD_NEWN(&c->g->arena, double, (size_t)n + 1);
    if (!p) return CD_FAIL(err, ENOMEM, "an attribute");
    if (n) memcpy(p, v, n * sizeof *p);
    *a = (cd_graph_attr){.name = a->name, .kind = CD_GRAPH_ATTR_FLOATS, .n = n, .floats = p};
    return CDMPP_OK;
}

cdmpp_status cd_graph_call_default_int(cd_graph_call *c, const char *name, int64_t absent,
                                       int64_t *v, cdmpp_err *err) {
    CD_TRY(cd_graph_call_int(c, name, absent, v, err));
    return cd_graph_call_set_int(c, name, *v, err);
}

cdmpp_status cd_graph_call_default_float(cd_graph_call *c, const char *name, double absent,
                                         cdmpp_err *err) {
    double v;
    CD_TRY(read_float(c, name, absent, &v, err));
    return graph_call_set_float(c, name, v, err);
}

cdmpp_status cd_graph_call_normalize_axis(int64_t axis, uint32_t rank, uint32_t *out,
                                          cdmpp_err *err) {
    const int64_t r = rank;
    if (axis < -r || axis >= r)
        return CD_FAIL(err, ESCHEMA, "axis %lld of %u dimensions", (long long)axis, rank);
    *out = (uint32_t)(axis < 0 ? axis + r : axis);
    return CDMPP_OK;
}

cdmpp_status cd_graph_call_axis(cd_graph_call *c, int64_t absent, uint32_t rank, uint32_t *out,
                                cdmpp_err *err) {
    int64_t axis;
    CD_TRY(cd_graph_call_int(c, "axis", absent, &axis, err));
    CD_TRY(cd_graph_call_normalize_axis(axis, rank, out, err));
    return cd_graph_call_set_int(c, "axis", *out, err);
}

cdmpp_status cd_graph_call_param(const cd_graph_call *c, uint32_t i, const char *name,
                                 const int64_t **v, uint32_t *n, cdmpp_err *err) {
    if (cd_graph_call_input(c, i)) return cd_graph_call_ints(c, i, v, n, err);
    return cd_graph_call_attr_ints(c, name, v, n, err);
}

/* A mask of bits finds repeats and sorts at once. */
cdmpp_status cd_graph_call_axes(cd_graph_call *c, uint32_t i, uint32_t rank,
                                uint32_t axes[CD_GRAPH_MAX_RANK], uint32_t *n, cdmpp_err *err) {
    const int64_t *v;
    uint32_t m, mask = 0;
    int64_t sorted[CD_GRAPH_MAX_RANK];
    *n = 0;
    CD_TRY(cd_graph_call_param(c, i, "axes", &v, &m, err));
    for (uint32_t k = 0; k < m; k++) {
        uint32_t a;
        CD_TRY(cd_graph_call_normalize_axis(v[k], rank, &a, err));
        if (mask >> a & 1) return CD_FAIL(err, ESCHEMA, "%s: axis %u twice", c->op, a);
        mask |= 1U << a;
    }
    for (uint32_t a = 0; a < rank; a++)
        if (mask >> a & 1) {
            sorted[*n] = a;
            axes[(*n)++] = a;
        }
    return m ? cd_graph_call_set_ints(c, "axes", sorted, *n, err) : CDMPP_OK;
}

cdmpp_status cd_graph_call_set_output(cd_graph_call *c, uint32_t o, cd_dtype t,
                                      const cd_graph_shape *s, cdmpp_err *err) {
    if (o >= c->n_out) return CDMPP_OK;
    c->out[o].dtype = t;
    c->out[o].shape = *s;
    return cd_graph_shape_check(s, err);
}

cdmpp_status cd_graph_shape_push(cd_graph_shape *s, int64_t d, cdmpp_err *err) {
    if (s->rank == CD_GRAPH_MAX_RANK)
        return CD_FAIL(err, ERANGE, "expected at most %d dimensions", CD_GRAPH_MAX_RANK);
    s->dim[s->rank++] = d;
    return CDMPP_OK;
}

cdmpp_status cd_graph_shape_broadcast(cd_graph_shape *a, const cd_graph_shape *b, cdmpp_err *err) {
    char ta[96], tb[96];
    cd_graph_shape o = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (uint32_t k = 1; k <= o.rank; k++) {
        const int64_t x = k <= a->rank ? a->dim[a->rank - k] : 1,
                      y = k <= b->rank ? b->dim[b->rank - k] : 1;
        if (x != y && x != 1 && y != 1)
            return CD_FAIL(err, ESCHEMA, "%s and %s do not broadcast",
                           cd_graph_shape_text(a, ta, sizeof ta),
                           cd_graph_shape_text(b, tb, sizeof tb));
        o.dim[o.rank - k] = x == 1 ? y : x;
    }
    *a = o;
    return CDMPP_OK;
}

double cd_graph_flop_out(const cd_graph_call *c) {
    return (double)cd_graph_shape_elements(&c->out[0].shape);
}
double cd_graph_flop_in(const cd_graph_call *c) {
    return (double)cd_graph_shape_elements(&cd_graph_call_input(c, 0)->shape);
}

bool cd_graph_dtype(int64_t onnx, cd_dtype *out) {
    static const cd_dtype type[] = {0,
                                    CD_F32,
                                    CD_DTYPE(CD_T_UINT, 8),
                                    CD_DTYPE(CD_T_INT, 8),
                                    CD_DTYPE(CD_T_UINT, 16),
                                    CD_DTYPE(CD_T_INT, 16),
                                    CD_I32,
                                    CD_I64,
                                    0,
                                    CD_BOOL,
                                    CD_DTYPE(CD_T_FLOAT, 16),
                                    CD_DTYPE(CD_T_FLOAT, 64),
                                    CD_DTYPE(CD_T_UINT, 32),
                                    CD_DTYPE(CD_T_UINT, 64),
                                    0,
                                    0,
                                    CD_DTYPE(CD_T_BFLOAT, 16),
                                    CD_DTYPE(CD_T_E4M3FN, 8),
                                    CD_DTYPE(CD_T_E4M3FNUZ, 8),
                                    CD_DTYPE(CD_T_E5M2, 8),
                                    CD_DTYPE(CD_T_E5M2FNUZ, 8),
                                    CD_DTYPE(CD_T_UINT, 4),
                                    CD_DTYPE(CD_T_INT, 4),
                                    CD_DTYPE(CD_T_E2M1FN, 4),
                                    CD_DTYPE(CD_T_E8M0FNU, 8),
                                    CD_DTYPE(CD_T_UINT, 2),
                                    CD_DTYPE(CD_T_INT, 2)};
    *out = onnx > 0 && onnx < (int64_t)(sizeof type / sizeof *type) ? type[onnx] : 0;
    return *out != 0;
}

const char *cd_graph_dtype_name(int64_t onnx, char *buf, size_t n) {
    cd_dtype t;
    if (cd_graph_dtype(onnx, &t)) return cd_expr_dtype_format(t, buf, n);
    if (onnx == 8) snprintf(buf, n, "texts (type 8)");
    else if (onnx == 14 || onnx == 15) snprintf(buf, n, "complex numbers (type %d)", (int)onnx);
    else snprintf(buf, n, "a type that is not known (%lld)", (long long)onnx);
    return buf;
}

/* Element-wise operators: the shape is that of the operand, or of all operands broadcast together;
 * the type is the first operand's unless the operator says otherwise. */

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
    return graph_call_set_float(c, name, t->fvalue ? t->fvalue[0] : (double)t->value[0], err);
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

/* Operators along axes: reductions, largest and smallest elements, sorting, cumulative sums. */

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

/* Recurrent layers: X[seq,batch,I], W[D,G*H,I], R[D,G*H,H] -> Y[seq,D,batch,H], Y_h[D,batch,H],
 * Y_c. With layout 1 the batch stands first everywhere. */

static int64_t gates(const cd_graph_call *c) {
    return !strcmp(c->op, "LSTM") ? 4 : !strcmp(c->op, "GRU") ? 3 : 1;
}

static cdmpp_status directions(cd_graph_call *c, int64_t *n, cdmpp_err *err) {
    const char *s;
    CD_TRY(cd_graph_call_str(c, "direction", "forward", &s, err));
    *n = !strcmp(s, "bidirectional") ? 2 : 1;
    if (*n == 1 && strcmp(s, "forward") && strcmp(s, "reverse"))
        return CD_FAIL(err, ESCHEMA,
                       "%s: direction \"%s\": expected forward, reverse or bidirectional", c->op,
                       s);
    return CDMPP_OK;
}

static cdmpp_status check_weights(const cd_graph_call *c, int64_t D, int64_t H, cdmpp_err *err) {
    char tw[96], tr[96];
    const cd_graph_shape *x = &cd_graph_call_input(c, 0)->shape,
                         *w = &cd_graph_call_input(c, 1)->shape,
                         *r = &cd_graph_call_input(c, 2)->shape;
    const int64_t G = gates(c);
    if (w->dim[0] == D && r->dim[0] == D && r->dim[2] == H && r->dim[1] == G * H &&
        w->dim[1] == G * H && w->dim[2] == x->dim[2])
        return CDMPP_OK;
    return CD_FAIL(
        err, ESCHEMA,
        "%s: weights %s and %s do not fit %lld directions of %lld cells over %lld inputs", c->op,
        cd_graph_shape_text(w, tw, sizeof tw), cd_graph_shape_text(r, tr, sizeof tr), (long long)D,
        (long long)H, (long long)x->dim[2]);
}

/* One shape rule for RNN, GRU and LSTM, which differ in the number of gates. Y_c is the third
 * result of LSTM only. The bound on hidden_size keeps gates * hidden within int64. */
static cdmpp_status rnn(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    int64_t D, H, layout;
    for (uint32_t i = 0; i < 3; i++) CD_TRY(cd_graph_call_rank(c, i, 3, 3, err));
    CD_TRY(directions(c, &D, err));
    CD_TRY(cd_graph_call_default_int(c, "hidden_size", cd_graph_call_input(c, 2)->shape.dim[2], &H,
                                     err));
    CD_TRY(cd_graph_call_default_int(c, "layout", 0, &layout, err));
    if (layout != 0 && layout != 1)
        return CD_FAIL(err, ESCHEMA, "%s: layout %lld: expected 0 or 1", c->op, (long long)layout);
    if (H < 0 || H > (int64_t)1 << 40)
        return CD_FAIL(err, ERANGE, "%s: hidden_size is %lld", c->op, (long long)H);
    CD_TRY(check_weights(c, D, H, err));
    const int64_t seq = x->shape.dim[layout], batch = x->shape.dim[1 - layout];
    const cd_graph_shape y =
        layout ? (cd_graph_shape){4, {batch, seq, D, H}} : (cd_graph_shape){4, {seq, D, batch, H}};
    const cd_graph_shape h =
        layout ? (cd_graph_shape){3, {batch, D, H}} : (cd_graph_shape){3, {D, batch, H}};
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &y, err));
    CD_TRY(cd_graph_call_set_output(c, 1, x->dtype, &h, err));
    return cd_graph_call_set_output(c, 2, x->dtype, &h, err);
}

cdmpp_status cd_graph_infer_rnn(cd_graph_call *c, cdmpp_err *err) { return rnn(c, err); }
cdmpp_status cd_graph_infer_gru(cd_graph_call *c, cdmpp_err *err) { return rnn(c, err); }
cdmpp_status cd_graph_infer_lstm(cd_graph_call *c, cdmpp_err *err) { return rnn(c, err); }

/* For each element of Y: per gate both products, their sum, the biases and an activation; then what
 * the cell does. */
static double flop(const cd_graph_call *c, double cell) {
    const double i = (double)cd_graph_call_input(c, 0)->shape.dim[2],
                 h = (double)cd_graph_call_input(c, 2)->shape.dim[2];
    const double gate = 2 * i + 2 * h + 1 + (cd_graph_call_input(c, 3) ? 2 : 0) + 1;
    return cd_graph_flop_out(c) * ((double)gates(c) * gate + cell);
}

double cd_graph_flop_rnn(const cd_graph_call *c) { return flop(c, 0); }
/* r * h, (1 - z) * n + z * h */
double cd_graph_flop_gru(const cd_graph_call *c) { return flop(c, 5); }
/* f * c + i * g, o * tanh(c) */
double cd_graph_flop_lstm(const cd_graph_call *c) { return flop(c, 5); }
