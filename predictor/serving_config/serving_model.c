/* A Hugging Face config.json as the sizes that times depend on. A field that contradicts another is
 * an error with its name; one that is missing, too, unless Hugging Face itself has a default for
 * it: that is taken, and told. So is a field of a part that the family does not have. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "predictor/serving_config/serving_read.h"

/* Files that stand beside config.json in a checkpoint's folder: what is quantised, and how many
 * bytes all weights are. */

enum { MAX_BYTES_BESIDE = 64 << 20, PATH = 4096 }; /* an index names each of some 100,000 weights */

/* ModelOpt puts its fields into a member; the others are the object itself. */
static const struct {
    const char *name, *member;
} typed[] = {{"hf_quant_config.json", "quantization"},
             {"quantize_config.json", NULL},
             {"quant_config.json", NULL}};
static const char index_name[] = "model.safetensors.index.json";

static bool beside_path(const char *path, const char *name, char out[PATH]) {
    const char *slash = strrchr(path, '/');
    const int n = slash ? (int)(slash - path) + 1 : 0;
    return snprintf(out, PATH, "%.*s%s", n, path, name) < PATH && !access(out, F_OK);
}

static cdmpp_status serving_parse(cd_arena *a, cd_str text, const char *name, cd_serving_model *m,
                                  const cd_json **out, cdmpp_err *err);

/* The tree of a file; what it is made of lives in the arena. */
static cdmpp_status load(cd_arena *a, const char *path, cd_serving_model *m, const cd_json **out,
                         cdmpp_err *err) {
    char *text = NULL, *copy;
    size_t n;
    CD_TRY(cd_file_read(path, MAX_BYTES_BESIDE, &text, &n, err));
    copy = cd_arena_alloc(a, n + 1, 1);
    cdmpp_status st = copy ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu bytes", n);
    if (!st)
        memcpy(copy, text, n),
            st = serving_parse(a, (cd_str){copy, n},
                               strrchr(path, '/') ? strrchr(path, '/') + 1 : path, m, out, err);
    cd_mem_free(text);
    if (!st && (*out)->kind != CD_JSON_OBJ)
        st = CD_FAIL(err, ESCHEMA, "expected an object, found %s", cd_json_kind_name((*out)->kind));
    return cd_err_at(err, st, path, 0);
}

static cdmpp_status read_typed(cd_arena *a, const char *path, size_t k, cd_serving_model *m,
                               cd_serving_beside *out, cdmpp_err *err) {
    const cd_json *root;
    CD_TRY(load(a, path, m, &root, err));
    const cd_json *types = typed[k].member ? cd_json_get(root, typed[k].member) : root;
    if (!types || types->kind != CD_JSON_OBJ)
        return cd_err_at(
            err,
            cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected an object that says what is quantised"),
                       typed[k].member),
            path, 0);
    const cd_json *algo = cd_json_get(types, "quant_algo");
    /* nothing is */
    if (typed[k].member && (!algo || algo->kind == CD_JSON_NULL) &&
        cd_serving_is_plain(cd_json_get(types, "kv_cache_quant_algo")))
        return CDMPP_OK;
    out->name = typed[k].name, out->types = types;
    return (out->path = cd_arena_text(a, path)) ? CDMPP_OK : CD_FAIL(err, ENOMEM, "path");
}

/* It only checks the answer: one that cannot be read is told, and no error. */
static cdmpp_status read_index(cd_arena *a, const char *path, cd_serving_model *m,
                               cd_serving_beside *out, cdmpp_err *err) {
    const cd_json *root = NULL, *v;
    cdmpp_err why = {0};
    const cdmpp_status st = load(a, path, m, &root, &why);
    if (st == CDMPP_ENOMEM) {
        cd_err_from(err, &why);
        return st;
    }
    v = st ? NULL : cd_json_get(root, "metadata");
    v = v ? cd_json_get(v, "total_size") : NULL;
    if (!v || cd_json_real(v, &out->bytes, NULL) || !(out->bytes > 0)) {
        out->bytes = 0;
        cd_serving_doubt(m,
                         "%s beside it has no metadata.total_size that can be read: the number of "
                         "weights is not checked",
                         index_name);
    }
    return CDMPP_OK;
}

