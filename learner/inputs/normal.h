/* normal -- the standard normal distribution: share below z, and z of a share; the quantile of
 * Student's t.
 *
 * cd_normal_quantile is the inverse of cd_normal_cdf to a few units of the last
 * digit; below 0 keep precision by asking for the small side: q(1-p) = -q(p).
 * p <= 0 gives -inf, p >= 1 +inf. No state, any thread. */
#ifndef CD_NORMAL_H
#define CD_NORMAL_H
double cd_normal_cdf(double z);      /* share of values below z */
double cd_normal_quantile(double p); /* the z whose share is p */
/* p 0.5..1; freedom >= 1, rounded below 2.5; within 0.3 % at 3 */
double cd_normal_student(double p, double freedom);
#endif
