/* Seconds to what a network learns and back. A formula such as Box-Cox ends somewhere; beyond that
 * point it goes on as a straight line, so that any output of a network is a latency. */
#include "learner/inputs/transform.h"

#include <math.h>

#include "base/core/core.h"
#include "learner/inputs/normal.h"
#include "learner/inputs/transform_internal.h"

/* The standard normal distribution, and Student's. The C library has erfc but not its inverse. */

#define SQRT_2PI 2.50662827463100050242

double cd_normal_cdf(double z) { return 0.5 * erfc(-z * M_SQRT1_2); }
/* its derivative */
static double normal_density(double z) { return exp(-0.5 * z * z) / SQRT_2PI; }

/* Abramowitz and Stegun 26.2.23 (4.5e-4), then Halley's steps, each of which
 * triples the digits. Only for 0 < p <= 0.5. */
static double lower(double p) {
    const double t = sqrt(-2 * log(p));
    double z = (2.515517 + t * (0.802853 + t * 0.010328)) /
                   (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) -
               t;
    for (int k = 0; k < 3; k++) {
        const double u = (cd_normal_cdf(z) - p) / normal_density(z);
        z -= u / (1 + 0.5 * z * u);
    }
    return z;
}

double cd_normal_quantile(double p) {
    if (p <= 0) return -INFINITY;
    if (p >= 1) return INFINITY;
    return p <= 0.5 ? lower(p) : -lower(1 - p);
}

/* Closed forms for 1 and 2 degrees of freedom, above them Cornish and Fisher's terms (Abramowitz
 * and Stegun 26.7.5). */
double cd_normal_student(double p, double freedom) {
    if (freedom < 1.5) return tan(M_PI * (p - 0.5));
    if (freedom < 2.5) return (2 * p - 1) / sqrt(2 * p * (1 - p));
    const double z = cd_normal_quantile(p), z2 = z * z, f = 1 / freedom;
    return z * (1 + f * ((z2 + 1) / 4 + f * (((5 * z2 + 16) * z2 + 3) / 96 +
                                             f * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384)));
}

/* ---- f and its inverse, inside the ends ---- */
static bool is_linear(cd_transform_kind k) {
    return k == CD_TRANSFORM_NONE || k == CD_TRANSFORM_MIN_MAX || k == CD_TRANSFORM_STANDARD;
}

/* (e^(lambda x) - 1) / lambda */
static double power(double lambda, double x) {
    return lambda == 0 ? x : expm1(lambda * x) / lambda;
}
static double unpower(double lambda, double w) {
    return lambda == 0 ? w : log1p(fmax(lambda * w, -1)) / lambda;
}

/* Position of v in 0 .. n-2 so that a[i] <= v < a[i+1], for v inside. */
static size_t find(const double *a, size_t n, double v) {
    size_t lo = 0, hi = n - 1;
    while (hi - lo > 1) {
        const size_t mid = lo + (hi - lo) / 2;
        if (a[mid] <= v) lo = mid;
        else hi = mid;
    }
    return lo;
}

/* The line through (a[i], b[i]) and (a[i+1], b[i+1]). */
static double line(const double *a, const double *b, size_t n, double v, double *slope) {
    if (n < 2) {
        *slope = 0;
        return b[0];
    }
    const size_t i = find(a, n, v);
    *slope = (b[i + 1] - b[i]) / (a[i + 1] - a[i]);
    return b[i] + (v - a[i]) * *slope;
}

/* Ranks 0 and 1 have no finite normal quantile: they are moved inwards by EDGE (z = +-5.2). */
#define EDGE 1e-7
static double squeeze(double level) { return EDGE + (1 - 2 * EDGE) * level; }

static double level_to_z(const cd_transform *t, double level) {
    if (t->kind == CD_TRANSFORM_QUANTILE_UNIFORM) return level;
    return level <= 0.5 ? cd_normal_quantile(squeeze(level))
                        : -cd_normal_quantile(squeeze(1 - level));
}

static double z_to_level(const cd_transform *t, double z, double *slope) {
    *slope = 1;
    if (t->kind == CD_TRANSFORM_QUANTILE_UNIFORM) return z;
    const double low = (cd_normal_cdf(-fabs(z)) - EDGE) / (1 - 2 * EDGE);
    *slope = normal_density(z) / (1 - 2 * EDGE);
    return z <= 0 ? low : 1 - low;
}

/* f of the table for the kinds without knots, before mean and std. */
static double transform_power(cd_transform_kind kind, double lambda, double centre, double y_s) {
    if (is_linear(kind)) return y_s;
    if (kind == CD_TRANSFORM_YEO_JOHNSON) return power(lambda, log1p(y_s * 1e6));
    return power(lambda, log(y_s) - centre);
}

static double inner_forward(const cd_transform *t, double y_s) {
    double slope;
    if (t->n_knot) return level_to_z(t, line(t->knot, t->level, t->n_knot, log(y_s), &slope));
    return (transform_power(t->kind, t->lambda, t->centre, y_s) - t->mean) / t->std;
}

