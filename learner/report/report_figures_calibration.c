/* How well a model knows what it does not know; how sure the figures are. */
#include <math.h>
#include <stdlib.h>

#include "learner/report/report_internal.h"

double cd_report_fig_z(double level) {
    double lo = 0, hi = 40;
    for (int i = 0; i < 80; i++) {
        const double z = 0.5 * (lo + hi);
        if (erf(z * sqrt(0.5)) < level) lo = z;
        else hi = z;
    }
    return 0.5 * (lo + hi);
}

/* log(predicted/measured), and sigma on the side where the measurement is. */
typedef struct {
    cd_arena arena;   /* of all arrays here, and of scratch */
    size_t n, *order; /* by sigma, small first; ties in the order given */
    double *r, *sigma, *side;
} residuals;

/* Where the model gives no standard deviation, each side of the interval gives one. */
static cdmpp_status residuals_new(const cd_report_part *p, residuals *v, cdmpp_err *err) {
    const double z90 = cd_report_fig_z(CD_REPORT_LEVEL);
    v->n = p->n;
    v->order = CD_NEWN(&v->arena, size_t, p->n);
    v->r = CD_NEWN(&v->arena, double, p->n);
    v->sigma = CD_NEWN(&v->arena, double, p->n);
    v->side = CD_NEWN(&v->arena, double, p->n);
    if (v->arena.oom) return CD_FAIL(err, ENOMEM, "calibration of %zu programs", p->n);
    for (size_t i = 0; i < p->n; i++) {
        v->order[i] = i;
        v->r[i] = log(p->predicted_s[i] / p->measured_s[i]);
        if (p->rel_std) {
            v->sigma[i] = v->side[i] = p->rel_std[i];
            continue;
        }
        const double below = log(p->predicted_s[i] / p->low_s[i]) / z90,
                     above = log(p->high_s[i] / p->predicted_s[i]) / z90;
        v->sigma[i] = 0.5 * (below + above);
        v->side[i] = v->r[i] > 0 ? below : above;
    }
    return CDMPP_OK;
}

static int by_sigma(const void *a, const void *b, void *ctx) {
    const double *sigma = ctx;
    const size_t i = *(const size_t *)a, k = *(const size_t *)b;
    if (sigma[i] != sigma[k]) return sigma[i] < sigma[k] ? -1 : 1;
    return (i > k) - (i < k);
}

static void coverage(const residuals *v, double *cover) {
    for (int l = 0; l < CD_REPORT_FIG_N_LEVEL; l++) {
        const double z = cd_report_fig_z(cd_report_fig_level(l));
        size_t in = 0;
        for (size_t i = 0; i < v->n; i++) in += fabs(v->r[i]) <= z * v->side[i];
        cover[l] = (double)in / (double)v->n;
    }
}

/* Ten groups of equal size; fewer where a group would have less than ten programs. */
static cdmpp_status deciles(cd_report_figures *f, const cd_report_part *p, residuals *v,
                            cd_report_fig_groups *out, cdmpp_err *err) {
    const size_t n_group = v->n < 100 ? v->n / 10 : 10;
    double *tmp = CD_NEWN(&v->arena, double, v->n);
    out->v = CD_NEWN(&f->arena, cd_report_fig_group, n_group + 1);
    if (!tmp || !out->v) return CD_FAIL(err, ENOMEM, "calibration of %zu programs", v->n);
    for (size_t k = 0; k < n_group; k++) {
        const size_t beg = v->n * k / n_group, end = v->n * (k + 1) / n_group;
        double s = 0, r = 0;
        for (size_t i = beg; i < end; i++) {
            s += v->sigma[v->order[i]] * v->sigma[v->order[i]];
            r += v->r[v->order[i]] * v->r[v->order[i]];
        }
        out->v[out->n++] =
            (cd_report_fig_group){.key = (uint32_t)k,
                                  .d = cd_report_fig_dist(p, v->order + beg, end - beg, tmp),
                                  .sigma = sqrt(s / (double)(end - beg)),
                                  .observed = sqrt(r / (double)(end - beg))};
    }
    return CDMPP_OK;
}

/* cd_metric wants numbers above 0, which a rank does not mind. */
static cdmpp_status rank(residuals *v, double *out, cdmpp_err *err) {
    double *y = CD_NEWN(&v->arena, double, 2 * v->n);
    uint32_t *one = CD_NEWN(&v->arena, uint32_t, v->n);
    cd_metric m = {.spearman = NAN};
    if (!y || !one) return CD_FAIL(err, ENOMEM, "calibration of %zu programs", v->n);
    for (size_t i = 0; i < v->n; i++) {
        y[i] = fabs(v->r[i]) + 1e-12;
        y[v->n + i] = fmax(v->sigma[i], 0) + 1e-12;
    }
    const cdmpp_status st = cd_metric_compute(y, y + v->n, one, NULL, v->n, &m, err);
    *out = m.spearman;
    return st;
}

static cdmpp_status intervals(const cd_report_part *p, cd_arena *a, cd_report_fig_part *to,
                              cdmpp_err *err) {
    size_t in = 0;
    double *width = CD_NEWN(a, double, p->n);
    if (!width) return CD_FAIL(err, ENOMEM, "intervals of %zu programs", p->n);
    for (size_t i = 0; i < p->n; i++) {
        in += p->low_s[i] <= p->measured_s[i] && p->measured_s[i] <= p->high_s[i];
        width[i] = p->high_s[i] / p->low_s[i];
    }
    cd_sort_doubles(width, p->n);
    to->interval_width = cd_sort_quantile(width, p->n, 0.5);
    to->interval_cover = (double)in / (double)p->n;
    return CDMPP_OK;
}

