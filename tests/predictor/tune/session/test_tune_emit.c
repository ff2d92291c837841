/* Emitted programs: a made-up program of known values, compiled and run with several threads;
 * tables of buffers and launches, line by line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "predictor/tune/session/session.h"
#include "tmp.h"

static cdmpp_err err;

/* a[n] of float32, b of int64, c = a + b, and scratch: one double for each thread, which says how
 * many there were. */
enum { N = 1000 };
static cd_codegen_buffer buffer[] = {
    {.name = "a", .dtype = CD_F32, .elements = N, .bytes = 4 * N, .is_arg = true},
    {.name = "b", .dtype = CD_I64, .elements = N, .bytes = 8 * N, .is_arg = true, .n_digit = 1},
    {.name = "c", .dtype = CD_F32, .elements = N, .bytes = 4 * N, .is_arg = true, .written = true},
    {.name = "d", .dtype = CD_F32, .elements = 1, .bytes = 4, .is_arg = true, .written = true},
    {.name = "own",
     .dtype = CD_DTYPE(CD_T_FLOAT, 64),
     .elements = 8,
     .bytes = 64,
     .per_thread = true},
};
enum { BUFFERS = sizeof buffer / sizeof *buffer };
static const char body[] =
    "void sum_of(void *const *arg) {\n"
    "    const float *a = arg[0];\n    const long long *b = arg[1];\n    float *c = arg[2];\n    "
    "double *own = arg[4];\n    int threads = 0;\n"
    "    for (int i = 0; i < 8 * omp_get_max_threads(); i++) own[i] = 0;\n"
    "#pragma omp parallel for schedule(static)\n"
    "    for (int i = 0; i < 1000; i++) { c[i] = a[i] + 4 * (float)b[i]; own[8 * "
    "omp_get_thread_num()] += 1; }\n"
    "    for (int i = 0; i < omp_get_max_threads(); i++) threads += own[8 * i] > 0;\n"
    "    *(float *)arg[3] = (float)threads;\n}\n";

static cd_codegen_code code_of(cd_dialect d, const char *text) {
    static uint32_t order[] = {0, 1, 2, 3, 4}, few[] = {4, 2};
    static cd_codegen_launch launch[] = {
        {.entry = "sum_of",
         .grid = {7, 5, 3},
         .block = {32, 4, 2},
         .n_buffer = BUFFERS,
         .buffer = order},
        {.entry = "second", .grid = {11, 1, 1}, .block = {64, 1, 1}, .n_buffer = 2, .buffer = few}};
    cd_codegen_code c = {.dialect = d,
                         .n_buffer = BUFFERS,
                         .n_arg = 4,
                         .n_launch = d == CD_DIALECT_C ? 1 : 2,
                         .buffer = buffer,
                         .launch = launch,
                         .parallel = true};
    cd_buf_puts(&c.text, text);
    return c;
}

/* What fill.c.in promises, worked out again: 0.25 to 1 from a generator with the buffer's number as
 * its seed. */
static double filled(uint32_t *seed) {
    *seed = *seed * 1664525U + 1013904223U;
    return (double)(float)(0.25 + 0.75 * (*seed >> 8) / 16777216.0);
}

