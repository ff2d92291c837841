/* Graphs made node by node: order, names, cycles; each against a slow reading of the same rules. */
#include <string.h>

#include "check.h"
#include "base/core/core.h"
#include "predictor/network/network.h"

enum { MAX_NODE = 40 };

static cd_network_builder *fresh(void) {
    cdmpp_err err = {0};
    cd_network_builder *m = NULL;
    assert_ok(cd_network_builder_new("net", &m, &err));
    return m;
}

static uint32_t add(cd_network_builder *m, const char *name) {
    cdmpp_err err = {0};
    uint32_t id = 0;
    const cd_network_node n = cd_network_node_init(name, "x", CD_NODE_FREE);
    assert_ok(cd_network_builder_node(m, &n, &id, &err));
    return id;
}

static void edge(cd_network_builder *m, uint32_t from, uint32_t to) {
    cdmpp_err err = {0};
    assert_ok(cd_network_builder_edge(m, from, to, &err));
}

/* ---- order ---- */

/* reach[a][b]: b comes after a. */
static void close_over(bool reach[MAX_NODE][MAX_NODE], uint32_t n) {
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; b < n; b++) reach[a][b] |= reach[a][k] && reach[k][b];
}

static uint32_t number_of(const char *name) {
    return (uint32_t)(name[0] - '0') * 10 + (uint32_t)(name[1] - '0');
}

static void check_order(const cd_network_graph *g, bool edges[MAX_NODE][MAX_NODE], uint32_t n) {
    uint32_t n_edge = 0, found = 0;
    bool seen[MAX_NODE] = {false};
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++) n_edge += edges[a][b];
    assert_int_equal(g->n_node, n);
    for (uint32_t i = 0; i < n; i++) {
        const cd_network_node *o = &g->node[i];
        const uint32_t to = number_of(o->name);
        assert_false(seen[to]);
        seen[to] = true;
        for (uint32_t j = 0; j < o->n_after; j++, found++) {
            const uint32_t before = g->after[o->first + j];
            assert_true(before < i);
            assert_true(edges[number_of(g->node[before].name)][to]);
        }
    }
    assert_int_equal(found, n_edge); /* each once: none lost, none doubled */
}

static void test_random_graphs(void **state) {
    (void)state;
    unsigned cycles = 0, orders = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        const uint32_t n = 1 + (uint32_t)(cd_rng_at(seed, 0) % MAX_NODE);
        const uint32_t want = (uint32_t)(cd_rng_at(seed, 1) % (n + n / 2 + 1));
        bool edges[MAX_NODE][MAX_NODE] = {{false}}, reach[MAX_NODE][MAX_NODE], forward = seed & 1;
        cd_network_builder *m = fresh();
        for (uint32_t k = 0; k < n; k++)
            add(m, (char[3]){(char)('0' + k / 10), (char)('0' + k % 10), 0});
        for (uint32_t e = 0; e < want; e++) {
            uint32_t a = (uint32_t)(cd_rng_at(seed, 2 + 2 * e) % n),
                     b = (uint32_t)(cd_rng_at(seed, 3 + 2 * e) % n);
            if (forward && a == b) continue;
            /* any order but acyclic */
            if (forward && (a * 7 % 41) > (b * 7 % 41)) {
                const uint32_t t = a;
                a = b, b = t;
            }
            edge(m, a, b);
            if (e % 3 == 0) edge(m, a, b);
            edges[a][b] = true;
        }
        memcpy(reach, edges, sizeof reach);
        close_over(reach, n);
        bool cyclic = false;
        for (uint32_t k = 0; k < n; k++) cyclic |= reach[k][k];
        cd_network_graph *g = NULL;
        cdmpp_err err = {0};
        assert_status(cd_network_builder_finish(m, &g, &err), cyclic ? CDMPP_EINVALID : CDMPP_OK);
        if (!cyclic) check_order(g, edges, n), orders++;
        else assert_non_null(strstr(err.msg, "a cycle of ")), cycles++;
        cd_network_graph_free(g);
        cd_network_builder_free(m);
    }
    assert_true(cycles > 50 && orders > 100);
}

