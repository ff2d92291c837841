/* opfeature: base times against numbers worked out by hand; laws of the ratios. */
#include "learner/operators/library_op_feature.h"
#include "check.h"

#include <string.h>

static cd_device device(void) {
    return (cd_device){.name = "d",
                       .kind = CD_DEVICE_GPU,
                       .clock_mhz = 1000,
                       .cores = 10,
                       .cores_used = -1,
                       .lanes = 64,
                       .simd_bits = -1,
                       .mem_gb = 8,
                       .bandwidth_gb_s = 100,
                       .l1_kb = 64,
                       .l2_kb = 1024,
                       .l3_kb = 0,
                       .shared_kb = 64,
                       .fp32_gflops = 1280,
                       .fp32_matrix_gflops = 0,
                       .fp16_tflops = 2.56,
                       .tensor_tflops = 10.24,
                       .warp = 32,
                       .tdp_w = 300,
                       .process_nm = 12};
}

static cd_library_op_base base_of(const cd_library_op_record *r, const cd_device *d, float *x) {
    cd_library_op_base b;
    cdmpp_err err = {0};
    assert_ok(cd_library_op_feature(r, d, true, x, &b, &err));
    return b;
}

TEST(base_times) {
    const cd_device d = device();
    float x[CD_LIBRARY_OP_N_FEATURE];
    /* 2 * 2 * 100 * 200 * 300 operations at 1.28e12; 4 bytes of 2 * (20000 + 60000 + 30000) numbers
     * at 1e11 */
    cd_library_op_base b = base_of(
        &(cd_library_op_record){.kind = CD_LIBRARY_OP_BMM, .b = 2, .m = 100, .n = 300, .k = 200},
        &d, x);
    assert_close(b.flops, 24e6, 1e-12, 0);
    assert_close(b.bytes, 880e3, 1e-12, 0);
    assert_close(b.base_s, hypot(24e6 / 1.28e12, 880e3 / 1e11), 1e-12, 0);
    assert_close(b.floor_s, 24e6 / 1.28e12, 1e-12, 0);
    /* half precision: tensor units, half the bytes, no limit by power */
    b = base_of(&(cd_library_op_record){.kind = CD_LIBRARY_OP_BMM,
                                        .dtype = CD_LIBRARY_OP_DTYPE_F16,
                                        .b = 2,
                                        .m = 100,
                                        .n = 300,
                                        .k = 200},
                &d, x);
    assert_close(b.base_s, hypot(24e6 / 10.24e12, 440e3 / 1e11), 1e-12, 0);
    /* add: 3 tensors of 1e6 numbers, from memory and through the cores */
    b = base_of(
        &(cd_library_op_record){.kind = CD_LIBRARY_OP_ADD, .b = 1, .m = 1000, .n = 1000, .k = 1},
        &d, x);
    assert_close(b.base_s, 12e6 / 1e11 + 12e6 / 1.28e12 + 2e-5, 1e-12, 0);
    /* softmax of long rows reads them three times, but memory only once */
    b = base_of(
        &(cd_library_op_record){
            .kind = CD_LIBRARY_OP_SOFTMAX, .b = 1, .m = 1000, .n = 2000, .k = 1},
        &d, x);
    assert_close(b.base_s, 16e6 / 1e11 + 32e6 / 1.28e12 + 2e-5, 1e-12, 0);
    /* 3x3, stride 2, padding 1 on 2 images of 8 x 8 x 4 to 4 x 4 x 16 */
    b = base_of(&(cd_library_op_record){.kind = CD_LIBRARY_OP_CONV,
                                        .b = 1,
                                        .m = 32,
                                        .n = 16,
                                        .k = 36,
                                        .cin = 4,
                                        .ksize = 3,
                                        .stride = 2,
                                        .pad = 1,
                                        .size = 8},
                &d, x);
    assert_close(b.bytes, 4 * (2 * 64 * 4 + 36 * 16 + 32 * 16), 1e-12, 0);
    assert_close(b.floor_s, 0, 0, 0);
}

TEST(power_limits_long_calls) {
    cd_device d = device();
    float x[CD_LIBRARY_OP_N_FEATURE];
    const cd_library_op_record small = {
        .kind = CD_LIBRARY_OP_BMM, .b = 1, .m = 64, .n = 64, .k = 64};
    const cd_library_op_record large = {
        .kind = CD_LIBRARY_OP_BMM, .b = 1, .m = 8192, .n = 8192, .k = 8192};
    const double fast = base_of(&large, &d, x).base_s, quick = base_of(&small, &d, x).base_s;
    d.tdp_w = 0.5 * 0.85 * 1280 * 15e-3; /* half of what 85 % of the peak takes */
    assert_close(base_of(&large, &d, x).base_s, 2 * fast, 1e-3, 0);
    assert_close(base_of(&small, &d, x).base_s, quick, 5e-3, 0);
    d.process_nm = 5; /* a better process takes less */
    assert_true(base_of(&large, &d, x).base_s < 1.01 * fast);
    d.tdp_w = d.process_nm = CD_DEVICE_UNKNOWN; /* not known: no limit */
    assert_close(base_of(&large, &d, x).base_s, fast, 1e-12, 0);
}

