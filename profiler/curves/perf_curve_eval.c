/* Evaluates fitted laws: the time at a size, its interval, and the inverse. The slopes of a law lie
 * between its breaks in order, so that one loop serves hinge, affine and slopes. */
#include <math.h>
#include <string.h>

#include "profiler/curves/curves_internal.h"

/* Outliers and noise of a curve, before any form is tried: a form that is wrong would call good
 * points outliers. */

static size_t next_kept(const cd_perf_curve_points *p, size_t i) {
    while (i < p->n && p->keep[i] == 0) i++;
    return i;
}

/* 1.4826 times the median distance of points from the line between their neighbours, as a share of
 * that line and corrected for the noise of the neighbours. */
static double local_noise(const cd_perf_curve_points *p) {
    double *e = p->work;
    size_t n = 0, a = next_kept(p, 0), b = next_kept(p, a + 1);
    for (size_t c = next_kept(p, b + 1); c < p->n; a = b, b = c, c = next_kept(p, c + 1)) {
        const double u = (p->x[b] - p->x[a]) / (p->x[c] - p->x[a]);
        const double line = (1 - u) * p->t[a] + u * p->t[c];
        e[n++] = fabs(p->t[b] - line) / line / sqrt(1 + u * u + (1 - u) * (1 - u));
    }
    return n < 3 ? 0 : 1.4826 * cd_sort_to_median(e, n);
}

/* Median of ln t over the points round i: of five, three in short curves and next to an end. */
static double smooth_at(const cd_perf_curve_points *p, size_t i) {
    const size_t room = i < p->n - 1 - i ? i : p->n - 1 - i, most = p->n >= 20 ? 2 : 1,
                 half = room < most ? room : most;
    double v[5];
    for (size_t k = 0; k <= 2 * half; k++) v[k] = log(p->t[i - half + k]);
    return cd_sort_to_median(v, 2 * half + 1);
}

/* The first point is far above those behind it, or the last one far below those before: nothing
 * that rises does that. */
static void check_ends(cd_perf_curve_points *p, double limit) {
    const size_t n = p->n;
    if (n < 5) return;
    double v[3] = {p->t[1], p->t[2], p->t[3]}, u[3] = {p->t[n - 2], p->t[n - 3], p->t[n - 4]};
    p->warmup = log(p->t[0] / cd_sort_to_median(v, 3)) > limit;
    if (p->warmup) p->keep[0] = 0;
    if (log(cd_sort_to_median(u, 3) / p->t[n - 1]) > limit) p->keep[n - 1] = 0;
}

/* A point is left out if it is far from the median of its neighbours; if too many are, they are the
 * curve and none is left out. */
void cd_perf_curve_prepare(cd_perf_curve_points *p, double tolerance) {
    size_t out = 0;
    for (size_t i = 0; i < p->n; i++) p->keep[i] = 1;
    p->local = local_noise(p);
    const double limit = CD_PERF_CURVE_CAP * sqrt(p->local * p->local + tolerance * tolerance);
    for (size_t i = 0; i < p->n; i++)
        if (p->n >= 5 && fabs(log(p->t[i]) - smooth_at(p, i)) > limit) p->keep[i] = 0;
    check_ends(p, limit);
    for (size_t i = 0; i < p->n; i++) out += p->keep[i] == 0;
    if (5 * out > p->n + 5) { /* so many are not outliers but the curve */
        for (size_t i = 0; i < p->n; i++) p->keep[i] = 1;
        p->warmup = false;
        out = 0;
    }
    if (out) p->local = local_noise(p);
    p->n_kept = p->n - out;
    p->s = sqrt(p->local * p->local + tolerance * tolerance);
    for (size_t i = 0; i < p->n; i++) p->w[i] = p->keep[i] * exp(-2 * smooth_at(p, i));
}

/* perf_curve_table -- the rising curve next to the points (isotonic regression): pool adjacent
 * violators on ln t, then lines between the blocks. */

typedef struct {
    double sum, first, last, n; /* of ln t; sizes of its first and last point; points */
} block;

/* A block of this many points is a level of its own, with both its ends: what follows it is a jump.
 * Shorter ones are a rise that noise broke up, and the line goes through their middles. */
