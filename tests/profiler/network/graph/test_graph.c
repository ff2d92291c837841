/* Shapes, content and operations of operators, by family; the expected numbers come from ONNX's
 * text. */
#include "check.h"
#include "made_graph.h"

#include "profiler/network/graph/graph_call_internal.h"

static int setup(void **state) {
    gm *m = calloc(1, sizeof *m);
    *state = m;
    return !m || cd_graph_new("net", &m->g, &m->err);
}
static int teardown(void **state) {
    gm *m = *state;
    cd_graph_free(m->g);
    free(m);
    return 0;
}

static const cd_graph_node *last(const gm *m) { return &m->g->node[m->g->n_node - 1]; }

static void check_shape(gm *m, uint32_t t, cd_graph_shape want, const char *file, int line) {
    if (m->st) check_status(m->st, CDMPP_OK, &m->err, "gm_add", file, line);
    const cd_graph_shape *s = &m->g->tensor[t].shape;
    bool same = s->rank == want.rank;
    for (uint32_t d = 0; same && d < want.rank; d++) same = s->dim[d] == want.dim[d];
    if (same) return;
    for (uint32_t d = 0; d < s->rank; d++)
        print_error("%s%lld", d ? "," : "found [", (long long)s->dim[d]);
    print_error("]\n");
    _fail(file, line);
}
#define assert_shape(t, ...)                                                                       \
    do {                                                                                           \
        const uint32_t t_ = (t);                                                                   \
        check_shape(m, t_, GM_SHAPE(__VA_ARGS__), __FILE__, __LINE__);                             \
    } while (0)
#define assert_flop(want) assert_close(last(m)->flop, (double)(want), 1e-12, 0)
#define assert_refused(t, want)                                                                    \
    do {                                                                                           \
        (void)(t);                                                                                 \
        assert_status_of(m, CDMPP_##want, __LINE__);                                               \
    } while (0)
static void assert_status_of(const gm *m, cdmpp_status want, int line) {
    if (m->st == want && m->err.msg[0]) return;
    print_error("line %d: status %s, \"%s\"\n", line, cdmpp_status_name(m->st), m->err.msg);
    fail();
}
static void check_ints(gm *m, uint32_t t, size_t n, const int64_t *want, int line) {
    if (m->st) check_status(m->st, CDMPP_OK, &m->err, "gm_add", __FILE__, line);
    const cd_graph_tensor *x = &m->g->tensor[t];
    if (!x->value || (size_t)cd_graph_shape_elements(&x->shape) != n ||
        (n && memcmp(x->value, want, n * sizeof *want))) {
        print_error("line %d: %zu elements %s\n", line, (size_t)cd_graph_shape_elements(&x->shape),
                    x->value ? "differ" : "unknown");
        for (size_t k = 0; x->value && k < n; k++) print_error(" %lld", (long long)x->value[k]);
        fail();
    }
    assert_true(t >= m->g->n_tensor || x->node == CD_GRAPH_NONE || m->g->node[x->node].folded);
}
#define assert_ints(t, ...)                                                                        \
    check_ints(m, (t), sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__}, __LINE__)

