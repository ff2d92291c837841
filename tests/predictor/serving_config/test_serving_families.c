/* Families of models: parameters of published ones, caches, layers that differ; what no family
 * reads is refused. */
#include "predictor/serving_config/serving_family.h"
#include "predictor/serving/serving.h"
#include "base/io/io.h"
#include "check.h"

static cd_serving_model m;
static cdmpp_err err;

static const struct {
    const char *name;
    double billions;
    const char *text;
} published[] = {
#define M(name, billions, text) {name, billions, text},
#include "published_models.def"
};
enum { N_PUBLISHED = sizeof published / sizeof *published };

static cdmpp_status reads(const char *text) {
    err = (cdmpp_err){0};
    return cd_serving_model_read("c.json", text, strlen(text), &m, &err);
}

static void read_named(const char *name) {
    for (size_t i = 0; i < N_PUBLISHED; i++)
        if (!strcmp(published[i].name, name)) {
            assert_ok(reads(published[i].text));
            return;
        }
    fail_msg("no %s", name);
}

static void refuses(const char *text, cdmpp_status st, const char *key) {
    assert_int_equal(reads(text), st);
    assert_string_equal(err.key, key);
}

TEST(parameters) {
    for (size_t i = 0; i < N_PUBLISHED; i++) {
        check_status(reads(published[i].text), CDMPP_OK, &err, published[i].name, __FILE__,
                     __LINE__);
        const double got = cd_serving_model_parameters(&m) * 1e-9;
        if (fabs(got / published[i].billions - 1) > 0.01)
            fail_msg("%s: %g, published %g", published[i].name, got, published[i].billions);
    }
}

/* Numbers of a cache for one token of one sequence of 4096, in 16 bits: keys and values of all
 * layers, of windows no more than the window, latent ones alone. */
TEST(caches) {
    static const struct {
        const char *name;
        double bytes;
    } of[] = {
        {"llama3.1-8b", 2 * 2 * 32 * 8 * 128},
        {"deepseek-v3", 2 * 61 * 576},
        {"deepseek-v3.2", 2 * 61 * 576 + 61 * 132},
        {"gemma3-27b", 2 * 2 * 16 * 128 * (10 + 52 * 1024. / 4096)},
        {"gemma2-27b", 2 * 2 * 16 * 128 * 46},
        {"falcon-7b", 2 * 2 * 32 * 64},
        {"gpt-oss-20b", 2 * 2 * 8 * 64 * (12 + 12 * 128. / 4096)},
        /* 12 layers of attention; a state of 32 heads of 128 x 128 in 4 bytes, 3 values of
               * 8192 channels in 2 */
        {"qwen3-next-80b", 2 * 2 * 12 * 2 * 256 + 36 * (4 * 32 * 128 * 128 + 2 * 3 * 8192) / 4096.},
        {"nemotron-3-nano-30b",
         2 * 2 * 6 * 2 * 128 + 23 * (4 * 64 * 64 * 128 + 2 * 3 * 6144) / 4096.}};
    const cd_device d = {.name = "d", .mem_gb = 1e5};
    const cd_serving_stack k = {.name = "vllm", .memory_share = 0.9};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        cd_serving_layout l = {.tp = 1, .pp = 1, .dp = 1, .moe_ep = 1, .kv = CD_LLM_OP_T_BF16};
        cd_serving_memory v;
        read_named(of[i].name);
        assert_ok(cd_serving_layout_check(&m, &l, &err));
        assert_ok(cd_serving_memory_of(&m, &l, &k, &d, 1, 4096, 4096, &v, &err));
        assert_close(v.token, of[i].bytes, 1e-12, 0);
    }
}

