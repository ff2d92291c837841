/* Gradients of products: two products each, with the operands transposed in place. */
#include "profiler/network/gradient/autodiff_internal.h"

/* y = alpha op(A) op(B) + beta C: dA = alpha dy op(B)', dB = alpha op(A)' dy, each transposed as
 * its operand was. */
static void gemm(cd_autodiff_builder *b) {
    const bool ta = cd_graph_node_int(b->n, "transA", 0) != 0,
               tb = cd_graph_node_int(b->n, "transB", 0) != 0;
    const double alpha = cd_graph_node_float(b->n, "alpha", 1),
                 beta = cd_graph_node_float(b->n, "beta", 1);
    const uint32_t dy = cd_autodiff_output_grad(b, 0), x = cd_autodiff_input(b, 0),
                   y = cd_autodiff_input(b, 1);
    if (cd_autodiff_needs_grad(b, 2))
        cd_autodiff_accumulate(
            b, 2,
            beta == 1
                ? dy
                : cd_autodiff_binary_scalar(
                      b, "Mul",
                      cd_autodiff_sum_to(b, dy, cd_autodiff_shape(b, cd_autodiff_input(b, 2))),
                      beta));
    const uint32_t d = alpha == 1 || !(cd_autodiff_needs_grad(b, 0) || cd_autodiff_needs_grad(b, 1))
                           ? dy
                           : cd_autodiff_binary_scalar(b, "Mul", dy, alpha);
    if (cd_autodiff_needs_grad(b, 1))
        cd_autodiff_accumulate(
            b, 1, tb ? cd_autodiff_gemm(b, d, x, true, ta) : cd_autodiff_gemm(b, x, d, !ta, false));
    if (cd_autodiff_needs_grad(b, 0))
        cd_autodiff_accumulate(
            b, 0, ta ? cd_autodiff_gemm(b, y, d, tb, true) : cd_autodiff_gemm(b, d, y, false, !tb));
}

/* [.., M, N] as [rows, N]. */
static uint32_t rows(cd_autodiff_builder *b, uint32_t x) {
    const cd_graph_shape s = *cd_autodiff_shape(b, x);
    if (b->st || !s.rank) return x;
    const int64_t k = s.dim[s.rank - 1];
    const cd_graph_shape two = {2, {k ? cd_graph_shape_elements(&s) / k : 0, k}};
    return cd_autodiff_reshape(b, x, &two);
}

/* With dimensions of 1 where a vector has none. */
static uint32_t matrix(cd_autodiff_builder *b, uint32_t x, bool row) {
    const cd_graph_shape s = *cd_autodiff_shape(b, x);
    const cd_graph_shape two = {2, {row ? 1 : s.dim[0], row ? s.dim[0] : 1}};
    return s.rank == 1 ? cd_autodiff_reshape(b, x, &two) : x;
}

/* A matrix for all batches: its gradient is one product over all rows. */
static void one_matrix(cd_autodiff_builder *b, uint32_t x, uint32_t y, uint32_t dy) {
    const cd_graph_shape sx = *cd_autodiff_shape(b, x),
                         sa = *cd_autodiff_shape(b, cd_autodiff_input(b, 0)),
                         sb = *cd_autodiff_shape(b, cd_autodiff_input(b, 1));
    const uint32_t d = rows(b, dy);
    if (cd_autodiff_needs_grad(b, 1))
        cd_autodiff_accumulate(
            b, 1, cd_autodiff_reshape(b, cd_autodiff_gemm(b, rows(b, x), d, true, false), &sb));
    if (cd_autodiff_needs_grad(b, 0))
        cd_autodiff_accumulate(
            b, 0,
            cd_autodiff_reshape(
                b, cd_autodiff_reshape(b, cd_autodiff_gemm(b, d, y, false, true), &sx), &sa));
}

/* Vectors get a dimension of 1, which dy needs too. Batches that broadcast are summed. */
static void matmul(cd_autodiff_builder *b) {
    const cd_graph_shape sa = *cd_autodiff_shape(b, cd_autodiff_input(b, 0)),
                         sb = *cd_autodiff_shape(b, cd_autodiff_input(b, 1));
    const uint32_t x = matrix(b, cd_autodiff_input(b, 0), true),
                   y = matrix(b, cd_autodiff_input(b, 1), false);
    cd_graph_shape full = *cd_autodiff_shape(b, cd_autodiff_output(b, 0));
    if (sb.rank == 1) full.dim[full.rank++] = 1;
    if (sa.rank == 1) { /* a row that the product lost */
        const int64_t last = full.dim[full.rank - 1];
        full.dim[full.rank - 1] = 1;
        full.dim[full.rank++] = last;
    }
    const uint32_t dy = cd_autodiff_reshape(b, cd_autodiff_output_grad(b, 0), &full);
    if (cd_autodiff_shape(b, y)->rank == 2) {
        one_matrix(b, x, y, dy);
        return;
    }
    if (cd_autodiff_needs_grad(b, 1)) {
        const cd_graph_shape s = *cd_autodiff_shape(b, y);
        cd_autodiff_accumulate(
            b, 1,
            cd_autodiff_reshape(
                b,
                cd_autodiff_sum_to(
                    b, cd_autodiff_binary(b, "MatMul", cd_autodiff_swap_last(b, x), dy), &s),
                &sb));
    }
    if (cd_autodiff_needs_grad(b, 0)) {
        const cd_graph_shape s = *cd_autodiff_shape(b, x);
        cd_autodiff_accumulate(
            b, 0,
            cd_autodiff_reshape(
                b,
                cd_autodiff_sum_to(
                    b, cd_autodiff_binary(b, "MatMul", dy, cd_autodiff_swap_last(b, y)), &s),
                &sa));
    }
}

const cd_autodiff_rule cd_autodiff_rules_matmul[] = {
    {"Gemm", gemm}, {"MatMul", matmul}, {NULL, NULL}};
