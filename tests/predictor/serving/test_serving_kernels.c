/* Kernels that are named: which rows answer then, which types they are of, and what no kernel is
 * called. */
#include <string.h>

#include "predictor/serving/serving_internal.h"
#include "check.h"
#include "fault.h"
#include "tmp.h"

/* Two kernels of bfloat16, of which the first is faster, and one of fp8. An all-reduce of a
 * library, and NCCL's, which has no name. */
static const char ROWS[] = "op,device,stack,kernel,dtype,m,n,k,num_gpus,message_bytes,latency_"
                           "s\ngemm,h100,vllm-1,Cutlass_a,bfloat16,8,64,64,,,1e-5\n"
                           "gemm,h100,vllm-1,Marlin_b,bfloat16,8,64,64,,,3e-5\ngemm,h100,vllm-1,"
                           "Deep_c,fp8,8,64,64,,,7e-6\n"
                           "all_reduce,h100,vllm-1,vllm_custom,bfloat16,,,,2,128,2e-6\nall_reduce,"
                           "h100,nccl-2,,bfloat16,,,,2,128,9e-6\n";

static tmp_dir dir;
static cd_device_table *devices;
static cd_diag diag;
static const cd_device *h100;
static cd_serving_tables *tables;
static cd_llm_op_model none; /* no trees: what is not measured is an error */
static cdmpp_err err;

static int up(void **state) {
    (void)state;
    dir = tmp_make();
    assert_ok(cd_device_table_load("configs/devices.yaml", &diag, &devices, &err));
    assert_ok(cd_device_table_find(devices, "h100", &h100, &err));
    assert_ok(cd_serving_tables_open(tmp_put(&dir, "rows.csv", ROWS, sizeof ROWS - 1), devices,
                                     NULL, NULL, &tables, &err));
    assert_int_equal(cd_serving_tables_bad(tables), 0);
    return 0;
}

static int down(void **state) {
    (void)state;
    cd_serving_tables_free(tables);
    cd_device_table_free(devices);
    cd_diag_free(&diag);
    tmp_remove(&dir);
    return 0;
}

static cdmpp_status refused(const char *text) {
    cd_serving_kernels k;
    err = (cdmpp_err){0};
    return cd_serving_kernels_read(text, &k, &err);
}

TEST(words) {
    cd_serving_kernels k;
    assert_ok(cd_serving_kernels_read("moe=marlin,attention_prefill=FlashInfer", &k, &err));
    assert_true(cd_serving_kernels_has(&k, CD_LLM_OP_MOE, "vllm_MARLIN_experts") &&
                !cd_serving_kernels_has(&k, CD_LLM_OP_MOE, "vllm_marli") &&
                !cd_serving_kernels_has(&k, CD_LLM_OP_MOE, ""));
    assert_true(cd_serving_kernels_has(&k, CD_LLM_OP_PREFILL, "flashinfer") &&
                cd_serving_kernels_has(&k, CD_LLM_OP_GEMM, "any") &&
                cd_serving_kernels_has(&k, CD_LLM_OP_GEMM, ""));
    assert_ok(cd_serving_kernels_read("", &k, &err));
    assert_true(cd_serving_kernels_has(&k, CD_LLM_OP_MOE, "any"));
    const char *const bad[] = {"moe",         "moe=",          "=marlin", "experts=marlin",
                               "moe=a,moe=b", "moe=a,,gemm=b", "mo=a"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(refused(bad[i]), CDMPP_ESCHEMA);
    assert_int_equal(refused("moe=a,gemm"), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "found 'gemm'"));
}

static double seconds(const char *kernels, cd_llm_op_type type) {
    cd_serving_cost *c;
    double s;
    const cd_serving_op op = {.name = "operator",
                              .count = 1,
                              .r = {.kind = CD_LLM_OP_GEMM,
                                    .type = (uint8_t)type,
                                    .kv = (uint8_t)type,
                                    .size = {8, 64, 64, 1}}};
    assert_ok(cd_serving_cost_new(&none, tables, h100, "vllm-1", kernels, 0, &c, &err));
    assert_ok(cd_serving_cost_s(c, &op, &s, &err));
    cd_serving_cost_free(c);
    return s;
}

/* The library takes the fastest; a type that the kernel has no rows of stays the library's. */
TEST(who_answers) {
    assert_close(seconds("", CD_LLM_OP_T_BF16), 1e-5, 0, 0);
    assert_close(seconds("gemm=marlin", CD_LLM_OP_T_BF16), 3e-5, 0, 0);
    assert_close(seconds("gemm=CUTLASS", CD_LLM_OP_T_BF16), 1e-5, 0, 0);
    /* of two that have it the fastest */
    assert_close(seconds("gemm=_", CD_LLM_OP_T_BF16), 1e-5, 0, 0);
    assert_close(seconds("gemm=marlin", CD_LLM_OP_T_FP8), 7e-6, 0, 0);
    assert_close(seconds("gemm=deep", CD_LLM_OP_T_BF16), 1e-5, 0, 0);
    /* one type of 16 bits speaks for the other */
    assert_close(seconds("gemm=marlin", CD_LLM_OP_T_F16), 3e-5, 0, 0);
}

