/* llm_op_shift: answers that may be off either way are lowered; those that are right, or too low already, are not. */
#include "learner/train/train_internal.h"
#include "check.h"

#include <math.h>

TEST(lowered) {
    enum { N = 100 };
    double residual[N];
    uint8_t fold[N];
    for (size_t i = 0; i < N; i++) residual[i] = 0, fold[i] = (uint8_t)(i % 3);
    assert_true(cd_llm_op_shift(residual, fold, N) == 0);
    for (size_t i = 0; i < N; i++) residual[i] = 0.2;
    assert_true(cd_llm_op_shift(residual, fold, N) == 0);
    for (size_t i = 0; i < N; i++) residual[i] = -0.2;
    assert_true(fabs(cd_llm_op_shift(residual, fold, N) - (-0.1)) < 0.006); /* half */
    for (size_t i = 0; i < N; i++) residual[i] = i / 3 % 2 ? 0.5 : -0.5; /* twice as long costs more than half as long */
    const double even = cd_llm_op_shift(residual, fold, N);
    assert_true(even < -0.1 && even > -0.4);
}

/* A fold of many rows counts as much as one of few. */
TEST(folds_count_alike) {
    double residual[102];
    uint8_t fold[102] = {0};
    for (size_t i = 0; i < 100; i++) residual[i] = -0.1;
    residual[100] = residual[101] = 0.05;
    fold[100] = 1, fold[101] = 2;
    assert_true(cd_llm_op_shift(residual, fold, 102) == 0);
}

TESTS(NULL, NULL, lowered, folds_count_alike)
