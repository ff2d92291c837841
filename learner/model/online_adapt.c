/* Measured programs of a user's device correct the predictions for other programs of the same task
 * and device: a Gaussian process over few numbers of a program (online_adapt.c). Here are the
 * items and the correction. */
#include <assert.h>
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

#include "features/rows/rows.h"
#include "learner/model/model_internal.h"

/* The Gaussian process of a task, and the shift of a device. A task has at most CD_ONLINE_ADAPT_MAX
 * items: its matrix is factorised directly.
 *
 * Matrices are symmetric, and their lower half stands row by row. LAPACK counts by columns: to it
 * that is an upper half. */

/* Shares of the model's variance: one error for the whole task, shared by like programs, a
 * program's own. A trait (log2 of something) is far at 4. */
static const double whole = 0.1, local = 0.5, own = CD_ONLINE_ADAPT_OWN, length = 4;
static const double huber = 1.5;
static const double shift_var = 0.01;
enum { ROUNDS = 4, PRIOR_N = 8 };

/* The part of the kernel that falls with the distance of two programs; `far`: times the usual
 * length. */
static double online_adapt_like(const cd_online_adapt_item *a, const cd_online_adapt_item *b,
                                double far) {
    double d = 0;
    for (int k = 0; k < CD_N_TRAIT; k++) {
        const double x = ((double)a->trait[k] - (double)b->trait[k]) / length;
        d += x * x;
    }
    const double l = a->median_log - b->median_log;
    return exp(-0.5 * (d / CD_N_TRAIT + l * l) / (far * far));
}

