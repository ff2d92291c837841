/* The door of learner/nn: other rooms include this header and no other of the room.
 *
 * Neural networks: a perceptron, a transformer, a tree LSTM, and TLP. They take a batch
 * (learner/inputs) and give numbers for each program; learner/fit trains them with the gradients
 * that they compute, learner/model applies them, learner/export reads their parameters. */
#ifndef CD_LEARNER_NN_DOOR_H
#define CD_LEARNER_NN_DOOR_H
#include "learner/inputs/inputs.h"

/* net -- neural cost models: a batch in, numbers per program out, and back.
 *
 *   mlp          prog ----------------------------> head --+
 *   transformer  tok -> projection (+ position)            |
 *                 -> layers of attention -> pool/         -> head --+--> embed
 *                    flatten (or each token by itself)              |
 *   lstm         tok -> leaf MLP -> up the tree -> root -> linear --+
 *   tlp          tok -> MLP up to width -> attention -> residual blocks -> head ... out
 *                 for every step by itself; out is the sum, latent the mean
 *   all          dev  -> device MLP --------------------------------+
 *                prog -> program MLP (not mlp; if wanted) ----------+
 *                embed -> decoder = latent -> linear = out (n, n_out)
 *   prog: a summary of the rows, facts, or both
 *
 *   head flatten   one set of weights per slot, slots leaves; further leaves add to
 *                  the last slot (CDMPP's, but one model for all leaf counts)
 *        pool      mean, maximum and sum over the leaves
 *        sum       head, embed and decoder for every leaf by itself; out is
 *                  log(sum over leaves of exp(T * score)) / T: seconds that add up
 *                  when labels are log seconds divided by T; latent is the mean
 *   lstm: lstm.h draws the way up; of the fields below it reads width (of a leaf's and
 *   a node's vector), head_first, head_depth x head_width, ff, width: the leaf MLP;
 *   ff, width: the merge MLP; embed, decoder_depth x decoder_width: the regression.
 *
 *   tlp: tokens are steps (learner/inputs/batch.h); it reads width, heads, layers (residual
 *   blocks), slots (steps of a program; more are cut off), values (numbers of a step).
 *
 * (1) A net is parameters and a description; what a run needs lives in a state,
 *     one a thread. Predicting does not write to the net: any number of threads.
 * (2) Training: forward, then backward with the same batch and state; gradients
 *     are added to params->grad, the caller zeroes them. Forward also moves the
 *     running statistics of batch norm. Two batches may be in flight in two states
 *     (source and target domain, for a distance of latents).
 * (3) The same bits for any pool; in eval mode an output depends on its program
 *     only, up to rounding. No heap after cd_net_state_new.
 * (4) Dropout is a function of the key, the layer and the element. */

#define CD_NET_KINDS "mlp|transformer|lstm|tlp"
typedef enum { CD_NET_MLP, CD_NET_TSF, CD_NET_LSTM, CD_NET_TLP } cd_net_kind;
/* What the tokens are: leaves of the compact AST, every store by itself, with its place and its
 * loops; or TVM's feature rows, one a buffer, which need no AST. */
#define CD_NET_TOKENS "leaves|rows"
typedef enum { CD_TOKENS_LEAVES, CD_TOKENS_ROWS } cd_net_tokens;
#define CD_NET_HEADS "pool|flatten|sum"
typedef enum { CD_HEAD_POOL, CD_HEAD_FLATTEN, CD_HEAD_SUM } cd_net_head;
#define CD_NET_NORMS "layer|batch|none"
typedef enum { CD_NORM_LAYER, CD_NORM_BATCH, CD_NORM_NONE } cd_net_norm;
#define CD_NET_ACTS "relu|gelu|elu"
typedef enum { CD_ACT_RELU, CD_ACT_GELU, CD_ACT_ELU } cd_net_act;
/* Position p of a leaf, dimension i of d, added to the (projected) token:
 *   cdmpp     sin(p / 10000^(2i/d)) for even i, cos of the same for odd i, as published
 *   sinusoid  the textbook's: exponent 2*floor(i/2)/d */
#define CD_NET_POSITIONS "cdmpp|sinusoid|none"
typedef enum { CD_POS_CDMPP, CD_POS_SINUSOID, CD_POS_NONE } cd_net_position;

