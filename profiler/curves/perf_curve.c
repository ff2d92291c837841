/* Fits all forms to a curve and chooses one. The choice is made twice: with the tolerance for the
 * form that gets a name, and with a fifth of it for the times that are predicted, because a user
 * reads the name and the program uses the times. */
#include <math.h>
#include <string.h>

#include "profiler/curves/curves_internal.h"

/* perf_curve_lines -- least squares of laws made of lines: constant, affine, hinge, slopes.
 *
 * Columns 1, min(x, x0), clip(x - x0, 0, x1 - x0), max(x - x1, 0): coefficients are a and the
 * slopes themselves, so that "no slope below 0" is "no coefficient below 0". Breaks: all pairs of
 * points by sums over ranges, O(1) a pair; then between points by golden section, with Huber's
 * weights. */

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
/* One form each, by weighted least squares with Huber's weights; *out with its loss. */
static void perf_curve_fit_constant(const cd_perf_curve_points *p, cd_perf_curve_candidate *out) {
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

static void perf_curve_fit_affine(const cd_perf_curve_points *p, cd_perf_curve_candidate *out) {
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

/* breaks 1 or 2; flat: the first slope is 0 (hinge). False: too few points. */
static bool perf_curve_fit_lines(const cd_perf_curve_points *p, uint32_t n_break, bool flat,
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

/* The points nearest to the first break of lines, on both sides, where a break leaves `rise` more
 * of squares; the outermost where none does.
 *
 * A second break stays where it is. In steps outward from the break, so that long curves cost no
 * more than the search did. */
static void perf_curve_break_range(const cd_perf_curve_points *p, const cd_perf_curve_candidate *c,
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

#define TOLERANCE     0.05
#define FINE          0.2 /* of it: for times rather than for names */
#define LEVEL         0.9
#define LEAST_FREEDOM 8    /* points that are left over: fewer say little of the noise */
#define WILD          0.25 /* noise above which no curve has a form */

/* ---- arguments ---- */
static cdmpp_status check(const double *x, const double *t, size_t n, cdmpp_err *err) {
    if (n < 3 || n > 1000000)
        return CD_FAIL(err, EINVALID, "expected 3 .. 1000000 points, found %zu", n);
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]) || x[i] < 0 || (i && x[i] <= x[i - 1]))
            return CD_FAIL(err, EINVALID, "point %zu: expected ascending sizes, found %g behind %g",
                           i, x[i], i ? x[i - 1] : 0.0);
        if (!isfinite(t[i]) || t[i] <= 0)
            return CD_FAIL(err, EINVALID, "point %zu: expected a time above 0, found %g", i, t[i]);
    }
    return x[n - 1] > 0 ? CDMPP_OK : CD_FAIL(err, EINVALID, "expected sizes above 0");
}

/* EOP's rule: first point away, median of three, share of variance that a line explains. */
static double affine_r2(const double *x, const double *t, size_t n) {
    double m = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
    for (size_t i = 1; i < n; i++) {
        double v[3] = {t[i], t[i], t[i]};
        if (i > 1 && i + 1 < n) v[0] = t[i - 1], v[2] = t[i + 1];
        const double y = cd_sort_to_median(v, 3) / t[n - 1], u = x[i] / x[n - 1];
        m++, sx += u, sy += y, sxx += u * u, sxy += u * y, syy += y * y;
    }
    const double vx = sxx - sx * sx / m, vy = syy - sy * sy / m, c = sxy - sx * sy / m;
    return vx > 0 && vy > 0 ? c * c / (vx * vy) : 0;
}

/* ---- choice ---- */
/* a break counts twice */
static double params_of(const cd_perf_curve_candidate *c) { return c->n_param + c->n_break; }

/* The candidates of a curve; those that could not be fitted are not there. */
typedef struct {
    cd_perf_curve_candidate c[CD_N_PERF_CURVE];
    uint32_t n;
} candidates;

static void fit_forms(const cd_perf_curve_points *p, uint32_t forms, candidates *k) {
    k->n = 0;
    if (forms >> CD_PERF_CURVE_CONSTANT & 1) perf_curve_fit_constant(p, &k->c[k->n++]);
    if (forms >> CD_PERF_CURVE_AFFINE & 1) perf_curve_fit_affine(p, &k->c[k->n++]);
    if (forms >> CD_PERF_CURVE_HINGE & 1) k->n += perf_curve_fit_lines(p, 1, true, &k->c[k->n]);
    for (uint32_t b = 1; b <= 2; b++)
        if (forms >> CD_PERF_CURVE_SLOPES & 1)
            k->n += perf_curve_fit_lines(p, b, false, &k->c[k->n]);
    if (forms >> CD_PERF_CURVE_STAIRS & 1) k->n += cd_perf_curve_fit_stairs(p, &k->c[k->n]);
}

/* The form of smallest BIC at the noise p->s; NULL: none fits, see perf_curve.h (4). score may be
 * NULL. */
