/* llm_op_estimate: laws that hold whatever the constants are; GPUs that cannot run an operator. */
#include "learner/llm_op/llm_op.h"
#include "check.h"

#include <math.h>
#include <string.h>

static cd_device gpu(void) {
    cd_device d;
    memset(&d, 0, sizeof d);
    d = (cd_device){.name = "g",
                    .kind = CD_DEVICE_GPU,
                    .cores = 100,
                    .clock_mhz = 1500,
                    .bandwidth_gb_s = 2000,
                    .l2_kb = 40960,
                    .fp32_gflops = 20000,
                    .bf16_tflops = 400,
                    .tensor_tflops = 400,
                    .fp8_tflops = 800,
                    .int8_tops = 0,
                    .fp4_tflops = CD_DEVICE_UNKNOWN,
                    .link_gb_s = 300};
    return d;
}

static cd_llm_op_record record(cd_llm_op_kind k, const double size[CD_LLM_OP_MAX_SIZE]) {
    cd_llm_op_record r = {.kind = (uint8_t)k, .type = CD_LLM_OP_T_BF16, .kv = CD_LLM_OP_T_BF16};
    memcpy(r.size, size, sizeof r.size);
    return r;
}

static const double sizes[CD_LLM_OP_N_KIND][CD_LLM_OP_MAX_SIZE] = {
    [CD_LLM_OP_GEMM] = {4096, 4096, 4096, 1},
    [CD_LLM_OP_PREFILL] = {4096, 0, 4, 32, 8, 128, 0},
    [CD_LLM_OP_DECODE] = {4095, 64, 32, 8, 128, 0},
    [CD_LLM_OP_LATENT_PREFILL] = {2048, 0, 4, 64},
    [CD_LLM_OP_LATENT_DECODE] = {4095, 64, 64},
    [CD_LLM_OP_MOE] = {4096, 2048, 1024, 4, 64, 1, 1},
    [CD_LLM_OP_ALL_REDUCE] = {1e8, 8},
    [CD_LLM_OP_ALL_GATHER] = {1e8, 8},
    [CD_LLM_OP_REDUCE_SCATTER] = {1e8, 8},
    [CD_LLM_OP_ALL_TO_ALL] = {1e8, 8},
    [CD_LLM_OP_NORM] = {8192, 8192},
    [CD_LLM_OP_ELEMENTWISE] = {8192, 8192}};

static double base(const cd_llm_op_record *r, const cd_device *d) {
    cd_llm_op_estimate e;
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_estimate_of(r, d, &e, &err));
    assert_true(isfinite(e.base_s) && e.base_s > 0 && isfinite(e.roof_s) && isfinite(e.waves) &&
                isfinite(e.tiles_s) && isfinite(e.exp_s));
    return e.base_s;
}

/* Large operators are near their bound, never below it, and a faster device is never slower. */
TEST(near_the_bound) {
    const cd_device d = gpu();
    for (int k = 0; k < CD_LLM_OP_N_KIND; k++) {
        const cd_llm_op_record r = record((cd_llm_op_kind)k, sizes[k]);
        cd_llm_op_estimate e;
        cdmpp_err err = {0};
        assert_ok(cd_llm_op_estimate_of(&r, &d, &e, &err));
        if (!(e.base_s >= 0.99 * e.roof_s && e.base_s < 6 * e.roof_s))
            fail_msg("%s: %g s, bound %g", cd_llm_op_kind_name((cd_llm_op_kind)k), e.base_s,
                     e.roof_s);
        cd_device fast = d;
        fast.bandwidth_gb_s *= 2, fast.bf16_tflops *= 2, fast.fp32_gflops *= 2, fast.clock_mhz *= 2,
            fast.link_gb_s *= 2;
        assert_true(base(&r, &fast) < e.base_s);
    }
}

/* Twice the first size is never faster; of a large operator it is close to twice the time or
 * more. */
