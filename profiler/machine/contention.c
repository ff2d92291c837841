/* The model of contention, fitted to measured pairs. Two causes are kept apart: programs on different processors share the memory's bandwidth, which
 * slows each by its share of it, and programs on the same processor take turns. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "profiler/machine/contention.h"

/* ---- reading the table of cdmpp-profile corun ---- */

enum { FIELDS = 64 };
enum { FIRST_SOLO, SECOND_SOLO, FIRST_SLOW, SECOND_SLOW, FIRST_BYTES, SECOND_BYTES, SHARING, ERROR_NO, N_COLUMN };
static const char *const column[] = {[FIRST_SOLO] = "first_solo_s", [SECOND_SOLO] = "second_solo_s", [FIRST_SLOW] = "first_slowdown",
                                     [SECOND_SLOW] = "second_slowdown", [FIRST_BYTES] = "first_bytes", [SECOND_BYTES] = "second_bytes",
                                     [SHARING] = "sharing", [ERROR_NO] = "error_no"};

static cdmpp_status find_columns(const cd_str *field, size_t n, size_t *at, cdmpp_err *err) {
    for (int c = FIRST_SOLO; c < N_COLUMN; c++) {
        at[c] = 0;
        while (at[c] < n && !cd_str_is(field[at[c]], column[c])) at[c]++;
        if (at[c] == n) return CD_FAIL(err, EPARSE, "no column %s", column[c]);
    }
    return CDMPP_OK;
}

static cdmpp_status number(cd_str s, const char *what, double *out, cdmpp_err *err) {
    char text[64], *end;
    const size_t n = s.n < sizeof text - 1 ? s.n : sizeof text - 1;
    memcpy(text, s.p, n);
    text[n] = 0;
    *out = strtod(text, &end);
    if (!n || end != text + n || !isfinite(*out)) return CD_FAIL(err, EPARSE, "%s: \"%s\": expected a number", what, text);
    return CDMPP_OK;
}

/* *good: the row has figures. */
static cdmpp_status one_row(const cd_str *field, size_t n, const size_t *at, cd_corun_row *r, bool *good, cdmpp_err *err) {
    double error;
    for (int c = FIRST_SOLO; c < N_COLUMN; c++)
        if (at[c] >= n) return CD_FAIL(err, EPARSE, "%zu fields: no %s", n, column[c]);
    CD_TRY(number(field[at[ERROR_NO]], column[ERROR_NO], &error, err));
    *good = error == 0;
    if (!*good) return CDMPP_OK;
    for (int k = 0; k < 2; k++) {
        CD_TRY(number(field[at[FIRST_SOLO + k]], column[FIRST_SOLO + k], &r->solo_s[k], err));
        CD_TRY(number(field[at[FIRST_SLOW + k]], column[FIRST_SLOW + k], &r->slowdown[k], err));
        CD_TRY(number(field[at[FIRST_BYTES + k]], column[FIRST_BYTES + k], &r->bytes[k], err));
    }
    r->shared = cd_str_is(field[at[SHARING]], "shared");
    if (!r->shared && !cd_str_is(field[at[SHARING]], "disjoint")) return CD_FAIL(err, EPARSE, "sharing: expected disjoint or shared");
    return CDMPP_OK;
}

/* A row with an error number stays in the array's next place and is overwritten. */
static cdmpp_status read_rows(cd_file_lines *l, cd_arena *a, cd_corun_row **row, size_t *n, cdmpp_err *err) {
    cd_str field[FIELDS];
    size_t at[N_COLUMN], m, cap = 0;
    char *line;
    size_t len;
    for (bool head = true;; ) {
        CD_TRY(cd_file_lines_next(l, &line, &len, err));
        if (!line) return *n ? CDMPP_OK : CD_FAIL(err, ENODATA, "no pair without an error");
        if (!len) continue;
        CD_TRY(cd_csv_fields_split(line, len, field, FIELDS, &m, err));
        if (head) {
            head = false;
            CD_TRY(find_columns(field, m, at, err));
            continue;
        }
        if (CD_GROW_IN(a, *row, *n, cap)) return CD_FAIL(err, ENOMEM, "%zu pairs", *n);
        bool good;
        CD_TRY(one_row(field, m, at, *row + *n, &good, err));
        *n += good;
    }
}

cdmpp_status cd_contention_read(const char *path, cd_arena *a, cd_corun_row **row, size_t *n, cdmpp_err *err) {
    cd_file_lines *l = NULL;
    *row = NULL, *n = 0;
    CD_TRY(cd_file_lines_open(path, 1 << 20, &l, err));
    const cdmpp_status st = cd_err_at(err, read_rows(l, a, row, n, err), path, cd_file_lines_number(l));
    cd_file_lines_close(l);
    return st;
}

/* ---- fit ---- */

double cd_contention_share(double bytes, double solo_s, double peak) { return peak > 0 && solo_s > 0 && bytes > 0 ? fmin(1, bytes / (solo_s * peak)) : 0; }

double cd_contention_slow(const cd_contention *c, double s, double sum, uint32_t others, bool shared) {
    double f = c->peak_bytes_per_s > 0 && sum > 1 ? 1 - s + s * sum : 1;
    if (others) f *= shared ? 1 + (fmax(1, c->turn) - 1) * others : fmax(1, c->beside); /* zeroed: nobody disturbs */
    return f;
}

static double slow_of(const cd_contention *c, const cd_corun_row *r, int k) {
    const double a = cd_contention_share(r->bytes[0], r->solo_s[0], c->peak_bytes_per_s), b = cd_contention_share(r->bytes[1], r->solo_s[1], c->peak_bytes_per_s);
    return cd_contention_slow(c, k ? b : a, a + b, 1, r->shared);
}

/* With this peak the best factors; returns the sum of squares. */
static double fit_factors(const cd_corun_row *row, size_t n, cd_contention *c) {
    double sum[2] = {0}, squares = 0;
    size_t m[2] = {0};
    c->beside = c->turn = 1;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) sum[row[i].shared] += log(row[i].slowdown[k] / slow_of(c, &row[i], k)), m[row[i].shared]++;
    if (m[0]) c->beside = fmax(1, exp(sum[0] / (double)m[0]));
    if (m[1]) c->turn = fmax(1, exp(sum[1] / (double)m[1]));
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) squares += pow(log(row[i].slowdown[k] / slow_of(c, &row[i], k)), 2);
    return squares;
}

/* The factors have a closed form once the peak is known, so only the peak is searched, on a grid of 5 %. */
cdmpp_status cd_contention_fit(const cd_corun_row *row, size_t n, cd_contention *out, cdmpp_err *err) {
    if (!n) return CD_FAIL(err, ENODATA, "no pairs to fit");
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++)
            if (!(row[i].solo_s[k] > 0) || !(row[i].slowdown[k] > 0) || !isfinite(row[i].slowdown[k]) || !(row[i].bytes[k] >= 0))
                return CD_FAIL(err, ERANGE, "pair %zu: %g s alone, slowdown %g, %g bytes", i, row[i].solo_s[k], row[i].slowdown[k], row[i].bytes[k]);
    cd_contention c = {.n_pair = (uint32_t)n};
    double least = fit_factors(row, n, &c);
    *out = c;
    for (double peak = 1e8; peak < 1e13; peak *= 1.05) {
        c.peak_bytes_per_s = peak;
        const double squares = fit_factors(row, n, &c);
        if (squares < least * (1 - 1e-9)) least = squares, *out = c;
    }
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) out->error += fabs(slow_of(out, &row[i], k) / row[i].slowdown[k] - 1) / (2 * (double)n);
    return CDMPP_OK;
}
