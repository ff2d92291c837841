/* Files of graphs: every form, what is refused and where the error points, one wrong network among
 * good ones, and our own form back to the byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/core.h"
#include "check.h"
#include "fault.h"
#include "predictor/network/network.h"
#include "scratch.h"

static cd_network_graph **read_text(const char *text, size_t *n) {
    cdmpp_err err = {0};
    cd_network_graph **g = NULL;
    assert_ok(cd_network_graph_read_text("net.json", text, strlen(text), NULL, NULL, &g, n, &err));
    return g;
}

static const cd_network_node *node_named(const cd_network_graph *g, const char *name) {
    for (uint32_t i = 0; i < g->n_node; i++)
        if (!strcmp(g->node[i].name, name)) return &g->node[i];
    fail_msg("no node %s", name);
    return NULL;
}

static bool comes_after(const cd_network_graph *g, const char *name, const char *before) {
    const cd_network_node *n = node_named(g, name);
    for (uint32_t j = 0; j < n->n_after; j++)
        if (!strcmp(g->node[g->after[n->first + j]].name, before)) return true;
    return false;
}

static char *written(cd_network_graph *const *g, size_t n) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    assert_ok(cd_network_graph_write(&b, g, n, &err));
    return b.p;
}

/* ---- the forms ---- */
static void test_own(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_network_graph **g;
    size_t n;
    assert_ok(cd_network_graph_read("tests/fuzz/seeds/netgraph/own.json", &g, &n, &err));
    assert_int_equal(n, 2);
    assert_string_equal(g[0]->name, "two_branches");
    assert_string_equal(g[0]->device, "zen5-avx512");
    assert_int_equal(g[0]->batch, 4);
    assert_true(g[0]->measured_s == 0.0025 && g[0]->measured_median_s == 2.4e-3);
    assert_int_equal(g[0]->n_node, 6);
    assert_int_equal(g[0]->n_after, 7);
    const cd_network_node *left = node_named(g[0], "left"), *conv = node_named(g[0], "right#2"),
                          *odd = node_named(g[0], "\xc3\xbc"
                                                  "ber \"quoted\"\n");
    assert_int_equal(left->kind, CD_NODE_TASK);
    assert_string_equal(left->key, "[\"conv\", [4, 3, 224, 224]]");
    assert_string_equal(left->ran_as, "[\"conv\", \"packed\"]");
    assert_string_equal(left->device, "cuda");
    assert_true(left->given_s == 0.001 && left->flop == 1.5e9 && left->read_bytes == 602112 &&
                left->write_bytes == 0 && left->repeat == 1);
    const cd_network_node *right = node_named(g[0], "right");
    assert_int_equal(right->repeat, 3);
    assert_true(right->question->kind == CD_LIBRARY_OP_LINEAR &&
                right->question->dtype == CD_LIBRARY_OP_DTYPE_F16 && right->question->m == 512 &&
                right->question->n == 1024 && right->question->k == 768 && isnan(right->given_s) &&
                right->read_bytes == -1);
    assert_true(conv->question->kind == CD_LIBRARY_OP_CONV && conv->question->cin == 64 &&
                conv->question->pad == 1 && conv->phase == CD_PHASE_BACKWARD);
    assert_true(odd->kind == CD_NODE_UNKNOWN && odd->phase == CD_PHASE_UPDATE && odd->repeat == 0);
    assert_string_equal(odd->why, "no definition");
    assert_true(comes_after(g[0], "join", "right#2") && comes_after(g[0], "join", "left") &&
                !comes_after(g[0], "join", "x"));
    assert_int_equal(g[1]->n_node, 0);
    cd_network_graph_free_all(g, n);
}

/* An operator that nobody knows is a gap with its name; the network stands. */
static void test_unknown_library_operator(void **state) {
    (void)state;
    size_t n;
    cd_network_graph **g = read_text("{\"schema\": \"cdmpp.netgraph\", \"version\": 1, "
                                     "\"networks\": [{\"name\": \"w\", \"nodes\": ["
                                     "{\"name\": \"a\", \"question\": {\"op\": \"flash\", "
                                     "\"heads\": 3}, \"kind\": \"library\", \"given_s\": 1}]}]}",
                                     &n);
    assert_int_equal(g[0]->node[0].kind, CD_NODE_UNKNOWN);
    assert_string_equal(g[0]->node[0].why, "unknown library operator flash");
    assert_true(!g[0]->node[0].question && g[0]->node[0].given_s == 1);
    cd_network_graph_free_all(g, n);
}

