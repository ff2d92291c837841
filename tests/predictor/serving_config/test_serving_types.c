/* Types of a checkpoint: kinds of quantisation, what they leave out, and how lists of modules are
 * read. */
#include "predictor/serving_config/serving_config.h"
#include "predictor/serving_config/serving_match.h"
#include "check.h"
#include "fault.h"

static cd_serving_model m;
static cdmpp_err err;

#define BODY                                                                                       \
    "\"model_type\":\"qwen2_moe\",\"torch_dtype\":\"bfloat16\",\"num_hidden_layers\":4,\"hidden_"  \
    "size\":64,\"num_attention_heads\":4,\"num_key_value_heads\":4,\"vocab_size\":256,"            \
    "\"head_dim\":16,\"intermediate_size\":128,\"num_experts\":4,\"num_experts_per_tok\":1,\"moe_" \
    "intermediate_size\":32,\"shared_expert_intermediate_size\":32,\"mlp_only_layers\":[0]"

static cdmpp_status reads(const char *quantisation) {
    char text[2048];
    snprintf(text, sizeof text, "{" BODY ",\"quantization_config\":{%s}}", quantisation);
    err = (cdmpp_err){0};
    return cd_serving_model_read("c.json", text, strlen(text), &m, &err);
}

/* attention, dense, shared, experts */
static void are(const char *quantisation, int attention, int linear, int shared, int expert) {
    assert_ok(reads(quantisation));
    assert_ok(cd_serving_model_typed(&m, -1, &err));
    if ((int)m.attention != attention || (int)m.linear != linear || (int)m.shared != shared ||
        (int)m.expert != expert)
        fail_msg("%s: %d %d %d %d", quantisation, m.attention, m.linear, m.shared, m.expert);
}

static void unknown(const char *quantisation, const char *key) {
    assert_ok(reads(quantisation));
    assert_int_equal(cd_serving_model_typed(&m, -1, &err), CDMPP_EUNSUPPORTED);
    assert_string_equal(err.key, key);
}

enum {
    BF = CD_LLM_OP_T_BF16,
    FP8 = CD_LLM_OP_T_FP8,
    BLOCK = CD_LLM_OP_T_FP8_BLOCK,
    W4 = CD_LLM_OP_T_INT4_WO,
    NV = CD_LLM_OP_T_NVFP4
};
#define LINEAR(weights, inputs)                                                                    \
    "\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"group_0\":{\"targets\":["        \
    "\"Linear\"],\"weights\":{" weights "},\"input_activations\":" inputs "}}"
#define KIMI LINEAR("\"num_bits\":4,\"type\":\"int\",\"group_size\":32", "null")

TEST(kinds) {
    are(LINEAR("\"num_bits\":8,\"type\":\"float\",\"strategy\":\"channel\"",
               "{\"num_bits\":8,\"type\":\"float\"}"),
        FP8, FP8, FP8, FP8);
    are(LINEAR("\"num_bits\":8,\"type\":\"float\",\"strategy\":\"block\",\"block_structure\":[128,"
               "128]",
               "{\"num_bits\":8,\"type\":\"float\"}"),
        BLOCK, BLOCK, BLOCK, BLOCK);
    are(LINEAR("\"num_bits\":8,\"type\":\"int\"", "{\"num_bits\":8,\"type\":\"int\"}"),
        CD_LLM_OP_T_INT8, CD_LLM_OP_T_INT8, CD_LLM_OP_T_INT8, CD_LLM_OP_T_INT8);
    are(LINEAR("\"num_bits\":4,\"type\":\"float\",\"group_size\":16",
               "{\"num_bits\":4,\"type\":\"float\"}"),
        NV, NV, NV, NV);
    are(KIMI, W4, W4, W4, W4);
    assert_close(m.scales, 2. / 32, 0, 0);
    are("\"quant_method\":\"awq\",\"bits\":4,\"group_size\":128,\"zero_point\":true", W4, W4, W4,
        W4);
    assert_close(m.scales, 2.5 / 128, 0, 0);
    are("\"quant_method\":\"modelopt\",\"quant_algo\":\"FP8\",\"kv_cache_quant_algo\":\"FP8\"", FP8,
        FP8, FP8, FP8);
    assert_int_equal(m.kv, FP8);
    are("\"quant_method\":\"mxfp4\",\"modules_to_not_convert\":[\"lm_head\"]", BF, BF, BF,
        CD_LLM_OP_T_W4A16_MXFP4);
    assert_int_equal(m.kv, -1);
    unknown(LINEAR("\"num_bits\":4,\"type\":\"int\"", "{\"num_bits\":8,\"type\":\"float\"}"),
            "quantization_config.config_groups");
    unknown(
        LINEAR(
            "\"num_bits\":8,\"type\":\"float\",\"strategy\":\"block\",\"block_structure\":[64,64]",
            "{\"num_bits\":8,\"type\":\"float\"}"),
        "quantization_config.block_structure");
    unknown("\"quant_method\":\"gptq\",\"bits\":4,\"dynamic\":{\"-:.*\":{}}",
            "quantization_config.dynamic");
    unknown("\"quant_method\":\"bitsandbytes\"", "quantization_config.quant_method");
    unknown("\"quant_method\":\"modelopt\",\"quant_algo\":\"W4A8\"",
            "quantization_config.quant_algo");
    unknown("\"quant_method\":\"compressed-tensors\"", "quantization_config.config_groups");
    unknown(KIMI ",\"kv_cache_scheme\":{\"num_bits\":4}", "quantization_config.kv_cache_scheme");
    assert_non_null(strstr(err.msg, "found 4 bits: "));
    unknown(KIMI ",\"kv_cache_scheme\":{\"num_bits\":16}", "quantization_config.kv_cache_scheme");
    assert_non_null(strstr(err.msg, "found 16 bits: "));
    unknown(KIMI ",\"kv_cache_quant_algo\":\"FP5\"", "quantization_config.kv_cache_quant_algo");
    assert_non_null(strstr(err.msg, "found FP5: "));
}

