/* Points to knots: scales around a place, what the rows of a device have in common there, and the
 * width of an interval. */
#include <math.h>
#include <stdlib.h>

#include "learner/inputs/inputs.h"
#include "learner/operators/library_op_interval_internal.h"

enum { ROWS_A_KNOT = 50 };
#define LEAST_SCALE 1e-4 /* of tables whose times are a law: a width of 0 would be a lie */

const double cd_library_op_level[CD_LIBRARY_OP_LEVELS] = {0.5, 0.8, 0.9, 0.95, 0.99};

static int by_at(const void *a, const void *b) {
    const cd_library_op_point *x = a, *y = b;
    if (x->at < y->at || x->at > y->at) return x->at < y->at ? -1 : 1;
    return (x->r > y->r) - (x->r < y->r);
}

static int by_group(const void *a, const void *b) {
    const cd_library_op_point *x = a, *y = b;
    return x->group != y->group ? (x->group < y->group ? -1 : 1) : by_at(a, b);
}

static int by_r(const void *a, const void *b) {
    const cd_library_op_point *x = a, *y = b;
    return (x->r > y->r) - (x->r < y->r);
}

/* Half of what devices differ by depends on how far they are: docs/internals/learner-choices.md. */
double cd_library_op_grow(double distance, double far) {
    return far > 0 && distance >= 0 ? (1 + distance / far) / 2 : 1;
}

/* Rows of one device and class, sorted together: their mean, and the variance of what is left,
 * which takes the mean's place in p[].r. Of one row alone nobody knows what is its device's: it
 * stays. */
static void take_mean(cd_library_op_point *p, size_t n, double *mean, double *variance) {
    *mean = *variance = 0;
    for (size_t i = 0; i < n; i++) *mean += p[i].r / (double)n;
    if (n < 2) return;
    for (size_t i = 0; i < n; i++)
        *variance += (p[i].r - *mean) * (p[i].r - *mean) / (double)(n - 1);
    for (size_t i = 0; i < n; i++) p[i].r = (p[i].r - *mean) * sqrt((double)n / (double)(n - 1));
}

/* Means and rests of a slice as mean squares. The mean of few rows has a part of their own noise:
 * that does not count for the device. */
static void split(cd_library_op_point *p, size_t n, double far, double *between, double *rest) {
    double weight = 0;
    *between = *rest = 0;
    qsort(p, n, sizeof *p, by_group);
    for (size_t i = 0, end; i < n; i = end) {
        double mean, variance, w = 0;
        for (end = i; end < n && p[end].group == p[i].group; end++) w += p[end].weight;
        take_mean(p + i, end - i, &mean, &variance);
        *between += w * fmax(0, mean * mean - variance / (double)(end - i)) /
                    cd_library_op_grow(p[i].distance, far);
        *rest += w * variance;
        weight += w;
    }
    *between /= weight;
    *rest /= weight;
}

static void add_knot(cd_library_op_point *p, size_t n, bool common, cd_library_op_spread *s) {
    double weight = 0, square = 0, at = 0, between = 0;
    for (size_t i = 0; i < n; i++) {
        weight += p[i].weight;
        at += p[i].weight * p[i].at;
        square += p[i].weight * p[i].r * p[i].r;
    }
    at /= weight;
    square /= weight;
    if (common) split(p, n, s->far, &between, &square);
    if (s->n_knot && !(at > s->at[s->n_knot - 1])) return; /* one time for all */
    s->at[s->n_knot] = at;
    s->between[s->n_knot] = common ? fmax(sqrt(between), LEAST_SCALE) : 0;
    s->scale[s->n_knot++] = fmax(sqrt(square), LEAST_SCALE);
}

/* Knots hold the same number of points each. */
void cd_library_op_knots_fit(cd_library_op_point *p, size_t n, bool common,
                             cd_library_op_spread *s) {
    const size_t most = n / ROWS_A_KNOT;
    const size_t want = most < 1 ? 1 : most > CD_LIBRARY_OP_KNOTS ? CD_LIBRARY_OP_KNOTS : most;
    qsort(p, n, sizeof *p, by_at);
    for (size_t k = 0; k < want; k++)
        add_knot(p + k * n / want, (k + 1) * n / want - k * n / want, common, s);
}

