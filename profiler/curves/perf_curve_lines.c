/* perf_curve_lines -- least squares of laws made of lines: constant, affine, hinge, slopes.
 *
 * Columns 1, min(x, x0), clip(x - x0, 0, x1 - x0), max(x - x1, 0): coefficients are a and the
 * slopes themselves, so that "no slope below 0" is "no coefficient below 0". Breaks: all pairs of
 * points by sums over ranges, O(1) a pair; then between points by golden section, with Huber's
 * weights. */
#include <math.h>
#include <string.h>

#include "profiler/curves/curves_internal.h"

enum { COLS = 4, SUMS = 6, MAX_BREAKS_TRIED = 100 };

/* Sums of weight times 1, x, x^2, t, x t, t^2. */
typedef struct {
    double v[SUMS];
} sums;

typedef struct {
    uint32_t n; /* breaks */
    bool flat;
    double at[2];
} breaks;

/* ---- small systems ---- */
void cd_perf_curve_solve_linear(double a[CD_PERF_CURVE_PARAM][CD_PERF_CURVE_PARAM], double *b,
                                uint32_t n) {
    double d[CD_PERF_CURVE_PARAM];
    bool dead[CD_PERF_CURVE_PARAM] = {false};
    for (uint32_t i = 0; i < n; i++) d[i] = a[i][i] > 0 ? 1 / sqrt(a[i][i]) : 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) a[i][j] *= d[i] * d[j];
        b[i] *= d[i];
    }
    for (uint32_t k = 0; k < n; k++) {
        dead[k] = !(a[k][k] > 1e-11);
        for (uint32_t i = k + 1; i < n && !dead[k]; i++) {
            const double f = a[i][k] / a[k][k];
            for (uint32_t j = k; j < n; j++) a[i][j] -= f * a[k][j];
            b[i] -= f * b[k];
        }
    }
    for (uint32_t k = n; k-- > 0;) {
        for (uint32_t j = k + 1; j < n && !dead[k]; j++) b[k] -= a[k][j] * b[j];
        b[k] = dead[k] ? 0 : b[k] / a[k][k];
    }
    for (uint32_t k = 0; k < n; k++) b[k] *= d[k];
}

/* Column by column with the solver; a column that depends on others gives no positive diagonal. */
bool cd_perf_curve_invert_matrix(double a[CD_PERF_CURVE_PARAM][CD_PERF_CURVE_PARAM], uint32_t n) {
    double out[CD_PERF_CURVE_PARAM][CD_PERF_CURVE_PARAM];
    for (uint32_t c = 0; c < n; c++) {
        double m[CD_PERF_CURVE_PARAM][CD_PERF_CURVE_PARAM], e[CD_PERF_CURVE_PARAM] = {0};
        if (!(a[c][c] > 0)) return false;
        memcpy(m, a, sizeof m);
        e[c] = 1;
        cd_perf_curve_solve_linear(m, e, n);
        for (uint32_t i = 0; i < n; i++) out[i][c] = e[i];
    }
    for (uint32_t i = 0; i < n; i++)
        if (!(out[i][i] > 0) || !isfinite(out[i][i])) return false;
    memcpy(a, out, sizeof out);
    return true;
}

/* No coefficient below 0: the worst leaves, and again. `off` (n): those that must be 0. Returns the
 * sum of squares left. */
static double solve_above_0(double a[CD_PERF_CURVE_PARAM][CD_PERF_CURVE_PARAM], const double *b,
                            double tt, uint32_t n, bool *off, double *out) {
    for (;;) {
        double m[CD_PERF_CURVE_PARAM][CD_PERF_CURVE_PARAM];
        uint32_t worst = n;
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t j = 0; j < n; j++) m[i][j] = off[i] || off[j] ? 0 : a[i][j];
            out[i] = off[i] ? 0 : b[i];
        }
        cd_perf_curve_solve_linear(m, out, n);
        for (uint32_t i = 0; i < n; i++)
            if (out[i] < 0 &&
                (worst == n || out[i] * sqrt(a[i][i]) < out[worst] * sqrt(a[worst][worst])))
                worst = i;
        if (worst == n) break;
        off[worst] = true;
    }
    double left = tt;
    for (uint32_t i = 0; i < n; i++) {
        left -= 2 * b[i] * out[i];
        for (uint32_t j = 0; j < n; j++) left += out[i] * a[i][j] * out[j];
    }
    return fmax(left, 0);
}

/* ---- one range of points in the normal equations ---- */

/* In a range a column is c0 + c1 x. */
static void add_range(const sums *s, double c[COLS][2],
                      double a[CD_PERF_CURVE_PARAM][CD_PERF_CURVE_PARAM], double *b) {
    for (int i = 0; i < COLS; i++) {
        for (int j = 0; j < COLS; j++)
            a[i][j] += c[i][0] * c[j][0] * s->v[0] +
                       (c[i][0] * c[j][1] + c[i][1] * c[j][0]) * s->v[1] +
                       c[i][1] * c[j][1] * s->v[2];
        b[i] += c[i][0] * s->v[3] + c[i][1] * s->v[4];
    }
}