typedef struct cd_net_config {
    cd_net_kind kind;
    /* transformer; rows have no context, their place is their number. lstm: leaves */
    cd_net_tokens tokens;
    /* transformer: tokens are projected to `width` unless they have it already; lstm: above */
    int64_t layers, width, heads, ff;
    bool pre_norm; /* else post-norm, as published */
    bool skip;     /* lstm: nodes add the mean of their children's vectors */
    cd_net_head head;
    int64_t slots;      /* flatten; tlp: steps of a program */
    int64_t values;     /* tlp: numbers of a step; other kinds: not looked at */
    bool log_values;    /* tlp: their logarithms; false: as they are, as published */
    double temperature; /* sum: T, the standard deviation of the log labels */
    /* sum: a score is of one iteration: trips/T is added (to the first output) */
    bool trips;
    /* head: [first: linear and norm only] -> depth x width -> embed */
    int64_t head_first, head_width, head_depth, embed; /* head_first 0: absent */
    int64_t decoder_width, decoder_depth;
    int64_t side_width, side_depth; /* device and program MLPs, -> embed */
    /* Of head and decoder; the encoder has layer norm, and so have side MLPs instead of
     * batch norm. Batch norm takes away what all programs of a batch share: with it a
     * device counts only in batches of several. */
    cd_net_norm norm;
    cd_net_act act;     /* everywhere */
    double dropout;     /* encoder, as in PyTorch's TransformerEncoderLayer; lstm: leaf MLP */
    double dropout_mlp; /* head, decoder, side MLPs */
    cd_net_position position;
    bool context, derived; /* loop context, sums and ratios as further columns of the tokens */
    bool device, program;  /* branches; mlp reads the program vector in any case */
    /* facts of the loop nest behind the program vector, or in its place */
    bool facts;
    int64_t n_out; /* 1..3 */
    int64_t w_dev; /* width of a device vector; 0 with device: no branch */
} cd_net_config;

/* Small: trains in minutes on two cores. w_dev and n_out = 1 stay for the caller. */
cd_net_config cd_net_config_small(cd_net_kind kind);
/* Tiramisu's network in the widths that CDMPP compares with. (Merge layers are drawn
 * like all others, there they begin at zero.) */
cd_net_config cd_net_config_tiramisu(void);
/* TLP's network for CPUs: 25 steps of 11 values; 256, 8 heads, 2 blocks; its decoder of 256, 128,
 * 64 is one of 256, 128, 128. */
cd_net_config cd_net_config_tlp(void);
/* The published network (11 layers, 164, 4 heads, 2048; 716, 3 x 985, 69; 3 x 930). */
cd_net_config cd_net_config_published(void);
/* Errors: ERANGE, with the field as key. */
cdmpp_status cd_net_config_check(const cd_net_config *s, cdmpp_err *err);
/* Every field, as one JSON object. */
void cd_net_config_json(cd_buf *b, const cd_net_config *s);
/* What its batches must hold; the device table is the caller's. */
cd_batch_spec cd_net_batch_spec(const cd_net_config *s, const float *device, size_t n_device);

typedef struct cd_net cd_net;

/* Parameters drawn from the seed. Errors: those of the check, ENOMEM. */
cdmpp_status cd_net_new(const cd_net_config *s, uint64_t seed, CD_GIVE cd_net **out,
                        cdmpp_err *err);
/* The same of at most so many numbers, looked at before there is room for them: a description out
 * of a file may ask for gigabytes. Errors: also EMODEL. */
cdmpp_status cd_net_new_within(const cd_net_config *s, uint64_t seed, size_t most,
                               CD_GIVE cd_net **out, cdmpp_err *err);
void cd_net_free(CD_TAKE cd_net *net); /* NULL is fine */
CD_KEEP const cd_net_config *cd_net_config_of(const cd_net *net);
CD_KEEP cd_params *cd_net_params(cd_net *net);
CD_KEEP const cd_params *cd_net_params_of(const cd_net *net);
size_t cd_net_n_latent(const cd_net *net); /* = decoder_width */

/* Description, scalers and parameters as one safetensors file; the description is
 * metadata "cdmpp.net". Out of memory: ENOMEM. */
