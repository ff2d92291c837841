/* Graphs of TVM's executor, made up by the hundred: every node's bytes, device, kind and edges
 * against how the file was made; and what is refused, with its place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "predictor/network/network_internal.h"

enum { MOST = 700, OUTS = 3, READS = 4 };
typedef struct {
    int out, reads, from[READS], entry[READS], what; /* what: 0 null, 1 view, 2 task, 3 unknown */
    int64_t bytes[OUTS];
    int rows[OUTS], device, after; /* after: control dependency, -1 none */
} node;
static node made[MOST];
static const char *const type[] = {"float32", "int8", "float64", "bool"};
static const int64_t size[] = {4, 1, 8, 1};
static const char *const device[] = {NULL,     "cpu",   "cuda", NULL,   "opencl", NULL,      NULL,
                                     "vulkan", "metal", NULL,   "rocm", NULL,     "hexagon", NULL};

static uint64_t at;
static int pick(uint64_t seed, int n) { return (int)(cd_rng_at(seed, at++) % (uint64_t)n); }

static void draw(uint64_t seed, int n) {
    at = 0;
    for (int k = 0; k < n; k++) {
        node *v = &made[k];
        *v = (node){.out = 1 + pick(seed, OUTS),
                    .what = k < 2 ? 0 : pick(seed, 4),
                    .device = pick(seed, 14),
                    .after = -1};
        /* the type, for now */
        for (int i = 0; i < v->out; i++)
            v->rows[i] = 1 + pick(seed, 50), v->bytes[i] = pick(seed, 4);
        v->reads = v->what ? pick(seed, READS + 1) : 0;
        for (int i = 0; i < v->reads; i++)
            v->from[i] = pick(seed, k), v->entry[i] = pick(seed, made[v->from[i]].out);
        if (v->what && pick(seed, 5) == 0) v->after = pick(seed, k);
    }
}

static void put_list(cd_buf *b, int n, int what) {
    bool first = true;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < made[k].out; i++, first = false) {
            cd_buf_puts(b, first ? "" : ",");
            if (what == 0) cd_buf_putf(b, "[%d,3]", made[k].rows[i]);
            else if (what == 1) cd_buf_putf(b, "\"%s\"", type[made[k].bytes[i]]);
            else cd_buf_putf(b, "%d", made[k].device);
        }
}

static void put(cd_buf *b, int n) {
    static const char *const func[] = {"", "__nop", "tvmgen_default_fused_dense",
                                       "tvmgen_default_fused_fft"};
    cd_buf_puts(b, "{\"nodes\":[");
    for (int k = 0; k < n; k++) {
        const node *v = &made[k];
        cd_buf_putf(b, "%s{\"op\":\"%s\",\"name\":\"n%d\",\"inputs\":[", k ? "," : "",
                    v->what ? "tvm_op" : "null", k);
        for (int i = 0; i < v->reads; i++)
            cd_buf_putf(b, "%s[%d,%d,0]", i ? "," : "", v->from[i], v->entry[i]);
        cd_buf_puts(b, "]");
        if (v->what)
            cd_buf_putf(b, ",\"attrs\":{\"func_name\":\"%s\",\"num_outputs\":\"%d\"}",
                        func[v->what], v->out);
        if (v->after >= 0) cd_buf_putf(b, ",\"control_deps\":[%d]", v->after);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b,
                "],\"arg_nodes\":[0],\"heads\":[[0,0,0]],\"attrs\":{\"shape\":[\"list_shape\",[");
    put_list(b, n, 0);
    cd_buf_puts(b, "]],\"dltype\":[\"list_str\",[");
    put_list(b, n, 1);
    cd_buf_puts(b, "]],\"device_index\":[\"list_int\",[");
    put_list(b, n, 2);
    cd_buf_puts(b, "]]},\"node_row_ptr\":[0");
    for (int k = 0, row = 0; k < n; k++) cd_buf_putf(b, ",%d", row += made[k].out);
    cd_buf_puts(b, "],\"cdmpp.tasks\":{\"tvmgen_default_fused_dense\":\"[\\\"dense\\\", 4]\"}}");
}

static cd_network_graph **read(const cd_buf *b, size_t *n) {
    cdmpp_err err = {0};
    cd_network_graph **g;
    assert_ok(cd_network_graph_read_text("folder/net.json", b->p, b->n, NULL, NULL, &g, n, &err));
    return g;
}

static int64_t bytes_of(int k, int i) { return 3 * made[k].rows[i] * size[made[k].bytes[i]]; }

