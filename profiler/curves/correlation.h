/* correlation -- which settings a time depends on, and at which value each of them changes its effect.
 *
 *   samples (n) x settings (k), seconds (n)  ->  an axis each: pearson, spearman, distance, partial, turning point
 *
 *   (1) spearman: pearson of ranks, equal values share their mean rank;
 *   (2) distance correlation (Szekely, Rizzo, Bakirov 2007), 0 .. 1, 0 only where independent in the limit: finds dependence that is not monotone;
 *   (3) partial: of ranks, given the ranks of all other axes, from the inverse of their correlation matrix;
 *   (4) an axis or a time that does not vary has correlation 0; partial is NaN where the other axes determine this one;
 *   (5) strong: |spearman|, or distance, at least `strong`. The turning point of a strong axis is that of the curve through the
 *       medians at each of its values; where the time falls along the axis, the first value from which on it stays within 5 % of
 *       its last (more of it does not pay); NaN where there is none, it may be anywhere, or the axis has fewer than 3 values.
 * O(n^2 k) time, O(n k + k^2) memory. No state, any thread. */
#ifndef CD_CORRELATION_H
#define CD_CORRELATION_H

#include "profiler/curves/perf_curve.h"

typedef struct cd_correlation_axis {
    double pearson, spearman, distance, partial;
    bool strong, falls;
    double turning;                /* where the time falls; NaN: none */
    cd_perf_curve_turn turn;       /* where it rises; low NaN: none */
    cd_perf_curve_form form;       /* of a strong axis that rises */
} cd_correlation_axis;

/* Pearson's coefficient of n pairs; 0 where one side does not vary. */
double cd_correlation_pearson(const double *a, const double *b, size_t n);
/* (2). Errors: ENOMEM. */
cdmpp_status cd_correlation_distance(const double *a, const double *b, size_t n, double *out, cdmpp_err *err);
/* setting (n, k) row-major, all finite; out (k). strong 0: 0.3. Errors: EINVALID (n < 3, a value that is no number: its row and
 * column), ENOMEM. */
cdmpp_status cd_correlation_axes(const double *setting, const double *seconds, size_t n, size_t k, double strong, cd_correlation_axis *out, cdmpp_err *err);
#endif