/* What is left out stays in the type of the checkpoint: memory and times follow. */
TEST(left_out) {
    are(KIMI ",\"ignore\":[\"lm_head\",\"re:.*self_attn.*\",\"re:.*shared_experts?.*\",\"re:.*"
             "mlp\\\\.(gate|up|gate_up|down)_proj.*\"]",
        BF, BF, BF, W4);
    are(KIMI ",\"ignore\":[\"re:model\\\\.layers\\\\.\\\\d+\\\\.self_attn\\\\.[qkvo]_proj\"]", BF,
        W4, W4, W4);
    /* the router, not gate_proj */
    are("\"quant_method\":\"fp8\",\"modules_to_not_convert\":[\"lm_head\",\"model.layers.1.mlp."
        "gate\",\"gate\"]",
        FP8, FP8, FP8, FP8);
    are("\"quant_method\":\"fp8\",\"ignored_layers\":[\"self_attn\"]", BF, FP8, FP8, FP8);
    are("\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\",\"exclude_modules\":[\"*self_attn*"
        "\",\"*.shared_expert.*\"]",
        BF, NV, BF, NV);
    /* 3 of 4 */
    are("\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\",\"ignore\":[\"model.layers.0.self_"
        "attn*\",\"model.layers.1.self_attn*\",\"model.layers.2.self_attn*\"]",
        BF, NV, NV, NV);
    assert_true(strstr(m.note[m.n_note - 1], "75 %") != NULL);
    /* 1 of 12 */
    are("\"quant_method\":\"fp8\",\"modules_to_not_convert\":[\"language_model.model.layers.3.self_"
        "attn.q_proj\"]",
        FP8, FP8, FP8, FP8);
    assert_true(strstr(m.note[m.n_note - 1], "92 %") != NULL);
    unknown(KIMI ",\"ignore\":[\"re:^(?!.*experts).*\"]", "quantization_config.ignore");
    are("\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"a\":{\"targets\":[\"re:.*"
        "self_attn.*\"],\"weights\":{\"num_bits\":8,\"type\":\"float\"},\"input_activations\":{"
        "\"num_bits\":8,\"type\":\"float\"}},"
        "\"b\":{\"targets\":[\"re:.*mlp\\\\.experts.*\"],\"weights\":{\"num_bits\":4,\"type\":"
        "\"int\"}}}",
        FP8, BF, BF, W4);
}

