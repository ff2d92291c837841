/* Matrix products: tiles over a thread pool, and BLAS with one thread in each of them. The cut
 * depends on the shape alone, so the bits do not depend on the number of threads. */
#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "learner/tensor/ops_math.h"
#include "learner/tensor/tensor.h"

/* Attention within each program. Programs are short (1 to 60 rows), so each is done at once, head
 * by head, on copies whose rows are padded with zeros to a multiple of 16 floats: products of 41
 * floats have no remainder that way, and one key row is one straight run. */

typedef struct {
    size_t n, w, hw, pw, head; /* rows; row width; head width, padded; number */
    uint32_t row0;             /* first row, for dropout */
    float scale;
    cd_dropout drop;
    float *k, *v, *dk, *dv; /* (n, pw) */
    float *q, *o, *dq;      /* (pw) */
    float *p, *dp;          /* (n) */
} work;

static size_t padded(size_t hw) { return (hw + CD_LANES - 1) / CD_LANES * CD_LANES; }

size_t cd_ops_attention_scratch(size_t width, size_t heads, size_t max_rows) {
    const size_t pw = padded(width / heads);
    return 4 * max_rows * pw + 3 * pw + 2 * padded(max_rows);
}

/* The scratch of one program, cut into its arrays. The order matters for head_back, which clears dk
 * and dv as one run. */
static work carve(size_t width, size_t heads, size_t n, const cd_dropout *d, float *s) {
    const size_t hw = width / heads, pw = padded(hw);
    work a = {
        .n = n, .w = width, .hw = hw, .pw = pw, .scale = (float)(1 / sqrt((double)hw)), .drop = *d};
    a.k = s;
    a.v = a.k + n * pw;
    a.dk = a.v + n * pw;
    a.dv = a.dk + n * pw;
    a.q = a.dv + n * pw;
    a.o = a.q + pw;
    a.dq = a.o + pw;
    a.p = a.dq + pw;
    a.dp = a.p + padded(n);
    return a;
}

CD_INLINE void load(float *to, const float *from, const work *a) {
    for (size_t c = 0; c < a->hw; c++) to[c] = from[c];
    for (size_t c = a->hw; c < a->pw; c++) to[c] = 0;
}

CD_INLINE float dot(const float *x, const float *y, size_t pw) {
    float s[CD_LANES] = {0};
    for (size_t c = 0; c < pw; c += CD_LANES)
        for (size_t l = 0; l < CD_LANES; l++) s[l] += x[c + l] * y[c + l];
    return cd_lanes_sum(s);
}

CD_INLINE void axpy(float *y, float f, const float *x, size_t pw) {
    for (size_t c = 0; c < pw; c++) y[c] += f * x[c];
}

CD_INLINE void load_keys(const work *a, const float *qkv) {
    for (size_t j = 0; j < a->n; j++) {
        load(a->k + j * a->pw, qkv + j * 3 * a->w + a->w + a->head * a->hw, a);
        load(a->v + j * a->pw, qkv + j * 3 * a->w + 2 * a->w + a->head * a->hw, a);
    }
}

/* a->p = softmax over the keys of row i. The largest score is subtracted before exp, so nothing
 * overflows. */
CD_INLINE void weights(const work *a, const float *qkv, size_t i) {
    float most = -INFINITY, sum = 0;
    load(a->q, qkv + i * 3 * a->w + a->head * a->hw, a);
    for (size_t c = 0; c < a->pw; c++) a->q[c] *= a->scale;
    for (size_t j = 0; j < a->n; j++) {
        a->p[j] = dot(a->q, a->k + j * a->pw, a->pw);
        most = a->p[j] > most ? a->p[j] : most;
    }
    for (size_t j = 0; j < a->n; j++) a->p[j] = cd_expf(a->p[j] - most);
    for (size_t j = 0; j < a->n; j++) sum += a->p[j];
    sum = 1.0f / sum;
    for (size_t j = 0; j < a->n; j++) a->p[j] *= sum;
}

