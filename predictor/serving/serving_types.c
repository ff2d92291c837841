/* Number types of a checkpoint: what quantization_config makes narrow, and what it leaves out. */
#include <math.h>
#include <string.h>

#include "predictor/serving/serving_match.h"
#include "predictor/serving/serving_read.h"

#define there cd_serving_there
#define note cd_serving_note
#define is_word cd_serving_is_word

/* ---- modules of a layer ---- */
enum { PROJECT, FFN, SHARED, EXPERT, RECURRENT, N_PART, N_NAME = 5 };
static const char *const part_name[N_PART] = {"attention", "the dense feed-forward part", "the shared expert", "the experts", "the states"};

/* Names that a product has in one checkpoint or another. */
static const struct {
    int part;
    const char *name[N_NAME];
} module[] = {
    {PROJECT, {"self_attn.q_proj", "self_attn.q_b_proj", "self_attn.qkv_proj", "mixer.q_proj"}},
    {PROJECT, {"self_attn.k_proj", "self_attn.kv_b_proj", "mixer.k_proj"}},
    {PROJECT, {"self_attn.o_proj", "mixer.o_proj"}},
    {FFN, {"mlp.gate_proj", "feed_forward.gate_proj", "mlp.gate_up_proj", "mlp.up_proj", "mixer.up_proj"}},
    {FFN, {"mlp.down_proj", "feed_forward.down_proj", "mixer.down_proj"}},
    {SHARED, {"mlp.shared_experts.gate_proj", "mlp.shared_expert.gate_proj", "feed_forward.shared_expert.gate_proj", "mixer.shared_experts.up_proj", "shared_mlp.input_linear"}},
    {SHARED, {"mlp.shared_experts.down_proj", "mlp.shared_expert.down_proj", "feed_forward.shared_expert.down_proj", "mixer.shared_experts.down_proj", "shared_mlp.output_linear"}},
    {EXPERT, {"mlp.experts.0.gate_proj", "mlp.experts.gate_up_proj", "feed_forward.experts.gate_up_proj", "mixer.experts.0.up_proj", "block_sparse_moe.experts.0.w1"}},
    {EXPERT, {"mlp.experts.0.down_proj", "mlp.experts.down_proj", "feed_forward.experts.down_proj", "mixer.experts.0.down_proj", "block_sparse_moe.experts.0.w2"}},
    {RECURRENT, {"linear_attn.in_proj_qkvz", "linear_attn.in_proj_qkv", "mixer.in_proj", "mamba.in_proj"}},
    {RECURRENT, {"linear_attn.out_proj", "mixer.out_proj", "mamba.out_proj"}}};
enum { N_MODULE = sizeof module / sizeof *module };

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
    const double has[N_PART] = {m->attention_layers, m->dense_layers, m->shared_ffn * m->sparse_layers, m->sparse_layers, m->state.layers};
    return has[part] > 0;
}

static cdmpp_status compile(plan *p, cdmpp_err *err) {
    CD_TRY(cd_serving_match_new(p->list, &p->ignore, err));
    for (size_t i = 0; i < p->n; i++) {
        group *g = &p->g[i];
        g->all = !g->targets;
        for (const cd_json *v = g->targets && g->targets->kind == CD_JSON_ARR ? g->targets->u.child : NULL; v && !g->all; v = v->next) g->all = v->kind == CD_JSON_STR && cd_str_is(v->u.s, "Linear");
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

/* Of each part the kind that most of its products have. Dense layers of a model with experts are its first ones. */
static void vote(const plan *p, cd_serving_model *m, int part, cd_llm_op_type *to) {
    const double layers = part == FFN && m->sparse_layers > 0 ? m->dense_layers : m->layers;
    double count[MOST_GROUPS + 1] = {0}, all = 0;
    size_t best = p->n;
    if (!has_part(m, part)) return;
    for (size_t layer = 0; (double)layer < layers; layer++)
        for (size_t k = 0; k < N_MODULE; k++) {
            size_t g = 0;
            if (module[k].part != part) continue;
            while (g < p->n && !p->g[g].all && !module_fits(&p->g[g].match, k, layer)) g++;
            if (g < p->n && module_fits(&p->ignore, k, layer)) g = p->n;
            count[g]++, all++;
        }
    for (size_t g = 0; g < p->n; g++)
        if (count[g] > count[best]) best = g;
    if (best < p->n) *to = p->g[best].type, m->scales = fmax(m->scales, p->g[best].scales);
    if (count[best] < all) note(m, "quantization_config: %s is in several types; that of most products is taken, %s of %.0f %%", part_name[part], cd_llm_op_type_name(*to), 100 * count[best] / all);
}

static cdmpp_status apply(plan *p, cd_serving_model *m, cdmpp_err *err) {
    cd_llm_op_type *const to[N_PART] = {&m->attention, &m->linear, &m->shared, &m->expert, &m->recurrent};
    cdmpp_status st = compile(p, err);
    if (!st && is_bad(p)) st = cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "an expression in it is not understood: say the type with --dtype"), "ignore");
    for (int i = 0; !st && i < N_PART; i++) vote(p, m, i, to[i]);
    if (!(m->dense_layers > 0)) m->linear = m->sparse_layers > 0 && m->shared_ffn > 0 ? m->shared : m->attention; /* what is said of products */
    if (!(m->experts > 0)) m->expert = m->linear;
    release(p);
    return st;
}

