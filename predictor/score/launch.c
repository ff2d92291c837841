/* The launch of a program from its feature rows and its task. */
#include "predictor/score/launch.h"

#include <math.h>

static double argument_bytes(const cd_te_dag *dag) {
    double sum = 0;
    for (uint32_t i = 0; i < dag->n_arg; i++) {
        const cd_te_op *op = &dag->op[dag->tensor_op[dag->arg[i]]];
        double n = cd_expr_dtype_bytes(op->dtype[dag->arg[i] - op->first_tensor]);
        for (uint32_t k = 0; k < op->rank; k++) n *= (double)op->shape[k];
        sum += n;
    }
    return sum;
}

/* The three extents from column c on; columns hold log2(1 + extent). */
static double extents(const float *x, size_t c) {
    double n = 1;
    for (size_t k = 0; k < 3; k++) n *= fmax(1, round(exp2((double)x[c + k]) - 1));
    return n;
}

void cd_launch_of(const cd_task *task, const cd_rows *rows, cd_launch *out) {
    const double flop = cd_task_flop(task);
    *out = (cd_launch){.flop = flop >= 0 ? flop : (double)NAN, .bytes = argument_bytes(task->dag)};
    double most = 0;
    for (uint32_t i = 0; i < rows->n_row; i++) {
        const float *x = rows->row + (size_t)i * CD_N_COL;
        const double blocks = extents(x, CD_COL_BLOCK_X), threads = extents(x, CD_COL_THREAD_X);
        if (x[CD_COL_IS_GPU] <= 0 || blocks * threads <= most) continue;
        most = blocks * threads;
        out->blocks = blocks;
        out->block_threads = threads;
    }
}
