/* The TLP kind (Zhai et al., ASPLOS 2023): steps of a schedule, each by itself up to `width`, one
 * layer of attention between them, residual blocks, and a score of each step; scores add up. As
 * published, but for the width of the decoder's layers. */
#include <stdio.h>
#include <string.h>

#include "learner/nn/nn_internal.h"

enum { ID_BLOCK = 1400, TILE = 16 }; /* dropout; programs of a tile of attention */

static cd_mlp plain(const cd_net_config *s) {
    return (cd_mlp){.norm = CD_NORM_NONE, .act = s->act, .id = ID_BLOCK};
}

static void build(cd_net *net) {
    const cd_net_config *s = &net->spec;
    const size_t d = (size_t)s->width, up[] = {d / 4, d / 2, d, d};
    cd_tlp *t = &net->tlp;
    size_t in = net->w_tok;
    t->up = t->qkv = t->mix = plain(s);
    for (size_t k = 0; k < sizeof up / sizeof *up; in = up[k++])
        cd_mlp_add(&t->up, &net->params, "steps", in, up[k], true);
    cd_mlp_add(&t->qkv, &net->params, "attention.in", d, 3 * d, false);
    cd_mlp_add(&t->mix, &net->params, "attention.out", d, d, false);
    for (t->n = 0; t->n < (size_t)s->layers; t->n++) {
        char name[32];
        snprintf(name, sizeof name, "blocks.%zu", t->n);
        t->block[t->n] = plain(s);
        cd_mlp_add(&t->block[t->n], &net->params, name, d, d, true);
    }
    cd_net_tail_build(&net->tail, &net->params, s, d, s->device ? (size_t)s->w_dev : 0,
                      net->w_prog);
}

/* Training, each block's input is kept; predicting, one place serves all. */
static void plan(const cd_net *net, cd_net_state *st) {
    const size_t n = st->dims.n_tok, d = (size_t)net->spec.width, n_out = (size_t)net->spec.n_out;
    const cd_tlp *t = &net->tlp;
    cd_tlp_run *r = &st->tlp;
    cd_mlp_plan(&t->up, &st->slab, n, st->train, &r->up);
    cd_mlp_plan(&t->qkv, &st->slab, n, st->train, &r->qkv);
    cd_mlp_plan(&t->mix, &st->slab, n, st->train, &r->mix);
    for (size_t k = 0; k < t->n; k++)
        cd_mlp_plan(&t->block[k], &st->slab, n, st->train, &r->block[k]);
    for (size_t k = 0; k <= t->n; k++)
        r->x[k] = k && !st->train ? r->x[0] : cd_slab_floats(&st->slab, n * d);
    r->att = cd_slab_floats(&st->slab, n * d);
    r->n_scratch =
        (cd_ops_attention_scratch(d, (size_t)net->spec.heads, st->dims.max_leaf) + 15) / 16 * 16;
    r->scratch = cd_slab_floats(&st->slab, (size_t)st->n_worker * r->n_scratch);
    st->score = cd_slab_floats(&st->slab, n * n_out);
    cd_net_tail_plan(&net->tail, &st->slab, n, st->dims.n, st->train, &st->tail);
    if (!st->train) return;
    r->dx = cd_slab_floats(&st->slab, n * d);
    r->dy = cd_slab_floats(&st->slab, n * d);
    r->tmp = cd_slab_floats(&st->slab, n * d);
    r->dqkv = cd_slab_floats(&st->slab, n * 3 * d);
    st->dscore = cd_slab_floats(&st->slab, n * n_out);
}

/* ---- attention, in tiles of programs ---- */
typedef struct {
    const cd_net *net;
    const cd_batch *b;
    cd_tlp_run *r;
    const float *qkv;
    size_t tiles;
    cd_dropout drop;
    bool back;
} pass;

static void attend_tile(void *ctx, size_t t, int worker) {
    const pass *a = ctx;
    const size_t p0 = cd_ops_tile_at(a->b->n, a->tiles, t),
                 p1 = cd_ops_tile_at(a->b->n, a->tiles, t + 1);
    const size_t d = (size_t)a->net->spec.width, heads = (size_t)a->net->spec.heads;
    float *scratch = a->r->scratch + (size_t)worker * a->r->n_scratch;
    if (!a->back)
        cd_ops_attention(a->qkv, a->b->tok_ptr, p0, p1, d, heads, &a->drop, scratch, a->r->att);
    else
        cd_ops_attention_back(a->r->tmp, a->qkv, a->b->tok_ptr, p0, p1, d, heads, &a->drop, scratch,
                              a->r->dqkv);
}

