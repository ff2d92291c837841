/* The page of a training report: headline figures first, then where the errors are, how sure the
 * model is, and last what it was trained on. One file without scripts or links, so that it can be
 * sent and printed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learner/report/report_internal.h"
#include "learner/report/web/report.css.h"

/* Predicted against measured; how large errors are; where they are. */

/* Up to here every program is a dot, above a density. */
enum { MANY = 2000, FEW = 200, SHADES = 6 };

/* ---- predicted against measured ---- */
static void tolerance(const cd_plot *p) {
    const double lo = p->x.lo, hi = p->x.hi;
    const double x0 = cd_plot_x(p, lo), x1 = cd_plot_x(p, hi);
    cd_buf_putf(
        p->out,
        "<path class=\"tol\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fZ\"/>",
        x0, cd_plot_y(p, lo), x0, cd_plot_y(p, 1.2 * lo), cd_plot_x(p, hi / 1.2), cd_plot_y(p, hi),
        x1, cd_plot_y(p, hi), x1, cd_plot_y(p, 0.8 * hi), cd_plot_x(p, lo / 0.8), cd_plot_y(p, lo));
}

/* 1..SHADES by the logarithm of the count. */
static int shade(uint32_t count, uint32_t most) {
    if (most < 2) return SHADES;
    const int s = 1 + (int)(log2(count) / log2(most) * (SHADES - 1) + 0.5);
    return s > SHADES ? SHADES : s;
}

/* One path a shade; neighbours of one shade in a row are one rectangle. */
static void density(const cd_plot *p, const uint32_t *grid, const char *part) {
    const double cw = (p->w - p->left - p->right) / CD_REPORT_FIG_GRID,
                 ch = (p->h - p->top - p->bottom) / CD_REPORT_FIG_GRID;
    uint32_t most = 0;
    for (size_t i = 0; i < CD_REPORT_FIG_GRID * CD_REPORT_FIG_GRID; i++)
        most = grid[i] > most ? grid[i] : most;
    for (int s = 1; s <= SHADES; s++) {
        cd_buf_putf(p->out, "<path class=\"h %s g%d\" d=\"", part, s);
        for (int y = 0; y < CD_REPORT_FIG_GRID; y++)
            for (int x = 0, run; x < CD_REPORT_FIG_GRID; x += run) {
                const uint32_t *c = grid + y * CD_REPORT_FIG_GRID;
                for (run = 0;
                     x + run < CD_REPORT_FIG_GRID && c[x + run] && shade(c[x + run], most) == s;
                     run++) {
                }
                if (run)
                    cd_buf_putf(p->out, "M%.1f %.1fh%.1fv%.1fh-%.1fz", p->left + x * cw,
                                p->h - p->bottom - (y + 1) * ch, run * cw, ch, run * cw);
                else run = 1;
            }
        cd_buf_puts(p->out, "\"/>\n");
    }
}

static void caption_scatter(const cd_report_page *pg, cd_split_part part, bool big) {
    cd_buf *out = pg->out;
    const cd_report_part *t = &pg->r->part[part];
    cd_buf_putf(out, "<figcaption><h3>%s</h3>", cd_split_part_name(part));
    cd_report_text_count(out, t->n);
    cd_buf_puts(out, " programs, ");
    cd_report_text_percent(out, pg->f->part[part].all.within_20);
    cd_buf_puts(out, big ? " in the grey band, &plusmn;20&#8239;%." : " in the band.");
    if (big && t->n > MANY) cd_buf_puts(out, " The darker, the more programs (logarithmic).");
    cd_buf_puts(out, "</figcaption>");
}

/* Few programs are large dots, many are a density: thousands of SVG elements would be slow to
 * draw. */