CD_INLINE float kept(const work *a, uint32_t row, size_t j) {
    return !a->drop.below                                         ? 1.0f
           : cd_drop_keep(row, a->head * a->n + j, a->drop.below) ? a->drop.scale
                                                                  : 0.0f;
}
CD_INLINE uint32_t drop_row(const work *a, size_t i) {
    return a->drop.below ? cd_drop_row(&a->drop, a->row0 + i) : 0;
}

CD_SIMD static void head_forward(const work *a, const float *qkv, float *out) {
    load_keys(a, qkv);
    for (size_t i = 0; i < a->n; i++) {
        const uint32_t row = drop_row(a, i);
        weights(a, qkv, i);
        for (size_t c = 0; c < a->pw; c++) a->o[c] = 0;
        for (size_t j = 0; j < a->n; j++)
            axpy(a->o, a->p[j] * kept(a, row, j), a->v + j * a->pw, a->pw);
        for (size_t c = 0; c < a->hw; c++) out[i * a->w + a->head * a->hw + c] = a->o[c];
    }
}

void cd_ops_attention(const float *qkv, const uint32_t *ptr, size_t p0, size_t p1, size_t width,
                      size_t heads, const cd_dropout *d, float *scratch, float *out) {
    for (size_t p = p0; p < p1; p++) {
        work a = carve(width, heads, ptr[p + 1] - ptr[p], d, scratch);
        a.row0 = ptr[p];
        for (a.head = 0; a.head < heads; a.head++)
            head_forward(&a, qkv + (size_t)ptr[p] * 3 * width, out + (size_t)ptr[p] * width);
    }
}

/* One query row: adds to dk and dv, leaves dq. Backward of softmax: d score = p (dp - sum p dp).
 * The weights are computed again, because keeping them would cost n^2 floats a head. Adds to dk and
 * dv, leaves dq. */
CD_INLINE void row_back(const work *a, const float *qkv, const float *dout, size_t i) {
    const uint32_t row = drop_row(a, i);
    float sum = 0;
    weights(a, qkv, i);
    load(a->o, dout + i * a->w + a->head * a->hw, a);
    for (size_t j = 0; j < a->n; j++) {
        const float m = kept(a, row, j);
        a->dp[j] = dot(a->o, a->v + j * a->pw, a->pw) * m;
        sum += a->dp[j] * a->p[j];
        axpy(a->dv + j * a->pw, a->p[j] * m, a->o, a->pw);
    }
    for (size_t c = 0; c < a->pw; c++) a->dq[c] = 0;
    for (size_t j = 0; j < a->n; j++) { /* q is scaled already */
        const float ds = a->p[j] * (a->dp[j] - sum);
        axpy(a->dq, ds * a->scale, a->k + j * a->pw, a->pw);
        axpy(a->dk + j * a->pw, ds, a->q, a->pw);
    }
}

/* The gradients of keys and values collect contributions of all query rows; those of queries are
 * complete after their row. */
CD_SIMD static void head_back(const work *a, const float *qkv, const float *dout, float *dqkv) {
    const size_t w = a->w, at = a->head * a->hw;
    load_keys(a, qkv);
    for (size_t c = 0; c < 2 * a->n * a->pw; c++) a->dk[c] = 0; /* and dv behind it */
    for (size_t i = 0; i < a->n; i++) {
        row_back(a, qkv, dout, i);
        for (size_t c = 0; c < a->hw; c++) dqkv[i * 3 * w + at + c] = a->dq[c];
    }
    for (size_t j = 0; j < a->n; j++)
        for (size_t c = 0; c < a->hw; c++) {
            dqkv[j * 3 * w + w + at + c] = a->dk[j * a->pw + c];
            dqkv[j * 3 * w + 2 * w + at + c] = a->dv[j * a->pw + c];
        }
}

