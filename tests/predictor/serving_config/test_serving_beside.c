/* Files beside config.json: the one that says what is quantised decides the types, the index checks
 * the number of bytes; of another name than config.json they are not read. */
#include "made_config.h"
#include "fault.h"
#include "tmp.h"

static tmp_dir dir;
static cd_serving_model m;
static cdmpp_err err;

static int up(void **state) {
    (void)state;
    dir = tmp_make();
    return 0;
}

static int down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

static cdmpp_status load(const char *config, const char *name, const char *text) {
    (void)tmp_put(&dir, "config.json", config, strlen(config));
    if (name) (void)tmp_put(&dir, name, text, strlen(text));
    err = (cdmpp_err){0};
    const cdmpp_status st = cd_serving_model_load(tmp_path(&dir, "config.json"), &m, &err);
    if (name) (void)remove(tmp_path(&dir, name));
    return st;
}

static const char hf[] = "hf_quant_config.json";
#define QUANT(fields) "{\"producer\":{\"name\":\"modelopt\"},\"quantization\":{" fields "}}"

/* What an index says that cannot be used is reported, and no error. */
TEST(odd_files) {
    static const char config[] =
        "{\"model_type\":\"llama\",\"hidden_size\":64,\"intermediate_size\":128,\"num_hidden_"
        "layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"vocab_size\":100}";
    static const struct {
        const char *name, *text;
        cdmpp_status st;
        const char *key, *words;
    } of[] = {
        {hf, "[]", CDMPP_ESCHEMA, "", "expected an object, found array"},
        {hf, "{\"quantization\":7}", CDMPP_ESCHEMA, "quantization",
         "expected an object that says what is quantised"},
        {hf, "{", CDMPP_EPARSE, "", ""},
        {"model.safetensors.index.json", "[]", CDMPP_OK, "", ""},
        {"model.safetensors.index.json", "{\"metadata\":{\"total_size\":\"many\"}}", CDMPP_OK, "",
         ""},
        {"model.safetensors.index.json", "{\"metadata\":{\"total_size\":0}}", CDMPP_OK, "", ""},
        {"model.safetensors.index.json", "{\"metadata\":7}", CDMPP_OK, "", ""}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const cdmpp_status st = load(config, of[i].name, of[i].text);
        if (st != of[i].st || strcmp(err.key, of[i].key) || !strstr(err.msg, of[i].words))
            fail_msg("%zu: %d, %s: %s", i, (int)st, err.key, err.msg);
        bool doubt = st != CDMPP_OK;
        for (size_t k = 0; k < m.n_note; k++)
            doubt |= strstr(m.note[k], "has no metadata.total_size that can be read") != NULL;
        assert_true(doubt);
    }
    (void)load(config, NULL, NULL);
    err = (cdmpp_err){0};
    /* the folder stands for its config.json */
    assert_ok(cd_serving_model_load(dir.path, &m, &err));
    assert_true(m.layers == 2 && m.hidden == 64);
    assert_status(cd_serving_model_load(tmp_path(&dir, "none"), &m, &err), CDMPP_EIO);
}

