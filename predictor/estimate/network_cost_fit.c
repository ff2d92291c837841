/* Fits what networks cost over their operators.
 *
 *   measured = lift * tasks of the lifted + tasks of the others + call * calls + weights * (1 /
 *   refill) + rest
 *
 * In the place of a fitted refill there may be the one that the description of the device says: it
 * costs no choice. Each row is divided by its measured time, so that relative errors count.
 * Candidates are all choices of terms, of the bound from which networks are lifted and of the
 * weights that are refilled; the one that predicts each network best without it is taken. Few
 * networks carry few terms: the best of many candidates is the luckiest, too. */
#include <lapacke.h>
#include <math.h>
#include <string.h>

#include "predictor/estimate/network_cost.h"

enum { TERMS = 3, LIFT = 1, CALL = 2, REFILL = 4, CHOICES = 8 };

typedef struct {
    const cd_network_cost_row *row;
    size_t n;
    unsigned terms; /* LIFT | CALL | REFILL */
    bool fetch;     /* with the refill of the description */
    double from;    /* networks that move more are lifted */
    size_t limit;   /* of refills */
} choice;

const double cd_network_cost_limit[CD_NETWORK_COST_LIMITS] = {2, 12, 48, 1e9};
/* Of the mean square of an error: what a term, a bound or another limit than the first must leave
 * of it to be taken. */
static const double worth = 0.8;
/* Networks for each of these, one excepted: with fewer, what was fitted on large networks was far
 * off for small ones, and the other way round. */
static const double each = 6;

/* Terms of a row and what they have to explain, over its measured time. */
static double equation(const choice *c, size_t i, double x[TERMS]) {
    const cd_network_cost_row *r = &c->row[i];
    const bool lifted = !(r->moved_caches <= c->from);
    const double terms[TERMS] = {lifted ? r->alone_s : 0, r->calls, r->refill_bytes[c->limit]};
    for (int k = 0; k < TERMS; k++) x[k] = c->terms >> k & 1 ? terms[k] / r->measured_s : 0;
    return (r->measured_s - r->rest_s - r->alone_s - (c->fetch ? r->fetch_s : 0)) / r->measured_s;
}

/* Normal equations of the chosen terms, scaled to a diagonal of 1, by Cholesky. False: they cannot
 * be told apart. */
static bool solve(double a[TERMS][TERMS], double y[TERMS], unsigned terms, double out[TERMS]) {
    double scale[TERMS];
    for (int k = 0; k < TERMS; k++) {
        if (!(terms >> k & 1)) a[k][k] = 1;
        if (!(a[k][k] > 0)) return false;
        scale[k] = 1 / sqrt(a[k][k]);
    }
    for (int k = 0; k < TERMS; k++) {
        for (int j = 0; j < TERMS; j++) a[k][j] *= scale[k] * scale[j];
        out[k] = y[k] * scale[k];
    }
    if (LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'U', TERMS, a[0], TERMS)) return false;
    for (int k = 0; k < TERMS; k++)
        if (!(a[k][k] * a[k][k] > 1e-9)) return false;
    if (LAPACKE_dpotrs(LAPACK_COL_MAJOR, 'U', TERMS, 1, a[0], TERMS, out, TERMS)) return false;
    for (int k = 0; k < TERMS; k++) out[k] = terms >> k & 1 ? out[k] * scale[k] : 0;
    return true;
}

/* Without row `but` (n: with all). False: no answer, or one that takes time away. A lift is what
 * comes on top of 1. */
static bool fit(const choice *c, size_t but, double out[TERMS]) {
    double a[TERMS][TERMS] = {{0}}, right[TERMS] = {0}, x[TERMS];
    for (size_t i = 0; i < c->n; i++) {
        if (i == but) continue;
        const double y = equation(c, i, x);
        for (int k = 0; k < TERMS; k++) {
            for (int j = 0; j < TERMS; j++) a[k][j] += x[k] * x[j];
            right[k] += x[k] * y;
        }
    }
    if (!solve(a, right, c->terms, out)) return false;
    return out[0] > -0.9 && out[1] >= 0 && out[2] >= 0;
}

static double error_of(const choice *c, size_t i, const double v[TERMS]) {
    double x[TERMS], e = equation(c, i, x);
    for (int k = 0; k < TERMS; k++) e -= x[k] * v[k];
    return e;
}

/* Mean square of relative errors, each row by the fit of the others; infinity: one of these has no
 * answer. */
static double left_out(const choice *c) {
    double v[TERMS], sum = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (!fit(c, i, v)) return (double)INFINITY;
        const double e = error_of(c, i, v);
        sum += e * e;
    }
    return sum / (double)c->n;
}

static int freedom(const choice *c) {
    return (c->terms & LIFT ? 1 + (c->from > 0) : 0) + (c->terms & CALL ? 1 : 0) +
           (c->terms & REFILL ? 1 + (c->limit > 0) : 0);
}

