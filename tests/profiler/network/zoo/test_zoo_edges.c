/* Files of edges, and the graph convolution over them against a product with the dense matrix of
 * neighbours. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fault.h"
#include "profiler/network/zoo/zoo.h"
#include "profiler/network/zoo/zoo_internal.h"
#include "tmp.h"

static cdmpp_err err;

static cdmpp_status parse(const char *text, cd_zoo_edges *e) {
    err = (cdmpp_err){0};
    return cd_zoo_edges_parse(text, strlen(text), e, &err);
}

/* b and c have three edges with the loop, a has four, d has two. An edge that is there twice, or
 * the other way round, is one. */
TEST(test_parse) {
    cd_zoo_edges e;
    assert_ok(parse("# words\n% others\n\na b\nb\tc 0.5\nc, a\nb a\nd a\r\nd d", &e));
    static const uint32_t first[] = {0, 4, 7, 10, 12};
    static const uint32_t from[] = {0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 0, 3};
    assert_int_equal(e.n_vertex, 4);
    assert_int_equal(e.n, 12);
    assert_memory_equal(e.first, first, sizeof first);
    assert_memory_equal(e.from, from, sizeof from);
    /* a from b: degrees 4 and 1 + 1 + 0.5 */
    assert_true(fabs(e.weight[1] - 1 / sqrt(4 * 2.5)) < 1e-12);
    assert_true(fabs(e.weight[6] - 0.5 / 2.5) < 1e-12); /* b from c */
    /* d from itself: its loop is not counted twice */
    assert_true(fabs(e.weight[11] - 1 / 2.0) < 1e-12);
    cd_zoo_edges_free(&e);
    assert_ok(parse("10 9", &e)); /* names are words: no vertex 0 to 8 */
    assert_true(e.n_vertex == 2 && e.n == 4);
    cd_zoo_edges_free(&e);
    /* no names of columns */
    static const char *const edges[] = {"source target", "source target\ntarget ann", "a b\n1 a\n",
                                        "a 1\n2 3\n", "u w\nann bob\n"};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        assert_ok(parse(edges[i], &e));
        cd_zoo_edges_free(&e);
    }
    /* a loop of the file has its own weight: degrees 1.25 and 2 */
    assert_ok(parse("a b\na a 0.25", &e));
    assert_true(fabs(e.weight[0] - 0.25 / 1.25) < 1e-12 &&
                fabs(e.weight[1] - 1 / sqrt(1.25 * 2)) < 1e-12 &&
                fabs(e.weight[3] - 1 / 2.0) < 1e-12);
    cd_zoo_edges_free(&e);
    assert_ok(parse("a a 3", &e)); /* larger than a loop that is not given */
    assert_true(e.n == 1 && fabs(e.weight[0] - 1) < 1e-12);
    cd_zoo_edges_free(&e);
    /* degrees far from 1: a has 1e30, b has 2e30 */
    assert_ok(parse("a b 1e30\nb c 1e30\nd d 1e-320", &e));
    assert_true(fabs(e.weight[1] - sqrt(0.5)) < 1e-12 && fabs(e.weight[e.n - 1] - 1) < 1e-2);
    cd_zoo_edges_free(&e);
}

TEST(test_refused) {
    static const struct {
        const char *text;
        cdmpp_status st;
        long line;
    } bad[] = {{"", CDMPP_ENODATA, 0},
               {"# a b\n", CDMPP_ENODATA, 0},
               {"a b\nc\n", CDMPP_EPARSE, 2},
               {"a b 1 2\n", CDMPP_EPARSE, 1},
               {"a b\n\na b x\n", CDMPP_EPARSE, 3},
               {"a b 0\n", CDMPP_EPARSE, 1},
               {"a b -1", CDMPP_EPARSE, 1},
               {"a b inf", CDMPP_EPARSE, 1},
               {"a b nan", CDMPP_EPARSE, 1},
               {"a b 1e200\nb c 1e200", CDMPP_ERANGE, 1},
               {"a b\na b 1e400", CDMPP_EPARSE, 2},
               {"# x\nsource,target\n1,2\n", CDMPP_ESCHEMA, 2},
               {"From To\nann bob\n", CDMPP_ESCHEMA, 1},
               {"a b\n1 2\n2 3\n", CDMPP_ESCHEMA, 1}};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        cd_zoo_edges e;
        assert_int_equal(parse(bad[k].text, &e), bad[k].st);
        assert_int_equal(err.line, bad[k].line);
        cd_zoo_edges_free(&e);
    }
}

/* ---- the network ---- */

enum { VERTICES = 40, WIDTH = 3 };

/* A made-up graph in which few vertices have many edges. */
static size_t make_text(char *to, size_t cap) {
    size_t n = 0;
    for (int v = 1; v < VERTICES; v++)
        for (int k = 0; k < 2; k++)
            n += (size_t)snprintf(to + n, cap - n, "v%d v%d %g\n", v, (v * v * (3 + k)) % v % 7,
                                  0.25 * (1 + v % 5));
    return n;
}

static const cd_graph_node *maker(const cd_graph *g, uint32_t t) {
    return &g->node[g->tensor[t].node];
}

/* A tensor of (vertices, WIDTH): x is what layer's Linear makes. Gather, Mul, ReduceSum and Concat
 * alone, by what the graph knows of indices and weights. */