static void test_measured(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_network_graph **g;
    size_t n;
    assert_ok(cd_network_graph_read("tests/fuzz/seeds/netgraph/measured.json", &g, &n, &err));
    assert_int_equal(n, 2);
    const cd_network_graph *s = g[0];
    assert_true(s->measured_s == 0.002 && s->measured_median_s == 0.0019);
    const cd_network_node *dense = node_named(s, "tvmgen_default_fused_nn_dense");
    assert_string_equal(dense->op, "fused_nn_dense");
    /* input 1 twice is one edge */
    assert_true(dense->kind == CD_NODE_TASK && dense->given_s == 0.0015 && dense->n_after == 2);
    assert_string_equal(dense->ran_as, "[\"d2\", [1, 8], [1, 8, 8], [1, 8]]");
    assert_int_equal(node_named(s, "data")->kind, CD_NODE_FREE);
    assert_int_equal(node_named(s, "reshape_nop")->kind, CD_NODE_GIVEN);
    assert_int_equal(node_named(s, "late")->kind, CD_NODE_UNKNOWN);
    cd_network_graph_free_all(g, n);
}

static void test_tvm(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_network_graph **g;
    size_t n;
    assert_ok(cd_network_graph_read("tests/fuzz/seeds/netgraph/tvm.json", &g, &n, &err));
    assert_int_equal(n, 1);
    assert_string_equal(g[0]->name, "tvm");
    const cd_network_node *split = node_named(g[0], "tvmgen_default_fused_split"),
                          *nop = node_named(g[0], "reshape_nop");
    const cd_network_node *dense = node_named(g[0], "tvmgen_default_fused_nn_dense"),
                          *last = node_named(g[0], "tvmgen_default_fused_nn_dense#2");
    assert_string_equal(split->why, "no task is known for function tvmgen_default_fused_split: "
                                    "\"cdmpp.tasks\" does not name it");
    /* two outputs, of 2 and 1 bytes an element */
    assert_true(split->kind == CD_NODE_UNKNOWN && split->write_bytes == 32 + 16 &&
                split->read_bytes == 128);
    assert_string_equal(split->device, "cuda");
    assert_true(nop->kind == CD_NODE_FREE && nop->read_bytes == 16);
    assert_true(dense->kind == CD_NODE_TASK && dense->read_bytes == (32 + 64) * 4 &&
                dense->write_bytes == 128);
    assert_string_equal(dense->key, "[\"d1\", [4, 8], [8, 8], [4, 8]]");
    assert_string_equal(dense->device, "cpu");
    assert_null(last->device); /* a device whose number nobody knows */
    /* one input twice is read once; a tensor without elements */
    assert_true(last->read_bytes == 32 + 16 && last->write_bytes == 0);
    /* by control_deps */
    assert_true(last->n_after == 3 && comes_after(g[0], "tvmgen_default_fused_nn_dense#2", "x"));
    cd_network_graph_free_all(g, n);
}

static void test_network_of_tasks(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_task_registry *t;
    const char text[] =
        "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [{\"workload_key\": \"mm\", "
        "\"target\": \"llvm\", \"desc\": \"dense\","
        "\"ops\": [{\"name\": \"A\", \"shape\": [4, 8], \"dtype\": \"float32\"}, {\"name\": \"B\", "
        "\"shape\": [8, 2], \"dtype\": \"float16\"},"
        "{\"name\": \"C\", \"axis\": [[\"i\", 0, 4], [\"j\", 0, 2]], \"reduce_axis\": [[\"k\", 0, "
        "8]], \"reduce\": \"sum\", \"body\": \"A[i, k]*float32(B[k, j])\"}]}],"
        "\"networks\": {\"(mlp,[(16,8)])\": [{\"workload_key\": \"mm\", \"weight\": 3}, "
        "{\"workload_key\": \"gone\", \"weight\": 2}]}}";
    assert_ok(cd_task_registry_new(&t, &err));
    assert_ok(cd_task_registry_load_text(t, "t", text, strlen(text), &err));
    cd_network_graph *g;
    assert_ok(cd_network_graph_of_network(t, cd_task_registry_network(t, 0), &g, &err));
    cd_task_registry_free(t);
    assert_string_equal(g->name, "(mlp,[(16,8)])");
    assert_int_equal(g->batch, 16);
    assert_true(g->n_node == 2 && g->n_after == 1 && g->after[0] == 0 && g->node[1].n_after == 1);
    assert_string_equal(g->node[0].name, "dense");
    assert_string_equal(g->node[0].key, "mm");
    assert_true(g->node[0].repeat == 3 && g->node[0].flop == 128 &&
                g->node[0].read_bytes == 4 * 8 * 4 + 8 * 2 * 2 && g->node[0].write_bytes == 32);
    assert_true(g->node[1].repeat == 2 && isnan(g->node[1].flop) && g->node[1].read_bytes == -1);
    assert_string_equal(g->node[1].name, "gone");
    cd_network_graph_free(g);
}

/* ---- there and back ---- */
static void round_trip(const char *path) {
    cdmpp_err err = {0};
    cd_network_graph **g, **h;
    size_t n, m;
    assert_ok(cd_network_graph_read(path, &g, &n, &err));
    char *once = written(g, n);
    h = read_text(once, &m);
    assert_int_equal(m, n);
    char *twice = written(h, m);
    assert_string_equal(once, twice);
    cd_mem_free(once);
    cd_mem_free(twice);
    cd_network_graph_free_all(g, n);
    cd_network_graph_free_all(h, m);
}

