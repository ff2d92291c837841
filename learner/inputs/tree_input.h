/* tree_input -- what the trees see: rows of a program -> rows of the tree matrix.
 *
 *   ROWS     one matrix row per feature row: its 164 columns, CD_N_DERIVED sums
 *            and ratios over them, the device
 *   PROGRAM  one matrix row per program: the 3 rows with the most operations
 *            (zeros where there are fewer), totals and ratios, the number of
 *            rows, the device
 *
 *   SUMS     one matrix row per program: sum and maximum of each column over the rows,
 *            the device; the plain XGBoost that others are compared with
 *
 * Sums of logarithmic columns are taken of the values (not in SUMS), not of the logarithms:
 * log2(sum(2^x - 1) + 1). Both forms were chosen on validation parts, see
 * docs/internals/learner-choices.md. Bump CD_TREE_INPUT_VERSION with every change: a model file
 * carries it. Of version 1 the numbers are the same, but rows came in the order of TVM or of the
 * extractor, not in that of cd_rows_order. No state, any thread. */
#ifndef CD_TREE_INPUT_H
#define CD_TREE_INPUT_H
#include <stddef.h>
#include <stdint.h>

#define CD_TREE_INPUT_VERSION 2
#define CD_N_DERIVED          15

typedef enum { CD_TREE_INPUT_ROWS, CD_TREE_INPUT_PROGRAM, CD_TREE_INPUT_SUMS } cd_tree_input_form;

size_t cd_tree_input_width(cd_tree_input_form f); /* columns*/
/* Matrix rows that a program of n_row feature rows takes. */
size_t cd_tree_input_height(cd_tree_input_form f, size_t n_row);
/* x: (cd_tree_input_height, cd_tree_input_width) to fill; row: (n_row, 164), n_row >= 1. */
void cd_tree_input_fill(cd_tree_input_form f, const float *row, size_t n_row, uint32_t device,
                        float *x);
/* The CD_N_DERIVED sums and ratios of one row. */
void cd_tree_input_derived(const float *row, float out[CD_N_DERIVED]);
/* Natural logarithm of the row's trip count: the offset of a row's score. */
double cd_tree_input_log_trips(const float *row);
#endif
