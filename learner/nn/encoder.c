/* Transformer layers over the leaves of each program, forward. Tiles of whole programs go through
 * all layers by themselves, because attention does not cross programs and a tile stays in the
 * cache. */
#include "learner/nn/nn.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
