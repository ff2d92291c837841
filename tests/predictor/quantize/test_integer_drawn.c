/* MatMulInteger and ConvInteger of drawn shapes, types, zero points and windows against sums of
 * whole numbers: equal to the bit. Each operand and each zero point is data or a constant. */
#include <string.h>

#include "tests/support/predictor/made_integers.h"

enum { CASES = 64, MOST = 8192, CHANNELS = 16 };

/* ---- numbers ---- */

static int byte_at(uint64_t seed, int64_t i, cd_dtype t) {
    return (int)(cd_rng_at(seed, (uint64_t)i) % 256) - (t == I8 ? 128 : 0);
}

/* Inputs are called by their seed. */
static cdmpp_status input(void *ctx, const cd_graph_tensor *t, uint32_t draw, void *to,
                          cdmpp_err *e) {
    uint8_t *v = to;
    (void)ctx, (void)draw, (void)e;
    for (int64_t i = 0; i < cd_graph_shape_elements(&t->shape); i++)
        v[i] = (uint8_t)byte_at(strtoull(t->name, NULL, 10), i, t->dtype);
    return CDMPP_OK;
}

typedef struct {
    uint64_t seed, at;
} dice;

static int64_t roll(dice *d, int64_t n) {
    return (int64_t)(cd_rng_at(d->seed, d->at++) % (uint64_t)n);
}

/* A tensor of 8 bits, and what is in it. */
typedef struct {
    cd_dtype t;
    cd_graph_shape s;
    int v[MOST];
    uint32_t node; /* CD_GRAPH_NONE: it is not given */
} tensor;

static void fill(gm *m, tensor *x, uint64_t seed, bool data) {
    static int64_t v[MOST];
    char name[32];
    const int64_t n = cd_graph_shape_elements(&x->s);
    assert_true(n <= MOST);
    for (int64_t i = 0; i < n; i++) v[i] = x->v[i] = byte_at(seed, i, x->t);
    snprintf(name, sizeof name, "%llu", (unsigned long long)seed);
    if (data) assert_ok(cd_graph_input(m->g, name, x->t, &x->s, &x->node, &err));
    else assert_ok(cd_graph_constant(m->g, name, x->t, &x->s, v, NULL, &x->node, &err));
}

/* None, one number, or `each` of them. */
static void zero_point(gm *m, dice *d, tensor *z, cd_dtype t, int64_t each, uint64_t seed) {
    const int64_t form = roll(d, 6);
    *z = (tensor){.t = t, .node = CD_GRAPH_NONE};
    if (form == 1) z->s = GM_SHAPE(1);
    if (form == 2) z->s = GM_SHAPE(each);
    if (form < 3) fill(m, z, seed, roll(d, 2));
}

static int zero_at(const tensor *z, int64_t i) {
    return z->node == CD_GRAPH_NONE ? 0 : z->v[cd_graph_shape_elements(&z->s) > 1 ? i : 0];
}

/* ---- a case ---- */

typedef struct {
    dice d;
    gm m;
    tensor x, w, zx, zw;
    int64_t stride[3], dilation[3], pad[6], group;
    uint32_t spatial; /* 0: a product */
    int by[CHANNELS]; /* a factor of each channel behind it */
    int64_t out[5];   /* batch, channels, three dimensions; of a product rows, columns */
} drawn;

static drawn c;
static int32_t want[4 * MOST], got[4 * MOST];

static void draw_product(void) {
    static const int64_t k_of[] = {1, 2, 3, 4, 5, 8, 11, 16};
    const int64_t k = k_of[roll(&c.d, 8)], n = 1 + roll(&c.d, CHANNELS), rows = 1 + roll(&c.d, 5),
                  rank = roll(&c.d, 2) ? 2 : 1 + roll(&c.d, 3);
    c.x.s = rank == 1 ? GM_SHAPE(k) : rank == 2 ? GM_SHAPE(rows, k) : GM_SHAPE(2, rows, k);
    c.w.s = GM_SHAPE(k, n);
    c.out[0] = rank == 1 ? 1 : rank == 2 ? rows : 2 * rows, c.out[1] = n;
    const bool constant = roll(&c.d, 4) != 0;
    fill(&c.m, &c.x, 1000 + c.d.seed, constant || roll(&c.d, 2));
    fill(&c.m, &c.w, 2000 + c.d.seed, !constant);
    zero_point(&c.m, &c.d, &c.zx, c.x.t, rank == 2 ? rows : 1, 3000 + c.d.seed);
    zero_point(&c.m, &c.d, &c.zw, c.w.t, n, 4000 + c.d.seed);
}

