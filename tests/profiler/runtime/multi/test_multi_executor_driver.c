/* Drivers that fail, are late or have nothing to do: entry points of a net's devices replaced by
 * some that misbehave. */
#include <pthread.h>
#include <unistd.h>

#include "check.h"
#include "made_devnet_up.h"
#include "noopencl.h"
#include "profiler/runtime/multi/multi_executor_internal.h"

/* ---- a net: 0 and 1 inputs, 2 = f(0, 1) on the OpenCL device, 3 = copy of 2, and 4 = copy of 3 on
 * the processor ---- */

typedef struct {
    cd_multi_net dn;
    cd_multi_device device[2];
    cd_multi_buffer buffer[6];
    cd_multi_action action[4];
    uint32_t arg[3], after[4];
    cd_multi_executor *net;
    cd_opencl_api *api, real;
} rig;

static cd_multi_action copy_of(uint32_t device, uint32_t from, uint32_t to, const uint32_t *after) {
    return (cd_multi_action){.name = "copy",
                             .device = device,
                             .n_after = 1,
                             .after = after,
                             .copy = {from, to, 1, {MD_N}, {1}, {1}, 0, 0, 4}};
}

static void rig_up(rig *g, cd_multi_device_kind kind, const cd_build *build, uint32_t memory) {
    static const int64_t shape[2] = {MD_ROWS, MD_COLS};
    cdmpp_err err = {0};
    *g = (rig){.device = {{.name = "cpu0", .core = -1},
                          {.name = "ocl0", .kind = kind, .core = -1, .memory = memory}},
               .arg = {0, 1, 2},
               .after = {0, 0, 1}};
    for (uint32_t k = 0; k < 6; k++)
        g->buffer[k] = (cd_multi_buffer){.name = "b",
                                         .of = CD_MULTI_OWN,
                                         .bytes = 4 * MD_N,
                                         .dtype = CD_F32,
                                         .rank = 2,
                                         .shape = shape,
                                         .memory = k < 3 ? memory : 0};
    g->action[0] = (cd_multi_action){.name = "one", .device = 1, .build = build, .buffer = g->arg};
    g->action[1] = copy_of(1, 2, 3, &g->after[1]);
    g->action[2] = copy_of(0, 3, 4, &g->after[2]);
    g->dn = (cd_multi_net){2, 6, 3, g->device, g->buffer, g->action};
    assert_ok(cd_multi_executor_open(&g->dn, &g->net, &err));
    for (uint32_t k = 0; k < 2; k++) assert_ok(cd_multi_executor_fill(g->net, k, k, &err));
    /* the backend's own: no constant */
    g->api = (cd_opencl_api *)(uintptr_t)&g->net->worker[1].cl->api;
    g->real = *g->api;
}

static bool is_zero(cd_multi_executor *r, uint32_t buffer) {
    float x[MD_N];
    bool zero = true;
    cdmpp_err err = {0};
    assert_ok(cd_multi_executor_read(r, buffer, x, &err));
    for (uint32_t k = 0; k < MD_N; k++) zero = zero && x[k] == 0;
    return zero;
}

static void pass_fails(rig *g, const char *words) {
    cd_multi_action_time ran[3];
    double total;
    uint32_t failed = 99;
    cdmpp_err err = {0};
    assert_int_equal(cd_multi_executor_pass(g->net, ran, &total, &failed, &err), CDMPP_EBACKEND);
    assert_int_equal(failed, 1);
    assert_non_null(strstr(err.msg, words));
    for (uint32_t k = 0; k < 3; k++) assert_false(ran[k].done);
}

/* ---- native kernels that a driver keeps, and runs when it likes ---- */

static struct {
    void (*run)(void *);
    unsigned char arg[64];
    int n;
} kept;

static int32_t keep_kernel(cd_cl q, void (*run)(void *), void *arg, size_t n, uint32_t n_buffer,
                           const cd_cl *b, const void **place, uint32_t n_wait, const cd_cl *w,
                           cd_cl *event) {
    (void)q, (void)n_buffer, (void)b, (void)place, (void)n_wait, (void)w, (void)event;
    assert_true(n <= sizeof kept.arg);
    memcpy(kept.arg, arg, n);
    kept.run = run;
    kept.n++;
    return 0;
}

static int32_t fail_finish(cd_cl q) {
    (void)q;
    return -5;
}

