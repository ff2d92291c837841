/* What one GPU holds of a model: does it divide, does it fit. */
#include <math.h>

#include "predictor/serving/serving.h"

static cdmpp_status divides(double what, double by, const char *field, const char *key,
                            cdmpp_err *err) {
    if (by >= 1 && !(fmod(what, by) > 0)) return CDMPP_OK;
    return cd_err_key(
        err, CD_FAIL(err, ERANGE, "expected a divisor of %s %g, found %g", field, what, by), key);
}

/* A group of GPUs with collectives over all of them. */
static cdmpp_status nodes(const cd_serving_layout *l, double group, const char *key,
                          cdmpp_err *err) {
    if (!(l->node > 0) || group <= l->node || (!(fmod(group, l->node) > 0) && l->node_bytes_s > 0))
        return CDMPP_OK;
    if (fmod(group, l->node) > 0)
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE,
                                  "expected a multiple of the %g GPUs of a node, found %s = %g",
                                  l->node, key, group),
                          key);
    return cd_err_key(
        err,
        CD_FAIL(
            err, ERANGE,
            "%g GPUs are more than the %g of a node: expected the rate between nodes, --node-gbs",
            group, l->node),
        key);
}

cdmpp_status cd_serving_layout_check(const cd_serving_model *m, cd_serving_layout *l,
                                     cdmpp_err *err) {
    if (l->pp > m->layers)
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE, "expected at most num_hidden_layers %g, found %g",
                                  m->layers, l->pp),
                          "pp");
    CD_TRY(divides(m->heads, l->tp, "num_attention_heads", "tp", err));
    if (m->state.layers > 0)
        CD_TRY(divides(m->state.heads, l->tp, "the heads of states", "tp", err));
    if (!m->latent && fmod(l->tp, m->kv_heads) > 0)
        CD_TRY(divides(m->kv_heads, l->tp, "num_key_value_heads (or a multiple of it)", "tp", err));
    if (m->ffn > 0) CD_TRY(divides(m->ffn, l->tp, "intermediate_size", "tp", err));
    CD_TRY(nodes(l, l->tp, "tp", err));
    CD_TRY(nodes(l, l->tp * l->dp, "tp x dp", err));
    if (l->node > 0 && l->tp * l->dp * l->pp > l->node && !(l->node_bytes_s > 0))
        return cd_err_key(
            err,
            CD_FAIL(err, ERANGE,
                    "expected the rate between nodes of %g GPUs, found tp x dp x pp = %g", l->node,
                    l->tp * l->dp * l->pp),
            "tp x dp x pp");
    if (!(m->experts > 0)) {
        if (l->moe_ep > 1)
            return cd_err_key(err,
                              CD_FAIL(err, ERANGE,
                                      "expected 1, as the model has no experts; found %g",
                                      l->moe_ep),
                              "ep");
        l->moe_ep = 1, l->moe_tp = l->tp * l->dp;
        return CDMPP_OK;
    }
    CD_TRY(divides(m->experts, l->moe_ep, "the number of experts", "ep", err));
    CD_TRY(divides(l->tp * l->dp, l->moe_ep, "tp x dp =", "ep", err));
    l->moe_tp = l->tp * l->dp / l->moe_ep;
    return divides(m->expert_ffn, l->moe_tp, "the experts' width", "tp x dp / ep", err);
}

/* ---- memory ---- */
static double weight_bytes(const cd_serving_model *m, const cd_serving_layout *l) {
    const cd_serving_weights w = cd_serving_weights_of(m, l->tp);
    /* of several stages the first has one, the last the other */
    const double table = 2 * m->vocab * m->hidden / l->tp * (m->tied || l->pp > 1 ? 1 : 2);
    const double attention =
        m->attention_layers * (w.attention + w.index) * cd_serving_weight_each(m, l->project);
    const double states = m->state.layers * w.state * cd_serving_weight_each(m, l->recurrent),
                 dense = m->dense_layers * w.dense * cd_serving_weight_each(m, l->linear);
    const double shared = (w.shared + w.latent) * cd_serving_weight_each(m, l->shared),
                 experts =
                     w.experts / (l->moe_tp * l->moe_ep) * cd_serving_weight_each(m, l->expert);
    const double layers =
        attention + states + dense + m->sparse_layers * (shared + 2 * w.router + experts);
    return layers / l->pp + table;
}

