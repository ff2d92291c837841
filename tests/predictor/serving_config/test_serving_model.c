/* serving_model: config.json of each family; what is missing or contradicts is named. */
#include "predictor/serving/serving.h"
#include "check.h"
#include "fault.h"

#define BF "\"torch_dtype\":\"bfloat16\","
#define LLAMA                                                                                      \
    "\"num_hidden_layers\":2,\"hidden_size\":64,\"num_attention_heads\":4,\"vocab_size\":256,"     \
    "\"intermediate_size\":128"
#define LATENT                                                                                     \
    "\"num_hidden_layers\":4,\"hidden_size\":64,\"num_attention_heads\":4,\"vocab_size\":256,"     \
    "\"intermediate_size\":128,\"n_routed_experts\":8,"                                            \
    "\"num_experts_per_tok\":2,\"moe_intermediate_size\":32,\"n_shared_experts\":1,\"first_k_"     \
    "dense_replace\":1,\"q_lora_rank\":24,\"qk_nope_head_dim\":128,"                               \
    "\"qk_rope_head_dim\":64,\"v_head_dim\":128"

#define DEEP_NO_SHARED                                                                             \
    "\"num_hidden_layers\":4,\"hidden_size\":64,\"num_attention_heads\":4,\"vocab_size\":256,"     \
    "\"intermediate_size\":128,\"n_routed_experts\":8,"                                            \
    "\"num_experts_per_tok\":2,\"moe_intermediate_size\":32,\"first_k_dense_replace\":1,\"q_lora_" \
    "rank\":24,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,"                                  \
    "\"v_head_dim\":128"

static cd_serving_model m;
static cdmpp_err err;

static cdmpp_status reads(const char *text) {
    memset(&err, 0, sizeof err);
    return cd_serving_model_read("c.json", text, strlen(text), &m, &err);
}

/* A note with these words, of what nobody can be sure of. */
static bool doubted(const char *words) {
    for (size_t i = 0; i < m.n_note; i++)
        if (m.doubt[i] && strstr(m.note[i], words)) return true;
    return false;
}

static void refuses(const char *text, cdmpp_status st, const char *key) {
    assert_int_equal(reads(text), st);
    assert_string_equal(err.key, key);
    assert_string_equal(err.path, "c.json");
}

/* It is read, but only who says the type may use it. */
static void untyped(const char *text, const char *key) {
    assert_ok(reads(text));
    assert_int_equal(cd_serving_model_typed(&m, CD_LLM_OP_T_FP8, &err), CDMPP_OK);
    assert_int_equal(cd_serving_model_typed(&m, -1, &err), CDMPP_EUNSUPPORTED);
    assert_string_equal(err.key, key);
    assert_string_equal(err.path, "c.json");
}

TEST(dense) {
    assert_ok(reads("{\"model_type\":\"llama\"," BF LLAMA "}"));
    assert_true(m.kv_heads >= 4 && m.kv_heads <= 4 && m.head_dim >= 16 && m.head_dim <= 16 &&
                !m.latent && !m.qk_norm && !m.tied);
    assert_int_equal(m.linear, CD_LLM_OP_T_BF16);
    /* 2 layers of 4 * 64 * 64 + 3 * 64 * 128, two tables of 256 * 64 */
    assert_close(cd_serving_model_parameters(&m), 2 * (4 * 64 * 64 + 3 * 64 * 128) + 2 * 256 * 64,
                 0, 0);
    assert_ok(reads("{\"model_type\":\"qwen3\",\"num_key_value_heads\":2,\"head_dim\":32,\"tie_"
                    "word_embeddings\":true,\"sliding_window\":128," LLAMA "}"));
    assert_true(m.qk_norm && m.tied && m.window <= 0);
    assert_close(cd_serving_model_parameters(&m),
                 2 * (64 * 32 * 2 * (4 + 2) + 3 * 64 * 128) + 256 * 64, 0, 0);
    assert_ok(reads("{\"text_config\":{\"model_type\":\"mistral\",\"num_key_value_heads\":4,"
                    "\"sliding_window\":128," LLAMA "}}"));
    assert_close(m.window_layers, 2, 0, 0);
}

