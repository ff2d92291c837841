/* The order of a calibration's fit, and the answer for a new program: weighted mean of the kinds,
 * uncertainty, interval, point. The steps are in files of their own; calibration.h draws them. */
#include "learner/model/calibration.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learner/model/model_internal.h"

/* How large |ln y - m| will be for a program: trees, or two numbers where there are too few
 *   programs for trees.
 *
 * The trees give ln of the mean |r| near a program: boosted on the Laplace likelihood,
 * s + |r| e^-s, whose gradient 1 - |r| e^-s (at most 4 e^-s counted, so that one outlier
 * does not move a leaf alone) is rounded as in learner/loss/loss.h and whose expected Hessian is 1.
 * Fitting
 * ln |r| instead, as one may, says more about the small errors than about the large ones:
 * on held-out tasks of the CPU set (2 kinds, 4 draws, depth 4) the least certain tenth then
 * erred 1.96 times as much as the rest in |r|, this way 2.08 times. Depth 6 to 10, 120 to
 * 250 rounds, 10 to 30 % of the columns all give that within the noise of the draws.
 *
 * One matrix holds all programs; those of fold f weigh nothing for its trees. */

enum { MIN_PROGRAM = 300, MIN_GROUP = 20, ROUNDS = 120, EXTRA = 4 };
static const double least_error = 1e-3, most_times = 4, slope_pull = 2;

size_t cd_calibration_seen(size_t width, size_t n_kind) { return width + EXTRA + n_kind; }

/* Row of the trees' matrix; returns the sum outside.
 *
 * The program vector, then what the kinds say: how far apart they are, their mean, and how far the
 * program lies outside of training. */
static double calibration_see(const float *range, const float *x, size_t width, const double *kind,
                              size_t stride, size_t n_kind, double m, double spread, float *row) {
    size_t columns;
    const double outside = cd_calibration_outside_of(range, x, width, &columns);
    memcpy(row, x, width * sizeof *row);
    row += width;
    *row++ = (float)spread;
    *row++ = (float)m;
    *row++ = (float)outside;
    *row++ = (float)columns;
    for (size_t k = 0; k < n_kind; k++) *row++ = (float)(kind[k * stride] - m);
    return outside;
}

/* Raw sigma of n <= CD_CALIBRATION_BLOCK programs by the mean of all boosters; score (n) is
 * scratch.
 *
 * The mean over the folds' trees in the logarithm, or those that a fold's errors are not in;
 * without trees, two numbers. */
static cdmpp_status calibration_raw(const cd_calibration *c, const float *seen,
                                    const double *spread, size_t n, int fold, float *score,
                                    double *raw, cdmpp_err *err) {
    const bool all = fold < 0 || !c->n_sigma;
    const size_t first = all ? 0 : (size_t)fold % c->n_sigma, end = all ? c->n_sigma : first + 1;
    for (size_t i = 0; i < n; i++) raw[i] = c->n_sigma ? 0 : log1p(c->slope * spread[i]);
    for (size_t f = first; f < end; f++) {
        CD_TRY(cd_xgb_predict(c->sigma[f], seen, n, cd_calibration_seen(c->width, c->n_kind), score,
                              err));
        for (size_t i = 0; i < n; i++)
            raw[i] += (c->base[f] + (double)score[i]) / (double)(end - first);
    }
    for (size_t i = 0; i < n; i++) raw[i] = exp(fmax(-50, fmin(raw[i], 50)));
    return CDMPP_OK;
}

/* ---- what the trees see of the programs of the fit ---- */
/* Range of the programs outside fold f; the caller's where there is one estimator a kind and a
 * range of its programs. */
static void fold_range(const cd_calibration_input *in, const cd_calibration_set *s, uint32_t f,
                       float *range) {
    bool first = true;
    if (s->own_fold && in->range) {
        memcpy(range, in->range, 2 * s->width * sizeof *range);
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        if (s->fold[i] == f) continue;
        cd_calibration_range_add(range, in->x + s->at[i] * s->width, 1, s->width, first);
        first = false;
    }
    /* one fold has all programs: they are the range */
    for (size_t i = 0; first && i < s->n; i++)
        cd_calibration_range_add(range, in->x + s->at[i] * s->width, 1, s->width, i == 0);
}