static void test_an_order_is_kept(void **state) {
    (void)state;
    cd_network_builder *m = fresh();
    cd_network_graph *g = NULL;
    cdmpp_err err = {0};
    for (int k = 0; k < 20; k++) add(m, (char[3]){(char)('0' + k / 10), (char)('0' + k % 10), 0});
    for (uint32_t k = 3; k < 20; k++) edge(m, k - 3, k), edge(m, k / 2, k);
    assert_ok(cd_network_builder_finish(m, &g, &err));
    for (uint32_t k = 0; k < 20; k++) assert_int_equal(number_of(g->node[k].name), k);
    cd_network_graph_free(g);
    cd_network_builder_free(m);
}

static void test_cycle_is_named(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_network_builder *m = fresh();
    cd_network_graph *g = NULL;
    const uint32_t a = add(m, "a"), b = add(m, "b"), c = add(m, "c"), d = add(m, "outside");
    edge(m, a, b), edge(m, b, c), edge(m, c, a), edge(m, c, d);
    assert_status(cd_network_builder_finish(m, &g, &err), CDMPP_EINVALID);
    assert_string_equal(err.msg, "a cycle of 3: \"a\" after \"c\" after \"b\" after \"a\"");
    assert_status(cd_network_builder_edge(m, a, 17, &err), CDMPP_EINVALID);
    cd_network_builder_free(m);
    m = fresh();
    const uint32_t s = add(m, "self");
    edge(m, s, s);
    assert_status(cd_network_builder_finish(m, &g, &err), CDMPP_EINVALID);
    assert_string_equal(err.msg, "a cycle of 1: \"self\" after \"self\"");
    cd_network_builder_free(m);
}

/* A cycle of many names eight. */
static void test_long_cycle(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_network_builder *m = fresh();
    cd_network_graph *g = NULL;
    for (uint32_t k = 0; k < 30; k++) add(m, "n");
    for (uint32_t k = 0; k < 30; k++) edge(m, k, (k + 1) % 30);
    assert_status(cd_network_builder_finish(m, &g, &err), CDMPP_EINVALID);
    assert_non_null(strstr(err.msg, "a cycle of 30: \"n\" after \"n#30\""));
    assert_non_null(strstr(err.msg, "\"n#24\" after ... after \"n\""));
    assert_null(strstr(err.msg, "n#23"));
    cd_network_builder_free(m);
}

/* ---- names ---- */
static void test_names_are_unique(void **state) {
    (void)state;
    const char *const in[] = {"x", "x", "x#2", "x", "", NULL, "x#2", "node"};
    const char *const out[] = {"x", "x#2", "x#2#2", "x#3", "node", "node#2", "x#2#3", "node#3"};
    cdmpp_err err = {0};
    cd_network_builder *m = fresh();
    cd_network_graph *g = NULL;
    for (int i = 0; i < 8; i++) add(m, in[i] ? in[i] : "");
    assert_ok(cd_network_builder_finish(m, &g, &err));
    for (int i = 0; i < 8; i++) assert_string_equal(g->node[i].name, out[i]);
    cd_network_graph_free(g);
    cd_network_builder_free(m);
}

/* Many of one name: a step each, not a search each. */
static void test_many_equal_names(void **state) {
    (void)state;
    enum { MANY = 200000 };
    cdmpp_err err = {0};
    cd_network_builder *m = fresh();
    cd_network_graph *g = NULL;
    for (int i = 0; i < MANY; i++) add(m, "relu");
    assert_ok(cd_network_builder_finish(m, &g, &err));
    assert_string_equal(g->node[MANY - 1].name, "relu#200000");
    cd_network_graph_free(g);
    cd_network_builder_free(m);
}

