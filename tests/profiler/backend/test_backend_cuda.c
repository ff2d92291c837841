/* The CUDA back end as far as a machine without one goes; all of it where there is one. */
#include "check.h"
#include "gpuprog.h"
#include "profiler/backend/backend_internal.h"
#include "profiler/codegen/codegen.h"

TEST(test_names) {
    int n = -1;
    cdmpp_err err = {0};
    assert_ok(cd_backend_cuda_parse_name("", &n, &err));
    assert_int_equal(n, 0);
    assert_ok(cd_backend_cuda_parse_name("3", &n, &err));
    assert_int_equal(n, 3);
    assert_status(cd_backend_cuda_parse_name("x", &n, &err), CDMPP_ERANGE);
    assert_status(cd_backend_cuda_parse_name("-1", &n, &err), CDMPP_ERANGE);
    assert_status(cd_backend_cuda_parse_name("1x", &n, &err), CDMPP_ERANGE);
    assert_status(cd_backend_cuda_parse_name("256", &n, &err), CDMPP_ERANGE);
}

/* Never more than the device has, nor than the compiler knows. */
TEST(test_architecture) {
    assert_int_equal(cd_backend_cuda_architecture(9, 0, 12, 4), 90);
    assert_int_equal(cd_backend_cuda_architecture(9, 0, 11, 2), 86);
    assert_int_equal(cd_backend_cuda_architecture(7, 0, 12, 4), 70);
    assert_int_equal(cd_backend_cuda_architecture(8, 6, 10, 2), 75);
    for (int major = 9; major < 14; major++)
        for (int minor = 0; minor < 10; minor++) {
            assert_true(cd_backend_cuda_architecture(12, 1, major, minor) <= 121);
            assert_int_equal(cd_backend_cuda_architecture(6, 0, major, minor), 60);
        }
}

static cdmpp_status run_program(void *ctx, const gp_program *p, cdmpp_err *err) {
    const cd_backend_kind *kind = &cd_backend_cuda;
    cd_codegen_code c;
    cd_loaded *l = NULL;
    double s = -1;
    cdmpp_status st = cd_codegen(p->nest, CD_DIALECT_CUDA, "p", &c, err);
    if (st) return st;
    cd_build build = {.code = &c};
    void **memory = gp_content(p, &c);
    st = kind->build(ctx, &build, 1, 1, err);
    if (!st && build.status) *err = build.err, st = build.status;
    if (!st) st = kind->load(ctx, &build, (const void *const *)memory, &l, err);
    if (!st) st = kind->run(l, 3, &s, err);
    for (uint32_t k = 0; k < c.n_arg && !st; k++)
        st = kind->read(l, k, memory[k], (size_t)c.buffer[k].bytes, err);
    if (!st) st = gp_compare(p, memory, err);
    kind->unload(l);
    cd_mem_free(build.object);
    gp_free(memory, &c);
    cd_codegen_code_free(&c);
    return st;
}

TEST(test_values) {
    cd_backend *b = NULL;
    cdmpp_err err = {0};
    if (cd_backend_cuda.open("", "", &b, &err)) {
        assert_int_equal(err.code, CDMPP_EBACKEND);
        print_message("no CUDA: %s\n", err.msg);
        skip();
    }
    assert_ok(gp_each(2, 9, run_program, b, &err));
    assert_ok(cd_backend_cuda.flush(b, &err));
    cd_backend_cuda.close(b);
}

TESTS(NULL, NULL, test_names, test_architecture, test_values)
