/* What the errors on a device that the model does not know have in common, whatever the task: a
 * Gaussian process over few measured programs.
 *
 *   e of a program = w + sigma * z,   z: that of its task (online_adapt_fit.c)
 *   cov(w, w') = level + broad exp(-d/2 / far^2)
 *
 * The first term is the level of the device, the second how it differs from those that were trained
 * on: like programs are off alike. The level is taken for that of a device like the known ones,
 * where the measurements do not speak clearly for any level at all. */
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

#include "learner/model/model_internal.h"

static const double like_level = 0.05, any_level = 1, clearly = 2, broad = 0.1, far = 1.5;
static const double huber = 1.5;
enum { ROUNDS = 4, MOST = 256, PRIOR_N = 8 };

static double shared(double level, const cd_online_adapt_item *a, const cd_online_adapt_item *b) {
    return level + broad * cd_online_adapt_like(a, b, far);
}

void cd_online_adapt_wide_free(cd_online_adapt_wide *w) {
    cd_mem_free(w->seen);
    cd_mem_free(w->factor);
    *w = (cd_online_adapt_wide){0};
}

/* Items of all tasks, the first of each, then the second of each ...: at most MOST, so that a
 * search on many tasks stays fast. */
static size_t gather(const cd_online_adapt_device *d, cd_online_adapt_item *item, size_t *task) {
    size_t n = 0;
    bool more = true;
    for (size_t i = 0; more && n < MOST; i++) {
        more = false;
        for (size_t k = 0; k < d->n_task && n < MOST; k++) {
            if (i >= d->task[k].n_fit) continue;
            item[n] = d->task[k].seen[i];
            task[n++] = k;
            more = true;
        }
    }
    return n;
}

/* One round: factor and alpha of all covariance, where an item of little weight has more of its
 * own. */
static cdmpp_status solve(double level, const cd_online_adapt_item *item, const size_t *task,
                          size_t n, const double *weight, double *m, double *alpha,
                          cdmpp_err *err) {
    const lapack_int size = (lapack_int)n;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            m[i * n + j] = shared(level, &item[i], &item[j]);
            if (task[i] == task[j])
                m[i * n + j] +=
                    item[i].sigma * item[j].sigma * cd_online_adapt_covariance(&item[i], &item[j]);
        }
        m[i * n + i] += item[i].sigma * item[i].sigma * CD_ONLINE_ADAPT_OWN / weight[i];
        alpha[i] = item[i].measured_log - item[i].median_log;
    }
    if (LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'U', size, m, size) ||
        LAPACKE_dpotrs(LAPACK_COL_MAJOR, 'U', size, 1, m, size, alpha, size))
        return CD_FAIL(err, ERANGE, "%zu measured programs: their covariance has no factor", n);
    return CDMPP_OK;
}

/* The residual of item i is its own part times its alpha. One far beyond its sigma counts less in
 * the next round, as Huber's loss has it. */
static void reweigh(const cd_online_adapt_item *item, size_t n, const double *alpha,
                    double *weight) {
    for (size_t i = 0; i < n; i++) {
        const double r = fabs(alpha[i]) * item[i].sigma * CD_ONLINE_ADAPT_OWN / weight[i],
                     most = huber * sqrt(CD_ONLINE_ADAPT_OWN);
        weight[i] = r > most ? most / r : 1;
    }
}

/* Mean square of the errors under the prior, drawn to 1 as if PRIOR_N more had agreed with it: how
 * sure the model is of other devices says less here. */
static double agreement(const cd_online_adapt_wide *w) {
    double sum = 0;
    for (size_t i = 0; i < w->n; i++)
        sum += (w->seen[i].measured_log - w->seen[i].median_log) * w->alpha[i];
    return fmax(0.25, fmin((sum + PRIOR_N) / ((double)w->n + PRIOR_N), 4));
}

