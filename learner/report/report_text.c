/* Numbers and names as the page writes them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learner/report/report.h"
#include "learner/report/report_internal.h"

#define NNBSP "\xe2\x80\xaf"
#define MINUS "\xe2\x88\x92"
#define DASH  "\xe2\x80\x93"

void cd_report_text_count(cd_buf *out, size_t n) {
    char text[32];
    const size_t len = (size_t)snprintf(text, sizeof text, "%zu", n);
    for (size_t i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0 && len > 4) cd_buf_puts(out, NNBSP);
        cd_buf_put(out, text + i, 1);
    }
}

void cd_report_text_percent(cd_buf *out, double share) {
    if (isnan(share)) cd_buf_puts(out, DASH);
    else cd_buf_putf(out, "%.*f" NNBSP "%%", share < 0.9995 ? 1 : 0, 100 * share);
}

/* the same with its sign */
static void report_text_signed(cd_buf *out, double share) {
    if (isnan(share)) {
        cd_buf_puts(out, DASH);
        return;
    }
    cd_buf_puts(out, share < -0.0005 ? MINUS : share > 0.0005 ? "+" : "");
    cd_report_text_percent(out, fabs(share));
}

void cd_report_text_number(cd_buf *out, double v, int digits) {
    if (isnan(v)) cd_buf_puts(out, DASH);
    else cd_buf_putf(out, "%s%.*f", v < 0 ? MINUS : "", digits, fabs(v));
}

void cd_report_text_seconds(double s, char *buf, size_t n) {
    if (s < 0.9999e-6) snprintf(buf, n, "%.3g" NNBSP "ns", s * 1e9);
    else if (s < 0.9999e-3) snprintf(buf, n, "%.3g" NNBSP "\xc2\xb5s", s * 1e6);
    else if (s < 0.9999) snprintf(buf, n, "%.3g" NNBSP "ms", s * 1e3);
    else if (s < 999.9) snprintf(buf, n, "%.3g" NNBSP "s", s);
    else snprintf(buf, n, "%.3g" NNBSP "ks", s * 1e-3);
}

void cd_report_text_share(double v, char *buf, size_t n) {
    snprintf(buf, n, "%.4g" NNBSP "%%", fabs(v) < 1e-12 ? 0 : 100 * v);
}
void cd_report_text_times(double v, char *buf, size_t n) { snprintf(buf, n, "\xc3\x97%.4g", v); }
void cd_report_text_plain(double v, char *buf, size_t n) {
    snprintf(buf, n, "%.4g", fabs(v) < 1e-12 ? 0 : v);
}

/* "10-100 us" of decade k. */
static void report_text_decade(cd_buf *out, uint32_t k) {
    char lo[32], hi[32];
    cd_report_text_seconds(cd_report_fig_decade_s(k), lo, sizeof lo);
    cd_report_text_seconds(cd_report_fig_decade_s(k + 1), hi, sizeof hi);
    if (!k) cd_buf_putf(out, "under %s", hi);
    else if (k + 1 == CD_REPORT_FIG_N_DECADE) cd_buf_putf(out, "%s and more", lo);
    else cd_buf_putf(out, "%s" DASH "%s", lo, hi);
}

/* A workload key without quotes, its hash cut to 8 digits.
 *
 * ["<32 digits>", [1, 56, 56, 64], ...] -> 8 digits, then the shapes: 1a2b3c4d [1,56,56,64] */
static void report_text_task(cd_buf *out, const char *name) {
    static const char hex[] = "0123456789abcdef";
    char text[512];
    size_t n = 0;
    int depth = 0;
    if (*name != '[') {
        cd_escape_xml(out, cd_str_of(name));
        return;
    }
    for (const char *s = name; *s && n + 16 < sizeof text; s++) {
        const size_t run = strspn(s, hex);
        if (run >= 24) { /* a hash: 8 digits name it */
            memcpy(text + n, s, 8);
            n += 8;
            s += run - 1;
            continue;
        }
        const int was = depth;
        depth += (*s == '[') - (*s == ']');
        if (*s == '"' || (*s == ' ' && depth > 1) || (depth != was && (depth == 0 || was == 0)) ||
            (*s == ',' && depth == 1))
            continue;
        text[n++] = *s;
    }
    text[n] = '\0';
    cd_escape_xml(out, cd_str_of(text));
}

