/* A JSON parser (RFC 8259) that builds its tree in an arena. It is our own because it is the hot
 * path of reading records: strings without escapes stay slices of the text, eight bytes are tested
 * at a time, and numbers that are exact in a double avoid strtod. */
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"

#define CD_JSON_SAID 10 /* keys given twice that are named; the others are counted */

typedef struct cd_json_parser {
    cd_arena *arena;
    const char *beg, *end;
    cdmpp_err *err;
    cdmpp_status st;
    bool foreign;    /* a text of another program: read as Python's json reads it */
    cd_buf *said;    /* NULL: nobody listens */
    size_t twice;    /* keys given twice */
    uint32_t values; /* read so far */
    int depth;
    /* (depth) the arrays and objects that are being filled, outermost first */
    const cd_json *above[CD_JSON_MAX_DEPTH];
} cd_json_parser;

/* `above` is as long as the depth allows and stays unset. */
static inline void cd_json_parser_init(cd_json_parser *ps, cd_arena *a, cd_str text,
                                       cdmpp_err *err) {
    ps->arena = a;
    ps->beg = text.p;
    ps->end = text.p + text.n;
    ps->err = err;
    ps->st = CDMPP_OK;
    ps->foreign = false;
    ps->said = NULL;
    ps->twice = 0;
    ps->values = 0;
    ps->depth = 0;
}

static inline const char *cd_json_skip_ws(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')) p++;
    return p;
}

/* Is any of 8 bytes '"', '\', a control character or above 127? A borrow can only
 * come out of a byte that is one of them, so the answer is exact. */
static inline bool cd_json_any_special(const char *p) {
    const uint64_t ones = 0x0101010101010101u;
    uint64_t w;
    memcpy(&w, p, 8);
    const uint64_t quote = w ^ ones * '"', slash = w ^ ones * '\\';
    return (w | (w - ones * ' ') | (quote - ones) | (slash - ones)) & ones << 7;
}

typedef cd_json_parser parser;

static const char *json_bad(cd_json_parser *ps, const char *p, const char *want);

/* Every function below takes the place it starts at and returns the place behind
 * what it read, or NULL with ps->st set. A place passed in a register is what
 * makes this fast: a member of ps would be reloaded after each byte. */
static const char *value(parser *ps, const char *p, cd_json *v);

#define bad         json_bad
#define skip_ws     cd_json_skip_ws
#define any_special cd_json_any_special

/* The line of place p, 1-based, and where it begins. */
static long json_line(const parser *ps, const char *p, const char **start) {
    long line = 1;
    *start = ps->beg;
    for (const char *at = ps->beg; (at = memchr(at, '\n', (size_t)(p - at))) != NULL; line++)
        *start = ++at;
    return line;
}

/* Raises "column N: expected .., found .." for the place p, with its line where the text has
 * several. Returns NULL. */
static const char *json_bad(parser *ps, const char *p, const char *want) {
    const char *start;
    const long line = json_line(ps, p, &start), at = (long)(p - start) + 1;
    if (p >= ps->end)
        ps->st = CD_FAIL(ps->err, EPARSE, "column %ld: expected %s, found end of text", at, want);
    else if (*p >= ' ' && *p < 127)
        ps->st = CD_FAIL(ps->err, EPARSE, "column %ld: expected %s, found '%c'", at, want, *p);
    else
        ps->st = CD_FAIL(ps->err, EPARSE, "column %ld: expected %s, found byte 0x%02x", at, want,
                         (unsigned char)*p);
    /* of a text of one line the caller knows the line */
    if (line > 1) (void)cd_err_at(ps->err, ps->st, NULL, line);
    return NULL;
}

static const char *no_memory(parser *ps, size_t n) {
    ps->st = CD_FAIL(ps->err, ENOMEM, "JSON: %zu bytes", n);
    return NULL;
}

static const char *too_many(parser *ps) {
    ps->st = CD_FAIL(ps->err, ERANGE, "JSON of more than %u values", CD_JSON_MAX_VALUES);
    return NULL;
}

static int hex4(const char *p, const char *end, unsigned *out) {
    if (end - p < 4) return 0;
    unsigned v = 0;
    for (int i = 0; i < 4; i++) {
        const char c = p[i];
        const int d = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
        if (d < 0) return 0;
        v = v * 16 + (unsigned)d;
    }
    *out = v;
    return 1;
}

