/* The recursive network over loop nests, forward: the levels of a tile from the leaves to the
 * roots. A level of 64 programs is a few large products, where node by node would be thousands of
 * small ones. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learner/nn/nn_internal.h"

enum { ID_LEAF = 2000, ID_MERGE = 2100 };

/* ---- parameters ---- */
static void add_cell(cd_lstm_cell *c, cd_params *p, const char *name, size_t w) {
    char full[80];
    const float bound = (float)(1 / sqrt((double)w)); /* PyTorch's rule */
    snprintf(full, sizeof full, "encoder.%s.weight_ih", name);
    c->w_ih = cd_params_add(p, full, 4 * w, w, CD_INIT_UNIFORM, bound);
    snprintf(full, sizeof full, "encoder.%s.weight_hh", name);
    c->w_hh = cd_params_add(p, full, 4 * w, w, CD_INIT_UNIFORM, bound);
    snprintf(full, sizeof full, "encoder.%s.bias", name);
    c->b = cd_params_add(p, full, 4 * w, 0, CD_INIT_UNIFORM, bound);
}

static void add_leaf(cd_lstm *l, cd_params *p, const cd_net_config *s) {
    size_t in = l->in;
    if (s->head_first) {
        cd_mlp_add(&l->leaf, p, "encoder.leaf", in, (size_t)s->head_first, true);
        in = (size_t)s->head_first;
    }
    for (int64_t k = 0; k < s->head_depth; k++, in = (size_t)s->head_width)
        cd_mlp_add(&l->leaf, p, "encoder.leaf", in, (size_t)s->head_width, true);
    cd_mlp_add(&l->leaf, p, "encoder.leaf", in, (size_t)s->ff, true);
    cd_mlp_add(&l->leaf, p, "encoder.leaf", (size_t)s->ff, l->w, true);
}

/* Registers the parameters; `in` columns of a token. */
static void lstm_build(cd_lstm *l, cd_params *p, const cd_net_config *s, size_t in) {
    /* levels differ in size, down to one node: no statistics over their rows */
    const cd_net_norm norm = s->norm == CD_NORM_BATCH ? CD_NORM_LAYER : s->norm;
    *l = (cd_lstm){.in = in, .w = (size_t)s->width, .skip = s->skip};
    l->leaf = (cd_mlp){.norm = s->norm, .act = s->act, .dropout = s->dropout, .id = ID_LEAF};
    l->merge = (cd_mlp){.norm = norm, .act = s->act, .id = ID_MERGE};
    add_leaf(l, p, s);
    add_cell(&l->nodes, p, "nodes", l->w);
    add_cell(&l->leaves, p, "leaves", l->w);
    cd_mlp_add(&l->merge, p, "encoder.merge", 2 * l->w, (size_t)s->ff, true);
    cd_mlp_add(&l->merge, p, "encoder.merge", (size_t)s->ff, l->w, true);
}

/* ---- memory ---- */
static void plan_keep(cd_slab *s, size_t rows, size_t w, bool train, cd_lstm_keep *k) {
    k->x = cd_slab_floats(s, rows * w);
    k->z = cd_slab_floats(s, rows * 4 * w);
    k->c = cd_slab_floats(s, rows * w);
    k->h = cd_slab_floats(s, rows * w);
    k->late = train ? cd_slab_floats(s, rows * w) : NULL;
}

/* Memory of a run: plans or carves.
 *
 * Sequences of a level never outnumber its nodes, so gradients of a step use the room of the
 * nodes. */