static void scatter(const cd_report_page *pg, cd_split_part part, bool big) {
    const cd_report_part *t = &pg->r->part[part];
    const char *name = cd_split_part_name(part), cls[] = {'s', (char)('0' + part), '\0'};
    char id[40], title[80], dots[32];
    const cd_axis a = {pow(10, pg->f->log_min), pow(10, pg->f->log_max), true};
    cd_plot p = {pg->out, big ? 620 : 300, big ? 560 : 276, big ? 74 : 64, 12, 10, big ? 44 : 46, a,
                 a};
    cd_buf_puts(pg->out, big ? "<figure>" : "<figure class=\"small\">");
    caption_scatter(pg, part, big);
    snprintf(id, sizeof id, "plot-scatter-%s", name);
    snprintf(title, sizeof title, "Predicted against measured latency, %s part", name);
    cd_plot_begin(&p, id, title,
                  "Both axes logarithmic. Programs on the diagonal are predicted exactly.");
    cd_plot_ticks_x(&p, cd_report_text_seconds);
    cd_plot_ticks_y(&p, cd_report_text_seconds);
    tolerance(&p);
    snprintf(dots, sizeof dots, "dots %s%s", cls, t->n < FEW ? " large" : big ? "" : " small");
    if (t->n > MANY) density(&p, pg->f->part[part].grid, cls);
    else cd_plot_dots(&p, t->measured_s, t->predicted_s, t->n, dots);
    cd_plot_segment(&p, a.lo, a.lo, a.hi, a.hi, "diag");
    cd_plot_frame(&p, "measured latency", "predicted latency");
    cd_plot_end(&p);
    cd_buf_puts(pg->out, "</figure>\n");
}

static void report_plot_scatter(const cd_report_page *pg) {
    cd_buf_puts(pg->out, "<div class=\"scatter\">");
    scatter(pg, pg->f->shown, true);
    for (int p = CD_SPLIT_N_PART - 1; p >= 0; p--)
        if ((cd_split_part)p != pg->f->shown && pg->r->part[p].n)
            scatter(pg, (cd_split_part)p, false);
    cd_buf_puts(pg->out, "</div>\n");
}

/* ---- how large ---- */
static void report_plot_cdf(const cd_report_page *pg) {
    double x[CD_REPORT_FIG_N_CDF];
    for (int i = 0; i < CD_REPORT_FIG_N_CDF; i++) x[i] = cd_report_fig_cdf_x(i);
    const cd_plot p = {pg->out, 500, 380, 68, 14, 10, 44, {0.001, 10, true}, {0, 1, false}};
    cd_buf_puts(pg->out, "<figure><figcaption><h3>How large errors are</h3>Share of programs whose "
                         "error is at most x. "
                         "Further left is better.<div class=\"keys\">");
    for (int k = CD_SPLIT_N_PART - 1; k >= 0; k--)
        if (pg->r->part[k].n) cd_report_legend_part(pg, (cd_split_part)k);
    cd_buf_puts(pg->out, "</div></figcaption>");
    cd_plot_begin(&p, "plot-cdf", "Cumulative distribution of the relative error",
                  "One line for each part, error on a logarithmic axis.");
    static const double at[] = {0.001, 0.01, 0.05, 0.2, 1, 10}, between[] = {0.1, 0.5};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        char label[32];
        cd_report_text_share(at[i], label, sizeof label);
        cd_plot_tick_x(&p, at[i], label);
    }
    for (size_t i = 0; i < 2; i++) cd_plot_tick_x(&p, between[i], NULL);
    for (int i = 0; i <= 4; i++) {
        char label[32];
        cd_report_text_share(0.25 * i, label, sizeof label);
        cd_plot_tick_y(&p, 0.25 * i, label);
    }
    for (int k = 0; k < CD_SPLIT_N_PART; k++) {
        const char cls[] = {'l', ' ', 's', (char)('0' + k), '\0'};
        if (pg->r->part[k].n) cd_plot_line(&p, x, pg->f->part[k].cdf, CD_REPORT_FIG_N_CDF, cls);
    }
    cd_plot_frame(&p, "|predicted / measured \xe2\x88\x92 1|", "share of programs");
    cd_plot_end(&p);
    cd_buf_puts(pg->out, "</figure>\n");
}