TEST(says_the_types) {
    static const struct {
        const char *name, *text;
        cd_llm_op_type linear;
        int kv;
        double scales;
    } of[] = {
        {hf,
         QUANT("\"quant_algo\":\"FP8\",\"kv_cache_quant_algo\":\"FP8\",\"exclude_modules\":[\"lm_"
               "head\"]"),
         CD_LLM_OP_T_FP8, CD_LLM_OP_T_FP8, 0},
        {hf, QUANT("\"quant_algo\":\"NVFP4\",\"kv_cache_quant_algo\":\"NVFP4\",\"group_size\":16"),
         CD_LLM_OP_T_NVFP4, CD_LLM_OP_T_NVFP4, 0},
        {hf,
         QUANT("\"quant_algo\":\"W4A16_AWQ\",\"kv_cache_quant_algo\":null,\"group_size\":128,\"has_"
               "zero_point\":false"),
         CD_LLM_OP_T_INT4_WO, -1, 2 / 128.},
        {hf, QUANT("\"quant_algo\":\"W8A16\",\"kv_cache_quant_algo\":\"INT8\""),
         CD_LLM_OP_T_INT8_WO, CD_LLM_OP_T_INT8, 0},
        {hf, QUANT("\"quant_algo\":\"FP8_PB_WO\""), CD_LLM_OP_T_FP8_BLOCK, -1, 0},
        {hf, QUANT("\"quant_algo\":null,\"kv_cache_quant_algo\":null"), CD_LLM_OP_T_BF16, -1, 0},
        {"quantize_config.json", "{\"bits\":4,\"group_size\":64,\"desc_act\":false,\"sym\":true}",
         CD_LLM_OP_T_INT4_WO, -1, 2 / 64.},
        {"quant_config.json",
         "{\"zero_point\":true,\"q_group_size\":128,\"w_bit\":4,\"version\":\"GEMM\"}",
         CD_LLM_OP_T_INT4_WO, -1, 2.5 / 128}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        check_status(load(MADE_LLAMA "}", of[i].name, of[i].text), CDMPP_OK, &err, of[i].text,
                     __FILE__, __LINE__);
        assert_ok(cd_serving_model_typed(&m, -1, &err));
        assert_int_equal(m.linear, of[i].linear);
        assert_int_equal(m.attention, of[i].linear);
        assert_int_equal(m.kv, of[i].kv);
        assert_close(m.scales, of[i].scales, 1e-12, 0);
        assert_int_equal(made_note(&m, of[i].name, false) != NULL,
                         of[i].linear != CD_LLM_OP_T_BF16);
    }
}

/* What is left out of it stays in 16 bits, as in config.json. */
TEST(leaves_out) {
    assert_ok(load(MADE_LLAMA "}", hf,
                   QUANT("\"quant_algo\":\"FP8\",\"exclude_modules\":[\"lm_head\",\"model.layers.*."
                         "self_attn*\"]")));
    assert_int_equal(m.linear, CD_LLM_OP_T_FP8);
    assert_int_equal(m.attention, CD_LLM_OP_T_BF16);
}

/* A word for each product: each part has that of most of its products, and the others none. */
TEST(mixed) {
    assert_ok(load(
        MADE_LLAMA "}", hf,
        QUANT("\"quant_algo\":\"MIXED_PRECISION\",\"kv_cache_quant_algo\":\"FP8\",\"quantized_"
              "layers\":{"
              "\"model.layers.0.self_attn\":{\"quant_algo\":\"FP8\"},\"model.layers.1.self_attn\":{"
              "\"quant_algo\":\"FP8\"},\"model.layers.2.self_attn\":{\"quant_algo\":\"FP8\"},"
              "\"model.layers.0.mlp\":{\"quant_algo\":\"W4A16_AWQ\",\"group_size\":128},\"model."
              "layers.1.mlp\":{\"quant_algo\":\"W4A16_AWQ\",\"group_size\":128},"
              "\"model.layers.2.mlp\":{\"quant_algo\":\"W4A16_AWQ\",\"group_size\":128},\"model."
              "layers.3.mlp\":{\"quant_algo\":\"W4A16_AWQ\",\"group_size\":128}}")));
    assert_ok(cd_serving_model_typed(&m, -1, &err));
    assert_int_equal(m.attention, CD_LLM_OP_T_FP8);
    assert_int_equal(m.linear, CD_LLM_OP_T_INT4_WO);
    assert_int_equal(m.kv, CD_LLM_OP_T_FP8);
    assert_close(m.scales, 2 / 128., 1e-12, 0);
    assert_non_null(made_note(&m, "fp8 of 75 %", false)); /* of four layers three are named */
    assert_null(made_note(&m, "not read", true));
    assert_ok(load(MADE_LLAMA "}", hf,
                   QUANT("\"quant_algo\":\"MIXED_PRECISION\",\"quantized_layers\":{\"model.layers."
                         "0.mlp\":{\"quant_algo\":\"ODD\"}}")));
    assert_status(cd_serving_model_typed(&m, -1, &err), CDMPP_EUNSUPPORTED);
    assert_string_equal(err.key, "quantized_layers.quant_algo");
}

