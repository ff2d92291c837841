/* Names that one fact has in the files of several programs: attribute_map of Hugging Face's
 * classes, and what those write that came before them. */
#include <string.h>

#include "predictor/serving_config/serving_read.h"

enum { MOST = 7 };
static const char *const fact[][MOST] = {
    {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts",
     "num_routed_experts"},
    {"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_top_k",
     "moe_k", "top_k_experts"},
    {"n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"},
    {"moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size"},
    {"first_k_dense_replace", "num_dense_layers"},
    {"num_hidden_layers", "num_layers", "n_layers", "n_layer"},
    {"hidden_size", "d_model", "n_embd"},
    {"num_attention_heads", "num_heads", "n_heads", "n_head"},
    {"num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_head_kv", "num_attention_groups"},
    {"head_dim", "attention_head_dim", "kv_channels"},
    {"intermediate_size", "ffn_hidden_size", "n_inner"},
    {"ssm_state_size", "mamba_d_state"},
    {"mamba_num_heads", "mamba_n_heads"},
    {"mamba_head_dim", "mamba_d_head"},
    {"n_groups", "mamba_n_groups"},
    {"conv_kernel", "mamba_d_conv"},
    {"sliding_window_pattern", "layer_switch"},
    /* of quantization_config, and of the files that stand for it: each program has its own names,
     * so nobody is told */
    {"quantization_config", "compression_config"},
    {"bits", "w_bit"},
    {"group_size", "q_group_size"},
    {"ignore", "modules_to_not_convert", "ignored_layers", "exclude_modules"},
};

bool cd_serving_spelled_told(const char *key) {
    static const char *const own[] = {"quantization_config", "bits", "group_size", "ignore"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(own[i], key)) return false;
    return true;
}

const char *cd_serving_spelled(const char *key, size_t i) {
    for (size_t k = 0; k < sizeof fact / sizeof *fact; k++)
        for (size_t own = 0; own < MOST && fact[k][own]; own++) {
            if (strcmp(fact[k][own], key) != 0) continue;
            const size_t at = i < own ? i : i + 1;
            return at < MOST ? fact[k][at] : NULL;
        }
    return NULL;
}
