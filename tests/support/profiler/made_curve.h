/* made_curve -- curves of a law that is known, at sizes 1 .. n, with relative noise: what patterns
 * are judged by.
 *
 *   constant   a                                        a log-uniform in 1 us .. 10 ms, as in all
 *   affine     a + m x                                  T(n)/T(1) log-uniform in 1.5 .. 50
 *   hinge      x0 in 0.15 n .. 0.8 n                    m2 log-uniform in 0.02 a .. 0.5 a a sample
 *   slopes     x0 in 0.15 n .. 0.5 n, x1 at least 0.2 n behind, at most 0.85 n; m1 0 .. 0.05 a, m2
 *              m3 0 .. a, cubed so that small ones are as
 *              frequent as large ones
 *   stairs     w in 0.1 n .. 0.4 n; c in 0.25 (a + c) .. (a + c)
 *   table      3 to 5 jumps by 1.4 .. 2.5 at places at least 0.1 n apart
 *   irregular  every other seed: factors log-uniform in 1 .. 5, or a wave by +- 60 % with a period
 *              of 0.15 n .. 0.5 n
 *
 * Hinges and slopes are drawn again until an estimator that knows the form can place each break
 * with a standard error of 0.4 samples or less at this noise (Cramer and Rao's bound): "within one
 * sample" asks for no more than the data hold. */
#ifndef MADE_CURVE_H
#define MADE_CURVE_H
#include <math.h>

#include "base/core/core.h"
#include "profiler/curves/curves_internal.h"

enum { MADE_CURVE_MAX = 400 };

typedef struct {
    /* of those that have one; n_break, param as in patterns.h */
    cd_perf_curve_candidate law;
    size_t n;
    double x[MADE_CURVE_MAX], t[MADE_CURVE_MAX], truth[MADE_CURVE_MAX];
} made_curve;

typedef struct {
    uint64_t seed, at;
} made_dice;