enum { LEVEL = 6 };

static uint32_t knots_of(const block *b, double *kx, double *kt) {
    const double t = exp(b->sum / b->n);
    kt[0] = kt[1] = t;
    kx[0] = b->n < LEVEL ? 0.5 * (b->first + b->last) : b->first;
    kx[1] = b->last;
    return b->n < LEVEL ? 1 : 2;
}

uint32_t cd_perf_curve_fit_table(const cd_perf_curve_points *p, double *fit, double *kx, double *kt,
                                 double *beyond) {
    block *b = (block *)(void *)p->work; /* (n), 3 n doubles */
    uint32_t n = 0, knots = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (p->keep[i] == 0) continue;
        b[n++] = (block){log(p->t[i]), p->x[i], p->x[i], 1};
        for (; n > 1 && b[n - 2].sum / b[n - 2].n >= b[n - 1].sum / b[n - 1].n; n--) {
            b[n - 2].sum += b[n - 1].sum;
            b[n - 2].last = b[n - 1].last;
            b[n - 2].n += b[n - 1].n;
        }
    }
    size_t i = 0;
    for (uint32_t k = 0; k < n; k++) {
        knots += knots_of(&b[k], kx + knots, kt + knots);
        for (double left = b[k].n; i < p->n && (left > 0 || p->keep[i] == 0); i++) {
            fit[i] = kt[knots - 1];
            left -= p->keep[i];
        }
    }
    /* Beyond the last: the slope over the last third of the sizes, not of the last two points,
     * which noise would tilt. */
    uint32_t from = knots - 1;
    while (from > 0 && kx[from] > kx[knots - 1] - (p->x[p->n - 1] - p->x[0]) / 3) from--;
    *beyond = from < knots - 1 ? (kt[knots - 1] - kt[from]) / (kx[knots - 1] - kx[from]) : 0;
    return knots;
}

/* The table at x: linear between knots, `beyond` seconds a unit behind the last. */
static double perf_curve_table_eval(const double *kx, const double *kt, uint32_t n, double beyond,
                                    double x) {
    uint32_t low = 0, high = n - 1;
    if (x >= kx[n - 1]) return kt[n - 1] + beyond * (x - kx[n - 1]);
    /* by the first line, but in no less than the size's share of the first time */
    if (x <= kx[0]) {
        const double line = n > 1 ? kt[0] - (kt[1] - kt[0]) / (kx[1] - kx[0]) * (kx[0] - x) : kt[0];
        return fmax(line, kt[0] * x / kx[0]);
    }
    while (high - low > 1) {
        const uint32_t m = low + (high - low) / 2;
        if (kx[m] <= x) low = m;
        else high = m;
    }
    return kt[low] + (kt[high] - kt[low]) * (x - kx[low]) / (kx[high] - kx[low]);
}

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
    if (p->n_knot) return perf_curve_table_eval(p->knot_x, p->knot_t, p->n_knot, p->beyond, x);
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

/* perf_curve_residual -- the residuals of a law of lines that neighbouring points share.
 *
 * GPU curves ripple by a few percent: no form explains the ripple, but the next point has it too.
 * The share of its neighbours' residual that a point has is found by leaving out each point in
 * turn; that share of the residuals is kept. */

/* Residuals of kept points to r, their sizes to x; how many. */
static size_t residuals(const cd_perf_curve_points *p, const cd_perf_curve_candidate *c, double *x,
                        double *r) {
    const double cut = CD_PERF_CURVE_CAP * p->s;
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const double f = cd_perf_curve_candidate_eval(c, p->x[i]);
        if (p->keep[i] == 0 || !(f > 0)) continue;
        x[n] = p->x[i];
        r[n++] = fmin(fmax(log(p->t[i] / f), -cut), cut);
    }
    return n;
}

/* The residual that the neighbours predict at point i; at an end that of the one neighbour. */
static double from_neighbours(const double *x, const double *r, size_t n, size_t i) {
    if (i == 0) return r[1];
    if (i == n - 1) return r[n - 2];
    const double u = (x[i] - x[i - 1]) / (x[i + 1] - x[i - 1]);
    return (1 - u) * r[i - 1] + u * r[i + 1];
}

