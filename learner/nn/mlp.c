/* A stack of linear layers with norm, activation and dropout. Rows go in tiles over the pool; batch
 * norm needs all rows, so its second half goes in tiles of columns. */
#include <stdio.h>
#include <string.h>

#include "learner/nn/nn.h"
#include "learner/nn/nn_internal.h"

/* The MLP kind: the program vector through head and decoder. */

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

enum { TILE = 128 };

/* Every layer has the parameters of its norm, and only batch norm has running statistics. */
void cd_mlp_add(cd_mlp *m, cd_params *p, const char *prefix, size_t in, size_t out, bool act) {
    cd_mlp_layer *l = &m->layer[m->n];
    char name[48], norm[80];
    *l = (cd_mlp_layer){.in = in, .out = out, .act = act};
    snprintf(name, sizeof name, "%s.%zu", prefix, m->n++);
    cd_params_add_linear(p, name, in, out, &l->w, &l->b);
    if (m->norm == CD_NORM_NONE) return;
    snprintf(norm, sizeof norm, "%s.norm.weight", name);
    l->gain = cd_params_add(p, norm, out, 0, CD_INIT_ONE, 0);
    snprintf(norm, sizeof norm, "%s.norm.bias", name);
    l->shift = cd_params_add(p, norm, out, 0, CD_INIT_ZERO, 0);
    if (m->norm != CD_NORM_BATCH) return;
    snprintf(norm, sizeof norm, "%s.norm.running_mean", name);
    l->mean = cd_params_add_stat(p, norm, out, CD_INIT_ZERO);
    snprintf(norm, sizeof norm, "%s.norm.running_var", name);
    l->var = cd_params_add_stat(p, norm, out, CD_INIT_ONE);
}

size_t cd_mlp_out(const cd_mlp *m) { return m->layer[m->n - 1].out; }

static size_t widest(const cd_mlp *m) {
    size_t w = 0;
    for (size_t k = 0; k < m->n; k++) w = m->layer[k].out > w ? m->layer[k].out : w;
    return w;
}

/* Predicting, layers alternate between two buffers that are as wide as the widest layer. */
void cd_mlp_plan(const cd_mlp *m, cd_slab *s, size_t n, bool train, cd_mlp_run *r) {
    const size_t wide = widest(m);
    if (!m->n) return;
    r->train = train;
    for (int i = 0; i < 2; i++) r->d[i] = cd_slab_floats(s, n * wide);
    r->part = cd_slab_floats(s, cd_ops_tiles(n, TILE) * 3 * wide);
    for (size_t k = 0; k < m->n; k++) {
        const size_t out = m->layer[k].out, normed = m->norm != CD_NORM_NONE,
                     gelu = m->act == CD_ACT_GELU;
        r->rstd[k] = cd_slab_floats(s, n > out ? n : out);
        r->y[k] = train ? cd_slab_floats(s, n * out) : r->d[k % 2];
        r->hat[k] = train && normed ? cd_slab_floats(s, n * out) : NULL;
        r->arg[k] = train && gelu ? cd_slab_floats(s, n * out) : NULL;
    }
}

/* ---- one layer over tiles of rows, then, for batch norm, of columns ---- */
typedef struct {
    const cd_mlp *m;
    const cd_params *p;
    cd_mlp_run *r;
    size_t k, tiles;
    const float *x; /* (n, in) */
    float *dy;
    cd_dropout drop;
} pass;

static void activate(const pass *a, size_t row, size_t n, size_t col, size_t w, const float *b) {
    const cd_mlp_layer *l = &a->m->layer[a->k];
    const size_t at = row * l->out + col;
    float *y = a->r->y[a->k] + at, *arg = a->r->arg[a->k];
    if (!l->act && b) cd_ops_bias(y, n, w, b);
    else if (l->act && a->m->act == CD_ACT_GELU)
        cd_ops_gelu(y, arg ? arg + at : NULL, n, w, l->out, b, row, col, &a->drop);
    else if (l->act && a->m->act == CD_ACT_ELU) cd_ops_elu(y, n, w, l->out, b, row, col, &a->drop);
    else if (l->act) cd_ops_relu(y, n, w, l->out, b, row, col, &a->drop);
}

