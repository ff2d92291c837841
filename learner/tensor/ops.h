/* ops -- the arithmetic of networks on float32 matrices, forward and backward.
 *
 *   matrix  (n, w) row-major, rows next to each other
 *   ptr     (n+1) offsets: program i has rows ptr[i] .. ptr[i+1]
 *
 * (1) Everything but cd_ops_gemm_run and cd_ops_each works on the rows it is given
 *     in the calling thread; callers cut rows into tiles whose bounds depend on the
 *     shape only (cd_ops_tiles) and reduce per tile, in tile order: the same bits
 *     for any pool.
 * (2) BLAS runs single-threaded; the loops are written so that compilers vectorise
 *     them without reordering sums, and no multiply-add is contracted: their bits
 *     do not depend on the width of the vectors either.
 * (3) Gradients of parameters are added to (+=), all others written, unless a
 *     comment says otherwise.
 * (4) Dropout has no memory: element (row, column) stays when a hash of key, row
 *     and column says so. Backward asks again, or sees the zero (ReLU). */
#ifndef CD_OPS_H
#define CD_OPS_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"

/* Loops over floats, once for each kind of x86; the loader picks. Sanitizers
 * cannot have that: it picks before they are ready. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && defined(__OPTIMIZE__)
#define CD_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CD_SIMD
#endif

/* ---- tiles ---- */
/* Equal tiles of at most about `most` items; an even number of them when more than one. */
size_t cd_ops_tiles(size_t n, size_t most);
/* First item of tile t of `tiles`. */
static inline size_t cd_ops_tile_at(size_t n, size_t tiles, size_t t) { return n / tiles * t + (n % tiles) * t / tiles; }
/* fn(ctx, t, worker) for t = 0 .. n-1. */
typedef void cd_ops_fn(void *ctx, size_t t, int worker);
void cd_ops_each(cd_threads *pool, size_t n, cd_ops_fn *fn, void *ctx);

/* ---- matrix products ---- */
/* c = op(a) op(b) + beta c;  op(a) (m, k), op(b) (k, n), ld*: floats from row to row. */
typedef struct cd_gemm {
    bool ta, tb;
    size_t m, n, k;
    const float *a, *b;
    float *c;
    size_t lda, ldb, ldc;
    float beta;
} cd_gemm;
void cd_ops_gemm(const cd_gemm *g); /* here, in one piece */
/* Several products in tiles over the pool. They must not depend on each other. */
void cd_ops_gemm_run(cd_threads *pool, const cd_gemm *g, size_t n);
/* y (n, out) = x (n, in) w^T, w (out, in); no bias. */
void cd_ops_linear(const float *x, size_t n, size_t in, const float *w, size_t out, float *y);
/* dx (n, in) = dy (n, out) w + beta dx. */
void cd_ops_linear_dx(const float *dy, size_t n, size_t in, const float *w, size_t out, float beta, float *dx);
/* dw (out, in) += dy^T x, as a product for cd_ops_gemm_run. */
cd_gemm cd_ops_linear_dw(const float *dy, const float *x, size_t n, size_t in, size_t out, float *dw);

/* ---- dropout ---- */
typedef struct cd_dropout {
    uint64_t key;
    uint32_t below; /* dropped when hash < below; 0: nothing is */
    float scale;    /* 1/(1-p) */
} cd_dropout;
/* p = 0 or key = 0 keeps everything; `layer` gives streams of their own. */
cd_dropout cd_ops_drop(double p, uint64_t key, uint64_t layer);
/* x = drop(x); row0: number of the first row. */
void cd_ops_dropout(float *x, size_t n, size_t w, size_t row0, const cd_dropout *d);
/* Backward is the same call on the gradient. */

/* ---- elementwise, all in place ---- */
void cd_ops_bias(float *x, size_t n, size_t w, const float *b);
/* y (n) += f x. */
void cd_ops_axpy(float *y, float f, const float *x, size_t n);
/* sum (w) += column sums of x. */
void cd_ops_colsum(const float *x, size_t n, size_t w, float *sum);
/* ld: floats from row to row; b NULL: no bias. col0: number of the first column. */
void cd_ops_relu(float *x, size_t n, size_t w, size_t ld, const float *b, size_t row0, size_t col0, const cd_dropout *d);
/* dy becomes the gradient before the ReLU, from the output y; db (w) += its sums
 * (NULL: not wanted). */
void cd_ops_relu_back(float *dy, const float *y, size_t n, size_t w, size_t ld, const cd_dropout *d, float *db);
/* GELU in its tanh form; keeps x + b in pre (n, w; ld), which backward needs (NULL:
 * not wanted). */
void cd_ops_gelu(float *x, float *pre, size_t n, size_t w, size_t ld, const float *b, size_t row0, size_t col0,
                 const cd_dropout *d);
void cd_ops_gelu_back(float *dy, const float *pre, size_t n, size_t w, size_t ld, size_t row0, size_t col0,
                      const cd_dropout *d, float *db);
