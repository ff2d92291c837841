/* Levels of a program by its trips alone: each row's, and the program's as the logarithm of their sum. */
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
    const cd_member rows = {.kind = CD_MEMBER_ROWS}, whole = {.kind = CD_MEMBER_PROGRAM}, ranked = {.kind = CD_MEMBER_PROGRAM, .objective = CD_OBJECTIVE_RANK};
    assert_true(cd_member_has_level(&rows) && !cd_member_has_level(&whole) && cd_member_has_level(&ranked));
    assert_close(cd_member_offsets(&rows, row, 3, slope, bias, offset), bias + log(sum), 1e-12, 0);
    for (int k = 0; k < 3; k++) assert_close(offset[k], bias + slope * t[k], 1e-12, 0);
    assert_close(cd_member_offsets(&ranked, row, 3, slope, bias, offset), bias + log(sum), 1e-12, 0);
    assert_close(offset[0], bias + log(sum), 1e-12, 0);
    assert_close(offset[1], bias + slope * t[1], 1e-12, 0); /* one row of the matrix alone */
    assert_true(cd_member_offsets(&whole, row, 3, slope, bias, offset) == bias && offset[0] == bias);
    assert_close(cd_member_offsets(&rows, row, 1, 0, bias, offset), bias, 1e-12, 0);
}

TESTS(NULL, NULL, offsets)