static void test_late_kernel(void **state) {
    (void)state;
    SKIP_WITHOUT_OPENCL();
    rig g;
    rig_up(&g, CD_MULTI_NATIVE, &programs.build[0], 0);
    kept.n = 0;
    g.api->clEnqueueNativeKernel = keep_kernel;
    g.api->clFinish = fail_finish;
    pass_fails(&g, "native kernel");
    assert_int_equal(kept.n, 1);
    kept.run(kept.arg); /* after the pass */
    assert_true(is_zero(g.net, 2) && is_zero(g.net, 3));
    *g.api = g.real; /* the driver is well again: nobody knows what it still has */
    pass_fails(&g, "in a pass before");
    assert_true(is_zero(g.net, 2));
    cd_multi_executor_close(g.net);
}

/* A driver that says that all is done, but did not run the kernel. */
static int32_t no_finish(cd_cl q) {
    (void)q;
    return 0;
}

static void test_forgotten_kernel(void **state) {
    (void)state;
    SKIP_WITHOUT_OPENCL();
    rig g;
    rig_up(&g, CD_MULTI_NATIVE, &programs.build[0], 0);
    kept.n = 0;
    g.api->clEnqueueNativeKernel = keep_kernel;
    g.api->clFinish = no_finish;
    pass_fails(&g, "native kernel");
    pass_fails(&g, "in a pass before");
    kept.run(kept.arg);
    assert_true(is_zero(g.net, 2) && is_zero(g.net, 3));
    *g.api = g.real;
    cd_multi_executor_close(g.net);
}

/* ---- a kernel that is at work while the driver gives up ---- */

static pthread_t thread;
static atomic_bool begun, ended;

static void at_work(void *const *arg) {
    (void)arg;
    atomic_store(&begun, true);
    usleep(30000);
    atomic_store(&ended, true);
}

static void *run_kept(void *arg) {
    (void)arg;
    kept.run(kept.arg);
    return NULL;
}

static int32_t fail_at_work(cd_cl q) {
    (void)q;
    assert_int_equal(pthread_create(&thread, NULL, run_kept, NULL), 0);
    while (!atomic_load(&begun)) usleep(100);
    return -5;
}

static void test_kernel_at_work(void **state) {
    (void)state;
    SKIP_WITHOUT_OPENCL();
    rig g;
    double total;
    uint32_t failed;
    cdmpp_err err = {0};
    rig_up(&g, CD_MULTI_NATIVE, &programs.build[0], 0);
    g.net->step[0].entry = at_work;
    g.api->clEnqueueNativeKernel = keep_kernel;
    g.api->clFinish = fail_at_work;
    assert_int_equal(cd_multi_executor_pass(g.net, NULL, &total, &failed, &err), CDMPP_EBACKEND);
    /* who reads inputs now, to do it again elsewhere, reads what nobody writes */
    assert_true(atomic_load(&ended));
    assert_int_equal(pthread_join(thread, NULL), 0);
    *g.api = g.real;
    cd_multi_executor_close(g.net);
}

/* ---- words about events ---- */

static struct {
    void (*note)(cd_cl, int32_t, void *);
    void *ctx;
} word;

static int32_t keep_word(cd_cl e, int32_t when, void (*note)(cd_cl, int32_t, void *), void *ctx) {
    (void)e, (void)when;
    word.note = note;
    word.ctx = ctx;
    return 0;
}

static void test_late_word(void **state) {
    (void)state;
    SKIP_WITHOUT_OPENCL();
    rig g;
    rig_up(&g, CD_MULTI_OPENCL, &programs.cl_build[0], 1);
    word.note = NULL;
    g.api->clSetEventCallback = keep_word;
    g.api->clFinish = fail_finish;
    g.action[0].name = "first";
    pass_fails(&g, "run");
    assert_non_null(word.note);
    *g.api = g.real;
    pass_fails(&g, "in a pass before");
    const uint32_t lost = atomic_load(&g.net->step[1].word.value);
    word.note(NULL, 0, word.ctx);
    assert_int_equal(atomic_load(&g.net->step[1].word.value), lost); /* not "done" of this pass */
    cd_multi_executor_close(g.net);
}

/* Whoever tells that an action is done looks at its word once more: close, right behind the pass,
 * must not be faster. */
