/* learner/inputs/tree_input.c as a graph. Doubles throughout, rounded to float where that file
 * does: a column that differs in its last digit could take the other side of a tree's cut. */
#include <math.h>

#include "features/rows/rows.h"
#include "learner/export/export_internal.h"

enum { TOP = 3 }; /* rows in a program vector */

/* ---- small pieces ---- */
const char *cd_export_cast(cd_export *x, const char *v, cd_onnx_type to) {
    cd_onnx_writer_attr_int(&x->f, "to", to);
    return CD_ONNX_WRITER_NODE(&x->f, "Cast", v);
}

const char *cd_export_concat(cd_export *x, const char *const *v, size_t n, int64_t axis) {
    cd_onnx_writer_attr_int(&x->f, "axis", axis);
    return cd_onnx_writer_node(&x->f, "Concat", v, n);
}

const char *cd_export_reshape(cd_export *x, const char *v, const int64_t *dim, size_t n) {
    return CD_ONNX_WRITER_NODE(&x->f, "Reshape", v, cd_onnx_writer_ints(&x->f, dim, n));
}

const char *cd_export_sum(cd_export *x, const char *v, int64_t axis) {
    const char *axes = cd_onnx_writer_ints(&x->f, &axis, 1);
    cd_onnx_writer_attr_int(&x->f, "keepdims", 1);
    return CD_ONNX_WRITER_NODE(&x->f, "ReduceSum", v, axes);
}

const char *cd_export_over(cd_export *x, const char *op, const char *v, int64_t axis) {
    cd_onnx_writer_attr_ints(&x->f, "axes", &axis, 1);
    cd_onnx_writer_attr_int(&x->f, "keepdims", 1);
    return CD_ONNX_WRITER_NODE(&x->f, op, v);
}

const char *cd_export_columns(cd_export *x, const char *v, const int64_t *c, size_t n) {
    const char *at = cd_onnx_writer_ints(&x->f, c, n);
    cd_onnx_writer_attr_int(&x->f, "axis", 1);
    return CD_ONNX_WRITER_NODE(&x->f, "Gather", v, at);
}

static const char *column(cd_export *x, const char *v, int64_t c) {
    return cd_export_columns(x, v, &c, 1);
}
static const char *two(cd_export *x, const char *op, const char *a, const char *b) {
    return CD_ONNX_WRITER_NODE(&x->f, op, a, b);
}
static const char *with(cd_export *x, const char *op, const char *a, double b) {
    return two(x, op, a, cd_onnx_writer_double(&x->f, b));
}
static const char *log2_of(cd_export *x, const char *v) {
    return with(x, "Div", CD_ONNX_WRITER_NODE(&x->f, "Log", v), M_LN2);
}
static const char *exp2_of(cd_export *x, const char *v) {
    return two(x, "Pow", cd_onnx_writer_double(&x->f, 2), v);
}
static const char *value(cd_export *x, const char *v) {
    return with(x, "Sub", exp2_of(x, with(x, "Min", v, 100)), 1);
}
const char *cd_export_log2p1(cd_export *x, const char *v) {
    return log2_of(x, with(x, "Add", with(x, "Max", v, 0), 1));
}

/* ---- rows ---- */
static const char *total(cd_export *x, int64_t from, int64_t step, size_t n) {
    int64_t c[16];
    for (size_t i = 0; i < n; i++) c[i] = from + (int64_t)i * step;
    return cd_export_log2p1(x, cd_export_sum(x, value(x, cd_export_columns(x, x->wide, c, n)), 1));
}

static const char *three(cd_export *x, int64_t from) {
    const int64_t c[] = {from, from + 1, from + 2};
    return cd_export_sum(x, cd_export_columns(x, x->wide, c, 3), 1);
}

/* What several members read is made here once. "rows" has as many rows as the program, so the index
 * is a Range over its shape. */