/* range[k]: points up to break k, the last one those behind all. */
static double solve_ranges(const sums range[3], const breaks *k, double *out) {
    double a[CD_PERF_CURVE_PARAM][CD_PERF_CURVE_PARAM] = {{0}};
    double b[CD_PERF_CURVE_PARAM] = {0};
    double tt = 0;
    bool off[CD_PERF_CURVE_PARAM] = {false, k->flat, k->n < 1, k->n < 2};
    for (uint32_t r = 0; r <= k->n; r++) {
        double c[COLS][2] = {{1, 0}, {0, 0}, {0, 0}, {0, 0}}, from = 0;
        /* slope m acts from break m-1 to break m or, in the last of them, to x */
        for (uint32_t m = 0; m <= r; m++) {
            c[1 + m][0] = m < r ? k->at[m] - from : -from;
            c[1 + m][1] = m < r ? 0 : 1;
            if (m < k->n) from = k->at[m];
        }
        add_range(&range[r], c, a, b);
        tt += range[r].v[5];
    }
    return solve_above_0(a, b, tt, COLS, off, out);
}

static void add_point(sums *s, double w, double x, double t) {
    const double v[SUMS] = {w, w * x, w * x * x, w * t, w * x * t, w * t * t};
    for (int i = 0; i < SUMS; i++) s->v[i] += v[i];
}

static sums between(const sums *upto, size_t from, size_t to) {
    sums s;
    for (int i = 0; i < SUMS; i++) s.v[i] = upto[to].v[i] - upto[from].v[i];
    return s;
}

/* The same by one pass over all points, for breaks that lie anywhere. */
static double solve_points(const cd_perf_curve_points *p, const double *w, const breaks *k,
                           double *out) {
    sums range[3] = {{{0}}};
    for (size_t i = 0; i < p->n; i++) {
        uint32_t r = 0;
        while (r < k->n && p->x[i] > k->at[r]) r++;
        if (w[i] > 0) add_point(&range[r], w[i], p->x[i], p->t[i]);
    }
    return solve_ranges(range, k, out);
}

/* ---- from coefficients to a candidate ---- */
static void put(cd_perf_curve_candidate *c, const breaks *k, const double *coef) {
    uint32_t n = 0;
    c->param[n++] = coef[0];
    if (!k->flat) c->param[n++] = coef[1];
    for (uint32_t i = 0; i < k->n; i++) c->param[n++] = coef[2 + i];
    for (uint32_t i = 0; i < k->n; i++) c->param[n++] = k->at[i];
    c->n_param = n;
    c->n_break = k->n;
}

/* Weights of the next round: relative to the law, Huber's where a point is far off. */
static void reweigh(const cd_perf_curve_points *p, const cd_perf_curve_candidate *c, double *w) {
    for (size_t i = 0; i < p->n; i++) {
        const double f = cd_perf_curve_candidate_eval(c, p->x[i]),
                     r = f > 0 ? fabs(log(p->t[i] / f)) / p->s : HUGE_VAL;
        w[i] = p->keep[i] == 0 ? 0 : isfinite(r) ? (r > 1.345 ? 1.345 / r : 1) / (f * f) : p->w[i];
    }
}

static double try_at(const cd_perf_curve_points *p, const double *w, breaks *k, uint32_t which,
                     double at, double *coef) {
    k->at[which] = at;
    return solve_points(p, w, k, coef);
}

/* Golden section between low and high. */
static void slide(const cd_perf_curve_points *p, const double *w, breaks *k, uint32_t which,
                  double low, double high) {
    const double g = 0.6180339887498949, start = k->at[which];
    double coef[CD_PERF_CURVE_PARAM], a = low, b = high, u = b - g * (b - a), v = a + g * (b - a);
    const double before = solve_points(p, w, k, coef);
    double fu = try_at(p, w, k, which, u, coef), fv = try_at(p, w, k, which, v, coef);
    for (int i = 0; i < 14; i++) {
        if (fu <= fv) {
            b = v, v = u, fv = fu, u = b - g * (b - a);
            fu = try_at(p, w, k, which, u, coef);
        } else {
            a = u, u = v, fu = fv, v = a + g * (b - a);
            fv = try_at(p, w, k, which, v, coef);
        }
    }
    k->at[which] = fmin(fu, fv) < before ? (fu <= fv ? u : v) : start;
}

/* Breaks and weights in turn: each break slides between its neighbouring points, then all points
 * get the weights of the new law. */
static void polish(const cd_perf_curve_points *p, breaks *k, cd_perf_curve_candidate *c) {
    double *w = p->work, coef[CD_PERF_CURVE_PARAM];
    memcpy(w, p->w, p->n * sizeof *w);
    for (int round = 0; round < 4; round++) {
        for (uint32_t b = 0; b < k->n; b++) {
            size_t i = 0;
            while (i + 1 < p->n && p->x[i] < k->at[b]) i++;
            const size_t from = i > 2 ? i - 2 : 0, to = i + 2 < p->n ? i + 2 : p->n - 1;
            const double low = b ? fmax(p->x[from], k->at[b - 1]) : p->x[from],
                         high = b + 1 < k->n ? fmin(p->x[to], k->at[b + 1]) : p->x[to];
            if (high > low) slide(p, w, k, b, low, high);
        }
        (void)solve_points(p, w, k, coef);
        put(c, k, coef);
        reweigh(p, c, w);
    }
    c->loss = cd_perf_curve_candidate_loss(c, p);
}