static char *put_utf8(char *o, unsigned c) {
    if (c < 0x80) {
        *o++ = (char)c;
        return o;
    }
    if (c < 0x800) {
        *o++ = (char)(0xC0 | c >> 6);
        *o++ = (char)(0x80 | (c & 63));
        return o;
    }
    if (c < 0x10000) *o++ = (char)(0xE0 | c >> 12);
    else {
        *o++ = (char)(0xF0 | c >> 18);
        *o++ = (char)(0x80 | (c >> 12 & 63));
    }
    *o++ = (char)(0x80 | (c >> 6 & 63));
    *o++ = (char)(0x80 | (c & 63));
    return o;
}

/* The code point of a \u escape whose 'u' is at p; a surrogate pair is joined. Of half a pair there
 * is no UTF-8, and a 0 would end a C string: in a text of another program both are U+FFFD. */
static const char *code_point(parser *ps, const char *p, unsigned *out) {
    unsigned c = 0, d = 0;
    if (!hex4(p + 1, ps->end, &c)) return bad(ps, p, "four hex digits after \\u");
    p += 5;
    *out = c;
    if (c >= 0xD800 && c < 0xDC00 && ps->end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
        hex4(p + 2, ps->end, &d) && d >= 0xDC00 && d <= 0xDFFF) {
        *out = 0x10000 + ((c - 0xD800) << 10) + (d - 0xDC00);
        return p + 6;
    }
    if (c && (c < 0xD800 || c > 0xDFFF)) return p;
    *out = 0xFFFD;
    if (ps->foreign) return p;
    return bad(ps, p,
               !c           ? "no \\u0000"
               : c < 0xDC00 ? "the second half of a surrogate pair"
                            : "no lone surrogate");
}

/* p is behind the backslash. */
static const char *escape(parser *ps, const char *p, char **o) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (p == ps->end) return bad(ps, p, "an escape");
    if (*p == 'u') {
        unsigned c = 0;
        p = code_point(ps, p, &c);
        if (p) *o = put_utf8(*o, c);
        return p;
    }
    const char *at = *p ? strchr(from, *p) : NULL;
    if (!at) return bad(ps, p, "one of \"\\/bfnrtu after a backslash");
    *(*o)++ = to[at - from];
    return p + 1;
}

/* First byte that is not plain text of a string: '"', '\', a control character.
 * Bytes above 127 are checked to be UTF-8; the first wrong one stops, too. */
static const char *plain_run(const char *p, const char *end) {
    for (;;) {
        while (end - p >= 8 && !any_special(p)) p += 8;
        while (p < end && (signed char)*p >= ' ' && *p != '"' && *p != '\\') p++;
        if (p == end || (unsigned char)*p < 0x80) return p;
        const size_t n = cd_str_utf8_len((cd_str){p, (size_t)(end - p)});
        if (!n) return p;
        p += n;
    }
}

/* Why plain_run stopped at p if it was neither '"' nor '\'. */
static const char *bad_in_string(parser *ps, const char *p) {
    if (p == ps->end) return bad(ps, p, "'\"'");
    return bad(ps, p, (unsigned char)*p < ' ' ? "no control character in a string" : "UTF-8");
}

/* A string whose first escape is at p: copied, since it shrinks. */
static const char *string_escaped(parser *ps, const char *beg, const char *p, cd_str *out) {
    const char *close = p;
    while (close < ps->end && *close != '"') {
        close += *close == '\\' ? 2 : 1;
        close = close < ps->end ? plain_run(close, ps->end) : ps->end;
    }
    char *buf = cd_arena_alloc(ps->arena, (size_t)(close - beg) + 1, 1), *o = buf;
    if (!buf) return no_memory(ps, (size_t)(close - beg));
    const char *from = beg;
    for (;;) {
        memcpy(o, from, (size_t)(p - from));
        o += p - from;
        if (p == ps->end || *p != '\\') break;
        from = escape(ps, p + 1, &o);
        if (!from) return NULL;
        p = plain_run(from, ps->end);
    }
    if (p == ps->end || *p != '"') return bad_in_string(ps, p);
    *out = (cd_str){buf, (size_t)(o - buf)};
    return p + 1;
}

/* p is behind the opening quote. */
static const char *string(parser *ps, const char *p, cd_str *out) {
    const char *beg = p;
    p = plain_run(p, ps->end);
    if (p < ps->end && *p == '\\') return string_escaped(ps, beg, p, out);
    if (p == ps->end || *p != '"') return bad_in_string(ps, p);
    *out = (cd_str){beg, (size_t)(p - beg)};
    return p + 1;
}

static inline bool digit(const char *p, const char *end) {
    return p < end && *p >= '0' && *p <= '9';
}