void cd_export_begin(cd_export *x) {
    cd_onnx_writer *f = &x->f;
    const int64_t shape[] = {-1, CD_N_COL}, one = 1, zero = 0;
    x->rows = cd_onnx_writer_input(f, "rows", CD_ONNX_F32, shape, 2);
    x->device = cd_onnx_writer_input(f, "device", CD_ONNX_I64, &one, 1);
    x->flop = cd_onnx_writer_input(f, "flop", CD_ONNX_F64, &one, 1);
    x->wide = cd_export_cast(x, x->rows, CD_ONNX_F64);
    const char *n =
        CD_ONNX_WRITER_NODE(f, "Gather", CD_ONNX_WRITER_NODE(f, "Shape", x->rows),
                            cd_onnx_writer_constant(f, NULL, CD_ONNX_I64, NULL, 0, &zero));
    x->index = CD_ONNX_WRITER_NODE(f, "Range", cd_onnx_writer_double(f, 0),
                                   cd_export_cast(x, n, CD_ONNX_F64), cd_onnx_writer_double(f, 1));
    x->outer = column(x, x->wide, CD_COL_OUTER_PROD);
    x->grid = three(x, CD_COL_BLOCK_X);
    x->threads = three(x, CD_COL_THREAD_X);
    x->total[0] = total(x, CD_COL_FLOAT_MAD, 1, 16);
    for (int k = 0; k < 4; k++)
        x->total[1 + k] = total(x, CD_COL_B0_BYTES + k, CD_COL_BUFFER_STRIDE, 5);
}

const char *cd_export_log_trips(cd_export *x) { return with(x, "Mul", x->outer, M_LN2); }

const char *cd_export_derived(cd_export *x) {
    if (x->derived) return x->derived;
    const char *const *t = x->total, *P = x->outer, *per_block = two(x, "Sub", P, x->grid);
    const char *const v[] = {t[0],
                             t[1],
                             t[2],
                             t[3],
                             t[4],
                             two(x, "Sub", t[0], t[1]),
                             two(x, "Sub", t[0], t[2]),
                             two(x, "Sub", t[1], t[2]),
                             two(x, "Sub", t[3], t[4]),
                             two(x, "Sub", t[0], P),
                             two(x, "Sub", per_block, x->threads),
                             per_block,
                             two(x, "Sub", P, column(x, x->wide, CD_COL_PARALLEL_PROD)),
                             two(x, "Sub", P, column(x, x->wide, CD_COL_UNROLL_PROD)),
                             two(x, "Sub", P, column(x, x->wide, CD_COL_VEC_PROD))};
    return x->derived =
               cd_export_cast(x, cd_export_concat(x, v, sizeof v / sizeof *v, 1), CD_ONNX_F32);
}

/* ---- program ---- */
/* (TOP, n_row): 1 where a row is the k-th in the order of input.c. Two rows compare by the first of
 * their keys that differs; the last key, the place, makes the order one of all rows. */
static const char *choice(cd_export *x) {
    cd_onnx_writer *f = &x->f;
    const double place[TOP] = {0, 1, 2};
    const int64_t as_column[] = {-1, 1}, as_row[] = {1, -1}, a = 1, b = 0, dim[] = {TOP, 1};
    const char *const keys[] = {
        x->total[0], x->outer, x->wide,
        CD_ONNX_WRITER_NODE(f, "Neg", cd_export_reshape(x, x->index, as_column, 2))};
    const char *key = cd_export_concat(x, keys, 4, 1);
    const char *sign = CD_ONNX_WRITER_NODE(
        f, "Sign",
        two(x, "Sub", CD_ONNX_WRITER_NODE(f, "Unsqueeze", key, cd_onnx_writer_ints(f, &a, 1)),
            CD_ONNX_WRITER_NODE(f, "Unsqueeze", key, cd_onnx_writer_ints(f, &b, 1))));
    const char *differ = CD_ONNX_WRITER_NODE(f, "Abs", sign);
    cd_onnx_writer_attr_int(f, "axis", 2);
    const char *first = CD_ONNX_WRITER_NODE(f, "ArgMax", differ);
    cd_onnx_writer_attr_int(f, "axis", 2);
    const char *before = with(x, "Max", CD_ONNX_WRITER_NODE(f, "GatherElements", sign, first), 0);
    const char *rank = cd_export_reshape(x, cd_export_sum(x, before, 0), as_row, 2);
    return cd_export_cast(
        x, two(x, "Equal", rank, cd_onnx_writer_constant(f, NULL, CD_ONNX_F64, dim, 2, place)),
        CD_ONNX_F32);
}