static const cd_perf_curve_candidate *best_of(const cd_perf_curve_points *p, candidates *k,
                                              double limit, double *score, double *misfit) {
    const cd_perf_curve_candidate *best = NULL;
    for (uint32_t i = 0; i < k->n; i++) {
        cd_perf_curve_candidate *c = &k->c[i];
        c->loss = cd_perf_curve_candidate_loss(c, p);
        c->score = c->loss + params_of(c) * log((double)p->n_kept);
        if (score) score[c->form] = fmin(score[c->form], c->score);
        if (!best || c->score < best->score) best = c;
    }
    *misfit = best ? best->loss / fmax((double)p->n_kept - params_of(best), 1) : HUGE_VAL;
    return *misfit <= limit && p->local <= WILD ? best : NULL;
}

/* ---- noise and covariance ---- */

/* Standard deviation of ln(t/f), residuals beyond three robust ones cut. */
static double noise_of(const cd_perf_curve_points *p, const double *f, double params) {
    double *r = p->work, sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->keep[i] > 0) r[n++] = fabs(log(p->t[i] / f[i]));
    const double cut = 3 * 1.4826 * cd_sort_to_median(r, n);
    for (size_t i = 0; i < n; i++) sum += cut > 0 ? fmin(r[i], cut) * fmin(r[i], cut) : r[i] * r[i];
    return sqrt(sum / fmax((double)n - params, 1));
}

/* From the weighted normal equations of the parameters that are not held at 0, times the noise. */
static void covariance(const cd_perf_curve_points *p, const cd_perf_curve_candidate *c,
                       cd_perf_curve *out) {
    double a[CD_PERF_CURVE_PARAM][CD_PERF_CURVE_PARAM] = {{0}};
    uint32_t of[CD_PERF_CURVE_PARAM], m = 0;
    const uint32_t linear = c->n_param - c->n_break,
                   most = c->form == CD_PERF_CURVE_STAIRS ? linear : c->n_param;
    for (uint32_t i = 0; i < most; i++) /* those held at 0 have no spread */
        if (i >= linear || i == 0 || c->param[i] > 0) of[m++] = i;
    for (size_t k = 0; k < p->n; k++) {
        double g[CD_PERF_CURVE_PARAM];
        const double f = cd_perf_curve_candidate_eval(c, p->x[k]);
        if (p->keep[k] == 0 || !(f > 0)) continue;
        cd_perf_curve_candidate_gradient(c, p->x[k], g);
        for (uint32_t i = 0; i < m; i++)
            for (uint32_t j = 0; j < m; j++) a[i][j] += g[of[i]] * g[of[j]] / (f * f);
    }
    const bool known = cd_perf_curve_invert_matrix(a, m);
    for (uint32_t i = 0; i < c->n_param; i++) out->se[i] = known ? 0 : NAN;
    for (uint32_t i = 0; known && i < m; i++) {
        for (uint32_t j = 0; j < m; j++) out->cov[of[i]][of[j]] = a[i][j] * out->noise * out->noise;
        out->se[of[i]] = sqrt(a[i][i]) * out->noise;
    }
    if (c->form == CD_PERF_CURVE_STAIRS) out->se[2] = c->break_se[0];
}

/* See perf_curve.h (7). A break that may be at both ends says nothing. */
static cd_perf_curve_turn turn_of(const cd_perf_curve_points *p, const cd_perf_curve_candidate *c,
                                  double tolerance, const cd_perf_curve *fit) {
    const double freedom = (double)p->n_kept - params_of(c),
                 q = cd_perf_curve_student(LEVEL, freedom);
    cd_perf_curve_turn t = {.at = c->n_break ? c->param[c->n_param - c->n_break] : (double)NAN,
                            .low = (double)NAN,
                            .high = (double)NAN,
                            .rough = freedom < LEAST_FREEDOM};
    const double s = t.rough ? hypot(fit->noise, tolerance) : fit->noise;
    if (!c->n_break) return t;
    t.low = t.at - q * c->break_se[0];
    t.high = t.at + q * c->break_se[0];
    if (c->form != CD_PERF_CURVE_STAIRS)
        perf_curve_break_range(p, c, q * q * s * s, &t.low, &t.high);
    if (t.low <= p->x[0] && t.high >= p->x[p->n - 1]) t.low = t.high = (double)NAN;
    return t;
}

static void take(const cd_perf_curve_points *p, const cd_perf_curve_candidate *c, double tolerance,
                 cd_perf_curve *out) {
    double *f = p->work + p->n;
    out->form = c->form;
    out->n_param = c->n_param;
    out->n_break = c->n_break;
    for (uint32_t i = 0; i < c->n_param; i++) out->param[i] = c->param[i];
    for (size_t i = 0; i < p->n; i++) f[i] = fmax(cd_perf_curve_candidate_eval(c, p->x[i]), 1e-300);
    out->noise = fmax(noise_of(p, f, params_of(c)), 1e-6);
    covariance(p, c, out);
    out->turn = turn_of(p, c, tolerance, out);
}

/* ---- where no form fits ---- */

/* Residuals of the blocks; the blocks cost as many degrees as there are jumps between them. */
static double table_misfit(const cd_perf_curve_points *p, const double *fit) {
    double sum = 0;
    for (size_t i = 0; i < p->n; i++) {
        const double r = fmin(fabs(log(p->t[i] / fit[i])) / p->s, CD_PERF_CURVE_CAP);
        sum += p->keep[i] * r * r;
    }
    return sum / (double)p->n_kept;
}