/* strtod on a copy; it wants the locale's decimal point and a final NUL. */
static const char *real_slowly(parser *ps, const char *beg, const char *p, cd_json *v) {
    char buf[512];
    const char *point = localeconv()->decimal_point, *dot = memchr(beg, '.', (size_t)(p - beg));
    const size_t n = (size_t)(p - beg), n_point = dot ? strlen(point) : 0,
                 before = dot ? (size_t)(dot - beg) : n;
    if (n + n_point >= sizeof buf) return bad(ps, beg, "a number of at most 500 characters");
    memcpy(buf, beg, before);
    memcpy(buf + before, point, n_point);
    if (dot) memcpy(buf + before + n_point, dot + 1, n - before - 1);
    buf[dot ? n + n_point - 1 : n] = '\0';
    v->u.f = strtod(buf, NULL);
    return p;
}

/* A number with fraction or exponent, or too long for an integer; p is behind the
 * n digits of its whole part, whose value (modulo 2^64) is m. */
static const char *real(parser *ps, const char *beg, const char *p, uint64_t m, size_t n,
                        cd_json *v) {
    static const double ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    int e = 0, scale = 0;
    if (p < ps->end && *p == '.') {
        const char *first = ++p;
        if (!digit(p, ps->end)) return bad(ps, p, "a digit");
        for (; digit(p, ps->end); p++) m = m * 10 + (uint64_t)(*p - '0');
        n += (size_t)(p - first);
        scale = p - first < 1000 ? (int)(p - first) : 1000;
    }
    if (p < ps->end && (*p == 'e' || *p == 'E')) {
        const bool minus = ++p < ps->end && *p == '-';
        if (minus || (p < ps->end && *p == '+')) p++;
        if (!digit(p, ps->end)) return bad(ps, p, "a digit");
        for (; digit(p, ps->end); p++) e = e < 10000 ? e * 10 + (*p - '0') : e;
        if (minus) e = -e;
    }
    e -= scale;
    v->kind = CD_JSON_REAL;
    /* Both factors exact in a double: one rounding, so the result is the nearest. */
    if (n > 19 || m > (uint64_t)1 << 53 || e < -22 || e > 22) return real_slowly(ps, beg, p, v);
    const double f = e < 0 ? (double)m / ten[-e] : (double)m * ten[e];
    v->u.f = *beg == '-' ? -f : f;
    return p;
}

static const char *number(parser *ps, const char *p, cd_json *v) {
    const char *const beg = p, *const end = ps->end;
    const bool neg = *p == '-';
    const char *first = p += neg;
    uint64_t m = 0;
    for (; digit(p, end); p++) m = m * 10 + (uint64_t)(*p - '0');
    const size_t n = (size_t)(p - first);
    if (!n && ps->foreign && end - p >= 8 && !memcmp(p, "Infinity", 8))
        return v->kind = CD_JSON_REAL, v->u.f = neg ? -HUGE_VAL : HUGE_VAL, p + 8;
    if (!n) return bad(ps, p, "a value");
    if (n > 1 && *first == '0') return bad(ps, p, "no leading zero");
    if ((p < end && (*p == '.' || *p == 'e' || *p == 'E')) || n > 19 ||
        m > (uint64_t)INT64_MAX + neg)
        return real(ps, beg, p, m, n, v);
    v->kind = CD_JSON_INT;
    v->u.i = (int64_t)(neg ? 0 - m : m);
    return p;
}

/* "key": of an object's member. */
static const char *member_key(parser *ps, const char *p, cd_str *key) {
    p = skip_ws(p, ps->end);
    if (p == ps->end || *p != '"') return bad(ps, p, "a string");
    p = string(ps, p + 1, key);
    if (!p) return NULL;
    p = skip_ws(p, ps->end);
    return p < ps->end && *p == ':' ? p + 1 : bad(ps, p, "':'");
}

/* A bit for a key: two keys with one bit may be equal. */
static inline uint64_t key_bit(cd_str k) {
    return (uint64_t)1 << ((k.n * 5 +
                            (k.n ? (unsigned char)k.p[0] * 3u + (unsigned char)k.p[k.n - 1] * 7u +
                                       (unsigned char)k.p[k.n / 2]
                                 : 0)) &
                           63);
}

static cdmpp_status json_once(cd_json_parser *ps, const char *open, cd_json *obj);

