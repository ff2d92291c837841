/* A network of generated programs against the same sums written out here. */
#include <stdlib.h>
#include <string.h>

#include "made_code.h"
#include "made_dense.h"
#include "profiler/backend/backend.h"

static const cd_executor_options one_thread = {.threads = 1};

static int up(void **state) { return dense_up(state, false); }

static const int64_t w0[2] = {K, N}, w1[2] = {N, N};
static const cd_executor_net_tensor tensors[] = {
    {.bytes = 4 * M * K, .dtype = CD_F32, .role = CD_TENSOR_INPUT},
    {.bytes = 4 * K * N, .dtype = CD_F32, .role = CD_TENSOR_WEIGHT, .rank = 2, .shape = w0},
    {.bytes = 4 * M * N, .dtype = CD_F32, .role = CD_TENSOR_INNER},
    {.bytes = 4 * N * N, .dtype = CD_F32, .role = CD_TENSOR_WEIGHT, .rank = 2, .shape = w1},
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
    const cd_executor_net_step steps[] = {{"first", &f->build[0], a0, NULL},
                                          {"second", &f->build[1], a1, NULL}};
    const cd_executor_net net = {5, 2, tensors, steps};
    cdmpp_err err = {0};
    cd_executor *r;
    assert_ok(cd_executor_open(&net, &one_thread, &r, &err));
    float x[M * K], w[K * N], v[N * N], inner[M * N], want[M * N], got[M * N];
    for (int round = 0; round < 2; round++) {
        if (round) /* content of our own, signs and all */
            for (int i = 0; i < K * N; i++) w[i] = (float)(i % 7) - 3;
        else assert_true(cd_tensor_fill(CD_F32, 1, 0, K * N, w));
        assert_true(cd_tensor_fill(CD_F32, 0, 0, M * K, x) &&
                    cd_tensor_fill(CD_F32, 3, 0, N * N, v));
        if (round) assert_ok(cd_executor_write(r, 1, w, &err));
        cd_executor_ran ran[2];
        double total, alone;
        cd_executor_pass(r, ran, &total);
        assert_true(ran[0].end_s > ran[0].start_s && ran[1].end_s > ran[1].start_s &&
                    ran[1].start_s >= ran[0].end_s && ran[1].end_s <= total);
        cd_executor_step(r, 1, 3, &alone);
        assert_true(alone > 0);
        dense(M, K, N, x, w, inner);
        dense(M, N, N, inner, v, want);
        assert_ok(cd_executor_read(r, 4, got, &err));
        for (int i = 0; i < M * N; i++)
            assert_true(fabsf(got[i] - want[i]) <= 1e-5f * fabsf(want[i]) + 1e-5f);
    }
    assert_true(f->code[0].buffer[1].n_digit > 0 && !f->code[1].buffer[1].n_digit);
    const cd_executor_bytes_used m = cd_executor_bytes(r);
    assert_true(m.weights >= 4 * (K * N + N * N) && m.inner_least >= 4 * M * N &&
                m.all >= m.weights + m.inner_least);
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
    const cd_executor_net_step early[] = {{"second", &f->build[1], a1, NULL},
                                          {"first", &f->build[0], a0, NULL}};
    assert_int_equal(cd_executor_open(&(cd_executor_net){6, 2, t, early}, &one_thread, &r, &err),
                     CDMPP_EINVALID);
    const cd_executor_net_step tight[] = {{"first", &f->build[0], small, NULL}};
    assert_int_equal(cd_executor_open(&(cd_executor_net){6, 1, t, tight}, &one_thread, &r, &err),
                     CDMPP_EINVALID);
    const cd_build none = {.code = &f->code[0]};
    const cd_executor_net_step raw[] = {{"first", &none, a0, NULL}};
    assert_int_equal(cd_executor_open(&(cd_executor_net){6, 1, t, raw}, &one_thread, &r, &err),
                     CDMPP_EBACKEND);
}

TESTS(up, down, test_values, test_bad)
