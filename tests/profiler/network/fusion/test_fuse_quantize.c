/* Which layers become 8 bits long, what their programs read and write, and the scales. Values:
 * tests/predictor/quantize. */
#include <math.h>

#include "profiler/network/workload/workload.h"
#include "tests/support/base/fault.h"
#include "tests/support/profiler/made_graph.h"

static cdmpp_err err;

/* ---- numbers ---- */

/* Every number of the range is off by half a step at most, 0 by nothing; the step is no larger than
 * it must be. */
static void check_scale(float low, float high) {
    float scale;
    int zero;
    cd_fuse_quantize_scale(low, high, &scale, &zero);
    assert_true(zero >= 0 && zero <= 255 && scale > 0);
    const double lo = fmin(0, (double)low), hi = fmax(0, (double)high);
    for (int i = 0; i <= 1000; i++) {
        const double x = lo + (hi - lo) * i / 1000,
                     q = fmin(fmax(nearbyint(x / (double)scale) + zero, 0), 255);
        assert_true(fabs((q - zero) * (double)scale - x) <= 1.001 * (double)scale);
        if (i % 1000) assert_true(fabs((q - zero) * (double)scale - x) <= 0.5001 * (double)scale);
    }
    if (hi > lo) assert_true(fabs((double)scale * 255 - (hi - lo)) <= 1e-6 * (hi - lo));
}

TEST(test_scale) {
    float scale;
    int zero;
    for (uint64_t k = 0; k < 200; k++) {
        const double size = pow(10, 20 * cd_rng_unit(1, k) - 10);
        check_scale((float)(-size * cd_rng_unit(2, k)), (float)(size * cd_rng_unit(3, k)));
        /* 0 is outside: the range is widened */
        check_scale((float)(size * cd_rng_unit(4, k)), (float)(size * 2));
        check_scale((float)(-2 * size), (float)(-size * cd_rng_unit(5, k)));
    }
    cd_fuse_quantize_scale(0, 0, &scale, &zero);
    assert_true(scale == 1.0F);
    assert_int_equal(zero, 0);
    cd_fuse_quantize_scale(-1, 0, &scale, &zero);
    assert_int_equal(zero, 255);
}

/* ---- layers ---- */

/* conv (3 channels: filled up to 4) - relu - conv - + conv's own - depthwise - pool - product, and
 * a product of data by data. */
static cd_graph *chain(void) {
    gm m = {0};
    assert_ok(cd_graph_new("chain", &m.g, &err));
    const uint32_t x = gm_x(&m, 1, 3, 8, 8);
    const uint32_t a = gm_add(
        &m, "Relu", "", gm_add(&m, "Conv", "pads=1,1,1,1", x, gm_w(&m, 16, 3, 3, 3), gm_w(&m, 16)));
    const uint32_t b =
        gm_add(&m, "Relu", "", gm_add(&m, "Conv", "", a, gm_w(&m, 16, 16, 1, 1), gm_w(&m, 16)));
    const uint32_t c = gm_add(&m, "Conv", "group=16 pads=1,1,1,1", gm_add(&m, "Add", "", a, b),
                              gm_w(&m, 16, 1, 3, 3), gm_w(&m, 16));
    const uint32_t d = gm_add(&m, "Flatten", "", gm_add(&m, "GlobalAveragePool", "", c));
    const uint32_t e = gm_add(&m, "Gemm", "transB=1", d, gm_w(&m, 16, 16), gm_w(&m, 16));
    const uint32_t f = gm_add(&m, "MatMul", "", gm_add(&m, "Reshape", "", e, gm_ints(&m, 1, 4, 4)),
                              gm_add(&m, "Reshape", "", d, gm_ints(&m, 1, 4, 4)));
    assert_int_equal(m.st, CDMPP_OK);
    assert_ok(cd_graph_result(m.g, f, &err));
    return m.g;
}

static cd_workload *built(const cd_graph *g, const cd_quantize *q) {
    cd_workload *w = NULL;
    assert_ok(cd_workload_build(g, &(cd_workload_options){.quantize = q}, &w, &err));
    assert_int_equal(w->n_unsupported, 0);
    return w;
}

