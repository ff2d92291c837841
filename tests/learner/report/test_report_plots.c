/* Plots of the report, read back: every mark stands where its number belongs on the axes that the
 * contract names. */
#include "check.h"
#include "made_report.h"

#include "learner/report/report_internal.h"

static cdmpp_err err;

/* A plot of the page and its frame in units of the view box. */
typedef struct {
    const char *at, *end;
    double x0, x1, y0, y1; /* left, right, bottom, top */
} plot;

static plot find(const char *html, const char *id, double left, double right, double bottom,
                 double top) {
    char text[64];
    snprintf(text, sizeof text, "<svg id=\"%s\"", id);
    plot p = {.at = strstr(html, text), .x0 = left, .x1 = right, .y0 = bottom, .y1 = top};
    if (!p.at) fail_msg("no %s", id);
    p.end = strstr(p.at, "</svg>");
    return p;
}

/* The path of this class in the plot: its data. */
static const char *path_of(const plot *p, const char *cls) {
    char text[64];
    snprintf(text, sizeof text, "<path class=\"%s\" d=\"", cls);
    const char *s = strstr(p->at, text);
    if (!s || s > p->end) fail_msg("no path of class %s", cls);
    return s + strlen(text);
}

static double place(double v, double lo, double hi, bool logarithmic) {
    const double t = logarithmic ? log(v / lo) / log(hi / lo) : (v - lo) / (hi - lo);
    return fmin(1, fmax(0, t));
}

