/* Convolutions that read one tensor merged: values of the network before, in both layouts; what is
 * merged, and what is not. */
#include "check.h"
#include "made_net.h"
#include "profiler/network/merge/merge.h"
#include "teeval.h"

/* Content by name: tensors have other numbers after the merge. */
static cdmpp_status fill(void *ctx, const cd_graph *g, uint32_t t, float *to, cdmpp_err *err) {
    (void)ctx, (void)err;
    const double name = atof(g->tensor[t].name);
    for (int64_t i = 0; i < cd_graph_shape_elements(&g->tensor[t].shape); i++) {
        const double v = sin(1.7 * name + 0.9 * (double)i);
        to[i] = (float)(name >= 1000 ? v * v + 0.5 : v);
    }
    return CDMPP_OK;
}

static double content(const cd_graph *g, uint32_t t, int64_t i) {
    static float all[4096];
    cdmpp_err err = {0};
    assert_true(cd_graph_shape_elements(&g->tensor[t].shape) <= 4096);
    assert_ok(cd_merge_weight(g, t, fill, NULL, all, &err));
    return (double)all[i];
}

static uint32_t conv(mg *m, uint32_t x, int in, int out, int kh, int kw, const char *attrs) {
    return mg_op(m, "Conv", attrs, 2, x, mg_w(m, 4, out, in, kh, kw));
}
static uint32_t relu(mg *m, uint32_t x) { return mg_op(m, "Relu", "", 1, x); }
static uint32_t norm(mg *m, uint32_t x, int c) {
    return mg_op(m, "BatchNormalization", "epsilon~0.125", 5, x, mg_w(m, 1, c), mg_w(m, 1, c),
                 mg_w(m, 1, c), mg_squares(m, c));
}

static uint32_t count(const cd_graph *g, const char *op) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < g->n_node; k++) n += !g->node[k].folded && !strcmp(g->node[k].op, op);
    return n;
}

static cd_graph *merge_all(const cd_graph *g, uint32_t sets) {
    cdmpp_err err = {0};
    cd_arena a = {0};
    cd_merge_set *set;
    uint32_t n;
    cd_graph *out;
    const uint32_t *origin;
    assert_ok(cd_merge_find(g, &a, &set, &n, &err));
    assert_int_equal(n, sets);
    assert_ok(cd_merge_apply(g, set, n, &out, &origin, &err));
    for (uint32_t k = 0; k < out->n_node; k++) assert_true(origin[k] < g->n_node);
    assert_int_equal(out->n_output, g->n_output);
    for (uint32_t k = 0; k < g->n_output; k++)
        assert_string_equal(out->tensor[out->output[k]].name, g->tensor[g->output[k]].name);
    cd_arena_free(&a);
    return out;
}

static void values(const cd_graph *g, int way, double **out) {
    cdmpp_err err = {0};
    cd_workload *w;
    assert_ok(cd_workload_build(
        g,
        &(cd_workload_options){.layout = way ? CD_WORKLOAD_LAYOUT_NHWC : CD_WORKLOAD_LAYOUT_NCHW,
                               .weights = true},
        &w, &err));
    assert_int_equal(w->n_unsupported, 0);
    const char *why = we_run(w, content, out);
    if (why) fail_msg("%s", why);
    cd_workload_free(w);
}

static void same_values(const cd_graph *g, const cd_graph *merged) {
    for (int way = 0; way < 2; way++) {
        double *want[8], *got[8];
        values(g, way, want);
        values(merged, way, got);
        for (uint32_t k = 0; k < g->n_output; k++) {
            const int64_t n = cd_graph_shape_elements(&g->tensor[g->output[k]].shape);
            for (int64_t i = 0; i < n; i++) assert_close(got[k][i], want[k][i], 1e-9, 1e-9);
            free(want[k]);
            free(got[k]);
        }
    }
}

/* 1x1 and 3x3 with biases, joined again: no Concat stays, and nothing is cut. */
TEST(test_fire) {
    mg m = mg_new("fire", 13);
    const uint32_t x = mg_in(&m, 4, 1, 3, 5, 6);
    const uint32_t a =
        relu(&m, mg_op(&m, "Conv", "", 3, x, mg_w(&m, 4, 4, 3, 1, 1), mg_w(&m, 1, 4)));
    const uint32_t b =
        relu(&m, mg_op(&m, "Conv", "pads:1,1,1,1", 3, x, mg_w(&m, 4, 2, 3, 3, 3), mg_w(&m, 1, 2)));
    mg_end(&m, mg_op(&m, "Concat", "axis=1", 2, a, b));
    cd_graph *out = merge_all(m.g, 1);
    assert_int_equal(count(out, "Conv"), 1);
    assert_int_equal(count(out, "Relu"), 1);
    assert_int_equal(count(out, "Concat") + count(out, "Slice"), 0);
    same_values(m.g, out);
    cd_graph_free(out);
    cd_graph_free(m.g);
}

/* 1x3, 3x1 and 5x5 of stride 2 with batch norms: the window covers all; the order is that of the
 * Concat; a result of the network is a part. */
