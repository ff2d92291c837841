/* perf_curve_table -- the rising curve next to the points (isotonic regression): pool adjacent
 * violators on ln t, then lines between the blocks. */
#include <math.h>

#include "profiler/curves/curves_internal.h"

typedef struct {
    double sum, first, last, n; /* of ln t; sizes of its first and last point; points */
} block;

/* A block of this many points is a level of its own, with both its ends: what follows it is a jump.
 * Shorter ones are a rise that noise broke up, and the line goes through their middles. */
enum { LEVEL = 6 };

static uint32_t knots_of(const block *b, double *kx, double *kt) {
    const double t = exp(b->sum / b->n);
    kt[0] = kt[1] = t;
    kx[0] = b->n < LEVEL ? 0.5 * (b->first + b->last) : b->first;
    kx[1] = b->last;
    return b->n < LEVEL ? 1 : 2;
}

uint32_t cd_perf_curve_fit_table(const cd_perf_curve_points *p, double *fit, double *kx, double *kt,
                                 double *beyond) {
    block *b = (block *)(void *)p->work; /* (n), 3 n doubles */
    uint32_t n = 0, knots = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (p->keep[i] == 0) continue;
        b[n++] = (block){log(p->t[i]), p->x[i], p->x[i], 1};
        for (; n > 1 && b[n - 2].sum / b[n - 2].n >= b[n - 1].sum / b[n - 1].n; n--) {
            b[n - 2].sum += b[n - 1].sum;
            b[n - 2].last = b[n - 1].last;
            b[n - 2].n += b[n - 1].n;
        }
    }
    size_t i = 0;
    for (uint32_t k = 0; k < n; k++) {
        knots += knots_of(&b[k], kx + knots, kt + knots);
        for (double left = b[k].n; i < p->n && (left > 0 || p->keep[i] == 0); i++) {
            fit[i] = kt[knots - 1];
            left -= p->keep[i];
        }
    }
    /* Beyond the last: the slope over the last third of the sizes, not of the last two points,
     * which noise would tilt. */
    uint32_t from = knots - 1;
    while (from > 0 && kx[from] > kx[knots - 1] - (p->x[p->n - 1] - p->x[0]) / 3) from--;
    *beyond = from < knots - 1 ? (kt[knots - 1] - kt[from]) / (kx[knots - 1] - kx[from]) : 0;
    return knots;
}

double cd_perf_curve_table_eval(const double *kx, const double *kt, uint32_t n, double beyond,
                                double x) {
    uint32_t low = 0, high = n - 1;
    if (x >= kx[n - 1]) return kt[n - 1] + beyond * (x - kx[n - 1]);
    /* by the first line, but in no less than the size's share of the first time */
    if (x <= kx[0]) {
        const double line = n > 1 ? kt[0] - (kt[1] - kt[0]) / (kx[1] - kx[0]) * (kx[0] - x) : kt[0];
        return fmax(line, kt[0] * x / kx[0]);
    }
    while (high - low > 1) {
        const uint32_t m = low + (high - low) / 2;
        if (kx[m] <= x) low = m;
        else high = m;
    }
    return kt[low] + (kt[high] - kt[low]) * (x - kx[low]) / (kx[high] - kx[low]);
}