void cd_ops_attention_back(const float *dout, const float *qkv, const uint32_t *ptr, size_t p0,
                           size_t p1, size_t width, size_t heads, const cd_dropout *d,
                           float *scratch, float *dqkv) {
    for (size_t p = p0; p < p1; p++) {
        const size_t row = ptr[p];
        work a = carve(width, heads, ptr[p + 1] - ptr[p], d, scratch);
        a.row0 = ptr[p];
        for (a.head = 0; a.head < heads; a.head++)
            head_back(&a, qkv + row * 3 * width, dout + row * width, dqkv + row * 3 * width);
    }
}

/* Layer norm for each row and batch norm for each column. Sums over a row run in 16 lanes
 * (ops_math.h); sums over a column go from the first row to the last. Both orders are fixed, so the
 * bits are. */

/* ---- layer norm ---- */
CD_INLINE float row_sum(const float *x, size_t w) {
    float a[CD_LANES] = {0};
    size_t c = 0;
    for (; c + CD_LANES <= w; c += CD_LANES)
        for (size_t l = 0; l < CD_LANES; l++) a[l] += x[c + l];
    for (size_t l = 0; c < w; c++, l++) a[l] += x[c];
    return cd_lanes_sum(a);
}

/* Sum of x*y over a row. */
CD_INLINE float row_dot(const float *x, const float *y, size_t w) {
    float a[CD_LANES] = {0};
    size_t c = 0;
    for (; c + CD_LANES <= w; c += CD_LANES)
        for (size_t l = 0; l < CD_LANES; l++) a[l] += x[c + l] * y[c + l];
    for (size_t l = 0; c < w; c++, l++) a[l] += x[c] * y[c];
    return cd_lanes_sum(a);
}

CD_SIMD void cd_ops_layernorm(float *x, size_t n, size_t w, const float *g, const float *b,
                              float *rstd, float *y) {
    for (size_t i = 0; i < n; i++, x += w, y += w) {
        const float mean = row_sum(x, w) / (float)w;
        for (size_t c = 0; c < w; c++) x[c] -= mean;
        const float r = 1.0f / sqrtf(row_dot(x, x, w) / (float)w + CD_OPS_EPS);
        for (size_t c = 0; c < w; c++) x[c] *= r;
        if (x == y) /* a loop of its own, so that both vectorise */
            for (size_t c = 0; c < w; c++) x[c] = x[c] * g[c] + b[c];
        else
            for (size_t c = 0; c < w; c++) y[c] = x[c] * g[c] + b[c];
        rstd[i] = r;
    }
}

/* dx = (rstd/w) (w g dy - sum(g dy) - x sum(g dy x)) */
CD_SIMD void cd_ops_layernorm_back(float *dy, const float *x, size_t n, size_t w, const float *g,
                                   const float *rstd, float *dg, float *db) {
    for (size_t i = 0; i < n; i++, x += w, dy += w) {
        for (size_t c = 0; c < w; c++) {
            dg[c] += dy[c] * x[c];
            db[c] += dy[c];
            dy[c] *= g[c];
        }
        const float m1 = row_sum(dy, w) / (float)w, m2 = row_dot(dy, x, w) / (float)w, r = rstd[i];
        for (size_t c = 0; c < w; c++) dy[c] = r * (dy[c] - m1 - x[c] * m2);
    }
}

/* ---- batch norm ---- */
CD_SIMD static void columns_mean(const float *x, size_t n, size_t w, size_t k, float *m) {
    for (size_t c = 0; c < k; c++) m[c] = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < k; c++) m[c] += x[i * w + c];
    for (size_t c = 0; c < k; c++) m[c] /= (float)n;
}

CD_SIMD static void columns_centre(float *x, size_t n, size_t w, size_t k, const float *m,
                                   float *v) {
    for (size_t c = 0; c < k; c++) v[c] = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < k; c++) {
            x[i * w + c] -= m[c];
            v[c] += x[i * w + c] * x[i * w + c];
        }
    for (size_t c = 0; c < k; c++) v[c] /= (float)n;
}

