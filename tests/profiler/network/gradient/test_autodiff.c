/* Gradients: every rule against finite differences of the network itself, on small shapes, in both
 * layouts, fused and one operator at a time. All operands are weights, so that each one's gradient
 * is checked. */
#include "check.h"
#include "grad_check.h"
#include "profiler/network/zoo/zoo.h"

static void check(const char *what, maker make, bool own, int opset) {
    mg m = mg_new(what, opset);
    make(&m);
    check_graph(what, m.g, own, CD_GRADIENT_SUM);
    cd_graph_free(m.g);
}
#define CHECK(make)         check(#make, make, true, 13)
#define CHECK_TRAINED(make) check(#make, make, false, 13)

/* ---- convolutions ---- */

static void conv_plain(mg *m) {
    const uint32_t x = W(m, 4, 2, 3, 5, 6), w = W(m, 4, 4, 3, 3, 3), b = W(m, 1, 4);
    end(m, mg_op(m, "Conv", "pads:1,1,1,1", 3, x, w, b));
}
static void conv_strided(mg *m) {
    const uint32_t x = W(m, 4, 2, 2, 7, 6), w = W(m, 4, 3, 2, 3, 2);
    end(m, mg_op(m, "Conv", "strides:2,3 pads:1,0,0,1 dilations:2,1", 2, x, w));
}
static void conv_one(mg *m) {
    const uint32_t x = W(m, 4, 2, 3, 4, 3), w = W(m, 4, 4, 3, 1, 1), v = W(m, 4, 2, 4, 1, 1);
    end(m, mg_op(m, "Conv", "strides:2,2", 2,
                 mg_op(m, "Relu", "", 1, mg_op(m, "Conv", "", 2, x, w)), v));
}
static void conv_groups(mg *m) {
    const uint32_t x = W(m, 4, 2, 4, 5, 5), w = W(m, 4, 6, 2, 3, 3);
    end(m, mg_op(m, "Conv", "group=2 pads:1,1,1,1 strides:2,2", 2, x, w));
}
static void conv_depthwise(mg *m) {
    const uint32_t x = W(m, 4, 2, 3, 5, 4), w = W(m, 4, 3, 1, 3, 3), v = W(m, 4, 6, 1, 2, 2);
    end(m, mg_op(m, "Conv", "group=3 strides:2,1", 2,
                 mg_op(m, "Conv", "group=3 pads:1,1,1,1", 2, x, w), v));
}
static void conv_1d_3d(mg *m) {
    const uint32_t x = W(m, 3, 2, 2, 7), w = W(m, 3, 3, 2, 3), y = W(m, 5, 1, 2, 3, 4, 3),
                   v = W(m, 5, 2, 2, 2, 3, 2);
    end(m, mg_op(m, "Conv", "strides:2 pads:1,1", 2, x, w));
    end(m, mg_op(m, "Conv", "strides:1,2,1 pads:0,1,1,1,1,0", 2, y, v));
}
static void conv_transposed(mg *m) {
    const uint32_t x = W(m, 4, 2, 3, 3, 3), w = W(m, 4, 3, 2, 3, 4), b = W(m, 1, 2);
    end(m, mg_op(m, "ConvTranspose", "strides:2,3 pads:1,0,1,0 output_padding:1,2", 3, x, w, b));
    const uint32_t y = W(m, 4, 1, 4, 3, 2), v = W(m, 4, 4, 3, 2, 2);
    end(m, mg_op(m, "ConvTranspose", "strides:2,2 group=2", 2, y, v));
}

TEST(test_conv) {
    CHECK(conv_plain);
    CHECK(conv_strided);
    CHECK(conv_one);
    CHECK(conv_groups);
    CHECK(conv_depthwise);
    CHECK(conv_1d_3d);
    CHECK(conv_transposed);
}

/* ---- products ---- */

