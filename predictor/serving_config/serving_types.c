/* Number types of a checkpoint: what quantization_config makes narrow, and what it leaves out. */
#include <ctype.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/serving_config/serving_match.h"
#include "predictor/serving_config/serving_read.h"

/* Names, patterns and expressions of modules. */

enum { TEXT = 512 };
typedef enum { NOTHING, WORDS, STARS, EXPRESSION } kind;

struct cd_serving_pattern {
    kind kind;
    char *text; /* from "layers." on, where that is named */
    long layer; /* that words are of; -1: of any */
    regex_t re;
};

/* Python's expression as one of POSIX. */
static bool translated(const char *p, char *out, size_t room) {
    size_t n = (size_t)snprintf(out, room, "^(");
    for (; *p; p++) {
        if (n + 8 > room || *p == '{') return false; /* counts of counts take much memory */
        if (p[0] == '\\' && p[1] == 'd') n += (size_t)snprintf(out + n, room - n, "[0-9]"), p++;
        else if (p[0] == '\\' && (!p[1] || isalnum((unsigned char)p[1]))) return false;
        else if (p[0] == '\\') out[n++] = *p++, out[n++] = *p;
        else if (!strncmp(p, "(?:", 3)) out[n++] = '(', p += 2;
        else if (!strncmp(p, "(?", 2)) return false;
        else out[n++] = *p;
    }
    out[n++] = ')', out[n] = 0;
    return true;
}

static const char *from_layers(const char *p) {
    const char *at = strstr(p, "layers.");
    return at ? at : p;
}

static void understand(struct cd_serving_pattern *p, bool *bad) {
    char text[2 * TEXT];
    if (!strncmp(p->text, "re:", 3)) {
        if (translated(p->text + 3, text, sizeof text) &&
            !regcomp(&p->re, text, REG_EXTENDED | REG_NOSUB))
            p->kind = EXPRESSION;
        else *bad = true;
        return;
    }
    p->kind = strchr(p->text, '*') ? STARS : *p->text ? WORDS : NOTHING;
    const char *at = strstr(p->text, "layers.");
    if (p->kind == WORDS && at && isdigit((unsigned char)at[7]))
        p->layer = strtol(at + 7, NULL, 10);
}

cdmpp_status cd_serving_match_new(const cd_json *list, cd_serving_match *out, cdmpp_err *err) {
    const cd_json *first = !list                       ? NULL
                           : list->kind == CD_JSON_ARR ? list->u.child
                           : list->kind == CD_JSON_STR ? list
                                                       : NULL;
    const size_t n = !first ? 0 : first == list ? 1 : list->n;
    *out = (cd_serving_match){.v = cd_mem_zalloc(n + 1, sizeof *out->v)};
    if (!out->v) return CD_FAIL(err, ENOMEM, "%zu patterns", n);
    for (const cd_json *v = first; v && out->n < n; v = first == list ? NULL : v->next) {
        struct cd_serving_pattern *p = &out->v[out->n];
        if (v->kind != CD_JSON_STR || v->u.s.n >= TEXT) continue;
        if (!(p->text = cd_mem_zalloc(v->u.s.n + 1, 1))) {
            cd_serving_match_free(out);
            return CD_FAIL(err, ENOMEM, "%zu patterns", n);
        }
        memcpy(p->text, v->u.s.p, v->u.s.n);
        p->layer = -1;
        out->n++;
        understand(p, &out->bad);
    }
    return CDMPP_OK;
}

void cd_serving_match_free(cd_serving_match *m) {
    for (size_t i = 0; i < m->n; i++) {
        if (m->v[i].kind == EXPRESSION) regfree(&m->v[i].re);
        cd_mem_free(m->v[i].text);
    }
    cd_mem_free(m->v);
    *m = (cd_serving_match){0};
}

/* All of its words stand one behind the other in the name. */
static bool holds(const char *name, const char *words) {
    const size_t n = strlen(words);
    for (const char *at = name; n && (at = strstr(at, words)); at++)
        if ((at == name || at[-1] == '.') && (!at[n] || at[n] == '.')) return true;
    return false;
}