cdmpp_status cd_net_save(const cd_net *net, const cd_scalers *s, cd_buf *out, cdmpp_err *err);
/* s is filled, free it. Errors: EPARSE, EMODEL, ESCHEMA, ERANGE, ENOMEM. */
cdmpp_status cd_net_load(const void *bytes, size_t n, CD_GIVE cd_net **out, cd_scalers *s,
                         cdmpp_err *err);

/* Memory of one run at a time, for batches up to dims and pools up to n_worker
 * threads. train false: predicting only, much smaller. Errors: ENOMEM. */
typedef struct cd_net_state cd_net_state;
cdmpp_status cd_net_state_new(const cd_net *net, const cd_batch_dims *dims, int n_worker,
                              bool train, CD_GIVE cd_net_state **out, cdmpp_err *err);
void cd_net_state_free(CD_TAKE cd_net_state *st); /* NULL is fine */
/* Head sum and tlp, after a run: the scores (n_tok, n_out) that it added up. */
CD_KEEP const float *cd_net_state_scores(const cd_net_state *st);

/* Eval mode. out (n, n_out); latent (n, n_latent), NULL: not wanted. pool NULL: this
 * thread. Errors: EMODEL (batch and net do not fit), ERANGE (beyond the state). */
cdmpp_status cd_net_predict(const cd_net *net, const cd_batch *b, cd_net_state *st,
                            cd_threads *pool, float *out, float *latent, cdmpp_err *err);
/* Train mode: dropout under `key` (take another for every step), statistics of the
 * batch. Errors: as above; ERANGE also for batch norm over less than 2 rows. */
cdmpp_status cd_net_forward(cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                            uint64_t key, float *out, float *latent, cdmpp_err *err);
/* Of the last forward in `st`. d_out (n, n_out), d_latent (n, n_latent); either may
 * be NULL: zeros. Cannot fail. */
void cd_net_backward(cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool,
                     const float *d_out, const float *d_latent);

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
    float *y, *hat, *rstd;                 /* (rows, d) output; the last norm's */
    float *dx, *df, *da, *tmp, *dh, *dqkv; /* gradients of one layer */
    float *part;                           /* (tiles, 9d + ff) */
    float *scratch;                        /* (workers, n_scratch) */
    size_t n_scratch;
    uint64_t key;
    bool train;
} cd_encoder_run;

/* Registers the parameters; `in` columns of a token. */
void cd_encoder_build(cd_encoder *e, cd_params *p, const cd_net_config *s, size_t in);
/* The table of positions. Errors: ENOMEM. */
cdmpp_status cd_encoder_positions(cd_encoder *e, cdmpp_err *err);
/* Memory of a run: plans or carves. */
void cd_encoder_plan(const cd_encoder *e, cd_slab *s, const cd_batch_dims *dims, int n_worker,
                     bool train, cd_encoder_run *r);
/* Leaves r->y (b->n_tok, d). */
void cd_encoder_forward(const cd_encoder *e, const cd_params *p, cd_encoder_run *r,
                        const cd_batch *b, cd_threads *pool);

/* Tiles of whole programs with about 256 rows. */
typedef struct cd_encoder_tile {
    size_t p0, p1, row, n;
} cd_encoder_tile;
/* Tiles of a batch of n_tok rows; tile t of them. */
size_t cd_encoder_tiles(size_t n_tok);
cd_encoder_tile cd_encoder_tile_at(const cd_batch *b, size_t t);
/* Dropout streams of a layer. */
enum {
    CD_ENCODER_DROP_WEIGHTS,
    CD_ENCODER_DROP_ATTENTION,
    CD_ENCODER_DROP_HIDDEN,
    CD_ENCODER_DROP_FF,
    CD_ENCODER_DROP_STREAMS
};
enum { CD_ENCODER_COLS = 512 }; /* columns of the hidden layer done at a time, for the cache */

/* mlp -- a stack of linear layers: linear, norm, activation, dropout, each in turn.
 *
 *   x (n, in) -> [linear -> norm -> act -> drop] -> ... -> y (n, out)
 *
 * What forward leaves in the run is what backward reads: per layer the output y,
 * with a norm the normalised values and 1/sd, with GELU its argument.
 * Parameters are named prefix.0.weight, prefix.0.bias, prefix.0.norm.weight ... */

enum { CD_MLP_MAX = 12 };

typedef struct cd_mlp_layer {
    size_t in, out;
    size_t w, b, gain, shift, mean, var; /* numbers of parameters */
    bool act;
} cd_mlp_layer;