static void test_there_and_back(void **state) {
    (void)state;
    round_trip("tests/fuzz/seeds/netgraph/own.json");
    round_trip("tests/fuzz/seeds/netgraph/measured.json");
    round_trip("tests/fuzz/seeds/netgraph/tvm.json");
}

/* The form does not change unnoticed. After a change that is meant: CDMPP_UPDATE=1. */
static void test_golden(void **state) {
    (void)state;
    const char *const golden = "tests/golden/netgraph_v1.json";
    cdmpp_err err = {0};
    cd_network_graph **g;
    size_t n, len = 0;
    assert_ok(cd_network_graph_read("tests/fuzz/seeds/netgraph/own.json", &g, &n, &err));
    char *now = written(g, n);
    if (getenv("CDMPP_UPDATE")) scratch_write(golden, now, strlen(now));
    char *then = (char *)scratch_read(golden, &len);
    assert_non_null(then);
    assert_string_equal(now, then);
    free(then);
    cd_mem_free(now);
    cd_network_graph_free_all(g, n);
    round_trip(golden);
}

/* Random graphs, nodes written in any order. */
static void test_random_there_and_back(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        const uint32_t n = 1 + (uint32_t)(cd_rng_at(seed, 1) % 30),
                       turn = (uint32_t)(cd_rng_at(seed, 2) % n);
        cd_buf b = {0};
        cd_buf_puts(
            &b, "{\"version\": 1, \"schema\": \"cdmpp.netgraph\", \"networks\": [{\"nodes\": [");
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t k = (i + turn) % n; /* edges point forward in the text, too */
            cd_buf_putf(&b,
                        "%s{\"name\": \"n%u\", \"kind\": \"given\", \"given_s\": %u, \"after\": [",
                        i ? ", " : "", k, k);
            uint32_t put = 0;
            for (uint32_t a = 0; a < k; a++)
                if (cd_rng_at(seed, 100 + 100 * k + a) % 4 == 0)
                    cd_buf_putf(&b, "%s\"n%u\"", put++ ? ", " : "", a);
            cd_buf_puts(&b, "]}");
        }
        cd_buf_puts(&b, "], \"name\": \"random\"}]}");
        size_t count;
        cd_network_graph **g = read_text(b.p, &count);
        assert_int_equal(g[0]->n_node, n);
        for (uint32_t i = 0; i < n; i++) {
            const cd_network_node *o = &g[0]->node[i];
            const uint32_t k = (uint32_t)o->given_s;
            uint32_t want = 0;
            for (uint32_t a = 0; a < k; a++) want += cd_rng_at(seed, 100 + 100 * k + a) % 4 == 0;
            assert_int_equal(o->n_after, want);
            for (uint32_t j = 0; j < o->n_after; j++) {
                const uint32_t a = (uint32_t)g[0]->node[g[0]->after[o->first + j]].given_s;
                assert_true(g[0]->after[o->first + j] < i && a < k &&
                            cd_rng_at(seed, 100 + 100 * k + a) % 4 == 0);
            }
        }
        cd_buf_free(&b);
        cd_network_graph_free_all(g, count);
    }
}

/* ---- what is wrong, and where ---- */
#define OWN(nodes)                                                                                 \
    "{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"networks\": [\n{\"name\": \"w\", "         \
    "\"nodes\": [\n" nodes "]}]}"
#define FREE(name) "{\"name\": \"" name "\", \"kind\": \"free\"}"
#define ASK(q)     OWN("{\"name\": \"a\", \"kind\": \"library\", \"question\": {" q "}}")
#define RUN(nodes) "{\"w\": {\"nodes\": [" nodes "]}}"
#define TVM(nodes, row, shape, dltype)                                                             \
    "{\"nodes\": [" nodes "], \"attrs\": {\"shape\": " shape ", \"dltype\": " dltype               \
    "}, \"node_row_ptr\": " row "}"
#define INPUT "{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}"
#define CALL(inputs)                                                                               \
    "{\"op\": \"tvm_op\", \"name\": \"f\", \"attrs\": {\"func_name\": \"f\", \"num_outputs\": "    \
    "\"1\"}, \"inputs\": [" inputs "]}"
#define SHAPES2 "[\"list_shape\", [[1], [1]]]"
#define TYPES2  "[\"list_str\", [\"int8\", \"int8\"]]"

