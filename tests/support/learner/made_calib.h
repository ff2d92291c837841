/* made_calib.h -- programs whose error is known by construction: ln y normal around each kind's
 * answer with a deviation that depends on two columns; and a calibration of them. */
#ifndef MADE_CALIB_H
#define MADE_CALIB_H
#include "check.h"

#include <string.h>

#include "base/core/mem.h"
#include "base/core/core.h"
#include "learner/model/calibration.h"
#include "learner/inputs/normal.h"

enum { W = 8, FOLDS = 5, PER_TASK = 25, N = 2000, N_NEW = 3000, MAX = 3000, KINDS = 2 };

/* Arrays of one set of programs. */
typedef struct {
    size_t n, n_kind;
    double *kind, *y, *sigma;
    float *x;
    uint32_t *fold, *group;
} made;

static inline double normal(uint64_t seed, uint64_t i) {
    return cd_normal_quantile(fmax(cd_rng_unit(seed, i), 1e-12));
}

/* Kind k errs (1 + 2k) times sigma(x); errors of a task share a quarter of their variance. */
static inline made make(size_t n, size_t n_kind, uint64_t seed) {
    made d = {n, n_kind, NULL, NULL, NULL, NULL, NULL, NULL};
    d.kind = cd_mem_zalloc(n * n_kind, sizeof *d.kind);
    d.y = cd_mem_zalloc(n, sizeof *d.y);
    d.sigma = cd_mem_zalloc(n, sizeof *d.sigma);
    d.x = cd_mem_zalloc(n, W * sizeof *d.x);
    d.fold = cd_mem_zalloc(n, sizeof *d.fold);
    d.group = cd_mem_zalloc(n, sizeof *d.group);
    for (size_t i = 0; i < n; i++) {
        float *x = d.x + i * W;
        d.group[i] = (uint32_t)(i / PER_TASK * 977 + 13);
        d.fold[i] = (uint32_t)(i / PER_TASK % FOLDS);
        /* the last stays 0 */
        for (size_t c = 0; c < W - 1; c++) x[c] = (float)cd_rng_unit(seed + c, i);
        d.sigma[i] = 0.12 * exp(1.6 * (double)x[0]) * (x[1] > 0.7F ? 2.2 : 1);
        d.y[i] = -8 + 3 * (double)x[2];
        for (size_t k = 0; k < n_kind; k++) {
            const double e =
                0.5 * normal(seed + 50 + k, i / PER_TASK) + sqrt(0.75) * normal(seed + 60 + k, i);
            d.kind[k * n + i] = d.y[i] + (double)(1 + 2 * k) * d.sigma[i] * e;
        }
    }
    return d;
}

static inline void made_free(made *d) {
    cd_mem_free(d->kind);
    cd_mem_free(d->y);
    cd_mem_free(d->sigma);
    cd_mem_free(d->x);
    cd_mem_free(d->fold);
    cd_mem_free(d->group);
}

static inline cd_calibration_input in_of(const made *d) {
    return (cd_calibration_input){.n = d->n,
                                  .n_kind = d->n_kind,
                                  .width = W,
                                  .n_fold = FOLDS,
                                  .kind_log_s = d->kind,
                                  .log_y = d->y,
                                  .x = d->x,
                                  .fold = d->fold,
                                  .group = d->group};
}

static inline cd_calibration *fit_opt(const cd_calibration_input *in, cd_calibration_options opt) {
    cdmpp_err err = {0};
    cd_calibration *c = NULL;
    assert_ok(cd_calibration_fit(in, &opt, &c, &err));
    return c;
}

/* Answers to all programs of d. */
typedef struct {
    double point[MAX], median[MAX], sigma[MAX], low[MAX], high[MAX];
    uint32_t flags[MAX];
} answer;

static inline void apply(const cd_calibration *c, const made *d, answer *a) {
    cdmpp_err err = {0};
    const cd_calibration_output out = {a->point, a->median, a->sigma, a->low,
                                       a->high,  a->flags,  NULL};
    void *scratch = cd_mem_alloc(cd_calibration_scratch_bytes(c));
    memset(a, 0, sizeof *a);
    assert_ok(cd_calibration_apply(c, d->kind, d->x, d->n, -1, scratch, &out, &err));
    cd_mem_free(scratch);
}

static made old, fresh;
static cd_calibration *fitted;
static answer first, second;

static inline int setup(void **s) {
    (void)s;
    old = make(N, KINDS, 1);
    fresh = make(N_NEW, KINDS, 1001);
    const cd_calibration_input in = in_of(&old);
    fitted = fit_opt(&in, cd_calibration_options_default());
    apply(fitted, &fresh, &first);
    return 0;
}

static inline int teardown(void **s) {
    (void)s;
    made_free(&old);
    made_free(&fresh);
    cd_calibration_free(fitted);
    return 0;
}

static inline void same_answers(const cd_calibration *c, const cd_calibration_input *in,
                                cd_calibration_options opt) {
    cd_calibration *other = c ? NULL : fit_opt(in, opt);
    apply(c ? c : other, &fresh, &second);
    assert_memory_equal(&first, &second, sizeof first);
    cd_calibration_free(other);
}
#endif
