/* Operators of language models: laws of the estimate, and figures by hand. */
#include "learner/llm_op/llm_op_feature.h"
#include "learner/llm_op/llm_op_few.h"
#include "check.h"

#include <math.h>

/* A GPU whose power limits nothing: 100 multiprocessors at 1.5 GHz, 2 TB/s, 40 MiB of L2 cache that
 * reads 9.6 TB/s. */
static cd_device gpu(double times) {
    return (cd_device){.name = "g",
                       .kind = CD_DEVICE_GPU,
                       .cores = 100,
                       .clock_mhz = 1500 * times,
                       .bandwidth_gb_s = 2000 * times,
                       .l2_kb = 40960,
                       .lanes = 128,
                       .fp32_gflops = 38400 * times,
                       .bf16_tflops = 614.4 * times,
                       .tensor_tflops = 614.4 * times,
                       .fp8_tflops = 1228.8 * times,
                       .int8_tops = 1228.8 * times,
                       .fp4_tflops = 2457.6 * times,
                       .link_gb_s = 450 * times,
                       .tdp_w = CD_DEVICE_UNKNOWN,
                       .process_nm = 5};
}

static cd_llm_op_estimate of(const cd_llm_op_record *r, const cd_device *d) {
    cd_llm_op_estimate e;
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_estimate_of(r, d, &e, &err));
    return e;
}

/* Sizes of every kind, drawn. */
static cd_llm_op_record drawn(uint64_t seed) {
    cd_llm_op_record r = {.kind = (uint8_t)(cd_rng_at(seed, 0) % CD_LLM_OP_N_KIND),
                          .type = (uint8_t)(cd_rng_at(seed, 1) % CD_LLM_OP_N_TYPE)};
    const double heads = (double)(1 << cd_rng_at(seed, 2) % 7);
    r.kv = r.type;
    for (size_t i = 0; i < cd_llm_op_n_size((cd_llm_op_kind)r.kind); i++) {
        const double any = (double)(1 + cd_rng_at(seed, 3 + i) % 4096);
        switch (cd_llm_op_size_param((cd_llm_op_kind)r.kind, i)) {
        case CD_LLM_OP_P_HEADS: r.size[i] = heads * 8; break;
        case CD_LLM_OP_P_KV_HEADS: r.size[i] = heads; break;
        case CD_LLM_OP_P_BATCHES:
        case CD_LLM_OP_P_TP:
        case CD_LLM_OP_P_EP: r.size[i] = 1; break;
        case CD_LLM_OP_P_TOPK: r.size[i] = 2; break;
        case CD_LLM_OP_P_EXPERTS:
        case CD_LLM_OP_P_BATCH: r.size[i] = 1 + fmod(any, 64); break;
        case CD_LLM_OP_P_WINDOW: r.size[i] = 0; break;
        case CD_LLM_OP_P_HEAD_DIM: r.size[i] = 128; break;
        case CD_LLM_OP_P_GPUS: r.size[i] = 8; break;
        default: r.size[i] = any;
        }
    }
    return r;
}

/* Fixed times are in clocks: a twin with twice the rates takes half of the time for the same.
 * Between GPUs steps have a latency of their own. */
TEST(twice_the_rates) {
    const cd_device one = gpu(1), two = gpu(2);
    for (uint64_t i = 0; i < 400; i++) {
        const cd_llm_op_record r = drawn(i);
        const cd_llm_op_estimate a = of(&r, &one), b = of(&r, &two);
        assert_close(b.roof_s, a.roof_s / 2, 1e-9, 0);
        assert_close(b.flops, a.flops, 0, 0);
        assert_close(b.bytes, a.bytes, 0, 0);
        if (cd_llm_op_family_of((cd_llm_op_kind)r.kind) == CD_LLM_OP_COLLECTIVE)
            assert_true(b.base_s < a.base_s && b.base_s > a.base_s / 2);
        else assert_close(b.base_s, a.base_s / 2, 1e-9, 0);
    }
}

/* A longer axis never takes less. */
TEST(longer_axis) {
    const cd_device d = gpu(1);
    for (uint64_t i = 0; i < 400; i++) {
        cd_llm_op_record r = drawn(i);
        const double once = of(&r, &d).base_s;
        r.size[0] *= 4;
        const double longer = of(&r, &d).base_s;
        assert_true(longer >= once * (1 - 1e-9));
    }
}

/* 64 Ki rows of 8 Ki in bfloat16: 2 GiB from memory behind 4,000 clocks. */
TEST(stream) {
    const cd_device d = gpu(1);
    const cd_llm_op_record r = {.kind = CD_LLM_OP_NORM,
                                .type = CD_LLM_OP_T_BF16,
                                .kv = CD_LLM_OP_T_BF16,
                                .size = {65536, 8192}};
    const cd_llm_op_estimate e = of(&r, &d);
    assert_close(e.bytes, 2147483648.0, 0, 0);
    assert_close(e.base_s, 4000 / 1.5e9 + 2147483648.0 / 2e12, 1e-6, 0);
}

/* 16 sequences of 1,024 tokens, one head of 128: 8 MiB of cache in 64 blocks of one head each, two
 * rounds of whose start count; the rest is what the port of a multiprocessor lets through (1.37
 * us), beside matrix units and exponentials. Of a window of 512 half is read. */