/* Each program is seen with the range of the folds that it is not in, as a new program would be. */
static cdmpp_status see_all(const cd_calibration_input *in, cd_calibration_set *s, float *seen,
                            cdmpp_err *err) {
    const size_t n_seen = cd_calibration_seen(s->width, s->n_kind);
    float *range = cd_mem_zalloc(2 * s->width, sizeof *range),
          *one = seen ? NULL : cd_mem_zalloc(n_seen, sizeof *one);
    const bool all = range && (seen || one);
    for (uint32_t f = 0; all && f < s->n_fold; f++) {
        fold_range(in, s, f, range);
        for (size_t i = 0; i < s->n; i++)
            if (s->fold[i] == f)
                s->outside[i] = calibration_see(range, in->x + s->at[i] * s->width, s->width,
                                                s->kind + i, s->n, s->n_kind, s->m[i], s->spread[i],
                                                seen ? seen + i * n_seen : one);
    }
    cd_mem_free(range);
    cd_mem_free(one);
    return all ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu columns", s->width);
}

/* ---- two numbers ---- */
/* raw = 1 + slope * spread, the likelihood's best scale left to the quantiles. A slope must gain 2
 * in the logarithm of the likelihood for each task's worth of programs (a test at 5 % asks 1.92):
 * kinds agree on programs that they were trained on, so that a slope of a few accidents would make
 * those look certain. */
static void fit_plain(cd_calibration *c, cd_calibration_set *s) {
    double best = INFINITY;
    for (int k = 0; k <= 10; k++) {
        const double slope = k ? 0.05 * exp2(k) : 0;
        double sum = 0, scale = 0;
        for (size_t i = 0; i < s->n; i++) {
            const double v = 1 + slope * s->spread[i];
            sum += log(v);
            scale += fmax(fabs(s->r[i]), least_error) / v;
        }
        const double loss =
            sum / (double)s->n + log(scale) + (k ? slope_pull / (double)s->n_group : 0);
        if (!(loss < best)) continue;
        best = loss;
        c->slope = slope;
    }
    for (size_t i = 0; i < s->n; i++) s->raw[i] = 1 + c->slope * s->spread[i];
}

/* ---- trees ---- */
/* What one worker needs to grow trees: XGBoost quantises a matrix at its first tree, so none is
 * shared. */
typedef struct {
    cd_arena arena;
    cd_xgb_data *data;
    float *grad, *hess, *score; /* (n) */
} bench;

typedef struct {
    cd_calibration *c;
    cd_calibration_set *s;
    const float *seen;
    uint64_t seed;
    bench *bench; /* (workers) */
} grower;

static double error_of(const cd_calibration_set *s, size_t i) {
    return fmax(fabs(s->r[i]), least_error);
}

static cdmpp_status new_gbt(const grower *g, const bench *b, cd_xgb **out, cdmpp_err *err) {
    char weight[32], seed[32];
    snprintf(weight, sizeof weight, "%zu", g->s->n > 8000 ? g->s->n / 400 : 20);
    snprintf(seed, sizeof seed, "%u", (unsigned)(g->seed & 0x7fffffff));
    const cd_xgb_param p[] = {{"tree_method", "hist"},
                              {"max_depth", "6"},
                              {"eta", "0.05"},
                              {"lambda", "1"},
                              {"max_bin", "64"},
                              {"colsample_bytree", "0.15"},
                              {"min_child_weight", weight},
                              {"seed", seed},
                              {"nthread", "1"}};
    return cd_xgb_new(b->data, NULL, p, sizeof p / sizeof *p, out, err);
}

/* ln of the mean error outside fold f: where the trees begin. */
static double base_of(const cd_calibration_set *s, uint32_t f) {
    double sum = 0, n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->fold[i] != f) sum += error_of(s, i), n++;
    return log(sum / n);
}

static cdmpp_status set_up(const grower *g, bench *b, cdmpp_err *err) {
    const size_t n = g->s->n;
    if (b->data) return CDMPP_OK;
    b->grad = CD_NEWN(&b->arena, float, n);
    b->hess = CD_NEWN(&b->arena, float, n);
    b->score = CD_NEWN(&b->arena, float, n);
    if (b->arena.oom) return CD_FAIL(err, ENOMEM, "%zu programs", n);
    return cd_xgb_data_new(g->seen, n, cd_calibration_seen(g->s->width, g->s->n_kind), 1, &b->data,
                           err);
}

