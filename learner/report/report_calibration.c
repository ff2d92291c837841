/* How sure: coverage of intervals, error by predicted uncertainty. */
#include <math.h>
#include <stdio.h>

#include "learner/report/report_internal.h"

static void coverage_ticks(const cd_plot *p) {
    for (int i = 0; i <= 5; i++) {
        char label[32];
        cd_report_text_share(0.2 * i, label, sizeof label);
        cd_plot_tick_x(p, 0.2 * i, label);
        cd_plot_tick_y(p, 0.2 * i, label);
    }
}

/* All parts in one plot: a gap between train and test shows overconfidence on new tasks. */
static void coverage(const cd_report_page *pg) {
    const cd_axis a = {0, 1, false};
    const cd_plot p = {pg->out, 500, 400, 68, 14, 10, 44, a, a};
    double level[CD_REPORT_FIG_N_LEVEL];
    for (int i = 0; i < CD_REPORT_FIG_N_LEVEL; i++) level[i] = cd_report_fig_level(i);
    cd_buf_puts(pg->out, "<figure><figcaption><h3>Coverage</h3>How often the measurement lies in "
                         "an interval of a given confidence. On the diagonal: "
                         "as often as promised; below: too sure of itself. Ring: the 90&#8239;% "
                         "interval as given.<div class=\"keys\">");
    for (int k = CD_SPLIT_N_PART - 1; k >= 0; k--)
        if (pg->f->part[k].has_sigma) cd_report_legend_part(pg, (cd_split_part)k);
    cd_buf_puts(pg->out, "</div></figcaption>");
    cd_plot_begin(&p, "plot-coverage", "Observed against nominal coverage",
                  "One line for each part.");
    coverage_ticks(&p);
    cd_plot_segment(&p, 0, 0, 1, 1, "diag");
    for (int k = 0; k < CD_SPLIT_N_PART; k++) {
        const cd_report_fig_part *f = &pg->f->part[k];
        const char cls[] = {'l', ' ', 's', (char)('0' + k), '\0'};
        if (f->has_sigma) cd_plot_line(&p, level, f->cover, CD_REPORT_FIG_N_LEVEL, cls);
    }
    const cd_report_fig_part *f = &pg->f->part[pg->f->shown];
    if (f->has_interval) cd_plot_mark(&p, CD_REPORT_LEVEL, f->interval_cover, 5, "hollow");
    cd_plot_frame(&p, "nominal", "observed");
    cd_plot_end(&p);
    cd_buf_puts(pg->out, "</figure>\n");
}

/* Median of |error| when log(predicted/measured) is normal with deviation sigma. */
static double expected_median(double sigma) { return expm1(0.674489750196082 * sigma); }

static cd_axis unsure_axis(const cd_report_fig_groups *g) {
    double lo = INFINITY, hi = 0;
    for (size_t i = 0; i < g->n; i++) {
        const double e = expected_median(g->v[i].sigma);
        lo = fmin(lo, fmin(g->v[i].d.ape[0], e > 0 ? e : 1));
        hi = fmax(hi, fmax(g->v[i].d.ape[CD_REPORT_FIG_N_Q - 1], e));
    }
    return (cd_axis){fmax(lo * 0.9, 1e-4), fmin(fmax(hi * 1.1, 0.1), 1e3), true};
}

/* The least certain tenth beside the rest, two ways to say error: one row each. */
static void tenth(const cd_report_page *pg, const cd_uncertainty *u) {
    cd_buf *out = pg->out;
    if (isnan(u->least_certain)) return;
    cd_buf_puts(out, "<table id=\"least-certain\"><thead><tr><th scope=\"col\"></th><th "
                     "scope=\"col\">MAPE</th><th scope=\"col\">mean "
                     "|ln(predicted/measured)|</th></tr></thead><tbody>\n<tr><th "
                     "scope=\"row\">least certain tenth</th><td>");
    cd_report_text_percent(out, u->least_certain);
    cd_buf_puts(out, "</td><td>");
    cd_report_text_number(out, u->least_certain_log, 3);
    cd_buf_puts(out, "</td></tr>\n<tr><th scope=\"row\">the rest</th><td>");
    cd_report_text_percent(out, u->rest);
    cd_buf_puts(out, "</td><td>");
    cd_report_text_number(out, u->rest_log, 3);
    cd_buf_puts(out, "</td></tr></tbody></table>\n");
}

/* The line is the median error that a log-normal distribution of the predicted width would have. */
static void unsure(const cd_report_page *pg) {
    const cd_report_fig_part *f = &pg->f->part[pg->f->shown];
    const cd_report_fig_groups *g = &f->unsure;
    const cd_plot p = {pg->out,       500, 400, 68, 14, 10, 44, {0.5, (double)g->n + 0.5, false},
                       unsure_axis(g)};
    double x[10], y[10];
    cd_buf_puts(
        pg->out,
        "<figure><figcaption><h3>Does it know when it errs?</h3>Programs sorted by predicted "
        "uncertainty, in groups of equal "
        "size: the boxes should climb with the line. Rank correlation of uncertainty and error: ");
    cd_report_text_number(pg->out, f->sigma_rank, 2);
    cd_buf_puts(pg->out, ".<div class=\"keys\">");
    cd_report_legend(pg->out, "expect", "median error if the uncertainty is right");
    cd_buf_puts(pg->out, "</div></figcaption>");
    cd_plot_begin(&p, "plot-uncertainty", "Error by predicted uncertainty",
                  "One box for each group, the surest first.");
    cd_plot_ticks_y(&p, cd_report_text_share);
    for (size_t i = 0; i < g->n; i++) {
        char label[32];
        x[i] = (double)i + 1, y[i] = expected_median(g->v[i].sigma);
        snprintf(label, sizeof label, "%.2g", 100 * g->v[i].sigma);
        if (g->v[i].sigma >= 0.995) snprintf(label, sizeof label, "%.0f", 100 * g->v[i].sigma);
        cd_plot_text(&p, x[i], p.y.lo, 0, 19, "middle", label);
        cd_plot_box(&p, x[i], g->v[i].d.ape, 13, "b");
    }
    cd_plot_line(&p, x, y, g->n, "expect");
    cd_plot_frame(&p, "predicted relative standard deviation, % (sure \xe2\x86\x92 unsure)",
                  "error");
    cd_plot_end(&p);
    tenth(pg, &f->tenth);
    cd_buf_puts(pg->out, "</figure>\n");
}

void cd_report_calibration(const cd_report_page *pg) {
    const cd_report_fig_part *f = &pg->f->part[pg->f->shown];
    if (!f->has_sigma) {
        cd_buf_puts(pg->out, "<p id=\"no-uncertainty\" class=\"note\">This model gives a latency "
                             "and no uncertainty, so there is nothing to calibrate.</p>\n");
        return;
    }
    cd_buf_puts(pg->out, "<div class=\"two\">");
    coverage(pg);
    if (f->unsure.n) unsure(pg);
    else
        cd_buf_puts(pg->out,
                    "<p class=\"note\">Too few programs to group them by uncertainty.</p>");
    cd_buf_puts(pg->out, "</div>\n");
}
