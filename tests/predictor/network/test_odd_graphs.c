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

#define MEASURED(members, more)                                                                    \
    "{\"n\": {" members                                                                            \
    "\"nodes\": [\n{\"id\": 0, \"name\": \"data\", \"op\": \"null\", \"inputs\": []},\n" more      \
    "]}}"
TEST(measured) {
    static const struct {
        const char *text;
        long line;
        const char *key, *msg;
    } wrong[] = {
        {MEASURED("\"device\": 7,", ""), 1, "device", "expected a string, found integer"},
        {MEASURED("\"device\": [", ""), 3, "", "column 4: expected ',' or '}', found end of text"},
        {MEASURED("\"e2e_mean_s\": -1,", ""), 1, "e2e_mean_s", NULL},
        {MEASURED("\"e2e_median_s\": \"1\",", ""), 1, "e2e_median_s", NULL},
        {MEASURED("", "{\"id\": 1, \"name\": \"a\", \"op\": \"tvm_op\", \"inputs\": [9], \"func\": "
                      "\"f\", \"workload_key\": null, \"tuned\": false, \"time_s\": 1}"),
         3, "nodes[1].inputs[0]", "an edge from node 9 of 2"},
        {MEASURED("", "{\"id\": 1, \"name\": \"a\", \"op\": \"tvm_op\", \"inputs\": [-1], "
                      "\"func\": \"f\", \"workload_key\": null, \"tuned\": false, \"time_s\": 1}"),
         3, "nodes[1].inputs[0]", NULL},
        {MEASURED("", "{\"id\": 1, \"name\": \"a\", \"op\": \"tvm_op\", \"inputs\": [1], \"func\": "
                      "\"f\", \"workload_key\": null, \"tuned\": false, \"time_s\": 1}"),
         1, "n", "a cycle of 1: \"a\" after \"a\""},
    };
    cd_network_graph **g = NULL;
    size_t m = 0;
    cdmpp_err err = {0};
    static const char good_text[] =
        MEASURED("\"device\": \"t4\", \"e2e_mean_s\": 2,",
                 "{\"id\": 1, \"name\": \"a\", \"op\": \"tvm_op\", \"inputs\": [0], \"func\": "
                 "\"f\", \"workload_key\": null, \"tuned\": false, \"time_s\": 1}");
    assert_ok(cd_network_graph_read_text("net.json", good_text, sizeof good_text - 1, NULL, NULL,
                                         &g, &m, &err));
    assert_int_equal(m, 1);
    assert_string_equal(g[0]->device, "t4");
    assert_true(g[0]->measured_s == 2);
    cd_network_graph_free_all(g, m);
    odd_all(good_text, all, NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        err = (cdmpp_err){0};
        const cdmpp_status st = all(NULL, wrong[i].text, strlen(wrong[i].text), &err);
        if (!st || !strstr(err.key, wrong[i].key) || err.line != wrong[i].line ||
            (wrong[i].msg && strcmp(err.msg, wrong[i].msg)))
            fail_msg("%zu: %d, line %ld, %s: %s", i, (int)st, err.line, err.key, err.msg);
    }
}

TESTS(NULL, NULL, files, measured)