static void clear(bench *b) {
    cd_xgb_data_free(b->data);
    cd_arena_free(&b->arena);
}

/* Programs of fold f have no weight in its trees, so their scores at the end are out of fold: these
 * are the raw sigma that scale and intervals are fitted to. */
static cdmpp_status grow(const grower *g, bench *b, uint32_t f, cdmpp_err *err) {
    cd_calibration_set *s = g->s;
    const double base = g->c->base[f] = base_of(s, f);
    cd_xgb **gbt = &g->c->sigma[f];
    CD_TRY(new_gbt(g, b, gbt, err));
    for (size_t i = 0; i < s->n; i++) {
        b->score[i] = 0;
        b->hess[i] = s->fold[i] != f;
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < s->n; i++)
            b->grad[i] =
                s->fold[i] == f
                    ? 0
                    : cd_tree_loss_round(
                          1 - fmin(error_of(s, i) * exp(-base - (double)b->score[i]), most_times));
        CD_TRY(cd_xgb_boost(*gbt, b->data, b->grad, b->hess, err));
        CD_TRY(cd_xgb_scores(*gbt, b->data, b->score, err));
    }
    for (size_t i = 0; i < s->n; i++)
        if (s->fold[i] == f) s->raw[i] = exp(base + (double)b->score[i]);
    CD_TRY(cd_xgb_cut(*gbt, ROUNDS, err));
    /* XGBoost configures a booster at its first prediction, which is not safe from two threads at
     * once */
    return cd_xgb_predict(*gbt, g->seen, 1, cd_calibration_seen(s->width, s->n_kind), b->score,
                          err);
}

static cdmpp_status grow_folds(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const grower *g = ctx;
    CD_TRY(set_up(g, &g->bench[w], err));
    for (size_t f = beg; f < end; f++) CD_TRY(grow(g, &g->bench[w], (uint32_t)f, err));
    return CDMPP_OK;
}

static cdmpp_status fit_trees(cd_calibration *c, const cd_calibration_input *in,
                              const cd_calibration_options *opt, cd_calibration_set *s,
                              cdmpp_err *err) {
    const size_t n_seen = cd_calibration_seen(s->width, s->n_kind),
                 n_worker = (size_t)cd_threads_count(opt->pool);
    float *seen = cd_mem_zalloc(s->n, n_seen * sizeof *seen);
    grower g = {c, s, seen, opt->seed, cd_mem_zalloc(n_worker, sizeof *g.bench)};
    cdmpp_status st =
        g.bench && seen ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu x %zu values", s->n, n_seen);
    if (!st) st = see_all(in, s, seen, err);
    if (!st) st = cd_threads_run(opt->pool, s->n_fold, 1, grow_folds, &g, err);
    if (!st) c->n_sigma = s->n_fold;
    for (size_t w = 0; g.bench && w < n_worker; w++) clear(&g.bench[w]);
    cd_mem_free(g.bench);
    cd_mem_free(seen);
    return st;
}

/* Boosters and raw sigma (n) of the set, those of a fold from trees without it. */
static cdmpp_status calibration_fit_sigma(cd_calibration *c, const cd_calibration_input *in,
                                          const cd_calibration_options *opt, cd_calibration_set *s,
                                          cdmpp_err *err) {
    if (!opt->plain && s->n >= MIN_PROGRAM && s->n_group >= MIN_GROUP)
        return fit_trees(c, in, opt, s, err);
    CD_TRY(see_all(in, s, NULL, err));
    fit_plain(c, s);
    return CDMPP_OK;
}

/* Weights of the kinds, and shift and tilt of the point. Both are searched over a grid: the losses
 * have no useful gradient, and there are few parameters. */

enum { UNITS = 20, EXACT_KINDS = 3, SAMPLE = 8000, SHIFT_STEPS = 24, TILT_STEPS = 30 };
/* A candidate must beat equal weights by this share of the loss times the squared distance
 * from them (times n_kind): a small set decides less than it seems to. Likewise tilt 1. */
static const double weight_pull = 0.02, tilt_pull = 0.01;

/* *m, *spread of a program whose answers are kind[k * stride]. */
static void calibration_mix(const double *weight, size_t n_kind, const double *kind, size_t stride,
                            double *m, double *spread) {
    double sum = 0, sq = 0;
    for (size_t k = 0; k < n_kind; k++) sum += weight[k] * kind[k * stride];
    for (size_t k = 0; k < n_kind; k++)
        sq += weight[k] * (kind[k * stride] - sum) * (kind[k * stride] - sum);
    *m = sum;
    *spread = sqrt(sq);
}