static const struct {
    const char *text;
    cdmpp_status st;
    long line;
    const char *key, *part;
} wrong[] = {
    {"", CDMPP_ESCHEMA, 0, "", "empty file"},
    {" \n [1]", CDMPP_ESCHEMA, 0, "", "expected a graph"},
    {"{}", CDMPP_ESCHEMA, 0, "", "expected a graph"},
    {"{\"a\": 1}", CDMPP_ESCHEMA, 0, "", "expected a graph"},
    {"{\"schema\": \"cdmpp.tasks\"}", CDMPP_ESCHEMA, 0, "schema", "found \"cdmpp.tasks\""},
    {"{\"schema\": \"cdmpp.netgraph\"}", CDMPP_ESCHEMA, 0, "version", "an integer"},
    {"{\"schema\": \"cdmpp.netgraph\", \"version\": 2}", CDMPP_EUNSUPPORTED, 0, "version",
     "version 1, found 2"},
    {"{\"schema\": \"cdmpp.netgraph\", \"version\": 1}", CDMPP_ESCHEMA, 0, "networks",
     "expected this key"},
    {"{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"networks\": []}", CDMPP_ESCHEMA, 0, "",
     "found none"},
    {"{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"networks\": {}}", CDMPP_EPARSE, 1,
     "networks", "expected '['"},
    {"{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"network\": []}", CDMPP_ESCHEMA, 1, "",
     "unknown member \"network\""},
    {OWN(FREE("a") ",\n{\"name\": \"b\", \"kind\": \"fre"), CDMPP_EPARSE, 4, "",
     "found end of text"},
    {"{\"schema\": \"cdmpp.netgraph\", \"version\": 1,\n\"networks\": [{\"name\": \"w\", "
     "\"nodes\": [],\n\"nodes\": []}]}",
     CDMPP_EPARSE, 3, "networks[0].nodes", "expected this key once"},
    {"{\"schema\": \"cdmpp.netgraph\",\n\"version\": 1, \"version\": 1}", CDMPP_EPARSE, 2,
     "version", "expected this key once"},
    {OWN(FREE("a") ",\n" FREE("b") ",\n{\"name\": \"a\", \"kind\": \"free\"}"), CDMPP_EINVALID, 5,
     "w.nodes[2].name", "node 0 has the name \"a\" already"},
    {OWN(FREE("a") ",\n{\"name\": \"b\", \"kind\": \"free\", \"after\": [\"a\", \"c\"]}"),
     CDMPP_EINVALID, 4, "w.nodes[1].after[1]", "no node is named \"c\""},
    {OWN("{\"name\": \"a\", \"kind\": \"free\", \"after\": [\"b\"]}, {\"name\": \"b\", \"kind\": "
         "\"free\", \"after\": [\"a\"]}"),
     CDMPP_EINVALID, 2, "w", "a cycle of 2: \"a\" after \"b\" after \"a\""},
    {OWN("{\"name\": \"a\", \"kind\": \"free\", \"after\": [\"a\"]}"), CDMPP_EINVALID, 2, "w",
     "a cycle of 1"},
    {OWN("{\"kind\": \"free\"}"), CDMPP_ESCHEMA, 3, "w.nodes[0].name", "expected the node's name"},
    {OWN("{\"name\": \"\", \"kind\": \"free\"}"), CDMPP_ESCHEMA, 3, "w.nodes[0].name",
     "expected the node's name"},
    {OWN("{\"name\": \"a\\u0000b\", \"kind\": \"free\"}"), CDMPP_EPARSE, 3, "w.nodes[0]",
     "expected no \\u0000"},
    {OWN("{\"name\": \"a\"}"), CDMPP_ESCHEMA, 3, "w.nodes[0].kind",
     "task|library|given|free|unknown"},
    {OWN("{\"name\": \"a\", \"kind\": \"Task\"}"), CDMPP_ESCHEMA, 3, "w.nodes[0].kind",
     "found \"Task\""},
    {OWN("{\"name\": 5, \"kind\": \"free\"}"), CDMPP_ESCHEMA, 3, "w.nodes[0].name",
     "expected a string, found integer"},
    {OWN("[]"), CDMPP_ESCHEMA, 3, "w.nodes[0]", "expected an object, found array"},
    {OWN("{\"name\": \"a\", \"kind\": \"free\", \"repaet\": 2}"), CDMPP_ESCHEMA, 3, "w.nodes[0]",
     "unknown member \"repaet\""},
    {OWN("{\"name\": \"a\", \"kind\": \"free\", \"name\": \"b\"}"), CDMPP_EPARSE, 3,
     "w.nodes[0].name", "expected this key once"},
    {OWN("{\"name\": \"a\", \"kind\": \"free\", \"repeat\": -1}"), CDMPP_ERANGE, 3,
     "w.nodes[0].repeat", "-1"},
    {OWN("{\"name\": \"a\", \"kind\": \"free\", \"repeat\": 1.5}"), CDMPP_ESCHEMA, 3,
     "w.nodes[0].repeat", "an integer"},
    {OWN("{\"name\": \"a\", \"kind\": \"free\", \"given_s\": -1e-9}"), CDMPP_ERANGE, 3,
     "w.nodes[0].given_s", "found -1e-09"},
    {OWN("{\"name\": \"a\", \"kind\": \"free\", \"given_s\": 1e999}"), CDMPP_ERANGE, 3,
     "w.nodes[0].given_s", "found inf"},
    {OWN("{\"name\": \"a\", \"kind\": \"free\", \"given_s\": NaN}"), CDMPP_EPARSE, 3, "w.nodes[0]",
     "expected a value"},
    {OWN("{\"name\": \"a\", \"kind\": \"free\", \"given_s\": \"fast\"}"), CDMPP_ESCHEMA, 3,
     "w.nodes[0].given_s", "expected a number"},
    {OWN("{\"name\": \"a\", \"kind\": \"free\", \"write_bytes\": -1}"), CDMPP_ERANGE, 3,
     "w.nodes[0].write_bytes", "-1"},
    {OWN("{\"name\": \"a\", \"kind\": \"free\", \"flop\": -5}"), CDMPP_ERANGE, 3, "w.nodes[0].flop",
     "-5"},
    {OWN("{\"name\": \"a\", \"kind\": \"free\", \"after\": \"b\"}"), CDMPP_ESCHEMA, 3,
     "w.nodes[0].after", "expected an array"},
    {OWN("{\"name\": \"a\", \"kind\": \"free\", \"after\": [7]}"), CDMPP_ESCHEMA, 3,
     "w.nodes[0].after[0]", "expected a string"},
    {OWN("{\"name\": \"a\", \"kind\": \"task\"}"), CDMPP_EINVALID, 3, "w.nodes[0]",
     "task without a key"},
    {OWN("{\"name\": \"a\", \"kind\": \"given\", \"given_s\": null}"), CDMPP_EINVALID, 3,
     "w.nodes[0]", "given without a time"},
    {OWN("{\"name\": \"a\", \"kind\": \"unknown\"}"), CDMPP_EINVALID, 3, "w.nodes[0]",
     "unknown without a reason"},
    {OWN("{\"name\": \"a\", \"kind\": \"free\",}"), CDMPP_EPARSE, 3, "w.nodes[0]",
     "expected a string"},
    {OWN(FREE("a") ","), CDMPP_EPARSE, 3, "w.nodes[1]", "expected a value"},
    {"{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"networks\": [{\"nodes\": []}]}",
     CDMPP_ESCHEMA, 1, "networks[0].name", "expected the network's name"},
    {"{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"networks\": [{\"name\": \"w\"}]}",
     CDMPP_ESCHEMA, 1, "w.nodes", "expected this key"},
    {"{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"networks\": [{\"name\": \"w\", \"batch\": "
     "-4, \"nodes\": []}]}",
     CDMPP_ERANGE, 1, "w.batch", "-4"},
    {"{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"networks\": [{\"name\": \"w\", \"bacth\": "
     "4, \"nodes\": []}]}",
     CDMPP_ESCHEMA, 1, "w.bacth", "unknown member"},
    {"{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"networks\": [{\"name\": \"w\", \"nodes\": "
     "[]}, {\"name\": \"w\", \"nodes\": []}]}",
     CDMPP_EINVALID, 0, "w", "a network of this name"},
    {OWN("{\"name\": \"a\", \"kind\": \"free\", \"question\": {\"op\": \"convolve\"}}"),
     CDMPP_EUNSUPPORTED, 3, "w.nodes[0].question.op", "unknown operator \"convolve\""},
    {ASK("\"op\": \"linear\", \"b\": 1, \"m\": 0, \"n\": 4, \"k\": 4"), CDMPP_ERANGE, 3,
     "w.nodes[0].question.m", "1.."},
    {ASK("\"op\": \"linear\", \"b\": 1, \"m\": 2.5, \"n\": 4, \"k\": 4"), CDMPP_ERANGE, 3,
     "w.nodes[0].question.m", "a whole number"},
    {ASK("\"op\": \"linear\", \"b\": 1, \"m\": 2, \"n\": 4"), CDMPP_ESCHEMA, 3,
     "w.nodes[0].question.k", "expected this key"},
    {ASK("\"op\": \"linear\", \"b\": 1, \"m\": 2, \"n\": 4, \"k\": 4, \"pad\": 1"), CDMPP_ESCHEMA,
     3, "w.nodes[0].question", "unknown member \"pad\""},
    {ASK("\"op\": \"linear\", \"b\": 1, \"m\": 2, \"n\": 4, \"k\": 4, \"dtype\": \"int4\""),
     CDMPP_ESCHEMA, 3, "w.nodes[0].question.dtype", "float32|"},
    {ASK("\"op\": \"conv\", \"b\": 1, \"m\": 195, \"n\": 4, \"k\": 576, \"cin\": 64, \"ksize\": 3, "
         "\"stride\": 1, \"pad\": 1, \"size\": 14"),
     CDMPP_ERANGE, 3, "w.nodes[0].question", "are not of a convolution 3x3 of 64 channels"},
    {"{\"w\": {\"e2e_mean_s\": 1}}", CDMPP_ESCHEMA, 1, "w.nodes", "expected this key"},
    {"{\"w\": {\"e2e_mean_s\": -1, \"nodes\": []}}", CDMPP_ERANGE, 1, "w.e2e_mean_s", "found -1"},
    {RUN("{\"id\": 1, \"name\": \"x\", \"op\": \"null\", \"inputs\": []}"), CDMPP_EINVALID, 1,
     "w.nodes[0].id", "expected 0"},
    {RUN("{\"id\": 0, \"name\": \"x\", \"op\": \"null\", \"inputs\": [0]}"), CDMPP_EINVALID, 1, "w",
     "a cycle of 1"},
    {RUN("{\"id\": 0, \"name\": \"x\", \"op\": \"null\", \"inputs\": [3]}"), CDMPP_EINVALID, 1,
     "w.nodes[0].inputs[0]", "node 3 of 1"},
    {RUN("{\"id\": 0, \"name\": \"x\", \"op\": \"conv\", \"inputs\": []}"), CDMPP_ESCHEMA, 1,
     "w.nodes[0].op", "found \"conv\""},
    {RUN("{\"id\": 0, \"name\": \"x\", \"op\": \"tvm_op\", \"inputs\": [], \"time_s\": -2}"),
     CDMPP_ERANGE, 1, "w.nodes[0].time_s", "found -2"},
    {RUN("{\"id\": 0, \"name\": \"x\", \"op\": \"tvm_op\", \"inputs\": [], \"workload_key\": 3}"),
     CDMPP_ESCHEMA, 1, "w.nodes[0].workload_key", "a string"},
    {TVM(INPUT "," CALL("[0, 0, 0]"), "[0, 1, 1]", SHAPES2, TYPES2), CDMPP_EINVALID, 1,
     "net.attrs.shape[1][1]", "expected 1 shapes"},
    {TVM(INPUT "," CALL("[0, 0, 0]"), "[0, 1, 3]", SHAPES2, TYPES2), CDMPP_EINVALID, 1,
     "net.attrs.shape", "expected 3 items"},
    {TVM(INPUT "," CALL("[0, 0, 0]"), "[0, 2, 1]", SHAPES2, TYPES2), CDMPP_ERANGE, 1,
     "net.node_row_ptr[2]", "outside"},
    {TVM(INPUT "," CALL("[0, 0, 0]"), "[0, 2]", SHAPES2, TYPES2), CDMPP_EINVALID, 1, "net.nodes[1]",
     "expected 1 nodes"},
    {TVM(INPUT "," CALL("[0, 0, 0]"), "[0, 4000000000]", SHAPES2, TYPES2), CDMPP_EINVALID, 0,
     "net.node_row_ptr", "4000000000 outputs in a file"},
    {TVM(INPUT "," CALL("[0, 0, 0]"), "[]", SHAPES2, TYPES2), CDMPP_ESCHEMA, 0, "net.node_row_ptr",
     "at least one"},
    {TVM(INPUT "," CALL("[0, 1, 0]"), "[0, 1, 2]", SHAPES2, TYPES2), CDMPP_EINVALID, 1,
     "net.nodes[1].inputs[0]", "output 1 of node 0, which has 1"},
    {TVM(INPUT "," CALL("[2, 0, 0]"), "[0, 1, 2]", SHAPES2, TYPES2), CDMPP_EINVALID, 1,
     "net.nodes[1].inputs[0]", "reads node 2 of 2"},
    {TVM(INPUT "," CALL("[1, 0, 0]"), "[0, 1, 2]", SHAPES2, TYPES2), CDMPP_EINVALID, 0, "net",
     "a cycle of 1"},
    {TVM(INPUT "," CALL("0"), "[0, 1, 2]", SHAPES2, TYPES2), CDMPP_ESCHEMA, 1,
     "net.nodes[1].inputs[0]", "an array"},
    {TVM(INPUT "," CALL(""), "[0, 0, 2]", SHAPES2, TYPES2), CDMPP_EINVALID, 1,
     "net.nodes[1].attrs.num_outputs", "1 outputs, but node_row_ptr has 2"},
    {TVM(INPUT "," CALL(""), "[0, 1, 2]", "[\"list_int\", [[1], [1]]]", TYPES2), CDMPP_ESCHEMA, 1,
     "net.attrs.shape", "list_shape"},
    {TVM(INPUT "," CALL(""), "[0, 1, 2]", "[\"list_shape\", [[1], [-1]]]", TYPES2), CDMPP_ERANGE, 1,
     "net.attrs.shape[1][1][0]", "-1"},
    {TVM(INPUT "," CALL(""), "[0, 1, 2]", "[\"list_shape\", [[1], [4294967296, 4294967296]]]",
         TYPES2),
     CDMPP_ERANGE, 1, "net.attrs.shape[1][1]", "2^63"},
    {TVM(INPUT "," CALL(""), "[0, 1, 2]", SHAPES2, "[\"list_str\", [1, 2]]"), CDMPP_ESCHEMA, 1,
     "net.attrs.dltype[1][0]", "a string"},
    {TVM("{\"op\": \"call\", \"name\": \"f\", \"inputs\": []}", "[0, 1]", "[\"list_shape\", [[1]]]",
         "[\"list_str\", [\"int8\"]]"),
     CDMPP_EUNSUPPORTED, 1, "net.nodes[0].op", "found \"call\""},
};

