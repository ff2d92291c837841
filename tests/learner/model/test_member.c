/* Levels of a program by its trips alone: each row's, and the program's as the logarithm of their
 * sum. */
#include "check.h"
#include "features/rows/rows.h"
#include "learner/model/model.h"

TEST(offsets) {
    static float row[3 * CD_N_COL];
    static const double trips[] = {1, 3, 2.5}, slope = 0.7, bias = -9;
    double sum = 0, t[3];
    for (int k = 0; k < 3; k++) {
        row[k * CD_N_COL + CD_COL_OUTER_PROD] = (float)trips[k];
        t[k] = trips[k] * M_LN2; /* the column is a logarithm of base 2 */
        sum += exp(slope * t[k]);
    }
    double offset[3] = {7, 7, 7};
    static const int64_t ptr[] = {0, 3}, one[] = {0, 1};
    const cd_program_view v = {.n = 1, .row = row, .row_ptr = ptr};
    const cd_program_view w = {.n = 1, .row = row, .row_ptr = one};
    const cd_member rows = {.kind = CD_MEMBER_ROWS};
    const cd_member whole = {.kind = CD_MEMBER_PROGRAM};
    const cd_member ranked = {.kind = CD_MEMBER_PROGRAM, .objective = CD_OBJECTIVE_RANK};
    assert_true(cd_member_has_level(&rows) && !cd_member_has_level(&whole) &&
                cd_member_has_level(&ranked));
    assert_close(cd_member_offsets(&rows, &v, 0, slope, bias, offset), bias + log(sum), 1e-12, 0);
    for (int k = 0; k < 3; k++) assert_close(offset[k], bias + slope * t[k], 1e-12, 0);
    assert_close(cd_member_offsets(&ranked, &v, 0, slope, bias, offset), bias + log(sum), 1e-12, 0);
    assert_close(offset[0], bias + log(sum), 1e-12, 0);
    assert_close(offset[1], bias + slope * t[1], 1e-12, 0); /* one row of the matrix alone */
    assert_true(cd_member_offsets(&whole, &v, 0, slope, bias, offset) == bias && offset[0] == bias);
    assert_close(cd_member_offsets(&rows, &w, 0, 0, bias, offset), bias, 1e-12, 0);
}

/* With a prior the program's level is the analytic time and the bias, whatever the trips; these
 * only divide it between the rows. */
TEST(prior) {
    static float row[2 * CD_N_COL], facts[2 * CD_N_FACTS];
    static const int64_t ptr[] = {0, 1, 2};
    static const uint32_t device[2];
    float analytic[2 * CD_N_ANALYTIC];
    const cd_program_view v = {.n = 1,
                               .row = row,
                               .row_ptr = ptr + 1,
                               .device = device,
                               .facts = facts + CD_N_FACTS,
                               .analytic = analytic + CD_N_ANALYTIC};
    const cd_program_view two = {.n = 1,
                                 .row = row,
                                 .row_ptr = (const int64_t[]){0, 2},
                                 .device = device,
                                 .facts = facts,
                                 .analytic = analytic};
    double offset[2];
    /* one has four times as many trips */
    row[CD_COL_OUTER_PROD] = 3, row[CD_N_COL + CD_COL_OUTER_PROD] = 5;
    for (int k = 0; k < 2 * CD_N_ANALYTIC; k++) analytic[k] = (float)(-k);
    for (int p = 0; p < CD_N_PRIOR; p++) {
        const cd_member rows = {.kind = CD_MEMBER_ROWS, .facts = CD_FACTS_USE_PRIOR, .prior = p};
        const cd_member whole = {
            .kind = CD_MEMBER_PROGRAM, .facts = CD_FACTS_USE_PRIOR, .prior = p};
        assert_true(cd_member_offsets(&whole, &v, 0, 0, 0.5, offset) == 0.5 - CD_N_ANALYTIC - p &&
                    offset[0] == 0.5 - CD_N_ANALYTIC - p);
        assert_close(cd_member_offsets(&rows, &two, 0, 1, 0.5, offset), 0.5 - p, 1e-12, 0);
        assert_close(exp(offset[1] - offset[0]), 4, 1e-12, 0);
        assert_close(exp(offset[0]) + exp(offset[1]), exp(0.5 - p), 1e-12, 0);
    }
}

/* Columns of facts stand behind those of the form, in every row of the matrix. */
TEST(fill) {
    static float row[2 * CD_N_COL], facts[CD_N_FACTS], analytic[CD_N_ANALYTIC],
        want[2 * (CD_N_COL + CD_N_DERIVED + 1)], x[2 * (2 * CD_N_COL + CD_N_FACTS_COL)];
    static const int64_t ptr[] = {0, 2};
    static const uint32_t device[] = {3};
    const cd_program_view v = {.n = 1,
                               .row = row,
                               .row_ptr = ptr,
                               .device = device,
                               .facts = facts,
                               .analytic = analytic,
                               .facts_set = CD_FACTS_OF_GPU};
    const cd_member rows = {.kind = CD_MEMBER_ROWS, .facts = CD_FACTS_USE_COLUMNS};
    const size_t own = cd_tree_input_width(CD_TREE_INPUT_ROWS),
                 width = cd_member_width(CD_MEMBER_ROWS, CD_FACTS_USE_COLUMNS);
    for (int c = 0; c < 2 * CD_N_COL; c++) row[c] = (float)(c % 7);
    for (int c = 0; c < CD_N_FACTS; c++) facts[c] = (float)((1 << c % 20) - 1);
    for (int c = 0; c < CD_N_ANALYTIC; c++) analytic[c] = -(float)(c * c);
    assert_int_equal(width, own + CD_N_FACTS_COL);
    assert_int_equal(cd_member_width(CD_MEMBER_PROGRAM, CD_FACTS_USE_NONE),
                     cd_tree_input_width(CD_TREE_INPUT_PROGRAM));
    cd_tree_input_fill(CD_TREE_INPUT_ROWS, row, 2, 3, want);
    cd_member_fill(&rows, &v, 0, x);
    for (size_t k = 0; k < 2; k++) {
        assert_memory_equal(x + k * width, want + k * own, own * sizeof *x);
        for (size_t c = 0; c < CD_N_FACTS; c++)
            assert_true(x[k * width + own + c] == (float)(c % 20));
        /* of GPU programs counts are not relative */
        for (size_t c = 0; c < CD_N_TRAFFIC; c++)
            assert_true(x[k * width + own + CD_N_FACTS + c] == 0);
        for (size_t c = 0; c < CD_N_ANALYTIC; c++)
            assert_true(x[k * width + own + CD_N_FACTS + CD_N_TRAFFIC + c] ==
                        (c < CD_N_PRIOR || c == CD_N_ANALYTIC - 1 ? analytic[c]
                                                                  : analytic[c] - analytic[2]));
    }
    assert_true(cd_facts_input_has(&v, 0));
    analytic[0] = NAN;
    assert_false(cd_facts_input_has(&v, 0));
}

TESTS(NULL, NULL, offsets, prior, fill)
