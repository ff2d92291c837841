/* All numbers of a report, computed once and used by the page and by the JSON file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/report/report_internal.h"

double cd_report_fig_cdf_x(int i) { return pow(10, -3 + 0.025 * i); }
double cd_report_fig_level(int i) { return i < CD_REPORT_FIG_N_LEVEL - 1 ? 0.05 * (i + 1) : 0.99; }
double cd_report_fig_quantile_at(int i) {
    static const double at[CD_REPORT_FIG_N_Q] = {0.10, 0.25, 0.50, 0.75, 0.90};
    return at[i];
}

/* Of the programs idx[0..n-1] of the part (NULL: all); `tmp` n doubles.
 *
 * Quantiles of the ratio first, then of its distance from 1: one array serves both. */
static cd_report_dist report_fig_dist(const cd_report_part *p, const size_t *idx, size_t n,
                                      double *tmp) {
    cd_report_dist d = {.n = n};
    double sum = 0, log_sum = 0;
    size_t in20 = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t k = idx ? idx[i] : i;
        tmp[i] = p->predicted_s[k] / p->measured_s[k];
        const double e = fabs(tmp[i] - 1);
        sum += e;
        log_sum += fabs(log(tmp[i]));
        in20 += e <= 0.2;
    }
    d.mape = n ? sum / (double)n : (double)NAN;
    d.mae_log = n ? log_sum / (double)n : (double)NAN;
    d.within_20 = n ? (double)in20 / (double)n : (double)NAN;
    cd_sort_doubles(tmp, n);
    for (int q = 0; q < CD_REPORT_FIG_N_Q; q++)
        d.ratio[q] = cd_sort_quantile(tmp, n, cd_report_fig_quantile_at(q));
    for (size_t i = 0; i < n; i++) tmp[i] = fabs(tmp[i] - 1);
    cd_sort_doubles(tmp, n);
    for (int q = 0; q < CD_REPORT_FIG_N_Q; q++)
        d.ape[q] = cd_sort_quantile(tmp, n, cd_report_fig_quantile_at(q));
    return d;
}

/* ---- what the caller gave ---- */
static cdmpp_status check_part(const cd_report *r, cd_split_part part, cdmpp_err *err) {
    const cd_report_part *p = &r->part[part];
    for (size_t i = 0; i < p->n; i++) {
        const double y = p->measured_s[i], x = p->predicted_s[i];
        if (!(y > 0 && x > 0 && isfinite(y) && isfinite(x)))
            return CD_FAIL(
                err, ENUMERIC,
                "%s program %zu: expected finite seconds > 0, found measured %g, predicted %g",
                cd_split_part_name(part), i, y, x);
        if (p->task[i] >= r->n_task || p->device[i] >= r->n_device)
            return CD_FAIL(err, ERANGE, "%s program %zu: task %u of %zu, device %u of %zu",
                           cd_split_part_name(part), i, (unsigned)p->task[i], r->n_task,
                           (unsigned)p->device[i], r->n_device);
    }
    return CDMPP_OK;
}

static cdmpp_status check(const cd_report *r, cdmpp_err *err) {
    for (int p = 0; p < CD_SPLIT_N_PART; p++) CD_TRY(check_part(r, (cd_split_part)p, err));
    for (size_t k = 0; k < r->n_net_task; k++)
        if (r->net_task[k] >= r->n_task || r->net_network[k] >= r->n_network)
            return CD_FAIL(err, ERANGE, "network membership %zu: task %u of %zu, network %u of %zu",
                           k, (unsigned)r->net_task[k], r->n_task, (unsigned)r->net_network[k],
                           r->n_network);
    return CDMPP_OK;
}

/* ---- axes, curves, counts ---- */
/* The nearest 1, 2 or 5 times a power of ten that is not above (side -1) or below. */
static double round_log(double s, int side) {
    static const double step[] = {0, 0.30102999566398120, 0.69897000433601880, 1};
    const double at = log10(s), whole = floor(at), part = at - whole;
    int i = 0;
    while (i < 2 && part >= step[i + 1]) i++;
    return whole + (side > 0 && part > step[i] ? step[i + 1] : step[i]);
}

