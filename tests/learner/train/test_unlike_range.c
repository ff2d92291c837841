/* The limit of the range beside marks: at most 5 % of the tasks are flagged for either reason. */
#include <math.h>

#include "check.h"
#include "learner/train/unlike_range.h"

enum { TASKS = 100, EACH = 3 };

/* Task k lies k/100 outside; the programs of the first `n_new` tasks have new marks. Task 50 has as
 * many programs as all others. */
static size_t make(cd_unlike_range_program *v, uint32_t n_new) {
    size_t n = 0;
    for (uint32_t k = 0; k < TASKS; k++)
        for (int i = 0; i < (k == 50 ? TASKS * EACH : EACH); i++)
            v[n++] = (cd_unlike_range_program){k < n_new ? HUGE_VAL : k / 100.0, k, 0, 0};
    return n;
}

static double flagged(const cd_unlike_range_program *v, size_t n, double limit) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += v[i].outside > limit ? v[i].weight : 0;
    return sum;
}

static void test_five_of_hundred(void **state) {
    (void)state;
    static cd_unlike_range_program v[2 * TASKS * EACH];
    for (uint32_t n_new = 0; n_new < 4; n_new++) {
        const size_t n = make(v, n_new);
        const double limit = cd_unlike_range_limit(v, n);
        /* of 101 tasks, 5 % are 4 beside the next one */
        assert_close(limit, 0.95 + 0.01 * n_new, 1e-12, 0);
        assert_close(flagged(v, n, limit), 4, 1e-9, 0);
    }
}

/* Marks alone flag more: the range flags only what is farther than all that was seen. */
static void test_many_new_marks(void **state) {
    (void)state;
    static cd_unlike_range_program v[2 * TASKS * EACH];
    const size_t n = make(v, 10);
    const double limit = cd_unlike_range_limit(v, n);
    assert_close(limit, 0.99, 1e-12, 0);
    assert_close(flagged(v, n, limit), 10, 1e-9, 0);
}

static void test_nothing(void **state) {
    (void)state;
    cd_unlike_range_program one = {0.3, 0, 0, 0};
    assert_true(cd_unlike_range_limit(&one, 0) == 0);
    assert_close(cd_unlike_range_limit(&one, 1), 0.3, 0, 0);
}

TESTS(NULL, NULL, test_five_of_hundred, test_many_new_marks, test_nothing)