static void convolutions(void **state) {
    gm *m = *state;
    const uint32_t x = gm_x(m, 1, 3, 224, 224), w = gm_w(m, 64, 3, 7, 7), b = gm_w(m, 64);
    assert_shape(gm_add(m, "Conv", "strides=2,2 pads=3,3,3,3", x, w), 1, 64, 112, 112);
    assert_flop(2.0 * 112 * 112 * 64 * 147);
    assert_int_equal(cd_graph_node_int(last(m), "group", 0), 1);
    assert_int_equal(cd_graph_node_attr(last(m), "kernel_shape")->ints[1], 7);
    assert_shape(gm_add(m, "Conv", "auto_pad=SAME_UPPER strides=2,2", x, w, b), 1, 64, 112, 112);
    assert_flop(112 * 112 * 64 * (2.0 * 147 + 1));
    const cd_graph_attr *p = cd_graph_node_attr(last(m), "pads"); /* 111*2 + 7 - 224 = 5 */
    assert_true(p->ints[0] == 2 && p->ints[2] == 3);
    assert_shape(gm_add(m, "Conv", "dilations=2,3", x, w), 1, 64, 212, 206);
    assert_shape(gm_add(m, "Conv", "auto_pad=VALID", x, w), 1, 64, 218, 218);
    assert_shape(gm_add(m, "Conv", "group=3", x, gm_w(m, 6, 1, 3, 3)), 1, 6, 222, 222);
    assert_flop(2.0 * 222 * 222 * 6 * 9);
    assert_shape(gm_add(m, "Conv", "", gm_x(m, 2, 3, 16), gm_w(m, 8, 3, 3)), 2, 8, 14);
    assert_shape(gm_add(m, "Conv", "strides=1,2,2 pads=1,3,3,1,3,3", gm_x(m, 1, 3, 8, 112, 112),
                        gm_w(m, 64, 3, 3, 7, 7)),
                 1, 64, 8, 56, 56);
    assert_refused(gm_add(m, "Conv", "", x, gm_w(m, 64, 4, 7, 7)), ESCHEMA);
    assert_refused(gm_add(m, "Conv", "", gm_x(m, 1, 3, 4, 4), w), ESCHEMA);
    assert_refused(gm_add(m, "Conv", "strides=0,1", x, w), ERANGE);
    assert_refused(gm_add(m, "Conv", "strides=1", x, w), ESCHEMA);
    assert_refused(gm_add(m, "Conv", "auto_pad=SOME", x, w), ESCHEMA);
    assert_refused(gm_add(m, "Conv", "", x), ESCHEMA);
    assert_refused(gm_add(m, "Conv", "", x, CD_GRAPH_NONE), ESCHEMA);
    assert_string_equal(m->err.key, "n");
}

static void transposed(void **state) {
    gm *m = *state;
    const uint32_t x = gm_x(m, 1, 8, 10, 10), w = gm_w(m, 8, 4, 4, 4);
    assert_shape(gm_add(m, "ConvTranspose", "strides=2,2 pads=1,1,1,1", x, w), 1, 4, 20, 20);
    assert_flop(2.0 * 8 * 100 * 4 * 16);
    assert_shape(gm_add(m, "ConvTranspose", "strides=2,2 output_padding=1,0", x, w), 1, 4, 23, 22);
    assert_shape(gm_add(m, "ConvTranspose", "strides=3,3 auto_pad=SAME_LOWER", x, w), 1, 4, 30, 30);
    assert_shape(gm_add(m, "ConvTranspose", "strides=2,2 output_shape=21,20", x, w), 1, 4, 21, 20);
    assert_int_equal(cd_graph_node_attr(last(m), "pads")->ints[1], 1);
    assert_shape(gm_add(m, "ConvTranspose", "group=2", x, w), 1, 8, 13, 13);
    assert_refused(gm_add(m, "ConvTranspose", "", x, gm_w(m, 4, 8, 4, 4)), ESCHEMA);
}

static void pools(void **state) {
    gm *m = *state;
    const uint32_t x = gm_x(m, 1, 8, 7, 6);
    assert_shape(gm_add(m, "MaxPool", "kernel_shape=3,2 strides=2,2", x), 1, 8, 3, 3);
    assert_flop(8 * 9 * 6);
    assert_shape(gm_add(m, "AveragePool", "kernel_shape=2,2 strides=2,2 ceil_mode=1", x), 1, 8, 4,
                 3);
    /* The third window would begin behind the 2 elements and the padding before them. */
    assert_shape(
        gm_add(m, "MaxPool", "kernel_shape=[2] strides=[2] pads=1,1 ceil_mode=1", gm_x(m, 1, 1, 3)),
        1, 1, 2);
    m->n_out = 2;
    assert_shape(gm_add(m, "MaxPool", "kernel_shape=2,2", x), 1, 8, 6, 5);
    assert_int_equal(m->g->tensor[m->out[1]].dtype, CD_I64);
    assert_shape(gm_add(m, "GlobalAveragePool", "", x), 1, 8, 1, 1);
    assert_flop(8 * 42);
    assert_refused(gm_add(m, "MaxPool", "", x), ESCHEMA);
    assert_shape(gm_add(m, "MaxUnpool", "kernel_shape=2,2 strides=2,2", x, x), 1, 8, 14, 12);
    assert_shape(
        gm_add(m, "RoiAlign", "output_height=7 output_width=5", x, gm_x(m, 9, 4), gm_x(m, 9)), 9, 8,
        7, 5);
}