static void gemms(mg *m) {
    const uint32_t a = W(m, 2, 3, 4), b = W(m, 2, 4, 5), c = W(m, 1, 5), at = W(m, 2, 4, 3),
                   bt = W(m, 2, 5, 4), col = W(m, 2, 3, 1);
    end(m, mg_op(m, "Gemm", "alpha~0.5 beta~2.0", 3, a, b, c));
    end(m, mg_op(m, "Gemm", "transA=1", 2, at, b));
    end(m, mg_op(m, "Gemm", "transB=1", 3, a, bt, col));
    end(m, mg_op(m, "Gemm", "transA=1 transB=1 alpha~1.5", 2, at, bt));
}
static void matmuls(mg *m) {
    const uint32_t a = W(m, 4, 2, 2, 3, 4), b = W(m, 4, 2, 2, 4, 3), w = W(m, 2, 4, 5),
                   one = W(m, 3, 2, 4, 2), v = W(m, 1, 4);
    end(m, mg_op(m, "MatMul", "", 2, a, b));
    end(m, mg_op(m, "MatMul", "", 2, a, w));
    end(m, mg_op(m, "MatMul", "", 2, a, one));
    end(m, mg_op(m, "MatMul", "", 2, a, v));
    end(m, mg_op(m, "MatMul", "", 2, v, w));
    end(m, mg_op(m, "MatMul", "", 2, v, v));
    end(m, mg_op(m, "MatMul", "", 2, v, b));
}
TEST(test_matmul) {
    CHECK(gemms);
    CHECK(matmuls);
}

/* ---- element by element ---- */

static void unary(mg *m) {
    static const char *const ops[] = {
        "Relu", "Sigmoid",  "Tanh",     "Exp",       "Neg",  "Abs",  "Sin",      "Cos",
        "Erf",  "Softplus", "Softsign", "HardSwish", "Mish", "Selu", "Identity", "Reciprocal"};
    const uint32_t x = W(m, 2, 2, 3);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) end(m, mg_op(m, ops[i], "", 1, x));
    end(m, mg_op(m, "LeakyRelu", "alpha~0.25", 1, x));
    end(m, mg_op(m, "Elu", "alpha~0.5", 1, x));
    end(m, mg_op(m, "HardSigmoid", "alpha~0.75 beta~0.5", 1, x));
    end(m, mg_op(m, "Clip", "", 3, x, mg_real(m, -0.25), mg_real(m, 0.25)));
    end(m, mg_op(m, "Clip", "", 2, x, mg_real(m, -0.25)));
    end(m, mg_op(m, "Floor", "", 1, x));
    const uint32_t p = trained(m, mg_squares(m, 5));
    end(m, mg_op(m, "Log", "", 1, p));
    end(m, mg_op(m, "Sqrt", "", 1, p));
    end(m, mg_op(m, "Pow", "", 2, p, mg_real(m, 1.5)));
    end(m, mg_op(m, "Pow", "", 2, x, mg_real(m, 2)));
    end(m, mg_op(m, "Pow", "", 2, x, mg_real(m, 3)));
    end(m, mg_op(m, "Pow", "", 2, p, p));
}
/* -6 to 6: also where a function is flat; factors are the standard's. */
static void unary_far(mg *m) {
    static const char *const ops[] = {"HardSigmoid", "HardSwish", "Elu",  "Selu",
                                      "LeakyRelu",   "Sigmoid",   "Tanh", "Softplus",
                                      "Softsign",    "Mish"};
    const uint32_t x = mg_op(m, "Mul", "", 2, W(m, 2, 3, 5), mg_real(m, 8));
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) end(m, mg_op(m, ops[i], "", 1, x));
    end(m, mg_op(m, "Clip", "", 3, x, NONE, mg_real(m, 2)));
    end(m, mg_op(m, "HardSigmoid", "alpha~0.25 beta~0.75", 1, x));
}
static void gelus(mg *m) {
    const uint32_t x = W(m, 2, 2, 3);
    end(m, mg_op(m, "Gelu", "", 1, x));
    end(m, mg_op(m, "Gelu", "approximate'tanh", 1, x));
}
static void binary(mg *m) {
    const uint32_t x = W(m, 3, 2, 3, 4), y = W(m, 2, 3, 1), z = W(m, 1, 4);
    static const char *const ops[] = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        end(m, mg_op(m, ops[i], "", 2, x, y));
        end(m, mg_op(m, ops[i], "", 2, z, x));
    }
    end(m, mg_op(m, "Max", "", 3, x, y, z));
    end(m, mg_op(m, "Where", "", 3, mg_op(m, "Less", "", 2, x, z), y, x));
    /* one of the two is no weight */
    end(m, mg_op(m, "Where", "", 3, mg_op(m, "Less", "", 2, x, z), y, mg_real(m, 0.5)));
    end(m, mg_op(m, "Where", "", 3, mg_op(m, "Less", "", 2, x, z), mg_real(m, 0.5), y));
    end(m, mg_op(m, "PRelu", "", 2, x, z));
    end(m, mg_op(m, "Mul", "", 2, x, x));
}
TEST(test_elem) {
    check("unary", unary, true, 18);
    check("unary_far", unary_far, true, 18);
    CHECK(binary);
    check("gelus", gelus, true, 20);
}

