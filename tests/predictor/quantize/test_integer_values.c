/* MatMulInteger, ConvInteger and DynamicQuantizeLinear against sums of whole numbers: equal to the
 * bit, in words of four and without. */
#include <math.h>
#include <string.h>

#include "tests/support/predictor/made_integers.h"

enum { NONE = -1000, MOST = 4096 };

static cdmpp_status input(void *ctx, const cd_graph_tensor *t, uint32_t draw, void *to,
                          cdmpp_err *e) {
    float *v = to;
    (void)ctx, (void)e;
    for (int64_t i = 0; i < cd_graph_shape_elements(&t->shape); i++)
        v[i] = (float)drawn_in(draw, (uint64_t)i, -400, 600) / 100;
    return CDMPP_OK;
}

/* ---- a network ---- */

typedef struct {
    cd_dtype data, weight; /* data 0: DynamicQuantizeLinear makes them */
    int zero, w_zero;      /* NONE: not given */
    bool each;             /* a zero point of the weights for each channel: w_zero + channel */
    cd_graph_shape x, w;
    const char *attr; /* of a convolution */
    bool words;       /* the program multiplies words */
} layer;

static uint32_t constant(gm *m, cd_dtype t, cd_graph_shape s, const int64_t *v, const double *f) {
    uint32_t out = CD_GRAPH_NONE;
    assert_ok(cd_graph_constant(m->g, "k", t, &s, v, f, &out, &err));
    return out;
}

static int64_t channels_of(const layer *l) { return l->attr ? l->w.dim[0] : l->w.dim[1]; }
static int zero_at(const layer *l, int64_t c) {
    return l->w_zero == NONE ? 0 : l->w_zero + (l->each ? (int)c : 0);
}
static float scale_of(const layer *l) { return l->data ? 0.05F : 1; }

/* Results: the whole numbers, and of data that are quantised as the network runs their scale. */
static void make(const layer *l, gm *m) {
    const int64_t n = cd_graph_shape_elements(&l->w), c = channels_of(l);
    const double scale = (double)scale_of(l);
    int64_t w[MOST], z[64], zero = l->zero;
    uint32_t in[4], x = CD_GRAPH_NONE, made[3] = {0};
    *m = (gm){0};
    assert_ok(cd_graph_new("whole", &m->g, &err));
    assert_ok(cd_graph_input(m->g, "x", CD_F32, &l->x, &x, &err));
    for (int64_t i = 0; i < n; i++)
        w[i] = drawn_in(7, (uint64_t)i, l->weight == U8 ? 0 : -127, l->weight == U8 ? 255 : 127);
    for (int64_t i = 0; i < c; i++) z[i] = zero_at(l, i);
    m->n_out = 3;
    if (!l->data) (void)gm_add(m, "DynamicQuantizeLinear", "", x);
    memcpy(made, m->out, sizeof made);
    m->n_out = 0;
    in[2] = l->data ? constant(m, l->data, (cd_graph_shape){0},
                               l->zero == NONE ? &(int64_t){0} : &zero, NULL)
                    : made[2];
    in[0] = l->data ? gm_add(m, "QuantizeLinear", "", x,
                             constant(m, CD_F32, (cd_graph_shape){0}, NULL, &scale), in[2])
                    : made[0];
    in[1] = constant(m, l->weight, l->w, w, NULL);
    in[3] = constant(m, l->weight, l->each ? GM_SHAPE(c) : (cd_graph_shape){0}, z, NULL);
    if (l->zero == NONE && l->data) in[2] = CD_GRAPH_NONE;
    const uint32_t y = gm_addv(m, l->attr ? "ConvInteger" : "MatMulInteger", l->attr ? l->attr : "",
                               in, l->w_zero == NONE ? 3 : 4);
    assert_int_equal(m->st, CDMPP_OK);
    assert_ok(cd_graph_result(m->g, gm_add(m, "Cast", "to=1", y), &err));
    if (!l->data) assert_ok(cd_graph_result(m->g, made[1], &err));
}