/* ---- what a node may be ---- */
static void test_bad_nodes(void **state) {
    (void)state;
    cdmpp_err err = {0};
    uint32_t id;
    cd_network_builder *m = fresh();
    cd_network_node n = cd_network_node_init("n", NULL, CD_NODE_TASK);
    assert_string_equal(n.op, "");
    assert_status(cd_network_builder_node(m, &n, &id, &err), CDMPP_EINVALID);
    n.kind = CD_NODE_LIBRARY;
    assert_status(cd_network_builder_node(m, &n, &id, &err), CDMPP_EINVALID);
    n.kind = CD_NODE_GIVEN;
    assert_status(cd_network_builder_node(m, &n, &id, &err), CDMPP_EINVALID);
    n.kind = CD_NODE_UNKNOWN;
    assert_status(cd_network_builder_node(m, &n, &id, &err), CDMPP_EINVALID);
    n.kind = CD_NODE_GIVEN, n.given_s = -1e-9;
    assert_status(cd_network_builder_node(m, &n, &id, &err), CDMPP_ERANGE);
    n.given_s = (double)INFINITY;
    assert_status(cd_network_builder_node(m, &n, &id, &err), CDMPP_ERANGE);
    n.given_s = 0, n.repeat = -1;
    assert_status(cd_network_builder_node(m, &n, &id, &err), CDMPP_ERANGE);
    n.repeat = 0, n.read_bytes = -2;
    assert_status(cd_network_builder_node(m, &n, &id, &err), CDMPP_ERANGE);
    n.read_bytes = 0, n.flop = -1;
    assert_status(cd_network_builder_node(m, &n, &id, &err), CDMPP_ERANGE);
    n.flop = 0;
    assert_ok(cd_network_builder_node(m, &n, &id, &err));
    assert_int_equal(id, 0); /* the refused ones left nothing behind */
    cd_network_graph *g = NULL;
    assert_ok(cd_network_builder_finish(m, &g, &err));
    assert_string_equal(g->node[0].name, "n");
    assert_status(cd_network_builder_finish(m, &g, &err), CDMPP_EINVALID);
    cd_network_graph_free(g);
    cd_network_builder_free(m);
}

/* Nothing of the caller's is pointed to. */
static void test_all_is_copied(void **state) {
    (void)state;
    cdmpp_err err = {0};
    char name[] = "name", op[] = "op", key[] = "key", ran[] = "ran", dev[] = "dev";
    cd_library_op_record q = {.kind = CD_LIBRARY_OP_LINEAR, .m = 5};
    uint32_t id;
    cd_network_builder *m = fresh();
    cd_network_node n = cd_network_node_init(name, op, CD_NODE_TASK);
    n.key = key, n.ran_as = ran, n.device = dev, n.question = &q, n.phase = CD_PHASE_BACKWARD;
    assert_ok(cd_network_builder_node(m, &n, &id, &err));
    name[0] = op[0] = key[0] = ran[0] = dev[0] = 'Z', q.m = 6;
    cd_network_builder_graph(m)->batch = 4;
    cd_network_graph *g = NULL;
    assert_ok(cd_network_builder_finish(m, &g, &err));
    cd_network_builder_free(m);
    const cd_network_node *o = g->node;
    assert_string_equal(g->name, "net");
    assert_int_equal(g->batch, 4);
    assert_string_equal(o->name, "name");
    assert_string_equal(o->op, "op");
    assert_string_equal(o->key, "key");
    assert_string_equal(o->ran_as, "ran");
    assert_string_equal(o->device, "dev");
    assert_true(o->question->m == 5 && o->phase == CD_PHASE_BACKWARD && isnan(o->given_s) &&
                o->repeat == 1 && o->read_bytes == -1);
    cd_network_graph_free(g);
}

static void test_empty(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_network_builder *m = fresh();
    cd_network_graph *g = NULL;
    assert_ok(cd_network_builder_finish(m, &g, &err));
    assert_int_equal(g->n_node, 0);
    assert_true(isnan(g->measured_s) && isnan(g->measured_median_s));
    cd_network_graph_free(g);
    cd_network_builder_free(m);
    cd_network_builder_free(NULL);
    cd_network_graph_free(NULL);
}

TESTS(NULL, NULL, test_random_graphs, test_an_order_is_kept, test_cycle_is_named, test_long_cycle,
      test_names_are_unique, test_many_equal_names, test_bad_nodes, test_all_is_copied, test_empty)
