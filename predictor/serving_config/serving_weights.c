/* How many weights a model has, and in how many bytes. */
#include <math.h>

#include "predictor/serving_config/serving_config.h"

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
