/* opscore: figures against ones worked out by hand; order does not count. */
#include "learner/operators/operators.h"
#include "check.h"

#include <string.h>

static bool only_add(const cd_library_op_score_row *r, const void *ctx) {
    (void)ctx;
    return r->class == CD_LIBRARY_OP_CLASS_ELEMENTWISE;
}

TEST(figures) {
    static const double e[] = {0.1, -0.3, 0.2, -0.1};
    cd_library_op_score v = {0};
    cd_library_op_score_sum sum;
    cdmpp_err err = {0};
    for (size_t i = 0; i < 4; i++)
        assert_ok(cd_library_op_score_add(
            &v,
            &(cd_library_op_score_row){CD_LIBRARY_OP_CLASS_ELEMENTWISE, "t4", true, i > 1, e[i],
                                       i == 1 ? (double)NAN : i > 1},
            &err));
    assert_ok(cd_library_op_score_add(
        &v, &(cd_library_op_score_row){CD_LIBRARY_OP_CLASS_BMM, "l4", false, false, 1, (double)NAN},
        &err));
    assert_ok(cd_library_op_score_sum_of(&v, only_add, NULL, &sum, &err));
    assert_int_equal(sum.n, 4);
    assert_close(sum.mape, 0.175, 1e-12, 0);
    assert_close(sum.median, 0.15, 1e-12, 0);
    assert_close(sum.bias, 0, 0, 1e-12);
    assert_close(sum.within20, 0.75, 1e-12, 0);
    cd_buf b = {0};
    assert_ok(cd_library_op_score_text(&v, &b, &err));
    assert_string_equal(
        b.p,
        "| class | device | sizes | n | MAPE % | MAE(log) | median % | bias % | within 20 % | in "
        "interval % |\n"
        "| --- | --- | --- | --: | --: | --: | --: | --: | --: | --: |\n"
        "| bmm | l4 (unseen) | all | 1 | 100.0 | 0.693 | 100.0 | +100.0 | 0.0 | - |\n"
        "| bmm | **unseen** | not larger | 1 | 100.0 | 0.693 | 100.0 | +100.0 | 0.0 | - |\n"
        "| bmm | **unseen** | all | 1 | 100.0 | 0.693 | 100.0 | +100.0 | 0.0 | - |\n"
        "| elementwise | t4 | all | 4 | 17.5 | 0.185 | 15.0 | +0.0 | 75.0 | 66.7 |\n"
        "| elementwise | **trained on** | not larger | 2 | 20.0 | 0.226 | 20.0 | -10.0 | 50.0 | "
        "0.0 |\n"
        "| elementwise | **trained on** | larger | 2 | 15.0 | 0.144 | 15.0 | +5.0 | 100.0 | 100.0 "
        "|\n"
        "| elementwise | **trained on** | all | 4 | 17.5 | 0.185 | 15.0 | +0.0 | 75.0 | 66.7 |\n"
        "| **all** | **trained on** | all | 4 | 17.5 | 0.185 | 15.0 | +0.0 | 75.0 | 66.7 |\n"
        "| **all** | **unseen** | all | 1 | 100.0 | 0.693 | 100.0 | +100.0 | 0.0 | - |\n");
    cd_buf_clear(&b);
    assert_ok(cd_library_op_score_json(&v, &b, &err));
    assert_string_equal(
        b.p,
        "[{\"class\":\"bmm\",\"device\":\"l4\",\"seen\":false,\"n\":1,\"mape\":1,\"mae_log\":0."
        "693147,\"median\":1,\"bias\":1,\"within20\":0,\"inside\":null},"
        "{\"class\":\"elementwise\",\"device\":\"t4\",\"seen\":true,\"n\":4,\"mape\":0.175,\"mae_"
        "log\":0.184917,\"median\":0.15,\"bias\":0,\"within20\":0.75,\"inside\":0.666667}]");
    cd_buf_free(&b);
    cd_library_op_score_free(&v);
}

TEST(nothing) {
    cd_library_op_score v = {0};
    cd_library_op_score_sum sum;
    cd_buf b = {0};
    cdmpp_err err = {0};
    assert_ok(cd_library_op_score_sum_of(&v, NULL, NULL, &sum, &err));
    assert_true(sum.n == 0 && isnan(sum.mape));
    assert_ok(cd_library_op_score_text(&v, &b, &err));
    cd_buf_clear(&b);
    assert_ok(cd_library_op_score_json(&v, &b, &err));
    assert_string_equal(b.p, "[]");
    cd_buf_free(&b);
}

TESTS(NULL, NULL, figures, nothing)
