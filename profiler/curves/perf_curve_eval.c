/* Evaluates fitted laws: the time at a size, its interval, and the inverse. The slopes of a law lie
 * between its breaks in order, so that one loop serves hinge, affine and slopes. */
#include <math.h>

#include "profiler/curves/curves_internal.h"

double cd_perf_curve_candidate_eval(const cd_perf_curve_candidate *c, double x) {
    const uint32_t first = c->n_param - c->n_break; /* parameters before the breaks */
    const double *p = c->param;
    if (c->form == CD_PERF_CURVE_STAIRS) return p[0] + p[1] * ceil(x / p[2] * (1 - 1e-12));
    double t = p[0], from = 0;
    uint32_t m = 1;
    if (c->form == CD_PERF_CURVE_HINGE) from = p[first];
    for (uint32_t k = c->form == CD_PERF_CURVE_HINGE; m < first; m++, k++) {
        const double to = k < c->n_break ? p[first + k] : HUGE_VAL;
        if (x > from) t += p[m] * (fmin(x, to) - from);
        from = to;
    }
    return t;
}

void cd_perf_curve_candidate_gradient(const cd_perf_curve_candidate *c, double x, double *g) {
    const uint32_t first = c->n_param - c->n_break;
    const bool hinge = c->form == CD_PERF_CURVE_HINGE;
    for (uint32_t i = 0; i < CD_PERF_CURVE_PARAM; i++) g[i] = 0;
    g[0] = 1;
    if (c->form == CD_PERF_CURVE_STAIRS) {
        g[1] = ceil(x / c->param[2] * (1 - 1e-12));
        return;
    }
    double from = hinge ? c->param[first] : 0;
    for (uint32_t m = 1, k = hinge; m < first; m++, k++) {
        const double to = k < c->n_break ? c->param[first + k] : HUGE_VAL;
        g[m] = x > from ? fmin(x, to) - from : 0;
        from = to;
    }
    /* moving a break out keeps the slope before it longer */
    for (uint32_t k = 0; k < c->n_break; k++) {
        const uint32_t after = hinge ? 1 + k : 2 + k;
        const double before = hinge && k == 0 ? 0 : c->param[after - 1];
        g[first + k] = x > c->param[first + k] ? before - c->param[after] : 0;
    }
}

double cd_perf_curve_candidate_loss(const cd_perf_curve_candidate *c,
                                    const cd_perf_curve_points *p) {
    double sum = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (p->keep[i] == 0) continue;
        const double f = cd_perf_curve_candidate_eval(c, p->x[i]),
                     r = f > 0 ? fabs(log(p->t[i] / f)) / p->s : HUGE_VAL;
        sum += fmin(r, CD_PERF_CURVE_CAP) * fmin(r, CD_PERF_CURVE_CAP);
    }
    return sum;
}

static cd_perf_curve_candidate law_of(const cd_perf_curve *p) {
    cd_perf_curve_candidate c = {.form = p->form, .n_param = p->n_param, .n_break = p->n_break};
    for (uint32_t i = 0; i < CD_PERF_CURVE_PARAM; i++) c.param[i] = p->param[i];
    return c;
}

double cd_perf_curve_eval_law(const cd_perf_curve *p, double x) {
    if (!p->n_param) return cd_perf_curve_eval(p, x);
    const cd_perf_curve_candidate c = law_of(p);
    return cd_perf_curve_candidate_eval(&c, fmax(x, 0));
}

double cd_perf_curve_eval(const cd_perf_curve *p, double x) {
    x = fmax(x, 0);
    if (p->n_knot && p->n_param && x < p->knot_x[0]) /* below the points as the law says */
        return p->knot_t[0] * cd_perf_curve_eval_law(p, x) /
               cd_perf_curve_eval_law(p, p->knot_x[0]);
    if (p->n_knot) return cd_perf_curve_table_eval(p->knot_x, p->knot_t, p->n_knot, p->beyond, x);
    return cd_perf_curve_eval_law(p, x);
}

/* The normal one by Newton on erfc, then Cornish and Fisher's first terms. */
double cd_perf_curve_student(double level, double freedom) {
    double z = 1;
    for (int i = 0; i < 40; i++)
        z -= (erf(z / sqrt(2)) - level) / (sqrt(2 / 3.141592653589793) * exp(-z * z / 2));
    if (freedom < 1) freedom = 1;
    const double z3 = z * z * z, z5 = z3 * z * z;
    return z + (z3 + z) / (4 * freedom) + (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom);
}

/* Relative variance that the parameters add at x. */
static double parameter_variance(const cd_perf_curve *p, double x, double t) {
    double g[CD_PERF_CURVE_PARAM], v = 0;
    const cd_perf_curve_candidate c = law_of(p);
    /* each table value is that of a few points; outside of them, as far again as the distance */
    if (!p->n_param) {
        const double far = x > p->x_max   ? x - p->x_max
                           : x < p->x_min ? p->x_min - x
                                          : 0,
                     out = p->x_max > p->x_min ? far / (p->x_max - p->x_min) : 0;
        return p->noise * p->noise * 0.5 + 0.25 * out * out;
    }
    cd_perf_curve_candidate_gradient(&c, x, g);
    for (uint32_t i = 0; i < p->n_param; i++)
        for (uint32_t j = 0; j < p->n_param; j++) v += g[i] * p->cov[i][j] * g[j];
    return v / (t * t);
}

void cd_perf_curve_interval(const cd_perf_curve *p, double x, double level, double *low,
                            double *high) {
    const double t = cd_perf_curve_eval(p, x),
                 used = !p->n_param ? fmin(p->n_knot, 0.5 * p->n) : p->n_param;
    const double sd = sqrt(p->noise * p->noise + fmax(parameter_variance(p, x, t), 0));
    const double q =
        cd_perf_curve_student(fmin(fmax(level, 0), 0.9999), p->n - p->n_left_out - used);
    *low = *high = t;
    if (!(t > 0)) return; /* nothing was asked of the device */
    *low = t * exp(-fmin(q * sd, 50));
    *high = t * exp(fmin(q * sd, 50));
}

void cd_perf_curve_turn_put(cd_buf *b, const cd_perf_curve_turn *t) {
    if (!t->rough) cd_buf_putf(b, "at %.4g, ", t->at);
    cd_buf_putf(b, "between %.4g and %.4g", t->low, t->high);
}

cd_perf_curve_class cd_perf_curve_classify(const cd_perf_curve *p) {
    static const cd_perf_curve_class of[CD_N_PERF_CURVE] = {
        CD_PERF_CURVE_FLAT,      CD_PERF_CURVE_LINEAR,    CD_PERF_CURVE_PIECEWISE,
        CD_PERF_CURVE_PIECEWISE, CD_PERF_CURVE_PIECEWISE, CD_PERF_CURVE_PIECEWISE,
        CD_PERF_CURVE_UNCLEAR};
    const bool line = p->form != CD_PERF_CURVE_CONSTANT && p->form != CD_PERF_CURVE_IRREGULAR &&
                      p->r2_affine > 0.98;
    return line ? CD_PERF_CURVE_LINEAR : of[p->form];
}