/* ---- the reference ---- */

typedef struct {
    int q[MOST], w[MOST];
    float scale;
    int zero;
} numbers;

static void quantise(const layer *l, const float *x, numbers *v) {
    const int64_t n = cd_graph_shape_elements(&l->x);
    float low = 0, high = 0;
    for (int64_t i = 0; i < n; i++) low = fminf(low, x[i]), high = fmaxf(high, x[i]);
    /* TVM multiplies where a program divides by a constant */
    v->scale = l->data ? scale_of(l) : (high - low) * (1.0F / 255);
    v->zero = !l->data          ? (int)nearbyintf(fminf(-low / v->scale, 255))
              : l->zero == NONE ? 0
                                : l->zero;
    const float least = l->data == I8 ? -128 : 0, most = l->data == I8 ? 127 : 255;
    for (int64_t i = 0; i < n; i++)
        v->q[i] = (int)fmaxf(fminf(nearbyintf(x[i] / v->scale) + (float)v->zero, most), least);
    for (int64_t i = 0; i < cd_graph_shape_elements(&l->w); i++)
        v->w[i] = drawn_in(7, (uint64_t)i, l->weight == U8 ? 0 : -127, l->weight == U8 ? 255 : 127);
}

static void want_product(const layer *l, const numbers *v, float *out) {
    const int64_t k = l->w.dim[0], n = l->w.dim[1], rows = cd_graph_shape_elements(&l->x) / k;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++) {
            int sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += (v->q[i * k + p] - v->zero) * (v->w[p * n + j] - zero_at(l, j));
            out[i * n + j] = (float)sum;
        }
}

/* One image, stride 1, windows as wide as padding keeps the size (3, padding 1) or without
 * padding. */
static void want_conv(const layer *l, const numbers *v, float *out) {
    const int64_t h = l->x.rank > 3 ? l->x.dim[2] : 1, w = l->x.dim[l->x.rank - 1],
                  kh = l->x.rank > 3 ? l->w.dim[2] : 1, kw = l->w.dim[l->w.rank - 1];
    const int64_t pad = strstr(l->attr, "pads") ? 1 : 0, ph = l->x.rank > 3 ? pad : 0,
                  oh = h + 2 * ph - kh + 1, ow = w + 2 * pad - kw + 1, c = l->w.dim[1];
    const int64_t each = l->w.dim[0] / (l->x.dim[1] / c);
    for (int64_t o = 0; o < l->w.dim[0]; o++)
        for (int64_t y = 0; y < oh; y++)
            for (int64_t x = 0; x < ow; x++) {
                int sum = 0;
                for (int64_t i = 0; i < c * kh * kw; i++) {
                    const int64_t at = i / (kh * kw) + o / each * c, yy = y + i / kw % kh - ph,
                                  xx = x + i % kw - pad;
                    if (yy >= 0 && xx >= 0 && yy < h && xx < w)
                        sum += (v->q[(at * h + yy) * w + xx] - v->zero) *
                               (v->w[o * c * kh * kw + i] - zero_at(l, o));
                }
                out[(o * oh + y) * ow + x] = (float)sum;
            }
}

/* ---- both ---- */

static uint32_t count_words(const cd_workload *w) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < w->n_task; k++) {
        const cd_te_dag *d = cd_task_registry_at(w->tasks, w->task[k].task)->dag;
        for (uint32_t i = 0; i < d->n_op; i++)
            n += !d->op[i].is_placeholder && d->op[i].red && cd_expr_is_dot4(d->op[i].body[0]);
    }
    return n;
}

