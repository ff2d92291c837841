/* The door of learner/tensor: other rooms include this header and no other of the room.
 *
 * Arithmetic of networks: matrix products, activations, norms and attention with their gradients
 * (ops.h), named parameters (params.h), working memory (slab.h), the safetensors format. For
 * learner/nn above all. Float32, row-major. */
#ifndef CD_LEARNER_TENSOR_DOOR_H
#define CD_LEARNER_TENSOR_DOOR_H
#include <stdbool.h>
#include <stdint.h>

#include "base/text/text.h"

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

/* Loops over floats, once for each kind of x86; the loader picks. Sanitizers
 * cannot have that: it picks before they are ready. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__OPTIMIZE__)
#define CD_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CD_SIMD
#endif

/* ---- tiles ---- */
/* Equal tiles of at most about `most` items; an even number of them when more than one. */
size_t cd_ops_tiles(size_t n, size_t most);
/* First item of tile t of `tiles`. */
static inline size_t cd_ops_tile_at(size_t n, size_t tiles, size_t t) {
    return n / tiles * t + (n % tiles) * t / tiles;
}
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
void cd_ops_linear_dx(const float *dy, size_t n, size_t in, const float *w, size_t out, float beta,
                      float *dx);
/* dw (out, in) += dy^T x, as a product for cd_ops_gemm_run. */
cd_gemm cd_ops_linear_dw(const float *dy, const float *x, size_t n, size_t in, size_t out,
                         float *dw);

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
void cd_ops_relu(float *x, size_t n, size_t w, size_t ld, const float *b, size_t row0, size_t col0,
                 const cd_dropout *d);
/* dy becomes the gradient before the ReLU, from the output y; db (w) += its sums
 * (NULL: not wanted). */
void cd_ops_relu_back(float *dy, const float *y, size_t n, size_t w, size_t ld, const cd_dropout *d,
                      float *db);
/* GELU in its tanh form; keeps x + b in pre (n, w; ld), which backward needs (NULL:
 * not wanted). */
void cd_ops_gelu(float *x, float *pre, size_t n, size_t w, size_t ld, const float *b, size_t row0,
                 size_t col0, const cd_dropout *d);
void cd_ops_gelu_back(float *dy, const float *pre, size_t n, size_t w, size_t ld, size_t row0,
                      size_t col0, const cd_dropout *d, float *db);
/* ELU: x above 0, e^x - 1 below; y = 0 counts as dropped when anything is. */
void cd_ops_elu(float *x, size_t n, size_t w, size_t ld, const float *b, size_t row0, size_t col0,
                const cd_dropout *d);
void cd_ops_elu_back(float *dy, const float *y, size_t n, size_t w, size_t ld, const cd_dropout *d,
                     float *db);
/* x = drop(x + b) + r */
void cd_ops_residual(float *x, size_t n, size_t w, const float *b, const float *r, size_t row0,
                     const cd_dropout *d);
/* e^x, about 2 ulp, 0 below -87; x (n) in place. */
void cd_ops_exp(float *x, size_t n);

/* ---- norms ---- */
#define CD_OPS_EPS 1e-5f
/* x (n, w) becomes (x - mean)/sd per row, rstd (n) = 1/sd, y = x*g + b. y may be x
 * itself when it is not needed again. */
void cd_ops_layernorm(float *x, size_t n, size_t w, const float *g, const float *b, float *rstd,
                      float *y);
/* dy becomes dx, from what forward left; dg, db (w) +=. */
void cd_ops_layernorm_back(float *dy, const float *x, size_t n, size_t w, const float *g,
                           const float *rstd, float *dg, float *db);
/* Columns c0 .. c1 (at most CD_OPS_COLS) of (n, w) over all n >= 2 rows: as layer
 * norm, but per column; rstd (w). Running mean and (unbiased) variance move by a
 * tenth. x and y are different matrices. */
enum { CD_OPS_COLS = 64 };
void cd_ops_batchnorm(float *x, size_t n, size_t w, size_t c0, size_t c1, const float *g,
                      const float *b, float *rstd, float *mean, float *var, float *y);
void cd_ops_batchnorm_back(float *dy, const float *x, size_t n, size_t w, size_t c0, size_t c1,
                           const float *g, const float *rstd, float *dg, float *db);
/* With the running statistics: x = x*s + t, s and t (w) are scratch. */
void cd_ops_batchnorm_eval(float *x, size_t n, size_t w, const float *g, const float *b,
                           const float *mean, const float *var, float *s, float *t);