TEST(grows_with_its_axis) {
    const cd_device d = gpu();
    for (int k = 0; k < CD_LLM_OP_N_KIND; k++) {
        cd_llm_op_record r = record((cd_llm_op_kind)k, sizes[k]);
        const double full = base(&r, &d);
        r.size[0] *= 2;
        assert_true(base(&r, &d) > 1.5 * full);
        double before = 0;
        for (r.size[0] = 1; r.size[0] < 1e5; r.size[0] *= 2) {
            const double t = base(&r, &d);
            if (t < before * 0.999)
                fail_msg("%s of %g: %g s after %g", cd_llm_op_kind_name((cd_llm_op_kind)k),
                         r.size[0], t, before);
            before = t;
        }
    }
}

/* 2 m n k of a product, by hand; half of the square of a causal prefill; a window bounds both. */
TEST(operations) {
    const cd_device d = gpu();
    cd_llm_op_estimate e;
    cdmpp_err err = {0};
    cd_llm_op_record r = record(CD_LLM_OP_GEMM, (const double[CD_LLM_OP_MAX_SIZE]){2, 3, 5, 7});
    assert_ok(cd_llm_op_estimate_of(&r, &d, &e, &err));
    assert_close(e.flops, 2 * 2 * 3 * 5 * 7, 1e-12, 0);
    assert_close(e.bytes, 2 * 7 * (3 * 5 + 2 * 5 + 2 * 3), 1e-12, 0);
    r = record(CD_LLM_OP_PREFILL, (const double[CD_LLM_OP_MAX_SIZE]){3, 2, 1, 1, 1, 10, 0});
    assert_ok(cd_llm_op_estimate_of(&r, &d, &e, &err));
    assert_close(e.flops, 4 * 10 * (3 + 4 + 5), 1e-12, 0);
    r.size[6] = 4;
    assert_ok(cd_llm_op_estimate_of(&r, &d, &e, &err));
    assert_close(e.flops, 4 * 10 * (3 + 4 + 4), 1e-12, 0);
    r = record(CD_LLM_OP_DECODE, (const double[CD_LLM_OP_MAX_SIZE]){99, 1, 4, 2, 10, 0});
    assert_ok(cd_llm_op_estimate_of(&r, &d, &e, &err));
    assert_close(e.flops, 4 * 4 * 10 * 100, 1e-12, 0);
    r = record(CD_LLM_OP_ALL_REDUCE, (const double[CD_LLM_OP_MAX_SIZE]){800, 4});
    assert_ok(cd_llm_op_estimate_of(&r, &d, &e, &err));
    assert_close(e.bytes, 2 * 800 * 3 / 4, 1e-12, 0);
}

/* A product whose inputs and outputs stay in the L2 cache between calls does not wait for
 * memory. */
TEST(product_in_the_cache) {
    cd_device large = gpu(), small = gpu();
    const double size[CD_LLM_OP_MAX_SIZE] = {8192, 512, 512, 1};
    const cd_llm_op_record r = record(CD_LLM_OP_GEMM, size);
    small.l2_kb = 4096, large.l2_kb = 131072;
    small.bandwidth_gb_s = large.bandwidth_gb_s = 500;
    assert_true(base(&r, &large) < 0.8 * base(&r, &small));
}

/* Kernels for single query heads: only where a key head has many; the more of them the longer. */
TEST(heads_alone) {
    const cd_device d = gpu();
    cd_llm_op_estimate e[3];
    cdmpp_err err = {0};
    for (size_t i = 0; i < 3; i++) {
        const double size[CD_LLM_OP_MAX_SIZE] = {1023, 64, (double)(32 << i), 1, 128, 0};
        const cd_llm_op_record r = record(CD_LLM_OP_DECODE, size);
        assert_ok(cd_llm_op_estimate_of(&r, &d, &e[i], &err));
    }
    assert_true(e[0].alone_s == 0 && e[1].alone_s > e[1].base_s &&
                e[2].alone_s > 1.9 * e[1].alone_s);
    const double together = e[1].base_s;
    cd_llm_op_estimate_raise(&e[1], false, 0);
    assert_true(e[1].base_s == together);
    cd_llm_op_estimate_raise(&e[1], true, 0);
    assert_true(e[1].base_s == e[1].alone_s);
    cd_llm_op_estimate_raise(&e[1], false, 1);
    assert_true(e[1].base_s == 1);
}

