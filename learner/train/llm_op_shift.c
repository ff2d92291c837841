/* How much of what trees learned holds for a device that no training saw, and by how much answers
 * for it are lowered: where times are off by a factor on either side, those that are too long count
 * more. */
#include <math.h>

#include "learner/train/train_internal.h"

enum { STEPS = 80, SHARES = 16, MAX_FOLD = 256 };
#define STEP       0.01
#define SHARE_STEP 0.05

typedef struct {
    const double *target, *residual;
    const uint8_t *fold;
    size_t n;
} held_out;

/* Mean over folds of the mean relative error of such answers. */
static double relative_error(const held_out *h, cd_llm_op_care c) {
    double sum[MAX_FOLD] = {0}, count[MAX_FOLD] = {0}, all = 0, folds = 0;
    for (size_t i = 0; i < h->n; i++) {
        sum[h->fold[i]] += fmin(
            10, fabs(expm1(c.share * (h->target[i] - h->residual[i]) + c.shift - h->target[i])));
        count[h->fold[i]]++;
    }
    for (size_t k = 0; k < MAX_FOLD; k++)
        if (count[k] > 0) all += sum[k] / count[k], folds++;
    return all / fmax(folds, 1);
}

/* The error is convex in the shift but for its cap, so the first step that does not help is the
 * last. */
static double least(const held_out *h, double share, double *shift) {
    double error = relative_error(h, (cd_llm_op_care){share, 0});
    *shift = 0;
    for (int k = 1; k <= STEPS; k++) {
        const double next = relative_error(h, (cd_llm_op_care){share, -STEP * k});
        if (!(next < error)) break;
        error = next;
        *shift = -STEP * k;
    }
    return error;
}

cd_llm_op_care cd_llm_op_shift(const double *target, const double *residual, const uint8_t *fold,
                               size_t n) {
    const held_out h = {target, residual, fold, n};
    cd_llm_op_care best = {1, 0};
    double error = least(&h, 1, &best.shift);
    for (int k = 1; k <= SHARES; k++) {
        cd_llm_op_care c = {1 - SHARE_STEP * k, 0};
        const double next = least(&h, c.share, &c.shift);
        if (!(next < error)) continue;
        error = next;
        best = c;
    }
    return (cd_llm_op_care){(1 + best.share) / 2, best.shift / 2};
}