TEST(matching) {
    static const struct {
        const char *list, *module;
        bool fits;
    } of[] = {{"[\"mlp.gate\"]", "mlp.gate", true},
              {"[\"mlp.gate\"]", "mlp.gate_proj", false},
              {"[\"gate_proj\"]", "mlp.gate_proj", true},
              {"\"mlp\"", "mlp.gate_proj", true},
              {"[\"layers.2.mlp\"]", "mlp.gate_proj", true},
              {"[\"layers.22.mlp\"]", "mlp.gate_proj", false},
              {"[\"layers.2\"]", "mlp.x", true},
              {"[\"a.b.layers.2.mlp*\"]", "mlp.x", true},
              {"[\"*.mlp\"]", "mlp.x", false},
              {"[\"re:.*mlp$\"]", "mlp.x", false},
              {"[\"re:mlp\"]", "mlp.x", false},
              {"[\"re:.*mlp\"]", "mlp.x", true},
              {"[\"re:(?:model)?layers\"]", "x", false},
              {"[\"re:(?:model)\\\\.layers\"]", "x", true},
              {"[3,null,\"\"]", "x", false},
              {"{}", "x", false}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        cd_arena a = {0};
        const cd_json *list = NULL;
        cd_serving_match v;
        assert_ok(cd_json_parse(&a, of[i].list, strlen(of[i].list), &list, &err));
        assert_ok(cd_serving_match_new(list, &v, &err));
        if (cd_serving_match_any(&v, 2, of[i].module) != of[i].fits)
            fail_msg("%s %s", of[i].list, of[i].module);
        assert_true(!v.bad);
        cd_serving_match_free(&v);
        cd_arena_free(&a);
    }
    for (const char *const *p = (const char *const[]){"\"re:a{3}\"", "\"re:\\\\w\"", "\"re:(?=a)\"",
                                                      "\"re:(\"", "\"re:(a)\\\\1\"", NULL};
         *p; p++) {
        cd_arena a = {0};
        const cd_json *list = NULL;
        cd_serving_match v;
        assert_ok(cd_json_parse(&a, *p, strlen(*p), &list, &err));
        assert_ok(cd_serving_match_new(list, &v, &err));
        if (!v.bad) fail_msg("%s", *p);
        cd_serving_match_free(&v);
        cd_arena_free(&a);
    }
}

TEST(served_in_16_bits) {
    static const char text[] =
        "{\"model_type\":\"llama\",\"torch_dtype\":\"float32\",\"num_hidden_layers\":2,\"hidden_"
        "size\":64,\"num_attention_heads\":4,\"vocab_size\":256,\"intermediate_size\":128}";
    assert_ok(cd_serving_model_read("c.json", text, sizeof text - 1, &m, &err));
    assert_ok(cd_serving_model_typed(&m, -1, &err));
    assert_int_equal(m.base, BF);
    assert_true(strstr(m.note[m.n_note - 1], "float32") != NULL);
}

#define TINY                                                                                       \
    "\"num_hidden_layers\":2,\"hidden_size\":64,\"num_attention_heads\":4,\"vocab_size\":256,"     \
    "\"intermediate_size\":128"
/* What says a type where, which is taken, the two that are told; NULL: they agree. */
TEST(types_that_contradict) {
    static const struct {
        const char *root, *inner; /* NULL: no text_config */
        cd_llm_op_type base;
        const char *told;
    } of[] = {
        {"\"dtype\":\"float16\",\"torch_dtype\":\"bfloat16\"", NULL, CD_LLM_OP_T_F16,
         "dtype is float16, but torch_dtype is bfloat16: float16 is taken"},
        {"\"torch_dtype\":\"bfloat16\",\"dtype\":\"float16\"", NULL, CD_LLM_OP_T_F16,
         "dtype is float16, but torch_dtype is bfloat16: float16 is taken"},
        {"\"torch_dtype\":\"float16\",\"dtype\":\"float16\"", NULL, CD_LLM_OP_T_F16, NULL},
        {"\"torch_dtype\":\"float16\",\"dtype\":null", NULL, CD_LLM_OP_T_F16, NULL},
        {"\"torch_dtype\":\"bfloat16\"", "\"dtype\":\"float16\"", CD_LLM_OP_T_BF16,
         "torch_dtype is bfloat16, but text_config.dtype is float16: bfloat16 is taken"},
        {"\"dtype\":\"float16\"", "\"dtype\":\"float16\",\"torch_dtype\":\"float32\"",
         CD_LLM_OP_T_F16,
         "dtype is float16, but text_config.torch_dtype is float32: float16 is taken"},
        {"\"x\":1", "\"dtype\":\"float16\",\"torch_dtype\":\"bfloat16\"", CD_LLM_OP_T_F16,
         "text_config.dtype is float16, but text_config.torch_dtype is bfloat16: float16 is taken"},
        {"\"dtype\":\"bfloat16\"", "\"dtype\":\"bfloat16\"", CD_LLM_OP_T_BF16, NULL}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char text[1024];
        if (of[i].inner)
            snprintf(text, sizeof text,
                     "{\"model_type\":\"x\",%s,\"text_config\":{\"model_type\":\"llama\",%s," TINY
                     "}}",
                     of[i].root, of[i].inner);
        else snprintf(text, sizeof text, "{\"model_type\":\"llama\",%s," TINY "}", of[i].root);
        assert_ok(cd_serving_model_read("c.json", text, strlen(text), &m, &err));
        assert_int_equal(m.base, of[i].base);
        size_t doubt = 0;
        while (doubt < m.n_note && !m.doubt[doubt]) doubt++;
        assert_int_equal(doubt < m.n_note, of[i].told != NULL);
        if (of[i].told && strncmp(m.note[doubt], of[i].told, strlen(of[i].told)) != 0)
            fail_msg("%s", m.note[doubt]);
    }
    /* as without targets */
    are("\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"a\":{\"targets\":null,"
        "\"weights\":{\"num_bits\":4,\"type\":\"int\"}}}",
        W4, W4, W4, W4);
}

