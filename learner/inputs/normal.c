/* The standard normal distribution, and Student's. The C library has erfc but not its inverse. */
#include "learner/inputs/normal.h"

#include <math.h>

#define SQRT_2PI 2.50662827463100050242

double cd_normal_cdf(double z) { return 0.5 * erfc(-z * M_SQRT1_2); }
double cd_normal_density(double z) { return exp(-0.5 * z * z) / SQRT_2PI; }

/* Abramowitz and Stegun 26.2.23 (4.5e-4), then Halley's steps, each of which
 * triples the digits. Only for 0 < p <= 0.5. */
static double lower(double p) {
    const double t = sqrt(-2 * log(p));
    double z = (2.515517 + t * (0.802853 + t * 0.010328)) /
                   (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) -
               t;
    for (int k = 0; k < 3; k++) {
        const double u = (cd_normal_cdf(z) - p) / cd_normal_density(z);
        z -= u / (1 + 0.5 * z * u);
    }
    return z;
}

double cd_normal_quantile(double p) {
    if (p <= 0) return -INFINITY;
    if (p >= 1) return INFINITY;
    return p <= 0.5 ? lower(p) : -lower(1 - p);
}

/* Closed forms for 1 and 2 degrees of freedom, above them Cornish and Fisher's terms (Abramowitz
 * and Stegun 26.7.5). */
double cd_normal_student(double p, double freedom) {
    if (freedom < 1.5) return tan(M_PI * (p - 0.5));
    if (freedom < 2.5) return (2 * p - 1) / sqrt(2 * p * (1 - p));
    const double z = cd_normal_quantile(p), z2 = z * z, f = 1 / freedom;
    return z * (1 + f * ((z2 + 1) / 4 + f * (((5 * z2 + 16) * z2 + 3) / 96 +
                                             f * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384)));
}
