/* A network of generated programs against the same sums written out here. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "made_code.h"
#include "profiler/codegen/codegen.h"
#include "prog.h"
#include "profiler/backend/compiler.h"
#include "profiler/backend/tensor_fill.h"
#include "profiler/runtime/single/executor.h"

enum { M = 12, K = 16, N = 20 };
/* y = max(x w, 0), twice: 12x16 by 16x20, 12x20 by 20x20. */
#define DENSE(m, k, n)                                                                                              \
    "\"ops\": [{\"name\": \"X\", \"shape\": [" #m ", " #k "], \"dtype\": \"float32\"},"                             \
    "{\"name\": \"W\", \"shape\": [" #k ", " #n "], \"dtype\": \"float32\", \"layout_free\": true},"                \
    "{\"name\": \"C\", \"axis\": [[\"i\", 0, " #m "], [\"j\", 0, " #n "]], \"reduce_axis\": [[\"k\", 0, " #k "]],"  \
    "\"reduce\": \"sum\", \"body\": \"X[i, k]*W[k, j]\"},"                                                          \
    "{\"name\": \"Y\", \"axis\": [[\"i\", 0, " #m "], [\"j\", 0, " #n "]], \"body\": \"max(C[i, j], 0.0)\"}],"      \
    "\"args\": [\"X\", \"W\", \"Y\"]"
static const char *const made[] = {DENSE(12, 16, 20), DENSE(12, 20, 20)};

typedef struct {
    cd_task_registry *tasks;
    cd_program *program[2];
    cd_codegen_code code[2];
    cd_build build[2];
    cd_compiler *compiler;
} fixture;

static int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    f = (fixture){0};
    assert_ok(prog_tasks(made, 2, &f.tasks, &err));
    assert_ok(cd_compiler_open(&(cd_compiler_options){.cache = ""}, &f.compiler, &err));
    for (int k = 0; k < 2; k++) {
        const cd_record r = {0};
        cd_nest nest;
        assert_ok(cd_program_new(&f.program[k], &err));
        assert_ok(cd_program_lower(f.program[k], cd_task_registry_at(f.tasks, (size_t)k), &r, &err));
        assert_ok(cd_program_nest(f.program[k], &nest, &err));
        nest.pack = k == 0; /* its weight in the order of its loops */
        assert_ok(cd_codegen(&nest, CD_DIALECT_C, k ? "p1" : "p0", &f.code[k], &err));
        f.build[k].code = &f.code[k];
    }
    assert_ok(cd_compiler_build(f.compiler, f.build, 2, 1, &err));
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    for (int k = 0; k < 2; k++) {
        cd_codegen_code_free(&f->code[k]);
        cd_program_free(f->program[k]);
    }
    cd_compiler_close(f->compiler);
    cd_task_registry_free(f->tasks);
    return 0;
}

static const int64_t w0[2] = {K, N}, w1[2] = {N, N};
static const cd_executor_net_tensor tensors[] = {
    {.bytes = 4 * M * K, .dtype = CD_F32, .role = CD_TENSOR_INPUT}, {.bytes = 4 * K * N, .dtype = CD_F32, .role = CD_TENSOR_WEIGHT, .rank = 2, .shape = w0},
    {.bytes = 4 * M * N, .dtype = CD_F32, .role = CD_TENSOR_INNER}, {.bytes = 4 * N * N, .dtype = CD_F32, .role = CD_TENSOR_WEIGHT, .rank = 2, .shape = w1},
    {.bytes = 4 * M * N, .dtype = CD_F32, .role = CD_TENSOR_RESULT}};

static void dense(int m, int k, int n, const float *x, const float *w, float *y) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double s = 0;
            for (int q = 0; q < k; q++) s += (double)x[i * k + q] * (double)w[q * n + j];
            y[i * n + j] = s > 0 ? (float)s : 0;
        }
}

static void test_values(void **state) {
    fixture *f = *state;
    const uint32_t a0[] = {0, 1, 2}, a1[] = {2, 3, 4};
    const cd_executor_net_step steps[] = {{"first", &f->build[0], a0, NULL}, {"second", &f->build[1], a1, NULL}};
    const cd_executor_net net = {5, 2, tensors, steps};
    cdmpp_err err = {0};
    cd_executor *r;
    assert_ok(cd_executor_open(&net, 1, &r, &err));
    float x[M * K], w[K * N], v[N * N], inner[M * N], want[M * N], got[M * N];
    for (int round = 0; round < 2; round++) {
        if (round) /* content of our own, signs and all */
            for (int i = 0; i < K * N; i++) w[i] = (float)(i % 7) - 3;
        else assert_true(cd_tensor_fill(CD_F32, 1, 0, K * N, w));
        assert_true(cd_tensor_fill(CD_F32, 0, 0, M * K, x) && cd_tensor_fill(CD_F32, 3, 0, N * N, v));
        if (round) assert_ok(cd_executor_write(r, 1, w, &err));
        double step_s[2], total, alone;
        cd_executor_pass(r, step_s, &total);
        assert_true(step_s[0] > 0 && step_s[1] > 0 && step_s[0] + step_s[1] <= total);
        cd_executor_step(r, 1, 3, &alone);
        assert_true(alone > 0);
        dense(M, K, N, x, w, inner);
        dense(M, N, N, inner, v, want);
        assert_ok(cd_executor_read(r, 4, got, &err));
        for (int i = 0; i < M * N; i++) assert_true(fabsf(got[i] - want[i]) <= 1e-5f * fabsf(want[i]) + 1e-5f);
    }
    assert_true(f->code[0].buffer[1].n_digit > 0 && !f->code[1].buffer[1].n_digit);
    const cd_executor_bytes_used m = cd_executor_bytes(r);
    assert_true(m.weights >= 4 * (K * N + N * N) && m.inner_least >= 4 * M * N && m.all >= m.weights + m.inner_least);
    assert_int_equal(cd_executor_write(r, 2, inner, &err), CDMPP_ERANGE);
    assert_int_equal(cd_executor_read(r, 9, got, &err), CDMPP_ERANGE);
    cd_executor_close(r);
}

static void test_bad(void **state) {
    fixture *f = *state;
    const uint32_t a0[] = {0, 1, 2}, a1[] = {2, 3, 4}, small[] = {0, 1, 5};
    cd_executor_net_tensor t[6];
    memcpy(t, tensors, sizeof tensors);
    t[5] = (cd_executor_net_tensor){.bytes = 8, .dtype = CD_F32, .role = CD_TENSOR_RESULT};
    cdmpp_err err = {0};
    cd_executor *r;
    const cd_executor_net_step early[] = {{"second", &f->build[1], a1, NULL}, {"first", &f->build[0], a0, NULL}};
    assert_int_equal(cd_executor_open(&(cd_executor_net){6, 2, t, early}, 1, &r, &err), CDMPP_EINVALID);
    const cd_executor_net_step tight[] = {{"first", &f->build[0], small, NULL}};
    assert_int_equal(cd_executor_open(&(cd_executor_net){6, 1, t, tight}, 1, &r, &err), CDMPP_EINVALID);
    const cd_build none = {.code = &f->code[0]};
    const cd_executor_net_step raw[] = {{"first", &none, a0, NULL}};
    assert_int_equal(cd_executor_open(&(cd_executor_net){6, 1, t, raw}, 1, &r, &err), CDMPP_EBACKEND);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_bad)};
    return cmocka_run_group_tests(tests, up, down);
}
