/* Iterations of whole small networks against differences, the optimizer's arithmetic, and what is
 * refused. */
#include "fault.h"
#include "grad_check.h"

/* ---- networks, with batch norms, shortcuts, pooling, attention, a recurrent layer, and cross
 * entropy ---- */

static void convolutional(mg *m) {
    const uint32_t x = mg_in(m, 4, 2, 2, 6, 6), w = W(m, 4, 3, 2, 3, 3), s = W(m, 1, 3),
                   b = W(m, 1, 3), mu = mg_w(m, 1, 3), var = mg_squares(m, 3);
    const uint32_t v = W(m, 4, 3, 3, 3, 3), d = W(m, 4, 3, 1, 2, 2), p = W(m, 4, 4, 3, 1, 1),
                   f = W(m, 2, 2, 4), c = W(m, 1, 2);
    uint32_t y = mg_op(m, "BatchNormalization", "epsilon~0.125", 5,
                       mg_op(m, "Conv", "pads:1,1,1,1", 2, x, w), s, b, mu, var);
    y = mg_op(m, "Relu", "", 1, y);
    y = mg_op(m, "Sigmoid", "", 1,
              mg_op(m, "Add", "", 2, y, mg_op(m, "Conv", "pads:1,1,1,1", 2, y, v)));
    y = mg_op(m, "MaxPool", "kernel_shape:2,2 strides:2,2", 1, y);
    y = mg_op(m, "Conv", "strides:2,2", 2, mg_op(m, "Conv", "group=3 pads:0,0,1,1", 2, y, d), p);
    y = mg_op(m, "Flatten", "", 1, mg_op(m, "GlobalAveragePool", "", 1, y));
    mg_end(m, mg_op(m, "Gemm", "transB=1", 3, y, f, c));
}

/* Two heads of [2,3,4], a layer norm before and a feed-forward half behind. */
static void attention(mg *m) {
    const uint32_t x = mg_in(m, 3, 2, 3, 4), s = W(m, 1, 4), b = W(m, 1, 4), q = W(m, 2, 4, 4),
                   k = W(m, 2, 4, 4), v = W(m, 2, 4, 4), o = W(m, 2, 4, 4);
    const uint32_t up = W(m, 2, 4, 6), bias = W(m, 1, 6), down = W(m, 2, 6, 2),
                   shape = mg_ints(m, 4, 2, 3, 2, 2);
    const uint32_t n = mg_op(m, "LayerNormalization", "axis=-1 epsilon~0.0625", 3,
                             mg_op(m, "MatMul", "", 2, x, o), s, b);
    const uint32_t hq = mg_op(m, "Transpose", "perm:0,2,1,3", 1,
                              mg_op(m, "Reshape", "", 2, mg_op(m, "MatMul", "", 2, n, q), shape));
    const uint32_t hk = mg_op(m, "Transpose", "perm:0,2,3,1", 1,
                              mg_op(m, "Reshape", "", 2, mg_op(m, "MatMul", "", 2, n, k), shape));
    const uint32_t hv = mg_op(m, "Transpose", "perm:0,2,1,3", 1,
                              mg_op(m, "Reshape", "", 2, mg_op(m, "MatMul", "", 2, n, v), shape));
    const uint32_t a =
        mg_op(m, "Softmax", "axis=-1", 1,
              mg_op(m, "Div", "", 2, mg_op(m, "MatMul", "", 2, hq, hk), mg_real(m, 2)));
    const uint32_t y =
        mg_op(m, "Reshape", "", 2,
              mg_op(m, "Transpose", "perm:0,2,1,3", 1, mg_op(m, "MatMul", "", 2, a, hv)),
              mg_ints(m, 3, 2, 3, 4));
    const uint32_t h =
        mg_op(m, "Add", "", 2, mg_op(m, "MatMul", "", 2, mg_op(m, "Add", "", 2, y, n), up), bias);
    const uint32_t e =
        mg_op(m, "Erf", "", 1, mg_op(m, "Div", "", 2, h, mg_real(m, 1.4142135623730951)));
    const uint32_t g =
        mg_op(m, "Mul", "", 2, mg_op(m, "Mul", "", 2, h, mg_op(m, "Add", "", 2, e, mg_real(m, 1))),
              mg_real(m, 0.5));
    mg_end(m, mg_op(m, "MatMul", "", 2, g, down));
}

