/* The table, the cpu back end's memory, what buffers hold, and whether the processor is quiet. */
#include "check.h"
#include "made_code.h"

#include <unistd.h>

#include "profiler/backend/backend.h"
#include "profiler/host/host.h"

TEST(test_table) {
    assert_ptr_equal(cd_backend_find("cpu"), &cd_backend_cpu);
    assert_null(cd_backend_find("abacus"));
    const struct {
        const char *target, *name;
    } t[] = {{"llvm -keys=cpu", "cpu"},
             {"llvm", "cpu"},
             {"c -keys=cpu", "cpu"},
             {"hexagon", NULL},
             {"ll", NULL},
             {"", NULL},
             {" llvm", NULL}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const cd_backend_kind *k =
            cd_backend_for_target((cd_str){t[i].target, strlen(t[i].target)});
        if (!t[i].name) assert_null(k);
        else assert_string_equal(k->name, t[i].name);
    }
    assert_non_null(strstr(cd_backend_names(), "cpu"));
    assert_int_equal(cd_backend_cpu_threads("llvm -num-cores=3"), 3);
    assert_int_equal(cd_backend_cpu_threads("llvm -num-cores=3 -num-cores=5"), 5);
    assert_true(cd_backend_cpu_threads("llvm") >= 1);
}

/* Compiled, loaded, run, read; given content and content of its own; scratch for each thread. */
TEST(test_run) {
    enum { N = 3000 };
    made_code made;
    cdmpp_err err = {0};
    cd_backend *b = NULL;
    cd_loaded *l = NULL;
    static float a[N], c[N], want[2][N];
    double s;
    made_code_set(&made, "add", N,
                  "char *t = arg[3]; for (int i = 0; i < 3 * 64; i++) t[i] = 1;" MADE_ADD);
    made.buffer[3] = (cd_codegen_buffer){.name = "t",
                                         .dtype = CD_DTYPE(CD_T_INT, 8),
                                         .elements = 64,
                                         .bytes = 64,
                                         .per_thread = true};
    made.code.n_buffer = made.launch.n_buffer = 4;
    cd_build build = {.code = &made.code};
    assert_ok(cd_backend_cpu_open(
        &(cd_compiler_options){
            .command = "gcc", .cache = "", .isa = "native", .target = "llvm -num-cores=3"},
        &b, &err));
    assert_ok(cd_backend_cpu.build(b, &build, 1, 1, &err));
    assert_int_equal(build.status, CDMPP_OK);
    for (int i = 0; i < N; i++) a[i] = (float)i;
    const void *content[4] = {a, NULL, NULL, NULL};
    for (int own = 0; own < 2; own++) {
        assert_ok(cd_backend_cpu.load(b, &build, own ? NULL : content, &l, &err));
        assert_ok(cd_backend_cpu.run(l, 10, &s, &err));
        assert_true(s > 0);
        for (uint32_t k = 0; k < 2; k++)
            assert_ok(cd_backend_cpu.read(l, k, want[k], sizeof want[k], &err));
        assert_ok(cd_backend_cpu.read(l, 2, c, sizeof c, &err));
        for (int i = 0; i < N; i++) assert_true(c[i] == want[0][i] + want[1][i]);
        assert_true((want[0][5] == 5) == !own);
        assert_status(cd_backend_cpu.read(l, 2, c, sizeof c + 1, &err), CDMPP_ERANGE);
        cd_backend_cpu.unload(l);
    }
    assert_ok(cd_backend_cpu.flush(b, &err));
    made.launch.entry = "nosuch";
    assert_status(cd_backend_cpu.load(b, &build, NULL, &l, &err), CDMPP_EBACKEND);
    cd_backend_cpu.close(b);
    made_code_free(&made);
}

/* Two programs of other numbers of threads in one process: each keeps its own, also when it runs
 * after the other was loaded. */
