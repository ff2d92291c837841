/* Matrix products: tiles over a thread pool, and BLAS with one thread in each of them. The cut
 * depends on the shape alone, so the bits do not depend on the number of threads. */
#include <assert.h>
#include <cblas.h>
#include <pthread.h>

#include "learner/tensor/tensor.h"

enum { MAX_JOB = 16, TILE_ROWS = 256, TILE_COLS = 512 };

size_t cd_ops_tiles(size_t n, size_t most) {
    const size_t t = (n + most - 1) / most;
    return t > 1 ? (t + 1) / 2 * 2 : 1;
}

typedef struct {
    cd_ops_fn *fn;
    void *ctx;
} each;

static cdmpp_status each_chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const each *e = ctx;
    (void)err;
    for (size_t t = beg; t < end; t++) e->fn(e->ctx, t, w);
    return CDMPP_OK;
}

void cd_ops_each(cd_threads *pool, size_t n, cd_ops_fn *fn, void *ctx) {
    each e = {fn, ctx};
    (void)cd_threads_run(pool, n, 1, each_chunk, &e, NULL); /* each_chunk cannot fail */
}

/* ---- matrix products ---- */
/* Process-wide, because OpenBLAS's setting is; its own threads would give other bits. */
static pthread_once_t blas_once = PTHREAD_ONCE_INIT;
static void blas_single(void) { openblas_set_num_threads(1); }

void cd_ops_gemm(const cd_gemm *g) {
    if (!g->m || !g->n) return;
    pthread_once(&blas_once, blas_single);
    cblas_sgemm(CblasRowMajor, g->ta ? CblasTrans : CblasNoTrans, g->tb ? CblasTrans : CblasNoTrans,
                (blasint)g->m, (blasint)g->n, (blasint)g->k, 1, g->a, (blasint)g->lda, g->b,
                (blasint)g->ldb, g->beta, g->c, (blasint)g->ldc);
}

typedef struct {
    const cd_gemm *g;
    size_t first[MAX_JOB + 1]; /* number of the job's first tile */
    size_t n;
} jobs;

/* Tiles are numbered through all products of a call: this one finds its product, then its block of
 * rows and columns. */
static void gemm_tile(void *ctx, size_t t, int worker) {
    const jobs *j = ctx;
    size_t k = 0;
    (void)worker;
    while (t >= j->first[k + 1]) k++;
    cd_gemm g = j->g[k];
    const size_t cols = cd_ops_tiles(g.n, TILE_COLS), rows = cd_ops_tiles(g.m, TILE_ROWS);
    const size_t r = (t - j->first[k]) / cols, c = (t - j->first[k]) % cols;
    const size_t r0 = cd_ops_tile_at(g.m, rows, r), c0 = cd_ops_tile_at(g.n, cols, c);
    g.m = cd_ops_tile_at(g.m, rows, r + 1) - r0;
    g.n = cd_ops_tile_at(g.n, cols, c + 1) - c0;
    g.a += g.ta ? r0 : r0 * g.lda;
    g.b += g.tb ? c0 * g.ldb : c0;
    g.c += r0 * g.ldc + c0;
    cd_ops_gemm(&g);
}

void cd_ops_gemm_run(cd_threads *pool, const cd_gemm *g, size_t n) {
    jobs j = {.g = g, .n = n};
    assert(n <= MAX_JOB);
    for (size_t k = 0; k < n; k++)
        j.first[k + 1] =
            j.first[k] + cd_ops_tiles(g[k].m, TILE_ROWS) * cd_ops_tiles(g[k].n, TILE_COLS);
    cd_ops_each(pool, j.first[n], gemm_tile, &j);
}

void cd_ops_linear(const float *x, size_t n, size_t in, const float *w, size_t out, float *y) {
    cd_ops_gemm(&(cd_gemm){.tb = true,
                           .m = n,
                           .n = out,
                           .k = in,
                           .a = x,
                           .lda = in,
                           .b = w,
                           .ldb = in,
                           .c = y,
                           .ldc = out});
}

void cd_ops_linear_dx(const float *dy, size_t n, size_t in, const float *w, size_t out, float beta,
                      float *dx) {
    cd_ops_gemm(&(cd_gemm){.m = n,
                           .n = in,
                           .k = out,
                           .a = dy,
                           .lda = out,
                           .b = w,
                           .ldb = in,
                           .c = dx,
                           .ldc = in,
                           .beta = beta});
}

cd_gemm cd_ops_linear_dw(const float *dy, const float *x, size_t n, size_t in, size_t out,
                         float *dw) {
    return (cd_gemm){.ta = true,
                     .m = out,
                     .n = in,
                     .k = n,
                     .a = dy,
                     .lda = out,
                     .b = x,
                     .ldb = in,
                     .c = dw,
                     .ldc = in,
                     .beta = 1};
}
