/* Fields of a config.json: numbers, words, defaults that are told. */
#include "predictor/serving_config/serving_read.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Names that one fact has in the files of several programs: attribute_map of Hugging Face's
 * classes, and what those write that came before them. */

enum { MOST = 7 };
static const char *const fact[][MOST] = {
    {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts",
     "num_routed_experts"},
    {"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_top_k",
     "moe_k", "top_k_experts"},
    {"n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"},
    {"moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size"},
    {"first_k_dense_replace", "num_dense_layers"},
    {"num_hidden_layers", "num_layers", "n_layers", "n_layer"},
    {"hidden_size", "d_model", "n_embd"},
    {"num_attention_heads", "num_heads", "n_heads", "n_head"},
    {"num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_head_kv", "num_attention_groups"},
    {"head_dim", "attention_head_dim", "kv_channels"},
    {"intermediate_size", "ffn_hidden_size", "n_inner"},
    {"ssm_state_size", "mamba_d_state"},
    {"mamba_num_heads", "mamba_n_heads"},
    {"mamba_head_dim", "mamba_d_head"},
    {"n_groups", "mamba_n_groups"},
    {"conv_kernel", "mamba_d_conv"},
    {"sliding_window_pattern", "layer_switch"},
    /* of quantization_config, and of the files that stand for it: each program has its own names,
     * so nobody is told */
    {"quantization_config", "compression_config"},
    {"bits", "w_bit"},
    {"group_size", "q_group_size"},
    {"ignore", "modules_to_not_convert", "ignored_layers", "exclude_modules"},
};

/* Whether another name of it is worth a note. */
static bool serving_spelled_told(const char *key) {
    static const char *const own[] = {"quantization_config", "bits", "group_size", "ignore"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(own[i], key)) return false;
    return true;
}

const char *cd_serving_spelled(const char *key, size_t i) {
    for (size_t k = 0; k < sizeof fact / sizeof *fact; k++)
        for (size_t own = 0; own < MOST && fact[k][own]; own++) {
            if (strcmp(fact[k][own], key) != 0) continue;
            const size_t at = i < own ? i : i + 1;
            return at < MOST ? fact[k][at] : NULL;
        }
    return NULL;
}

cdmpp_status cd_serving_fields_of(cd_arena *a, const cd_json *o, cd_serving_model *m,
                                  cd_serving_fields *out, cdmpp_err *err) {
    *out =
        (cd_serving_fields){.o = o,
                            .a = a,
                            .m = m,
                            .asked = cd_arena_zalloc(a, o && o->kind == CD_JSON_OBJ ? o->n + 1 : 1,
                                                     sizeof *out->asked)};
    return out->asked ? CDMPP_OK : CD_FAIL(err, ENOMEM, "fields");
}

/* ---- one fact, several names ---- */
/* True: for the first time. */
static bool ask(cd_serving_fields *f, const cd_json *v) {
    size_t i = 0;
    if (!v) return false;
    for (const cd_json *c = f->o->u.child; c != v; c = c->next) i++;
    const bool first = !f->asked[i];
    f->asked[i] = true;
    return first;
}

static bool is_null(const cd_json *v) { return !v || v->kind == CD_JSON_NULL; }

/* Both are numbers, and not the same. */
static bool differ(const cd_json *a, const cd_json *b) {
    double x, y;
    return !cd_json_real(a, &x, NULL) && !cd_json_real(b, &y, NULL) && fabs(x - y) > 0;
}

static void contradicts(cd_serving_fields *f, const char *name, const cd_json *v, const char *key,
                        const cd_json *own) {
    double x = 0, y = 0;
    if (f->unlike.code || !differ(own, v)) return;
    (void)cd_json_real(own, &x, NULL), (void)cd_json_real(v, &y, NULL);
    (void)cd_err_key(&f->unlike,
                     CD_FAIL(&f->unlike, ERANGE,
                             "expected %g, as %s, which says the same, is; found %g", x, key, y),
                     name);
}

