/* Spans that count OpenCL buffers: this program, run again under the library, makes and releases
 * some. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "profiler/wrap/wrap.h"

enum { MB = 1000000, NO_DEVICE = 77 };
static char self[4096];

/* ---- what is watched ---- */
static void *cl(const char *name) { return dlsym(RTLD_DEFAULT, name); }

static void *a_context(void) {
    int32_t (*platforms)(uint32_t, void **, uint32_t *),
        (*devices)(void *, uint64_t, uint32_t, void **, uint32_t *);
    void *(*context)(const intptr_t *, uint32_t, void **, void *, void *, int32_t *);
    void *platform = NULL, *device = NULL;
    if (!dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_GLOBAL)) return NULL;
    *(void **)&platforms = cl("clGetPlatformIDs");
    *(void **)&devices = cl("clGetDeviceIDs");
    *(void **)&context = cl("clCreateContext");
    if (platforms(1, &platform, NULL) || devices(platform, 0xFFFFFFFF, 1, &device, NULL))
        return NULL;
    return context(NULL, 1, &device, NULL, NULL, NULL);
}

static int watched(void) {
    void *(*create)(void *, uint64_t, size_t, void *, int32_t *), *c = a_context();
    int32_t (*retain)(void *), (*release)(void *);
    if (!c) return NO_DEVICE;
    *(void **)&create = cl("clCreateBuffer");
    *(void **)&retain = cl("clRetainMemObject");
    *(void **)&release = cl("clReleaseMemObject");
    cdmpp_span *s;
    cdmpp_span_cost cost = {.size = sizeof cost};
    if (cdmpp_span_begin("buffers", &s, NULL)) return 1;
    void *kept = create(c, 1, 3 * MB, NULL, NULL), *gone = create(c, 1, 5 * MB, NULL, NULL);
    /* one reference of the first one is left */
    if (!kept || !gone || retain(kept) || release(kept) || release(gone)) return 2;
    gone = create(c, 1, 1 * MB, NULL, NULL);
    if (!gone || release(gone) || cdmpp_span_end(s, &cost, NULL)) return 3;
    if (cost.device_peak != 8 * MB || cost.device_live != 3 * MB) return 4;
    if (cdmpp_span_begin("end", &s, NULL) || release(kept) || cdmpp_span_end(s, &cost, NULL))
        return 5;
    return cost.device_peak != 0 || cost.device_live != -3 * MB ? 6 : 0;
}

/* ---- watching ---- */
TEST(buffers) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* they want to be the first library */
#endif
    cdmpp_err err;
    cd_arena a = {0};
    char flag[] = "--watched-opencl";
    char *const argv[] = {self, flag, NULL};
    cd_process_profile_report r;
    assert_ok(cd_process_profile_run(&a, argv, NULL, &r, &err));
    if (r.code == NO_DEVICE) skip();
    assert_int_equal(r.code, 0);
    assert_int_equal(r.n_span, 2);
    assert_int_equal(r.span[0].device_peak_bytes, 8 * MB);
    assert_int_equal(r.span[0].device_live_bytes, 3 * MB);
    assert_int_equal(r.span[1].device_live_bytes, -3 * MB);
    cd_arena_free(&a);
}

static int watched_program(int argc, char **argv) {
    (void)argc, (void)argv;
    return watched();
}

static int run_suite(void) {
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(buffers)};
    return cmocka_run_group_tests_name("span_opencl", tests, NULL, NULL);
}

SUITE(.run = run_suite, .word = "--watched-opencl", .program = watched_program)