static void test_nothing_owed(void **state) {
    (void)state;
    SKIP_WITHOUT_OPENCL();
    cdmpp_err err = {0};
    double total;
    rig g;
    for (int kind = 0; kind < 3; kind++) {
        rig_up(&g, kind ? CD_MULTI_NATIVE : CD_MULTI_OPENCL,
               kind ? &programs.build[0] : &programs.cl_build[0], kind < 2);
        for (int pass = 0; pass < 100; pass++) {
            assert_ok(cd_multi_executor_pass(g.net, NULL, &total, NULL, &err));
            assert_int_equal(atomic_load(&g.net->worker[1].owed), 0);
        }
        cd_multi_executor_close(g.net);
    }
}

/* ---- nothing to run ---- */

/* The processor waits for a program without kernels, in both memories; `last`: nobody does, but the
 * pass. */
static void empty_program(uint32_t memory, bool last) {
    rig g;
    cdmpp_err err = {0};
    double total;
    cd_multi_action_time ran[3];
    made_code none = programs.cl[0];
    const cd_build build = {.code = &none.code};
    none.code.n_launch = 0;
    rig_up(&g, CD_MULTI_OPENCL, &build, memory);
    cd_multi_executor_close(g.net);
    g.action[1] = copy_of(0, 0, 3, &g.after[1]);
    g.buffer[0].memory = 0;
    g.arg[0] = 1;
    if (last) g.action[1].n_after = 0;
    assert_ok(cd_multi_executor_open(&g.dn, &g.net, &err));
    for (int pass = 0; pass < 3; pass++) {
        assert_ok(cd_multi_executor_pass(g.net, ran, &total, NULL, &err));
        for (uint32_t k = 0; k < 3; k++) assert_true(ran[k].done);
    }
    cd_multi_executor_close(g.net);
}

static void test_empty(void **state) {
    (void)state;
    SKIP_WITHOUT_OPENCL();
    alarm(30); /* it waited for ever */
    for (uint32_t k = 0; k < 4; k++) empty_program(k % 2, k / 2);
    alarm(0);
}

/* A driver that reads nothing before it must. */
static cd_opencl_api real;
static struct {
    cd_cl q, b;
    void *to;
    size_t n;
} put_off;

static int32_t read_later(cd_cl q, cd_cl b, uint32_t wait, size_t at, size_t n, void *to,
                          uint32_t n_wait, const cd_cl *w, cd_cl *event) {
    if (wait) return real.clEnqueueReadBuffer(q, b, wait, at, n, to, n_wait, w, event);
    put_off.q = q;
    put_off.b = b;
    put_off.to = to;
    put_off.n = n;
    return 0;
}

static int32_t finish_now(cd_cl q) {
    usleep(20000); /* time for who thinks that it is done */
    if (put_off.to)
        assert_int_equal(real.clEnqueueReadBuffer(put_off.q, put_off.b, 0, 0, put_off.n, put_off.to,
                                                  0, NULL, NULL),
                         0);
    put_off.to = NULL;
    return real.clFinish(q);
}

/* An empty copy that another device waits for stands behind a copy that is not: that one is done
 * before. */
static void test_empty_copy(void **state) {
    (void)state;
    SKIP_WITHOUT_OPENCL();
    rig g;
    cdmpp_err err = {0};
    double total;
    rig_up(&g, CD_MULTI_OPENCL, &programs.cl_build[0], 1);
    cd_multi_executor_close(g.net);
    g.action[3] = g.action[2];
    g.action[2] = copy_of(1, 2, 3, &g.after[2]);
    g.action[2].copy.n[0] = 0;
    g.action[3].after = &g.after[3];
    g.after[3] = 2;
    g.dn.n_action = 4;
    assert_ok(cd_multi_executor_open(&g.dn, &g.net, &err));
    for (uint32_t k = 0; k < 2; k++) assert_ok(cd_multi_executor_fill(g.net, k, k, &err));
    g.api = (cd_opencl_api *)(uintptr_t)&g.net->worker[1].cl->api;
    real = *g.api;
    g.api->clEnqueueReadBuffer = read_later;
    g.api->clFinish = finish_now;
    assert_ok(cd_multi_executor_pass(g.net, NULL, &total, NULL, &err));
    assert_false(is_zero(g.net, 3));
    assert_false(is_zero(g.net, 4));
    *g.api = real;
    cd_multi_executor_close(g.net);
}

TESTS(md_up, md_down, test_late_kernel, test_forgotten_kernel, test_kernel_at_work, test_late_word,
      test_nothing_owed, test_empty, test_empty_copy)
