/* The door of predictor/serving_config: a Hugging Face config.json, and what stands beside it, as
 * the sizes and types that times depend on.
 *
 *   config.json ──> the language model in it ──> family (model_type) ─┐
 *     ┌───────────────────────────────────────────────────────────────┘
 *     └──> sizes, layers, experts, states ───────────────────┐
 *   hf_quant_config.json ... ──> types of weights and cache ─┴> cd_serving_model, notes, doubts
 *
 *   (1) nothing is answered by a silent default: a field that is missing, or contradicts another,
 *       is an error that names it. Where Hugging Face has a default, or where one fact has several
 *       names, that is taken and told (note);
 *   (2) what may make the answer another one, and nobody can be sure of, is a doubt: a warning;
 *   (3) a member that looks like a size and that nobody asked for is told by name.
 * docs/reference/serving.md. No state, any thread. */
#ifndef CD_SERVING_CONFIG_H
#define CD_SERVING_CONFIG_H
#include "base/io/io.h"
#include "features/operators/operators.h"

/* ---- the model: serving_model.c ---- */
enum {
    CD_SERVING_NAME = 64,
    CD_SERVING_MAX_LAYER = 1024,
    CD_SERVING_NOTES = 32,
    CD_SERVING_NOTE = 512
};

/* Layers that keep a state of fixed size for each sequence in place of keys and values: gated delta
 * rule, Mamba 2, lightning attention. */
typedef struct cd_serving_state {
    double layers; /* 0: there are none */
    /* columns of the product into it and of a second, small one (0: none); rows of the one out of
     * it */
    double in, narrow, out;
    double channels, taps;    /* of a short convolution; 0: there is none */
    double heads, key, value; /* heads with a state of key x value each, in float32 */
} cd_serving_state;

typedef struct cd_serving_model {
    char name[CD_SERVING_NAME]; /* model_type */
    double layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
    double norms;                 /* of a layer */
    double window, window_layers; /* layers that see `window` tokens only */
    /* of `layers`: with attention, with a feed-forward part of all parameters, with experts */
    double attention_layers, dense_layers, sparse_layers;
    double experts, topk, expert_ffn, shared_ffn; /* 0: a dense model; 0: no shared expert */
    /* width to which tokens are projected before the routed experts, and back behind them; 0:
     * experts take `hidden` */
    double latent_in;
    /* of a feed-forward part: 3 where it has a gate, else 2 */
    double products;
    /* widths of all query heads that the product of queries has: 2 where it gates attention's
     * output */
    double gates;
    cd_serving_state state;
    /* of sparse attention: an index chooses so many tokens; 0: there is none */
    double index_heads, index_dim, index_topk;
    /* exponent of the experts' loads; 0: balanced */
    double skew;
    bool latent, qk_norm, tied;
    /* of latent attention; q_rank 0: queries are not compressed */
    double q_rank, kv_rank, nope, rope, v_dim;
    double longest; /* max_position_embeddings; 0: not said */
    /* types of the checkpoint: of dense feed-forward products, of experts, of what is not
     * quantised */
    cd_llm_op_type linear, expert, base;
    /* of the products around attention, of the shared expert, of the products around states */
    cd_llm_op_type attention, shared, recurrent;
    /* of the cache; -1: the checkpoint says none */
    int kv;
    /* bytes of scales for a weight in 4 or 8 bits, which its type does not count */
    double scales;
    /* bytes of a weight that is not quantised, in the checkpoint's files: 4 of float32, which is
     * served in 2 */
    double checkpoint_base;
    /* why these are not known; code 0: they are */
    cdmpp_err untyped;
    /* (n_note) defaults that were taken, parts that are left out: for people */
    char note[CD_SERVING_NOTES][CD_SERVING_NOTE];
    /* of a note: what it says may make the answer another one, and nobody can be sure of it */
    bool doubt[CD_SERVING_NOTES];
    size_t n_note;
} cd_serving_model;

/* path is for messages. Errors: EPARSE; ESCHEMA ERANGE: a field that is missing, or contradicts
 * another (key: the field); EUNSUPPORTED: an architecture that is not known; ENOMEM. A kind of
 * quantisation that is not known is no error yet: cd_serving_model_typed. */
cdmpp_status cd_serving_model_read(const char *path, const char *text, size_t n,
                                   cd_serving_model *out, cdmpp_err *err);
/* path: also a checkpoint's folder. Of a file called config.json those beside it count, too: one
 * that says the types (hf_quant_config.json, quantize_config.json, quant_config.json), and
 * model.safetensors.index.json, whose number of bytes is compared with ours. Errors: also those of
 * a file beside it that says types (its own path). */
cdmpp_status cd_serving_model_load(const char *path, cd_serving_model *out, cdmpp_err *err);
/* Bytes of a state of one sequence and layer, and of the values that its convolution needs
 * again. */
double cd_serving_state_bytes(const cd_serving_state *s);
/* Whether types are known, where products are of type `linear`; -1: of the checkpoint's.
 * cd_serving_answer_of asks it by itself. Errors: EUNSUPPORTED (key: the field that says the
 * checkpoint's). */
cdmpp_status cd_serving_model_typed(const cd_serving_model *m, int linear, cdmpp_err *err);
/* Weights of all GPUs: parameters, for people. */
double cd_serving_model_parameters(const cd_serving_model *m);
/* Bytes of the files of a checkpoint by these sizes and the checkpoint's types. */
double cd_serving_model_bytes(const cd_serving_model *m);
/* Columns of what routed experts take and give. */
double cd_serving_experts_in(const cd_serving_model *m);

/* ---- weights: serving_weights.c ---- */
/* Weights of one layer of each kind, on one of tp GPUs. */
typedef struct cd_serving_weights {
    /* latent: into routed experts and out of them, whole on each GPU; experts: of all GPUs */
    double attention, index, state, dense, shared, router, latent, experts;
} cd_serving_weights;
cd_serving_weights cd_serving_weights_of(const cd_serving_model *m, double tp);
/* Of a weight of the type, with its part of the checkpoint's scales. */
double cd_serving_weight_each(const cd_serving_model *m, cd_llm_op_type t);
#endif