TEST(test_own_threads) {
    enum { N = 16 };
    made_code made;
    cdmpp_err err = {0};
    cd_backend *b[2] = {NULL, NULL};
    cd_loaded *l[2];
    float c[N];
    double s;
    made_code_set(&made, "count", N,
                  "\n#pragma omp parallel\n for (int i = 0; i < n; i++) if (i < "
                  "omp_get_num_threads()) c[i] = omp_get_num_threads();");
    made.code.parallel = true;
    cd_buf text = {0};
    cd_buf_puts(&text, "int omp_get_num_threads(void);\n");
    cd_buf_put(&text, made.code.text.p, made.code.text.n);
    cd_buf_free(&made.code.text);
    made.code.text = text;
    for (int k = 0; k < 2; k++) {
        cd_build build = {.code = &made.code};
        assert_ok(cd_backend_cpu_open(
            &(cd_compiler_options){.command = "gcc",
                                   .cache = "",
                                   .isa = "native",
                                   .target = k ? "llvm -num-cores=3" : "llvm -num-cores=2"},
            &b[k], &err));
        assert_ok(cd_backend_cpu.build(b[k], &build, 1, 1, &err));
        assert_ok(cd_backend_cpu.load(b[k], &build, NULL, &l[k], &err));
    }
    for (int k = 0; k < 2; k++) {
        assert_ok(cd_backend_cpu.run(l[k], 1, &s, &err));
        assert_ok(cd_backend_cpu.read(l[k], 2, c, sizeof c, &err));
        assert_true(c[0] == (k ? 3 : 2));
    }
    for (int k = 0; k < 2; k++) cd_backend_cpu.unload(l[k]), cd_backend_cpu.close(b[k]);
    made_code_free(&made);
}

/* Any part of a buffer is the same part of the whole; no zero, no denormal, no index beyond 1. */
TEST(test_fill) {
    static const cd_dtype type[] = {CD_F32,
                                    CD_DTYPE(CD_T_FLOAT, 64),
                                    CD_DTYPE(CD_T_FLOAT, 16),
                                    CD_DTYPE(CD_T_BFLOAT, 16),
                                    CD_I32,
                                    CD_I64,
                                    CD_BOOL,
                                    CD_DTYPE(CD_T_INT, 8)};
    enum { N = 1000 };
    static double whole[N], part[N]; /* as bytes */
    float f[N];
    int64_t v[N];
    for (size_t i = 0; i < sizeof type / sizeof *type; i++) {
        const size_t size = cd_expr_dtype_bytes(type[i]);
        assert_true(cd_tensor_fill(type[i], 3, 0, N, whole));
        assert_true(cd_tensor_fill(type[i], 3, 100, 200, part));
        assert_memory_equal((char *)whole + 100 * size, part, 200 * size);
        assert_true(cd_tensor_fill(type[i], 4, 0, N, part));
        assert_memory_not_equal(whole, part, N * size);
    }
    assert_true(cd_tensor_fill(CD_F32, 0, 0, N, f));
    assert_true(cd_tensor_fill(CD_I64, 0, 0, N, v));
    int ones = 0;
    for (int i = 0; i < N; i++) {
        assert_true(f[i] >= 0.25f && f[i] < 1);
        assert_true(v[i] == 0 || v[i] == 1);
        ones += v[i] == 1;
    }
    assert_true(ones > N / 3 && ones < 2 * N / 3);
    uint16_t h;
    assert_true(cd_tensor_fill(CD_F32, 0, 7, 1, f));
    assert_true(cd_tensor_fill(CD_DTYPE(CD_T_FLOAT, 16), 0, 7, 1, &h));
    assert_close(ldexp(1 + (h & 1023) / 1024.0, (h >> 10) - 15), (double)f[0], 0x1p-10, 0);
    assert_false(cd_tensor_fill(CD_DTYPE(CD_T_HANDLE, 64), 0, 0, 1, v));
}

TEST(test_quiet) {
    cd_noise_probe q = {0};
    cd_noise_probe_calibrate(&q);
    assert_true(q.best_s > 1e-6 && q.best_s < 1);
    assert_true(cd_noise_probe_ratio(&q) >= 1);
    /* it was three times as fast once: now something is going on */
    cd_noise_probe fast = {q.best_s / 3};
    assert_true(cd_noise_probe_ratio(&fast) > CD_QUIET_LIMIT);
    cd_noise_probe_mark m;
    cd_noise_probe_begin(&m);
    usleep(20000); /* wall time without processor time */
    assert_true(cd_noise_probe_lost(&m, 1, 0.01));
}

/* Counted or not, every figure is a count or -1. */
TEST(test_counters) {
    cd_perf_counters p;
    double v[CD_PERF_COUNT];
    cd_perf_counters_open(&p);
    cd_perf_counters_start(&p);
    for (volatile int i = 0; i < 100000; i++) {
    }
    cd_perf_counters_stop(&p, v);
    cd_perf_counters_close(&p);
    for (int k = 0; k < CD_PERF_COUNT; k++) assert_true(v[k] == -1 || v[k] > 0);
}

TESTS(NULL, NULL, test_table, test_run, test_own_threads, test_fill, test_quiet, test_counters)
