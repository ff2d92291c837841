/* Transformer layers over the leaves of each program, forward. Tiles of whole programs go through
 * all layers by themselves, because attention does not cross programs and a tile stays in the
 * cache. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learner/nn/nn.h"
#include "learner/nn/nn_internal.h"

enum { TILE = 256 };

/* ---- parameters ---- */
static size_t add(cd_params *p, size_t layer, const char *name, size_t rows, size_t cols,
                  cd_init init, double bound) {
    char full[80];
    snprintf(full, sizeof full, "encoder.layers.%zu.%s", layer, name);
    return cd_params_add(p, full, rows, cols, init, (float)bound);
}

/* PyTorch's rules: Xavier for the joint projection, its biases 0, else 1/sqrt(in). The order of the
 * calls is the order of the tensors in files, and their numbers decide the initial values. */
static void add_layer(cd_encoder *e, cd_params *p, size_t k) {
    cd_encoder_layer *l = &e->layer[k];
    const size_t d = e->d, ff = e->ff;
    const double by_d = 1 / sqrt((double)d), by_ff = 1 / sqrt((double)ff);
    l->qkv_w =
        add(p, k, "self_attn.in_proj_weight", 3 * d, d, CD_INIT_UNIFORM, sqrt(6 / (4 * (double)d)));
    l->qkv_b = add(p, k, "self_attn.in_proj_bias", 3 * d, 0, CD_INIT_ZERO, 0);
    l->o_w = add(p, k, "self_attn.out_proj.weight", d, d, CD_INIT_UNIFORM, by_d);
    l->o_b = add(p, k, "self_attn.out_proj.bias", d, 0, CD_INIT_ZERO, 0);
    l->w1 = add(p, k, "linear1.weight", ff, d, CD_INIT_UNIFORM, by_d);
    l->b1 = add(p, k, "linear1.bias", ff, 0, CD_INIT_UNIFORM, by_d);
    l->w2 = add(p, k, "linear2.weight", d, ff, CD_INIT_UNIFORM, by_ff);
    l->b2 = add(p, k, "linear2.bias", d, 0, CD_INIT_UNIFORM, by_ff);
    l->g1 = add(p, k, "norm1.weight", d, 0, CD_INIT_ONE, 0);
    l->s1 = add(p, k, "norm1.bias", d, 0, CD_INIT_ZERO, 0);
    l->g2 = add(p, k, "norm2.weight", d, 0, CD_INIT_ONE, 0);
    l->s2 = add(p, k, "norm2.bias", d, 0, CD_INIT_ZERO, 0);
}

void cd_encoder_build(cd_encoder *e, cd_params *p, const cd_net_config *s, size_t in) {
    *e = (cd_encoder){.n = (size_t)s->layers,
                      .in = in,
                      .d = (size_t)s->width,
                      .heads = (size_t)s->heads,
                      .ff = (size_t)s->ff,
                      .project = in != (size_t)s->width,
                      .pre_norm = s->pre_norm,
                      .act = s->act,
                      .position = s->position,
                      .dropout = s->dropout};
    if (e->project) cd_params_add_linear(p, "projection", in, e->d, &e->proj_w, &e->proj_b);
    for (size_t k = 0; k < e->n; k++) add_layer(e, p, k);
    if (!e->pre_norm) return;
    e->last_g = cd_params_add(p, "encoder.norm.weight", e->d, 0, CD_INIT_ONE, 0);
    e->last_s = cd_params_add(p, "encoder.norm.bias", e->d, 0, CD_INIT_ZERO, 0);
}

/* ---- positions ---- */
static float position(const cd_encoder *e, size_t pos, size_t i) {
    const double pair = (double)(e->position == CD_POS_CDMPP ? 2 * i : i - i % 2);
    const double a = (double)pos / pow(10000, pair / (double)e->d);
    return (float)(i % 2 ? cos(a) : sin(a));
}

