/* A transform as JSON, there and back bit for bit: 17 digits name a double. What is read is checked, because model files come
 * from anywhere. */
#include <math.h>
#include <string.h>

#include "base/text/text.h"
#include "learner/inputs/transform_internal.h"

static void put_array(cd_buf *out, const char *key, const double *v, size_t n) {
    cd_buf_putf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < n; i++) cd_buf_putf(out, "%s%.17g", i ? "," : "", v[i]);
    cd_buf_puts(out, "]");
}

void cd_transform_write(cd_buf *out, const cd_transform *t) {
    const cd_str kind = cd_enum_names_at(CD_TRANSFORMS, (int)t->kind);
    cd_buf_putf(out, "{\"kind\":\"%.*s\",\"lambda\":%.17g,\"centre\":%.17g,\"mean\":%.17g,\"std\":%.17g", (int)kind.n, kind.p,
                t->lambda, t->centre, t->mean, t->std);
    put_array(out, "log_range", (const double[]){t->log_min, t->log_max}, 2);
    if (t->n_knot) {
        put_array(out, "knots", t->knot, t->n_knot);
        put_array(out, "levels", t->level, t->n_knot);
    }
    cd_buf_puts(out, "}");
}

/* Numbers within lo..hi, none above the next (strictly: each below the next). */
static cdmpp_status rising(const cd_json *v, const char *key, double lo, double hi, bool strictly, double *out, size_t max,
                           size_t *n, cdmpp_err *err) {
    const cd_json *x, *item;
    CD_TRY(cd_json_need(v, key, &x, err));
    CD_TRY(cd_err_key(err, cd_json_arr(x, 1, &item, err), key));
    if (x->n > max) return cd_err_key(err, CD_FAIL(err, ERANGE, "expected at most %zu numbers, found %u", max, x->n), key);
    for (*n = 0; item; item = item->next, ++*n) {
        CD_TRY(cd_err_key(err, cd_json_real(item, &out[*n], err), key));
        const double least = *n ? out[*n - 1] : lo;
        if (!(out[*n] >= least && out[*n] <= hi) || (strictly && *n && out[*n] <= least))
            return cd_err_key(err, CD_FAIL(err, ERANGE, "expected rising numbers within %g to %g, found %g", lo, hi, out[*n]), key);
    }
    return CDMPP_OK;
}

static cdmpp_status read_kind(const cd_json *v, cd_transform_kind *out, cdmpp_err *err) {
    cd_str s;
    CD_TRY(cd_json_need_str(v, "kind", &s, err));
    const int k = cd_enum_names_find(CD_TRANSFORMS, s);
    *out = (cd_transform_kind)k;
    if (k >= 0) return CDMPP_OK;
    return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected one of " CD_TRANSFORMS ", found '%.*s'", (int)(s.n < 40 ? s.n : 40), s.p),
                      "kind");
}

static cdmpp_status read_knots(const cd_json *v, cd_transform *t, cdmpp_err *err) {
    size_t n = 0;
    CD_TRY(rising(v, "knots", -40, 40, true, t->knot, CD_TRANSFORM_KNOTS, &t->n_knot, err));
    CD_TRY(rising(v, "levels", 0, 1, true, t->level, CD_TRANSFORM_KNOTS, &n, err));
    if (n == t->n_knot) return CDMPP_OK;
    return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected %zu numbers as in knots, found %zu", t->n_knot, n), "levels");
}

static bool end_is_sane(const cd_transform_end *e) {
    return !e->on || (isfinite(e->z) && isfinite(e->slope) && e->slope > 0);
}

/* The limits are wide: they refuse what would give infinities, not what is unlikely. */
cdmpp_status cd_transform_read(const cd_json *v, cd_transform *out, cdmpp_err *err) {
    double range[2];
    size_t n = 0;
    *out = (cd_transform){0};
    CD_TRY(read_kind(v, &out->kind, err));
    const bool linear = out->kind == CD_TRANSFORM_NONE || out->kind == CD_TRANSFORM_MIN_MAX || out->kind == CD_TRANSFORM_STANDARD;
    CD_TRY(cd_json_need_real(v, "lambda", -2, 2, &out->lambda, err));
    CD_TRY(cd_json_need_real(v, "centre", -40, 40, &out->centre, err));
    CD_TRY(cd_json_need_real(v, "mean", linear ? 0 : -1e100, 1e100, &out->mean, err));
    CD_TRY(cd_json_need_real(v, "std", 1e-100, 1e100, &out->std, err));
    CD_TRY(rising(v, "log_range", -40, 40, false, range, 2, &n, err));
    if (n != 2) return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected two numbers, found %zu", n), "log_range");
    out->log_min = range[0];
    out->log_max = range[1];
    if (out->kind == CD_TRANSFORM_QUANTILE_NORMAL || out->kind == CD_TRANSFORM_QUANTILE_UNIFORM) CD_TRY(read_knots(v, out, err));
    cd_transform_set_ends(out);
    if (end_is_sane(&out->low) && end_is_sane(&out->high)) return CDMPP_OK;
    return CD_FAIL(err, ERANGE, "expected a transform that rises over the labels, found one whose ends are not finite");
}