static void lstm_plan(const cd_lstm *l, cd_slab *s, const cd_batch_dims *dims, bool train,
                      cd_lstm_run *r) {
    const size_t w = l->w, rows = dims->n_tok + dims->n_node;
    float **of_node[] = {&r->dh, &r->dc, &r->dx};
    cd_mlp_plan(&l->leaf, s, dims->n_tok, train, &r->leaf);
    cd_mlp_plan(&l->merge, s, dims->n_node, train, &r->merge);
    plan_keep(s, rows, w, train, &r->nodes);
    plan_keep(s, dims->n_tok, w, train, &r->leaves);
    r->v = cd_slab_floats(s, rows * w);
    r->m = cd_slab_floats(s, dims->n_node * 2 * w);
    if (!train) return;
    cd_mlp_plan_parts(&l->merge, s, dims->n_node, &r->merge);
    r->dv = cd_slab_floats(s, rows * w);
    r->dm = cd_slab_floats(s, dims->n_node * 2 * w);
    r->sums = cd_slab_floats(s, cd_ops_tiles(dims->n, CD_TREE_TILE) * cd_mlp_n_sums(&l->merge));
    for (size_t k = 0; k < sizeof of_node / sizeof *of_node; k++)
        *of_node[k] = cd_slab_floats(s, dims->n_node * w);
}

/* ---- groups ---- */
/* The children of a level's nodes; the own leaves of a tile's nodes. */
static cd_lstm_group lstm_level(const cd_lstm *l, const cd_lstm_run *r, const cd_program_tree *t,
                                size_t level) {
    return (cd_lstm_group){.cell = &l->nodes,
                           .keep = &r->nodes,
                           .steps = &t->child,
                           .first = t->child.first[level],
                           .end = t->child.first[level + 1],
                           .node = t->level[level],
                           .n = t->level[level + 1] - t->level[level]};
}

static cd_lstm_group lstm_leaves(const cd_lstm *l, const cd_lstm_run *r, const cd_program_tree *t,
                                 size_t tile) {
    return (cd_lstm_group){.cell = &l->leaves,
                           .keep = &r->leaves,
                           .steps = &t->leaf,
                           .first = t->leaf.first[tile],
                           .end = t->leaf.first[tile + 1],
                           .own = t->own + t->tile_own[tile],
                           .column = l->w};
}

/* Children of node i of a level. */
static size_t lstm_children(const cd_lstm_group *g, size_t i) {
    size_t n = 0;
    while (g->first + n < g->end && i < g->steps->width[g->first + n]) n++;
    return n;
}

/* The merge MLP at the nodes of a level. */
static cd_mlp_run lstm_merge(const cd_lstm *l, const cd_lstm_run *r, const cd_lstm_group *level) {
    return cd_mlp_part(&l->merge, &r->merge, r->m + level->node * 2 * l->w, level->node, level->n);
}

/* ---- forward ---- */
typedef struct {
    const cd_lstm *l;
    const cd_params *p;
    cd_lstm_run *r;
    const cd_batch *b;
    float *out;
} pass;

/* The t-th child of all nodes of the group that have one. Nodes with fewer children are behind in
 * the order, so the rows are one run; what ends here goes to the merge MLP's input. */
static void step(const pass *a, const cd_lstm_group *g, size_t s) {
    const cd_lstm_keep *k = g->keep;
    const size_t w = a->l->w, n = g->steps->width[s], at = g->steps->at[s] * w,
                 longer = s + 1 < g->end ? g->steps->width[s + 1] : 0;
    const size_t before = s > g->first ? g->steps->at[s - 1] * w : SIZE_MAX;
    const uint32_t *from = g->steps->row + g->steps->at[s];
    float *z = k->z + 4 * at;
    for (size_t i = 0; i < n; i++)
        memcpy(k->x + at + i * w, a->r->v + (size_t)from[i] * w, w * sizeof *k->x);
    cd_ops_linear(k->x + at, n, w, cd_params_value(a->p, g->cell->w_ih), 4 * w, z);
    if (before != SIZE_MAX)
        cd_ops_gemm(&(cd_gemm){.tb = true,
                               .m = n,
                               .n = 4 * w,
                               .k = w,
                               .a = k->h + before,
                               .lda = w,
                               .b = cd_params_value(a->p, g->cell->w_hh),
                               .ldb = w,
                               .c = z,
                               .ldc = 4 * w,
                               .beta = 1});
    cd_ops_lstm(z, n, w, cd_params_value(a->p, g->cell->b),
                before != SIZE_MAX ? k->c + before : NULL, k->c + at, k->h + at);
    for (size_t i = longer; i < n; i++)
        memcpy(a->r->m + cd_lstm_node(g, i) * 2 * w + g->column, k->h + at + i * w,
               w * sizeof *k->h);
}