static void axes(cd_report_figures *f, const cd_report *r) {
    double lo = INFINITY, hi = -INFINITY;
    for (int k = 0; k < CD_SPLIT_N_PART; k++)
        for (size_t i = 0; i < r->part[k].n; i++) {
            const double y = r->part[k].measured_s[i], x = r->part[k].predicted_s[i];
            lo = fmin(lo, fmin(x, y));
            hi = fmax(hi, fmax(x, y));
        }
    f->log_min = lo > hi ? -6 : round_log(lo, -1);
    f->log_max = lo > hi ? 0 : round_log(hi, 1);
    if (f->log_max - f->log_min < 0.5) f->log_min -= 0.5, f->log_max += 0.5;
    f->shown = r->part[CD_SPLIT_PART_TEST].n    ? CD_SPLIT_PART_TEST
               : r->part[CD_SPLIT_PART_VALID].n ? CD_SPLIT_PART_VALID
                                                : CD_SPLIT_PART_TRAIN;
}

/* Shares below the points of the CDF; `tmp` n doubles. */
static void cumulate(const cd_report_part *p, double *cdf, double *tmp) {
    for (size_t i = 0; i < p->n; i++) tmp[i] = fabs(p->predicted_s[i] / p->measured_s[i] - 1);
    cd_sort_doubles(tmp, p->n);
    size_t below = 0;
    for (int k = 0; k < CD_REPORT_FIG_N_CDF; k++) {
        while (below < p->n && tmp[below] <= cd_report_fig_cdf_x(k)) below++;
        cdf[k] = p->n ? (double)below / (double)p->n : (double)NAN;
    }
}

static size_t cell(const cd_report_figures *f, double s) {
    const double at = (log10(s) - f->log_min) / (f->log_max - f->log_min) * CD_REPORT_FIG_GRID;
    return at < 0 ? 0 : at >= CD_REPORT_FIG_GRID ? CD_REPORT_FIG_GRID - 1 : (size_t)at;
}

static cdmpp_status report_fig_group_part(cd_report_figures *f, const cd_report *r,
                                          cd_split_part part, cdmpp_err *err);

static cdmpp_status report_fig_calibrate(cd_report_figures *f, const cd_report *r,
                                         cd_split_part part, cdmpp_err *err);

static cdmpp_status report_fig_resample(cd_report_figures *f, const cd_report *r,
                                        cd_split_part part, cdmpp_err *err);

/* The grid counts programs by logarithm of measured and predicted latency, for the density plot of
 * many programs. */
static cdmpp_status part_of(cd_report_figures *f, const cd_report *r, cd_split_part part,
                            cdmpp_err *err) {
    const cd_report_part *p = &r->part[part];
    cd_report_fig_part *to = &f->part[part];
    double *tmp = cd_mem_zalloc(p->n + 1, sizeof *tmp);
    to->grid = CD_NEWN(&f->arena, uint32_t, CD_REPORT_FIG_GRID * CD_REPORT_FIG_GRID);
    if (!tmp || !to->grid) {
        cd_mem_free(tmp);
        return CD_FAIL(err, ENOMEM, "figures of %zu programs", p->n);
    }
    to->all = report_fig_dist(p, NULL, p->n, tmp);
    cumulate(p, to->cdf, tmp);
    cd_mem_free(tmp);
    for (size_t i = 0; i < p->n; i++)
        to->grid[cell(f, p->predicted_s[i]) * CD_REPORT_FIG_GRID + cell(f, p->measured_s[i])]++;
    CD_TRY(report_fig_group_part(f, r, part, err));
    CD_TRY(report_fig_calibrate(f, r, part, err));
    return report_fig_resample(f, r, part, err);
}

cdmpp_status cd_report_figures_compute(cd_report_figures *f, const cd_report *r, cdmpp_err *err) {
    *f = (cd_report_figures){0};
    CD_TRY(check(r, err));
    axes(f, r);
    for (int p = 0; p < CD_SPLIT_N_PART; p++) CD_TRY(part_of(f, r, (cd_split_part)p, err));
    return CDMPP_OK;
}