/* path: of config.json. Its texts live in the arena. Errors: those of a file that decides types and
 * cannot be read (its own path). */
static cdmpp_status serving_beside_read(cd_arena *a, const char *path, cd_serving_model *m,
                                        cd_serving_beside *out, cdmpp_err *err) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char at[PATH];
    *out = (cd_serving_beside){0};
    for (size_t k = 0; k < sizeof typed / sizeof *typed && !out->types; k++) {
        if (!beside_path(path, typed[k].name, at)) continue;
        if (!strcmp(name, "config.json")) CD_TRY(read_typed(a, at, k, m, out, err));
        else
            cd_serving_doubt(m, "%s beside it is not read, as it is of a config.json",
                             typed[k].name);
    }
    return !strcmp(name, "config.json") && beside_path(path, index_name, at)
               ? read_index(a, at, m, out, err)
               : CDMPP_OK;
}

#define NEAR 0.05 /* norms and biases are less; a layer that is left out is more */

/* A doubt where weights are not as many bytes as the checkpoint has. */
static void serving_beside_compare(const cd_serving_beside *b, cd_serving_model *m) {
    const double ours = cd_serving_model_bytes(m);
    if (!(b->bytes > 0) || m->untyped.code || fabs(ours / b->bytes - 1) <= NEAR) return;
    cd_serving_doubt(m,
                     "%s says %.4g GB of weights, the sizes of config.json make %.4g GB (%+.0f "
                     "%%): parts are left out here, or types are others than it says",
                     index_name, b->bytes * 1e-9, ours * 1e-9, 100 * (ours / b->bytes - 1));
}

enum { MAX_BYTES = 16 << 20 };
#define need       cd_serving_need
#define maybe      cd_serving_maybe
#define there      cd_serving_there
#define or_default cd_serving_or_default
#define get        cd_serving_get

/* ---- which model ---- */
/* The language model of a file, which is all of it or one part. */
typedef struct {
    const cd_json *root, *o;
    char where[64]; /* "text_config", or empty */
} place;

/* A part may have such a part in its turn: thinker_config has a text_config. */
static cdmpp_status find_part(const cd_json *root, place *out, cdmpp_err *err) {
    static const char *const part[] = {"text_config", "llm_config", "language_config",
                                       "thinker_config"};
    *out = (place){.root = root, .o = root};
    if (root->kind != CD_JSON_OBJ)
        return CD_FAIL(err, ESCHEMA, "expected an object, found %s", cd_json_kind_name(root->kind));
    for (size_t i = 0, depth = 0; i < sizeof part / sizeof *part && depth < 2; i++) {
        const cd_json *v = cd_json_get(out->o, part[i]);
        if (!v || v->kind == CD_JSON_NULL) continue;
        const size_t n = strlen(out->where);
        snprintf(out->where + n, sizeof out->where - n, "%s%s", n ? "." : "", part[i]);
        if (v->kind != CD_JSON_OBJ)
            return cd_err_key(
                err,
                CD_FAIL(err, ESCHEMA, "expected an object, found %s", cd_json_kind_name(v->kind)),
                out->where);
        out->o = v, depth++, i = (size_t)-1;
    }
    return CDMPP_OK;
}

static const cd_serving_family *family_of(const cd_json *o) {
    const cd_json *v = cd_json_get(o, "model_type");
    for (size_t i = 0; v && v->kind == CD_JSON_STR && i < cd_serving_n_family; i++)
        if (cd_str_is(v->u.s, cd_serving_families[i].type)) return &cd_serving_families[i];
    return NULL;
}

