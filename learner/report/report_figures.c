/* All numbers of a report, computed once and used by the page and by the JSON file. */
#include "learner/report/report_internal.h"

#include <math.h>
#include <string.h>

double cd_report_fig_cdf_x(int i) { return pow(10, -3 + 0.025 * i); }
double cd_report_fig_level(int i) { return i < CD_REPORT_FIG_N_LEVEL - 1 ? 0.05 * (i + 1) : 0.99; }
double cd_report_fig_quantile_at(int i) {
    static const double at[CD_REPORT_FIG_N_Q] = {0.10, 0.25, 0.50, 0.75, 0.90};
    return at[i];
}

/* Quantiles of the ratio first, then of its distance from 1: one array serves both. */
cd_report_dist cd_report_fig_dist(const cd_report_part *p, const size_t *idx, size_t n,
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
    to->all = cd_report_fig_dist(p, NULL, p->n, tmp);
    cumulate(p, to->cdf, tmp);
    cd_mem_free(tmp);
    for (size_t i = 0; i < p->n; i++)
        to->grid[cell(f, p->predicted_s[i]) * CD_REPORT_FIG_GRID + cell(f, p->measured_s[i])]++;
    CD_TRY(cd_report_fig_group_part(f, r, part, err));
    CD_TRY(cd_report_fig_calibrate(f, r, part, err));
    return cd_report_fig_resample(f, r, part, err);
}

cdmpp_status cd_report_figures_compute(cd_report_figures *f, const cd_report *r, cdmpp_err *err) {
    *f = (cd_report_figures){0};
    CD_TRY(check(r, err));
    axes(f, r);
    for (int p = 0; p < CD_SPLIT_N_PART; p++) CD_TRY(part_of(f, r, (cd_split_part)p, err));
    return CDMPP_OK;
}

void cd_report_figures_free(cd_report_figures *f) { cd_arena_free(&f->arena); }
