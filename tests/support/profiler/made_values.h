/* made_values.h -- small networks of every kind of operator, of which the values are known. */
#ifndef MADE_VALUES_H
#define MADE_VALUES_H
#include "made_net.h"

#define NONE CD_GRAPH_NONE

static void conv2d(mg *m) {
    const uint32_t x = mg_in(m, 4, 1, 4, 7, 6), w = mg_w(m, 4, 4, 4, 3, 3), b = mg_w(m, 1, 4);
    mg_end(m,
           mg_op(m, "Conv", "kernel_shape:3,3 strides:2,1 pads:1,0,2,1 dilations:1,2", 3, x, w, b));
}
static void conv_group(mg *m) {
    const uint32_t x = mg_in(m, 4, 2, 4, 5, 5), w = mg_w(m, 4, 6, 2, 3, 3);
    mg_end(m, mg_op(m, "Relu", "", 1,
                    mg_op(m, "Conv", "kernel_shape:3,3 group=2 pads:1,1,1,1", 2, x, w)));
}
static void conv_depthwise(mg *m) {
    const uint32_t x = mg_in(m, 4, 1, 4, 6, 5), w = mg_w(m, 4, 4, 1, 3, 3), b = mg_w(m, 1, 4);
    mg_end(m,
           mg_op(m, "Clip", "", 3,
                 mg_op(m, "Conv", "kernel_shape:3,3 group=4 pads:1,1,1,1 strides:2,2", 3, x, w, b),
                 mg_real(m, 0), mg_real(m, 0.5)));
}
static void conv1d(mg *m) {
    const uint32_t x = mg_in(m, 3, 2, 3, 8), w = mg_w(m, 3, 4, 3, 3);
    mg_end(m, mg_op(m, "Conv", "kernel_shape:3 strides:2 pads:1,1", 2, x, w));
}
static void conv3d(mg *m) {
    const uint32_t x = mg_in(m, 5, 1, 2, 4, 5, 4), w = mg_w(m, 5, 3, 2, 3, 3, 3), b = mg_w(m, 1, 3);
    mg_end(m, mg_op(m, "Relu", "", 1,
                    mg_op(m, "Conv", "kernel_shape:3,3,3 strides:1,2,1 pads:1,1,1,1,1,1", 3, x, w,
                          b)));
}
static void conv_transposed(mg *m) {
    const uint32_t x = mg_in(m, 4, 1, 3, 4, 3), w = mg_w(m, 4, 3, 2, 3, 4), b = mg_w(m, 1, 2);
    mg_end(m, mg_op(m, "ConvTranspose",
                    "kernel_shape:3,4 strides:2,3 pads:1,0,1,0 output_padding:1,2", 3, x, w, b));
}
/* conv + batch norm + shortcut + relu, and a batch norm of its own */
static void residual(mg *m) {
    const uint32_t x = mg_in(m, 4, 1, 3, 6, 6), w = mg_w(m, 4, 3, 3, 3, 3), s = mg_w(m, 1, 3),
                   b = mg_w(m, 1, 3), mu = mg_w(m, 1, 3), var = mg_squares(m, 3);
    const uint32_t y = mg_op(m, "Conv", "kernel_shape:3,3 pads:1,1,1,1", 2, x, w);
    const uint32_t n = mg_op(m, "BatchNormalization", "epsilon~0.125", 5, y, s, b, mu, var),
                   z = mg_op(m, "Relu", "", 1, mg_op(m, "Add", "", 2, n, x));
    mg_end(m, mg_op(m, "Relu", "", 1,
                    mg_op(m, "BatchNormalization", "epsilon~0.125", 5, z, b, s, mu, var)));
}
static void pools(mg *m) {
    const uint32_t x = mg_in(m, 4, 1, 2, 7, 7);
    const uint32_t a =
        mg_op(m, "MaxPool", "kernel_shape:3,3 strides:2,2 ceil_mode=1 pads:0,1,0,1", 1, x);
    const uint32_t b = mg_op(m, "AveragePool", "kernel_shape:3,3 strides:2,2 pads:1,1,1,1", 1, x);
    const uint32_t c = mg_op(m, "AveragePool",
                             "kernel_shape:3,3 strides:2,2 pads:1,1,1,1 count_include_pad=1", 1, x);
    const uint32_t p = mg_op(m, "Pad", "", 2, x, mg_ints(m, 8, 0, 0, 1, 1, 0, 0, 1, 1)),
                   d = mg_op(m, "AveragePool", "kernel_shape:3,3 strides:2,2", 1, p);
    mg_end(m, a);
    mg_end(m, mg_op(m, "Concat", "axis=1", 3, b, c, d));
    mg_end(m, mg_op(m, "AveragePool",
                    "kernel_shape:2,2 strides:2,2 ceil_mode=1 count_include_pad=1", 1, x));
}
static void global_pools(mg *m) {
    const uint32_t x = mg_in(m, 4, 2, 3, 4, 5), w = mg_w(m, 4, 3, 3, 1, 1),
                   y = mg_op(m, "Conv", "kernel_shape:1,1", 2, x, w);
    mg_end(m, mg_op(m, "Flatten", "", 1, mg_op(m, "GlobalAveragePool", "", 1, y)));
    mg_end(m, mg_op(m, "Mul", "", 2,
                    mg_op(m, "Sigmoid", "", 1, mg_op(m, "GlobalMaxPool", "", 1, y)), y));
}
static void softmaxes(mg *m) {
    const uint32_t x = mg_in(m, 3, 2, 3, 4);
    mg_end(m, mg_op(m, "Softmax", "axis=1", 1, x));
    mg_end(m, mg_op(m, "LogSoftmax", "axis=-1", 1, x));
}
static void layer_norms(mg *m) {
    const uint32_t x = mg_in(m, 3, 2, 3, 8), g = mg_w(m, 1, 8), b = mg_w(m, 1, 8);
    const uint32_t mu = mg_op(m, "ReduceMean", "axes:-1", 1, x), d = mg_op(m, "Sub", "", 2, x, mu);
    const uint32_t var =
        mg_op(m, "ReduceMean", "axes:-1", 1, mg_op(m, "Pow", "", 2, d, mg_real(m, 2)));
    const uint32_t n =
        mg_op(m, "Div", "", 2, d,
              mg_op(m, "Sqrt", "", 1, mg_op(m, "Add", "", 2, var, mg_real(m, 0.0625))));
    mg_end(m, mg_op(m, "Add", "", 2, mg_op(m, "Mul", "", 2, n, g), b));
    mg_end(m, mg_op(m, "LayerNormalization", "axis=-1 epsilon~0.0625", 3, x, g, b));
}
static void norms(mg *m) {
    const uint32_t x = mg_in(m, 4, 2, 4, 3, 3), g = mg_w(m, 1, 4), b = mg_w(m, 1, 4);
    mg_end(m, mg_op(m, "InstanceNormalization", "epsilon~0.0625", 3, x, g, b));
    mg_end(m, mg_op(m, "LRN", "size=3 alpha~0.5 beta~0.75 bias~2.0", 1, x));
}
/* a Transformer's feed-forward half: [1,3,8] x [8,16] + bias, gelu, x [16,8] + bias + shortcut,
 * layer norm of it */