/* ---- kinds of quantisation ---- */
/* Operators of products with a scale for each block are of one shape. */
static cdmpp_status check_block(const cd_json *block, const char *key, cdmpp_err *err) {
    double side[2] = {0};
    size_t n = 0;
    for (const cd_json *v = block->kind == CD_JSON_ARR ? block->u.child : NULL; v; v = v->next, n++)
        if (n < 2 && cd_json_real(v, &side[n], NULL)) side[n] = 0;
    if (n == 2 && !(fabs(side[0] - 128) > 0) && !(fabs(side[1] - 128) > 0)) return CDMPP_OK;
    if (n == 2) (void)CD_FAIL(err, EUNSUPPORTED, "expected [128, 128], found [%g, %g]: say the type with --dtype", side[0], side[1]);
    else (void)CD_FAIL(err, EUNSUPPORTED, "expected [128, 128]: say the type with --dtype");
    return cd_err_key(err, CDMPP_EUNSUPPORTED, key);
}

/* awq, gptq: 4 or 8 bits, a scale in 16 bits for each group of weights, and a zero point where scales are not symmetric. */
static cdmpp_status read_weights_only(const cd_json *q, group *g, cdmpp_err *err) {
    double bits = 0, size = 0;
    CD_TRY(cd_serving_maybe(q, "bits", &bits, err));
    if (there(q, "group_size") && cd_json_real(cd_json_get(q, "group_size"), &size, NULL)) size = 0;
    if (fabs(bits - 4) > 0 && fabs(bits - 8) > 0) return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "expected 4 or 8, found %g: say the type with --dtype", bits), "bits");
    if (there(q, "dynamic") && cd_json_get(q, "dynamic")->n) return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "types of single modules are not read: say the type with --dtype"), "dynamic");
    g->type = bits > 4 ? CD_LLM_OP_T_INT8_WO : CD_LLM_OP_T_INT4_WO;
    g->scales = size > 0 ? (2 + (cd_serving_is_true(q, "zero_point") ? bits / 8 : 0)) / size : 0;
    return CDMPP_OK;
}

/* What compressed-tensors and ModelOpt say of a group: bits and kind of weights and of inputs. */
typedef struct {
    double bits, size;
    bool there, real;
} half;

static half half_of(const cd_json *o, const char *key) {
    const cd_json *v = there(o, key) ? cd_json_get(o, key) : NULL;
    half h = {0, 0, v != NULL, v && is_word(v, "type", "float")};
    if (v && there(v, "num_bits") && cd_json_real(cd_json_get(v, "num_bits"), &h.bits, NULL)) h.bits = 0;
    if (v && there(v, "group_size") && cd_json_real(cd_json_get(v, "group_size"), &h.size, NULL)) h.size = 0;
    return h;
}

