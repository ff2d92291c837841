/* A network as one interface over its kinds: checks that a batch fits, sets the mode, calls the
 * kind. */
#include <stdio.h>
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

/* What all networks end with: head, side branches for device and program, decoder, output. */

enum { ID_HEAD = 1000, ID_DEV = 1100, ID_PROG = 1200, ID_DECODER = 1300 };

static cd_mlp stack(const cd_net_config *s, uint64_t id) {
    return (cd_mlp){.norm = s->norm, .act = s->act, .dropout = s->dropout_mlp, .id = id};
}

/* Batch norm would turn the vector of the only device of a batch into zeros, and
 * with it whatever a device could tell: layer norm takes its place. */
static void build_side(cd_mlp *m, cd_params *p, const cd_net_config *s, const char *name, size_t in,
                       uint64_t id) {
    *m = stack(s, id);
    if (m->norm == CD_NORM_BATCH) m->norm = CD_NORM_LAYER;
    if (!in) return;
    for (int64_t k = 0; k < s->side_depth; k++, in = (size_t)s->side_width)
        cd_mlp_add(m, p, name, in, (size_t)s->side_width, true);
    cd_mlp_add(m, p, name, in, (size_t)s->embed, true);
}

/* The order of the parts is the order of their tensors in files. */
void cd_net_tail_build(cd_net_tail *t, cd_params *p, const cd_net_config *s, size_t in,
                       size_t w_dev, size_t w_prog) {
    t->head = stack(s, ID_HEAD);
    if (s->head_first) {
        cd_mlp_add(&t->head, p, "head", in, (size_t)s->head_first, false);
        in = (size_t)s->head_first;
    }
    for (int64_t k = 0; k < s->head_depth; k++, in = (size_t)s->head_width)
        cd_mlp_add(&t->head, p, "head", in, (size_t)s->head_width, true);
    cd_mlp_add(&t->head, p, "head", in, (size_t)s->embed, true);
    build_side(&t->dev, p, s, "device", w_dev, ID_DEV);
    build_side(&t->prog, p, s, "program", w_prog, ID_PROG);
    t->decoder = stack(s, ID_DECODER);
    in = (size_t)s->embed;
    for (int64_t k = 0; k < s->decoder_depth; k++, in = (size_t)s->decoder_width)
        cd_mlp_add(&t->decoder, p, "decoder", in, (size_t)s->decoder_width, true);
    cd_params_add_linear(p, "output", in, (size_t)s->n_out, &t->out_w, &t->out_b);
}

void cd_net_tail_plan(const cd_net_tail *t, cd_slab *s, size_t rows, size_t n, bool train,
                      cd_net_tail_run *r) {
    const size_t embed = cd_mlp_out(&t->head), latent = cd_mlp_out(&t->decoder);
    cd_mlp_plan(&t->head, s, rows, train, &r->head);
    cd_mlp_plan(&t->dev, s, n, train, &r->dev);
    cd_mlp_plan(&t->prog, s, n, train, &r->prog);
    cd_mlp_plan(&t->decoder, s, rows, train, &r->decoder);
    r->z = cd_slab_floats(s, rows * embed);
    if (!train) return;
    r->dz = cd_slab_floats(s, rows * embed);
    r->dh = cd_slab_floats(s, rows * latent);
    r->side = cd_slab_floats(s, n * embed);
}

/* ---- forward ---- */
/* z += side, every row of a program the same. */
static void add_side(const cd_net_tail_run *r, const float *side, size_t n, size_t w) {
    if (!r->ptr) {
        cd_ops_bias(r->z, 1, n * w, side);
        return;
    }
    for (size_t p = 0; p < n; p++)
        cd_ops_bias(r->z + r->ptr[p] * w, r->ptr[p + 1] - r->ptr[p], w, side + p * w);
}

/* A side branch has one row a program. Where rows are leaves (head sum), each leaf of a program
 * gets the same. */
