/* Learning curves of every member. */
#include <math.h>
#include <stdio.h>

#include "learner/report/report_internal.h"

enum { POINTS = 300, N_COLOUR = 6, N_KEY = 12 };

typedef struct {
    double x_lo, x_hi, y_lo, y_hi;
    bool positive;
} span;

static void widen(span *s, double y) {
    if (isnan(y)) return;
    s->y_lo = fmin(s->y_lo, y);
    s->y_hi = fmax(s->y_hi, y);
    if (y <= 0) s->positive = false;
}

static span span_of(const cd_report *r) {
    span s = {INFINITY, -INFINITY, INFINITY, -INFINITY, true};
    for (size_t k = 0; k < r->n_curve; k++)
        for (size_t i = 0; i < r->curve[k].n; i++) {
            s.x_lo = fmin(s.x_lo, r->curve[k].step[i]);
            s.x_hi = fmax(s.x_hi, r->curve[k].step[i]);
            widen(&s, r->curve[k].train[i]);
            widen(&s, r->curve[k].valid[i]);
        }
    return s;
}

/* At most POINTS of a column, the first and the last among them. */
static size_t thin(const double *from, size_t n, double *to) {
    if (n <= POINTS) {
        for (size_t i = 0; i < n; i++) to[i] = from[i];
        return n;
    }
    for (size_t i = 0; i < POINTS; i++) to[i] = from[i * (n - 1) / (POINTS - 1)];
    return POINTS;
}

/* Long curves are thinned to POINTS; the circle marks the best validation loss of all points. */
static void curve(const cd_plot *p, const cd_report_curve *c, size_t k) {
    double x[POINTS], y[POINTS];
    char cls[24];
    size_t best = c->n;
    const size_t n = thin(c->step, c->n, x);
    snprintf(cls, sizeof cls, "tr c%zu", k % N_COLOUR);
    thin(c->train, c->n, y);
    cd_plot_line(p, x, y, n, cls);
    thin(c->valid, c->n, y);
    cd_plot_line(p, x, y, n, cls + 3);
    for (size_t i = 0; i < c->n; i++)
        if (!isnan(c->valid[i]) && (best == c->n || c->valid[i] < c->valid[best])) best = i;
    snprintf(cls, sizeof cls, "best c%zu", k % N_COLOUR);
    if (best < c->n) cd_plot_mark(p, c->step[best], c->valid[best], 4, cls);
}

static void legend(const cd_report_page *pg) {
    const cd_report *r = pg->r;
    cd_buf *out = pg->out;
    cd_buf_puts(out, "<div class=\"keys\">");
    for (size_t k = 0; k < r->n_curve && k < N_KEY; k++) {
        char cls[24];
        snprintf(cls, sizeof cls, "c%zu", k % N_COLOUR);
        cd_report_legend(out, cls, r->curve[k].name);
    }
    if (r->n_curve > N_KEY)
        cd_buf_putf(out, "<span class=\"key\">and %zu more</span>", r->n_curve - N_KEY);
    cd_buf_puts(out, "</div>");
}

/* A logarithmic axis where all losses are above 0. */
void cd_report_curves(const cd_report_page *pg) {
    const cd_report *r = pg->r;
    const span s = span_of(r);
    char x_title[64], y_title[64];
    if (!r->n_curve || !(s.y_hi >= s.y_lo)) {
        cd_buf_puts(pg->out,
                    "<p id=\"no-curves\" class=\"note\">No learning curves were recorded.</p>\n");
        return;
    }
    const double pad = s.positive ? 1.05 : 0, room = s.y_hi > s.y_lo ? 0.05 * (s.y_hi - s.y_lo) : 1;
    const cd_axis y = s.positive ? (cd_axis){s.y_lo / pad, s.y_hi * pad, true}
                                 : (cd_axis){s.y_lo - room, s.y_hi + room, false};
    const cd_plot p = {pg->out, 500, 380, 68,
                       14,      10,  44,  {s.x_lo, s.x_hi > s.x_lo ? s.x_hi : s.x_lo + 1, false},
                       y};
    cd_buf_puts(pg->out, "<figure><figcaption><h3>Learning curves</h3>Solid: validation, dotted: "
                         "train. Circle: the best on validation.");
    legend(pg);
    cd_buf_puts(pg->out, "</figcaption>");
    cd_plot_begin(
        &p, "plot-curves", "Learning curves",
        "Loss of train and validation part, one pair of lines for each member of the model.");
    cd_plot_ticks_x(&p, cd_report_text_plain);
    cd_plot_ticks_y(&p, cd_report_text_plain);
    for (size_t k = 0; k < r->n_curve; k++) curve(&p, &r->curve[k], k);
    snprintf(x_title, sizeof x_title, "%.40s",
             r->step_name && r->step_name[0] ? r->step_name : "step");
    snprintf(y_title, sizeof y_title, "loss%s%.40s", r->loss_name && r->loss_name[0] ? ", " : "",
             r->loss_name ? r->loss_name : "");
    cd_plot_frame(&p, x_title, y_title);
    cd_plot_end(&p);
    cd_buf_puts(pg->out, "</figure>\n");
}