/* cov(z, z') of two programs of a task, without that. */
static double online_adapt_covariance(const cd_online_adapt_item *a,
                                      const cd_online_adapt_item *b) {
    return whole + local * online_adapt_like(a, b, 1);
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
        for (size_t j = 0; j <= i; j++) m[i * n + j] = online_adapt_covariance(&item[i], &item[j]);
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

/* Errors: ENOMEM; the task then keeps its last fit.
 *
 * Iteratively reweighted: items that the process explains badly count less in the next round, as
 * Huber's loss would have it. The old fit stays valid until the new one is complete. */
static cdmpp_status online_adapt_fit_task(cd_online_adapt_task *t, cdmpp_err *err) {
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

/* Correction in units of ln s beside what the device's tasks share, and share of the variance that
 * is left, of a program. */
static void online_adapt_posterior(const cd_online_adapt_task *t,
                                   const cd_online_adapt_item *program, double *mean,
                                   double *left) {
    double k[CD_ONLINE_ADAPT_MAX], sum = 0, taken = 0;
    for (size_t i = 0; i < t->n_fit; i++) {
        k[i] = online_adapt_covariance(program, &t->seen[i]);
        sum += k[i] * (t->alpha[i] - t->moved[i]);
    }
    cblas_dtrsv(CblasColMajor, CblasUpper, CblasTrans, CblasNonUnit, (blasint)t->n_fit, t->factor,
                (blasint)t->n_fit, k, 1);
    for (size_t i = 0; i < t->n_fit; i++) taken += k[i] * k[i];
    *mean = program->sigma * sum;
    *left = fmax(own, 1 - taken) * t->scale;
}

/* ---- a device ---- */
static void online_adapt_fit_shift(cd_online_adapt_device *d) {
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

/* What the errors on a device that the model does not know have in common, whatever the task: a
 * Gaussian process over few measured programs.
 *
 *   e of a program = w + sigma * z,   z: that of its task (online_adapt.c)
 *   cov(w, w') = level + broad exp(-d/2 / far^2)
 *
 * The first term is the level of the device, the second how it differs from those that were trained
 * on: like programs are off alike. The level is taken for that of a device like the known ones,
 * where the measurements do not speak clearly for any level at all. */

static const double like_level = 0.05, any_level = 1, clearly = 2, broad = 0.1, far = 1.5;
enum { ROUNDS_WIDE = 4, MOST = 256, PRIOR_N_WIDE = 8 };

static double shared(double level, const cd_online_adapt_item *a, const cd_online_adapt_item *b) {
    return level + broad * online_adapt_like(a, b, far);
}

static void online_adapt_wide_free(cd_online_adapt_wide *w) {
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
static cdmpp_status solve_wide(double level, const cd_online_adapt_item *item, const size_t *task,
                               size_t n, const double *weight, double *m, double *alpha,
                               cdmpp_err *err) {
    const lapack_int size = (lapack_int)n;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            m[i * n + j] = shared(level, &item[i], &item[j]);
            if (task[i] == task[j])
                m[i * n + j] +=
                    item[i].sigma * item[j].sigma * online_adapt_covariance(&item[i], &item[j]);
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
static void reweigh_wide(const cd_online_adapt_item *item, size_t n, const double *alpha,
                         double *weight) {
    for (size_t i = 0; i < n; i++) {
        const double r = fabs(alpha[i]) * item[i].sigma * CD_ONLINE_ADAPT_OWN / weight[i],
                     most = huber * sqrt(CD_ONLINE_ADAPT_OWN);
        weight[i] = r > most ? most / r : 1;
    }
}

/* Mean square of the errors under the prior, drawn to 1 as if PRIOR_N more had agreed with it: how
 * sure the model is of other devices says less here. */
static double agreement_wide(const cd_online_adapt_wide *w) {
    double sum = 0;
    for (size_t i = 0; i < w->n; i++)
        sum += (w->seen[i].measured_log - w->seen[i].median_log) * w->alpha[i];
    return fmax(0.25, fmin((sum + PRIOR_N_WIDE) / ((double)w->n + PRIOR_N_WIDE), 4));
}

static void online_adapt_wide_posterior(const cd_online_adapt_wide *w,
                                        const cd_online_adapt_item *program, double *mean,
                                        double *variance);

/* What the tasks share is no error of a task: each task's fit is moved by it. */
static void move_tasks(cd_online_adapt_device *d) {
    for (size_t k = 0; k < d->n_task; k++) {
        cd_online_adapt_task *t = &d->task[k];
        const lapack_int n = (lapack_int)t->n_fit;
        for (size_t i = 0; i < t->n_fit; i++) {
            double variance;
            online_adapt_wide_posterior(&d->wide, &t->seen[i], &t->moved[i], &variance);
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
    for (int round = 0; !st && round < ROUNDS_WIDE; round++) {
        double *weight = w->alpha + w->n;
        for (size_t i = 0; !round && i < w->n; i++) weight[i] = 1;
        if (round) reweigh_wide(w->seen, w->n, w->alpha, weight);
        st = solve_wide(w->level, w->seen, task, w->n, weight, w->factor, w->alpha, err);
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

/* Of an unknown device; its tasks are fitted. Errors: ENOMEM, ERANGE; the last fit stands. */
static cdmpp_status online_adapt_wide_fit(cd_online_adapt_device *d, cdmpp_err *err) {
    cd_online_adapt_wide like = {0}, any = {0};
    size_t room = 0;
    for (size_t k = 0; k < d->n_task; k++) room += d->task[k].n_fit;
    if (room > MOST) room = MOST;
    cdmpp_status st = fit(d, like_level, &like, room, err);
    if (!st) st = fit(d, any_level, &any, room, err);
    if (st) {
        online_adapt_wide_free(&like);
        online_adapt_wide_free(&any);
        return st;
    }
    const bool far_off = evidence(&any) > evidence(&like) + clearly;
    online_adapt_wide_free(&d->wide);
    d->wide = far_off ? any : like;
    online_adapt_wide_free(far_off ? &like : &any);
    d->wide.scale = agreement_wide(&d->wide);
    move_tasks(d);
    return CDMPP_OK;
}

/* What a program's error has in common with those of all tasks, ln s, and the variance that is left
 * of it. */
static void online_adapt_wide_posterior(const cd_online_adapt_wide *w,
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

/* The uncertainty of models without intervals. */
static const double usual_sigma = 0.5;

void cd_online_adapt_traits(const float *row, size_t n_row, float trait[CD_N_TRAIT]) {
    enum { TOP_ROWS = 3, WIDTH = 640, UNROLL_LEN = 28, VEC_LEN = 17, PAR_LEN = 39, OUTER = 161 };
    /* of the totals in learner/inputs/tree_input.c: bytes, unique bytes, lines, unique lines; bytes
     * per unique byte, lines per unique line; most operations per block, parallel and vector lane
     * of a row */
    static const int total[] = {1, 2, 3, 4, 9, 10, 11, 13, 14};
    static const int top[] = {PAR_LEN, VEC_LEN, UNROLL_LEN, OUTER};
    float x[WIDTH];
    assert(cd_tree_input_width(CD_TREE_INPUT_PROGRAM) <= WIDTH);
    cd_tree_input_fill(CD_TREE_INPUT_PROGRAM, row, n_row, 0, x);
    for (int k = 0; k < 9; k++) trait[k] = x[TOP_ROWS * CD_N_COL + total[k]];
    for (int k = 0; k < 4; k++) trait[9 + k] = x[top[k]]; /* of the row with the most operations */
}

/* On an unknown device all programs are unlike what was trained on, to the same degree: how sure
 * the model is of which is in like_std. */
cd_online_adapt_item cd_online_adapt_item_of(const cd_model_prediction *p, bool unknown,
                                             const float trait[CD_N_TRAIT], double measured_s) {
    const double sigma = unknown ? p->like_std : cd_model_expected_error(p);
    cd_online_adapt_item i = {
        log(p->median_s), sigma > 0 ? sigma : usual_sigma, log(measured_s), {0}};
    memcpy(i.trait, trait, sizeof i.trait);
    return i;
}

/* ---- what is kept ---- */
cdmpp_status cd_online_adapt_new(cd_online_adapt **out, cdmpp_err *err) {
    *out = cd_mem_zalloc(1, sizeof **out);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "measured programs");
}

static void free_task(cd_online_adapt_task *t) {
    cd_mem_free(t->key);
    cd_mem_free(t->item);
    cd_mem_free(t->seen);
    cd_mem_free(t->factor);
}

void cd_online_adapt_free(cd_online_adapt *a) {
    if (!a) return;
    for (size_t d = 0; d < a->n_device; d++) {
        for (size_t k = 0; k < a->device[d].n_task; k++) free_task(&a->device[d].task[k]);
        cd_mem_free(a->device[d].task);
        online_adapt_wide_free(&a->device[d].wide);
        cd_mem_free(a->device[d].name);
    }
    cd_mem_free(a->device);
    cd_mem_free(a);
}

/* FNV-1a */
static uint64_t hash_of(const char *s) {
    uint64_t h = 14695981039346656037ULL;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 1099511628211ULL;
    return h;
}

static cd_online_adapt_device *find_device(const cd_online_adapt *a, const char *name) {
    for (size_t d = 0; d < a->n_device; d++)
        if (!strcmp(a->device[d].name, name)) return &a->device[d];
    return NULL;
}

static cd_online_adapt_task *find_task(const cd_online_adapt_device *d, const char *key) {
    const uint64_t h = hash_of(key);
    for (size_t k = 0; k < d->n_task; k++)
        if (d->task[k].hash == h && !strcmp(d->task[k].key, key)) return &d->task[k];
    return NULL;
}

/* Makes room for one more element of `size` bytes behind n, and a copy of `text`. */
static bool one_more(void **list, size_t n, size_t *cap, size_t size, const char *text,
                     char **copy) {
    void *p = n < *cap ? *list : cd_grow_heap(*list, n, cap, size, SIZE_MAX / 2);
    if (!p) return false;
    *list = p;
    *copy = cd_mem_text(text);
    return *copy != NULL;
}

static cd_online_adapt_device *device_of(cd_online_adapt *a, const char *name, bool unknown) {
    cd_online_adapt_device *d = find_device(a, name);
    char *copy;
    if (d) return d;
    void *list = a->device;
    const bool got = one_more(&list, a->n_device, &a->cap, sizeof *d, name, &copy);
    a->device = list;
    if (!got) return NULL;
    d = &a->device[a->n_device++];
    *d = (cd_online_adapt_device){.name = copy, .unknown = unknown};
    return d;
}

static cd_online_adapt_task *task_of(cd_online_adapt_device *d, const char *key) {
    cd_online_adapt_task *t = find_task(d, key);
    char *copy;
    if (t) return t;
    void *list = d->task;
    const bool got = one_more(&list, d->n_task, &d->cap, sizeof *t, key, &copy);
    d->task = list;
    if (!got) return NULL;
    t = &d->task[d->n_task++];
    *t = (cd_online_adapt_task){.key = copy, .hash = hash_of(key), .scale = 1};
    return t;
}

static bool item_room(cd_online_adapt_task *t) {
    return t->n == CD_ONLINE_ADAPT_MAX || !CD_GROW(t->item, t->n, t->cap);
}

cdmpp_status cd_online_adapt_add(cd_online_adapt *a, const char *device, bool unknown,
                                 const char *task, const cd_online_adapt_item *item,
                                 cdmpp_err *err) {
    cd_online_adapt_device *d = device_of(a, device, unknown);
    cd_online_adapt_task *t = d ? task_of(d, task) : NULL;
    if (!t || !item_room(t)) return CD_FAIL(err, ENOMEM, "a measured program");
    t->item[t->next] = *item;
    t->next = (t->next + 1) % CD_ONLINE_ADAPT_MAX;
    if (t->n < CD_ONLINE_ADAPT_MAX) t->n++;
    t->changed = true;
    return CDMPP_OK;
}

/* Where it fails the tasks count as not fitted: their fit without what is shared would explain it
 * twice. */
static cdmpp_status fit_wide(cd_online_adapt_device *d, cdmpp_err *err) {
    const cdmpp_status st = online_adapt_wide_fit(d, err);
    for (size_t k = 0; st && k < d->n_task; k++) d->task[k].changed = true;
    return st;
}

/* Only tasks with new measurements are fitted again; then what the tasks of their device share. */
cdmpp_status cd_online_adapt_fit(cd_online_adapt *a, cdmpp_err *err) {
    for (size_t d = 0; d < a->n_device; d++) {
        bool any = false;
        for (size_t k = 0; k < a->device[d].n_task; k++) {
            cd_online_adapt_task *t = &a->device[d].task[k];
            if (!t->changed || !t->n) continue;
            CD_TRY(online_adapt_fit_task(t, err));
            any = true;
        }
        if (any && a->device[d].unknown) CD_TRY(fit_wide(&a->device[d], err));
        else if (any) online_adapt_fit_shift(&a->device[d]);
    }
    return CDMPP_OK;
}

size_t cd_online_adapt_count(const cd_online_adapt *a) {
    size_t n = 0;
    for (size_t d = 0; d < a->n_device; d++)
        for (size_t k = 0; k < a->device[d].n_task; k++) n += a->device[d].task[k].n;
    return n;
}

/* ---- predictions ---- */
bool cd_online_adapt_apply(const cd_online_adapt *a, const char *device, const char *task,
                           const float trait[CD_N_TRAIT], cd_model_prediction *p) {
    const cd_online_adapt_device *d = find_device(a, device);
    const cd_online_adapt_task *t = d ? find_task(d, task) : NULL;
    const cd_online_adapt_item item = cd_online_adapt_item_of(p, d && d->unknown, trait, 1);
    double mean = 0, left = 1, shared, wide = 0;
    if (!d) return false;
    shared = d->shift;
    if (d->wide.n) online_adapt_wide_posterior(&d->wide, &item, &shared, &wide);
    if (t && t->n_fit) online_adapt_posterior(t, &item, &mean, &left);
    if (d->wide.n)
        left = left * (t && t->n_fit ? 1 : d->wide.scale) + wide / (item.sigma * item.sigma);
    const double width = sqrt(left) * (p->rel_std > 0 ? item.sigma / p->rel_std : 1),
                 median = item.median_log + shared + mean;
    /* the answer lies below the median by a multiple of the variance, the ends by multiples of its
     * root */
    const double point = median + (log(p->latency_s) - item.median_log) * left;
    const double low = median + (log(p->low_s) - item.median_log) * width,
                 high = median + (log(p->high_s) - item.median_log) * width;
    /* what measurements say of the seconds they say of the order, and the more they say the less
     * the members for it do */
    p->order_s = exp(median + (log(p->order_s) - item.median_log) * fmin(1, left));
    p->median_s = exp(median);
    p->latency_s = exp(point);
    p->low_s = exp(fmin(low, point));
    p->high_s = exp(fmax(high, point));
    if (isnan(p->rel_std)) p->low_s = p->high_s = (double)NAN;
    p->rel_std *= width;
    return true;
}