bool cd_serving_match_any(const cd_serving_match *m, size_t layer, const char *module) {
    char name[TEXT];
    snprintf(name, sizeof name, "model.layers.%zu.%s", layer, module);
    for (size_t i = 0; i < m->n; i++) {
        const struct cd_serving_pattern *p = &m->v[i];
        if (p->kind == EXPRESSION && !regexec(&p->re, name, 0, NULL, 0)) return true;
        if (p->kind == WORDS && (p->layer < 0 || p->layer == (long)layer) &&
            holds(name, from_layers(p->text)))
            return true;
        if (p->kind == STARS &&
            (cd_str_fits(p->text, name) || cd_str_fits(from_layers(p->text), from_layers(name))))
            return true;
    }
    return false;
}

#define there cd_serving_there
#define note  cd_serving_note
#define get   cd_serving_get

/* ---- modules of a layer ---- */
/* LATENT: around the experts, in the type of the shared one */
enum { PROJECT, FFN, SHARED, EXPERT, RECURRENT, N_PART, LATENT = N_PART, N_NAME = 5 };
static const char *const part_name[N_PART] = {"attention", "the dense feed-forward part",
                                              "the shared expert", "the experts", "the states"};

/* Names that a product has in one checkpoint or another. */
static const struct {
    int part;
    const char *name[N_NAME];
} module[] = {
    {PROJECT, {"self_attn.q_proj", "self_attn.q_b_proj", "self_attn.qkv_proj", "mixer.q_proj"}},
    {PROJECT, {"self_attn.k_proj", "self_attn.kv_b_proj", "mixer.k_proj"}},
    {PROJECT, {"self_attn.o_proj", "mixer.o_proj"}},
    {FFN,
     {"mlp.gate_proj", "feed_forward.gate_proj", "mlp.gate_up_proj", "mlp.up_proj",
      "mixer.up_proj"}},
    {FFN, {"mlp.down_proj", "feed_forward.down_proj", "mixer.down_proj"}},
    {SHARED,
     {"mlp.shared_experts.gate_proj", "mlp.shared_expert.gate_proj",
      "feed_forward.shared_expert.gate_proj", "mixer.shared_experts.up_proj",
      "shared_mlp.input_linear"}},
    {LATENT, {"mixer.fc1_latent_proj"}},
    {LATENT, {"mixer.fc2_latent_proj"}},
    {SHARED,
     {"mlp.shared_experts.down_proj", "mlp.shared_expert.down_proj",
      "feed_forward.shared_expert.down_proj", "mixer.shared_experts.down_proj",
      "shared_mlp.output_linear"}},
    {EXPERT,
     {"mlp.experts.0.gate_proj", "mlp.experts.gate_up_proj", "feed_forward.experts.gate_up_proj",
      "mixer.experts.0.up_proj", "block_sparse_moe.experts.0.w1"}},
    {EXPERT,
     {"mlp.experts.0.down_proj", "mlp.experts.down_proj", "feed_forward.experts.down_proj",
      "mixer.experts.0.down_proj", "block_sparse_moe.experts.0.w2"}},
    {RECURRENT,
     {"linear_attn.in_proj_qkvz", "linear_attn.in_proj_qkv", "mixer.in_proj", "mamba.in_proj"}},
    {RECURRENT, {"linear_attn.out_proj", "mixer.out_proj", "mamba.out_proj"}}};
enum { N_MODULE = sizeof module / sizeof *module };

/* what the model lacks has no vote */
static bool votes(const cd_serving_model *m, size_t k, int part) {
    return part != SHARED             ? module[k].part == part
           : module[k].part == SHARED ? m->shared_ffn > 0
                                      : module[k].part == LATENT && m->latent_in > 0;
}

/* Of one product under all names that it may have. */
static bool module_fits(const cd_serving_match *list, size_t k, size_t layer) {
    for (size_t i = 0; i < N_NAME && module[k].name[i]; i++)
        if (cd_serving_match_any(list, layer, module[k].name[i])) return true;
    return false;
}