/* ---- attention within each program ---- */
/* qkv (rows, 3d): queries, keys and values of `heads` heads; out (rows, d). Programs
 * p0 .. p1; rows are numbered as in ptr, and so are qkv and out. scratch: at least
 * cd_ops_attention_scratch floats. d drops attention weights. */
size_t cd_ops_attention_scratch(size_t width, size_t heads, size_t max_rows);
void cd_ops_attention(const float *qkv, const uint32_t *ptr, size_t p0, size_t p1, size_t width,
                      size_t heads, const cd_dropout *d, float *scratch, float *out);
/* dqkv from dout; recomputes the weights. */
void cd_ops_attention_back(const float *dout, const float *qkv, const uint32_t *ptr, size_t p0,
                           size_t p1, size_t width, size_t heads, const cd_dropout *d,
                           float *scratch, float *dqkv);

/* ---- one step of an LSTM, PyTorch's order of gates: input, forget, cell, output ---- */
/* z (n, 4w): arguments of the gates without the bias b (4w), becomes their values.
 * c = forget * c0 + input * cell, h = output * tanh(c); c0 NULL: zeros. */
void cd_ops_lstm(float *z, size_t n, size_t w, const float *b, const float *c0, float *c, float *h);
/* z becomes the gradient of the arguments, dc (of c) that of c0. dh: of h. */
void cd_ops_lstm_back(float *z, size_t n, size_t w, const float *c0, const float *c,
                      const float *dh, float *dc);

/* ---- programs from rows; programs p0 .. p1, each with at least one row ---- */
/* y (n, 3w): mean, maximum, sum over the rows of a program; arg (n, w): row of the
 * maximum, NULL: not wanted. */
void cd_ops_pool(const float *x, const uint32_t *ptr, size_t p0, size_t p1, size_t w, float *y,
                 uint32_t *arg);
void cd_ops_pool_back(const float *dy, const uint32_t *ptr, size_t p0, size_t p1, size_t w,
                      const uint32_t *arg, float *dx);
/* y (n, w): the mean alone. */
void cd_ops_mean(const float *x, const uint32_t *ptr, size_t p0, size_t p1, size_t w, float *y);
/* dx += */
void cd_ops_mean_back(const float *dy, const uint32_t *ptr, size_t p0, size_t p1, size_t w,
                      float *dx);
/* y (n, slots*w): row l of a program in slot l, rows from slots-1 on added up in the
 * last, zeros where there is no row. */
void cd_ops_flatten(const float *x, const uint32_t *ptr, size_t p0, size_t p1, size_t w,
                    size_t slots, float *y);
void cd_ops_flatten_back(const float *dy, const uint32_t *ptr, size_t p0, size_t p1, size_t w,
                         size_t slots, float *dx);
/* y (n, w) = log(sum over rows of exp(t * x)) / t, w small. */
void cd_ops_lse(const float *x, const uint32_t *ptr, size_t p0, size_t p1, size_t w, float t,
                float *y);
void cd_ops_lse_back(const float *dy, const float *x, const float *y, const uint32_t *ptr,
                     size_t p0, size_t p1, size_t w, float t, float *dx);

/* safetensors -- named tensors of float32 as bytes, the format of Hugging Face.
 *
 *   (1) bytes 0..7   u64 little-endian H, bytes of the header
 *   (2) 8..8+H       one JSON object, padded with blanks to a multiple of 8:
 *                    {"__metadata__":{"key":"text",...},
 *                     "name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},...}
 *   (3) ..           the values, little-endian, row-major, one after another;
 *                    data_offsets count from the end of the header
 *
 * Reading accepts F32 only and checks that every tensor lies inside the data and
 * is as long as its shape says. No state, any thread. */

typedef struct cd_tensor {
    const char *name;
    size_t n_dim, dim[2];
    const float *value; /* dim[0] * dim[1], borrowed */
} cd_tensor;

/* Append tensors to `out`; `metadata`: a JSON object of texts, NULL: none. Out of
 * memory shows in out->oom. */
void cd_safetensors_write(cd_buf *out, const cd_tensor *t, size_t n, const char *metadata);

/* A parsed file: the header lives in the arena, values stay in `bytes`. */
typedef struct cd_safetensors {
    const cd_json *header;
    const char *data;
    size_t n_data;
} cd_safetensors;

/* Errors: EPARSE (not such a file, cut short), ENOMEM. */
cdmpp_status cd_safetensors_open(cd_arena *a, const void *bytes, size_t n, cd_safetensors *f,
                                 cdmpp_err *err);
/* Copy one tensor of exactly this shape to `value`. Errors: EMODEL (absent, other
 * shape or type, numbers that are not finite), EPARSE (outside the data). */
