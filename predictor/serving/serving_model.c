/* A Hugging Face config.json as the sizes that times depend on. A field that contradicts another is an error with its name; one that is missing, too, unless
 * Hugging Face itself has a default for it: that is taken, and told. So is a field of a part that the family does not have. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "predictor/serving/serving_read.h"

enum { MAX_BYTES = 16 << 20 };
#define need cd_serving_need
#define maybe cd_serving_maybe
#define there cd_serving_there
#define or_default cd_serving_or_default

static cdmpp_status find_family(const cd_json *o, const cd_serving_family **out, cdmpp_err *err) {
    cd_str name;
    CD_TRY(cd_json_need_str(o, "model_type", &name, err));
    for (size_t i = 0; i < cd_serving_n_family; i++)
        if (cd_str_is(name, cd_serving_families[i].type)) return *out = &cd_serving_families[i], CDMPP_OK;
    return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "expected one of the %zu of docs/reference/serving.md, as llama, qwen3_moe or deepseek_v3; found '%.*s'", cd_serving_n_family, (int)(name.n < 40 ? name.n : 40), name.p), "model_type");
}

/* ---- parts that a family does not have ---- */
static bool is_plain(const cd_json *v) {
    double x;
    if (!v || v->kind == CD_JSON_NULL) return true;
    if (v->kind == CD_JSON_BOOL) return !v->u.i;
    if (v->kind == CD_JSON_ARR || v->kind == CD_JSON_OBJ) return !v->n;
    return !cd_json_real(v, &x, NULL) && x <= 1;
}

static bool is_field(const char *a, const char *b) { return a && !strcmp(a, b); }

/* Fields that change what a layer computes: one that the family does not read would be answered as if it were not there. */
static cdmpp_status check_parts(const cd_json *o, const cd_serving_family *f, cdmpp_err *err) {
    const struct {
        const char *key;
        bool known;
    } part[] = {{"kv_lora_rank", f->latent}, {"index_topk", f->index}, {"attention_chunk_size", f->chunks}, {"cross_attention_layers", false}, {"block_configs", false},
                {"hybrid_override_pattern", f->mix == CD_SERVING_SINGLE}, {"layers_block_type", f->mix == CD_SERVING_SINGLE}, {"linear_num_value_heads", f->mix == CD_SERVING_DELTA},
                {"ssm_state_size", f->mix == CD_SERVING_SINGLE}, {"mamba_d_state", f->mix == CD_SERVING_MAMBA}, {"attn_layer_period", false}, {"attn_layer_indices", false},
                {"num_kv_shared_layers", false}, {"altup_num_inputs", false}, {"use_cla", false}, {"linear_attn_config", false}, {"zero_expert_num", false}, {"compress_ratios", false},
                {"num_experts", is_field(f->experts, "num_experts")}, {"num_local_experts", is_field(f->experts, "num_local_experts")},
                {"n_routed_experts", is_field(f->experts, "n_routed_experts")}, {"moe_num_experts", is_field(f->experts, "moe_num_experts")},
                {"residual_ffn", false}, {"enable_moe_block", false}, {"hc_mult", false}};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (!part[i].known && !is_plain(cd_json_get(o, part[i].key)))
            return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "a part that %s is not answered with: its time and its memory would be missing", f->type), part[i].key);
    const cd_json *kinds = f->mix == CD_SERVING_LIGHTNING ? NULL : cd_json_get(o, "attn_type_list");
    for (const cd_json *v = kinds && kinds->kind == CD_JSON_ARR ? kinds->u.child : NULL; v; v = v->next)
        if (v->kind == CD_JSON_INT && !v->u.i) return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "linear attention is a part that %s is not answered with", f->type), "attn_type_list");
    return CDMPP_OK;
}

/* ---- attention ---- */
/* falcon: one key head, or as many as num_kv_heads says. */
static cdmpp_status read_few_keys(const cd_json *o, cd_serving_model *m, cdmpp_err *err) {
    if (cd_serving_is_true(o, "new_decoder_architecture")) return or_default(o, "num_kv_heads", m->heads, "num_attention_heads", m, &m->kv_heads, err);
    m->kv_heads = !there(o, "multi_query") || cd_serving_is_true(o, "multi_query") ? 1 : m->heads;
    return CDMPP_OK;
}