/* ---- what is narrow ---- */
/* One kind of weights, and the modules that have it. */
typedef struct {
    cd_llm_op_type type;
    double scales;
    const cd_json *targets; /* NULL: all */
    bool all;               /* "Linear": every product */
    cd_serving_match match;
} group;
enum { MOST_GROUPS = 16 };
typedef struct {
    group g[MOST_GROUPS];
    size_t n;
    const cd_json *list; /* of what is left out */
    cd_serving_match ignore;
} plan;

static bool has_part(const cd_serving_model *m, int part) {
    const double has[N_PART] = {m->attention_layers, m->dense_layers,
                                (m->shared_ffn + m->latent_in) * m->sparse_layers, m->sparse_layers,
                                m->state.layers};
    return has[part] > 0;
}

static cdmpp_status compile(plan *p, cdmpp_err *err) {
    CD_TRY(cd_serving_match_new(p->list, &p->ignore, err));
    for (size_t i = 0; i < p->n; i++) {
        group *g = &p->g[i];
        g->all = !g->targets;
        for (const cd_json *v = g->targets && g->targets->kind == CD_JSON_ARR ? g->targets->u.child
                                                                              : NULL;
             v && !g->all; v = v->next)
            g->all = v->kind == CD_JSON_STR && cd_str_is(v->u.s, "Linear");
        if (!g->all) CD_TRY(cd_serving_match_new(g->targets, &g->match, err));
    }
    return CDMPP_OK;
}

static void release(plan *p) {
    cd_serving_match_free(&p->ignore);
    for (size_t i = 0; i < p->n; i++) cd_serving_match_free(&p->g[i].match);
}

static bool is_bad(const plan *p) {
    bool bad = p->ignore.bad;
    for (size_t i = 0; i < p->n; i++) bad |= p->g[i].match.bad;
    return bad;
}

/* Of each part the kind that most of its products have. Dense layers of a model with experts are
 * its first ones. */
static void vote(const plan *p, cd_serving_model *m, int part, cd_llm_op_type *to) {
    const double layers = part == FFN && m->sparse_layers > 0 ? m->dense_layers : m->layers;
    double count[MOST_GROUPS + 1] = {0}, all = 0;
    size_t best = p->n;
    if (!has_part(m, part)) return;
    for (size_t layer = 0; (double)layer < layers; layer++)
        for (size_t k = 0; k < N_MODULE; k++) {
            size_t g = 0;
            if (!votes(m, k, part)) continue;
            while (g < p->n && !p->g[g].all && !module_fits(&p->g[g].match, k, layer)) g++;
            if (g < p->n && module_fits(&p->ignore, k, layer)) g = p->n;
            count[g]++, all++;
        }
    for (size_t g = 0; g < p->n; g++)
        if (count[g] > count[best]) best = g;
    if (best < p->n) *to = p->g[best].type, m->scales = fmax(m->scales, p->g[best].scales);
    if (count[best] < all)
        note(m,
             "quantization_config: %s is in several types; that of most products is taken, %s of "
             "%.0f %%",
             part_name[part], cd_llm_op_type_name(*to), 100 * count[best] / all);
}

static cdmpp_status apply(plan *p, cd_serving_model *m, cdmpp_err *err) {
    cd_llm_op_type *const to[N_PART] = {&m->attention, &m->linear, &m->shared, &m->expert,
                                        &m->recurrent};
    cdmpp_status st = compile(p, err);
    if (!st && is_bad(p))
        st = cd_err_key(err,
                        CD_FAIL(err, EUNSUPPORTED,
                                "an expression in it is not understood: say the type with --dtype"),
                        "ignore");
    for (int i = 0; !st && i < N_PART; i++) vote(p, m, i, to[i]);
    /* what is said of products */
    if (!(m->dense_layers > 0))
        m->linear = m->sparse_layers > 0 && m->shared_ffn > 0 ? m->shared : m->attention;
    if (!(m->experts > 0)) m->expert = m->linear;
    release(p);
    return st;
}

