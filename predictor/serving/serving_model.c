/* A Hugging Face config.json as the sizes that times depend on. A field that contradicts another is an error with its name; one that is missing, too, unless
 * Hugging Face itself has a default for it: that is taken, and told. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/serving/serving.h"

enum { MAX_BYTES = 16 << 20 };
#define MOST 1e9

/* What model_type says and config.json does not. Defaults are those of the configuration classes of Hugging Face's transformers (and, of models that it does not have,
 * of the class beside the checkpoint). */
typedef struct {
    const char *type, *experts, *expert_ffn, *shared; /* fields of experts, their width, the shared expert's width; NULL: there is none */
    bool latent, qk_norm, shared_count;               /* shared_count: `shared` counts experts of the same width */
    bool window_said;                                 /* the window counts only where use_sliding_window is true */
    bool every_second;                                /* without layer_types every second layer has the window, from the first on */
    double skew;                                      /* loads of experts: those balanced by a bias without loss are nearly even */
    double kv_heads, head_dim, shared_is, window;     /* defaults; 0: num_attention_heads, hidden_size / num_attention_heads, none, none */
} family;
#define WINDOWS .window_said = true, .window = 4096
#define DEEPSEEK .experts = "n_routed_experts", .expert_ffn = "moe_intermediate_size", .shared = "n_shared_experts", .shared_count = true, .latent = true
static const family families[] = {
    {.type = "llama"},
    {.type = "mistral", .kv_heads = 8, .window = 4096},
    {.type = "qwen2", WINDOWS, .kv_heads = 32},
    {.type = "qwen3", WINDOWS, .qk_norm = true, .kv_heads = 32, .head_dim = 128},
    {.type = "mixtral", .experts = "num_local_experts", .expert_ffn = "intermediate_size", .skew = 1.2, .kv_heads = 8},
    {.type = "qwen2_moe", WINDOWS, .experts = "num_experts", .expert_ffn = "moe_intermediate_size", .shared = "shared_expert_intermediate_size", .skew = 1.2, .kv_heads = 16, .shared_is = 5632},
    {.type = "qwen3_moe", WINDOWS, .experts = "num_experts", .expert_ffn = "moe_intermediate_size", .qk_norm = true, .skew = 1.2, .kv_heads = 4},
    {.type = "minimax_m2", .experts = "num_local_experts", .expert_ffn = "intermediate_size", .qk_norm = true, .skew = 1.2, .kv_heads = 8, .head_dim = 128},
    {.type = "gpt_oss", .experts = "num_local_experts", .expert_ffn = "intermediate_size", .skew = 1.2, .kv_heads = 8, .head_dim = 64, .window = 128, .every_second = true},
    {.type = "deepseek_v2", DEEPSEEK, .skew = 1.2, .shared_is = 2},
    {.type = "deepseek_v3", DEEPSEEK, .skew = 1.01, .shared_is = 1},
    {.type = "kimi_k2", DEEPSEEK, .skew = 1.01, .shared_is = 1}};
enum { N_FAMILY = sizeof families / sizeof *families };

void cd_serving_model_types(cd_buf *b) {
    for (size_t i = 0; i < N_FAMILY; i++) cd_buf_putf(b, "%s%s", i ? ", " : "", families[i].type);
}

/* ---- fields ---- */
static cdmpp_status whole(double v, const char *key, cdmpp_err *err) {
    if (v >= 0 && v <= MOST && floor(v) >= v) return CDMPP_OK;
    return cd_err_key(err, CD_FAIL(err, ERANGE, "expected a whole number from 0 to 1e9, found %g", v), key);
}

static cdmpp_status need(const cd_json *o, const char *key, double *out, cdmpp_err *err) {
    CD_TRY(cd_json_need_real(o, key, 1, MOST, out, err));
    return whole(*out, key, err);
}

/* Absent and null leave *out as it is. */
static cdmpp_status maybe(const cd_json *o, const char *key, double *out, cdmpp_err *err) {
    const cd_json *v = cd_json_get(o, key);
    if (!v || v->kind == CD_JSON_NULL) return CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_json_real(v, out, err), key));
    return whole(*out, key, err);
}