static void test_c_runs_with_its_threads(void **state) {
    (void)state;
    tmp_dir dir = tmp_make();
    double want = 0;
    uint32_t a = 1, b = 2;
    for (int i = 0; i < N; i++) {
        const double x = filled(&a);
        (void)filled(&b);
        want += (double)(float)(x + 4 * (b >> 31));
    }
    for (int threads = 0; threads < 4; threads++) {
        cd_codegen_code c = code_of(CD_DIALECT_C, body);
        const cd_tune_emit e = {.code = &c, .name = "t", .about = "a task", .threads = threads};
        cd_buf kernel = {0}, host = {0}, command = {0}, shell = {0};
        assert_ok(cd_tune_emit_put(&e, &kernel, &host, &err));
        assert_int_equal(host.n, 0);
        tmp_put(&dir, "t.c", kernel.p, kernel.n);
        cd_tune_emit_command(&e, &command);
        assert_string_equal(
            command.p,
            "cc -O2 -march=native -ffp-contract=fast -fno-math-errno -fopenmp t.c -o t -lm");
        cd_buf_putf(&shell, "cd %s && %s 2>log && env -u OMP_NUM_THREADS ./t 3", dir.path,
                    command.p);
        FILE *out = popen(shell.p, "r");
        double seconds, sum, used;
        assert_non_null(out);
        assert_int_equal(fscanf(out, "%lf s c: sum %lf d: sum %lf", &seconds, &sum, &used), 3);
        assert_int_equal(pclose(out), 0);
        assert_close(sum, want, 1e-8, 0);
        assert_close(used, threads ? threads : 1, 0, 0);
        cd_buf_free(&kernel);
        cd_buf_free(&command);
        cd_buf_free(&shell);
        cd_codegen_code_free(&c);
    }
    tmp_remove(&dir);
}

#define BUFFER_TABLE                                                                               \
    "    {\"a\", 1000, 4000, 'f', 32, 1, 0, 0},\n    {\"b\", 1000, 8000, 'i', 64, 1, 0, 0}, /* "   \
    "packed */\n    {\"c\", 1000, 4000, 'f', 32, 1, 1, 0},\n"                                      \
    "    {\"d\", 1, 4, 'f', 32, 1, 1, 0},\n    {\"own\", 8, 64, 'f', 64, 0, 0, 1},\n};\nenum { "   \
    "BUFFERS = 5 };\n"

/* OpenCL: kernels in one file, the host with the tables in another; CUDA: all in one. */
static void test_tables_of_gpus(void **state) {
    static const char *const launches[] = {
        "    {\"sum_of\", {7, 5, 3}, {32, 4, 2}, 5, {0, 1, 2, 3, 4}},\n    {\"second\", {11, 1, "
        "1}, {64, 1, 1}, 2, {4, 2}},\n};\n",
        "    {(const void *)sum_of, {7, 5, 3}, {32, 4, 2}, 5, {0, 1, 2, 3, 4}},\n    {(const void "
        "*)second, {11, 1, 1}, {64, 1, 1}, 2, {4, 2}},\n};\n"};
    (void)state;
    for (int cuda = 0; cuda < 2; cuda++) {
        cd_codegen_code c =
            code_of(cuda ? CD_DIALECT_CUDA : CD_DIALECT_OPENCL, "kernels, by another test\n");
        const cd_tune_emit e = {.code = &c, .name = "mine", .threads = 1};
        cd_buf kernel = {0}, host = {0};
        char file[128], other[128];
        assert_ok(cd_tune_emit_put(&e, &kernel, &host, &err));
        cd_tune_emit_names(&e, file, other);
        assert_string_equal(file, cuda ? "mine.cu" : "mine.cl");
        assert_string_equal(other, cuda ? "" : "mine_host.c");
        const char *text = cuda ? kernel.p : host.p;
        assert_non_null(strstr(kernel.p, "kernels, by another test\n"));
        assert_non_null(strstr(text, BUFFER_TABLE));
        assert_non_null(strstr(text, "enum { LAUNCHES = 2, MOST = 5 };\n"));
        assert_non_null(strstr(text, launches[cuda]));
        assert_non_null(strstr(text, cuda
                                         ? "/* mine\n   nvcc -O2 mine.cu -o mine */\n"
                                         : "/* mine\n   cc -O2 mine_host.c -o mine -lOpenCL */\n"));
        if (cuda) assert_int_equal(host.n, 0);
        else assert_non_null(strstr(text, "#define SOURCE \"mine.cl\"\n"));
        cd_buf_free(&kernel);
        cd_buf_free(&host);
        cd_codegen_code_free(&c);
    }
}

TESTS(NULL, NULL, test_c_runs_with_its_threads, test_tables_of_gpus)
