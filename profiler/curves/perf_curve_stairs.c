/* perf_curve_stairs -- fits T = a + c ceil(x / w). The loss jumps with w, so every width is tried,
 * in steps so fine that no edge moves by more than half a point. */
#include <math.h>
#include <string.h>

#include "profiler/curves/curves_internal.h"

enum { LEAST_POINTS = 12, MAX_WIDTHS = 4000 };

static double steps_of(double x, double w) { return ceil(x / w * (1 - 1e-12)); }

/* Weighted a and c, neither below 0; the squares left. */
static double solve(const cd_perf_curve_points *p, const double *weight, double w, double *a,
                    double *c) {
    double s0 = 0, s1 = 0, s2 = 0, t0 = 0, t1 = 0, tt = 0;
    for (size_t i = 0; i < p->n; i++) {
        const double k = steps_of(p->x[i], w), v = weight[i];
        s0 += v, s1 += v * k, s2 += v * k * k;
        t0 += v * p->t[i], t1 += v * k * p->t[i], tt += v * p->t[i] * p->t[i];
    }
    const double det = s0 * s2 - s1 * s1;
    *c = det > 1e-12 * s0 * s2 ? (s0 * t1 - s1 * t0) / det : 0;
    *a = (t0 - *c * s1) / s0;
    if (*a < 0) *a = 0, *c = t1 / s2;
    if (*c < 0) *c = 0, *a = t0 / s0;
    return fmax(tt - 2 * (*a * t0 + *c * t1) + *a * *a * s0 + 2 * *a * *c * s1 + *c * *c * s2, 0);
}

/* Half a point at the far end is w^2 / x_max of the width. */
static double next_width(double w, double gap, double x_max) {
    return w + fmax(0.5 * gap * w / x_max, 1e-4 * w);
}

static double scan(const cd_perf_curve_points *p, const double *weight, double low, double high,
                   double fine, cd_perf_curve_candidate *out) {
    const double x_max = p->x[p->n - 1], gap = (x_max - p->x[0]) / (double)(p->n - 1) * fine;
    double best = HUGE_VAL, a, c;
    int tried = 0;
    for (double w = low; w <= high && tried < MAX_WIDTHS; w = next_width(w, gap, x_max), tried++) {
        const double left = solve(p, weight, w, &a, &c);
        if (!(left < best)) continue;
        best = left;
        out->param[0] = a, out->param[1] = c, out->param[2] = w;
    }
    return best;
}

/* How far w can go before the squares rise by that of one standard error: widths between that and
 * the next edge that moves cannot be distinguished. The best width is put in the middle. */
static void centre(const cd_perf_curve_points *p, const double *weight, double best,
                   cd_perf_curve_candidate *out) {
    const double x_max = p->x[p->n - 1], unit = out->param[2] * out->param[2] / x_max * 0.02;
    double side[2], a, c;
    for (int d = 0; d < 2; d++) {
        side[d] = out->param[2];
        for (int i = 1; i <= 400; i++) {
            const double w = out->param[2] + (d ? 1 : -1) * i * unit;
            if (w <= 0 || solve(p, weight, w, &a, &c) > best + p->s * p->s) break;
            side[d] = w;
        }
    }
    const double middle = 0.5 * (side[0] + side[1]);
    if (solve(p, weight, middle, &a, &c) <= best * 1.0001 + 1e-30) out->param[2] = middle;
    out->break_se[0] = (side[1] - side[0]) / sqrt(12) + unit;
}

/* Three rounds: all widths coarsely, then finely around the best, each time with Huber's weights of
 * the law before. */
bool cd_perf_curve_fit_stairs(const cd_perf_curve_points *p, cd_perf_curve_candidate *out) {
    double *weight = p->work;
    *out = (cd_perf_curve_candidate){
        .form = CD_PERF_CURVE_STAIRS, .n_param = 3, .n_break = 1, .loss = HUGE_VAL};
    if (p->n < LEAST_POINTS) return false;
    const double x_max = p->x[p->n - 1], gap = (x_max - p->x[0]) / (double)(p->n - 1);
    memcpy(weight, p->w, p->n * sizeof *weight);
    double low = 3 * gap, high = x_max / 1.5, best = HUGE_VAL, fine = 1;
    if (low > high) return false;
    for (int round = 0; round < 3; round++) {
        best = scan(p, weight, low, high, fine, out);
        low = out->param[2] * (1 - 1.5 * gap / x_max);
        high = out->param[2] * (1 + 1.5 * gap / x_max);
        fine = 0.1;
        for (size_t i = 0; i < p->n; i++) {
            const double f = cd_perf_curve_candidate_eval(out, p->x[i]),
                         r = fabs(log(p->t[i] / f)) / p->s;
            weight[i] = p->keep[i] == 0 ? 0 : (r > 1.345 ? 1.345 / r : 1) / (f * f);
        }
    }
    double a, c;
    best = solve(p, weight, out->param[2], &a, &c);
    centre(p, weight, best, out);
    (void)solve(p, weight, out->param[2], &out->param[0], &out->param[1]);
    out->loss = cd_perf_curve_candidate_loss(out, p);
    return out->param[1] > 0;
}