TEST(what_cannot_run) {
    cd_device d = gpu();
    cd_llm_op_estimate e;
    static const struct {
        cd_llm_op_type t;
        const char *key, *say;
    } none[] = {{CD_LLM_OP_T_INT8, "int8_tops", "no units"},
                {CD_LLM_OP_T_NVFP4, "fp4_tflops", "no such number"}};
    for (size_t i = 0; i < 2; i++) {
        cdmpp_err err = {0};
        cd_llm_op_record r = record(CD_LLM_OP_GEMM, sizes[CD_LLM_OP_GEMM]);
        r.type = (uint8_t)none[i].t;
        assert_status(cd_llm_op_estimate_of(&r, &d, &e, &err), CDMPP_EMODEL);
        assert_string_equal(err.key, none[i].key);
        assert_non_null(strstr(err.msg, none[i].say));
    }
    cdmpp_err err = {0};
    const cd_llm_op_record c = record(CD_LLM_OP_ALL_REDUCE, sizes[CD_LLM_OP_ALL_REDUCE]),
                           g = record(CD_LLM_OP_GEMM, sizes[CD_LLM_OP_GEMM]);
    d.link_gb_s = 0;
    assert_status(cd_llm_op_estimate_of(&c, &d, &e, &err), CDMPP_EMODEL);
    assert_string_equal(err.key, "link_gb_s");
    d.kind = CD_DEVICE_CPU;
    assert_status(cd_llm_op_estimate_of(&g, &d, &e, NULL), CDMPP_EMODEL);
    assert_status(cd_llm_op_estimate_of(&c, &d, &e, NULL), CDMPP_EMODEL);
}

/* A board of little power computes slower, and only where it computes; a power that is not known
 * limits nothing, and none lifts a time above the sheet's. */
TEST(power) {
    const cd_llm_op_record large = record(CD_LLM_OP_GEMM, sizes[CD_LLM_OP_GEMM]);
    const double thin[CD_LLM_OP_MAX_SIZE] = {1, 8192, 8192, 1};
    const cd_llm_op_record read = record(CD_LLM_OP_GEMM, thin);
    cd_device unknown = gpu(), strong = gpu(), weak = gpu();
    strong.tdp_w = 2000, strong.process_nm = 5;
    weak.tdp_w = 100, weak.process_nm = 5;
    assert_true(base(&large, &weak) > 1.3 * base(&large, &strong));
    assert_true(base(&large, &strong) >= base(&large, &unknown));
    assert_close(base(&read, &weak), base(&read, &strong), 0.1, 0);
    weak.process_nm = 3;
    const double newer = base(&large, &weak);
    weak.process_nm = 7;
    assert_true(base(&large, &weak) > newer);
}

/* Loads that follow a power law take longer than balanced ones where tiles count, and touch fewer
 * experts where weights count. */
TEST(loads_of_experts) {
    const cd_device d = gpu();
    const double many[CD_LLM_OP_MAX_SIZE] = {16384, 2048, 1024, 4, 64, 1, 8};
    const double few[CD_LLM_OP_MAX_SIZE] = {16, 4096, 2048, 8, 256, 1, 1};
    cd_llm_op_record r = record(CD_LLM_OP_MOE, many);
    const double balanced = base(&r, &d);
    r.skew = 1.2;
    assert_true(base(&r, &d) > 1.2 * balanced);
    r = record(CD_LLM_OP_MOE, few);
    const double all = base(&r, &d);
    for (double skew = 0.5; skew < 3; skew += 0.25) { /* 1 is a form of its own */
        r.skew = skew;
        assert_true(base(&r, &d) <= all * 1.001);
    }
}

/* GPUs whose matrix units know no bfloat16, and those that have none, are estimated in the types
 * that they have. */