/* Lanes that take every issue slot lose the slots that go to other instructions, whatever the
 * length of the call; a power limit that is tighter takes over in long ones. */
TEST(issue_limits_wide_cores) {
    cd_device d = device();
    float x[CD_LIBRARY_OP_N_FEATURE];
    const cd_library_op_record large = {
        .kind = CD_LIBRARY_OP_LINEAR, .b = 1, .m = 8192, .n = 8192, .k = 8192};
    const cd_library_op_record small = {
        .kind = CD_LIBRARY_OP_BMM, .b = 1, .m = 64, .n = 64, .k = 4096};
    const double fast = base_of(&large, &d, x).compute_s;
    assert_close(base_of(&large, &d, x).base_s, fast, 1e-3, 0);
    d.lanes = 128; /* the peak stays, what reaches it does not */
    assert_close(base_of(&large, &d, x).base_s, fast * 563 / 512, 1e-3, 0);
    const cd_library_op_base b = base_of(&small, &d, x);
    assert_close(b.base_s, hypot(b.compute_s * 563 / 512, b.memory_s), 1e-12, 0);
    assert_close(b.floor_s, b.compute_s, 1e-12, 0);
    d.tdp_w = 0.5 * 0.85 * 1280 * 15e-3;
    assert_close(base_of(&large, &d, x).base_s, 2 * fast, 1e-3, 0);
    d.tdp_w = 300;
    cd_library_op_record half = large;
    half.dtype = CD_LIBRARY_OP_DTYPE_F16; /* tensor units */
    assert_close(base_of(&half, &d, x).base_s, base_of(&half, &d, x).compute_s, 1e-2, 0);
    d.process_nm = 16; /* Pascal issues two */
    assert_close(base_of(&large, &d, x).base_s, fast, 1e-3, 0);
    d = device();
    d.lanes = 128;
    d.warp = 64; /* AMD */
    assert_close(base_of(&large, &d, x).base_s, fast, 1e-3, 0);
}

TEST(unseen_devices_look_alike) {
    uint8_t column[CD_LIBRARY_OP_N_FEATURE];
    for (int f = 0; f < CD_LIBRARY_OP_N_FAMILY; f++) {
        const size_t all = cd_library_op_feature_columns((cd_library_op_family)f, true, column),
                     n = cd_library_op_feature_columns((cd_library_op_family)f, false, column);
        assert_true(n > 3 && n < all);
        for (size_t i = 0; i < n; i++)
            assert_true(strcmp(cd_library_op_feature_name(column[i]), "power") != 0 &&
                        strcmp(cd_library_op_feature_name(column[i]), "cores") != 0);
    }
}

static void ratios_are_finite(void **s) {
    const cd_device d = device();
    (void)s;
    for (int k = 0; k < CD_N_LIBRARY_OP_KIND; k++)
        for (int big = 0; big < 2; big++) {
            const double v = big ? 1 << 20 : 1;
            float x[CD_LIBRARY_OP_N_FEATURE];
            uint8_t column[CD_LIBRARY_OP_N_FEATURE];
            cd_library_op_record r = {
                .kind = (cd_library_op_kind)k, .b = v, .m = v, .n = v, .k = v};
            if (k == CD_LIBRARY_OP_CONV) r.cin = r.ksize = r.stride = r.size = 1, r.k = 1;
            const cd_library_op_base b = base_of(&r, &d, x);
            const size_t n =
                cd_library_op_feature_columns(cd_library_op_family_of(r.kind), true, column);
            for (size_t i = 0; i < n; i++)
                if (!isfinite(x[i]))
                    fail_msg("%s: %s is %g", cd_library_op_kind_name(r.kind),
                             cd_library_op_feature_name(column[i]), (double)x[i]);
            assert_true(isfinite(b.base_s) && b.base_s > 0);
        }
}

TEST(devices_that_do_not_do) {
    cd_device d = device();
    const cd_library_op_record r = {.kind = CD_LIBRARY_OP_ADD, .b = 1, .m = 8, .n = 8, .k = 1};
    float x[CD_LIBRARY_OP_N_FEATURE];
    cd_library_op_base b;
    cdmpp_err err = {0};
    d.bandwidth_gb_s = CD_DEVICE_UNKNOWN;
    assert_status(cd_library_op_feature(&r, &d, true, x, &b, &err), CDMPP_EMODEL);
    assert_string_equal(err.key, "bandwidth_gb_s");
    d = device();
    d.kind = CD_DEVICE_CPU;
    assert_status(cd_library_op_feature(&r, &d, true, x, &b, &err), CDMPP_EMODEL);
}

TESTS(NULL, NULL, base_times, power_limits_long_calls, issue_limits_wide_cores,
      unseen_devices_look_alike, ratios_are_finite, devices_that_do_not_do)