/* A card smaller than that of the fit has less put aside; a larger one no more. */
TEST(reserve) {
    cd_device d = {.name = "d", .mem_gb = 40};
    const cd_serving_stack k = {.name = "vllm", .memory_share = 0.9, .reserve_gb = 8};
    cd_serving_layout l = {.tp = 1, .pp = 1, .dp = 1, .moe_ep = 1, .kv = CD_LLM_OP_T_BF16};
    cd_serving_memory v;
    read_named("llama3.2-1b");
    assert_ok(cd_serving_layout_check(&m, &l, &err));
    assert_ok(cd_serving_memory_of(&m, &l, &k, &d, 1, 64, 64, &v, &err));
    assert_close(v.reserve, 4e9, 0, 1);
    d.mem_gb = 160;
    assert_ok(cd_serving_memory_of(&m, &l, &k, &d, 1, 64, 64, &v, &err));
    assert_close(v.reserve, 8e9, 0, 1);
}

TEST(layers) {
    read_named("llama4-maverick");
    assert_true(m.sparse_layers >= 24 && m.sparse_layers <= 24 && m.dense_layers >= 24 &&
                m.window_layers >= 36 && m.window_layers <= 36);
    assert_close(m.ffn, 16384, 0, 0);
    assert_close(m.shared_ffn, 8192, 0, 0);
    read_named("nemotron-nano-9b-v2");
    assert_close(m.state.layers, 27, 0, 0);
    assert_close(m.attention_layers, 4, 0, 0);
    assert_close(m.dense_layers, 25, 0, 0);
    assert_true(m.products < 3 && m.norms < 2 && m.sparse_layers <= 0);
    read_named("qwen3-next-80b");
    assert_true(m.gates > 1 && m.qk_norm && m.state.layers >= 36 && m.state.layers <= 36);
    assert_close(m.state.in, 2 * 16 * 128 + 2 * 32 * 128, 0, 0);
    read_named("minimax-m1");
    assert_close(m.state.layers, 70, 0, 0);
    read_named("gemma3-27b");
    assert_true(m.tied && m.norms >= 4);
    assert_close(m.window_layers, 52, 0, 0);
    read_named("command-a");
    assert_close(m.window_layers, 48, 0, 0);
    read_named("granite-4.0-h-small");
    assert_close(m.attention_layers, 4, 0, 0);
}

#define PLAIN                                                                                      \
    "\"num_hidden_layers\":4,\"hidden_size\":64,\"num_attention_heads\":4,\"num_key_value_"        \
    "heads\":4,\"head_dim\":16,\"vocab_size\":256,\"intermediate_size\":128"
TEST(forms_of_fields) {
    assert_ok(reads(
        "{\"model_type\":\"nemotron_h\",\"layers_block_type\":[\"mamba\",\"moe\",\"attention\","
        "\"mlp\"],\"mamba_num_heads\":4,\"mamba_head_dim\":8,\"ssm_state_size\":16,\"n_groups\":2,"
        "\"conv_kernel\":4,\"n_routed_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_"
        "size\":8,\"n_shared_experts\":1,\"moe_shared_expert_intermediate_size\":24," PLAIN "}"));
    assert_true(m.state.layers >= 1 && m.state.layers <= 1 && m.sparse_layers >= 1 &&
                m.sparse_layers <= 1 && m.dense_layers <= 1 && m.shared_ffn >= 24);
    assert_close(m.state.in, 2 * 32 + 2 * 2 * 16 + 4, 0, 0);
    assert_ok(reads("{\"model_type\":\"exaone4\",\"sliding_window\":8,\"sliding_window_pattern\":"
                    "\"LLLG\"," PLAIN "}"));
    assert_close(m.window_layers, 3, 0, 0);
    assert_ok(reads(
        "{\"model_type\":\"granitemoehybrid\",\"num_local_experts\":0,\"shared_intermediate_size\":"
        "96,\"layer_types\":[\"attention\",\"attention\",\"attention\",\"attention\"]," PLAIN "}"));
    assert_true(m.experts <= 0 && m.sparse_layers <= 0);
    assert_close(m.ffn, 96, 0, 0);
    assert_ok(reads("{\"model_type\":\"llama4_text\",\"num_local_experts\":4,\"num_experts_per_"
                    "tok\":1,\"attention_chunk_size\":8," PLAIN "}"));
    assert_close(m.window_layers, 3, 0, 0);
    assert_ok(reads("{\"model_type\":\"cohere\"," PLAIN "}"));
    assert_true(m.tied);
    assert_ok(reads("{\"model_type\":\"cohere\",\"tie_word_embeddings\":false," PLAIN "}"));
    assert_true(!m.tied);
    assert_ok(reads(
        "{\"model_type\":\"qwen3_next\",\"attn_output_gate\":false,\"num_experts\":4,\"num_experts_"
        "per_tok\":1,\"moe_intermediate_size\":8,\"linear_num_key_heads\":2,\"linear_num_value_"
        "heads\":4,"
        "\"linear_key_head_dim\":8,\"linear_value_head_dim\":8,\"linear_conv_kernel_dim\":4," PLAIN
        "}"));
    assert_true(m.gates < 2);
}