static void compute(const cd_graph *g, uint32_t t, const double *x, uint32_t end, double *out) {
    const cd_graph_node *n = g->tensor[t].node == CD_GRAPH_NONE ? NULL : maker(g, t);
    const cd_graph_shape *s = &g->tensor[t].shape;
    static double deep[VERTICES * 64 * WIDTH];
    if (t == end) {
        memcpy(out, x, sizeof(double) * VERTICES * WIDTH);
    } else if (!strcmp(n->op, "ReduceSum")) {
        const cd_graph_node *mul = maker(g, n->in[0]), *rows = maker(g, mul->in[0]);
        const cd_graph_tensor *index = &g->tensor[rows->in[1]], *weight = &g->tensor[mul->in[1]];
        const int64_t width = index->shape.dim[1];
        compute(g, rows->in[0], x, end, deep);
        for (int64_t i = 0; i < s->dim[1] * WIDTH; i++) out[i] = 0;
        for (int64_t i = 0; i < s->dim[1] * width; i++)
            for (int f = 0; f < WIDTH; f++)
                out[i / width * WIDTH + f] += weight->fvalue[i] * deep[index->value[i] * WIDTH + f];
    } else if (!strcmp(n->op, "Concat")) {
        for (uint32_t k = 0; k < n->n_in; k++) {
            compute(g, n->in[k], x, end, out);
            out += g->tensor[n->in[k]].shape.dim[1] * WIDTH;
        }
    } else fail_msg("%s", n->op);
}

static void dense(const cd_zoo_edges *e, const double *x, double *out) {
    for (uint32_t v = 0; v < e->n_vertex; v++)
        for (int f = 0; f < WIDTH; f++) {
            out[v * WIDTH + (uint32_t)f] = 0;
            for (uint32_t k = e->first[v]; k < e->first[v + 1]; k++)
                out[v * WIDTH + (uint32_t)f] += e->weight[k] * x[e->from[k] * WIDTH + (uint32_t)f];
        }
}

/* Two times A: the first result is in the order of widths, the second reads that order, and the
 * last Gather takes the vertices back. */
TEST(test_values) {
    static char text[8192];
    static double x[VERTICES * WIDTH], once[VERTICES * WIDTH], twice[VERTICES * WIDTH],
        want[VERTICES * WIDTH], got[VERTICES * WIDTH];
    tmp_dir dir = tmp_make();
    char name[512];
    cd_zoo_edges e;
    cd_graph *g;
    const size_t n = make_text(text, sizeof text);
    snprintf(name, sizeof name, "gcn@%s", tmp_put(&dir, "edges.txt", text, n));
    assert_ok(parse(text, &e));
    assert_ok(cd_zoo_build(name, &(cd_zoo_options){.batch = 2}, &g, &err));
    assert_int_equal(e.n_vertex, VERTICES);
    const cd_graph_node *last = maker(g, g->output[0]);
    const cd_graph_shape *s = &g->tensor[g->output[0]].shape;
    assert_true(!strcmp(last->op, "Gather") && s->rank == 3 && s->dim[0] == 2 &&
                s->dim[1] == VERTICES && s->dim[2] == CD_ZOO_GCN_CLASSES);
    const int64_t *back = g->tensor[last->in[1]].value;
    const uint32_t second = last->in[0];
    /* tensors that the layers read: those of the first Gather behind them */
    uint32_t first = second, before[2] = {0, 0};
    for (int layer = 0; layer < 2; layer++) {
        const cd_graph_node *rows =
            maker(g, maker(g, maker(g, maker(g, first)->in[0])->in[0])->in[0]);
        before[layer] = rows->in[0];
        const cd_graph_node *up = maker(g, rows->in[0]); /* Add of MatMul of Relu of Concat */
        if (!layer) first = maker(g, maker(g, up->in[0])->in[0])->in[0];
    }
    for (int i = 0; i < VERTICES * WIDTH; i++) x[i] = cd_rng_unit(7, (uint64_t)i) - 0.5;
    compute(g, first, x, before[1], once);
    compute(g, second, once, before[0], twice);
    for (int i = 0; i < VERTICES * WIDTH; i++) got[i] = twice[back[i / WIDTH] * WIDTH + i % WIDTH];
    dense(&e, x, once);
    dense(&e, once, want);
    for (int i = 0; i < VERTICES * WIDTH; i++) assert_true(fabs(got[i] - want[i]) < 1e-12);
    /* At most half of what is read is for nothing. */
    int64_t read = 0;
    for (uint32_t k = 0; k < g->n_node; k++)
        if (!strcmp(g->node[k].op, "ReduceSum"))
            read += cd_graph_shape_elements(&g->tensor[g->node[k].in[0]].shape) / 2;
    assert_true(read < 2 * (int64_t)e.n * (CD_ZOO_GCN_HIDDEN + CD_ZOO_GCN_CLASSES));
    cd_graph_free(g);
    cd_zoo_edges_free(&e);
    tmp_remove(&dir);
}

TEST(test_names) {
    cd_graph *g;
    assert_non_null(cd_zoo_find("gcn@x"));
    assert_null(cd_zoo_find("gc@n"));
    assert_int_equal(cd_zoo_build("gcn@/nowhere/edges", &(cd_zoo_options){0}, &g, &err), CDMPP_EIO);
    assert_int_equal(cd_zoo_build("resnet-18@edges", &(cd_zoo_options){0}, &g, &err),
                     CDMPP_ESCHEMA);
    assert_int_equal(cd_zoo_build("gcn@edges", &(cd_zoo_options){.size = 4}, &g, &err),
                     CDMPP_ERANGE);
}

TEST(test_no_memory) {
    tmp_dir dir = tmp_make();
    char name[512];
    snprintf(name, sizeof name, "gcn@%s", tmp_put(&dir, "few.txt", "a b\nb c\n", 8));
    FAULT_SWEEP(f, 3) {
        cd_graph *g = NULL;
        f.st = cd_zoo_build(name, &(cd_zoo_options){0}, &g, &f.err);
        if (!f.st) cd_graph_free(g);
    }
    tmp_remove(&dir);
}

TESTS(NULL, NULL, test_parse, test_refused, test_values, test_names, test_no_memory)
