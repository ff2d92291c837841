/* Operators that give a shape, ask for one, or make a tensor of one. Shape, Size and NonZero set
 * the content of their result in infer: their operand's content need not be known. */
#include <math.h>

#include "profiler/network/graph/graph_call_internal.h"

cdmpp_status cd_graph_infer_identity(cd_graph_call *c, cdmpp_err *err) {
    return cd_graph_infer_same(c, err);
}

/* A 0 copies the dimension of x (unless allowzero is set); one -1 takes what is left. The product
 * is checked before the division that fills the -1. */
cdmpp_status cd_graph_infer_reshape(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    const int64_t *v;
    int64_t zero, known = 1, n = cd_graph_shape_elements(&x->shape);
    uint32_t m, hole = CD_GRAPH_NONE;
    cd_graph_shape o = {0};
    char tx[96], to[96];
    CD_TRY(cd_graph_call_param(c, 1, "shape", &v, &m, err));
    CD_TRY(cd_graph_call_int(c, "allowzero", 0, &zero, err));
    if (!v && !cd_graph_call_attr(c, "shape")) return CD_FAIL(err, ESCHEMA, "%s: no shape", c->op);
    for (uint32_t i = 0; i < m; i++) {
        int64_t d = v[i];
        if (d == 0 && !zero) {
            if (i >= x->shape.rank)
                return CD_FAIL(err, ESCHEMA, "%s: dimension %u is to be copied from %u", c->op, i,
                               x->shape.rank);
            d = x->shape.dim[i];
        }
        if (d < -1 || (d == -1 && hole != CD_GRAPH_NONE))
            return CD_FAIL(err, ESCHEMA, "%s: dimension %u is %lld", c->op, i, (long long)d);
        if (d == -1) hole = i;
        CD_TRY(cd_graph_shape_push(&o, d == -1 ? 1 : d, err));
    }
    CD_TRY(cd_graph_shape_check(&o, err));
    known = cd_graph_shape_elements(&o);
    if (hole != CD_GRAPH_NONE) o.dim[hole] = known ? n / known : 0;
    if (cd_graph_shape_elements(&o) != n) {
        if (hole != CD_GRAPH_NONE) o.dim[hole] = -1;
        return CD_FAIL(err, ESCHEMA, "%s of %s to %s", c->op,
                       cd_graph_shape_text(&x->shape, tx, sizeof tx),
                       cd_graph_shape_text(&o, to, sizeof to));
    }
    return cd_graph_call_set_output(c, 0, x->dtype, &o, err);
}

cdmpp_status cd_graph_infer_flatten(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    const int64_t r = x->shape.rank;
    int64_t axis;
    cd_graph_shape o = {2, {1, 1}};
    CD_TRY(cd_graph_call_int(c, "axis", 1, &axis, err));
    if (axis < -r || axis > r)
        return CD_FAIL(err, ESCHEMA, "Flatten: axis %lld of %lld dimensions", (long long)axis,
                       (long long)r);
    if (axis < 0) axis += r;
    for (int64_t d = 0; d < r; d++) o.dim[d >= axis] *= x->shape.dim[d];
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &o, err));
    return cd_graph_call_set_int(c, "axis", axis, err);
}

cdmpp_status cd_graph_infer_squeeze(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    uint32_t axes[CD_GRAPH_MAX_RANK], n, mask = 0;
    cd_graph_shape o = {0};
    CD_TRY(cd_graph_call_axes(c, 1, x->shape.rank, axes, &n, err));
    for (uint32_t i = 0; i < n; i++) mask |= 1U << axes[i];
    for (uint32_t d = 0; d < x->shape.rank; d++) {
        const bool one = x->shape.dim[d] == 1;
        if ((mask >> d & 1) && !one)
            return CD_FAIL(err, ESCHEMA, "Squeeze: dimension %u is %lld", d,
                           (long long)x->shape.dim[d]);
        if (!(n ? mask >> d & 1 : one)) o.dim[o.rank++] = x->shape.dim[d];
    }
    return cd_graph_call_set_output(c, 0, x->dtype, &o, err);
}