static void check(const layer *l, cd_workload_layout layout) {
    static numbers v;
    static float x[MOST], want[MOST], got[MOST];
    const cd_graph_tensor as = {.shape = l->x};
    cd_network_live *live = NULL;
    double s;
    gm m;
    make(l, &m);
    const cd_network_values_options o = {.graph = m.g,
                                         .target = "llvm",
                                         .hardware = cd_target_hardware(false, 1, 64),
                                         .measure = measure,
                                         .input = input,
                                         .layout = layout};
    assert_ok(cd_network_live_open(&o, &live, &err));
    const cd_workload *w = cd_network_live_workload(live);
    assert_int_equal(w->n_unsupported, 0);
    assert_int_equal(count_words(w), l->words);
    const int64_t n = cd_graph_shape_elements(&cd_network_live_result(live, 0)->shape);
    for (uint32_t draw = 1; draw < 3; draw++) {
        assert_ok(input(NULL, &as, draw, x, NULL));
        quantise(l, x, &v);
        (l->attr ? want_conv : want_product)(l, &v, want);
        assert_ok(cd_network_live_input(live, draw, &err));
        cd_network_live_pass(live, &s);
        assert_ok(cd_network_live_read(live, 0, got, &err));
        if (memcmp(got, want, (size_t)n * sizeof *got))
            fail_msg("%s: data %d of %d, weights %d of %d", l->attr ? l->attr : "product",
                     (int)l->data, l->zero, (int)l->weight, l->w_zero);
        if (l->data) continue;
        assert_ok(cd_network_live_read(live, 1, got, &err));
        assert_true(got[0] == v.scale);
    }
    cd_network_live_close(live);
    cd_graph_free(m.g);
}

#define S(...)                                                                                     \
    {                                                                                              \
        sizeof((int64_t[]){__VA_ARGS__}) / 8, { __VA_ARGS__ }                                      \
    }

TEST(test_products) {
    static const layer l[] = {
        {0, I8, NONE, NONE, false, S(6, 12), S(12, 5), NULL, true},
        /* rows in two dimensions, words filled up, a zero point for each column */
        {0, I8, NONE, 0, true, S(2, 3, 10), S(10, 5), NULL, true},
        {0, U8, NONE, 113, false, S(2, 3, 10), S(10, 5), NULL, true},
        {0, U8, NONE, 128, false, S(4, 8), S(8, 4), NULL, true},
        {U8, I8, 90, NONE, false, S(4, 8), S(8, 4), NULL, true},
        {U8, I8, NONE, 3, false, S(4, 8), S(8, 4), NULL, true},
        {I8, U8, -9, 100, true, S(5, 9), S(9, 3), NULL, true},
        {I8, I8, NONE, NONE, false, S(5, 9), S(9, 3), NULL, true},
        {0, I8, NONE, NONE, false, S(8), S(8, 4), NULL, true}, /* a vector */
    };
    for (size_t k = 0; k < sizeof l / sizeof *l; k++) check(&l[k], CD_WORKLOAD_LAYOUT_NHWC);
}

TEST(test_convolutions) {
    static const layer l[] = {
        /* a zero point that is not known, in padding */
        {0, I8, NONE, NONE, false, S(1, 5, 6, 6), S(8, 5, 3, 3), "pads=1,1,1,1", true},
        {0, I8, NONE, NONE, false, S(1, 5, 6, 6), S(8, 5, 3, 3), "group=1", true},
        {U8, I8, 90, NONE, false, S(1, 5, 6, 6), S(8, 5, 3, 3), "pads=1,1,1,1", true},
        {I8, I8, 7, 0, false, S(1, 4, 6, 6), S(8, 4, 3, 3), "pads=1,1,1,1", true},
        {0, U8, NONE, 128, false, S(1, 4, 6, 6), S(8, 4, 1, 1), "group=1", true},
        {0, U8, NONE, 9, false, S(1, 4, 6, 6), S(8, 4, 3, 3), "pads=1,1,1,1", false},
        {U8, I8, 20, 1, true, S(1, 4, 6, 6), S(8, 4, 3, 3), "pads=1,1,1,1", false},
        {U8, I8, 20, NONE, false, S(1, 4, 6, 6), S(8, 2, 3, 3), "pads=1,1,1,1 group=2", false},
        {0, I8, NONE, NONE, false, S(1, 4, 9), S(6, 4, 3), "pads=1,1", false},
    };
    for (size_t k = 0; k < sizeof l / sizeof *l; k++) {
        check(&l[k], CD_WORKLOAD_LAYOUT_NHWC);
        check(&l[k], CD_WORKLOAD_LAYOUT_NCHW);
    }
}