/* ---- where ---- */
static void report_plot_decades(const cd_report_page *pg) {
    const cd_report_fig_groups *g = &pg->f->part[pg->f->shown].decade;
    double lo = 0.5, hi = 2;
    for (size_t i = 0; i < g->n; i++) {
        lo = fmin(lo, g->v[i].d.ratio[0]);
        hi = fmax(hi, g->v[i].d.ratio[CD_REPORT_FIG_N_Q - 1]);
    }
    lo = fmax(lo * 0.95, 1e-3), hi = fmin(hi * 1.05, 1e3);
    const cd_plot p = {pg->out,       500, 380, 68, 14, 28, 44, {-0.5, (double)g->n - 0.5, false},
                       {lo, hi, true}};
    cd_buf_puts(pg->out, "<figure><figcaption><h3>By latency</h3>Predicted over measured, by the "
                         "decade of the measured latency: line = median, "
                         "box = half of the programs, whiskers = 80&#8239;%. Above the middle "
                         "line: predicted too slow.</figcaption>");
    cd_plot_begin(&p, "plot-decade", "Predicted over measured by decade of the latency",
                  "One box for each decade.");
    cd_plot_ticks_y(&p, cd_report_text_times);
    const double top = cd_plot_y(&p, 1.2), bottom = cd_plot_y(&p, 0.8);
    cd_buf_putf(pg->out,
                "<rect class=\"tol\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
                p.left, top, p.w - p.left - p.right, bottom - top);
    cd_plot_segment(&p, p.x.lo, 1, p.x.hi, 1, "diag");
    for (size_t i = 0; i < g->n; i++) {
        char label[32];
        cd_buf n = {0};
        cd_report_text_seconds(g->v[i].key ? cd_report_fig_decade_s(g->v[i].key) : 0, label,
                               sizeof label);
        /* else no room on a phone */
        if (g->n <= 6 || i % 2 == 0)
            cd_plot_text(&p, (double)i - 0.5, p.y.lo, 0, 19, "middle", label);
        cd_report_text_count(&n, g->v[i].d.n);
        cd_plot_text(&p, (double)i, p.y.hi, 0, -8, "middle", n.p ? n.p : "");
        cd_buf_free(&n);
        cd_plot_box(&p, (double)i, g->v[i].d.ratio,
                    0.5 * fmin(46, 0.62 * (p.w - p.left - p.right) / (double)g->n), "b");
    }
    if (g->n && g->n <= 6 && g->v[g->n - 1].key + 1 < CD_REPORT_FIG_N_DECADE) {
        char label[32];
        cd_report_text_seconds(cd_report_fig_decade_s(g->v[g->n - 1].key + 1), label, sizeof label);
        cd_plot_text(&p, p.x.hi, p.y.lo, 0, 19, "middle", label);
    }
    cd_plot_text(&p, p.x.lo, p.y.hi, -6, -8, "end", "n");
    cd_plot_frame(&p, "measured latency, from", "predicted / measured");
    cd_plot_end(&p);
    cd_buf_puts(pg->out, "</figure>\n");
}

