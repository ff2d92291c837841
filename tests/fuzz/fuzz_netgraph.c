/* Any bytes as graphs of networks: no crash, no leak; an error says what is wrong; what is accepted
 * keeps the rules of netgraph.h, reads back as it was written, and is replayed within the laws or
 * refused with a reason. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "predictor/estimate/node_cost.h"
#include "predictor/network/network.h"
#include "predictor/replay/replay.h"

static void check_graph(const cd_network_graph *g) {
    uint32_t edges = 0;
    for (uint32_t i = 0; i < g->n_node; i++) {
        const cd_network_node *n = &g->node[i];
        if (n->first != edges || !n->name[0] || n->repeat < 0 || n->read_bytes < -1 ||
            n->write_bytes < -1 || n->given_s < 0)
            abort();
        if ((n->kind == CD_NODE_TASK && !n->key) || (n->kind == CD_NODE_LIBRARY && !n->question) ||
            (n->kind == CD_NODE_GIVEN && !(n->given_s >= 0)) ||
            (n->kind == CD_NODE_UNKNOWN && !n->why))
            abort();
        for (uint32_t j = 0; j < n->n_after; j++)
            if (g->after[n->first + j] >= i) abort();
        edges += n->n_after;
    }
    if (edges != g->n_after) abort();
}

static void round_trip(cd_network_graph *const *g, size_t n) {
    cd_buf once = {0}, twice = {0};
    cdmpp_err err = {0};
    cd_network_graph **again;
    size_t m = 0;
    if (cd_network_graph_write(&once, g, n, &err)) abort();
    if (cd_network_graph_read_text("again", once.p, once.n, NULL, NULL, &again, &m, &err) || m != n)
        abort();
    if (cd_network_graph_write(&twice, again, m, &err)) abort();
    if (once.n != twice.n || memcmp(once.p, twice.p, once.n) != 0) abort();
    cd_network_graph_free_all(again, m);
    cd_buf_free(&once);
    cd_buf_free(&twice);
}

/* longest chain <= replay <= sum, but for what sums in another order differ by */
static void check_replay(const cd_replay_net *n) {
    cdmpp_err err = {0};
    cd_replay r;
    cd_buf b = {0};
    const cdmpp_status st = cd_replay_run(n, &r, &err);
    if (st && (st != CDMPP_ERANGE || !err.msg[0])) abort();
    if (!st) {
        if (!isfinite(r.makespan_s) || !isfinite(r.sum_s) || r.peak[0] < 0) abort();
        if (!(r.chain_s <= r.makespan_s * (1 + 1e-9)) || !(r.makespan_s <= r.sum_s * (1 + 1e-9)))
            abort();
        if (cd_replay_trace(&b, n, &r, &err) && !err.msg[0]) abort();
    }
    cd_buf_free(&b);
    cd_replay_free(&r);
}

static void check_time(const cd_network_graph *g) {
    static const cd_replay_device device[] = {
        {.name = "a", .workers = 1, .policy = CD_REPLAY_STREAM, .issue_s = 3e-6, .gap_s = 1e-6},
        {.name = "b", .workers = 3, .policy = CD_REPLAY_CRITICAL},
        {.name = "c", .workers = 2, .policy = CD_REPLAY_ORDER, .issue_s = 1}};
    const cd_node_cost_options ask = {.from_given = true};
    cdmpp_err err = {0};
    cd_node_cost *cost;
    if (cd_node_cost_of(g, &ask, &cost, &err)) abort();
    for (size_t d = 0; d < sizeof device / sizeof *device; d++) {
        const cd_node_cost_placement where = {.n_device = 1, .device = &device[d]};
        cd_node_cost_net *r;
        const cdmpp_status st =
            cd_node_cost_net_make(g, (const cd_node_cost *const *)&cost, &where, true, &r, &err);
        if (st && (st != CDMPP_ERANGE || !err.msg[0])) abort();
        if (st) continue;
        check_replay(&r->net);
        cd_node_cost_net_free(r);
    }
    cd_node_cost_free(cost);
}

static void bad(void *ctx, const char *network, const cdmpp_err *why) {
    if (!network || !why->code || !why->msg[0]) abort();
    ++*(size_t *)ctx;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cdmpp_err err = {0};
    cd_network_graph **g;
    size_t n = 0, good = 0, n_bad = 0;
    const cdmpp_status st =
        cd_network_graph_read_text("net.json", (const char *)data, size, NULL, NULL, &g, &n, &err);
    if (st && (!err.msg[0] || err.code != st)) abort();
    if (!st) {
        for (size_t i = 0; i < n; i++) {
            check_graph(g[i]);
            check_time(g[i]);
        }
        round_trip(g, n);
        cd_network_graph_free_all(g, n);
    }
    const cdmpp_status lenient = cd_network_graph_read_text("net.json", (const char *)data, size,
                                                            bad, &n_bad, &g, &good, &err);
    if (!st && (lenient || good != n || n_bad)) abort();
    if (!lenient && st && !n_bad) abort();
    if (!lenient) {
        round_trip(g, good);
        cd_network_graph_free_all(g, good);
    }
    return 0;
}
