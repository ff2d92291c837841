/* What an operator takes in a network over what it takes alone, by the fit of its device
 * (network_cost.h). */
#include <math.h>
#include <string.h>

#include "predictor/estimate/estimate_internal.h"

static double own_cache(const cd_device *d) { return d && d->l2_kb > 0 ? d->l2_kb * 1024 : 0; }

/* More than `from` times the largest shared cache? from 0: yes. */
static bool beyond(double from, double bytes, const cd_device *d) {
    return from <= 0 || bytes > from * cd_network_cost_cache(d);
}

cd_node_cost_scaling_law cd_node_cost_law(const cd_network_cost *costs, const char *name,
                                          const cd_device *d, cd_node_cost_bytes bytes) {
    const cd_network_cost_fit *f = cd_network_cost_find(costs, name, d);
    if (!f) return (cd_node_cost_scaling_law){.lift = 1};
    const bool large = beyond(f->lift_from, bytes.traffic, d),
               cold = beyond(f->refill_from, bytes.weights, d);
    return (cd_node_cost_scaling_law){.lift = large ? f->lift : 1,
                                      .call_s = f->call_s,
                                      .refill_bytes_per_s = cold ? f->refill_bytes_per_s : 0,
                                      .stays_bytes = f->refill_to * own_cache(d)};
}

static double refilled(double stays_bytes, int64_t weight_bytes) {
    return weight_bytes > 0 && (double)weight_bytes < stays_bytes ? (double)weight_bytes : 0;
}

static double refill_s(const cd_node_cost_scaling_law *l, int64_t weight_bytes) {
    return l->refill_bytes_per_s > 0
               ? refilled(l->stays_bytes, weight_bytes) / l->refill_bytes_per_s
               : 0;
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

bool cd_node_cost_picks_rows(const char *op) {
    return op && (!strncmp(op, "Gather", 6) || !strncmp(op, "Embedding", 9));
}

double cd_node_cost_weights(const cd_network_graph *g) {
    double sum = 0;
    for (uint32_t i = 0; i < g->n_node; i++)
        if (g->node[i].weight_bytes > 0 && !cd_node_cost_picks_rows(g->node[i].op))
            sum += (double)g->node[i].weight_bytes;
    return sum;
}

/* Of a table of which rows are picked no more comes than those. */
static int64_t weights_read(const cd_network_node *n, int64_t result_bytes) {
    return cd_node_cost_picks_rows(n->op) && result_bytes >= 0 && result_bytes < n->weight_bytes
               ? result_bytes
               : n->weight_bytes;
}

static bool has_law(const cd_network_graph *g, const cd_node_cost *c, uint32_t i) {
    return g->node[i].kind == CD_NODE_TASK &&
           (c->node[i].source == CD_COST_MODEL || c->node[i].source == CD_COST_RECORD);
}

void cd_node_cost_in_place(cd_node_cost *c, const cd_network_graph *g,
                           const cd_node_cost_scaling_law *l) {
    for (uint32_t i = 0; i < c->n; i++)
        if (has_law(g, c, i))
            change(&c->node[i], l->lift,
                   l->call_s + refill_s(l, weights_read(&g->node[i], c->node[i].bytes)));
}

static void add_to_row(cd_network_cost_row *r, double own, const cd_network_node *n, double seconds,
                       int64_t result_bytes) {
    const double runs = (double)n->repeat;
    r->alone_s += seconds * runs;
    r->calls += runs;
    for (int k = 0; k < CD_NETWORK_COST_LIMITS; k++)
        r->refill_bytes[k] +=
            refilled(cd_network_cost_limit[k] * own, weights_read(n, result_bytes)) * runs;
    if (r->fetch_bytes_per_s > 0)
        r->fetch_s += refilled(r->fetch_to * own, weights_read(n, result_bytes)) * runs /
                      r->fetch_bytes_per_s;
}

/* Memory brings weights to a kernel slower than a stream, whose next line is always known: a tile
 * reads short pieces of them. Chosen on twelve networks of one processor that no table of results
 * has. */
static const double of_stream = 1 / 1.5;

/* The probe reads 128 MB: where a cache holds that, it does not tell of the memory. */
static double memory_gb_s(const cd_device *d) {
    const double probe = d->probe[CD_DEVICE_PROBE_probe_memory];
    return probe > 0 && cd_network_cost_cache(d) < 64e6 ? probe : d->bandwidth_gb_s;
}

static cd_network_cost_row new_row(const cd_device *d, double traffic) {
    const double own = own_cache(d), shared = cd_network_cost_cache(d),
                 stream = !d ? 0 : memory_gb_s(d) * 1e9;
    cd_network_cost_row r = {.moved_caches = traffic / shared};
    if (own > 0 && shared > own && stream > 0)
        r.fetch_bytes_per_s = of_stream * stream, r.fetch_to = shared / own;
    return r;
}

/* What the largest shared cache holds from one pass to the next is not fetched. */
static void close_row(cd_network_cost_row *r, const cd_network_graph *g, const cd_device *d) {
    if (!beyond(CD_NETWORK_COST_KEEPS, cd_node_cost_weights(g), d)) r->fetch_s = 0;
}

cd_network_cost_row cd_node_cost_row(const cd_node_cost *c, const cd_network_graph *g,
                                     const cd_device *d, double latency_s) {
    cd_network_cost_row r = new_row(d, c->traffic);
    for (uint32_t i = 0; i < c->n; i++)
        if (has_law(g, c, i))
            add_to_row(&r, own_cache(d), &g->node[i], c->node[i].seconds, c->node[i].bytes);
    close_row(&r, g, d);
    r.rest_s = fmax(latency_s - r.alone_s, 0);
    return r;
}

cd_network_cost_row cd_node_cost_row_alone(const cd_network_graph *g, const cd_task_registry *t,
                                           const double *alone_s, const cd_device *d) {
    cd_network_cost_row r = new_row(d, 0);
    double traffic = 0;
    for (uint32_t i = 0; i < g->n_node; i++) {
        int64_t result;
        const int64_t moved = cd_node_cost_moved(g, t, i, &result);
        if (g->node[i].kind == CD_NODE_FREE || g->node[i].repeat <= 0) continue;
        if (moved > 0) traffic += (double)moved * (double)g->node[i].repeat;
        add_to_row(&r, own_cache(d), &g->node[i], alone_s[i], result);
    }
    r.moved_caches = traffic / cd_network_cost_cache(d);
    close_row(&r, g, d);
    return r;
}

void cd_node_cost_refill(cd_node_cost *c, const cd_network_graph *g, double bytes_per_s) {
    for (uint32_t i = 0; i < c->n && bytes_per_s > 0; i++)
        if (has_law(g, c, i) && c->node[i].moved > 0)
            change(&c->node[i], 1, (double)c->node[i].moved / bytes_per_s);
}