cdmpp_status cd_safetensors_get(const cd_safetensors *f, const char *name, size_t n_dim,
                                const size_t *dim, float *value, cdmpp_err *err);
/* A text of __metadata__; NULL when absent. */
CD_KEEP const cd_json *cd_safetensors_meta(const cd_safetensors *f, const char *key);
/* Number of tensors in the file. */
size_t cd_safetensors_count(const cd_safetensors *f);

/* slab -- one aligned block that is planned first and then carved up.
 *
 *   plan:   take, take, take ... with no memory; `used` is what it needs
 *   use:    the same calls in the same order give the same places
 *
 * (1) every piece starts at a multiple of 64 bytes; (2) nothing is given back but
 * the whole; (3) pieces are not zeroed by take, the block is zeroed once.
 * One slab, one thread at a time. */

typedef struct cd_slab {
    void *raw;  /* what the heap gave */
    char *base; /* NULL while planning */
    size_t used, cap;
} cd_slab;

/* n items of `size` bytes; NULL while planning, never NULL afterwards. */
CD_KEEP void *cd_slab_take(cd_slab *s, size_t n, size_t size);
CD_KEEP static inline float *cd_slab_floats(cd_slab *s, size_t n) {
    return cd_slab_take(s, n, sizeof(float));
}
/* Memory for what was planned; starts over at the first piece. Errors: ENOMEM. */
cdmpp_status cd_slab_alloc(cd_slab *s, cdmpp_err *err);
void cd_slab_free(cd_slab *s);

/* params -- the numbers of a network: named tensors in two flat blocks.
 *
 *   value  [ w | b | w | b | ... ][ running statistics ]
 *   grad   [ w | b | w | b | ... ]
 *          0 .............. n_train ................ n_float
 *
 *   (1) each tensor starts at a multiple of 16 floats (64 bytes), gaps are zero in
 *       both blocks and stay zero under any step that maps (0, 0) to 0;
 *   (2) an optimiser walks 0 .. n_train, or tensors where `decay` matters: false
 *       for biases and norms, which weight decay may leave alone;
 *   (3) running statistics (batch norm) have no gradient; they are saved, copied
 *       and averaged with the rest of `value`.
 * Register everything, then lay out once. Reading values: any thread. */

typedef enum {
    CD_INIT_ZERO,
    CD_INIT_ONE,
    CD_INIT_UNIFORM /* -bound .. bound */
} cd_init;

typedef struct cd_param {
    char name[80];
    size_t n_dim, dim[2]; /* a matrix is (outputs, inputs), as PyTorch has it */
    size_t n, off;        /* floats, place in both blocks */
    cd_init init;
    float bound;
    bool decay, is_stat;
} cd_param;

typedef struct cd_params {
    cd_param *param;
    size_t n, cap;
    size_t n_train, n_float; /* floats with gradients, all floats; gaps included */
    float *value, *grad;     /* (n_float), (n_train); 64-byte aligned */
    cd_slab slab_value, slab_grad;
    bool oom; /* sticky while registering */
} cd_params;

/* Register a vector (cols 0) or matrix; returns its number. Out of memory is
 * remembered until cd_params_layout. */
size_t cd_params_add(cd_params *p, const char *name, size_t rows, size_t cols, cd_init init,
                     float bound);
/* Running statistic of `n` floats. */
size_t cd_params_add_stat(cd_params *p, const char *name, size_t n, cd_init init);
/* "prefix.weight" (out, in) and "prefix.bias" (out), both uniform within
 * 1/sqrt(in), PyTorch's rule. */
void cd_params_add_linear(cd_params *p, const char *prefix, size_t in, size_t out, size_t *w,
                          size_t *b);

/* Memory and initial values. The values of a tensor depend on the seed and the
 * tensor's number only. Errors: ENOMEM. */
cdmpp_status cd_params_layout(cd_params *p, uint64_t seed, cdmpp_err *err);
void cd_params_free(cd_params *p);

static inline float *cd_params_value(const cd_params *p, size_t id) {
    return p->value + p->param[id].off;
}
static inline float *cd_params_grad(const cd_params *p, size_t id) {
    return p->grad + p->param[id].off;
}
void cd_params_zero_grad(cd_params *p);     /* before a backward pass, which adds */
size_t cd_params_count(const cd_params *p); /* trained numbers, without gaps */

/* The tensors as an array for cd_safetensors_write; `t` has room for p->n. */
void cd_params_tensors(const cd_params *p, cd_tensor *t);
/* Values of every registered tensor. Errors: EMODEL, EPARSE; some values may have
 * changed then. */
cdmpp_status cd_params_read(cd_params *p, const cd_safetensors *f, cdmpp_err *err);
#endif