/* Number in the graph of node k of the file. */
static uint32_t find(const cd_network_graph *g, int k) {
    char name[16];
    snprintf(name, sizeof name, "n%d", k);
    for (uint32_t i = 0; i < g->n_node; i++)
        if (!strcmp(g->node[i].name, name)) return i;
    fail_msg("no node %s", name);
    return 0;
}

static void check_node(const cd_network_graph *g, int k) {
    static const cd_node_kind kind[] = {CD_NODE_FREE, CD_NODE_FREE, CD_NODE_TASK, CD_NODE_UNKNOWN};
    const node *v = &made[k];
    const cd_network_node *n = &g->node[find(g, k)];
    int64_t written = 0, read_all = 0;
    uint32_t before = 0;
    for (int i = 0; i < v->out; i++) written += bytes_of(k, i);
    for (int i = 0; i < v->reads; i++) { /* each tensor once, each maker once */
        bool again = false, same = false;
        for (int j = 0; j < i; j++)
            same |= v->from[j] == v->from[i],
                again |= v->from[j] == v->from[i] && v->entry[j] == v->entry[i];
        if (!again) read_all += bytes_of(v->from[i], v->entry[i]);
        before += !same;
    }
    for (int j = 0, same = v->after < 0; j <= v->reads; j++) {
        if (j == v->reads) before += !same;
        else same |= v->from[j] == v->after;
    }
    assert_int_equal(n->kind, kind[v->what]);
    assert_int_equal(n->write_bytes, written);
    assert_int_equal(n->read_bytes, read_all);
    assert_int_equal(n->n_after, before);
    for (int i = 0; i < v->reads; i++) {
        bool found = false;
        for (uint32_t j = 0; j < n->n_after; j++)
            found |= g->after[n->first + j] == find(g, v->from[i]);
        assert_true(found);
    }
    if (device[v->device]) assert_string_equal(n->device, device[v->device]);
    else assert_null(n->device);
    if (v->what == 2) assert_string_equal(n->key, "[\"dense\", 4]");
    if (v->what == 3) assert_non_null(strstr(n->why, "tvmgen_default_fused_fft"));
    if (v->what == 3) assert_string_equal(n->op, "fused_fft");
}

static void test_every_node(void **state) {
    static const int many[] = {2, 5, 255, 256, 257, MOST};
    (void)state;
    for (size_t t = 0; t < sizeof many / sizeof *many; t++) {
        cd_buf b = {0};
        size_t n;
        draw(100 + t, many[t]);
        put(&b, many[t]);
        cd_network_graph **g = read(&b, &n);
        assert_int_equal(n, 1);
        assert_string_equal(g[0]->name, "net");
        assert_int_equal(g[0]->n_node, many[t]);
        for (int k = 0; k < many[t]; k++) check_node(g[0], k);
        cd_network_graph_free_all(g, n);
        cd_buf_free(&b);
    }
}

/* A file of three nodes with one thing changed. */
static const char good[] = "{\"nodes\":[{\"op\":\"null\",\"name\":\"a\",\"inputs\":[]},"
                           "{\"op\":\"tvm_op\",\"name\":\"b\",\"inputs\":[[0,0,0]],\"attrs\":{"
                           "\"func_name\":\"f\",\"num_outputs\":\"2\"}},"
                           "{\"op\":\"tvm_op\",\"name\":\"c\",\"inputs\":[[1,1,0]],\"attrs\":{"
                           "\"func_name\":\"__copy\"},\"control_deps\":[0]}],"
                           "\"arg_nodes\":[0],\"heads\":[[2,0,0]],"
                           "\"attrs\":{\"shape\":[\"list_shape\",[[2],[3],[4],[5]]],\"dltype\":["
                           "\"list_str\",[\"float32\",\"float32\",\"float32\",\"string\"]]},"
                           "\"node_row_ptr\":[0,1,3,4]}";