/* The minimum of a function with one valley in lo..hi, by golden section. */
typedef double objective(const void *ctx, double x);
static double golden(objective *f, const void *ctx, double lo, double hi, int steps, double *at) {
    const double g = 0.6180339887498949;
    double a = hi - g * (hi - lo), b = lo + g * (hi - lo), fa = f(ctx, a), fb = f(ctx, b);
    while (steps-- > 0) {
        if (fa <= fb) {
            hi = b, b = a, fb = fa;
            fa = f(ctx, a = hi - g * (hi - lo));
        } else {
            lo = a, a = b, fa = fb;
            fb = f(ctx, b = lo + g * (hi - lo));
        }
    }
    *at = fa <= fb ? a : b;
    return fmin(fa, fb);
}

/* ---- weights ---- */
typedef struct {
    const cd_calibration_set *s;
    size_t n;
    cd_tree_loss loss;
    int unit[CD_CALIBRATION_MAX_KIND], best_unit[CD_CALIBRATION_MAX_KIND];
    double best;
} search;

static double shifted(const void *ctx, double shift) {
    const search *w = ctx;
    double sum = 0;
    for (size_t i = 0; i < w->n; i++) sum += cd_tree_loss_value(w->loss, w->s->work[i] + shift);
    return sum / (double)w->n;
}

/* The loss of w->unit at its best shift. Kinds differ in how much they overestimate on average,
 * which the shift corrects. */
static void try_weights(search *w) {
    const size_t n_kind = w->s->n_kind;
    double far = 0, at;
    for (size_t k = 0; k < n_kind; k++)
        far += pow((double)w->unit[k] / UNITS - 1.0 / (double)n_kind, 2);
    for (size_t i = 0; i < w->n; i++) {
        double m = 0;
        for (size_t k = 0; k < n_kind; k++) m += w->unit[k] * w->s->kind[k * w->s->n + i];
        w->s->work[i] = m / UNITS - w->s->y[i];
    }
    const double loss =
        golden(shifted, w, -1.5, 1.5, SHIFT_STEPS, &at) * (1 + weight_pull * (double)n_kind * far);
    if (!(loss < w->best)) return;
    w->best = loss;
    memcpy(w->best_unit, w->unit, sizeof w->unit);
}

static void every_weight(search *w, size_t k, int left) {
    if (k + 1 == w->s->n_kind) {
        w->unit[k] = left;
        try_weights(w);
        return;
    }
    for (int u = 0; u <= left; u++) {
        w->unit[k] = u;
        every_weight(w, k + 1, left - u);
    }
}

/* From the best so far: move `step` units from one kind to another while that helps. Every pair of
 * kinds is tried from the same start; the best of all moves is kept in w. */
static bool move_once(search *w, int step) {
    int from[CD_CALIBRATION_MAX_KIND];
    const double before = w->best;
    memcpy(from, w->best_unit, sizeof from);
    for (size_t a = 0; a < w->s->n_kind; a++)
        for (size_t b = 0; b < w->s->n_kind; b++) {
            if (a == b || from[a] < step) continue;
            memcpy(w->unit, from, sizeof from);
            w->unit[a] -= step;
            w->unit[b] += step;
            try_weights(w);
        }
    return w->best < before;
}

/* Searches the weights of the kinds over s. */
static void calibration_fit_weight(const cd_calibration_set *s, cd_tree_loss l,
                                   double weight[CD_CALIBRATION_MAX_KIND]) {
    search w = {.s = s, .n = s->n < SAMPLE ? s->n : SAMPLE, .loss = l, .best = INFINITY};
    const int share = UNITS / (int)s->n_kind;
    for (size_t k = 0; k < s->n_kind; k++)
        w.unit[k] = w.best_unit[k] = k ? share : UNITS - share * ((int)s->n_kind - 1);
    try_weights(&w);
    if (s->n_kind <= EXACT_KINDS) every_weight(&w, 0, UNITS);
    else
        for (int step = 4; step; step /= 2)
            while (move_once(&w, step)) continue;
    for (size_t k = 0; k < s->n_kind; k++) weight[k] = (double)w.best_unit[k] / UNITS;
}

