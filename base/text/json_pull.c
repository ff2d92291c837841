/* JSON without a tree: members and items one by one, found by brackets and quotes alone, for texts
 * of which little is used. */
#include <stdlib.h>

#include "base/text/text_internal.h"

typedef cd_json_parser parser;
#define bad         cd_json_bad
#define skip_ws     cd_json_skip_ws
#define any_special cd_json_any_special

/* Behind the string that begins at p; its inside is not looked at but for escapes. */
static const char *over_string(const char *p, const char *end) {
    for (p++; p < end; p++) {
        while (end - p >= 8 && !any_special(p)) p += 8;
        if (p == end || *p == '"') break;
        if (*p == '\\' && ++p == end) break;
    }
    return p < end ? p + 1 : NULL;
}

/* Behind the value that begins at p, found by brackets and quotes alone. */
static const char *over_value(const char *p, const char *end) {
    size_t depth = 0;
    while (p < end) {
        const char c = *p;
        if (c == '"') {
            if (!(p = over_string(p, end))) return NULL;
            if (!depth) return p;
            continue;
        }
        if (!depth && (c == ',' || c == '}' || c == ']')) return p;
        if (c == '[' || c == '{') depth++;
        else if ((c == ']' || c == '}') && !--depth) return p + 1;
        p++;
    }
    return NULL;
}

/* What cd_json_member and cd_json_item have in common. To where the next one begins; NULL: *more is
 * false, or an error. */
static const char *next_of(parser *ps, const cd_str *rest, char open, char close, bool *more) {
    const char *const end = ps->end, *p = skip_ws(rest->p, end);
    *more = false;
    if (p == end || (*p != open && *p != ',' && *p != close))
        return bad(ps, p, open == '{' ? "'{'" : "'['");
    const bool first = *p == open;
    if (*p != close) p = skip_ws(p + 1, end);
    if (p < end && *p == close && (first || rest->p[0] == close)) {
        p = skip_ws(p + 1, end);
        return p == end ? NULL : bad(ps, p, "end of text");
    }
    *more = true;
    return p;
}

/* The value that begins at p, and what is left behind it. */
static cdmpp_status value_of(parser *ps, const char *p, char close, cd_str *rest, cd_str *out) {
    const char *const end = ps->end, *beg = p = skip_ws(p, end);
    if (!(p = over_value(beg, end))) return bad(ps, end, close == '}' ? "'}'" : "']'"), ps->st;
    *out = (cd_str){beg, (size_t)(p - beg)};
    while (out->n && (unsigned char)out->p[out->n - 1] <= ' ') out->n--;
    p = skip_ws(p, end);
    if (p == end || (*p != ',' && *p != close))
        return bad(ps, p, close == '}' ? "',' or '}'" : "',' or ']'"), ps->st;
    *rest = (cd_str){p, (size_t)(end - p)};
    return CDMPP_OK;
}

cdmpp_status cd_json_member(cd_str *rest, cd_str *key, cd_str *value, bool *more, cdmpp_err *err) {
    parser ps;
    cd_json_parser_init(&ps, NULL, *rest, err);
    const char *const end = ps.end, *p = next_of(&ps, rest, '{', '}', more), *beg;
    if (!p) return ps.st;
    if (p == end || *p != '"') return bad(&ps, p, "a string"), ps.st;
    beg = p + 1;
    if (!(p = over_string(p, end))) return bad(&ps, end, "'\"'"), ps.st;
    *key = (cd_str){beg, (size_t)(p - 1 - beg)};
    p = skip_ws(p, end);
    if (p == end || *p != ':') return bad(&ps, p, "':'"), ps.st;
    return value_of(&ps, p + 1, '}', rest, value);
}

static int by_text(const void *a, const void *b) {
    const cd_str *x = a, *y = b;
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    const int c = x->n ? memcmp(x->p, y->p, x->n) : 0;
    return c ? c : (x->p > y->p) - (x->p < y->p);
}

cdmpp_status cd_json_members_once(cd_str object, cd_str *twice, cdmpp_err *err) {
    cd_str *key = NULL, one, value;
    size_t n = 0, cap = 0;
    bool more = true;
    *twice = (cd_str){"", 0};
    while (!cd_json_member(&object, &one, &value, &more, NULL) && more) {
        if (CD_GROW(key, n, cap))
            return cd_mem_free(key), CD_FAIL(err, ENOMEM, "keys of an object");
        key[n++] = one;
    }
    if (n) qsort(key, n, sizeof *key, by_text);
    for (size_t i = 0; i + 1 < n && !twice->n; i++)
        if (key[i].n && cd_str_eq(key[i], key[i + 1])) *twice = key[i + 1];
    cd_mem_free(key);
    return CDMPP_OK;
}

cdmpp_status cd_json_item(cd_str *rest, cd_str *value, bool *more, cdmpp_err *err) {
    parser ps;
    cd_json_parser_init(&ps, NULL, *rest, err);
    const char *p = next_of(&ps, rest, '[', ']', more);
    if (!p) return ps.st;
    return value_of(&ps, p, ']', rest, value);
}
