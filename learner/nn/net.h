/* net -- neural cost models: a batch in, numbers per program out, and back.
 *
 *   mlp          prog ----------------------------> head --+
 *   transformer  tok -> projection (+ position)            |
 *                 -> layers of attention -> pool/         -> head --+--> embed
 *                    flatten (or each token by itself)              |
 *   lstm         tok -> leaf MLP -> up the tree -> root -> linear --+
 *   all          dev  -> device MLP --------------------------------+
 *                prog -> program MLP (not mlp; if wanted) ----------+
 *                embed -> decoder = latent -> linear = out (n, n_out)
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
 * (1) A net is parameters and a description; what a run needs lives in a state,
 *     one a thread. Predicting does not write to the net: any number of threads.
 * (2) Training: forward, then backward with the same batch and state; gradients
 *     are added to params->grad, the caller zeroes them. Forward also moves the
 *     running statistics of batch norm. Two batches may be in flight in two states
 *     (source and target domain, for a distance of latents).
 * (3) The same bits for any pool; in eval mode an output depends on its program
 *     only, up to rounding. No heap after cd_net_state_new.
 * (4) Dropout is a function of the key, the layer and the element. */
#ifndef CD_NET_H
#define CD_NET_H
#include "base/core/core.h"
#include "learner/inputs/inputs.h"
#include "learner/tensor/tensor.h"

#define CD_NET_KINDS "mlp|transformer|lstm"
typedef enum { CD_NET_MLP, CD_NET_TSF, CD_NET_LSTM } cd_net_kind;
/* What the tokens are: leaves of the compact AST, every store by itself, with its place and its loops;
 * or TVM's feature rows, one a buffer, which need no AST. */
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
    cd_net_tokens tokens;     /* transformer; rows have no context, their place is their number. lstm: leaves */
    /* transformer: tokens are projected to `width` unless they have it already; lstm: above */
    int64_t layers, width, heads, ff;
    bool pre_norm;            /* else post-norm, as published */
    bool skip;                /* lstm: nodes add the mean of their children's vectors */
    cd_net_head head;
    int64_t slots;            /* flatten */
    double temperature;       /* sum: T, the standard deviation of the log labels */
    bool trips;               /* sum: a score is of one iteration: trips/T is added (to the first output) */
    /* head: [first: linear and norm only] -> depth x width -> embed */
    int64_t head_first, head_width, head_depth, embed; /* head_first 0: absent */
    int64_t decoder_width, decoder_depth;
    int64_t side_width, side_depth; /* device and program MLPs, -> embed */
    /* Of head and decoder; the encoder has layer norm, and so have side MLPs instead of
     * batch norm. Batch norm takes away what all programs of a batch share: with it a
     * device counts only in batches of several. */
    cd_net_norm norm;
    cd_net_act act;           /* everywhere */
    double dropout;           /* encoder, as in PyTorch's TransformerEncoderLayer; lstm: leaf MLP */
    double dropout_mlp;       /* head, decoder, side MLPs */
    cd_net_position position;
    bool context, derived;    /* loop context, sums and ratios as further columns of the tokens */
    bool device, program;     /* branches; mlp reads the program vector in any case */
    int64_t n_out;            /* 1..3 */
    int64_t w_dev;            /* width of a device vector; 0 with device: no branch */
} cd_net_config;

/* Small: trains in minutes on two cores. w_dev and n_out = 1 stay for the caller. */
cd_net_config cd_net_config_small(cd_net_kind kind);
/* Tiramisu's network in the widths that CDMPP compares with. (Merge layers are drawn
 * like all others, there they begin at zero.) */
cd_net_config cd_net_config_tiramisu(void);
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
cdmpp_status cd_net_new(const cd_net_config *s, uint64_t seed, CD_GIVE cd_net **out, cdmpp_err *err);
void cd_net_free(CD_TAKE cd_net *net); /* NULL is fine */
CD_KEEP const cd_net_config *cd_net_config_of(const cd_net *net);
CD_KEEP cd_params *cd_net_params(cd_net *net);
CD_KEEP const cd_params *cd_net_params_of(const cd_net *net);
size_t cd_net_n_latent(const cd_net *net); /* = decoder_width */

/* Description, scalers and parameters as one safetensors file; the description is
 * metadata "cdmpp.net". Out of memory: ENOMEM. */
cdmpp_status cd_net_save(const cd_net *net, const cd_scalers *s, cd_buf *out, cdmpp_err *err);
/* s is filled, free it. Errors: EPARSE, EMODEL, ESCHEMA, ERANGE, ENOMEM. */
cdmpp_status cd_net_load(const void *bytes, size_t n, CD_GIVE cd_net **out, cd_scalers *s, cdmpp_err *err);

/* Memory of one run at a time, for batches up to dims and pools up to n_worker
 * threads. train false: predicting only, much smaller. Errors: ENOMEM. */
typedef struct cd_net_state cd_net_state;
cdmpp_status cd_net_state_new(const cd_net *net, const cd_batch_dims *dims, int n_worker, bool train,
                              CD_GIVE cd_net_state **out, cdmpp_err *err);
void cd_net_state_free(CD_TAKE cd_net_state *st); /* NULL is fine */
/* Head sum, after a run: the scores (n_tok, n_out) that it added up. */
CD_KEEP const float *cd_net_state_scores(const cd_net_state *st);

/* Eval mode. out (n, n_out); latent (n, n_latent), NULL: not wanted. pool NULL: this
 * thread. Errors: EMODEL (batch and net do not fit), ERANGE (beyond the state). */
cdmpp_status cd_net_predict(const cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool, float *out,
                            float *latent, cdmpp_err *err);
/* Train mode: dropout under `key` (take another for every step), statistics of the
 * batch. Errors: as above; ERANGE also for batch norm over less than 2 rows. */
cdmpp_status cd_net_forward(cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool, uint64_t key, float *out,
                            float *latent, cdmpp_err *err);
/* Of the last forward in `st`. d_out (n, n_out), d_latent (n, n_latent); either may
 * be NULL: zeros. Cannot fail. */
void cd_net_backward(cd_net *net, const cd_batch *b, cd_net_state *st, cd_threads *pool, const float *d_out,
                     const float *d_latent);
#endif