/* Two tensors of data: numbers of 32 bits. Their zero points are those of each. */
TEST(test_two_of_data) {
    float x[24], got[16], scale[2];
    int q[2][12], zero[2];
    cd_network_live *live = NULL;
    double s;
    gm m = {0};
    assert_ok(cd_graph_new("two", &m.g, &err));
    const uint32_t in = gm_x(&m, 2, 12);
    uint32_t out[2][3];
    for (int k = 0; k < 2; k++) {
        const uint32_t part = gm_add(&m, "Gather", "axis=0", in, gm_scalar(&m, k)),
                       rows = gm_add(&m, "Reshape", "", part,
                                     k ? gm_ints(&m, 3, 4) : gm_ints(&m, 4, 3));
        m.n_out = 3;
        (void)gm_add(&m, "DynamicQuantizeLinear", "", rows);
        memcpy(out[k], m.out, sizeof out[k]);
    }
    assert_ok(cd_graph_result(
        m.g,
        gm_add(&m, "Cast", "to=1",
               gm_add(&m, "MatMulInteger", "", out[0][0], out[1][0], out[0][2], out[1][2])),
        &err));
    const cd_network_values_options o = {.graph = m.g,
                                         .target = "llvm",
                                         .hardware = cd_target_hardware(false, 1, 64),
                                         .measure = measure,
                                         .input = input};
    assert_ok(cd_network_live_open(&o, &live, &err));
    assert_int_equal(count_words(cd_network_live_workload(live)), 0);
    assert_ok(input(NULL, &m.g->tensor[in], 1, x, NULL));
    for (int k = 0; k < 2; k++) {
        static numbers v;
        const layer l = {.x = S(12)};
        quantise(&l, x + (size_t)k * 12, &v);
        memcpy(q[k], v.q, sizeof q[k]);
        zero[k] = v.zero, scale[k] = v.scale;
    }
    assert_true(scale[0] > 0 && scale[1] > 0);
    assert_ok(cd_network_live_input(live, 1, &err));
    cd_network_live_pass(live, &s);
    assert_ok(cd_network_live_read(live, 0, got, &err));
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int sum = 0;
            for (int p = 0; p < 3; p++)
                sum += (q[0][i * 3 + p] - zero[0]) * (q[1][p * 4 + j] - zero[1]);
            assert_true(got[i * 4 + j] == (float)sum);
        }
    cd_network_live_close(live);
    cd_graph_free(m.g);
}

/* ---- what stands beside a product ---- */

static cdmpp_status bytes(void *ctx, const cd_graph_tensor *t, uint32_t draw, void *to,
                          cdmpp_err *e) {
    uint8_t *v = to;
    (void)ctx, (void)e;
    for (int64_t i = 0; i < cd_graph_shape_elements(&t->shape); i++)
        v[i] = (uint8_t)drawn_in(draw, (uint64_t)i, 0, 255);
    return CDMPP_OK;
}