static void test_wrong_files(void **state) {
    (void)state;
    int off = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cdmpp_err err = {0};
        cd_network_graph **g;
        size_t n;
        const cdmpp_status st = cd_network_graph_read_text(
            "d/net.json", wrong[i].text, strlen(wrong[i].text), NULL, NULL, &g, &n, &err);
        if (st != wrong[i].st || strcmp(err.key, wrong[i].key) || err.line != wrong[i].line ||
            !strstr(err.msg, wrong[i].part) || strcmp(err.path, "d/net.json"))
            print_error("%s\n  status %d, line %ld, key \"%s\", path %s: %s\n", wrong[i].text, st,
                        err.line, err.key, err.path, err.msg),
                off++;
        assert_int_not_equal(cd_network_graph_read_text("d/net.json", wrong[i].text,
                                                        strlen(wrong[i].text), NULL, NULL, &g, &n,
                                                        NULL),
                             CDMPP_OK);
    }
    assert_int_equal(off, 0);
}

/* A file cut anywhere is an error, never a shorter network. */
static void test_cut_files(void **state) {
    (void)state;
    const char *const paths[] = {"tests/fuzz/seeds/netgraph/own.json",
                                 "tests/fuzz/seeds/netgraph/measured.json",
                                 "tests/fuzz/seeds/netgraph/tvm.json"};
    for (int p = 0; p < 3; p++) {
        size_t len = 0, n;
        char *text = (char *)scratch_read(paths[p], &len);
        assert_non_null(text);
        while (text[len - 1] != '}') len--;
        for (size_t cut = 0; cut < len; cut++) {
            cdmpp_err err = {0};
            cd_network_graph **g;
            char *exact = malloc(cut + 1); /* so that a read past the end is seen */
            assert_non_null(exact);
            memcpy(exact, text, cut);
            assert_int_not_equal(
                cd_network_graph_read_text("cut.json", exact, cut, NULL, NULL, &g, &n, &err),
                CDMPP_OK);
            free(exact);
        }
        free(text);
    }
}