/* ---- kinds of quantisation ---- */
static bool null(const cd_json *v) { return !v || v->kind == CD_JSON_NULL; }

/* Operators of products with a scale for each block are of one shape. */
static cdmpp_status check_block(const cd_json *block, const char *key, cdmpp_err *err) {
    double side[2] = {0};
    size_t n = 0;
    for (const cd_json *v = block->kind == CD_JSON_ARR ? block->u.child : NULL; v; v = v->next, n++)
        if (n < 2 && cd_json_real(v, &side[n], NULL)) side[n] = 0;
    if (n == 2 && !(fabs(side[0] - 128) > 0) && !(fabs(side[1] - 128) > 0)) return CDMPP_OK;
    if (n == 2)
        (void)CD_FAIL(err, EUNSUPPORTED,
                      "expected [128, 128], found [%g, %g]: say the type with --dtype", side[0],
                      side[1]);
    else (void)CD_FAIL(err, EUNSUPPORTED, "expected [128, 128]: say the type with --dtype");
    return cd_err_key(err, CDMPP_EUNSUPPORTED, key);
}

static double number_or_0(const cd_json *v) {
    double x;
    return null(v) || cd_json_real(v, &x, NULL) ? 0 : x;
}

/* awq, gptq: 4 or 8 bits, a scale in 16 bits for each group of weights, and a zero point where
 * scales are not symmetric. */
static cdmpp_status read_weights_only(cd_serving_fields *q, group *g, cdmpp_err *err) {
    double bits = 0;
    CD_TRY(cd_serving_maybe(q, "bits", &bits, err));
    const double size = number_or_0(get(q, "group_size"));
    if (fabs(bits - 4) > 0 && fabs(bits - 8) > 0)
        return cd_err_key(err,
                          CD_FAIL(err, EUNSUPPORTED,
                                  "expected 4 or 8, found %g: say the type with --dtype", bits),
                          "bits");
    if (there(q, "dynamic") && get(q, "dynamic")->n)
        return cd_err_key(
            err,
            CD_FAIL(err, EUNSUPPORTED,
                    "types of single modules are not read: say the type with --dtype"),
            "dynamic");
    g->type = bits > 4 ? CD_LLM_OP_T_INT8_WO : CD_LLM_OP_T_INT4_WO;
    g->scales = size > 0 ? (2 + (cd_serving_is_true(q, "zero_point") ? bits / 8 : 0)) / size : 0;
    return CDMPP_OK;
}

/* What compressed-tensors and ModelOpt say of a group: bits and kind of weights and of inputs. */
typedef struct {
    double bits, size;
    bool there, real;
} half;

static bool word_is(const cd_json *v, const char *word) {
    return v && v->kind == CD_JSON_STR && cd_str_is(v->u.s, word);
}

static half half_of(const cd_json *v) {
    if (null(v)) return (half){0};
    return (half){number_or_0(cd_json_get(v, "num_bits")),
                  number_or_0(cd_json_get(v, "group_size")), true,
                  word_is(cd_json_get(v, "type"), "float")};
}