TEST(windows) {
    assert_ok(reads("{\"model_type\":\"llama\",\"sliding_window\":128,\"layer_types\":[\"full_"
                    "attention\",\"sliding_attention\"]," LLAMA "}"));
    assert_close(m.window_layers, 1, 0, 0);
    assert_ok(reads("{\"model_type\":\"qwen2\",\"num_key_value_heads\":4,\"sliding_window\":128,"
                    "\"use_sliding_window\":true,\"max_window_layers\":1," LLAMA "}"));
    assert_close(m.window_layers, 1, 0, 0);
    refuses("{\"model_type\":\"llama\",\"sliding_window\":128,\"layer_types\":[\"full_attention\"]"
            "," LLAMA "}",
            CDMPP_ERANGE, "layer_types");
    refuses(
        "{\"model_type\":\"llama\",\"layer_types\":[\"full_attention\",\"linear_attention\"]," LLAMA
        "}",
        CDMPP_EUNSUPPORTED, "layer_types[1]");
    refuses("{\"model_type\":\"llama\",\"layer_types\":[\"full_attention\",\"sliding_attention\"]"
            "," LLAMA "}",
            CDMPP_ESCHEMA, "sliding_window");
}

TEST(experts) {
    assert_ok(reads("{\"model_type\":\"deepseek_v3\",\"kv_lora_rank\":512," LATENT "}"));
    assert_true(m.latent);
    assert_close(m.dense_layers, 1, 0, 0);
    assert_close(m.shared_ffn, 32, 0, 0);
    assert_close(m.skew, 1.01, 0, 0);
    const double attention = 64 * (24 + 512 + 64) + 24 * 4 * 192 + 512 * 4 * 256 + 4 * 128 * 64;
    assert_close(
        cd_serving_model_parameters(&m),
        4 * attention + 3 * 64 * 128 + 3 * (3 * 64 * (8 * 32 + 32) + 64 * 8) + 2 * 256 * 64, 0, 0);
    refuses("{\"model_type\":\"deepseek_v3\",\"kv_lora_rank\":256," LATENT "}", CDMPP_EUNSUPPORTED,
            "kv_lora_rank");
    refuses("{\"model_type\":\"mixtral\",\"num_key_value_heads\":4,\"num_local_experts\":2,\"num_"
            "experts_per_tok\":3," LLAMA "}",
            CDMPP_ERANGE, "num_experts_per_tok");
    refuses("{\"model_type\":\"mixtral\",\"num_key_value_heads\":4," LLAMA "}", CDMPP_ESCHEMA,
            "num_local_experts");
    assert_ok(reads("{\"model_type\":\"qwen3_moe\",\"num_experts\":8,\"num_experts_per_tok\":2,"
                    "\"moe_intermediate_size\":32,\"mlp_only_layers\":[0]," LLAMA "}"));
    assert_close(m.dense_layers, 1, 0, 0);
}

#define QWEN                                                                                       \
    "{\"model_type\":\"qwen3_moe\",\"num_hidden_layers\":4,\"hidden_size\":64,\"num_attention_"    \
    "heads\":4,\"vocab_size\":256,\"intermediate_size\":128,\"num_experts\":8,"                    \
    "\"num_experts_per_tok\":2,\"moe_intermediate_size\":32,"
#define DEEP                                                                                       \
    "{\"model_type\":\"deepseek_v3\",\"num_hidden_layers\":4,\"hidden_size\":64,\"num_attention_"  \
    "heads\":4,\"vocab_size\":256,\"intermediate_size\":128,"                                      \
    "\"n_routed_experts\":8,\"num_experts_per_tok\":2,\"moe_intermediate_size\":32,\"kv_lora_"     \
    "rank\":512,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"v_head_dim\":128,"