/* The linear part and, but for batch norm in training, all that follows for a tile of rows. A
 * flattened batch may be narrower than the layer's input: the missing columns are zeros, so their
 * weights are skipped (ldb). */
static void rows_forward(void *ctx, size_t t, int worker) {
    const pass *a = ctx;
    cd_mlp_run *r = a->r;
    const cd_mlp_layer *l = &a->m->layer[a->k];
    const size_t beg = cd_ops_tile_at(r->n, a->tiles, t),
                 n = cd_ops_tile_at(r->n, a->tiles, t + 1) - beg;
    const size_t in = a->k ? l->in : r->in, at = beg * l->out;
    const float *b = cd_params_value(a->p, l->b), *g = cd_params_value(a->p, l->gain),
                *s = cd_params_value(a->p, l->shift);
    float *h = a->m->norm == CD_NORM_NONE || !r->train ? r->y[a->k] : r->hat[a->k],
          *part = r->part + t * 3 * l->out;
    (void)worker;
    cd_ops_gemm(&(cd_gemm){.tb = true,
                           .m = n,
                           .n = l->out,
                           .k = in,
                           .a = a->x + beg * in,
                           .lda = in,
                           .b = cd_params_value(a->p, l->w),
                           .ldb = l->in,
                           .c = h + at,
                           .ldc = l->out});
    if (a->m->norm == CD_NORM_NONE) {
        activate(a, beg, n, 0, l->out, b);
        return;
    }
    cd_ops_bias(h + at, n, l->out, b);
    if (a->m->norm == CD_NORM_LAYER)
        cd_ops_layernorm(h + at, n, l->out, g, s, r->rstd[a->k] + beg, r->y[a->k] + at);
    else if (r->train) return; /* columns follow */
    else
        cd_ops_batchnorm_eval(h + at, n, l->out, g, s, cd_params_value(a->p, l->mean),
                              cd_params_value(a->p, l->var), part, part + l->out);
    activate(a, beg, n, 0, l->out, NULL);
}

static size_t columns_end(size_t c, size_t w) { return w - c < CD_OPS_COLS ? w : c + CD_OPS_COLS; }

static void columns_forward(void *ctx, size_t t, int worker) {
    const pass *a = ctx;
    cd_mlp_run *r = a->r;
    const cd_mlp_layer *l = &a->m->layer[a->k];
    const size_t c = t * CD_OPS_COLS, end = columns_end(c, l->out);
    (void)worker;
    cd_ops_batchnorm(r->hat[a->k], r->n, l->out, c, end, cd_params_value(a->p, l->gain),
                     cd_params_value(a->p, l->shift), r->rstd[a->k], cd_params_value(a->p, l->mean),
                     cd_params_value(a->p, l->var), r->y[a->k]);
    activate(a, 0, r->n, c, end - c, NULL);
}

static cd_dropout dropout(const cd_mlp *m, const cd_mlp_run *r, size_t k) {
    return cd_ops_drop(r->train && m->layer[k].act ? m->dropout : 0, r->key, m->id + k);
}

static bool by_columns(const cd_mlp *m, const cd_mlp_run *r) {
    return m->norm == CD_NORM_BATCH && r->train;
}

float *cd_mlp_forward(const cd_mlp *m, const cd_params *p, cd_mlp_run *r, cd_threads *pool,
                      const float *x, size_t n, size_t in) {
    r->n = n;
    r->in = in;
    r->x = x;
    for (size_t k = 0; k < m->n; k++) {
        const size_t tiles = cd_ops_tiles(n, TILE), out = m->layer[k].out;
        pass a = {.m = m,
                  .p = p,
                  .r = r,
                  .k = k,
                  .tiles = tiles,
                  .x = k ? r->y[k - 1] : x,
                  .drop = dropout(m, r, k)};
        cd_ops_each(pool, tiles, rows_forward, &a);
        if (by_columns(m, r))
            cd_ops_each(pool, (out + CD_OPS_COLS - 1) / CD_OPS_COLS, columns_forward, &a);
    }
    return r->y[m->n - 1];
}