/* The name that the fact has in this file: its own, or another one where its own is not there. */
static const char *name_of(cd_serving_fields *f, const char *key) {
    const char *name = key, *other;
    const cd_json *own = cd_json_get(f->o, key);
    (void)ask(f, own);
    for (size_t i = 0; (other = cd_serving_spelled(key, i)); i++) {
        const cd_json *v = cd_json_get(f->o, other);
        if (!v || cd_serving_is_plain(v)) continue;
        const bool first = ask(f, v);
        if (!is_null(own)) {
            contradicts(f, other, v, name, own);
            continue;
        }
        if (first && serving_spelled_told(key))
            cd_serving_note(f->m, "%s is not there: it is called %s here", key, other);
        name = other, own = v;
    }
    return name;
}

const cd_json *cd_serving_get(cd_serving_fields *f, const char *key) {
    return cd_json_get(f->o, name_of(f, key));
}

void cd_serving_pass_all(cd_serving_fields *f, const char *const *key, size_t n) {
    for (size_t i = 0; i < n; i++) (void)name_of(f, key[i]);
}

bool cd_serving_is_plain(const cd_json *v) {
    double x;
    if (is_null(v)) return true;
    if (v->kind == CD_JSON_BOOL) return !v->u.i;
    if (v->kind == CD_JSON_ARR || v->kind == CD_JSON_OBJ) return !v->n;
    return !cd_json_real(v, &x, NULL) && x <= 1;
}

/* ---- numbers and words ---- */
static cdmpp_status whole(double v, const char *key, cdmpp_err *err) {
    if (v >= 0 && v <= CD_SERVING_MOST && floor(v) >= v) return CDMPP_OK;
    return cd_err_key(
        err, CD_FAIL(err, ERANGE, "expected a whole number from 0 to 1e9, found %g", v), key);
}

cdmpp_status cd_serving_need(cd_serving_fields *f, const char *key, double *out, cdmpp_err *err) {
    const char *name = name_of(f, key);
    CD_TRY(cd_json_need_real(f->o, name, 1, CD_SERVING_MOST, out, err));
    return whole(*out, name, err);
}

cdmpp_status cd_serving_maybe(cd_serving_fields *f, const char *key, double *out, cdmpp_err *err) {
    const char *name = name_of(f, key);
    const cd_json *v = cd_json_get(f->o, name);
    if (is_null(v)) return CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_json_real(v, out, err), name));
    return whole(*out, name, err);
}

bool cd_serving_there(cd_serving_fields *f, const char *key) {
    return !is_null(cd_serving_get(f, key));
}

cdmpp_status cd_serving_or_default(cd_serving_fields *f, const char *key, double usual,
                                   const char *as, double *out, cdmpp_err *err) {
    if (cd_serving_there(f, key)) return cd_serving_need(f, key, out, err);
    *out = usual;
    cd_serving_note(f->m, "%s is %s: %g%s%s is taken, as Hugging Face does", key,
                    cd_json_get(f->o, key) ? "null" : "not there", usual, as ? ", " : "",
                    as ? as : "");
    return CDMPP_OK;
}

bool cd_serving_is_true(cd_serving_fields *f, const char *key) {
    const cd_json *v = cd_serving_get(f, key);
    return v && v->kind == CD_JSON_BOOL && v->u.i;
}

/* ---- notes ---- */
/* The last place is kept for the news that there are more. */
static void note(cd_serving_model *m, bool doubt, const char *fmt, va_list ap) {
    if (m->n_note == CD_SERVING_NOTES) return;
    m->doubt[m->n_note] = doubt;
    if (m->n_note + 1 < CD_SERVING_NOTES)
        (void)vsnprintf(m->note[m->n_note++], sizeof m->note[0], fmt, ap);
    else
        snprintf(m->note[m->n_note++], sizeof m->note[0],
                 "there is more to say of this file than there is room for");
}

void cd_serving_note(cd_serving_model *m, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    note(m, false, fmt, ap);
    va_end(ap);
}

void cd_serving_doubt(cd_serving_model *m, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    note(m, true, fmt, ap);
    va_end(ap);
}

/* Experts of a config.json: how many, how wide, in which layers. */

#define need         cd_serving_need
#define maybe        cd_serving_maybe
#define there        cd_serving_there
#define note_experts cd_serving_note