/* ---- the forms ---- */
void cd_perf_curve_fit_constant(const cd_perf_curve_points *p, cd_perf_curve_candidate *out) {
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->keep[i] > 0) p->work[n++] = p->t[i];
    *out = (cd_perf_curve_candidate){.form = CD_PERF_CURVE_CONSTANT, .n_param = 1};
    double *w = p->work + n, sum = 0, all = 0;
    out->param[0] = cd_sort_to_median(p->work, n);
    for (int round = 0; round < 4; round++, sum = all = 0) {
        reweigh(p, out, w);
        for (size_t i = 0; i < p->n; i++) sum += w[i] * p->t[i], all += w[i];
        out->param[0] = sum / all;
    }
    out->loss = cd_perf_curve_candidate_loss(out, p);
}

void cd_perf_curve_fit_affine(const cd_perf_curve_points *p, cd_perf_curve_candidate *out) {
    breaks k = {0};
    *out = (cd_perf_curve_candidate){.form = CD_PERF_CURVE_AFFINE};
    polish(p, &k, out);
}

/* Every so many points may be a break. */
static size_t stride_of(size_t n) { return 1 + (n - 1) / MAX_BREAKS_TRIED; }

/* Best of all breaks on points, at least `least` kept points in each range. */
static double search(const cd_perf_curve_points *p, const sums *upto, size_t least, breaks *k) {
    const size_t step = stride_of(p->n);
    double best = HUGE_VAL, coef[CD_PERF_CURVE_PARAM];
    breaks b = *k;
    for (size_t i = least; i + least <= p->n; i += step)
        for (size_t j = b.n == 2 ? i + least : p->n; j + (b.n == 2 ? least : 0) <= p->n;
             j += step) {
            const sums range[3] = {between(upto, 0, i), between(upto, i, j),
                                   between(upto, j, p->n)};
            b.at[0] = p->x[i - 1];
            b.at[1] = p->x[j - 1];
            const double left = solve_ranges(range, &b, coef);
            if (left < best) best = left, *k = b;
        }
    return best;
}

bool cd_perf_curve_fit_lines(const cd_perf_curve_points *p, uint32_t n_break, bool flat,
                             cd_perf_curve_candidate *out) {
    const size_t least = p->n >= 20 ? 3 : 2;
    breaks k = {n_break, flat, {0, 0}};
    sums *upto = (sums *)(void *)p->work; /* (n + 1), 6 (n + 1) doubles */
    *out = (cd_perf_curve_candidate){.form = flat ? CD_PERF_CURVE_HINGE : CD_PERF_CURVE_SLOPES,
                                     .loss = HUGE_VAL};
    if (p->n < (n_break + 1) * least) return false;
    memset(upto, 0, sizeof *upto);
    for (size_t i = 0; i < p->n; i++) {
        upto[i + 1] = upto[i];
        if (p->keep[i] > 0) add_point(&upto[i + 1], p->w[i], p->x[i], p->t[i]);
    }
    if (search(p, upto, least, &k) == HUGE_VAL) return false;
    polish(p, &k, out);
    return true;
}

/* ---- where the first break may be ---- */
static double left_with(const cd_perf_curve_points *p, const double *w,
                        const cd_perf_curve_candidate *c, double at) {
    const uint32_t first = c->n_param - c->n_break;
    breaks k = {
        c->n_break, c->form == CD_PERF_CURVE_HINGE, {at, c->n_break > 1 ? c->param[first + 1] : 0}};
    double coef[CD_PERF_CURVE_PARAM];
    return solve_points(p, w, &k, coef);
}

/* A second break stays where it is. In steps outward from the break, so that long curves cost no
 * more than the search did. */
void cd_perf_curve_break_range(const cd_perf_curve_points *p, const cd_perf_curve_candidate *c,
                               double rise, double *low, double *high) {
    const double at = c->param[c->n_param - c->n_break],
                 last = c->n_break > 1 ? c->param[c->n_param - 1] : p->x[p->n - 1];
    const size_t step = stride_of(p->n);
    double *w = p->work;
    size_t below = 0;
    reweigh(p, c, w);
    const double most = left_with(p, w, c, at) + rise;
    while (below < p->n && p->x[below] < at) below++;
    size_t i = below, j = below;
    while (i > 0 && (i -= i < step ? i : step, left_with(p, w, c, p->x[i]) <= most)) {
    }
    while (j + 1 < p->n && p->x[j] < last && (p->x[j] <= at || left_with(p, w, c, p->x[j]) <= most))
        j = j + step < p->n ? j + step : p->n - 1;
    *low = p->x[i];
    *high = fmin(p->x[j], last); /* a step may go beyond the second break */
}