/* (1, 19) double: totals, ratios, work per unit. */
static const char *summary(cd_export *x) {
    static const int64_t others[] = {1, 2, 3, 4};
    const char *ops = x->total[0], *per_block = two(x, "Sub", ops, x->grid);
    const char *const units[] = {per_block, two(x, "Sub", per_block, x->threads),
                                 two(x, "Sub", ops, column(x, x->wide, CD_COL_PARALLEL_PROD)),
                                 two(x, "Sub", ops, column(x, x->wide, CD_COL_VEC_PROD))};
    const char *unit = cd_export_concat(x, units, 4, 1);
    const char *t =
        cd_export_log2p1(x, cd_export_sum(x, value(x, cd_export_concat(x, x->total, 5, 1)), 0));
    const char *sum =
        cd_export_sum(x, exp2_of(x, with(x, "Max", with(x, "Min", unit, 60), -60)), 0);
    const char *const all[] = {t,
                               two(x, "Sub", column(x, t, 0), cd_export_columns(x, t, others, 4)),
                               two(x, "Sub", column(x, t, 1), column(x, t, 2)),
                               two(x, "Sub", column(x, t, 3), column(x, t, 4)),
                               with(x, "Max", cd_export_over(x, "ReduceMax", unit, 0), -1e3),
                               log2_of(x, with(x, "Max", sum, 1e-18))};
    return cd_export_concat(x, all, 6, 1);
}

static const char *n_row(cd_export *x) {
    const int64_t dim[] = {1, 1};
    const char *last = cd_export_over(x, "ReduceMax", x->index, 0);
    return cd_export_cast(x, cd_export_reshape(x, with(x, "Add", last, 1), dim, 2), CD_ONNX_F32);
}

const char *cd_export_program(cd_export *x) {
    const int64_t flat[] = {1, TOP * CD_N_COL};
    if (x->program) return x->program;
    const char *const v[] = {cd_export_reshape(x, two(x, "MatMul", choice(x), x->rows), flat, 2),
                             cd_export_cast(x, summary(x), CD_ONNX_F32), n_row(x)};
    return x->program = cd_export_concat(x, v, 3, 1);
}

/* ---- matrices of trees ---- */
static const char *device_column(cd_export *x, bool each_row) {
    const int64_t dim[] = {1, 1};
    const char *d = cd_export_reshape(x, cd_export_cast(x, x->device, CD_ONNX_F32), dim, 2);
    if (!each_row) return d;
    return two(x, "Add", two(x, "Mul", column(x, x->rows, 0), cd_onnx_writer_float(&x->f, 0)), d);
}

const char *cd_export_matrix(cd_export *x, cd_tree_input_form form) {
    if (x->matrix[form]) return x->matrix[form];
    const char *v[3] = {x->rows, NULL, device_column(x, form == CD_TREE_INPUT_ROWS)};
    if (form == CD_TREE_INPUT_ROWS) v[1] = cd_export_derived(x);
    else if (form == CD_TREE_INPUT_SUMS) {
        v[0] = cd_export_cast(x, cd_export_sum(x, x->wide, 0), CD_ONNX_F32);
        v[1] = cd_export_over(x, "ReduceMax", x->rows, 0);
    } else {
        const char *const p[] = {cd_export_program(x), v[2]};
        return x->matrix[form] = cd_export_concat(x, p, 2, 1);
    }
    return x->matrix[form] = cd_export_concat(x, v, 3, 1);
}
