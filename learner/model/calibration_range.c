/* How far a program lies outside the programs of training.
 *
 *   outside(x) = sum over columns of min(1, distance from [least, largest] / (largest - least))
 *
 * A column that was the same in all of training (an operator that never occurred, an
 * annotation that was never used) gives 1 as soon as it differs. */
#include <math.h>

#include "learner/model/model_internal.h"

static const double narrow = 1e-6;

void cd_calibration_range_add(float *range, const float *x, size_t n, size_t width, bool first) {
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < width; c++) {
            const float v = x[i * width + c];
            if (first && !i) range[c] = range[width + c] = v;
            if (v < range[c]) range[c] = v;
            if (v > range[width + c]) range[width + c] = v;
        }
}

/* Distances in units of the range of the column, each counted up to 1. */
double cd_calibration_outside_of(const float *range, const float *x, size_t width, size_t *n) {
    double sum = 0;
    *n = 0;
    for (size_t c = 0; c < width; c++) {
        const double lo = (double)range[c], hi = (double)range[width + c], v = (double)x[c];
        if (v >= lo && v <= hi) continue;
        const double far = fmax(lo - v, v - hi) / fmax(hi - lo, narrow);
        sum += fmin(far, 1);
        ++*n;
    }
    return sum;
}

const float *cd_calibration_range(const cd_calibration *c) { return c->range; }
