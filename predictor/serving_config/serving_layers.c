/* What kind each layer of a config.json is: attention to all tokens or to a window of them, a
 * state, or one part of a layer alone. */
#include <math.h>
#include <string.h>

#include "predictor/serving_config/serving_read.h"

#define need  cd_serving_need
#define maybe cd_serving_maybe
#define there cd_serving_there
#define note  cd_serving_note

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
    note(m, "attention_chunk_size: a chunk is taken for a window of as many tokens");
    if (listed) return CDMPP_OK;
    if (list && list->kind == CD_JSON_ARR && list->n)
        return count_numbers(o, "no_rope_layers", 1, m->layers, &m->window_layers, err);
    note(m, "no_rope_layers is not there: 3 of 4 layers have chunks, as Hugging Face does");
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
        note(m,
             "layer_types is not there: every second layer has the window, as Hugging Face does");
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