static uint32_t count(const cd_workload *w, cd_dtype t) {
    uint32_t n = 0;
    for (uint32_t g = 0; g < w->n_group; g++) n += w->buffer[w->group[g].write].dtype == t;
    return n;
}

TEST(test_layers) {
    static const float low[4] = {-2, 0, 0, -1}, high[4] = {2, 6, 5, 1};
    cd_graph *g = chain();
    cd_workload *w = built(g, &(cd_quantize){.mode = CD_QUANTIZE_OBSERVE});
    const uint32_t groups = w->n_group;
    assert_int_equal(w->n_observed, 3); /* x, a, d */
    assert_int_equal(count(w, CD_DTYPE(CD_T_UINT, 8)), 0);
    cd_workload_free(w);
    w = built(g, &(cd_quantize){CD_QUANTIZE_RANGES, 3, low, high, NULL});
    assert_int_equal(w->n_layer, 5);
    assert_null(w->layer[0].why);
    assert_null(w->layer[1].why);
    assert_string_equal(w->layer[2].why, "a convolution in groups");
    assert_null(w->layer[3].why);
    assert_string_equal(w->layer[4].why, "a product of two tensors of data");
    assert_true(w->layer[1].flop == 2.0 * 16 * 16 * 64);
    assert_true(count(w, CD_DTYPE(CD_T_UINT, 8)) >= 3);
    /* x alone gets programs of its own: the rest is part of what there is */
    assert_true(w->n_group <= groups + 2);
    cd_workload_free(w);
    assert_int_equal(
        cd_workload_build(g,
                          &(cd_workload_options){
                              .quantize = &(cd_quantize){CD_QUANTIZE_RANGES, 2, low, high, NULL}},
                          &w, &err),
        CDMPP_EINVALID);
    cd_graph_free(g);
}

/* A network in float is what it was: no layer is listed, no key is another. */
TEST(test_float) {
    cd_graph *g = chain();
    cd_workload *w = built(g, NULL), *v = built(g, &(cd_quantize){.mode = CD_QUANTIZE_FLOAT});
    assert_int_equal(w->n_layer, 0);
    assert_int_equal(v->n_layer, 5);
    assert_int_equal(w->n_task, v->n_task);
    for (uint32_t k = 0; k < w->n_task; k++)
        assert_string_equal(cd_task_registry_at(w->tasks, w->task[k].task)->workload_key,
                            cd_task_registry_at(v->tasks, v->task[k].task)->workload_key);
    cd_workload_free(v);
    cd_workload_free(w);
    cd_graph_free(g);
}

/* ---- files ---- */

static uint32_t constant(gm *m, cd_dtype t, int64_t v) {
    uint32_t out = CD_GRAPH_NONE;
    const cd_graph_shape s = {0};
    assert_ok(cd_graph_constant(m->g, "z", t, &s, &v, NULL, &out, &err));
    return out;
}

static uint32_t number(gm *m, double v) {
    uint32_t out = CD_GRAPH_NONE;
    const cd_graph_shape s = {0};
    assert_ok(cd_graph_constant(m->g, "s", CD_F32, &s, NULL, &v, &out, &err));
    return out;
}

static uint32_t bytes(gm *m, cd_dtype t, cd_graph_shape s) {
    uint32_t out = CD_GRAPH_NONE;
    assert_ok(cd_graph_weight(m->g, "q", t, &s, &out, &err));
    return out;
}

