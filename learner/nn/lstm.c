/* The recursive network over loop nests, forward: the levels of a tile from the leaves to the
 * roots. A level of 64 programs is a few large products, where node by node would be thousands of
 * small ones. */
#include "learner/nn/nn_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

void cd_lstm_build(cd_lstm *l, cd_params *p, const cd_net_config *s, size_t in) {
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

/* Sequences of a level never outnumber its nodes, so gradients of a step use the room of the
 * nodes. */
void cd_lstm_plan(const cd_lstm *l, cd_slab *s, const cd_batch_dims *dims, bool train,
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
cd_lstm_group cd_lstm_level(const cd_lstm *l, const cd_lstm_run *r, const cd_program_tree *t,
                            size_t level) {
    return (cd_lstm_group){.cell = &l->nodes,
                           .keep = &r->nodes,
                           .steps = &t->child,
                           .first = t->child.first[level],
                           .end = t->child.first[level + 1],
                           .node = t->level[level],
                           .n = t->level[level + 1] - t->level[level]};
}

cd_lstm_group cd_lstm_leaves(const cd_lstm *l, const cd_lstm_run *r, const cd_program_tree *t,
                             size_t tile) {
    return (cd_lstm_group){.cell = &l->leaves,
                           .keep = &r->leaves,
                           .steps = &t->leaf,
                           .first = t->leaf.first[tile],
                           .end = t->leaf.first[tile + 1],
                           .own = t->own + t->tile_own[tile],
                           .column = l->w};
}

size_t cd_lstm_children(const cd_lstm_group *g, size_t i) {
    size_t n = 0;
    while (g->first + n < g->end && i < g->steps->width[g->first + n]) n++;
    return n;
}

cd_mlp_run cd_lstm_merge(const cd_lstm *l, const cd_lstm_run *r, const cd_lstm_group *level) {
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
    const cd_lstm_group g = cd_lstm_level(a->l, a->r, &a->b->tree, number);
    cd_mlp_run merge = cd_lstm_merge(a->l, a->r, &g);
    float *v = a->r->v + (a->b->n_tok + g.node) * w;
    for (size_t s = g.first; s < g.end; s++) step(a, &g, s);
    memcpy(v, cd_mlp_forward(&a->l->merge, a->p, &merge, NULL, merge.x, merge.n, merge.in),
           g.n * w * sizeof *v);
    for (size_t i = 0; a->l->skip && i < g.n; i++) {
        const size_t children = cd_lstm_children(&g, i);
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
    const cd_lstm_group leaves = cd_lstm_leaves(a->l, a->r, t, tile);
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

void cd_lstm_forward(const cd_lstm *l, const cd_params *p, cd_lstm_run *r, const cd_batch *b,
                     cd_threads *pool, float *out) {
    pass a = {l, p, r, b, out};
    memcpy(r->v, cd_mlp_forward(&l->leaf, p, &r->leaf, pool, b->tok, b->n_tok, l->in),
           b->n_tok * l->w * sizeof *r->v);
    cd_ops_each(pool, b->tree.n_tile, tile_forward, &a);
}
