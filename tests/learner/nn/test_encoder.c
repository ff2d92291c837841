/* encoder: forward against a slow one in double precision that follows PyTorch's
 * definition word by word; positions against their formulas. */
#include "learner/nn/nn.h"

#include <string.h>

#include "check.h"
#include "made_batch.h"

enum { D = 12, HEADS = 3, HW = D / HEADS, FF = 20, MAX_ROWS = 64 };

typedef double row[D];

typedef struct {
    cd_net_config s;
    cd_encoder e;
    cd_params p;
    cd_batch b;
    cd_slab slab;
    cd_encoder_run r;
} rig;

static void open_rig(rig *r, bool pre, cd_net_act act, cd_net_position pos, int64_t width,
                     bool train) {
    cdmpp_err err = {0};
    memset(r, 0, sizeof *r);
    r->s = cd_net_config_small(CD_NET_TSF);
    r->s.layers = 2;
    r->s.width = width;
    r->s.heads = width == D ? HEADS : 4;
    r->s.ff = FF;
    r->s.pre_norm = pre;
    r->s.act = act;
    r->s.position = pos;
    r->s.context = r->s.derived = false;
    assert_ok(made_batch(&r->b, &r->s, 0, 8, 6, 3, &err));
    cd_encoder_build(&r->e, &r->p, &r->s, r->b.w_tok);
    assert_ok(cd_params_layout(&r->p, 1, &err));
    made_floats(r->p.value, r->p.n_train, 2); /* biases and norms, too */
    for (size_t i = 0; i < r->p.n_train; i++) r->p.value[i] *= 0.5f;
    assert_ok(cd_encoder_positions(&r->e, &err));
    cd_encoder_plan(&r->e, &r->slab, &r->b.dims, 1, train, &r->r);
    assert_ok(cd_slab_alloc(&r->slab, &err));
    cd_encoder_plan(&r->e, &r->slab, &r->b.dims, 1, train, &r->r);
    cd_encoder_forward(&r->e, &r->p, &r->r, &r->b, NULL);
}

static void close_rig(rig *r) {
    cd_params_free(&r->p);
    cd_batch_free(&r->b);
    cd_slab_free(&r->slab);
    cd_mem_free(r->e.table);
}

/* ---- the slow one ---- */
static double v(const rig *r, size_t id, size_t i) { return (double)cd_params_value(&r->p, id)[i]; }

static void linear(const rig *r, size_t w, size_t b, const double *x, size_t in, size_t first,
                   size_t out, double *y) {
    for (size_t o = 0; o < out; o++) {
        y[o] = v(r, b, first + o);
        for (size_t i = 0; i < in; i++) y[o] += v(r, w, (first + o) * in + i) * x[i];
    }
}

static void norm(const rig *r, size_t g, size_t s, const row x, row y) {
    double m = 0, var = 0;
    for (size_t c = 0; c < D; c++) m += x[c] / D;
    for (size_t c = 0; c < D; c++) var += (x[c] - m) * (x[c] - m) / D;
    for (size_t c = 0; c < D; c++) y[c] = (x[c] - m) / sqrt(var + 1e-5) * v(r, g, c) + v(r, s, c);
}

static void attend(const rig *r, const cd_encoder_layer *l, size_t n, row *x, row *y) {
    static double q[MAX_ROWS][3 * D];
    for (size_t i = 0; i < n; i++) linear(r, l->qkv_w, l->qkv_b, x[i], D, 0, 3 * D, q[i]);
    for (size_t i = 0; i < n; i++) {
        row mixed = {0};
        for (size_t h = 0; h < HEADS; h++) {
            double e[MAX_ROWS], sum = 0;
            for (size_t j = 0; j < n; j++) {
                double d = 0;
                for (size_t c = h * HW; c < (h + 1) * HW; c++) d += q[i][c] * q[j][D + c];
                sum += e[j] = exp(d / sqrt(HW));
            }
            for (size_t j = 0; j < n; j++)
                for (size_t c = h * HW; c < (h + 1) * HW; c++)
                    mixed[c] += e[j] / sum * q[j][2 * D + c];
        }
        linear(r, l->o_w, l->o_b, mixed, D, 0, D, y[i]);
    }
}

static void feed_forward(const rig *r, const cd_encoder_layer *l, const row x, row y) {
    double h[FF];
    linear(r, l->w1, l->b1, x, D, 0, FF, h);
    for (size_t c = 0; c < FF; c++)
        h[c] =
            r->s.act == CD_ACT_RELU
                ? fmax(h[c], 0)
                : 0.5 * h[c] * (1 + tanh(sqrt(2 / M_PI) * (h[c] + 0.044715 * h[c] * h[c] * h[c])));
    linear(r, l->w2, l->b2, h, FF, 0, D, y);
}

