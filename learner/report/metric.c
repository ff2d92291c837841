/* Accuracy of predictions: errors over all programs, ranks within tasks. */
#include "learner/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    double y, p, weight;
    double ry, rp; /* ranks within the group */
    uint32_t group;
} item;

/* Sums over groups. */
typedef struct {
    double rho, best1, found1, best5, found5;
    uint64_t right2, pair; /* right2: twice the pairs in order, ties in p count 1 */
} sums;

static int cmp(double a, double b) { return (a > b) - (a < b); }

static int by_group(const void *a, const void *b) {
    const item *x = a, *z = b;
    if (x->group != z->group) return x->group < z->group ? -1 : 1;
    const int c = cmp(x->y, z->y);
    return c ? c : cmp(x->p, z->p);
}
static int by_p(const void *a, const void *b) {
    const item *x = a, *z = b;
    const int c = cmp(x->p, z->p);
    return c ? c : cmp(z->y, x->y); /* ties: the worst first, so that a constant wins nothing */
}

/* Mean ranks of items sorted by y (or p), and the number of tied pairs. */
static uint64_t ranks(item *v, size_t n, int use_p) {
    uint64_t tied = 0;
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && (use_p ? v[j].p == v[i].p : v[j].y == v[i].y); j++) {
        }
        const double r = 0.5 * (double)(i + j - 1);
        for (size_t k = i; k < j; k++) *(use_p ? &v[k].rp : &v[k].ry) = r;
        tied += (uint64_t)(j - i) * (j - i - 1) / 2;
    }
    return tied;
}

/* Pearson's correlation of the ranks; NaN when the measurements are all equal. */
static double rank_correlation(const item *v, size_t n) {
    const double mean = 0.5 * (double)(n - 1);
    double xy = 0, xx = 0, yy = 0;
    for (size_t i = 0; i < n; i++) {
        xy += (v[i].ry - mean) * (v[i].rp - mean);
        xx += (v[i].rp - mean) * (v[i].rp - mean);
        yy += (v[i].ry - mean) * (v[i].ry - mean);
    }
    if (yy <= 0) return NAN;
    return xx > 0 ? xy / sqrt(xx * yy) : 0;
}

/* Inversions of p in a sequence sorted by (y, p): pairs in the wrong order.
 * Merge sort (Knight 1966); `v` leaves sorted by p. */
static uint64_t inversions(double *v, double *tmp, size_t n) {
    if (n < 2) return 0;
    const size_t h = n / 2;
    uint64_t wrong = inversions(v, tmp, h) + inversions(v + h, tmp, n - h);
    size_t i = 0, j = h, k = 0;
    while (i < h && j < n) {
        if (v[j] < v[i]) {
            wrong += h - i;
            tmp[k++] = v[j++];
        } else {
            tmp[k++] = v[i++];
        }
    }
    while (i < h) tmp[k++] = v[i++];
    while (j < n) tmp[k++] = v[j++];
    memcpy(v, tmp, n * sizeof *v);
    return wrong;
}

/* Pairs tied in both y and p, of items sorted by (y, p). */
static uint64_t tied_both(const item *v, size_t n) {
    uint64_t tied = 0;
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && v[j].y == v[i].y && v[j].p == v[i].p; j++) {
        }
        tied += (uint64_t)(j - i) * (j - i - 1) / 2;
    }
    return tied;
}

static double best_of(const item *v, size_t k) {
    double best = v[0].y;
    for (size_t i = 1; i < k; i++) best = fmin(best, v[i].y);
    return best;
}

/* `v` sorted by (y, p); tmp has room for 2n doubles. */
static void add_group(item *v, size_t n, double *tmp, sums *s, cd_metric *m) {
    m->n_group++;
    if (n < 2) return;
    const uint64_t all = (uint64_t)n * (n - 1) / 2, tied_y = ranks(v, n, 0), both = tied_both(v, n);
    const double best = v[0].y;
    for (size_t i = 0; i < n; i++) tmp[i] = v[i].p;
    const uint64_t wrong = inversions(tmp, tmp + n, n);
    qsort(v, n, sizeof *v, by_p);
    const uint64_t tied_p = ranks(v, n, 1) - both; /* tied in p alone */
    s->pair += all - tied_y;
    s->right2 += 2 * (all - tied_y - wrong) - tied_p;
    const double rho = rank_correlation(v, n);
    if (!isnan(rho)) {
        s->rho += rho;
        m->n_spearman++;
    }
    m->n_top1++;
    s->best1 += v[0].weight * best;
    s->found1 += v[0].weight * v[0].y;
    if (n <= 5) return;
    m->n_top5++;
    s->best5 += v[0].weight * best;
    s->found5 += v[0].weight * best_of(v, 5);
}

/* Absolute percentage errors are sorted for the median; ape (n) is scratch. */
static void errors(const double *y, const double *p, size_t n, double *ape, cd_metric *m) {
    double sum = 0, sq = 0, sqlog = 0, abslog = 0;
    size_t in5 = 0, in10 = 0, in20 = 0;
    for (size_t i = 0; i < n; i++) {
        const double e = fabs(p[i] / y[i] - 1), d = p[i] - y[i], l = log(p[i] / y[i]);
        ape[i] = e;
        sum += e;
        sq += d * d;
        sqlog += l * l;
        abslog += fabs(l);
        in5 += e <= 0.05;
        in10 += e <= 0.10;
        in20 += e <= 0.20;
    }
    cd_sort_doubles(ape, n);
    const double dn = (double)n;
    m->mape = sum / dn;
    m->median_ape = cd_sort_median(ape, n);
    m->rmse_s = sqrt(sq / dn);
    m->rmse_log = sqrt(sqlog / dn);
    m->mae_log = abslog / dn;
    m->within_5 = (double)in5 / dn;
    m->within_10 = (double)in10 / dn;
    m->within_20 = (double)in20 / dn;
}

