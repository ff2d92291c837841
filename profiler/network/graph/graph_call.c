/* Reading the operands and attributes of the operator that is being added, and writing its resolved
 * attributes. Every rule reads through these functions, so that wrong kinds and missing operands
 * give one form of message. */
#include "profiler/network/graph/graph_call_internal.h"

#include <stdio.h>
#include <string.h>

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

cdmpp_status cd_graph_call_set_float(cd_graph_call *c, const char *name, double v, cdmpp_err *err) {
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
    return cd_graph_call_set_float(c, name, v, err);
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
