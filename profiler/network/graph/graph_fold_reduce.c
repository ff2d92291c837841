/* Reductions of known content: ReduceProd over a shape is how many exporters ask for a size. */
#include <string.h>

#include "profiler/network/graph/graph_call_internal.h"

enum { SUM, MEAN, PROD, MIN, MAX, KINDS };
static const char *const names[KINDS] = {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMin",
                                         "ReduceMax"};

static double real_step(int kind, double a, double b) {
    switch (kind) {
    case PROD: return a * b;
    case MIN: return a < b ? a : b;
    case MAX: return a > b ? a : b;
    default: return a + b;
    }
}

static int64_t int_step(int kind, int64_t a, int64_t b) {
    switch (kind) {
    case PROD: return (int64_t)((uint64_t)a * (uint64_t)b);
    case MIN: return a < b ? a : b;
    case MAX: return a > b ? a : b;
    default: return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

/* Element of the result that operand element `at` belongs to. */
static int64_t target(const cd_graph_shape *x, uint32_t gone, const int64_t *at) {
    int64_t k = 0;
    for (uint32_t d = 0; d < x->rank; d++)
        if (!(gone >> d & 1)) k = k * x->dim[d] + at[d];
    return k;
}

static uint32_t reduced(const cd_graph_call *c) {
    const cd_graph_attr *a = cd_graph_call_attr(c, "axes");
    uint32_t mask = 0;
    for (uint32_t i = 0; a && i < a->n; i++) mask |= 1U << a->ints[i];
    return mask;
}

/* One pass over the operand: each element goes to the element of the result that it belongs to.
 * `seen` tells the first one, so no identity is needed. A mean of integers is truncated, as C
 * division does. */
cdmpp_status cd_graph_fold_reduce(cd_graph_call *c, cdmpp_err *err) {
    const cd_graph_tensor *x = cd_graph_call_input(c, 0);
    const int64_t n = cd_graph_shape_elements(&x->shape),
                  m = cd_graph_shape_elements(&c->out[0].shape);
    const uint32_t gone = reduced(c);
    int64_t *v, at[CD_GRAPH_MAX_RANK] = {0};
    double *f;
    int kind = 0;
    while (kind < KINDS && strcmp(names[kind], c->op)) kind++;
    if (kind == KINDS || n == 0 || m == 0) return CDMPP_OK;
    CD_TRY(cd_graph_call_content(c, 0, &v, &f, err));
    bool *seen = CD_NEWN(&c->g->arena, bool, (size_t)(v || f ? m : 0) + 1);
    if (!seen) return CD_FAIL(err, ENOMEM, "a reduction");
    for (int64_t k = 0; k < n && (v || f); k++, cd_graph_shape_next(&x->shape, at)) {
        const int64_t j = target(&x->shape, gone, at);
        if (f)
            f[j] = seen[j] ? cd_graph_type_round(x->dtype, real_step(kind, f[j], x->fvalue[k]))
                           : x->fvalue[k];
        if (v) v[j] = seen[j] ? int_step(kind, v[j], x->value[k]) : x->value[k];
        seen[j] = true;
    }
    for (int64_t k = 0; k < m && kind == MEAN; k++) {
        if (f) f[k] = cd_graph_type_round(x->dtype, f[k] / ((double)n / (double)m));
        if (v) v[k] /= n / m;
    }
    for (int64_t k = 0; k < m && v; k++) v[k] = cd_graph_type_wrap(x->dtype, v[k]);
    return CDMPP_OK;
}
