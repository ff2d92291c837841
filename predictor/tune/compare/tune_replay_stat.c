/* Figures of replays: quartiles over tasks and curves over trials and seconds. */
#include "predictor/tune/compare/compare.h"

#include <math.h>

double cd_tune_replay_best(const cd_tune_replay_log *l, const cd_tune_replay_run *r,
                           size_t trials) {
    double best = CD_TUNE_FAILED_S;
    for (size_t k = 0; k < r->n && k < trials; k++) best = fmin(best, l->seconds[r->row[k]]);
    return best;
}

static double ratio_of(const cd_tune_replay_log *l, double found) {
    return found < CD_TUNE_FAILED_S ? l->best_s / found : 0;
}

double cd_tune_replay_ratio(const cd_tune_replay_log *l, const cd_tune_replay_run *r,
                            size_t trials) {
    return ratio_of(l, cd_tune_replay_best(l, r, trials));
}

double cd_tune_replay_measure_s(const cd_tune_replay_log *l, const cd_tune_replay_run *r,
                                size_t trials) {
    double sum = 0;
    for (size_t k = 0; k < r->n && k < trials; k++) sum += l->cost_s[r->row[k]];
    return sum;
}

static double tune_replay_search_s(const cd_tune_replay_run *r, size_t trials) {
    const size_t n = trials < r->n ? trials : r->n;
    return n ? r->search_s[n - 1] : 0;
}

/* ---- the table ---- */
static bool known(const cd_tune_replay_log *l) { return l->best_s < CD_TUNE_FAILED_S; }

static size_t count_known(const cd_tune_replay_logs *l) {
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) n += known(&l->log[i]);
    return n;
}

/* Mean over seeds. */
static double task_ratio(const cd_tune_replay_logs *l, const cd_tune_replay *r, size_t log,
                         size_t tuner, size_t trials) {
    double sum = 0;
    for (size_t s = 0; s < r->n_seed; s++)
        sum += cd_tune_replay_ratio(&l->log[log], cd_tune_replay_at(r, log, tuner, s), trials);
    return sum / (double)r->n_seed;
}

static size_t count_wins(const double *ratio, const cd_tune_replay *r, size_t n_task,
                         size_t tuner) {
    size_t wins = 0;
    for (size_t i = 0; i < n_task; i++) {
        double best = 0;
        for (size_t t = 0; t < r->n_tuner; t++) best = fmax(best, ratio[t * n_task + i]);
        wins += ratio[tuner * n_task + i] >= best - 1e-9;
    }
    return wins;
}

static cd_tune_replay_row row_of(const cd_tune_replay_logs *l, const cd_tune_replay *r,
                                 size_t tuner, size_t trials, double *ratio, size_t n) {
    cd_tune_replay_row w = {.tuner = tuner, .trials = trials, .n_task = n, .n_seed = r->n_seed};
    for (size_t i = 0; i < l->n; i++)
        for (size_t s = 0; known(&l->log[i]) && s < r->n_seed; s++) {
            w.measure_s +=
                cd_tune_replay_measure_s(&l->log[i], cd_tune_replay_at(r, i, tuner, s), trials) /
                (double)(n * r->n_seed);
            w.search_s += tune_replay_search_s(cd_tune_replay_at(r, i, tuner, s), trials) /
                          (double)(n * r->n_seed);
        }
    for (size_t i = 0; i < n; i++) w.mean += ratio[i] / (double)n;
    w.low = cd_sort_to_quantile(ratio, n, 0.25);
    w.median = cd_sort_to_quantile(ratio, n, 0.5);
    w.high = cd_sort_to_quantile(ratio, n, 0.75);
    return w;
}

cdmpp_status cd_tune_replay_table(const cd_tune_replay_logs *l, const cd_tune_replay *r,
                                  const size_t *at, size_t n_at, cd_tune_replay_row **out,
                                  cdmpp_err *err) {
    const size_t n = count_known(l);
    if (!n) return CD_FAIL(err, ENODATA, "%zu tasks, in none of which a program ran", l->n);
    cd_tune_replay_row *row = cd_mem_zalloc(r->n_tuner * n_at, sizeof *row);
    double *ratio = cd_mem_zalloc(r->n_tuner * n, sizeof *ratio);
    if (!row || !ratio) {
        cd_mem_free(row);
        cd_mem_free(ratio);
        return CD_FAIL(err, ENOMEM, "%zu rows", r->n_tuner * n_at);
    }
    for (size_t k = 0; k < n_at; k++) {
        for (size_t t = 0, j = 0; t < r->n_tuner; t++)
            for (size_t i = 0; i < l->n; i++)
                if (known(&l->log[i])) ratio[j++] = task_ratio(l, r, i, t, at[k]);
        for (size_t t = 0; t < r->n_tuner; t++) row[t * n_at + k].wins = count_wins(ratio, r, n, t);
        for (size_t t = 0; t < r->n_tuner; t++) { /* orders the ratios */
            const size_t wins = row[t * n_at + k].wins;
            row[t * n_at + k] = row_of(l, r, t, at[k], ratio + t * n, n);
            row[t * n_at + k].wins = wins;
        }
    }
    cd_mem_free(ratio);
    *out = row;
    return CDMPP_OK;
}