/* A list of layers: sets on[i] of those that it names. */
static cdmpp_status read_list(cd_serving_fields *o, const char *key, double layers, bool *on,
                              cdmpp_err *err) {
    const cd_json *list = cd_serving_get(o, key);
    size_t i = 0;
    if (!list || list->kind == CD_JSON_NULL) return CDMPP_OK;
    if (list->kind != CD_JSON_ARR)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected a list of layers"), key);
    for (const cd_json *v = list->u.child; v; v = v->next, i++) {
        double k = 0;
        cdmpp_status st = cd_json_real(v, &k, err);
        if (!st && !(k >= 0 && k < layers && floor(k) >= k))
            st = CD_FAIL(err, ERANGE,
                         "expected a layer of the %g of num_hidden_layers, from 0, found %g",
                         layers, k);
        if (st) return cd_err_key(err, cd_err_index(err, st, i), key);
        on[(size_t)k] = true;
    }
    return CDMPP_OK;
}

/* mlp_layer_types: a word for each layer, in place of all other fields. */
static cdmpp_status read_words(cd_serving_fields *o, cd_serving_model *m, cdmpp_err *err) {
    static const char key[] = "mlp_layer_types";
    const cd_json *list = cd_serving_get(o, key);
    size_t i = 0;
    m->dense_layers = 0;
    if (list->kind != CD_JSON_ARR || fabs((double)list->n - m->layers) > 0)
        return cd_err_key(
            err,
            CD_FAIL(err, ERANGE, "expected a list with one for each of the %g of num_hidden_layers",
                    m->layers),
            key);
    for (const cd_json *v = list->u.child; v; v = v->next, i++) {
        const cd_str s = v->kind == CD_JSON_STR ? v->u.s : (cd_str){"", 0};
        if (!cd_str_is(s, "dense") && !cd_str_is(s, "sparse"))
            return cd_err_key(
                err, cd_err_index(err, CD_FAIL(err, EUNSUPPORTED, "expected dense or sparse"), i),
                key);
        m->dense_layers += cd_str_is(s, "dense");
    }
    m->sparse_layers = m->layers - m->dense_layers;
    return CDMPP_OK;
}

/* moe_layer_end_index: the last layer with experts; below 0: the last of all. */
static cdmpp_status read_last(cd_serving_fields *o, double layers, double *last, cdmpp_err *err) {
    static const char key[] = "moe_layer_end_index";
    double v = -1;
    if (there(o, key)) CD_TRY(cd_err_key(err, cd_json_real(cd_serving_get(o, key), &v, err), key));
    if (v >= layers || floor(v) < v)
        return cd_err_key(
            err,
            CD_FAIL(err, ERANGE,
                    "expected a layer of the %g of num_hidden_layers, from 0, found %g", layers, v),
            key);
    if (v >= 0) *last = v;
    return CDMPP_OK;
}

/* A layer has experts where none of the fields makes it dense: as Hugging Face has it, one by
 * one. */
static cdmpp_status read_dense_layers(cd_serving_fields *o, const cd_serving_family *f,
                                      cd_serving_model *m, cdmpp_err *err) {
    bool dense[CD_SERVING_MAX_LAYER] = {false}, sparse[CD_SERVING_MAX_LAYER] = {false};
    double first = 0, step = 1, last = m->layers - 1;
    const bool named = there(o, "moe_layers");
    if (there(o, "mlp_layer_types")) {
        if (f->first) cd_serving_pass(o, f->first);
        if (f->every) cd_serving_pass(o, f->every);
        return read_words(o, m, err);
    }
    CD_TRY(read_list(o, "moe_layers", m->layers, sparse, err));
    if (f->first) {
        if (!there(o, f->first))
            return cd_err_key(
                err, CD_FAIL(err, ESCHEMA, "expected how many of the first layers have no experts"),
                f->first);
        CD_TRY(maybe(o, f->first, &first, err));
        if (first > m->layers)
            return cd_err_key(err,
                              CD_FAIL(err, ERANGE,
                                      "expected at most the %g of num_hidden_layers, found %g",
                                      m->layers, first),
                              f->first);
    } else {
        CD_TRY(read_list(o, "mlp_only_layers", m->layers, dense, err));
    }
    if (f->every) CD_TRY(maybe(o, f->every, &step, err));
    CD_TRY(read_last(o, m->layers, &last, err));
    if (step < 1) return cd_err_key(err, CD_FAIL(err, ERANGE, "expected 1 or more"), f->every);
    m->dense_layers = 0;
    for (size_t i = 0; (double)i < m->layers; i++)
        m->dense_layers += named ? !sparse[i]
                                 : (double)i < first || (double)i > last || dense[i] ||
                                       fmod((double)(f->latent ? i : i + 1), step) > 0;
    m->sparse_layers = m->layers - m->dense_layers;
    return CDMPP_OK;
}