/* config.json counts first; that they differ is told. */
TEST(both) {
    static const char own[] = MADE_LLAMA
        ",\"quantization_config\":{\"quant_method\":\"modelopt\",\"quant_algo\":\"FP8\"}}";
    assert_ok(load(own, hf, QUANT("\"quant_algo\":\"NVFP4\"")));
    assert_int_equal(m.linear, CD_LLM_OP_T_FP8);
    assert_non_null(made_note(&m, hf, true));
    assert_ok(load(own, hf, QUANT("\"quant_algo\":\"FP8\"")));
    assert_null(made_note(&m, hf, true));
}

/* A file that decides types and cannot be read, or says a type that is of no operator. */
TEST(refused) {
    assert_status(load(MADE_LLAMA "}", hf, "{"), CDMPP_EPARSE);
    assert_non_null(strstr(err.path, hf));
    assert_status(load(MADE_LLAMA "}", hf, "{}"), CDMPP_ESCHEMA);
    assert_string_equal(err.key, "quantization");
    assert_ok(load(MADE_LLAMA "}", hf, QUANT("\"quant_algo\":\"MIXED_PRECISION\"")));
    assert_status(cd_serving_model_typed(&m, -1, &err), CDMPP_EUNSUPPORTED);
    assert_string_equal(err.key, "quant_algo");
    assert_non_null(strstr(err.path, hf));
    assert_ok(
        load(MADE_LLAMA "}", hf, QUANT("\"quant_algo\":\"FP8\",\"kv_cache_quant_algo\":\"ODD\"")));
    assert_status(cd_serving_model_typed(&m, -1, &err), CDMPP_EUNSUPPORTED);
    assert_string_equal(err.key, "kv_cache_quant_algo");
}

TEST(another_name) {
    const char *path = tmp_put(&dir, "other.json", MADE_LLAMA "}", sizeof MADE_LLAMA);
    (void)tmp_put(&dir, hf, QUANT("\"quant_algo\":\"FP8\""),
                  sizeof QUANT("\"quant_algo\":\"FP8\"") - 1);
    assert_ok(cd_serving_model_load(path, &m, &err));
    (void)remove(tmp_path(&dir, hf));
    assert_int_equal(m.linear, CD_LLM_OP_T_BF16);
    assert_non_null(made_note(&m, hf, true));
}

