/* Every feature of an operator by name, against numbers worked out by hand. */
#include <string.h>

#include "check.h"
#include "learner/operators/library_op_feature.h"

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
                       .tdp_w = 8.16,
                       .process_nm = 12};
}

typedef struct {
    const char *name;
    double value; /* NaN: unknown */
} want;

/* Exactly these features, in whatever order. */
static void check(const cd_library_op_record *r, const cd_device *d, const want *w, size_t n) {
    float x[CD_LIBRARY_OP_N_FEATURE];
    uint8_t column[CD_LIBRARY_OP_N_FEATURE];
    cd_library_op_base base;
    cdmpp_err err = {0};
    assert_ok(cd_library_op_feature(r, d, true, x, &base, &err));
    assert_int_equal(cd_library_op_feature_columns(cd_library_op_family_of(r->kind), true, column),
                     n);
    for (size_t k = 0; k < n; k++) {
        size_t i = 0;
        while (i < n && strcmp(cd_library_op_feature_name(column[i]), w[k].name) != 0) i++;
        if (i == n) fail_msg("no feature %s", w[k].name);
        const double got = (double)x[i];
        if (isnan(w[k].value) ? !isnan(got)
                              : !(fabs(got - w[k].value) <= 1e-6 * fmax(1, fabs(got))))
            fail_msg("%s is %.9g, not %.9g", w[k].name, got, w[k].value);
    }
}
#define CHECK(r, d, w) check((r), (d), (w), sizeof(w) / sizeof *(w))

/* At 8.16 W the chip holds half of its 1280 GFLOP/s: 0.85 of them take 16.32 W at 15 pJ each. */
#define OF_DEVICE(peak)                                                                            \
    {"process", 12}, {"balance", log2((peak) / 100e9)}, {"cores", log2(10)}, {"lanes", 64},        \
        {"power", 8.16 / 1280}, {"throttle", 0.5}, {                                               \
        "clock", 1000                                                                              \
    }

/* Three products of 100 x 300 of length 200: blocks of a x b rows and columns, three times, on ten
 * cores. */
static void test_products(void **state) {
    (void)state;
    const cd_device d = device();
    const double flops = 2 * 3 * 100.0 * 200 * 300,
                 bytes = 4 * 3 * (100.0 * 200 + 200 * 300 + 100 * 300);
    const double compute = flops / 1280e9, memory = bytes / 100e9;
    const double held = 1 - 0.5 * compute / (compute + 1e-4); /* the limit acts in long calls */
    const want w[] = {{"intensity", log2(compute / memory)},
                      {"base", log2(1e6 * hypot(compute / held, memory))},
                      {"waves_128x128", log2(0.9)},
                      {"full_128x128", 0.9}, /* 1 x 3 */
                      {"waves_128x64", log2(1.5)},
                      {"full_128x64", 0.75}, /* 1 x 5 */
                      {"waves_64x64", log2(3)},
                      {"full_64x64", 1}, /* 2 x 5 */
                      {"waves_32x32", log2(12)},
                      {"full_32x32", 1}, /* 4 x 10 */
                      {"waves_128x32", log2(3)},
                      {"full_128x32", 1}, /* 1 x 10 */
                      {"waves_32x128", log2(3.6)},
                      {"full_32x128", 0.9}, /* 4 x 3 */
                      {"fill_m32", 100.0 / 128},
                      {"fill_n32", 300.0 / 320},
                      {"fill_m64", 100.0 / 128},
                      {"fill_n64", 300.0 / 320},
                      {"fill_m128", 100.0 / 128},
                      {"fill_n128", 300.0 / 384},
                      {"k", log2(200)},
                      {"m", log2(100)},
                      {"n", log2(300)},
                      {"b", log2(3)},
                      {"batched", 1},
                      OF_DEVICE(1280e9)};
    CHECK(
        &((cd_library_op_record){.kind = CD_LIBRARY_OP_BMM, .b = 3, .m = 100, .n = 300, .k = 200}),
        &d, w);
}