static void recurrent(mg *m) {
    const uint32_t x = mg_in(m, 3, 4, 2, 3), w = W(m, 3, 1, 8, 3), r = W(m, 3, 1, 8, 2),
                   b = W(m, 2, 1, 16), f = W(m, 2, 2, 2);
    const uint32_t y =
        mg_op(m, "Squeeze", "", 2, mg_ops(m, "LSTM", "hidden_size=2", 1, 4, x, w, r, b),
              mg_ints(m, 1, 1));
    const uint32_t last = mg_op(m, "Gather", "axis=0", 2, y, mg_ints(m, 1, 3));
    mg_end(m, mg_op(m, "MatMul", "", 2, mg_op(m, "Reshape", "", 2, last, mg_ints(m, 2, 2, 2)), f));
}

TEST(test_networks) {
    static const maker make[] = {convolutional, attention, recurrent};
    static const char *const name[] = {"convolutional", "attention", "recurrent"};
    for (int i = 0; i < 3; i++) {
        mg m = mg_new(name[i], 18);
        make[i](&m);
        check_graph(name[i], m.g, false, CD_GRADIENT_AUTO);
        cd_graph_free(m.g);
    }
}

/* ---- the update ---- */

static mg small_net(void) {
    mg m = mg_new("small", 13);
    const uint32_t x = mg_in(&m, 2, 3, 4), w = W(&m, 2, 4, 2);
    mg_end(&m, mg_op(&m, "MatMul", "", 2, x, w));
    return m;
}

/* The tensor called so; the test fails where there is none. */
static uint32_t named(const cd_graph *g, const char *name) {
    for (uint32_t t = 0; t < g->n_tensor; t++)
        if (!strcmp(g->tensor[t].name, name)) return t;
    fail_msg("no tensor %s", name);
    return 0;
}

/* Results: y, loss, gradient, states, weight. States begin with what their names give. */
static void check_update(cd_gradient_optimizer how) {
    mg m = small_net();
    cdmpp_err err = {0};
    cd_gradient d;
    const cd_gradient_options o = {.optimizer = how, .rate = 0.125, .momentum = 0.5};
    assert_ok(cd_autodiff(m.g, &o, &d, &err));
    cd_workload *w = workload(d.graph, 0, "update");
    double *out[64];
    evaluate(w, out, "update");
    const bool sgd = how == CD_GRADIENT_SGD;
    assert_int_equal(d.graph->n_output, sgd ? 5 : 6);
    for (int64_t i = 0; i < 8; i++) {
        const double g = out[2][i], x = content(d.graph, d.weight[0].weight, i);
        double want;
        if (sgd) {
            const double v = 0.5 * content(d.graph, named(d.graph, "1.momentum"), i) + g;
            assert_true(fabs(out[3][i] - v) < 1e-6);
            want = x - 0.125 * v;
        } else {
            const double mean = 0.9 * content(d.graph, named(d.graph, "1.mean"), i) + 0.1 * g;
            const double square =
                0.999 * content(d.graph, named(d.graph, "1.square"), i) + 0.001 * g * g;
            if (square < 0) continue; /* no such state: its content may be negative here */
            want = x - 0.125 * mean / (sqrt(square) + 1e-8);
        }
        assert_true(fabs(out[sgd ? 4 : 5][i] - want) < 1e-5 * (1 + fabs(want)));
    }
    free_out(out, d.graph->n_output);
    cd_workload_free(w);
    cd_gradient_free(&d);
    cd_graph_free(m.g);
}

TEST(test_update) {
    check_update(CD_GRADIENT_SGD);
    check_update(CD_GRADIENT_ADAM);
}

/* ---- what is refused, left out, or stands unknown ---- */

