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
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learner/model/model_internal.h"

enum { MIN_PROGRAM = 300, MIN_GROUP = 20, ROUNDS = 120, EXTRA = 4 };
static const double least_error = 1e-3, most_times = 4, slope_pull = 2;

size_t cd_calibration_seen(size_t width, size_t n_kind) { return width + EXTRA + n_kind; }

/* The program vector, then what the kinds say: how far apart they are, their mean, and how far the
 * program lies outside of training. */
double cd_calibration_see(const float *range, const float *x, size_t width, const double *kind,
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

/* The mean over the folds' trees in the logarithm, or those that a fold's errors are not in;
 * without trees, two numbers. */
cdmpp_status cd_calibration_raw(const cd_calibration *c, const float *seen, const double *spread,
                                size_t n, int fold, float *score, double *raw, cdmpp_err *err) {
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
                s->outside[i] = cd_calibration_see(range, in->x + s->at[i] * s->width, s->width,
                                                   s->kind + i, s->n, s->n_kind, s->m[i],
                                                   s->spread[i], seen ? seen + i * n_seen : one);
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

cdmpp_status cd_calibration_fit_sigma(cd_calibration *c, const cd_calibration_input *in,
                                      const cd_calibration_options *opt, cd_calibration_set *s,
                                      cdmpp_err *err) {
    if (!opt->plain && s->n >= MIN_PROGRAM && s->n_group >= MIN_GROUP)
        return fit_trees(c, in, opt, s, err);
    CD_TRY(see_all(in, s, NULL, err));
    fit_plain(c, s);
    return CDMPP_OK;
}