TEST(old_gpus) {
    cd_device d = gpu();
    cd_llm_op_record r = record(CD_LLM_OP_GEMM, sizes[CD_LLM_OP_GEMM]);
    d.bf16_tflops = 0, d.tdp_w = 300, d.process_nm = 12;
    r.type = r.kv = CD_LLM_OP_T_F16;
    const double tensor = base(&r, &d);
    r.type = r.kv = CD_LLM_OP_T_F32;
    d.tensor_tflops = 0;
    assert_true(base(&r, &d) > tensor);
}

/* What is kept between questions changes none: more devices than are kept, types, kinds, loads. */
TEST(what_is_known) {
    enum { DEVICES = 3 * CD_LLM_OP_MACHINES, N = 3000 };
    static cd_device d[DEVICES];
    static cd_llm_op_known known;
    cdmpp_err err = {0};
    for (size_t i = 0; i < DEVICES; i++)
        d[i] = gpu(), d[i].cores += (double)i, d[i].tdp_w = 300, d[i].process_nm = 5;
    for (uint64_t i = 0; i < N; i++) {
        const uint64_t w = cd_rng_at(3, i);
        const cd_llm_op_kind k = i % 2 ? CD_LLM_OP_MOE : (cd_llm_op_kind)(w % CD_LLM_OP_N_KIND);
        cd_llm_op_record r = record(k, sizes[k]);
        cd_llm_op_estimate one, kept;
        r.size[0] = (double)(1 << (w >> 8) % 16);
        if (k == CD_LLM_OP_MOE)
            r.size[4] = (double)(64 << (w >> 16) % 3), r.skew = (double)((w >> 24) % 4) * 0.5;
        r.type = w >> 32 & 1 ? CD_LLM_OP_T_FP8 : CD_LLM_OP_T_BF16;
        const cd_device *of = &d[(w >> 40) % DEVICES];
        assert_ok(cd_llm_op_estimate_of(&r, of, &one, &err));
        assert_ok(cd_llm_op_estimate_by(&r, of, &known, &kept, &err));
        assert_memory_equal(&one, &kept, sizeof one);
    }
    cd_device cpu = gpu();
    cpu.kind = CD_DEVICE_CPU;
    const cd_llm_op_record r = record(CD_LLM_OP_GEMM, sizes[CD_LLM_OP_GEMM]);
    cd_llm_op_estimate e;
    /* what cannot run is not kept as if it could */
    for (int i = 0; i < 2; i++)
        assert_status(cd_llm_op_estimate_by(&r, &cpu, &known, &e, &err), CDMPP_EMODEL);
}

/* All tiles and splits one after the other: the slow truth. */
static cd_llm_op_estimate slow_tiles(const cd_llm_op_machine *v, const cd_llm_op_record *r) {
    const double m = r->size[0], n = r->size[1], k = r->size[2], groups = r->size[3],
                 bytes = r->type == CD_LLM_OP_T_FP8 ? 1 : 2, fill = 1400 / v->clock;
    cd_llm_op_estimate e = {.tiles_s = INFINITY};
    for (double a = 16; a <= 256; a *= 2)
        for (double b = 32; b <= 256; b *= 2)
            for (double s = 1; s <= 32 && (s <= 1 || s * 128 <= k); s *= 2) {
                if (a * b > 32768 || (a > 16 && a / 2 >= m) || (b > 32 && b / 2 >= n)) continue;
                const double rounds = groups * ceil(m / a) * ceil(n / b) / v->sms * s,
                             l2 = v->l2_rate / v->sms;
                const double each =
                    fmax(2 * a * b * k / (v->peak / v->sms), (a + b) * bytes * k / l2) / s;
                const double time = fmax(1, ceil(rounds)) * each + fill +
                                    (s > 1 ? 8 * groups * m * n / v->l2_rate * s : 0);
                if (time < e.tiles_s)
                    e.tiles_s = time, e.waves = rounds, e.tile_m = a, e.tile_n = b, e.split = s;
            }
    return e;
}

