/* The LSTM kind: the root's vector from the recursion of lstm.h, then the tail that all networks
 * share. */
#include <string.h>

#include "learner/nn/nn_internal.h"

static void build(cd_net *net) {
    cd_net_config tail = net->spec;
    tail.head_first = tail.head_depth = 0; /* they are the leaf MLP's */
    cd_lstm_build(&net->lstm, &net->params, &net->spec, net->w_tok);
    cd_net_tail_build(&net->tail, &net->params, &tail, net->lstm.w,
                      tail.device ? (size_t)tail.w_dev : 0, net->w_prog);
}

static void plan(const cd_net *net, cd_net_state *st) {
    const size_t n = st->dims.n;
    cd_lstm_plan(&net->lstm, &st->slab, &st->dims, st->train, &st->lstm);
    cd_net_tail_plan(&net->tail, &st->slab, n, n, st->train, &st->tail);
    st->in = cd_slab_floats(&st->slab, n * net->lstm.w);
    st->din = st->train ? cd_slab_floats(&st->slab, n * net->lstm.w) : NULL;
}

/* Adds ln of the iterations of all leaves, so that the network learns the time of one iteration. It
 * is a constant of the batch: backward needs nothing. */
static void add_trips(const cd_net *net, const cd_batch *b, float *out) {
    for (size_t p = 0; p < b->n; p++) {
        float sum;
        cd_ops_lse(b->trips, (const uint32_t[]){b->tok_ptr[p], b->tok_ptr[p + 1]}, 0, 1, 1, 1,
                   &sum);
        out[p * (size_t)net->spec.n_out] += sum / (float)net->spec.temperature;
    }
}

static void forward(const cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                    float *out, float *latent) {
    cd_lstm_forward(&net->lstm, &net->params, &st->lstm, b, pool, st->in);
    cd_net_tail_forward(&net->tail, &net->params, &st->tail, b, pool, st->in, b->n, net->lstm.w,
                        NULL, out);
    if (net->spec.trips) add_trips(net, b, out);
    if (latent) memcpy(latent, st->tail.h, b->n * cd_net_n_latent(net) * sizeof *latent);
}

static void backward(cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                     const float *d_out, const float *d_latent) {
    cd_net_tail_begin_backward(&st->tail, b->n * cd_net_n_latent(net), d_latent);
    cd_net_tail_backward(&net->tail, &net->params, &st->tail, b, pool, d_out, st->din);
    cd_lstm_backward(&net->lstm, &net->params, &st->lstm, b, pool, st->din);
}

const cd_net_type cd_net_lstm = {"lstm", build, plan, forward, backward};
