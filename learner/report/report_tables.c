/* Tables of groups: tasks, networks, devices, latencies, in and out of range. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "learner/report/report_internal.h"

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
    cd_report_text_signed(out, d->ratio[2] - 1);
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
    cd_report_text_task(out, g->name);
    cd_buf_puts(out, "</code>");
}
static void plain_name(cd_buf *out, const cd_report_fig_group *g) {
    cd_escape_xml(out, cd_str_of(g->name));
}
static void decade_name(cd_buf *out, const cd_report_fig_group *g) {
    cd_report_text_decade(out, g->key);
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