CD_SIMD static void columns_scale(float *x, size_t n, size_t w, size_t k, const float *r,
                                  const float *g, const float *b, float *y) {
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < k; c++) {
            const float v = x[i * w + c] * r[c];
            x[i * w + c] = v;
            y[i * w + c] = v * g[c] + b[c];
        }
}

void cd_ops_batchnorm(float *x, size_t n, size_t w, size_t c0, size_t c1, const float *g,
                      const float *b, float *rstd, float *mean, float *var, float *y) {
    const size_t k = c1 - c0;
    float m[CD_OPS_COLS], v[CD_OPS_COLS];
    assert(k <= CD_OPS_COLS && n > 1);
    columns_mean(x + c0, n, w, k, m);
    columns_centre(x + c0, n, w, k, m, v);
    for (size_t c = 0; c < k; c++) {
        rstd[c0 + c] = 1.0f / sqrtf(v[c] + CD_OPS_EPS);
        mean[c0 + c] += 0.1f * (m[c] - mean[c0 + c]);
        var[c0 + c] += 0.1f * (v[c] * (float)n / (float)(n - 1) - var[c0 + c]);
    }
    columns_scale(x + c0, n, w, k, rstd + c0, g + c0, b + c0, y + c0);
}

CD_SIMD static void columns_sums(const float *dy, const float *x, size_t n, size_t w, size_t k,
                                 float *s1, float *s2) {
    for (size_t c = 0; c < k; c++) s1[c] = s2[c] = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < k; c++) {
            s1[c] += dy[i * w + c];
            s2[c] += dy[i * w + c] * x[i * w + c];
        }
}

/* dx = g rstd (dy - mean(dy) - x mean(dy x)) */
CD_SIMD static void columns_back(float *dy, const float *x, size_t n, size_t w, size_t k,
                                 const float *gr, const float *m1, const float *m2) {
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < k; c++)
            dy[i * w + c] = gr[c] * (dy[i * w + c] - m1[c] - x[i * w + c] * m2[c]);
}

void cd_ops_batchnorm_back(float *dy, const float *x, size_t n, size_t w, size_t c0, size_t c1,
                           const float *g, const float *rstd, float *dg, float *db) {
    const size_t k = c1 - c0;
    float s1[CD_OPS_COLS], s2[CD_OPS_COLS], gr[CD_OPS_COLS];
    assert(k <= CD_OPS_COLS);
    columns_sums(dy + c0, x + c0, n, w, k, s1, s2);
    for (size_t c = 0; c < k; c++) {
        db[c0 + c] += s1[c];
        dg[c0 + c] += s2[c];
        s1[c] /= (float)n;
        s2[c] /= (float)n;
        gr[c] = g[c0 + c] * rstd[c0 + c];
    }
    columns_back(dy + c0, x + c0, n, w, k, gr, s1, s2);
}

CD_SIMD void cd_ops_batchnorm_eval(float *x, size_t n, size_t w, const float *g, const float *b,
                                   const float *mean, const float *var, float *s, float *t) {
    for (size_t c = 0; c < w; c++) {
        s[c] = g[c] / sqrtf(var[c] + CD_OPS_EPS);
        t[c] = b[c] - mean[c] * s[c];
    }
    for (size_t i = 0; i < n; i++, x += w)
        for (size_t c = 0; c < w; c++) x[c] = x[c] * s[c] + t[c];
}

/* From the rows of a program to one row: mean, maximum and sum, slots, or the logarithm of a sum of
 * exponentials. */

/* The maximum is updated after its row number, for the number compares with the old maximum. The
 * first of equal ones counts. */