/* One entry of a legend above a plot: a line of class cls, then text. */
static void report_legend(cd_buf *out, const char *cls, const char *text) {
    cd_buf_putf(out,
                "<span class=\"key\"><svg width=\"26\" height=\"10\" aria-hidden=\"true\"><path "
                "class=\"%s\" d=\"M1 5H25\"/></svg>",
                cls);
    cd_escape_xml(out, cd_str_of(text));
    cd_buf_puts(out, "</span>");
}

void cd_report_legend_part(const cd_report_page *pg, cd_split_part part) {
    cd_buf b = {0};
    cd_buf_putf(&b, "%s, n = ", cd_split_part_name(part));
    cd_report_text_count(&b, pg->r->part[part].n);
    const char cls[] = {'l', ' ', 's', (char)('0' + part), '\0'};
    report_legend(pg->out, cls, b.p ? b.p : "");
    cd_buf_free(&b);
}

/* How sure: coverage of intervals, error by predicted uncertainty. */

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
    report_legend(pg->out, "expect", "median error if the uncertainty is right");
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

/* One line a program (RFC 4180): what every plot was made from. */

/* Quotes only where CSV needs them; quotes inside are doubled. */
static void field(cd_buf *out, const char *s) {
    if (!s[strcspn(s, ",\"\r\n")]) {
        cd_buf_puts(out, s);
        return;
    }
    cd_buf_puts(out, "\"");
    for (;;) {
        const size_t n = strcspn(s, "\"");
        cd_buf_put(out, s, n);
        if (!s[n]) break;
        cd_buf_puts(out, "\"\"");
        s += n + 1;
    }
    cd_buf_puts(out, "\"");
}

/* A column that the model does not fill stays empty. */
static void number(cd_buf *out, const double *v, size_t i) {
    if (v) cd_buf_putf(out, ",%.9g", v[i]);
    else cd_buf_puts(out, ",");
}

/* Where the program was read from, as cdmpp-extract wrote it. */
static cdmpp_status record(cd_buf *out, const cd_report *r, const cd_report_part *p, size_t i,
                           cdmpp_err *err) {
    if (!p->source_file || !p->source_line) {
        cd_buf_puts(out, ",");
        return CDMPP_OK;
    }
    if (p->source_file[i] >= r->n_source)
        return CD_FAIL(err, ERANGE, "program %zu: source %u", i, (unsigned)p->source_file[i]);
    field(out, r->source_name[p->source_file[i]]);
    cd_buf_putf(out, ",%llu", (unsigned long long)p->source_line[i]);
    return CDMPP_OK;
}

/* The numbers of tasks and devices index the names, so they are checked. */
cdmpp_status cd_report_write_csv(cd_buf *out, const cd_report *r, cdmpp_err *err) {
    cd_buf_puts(out, "part,task,device,measured_s,predicted_s,low_s,high_s,rel_std,out_of_range,"
                     "error,file,line,order_s\n");
    for (int k = 0; k < CD_SPLIT_N_PART; k++) {
        const cd_report_part *p = &r->part[k];
        for (size_t i = 0; i < p->n && !out->oom; i++) {
            if (p->task[i] >= r->n_task || p->device[i] >= r->n_device)
                return CD_FAIL(err, ERANGE, "%s program %zu: task %u, device %u",
                               cd_split_part_name((cd_split_part)k), i, (unsigned)p->task[i],
                               (unsigned)p->device[i]);
            cd_buf_puts(out, cd_split_part_name((cd_split_part)k));
            cd_buf_puts(out, ",");
            field(out, r->task_name[p->task[i]]);
            cd_buf_puts(out, ",");
            field(out, r->device_name[p->device[i]]);
            number(out, p->measured_s, i);
            number(out, p->predicted_s, i);
            number(out, p->low_s, i);
            number(out, p->high_s, i);
            number(out, p->rel_std, i);
            cd_buf_puts(out, !p->out_of_range ? "," : p->out_of_range[i] ? ",1" : ",0");
            cd_buf_putf(out, ",%.6g,", p->predicted_s[i] / p->measured_s[i] - 1);
            CD_TRY(record(out, r, p, i, err));
            number(out, p->order_s, i);
            cd_buf_puts(out, "\n");
        }
    }
    return out->oom ? CD_FAIL(err, ENOMEM, "report") : CDMPP_OK;
}

