/* lstm: against a recursion over one program in double precision; programs keep their
 * answers and add up their gradients in any order and company, over many tiles; deep
 * and wide trees; a network of it learns from the shape of a tree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "made_nn.h"

enum { W = 10, FF = 9, MAX_W = 300 };

static cd_net_config spec_of(cd_net_norm norm, cd_net_act act, bool skip) {
    cd_net_config s = cd_net_config_small(CD_NET_LSTM);
    s.width = W;
    s.ff = FF;
    s.head_first = 12;
    s.head_depth = 1;
    s.head_width = 11;
    s.embed = 8;
    s.decoder_width = 7;
    s.decoder_depth = 1;
    s.norm = norm;
    s.act = act;
    s.skip = skip;
    s.trips = s.device = s.context = s.derived = false;
    return s;
}

typedef made_net rig;

static void open_state(rig *r, const cd_net_config *s, size_t n) {
    made_net_open_state(r, s, n, 3, 2, true);
}

static void open_rig(rig *r, const cd_net_config *s, size_t first, size_t n, size_t most) {
    cdmpp_err err = {0};
    memset(r, 0, sizeof *r);
    assert_ok(made_batch(&r->b, s, first, n, most, 8, &err));
    open_state(r, s, n);
}

/* ---- slow truth ---- */
static const cd_param *find(const cd_params *p, const char *name) {
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->param[i].name, name)) return &p->param[i];
    fail_msg("no parameter %s", name);
    return NULL;
}

static const float *value(const cd_net *net, const char *name) {
    const cd_params *p = cd_net_params_of(net);
    return p->value + find(p, name)->off;
}

static size_t rows_of(const cd_net *net, const char *name) {
    return find(cd_net_params_of(net), name)->dim[0];
}

