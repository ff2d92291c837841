/* A network as one interface over its kinds: checks that a batch fits, sets the mode, calls the
 * kind. */

#include <string.h>

#include "learner/nn/nn_internal.h"

static const cd_net_type *const types[] = {[CD_NET_MLP] = &cd_net_mlp,
                                           [CD_NET_TSF] = &cd_net_tsf,
                                           [CD_NET_LSTM] = &cd_net_lstm,
                                           [CD_NET_TLP] = &cd_net_tlp};

cd_batch_spec cd_net_batch_spec(const cd_net_config *s, const float *device, size_t n_device) {
    const bool dev = s->device && s->w_dev > 0, steps = s->kind == CD_NET_TLP,
               leaves = s->kind == CD_NET_TSF || s->kind == CD_NET_LSTM;
    return (cd_batch_spec){.tokens = leaves || steps,
                           .steps = steps ? (size_t)s->slots : 0,
                           .values = steps ? (size_t)s->values : 0,
                           .log_values = steps && s->log_values,
                           .rows = s->kind == CD_NET_TSF && s->tokens == CD_TOKENS_ROWS,
                           .context = leaves && s->context,
                           .derived = leaves && s->derived,
                           .tree = s->kind == CD_NET_LSTM,
                           .program = s->kind == CD_NET_MLP || s->program,
                           .facts = s->facts,
                           .n_device = dev ? n_device : 0,
                           .w_dev = dev ? (size_t)s->w_dev : 0,
                           .device = dev ? device : NULL};
}

/* ---- life ---- */
/* Numbers of all tensors, before there is room for them. */
static cdmpp_status check_size(const cd_params *p, size_t most, cdmpp_err *err) {
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) n += p->param[i].n;
    return n <= most ? CDMPP_OK
                     : CD_FAIL(err, EMODEL, "expected %zu numbers of weights, found at most %zu", n,
                               most);
}

cdmpp_status cd_net_new(const cd_net_config *s, uint64_t seed, cd_net **out, cdmpp_err *err) {
    return cd_net_new_within(s, seed, SIZE_MAX, out, err);
}

cdmpp_status cd_net_new_within(const cd_net_config *s, uint64_t seed, size_t most, cd_net **out,
                               cdmpp_err *err) {
    *out = NULL;
    CD_TRY(cd_net_config_check(s, err));
    cd_net *net = cd_mem_zalloc(1, sizeof *net);
    if (!net) return CD_FAIL(err, ENOMEM, "network");
    const cd_batch_spec b = cd_net_batch_spec(s, NULL, 0);
    net->spec = *s;
    net->type = types[s->kind];
    net->w_tok = cd_batch_token_width(&b);
    net->w_prog = cd_batch_program_width(&b);
    net->type->build(net);
    cdmpp_status st = check_size(&net->params, most, err);
    if (!st) st = cd_params_layout(&net->params, seed, err);
    if (!st && s->kind == CD_NET_TSF) st = cd_encoder_positions(&net->enc, err);
    if (st) cd_net_free(net);
    else *out = net;
    return st;
}

void cd_net_free(cd_net *net) {
    if (!net) return;
    cd_params_free(&net->params);
    cd_mem_free(net->enc.table);
    cd_mem_free(net);
}

const cd_net_config *cd_net_config_of(const cd_net *net) { return &net->spec; }
cd_params *cd_net_params(cd_net *net) { return &net->params; }
const cd_params *cd_net_params_of(const cd_net *net) { return &net->params; }
size_t cd_net_n_latent(const cd_net *net) { return (size_t)net->spec.decoder_width; }

/* ---- state ---- */
/* The kind's plan runs twice: the first time counts, the second hands out memory. */
cdmpp_status cd_net_state_new(const cd_net *net, const cd_batch_dims *dims, int n_worker,
                              bool train, cd_net_state **out, cdmpp_err *err) {
    *out = NULL;
    cd_net_state *st = cd_mem_zalloc(1, sizeof *st);
    if (!st) return CD_FAIL(err, ENOMEM, "state of a network");
    st->dims = *dims;
    st->n_worker = n_worker;
    st->train = train;
    net->type->plan(net, st);
    const cdmpp_status got = cd_slab_alloc(&st->slab, err);
    if (got) {
        cd_net_state_free(st);
        return got;
    }
    net->type->plan(net, st);
    *out = st;
    return CDMPP_OK;
}

