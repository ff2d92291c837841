/* The transformer kind: leaves through the encoder, then by one of three heads to a program. */
#include <string.h>

#include "learner/nn/nn_internal.h"

enum { TILE = 64 };

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
} pass;

/* Pooling or flattening a tile of programs, forward or back. */
static void gather_tile(void *ctx, size_t t, int worker) {
    const pass *a = ctx;
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
    pass a = {net, b, st, cd_ops_tiles(b->n, TILE), back};
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
    cd_encoder_backward(&net->enc, &net->params, &st->enc, b, pool);
}

const cd_net_type cd_net_tsf = {"transformer", build, plan, forward, backward};
