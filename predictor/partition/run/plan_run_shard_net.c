/* A loaded network in the form that the split planner takes: groups become operators, buffers
 * become tensors. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predictor/partition/run/plan_run_internal.h"

/* The group that writes each buffer. Groups without a definition count too: the readers of their
 * buffer must come after them. */
static cdmpp_status find_makers(const cd_workload *w, cd_arena *a, uint32_t **out, cdmpp_err *err) {
    uint32_t *from = *out = CD_NEWN(a, uint32_t, w->n_buffer + 1);
    if (!from) return CD_FAIL(err, ENOMEM, "%u tensors", w->n_buffer);
    for (uint32_t k = 0; k < w->n_buffer; k++) from[k] = CD_SHARD_NET_OUTSIDE;
    for (uint32_t g = 0; g < w->n_group; g++) from[w->group[g].write] = g;
    return CDMPP_OK;
}

static cdmpp_status name_of(const cd_network_loaded *l, uint32_t k, uint32_t from, cd_arena *a,
                            const char **out, cdmpp_err *err) {
    const cd_workload *w = l->work;
    const uint32_t t = w->buffer[k].tensor;
    char s[32];
    const char *name = from != CD_SHARD_NET_OUTSIDE ? l->graph->node[from].name
                       : t != CD_GRAPH_NONE         ? w->graph->tensor[t].name
                                                    : NULL;
    if (!name || !name[0]) {
        snprintf(s, sizeof s, "tensor%u", k);
        name = s;
    }
    *out = cd_str_dup(a, (cd_str){name, strlen(name)});
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "name of a tensor");
}

/* A constant is a tensor that no group makes and whose value the graph fixes; a constant output of
 * the network is not compared. */
static cdmpp_status make_tensors(const cd_network_loaded *l, cd_arena *a, cd_shard_net *out,
                                 cdmpp_err *err) {
    const cd_workload *w = l->work;
    cd_shard_net_tensor *v = CD_NEWN(a, cd_shard_net_tensor, w->n_buffer + 1);
    uint32_t *from;
    if (!v) return CD_FAIL(err, ENOMEM, "%u tensors", w->n_buffer);
    CD_TRY(find_makers(w, a, &from, err));
    for (uint32_t k = 0; k < w->n_buffer; k++) {
        const cd_workload_buffer *b = &w->buffer[k];
        v[k] = (cd_shard_net_tensor){.rank = b->shape.rank,
                                     .shape = b->shape.dim,
                                     .element_bytes = (uint32_t)cd_expr_dtype_bytes(b->dtype),
                                     .from = from[k],
                                     .constant = from[k] == CD_SHARD_NET_OUTSIDE &&
                                                 (b->is_const || !isnan(b->value))};
        CD_TRY(name_of(l, k, from[k], a, &v[k].name, err));
    }
    for (uint32_t k = 0; k < w->graph->n_output; k++)
        if (w->output[k] < w->n_buffer && !v[w->output[k]].constant) v[w->output[k]].result = true;
    out->n_tensor = w->n_buffer;
    out->tensor = v;
    return CDMPP_OK;
}

static cdmpp_status make_op(const cd_network_loaded *l, uint32_t k, cd_arena *a, cd_shard_net_op *o,
                            cdmpp_err *err) {
    const cd_workload *w = l->work;
    const cd_workload_group *g = &w->group[k];
    const cd_task *t =
        g->task == CD_GRAPH_NONE ? NULL : cd_task_registry_at(w->tasks, w->task[g->task].task);
    uint32_t *arg = CD_NEWN(a, uint32_t, g->n_read + 1);
    if (!arg) return CD_FAIL(err, ENOMEM, "operators");
    for (uint32_t i = 0; i < g->n_read; i++) arg[i] = g->read[i];
    arg[g->n_read] = g->write;
    *o = (cd_shard_net_op){.name = l->graph->node[k].name,
                           .type = l->graph->node[k].op,
                           .key = t ? t->workload_key : NULL,
                           .dag = t ? t->dag : NULL,
                           .why = l->graph->node[k].why,
                           .n_arg = g->n_read + 1,
                           .arg = arg,
                           .pin = UINT32_MAX};
    /* several results: the others come with it */
    if (o->dag && o->dag->n_arg != o->n_arg) o->dag = NULL;
    return CDMPP_OK;
}

cdmpp_status cd_plan_run_shard_net(const cd_network_loaded *l, cd_arena *a, cd_shard_net *out,
                                   cdmpp_err *err) {
    const uint32_t n = l->work->n_group;
    cd_shard_net_op *op = CD_NEWN(a, cd_shard_net_op, n + 1);
    *out = (cd_shard_net){.name = l->graph->name, .batch = l->graph->batch, .n_op = n, .op = op};
    if (!op) return CD_FAIL(err, ENOMEM, "%u operators", n);
    CD_TRY(make_tensors(l, a, out, err));
    for (uint32_t k = 0; k < n; k++) CD_TRY(make_op(l, k, a, &op[k], err));
    return CDMPP_OK;
}

const struct cd_workload_buffer *cd_plan_exec_buffer(const cd_network_loaded *l, uint32_t tensor) {
    return &l->work->buffer[tensor];
}
size_t cd_plan_exec_element_size(const cd_network_loaded *l, uint32_t tensor) {
    return cd_expr_dtype_bytes(l->work->buffer[tensor].dtype);
}
