#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    cd_arena *arena;
    const char *p, *beg, *end;
    cdmpp_err *err;
    int depth;
} parser;

static cdmpp_status value(parser *ps, cd_json *v);

static cdmpp_status bad(parser *ps, const char *want) {
    const long at = (long)(ps->p - ps->beg) + 1;
    if (ps->p >= ps->end)
        return CD_FAIL(ps->err, EPARSE, "column %ld: expected %s, found end of text", at, want);
    const unsigned char c = (unsigned char)*ps->p;
    if (c >= ' ' && c < 127) return CD_FAIL(ps->err, EPARSE, "column %ld: expected %s, found '%c'", at, want, c);
    return CD_FAIL(ps->err, EPARSE, "column %ld: expected %s, found byte 0x%02x", at, want, c);
}

static inline void skip_ws(parser *ps) {
    while (ps->p < ps->end && (*ps->p == ' ' || *ps->p == '\n' || *ps->p == '\t' || *ps->p == '\r')) ps->p++;
}

static inline bool eat(parser *ps, char c) {
    skip_ws(ps);
    if (ps->p == ps->end || *ps->p != c) return false;
    ps->p++;
    return true;
}

static int hex4(const char *p, const char *end, unsigned *out) {
    if (end - p < 4) return 0;
    unsigned v = 0;
    for (int i = 0; i < 4; i++) {
        const char c = p[i];
        const int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (d < 0) return 0;
        v = v * 16 + (unsigned)d;
    }
    *out = v;
    return 1;
}

static char *put_utf8(char *o, unsigned c) {
    if (c < 0x80) { *o++ = (char)c; return o; }
    if (c < 0x800) { *o++ = (char)(0xC0 | c >> 6); *o++ = (char)(0x80 | (c & 63)); return o; }
    if (c < 0x10000) *o++ = (char)(0xE0 | c >> 12);
    else { *o++ = (char)(0xF0 | c >> 18); *o++ = (char)(0x80 | (c >> 12 & 63)); }
    *o++ = (char)(0x80 | (c >> 6 & 63));
    *o++ = (char)(0x80 | (c & 63));
    return o;
}

/* The code point of a \u escape whose 'u' is at ps->p; a surrogate pair is
 * joined. Leaves ps->p behind the last digit. */
static cdmpp_status code_point(parser *ps, unsigned *out) {
    unsigned c = 0, d = 0;
    if (!hex4(ps->p + 1, ps->end, &c)) return bad(ps, "four hex digits after \\u");
    ps->p += 5;
    if (c >= 0xD800 && c < 0xDC00) {
        if (ps->end - ps->p < 6 || ps->p[0] != '\\' || ps->p[1] != 'u' || !hex4(ps->p + 2, ps->end, &d) ||
            d < 0xDC00 || d > 0xDFFF)
            return bad(ps, "the second half of a surrogate pair");
        ps->p += 6;
        c = 0x10000 + ((c - 0xD800) << 10) + (d - 0xDC00);
    } else if (c >= 0xDC00 && c < 0xE000) {
        return bad(ps, "no lone surrogate");
    }
    *out = c;
    return CDMPP_OK;
}

static cdmpp_status escape(parser *ps, char **o) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (ps->p == ps->end) return bad(ps, "an escape");
    if (*ps->p == 'u') {
        unsigned c = 0;
        CD_TRY(code_point(ps, &c));
        *o = put_utf8(*o, c);
        return CDMPP_OK;
    }
    const char *at = *ps->p ? strchr(from, *ps->p) : NULL;
    if (!at) return bad(ps, "one of \"\\/bfnrtu after a backslash");
    *(*o)++ = to[at - from];
    ps->p++;
    return CDMPP_OK;
}

