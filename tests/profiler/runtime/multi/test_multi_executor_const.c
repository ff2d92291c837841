/* Constants of nets of devices: packed for the programs that want them so, in every memory, windows
 * too. */
#include <string.h>

#include "made_dense.h"
#include "noopencl.h"
#include "profiler/runtime/multi/multi.h"

static int up(void **state) { return dense_up(state, true); }

static const int64_t w0[2] = {K, N}, w1[2] = {N, N};

static void truth(fixture *f, const float *weights, float *out) {
    const cd_executor_net_tensor t[] = {
        {.bytes = 4 * M * K, .dtype = CD_F32, .role = CD_TENSOR_INPUT},
        {.bytes = 4 * K * N, .dtype = CD_F32, .role = CD_TENSOR_WEIGHT, .rank = 2, .shape = w0},
        {.bytes = 4 * M * N, .dtype = CD_F32, .role = CD_TENSOR_INNER},
        {.bytes = 4 * N * N, .dtype = CD_F32, .role = CD_TENSOR_WEIGHT, .rank = 2, .shape = w1},
        {.bytes = 4 * M * N, .dtype = CD_F32, .role = CD_TENSOR_RESULT}};
    const uint32_t a0[] = {0, 1, 2}, a1[] = {2, 3, 4};
    const cd_executor_net_step s[] = {{"first", &f->build[0], a0, NULL},
                                      {"second", &f->build[1], a1, NULL}};
    const cd_executor_net net = {5, 2, t, s};
    cdmpp_err err = {0};
    cd_executor *r;
    double total;
    assert_ok(cd_executor_open(&net, &(cd_executor_options){.threads = 1}, &r, &err));
    assert_ok(cd_executor_write(r, 1, weights, &err));
    assert_ok(cd_executor_write(r, 3, weights + K * N, &err));
    cd_executor_pass(r, NULL, &total);
    assert_ok(cd_executor_read(r, 4, out, &err));
    cd_executor_close(r);
}

/* Both weights are windows of one constant in the second device's memory; the first device has a
 * copy of its own of the first. */
static void on_two(fixture *f, const cd_multi_device *d) {
    const uint32_t m0 = d[0].memory, m1 = d[1].memory;
    const cd_multi_buffer b[] = {
        {.name = "x", .of = CD_MULTI_OWN, .bytes = 4 * M * K, .dtype = CD_F32},
        {.name = "weights",
         .memory = m1,
         .of = CD_MULTI_OWN,
         .bytes = 4 * (K + N) * N,
         .dtype = CD_F32,
         .constant = true},
        {.name = "w1",
         .memory = m1,
         .of = 1,
         .offset = 4 * K * N,
         .bytes = 4 * N * N,
         .dtype = CD_F32,
         .constant = true,
         .rank = 2,
         .shape = w1},
        {.name = "w0",
         .memory = m0,
         .of = CD_MULTI_OWN,
         .bytes = 4 * K * N,
         .dtype = CD_F32,
         .constant = true,
         .rank = 2,
         .shape = w0},
        {.name = "x there", .memory = m0, .of = CD_MULTI_OWN, .bytes = 4 * M * K, .dtype = CD_F32},
        {.name = "inner", .memory = m0, .of = CD_MULTI_OWN, .bytes = 4 * M * N, .dtype = CD_F32},
        {.name = "inner at home", .of = CD_MULTI_OWN, .bytes = 4 * M * N, .dtype = CD_F32},
        {.name = "inner there",
         .memory = m1,
         .of = CD_MULTI_OWN,
         .bytes = 4 * M * N,
         .dtype = CD_F32},
        {.name = "y", .memory = m1, .of = CD_MULTI_OWN, .bytes = 4 * M * N, .dtype = CD_F32}};
    const uint32_t a0[] = {4, 3, 5}, a1[] = {7, 2, 8}, after[] = {0, 1, 2, 3, 4};
    const cd_multi_copy whole = {.rank = 1, .from_stride = {1}, .to_stride = {1}, .size = 4};
    cd_multi_action a[] = {{.name = "x there", .device = 0, .copy = whole},
                           {.name = "first", .device = 0, .build = &f->build[0], .buffer = a0},
                           {.name = "inner home", .device = 0, .copy = whole},
                           {.name = "inner there", .device = 1, .copy = whole},
                           {.name = "second", .device = 1, .build = &f->build[1], .buffer = a1}};
    for (int k = 1; k < 5; k++) {
        a[k].n_after = 1;
        a[k].after = &after[k - 1];
    }
    const uint32_t ends[5][2] = {{0, 4}, {0, 0}, {5, 6}, {6, 7}, {0, 0}};
    for (int k = 0; k < 5; k++) {
        a[k].copy.from = ends[k][0];
        a[k].copy.to = ends[k][1];
        a[k].copy.n[0] = k ? M * N : M * K;
    }
    const cd_multi_net dn = {2, sizeof b / sizeof *b, 5, d, b, a};
    float weights[(K + N) * N], want[M * N], got[M * N];
    cdmpp_err err = {0};
    cd_multi_executor *r;
    assert_ok(cd_multi_executor_open(&dn, &r, &err));
    assert_ok(cd_multi_executor_fill(r, 0, 0, &err));
    for (int round = 0; round < 3; round++) {
        double total;
        for (int i = 0; i < (K + N) * N; i++) weights[i] = (float)((i * (round + 3)) % 7) - 3;
        truth(f, weights, want);
        assert_ok(cd_multi_executor_write(r, 3, weights, &err));
        /* all of it, or its window */
        if (round < 2) assert_ok(cd_multi_executor_write(r, 1, weights, &err));
        else assert_ok(cd_multi_executor_write(r, 2, weights + K * N, &err));
        assert_ok(cd_multi_executor_pass(r, NULL, &total, NULL, &err));
        assert_ok(cd_multi_executor_read(r, 8, got, &err));
        assert_memory_equal(want, got, sizeof want);
    }
    cd_multi_executor_close(r);
}

static const cd_multi_device cpu = {.name = "cpu0", .core = -1};

static void test_processors(void **state) {
    fixture *f = *state;
    on_two(f, (const cd_multi_device[]){cpu, {.name = "cpu1", .core = -1}});
    assert_true(f->code[0].buffer[1].n_digit > 0 && f->code[1].buffer[1].n_digit > 0);
}

static void test_native(void **state) {
    SKIP_WITHOUT_OPENCL();
    const cd_multi_device in_place = {.name = "ocl0", .kind = CD_MULTI_NATIVE, .core = -1};
    const cd_multi_device own = {.name = "ocl1", .kind = CD_MULTI_NATIVE, .core = -1, .memory = 1};
    on_two(*state, (const cd_multi_device[]){cpu, in_place});
    on_two(*state, (const cd_multi_device[]){cpu, own});
    on_two(*state, (const cd_multi_device[]){own, in_place});
    on_two(*state, (const cd_multi_device[]){
                       own, {.name = "ocl2", .kind = CD_MULTI_NATIVE, .core = -1, .memory = 7}});
}

TESTS(up, down, test_processors, test_native)
