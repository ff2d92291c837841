/* A model of products on h100 and l40s by hand: trees that say one number, so that each answer can
 * be computed. */
#ifndef MADE_LLM_ANSWERS_H
#define MADE_LLM_ANSWERS_H
#include "check.h"

#include "learner/llm_op/llm_op.h"

#include <math.h>

typedef struct made_llm_answers {
    cd_device_table *devices;
    cd_diag diag;
    cd_llm_op_model *m;
    /* "", vllm-1, trtllm-2, sglang-3, fast, slow, other: their numbers are MADE_... */
    cd_dict names;
    const cd_device *h100, *h200, *l40s, *mi300x;
} made_llm_answers;
enum { MADE_NONE, MADE_VLLM, MADE_TRTLLM, MADE_SGLANG, MADE_FAST, MADE_SLOW, MADE_OTHER };

/* Trees whose score is always this. */
static inline cd_xgb *made_llm_constant(cd_llm_op_set s, float score) {
    enum { ROWS = 4 };
    static const cd_xgb_param p[] = {
        {"eta", "1"},       {"lambda", "0"},  {"min_child_weight", "0"},
        {"max_depth", "1"}, {"nthread", "1"}, {"tree_method", "hist"}};
    static float x[ROWS * CD_LLM_OP_N_FEATURE];
    float grad[ROWS], hess[ROWS];
    cd_xgb_data *data = NULL;
    cd_xgb *g = NULL, *read = NULL;
    cd_buf b = {0};
    cdmpp_err err = {0};
    for (size_t i = 0; i < ROWS; i++) grad[i] = -score, hess[i] = 1;
    assert_ok(cd_xgb_data_new(x, ROWS, cd_llm_op_feature_width(s), 1, &data, &err));
    assert_ok(cd_xgb_new(data, NULL, p, sizeof p / sizeof *p, &g, &err));
    assert_ok(cd_xgb_boost(g, data, grad, hess, &err));
    assert_ok(cd_xgb_save(g, &b, &err));
    assert_ok(cd_xgb_load(b.p, b.n, cd_llm_op_feature_width(s), &read, &err));
    cd_buf_free(&b);
    cd_xgb_free(g);
    cd_xgb_data_free(data);
    return read;
}

static inline const cd_device *made_llm_device(const made_llm_answers *f, const char *name) {
    const cd_device *d;
    cdmpp_err err = {0};
    assert_ok(cd_device_table_find(f->devices, name, &d, &err));
    return d;
}

static inline void made_llm_name(cd_dict *d, const char *name) {
    uint32_t k;
    cdmpp_err err = {0};
    assert_ok(cd_dict_add(d, (cd_str){name, strlen(name)}, &k, &err));
}

/* Set unseen misses by exp(0.5), seen by exp(0.2 + 0.1), near by exp(-0.05 + 0.1). Halves of 0.9:
 * 1.6 times 0.4, 0.1, 0.02; of each set. Libraries held out: 4 of 0.3, types 3 of 0.5, kernels 1,
 * operators none. */
static inline void made_llm_answers_make(made_llm_answers *f) {
    static const double times[CD_LLM_OP_LEVELS] = {0.6, 1.2, 1.6, 2, 3};
    static const double bias[] = {0.5, 0.2, -0.05};
    static const double spread[] = {0.4, 0.1, 0.02};
    static const float score[] = {0, 0.1F, 0.1F};
    cdmpp_err err = {0};
    *f = (made_llm_answers){.m = cd_mem_zalloc(1, sizeof *f->m)};
    assert_ok(cd_device_table_load("configs/devices.yaml", &f->diag, &f->devices, &err));
    f->h100 = made_llm_device(f, "h100"), f->h200 = made_llm_device(f, "h200"),
    f->l40s = made_llm_device(f, "l40s"), f->mi300x = made_llm_device(f, "mi300x");
    const char *const name[] = {"", "vllm-1", "trtllm-2", "sglang-3", "fast", "slow", "other"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) made_llm_name(&f->names, name[i]);
    cd_llm_op_model *m = f->m;
    made_llm_name(&m->stacks, "vllm-1"), made_llm_name(&m->stacks, "trtllm-2");
    made_llm_name(&m->kernels, "fast"), made_llm_name(&m->kernels, "slow");
    m->device = CD_NEWN(&m->arena, cd_llm_op_model_device, 2);
    m->device[0] = (cd_llm_op_model_device){.name = f->h100->name, .warp = 32, .about = *f->h100};
    m->device[1] = (cd_llm_op_model_device){.name = f->l40s->name, .warp = 32, .about = *f->l40s};
    for (size_t i = 0; i < 2; i++)
        m->device[i].family[CD_LLM_OP_PRODUCT] = true,
        m->device[i].types[CD_LLM_OP_PRODUCT] = 1u << CD_LLM_OP_T_BF16;
    m->n_device = 2;
    cd_llm_op_range *g = &m->range[CD_LLM_OP_GEMM];
    *g = (cd_llm_op_range){.any = true, .low = {1, 1, 1, 1}, .high = {65536, 65536, 65536, 1}};
    g->type[CD_LLM_OP_T_BF16] = true, g->kv[CD_LLM_OP_T_BF16] = 1u << CD_LLM_OP_T_BF16;
    for (size_t s = 0; s < CD_LLM_OP_N_SET; s++) {
        cd_llm_op_part *p = &m->part[CD_LLM_OP_PRODUCT][s];
        *p = (cd_llm_op_part){made_llm_constant((cd_llm_op_set)s, score[s]),
                              made_llm_constant((cd_llm_op_set)s, 0.1F),
                              bias[s],
                              log(spread[s]) - 0.1,
                              {0},
                              100};
        memcpy(p->times, times, sizeof times);
    }
    m->novel[CD_LLM_OP_PRODUCT][CD_LLM_OP_NOVEL_STACK] =
        (cd_novelty){4, 80, 0.3, {0.02, 0.04, 0.05, 0.06, 0.08}};
    m->novel[CD_LLM_OP_PRODUCT][CD_LLM_OP_NOVEL_TYPE] =
        (cd_novelty){3, 60, 0.5, {0.02, 0.04, 0.05, 0.06, 0.08}};
    m->novel[CD_LLM_OP_PRODUCT][CD_LLM_OP_NOVEL_KERNEL] =
        (cd_novelty){1, 20, 0.1, {0.02, 0.04, 0.05, 0.06, 0.08}};
}

static inline void made_llm_answers_free(made_llm_answers *f) {
    cd_llm_op_model_free(f->m);
    cd_dict_free(&f->names);
    cd_device_table_free(f->devices);
    cd_diag_free(&f->diag);
}

static inline cd_llm_op_record made_llm_product(double m, uint16_t stack, uint16_t kernel) {
    return (cd_llm_op_record){.kind = CD_LLM_OP_GEMM,
                              .type = CD_LLM_OP_T_BF16,
                              .kv = CD_LLM_OP_T_BF16,
                              .stack = stack,
                              .kernel = kernel,
                              .size = {m, 1024, 1024, 1}};
}
#endif
