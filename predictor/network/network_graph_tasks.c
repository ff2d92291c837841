/* A network of a task file as a graph: its tasks one behind the other, for nothing is known of what
 * needs what. */
#include <stdio.h>

#include "predictor/network/network.h"

/* Bytes of the arguments that are not results, and of those that are; -1: too many to count. */
static void bytes_of(const cd_te_dag *dag, int64_t *reads, int64_t *writes) {
    *reads = *writes = 0;
    for (uint32_t i = 0; i < dag->n_op; i++) {
        const cd_te_op *o = &dag->op[i];
        int64_t *into = o->is_placeholder ? reads : o->is_output ? writes : NULL;
        for (uint32_t k = 0; into && *into >= 0 && k < o->n_out; k++) {
            int64_t n = (int64_t)cd_expr_dtype_bytes(o->dtype[k]);
            for (uint32_t d = 0; d < o->rank; d++)
                if (__builtin_mul_overflow(n, o->shape[d], &n)) n = -1, d = o->rank - 1;
            if (n < 0 || __builtin_add_overflow(*into, n, into)) *into = -1;
        }
    }
}

static cdmpp_status add_task(cd_network_builder *m, const cd_task *task, int64_t weight,
                             uint32_t *id, cdmpp_err *err) {
    const bool named = task->desc && task->desc[0];
    char name[128];
    snprintf(name, sizeof name, "%s", named ? task->desc : task->workload_key);
    cd_network_node n = cd_network_node_init(name, named ? task->desc : "", CD_NODE_TASK);
    n.key = task->workload_key;
    n.repeat = weight;
    if (task->dag) {
        if (cd_task_flop(task) >= 0) n.flop = cd_task_flop(task);
        bytes_of(task->dag, &n.read_bytes, &n.write_bytes);
    }
    return cd_network_builder_node(m, &n, id, err);
}

cdmpp_status cd_network_graph_of_network(const cd_task_registry *t, const cd_network *w,
                                         cd_network_graph **out, cdmpp_err *err) {
    cd_network_builder *m = NULL;
    CD_TRY(cd_network_builder_new(w->name, &m, err));
    const int64_t batch = cd_network_alias_batch(w->name);
    cd_network_builder_graph(m)->batch = batch > 0 ? batch : 0;
    cdmpp_status st = CDMPP_OK;
    for (uint32_t i = 0, last = 0, id = 0; !st && i < w->n; i++, last = id) {
        st = add_task(m, cd_task_registry_at(t, w->task[i]), w->weight[i], &id, err);
        if (!st && i) st = cd_network_builder_edge(m, last, id, err);
    }
    if (!st) st = cd_network_builder_finish(m, out, err);
    cd_network_builder_free(m);
    return st;
}