/* The same fact without the name of the program, and in words of another one. */
TEST(without_method) {
    static const struct {
        const char *q;
        cd_llm_op_type linear;
        int kv;
    } of[] = {
        {"\"quantization_config\":{\"quant_algo\":\"FP8\",\"kv_cache_scheme\":\"FP8\",\"ignore\":["
         "\"lm_head\"],\"config_groups\":{\"g\":{\"weights\":{\"num_bits\":8,\"type\":\"float\"},"
         "\"input_activations\":{\"num_bits\":8,\"type\":\"float\"}}}}",
         CD_LLM_OP_T_FP8, CD_LLM_OP_T_FP8},
        {"\"quantization_config\":{\"quant_algo\":\"NVFP4\",\"kv_cache_quant_algo\":\"FP8\"}",
         CD_LLM_OP_T_NVFP4, CD_LLM_OP_T_FP8},
        {"\"quantization_config\":{\"weight_block_size\":[128,128]}", CD_LLM_OP_T_FP8_BLOCK, -1},
        {"\"quantization_config\":{\"activation_scheme\":\"static\"}", CD_LLM_OP_T_FP8, -1},
        {"\"quantization_config\":{\"bits\":4,\"group_size\":128}", CD_LLM_OP_T_INT4_WO, -1},
        {"\"compression_config\":{\"quant_method\":\"compressed-tensors\",\"kv_cache_scheme\":{"
         "\"num_bits\":8,\"type\":\"int\"},\"config_groups\":{\"g\":{\"weights\":{\"num_bits\":8,"
         "\"type\":\"int\"}}}}",
         CD_LLM_OP_T_INT8_WO, CD_LLM_OP_T_INT8},
        {"\"quantization_config\":{\"quant_method\":\"gptq_marlin\",\"bits\":8}",
         CD_LLM_OP_T_INT8_WO, -1}};
    char text[1024];
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        snprintf(text, sizeof text, MADE_LLAMA ",%s}", of[i].q);
        check_status(made_read(text, &m, &err), CDMPP_OK, &err, text, __FILE__, __LINE__);
        check_status(cd_serving_model_typed(&m, -1, &err), CDMPP_OK, &err, text, __FILE__,
                     __LINE__);
        assert_int_equal(m.linear, of[i].linear);
        assert_int_equal(m.kv, of[i].kv);
        assert_int_equal(made_note(&m, "no quant_method", false) != NULL,
                         !strstr(of[i].q, "quant_method"));
    }
}

/* 4 layers of 4 x 64 x 64 + 3 x 64 x 128 and two tables of 256 x 64, in 2 bytes; float32 in 4. */
TEST(index_of_weights) {
    const double bytes = 2 * (4 * (4 * 64 * 64 + 3 * 64 * 128) + 2 * 256 * 64);
    static const char name[] = "model.safetensors.index.json", half[] = MADE_LLAMA "}",
                      whole[] = "{\"model_type\":\"llama\",\"dtype\":\"float32\"," MADE_BODY "}";
    char text[128];
    const struct {
        const char *config;
        double of;
        bool told;
    } of[] = {{half, bytes, false},      {half, 1.04 * bytes, false}, {half, 1.3 * bytes, true},
              {half, 0.9 * bytes, true}, {whole, 2 * bytes, false},   {whole, bytes, true}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        snprintf(text, sizeof text, "{\"metadata\":{\"total_size\":%.0f},\"weight_map\":{}}",
                 of[i].of);
        assert_ok(load(of[i].config, name, text));
        assert_close(cd_serving_model_bytes(&m), of[i].config == half ? bytes : 2 * bytes, 0, 0);
        assert_int_equal(made_note(&m, "GB of weights", true) != NULL, of[i].told);
    }
    assert_ok(load(half, name, "{"));
    assert_non_null(made_note(&m, "not checked", true));
    assert_ok(load(half, name, "{\"weight_map\":{}}"));
    assert_non_null(made_note(&m, "not checked", true));
}

TEST(faults) {
    static const char config[] = MADE_LLAMA "}",
                      quant[] = QUANT("\"quant_algo\":\"FP8\",\"exclude_modules\":[\"lm_head\"]"),
                      index[] = "{\"metadata\":{\"total_size\":1}}";
    char path[256];
    (void)tmp_put(&dir, hf, quant, sizeof quant - 1),
        (void)tmp_put(&dir, "model.safetensors.index.json", index, sizeof index - 1);
    snprintf(path, sizeof path, "%s", tmp_put(&dir, "config.json", config, sizeof config - 1));
    FAULT_SWEEP(f, 0) f.st = cd_serving_model_load(path, &m, &f.err);
    (void)remove(tmp_path(&dir, hf)), (void)remove(tmp_path(&dir, "model.safetensors.index.json"));
}

TESTS(up, down, odd_files, says_the_types, leaves_out, mixed, both, refused, another_name,
      without_method, index_of_weights, faults)
