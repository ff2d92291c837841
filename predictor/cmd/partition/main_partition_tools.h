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
int cd_mp_link(int argc, char **argv);
int cd_mp_curve(int argc, char **argv);
int cd_mp_correlate(int argc, char **argv);
int cd_mp_equilibrium(int argc, char **argv);
int cd_mp_together(int argc, char **argv);
extern const cd_command cd_mp_link_command, cd_mp_curve_command, cd_mp_correlate_command, cd_mp_equilibrium_command, cd_mp_together_command;

/* Says the error if there is one; ends the face; the exit code. bad: 3 where something was left out. */
int cd_mp_end(cd_command_run *f, cdmpp_status st, const cdmpp_err *err, bool bad);
/* Result as JSON behind "cdmpp.<schema>", or `text`; both are freed. */
cdmpp_status cd_mp_say(bool json, const char *schema, cd_buf *b, cdmpp_err *err);
/* A number of an option's text in lo .. hi; NULL: *out stays. Errors: EUSAGE. */
cdmpp_status cd_mp_number(const char *option, const char *text, double lo, double hi, double *out, cdmpp_err *err);
/* "key": v, null where it is no number; first without a comma before it. */
void cd_mp_put(cd_buf *b, const char *key, double v);
void cd_mp_put_text(cd_buf *b, const char *key, const char *s);
/* "  1.23 us", "   456 ms": nine characters; "-": no number. */
void cd_mp_seconds(cd_buf *b, double s);
void cd_mp_seconds_short(cd_buf *b, double s); /* without the blanks before it */
/* "64 B", "1 MiB" */
void cd_mp_bytes(cd_buf *b, double bytes);

/* ---- main_partition_table.c: tables of CSV, plain or packed ----
 *   (1) the first line names the columns; every other one has as many fields; empty lines and lines that begin with # are skipped;
 *   (2) names are without blanks around them, no two are equal. */
typedef struct cd_mp_table {
    cd_arena arena;
    const char *path;
    size_t n_col, n_row, cap;
    const char **name;          /* (n_col) */
    const char ***cell;         /* (n_row)(n_col) */
    long *line;                 /* (n_row) */
} cd_mp_table;
/* Errors, with path and line: EIO, EPARSE, ESCHEMA (no line of names, two of one name, too few fields), ENODATA (no row), ENOMEM. Free after them too. */
cdmpp_status cd_mp_table_read(cd_mp_table *t, const char *path, cdmpp_err *err);
void cd_mp_table_free(cd_mp_table *t);
/* SIZE_MAX: there is none. */
size_t cd_mp_table_find(const cd_mp_table *t, const char *column);
/* Errors: ESCHEMA (names the columns that there are). */
cdmpp_status cd_mp_table_need(const cd_mp_table *t, const char *column, size_t *out, cdmpp_err *err);
/* A finite number. Errors: EPARSE, with path, line and column. */
cdmpp_status cd_mp_table_number(const cd_mp_table *t, size_t row, size_t col, double *out, cdmpp_err *err);

/* ---- main_partition_draw.c: one chart as a file ---- */
typedef struct cd_mp_chart {
    cd_buf b;
    cd_plot p;
    size_t n_legend;
} cd_mp_chart;
/* Axes as given in c->p.x and .y; afterwards lines of c->p with the classes cd_mp_colour gives. */
void cd_mp_chart_begin(cd_mp_chart *c, const char *title, const char *x_title, const char *y_title, cd_plot_name *x_name, cd_plot_name *y_name);
/* "m c3" */
const char *cd_mp_colour(size_t k);
void cd_mp_chart_legend(cd_mp_chart *c, size_t k, const char *text);
cdmpp_status cd_mp_chart_write(cd_mp_chart *c, const char *path, cdmpp_err *err); /* and free */

/* ---- main_partition_link*.c ---- */
typedef struct cd_mp_link_error {
    double mean, worst, worst_bytes; /* |fitted / measured - 1| of the pairs */
} cd_mp_link_error;

typedef struct cd_mp_link_ask {
    const char *devices, *as, *out, *corun, *svg, *from, *to, *how;
    bool own_memory, contention;
    int repeats, max_mb;
    bool json;
    cd_texts operand;           /* behind measure, show, fit */
    const cd_mp_link_error *error; /* of a fit; NULL: none */
    cd_log *log;
} cd_mp_link_ask;
cdmpp_status cd_mp_link_measure(cd_mp_link_ask *o, cdmpp_err *err);
/* Of a machine: table or JSON, and the drawing of --svg. */
cdmpp_status cd_mp_link_tell(const cd_mp_link_ask *o, const cd_machine *m, cdmpp_err *err);
cdmpp_status cd_mp_link_draw(const cd_mp_link_ask *o, const cd_links *l, cdmpp_err *err);

/* ---- main_partition_curve*.c ---- */
enum { CD_MP_AT = 64 };
typedef struct cd_mp_curve_ask {
    const char *at, *op, *level, *tolerance, *svg, *store, *device, *dim;
    int limit;
    bool json;
    cd_texts operand;
    cd_log *log;
    /* numbers of the texts above */
    double at_v[CD_MP_AT], level_v, tolerance_v;
    size_t n_at;
} cd_mp_curve_ask;
typedef struct cd_mp_points {
    const char *name, *op;      /* "" where nobody said */
    size_t n;
    const double *x, *t;        /* (n) sizes ascending strictly; seconds */
} cd_mp_points;
typedef struct cd_mp_curves cd_mp_curves; /* what is told, growing */
cdmpp_status cd_mp_curves_new(const cd_mp_curve_ask *o, CD_GIVE cd_mp_curves **out, cdmpp_err *err);
void cd_mp_curves_free(CD_TAKE cd_mp_curves *c);
bool cd_mp_curves_full(const cd_mp_curves *c); /* --limit */
/* One that cannot be fitted is said and counted. Errors: ENOMEM. */
cdmpp_status cd_mp_curves_add(cd_mp_curves *c, const cd_mp_points *p, cdmpp_err *err);
/* A line of a file that cannot be used. */
void cd_mp_curves_bad(cd_mp_curves *c, const cdmpp_err *why);
/* Text or JSON, drawing; *bad: how many were left out. Errors: ENODATA (no curve at all), EIO, ENOMEM. */
cdmpp_status cd_mp_curves_tell(cd_mp_curves *c, size_t *bad, cdmpp_err *err);
/* Points in any order with equal sizes: ascending, of one size the least time; how many are left. */
size_t cd_mp_curve_sort(double *x, double *t, size_t n);
/* Curves of --store over --dim. */
cdmpp_status cd_mp_curve_store(cd_mp_curves *c, const cd_mp_curve_ask *o, cdmpp_err *err);
#endif
