/* llm_op_few: rows tell about rows like them, less about others, and never more than they say. */
#include "learner/llm_op/llm_op_few.h"
#include "check.h"
#include "fault.h"

#include <math.h>

static cd_llm_op_few_row row(uint8_t type, uint16_t kernel, float place) {
    return (cd_llm_op_few_row){.kind = CD_LLM_OP_GEMM,
                               .type = type,
                               .kernel = kernel,
                               .maker = 1,
                               .place = {place, -1, -1, 2}};
}

static double answer(const cd_llm_op_few_row *r, const double *residual, size_t n,
                     cd_llm_op_few_row of) {
    cd_llm_op_few *f = NULL;
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_few_new(r, residual, n, &f, &err));
    assert_int_equal(cd_llm_op_few_count(f), n);
    const double x = cd_llm_op_few_ask(f, &of);
    cd_llm_op_few_free(f);
    return x;
}

TEST(like_rows) {
    cd_llm_op_few_row r[40];
    double residual[40];
    for (size_t i = 0; i < 40; i++)
        r[i] = row(CD_LLM_OP_T_BF16, 3, (float)(i % 8)), residual[i] = 0.4;
    const double one = answer(r, residual, 1, r[0]), all = answer(r, residual, 40, r[0]);
    assert_true(one > 0.1 && one < 0.4); /* one row is believed in part */
    assert_true(fabs(all - 0.4) < 0.04);
    const double type = answer(r, residual, 40, row(CD_LLM_OP_T_FP8, 3, 0)),
                 kernel = answer(r, residual, 40, row(CD_LLM_OP_T_BF16, 4, 0)),
                 far = answer(r, residual, 40, row(CD_LLM_OP_T_BF16, 3, 30));
    assert_true(type > 0 && kernel > type && all > kernel);
    assert_true(far > kernel && far < all);
    for (size_t i = 0; i < 40; i++) residual[i] = i % 2 ? 0.3 : -0.3;
    assert_true(fabs(answer(r, residual, 40, r[0])) < 0.31);
    for (size_t i = 0; i < 40; i++) residual[i] = 0;
    assert_true(answer(r, residual, 40, r[5]) == 0);
}

/* A row that is off by far moves no more than one that is off by a factor of two. */
TEST(one_wild_row) {
    const cd_llm_op_few_row r = row(CD_LLM_OP_T_BF16, 3, 0);
    const double two = log(2.1), thousand = log(1000);
    assert_true(answer(&r, &two, 1, r) == answer(&r, &thousand, 1, r));
}

TEST(row_of_a_record) {
    const cd_llm_op_record r = {
        .kind = CD_LLM_OP_GEMM, .type = CD_LLM_OP_T_BF16, .kernel = 7, .size = {64, 64, 64, 1}};
    const cd_llm_op_estimate e = {.base_s = 8e-6, .tiles_s = 4e-6, .memory_s = 0, .waves = 0.5};
    const cd_llm_op_few_row x = cd_llm_op_few_row_of(&r, NAN, &e);
    assert_int_equal(x.maker, -1);
    assert_int_equal(x.kernel, 7);
    assert_true(fabs((double)x.place[0] - (3)) < 1e-5);
    assert_true(fabs((double)x.place[1] - (-1)) < 1e-5);
    assert_true(fabs((double)x.place[2] - (-8)) < 1e-5);
}

TEST(refused) {
    const cd_llm_op_few_row r[2] = {row(CD_LLM_OP_T_BF16, 3, 0), row(CD_LLM_OP_T_BF16, 3, 1)};
    const double residual[2] = {0.1, 0.2};
    FAULT_SWEEP(s, 3) {
        cd_llm_op_few *f = NULL;
        s.st = cd_llm_op_few_new(r, residual, 2, &f, &s.err);
        cd_llm_op_few_free(f);
    }
}

TESTS(NULL, NULL, like_rows, one_wild_row, row_of_a_record, refused)
