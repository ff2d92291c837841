/* The Gaussian process of a task, and the shift of a device. A task has at most CD_ONLINE_ADAPT_MAX
 * items: its matrix is factorised directly.
 *
 * Matrices are symmetric, and their lower half stands row by row. LAPACK counts by columns: to it
 * that is an upper half. */
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

#include "learner/model/model_internal.h"

/* Shares of the model's variance: one error for the whole task, shared by like programs, a
 * program's own. A trait (log2 of something) is far at 4. */
static const double whole = 0.1, local = 0.5, own = CD_ONLINE_ADAPT_OWN, length = 4;
static const double huber = 1.5;
static const double shift_var = 0.01;
enum { ROUNDS = 4, PRIOR_N = 8 };

double cd_online_adapt_like(const cd_online_adapt_item *a, const cd_online_adapt_item *b,
                            double far) {
    double d = 0;
    for (int k = 0; k < CD_N_TRAIT; k++) {
        const double x = ((double)a->trait[k] - (double)b->trait[k]) / length;
        d += x * x;
    }
    const double l = a->median_log - b->median_log;
    return exp(-0.5 * (d / CD_N_TRAIT + l * l) / (far * far));
}

double cd_online_adapt_covariance(const cd_online_adapt_item *a, const cd_online_adapt_item *b) {
    return whole + local * cd_online_adapt_like(a, b, 1);
}

/* ---- one task ---- */
static double error_of(const cd_online_adapt_item *i) { return i->measured_log - i->median_log; }

/* Mean of e with Huber weights at 1.5 sigma, and what it varies by around the device's shift. */
static void robust_mean(cd_online_adapt_task *t, const cd_online_adapt_item *item, size_t n) {
    double mean = 0, sigma2 = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double sum = 0, weight = 0;
        for (size_t i = 0; i < n; i++) {
            const double r = fabs(error_of(&item[i]) - mean) / item[i].sigma;
            const double w = (round && r > huber ? huber / r : 1) / (item[i].sigma * item[i].sigma);
            sum += w * error_of(&item[i]);
            weight += w;
        }
        mean = sum / weight;
    }
    for (size_t i = 0; i < n; i++) sigma2 += item[i].sigma * item[i].sigma / (double)n;
    t->mean = mean;
    t->var = sigma2 * (whole + (local + own) / (double)n);
}

/* One round: factor of covariance + own / weight; alpha and beta, which stand side by side. */
static cdmpp_status solve(const cd_online_adapt_item *item, size_t n, const double *weight,
                          double *m, double *alpha, double *beta, cdmpp_err *err) {
    const lapack_int size = (lapack_int)n;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++)
            m[i * n + j] = cd_online_adapt_covariance(&item[i], &item[j]);
        m[i * n + i] += own / weight[i];
        alpha[i] = error_of(&item[i]) / item[i].sigma;
        beta[i] = 1 / item[i].sigma;
    }
    /* `own` on top of a covariance is positive definite: what is not holds a number that is none */
    if (LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'U', size, m, size) ||
        LAPACKE_dpotrs(LAPACK_COL_MAJOR, 'U', size, 2, m, size, alpha, size))
        return CD_FAIL(err, ERANGE, "%zu measured programs: their covariance has no factor", n);
    return CDMPP_OK;
}

/* Items that the process around the task's own mean cannot explain weigh less. The residual of
 * item i is (own / weight) times its alpha. */
static void reweigh(double mean, size_t n, const double *alpha, const double *beta,
                    double *weight) {
    for (size_t i = 0; i < n; i++) {
        const double r = fabs(alpha[i] - mean * beta[i]) * own / weight[i];
        weight[i] = r > huber * sqrt(own) ? huber * sqrt(own) / r : 1;
    }
}

/* Mean square of the items under the prior, drawn to 1 as if PRIOR_N items had agreed with it. */
static double agreement(double mean, const cd_online_adapt_item *item, size_t n,
                        const double *alpha, const double *beta) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (error_of(&item[i]) - mean) / item[i].sigma * (alpha[i] - mean * beta[i]);
    return fmax(0.1, fmin((sum + PRIOR_N) / ((double)n + PRIOR_N), 4));
}

/* Iteratively reweighted: items that the process explains badly count less in the next round, as
 * Huber's loss would have it. The old fit stays valid until the new one is complete. */
cdmpp_status cd_online_adapt_fit_task(cd_online_adapt_task *t, cdmpp_err *err) {
    const size_t n = t->n;
    cd_online_adapt_item *seen = cd_mem_zalloc(n, sizeof *seen);
    double *factor = cd_mem_zalloc(n * n + 4 * n, sizeof *factor);
    if (!seen || !factor) {
        cd_mem_free(seen);
        cd_mem_free(factor);
        return CD_FAIL(err, ENOMEM, "%zu measured programs", n);
    }
    double *alpha = factor + n * n, *beta = alpha + n, *weight = beta + n, *moved = weight + n;
    memcpy(seen, t->item, n * sizeof *seen);
    robust_mean(t, seen, n);
    for (size_t i = 0; i < n; i++) weight[i] = 1;
    cdmpp_status st = CDMPP_OK;
    for (int round = 0; !st && round < ROUNDS; round++) {
        if (round) reweigh(t->mean, n, alpha, beta, weight);
        st = solve(seen, n, weight, factor, alpha, beta, err);
    }
    if (st) {
        cd_mem_free(seen);
        cd_mem_free(factor);
        return st;
    }
    t->scale = agreement(t->mean, seen, n, alpha, beta);
    cd_mem_free(t->seen);
    cd_mem_free(t->factor);
    t->seen = seen;
    t->factor = factor;
    t->alpha = alpha;
    t->beta = beta;
    t->moved = moved;
    t->n_fit = n;
    t->changed = false;
    return CDMPP_OK;
}

void cd_online_adapt_posterior(const cd_online_adapt_task *t, const cd_online_adapt_item *program,
                               double *mean, double *left) {
    double k[CD_ONLINE_ADAPT_MAX], sum = 0, taken = 0;
    for (size_t i = 0; i < t->n_fit; i++) {
        k[i] = cd_online_adapt_covariance(program, &t->seen[i]);
        sum += k[i] * (t->alpha[i] - t->moved[i]);
    }
    cblas_dtrsv(CblasColMajor, CblasUpper, CblasTrans, CblasNonUnit, (blasint)t->n_fit, t->factor,
                (blasint)t->n_fit, k, 1);
    for (size_t i = 0; i < t->n_fit; i++) taken += k[i] * k[i];
    *mean = program->sigma * sum;
    *left = fmax(own, 1 - taken) * t->scale;
}

/* ---- a device ---- */
void cd_online_adapt_fit_shift(cd_online_adapt_device *d) {
    const double prior = 1 / shift_var;
    d->shift = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double sum = 0, precision = prior;
        for (size_t k = 0; k < d->n_task; k++) {
            const cd_online_adapt_task *t = &d->task[k];
            if (!t->n_fit) continue;
            const double r = fabs(t->mean - d->shift) / sqrt(t->var);
            const double w = (round && r > huber ? huber / r : 1) / t->var;
            sum += w * t->mean;
            precision += w;
        }
        d->shift = sum / precision;
    }
    for (size_t k = 0; k < d->n_task; k++)
        for (size_t i = 0; i < d->task[k].n_fit; i++)
            d->task[k].moved[i] = d->shift * d->task[k].beta[i];
}
