/* Replays of the times that a run measured, and the rate at which data come into the caches of a
 * core. */
#ifndef RUN_REPLAY_H
#define RUN_REPLAY_H
#include <math.h>

#include "predictor/partition/run/network_run.h"

typedef enum rr_time { RR_PLACE, RR_ALONE, RR_WARM, RR_COOL } rr_time;

static double rr_time_of(const cd_network_run_node *n, rr_time which) {
    return which == RR_PLACE   ? n->place_s
           : which == RR_ALONE ? n->alone_s
           : which == RR_WARM  ? n->warm_s
                               : n->cool_s;
}

/* Makespan of the measured times on `workers` of one device. Nodes that did not run take 0 s,
 * because the measured passes leave them out too. */
static cdmpp_status rr_replay(const cd_network_loaded *l, const cd_network_run *r, rr_time which,
                              uint32_t workers, double *seconds, cdmpp_err *why) {
    const cd_network_graph *g = l->graph;
    const cd_replay_device device = {.name = "here",
                                     .workers = workers ? workers : 1,
                                     .policy = workers > 1 ? CD_REPLAY_CRITICAL : CD_REPLAY_ORDER};
    cd_replay_op *op = cd_mem_zalloc(g->n_node + 1, sizeof *op);
    cd_replay out = {0};
    cdmpp_status st = op ? CDMPP_OK : CD_FAIL(why, ENOMEM, "%u nodes", g->n_node);
    for (uint32_t k = 0; k < g->n_node && !st; k++) {
        const double t =
            r->node[k].from == CD_NETWORK_RUN_NOTHING ? 0 : rr_time_of(&r->node[k], which);
        op[k] = (cd_replay_op){.name = g->node[k].name,
                               .like = UINT32_MAX,
                               .seconds = t,
                               .first = g->node[k].first,
                               .n_after = g->node[k].n_after};
        if (isnan(t))
            st = CD_FAIL(why, ERANGE, "node %u (%.60s) has not been measured so", k,
                         g->node[k].name);
    }
    const cd_replay_net net = {.n_op = g->n_node,
                               .n_after = g->n_after,
                               .n_device = 1,
                               .op = op,
                               .after = g->after,
                               .device = &device};
    if (!st) st = cd_replay_run(&net, &out, why);
    if (!st) *seconds = out.makespan_s;
    cd_replay_free(&out);
    cd_mem_free(op);
    return st;
}

/* Bytes a second at which what operators read and write comes into the core's caches: of all nodes
 * together, over how much longer they take in place than alone and warm (node_cost.h:
 * refill_bytes_per_s). Infinity where they do not. */
static cdmpp_status rr_refill(const cd_network_loaded *l, const cd_network_run *r,
                              double *bytes_per_s, cdmpp_err *why) {
    double bytes = 0, longer = 0;
    for (uint32_t k = 0; k < r->n; k++) {
        if (r->node[k].from == CD_NETWORK_RUN_NOTHING) continue;
        if (isnan(r->node[k].warm_s))
            return CD_FAIL(why, ERANGE, "node %u (%.60s) has not been measured alone", k,
                           l->graph->node[k].name);
        bytes += (double)(l->graph->node[k].read_bytes + l->graph->node[k].write_bytes);
        longer += r->node[k].place_s - r->node[k].warm_s;
    }
    *bytes_per_s = longer > 0 ? bytes / longer : (double)INFINITY;
    return CDMPP_OK;
}
#endif
