/* How many bytes a node moves, and how long that keeps the memory busy. */
#include <math.h>
#include <string.h>

#include "predictor/estimate/estimate_internal.h"

static int64_t bytes_of(const cd_te_op *op) {
    int64_t n = cd_expr_dtype_bytes(op->dtype[0]);
    for (uint32_t k = 0; k < op->rank; k++)
        if (__builtin_mul_overflow(n, op->shape[k], &n)) return -1;
    return n;
}

/* Inputs are read once, results written once; what lies between is the schedule's own business. */
static int64_t of_dag(const cd_te_dag *d, int64_t *result) {
    int64_t all = 0;
    *result = 0;
    for (uint32_t i = 0; i < d->n_op; i++) {
        const cd_te_op *op = &d->op[i];
        if (!op->is_placeholder && !op->is_output) continue;
        const int64_t n = bytes_of(op);
        if (n < 0 || __builtin_add_overflow(all, n, &all)) return *result = -1;
        if (op->is_output && !op->is_placeholder) *result += n;
    }
    return all;
}

int64_t cd_node_cost_moved(const cd_network_graph *g, const cd_task_registry *t, uint32_t node,
                           int64_t *result) {
    const cd_network_node *n = &g->node[node];
    int64_t all;
    *result = n->write_bytes;
    if (n->read_bytes >= 0 && n->write_bytes >= 0)
        return __builtin_add_overflow(n->read_bytes, n->write_bytes, &all) ? -1 : all;
    const cd_task *task =
        t && n->key ? cd_task_registry_find(t, (cd_str){n->key, strlen(n->key)}) : NULL;
    if (!task || !task->dag) return -1;
    all = of_dag(task->dag, result);
    return all;
}

void cd_node_cost_at_least(cd_node_cost_entry *n) {
    const double s = n->least_s;
    if (!(s > 0) || (n->source != CD_COST_MODEL && n->source != CD_COST_LIBRARY)) return;
    n->low_s = n->low_s < s ? s : n->low_s; /* NaN stays */
    if (n->seconds < s) {
        n->high_s *= s / n->seconds;
        n->seconds = s;
        n->flags |= CD_MODEL_OUT_OF_RANGE;
        n->reason |= CD_UNLIKE_PEAK;
        if (!n->unlike) n->unlike = cd_trained_on_reason(CD_UNLIKE_BIT_PEAK);
    }
}

double cd_node_cost_share(int64_t bytes, double seconds, const cd_device *d) {
    if (bytes <= 0 || !d || !(d->bandwidth_gb_s > 0) || !(seconds > 0)) return 0;
    return fmin(1, (double)bytes / (d->bandwidth_gb_s * 1e9 * seconds));
}
