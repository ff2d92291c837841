/* Texts of GPU programs: what must stand in them, and what is refused. Values:
 * test_codegen_gpu_values.c. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "gpuprog.h"
#include "noopencl.h"
#include "profiler/backend/backend.h"
#include "profiler/codegen/codegen.h"

static const char *const matmul[] = {"\"ops\": [" GP_IN("A", "512, 512") "," GP_IN(
    "B", "512, 512") ", {\"name\": \"C\", \"axis\": [[\"i\", 0, 512], [\"j\", 0, 512]],"
                     "\"reduce_axis\": [[\"k\", 0, 512]], \"reduce\": \"sum\", \"body\": \"A[i, "
                     "k]*B[k, j]\"},"
                     "{\"name\": \"D\", \"axis\": [[\"i\", 0, 512], [\"j\", 0, 512]], \"body\": "
                     "\"max(C[i, j], 0.0)\"}]"};
/* Blocks, virtual threads, threads, two stages in shared memory, one of them with vectors of
 * four. */
static const char tiled[] =
    "[[\"SP\",2,0,512,[2,4,8,2],1],[\"SP\",2,5,512,[4,8,8,1],1],[\"SP\",2,10,512,[2,4],1],[\"RE\","
    "2,[0,5,1,6,2,7,10,11,3,8,12,4,9]],"
    "[\"FSP\",3,0,0,3],[\"FSP\",3,4,1,3],[\"RE\",3,[0,4,1,5,2,6,3,7]],[\"CA\",2,3,5],[\"CHR\",1,"
    "\"shared\",[2]],[\"CA\",2,3,6],[\"CHR\",0,\"shared\",[3]],"
    "[\"CA\",1,4,6],[\"FU\",5,[0,1]],[\"AN\",5,0,5],[\"FU\",5,[1,2]],[\"AN\",5,1,4],[\"FU\",5,[2,3]"
    "],[\"AN\",5,2,6],"
    "[\"FU\",3,[0,1]],[\"SP\",3,0,2048,[4],1],[\"AN\",3,1,2],[\"FFSP\",3,0,[1,0],1,1],[\"AN\",3,1,"
    "6],"
    "[\"FU\",1,[0,1]],[\"SP\",1,0,1024,[1],1],[\"AN\",1,1,2],[\"FFSP\",1,0,[1,0],1,1],[\"AN\",1,1,"
    "6],[\"PR\",4,0,\"auto_unroll_max_step$16\"]]";

typedef struct {
    cd_task_registry *tasks;
    cd_program *program;
    cd_arena a;
    cd_nest nest;
} fixture;

static void setup(fixture *f, const char *hardware, const char *steps) {
    cdmpp_err err = {0};
    cd_record r;
    *f = (fixture){0};
    assert_ok(prog_tasks(matmul, 1, &f->tasks, &err));
    assert_ok(prog_record(&f->a, "0", hardware, steps, &r, &err));
    assert_ok(cd_program_new(&f->program, &err));
    assert_ok(cd_program_lower_code(f->program, cd_task_registry_at(f->tasks, 0), &r, &err));
    assert_ok(cd_program_nest(f->program, &f->nest, &err));
}

static void teardown(fixture *f) {
    cd_program_free(f->program);
    cd_task_registry_free(f->tasks);
    cd_arena_free(&f->a);
}

static unsigned times(const char *text, const char *what) {
    unsigned n = 0;
    for (const char *p = text; (p = strstr(p, what)); p++) n++;
    return n;
}

TEST(test_tiled) {
    fixture f;
    cd_codegen_code cuda, cl, again;
    cdmpp_err err = {0};
    setup(&f, PROG_GPU, tiled);
    assert_ok(cd_codegen(&f.nest, CD_DIALECT_CUDA, "p", &cuda, &err));
    assert_ok(cd_codegen(&f.nest, CD_DIALECT_OPENCL, "p", &cl, &err));
    assert_int_equal(cuda.n_launch, 1);
    assert_string_equal(cuda.launch[0].entry, "p_k0");
    assert_int_equal(cuda.launch[0].grid[0], 8);
    assert_int_equal(cuda.launch[0].block[0], 32);
    assert_int_equal(cuda.launch[0].shared_bytes, (128 * 8 + 8 * 256) * 4);
    assert_int_equal(cuda.n_buffer, 3);
    assert_int_equal(cuda.launch[0].n_buffer, 3);
    assert_true(cuda.buffer[2].written && !cuda.buffer[0].written);
    /* Threads meet before the stages are filled again and before they are read, and nowhere
     * else. */
    assert_int_equal(times(cuda.text.p, "__syncthreads"), 2);
    assert_int_equal(times(cl.text.p, "barrier("), 2);
    /* Three statements depend on the virtual thread (start, update, result); the two fills do
     * not. */
    assert_int_equal(times(cuda.text.p, "for (int v0 = 0; v0 < 8; v0++)"), 3);
    assert_int_equal(times(cuda.text.p, "__shared__"), 2);
    /* 128 elements for each of 8 virtual threads */
    assert_non_null(strstr(cuda.text.p, "[1024]; /* C */"));
    assert_int_equal(times(cuda.text.p, "*(float4 *)"), 1);
    assert_int_equal(times(cl.text.p, "vstore4(vload4("), 1);
    assert_ok(cd_codegen(&f.nest, CD_DIALECT_CUDA, "p", &again, &err));
    assert_string_equal(cuda.text.p, again.text.p);
    cd_codegen_code_free(&cuda), cd_codegen_code_free(&cl), cd_codegen_code_free(&again);
    teardown(&f);
}

