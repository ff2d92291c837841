/* Operators that move elements: cut, join, pick, repeat. Fold functions share cd_graph_call_gather:
 * each gives, for a position in the result, the element of the operand. */
#include <string.h>

#include "profiler/network/graph/graph_call_internal.h"

/* All dimensions but the axis must be equal; the sum along the axis is checked at each operand,
 * before it can overflow. */
cdmpp_status cd_graph_infer_concat(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    cd_graph_shape o = x->shape;
    uint32_t axis;
    char a[96], b[96];
    if (!cd_graph_call_attr(c, "axis"))
        return CD_FAIL(err, ESCHEMA, "%s: expected attribute axis", c->op);
    CD_TRY(cd_graph_call_axis(c, 0, o.rank, &axis, err));
    for (uint32_t i = 1; i < c->n_in; i++) {
        const cd_graph_tensor *y = cd_graph_call_input(c, i);
        if (!y) return CD_FAIL(err, ESCHEMA, "Concat: operand %u is missing", i);
        bool fits = y->shape.rank == o.rank;
        for (uint32_t d = 0; d < o.rank && fits; d++)
            fits = d == axis || o.dim[d] == y->shape.dim[d];
        if (!fits)
            return CD_FAIL(err, ESCHEMA, "Concat along %u: %s and operand %u of %s", axis,
                           cd_graph_shape_text(&x->shape, a, sizeof a), i,
                           cd_graph_shape_text(&y->shape, b, sizeof b));
        o.dim[axis] += y->shape.dim[axis];
        CD_TRY(cd_graph_shape_check(&o, err));
    }
    return cd_graph_call_set_output(c, 0, x->dtype, &o, err);
}

/* Copy operand i to `base` along the axis of the result. */
static void place(cd_graph_call *c, const cd_graph_tensor *x, uint32_t axis, int64_t base,
                  int64_t *v, double *f) {
    int64_t at[CD_GRAPH_MAX_RANK] = {0}, to[CD_GRAPH_MAX_RANK];
    const int64_t n = cd_graph_shape_elements(&x->shape);
    const cd_graph_shape *o = &c->out[0].shape;
    for (int64_t k = 0; k < n; k++, cd_graph_shape_next(&x->shape, at)) {
        memcpy(to, at, sizeof to);
        to[axis] += base;
        const int64_t j = cd_graph_shape_offset(o, o->rank, to);
        if (f) f[j] = x->fvalue[k];
        else v[j] = x->value[k];
    }
}

cdmpp_status cd_graph_fold_concat(cd_graph_call *c, cdmpp_err *err) {
    const uint32_t axis = (uint32_t)cd_graph_call_attr(c, "axis")->i;
    int64_t *v, base = 0;
    double *f;
    for (uint32_t i = 0; i < c->n_in; i++)
        if ((cd_graph_call_input(c, i)->fvalue != NULL) != cd_expr_dtype_is_float(c->out[0].dtype))
            return CDMPP_OK;
    CD_TRY(cd_graph_call_content(c, 0, &v, &f, err));
    for (uint32_t i = 0; i < c->n_in && (v || f); i++) {
        const cd_graph_tensor *x = cd_graph_call_input(c, i);
        place(c, x, axis, base, v, f);
        base += x->shape.dim[axis];
    }
    return CDMPP_OK;
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi) { return v < lo ? lo : v > hi ? hi : v; }

typedef struct cut {
    int64_t start[CD_GRAPH_MAX_RANK], end[CD_GRAPH_MAX_RANK], step[CD_GRAPH_MAX_RANK],
        axis[CD_GRAPH_MAX_RANK];
    uint32_t n;
} cut;

/* Positions of one axis, moved into the range as numpy does. */
static cdmpp_status cut_axis(const cd_graph_call *c, cut *k, uint32_t i, int64_t dim, int64_t *out,
                             cdmpp_err *err) {
    const int64_t s = k->step[i], big = INT64_MAX / 2;
    if (s == 0 || s < -big) return CD_FAIL(err, ESCHEMA, "%s: step %lld", c->op, (long long)s);
    int64_t a = clamp(k->start[i], -big, big), b = clamp(k->end[i], -big, big);
    a = a < 0 ? a + dim : a;
    b = b < 0 ? b + dim : b;
    k->start[i] = s > 0 ? clamp(a, 0, dim) : clamp(a, 0, dim - 1);
    k->end[i] = s > 0 ? clamp(b, 0, dim) : clamp(b, -1, dim - 1);
    const int64_t span = s > 0 ? k->end[i] - k->start[i] : k->start[i] - k->end[i],
                  by = s > 0 ? s : -s;
    *out = dim == 0 || span <= 0 ? 0 : (span - 1) / by + 1;
    return CDMPP_OK;
}

