/* least -- what is known of a number because it was the least of several.
 *
 *   y[i] = mean[i] + sd * normal, each on its own;  y[which] is the least  ──>  E(y[which])
 *
 * Who keeps the fastest of n measured programs knows of that program more than a prediction does: it was faster than all the
 * others, whatever they were predicted. The density of y[which] at u is
 *
 *   phi((u - mean[which]) / sd) * product over i of (1 - Phi((u - mean[i]) / sd)) ^ times[i]
 *
 * integrated over a grid; what is told is its mean. Without others it is mean[which]. Never above it. */
#ifndef CD_ORDER_STAT_H
#define CD_ORDER_STAT_H
#include <stddef.h>

#define CD_ORDER_STAT_MIN_SD 1e-6 /* no two programs are told apart so well; below, the grid would drown in rounding */
/* mean (n): any unit, logarithms of seconds here. times (n): how many others each entry stands for, NULL: one; that of `which`
 * is not looked at. sd at most CD_ORDER_STAT_MIN_SD: the answer is mean[which]. O(n). */
double cd_order_stat_mean(const double *mean, const double *times, size_t n, size_t which, double sd);
#endif