static int by_median(const void *a, const void *b) {
    const cd_report_fig_group *x = *(const cd_report_fig_group *const *)a,
                              *y = *(const cd_report_fig_group *const *)b;
    if (x->d.ape[2] != y->d.ape[2]) return x->d.ape[2] < y->d.ape[2] ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

/* Room for the middle half of every task. */
static cd_axis error_axis(const cd_report_fig_group *const *v, size_t n) {
    double lo = INFINITY, hi = 0;
    for (size_t i = 0; i < n; i++) {
        lo = fmin(lo, v[i]->d.ape[1]);
        hi = fmax(hi, v[i]->d.ape[3]);
    }
    return (cd_axis){fmax(fmin(lo, 0.05) * 0.9, 1e-3), fmin(fmax(hi, 1) * 1.1, 1e3), true};
}

static void task_marks(const cd_plot *p, const cd_report_fig_group *const *v, size_t n) {
    const char *cls = n > 150  ? "dots s2 small full"
                      : n > 20 ? "dots s2 full"
                               : "dots s2 large full";
    cd_buf_puts(p->out, "<path class=\"span\" d=\"");
    for (size_t i = 0; i < n; i++)
        cd_buf_putf(p->out, "M%.1f %.1fV%.1f", cd_plot_x(p, (double)i + 1),
                    cd_plot_y(p, v[i]->d.ape[1]), cd_plot_y(p, v[i]->d.ape[3]));
    cd_buf_putf(p->out, "\"/>\n<path class=\"%s\" d=\"", cls);
    for (size_t i = 0; i < n; i++)
        cd_buf_putf(p->out, "M%.1f %.1fh0", cd_plot_x(p, (double)i + 1),
                    cd_plot_y(p, v[i]->d.ape[2]));
    cd_buf_puts(p->out, "\"/>\n");
}

static void report_plot_tasks(const cd_report_page *pg) {
    const cd_report_fig_groups *g = &pg->f->part[pg->f->shown].task;
    const cd_report_fig_group **v = cd_mem_zalloc(g->n + 1, sizeof *v);
    size_t n = 0;
    if (!v) {
        pg->out->oom = true;
        return;
    }
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].d.n >= CD_REPORT_MIN_PROGRAMS) v[n++] = &g->v[i];
    for (size_t i = 0; !n && i < g->n; i++) v[i] = &g->v[i];
    if (!n) n = g->n; /* all are small: show them anyway */
    if (n) qsort(v, n, sizeof *v, by_median);
    const cd_plot p = {pg->out,         500, 380, 68, 14, 10, 44, {0, (double)n + 1, false},
                       error_axis(v, n)};
    cd_buf_putf(pg->out,
                "<figure><figcaption><h3>By task</h3>Every task%s, the best first: dot = median "
                "error of its programs, "
                "line = the middle half of them.</figcaption>",
                n < g->n ? " of 3 programs or more" : "");
    cd_plot_begin(&p, "plot-task", "Error by task",
                  "Tasks sorted by their median error, error on a logarithmic axis.");
    if (n > 12) cd_plot_ticks_x(&p, cd_report_text_plain);
    for (size_t i = 1; n <= 12 && i <= n; i++) {
        char label[32];
        cd_report_text_plain((double)i, label, sizeof label);
        cd_plot_tick_x(&p, (double)i, label);
    }
    cd_plot_ticks_y(&p, cd_report_text_share);
    task_marks(&p, v, n);
    cd_plot_frame(&p, "tasks, by rank", "error");
    cd_plot_end(&p);
    cd_buf_puts(pg->out, "</figure>\n");
    cd_mem_free(v);
}

static const char *held_out(const cd_report_page *pg) {
    if (pg->f->shown != CD_SPLIT_PART_TEST)
        return pg->f->shown == CD_SPLIT_PART_TRAIN ? "it was trained on"
                                                   : "used to stop the training";
    switch (pg->r->kind) {
    case CD_SPLIT_RECORD:
    case CD_SPLIT_INTERLEAVED: return "not seen in training, of tasks that were";
    case CD_SPLIT_TASK: return "of tasks never seen in training";
    case CD_SPLIT_NETWORK: return "of networks never seen in training, nor any of their tasks";
    case CD_SPLIT_DEVICE:
        return pg->r->n_target_task
                   ? "of tasks not seen in training, on a device of which only a few others were"
                   : "on devices never seen in training";
    }
    return "";
}

static const char *plural(size_t n, const char *one, const char *many) {
    return n == 1 ? one : many;
}

