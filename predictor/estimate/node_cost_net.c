/* The nodes that take time, with their dependencies, as a net that replay.h simulates.
 *
 *   a ──> reshape ──> b        a ──> b        nodes that are taken out hand on what they came after
 *
 * (1) Nodes are in order, so one pass has the predecessors of a node ready: of one that stays,
 *     itself; of one that is taken out, the list of those behind it that stay, each once.
 * (2) Nodes taken out one behind the other with many predecessors each may multiply: more than MOST
 *     edges are refused. */
#include <math.h>
#include <string.h>

#include "predictor/estimate/estimate_internal.h"

enum { MOST = 1 << 28 };

typedef struct {
    const cd_network_graph *g;
    const cd_node_cost *const *cost;
    const cd_node_cost_placement *p;
    bool allow_missing;
    cd_node_cost_net *r;
    cd_replay_op *op;
    uint32_t *number;    /* (n_node) of what stays; UINT32_MAX: taken out */
    uint32_t *from, *to; /* (n_node) of what was taken out: its list in `after` */
    uint32_t *seen;      /* (n_node + 1) by number: the last node that listed it */
    uint32_t *after;     /* (cap) */
    size_t n_after, cap;
} making;

static const cd_node_cost_entry *cost_of(const making *k, uint32_t i) {
    return &k->cost[k->p->where ? k->p->where[i] : 0]->node[i];
}

static cdmpp_status put(making *k, uint32_t node, uint32_t number, cdmpp_err *err) {
    if (k->seen[number] == node + 1) return CDMPP_OK;
    k->seen[number] = node + 1;
    if (k->n_after == MOST)
        return CD_FAIL(err, ERANGE, "more than %d edges between the nodes that take time", MOST);
    if (CD_GROW(k->after, k->n_after, k->cap)) return CD_FAIL(err, ENOMEM, "%zu edges", k->n_after);
    k->after[k->n_after++] = number;
    return CDMPP_OK;
}

/* What node i comes after, of those that stay. */
static cdmpp_status list(making *k, uint32_t i, cdmpp_err *err) {
    const cd_network_node *n = &k->g->node[i];
    for (uint32_t j = 0; j < n->n_after; j++) {
        const uint32_t a = k->g->after[n->first + j];
        if (k->number[a] != UINT32_MAX) CD_TRY(put(k, i, k->number[a], err));
        else
            for (uint32_t e = k->from[a]; e < k->to[a]; e++) CD_TRY(put(k, i, k->after[e], err));
    }
    return CDMPP_OK;
}

static cdmpp_status keep(making *k, uint32_t i, uint32_t first, cdmpp_err *err) {
    const cd_network_node *n = &k->g->node[i];
    const cd_node_cost_entry *c = cost_of(k, i);
    const uint32_t device = k->p->where ? k->p->where[i] : 0, at = k->r->net.n_op++;
    /* each device counts its own */
    const uint32_t like = c->like == UINT32_MAX ? UINT32_MAX : c->like * k->p->n_device + device;
    const double runs = (double)n->repeat;
    k->number[i] = at;
    k->r->of[at] = i;
    /* each run but the last, whose gap the replay adds, waits for its own */
    k->op[at] =
        (cd_replay_op){.name = n->name,
                       .device = device,
                       .like = like,
                       .spread = c->spread,
                       .shared = c->shared,
                       .memory_share = c->memory_share,
                       .seconds = c->seconds * runs + (runs - 1) * k->p->device[device].gap_s,
                       .runs = runs,
                       .bytes = c->bytes > 0 ? c->bytes : 0,
                       .first = first,
                       .n_after = (uint32_t)(k->n_after - first)};
    if (!isfinite(k->op[at].seconds))
        return CD_FAIL(err, ERANGE, "node %s takes %g s, %lld times", n->name, c->seconds,
                       (long long)n->repeat);
    return CDMPP_OK;
}