TEST(test_windows) {
    mg m = mg_new("windows", 13);
    const uint32_t x = mg_in(&m, 4, 2, 3, 7, 8);
    const uint32_t a = relu(&m, norm(&m, conv(&m, x, 3, 2, 1, 3, "strides:2,2 pads:0,1,0,1"), 2));
    const uint32_t b = relu(&m, norm(&m, conv(&m, x, 3, 3, 3, 1, "strides:2,2 pads:1,0,1,0"), 3));
    const uint32_t c = relu(&m, norm(&m, conv(&m, x, 3, 4, 5, 5, "strides:2,2 pads:2,2,2,2"), 4));
    const uint32_t d = mg_op(&m, "MaxPool", "kernel_shape:3,3 strides:2,2 pads:1,1,1,1", 1, x);
    mg_end(&m, mg_op(&m, "Concat", "axis=1", 3, d, c, b));
    mg_end(&m, a);
    cd_graph *out = merge_all(m.g, 1);
    assert_int_equal(count(out, "Conv"), 1);
    assert_int_equal(count(out, "Concat"), 1);
    assert_int_equal(count(out, "Slice"), 2); /* c and b together, and a */
    same_values(m.g, out);
    cd_graph_free(out);
    cd_graph_free(m.g);
}

/* What follows in different ways stays apart: one batch norm has another epsilon, one convolution
 * is read twice. */
TEST(test_followers) {
    mg m = mg_new("followers", 13);
    const uint32_t x = mg_in(&m, 4, 1, 2, 4, 4);
    const uint32_t a = conv(&m, x, 2, 2, 1, 1, ""), b = conv(&m, x, 2, 3, 1, 1, ""),
                   c = conv(&m, x, 2, 2, 1, 1, "");
    mg_end(&m, mg_op(&m, "Add", "", 2, relu(&m, a), a));
    mg_end(&m, relu(&m, b));
    mg_end(&m, mg_op(&m, "Sigmoid", "", 1, c));
    cd_graph *out = merge_all(m.g, 1);
    assert_int_equal(count(out, "Conv"), 1);
    assert_int_equal(count(out, "Relu"), 2);
    assert_int_equal(count(out, "Slice"), 3);
    same_values(m.g, out);
    cd_graph_free(out);
    cd_graph_free(m.g);
}

/* Grouped ones, other strides, a bias beside none, other dilations of other kernels, another input,
 * a weight that is data: nothing is merged. */
TEST(test_not_merged) {
    mg m = mg_new("apart", 13);
    const uint32_t x = mg_in(&m, 4, 1, 4, 6, 6), y = relu(&m, x), w = mg_in(&m, 4, 2, 4, 1, 1);
    mg_end(&m, conv(&m, x, 2, 4, 1, 1, "group=2"));
    mg_end(&m, conv(&m, x, 2, 4, 1, 1, "group=2"));
    mg_end(&m, conv(&m, x, 4, 4, 1, 1, ""));
    mg_end(&m, conv(&m, x, 4, 4, 1, 1, "strides:2,2"));
    mg_end(&m, mg_op(&m, "Conv", "", 3, x, mg_w(&m, 4, 2, 4, 1, 1), mg_w(&m, 1, 2)));
    mg_end(&m, conv(&m, y, 4, 4, 1, 1, ""));
    mg_end(&m, mg_op(&m, "Conv", "", 2, x, w));
    mg_end(&m, conv(&m, x, 4, 2, 3, 3, "dilations:2,2 pads:2,2,2,2"));
    cd_graph *out = merge_all(m.g, 0);
    assert_int_equal(out->n_node, m.g->n_node);
    assert_int_equal(count(out, "Conv"), 8);
    cd_graph_free(out);
    cd_graph_free(m.g);
}

/* Sets that rule (1) forbids are refused by name, and work is told: a 1x1 kernel in a 3x3 one does
 * nine times as much. */
TEST(test_refused) {
    mg m = mg_new("refused", 13);
    cdmpp_err err = {0};
    cd_graph *out;
    const uint32_t x = mg_in(&m, 4, 1, 2, 4, 4);
    mg_end(&m, conv(&m, x, 2, 3, 1, 1, ""));
    mg_end(&m, conv(&m, x, 2, 1, 3, 3, "pads:1,1,1,1"));
    mg_end(&m, conv(&m, x, 2, 2, 1, 1, "strides:2,2"));
    assert_close(cd_merge_work(m.g, &(cd_merge_set){2, {0, 1}}), 36.0 / 12, 1e-12, 0);
    assert_int_equal(cd_merge_apply(m.g, &(cd_merge_set){2, {0, 2}}, 1, &out, NULL, &err),
                     CDMPP_EINVALID);
    assert_int_equal(
        cd_merge_apply(m.g, (cd_merge_set[]){{2, {0, 1}}, {2, {1, 0}}}, 2, &out, NULL, &err),
        CDMPP_EINVALID);
    assert_int_equal(cd_merge_apply(m.g, &(cd_merge_set){2, {0, 9}}, 1, &out, NULL, &err),
                     CDMPP_EINVALID);
    cd_graph_free(m.g);
}

TESTS(NULL, NULL, test_fire, test_windows, test_followers, test_not_merged, test_refused)
