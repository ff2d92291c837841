/* config.json of small models, written by tests, and what is said of them. */
#ifndef MADE_CONFIG_H
#define MADE_CONFIG_H
#include "check.h"
#include "predictor/serving/serving.h"

#define MADE_BF "\"torch_dtype\":\"bfloat16\","
#define MADE_BODY                                                                                  \
    "\"num_hidden_layers\":4,\"hidden_size\":64,\"num_attention_heads\":4,\"num_key_value_"        \
    "heads\":4,\"head_dim\":16,\"vocab_size\":256,\"intermediate_size\":128"
#define MADE_LLAMA "{\"model_type\":\"llama\"," MADE_BF MADE_BODY
/* All but how many experts there are. */
#define MADE_EXPERTS                                                                               \
    "{\"model_type\":\"glm4_moe\"," MADE_BF MADE_BODY                                              \
    ",\"num_experts_per_tok\":2,\"moe_intermediate_size\":32,\"n_shared_experts\":1,\"first_k_"    \
    "dense_replace\":1"
/* Mamba, experts, attention, a feed-forward part. */
#define MADE_HYBRID                                                                                \
    "{\"model_type\":\"nemotron_h\"," MADE_BF MADE_BODY                                            \
    ",\"hybrid_override_pattern\":\"ME*-\",\"mamba_num_heads\":4,\"mamba_head_dim\":8,\"ssm_"      \
    "state_size\":16,\"n_groups\":2,"                                                              \
    "\"conv_kernel\":4,\"n_routed_experts\":8,\"num_experts_per_tok\":2,\"moe_intermediate_"       \
    "size\":32,\"n_shared_experts\":1,\"moe_shared_expert_intermediate_size\":48"

/* The first note with the words, of doubts alone; NULL: there is none. */
static inline const char *made_note(const cd_serving_model *m, const char *words, bool doubt) {
    for (size_t i = 0; i < m->n_note; i++)
        if ((!doubt || m->doubt[i]) && strstr(m->note[i], words)) return m->note[i];
    return NULL;
}

static inline cdmpp_status made_read(const char *text, cd_serving_model *m, cdmpp_err *err) {
    *err = (cdmpp_err){0};
    return cd_serving_model_read("c.json", text, strlen(text), m, err);
}
#endif
