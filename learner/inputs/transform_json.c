/* A transform as JSON, there and back bit for bit: 17 digits name a double. What is read is
 * checked, because model files come from anywhere. */
#include <math.h>
#include <string.h>

#include "base/text/text.h"
#include "learner/inputs/transform_internal.h"

void cd_transform_write(cd_buf *out, const cd_transform *t) {
    const cd_str kind = cd_enum_names_at(CD_TRANSFORMS, (int)t->kind);
    cd_buf_putf(
        out, "{\"kind\":\"%.*s\",\"lambda\":%.17g,\"centre\":%.17g,\"mean\":%.17g,\"std\":%.17g,",
        (int)kind.n, kind.p, t->lambda, t->centre, t->mean, t->std);
    cd_json_put_reals(out, "log_range", (const double[]){t->log_min, t->log_max}, 2, 17);
    if (t->n_knot) {
        cd_buf_puts(out, ",");
        cd_json_put_reals(out, "knots", t->knot, t->n_knot, 17);
        cd_buf_puts(out, ",");
        cd_json_put_reals(out, "levels", t->level, t->n_knot, 17);
    }
    cd_buf_puts(out, "}");
}

static cdmpp_status read_knots(const cd_json *v, cd_transform *t, cdmpp_err *err) {
    size_t n = 0;
    CD_TRY(cd_json_need_reals(v, "knots", 1, CD_TRANSFORM_KNOTS, -40, 40, CD_JSON_RISING, t->knot,
                              &t->n_knot, err));
    CD_TRY(cd_json_need_reals(v, "levels", 1, CD_TRANSFORM_KNOTS, 0, 1, CD_JSON_RISING, t->level,
                              &n, err));
    if (n == t->n_knot) return CDMPP_OK;
    return cd_err_key(
        err, CD_FAIL(err, ESCHEMA, "expected %zu numbers as in knots, found %zu", t->n_knot, n),
        "levels");
}

static bool end_is_sane(const cd_transform_end *e) {
    return !e->on || (isfinite(e->z) && isfinite(e->slope) && e->slope > 0);
}

/* The limits are wide: they refuse what would give infinities, not what is unlikely. */
cdmpp_status cd_transform_read(const cd_json *v, cd_transform *out, cdmpp_err *err) {
    double range[2];
    size_t n = 0;
    int kind;
    *out = (cd_transform){0};
    CD_TRY(cd_json_need_word(v, "kind", CD_TRANSFORMS, &kind, err));
    out->kind = (cd_transform_kind)kind;
    const bool linear = out->kind == CD_TRANSFORM_NONE || out->kind == CD_TRANSFORM_MIN_MAX ||
                        out->kind == CD_TRANSFORM_STANDARD;
    CD_TRY(cd_json_need_real(v, "lambda", -2, 2, &out->lambda, err));
    CD_TRY(cd_json_need_real(v, "centre", -40, 40, &out->centre, err));
    CD_TRY(cd_json_need_real(v, "mean", linear ? 0 : -1e100, 1e100, &out->mean, err));
    CD_TRY(cd_json_need_real(v, "std", 1e-100, 1e100, &out->std, err));
    CD_TRY(cd_json_need_reals(v, "log_range", 2, 2, -40, 40, CD_JSON_NOT_FALLING, range, &n, err));
    out->log_min = range[0];
    out->log_max = range[1];
    if (out->kind == CD_TRANSFORM_QUANTILE_NORMAL || out->kind == CD_TRANSFORM_QUANTILE_UNIFORM)
        CD_TRY(read_knots(v, out, err));
    cd_transform_set_ends(out);
    if (end_is_sane(&out->low) && end_is_sane(&out->high)) return CDMPP_OK;
    return CD_FAIL(
        err, ERANGE,
        "expected a transform that rises over the labels, found one whose ends are not finite");
}