static void test_deep_nesting(void **state) {
    (void)state;
    enum { DEEP = 200000 };
    cd_buf b = {0};
    cdmpp_err err = {0};
    cd_network_graph **g;
    size_t n;
    cd_buf_puts(&b, "{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"networks\": [{\"name\": "
                    "\"w\", \"nodes\": [{\"name\": \"a\", \"note\": ");
    for (int i = 0; i < DEEP; i++) cd_buf_puts(&b, "[");
    for (int i = 0; i < DEEP; i++) cd_buf_puts(&b, "]");
    cd_buf_puts(&b, "}]}]}");
    assert_status(cd_network_graph_read_text("deep", b.p, b.n, NULL, NULL, &g, &n, &err),
                  CDMPP_EPARSE);
    assert_non_null(strstr(err.msg, "nested deeper"));
    cd_buf_free(&b);
}

/* ---- one wrong network among good ones ---- */
typedef struct told {
    int n;
    char name[4][40], msg[4][224];
} told;
static void tell(void *ctx, const char *network, const cdmpp_err *why) {
    told *t = ctx;
    assert_true(t->n < 4);
    snprintf(t->name[t->n], sizeof t->name[0], "%s", network);
    snprintf(t->msg[t->n++], sizeof t->msg[0], "%.100s:%ld: %.90s", why->key, why->line, why->msg);
}

