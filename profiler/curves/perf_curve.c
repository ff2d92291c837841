/* Fits all forms to a curve and chooses one. The choice is made twice: with the tolerance for the
 * form that gets a name, and with a fifth of it for the times that are predicted, because a user
 * reads the name and the program uses the times. */

#include <math.h>
#include <string.h>

#include "profiler/curves/curves_internal.h"

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
    if (forms >> CD_PERF_CURVE_CONSTANT & 1) cd_perf_curve_fit_constant(p, &k->c[k->n++]);
    if (forms >> CD_PERF_CURVE_AFFINE & 1) cd_perf_curve_fit_affine(p, &k->c[k->n++]);
    if (forms >> CD_PERF_CURVE_HINGE & 1) k->n += cd_perf_curve_fit_lines(p, 1, true, &k->c[k->n]);
    for (uint32_t b = 1; b <= 2; b++)
        if (forms >> CD_PERF_CURVE_SLOPES & 1)
            k->n += cd_perf_curve_fit_lines(p, b, false, &k->c[k->n]);
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
        cd_perf_curve_break_range(p, c, q * q * s * s, &t.low, &t.high);
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
