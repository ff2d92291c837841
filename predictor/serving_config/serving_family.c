/* The families, one line each. */
#include "predictor/serving_config/serving_family.h"

#define WINDOWS .window_said = true, .window = 4096
#define QWEN_EXPERTS .experts = "num_experts", .expert_ffn = "moe_intermediate_size", .every = "decoder_sparse_step", .skew = 1.2
#define LOCAL_EXPERTS .experts = "num_local_experts", .expert_ffn = "intermediate_size", .skew = 1.2
#define ROUTED .experts = "n_routed_experts", .expert_ffn = "moe_intermediate_size", .shared = "n_shared_experts", .shared_count = true, .first = "first_k_dense_replace"
#define DEEPSEEK ROUTED, .every = "moe_layer_freq", .latent = true
#define QWEN_SHARED .shared = "shared_expert_intermediate_size"
#define DELTA .mix = CD_SERVING_DELTA, .qk_norm = true, .gates = true, .kv_heads = 2, .head_dim = 256
#define GEMMA .tied = true, .head_dim = 256
#define SOFTCAP "attn_logit_softcapping costs attention a tanh for each score: it is left out"
#define INDEXED "sparse attention is put together: each token of a prompt attends to index_topk tokens as in decode; the index is a product, and in decode reads of its cache in 8 bits"
#define STATES "layers with states are put together: their scan is products over chunks of 64 tokens of a prompt, in decode reads and writes of the states, in float32"

const cd_serving_family cd_serving_families[] = {
    {.type = "llama"},
    {.type = "mistral", .kv_heads = 8, .window = 4096},
    {.type = "ministral3", .kv_heads = 8},
    {.type = "qwen2", WINDOWS, .kv_heads = 32},
    {.type = "qwen2_5_vl", WINDOWS, .kv_heads = 32},
    {.type = "qwen2_5_vl_text", WINDOWS, .kv_heads = 32},
    {.type = "qwen3", WINDOWS, .qk_norm = true, .kv_heads = 32, .head_dim = 128},
    {.type = "qwen3_vl_text", .qk_norm = true, .kv_heads = 32, .head_dim = 128},
    {.type = "mixtral", LOCAL_EXPERTS, .kv_heads = 8},
    {.type = "phimoe", LOCAL_EXPERTS, .kv_heads = 8},
    {.type = "qwen2_moe", WINDOWS, QWEN_EXPERTS, QWEN_SHARED, .kv_heads = 16, .shared_is = 5632},
    {.type = "qwen3_moe", WINDOWS, QWEN_EXPERTS, .qk_norm = true, .kv_heads = 4},
    {.type = "qwen3_vl_moe_text", QWEN_EXPERTS, .qk_norm = true, .kv_heads = 16},
    {.type = "qwen3_next", QWEN_EXPERTS, QWEN_SHARED, DELTA, .shared_is = 512, .told = STATES},
    {.type = "qwen3_5_moe_text", QWEN_EXPERTS, QWEN_SHARED, DELTA, .shared_is = 512, .told = STATES},
    {.type = "qwen3_5_text", DELTA, .told = STATES},
    {.type = "olmoe", .experts = "num_experts", .expert_ffn = "intermediate_size", .skew = 1.2, .qk_norm = true},
    {.type = "minimax_m2", LOCAL_EXPERTS, .qk_norm = true, .kv_heads = 8, .head_dim = 128},
    {.type = "minimax_m1", LOCAL_EXPERTS, .mix = CD_SERVING_LIGHTNING, .told = STATES},
    {.type = "minimax_text_01", LOCAL_EXPERTS, .mix = CD_SERVING_LIGHTNING, .told = STATES},
    {.type = "gpt_oss", LOCAL_EXPERTS, .kv_heads = 8, .head_dim = 64, .window = 128, .every_second = true},
    {.type = "llama4_text", LOCAL_EXPERTS, .dense_ffn = "intermediate_size_mlp", .every = "interleave_moe_layer_step", .shared = "intermediate_size", .kv_heads = 8, .head_dim = 128, .chunks = true},
    {.type = "granitemoe", LOCAL_EXPERTS},
    {.type = "granitemoehybrid", LOCAL_EXPERTS, .shared = "shared_intermediate_size", .mix = CD_SERVING_MAMBA, .as_dense = true, .told = STATES},
    {.type = "deepseek_v2", DEEPSEEK, .skew = 1.2, .shared_is = 2},
    {.type = "deepseek_v3", DEEPSEEK, .skew = 1.01, .shared_is = 1},
    {.type = "deepseek_v32", DEEPSEEK, .skew = 1.01, .shared_is = 1, .index = true, .told = INDEXED},
    {.type = "glm_moe_dsa", DEEPSEEK, .skew = 1.01, .shared_is = 1, .index = true, .told = INDEXED},
    {.type = "glm4_moe_lite", DEEPSEEK, .skew = 1.01, .shared_is = 1},
    {.type = "kimi_k2", DEEPSEEK, .skew = 1.01, .shared_is = 1},
    {.type = "glm4_moe", ROUTED, .skew = 1.01, .shared_is = 1, .kv_heads = 8},
    {.type = "dots1", ROUTED, .qk_norm = true, .skew = 1.01},
    {.type = "ernie4_5_moe", .experts = "moe_num_experts", .expert_ffn = "moe_intermediate_size", .shared = "moe_num_shared_experts", .shared_count = true,
     .first = "moe_layer_start_index", .every = "moe_layer_interval", .skew = 1.01, .kv_heads = 4, .tied = true},
    {.type = "nemotron_h", ROUTED, .mix = CD_SERVING_SINGLE, .skew = 1.01, .kv_heads = 8, .plain = true, .norms = 1, .told = STATES},
    {.type = "nemotron", .plain = true},
    {.type = "phi3"},
    {.type = "glm"},
    {.type = "glm4", .norms = 4},
    {.type = "granite"},
    {.type = "olmo2", .qk_norm = true},
    {.type = "olmo3", .qk_norm = true, .window = 4096, .full = 4},
    {.type = "exaone"},
    {.type = "exaone4", .qk_norm = true, .window = 4096, .full = 4},
    {.type = "smollm3", WINDOWS, .kv_heads = 4, .tied = true},
    {.type = "seed_oss", .kv_heads = 8, .head_dim = 128},
    {.type = "hunyuan_v1_dense", .qk_norm = true},
    {.type = "internlm2"},
    {.type = "internlm3", .kv_heads = 2},
    {.type = "stablelm", .kv_heads = 32},
    {.type = "ernie4_5", .kv_heads = 2, .tied = true},
    {.type = "cohere", .tied = true, .norms = 1},
    {.type = "cohere2", .tied = true, .norms = 1, .window = 4096, .full = 4},
    {.type = "gemma", GEMMA, .kv_heads = 16, .vocab = 256000},
    {.type = "gemma2", GEMMA, .kv_heads = 4, .vocab = 256000, .norms = 4, .window = 4096, .every_second = true, .told = SOFTCAP},
    {.type = "gemma3_text", GEMMA, .kv_heads = 4, .heads = 8, .vocab = 262208, .norms = 4, .qk_norm = true, .window = 4096, .full = 6},
    {.type = "falcon", .few_keys = true, .plain = true, .tied = true, .norms = 1},
    {.type = "starcoder2", .kv_heads = 2, .plain = true, .tied = true}};
const size_t cd_serving_n_family = sizeof cd_serving_families / sizeof *cd_serving_families;
