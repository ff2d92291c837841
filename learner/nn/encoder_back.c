/* Gradients of the encoder, layer by layer from the last.
 *
 * Per layer: tiles of programs carry the gradient through and leave what the
 * weights need (df, dh, da, dqkv) and their sums over columns; then the products
 * for the weights, over all rows at once. */
#include <string.h>

#include "learner/nn/nn.h"

typedef struct {
    const cd_encoder *e;
    cd_params *p;
    cd_encoder_run *r;
    const cd_batch *b;
    size_t k;
    cd_dropout drop[CD_ENCODER_DROP_STREAMS];
} pass;

/* Sums over the rows of a tile, one after another in `part`. */
typedef struct {
    float *qkv_b, *o_b, *g1, *s1, *b2, *g2, *s2, *b1;
} sums;

static sums sums_at(const cd_encoder *e, float *part, size_t t) {
    const size_t d = e->d;
    float *p = part + t * (9 * d + e->ff);
    return (sums){p, p + 3 * d, p + 4 * d, p + 5 * d, p + 6 * d, p + 7 * d, p + 8 * d, p + 9 * d};
}

static const float *value(const pass *a, size_t id) { return cd_params_value(a->p, id); }

/* dx (rows of the tile) is the gradient of drop(y) + ...: to = gradient of y, its
 * column sums go to `bias`. */
static void drop_back(const pass *a, const cd_encoder_tile *t, int stream, float *to, float *bias) {
    const size_t d = a->e->d, at = t->row * d;
    memcpy(to + at, a->r->dx + at, t->n * d * sizeof *to);
    cd_ops_dropout(to + at, t->n, d, t->row, &a->drop[stream]);
    cd_ops_colsum(to + at, t->n, d, bias);
}

/* dn = df W2, through the activation, W1; added to dn when beta is 1. The hidden layer goes in
 * blocks of columns, as in forward. */
static void feed_forward_back(const pass *a, const cd_encoder_tile *t, const sums *s, float beta,
                              float *dn) {
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
                               .b = value(a, l->w2) + c,
                               .ldb = e->ff,
                               .c = dh,
                               .ldc = e->ff});
        if (e->act == CD_ACT_RELU)
            cd_ops_relu_back(dh, q->h + hat, t->n, n, e->ff, drop, s->b1 + c);
        else if (e->act == CD_ACT_ELU)
            cd_ops_elu_back(dh, q->h + hat, t->n, n, e->ff, drop, s->b1 + c);
        else cd_ops_gelu_back(dh, q->arg + hat, t->n, n, e->ff, t->row, c, drop, s->b1 + c);
    }
    cd_ops_linear_dx(a->r->dh + t->row * e->ff, t->n, e->d, value(a, l->w1), e->ff, beta, dn + at);
}

/* Gradient of the joint projection's output in dqkv, of its input added to or written over dn. */
static void attention_back(const pass *a, const cd_encoder_tile *t, const sums *s, float *scratch,
                           float beta, float *dn) {
    const cd_encoder *e = a->e;
    const cd_encoder_layer *l = &e->layer[a->k];
    const cd_encoder_keep *q = &a->r->keep[a->k];
    const size_t at = t->row * e->d;
    cd_ops_linear_dx(a->r->da + at, t->n, e->d, value(a, l->o_w), e->d, 0, a->r->tmp + at);
    cd_ops_attention_back(a->r->tmp, q->qkv, a->b->tok_ptr, t->p0, t->p1, e->d, e->heads,
                          &a->drop[CD_ENCODER_DROP_WEIGHTS], scratch, a->r->dqkv);
    cd_ops_colsum(a->r->dqkv + 3 * at, t->n, 3 * e->d, s->qkv_b);
    cd_ops_linear_dx(a->r->dqkv + 3 * at, t->n, e->d, value(a, l->qkv_w), 3 * e->d, beta, dn + at);
}

static void norm_back(const pass *a, const cd_encoder_tile *t, float *dy, const float *hat,
                      const float *rstd, size_t g, float *dg, float *ds) {
    const size_t at = t->row * a->e->d;
    cd_ops_layernorm_back(dy + at, hat + at, t->n, a->e->d, value(a, g), rstd + t->row, dg, ds);
}

/* The order of encoder.h's formulas reversed. With pre-norm the gradient of a branch is added to
 * that of the residual; with post-norm it flows through one array. */
static void tile_backward(void *ctx, size_t i, int worker) {
    const pass *a = ctx;
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
static void add_sums(const pass *a) {
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
static void weights_back(const pass *a, cd_threads *pool) {
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
static void last_norm_back(const pass *a) {
    const cd_encoder_tile all = {0, a->b->n, 0, a->b->n_tok};
    norm_back(a, &all, a->r->dx, a->r->hat, a->r->rstd, a->e->last_g,
              cd_params_grad(a->p, a->e->last_g), cd_params_grad(a->p, a->e->last_s));
}

static void projection_back(const pass *a, cd_threads *pool) {
    const cd_encoder *e = a->e;
    const cd_gemm g = cd_ops_linear_dw(a->r->dx, a->b->tok, a->b->n_tok, e->in, e->d,
                                       cd_params_grad(a->p, e->proj_w));
    cd_ops_gemm_run(pool, &g, 1);
    cd_ops_colsum(a->r->dx, a->b->n_tok, e->d, cd_params_grad(a->p, e->proj_b));
}

void cd_encoder_backward(const cd_encoder *e, cd_params *p, cd_encoder_run *r, const cd_batch *b,
                         cd_threads *pool) {
    pass a = {.e = e, .p = p, .r = r, .b = b};
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
