/* The expected value of a number that is known to be the smallest of several.
 *
 *   y[i] = mean[i] + sd * normal, independent;  y[which] is the smallest  ──>  E(y[which])
 *
 * The fastest of n measured programs was faster than all others, whatever was predicted for them.
 * So its expected value is below its prediction. The density of y[which] at u is
 *
 *   phi((u - mean[which]) / sd) * product over i of (1 - Phi((u - mean[i]) / sd)) ^ times[i]
 *
 * The result is the mean of this density. It is mean[which] if there are no others, and never above
 * it. */
#ifndef CD_ORDER_STAT_H
#define CD_ORDER_STAT_H
#include <stddef.h>

/* no model predicts so well; below it, rounding errors would be larger than the grid's steps */
#define CD_ORDER_STAT_MIN_SD 1e-6
/* mean (n): any unit, logarithms of seconds here. times (n): how many others each entry stands for,
 * NULL: one; that of `which` is not read. sd at most CD_ORDER_STAT_MIN_SD: the answer is
 * mean[which]. O(n). */
double cd_order_stat_mean(const double *mean, const double *times, size_t n, size_t which,
                          double sd);
#endif