/* A token takes experts of some groups alone: times do not depend on it, but a count that does not
 * divide is of no model. */
static cdmpp_status check_groups(cd_serving_fields *o, const cd_serving_model *m, cdmpp_err *err) {
    double groups = 1, taken = 0;
    CD_TRY(maybe(o, "n_group", &groups, err));
    CD_TRY(maybe(o, "topk_group", &taken, err));
    if (groups < 1 || fmod(m->experts, groups) > 0)
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE,
                                  "expected a divisor of n_routed_experts %g, found %g", m->experts,
                                  groups),
                          "n_group");
    if (taken <= groups || !there(o, "n_group")) return CDMPP_OK;
    return cd_err_key(
        err, CD_FAIL(err, ERANGE, "expected at most the %g of n_group, found %g", groups, taken),
        "topk_group");
}

static cdmpp_status read_shared(cd_serving_fields *o, const cd_serving_family *f,
                                cd_serving_model *m, cdmpp_err *err) {
    double each = m->expert_ffn;
    if (!f->shared) return CDMPP_OK;
    if (there(o, f->shared)) CD_TRY(maybe(o, f->shared, &m->shared_ffn, err)); /* 0: none */
    else if (cd_serving_get(o, f->shared))
        note_experts(m, "%s is null: no shared expert", f->shared);
    else CD_TRY(cd_serving_or_default(o, f->shared, f->shared_is, NULL, &m->shared_ffn, err));
    if (f->mix == CD_SERVING_SINGLE)
        CD_TRY(maybe(o, "moe_shared_expert_intermediate_size", &each, err));
    if (f->shared_count) m->shared_ffn *= each;
    return CDMPP_OK;
}

/* A file with 0 experts is of a dense model, where the family has such. */
static cdmpp_status none(cd_serving_fields *o, const cd_serving_family *f, cd_serving_model *m,
                         cdmpp_err *err) {
    m->experts = 0, m->sparse_layers = 0, m->dense_layers = m->layers;
    return need(o, f->shared, &m->ffn, err);
}

cdmpp_status cd_serving_read_experts(cd_serving_fields *o, const cd_serving_family *f,
                                     cd_serving_model *m, cdmpp_err *err) {
    static const char topk[] = "num_experts_per_tok";
    if (f->as_dense) {
        CD_TRY(maybe(o, f->experts, &m->experts, err));
        if (!(m->experts > 0)) return none(o, f, m, err);
    }
    CD_TRY(need(o, f->experts, &m->experts, err));
    CD_TRY(need(o, topk, &m->topk, err));
    CD_TRY(need(o, f->expert_ffn, &m->expert_ffn, err));
    if (m->topk > m->experts)
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE, "expected at most the %g of %s, found %g",
                                  m->experts, f->experts, m->topk),
                          topk);
    if (f->first) CD_TRY(check_groups(o, m, err));
    CD_TRY(read_shared(o, f, m, err));
    CD_TRY(maybe(o, "moe_latent_size", &m->latent_in, err));
    if (m->latent_in > 0)
        note_experts(
            m,
            "moe_latent_size: routed experts take %g columns in place of %g, with a product "
            "before them and one behind them",
            m->latent_in, m->hidden);
    m->skew = f->skew;
    if (f->mix != CD_SERVING_SINGLE) CD_TRY(read_dense_layers(o, f, m, err));
    return m->dense_layers > 0
               ? need(o, f->dense_ffn ? f->dense_ffn : "intermediate_size", &m->ffn, err)
               : CDMPP_OK;
}