/* What the reader shall know of an answer, once. */
static void note(cd_serving_model *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(cd_serving_model *m, const char *fmt, ...) {
    va_list ap;
    if (m->n_note == CD_SERVING_NOTES) return;
    va_start(ap, fmt);
    (void)vsnprintf(m->note[m->n_note++], sizeof m->note[0], fmt, ap);
    va_end(ap);
}

static bool there(const cd_json *o, const char *key) {
    const cd_json *v = cd_json_get(o, key);
    return v && v->kind != CD_JSON_NULL;
}

/* The field, or the default of Hugging Face, which is told. as: what the default is, NULL: a number. */
static cdmpp_status or_default(const cd_json *o, const char *key, double usual, const char *as, cd_serving_model *m, double *out, cdmpp_err *err) {
    if (there(o, key)) return need(o, key, out, err);
    *out = usual;
    note(m, "%s is %s: %g%s%s is taken, as Hugging Face does", key, cd_json_get(o, key) ? "null" : "not there", usual, as ? ", " : "", as ? as : "");
    return CDMPP_OK;
}

/* With text_config some fields stand in it and some beside it; null is no answer. */
static const cd_json *with(const cd_json *o, const cd_json *root, const char *key) {
    return there(o, key) ? o : root;
}

static bool is_true(const cd_json *o, const char *key) {
    const cd_json *v = cd_json_get(o, key);
    return v && v->kind == CD_JSON_BOOL && v->u.i;
}

static bool is_word(const cd_json *o, const char *key, const char *word) {
    const cd_json *v = cd_json_get(o, key);
    return v && v->kind == CD_JSON_STR && cd_str_is(v->u.s, word);
}

static cdmpp_status find_family(const cd_json *o, const family **out, cd_str *name, cdmpp_err *err) {
    cd_buf b = {0};
    CD_TRY(cd_json_need_str(o, "model_type", name, err));
    for (size_t i = 0; i < N_FAMILY; i++)
        if (cd_str_is(*name, families[i].type)) return *out = &families[i], CDMPP_OK;
    cd_serving_model_types(&b);
    const cdmpp_status st = b.oom ? CD_FAIL(err, ENOMEM, "names") : CD_FAIL(err, EUNSUPPORTED, "expected one of %s; found '%.*s'", b.p, (int)(name->n < 40 ? name->n : 40), name->p);
    cd_buf_free(&b);
    return cd_err_key(err, st, "model_type");
}

/* ---- parts of a model ---- */
static cdmpp_status read_attention(const cd_json *o, const family *f, cd_serving_model *m, cdmpp_err *err) {
    const bool fixed = f->kv_heads > 0 && !cd_json_get(o, "num_key_value_heads"); /* null is as many as query heads, of all families */
    CD_TRY(or_default(o, "num_key_value_heads", fixed ? f->kv_heads : m->heads, fixed ? NULL : "num_attention_heads", m, &m->kv_heads, err));
    if (fmod(m->heads, m->kv_heads) > 0)
        return cd_err_key(err, CD_FAIL(err, ERANGE, "expected a divisor of num_attention_heads %g, found %g", m->heads, m->kv_heads), "num_key_value_heads");
    const bool known = f->head_dim > 0 && !cd_json_get(o, "head_dim");
    if (!known && !there(o, "head_dim") && fmod(m->hidden, m->heads) > 0)
        return cd_err_key(err, CD_FAIL(err, ERANGE, "expected this field, as hidden_size %g is not a multiple of num_attention_heads %g", m->hidden, m->heads), "head_dim");
    return or_default(o, "head_dim", known ? f->head_dim : m->hidden / m->heads, known ? NULL : "hidden_size / num_attention_heads", m, &m->head_dim, err);
}

/* The tables of latent attention are of one shape. */
static cdmpp_status read_latent(const cd_json *o, cd_serving_model *m, cdmpp_err *err) {
    const struct {
        const char *key;
        double *to, only;
    } f[] = {{"kv_lora_rank", &m->kv_rank, 512}, {"qk_nope_head_dim", &m->nope, 128}, {"qk_rope_head_dim", &m->rope, 64}, {"v_head_dim", &m->v_dim, 128}};
    for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
        CD_TRY(need(o, f[i].key, f[i].to, err));
        if (fabs(*f[i].to - f[i].only) > 0)
            return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "expected %g, found %g: operators of latent attention are of that shape alone", f[i].only, *f[i].to), f[i].key);
    }
    m->latent = true;
    if (cd_json_get(o, "q_lora_rank")) return maybe(o, "q_lora_rank", &m->q_rank, err); /* null: queries are not compressed */
    return or_default(o, "q_lora_rank", 1536, NULL, m, &m->q_rank, err);
}