/* ---- shift and tilt ---- */
typedef struct {
    cd_calibration c;
    const cd_calibration_set *s;
} tilted;

/* Point answer from m and sigma, inside the interval. */
static double calibration_point_of(const cd_calibration *c, double m, double sigma) {
    if (c->point == CD_CALIBRATION_MEDIAN) return m + c->q_mid * sigma;
    return fmax(m + c->q_low * sigma,
                fmin(m + c->shift - c->tilt * sigma * sigma, m + c->q_high * sigma));
}

static double mape(const void *ctx, double shift) {
    tilted t = *(const tilted *)ctx;
    double sum = 0;
    t.c.shift = shift;
    for (size_t i = 0; i < t.s->n; i++)
        sum += cd_tree_loss_value(CD_TREE_LOSS_MAPE,
                                  calibration_point_of(&t.c, t.s->m[i], t.s->raw[i]) - t.s->y[i]);
    return sum / (double)t.s->n;
}

/* Needs m, raw (already sigma), q_low and q_high.
 *
 * For each tilt the best shift; a tilt other than 1 must win by a margin. */
static void calibration_fit_point(cd_calibration *c, const cd_calibration_set *s) {
    double best = INFINITY;
    if (c->point == CD_CALIBRATION_MEDIAN) return;
    for (int k = 0; k <= TILT_STEPS; k++) {
        tilted t = {*c, s};
        double shift;
        t.c.tilt = 0.05 * k;
        const double loss = golden(mape, &t, -1.5, 1.5, SHIFT_STEPS, &shift) *
                            (1 + tilt_pull * (t.c.tilt - 1) * (t.c.tilt - 1));
        if (!(loss < best)) continue;
        best = loss;
        c->shift = shift;
        c->tilt = t.c.tilt;
    }
}

/* sigma within a quarter and six times its median over the programs of the fit, and a
 * limit of the range that rounding does not cross. */
static const double lowest = 0.25, highest = 6, least_outside = 0.01, flag_share = 0.05;
/* The mean over folds of (one estimator - y)^2 is (their mean - y)^2 plus the mean of (one
 * estimator - their mean)^2, an identity: the last term is what averaging takes away, as a share of
 * the mean square this times (F-1)/F. Two kinds of trees, 5 folds by task, measured on held-out
 * tasks: 0.065 on a CPU, 0.067 on a GPU set (6 draws each). A training cannot measure its own: all
 * its programs but those held out were seen by F-1 estimators, and those held out are not for it to
 * look at. */
static const double gain = 0.083;

cd_calibration_options cd_calibration_options_default(void) {
    return (cd_calibration_options){0.9, CD_CALIBRATION_MAPE, CD_TREE_LOSS_MAPE, 0, false, NULL};
}

/* ---- fit ---- */
static void answers(const cd_calibration *c, cd_calibration_set *s) {
    for (size_t i = 0; i < s->n; i++) {
        calibration_mix(c->weight, s->n_kind, s->kind + i, s->n, &s->m[i], &s->spread[i]);
        s->r[i] = s->y[i] - s->m[i];
    }
}

/* Raw sigma into bounds, quantiles of r over it, and the scale that makes sigma a normal
 * distribution's of the same width; s->raw is sigma afterwards. */
static cdmpp_status scale(cd_calibration *c, cd_calibration_set *s, cdmpp_err *err) {
    double q[4];
    memcpy(s->work, s->raw, s->n * sizeof *s->raw);
    const double middle = cd_sort_to_quantile(s->work, s->n, 0.5);
    c->raw_min = lowest * middle;
    c->raw_max = highest * middle;
    double *z = cd_mem_zalloc(s->n, sizeof *z);
    if (!z) return CD_FAIL(err, ENOMEM, "%zu programs", s->n);
    for (size_t i = 0; i < s->n; i++) {
        s->raw[i] = fmax(c->raw_min, fmin(s->raw[i], c->raw_max));
        z[i] = s->r[i] / s->raw[i];
    }
    const cdmpp_status st =
        cd_calibration_quantiles(s, z, c->level, q, &c->info.n_independent, err);
    cd_mem_free(z);
    if (st) return st;
    /* all errors the same */
    c->scale = fmax(q[3], fmax(1e-6 / middle, 1e-3 * fmax(fabs(q[0]), fabs(q[2]))));
    c->q_low = q[0] / c->scale;
    c->q_mid = q[1] / c->scale;
    c->q_high = q[2] / c->scale;
    for (size_t i = 0; i < s->n; i++) s->raw[i] *= c->scale;
    return CDMPP_OK;
}