CD_SIMD static void pool_one(const float *x, size_t n, size_t w, float *y, uint32_t *arg) {
    float *mean = y, *most = y + w, *sum = y + 2 * w;
    for (size_t c = 0; c < w; c++) sum[c] = most[c] = x[c];
    if (arg)
        for (size_t c = 0; c < w; c++) arg[c] = 0;
    for (size_t i = 1; i < n; i++) {
        x += w;
        for (size_t c = 0; c < w; c++) sum[c] += x[c];
        if (arg)
            for (size_t c = 0; c < w; c++) arg[c] = x[c] > most[c] ? (uint32_t)i : arg[c];
        for (size_t c = 0; c < w; c++) most[c] = x[c] > most[c] ? x[c] : most[c];
    }
    for (size_t c = 0; c < w; c++) mean[c] = sum[c] / (float)n;
}

void cd_ops_pool(const float *x, const uint32_t *ptr, size_t p0, size_t p1, size_t w, float *y,
                 uint32_t *arg) {
    for (size_t p = p0; p < p1; p++)
        pool_one(x + (size_t)ptr[p] * w, ptr[p + 1] - ptr[p], w, y + p * 3 * w,
                 arg ? arg + p * w : NULL);
}

CD_SIMD static void pool_one_back(const float *dy, size_t n, size_t w, const uint32_t *arg,
                                  float *dx) {
    const float *mean = dy, *most = dy + w, *sum = dy + 2 * w;
    for (size_t i = 0; i < n; i++, dx += w)
        for (size_t c = 0; c < w; c++)
            dx[c] = sum[c] + mean[c] / (float)n + (arg[c] == (uint32_t)i ? most[c] : 0);
}

void cd_ops_pool_back(const float *dy, const uint32_t *ptr, size_t p0, size_t p1, size_t w,
                      const uint32_t *arg, float *dx) {
    for (size_t p = p0; p < p1; p++)
        pool_one_back(dy + p * 3 * w, ptr[p + 1] - ptr[p], w, arg + p * w, dx + (size_t)ptr[p] * w);
}

CD_SIMD static void mean_one(const float *x, size_t n, size_t w, float *y) {
    for (size_t c = 0; c < w; c++) y[c] = 0;
    for (size_t i = 0; i < n; i++, x += w)
        for (size_t c = 0; c < w; c++) y[c] += x[c];
    for (size_t c = 0; c < w; c++) y[c] /= (float)n;
}

void cd_ops_mean(const float *x, const uint32_t *ptr, size_t p0, size_t p1, size_t w, float *y) {
    for (size_t p = p0; p < p1; p++)
        mean_one(x + (size_t)ptr[p] * w, ptr[p + 1] - ptr[p], w, y + p * w);
}

void cd_ops_mean_back(const float *dy, const uint32_t *ptr, size_t p0, size_t p1, size_t w,
                      float *dx) {
    for (size_t p = p0; p < p1; p++) {
        const float share = 1.0f / (float)(ptr[p + 1] - ptr[p]);
        for (size_t i = ptr[p]; i < ptr[p + 1]; i++)
            for (size_t c = 0; c < w; c++) dx[i * w + c] += share * dy[p * w + c];
    }
}

/* ---- slots ---- */
static size_t slot(size_t l, size_t slots) { return l < slots ? l : slots - 1; }

void cd_ops_flatten(const float *x, const uint32_t *ptr, size_t p0, size_t p1, size_t w,
                    size_t slots, float *y) {
    for (size_t p = p0; p < p1; p++) {
        const size_t n = ptr[p + 1] - ptr[p], full = n < slots ? n : slots;
        float *to = y + p * slots * w;
        memcpy(to, x + (size_t)ptr[p] * w, full * w * sizeof *to);
        memset(to + full * w, 0, (slots - full) * w * sizeof *to);
        for (size_t l = slots; l < n; l++)
            for (size_t c = 0; c < w; c++) to[(slots - 1) * w + c] += x[(ptr[p] + l) * w + c];
    }
}