static void attend(const cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                   const float *qkv, bool back) {
    const cd_mlp_run *mode = &st->tlp.up;
    pass a = {net,
              b,
              &st->tlp,
              qkv,
              cd_ops_tiles(b->n, TILE),
              cd_ops_drop(mode->train ? net->spec.dropout : 0, mode->key, 0),
              back};
    cd_ops_each(pool, a.tiles, attend_tile, &a);
}

/* ---- forward ---- */
static void sum(const float *x, const float *y, size_t n, float *out) {
    if (out != x) memcpy(out, x, n * sizeof *out);
    cd_ops_bias(out, 1, n, y);
}

/* out (n, n_out): the scores of a program's steps, added up. */
static void add_scores(const cd_batch *b, const float *score, size_t n_out, float *out) {
    memset(out, 0, b->n * n_out * sizeof *out);
    for (size_t p = 0; p < b->n; p++)
        cd_ops_colsum(score + b->tok_ptr[p] * n_out, b->tok_ptr[p + 1] - b->tok_ptr[p], n_out,
                      out + p * n_out);
}

static void forward(const cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                    float *out, float *latent) {
    const size_t n = b->n_tok, d = (size_t)net->spec.width;
    const cd_tlp *t = &net->tlp;
    const cd_params *p = &net->params;
    cd_tlp_run *r = &st->tlp;
    const float *up = cd_mlp_forward(&t->up, p, &r->up, pool, b->tok, n, b->w_tok);
    attend(net, b, st, pool, cd_mlp_forward(&t->qkv, p, &r->qkv, pool, up, n, d), false);
    sum(up, cd_mlp_forward(&t->mix, p, &r->mix, pool, r->att, n, d), n * d, r->x[0]);
    for (size_t k = 0; k < t->n; k++)
        sum(r->x[k], cd_mlp_forward(&t->block[k], p, &r->block[k], pool, r->x[k], n, d), n * d,
            r->x[k + 1]);
    cd_net_tail_forward(&net->tail, p, &st->tail, b, pool, r->x[t->n], n, d, b->tok_ptr, st->score);
    add_scores(b, st->score, (size_t)net->spec.n_out, out);
    if (latent) cd_ops_mean(st->tail.h, b->tok_ptr, 0, b->n, cd_net_n_latent(net), latent);
}

/* ---- backward ---- */
static void spread(const cd_batch *b, const float *d_out, size_t n_out, float *dscore) {
    for (size_t p = 0; p < b->n; p++)
        for (size_t i = b->tok_ptr[p]; i < b->tok_ptr[p + 1]; i++)
            memcpy(dscore + i * n_out, d_out + p * n_out, n_out * sizeof *dscore);
}

static void tail_back(cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                      const float *d_out, const float *d_latent) {
    const size_t latent = cd_net_n_latent(net);
    cd_net_tail_begin_backward(&st->tail, b->n_tok * latent, NULL);
    if (d_latent) cd_ops_mean_back(d_latent, b->tok_ptr, 0, b->n, latent, st->tail.dh);
    if (d_out) spread(b, d_out, (size_t)net->spec.n_out, st->dscore);
    cd_net_tail_backward(&net->tail, &net->params, &st->tail, b, pool, d_out ? st->dscore : NULL,
                         st->tlp.dx);
}

/* dx is the gradient of the sum of x and the branch's output; that of its input is added. */
static void block_back(const cd_mlp *m, cd_net *net, cd_mlp_run *run, cd_tlp_run *r,
                       cd_threads *pool, size_t n) {
    memcpy(r->dy, r->dx, n * sizeof *r->dy);
    cd_mlp_backward(m, &net->params, run, pool, r->dy, r->tmp);
    cd_ops_bias(r->dx, 1, n, r->tmp);
}

static void backward(cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                     const float *d_out, const float *d_latent) {
    const size_t n = b->n_tok * (size_t)net->spec.width;
    const cd_tlp *t = &net->tlp;
    cd_tlp_run *r = &st->tlp;
    tail_back(net, b, st, pool, d_out, d_latent);
    for (size_t k = t->n; k-- > 0;) block_back(&t->block[k], net, &r->block[k], r, pool, n);
    memcpy(r->dy, r->dx, n * sizeof *r->dy);
    cd_mlp_backward(&t->mix, &net->params, &r->mix, pool, r->dy, r->tmp);
    attend(net, b, st, pool, r->qkv.y[0], true);
    cd_mlp_backward(&t->qkv, &net->params, &r->qkv, pool, r->dqkv, r->tmp);
    cd_ops_bias(r->dx, 1, n, r->tmp);
    cd_mlp_backward(&t->up, &net->params, &r->up, pool, r->dx, NULL);
}

const cd_net_type cd_net_tlp = {"tlp", build, plan, forward, backward};