/* Comma-separated children up to `close`; an object's children carry keys. */
static const char *fill(parser *ps, const char *p, cd_json *v, char close) {
    cd_json **tail = &v->u.child;
    const char *const open = p;
    uint64_t keys = 0;
    bool again = false;
    p = skip_ws(p + 1, ps->end);
    for (bool more = p == ps->end || *p != close; more; p++) {
        if (++ps->values > CD_JSON_MAX_VALUES) return too_many(ps);
        cd_json *c = cd_arena_alloc(ps->arena, 1, sizeof *c);
        if (!c) return no_memory(ps, sizeof *c);
        c->n = 0;
        c->next = NULL;
        c->key = (cd_str){NULL, 0};
        if (close == '}') {
            if (!(p = member_key(ps, p, &c->key))) return NULL;
            again |= (keys & key_bit(c->key)) != 0;
            keys |= key_bit(c->key);
        }
        v->n++;
        if (!(p = value(ps, p, c))) return NULL;
        *tail = c;
        tail = &c->next;
        p = skip_ws(p, ps->end);
        if (p == ps->end || (*p != ',' && *p != close))
            return bad(ps, p, close == '}' ? "',' or '}'" : "',' or ']'");
        more = *p == ',';
        if (!more) break;
    }
    return again && json_once(ps, open, v) ? NULL : p + 1;
}

static const char *children(parser *ps, const char *p, cd_json *v, char close) {
    if (ps->depth == CD_JSON_MAX_DEPTH) {
        ps->st = CD_FAIL(ps->err, EPARSE, "nested deeper than %d", CD_JSON_MAX_DEPTH);
        return NULL;
    }
    v->u.child = NULL;
    ps->above[ps->depth++] = v;
    p = fill(ps, p, v, close);
    ps->depth--;
    return p;
}

static const char *literal(parser *ps, const char *p, const char *word) {
    const size_t n = strlen(word);
    if ((size_t)(ps->end - p) < n || memcmp(p, word, n) != 0) return bad(ps, p, "a value");
    return p + n;
}

static const char *value(parser *ps, const char *p, cd_json *v) {
    p = skip_ws(p, ps->end);
    if (p == ps->end) return bad(ps, p, "a value");
    switch (*p) {
    case '{': v->kind = CD_JSON_OBJ; return children(ps, p, v, '}');
    case '[': v->kind = CD_JSON_ARR; return children(ps, p, v, ']');
    case '"': v->kind = CD_JSON_STR; return string(ps, p + 1, &v->u.s);
    case 'n':
        v->kind = CD_JSON_NULL;
        v->u.i = 0;
        return literal(ps, p, "null");
    case 't':
        v->kind = CD_JSON_BOOL;
        v->u.i = 1;
        return literal(ps, p, "true");
    case 'f':
        v->kind = CD_JSON_BOOL;
        v->u.i = 0;
        return literal(ps, p, "false");
    case 'N':
        if (!ps->foreign) return bad(ps, p, "a value");
        return v->kind = CD_JSON_REAL, v->u.f = (double)NAN, literal(ps, p, "NaN");
    default: return number(ps, p, v);
    }
}

/* Behind the three bytes that some editors of Windows put in front of a text. */
static const char *begin(parser *ps) {
    const char *p = ps->beg;
    const size_t n = (size_t)(ps->end - p);
    if (n >= 2 && (!memcmp(p, "\xff\xfe", 2) || !memcmp(p, "\xfe\xff", 2)))
        return bad(ps, p, "UTF-8, not UTF-16");
    return n >= 3 && !memcmp(p, "\xef\xbb\xbf", 3) ? p + 3 : p;
}

static cdmpp_status parse(parser *ps, const cd_json **out) {
    cd_json *v = CD_NEW(ps->arena, cd_json);
    if (!v) return CD_FAIL(ps->err, ENOMEM, "JSON node");
    const char *p = begin(ps);
    if (!p || !(p = value(ps, p, v))) return ps->st;
    p = skip_ws(p, ps->end);
    if (p != ps->end) bad(ps, p, "end of text");
    if (!ps->st) *out = v;
    return ps->st;
}

cdmpp_status cd_json_parse(cd_arena *a, const char *text, size_t len, const cd_json **out,
                           cdmpp_err *err) {
    parser ps;
    cd_json_parser_init(&ps, a, (cd_str){text, len}, err);
    return parse(&ps, out);
}

cdmpp_status cd_json_parse_foreign(cd_arena *a, cd_str text, cd_buf *said, const cd_json **out,
                                   cdmpp_err *err) {
    parser ps;
    cd_json_parser_init(&ps, a, text, err);
    ps.foreign = true;
    ps.said = said;
    const cdmpp_status st = parse(&ps, out);
    if (!st && said && ps.twice > CD_JSON_SAID)
        cd_buf_putf(said, "%zu more keys are given twice\n", ps.twice - CD_JSON_SAID);
    return st;
}

