/* The order of rows and buffers: equal bits whatever order they came in, nothing lost but what
 * chance decides. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "shuffle_rows.h"

enum { MOST = 40, ROUNDS = 300, BYTES = 3, LINES = 5, REUSE_BYTES = 11 };

static uint64_t drawn;
static size_t below(size_t n) { return shuffle_below(21, &drawn, n); }

/* Few values, so that rows and keys are often equal in part. */
static void draw(float *row, size_t n) {
    for (size_t k = 0; k < n; k++, row += CD_N_COL) {
        const size_t n_block = 1 + below(CD_MAX_BUFFERS);
        for (size_t c = 0; c < CD_N_COL; c++) row[c] = below(20) ? 0 : (float)below(4);
        row[CD_COL_OUTER_PROD] = (float)below(3);
        memset(row + CD_COL_B0_READ, 0, CD_MAX_BUFFERS * CD_BLOCK * sizeof *row);
        float lines = 8;
        for (size_t b = 0; b < n_block; b++) {
            float *x = row + CD_COL_B0_READ + b * CD_BLOCK;
            for (size_t c = 0; c < CD_BLOCK; c++) x[c] = (float)below(3);
            x[LINES] = lines -= (float)below(2);
            x[BYTES] = 5;
        }
    }
}

TEST(any_order_gives_the_same_bits) {
    static float a[MOST * CD_N_COL], b[MOST * CD_N_COL];
    for (size_t round = 0; round < ROUNDS; round++) {
        const size_t n = 1 + below(round % 10 ? 6 : MOST);
        draw(a, n);
        memcpy(b, a, sizeof a);
        shuffle_rows(b, n, round);
        cd_rows_order(a, n, NULL);
        cd_rows_order(b, n, NULL);
        assert_memory_equal(a, b, n * CD_N_COL * sizeof *a);
        cd_rows_order(b, n, NULL); /* and a second time changes nothing */
        assert_memory_equal(a, b, n * CD_N_COL * sizeof *a);
        for (size_t k = 1; k < n; k++)
            assert_true(a[(k - 1) * CD_N_COL + CD_COL_OUTER_PROD] >=
                        a[k * CD_N_COL + CD_COL_OUTER_PROD]);
    }
}

TEST(where_each_row_stood) {
    static float a[MOST * CD_N_COL], b[MOST * CD_N_COL];
    uint32_t from[MOST];
    for (size_t round = 0; round < ROUNDS / 10; round++) {
        const size_t n = 1 + below(MOST);
        bool used[MOST] = {false};
        draw(a, n);
        memcpy(b, a, sizeof a);
        cd_rows_order(a, n, from);
        for (size_t k = 0; k < n; k++) {
            float *was = b + from[k] * CD_N_COL;
            assert_true(from[k] < n && !used[from[k]]);
            used[from[k]] = true;
            cd_rows_order_blocks(was);
            assert_memory_equal(a + k * CD_N_COL, was, CD_N_COL * sizeof *a);
        }
    }
}

/* The columns of a store of six buffers, of which TVM shows five. */
static void show(float *row, float six[6][CD_BLOCK], size_t left_out) {
    memset(row, 0, CD_N_COL * sizeof *row);
    for (size_t k = 0, b = 0; k < 6; k++)
        if (k != left_out)
            memcpy(row + CD_COL_B0_READ + b++ * CD_BLOCK, six[k], CD_BLOCK * sizeof *row);
}

TEST(which_buffer_is_left_out_does_not_matter) {
    float six[6][CD_BLOCK], first[CD_N_COL], row[CD_N_COL];
    for (size_t k = 0; k < 6; k++) {
        for (size_t c = 0; c < CD_BLOCK; c++) six[k][c] = (float)(1 + below(9));
        six[k][LINES] = k < 2 ? 9 : 4; /* four with the key of the last */
        six[k][BYTES] = 7;
    }
    show(first, six, 5);
    cd_rows_order_blocks(first);
    for (size_t k = 2; k < 5; k++) {
        show(row, six, k);
        cd_rows_order_blocks(row);
        assert_memory_equal(row, first, sizeof row);
    }
    const float *b = first + CD_COL_B0_READ;
    assert_true(b[0] > 0 && b[CD_BLOCK] > 0); /* those of more lines are whole */
    assert_true(b[4 * CD_BLOCK + LINES] == 4 && b[4 * CD_BLOCK + BYTES] == 7 &&
                b[4 * CD_BLOCK] == 0);
    show(row, six, 5);
    memset(row + CD_COL_B0_READ + 4 * CD_BLOCK, 0, CD_BLOCK * sizeof *row);
    cd_rows_order_blocks(row); /* of four buffers none was left out */
    assert_true(row[CD_COL_B0_READ + 3 * CD_BLOCK] > 0 &&
                row[CD_COL_B0_READ + 4 * CD_BLOCK + LINES] == 0);
}

/* Sums of floats in another order differ in the last bits. */
TEST(last_bits_of_a_distance_do_not_matter) {
    float a[CD_N_COL] = {0}, b[CD_N_COL];
    float *x = a + CD_COL_B0_READ;
    x[LINES] = 3, x[BYTES] = 4, x[REUSE_BYTES] = 26.7512345F;
    memcpy(b, a, sizeof b);
    b[CD_COL_B0_READ + REUSE_BYTES] = 26.7512364F;
    cd_rows_order_blocks(a);
    cd_rows_order_blocks(b);
    assert_memory_equal(a, b, sizeof a);
    assert_close(x[REUSE_BYTES], 26.75, 1e-9, 0);
}

TESTS(NULL, NULL, any_order_gives_the_same_bits, where_each_row_stood,
      which_buffer_is_left_out_does_not_matter, last_bits_of_a_distance_do_not_matter)
