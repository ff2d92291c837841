/* What a few measured rows tell about the others: Gaussian processes over the residuals of a
 * model. */
#include "learner/llm_op/llm_op_few.h"

#include <math.h>
#include <string.h>

/* Variances of ln(time / answer), chosen on A100, H100 and L40S by a model of the three other GPUs,
 * on rows to train on. */
#define ALL    0.01 /* that all rows of a family have in common */
#define TYPE   0.01 /* those of a kind and type */
#define KERNEL 0.05 /* those of a kernel of a library besides */
#define LIKE   0.08 /* those of like estimates */
#define CROSS  0.2  /* of which rows of another type or kernel share this part */
#define WIDE   3.0  /* how far likeness reaches: octaves */
#define NOISE  0.06
#define MOST   0.7 /* a residual counts as no larger: one row is no law */

struct cd_llm_op_few {
    size_t n;
    cd_llm_op_few_row *row; /* (n) */
    double *weight;         /* (n) covariance^-1 residuals */
};

static float lg(double x, double low, double high) {
    return (float)fmin(high, fmax(low, log2(fmax(x, 1e-12))));
}

cd_llm_op_few_row cd_llm_op_few_row_of(const cd_llm_op_record *r, float maker,
                                       const cd_llm_op_estimate *e) {
    return (cd_llm_op_few_row){r->kind,
                               r->type,
                               r->kernel,
                               isnan(maker) ? -1 : (int)maker,
                               {lg(e->base_s * 1e6, -10, 40), lg(e->tiles_s / e->base_s, -8, 0),
                                lg(e->memory_s / e->base_s, -8, 2), lg(e->waves, -8, 8)}};
}

static double likeness(const cd_llm_op_few_row *a, const cd_llm_op_few_row *b) {
    const bool type = a->kind == b->kind && a->type == b->type,
               same = type && a->maker == b->maker && a->kernel == b->kernel;
    double far = 0;
    for (size_t i = 0; i < CD_LLM_OP_FEW_PLACE; i++) {
        const double d = (double)(a->place[i] - b->place[i]) / WIDE;
        far += d * d;
    }
    return ALL + (type ? TYPE : 0) + (same ? KERNEL : 0) +
           (same ? LIKE : LIKE * CROSS) * exp(-far / 2);
}

/* x := (L L^T)^-1 x */
static void solve(const double *l, size_t n, double *x) {
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++) x[i] -= l[i * n + k] * x[k];
        x[i] /= l[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++) x[i] -= l[k * n + i] * x[k];
        x[i] /= l[i * n + i];
    }
}

/* The noise on the diagonal keeps every pivot above it. */
static void factor(double *a, size_t n) {
    for (size_t j = 0; j < n; j++)
        for (size_t i = j; i < n; i++) {
            double s = a[i * n + j];
            for (size_t k = 0; k < j; k++) s -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = i == j ? sqrt(fmax(s, NOISE / 2)) : s / a[j * n + j];
        }
}

cdmpp_status cd_llm_op_few_new(const cd_llm_op_few_row *row, const double *residual, size_t n,
                               cd_llm_op_few **out, cdmpp_err *err) {
    cd_llm_op_few *f = cd_mem_zalloc(1, sizeof *f);
    /* covariance of the rows, then its Cholesky factor */
    double *a = cd_mem_zalloc(n * n + 1, sizeof *a);
    if (f)
        *f = (cd_llm_op_few){n, cd_mem_zalloc(n + 1, sizeof *f->row),
                             cd_mem_zalloc(n + 1, sizeof *f->weight)};
    if (!f || !a || !f->row || !f->weight) {
        cd_llm_op_few_free(f);
        cd_mem_free(a);
        return CD_FAIL(err, ENOMEM, "%zu rows of a device", n);
    }
    memcpy(f->row, row, n * sizeof *row);
    for (size_t i = 0; i < n; i++) {
        f->weight[i] = fmin(MOST, fmax(-MOST, residual[i]));
        for (size_t k = 0; k <= i; k++)
            a[i * n + k] = likeness(&row[i], &row[k]) + (i == k ? NOISE : 0);
    }
    factor(a, n);
    solve(a, n, f->weight);
    cd_mem_free(a);
    *out = f;
    return CDMPP_OK;
}

double cd_llm_op_few_ask(const cd_llm_op_few *f, const cd_llm_op_few_row *row) {
    double mean = 0;
    for (size_t i = 0; i < f->n; i++) mean += likeness(row, &f->row[i]) * f->weight[i];
    return mean;
}

size_t cd_llm_op_few_count(const cd_llm_op_few *f) { return f->n; }

void cd_llm_op_few_free(cd_llm_op_few *f) {
    if (!f) return;
    cd_mem_free(f->row);
    cd_mem_free(f->weight);
    cd_mem_free(f);
}