/* mlp_only_layers: sets on[i] of those layers that it names. */
static cdmpp_status read_only_dense(const cd_json *o, double layers, bool *on, cdmpp_err *err) {
    const cd_json *only = cd_json_get(o, "mlp_only_layers");
    size_t i = 0;
    if (!only || only->kind == CD_JSON_NULL) return CDMPP_OK;
    if (only->kind != CD_JSON_ARR) return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected a list of layers"), "mlp_only_layers");
    for (const cd_json *v = only->u.child; v; v = v->next, i++) {
        double k = 0;
        cdmpp_status st = cd_json_real(v, &k, err);
        if (!st && !(k >= 0 && k < layers && floor(k) >= k)) st = CD_FAIL(err, ERANGE, "expected a layer of the %g of num_hidden_layers, from 0, found %g", layers, k);
        if (st) return cd_err_key(err, cd_err_index(err, st, i), "mlp_only_layers");
        on[(size_t)k] = true;
    }
    return CDMPP_OK;
}

/* A layer has experts where none of the fields makes it dense: as Hugging Face has it, one by one. */
static cdmpp_status read_dense_layers(const cd_json *o, bool latent, cd_serving_model *m, cdmpp_err *err) {
    bool dense[CD_SERVING_MAX_LAYER] = {false};
    const char *each = latent ? "moe_layer_freq" : "decoder_sparse_step";
    double first = 0, step = 1;
    if (latent) {
        CD_TRY(cd_json_need_real(o, "first_k_dense_replace", 0, MOST, &first, err));
        CD_TRY(whole(first, "first_k_dense_replace", err));
        if (first > m->layers) return cd_err_key(err, CD_FAIL(err, ERANGE, "expected at most the %g of num_hidden_layers, found %g", m->layers, first), "first_k_dense_replace");
    } else {
        CD_TRY(read_only_dense(o, m->layers, dense, err));
    }
    CD_TRY(maybe(o, each, &step, err));
    if (step < 1) return cd_err_key(err, CD_FAIL(err, ERANGE, "expected 1 or more"), each);
    for (size_t i = 0; (double)i < m->layers; i++) m->dense_layers += (double)i < first || dense[i] || fmod((double)(latent ? i : i + 1), step) > 0;
    return CDMPP_OK;
}

/* A token takes experts of some groups alone: times do not depend on it, but a count that does not divide is of no model. */
static cdmpp_status check_groups(const cd_json *o, const cd_serving_model *m, cdmpp_err *err) {
    double groups = 1, taken = 0;
    CD_TRY(maybe(o, "n_group", &groups, err));
    CD_TRY(maybe(o, "topk_group", &taken, err));
    if (groups < 1 || fmod(m->experts, groups) > 0)
        return cd_err_key(err, CD_FAIL(err, ERANGE, "expected a divisor of n_routed_experts %g, found %g", m->experts, groups), "n_group");
    if (taken <= groups || !there(o, "n_group")) return CDMPP_OK;
    return cd_err_key(err, CD_FAIL(err, ERANGE, "expected at most the %g of n_group, found %g", groups, taken), "topk_group");
}

static cdmpp_status read_shared(const cd_json *o, const family *f, cd_serving_model *m, cdmpp_err *err) {
    if (!f->shared) return CDMPP_OK;
    if (there(o, f->shared)) CD_TRY(maybe(o, f->shared, &m->shared_ffn, err)); /* 0: none */
    else if (cd_json_get(o, f->shared)) note(m, "%s is null: no shared expert", f->shared);
    else CD_TRY(or_default(o, f->shared, f->shared_is, NULL, m, &m->shared_ffn, err));
    if (f->shared_count) m->shared_ffn *= m->expert_ffn;
    return CDMPP_OK;
}