/* A part without a type is of that of the whole, if that is a language model's. */
static cdmpp_status find_family(const place *p, cd_serving_model *m, const cd_serving_family **out,
                                cdmpp_err *err) {
    const cd_json *v = cd_json_get(p->o, "model_type"), *whole = cd_json_get(p->root, "model_type");
    cd_str name;
    if ((*out = family_of(p->o))) return CDMPP_OK;
    if (p->o != p->root && (!v || v->kind == CD_JSON_NULL)) {
        if ((*out = family_of(p->root)))
            return cd_serving_note(
                       m, "%s has no model_type: it is taken for the %s that the whole model is",
                       p->where, (*out)->type),
                   CDMPP_OK;
        const cd_str of = whole && whole->kind == CD_JSON_STR ? whole->u.s : (cd_str){"unknown", 7};
        return cd_err_key(
            err,
            CD_FAIL(err, ESCHEMA,
                    "expected the type of the language model, as llama or qwen3; found nothing, "
                    "and the type of the whole, '%.*s', does not say it",
                    cd_str_shown(of, 40), of.p),
            "model_type");
    }
    CD_TRY(cd_json_need_str(p->o, "model_type", &name, err));
    return cd_err_key(err,
                      CD_FAIL(err, EUNSUPPORTED,
                              "expected one of the %zu of docs/reference/serving.md, as llama, "
                              "qwen3_moe or deepseek_v3; found '%.*s'",
                              cd_serving_n_family, cd_str_shown(name, 40), name.p),
                      "model_type");
}

/* ---- parts that a family does not have ---- */
/* Fields that change what a layer computes: one that the family does not read would be answered as
 * if it were not there. */
static cdmpp_status check_parts(const cd_json *o, const cd_serving_family *f, cdmpp_err *err) {
    const bool mamba = f->mix == CD_SERVING_SINGLE || f->mix == CD_SERVING_MAMBA;
    const struct {
        const char *key;
        bool known;
    } part[] = {{"kv_lora_rank", f->latent},
                {"index_topk", f->index},
                {"attention_chunk_size", f->chunks},
                {"cross_attention_layers", false},
                {"block_configs", false},
                {"hybrid_override_pattern", f->mix == CD_SERVING_SINGLE},
                {"layers_block_type", f->mix == CD_SERVING_SINGLE},
                {"linear_num_value_heads", f->mix == CD_SERVING_DELTA},
                {"ssm_state_size", mamba},
                {"mamba_d_state", mamba},
                {"attn_layer_period", false},
                {"attn_layer_indices", false},
                {"num_kv_shared_layers", false},
                {"altup_num_inputs", false},
                {"use_cla", false},
                {"linear_attn_config", false},
                {"zero_expert_num", false},
                {"compress_ratios", false},
                {"num_experts", f->experts},
                {"num_local_experts", f->experts},
                {"n_routed_experts", f->experts},
                {"moe_num_experts", f->experts},
                {"num_routed_experts", f->experts},
                {"residual_ffn", false},
                {"enable_moe_block", false},
                {"hc_mult", false}};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (!part[i].known && !cd_serving_is_plain(cd_json_get(o, part[i].key)))
            return cd_err_key(
                err,
                CD_FAIL(
                    err, EUNSUPPORTED,
                    "a part that %s is not answered with: its time and its memory would be missing",
                    f->type),
                part[i].key);
    const cd_json *kinds = f->mix == CD_SERVING_LIGHTNING ? NULL : cd_json_get(o, "attn_type_list");
    for (const cd_json *v = kinds && kinds->kind == CD_JSON_ARR ? kinds->u.child : NULL; v;
         v = v->next)
        if (v->kind == CD_JSON_INT && !v->u.i)
            return cd_err_key(err,
                              CD_FAIL(err, EUNSUPPORTED,
                                      "linear attention is a part that %s is not answered with",
                                      f->type),
                              "attn_type_list");
    return CDMPP_OK;
}

/* ---- attention ---- */
/* falcon: one key head, or as many as num_kv_heads says. */
static cdmpp_status read_few_keys(cd_serving_fields *o, cd_serving_model *m, cdmpp_err *err) {
    if (cd_serving_is_true(o, "new_decoder_architecture"))
        return or_default(o, "num_kv_heads", m->heads, "num_attention_heads", &m->kv_heads, err);
    m->kv_heads = !there(o, "multi_query") || cd_serving_is_true(o, "multi_query") ? 1 : m->heads;
    return CDMPP_OK;
}

