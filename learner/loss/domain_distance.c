/* Distances between the latents of two domains (source and target device) and their gradients. Sums
 * are in double and in a fixed order; the squared distances of MMD come from one float32 product of
 * centred rows. */
#include "learner/loss/loss.h"

#include <math.h>
#include <string.h>

enum { K = 5, COLS = 64, ROWS = 64 };

struct cd_domain_distance {
    cd_arena arena;
    size_t d, max_rows;
    double *moment; /* (2, K, d): of X and of Y; the first is the mean */
    double *part;   /* (max tiles) partial sums of mmd */
    double *norm2;  /* (max_rows) squared lengths */
    float *z;       /* (max_rows, d) X above Y, centred */
    float *row;     /* per worker: 3 x (ROWS, max_rows) and (ROWS, d) */
};

static size_t worker_floats(const cd_domain_distance *s) { return ROWS * (3 * s->max_rows + s->d); }

cdmpp_status cd_domain_distance_new(size_t max_rows, size_t d, int n_worker,
                                    cd_domain_distance **out, cdmpp_err *err) {
    cd_domain_distance *s = *out = cd_mem_zalloc(1, sizeof *s);
    if (s) {
        *s = (cd_domain_distance){.d = d, .max_rows = max_rows};
        s->moment = CD_NEWN(&s->arena, double, 2 * K * d);
        s->part = CD_NEWN(&s->arena, double, cd_ops_tiles(max_rows, ROWS) + 2);
        s->norm2 = CD_NEWN(&s->arena, double, max_rows);
        s->z = CD_NEWN(&s->arena, float, max_rows *d);
        s->row =
            CD_NEWN(&s->arena, float, (size_t)(n_worker > 0 ? n_worker : 1) * worker_floats(s));
        if (!s->arena.oom) return CDMPP_OK;
    }
    cd_domain_distance_free(s);
    *out = NULL;
    return CD_FAIL(err, ENOMEM, "distance of %zu x %zu latents", max_rows, d);
}

void cd_domain_distance_free(cd_domain_distance *s) {
    if (!s) return;
    cd_arena_free(&s->arena);
    cd_mem_free(s);
}

/* ---- central moments ---- */
typedef struct {
    cd_domain_distance *s;
    const float *x[2];
    float *g[2];
    size_t n[2];
    double pull[K]; /* weight / norm of the k-th difference, 0 where that is 0 */
} cmd;

/* Columns c0 .. c1 of one sample: mean, then the moments about it. Two passes: powers of
 * differences from the mean do not cancel. */
static void column_moments(const cmd *j, int side, size_t c0, size_t c1) {
    const size_t d = j->s->d, n = j->n[side];
    double *m = j->s->moment + (size_t)side * K * d;
    for (size_t k = 0; k < K; k++) memset(m + k * d + c0, 0, (c1 - c0) * sizeof *m);
    for (size_t i = 0; i < n; i++)
        for (size_t c = c0; c < c1; c++) m[c] += (double)j->x[side][i * d + c];
    for (size_t c = c0; c < c1; c++) m[c] /= (double)n;
    for (size_t i = 0; i < n; i++)
        for (size_t c = c0; c < c1; c++) {
            const double v = (double)j->x[side][i * d + c] - m[c], v2 = v * v;
            m[d + c] += v2;
            m[2 * d + c] += v2 * v;
            m[3 * d + c] += v2 * v2;
            m[4 * d + c] += v2 * v2 * v;
        }
    for (size_t k = 1; k < K; k++)
        for (size_t c = c0; c < c1; c++) m[k * d + c] /= (double)n;
}

static void moments_tile(void *ctx, size_t t, int worker) {
    const cmd *j = ctx;
    const size_t tiles = cd_ops_tiles(j->s->d, COLS), c0 = cd_ops_tile_at(j->s->d, tiles, t),
                 c1 = cd_ops_tile_at(j->s->d, tiles, t + 1);
    (void)worker;
    column_moments(j, 0, c0, c1);
    column_moments(j, 1, c0, c1);
}