static void test_good_ones_are_given(void **state) {
    (void)state;
    const char text[] =
        "{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"networks\": [\n{\"name\": \"good\", "
        "\"nodes\": [" FREE("a") "]},\n"
                                 "{\"name\": \"bad\", \"nodes\": [" FREE("a") ", " FREE(
                                     "a") "]},\n{\"nodes\": []},\n{\"name\": \"better\", "
                                          "\"nodes\": [" FREE("a") "]}]}";
    cdmpp_err err = {0};
    cd_network_graph **g;
    size_t n;
    told t = {0};
    assert_ok(cd_network_graph_read_text("f", text, strlen(text), tell, &t, &g, &n, &err));
    assert_int_equal(n, 2);
    assert_string_equal(g[0]->name, "good");
    assert_string_equal(g[1]->name, "better");
    assert_int_equal(t.n, 2);
    assert_string_equal(t.name[0], "bad");
    assert_string_equal(t.msg[0], "bad.nodes[1].name:3: node 0 has the name \"a\" already");
    assert_string_equal(t.name[1], "networks[2]");
    cd_network_graph_free_all(g, n);
    assert_status(cd_network_graph_read_text("f", text, strlen(text), NULL, NULL, &g, &n, &err),
                  CDMPP_EINVALID);

    /* none is good: an error, the first one's; so is a file that does not close */
    const char none[] = OWN("{\"name\": \"a\"}");
    t.n = 0;
    assert_status(cd_network_graph_read_text("f", none, strlen(none), tell, &t, &g, &n, &err),
                  CDMPP_ESCHEMA);
    assert_int_equal(t.n, 1);
    assert_string_equal(err.key, "w.nodes[0].kind");
    assert_status(cd_network_graph_read_text("f", text, strlen(text) - 1, tell, &t, &g, &n, &err),
                  CDMPP_EPARSE);
}

