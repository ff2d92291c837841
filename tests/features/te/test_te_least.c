/* The least that definitions ask of a device, counted by hand: products, padding, what is read in
 * part, types. */
#include "check.h"

#include "features/device/device.h"
#include "prog.h"

#define PRODUCT(m, k, n, type)                                                                     \
    "\"ops\": [{\"name\": \"A\", \"shape\": [" #m ", " #k "], \"dtype\": \"" type "\"},"           \
    "{\"name\": \"B\", \"shape\": [" #k ", " #n "], \"dtype\": \"" type "\"},"                     \
    "{\"name\": \"P\", \"axis\": [[\"i\", 0, " #m "], [\"j\", 0, " #n                              \
    "]], \"reduce_axis\": [[\"k\", 0, " #k "]],"                                                   \
    "\"reduce\": \"sum\", \"body\": \"A[i, k]*B[k, j]\"}], \"args\": [\"A\", \"B\", \"P\"]"
#define ONE(body)                                                                                  \
    "\"ops\": [{\"name\": \"A\", \"shape\": [64, 64], \"dtype\": \"float32\"},"                    \
    "{\"name\": \"E\", \"axis\": [[\"i\", 0, 64], [\"j\", 0, 64]], \"body\": \"" body              \
    "\"}], \"args\": [\"A\", \"E\"]"
/* 8 elements of A between zeros, 2 on each side, and sums of 5 of these. */
#define PADDED                                                                                     \
    "\"ops\": [{\"name\": \"A\", \"shape\": [8], \"dtype\": \"float32\"}, {\"name\": \"B\", "      \
    "\"shape\": [5], \"dtype\": \"float32\"},"                                                     \
    "{\"name\": \"Z\", \"axis\": [[\"i\", 0, 12]], \"body\": \"if_then_else(i >= 2 && i < 10, "    \
    "A[i - 2], 0.0)\"},"                                                                           \
    "{\"name\": \"S\", \"axis\": [[\"i\", 0, 8]], \"reduce_axis\": [[\"k\", 0, 5]], \"reduce\": "  \
    "\"sum\", \"body\": \"Z[i + k]*B[k]\"}],"                                                      \
    "\"args\": [\"A\", \"B\", \"S\"]"

static const cd_te_least *least_of(const char *text, cd_task_registry **tasks) {
    cdmpp_err err = {0};
    assert_ok(prog_tasks(&text, 1, tasks, &err));
    return &cd_task_registry_at(*tasks, 0)->dag->least;
}

TEST(counted_by_hand) {
    static const struct {
        const char *text;
        cd_te_least_type type;
        double flop, bytes;
    } t[] = {
        {PRODUCT(128, 64, 32, "float32"), CD_TE_LEAST_F32, 2 * 128 * 64 * 32,
         4 * (128 * 64 + 64 * 32 + 128 * 32)},
        {PRODUCT(128, 64, 32, "float16"), CD_TE_LEAST_F16, 2 * 128 * 64 * 32,
         2 * (128 * 64 + 64 * 32 + 128 * 32)},
        {PRODUCT(128, 64, 32, "bfloat16"), CD_TE_LEAST_BF16, 2 * 128 * 64 * 32,
         2 * (128 * 64 + 64 * 32 + 128 * 32)},
        {PRODUCT(128, 64, 32, "float64"), CD_TE_LEAST_F64, 2 * 128 * 64 * 32,
         8 * (128 * 64 + 64 * 32 + 128 * 32)},
        /* units for integers are not described */
        {PRODUCT(128, 64, 32, "int8"), CD_TE_LEAST_F32, 0, 128 * 64 + 64 * 32 + 128 * 32},
        {ONE("A[i, j] + 1"), CD_TE_LEAST_F32, 0, 4 * 2 * 64 * 64},
        {ONE("A[j, i]"), CD_TE_LEAST_F32, 0, 4 * 2 * 64 * 64},
        {ONE("A[i, i]"), CD_TE_LEAST_F32, 0, 4 * 64 * 64}, /* a diagonal may be all that is read */
        {ONE("if_then_else(i < 3, A[i, j], 0.0)"), CD_TE_LEAST_F32, 0, 4 * 64 * 64},
        {PADDED, CD_TE_LEAST_F32, 2 * 8 * 5 * 8 / 12.0, 4 * (5 + 8)}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cd_task_registry *tasks;
        const cd_te_least *l = least_of(t[k].text, &tasks);
        for (int type = 0; type < CD_TE_N_LEAST; type++)
            assert_close(l->flop[type], type == (int)t[k].type ? t[k].flop : 0, 1e-12, 0);
        assert_close(l->bytes, t[k].bytes, 1e-12, 0);
        cd_task_registry_free(tasks);
    }
}

static cd_device unknown(cd_device_kind kind) {
    cd_device d = {.kind = kind};
#define X(key, low, high, unit, meaning) d.key = CD_DEVICE_UNKNOWN;
#include "features/device/device_keys.def"
    return d;
}

/* Seconds: operations over the peak of their type, or bytes beyond the cache over the bandwidth;
 * what is not described bounds nothing. */
TEST(seconds_on_a_device) {
    cd_device d = unknown(CD_DEVICE_GPU);
    cd_te_least w = {.flop = {[CD_TE_LEAST_F32] = 1e12}, .bytes = 1e9};
    assert_close(cd_device_least_s(NULL, &w), 0, 0, 0);
    assert_close(cd_device_least_s(&d, &w), 0, 0, 0);
    d.fp32_gflops = 1000;
    assert_close(cd_device_least_s(&d, &w), 1, 1e-12, 0);
    d.fp32_matrix_gflops = 4000;
    assert_close(cd_device_least_s(&d, &w), 0.25, 1e-12, 0);
    d.kind = CD_DEVICE_CPU, d.cores = 8, d.cores_used = 2; /* a quarter, at twice the base clock */
    assert_close(cd_device_least_s(&d, &w), 0.5, 1e-12, 0);
    w.flop[CD_TE_LEAST_F32] = 0;
    d.bandwidth_gb_s = 10, d.l2_kb = 0, d.l3_kb = 100e6 / 1024;
    assert_close(cd_device_least_s(&d, &w), 0.09, 1e-9, 0);
    w.bytes = 100e6;
    assert_close(cd_device_least_s(&d, &w), 0, 0, 0);
}

TEST(peaks_of_types) {
    cd_device d = unknown(CD_DEVICE_GPU);
    d.fp32_gflops = 1000;
    assert_true(cd_device_peak(&d, CD_TE_LEAST_F16) < 0 &&
                cd_device_peak(&d, CD_TE_LEAST_BF16) < 0 &&
                cd_device_peak(&d, CD_TE_LEAST_F64) < 0);
    /* 0: as float32 */
    d.fp16_tflops = 2, d.tensor_tflops = 0, d.bf16_tflops = 0, d.fp64_gflops = 500;
    assert_close(cd_device_peak(&d, CD_TE_LEAST_F16), 2e12, 1e-12, 0);
    assert_close(cd_device_peak(&d, CD_TE_LEAST_BF16), 1e12, 1e-12, 0);
    assert_close(cd_device_peak(&d, CD_TE_LEAST_F64), 5e11, 1e-12, 0);
    d.tensor_tflops = 8, d.bf16_tflops = 8;
    assert_close(cd_device_peak(&d, CD_TE_LEAST_F16), 8e12, 1e-12, 0);
    assert_close(cd_device_peak(&d, CD_TE_LEAST_BF16), 8e12, 1e-12, 0);
}

TESTS(NULL, NULL, counted_by_hand, seconds_on_a_device, peaks_of_types)