/* What a model says of its own error must be a number, and an interval one that contains
 * something. */
static cdmpp_status check(const cd_report_part *p, cd_split_part part, cdmpp_err *err) {
    for (size_t i = 0; i < p->n; i++) {
        if (p->rel_std && !(p->rel_std[i] >= 0 && isfinite(p->rel_std[i])))
            return CD_FAIL(err, ENUMERIC, "%s program %zu: expected a deviation >= 0, found %g",
                           cd_split_part_name(part), i, p->rel_std[i]);
        if (p->low_s && !(p->low_s[i] > 0 && p->low_s[i] <= p->high_s[i] && isfinite(p->high_s[i])))
            return CD_FAIL(err, ENUMERIC,
                           "%s program %zu: expected 0 < low <= high, found %g and %g",
                           cd_split_part_name(part), i, p->low_s[i], p->high_s[i]);
    }
    return CDMPP_OK;
}

static cdmpp_status calibrate(cd_report_figures *f, const cd_report_part *p, residuals *v,
                              cd_report_fig_part *to, cdmpp_err *err) {
    const cd_train_artifacts_score score = {p->predicted_s, p->low_s,        p->high_s,
                                            p->rel_std,     p->out_of_range, p->order_s};
    CD_TRY(residuals_new(p, v, err));
    qsort_r(v->order, v->n, sizeof *v->order, by_sigma, v->sigma);
    coverage(v, to->cover);
    CD_TRY(deciles(f, p, v, &to->unsure, err));
    CD_TRY(rank(v, &to->sigma_rank, err));
    if (!to->has_interval) return CDMPP_OK;
    CD_TRY(intervals(p, &v->arena, to, err));
    return p->rel_std ? cd_uncertainty_compute(p->measured_s, &score, p->n, &to->tenth, err)
                      : CDMPP_OK;
}

cdmpp_status cd_report_fig_calibrate(cd_report_figures *f, const cd_report *r, cd_split_part part,
                                     cdmpp_err *err) {
    const cd_report_part *p = &r->part[part];
    cd_report_fig_part *to = &f->part[part];
    to->interval_cover = to->interval_width = to->sigma_rank = NAN;
    /* all NaN */
    CD_TRY(
        cd_uncertainty_compute(p->measured_s, &(cd_train_artifacts_score){0}, 0, &to->tenth, err));
    to->has_interval = p->n && p->low_s && p->high_s;
    to->has_sigma = p->n && (p->rel_std || to->has_interval);
    if (!to->has_sigma) return CDMPP_OK;
    residuals v = {0};
    CD_TRY(check(p, part, err));
    const cdmpp_status st = calibrate(f, p, &v, to, err);
    cd_arena_free(&v.arena);
    return st;
}

/* ---- how sure the MAPE is ---- */
enum { DRAWS = 1000 };

/* The MAPE of `n_unit` tasks drawn with replacement. */
static double draw(const cd_report_fig_groups *task, uint64_t k) {
    double sum = 0, n = 0;
    for (size_t i = 0; i < task->n; i++) {
        const size_t t = (size_t)(cd_rng_unit(0x6d617065 + k, i) * (double)task->n);
        const cd_report_dist *d = &task->v[t].d;
        sum += d->mape * (double)d->n;
        n += (double)d->n;
    }
    return sum / n;
}

/* A record split asks for other programs of known tasks: the mean's own error. Other
 * splits ask for other tasks, whose programs err together: tasks are resampled. */
cdmpp_status cd_report_fig_resample(cd_report_figures *f, const cd_report *r, cd_split_part part,
                                    cdmpp_err *err) {
    const cd_report_part *p = &r->part[part];
    cd_report_fig_part *to = &f->part[part];
    to->mape_low = to->mape_high = NAN;
    if (r->kind == CD_SPLIT_RECORD || r->kind == CD_SPLIT_INTERLEAVED) {
        double sq = 0;
        for (size_t i = 0; i < p->n; i++) {
            const double d = fabs(p->predicted_s[i] / p->measured_s[i] - 1) - to->all.mape;
            sq += d * d;
        }
        if (p->n < 2) return CDMPP_OK;
        const double half =
            cd_report_fig_z(CD_REPORT_LEVEL) * sqrt(sq / (double)(p->n - 1) / (double)p->n);
        to->mape_low = fmax(0, to->all.mape - half);
        to->mape_high = to->all.mape + half;
        return CDMPP_OK;
    }
    to->n_unit = to->task.n;
    if (to->task.n < 2) return CDMPP_OK;
    double *v = cd_mem_zalloc(DRAWS, sizeof *v);
    if (!v) return CD_FAIL(err, ENOMEM, "resampling");
    for (uint64_t k = 0; k < DRAWS; k++) v[k] = draw(&to->task, k);
    cd_sort_doubles(v, DRAWS);
    to->mape_low = cd_sort_quantile(v, DRAWS, 0.05);
    to->mape_high = cd_sort_quantile(v, DRAWS, 0.95);
    cd_mem_free(v);
    return CDMPP_OK;
}
