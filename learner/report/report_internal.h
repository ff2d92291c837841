/* report_internal -- the pieces of the page that cd_report_write_html puts together.
 *
 *   style                 web/report.css
 *   headline, parts       report_html.c     how good, on what, how sure
 *   plots of errors       report_html.c
 *   tables of groups      report_text.c
 *   calibration           report_text.c
 *   learning curves       report_text.c
 *   data, split, command  report_html.c
 *
 * Every function appends to pg->out and cannot fail but by its memory. Numbers are
 * written in one way, by report_text.c. */
#ifndef CD_REPORT_INTERNAL_H
#define CD_REPORT_INTERNAL_H
#include "learner/report/report.h"

/* report_figures -- the figures of a training report, computed once for all its forms.
 *
 *   part: n programs -+- all      one cd_report_dist: MAPE, quantiles of |e| and of
 *                                 predicted/measured
 *                     +- cdf      share of programs with |e| below x
 *                     +- by task, network, decade, device   one cd_report_dist a group
 *                     +- unsure   ten groups of equal size by predicted uncertainty
 *                     +- range    inside and outside what was trained on
 *                     +- cover    nominal and observed coverage of intervals
 *                     +- grid     counts over log(measured) x log(predicted)
 *
 *   (1) e = predicted/measured - 1; a quantile is a linear interpolation between
 *       the two neighbours in order (numpy's default);
 *   (2) a group has at least one program; groups are in the order of their key, and
 *       a program counts in every network that its task occurs in;
 *   (3) sigma is rel_std; without it, it is read off the interval's two sides, as if
 *       the logarithm were normal;
 *   (4) the interval of the MAPE comes from resampling with a fixed seed.
 * Names are borrowed from the report, all else lives in the arena. One thread. */

enum {
    CD_REPORT_FIG_N_CDF = 161,
    CD_REPORT_FIG_N_LEVEL = 20,
    CD_REPORT_FIG_GRID = 96,
    CD_REPORT_FIG_N_Q = 5,
    CD_REPORT_FIG_N_DECADE = 14
};

typedef struct cd_report_dist {
    size_t n;
    double mape, within_20;
    double mae_log;                  /* mean |ln(predicted/measured)| */
    double ape[CD_REPORT_FIG_N_Q];   /* |e| at 10, 25, 50, 75, 90 % */
    double ratio[CD_REPORT_FIG_N_Q]; /* predicted/measured, the same */
} cd_report_dist;

typedef struct cd_report_fig_group {
    const char *name; /* NULL: see key */
    /* index of the task, network, device; number of the decade or decile */
    uint32_t key;
    cd_report_dist d;
    double sigma;    /* deciles: root mean square of sigma */
    double observed; /* deciles: root mean square of log(predicted/measured) */
} cd_report_fig_group;

typedef struct cd_report_fig_groups {
    size_t n;
    cd_report_fig_group *v; /* (n) */
} cd_report_fig_groups;

typedef struct cd_report_fig_part {
    cd_report_dist all;
    double mape_low, mape_high;      /* 90 % interval of the MAPE; NaN: fewer than two units */
    size_t n_unit;                   /* tasks resampled; 0: programs */
    double cdf[CD_REPORT_FIG_N_CDF]; /* share with |e| <= cd_report_fig_cdf_x(i) */
    cd_report_fig_groups task, network, decade, device, unsure, range;
    size_t n_no_network; /* programs of tasks in no network */
    bool has_sigma, has_interval;
    double cover[CD_REPORT_FIG_N_LEVEL]; /* observed, by sigma, at cd_report_fig_level(i) */
    double interval_cover;               /* of low_s .. high_s */
    double interval_width;               /* median of high/low */
    /* the least certain tenth and the rest; NaN without an interval or sigma of its own */
    cd_uncertainty tenth;
    double sigma_rank; /* Spearman of sigma and |log(predicted/measured)| */
    uint32_t *grid;    /* (GRID, GRID) row = predicted; NULL: no program */
} cd_report_fig_part;

typedef struct cd_report_figures {
    cd_arena arena;
    cd_report_fig_part part[CD_SPLIT_N_PART];
    double log_min, log_max; /* log10 of seconds: every latency lies between */
    /* the part the page is about: test, or the last that has programs */
    cd_split_part shown;
} cd_report_figures;

/* Free with cd_report_figures_free also after an error. Errors: those of cd_report_write_html. */
cdmpp_status cd_report_figures_compute(cd_report_figures *f, const cd_report *r, cdmpp_err *err);
void cd_report_figures_free(cd_report_figures *f);

double cd_report_fig_cdf_x(int i); /* 0.001 .. 10, equal steps of the logarithm */
double cd_report_fig_level(int i); /* 0.05, 0.10 ... 0.95, 0.99 */
double cd_report_fig_quantile_at(int i);
/* z with P(|normal| <= z) = level. */
double cd_report_fig_z(double level);
/* Decades of the measured latency: 0 is everything below 10 ns, 13 from 10 ks up. */
double cd_report_fig_decade_s(uint32_t k); /* its lower end, seconds; 0 for the first */

/* ---- shared by trainfig*.c ---- */

/* Tasks of fewer programs say little about tasks. */
enum { CD_REPORT_MIN_PROGRAMS = 3 };

typedef struct cd_report_page {
    cd_buf *out;
    const cd_report *r;
    const cd_report_figures *f;
} cd_report_page;

/* ---- text ---- */
void cd_report_text_count(cd_buf *out, size_t n);       /* 12 345 with narrow spaces */
void cd_report_text_percent(cd_buf *out, double share); /* 0.1234 -> 12.3 %; NaN -> a dash */
void cd_report_text_number(cd_buf *out, double v, int digits);
/* Labels of ticks. */
void cd_report_text_seconds(double s, char *buf, size_t n); /* 1e-5 -> "10 us" with a mu */
void cd_report_text_share(double v, char *buf, size_t n);   /* 0.05 -> "5 %" */
void cd_report_text_times(double v, char *buf, size_t n);   /* 0.5 -> "x 0.5" */
void cd_report_text_plain(double v, char *buf, size_t n);

/* ---- pieces ---- */
void cd_report_tables(const cd_report_page *pg);
void cd_report_table_decades(const cd_report_page *pg);
void cd_report_calibration(const cd_report_page *pg);
void cd_report_curves(const cd_report_page *pg);
/* One entry of a legend above a plot: a line of class cls, then text. */
void cd_report_legend_part(const cd_report_page *pg, cd_split_part part);
#endif