void cd_ops_flatten_back(const float *dy, const uint32_t *ptr, size_t p0, size_t p1, size_t w,
                         size_t slots, float *dx) {
    for (size_t p = p0; p < p1; p++)
        for (size_t l = 0; l < ptr[p + 1] - ptr[p]; l++)
            memcpy(dx + (ptr[p] + l) * w, dy + (p * slots + slot(l, slots)) * w, w * sizeof *dx);
}

/* ---- sums of exponentials ---- */
/* The largest value is taken out of the sum, so nothing overflows. */
void cd_ops_lse(const float *x, const uint32_t *ptr, size_t p0, size_t p1, size_t w, float t,
                float *y) {
    for (size_t p = p0; p < p1; p++)
        for (size_t c = 0; c < w; c++) {
            float most = -INFINITY, sum = 0;
            for (size_t i = ptr[p]; i < ptr[p + 1]; i++) most = fmaxf(most, x[i * w + c]);
            for (size_t i = ptr[p]; i < ptr[p + 1]; i++) sum += expf(t * (x[i * w + c] - most));
            y[p * w + c] = most + logf(sum) / t;
        }
}

void cd_ops_lse_back(const float *dy, const float *x, const float *y, const uint32_t *ptr,
                     size_t p0, size_t p1, size_t w, float t, float *dx) {
    for (size_t p = p0; p < p1; p++)
        for (size_t i = ptr[p]; i < ptr[p + 1]; i++)
            for (size_t c = 0; c < w; c++)
                dx[i * w + c] = dy[p * w + c] * expf(t * (x[i * w + c] - y[p * w + c]));
}

/* Activations, dropout, bias and sums of columns. Loops with and without dropout are written apart,
 * because a condition inside would keep the compiler from vectorising them. */

cd_dropout cd_ops_drop(double p, uint64_t key, uint64_t layer) {
    if (p <= 0 || !key) return (cd_dropout){.scale = 1};
    return (cd_dropout){.key = cd_rng_at(key, layer),
                        .below = (uint32_t)(p * 0x1p32),
                        .scale = (float)(1 / (1 - p))};
}

CD_SIMD void cd_ops_dropout(float *x, size_t n, size_t w, size_t row0, const cd_dropout *d) {
    const uint32_t below = d->below;
    const float scale = d->scale;
    if (!below) return;
    for (size_t i = 0; i < n; i++, x += w) {
        const uint32_t row = cd_drop_row(d, row0 + i);
        for (size_t c = 0; c < w; c++) x[c] = cd_drop_keep(row, c, below) ? x[c] * scale : 0;
    }
}

CD_SIMD void cd_ops_bias(float *x, size_t n, size_t w, const float *b) {
    for (size_t i = 0; i < n; i++, x += w)
        for (size_t c = 0; c < w; c++) x[c] += b[c];
}

CD_SIMD void cd_ops_axpy(float *y, float f, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] += f * x[i];
}

CD_SIMD void cd_ops_colsum(const float *x, size_t n, size_t w, float *sum) {
    for (size_t i = 0; i < n; i++, x += w)
        for (size_t c = 0; c < w; c++) sum[c] += x[c];
}

/* One row: bias, and dropout where there is one. */
CD_INLINE void add_bias(float *x, const float *b, size_t w) {
    if (b)
        for (size_t c = 0; c < w; c++) x[c] += b[c];
}
CD_INLINE void drop_row_elem(float *x, size_t w, uint32_t row, size_t col0, uint32_t below,
                             float scale) {
    if (below)
        for (size_t c = 0; c < w; c++) x[c] = cd_drop_keep(row, col0 + c, below) ? x[c] * scale : 0;
}