/* ---- normalisations ---- */

static void batch_norm(mg *m) {
    const uint32_t x = W(m, 4, 3, 2, 3, 2), w = W(m, 4, 3, 2, 1, 1), s = W(m, 1, 3), b = W(m, 1, 3),
                   mu = W(m, 1, 3), var = mg_squares(m, 3);
    const uint32_t y = mg_op(m, "Conv", "", 2, x, w),
                   z = mg_op(m, "BatchNormalization", "epsilon~0.125", 5, y, s, b, mu, var);
    end(m, mg_op(m, "Relu", "", 1, mg_op(m, "Add", "", 2, z, y)));
}
static void layer_norm(mg *m) {
    const uint32_t x = W(m, 3, 2, 3, 4), s = W(m, 1, 4), b = W(m, 1, 4), t = W(m, 2, 3, 4);
    end(m, mg_op(m, "LayerNormalization", "axis=-1 epsilon~0.0625", 3, x, s, b));
    end(m, mg_op(m, "LayerNormalization", "axis=1 epsilon~0.0625", 2, x, t));
}
static void other_norms(mg *m) {
    const uint32_t x = W(m, 4, 2, 4, 2, 3), s = W(m, 1, 4), b = W(m, 1, 4);
    end(m, mg_op(m, "InstanceNormalization", "epsilon~0.0625", 3, x, s, b));
    end(m, mg_op(m, "GroupNormalization", "num_groups=2 epsilon~0.0625", 3, x, s, b));
    end(m, mg_op(m, "LRN", "size=3 alpha~0.5 beta~0.75 bias~2.0", 1, x));
    end(m, mg_op(m, "LRN", "size=2 alpha~1.5 beta~0.5 bias~1.0", 1, x));
}
static void softmaxes(mg *m) {
    const uint32_t x = W(m, 3, 2, 3, 4);
    end(m, mg_op(m, "Softmax", "axis=1", 1, x));
    end(m, mg_op(m, "LogSoftmax", "axis=-1", 1, x));
}
TEST(test_norm) {
    CHECK_TRAINED(batch_norm);
    check("layer_norm", layer_norm, true, 18);
    check("other_norms", other_norms, true, 18);
    CHECK(softmaxes);
    check("softmaxes, opset 11", softmaxes, true, 11);
}

/* ---- pooling, reductions ---- */