static cdmpp_status read_attention(const cd_json *o, const cd_serving_family *f, cd_serving_model *m, cdmpp_err *err) {
    const bool fixed = f->kv_heads > 0 && !cd_json_get(o, "num_key_value_heads"); /* null is as many as query heads, of all families */
    if (f->few_keys) CD_TRY(read_few_keys(o, m, err));
    else CD_TRY(or_default(o, "num_key_value_heads", fixed ? f->kv_heads : m->heads, fixed ? NULL : "num_attention_heads", m, &m->kv_heads, err));
    if (fmod(m->heads, m->kv_heads) > 0)
        return cd_err_key(err, CD_FAIL(err, ERANGE, "expected a divisor of num_attention_heads %g, found %g", m->heads, m->kv_heads), "num_key_value_heads");
    const char *key = f->mix == CD_SERVING_SINGLE && !there(o, "head_dim") ? "attention_head_dim" : "head_dim";
    const bool known = f->head_dim > 0 && !cd_json_get(o, key);
    if (!known && !there(o, key) && fmod(m->hidden, m->heads) > 0)
        return cd_err_key(err, CD_FAIL(err, ERANGE, "expected this field, as hidden_size %g is not a multiple of num_attention_heads %g", m->hidden, m->heads), key);
    return or_default(o, key, known ? f->head_dim : m->hidden / m->heads, known ? NULL : "hidden_size / num_attention_heads", m, &m->head_dim, err);
}

/* Decode is of one shape, whatever the heads are: they are absorbed. Prompts of other heads are ordinary attention. */
static cdmpp_status read_latent(const cd_json *o, const cd_serving_family *f, cd_serving_model *m, cdmpp_err *err) {
    const struct {
        const char *key;
        double *to, only;
    } n[] = {{"kv_lora_rank", &m->kv_rank, 512}, {"qk_rope_head_dim", &m->rope, 64}, {"qk_nope_head_dim", &m->nope, 0}, {"v_head_dim", &m->v_dim, 0}};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        CD_TRY(need(o, n[i].key, n[i].to, err));
        if (n[i].only > 0 && fabs(*n[i].to - n[i].only) > 0)
            return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "expected %g, found %g: operators of latent attention are of that shape alone", n[i].only, *n[i].to), n[i].key);
    }
    m->latent = true;
    if (!f->index && (fabs(m->nope - 128) > 0 || fabs(m->v_dim - 128) > 0))
        cd_serving_note(m, "qk_nope_head_dim %g and v_head_dim %g: prompts take the time of ordinary attention with heads of %g", m->nope, m->v_dim, (m->nope + m->rope + m->v_dim) / 2);
    if (f->index) {
        CD_TRY(need(o, "index_n_heads", &m->index_heads, err));
        CD_TRY(need(o, "index_head_dim", &m->index_dim, err));
        CD_TRY(need(o, "index_topk", &m->index_topk, err));
    }
    if (cd_json_get(o, "q_lora_rank")) return maybe(o, "q_lora_rank", &m->q_rank, err); /* null: queries are not compressed */
    return or_default(o, "q_lora_rank", 1536, NULL, m, &m->q_rank, err);
}

/* ---- all ---- */
static void note_outer(const cd_json *root, const cd_json *inner, cd_serving_model *m) {
    static const char *const beside[] = {"vision_config", "audio_config", "visual", "vision_tower"};
    const cd_json *v = cd_json_get(root, "model_type");
    const cd_str outer = v && v->kind == CD_JSON_STR ? v->u.s : (cd_str){"?", 1};
    bool parts = inner != NULL;
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) parts |= there(root, beside[i]);
    if (parts) cd_serving_note(m, "the model %.*s has parts beside %s (images, sound): this is its text part, %s, alone", (int)(outer.n < 40 ? outer.n : 40), outer.p, inner ? "text_config" : "its text part", m->name);
}

static cdmpp_status read_sizes(const cd_json *o, const cd_serving_family *f, cd_serving_model *m, cdmpp_err *err) {
    const char *layers = f->layers && there(o, f->layers) ? f->layers : "num_hidden_layers";
    CD_TRY(need(o, layers, &m->layers, err));
    CD_TRY(need(o, "hidden_size", &m->hidden, err));
    CD_TRY(f->heads > 0 ? or_default(o, "num_attention_heads", f->heads, NULL, m, &m->heads, err) : need(o, "num_attention_heads", &m->heads, err));
    CD_TRY(f->vocab > 0 ? or_default(o, "vocab_size", f->vocab, NULL, m, &m->vocab, err) : need(o, "vocab_size", &m->vocab, err));
    if (m->layers > CD_SERVING_MAX_LAYER) return cd_err_key(err, CD_FAIL(err, ERANGE, "expected at most %d, found %g", CD_SERVING_MAX_LAYER, m->layers), layers);
    CD_TRY(maybe(o, "max_position_embeddings", &m->longest, err));
    m->norms = f->norms > 0 ? f->norms : 2;
    m->products = f->plain ? 2 : 3;
    m->gates = f->gates && !(there(o, "attn_output_gate") && !cd_serving_is_true(o, "attn_output_gate")) ? 2 : 1;
    m->qk_norm = f->qk_norm || cd_serving_is_true(o, "use_qk_norm");
    return CDMPP_OK;
}

