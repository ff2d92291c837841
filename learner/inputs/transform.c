/* Seconds to what a network learns and back. A formula such as Box-Cox ends somewhere; beyond that
 * point it goes on as a straight line, so that any output of a network is a latency. */
#include "learner/inputs/transform.h"

#include <math.h>

#include "learner/inputs/normal.h"
#include "learner/inputs/transform_internal.h"

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
    *slope = cd_normal_density(z) / (1 - 2 * EDGE);
    return z <= 0 ? low : 1 - low;
}

double cd_transform_power(cd_transform_kind kind, double lambda, double centre, double y_s) {
    if (is_linear(kind)) return y_s;
    if (kind == CD_TRANSFORM_YEO_JOHNSON) return power(lambda, log1p(y_s * 1e6));
    return power(lambda, log(y_s) - centre);
}

static double inner_forward(const cd_transform *t, double y_s) {
    double slope;
    if (t->n_knot) return level_to_z(t, line(t->knot, t->level, t->n_knot, log(y_s), &slope));
    return (cd_transform_power(t->kind, t->lambda, t->centre, y_s) - t->mean) / t->std;
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
