/* Fields of a config.json: numbers, words, defaults that are told. */
#include "predictor/serving/serving_read.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static cdmpp_status whole(double v, const char *key, cdmpp_err *err) {
    if (v >= 0 && v <= CD_SERVING_MOST && floor(v) >= v) return CDMPP_OK;
    return cd_err_key(err, CD_FAIL(err, ERANGE, "expected a whole number from 0 to 1e9, found %g", v), key);
}

cdmpp_status cd_serving_need(const cd_json *o, const char *key, double *out, cdmpp_err *err) {
    CD_TRY(cd_json_need_real(o, key, 1, CD_SERVING_MOST, out, err));
    return whole(*out, key, err);
}

cdmpp_status cd_serving_maybe(const cd_json *o, const char *key, double *out, cdmpp_err *err) {
    const cd_json *v = cd_json_get(o, key);
    if (!v || v->kind == CD_JSON_NULL) return CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_json_real(v, out, err), key));
    return whole(*out, key, err);
}

void cd_serving_note(cd_serving_model *m, const char *fmt, ...) {
    va_list ap;
    if (m->n_note == CD_SERVING_NOTES) return;
    va_start(ap, fmt);
    (void)vsnprintf(m->note[m->n_note++], sizeof m->note[0], fmt, ap);
    va_end(ap);
}

bool cd_serving_there(const cd_json *o, const char *key) {
    const cd_json *v = cd_json_get(o, key);
    return v && v->kind != CD_JSON_NULL;
}

cdmpp_status cd_serving_or_default(const cd_json *o, const char *key, double usual, const char *as, cd_serving_model *m, double *out, cdmpp_err *err) {
    if (cd_serving_there(o, key)) return cd_serving_need(o, key, out, err);
    *out = usual;
    cd_serving_note(m, "%s is %s: %g%s%s is taken, as Hugging Face does", key, cd_json_get(o, key) ? "null" : "not there", usual, as ? ", " : "", as ? as : "");
    return CDMPP_OK;
}

const cd_json *cd_serving_with(const cd_json *o, const cd_json *root, const char *key) {
    return cd_serving_there(o, key) ? o : root;
}

bool cd_serving_is_true(const cd_json *o, const char *key) {
    const cd_json *v = cd_json_get(o, key);
    return v && v->kind == CD_JSON_BOOL && v->u.i;
}

bool cd_serving_is_word(const cd_json *o, const char *key, const char *word) {
    const cd_json *v = cd_json_get(o, key);
    return v && v->kind == CD_JSON_STR && cd_str_is(v->u.s, word);
}
