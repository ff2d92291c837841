/* Networks of the zoo and of ONNX files as graphs to replay: nodes, edges, reasons, errors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tmp.h"
#include "predictor/network/network.h"
#include "profiler/network/zoo/zoo.h"

#define DATA "tests/profiler/data/"

static cd_network_loaded must(cd_network_load_options a) {
    cdmpp_err err = {0};
    cd_network_loaded l;
    const cdmpp_status st = cd_network_load(&a, &l, &err);
    if (st) fail_msg("%s: %s %s", a.network, err.key, err.msg);
    return l;
}

static bool comes_after(const cd_network_graph *g, uint32_t node, uint32_t of) {
    for (uint32_t k = 0; k < g->node[node].n_after; k++)
        if (g->after[g->node[node].first + k] == of) return true;
    return false;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The laws of netgraph.h and live_load.h, for any network. */
static void check_laws(const cd_network_loaded *l) {
    const bool forward = !l->forward;
    const cd_network_graph *g = l->graph;
    const cd_workload *w = l->work;
    double flop = 0;
    assert_true(g->n_node >= w->n_group);
    for (uint32_t i = 0; i < w->n_group; i++) {
        const cd_network_node *n = &g->node[i];
        const cd_workload_group *x = &w->group[i];
        assert_true(n->name[0] && n->op[0] && n->repeat == 1 &&
                    (n->phase == CD_PHASE_FORWARD || !forward) && isnan(n->given_s));
        assert_true(n->n_after >= x->n_after);
        for (uint32_t k = 0; k < x->n_after; k++) assert_true(comes_after(g, i, x->after[k]));
        for (uint32_t k = 0; k < n->n_after; k++) assert_true(g->after[n->first + k] < i);
        assert_true(n->write_bytes > 0 && n->read_bytes > 0);
        assert_int_equal(n->kind == CD_NODE_TASK, x->task != CD_GRAPH_NONE);
        assert_int_equal(n->kind == CD_NODE_TASK, n->key != NULL);
        assert_int_equal(n->kind == CD_NODE_UNKNOWN, n->why != NULL);
        if (n->key)
            assert_string_equal(n->key,
                                cd_task_registry_at(w->tasks, w->task[x->task].task)->workload_key);
        if (n->key) flop += n->flop;
    }
    assert_true(fabs(flop - cd_workload_flop(w)) <= 1e-9 * flop);
    const char **name = calloc(g->n_node, sizeof *name);
    for (uint32_t i = 0; i < g->n_node; i++) name[i] = g->node[i].name;
    qsort(name, g->n_node, sizeof *name, by_name);
    for (uint32_t i = 1; i < g->n_node; i++) assert_string_not_equal(name[i - 1], name[i]);
    free(name);
}

/* A word that stands alone may be a network's file. */
TEST(test_unexpected) {
    static const char *const t[][2] = {
        {"a.onnx", "unexpected 'a.onnx', did you mean --network a.onnx?"},
        {".onnx", "unexpected '.onnx'"},
        {"a.onnx2", "unexpected 'a.onnx2'"},
        {"x", "unexpected 'x'"}};
    cdmpp_err err;
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        assert_status(cd_network_load_unexpected(t[k][0], &err), CDMPP_EUSAGE);
        assert_string_equal(err.msg, t[k][1]);
    }
}

static void test_zoo(void **state) {
    (void)state;
    static const char *const net[] = {"squeezenet-1.1", "mobilenet-v2", "lstm", "bert-tiny"};
    for (size_t k = 0; k < 4; k++) {
        cd_network_loaded l = must((cd_network_load_options){
            .network = net[k], .target = "llvm -num-cores=1", .batch = 2});
        check_laws(&l);
        assert_int_equal(l.graph->n_node, l.work->n_group);
        assert_int_equal(l.graph->batch, 2);
        assert_string_equal(l.graph->name, l.source->name);
        cd_network_load_free(&l);
        assert_null(l.graph);
    }
}

/* Squeezenet's fire modules: two branches behind one node. */
/* Attention multiplies what other operators make: no weights, nothing to pack beforehand.
 * Convolutions have weights alone. */
