/* Zero points that are not one known number: DequantizeLinear behind DynamicQuantizeLinear,
 * QuantizeLinear with the zero point of another tensor or of an input, one for each channel. Values
 * are those of the standard, computed here. */
#include <math.h>
#include <string.h>

#include "tests/support/predictor/made_integers.h"

enum { ROWS = 6, COLUMNS = 8, ALL = ROWS * COLUMNS, WIDE = 5 };

/* of draw 2 all are above 0 */
static float data_at(uint32_t draw, int64_t i) {
    return (float)drawn_in(draw, (uint64_t)i, draw == 2 ? 100 : -400, 600) / 100;
}
static int zero_in(int64_t i) { return drawn_in(99, (uint64_t)i, 90, 130); }

static cdmpp_status input(void *ctx, const cd_graph_tensor *t, uint32_t draw, void *to,
                          cdmpp_err *e) {
    (void)ctx, (void)e;
    for (int64_t i = 0; i < cd_graph_shape_elements(&t->shape); i++) {
        if (t->dtype == U8) ((uint8_t *)to)[i] = (uint8_t)zero_in(i);
        else ((float *)to)[i] = data_at(draw, i);
    }
    return CDMPP_OK;
}

/* ---- a network ---- */
static gm m;
static cd_network_live *live;

static uint32_t begin(cd_graph_shape s) {
    uint32_t x = CD_GRAPH_NONE;
    m = (gm){0};
    assert_ok(cd_graph_new("zeros", &m.g, &err));
    assert_ok(cd_graph_input(m.g, "x", CD_F32, &s, &x, &err));
    return x;
}

static uint32_t constant(cd_dtype t, cd_graph_shape s, const int64_t *v, const double *f) {
    uint32_t out = CD_GRAPH_NONE;
    assert_ok(cd_graph_constant(m.g, "k", t, &s, v, f, &out, &err));
    return out;
}

/* Data, scale, zero point. */
static void dynamic(uint32_t x, uint32_t out[3]) {
    m.n_out = 3;
    (void)gm_add(&m, "DynamicQuantizeLinear", "", x);
    memcpy(out, m.out, 3 * sizeof *out);
    m.n_out = 0;
}

static void result(uint32_t t) { assert_ok(cd_graph_result(m.g, t, &err)); }

static void open_it(void) {
    static cd_network_values_options o;
    assert_int_equal(m.st, CDMPP_OK);
    o = (cd_network_values_options){.graph = m.g,
                                    .target = "llvm",
                                    .hardware = cd_target_hardware(false, 1, 64),
                                    .measure = measure,
                                    .input = input};
    assert_ok(cd_network_live_open(&o, &live, &err));
    assert_int_equal(cd_network_live_workload(live)->n_unsupported, 0);
}

static void pass(uint32_t draw) {
    double s;
    assert_ok(cd_network_live_input(live, draw, &err));
    cd_network_live_pass(live, &s);
}

static void end(void) {
    cd_network_live_close(live);
    cd_graph_free(m.g);
}

/* ---- the standard ---- */
typedef struct {
    int q[ALL], zero;
    float scale, d[ALL]; /* d: in float again */
} numbers;

static void quantise(uint32_t draw, numbers *v) {
    float low = 0, high = 0;
    for (int64_t i = 0; i < ALL; i++)
        low = fminf(low, data_at(draw, i)), high = fmaxf(high, data_at(draw, i));
    v->scale = (high - low) * (1.0F / 255); /* docs/reference/quantize.md */
    v->zero = (int)nearbyintf(fminf(-low / v->scale, 255));
    for (int64_t i = 0; i < ALL; i++) {
        v->q[i] =
            (int)fmaxf(fminf(nearbyintf(data_at(draw, i) / v->scale) + (float)v->zero, 255), 0);
        v->d[i] = (float)(v->q[i] - v->zero) * v->scale;
    }
}

static void same(uint32_t k, const float *want, int64_t n, double tolerance) {
    float got[ALL];
    assert_ok(cd_network_live_read(live, k, got, &err));
    for (int64_t i = 0; i < n; i++) assert_close(got[i], want[i], 0, tolerance);
}