void cd_report_figures_free(cd_report_figures *f) { cd_arena_free(&f->arena); }

/* How well a model knows what it does not know; how sure the figures are. */

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
                                  .d = report_fig_dist(p, v->order + beg, end - beg, tmp),
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
static cdmpp_status check_calibration(const cd_report_part *p, cd_split_part part, cdmpp_err *err) {
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

static cdmpp_status report_fig_calibrate(cd_report_figures *f, const cd_report *r,
                                         cd_split_part part, cdmpp_err *err) {
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
    CD_TRY(check_calibration(p, part, err));
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
static cdmpp_status report_fig_resample(cd_report_figures *f, const cd_report *r,
                                        cd_split_part part, cdmpp_err *err) {
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

/* Errors by task, network, decade, device, and in or out of range. */

double cd_report_fig_decade_s(uint32_t k) { return k ? pow(10, (double)k - 9) : 0; }

static uint32_t decade(double s) {
    uint32_t k = 0;
    while (k + 1 < CD_REPORT_FIG_N_DECADE && s >= cd_report_fig_decade_s(k + 1)) k++;
    return k;
}

/* Programs in the order of a key, and where each key begins. */
typedef struct {
    size_t *idx;   /* (n) */
    size_t *start; /* (n_key+1) */
} sorted;

/* A counting sort, stable. */
static cdmpp_status sort_by(cd_arena *a, const uint32_t *key, size_t n, size_t n_key, sorted *s,
                            cdmpp_err *err) {
    *s = (sorted){CD_NEWN(a, size_t, n), CD_NEWN(a, size_t, n_key + 2)};
    if (!s->idx || !s->start) return CD_FAIL(err, ENOMEM, "groups of %zu programs", n);
    size_t *at = s->start + 1; /* becomes the ends, which are the next one's starts */
    for (size_t i = 0; i < n; i++) at[key[i] + 1]++;
    for (size_t k = 0; k < n_key; k++) at[k + 1] += at[k];
    for (size_t i = 0; i < n; i++) s->idx[at[key[i]]++] = i;
    return CDMPP_OK;
}

typedef struct {
    cd_report_figures *f;
    const cd_report *r;
    const cd_report_part *p;
    cd_arena arena; /* scratch */
    double *tmp;
} grouping;

static cdmpp_status list_new(grouping *g, cd_report_fig_groups *out, size_t n, cdmpp_err *err) {
    out->v = CD_NEWN(&g->f->arena, cd_report_fig_group, n + 1);
    return out->v ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu groups", n);
}

/* One group a key that occurs; `name` (n_key) or NULL. */
static cdmpp_status group_by(grouping *g, const uint32_t *key, size_t n_key, char *const *name,
                             cd_report_fig_groups *out, cdmpp_err *err) {
    sorted s;
    CD_TRY(list_new(g, out, n_key, err));
    CD_TRY(sort_by(&g->arena, key, g->p->n, n_key, &s, err));
    for (uint32_t k = 0; k < n_key; k++) {
        const size_t n = s.start[k + 1] - s.start[k];
        if (!n) continue;
        out->v[out->n++] =
            (cd_report_fig_group){.name = name ? name[k] : NULL,
                                  .key = k,
                                  .d = report_fig_dist(g->p, s.idx + s.start[k], n, g->tmp)};
    }
    return CDMPP_OK;
}

/* The programs of all tasks of network k; a task listed twice counts once. */
static size_t collect(const grouping *g, const sorted *by_task, uint32_t k, uint32_t *seen,
                      uint8_t *in_any, size_t *idx) {
    size_t n = 0;
    for (size_t i = 0; i < g->r->n_net_task; i++) {
        const uint32_t t = g->r->net_task[i];
        if (g->r->net_network[i] != k || seen[t] == k + 1) continue;
        seen[t] = k + 1;
        in_any[t] = 1;
        const size_t m = by_task->start[t + 1] - by_task->start[t];
        if (m) memcpy(idx + n, by_task->idx + by_task->start[t], m * sizeof *idx);
        n += m;
    }
    return n;
}

/* A task counts in every network that it occurs in. */
static cdmpp_status by_network(grouping *g, cd_report_fig_part *to, cdmpp_err *err) {
    const cd_report *r = g->r;
    sorted s;
    CD_TRY(list_new(g, &to->network, r->n_network, err));
    CD_TRY(sort_by(&g->arena, g->p->task, g->p->n, r->n_task, &s, err));
    size_t *idx = CD_NEWN(&g->arena, size_t, g->p->n);
    uint32_t *seen = CD_NEWN(&g->arena, uint32_t, r->n_task);
    uint8_t *in_any = CD_NEWN(&g->arena, uint8_t, r->n_task);
    if (g->arena.oom) return CD_FAIL(err, ENOMEM, "networks of %zu programs", g->p->n);
    for (uint32_t k = 0; k < r->n_network; k++) {
        const size_t n = collect(g, &s, k, seen, in_any, idx);
        if (n)
            to->network.v[to->network.n++] = (cd_report_fig_group){
                .name = r->network_name[k], .key = k, .d = report_fig_dist(g->p, idx, n, g->tmp)};
    }
    for (size_t i = 0; i < g->p->n; i++) to->n_no_network += !in_any[g->p->task[i]];
    return CDMPP_OK;
}

static cdmpp_status all(grouping *g, cd_report_fig_part *to, cdmpp_err *err) {
    const cd_report *r = g->r;
    const cd_report_part *p = g->p;
    uint32_t *key = CD_NEWN(&g->arena, uint32_t, p->n);
    g->tmp = CD_NEWN(&g->arena, double, p->n);
    if (g->arena.oom) return CD_FAIL(err, ENOMEM, "%zu programs", p->n);
    CD_TRY(group_by(g, p->task, r->n_task, r->task_name, &to->task, err));
    CD_TRY(group_by(g, p->device, r->n_device, r->device_name, &to->device, err));
    for (size_t i = 0; i < p->n; i++) key[i] = decade(p->measured_s[i]);
    CD_TRY(group_by(g, key, CD_REPORT_FIG_N_DECADE, NULL, &to->decade, err));
    for (size_t i = 0; p->out_of_range && i < p->n; i++) key[i] = p->out_of_range[i] ? 1 : 0;
    if (p->out_of_range) CD_TRY(group_by(g, key, 2, NULL, &to->range, err));
    return by_network(g, to, err);
}

static cdmpp_status report_fig_group_part(cd_report_figures *f, const cd_report *r,
                                          cd_split_part part, cdmpp_err *err) {
    grouping g = {.f = f, .r = r, .p = &r->part[part]};
    const cdmpp_status st = all(&g, &f->part[part], err);
    cd_arena_free(&g.arena);
    return st;
}

/* The numbers behind every plot and table of the page. */

static void text(cd_buf *out, const char *name, const char *s) {
    cd_buf_putf(out, "\"%s\":", name);
    cd_buf_put_json_str(out, s ? s : "", s ? strlen(s) : 0);
}

static void number(cd_buf *out, double v) {
    if (isfinite(v)) cd_buf_put_real6(out, v);
    else cd_buf_puts(out, "null");
}

static void named(cd_buf *out, const char *name, double v) {
    cd_buf_putf(out, ",\"%s\":", name);
    number(out, v);
}

static void list(cd_buf *out, const char *name, const double *v, size_t n) {
    cd_buf_putf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < n; i++) {
        if (i) cd_buf_puts(out, ",");
        number(out, v[i]);
    }
    cd_buf_puts(out, "]");
}

static void dist(cd_buf *out, const cd_report_dist *d) {
    cd_buf_putf(out, "\"n\":%zu", d->n);
    named(out, "mape", d->mape);
    named(out, "mae_log", d->mae_log);
    named(out, "median_ape", d->ape[2]);
    named(out, "within_20", d->within_20);
    list(out, "ape", d->ape, CD_REPORT_FIG_N_Q);
    list(out, "ratio", d->ratio, CD_REPORT_FIG_N_Q);
}

typedef enum { NAMED, DECADE, DECILE, RANGE } group_kind;

/* The key of a group depends on what it is a group of. */
static void groups(cd_buf *out, const char *name, const cd_report_fig_groups *g, group_kind kind) {
    cd_buf_putf(out, ",\n\"%s\":[", name);
    for (size_t i = 0; i < g->n; i++) {
        const cd_report_fig_group *v = &g->v[i];
        cd_buf_puts(out, i ? ",\n {" : "\n {");
        switch (kind) {
        case NAMED: text(out, "name", v->name); break;
        case DECADE: cd_buf_putf(out, "\"from_s\":%g", cd_report_fig_decade_s(v->key)); break;
        case DECILE:
            cd_buf_putf(out, "\"group\":%u", (unsigned)v->key);
            named(out, "predicted_std", v->sigma);
            named(out, "observed_rms", v->observed);
            break;
        case RANGE: cd_buf_putf(out, "\"out_of_range\":%s", v->key ? "true" : "false"); break;
        }
        cd_buf_puts(out, ",");
        dist(out, &v->d);
        cd_buf_puts(out, "}");
    }
    cd_buf_puts(out, "]");
}

/* null where the model gives no uncertainty. */
static void calibration(cd_buf *out, const cd_report_fig_part *f) {
    double level[CD_REPORT_FIG_N_LEVEL];
    if (!f->has_sigma) {
        cd_buf_puts(out, ",\n\"calibration\":null");
        return;
    }
    for (int i = 0; i < CD_REPORT_FIG_N_LEVEL; i++) level[i] = cd_report_fig_level(i);
    cd_buf_puts(out, ",\n\"calibration\":{\"interval_level\":");
    number(out, CD_REPORT_LEVEL);
    named(out, "interval_coverage", f->interval_cover);
    named(out, "interval_width_median", f->interval_width);
    named(out, "spearman_of_error", f->sigma_rank);
    named(out, "least_certain_mape", f->tenth.least_certain);
    named(out, "rest_mape", f->tenth.rest);
    named(out, "least_certain_log", f->tenth.least_certain_log);
    named(out, "rest_log", f->tenth.rest_log);
    list(out, "nominal", level, CD_REPORT_FIG_N_LEVEL);
    list(out, "observed", f->cover, CD_REPORT_FIG_N_LEVEL);
    groups(out, "by_uncertainty", &f->unsure, DECILE);
    cd_buf_puts(out, "}");
}

/* Only cells with programs: [column, row, count]. */
static void grid(cd_buf *out, const cd_report_figures *t, const cd_report_fig_part *f) {
    const char *sep = "";
    cd_buf_putf(out, ",\n\"grid\":{\"cells\":%d,\"log10_s\":[", CD_REPORT_FIG_GRID);
    number(out, t->log_min);
    cd_buf_puts(out, ",");
    number(out, t->log_max);
    cd_buf_puts(out, "],\"measured_predicted_count\":[");
    for (int y = 0; y < CD_REPORT_FIG_GRID; y++)
        for (int x = 0; x < CD_REPORT_FIG_GRID; x++) {
            const uint32_t c = f->grid[y * CD_REPORT_FIG_GRID + x];
            if (!c) continue;
            cd_buf_putf(out, "%s[%d,%d,%u]", sep, x, y, (unsigned)c);
            sep = ",";
        }
    cd_buf_puts(out, "]}");
}

/* The figures of a part, whole and by group; docs/reference/report.md lists the keys. */
static void part(cd_buf *out, const cd_report *r, const cd_report_figures *t, cd_split_part p) {
    const cd_report_fig_part *f = &t->part[p];
    double x[CD_REPORT_FIG_N_CDF];
    for (int i = 0; i < CD_REPORT_FIG_N_CDF; i++) x[i] = cd_report_fig_cdf_x(i);
    cd_buf_putf(out, "%s\"%s\":{\"tasks\":%zu,\"metrics\":", p ? ",\n\n" : "\n",
                cd_split_part_name(p), f->task.n);
    cd_metric_json(out, &r->part[p].metrics);
    named(out, "mape_low", f->mape_low);
    named(out, "mape_high", f->mape_high);
    cd_buf_puts(out, ",\n\"all\":{");
    dist(out, &f->all);
    cd_buf_puts(out, "},\n\"cdf\":{\"error_at_most\":[");
    for (int i = 0; i < CD_REPORT_FIG_N_CDF; i++) {
        if (i) cd_buf_puts(out, ",");
        number(out, x[i]);
    }
    cd_buf_puts(out, "]");
    list(out, "share", f->cdf, CD_REPORT_FIG_N_CDF);
    cd_buf_puts(out, "}");
    groups(out, "by_task", &f->task, NAMED);
    groups(out, "by_network", &f->network, NAMED);
    cd_buf_putf(out, ",\"in_no_network\":%zu", f->n_no_network);
    groups(out, "by_decade", &f->decade, DECADE);
    groups(out, "by_device", &f->device, NAMED);
    groups(out, "by_range", &f->range, RANGE);
    calibration(out, f);
    grid(out, t, f);
    cd_buf_puts(out, "}");
}

/* As drawn, but not thinned. */
static void curves(cd_buf *out, const cd_report *r) {
    cd_buf_puts(out, "},\n\"curves\":{");
    text(out, "step", r->step_name);
    cd_buf_puts(out, ",");
    text(out, "loss", r->loss_name);
    cd_buf_puts(out, ",\"members\":[");
    for (size_t k = 0; k < r->n_curve; k++) {
        const cd_report_curve *c = &r->curve[k];
        cd_buf_puts(out, k ? ",\n{" : "\n{");
        text(out, "name", c->name);
        list(out, "step", c->step, c->n);
        list(out, "train", c->train, c->n);
        list(out, "validation", c->valid, c->n);
        cd_buf_puts(out, "}");
    }
    cd_buf_puts(out, "]}");
}

/* Where the report comes from: enough to train the model again. */
static void about(cd_buf *out, const cd_report *r) {
    cd_buf_puts(out, "{\"schema\":\"cdmpp.trainreport/1\",");
    text(out, "title", r->title);
    cd_buf_puts(out, ",");
    text(out, "version", r->version);
    cd_buf_puts(out, ",");
    text(out, "command", r->command);
    cd_buf_puts(out, ",");
    text(out, "config", r->config);
    cd_buf_putf(out, ",\n\"data\":{\"programs\":%zu,\"kept\":%zu,\"dropped\":{", r->filter.in,
                r->filter.kept);
    for (int k = 0; k < CD_FILTER_N_DROP; k++) {
        if (k) cd_buf_puts(out, ",");
        cd_buf_putf(out, "\"%s\":%zu", cd_filter_drop_text((cd_filter_drop)k), r->filter.drop[k]);
    }
    cd_buf_puts(out, "},");
    text(out, "content_digest", r->content_digest);
    cd_buf_putf(out, "},\n\"split\":{\"kind\":\"%s\",\"seed\":%llu,", cd_split_name(r->kind),
                (unsigned long long)r->seed);
    text(out, "digest", r->split_digest);
    cd_buf_putf(out, ",\"target_tasks\":%zu", r->n_target_task);
    cd_buf_puts(out, "},\n\"quantiles\":[");
    for (int i = 0; i < CD_REPORT_FIG_N_Q; i++) {
        if (i) cd_buf_puts(out, ",");
        number(out, cd_report_fig_quantile_at(i));
    }
    cd_buf_puts(out, "],\n\"parts\":{");
}

cdmpp_status cd_report_write_json(cd_buf *out, const cd_report *r, cdmpp_err *err) {
    cd_report_figures f;
    cdmpp_status st = cd_report_figures_compute(&f, r, err);
    if (!st) {
        about(out, r);
        for (int p = 0; p < CD_SPLIT_N_PART; p++) part(out, r, &f, (cd_split_part)p);
        curves(out, r);
        cd_buf_puts(out, "}\n");
        if (out->oom) st = CD_FAIL(err, ENOMEM, "report");
    }
    cd_report_figures_free(&f);
    return st;
}