/* Length of the valid UTF-8 sequence at p, 0 if there is none. */
static int utf8_len(const unsigned char *p, const unsigned char *end) {
    const unsigned char lo3 = p[0] == 0xE0 ? 0xA0 : 0x80, hi3 = p[0] == 0xED ? 0x9F : 0xBF;
    const int n = p[0] >= 0xF0 && p[0] <= 0xF4 ? 4 : p[0] >= 0xE0 && p[0] < 0xF0 ? 3
                : p[0] >= 0xC2 && p[0] < 0xE0 ? 2 : 0;
    if (!n || end - p < n) return 0;
    for (int i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    if (n == 3 && (p[1] < lo3 || p[1] > hi3)) return 0;
    if (n == 4 && ((p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))) return 0;
    return n;
}

/* The rest of a string that holds an escape: copied, since it shrinks. */
static cdmpp_status string_escaped(parser *ps, const char *beg, cd_str *out) {
    const char *close = ps->p;
    while (close < ps->end && *close != '"') close += *close == '\\' && close + 1 < ps->end ? 2 : 1;
    char *buf = cd_arena_alloc(ps->arena, (size_t)(close - beg) + 1, 1), *o = buf;
    if (!buf) return CD_FAIL(ps->err, ENOMEM, "string of %zu bytes", (size_t)(close - beg));
    memcpy(buf, beg, (size_t)(ps->p - beg));
    o += ps->p - beg;
    while (ps->p < ps->end && *ps->p != '"') {
        const unsigned char c = (unsigned char)*ps->p;
        if (c < ' ') return bad(ps, "no control character in a string");
        if (c == '\\') {
            ps->p++;
            CD_TRY(escape(ps, &o));
            continue;
        }
        const int n = c < 0x80 ? 1 : utf8_len((const unsigned char *)ps->p, (const unsigned char *)ps->end);
        if (!n) return bad(ps, "UTF-8");
        memcpy(o, ps->p, (size_t)n);
        o += n;
        ps->p += n;
    }
    if (ps->p == ps->end) return bad(ps, "'\"'");
    ps->p++;
    *out = (cd_str){buf, (size_t)(o - buf)};
    return CDMPP_OK;
}

static cdmpp_status string(parser *ps, cd_str *out) {
    if (!eat(ps, '"')) return bad(ps, "a string");
    const char *beg = ps->p;
    while (ps->p < ps->end) {
        const unsigned char c = (unsigned char)*ps->p;
        if (c == '"') {
            *out = (cd_str){beg, (size_t)(ps->p - beg)};
            ps->p++;
            return CDMPP_OK;
        }
        if (c == '\\') return string_escaped(ps, beg, out);
        if (c < ' ') return bad(ps, "no control character in a string");
        if (c < 0x80) { ps->p++; continue; }
        const int n = utf8_len((const unsigned char *)ps->p, (const unsigned char *)ps->end);
        if (!n) return bad(ps, "UTF-8");
        ps->p += n;
    }
    return bad(ps, "'\"'");
}

static inline bool digit(const parser *ps) { return ps->p < ps->end && *ps->p >= '0' && *ps->p <= '9'; }

static cdmpp_status real(parser *ps, const char *beg, cd_json *v) {
    char buf[512];
    const size_t n = (size_t)(ps->p - beg);
    if (n >= sizeof buf) return bad(ps, "a number of at most 511 characters");
    memcpy(buf, beg, n);
    buf[n] = '\0';
    v->kind = CD_JSON_REAL;
    v->u.f = strtod(buf, NULL);
    return CDMPP_OK;
}

static cdmpp_status number(parser *ps, cd_json *v) {
    const char *beg = ps->p;
    const bool neg = *ps->p == '-';
    if (neg) ps->p++;
    if (!digit(ps)) return bad(ps, "a value");
    uint64_t m = 0;
    const char *first = ps->p;
    for (; digit(ps); ps->p++) m = m * 10 + (uint64_t)(*ps->p - '0');
    const size_t n = (size_t)(ps->p - first);
    if (n > 1 && *first == '0') return bad(ps, "no leading zero");
    bool whole = n <= 18; /* 10^18 < 2^63 */
    if (ps->p < ps->end && *ps->p == '.') {
        whole = false;
        ps->p++;
        if (!digit(ps)) return bad(ps, "a digit");
        while (digit(ps)) ps->p++;
    }
    if (ps->p < ps->end && (*ps->p == 'e' || *ps->p == 'E')) {
        whole = false;
        ps->p++;
        if (ps->p < ps->end && (*ps->p == '+' || *ps->p == '-')) ps->p++;
        if (!digit(ps)) return bad(ps, "a digit");
        while (digit(ps)) ps->p++;
    }
    if (!whole) return real(ps, beg, v);
    v->kind = CD_JSON_INT;
    v->u.i = neg ? -(int64_t)m : (int64_t)m;
    return CDMPP_OK;
}

/* Comma-separated children up to `close`; an object's children carry keys. */
static cdmpp_status children(parser *ps, cd_json *v, char close) {
    ps->p++;
    if (++ps->depth > CD_JSON_MAX_DEPTH)
        return CD_FAIL(ps->err, EPARSE, "nested deeper than %d", CD_JSON_MAX_DEPTH);
    cd_json **tail = &v->u.child;
    *tail = NULL;
    if (!eat(ps, close)) {
        do {
            cd_json *c = cd_arena_alloc(ps->arena, 1, sizeof *c);
            if (!c) return CD_FAIL(ps->err, ENOMEM, "JSON node");
            c->n = 0;
            c->next = NULL;
            c->key = (cd_str){NULL, 0};
            if (close == '}') {
                CD_TRY(string(ps, &c->key));
                if (!eat(ps, ':')) return bad(ps, "':'");
            }
            CD_TRY(value(ps, c));
            *tail = c;
            tail = &c->next;
            v->n++;
        } while (eat(ps, ','));
        if (!eat(ps, close)) return bad(ps, close == '}' ? "',' or '}'" : "',' or ']'");
    }
    ps->depth--;
    return CDMPP_OK;
}

static bool literal(parser *ps, const char *word) {
    const size_t n = strlen(word);
    if ((size_t)(ps->end - ps->p) < n || memcmp(ps->p, word, n) != 0) return false;
    ps->p += n;
    return true;
}

static cdmpp_status value(parser *ps, cd_json *v) {
    skip_ws(ps);
    if (ps->p == ps->end) return bad(ps, "a value");
    switch (*ps->p) {
    case '{': v->kind = CD_JSON_OBJ; return children(ps, v, '}');
    case '[': v->kind = CD_JSON_ARR; return children(ps, v, ']');
    case '"': v->kind = CD_JSON_STR; return string(ps, &v->u.s);
    case 'n': v->kind = CD_JSON_NULL; if (literal(ps, "null")) return CDMPP_OK; break;
    case 't': v->kind = CD_JSON_BOOL; v->u.i = 1; if (literal(ps, "true")) return CDMPP_OK; break;
    case 'f': v->kind = CD_JSON_BOOL; v->u.i = 0; if (literal(ps, "false")) return CDMPP_OK; break;
    default: return number(ps, v);
    }
    return bad(ps, "a value");
}

cdmpp_status cd_json_parse(cd_arena *a, const char *text, size_t len, const cd_json **out, cdmpp_err *err) {
    parser ps = {a, text, text, text + len, err, 0};
    cd_json *v = CD_NEW(a, cd_json);
    if (!v) return CD_FAIL(err, ENOMEM, "JSON node");
    CD_TRY(value(&ps, v));
    skip_ws(&ps);
    if (ps.p != ps.end) return bad(&ps, "end of text");
    *out = v;
    return CDMPP_OK;
}

const cd_json *cd_json_get(const cd_json *obj, const char *key) {
    if (!obj || obj->kind != CD_JSON_OBJ) return NULL;
    for (const cd_json *c = obj->u.child; c; c = c->next)
        if (cd_str_is(c->key, key)) return c;
    return NULL;
}

const char *cd_json_kind_name(cd_json_kind k) {
    static const char *const name[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    return name[k];
}

static cdmpp_status wrong(const cd_json *v, const char *want, cdmpp_err *err) {
    return CD_FAIL(err, ESCHEMA, "expected %s, found %s", want, v ? cd_json_kind_name(v->kind) : "nothing");
}

cdmpp_status cd_json_int(const cd_json *v, int64_t lo, int64_t hi, int64_t *out, cdmpp_err *err) {
    if (!v || v->kind != CD_JSON_INT) return wrong(v, "an integer", err);
    if (v->u.i < lo || v->u.i > hi)
        return CD_FAIL(err, ERANGE, "%lld is outside [%lld, %lld]", (long long)v->u.i, (long long)lo, (long long)hi);
    *out = v->u.i;
    return CDMPP_OK;
}

cdmpp_status cd_json_real(const cd_json *v, double *out, cdmpp_err *err) {
    if (v && v->kind == CD_JSON_INT) *out = (double)v->u.i;
    else if (v && v->kind == CD_JSON_REAL) *out = v->u.f;
    else return wrong(v, "a number", err);
    return CDMPP_OK;
}

cdmpp_status cd_json_str(const cd_json *v, cd_str *out, cdmpp_err *err) {
    if (!v || v->kind != CD_JSON_STR) return wrong(v, "a string", err);
    *out = v->u.s;
    return CDMPP_OK;
}

cdmpp_status cd_json_arr(const cd_json *v, size_t min, const cd_json **first, cdmpp_err *err) {
    if (!v || v->kind != CD_JSON_ARR) return wrong(v, "an array", err);
    if (v->n < min) return CD_FAIL(err, ESCHEMA, "expected an array of at least %zu items, found %u", min, v->n);
    *first = v->u.child;
    return CDMPP_OK;
}

bool cd_str_is(cd_str s, const char *z) {
    const size_t n = strlen(z);
    return s.n == n && memcmp(s.p, z, n) == 0;
}

bool cd_str_eq(cd_str a, cd_str b) { return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0); }

char *cd_str_dup(cd_arena *a, cd_str s) {
    char *z = cd_arena_alloc(a, s.n + 1, 1);
    if (!z) return NULL;
    if (s.n) memcpy(z, s.p, s.n);
    z[s.n] = '\0';
    return z;
}