/* Learning curves of every member. */

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
        report_legend(out, cls, r->curve[k].name);
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

/* Tables of groups: tasks, networks, devices, latencies, in and out of range. */

enum { WORST = 20, BEST = 5 };

typedef void put_name(cd_buf *out, const cd_report_fig_group *g);

typedef struct {
    const char *id, *title, *note, *head;
    const cd_report_fig_group *const *v; /* (n) in the order of the rows */
    size_t n;
    put_name *name;
    const cd_report_dist *all; /* last row, NULL: none */
    bool slim;                 /* half the page wide: fewer columns */
} table;

/* ---- the little box plots: 0.5 to 500 %, logarithmic ---- */
enum { SPARK_W = 200, SPARK_H = 22 };

static double spark_x(double e) {
    const double t = log10(fmax(e, 1e-9) / 0.005) / 3;
    return 3 + (t < 0 ? 0 : t > 1 ? 1 : t) * (SPARK_W - 6);
}

static void spark_grid(cd_buf *out, int from, int to) {
    cd_buf_puts(out, "<path class=\"grid\" d=\"");
    for (double e = 0.01; e < 2; e *= 10) cd_buf_putf(out, "M%.1f %dV%d", spark_x(e), from, to);
    cd_buf_puts(out, "\"/>");
}

static void spark_head(cd_buf *out) {
    cd_buf_putf(out,
                "<th class=\"spark\" scope=\"col\"><svg viewBox=\"0 0 %d 32\" width=\"%d\" "
                "aria-label=\"error, logarithmic\">",
                SPARK_W, SPARK_W);
    cd_buf_puts(
        out, "<text class=\"sub\" x=\"100\" y=\"11\" text-anchor=\"middle\">error: 10\xe2\x80\x93"
             "90 %, middle half, median</text>");
    for (double e = 0.01; e < 2; e *= 10) {
        char label[24];
        cd_report_text_share(e, label, sizeof label);
        cd_buf_putf(out, "<text x=\"%.1f\" y=\"26\" text-anchor=\"middle\">%s</text>", spark_x(e),
                    label);
    }
    spark_grid(out, 29, 32);
    cd_buf_puts(out, "</svg></th>");
}

static void spark(cd_buf *out, const cd_report_dist *d) {
    double x[CD_REPORT_FIG_N_Q];
    for (int i = 0; i < CD_REPORT_FIG_N_Q; i++) x[i] = spark_x(d->ape[i]);
    cd_buf_putf(out,
                "<td class=\"spark\"><svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" "
                "aria-label=\"10 %% below %.3g %%, median %.3g %%, 90 %% below %.3g %%\">",
                SPARK_W, SPARK_H, SPARK_W, 100 * d->ape[0], 100 * d->ape[2], 100 * d->ape[4]);
    spark_grid(out, 0, SPARK_H);
    cd_buf_putf(out, "<g class=\"b\"><path class=\"whisker\" d=\"M%.1f 11H%.1fM%.1f 11H%.1f\"/>",
                x[0], x[1], x[3], x[4]);
    cd_buf_putf(out,
                "<rect class=\"box\" x=\"%.1f\" y=\"6\" width=\"%.1f\" height=\"10\"/><path "
                "class=\"med\" d=\"M%.1f 4V18\"/></g></svg></td>",
                x[1], fmax(x[3] - x[1], 0.5), x[2]);
}