/* The table's knots; how far the points are from it. */
static double put_table(const cd_perf_curve_points *p, cd_perf_curve *out) {
    double *fit = p->work + 4 * p->n;
    out->n_knot = cd_perf_curve_fit_table(p, fit, out->knot_x, out->knot_t, &out->beyond);
    const double misfit = table_misfit(p, fit);
    out->noise = fmax(noise_of(p, fit, 1), fmax(p->local, 1e-6));
    return misfit;
}

/* Knots where the points are off the law together, or where a finer law says more than the one with
 * a name. `law` is that one. */
static void follow(const cd_perf_curve_points *p, const cd_perf_curve_candidate *law,
                   const cd_perf_curve_candidate *fine, cd_perf_curve *out) {
    if (law->form == CD_PERF_CURVE_STAIRS) return;
    const double beyond =
        law->form == CD_PERF_CURVE_CONSTANT ? 0 : law->param[law->n_param - law->n_break - 1];
    if (fine) {
        double noise = out->noise;
        const cd_perf_curve_candidate *c = fine->form == CD_PERF_CURVE_STAIRS ? law : fine;
        out->n_knot = cd_perf_curve_fit_residual(p, c, c != law, out->knot_x, out->knot_t,
                                                 &out->follow, &noise);
        if (out->n_knot) out->noise = fmax(noise, 1e-6);
    } else {
        (void)put_table(p, out);
        out->follow = 1;
    }
    out->beyond = beyond;
}

/* First the named law, then, at a finer tolerance, the law or table that predicts times. */
static void choose(cd_perf_curve_points *p, const cd_perf_curve_options *o, double tolerance,
                   cd_perf_curve *out) {
    const uint32_t all = (1U << CD_PERF_CURVE_TABLE) - 1,
                   forms = o && o->forms ? o->forms & all : all;
    const double limit = 1 + 10 / sqrt((double)p->n_kept);
    candidates k;
    cd_perf_curve_candidate law;
    double fine_misfit;
    for (int i = 0; i < CD_N_PERF_CURVE; i++) out->score[i] = HUGE_VAL;
    fit_forms(p, forms, &k);
    p->s = hypot(p->local, tolerance);
    const cd_perf_curve_candidate *best = best_of(p, &k, limit, out->score, &out->misfit);
    if (best) {
        law = *best;
        take(p, &law, tolerance, out);
        p->s = hypot(p->local, FINE * tolerance);
        const cd_perf_curve_candidate *fine = best_of(p, &k, limit, NULL, &fine_misfit);
        follow(p, &law,
               fine && fine->form == law.form && fine->n_break == law.n_break ? &law : fine, out);
    } else {
        out->misfit = put_table(p, out);
        out->score[CD_PERF_CURVE_TABLE] = out->misfit;
        out->form = out->misfit <= limit && p->local <= WILD ? CD_PERF_CURVE_TABLE
                                                             : CD_PERF_CURVE_IRREGULAR;
    }
}

/* Two blocks hold all arrays: scratch, which is freed, and knots, which the curve keeps. */
cdmpp_status cd_perf_curve_fit(const double *x, const double *t, size_t n,
                               const cd_perf_curve_options *o, cd_perf_curve *out, cdmpp_err *err) {
    memset(out, 0, sizeof *out);
    CD_TRY(check(x, t, n, err));
    double *room = cd_mem_zalloc(10 * n + 16, sizeof *room),
           *knots = cd_mem_zalloc(2 * n + 6, sizeof *knots);
    if (!room || !knots) {
        cd_mem_free(room);
        cd_mem_free(knots);
        return CD_FAIL(err, ENOMEM, "%zu points", n);
    }
    const double tolerance = o && o->tolerance > 0 ? o->tolerance : TOLERANCE;
    cd_perf_curve_points p = {
        .n = n, .x = x, .t = t, .w = room, .keep = room + n, .work = room + 2 * n};
    cd_perf_curve_prepare(&p, tolerance);
    *out = (cd_perf_curve){.n = (uint32_t)n,
                           .n_left_out = (uint32_t)(n - p.n_kept),
                           .warmup = p.warmup,
                           .x_min = x[0],
                           .x_max = x[n - 1],
                           .turn = {(double)NAN, (double)NAN, (double)NAN, false},
                           .local_noise = p.local,
                           .r2_affine = affine_r2(x, t, n),
                           .knot_x = knots,
                           .knot_t = knots + n + 3};
    choose(&p, o, tolerance, out);
    cd_mem_free(room);
    return CDMPP_OK;
}

void cd_perf_curve_free(cd_perf_curve *p) {
    cd_mem_free(p->knot_x);
    *p = (cd_perf_curve){0};
}

const char *cd_perf_curve_form_name(cd_perf_curve_form f) {
    static const char *const name[CD_N_PERF_CURVE] = {"constant", "affine", "hinge",    "slopes",
                                                      "stairs",   "table",  "irregular"};
    return name[f];
}