/* d(ln y)/dz at a latency, kinds without knots. */
static double slope_at(const cd_transform *t, double log_s) {
    if (is_linear(t->kind)) return t->std / exp(log_s);
    if (t->kind != CD_TRANSFORM_YEO_JOHNSON) return t->std * exp(-t->lambda * (log_s - t->centre));
    const double us = 1e6 * exp(log_s);
    return t->std * exp(-t->lambda * log1p(us)) * (us + 1) / us;
}

/* Near an end w has few digits left or none: what comes out stays inside the ends. */
static double inside(const cd_transform *t, double log_s) {
    if (t->low.on && !(log_s >= t->low.log_s)) return t->low.log_s;
    if (t->high.on && !(log_s <= t->high.log_s)) return t->high.log_s;
    return log_s;
}

/* ln y and d(ln y)/dz of a z between the ends. One branch for each row of the table in transform.h.
 * The slope is that of the formula, not a difference: a loss needs it exactly. */
static double inner_log_s(const cd_transform *t, double z, double *slope) {
    double a, b, log_s;
    if (t->n_knot) {
        const double level = z_to_level(t, z, &a);
        log_s = line(t->level, t->knot, t->n_knot, level, &b);
        *slope = a * b;
        return log_s;
    }
    const double w = t->mean + t->std * z;
    if (is_linear(t->kind)) log_s = log(fmax(w, 0));
    else if (t->kind == CD_TRANSFORM_YEO_JOHNSON)
        log_s = log(fmax(expm1(unpower(t->lambda, w)), 0) * 1e-6);
    else log_s = unpower(t->lambda, w) + t->centre;
    log_s = inside(t, log_s);
    *slope = slope_at(t, log_s);
    return log_s;
}

/* ---- the ends ---- */
static cd_transform_end end_at(const cd_transform *t, double log_s) {
    return (cd_transform_end){true, log_s, inner_forward(t, exp(log_s)), slope_at(t, log_s)};
}

/* d(ln y)/dz beyond the knots: the uniform kind's mean slope; a normal distribution
 * over the same range would have a standard deviation of a quarter of it. */
static void knot_ends(cd_transform *t) {
    const size_t n = t->n_knot;
    const double span = t->knot[n - 1] - t->knot[0], share = t->level[n - 1] - t->level[0];
    double slope = 1;
    if (n > 1) slope = t->kind == CD_TRANSFORM_QUANTILE_UNIFORM ? span / share : 0.25 * span;
    t->low = (cd_transform_end){true, t->knot[0], level_to_z(t, t->level[0]), slope};
    t->high = (cd_transform_end){true, t->knot[n - 1], level_to_z(t, t->level[n - 1]), slope};
}

/* Which ends are needed follows from the table in transform.h: where the formula would ask for a
 * latency of 0 or less, or for an infinite one. */
void cd_transform_set_ends(cd_transform *t) {
    t->low = t->high = (cd_transform_end){0};
    if (t->n_knot) {
        knot_ends(t);
        return;
    }
    const bool yj = t->kind == CD_TRANSFORM_YEO_JOHNSON, linear = is_linear(t->kind);
    if (linear || yj || t->lambda > 0) t->low = end_at(t, t->log_min - M_LN10);
    if (!linear && t->lambda < 0) t->high = end_at(t, t->log_max + M_LN10);
}

/* ---- both ways ---- */
double cd_transform_forward(const cd_transform *t, double y_s) {
    const double log_s = t->low.on || t->high.on ? log(y_s) : 0;
    if (t->low.on && log_s < t->low.log_s) return t->low.z + (log_s - t->low.log_s) / t->low.slope;
    if (t->high.on && log_s > t->high.log_s)
        return t->high.z + (log_s - t->high.log_s) / t->high.slope;
    return inner_forward(t, y_s);
}

double cd_transform_log_s(const cd_transform *t, double z, double *slope) {
    double own;
    if (!slope) slope = &own;
    if (isnan(z)) return *slope = z;
    const cd_transform_end *e = t->low.on && z <= t->low.z     ? &t->low
                                : t->high.on && z >= t->high.z ? &t->high
                                                               : NULL;
    if (!e) return inner_log_s(t, z, slope);
    *slope = e->slope;
    return e->log_s + (z - e->z) * e->slope;
}

double cd_transform_inverse(const cd_transform *t, double z) {
    double y;
    if (is_linear(t->kind) && z > t->low.z) y = fmax(t->mean + t->std * z, exp(t->low.log_s));
    else y = exp(cd_transform_log_s(t, z, NULL));
    if (y < CD_TRANSFORM_MIN_S) y = CD_TRANSFORM_MIN_S;
    if (y > CD_TRANSFORM_MAX_S) y = CD_TRANSFORM_MAX_S;
    return y;
}

/* The parameters of a transform from the labels of the train part. */

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
    const double first = transform_power(s->kind, lambda, s->centre, s->y[0]);
    for (size_t i = 0; i < s->n; i++) {
        const double d = transform_power(s->kind, lambda, s->centre, s->y[i]) - first;
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
        const double d = transform_power(s->kind, t->lambda, s->centre, s->y[i]) - t->mean;
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