/* As it is, behind an operator, by a product with a weight in float; without its zero point. */
TEST(behind_dynamic) {
    static const double no = 0;
    int64_t w[COLUMNS * WIDE];
    double wf[COLUMNS * WIDE];
    uint32_t q[3];
    for (int i = 0; i < COLUMNS * WIDE; i++)
        w[i] = drawn_in(7, (uint64_t)i, -20, 20), wf[i] = (double)w[i];
    dynamic(begin(GM_SHAPE(ROWS, COLUMNS)), q);
    const uint32_t d = gm_add(&m, "DequantizeLinear", "", q[0], q[1], q[2]);
    result(d);
    result(gm_add(&m, "Max", "", gm_add(&m, "DequantizeLinear", "", q[0], q[1], q[2]),
                  constant(CD_F32, (cd_graph_shape){0}, NULL, &no)));
    result(gm_add(&m, "MatMul", "", d, constant(CD_F32, GM_SHAPE(COLUMNS, WIDE), NULL, wf)));
    result(gm_add(&m, "DequantizeLinear", "", q[0], q[1]));
    open_it();
    for (uint32_t draw = 1; draw < 4; draw++) {
        float want[ALL];
        numbers v;
        quantise(draw, &v);
        pass(draw);
        same(0, v.d, ALL, 0);
        for (int i = 0; i < ALL; i++) want[i] = fmaxf(v.d[i], 0);
        same(1, want, ALL, 0);
        for (int i = 0; i < ROWS * WIDE; i++) {
            double sum = 0;
            for (int k = 0; k < COLUMNS; k++)
                sum += (double)v.d[i / WIDE * COLUMNS + k] * (double)w[k * WIDE + i % WIDE];
            want[i] = (float)sum;
        }
        same(2, want, ROWS * WIDE, 1e-4);
        for (int i = 0; i < ALL; i++) want[i] = (float)v.q[i] * v.scale;
        same(3, want, ALL, 0);
    }
    end();
}

/* Sums of whole numbers in float, by a Cast and a product with both scales, as tools write it; and
 * by DequantizeLinear. */
TEST(behind_integers) {
    int64_t w[COLUMNS * WIDE];
    double scale[WIDE];
    uint32_t q[3];
    for (int i = 0; i < COLUMNS * WIDE; i++) w[i] = drawn_in(8, (uint64_t)i, -127, 127);
    for (int i = 0; i < WIDE; i++) scale[i] = (double)(float)(0.01 * (i + 1));
    dynamic(begin(GM_SHAPE(ROWS, COLUMNS)), q);
    const uint32_t y =
        gm_add(&m, "MatMulInteger", "", q[0], constant(I8, GM_SHAPE(COLUMNS, WIDE), w, NULL), q[2]);
    result(gm_add(&m, "Mul", "", gm_add(&m, "Cast", "to=1", y),
                  gm_add(&m, "Mul", "", q[1], constant(CD_F32, GM_SHAPE(WIDE), NULL, scale))));
    result(gm_add(&m, "DequantizeLinear", "", y, q[1]));
    open_it();
    for (uint32_t draw = 1; draw < 4; draw++) {
        float a[ROWS * WIDE], b[ROWS * WIDE];
        numbers v;
        quantise(draw, &v);
        pass(draw);
        for (int i = 0; i < ROWS * WIDE; i++) {
            int sum = 0;
            for (int k = 0; k < COLUMNS; k++)
                sum += (v.q[i / WIDE * COLUMNS + k] - v.zero) * (int)w[k * WIDE + i % WIDE];
            a[i] = (float)sum * (v.scale * (float)scale[i % WIDE]);
            b[i] = (float)sum * v.scale;
        }
        same(0, a, ROWS * WIDE, 1e-5);
        same(1, b, ROWS * WIDE, 0);
    }
    end();
}

/* Both ways: of int8 and uint8, for each row or column, known and as an input. */
TEST(of_each_channel) {
    static const struct {
        const char *axis;
        cd_dtype t;
        int low; /* of the zero points; 0: they are an input */
        int64_t n;
    } t[] = {{"axis=0", U8, 100, ROWS},
             {"axis=1", I8, -20, COLUMNS},
             {"axis=-1", U8, 0, COLUMNS},
             {"axis=0", U8, 0, ROWS},
             {"axis=1", U8, 0, 1}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        const bool given = t[k].low != 0, rows = !strcmp(t[k].axis, "axis=0");
        const float low = t[k].t == I8 ? -128 : 0;
        int64_t zero[COLUMNS];
        double scale[COLUMNS];
        float want[ALL];
        const uint32_t x = begin(GM_SHAPE(ROWS, COLUMNS));
        const cd_graph_shape s = t[k].n > 1 ? GM_SHAPE(t[k].n) : (cd_graph_shape){0};
        for (int i = 0; i < COLUMNS; i++)
            zero[i] = given ? t[k].low + 3 * i : zero_in(i),
            scale[i] = (double)(float)(0.03 + 0.01 * i);
        uint32_t z = given ? constant(t[k].t, s, zero, NULL) : 0;
        if (!given) assert_ok(cd_graph_input(m.g, "z", U8, &s, &z, &err));
        const uint32_t by = constant(CD_F32, s, NULL, scale),
                       q = gm_add(&m, "QuantizeLinear", t[k].axis, x, by, z);
        result(gm_add(&m, "DequantizeLinear", t[k].axis, q, by, z));
        open_it();
        pass(1);
        for (int i = 0; i < ALL; i++) {
            const int c = t[k].n == 1 ? 0 : rows ? i / COLUMNS : i % COLUMNS;
            const float v = fmaxf(
                fminf(nearbyintf(data_at(1, i) / (float)scale[c]) + (float)zero[c], low + 255),
                low);
            want[i] = (v - (float)zero[c]) * (float)scale[c];
        }
        same(0, want, ALL, 0);
        end();
    }
}

TESTS(up, down, behind_dynamic, behind_integers, of_each_channel)