/* A field of a part that the family is not answered with would be left out without a word. */
TEST(parts_of_others) {
    static const char *const of[] = {"\"kv_lora_rank\":512",
                                     "\"index_topk\":2048",
                                     "\"num_experts\":8",
                                     "\"num_local_experts\":8",
                                     "\"n_routed_experts\":8",
                                     "\"cross_attention_layers\":[1]",
                                     "\"block_configs\":[{}]",
                                     "\"hybrid_override_pattern\":\"M*\"",
                                     "\"linear_num_value_heads\":32",
                                     "\"attention_chunk_size\":8192",
                                     "\"num_kv_shared_layers\":10",
                                     "\"use_cla\":true",
                                     "\"attn_layer_period\":8"};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char text[512], key[64] = {0};
        snprintf(text, sizeof text, "{\"model_type\":\"llama\",%s," PLAIN "}", of[i]);
        snprintf(key, sizeof key, "%.*s", (int)strcspn(of[i] + 1, "\""), of[i] + 1);
        refuses(text, CDMPP_EUNSUPPORTED, key);
    }
    assert_ok(reads("{\"model_type\":\"llama\",\"num_experts\":0,\"use_cla\":false,\"kv_lora_"
                    "rank\":null,\"block_configs\":[]," PLAIN "}"));
    refuses("{\"model_type\":\"minimax_m2\",\"num_local_experts\":4,\"num_experts_per_tok\":1,"
            "\"attn_type_list\":[1,1,0,1]," PLAIN "}",
            CDMPP_EUNSUPPORTED, "attn_type_list");
    refuses(
        "{\"model_type\":\"minimax_m1\",\"num_local_experts\":4,\"num_experts_per_tok\":1," PLAIN
        "}",
        CDMPP_ESCHEMA, "attn_type_list");
    refuses("{\"model_type\":\"minimax_m1\",\"num_local_experts\":4,\"num_experts_per_tok\":1,"
            "\"attn_type_list\":[1,0]," PLAIN "}",
            CDMPP_ERANGE, "attn_type_list");
    refuses("{\"model_type\":\"nemotron_h\"," PLAIN "}", CDMPP_ESCHEMA, "hybrid_override_pattern");
    refuses("{\"model_type\":\"nemotron_h\",\"hybrid_override_pattern\":\"*-\"," PLAIN "}",
            CDMPP_ERANGE, "hybrid_override_pattern");
    refuses("{\"model_type\":\"nemotron_h\",\"hybrid_override_pattern\":\"*-*x\"," PLAIN "}",
            CDMPP_EUNSUPPORTED, "hybrid_override_pattern[3]");
    refuses("{\"model_type\":\"granitemoehybrid\",\"num_local_experts\":0,\"shared_intermediate_"
            "size\":96," PLAIN "}",
            CDMPP_ESCHEMA, "layer_types");
}

/* The page has all of them, and no family is there twice. */
/* The text with `key` called otherwise; null: and with the key again, as null, in each object that
 * may have it. */
