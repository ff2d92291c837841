/* Reads UBJ by tables of keys; see ubj_internal.h. */
#include "learner/trees/ubj_internal.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_DEPTH = 32 };

static bool take(cd_ubj *r, size_t n, const unsigned char **out) {
    if (n > r->n) return false;
    *out = r->p;
    r->p += n;
    r->n -= n;
    return true;
}

static bool peek(const cd_ubj *r, char c) { return r->n && *r->p == (unsigned char)c; }

static bool eat(cd_ubj *r, char c) {
    const unsigned char *p;
    return peek(r, c) && take(r, 1, &p);
}

static size_t size_of(unsigned char type) {
    switch (type) {
    case 'i':
    case 'U': return 1;
    case 'I': return 2;
    case 'l':
    case 'd': return 4;
    case 'L':
    case 'D': return 8;
    default: return 0;
    }
}

static bool is_whole(unsigned char type) { return size_of(type) && type != 'd' && type != 'D'; }

static uint64_t big_endian(const unsigned char *p, size_t n) {
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v = v << 8 | p[i];
    return v;
}

uint32_t cd_ubj_l(const unsigned char *data, size_t i) {
    return (uint32_t)big_endian(data + 4 * i, 4);
}

float cd_ubj_d(const unsigned char *data, size_t i) {
    const uint32_t w = cd_ubj_l(data, i);
    float f;
    memcpy(&f, &w, sizeof f);
    return f;
}

/* A number with its marker and its sign. */
static bool integer(cd_ubj *r, int64_t *out) {
    const unsigned char *type, *p;
    if (!take(r, 1, &type) || !is_whole(*type) || !take(r, size_of(*type), &p)) return false;
    const uint64_t v = big_endian(p, size_of(*type));
    switch (*type) {
    case 'i': *out = (int8_t)v; break;
    case 'I': *out = (int16_t)v; break;
    case 'l': *out = (int32_t)v; break;
    default: *out = (int64_t)v;
    }
    return true;
}

static bool length(cd_ubj *r, size_t *out) {
    int64_t v;
    if (!integer(r, &v) || v < 0) return false;
    *out = (size_t)v;
    return true;
}

static bool bytes(cd_ubj *r, const unsigned char **p, size_t *n) {
    return length(r, n) && take(r, *n, p);
}

/* Behind '[': optional type and count. A count must come with a type, and types are numbers. */
static bool array_head(cd_ubj *r, unsigned char *type, size_t *count, bool *counted) {
    const unsigned char *p;
    *type = 0;
    if (peek(r, '$')) {
        if (!take(r, 2, &p) || !size_of(p[1])) return false;
        *type = p[1];
    }
    *counted = peek(r, '#');
    return eat(r, '#') ? length(r, count) && *count <= r->n / (*type ? size_of(*type) : 1) : !*type;
}

static bool skip(cd_ubj *r, int depth);

static bool skip_array(cd_ubj *r, int depth) {
    unsigned char type;
    const unsigned char *p;
    size_t n = SIZE_MAX;
    bool counted;
    if (!array_head(r, &type, &n, &counted)) return false;
    if (type) return take(r, n * size_of(type), &p);
    for (size_t i = 0; i < n; i++) {
        if (!counted && eat(r, ']')) return true;
        if (!skip(r, depth + 1)) return false;
    }
    return true;
}

/* One value. */
static bool skip(cd_ubj *r, int depth) {
    const unsigned char *type, *p;
    size_t n;
    if (depth > MAX_DEPTH || !take(r, 1, &type)) return false;
    if (*type == 'T' || *type == 'F' || *type == 'Z') return true;
    if (*type == 'S') return bytes(r, &p, &n);
    if (*type == '[') return skip_array(r, depth);
    if (*type != '{') return size_of(*type) && take(r, size_of(*type), &p);
    while (!eat(r, '}'))
        if (!bytes(r, &p, &n) || !skip(r, depth + 1)) return false;
    return true;
}

static cdmpp_status broken(cdmpp_err *err) {
    return CD_FAIL(err, EMODEL, "expected a value in UBJ of at most %d levels, found other bytes",
                   MAX_DEPTH);
}

/* What comes below reads bytes that cd_ubj_whole took: they are whole values, one behind the
 * other. */
void cd_ubj_pass(cd_ubj *at) { (void)skip(at, 0); }

cdmpp_status cd_ubj_whole(cd_ubj at, cdmpp_err *err) {
    if (!skip(&at, 0)) return broken(err);
    return at.n ? CD_FAIL(err, EMODEL, "expected nothing behind the trees, found %zu bytes", at.n)
                : CDMPP_OK;
}

static const char *kind_name(char kind) {
    return kind == '{' ? "an object" : kind == '[' ? "a list" : kind == 'S' ? "a text" : "a number";
}

