/* ops_gemm: tiles cover everything once; products against three loops; the same bits
 * for any pool. */
#include "learner/tensor/tensor.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "finite.h"

TEST(tiles) {
    for (size_t n = 0; n < 3000; n += n < 40 ? 1 : 97) {
        const size_t t = cd_ops_tiles(n, 64);
        assert_true(t == 1 || t % 2 == 0);
        assert_int_equal(cd_ops_tile_at(n, t, 0), 0);
        assert_int_equal(cd_ops_tile_at(n, t, t), n);
        for (size_t k = 0; k < t; k++) {
            assert_true(cd_ops_tile_at(n, t, k) <= cd_ops_tile_at(n, t, k + 1));
            assert_true(cd_ops_tile_at(n, t, k + 1) - cd_ops_tile_at(n, t, k) <= 65);
        }
    }
}

static double at(const float *x, bool t, size_t ld, size_t i, size_t j) {
    return (double)(t ? x[j * ld + i] : x[i * ld + j]);
}

static void against_loops(const cd_gemm *g, const float *c0) {
    for (size_t i = 0; i < g->m; i++)
        for (size_t j = 0; j < g->n; j++) {
            double s = (double)g->beta * (double)c0[i * g->ldc + j];
            for (size_t k = 0; k < g->k; k++)
                s += at(g->a, g->ta, g->lda, i, k) * at(g->b, g->tb, g->ldb, k, j);
            assert_close((double)g->c[i * g->ldc + j], s, 1e-5, 1e-4);
        }
}

TEST(products) {
    enum { M = 37, N = 19, K = 53, LD = 60 };
    static float a[LD * LD], b[LD * LD], c[LD * LD], c0[LD * LD];
    finite_values(a, NULL, LD * LD, 1);
    finite_values(b, NULL, LD * LD, 2);
    for (int k = 0; k < 8; k++) {
        finite_values(c0, NULL, LD * LD, 3);
        memcpy(c, c0, sizeof c);
        const cd_gemm g = {.ta = k & 1,
                           .tb = k & 2,
                           .m = M,
                           .n = N,
                           .k = K,
                           .a = a,
                           .b = b,
                           .c = c,
                           .lda = LD,
                           .ldb = LD,
                           .ldc = LD,
                           .beta = k & 4 ? 1.0f : 0.0f};
        cd_ops_gemm(&g);
        against_loops(&g, c0);
        /* nothing behind it */
        assert_memory_equal(c + M * LD, c0 + M * LD, (LD - M) * LD * sizeof *c);
    }
}

/* Two products large enough for several tiles. */
TEST(pools) {
    enum { R = 700, A = 70, B = 1100 };
    float *x = malloc(R * A * sizeof *x), *w = malloc(A * B * sizeof *w),
          *dw = calloc(A * B, sizeof *dw);
    float *y = malloc(R * B * sizeof *y), *y1 = malloc(R * B * sizeof *y1),
          *dw1 = calloc(A * B, sizeof *dw1);
    cdmpp_err err = {0};
    finite_values(x, NULL, R * A, 1);
    finite_values(w, NULL, A * B, 2);
    finite_values(dw1, NULL, A * B, 3);
    for (int threads = 1; threads <= 3; threads++) {
        cd_threads *pool = NULL;
        assert_ok(cd_threads_new(threads, &pool, &err));
        memset(dw, 0, A * B * sizeof *dw);
        const cd_gemm g[2] = {{.tb = true,
                               .m = R,
                               .n = B,
                               .k = A,
                               .a = x,
                               .b = w,
                               .c = y,
                               .lda = A,
                               .ldb = A,
                               .ldc = B},
                              {.m = A,
                               .n = B,
                               .k = A,
                               .a = x,
                               .b = w,
                               .c = dw,
                               .lda = A,
                               .ldb = B,
                               .ldc = B,
                               .beta = 1}};
        cd_ops_gemm_run(pool, g, 2);
        cd_threads_free(pool);
        if (threads == 1) {
            memcpy(y1, y, R * B * sizeof *y);
            memcpy(dw1, dw, A * B * sizeof *dw);
        }
        assert_memory_equal(y, y1, R * B * sizeof *y);
        assert_memory_equal(dw, dw1, A * B * sizeof *dw);
    }
    memset(dw1, 0, A * B * sizeof *dw1);
    const cd_gemm small = {
        .m = A, .n = B, .k = A, .a = x, .b = w, .c = dw, .lda = A, .ldb = B, .ldc = B};
    against_loops(&small, dw1);
    for (size_t i = 0; i < R; i += 71) {
        const cd_gemm row = {.tb = true,
                             .m = 1,
                             .n = B,
                             .k = A,
                             .a = x + i * A,
                             .b = w,
                             .c = y + i * B,
                             .lda = A,
                             .ldb = A,
                             .ldc = B};
        against_loops(&row, y);
    }
    free(x), free(w), free(dw), free(y), free(y1), free(dw1);
}

/* forward, dx and dw of a linear layer fit together: <dy, x w'> = <dx, x> = <dw, w>. */
TEST(linear) {
    enum { N = 33, IN = 21, OUT = 14 };
    static float x[N * IN], w[OUT * IN], y[N * OUT], dy[N * OUT], dx[N * IN], dw[OUT * IN];
    double a = 0, b = 0, c = 0;
    finite_values(x, NULL, N * IN, 1);
    finite_values(w, NULL, OUT * IN, 2);
    finite_values(dy, NULL, N * OUT, 3);
    cd_ops_linear(x, N, IN, w, OUT, y);
    cd_ops_linear_dx(dy, N, IN, w, OUT, 0, dx);
    memset(dw, 0, sizeof dw);
    const cd_gemm g = cd_ops_linear_dw(dy, x, N, IN, OUT, dw);
    cd_ops_gemm_run(NULL, &g, 1);
    for (size_t i = 0; i < N * OUT; i++) a += (double)dy[i] * (double)y[i];
    for (size_t i = 0; i < N * IN; i++) b += (double)dx[i] * (double)x[i];
    for (size_t i = 0; i < OUT * IN; i++) c += (double)dw[i] * (double)w[i];
    assert_close(a, b, 1e-5, 1e-5);
    assert_close(a, c, 1e-5, 1e-5);
}

/* BLAS has no threads of its own beside the pool: they would give other bits on another machine. */
TEST(blas_is_single) {
    float a[4] = {1, 2, 3, 4}, c[4];
    const cd_gemm g = {
        .m = 2, .n = 2, .k = 2, .a = a, .b = a, .c = c, .lda = 2, .ldb = 2, .ldc = 2};
    cd_ops_gemm(&g);
    assert_int_equal(openblas_get_num_threads(), 1);
}

TESTS(NULL, NULL, blas_is_single, tiles, products, pools, linear)