static inline double made_unit(made_dice *d) { return cd_rng_unit(d->seed, d->at++); }
static inline double made_in(made_dice *d, double a, double b) {
    return a + (b - a) * made_unit(d);
}
static inline double made_log(made_dice *d, double a, double b) {
    return a * pow(b / a, made_unit(d));
}
static inline double made_normal(made_dice *d) {
    const double u = made_unit(d), v = made_unit(d);
    return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

/* Cramer and Rao's standard error of each break, the largest of them. */
static inline double made_bound(const cd_perf_curve_candidate *c, size_t n, double noise) {
    double a[CD_PERF_CURVE_PARAM][CD_PERF_CURVE_PARAM] = {{0}}, worst = 0;
    for (size_t i = 1; i <= n; i++) {
        double g[CD_PERF_CURVE_PARAM];
        const double f = cd_perf_curve_candidate_eval(c, (double)i);
        cd_perf_curve_candidate_gradient(c, (double)i, g);
        for (uint32_t j = 0; j < c->n_param; j++)
            for (uint32_t k = 0; k < c->n_param; k++) a[j][k] += g[j] * g[k] / (f * f);
    }
    if (!cd_perf_curve_invert_matrix(a, c->n_param)) return HUGE_VAL;
    for (uint32_t k = c->n_param - c->n_break; k < c->n_param; k++)
        worst = fmax(worst, noise * sqrt(a[k][k]));
    return worst;
}

static inline void made_lines(made_dice *d, cd_perf_curve_form form, double n, double a,
                              cd_perf_curve_candidate *c) {
    const double u = made_unit(d), v = made_unit(d);
    *c = (cd_perf_curve_candidate){.form = form};
    if (form == CD_PERF_CURVE_HINGE) {
        *c = (cd_perf_curve_candidate){
            .form = form,
            .n_param = 3,
            .n_break = 1,
            .param = {a, made_log(d, 0.02 * a, 0.5 * a), made_in(d, 0.15 * n, 0.8 * n)}};
    } else {
        const double x0 = made_in(d, 0.15 * n, 0.5 * n), x1 = made_in(d, x0 + 0.2 * n, 0.85 * n);
        *c = (cd_perf_curve_candidate){
            .form = form,
            .n_param = 6,
            .n_break = 2,
            .param = {a, made_in(d, 0, 0.05 * a), a * u * u * u, a * v * v * v, x0, x1}};
    }
}

static inline void made_law(made_dice *d, cd_perf_curve_form form, size_t n, double noise,
                            cd_perf_curve_candidate *c) {
    const double a = made_log(d, 1e-6, 1e-2), rise = made_log(d, 1.5, 50), end = (double)n;
    *c = (cd_perf_curve_candidate){.form = form, .n_param = 1, .param = {a}};
    /* T(1) = a + m = 1, T(n) = rise: m as large as a >= 0 lets it */
    if (form == CD_PERF_CURVE_AFFINE) {
        const double m = fmin((rise - 1) / (end - 1), 1);
        *c = (cd_perf_curve_candidate){.form = form, .n_param = 2, .param = {a * (1 - m), a * m}};
    } else if (form == CD_PERF_CURVE_STAIRS) {
        const double share = made_in(d, 0.25, 1);
        *c = (cd_perf_curve_candidate){
            .form = form,
            .n_param = 3,
            .n_break = 1,
            .param = {a * (1 - share), a * share, made_in(d, 0.1 * end, 0.4 * end)}};
    } else if (form == CD_PERF_CURVE_HINGE || form == CD_PERF_CURVE_SLOPES) {
        do made_lines(d, form, end, a, c);
        while (made_bound(c, n, noise) > 0.4);
    }
}

static inline void made_jumps(made_dice *d, made_curve *m) {
    const int jumps = 3 + (int)(3 * made_unit(d));
    double t = made_log(d, 1e-6, 1e-2), at[5], n = (double)m->n;
    for (bool good = false; !good;) {
        good = true;
        for (int k = 0; k < jumps; k++) {
            at[k] = floor(made_in(d, 0.08 * n, 0.92 * n)) + 0.5;
            for (int j = 0; j < k; j++) good = good && fabs(at[j] - at[k]) >= 0.1 * n;
        }
    }
    for (size_t i = 0; i < m->n; i++) {
        for (int k = 0; k < jumps; k++)
            if (m->x[i] > at[k] && m->x[i] - 1 < at[k]) t *= made_in(d, 1.4, 2.5);
        m->truth[i] = t;
    }
}

static inline void made_wild(made_dice *d, made_curve *m) {
    const double a = made_log(d, 1e-6, 1e-2), period = made_in(d, 0.15, 0.5) * (double)m->n,
                 phase = made_in(d, 0, 6.28);
    const bool wave = d->seed % 2;
    for (size_t i = 0; i < m->n; i++)
        m->truth[i] = a * (wave ? 1 + 0.6 * sin(6.283185307179586 * m->x[i] / period + phase)
                                : made_log(d, 1, 5));
}

/* n <= MADE_CURVE_MAX points at 1 .. n; noise: relative standard deviation, normal in ln T. */
static inline void made_curve_draw(cd_perf_curve_form form, uint64_t seed, size_t n, double noise,
                                   made_curve *m) {
    made_dice d = {seed, 0};
    m->n = n;
    for (size_t i = 0; i < n; i++) m->x[i] = (double)(i + 1);
    m->law = (cd_perf_curve_candidate){.form = form};
    if (form == CD_PERF_CURVE_TABLE) made_jumps(&d, m);
    else if (form == CD_PERF_CURVE_IRREGULAR) made_wild(&d, m);
    else made_law(&d, form, n, noise, &m->law);
    for (size_t i = 0; i < n; i++) {
        if (m->law.n_param) m->truth[i] = cd_perf_curve_candidate_eval(&m->law, m->x[i]);
        m->t[i] = m->truth[i] * exp(noise * made_normal(&d));
    }
}

/* A warm-up that takes three times as long, and 3 % of the points 1.5 to 3 times too slow. */
static inline void made_curve_spoil(made_curve *m, uint64_t seed) {
    made_dice d = {seed ^ 0x5bd1e995, 0};
    m->t[0] *= 3;
    for (size_t i = 1; i < m->n; i++)
        if (made_unit(&d) < 0.03) m->t[i] *= made_in(&d, 1.5, 3);
}

/* How far the breaks of a fit are from those planted, in samples: the worst; stairs: of all edges
 * on the curve. */
static inline double made_curve_off(const made_curve *m, const cd_perf_curve *p) {
    double worst = 0;
    if (p->form != m->law.form || p->n_break != m->law.n_break) return HUGE_VAL;
    if (p->form == CD_PERF_CURVE_STAIRS)
        return fabs(p->param[2] - m->law.param[2]) * floor((double)m->n / m->law.param[2]);
    for (uint32_t k = p->n_param - p->n_break; k < p->n_param; k++)
        worst = fmax(worst, fabs(p->param[k] - m->law.param[k]));
    return worst;
}
#endif