/* Tiles that are passed over could not be faster. */
TEST(fastest_tile) {
    const cd_device d = gpu();
    static cd_llm_op_known known;
    cdmpp_err err = {0};
    for (uint64_t i = 0; i < 20000; i++) {
        double size[CD_LLM_OP_MAX_SIZE] = {0};
        for (uint64_t k = 0; k < 4; k++)
            size[k] = floor(exp2(cd_rng_unit(9, 4 * i + k) * (k == 3 ? 3 : 15)));
        /* powers of two have equal times */
        if (i % 2)
            for (int k = 0; k < 4; k++) size[k] = exp2(floor(log2(size[k])));
        cd_llm_op_record r = record(CD_LLM_OP_GEMM, size);
        cd_llm_op_estimate e;
        r.type = i % 3 ? CD_LLM_OP_T_BF16 : CD_LLM_OP_T_FP8;
        assert_ok(cd_llm_op_estimate_by(&r, &d, &known, &e, &err));
        const cd_llm_op_machine *v = known.machine[r.type];
        while (!v->device) v++;
        const cd_llm_op_estimate want = slow_tiles(v, &r);
        assert_true(e.tiles_s == want.tiles_s && e.tile_m == want.tile_m &&
                    e.tile_n == want.tile_n && e.split == want.split && e.waves == want.waves);
    }
}

/* GPUs of the data sheets in the order that everybody expects of large operators in bf16: the first
 * is not slower than the second. */
TEST(order_of_data_sheets) {
    static const char *const pair[][2] = {{"b200", "h100"},
                                          {"b300", "h100"},
                                          {"h200", "h100"},
                                          {"h100", "a100-sxm4-80gb"},
                                          {"h800", "a100-sxm4-80gb"},
                                          {"rtx4090", "a6000"},
                                          {"l40s", "l20"},
                                          {"l40s", "l4"},
                                          {"l20", "l4"},
                                          {"a6000", "l4"},
                                          {"h100", "l40s"},
                                          {"b200", "h200"},
                                          {"mi300x", "a100-sxm4-80gb"}};
    static const cd_llm_op_kind kind[] = {CD_LLM_OP_GEMM, CD_LLM_OP_PREFILL, CD_LLM_OP_DECODE,
                                          CD_LLM_OP_MOE, CD_LLM_OP_ALL_REDUCE};
    cd_device_table *devices;
    cd_diag diag = {0};
    cdmpp_err err = {0};
    const cd_device *a, *b;
    assert_ok(cd_device_table_load("configs/devices.yaml", &diag, &devices, &err));
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
        for (size_t k = 0; k < sizeof kind / sizeof *kind; k++) {
            const cd_llm_op_record r = record(kind[k], sizes[kind[k]]);
            assert_ok(cd_device_table_find(devices, pair[i][0], &a, &err));
            assert_ok(cd_device_table_find(devices, pair[i][1], &b, &err));
            /* exports have narrow links */
            if (a->link_gb_s < b->link_gb_s && kind[k] == CD_LLM_OP_ALL_REDUCE) continue;
            if (!(base(&r, a) < 1.02 * base(&r, b)))
                fail_msg("%s is slower than %s in %s", pair[i][0], pair[i][1],
                         cd_llm_op_kind_name(kind[k]));
        }
    /* the H20 has the memory of a Hopper and a seventh of its peak */
    assert_ok(cd_device_table_find(devices, "h20", &a, &err));
    assert_ok(cd_device_table_find(devices, "h100", &b, &err));
    cd_llm_op_record r = record(CD_LLM_OP_GEMM, sizes[CD_LLM_OP_GEMM]);
    assert_true(base(&r, a) > 3 * base(&r, b));
    r = record(CD_LLM_OP_DECODE, sizes[CD_LLM_OP_DECODE]);
    /* its memory is faster, and its few matrix units do not slow down its cache */
    assert_true(base(&r, a) < base(&r, b));
    cd_device_table_free(devices);
    cd_diag_free(&diag);
}

TESTS(NULL, NULL, what_is_known, fastest_tile, near_the_bound, grows_with_its_axis, operations,
      product_in_the_cache, heads_alone, what_cannot_run, power, loads_of_experts, old_gpus,
      order_of_data_sheets)