static int by_value(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* The quantile of n sorted numbers, between neighbours. */
static double quantile(const double *v, size_t n, double q) {
    const double at = q * (double)(n - 1);
    const size_t k = (size_t)at;
    return k + 1 < n ? v[k] + (at - (double)k) * (v[k + 1] - v[k]) : v[k];
}

/* ---- errors by task ---- */
typedef struct {
    double low, middle, high;
} quartiles;

static int by_middle(const void *a, const void *b) {
    return by_value(&((const quartiles *)a)->middle, &((const quartiles *)b)->middle);
}

/* Of the tasks with at least 3 programs, the best first. */
static size_t tasks_of(const cd_report_part *p, size_t n_task, quartiles *out) {
    double *e = calloc(p->n + 1, sizeof *e);
    size_t n = 0;
    for (uint32_t t = 0; t < n_task; t++) {
        size_t m = 0;
        for (size_t i = 0; i < p->n; i++)
            if (p->task[i] == t) e[m++] = fabs(p->predicted_s[i] / p->measured_s[i] - 1);
        if (m < 3) continue;
        qsort(e, m, sizeof *e, by_value);
        out[n++] = (quartiles){quantile(e, m, 0.25), quantile(e, m, 0.5), quantile(e, m, 0.75)};
    }
    qsort(out, n, sizeof *out, by_middle);
    free(e);
    return n;
}

/* The axis has room for the middle half of every task: from the least lower quartile, at most 5 %,
 * to the largest upper one, at least 1. */
static void check_tasks(double wide) {
    made_report m;
    cd_buf b = {0};
    quartiles q[40];
    made_report_new(&m, 3000, 40, 3, 5);
    cd_report_part *p = &m.r.part[CD_SPLIT_PART_TEST];
    for (size_t i = 0; i < p->n; i++)
        ((double *)(uintptr_t)p->predicted_s)[i] =
            p->measured_s[i] * pow(p->predicted_s[i] / p->measured_s[i], wide);
    assert_ok(cd_report_write_html(&b, &m.r, &err));
    const size_t n = tasks_of(p, 40, q);
    assert_true(n > 10);
    double lo = INFINITY, hi = 0;
    for (size_t i = 0; i < n; i++) lo = fmin(lo, q[i].low), hi = fmax(hi, q[i].high);
    lo = fmax(0.9 * fmin(lo, 0.05), 1e-3), hi = fmin(1.1 * fmax(hi, 1), 1e3);
    const plot g = find(b.p, "plot-task", 68, 486, 336, 10);
    const char *span = path_of(&g, "span"),
               *dot = path_of(&g, n > 20 ? "dots s2 full" : "dots s2 large full");
    for (size_t i = 0; i < n; i++) {
        const double x = g.x0 + (g.x1 - g.x0) * (double)(i + 1) / (double)(n + 1);
        double got[3], at[2];
        int used = 0, used_dot = 0;
        assert_int_equal(sscanf(span, "M%lf %lfV%lf%n", &got[0], &got[1], &got[2], &used), 3);
        assert_int_equal(sscanf(dot, "M%lf %lfh0%n", &at[0], &at[1], &used_dot), 2);
        assert_close(got[0], x, 0, 0.051);
        assert_close(at[0], x, 0, 0.051);
        assert_close(got[1], g.y0 + (g.y1 - g.y0) * place(q[i].low, lo, hi, true), 0, 0.051);
        assert_close(got[2], g.y0 + (g.y1 - g.y0) * place(q[i].high, lo, hi, true), 0, 0.051);
        assert_close(at[1], g.y0 + (g.y1 - g.y0) * place(q[i].middle, lo, hi, true), 0, 0.051);
        span += used, dot += used_dot;
    }
    assert_true(*span == '"' && *dot == '"');
    cd_buf_free(&b);
    made_report_free(&m);
}

static void errors_by_task(void **st) {
    static const double wide[] = {1, 4, 0.01, 40};
    (void)st;
    for (size_t k = 0; k < sizeof wide / sizeof *wide; k++) check_tasks(wide[k]);
}

/* ---- every program of a small part is a dot; the diagonal joins the corners ---- */
static void predicted_against_measured(void **st) {
    (void)st;
    made_report m;
    cd_buf b = {0};
    cd_report_figures f;
    made_report_new(&m, 3000, 40, 3, 5);
    assert_ok(cd_report_figures_compute(&f, &m.r, &err));
    assert_ok(cd_report_write_html(&b, &m.r, &err));
    const cd_report_part *p = &m.r.part[CD_SPLIT_PART_TEST];
    const double lo = pow(10, f.log_min), hi = pow(10, f.log_max);
    for (size_t i = 0; i < p->n; i++) assert_true(p->measured_s[i] >= lo && p->measured_s[i] <= hi);
    const plot g = find(b.p, "plot-scatter-test", 74, 608, 516, 10);
    const char *dot = path_of(&g, "dots s2");
    for (size_t i = 0; i < p->n; i++) {
        double x, y;
        int used = 0;
        assert_int_equal(sscanf(dot, "M%lf %lfh0%n", &x, &y, &used), 2);
        assert_close(x, g.x0 + (g.x1 - g.x0) * place(p->measured_s[i], lo, hi, true), 0, 0.051);
        assert_close(y, g.y0 + (g.y1 - g.y0) * place(p->predicted_s[i], lo, hi, true), 0, 0.051);
        dot += used;
    }
    assert_int_equal(*dot, '"');
    double c[4];
    assert_int_equal(sscanf(path_of(&g, "diag"), "M%lf %lfL%lf %lf", &c[0], &c[1], &c[2], &c[3]),
                     4);
    assert_true(c[0] == g.x0 && c[1] == g.y0 && c[2] == g.x1 && c[3] == g.y1);
    double t[12]; /* the band of 20 %: both edges */
    assert_int_equal(sscanf(path_of(&g, "tol"), "M%lf %lfL%lf %lfL%lf %lfL%lf %lfL%lf %lfL%lf %lfZ",
                            t, t + 1, t + 2, t + 3, t + 4, t + 5, t + 6, t + 7, t + 8, t + 9,
                            t + 10, t + 11),
                     12);
    const double up = log(1.2) / log(hi / lo) * (g.x1 - g.x0),
                 down = -log(0.8) / log(hi / lo) * (g.x1 - g.x0),
                 high = (g.y0 - g.y1) / (g.x1 - g.x0);
    const double want[12] = {g.x0, g.y0, g.x0, g.y0 - up * high,   g.x1 - up,   g.y1,
                             g.x1, g.y1, g.x1, g.y1 + down * high, g.x0 + down, g.y0};
    for (int k = 0; k < 12; k++) assert_close(t[k], want[k], 0, 0.051);
    cd_report_figures_free(&f);
    cd_buf_free(&b);
    made_report_free(&m);
}

/* ---- shares of programs up to an error ---- */
static void shares_of_programs(void **st) {
    (void)st;
    made_report m;
    cd_buf b = {0};
    made_report_new(&m, 3000, 40, 3, 5);
    assert_ok(cd_report_write_html(&b, &m.r, &err));
    const plot g = find(b.p, "plot-cdf", 68, 486, 336, 10);
    for (int k = 0; k < CD_SPLIT_N_PART; k++) {
        const cd_report_part *p = &m.r.part[k];
        const char cls[] = {'l', ' ', 's', (char)('0' + k), '\0'}, *s = path_of(&g, cls);
        double before = -1, x, y;
        int used;
        for (unsigned i = 0; *s != '"'; i++, s += used) {
            size_t in = 0;
            assert_int_equal(sscanf(s, i ? " %lf %lf%n" : "M%lf %lf%n", &x, &y, &used), 2);
            assert_true(x > before);
            before = x;
            /* the place is rounded */
            const double low = 1e-3 * pow(1e4, (x - 0.051 - g.x0) / (g.x1 - g.x0)),
                         high = 1e-3 * pow(1e4, (x + 0.051 - g.x0) / (g.x1 - g.x0));
            size_t least = 0;
            for (size_t j = 0; j < p->n; j++) {
                const double e = fabs(p->predicted_s[j] / p->measured_s[j] - 1);
                least += e <= low;
                in += e <= high;
            }
            assert_true(y <= g.y0 + (g.y1 - g.y0) * (double)least / (double)p->n + 0.051);
            assert_true(y >= g.y0 + (g.y1 - g.y0) * (double)in / (double)p->n - 0.051);
        }
        assert_close(before, g.x1, 0, 0.051); /* up to ten times */
    }
    cd_buf_free(&b);
    made_report_free(&m);
}

/* ---- predicted over measured by decade ---- */
static void ratios_by_decade(void **st) {
    (void)st;
    made_report m;
    cd_buf b = {0};
    cd_report_figures f;
    made_report_new(&m, 3000, 40, 3, 5);
    assert_ok(cd_report_figures_compute(&f, &m.r, &err));
    assert_ok(cd_report_write_html(&b, &m.r, &err));
    const cd_report_fig_groups *d = &f.part[CD_SPLIT_PART_TEST].decade;
    double lo = 0.5, hi = 2;
    for (size_t i = 0; i < d->n; i++)
        lo = fmin(lo, d->v[i].d.ratio[0]), hi = fmax(hi, d->v[i].d.ratio[4]);
    lo *= 0.95, hi *= 1.05;
    const plot g = find(b.p, "plot-decade", 68, 486, 336, 28);
    const char *s = g.at;
    for (size_t i = 0; i < d->n; i++) {
        double v[13], y[5];
        s = strstr(s, "<g class=\"b\">");
        assert_non_null(s);
        assert_int_equal(
            sscanf(s,
                   "<g class=\"b\"><path class=\"whisker\" d=\"M%lf %lfV%lfM%lf %lfV%lf\"/><rect "
                   "class=\"box\" x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"/>"
                   "<path class=\"med\" d=\"M%lf %lfH%lf\"/>",
                   v, v + 1, v + 2, v + 3, v + 4, v + 5, v + 6, v + 7, v + 8, v + 9, v + 10, v + 11,
                   v + 12),
            13);
        for (int q = 0; q < 5; q++)
            y[q] = g.y0 + (g.y1 - g.y0) * place(d->v[i].d.ratio[q], lo, hi, true);
        const double x = g.x0 + (g.x1 - g.x0) * ((double)i + 0.5) / (double)d->n, half = v[8] / 2;
        const double want[] = {x,        y[0],     y[1],    x,    y[3],
                               y[4],     x - half, y[3],    v[8], fmax(y[1] - y[3], 0.5),
                               x - half, y[2],     x + half};
        for (int k = 0; k < 13; k++) assert_close(v[k], want[k], 0, 0.11);
        assert_true(half > 5 && half <= 23);
        s++;
    }
    cd_report_figures_free(&f);
    cd_buf_free(&b);
    made_report_free(&m);
}

/* ---- curves ---- */
/* The axes reach over all curves, the first and the last; a flat one has room around it; none
 * leaves the frame. */
static void points_within(const plot *p, const char *cls, const double *step, const double *loss,
                          size_t n, double lo, double hi, bool logarithmic) {
    const char *s = path_of(p, cls);
    for (size_t i = 0; i < n; i++) {
        char *end;
        const double x = strtod(s + 1, &end), y = strtod(end + 1, &end);
        assert_close(x, p->x0 + (p->x1 - p->x0) * place(step[i], 1, 3, false), 0, 0.11);
        assert_close(y, p->y0 + (p->y1 - p->y0) * place(loss[i], lo, hi, logarithmic), 0, 0.11);
        s = end;
    }
}

TEST(curves_of_members) {
    static const double step[] = {1, 2, 3};
    static const double two[] = {2, 3};
    static const double low[] = {-4, -3, -2};
    static const double high[] = {5, 6};
    static const double flat[] = {-1, -1, -1};
    made_report m;
    made_report_new(&m, 300, 10, 2, 2);
    for (int one = 0; one < 2; one++) {
        const cd_report_curve c[] = {{"a", 3, step, one ? flat : low, one ? flat : low},
                                     {"b", 2, two, high, high}};
        const double lo = one ? -2 : -4.5, hi = one ? 0 : 6.5;
        cd_buf b = {0};
        m.r.curve = c, m.r.n_curve = one ? 1 : 2;
        assert_ok(cd_report_write_html(&b, &m.r, &err));
        const plot g = find(b.p, "plot-curves", 68, 486, 336, 10);
        points_within(&g, "c0", step, one ? flat : low, 3, lo, hi, false);
        if (!one) points_within(&g, "c1", two, high, 2, lo, hi, false);
        cd_buf_free(&b);
    }
    made_report_free(&m);
}

TESTS(NULL, NULL, curves_of_members, errors_by_task, predicted_against_measured, shares_of_programs,
      ratios_by_decade)