/* ---- the first screen ---- */
static void lead(const cd_report_page *pg) {
    cd_buf *out = pg->out;
    const cd_report_fig_part *f = &pg->f->part[pg->f->shown];
    cd_buf_puts(out, "<p class=\"lead\">Half of the predictions are within <b>");
    cd_report_text_percent(out, f->all.ape[2]);
    cd_buf_puts(out, "</b> of the measured latency, on ");
    cd_report_text_count(out, f->all.n);
    cd_buf_putf(out, " programs %s", held_out(pg));
    cd_buf_puts(out, " (");
    cd_report_text_count(out, f->task.n);
    cd_buf_putf(out, " %s, %zu %s; split by %s, seed %llu).</p>\n",
                plural(f->task.n, "task", "tasks"), f->device.n,
                plural(f->device.n, "device", "devices"), cd_split_name(pg->r->kind),
                (unsigned long long)pg->r->seed);
}

static void card_open(cd_buf *out, const char *title) {
    cd_buf_putf(out, "<div class=\"card\"><span class=\"t\">%s</span><b>", title);
}

/* The interval is a bootstrap over tasks where there are several, else over programs. */
static void card_mape(const cd_report_page *pg, const cd_report_fig_part *f) {
    cd_buf *out = pg->out;
    card_open(out, "Mean error (MAPE)");
    cd_report_text_percent(out, f->all.mape);
    cd_buf_puts(out, "</b><span>");
    if (isnan(f->mape_low)) {
        cd_buf_puts(out, "too few to say how sure");
    } else {
        cd_report_text_percent(out, f->mape_low);
        cd_buf_puts(out, " to ");
        cd_report_text_percent(out, f->mape_high);
        cd_buf_puts(out, f->n_unit ? " with other tasks like these (90&#8239;%)"
                                   : " with other programs like these (90&#8239;%)");
    }
    cd_buf_puts(out, "</span></div>");
}

static void card_interval(const cd_report_page *pg, const cd_report_fig_part *f) {
    cd_buf *out = pg->out;
    int at = 0;
    while (at + 1 < CD_REPORT_FIG_N_LEVEL && cd_report_fig_level(at) < CD_REPORT_LEVEL - 1e-9) at++;
    card_open(out, "How sure: 90&#8239;% interval");
    if (!f->has_sigma) {
        cd_buf_puts(out, "\xe2\x80\x93</b><span>this model gives no uncertainty</span></div>");
        return;
    }
    cd_report_text_percent(out, f->has_interval ? f->interval_cover : f->cover[at]);
    cd_buf_puts(out, "</b><span>of measurements lie in it");
    if (f->has_interval)
        cd_buf_putf(out, "; its ends are \xc3\x97%.2g apart (median)", f->interval_width);
    cd_buf_puts(out, "</span></div>");
}

/* The figures that a reader asks for first, each in words. */
static void cards(const cd_report_page *pg) {
    cd_buf *out = pg->out;
    const cd_report_fig_part *f = &pg->f->part[pg->f->shown];
    const cd_metric *m = &pg->r->part[pg->f->shown].metrics;
    cd_buf_puts(out, "<div class=\"cards\">");
    card_open(out, "Median error");
    cd_report_text_percent(out, f->all.ape[2]);
    cd_buf_puts(out, "</b><span>a quarter is above ");
    cd_report_text_percent(out, f->all.ape[3]);
    cd_buf_puts(out, "</span></div>");
    card_mape(pg, f);
    card_open(out, "Within 20&#8239;%");
    cd_report_text_percent(out, f->all.within_20);
    cd_buf_puts(out, "</b><span>of the programs; within 10&#8239;%: ");
    cd_report_text_percent(out, m->within_10);
    cd_buf_puts(out, "</span></div>");
    card_open(out, "Right order");
    cd_report_text_percent(out, m->pairwise);
    cd_buf_puts(out,
                "</b><span>of pairs of programs of one task; guessing: 50&#8239;%</span></div>");
    card_interval(pg, f);
    cd_buf_puts(out, "</div>\n");
}