/* Spellings that are rare. */
TEST(rare) {
    char groups[4000] = "\"quant_method\":\"compressed-tensors\",\"config_groups\":{";
    /* one target, in no list */
    are("\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"a\":{\"targets\":\"re:.*mlp.*"
        "\",\"weights\":{\"num_bits\":4,\"type\":\"int\"}}}",
        BF, W4, W4, W4);
    are("\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"a\":{\"targets\":[3,"
        "\"Linear\"],\"weights\":{\"num_bits\":4,\"type\":\"int\"}}}",
        W4, W4, W4, W4);
    are("\"quant_method\":\"gptq\",\"bits\":4,\"dynamic\":{}", W4, W4, W4, W4);
    are(LINEAR("\"num_bits\":8,\"type\":\"float\",\"strategy\":\"block\"",
               "{\"num_bits\":8,\"type\":\"float\"}"),
        BLOCK, BLOCK, BLOCK, BLOCK);
    are(LINEAR("\"num_bits\":8,\"type\":\"float\",\"strategy\":\"block\",\"block_structure\":null",
               "{\"num_bits\":8,\"type\":\"float\"}"),
        BLOCK, BLOCK, BLOCK, BLOCK);
    are(KIMI ",\"kv_cache_scheme\":{\"num_bits\":8,\"type\":\"int\"}", W4, W4, W4, W4);
    assert_int_equal(m.kv, CD_LLM_OP_T_INT8);
    are(KIMI ",\"kv_cache_scheme\":{\"num_bits\":8,\"type\":\"float\"}", W4, W4, W4, W4);
    assert_int_equal(m.kv, FP8);
    are("\"quant_method\":\"modelopt\",\"quant_algo\":\"FP8\",\"config_groups\":[]", FP8, FP8, FP8,
        FP8);
    are("\"quant_method\":\"modelopt\",\"quant_algo\":\"FP8\",\"config_groups\":{}", FP8, FP8, FP8,
        FP8);
    unknown("\"quant_method\":\"modelopt\",\"quant_algo\":3", "quantization_config.quant_algo");
    assert_non_null(strstr(err.msg, "found nothing"));
    unknown("\"quant_method\":\"modelopt\",\"quant_algo\":\"MIXED_PRECISION\"",
            "quantization_config.quant_algo");
    unknown(
        "\"quant_method\":\"modelopt\",\"quant_algo\":\"MIXED_PRECISION\",\"quantized_layers\":[]",
        "quantization_config.quant_algo");
    unknown(
        "\"quant_method\":\"modelopt\",\"quant_algo\":\"MIXED_PRECISION\",\"quantized_layers\":{}",
        "quantization_config.quant_algo");
    unknown("\"quant_method\":\"awq\",\"bits\":3", "quantization_config.bits");
    for (int i = 0; i < 17; i++)
        snprintf(groups + strlen(groups), sizeof groups - strlen(groups),
                 "%s\"g%d\":{\"targets\":[\"a%d\"],\"weights\":{\"num_bits\":4,\"type\":\"int\"}}",
                 i ? "," : "", i, i);
    strcat(groups, "}");
    unknown(groups, "quantization_config.config_groups");
    assert_string_equal(err.msg, "expected at most 16");
}

TEST(base_types) {
    static const struct {
        const char *type;
        cd_llm_op_type base;
    } of[] = {{"torch.bfloat16", CD_LLM_OP_T_BF16},
              {"torch.float16", CD_LLM_OP_T_F16},
              {"half", CD_LLM_OP_T_F16},
              {"float", CD_LLM_OP_T_BF16},
              {"auto", CD_LLM_OP_T_BF16},
              {"bfloat16", CD_LLM_OP_T_BF16}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char text[600];
        snprintf(text, sizeof text, "{\"model_type\":\"llama\",\"dtype\":\"%s\"," TINY "}",
                 of[i].type);
        assert_ok(cd_serving_model_read("c.json", text, strlen(text), &m, &err));
        if (m.base != of[i].base) fail_msg("%s: %d", of[i].type, (int)m.base);
    }
}

TEST(refused) {
    static const char text[] = "{" BODY ",\"quantization_config\":{" KIMI
                               ",\"ignore\":[\"lm_head\",\"re:.*self_attn.*\"]}}";
    FAULT_SWEEP(f, 0) f.st = cd_serving_model_read("c.json", text, sizeof text - 1, &m, &f.err);
}

TESTS(NULL, NULL, kinds, left_out, matching, served_in_16_bits, types_that_contradict, rare,
      base_types, refused)