/* An answer tells the kernel, also the second time; where rows have no names it tells none. */
TEST(kernel_of_an_answer) {
    cd_serving_cost *c;
    cd_serving_time t;
    const cd_serving_op op = {.name = "operator",
                              .count = 1,
                              .r = {.kind = CD_LLM_OP_GEMM,
                                    .type = CD_LLM_OP_T_BF16,
                                    .kv = CD_LLM_OP_T_BF16,
                                    .size = {8, 64, 64, 1}}},
                        nameless = {.name = "bytes", .count = 1, .bytes = 1e6};
    for (int k = 0; k < 2; k++) {
        assert_ok(cd_serving_cost_new(&none, tables, h100, "vllm-1", k ? "gemm=marlin" : "", 0, &c,
                                      &err));
        for (int again = 0; again < 2; again++) {
            assert_ok(cd_serving_cost_of(c, &op, &t, &err));
            assert_string_equal(t.kernel, k ? "Marlin_b" : "Cutlass_a");
        }
        assert_ok(cd_serving_cost_of(c, &nameless, &t, &err));
        assert_null(t.kernel);
        cd_serving_cost_free(c);
    }
}

/* A library's own all-reduce does not reach over nodes, whoever names it. */
TEST(over_nodes) {
    cd_serving_cost *c;
    double s;
    cd_serving_op op = {.name = "operator",
                        .count = 1,
                        .r = {.kind = CD_LLM_OP_ALL_REDUCE,
                              .type = CD_LLM_OP_T_BF16,
                              .kv = CD_LLM_OP_T_BF16,
                              .size = {128, 2}}};
    assert_ok(cd_serving_cost_new(&none, tables, h100, "vllm-1", "all_reduce=custom", 0, &c, &err));
    assert_ok(cd_serving_cost_s(c, &op, &s, &err));
    assert_close(s, 2e-6, 0, 0);
    op.nodes = true;
    assert_ok(cd_serving_cost_s(c, &op, &s, &err));
    assert_close(s, 9e-6, 0, 0);
    cd_serving_cost_free(c);
}

/* A word that is in the names of several: each type has one that has rows of it, also where the
 * model is asked. */
TEST(of_each_type) {
    cd_serving_kernels k;
    cd_serving_kernel found;
    assert_ok(cd_serving_kernels_read("gemm=_", &k, &err));
    assert_ok(cd_serving_kernels_find(&k, tables, &none, CD_LLM_OP_GEMM, &found, &err));
    assert_string_equal(tables->t.names.text[found.of[CD_LLM_OP_T_BF16]], "Cutlass_a");
    assert_string_equal(tables->t.names.text[found.of[CD_LLM_OP_T_F16]], "Cutlass_a");
    assert_string_equal(tables->t.names.text[found.of[CD_LLM_OP_T_FP8]], "Deep_c");
    assert_int_equal(found.of[CD_LLM_OP_T_INT8], 0);
}

TEST(none_is_called_so) {
    cd_serving_cost *c = NULL;
    err = (cdmpp_err){0};
    assert_int_equal(cd_serving_cost_new(&none, tables, h100, "vllm-1", "gemm=triton", 0, &c, &err),
                     CDMPP_ESCHEMA);
    assert_null(c);
    assert_string_equal(err.key, "kernels");
    assert_string_equal(
        err.msg,
        "no kernel of gemm has 'triton' in its name; --measured has Cutlass_a, Marlin_b, Deep_c");
    assert_int_equal(cd_serving_cost_new(&none, tables, h100, "vllm-1", "moe=marlin", 0, &c, &err),
                     CDMPP_ESCHEMA);
    assert_string_equal(err.msg, "no kernel of moe has 'marlin' in its name");
}

/* Without tables the names are those that the model was trained on. */
TEST(without_tables) {
    cd_llm_op_model m = {0};
    cd_serving_tables *t;
    cd_serving_kernels k;
    cd_serving_kernel found;
    uint32_t at;
    assert_ok(cd_serving_tables_open(NULL, devices, NULL, NULL, &t, &err));
    assert_ok(cd_dict_add(&m.kernels, (cd_str){"Triton_a", 8}, &at, &err));
    assert_ok(cd_dict_add(&m.kernels, (cd_str){"Marlin_b", 8}, &at, &err));
    assert_ok(cd_serving_kernels_read("gemm=marlin", &k, &err));
    assert_ok(cd_serving_kernels_find(&k, t, &m, CD_LLM_OP_GEMM, &found, &err));
    for (int i = 0; i < CD_LLM_OP_N_TYPE; i++)
        assert_string_equal(t->t.names.text[found.of[i]], "Marlin_b");
    assert_ok(cd_serving_kernels_find(&k, t, &m, CD_LLM_OP_MOE, &found, &err));
    for (int i = 0; i < CD_LLM_OP_N_TYPE; i++) assert_int_equal(found.of[i], 0);
    assert_ok(cd_serving_kernels_read("gemm=cutlass", &k, &err));
    assert_int_equal(cd_serving_kernels_find(&k, t, &m, CD_LLM_OP_GEMM, &found, &err),
                     CDMPP_ESCHEMA);
    assert_string_equal(err.msg, "no kernel of gemm has 'cutlass' in its name");
    cd_dict_free(&m.kernels);
    cd_serving_tables_free(t);
}