static cdmpp_status read_group(const cd_json *o, group *g, cdmpp_err *err) {
    const cd_json *weights = cd_json_get(o, "weights"),
                  *block = weights ? cd_json_get(weights, "block_structure") : NULL,
                  *targets = cd_json_get(o, "targets");
    const half w = half_of(weights), x = half_of(cd_json_get(o, "input_activations"));
    const struct {
        double bits, inputs; /* inputs 0: they are not quantised */
        bool real;
        cd_llm_op_type type;
    } known[] = {{8, 8, true, CD_LLM_OP_T_FP8},      {8, 8, false, CD_LLM_OP_T_INT8},
                 {8, 0, false, CD_LLM_OP_T_INT8_WO}, {8, 0, true, CD_LLM_OP_T_INT8_WO},
                 {4, 0, false, CD_LLM_OP_T_INT4_WO}, {4, 0, true, CD_LLM_OP_T_W4A16_MXFP4},
                 {4, 4, true, CD_LLM_OP_T_NVFP4}};
    g->targets = null(targets) ? NULL : targets;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!w.there || w.real != known[i].real || (x.there && x.real != w.real) ||
            fabs(w.bits - known[i].bits) > 0 || fabs((x.there ? x.bits : 0) - known[i].inputs) > 0)
            continue;
        g->type = known[i].type;
        if (g->type == CD_LLM_OP_T_INT4_WO || g->type == CD_LLM_OP_T_INT8_WO)
            g->scales = w.size > 0 ? 2 / w.size : 0;
        if (g->type != CD_LLM_OP_T_FP8 || !word_is(cd_json_get(weights, "strategy"), "block"))
            return CDMPP_OK;
        g->type = CD_LLM_OP_T_FP8_BLOCK;
        return null(block) ? CDMPP_OK : check_block(block, "block_structure", err);
    }
    return cd_err_key(
        err,
        CD_FAIL(err, EUNSUPPORTED,
                "weights of %g and inputs of %g bits are of no operator: say the type with --dtype",
                w.bits, x.bits),
        "config_groups");
}

/* ---- ModelOpt's words ---- */
static cdmpp_status unknown_algo(const cd_json *v, const char *key, cdmpp_err *err) {
    const cd_str found = v && v->kind == CD_JSON_STR ? v->u.s : (cd_str){"nothing", 7};
    return cd_err_key(err,
                      CD_FAIL(err, EUNSUPPORTED,
                              "expected " CD_SERVING_ALGOS
                              ", or config_groups; found %.*s: say the type with --dtype",
                              cd_str_shown(found, 40), found.p),
                      key);
}

/* MIXED_PRECISION: a word for each product. Those of one word are a group; what has none is left
 * out. */
static cdmpp_status read_mixed(cd_serving_fields *q, const cd_json *layers, plan *p,
                               cdmpp_err *err) {
    cd_json *list[MOST_GROUPS];
    p->n = 0;
    for (const cd_json *o = layers->u.child; o; o = o->next) {
        const cd_json *v = cd_json_get(o, "quant_algo");
        group g = {0};
        size_t i = 0;
        if (!cd_serving_algo(v, number_or_0(cd_json_get(o, "group_size")), &g.type, &g.scales))
            return cd_err_key(err, unknown_algo(v, "quant_algo", err), "quantized_layers");
        while (i < p->n && p->g[i].type != g.type) i++;
        cd_json *name = CD_NEW(q->a, cd_json);
        /* types are fewer than groups */
        if (i == p->n) p->g[p->n] = g, list[p->n++] = CD_NEW(q->a, cd_json);
        if (!name || !list[i]) return CD_FAIL(err, ENOMEM, "quantized_layers");
        *name = (cd_json){.kind = CD_JSON_STR, .u.s = o->key, .next = list[i]->u.child};
        *list[i] = (cd_json){.kind = CD_JSON_ARR, .n = list[i]->n + 1, .u.child = name};
        p->g[i].targets = list[i];
    }
    return CDMPP_OK;
}
_Static_assert((int)CD_LLM_OP_N_TYPE <= (int)MOST_GROUPS, "a group for each type");

/* Without groups one word names all. */
static cdmpp_status read_algo(cd_serving_fields *q, plan *p, cdmpp_err *err) {
    const cd_json *v = get(q, "quant_algo"), *layers = get(q, "quantized_layers");
    p->n = 1, p->g[0] = (group){0};
    if (word_is(v, "MIXED_PRECISION") && layers && layers->kind == CD_JSON_OBJ && layers->n)
        return read_mixed(q, layers, p, err);
    if (cd_serving_algo(v, number_or_0(get(q, "group_size")), &p->g[0].type, &p->g[0].scales))
        return CDMPP_OK;
    return unknown_algo(v, null(v) ? "config_groups" : "quant_algo", err);
}