/* A layer that two fields make dense counts once. */
TEST(dense_layers) {
    static const struct {
        const char *text;
        double dense;
    } of[] = {{QWEN "\"decoder_sparse_step\":2}", 2},
              {QWEN "\"decoder_sparse_step\":2,\"mlp_only_layers\":[0,2]}", 2},
              {QWEN "\"decoder_sparse_step\":2,\"mlp_only_layers\":[1,0,1]}", 3},
              {QWEN "\"mlp_only_layers\":[]}", 0},
              {DEEP "\"first_k_dense_replace\":0}", 0},
              {DEEP "\"first_k_dense_replace\":4}", 4},
              {DEEP "\"first_k_dense_replace\":1,\"moe_layer_freq\":1}", 1},
              {DEEP "\"first_k_dense_replace\":1,\"moe_layer_freq\":2}", 3}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        check_status(reads(of[i].text), CDMPP_OK, &err, of[i].text, __FILE__, __LINE__);
        assert_close(m.dense_layers, of[i].dense, 0, 0);
    }
    refuses(QWEN "\"mlp_only_layers\":[0,4]}", CDMPP_ERANGE, "mlp_only_layers[1]");
    refuses(QWEN "\"mlp_only_layers\":[0.5]}", CDMPP_ERANGE, "mlp_only_layers[0]");
    refuses(QWEN "\"mlp_only_layers\":2}", CDMPP_ESCHEMA, "mlp_only_layers");
    refuses(QWEN "\"decoder_sparse_step\":0}", CDMPP_ERANGE, "decoder_sparse_step");
    refuses(DEEP "\"first_k_dense_replace\":5}", CDMPP_ERANGE, "first_k_dense_replace");
    refuses(DEEP "\"first_k_dense_replace\":0,\"moe_layer_freq\":0}", CDMPP_ERANGE,
            "moe_layer_freq");
}

TEST(types) {
    assert_ok(reads("{\"model_type\":\"llama\",\"quantization_config\":{\"quant_method\":\"fp8\","
                    "\"weight_block_size\":[128,128]}," BF LLAMA "}"));
    assert_int_equal(m.linear, CD_LLM_OP_T_FP8_BLOCK);
    assert_ok(reads(
        "{\"model_type\":\"mixtral\",\"num_key_value_heads\":4,\"num_local_experts\":4,\"num_"
        "experts_per_tok\":1,\"quantization_config\":{\"quant_method\":\"mxfp4\"}," BF LLAMA "}"));
    assert_int_equal(m.linear, CD_LLM_OP_T_BF16);
    assert_int_equal(m.expert, CD_LLM_OP_T_W4A16_MXFP4);
    assert_ok(reads("{\"model_type\":\"llama\",\"quantization_config\":{\"quant_method\":\"awq\","
                    "\"bits\":4}," BF LLAMA "}"));
    assert_int_equal(m.linear, CD_LLM_OP_T_INT4_WO);
    assert_ok(reads("{\"model_type\":\"llama\",\"quantization_config\":{\"quant_method\":\"gptq\","
                    "\"bits\":8}," BF LLAMA "}"));
    assert_int_equal(m.linear, CD_LLM_OP_T_INT8_WO);
    assert_ok(cd_serving_model_typed(&m, -1, &err));
    for (int bits = 2; bits < 10; bits++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"model_type\":\"llama\",\"quantization_config\":{\"quant_method\":\"gptq\","
                 "\"bits\":%d}," BF LLAMA "}",
                 bits);
        if (bits != 4 && bits != 8) untyped(text, "quantization_config.bits");
    }
    untyped(
        "{\"model_type\":\"llama\",\"quantization_config\":{\"quant_method\":\"mxfp4\"}," BF LLAMA
        "}",
        "quantization_config.quant_method");
    untyped("{\"model_type\":\"llama\",\"torch_dtype\":\"float64\"," LLAMA "}", "torch_dtype");
    /* no type: vLLM's choice, and a doubt */
    assert_ok(reads("{\"model_type\":\"llama\"," LLAMA "}"));
    assert_true(doubted("bfloat16 is taken"));
    assert_int_equal(m.base, CD_LLM_OP_T_BF16);
    assert_ok(cd_serving_model_typed(&m, -1, &err));
    assert_ok(reads("{\"model_type\":\"llama\",\"quantization_config\":{\"quant_method\":\"awq\","
                    "\"bits\":4}," LLAMA "}"));
    assert_true(doubted("bfloat16 is taken") && m.linear == CD_LLM_OP_T_INT4_WO);
    assert_ok(reads("{\"model_type\":\"llama\",\"dtype\":\"float16\"," LLAMA "}"));
    assert_int_equal(m.base, CD_LLM_OP_T_F16);
    refuses("{\"model_type\":\"llama\",\"quantization_config\":\"fp8\"," BF LLAMA "}",
            CDMPP_ESCHEMA, "quantization_config");
    untyped("{\"model_type\":\"llama\",\"quantization_config\":{\"x\":4}," BF LLAMA "}",
            "quantization_config.quant_method");
}