static void groups(item *v, size_t n, double *tmp, cd_metric *m) {
    sums s = {0};
    qsort(v, n, sizeof *v, by_group);
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && v[j].group == v[i].group; j++) {
        }
        add_group(v + i, j - i, tmp, &s, m);
    }
    m->n_pair = s.pair;
    m->spearman = m->n_spearman ? s.rho / (double)m->n_spearman : (double)NAN;
    m->pairwise = s.pair ? 0.5 * (double)s.right2 / (double)s.pair : (double)NAN;
    m->top1 = m->n_top1 ? s.best1 / s.found1 : (double)NAN;
    m->top5 = m->n_top5 ? s.best5 / s.found5 : (double)NAN;
}

static bool is_time(double s) { return s > 0 && isfinite(s); }

/* Errors are over all items; ranks are means over groups (a task on a device), because latencies of
 * different tasks need no common order. */
cdmpp_status cd_metric_compute_ranked(const double *y, const double *p, const double *order,
                                      const uint32_t *group, const double *weight, size_t n,
                                      cd_metric *out, cdmpp_err *err) {
    *out = (cd_metric){.n = n,
                       .mape = NAN,
                       .median_ape = NAN,
                       .rmse_s = NAN,
                       .rmse_log = NAN,
                       .mae_log = NAN,
                       .within_5 = NAN,
                       .within_10 = NAN,
                       .within_20 = NAN,
                       .spearman = NAN,
                       .pairwise = NAN,
                       .top1 = NAN,
                       .top5 = NAN};
    for (size_t i = 0; i < n; i++)
        if (!is_time(y[i]) || !is_time(p[i]) || !is_time(order[i]))
            return CD_FAIL(err, ENUMERIC,
                           "item %zu: expected finite seconds > 0, found measured %g, predicted %g",
                           i, y[i], p[i]);
    if (!n) return CDMPP_OK;
    item *v = cd_mem_zalloc(n, sizeof *v);
    double *tmp = cd_mem_zalloc(n, 2 * sizeof *tmp);
    const int ok = v && tmp;
    for (size_t i = 0; ok && i < n; i++)
        v[i] =
            (item){.y = y[i], .p = order[i], .weight = weight ? weight[i] : 1, .group = group[i]};
    if (ok) {
        errors(y, p, n, tmp, out);
        groups(v, n, tmp, out);
    }
    cd_mem_free(v);
    cd_mem_free(tmp);
    return ok ? CDMPP_OK : CD_FAIL(err, ENOMEM, "metrics of %zu items", n);
}

cdmpp_status cd_metric_compute(const double *y, const double *p, const uint32_t *group,
                               const double *weight, size_t n, cd_metric *out, cdmpp_err *err) {
    return cd_metric_compute_ranked(y, p, p, group, weight, n, out, err);
}

static void number(cd_buf *out, const char *name, double x) {
    if (isnan(x)) cd_buf_putf(out, ",\"%s\":null", name);
    else cd_buf_putf(out, ",\"%s\":%.6g", name, x);
}

/* NaN is written as null. */
void cd_metric_json(cd_buf *out, const cd_metric *m) {
    cd_buf_putf(out, "{\"n\":%zu,\"groups\":%zu", m->n, m->n_group);
    number(out, "mape", m->mape);
    number(out, "median_ape", m->median_ape);
    number(out, "rmse_s", m->rmse_s);
    number(out, "rmse_log", m->rmse_log);
    number(out, "mae_log", m->mae_log);
    number(out, "within_5", m->within_5);
    number(out, "within_10", m->within_10);
    number(out, "within_20", m->within_20);
    number(out, "spearman", m->spearman);
    number(out, "pairwise", m->pairwise);
    number(out, "top1", m->top1);
    number(out, "top5", m->top5);
    cd_buf_puts(out, "}");
}

/* "12.3" or "-": a figure nobody qualifies for. */
static void percent(cd_buf *out, const char *name, double x) {
    if (isnan(x)) cd_buf_putf(out, "%s -", name);
    else cd_buf_putf(out, "%s %.1f %%", name, 100 * x);
}
static void plain(cd_buf *out, const char *name, double x) {
    if (isnan(x)) cd_buf_putf(out, "%s -", name);
    else cd_buf_putf(out, "%s %.3f", name, x);
}

/* Two lines, as cdmpp-train prints them; one where there is nothing to print. */
void cd_metric_text(cd_buf *out, const char *part, const char *split, const cd_metric *m) {
    if (!m->n) {
        cd_buf_putf(out, "%s (split=%s): no row was scored\n", part, split);
        return;
    }
    cd_buf_putf(out, "%s (split=%s, n=%zu, %zu tasks x devices): ", part, split, m->n, m->n_group);
    percent(out, "MAPE", m->mape);
    percent(out, ", median", m->median_ape);
    cd_buf_putf(out, ", RMSE %.4g s", m->rmse_s);
    plain(out, ", RMSE(log)", m->rmse_log);
    plain(out, ", MAE(log)", m->mae_log);
    percent(out, "\n    within 5 %", m->within_5);
    percent(out, ", 10 %", m->within_10);
    percent(out, ", 20 %", m->within_20);
    plain(out, "; Spearman", m->spearman);
    percent(out, ", pairwise", m->pairwise);
    plain(out, ", top-1", m->top1);
    plain(out, ", top-5", m->top5);
    cd_buf_puts(out, "\n");
}