static void products(void **state) {
    gm *m = *state;
    assert_shape(gm_add(m, "MatMul", "", gm_x(m, 2, 1, 5, 7), gm_x(m, 3, 7, 4)), 2, 3, 5, 4);
    assert_flop(2.0 * 2 * 3 * 5 * 4 * 7);
    assert_shape(gm_add(m, "MatMul", "", gm_x(m, 7), gm_x(m, 3, 7, 4)), 3, 4);
    assert_shape(gm_add(m, "MatMul", "", gm_x(m, 5, 7), gm_x(m, 7)), 5);
    assert_refused(gm_add(m, "MatMul", "", gm_x(m, 5, 7), gm_x(m, 5, 7)), ESCHEMA);
    assert_shape(gm_add(m, "Gemm", "transB=1", gm_x(m, 3, 512), gm_w(m, 1000, 512), gm_w(m, 1000)),
                 3, 1000);
    assert_flop(3 * 1000 * (2.0 * 512 + 1));
    assert_shape(gm_add(m, "Gemm", "transA=1", gm_x(m, 512, 3), gm_w(m, 512, 10)), 3, 10);
    assert_flop(3 * 10 * 2.0 * 512);
    assert_refused(gm_add(m, "Gemm", "", gm_x(m, 3, 512), gm_w(m, 512, 10), gm_w(m, 4, 3, 10)),
                   ESCHEMA);
    assert_shape(
        gm_add(m, "Einsum", "equation=bhid,bhjd->bhij", gm_x(m, 2, 4, 5, 8), gm_x(m, 2, 4, 6, 8)),
        2, 4, 5, 6);
    assert_flop(2.0 * 2 * 4 * 5 * 6 * 8);
    assert_shape(gm_add(m, "Einsum", "equation=...ij,jk", gm_x(m, 9, 5, 8), gm_x(m, 8, 3)), 9, 5,
                 3);
    assert_shape(gm_add(m, "Einsum", "equation=ii->i", gm_x(m, 5, 5)), 5);
    assert_flop(0);
    assert_refused(gm_add(m, "Einsum", "equation=ij,jk->ik", gm_x(m, 5, 8), gm_x(m, 7, 3)),
                   ESCHEMA);
    assert_refused(gm_add(m, "Einsum", "equation=ij->z", gm_x(m, 5, 8)), ESCHEMA);
}

static void recurrent(void **state) {
    gm *m = *state;
    const uint32_t x = gm_x(m, 32, 1, 256), w = gm_w(m, 1, 1024, 256), r = gm_w(m, 1, 1024, 256),
                   b = gm_w(m, 1, 2048);
    m->n_out = 3;
    assert_shape(gm_add(m, "LSTM", "hidden_size=256", x, w, r, b), 32, 1, 1, 256);
    assert_shape(m->out[1], 1, 1, 256);
    assert_flop(32.0 * 256 * (4 * (2 * 256 + 2 * 256 + 4) + 5));
    m->n_out = 2;
    assert_shape(
        gm_add(m, "GRU", "direction=bidirectional", x, gm_w(m, 2, 192, 256), gm_w(m, 2, 192, 64)),
        32, 2, 1, 64);
    assert_shape(m->out[1], 2, 1, 64);
    assert_shape(gm_add(m, "RNN", "layout=1", gm_x(m, 4, 9, 6), gm_w(m, 1, 5, 6), gm_w(m, 1, 5, 5)),
                 4, 9, 1, 5);
    assert_refused(gm_add(m, "LSTM", "hidden_size=128", x, w, r), ESCHEMA);
    assert_refused(gm_add(m, "GRU", "direction=up", x, w, r), ESCHEMA);
}

