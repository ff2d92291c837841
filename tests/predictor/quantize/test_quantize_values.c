/* Networks in 8 bits against sums of whole numbers: the results are equal to the bit, whatever
 * instructions the programs use. */
#include <math.h>
#include <string.h>

#include "predictor/quantize/quantize.h"
#include "tests/support/base/check.h"
#include "tests/support/profiler/made_graph.h"

/* A layer of the reference: what it holds, in whole numbers. */
typedef struct {
    int64_t c, h, w, o, k, pad; /* of its input; kernels k x k, stride 1 */
    int weight[4096], bias[64], zero;
    float scale[64]; /* of a sum, for each channel */
} layer;

static cd_measure *measure;
static cdmpp_err err; /* of assert_ok */

static int up(void **state) {
    (void)state;
    const cd_measure_options o = {
        .threads = 1, .jobs = 1, .cache = "", .timing = {.budget_s = 0.001}};
    return cd_measure_open(&o, &measure, NULL) != CDMPP_OK;
}

static int down(void **state) {
    (void)state;
    cd_measure_close(measure);
    return 0;
}

static int drawn(uint64_t seed, uint64_t i, int lo, int hi) {
    return lo + (int)(cd_rng_at(seed, i) % (uint64_t)(hi - lo + 1));
}

static cdmpp_status input(void *ctx, const cd_graph_tensor *t, uint32_t draw, void *to,
                          cdmpp_err *e) {
    float *v = to;
    (void)ctx, (void)e;
    for (int64_t i = 0; i < cd_graph_shape_elements(&t->shape); i++)
        v[i] = (float)drawn(draw, (uint64_t)i, -400, 600) / 100;
    return CDMPP_OK;
}

/* ---- the reference ---- */

static int quantized(float x, float scale, int zero) {
    const float r = nearbyintf(x / scale) + (float)zero;
    return (int)fmaxf(fminf(r, 255), 0);
}

/* Sum of weights times numbers less their zero point: outside of the image these are 0. */
static int64_t sum_of(const layer *l, const int *q, int64_t o, int64_t y, int64_t x) {
    int64_t sum = l->bias[o];
    for (int64_t c = 0; c < l->c; c++)
        for (int64_t i = 0; i < l->k; i++)
            for (int64_t j = 0; j < l->k; j++) {
                const int64_t yy = y + i - l->pad, xx = x + j - l->pad;
                if (yy < 0 || xx < 0 || yy >= l->h || xx >= l->w) continue;
                sum += (int64_t)(q[(c * l->h + yy) * l->w + xx] - l->zero) *
                       l->weight[((o * l->c + c) * l->k + i) * l->k + j];
            }
    return sum;
}

static void reference(const layer *l, const int *q, float *out) {
    for (int64_t o = 0; o < l->o; o++)
        for (int64_t y = 0; y < l->h; y++)
            for (int64_t x = 0; x < l->w; x++)
                out[(o * l->h + y) * l->w + x] =
                    (float)(int32_t)sum_of(l, q, o, y, x) * l->scale[o];
}

/* ---- a file's own quantisation ---- */

static uint32_t constant(gm *m, cd_dtype t, cd_graph_shape s, const int64_t *v, const double *f) {
    uint32_t out = CD_GRAPH_NONE;
    assert_ok(cd_graph_constant(m->g, "k", t, &s, v, f, &out, &err));
    return out;
}

static uint32_t real(gm *m, double v) { return constant(m, CD_F32, (cd_graph_shape){0}, NULL, &v); }
static uint32_t zero_point(gm *m, cd_dtype t, int64_t v) {
    return constant(m, t, (cd_graph_shape){0}, &v, NULL);
}

/* Quantised and back: what a file has between two operators. */
static uint32_t pair(gm *m, uint32_t x, cd_dtype t, float scale, int zero) {
    const uint32_t s = real(m, (double)scale), z = zero_point(m, t, zero),
                   q = gm_add(m, "QuantizeLinear", "", x, s, z);
    return gm_add(m, "DequantizeLinear", "", q, s, z);
}

/* Weights, scales and a bias of a layer, drawn; as constants of the graph. */
static void draw_layer(layer *l, gm *m, uint64_t seed, float x_scale, uint32_t *w, uint32_t *b,
                       bool dense) {
    const int64_t n = l->o * l->c * l->k * l->k;
    int64_t v[4096], bias[64];
    double s[64], bs[64];
    for (int64_t i = 0; i < n; i++) v[i] = l->weight[i] = drawn(seed, (uint64_t)i, -127, 127);
    for (int64_t o = 0; o < l->o; o++) {
        const float ws = (float)drawn(seed + 1, (uint64_t)o, 5, 60) / 4096;
        l->scale[o] = ws * x_scale;
        s[o] = (double)ws, bs[o] = (double)l->scale[o];
        bias[o] = l->bias[o] = drawn(seed + 2, (uint64_t)o, -9000, 9000);
    }
    const cd_graph_shape ws = dense ? GM_SHAPE(l->o, l->c) : GM_SHAPE(l->o, l->c, l->k, l->k),
                         one = GM_SHAPE(l->o);
    *w = gm_add(m, "DequantizeLinear", "axis=0", constant(m, CD_DTYPE(CD_T_INT, 8), ws, v, NULL),
                constant(m, CD_F32, one, NULL, s));
    *b = gm_add(m, "DequantizeLinear", "axis=0", constant(m, CD_I32, one, bias, NULL),
                constant(m, CD_F32, one, NULL, bs));
}