/* Both loops of virtual threads stay: the sums are kept for each pair of them. */
TEST(test_two_virtual_threads) {
    static const char fused[] = "[\"FU\",5,[1,2]],[\"AN\",5,1,4],[\"FU\",5,[2,3]],[\"AN\",5,2,6]",
                      apart[] = "[\"AN\",5,1,4],[\"AN\",5,2,4],[\"FU\",5,[3,4]],[\"AN\",5,3,6]";
    const char *at = strstr(tiled, fused);
    char steps[sizeof tiled + sizeof apart];
    fixture f;
    cd_codegen_code cuda;
    cdmpp_err err = {0};
    snprintf(steps, sizeof steps, "%.*s%s%s", (int)(at - tiled), tiled, apart, at + strlen(fused));
    setup(&f, PROG_GPU, steps);
    assert_ok(cd_codegen(&f.nest, CD_DIALECT_CUDA, "p", &cuda, &err));
    assert_int_equal(times(cuda.text.p, "for (int v0 = 0; v0 < 2; v0++)"), 3);
    assert_int_equal(times(cuda.text.p, "for (int v1 = 0; v1 < 4; v1++)"), 3);
    assert_non_null(strstr(cuda.text.p, "[1024]; /* C */"));
    cd_codegen_code_free(&cuda);
    teardown(&f);
}

TEST(test_refused) {
    static const struct {
        const char *steps;
        cdmpp_status st;
    } t[] = {{"[]", CDMPP_EREJECTED},                              /* no threads */
             {"[[\"AN\",3,0,6]]", CDMPP_EREJECTED},                /* one stage without */
             {"[[\"AN\",3,1,6],[\"AN\",2,1,6]]", CDMPP_EREJECTED}, /* below a loop of nobody */
             {"[[\"AN\",3,0,5],[\"AN\",2,0,5]]", CDMPP_OK}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        fixture f;
        cd_codegen_code c;
        cdmpp_err err = {0};
        setup(&f, PROG_GPU, t[k].steps);
        assert_status(cd_codegen(&f.nest, CD_DIALECT_OPENCL, "p", &c, &err), t[k].st);
        if (!t[k].st) {
            assert_int_equal(c.n_launch, 2);
            assert_int_equal(c.n_buffer, 4); /* C lies in scratch between the kernels */
            assert_false(c.buffer[3].is_arg);
        }
        cd_codegen_code_free(&c);
        teardown(&f);
    }
}

/* Words of the compiler reach the caller; other programs of the batch are built. */
TEST(test_compiler) {
    cd_backend *b = NULL;
    cdmpp_err err = {0};
    SKIP_WITHOUT_OPENCL();
    assert_ok(cd_backend_opencl.open("", "", &b, &err));
    static char good[] = "__kernel void f(__global float *x) { x[0] = cd_max_f32(1.0f, 2.0f); }",
                bad[] = "__kernel void f() { nonsense; }";
    uint32_t list[1] = {0};
    cd_codegen_launch launch = {
        .entry = "f", .grid = {1, 1, 1}, .block = {1, 1, 1}, .n_buffer = 1, .buffer = list};
    cd_codegen_buffer buffer = {
        .name = "x", .dtype = CD_F32, .elements = 1, .bytes = 4, .is_arg = true, .written = true};
    cd_codegen_code c[2] = {{.dialect = CD_DIALECT_OPENCL,
                             .text = {.p = bad, .n = strlen(bad)},
                             .n_launch = 1,
                             .launch = &launch,
                             .n_buffer = 1,
                             .buffer = &buffer},
                            {.dialect = CD_DIALECT_OPENCL,
                             .text = {.p = good, .n = strlen(good)},
                             .n_launch = 1,
                             .launch = &launch,
                             .n_buffer = 1,
                             .buffer = &buffer}};
    cd_build p[2] = {{.code = &c[0]}, {.code = &c[1]}};
    cd_loaded *l = NULL;
    double s = 0;
    float x = 0;
    assert_ok(cd_backend_opencl.build(b, p, 2, 2, &err));
    assert_int_equal(p[0].status, CDMPP_EBACKEND);
    assert_int_equal(p[0].error_no, 3);
    assert_non_null(strstr(p[0].err.msg, "nonsense"));
    assert_int_equal(p[1].status, CDMPP_OK);
    assert_ok(cd_backend_opencl.load(b, &p[1], NULL, &l, &err));
    assert_ok(cd_backend_opencl.run(l, 1, &s, &err));
    assert_ok(cd_backend_opencl.read(l, 0, &x, sizeof x, &err));
    assert_true(x == 2);
    assert_status(cd_backend_opencl.read(l, 1, &x, sizeof x, &err), CDMPP_ERANGE);
    assert_status(cd_backend_opencl.read(l, 0, &x, 8, &err), CDMPP_ERANGE);
    cd_backend_opencl.unload(l);
    launch.block[0] = 1 << 20;
    assert_status(cd_backend_opencl.load(b, &p[1], NULL, &l, &err), CDMPP_EREJECTED);
    cd_mem_free(p[1].object);
    cd_backend_opencl.close(b);
}

TESTS(NULL, NULL, test_tiled, test_two_virtual_threads, test_refused, test_compiler)
