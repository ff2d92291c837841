/* unlike_fit: the interval of operators that were left out is that of small trees. */
#include "check.h"
#include "learner/train/train_internal.h"
#include "learner/train/training_set.h"
#include "made_set_file.h"

typedef struct {
    double low, high;
    uint32_t n;
} interval;

/* Of the first `n_kind` kinds; tasks have them in turn. The file has no kinds. */
static interval fit(const char *set, uint32_t n_kind) {
    static char *name[] = {"operator matmul", "operator conv2d", "operator softmax",
                           "operator mean"};
    static uint32_t kind[N];
    cdmpp_err err = {0};
    char file[300];
    cd_buf notes = {0};
    cd_config c;
    cd_dataset *d;
    cd_training_set t;
    cd_model m = {0};
    snprintf(file, sizeof file, "data.files=%s", h5);
    assert_ok(cd_config_init(&c, &err));
    assert_ok(cd_config_set(&c, file, &err));
    assert_ok(cd_config_set(&c, set, &err));
    const char *path = h5;
    assert_ok(cd_dataset_load(&path, 1, &d, &err));
    for (size_t i = 0; i < d->n; i++) kind[i] = d->task[i] % n_kind;
    cd_dataset with = *d;
    with.kind = kind;
    with.kind_name = name;
    with.n_kind = n_kind;
    assert_ok(cd_training_set_make(&t, &c, &with, NULL, &err));
    assert_ok(cd_unlike_fit(&t, NULL, NULL, &m, &notes, &err));
    assert_non_null(m.trained_on);
    const cd_unlike_law *l = &m.trained_on->law[CD_UNLIKE_BIT_OPERATOR];
    const interval got = {l->low, l->high, l->n};
    cd_arena_free(&m.arena);
    cd_buf_free(&notes);
    cd_training_set_free(&t);
    cd_config_free(&c);
    cd_dataset_free(d);
    return got;
}

/* Deep trees and many rounds would take as long as the training itself. */
TEST(trees_have_at_most_six_levels) {
    const interval six = fit("train.max_depth=6", 4), deep = fit("train.max_depth=12", 4),
                   flat = fit("train.max_depth=1", 4);
    assert_true(six.low < 0 && six.high > 0);
    assert_true(deep.low == six.low && deep.high == six.high);
    /* fewer levels than six are what the user wants */
    assert_true(flat.low != six.low && flat.high != six.high);
}

TEST(two_operators_leave_nothing_to_compare) {
    const interval v = fit("train.max_depth=6", 2);
    assert_int_equal(v.n, 0); /* and nothing is made up */
}

TESTS(made_set_up, made_set_down, trees_have_at_most_six_levels,
      two_operators_leave_nothing_to_compare)