cdmpp_status cd_graph_infer_unsqueeze(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    const int64_t *v;
    uint32_t axes[CD_GRAPH_MAX_RANK], n, m, mask = 0, from = 0;
    cd_graph_shape o = {0};
    CD_TRY(cd_graph_call_param(c, 1, "axes", &v, &m, err));
    if (m > CD_GRAPH_MAX_RANK - x->shape.rank)
        return CD_FAIL(err, ERANGE, "Unsqueeze: expected at most %d dimensions", CD_GRAPH_MAX_RANK);
    CD_TRY(cd_graph_call_axes(c, 1, x->shape.rank + m, axes, &n, err));
    for (uint32_t i = 0; i < n; i++) mask |= 1U << axes[i];
    for (uint32_t d = 0; d < x->shape.rank + n; d++)
        o.dim[o.rank++] = mask >> d & 1 ? 1 : x->shape.dim[from++];
    return cd_graph_call_set_output(c, 0, x->dtype, &o, err);
}

static cdmpp_status read_perm(cd_graph_call *c, uint32_t rank, int64_t *perm, cdmpp_err *err) {
    const int64_t *v;
    uint32_t n, seen = 0;
    CD_TRY(cd_graph_call_attr_ints(c, "perm", &v, &n, err));
    if (v && n != rank)
        return CD_FAIL(err, ESCHEMA, "Transpose: %u numbers for %u dimensions", n, rank);
    for (uint32_t d = 0; d < rank; d++) {
        perm[d] = v ? v[d] : (int64_t)(rank - 1 - d);
        if (perm[d] < 0 || perm[d] >= rank || (seen >> perm[d] & 1))
            return CD_FAIL(err, ESCHEMA, "Transpose: perm is no permutation");
        seen |= 1U << perm[d];
    }
    return cd_graph_call_set_ints(c, "perm", perm, rank, err);
}

cdmpp_status cd_graph_infer_transpose(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    int64_t perm[CD_GRAPH_MAX_RANK];
    cd_graph_shape o = {.rank = x->shape.rank};
    CD_TRY(read_perm(c, o.rank, perm, err));
    for (uint32_t d = 0; d < o.rank; d++) o.dim[d] = x->shape.dim[perm[d]];
    return cd_graph_call_set_output(c, 0, x->dtype, &o, err);
}

static int64_t from_transposed(const void *ctx, const int64_t *at) {
    const cd_graph_call *c = ctx;
    const int64_t *perm = cd_graph_call_attr(c, "perm")->ints;
    const cd_graph_shape *x = &cd_graph_call_input(c, 0)->shape;
    int64_t to[CD_GRAPH_MAX_RANK];
    for (uint32_t d = 0; d < x->rank; d++) to[perm[d]] = at[d];
    return cd_graph_shape_offset(x, x->rank, to);
}

cdmpp_status cd_graph_fold_transpose(cd_graph_call *c, cdmpp_err *err) {
    return cd_graph_call_gather(c, 0, from_transposed, c, err);
}

cdmpp_status cd_graph_infer_expand(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    const int64_t *v;
    uint32_t n;
    cd_graph_shape o = x->shape, want = {0};
    CD_TRY(cd_graph_call_ints(c, 1, &v, &n, err));
    for (uint32_t i = 0; i < n; i++) CD_TRY(cd_graph_shape_push(&want, v[i], err));
    CD_TRY(cd_graph_shape_check(&want, err));
    CD_TRY(cd_graph_shape_broadcast(&o, &want, err));
    return cd_graph_call_set_output(c, 0, x->dtype, &o, err);
}

/* Expand: dimensions of 1 are read again, which cd_graph_shape_offset does. */
static int64_t from_smaller(const void *ctx, const int64_t *at) {
    const cd_graph_call *c = ctx;
    return cd_graph_shape_offset(&cd_graph_call_input(c, 0)->shape, c->out[0].shape.rank, at);
}

cdmpp_status cd_graph_fold_expand(cd_graph_call *c, cdmpp_err *err) {
    return cd_graph_call_gather(c, 0, from_smaller, c, err);
}

/* start, end: of opset 15; out of range they are moved into it. */
static cdmpp_status shape_range(const cd_graph_call *c, int64_t r, int64_t *beg, int64_t *end,
                                cdmpp_err *err) {
    CD_TRY(cd_graph_call_int(c, "start", 0, beg, err));
    CD_TRY(cd_graph_call_int(c, "end", r, end, err));
    *beg = *beg < -r ? 0 : *beg < 0 ? *beg + r : *beg > r ? r : *beg;
    *end = *end < -r ? 0 : *end < 0 ? *end + r : *end > r ? r : *end;
    return CDMPP_OK;
}