static cdmpp_status read_attention(cd_serving_fields *o, const cd_serving_family *f,
                                   cd_serving_model *m, cdmpp_err *err) {
    /* null is as many as query heads, of all families */
    const bool fixed = f->kv_heads > 0 && !get(o, "num_key_value_heads");
    if (f->few_keys) CD_TRY(read_few_keys(o, m, err));
    else
        CD_TRY(or_default(o, "num_key_value_heads", fixed ? f->kv_heads : m->heads,
                          fixed ? NULL : "num_attention_heads", &m->kv_heads, err));
    if (fmod(m->heads, m->kv_heads) > 0)
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE,
                                  "expected a divisor of num_attention_heads %g, found %g",
                                  m->heads, m->kv_heads),
                          "num_key_value_heads");
    static const char key[] = "head_dim";
    const bool known = f->head_dim > 0 && !get(o, key);
    if (!known && !there(o, key) && fmod(m->hidden, m->heads) > 0)
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE,
                                  "expected this field, as hidden_size %g is not a multiple of "
                                  "num_attention_heads %g",
                                  m->hidden, m->heads),
                          key);
    return or_default(o, key, known ? f->head_dim : m->hidden / m->heads,
                      known ? NULL : "hidden_size / num_attention_heads", &m->head_dim, err);
}

/* Decode is of one shape, whatever the heads are: they are absorbed. Prompts of other heads are
 * ordinary attention. */
static cdmpp_status read_latent(cd_serving_fields *o, const cd_serving_family *f,
                                cd_serving_model *m, cdmpp_err *err) {
    const struct {
        const char *key;
        double *to, only;
    } n[] = {{"kv_lora_rank", &m->kv_rank, 512},
             {"qk_rope_head_dim", &m->rope, 64},
             {"qk_nope_head_dim", &m->nope, 0},
             {"v_head_dim", &m->v_dim, 0}};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        CD_TRY(need(o, n[i].key, n[i].to, err));
        if (n[i].only > 0 && fabs(*n[i].to - n[i].only) > 0)
            return cd_err_key(
                err,
                CD_FAIL(
                    err, EUNSUPPORTED,
                    "expected %g, found %g: operators of latent attention are of that shape alone",
                    n[i].only, *n[i].to),
                n[i].key);
    }
    m->latent = true;
    /* ranks and the two parts of a head say it */
    cd_serving_pass(o, "num_key_value_heads", "head_dim", "qk_head_dim");
    if (!f->index && (fabs(m->nope - 128) > 0 || fabs(m->v_dim - 128) > 0))
        cd_serving_note(m,
                        "qk_nope_head_dim %g and v_head_dim %g: prompts take the time of ordinary "
                        "attention with heads of %g",
                        m->nope, m->v_dim, (m->nope + m->rope + m->v_dim) / 2);
    if (f->index) {
        CD_TRY(need(o, "index_n_heads", &m->index_heads, err));
        CD_TRY(need(o, "index_head_dim", &m->index_dim, err));
        CD_TRY(need(o, "index_topk", &m->index_topk, err));
    }
    /* null: queries are not compressed */
    if (get(o, "q_lora_rank")) return maybe(o, "q_lora_rank", &m->q_rank, err);
    return or_default(o, "q_lora_rank", 1536, NULL, &m->q_rank, err);
}

/* ---- all ---- */
static void note_outer(const place *p, cd_serving_model *m) {
    static const char *const beside[] = {"vision_config", "audio_config", "visual", "vision_tower"};
    const cd_json *v = cd_json_get(p->root, "model_type");
    const cd_str outer = v && v->kind == CD_JSON_STR ? v->u.s : (cd_str){"?", 1};
    bool parts = p->o != p->root;
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        parts |= !cd_serving_is_plain(cd_json_get(p->root, beside[i]));
    if (parts)
        cd_serving_note(
            m,
            "the model %.*s has parts beside %s (images, sound): this is its text part, %s, alone",
            cd_str_shown(outer, 40), outer.p, p->o != p->root ? p->where : "its text part",
            m->name);
}

/* Where each layer has a word, these are as many as layers. */
static cdmpp_status read_depth(cd_serving_fields *o, const cd_serving_family *f,
                               cd_serving_model *m, cdmpp_err *err) {
    static const char *const list[] = {"hybrid_override_pattern", "layers_block_type"};
    static const char key[] = "num_hidden_layers";
    for (size_t i = 0; f->mix == CD_SERVING_SINGLE && !there(o, key) && i < 2; i++) {
        const cd_json *v = get(o, list[i]);
        const size_t n = !v                       ? 0
                         : v->kind == CD_JSON_STR ? v->u.s.n
                         : v->kind == CD_JSON_ARR ? v->n
                                                  : 0;
        if (!n) continue;
        m->layers = (double)n;
        cd_serving_note(m, "num_hidden_layers is not there: %s has %zu layers", list[i], n);
    }
    if (!(m->layers > 0)) CD_TRY(need(o, key, &m->layers, err));
    return m->layers > CD_SERVING_MAX_LAYER
               ? cd_err_key(err,
                            CD_FAIL(err, ERANGE, "expected at most %d, found %g",
                                    CD_SERVING_MAX_LAYER, m->layers),
                            key)
               : CDMPP_OK;
}

