/* ModelOpt's words for types of weights and of the cache. */
#include "predictor/serving_config/serving_read.h"

static const struct {
    const char *word;
    cd_llm_op_type type;
} algo[] = {{"FP8", CD_LLM_OP_T_FP8},
            {"FP8_PER_CHANNEL_PER_TOKEN", CD_LLM_OP_T_FP8},
            {"FP8_PB_WO", CD_LLM_OP_T_FP8_BLOCK},
            {"FP8_PB_REAL", CD_LLM_OP_T_FP8_BLOCK},
            {"NVFP4", CD_LLM_OP_T_NVFP4},
            {"NVFP4_AWQ", CD_LLM_OP_T_NVFP4},
            {"W8A8_SQ_PER_CHANNEL", CD_LLM_OP_T_SQ},
            {"INT8_SQ", CD_LLM_OP_T_SQ},
            {"W8A16", CD_LLM_OP_T_INT8_WO},
            {"W4A16", CD_LLM_OP_T_INT4_WO},
            {"W4A16_AWQ", CD_LLM_OP_T_INT4_WO},
            {"INT4_AWQ", CD_LLM_OP_T_INT4_WO},
            {"MXFP4", CD_LLM_OP_T_W4A16_MXFP4},
            {"W4A16_MXFP4", CD_LLM_OP_T_W4A16_MXFP4}};
static const struct {
    const char *word;
    int type; /* -1: that of what is not quantised */
} cache[] = {{"FP8", CD_LLM_OP_T_FP8},
             {"fp8", CD_LLM_OP_T_FP8},
             {"fp8_e4m3", CD_LLM_OP_T_FP8},
             {"INT8", CD_LLM_OP_T_INT8},
             {"int8", CD_LLM_OP_T_INT8},
             {"NVFP4", CD_LLM_OP_T_NVFP4},
             {"nvfp4", CD_LLM_OP_T_NVFP4},
             {"NONE", -1},
             {"none", -1},
             {"auto", -1}};

static bool is(const cd_json *v, const char *word) {
    return v && v->kind == CD_JSON_STR && cd_str_is(v->u.s, word);
}

bool cd_serving_algo(const cd_json *v, double size, cd_llm_op_type *type, double *scales) {
    for (size_t i = 0; i < sizeof algo / sizeof *algo; i++) {
        if (!is(v, algo[i].word)) continue;
        const bool alone =
            algo[i].type == CD_LLM_OP_T_INT4_WO || algo[i].type == CD_LLM_OP_T_INT8_WO;
        *type = algo[i].type, *scales = alone && size > 0 ? 2 / size : 0;
        return true;
    }
    return false;
}

bool cd_serving_algo_cache(const cd_json *v, int *type) {
    for (size_t i = 0; i < sizeof cache / sizeof *cache; i++) {
        if (!is(v, cache[i].word)) continue;
        if (cache[i].type >= 0) *type = cache[i].type;
        return true;
    }
    return false;
}