enum { C1 = 5, C2 = 8, C3 = 6, SIDE = 6, OUT = 10 };
static const float scale[4] = {0.05F, 0.31F, 0.9F, 0.5F};
static const int zero[4] = {90, 0, 131, 100};

typedef struct {
    gm m;
    layer a, b, c;
} made;

/* Convolution, relu, convolution, a product: the second's input and output are of type t. */
static void make_file(made *f, cd_dtype t) {
    const int low = t == CD_DTYPE(CD_T_INT, 8) ? 128 : 0; /* int8 stand 128 lower */
    uint32_t w, b;
    *f = (made){.a = {C1, SIDE, SIDE, C2, 3, 1, {0}, {0}, zero[0], {0}},
                .b = {C2, SIDE, SIDE, C3, 1, 0, {0}, {0}, zero[1], {0}},
                .c = {C3 * SIDE * SIDE, 1, 1, OUT, 1, 0, {0}, {0}, zero[2], {0}}};
    assert_ok(cd_graph_new("file", &f->m.g, &err));
    uint32_t x =
        pair(&f->m, gm_x(&f->m, 1, C1, SIDE, SIDE), CD_DTYPE(CD_T_UINT, 8), scale[0], zero[0]);
    draw_layer(&f->a, &f->m, 10, scale[0], &w, &b, false);
    x = gm_add(&f->m, "Relu", "", gm_add(&f->m, "Conv", "pads=1,1,1,1", x, w, b));
    x = pair(&f->m, x, t, scale[1], zero[1] - low);
    draw_layer(&f->b, &f->m, 20, scale[1], &w, &b, false);
    x = pair(&f->m, gm_add(&f->m, "Conv", "", x, w, b), t, scale[2], zero[2] - low);
    x = gm_add(&f->m, "Flatten", "", x);
    draw_layer(&f->c, &f->m, 30, scale[2], &w, &b, true);
    x = gm_add(&f->m, "Gemm", "transB=1", x, w, b);
    assert_ok(cd_graph_result(f->m.g, x, &err));
}

static void want_file(const made *f, const float *x, float *out) {
    int q[512];
    float y[512];
    for (int i = 0; i < C1 * SIDE * SIDE; i++) q[i] = quantized(x[i], scale[0], zero[0]);
    reference(&f->a, q, y);
    for (int i = 0; i < C2 * SIDE * SIDE; i++) q[i] = quantized(fmaxf(y[i], 0), scale[1], zero[1]);
    reference(&f->b, q, y);
    for (int i = 0; i < C3 * SIDE * SIDE; i++) q[i] = quantized(y[i], scale[2], zero[2]);
    reference(&f->c, q, out);
}

static cd_network_values_options options(const cd_graph *g, const cd_quantize *how) {
    return (cd_network_values_options){.graph = g,
                                       .target = "llvm",
                                       .hardware = cd_target_hardware(false, 1, 64),
                                       .measure = measure,
                                       .quantize = how,
                                       .input = input};
}

static void check_file(cd_dtype t, cd_workload_layout layout) {
    static made f;
    float x[C1 * SIDE * SIDE], want[OUT], got[OUT];
    const cd_graph_tensor as = {.shape = {1, {C1 * SIDE * SIDE}}};
    cd_network_live *v = NULL;
    double s;
    make_file(&f, t);
    cd_network_values_options o = options(f.m.g, NULL);
    o.layout = layout;
    assert_ok(cd_network_live_open(&o, &v, &err));
    assert_int_equal(cd_network_live_workload(v)->n_layer, 3);
    for (int k = 0; k < 3; k++) assert_null(cd_network_live_workload(v)->layer[k].why);
    for (uint32_t draw = 1; draw < 4; draw++) {
        assert_ok(input(NULL, &as, draw, x, NULL));
        want_file(&f, x, want);
        assert_ok(cd_network_live_input(v, draw, &err));
        cd_network_live_pass(v, &s);
        assert_ok(cd_network_live_read(v, 0, got, &err));
        assert_memory_equal(got, want, sizeof want);
    }
    cd_network_live_close(v);
    cd_graph_free(f.m.g);
}

TEST(test_file_uint8) { check_file(CD_DTYPE(CD_T_UINT, 8), CD_WORKLOAD_LAYOUT_NHWC); }
TEST(test_file_int8) { check_file(CD_DTYPE(CD_T_INT, 8), CD_WORKLOAD_LAYOUT_NHWC); }
TEST(test_file_nchw) { check_file(CD_DTYPE(CD_T_UINT, 8), CD_WORKLOAD_LAYOUT_NCHW); }

