/* What the files of learner/nn share among themselves. */
#ifndef CD_LEARNER_NN_INTERNAL_H
#define CD_LEARNER_NN_INTERNAL_H
#include "learner/nn/nn.h"

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

/* ---- parts, for lstm.c ---- */
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
/* The node that a sequence belongs to. */
static inline size_t cd_lstm_node(const cd_lstm_group *g, size_t sequence) {
    return g->own ? g->own[sequence] : g->node + sequence;
}

/* net_internal -- a network in memory: the table of its kinds and the parts that they share. */

typedef struct cd_net_tail_run {
    cd_mlp_run head, dev, prog, decoder;
    float *z;              /* (rows, embed) sum of the branches */
    const float *h;        /* (rows, latent) */
    float *dz, *dh, *side; /* gradients; side (n, embed) */
    size_t rows;
    const uint32_t *ptr; /* rows of a program; NULL: rows are programs */
} cd_net_tail_run;

/* Registers the parameters. in: columns of x; w_dev, w_prog: widths of the side branches, 0:
 * none. */
void cd_net_tail_build(cd_net_tail *t, cd_params *p, const cd_net_config *s, size_t in,
                       size_t w_dev, size_t w_prog);
/* Memory for `rows` rows and n programs: plans or carves. */
void cd_net_tail_plan(const cd_net_tail *t, cd_slab *s, size_t rows, size_t n, bool train,
                      cd_net_tail_run *r);
/* x (rows, in) -> out (rows, n_out); ptr: rows of each program of b, or NULL. */
void cd_net_tail_forward(const cd_net_tail *t, const cd_params *p, cd_net_tail_run *r,
                         const cd_batch *b, cd_threads *pool, const float *x, size_t rows,
                         size_t in, const uint32_t *ptr, float *out);
/* r->dh, n numbers, from what backward was given for the latents; NULL: zeros. */
void cd_net_tail_begin_backward(cd_net_tail_run *r, size_t n, const float *d_latent);
/* d_out (rows, n_out) NULL: zeros. r->dh (rows, latent) holds the gradient from the
 * latent. dx (rows, in), NULL: not wanted. */
void cd_net_tail_backward(const cd_net_tail *t, cd_params *p, cd_net_tail_run *r, const cd_batch *b,
                          cd_threads *pool, const float *d_out, float *dx);

/* ---- tlp: tokens -> up -> attention + x -> blocks, each + x -> a score of each step ---- */
enum { CD_TLP_MAX = 8 }; /* residual blocks */
typedef struct cd_tlp {
    cd_mlp up, qkv, mix, block[CD_TLP_MAX]; /* mix: the linear layer behind the heads */
    size_t n;
} cd_tlp;
typedef struct cd_tlp_run {
    cd_mlp_run up, qkv, mix, block[CD_TLP_MAX];
    /* (rows, d) what goes into each block, and comes out of the last */
    float *x[CD_TLP_MAX + 1];
    float *att;                  /* (rows, d) */
    float *dx, *dy, *tmp, *dqkv; /* gradients; dqkv (rows, 3d) */
    float *scratch;              /* (workers, n_scratch) */
    size_t n_scratch;
} cd_tlp_run;

struct cd_net {
    cd_net_config spec;
    const struct cd_net_type *type;
    cd_params params;
    cd_encoder enc;
    cd_lstm lstm;
    cd_tlp tlp;
    cd_net_tail tail;
    size_t w_tok, w_prog; /* what a batch must have */
};

struct cd_net_state {
    cd_batch_dims dims;
    int n_worker;
    bool train;
    cd_slab slab;
    cd_encoder_run enc;
    cd_lstm_run lstm;
    cd_tlp_run tlp;
    cd_net_tail_run tail;
    float *in, *din;           /* (n, head input): pooled or flattened leaves, roots */
    uint32_t *arg;             /* (n, width) rows of the maxima */
    float *score, *y, *dscore; /* head sum, tlp: (n_tok, n_out), (n, n_out), (n_tok, n_out) */
};

/* One row per kind; plan is called twice, to count and to carve. */
typedef struct cd_net_type {
    const char *name;
    void (*build)(cd_net *net);
    void (*plan)(const cd_net *net, cd_net_state *st);
    void (*forward)(const cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                    float *out, float *latent);
    void (*backward)(cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                     const float *d_out, const float *d_latent);
} cd_net_type;

extern const cd_net_type cd_net_mlp, cd_net_tsf, cd_net_lstm, cd_net_tlp;
#endif
