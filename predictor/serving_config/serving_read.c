/* Fields of a config.json: numbers, words, defaults that are told. */
#include "predictor/serving_config/serving_read.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

cdmpp_status cd_serving_fields_of(cd_arena *a, const cd_json *o, cd_serving_model *m,
                                  cd_serving_fields *out, cdmpp_err *err) {
    *out =
        (cd_serving_fields){.o = o,
                            .a = a,
                            .m = m,
                            .asked = cd_arena_zalloc(a, o && o->kind == CD_JSON_OBJ ? o->n + 1 : 1,
                                                     sizeof *out->asked)};
    return out->asked ? CDMPP_OK : CD_FAIL(err, ENOMEM, "fields");
}

/* ---- one fact, several names ---- */
/* True: for the first time. */
static bool ask(cd_serving_fields *f, const cd_json *v) {
    size_t i = 0;
    if (!v) return false;
    for (const cd_json *c = f->o->u.child; c != v; c = c->next) i++;
    const bool first = !f->asked[i];
    f->asked[i] = true;
    return first;
}

static bool is_null(const cd_json *v) { return !v || v->kind == CD_JSON_NULL; }

/* Both are numbers, and not the same. */
static bool differ(const cd_json *a, const cd_json *b) {
    double x, y;
    return !cd_json_real(a, &x, NULL) && !cd_json_real(b, &y, NULL) && fabs(x - y) > 0;
}

static void contradicts(cd_serving_fields *f, const char *name, const cd_json *v, const char *key,
                        const cd_json *own) {
    double x = 0, y = 0;
    if (f->unlike.code || !differ(own, v)) return;
    (void)cd_json_real(own, &x, NULL), (void)cd_json_real(v, &y, NULL);
    (void)cd_err_key(&f->unlike,
                     CD_FAIL(&f->unlike, ERANGE,
                             "expected %g, as %s, which says the same, is; found %g", x, key, y),
                     name);
}

/* The name that the fact has in this file: its own, or another one where its own is not there. */
static const char *name_of(cd_serving_fields *f, const char *key) {
    const char *name = key, *other;
    const cd_json *own = cd_json_get(f->o, key);
    (void)ask(f, own);
    for (size_t i = 0; (other = cd_serving_spelled(key, i)); i++) {
        const cd_json *v = cd_json_get(f->o, other);
        if (!v || cd_serving_is_plain(v)) continue;
        const bool first = ask(f, v);
        if (!is_null(own)) {
            contradicts(f, other, v, name, own);
            continue;
        }
        if (first && cd_serving_spelled_told(key))
            cd_serving_note(f->m, "%s is not there: it is called %s here", key, other);
        name = other, own = v;
    }
    return name;
}

const cd_json *cd_serving_get(cd_serving_fields *f, const char *key) {
    return cd_json_get(f->o, name_of(f, key));
}

void cd_serving_pass_all(cd_serving_fields *f, const char *const *key, size_t n) {
    for (size_t i = 0; i < n; i++) (void)name_of(f, key[i]);
}

bool cd_serving_is_plain(const cd_json *v) {
    double x;
    if (is_null(v)) return true;
    if (v->kind == CD_JSON_BOOL) return !v->u.i;
    if (v->kind == CD_JSON_ARR || v->kind == CD_JSON_OBJ) return !v->n;
    return !cd_json_real(v, &x, NULL) && x <= 1;
}

/* ---- numbers and words ---- */
static cdmpp_status whole(double v, const char *key, cdmpp_err *err) {
    if (v >= 0 && v <= CD_SERVING_MOST && floor(v) >= v) return CDMPP_OK;
    return cd_err_key(
        err, CD_FAIL(err, ERANGE, "expected a whole number from 0 to 1e9, found %g", v), key);
}

cdmpp_status cd_serving_need(cd_serving_fields *f, const char *key, double *out, cdmpp_err *err) {
    const char *name = name_of(f, key);
    CD_TRY(cd_json_need_real(f->o, name, 1, CD_SERVING_MOST, out, err));
    return whole(*out, name, err);
}

cdmpp_status cd_serving_maybe(cd_serving_fields *f, const char *key, double *out, cdmpp_err *err) {
    const char *name = name_of(f, key);
    const cd_json *v = cd_json_get(f->o, name);
    if (is_null(v)) return CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_json_real(v, out, err), name));
    return whole(*out, name, err);
}

bool cd_serving_there(cd_serving_fields *f, const char *key) {
    return !is_null(cd_serving_get(f, key));
}

cdmpp_status cd_serving_or_default(cd_serving_fields *f, const char *key, double usual,
                                   const char *as, double *out, cdmpp_err *err) {
    if (cd_serving_there(f, key)) return cd_serving_need(f, key, out, err);
    *out = usual;
    cd_serving_note(f->m, "%s is %s: %g%s%s is taken, as Hugging Face does", key,
                    cd_json_get(f->o, key) ? "null" : "not there", usual, as ? ", " : "",
                    as ? as : "");
    return CDMPP_OK;
}

bool cd_serving_is_true(cd_serving_fields *f, const char *key) {
    const cd_json *v = cd_serving_get(f, key);
    return v && v->kind == CD_JSON_BOOL && v->u.i;
}

/* ---- notes ---- */
/* The last place is kept for the news that there are more. */
static void note(cd_serving_model *m, bool doubt, const char *fmt, va_list ap) {
    if (m->n_note == CD_SERVING_NOTES) return;
    m->doubt[m->n_note] = doubt;
    if (m->n_note + 1 < CD_SERVING_NOTES)
        (void)vsnprintf(m->note[m->n_note++], sizeof m->note[0], fmt, ap);
    else
        snprintf(m->note[m->n_note++], sizeof m->note[0],
                 "there is more to say of this file than there is room for");
}

void cd_serving_note(cd_serving_model *m, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    note(m, false, fmt, ap);
    va_end(ap);
}

void cd_serving_doubt(cd_serving_model *m, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    note(m, true, fmt, ap);
    va_end(ap);
}