static void elementwise(void **state) {
    gm *m = *state;
    const uint32_t x = gm_x(m, 2, 3, 4), y = gm_x(m, 3, 1);
    assert_shape(gm_add(m, "Add", "", y, x), 2, 3, 4);
    assert_flop(24);
    assert_shape(gm_add(m, "Sum", "", x, y, x), 2, 3, 4);
    assert_flop(48);
    assert_shape(gm_add(m, "Relu", "", x), 2, 3, 4);
    assert_shape(gm_add(m, "Where", "", gm_add(m, "Less", "", x, y), x, gm_x(m, 5, 1, 1, 1)), 5, 2,
                 3, 4);
    assert_shape(gm_add(m, "PRelu", "", x, gm_w(m, 3, 1)), 2, 3, 4);
    assert_refused(gm_add(m, "PRelu", "", x, gm_w(m, 5, 2, 3, 4)), ESCHEMA);
    assert_refused(gm_add(m, "Add", "", x, gm_x(m, 5)), ESCHEMA);
    assert_shape(gm_add(m, "HardSigmoid", "", x), 2, 3, 4);
    assert_close(cd_graph_node_float(last(m), "alpha", 0), 0.2, 0, 0);
    assert_shape(gm_add(m, "Clip", "", x, gm_scalar(m, 0), gm_scalar(m, 6)), 2, 3, 4);
    assert_close(cd_graph_node_float(last(m), "max", 0), 6, 0, 0);
    assert_shape(gm_add(m, "Cast", "to=10", x), 2, 3, 4);
    assert_int_equal(m->g->tensor[m->out[0]].dtype, CD_DTYPE(CD_T_FLOAT, 16));
    assert_refused(gm_add(m, "Cast", "to=8", x), EUNSUPPORTED);
    assert_refused(gm_add(m, "HardSwish", "", x), EUNSUPPORTED); /* of opset 14 */
    assert_non_null(strstr(m->err.msg, "opset 13"));
    assert_refused(gm_add(m, "Frobnicate", "", x), EUNSUPPORTED);
    assert_shape(gm_add(m, "Dropout", "", x), 2, 3, 4);
    assert_true(last(m)->view && last(m)->flop == 0);
}

static void normalisations(void **state) {
    gm *m = *state;
    const uint32_t x = gm_x(m, 1, 8, 4, 4), w = gm_w(m, 8);
    assert_shape(gm_add(m, "BatchNormalization", "", x, w, w, w, w), 1, 8, 4, 4);
    assert_flop(2 * 128);
    assert_refused(gm_add(m, "BatchNormalization", "", x, w, w, w, gm_w(m, 7)), ESCHEMA);
    assert_shape(gm_add(m, "InstanceNormalization", "", x, w, w), 1, 8, 4, 4);
    assert_shape(gm_add(m, "Softmax", "", x), 1, 8, 4, 4);
    assert_flop(5 * 128);
    assert_int_equal(cd_graph_node_attr(last(m), "axes")->ints[0], 3);
    m->g->opset = 9;
    assert_shape(gm_add(m, "Softmax", "", x), 1, 8, 4, 4);
    assert_int_equal(cd_graph_node_attr(last(m), "axes")->n, 3);
    m->g->opset = 17;
    m->n_out = 2;
    assert_shape(gm_add(m, "LayerNormalization", "axis=-1", x, gm_w(m, 4)), 1, 8, 4, 4);
    assert_shape(m->out[1], 1, 8, 4, 1);
    assert_shape(gm_add(m, "LRN", "size=5", x), 1, 8, 4, 4);
    assert_flop(128 * 10);
}

static void reductions(void **state) {
    gm *m = *state;
    const uint32_t x = gm_x(m, 2, 3, 4);
    assert_shape(gm_add(m, "ReduceMean", "axes=[-1]", x), 2, 3, 1);
    assert_flop(24);
    assert_shape(gm_add(m, "ReduceSum", "keepdims=0", x, gm_ints(m, 0, 2)), 3);
    assert_int_equal(m->g->tensor[gm_add(m, "ReduceMax", "keepdims=0", x)].shape.rank, 0);
    assert_shape(gm_add(m, "ReduceSum", "noop_with_empty_axes=1", x), 2, 3, 4);
    assert_shape(gm_add(m, "ArgMax", "axis=1 keepdims=0", x), 2, 4);
    m->n_out = 2;
    assert_shape(gm_add(m, "TopK", "axis=1", x, gm_ints(m, 2)), 2, 2, 4);
    assert_shape(m->out[1], 2, 2, 4);
    m->n_out = 2;
    assert_refused(gm_add(m, "TopK", "", x, gm_ints(m, 9)), ESCHEMA);
    assert_refused(gm_add(m, "ReduceMean", "axes=[3]", x), ESCHEMA);
    assert_refused(gm_add(m, "ReduceMean", "axes=1,-2", x), ESCHEMA);
    assert_shape(gm_add(m, "CumSum", "", x, gm_scalar(m, -1)), 2, 3, 4);
    assert_int_equal(cd_graph_node_int(last(m), "axis", 9), 2);
}