typedef struct cd_mlp {
    size_t n; /* layers; 0: absent */
    cd_mlp_layer layer[CD_MLP_MAX];
    cd_net_norm norm;
    cd_net_act act;
    double dropout;
    uint64_t id; /* first dropout layer */
} cd_mlp;

/* Memory of a run. */
typedef struct cd_mlp_run {
    float *y[CD_MLP_MAX];    /* (n, out) */
    float *hat[CD_MLP_MAX];  /* (n, out): normalised; predicting: none */
    float *arg[CD_MLP_MAX];  /* (n, out): argument of GELU */
    float *rstd[CD_MLP_MAX]; /* (n) or (out) */
    float *d[2];             /* (n, widest) gradients, in turn */
    float *part;             /* (tiles, 3 * widest) sums of bias, gain, shift */
    float *dz[CD_MLP_MAX];   /* (n, out): in parts, gradients before the norm */
    const float *x;          /* input of the last forward, borrowed */
    size_t n, in;            /* its rows and columns */
    uint64_t key;
    bool train;
} cd_mlp_run;

/* Appends a layer and its parameters. */
void cd_mlp_add(cd_mlp *m, cd_params *p, const char *prefix, size_t in, size_t out, bool act);
/* Columns of the last layer. */
size_t cd_mlp_out(const cd_mlp *m);
/* Memory for n rows: plans or carves. */
void cd_mlp_plan(const cd_mlp *m, cd_slab *s, size_t n, bool train, cd_mlp_run *r);
/* x (n, in), in <= the first layer's: only that many columns of its weights count.
 * Returns the last y; r->train decides on statistics and dropout, r->key on the mask. */
float *cd_mlp_forward(const cd_mlp *m, const cd_params *p, cd_mlp_run *r, cd_threads *pool,
                      const float *x, size_t n, size_t in);
/* dy (n, out) is overwritten; dx (n, in) NULL: not wanted. */
void cd_mlp_backward(const cd_mlp *m, cd_params *p, cd_mlp_run *r, cd_threads *pool, float *dy,
                     float *dx);

/* ---- in parts: rows of one run, by several threads and one after another ----
 * Forward with a part and no pool; backward of the parts; then the weights. Not for batch norm. */
/* dz, besides cd_mlp_plan */
void cd_mlp_plan_parts(const cd_mlp *m, cd_slab *s, size_t n, cd_mlp_run *r);
/* Rows row .. row+n of the run, with the input x (n, in) of their own. */
cd_mlp_run cd_mlp_part(const cd_mlp *m, const cd_mlp_run *r, const float *x, size_t row, size_t n);
/* Floats of `sums` below: bias, gain and shift of every layer. */
size_t cd_mlp_n_sums(const cd_mlp *m);
/* dy is in part->dz of the last layer; sums (n_sums) +=; dx (n, in). */
void cd_mlp_part_backward(const cd_mlp *m, const cd_params *p, cd_mlp_run *part, float *sums,
                          float *dx);
/* Of n rows with the input x (n, in); sums (n_part, n_sums) are added up in order. */
void cd_mlp_part_weights(const cd_mlp *m, cd_params *p, const cd_mlp_run *r, cd_threads *pool,
                         const float *x, size_t n, const float *sums, size_t n_part);

/* net_layout -- which parameters a network is made of, for who writes it in another form
 * (learner/export).
 *
 *   tokens -> encoder -> head -\
 *                     device --+--> decoder -> out      each box a stack of linear layers (mlp.h)
 *                    program --/
 *
 * The numbers w, b, ... in encoder.h and mlp.h are places in `params`; cd_params_value() has their
 * values. */

/* What follows the encoder: rows (programs, or leaves where the head is a sum) -> out. Stacks of 0
 * layers are absent. */
typedef struct cd_net_tail {
    cd_mlp head, dev, prog, decoder;
    size_t out_w, out_b;
} cd_net_tail;

/* The pointers live as long as the network. */
typedef struct cd_net_layout {
    const cd_net_config *spec;
    const cd_params *params;
    const cd_encoder *enc; /* transformers only */
    const cd_net_tail *tail;
} cd_net_layout;
/* The parts of a network; any kind. */
cd_net_layout cd_net_layout_of(const cd_net *net);
#endif