static void max_pools(mg *m) {
    const uint32_t x = W(m, 4, 1, 2, 7, 6), y = W(m, 3, 1, 2, 9);
    end(m, mg_op(m, "MaxPool", "kernel_shape:3,3 strides:2,2 pads:1,1,1,1", 1, x));
    end(m, mg_op(m, "MaxPool", "kernel_shape:2,2 strides:2,2", 1, x));
    end(m, mg_op(m, "MaxPool", "kernel_shape:3,2 strides:2,3 ceil_mode=1", 1, x));
    end(m, mg_op(m, "MaxPool", "kernel_shape:2,2 strides:1,1 pads:0,0,1,1", 1, x));
    end(m, mg_op(m, "MaxPool", "kernel_shape:3 strides:2 dilations:2", 1, y));
}
static void average_pools(mg *m) {
    const uint32_t x = W(m, 4, 1, 2, 7, 6);
    end(m, mg_op(m, "AveragePool", "kernel_shape:3,3 strides:2,2 pads:1,1,1,1", 1, x));
    end(m, mg_op(m, "AveragePool", "kernel_shape:3,3 strides:1,1 pads:1,1,1,1 count_include_pad=1",
                 1, x));
    end(m, mg_op(m, "AveragePool", "kernel_shape:2,2 strides:2,2", 1, x));
    end(m, mg_op(m, "AveragePool", "kernel_shape:3,2 strides:3,2 ceil_mode=1", 1, x));
    end(m, mg_op(m, "GlobalAveragePool", "", 1, x));
    end(m, mg_op(m, "GlobalMaxPool", "", 1, x));
}
static void reductions(mg *m) {
    static const char *const ops[] = {"ReduceSum", "ReduceMean", "ReduceMax",
                                      "ReduceMin", "ReduceProd", "ReduceSumSquare",
                                      "ReduceL1",  "ReduceL2",   "ReduceLogSumExp"};
    const uint32_t x = W(m, 3, 2, 3, 4);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        end(m, mg_op(m, ops[i], i & 1 ? "axes:1 keepdims=0" : "axes:0,2 keepdims=1", 1, x));
    end(m, mg_op(m, "ReduceMean", "", 1, x));
}
/* Each number is there twice: the two share its gradient. */
static void equal_extremes(mg *m) {
    const uint32_t x = W(m, 4, 2, 3, 4, 2), rows = mg_op(m, "Concat", "axis=1", 2, x, x),
                   columns = mg_op(m, "Concat", "axis=2", 2, x, x);
    end(m, mg_op(m, "ReduceMax", "axes:1 keepdims=0", 1, rows));
    end(m, mg_op(m, "ReduceMin", "axes:1,3 keepdims=1", 1, rows));
    end(m, mg_op(m, "ReduceMax", "axes:0,2 keepdims=0", 1, columns));
    end(m, mg_op(m, "ReduceMin", "axes:2 keepdims=1", 1, columns));
    end(m, mg_op(m, "ReduceMax", "axes:0 keepdims=0", 1, mg_op(m, "Concat", "axis=0", 2, x, x)));
    end(m, mg_op(m, "GlobalMaxPool", "", 1, columns));
}
TEST(test_pool) {
    CHECK(equal_extremes);
    CHECK(max_pools);
    CHECK(average_pools);
    CHECK(reductions);
}

/* ---- what moves elements ---- */