/* The cache, as a word or as an object with bits. */
static cdmpp_status read_cache(cd_serving_fields *q, cd_serving_model *m, cdmpp_err *err) {
    static const char *const key[] = {"kv_cache_scheme", "kv_cache_quant_algo"};
    for (size_t i = 0; i < 2; i++) {
        const cd_json *v = get(q, key[i]);
        const half h = half_of(v);
        if (h.bits > 0 && !(fabs(h.bits - 8) > 0))
            m->kv = h.real ? CD_LLM_OP_T_FP8 : CD_LLM_OP_T_INT8;
        else if (!null(v) && !cd_serving_algo_cache(v, &m->kv)) {
            char bits[32];
            const int n = snprintf(bits, sizeof bits, "%g bits", h.bits);
            const cd_str word = v->kind == CD_JSON_STR ? v->u.s : (cd_str){bits, (size_t)n};
            return cd_err_key(err,
                              CD_FAIL(err, EUNSUPPORTED,
                                      "expected 8 bits, or FP8, INT8 or NVFP4; found %.*s: say the "
                                      "type with --dtype and --kv-dtype",
                                      cd_str_shown(word, 40), word.p),
                              key[i]);
        }
    }
    return CDMPP_OK;
}

static cdmpp_status read_groups(cd_serving_fields *q, plan *p, cdmpp_err *err) {
    const cd_json *groups = get(q, "config_groups");
    if (!groups || groups->kind != CD_JSON_OBJ || !groups->n) return read_algo(q, p, err);
    (void)get(q, "quant_algo"), (void)get(q, "group_size"); /* groups say it one by one */
    for (const cd_json *o = groups->u.child; o; o = o->next) {
        if (p->n == MOST_GROUPS)
            return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "expected at most %d", MOST_GROUPS),
                              "config_groups");
        CD_TRY(read_group(o, &p->g[p->n++], err));
    }
    return CDMPP_OK;
}

/* ---- which program wrote it ---- */
typedef enum { UNKNOWN, FP8, WEIGHTS, GROUPS, MXFP4 } method;
static const struct {
    const char *word;
    method is;
} methods[] = {{"fp8", FP8},
               {"fbgemm_fp8", FP8},
               {"mxfp4", MXFP4},
               {"awq", WEIGHTS},
               {"awq_marlin", WEIGHTS},
               {"gptq", WEIGHTS},
               {"gptq_marlin", WEIGHTS},
               {"compressed-tensors", GROUPS},
               {"compressed_tensors", GROUPS},
               {"modelopt", GROUPS},
               {"modelopt_fp8", GROUPS},
               {"modelopt_fp4", GROUPS}};

/* Without a name the fields that only one of them writes say it. */
static method guessed(cd_serving_fields *q, const char **by) {
    static const struct {
        const char *key;
        method is;
    } sign[] = {{"config_groups", GROUPS},
                {"quant_algo", GROUPS},
                {"weight_block_size", FP8},
                {"activation_scheme", FP8},
                {"bits", WEIGHTS}};
    for (size_t i = 0; i < sizeof sign / sizeof *sign; i++)
        if (there(q, sign[i].key)) return *by = sign[i].key, sign[i].is;
    return UNKNOWN;
}

static cdmpp_status method_of(cd_serving_fields *q, cd_serving_model *m, method *out,
                              cdmpp_err *err) {
    const char *by = NULL;
    const cd_json *v = get(q, "quant_method");
    *out = UNKNOWN;
    if (null(v)) {
        *out = guessed(q, &by);
        if (!*out)
            return cd_err_key(err,
                              CD_FAIL(err, EUNSUPPORTED,
                                      "expected this field, or config_groups, quant_algo, "
                                      "weight_block_size or bits: say the type with --dtype"),
                              "quant_method");
        note(m, "quantization_config has no quant_method: %s says what is quantised", by);
    }
    for (size_t i = 0; !*out && i < sizeof methods / sizeof *methods; i++)
        if (word_is(v, methods[i].word)) *out = methods[i].is;
    if (*out == MXFP4 && !(m->experts > 0)) *out = UNKNOWN;
    if (*out) return CDMPP_OK;
    const cd_str how = v->kind == CD_JSON_STR ? v->u.s : (cd_str){"no text", 7};
    return cd_err_key(
        err,
        CD_FAIL(err, EUNSUPPORTED,
                "expected fp8, fbgemm_fp8, mxfp4 (of experts), awq, gptq, compressed-tensors or "
                "modelopt; found '%.*s': say the type with --dtype",
                cd_str_shown(how, 40), how.p),
        "quant_method");
}