/* starts, ends, axes, steps are attributes until opset 9 and operands 1 to 4 from opset 10:
 * cd_graph_call_param reads both. */
static cdmpp_status read_cut(const cd_graph_call *c, uint32_t rank, cut *k, cdmpp_err *err) {
    const int64_t *v[4];
    uint32_t n[4], seen = 0, axis;
    static const char *const name[] = {"starts", "ends", "axes", "steps"};
    for (uint32_t i = 0; i < 4; i++)
        CD_TRY(cd_graph_call_param(c, i + 1, name[i], &v[i], &n[i], err));
    if (!v[0] || !v[1]) return CD_FAIL(err, ESCHEMA, "%s: expected starts and ends", c->op);
    k->n = n[0];
    if (n[0] > rank || n[1] != n[0] || (v[2] && n[2] != n[0]) || (v[3] && n[3] != n[0]))
        return CD_FAIL(err, ESCHEMA, "%s: %u starts, %u ends of %u dimensions", c->op, n[0], n[1],
                       rank);
    for (uint32_t i = 0; i < k->n; i++) {
        CD_TRY(cd_graph_call_normalize_axis(v[2] ? v[2][i] : i, rank, &axis, err));
        if (seen >> axis & 1) return CD_FAIL(err, ESCHEMA, "%s: axis %u twice", c->op, axis);
        seen |= 1U << axis;
        k->axis[i] = axis;
        k->start[i] = v[0][i];
        k->end[i] = v[1][i];
        k->step[i] = v[3] ? v[3][i] : 1;
    }
    return CDMPP_OK;
}

/* Resolved: starts and steps in range; an end of -1 is before the first element. */
cdmpp_status cd_graph_infer_slice(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    cd_graph_shape o = x->shape;
    cut k;
    CD_TRY(read_cut(c, o.rank, &k, err));
    for (uint32_t i = 0; i < k.n; i++)
        CD_TRY(cut_axis(c, &k, i, x->shape.dim[k.axis[i]], &o.dim[k.axis[i]], err));
    CD_TRY(cd_graph_call_set_ints(c, "starts", k.start, k.n, err));
    CD_TRY(cd_graph_call_set_ints(c, "ends", k.end, k.n, err));
    CD_TRY(cd_graph_call_set_ints(c, "axes", k.axis, k.n, err));
    CD_TRY(cd_graph_call_set_ints(c, "steps", k.step, k.n, err));
    return cd_graph_call_set_output(c, 0, x->dtype, &o, err);
}

static int64_t from_slice(const void *ctx, const int64_t *at) {
    const cd_graph_call *c = ctx;
    const cd_graph_attr *start = cd_graph_call_attr(c, "starts"),
                        *step = cd_graph_call_attr(c, "steps"),
                        *axis = cd_graph_call_attr(c, "axes");
    const cd_graph_shape *x = &cd_graph_call_input(c, 0)->shape;
    int64_t to[CD_GRAPH_MAX_RANK];
    memcpy(to, at, sizeof to);
    for (uint32_t i = 0; i < axis->n; i++)
        to[axis->ints[i]] = start->ints[i] + at[axis->ints[i]] * step->ints[i];
    return cd_graph_shape_offset(x, x->rank, to);
}

cdmpp_status cd_graph_fold_slice(cd_graph_call *c, cdmpp_err *err) {
    return cd_graph_call_gather(c, 0, from_slice, c, err);
}

/* The axis of x is replaced by the dimensions of the indices. Known indices are checked here: fold
 * reads with them. */
cdmpp_status cd_graph_infer_gather(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0), *k = cd_graph_call_input(c, 1);
    uint32_t axis;
    cd_graph_shape o = {0};
    CD_TRY(cd_graph_call_axis(c, 0, x->shape.rank, &axis, err));
    for (uint32_t d = 0; d < axis; d++) CD_TRY(cd_graph_shape_push(&o, x->shape.dim[d], err));
    for (uint32_t d = 0; d < k->shape.rank; d++)
        CD_TRY(cd_graph_shape_push(&o, k->shape.dim[d], err));
    for (uint32_t d = axis + 1; d < x->shape.rank; d++)
        CD_TRY(cd_graph_shape_push(&o, x->shape.dim[d], err));
    const int64_t dim = x->shape.dim[axis], n = cd_graph_shape_elements(&k->shape);
    if (k->value && !cd_graph_call_may_read(c, n))
        return CD_FAIL(err, EUNSUPPORTED, "Gather: more contents than are read");
    for (int64_t i = 0; k->value && i < n; i++)
        if (k->value[i] < -dim || k->value[i] >= dim)
            return CD_FAIL(err, ESCHEMA, "Gather: index %lld of %lld", (long long)k->value[i],
                           (long long)dim);
    return cd_graph_call_set_output(c, 0, x->dtype, &o, err);
}