CD_SIMD void cd_ops_residual(float *x, size_t n, size_t w, const float *b, const float *r,
                             size_t row0, const cd_dropout *d) {
    const uint32_t below = d->below;
    const float scale = d->scale;
    for (size_t i = 0; i < n; i++, x += w, r += w) {
        const uint32_t row = below ? cd_drop_row(d, row0 + i) : 0;
        if (!below)
            for (size_t c = 0; c < w; c++) x[c] = x[c] + b[c] + r[c];
        else
            for (size_t c = 0; c < w; c++)
                x[c] = (cd_drop_keep(row, c, below) ? (x[c] + b[c]) * scale : 0) + r[c];
    }
}

/* ---- ReLU ---- */
/* y = 0 means "negative or dropped", which is all that backward needs to know. */
CD_SIMD void cd_ops_relu(float *x, size_t n, size_t w, size_t ld, const float *b, size_t row0,
                         size_t col0, const cd_dropout *d) {
    const uint32_t below = d->below;
    const float scale = d->scale;
    for (size_t i = 0; i < n; i++, x += ld) {
        const uint32_t row = below ? cd_drop_row(d, row0 + i) : 0;
        add_bias(x, b, w);
        if (!below)
            for (size_t c = 0; c < w; c++) x[c] = x[c] > 0 ? x[c] : 0;
        else
            for (size_t c = 0; c < w; c++)
                x[c] = x[c] > 0 && cd_drop_keep(row, col0 + c, below) ? x[c] * scale : 0;
    }
}

/* y > 0 exactly where the input was positive and kept, so the draw of dropout need not be
 * repeated. */
CD_SIMD void cd_ops_relu_back(float *dy, const float *y, size_t n, size_t w, size_t ld,
                              const cd_dropout *d, float *db) {
    const float scale = d->scale;
    for (size_t i = 0; i < n; i++, dy += ld, y += ld) {
        if (db)
            for (size_t c = 0; c < w; c++) {
                const float v = y[c] > 0 ? dy[c] * scale : 0;
                dy[c] = v;
                db[c] += v;
            }
        else
            for (size_t c = 0; c < w; c++) dy[c] = y[c] > 0 ? dy[c] * scale : 0;
    }
}

/* ---- GELU: x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3) ---- */
#define GELU_A 1.59576912f   /* 2 sqrt(2/pi) */
#define GELU_B 0.0713548162f /* GELU_A * 0.044715 */

CD_INLINE float sigmoid2u(float x) {
    return 1.0f / (1.0f + cd_expf(-(GELU_A * x + GELU_B * (x * x * x))));
}

CD_SIMD void cd_ops_gelu(float *x, float *pre, size_t n, size_t w, size_t ld, const float *b,
                         size_t row0, size_t col0, const cd_dropout *d) {
    const uint32_t below = d->below;
    const float scale = d->scale;
    for (size_t i = 0; i < n; i++, x += ld) {
        const uint32_t row = below ? cd_drop_row(d, row0 + i) : 0;
        add_bias(x, b, w);
        if (pre) memcpy(pre + i * ld, x, w * sizeof *x);
        for (size_t c = 0; c < w; c++) x[c] *= sigmoid2u(x[c]);
        drop_row_elem(x, w, row, col0, below, scale);
    }
}

/* d/dx of x s(u(x)), s the sigmoid and u = A x + B x^3: s + x s (1 - s) u'. */
CD_SIMD void cd_ops_gelu_back(float *dy, const float *pre, size_t n, size_t w, size_t ld,
                              size_t row0, size_t col0, const cd_dropout *d, float *db) {
    const uint32_t below = d->below;
    const float scale = d->scale;
    for (size_t i = 0; i < n; i++, dy += ld, pre += ld) {
        const uint32_t row = below ? cd_drop_row(d, row0 + i) : 0;
        drop_row_elem(dy, w, row, col0, below, scale);
        for (size_t c = 0; c < w; c++) {
            const float x = pre[c], s = sigmoid2u(x);
            dy[c] *= s + x * s * (1.0f - s) * (GELU_A + 3.0f * GELU_B * x * x);
        }
        if (db) add_bias(db, dy, w);
    }
}