static cdmpp_status quantised(cd_serving_fields *q, cd_serving_model *m, cdmpp_err *err) {
    plan p = {.n = 1, .list = get(q, "ignore")};
    const cd_json *block;
    method how;
    CD_TRY(method_of(q, m, &how, err));
    CD_TRY(read_cache(q, m, err));
    switch (how) {
    case MXFP4: return m->expert = CD_LLM_OP_T_W4A16_MXFP4, CDMPP_OK;
    case FP8:
        block = get(q, "weight_block_size");
        p.g[0].type = null(block) ? CD_LLM_OP_T_FP8 : CD_LLM_OP_T_FP8_BLOCK;
        if (!null(block)) CD_TRY(check_block(block, "weight_block_size", err));
        break;
    case WEIGHTS: CD_TRY(read_weights_only(q, &p.g[0], err)); break;
    case GROUPS:
        p.n = 0;
        CD_TRY(read_groups(q, &p, err));
        break;
    case UNKNOWN: break;
    }
    if (null(p.list)) p.list = NULL;
    return apply(&p, m, err);
}

/* ---- what is not quantised ---- */
/* Fields that may say the type, the one that vLLM and Hugging Face take first: dtype before
 * torch_dtype, as newer files write it, and the whole model's before that of its part. */
enum { N_TYPED = 4 };
static const char *const typed_key[N_TYPED] = {"dtype", "torch_dtype", "dtype", "torch_dtype"};

static cd_str word_of(const cd_json *v) {
    return v->kind == CD_JSON_STR ? v->u.s : (cd_str){"no text", 7};
}

/* A file whose fields say different types is answered as they load it, and nobody shall take that
 * for sure. */
static void check_typed(const cd_serving_typed *t, const cd_json *const of[N_TYPED], size_t k,
                        cd_serving_model *m) {
    const cd_str a = word_of(of[k]);
    for (size_t i = k + 1; i < N_TYPED; i++) {
        const cd_str b = null(of[i]) ? a : word_of(of[i]);
        const bool inner_a = k > 1 && t->where[0], inner_b = i > 1 && t->where[0];
        if (b.n == a.n && !memcmp(a.p, b.p, a.n)) continue;
        cd_serving_doubt(m,
                         "%s%s%s is %.*s, but %s%s%s is %.*s: %.*s is taken, as vLLM and Hugging "
                         "Face do; --dtype says another",
                         inner_a ? t->where : "", inner_a ? "." : "", typed_key[k],
                         cd_str_shown(a, 24), a.p, inner_b ? t->where : "", inner_b ? "." : "",
                         typed_key[i], cd_str_shown(b, 24), b.p, cd_str_shown(a, 24), a.p);
        return;
    }
}

/* "torch.bfloat16" is what PyTorch prints. */
static bool says(const cd_json *v, const char *word) {
    cd_str s = word_of(v);
    if (s.n > 6 && !memcmp(s.p, "torch.", 6)) s.p += 6, s.n -= 6;
    return cd_str_is(s, word);
}

/* Without a field vLLM looks into the files of weights, which are not here, and else takes what the
 * GPU computes best: bfloat16. */