/* A convolution whose weight of type t has this zero point, behind a quantised input. */
static const char *why_of(cd_dtype t, int64_t zero, bool data) {
    static char text[200];
    gm m = {0};
    cd_workload *w;
    assert_ok(cd_graph_new("file", &m.g, &err));
    uint32_t x = gm_x(&m, 1, 8, 4, 4);
    if (data)
        x = gm_add(&m, "DequantizeLinear", "", gm_add(&m, "QuantizeLinear", "", x, number(&m, 0.1)),
                   number(&m, 0.1));
    const uint32_t k = gm_add(&m, "DequantizeLinear", "", bytes(&m, t, GM_SHAPE(8, 8, 1, 1)),
                              number(&m, 0.01), constant(&m, t, zero));
    assert_ok(cd_graph_result(m.g, gm_add(&m, "Conv", "", x, k), &err));
    w = built(m.g, NULL);
    assert_int_equal(w->n_layer, 1);
    snprintf(text, sizeof text, "%s", w->layer[0].why ? w->layer[0].why : "");
    cd_workload_free(w);
    cd_graph_free(m.g);
    return text;
}

TEST(test_file) {
    const cd_dtype i8 = CD_DTYPE(CD_T_INT, 8), u8 = CD_DTYPE(CD_T_UINT, 8);
    assert_string_equal(why_of(i8, 0, true), "");
    assert_string_equal(why_of(u8, 128, true), "");
    assert_string_equal(why_of(i8, 3, true), "its weight has a zero point");
    assert_string_equal(why_of(u8, 0, true), "its weight has a zero point");
    assert_string_equal(why_of(i8, 0, false), "its input is not quantised");
}

/* Zero points that are known only as the network runs, or that differ, leave a layer in float, and
 * the list says so. */
TEST(test_file_zeros) {
    const cd_dtype i8 = CD_DTYPE(CD_T_INT, 8);
    for (int k = 0; k < 2; k++) {
        gm m = {0};
        assert_ok(cd_graph_new("zeros", &m.g, &err));
        uint32_t x = gm_x(&m, 1, 8, 4, 4);
        m.n_out = 3;
        (void)gm_add(&m, "DynamicQuantizeLinear", "", x);
        const uint32_t q = m.out[0], s = m.out[1], z = m.out[2];
        m.n_out = 0;
        x = k ? gm_add(&m, "DequantizeLinear", "",
                       gm_add(&m, "QuantizeLinear", "", x, number(&m, 0.1)), number(&m, 0.1))
              : gm_add(&m, "DequantizeLinear", "", q, s, z);
        const uint32_t w =
            gm_add(&m, "DequantizeLinear", "axis=0", bytes(&m, i8, GM_SHAPE(8, 8, 1, 1)),
                   number(&m, 0.01), k ? bytes(&m, i8, GM_SHAPE(8)) : constant(&m, i8, 0));
        assert_ok(cd_graph_result(m.g, gm_add(&m, "Conv", "", x, w), &err));
        cd_workload *v = built(m.g, NULL);
        assert_int_equal(v->n_unsupported, 0);
        assert_int_equal(v->n_layer, 1);
        assert_string_equal(v->layer[0].why,
                            k ? "its weight has a zero point that is not one known number"
                              : "its input has a zero point that is not one known number");
        cd_workload_free(v);
        cd_graph_free(m.g);
    }
}

/* QLinearConv and QLinearMatMul are the same between quantisations; the result is of 8 bits. */
TEST(test_qlinear) {
    const cd_dtype i8 = CD_DTYPE(CD_T_INT, 8), u8 = CD_DTYPE(CD_T_UINT, 8);
    gm m = {0};
    assert_ok(cd_graph_new("qlinear", &m.g, &err));
    const uint32_t s = number(&m, 0.1), z = constant(&m, u8, 7), zw = constant(&m, i8, 0),
                   x = gm_add(&m, "QuantizeLinear", "", gm_x(&m, 1, 8, 4, 4), s, z);
    const uint32_t y =
        gm_add(&m, "QLinearConv", "pads=1,1,1,1", x, s, z, bytes(&m, i8, GM_SHAPE(12, 8, 3, 3)), s,
               zw, s, z, bytes(&m, CD_I32, GM_SHAPE(12)));
    const uint32_t r = gm_add(&m, "Reshape", "", y, gm_ints(&m, 12, 16));
    const uint32_t p =
        gm_add(&m, "QLinearMatMul", "", r, s, z, bytes(&m, i8, GM_SHAPE(16, 4)), s, zw, s, z);
    assert_ok(cd_graph_result(m.g, gm_add(&m, "DequantizeLinear", "", p, s, z), &err));
    cd_workload *w = built(m.g, NULL);
    assert_int_equal(w->n_layer, 2);
    assert_null(w->layer[0].why);
    assert_null(w->layer[1].why);
    cd_workload_free(w);
    cd_graph_free(m.g);
}

