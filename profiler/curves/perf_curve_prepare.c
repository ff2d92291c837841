/* Outliers and noise of a curve, before any form is tried: a form that is wrong would call good
 * points outliers. */
#include <math.h>

#include "profiler/curves/curves_internal.h"

static size_t next_kept(const cd_perf_curve_points *p, size_t i) {
    while (i < p->n && p->keep[i] == 0) i++;
    return i;
}

/* 1.4826 times the median distance of points from the line between their neighbours, as a share of
 * that line and corrected for the noise of the neighbours. */
static double local_noise(const cd_perf_curve_points *p) {
    double *e = p->work;
    size_t n = 0, a = next_kept(p, 0), b = next_kept(p, a + 1);
    for (size_t c = next_kept(p, b + 1); c < p->n; a = b, b = c, c = next_kept(p, c + 1)) {
        const double u = (p->x[b] - p->x[a]) / (p->x[c] - p->x[a]);
        const double line = (1 - u) * p->t[a] + u * p->t[c];
        e[n++] = fabs(p->t[b] - line) / line / sqrt(1 + u * u + (1 - u) * (1 - u));
    }
    return n < 3 ? 0 : 1.4826 * cd_sort_to_median(e, n);
}

/* Median of ln t over the points round i: of five, three in short curves and next to an end. */
static double smooth_at(const cd_perf_curve_points *p, size_t i) {
    const size_t room = i < p->n - 1 - i ? i : p->n - 1 - i, most = p->n >= 20 ? 2 : 1,
                 half = room < most ? room : most;
    double v[5];
    for (size_t k = 0; k <= 2 * half; k++) v[k] = log(p->t[i - half + k]);
    return cd_sort_to_median(v, 2 * half + 1);
}

/* The first point is far above those behind it, or the last one far below those before: nothing
 * that rises does that. */
static void check_ends(cd_perf_curve_points *p, double limit) {
    const size_t n = p->n;
    if (n < 5) return;
    double v[3] = {p->t[1], p->t[2], p->t[3]}, u[3] = {p->t[n - 2], p->t[n - 3], p->t[n - 4]};
    p->warmup = log(p->t[0] / cd_sort_to_median(v, 3)) > limit;
    if (p->warmup) p->keep[0] = 0;
    if (log(cd_sort_to_median(u, 3) / p->t[n - 1]) > limit) p->keep[n - 1] = 0;
}

/* A point is left out if it is far from the median of its neighbours; if too many are, they are the
 * curve and none is left out. */
void cd_perf_curve_prepare(cd_perf_curve_points *p, double tolerance) {
    size_t out = 0;
    for (size_t i = 0; i < p->n; i++) p->keep[i] = 1;
    p->local = local_noise(p);
    const double limit = CD_PERF_CURVE_CAP * sqrt(p->local * p->local + tolerance * tolerance);
    for (size_t i = 0; i < p->n; i++)
        if (p->n >= 5 && fabs(log(p->t[i]) - smooth_at(p, i)) > limit) p->keep[i] = 0;
    check_ends(p, limit);
    for (size_t i = 0; i < p->n; i++) out += p->keep[i] == 0;
    if (5 * out > p->n + 5) { /* so many are not outliers but the curve */
        for (size_t i = 0; i < p->n; i++) p->keep[i] = 1;
        p->warmup = false;
        out = 0;
    }
    if (out) p->local = local_noise(p);
    p->n_kept = p->n - out;
    p->s = sqrt(p->local * p->local + tolerance * tolerance);
    for (size_t i = 0; i < p->n; i++) p->w[i] = p->keep[i] * exp(-2 * smooth_at(p, i));
}