void cd_net_state_free(cd_net_state *st) {
    if (!st) return;
    cd_slab_free(&st->slab);
    cd_mem_free(st);
}

const float *cd_net_state_scores(const cd_net_state *st) { return st->score; }

/* ---- runs ---- */
/* A batch that does not fit would be read out of bounds, so this is checked for every run. */
static cdmpp_status check(const cd_net *net, const cd_batch *b, const cd_net_state *st,
                          const cd_threads *pool, cdmpp_err *err) {
    const cd_batch_spec want = cd_net_batch_spec(&net->spec, NULL, 0);
    if (b->w_tok != net->w_tok || b->w_prog != net->w_prog || b->w_dev != want.w_dev)
        return CD_FAIL(err, EMODEL,
                       "network reads widths %zu, %zu, %zu, the batch has %zu, %zu, %zu",
                       net->w_tok, net->w_prog, want.w_dev, b->w_tok, b->w_prog, b->w_dev);
    if (want.tree && !b->has_tree)
        return CD_FAIL(err, EMODEL, "network reads trees, the batch has none");
    if (b->n > st->dims.n || b->n_tok > st->dims.n_tok || b->max_leaf > st->dims.max_leaf ||
        b->tree.n_node > st->dims.n_node)
        return CD_FAIL(err, ERANGE,
                       "batch of %zu programs, %zu leaves, %zu nodes; room for %zu, %zu, %zu", b->n,
                       b->n_tok, b->tree.n_node, st->dims.n, st->dims.n_tok, st->dims.n_node);
    if (cd_threads_count(pool) > st->n_worker)
        return CD_FAIL(err, ERANGE, "%d threads, room for %d", cd_threads_count(pool),
                       st->n_worker);
    return CDMPP_OK;
}

static void set_mode(cd_net_state *st, bool train, uint64_t key) {
    cd_mlp_run *m[] = {&st->tail.head,    &st->tail.dev,  &st->tail.prog,
                       &st->tail.decoder, &st->lstm.leaf, &st->lstm.merge,
                       &st->tlp.up,       &st->tlp.qkv,   &st->tlp.mix};
    for (size_t k = 0; k < CD_TLP_MAX; k++)
        st->tlp.block[k].train = train, st->tlp.block[k].key = key;
    st->enc.train = train;
    st->enc.key = key;
    for (size_t i = 0; i < sizeof m / sizeof *m; i++) {
        m[i]->train = train;
        m[i]->key = key;
    }
}

cdmpp_status cd_net_predict(const cd_net *net, const cd_batch *b, cd_net_state *st,
                            cd_threads *pool, float *out, float *latent, cdmpp_err *err) {
    CD_TRY(check(net, b, st, pool, err));
    set_mode(st, false, 0);
    if (b->n) net->type->forward(net, b, st, pool, out, latent);
    return CDMPP_OK;
}

cdmpp_status cd_net_forward(cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                            uint64_t key, float *out, float *latent, cdmpp_err *err) {
    CD_TRY(check(net, b, st, pool, err));
    if (!st->train) return CD_FAIL(err, ERANGE, "state has no room for training");
    if (!b->n || (net->spec.norm == CD_NORM_BATCH && b->n < 2))
        return CD_FAIL(err, ERANGE, "%zu programs are too few for a training step", b->n);
    set_mode(st, true, key);
    net->type->forward(net, b, st, pool, out, latent);
    return CDMPP_OK;
}

void cd_net_backward(cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                     const float *d_out, const float *d_latent) {
    net->type->backward(net, b, st, pool, d_out, d_latent);
}

cd_net_layout cd_net_layout_of(const cd_net *net) {
    return (cd_net_layout){&net->spec, &net->params, &net->enc, &net->tail};
}