static cdmpp_status read_group(const cd_json *o, group *g, cdmpp_err *err) {
    const half w = half_of(o, "weights"), x = half_of(o, "input_activations");
    const struct {
        double bits, inputs; /* inputs 0: they are not quantised */
        bool real;
        cd_llm_op_type type;
    } known[] = {{8, 8, true, CD_LLM_OP_T_FP8}, {8, 8, false, CD_LLM_OP_T_INT8}, {8, 0, false, CD_LLM_OP_T_INT8_WO}, {8, 0, true, CD_LLM_OP_T_INT8_WO},
                 {4, 0, false, CD_LLM_OP_T_INT4_WO}, {4, 0, true, CD_LLM_OP_T_W4A16_MXFP4}, {4, 4, true, CD_LLM_OP_T_NVFP4}};
    g->targets = there(o, "targets") ? cd_json_get(o, "targets") : NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!w.there || w.real != known[i].real || (x.there && x.real != w.real) || fabs(w.bits - known[i].bits) > 0 || fabs((x.there ? x.bits : 0) - known[i].inputs) > 0) continue;
        g->type = known[i].type;
        if (g->type == CD_LLM_OP_T_INT4_WO || g->type == CD_LLM_OP_T_INT8_WO) g->scales = w.size > 0 ? 2 / w.size : 0;
        if (g->type != CD_LLM_OP_T_FP8 || !is_word(cd_json_get(o, "weights"), "strategy", "block")) return CDMPP_OK;
        g->type = CD_LLM_OP_T_FP8_BLOCK;
        return there(cd_json_get(o, "weights"), "block_structure") ? check_block(cd_json_get(cd_json_get(o, "weights"), "block_structure"), "block_structure", err) : CDMPP_OK;
    }
    return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "weights of %g and inputs of %g bits are of no operator: say the type with --dtype", w.bits, x.bits), "config_groups");
}

/* Without groups ModelOpt names all by one word. */
static cdmpp_status read_algo(const cd_json *q, plan *p, cdmpp_err *err) {
    p->n = 1;
    p->g[0] = (group){.type = is_word(q, "quant_algo", "NVFP4") ? CD_LLM_OP_T_NVFP4 : CD_LLM_OP_T_FP8};
    if (is_word(q, "quant_algo", "NVFP4") || is_word(q, "quant_algo", "FP8")) return CDMPP_OK;
    return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "expected this field, or quant_algo FP8 or NVFP4: say the type with --dtype"), there(q, "quant_algo") ? "quant_algo" : "config_groups");
}

static cdmpp_status read_groups(const cd_json *q, plan *p, cd_serving_model *m, cdmpp_err *err) {
    const cd_json *groups = cd_json_get(q, "config_groups");
    const half kv = half_of(q, "kv_cache_scheme");
    if (kv.there && fabs(kv.bits - 8) > 0) return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "expected 8 bits, found %g: say the type with --dtype and --kv-dtype", kv.bits), "kv_cache_scheme");
    if (kv.there || is_word(q, "kv_cache_quant_algo", "FP8")) m->kv = kv.there && !kv.real ? CD_LLM_OP_T_INT8 : CD_LLM_OP_T_FP8;
    if (!groups || groups->kind != CD_JSON_OBJ || !groups->n) return read_algo(q, p, err);
    for (const cd_json *o = groups->u.child; o; o = o->next) {
        if (p->n == MOST_GROUPS) return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "expected at most %d", MOST_GROUPS), "config_groups");
        CD_TRY(read_group(o, &p->g[p->n++], err));
    }
    return CDMPP_OK;
}

static const cd_json *left_out(const cd_json *q) {
    static const char *const key[] = {"ignore", "modules_to_not_convert", "ignored_layers", "exclude_modules"};
    for (size_t i = 0; i < sizeof key / sizeof *key; i++)
        if (there(q, key[i])) return cd_json_get(q, key[i]);
    return NULL;
}

static cdmpp_status quantised(const cd_json *q, cd_serving_model *m, cdmpp_err *err) {
    plan p = {.n = 1, .list = left_out(q)};
    cd_str how;
    CD_TRY(cd_json_need_str(q, "quant_method", &how, err));
    if (cd_str_is(how, "mxfp4") && m->experts > 0) return m->expert = CD_LLM_OP_T_W4A16_MXFP4, CDMPP_OK;
    if (cd_str_is(how, "fp8") || cd_str_is(how, "fbgemm_fp8")) {
        p.g[0].type = there(q, "weight_block_size") ? CD_LLM_OP_T_FP8_BLOCK : CD_LLM_OP_T_FP8;
        if (p.g[0].type == CD_LLM_OP_T_FP8_BLOCK) CD_TRY(check_block(cd_json_get(q, "weight_block_size"), "weight_block_size", err));
    } else if (cd_str_is(how, "awq") || cd_str_is(how, "gptq")) {
        CD_TRY(read_weights_only(q, &p.g[0], err));
    } else if (cd_str_is(how, "compressed-tensors") || cd_str_is(how, "modelopt") || cd_str_is(how, "modelopt_fp4")) {
        p.n = 0;
        CD_TRY(read_groups(q, &p, m, err));
    } else {
        return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "expected fp8, fbgemm_fp8, mxfp4 (of experts), awq, gptq, compressed-tensors or modelopt; found '%.*s': say the type with --dtype", (int)(how.n < 40 ? how.n : 40), how.p),
                          "quant_method");
    }
    return apply(&p, m, err);
}