/* ---- files ---- */
static void test_files(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_network_graph **g;
    size_t n;
    assert_status(cd_network_graph_read(scratch("gone.json"), &g, &n, &err), CDMPP_EIO);
    const char *path = scratch("my.net.json");
    const char text[] =
        TVM(INPUT, "[0, 1]", "[\"list_shape\", [[]]]", "[\"list_str\", [\"float64\"]]");
    scratch_write(path, text, strlen(text));
    assert_ok(cd_network_graph_read(path, &g, &n, &err));
    assert_string_equal(g[0]->name, "my.net");
    assert_int_equal(g[0]->node[0].write_bytes, 8); /* a scalar */
    cd_network_graph_free_all(g, n);
    cd_network_graph_free_all(NULL, 0);
}

/* A million nodes in bounded time; scripts count the memory. */
static void test_large(void **state) {
    (void)state;
    const uint32_t many = getenv("CDMPP_LARGE") ? 1000000 : 50000;
    cd_buf b = {0};
    cdmpp_err err = {0};
    size_t n;
    cd_buf_puts(&b, "{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"networks\": [{\"name\": "
                    "\"large\", \"nodes\": [\n");
    for (uint32_t i = 0; i < many; i++) {
        cd_buf_putf(&b,
                    "{\"name\": \"node_%u\", \"op\": \"Conv\", \"kind\": \"task\", \"key\": "
                    "\"[\\\"%08x\\\", [1, 64, 56, 56]]\", \"write_bytes\": %u",
                    i, i % 50, i);
        if (i > 1) cd_buf_putf(&b, ", \"after\": [\"node_%u\", \"node_%u\"]", i - 1, i / 2);
        cd_buf_puts(&b, i + 1 < many ? "},\n" : "}\n");
    }
    cd_buf_puts(&b, "]}]}");
    const clock_t from = clock();
    cd_network_graph **g = NULL;
    assert_ok(cd_network_graph_read_text("large", b.p, b.n, NULL, NULL, &g, &n, &err));
    const double s = (double)(clock() - from) / CLOCKS_PER_SEC;
    if (getenv("CDMPP_LARGE")) print_message("%u nodes, %zu bytes: %.2f s\n", many, b.n, s);
    assert_int_equal(g[0]->n_node, many);
    assert_true(s < 60);
    cd_network_graph_free_all(g, n);
    cd_buf_free(&b);
}

/* Allocation after allocation refused: an error, nothing left behind. */
static void test_memory(void **state) {
    (void)state;
    const char *const paths[] = {"tests/fuzz/seeds/netgraph/own.json",
                                 "tests/fuzz/seeds/netgraph/measured.json",
                                 "tests/fuzz/seeds/netgraph/tvm.json"};
    for (int p = 0; p < 3; p++) FAULT_SWEEP(f, 1) {
            cd_network_graph **g = NULL;
            size_t n = 0;
            cd_buf b = {0};
            f.st = cd_network_graph_read(paths[p], &g, &n, &f.err);
            if (!f.st) {
                f.st = cd_network_graph_write(&b, g, n, &f.err);
                if (!f.st) f.st = cd_network_graph_write_dot(&b, g, n, &f.err);
                cd_network_graph_free_all(g, n);
            }
            cd_buf_free(&b);
        }
}

/* Names are quoted; an edge leads from what a node waits for to the node. */
static void test_dot(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_network_graph **g;
    cd_buf b = {0};
    size_t n, edges = 0;
    assert_ok(cd_network_graph_read("tests/fuzz/seeds/netgraph/own.json", &g, &n, &err));
    assert_ok(cd_network_graph_write_dot(&b, g, n, &err));
    assert_non_null(strstr(b.p, "digraph cdmpp {\n node [shape=box];\n subgraph cluster_0 {\n  "
                                "label=\"two_branches\";\n  n0_0 [label=\""));
    assert_non_null(strstr(b.p, "[label=\"\xc3\xbc"
                                "ber \\\"quoted\\\" "));
    for (const char *p = b.p; (p = strstr(p, " -> ")) != NULL; p++) edges++;
    assert_int_equal(edges, g[0]->n_after + g[1]->n_after);
    cd_network_graph_free_all(g, n);
    cd_buf_free(&b);
}

TESTS(NULL, NULL, test_dot, test_own, test_unknown_library_operator, test_measured, test_tvm,
      test_network_of_tasks, test_there_and_back, test_golden, test_random_there_and_back,
      test_wrong_files, test_cut_files, test_deep_nesting, test_good_ones_are_given, test_files,
      test_large, test_memory)
