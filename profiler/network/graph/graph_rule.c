/* The table of operators: one row for each operator and form, by name. An operator that is not here
 * becomes an opaque node (cd_graph_opaque) and is listed as unsupported. Rows say only what the
 * graph needs; how an operator is computed is decided later: fuse_import*.c turns the node into
 * fusion operators, te_compute*.c writes those as stages, autodiff*.c derives them. */
#include <math.h>
#include <string.h>

#include "profiler/network/graph/graph_call_internal.h"

/* Normalisations and softmax. The operation count for an element follows the formula, one pass for
 * each sum: it does not depend on what a compiler can fuse. */

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

/* Operators that give a shape, ask for one, or make a tensor of one. Shape, Size and NonZero set
 * the content of their result in infer: their operand's content need not be known. */

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

enum { VIEW = CD_GRAPH_RULE_VIEW, RANDOM = CD_GRAPH_RULE_RANDOM, ANY = -1 };
#define I(name) cd_graph_infer_##name
#define F(name) cd_graph_fold_##name
#define N(name) cd_graph_flop_##name

/* Operator, first and last opset (0: still valid), least and most operands, most results; infer,
 * fold, operation count, flags. An operator whose operands an opset changed has a row for each
 * form; the rows share functions that can read both. */
static const cd_graph_rule rules[] = {
    {"Abs", 1, 0, 1, 1, 1, I(same), F(unary), N(out), 0},
    {"Acos", 7, 0, 1, 1, 1, I(same), NULL, N(out), 0},
    {"Acosh", 9, 0, 1, 1, 1, I(same), NULL, N(out), 0},
    {"Add", 1, 0, 2, 2, 1, I(binary), F(binary), N(out), 0},
    {"And", 1, 0, 2, 2, 1, I(compare), F(binary), N(out), 0},
    {"ArgMax", 1, 0, 1, 1, 1, I(arg), NULL, N(in), 0},
    {"ArgMin", 1, 0, 1, 1, 1, I(arg), NULL, N(in), 0},
    {"Asin", 7, 0, 1, 1, 1, I(same), NULL, N(out), 0},
    {"Asinh", 9, 0, 1, 1, 1, I(same), NULL, N(out), 0},
    {"Atan", 7, 0, 1, 1, 1, I(same), NULL, N(out), 0},
    {"Atanh", 9, 0, 1, 1, 1, I(same), NULL, N(out), 0},
    {"AveragePool", 1, 0, 1, 1, 1, I(pool), NULL, N(pool), 0},
    {"AveragePoolGrad", 1, 0, 2, 2, 1, I(pool_grad), NULL, N(pool_grad), 0},
    {"BatchNormalization", 1, 0, 5, 5, 5, I(batchnorm), NULL, N(batchnorm), 0},
    {"Bernoulli", 15, 0, 1, 1, 1, I(random_like), NULL, N(out), RANDOM},
    {"BitShift", 11, 0, 2, 2, 1, I(bitwise), NULL, N(out), 0},
    {"BitwiseAnd", 18, 0, 2, 2, 1, I(bitwise), F(binary), N(out), 0},
    {"BitwiseNot", 18, 0, 1, 1, 1, I(same), F(unary), N(out), 0},
    {"BitwiseOr", 18, 0, 2, 2, 1, I(bitwise), F(binary), N(out), 0},
    {"BitwiseXor", 18, 0, 2, 2, 1, I(bitwise), F(binary), N(out), 0},
    {"Cast", 1, 0, 1, 1, 1, I(cast), F(cast), N(out), 0},
    {"CastLike", 15, 0, 2, 2, 1, I(castlike), F(cast), N(out), 0},
    {"Ceil", 1, 0, 1, 1, 1, I(same), F(unary), N(out), 0},
    {"Celu", 12, 0, 1, 1, 1, I(attr_alpha), NULL, N(out), 0},
    {"CenterCropPad", 18, 0, 2, 2, 1, I(center_crop), NULL, NULL, 0},
    {"Clip", 1, 10, 1, 1, 1, I(clip), NULL, N(two), 0},
    {"Clip", 11, 0, 1, 3, 1, I(clip), F(clip), N(two), 0},
    {"Compress", 9, 0, 2, 2, 1, I(dynamic), NULL, NULL, 0},
    {"Concat", 1, 0, 1, ANY, 1, I(concat), F(concat), NULL, 0},
    {"ConstantOfShape", 9, 0, 1, 1, 1, I(constant_of_shape), F(constant_of_shape), NULL, 0},
    {"Conv", 1, 0, 2, 3, 1, I(conv), NULL, N(conv), 0},
    {"ConvInteger", 10, 0, 2, 4, 1, I(conv_integer), NULL, N(conv_integer), 0},
    {"ConvTranspose", 1, 0, 2, 3, 1, I(conv_transpose), NULL, N(conv_transpose), 0},
    {"Cos", 7, 0, 1, 1, 1, I(same), F(unary), N(out), 0},
    {"Cosh", 9, 0, 1, 1, 1, I(same), NULL, N(out), 0},
    {"CumSum", 11, 0, 2, 2, 1, I(cumsum), NULL, N(out), 0},
    {"DeformConv", 19, 0, 3, 5, 1, I(deform_conv), NULL, N(deform_conv), 0},
    {"DepthToSpace", 1, 0, 1, 1, 1, I(depth_to_space), NULL, NULL, 0},
    {"DequantizeLinear", 10, 0, 2, 3, 1, I(dequantize), NULL, N(two), 0},
    {"Det", 11, 0, 1, 1, 1, I(det), NULL, N(in), 0},
    {"Div", 1, 0, 2, 2, 1, I(binary), F(binary), N(out), 0},
    {"Dropout", 1, 0, 1, 3, 2, I(dropout), F(share), NULL, VIEW},
    {"DynamicQuantizeLinear", 11, 0, 1, 1, 3, I(dynamic_quantize), NULL, N(softmax), 0},
    {"Einsum", 12, 0, 1, ANY, 1, I(einsum), NULL, N(einsum), 0},
    {"Elu", 1, 0, 1, 1, 1, I(attr_alpha), NULL, N(out), 0},
    {"Equal", 1, 0, 2, 2, 1, I(compare), F(compare), N(out), 0},
    {"Erf", 9, 0, 1, 1, 1, I(same), NULL, N(out), 0},
    {"Exp", 1, 0, 1, 1, 1, I(same), F(unary), N(out), 0},
    {"Expand", 8, 0, 2, 2, 1, I(expand), F(expand), NULL, 0},
    {"EyeLike", 9, 0, 1, 1, 1, I(eyelike), NULL, NULL, 0},
    {"Flatten", 1, 0, 1, 1, 1, I(flatten), F(share), NULL, VIEW},
    {"Floor", 1, 0, 1, 1, 1, I(same), F(unary), N(out), 0},
    {"GRU", 1, 0, 3, 6, 2, I(gru), NULL, N(gru), 0},
    {"Gather", 1, 0, 2, 2, 1, I(gather), F(gather), NULL, 0},
    {"GatherElements", 11, 0, 2, 2, 1, I(gather_elements), NULL, NULL, 0},
    {"GatherND", 11, 0, 2, 2, 1, I(gather_nd), NULL, NULL, 0},
    {"Gelu", 20, 0, 1, 1, 1, I(same), NULL, N(out), 0},
    {"Gemm", 1, 0, 2, 3, 1, I(gemm), NULL, N(gemm), 0},
    {"GlobalAveragePool", 1, 0, 1, 1, 1, I(global_pool), NULL, N(in), 0},
    {"GlobalLpPool", 1, 0, 1, 1, 1, I(global_pool), NULL, N(in), 0},
    {"GlobalMaxPool", 1, 0, 1, 1, 1, I(global_pool), NULL, N(in), 0},
    {"Greater", 1, 0, 2, 2, 1, I(compare), F(compare), N(out), 0},
    {"GreaterOrEqual", 12, 0, 2, 2, 1, I(compare), F(compare), N(out), 0},
    {"GridSample", 16, 0, 2, 2, 1, I(grid_sample), NULL, N(grid_sample), 0},
    {"GroupNormalization", 18, 0, 3, 3, 1, I(groupnorm), NULL, N(norm), 0},
    {"HardSigmoid", 1, 0, 1, 1, 1, I(attr_alpha), NULL, N(out), 0},
    {"HardSwish", 14, 0, 1, 1, 1, I(same), NULL, N(out), 0},
    {"Hardmax", 1, 0, 1, 1, 1, I(softmax), NULL, N(out), 0},
    {"Identity", 1, 0, 1, 1, 1, I(identity), F(share), NULL, VIEW},
    {"InstanceNormalization", 1, 0, 3, 3, 1, I(instancenorm), NULL, N(norm), 0},
    {"IsInf", 10, 0, 1, 1, 1, I(bool_unary), NULL, N(out), 0},
    {"IsNaN", 9, 0, 1, 1, 1, I(bool_unary), NULL, N(out), 0},
    {"LRN", 1, 0, 1, 1, 1, I(lrn), NULL, N(lrn), 0},
    {"LSTM", 1, 0, 3, 8, 3, I(lstm), NULL, N(lstm), 0},
    {"LayerNormalization", 17, 0, 2, 3, 3, I(layernorm), NULL, N(norm), 0},
    {"LeakyRelu", 1, 0, 1, 1, 1, I(attr_alpha), NULL, N(out), 0},
    {"Less", 1, 0, 2, 2, 1, I(compare), F(compare), N(out), 0},
    {"LessOrEqual", 12, 0, 2, 2, 1, I(compare), F(compare), N(out), 0},
    {"Log", 1, 0, 1, 1, 1, I(same), F(unary), N(out), 0},
    {"LogSoftmax", 1, 0, 1, 1, 1, I(softmax), NULL, N(softmax), 0},
    {"LpNormalization", 1, 0, 1, 1, 1, I(axis_same), NULL, N(softmax), 0},
    {"LpPool", 1, 0, 1, 1, 1, I(lp_pool), NULL, N(pool), 0},
    {"MatMul", 1, 0, 2, 2, 1, I(matmul), NULL, N(matmul), 0},
    {"MatMulInteger", 10, 0, 2, 4, 1, I(matmul), NULL, N(matmul), 0},
    {"Max", 1, 0, 1, ANY, 1, I(binary), F(binary), N(variadic), 0},
    {"MaxPool", 1, 0, 1, 1, 2, I(pool), NULL, N(pool), 0},
    {"MaxPoolGrad", 1, 0, 2, 2, 1, I(pool_grad), NULL, N(pool_grad), 0},
    {"MaxRoiPool", 1, 0, 2, 2, 1, I(roi), NULL, N(out), 0},
    {"MaxUnpool", 9, 0, 2, 3, 1, I(max_unpool), NULL, NULL, 0},
    {"Mean", 1, 0, 1, ANY, 1, I(binary), NULL, N(variadic), 0},
    {"MeanVarianceNormalization", 9, 0, 1, 1, 1, I(mvn), NULL, N(norm), 0},
    {"Min", 1, 0, 1, ANY, 1, I(binary), F(binary), N(variadic), 0},
    {"Mish", 18, 0, 1, 1, 1, I(same), NULL, N(out), 0},
    {"Mod", 10, 0, 2, 2, 1, I(binary), F(binary), N(out), 0},
    {"Mul", 1, 0, 2, 2, 1, I(binary), F(binary), N(out), 0},
    {"Neg", 1, 0, 1, 1, 1, I(same), F(unary), N(out), 0},
    {"NegativeLogLikelihoodLoss", 12, 0, 2, 3, 1, I(nll), NULL, N(in), 0},
    {"NonMaxSuppression", 10, 0, 2, 5, 1, I(dynamic), NULL, NULL, 0},
    {"NonZero", 9, 0, 1, 1, 1, I(nonzero), NULL, NULL, 0},
    {"Not", 1, 0, 1, 1, 1, I(bool_unary), F(unary), N(out), 0},
    {"OneHot", 9, 0, 3, 3, 1, I(onehot), NULL, NULL, 0},
    {"Or", 1, 0, 2, 2, 1, I(compare), F(binary), N(out), 0},
    {"PRelu", 1, 0, 2, 2, 1, I(prelu), NULL, N(two), 0},
    {"Pad", 2, 10, 1, 1, 1, I(pad), NULL, NULL, 0},
    {"Pad", 11, 0, 2, 4, 1, I(pad), NULL, NULL, 0},
    {"Pow", 1, 0, 2, 2, 1, I(binary), F(binary), N(out), 0},
    {"QLinearConv", 10, 0, 8, 9, 1, I(qconv), NULL, N(qconv), 0},
    {"QLinearMatMul", 10, 0, 8, 8, 1, I(qmatmul), NULL, N(matmul), 0},
    {"QuantizeLinear", 10, 0, 2, 3, 1, I(quantize), NULL, N(two), 0},
    {"RNN", 1, 0, 3, 6, 2, I(rnn), NULL, N(rnn), 0},
    {"RandomNormal", 1, 0, 0, 0, 1, I(random), NULL, N(out), RANDOM},
    {"RandomNormalLike", 1, 0, 1, 1, 1, I(random_like), NULL, N(out), RANDOM},
    {"RandomUniform", 1, 0, 0, 0, 1, I(random), NULL, N(out), RANDOM},
    {"RandomUniformLike", 1, 0, 1, 1, 1, I(random_like), NULL, N(out), RANDOM},
    {"Range", 11, 0, 3, 3, 1, I(range), F(range), NULL, 0},
    {"Reciprocal", 1, 0, 1, 1, 1, I(same), F(unary), N(out), 0},
    {"ReduceL1", 1, 0, 1, 2, 1, I(reduce), NULL, N(in), 0},
    {"ReduceL2", 1, 0, 1, 2, 1, I(reduce), NULL, N(in), 0},
    {"ReduceLogSum", 1, 0, 1, 2, 1, I(reduce), NULL, N(in), 0},
    {"ReduceLogSumExp", 1, 0, 1, 2, 1, I(reduce), NULL, N(in), 0},
    {"ReduceMax", 1, 0, 1, 2, 1, I(reduce), F(reduce), N(in), 0},
    {"ReduceMean", 1, 0, 1, 2, 1, I(reduce), F(reduce), N(in), 0},
    {"ReduceMin", 1, 0, 1, 2, 1, I(reduce), F(reduce), N(in), 0},
    {"ReduceProd", 1, 0, 1, 2, 1, I(reduce), F(reduce), N(in), 0},
    {"ReduceSum", 1, 0, 1, 2, 1, I(reduce), F(reduce), N(in), 0},
    {"ReduceSumSquare", 1, 0, 1, 2, 1, I(reduce), NULL, N(in), 0},
    {"Relu", 1, 0, 1, 1, 1, I(same), NULL, N(out), 0},
    {"Reshape", 1, 4, 1, 1, 1, I(reshape), F(share), NULL, VIEW},
    {"Reshape", 5, 0, 2, 2, 1, I(reshape), F(share), NULL, VIEW},
    {"Resize", 10, 10, 2, 2, 1, I(resize), NULL, N(resize), 0},
    {"Resize", 11, 0, 1, 4, 1, I(resize), NULL, N(resize), 0},
    {"ReverseSequence", 10, 0, 2, 2, 1, I(reverse), NULL, NULL, 0},
    {"RoiAlign", 10, 0, 3, 3, 1, I(roi), NULL, N(out), 0},
    {"Round", 11, 0, 1, 1, 1, I(same), F(unary), N(out), 0},
    {"Scatter", 9, 10, 3, 3, 1, I(scatter), NULL, NULL, 0},
    {"ScatterElements", 11, 0, 3, 3, 1, I(scatter), NULL, NULL, 0},
    {"ScatterND", 11, 0, 3, 3, 1, I(scatter), NULL, NULL, 0},
    {"Selu", 1, 0, 1, 1, 1, I(attr_alpha), NULL, N(out), 0},
    {"Shape", 1, 0, 1, 1, 1, I(shape), NULL, NULL, 0},
    {"Shrink", 9, 0, 1, 1, 1, I(attr_alpha), NULL, N(out), 0},
    {"Sigmoid", 1, 0, 1, 1, 1, I(same), NULL, N(out), 0},
    {"Sign", 9, 0, 1, 1, 1, I(same), F(unary), N(out), 0},
    {"Sin", 7, 0, 1, 1, 1, I(same), F(unary), N(out), 0},
    {"Sinh", 9, 0, 1, 1, 1, I(same), NULL, N(out), 0},
    {"Size", 1, 0, 1, 1, 1, I(size), NULL, NULL, 0},
    {"Slice", 1, 9, 1, 1, 1, I(slice), F(slice), NULL, 0},
    {"Slice", 10, 0, 3, 5, 1, I(slice), F(slice), NULL, 0},
    {"Softmax", 1, 0, 1, 1, 1, I(softmax), NULL, N(softmax), 0},
    {"SoftmaxCrossEntropyLoss", 12, 0, 2, 3, 2, I(nll), NULL, N(in), 0},
    {"Softplus", 1, 0, 1, 1, 1, I(same), NULL, N(out), 0},
    {"Softsign", 1, 0, 1, 1, 1, I(same), NULL, N(out), 0},
    {"SpaceToDepth", 1, 0, 1, 1, 1, I(space_to_depth), NULL, NULL, 0},
    {"Split", 2, 12, 1, 1, ANY, I(split), F(split), NULL, 0},
    {"Split", 13, 0, 1, 2, ANY, I(split), F(split), NULL, 0},
    {"Sqrt", 1, 0, 1, 1, 1, I(same), F(unary), N(out), 0},
    {"Squeeze", 1, 0, 1, 2, 1, I(squeeze), F(share), NULL, VIEW},
    {"Sub", 1, 0, 2, 2, 1, I(binary), F(binary), N(out), 0},
    {"Sum", 1, 0, 1, ANY, 1, I(binary), F(binary), N(variadic), 0},
    {"Tan", 7, 0, 1, 1, 1, I(same), NULL, N(out), 0},
    {"Tanh", 1, 0, 1, 1, 1, I(same), F(unary), N(out), 0},
    {"ThresholdedRelu", 1, 0, 1, 1, 1, I(attr_alpha), NULL, N(out), 0},
    {"Tile", 6, 0, 2, 2, 1, I(tile), F(tile), NULL, 0},
    {"TopK", 1, 9, 1, 1, 2, I(topk), NULL, N(topk), 0},
    {"TopK", 10, 0, 2, 2, 2, I(topk), NULL, N(topk), 0},
    {"Transpose", 1, 0, 1, 1, 1, I(transpose), F(transpose), NULL, 0},
    {"Trilu", 14, 0, 1, 2, 1, I(trilu), NULL, NULL, 0},
    {"Unique", 11, 0, 1, 1, 4, I(dynamic), NULL, NULL, 0},
    {"Unsqueeze", 1, 0, 1, 2, 1, I(unsqueeze), F(share), NULL, VIEW},
    {"Upsample", 7, 8, 1, 1, 1, I(upsample), NULL, N(resize), 0},
    {"Upsample", 9, 9, 2, 2, 1, I(upsample), NULL, N(resize), 0},
    {"Where", 9, 0, 3, 3, 1, I(where), F(where), N(out), 0},
    {"Xor", 1, 0, 2, 2, 1, I(compare), F(binary), N(out), 0},
};

const cd_graph_rule *cd_graph_rule_at(size_t i) {
    return i < sizeof rules / sizeof *rules ? &rules[i] : NULL;
}

const cd_graph_rule *cd_graph_rule_find(const char *op, int opset, bool *known) {
    *known = false;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (strcmp(rules[i].op, op)) continue;
        *known = true;
        if (opset >= rules[i].first && (rules[i].last == 0 || opset <= rules[i].last))
            return &rules[i];
    }
    return NULL;
}