/* ---- by ranges ---- */

/* Weights and bias of one convolution in float become whole numbers as fuse_quantize.h says. */
static void quantize_layer(layer *l, const double *w, const double *b, float x_scale) {
    const int64_t n = l->c * l->k * l->k;
    for (int64_t o = 0; o < l->o; o++) {
        float most = 0;
        for (int64_t i = 0; i < n; i++) most = fmaxf(most, fabsf((float)w[o * n + i]));
        const float ws = most > 0 ? most * (float)(1.0 / 127) : 1;
        for (int64_t i = 0; i < n; i++)
            l->weight[o * n + i] =
                (int)fmaxf(fminf(nearbyintf((float)w[o * n + i] / ws), 127), -127);
        l->scale[o] = ws * x_scale;
        l->bias[o] = (int)nearbyintf((float)b[o] / l->scale[o]);
    }
}

/* One channel of the weights is zero throughout: its scale is 1. With means the bias takes back
 * what rounded weights do to them: sums of reals, whose last bits depend on their order, so that a
 * result may be one unit off. */
static void check_ranges(bool means) {
    static layer l;
    static double w[C2 * C1 * 9], b[C2], mean[C1];
    float x[C1 * SIDE * SIDE], want[C2 * SIDE * SIDE], got[C2 * SIDE * SIDE], low = -3.7F,
                                                                              high = 5.1F, s;
    int q[C1 * SIDE * SIDE];
    uint32_t at = 0, moved = 0;
    cd_network_live *v = NULL;
    double t;
    gm m = {0};
    l = (layer){C1, SIDE, SIDE, C2, 3, 1, {0}, {0}, 0, {0}};
    for (int i = 0; i < C2 * C1 * 9; i++)
        w[i] = i / (C1 * 9) == 3 ? 0 : drawn(1, (uint64_t)i, -1000, 1000) / 700.0;
    for (int i = 0; i < C2; i++) b[i] = drawn(2, (uint64_t)i, -1000, 1000) / 500.0;
    for (int i = 0; i < C1; i++) mean[i] = 3.0 + i;
    assert_ok(cd_graph_new("ranges", &m.g, &err));
    const uint32_t in = gm_x(&m, 1, C1, SIDE, SIDE),
                   k = constant(&m, CD_F32, GM_SHAPE(C2, C1, 3, 3), NULL, w),
                   c = constant(&m, CD_F32, GM_SHAPE(C2), NULL, b);
    assert_ok(cd_graph_result(
        m.g, gm_add(&m, "Relu", "", gm_add(&m, "Conv", "pads=1,1,1,1", in, k, c)), &err));
    if (means) at = constant(&m, CD_F32, GM_SHAPE(C1), NULL, mean);
    const cd_quantize how = {CD_QUANTIZE_RANGES, 1, &low, &high, means ? &at : NULL};
    const cd_network_values_options o = options(m.g, &how);
    assert_ok(cd_network_live_open(&o, &v, &err));
    cd_fuse_quantize_scale(low, high, &s, &l.zero);
    quantize_layer(&l, w, b, s);
    for (int i = 0; means && i < C2 * C1 * 9; i++)
        b[i / (C1 * 9)] +=
            (w[i] - l.weight[i] * (double)l.scale[i / (C1 * 9)] / (double)s) * mean[i / 9 % C1];
    for (int i = 0; means && i < C2; i++) {
        const int before = l.bias[i];
        l.bias[i] = (int)nearbyint(b[i] / (double)l.scale[i]);
        moved += before != l.bias[i];
    }
    assert_true(!means || moved > 3);
    assert_ok(input(NULL, &m.g->tensor[in], 1, x, NULL));
    for (int i = 0; i < C1 * SIDE * SIDE; i++)
        q[i] =
            (int)fmaxf(fminf(nearbyintf(x[i] * (float)(1.0 / (double)s)) + (float)l.zero, 255), 0);
    reference(&l, q, want);
    for (int i = 0; i < C2 * SIDE * SIDE; i++) want[i] = fmaxf(want[i], 0);
    assert_ok(cd_network_live_input(v, 1, &err));
    cd_network_live_pass(v, &t);
    assert_ok(cd_network_live_read(v, 0, got, &err));
    if (!means) assert_memory_equal(got, want, sizeof want);
    for (int i = 0; i < C2 * SIDE * SIDE; i++)
        assert_true(fabsf(got[i] - want[i]) <= 1.01F * l.scale[i / (SIDE * SIDE)]);
    cd_network_live_close(v);
    cd_graph_free(m.g);
}

TEST(test_ranges) { check_ranges(false); }
TEST(test_means) { check_ranges(true); }

TESTS(up, down, test_file_uint8, test_file_int8, test_file_nchw, test_ranges, test_means)
