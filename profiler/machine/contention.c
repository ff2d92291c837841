/* The model of contention, fitted to measured pairs. Two causes are kept apart: programs on
 * different processors share the memory's bandwidth, which slows each by its share of it, and
 * programs on the same processor take turns. */
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "profiler/machine/contention.h"

/* ---- reading the table of cdmpp-profile corun ---- */

enum {
    FIRST_SOLO,
    SECOND_SOLO,
    FIRST_SLOW,
    SECOND_SLOW,
    FIRST_BYTES,
    SECOND_BYTES,
    SHARING,
    ERROR_NO,
    N_COLUMN
};
static const char *const column[] = {
    [FIRST_SOLO] = "first_solo_s",   [SECOND_SOLO] = "second_solo_s",
    [FIRST_SLOW] = "first_slowdown", [SECOND_SLOW] = "second_slowdown",
    [FIRST_BYTES] = "first_bytes",   [SECOND_BYTES] = "second_bytes",
    [SHARING] = "sharing",           [ERROR_NO] = "error_no"};

/* *good: the row has figures. */
static cdmpp_status one_row(const cd_csv_table *t, size_t i, const size_t *at, cd_corun_row *r,
                            bool *good, cdmpp_err *err) {
    double *const to[] = {[FIRST_SOLO] = &r->solo_s[0],   [SECOND_SOLO] = &r->solo_s[1],
                          [FIRST_SLOW] = &r->slowdown[0], [SECOND_SLOW] = &r->slowdown[1],
                          [FIRST_BYTES] = &r->bytes[0],   [SECOND_BYTES] = &r->bytes[1]};
    const char *sharing = t->cell[i][at[SHARING]];
    double error;
    CD_TRY(cd_csv_table_number(t, i, at[ERROR_NO], &error, err));
    *good = error == 0;
    if (!*good) return CDMPP_OK;
    for (int c = FIRST_SOLO; c < SHARING; c++) CD_TRY(cd_csv_table_number(t, i, at[c], to[c], err));
    r->shared = !strcmp(sharing, "shared");
    if (r->shared || !strcmp(sharing, "disjoint")) return CDMPP_OK;
    return cd_err_at(err, CD_FAIL(err, EPARSE, "sharing: expected disjoint or shared"), t->path,
                     t->line[i]);
}

/* A row with an error number stays in the array's next place and is overwritten. */
static cdmpp_status of_table(const cd_csv_table *t, cd_arena *a, cd_corun_row **row, size_t *n,
                             cdmpp_err *err) {
    size_t at[N_COLUMN];
    for (int c = FIRST_SOLO; c < N_COLUMN; c++)
        CD_TRY(cd_csv_table_need(t, column[c], &at[c], err));
    *row = CD_NEWN(a, cd_corun_row, t->n_row);
    if (!*row) return CD_FAIL(err, ENOMEM, "%zu pairs", t->n_row);
    for (size_t i = 0; i < t->n_row; i++) {
        bool good;
        CD_TRY(one_row(t, i, at, *row + *n, &good, err));
        *n += good;
    }
    return *n ? CDMPP_OK
              : cd_err_at(err, CD_FAIL(err, ENODATA, "no pair without an error"), t->path, 0);
}

cdmpp_status cd_contention_read(const char *path, cd_arena *a, cd_corun_row **row, size_t *n,
                                cdmpp_err *err) {
    cd_csv_table t;
    *row = NULL, *n = 0;
    cdmpp_status st = cd_csv_table_read(&t, path, err);
    if (!st) st = of_table(&t, a, row, n, err);
    cd_csv_table_free(&t);
    return st;
}

/* ---- fit ---- */

double cd_contention_share(double bytes, double solo_s, double peak) {
    return peak > 0 && solo_s > 0 && bytes > 0 ? fmin(1, bytes / (solo_s * peak)) : 0;
}

double cd_contention_slow(const cd_contention *c, double s, double sum, uint32_t others,
                          bool shared) {
    double f = c->peak_bytes_per_s > 0 && sum > 1 ? 1 - s + s * sum : 1;
    /* zeroed: nobody disturbs */
    if (others) f *= shared ? 1 + (fmax(1, c->turn) - 1) * others : fmax(1, c->beside);
    return f;
}

static double slow_of(const cd_contention *c, const cd_corun_row *r, int k) {
    const double a = cd_contention_share(r->bytes[0], r->solo_s[0], c->peak_bytes_per_s),
                 b = cd_contention_share(r->bytes[1], r->solo_s[1], c->peak_bytes_per_s);
    return cd_contention_slow(c, k ? b : a, a + b, 1, r->shared);
}

/* With this peak the best factors; returns the sum of squares. */
static double fit_factors(const cd_corun_row *row, size_t n, cd_contention *c) {
    double sum[2] = {0}, squares = 0;
    size_t m[2] = {0};
    c->beside = c->turn = 1;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++)
            sum[row[i].shared] += log(row[i].slowdown[k] / slow_of(c, &row[i], k)),
                m[row[i].shared]++;
    if (m[0]) c->beside = fmax(1, exp(sum[0] / (double)m[0]));
    if (m[1]) c->turn = fmax(1, exp(sum[1] / (double)m[1]));
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++)
            squares += pow(log(row[i].slowdown[k] / slow_of(c, &row[i], k)), 2);
    return squares;
}

/* The factors have a closed form once the peak is known, so only the peak is searched, on a grid of
 * 5 %. */
cdmpp_status cd_contention_fit(const cd_corun_row *row, size_t n, cd_contention *out,
                               cdmpp_err *err) {
    if (!n) return CD_FAIL(err, ENODATA, "no pairs to fit");
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++)
            if (!(row[i].solo_s[k] > 0) || !(row[i].slowdown[k] > 0) ||
                !isfinite(row[i].slowdown[k]) || !(row[i].bytes[k] >= 0))
                return CD_FAIL(err, ERANGE, "pair %zu: %g s alone, slowdown %g, %g bytes", i,
                               row[i].solo_s[k], row[i].slowdown[k], row[i].bytes[k]);
    cd_contention c = {.n_pair = (uint32_t)n};
    double least = fit_factors(row, n, &c);
    *out = c;
    for (double peak = 1e8; peak < 1e13; peak *= 1.05) {
        c.peak_bytes_per_s = peak;
        const double squares = fit_factors(row, n, &c);
        if (squares < least * (1 - 1e-9)) least = squares, *out = c;
    }
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++)
            out->error += fabs(slow_of(out, &row[i], k) / row[i].slowdown[k] - 1) / (2 * (double)n);
    return CDMPP_OK;
}