static void add(row x, const row y) {
    for (size_t c = 0; c < D; c++) x[c] += y[c];
}

static void slow_layer(const rig *r, const cd_encoder_layer *l, size_t n, row *x) {
    static row t[MAX_ROWS], u[MAX_ROWS];
    for (size_t i = 0; i < n; i++)
        if (r->s.pre_norm) norm(r, l->g1, l->s1, x[i], t[i]);
        else memcpy(t[i], x[i], sizeof(row));
    attend(r, l, n, t, u);
    for (size_t i = 0; i < n; i++) {
        row f, in;
        add(x[i], u[i]);
        if (!r->s.pre_norm) norm(r, l->g1, l->s1, x[i], x[i]);
        if (r->s.pre_norm) norm(r, l->g2, l->s2, x[i], in);
        else memcpy(in, x[i], sizeof in);
        feed_forward(r, l, in, f);
        add(x[i], f);
        if (!r->s.pre_norm) norm(r, l->g2, l->s2, x[i], x[i]);
    }
}

static void check_forward(bool pre, cd_net_act act, bool train) {
    static rig r;
    static row x[MAX_ROWS];
    open_rig(&r, pre, act, CD_POS_NONE, D, train);
    for (size_t p = 0; p < r.b.n; p++) {
        const size_t at = r.b.tok_ptr[p], n = r.b.tok_ptr[p + 1] - at;
        for (size_t i = 0; i < n; i++) {
            double tok[164];
            for (size_t c = 0; c < 164; c++) tok[c] = (double)r.b.tok[(at + i) * 164 + c];
            linear(&r, r.e.proj_w, r.e.proj_b, tok, 164, 0, D, x[i]);
        }
        for (size_t k = 0; k < 2; k++) slow_layer(&r, &r.e.layer[k], n, x);
        for (size_t i = 0; i < n; i++) {
            if (pre) norm(&r, r.e.last_g, r.e.last_s, x[i], x[i]);
            for (size_t c = 0; c < D; c++)
                assert_close((double)r.r.y[(at + i) * D + c], x[i][c], 1e-4, 1e-4);
        }
    }
    close_rig(&r);
}

TEST(forward) {
    for (int k = 0; k < 8; k++) check_forward(k & 1, k & 2 ? CD_ACT_GELU : CD_ACT_RELU, k & 4);
}

/* Without a projection the input is token + position; far positions have no table. */
TEST(positions) {
    static rig r;
    for (int kind = 0; kind < 3; kind++)
        for (int far = 0; far < 2; far++) {
            open_rig(&r, false, CD_ACT_RELU, (cd_net_position)kind, 164, true);
            for (size_t i = 0; i < r.b.n_tok; i++) r.b.pos[i] += far ? CD_ENCODER_POSITIONS : 0;
            cd_encoder_forward(&r.e, &r.p, &r.r, &r.b, NULL);
            for (size_t i = 0; i < r.b.n_tok; i++)
                for (size_t c = 0; c < 164; c++) {
                    const size_t even = c / 2 * 2;
                    const double p = r.b.pos[i], a = p / pow(10000, 2.0 * (double)c / 164),
                                 b = p / pow(10000, (double)even / 164);
                    const double want = kind == CD_POS_CDMPP      ? (c == even ? sin(a) : cos(a))
                                        : kind == CD_POS_SINUSOID ? (c == even ? sin(b) : cos(b))
                                                                  : 0;
                    assert_close((double)r.r.keep[0].x[i * 164 + c],
                                 (double)r.b.tok[i * 164 + c] + want, 1e-6, 1e-6);
                }
            close_rig(&r);
        }
}

/* Tiles of programs: all programs once, in order, whole; also with one that is longer
 * than a tile. */
TEST(tiles) {
    uint32_t ptr[300] = {0};
    for (int k = 0; k < 20; k++) {
        cd_batch b = {.tok_ptr = ptr, .n = (size_t)(1 + 14 * k)};
        for (size_t p = 0; p < b.n; p++)
            ptr[p + 1] = ptr[p] + 1 + (uint32_t)(cd_rng_at(5, p) % 12) + (p == 3 ? 2000 : 0);
        b.n_tok = ptr[b.n];
        size_t p = 0;
        for (size_t t = 0; t < cd_encoder_tiles(b.n_tok); t++) {
            const cd_encoder_tile s = cd_encoder_tile_at(&b, t);
            assert_true(s.p0 == p && s.p1 >= s.p0 && s.row == ptr[s.p0] &&
                        s.n == ptr[s.p1] - ptr[s.p0]);
            p = s.p1;
        }
        assert_int_equal(p, b.n);
    }
}

TESTS(NULL, NULL, forward, positions, tiles)