static cdmpp_status read_experts(const cd_json *o, const family *f, cd_serving_model *m, cdmpp_err *err) {
    CD_TRY(need(o, f->experts, &m->experts, err));
    CD_TRY(need(o, "num_experts_per_tok", &m->topk, err));
    CD_TRY(need(o, f->expert_ffn, &m->expert_ffn, err));
    if (m->topk > m->experts) return cd_err_key(err, CD_FAIL(err, ERANGE, "expected at most the %g of %s, found %g", m->experts, f->experts, m->topk), "num_experts_per_tok");
    if (f->latent) CD_TRY(check_groups(o, m, err));
    CD_TRY(read_shared(o, f, m, err));
    CD_TRY(read_dense_layers(o, f->latent, m, err));
    m->skew = f->skew;
    if (m->dense_layers > 0) CD_TRY(need(o, "intermediate_size", &m->ffn, err));
    return CDMPP_OK;
}

static cdmpp_status read_layer_types(const cd_json *types, cd_serving_model *m, cdmpp_err *err) {
    size_t i = 0;
    if (types->kind != CD_JSON_ARR) return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected a list, found %s", cd_json_kind_name(types->kind)), "layer_types");
    if (fabs((double)types->n - m->layers) > 0)
        return cd_err_key(err, CD_FAIL(err, ERANGE, "expected one for each of the %g of num_hidden_layers, found %u", m->layers, types->n), "layer_types");
    for (const cd_json *t = types->u.child; t; t = t->next, i++) {
        const bool some = t->kind == CD_JSON_STR && cd_str_is(t->u.s, "sliding_attention");
        m->window_layers += some;
        if (!some && (t->kind != CD_JSON_STR || !cd_str_is(t->u.s, "full_attention")))
            return cd_err_key(err, cd_err_index(err, CD_FAIL(err, EUNSUPPORTED, "expected full_attention or sliding_attention"), i), "layer_types");
    }
    return CDMPP_OK;
}

/* Which layers see a window only: layer_types, or from max_window_layers on, or every second, or all. */
static cdmpp_status read_window(const cd_json *o, const family *f, cd_serving_model *m, cdmpp_err *err) {
    double from = 0;
    const bool usual = f->window > 0 && !cd_json_get(o, "sliding_window"), listed = there(o, "layer_types");
    if (listed) CD_TRY(read_layer_types(cd_json_get(o, "layer_types"), m, err));
    if (listed ? !(m->window_layers > 0) : f->window_said && !is_true(o, "use_sliding_window")) return CDMPP_OK;
    CD_TRY(usual ? or_default(o, "sliding_window", f->window, NULL, m, &m->window, err) : maybe(o, "sliding_window", &m->window, err));
    if (listed) return m->window > 0 ? CDMPP_OK : cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected the window of the layers that layer_types names"), "sliding_window");
    if (!(m->window > 0)) return CDMPP_OK;
    if (f->window_said) CD_TRY(there(o, "max_window_layers") ? maybe(o, "max_window_layers", &from, err) : or_default(o, "max_window_layers", 28, NULL, m, &from, err));
    m->window_layers = f->every_second ? ceil(m->layers / 2) : fmax(0, m->layers - from);
    if (f->every_second) note(m, "layer_types is not there: every second layer has the window, as Hugging Face does");
    return CDMPP_OK;
}

/* ---- types of the weights ---- */
/* Operators of products with a scale for each block are of one shape. */
static cdmpp_status check_block(const cd_json *block, cdmpp_err *err) {
    double side[2] = {0};
    size_t n = 0;
    for (const cd_json *v = block->kind == CD_JSON_ARR ? block->u.child : NULL; v; v = v->next, n++)
        if (n < 2 && cd_json_real(v, &side[n], NULL)) side[n] = 0;
    if (n == 2 && !(fabs(side[0] - 128) > 0) && !(fabs(side[1] - 128) > 0)) return CDMPP_OK;
    if (n == 2) (void)CD_FAIL(err, EUNSUPPORTED, "expected [128, 128], found [%g, %g]: say the type with --dtype", side[0], side[1]);
    else (void)CD_FAIL(err, EUNSUPPORTED, "expected [128, 128]: say the type with --dtype");
    return cd_err_key(err, CDMPP_EUNSUPPORTED, "weight_block_size");
}