static int64_t from_gather(const void *ctx, const int64_t *at) {
    const cd_graph_call *c = ctx;
    const cd_graph_tensor *x = cd_graph_call_input(c, 0), *k = cd_graph_call_input(c, 1);
    const uint32_t axis = (uint32_t)cd_graph_call_attr(c, "axis")->i, r = k->shape.rank;
    int64_t to[CD_GRAPH_MAX_RANK] = {0}, i = 0;
    for (uint32_t d = 0; d < r; d++) i = i * k->shape.dim[d] + at[axis + d];
    for (uint32_t d = 0; d < x->shape.rank; d++)
        to[d] = d < axis ? at[d] : d > axis ? at[d - 1 + r] : k->value[i];
    if (to[axis] < 0) to[axis] += x->shape.dim[axis];
    return cd_graph_shape_offset(&x->shape, x->shape.rank, to);
}

cdmpp_status cd_graph_fold_gather(cd_graph_call *c, cdmpp_err *err) {
    return cd_graph_call_input(c, 1)->value ? cd_graph_call_gather(c, 0, from_gather, c, err)
                                            : CDMPP_OK;
}

cdmpp_status cd_graph_infer_gather_elements(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0), *k = cd_graph_call_input(c, 1);
    uint32_t axis;
    CD_TRY(cd_graph_call_axis(c, 0, x->shape.rank, &axis, err));
    CD_TRY(cd_graph_call_rank(c, 1, x->shape.rank, x->shape.rank, err));
    return cd_graph_call_set_output(c, 0, x->dtype, &k->shape, err);
}

/* Shape: the indices' dimensions but the last, then what is left of x behind the batch dimensions
 * and the indexed ones. */
cdmpp_status cd_graph_infer_gather_nd(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0), *k = cd_graph_call_input(c, 1);
    int64_t batch;
    cd_graph_shape o = {0};
    CD_TRY(cd_graph_call_default_int(c, "batch_dims", 0, &batch, err));
    CD_TRY(cd_graph_call_rank(c, 0, 1, CD_GRAPH_MAX_RANK, err));
    CD_TRY(cd_graph_call_rank(c, 1, 1, CD_GRAPH_MAX_RANK, err));
    const int64_t depth = k->shape.dim[k->shape.rank - 1];
    if (batch < 0 || batch >= k->shape.rank || batch > x->shape.rank || depth < 1 ||
        depth > x->shape.rank - batch)
        return CD_FAIL(err, ESCHEMA, "GatherND: indices of %lld behind %lld batch dimensions",
                       (long long)depth, (long long)batch);
    for (uint32_t d = 0; d + 1 < k->shape.rank; d++)
        CD_TRY(cd_graph_shape_push(&o, k->shape.dim[d], err));
    for (uint32_t d = (uint32_t)(batch + depth); d < x->shape.rank; d++)
        CD_TRY(cd_graph_shape_push(&o, x->shape.dim[d], err));
    return cd_graph_call_set_output(c, 0, x->dtype, &o, err);
}

/* Sizes as an operand or attribute; else equal ones, where the last of opset 18's num_outputs may
 * be smaller. */
