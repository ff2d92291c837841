/* A small language model, a table that has every operator of it with a time that can be computed by
 * hand, and an engine.
 *
 *   product       1e-6 * m + 1e-9 * n
 *   prompts       1e-7 * isl * batch
 *   decode        1e-6 * batch + 1e-8 * past
 *   all-reduce    2e-6
 *
 * The table has all sizes that tests ask for, so every answer is measured. */
#ifndef MADE_SERVING_H
#define MADE_SERVING_H
#include "check.h"
#include "predictor/serving/serving.h"

enum { MADE_TOKENS = 96, MADE_PAST = 160, MADE_BATCH = 8 };
#define MADE_CONFIG                                                                                \
    "{\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":64,\"num_attention_"        \
    "heads\":4,\"num_key_value_heads\":2,\"head_dim\":16,"                                         \
    "\"intermediate_size\":128,\"vocab_size\":256,\"torch_dtype\":\"bfloat16\"}"

typedef struct made_serving {
    cd_device_table *devices;
    cd_diag diag;
    const cd_device *d;
    cd_serving_model m;
    cd_serving_layout l;
    cd_serving_stack k;
    cd_serving_tables *t;
    cd_llm_op_model none; /* no trees: what is not measured is an error */
    cd_serving_cost *c;
} made_serving;

static inline void made_product(cd_buf *b, double n, double k) {
    for (int m = 1; m <= MADE_TOKENS; m++)
        cd_buf_putf(b, "gemm,h100,vllm-1,%d,%g,%g,,,,,,,,,%.17g\n", m, n, k, 1e-6 * m + 1e-9 * n);
}

/* The rows of tp 1 and 2. */
static inline void made_rows(cd_buf *b) {
    cd_buf_puts(b, "op,device,stack,m,n,k,isl,past,batch_size,num_heads,num_key_value_heads,head_"
                   "dim,num_gpus,message_bytes,latency_s\n");
    for (int tp = 1; tp <= 2; tp++) {
        made_product(b, 64.0 / tp + 64.0 / tp, 64);
        made_product(b, 64, 64.0 / tp);
        made_product(b, 256.0 / tp, 64);
        made_product(b, 64, 128.0 / tp);
        for (int batch = 1; batch <= MADE_BATCH; batch++) {
            for (int isl = 1; isl <= MADE_TOKENS; isl++)
                cd_buf_putf(b, "attention_prefill,h100,vllm-1,,,,%d,0,%d,%d,%d,16,,,%.17g\n", isl,
                            batch, 4 / tp, 2 / tp, 1e-7 * isl * batch);
            for (int past = 1; past <= MADE_PAST; past++)
                cd_buf_putf(b, "attention_decode,h100,vllm-1,,,,,%d,%d,%d,%d,16,,,%.17g\n", past,
                            batch, 4 / tp, 2 / tp, 1e-6 * batch + 1e-8 * past);
        }
    }
    for (int m = 1; m <= MADE_TOKENS; m++)
        cd_buf_putf(b, "all_reduce,h100,vllm-1,,,,,,,,,,2,%d,2e-6\n", 128 * m);
    for (int m = 1; m <= MADE_BATCH; m++)
        cd_buf_putf(b, "all_gather,h100,vllm-1,,,,,,,,,,2,%d,2e-6\n", 512 * m);
}

/* path: of a file with the rows. */
static inline void made_serving_open(made_serving *s, const char *path, double tp) {
    cdmpp_err err = {0};
    memset(s, 0, sizeof *s);
    assert_ok(cd_device_table_load("configs/devices.yaml", &s->diag, &s->devices, &err));
    assert_ok(cd_device_table_find(s->devices, "h100", &s->d, &err));
    assert_ok(cd_serving_model_read("made", MADE_CONFIG, sizeof MADE_CONFIG - 1, &s->m, &err));
    s->l = (cd_serving_layout){.tp = tp,
                               .pp = 1,
                               .dp = 1,
                               .moe_ep = 1,
                               .linear = CD_LLM_OP_T_BF16,
                               .project = CD_LLM_OP_T_BF16,
                               .shared = CD_LLM_OP_T_BF16,
                               .recurrent = CD_LLM_OP_T_BF16,
                               .expert = CD_LLM_OP_T_BF16,
                               .attention = CD_LLM_OP_T_BF16,
                               .kv = CD_LLM_OP_T_BF16,
                               .base = CD_LLM_OP_T_BF16};
    assert_ok(cd_serving_layout_check(&s->m, &s->l, &err));
    s->k = (cd_serving_stack){.name = "vllm",
                              .tables = "",
                              .since = "",
                              .fitted = "",
                              .tokens = 64,
                              .sequences = 8,
                              .memory_share = 0.9,
                              .lift = 1,
                              .source = ""};
    assert_ok(cd_serving_tables_open(path, s->devices, NULL, NULL, &s->t, &err));
    assert_int_equal(cd_serving_tables_bad(s->t), 0);
    assert_ok(cd_serving_cost_new(&s->none, s->t, s->d, "vllm-2", "", 0, &s->c, &err));
}

static inline void made_serving_close(made_serving *s) {
    cd_serving_cost_free(s->c);
    cd_serving_tables_free(s->t);
    cd_device_table_free(s->devices);
    cd_diag_free(&s->diag);
}
#endif