/* Regression of residuals on what their neighbours predict, 0 .. 1; *noise: standard deviation of
 * what is left. The root, since sizes that will be asked for lie nearer to their neighbours than
 * points do: half as far, and correlation falls by e to the distance. */
static double share_of(const double *x, const double *r, size_t n, double *noise) {
    double both = 0, said = 0, left = 0;
    for (size_t i = 0; i < n; i++) {
        const double g = from_neighbours(x, r, n, i);
        both += r[i] * g;
        said += g * g;
    }
    const double share = said > 0 ? sqrt(fmin(fmax(both / said, 0), 1)) : 0;
    for (size_t i = 0; i < n; i++) {
        const double e = r[i] - share * from_neighbours(x, r, n, i);
        left += e * e;
    }
    *noise = sqrt(left / (double)n);
    return share;
}

static double between(const double *x, const double *r, size_t n, double at) {
    size_t i = 0;
    if (at <= x[0]) return r[0];
    if (at >= x[n - 1]) return r[n - 1];
    while (x[i + 1] < at) i++;
    return r[i] + (r[i + 1] - r[i]) * (at - x[i]) / (x[i + 1] - x[i]);
}

/* Knots that fall are put to the mean of what came before: pool adjacent violators on times as they
 * are. */
static void level(double *kt, uint32_t n, double *mean, double *count) {
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++) {
        mean[m] = kt[i];
        count[m++] = 1;
        for (; m > 1 && mean[m - 2] > mean[m - 1]; m--) {
            mean[m - 2] = (mean[m - 2] * count[m - 2] + mean[m - 1] * count[m - 1]) /
                          (count[m - 2] + count[m - 1]);
            count[m - 2] += count[m - 1];
        }
    }
    for (uint32_t b = 0, i = 0; b < m; b++)
        for (double k = 0; k < count[b]; k++) kt[i++] = mean[b];
}

uint32_t cd_perf_curve_fit_residual(const cd_perf_curve_points *p, const cd_perf_curve_candidate *c,
                                    bool always, double *kx, double *kt, double *share,
                                    double *noise) {
    double *x = p->work, *r = p->work + p->n;
    const size_t n = residuals(p, c, x, r);
    const uint32_t first = c->n_param - c->n_break;
    uint32_t m = 0, b = 0;
    *share = n < 5 ? 0 : share_of(x, r, n, noise);
    /* below that white noise gets as far one time in twenty */
    if (*share < 2 / sqrt((double)(n + 25))) *share = 0;
    if (n < 5 || (*share == 0 && !always)) return 0;
    for (size_t i = 0; i < n; i++) {
        for (; b < c->n_break && c->param[first + b] < x[i]; b++)
            if (c->param[first + b] > x[0] && c->param[first + b] > (m ? kx[m - 1] : 0)) {
                kx[m] = c->param[first + b];
                kt[m] =
                    cd_perf_curve_candidate_eval(c, kx[m]) * exp(*share * between(x, r, n, kx[m]));
                m++;
            }
        if (m && x[i] <= kx[m - 1]) continue;
        kx[m] = x[i];
        kt[m] = cd_perf_curve_candidate_eval(c, x[i]) * exp(*share * r[i]);
        m++;
    }
    level(kt, m, p->work + 2 * p->n, p->work + 3 * p->n + 4);
    return m;
}

/* perf_curve_stairs -- fits T = a + c ceil(x / w). The loss jumps with w, so every width is tried,
 * in steps so fine that no edge moves by more than half a point. */

enum { LEAST_POINTS = 12, MAX_WIDTHS = 4000 };

static double steps_of(double x, double w) { return ceil(x / w * (1 - 1e-12)); }