/* The same columns in every table. */
static void cells(cd_buf *out, const cd_report_dist *d) {
    cd_buf_puts(out, "<td>");
    cd_report_text_count(out, d->n);
    cd_buf_puts(out, "</td><td>");
    cd_report_text_percent(out, d->ape[2]);
    cd_buf_puts(out, "</td><td>");
    cd_report_text_percent(out, d->mape);
    cd_buf_puts(out, "</td><td class=\"opt\">");
    cd_report_text_number(out, d->mae_log, 3);
    cd_buf_puts(out, "</td><td class=\"opt\">");
    cd_report_text_percent(out, d->within_20);
    cd_buf_puts(out, "</td><td class=\"opt\">");
    report_text_signed(out, d->ratio[2] - 1);
    cd_buf_puts(out, "</td>");
    spark(out, d);
    cd_buf_puts(out, "</tr>\n");
}

/* A table of groups, with a line for all of them where it is wanted. */
static void put_table(const cd_report_page *pg, const table *t) {
    cd_buf *out = pg->out;
    if (!t->n) return;
    cd_buf_putf(out, "<div class=\"scroll%s\"><table id=\"%s\"><caption><b>%s</b> %s</caption>\n",
                t->slim ? " slim" : "", t->id, t->title, t->note);
    cd_buf_putf(out,
                "<thead><tr><th scope=\"col\">%s</th><th scope=\"col\">n</th><th "
                "scope=\"col\">median<br>error</th><th scope=\"col\">MAPE</th>"
                "<th class=\"opt\" scope=\"col\">MAE of<br>logarithm</th><th class=\"opt\" "
                "scope=\"col\">within<br>20 %%</th><th class=\"opt\" scope=\"col\">bias</th>",
                t->head);
    spark_head(out);
    cd_buf_puts(out, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < t->n; i++) {
        cd_buf_puts(out, "<tr><td class=\"name\">");
        t->name(out, t->v[i]);
        cd_buf_puts(out, "</td>");
        cells(out, &t->v[i]->d);
    }
    if (t->all) {
        cd_buf_puts(out, "<tr class=\"on\"><td class=\"name\">all</td>");
        cells(out, t->all);
    }
    cd_buf_puts(out, "</tbody></table></div>\n");
}

/* ---- names ---- */
static void task_name(cd_buf *out, const cd_report_fig_group *g) {
    cd_buf_puts(out, "<code title=\"");
    cd_escape_xml(out, cd_str_of(g->name));
    cd_buf_puts(out, "\">");
    report_text_task(out, g->name);
    cd_buf_puts(out, "</code>");
}
static void plain_name(cd_buf *out, const cd_report_fig_group *g) {
    cd_escape_xml(out, cd_str_of(g->name));
}
static void decade_name(cd_buf *out, const cd_report_fig_group *g) {
    report_text_decade(out, g->key);
}
static void range_name(cd_buf *out, const cd_report_fig_group *g) {
    cd_buf_puts(out, g->key ? "unlike the training programs" : "like the training programs");
}

/* ---- order ---- */
static const cd_report_fig_group *const *sorted(const cd_report_fig_groups *g, cd_buf *out,
                                                int (*cmp)(const void *, const void *)) {
    const cd_report_fig_group **v = cd_mem_zalloc(g->n + 1, sizeof *v);
    if (!v) {
        out->oom = true;
        return NULL;
    }
    for (size_t i = 0; i < g->n; i++) v[i] = &g->v[i];
    if (cmp && g->n) qsort(v, g->n, sizeof *v, cmp);
    return v;
}

