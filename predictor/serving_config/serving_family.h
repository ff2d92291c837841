/* Families of models: what model_type says and config.json does not. Inside predictor/serving. */
#ifndef CD_SERVING_FAMILY_H
#define CD_SERVING_FAMILY_H
#include "predictor/serving_config/serving_config.h"

/* How layers differ from each other. */
typedef enum {
    CD_SERVING_ALIKE, /* all have attention and a feed-forward part */
    /* gated delta rule in place of attention but in each full_attention_interval-th */
    CD_SERVING_DELTA,
    CD_SERVING_LIGHTNING, /* lightning attention where attn_type_list has 0 */
    CD_SERVING_MAMBA,     /* Mamba 2 where layer_types has mamba */
    /* each layer is one of Mamba 2, attention, a feed-forward part, experts:
     * hybrid_override_pattern */
    CD_SERVING_SINGLE
} cd_serving_mix;

/* Defaults are those of the configuration classes of Hugging Face's transformers (and, of models
 * that it does not have, of the class beside the checkpoint). */
typedef struct cd_serving_family {
    /* fields of experts, their width, the shared expert's width; NULL: there is none */
    const char *type, *experts, *expert_ffn, *shared;
    /* of a layer without experts, where it is not intermediate_size */
    const char *dense_ffn;
    /* fields: each so-many-th layer has experts; so many first ones have not */
    const char *every, *first;
    /* what is taken for a part that no operator is of */
    const char *told;
    /* shared_count: `shared` counts experts of the same width, or of that of expert_ffn */
    bool latent, qk_norm, shared_count;
    /* the window counts only where use_sliding_window is true */
    bool window_said;
    /* without layer_types every second layer has the window, from the first on */
    bool every_second;
    /* attention_chunk_size in place of sliding_window, in the layers that no_rope_layers has 1
     * for */
    bool chunks;
    /* without tie_word_embeddings embeddings are the vocabulary's weights, too */
    bool tied;
    bool plain; /* the feed-forward part has no gate */
    /* falcon: multi_query, new_decoder_architecture, num_kv_heads */
    bool few_keys;
    bool index; /* sparse attention: index_topk */
    /* attention's output has a gate, unless attn_output_gate is false */
    bool gates;
    /* where there are 0 experts the shared one is the feed-forward part */
    bool as_dense;
    cd_serving_mix mix;
    /* without layer_types each so-many-th layer has no window; 0: none is without */
    double full;
    /* loads of experts: those balanced by a bias without loss are nearly even */
    double skew;
    double norms; /* of a layer; 0: 2 */
    /* defaults; 0: num_attention_heads, hidden_size / num_attention_heads, none, none */
    double kv_heads, head_dim, shared_is, window;
    double heads, vocab; /* defaults; 0: the field has to be there */
} cd_serving_family;

extern const cd_serving_family cd_serving_families[];
extern const size_t cd_serving_n_family;
#endif
