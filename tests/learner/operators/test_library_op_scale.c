/* library_op_scale: closed forms by the shape of an operator; intervals; what cannot be scaled.
 * Models are in tests/learner/train. */
#include "learner/operators/operators.h"
#include "check.h"

#include <math.h>
#include <string.h>

/* 1000 GFLOP/s, 100 GB/s; the other 4 times the bandwidth and 8 times the rest. */
static cd_device device(const char *name, double gflops, double cores, double bandwidth) {
    cd_device d = {.name = name, .kind = CD_DEVICE_GPU};
    d.clock_mhz = 1000;
    d.cores = cores;
    d.bandwidth_gb_s = bandwidth;
    d.fp32_gflops = gflops;
    d.fp32_matrix_gflops = d.tensor_tflops = d.fp16_tflops = CD_DEVICE_UNKNOWN;
    d.tdp_w = d.process_nm = CD_DEVICE_UNKNOWN;
    d.l1_kb = 64;
    d.core_threads = 2048;
    return d;
}

static cd_library_op_scaled scaled(const cd_library_op_record *r, const cd_device *from,
                                   const cd_device *to) {
    cd_library_op_scaled s = {0};
    cdmpp_err err = {0};
    assert_ok(cd_library_op_scale(NULL, r, 1, from, to, &s, &err));
    return s;
}

/* 1024 cubed: 2^31 operations, 3 * 2^22 bytes: 170.67 operations a byte. The ridge of the
 * destination: 8000 / 400 = 20. */
TEST(a_product_scales_by_its_own_intensity) {
    const cd_device slow = device("slow", 1000, 10, 100), fast = device("fast", 8000, 80, 400);
    const cd_library_op_record r = {
        .kind = CD_LIBRARY_OP_BMM, .b = 1, .m = 1024, .n = 1024, .k = 1024, .latency_s = 1e-2};
    const cd_library_op_scaled s = scaled(&r, &slow, &fast);
    const double gamma = 0.5 * 20 / (2.0 * 1024 / 12);
    assert_int_equal(s.closed.form, CD_WAVE_SCALE_ROOFLINE);
    assert_close(s.closed.gamma, gamma, 1e-9, 0); /* 0.0586 */
    assert_close(s.latency_s, 1e-2 * pow(0.25, gamma) * pow(0.125, 1 - gamma), 1e-9, 0);
    assert_true(s.latency_s == s.closed.time_s && isnan(s.from_s) && !s.unlike);
    assert_true(s.low_s < s.latency_s && s.latency_s < s.high_s);
    assert_close(s.low_s * s.high_s, s.latency_s * s.latency_s, 1e-9, 0);
}

/* Of add one operation for 12 bytes: 1 / 12 / 20 of the ridge. */
TEST(an_elementwise_operator_scales_by_bandwidth) {
    const cd_device slow = device("slow", 1000, 10, 100), fast = device("fast", 8000, 80, 400);
    const cd_library_op_record r = {
        .kind = CD_LIBRARY_OP_ADD, .b = 1, .m = 4096, .n = 4096, .k = 1, .latency_s = 1e-2};
    assert_close(scaled(&r, &slow, &fast).closed.gamma, 1 - 0.5 / 240, 1e-6, 0);
}

TEST(launch_and_grid_come_from_the_record) {
    const cd_device slow = device("slow", 1000, 10, 100), fast = device("fast", 8000, 80, 400);
    cd_library_op_record r = {.kind = CD_LIBRARY_OP_ADD,
                              .b = 1,
                              .m = 4,
                              .n = 1024,
                              .k = 1,
                              .latency_s = 1e-4,
                              .launch_s = 1e-4,
                              .blocks = 4,
                              .block_threads = 256};
    assert_close(scaled(&r, &slow, &fast).latency_s, 1e-4, 1e-12, 0); /* all of it is launching */
    assert_int_equal(scaled(&r, &slow, &fast).closed.form, CD_WAVE_SCALE_WAVES);
    r.blocks = 0;
    assert_int_equal(scaled(&r, &slow, &fast).closed.form, CD_WAVE_SCALE_ROOFLINE);
}

/* A device without a peak has no ridge. Nobody measured that form, so it has no interval. */
TEST(bandwidth_alone_has_no_interval) {
    const cd_device slow = device("slow", 1000, 10, 100),
                    dark = device("dark", CD_DEVICE_UNKNOWN, 80, 400);
    const cd_library_op_record r = {
        .kind = CD_LIBRARY_OP_ADD, .b = 1, .m = 4, .n = 1024, .k = 1, .latency_s = 1e-4};
    const cd_library_op_scaled s = scaled(&r, &slow, &dark);
    assert_int_equal(s.closed.form, CD_WAVE_SCALE_BANDWIDTH);
    assert_close(s.latency_s, 0.25e-4, 1e-12, 0);
    assert_true(isnan(s.low_s) && isnan(s.high_s));
}

TEST(a_row_without_a_time_is_named) {
    const cd_device slow = device("slow", 1000, 10, 100), fast = device("fast", 8000, 80, 400);
    const cd_library_op_record r[2] = {
        {.kind = CD_LIBRARY_OP_ADD, .b = 1, .m = 4, .n = 8, .k = 1, .latency_s = 1},
        {.kind = CD_LIBRARY_OP_ADD, .b = 1, .m = 4, .n = 8, .k = 1}};
    cd_library_op_scaled s[2];
    cdmpp_err err = {0};
    assert_status(cd_library_op_scale(NULL, r, 2, &slow, &fast, s, &err), CDMPP_ERANGE);
    assert_string_equal(err.key, "[1]");
}

TESTS(NULL, NULL, a_product_scales_by_its_own_intensity,
      an_elementwise_operator_scales_by_bandwidth, launch_and_grid_come_from_the_record,
      bandwidth_alone_has_no_interval, a_row_without_a_time_is_named)