/* ---- curves ---- */
void cd_tune_replay_curve_free(cd_tune_replay_curve *c) {
    cd_mem_free(c->x);
    *c = (cd_tune_replay_curve){0};
}

static cdmpp_status curve_new(const cd_tune_replay_logs *l, size_t n, cd_tune_replay_curve *c,
                              cdmpp_err *err) {
    *c = (cd_tune_replay_curve){0};
    if (!count_known(l) || !n)
        return CD_FAIL(err, ENODATA, "no curve of %zu points and %zu tasks", n, l->n);
    double *v = cd_mem_zalloc(4 * n, sizeof *v);
    if (!v) return CD_FAIL(err, ENOMEM, "%zu points", n);
    *c = (cd_tune_replay_curve){n, v, v + n, v + 2 * n, v + 3 * n};
    return CDMPP_OK;
}

/* A run on its way. */
typedef struct {
    const cd_tune_replay_log *l;
    const cd_tune_replay_run *r;
    size_t n;          /* trials seen */
    double best, time; /* so far; when the next trial, if there is one, ends */
} walker;

static void look_ahead(walker *w) {
    const double before = w->n ? w->time - w->r->search_s[w->n - 1] : 0;
    w->time =
        w->n < w->r->n ? before + w->l->cost_s[w->r->row[w->n]] + w->r->search_s[w->n] : HUGE_VAL;
}

static void step(walker *w) {
    w->best = fmin(w->best, w->l->seconds[w->r->row[w->n++]]);
    look_ahead(w);
}

/* A walker follows one run along its trials. Tasks of which nothing ran are left out. */
static cdmpp_status walkers_of(const cd_tune_replay_logs *l, const cd_tune_replay *r, size_t tuner,
                               walker **out, double **work, size_t *n, cdmpp_err *err) {
    const size_t most = l->n * r->n_seed;
    walker *w = cd_mem_zalloc(most + 1, sizeof *w);
    *work = cd_mem_zalloc(most + 1, sizeof **work);
    *n = 0;
    *out = w;
    if (!w || !*work) return CD_FAIL(err, ENOMEM, "%zu runs", most);
    for (size_t i = 0; i < l->n; i++)
        for (size_t s = 0; known(&l->log[i]) && s < r->n_seed; s++) {
            w[*n] = (walker){&l->log[i], cd_tune_replay_at(r, i, tuner, s), 0, CD_TUNE_FAILED_S, 0};
            look_ahead(&w[(*n)++]);
        }
    return CDMPP_OK;
}

static void put_point(cd_tune_replay_curve *c, size_t k, double x, const walker *w, size_t n,
                      double *work) {
    for (size_t i = 0; i < n; i++) work[i] = ratio_of(w[i].l, w[i].best);
    c->x[k] = x;
    c->low[k] = cd_sort_to_quantile(work, n, 0.25);
    c->median[k] = cd_sort_to_quantile(work, n, 0.5);
    c->high[k] = cd_sort_to_quantile(work, n, 0.75);
}

/* All walkers go on by one trial; a run that has ended keeps its last value. */
cdmpp_status cd_tune_replay_by_trials(const cd_tune_replay_logs *l, const cd_tune_replay *r,
                                      size_t tuner, size_t trials, cd_tune_replay_curve *out,
                                      cdmpp_err *err) {
    walker *w = NULL;
    double *work = NULL;
    size_t n;
    CD_TRY(curve_new(l, trials, out, err));
    const cdmpp_status st = walkers_of(l, r, tuner, &w, &work, &n, err);
    for (size_t k = 0; !st && k < trials; k++) {
        for (size_t i = 0; i < n; i++)
            if (w[i].n < w[i].r->n) step(&w[i]);
        put_point(out, k, (double)(k + 1), w, n, work);
    }
    cd_mem_free(w);
    cd_mem_free(work);
    if (st) cd_tune_replay_curve_free(out);
    return st;
}

/* Points are spaced evenly on a logarithmic scale. The factor 1 + 1e-12 lets a trial that ends
 * exactly at a point count there in spite of rounding. */
cdmpp_status cd_tune_replay_by_seconds(const cd_tune_replay_logs *l, const cd_tune_replay *r,
                                       size_t tuner, size_t points, cd_tune_replay_curve *out,
                                       cdmpp_err *err) {
    walker *w = NULL;
    double *work = NULL, low = HUGE_VAL, high = 0;
    size_t n;
    CD_TRY(curve_new(l, points, out, err));
    const cdmpp_status st = walkers_of(l, r, tuner, &w, &work, &n, err);
    for (size_t i = 0; !st && i < n; i++) {
        const size_t all = w[i].r->n;
        if (!all) continue;
        low = fmin(low, w[i].time);
        high = fmax(high, cd_tune_replay_measure_s(w[i].l, w[i].r, all) +
                              tune_replay_search_s(w[i].r, all));
    }
    low = fmax(fmin(low, high), 1e-6);
    high = fmax(high, low);
    for (size_t k = 0; !st && k < points; k++) {
        const double x =
            points > 1 ? low * pow(high / low, (double)k / (double)(points - 1)) : high;
        for (size_t i = 0; i < n; i++)
            while (w[i].time <= x * (1 + 1e-12)) step(&w[i]);
        put_point(out, k, x, w, n, work);
    }
    cd_mem_free(w);
    cd_mem_free(work);
    if (st) cd_tune_replay_curve_free(out);
    return st;
}
