/* metric -- how far predictions are from measurements.
 *
 *   y measured, p predicted, both seconds, both finite and > 0
 *   e = p/y - 1
 *
 * Ranking figures are per group (a task on a device) because only programs of
 * one task compete with each other:
 *   spearman   rank correlation (ties: mean rank), mean over groups with at
 *              least two different values on both sides; a group where all
 *              predictions are equal counts as 0
 *   pairwise   share of pairs with y_i != y_j that are in the right order, a tie
 *              in p counts 1/2; all pairs of all groups together, so that a
 *              group weighs by its pairs
 *   top-k      TenSet's score: sum over groups of weight * (best y), divided by
 *              the sum of weight * (best y among the k best by p); weight =
 *              occurrences of the task in the networks; among equal p the worst y counts as
 *              first. Only groups with more
 *              than k programs: the others score 1 whatever is predicted.
 * O(n log n). No state, any thread. */
#ifndef CD_METRIC_H
#define CD_METRIC_H
#include <stdint.h>

#include "base/core/core.h"

typedef struct cd_metric {
    size_t n, n_group;
    double mape, median_ape;              /* fractions: 0.1 is 10 % */
    double rmse_s, rmse_log;              /* seconds; natural logarithm */
    double within_5, within_10, within_20; /* share with |e| <= 5, 10, 20 % */
    double spearman, pairwise, top1, top5; /* NaN where no group qualifies */
    size_t n_spearman, n_top1, n_top5;    /* groups behind each */
    uint64_t n_pair;
} cd_metric;

/* `group` (n) any numbers; `weight` (n) of the item's group, NULL: all 1.
 * n = 0 gives NaNs. Errors: ENUMERIC (a value that is not finite and > 0),
 * ENOMEM. */
cdmpp_status cd_metric_compute(const double *y, const double *p, const uint32_t *group, const double *weight, size_t n,
                                cd_metric *out, cdmpp_err *err);

/* One JSON object; NaN becomes null. */
void cd_metric_json(cd_buf *out, const cd_metric *m);
/* Table lines "test (split=task, n=1234): ..." for people. */
void cd_metric_text(cd_buf *out, const char *part, const char *split, const cd_metric *m);
#endif
