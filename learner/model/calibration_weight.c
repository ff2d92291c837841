/* Weights of the kinds, and shift and tilt of the point. Both are searched over a grid: the losses
 * have no useful gradient, and there are few parameters. */
#include <math.h>
#include <string.h>

#include "learner/model/model_internal.h"

enum { UNITS = 20, EXACT_KINDS = 3, SAMPLE = 8000, SHIFT_STEPS = 24, TILT_STEPS = 30 };
/* A candidate must beat equal weights by this share of the loss times the squared distance
 * from them (times n_kind): a small set decides less than it seems to. Likewise tilt 1. */
static const double weight_pull = 0.02, tilt_pull = 0.01;

void cd_calibration_mix(const double *weight, size_t n_kind, const double *kind, size_t stride,
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

void cd_calibration_fit_weight(const cd_calibration_set *s, cd_tree_loss l,
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

double cd_calibration_point_of(const cd_calibration *c, double m, double sigma) {
    if (c->point == CD_CALIBRATION_MEDIAN) return m + c->q_mid * sigma;
    return fmax(m + c->q_low * sigma,
                fmin(m + c->shift - c->tilt * sigma * sigma, m + c->q_high * sigma));
}

static double mape(const void *ctx, double shift) {
    tilted t = *(const tilted *)ctx;
    double sum = 0;
    t.c.shift = shift;
    for (size_t i = 0; i < t.s->n; i++)
        sum += cd_tree_loss_value(
            CD_TREE_LOSS_MAPE, cd_calibration_point_of(&t.c, t.s->m[i], t.s->raw[i]) - t.s->y[i]);
    return sum / (double)t.s->n;
}

/* For each tilt the best shift; a tilt other than 1 must win by a margin. */
void cd_calibration_fit_point(cd_calibration *c, const cd_calibration_set *s) {
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
