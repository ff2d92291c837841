/* Operands and attributes of one operator. */
#include "profiler/network/graph/graph_call.h"

#include <stdio.h>
#include <string.h>

#include "profiler/network/graph/graph_make.h"

const cd_gtensor *cd_gcall_in(const cd_gcall *c, uint32_t i) {
    return i < c->n_in && c->in[i] != CD_GRAPH_NONE ? &c->g->tensor[c->in[i]] : NULL;
}

const char *cd_gshape_text(const cd_shape *s, char *buf, size_t n) {
    size_t at = (size_t)snprintf(buf, n, "[");
    for (uint32_t d = 0; d < s->rank && at < n; d++)
        at += (size_t)snprintf(buf + at, n - at, "%s%lld", d ? "," : "", (long long)s->dim[d]);
    if (at < n) snprintf(buf + at, n - at, "]");
    return buf;
}

cdmpp_status cd_gcall_rank(const cd_gcall *c, uint32_t i, uint32_t lo, uint32_t hi, cdmpp_err *err) {
    char text[192];
    const cd_gtensor *t = cd_gcall_in(c, i);
    if (t->shape.rank >= lo && t->shape.rank <= hi) return CDMPP_OK;
    cd_gshape_text(&t->shape, text, sizeof text);
    if (lo == hi) return CD_FAIL(err, ESCHEMA, "%s: operand %u: expected %u dimensions, found %s", c->op, i, lo, text);
    return CD_FAIL(err, ESCHEMA, "%s: operand %u: expected %u to %u dimensions, found %s", c->op, i, lo, hi, text);
}

cdmpp_status cd_gcall_ints(const cd_gcall *c, uint32_t i, const int64_t **v, uint32_t *n, cdmpp_err *err) {
    const cd_gtensor *t = cd_gcall_in(c, i);
    if (!t) return CD_FAIL(err, ESCHEMA, "%s: operand %u is missing", c->op, i);
    if (cd_dtype_is_float(t->dtype)) return CD_FAIL(err, ESCHEMA, "%s: operand %u: expected integers", c->op, i);
    if (!t->value)
        return CD_FAIL(err, EUNSUPPORTED, "%s: its shape depends on the content of \"%s\", which is not known before it runs",
                       c->op, t->name);
    if (t->shape.rank > 1) return CD_FAIL(err, ESCHEMA, "%s: operand %u: expected one dimension, found %u", c->op, i, t->shape.rank);
    *v = t->value;
    *n = (uint32_t)cd_shape_elements(&t->shape);
    return CDMPP_OK;
}

const cd_gattr *cd_gcall_attr(const cd_gcall *c, const char *name) {
    for (uint32_t i = 0; i < c->n_attr; i++)
        if (!strcmp(c->attr[i].name, name)) return &c->attr[i];
    return NULL;
}

static cdmpp_status kind(const cd_gcall *c, const char *name, cd_gattr_kind want, const cd_gattr **out, cdmpp_err *err) {
    static const char *const what[] = {"an integer", "a real number", "a text", "integers", "real numbers"};
    *out = cd_gcall_attr(c, name);
    if (!*out || (*out)->kind == want) return CDMPP_OK;
    return CD_FAIL(err, ESCHEMA, "%s: attribute %s: expected %s, found %s", c->op, name, what[want], what[(*out)->kind]);
}

cdmpp_status cd_gcall_int(const cd_gcall *c, const char *name, int64_t absent, int64_t *v, cdmpp_err *err) {
    const cd_gattr *a;
    CD_TRY(kind(c, name, CD_GATTR_INT, &a, err));
    *v = a ? a->i : absent;
    return CDMPP_OK;
}

cdmpp_status cd_gcall_float(const cd_gcall *c, const char *name, double absent, double *v, cdmpp_err *err) {
    const cd_gattr *a;
    CD_TRY(kind(c, name, CD_GATTR_FLOAT, &a, err));
    *v = a ? a->f : absent;
    return CDMPP_OK;
}

