/* The parameters of a transform from the labels of the train part. */
#include <math.h>

#include "base/core/core.h"
#include "learner/inputs/transform_internal.h"

typedef struct {
    const double *y;
    size_t n;
    cd_transform_kind kind;
    double centre;    /* mean of ln y */
    double sum_log1p; /* of microseconds, Yeo-Johnson's Jacobian */
} sample;

static void moments(const sample *s, double lambda, double *mean, double *var) {
    double sum = 0, sq = 0;
    /* one pass over differences from the first value: the numbers are within a few std of it */
    const double first = cd_transform_power(s->kind, lambda, s->centre, s->y[0]);
    for (size_t i = 0; i < s->n; i++) {
        const double d = cd_transform_power(s->kind, lambda, s->centre, s->y[i]) - first;
        sum += d;
        sq += d * d;
    }
    const double n = (double)s->n;
    *mean = first + sum / n;
    *var = fmax(0, sq / n - (sum / n) * (sum / n));
}

/* Minus log-likelihood over n/2. Over the geometric mean Box-Cox's Jacobian is 1. */
static double badness(const sample *s, double lambda) {
    double mean, var;
    moments(s, lambda, &mean, &var);
    const double jacobian = s->kind == CD_TRANSFORM_YEO_JOHNSON ? (lambda - 1) * s->sum_log1p : 0;
    return log(var) - 2 * jacobian / (double)s->n;
}

/* Golden section: the likelihood has one peak, and 45 steps are 1e-9 of -2..2. */
static double best_lambda(const sample *s) {
    const double g = 0.61803398874989485;
    double a = -2, b = 2, p = b - g * (b - a), q = a + g * (b - a);
    double fp = badness(s, p), fq = badness(s, q);
    if (!isfinite(fp) || !isfinite(fq)) return 0; /* all labels equal */
    for (int k = 0; k < 45; k++) {
        if (fp <= fq) {
            b = q;
            q = p;
            fq = fp;
            p = b - g * (b - a);
            fp = badness(s, p);
        } else {
            a = p;
            p = q;
            fp = fq;
            q = a + g * (b - a);
            fq = badness(s, q);
        }
    }
    return 0.5 * (a + b);
}

/* The value at rank 0..1 of n sorted numbers, linear between neighbours. */
static double at_rank(const double *sorted, size_t n, double rank) {
    const double at = rank * (double)(n - 1), i = floor(at);
    const size_t k = (size_t)i;
    return k + 1 < n ? sorted[k] + (at - i) * (sorted[k + 1] - sorted[k]) : sorted[n - 1];
}

/* Up to 500 equally spaced ranks. Equal values become one knot at the mean of their ranks, so that
 * knots rise strictly. */
static cdmpp_status fit_knots(const sample *s, cd_transform *t, cdmpp_err *err) {
    double *log_s = cd_mem_zalloc(s->n, sizeof *log_s);
    if (!log_s) return CD_FAIL(err, ENOMEM, "%zu labels", s->n);
    for (size_t i = 0; i < s->n; i++) log_s[i] = log(s->y[i]);
    cd_sort_doubles(log_s, s->n);
    const size_t m = s->n < CD_TRANSFORM_KNOTS ? s->n : CD_TRANSFORM_KNOTS;
    size_t same = 1; /* ranks that the last knot stands for */
    t->n_knot = 0;
    for (size_t k = 0; k < m; k++) {
        const double rank = m > 1 ? (double)k / (double)(m - 1) : 0.5,
                     v = at_rank(log_s, s->n, rank);
        if (t->n_knot && v <= t->knot[t->n_knot - 1]) {
            same++;
            t->level[t->n_knot - 1] += (rank - t->level[t->n_knot - 1]) / (double)same;
            continue;
        }
        t->knot[t->n_knot] = v;
        t->level[t->n_knot++] = rank;
        same = 1;
    }
    cd_mem_free(log_s);
    return CDMPP_OK;
}

static cdmpp_status check(const double *y, size_t n, cdmpp_err *err) {
    if (!n)
        return CD_FAIL(err, ESCHEMA,
                       "expected at least one label to fit a transform to, found none");
    for (size_t i = 0; i < n; i++)
        if (!(y[i] >= CD_TRANSFORM_MIN_S && y[i] <= CD_TRANSFORM_MAX_S))
            return CD_FAIL(err, ENUMERIC, "label %zu: expected %g to %g seconds, found %g", i,
                           CD_TRANSFORM_MIN_S, CD_TRANSFORM_MAX_S, y[i]);
    return CDMPP_OK;
}

static void summarise(sample *s, cd_transform *t) {
    double sum = 0;
    t->log_min = INFINITY;
    t->log_max = -INFINITY;
    for (size_t i = 0; i < s->n; i++) {
        const double log_s = log(s->y[i]);
        sum += log_s;
        s->sum_log1p += log1p(s->y[i] * 1e6);
        t->log_min = fmin(t->log_min, log_s);
        t->log_max = fmax(t->log_max, log_s);
    }
    s->centre = t->log_min == t->log_max ? t->log_min : sum / (double)s->n;
}

/* Mean and std of f; a spread that is only rounding counts as none. */
static void standardise(const sample *s, cd_transform *t) {
    double sum = 0;
    moments(s, t->lambda, &t->mean, &t->std);
    for (size_t i = 0; i < s->n; i++) {
        const double d = cd_transform_power(s->kind, t->lambda, s->centre, s->y[i]) - t->mean;
        sum += d * d;
    }
    t->std = sqrt(sum / (double)s->n);
    if (!(t->std > 1e-12 * fabs(t->mean))) t->std = 1;
}

/* Which parameters a kind has is in the table of transform.h; the others keep 0 and 1. */
cdmpp_status cd_transform_fit(cd_transform_kind kind, const double *y_s, size_t n,
                              cd_transform *out, cdmpp_err *err) {
    sample s = {y_s, n, kind, 0, 0};
    *out = (cd_transform){.kind = kind, .std = 1};
    CD_TRY(check(y_s, n, err));
    summarise(&s, out);
    if (kind == CD_TRANSFORM_QUANTILE_NORMAL || kind == CD_TRANSFORM_QUANTILE_UNIFORM) {
        CD_TRY(fit_knots(&s, out, err));
    } else if (kind == CD_TRANSFORM_MIN_MAX) {
        out->mean = exp(out->log_min);
        out->std = out->log_max > out->log_min ? exp(out->log_max) - out->mean : 1;
    } else if (kind != CD_TRANSFORM_NONE) {
        if (kind != CD_TRANSFORM_STANDARD) out->centre = s.centre;
        if (kind == CD_TRANSFORM_BOX_COX || kind == CD_TRANSFORM_YEO_JOHNSON)
            out->lambda = best_lambda(&s);
        if (fabs(out->lambda) < 1e-9) out->lambda = 0; /* below what the search resolves */
        standardise(&s, out);
    }
    cd_transform_set_ends(out);
    return CDMPP_OK;
}
