/* ONNX's control flow: branches and loops that constants or options decide. */
#include "read_onnx.h"

static onnx asked(const char *name, const char *dim) {
    return must(name, &(cd_onnx_options){.dim = &dim, .n_dim = 1});
}
static void refuse_asked(const char *name, const char *dim, const char *why) {
    refuse(name, &(cd_onnx_options){.dim = &dim, .n_dim = 1}, CDMPP_EUSAGE, why);
}

/* A product and a sum for each run of a loop's body, and what puts the results in a row: a Reshape
 * each, a Concat. */
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

/* The size of a result that depends on the data is asked for, and then what follows has shapes,
 * too. */
TEST(asked_sizes) {
    static const struct {
        const char *dim, *y, *z, *counts;
    } ok[] = {{"nms=7", "7,3", "7,3", NULL},
              {"nz=5", "2,5", "2,5", NULL},
              {"some=2", "2,4", "2,4", NULL},
              {"flat=9", "9", "9", NULL},
              {"unique=6", "6", "6", "6"}};
    onnx r = must("sizes", NULL);
    assert_int_equal(r.n_miss, 10);
    for (uint32_t k = 0; k < r.n_miss; k += 2)
        if (!strstr(r.miss[k].reason, "depends on the data (--dim '"))
            fail_msg("%s: %s", r.miss[k].node, r.miss[k].reason);
    cd_graph_free(r.g);
    for (size_t k = 0; k < sizeof ok / sizeof *ok; k++) {
        char y[20], z[20];
        const int n = (int)strcspn(ok[k].dim, "=");
        r = asked("sizes", ok[k].dim);
        assert_int_equal(r.n_miss, 9);
        snprintf(y, sizeof y, "%.*s_y", n, ok[k].dim);
        snprintf(z, sizeof z, "%.*s_z", n, ok[k].dim);
        has_shape(r.g, y, ok[k].y);
        has_shape(r.g, z, ok[k].z);
        if (ok[k].counts)
            has_shape(r.g, "unique_c", ok[k].counts), has_shape(r.g, "unique_v", "12");
        cd_graph_free(r.g);
    }
    refuse_asked("sizes", "nz=x", "expected a size");
    refuse_asked("sizes", "nz=-1", "expected a size");
    refuse_asked("sizes", "nz=13", "more than there are");
    refuse_asked("sizes", "some=4", "more than there are");
    refuse_asked("sizes", "unique=13", "more than there are");
}

TESTS(NULL, NULL, control, asked_sizes)