/* With `skip`, the mean of the children is added to the merge MLP's output. */
static void level(const pass *a, size_t number) {
    const size_t w = a->l->w;
    const cd_lstm_group g = lstm_level(a->l, a->r, &a->b->tree, number);
    cd_mlp_run merge = lstm_merge(a->l, a->r, &g);
    float *v = a->r->v + (a->b->n_tok + g.node) * w;
    for (size_t s = g.first; s < g.end; s++) step(a, &g, s);
    memcpy(v, cd_mlp_forward(&a->l->merge, a->p, &merge, NULL, merge.x, merge.n, merge.in),
           g.n * w * sizeof *v);
    for (size_t i = 0; a->l->skip && i < g.n; i++) {
        const size_t children = lstm_children(&g, i);
        for (size_t c = 0; c < children; c++)
            cd_ops_axpy(v + i * w, 1.0f / (float)children,
                        a->r->nodes.x + (g.steps->at[g.first + c] + i) * w, w);
    }
}

/* The leaves of all nodes first, in one sequence each; then level by level, for a node needs its
 * children. */
static void tile_forward(void *ctx, size_t tile, int worker) {
    const pass *a = ctx;
    const cd_program_tree *t = &a->b->tree;
    const cd_lstm_group leaves = lstm_leaves(a->l, a->r, t, tile);
    const size_t w = a->l->w, beg = t->tile_level[tile], end = t->tile_level[tile + 1],
                 node = t->level[beg];
    (void)worker;
    memset(a->r->m + node * 2 * w, 0, (t->level[end] - node) * 2 * w * sizeof *a->r->m);
    for (size_t s = leaves.first; s < leaves.end; s++) step(a, &leaves, s);
    for (size_t k = beg; k < end; k++) level(a, k);
    for (size_t p = cd_ops_tile_at(t->n, t->n_tile, tile);
         p < cd_ops_tile_at(t->n, t->n_tile, tile + 1); p++)
        memcpy(a->out + p * w, a->r->v + (a->b->n_tok + t->root[p]) * w, w * sizeof *a->out);
}

/* out (b->n, w): vectors of the roots. */
static void lstm_forward(const cd_lstm *l, const cd_params *p, cd_lstm_run *r, const cd_batch *b,
                         cd_threads *pool, float *out) {
    pass a = {l, p, r, b, out};
    memcpy(r->v, cd_mlp_forward(&l->leaf, p, &r->leaf, pool, b->tok, b->n_tok, l->in),
           b->n_tok * l->w * sizeof *r->v);
    cd_ops_each(pool, b->tree.n_tile, tile_forward, &a);
}

/* Gradients of the recursion, from the roots down. Gradients of the gates take the place of their
 * values (z), so the products for the weights come at the end over all rows of the batch. */

typedef struct {
    const cd_lstm *l;
    cd_params *p;
    cd_lstm_run *r;
    const cd_batch *b;
    const float *d_out;
} pass_back;

/* Rows of a step, for the width: gradients of what they came from, of the h and c they
 * began with. Sequences of a tile use its nodes' room. */
typedef struct {
    float *dx, *dh, *dc;
} room;

/* Gradients of h and c behind step s: of sequences that end there from the merge MLP,
 * of the others the step behind has left them. */
static void last_steps(const pass_back *a, const cd_lstm_group *g, size_t s, const room *m) {
    const size_t w = a->l->w;
    for (size_t i = s + 1 < g->end ? g->steps->width[s + 1] : 0; i < g->steps->width[s]; i++) {
        memcpy(m->dh + i * w, a->r->dm + cd_lstm_node(g, i) * 2 * w + g->column, w * sizeof *m->dh);
        memset(m->dc + i * w, 0, w * sizeof *m->dc);
    }
}