static void test_plain(void **state) {
    (void)state;
    static const struct {
        const char *net;
        bool any;
    } is[] = {{"bert-tiny", true}, {"squeezenet-1.1", false}, {"lstm", false}};
    for (size_t k = 0; k < sizeof is / sizeof *is; k++) {
        cd_network_loaded l;
        cdmpp_err err = {0};
        assert_int_equal(
            cd_network_load(&(cd_network_load_options){.network = is[k].net}, &l, &err), CDMPP_OK);
        assert_true((l.n_plain > 0) == is[k].any);
        for (uint32_t i = 0; i < l.n_plain; i++) {
            assert_non_null(
                cd_task_registry_find(l.work->tasks, (cd_str){l.plain[i], strlen(l.plain[i])}));
            assert_true(!i || strcmp(l.plain[i - 1], l.plain[i]) < 0);
        }
        cd_network_load_free(&l);
    }
}

static void test_branches(void **state) {
    (void)state;
    cd_network_loaded l =
        must((cd_network_load_options){.network = "squeezenet-1.1", .target = "llvm -num-cores=1"});
    uint32_t *readers = calloc(l.graph->n_node, sizeof *readers), two = 0;
    for (uint32_t e = 0; e < l.graph->n_after; e++) two += ++readers[l.graph->after[e]] == 2;
    free(readers);
    assert_true(two >= 8);
    assert_string_equal(l.graph->node[0].op, "layout_transform"); /* channels to the end */
    assert_string_equal(l.graph->node[1].op, "Conv+Relu");
    cd_network_load_free(&l);
}

/* The layout follows the device, unless it is asked for. */
static void test_layout(void **state) {
    (void)state;
    const char *key[4];
    char kept[4][512];
    static const cd_network_load_options ask[4] = {
        {.network = "resnet-18", .target = "llvm -num-cores=1"},
        {.network = "resnet-18", .target = "cuda"},
        {.network = "resnet-18", .target = "llvm -num-cores=1", .layout = CD_WORKLOAD_LAYOUT_NCHW},
        {.network = "resnet-18", .target = "llvm -num-cores=8"}};
    for (int k = 0; k < 4; k++) {
        cd_network_loaded l = must(ask[k]);
        check_laws(&l);
        const cd_task *t = cd_task_registry_at(l.work->tasks, l.work->task[0].task);
        assert_int_equal(t->hardware.num_cores, k == 3 ? 8 : k == 1 ? t->hardware.num_cores : 1);
        key[k] = t->workload_key;
        assert_true(strlen(key[k]) < sizeof kept[k]);
        strcpy(kept[k], key[k]);
        cd_network_load_free(&l);
    }
    assert_string_not_equal(kept[0], kept[1]);
    assert_string_equal(kept[1], kept[2]);
    assert_string_equal(kept[0], kept[3]);
}

/* An operator without a definition has a node with the reason; one that is not even in the graph
 * stands behind. */
static void test_missing(void **state) {
    (void)state;
    cd_network_loaded l = must(
        (cd_network_load_options){.network = DATA "opaque.onnx", .target = "llvm -num-cores=1"});
    check_laws(&l);
    uint32_t unknown = 0;
    bool magic = false, behind = false;
    for (uint32_t i = 0; i < l.graph->n_node; i++) {
        const cd_network_node *n = &l.graph->node[i];
        if (n->kind != CD_NODE_UNKNOWN) continue;
        unknown++;
        magic = magic || (!strcmp(n->name, "magic") && !strcmp(n->op, "Magic") &&
                          strstr(n->why, "another domain") && i < l.work->n_group);
        behind = behind || (!strcmp(n->name, "behind") && strstr(n->why, "shape nobody knows") &&
                            i >= l.work->n_group);
    }
    assert_int_equal(unknown, 3);
    assert_true(magic && behind);
    assert_string_equal(l.graph->name, "opaque");
    cd_network_load_free(&l);
    l = must((cd_network_load_options){.network = DATA "dynamic.onnx"});
    check_laws(&l);
    assert_int_equal(l.graph->n_node, l.work->n_group + 4);
    cd_network_load_free(&l);
}

