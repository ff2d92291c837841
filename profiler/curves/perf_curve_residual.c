/* perf_curve_residual -- the residuals of a law of lines that neighbouring points share.
 *
 * GPU curves ripple by a few percent: no form explains the ripple, but the next point has it too.
 * The share of its neighbours' residual that a point has is found by leaving out each point in
 * turn; that share of the residuals is kept. */
#include <math.h>

#include "profiler/curves/curves_internal.h"

/* Residuals of kept points to r, their sizes to x; how many. */
static size_t residuals(const cd_perf_curve_points *p, const cd_perf_curve_candidate *c, double *x,
                        double *r) {
    const double cut = CD_PERF_CURVE_CAP * p->s;
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const double f = cd_perf_curve_candidate_eval(c, p->x[i]);
        if (p->keep[i] == 0 || !(f > 0)) continue;
        x[n] = p->x[i];
        r[n++] = fmin(fmax(log(p->t[i] / f), -cut), cut);
    }
    return n;
}

/* The residual that the neighbours predict at point i; at an end that of the one neighbour. */
static double from_neighbours(const double *x, const double *r, size_t n, size_t i) {
    if (i == 0) return r[1];
    if (i == n - 1) return r[n - 2];
    const double u = (x[i] - x[i - 1]) / (x[i + 1] - x[i - 1]);
    return (1 - u) * r[i - 1] + u * r[i + 1];
}

/* Regression of residuals on what their neighbours predict, 0 .. 1; *noise: standard deviation of
 * what is left. The root, since sizes that will be asked for lie nearer to their neighbours than
 * points do: half as far, and correlation falls by e to the distance. */
static double share_of(const double *x, const double *r, size_t n, double *noise) {
    double both = 0, said = 0, left = 0;
    for (size_t i = 0; i < n; i++) {
        const double g = from_neighbours(x, r, n, i);
        both += r[i] * g;
        said += g * g;
    }
    const double share = said > 0 ? sqrt(fmin(fmax(both / said, 0), 1)) : 0;
    for (size_t i = 0; i < n; i++) {
        const double e = r[i] - share * from_neighbours(x, r, n, i);
        left += e * e;
    }
    *noise = sqrt(left / (double)n);
    return share;
}

static double between(const double *x, const double *r, size_t n, double at) {
    size_t i = 0;
    if (at <= x[0]) return r[0];
    if (at >= x[n - 1]) return r[n - 1];
    while (x[i + 1] < at) i++;
    return r[i] + (r[i + 1] - r[i]) * (at - x[i]) / (x[i + 1] - x[i]);
}

/* Knots that fall are put to the mean of what came before: pool adjacent violators on times as they
 * are. */
static void level(double *kt, uint32_t n, double *mean, double *count) {
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++) {
        mean[m] = kt[i];
        count[m++] = 1;
        for (; m > 1 && mean[m - 2] > mean[m - 1]; m--) {
            mean[m - 2] = (mean[m - 2] * count[m - 2] + mean[m - 1] * count[m - 1]) /
                          (count[m - 2] + count[m - 1]);
            count[m - 2] += count[m - 1];
        }
    }
    for (uint32_t b = 0, i = 0; b < m; b++)
        for (double k = 0; k < count[b]; k++) kt[i++] = mean[b];
}

uint32_t cd_perf_curve_fit_residual(const cd_perf_curve_points *p, const cd_perf_curve_candidate *c,
                                    bool always, double *kx, double *kt, double *share,
                                    double *noise) {
    double *x = p->work, *r = p->work + p->n;
    const size_t n = residuals(p, c, x, r);
    const uint32_t first = c->n_param - c->n_break;
    uint32_t m = 0, b = 0;
    *share = n < 5 ? 0 : share_of(x, r, n, noise);
    /* below that white noise gets as far one time in twenty */
    if (*share < 2 / sqrt((double)(n + 25))) *share = 0;
    if (n < 5 || (*share == 0 && !always)) return 0;
    for (size_t i = 0; i < n; i++) {
        for (; b < c->n_break && c->param[first + b] < x[i]; b++)
            if (c->param[first + b] > x[0] && c->param[first + b] > (m ? kx[m - 1] : 0)) {
                kx[m] = c->param[first + b];
                kt[m] =
                    cd_perf_curve_candidate_eval(c, kx[m]) * exp(*share * between(x, r, n, kx[m]));
                m++;
            }
        if (m && x[i] <= kx[m - 1]) continue;
        kx[m] = x[i];
        kt[m] = cd_perf_curve_candidate_eval(c, x[i]) * exp(*share * r[i]);
        m++;
    }
    level(kt, m, p->work + 2 * p->n, p->work + 3 * p->n + 4);
    return m;
}