static double activate(cd_net_act act, double x) {
    if (act == CD_ACT_RELU) return x > 0 ? x : 0;
    if (act == CD_ACT_ELU) return x > 0 ? x : expm1(x);
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

/* y = W x, + bias when there is one. */
static size_t linear(const cd_net *net, const char *w, const char *b, const double *x, size_t in,
                     double *y) {
    const size_t out = rows_of(net, w);
    for (size_t o = 0; o < out; o++) {
        y[o] = b ? (double)value(net, b)[o] : 0;
        for (size_t i = 0; i < in; i++) y[o] += (double)value(net, w)[o * in + i] * x[i];
    }
    return out;
}

/* Layers name.0, name.1 ..., in place; returns the width of the last. */
static size_t mlp(const cd_net *net, const char *name, size_t layers, double *x, size_t in) {
    const cd_net_config *s = cd_net_config_of(net);
    for (size_t k = 0; k < layers; k++) {
        char w[64], b[64], g[64], t[64];
        double y[MAX_W], mean = 0, var = 0;
        snprintf(w, sizeof w, "%s.%zu.weight", name, k);
        snprintf(b, sizeof b, "%s.%zu.bias", name, k);
        snprintf(g, sizeof g, "%s.%zu.norm.weight", name, k);
        snprintf(t, sizeof t, "%s.%zu.norm.bias", name, k);
        in = linear(net, w, b, x, in, y);
        for (size_t i = 0; i < in; i++) mean += y[i] / (double)in;
        for (size_t i = 0; i < in; i++) var += (y[i] - mean) * (y[i] - mean) / (double)in;
        for (size_t i = 0; i < in; i++)
            x[i] = activate(s->act, s->norm == CD_NORM_NONE ? y[i]
                                                            : (y[i] - mean) / sqrt(var + 1e-5) *
                                                                      (double)value(net, g)[i] +
                                                                  (double)value(net, t)[i]);
    }
    return in;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* The next item of a sequence; h, c (W) are its state. */
static void lstm(const cd_net *net, const char *name, const double *x, double *h, double *c) {
    char w_ih[64], w_hh[64], b[64];
    double z[4 * W], r[4 * W];
    snprintf(w_ih, sizeof w_ih, "encoder.%s.weight_ih", name);
    snprintf(w_hh, sizeof w_hh, "encoder.%s.weight_hh", name);
    snprintf(b, sizeof b, "encoder.%s.bias", name);
    linear(net, w_ih, b, x, W, z);
    linear(net, w_hh, NULL, h, W, r);
    for (size_t i = 0; i < W; i++) {
        const double in = sigmoid(z[i] + r[i]), forget = sigmoid(z[W + i] + r[W + i]);
        c[i] = forget * c[i] + in * tanh(z[2 * W + i] + r[2 * W + i]);
        h[i] = sigmoid(z[3 * W + i] + r[3 * W + i]) * tanh(c[i]);
    }
}

/* Reads the node at list[*at] and leaves its vector in v (W); true: it was a leaf. */
typedef struct {
    const cd_net *net;
    const int32_t *list, *leaf_pos;
    const float *tok;
    size_t w_tok, leaf, at;
} reader;

static bool read_node(reader *r, size_t n_leaf, double *v) {
    double x[MAX_W] = {0};
    double hn[W] = {0};
    double cn[W] = {0};
    double hl[W] = {0};
    double cl[W] = {0};
    double mean[W] = {0};
    double children = 0;
    if (r->leaf < n_leaf && r->leaf_pos[r->leaf] == (int32_t)r->at) {
        for (size_t i = 0; i < r->w_tok; i++) x[i] = (double)r->tok[r->leaf * r->w_tok + i];
        mlp(r->net, "encoder.leaf", 4, x, r->w_tok);
        memcpy(v, x, W * sizeof *v);
        r->leaf++;
        r->at += 2;
        return true;
    }
    for (r->at++; r->list[r->at] >= 0; children++) {
        double child[W];
        const bool leaf = read_node(r, n_leaf, child);
        lstm(r->net, "nodes", child, hn, cn);
        if (leaf) lstm(r->net, "leaves", child, hl, cl);
        for (size_t i = 0; i < W; i++) mean[i] += child[i];
    }
    r->at++;
    memcpy(x, hn, sizeof hn);
    memcpy(x + W, hl, sizeof hl);
    mlp(r->net, "encoder.merge", 2, x, 2 * W);
    for (size_t i = 0; i < W; i++)
        v[i] = x[i] + (cd_net_config_of(r->net)->skip && children > 0 ? mean[i] / children : 0);
    return false;
}

/* Program i of made_batch(first 0, seed 8). */
static void slow(const rig *r, size_t i, double *latent, double *out) {
    int32_t list[2 * (MADE_NODES(MADE_LEAVES) + MADE_LEAVES)], leaf_pos[MADE_LEAVES];
    const size_t leaves = r->b.tok_ptr[i + 1] - r->b.tok_ptr[i];
    made_tree(cd_rng_at(cd_rng_at(8, i), 4), leaves, list, leaf_pos);
    reader t = {.net = r->net,
                .list = list,
                .leaf_pos = leaf_pos,
                .tok = r->b.tok + r->b.tok_ptr[i] * r->b.w_tok,
                .w_tok = r->b.w_tok};
    double x[MAX_W];
    read_node(&t, leaves, x);
    const size_t embed = mlp(r->net, "head", 1, x, W), n = mlp(r->net, "decoder", 1, x, embed);
    memcpy(latent, x, n * sizeof *x);
    linear(r->net, "output.weight", "output.bias", x, n, out);
}

TEST(recursion) {
    enum { N = 70, MOST = 12 };
    for (int k = 0; k < 6; k++) {
        const cd_net_config s =
            spec_of(k % 2 ? CD_NORM_NONE : CD_NORM_LAYER, (cd_net_act)(k / 2), k < 4);
        rig r;
        open_rig(&r, &s, 0, N, MOST);
        made_net_predict(&r);
        for (size_t i = 0; i < N; i++) {
            double latent[MAX_W], out[1];
            slow(&r, i, latent, out);
            assert_close((double)r.out[i], out[0], 1e-5, 1e-5);
            for (size_t c = 0; c < cd_net_n_latent(r.net); c++)
                assert_close((double)r.latent[i * cd_net_n_latent(r.net) + c], latent[c], 1e-5,
                             2e-5);
        }
        made_net_close(&r);
    }
}

/* With `trips` the iterations of all leaves are added, as the label has them. */
TEST(with_trips) {
    enum { N = 20 };
    cd_net_config s = spec_of(CD_NORM_LAYER, CD_ACT_ELU, true);
    rig r, t;
    open_rig(&r, &s, 0, N, 5);
    s.trips = true;
    s.temperature = 1.7;
    open_rig(&t, &s, 0, N, 5);
    for (size_t i = 0; i < t.b.n_tok; i++) t.b.trips[i] = 4 * made_value(6, i);
    made_net_predict(&r);
    made_net_predict(&t);
    for (size_t i = 0; i < N; i++) {
        double sum = 0;
        for (size_t l = t.b.tok_ptr[i]; l < t.b.tok_ptr[i + 1]; l++)
            sum += exp((double)t.b.trips[l]);
        assert_close((double)t.out[i] - (double)r.out[i], log(sum) / 1.7, 1e-5, 1e-5);
    }
    made_net_close(&r);
    made_net_close(&t);
}

/* ---- order and company ---- */
/* Programs order[0 .. n) of made_batch as a batch of their own. */
static void gather(rig *r, const cd_net_config *s, const rig *from, const uint32_t *order,
                   size_t n) {
    const cd_batch_spec spec = cd_net_batch_spec(s, NULL, 0);
    const cd_batch *f = &from->b;
    cd_batch *b = &r->b;
    cdmpp_err err = {0};
    memset(r, 0, sizeof *r);
    assert_ok(cd_batch_init(b, &spec, &f->dims, &err));
    b->n = n;
    for (size_t i = 0; i < n; i++) {
        const size_t p = order[i], beg = f->tok_ptr[p], leaves = f->tok_ptr[p + 1] - beg;
        memcpy(b->tok + b->n_tok * b->w_tok, f->tok + beg * b->w_tok,
               leaves * b->w_tok * sizeof *b->tok);
        assert_ok(made_tree_add(&b->tree, cd_rng_at(cd_rng_at(8, p), 4), leaves, &err));
        b->n_tok += leaves;
        b->tok_ptr[i + 1] = (uint32_t)b->n_tok;
        if (leaves > b->max_leaf) b->max_leaf = leaves;
    }
    cd_program_tree_close(&b->tree);
    open_state(r, s, n);
}

TEST(any_order) {
    enum { N = 200 };
    const cd_net_config s = spec_of(CD_NORM_LAYER, CD_ACT_ELU, true);
    uint32_t order[N];
    rig all, other;
    for (uint32_t i = 0; i < N; i++) order[i] = i * 37 % N;
    open_rig(&all, &s, 0, N, 6);
    gather(&other, &s, &all, order, N);
    made_net_predict(&all);
    made_net_predict(&other);
    for (size_t i = 0; i < N; i++)
        assert_close((double)other.out[i], (double)all.out[order[i]], 2e-5, 2e-5);
    made_net_close(&other);
    made_net_close(&all);
}

/* The gradient of a batch, 4 tiles of it, is the sum of its programs' gradients. */
TEST(gradients_add_up) {
    enum { N = 130 };
    cdmpp_err err = {0};
    float d[N];
    made_floats(d, N, 5);
    for (int k = 0; k < 2; k++) {
        const cd_net_config s = spec_of(k ? CD_NORM_LAYER : CD_NORM_NONE, CD_ACT_GELU, k == 1);
        rig all, one;
        open_rig(&all, &s, 0, N, 6);
        cd_params *p = cd_net_params(all.net);
        double *sum = calloc(p->n_train, sizeof *sum), scale = 0;
        assert_ok(cd_net_forward(all.net, &all.b, all.st, NULL, 0, all.out, NULL, &err));
        cd_net_backward(all.net, &all.b, all.st, NULL, d, NULL);
        for (size_t i = 0; i < N; i++) {
            open_rig(&one, &s, i, 1, 6);
            assert_ok(cd_net_forward(one.net, &one.b, one.st, NULL, 0, one.out, NULL, &err));
            cd_net_backward(one.net, &one.b, one.st, NULL, d + i, NULL);
            for (size_t j = 0; j < p->n_train; j++)
                sum[j] += (double)cd_net_params(one.net)->grad[j];
            made_net_close(&one);
        }
        for (size_t j = 0; j < p->n_train; j++) scale = fmax(scale, fabs(sum[j]));
        assert_true(scale > 0.1);
        for (size_t j = 0; j < p->n_train; j++)
            assert_close((double)p->grad[j], sum[j], 1e-4, 1e-5 * scale);
        free(sum);
        made_net_close(&all);
    }
}

/* ---- shapes ---- */
/* A chain of `depth` nodes above a leaf, or one node with `wide` leaves. */
static void add_shape(cd_batch *b, size_t depth, size_t wide) {
    int32_t list[300], leaf_pos[MADE_LEAVES];
    size_t n = 0;
    cdmpp_err err = {0};
    for (size_t k = 0; k < depth; k++) list[n++] = (int32_t)k;
    for (size_t k = 0; k < wide; k++) {
        leaf_pos[k] = (int32_t)n;
        list[n++] = (int32_t)(depth + k);
        list[n++] = -1;
    }
    for (size_t k = 0; k < depth; k++) list[n++] = -1;
    assert_ok(cd_program_tree_check(list, n, leaf_pos, wide, &err));
    assert_ok(cd_program_tree_add(&b->tree, list, n, leaf_pos, wide, &err));
    made_floats(b->tok + b->n_tok * b->w_tok, wide * b->w_tok, 40);
    b->n_tok += wide;
    b->tok_ptr[++b->n] = (uint32_t)b->n_tok;
    if (wide > b->max_leaf) b->max_leaf = wide;
}

/* The same leaf under 1, 2, 3 ... loops, and 60 leaves under one: different answers, and with
 * `skip` the leaf is still felt at the top of 100 loops. */
TEST(shapes) {
    enum { DEEP = 100 };
    cdmpp_err err = {0};
    cd_net_config s = spec_of(CD_NORM_LAYER, CD_ACT_ELU, true);
    const cd_batch_spec spec = cd_net_batch_spec(&s, NULL, 0);
    const cd_batch_dims dims = {4, 63, 60, 3 + DEEP + 1};
    rig r = {0};
    assert_ok(cd_batch_init(&r.b, &spec, &dims, &err));
    add_shape(&r.b, 1, 1);
    add_shape(&r.b, 2, 1);
    add_shape(&r.b, DEEP, 1);
    add_shape(&r.b, 1, 60);
    cd_program_tree_close(&r.b.tree);
    open_state(&r, &s, 4);
    made_net_predict(&r);
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < i; j++) assert_true(fabsf(r.out[i] - r.out[j]) > 1e-4f);
    const float before = r.out[2];
    r.b.tok[2 * r.b.w_tok] += 3; /* the deep leaf */
    made_net_predict(&r);
    assert_true(fabsf(r.out[2] - before) > 1e-4f);
    made_net_close(&r);
}

/* ---- learning ---- */
/* Labels that only the tree tells: its depth, and whether a leaf comes first. */
TEST(learns_shape) {
    enum { N = 64, STEPS = 150 };
    cd_net_config s = spec_of(CD_NORM_LAYER, CD_ACT_ELU, true);
    float y[N];
    rig r;
    open_rig(&r, &s, 0, N, 4);
    for (size_t i = 0; i < N; i++) {
        int32_t list[2 * (MADE_NODES(MADE_LEAVES) + MADE_LEAVES)], leaf_pos[MADE_LEAVES];
        made_tree(cd_rng_at(cd_rng_at(8, i), 4), r.b.tok_ptr[i + 1] - r.b.tok_ptr[i], list,
                  leaf_pos);
        y[i] = 0.2f * (float)leaf_pos[0] + (list[leaf_pos[0] + 2] < 0 ? 0 : 1);
    }
    assert_true(made_net_descend(&r, y, N, STEPS, 0.03f) < 0.1);
    made_net_close(&r);
}

TESTS(NULL, NULL, recursion, with_trips, any_order, gradients_add_up, shapes, learns_shape)