cdmpp_status cd_encoder_positions(cd_encoder *e, cdmpp_err *err) {
    if (e->position == CD_POS_NONE) return CDMPP_OK;
    e->table = cd_mem_zalloc((size_t)CD_ENCODER_POSITIONS * e->d, sizeof *e->table);
    if (!e->table) return CD_FAIL(err, ENOMEM, "positions");
    for (size_t pos = 0; pos < CD_ENCODER_POSITIONS; pos++)
        for (size_t i = 0; i < e->d; i++) e->table[pos * e->d + i] = position(e, pos, i);
    return CDMPP_OK;
}

static void add_position(const cd_encoder *e, int32_t pos, float *x) {
    const size_t at = pos > 0 ? (size_t)pos : 0;
    if (at < CD_ENCODER_POSITIONS) cd_ops_bias(x, 1, e->d, e->table + at * e->d);
    else
        for (size_t i = 0; i < e->d; i++) x[i] += position(e, at, i);
}

/* ---- memory ---- */
/* With pre-norm the normalised rows are arrays of their own; with post-norm the layer's input is
 * normalised already. */
static void plan_layer(const cd_encoder *e, cd_slab *s, size_t n, bool train, cd_encoder_keep *k) {
    k->x = cd_slab_floats(s, n * e->d);
    k->qkv = cd_slab_floats(s, n * 3 * e->d);
    k->att = cd_slab_floats(s, n * e->d);
    k->hat1 = cd_slab_floats(s, n * e->d);
    k->rstd1 = cd_slab_floats(s, n);
    k->x1 = cd_slab_floats(s, n * e->d);
    k->h = cd_slab_floats(s, n * e->ff);
    k->hat2 = cd_slab_floats(s, n * e->d);
    k->rstd2 = cd_slab_floats(s, n);
    k->n1 = e->pre_norm ? cd_slab_floats(s, n * e->d) : k->x;
    k->n2 = e->pre_norm ? cd_slab_floats(s, n * e->d) : k->x1;
    k->arg = train && e->act == CD_ACT_GELU ? cd_slab_floats(s, n * e->ff) : NULL;
}

static void plan_gradients(const cd_encoder *e, cd_slab *s, size_t n, cd_encoder_run *r) {
    r->dx = cd_slab_floats(s, n * e->d);
    r->df = cd_slab_floats(s, n * e->d);
    r->da = cd_slab_floats(s, n * e->d);
    r->tmp = cd_slab_floats(s, n * e->d);
    r->dh = cd_slab_floats(s, n * e->ff);
    r->dqkv = cd_slab_floats(s, n * 3 * e->d);
    r->part = cd_slab_floats(s, cd_encoder_tiles(n) * (9 * e->d + e->ff));
}

/* Predicting keeps nothing for backward, so all layers share the memory of the first, and the
 * output takes the place of the input. */
void cd_encoder_plan(const cd_encoder *e, cd_slab *s, const cd_batch_dims *dims, int n_worker,
                     bool train, cd_encoder_run *r) {
    const size_t n = dims->n_tok;
    r->train = train;
    for (size_t k = 0; k < e->n; k++) {
        if (train || !k) plan_layer(e, s, n, train, &r->keep[k]);
        else r->keep[k] = r->keep[0];
    }
    r->y = train || e->pre_norm || !e->n ? cd_slab_floats(s, n * e->d) : r->keep[0].x;
    r->hat = e->pre_norm ? cd_slab_floats(s, n * e->d) : r->y;
    if (!e->n) r->keep[0].x = r->hat; /* what would be the first layer's input */
    r->rstd = cd_slab_floats(s, n);
    if (train) plan_gradients(e, s, n, r);
    r->n_scratch = (cd_ops_attention_scratch(e->d, e->heads, dims->max_leaf) + 15) / 16 * 16;
    r->scratch = cd_slab_floats(s, (size_t)n_worker * r->n_scratch);
}

/* ---- tiles ---- */
size_t cd_encoder_tiles(size_t n_tok) { return cd_ops_tiles(n_tok, TILE); }