/* Scales of blocks of another shape are other operators. */
TEST(blocks) {
    static const char *const of[] = {"[64,128]",    "[128,64]", "[128]",
                                     "[128,128,1]", "128",      "[\"a\",128]"};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"model_type\":\"llama\",\"quantization_config\":{\"quant_method\":\"fp8\","
                 "\"weight_block_size\":%s}," BF LLAMA "}",
                 of[i]);
        untyped(text, "quantization_config.weight_block_size");
    }
    assert_ok(reads("{\"model_type\":\"llama\",\"quantization_config\":{\"quant_method\":\"fp8\","
                    "\"weight_block_size\":null}," BF LLAMA "}"));
    assert_int_equal(m.linear, CD_LLM_OP_T_FP8);
}

/* What is not there is Hugging Face's default, and told; with the field nothing is told. */
static void told(const char *text, const char *key, double is, const double *at) {
    assert_ok(reads(text));
    assert_close(*at, is, 0, 0);
    for (size_t i = 0; i < m.n_note; i++)
        if (!strncmp(m.note[i], key, strlen(key)) && m.note[i][strlen(key)] == ' ') return;
    fail_msg("no note of %s", key);
}

TEST(defaults) {
#define HEADS(n, width)                                                                            \
    "\"num_hidden_layers\":4,\"hidden_size\":" #width ",\"num_attention_heads\":" #n               \
    ",\"vocab_size\":256,\"intermediate_size\":128"
    told("{\"model_type\":\"llama\"," BF LLAMA "}", "num_key_value_heads", 4, &m.kv_heads);
    told("{\"model_type\":\"llama\"," BF LLAMA "}", "head_dim", 16, &m.head_dim);
    told("{\"model_type\":\"mistral\"," BF HEADS(32, 64) "}", "num_key_value_heads", 8,
         &m.kv_heads);
    told("{\"model_type\":\"mistral\",\"num_key_value_heads\":null," BF HEADS(32, 64) "}",
         "num_key_value_heads", 32, &m.kv_heads);
    told("{\"model_type\":\"mistral\"," BF HEADS(32, 64) "}", "sliding_window", 4096, &m.window);
    told("{\"model_type\":\"qwen3\"," BF HEADS(32, 65) "}", "head_dim", 128, &m.head_dim);
    told("{\"model_type\":\"qwen3\",\"head_dim\":null," BF HEADS(32, 64) "}", "head_dim", 2,
         &m.head_dim);
    told("{\"model_type\":\"qwen2\",\"use_sliding_window\":true," BF HEADS(32, 64) "}",
         "max_window_layers", 0, &m.window_layers);
    told("{\"model_type\":\"gpt_oss\",\"num_local_experts\":4,\"num_experts_per_tok\":1," BF HEADS(
             8, 64) "}",
         "layer_types", 2, &m.window_layers);
    told("{\"model_type\":\"deepseek_v3\",\"kv_lora_rank\":512," BF DEEP_NO_SHARED "}",
         "n_shared_experts", 32, &m.shared_ffn);
    told("{\"model_type\":\"deepseek_v3\",\"kv_lora_rank\":512,\"n_shared_experts\":null," BF
             DEEP_NO_SHARED "}",
         "n_shared_experts", 0, &m.shared_ffn);
    assert_ok(reads("{\"model_type\":\"llama\",\"num_key_value_heads\":4,\"head_dim\":16,\"max_"
                    "position_embeddings\":512," BF LLAMA "}"));
    assert_int_equal(m.n_note, 0);
    assert_close(m.longest, 512, 0, 0);
    refuses("{\"model_type\":\"llama\",\"head_dim\":0," BF LLAMA "}", CDMPP_ERANGE, "head_dim");
}