static cdmpp_status quantised(const cd_json *q, cd_serving_model *m, cdmpp_err *err) {
    const bool experts = m->experts > 0;
    double bits = 0;
    cd_str how;
    CD_TRY(cd_json_need_str(q, "quant_method", &how, err));
    if (cd_str_is(how, "fp8") || cd_str_is(how, "fbgemm_fp8")) {
        m->linear = m->expert = there(q, "weight_block_size") ? CD_LLM_OP_T_FP8_BLOCK : CD_LLM_OP_T_FP8;
        return m->linear == CD_LLM_OP_T_FP8 ? CDMPP_OK : check_block(cd_json_get(q, "weight_block_size"), err);
    }
    if (cd_str_is(how, "mxfp4") && experts) return m->expert = CD_LLM_OP_T_W4A16_MXFP4, CDMPP_OK;
    if (cd_str_is(how, "awq") || cd_str_is(how, "gptq")) {
        CD_TRY(maybe(q, "bits", &bits, err));
        if (fabs(bits - 4) > 0 && fabs(bits - 8) > 0) return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "expected 4 or 8, found %g: say the type with --dtype", bits), "bits");
        m->linear = m->expert = bits > 4 ? CD_LLM_OP_T_INT8_WO : CD_LLM_OP_T_INT4_WO;
        return CDMPP_OK;
    }
    return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "expected fp8, mxfp4 (of experts), awq or gptq; found '%.*s': say the type with --dtype", (int)(how.n < 40 ? how.n : 40), how.p),
                      "quant_method");
}

/* The type of what is not quantised. Without it Hugging Face takes what the weights are in, which config.json does not say. */
static cdmpp_status read_base(const cd_json *o, const cd_json *root, cd_serving_model *m, cdmpp_err *err) {
    const cd_json *of[] = {o, o, root, root};
    static const char *const key[] = {"dtype", "torch_dtype", "dtype", "torch_dtype"};
    size_t k = 0;
    m->base = CD_LLM_OP_T_BF16;
    while (k < 4 && !there(of[k], key[k])) k++;
    if (k == 4) return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "expected this field, or dtype: say the type with --dtype"), "torch_dtype");
    if (is_word(of[k], key[k], "float16")) m->base = CD_LLM_OP_T_F16;
    else if (!is_word(of[k], key[k], "bfloat16")) return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "expected bfloat16 or float16: say the type with --dtype"), key[k]);
    m->base_known = true;
    return CDMPP_OK;
}

static cdmpp_status read_types(const cd_json *o, const cd_json *root, cd_serving_model *m, cdmpp_err *err) {
    const cd_json *in = with(o, root, "quantization_config"), *q = there(in, "quantization_config") ? cd_json_get(in, "quantization_config") : NULL;
    if (q && q->kind != CD_JSON_OBJ) return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected an object, found %s", cd_json_kind_name(q->kind)), "quantization_config");
    const cdmpp_status st = read_base(o, root, m, err);
    m->linear = m->expert = m->base;
    if (st && st != CDMPP_EUNSUPPORTED) return st;
    if (st) note(m, "torch_dtype is not there, or of no operator: bfloat16 is taken for what --dtype does not name");
    const cdmpp_status other = q ? cd_err_key(err, quantised(q, m, err), "quantization_config") : CDMPP_OK;
    return other ? other : st;
}

/* ---- all ---- */
static void note_outer(const cd_json *root, cd_serving_model *m) {
    const cd_json *v = cd_json_get(root, "model_type");
    const cd_str outer = v && v->kind == CD_JSON_STR ? v->u.s : (cd_str){"?", 1};
    note(m, "the model %.*s has parts beside text_config (images, sound): this is its text part, %s, alone", (int)(outer.n < 40 ? outer.n : 40), outer.p, m->name);
}