static void shapes(void **state) {
    gm *m = *state;
    const uint32_t x = gm_x(m, 2, 3, 4);
    assert_shape(gm_add(m, "Reshape", "", x, gm_ints(m, 0, -1)), 2, 12);
    assert_true(last(m)->view);
    assert_refused(gm_add(m, "Reshape", "", x, gm_ints(m, 5, -1)), ESCHEMA);
    assert_refused(gm_add(m, "Reshape", "", x, gm_ints(m, -1, -1)), ESCHEMA);
    assert_refused(gm_add(m, "Reshape", "", x, gm_ints(m, INT64_MAX, INT64_MAX)), ERANGE);
    assert_refused(gm_add(m, "Reshape", "", x, gm_x(m, 2)), ESCHEMA); /* reals */
    assert_shape(gm_add(m, "Flatten", "axis=2", x), 6, 4);
    assert_shape(gm_add(m, "Transpose", "perm=2,0,1", x), 4, 2, 3);
    assert_shape(gm_add(m, "Transpose", "", x), 4, 3, 2);
    assert_refused(gm_add(m, "Transpose", "perm=0,0,1", x), ESCHEMA);
    assert_shape(gm_add(m, "Unsqueeze", "", x, gm_ints(m, 0, -1)), 1, 2, 3, 4, 1);
    assert_shape(gm_add(m, "Unsqueeze", "axes=1,2", x), 2, 1, 1, 3, 4);
    assert_shape(gm_add(m, "Squeeze", "", gm_x(m, 1, 2, 1)), 2);
    assert_shape(gm_add(m, "Squeeze", "axes=[0]", gm_x(m, 1, 2, 1)), 2, 1);
    assert_refused(gm_add(m, "Squeeze", "axes=[1]", gm_x(m, 1, 2, 1)), ESCHEMA);
    assert_shape(gm_add(m, "Expand", "", gm_x(m, 3, 1), gm_ints(m, 2, 1, 6)), 2, 3, 6);
    m->st = 0;
    assert_ints(gm_add(m, "Shape", "", x), 2, 3, 4);
    m->g->opset = 15;
    assert_ints(gm_add(m, "Shape", "start=-2 end=9", x), 3, 4);
    assert_ints(gm_add(m, "Size", "", x), 24);
}

static void moving(void **state) {
    gm *m = *state;
    const uint32_t x = gm_x(m, 2, 10, 4);
    assert_shape(gm_add(m, "Concat", "axis=-2", x, gm_x(m, 2, 5, 4)), 2, 15, 4);
    assert_refused(gm_add(m, "Concat", "axis=0", x, gm_x(m, 2, 5, 4)), ESCHEMA);
    assert_shape(gm_add(m, "Slice", "", x, gm_ints(m, 1, 2), gm_ints(m, INT64_MAX, -1),
                        gm_ints(m, 0, 1), gm_ints(m, 1, 3)),
                 1, 3, 4);
    assert_shape(gm_add(m, "Slice", "", x, gm_ints(m, -1), gm_ints(m, INT64_MIN), gm_ints(m, 1),
                        gm_ints(m, -2)),
                 2, 5, 4);
    assert_shape(gm_add(m, "Slice", "", x, gm_ints(m, 7), gm_ints(m, 3), gm_ints(m, 1)), 2, 0, 4);
    assert_refused(
        gm_add(m, "Slice", "", x, gm_ints(m, 7), gm_ints(m, 3), gm_ints(m, 1), gm_ints(m, 0)),
        ESCHEMA);
    assert_shape(gm_add(m, "Gather", "axis=1", x, gm_ints(m, 1, -1, 0)), 2, 3, 4);
    assert_shape(gm_add(m, "Gather", "axis=1", x, gm_scalar(m, 1)), 2, 4);
    assert_refused(gm_add(m, "Gather", "axis=1", x, gm_scalar(m, 10)), ESCHEMA);
    m->n_out = 2;
    assert_shape(gm_add(m, "Split", "axis=1", x, gm_ints(m, 3, 7)), 2, 3, 4);
    assert_shape(m->out[1], 2, 7, 4);
    m->n_out = 3;
    assert_refused(gm_add(m, "Split", "axis=1", x), ESCHEMA);
    assert_shape(gm_add(m, "Pad", "", x, gm_ints(m, 0, 1, 0, 0, 2, -1)), 2, 13, 3);
    assert_shape(gm_add(m, "Tile", "", x, gm_ints(m, 1, 2, 3)), 2, 20, 12);
    assert_shape(gm_add(m, "GatherND", "batch_dims=1", x, gm_x(m, 2, 6, 1)), 2, 6, 4);
    assert_shape(gm_add(m, "ScatterND", "", x, gm_x(m, 6, 2), gm_x(m, 6, 4)), 2, 10, 4);
    assert_shape(gm_add(m, "OneHot", "axis=1", gm_x(m, 2, 3), gm_scalar(m, 5), gm_x(m, 2)), 2, 5,
                 3);
    assert_refused(gm_add(m, "NonZero", "", x), EUNSUPPORTED);
    m->g->opset = 9;
    assert_shape(gm_add(m, "Slice", "starts=[1] ends=[-1] axes=[1]", x), 2, 8, 4);
    assert_shape(gm_add(m, "Pad", "pads=0,1,0,0,2,0", x), 2, 13, 4);
    assert_shape(gm_add(m, "Upsample", "scales=1.,2.,1.5", x, gm_reals(m, 1, 2, 1.5)), 2, 20, 6);
}