const char *cd_json_number(const char *p, const char *end, double *out) {
    parser ps;
    cd_json v;
    cd_json_parser_init(&ps, NULL, (cd_str){p, (size_t)(end - p)}, NULL);
    p = skip_ws(p, end);
    if (p == end || !(p = number(&ps, p, &v))) return NULL;
    *out = v.kind == CD_JSON_INT ? (double)v.u.i : v.u.f;
    return skip_ws(p, end);
}

/* JSON without a tree: members and items one by one, found by brackets and quotes alone, for texts
 * of which little is used. */

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

/* Keys that an object has twice. RFC 8259 leaves open what that means. Python, and so whoever wrote
 * or tried the file, takes the last one; a file of ours has one author, who is told of the mistake
 * instead. */

#define GONE UINT32_MAX /* as `n` of a member that is to go */

typedef struct {
    cd_json *node;
    uint32_t at; /* its place in the object */
} member;

static int by_key(const void *a, const void *b) {
    const member *x = a, *y = b;
    const cd_str s = x->node->key, t = y->node->key;
    if (s.n != t.n) return s.n < t.n ? -1 : 1;
    const int c = s.n ? memcmp(s.p, t.p, s.n) : 0;
    return c ? c : x->at < y->at ? -1 : x->at > y->at;
}

/* "rope_scaling.long_factor[3].type": the way to a member of the object that is being filled. */
static void put_way(const cd_json_parser *ps, cd_str key, cd_buf *b) {
    for (int d = 1; d < ps->depth; d++) {
        const cd_json *outer = ps->above[d - 1], *v = ps->above[d];
        if (outer->kind == CD_JSON_ARR) cd_buf_putf(b, "[%u]", outer->n - 1);
        else cd_buf_putf(b, "%s%.*s", d > 1 ? "." : "", cd_str_shown(v->key, 60), v->key.p);
    }
    cd_buf_putf(b, "%s%.*s", ps->depth > 1 ? "." : "", cd_str_shown(key, 60), key.p);
}

static long line_of(const cd_json_parser *ps, const char *open, cd_str key) {
    /* a key with escapes is a copy */
    const char *start, *at = key.p >= ps->beg && key.p <= ps->end ? key.p : open;
    return json_line(ps, at, &start);
}

/* `last` is the later of the two members. */
static cdmpp_status tell(cd_json_parser *ps, const char *open, const cd_json *last) {
    cd_buf way = {0};
    if (ps->foreign && (!ps->said || ++ps->twice > CD_JSON_SAID)) return CDMPP_OK;
    const long line = line_of(ps, open, last->key);
    put_way(ps, last->key, &way);
    if (way.oom) {
        ps->st = CD_FAIL(ps->err, ENOMEM, "JSON: a key");
    } else if (ps->foreign) {
        cd_buf_putf(ps->said, "line %ld: %s: the key is given twice, the last one counts\n", line,
                    way.p);
    } else {
        ps->st = cd_err_key(
            ps->err, CD_FAIL(ps->err, EPARSE, "expected this key once, found it twice"), way.p);
        if (line > 1) (void)cd_err_at(ps->err, ps->st, NULL, line);
    }
    cd_buf_free(&way);
    return ps->st;
}

static void unlink_marked(cd_json *obj) {
    cd_json **tail = &obj->u.child;
    for (cd_json *c = obj->u.child; c; c = c->next) {
        if (c->n == GONE) continue;
        *tail = c;
        tail = &c->next;
    }
    *tail = NULL;
}

/* A full object, which begins at `open`, whose keys may come twice: EPARSE, or in a foreign text
 * only the last of a key stays, and that is said. */
static cdmpp_status json_once(cd_json_parser *ps, const char *open, cd_json *obj) {
    member *m = cd_arena_alloc(ps->arena, obj->n, sizeof *m);
    uint32_t n = 0, gone = 0;
    if (!m) return ps->st = CD_FAIL(ps->err, ENOMEM, "JSON: keys of an object");
    for (cd_json *c = obj->u.child; c; c = c->next, n++) m[n] = (member){c, n};
    qsort(m, n, sizeof *m, by_key);
    for (uint32_t k = 0; k + 1 < n; k++) {
        if (!cd_str_eq(m[k].node->key, m[k + 1].node->key)) continue;
        CD_TRY(tell(ps, open, m[k + 1].node));
        m[k].node->n = GONE;
        gone++;
    }
    if (gone) unlink_marked(obj);
    obj->n -= gone;
    return CDMPP_OK;
}