cdmpp_status cd_graph_infer_shape(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    int64_t beg, end, *v;
    double *f;
    CD_TRY(shape_range(c, x->shape.rank, &beg, &end, err));
    const cd_graph_shape o = {1, {end > beg ? end - beg : 0}};
    CD_TRY(cd_graph_call_set_output(c, 0, CD_I64, &o, err));
    CD_TRY(cd_graph_call_content(c, 0, &v, &f, err));
    for (int64_t d = beg; d < end && v; d++) v[d - beg] = x->shape.dim[d];
    return CDMPP_OK;
}

cdmpp_status cd_graph_infer_size(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_shape o = {0};
    int64_t *v;
    double *f;
    CD_TRY(cd_graph_call_set_output(c, 0, CD_I64, &o, err));
    CD_TRY(cd_graph_call_content(c, 0, &v, &f, err));
    if (v) v[0] = cd_graph_shape_elements(&cd_graph_call_input(c, 0)->shape);
    return CDMPP_OK;
}

static cdmpp_status dims(const int64_t *v, uint32_t n, cd_graph_shape *o, cdmpp_err *err) {
    *o = (cd_graph_shape){0};
    for (uint32_t i = 0; i < n; i++) CD_TRY(cd_graph_shape_push(o, v[i], err));
    return cd_graph_shape_check(o, err);
}

/* Attribute dtype, ONNX's number. */
static cdmpp_status attr_type(const cd_graph_call *c, cd_dtype absent, cd_dtype *t,
                              cdmpp_err *err) {
    int64_t to;
    char text[64];
    CD_TRY(cd_graph_call_int(c, "dtype", 0, &to, err));
    *t = absent;
    if (cd_graph_call_attr(c, "dtype") && !cd_graph_dtype(to, t))
        return CD_FAIL(err, EUNSUPPORTED, "%s: %s", c->op,
                       cd_graph_dtype_name(to, text, sizeof text));
    return CDMPP_OK;
}

/* `value` is an integer or a real here, 0 where it is left out. */
cdmpp_status cd_graph_infer_constant_of_shape(cd_graph_call *c, cdmpp_err *err) {
    const int64_t *v;
    uint32_t n;
    cd_graph_shape o;
    cd_dtype t;
    CD_TRY(cd_graph_call_ints(c, 0, &v, &n, err));
    CD_TRY(dims(v, n, &o, err));
    CD_TRY(attr_type(c, CD_F32, &t, err));
    return cd_graph_call_set_output(c, 0, t, &o, err);
}

/* Reals of more than one element stand in for weights: what they hold is of no interest. */
cdmpp_status cd_graph_fold_constant_of_shape(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_attr *a = cd_graph_call_attr(c, "value");
    const int64_t n = cd_graph_shape_elements(&c->out[0].shape);
    int64_t *v;
    double *f;
    if (cd_expr_dtype_is_float(c->out[0].dtype) && n > 1) return CDMPP_OK;
    CD_TRY(cd_graph_call_content(c, 0, &v, &f, err));
    for (int64_t k = 0; k < n && a && (v || f); k++) {
        if (f) f[k] = a->kind == CD_GRAPH_ATTR_FLOAT ? a->f : (double)a->i;
        if (v && a->kind == CD_GRAPH_ATTR_INT) v[k] = cd_graph_type_wrap(c->out[0].dtype, a->i);
    }
    return CDMPP_OK;
}

/* Reals count as they do in ONNX's text: max(ceil((limit - start) / delta), 0). */
cdmpp_status cd_graph_infer_range(cd_graph_call *c, cdmpp_err *err) {
    double x[3];
    for (uint32_t i = 0; i < 3; i++) {
        const cd_graph_tensor *t = cd_graph_call_input(c, i);
        if (!cd_graph_call_is_known(t))
            return CD_FAIL(err, EUNSUPPORTED, "Range: its length depends on the content of \"%s\"",
                           t->name);
        if (cd_graph_shape_elements(&t->shape) != 1)
            return CD_FAIL(err, ESCHEMA, "Range: operand %u: expected one number", i);
        x[i] = t->fvalue ? t->fvalue[0] : (double)t->value[0];
    }
    const double n = ceil((x[1] - x[0]) / x[2]);
    if (!(x[2] < 0 || x[2] > 0) || !(n < 1e15))
        return CD_FAIL(err, ERANGE, "Range from %g to %g by %g", x[0], x[1], x[2]);
    const cd_graph_shape o = {1, {n > 0 ? (int64_t)n : 0}};
    return cd_graph_call_set_output(c, 0, cd_graph_call_input(c, 0)->dtype, &o, err);
}

