/* Odd graphs of networks: our own, measured ones, TVM's, traces of torch.fx. */
#include "odd.h"
#include "predictor/network/network_internal.h"
#include "tmp.h"

static void bad(void *ctx, const char *network, const cdmpp_err *why) {
    (void)ctx;
    if (!network || !why->code || !why->msg[0]) abort();
}

static cdmpp_status graphs_of(cd_network_graph_bad *hears, const char *text, size_t n,
                              cdmpp_err *err) {
    cd_network_graph **g = NULL;
    size_t m = 0;
    const cdmpp_status st =
        cd_network_graph_read_text("net.json", text, n, hears, NULL, &g, &m, err);
    if (!st) cd_network_graph_free_all(g, m);
    return st;
}
static cdmpp_status all(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    return (void)ctx, graphs_of(NULL, text, n, err);
}
static cdmpp_status good(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    return (void)ctx, graphs_of(bad, text, n, err);
}

TEST(files) {
    odd_all_of_seeds("tests/fuzz/seeds/netgraph", 2000, all, NULL);
    odd_all_of_seeds("tests/fuzz/seeds/netgraph", 2000, good, NULL);
}

TESTS(NULL, NULL, files)
