/* The MLP kind: the program vector through head and decoder. */
#include <string.h>

#include "learner/nn/nn_internal.h"

static void build(cd_net *net) {
    cd_net_tail_build(&net->tail, &net->params, &net->spec, net->w_prog,
                      net->spec.device ? (size_t)net->spec.w_dev : 0, 0);
}

static void plan(const cd_net *net, cd_net_state *st) {
    cd_net_tail_plan(&net->tail, &st->slab, st->dims.n, st->dims.n, st->train, &st->tail);
}

static void forward(const cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                    float *out, float *latent) {
    cd_net_tail_forward(&net->tail, &net->params, &st->tail, b, pool, b->prog, b->n, b->w_prog,
                        NULL, out);
    if (latent) memcpy(latent, st->tail.h, b->n * cd_net_n_latent(net) * sizeof *latent);
}

static void backward(cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                     const float *d_out, const float *d_latent) {
    cd_net_tail_begin_backward(&st->tail, b->n * cd_net_n_latent(net), d_latent);
    cd_net_tail_backward(&net->tail, &net->params, &st->tail, b, pool, d_out, NULL);
}

const cd_net_type cd_net_mlp = {"mlp", build, plan, forward, backward};