typedef struct {
    double sigma, ape, log_error;
} outcome;

static int least_certain_first(const void *a, const void *b) {
    const outcome *x = a, *y = b;
    if (x->sigma != y->sigma) return x->sigma > y->sigma ? -1 : 1;
    return (x->ape > y->ape) - (x->ape < y->ape);
}

static double ratio(double tenth, size_t n_tenth, double all, size_t n) {
    const double rest = (all - tenth) / (double)(n - n_tenth);
    return rest > 0 ? tenth / (double)n_tenth / rest : 1;
}

/* Figures over the programs of the fit. */
static cdmpp_status summarise(cd_calibration *c, cd_calibration_set *s, cdmpp_err *err) {
    outcome *t = cd_mem_zalloc(s->n, sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "%zu programs", s->n);
    double ape = 0, log_error = 0, median = 0, tenth_ape = 0, tenth_log = 0;
    for (size_t i = 0; i < s->n; i++) {
        const double sigma = s->raw[i], m = s->m[i];
        t[i] = (outcome){
            sigma,
            cd_tree_loss_value(CD_TREE_LOSS_MAPE, calibration_point_of(c, m, sigma) - s->y[i]),
            fabs(s->r[i] - c->q_mid * sigma)};
        ape += t[i].ape;
        log_error += t[i].log_error;
        median += cd_tree_loss_value(CD_TREE_LOSS_MAPE, m + c->q_mid * sigma - s->y[i]);
        c->info.flagged += (s->outside[i] > c->outside_limit) / (double)s->n;
    }
    qsort(t, s->n, sizeof *t, least_certain_first);
    const size_t k = s->n < 10 ? 1 : s->n / 10;
    for (size_t i = 0; i < k; i++) {
        tenth_ape += t[i].ape;
        tenth_log += t[i].log_error;
    }
    c->info.n = s->n;
    c->info.n_group = s->n_group;
    c->info.mape_median = median / (double)s->n;
    c->info.mape_point = ape / (double)s->n;
    c->info.decile_ratio = ratio(tenth_ape, k, ape, s->n);
    c->info.decile_ratio_log = ratio(tenth_log, k, log_error, s->n);
    cd_mem_free(t);
    return CDMPP_OK;
}

/* Each step uses what the ones before have found, in the order of calibration.h. */
static cdmpp_status fit(cd_calibration *c, const cd_calibration_input *in,
                        const cd_calibration_options *opt, cd_calibration_set *s, cdmpp_err *err) {
    c->range = cd_mem_zalloc(2 * in->width, sizeof *c->range);
    if (!c->range) return CD_FAIL(err, ENOMEM, "%zu columns", in->width);
    if (in->range) memcpy(c->range, in->range, 2 * in->width * sizeof *c->range);
    else cd_calibration_range_add(c->range, in->x, in->n, in->width, true);
    calibration_fit_weight(s, opt->objective, c->weight);
    answers(c, s);
    CD_TRY(calibration_fit_sigma(c, in, opt, s, err));
    memcpy(s->work, s->outside, s->n * sizeof *s->work);
    c->outside_limit = fmax(least_outside, cd_sort_to_quantile(s->work, s->n, 1 - flag_share));
    CD_TRY(scale(c, s, err));
    calibration_fit_point(c, s);
    c->shrink = sqrt(1 - gain * (double)(in->n_fold - 1) / (double)in->n_fold);
    return summarise(c, s, err);
}

/* The programs are put in an order of their own first, so that the caller's order does not
 * matter. */
cdmpp_status cd_calibration_fit(const cd_calibration_input *in, const cd_calibration_options *opt,
                                cd_calibration **out, cdmpp_err *err) {
    cd_calibration_set s;
    if (!(opt->level >= 0.5 && opt->level <= 0.99))
        return CD_FAIL(err, ERANGE, "level: expected 0.5 to 0.99, found %g", opt->level);
    cd_calibration *c = cd_mem_zalloc(1, sizeof *c);
    if (!c) return CD_FAIL(err, ENOMEM, "calibration");
    *c = (cd_calibration){
        .n_kind = in->n_kind, .width = in->width, .level = opt->level, .point = opt->point};
    cdmpp_status st = cd_calibration_pick(in, opt->seed, &s, err);
    if (!st) st = fit(c, in, opt, &s, err);
    cd_calibration_set_free(&s);
    if (st) cd_calibration_free(c);
    else *out = c;
    return st;
}

