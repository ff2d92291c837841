/* The order of a calibration's fit, and the answer for a new program: weighted mean of the kinds,
 * uncertainty, interval, point. The steps are in files of their own; calibration.h draws them. */
#include "learner/model/calibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/model/model_internal.h"

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
        cd_calibration_mix(c->weight, s->n_kind, s->kind + i, s->n, &s->m[i], &s->spread[i]);
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
            cd_tree_loss_value(CD_TREE_LOSS_MAPE, cd_calibration_point_of(c, m, sigma) - s->y[i]),
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
    cd_calibration_fit_weight(s, opt->objective, c->weight);
    answers(c, s);
    CD_TRY(cd_calibration_fit_sigma(c, in, opt, s, err));
    memcpy(s->work, s->outside, s->n * sizeof *s->work);
    c->outside_limit = fmax(least_outside, cd_sort_to_quantile(s->work, s->n, 1 - flag_share));
    CD_TRY(scale(c, s, err));
    cd_calibration_fit_point(c, s);
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
    if (o->point_log) o->point_log[at] = cd_calibration_point_of(c, m, sigma);
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
            cd_calibration_mix(c->weight, c->n_kind, kind, n, &b->m[i], &b->spread[i]);
            b->outside[i] =
                cd_calibration_see(c->range, x + (beg + i) * c->width, c->width, kind, n, c->n_kind,
                                   b->m[i], b->spread[i], b->seen + i * n_seen);
        }
        CD_TRY(cd_calibration_raw(c, b->seen, b->spread, len, fold, b->score, b->raw, err));
        for (size_t i = 0; i < len; i++) put(c, out, beg + i, b->m[i], b->raw[i], b->outside[i]);
    }
    return CDMPP_OK;
}