/* ---- backward ---- */
/* The gradient before the activation; sum (NULL: not wanted) += its columns. */
static void deactivate(const pass *a, size_t row, size_t n, float *sum) {
    const cd_mlp_layer *l = &a->m->layer[a->k];
    const size_t at = row * l->out;
    float *dy = a->dy + at;
    if (!l->act && sum) cd_ops_colsum(dy, n, l->out, sum);
    else if (l->act && a->m->act == CD_ACT_GELU)
        cd_ops_gelu_back(dy, a->r->arg[a->k] + at, n, l->out, l->out, row, 0, &a->drop, sum);
    else if (l->act && a->m->act == CD_ACT_ELU)
        cd_ops_elu_back(dy, a->r->y[a->k] + at, n, l->out, l->out, &a->drop, sum);
    else if (l->act) cd_ops_relu_back(dy, a->r->y[a->k] + at, n, l->out, l->out, &a->drop, sum);
}

/* n rows; sums (3w) of bias, gain, shift +=. */
static void rows_back(const pass *a, size_t beg, size_t n, float *sums) {
    const cd_mlp_layer *l = &a->m->layer[a->k];
    const size_t w = l->out;
    deactivate(a, beg, n, a->m->norm == CD_NORM_NONE ? sums : NULL);
    if (a->m->norm != CD_NORM_LAYER) return;
    cd_ops_layernorm_back(a->dy + beg * w, a->r->hat[a->k] + beg * w, n, w,
                          cd_params_value(a->p, l->gain), a->r->rstd[a->k] + beg, sums + w,
                          sums + 2 * w);
    cd_ops_colsum(a->dy + beg * w, n, w, sums);
}

static void rows_backward(void *ctx, size_t t, int worker) {
    const pass *a = ctx;
    const size_t w = a->m->layer[a->k].out, beg = cd_ops_tile_at(a->r->n, a->tiles, t);
    float *part = a->r->part + t * 3 * w;
    (void)worker;
    memset(part, 0, 3 * w * sizeof *part);
    rows_back(a, beg, cd_ops_tile_at(a->r->n, a->tiles, t + 1) - beg, part);
}

static void columns_backward(void *ctx, size_t t, int worker) {
    const pass *a = ctx;
    const cd_mlp_layer *l = &a->m->layer[a->k];
    const size_t c = t * CD_OPS_COLS;
    (void)worker;
    cd_ops_batchnorm_back(a->dy, a->r->hat[a->k], a->r->n, l->out, c, columns_end(c, l->out),
                          cd_params_value(a->p, l->gain), a->r->rstd[a->k],
                          cd_params_grad(a->p, l->gain), cd_params_grad(a->p, l->shift));
}

/* Tiles in order, `step` floats apart: the same sums for any pool. A bias in front of
 * batch norm has no gradient, for the norm takes the mean away again. */
static void reduce(const cd_mlp *m, size_t k, cd_params *p, const float *part, size_t step,
                   size_t tiles) {
    const cd_mlp_layer *l = &m->layer[k];
    if (m->norm == CD_NORM_BATCH) return;
    for (size_t t = 0; t < tiles; t++, part += step) {
        cd_ops_colsum(part, 1, l->out, cd_params_grad(p, l->b));
        if (m->norm == CD_NORM_NONE) continue;
        cd_ops_colsum(part + l->out, 1, l->out, cd_params_grad(p, l->gain));
        cd_ops_colsum(part + 2 * l->out, 1, l->out, cd_params_grad(p, l->shift));
    }
}

static void products(const pass *a, cd_threads *pool, float *dx) {
    const cd_mlp_layer *l = &a->m->layer[a->k];
    const size_t n = a->r->n, in = a->k ? l->in : a->r->in;
    cd_gemm g[2] = {cd_ops_linear_dw(a->dy, a->x, n, in, l->out, cd_params_grad(a->p, l->w)),
                    {.m = n,
                     .n = in,
                     .k = l->out,
                     .a = a->dy,
                     .lda = l->out,
                     .b = cd_params_value(a->p, l->w),
                     .ldb = l->in,
                     .c = dx,
                     .ldc = in}};
    g[0].ldc = l->in;
    cd_ops_gemm_run(pool, g, dx ? 2 : 1);
}

