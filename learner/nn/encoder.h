/* encoder -- transformer layers over the leaves of each program.
 *
 *   tok (rows, in) -> [projection] + position -> X_0 -> layer -> X_1 ... -> X_n
 *
 *   post-norm  x1 = LN(x + drop(attention(x)))   x' = LN(x1 + drop(ff(x1)))
 *   pre-norm   x1 = x + drop(attention(LN(x)))   x' = x1 + drop(ff(LN(x1))), LN at the end
 *   ff(x) = drop(act(x W1' + b1)) W2' + b2
 *
 * PyTorch's TransformerEncoderLayer, names of parameters included. Programs do not
 * see each other, so tiles of whole programs go through all layers by themselves;
 * backward meets after each layer for the gradients of its weights. */
#ifndef CD_ENCODER_H
#define CD_ENCODER_H
#include "learner/nn/net.h"
#include "learner/tensor/tensor.h"

enum { CD_ENCODER_MAX = 64, CD_ENCODER_POSITIONS = 512 };

typedef struct cd_encoder_layer { /* numbers of parameters */
    size_t qkv_w, qkv_b, o_w, o_b, w1, b1, w2, b2, g1, s1, g2, s2;
} cd_encoder_layer;

typedef struct cd_encoder {
    size_t n, in, d, heads, ff;
    bool project, pre_norm;
    cd_net_act act;
    cd_net_position position;
    double dropout;
    size_t proj_w, proj_b, last_g, last_s;
    cd_encoder_layer layer[CD_ENCODER_MAX];
    float *table; /* (CD_ENCODER_POSITIONS, d), NULL without positions; owned */
} cd_encoder;

/* What a layer leaves for backward; predicting, all layers share one. */
typedef struct cd_encoder_keep {
    float *x, *n1, *qkv, *att, *hat1, *rstd1, *x1, *n2, *arg, *h, *hat2, *rstd2;
} cd_encoder_keep;

typedef struct cd_encoder_run {
    cd_encoder_keep keep[CD_ENCODER_MAX];
    float *y, *hat, *rstd;               /* (rows, d) output; the last norm's */
    float *dx, *df, *da, *tmp, *dh, *dqkv; /* gradients of one layer */
    float *part;                         /* (tiles, 9d + ff) */
    float *scratch;                      /* (workers, n_scratch) */
    size_t n_scratch;
    uint64_t key;
    bool train;
} cd_encoder_run;

/* Registers the parameters; `in` columns of a token. */
void cd_encoder_build(cd_encoder *e, cd_params *p, const cd_net_config *s, size_t in);
/* The table of positions. Errors: ENOMEM. */
cdmpp_status cd_encoder_positions(cd_encoder *e, cdmpp_err *err);
/* Memory of a run: plans or carves. */
void cd_encoder_plan(const cd_encoder *e, cd_slab *s, const cd_batch_dims *dims, int n_worker, bool train,
                     cd_encoder_run *r);
/* Leaves r->y (b->n_tok, d). */
void cd_encoder_forward(const cd_encoder *e, const cd_params *p, cd_encoder_run *r, const cd_batch *b, cd_threads *pool);
/* r->dx holds the gradient of r->y and is overwritten. */
void cd_encoder_backward(const cd_encoder *e, cd_params *p, cd_encoder_run *r, const cd_batch *b, cd_threads *pool);

/* Tiles of whole programs with about 256 rows. */
typedef struct cd_encoder_tile {
    size_t p0, p1, row, n;
} cd_encoder_tile;
/* Tiles of a batch of n_tok rows; tile t of them. */
size_t cd_encoder_tiles(size_t n_tok);
cd_encoder_tile cd_encoder_tile_at(const cd_batch *b, size_t t);
/* Dropout streams of a layer. */
enum { CD_ENCODER_DROP_WEIGHTS, CD_ENCODER_DROP_ATTENTION, CD_ENCODER_DROP_HIDDEN, CD_ENCODER_DROP_FF, CD_ENCODER_DROP_STREAMS };
enum { CD_ENCODER_COLS = 512 }; /* columns of the hidden layer done at a time, for the cache */
#endif