TEST(decode) {
    const cd_device d = gpu(1);
    cd_llm_op_record r = {.kind = CD_LLM_OP_DECODE,
                          .type = CD_LLM_OP_T_BF16,
                          .kv = CD_LLM_OP_T_BF16,
                          .size = {1023, 16, 1, 1, 128, 0}};
    const cd_llm_op_estimate e = of(&r, &d);
    assert_close(e.flops, 8388608, 0, 0);
    assert_close(e.bytes, 8388608 + 8192, 0, 0);
    assert_close(e.base_s, (12000 + 2 * 3500) / 1.5e9 + 1.3872e-6, 1e-3, 0);
    r.size[5] = 512;
    assert_close(of(&r, &d).flops, 4194304, 0, 0);
    r.size[5] = 4096; /* wider than the cache */
    assert_close(of(&r, &d).flops, 8388608, 0, 0);
}

/* 8 GPUs on links of 450 GB/s, of which 337.5 are reached: of 1 KiB everybody reads all in one
 * step; of 1 GiB both halves of an all-reduce move 7/8 of it. */
TEST(all_reduce) {
    const cd_device d = gpu(1);
    cd_llm_op_record r = {.kind = CD_LLM_OP_ALL_REDUCE,
                          .type = CD_LLM_OP_T_BF16,
                          .kv = CD_LLM_OP_T_BF16,
                          .size = {1024, 8}};
    assert_close(of(&r, &d).base_s, 4e-6 + 7 * 1024 / 337.5e9, 1e-9, 0);
    r.size[0] = 1073741824;
    assert_close(of(&r, &d).bytes, 2 * 939524096.0, 0, 0);
    assert_close(of(&r, &d).base_s, 6e-6 + 2 * 939524096.0 / 337.5e9, 1e-9, 0);
    r.kind = CD_LLM_OP_ALL_GATHER;
    assert_close(of(&r, &d).base_s, 4e-6 + 939524096.0 / 337.5e9, 1e-9, 0);
}

/* 0.51 pJ at 5 nm, 4 times as wide (^-0.26), 1.5 GHz (^1.2): 300 W allow 0.836 of the peak; at 7 nm
 * (^1.86) 0.629. */
TEST(power) {
    cd_device d = gpu(1);
    d.tdp_w = 300;
    assert_close(cd_llm_op_machine_power(&d), 0.836492, 1e-5, 0);
    d.process_nm = 7;
    assert_close(cd_llm_op_machine_power(&d), 0.629386, 1e-5, 0);
}

static cd_llm_op_few_row row(uint8_t type, float place) {
    return (cd_llm_op_few_row){
        .kind = CD_LLM_OP_GEMM, .type = type, .kernel = 3, .maker = 1, .place = {place, 0, 0, 0}};
}

/* One row of a residual: its likeness over 0.01 + 0.01 + 0.05 + 0.08 and noise of 0.06, whatever
 * its sign. */
TEST(one_measured_row) {
    const double residual[] = {0.4, -0.4};
    const cd_llm_op_few_row at = row(CD_LLM_OP_T_BF16, 0);
    for (size_t i = 0; i < 2; i++) {
        cd_llm_op_few *f;
        cdmpp_err err = {0};
        const cd_llm_op_few_row away = row(CD_LLM_OP_T_BF16, 3), other = row(CD_LLM_OP_T_FP8, 0);
        assert_ok(cd_llm_op_few_new(&at, &residual[i], 1, &f, &err));
        assert_close(cd_llm_op_few_ask(f, &at), residual[i] * 0.15 / 0.21, 1e-9, 0);
        assert_close(cd_llm_op_few_ask(f, &away), residual[i] * (0.07 + 0.08 * exp(-0.5)) / 0.21,
                     1e-9, 0);
        assert_close(cd_llm_op_few_ask(f, &other), residual[i] * (0.01 + 0.016) / 0.21, 1e-9, 0);
        cd_llm_op_few_free(f);
    }
}

static void features(const cd_llm_op_record *r, float x[CD_LLM_OP_N_FEATURE]) {
    const cd_device d = gpu(1);
    const cd_llm_op_codes c = {1, 2, 3, 0, false};
    cd_llm_op_estimate e;
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_feature(r, &d, &c, NULL, x, &e, &err));
}

/* A product of 1,024 each way: 2^31 operations in 3.495 us, 6 MiB in 3.146 us. */
TEST(columns) {
    float x[CD_LLM_OP_N_FEATURE];
    const cd_llm_op_record product = {.kind = CD_LLM_OP_GEMM,
                                      .type = CD_LLM_OP_T_BF16,
                                      .kv = CD_LLM_OP_T_BF16,
                                      .size = {1024, 1024, 1024, 1}};
    features(&product, x);
    assert_close((double)x[CD_LLM_OP_X_balance], log2(10.0 / 9), 1e-5, 0);
    assert_close((double)x[CD_LLM_OP_X_flops], 31, 1e-6, 0);
    assert_close((double)x[CD_LLM_OP_X_memory], log2(3.145728), 1e-5, 0);
    assert_close((double)x[CD_LLM_OP_X_even_n], 8, 0, 0);
    assert_close((double)x[CD_LLM_OP_X_wave128], log2(0.64), 1e-5, 0);
    assert_close((double)x[CD_LLM_OP_X_full128], 0.64, 1e-6, 0);
    assert_close((double)x[CD_LLM_OP_X_size0], log2(1025), 1e-6, 0);
    const cd_llm_op_record moe = {.kind = CD_LLM_OP_MOE,
                                  .type = CD_LLM_OP_T_BF16,
                                  .kv = CD_LLM_OP_T_BF16,
                                  .size = {64, 96, 33, 2, 8, 8, 1}};
    features(&moe, x); /* 33 / 8 columns twice are 8.25 */
    assert_close((double)x[CD_LLM_OP_X_even_n], 3, 0, 0);
    assert_close((double)x[CD_LLM_OP_X_even_k], 5, 0, 0);
}

TESTS(NULL, NULL, twice_the_rates, longer_axis, stream, decode, all_reduce, power, one_measured_row,
      columns)