/* First program that begins at row `row` or behind it. */
static size_t program_at(const cd_batch *b, size_t row) {
    size_t lo = 0, hi = b->n;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (b->tok_ptr[mid] < row) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

cd_encoder_tile cd_encoder_tile_at(const cd_batch *b, size_t t) {
    const size_t tiles = cd_encoder_tiles(b->n_tok);
    cd_encoder_tile s;
    s.p0 = program_at(b, cd_ops_tile_at(b->n_tok, tiles, t));
    s.p1 = t + 1 < tiles ? program_at(b, cd_ops_tile_at(b->n_tok, tiles, t + 1)) : b->n;
    s.row = b->tok_ptr[s.p0];
    s.n = b->tok_ptr[s.p1] - s.row;
    return s;
}

/* ---- forward ---- */
typedef struct {
    const cd_encoder *e;
    const cd_params *p;
    cd_encoder_run *r;
    const cd_batch *b;
} pass;

static const float *value(const pass *a, size_t id) { return cd_params_value(a->p, id); }

static void input(const pass *a, const cd_encoder_tile *t) {
    const cd_encoder *e = a->e;
    float *x = a->r->keep[0].x + t->row * e->d;
    const float *tok = a->b->tok + t->row * e->in;
    if (e->project) {
        cd_ops_linear(tok, t->n, e->in, value(a, e->proj_w), e->d, x);
        cd_ops_bias(x, t->n, e->d, value(a, e->proj_b));
    } else memcpy(x, tok, t->n * e->d * sizeof *x);
    if (e->table)
        for (size_t i = 0; i < t->n; i++) add_position(e, a->b->pos[t->row + i], x + i * e->d);
}

/* hat = copy of x, y = LN. */
static void norm(const pass *a, const cd_encoder_tile *t, const float *x, float *hat, float *rstd,
                 size_t g, size_t s, float *y) {
    const size_t at = t->row * a->e->d;
    if (x != hat) memcpy(hat + at, x + at, t->n * a->e->d * sizeof *x);
    cd_ops_layernorm(hat + at, t->n, a->e->d, value(a, g), value(a, s), rstd + t->row, y + at);
}

static cd_dropout dropout(const pass *a, size_t k, int stream) {
    return cd_ops_drop(a->r->train ? a->e->dropout : 0, a->r->key,
                       k * CD_ENCODER_DROP_STREAMS + (size_t)stream);
}

/* y = drop(attention(n1)) + x One product makes queries, keys and values: w is (3d, d). */
static void attention(const pass *a, const cd_encoder_tile *t, size_t k, float *scratch, float *y) {
    const cd_encoder *e = a->e;
    const cd_encoder_layer *l = &e->layer[k];
    const cd_encoder_keep *q = &a->r->keep[k];
    const cd_dropout dw = dropout(a, k, CD_ENCODER_DROP_WEIGHTS),
                     dy = dropout(a, k, CD_ENCODER_DROP_ATTENTION);
    const size_t at = t->row * e->d;
    cd_ops_linear(q->n1 + at, t->n, e->d, value(a, l->qkv_w), 3 * e->d, q->qkv + 3 * at);
    cd_ops_bias(q->qkv + 3 * at, t->n, 3 * e->d, value(a, l->qkv_b));
    cd_ops_attention(q->qkv, a->b->tok_ptr, t->p0, t->p1, e->d, e->heads, &dw, scratch, q->att);
    cd_ops_linear(q->att + at, t->n, e->d, value(a, l->o_w), e->d, y + at);
    cd_ops_residual(y + at, t->n, e->d, value(a, l->o_b), q->x + at, t->row, &dy);
}

/* y = drop(ff(n2)) + x1; the hidden layer in blocks of columns that stay in the cache. */
static void feed_forward(const pass *a, const cd_encoder_tile *t, size_t k, float *y) {
    const cd_encoder *e = a->e;
    const cd_encoder_layer *l = &e->layer[k];
    const cd_encoder_keep *q = &a->r->keep[k];
    const cd_dropout dh = dropout(a, k, CD_ENCODER_DROP_HIDDEN),
                     dy = dropout(a, k, CD_ENCODER_DROP_FF);
    const size_t at = t->row * e->d;
    for (size_t c = 0; c < e->ff; c += CD_ENCODER_COLS) {
        const size_t n = e->ff - c < CD_ENCODER_COLS ? e->ff - c : CD_ENCODER_COLS,
                     hat = t->row * e->ff + c;
        cd_ops_gemm(&(cd_gemm){.tb = true,
                               .m = t->n,
                               .n = n,
                               .k = e->d,
                               .a = q->n2 + at,
                               .lda = e->d,
                               .b = value(a, l->w1) + c * e->d,
                               .ldb = e->d,
                               .c = q->h + hat,
                               .ldc = e->ff});
        if (e->act == CD_ACT_RELU)
            cd_ops_relu(q->h + hat, t->n, n, e->ff, value(a, l->b1) + c, t->row, c, &dh);
        else if (e->act == CD_ACT_ELU)
            cd_ops_elu(q->h + hat, t->n, n, e->ff, value(a, l->b1) + c, t->row, c, &dh);
        else
            cd_ops_gelu(q->h + hat, q->arg ? q->arg + hat : NULL, t->n, n, e->ff,
                        value(a, l->b1) + c, t->row, c, &dh);
    }
    cd_ops_linear(q->h + t->row * e->ff, t->n, e->ff, value(a, l->w2), e->d, y + at);
    cd_ops_residual(y + at, t->n, e->d, value(a, l->b2), q->x1 + at, t->row, &dy);
}

/* The two orders of norm and residual that encoder.h draws. With pre-norm the last layer writes
 * where the closing norm reads. */
static void layer_forward(const pass *a, const cd_encoder_tile *t, size_t k, float *scratch) {
    const cd_encoder_layer *l = &a->e->layer[k];
    const cd_encoder_keep *q = &a->r->keep[k];
    float *next = k + 1 < a->e->n ? a->r->keep[k + 1].x : a->r->y;
    if (a->e->pre_norm) {
        if (k + 1 == a->e->n) next = a->r->hat; /* the last norm's input */
        norm(a, t, q->x, q->hat1, q->rstd1, l->g1, l->s1, q->n1);
        attention(a, t, k, scratch, q->x1);
        norm(a, t, q->x1, q->hat2, q->rstd2, l->g2, l->s2, q->n2);
        feed_forward(a, t, k, next);
    } else {
        attention(a, t, k, scratch, q->hat1);
        norm(a, t, q->hat1, q->hat1, q->rstd1, l->g1, l->s1, q->x1);
        feed_forward(a, t, k, q->hat2);
        norm(a, t, q->hat2, q->hat2, q->rstd2, l->g2, l->s2, next);
    }
}

static void tile_forward(void *ctx, size_t t, int worker) {
    const pass *a = ctx;
    const cd_encoder_tile s = cd_encoder_tile_at(a->b, t);
    if (!s.n) return;
    input(a, &s);
    for (size_t k = 0; k < a->e->n; k++)
        layer_forward(a, &s, k, a->r->scratch + (size_t)worker * a->r->n_scratch);
    if (a->e->pre_norm)
        norm(a, &s, a->r->hat, a->r->hat, a->r->rstd, a->e->last_g, a->e->last_s, a->r->y);
}

void cd_encoder_forward(const cd_encoder *e, const cd_params *p, cd_encoder_run *r,
                        const cd_batch *b, cd_threads *pool) {
    pass a = {e, p, r, b};
    cd_ops_each(pool, cd_encoder_tiles(b->n_tok), tile_forward, &a);
}

/* Gradients of the encoder, layer by layer from the last.
 *
 * Per layer: tiles of programs carry the gradient through and leave what the
 * weights need (df, dh, da, dqkv) and their sums over columns; then the products
 * for the weights, over all rows at once. */

typedef struct {
    const cd_encoder *e;
    cd_params *p;
    cd_encoder_run *r;
    const cd_batch *b;
    size_t k;
    cd_dropout drop[CD_ENCODER_DROP_STREAMS];
} pass_back;

/* Sums over the rows of a tile, one after another in `part`. */
typedef struct {
    float *qkv_b, *o_b, *g1, *s1, *b2, *g2, *s2, *b1;
} sums;

static sums sums_at(const cd_encoder *e, float *part, size_t t) {
    const size_t d = e->d;
    float *p = part + t * (9 * d + e->ff);
    return (sums){p, p + 3 * d, p + 4 * d, p + 5 * d, p + 6 * d, p + 7 * d, p + 8 * d, p + 9 * d};
}

static const float *value_back(const pass_back *a, size_t id) { return cd_params_value(a->p, id); }

/* dx (rows of the tile) is the gradient of drop(y) + ...: to = gradient of y, its
 * column sums go to `bias`. */
static void drop_back(const pass_back *a, const cd_encoder_tile *t, int stream, float *to,
                      float *bias) {
    const size_t d = a->e->d, at = t->row * d;
    memcpy(to + at, a->r->dx + at, t->n * d * sizeof *to);
    cd_ops_dropout(to + at, t->n, d, t->row, &a->drop[stream]);
    cd_ops_colsum(to + at, t->n, d, bias);
}

/* dn = df W2, through the activation, W1; added to dn when beta is 1. The hidden layer goes in
 * blocks of columns, as in forward. */
static void feed_forward_back(const pass_back *a, const cd_encoder_tile *t, const sums *s,
                              float beta, float *dn) {
    const cd_encoder *e = a->e;
    const cd_encoder_layer *l = &e->layer[a->k];
    const cd_encoder_keep *q = &a->r->keep[a->k];
    const cd_dropout *drop = &a->drop[CD_ENCODER_DROP_HIDDEN];
    const size_t at = t->row * e->d;
    for (size_t c = 0; c < e->ff; c += CD_ENCODER_COLS) {
        const size_t n = e->ff - c < CD_ENCODER_COLS ? e->ff - c : CD_ENCODER_COLS,
                     hat = t->row * e->ff + c;
        float *dh = a->r->dh + hat;
        cd_ops_gemm(&(cd_gemm){.m = t->n,
                               .n = n,
                               .k = e->d,
                               .a = a->r->df + at,
                               .lda = e->d,
                               .b = value_back(a, l->w2) + c,
                               .ldb = e->ff,
                               .c = dh,
                               .ldc = e->ff});
        if (e->act == CD_ACT_RELU)
            cd_ops_relu_back(dh, q->h + hat, t->n, n, e->ff, drop, s->b1 + c);
        else if (e->act == CD_ACT_ELU)
            cd_ops_elu_back(dh, q->h + hat, t->n, n, e->ff, drop, s->b1 + c);
        else cd_ops_gelu_back(dh, q->arg + hat, t->n, n, e->ff, t->row, c, drop, s->b1 + c);
    }
    cd_ops_linear_dx(a->r->dh + t->row * e->ff, t->n, e->d, value_back(a, l->w1), e->ff, beta,
                     dn + at);
}

/* Gradient of the joint projection's output in dqkv, of its input added to or written over dn. */
static void attention_back(const pass_back *a, const cd_encoder_tile *t, const sums *s,
                           float *scratch, float beta, float *dn) {
    const cd_encoder *e = a->e;
    const cd_encoder_layer *l = &e->layer[a->k];
    const cd_encoder_keep *q = &a->r->keep[a->k];
    const size_t at = t->row * e->d;
    cd_ops_linear_dx(a->r->da + at, t->n, e->d, value_back(a, l->o_w), e->d, 0, a->r->tmp + at);
    cd_ops_attention_back(a->r->tmp, q->qkv, a->b->tok_ptr, t->p0, t->p1, e->d, e->heads,
                          &a->drop[CD_ENCODER_DROP_WEIGHTS], scratch, a->r->dqkv);
    cd_ops_colsum(a->r->dqkv + 3 * at, t->n, 3 * e->d, s->qkv_b);
    cd_ops_linear_dx(a->r->dqkv + 3 * at, t->n, e->d, value_back(a, l->qkv_w), 3 * e->d, beta,
                     dn + at);
}

static void norm_back(const pass_back *a, const cd_encoder_tile *t, float *dy, const float *hat,
                      const float *rstd, size_t g, float *dg, float *ds) {
    const size_t at = t->row * a->e->d;
    cd_ops_layernorm_back(dy + at, hat + at, t->n, a->e->d, value_back(a, g), rstd + t->row, dg,
                          ds);
}

/* The order of encoder.h's formulas reversed. With pre-norm the gradient of a branch is added to
 * that of the residual; with post-norm it flows through one array. */
static void tile_backward(void *ctx, size_t i, int worker) {
    const pass_back *a = ctx;
    const cd_encoder *e = a->e;
    const cd_encoder_tile tile = cd_encoder_tile_at(a->b, i), *t = &tile;
    const cd_encoder_layer *l = &e->layer[a->k];
    cd_encoder_run *r = a->r;
    const cd_encoder_keep *q = &r->keep[a->k];
    const sums s = sums_at(e, r->part, i);
    float *scratch = r->scratch + (size_t)worker * r->n_scratch;
    const size_t at = t->row * e->d, n = t->n * e->d;
    memset(s.qkv_b, 0, (9 * e->d + e->ff) * sizeof *s.qkv_b);
    if (!t->n) return;
    if (!e->pre_norm) norm_back(a, t, r->dx, q->hat2, q->rstd2, l->g2, s.g2, s.s2);
    drop_back(a, t, CD_ENCODER_DROP_FF, r->df, s.b2);
    feed_forward_back(a, t, &s, e->pre_norm ? 0 : 1, e->pre_norm ? r->tmp : r->dx);
    if (e->pre_norm) {
        norm_back(a, t, r->tmp, q->hat2, q->rstd2, l->g2, s.g2, s.s2);
        cd_ops_bias(r->dx + at, 1, n, r->tmp + at);
    } else norm_back(a, t, r->dx, q->hat1, q->rstd1, l->g1, s.g1, s.s1);
    drop_back(a, t, CD_ENCODER_DROP_ATTENTION, r->da, s.o_b);
    attention_back(a, t, &s, scratch, e->pre_norm ? 0 : 1, e->pre_norm ? r->tmp : r->dx);
    if (!e->pre_norm) return;
    norm_back(a, t, r->tmp, q->hat1, q->rstd1, l->g1, s.g1, s.s1);
    cd_ops_bias(r->dx + at, 1, n, r->tmp + at);
}

/* Tiles are added in order, so the sums do not depend on who computed them. */
static void add_sums(const pass_back *a) {
    const cd_encoder_layer *l = &a->e->layer[a->k];
    const size_t d = a->e->d;
    for (size_t t = 0; t < cd_encoder_tiles(a->b->n_tok); t++) {
        const sums s = sums_at(a->e, a->r->part, t);
        cd_ops_bias(cd_params_grad(a->p, l->qkv_b), 1, 3 * d, s.qkv_b);
        cd_ops_bias(cd_params_grad(a->p, l->o_b), 1, d, s.o_b);
        cd_ops_bias(cd_params_grad(a->p, l->g1), 1, d, s.g1);
        cd_ops_bias(cd_params_grad(a->p, l->s1), 1, d, s.s1);
        cd_ops_bias(cd_params_grad(a->p, l->b2), 1, d, s.b2);
        cd_ops_bias(cd_params_grad(a->p, l->g2), 1, d, s.g2);
        cd_ops_bias(cd_params_grad(a->p, l->s2), 1, d, s.s2);
        cd_ops_bias(cd_params_grad(a->p, l->b1), 1, a->e->ff, s.b1);
    }
}

/* The four weight matrices at once, over all rows of the batch. */
static void weights_back(const pass_back *a, cd_threads *pool) {
    const cd_encoder *e = a->e;
    const cd_encoder_layer *l = &e->layer[a->k];
    const cd_encoder_keep *q = &a->r->keep[a->k];
    const cd_encoder_run *r = a->r;
    const size_t n = a->b->n_tok, d = e->d;
    const cd_gemm g[4] = {
        cd_ops_linear_dw(r->dh, q->n2, n, d, e->ff, cd_params_grad(a->p, l->w1)),
        cd_ops_linear_dw(r->df, q->h, n, e->ff, d, cd_params_grad(a->p, l->w2)),
        cd_ops_linear_dw(r->dqkv, q->n1, n, d, 3 * d, cd_params_grad(a->p, l->qkv_w)),
        cd_ops_linear_dw(r->da, q->att, n, d, d, cd_params_grad(a->p, l->o_w))};
    cd_ops_gemm_run(pool, g, 4);
}

/* ---- ends ---- */
static void last_norm_back(const pass_back *a) {
    const cd_encoder_tile all = {0, a->b->n, 0, a->b->n_tok};
    norm_back(a, &all, a->r->dx, a->r->hat, a->r->rstd, a->e->last_g,
              cd_params_grad(a->p, a->e->last_g), cd_params_grad(a->p, a->e->last_s));
}

static void projection_back(const pass_back *a, cd_threads *pool) {
    const cd_encoder *e = a->e;
    const cd_gemm g = cd_ops_linear_dw(a->r->dx, a->b->tok, a->b->n_tok, e->in, e->d,
                                       cd_params_grad(a->p, e->proj_w));
    cd_ops_gemm_run(pool, &g, 1);
    cd_ops_colsum(a->r->dx, a->b->n_tok, e->d, cd_params_grad(a->p, e->proj_b));
}

/* r->dx holds the gradient of r->y and is overwritten. */
static void encoder_backward(const cd_encoder *e, cd_params *p, cd_encoder_run *r,
                             const cd_batch *b, cd_threads *pool) {
    pass_back a = {.e = e, .p = p, .r = r, .b = b};
    if (e->pre_norm) last_norm_back(&a);
    for (size_t k = e->n; k-- > 0;) {
        a.k = k;
        for (size_t i = 0; i < CD_ENCODER_DROP_STREAMS; i++)
            a.drop[i] = cd_ops_drop(e->dropout, r->key, k * CD_ENCODER_DROP_STREAMS + i);
        cd_ops_each(pool, cd_encoder_tiles(b->n_tok), tile_backward, &a);
        add_sums(&a);
        weights_back(&a, pool);
    }
    if (e->project) projection_back(&a, pool);
}

/* The transformer kind: leaves through the encoder, then by one of three heads to a program. */

enum { TILE_TSF = 64 };

static size_t n_out(const cd_net *net) { return (size_t)net->spec.n_out; }

/* Width of what the head reads. A flattened batch has as many slots as its longest
 * program needs: the others would be zeros. */
static size_t head_in(const cd_net *net, size_t max_leaf) {
    const size_t d = net->enc.d, slots = (size_t)net->spec.slots;
    if (net->spec.head == CD_HEAD_POOL) return 3 * d;
    if (net->spec.head == CD_HEAD_SUM) return d;
    return d * (max_leaf < slots ? max_leaf : slots);
}

static void build(cd_net *net) {
    const cd_net_config *s = &net->spec;
    cd_encoder_build(&net->enc, &net->params, s, net->w_tok);
    cd_net_tail_build(&net->tail, &net->params, s, head_in(net, SIZE_MAX),
                      s->device ? (size_t)s->w_dev : 0, net->w_prog);
}

/* The head decides how many rows the tail sees: programs, or leaves where the head is a sum. */
static void plan(const cd_net *net, cd_net_state *st) {
    const cd_batch_dims *d = &st->dims;
    const bool sum = net->spec.head == CD_HEAD_SUM;
    const size_t rows = sum ? d->n_tok : d->n, in = head_in(net, d->max_leaf);
    cd_encoder_plan(&net->enc, &st->slab, d, st->n_worker, st->train, &st->enc);
    cd_net_tail_plan(&net->tail, &st->slab, rows, d->n, st->train, &st->tail);
    if (sum) {
        st->score = cd_slab_floats(&st->slab, rows * n_out(net));
        st->y = cd_slab_floats(&st->slab, d->n * n_out(net));
        st->dscore = cd_slab_floats(&st->slab, rows * n_out(net));
        return;
    }
    st->in = cd_slab_floats(&st->slab, d->n * in);
    st->din = st->train ? cd_slab_floats(&st->slab, d->n * in) : NULL;
    st->arg = cd_slab_take(&st->slab, d->n * net->enc.d, sizeof *st->arg);
}

/* ---- programs from leaves, in tiles of programs ---- */
typedef struct {
    const cd_net *net;
    const cd_batch *b;
    cd_net_state *st;
    size_t tiles;
    bool back;
} pass_tsf;

/* Pooling or flattening a tile of programs, forward or back. */
static void gather_tile(void *ctx, size_t t, int worker) {
    const pass_tsf *a = ctx;
    const size_t p0 = cd_ops_tile_at(a->b->n, a->tiles, t),
                 p1 = cd_ops_tile_at(a->b->n, a->tiles, t + 1);
    const size_t d = a->net->enc.d, slots = head_in(a->net, a->b->max_leaf) / d;
    const uint32_t *ptr = a->b->tok_ptr;
    cd_net_state *st = a->st;
    (void)worker;
    if (a->net->spec.head == CD_HEAD_POOL && !a->back)
        cd_ops_pool(st->enc.y, ptr, p0, p1, d, st->in, st->train ? st->arg : NULL);
    else if (a->net->spec.head == CD_HEAD_POOL)
        cd_ops_pool_back(st->din, ptr, p0, p1, d, st->arg, st->enc.dx);
    else if (!a->back) cd_ops_flatten(st->enc.y, ptr, p0, p1, d, slots, st->in);
    else cd_ops_flatten_back(st->din, ptr, p0, p1, d, slots, st->enc.dx);
}

static void gather(const cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                   bool back) {
    pass_tsf a = {net, b, st, cd_ops_tiles(b->n, TILE_TSF), back};
    cd_ops_each(pool, a.tiles, gather_tile, &a);
}

/* ---- forward ---- */
/* A constant of the batch: backward needs nothing. Without it a network must learn that
 * twice the work takes twice the time, and forgets it beyond what it was trained on. */
static void add_trips(const cd_net *net, const cd_batch *b, float *score) {
    const float per = (float)(1 / net->spec.temperature);
    for (size_t t = 0; t < b->n_tok; t++) score[t * n_out(net)] += per * b->trips[t];
}

static void forward_sum(const cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                        float *out, float *latent) {
    cd_net_tail_forward(&net->tail, &net->params, &st->tail, b, pool, st->enc.y, b->n_tok,
                        net->enc.d, b->tok_ptr, st->score);
    if (net->spec.trips) add_trips(net, b, st->score);
    cd_ops_lse(st->score, b->tok_ptr, 0, b->n, n_out(net), (float)net->spec.temperature, st->y);
    memcpy(out, st->y, b->n * n_out(net) * sizeof *out);
    if (latent) cd_ops_mean(st->tail.h, b->tok_ptr, 0, b->n, cd_net_n_latent(net), latent);
}

static void forward(const cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                    float *out, float *latent) {
    cd_encoder_forward(&net->enc, &net->params, &st->enc, b, pool);
    if (net->spec.head == CD_HEAD_SUM) {
        forward_sum(net, b, st, pool, out, latent);
        return;
    }
    gather(net, b, st, pool, false);
    cd_net_tail_forward(&net->tail, &net->params, &st->tail, b, pool, st->in, b->n,
                        head_in(net, b->max_leaf), NULL, out);
    if (latent) memcpy(latent, st->tail.h, b->n * cd_net_n_latent(net) * sizeof *latent);
}

/* ---- backward ---- */
static void backward_sum(cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                         const float *d_out, const float *d_latent) {
    const size_t latent = cd_net_n_latent(net);
    memset(st->tail.dh, 0, b->n_tok * latent * sizeof *st->tail.dh);
    if (d_latent) cd_ops_mean_back(d_latent, b->tok_ptr, 0, b->n, latent, st->tail.dh);
    if (d_out)
        cd_ops_lse_back(d_out, st->score, st->y, b->tok_ptr, 0, b->n, n_out(net),
                        (float)net->spec.temperature, st->dscore);
    cd_net_tail_backward(&net->tail, &net->params, &st->tail, b, pool, d_out ? st->dscore : NULL,
                         st->enc.dx);
}

static void backward(cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                     const float *d_out, const float *d_latent) {
    if (net->spec.head == CD_HEAD_SUM) backward_sum(net, b, st, pool, d_out, d_latent);
    else {
        cd_net_tail_begin_backward(&st->tail, b->n * cd_net_n_latent(net), d_latent);
        cd_net_tail_backward(&net->tail, &net->params, &st->tail, b, pool, d_out, st->din);
        gather(net, b, st, pool, true);
    }
    encoder_backward(&net->enc, &net->params, &st->enc, b, pool);
}

const cd_net_type cd_net_tsf = {"transformer", build, plan, forward, backward};