/* Gradients of two neighbouring layers alternate between two buffers. */
void cd_mlp_backward(const cd_mlp *m, cd_params *p, cd_mlp_run *r, cd_threads *pool, float *dy,
                     float *dx) {
    for (size_t k = m->n; k-- > 0;) {
        const size_t tiles = cd_ops_tiles(r->n, TILE), out = m->layer[k].out;
        pass a = {.m = m,
                  .p = p,
                  .r = r,
                  .k = k,
                  .tiles = tiles,
                  .dy = dy,
                  .x = k ? r->y[k - 1] : r->x,
                  .drop = dropout(m, r, k)};
        cd_ops_each(pool, tiles, rows_backward, &a);
        if (by_columns(m, r))
            cd_ops_each(pool, (out + CD_OPS_COLS - 1) / CD_OPS_COLS, columns_backward, &a);
        reduce(m, k, p, r->part, 3 * out, tiles);
        products(&a, pool, k ? r->d[k % 2] : dx);
        dy = r->d[k % 2];
    }
}

/* ---- in parts ---- */
void cd_mlp_plan_parts(const cd_mlp *m, cd_slab *s, size_t n, cd_mlp_run *r) {
    for (size_t k = 0; k < m->n; k++) r->dz[k] = cd_slab_floats(s, n * m->layer[k].out);
}

/* All arrays move to the first row of the part. */
cd_mlp_run cd_mlp_part(const cd_mlp *m, const cd_mlp_run *r, const float *x, size_t row, size_t n) {
    const size_t wide = widest(m);
    cd_mlp_run q = *r;
    q.x = x;
    q.n = n;
    q.in = m->layer[0].in;
    for (size_t k = 0; k < m->n; k++) {
        const size_t out = m->layer[k].out;
        /* scratch that layers share is as wide as the widest */
        q.y[k] += row * (q.y[k] == r->d[k % 2] ? wide : out);
        if (q.hat[k]) q.hat[k] += row * out;
        if (q.arg[k]) q.arg[k] += row * out;
        if (q.dz[k]) q.dz[k] += row * out;
        q.rstd[k] += row;
    }
    return q;
}

size_t cd_mlp_n_sums(const cd_mlp *m) {
    size_t n = 0;
    for (size_t k = 0; k < m->n; k++) n += 3 * m->layer[k].out;
    return n;
}

void cd_mlp_part_backward(const cd_mlp *m, const cd_params *p, cd_mlp_run *part, float *sums,
                          float *dx) {
    sums += cd_mlp_n_sums(m);
    for (size_t k = m->n; k-- > 0;) {
        const cd_mlp_layer *l = &m->layer[k];
        const pass a = {
            .m = m, .p = p, .r = part, .k = k, .dy = part->dz[k], .drop = dropout(m, part, k)};
        rows_back(&a, 0, part->n, sums -= 3 * l->out);
        cd_ops_linear_dx(part->dz[k], part->n, l->in, cd_params_value(p, l->w), l->out, 0,
                         k ? part->dz[k - 1] : dx);
    }
}

void cd_mlp_part_weights(const cd_mlp *m, cd_params *p, const cd_mlp_run *r, cd_threads *pool,
                         const float *x, size_t n, const float *sums, size_t n_part) {
    const size_t step = cd_mlp_n_sums(m);
    cd_gemm g[CD_MLP_MAX];
    for (size_t k = 0; k < m->n; k++) {
        const cd_mlp_layer *l = &m->layer[k];
        g[k] = cd_ops_linear_dw(r->dz[k], k ? r->y[k - 1] : x, n, l->in, l->out,
                                cd_params_grad(p, l->w));
        reduce(m, k, p, sums, step, n_part);
        sums += 3 * l->out;
    }
    cd_ops_gemm_run(pool, g, m->n);
}