/* An operator without a gradient: named, listed, and what follows from it stands. */
TEST(test_unknown) {
    mg m = mg_new("unknown", 13);
    const uint32_t x = mg_in(&m, 2, 3, 4), w = W(&m, 2, 4, 4), v = W(&m, 2, 4, 2);
    const uint32_t y =
        mg_op(&m, "CumSum", "", 2, mg_op(&m, "MatMul", "", 2, x, w), mg_ints(&m, 1, 1));
    mg_end(&m, mg_op(&m, "MatMul", "", 2, y, v));
    cdmpp_err err = {0};
    cd_gradient d;
    cd_workload *work;
    assert_ok(cd_autodiff(m.g, NULL, &d, &err));
    assert_true(d.n_missing == 1 && !strcmp(d.missing[0].op, "CumSum") &&
                strstr(d.missing[0].reason, "no gradient"));
    for (uint32_t k = 0; k < d.n_weight; k++)
        assert_true(d.weight[k].grad != NONE && d.weight[k].now != NONE);
    assert_ok(cd_workload_build(d.graph, NULL, &work, &err));
    bool found = false;
    for (uint32_t k = 0; k < work->n_unsupported; k++)
        found = found || (!strcmp(work->unsupported[k].op, "CumSumGrad") &&
                          !strcmp(work->unsupported[k].node, d.missing[0].name) &&
                          strstr(work->unsupported[k].reason, "no gradient"));
    assert_true(found && work->n_task > 5);
    cd_workload_free(work);
    cd_gradient_free(&d);
    cd_graph_free(m.g);
}

/* A weight behind which no result stands, a frozen one, integers, a mask; an input's gradient is
 * nobody's. */
TEST(test_left_out) {
    mg m = mg_new("left out", 13);
    const uint32_t x = mg_in(&m, 2, 3, 4), w = mg_w(&m, 2, 4, 4), v = mg_w(&m, 2, 4, 4),
                   unused = mg_w(&m, 1, 4);
    cdmpp_err err = {0};
    assert_ok(cd_graph_rename(m.g, v, "frozen", &err));
    (void)unused;
    mg_end(&m, mg_op(&m, "MatMul", "", 2, mg_op(&m, "MatMul", "", 2, x, w), v));
    mg_end(&m, mg_op(&m, "ArgMax", "axis=1", 1, mg_op(&m, "MatMul", "", 2, x, w)));
    const char *const frozen[] = {"frozen", "nobody"};
    cd_gradient d;
    assert_int_equal(
        cd_autodiff(m.g, &(cd_gradient_options){.frozen = frozen, .n_frozen = 2}, &d, &err),
        CDMPP_EINVALID);
    assert_true(strstr(err.msg, "nobody") && !d.graph);
    err = (cdmpp_err){0};
    assert_ok(cd_autodiff(m.g, &(cd_gradient_options){.frozen = frozen, .n_frozen = 1}, &d, &err));
    assert_int_equal(d.n_weight, 2);
    assert_true(d.weight[0].now != NONE && d.weight[1].grad == NONE && d.weight[1].now == NONE);
    cd_gradient_free(&d);
    cd_graph_free(m.g);
    m = mg_new("integers", 13);
    mg_end(&m, mg_op(&m, "ArgMax", "axis=1", 1,
                     mg_op(&m, "MatMul", "", 2, mg_in(&m, 2, 3, 4), mg_w(&m, 2, 4, 4))));
    assert_int_equal(cd_autodiff(m.g, NULL, &d, &err), CDMPP_EINVALID);
    cd_graph_free(m.g);
}

TEST(test_no_memory) {
    mg m = mg_new("convolutional", 18);
    convolutional(&m);
    FAULT_SWEEP(f, 1) {
        cd_gradient d;
        f.st = cd_autodiff(m.g, NULL, &d, &f.err);
        cd_gradient_free(&d);
    }
    cd_graph_free(m.g);
}

TESTS(NULL, NULL, test_networks, test_update, test_unknown, test_left_out, test_no_memory)
