/* The expected value of the fastest of several measured programs, given predictions for all of
 * them. There is no closed form, so the density is integrated over a grid around its mode. */
#include "base/core/order_stat.h"

#include <math.h>

enum { POINTS = 256, HALVINGS = 60 };
/* of the grid to either side, in sd; what is cut off weighs less than 1e-15 */
static const double reach = 9;

/* ln(1 - Phi(z)); erfc is 0 from 38 on, and from 25 the tail's series is exact to 1e-5. */
static double log_tail(double z) {
    if (z < 25) return log(0.5 * erfc(z * M_SQRT1_2));
    return -0.5 * z * z - log(z * sqrt(2 * M_PI)) - 1 / (z * z);
}

static double log_density(const double *mean, const double *times, size_t n, size_t which,
                          double sd, double u) {
    const double z = (u - mean[which]) / sd;
    double sum = -0.5 * z * z;
    for (size_t i = 0; i < n; i++)
        if (i != which) sum += (times ? times[i] : 1) * log_tail((u - mean[i]) / sd);
    return sum;
}

/* The density is log-concave: its mode is found by halving on the sign of a difference, the grid
 * lies around it. */
static double mode_of(const double *mean, const double *times, size_t n, size_t which, double sd,
                      double lo) {
    double hi = mean[which];
    const double step = 1e-4 * sd;
    /* an sd below the rounding of mean ends by their number */
    for (int k = 0; k < HALVINGS && hi - lo > step; k++) {
        const double u = 0.5 * (lo + hi);
        if (log_density(mean, times, n, which, sd, u + step) >
            log_density(mean, times, n, which, sd, u))
            lo = u;
        else hi = u;
    }
    return 0.5 * (lo + hi);
}

double cd_order_stat_mean(const double *mean, const double *times, size_t n, size_t which,
                          double sd) {
    if (!(sd > CD_ORDER_STAT_MIN_SD) || n < 2) return mean[which];
    double lowest = mean[which], weight = 0, sum = 0;
    for (size_t i = 0; i < n; i++) lowest = fmin(lowest, mean[i]);
    /* With every other that much lower still, the least lies a few sd below the lowest of all. */
    const double mode =
        mode_of(mean, times, n, which, sd, lowest - (reach + sqrt(2 * log((double)n + 1))) * sd);
    const double top = log_density(mean, times, n, which, sd, mode);
    for (int k = 0; k <= POINTS; k++) {
        const double off = reach * (2.0 * k / POINTS - 1) * sd;
        const double w = exp(log_density(mean, times, n, which, sd, mode + off) - top);
        weight += w;
        sum += w * off;
    }
    return fmin(mean[which], mode + sum / weight);
}