static void moves(mg *m) {
    const uint32_t x = W(m, 3, 2, 3, 4), y = W(m, 3, 2, 1, 4);
    end(m, mg_op(m, "Transpose", "perm:2,0,1", 1, x));
    end(m, mg_op(m, "Reshape", "", 2, x, mg_ints(m, 2, 4, 6)));
    end(m, mg_op(m, "Flatten", "axis=2", 1, x));
    end(m, mg_op(m, "Squeeze", "", 2, y, mg_ints(m, 1, 1)));
    end(m, mg_op(m, "Unsqueeze", "", 2, x, mg_ints(m, 1, 1)));
    end(m, mg_op(m, "Concat", "axis=1", 3, x, y, x));
    end(m, mg_op(m, "Expand", "", 2, y, mg_ints(m, 4, 2, 2, 3, 4)));
    end(m, mg_op(m, "Tile", "", 2, x, mg_ints(m, 3, 1, 2, 3)));
    end(m, mg_op(m, "Pad", "", 2, x, mg_ints(m, 6, 0, 1, 2, 0, 1, 3)));
    end(m, mg_op(m, "Pad", "", 2, x, mg_ints(m, 6, 0, -1, 1, 0, 0, -1)));
}
static void slices(mg *m) {
    const uint32_t x = W(m, 3, 2, 5, 7);
    end(m, mg_op(m, "Slice", "", 4, x, mg_ints(m, 2, 1, -5), mg_ints(m, 2, 4, 9),
                 mg_ints(m, 2, 1, 2)));
    end(m, mg_op(m, "Slice", "", 5, x, mg_ints(m, 2, 1, 0), mg_ints(m, 2, 5, 7),
                 mg_ints(m, 2, 1, 2), mg_ints(m, 2, 2, 3)));
    end(m, mg_op(m, "Gather", "axis=1", 2, x, mg_ints(m, 1, -2)));
    end(m, mg_op(m, "Gather", "axis=2", 2, x, mg_ints(m, 2, 2, 3)));
    mg_ops(m, "Split", "axis=2", 3, 2, x, mg_ints(m, 3, 1, 4, 2));
    const uint32_t part[3] = {m->out[0], m->out[1], m->out[2]};
    end(m, part[2]);
    end(m, mg_op(m, "Mul", "", 2, part[0], part[2]));
}
static void images(mg *m) {
    const uint32_t x = W(m, 4, 1, 4, 2, 3), s = mg_ints(m, 4, 1, 4, 4, 9),
                   even = mg_ints(m, 4, 1, 4, 8, 6);
    end(m, mg_op(m, "DepthToSpace", "blocksize=2", 1, x));
    end(m, mg_op(m, "DepthToSpace", "blocksize=2 mode'CRD", 1, x));
    end(m, mg_op(m, "Resize",
                 "mode'nearest coordinate_transformation_mode'asymmetric nearest_mode'floor", 4, x,
                 NONE, NONE, even));
    end(m, mg_op(m, "Resize", "", 4, x, NONE, NONE, s));
    end(m, mg_op(m, "SpaceToDepth", "blocksize=2", 1, W(m, 4, 1, 2, 4, 2)));
}
/* Words of a table, which repeat; a table of fewer rows than are read; columns; known rows in no
 * order. */
static void tables(mg *m) {
    const uint32_t x = W(m, 2, 7, 3), y = W(m, 2, 2, 3), z = W(m, 3, 2, 3, 4);
    cdmpp_err err = {0};
    uint32_t ids;
    /* 0 1 0 1 0 1 */
    assert_ok(cd_graph_input(m->g, "400", CD_I64, &(cd_graph_shape){2, {2, 3}}, &ids, &err));
    end(m, mg_op(m, "Gather", "", 2, x, ids));
    end(m, mg_op(m, "Gather", "", 2, y, ids));
    end(m, mg_op(m, "Gather", "axis=2", 2, z, ids));
    end(m, mg_op(m, "Gather", "axis=1", 2, z, mg_ints(m, 4, 2, -1, 0, 2)));
    /* rows -2 and -1 */
    end(m, mg_op(m, "Gather", "", 2, x, mg_op(m, "Sub", "", 2, ids, mg_ints(m, 1, 2))));
}
static void backwards(mg *m) {
    const uint32_t x = W(m, 3, 2, 5, 7);
    end(m, mg_op(m, "Slice", "", 5, x, mg_ints(m, 2, -1, 5), mg_ints(m, 2, -9, 0),
                 mg_ints(m, 2, 1, 2), mg_ints(m, 2, -1, -2)));
}
TEST(test_move) {
    CHECK(moves);
    CHECK(slices);
    CHECK(images);
    CHECK(tables);
    CHECK(backwards);
}

/* ---- recurrent layers ---- */