/* A product of whole numbers beside a quantised convolution: both are listed, with the operations
 * of all their numbers. */
TEST(test_whole_numbers) {
    const cd_dtype i8 = CD_DTYPE(CD_T_INT, 8), u8 = CD_DTYPE(CD_T_UINT, 8);
    gm m = {0};
    assert_ok(cd_graph_new("whole", &m.g, &err));
    const uint32_t s = number(&m, 0.1), z = constant(&m, u8, 7),
                   x = gm_add(&m, "QuantizeLinear", "", gm_x(&m, 1, 8, 4, 4), s, z);
    const uint32_t k = gm_add(&m, "DequantizeLinear", "", bytes(&m, i8, GM_SHAPE(8, 8, 1, 1)),
                              number(&m, 0.01), constant(&m, i8, 0));
    const uint32_t y = gm_add(&m, "Conv", "", gm_add(&m, "DequantizeLinear", "", x, s, z), k),
                   r = gm_add(&m, "Reshape", "", y, gm_ints(&m, 8, 16));
    m.n_out = 3;
    (void)gm_add(&m, "DynamicQuantizeLinear", "", r);
    assert_ok(cd_graph_result(m.g,
                              gm_add(&m, "MatMulInteger", "", m.out[0],
                                     bytes(&m, i8, GM_SHAPE(16, 4)), m.out[2], constant(&m, i8, 0)),
                              &err));
    cd_workload *w = built(m.g, NULL);
    assert_int_equal(w->n_layer, 2);
    assert_null(w->layer[0].why);
    assert_null(w->layer[1].why);
    assert_true(w->layer[1].flop == 2.0 * 8 * 16 * 4);
    cd_workload_free(w);
    FAULT_SWEEP(f, 1) {
        cd_workload *v = NULL;
        f.step = 7;
        f.st = cd_workload_build(m.g, NULL, &v, &f.err);
        cd_workload_free(v);
    }
    cd_graph_free(m.g);
}

TEST(test_refused) {
    gm m = {0};
    cd_workload *w;
    assert_ok(cd_graph_new("refused", &m.g, &err));
    const uint32_t q = gm_add(&m, "QuantizeLinear", "", gm_x(&m, 1, 8, 4, 4), number(&m, 0.1),
                              bytes(&m, CD_DTYPE(CD_T_UINT, 8), GM_SHAPE(2)));
    assert_ok(cd_graph_result(m.g, q, &err));
    assert_ok(cd_workload_build(m.g, NULL, &w, &err));
    assert_int_equal(w->n_unsupported, 1);
    assert_string_equal(w->unsupported[0].op, "QuantizeLinear");
    assert_non_null(strstr(w->unsupported[0].reason, "zero points of blocks"));
    cd_workload_free(w);
    cd_graph_free(m.g);
}

TEST(test_no_memory) {
    static const float low[3] = {-2, 0, 0}, high[3] = {2, 6, 5};
    cd_graph *g = chain();
    FAULT_SWEEP(f, 1) {
        cd_workload *w = NULL;
        f.step = 7;
        f.st =
            cd_workload_build(g,
                              &(cd_workload_options){.quantize = &(cd_quantize){CD_QUANTIZE_RANGES,
                                                                                3, low, high, NULL},
                                                     .weights = true},
                              &w, &f.err);
        cd_workload_free(w);
    }
    cd_graph_free(g);
}

TESTS(NULL, NULL, test_scale, test_layers, test_float, test_file, test_file_zeros, test_qlinear,
      test_whole_numbers, test_refused, test_no_memory)