/* ---- ELU ---- */
CD_SIMD void cd_ops_elu(float *x, size_t n, size_t w, size_t ld, const float *b, size_t row0,
                        size_t col0, const cd_dropout *d) {
    const uint32_t below = d->below;
    const float scale = d->scale;
    for (size_t i = 0; i < n; i++, x += ld) {
        const uint32_t row = below ? cd_drop_row(d, row0 + i) : 0;
        add_bias(x, b, w);
        for (size_t c = 0; c < w; c++) {
            const float e = cd_expf(x[c]) - 1.0f;
            x[c] = x[c] > 0 ? x[c] : e;
        }
        drop_row_elem(x, w, row, col0, below, scale);
    }
}

/* Its slope below 0 is y + 1, of the y before dropout. */
CD_SIMD void cd_ops_elu_back(float *dy, const float *y, size_t n, size_t w, size_t ld,
                             const cd_dropout *d, float *db) {
    const float scale = d->scale, zero = d->below ? 0 : scale;
    for (size_t i = 0; i < n; i++, dy += ld, y += ld) {
        for (size_t c = 0; c < w; c++) dy[c] *= y[c] > 0 ? scale : y[c] < 0 ? y[c] + scale : zero;
        if (db) add_bias(db, dy, w);
    }
}

CD_SIMD void cd_ops_exp(float *x, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = cd_expf(x[i]);
}

/* One step of an LSTM for many sequences at once: the matrix products are done elsewhere, here are
 * the gates. */

/* One row of z holds the four gates of a sequence, w floats each. */
CD_SIMD void cd_ops_lstm(float *z, size_t n, size_t w, const float *b, const float *c0, float *c,
                         float *h) {
    for (size_t r = 0; r < n; r++, z += 4 * w, c += w, h += w) {
        float *in = z, *forget = z + w, *cell = z + 2 * w, *out = z + 3 * w;
        for (size_t i = 0; i < w; i++) {
            in[i] = cd_sigmoidf(in[i] + b[i]);
            cell[i] = cd_tanhf(cell[i] + b[2 * w + i]);
            c[i] = in[i] * cell[i];
        }
        for (size_t i = 0; i < w; i++) forget[i] = cd_sigmoidf(forget[i] + b[w + i]);
        if (c0)
            for (size_t i = 0; i < w; i++) c[i] += forget[i] * c0[r * w + i];
        for (size_t i = 0; i < w; i++) {
            out[i] = cd_sigmoidf(out[i] + b[3 * w + i]);
            h[i] = out[i] * cd_tanhf(c[i]);
        }
    }
}

/* A row; the compiler must know that the arrays are apart. */
CD_INLINE void row_back_lstm(float *restrict in, float *restrict forget, float *restrict cell,
                             float *restrict out, size_t w, const float *restrict c,
                             const float *restrict dh, float *restrict dc) {
    for (size_t i = 0; i < w; i++) {
        const float t = cd_tanhf(c[i]), o = out[i], g = in[i], k = cell[i], f = forget[i],
                    d = dc[i] + dh[i] * o * (1.0f - t * t);
        out[i] = dh[i] * t * o * (1.0f - o);
        in[i] = d * k * g * (1.0f - g);
        cell[i] = d * g * (1.0f - k * k);
        forget[i] = d * f * (1.0f - f); /* times c0 */
        dc[i] = d * f;
    }
}

CD_SIMD void cd_ops_lstm_back(float *z, size_t n, size_t w, const float *c0, const float *c,
                              const float *dh, float *dc) {
    for (size_t r = 0; r < n; r++, z += 4 * w, c += w, dh += w, dc += w) {
        float *forget = z + w;
        row_back_lstm(z, forget, z + 2 * w, z + 3 * w, w, c, dh, dc);
        if (c0)
            for (size_t i = 0; i < w; i++) forget[i] *= c0[r * w + i];
        else
            for (size_t i = 0; i < w; i++) forget[i] = 0;
    }
}

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
