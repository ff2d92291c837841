/* Gradients of the recursion, from the roots down. Gradients of the gates take the place of their
 * values (z), so the products for the weights come at the end over all rows of the batch. */
#include <string.h>

#include "learner/nn/nn_internal.h"

typedef struct {
    const cd_lstm *l;
    cd_params *p;
    cd_lstm_run *r;
    const cd_batch *b;
    const float *d_out;
} pass;

/* Rows of a step, for the width: gradients of what they came from, of the h and c they
 * began with. Sequences of a tile use its nodes' room. */
typedef struct {
    float *dx, *dh, *dc;
} room;

/* Gradients of h and c behind step s: of sequences that end there from the merge MLP,
 * of the others the step behind has left them. */
static void last_steps(const pass *a, const cd_lstm_group *g, size_t s, const room *m) {
    const size_t w = a->l->w;
    for (size_t i = s + 1 < g->end ? g->steps->width[s + 1] : 0; i < g->steps->width[s]; i++) {
        memcpy(m->dh + i * w, a->r->dm + cd_lstm_node(g, i) * 2 * w + g->column, w * sizeof *m->dh);
        memset(m->dc + i * w, 0, w * sizeof *m->dc);
    }
}

/* To where the rows came from. As somebody's child a row is shown once and this is the
 * first to reach its source; as a leaf of its own node it comes second. */
static void give(const pass *a, const cd_lstm_group *g, size_t s, const room *m) {
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
            cd_ops_axpy(dv, 1.0f / (float)cd_lstm_children(g, i),
                        a->r->dv + (a->b->n_tok + g->node + i) * w, w);
    }
}

/* Backward through one step of a group: gates, input, and the state that the step before left. */
static void step(const pass *a, const cd_lstm_group *g, size_t s, const room *m) {
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

static void level(const pass *a, size_t number, float *sums, const room *m) {
    const size_t w = a->l->w, last = a->l->merge.n - 1;
    const cd_lstm_group g = cd_lstm_level(a->l, a->r, &a->b->tree, number);
    cd_mlp_run merge = cd_lstm_merge(a->l, a->r, &g);
    memcpy(merge.dz[last], a->r->dv + (a->b->n_tok + g.node) * w, g.n * w * sizeof *merge.dz[last]);
    cd_mlp_part_backward(&a->l->merge, a->p, &merge, sums, a->r->dm + g.node * 2 * w);
    for (size_t s = g.end; s-- > g.first;) step(a, &g, s, m);
}

/* The levels in the reverse order of forward, then the leaves: their vectors collect gradients from
 * both LSTMs. */
static void tile_backward(void *ctx, size_t tile, int worker) {
    const pass *a = ctx;
    const cd_program_tree *t = &a->b->tree;
    const cd_lstm_group leaves = cd_lstm_leaves(a->l, a->r, t, tile);
    const size_t w = a->l->w, n_sums = cd_mlp_n_sums(&a->l->merge),
                 node = t->level[t->tile_level[tile]] * w;
    const room m = {a->r->dx + node, a->r->dh + node, a->r->dc + node};
    float *sums = a->r->sums + tile * n_sums;
    (void)worker;
    memset(sums, 0, n_sums * sizeof *sums);
    for (size_t p = cd_ops_tile_at(t->n, t->n_tile, tile);
         p < cd_ops_tile_at(t->n, t->n_tile, tile + 1); p++)
        memcpy(a->r->dv + (a->b->n_tok + t->root[p]) * w, a->d_out + p * w, w * sizeof *a->d_out);
    for (size_t k = t->tile_level[tile + 1]; k-- > t->tile_level[tile];) level(a, k, sums, &m);
    for (size_t s = leaves.end; s-- > leaves.first;) step(a, &leaves, s, &m);
}

/* ---- weights of a cell, over all rows ---- */
enum { COLS = 128 };

typedef struct {
    const pass *a;
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

static void cell_weights(const pass *a, const cd_lstm_cell *cell, const cd_lstm_keep *k,
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

void cd_lstm_backward(const cd_lstm *l, cd_params *p, cd_lstm_run *r, const cd_batch *b,
                      cd_threads *pool, const float *d_out) {
    const cd_program_tree *t = &b->tree;
    pass a = {l, p, r, b, d_out};
    cd_ops_each(pool, t->n_tile, tile_backward, &a);
    cell_weights(&a, &l->nodes, &r->nodes, &t->child, pool);
    cell_weights(&a, &l->leaves, &r->leaves, &t->leaf, pool);
    cd_mlp_part_weights(&l->merge, p, &r->merge, pool, r->m, t->n_node, r->sums, t->n_tile);
    cd_mlp_backward(&l->leaf, p, &r->leaf, pool, r->dv, NULL);
}