static void lstms(mg *m) {
    const uint32_t x = W(m, 3, 3, 2, 2), w = W(m, 3, 2, 8, 2), r = W(m, 3, 2, 8, 2),
                   b = W(m, 2, 2, 16), h = W(m, 3, 2, 2, 2), c = W(m, 3, 2, 2, 2);
    mg_ops(m, "LSTM", "hidden_size=2 direction'bidirectional", 3, 7, x, w, r, b, NONE, h, c);
    const uint32_t last[3] = {m->out[0], m->out[1], m->out[2]};
    for (int k = 0; k < 3; k++) end(m, last[k]);
}
static void grus(mg *m) {
    const uint32_t x = W(m, 3, 3, 2, 2), w = W(m, 3, 1, 6, 2), r = W(m, 3, 1, 6, 2),
                   b = W(m, 2, 1, 12), w1 = W(m, 3, 1, 2, 2), r1 = W(m, 3, 1, 2, 2);
    end(m, mg_ops(m, "GRU", "hidden_size=2 linear_before_reset=1", 2, 4, x, w, r, b));
    end(m, mg_ops(m, "GRU", "hidden_size=2", 2, 4, x, w, r, b));
    mg_ops(m, "GRU", "hidden_size=2", 2, 3, x, w, r);
    end(m, m->out[1]);
    end(m, mg_ops(m, "RNN", "hidden_size=2 direction'reverse", 2, 3, x, w1, r1));
}
TEST(test_rnn) {
    CHECK(lstms);
    CHECK(grus);
}

/* ---- losses ---- */

static void classifier(mg *m) {
    const uint32_t x = W(m, 4, 2, 2, 3, 3), w = W(m, 4, 2, 2, 1, 1), v = W(m, 2, 18, 2);
    const uint32_t y = mg_op(m, "Conv", "", 2, x, w);
    mg_end(m, mg_op(m, "MatMul", "", 2, mg_op(m, "Flatten", "", 1, y), v));
    mg_end(m, y);
    mg_end(m, mg_op(m, "Transpose", "perm:0,2,1", 1,
                    mg_op(m, "Reshape", "", 2, y, mg_ints(m, 3, 2, 2, 9))));
}
TEST(test_loss) {
    mg m = mg_new("losses", 13);
    classifier(&m);
    check_graph("auto", m.g, false, CD_GRADIENT_AUTO);
    check_graph("cross entropy", m.g, false, CD_GRADIENT_CROSS_ENTROPY);
    check_graph("squares", m.g, false, CD_GRADIENT_SQUARES);
    cd_graph_free(m.g);
}

/* ---- whole networks ---- */

/* Operations of a phase. */
static double flop_of(const cd_gradient *d, uint8_t phase) {
    double sum = 0;
    for (uint32_t k = 0; k < d->graph->n_node; k++)
        sum += d->phase[k] == phase ? d->graph->node[k].flop : 0;
    return sum;
}

/* The forward part is the network: the same results of the same shapes; convolutions and products
 * of the same operations. */
static void check_forward(const cd_graph *g, const cd_gradient *d) {
    for (uint32_t k = 0; k < g->n_output; k++) {
        const cd_graph_tensor *x = &g->tensor[g->output[k]],
                              *y = &d->graph->tensor[d->graph->output[k]];
        assert_string_equal(x->name, y->name);
        assert_memory_equal(&x->shape, &y->shape, sizeof x->shape);
    }
    const double f = cd_graph_flop(g), mine = flop_of(d, CD_GRADIENT_FORWARD);
    assert_true(mine >= 0.98 * f && mine <= 1.2 * f); /* batch norms have statistics */
    for (uint32_t k = 1; k < d->graph->n_node; k++) assert_true(d->phase[k] >= d->phase[k - 1]);
}

/* Each weight has a gradient and an update of its shape. */
static void check_weights(const char *what, const cd_gradient *d) {
    for (uint32_t k = 0; k < d->n_weight; k++) {
        const cd_graph_tensor *t = d->graph->tensor;
        const cd_gradient_weight *w = &d->weight[k];
        if (w->grad == NONE || w->now == NONE)
            fail_msg("%s: %s is not learned", what, t[w->weight].name);
        assert_memory_equal(&t[w->weight].shape, &t[w->grad].shape, sizeof t->shape);
        assert_memory_equal(&t[w->weight].shape, &t[w->now].shape, sizeof t->shape);
        assert_true(t[w->weight].is_trained && !cd_graph_tensor_is_static(&t[w->grad]));
    }
}

