/* A made-up table of products: the estimate times a factor that depends on the stack and a little
 * on the sizes. */
#ifndef MADE_LLM_OPS_H
#define MADE_LLM_OPS_H
#include "check.h"

#include "learner/llm_op/llm_op.h"

enum { MADE_LLM_STEPS = 9 };

static inline cd_llm_op_record made_llm_gemm(double m, double n, double k, uint16_t stack) {
    return (cd_llm_op_record){.kind = CD_LLM_OP_GEMM,
                              .type = CD_LLM_OP_T_BF16,
                              .kv = CD_LLM_OP_T_BF16,
                              .stack = stack,
                              .size = {m, n, k, 1}};
}

static inline double made_llm_time(const cd_llm_op_record *r, const cd_device *d) {
    cd_llm_op_estimate e;
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_estimate_of(r, d, &e, &err));
    return e.base_s * (r->stack == 1 ? 1.4 : 1.1) *
           (1 + 0.02 * ((int)(r->size[0] + r->size[1]) / 64 % 3));
}

/* m 1, 2, 4 ... of `sites` x `sites` matrices in two stacks, without those m that equal `but`. */
static inline void made_llm_table(cd_llm_op_table *t, const cd_device *const *device,
                                  size_t n_device, int sites, double but) {
    cdmpp_err err = {0};
    uint32_t k;
    assert_ok(cd_dict_add(&t->names, (cd_str){"", 0}, &k, &err));
    assert_ok(cd_dict_add(&t->names, (cd_str){"vllm-1", 6}, &k, &err));
    assert_ok(cd_dict_add(&t->names, (cd_str){"trtllm-2", 8}, &k, &err));
    for (size_t d = 0; d < n_device; d++)
        for (int i = 0; i < sites * sites; i++)
            for (int s = 0; s < 2 * MADE_LLM_STEPS; s++) {
                cd_llm_op_record r = made_llm_gemm((double)(1 << s / 2 * 1), 256 << i % sites,
                                                   512 << i / sites, (uint16_t)(1 + s % 2));
                if (r.size[0] > but - 0.5 && r.size[0] < but + 0.5) continue;
                r.latency_s = made_llm_time(&r, device[d]);
                assert_ok(cd_llm_op_table_put(t, &r, device[d], &err));
            }
}
#endif
