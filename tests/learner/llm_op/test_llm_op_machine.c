/* What a GPU is to operators: rates from its description, what its power allows, and numbers that
 * are missing. */
#include "learner/llm_op/llm_op_estimate.h"
#include "learner/llm_op/llm_op_feature.h"
#include "check.h"

#include <math.h>
#include <string.h>

static cd_device gpu(void) {
    return (cd_device){.name = "g",
                       .kind = CD_DEVICE_GPU,
                       .cores = 100,
                       .clock_mhz = 1500,
                       .bandwidth_gb_s = 2000,
                       .l2_kb = 40960,
                       .lanes = 128,
                       .fp32_gflops = 38400,
                       .bf16_tflops = 614.4,
                       .tensor_tflops = 614.4,
                       .fp8_tflops = 1228.8,
                       .int8_tops = 0,
                       .fp4_tflops = CD_DEVICE_UNKNOWN,
                       .tdp_w = CD_DEVICE_UNKNOWN,
                       .process_nm = 5};
}

static cd_llm_op_machine of(const cd_device *d, cd_llm_op_type t) {
    cd_llm_op_machine m;
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_machine_of(d, t, &m, &err));
    return m;
}

/* A clock of a multiprocessor that counts as 4 small ones moves 64 bytes, of a small one 16, of one
 * that is sold slower no less; and never less than twice the memory's. */
TEST(cache) {
    cd_device d = gpu();
    assert_close(of(&d, CD_LLM_OP_T_BF16).wide, 4, 1e-12, 0);
    assert_close(of(&d, CD_LLM_OP_T_BF16).l2_rate, 100 * 1.5e9 * 64, 1e-12, 0);
    d.bandwidth_gb_s = 1000;
    d.bf16_tflops = d.tensor_tflops = 153.6; /* a small one */
    assert_close(of(&d, CD_LLM_OP_T_BF16).l2_rate, 100 * 1.5e9 * 16, 1e-12, 0);
    d.bf16_tflops = d.tensor_tflops = 76.8;
    assert_close(of(&d, CD_LLM_OP_T_BF16).wide, 0.5, 1e-12, 0);
    assert_close(of(&d, CD_LLM_OP_T_BF16).l2_rate, 100 * 1.5e9 * 16, 1e-12, 0);
    d.bandwidth_gb_s = 4000; /* the memory of a Hopper */
    assert_close(of(&d, CD_LLM_OP_T_BF16).l2_rate, 8e12, 1e-12, 0);
}

/* Power that nobody knows limits nothing, one that is enough leaves 19 of 20; a tenth of a board's
 * power leaves more than a tenth of its clock. */
TEST(power) {
    cd_device d = gpu();
    assert_close(of(&d, CD_LLM_OP_T_BF16).peak, 614.4e12, 1e-12, 0);
    assert_close(cd_llm_op_machine_power(&d), 0, 0, 0);
    d.tdp_w = 1e5;
    assert_close(of(&d, CD_LLM_OP_T_BF16).peak, 0.95 * 614.4e12, 1e-12, 0);
    assert_close(of(&d, CD_LLM_OP_T_BF16).sheet, 614.4e12, 1e-12, 0);
    assert_true(cd_llm_op_machine_power(&d) > 1);
    d.tdp_w = 300;
    const double power = cd_llm_op_machine_power(&d);
    assert_true(power > 0.1 && power < 0.95);
    assert_close(of(&d, CD_LLM_OP_T_BF16).peak, power * 614.4e12, 1e-12, 0);
    /* narrow types take more energy a second */
    assert_true(of(&d, CD_LLM_OP_T_FP8).peak / of(&d, CD_LLM_OP_T_FP8).sheet < power);
    d.tdp_w = 30;
    assert_close(cd_llm_op_machine_power(&d), power * pow(0.1, 1 / 2.2), 1e-12, 0);
    d.tdp_w = 300, d.bf16_tflops = 0; /* units for float16 alone */
    assert_close(cd_llm_op_machine_power(&d), 0, 0, 0);
    assert_close(of(&d, CD_LLM_OP_T_F16).peak, 614.4e12, 1e-12, 0);
}

/* By the shared memory of a multiprocessor, however slow its units are; by their width where nobody
 * knows it. */
TEST(own_instructions) {
    cd_device d = gpu();
    d.shared_kb = 228, d.bf16_tflops = d.tensor_tflops = 150;
    assert_true(cd_llm_op_machine_async(&d));
    d.shared_kb = 164, d.bf16_tflops = d.tensor_tflops = 614.4;
    assert_false(cd_llm_op_machine_async(&d));
    d.shared_kb = CD_DEVICE_UNKNOWN;
    assert_true(cd_llm_op_machine_async(&d));
    d.bf16_tflops = d.tensor_tflops = 300;
    assert_false(cd_llm_op_machine_async(&d));
}

