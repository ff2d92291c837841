/* How many weights a model has, and in how many bytes. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predictor/serving_config/serving_config.h"
#include "predictor/serving_config/serving_read.h"

/* ModelOpt's words for types of weights and of the cache. */

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

/* Members of a config.json that look like sizes and that the reader did not ask for: told in one
 * line, so that no part of a model is left out without a word.
 *
 *   asked for          known by the reader
 *   serving_unread.def known to say nothing about sizes
 *   what else is       a whole number above 1, a list, an object, a switch of a part that is shared
 *                      or wide, one word for each layer */

enum { KEY = 96 };
static const char *const silent[] = {
#define N(pattern) pattern,
#include "predictor/serving_config/serving_unread.def"
};

static bool is_silent(const char *key) {
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (cd_str_fits(silent[i], key)) return true;
    return false;
}

static bool has_word(const char *key, const char *const *word, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strstr(key, word[i])) return true;
    return false;
}
#define HAS(key, ...)                                                                              \
    has_word(key, (const char *const[]){__VA_ARGS__},                                              \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* One further layer is a part, too: of those that guess several tokens. */
static bool is_size(const char *key, const cd_json *v, double layers) {
    switch (v->kind) {
    case CD_JSON_NULL: return false;
    case CD_JSON_BOOL:
        return v->u.i &&
               HAS(key, "share", "wide", "_eq_", "double", "latent", "cross_attention", "_gate");
    case CD_JSON_INT: return v->u.i > (HAS(key, "nextn", "mtp") ? 0 : 1);
    case CD_JSON_REAL:
        return v->u.f > 0 &&
               HAS(key, "ratio", "mult", "dim", "size", "width", "factor", "expan", "rank");
    case CD_JSON_STR:
        return HAS(key, "pattern") || (layers > 1 && fabs((double)v->u.s.n - layers) < 1);
    case CD_JSON_ARR:
    case CD_JSON_OBJ: break;
    }
    return v->n > 0;
}

void cd_serving_unread(const cd_serving_fields *f, const char *where) {
    char list[CD_SERVING_NOTE - 160] = "", key[KEY];
    size_t i = 0, n = 0, more = 0, at = 0;
    const bool inside = where[0];
    for (const cd_json *v = f->o && f->o->kind == CD_JSON_OBJ ? f->o->u.child : NULL; v;
         v = v->next, i++) {
        snprintf(key, sizeof key, "%.*s", (int)(v->key.n < KEY ? v->key.n : KEY), v->key.p);
        /* whatever a file has, a line of a log is a line */
        for (char *c = key; *c; c++)
            *c = isalnum((unsigned char)*c) || strchr("_.-", *c) ? *c : '?';
        if (f->asked[i] || is_silent(key) || !is_size(key, v, f->m->layers)) continue;
        n++;
        if (at + strlen(key) + 3 < sizeof list)
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "", key);
        else more++;
    }
    char rest[32] = "";
    if (more) snprintf(rest, sizeof rest, " and %zu more", more);
    if (n)
        cd_serving_doubt(
            f->m, "%s%s%s%s: %s and %s not read; a part that %s would be missing in the answer",
            inside ? where : "", inside ? ": " : "", list, rest,
            n > 1 ? "they look like sizes" : "it looks like a size", n > 1 ? "are" : "is",
            n > 1 ? "they say" : "it says");
}

double cd_serving_experts_in(const cd_serving_model *m) {
    return m->latent_in > 0 ? m->latent_in : m->hidden;
}

cd_serving_weights cd_serving_weights_of(const cd_serving_model *m, double tp) {
    const double q = m->heads * (m->nope + m->rope), down = m->q_rank + m->kv_rank + m->rope;
    const cd_serving_state *s = &m->state;
    cd_serving_weights w = {
        .dense = m->products * m->hidden * m->ffn / tp,
        .shared = m->products * m->hidden * m->shared_ffn / tp,
        .router = m->hidden * m->experts,
        .experts = m->products * cd_serving_experts_in(m) * m->experts * m->expert_ffn,
        .latent = 2 * m->hidden * m->latent_in,
        .state = (m->hidden * (s->in + s->narrow + s->out) + s->channels * s->taps) / tp};
    if (m->latent)
        w.attention = m->hidden * down + ((m->q_rank > 0 ? m->q_rank : m->hidden) * q +
                                          m->kv_rank * m->heads * (m->nope + m->v_dim) +
                                          m->heads * m->v_dim * m->hidden) /
                                             tp;
    else
        w.attention =
            m->hidden * m->head_dim * ((m->gates + 1) * m->heads / tp + 2 * ceil(m->kv_heads / tp));
    if (m->index_topk > 0)
        w.index =
            m->index_heads * m->index_dim * m->q_rank + m->hidden * (m->index_dim + m->index_heads);
    return w;
}

double cd_serving_model_parameters(const cd_serving_model *m) {
    const cd_serving_weights w = cd_serving_weights_of(m, 1);
    return m->attention_layers * (w.attention + w.index) + m->state.layers * w.state +
           m->dense_layers * w.dense +
           m->sparse_layers * (w.shared + w.router + w.latent + w.experts) +
           m->vocab * m->hidden * (m->tied ? 1 : 2);
}

double cd_serving_weight_each(const cd_serving_model *m, cd_llm_op_type t) {
    const bool alone = t == CD_LLM_OP_T_INT4_WO || t == CD_LLM_OP_T_INT8_WO;
    return cd_llm_op_type_weight_bytes(t) + (alone ? m->scales : 0);
}

/* Of a checkpoint that is float32 all numbers that are served in 16 bits are in 4 bytes. */
double cd_serving_model_bytes(const cd_serving_model *m) {
    const cd_serving_weights w = cd_serving_weights_of(m, 1);
    const double wide = m->checkpoint_base > 2 ? 2 : 1;
    const struct {
        double n;
        cd_llm_op_type type;
    } part[] = {{m->attention_layers * (w.attention + w.index), m->attention},
                {m->state.layers * w.state, m->recurrent},
                {m->dense_layers * w.dense, m->linear},
                {m->sparse_layers * (w.shared + w.latent), m->shared},
                {m->sparse_layers * w.experts, m->expert},
                {m->sparse_layers * w.router + m->vocab * m->hidden * (m->tied ? 1 : 2), m->base}};
    double bytes = 0;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        bytes += part[i].n * cd_serving_weight_each(m, part[i].type) *
                 (part[i].type == m->base ? wide : 1);
    return bytes;
}

double cd_serving_state_bytes(const cd_serving_state *s) {
    return 4 * s->heads * s->key * s->value + 2 * s->channels * fmax(0, s->taps - 1);
}
