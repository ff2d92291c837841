/* Typed reads of one value of a JSON tree. Every error names what was expected and what was found;
 * the caller adds the key. */
#include "base/text/text.h"

#include <math.h>
#include <string.h>

const cd_json *cd_json_get(const cd_json *obj, const char *key) {
    if (!obj || obj->kind != CD_JSON_OBJ) return NULL;
    for (const cd_json *c = obj->u.child; c; c = c->next)
        if (cd_str_is(c->key, key)) return c;
    return NULL;
}

const char *cd_json_kind_name(cd_json_kind k) {
    static const char *const name[] = {"null",   "boolean", "integer", "number",
                                       "string", "array",   "object"};
    return name[k];
}

static cdmpp_status wrong(const cd_json *v, const char *want, cdmpp_err *err) {
    return CD_FAIL(err, ESCHEMA, "expected %s, found %s", want,
                   v ? cd_json_kind_name(v->kind) : "nothing");
}

cdmpp_status cd_json_int(const cd_json *v, int64_t lo, int64_t hi, int64_t *out, cdmpp_err *err) {
    if (v && v->kind == CD_JSON_REAL)
        return CD_FAIL(err, ESCHEMA, "expected an integer, found number %.17g", v->u.f);
    if (!v || v->kind != CD_JSON_INT) return wrong(v, "an integer", err);
    if (v->u.i < lo || v->u.i > hi)
        return CD_FAIL(err, ERANGE, "%lld is outside [%lld, %lld]", (long long)v->u.i,
                       (long long)lo, (long long)hi);
    *out = v->u.i;
    return CDMPP_OK;
}

cdmpp_status cd_json_real(const cd_json *v, double *out, cdmpp_err *err) {
    if (v && v->kind == CD_JSON_INT) *out = (double)v->u.i;
    else if (v && v->kind == CD_JSON_REAL) *out = v->u.f;
    else return wrong(v, "a number", err);
    return isfinite(*out) ? CDMPP_OK
                          : CD_FAIL(err, ERANGE, "expected a finite number, found %g", *out);
}

cdmpp_status cd_json_real_or_nan(const cd_json *v, double *out, cdmpp_err *err) {
    *out = (double)NAN;
    return v && v->kind == CD_JSON_NULL ? CDMPP_OK : cd_json_real(v, out, err);
}

cdmpp_status cd_json_str(const cd_json *v, cd_str *out, cdmpp_err *err) {
    if (!v || v->kind != CD_JSON_STR) return wrong(v, "a string", err);
    *out = v->u.s;
    return CDMPP_OK;
}

cdmpp_status cd_json_arr(const cd_json *v, size_t min, const cd_json **first, cdmpp_err *err) {
    if (!v || v->kind != CD_JSON_ARR) return wrong(v, "an array", err);
    if (v->n < min)
        return CD_FAIL(err, ESCHEMA, "expected an array of at least %zu items, found %u", min,
                       v->n);
    *first = v->u.child;
    return CDMPP_OK;
}

cdmpp_status cd_json_need(const cd_json *obj, const char *key, const cd_json **out,
                          cdmpp_err *err) {
    *out = cd_json_get(obj, key);
    if (*out) return CDMPP_OK;
    return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected this key"), key);
}

cdmpp_status cd_json_need_real(const cd_json *obj, const char *key, double lo, double hi,
                               double *out, cdmpp_err *err) {
    const cd_json *v;
    CD_TRY(cd_json_need(obj, key, &v, err));
    CD_TRY(cd_err_key(err, cd_json_real(v, out, err), key));
    if (*out >= lo && *out <= hi) return CDMPP_OK;
    return cd_err_key(
        err, CD_FAIL(err, ERANGE, "expected a number in %g..%g, found %g", lo, hi, *out), key);
}

cdmpp_status cd_json_need_count(const cd_json *obj, const char *key, uint64_t *out,
                                cdmpp_err *err) {
    const cd_json *v;
    int64_t n = 0;
    CD_TRY(cd_json_need(obj, key, &v, err));
    CD_TRY(cd_err_key(err, cd_json_int(v, 0, INT64_MAX, &n, err), key));
    *out = (uint64_t)n;
    return CDMPP_OK;
}

cdmpp_status cd_json_need_reals(const cd_json *obj, const char *key, size_t min, size_t max,
                                double lo, double hi, cd_json_order order, double *out, size_t *n,
                                cdmpp_err *err) {
    const cd_json *v, *x;
    CD_TRY(cd_json_need(obj, key, &v, err));
    CD_TRY(cd_err_key(err, cd_json_arr(v, min, &x, err), key));
    if (v->n > max)
        return cd_err_key(
            err, CD_FAIL(err, ERANGE, "expected at most %zu numbers, found %u", max, v->n), key);
    for (*n = 0; x; x = x->next, ++*n) {
        CD_TRY(cd_err_key(err, cd_json_real(x, &out[*n], err), key));
        const bool falls =
            order != CD_JSON_ANY && *n &&
            (order == CD_JSON_RISING ? out[*n] <= out[*n - 1] : out[*n] < out[*n - 1]);
        if (falls || !(out[*n] >= lo && out[*n] <= hi))
            return cd_err_key(err,
                              CD_FAIL(err, ERANGE, "expected %snumbers within %g to %g, found %g",
                                      order != CD_JSON_ANY ? "rising " : "", lo, hi, out[*n]),
                              key);
    }
    return CDMPP_OK;
}

cdmpp_status cd_json_need_word(const cd_json *obj, const char *key, const char *words, int *out,
                               cdmpp_err *err) {
    cd_str s;
    CD_TRY(cd_json_need_str(obj, key, &s, err));
    *out = cd_enum_names_find(words, s);
    if (*out >= 0) return CDMPP_OK;
    return cd_err_key(
        err,
        CD_FAIL(err, ESCHEMA, "expected one of %s, found '%.*s'", words, cd_str_shown(s, 40), s.p),
        key);
}

cdmpp_status cd_json_need_str(const cd_json *obj, const char *key, cd_str *out, cdmpp_err *err) {
    const cd_json *v;
    CD_TRY(cd_json_need(obj, key, &v, err));
    return cd_err_key(err, cd_json_str(v, out, err), key);
}
