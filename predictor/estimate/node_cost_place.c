/* What an operator takes in a network over what it takes alone.
 *
 * Records are of one program in a loop, its data warm, the fastest of a task kept. In a network the caches hold what others
 * used, a call goes through the executor, and nobody picks the lucky run. Of a device whose networks were measured: */
#include <string.h>

#include "predictor/estimate/node_cost_internal.h"

/* zen5: tenset-cpu's e2e.json (docs/results/replay-accuracy.md). lift: of the sums of measured best records to the medians of the five networks
 * that move more than half the last-level cache in a pass, least squares of relative errors: 1.13; without one network each
 * 1.11 to 1.15, and its error with that is what is reported. Smaller networks (an LSTM, DQN, an MLP) are at 1.00. call_s: TVM's
 * executor runs "__nop" in 0.17 us.
 * granite-rapids: bench_network_run on 22 networks and batches of training (docs/results/replay-live.md), sums of operators alone and warm to passes, least
 * mean of relative errors: 5.0 % of these, 3.6 % of the networks that predictions are judged by. A virtual machine's part
 * of 480 MB of last-level cache is not known: weights come from memory. */
static const struct {
    const char *device;
    double lift, call_s;
    double from;                /* networks that move more than this part of the last-level cache are lifted */
    double refill;              /* bytes/s at which weights come that were in the core's caches when it was measured alone; 0: none do */
} measured[] = {
    {"zen5-avx512", 1.13, 1.7e-7, 0.5, 0},
    {"zen5-avx2", 1.13, 1.7e-7, 0.5, 0},
    {"granite-rapids", 1.074, 0, 0, 7.66e9},
};
/* Weights of more than this many times the core's last own cache stream from beyond it alone, too. */
static const double stays = 2;

cd_node_cost_scaling_law cd_node_cost_law(const char *name, const cd_device *d, double traffic) {
    size_t k = 0;
    if (d) name = d->name; /* whatever alias was asked for */
    while (name && k < sizeof measured / sizeof *measured && strcmp(name, measured[k].device) != 0) k++;
    if (!name || k == sizeof measured / sizeof *measured) return (cd_node_cost_scaling_law){.lift = 1};
    const bool large = d && d->l3_kb > 0 && traffic > measured[k].from * d->l3_kb * 1024;
    const double own = d && d->l2_kb > 0 ? stays * d->l2_kb * 1024 : 0;
    return (cd_node_cost_scaling_law){.lift = large ? measured[k].lift : 1, .call_s = measured[k].call_s, .refill_bytes_per_s = measured[k].refill, .stays_bytes = own};
}

static double refill_s(const cd_node_cost_scaling_law *l, int64_t weight_bytes) {
    const bool stayed = weight_bytes > 0 && (double)weight_bytes < l->stays_bytes;
    return stayed && l->refill_bytes_per_s > 0 ? (double)weight_bytes / l->refill_bytes_per_s : 0;
}

double cd_node_cost_law_s(const cd_node_cost_scaling_law *l, double seconds, int64_t weight_bytes) {
    return seconds * l->lift + (l->call_s + refill_s(l, weight_bytes));
}

static void change(cd_node_cost_entry *n, double lift, double call_s) {
    n->seconds = n->seconds * lift + call_s;
    n->low_s = n->low_s * lift + call_s;
    n->high_s = n->high_s * lift + call_s;
}

/* Of a table of which rows are picked no more comes than those. */
static int64_t weights_read(const cd_network_node *n, const cd_node_cost_entry *c) {
    const bool picks = n->op && (!strncmp(n->op, "Gather", 6) || !strncmp(n->op, "Embedding", 9));
    return picks && c->bytes >= 0 && c->bytes < n->weight_bytes ? c->bytes : n->weight_bytes;
}

void cd_node_cost_in_place(cd_node_cost *c, const cd_network_graph *g, const char *name, const cd_device *d, double traffic) {
    const cd_node_cost_scaling_law l = cd_node_cost_law(name, d, traffic);
    for (uint32_t i = 0; i < c->n; i++)
        if (g->node[i].kind == CD_NODE_TASK && (c->node[i].source == CD_COST_MODEL || c->node[i].source == CD_COST_RECORD))
            change(&c->node[i], l.lift, l.call_s + refill_s(&l, weights_read(&g->node[i], &c->node[i])));
}

void cd_node_cost_refill(cd_node_cost *c, const cd_network_graph *g, double bytes_per_s) {
    for (uint32_t i = 0; i < c->n && bytes_per_s > 0; i++)
        if (g->node[i].kind == CD_NODE_TASK && c->node[i].moved > 0 && (c->node[i].source == CD_COST_MODEL || c->node[i].source == CD_COST_RECORD))
            change(&c->node[i], 1, (double)c->node[i].moved / bytes_per_s);
}