/* ---- all ---- */
/* Does any field say a type? */
static bool any_type(const cd_json *o, const cd_json *root) { return there(o, "dtype") || there(o, "torch_dtype") || there(root, "dtype") || there(root, "torch_dtype"); }

/* Fields that may say the type, the one that vLLM and Hugging Face take first: dtype before torch_dtype, as newer files write it, and the whole model's before that of its part. */
enum { N_TYPED = 4 };
static const char *const typed_key[N_TYPED] = {"dtype", "torch_dtype", "dtype", "torch_dtype"};

static cd_str word_of(const cd_json *o, const char *key) {
    const cd_json *v = cd_json_get(o, key);
    return v->kind == CD_JSON_STR ? v->u.s : (cd_str){"no text", 7};
}

/* A file whose fields say different types is answered as they load it, and nobody shall take that for sure. */
static void check_typed(const cd_json *const of[N_TYPED], size_t k, const cd_json *root, cd_serving_model *m) {
    const cd_str a = word_of(of[k], typed_key[k]);
    for (size_t i = k + 1; i < N_TYPED; i++) {
        const cd_str b = there(of[i], typed_key[i]) ? word_of(of[i], typed_key[i]) : a;
        if (b.n == a.n && !memcmp(a.p, b.p, a.n)) continue;
        note(m, "%s%s is %.*s, but %s%s is %.*s: %.*s is taken, as vLLM and Hugging Face do; --dtype says another", of[k] == root ? "" : "text_config.", typed_key[k], (int)(a.n < 24 ? a.n : 24), a.p,
             of[i] == root ? "" : "text_config.", typed_key[i], (int)(b.n < 24 ? b.n : 24), b.p, (int)(a.n < 24 ? a.n : 24), a.p);
        m->doubt = m->n_note;
        return;
    }
}

/* The type of what is not quantised. Without it Hugging Face takes what the weights are in, which config.json does not say. */
static cdmpp_status read_base(const cd_json *o, const cd_json *root, cd_serving_model *m, cdmpp_err *err) {
    const cd_json *const of[N_TYPED] = {root, root, o, o};
    const char *const *key = typed_key;
    size_t k = 0;
    m->base = CD_LLM_OP_T_BF16;
    while (k < N_TYPED && !there(of[k], key[k])) k++;
    if (k < N_TYPED) check_typed(of, k, root, m);
    if (k == N_TYPED) return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "expected this field, or dtype: say with --dtype what the parts are in that are not quantised"), "torch_dtype");
    if (is_word(of[k], key[k], "float16")) m->base = CD_LLM_OP_T_F16;
    else if (is_word(of[k], key[k], "float32")) note(m, "%s is float32: it is served in bfloat16, as libraries do", key[k]);
    else if (!is_word(of[k], key[k], "bfloat16")) return cd_err_key(err, CD_FAIL(err, EUNSUPPORTED, "expected bfloat16, float16 or float32: say the type with --dtype"), key[k]);
    m->base_known = true;
    return CDMPP_OK;
}

cdmpp_status cd_serving_read_types(const cd_json *o, const cd_json *root, cd_serving_model *m, cdmpp_err *err) {
    const cd_json *in = cd_serving_with(o, root, "quantization_config"), *q = there(in, "quantization_config") ? cd_json_get(in, "quantization_config") : NULL;
    if (q && q->kind != CD_JSON_OBJ) return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected an object, found %s", cd_json_kind_name(q->kind)), "quantization_config");
    cdmpp_err why = {0};
    cdmpp_status st = read_base(o, root, m, &why);
    if (st == CDMPP_EUNSUPPORTED && q && is_word(q, "quant_method", "mxfp4") && !any_type(o, root)) { /* gpt-oss as it is published */
        note(m, "torch_dtype is not there: bfloat16 is taken, as Hugging Face does for experts in MXFP4");
        st = CDMPP_OK, m->base_known = true;
    }
    if (st && err) *err = why;
    m->linear = m->expert = m->attention = m->shared = m->recurrent = m->base;
    m->kv = -1;
    if (st && st != CDMPP_EUNSUPPORTED) return st;
    if (st) note(m, "torch_dtype is not there, or names a type that no operator has: bfloat16 is taken for everything that --dtype does not name");
    const cdmpp_status other = q ? cd_err_key(err, quantised(q, m, err), "quantization_config") : CDMPP_OK;
    return other ? other : st;
}