static bool is_kind(cd_ubj at, char kind) {
    return at.n && (kind == 'n' ? size_of(*at.p) != 0 : *at.p == (unsigned char)kind);
}

/* A key that nobody knows may change what the trees mean. */
static cdmpp_status found(cd_ubj_member *m, size_t n, const unsigned char *key, size_t len,
                          cd_ubj at, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) {
        if (strlen(m[i].key) != len || memcmp(m[i].key, key, len) != 0) continue;
        if (m[i].at.p)
            return cd_err_key(err, CD_FAIL(err, EMODEL, "the key is there twice"), m[i].key);
        if (!is_kind(at, m[i].kind))
            return cd_err_key(err,
                              CD_FAIL(err, EMODEL, "expected %s, found a value of another kind",
                                      kind_name(m[i].kind)),
                              m[i].key);
        m[i].at = at;
        return CDMPP_OK;
    }
    return CD_FAIL(err, EMODEL, "unknown key '%.*s'", len > 40 ? 40 : (int)len, (const char *)key);
}

cdmpp_status cd_ubj_object(cd_ubj at, cd_ubj_member *m, size_t n, cdmpp_err *err) {
    const unsigned char *p;
    size_t len;
    for (size_t i = 0; i < n; i++) m[i].at = (cd_ubj){0};
    if (!eat(&at, '{'))
        return CD_FAIL(err, EMODEL, "expected an object, found a value of another kind");
    while (bytes(&at, &p, &len)) { /* up to the } */
        CD_TRY(found(m, n, p, len, at, err));
        cd_ubj_pass(&at);
    }
    for (size_t i = 0; i < n; i++)
        if (!m[i].at.p && !m[i].optional)
            return cd_err_key(err, CD_FAIL(err, EMODEL, "the key is missing"), m[i].key);
    return CDMPP_OK;
}

cdmpp_status cd_ubj_text(cd_ubj at, char *buf, size_t cap, cdmpp_err *err) {
    const unsigned char *p = at.p;
    size_t n = 0;
    (void)take(&at, 1, &p);
    (void)bytes(&at, &p, &n);
    if (n >= cap || memchr(p, 0, n))
        return CD_FAIL(err, EMODEL, "expected a text of less than %zu bytes, found %zu bytes", cap,
                       n);
    memcpy(buf, p, n);
    buf[n] = '\0';
    return CDMPP_OK;
}

cdmpp_status cd_ubj_says(cd_ubj at, const char *want, cdmpp_err *err) {
    char have[64];
    CD_TRY(cd_ubj_text(at, have, sizeof have, err));
    return strcmp(have, want) ? CD_FAIL(err, EMODEL, "expected \"%s\", found \"%s\"", want, have)
                              : CDMPP_OK;
}

cdmpp_status cd_ubj_integer(cd_ubj *at, int64_t min, int64_t max, int64_t *out, cdmpp_err *err) {
    if (!integer(at, out))
        return CD_FAIL(err, EMODEL, "expected a whole number, found another value");
    if (*out >= min && *out <= max) return CDMPP_OK;
    return CD_FAIL(err, EMODEL, "expected %" PRId64 " to %" PRId64 ", found %" PRId64, min, max,
                   *out);
}

/* Goes into the list at *at. type: of all its items, 0: they have one each. Does it say how many
 * there are? */
static bool into_list(cd_ubj *at, unsigned char *type, size_t *n) {
    const unsigned char *p;
    bool counted = false;
    *n = 0;
    (void)take(at, 1, &p);
    (void)array_head(at, type, n, &counted);
    return counted;
}

cdmpp_status cd_ubj_list(cd_ubj *at, size_t *n, cdmpp_err *err) {
    unsigned char type;
    return into_list(at, &type, n) && !type
               ? CDMPP_OK
               : CD_FAIL(err, EMODEL,
                         "expected a list of values with its length, found a list of another form");
}

static cdmpp_status typed(cd_ubj *at, char type, size_t *n, cdmpp_err *err) {
    unsigned char have;
    return into_list(at, &have, n) && have == (unsigned char)type
               ? CDMPP_OK
               : CD_FAIL(err, EMODEL,
                         "expected a list of numbers of type %c, found a list of another form",
                         type);
}

cdmpp_status cd_ubj_count(cd_ubj at, char type, size_t *n, cdmpp_err *err) {
    return typed(&at, type, n, err);
}

cdmpp_status cd_ubj_numbers(cd_ubj at, char type, size_t n, const unsigned char **data,
                            cdmpp_err *err) {
    size_t have;
    CD_TRY(typed(&at, type, &have, err));
    if (have != n) return CD_FAIL(err, EMODEL, "expected %zu numbers, found %zu", n, have);
    *data = at.p; /* a list that is counted is there as a whole */
    return CDMPP_OK;
}