static bool is_product(const cd_graph_node *n) {
    return !strcmp(n->op, "Conv") || !strcmp(n->op, "ConvTranspose") || !strcmp(n->op, "Gemm") ||
           !strcmp(n->op, "MatMul");
}

/* Convolutions and products of a phase; of the forward part, what their gradients must come to:
 * each operand that depends on what is learned costs the forward product once more. */
static double products(const cd_gradient *d, uint8_t phase, bool once_more) {
    const cd_graph *g = d->graph;
    bool *need = calloc(g->n_tensor, sizeof *need);
    double sum = 0;
    for (uint32_t t = 0; t < g->n_tensor; t++) need[t] = g->tensor[t].is_trained;
    for (uint32_t k = 0; k < g->n_node; k++) {
        const cd_graph_node *n = &g->node[k];
        bool any = false;
        for (uint32_t i = 0; i < n->n_in; i++) any = any || (n->in[i] != NONE && need[n->in[i]]);
        for (uint32_t i = 0; i < n->n_out; i++)
            need[n->out[i]] = any && cd_expr_dtype_is_float(g->tensor[n->out[i]].dtype);
        if (d->phase[k] != phase || !is_product(n)) continue;
        sum += n->flop * (once_more ? need[n->in[0]] + need[n->in[1]] : 1);
    }
    free(need);
    return sum;
}

/* The law: backward products are the forward's, once for each operand that is learned from. Biases
 * are in the forward product alone, and without padding the gradient of the data is a little longer
 * than the result. All operators together: about twice the forward part's. */
static void check_flop(const char *name, const cd_gradient *d) {
    const double want = products(d, CD_GRADIENT_FORWARD, true),
                 got = products(d, CD_GRADIENT_BACKWARD, false);
    if (got < 0.995 * want || got > 1.006 * want)
        fail_msg("%s: products of %.6g operations back, not %.6g", name, got, want);
    const double ratio = flop_of(d, CD_GRADIENT_BACKWARD) / flop_of(d, CD_GRADIENT_FORWARD);
    if (ratio < (strcmp(name, "gcn") ? 1.7 : 1) || ratio > 2.5)
        fail_msg("%s: %.2f times the operations back", name, ratio);
}

/* Every network of the zoo at batch 2, every operator of its iteration in a task. */
TEST(test_zoo) {
    for (size_t i = 0; i < cd_zoo_count(); i++) {
        const cd_zoo_entry *e = cd_zoo_at(i);
        cdmpp_err err = {0};
        cd_graph *g;
        cd_gradient d;
        /* the laws below are those of whole networks, all of which is learned */
        if (!strcmp(e->family, "operator") || !strcmp(e->family, "rcnn")) continue;
        cd_workload *w;
        assert_ok(cd_zoo_build(e->name, &(cd_zoo_options){.batch = 2}, &g, &err));
        assert_ok(cd_autodiff(g, NULL, &d, &err));
        for (uint32_t k = 0; k < d.n_missing; k++)
            fail_msg("%s: %s: %s", e->name, d.missing[k].op, d.missing[k].reason);
        check_forward(g, &d);
        check_weights(e->name, &d);
        check_flop(e->name, &d);
        assert_ok(cd_workload_build(d.graph, NULL, &w, &err));
        for (uint32_t k = 0; k < w->n_unsupported; k++)
            fail_msg("%s: %s: %s", e->name, w->unsupported[k].op, w->unsupported[k].reason);
        cd_workload_free(w);
        cd_graph_free(g);
        cd_gradient_free(&d);
    }
}

TESTS(NULL, NULL, test_conv, test_matmul, test_elem, test_norm, test_pool, test_move, test_rnn,
      test_loss, test_zoo)