/* The k-th moment's slope at x is k/n * ((x - mean)^(k-1) - moment_(k-1)), which for
 * k = 1 is 1/n, and 0 where the moment before is the mean itself (k = 2). */
static void column_gradient(const cmd *j, int side, size_t c) {
    const size_t d = j->s->d, n = j->n[side];
    const double *m = j->s->moment + (size_t)side * K * d + c, *a = j->s->moment + c,
                 *b = a + K * d;
    const double sign = side ? -1 : 1, share = sign / (double)n;
    double f[K]; /* factor of v^(k-1) */
    for (size_t k = 0; k < K; k++)
        f[k] = share * (double)(k + 1) * j->pull[k] * (a[k * d] - b[k * d]);
    const double constant = f[0] - (f[2] * m[d] + f[3] * m[2 * d] + f[4] * m[3 * d]);
    for (size_t i = 0; i < n; i++) {
        const double v = (double)j->x[side][i * d + c] - m[0];
        j->g[side][i * d + c] +=
            (float)(constant + v * (f[1] + v * (f[2] + v * (f[3] + v * f[4]))));
    }
}

static void gradient_tile(void *ctx, size_t t, int worker) {
    const cmd *j = ctx;
    const size_t tiles = cd_ops_tiles(j->s->d, COLS), c1 = cd_ops_tile_at(j->s->d, tiles, t + 1);
    (void)worker;
    for (size_t c = cd_ops_tile_at(j->s->d, tiles, t); c < c1; c++)
        for (int side = 0; side < 2; side++) column_gradient(j, side, c);
}

/* Each norm sqrt(sum d^2) has the gradient d / norm, so `pull` is the weight over the norm; at 0
 * the gradient is taken as 0. */
double cd_domain_distance_cmd(cd_domain_distance *s, cd_threads *pool, const float *x, size_t n,
                              const float *y, size_t m, double weight, float *gx, float *gy) {
    cmd j = {s, {x, y}, {gx, gy}, {n, m}, {0}};
    const size_t tiles = cd_ops_tiles(s->d, COLS);
    double sum = 0;
    cd_ops_each(pool, tiles, moments_tile, &j);
    for (size_t k = 0; k < K; k++) {
        double sq = 0;
        for (size_t c = 0; c < s->d; c++) {
            const double v = s->moment[k * s->d + c] - s->moment[(K + k) * s->d + c];
            sq += v * v;
        }
        sum += sqrt(sq);
        j.pull[k] = sq > 0 ? weight / sqrt(sq) : 0;
    }
    if (gx && gy) cd_ops_each(pool, tiles, gradient_tile, &j);
    return sum;
}

/* ---- kernels ---- */
typedef struct {
    cd_domain_distance *s;
    size_t n, m;
    double weight;
    float *gx, *gy;
} mmd;

/* X above Y less the mean of X: distances stay, and float32 products keep their digits. */
static void stack(const mmd *j, const float *x, const float *y) {
    const size_t d = j->s->d, rows = j->n + j->m;
    double *mean = j->s->moment;
    memset(mean, 0, d * sizeof *mean);
    for (size_t i = 0; i < j->n; i++)
        for (size_t c = 0; c < d; c++) mean[c] += (double)x[i * d + c];
    for (size_t c = 0; c < d; c++) mean[c] /= (double)j->n;
    for (size_t i = 0; i < rows; i++) {
        const float *from = i < j->n ? x + i * d : y + (i - j->n) * d;
        float *to = j->s->z + i * d;
        double sq = 0;
        for (size_t c = 0; c < d; c++) {
            to[c] = (float)((double)from[c] - mean[c]);
            sq += (double)to[c] * (double)to[c];
        }
        j->s->norm2[i] = sq;
    }
}

