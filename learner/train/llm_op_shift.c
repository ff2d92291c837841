/* By how much answers for a device that no training saw are lowered: where times are off by a factor on either side, those that are too long count more. */
#include <math.h>

#include "learner/train/train_internal.h"

enum { STEPS = 80, MAX_FOLD = 256 };
#define STEP 0.01

/* Mean over folds of the mean relative error, if `shift` is added to every ln of an answer. */
static double relative_error(const double *residual, const uint8_t *fold, size_t n, double shift) {
    double sum[MAX_FOLD] = {0}, count[MAX_FOLD] = {0}, all = 0, folds = 0;
    for (size_t i = 0; i < n; i++) {
        sum[fold[i]] += fmin(10, fabs(expm1(shift - residual[i])));
        count[fold[i]]++;
    }
    for (size_t k = 0; k < MAX_FOLD; k++)
        if (count[k] > 0) all += sum[k] / count[k], folds++;
    return all / fmax(folds, 1);
}

double cd_llm_op_shift(const double *residual, const uint8_t *fold, size_t n) {
    double best = 0, least = relative_error(residual, fold, n, 0);
    for (int k = 1; k <= STEPS; k++) {
        const double error = relative_error(residual, fold, n, -STEP * k);
        if (!(error < least)) continue;
        least = error;
        best = -STEP * k;
    }
    return best / 2;
}
