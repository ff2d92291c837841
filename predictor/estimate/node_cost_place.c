/* What an operator takes in a network over what it takes alone, by the fit of its device (network_cost.h). */
#include <math.h>
#include <string.h>

#include "predictor/estimate/estimate_internal.h"

/* Weights of more than this many times the core's last own cache stream from beyond it alone, too. */
static const double stays = 2;

cd_node_cost_scaling_law cd_node_cost_law(const cd_network_cost *costs, const char *name, const cd_device *d, double traffic) {
    const cd_network_cost_fit *f = cd_network_cost_find(costs, name, d);
    const double own = d && d->l2_kb > 0 ? stays * d->l2_kb * 1024 : 0;
    if (!f) return (cd_node_cost_scaling_law){.lift = 1, .stays_bytes = own};
    const bool large = f->lift_from <= 0 || traffic > f->lift_from * cd_network_cost_cache(d);
    return (cd_node_cost_scaling_law){.lift = large ? f->lift : 1, .call_s = f->call_s, .refill_bytes_per_s = f->refill_bytes_per_s, .stays_bytes = own};
}

static double refilled(const cd_node_cost_scaling_law *l, int64_t weight_bytes) {
    return weight_bytes > 0 && (double)weight_bytes < l->stays_bytes ? (double)weight_bytes : 0;
}

static double refill_s(const cd_node_cost_scaling_law *l, int64_t weight_bytes) {
    return l->refill_bytes_per_s > 0 ? refilled(l, weight_bytes) / l->refill_bytes_per_s : 0;
}

double cd_node_cost_law_s(const cd_node_cost_scaling_law *l, double seconds, int64_t weight_bytes) {
    return seconds * l->lift + (l->call_s + refill_s(l, weight_bytes));
}

static void change(cd_node_cost_entry *n, double lift, double call_s) {
    n->seconds = n->seconds * lift + call_s;
    n->low_s = n->low_s * lift + call_s;
    n->high_s = n->high_s * lift + call_s;
    cd_node_cost_at_least(n); /* a lift may be below 1 */
}

/* Of a table of which rows are picked no more comes than those. */
static int64_t weights_read(const cd_network_node *n, const cd_node_cost_entry *c) {
    const bool picks = n->op && (!strncmp(n->op, "Gather", 6) || !strncmp(n->op, "Embedding", 9));
    return picks && c->bytes >= 0 && c->bytes < n->weight_bytes ? c->bytes : n->weight_bytes;
}

static bool has_law(const cd_network_graph *g, const cd_node_cost *c, uint32_t i) {
    return g->node[i].kind == CD_NODE_TASK && (c->node[i].source == CD_COST_MODEL || c->node[i].source == CD_COST_RECORD);
}

void cd_node_cost_in_place(cd_node_cost *c, const cd_network_graph *g, const cd_node_cost_scaling_law *l) {
    for (uint32_t i = 0; i < c->n; i++)
        if (has_law(g, c, i)) change(&c->node[i], l->lift, l->call_s + refill_s(l, weights_read(&g->node[i], &c->node[i])));
}

cd_network_cost_row cd_node_cost_row(const cd_node_cost *c, const cd_network_graph *g, const cd_device *d, double latency_s) {
    const cd_node_cost_scaling_law l = cd_node_cost_law(NULL, NULL, d, 0);
    cd_network_cost_row r = {.moved_caches = c->traffic / cd_network_cost_cache(d)};
    for (uint32_t i = 0; i < c->n; i++) {
        const double runs = (double)g->node[i].repeat;
        if (!has_law(g, c, i)) continue;
        r.alone_s += c->node[i].seconds * runs;
        r.calls += runs;
        r.refill_bytes += refilled(&l, weights_read(&g->node[i], &c->node[i])) * runs;
    }
    r.rest_s = fmax(latency_s - r.alone_s, 0);
    return r;
}

void cd_node_cost_refill(cd_node_cost *c, const cd_network_graph *g, double bytes_per_s) {
    for (uint32_t i = 0; i < c->n && bytes_per_s > 0; i++)
        if (has_law(g, c, i) && c->node[i].moved > 0)
            change(&c->node[i], 1, (double)c->node[i].moved / bytes_per_s);
}
