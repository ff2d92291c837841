/* Rows of features as rows of a matrix for trees. A tree splits one column at a time, so sums and
 * ratios of columns that it could only approximate by many splits are columns of their own. */
#include "learner/inputs/tree_input.h"

#include <math.h>
#include <string.h>

#include "features/rows/rows.h"

enum {
    TOP = 3,     /* rows of the PROGRAM form */
    N_TOTAL = 5, /* operations, bytes, unique bytes, lines, unique lines */
    N_PROGRAM = N_TOTAL + 4 + 2 + 8,
    /* columns, see features/rows/leaf_cols.def */
    OPS = 0,
    N_OPS = 16,
    UNROLL_PROD = 28,
    VEC_PROD = 17,
    PAR_PROD = 39,
    GRID = 50,
    THREAD = 53,
    BUFFER = 57,
    BUFFER_LEN = 18,
    BYTES = 3,
    OUTER = 161
};

size_t cd_tree_input_width(cd_tree_input_form f) {
    if (f == CD_TREE_INPUT_SUMS) return 2 * CD_N_COL + 1;
    return f == CD_TREE_INPUT_ROWS ? CD_N_COL + CD_N_DERIVED + 1 : TOP * CD_N_COL + N_PROGRAM + 2;
}

size_t cd_tree_input_height(cd_tree_input_form f, size_t n_row) {
    return f == CD_TREE_INPUT_ROWS ? n_row : 1;
}

double cd_tree_input_log_trips(const float *row) { return (double)row[OUTER] * M_LN2; }

/* The value behind a logarithmic column; the limit keeps columns of damaged input from giving
 * infinity. */
static double value(double x) { return exp2(fmin(x, 100)) - 1; }
static double log2p1(double v) { return log2(fmax(v, 0) + 1); }

/* Totals of one row, as logarithms. */
static void totals(const float *r, double t[N_TOTAL]) {
    double sum = 0;
    for (int c = OPS; c < OPS + N_OPS; c++) sum += value((double)r[c]);
    t[0] = log2p1(sum);
    for (int k = 0; k < 4; k++) {
        sum = 0;
        for (int b = 0; b < 5; b++) sum += value((double)r[BUFFER + b * BUFFER_LEN + BYTES + k]);
        t[1 + k] = log2p1(sum);
    }
}

static double log_grid(const float *r) {
    return (double)r[GRID] + (double)r[GRID + 1] + (double)r[GRID + 2];
}
static double log_threads(const float *r) {
    return (double)r[THREAD] + (double)r[THREAD + 1] + (double)r[THREAD + 2];
}

void cd_tree_input_derived(const float *r, float out[CD_N_DERIVED]) {
    const double P = (double)r[OUTER], grid = log_grid(r);
    double t[N_TOTAL];
    totals(r, t);
    const double derived[CD_N_DERIVED] = {t[0],
                                          t[1],
                                          t[2],
                                          t[3],
                                          t[4],
                                          t[0] - t[1],
                                          t[0] - t[2],
                                          t[1] - t[2],
                                          t[3] - t[4],
                                          t[0] - P,
                                          P - grid - log_threads(r),
                                          P - grid,
                                          P - (double)r[PAR_PROD],
                                          P - (double)r[UNROLL_PROD],
                                          P - (double)r[VEC_PROD]};
    for (int i = 0; i < CD_N_DERIVED; i++) out[i] = (float)derived[i];
}

static void fill_row(const float *r, uint32_t device, float *x) {
    memcpy(x, r, CD_N_COL * sizeof *x);
    cd_tree_input_derived(r, x + CD_N_COL);
    x[CD_N_COL + CD_N_DERIVED] = (float)device;
}

/* ---- PROGRAM ---- */
typedef struct {
    double ops;
    const float *row;
} ranked;

/* More operations first, then more trips, then the larger row as a sequence of
 * numbers: the order of the rows in the program must not matter. */
static int before(const ranked *a, const ranked *b) {
    if (a->ops != b->ops) return a->ops > b->ops;
    if (a->row[OUTER] != b->row[OUTER]) return a->row[OUTER] > b->row[OUTER];
    for (int c = 0; c < CD_N_COL; c++)
        if (a->row[c] != b->row[c]) return a->row[c] > b->row[c];
    return 0;
}

