/* report_internal -- the pieces of the page that cd_report_write_html puts together.
 *
 *   style                 web/report.css
 *   headline, parts       report_html.c     how good, on what, how sure
 *   plots of errors       report_plots.c
 *   tables of groups      report_tables.c
 *   calibration           report_calibration.c
 *   learning curves       report_curves.c
 *   data, split, command  report_html.c
 *
 * Every function appends to pg->out and cannot fail but by its memory. Numbers are
 * written in one way, by report_text.c. */
#ifndef CD_REPORT_INTERNAL_H
#define CD_REPORT_INTERNAL_H
#include "base/draw/draw.h"
#include "learner/report/report_figures.h"

/* Tasks of fewer programs say little about tasks. */
enum { CD_REPORT_MIN_PROGRAMS = 3 };

typedef struct cd_report_page {
    cd_buf *out;
    const cd_report *r;
    const cd_report_figures *f;
} cd_report_page;

/* ---- text ---- */
void cd_report_text_count(cd_buf *out, size_t n);        /* 12 345 with narrow spaces */
void cd_report_text_percent(cd_buf *out, double share);  /* 0.1234 -> 12.3 %; NaN -> a dash */
void cd_report_text_signed(cd_buf *out, double share);   /* the same with its sign */
void cd_report_text_number(cd_buf *out, double v, int digits);
/* Labels of ticks. */
void cd_report_text_seconds(double s, char *buf, size_t n);  /* 1e-5 -> "10 us" with a mu */
void cd_report_text_share(double v, char *buf, size_t n);    /* 0.05 -> "5 %" */
void cd_report_text_times(double v, char *buf, size_t n);    /* 0.5 -> "x 0.5" */
void cd_report_text_plain(double v, char *buf, size_t n);
/* "10-100 us" of decade k. */
void cd_report_text_decade(cd_buf *out, uint32_t k);
/* A workload key without quotes, its hash cut to 8 digits. */
void cd_report_text_task(cd_buf *out, const char *name);

/* ---- pieces ---- */
void cd_report_plot_scatter(const cd_report_page *pg);
void cd_report_plot_cdf(const cd_report_page *pg);
void cd_report_plot_decades(const cd_report_page *pg);
void cd_report_plot_tasks(const cd_report_page *pg);
void cd_report_tables(const cd_report_page *pg);
void cd_report_table_decades(const cd_report_page *pg);
void cd_report_calibration(const cd_report_page *pg);
void cd_report_curves(const cd_report_page *pg);
/* One entry of a legend above a plot: a line of class cls, then text. */
void cd_report_legend(cd_buf *out, const char *cls, const char *text);
void cd_report_legend_part(const cd_report_page *pg, cd_split_part part);
#endif