/* Columns of class "opt" are hidden on small screens. */
static void part_row(const cd_report_page *pg, cd_split_part part) {
    cd_buf *out = pg->out;
    const cd_metric *m = &pg->r->part[part].metrics;
    const cd_report_fig_part *f = &pg->f->part[part];
    const double share[] = {f->all.ape[2], f->all.mape, m->within_5, m->within_10,
                            f->all.within_20};
    cd_buf_putf(out, "<tr%s><td>%s</td><td>", part == pg->f->shown ? " class=\"on\"" : "",
                cd_split_part_name(part));
    cd_report_text_count(out, f->all.n);
    cd_buf_puts(out, "</td><td>");
    cd_report_text_count(out, f->task.n);
    cd_buf_puts(out, "</td>");
    for (size_t i = 0; i < sizeof share / sizeof *share; i++) {
        cd_buf_puts(out, i == 2 || i == 3 ? "<td class=\"opt\">" : "<td>");
        cd_report_text_percent(out, share[i]);
        cd_buf_puts(out, "</td>");
    }
    const double plain[] = {f->all.mae_log, m->rmse_log, m->spearman, m->top1, m->top5};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        cd_buf_puts(out, i == 2 ? "<td>" : "<td class=\"opt\">");
        cd_report_text_number(out, plain[i], 3);
        cd_buf_puts(out, "</td>");
    }
    cd_buf_puts(out, "</tr>\n");
}

static void parts(const cd_report_page *pg) {
    cd_buf_putf(pg->out,
                "<div class=\"scroll\"><table id=\"table-parts\"><caption><b>All parts</b> Split "
                "by %s, seed %llu. Errors are |predicted / "
                "measured &minus; 1|; logarithms are ln(predicted / measured); ranks are means "
                "over tasks on a device.</caption>\n",
                cd_split_name(pg->r->kind), (unsigned long long)pg->r->seed);
    cd_buf_puts(
        pg->out,
        "<thead><tr><th scope=\"col\">part</th><th scope=\"col\">n</th><th "
        "scope=\"col\">tasks</th><th scope=\"col\">median<br>error</th>"
        "<th scope=\"col\">MAPE</th><th class=\"opt\" scope=\"col\">within<br>5&#8239;%</th><th "
        "class=\"opt\" scope=\"col\">within<br>10&#8239;%</th>"
        "<th scope=\"col\">within<br>20&#8239;%</th><th class=\"opt\" scope=\"col\">MAE "
        "of<br>logarithm</th><th class=\"opt\" scope=\"col\">RMSE of<br>logarithm</th><th "
        "scope=\"col\">Spearman</th>"
        "<th class=\"opt\" scope=\"col\">top-1</th><th class=\"opt\" "
        "scope=\"col\">top-5</th></tr></thead><tbody>\n");
    for (int p = CD_SPLIT_N_PART - 1; p >= 0; p--)
        if (pg->r->part[p].n) part_row(pg, (cd_split_part)p);
    cd_buf_puts(pg->out, "</tbody></table></div>\n");
}

/* ---- what it stands on ---- */
static void entry(cd_buf *out, const char *name, const char *text) {
    if (!text || !text[0]) return;
    cd_buf_putf(out, "<dt>%s</dt><dd><code>", name);
    cd_escape_xml(out, cd_str_of(text));
    cd_buf_puts(out, "</code></dd>");
}