/* The same by hand for a convolution: 3 x 3 at stride 2 on 8 x 8 x 4, two images, 16 results. */
static void test_convolution(void **state) {
    (void)state;
    const cd_device d = device();
    const double flops = 2 * 32.0 * 16 * 36, bytes = 4 * (2.0 * 64 * 4 + 36 * 16 + 32 * 16);
    const double compute = flops / 1280e9, memory = bytes / 100e9,
                 held = 1 - 0.5 * compute / (compute + 1e-4);
    const want w[] = {{"intensity", log2(compute / memory)},
                      {"base", log2(1e6 * hypot(compute / held, memory))},
                      {"waves_128x128", log2(0.1)},
                      {"full_128x128", 0.1},
                      {"waves_128x64", log2(0.1)},
                      {"full_128x64", 0.1},
                      {"waves_64x64", log2(0.1)},
                      {"full_64x64", 0.1},
                      {"waves_32x32", log2(0.1)},
                      {"full_32x32", 0.1},
                      {"waves_128x32", log2(0.1)},
                      {"full_128x32", 0.1},
                      {"waves_32x128", log2(0.1)},
                      {"full_32x128", 0.1},
                      {"fill_m32", 1},
                      {"fill_n32", 0.5},
                      {"fill_m64", 0.5},
                      {"fill_n64", 0.25},
                      {"fill_m128", 0.25},
                      {"fill_n128", 0.125},
                      {"k", log2(36)},
                      {"m", 5},
                      {"n", 4},
                      {"b", 0},
                      {"batched", 0},
                      {"kernel", 3},
                      {"stride", 2},
                      {"channels", 2},
                      OF_DEVICE(1280e9)};
    CHECK(&((cd_library_op_record){.kind = CD_LIBRARY_OP_CONV,
                                   .b = 1,
                                   .m = 32,
                                   .n = 16,
                                   .k = 36,
                                   .cin = 4,
                                   .ksize = 3,
                                   .stride = 2,
                                   .pad = 1,
                                   .size = 8}),
          &d, w);
}

static void test_elements(void **state) {
    static const struct {
        double n, aligned, long_row;
    } row[] = {{1000, 1, 0}, {1024, 1, 0}, {1025, 0, 1}, {1026, 0, 1}, {1028, 1, 1}};
    (void)state;
    const cd_device d = device();
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        const double n = row[k].n, all = 500 * n,
                     seconds = 4 * all * 3 / 100e9 + 3 * 4 * all / 1280e9 + 2e-5;
        const want w[] = {{"base", log2(1e6 * seconds)},
                          {"n", log2(n)},
                          {"op", CD_LIBRARY_OP_ADD},
                          {"inputs", 2},
                          {"aligned", row[k].aligned},
                          {"long_row", row[k].long_row},
                          {"row_cache", log2(4 * n / (64 * 1024 / 8.0))},
                          OF_DEVICE(1280e9)};
        CHECK(
            &((cd_library_op_record){.kind = CD_LIBRARY_OP_ADD, .b = 1, .m = 500, .n = n, .k = 1}),
            &d, w);
    }
}

/* Half precision: tensor units for products, half the bytes of a row. */
static void test_half_precision(void **state) {
    (void)state;
    const cd_device d = device();
    const double all = 500.0 * 64, seconds = 2 * all * 2 / 100e9 + 2 * 4 * all / 1280e9 + 2e-5;
    const want w[] = {
        {"base", log2(1e6 * seconds)},        {"n", 6},         {"aligned", 1}, {"long_row", 0},
        {"row_cache", log2(2 * 64 / 8192.0)}, OF_DEVICE(2560e9)};
    CHECK(&((cd_library_op_record){.kind = CD_LIBRARY_OP_SOFTMAX,
                                   .dtype = CD_LIBRARY_OP_DTYPE_F16,
                                   .b = 1,
                                   .m = 500,
                                   .n = 64,
                                   .k = 1}),
          &d, w);
}

static void test_unknown_numbers_stay_unknown(void **state) {
    (void)state;
    cd_device d = device();
    d.tdp_w = d.process_nm = d.lanes = d.clock_mhz = CD_DEVICE_UNKNOWN;
    const double all = 500.0 * 64, seconds = 4 * all * 2 / 100e9 + 2 * 4 * all / 1280e9 + 2e-5;
    const want w[] = {{"base", log2(1e6 * seconds)},
                      {"n", 6},
                      {"aligned", 1},
                      {"long_row", 0},
                      {"row_cache", log2(4 * 64 / 8192.0)},
                      {"process", NAN},
                      {"balance", log2(12.8)},
                      {"cores", log2(10)},
                      {"lanes", NAN},
                      {"power", NAN},
                      {"throttle", 1},
                      {"clock", NAN}};
    CHECK(
        &((cd_library_op_record){.kind = CD_LIBRARY_OP_SOFTMAX, .b = 1, .m = 500, .n = 64, .k = 1}),
        &d, w);
}

TESTS(NULL, NULL, test_products, test_convolution, test_elements, test_half_precision,
      test_unknown_numbers_stay_unknown)