static cdmpp_status split_sizes(cd_graph_call *c, int64_t dim, int64_t *size, cdmpp_err *err) {
    const int64_t *v;
    uint32_t n;
    int64_t left = dim;
    CD_TRY(cd_graph_call_param(c, 1, "split", &v, &n, err));
    if (v && n != c->n_out)
        return CD_FAIL(err, ESCHEMA, "Split: %u sizes for %u results", n, c->n_out);
    const bool last = cd_graph_call_attr(c, "num_outputs") != NULL;
    int64_t asked;
    CD_TRY(cd_graph_call_int(c, "num_outputs", c->n_out, &asked, err));
    if (asked != c->n_out)
        return CD_FAIL(err, ESCHEMA, "Split: num_outputs is %lld, and it has %u results",
                       (long long)asked, c->n_out);
    if (!v && !last && dim % c->n_out)
        return CD_FAIL(err, ESCHEMA, "Split: %lld into %u equal parts", (long long)dim, c->n_out);
    for (uint32_t o = 0; o < c->n_out; o++) {
        const int64_t even = (dim + c->n_out - 1) / c->n_out;
        size[o] = v ? v[o] : even < left ? even : left;
        if (size[o] < 0 || size[o] > left)
            return CD_FAIL(err, ESCHEMA, "Split: part %u of %lld", o, (long long)size[o]);
        left -= size[o];
    }
    return left ? CD_FAIL(err, ESCHEMA, "Split: %lld elements are in no part", (long long)left)
                : CDMPP_OK;
}

cdmpp_status cd_graph_infer_split(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    uint32_t axis;
    CD_TRY(cd_graph_call_axis(c, 0, x->shape.rank, &axis, err));
    int64_t *size = CD_NEWN(&c->g->arena, int64_t, c->n_out);
    if (!size) return CD_FAIL(err, ENOMEM, "%u sizes", c->n_out);
    CD_TRY(split_sizes(c, x->shape.dim[axis], size, err));
    cd_graph_shape o = x->shape;
    for (uint32_t k = 0; k < c->n_out; k++) {
        o.dim[axis] = size[k];
        CD_TRY(cd_graph_call_set_output(c, k, x->dtype, &o, err));
    }
    return cd_graph_call_set_ints(c, "split", size, c->n_out, err);
}

/* Each result is the slice of x that begins where the one before ends. */
cdmpp_status cd_graph_fold_split(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    const uint32_t axis = (uint32_t)cd_graph_call_attr(c, "axis")->i;
    int64_t base = 0, *v;
    double *f;
    for (uint32_t o = 0; o < c->n_out; o++) {
        const cd_graph_shape *s = &c->out[o].shape;
        int64_t at[CD_GRAPH_MAX_RANK] = {0}, to[CD_GRAPH_MAX_RANK], n = cd_graph_shape_elements(s);
        CD_TRY(cd_graph_call_content(c, o, &v, &f, err));
        for (int64_t k = 0; k < n && (v || f); k++, cd_graph_shape_next(s, at)) {
            memcpy(to, at, sizeof to);
            to[axis] += base;
            const int64_t j = cd_graph_shape_offset(&x->shape, s->rank, to);
            if (f && x->fvalue) f[k] = x->fvalue[j];
            if (v && x->value) v[k] = x->value[j];
        }
        base += s->dim[axis];
    }
    return CDMPP_OK;
}

/* Resolved: pads of all dimensions, begins then ends. */
cdmpp_status cd_graph_infer_pad(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    const int64_t *v, *axes = NULL, most = (int64_t)1 << 40;
    uint32_t n, m = 0, axis;
    int64_t all[2 * CD_GRAPH_MAX_RANK] = {0};
    cd_graph_shape o = x->shape;
    CD_TRY(cd_graph_call_param(c, 1, "pads", &v, &n, err));
    if (cd_graph_call_input(c, 3)) CD_TRY(cd_graph_call_ints(c, 3, &axes, &m, err));
    if (!axes) m = o.rank;
    if (!v || n != 2 * m) return CD_FAIL(err, ESCHEMA, "Pad: %u numbers for %u dimensions", n, m);
    for (uint32_t i = 0; i < m; i++) {
        CD_TRY(cd_graph_call_normalize_axis(axes ? axes[i] : i, o.rank, &axis, err));
        if (v[i] < -most || v[i] > most || v[m + i] < -most || v[m + i] > most)
            return CD_FAIL(err, ERANGE, "Pad: %lld and %lld", (long long)v[i], (long long)v[m + i]);
        all[axis] = v[i];
        all[o.rank + axis] = v[m + i];
        o.dim[axis] = x->shape.dim[axis] + v[i] + v[m + i];
    }
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &o, err));
    return cd_graph_call_set_ints(c, "pads", all, 2 * o.rank, err);
}

cdmpp_status cd_graph_infer_tile(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    const int64_t *v;
    uint32_t n;
    cd_graph_shape o = x->shape;
    CD_TRY(cd_graph_call_ints(c, 1, &v, &n, err));
    if (n != o.rank) return CD_FAIL(err, ESCHEMA, "Tile: %u numbers for %u dimensions", n, o.rank);
    for (uint32_t d = 0; d < n; d++) {
        if (v[d] < 0 || (v[d] && o.dim[d] > CD_GRAPH_MAX_ELEMENTS / v[d]))
            return CD_FAIL(err, ERANGE, "Tile: %lld times", (long long)v[d]);
        o.dim[d] *= v[d];
    }
    CD_TRY(cd_graph_call_set_output(c, 0, x->dtype, &o, err));
    return cd_graph_call_set_ints(c, "repeats", v, n, err);
}