static void images(void **state) {
    gm *m = *state;
    const uint32_t x = gm_x(m, 1, 16, 5, 5), none = CD_GRAPH_NONE;
    assert_shape(gm_add(m, "Resize", "mode=linear", x, none, gm_reals(m, 1, 1, 2, 1.5)), 1, 16, 10,
                 7);
    assert_flop(16.0 * 70 * 9);
    assert_shape(gm_add(m, "Resize", "", x, none, none, gm_ints(m, 1, 16, 3, 8)), 1, 16, 3, 8);
    assert_refused(gm_add(m, "Resize", "", x, none, none, none), ESCHEMA);
    assert_refused(gm_add(m, "Resize", "", x, none, gm_x(m, 4)), EUNSUPPORTED);
    assert_refused(gm_add(m, "Resize", "", x, none, gm_reals(m, 1, 1, -2, 1)), ERANGE);
    assert_shape(gm_add(m, "DepthToSpace", "blocksize=2", x), 1, 4, 10, 10);
    assert_shape(gm_add(m, "SpaceToDepth", "blocksize=5", x), 1, 400, 1, 1);
    m->g->opset = 16;
    assert_shape(gm_add(m, "GridSample", "", x, gm_x(m, 1, 7, 9, 2)), 1, 16, 7, 9);
}

