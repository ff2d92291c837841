/* ONNX's control flow: branches and loops that constants or options decide. */
#include "read_onnx.h"

static onnx asked(const char *name, const char *dim) { return must(name, &(cd_onnx_options){.dim = &dim, .n_dim = 1}); }
static void refuse_asked(const char *name, const char *dim, const char *why) { refuse(name, &(cd_onnx_options){.dim = &dim, .n_dim = 1}, CDMPP_EUSAGE, why); }

/* A product and a sum for each run of a loop's body, and what puts the results in a row: a Reshape each, a Concat. */
static void looped(onnx r, unsigned runs) {
    unsigned products = 0;
    char shape[20];
    for (uint32_t k = 0; k < r.g->n_node; k++) products += !strcmp(r.g->node[k].op, "MatMul");
    assert_int_equal(products, runs);
    assert_int_equal(r.n_miss, 0);
    has_shape(r.g, "y", "2,4");
    snprintf(shape, sizeof shape, "%u,2,4", runs);
    has_shape(r.g, "z", shape);
    cd_graph_free(r.g);
}

TEST(control) {
    onnx r = asked("if_data", "if=then");
    has_shape(r.g, "y", "12");
    assert_true(r.n_miss == 0 && r.g->n_node == 4);
    cd_graph_free(r.g);
    r = asked("if_data", "if=else");
    has_shape(r.g, "y", "3,4");
    cd_graph_free(r.g);
    looped(must("loop_known", NULL), 3);
    looped(asked("loop_known", "loop=2"), 2);
    looped(asked("loop_data", "loop=1"), 1);
    looped(asked("loop_limit", "loop=5"), 5);
    for (int k = 0; k < 2; k++) {
        r = must(k ? "loop_limit" : "loop_data", NULL);
        missed(&r, 0, "loop", "--dim 'loop=N'");
        cd_graph_free(r.g);
    }
    r = asked("loop_limit", "loop=0");
    missed(&r, 0, "loop", "runs 0 times");
    cd_graph_free(r.g);
    refuse_asked("if_data", "if=perhaps", "expected then or else");
    refuse_asked("if_known", "if=else", "takes the other branch");
    refuse_asked("loop_known", "loop=4", "its limit is 3");
    refuse_asked("loop_data", "loop=-1", "how often");
    refuse_asked("loop_data", "lop=1", "no Loop");
}

TESTS(NULL, NULL, control)