static cdmpp_status read_base(const cd_serving_typed *t, cd_serving_model *m, cdmpp_err *err) {
    const cd_json *of[N_TYPED];
    size_t k = 0;
    for (size_t i = 0; i < N_TYPED; i++) of[i] = get(i < 2 ? t->root : t->o, typed_key[i]);
    m->base = CD_LLM_OP_T_BF16, m->checkpoint_base = 2;
    while (k < N_TYPED && (null(of[k]) || says(of[k], "auto"))) k++;
    if (k == N_TYPED) {
        cd_serving_doubt(
            m, "torch_dtype (dtype) is not there: bfloat16 is taken for what is not quantised, as "
               "vLLM does where the files of weights do not say it either; --dtype says another");
        return CDMPP_OK;
    }
    check_typed(t, of, k, m);
    if (says(of[k], "float16") || says(of[k], "half")) m->base = CD_LLM_OP_T_F16;
    else if (says(of[k], "float32") || says(of[k], "float"))
        m->checkpoint_base = 4,
        note(m, "%s is float32: it is served in bfloat16, as libraries do", typed_key[k]);
    else if (!says(of[k], "bfloat16"))
        return cd_err_key(
            err,
            CD_FAIL(err, EUNSUPPORTED,
                    "expected bfloat16, float16 or float32: say the type with --dtype"),
            typed_key[k]);
    return CDMPP_OK;
}

/* ---- all ---- */
/* The quantisation that counts, and where it stands. */
typedef struct {
    const cd_json *q;
    const char *where, *path; /* for messages; path NULL: config.json */
} source;

/* What the two say in a word, as two files may. */
static bool same_word(const cd_json *a, const cd_json *b, const char *key) {
    const cd_json *x = cd_json_get(a, key), *y = cd_json_get(b, key);
    if (null(x) || null(y) || x->kind != CD_JSON_STR || y->kind != CD_JSON_STR) return true;
    return x->u.s.n == y->u.s.n && !memcmp(x->u.s.p, y->u.s.p, x->u.s.n);
}

/* config.json before the file beside it, as vLLM has it. */
static cdmpp_status find_source(const cd_serving_typed *t, cd_serving_model *m, source *out,
                                cdmpp_err *err) {
    const cd_json *inner = get(t->o, "quantization_config"),
                  *outer = get(t->root, "quantization_config"), *beside = t->beside->types;
    *out = (source){!null(inner)   ? inner
                    : !null(outer) ? outer
                                   : NULL,
                    "quantization_config", NULL};
    if (out->q && out->q->kind != CD_JSON_OBJ)
        return cd_err_key(
            err,
            CD_FAIL(err, ESCHEMA, "expected an object, found %s", cd_json_kind_name(out->q->kind)),
            "quantization_config");
    if (out->q && beside &&
        (!same_word(out->q, beside, "quant_algo") ||
         !same_word(out->q, beside, "kv_cache_quant_algo")))
        cd_serving_doubt(m,
                         "quantization_config and %s beside it say different types: the first is "
                         "taken, as vLLM does; --dtype says another",
                         t->beside->name);
    if (out->q || !beside) return CDMPP_OK;
    *out = (source){beside, t->beside->name, t->beside->path};
    note(m, "%s beside config.json says what is quantised", t->beside->name);
    return CDMPP_OK;
}

cdmpp_status cd_serving_read_types(const cd_serving_typed *t, cd_serving_model *m, cdmpp_err *err) {
    source from;
    cd_serving_fields q;
    CD_TRY(find_source(t, m, &from, err));
    const cdmpp_status base = read_base(t, m, err);
    m->linear = m->expert = m->attention = m->shared = m->recurrent = m->base;
    m->kv = -1;
    if (base)
        cd_serving_note(m, "torch_dtype (dtype) names a type that no operator has: bfloat16 is "
                           "taken for everything that --dtype does not name");
    if (!from.q) return base;
    cdmpp_err why = {0};
    cdmpp_status st = cd_serving_fields_of(t->a, from.q, m, &q, &why);
    if (!st) st = quantised(&q, m, &why);
    if (!st && q.unlike.code) why = q.unlike, st = why.code;
    if (!st) cd_serving_unread(&q, from.where);
    if (!st) return base;
    cd_err_from(err, &why);
    return from.path ? cd_err_at(err, st, from.path, 0) : cd_err_key(err, st, from.where);
}