static cdmpp_status read_fields(const cd_json *root, cd_serving_model *m, cdmpp_err *err) {
    const cd_json *inner = there(root, "text_config") ? cd_json_get(root, "text_config") : NULL, *o = inner ? inner : root;
    const family *f = NULL;
    cd_str name;
    if (root->kind != CD_JSON_OBJ) return CD_FAIL(err, ESCHEMA, "expected an object, found %s", cd_json_kind_name(root->kind));
    if (inner && inner->kind != CD_JSON_OBJ) return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected an object, found %s", cd_json_kind_name(inner->kind)), "text_config");
    CD_TRY(find_family(o, &f, &name, err));
    snprintf(m->name, sizeof m->name, "%s", f->type);
    if (inner) note_outer(root, m);
    CD_TRY(need(o, "num_hidden_layers", &m->layers, err));
    CD_TRY(need(o, "hidden_size", &m->hidden, err));
    CD_TRY(need(o, "num_attention_heads", &m->heads, err));
    CD_TRY(need(o, "vocab_size", &m->vocab, err));
    if (m->layers > CD_SERVING_MAX_LAYER) return cd_err_key(err, CD_FAIL(err, ERANGE, "expected at most %d, found %g", CD_SERVING_MAX_LAYER, m->layers), "num_hidden_layers");
    CD_TRY(maybe(o, "max_position_embeddings", &m->longest, err));
    m->qk_norm = f->qk_norm;
    m->tied = is_true(with(o, root, "tie_word_embeddings"), "tie_word_embeddings");
    CD_TRY(f->latent ? read_latent(o, m, err) : read_attention(o, f, m, err));
    CD_TRY(f->experts ? read_experts(o, f, m, err) : need(o, "intermediate_size", &m->ffn, err));
    if (!f->latent) CD_TRY(read_window(o, f, m, err));
    const cdmpp_status st = read_types(o, root, m, &m->untyped);
    if (st == CDMPP_EUNSUPPORTED) return CDMPP_OK; /* whoever says the type need not know it from here */
    if (st && err) *err = m->untyped;
    return st;
}

cdmpp_status cd_serving_model_typed(const cd_serving_model *m, int linear, cdmpp_err *err) {
    if (linear >= 0 || !m->untyped.code) return CDMPP_OK;
    if (err) *err = m->untyped;
    return m->untyped.code;
}

cdmpp_status cd_serving_model_read(const char *path, const char *text, size_t n, cd_serving_model *out, cdmpp_err *err) {
    cd_arena a = {0};
    const cd_json *root = NULL;
    *out = (cd_serving_model){0};
    cdmpp_status st = cd_json_parse(&a, text, n, &root, err);
    if (!st) st = read_fields(root, out, err);
    cd_arena_free(&a);
    (void)cd_err_at(&out->untyped, out->untyped.code, path, 0);
    return cd_err_at(err, st, path, 0);
}

cdmpp_status cd_serving_model_load(const char *path, cd_serving_model *out, cdmpp_err *err) {
    char *text;
    size_t n;
    CD_TRY(cd_file_read(path, MAX_BYTES, &text, &n, err));
    const cdmpp_status st = cd_serving_model_read(path, text, n, out, err);
    cd_mem_free(text);
    return st;
}

double cd_serving_model_parameters(const cd_serving_model *m) {
    const double kv = m->kv_rank + m->rope, q = m->nope + m->rope;
    const double latent = (m->q_rank > 0 ? m->hidden * m->q_rank + m->q_rank * m->heads * q : m->hidden * m->heads * q) + m->hidden * kv +
                          m->kv_rank * m->heads * (m->nope + m->v_dim) + m->heads * m->v_dim * m->hidden;
    const double plain = m->hidden * m->head_dim * 2 * (m->heads + m->kv_heads);
    const double sparse = m->experts > 0 ? m->layers - m->dense_layers : 0;
    return m->layers * (m->latent ? latent : plain) + (m->layers - sparse) * 3 * m->hidden * m->ffn +
           sparse * (3 * m->hidden * (m->experts * m->expert_ffn + m->shared_ffn) + m->hidden * m->experts) + m->vocab * m->hidden * (m->tied ? 1 : 2);
}