/* What exporters write for x.view(x.size(0), -1, 4): all of it is known before anything runs. */
static void folding(void **state) {
    gm *m = *state;
    const uint32_t x = gm_x(m, 6, 8), s = gm_add(m, "Shape", "", x), one = gm_scalar(m, 1);
    const uint32_t n = gm_add(m, "Gather", "axis=0", s, gm_scalar(m, 0));
    const uint32_t u = gm_add(m, "Unsqueeze", "", n, gm_ints(m, 0)),
                   c = gm_add(m, "Concat", "axis=0", u, gm_ints(m, -1, 4));
    assert_ints(c, 6, -1, 4);
    assert_shape(gm_add(m, "Reshape", "", x, c), 6, 2, 4);
    assert_false(last(m)->folded);
    assert_ints(gm_add(m, "Div", "", gm_ints(m, 7, -7), gm_scalar(m, 2)), 3, -3);
    assert_ints(gm_add(m, "Mod", "", gm_ints(m, 7, -7), gm_scalar(m, 3)), 1, 2);
    assert_ints(gm_add(m, "Equal", "", gm_ints(m, 7, -1), gm_scalar(m, -1)), 0, 1);
    assert_ints(gm_add(m, "Where", "", m->out[0], gm_ints(m, 1, 2), gm_ints(m, 3, 4)), 3, 2);
    assert_ints(gm_add(m, "Slice", "", gm_ints(m, 1, 2, 3, 4), gm_ints(m, -1), gm_ints(m, -9),
                       gm_ints(m, 0), gm_ints(m, -1)),
                4, 3, 2, 1);
    assert_ints(gm_add(m, "Transpose", "",
                       gm_add(m, "Reshape", "", gm_ints(m, 1, 2, 3, 4), gm_ints(m, 2, 2))),
                1, 3, 2, 4);
    assert_ints(gm_add(m, "ReduceProd", "keepdims=0", gm_ints(m, 3, 4, 5)), 60);
    assert_ints(gm_add(m, "Range", "", gm_scalar(m, 2), gm_scalar(m, 9), gm_scalar(m, 3)), 2, 5, 8);
    assert_ints(gm_add(m, "Expand", "", one, gm_ints(m, 3)), 1, 1, 1);
    assert_ints(gm_add(m, "Tile", "", gm_ints(m, 1, 2), gm_ints(m, 2)), 1, 2, 1, 2);
    assert_ints(gm_add(m, "NonZero", "", gm_ints(m, 0, 5, 0, 6)), 1, 3);
    assert_ints(gm_add(m, "ConstantOfShape", "value=7 dtype=7", gm_ints(m, 3)), 7, 7, 7);
    assert_ints(gm_add(m, "Cast", "to=7",
                       gm_add(m, "Floor", "",
                              gm_add(m, "Mul", "", gm_reals(m, 5, -2.5), gm_reals(m, 1.5, 1)))),
                7, -3);
    assert_ints(gm_add(m, "Cast", "to=6", gm_ints(m, (int64_t)1 << 32 | 5)), 5);
    assert_ints(gm_add(m, "Add", "", gm_ints(m, INT64_MAX), one), INT64_MIN);
    assert_ints(gm_add(m, "ReduceMax", "axes=[1]",
                       gm_add(m, "Reshape", "", gm_ints(m, 1, 9, 3, 4), gm_ints(m, 2, 2))),
                9, 4);
    assert_ints(gm_add(m, "Clip", "", gm_ints(m, INT64_MAX, 5, -9), CD_GRAPH_NONE,
                       gm_scalar(m, INT64_MAX - 1)),
                INT64_MAX - 1, 5, -9);
    m->n_out = 2;
    gm_add(m, "Split", "", gm_ints(m, 1, 2, 3), gm_ints(m, 1, 2));
    assert_ints(m->out[1], 2, 3);
    gm_add(m, "Div", "", gm_ints(m, 7), gm_ints(m, 0));
    assert_true(!m->st && !m->g->tensor[m->out[0]].value);
}

/* A transposed weight is a weight; with data it is none. Random numbers never are. */
static void weights(void **state) {
    gm *m = *state;
    const uint32_t w = gm_w(m, 8, 4), t = gm_add(m, "Transpose", "", w);
    assert_true(m->g->tensor[t].is_weight && last(m)->folded && last(m)->flop == 0);
    const uint32_t y = gm_add(m, "MatMul", "", gm_x(m, 2, 4), t);
    assert_true(!m->g->tensor[y].is_weight && !last(m)->folded);
    const uint32_t c = gm_add(m, "ConstantOfShape", "", gm_ints(m, 64, 3, 7, 7));
    assert_true(m->g->tensor[c].is_weight && last(m)->folded);
    const uint32_t r = gm_add(m, "RandomNormalLike", "", w);
    assert_false(m->g->tensor[r].is_weight);
    assert_close(cd_graph_flop(m->g), 2.0 * 2 * 4 * 8 + 32, 0, 0);
}

