/* main_partition_tools -- the verbs of cdmpp-partition that answer one question each, and what they share. Not in the library.
 *
 *   link measure|show|fit    devices of this machine and what it takes to bring bytes from one to the other     machine.h, live_machine.h
 *   curve                    which law a time follows over a size, and where it turns                            patterns.h
 *   correlate                which settings a time hangs on                                                      patterns_corr.h
 *   equilibrium              who takes which device, by best responses                                           schedule_ops_game.h
 *   together                 how many threads each of several has                                                schedule_ops_game.h
 *
 * Each verb has its own table of options: main() calls the verb's function with argv from the verb on, and lists its command
 * among the verbs of its own (option.h), for help and completion. */
#ifndef CD_MAIN_PARTITION_TOOLS_H
#define CD_MAIN_PARTITION_TOOLS_H
#include <signal.h>

#include "base/cli/cli.h"
#include "learner/report/report.h"
#include "profiler/machine/machine.h"

/* The exit code; argv[0] is the verb. */
int cd_partition_link(int argc, char **argv);
int cd_partition_curve(int argc, char **argv);
int cd_partition_correlate(int argc, char **argv);
int cd_partition_equilibrium(int argc, char **argv);
int cd_partition_together(int argc, char **argv);
extern const cd_command cd_partition_link_command, cd_partition_curve_command, cd_partition_correlate_command, cd_partition_equilibrium_command, cd_partition_together_command;

/* Says the error if there is one; ends the face; the exit code. bad: 3 where something was left out. */
int cd_partition_finish(cd_command_run *f, cdmpp_status st, const cdmpp_err *err, bool bad);
/* Result as JSON behind "cdmpp.<schema>", or `text`; both are freed. */
cdmpp_status cd_partition_print_result(bool json, const char *schema, cd_buf *b, cdmpp_err *err);
/* A number of an option's text in lo .. hi; NULL: *out stays. Errors: EUSAGE. */
cdmpp_status cd_partition_number(const char *option, const char *text, double lo, double hi, double *out, cdmpp_err *err);
/* "key": v, null where it is no number; first without a comma before it. */
void cd_partition_put(cd_buf *b, const char *key, double v);
void cd_partition_put_text(cd_buf *b, const char *key, const char *s);
/* "  1.23 us", "   456 ms": nine characters; "-": no number. */
void cd_partition_seconds(cd_buf *b, double s);
void cd_partition_seconds_short(cd_buf *b, double s); /* without the blanks before it */
/* "64 B", "1 MiB" */
void cd_partition_bytes(cd_buf *b, double bytes);

/* ---- main_partition_table.c: tables of CSV, plain or packed ----
 *   (1) the first line names the columns; every other one has as many fields; empty lines and lines that begin with # are skipped;
 *   (2) names are without blanks around them, no two are equal. */
typedef struct cd_partition_table {
    cd_arena arena;
    const char *path;
    size_t n_col, n_row, cap;
    const char **name;          /* (n_col) */
    const char ***cell;         /* (n_row)(n_col) */
    long *line;                 /* (n_row) */
} cd_partition_table;
/* Errors, with path and line: EIO, EPARSE, ESCHEMA (no line of names, two of one name, too few fields), ENODATA (no row), ENOMEM. Free after them too. */
cdmpp_status cd_partition_table_read(cd_partition_table *t, const char *path, cdmpp_err *err);
void cd_partition_table_free(cd_partition_table *t);
/* SIZE_MAX: there is none. */
size_t cd_partition_table_find(const cd_partition_table *t, const char *column);
/* Errors: ESCHEMA (names the columns that there are). */
cdmpp_status cd_partition_table_need(const cd_partition_table *t, const char *column, size_t *out, cdmpp_err *err);
/* A finite number. Errors: EPARSE, with path, line and column. */
cdmpp_status cd_partition_table_number(const cd_partition_table *t, size_t row, size_t col, double *out, cdmpp_err *err);

/* ---- main_partition_draw.c: one chart as a file ---- */
typedef struct cd_partition_chart {
    cd_buf b;
    cd_plot p;
    size_t n_legend;
} cd_partition_chart;
/* Axes as given in c->p.x and .y; afterwards lines of c->p with the classes cd_partition_colour gives. */
void cd_partition_chart_begin(cd_partition_chart *c, const char *title, const char *x_title, const char *y_title, cd_plot_name *x_name, cd_plot_name *y_name);
/* "m c3" */
const char *cd_partition_colour(size_t k);
void cd_partition_chart_legend(cd_partition_chart *c, size_t k, const char *text);
cdmpp_status cd_partition_chart_write(cd_partition_chart *c, const char *path, cdmpp_err *err); /* and free */

/* ---- main_partition_link*.c ---- */
typedef struct cd_partition_link_error {
    double mean, worst, worst_bytes; /* |fitted / measured - 1| of the pairs */
} cd_partition_link_error;

typedef struct cd_partition_link_options {
    const char *devices, *as, *out, *corun, *svg, *from, *to, *how;
    bool own_memory, contention;
    int repeats, max_mb;
    bool json;
    cd_texts operand;           /* behind measure, show, fit */
    const cd_partition_link_error *error; /* of a fit; NULL: none */
    cd_log *log;
} cd_partition_link_options;
cdmpp_status cd_partition_link_measure(cd_partition_link_options *o, cdmpp_err *err);
/* Of a machine: table or JSON, and the drawing of --svg. */
cdmpp_status cd_partition_link_print(const cd_partition_link_options *o, const cd_machine *m, cdmpp_err *err);
cdmpp_status cd_partition_link_draw(const cd_partition_link_options *o, const cd_link_table *l, cdmpp_err *err);

/* ---- main_partition_curve*.c ---- */
enum { CD_PARTITION_AT = 64 };
typedef struct cd_partition_curve_options {
    const char *at, *op, *level, *tolerance, *svg, *store, *device, *dim;
    int limit;
    bool json;
    cd_texts operand;
    cd_log *log;
    /* numbers of the texts above */
    double at_v[CD_PARTITION_AT], level_v, tolerance_v;
    size_t n_at;
} cd_partition_curve_options;
typedef struct cd_partition_points {
    const char *name, *op;      /* "" where nobody said */
    size_t n;
    const double *x, *t;        /* (n) sizes ascending strictly; seconds */
} cd_partition_points;
typedef struct cd_partition_curves cd_partition_curves; /* what is told, growing */
cdmpp_status cd_partition_curves_new(const cd_partition_curve_options *o, CD_GIVE cd_partition_curves **out, cdmpp_err *err);
void cd_partition_curves_free(CD_TAKE cd_partition_curves *c);
bool cd_partition_curves_full(const cd_partition_curves *c); /* --limit */
/* One that cannot be fitted is said and counted. Errors: ENOMEM. */
cdmpp_status cd_partition_curves_add(cd_partition_curves *c, const cd_partition_points *p, cdmpp_err *err);
/* A line of a file that cannot be used. */
void cd_partition_curves_skip(cd_partition_curves *c, const cdmpp_err *why);
/* Text or JSON, drawing; *bad: how many were left out. Errors: ENODATA (no curve at all), EIO, ENOMEM. */
cdmpp_status cd_partition_curves_print(cd_partition_curves *c, size_t *bad, cdmpp_err *err);
/* Points in any order with equal sizes: ascending, of one size the least time; how many are left. */
size_t cd_partition_curve_sort(double *x, double *t, size_t n);
/* Curves of --store over --dim. */
cdmpp_status cd_partition_curve_store(cd_partition_curves *c, const cd_partition_curve_options *o, cdmpp_err *err);
#endif