/* Layers with a window keep no more than the window: of a sequence of `length` that part of each
 * token. States are of a sequence: each of its tokens has a part. */
static double token_bytes(const cd_serving_model *m, const cd_serving_layout *l, double length) {
    const double part = m->window_layers > 0 ? fmin(1, m->window / length) : 1,
                 layers = m->attention_layers - (1 - part) * m->window_layers;
    const double one =
                     m->latent ? m->kv_rank + m->rope : 2 * ceil(m->kv_heads / l->tp) * m->head_dim,
                 index = m->index_topk > 0 ? m->index_dim + 4 : 0;
    const double states =
                     m->state.layers * cd_serving_state_bytes(&m->state) / l->tp / l->pp / length,
                 keys = one * cd_llm_op_type_weight_bytes(l->kv) + index;
    return (layers > 0 ? fmax(layers / l->pp, 1) * keys : 0) + states;
}

/* Between layers one row in and out; inside one the widest results; the next token's scores. */
static double activation_bytes(const cd_serving_model *m, const cd_serving_layout *l,
                               double tokens) {
    const double state = m->state.in / l->tp,
                 heads = m->latent ? m->heads * (m->nope + m->rope + m->v_dim)
                                   : (m->gates * m->heads + 2 * m->kv_heads) * m->head_dim;
    const double wide = m->experts > 0 ? 3 * m->topk * m->expert_ffn / l->moe_tp +
                                             m->topk * cd_serving_experts_in(m)
                                       : 3 * m->ffn / l->tp;
    return 2 * tokens * (4 * m->hidden + fmax(fmax(heads / l->tp, wide), state));
}

/* Descriptions and data sheets count memory in GiB. */
#define GIB 1073741824.0

/* reserve_gb is of a card with so many GiB: graphs and workspaces are fewer on a smaller one, as
 * libraries choose smaller batches there. */
#define RESERVE_OF 80.0

/* What is left for the cache. */
static double cache_bytes(const cd_serving_memory *m, const cd_serving_stack *s, double all) {
    const double others = m->weights + m->activations + m->reserve;
    switch ((cd_serving_share)s->share_of) {
    case CD_SERVING_OF_LEFT: return s->memory_share * (all - others);
    case CD_SERVING_OF_STATIC: return fmin(s->memory_share * all - m->weights, all - others);
    case CD_SERVING_OF_ALL: break;
    }
    return s->memory_share * all - others;
}

cdmpp_status cd_serving_memory_of(const cd_serving_model *m, const cd_serving_layout *l,
                                  const cd_serving_stack *s, const cd_device *d, double step_tokens,
                                  double length, double longest, cd_serving_memory *out,
                                  cdmpp_err *err) {
    if (!(d->mem_gb > 0))
        return cd_llm_op_machine_lacks(d, "mem_gb", CD_DEVICE_UNKNOWN, "memory",
                                       l->base == CD_LLM_OP_T_F16 ? "tensor_tflops" : "bf16_tflops",
                                       err);
    *out = (cd_serving_memory){weight_bytes(m, l),
                               token_bytes(m, l, length),
                               activation_bytes(m, l, step_tokens),
                               s->reserve_gb * 1e9 * fmin(1, d->mem_gb / RESERVE_OF),
                               0,
                               0};
    const double room = cache_bytes(out, s, d->mem_gb * GIB);
    out->limit = out->weights + out->activations + out->reserve + room;
    out->tokens = floor(fmax(room, 0) / out->token);
    if (floor(out->tokens / l->pp) >= longest) return CDMPP_OK;
    /* of the batches on their way through the stages each has its part of the cache */
    const double least = out->token * longest * l->pp;
    return cd_err_key(
        err,
        CD_FAIL(err, ERANGE,
                "weights %.2f GB + activations %.2f GB + reserve %.2f GB + cache of one sequence%s "
                "%.3f GB are %.2f GB; a GPU %s lends %.2f GB (%g of %s %g GiB)",
                out->weights * 1e-9, out->activations * 1e-9, out->reserve * 1e-9,
                l->pp > 1 ? " of each batch" : "", least * 1e-9,
                (out->weights + out->activations + out->reserve + least) * 1e-9, d->name,
                out->limit * 1e-9, s->memory_share,
                s->share_of == CD_SERVING_OF_LEFT ? "what is left of" : "all", d->mem_gb),
        "memory");
}