void cd_net_tail_forward(const cd_net_tail *t, const cd_params *p, cd_net_tail_run *r,
                         const cd_batch *b, cd_threads *pool, const float *x, size_t rows,
                         size_t in, const uint32_t *ptr, float *out) {
    const size_t embed = cd_mlp_out(&t->head), n_out = p->param[t->out_b].dim[0],
                 latent = cd_mlp_out(&t->decoder);
    r->rows = rows;
    r->ptr = ptr;
    memcpy(r->z, cd_mlp_forward(&t->head, p, &r->head, pool, x, rows, in),
           rows * embed * sizeof *r->z);
    if (t->dev.n)
        add_side(r, cd_mlp_forward(&t->dev, p, &r->dev, pool, b->dev, b->n, b->w_dev), b->n, embed);
    if (t->prog.n)
        add_side(r, cd_mlp_forward(&t->prog, p, &r->prog, pool, b->prog, b->n, b->w_prog), b->n,
                 embed);
    r->h = cd_mlp_forward(&t->decoder, p, &r->decoder, pool, r->z, rows, embed);
    cd_gemm g = {.tb = true,
                 .m = rows,
                 .n = n_out,
                 .k = latent,
                 .a = r->h,
                 .lda = latent,
                 .b = cd_params_value(p, t->out_w),
                 .ldb = latent,
                 .c = out,
                 .ldc = n_out};
    cd_ops_gemm_run(pool, &g, 1);
    cd_ops_bias(out, rows, n_out, cd_params_value(p, t->out_b));
}

/* ---- backward ---- */
/* r->side = dz, summed over the rows of a program. */
static void take_side(const cd_net_tail_run *r, size_t n, size_t w) {
    if (!r->ptr) {
        memcpy(r->side, r->dz, n * w * sizeof *r->side);
        return;
    }
    memset(r->side, 0, n * w * sizeof *r->side);
    for (size_t p = 0; p < n; p++)
        cd_ops_colsum(r->dz + r->ptr[p] * w, r->ptr[p + 1] - r->ptr[p], w, r->side + p * w);
}

static void output_back(const cd_net_tail *t, cd_params *p, cd_net_tail_run *r, cd_threads *pool,
                        const float *d_out) {
    const size_t n_out = p->param[t->out_b].dim[0], latent = cd_mlp_out(&t->decoder);
    const cd_gemm g[2] = {
        cd_ops_linear_dw(d_out, r->h, r->rows, latent, n_out, cd_params_grad(p, t->out_w)),
        {.m = r->rows,
         .n = latent,
         .k = n_out,
         .a = d_out,
         .lda = n_out,
         .b = cd_params_value(p, t->out_w),
         .ldb = latent,
         .c = r->dh,
         .ldc = latent,
         .beta = 1}};
    cd_ops_gemm_run(pool, g, 2);
    cd_ops_colsum(d_out, r->rows, n_out, cd_params_grad(p, t->out_b));
}

void cd_net_tail_begin_backward(cd_net_tail_run *r, size_t n, const float *d_latent) {
    if (d_latent) memcpy(r->dh, d_latent, n * sizeof *r->dh);
    else memset(r->dh, 0, n * sizeof *r->dh);
}

/* The branches were added, so each receives the same gradient dz; those with one row a program its
 * sum over the rows. */
void cd_net_tail_backward(const cd_net_tail *t, cd_params *p, cd_net_tail_run *r, const cd_batch *b,
                          cd_threads *pool, const float *d_out, float *dx) {
    const size_t embed = cd_mlp_out(&t->head);
    if (d_out) output_back(t, p, r, pool, d_out);
    cd_mlp_backward(&t->decoder, p, &r->decoder, pool, r->dh, r->dz);
    if (t->dev.n) {
        take_side(r, b->n, embed);
        cd_mlp_backward(&t->dev, p, &r->dev, pool, r->side, NULL);
    }
    if (t->prog.n) {
        take_side(r, b->n, embed);
        cd_mlp_backward(&t->prog, p, &r->prog, pool, r->side, NULL);
    }
    cd_mlp_backward(&t->head, p, &r->head, pool, r->dz, dx);
}

/* The TLP kind (Zhai et al., ASPLOS 2023): steps of a schedule, each by itself up to `width`, one
 * layer of attention between them, residual blocks, and a score of each step; scores add up. As
 * published, but for the width of the decoder's layers. */

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
