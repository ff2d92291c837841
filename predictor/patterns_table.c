/* patterns_table -- the rising curve next to the points: pool adjacent violators on ln t, then a line between the blocks. */
#include <math.h>

#include "predictor/patterns_int.h"

typedef struct {
    double sum, x_sum, n;
} block;

uint32_t cd_pfit_table(const cd_ppoints *p, double *fit, double *kx, double *kt, double *beyond) {
    block *b = (block *)(void *)p->work; /* (n), 3 n doubles */
    uint32_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (p->keep[i] == 0) continue;
        b[n++] = (block){log(p->t[i]), p->x[i], 1};
        for (; n > 1 && b[n - 2].sum / b[n - 2].n >= b[n - 1].sum / b[n - 1].n; n--) {
            b[n - 2].sum += b[n - 1].sum;
            b[n - 2].x_sum += b[n - 1].x_sum;
            b[n - 2].n += b[n - 1].n;
        }
    }
    size_t i = 0;
    for (uint32_t k = 0; k < n; k++) {
        kx[k] = b[k].x_sum / b[k].n;
        kt[k] = exp(b[k].sum / b[k].n);
        for (double left = b[k].n; i < p->n && (left > 0 || p->keep[i] == 0); i++) {
            fit[i] = kt[k];
            left -= p->keep[i];
        }
    }
    /* Beyond the last: the slope over the last third of the sizes, not of the last two points, which noise would tilt. */
    uint32_t from = n - 1;
    while (from > 0 && kx[from] > kx[n - 1] - (p->x[p->n - 1] - p->x[0]) / 3) from--;
    *beyond = from < n - 1 ? (kt[n - 1] - kt[from]) / (kx[n - 1] - kx[from]) : 0;
    return n;
}

double cd_ptable_at(const double *kx, const double *kt, uint32_t n, double beyond, double x) {
    uint32_t low = 0, high = n - 1;
    if (x >= kx[n - 1]) return kt[n - 1] + beyond * (x - kx[n - 1]);
    if (x <= kx[0]) { /* by the first line, but in no less than the size's share of the first time */
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