/* The kernels of rows i0 .. i1 with every row. a becomes the coefficients of
 * z_i - z_j in the gradient, b and e are scratch; the sum of the kernels with their
 * signs is returned. */
static double kernels(const mmd *j, size_t i0, size_t i1, float *a, float *b, float *e) {
    const size_t rows = j->n + j->m;
    const double xx = 1 / ((double)j->n * (double)j->n), yy = 1 / ((double)j->m * (double)j->m),
                 xy = -1 / ((double)j->n * (double)j->m);
    double sum = 0;
    for (size_t i = i0, k = 0; i < i1; i++)
        for (size_t q = 0; q < rows; q++, k++) {
            const double d2 =
                i == q ? 0 : fmax(0, j->s->norm2[i] + j->s->norm2[q] - 2 * (double)a[k]);
            b[k] = (float)(-0.1 * d2);
            e[k] = (float)(-0.001 * d2);
        }
    cd_ops_exp(b, (i1 - i0) * rows);
    cd_ops_exp(e, (i1 - i0) * rows);
    for (size_t i = i0, k = 0; i < i1; i++)
        for (size_t q = 0; q < rows; q++, k++) {
            const double s = i < j->n ? (q < j->n ? xx : xy) : (q < j->n ? xy : yy);
            const double t = (double)b[k], t2 = t * t, t4 = t2 * t2, t10 = t4 * t4 * t2; /* e^-d2 */
            sum += s * (t10 + t + (double)e[k]);
            a[k] = (float)(-4 * j->weight * s * (t10 + 0.1 * t + 0.001 * (double)e[k]));
        }
    return sum;
}

/* Gradient of row i: sum over j of a_ij (z_i - z_j), as (sum of a) z_i minus one matrix product. */
static void mmd_tile(void *ctx, size_t t, int worker) {
    const mmd *j = ctx;
    const cd_domain_distance *s = j->s;
    const size_t d = s->d, rows = j->n + j->m, tiles = cd_ops_tiles(rows, ROWS);
    const size_t i0 = cd_ops_tile_at(rows, tiles, t), i1 = cd_ops_tile_at(rows, tiles, t + 1),
                 h = i1 - i0;
    float *a = s->row + (size_t)worker * worker_floats(s), *b = a + ROWS * s->max_rows,
          *e = b + ROWS * s->max_rows;
    float *az = e + ROWS * s->max_rows;
    cd_ops_gemm(&(cd_gemm){.tb = true,
                           .m = h,
                           .n = rows,
                           .k = d,
                           .a = s->z + i0 * d,
                           .lda = d,
                           .b = s->z,
                           .ldb = d,
                           .c = a,
                           .ldc = rows});
    s->part[t] = kernels(j, i0, i1, a, b, e);
    if (!j->gx || !j->gy) return;
    cd_ops_gemm(&(cd_gemm){
        .m = h, .n = d, .k = rows, .a = a, .lda = rows, .b = s->z, .ldb = d, .c = az, .ldc = d});
    for (size_t i = 0; i < h; i++) {
        float *g = i0 + i < j->n ? j->gx + (i0 + i) * d : j->gy + (i0 + i - j->n) * d;
        const float *z = s->z + (i0 + i) * d;
        double sum = 0;
        for (size_t q = 0; q < rows; q++) sum += (double)a[i * rows + q];
        for (size_t c = 0; c < d; c++) g[c] += (float)(sum * (double)z[c]) - az[i * d + c];
    }
}

double cd_domain_distance_mmd(cd_domain_distance *s, cd_threads *pool, const float *x, size_t n,
                              const float *y, size_t m, double weight, float *gx, float *gy) {
    mmd j = {s, n, m, weight, gx, gy};
    const size_t tiles = cd_ops_tiles(n + m, ROWS);
    double sum = 0;
    stack(&j, x, y);
    cd_ops_each(pool, tiles, mmd_tile, &j);
    for (size_t t = 0; t < tiles; t++) sum += s->part[t];
    return sum;
}