cdmpp_status cd_graph_fold_range(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *a = cd_graph_call_input(c, 0), *b = cd_graph_call_input(c, 2);
    int64_t *v;
    double *f;
    if ((a->value != NULL) != (b->value != NULL)) return CDMPP_OK;
    CD_TRY(cd_graph_call_content(c, 0, &v, &f, err));
    for (int64_t k = 0; k < c->out[0].shape.dim[0] && (v || f); k++) {
        if (v)
            v[k] = cd_graph_type_wrap(
                a->dtype, (int64_t)((uint64_t)a->value[0] + (uint64_t)k * (uint64_t)b->value[0]));
        if (f) f[k] = cd_graph_type_round(a->dtype, a->fvalue[0] + (double)k * b->fvalue[0]);
    }
    return CDMPP_OK;
}

cdmpp_status cd_graph_infer_eyelike(cd_graph_call *c, cdmpp_err *err) {
    cd_dtype t;
    CD_TRY(cd_graph_call_rank(c, 0, 2, 2, err));
    CD_TRY(attr_type(c, cd_graph_call_input(c, 0)->dtype, &t, err));
    return cd_graph_call_set_output(c, 0, t, &cd_graph_call_input(c, 0)->shape, err);
}

cdmpp_status cd_graph_infer_random_like(cd_graph_call *c, cdmpp_err *err) {
    cd_dtype t;
    CD_TRY(attr_type(c, cd_graph_call_input(c, 0)->dtype, &t, err));
    return cd_graph_call_set_output(c, 0, t, &cd_graph_call_input(c, 0)->shape, err);
}

cdmpp_status cd_graph_infer_random(cd_graph_call *c, cdmpp_err *err) {
    const int64_t *v;
    uint32_t n;
    cd_graph_shape o;
    cd_dtype t;
    CD_TRY(cd_graph_call_attr_ints(c, "shape", &v, &n, err));
    if (!v) return CD_FAIL(err, ESCHEMA, "%s: expected attribute shape", c->op);
    CD_TRY(dims(v, n, &o, err));
    CD_TRY(attr_type(c, CD_F32, &t, err));
    return cd_graph_call_set_output(c, 0, t, &o, err);
}

/* One row for each dimension, a column for each element that is not 0: only of known content. */
cdmpp_status cd_graph_infer_nonzero(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    int64_t n = 0, m = cd_graph_shape_elements(&x->shape), at[CD_GRAPH_MAX_RANK] = {0}, *v, col = 0;
    double *f;
    if (!cd_graph_call_is_known(x) || !cd_graph_call_may_read(c, m))
        return cd_graph_infer_dynamic(c, err);
    for (int64_t k = 0; k < m; k++) n += x->value ? x->value[k] != 0 : x->fvalue[k] != 0;
    const cd_graph_shape o = {2, {x->shape.rank, n}};
    CD_TRY(cd_graph_call_set_output(c, 0, CD_I64, &o, err));
    CD_TRY(cd_graph_call_content(c, 0, &v, &f, err));
    for (int64_t k = 0; k < m && v; k++, cd_graph_shape_next(&x->shape, at)) {
        if (!(x->value ? x->value[k] != 0 : x->fvalue[k] != 0)) continue;
        for (uint32_t d = 0; d < x->shape.rank; d++) v[d * n + col] = at[d];
        col++;
    }
    return CDMPP_OK;
}

/* Operators whose result's size depends on the data: the caller may continue with an opaque
 * node. */
cdmpp_status cd_graph_infer_dynamic(cd_graph_call *c, cdmpp_err *err) {
    return CD_FAIL(err, EUNSUPPORTED, "%s: how large its result is depends on the data", c->op);
}
