/* Members of a config.json that look like sizes and that the reader did not ask for: told in one
 * line, so that no part of a model is left out without a word.
 *
 *   asked for          known by the reader
 *   serving_unread.def known to say nothing about sizes
 *   what else is       a whole number above 1, a list, an object, a switch of a part that is shared
 *                      or wide, one word for each layer */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predictor/serving_config/serving_read.h"

enum { KEY = 96 };
static const char *const silent[] = {
#define N(pattern) pattern,
#include "predictor/serving_config/serving_unread.def"
};

static bool is_silent(const char *key) {
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (cd_str_fits(silent[i], key)) return true;
    return false;
}

static bool has_word(const char *key, const char *const *word, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strstr(key, word[i])) return true;
    return false;
}
#define HAS(key, ...)                                                                              \
    has_word(key, (const char *const[]){__VA_ARGS__},                                              \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* One further layer is a part, too: of those that guess several tokens. */
static bool is_size(const char *key, const cd_json *v, double layers) {
    switch (v->kind) {
    case CD_JSON_NULL: return false;
    case CD_JSON_BOOL:
        return v->u.i &&
               HAS(key, "share", "wide", "_eq_", "double", "latent", "cross_attention", "_gate");
    case CD_JSON_INT: return v->u.i > (HAS(key, "nextn", "mtp") ? 0 : 1);
    case CD_JSON_REAL:
        return v->u.f > 0 &&
               HAS(key, "ratio", "mult", "dim", "size", "width", "factor", "expan", "rank");
    case CD_JSON_STR:
        return HAS(key, "pattern") || (layers > 1 && fabs((double)v->u.s.n - layers) < 1);
    case CD_JSON_ARR:
    case CD_JSON_OBJ: break;
    }
    return v->n > 0;
}

void cd_serving_unread(const cd_serving_fields *f, const char *where) {
    char list[CD_SERVING_NOTE - 160] = "", key[KEY];
    size_t i = 0, n = 0, more = 0, at = 0;
    const bool inside = where[0];
    for (const cd_json *v = f->o && f->o->kind == CD_JSON_OBJ ? f->o->u.child : NULL; v;
         v = v->next, i++) {
        snprintf(key, sizeof key, "%.*s", (int)(v->key.n < KEY ? v->key.n : KEY), v->key.p);
        /* whatever a file has, a line of a log is a line */
        for (char *c = key; *c; c++)
            *c = isalnum((unsigned char)*c) || strchr("_.-", *c) ? *c : '?';
        if (f->asked[i] || is_silent(key) || !is_size(key, v, f->m->layers)) continue;
        n++;
        if (at + strlen(key) + 3 < sizeof list)
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "", key);
        else more++;
    }
    char rest[32] = "";
    if (more) snprintf(rest, sizeof rest, " and %zu more", more);
    if (n)
        cd_serving_doubt(
            f->m, "%s%s%s%s: %s and %s not read; a part that %s would be missing in the answer",
            inside ? where : "", inside ? ": " : "", list, rest,
            n > 1 ? "they look like sizes" : "it looks like a size", n > 1 ? "are" : "is",
            n > 1 ? "they say" : "it says");
}
