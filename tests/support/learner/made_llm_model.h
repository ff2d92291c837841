/* A small model of made-up products, as a file, and the table that it was trained on. */
#ifndef MADE_LLM_MODEL_H
#define MADE_LLM_MODEL_H
#include "learner/train/train.h"
#include "made_llm_ops.h"
#include "tmp.h"

/* A file in the folder: a model of products in this type, trained on h100 in vllm-1 and trtllm-2,
 * without intervals of devices. */
static inline void made_llm_model_of(tmp_dir *dir, const char *name, cd_llm_op_type type) {
    cd_device_table *devices;
    cd_diag diag = {0};
    cd_llm_op_table t = {0};
    cd_llm_op_train_result l = {0};
    cd_config c;
    const cd_device *d;
    cdmpp_err err = {0};
    assert_ok(cd_device_table_load("configs/devices.yaml", &diag, &devices, &err));
    assert_ok(cd_device_table_find(devices, "h100", &d, &err));
    made_llm_table(&t, &d, 1, 3, 16);
    for (size_t i = 0; i < t.n; i++) t.r[i].type = t.r[i].kv = (uint8_t)type;
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_ok(cd_config_init(&c, &err));
    assert_ok(cd_config_set(&c, "operators.rounds=3", &err));
    assert_ok(cd_llm_op_train(&c, &t, 7, NULL, NULL, NULL, &l, &err));
    (void)tmp_put(dir, name, l.file.p, l.file.n);
    cd_llm_op_train_result_free(&l);
    cd_llm_op_table_free(&t);
    cd_config_free(&c);
    cd_device_table_free(devices);
    cd_diag_free(&diag);
}

/* "llm.cdmpp", a model of products in bfloat16. "gemm.csv": three of its rows. */
static inline void made_llm_model(tmp_dir *dir) {
    static const char text[] = "device,stack,m,n,k,latency_s\nh100,vllm-1,8,256,512,1e-5\nh100,"
                               "vllm-1,32,256,512,2e-5\nh100,vllm-1,64,256,half,2e-5\n";
    made_llm_model_of(dir, "llm.cdmpp", CD_LLM_OP_T_BF16);
    (void)tmp_put(dir, "gemm.csv", text, sizeof text - 1);
}
#endif