/* Worst first; groups of one or two programs say little and go last. */
static int worst_first(const void *a, const void *b) {
    const cd_report_fig_group *x = *(const cd_report_fig_group *const *)a,
                              *y = *(const cd_report_fig_group *const *)b;
    if ((x->d.n < CD_REPORT_MIN_PROGRAMS) != (y->d.n < CD_REPORT_MIN_PROGRAMS))
        return x->d.n < CD_REPORT_MIN_PROGRAMS ? 1 : -1;
    if (x->d.ape[2] != y->d.ape[2]) return x->d.ape[2] > y->d.ape[2] ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

static void simple(const cd_report_page *pg, const cd_report_fig_groups *g, table t,
                   bool by_error) {
    t.v = sorted(g, pg->out, by_error ? worst_first : NULL);
    t.n = t.v ? g->n : 0;
    put_table(pg, &t);
    cd_mem_free((void *)(uintptr_t)t.v);
}

static void tasks(const cd_report_page *pg, const cd_report_fig_part *f) {
    const cd_report_fig_group *const *v = sorted(&f->task, pg->out, worst_first);
    size_t n = 0;
    while (v && n < f->task.n && v[n]->d.n >= CD_REPORT_MIN_PROGRAMS) n++;
    if (!n) n = v ? f->task.n : 0; /* all are small: show them anyway */
    const size_t worst = n < WORST ? n : WORST, best = n - worst < BEST ? n - worst : BEST;
    char title[64], note[160]; /* "The only task" ignores its number */
    snprintf(title, sizeof title,
             worst < f->task.n ? "The %zu worst tasks"
             : worst == 1      ? "The only task"
                               : "All %zu tasks",
             worst);
    if (worst < f->task.n)
        snprintf(note, sizeof note, "of %zu, by median error%s.", f->task.n,
                 n < f->task.n ? "; those of fewer than 3 programs are left out" : "");
    else snprintf(note, sizeof note, "%s", worst > 1 ? "Worst first, by median error." : "");
    put_table(pg,
              &(table){"table-task-worst", title, note, "task", v, worst, task_name, NULL, false});
    snprintf(title, sizeof title, "The %zu best", best);
    if (best)
        put_table(pg, &(table){"table-task-best", title, "", "task", v + n - best, best, task_name,
                               &f->all, false});
    cd_mem_free((void *)(uintptr_t)v);
}

void cd_report_table_decades(const cd_report_page *pg) {
    const cd_report_fig_part *f = &pg->f->part[pg->f->shown];
    simple(pg, &f->decade,
           (table){.id = "table-decade",
                   .title = "By measured latency",
                   .note = "",
                   .head = "latency",
                   .name = decade_name,
                   .all = &f->all,
                   .slim = true},
           false);
}

/* Groups that exist in the data: networks, devices, in and out of range. */
void cd_report_tables(const cd_report_page *pg) {
    const cd_report_fig_part *f = &pg->f->part[pg->f->shown];
    cd_buf note = {0};
    tasks(pg, f);
    cd_buf_puts(&note, "A task counts in every network that it occurs in");
    if (f->n_no_network) {
        cd_buf_puts(&note, "; ");
        cd_report_text_count(&note, f->n_no_network);
        cd_buf_puts(&note, " programs belong to none");
    }
    cd_buf_puts(&note, ".");
    simple(pg, &f->network,
           (table){.id = "table-network",
                   .title = "By network",
                   .note = note.p ? note.p : "",
                   .head = "network",
                   .name = plain_name},
           true);
    simple(pg, &f->device,
           (table){.id = "table-device",
                   .title = "By device",
                   .note = "",
                   .head = "device",
                   .name = plain_name},
           true);
    simple(pg, &f->range,
           (table){.id = "table-range",
                   .title = "In and out of range",
                   .note = "What the model itself flags.",
                   .head = "programs",
                   .name = range_name},
           false);
    cd_buf_free(&note);
}