static cdmpp_status read_sizes(cd_serving_fields *o, const cd_serving_family *f,
                               cd_serving_model *m, cdmpp_err *err) {
    CD_TRY(read_depth(o, f, m, err));
    CD_TRY(need(o, "hidden_size", &m->hidden, err));
    CD_TRY(f->heads > 0 ? or_default(o, "num_attention_heads", f->heads, NULL, &m->heads, err)
                        : need(o, "num_attention_heads", &m->heads, err));
    CD_TRY(f->vocab > 0 ? or_default(o, "vocab_size", f->vocab, NULL, &m->vocab, err)
                        : need(o, "vocab_size", &m->vocab, err));
    CD_TRY(maybe(o, "max_position_embeddings", &m->longest, err));
    m->norms = f->norms > 0 ? f->norms : 2;
    m->products = f->plain ? 2 : 3;
    m->gates =
        f->gates && !(there(o, "attn_output_gate") && !cd_serving_is_true(o, "attn_output_gate"))
            ? 2
            : 1;
    m->qk_norm = f->qk_norm || cd_serving_is_true(o, "use_qk_norm");
    return CDMPP_OK;
}

/* The width of a feed-forward part of all parameters. */
static cdmpp_status read_dense(cd_serving_fields *o, const cd_serving_family *f,
                               cd_serving_model *m, cdmpp_err *err) {
    if (f->few_keys)
        return or_default(o, "ffn_hidden_size", 4 * m->hidden, "4 x hidden_size", &m->ffn, err);
    return m->dense_layers > 0 ? need(o, "intermediate_size", &m->ffn, err) : CDMPP_OK;
}

/* The part says it, or else the whole. */
static void read_tied(cd_serving_fields *o, cd_serving_fields *root, const cd_serving_family *f,
                      cd_serving_model *m) {
    cd_serving_fields *in = there(o, "tie_word_embeddings") ? o : root;
    m->tied = cd_serving_is_true(in, "tie_word_embeddings");
    if (there(in, "tie_word_embeddings") || !f->tied) return;
    m->tied = true;
    cd_serving_note(m, "tie_word_embeddings is not there: true is taken, as Hugging Face does");
}

static cdmpp_status read_part(cd_serving_fields *o, const place *p, const cd_serving_family *f,
                              cd_serving_model *m, cdmpp_err *err) {
    snprintf(m->name, sizeof m->name, "%s", f->type);
    (void)get(o, "model_type");
    note_outer(p, m);
    CD_TRY(check_parts(p->o, f, err));
    /* none of it is linear */
    if (f->mix != CD_SERVING_LIGHTNING) cd_serving_pass(o, "attn_type_list");
    CD_TRY(read_sizes(o, f, m, err));
    CD_TRY(f->latent ? read_latent(o, f, m, err) : read_attention(o, f, m, err));
    CD_TRY(cd_serving_read_layers(o, f, m, err));
    const bool sparse = f->experts && (f->mix != CD_SERVING_SINGLE || m->sparse_layers > 0);
    if (!sparse && f->experts)
        cd_serving_pass(o, f->experts, f->expert_ffn, "num_experts_per_tok", "n_shared_experts",
                        "moe_shared_expert_intermediate_size", "moe_latent_size");
    CD_TRY(sparse ? cd_serving_read_experts(o, f, m, err) : read_dense(o, f, m, err));
    /* no layer has it */
    if (!(m->dense_layers > 0))
        cd_serving_pass(o, f->dense_ffn ? f->dense_ffn : "intermediate_size");
    if (f->told) cd_serving_note(m, "%s", f->told);
    if (f->plain && m->experts > 0)
        cd_serving_note(m, "experts without a gate take the time of experts with a gate of two "
                           "thirds of their width");
    if (o->unlike.code) cd_err_from(err, &o->unlike);
    return o->unlike.code;
}