/* To where the rows came from. As somebody's child a row is shown once and this is the
 * first to reach its source; as a leaf of its own node it comes second. */
static void give(const pass_back *a, const cd_lstm_group *g, size_t s, const room *m) {
    const size_t w = a->l->w;
    const uint32_t *to = g->steps->row + g->steps->at[s];
    for (size_t i = 0; i < g->steps->width[s]; i++) {
        float *dv = a->r->dv + (size_t)to[i] * w;
        if (g->own) {
            cd_ops_bias(dv, 1, w, m->dx + i * w);
            continue;
        }
        memcpy(dv, m->dx + i * w, w * sizeof *dv);
        if (a->l->skip)
            cd_ops_axpy(dv, 1.0f / (float)lstm_children(g, i),
                        a->r->dv + (a->b->n_tok + g->node + i) * w, w);
    }
}

/* Backward through one step of a group: gates, input, and the state that the step before left. */
static void step_back(const pass_back *a, const cd_lstm_group *g, size_t s, const room *m) {
    const cd_lstm_keep *k = g->keep;
    const size_t w = a->l->w, n = g->steps->width[s], at = g->steps->at[s] * w;
    const bool first = s == g->first;
    const size_t before = first ? 0 : g->steps->at[s - 1] * w;
    float *dz = k->z + 4 * at;
    last_steps(a, g, s, m);
    cd_ops_lstm_back(dz, n, w, first ? NULL : k->c + before, k->c + at, m->dh, m->dc);
    cd_ops_linear_dx(dz, n, w, cd_params_value(a->p, g->cell->w_ih), 4 * w, 0, m->dx);
    give(a, g, s, m);
    if (first) return;
    cd_ops_linear_dx(dz, n, w, cd_params_value(a->p, g->cell->w_hh), 4 * w, 0, m->dh);
    memcpy(k->late + at - g->steps->n_first * w, k->h + before, n * w * sizeof *k->h);
}

static void level_back(const pass_back *a, size_t number, float *sums, const room *m) {
    const size_t w = a->l->w, last = a->l->merge.n - 1;
    const cd_lstm_group g = lstm_level(a->l, a->r, &a->b->tree, number);
    cd_mlp_run merge = lstm_merge(a->l, a->r, &g);
    memcpy(merge.dz[last], a->r->dv + (a->b->n_tok + g.node) * w, g.n * w * sizeof *merge.dz[last]);
    cd_mlp_part_backward(&a->l->merge, a->p, &merge, sums, a->r->dm + g.node * 2 * w);
    for (size_t s = g.end; s-- > g.first;) step_back(a, &g, s, m);
}

/* The levels in the reverse order of forward, then the leaves: their vectors collect gradients from
 * both LSTMs. */
static void tile_backward(void *ctx, size_t tile, int worker) {
    const pass_back *a = ctx;
    const cd_program_tree *t = &a->b->tree;
    const cd_lstm_group leaves = lstm_leaves(a->l, a->r, t, tile);
    const size_t w = a->l->w, n_sums = cd_mlp_n_sums(&a->l->merge),
                 node = t->level[t->tile_level[tile]] * w;
    const room m = {a->r->dx + node, a->r->dh + node, a->r->dc + node};
    float *sums = a->r->sums + tile * n_sums;
    (void)worker;
    memset(sums, 0, n_sums * sizeof *sums);
    for (size_t p = cd_ops_tile_at(t->n, t->n_tile, tile);
         p < cd_ops_tile_at(t->n, t->n_tile, tile + 1); p++)
        memcpy(a->r->dv + (a->b->n_tok + t->root[p]) * w, a->d_out + p * w, w * sizeof *a->d_out);
    for (size_t k = t->tile_level[tile + 1]; k-- > t->tile_level[tile];) level_back(a, k, sums, &m);
    for (size_t s = leaves.end; s-- > leaves.first;) step_back(a, &leaves, s, &m);
}