static void test_onnx(void **state) {
    (void)state;
    static const char *const dim[] = {"batch=3", "height=16"};
    cd_network_loaded l =
        must((cd_network_load_options){.network = DATA "whole.onnx",
                                       .batch = 5,
                                       .onnx = &(cd_onnx_options){.dim = dim + 1, .n_dim = 1}});
    check_laws(&l);
    assert_int_equal(l.graph->batch, 5);
    cd_network_load_free(&l);
    l = must((cd_network_load_options){.network = DATA "whole.onnx",
                                       .onnx = &(cd_onnx_options){.dim = dim, .n_dim = 2}});
    assert_int_equal(l.graph->batch, 3);
    cd_network_load_free(&l);
    l = must((cd_network_load_options){
        .network = DATA "recurrent.onnx",
        .batch = 2,
        .onnx = &(cd_onnx_options){.dim = (const char *const[]){"t=3"}, .n_dim = 1}});
    check_laws(&l);
    cd_network_load_free(&l);
}

/* One iteration: the network, then back, then the update; no node of a phase comes after one of a
 * later phase. */
static void test_training(void **state) {
    (void)state;
    static const char *const net[] = {"resnet-18", "bert-tiny"};
    for (size_t k = 0; k < 2; k++) {
        cd_network_loaded l = must((cd_network_load_options){
            .network = net[k], .target = "llvm -num-cores=1", .batch = 2, .training = true});
        cd_network_loaded once = must((cd_network_load_options){
            .network = net[k], .target = "llvm -num-cores=1", .batch = 2});
        uint32_t n[3] = {0};
        double flop[3] = {0};
        check_laws(&l);
        assert_string_equal(l.graph->name, once.graph->name);
        for (uint32_t i = 0; i < l.graph->n_node; i++) {
            const cd_network_node *x = &l.graph->node[i];
            n[x->phase]++;
            if (x->key) flop[x->phase] += x->flop;
            for (uint32_t e = 0; e < x->n_after; e++)
                assert_true(l.graph->node[l.graph->after[x->first + e]].phase <= x->phase);
        }
        assert_true(n[0] && n[1] && n[2]);
        assert_true(flop[0] >= 0.9 * cd_workload_flop(once.work) && flop[1] > 1.2 * flop[0] &&
                    flop[2] < flop[0]);
        cd_network_load_free(&l);
        cd_network_load_free(&once);
    }
}

static void fails(cd_network_load_options a, cdmpp_status want, const char *word) {
    cdmpp_err err = {0};
    cd_network_loaded l;
    memset(&l, 1, sizeof l);
    const cdmpp_status st = cd_network_load(&a, &l, &err);
    if (st != want) fail_msg("%s: %d %s %s", a.network, st, err.key, err.msg);
    char all[2048];
    snprintf(all, sizeof all, "%s %s %s", err.path, err.key, err.msg);
    if (!strstr(all, word)) fail_msg("'%s' is not in: %s", word, all);
    assert_null(l.graph);
    cd_network_load_free(&l);
}

static void test_errors(void **state) {
    (void)state;
    static const char *const dim[] = {"batch=3"};
    tmp_dir d = tmp_make();
    fails((cd_network_load_options){.network = "resnet-51"}, CDMPP_ESCHEMA, "resnet-50");
    fails((cd_network_load_options){.network = "no/such/file"}, CDMPP_EIO, "no/such/file");
    fails((cd_network_load_options){.network = "none.onnx"}, CDMPP_EIO, "none.onnx");
    fails((cd_network_load_options){.network = ""}, CDMPP_EUSAGE, "named");
    fails((cd_network_load_options){.network = DATA "whole.onnx", .size = 64, .batch = 1},
          CDMPP_EUSAGE, "size");
    fails((cd_network_load_options){.network = "resnet-18",
                                    .onnx = &(cd_onnx_options){.dim = dim, .n_dim = 1}},
          CDMPP_EUSAGE, "resnet-18");
    fails((cd_network_load_options){.network = "resnet-18", .size = 3}, CDMPP_ERANGE, "");
    fails((cd_network_load_options){.network = tmp_put(&d, "bad.onnx", "xx", 2)}, CDMPP_ESCHEMA,
          "bad.onnx");
    tmp_remove(&d);
}

TESTS(NULL, NULL, test_unexpected, test_zoo, test_plain, test_branches, test_layout, test_missing,
      test_onnx, test_training, test_errors)