void cd_library_op_knots_rise(cd_library_op_spread *s) {
    for (size_t k = 1; k < s->n_knot; k++) {
        s->scale[k] = fmax(s->scale[k], s->scale[k - 1]);
        s->between[k] = fmax(s->between[k], s->between[k - 1]);
    }
}

/* From the first knot to the last: a line through the middle knots would depend on which of them
 * are there. */
static double slope_of(const cd_library_op_spread *s, const double *v) {
    const size_t last = s->n_knot - 1;
    return last ? (v[last] - v[0]) / (s->at[last] - s->at[0]) : 0;
}

/* v: the entry's scale or between. */
static double value_at(const cd_library_op_spread *s, const double *v, double at) {
    size_t k = 0;
    while (k < s->n_knot && at > s->at[k]) k++;
    if (!k) return v[0];
    if (k == s->n_knot)
        return v[k - 1] +
               (s->held == CD_LIBRARY_OP_HELD_LARGE ? slope_of(s, v) * (at - s->at[k - 1]) : 0);
    const double t = (at - s->at[k - 1]) / (s->at[k] - s->at[k - 1]);
    return v[k - 1] * pow(v[k] / v[k - 1], t);
}

/* One point more at the far end makes up for the points being few. */
void cd_library_op_knots_times(cd_library_op_point *p, size_t n, cd_library_op_spread *s) {
    double total = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        p[i].r = fabs(p[i].r) / value_at(s, s->scale, p[i].at);
        total += p[i].weight;
    }
    qsort(p, n, sizeof *p, by_r);
    total *= 1 + 1 / (double)n;
    for (size_t i = 0, k = 0; k < CD_LIBRARY_OP_LEVELS && i < n; i++) {
        sum += p[i].weight;
        while (k < CD_LIBRARY_OP_LEVELS && (sum >= cd_library_op_level[k] * total || i + 1 == n))
            s->times[k++] = fmax(p[i].r, 1e-3);
    }
}

/* ---- the width ---- */
/* Between levels the quantile goes straight over that of the normal distribution, below the first
 * from 0, above the last as before it. */
static double times_at(const cd_library_op_spread *s, double level) {
    const double z = cd_normal_quantile((1 + level) / 2);
    double z0 = 0, t0 = 0, times = 0;
    for (size_t k = 0; k < CD_LIBRARY_OP_LEVELS; k++) {
        const double z1 = cd_normal_quantile((1 + cd_library_op_level[k]) / 2);
        times = t0 + (s->times[k] - t0) * (z - z0) / (z1 - z0);
        if (z <= z1) break;
        z0 = z1;
        t0 = s->times[k];
        if (k + 1 == CD_LIBRARY_OP_LEVELS) times = s->times[k] * z / z1;
    }
    return times;
}

/* Standard deviations there: of what the rows of a device have in common, and of what is left. */
static void parts_at(const cd_library_op_spread *s, double predicted_s,
                     const cd_library_op_apart *a, double *between, double *rest) {
    const double at = s->held == CD_LIBRARY_OP_HELD_LARGE ? a->reach : log(predicted_s);
    const bool other = a->other && s->other_freedom > 0;
    *rest = value_at(s, s->scale, at) * (other ? s->other[1] : 1);
    *between = s->freedom > 0
                   ? value_at(s, s->between, at) * sqrt(cd_library_op_grow(a->distance, s->far)) *
                         (other ? s->other[0] : 1)
                   : 0;
}

double cd_library_op_spread_half(const cd_library_op_spread *s, double predicted_s,
                                 const cd_library_op_apart *a, double level) {
    double between, rest;
    parts_at(s, predicted_s, a, &between, &rest);
    rest *= times_at(s, level);
    if (!(s->freedom > 0)) return rest;
    const double freedom =
        a->other && s->other_freedom > 0 ? fmin(s->other_freedom, s->freedom) : s->freedom;
    return hypot(rest, between * cd_normal_student((1 + level) / 2, freedom));
}

/* Of the interval of 0.9, in which few devices make the common part wider. */
double cd_library_op_spread_shared(const cd_library_op_spread *s, double predicted_s,
                                   const cd_library_op_apart *a) {
    double between, rest;
    if (!(s->freedom > 0)) return s->shared;
    parts_at(s, predicted_s, a, &between, &rest);
    const double own = rest * times_at(s, 0.9) / cd_library_op_spread_half(s, predicted_s, a, 0.9);
    return 1 - own * own;
}