/* Experts stand in groups of one size. */
TEST(groups) {
    assert_ok(reads("{\"model_type\":\"deepseek_v3\",\"kv_lora_rank\":512,\"n_group\":4,\"topk_"
                    "group\":4," LATENT "}"));
    refuses("{\"model_type\":\"deepseek_v3\",\"kv_lora_rank\":512,\"n_group\":3," LATENT "}",
            CDMPP_ERANGE, "n_group");
    refuses("{\"model_type\":\"deepseek_v3\",\"kv_lora_rank\":512,\"n_group\":0," LATENT "}",
            CDMPP_ERANGE, "n_group");
    refuses("{\"model_type\":\"deepseek_v3\",\"kv_lora_rank\":512,\"n_group\":2,\"topk_group\":"
            "3," LATENT "}",
            CDMPP_ERANGE, "topk_group");
}

/* The text part of a model that also sees is answered, and told. */
TEST(parts_beside_text) {
    assert_ok(reads("{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"llama\",\"num_key_"
                    "value_heads\":4,\"head_dim\":16," LLAMA "}," BF "\"vision_config\":{}}"));
    assert_int_equal(m.n_note, 1);
    assert_non_null(strstr(m.note[0], "llava"));
    refuses("{\"model_type\":\"llava\",\"text_config\":\"llama\"," LLAMA "}", CDMPP_ESCHEMA,
            "text_config");
}

/* What text_config does not say stands beside it; what it says counts. */
TEST(fields_of_the_root) {
    assert_ok(reads("{\"text_config\":{\"model_type\":\"llama\",\"quantization_config\":null," LLAMA
                    "},\"torch_dtype\":\"float16\",\"tie_word_embeddings\":true}"));
    assert_int_equal(m.linear, CD_LLM_OP_T_F16);
    assert_true(m.tied);
    assert_ok(reads("{\"text_config\":{\"model_type\":\"llama\"," LLAMA "}," BF
                    "\"quantization_config\":{\"quant_method\":\"fp8\"}}"));
    assert_int_equal(m.linear, CD_LLM_OP_T_FP8);
    assert_ok(reads("{\"text_config\":{\"model_type\":\"llama\",\"torch_dtype\":\"float16\",\"tie_"
                    "word_embeddings\":false," LLAMA
                    "},\"dtype\":\"bfloat16\",\"tie_word_embeddings\":true}"));
    assert_int_equal(m.linear, CD_LLM_OP_T_BF16); /* the whole model's, as its libraries load it */
    assert_true(doubted("but text_config.torch_dtype is") && !m.tied);
    untyped("{\"text_config\":{\"model_type\":\"llama\"," LLAMA "},\"dtype\":\"float64\"}",
            "dtype");
}

TEST(wrong) {
    refuses("{\"model_type\":\"mamba\"}", CDMPP_EUNSUPPORTED, "model_type");
    refuses("{}", CDMPP_ESCHEMA, "model_type");
    refuses("[]", CDMPP_ESCHEMA, "");
    refuses("{\"model_type\":\"llama\",\"hidden_size\":64}", CDMPP_ESCHEMA, "num_hidden_layers");
    refuses("{\"model_type\":\"llama\",\"num_key_value_heads\":3," LLAMA "}", CDMPP_ERANGE,
            "num_key_value_heads");
    refuses("{\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":66,\"num_attention_"
            "heads\":4,\"vocab_size\":256,\"intermediate_size\":128}",
            CDMPP_ERANGE, "head_dim");
    refuses("{\"model_type\":\"llama\",\"num_hidden_layers\":1.5,\"hidden_size\":64}", CDMPP_ERANGE,
            "num_hidden_layers");
    assert_int_equal(reads("{"), CDMPP_EPARSE);
    assert_int_equal(cd_serving_model_load("/no/such/file.json", &m, &err), CDMPP_EIO);
}

TEST(refused) {
    static const char text[] = "{\"model_type\":\"llama\"," LLAMA "}";
    FAULT_SWEEP(f, 0) f.st = cd_serving_model_read("c.json", text, sizeof text - 1, &m, &f.err);
}

TESTS(NULL, NULL, dense, windows, experts, dense_layers, types, blocks, defaults, groups,
      parts_beside_text, fields_of_the_root, wrong, refused)