/* What kind each layer of a config.json is: attention to all tokens or to a window of them, a
 * state, or one part of a layer alone. */

#define note_layers cd_serving_note

/* ---- lists with a word for each layer ---- */
static bool one_of(cd_str s, const char *a, const char *b) {
    return cd_str_is(s, a) || cd_str_is(s, b);
}

/* layer_types: how many layers see a window, how many keep a state. */
static cdmpp_status read_layer_types(const cd_json *types, const cd_serving_family *f,
                                     cd_serving_model *m, cdmpp_err *err) {
    const bool states = f->mix != CD_SERVING_ALIKE;
    size_t i = 0;
    if (types->kind != CD_JSON_ARR)
        return cd_err_key(
            err, CD_FAIL(err, ESCHEMA, "expected a list, found %s", cd_json_kind_name(types->kind)),
            "layer_types");
    if (fabs((double)types->n - m->layers) > 0)
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE,
                                  "expected one for each of the %g of num_hidden_layers, found %u",
                                  m->layers, types->n),
                          "layer_types");
    for (const cd_json *t = types->u.child; t; t = t->next, i++) {
        const cd_str s = t->kind == CD_JSON_STR ? t->u.s : (cd_str){"", 0};
        const bool some = one_of(s, "sliding_attention", "chunked_attention"),
                   state = states && one_of(s, "linear_attention", "mamba");
        m->window_layers += some, m->state.layers += state;
        if (!some && !state &&
            !one_of(s, "full_attention", states ? "attention" : "full_attention"))
            return cd_err_key(err,
                              cd_err_index(err,
                                           CD_FAIL(err, EUNSUPPORTED,
                                                   "expected full_attention or sliding_attention%s",
                                                   states ? ", linear_attention or mamba" : ""),
                                           i),
                              "layer_types");
    }
    return CDMPP_OK;
}

/* A list of numbers, of which those that are `of` count; they begin again where the list is shorter
 * than the layers. */
static cdmpp_status count_numbers(cd_serving_fields *o, const char *key, double of, double layers,
                                  double *out, cdmpp_err *err) {
    const cd_json *list = cd_serving_get(o, key);
    if (list->kind != CD_JSON_ARR || fabs((double)list->n - layers) > 0)
        return cd_err_key(
            err,
            CD_FAIL(err, ERANGE, "expected a list with one for each of the %g of num_hidden_layers",
                    layers),
            key);
    for (const cd_json *v = list->u.child; v; v = v->next) {
        double x;
        CD_TRY(cd_err_key(err, cd_json_real(v, &x, err), key));
        *out += !(fabs(x - of) > 0);
    }
    return CDMPP_OK;
}

/* ---- windows ---- */
/* Each so-many-th layer has no window. "LLLG" names the kinds of as many layers. */
static cdmpp_status read_full(cd_serving_fields *o, const cd_serving_family *f, double *each,
                              cdmpp_err *err) {
    const cd_json *v = cd_serving_get(o, "sliding_window_pattern");
    const char *key = "sliding_window_pattern";
    if (v && v->kind == CD_JSON_STR && cd_str_is(v->u.s, "LLLG")) return *each = 4, CDMPP_OK;
    if (v && v->kind != CD_JSON_NULL) return need(o, key, each, err);
    return cd_serving_or_default(o, key, f->full, NULL, each, err);
}

/* Attention in chunks of so many tokens: layers with 1 in no_rope_layers. */
static cdmpp_status read_chunks(cd_serving_fields *o, bool listed, cd_serving_model *m,
                                cdmpp_err *err) {
    const cd_json *list = cd_serving_get(o, "no_rope_layers");
    CD_TRY(maybe(o, "attention_chunk_size", &m->window, err));
    if (!(m->window > 0)) return m->window_layers = 0, CDMPP_OK;
    note_layers(m, "attention_chunk_size: a chunk is taken for a window of as many tokens");
    if (listed) return CDMPP_OK;
    if (list && list->kind == CD_JSON_ARR && list->n)
        return count_numbers(o, "no_rope_layers", 1, m->layers, &m->window_layers, err);
    note_layers(m, "no_rope_layers is not there: 3 of 4 layers have chunks, as Hugging Face does");
    m->window_layers = m->layers - floor(m->layers / 4);
    return CDMPP_OK;
}

