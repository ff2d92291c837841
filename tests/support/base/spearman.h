/* spearman.h -- rank correlation of two lists, slow and plain; equal values have the mean of their
 * places. */
#ifndef SPEARMAN_H
#define SPEARMAN_H
#include <math.h>
#include <stddef.h>

static inline double spearman_place(const double *v, size_t n, size_t i) {
    double below = 0, same = 0;
    for (size_t k = 0; k < n; k++) {
        below += v[k] < v[i];
        same += v[k] == v[i];
    }
    return below + 0.5 * (same - 1);
}

static inline double spearman(const double *x, const double *y, size_t n) {
    const double mean = 0.5 * (double)(n - 1);
    double xy = 0, xx = 0, yy = 0;
    for (size_t i = 0; i < n; i++) {
        const double a = spearman_place(x, n, i) - mean, b = spearman_place(y, n, i) - mean;
        xy += a * b;
        xx += a * a;
        yy += b * b;
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}
#endif