void cd_calibration_free(cd_calibration *c) {
    if (!c) return;
    for (size_t f = 0; f < CD_CALIBRATION_MAX_SIGMA; f++) cd_xgb_free(c->sigma[f]);
    cd_mem_free(c->range);
    cd_mem_free(c);
}

/* Figures of the fit as stored, parameters as they are. */
cd_calibration_info cd_calibration_info_of(const cd_calibration *c) {
    cd_calibration_info i = c->info;
    i.n_kind = c->n_kind;
    i.n_sigma = c->n_sigma;
    memcpy(i.weight, c->weight, sizeof i.weight);
    i.shift = c->shift;
    i.tilt = c->tilt;
    i.q_low = c->q_low;
    i.q_mid = c->q_mid;
    i.q_high = c->q_high;
    i.shrink = c->shrink;
    return i;
}

size_t cd_calibration_n_kind(const cd_calibration *c) { return c->n_kind; }
size_t cd_calibration_width(const cd_calibration *c) { return c->width; }

/* ---- apply ---- */
typedef struct {
    double m[CD_CALIBRATION_BLOCK], spread[CD_CALIBRATION_BLOCK], raw[CD_CALIBRATION_BLOCK],
        outside[CD_CALIBRATION_BLOCK];
    float score[CD_CALIBRATION_BLOCK];
    float seen[]; /* (CD_CALIBRATION_BLOCK, cd_calibration_seen) */
} block;

size_t cd_calibration_scratch_bytes(const cd_calibration *c) {
    return sizeof(block) +
           CD_CALIBRATION_BLOCK * cd_calibration_seen(c->width, c->n_kind) * sizeof(float);
}

static void put(const cd_calibration *c, const cd_calibration_output *o, size_t at, double m,
                double raw, double outside) {
    const double sigma = c->shrink * c->scale * fmax(c->raw_min, fmin(raw, c->raw_max));
    if (o->point_log) o->point_log[at] = calibration_point_of(c, m, sigma);
    if (o->median_log) o->median_log[at] = m + c->q_mid * sigma;
    if (o->sigma) o->sigma[at] = sigma;
    if (o->low_log) o->low_log[at] = m + c->q_low * sigma;
    if (o->high_log) o->high_log[at] = m + c->q_high * sigma;
    if (o->outside) o->outside[at] = outside;
    if (o->flags) o->flags[at] = outside > c->outside_limit ? CD_CALIBRATION_OUT_OF_RANGE : 0;
}

/* In blocks, so that the working memory does not grow with n. */
cdmpp_status cd_calibration_apply(const cd_calibration *c, const double *kind_log_s, const float *x,
                                  size_t n, int fold, void *scratch,
                                  const cd_calibration_output *out, cdmpp_err *err) {
    block *b = scratch;
    const size_t n_seen = cd_calibration_seen(c->width, c->n_kind);
    for (size_t beg = 0; beg < n; beg += CD_CALIBRATION_BLOCK) {
        const size_t len = n - beg < CD_CALIBRATION_BLOCK ? n - beg : CD_CALIBRATION_BLOCK;
        for (size_t i = 0; i < len; i++) {
            const double *kind = kind_log_s + beg + i;
            for (size_t k = 0; k < c->n_kind; k++)
                if (!isfinite(kind[k * n]))
                    return CD_FAIL(err, ENUMERIC, "program %zu: answer of kind %zu is not finite",
                                   beg + i, k);
            calibration_mix(c->weight, c->n_kind, kind, n, &b->m[i], &b->spread[i]);
            b->outside[i] = calibration_see(c->range, x + (beg + i) * c->width, c->width, kind, n,
                                            c->n_kind, b->m[i], b->spread[i], b->seen + i * n_seen);
        }
        CD_TRY(calibration_raw(c, b->seen, b->spread, len, fold, b->score, b->raw, err));
        for (size_t i = 0; i < len; i++) put(c, out, beg + i, b->m[i], b->raw[i], b->outside[i]);
    }
    return CDMPP_OK;
}