static int64_t from_tile(const void *ctx, const int64_t *at) {
    const cd_graph_call *c = ctx;
    const cd_graph_shape *x = &cd_graph_call_input(c, 0)->shape;
    int64_t to[CD_GRAPH_MAX_RANK] = {0};
    for (uint32_t d = 0; d < x->rank; d++) to[d] = at[d] % x->dim[d];
    return cd_graph_shape_offset(x, x->rank, to);
}

cdmpp_status cd_graph_fold_tile(cd_graph_call *c, cdmpp_err *err) {
    return cd_graph_call_gather(c, 0, from_tile, c, err);
}

/* Scatter, ScatterElements, ScatterND: the data with other elements. */
cdmpp_status cd_graph_infer_scatter(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    CD_TRY(cd_graph_call_rank(c, 0, 1, CD_GRAPH_MAX_RANK, err));
    if (!strcmp(c->op, "ScatterND")) {
        const cd_graph_shape *k = &cd_graph_call_input(c, 1)->shape;
        CD_TRY(cd_graph_call_rank(c, 1, 1, CD_GRAPH_MAX_RANK, err));
        if (k->dim[k->rank - 1] > x->shape.rank)
            return CD_FAIL(err, ESCHEMA, "ScatterND: indices of %lld for %u dimensions",
                           (long long)k->dim[k->rank - 1], x->shape.rank);
    } else {
        uint32_t axis;
        CD_TRY(cd_graph_call_axis(c, 0, x->shape.rank, &axis, err));
    }
    return cd_graph_call_set_output(c, 0, x->dtype, &x->shape, err);
}

/* `depth` gives a dimension of the result, so its content must be known. The axis is one of the
 * result. */
cdmpp_status cd_graph_infer_onehot(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *k = cd_graph_call_input(c, 0), *depth = cd_graph_call_input(c, 1);
    uint32_t axis;
    cd_graph_shape o = {0};
    if (!cd_graph_call_is_known(depth))
        return CD_FAIL(err, EUNSUPPORTED, "OneHot: its depth depends on the content of \"%s\"",
                       depth->name);
    if (cd_graph_shape_elements(&depth->shape) != 1)
        return CD_FAIL(err, ESCHEMA, "OneHot: expected one number as depth");
    const double n = depth->fvalue ? depth->fvalue[0] : (double)depth->value[0];
    if (!(n >= 0 && n < 1e14)) return CD_FAIL(err, ERANGE, "OneHot: depth %g", n);
    CD_TRY(cd_graph_call_axis(c, -1, k->shape.rank + 1, &axis, err));
    for (uint32_t d = 0; d <= k->shape.rank; d++) {
        if (d == axis) CD_TRY(cd_graph_shape_push(&o, (int64_t)n, err));
        if (d < k->shape.rank) CD_TRY(cd_graph_shape_push(&o, k->shape.dim[d], err));
    }
    return cd_graph_call_set_output(c, 0, cd_graph_call_input(c, 2)->dtype, &o, err);
}

cdmpp_status cd_graph_infer_trilu(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0), *k = cd_graph_call_input(c, 1);
    int64_t upper;
    CD_TRY(cd_graph_call_rank(c, 0, 2, CD_GRAPH_MAX_RANK, err));
    CD_TRY(cd_graph_call_default_int(c, "upper", 1, &upper, err));
    if (k && k->value && cd_graph_shape_elements(&k->shape) == 1)
        CD_TRY(cd_graph_call_set_int(c, "k", k->value[0], err));
    return cd_graph_call_set_output(c, 0, x->dtype, &x->shape, err);
}

cdmpp_status cd_graph_infer_reverse(cd_graph_call *c, cdmpp_err *err) {
    int64_t v;
    CD_TRY(cd_graph_call_rank(c, 0, 2, CD_GRAPH_MAX_RANK, err));
    CD_TRY(cd_graph_call_default_int(c, "batch_axis", 1, &v, err));
    CD_TRY(cd_graph_call_default_int(c, "time_axis", 0, &v, err));
    return cd_graph_infer_same(c, err);
}