/* The width of a feed-forward part of all parameters. */
static cdmpp_status read_dense(const cd_json *o, const cd_serving_family *f, cd_serving_model *m, cdmpp_err *err) {
    if (f->few_keys) return or_default(o, "ffn_hidden_size", 4 * m->hidden, "4 x hidden_size", m, &m->ffn, err);
    return m->dense_layers > 0 ? need(o, "intermediate_size", &m->ffn, err) : CDMPP_OK;
}

static cdmpp_status read_tied(const cd_json *o, const cd_json *root, const cd_serving_family *f, cd_serving_model *m) {
    const cd_json *in = cd_serving_with(o, root, "tie_word_embeddings");
    m->tied = cd_serving_is_true(in, "tie_word_embeddings");
    if (there(in, "tie_word_embeddings") || !f->tied) return CDMPP_OK;
    m->tied = true;
    cd_serving_note(m, "tie_word_embeddings is not there: true is taken, as Hugging Face does");
    return CDMPP_OK;
}

static cdmpp_status read_fields(const cd_json *root, cd_serving_model *m, cdmpp_err *err) {
    const cd_json *inner = there(root, "text_config") ? cd_json_get(root, "text_config") : NULL, *o = inner ? inner : root;
    const cd_serving_family *f = NULL;
    if (root->kind != CD_JSON_OBJ) return CD_FAIL(err, ESCHEMA, "expected an object, found %s", cd_json_kind_name(root->kind));
    if (inner && inner->kind != CD_JSON_OBJ) return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected an object, found %s", cd_json_kind_name(inner->kind)), "text_config");
    CD_TRY(find_family(o, &f, err));
    snprintf(m->name, sizeof m->name, "%s", f->type);
    note_outer(root, inner, m);
    CD_TRY(check_parts(o, f, err));
    CD_TRY(read_sizes(o, f, m, err));
    CD_TRY(f->latent ? read_latent(o, f, m, err) : read_attention(o, f, m, err));
    CD_TRY(cd_serving_read_layers(o, f, m, err));
    CD_TRY(f->experts && (f->mix != CD_SERVING_SINGLE || m->sparse_layers > 0) ? cd_serving_read_experts(o, f, m, err) : read_dense(o, f, m, err));
    CD_TRY(read_tied(o, root, f, m));
    if (f->told) cd_serving_note(m, "%s", f->told);
    if (f->plain && m->experts > 0) cd_serving_note(m, "experts without a gate take the time of experts with a gate of two thirds of their width");
    const cdmpp_status st = cd_serving_read_types(o, root, m, &m->untyped);
    if (st == CDMPP_EUNSUPPORTED) return CDMPP_OK; /* whoever says the type need not know it from here */
    if (st && err) *err = m->untyped;
    return st;
}

cdmpp_status cd_serving_model_typed(const cd_serving_model *m, int linear, cdmpp_err *err) {
    if (linear >= 0 || !m->untyped.code) return CDMPP_OK;
    if (err) *err = m->untyped;
    return m->untyped.code;
}

/* Lines of cd_json_parse_foreign as notes. */
static void note_lines(cd_serving_model *m, const cd_buf *said) {
    for (const char *line = said->p, *end; line && (end = strchr(line, '\n')) != NULL; line = end + 1) cd_serving_note(m, "%.*s", (int)(end - line), line);
}

cdmpp_status cd_serving_model_read(const char *path, const char *text, size_t n, cd_serving_model *out, cdmpp_err *err) {
    cd_arena a = {0};
    const cd_json *root = NULL;
    cd_buf said = {0};
    *out = (cd_serving_model){0};
    cdmpp_status st = cd_json_parse_foreign(&a, (cd_str){text, n}, &said, &root, err);
    if (!st && said.oom) st = CD_FAIL(err, ENOMEM, "notes");
    if (!st) note_lines(out, &said);
    cd_buf_free(&said);
    if (!st) st = read_fields(root, out, err);
    cd_arena_free(&a);
    (void)cd_err_at(&out->untyped, out->untyped.code, path, 0);
    return cd_err_at(err, st, path, 0);
}

/* A checkpoint's folder stands for its config.json. */
cdmpp_status cd_serving_model_load(const char *path, cd_serving_model *out, cdmpp_err *err) {
    char *text, in_folder[4096];
    struct stat s;
    size_t n;
    if (!stat(path, &s) && S_ISDIR(s.st_mode)) {
        if (snprintf(in_folder, sizeof in_folder, "%s/config.json", path) >= (int)sizeof in_folder) return CD_FAIL(err, EIO, "the name of the folder is too long");
        path = in_folder;
    }
    CD_TRY(cd_file_read(path, MAX_BYTES, &text, &n, err));
    const cdmpp_status st = cd_serving_model_read(path, text, n, out, err);
    cd_mem_free(text);
    return st;
}