static void test_refused(void **state) {
    static const struct {
        const char *old, *new, *key;
        cdmpp_status want;
    } bad[] = {
        {"[0,1,3,4]", "[0,1,3,2]", "node_row_ptr[3]", CDMPP_ERANGE},
        {"[0,1,3,4]", "[1,1,3,4]", "node_row_ptr[0]", CDMPP_ERANGE},
        {"[0,1,3,4]", "[0,1,3]", "attrs.shape[1][3]", CDMPP_EINVALID},
        {"[0,1,3,4]", "[0,1,3,4,4]", "node_row_ptr", CDMPP_EINVALID},
        {"[0,1,3,4]", "[]", "node_row_ptr", CDMPP_ESCHEMA},
        {"[0,1,3,4]", "[0,1,3,4000000]", "node_row_ptr", CDMPP_EINVALID},
        {"[[2],[3],[4],[5]]", "[[2],[3],[4]]", "attrs.shape", CDMPP_EINVALID},
        {"[[2],[3],[4],[5]]", "[[2],[3],[4],[5],[6]]", "attrs.shape[1][4]", CDMPP_EINVALID},
        {"[[2],[3],[4],[5]]", "[[2],[3],[-4],[5]]", "attrs.shape[1][2][0]", CDMPP_ERANGE},
        {"list_shape", "list_str", "attrs.shape", CDMPP_ESCHEMA},
        {"\"dltype\":", "\"other\":", "attrs.dltype", CDMPP_ESCHEMA},
        {"[[1,1,0]]", "[[1,2,0]]", "nodes[2].inputs[0]", CDMPP_EINVALID},
        {"[[1,1,0]]", "[[3,0,0]]", "nodes[2].inputs[0]", CDMPP_EINVALID},
        {"\"num_outputs\":\"2\"", "\"num_outputs\":\"1\"", "nodes[1].attrs.num_outputs",
         CDMPP_EINVALID},
        {"\"op\":\"null\"", "\"op\":\"relay\"", "nodes[0].op", CDMPP_EUNSUPPORTED},
        {"[[2,0,0]]", "[[2,1,0]]", "heads[0][1]", CDMPP_ERANGE},
        {"[[2,0,0]]", "[[3,0,0]]", "heads[0][0]", CDMPP_ERANGE},
        {"\"arg_nodes\":[0]", "\"arg_nodes\":[3]", "arg_nodes[0]", CDMPP_ERANGE},
        {"\"control_deps\":[0]", "\"control_deps\":[7]", "nodes[2].control_deps[0]",
         CDMPP_EINVALID},
        {"\"control_deps\":[0]", "\"control_deps\":[2]", "", CDMPP_EINVALID}, /* itself */
    };
    (void)state;
    cd_buf b = {0};
    size_t n;
    int wrong = 0;
    cd_buf_puts(&b, good);
    cd_network_graph **g = read(&b, &n);
    /* no size */
    assert_true(g[0]->node[1].write_bytes == 28 && g[0]->node[2].read_bytes == 16 &&
                g[0]->node[2].write_bytes == -1);
    cd_network_graph_free_all(g, n);
    cd_buf_clear(&b); /* the last node may be an argument */
    cd_buf_puts(&b, good);
    *(strstr(b.p, "\"arg_nodes\":[") + 13) = '2';
    g = read(&b, &n);
    cd_network_graph_free_all(g, n);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        cdmpp_err err = {0};
        const char *place = strstr(good, bad[k].old);
        assert_non_null(place);
        cd_buf_clear(&b);
        cd_buf_put(&b, good, (size_t)(place - good));
        cd_buf_puts(&b, bad[k].new);
        cd_buf_puts(&b, place + strlen(bad[k].old));
        const cdmpp_status st =
            cd_network_graph_read_text("net.json", b.p, b.n, NULL, NULL, &g, &n, &err);
        /* behind the network's name */
        const char *key = strncmp(err.key, "net.", 4) ? "" : err.key + 4;
        if (st != bad[k].want || strcmp(key, bad[k].key) != 0)
            print_error("%s -> %s: %s, key %s: %s\n", bad[k].old, bad[k].new, cdmpp_status_name(st),
                        err.key, err.msg),
                wrong++;
    }
    assert_int_equal(wrong, 0);
    cd_buf_free(&b);
}

/* Without a tensor there is no device to read, and no error. */
TEST(test_no_nodes) {
    static const char none[] =
        "{\"nodes\":[],\"attrs\":{\"shape\":[\"list_shape\",[]],\"dltype\":[\"list_str\",[]],"
        "\"device_index\":[\"list_int\",[]]},\"node_row_ptr\":[0]}";
    cd_buf b = {0};
    size_t n;
    cd_buf_puts(&b, none);
    cd_network_graph **g = read(&b, &n);
    assert_int_equal(n, 1);
    assert_int_equal(g[0]->n_node, 0);
    cd_network_graph_free_all(g, n);
    cd_buf_free(&b);
}

TESTS(NULL, NULL, test_every_node, test_no_nodes, test_refused)