/* What is empty is left out. */
static void provenance(const cd_report_page *pg) {
    cd_buf *out = pg->out;
    const cd_report *r = pg->r;
    cd_buf_puts(out, "<div><h3>What it was trained on</h3><dl><dt>programs</dt><dd>");
    cd_report_text_count(out, r->filter.in);
    cd_buf_puts(out, " in the data, ");
    cd_report_text_count(out, r->filter.kept);
    cd_buf_puts(out, " fit to learn from</dd>");
    for (int k = 0; k < CD_FILTER_N_DROP; k++) {
        if (!r->filter.drop[k]) continue;
        cd_buf_puts(out, "<dt>left out</dt><dd>");
        cd_report_text_count(out, r->filter.drop[k]);
        cd_buf_putf(out, ": %s</dd>", cd_filter_drop_text((cd_filter_drop)k));
    }
    cd_buf_puts(out, "<dt>parts</dt><dd>");
    for (int p = 0; p < CD_SPLIT_N_PART; p++) {
        cd_buf_puts(out, p ? ", " : "");
        cd_report_text_count(out, r->part[p].n);
        cd_buf_putf(out, " %s (", cd_split_part_name((cd_split_part)p));
        cd_report_text_count(out, r->n_task_of[p]);
        cd_buf_puts(out, " tasks)");
    }
    cd_buf_puts(out, "</dd>");
    entry(out, "split", r->split_note);
    entry(out, "data digest", r->content_digest);
    entry(out, "split digest", r->split_digest);
    entry(out, "cdmpp", r->version);
    cd_buf_puts(out, "</dl></div>\n");
}

static void block(cd_buf *out, const char *title, const char *text) {
    if (!text || !text[0]) return;
    cd_buf_putf(out, "<h3>%s</h3><pre>", title);
    cd_escape_xml(out, cd_str_of(text));
    cd_buf_puts(out, "</pre>\n");
}

static void section(cd_buf *out, const char *id, const char *title) {
    cd_buf_putf(out, "<h2 id=\"%s\">%s</h2>\n", id, title);
}

/* The order of the page. */
static void body(const cd_report_page *pg) {
    cd_buf *out = pg->out;
    lead(pg);
    cards(pg);
    parts(pg);
    section(out, "predictions", "Predicted against measured");
    report_plot_scatter(pg);
    section(out, "errors", "Errors");
    cd_buf_putf(out,
                "<p class=\"note\">Where no legend says otherwise, everything below is about the "
                "%s part.</p><div class=\"two\">",
                cd_split_part_name(pg->f->shown));
    report_plot_cdf(pg);
    report_plot_decades(pg);
    cd_buf_puts(out, "</div>\n");
    section(out, "where", "Where the errors are");
    cd_buf_puts(out, "<div class=\"two\">");
    report_plot_tasks(pg);
    cd_report_table_decades(pg);
    cd_buf_puts(out, "</div>\n");
    cd_report_tables(pg);
    section(out, "calibration", "How sure it is");
    cd_report_calibration(pg);
    section(out, "training", "Training");
    cd_buf_puts(out, "<div class=\"two\">");
    cd_report_curves(pg);
    provenance(pg);
    cd_buf_puts(out, "</div>\n");
    block(out, "Command", pg->r->command);
    block(out, "Configuration", pg->r->config);
}

/* The style sheet is in the page, so that the file stands alone. */
cdmpp_status cd_report_write_html(cd_buf *out, const cd_report *r, cdmpp_err *err) {
    cd_report_figures f;
    const cd_report_page pg = {out, r, &f};
    cdmpp_status st = cd_report_figures_compute(&f, r, err);
    if (!st) {
        cd_buf_puts(out,
                    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><link "
                    "rel=\"icon\" href=\"data:,\">\n<title>cdmpp training: ");
        cd_escape_xml(out, cd_str_of(r->title ? r->title : ""));
        cd_buf_puts(out, "</title>\n");
        cd_buf_puts(out, "<style>\n");
        cd_buf_put(out, report_css, sizeof report_css - 1);
        cd_buf_puts(out, "</style>\n");
        cd_buf_puts(out, "</head><body>\n<h1>Training report: ");
        cd_escape_xml(out, cd_str_of(r->title ? r->title : ""));
        cd_buf_puts(out, "</h1>\n");
        if (r->part[f.shown].n) body(&pg);
        else cd_buf_puts(out, "<p>No programs.</p>\n");
        cd_buf_puts(out, "</body></html>\n");
        if (out->oom) st = CD_FAIL(err, ENOMEM, "report");
    }
    cd_report_figures_free(&f);
    return st;
}