static void list(char *to, size_t room, const char *name, const int64_t *v, uint32_t n) {
    size_t at = strlen(to);
    at += (size_t)snprintf(to + at, room - at, " %s=[", name);
    for (uint32_t i = 0; i < n; i++)
        at += (size_t)snprintf(to + at, room - at, "%s%d", i ? "," : "", (int)v[i]);
    (void)snprintf(to + at, room - at, "]");
}

static void draw_window(char *attr, size_t room) {
    int64_t pads[6];
    c.spatial = 1 + (uint32_t)roll(&c.d, 3), c.group = roll(&c.d, 4) ? 1 : 2;
    const int64_t in = 1 + roll(&c.d, 5), out = c.group * (1 + roll(&c.d, CHANNELS / 2)),
                  batch = 1 + roll(&c.d, 2);
    c.x.s = GM_SHAPE(batch, c.group * in), c.w.s = GM_SHAPE(out, in), c.out[0] = batch,
    c.out[1] = out;
    for (uint32_t i = 0; i < 3; i++) c.stride[i] = c.dilation[i] = c.out[2 + i] = 1, c.pad[i] = 0;
    for (uint32_t i = 0; i < c.spatial; i++) {
        const int64_t size = 3 + roll(&c.d, 4), kernel = 1 + roll(&c.d, 3), after = roll(&c.d, 2);
        c.stride[i] = 1 + roll(&c.d, 2), c.dilation[i] = kernel == 2 ? 1 + roll(&c.d, 2) : 1,
        c.pad[i] = roll(&c.d, 2);
        pads[i] = c.pad[i], pads[c.spatial + i] = after;
        c.x.s.dim[c.x.s.rank++] = size, c.w.s.dim[c.w.s.rank++] = kernel;
        c.out[2 + i] =
            (size + c.pad[i] + after - c.dilation[i] * (kernel - 1) - 1) / c.stride[i] + 1;
    }
    (void)snprintf(attr, room, "group=%d", (int)c.group);
    list(attr, room, "strides", c.stride, c.spatial);
    list(attr, room, "dilations", c.dilation, c.spatial);
    list(attr, room, "pads", pads, 2 * c.spatial);
}

static void draw_convolution(char *attr, size_t room) {
    draw_window(attr, room);
    const bool constant = roll(&c.d, 4) != 0;
    fill(&c.m, &c.x, 1000 + c.d.seed, constant || roll(&c.d, 2));
    fill(&c.m, &c.w, 2000 + c.d.seed, !constant);
    zero_point(&c.m, &c.d, &c.zx, c.x.t, 1, 3000 + c.d.seed);
    zero_point(&c.m, &c.d, &c.zw, c.w.t, c.out[1], 4000 + c.d.seed);
    if (roll(&c.d, 2)) c.zw.node = CD_GRAPH_NONE; /* as most weights are */
}

/* ---- the reference ---- */

static void product(void) {
    const int64_t k = c.w.s.dim[0], n = c.out[1];
    for (int64_t i = 0; i < c.out[0]; i++)
        for (int64_t j = 0; j < n; j++) {
            int32_t sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum +=
                    (c.x.v[i * k + p] - zero_at(&c.zx, i)) * (c.w.v[p * n + j] - zero_at(&c.zw, j));
            want[i * n + j] = sum * c.by[j];
        }
}

static int64_t size_of(const cd_graph_shape *s, uint32_t d) { return d < s->rank ? s->dim[d] : 1; }