static void insert(ranked top[TOP], int *n, ranked r) {
    int at = *n;
    while (at > 0 && before(&r, &top[at - 1])) at--;
    if (at == TOP) return;
    const int last = *n < TOP ? (*n)++ : TOP - 1;
    for (int k = last; k > at; k--) top[k] = top[k - 1];
    top[at] = r;
}

/* Operations per block, per thread, per parallel and per vector lane. */
static void per_unit(const float *r, double ops, double u[4]) {
    const double grid = log_grid(r);
    u[0] = ops - grid;
    u[1] = ops - grid - log_threads(r);
    u[2] = ops - (double)r[PAR_PROD];
    u[3] = ops - (double)r[VEC_PROD];
}

static void program_columns(const double sum[N_TOTAL], const double unit_max[4],
                            const double unit_sum[4], float *x) {
    double t[N_TOTAL];
    for (int k = 0; k < N_TOTAL; k++) *x++ = (float)(t[k] = log2p1(sum[k]));
    for (int k = 1; k < N_TOTAL; k++) *x++ = (float)(t[0] - t[k]);
    *x++ = (float)(t[1] - t[2]);
    *x++ = (float)(t[3] - t[4]);
    for (int k = 0; k < 4; k++) *x++ = (float)unit_max[k];
    for (int k = 0; k < 4; k++) *x++ = (float)log2(fmax(unit_sum[k], 1e-18));
}

/* One pass: totals over all rows, and the three rows with the most operations. */
static void fill_program(const float *row, size_t n_row, uint32_t device, float *x) {
    ranked top[TOP];
    double sum[N_TOTAL] = {0}, unit_max[4] = {-1e3, -1e3, -1e3, -1e3}, unit_sum[4] = {0};
    int n_top = 0;
    for (size_t i = 0; i < n_row; i++) {
        const float *r = row + i * CD_N_COL;
        double t[N_TOTAL], u[4];
        totals(r, t);
        per_unit(r, t[0], u);
        for (int k = 0; k < N_TOTAL; k++) sum[k] += value(t[k]);
        for (int k = 0; k < 4; k++) {
            unit_max[k] = fmax(unit_max[k], u[k]);
            unit_sum[k] += exp2(fmax(-60, fmin(u[k], 60)));
        }
        insert(top, &n_top, (ranked){t[0], r});
    }
    memset(x, 0, cd_tree_input_width(CD_TREE_INPUT_PROGRAM) * sizeof *x);
    for (int k = 0; k < n_top; k++) memcpy(x + k * CD_N_COL, top[k].row, CD_N_COL * sizeof *x);
    x += TOP * CD_N_COL;
    program_columns(sum, unit_max, unit_sum, x);
    x[N_PROGRAM] = (float)n_row;
    x[N_PROGRAM + 1] = (float)device;
}

/* As TenSet's own XGBoost model has it: of logarithms, not of values. */
static void fill_sums(const float *row, size_t n_row, uint32_t device, float *x) {
    for (size_t c = 0; c < CD_N_COL; c++) {
        double sum = 0, max = -INFINITY;
        for (size_t i = 0; i < n_row; i++) {
            sum += (double)row[i * CD_N_COL + c];
            max = fmax(max, (double)row[i * CD_N_COL + c]);
        }
        x[c] = (float)sum;
        x[CD_N_COL + c] = (float)max;
    }
    x[2 * CD_N_COL] = (float)device;
}

void cd_tree_input_fill(cd_tree_input_form f, const float *row, size_t n_row, uint32_t device,
                        float *x) {
    const size_t width = cd_tree_input_width(f);
    if (f == CD_TREE_INPUT_PROGRAM) fill_program(row, n_row, device, x);
    else if (f == CD_TREE_INPUT_SUMS) fill_sums(row, n_row, device, x);
    else
        for (size_t i = 0; i < n_row; i++) fill_row(row + i * CD_N_COL, device, x + i * width);
}
