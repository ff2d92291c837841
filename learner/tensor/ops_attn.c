/* Attention within each program. Programs are short (1 to 60 rows), so each is done at once, head
 * by head, on copies whose rows are padded with zeros to a multiple of 16 floats: products of 41
 * floats have no remainder that way, and one key row is one straight run. */
#include <math.h>

#include "learner/tensor/ops_math.h"

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
