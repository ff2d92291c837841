/* Experts of a config.json: how many, how wide, in which layers. */
#include <math.h>

#include "predictor/serving_config/serving_read.h"

#define need  cd_serving_need
#define maybe cd_serving_maybe
#define there cd_serving_there
#define note  cd_serving_note

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
    else if (cd_serving_get(o, f->shared)) note(m, "%s is null: no shared expert", f->shared);
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
        note(m,
             "moe_latent_size: routed experts take %g columns in place of %g, with a product "
             "before them and one behind them",
             m->latent_in, m->hidden);
    m->skew = f->skew;
    if (f->mix != CD_SERVING_SINGLE) CD_TRY(read_dense_layers(o, f, m, err));
    return m->dense_layers > 0
               ? need(o, f->dense_ffn ? f->dense_ffn : "intermediate_size", &m->ffn, err)
               : CDMPP_OK;
}