/* What the tasks share is no error of a task: each task's fit is moved by it. */
static void move_tasks(cd_online_adapt_device *d) {
    for (size_t k = 0; k < d->n_task; k++) {
        cd_online_adapt_task *t = &d->task[k];
        const lapack_int n = (lapack_int)t->n_fit;
        for (size_t i = 0; i < t->n_fit; i++) {
            double variance;
            cd_online_adapt_wide_posterior(&d->wide, &t->seen[i], &t->moved[i], &variance);
            t->moved[i] /= t->seen[i].sigma;
        }
        if (n) (void)LAPACKE_dpotrs(LAPACK_COL_MAJOR, 'U', n, 1, t->factor, n, t->moved, n);
    }
}

static cdmpp_status fit(const cd_online_adapt_device *d, double level, cd_online_adapt_wide *w,
                        size_t room, cdmpp_err *err) {
    w->level = level;
    size_t *task = cd_mem_zalloc(room, sizeof *task);
    w->seen = cd_mem_zalloc(room, sizeof *w->seen);
    w->factor = cd_mem_zalloc(room * room + 2 * room, sizeof *w->factor);
    cdmpp_status st = task && w->seen && w->factor
                          ? CDMPP_OK
                          : CD_FAIL(err, ENOMEM, "%zu measured programs", room);
    if (!st) w->n = gather(d, w->seen, task);
    w->alpha = w->factor ? w->factor + w->n * w->n : NULL;
    for (int round = 0; !st && round < ROUNDS; round++) {
        double *weight = w->alpha + w->n;
        for (size_t i = 0; !round && i < w->n; i++) weight[i] = 1;
        if (round) reweigh(w->seen, w->n, w->alpha, weight);
        st = solve(w->level, w->seen, task, w->n, weight, w->factor, w->alpha, err);
    }
    cd_mem_free(task);
    return st;
}

/* Logarithm of the density of the errors, up to a constant. */
static double evidence(const cd_online_adapt_wide *w) {
    double sum = 0;
    for (size_t i = 0; i < w->n; i++)
        sum -= 0.5 * (w->seen[i].measured_log - w->seen[i].median_log) * w->alpha[i] +
               log(w->factor[i * w->n + i]);
    return sum;
}

cdmpp_status cd_online_adapt_wide_fit(cd_online_adapt_device *d, cdmpp_err *err) {
    cd_online_adapt_wide like = {0}, any = {0};
    size_t room = 0;
    for (size_t k = 0; k < d->n_task; k++) room += d->task[k].n_fit;
    if (room > MOST) room = MOST;
    cdmpp_status st = fit(d, like_level, &like, room, err);
    if (!st) st = fit(d, any_level, &any, room, err);
    if (st) {
        cd_online_adapt_wide_free(&like);
        cd_online_adapt_wide_free(&any);
        return st;
    }
    const bool far_off = evidence(&any) > evidence(&like) + clearly;
    cd_online_adapt_wide_free(&d->wide);
    d->wide = far_off ? any : like;
    cd_online_adapt_wide_free(far_off ? &like : &any);
    d->wide.scale = agreement(&d->wide);
    move_tasks(d);
    return CDMPP_OK;
}

void cd_online_adapt_wide_posterior(const cd_online_adapt_wide *w,
                                    const cd_online_adapt_item *program, double *mean,
                                    double *variance) {
    double k[MOST], taken = 0;
    *mean = 0;
    for (size_t i = 0; i < w->n; i++) {
        k[i] = shared(w->level, program, &w->seen[i]);
        *mean += k[i] * w->alpha[i];
    }
    cblas_dtrsv(CblasColMajor, CblasUpper, CblasTrans, CblasNonUnit, (blasint)w->n, w->factor,
                (blasint)w->n, k, 1);
    for (size_t i = 0; i < w->n; i++) taken += k[i] * k[i];
    *variance = fmax(0, w->level + broad - taken);
}
