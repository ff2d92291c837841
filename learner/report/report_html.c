/* The page of a training report: headline figures first, then where the errors are, how sure the
 * model is, and last what it was trained on. One file without scripts or links, so that it can be
 * sent and printed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learner/report/report_internal.h"
#include "learner/report/web/report.css.h"

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
    cd_report_plot_scatter(pg);
    section(out, "errors", "Errors");
    cd_buf_putf(out,
                "<p class=\"note\">Where no legend says otherwise, everything below is about the "
                "%s part.</p><div class=\"two\">",
                cd_split_part_name(pg->f->shown));
    cd_report_plot_cdf(pg);
    cd_report_plot_decades(pg);
    cd_buf_puts(out, "</div>\n");
    section(out, "where", "Where the errors are");
    cd_buf_puts(out, "<div class=\"two\">");
    cd_report_plot_tasks(pg);
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