/* Which layers see a window only: layer_types, or from max_window_layers on, or every second, or
 * all but each so-many-th. */
static cdmpp_status read_window(cd_serving_fields *o, const cd_serving_family *f, bool listed,
                                cd_serving_model *m, cdmpp_err *err) {
    double from = 0, each = 0;
    const bool usual = f->window > 0 && !cd_serving_get(o, "sliding_window");
    if (f->chunks) return read_chunks(o, listed, m, err);
    cd_serving_pass(o, "sliding_window", "max_window_layers", "sliding_window_pattern");
    if (listed ? !(m->window_layers > 0)
               : f->window_said && !cd_serving_is_true(o, "use_sliding_window"))
        return CDMPP_OK;
    CD_TRY(usual ? cd_serving_or_default(o, "sliding_window", f->window, NULL, &m->window, err)
                 : maybe(o, "sliding_window", &m->window, err));
    if (listed)
        return m->window > 0
                   ? CDMPP_OK
                   : cd_err_key(err,
                                CD_FAIL(err, ESCHEMA,
                                        "expected the window of the layers that layer_types names"),
                                "sliding_window");
    if (!(m->window > 0)) return CDMPP_OK;
    if (f->window_said)
        CD_TRY(there(o, "max_window_layers")
                   ? maybe(o, "max_window_layers", &from, err)
                   : cd_serving_or_default(o, "max_window_layers", 28, NULL, &from, err));
    if (f->full > 0) CD_TRY(read_full(o, f, &each, err));
    m->window_layers = each > 0          ? m->layers - floor(m->layers / each)
                       : f->every_second ? ceil(m->layers / 2)
                                         : fmax(0, m->layers - from);
    if (f->every_second)
        note_layers(
            m, "layer_types is not there: every second layer has the window, as Hugging Face does");
    return CDMPP_OK;
}

/* ---- states ---- */
static cdmpp_status read_delta(cd_serving_fields *o, cd_serving_model *m, cdmpp_err *err) {
    cd_serving_state *s = &m->state;
    double keys, taps;
    const struct {
        const char *key;
        double *to;
    } f[] = {{"linear_num_key_heads", &keys},
             {"linear_num_value_heads", &s->heads},
             {"linear_key_head_dim", &s->key},
             {"linear_value_head_dim", &s->value},
             {"linear_conv_kernel_dim", &taps}};
    for (size_t i = 0; i < sizeof f / sizeof *f; i++) CD_TRY(need(o, f[i].key, f[i].to, err));
    s->taps = taps, s->out = s->heads * s->value, s->channels = 2 * keys * s->key + s->out;
    /* queries, keys, values, gates; two numbers for each head */
    s->in = s->channels + s->out, s->narrow = 2 * s->heads;
    return CDMPP_OK;
}

/* The names of its fields differ between models. */
static cdmpp_status read_mamba(cd_serving_fields *o, bool plain, cd_serving_model *m,
                               cdmpp_err *err) {
    cd_serving_state *s = &m->state;
    double groups;
    const struct {
        const char *key, *other;
        double *to;
    } f[] = {{"mamba_num_heads", "mamba_n_heads", &s->heads},
             {"mamba_head_dim", "mamba_d_head", &s->value},
             {"ssm_state_size", "mamba_d_state", &s->key},
             {"n_groups", "mamba_n_groups", &groups},
             {"conv_kernel", "mamba_d_conv", &s->taps}};
    for (size_t i = 0; i < sizeof f / sizeof *f; i++)
        CD_TRY(need(o, plain ? f[i].key : f[i].other, f[i].to, err));
    s->out = s->heads * s->value, s->channels = s->out + 2 * groups * s->key;
    s->in = s->out + s->channels + s->heads;
    return CDMPP_OK;
}

