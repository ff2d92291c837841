/* Reads the rows of a program from JSON text without building a tree of values: rows are most of
 * the bytes of a request. */
#include "predictor/score/rows_json.h"

#include "base/text/text.h"

static const char *blanks(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
    return p;
}

/* The place behind `c`, or an error. */
static cdmpp_status need(cd_rows_json *t, char c, const char *where, cdmpp_err *err) {
    t->at = blanks(t->at, t->end);
    if (t->at < t->end && *t->at == c) {
        t->at++;
        return CDMPP_OK;
    }
    if (t->at == t->end)
        return CD_FAIL(err, EPARSE, "expected '%c' %s, found end of text", c, where);
    return CD_FAIL(err, EPARSE, "expected '%c' %s, found byte 0x%02x", c, where,
                   (unsigned)(unsigned char)*t->at);
}

static bool is_next(cd_rows_json *t, char c) {
    t->at = blanks(t->at, t->end);
    return t->at < t->end && *t->at == c;
}

/* Numbers and the closing bracket; how many there are, even if more than there is room for. */
static cdmpp_status numbers(cd_rows_json *t, double *v, size_t room, size_t *n, cdmpp_err *err) {
    double x;
    for (*n = 0;; (*n)++) {
        if (is_next(t, ']')) break;
        if (*n) CD_TRY(need(t, ',', "between numbers", err));
        const char *p = cd_json_number(t->at, t->end, &x);
        if (!p) return CD_FAIL(err, EPARSE, "expected a number in column %zu", *n);
        if (*n < room) v[*n] = x;
        t->at = p;
    }
    t->at++;
    return CDMPP_OK;
}

static cdmpp_status row(cd_rows_json *t, double *v, size_t n_col, cdmpp_err *err) {
    size_t n = 0;
    CD_TRY(need(t, '[', "of a row", err));
    CD_TRY(numbers(t, v, n_col, &n, err));
    return n == n_col ? CDMPP_OK
                      : CD_FAIL(err, EMODEL, "expected rows of %zu numbers, found %zu", n_col, n);
}

cdmpp_status cd_rows_json_next(cd_rows_json *t, double *v, size_t n_col, bool *more,
                               cdmpp_err *err) {
    *more = false;
    if (!t->begun) CD_TRY(need(t, '[', "of the list of rows", err));
    t->begun = true;
    if (is_next(t, ']')) {
        t->at = blanks(t->at + 1, t->end);
        return t->at == t->end ? CDMPP_OK
                               : CD_FAIL(err, EPARSE, "expected the end behind the rows");
    }
    if (t->n) CD_TRY(need(t, ',', "between rows", err));
    CD_TRY(cd_err_index(err, row(t, v, n_col, err), t->n));
    t->n++;
    *more = true;
    return CDMPP_OK;
}
