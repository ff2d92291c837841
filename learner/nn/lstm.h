/* lstm -- programs from leaves to root, after Tiramisu's cost model: a vector for every
 * leaf, and for every inner node one from those of its children.
 *
 *   token -> leaf MLP -> v(leaf)                                             (width)
 *   node:  v(child 0), v(child 1) ...     -> LSTM "nodes"  -> last h --+
 *                                                                      merge MLP -> v(node)
 *          v(own leaf 0), v(own leaf 1)...-> LSTM "leaves" -> last h --+
 *
 * Children are leaves and inner nodes in the order of the tree. (Tiramisu's first LSTM
 * sees inner nodes alone, and so not whether a leaf comes before them or behind.) A
 * node without leaves of its own has zeros there. With `skip` v(node) is that plus the
 * mean of the children's vectors, without which little of a leaf arrives through 20
 * loops.
 *
 * A tile of programs (program_tree.h) goes up and, in backward, down by itself; products for
 * the weights come at the end, over all rows at once. */
#ifndef CD_LSTM_H
#define CD_LSTM_H
#include "learner/nn/mlp.h"

typedef struct cd_lstm_cell { /* numbers of parameters: (4w, w), (4w, w), (4w) */
    size_t w_ih, w_hh, b;
} cd_lstm_cell;

typedef struct cd_lstm {
    size_t in, w;
    cd_mlp leaf, merge;
    cd_lstm_cell nodes, leaves;
    bool skip;
} cd_lstm;

/* What the rows of one LSTM leave for backward. */
typedef struct cd_lstm_keep {
    float *x, *z, *c, *h; /* (rows, w); z (rows, 4w): gates, then gradients of their arguments */
    float *late;          /* (rows, w) training: the h that steps behind the first began with */
} cd_lstm_keep;

typedef struct cd_lstm_run {
    cd_mlp_run leaf, merge;
    cd_lstm_keep nodes, leaves;
    float *v, *dv;       /* (n_tok + n_node, w) vectors of leaves, then nodes */
    float *m, *dm;       /* (n_node, 2w) input of the merge MLP */
    float *dh, *dc, *dx; /* (n_node, w) of a step, by sequence */
    float *sums;         /* (tiles, those of the merge MLP) */
} cd_lstm_run;

/* Registers the parameters; `in` columns of a token. */
void cd_lstm_build(cd_lstm *l, cd_params *p, const cd_net_config *s, size_t in);
/* Memory of a run: plans or carves. */
void cd_lstm_plan(const cd_lstm *l, cd_slab *s, const cd_batch_dims *dims, bool train, cd_lstm_run *r);
/* out (b->n, w): vectors of the roots. */
void cd_lstm_forward(const cd_lstm *l, const cd_params *p, cd_lstm_run *r, const cd_batch *b, cd_threads *pool, float *out);
/* d_out: gradient of out. */
void cd_lstm_backward(const cd_lstm *l, cd_params *p, cd_lstm_run *r, const cd_batch *b, cd_threads *pool, const float *d_out);

/* ---- parts, for lstm_back.c ---- */
/* Sequences that go through an LSTM side by side: nodes of a level with their children,
 * nodes of a tile with their leaves. */
typedef struct cd_lstm_group {
    const cd_lstm_cell *cell;
    const cd_lstm_keep *keep;
    const cd_steps *steps;
    size_t first, end;   /* its steps */
    const uint32_t *own; /* node of a sequence; NULL: node + sequence */
    size_t node, n;      /* of a level: its nodes */
    size_t column;       /* of the last h in m */
} cd_lstm_group;
/* The children of a level's nodes; the own leaves of a tile's nodes. */
cd_lstm_group cd_lstm_level(const cd_lstm *l, const cd_lstm_run *r, const cd_program_tree *t, size_t level);
cd_lstm_group cd_lstm_leaves(const cd_lstm *l, const cd_lstm_run *r, const cd_program_tree *t, size_t tile);
/* The node that a sequence belongs to. */
static inline size_t cd_lstm_node(const cd_lstm_group *g, size_t sequence) {
    return g->own ? g->own[sequence] : g->node + sequence;
}
/* Children of node i of a level. */
size_t cd_lstm_children(const cd_lstm_group *g, size_t i);
/* The merge MLP at the nodes of a level. */
cd_mlp_run cd_lstm_merge(const cd_lstm *l, const cd_lstm_run *r, const cd_lstm_group *level);
#endif
