/* llm_op_shift: answers that may be off either way are lowered; what trees learned counts by the
 * share that holds for devices that were left out. */
#include "learner/train/train_internal.h"
#include "check.h"

#include <math.h>

enum { N = 99 };

/* Trees that learned nothing: the residual is the target. */
static cd_llm_op_care of(const double *residual, const uint8_t *fold, size_t n) {
    return cd_llm_op_shift(residual, residual, fold, n);
}

TEST(lowered) {
    double residual[N];
    uint8_t fold[N];
    for (size_t i = 0; i < N; i++) residual[i] = 0, fold[i] = (uint8_t)(i % 3);
    assert_true(of(residual, fold, N).shift == 0 && of(residual, fold, N).share == 1);
    for (size_t i = 0; i < N; i++) residual[i] = 0.2;
    assert_true(of(residual, fold, N).shift == 0);
    for (size_t i = 0; i < N; i++) residual[i] = -0.2;
    assert_true(fabs(of(residual, fold, N).shift - (-0.1)) < 0.006); /* half */
    /* twice as long costs more than half as long */
    for (size_t i = 0; i < N; i++) residual[i] = i / 3 % 2 ? 0.5 : -0.5;
    const double even = of(residual, fold, N).shift;
    assert_true(even < -0.1 && even > -0.4);
}

/* A fold of many rows counts as much as one of few. */
TEST(folds_count_alike) {
    double residual[102];
    uint8_t fold[102] = {0};
    for (size_t i = 0; i < 100; i++) residual[i] = -0.1;
    residual[100] = residual[101] = 0.05;
    fold[100] = 1, fold[101] = 2;
    assert_true(of(residual, fold, 102).shift == 0);
}

/* The truth is a part of what trees say: the share is half of the way from 1 to that part, as with
 * the shift. */
TEST(share_that_holds) {
    static const double part[] = {1, 0.8, 0.5};
    double target[N], residual[N];
    uint8_t fold[N];
    for (size_t k = 0; k < 3; k++) {
        for (size_t i = 0; i < N; i++) {
            const double said = ((double)i - 49) / 50;
            fold[i] = (uint8_t)(i % 3);
            target[i] = part[k] * said;
            residual[i] = target[i] - said;
        }
        const cd_llm_op_care c = cd_llm_op_shift(target, residual, fold, N);
        assert_true(fabs(c.share - (1 + part[k]) / 2) < 1e-9 && c.shift == 0);
    }
}

TESTS(NULL, NULL, lowered, folds_count_alike, share_that_holds)