/* ---- weights of a cell, over all rows ---- */
enum { COLS = 128 };

typedef struct {
    const pass_back *a;
    const cd_lstm_cell *cell;
    const cd_lstm_keep *keep;
    const cd_steps *steps;
    size_t tiles;
} weights;

static void bias_tile(void *ctx, size_t tile, int worker) {
    const weights *q = ctx;
    const size_t w = 4 * q->a->l->w, c = cd_ops_tile_at(w, q->tiles, tile),
                 n = cd_ops_tile_at(w, q->tiles, tile + 1) - c;
    float *db = cd_params_grad(q->a->p, q->cell->b) + c;
    (void)worker;
    for (size_t i = 0; i < q->steps->n_row; i++) cd_ops_bias(db, 1, n, q->keep->z + i * w + c);
}

static void cell_weights(const pass_back *a, const cd_lstm_cell *cell, const cd_lstm_keep *k,
                         const cd_steps *s, cd_threads *pool) {
    const size_t w = a->l->w, late = s->n_row - s->n_first;
    const cd_gemm g[2] = {
        cd_ops_linear_dw(k->z, k->x, s->n_row, w, 4 * w, cd_params_grad(a->p, cell->w_ih)),
        cd_ops_linear_dw(k->z + 4 * s->n_first * w, k->late, late, w, 4 * w,
                         cd_params_grad(a->p, cell->w_hh))};
    weights q = {a, cell, k, s, cd_ops_tiles(4 * w, COLS)};
    cd_ops_gemm_run(pool, g, late ? 2 : 1);
    cd_ops_each(pool, q.tiles, bias_tile, &q);
}

/* d_out: gradient of out. */
static void lstm_backward(const cd_lstm *l, cd_params *p, cd_lstm_run *r, const cd_batch *b,
                          cd_threads *pool, const float *d_out) {
    const cd_program_tree *t = &b->tree;
    pass_back a = {l, p, r, b, d_out};
    cd_ops_each(pool, t->n_tile, tile_backward, &a);
    cell_weights(&a, &l->nodes, &r->nodes, &t->child, pool);
    cell_weights(&a, &l->leaves, &r->leaves, &t->leaf, pool);
    cd_mlp_part_weights(&l->merge, p, &r->merge, pool, r->m, t->n_node, r->sums, t->n_tile);
    cd_mlp_backward(&l->leaf, p, &r->leaf, pool, r->dv, NULL);
}

/* The LSTM kind: the root's vector from the recursion of lstm.h, then the tail that all networks
 * share. */

static void build(cd_net *net) {
    cd_net_config tail = net->spec;
    tail.head_first = tail.head_depth = 0; /* they are the leaf MLP's */
    lstm_build(&net->lstm, &net->params, &net->spec, net->w_tok);
    cd_net_tail_build(&net->tail, &net->params, &tail, net->lstm.w,
                      tail.device ? (size_t)tail.w_dev : 0, net->w_prog);
}

static void plan(const cd_net *net, cd_net_state *st) {
    const size_t n = st->dims.n;
    lstm_plan(&net->lstm, &st->slab, &st->dims, st->train, &st->lstm);
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
    lstm_forward(&net->lstm, &net->params, &st->lstm, b, pool, st->in);
    cd_net_tail_forward(&net->tail, &net->params, &st->tail, b, pool, st->in, b->n, net->lstm.w,
                        NULL, out);
    if (net->spec.trips) add_trips(net, b, out);
    if (latent) memcpy(latent, st->tail.h, b->n * cd_net_n_latent(net) * sizeof *latent);
}

static void backward(cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                     const float *d_out, const float *d_latent) {
    cd_net_tail_begin_backward(&st->tail, b->n * cd_net_n_latent(net), d_latent);
    cd_net_tail_backward(&net->tail, &net->params, &st->tail, b, pool, d_out, st->din);
    lstm_backward(&net->lstm, &net->params, &st->lstm, b, pool, st->din);
}

const cd_net_type cd_net_lstm = {"lstm", build, plan, forward, backward};