cdmpp_status cd_gcall_str(const cd_gcall *c, const char *name, const char *absent, const char **v, cdmpp_err *err) {
    const cd_gattr *a;
    CD_TRY(kind(c, name, CD_GATTR_STR, &a, err));
    *v = a ? a->s : absent;
    return CDMPP_OK;
}

cdmpp_status cd_gcall_attr_ints(const cd_gcall *c, const char *name, const int64_t **v, uint32_t *n, cdmpp_err *err) {
    const cd_gattr *a;
    CD_TRY(kind(c, name, CD_GATTR_INTS, &a, err));
    *v = a ? a->ints : NULL;
    *n = a ? a->n : 0;
    return CDMPP_OK;
}

static cdmpp_status slot(cd_gcall *c, const char *name, cd_gattr **out, cdmpp_err *err) {
    for (uint32_t i = 0; i < c->n_attr; i++)
        if (!strcmp(c->attr[i].name, name)) {
            *out = &c->attr[i];
            return CDMPP_OK;
        }
    if (c->n_attr == c->cap_attr) return CD_FAIL(err, ERANGE, "%s: too many attributes", c->op);
    *out = &c->attr[c->n_attr++];
    **out = (cd_gattr){.name = name}; /* a literal */
    return CDMPP_OK;
}

cdmpp_status cd_gcall_put_int(cd_gcall *c, const char *name, int64_t v, cdmpp_err *err) {
    cd_gattr *a;
    CD_TRY(slot(c, name, &a, err));
    *a = (cd_gattr){.name = a->name, .kind = CD_GATTR_INT, .i = v};
    return CDMPP_OK;
}

cdmpp_status cd_gcall_put_float(cd_gcall *c, const char *name, double v, cdmpp_err *err) {
    cd_gattr *a;
    CD_TRY(slot(c, name, &a, err));
    *a = (cd_gattr){.name = a->name, .kind = CD_GATTR_FLOAT, .f = v};
    return CDMPP_OK;
}

cdmpp_status cd_gcall_put_ints(cd_gcall *c, const char *name, const int64_t *v, uint32_t n, cdmpp_err *err) {
    cd_gattr *a;
    CD_TRY(slot(c, name, &a, err));
    int64_t *p = CD_NEWN(&c->g->arena, int64_t, (size_t)n + 1);
    if (!p) return CD_FAIL(err, ENOMEM, "an attribute");
    if (n) memcpy(p, v, n * sizeof *p);
    *a = (cd_gattr){.name = a->name, .kind = CD_GATTR_INTS, .n = n, .ints = p};
    return CDMPP_OK;
}

cdmpp_status cd_gcall_default_int(cd_gcall *c, const char *name, int64_t absent, int64_t *v, cdmpp_err *err) {
    CD_TRY(cd_gcall_int(c, name, absent, v, err));
    return cd_gcall_put_int(c, name, *v, err);
}

cdmpp_status cd_gcall_default_float(cd_gcall *c, const char *name, double absent, cdmpp_err *err) {
    double v;
    CD_TRY(cd_gcall_float(c, name, absent, &v, err));
    return cd_gcall_put_float(c, name, v, err);
}

cdmpp_status cd_gcall_norm_axis(int64_t axis, uint32_t rank, uint32_t *out, cdmpp_err *err) {
    const int64_t r = rank;
    if (axis < -r || axis >= r) return CD_FAIL(err, ESCHEMA, "axis %lld of %u dimensions", (long long)axis, rank);
    *out = (uint32_t)(axis < 0 ? axis + r : axis);
    return CDMPP_OK;
}

cdmpp_status cd_gcall_axis(cd_gcall *c, int64_t absent, uint32_t rank, uint32_t *out, cdmpp_err *err) {
    int64_t axis;
    CD_TRY(cd_gcall_int(c, "axis", absent, &axis, err));
    CD_TRY(cd_gcall_norm_axis(axis, rank, out, err));
    return cd_gcall_put_int(c, "axis", *out, err);
}