/* Whether `c`, of squared error e, is taken in the place of `best`, of error `least`: each by what
 * it costs to have had the choice. */
static void better(const choice *c, choice *best, double *least) {
    const double e = left_out(c);
    if (isfinite(*least) &&
        !(e * pow(worth, -freedom(c)) < *least * pow(worth, -freedom(best)) * (1 - 1e-9)))
        return;
    if (!isfinite(e)) return;
    *least = e;
    *best = *c;
}

/* All limits and bounds of these terms. */
static void try_terms(choice c, const double *bound, size_t n_bound, choice *best, double *least) {
    for (c.limit = 0; c.limit < (c.terms & REFILL ? CD_NETWORK_COST_LIMITS : 1); c.limit++)
        for (size_t k = 0; k < (c.terms & LIFT ? n_bound : 1); k++) {
            c.from = bound[k];
            if (freedom(&c) <= fmax(1, (double)c.n / each)) better(&c, best, least);
        }
}

/* All terms, and those beside a refill that the description says. */
static void try_all(const cd_network_cost_row *row, size_t n, const double *bound, size_t n_bound,
                    choice *best, double *least) {
    for (unsigned terms = 0; terms < CHOICES; terms++) {
        const choice c = {.row = row, .n = n, .terms = terms};
        const choice fetch = {.row = row, .n = n, .terms = terms, .fetch = true};
        try_terms(c, bound, n_bound, best, least);
        if (row->fetch_bytes_per_s > 0 && !(terms & REFILL))
            try_terms(fetch, bound, n_bound, best, least);
    }
}

static void put_refill(const choice *c, const double v[TERMS], cd_network_cost_fit *out) {
    out->refill_bytes_per_s = c->fetch ? c->row->fetch_bytes_per_s : v[2] > 0 ? 1 / v[2] : 0;
    out->refill_to = c->fetch ? c->row->fetch_to : cd_network_cost_limit[c->limit];
    out->refill_from = c->fetch ? CD_NETWORK_COST_KEEPS : 0;
}

static cdmpp_status bounds(const cd_network_cost_row *row, size_t n, double *bound, size_t *n_bound,
                           cdmpp_err *err) {
    double *at = cd_mem_zalloc(n, sizeof *at);
    if (!at) return CD_FAIL(err, ENOMEM, "%zu networks", n);
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(row[i].moved_caches)) at[m++] = row[i].moved_caches;
    cd_sort_doubles(at, m);
    *n_bound = 0;
    bound[(*n_bound)++] = 0;
    for (size_t i = 1; m == n && i < n; i++)
        if (at[i] > at[i - 1]) bound[(*n_bound)++] = sqrt(fmax(at[i - 1], 1e-6) * at[i]);
    cd_mem_free(at);
    return CDMPP_OK;
}

static cdmpp_status check(const cd_network_cost_row *row, size_t n, cdmpp_err *err) {
    if (n < CD_NETWORK_COST_FEWEST)
        return CD_FAIL(err, ERANGE, "expected %d measured networks or more, found %zu",
                       CD_NETWORK_COST_FEWEST, n);
    for (size_t i = 0; i < n; i++)
        if (!(row[i].measured_s > 0) || !isfinite(row[i].measured_s) || !(row[i].alone_s >= 0) ||
            !(row[i].rest_s >= 0))
            return CD_FAIL(err, ERANGE, "network %zu: measured %g s, tasks %g s, others %g s", i,
                           row[i].measured_s, row[i].alone_s, row[i].rest_s);
    return CDMPP_OK;
}

cdmpp_status cd_network_cost_fit_rows(const cd_network_cost_row *row, size_t n,
                                      cd_network_cost_fit *out, cdmpp_err *err) {
    double v[TERMS] = {0}, least = (double)INFINITY, *bound;
    size_t n_bound = 0;
    choice best = {.row = row, .n = n};
    CD_TRY(check(row, n, err));
    if (!(bound = cd_mem_zalloc(n + 1, sizeof *bound)))
        return CD_FAIL(err, ENOMEM, "%zu networks", n);
    const cdmpp_status st = bounds(row, n, bound, &n_bound, err);
    if (!st) try_all(row, n, bound, n_bound, &best, &least);
    cd_mem_free(bound);
    if (st) return st;
    double square = 0;
    for (size_t i = 0; i < n; i++)
        square += pow(log(row[i].measured_s / (row[i].alone_s + row[i].rest_s)), 2);
    if (!isfinite(least) || !fit(&best, n, v))
        return CD_FAIL(err, ERANGE, "nothing fits these %zu networks", n);
    *out = (cd_network_cost_fit){.lift = 1 + v[0],
                                 .lift_from = best.terms & LIFT ? best.from : 0,
                                 .call_s = v[1],
                                 .networks = (int64_t)n,
                                 .spread = sqrt(least),
                                 .adds = sqrt(square / (double)n)};
    put_refill(&best, v, out);
    return CDMPP_OK;
}