/* hybrid_override_pattern: M, *, -, E; or layers_block_type with words. */
static cdmpp_status read_single(cd_serving_fields *o, cd_serving_model *m, cdmpp_err *err) {
    static const char letter[] = "M*-E", *const word[] = {"mamba", "attention", "mlp", "moe"};
    double *const to[] = {&m->state.layers, &m->attention_layers, &m->dense_layers,
                          &m->sparse_layers};
    const char *key =
        there(o, "hybrid_override_pattern") ? "hybrid_override_pattern" : "layers_block_type";
    const cd_json *v = there(o, key) ? cd_serving_get(o, key) : NULL,
                  *t = v && v->kind == CD_JSON_ARR ? v->u.child : NULL;
    const size_t n = !v ? 0 : v->kind == CD_JSON_STR ? v->u.s.n : v->kind == CD_JSON_ARR ? v->n : 0;
    *to[1] = *to[2] = 0;
    if (!v)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected this field, or layers_block_type"),
                          "hybrid_override_pattern");
    if (fabs((double)n - m->layers) > 0)
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE,
                                  "expected one for each of the %g of num_hidden_layers, found %zu",
                                  m->layers, n),
                          key);
    for (size_t i = 0; i < n; i++, t = t ? t->next : NULL) {
        size_t k = 0;
        while (k < 4 && !(t ? t->kind == CD_JSON_STR && cd_str_is(t->u.s, word[k])
                            : v->u.s.p[i] == letter[k]))
            k++;
        if (k == 4)
            return cd_err_key(
                err,
                cd_err_index(err,
                             CD_FAIL(err, EUNSUPPORTED,
                                     "expected M, *, - or E (mamba, attention, mlp, moe)"),
                             i),
                key);
        ++*to[k];
    }
    return CDMPP_OK;
}

/* Without layer_types each so-many-th layer has attention. */
static cdmpp_status read_interval(cd_serving_fields *o, cd_serving_model *m, cdmpp_err *err) {
    double each;
    CD_TRY(cd_serving_or_default(o, "full_attention_interval", 4, NULL, &each, err));
    m->state.layers = m->layers - floor(m->layers / each);
    return CDMPP_OK;
}

/* MiniMax: states of head x head, and a gate. */
static void lightning(cd_serving_model *m) {
    cd_serving_state *s = &m->state;
    s->heads = m->heads, s->key = s->value = m->head_dim;
    s->out = m->heads * m->head_dim, s->in = 4 * s->out;
}

static cdmpp_status read_states(cd_serving_fields *o, const cd_serving_family *f, bool listed,
                                cd_serving_model *m, cdmpp_err *err) {
    if (f->mix == CD_SERVING_SINGLE) CD_TRY(read_single(o, m, err));
    if (f->mix == CD_SERVING_DELTA && !listed) CD_TRY(read_interval(o, m, err));
    if (f->mix == CD_SERVING_LIGHTNING && !listed) {
        if (!there(o, "attn_type_list"))
            return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected this field, or layer_types"),
                              "attn_type_list");
        CD_TRY(count_numbers(o, "attn_type_list", 0, m->layers, &m->state.layers, err));
    }
    if (f->mix == CD_SERVING_MAMBA && !listed)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected this field"), "layer_types");
    if (f->mix != CD_SERVING_SINGLE) m->attention_layers = m->layers - m->state.layers;
    if (!(m->state.layers > 0))
        return cd_serving_pass(o, "mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups",
                               "conv_kernel"),
               CDMPP_OK;
    if (f->mix == CD_SERVING_DELTA) return read_delta(o, m, err);
    if (f->mix == CD_SERVING_LIGHTNING) return lightning(m), CDMPP_OK;
    return read_mamba(o, f->mix == CD_SERVING_SINGLE, m, err);
}

cdmpp_status cd_serving_read_layers(cd_serving_fields *o, const cd_serving_family *f,
                                    cd_serving_model *m, cdmpp_err *err) {
    const bool listed = there(o, "layer_types");
    m->attention_layers = m->dense_layers = m->layers;
    if (listed && f->mix != CD_SERVING_SINGLE)
        CD_TRY(read_layer_types(cd_serving_get(o, "layer_types"), f, m, err));
    if (f->mix != CD_SERVING_ALIKE) return read_states(o, f, listed, m, err);
    return f->latent ? CDMPP_OK : read_window(o, f, listed, m, err);
}