/* Of one place of the result, given as batch, channel and three dimensions. */
static int32_t window(const int64_t *at) {
    const int64_t in = c.w.s.dim[1], first = at[1] / (c.out[1] / c.group) * in,
                  kernels = size_of(&c.w.s, 2) * size_of(&c.w.s, 3) * size_of(&c.w.s, 4);
    int32_t sum = 0;
    for (int64_t i = 0; i < in * kernels; i++) {
        const int64_t k[3] = {i % kernels / (size_of(&c.w.s, 3) * size_of(&c.w.s, 4)),
                              i / size_of(&c.w.s, 4) % size_of(&c.w.s, 3), i % size_of(&c.w.s, 4)};
        int64_t place = at[0] * c.x.s.dim[1] + first + i / kernels;
        bool inside = true;
        for (uint32_t d = 0; d < 3; d++) {
            const int64_t size = size_of(&c.x.s, 2 + d),
                          p = at[2 + d] * c.stride[d] + k[d] * c.dilation[d] - c.pad[d];
            inside = inside && p >= 0 && p < size;
            place = place * size + p;
        }
        if (inside)
            sum += (c.x.v[place] - zero_at(&c.zx, 0)) *
                   (c.w.v[at[1] * in * kernels + i] - zero_at(&c.zw, at[1]));
    }
    return sum * c.by[at[1]];
}

static void convolution(void) {
    const int64_t inner = c.out[2] * c.out[3] * c.out[4];
    for (int64_t i = 0; i < c.out[0] * c.out[1] * inner; i++)
        want[i] = window((int64_t[]){i / inner / c.out[1], i / inner % c.out[1],
                                     i % inner / (c.out[3] * c.out[4]), i / c.out[4] % c.out[3],
                                     i % c.out[4]});
}

/* ---- both ---- */

static void make(uint64_t seed, bool conv) {
    char attr[256] = "";
    int64_t by[CHANNELS];
    c = (drawn){.d = {.seed = seed}};
    assert_ok(cd_graph_new("drawn", &c.m.g, &err));
    c.x.t = roll(&c.d, 3) ? U8 : I8, c.w.t = roll(&c.d, 3) ? I8 : U8;
    if (conv) draw_convolution(attr, sizeof attr);
    else draw_product();
    uint32_t y = gm_add(&c.m, conv ? "ConvInteger" : "MatMulInteger", attr, c.x.node, c.w.node,
                        c.zx.node, c.zw.node),
             k = CD_GRAPH_NONE;
    const bool scaled = roll(&c.d, 2);
    for (int64_t i = 0; i < c.out[1]; i++) by[i] = c.by[i] = scaled ? (int)roll(&c.d, 9) - 4 : 1;
    cd_graph_shape s = {conv ? c.spatial + 1 : 1, {c.out[1], 1, 1, 1}};
    assert_ok(cd_graph_constant(c.m.g, "by", CD_I32, &s, by, NULL, &k, &err));
    if (scaled) y = gm_add(&c.m, "Mul", "", y, k);
    if (c.m.st) fail_msg("case %d: %s %s", (int)seed, attr, c.m.err.msg);
    assert_ok(cd_graph_result(c.m.g, y, &err));
}

static void check(uint64_t seed, bool conv, cd_workload_layout layout) {
    cd_network_live *live = NULL;
    double s;
    make(seed, conv);
    const int64_t n = c.out[0] * c.out[1] * (conv ? c.out[2] * c.out[3] * c.out[4] : 1);
    assert_true(n <= 4 * MOST);
    (conv ? convolution : product)();
    const cd_network_values_options o = {.graph = c.m.g,
                                         .target = "llvm",
                                         .hardware = cd_target_hardware(false, 1, 64),
                                         .measure = measure,
                                         .input = input,
                                         .layout = layout};
    assert_ok(cd_network_live_open(&o, &live, &err));
    assert_int_equal(cd_network_live_workload(live)->n_unsupported, 0);
    assert_int_equal(cd_graph_shape_elements(&cd_network_live_result(live, 0)->shape), n);
    assert_ok(cd_network_live_input(live, 1, &err));
    cd_network_live_pass(live, &s);
    assert_ok(cd_network_live_read(live, 0, got, &err));
    if (memcmp(got, want, (size_t)n * sizeof *got))
        fail_msg("%s %d", conv ? "convolution" : "product", (int)seed);
    cd_network_live_close(live);
    cd_graph_free(c.m.g);
}

TEST(test_products) {
    for (uint64_t i = 0; i < CASES / 2; i++) check(i, false, CD_WORKLOAD_LAYOUT_NHWC);
}

TEST(test_convolutions) {
    for (uint64_t i = 0; i < CASES / 2; i++)
        check(100 + i, true, i % 2 ? CD_WORKLOAD_LAYOUT_NCHW : CD_WORKLOAD_LAYOUT_NHWC);
}

TESTS(up, down, test_products, test_convolutions)