static void limits(void **state) {
    gm *m = *state;
    cdmpp_err err = {0};
    uint32_t t;
    const cd_graph_shape big = {2, {(int64_t)1 << 30, (int64_t)1 << 30}};
    const cd_graph_shape below = {1, {-1}};
    const cd_graph_shape deep = {CD_GRAPH_MAX_RANK + 1, {1}};
    const cd_graph_shape hidden = {3, {0, INT64_MAX, INT64_MAX}};
    assert_status(cd_graph_input(m->g, "x", CD_F32, &big, &t, &err), CDMPP_ERANGE);
    assert_status(cd_graph_input(m->g, "x", CD_F32, &below, &t, &err), CDMPP_ERANGE);
    assert_status(cd_graph_weight(m->g, "x", CD_F32, &deep, &t, &err), CDMPP_ERANGE);
    assert_status(cd_graph_weight(m->g, "x", CD_F32, &hidden, &t, &err), CDMPP_ERANGE);
    assert_status(cd_graph_result(m->g, 7, &err), CDMPP_ESCHEMA);
    const uint32_t n = m->g->n_tensor;
    assert_refused(gm_add(m, "Tile", "", gm_x(m, 1 << 20), gm_ints(m, (int64_t)1 << 40)), ERANGE);
    assert_refused(gm_add(m, "Relu", "", 99), ESCHEMA);
    assert_refused(gm_add(m, "Flatten", "axis=x", n), ESCHEMA);
    assert_int_equal(m->g->n_node, 0);
    /* Content that is too large stays unknown, and what needs it says so. */
    const uint32_t c =
        gm_add(m, "ConstantOfShape", "value=1 dtype=7", gm_ints(m, CD_GRAPH_MAX_VALUE + 1));
    assert_true(!m->st && !m->g->tensor[c].value && m->g->tensor[c].is_weight);
    assert_refused(gm_add(m, "Expand", "", gm_x(m, 1), c), EUNSUPPORTED);
    const cd_graph_shape o = {1, {5}};
    const cd_dtype f = CD_F32;
    assert_ok(cd_graph_opaque(m->g, "mine", "com.me", "Magic", &c, 1, &o, &f, &t, 1, &err));
    assert_string_equal(last(m)->domain, "com.me");
    assert_ok(cd_graph_result(m->g, t, &err));
    assert_true(m->g->n_output == 1 && m->g->output[0] == t && m->g->tensor[t].is_output);
}

/* Rows in the order of their names; those of one operator for different opsets. */
TEST(table) {
    size_t n = 0;
    for (const cd_graph_rule *r, *before = NULL; (r = cd_graph_rule_at(n)); before = r, n++) {
        assert_true(r->infer && r->first >= 1 && (!r->last || r->last >= r->first) &&
                    r->min_in >= 0);
        assert_true((r->max_in < 0 || r->max_in >= r->min_in) &&
                    (r->max_out < 0 || r->max_out >= 1));
        if (!before) continue;
        const int order = strcmp(before->op, r->op);
        assert_true(order < 0 || (order == 0 && before->last && before->last < r->first));
    }
    assert_true(n > 150);
}

static void printing(void **state) {
    gm *m = *state;
    cd_buf b = {0}, t = {0};
    cd_arena a = {0};
    cdmpp_err err = {0};
    const cd_json *j, *node, *v;
    double flop;
    cd_str s;
    const uint32_t c = gm_add(m, "Conv", "auto_pad=SAME_UPPER", gm_x(m, 1, 3, 8, 8),
                              gm_w(m, 4, 3, 3, 3), CD_GRAPH_NONE);
    assert_ok(cd_graph_rename(m->g, c, "a \"b\"", &err));
    gm_add(m, "Dropout", "", c);
    assert_ok(cd_graph_result(m->g, m->out[0], &err));
    cd_buf_puts(&b, "{");
    cd_graph_print_json(&b, m->g);
    cd_buf_puts(&b, "}");
    assert_ok(cd_json_parse(&a, b.p, b.n, &j, &err));
    assert_ok(cd_json_need(j, "nodes", &v, &err));
    assert_ok(cd_json_arr(v, 2, &node, &err));
    assert_ok(cd_json_need_real(node, "flop", 0, 1e9, &flop, &err));
    assert_close(flop, 4.0 * 64 * 54, 0, 0);
    assert_true(cd_json_get(node, "in")->n == 3 &&
                cd_json_get(node, "in")->u.child->next->next->kind == CD_JSON_NULL);
    assert_int_equal(cd_json_get(cd_json_get(node, "attributes"), "pads")->n, 4);
    assert_ok(cd_json_need_str(cd_json_get(node, "out")->u.child, "name", &s, &err));
    assert_true(cd_str_is(s, "a \"b\""));
    assert_true(cd_json_get(node->next, "view")->u.i && cd_json_get(j, "outputs")->n == 1);
    cd_graph_print(&t, m->g);
    assert_non_null(strstr(t.p, "float32[1,4,8,8] 13824"));
    assert_non_null(strstr(t.p, "net: 2 nodes, 13824 operations"));
    cd_buf_free(&b);
    cd_buf_free(&t);
    cd_arena_free(&a);
}

static int run_suite(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(convolutions),   T(transposed), T(pools),  T(products), T(recurrent), T(elementwise),
        T(normalisations), T(reductions), T(shapes), T(moving),   T(images),    T(folding),
        T(weights),        T(limits),     T(table),  T(printing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

SUITE(.run = run_suite)