static cdmpp_status checked(cd_llm_op_kind kind, cd_llm_op_type type, const cd_serving_model *m) {
    cd_serving_kernel named[CD_LLM_OP_N_KIND] = {0};
    const cd_serving_layout l = {.linear = CD_LLM_OP_T_BF16,
                                 .project = CD_LLM_OP_T_BF16,
                                 .shared = CD_LLM_OP_T_FP8,
                                 .recurrent = CD_LLM_OP_T_BF16,
                                 .base = CD_LLM_OP_T_BF16,
                                 .expert = CD_LLM_OP_T_W4A16_MXFP4,
                                 .attention = CD_LLM_OP_T_FP8,
                                 .kv = CD_LLM_OP_T_FP8};
    err = (cdmpp_err){0};
    assert_ok(cd_serving_kernels_check(named, m, &l, &err));
    named[kind].of[type] = 1;
    return cd_serving_kernels_check(named, m, &l, &err);
}

/* A kernel without rows of any type that the model's operators have. Prompts of latent attention
 * are never in fp8. */
TEST(types_of_the_model) {
    const cd_serving_model experts = {.experts = 8}, latent = {.latent = true};
    const struct {
        cd_llm_op_kind kind;
        cd_llm_op_type good, bad;
        const cd_serving_model *m;
    } of[] = {{CD_LLM_OP_MOE, CD_LLM_OP_T_W4A16_MXFP4, CD_LLM_OP_T_FP8, &experts},
              {CD_LLM_OP_GEMM, CD_LLM_OP_T_FP8, CD_LLM_OP_T_INT8_WO, &experts},
              {CD_LLM_OP_PREFILL, CD_LLM_OP_T_FP8, CD_LLM_OP_T_BF16, &experts},
              {CD_LLM_OP_DECODE, CD_LLM_OP_T_BF16, CD_LLM_OP_T_FP8, &experts},
              {CD_LLM_OP_PREFILL, CD_LLM_OP_T_BF16, CD_LLM_OP_T_FP8, &latent},
              {CD_LLM_OP_LATENT_PREFILL, CD_LLM_OP_T_BF16, CD_LLM_OP_T_FP8, &latent},
              {CD_LLM_OP_LATENT_DECODE, CD_LLM_OP_T_BF16, CD_LLM_OP_T_FP8, &latent}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        assert_ok(checked(of[i].kind, of[i].good, of[i].m));
        /* of this configuration: others of a sweep may have the type */
        assert_int_equal(checked(of[i].kind, of[i].bad, of[i].m), CDMPP_ERANGE);
        assert_string_equal(err.key, "kernels");
        assert_non_null(strstr(err.msg, cd_llm_op_type_name(of[i].bad)));
        assert_non_null(strstr(err.msg, cd_llm_op_type_name(of[i].good)));
    }
    /* collectives move bytes */
    assert_ok(checked(CD_LLM_OP_ALL_REDUCE, CD_LLM_OP_T_NVFP4, &latent));
}

/* Of a kind that the model has no operators of. */
TEST(none_of_the_kind) {
    const cd_serving_model dense = {0}, latent = {.latent = true};
    assert_int_equal(checked(CD_LLM_OP_MOE, CD_LLM_OP_T_W4A16_MXFP4, &dense), CDMPP_ERANGE);
    assert_string_equal(err.msg, "a kernel is named for moe, of which this model has no operators");
    assert_int_equal(checked(CD_LLM_OP_LATENT_PREFILL, CD_LLM_OP_T_BF16, &dense), CDMPP_ERANGE);
    assert_int_equal(checked(CD_LLM_OP_LATENT_DECODE, CD_LLM_OP_T_BF16, &dense), CDMPP_ERANGE);
    assert_int_equal(checked(CD_LLM_OP_DECODE, CD_LLM_OP_T_BF16, &latent), CDMPP_ERANGE);
}

TEST(no_memory) {
    FAULT_SWEEP(f, 2) {
        cd_serving_cost *c = NULL;
        f.st = cd_serving_cost_new(&none, tables, h100, "vllm-1", "gemm=marlin", 0, &c, &f.err);
        cd_serving_cost_free(c);
    }
    FAULT_SWEEP(f, 2) {
        cd_serving_kernel named[CD_LLM_OP_N_KIND] = {0};
        const cd_serving_model m = {.experts = 8};
        const cd_serving_layout l = {.expert = CD_LLM_OP_T_FP8};
        named[CD_LLM_OP_MOE].of[CD_LLM_OP_T_INT8] = 1;
        f.st = cd_serving_kernels_check(named, &m, &l, &f.err);
        if (f.st == CDMPP_ERANGE) f.st = CDMPP_OK;
    }
}

TESTS(up, down, words, who_answers, kernel_of_an_answer, over_nodes, of_each_type,
      none_is_called_so, without_tables, types_of_the_model, none_of_the_kind, no_memory)