/* Weighted a and c, neither below 0; the squares left. */
static double solve(const cd_perf_curve_points *p, const double *weight, double w, double *a,
                    double *c) {
    double s0 = 0, s1 = 0, s2 = 0, t0 = 0, t1 = 0, tt = 0;
    for (size_t i = 0; i < p->n; i++) {
        const double k = steps_of(p->x[i], w), v = weight[i];
        s0 += v, s1 += v * k, s2 += v * k * k;
        t0 += v * p->t[i], t1 += v * k * p->t[i], tt += v * p->t[i] * p->t[i];
    }
    const double det = s0 * s2 - s1 * s1;
    *c = det > 1e-12 * s0 * s2 ? (s0 * t1 - s1 * t0) / det : 0;
    *a = (t0 - *c * s1) / s0;
    if (*a < 0) *a = 0, *c = t1 / s2;
    if (*c < 0) *c = 0, *a = t0 / s0;
    return fmax(tt - 2 * (*a * t0 + *c * t1) + *a * *a * s0 + 2 * *a * *c * s1 + *c * *c * s2, 0);
}

/* Half a point at the far end is w^2 / x_max of the width. */
static double next_width(double w, double gap, double x_max) {
    return w + fmax(0.5 * gap * w / x_max, 1e-4 * w);
}

static double scan(const cd_perf_curve_points *p, const double *weight, double low, double high,
                   double fine, cd_perf_curve_candidate *out) {
    const double x_max = p->x[p->n - 1], gap = (x_max - p->x[0]) / (double)(p->n - 1) * fine;
    double best = HUGE_VAL, a, c;
    int tried = 0;
    for (double w = low; w <= high && tried < MAX_WIDTHS; w = next_width(w, gap, x_max), tried++) {
        const double left = solve(p, weight, w, &a, &c);
        if (!(left < best)) continue;
        best = left;
        out->param[0] = a, out->param[1] = c, out->param[2] = w;
    }
    return best;
}

/* How far w can go before the squares rise by that of one standard error: widths between that and
 * the next edge that moves cannot be distinguished. The best width is put in the middle. */
static void centre(const cd_perf_curve_points *p, const double *weight, double best,
                   cd_perf_curve_candidate *out) {
    const double x_max = p->x[p->n - 1], unit = out->param[2] * out->param[2] / x_max * 0.02;
    double side[2], a, c;
    for (int d = 0; d < 2; d++) {
        side[d] = out->param[2];
        for (int i = 1; i <= 400; i++) {
            const double w = out->param[2] + (d ? 1 : -1) * i * unit;
            if (w <= 0 || solve(p, weight, w, &a, &c) > best + p->s * p->s) break;
            side[d] = w;
        }
    }
    const double middle = 0.5 * (side[0] + side[1]);
    if (solve(p, weight, middle, &a, &c) <= best * 1.0001 + 1e-30) out->param[2] = middle;
    out->break_se[0] = (side[1] - side[0]) / sqrt(12) + unit;
}

/* Three rounds: all widths coarsely, then finely around the best, each time with Huber's weights of
 * the law before. */
bool cd_perf_curve_fit_stairs(const cd_perf_curve_points *p, cd_perf_curve_candidate *out) {
    double *weight = p->work;
    *out = (cd_perf_curve_candidate){
        .form = CD_PERF_CURVE_STAIRS, .n_param = 3, .n_break = 1, .loss = HUGE_VAL};
    if (p->n < LEAST_POINTS) return false;
    const double x_max = p->x[p->n - 1], gap = (x_max - p->x[0]) / (double)(p->n - 1);
    memcpy(weight, p->w, p->n * sizeof *weight);
    double low = 3 * gap, high = x_max / 1.5, best = HUGE_VAL, fine = 1;
    if (low > high) return false;
    for (int round = 0; round < 3; round++) {
        best = scan(p, weight, low, high, fine, out);
        low = out->param[2] * (1 - 1.5 * gap / x_max);
        high = out->param[2] * (1 + 1.5 * gap / x_max);
        fine = 0.1;
        for (size_t i = 0; i < p->n; i++) {
            const double f = cd_perf_curve_candidate_eval(out, p->x[i]),
                         r = fabs(log(p->t[i] / f)) / p->s;
            weight[i] = p->keep[i] == 0 ? 0 : (r > 1.345 ? 1.345 / r : 1) / (f * f);
        }
    }
    double a, c;
    best = solve(p, weight, out->param[2], &a, &c);
    centre(p, weight, best, out);
    (void)solve(p, weight, out->param[2], &out->param[0], &out->param[1]);
    out->loss = cd_perf_curve_candidate_loss(out, p);
    return out->param[1] > 0;
}