static cdmpp_status read_all(cd_arena *a, const cd_json *json, const cd_serving_beside *beside,
                             cd_serving_model *m, cdmpp_err *err) {
    place p;
    const cd_serving_family *f = NULL;
    cd_serving_fields o, root;
    CD_TRY(find_part(json, &p, err));
    CD_TRY(cd_serving_fields_of(a, p.o, m, &o, err));
    CD_TRY(cd_serving_fields_of(a, p.root, m, &root, err));
    cdmpp_status st = find_family(&p, m, &f, err);
    if (!st) st = read_part(&o, &p, f, m, err);
    CD_TRY(p.where[0] ? cd_err_key(err, st, p.where) : st);
    read_tied(&o, &root, f, m);
    const cd_serving_typed t = {a, &o, p.o == p.root ? &o : &root, beside, p.where};
    st = cd_serving_read_types(&t, m, &m->untyped);
    if (st && st != CDMPP_EUNSUPPORTED) { /* whoever says the type need not know it from here */
        cd_err_from(err, &m->untyped);
        return st;
    }
    cd_serving_unread(&o, p.where);
    serving_beside_compare(beside, m);
    return CDMPP_OK;
}

cdmpp_status cd_serving_model_typed(const cd_serving_model *m, int linear, cdmpp_err *err) {
    if (linear >= 0 || !m->untyped.code) return CDMPP_OK;
    cd_err_from(err, &m->untyped);
    return m->untyped.code;
}

/* JSON of other programs. What it leaves open (a key that comes twice) is a doubt each; name: of
 * the file in it, empty: config.json. */
static cdmpp_status serving_parse(cd_arena *a, cd_str text, const char *name, cd_serving_model *m,
                                  const cd_json **out, cdmpp_err *err) {
    cd_buf said = {0};
    cdmpp_status st = cd_json_parse_foreign(a, text, &said, out, err);
    if (!st && said.oom) st = CD_FAIL(err, ENOMEM, "notes");
    for (const char *line = st ? NULL : said.p, *end; line && (end = strchr(line, '\n')) != NULL;
         line = end + 1)
        cd_serving_doubt(m, "%s%s%.*s", name, *name ? ": " : "", (int)(end - line), line);
    cd_buf_free(&said);
    return st;
}

static cdmpp_status read_text(cd_arena *a, const char *path, cd_str text,
                              const cd_serving_beside *beside, cd_serving_model *out,
                              cdmpp_err *err) {
    const cd_json *root = NULL;
    cdmpp_status st = serving_parse(a, text, "", out, &root, err);
    if (!st) st = read_all(a, root, beside, out, err);
    (void)cd_err_at(&out->untyped, out->untyped.code, path, 0);
    return cd_err_at(err, st, path, 0);
}

cdmpp_status cd_serving_model_read(const char *path, const char *text, size_t n,
                                   cd_serving_model *out, cdmpp_err *err) {
    cd_arena a = {0};
    const cd_serving_beside none = {0};
    *out = (cd_serving_model){0};
    const cdmpp_status st = read_text(&a, path, (cd_str){text, n}, &none, out, err);
    cd_arena_free(&a);
    return st;
}

/* A checkpoint's folder stands for its config.json. */
cdmpp_status cd_serving_model_load(const char *path, cd_serving_model *out, cdmpp_err *err) {
    char *text = NULL, in_folder[4096];
    struct stat s;
    size_t n;
    cd_arena a = {0};
    cd_serving_beside beside = {0};
    *out = (cd_serving_model){0};
    if (!stat(path, &s) && S_ISDIR(s.st_mode)) {
        if (snprintf(in_folder, sizeof in_folder, "%s/config.json", path) >= (int)sizeof in_folder)
            return CD_FAIL(err, EIO, "the name of the folder is too long");
        path = in_folder;
    }
    CD_TRY(cd_file_read(path, MAX_BYTES, &text, &n, err));
    cdmpp_status st = serving_beside_read(&a, path, out, &beside, err);
    if (!st) st = read_text(&a, path, (cd_str){text, n}, &beside, out, err);
    cd_arena_free(&a);
    cd_mem_free(text);
    return st;
}
