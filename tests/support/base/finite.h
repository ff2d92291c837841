/* finite.h -- gradients of a slow reference in double precision. */
#ifndef FINITE_H
#define FINITE_H
#include <stddef.h>
#include <stdint.h>

#include "base/core/core.h"

/* A scalar of n numbers. */
typedef double finite_fn(void *ctx, const double *x);

/* d f / d x[i]; x is left as it was. Error about 1e-9 of |f|. */
static inline double finite_slope(finite_fn *f, void *ctx, double *x, size_t i) {
    const double keep = x[i], h = 1e-4;
    double d[2];
    for (int k = 0; k < 2; k++) {
        const double s = h / (1 + k);
        x[i] = keep + s;
        const double up = f(ctx, x);
        x[i] = keep - s;
        d[k] = (up - f(ctx, x)) / (2 * s);
    }
    x[i] = keep;
    return (4 * d[1] - d[0]) / 3;
}

/* -1 .. 1 in both precisions, equal values. */
static inline void finite_values(float *f, double *d, size_t n, uint64_t seed) {
    for (size_t i = 0; i < n; i++) {
        f[i] = (float)(2 * cd_rng_unit(seed, i) - 1);
        if (d) d[i] = (double)f[i];
    }
}

static inline double finite_dot(const double *a, const float *b, size_t n) {
    double s = 0;
    for (size_t i = 0; i < n; i++) s += a[i] * (double)b[i];
    return s;
}
#endif