static void without(const char *text, const char *key, bool null, cd_buf *out) {
    char quoted[80];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    cd_buf_clear(out);
    for (const char *p = text; *p; p++) {
        const bool begins =
            p == text || (p - text > 13 && !strncmp(p - 14, "\"text_config\":", 14));
        if (!strncmp(p, quoted, strlen(quoted))) cd_buf_puts(out, "\"other_"), p++;
        cd_buf_put(out, p, 1);
        if (*p == '{' && begins && null) cd_buf_putf(out, "%snull,", quoted);
    }
}

/* Wherever a field may be absent it may be null, and says no more than if it were absent; but for
 * those of which Hugging Face's own classes take null for an answer. */
TEST(null_is_absent) {
    static const char *const key[] = {"dtype",
                                      "torch_dtype",
                                      "vocab_size",
                                      "num_attention_heads",
                                      "max_position_embeddings",
                                      "use_qk_norm",
                                      "attn_output_gate",
                                      "multi_query",
                                      "new_decoder_architecture",
                                      "num_kv_heads",
                                      "ffn_hidden_size",
                                      "intermediate_size",
                                      "tie_word_embeddings",
                                      "quantization_config",
                                      "layer_types",
                                      "use_sliding_window",
                                      "max_window_layers",
                                      "sliding_window_pattern",
                                      "attention_chunk_size",
                                      "no_rope_layers",
                                      "full_attention_interval",
                                      "hybrid_override_pattern",
                                      "layers_block_type",
                                      "attn_type_list",
                                      "mlp_only_layers",
                                      "decoder_sparse_step",
                                      "n_group",
                                      "topk_group",
                                      "moe_shared_expert_intermediate_size",
                                      "index_topk",
                                      "kv_lora_rank",
                                      "num_experts",
                                      "num_local_experts",
                                      "n_routed_experts",
                                      "moe_num_experts",
                                      "first_k_dense_replace",
                                      "cross_attention_layers",
                                      "rope_scaling",
                                      "vision_config",
                                      "text_config",
                                      "head_dim",
                                      "num_key_value_heads",
                                      "sliding_window",
                                      "q_lora_rank",
                                      "n_shared_experts",
                                      "shared_expert_intermediate_size"};
    enum { N_KEY = sizeof key / sizeof *key, ANSWERS = 6 }; /* the last ones: null is an answer */
    static cd_serving_model absent;
    cd_buf b = {0};
    for (size_t i = 0; i < N_PUBLISHED; i++)
        for (size_t k = 0; k < N_KEY; k++) {
            /* all the others are in it */
            if (!strcmp(key[k], "text_config") && strstr(published[i].text, key[k])) continue;
            without(published[i].text, key[k], false, &b);
            const cdmpp_status st = reads(b.p);
            absent = m;
            without(published[i].text, key[k], true, &b);
            if (reads(b.p) != st && (!st || k < N_KEY - ANSWERS))
                fail_msg("%s: %s null: %d, absent: %d", published[i].name, key[k], err.code, st);
            memset(absent.note, 0, sizeof m.note), memset(m.note, 0, sizeof m.note);
            if (!st && k < N_KEY - ANSWERS && memcmp(&absent, &m, sizeof m))
                fail_msg("%s: %s null is another model than without it", published[i].name, key[k]);
        }
    cd_buf_free(&b);
}

TEST(documented) {
    char *text = NULL;
    size_t n;
    assert_ok(cd_file_read("docs/reference/serving.md", 0, &text, &n, &err));
    for (size_t i = 0; i < cd_serving_n_family; i++) {
        char word[80];
        snprintf(word, sizeof word, "`%s`", cd_serving_families[i].type);
        if (!memmem(text, n, word, strlen(word)))
            fail_msg("%s is not in docs/reference/serving.md", word);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(cd_serving_families[i].type, cd_serving_families[k].type);
    }
    cd_mem_free(text);
}

TESTS(NULL, NULL, documented, parameters, caches, reserve, layers, null_is_absent, forms_of_fields,
      parts_of_others)
