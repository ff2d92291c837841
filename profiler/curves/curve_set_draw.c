/* A chart of the first curves: their points, and the law through them at evenly spread sizes of a
 * logarithmic axis. */
#include <math.h>
#include <stdio.h>

#include "base/draw/draw.h"
#include "profiler/curves/curves.h"

enum { FINE = 200 };
static const double US = 1e6;

static void name_number(double v, char *buf, size_t n) { snprintf(buf, n, "%g", v + 0.0); }

/* Ranges of sizes and of microseconds over all points. */
static void ranges(const cd_curve_set *c, size_t n, double *lo, double *hi) {
    lo[0] = lo[1] = HUGE_VAL, hi[0] = hi[1] = 0;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < c->curve[k].n; i++) {
            lo[0] = fmin(lo[0], c->curve[k].x[i]), hi[0] = fmax(hi[0], c->curve[k].x[i]);
            lo[1] = fmin(lo[1], US * c->curve[k].t[i]), hi[1] = fmax(hi[1], US * c->curve[k].t[i]);
        }
    if (!(hi[1] > lo[1])) hi[1] = 2 * lo[1];
}

static void put_curve(cd_chart *chart, const cd_curve_set_curve *c, size_t k, double *us) {
    char cls[32];
    double x[FINE], y[FINE];
    for (size_t i = 0; i < c->n; i++) us[i] = US * c->t[i];
    snprintf(cls, sizeof cls, "d c%zu", k);
    cd_plot_dots(&chart->p, c->x, us, c->n, cls);
    for (int i = 0; i < FINE; i++) {
        x[i] = c->fit.x_min * pow(c->fit.x_max / c->fit.x_min, i / (double)(FINE - 1));
        y[i] = US * cd_perf_curve_eval(&c->fit, x[i]);
    }
    cd_plot_line(&chart->p, x, y, FINE, cd_chart_colour(k));
    cd_chart_legend(chart, k, c->name);
}

cdmpp_status cd_curve_set_draw(const cd_curve_set *c, const char *path, cdmpp_err *err) {
    const size_t n = c->n < CD_CURVE_SET_DRAWN ? c->n : CD_CURVE_SET_DRAWN;
    double lo[2], hi[2];
    size_t most = 1;
    for (size_t k = 0; k < n; k++) most = c->curve[k].n > most ? c->curve[k].n : most;
    double *us = cd_mem_alloc(most * sizeof *us);
    if (!us) return CD_FAIL(err, ENOMEM, "%zu points", most);
    ranges(c, n, lo, hi);
    cd_chart chart = {.p = {.x = {lo[0], hi[0], true}, .y = {lo[1], hi[1], true}}};
    cd_chart_begin(&chart, "Curves", "size", "microseconds", name_number, name_number);
    for (size_t k = 0; k < n; k++) put_curve(&chart, &c->curve[k], k, us);
    cd_mem_free(us);
    return cd_chart_write(&chart, path, err);
}