/* ELU: x above 0, e^x - 1 below; y = 0 counts as dropped when anything is. */
void cd_ops_elu(float *x, size_t n, size_t w, size_t ld, const float *b, size_t row0, size_t col0, const cd_dropout *d);
void cd_ops_elu_back(float *dy, const float *y, size_t n, size_t w, size_t ld, const cd_dropout *d, float *db);
/* x = drop(x + b) + r */
void cd_ops_residual(float *x, size_t n, size_t w, const float *b, const float *r, size_t row0, const cd_dropout *d);
/* e^x, about 2 ulp, 0 below -87; x (n) in place. */
void cd_ops_exp(float *x, size_t n);

/* ---- norms ---- */
#define CD_OPS_EPS 1e-5f
/* x (n, w) becomes (x - mean)/sd per row, rstd (n) = 1/sd, y = x*g + b. y may be x
 * itself when it is not needed again. */
void cd_ops_layernorm(float *x, size_t n, size_t w, const float *g, const float *b, float *rstd, float *y);
/* dy becomes dx, from what forward left; dg, db (w) +=. */
void cd_ops_layernorm_back(float *dy, const float *x, size_t n, size_t w, const float *g, const float *rstd, float *dg,
                           float *db);
/* Columns c0 .. c1 (at most CD_OPS_COLS) of (n, w) over all n >= 2 rows: as layer
 * norm, but per column; rstd (w). Running mean and (unbiased) variance move by a
 * tenth. x and y are different matrices. */
enum { CD_OPS_COLS = 64 };
void cd_ops_batchnorm(float *x, size_t n, size_t w, size_t c0, size_t c1, const float *g, const float *b, float *rstd,
                      float *mean, float *var, float *y);
void cd_ops_batchnorm_back(float *dy, const float *x, size_t n, size_t w, size_t c0, size_t c1, const float *g,
                           const float *rstd, float *dg, float *db);
/* With the running statistics: x = x*s + t, s and t (w) are scratch. */
void cd_ops_batchnorm_eval(float *x, size_t n, size_t w, const float *g, const float *b, const float *mean,
                           const float *var, float *s, float *t);

/* ---- attention within each program ---- */
/* qkv (rows, 3d): queries, keys and values of `heads` heads; out (rows, d). Programs
 * p0 .. p1; rows are numbered as in ptr, and so are qkv and out. scratch: at least
 * cd_ops_attention_scratch floats. d drops attention weights. */
size_t cd_ops_attention_scratch(size_t width, size_t heads, size_t max_rows);
void cd_ops_attention(const float *qkv, const uint32_t *ptr, size_t p0, size_t p1, size_t width, size_t heads,
                      const cd_dropout *d, float *scratch, float *out);
/* dqkv from dout; recomputes the weights. */
void cd_ops_attention_back(const float *dout, const float *qkv, const uint32_t *ptr, size_t p0, size_t p1, size_t width,
                           size_t heads, const cd_dropout *d, float *scratch, float *dqkv);

/* ---- one step of an LSTM, PyTorch's order of gates: input, forget, cell, output ---- */
/* z (n, 4w): arguments of the gates without the bias b (4w), becomes their values.
 * c = forget * c0 + input * cell, h = output * tanh(c); c0 NULL: zeros. */
void cd_ops_lstm(float *z, size_t n, size_t w, const float *b, const float *c0, float *c, float *h);
/* z becomes the gradient of the arguments, dc (of c) that of c0. dh: of h. */
void cd_ops_lstm_back(float *z, size_t n, size_t w, const float *c0, const float *c, const float *dh, float *dc);

/* ---- programs from rows; programs p0 .. p1, each with at least one row ---- */
/* y (n, 3w): mean, maximum, sum over the rows of a program; arg (n, w): row of the
 * maximum, NULL: not wanted. */
void cd_ops_pool(const float *x, const uint32_t *ptr, size_t p0, size_t p1, size_t w, float *y, uint32_t *arg);
void cd_ops_pool_back(const float *dy, const uint32_t *ptr, size_t p0, size_t p1, size_t w, const uint32_t *arg, float *dx);
/* y (n, w): the mean alone. */
void cd_ops_mean(const float *x, const uint32_t *ptr, size_t p0, size_t p1, size_t w, float *y);
/* dx += */
void cd_ops_mean_back(const float *dy, const uint32_t *ptr, size_t p0, size_t p1, size_t w, float *dx);
/* y (n, slots*w): row l of a program in slot l, rows from slots-1 on added up in the
 * last, zeros where there is no row. */
void cd_ops_flatten(const float *x, const uint32_t *ptr, size_t p0, size_t p1, size_t w, size_t slots, float *y);
void cd_ops_flatten_back(const float *dy, const uint32_t *ptr, size_t p0, size_t p1, size_t w, size_t slots, float *dx);
/* y (n, w) = log(sum over rows of exp(t * x)) / t, w small. */
void cd_ops_lse(const float *x, const uint32_t *ptr, size_t p0, size_t p1, size_t w, float t, float *y);
void cd_ops_lse_back(const float *dy, const float *x, const float *y, const uint32_t *ptr, size_t p0, size_t p1, size_t w,
                     float t, float *dx);
#endif
