/* From samples to a training set. */
#include <string.h>

#include "predictor/tune/rank/rank_internal.h"

cdmpp_status cd_tune_boost_room(void *list, size_t n, size_t add, size_t *cap, size_t size,
                                cdmpp_err *err) {
    if (n + add <= *cap) return CDMPP_OK;
    const size_t more = n + add < 32 ? 64 : 2 * (n + add);
    void *p;
    memcpy(&p, list, sizeof p);
    p = cd_mem_realloc(p, *cap * size, more * size);
    if (!p) return CD_FAIL(err, ENOMEM, "%zu of %zu bytes", more, size);
    memcpy(list, &p, sizeof p);
    *cap = more;
    return CDMPP_OK;
}

typedef struct {
    float *x;
    double *y;
    size_t *start, n, width;
} matrix;

static void drop(matrix *m) {
    cd_mem_free(m->x);
    cd_mem_free(m->y);
    cd_mem_free(m->start);
}

static cdmpp_status room(matrix *m, size_t n, size_t n_value, cdmpp_err *err) {
    m->x = cd_mem_zalloc(n_value + 1, sizeof *m->x);
    m->y = cd_mem_zalloc(n + 1, sizeof *m->y);
    m->start = cd_mem_zalloc(n + 1, sizeof *m->start);
    return m->x && m->y && m->start ? CDMPP_OK
                                    : CD_FAIL(err, ENOMEM, "training set of %zu programs", n);
}

/* Throughput over that of the fastest of the task; 0: failed. */
static double label(const cd_tune_boost *r, const cd_tune_boost_sample *s) {
    return s->seconds > 0 && s->seconds < CD_TUNE_FAILED_S ? r->task[s->task].best_s / s->seconds
                                                           : 0;
}

/* All samples of all tasks, whole rows. */
static cdmpp_status stores(const cd_tune_boost *r, matrix *m, cdmpp_err *err) {
    m->width = CD_N_COL;
    CD_TRY(room(m, r->n_sample, r->n_x, err));
    memcpy(m->x, r->x, r->n_x * sizeof *m->x);
    for (m->n = 0; m->n < r->n_sample; m->n++) {
        const cd_tune_boost_sample *s = &r->sample[m->n];
        m->y[m->n] = label(r, s);
        m->start[m->n + 1] = m->start[m->n] + s->n / CD_N_COL;
    }
    return CDMPP_OK;
}

/* The samples of one task, a row each, as wide as the longest. */
static cdmpp_status lines(const cd_tune_boost *r, size_t task, matrix *m, cdmpp_err *err) {
    m->width = 1;
    for (size_t k = 0; k < r->n_sample; k++)
        if (r->sample[k].task == task && r->sample[k].n > m->width) m->width = r->sample[k].n;
    CD_TRY(room(m, r->task[task].n, r->task[task].n * m->width, err));
    for (size_t k = 0; k < r->n_sample; k++) {
        const cd_tune_boost_sample *s = &r->sample[k];
        if (s->task != task) continue;
        if (s->n) memcpy(m->x + m->n * m->width, r->x + s->at, s->n * sizeof *m->x);
        m->y[m->n++] = label(r, s);
        m->start[m->n] = m->n;
    }
    return CDMPP_OK;
}

static cdmpp_status train(const cd_tune_boost *r, const matrix *m, cd_xgb **trees, cdmpp_err *err) {
    const cd_tune_fit f = {
        .x = m->x, .width = m->width, .n = m->n, .start = m->start, .y = m->y, .seed = r->seed};
    cd_xgb *made = NULL;
    CD_TRY(r->shared ? cd_tune_fit_pack_sum(&f, &made, err) : cd_tune_fit_pairs(&f, &made, err));
    cd_xgb_free(*trees);
    *trees = made;
    return CDMPP_OK;
}

/* Trains only when samples came since the last time. Ansor has one model for all tasks (shared),
 * AutoTVM one for each. */
cdmpp_status cd_tune_boost_trees(cd_tune_boost *r, size_t task, const cd_xgb **out, size_t *width,
                                 cdmpp_err *err) {
    cd_tune_boost_task *k = &r->task[task];
    cd_xgb **trees = r->shared ? &r->trees : &k->trees;
    size_t *fitted = r->shared ? &r->n_fitted : &k->n_fitted;
    const size_t have = r->shared ? r->n_sample : k->n;
    if (*fitted != have) {
        matrix m = {0};
        cdmpp_status st = r->shared ? stores(r, &m, err) : lines(r, task, &m, err);
        if (!st) st = train(r, &m, trees, err);
        if (!st) k->width = m.width;
        drop(&m);
        CD_TRY(st);
        *fitted = have;
    }
    *out = *trees;
    *width = r->shared ? CD_N_COL : k->width;
    return CDMPP_OK;
}