static void feed_forward(mg *m) {
    const uint32_t x = mg_in(m, 3, 1, 3, 8), w = mg_w(m, 2, 8, 16), b = mg_w(m, 1, 16),
                   v = mg_w(m, 2, 16, 8), c = mg_w(m, 1, 8);
    const uint32_t y = mg_op(m, "Add", "", 2, b, mg_op(m, "MatMul", "", 2, x, w));
    const uint32_t e =
        mg_op(m, "Erf", "", 1, mg_op(m, "Div", "", 2, y, mg_real(m, 1.4142135623730951)));
    const uint32_t z =
        mg_op(m, "Mul", "", 2, mg_op(m, "Mul", "", 2, y, mg_op(m, "Add", "", 2, e, mg_real(m, 1))),
              mg_real(m, 0.5));
    const uint32_t o =
        mg_op(m, "Add", "", 2, mg_op(m, "Add", "", 2, mg_op(m, "MatMul", "", 2, z, v), c), x);
    mg_end(m, mg_op(m, "ReduceMean", "axes:-1", 1, o));
    mg_end(m, mg_op(m, "Sub", "", 2, o, mg_op(m, "ReduceMean", "axes:-1", 1, o)));
}
static void matmuls(mg *m) {
    const uint32_t a = mg_in(m, 4, 2, 1, 3, 4), b = mg_in(m, 3, 2, 4, 5), v = mg_in(m, 1, 4);
    mg_end(m, mg_op(m, "MatMul", "", 2, a, b));
    mg_end(m, mg_op(m, "MatMul", "", 2, a, v));
}
static void attention(mg *m) {
    const uint32_t x = mg_in(m, 3, 1, 4, 6), w = mg_w(m, 2, 6, 6), s = mg_ints(m, 4, 1, 4, 2, 3);
    const uint32_t q = mg_op(m, "Transpose", "perm:0,2,1,3", 1,
                             mg_op(m, "Reshape", "", 2, mg_op(m, "MatMul", "", 2, x, w), s));
    const uint32_t k = mg_op(m, "Transpose", "perm:0,2,3,1", 1, mg_op(m, "Reshape", "", 2, x, s));
    const uint32_t p =
        mg_op(m, "Softmax", "axis=-1", 1,
              mg_op(m, "Div", "", 2, mg_op(m, "MatMul", "", 2, q, k), mg_real(m, 2)));
    const uint32_t y = mg_op(m, "Transpose", "perm:0,2,1,3", 1, mg_op(m, "MatMul", "", 2, p, q));
    mg_end(m, mg_op(m, "Reshape", "", 2, y, mg_ints(m, 3, 1, 4, 6)));
}
static void gemms(mg *m) {
    const uint32_t a = mg_in(m, 2, 4, 3), b = mg_w(m, 2, 4, 5), c = mg_w(m, 1, 5),
                   d = mg_w(m, 2, 5, 4);
    mg_end(m, mg_op(m, "Gemm", "transA=1 alpha~0.5 beta~2.0", 3, a, b, c));
    mg_end(m, mg_op(m, "Gemm", "transB=1", 2, mg_op(m, "Transpose", "", 1, a), d));
}
static void moves(mg *m) {
    const uint32_t x = mg_in(m, 3, 2, 3, 4);
    mg_end(m, mg_op(m, "Gather", "axis=1", 2, x, mg_ints(m, 3, 2, 0, -1)));
    mg_end(m, mg_op(m, "Slice", "", 5, x, mg_ints(m, 2, 3, 0), mg_ints(m, 2, -5, 2),
                    mg_ints(m, 2, 2, 1), mg_ints(m, 2, -2, 1)));
    mg_end(m, mg_op(m, "Tile", "", 2, x, mg_ints(m, 3, 1, 2, 2)));
    mg_end(m, mg_op(m, "Pad", "mode'reflect", 2, x, mg_ints(m, 6, 0, 1, 2, 0, 1, 3)));
    mg_end(m, mg_op(m, "Pad", "mode'edge", 2, x, mg_ints(m, 6, 0, 1, 2, 0, 0, 1)));
    mg_ops(m, "Split", "axis=2", 2, 2, x, mg_ints(m, 2, 1, 3));
    mg_end(m, mg_op(m, "Concat", "axis=2", 3, m->out[1], x, m->out[0]));
    mg_end(m, mg_op(m, "Expand", "", 2, mg_op(m, "Gather", "axis=2", 2, x, mg_ints(m, 1, 1)),
                    mg_ints(m, 3, 2, 3, 2)));
}
static void images(mg *m) {
    const uint32_t x = mg_in(m, 4, 1, 4, 3, 4), w = mg_w(m, 4, 4, 4, 1, 1),
                   y = mg_op(m, "Conv", "kernel_shape:1,1", 2, x, w), s = mg_ints(m, 4, 1, 4, 6, 6);
    mg_end(m, mg_op(m, "Resize",
                    "mode'nearest coordinate_transformation_mode'asymmetric nearest_mode'floor", 4,
                    y, NONE, NONE, s));
    mg_end(m, mg_op(m, "Resize", "mode'linear coordinate_transformation_mode'half_pixel", 4, y,
                    NONE, NONE, s));
    mg_end(m, mg_op(m, "Resize", "mode'linear coordinate_transformation_mode'align_corners", 4, y,
                    NONE, NONE, s));
    mg_end(m, mg_op(m, "DepthToSpace", "blocksize=2 mode'CRD", 1, y));
}
static void reductions(mg *m) {
    const uint32_t x = mg_in(m, 4, 2, 3, 4, 2), w = mg_w(m, 4, 3, 3, 1, 1),
                   y = mg_op(m, "Conv", "kernel_shape:1,1", 2, x, w);
    mg_end(m, mg_op(m, "ReduceMean", "axes:2,3 keepdims=0", 1, y));
    mg_end(m, mg_op(m, "ReduceMax", "axes:1 keepdims=0", 1, y));
    mg_end(m, mg_op(m, "ReduceSum", "keepdims=1", 2, y, mg_ints(m, 2, 0, 3)));
    mg_end(m, mg_op(m, "ReduceL2", "axes:1,2 keepdims=0", 1, y));
    mg_end(m, mg_op(m, "ReduceProd", "axes:0 keepdims=0", 1, y));
    mg_end(m, mg_op(m, "ArgMax", "axis=2 keepdims=0", 1, x));
}
static void elements(mg *m) {
    const uint32_t x = mg_in(m, 2, 3, 7), a = mg_w(m, 1, 7);
    const char *const ops[] = {"Tanh", "Softplus", "Softsign", "HardSwish", "Neg",
                               "Abs",  "Ceil",     "Sign",     "Mish",      "Selu"};
    uint32_t y = mg_op(m, "PRelu", "", 2, x, a);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        y = mg_op(m, "Add", "", 2, y, mg_op(m, ops[i], "", 1, x));
    y = mg_op(m, "Where", "", 3, mg_op(m, "Less", "", 2, x, a),
              mg_op(m, "LeakyRelu", "alpha~0.25", 1, y),
              mg_op(m, "Elu", "alpha~0.5", 1, mg_op(m, "Neg", "", 1, y)));
    mg_end(m, mg_op(m, "Max", "", 3, y, x, mg_op(m, "HardSigmoid", "alpha~0.25 beta~0.5", 1, x)));
    mg_end(m, mg_op(m, "Pow", "", 2, mg_op(m, "Exp", "", 1, x), mg_real(m, 1.5)));
}
static void lstms(mg *m) {
    const uint32_t x = mg_in(m, 3, 3, 2, 4), w = mg_w(m, 3, 2, 12, 4), r = mg_w(m, 3, 2, 12, 3),
                   b = mg_w(m, 2, 2, 24), h = mg_in(m, 3, 2, 2, 3), c = mg_in(m, 3, 2, 2, 3);
    mg_ops(m, "LSTM", "hidden_size=3 direction'bidirectional", 3, 7, x, w, r, b, NONE, h, c);
    const uint32_t last[3] = {m->out[0], m->out[1], m->out[2]};
    for (int k = 0; k < 3; k++) mg_end(m, last[k]);
}
static void grus(mg *m) {
    const uint32_t x = mg_in(m, 3, 3, 2, 4), w = mg_w(m, 3, 1, 9, 4), r = mg_w(m, 3, 1, 9, 3),
                   b = mg_w(m, 2, 1, 18), w1 = mg_w(m, 3, 1, 3, 4), r1 = mg_w(m, 3, 1, 3, 3);
    mg_end(m, mg_ops(m, "GRU", "hidden_size=3 linear_before_reset=1", 2, 4, x, w, r, b));
    mg_end(m, mg_ops(m, "GRU", "hidden_size=3", 2, 3, x, w, r));
    mg_end(m, mg_ops(m, "RNN", "hidden_size=3 direction'reverse", 2, 3, x, w1, r1));
}

static const struct {
    const char *name;
    void (*make)(mg *m);
    int opset;
} cases[] = {
#define CASE(x)                                                                                    \
    { #x, x, 13 }
    CASE(conv2d),
    CASE(conv_group),
    CASE(conv_depthwise),
    CASE(conv1d),
    CASE(conv3d),
    CASE(conv_transposed),
    CASE(residual),
    CASE(pools),
    CASE(global_pools),
    CASE(softmaxes),
    {"layer_norms", layer_norms, 17},
    CASE(norms),
    CASE(feed_forward),
    CASE(matmuls),
    CASE(attention),
    CASE(gemms),
    CASE(moves),
    CASE(images),
    CASE(reductions),
    {"elements", elements, 18},
    CASE(lstms),
    CASE(grus),
};
#endif
