/* net_internal -- a network in memory: the table of its kinds and the parts that they share. */
#ifndef CD_NET_INTERNAL_H
#define CD_NET_INTERNAL_H
#include "learner/nn/lstm.h"
#include "learner/nn/net_layout.h"

typedef struct cd_net_tail_run {
    cd_mlp_run head, dev, prog, decoder;
    float *z;             /* (rows, embed) sum of the branches */
    const float *h;       /* (rows, latent) */
    float *dz, *dh, *side; /* gradients; side (n, embed) */
    size_t rows;
    const uint32_t *ptr;  /* rows of a program; NULL: rows are programs */
} cd_net_tail_run;

/* Registers the parameters. in: columns of x; w_dev, w_prog: widths of the side branches, 0: none. */
void cd_net_tail_build(cd_net_tail *t, cd_params *p, const cd_net_config *s, size_t in, size_t w_dev, size_t w_prog);
/* Memory for `rows` rows and n programs: plans or carves. */
void cd_net_tail_plan(const cd_net_tail *t, cd_slab *s, size_t rows, size_t n, bool train, cd_net_tail_run *r);
/* x (rows, in) -> out (rows, n_out); ptr: rows of each program of b, or NULL. */
void cd_net_tail_forward(const cd_net_tail *t, const cd_params *p, cd_net_tail_run *r, const cd_batch *b, cd_threads *pool,
                     const float *x, size_t rows, size_t in, const uint32_t *ptr, float *out);
/* r->dh, n numbers, from what backward was given for the latents; NULL: zeros. */
void cd_net_tail_begin_backward(cd_net_tail_run *r, size_t n, const float *d_latent);
/* d_out (rows, n_out) NULL: zeros. r->dh (rows, latent) holds the gradient from the
 * latent. dx (rows, in), NULL: not wanted. */
void cd_net_tail_backward(const cd_net_tail *t, cd_params *p, cd_net_tail_run *r, const cd_batch *b, cd_threads *pool,
                      const float *d_out, float *dx);

struct cd_net {
    cd_net_config spec;
    const struct cd_net_type *type;
    cd_params params;
    cd_encoder enc;
    cd_lstm lstm;
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
    cd_net_tail_run tail;
    float *in, *din;      /* (n, head input): pooled or flattened leaves, roots */
    uint32_t *arg;        /* (n, width) rows of the maxima */
    float *score, *y, *dscore; /* head sum: (n_tok, n_out), (n, n_out), (n_tok, n_out) */
};

/* One row per kind; plan is called twice, to count and to carve. */
typedef struct cd_net_type {
    const char *name;
    void (*build)(cd_net *net);
    void (*plan)(const cd_net *net, cd_net_state *st);
    void (*forward)(const cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool, float *out, float *latent);
    void (*backward)(cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool, const float *d_out,
                     const float *d_latent);
} cd_net_type;

extern const cd_net_type cd_net_mlp, cd_net_tsf, cd_net_lstm;
#endif