cdmpp_status cd_gcall_param(const cd_gcall *c, uint32_t i, const char *name, const int64_t **v, uint32_t *n, cdmpp_err *err) {
    if (cd_gcall_in(c, i)) return cd_gcall_ints(c, i, v, n, err);
    return cd_gcall_attr_ints(c, name, v, n, err);
}

cdmpp_status cd_gcall_axes(cd_gcall *c, uint32_t i, uint32_t rank, uint32_t axes[CD_GRAPH_MAX_RANK], uint32_t *n, cdmpp_err *err) {
    const int64_t *v;
    uint32_t m, mask = 0;
    int64_t sorted[CD_GRAPH_MAX_RANK];
    *n = 0;
    CD_TRY(cd_gcall_param(c, i, "axes", &v, &m, err));
    for (uint32_t k = 0; k < m; k++) {
        uint32_t a;
        CD_TRY(cd_gcall_norm_axis(v[k], rank, &a, err));
        if (mask >> a & 1) return CD_FAIL(err, ESCHEMA, "%s: axis %u twice", c->op, a);
        mask |= 1U << a;
    }
    for (uint32_t a = 0; a < rank; a++)
        if (mask >> a & 1) {
            sorted[*n] = a;
            axes[(*n)++] = a;
        }
    return m ? cd_gcall_put_ints(c, "axes", sorted, *n, err) : CDMPP_OK;
}

void cd_gcall_out(cd_gcall *c, uint32_t o, cd_dtype t, const cd_shape *s) {
    if (o >= c->n_out) return;
    c->out[o].dtype = t;
    c->out[o].shape = *s;
}

cdmpp_status cd_gshape_push(cd_shape *s, int64_t d, cdmpp_err *err) {
    if (s->rank == CD_GRAPH_MAX_RANK) return CD_FAIL(err, ERANGE, "expected at most %d dimensions", CD_GRAPH_MAX_RANK);
    s->dim[s->rank++] = d;
    return CDMPP_OK;
}

cdmpp_status cd_gshape_broadcast(cd_shape *a, const cd_shape *b, cdmpp_err *err) {
    char ta[96], tb[96];
    cd_shape o = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (uint32_t k = 1; k <= o.rank; k++) {
        const int64_t x = k <= a->rank ? a->dim[a->rank - k] : 1, y = k <= b->rank ? b->dim[b->rank - k] : 1;
        if (x != y && x != 1 && y != 1)
            return CD_FAIL(err, ESCHEMA, "%s and %s do not broadcast", cd_gshape_text(a, ta, sizeof ta), cd_gshape_text(b, tb, sizeof tb));
        o.dim[o.rank - k] = x == 1 ? y : x;
    }
    *a = o;
    return CDMPP_OK;
}

double cd_gflop_out(const cd_gcall *c) { return (double)cd_shape_elements(&c->out[0].shape); }
double cd_gflop_in(const cd_gcall *c) { return (double)cd_shape_elements(&cd_gcall_in(c, 0)->shape); }

bool cd_graph_dtype(int64_t onnx, cd_dtype *out) {
    static const cd_dtype type[] = {0, CD_F32, CD_DTYPE(CD_T_UINT, 8), CD_DTYPE(CD_T_INT, 8), CD_DTYPE(CD_T_UINT, 16),
        CD_DTYPE(CD_T_INT, 16), CD_I32, CD_I64, 0, CD_BOOL, CD_DTYPE(CD_T_FLOAT, 16), CD_DTYPE(CD_T_FLOAT, 64),
        CD_DTYPE(CD_T_UINT, 32), CD_DTYPE(CD_T_UINT, 64), 0, 0, CD_DTYPE(CD_T_BFLOAT, 16)};
    *out = onnx > 0 && onnx < (int64_t)(sizeof type / sizeof *type) ? type[onnx] : 0;
    return *out != 0;
}