static cdmpp_status place(making *k, uint32_t i, cdmpp_err *err) {
    const cd_network_node *n = &k->g->node[i];
    if (k->p->where && k->p->where[i] >= k->p->n_device)
        return CD_FAIL(err, ERANGE, "node %s is on device %u of %u", n->name, k->p->where[i],
                       k->p->n_device);
    const cd_node_cost_entry *c = cost_of(k, i);
    const bool missing = c->source == CD_COST_MISSING && n->repeat > 0;
    if (missing && !k->allow_missing)
        return CD_FAIL(err, ESCHEMA, "node %s (%s) has no time: %s", n->name, n->op,
                       c->why ? c->why : "nobody knows it");
    const uint32_t first = (uint32_t)k->n_after;
    CD_TRY(list(k, i, err));
    k->from[i] = first;
    k->to[i] = (uint32_t)k->n_after;
    if (missing || n->repeat <= 0 || c->source == CD_COST_FREE) return CDMPP_OK;
    return keep(k, i, first, err);
}

static cdmpp_status room(making *k, cdmpp_err *err) {
    const size_t n = (size_t)k->g->n_node + 1;
    k->number = cd_mem_alloc(n * sizeof *k->number);
    k->from = cd_mem_zalloc(n, sizeof *k->from);
    k->to = cd_mem_zalloc(n, sizeof *k->to);
    k->seen = cd_mem_zalloc(n, sizeof *k->seen);
    k->op = cd_arena_zalloc(&k->r->arena, n, sizeof *k->op);
    k->r->of = cd_arena_zalloc(&k->r->arena, n, sizeof *k->r->of);
    if (!k->number || !k->from || !k->to || !k->seen || !k->op || !k->r->of)
        return CD_FAIL(err, ENOMEM, "%u nodes", k->g->n_node);
    memset(k->number, 0xff, n * sizeof *k->number);
    return CDMPP_OK;
}

/* Devices and links are the caller's, who may let go of them. */
static cdmpp_status finish(making *k, cdmpp_err *err) {
    cd_replay_net *net = &k->r->net;
    uint32_t *after = cd_arena_alloc(&k->r->arena, k->n_after + 1, sizeof *after);
    cd_replay_device *device =
        cd_arena_alloc(&k->r->arena, (size_t)k->p->n_device + 1, sizeof *device);
    cd_replay_link *link = cd_arena_alloc(&k->r->arena, (size_t)k->p->n_link + 1, sizeof *link);
    if (!after || !device || !link) return CD_FAIL(err, ENOMEM, "%zu edges", k->n_after);
    if (k->n_after) memcpy(after, k->after, k->n_after * sizeof *after);
    if (k->p->n_device) memcpy(device, k->p->device, k->p->n_device * sizeof *device);
    if (k->p->n_link) memcpy(link, k->p->link, k->p->n_link * sizeof *link);
    net->op = k->op;
    net->after = after;
    net->n_after = (uint32_t)k->n_after;
    net->device = device;
    net->n_device = k->p->n_device;
    net->link = link;
    net->n_link = k->p->n_link;
    return CDMPP_OK;
}

/* Scratch lists live for this call; the net has copies of all that it needs in its own arena. */
cdmpp_status cd_node_cost_net_make(const cd_network_graph *g, const cd_node_cost *const *cost,
                                   const cd_node_cost_placement *p, bool allow_missing,
                                   cd_node_cost_net **out, cdmpp_err *err) {
    making k = {.g = g, .cost = cost, .p = p, .allow_missing = allow_missing};
    if (!(k.r = cd_mem_zalloc(1, sizeof *k.r))) return CD_FAIL(err, ENOMEM, "replay");
    cdmpp_status st = room(&k, err);
    for (uint32_t i = 0; !st && i < g->n_node; i++) st = place(&k, i, err);
    if (!st) st = finish(&k, err);
    cd_mem_free(k.number);
    cd_mem_free(k.from);
    cd_mem_free(k.to);
    cd_mem_free(k.seen);
    cd_mem_free(k.after);
    if (st) cd_node_cost_net_free(k.r);
    else *out = k.r;
    return st;
}

void cd_node_cost_net_free(cd_node_cost_net *r) {
    if (!r) return;
    cd_arena_free(&r->arena);
    cd_mem_free(r);
}
