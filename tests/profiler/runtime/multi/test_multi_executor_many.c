/* Nets with more actions than fit in one piece of memory. */
#include "check.h"
#include "fault.h"
#include "profiler/runtime/multi/multi.h"

enum { N = 6000, N_DEVICE = 3 };

static cd_multi_action action[N];

/* A byte each, all on the first device. */
static cd_multi_net made(void) {
    static const cd_multi_device device[N_DEVICE] = {{.name = "a", .core = -1}, {.name = "b", .core = -1}, {.name = "c", .core = -1}};
    static const cd_multi_buffer buffer[2] = {{.name = "x", .of = CD_MULTI_OWN, .bytes = N}, {.name = "y", .of = CD_MULTI_OWN, .bytes = N}};
    for (uint32_t k = 0; k < N; k++) action[k] = (cd_multi_action){.name = "byte", .copy = {.from = 0, .to = 1, .from_first = k, .to_first = N - 1 - (int64_t)k, .size = 1}};
    return (cd_multi_net){N_DEVICE, 2, N, device, buffer, action};
}

static void test_many(void **state) {
    (void)state;
    static unsigned char x[N], y[N];
    const cd_multi_net dn = made();
    cdmpp_err err = {0};
    cd_multi_executor *r;
    double total;
    assert_ok(cd_multi_executor_open(&dn, &r, &err));
    for (uint32_t k = 0; k < N; k++) x[k] = (unsigned char)(k % 251);
    assert_ok(cd_multi_executor_write(r, 0, x, &err));
    assert_ok(cd_multi_executor_pass(r, NULL, &total, NULL, &err));
    assert_ok(cd_multi_executor_read(r, 1, y, &err));
    for (uint32_t k = 0; k < N; k++) assert_int_equal(y[N - 1 - k], x[k]);
    cd_multi_executor_close(r);
}

static void test_no_memory(void **state) {
    (void)state;
    const cd_multi_net dn = made();
    FAULT_SWEEP(f, 1) {
        cd_multi_executor *r = NULL;
        f.st = cd_multi_executor_open(&dn, &r, &f.err);
        if (!f.st) cd_multi_executor_close(r);
    }
}

TESTS(NULL, NULL, test_many, test_no_memory)