/* The column of these instructions is of attention alone. */
TEST(column_of_instructions) {
    cd_device d = gpu();
    const cd_llm_op_codes c = {0, 0, 7, 0, false};
    const struct {
        cd_llm_op_kind kind;
        bool attention;
    } of[] = {{CD_LLM_OP_PREFILL, true},       {CD_LLM_OP_LATENT_PREFILL, true},
              {CD_LLM_OP_LATENT_DECODE, true}, {CD_LLM_OP_DECODE, false},
              {CD_LLM_OP_GEMM, false},         {CD_LLM_OP_MOE, false}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        float x[CD_LLM_OP_N_FEATURE];
        cd_llm_op_estimate e;
        cdmpp_err err = {0};
        const cd_llm_op_record r = {.kind = (uint8_t)of[i].kind,
                                    .type = CD_LLM_OP_T_BF16,
                                    .kv = CD_LLM_OP_T_BF16,
                                    .size = {64, 64, 64, 8, 8, 1, 1}};
        for (int shared = 100; shared <= 228; shared += 128) {
            d.shared_kb = shared;
            assert_ok(cd_llm_op_feature(&r, &d, &c, NULL, x, &e, &err));
            if (of[i].attention) assert_close(x[CD_LLM_OP_X_async], shared > 200, 0, 0);
            else assert_true(isnan(x[CD_LLM_OP_X_async]));
        }
    }
}

/* Each number that is missing is named. */
TEST(missing) {
    const struct {
        const char *key;
        size_t at;
    } need[] = {{"cores", offsetof(cd_device, cores)},
                {"clock_mhz", offsetof(cd_device, clock_mhz)},
                {"bandwidth_gb_s", offsetof(cd_device, bandwidth_gb_s)},
                {"l2_kb", offsetof(cd_device, l2_kb)},
                {"bf16_tflops", offsetof(cd_device, bf16_tflops)}};
    const double nothing[] = {CD_DEVICE_UNKNOWN, 0};
    cd_llm_op_machine m;
    for (size_t i = 0; i < sizeof need / sizeof *need; i++)
        for (size_t k = 0; k < 2; k++) {
            cd_device d = gpu();
            cdmpp_err err = {0};
            memcpy((char *)&d + need[i].at, &nothing[k], sizeof nothing[k]);
            assert_status(cd_llm_op_machine_of(&d, CD_LLM_OP_T_BF16, &m, &err), CDMPP_EMODEL);
            assert_string_equal(err.key, need[i].key);
        }
    cd_device d = gpu();
    cdmpp_err err = {0};
    d.lanes = CD_DEVICE_UNKNOWN;
    assert_close(of(&d, CD_LLM_OP_T_BF16).lanes, 128, 1e-12, 0); /* from the peak */
    d.fp32_gflops = CD_DEVICE_UNKNOWN;
    assert_status(cd_llm_op_machine_of(&d, CD_LLM_OP_T_BF16, &m, &err), CDMPP_EMODEL);
    assert_string_equal(err.key, "lanes");
}

/* All that is missing is said at once; what is 0 is there. */
TEST(all_missing) {
    cdmpp_err err = {0};
    cd_llm_op_machine m;
    cd_llm_op_estimate e;
    cd_device d = gpu();
    const cd_llm_op_record sum = {
        .kind = CD_LLM_OP_ALL_REDUCE, .type = CD_LLM_OP_T_BF16, .size = {1024, 2}};
    d.name = "mine", d.link_gb_s = 100, d.mem_gb = 80, d.tensor_tflops = 0, d.fp8_tflops = 0,
    d.int8_tops = 0, d.fp4_tflops = 0;
    d.clock_mhz = CD_DEVICE_UNKNOWN;
    assert_status(cd_llm_op_machine_of(&d, CD_LLM_OP_T_BF16, &m, &err), CDMPP_EMODEL);
    assert_string_equal(err.msg, "the description of mine has no such number");
    d.cores = d.bandwidth_gb_s = d.l2_kb = d.lanes = d.fp32_gflops = d.bf16_tflops = d.link_gb_s =
        d.mem_gb = d.tensor_tflops = d.fp8_tflops = d.int8_tops = d.fp4_tflops = CD_DEVICE_UNKNOWN;
    d.name = "a-name-of-24-letters-of-a-gpu-and-more";
    assert_status(cd_llm_op_machine_of(&d, CD_LLM_OP_T_BF16, &m, &err), CDMPP_EMODEL);
    assert_string_equal(err.key, "cores");
    assert_string_equal(err.msg, "the description of a-name-of-24-letters-of- has no such number; "
                                 "nor has it clock_mhz, bandwidth_gb_s, l2_kb, lanes, bf16_tflops; "
                                 "some operators need link_gb_s, mem_gb, tensor_tflops, "
                                 "fp8_tflops, int8_tops, fp4_tflops, too");
    assert_status(cd_llm_op_estimate_of(&sum, &d, &e, &err), CDMPP_EMODEL);
    assert_string_equal(err.key, "link_gb_s");
    assert_non_null(strstr(err.msg, "; nor has it cores, clock_mhz, bandwidth_gb_s, l2_kb, lanes; "
                                    "some operators need mem_gb, bf16_tflops, "));
    d = gpu();
    d.name = "mine", d.fp8_tflops = 0;
    assert_status(cd_llm_op_machine_of(&d, CD_LLM_OP_T_FP8, &m, &err), CDMPP_EMODEL);
    assert_string_equal(err.msg, "mine has no units for this type");
}

TESTS(NULL, NULL, cache, power, own_instructions, column_of_instructions, missing, all_missing)
