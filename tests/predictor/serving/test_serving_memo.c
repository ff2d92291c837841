/* What was asked before: values under keys, whole and not, small and large. */
#include "check.h"
#include "fault.h"
#include "predictor/serving/serving_memo.h"

static cdmpp_err err;

/* Entries stay where they are, and no key is taken for another. */
TEST(memo) {
    cd_serving_memo m = {.n_key = 3, .n_value = 2};
    double *first = NULL;
    for (int i = 0; i < 5000; i++) {
        const double key[] = {i % 7, i, 0.5 * i};
        double *v = cd_serving_memo_at(&m, key);
        assert_non_null(v);
        assert_true(!(v[0] > 0) && !(v[1] > 0)); /* new */
        v[0] = i + 1, v[1] = -i;
        if (!i) first = v;
    }
    assert_int_equal(m.n, 5000);
    for (int i = 0; i < 5000; i++) {
        const double key[] = {i % 7, i, 0.5 * i}, other[] = {i % 7, i, 0.5 * i + 1e-9};
        const double *v = cd_serving_memo_at(&m, key);
        assert_close(v[0], i + 1, 0, 0);
        assert_close(v[1], -i, 0, 0);
        if (!i) assert_ptr_equal(v, first);
        if (i < 10) assert_close(cd_serving_memo_at(&m, other)[0], 0, 0, 0);
    }
    cd_serving_memo_free(&m);
    assert_int_equal(m.n + m.n_slot + m.n_page, 0);
    assert_int_equal(m.n_key, 3);
}

/* Keys at both sides of what is a place in an array: none is another's. */
TEST(sums) {
    static const double at[] = {0, 1, 1.5, 63, 64, 65, 99, 100, 101, 1e6, -1};
    static const double by[] = {0, 1, 1.25, 2, 3, 500};
    cd_serving_sums s;
    assert_ok(cd_serving_sums_new(&s, 3, 100, 3, &err));
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < sizeof at / sizeof *at; i++)
            for (size_t k = 0; k < sizeof by / sizeof *by; k++) {
                double *v = cd_serving_sums_at(&s, at[i], by[k]);
                const double want = 1 + (double)(100 * i + k);
                assert_non_null(v);
                assert_close(v[0], turn ? want : 0, 0, 0);
                v[0] = v[1] = v[2] = want;
            }
    cd_serving_sums_free(&s);
}

TEST(faults) {
    FAULT_SWEEP(g, 3) {
        cd_serving_sums s = {0};
        g.st = cd_serving_sums_new(&s, 2, 4, 2, &g.err);
        for (int i = 0; !g.st && i < 300; i++)
            if (!cd_serving_sums_at(&s, i, i % 3)) g.st = CD_FAIL(&g.err, ENOMEM, "sums");
        cd_serving_sums_free(&s);
    }
}

TESTS(NULL, NULL, memo, sums, faults)