/* The first result of a network over bytes. */
static void run(gm *m, uint32_t words, int32_t *out) {
    cd_network_live *live = NULL;
    double s;
    const cd_network_values_options o = {.graph = m->g,
                                         .target = "llvm",
                                         .hardware = cd_target_hardware(false, 1, 64),
                                         .measure = measure,
                                         .input = bytes};
    assert_int_equal(m->st, CDMPP_OK);
    assert_ok(cd_network_live_open(&o, &live, &err));
    assert_int_equal(count_words(cd_network_live_workload(live)), words);
    assert_ok(cd_network_live_input(live, 1, &err));
    cd_network_live_pass(live, &s);
    assert_ok(cd_network_live_read(live, 0, out, &err));
    cd_network_live_close(live);
    cd_graph_free(m->g);
}

static uint32_t whole_input(gm *m, cd_graph_shape s) {
    uint32_t x = CD_GRAPH_NONE;
    *m = (gm){0};
    assert_ok(cd_graph_new("beside", &m->g, &err));
    assert_ok(cd_graph_input(m->g, "x", U8, &s, &x, &err));
    return x;
}

/* Whole numbers times one for each channel: a weight in words does not take it up. */
TEST(test_scaled) {
    static const int64_t c[] = {3, -2, 500, 7};
    int64_t w[32];
    int32_t got[4];
    for (int64_t i = 0; i < 32; i++) w[i] = drawn_in(7, (uint64_t)i, -128, 127);
    for (int conv = 0; conv < 2; conv++) {
        gm m;
        const uint32_t x = whole_input(&m, conv ? GM_SHAPE(1, 8, 1, 1) : GM_SHAPE(1, 8));
        const uint32_t k = constant(&m, I8, conv ? GM_SHAPE(4, 8, 1, 1) : GM_SHAPE(8, 4), w, NULL),
                       by = constant(&m, CD_I32, conv ? GM_SHAPE(4, 1, 1) : GM_SHAPE(4), c, NULL);
        assert_ok(cd_graph_result(
            m.g,
            gm_add(&m, "Mul", "", gm_add(&m, conv ? "ConvInteger" : "MatMulInteger", "", x, k), by),
            &err));
        run(&m, 1, got);
        for (int64_t j = 0; j < 4; j++) {
            int sum = 0;
            for (int64_t i = 0; i < 8; i++)
                sum += drawn_in(1, (uint64_t)i, 0, 255) * (int)w[conv ? j * 8 + i : i * 4 + j];
            assert_int_equal(got[j], sum * (int)c[j]);
        }
    }
}

/* Both operands are weights, and a zero point is data: numbers of 32 bits. */
TEST(test_two_of_weights) {
    int64_t a[24], b[20];
    int32_t got[12];
    for (int64_t i = 0; i < 24; i++) a[i] = drawn_in(8, (uint64_t)i, 0, 255);
    for (int64_t i = 0; i < 20; i++) b[i] = drawn_in(9, (uint64_t)i, -128, 127);
    for (int conv = 0; conv < 2; conv++) {
        gm m;
        const uint32_t zero = whole_input(&m, (cd_graph_shape){0}),
                       x = constant(&m, U8, conv ? GM_SHAPE(1, 5, 3, 1) : GM_SHAPE(3, 5), a, NULL),
                       w = constant(&m, I8, conv ? GM_SHAPE(4, 5, 1, 1) : GM_SHAPE(5, 4), b, NULL);
        assert_ok(cd_graph_result(
            m.g, gm_add(&m, conv ? "ConvInteger" : "MatMulInteger", "", x, w, zero), &err));
        run(&m, 0, got);
        for (int64_t i = 0; i < 3; i++)
            for (int64_t j = 0; j < 4; j++) {
                int sum = 0;
                for (int64_t p = 0; p < 5; p++)
                    sum += ((int)a[conv ? p * 3 + i : i * 5 + p] - drawn_in(1, 0, 0, 255)) *
                           (int)b[conv ? j * 5 + p : p * 4 + j];
                assert_int_equal(got[conv ? j * 3 + i : i * 4 + j], sum);
            }
    }
}

TESTS(up, down, test_products, test_convolutions, test_two_of_data, test_scaled,
      test_two_of_weights)
