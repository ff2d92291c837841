/* The door of profiler/curves: other rooms include this header and no other of the room.
 *
 * Performance curves: the time of an operator as a function of its size. The room fits laws to
 * measured points (perf_curve), reads tables of curves (perf_curve_read, curve_set), finds which
 * settings a time depends on (correlation), and makes what a curve of a network is measured from
 * (size_list, network_programs). Used for links between devices, for scaling times to other sizes,
 * and by cdmpp-profile curves. */
#ifndef CD_PROFILER_CURVES_DOOR_H
#define CD_PROFILER_CURVES_DOOR_H
#include <stdbool.h>
#include <stddef.h>

#include "profiler/network/source/source.h"
#include "profiler/runtime/single/single.h"

/* perf_curve -- the time of an operator as a function of its size: which law it follows, and where
 * the law changes.
 *
 *   constant   ________     affine  /  hinge      /  slopes   _/  stairs     __|   table: any other
 *                                  /         ____/          _/           __|      rising curve
 *                                 /                        /          __|
 *
 *   constant  T = a                              affine   T = a + m1 x
 *   hinge     T = a + m2 max(x - x0, 0)          stairs   T = a + c ceil(x / w)      waves of a
 *     GPU: w work fits at once
 *   slopes    T = a + m1 min(x, x0) + m2 clip(x - x0, 0, x1 - x0) + m3 max(x - x1, 0)     two or
 *     three slopes, no jump
 *   table     the rising curve next to the points (isotonic regression): levels, linear between;
 *             irregular: not even that fits
 *
 *   (1) parameters are such that T rises with x (no slope below 0) and a >= 0: launching takes no
 *       negative time;
 *   (2) fits are in relative error: weights 1 / T^2, points far off their neighbours left out (a
 *       high first point is a warm-up), the rest by Huber's weights;
 *   (3) the noise s is measured without any form, from how far points lie off the line between
 *       their neighbours (median), and `tolerance` is added to it: a form is not refused for
 *       deviations that do not matter. The form is chosen by BIC with that known variance: smallest
 *        sum min(r/s, 4)^2 + k ln n,  a break counted as two parameters since it is searched for
 *       (Zhang and Siegmund 2007); without the tolerance BIC takes ripples of 1 % on noiseless GPU
 *       curves for breaks;
 *   (4) a form whose mean square of r/s is above 1 + 10/sqrt(n) does not fit: then table, or
 *       irregular where points fall as often as they rise: the table does not fit either, or the
 *       noise is above 25 %;
 *   (5) times are predicted by more than the named law: by the law that is chosen at a fifth of the
 *       tolerance (or the table), corrected by the residuals that neighbours share: ln(t/T) of the
 *       points times a share (0 .. 1, by leave-one-out regression of each residual on its
 *       neighbours'), with lines between the points. White noise has share 0. Stairs are not
 *       corrected;
 *   (6) EOP's class: flat constant; linear affine, or whatever a line explains to 98 % of its
 *       variance (the rule behind EOP's figures, see r2_affine); piecewise the others;
 *   (7) the first break of a law is known no better than the points allow: `turn` ends at the
 *       nearest points, left and right, where a break would fit worse than chance explains at level
 *       0.9. The noise is that of the residuals, and the tolerance too where fewer than 8 points
 *       are left over for it;
 *   (8) sizes ascend strictly; times are finite and above 0. At least 3 points; stairs need 12.
 * Sizes in any unit, times in seconds. No state, any thread. The forms are those of EOP's operator
 * benchmark; isotonic regression: Barlow 1972. How well they fit is measured in
 * docs/reference/patterns.md. */

typedef enum {
    CD_PERF_CURVE_CONSTANT,
    CD_PERF_CURVE_AFFINE,
    CD_PERF_CURVE_HINGE,
    CD_PERF_CURVE_SLOPES,
    CD_PERF_CURVE_STAIRS,
    CD_PERF_CURVE_TABLE,
    CD_PERF_CURVE_IRREGULAR,
    CD_N_PERF_CURVE
} cd_perf_curve_form;
#define CD_PERF_CURVE_FORMS "constant|affine|hinge|slopes|stairs|table|irregular"
/* EOP's three classes: launch bound, throughput bound, a change between regimes; and none of
 * them. */
typedef enum {
    CD_PERF_CURVE_FLAT,
    CD_PERF_CURVE_LINEAR,
    CD_PERF_CURVE_PIECEWISE,
    CD_PERF_CURVE_UNCLEAR
} cd_perf_curve_class;
#define CD_PERF_CURVE_CLASSES "flat|linear|piecewise|unclear"

enum { CD_PERF_CURVE_PARAM = 6 };

typedef struct cd_perf_curve_options {
    double tolerance; /* relative; 0: 0.05 */
    /* 1 << form of those allowed; 0: all. A table is there in any case */
    uint32_t forms;
} cd_perf_curve_options;

typedef struct cd_perf_curve_turn {
    double at; /* the first break of the law, or the width of a step */
    /* see (7); NaN: the law has no break, or it may be anywhere among the points */
    double low, high;
    bool rough; /* few points: `at` is one of many that fit as well */
} cd_perf_curve_turn;

typedef struct cd_perf_curve {
    cd_perf_curve_form form;
    uint32_t n, n_left_out; /* points; of which outliers */
    bool warmup;            /* the first one was left out as too slow */
    double x_min, x_max;    /* of the points */
    /* a, slopes (or c), then breaks (or w) with their standard errors; NaN: not known (a break
     * between two points of a gap) */
    uint32_t n_param, n_break;
    double param[CD_PERF_CURVE_PARAM], se[CD_PERF_CURVE_PARAM];
    double cov[CD_PERF_CURVE_PARAM][CD_PERF_CURVE_PARAM];
    cd_perf_curve_turn turn;
    /* relative, of the points round the form (robust standard deviation) */
    double noise;
    double local_noise; /* of the points round their neighbours */
    double misfit;      /* mean square of (r/s), see (4) */
    double follow;      /* see (5) */
    /* BIC; infinity: not tried or not possible. Of a table: its misfit */
    double score[CD_N_PERF_CURVE];
    /* of the affine fit by plain least squares after a median of three: the rule behind EOP's
     * "linear" */
    double r2_affine;
    /* table, irregular and where residuals are followed: T at knots, linear between, `beyond` after
     * the last */
    uint32_t n_knot;
    double *knot_x, *knot_t; /* (n_knot) */
    double beyond;           /* seconds a unit */
} cd_perf_curve;

/* Fit n points. *out is to be freed. Errors: EINVALID (see (8); names the point), ENOMEM. o NULL:
 * defaults. */
cdmpp_status cd_perf_curve_fit(const double *x, const double *t, size_t n,
                               const cd_perf_curve_options *o, CD_GIVE cd_perf_curve *out,
                               cdmpp_err *err);
void cd_perf_curve_free(cd_perf_curve *p); /* zeroed is fine */

/* Seconds at size x >= 0; never falls when x grows. Outside x_min .. x_max by the form's own
 * law. */
double cd_perf_curve_eval(const cd_perf_curve *p, double x);
/* The law alone, without the correction by residuals; of a table the table. */
double cd_perf_curve_eval_law(const cd_perf_curve *p, double x);
/* One more measurement at x lies in low .. high with probability `level` (0.9): noise, and
 * uncertainty of the parameters. Widens outside of the points of a table by the distance. */
void cd_perf_curve_interval(const cd_perf_curve *p, double x, double level, double *low,
                            double *high);
/* Does the law change at a place that is known? Then p->turn says where. */
static inline bool cd_perf_curve_turns(const cd_perf_curve *p) {
    return p->turn.high >= p->turn.low;
}
/* "at 40, between 39 and 41", or "between 4 and 16". */
void cd_perf_curve_turn_put(cd_buf *b, const cd_perf_curve_turn *t);
/* (6) */
cd_perf_curve_class cd_perf_curve_classify(const cd_perf_curve *p);
/* "constant", "affine" ... */
const char *cd_perf_curve_form_name(cd_perf_curve_form f);

/* correlation -- which settings a time depends on, and at which value each of them changes its
 * effect.
 *
 *   samples (n) x settings (k), seconds (n)  ->  an axis each: pearson, spearman, distance,
 *                                               partial, turning point
 *
 *   (1) spearman: pearson of ranks, equal values share their mean rank;
 *   (2) distance correlation (Szekely, Rizzo, Bakirov 2007), 0 .. 1, 0 only where independent in
 *       the limit: finds dependence that is not monotone;
 *   (3) partial: of ranks, given the ranks of all other axes, from the inverse of their correlation
 *       matrix;
 *   (4) an axis or a time that does not vary has correlation 0; partial is NaN where the other axes
 *       determine this one;
 *   (5) strong: |spearman|, or distance, at least `strong`. The turning point of a strong axis is
 *   that of the curve through the
 *       medians at each of its values; where the time falls along the axis, the first value from
 *       which on it stays within 5 % of
 *       its last (more of it does not pay); NaN where there is none, it may be anywhere, or the
 *       axis has fewer than 3 values.
 * O(n^2 k) time, O(n k + k^2) memory. No state, any thread. */

typedef struct cd_correlation_axis {
    double pearson, spearman, distance, partial;
    bool strong, falls;
    double turning;          /* where the time falls; NaN: none */
    cd_perf_curve_turn turn; /* where it rises; low NaN: none */
    cd_perf_curve_form form; /* of a strong axis that rises */
} cd_correlation_axis;

/* Pearson's coefficient of n pairs; 0 where one side does not vary. */
double cd_correlation_pearson(const double *a, const double *b, size_t n);
/* (2). Errors: ENOMEM. */
cdmpp_status cd_correlation_distance(const double *a, const double *b, size_t n, double *out,
                                     cdmpp_err *err);
/* setting (n, k) row-major, all finite; out (k). strong 0: 0.3. Errors: EINVALID (n < 3, a value
 * that is no number: its row and column), ENOMEM. */
cdmpp_status cd_correlation_axes(const double *setting, const double *seconds, size_t n, size_t k,
                                 double strong, cd_correlation_axis *out, cdmpp_err *err);

/* correlation_table -- which settings of a table of measurements a time depends on, strongest
 * first.
 *
 *   threads,batch,seconds          a row is a measurement, a column a setting or the time
 *   1,8,0.020 */

typedef struct cd_correlation_table {
    cd_arena arena;
    const char *target;        /* the column that depends on the others */
    size_t n_row, k;           /* measurements; settings */
    const char **name;         /* (k) settings, strongest first; equal ones as in the table */
    cd_correlation_axis *axis; /* (k) in the same order */
} cd_correlation_table;

/* axes: columns "a,b" that are settings; NULL: all but the target. strong: see cd_correlation_axes.
 * Errors, with path: those of cd_csv_table_read and cd_correlation_axes; EUSAGE (axes: the target,
 * one twice), ESCHEMA (no such column, no setting). Free `out` after an error too. */
cdmpp_status cd_correlation_table_read(const char *path, const char *target, const char *axes,
                                       double strong, cd_correlation_table *out, cdmpp_err *err);
void cd_correlation_table_free(cd_correlation_table *t); /* zeroed is fine */
/* A table; a JSON object (correlation.c). */
void cd_correlation_table_print(const cd_correlation_table *t, cd_buf *out);
void cd_correlation_table_print_json(const cd_correlation_table *t, cd_buf *out);

/* curve_set -- curves out of tables or a store, each with the law that was fitted to it.
 *
 *   op_curves.tsv, CSV, store ──> points ──fit──> curves ──> text, JSON, chart
 *
 * Points of a curve may come in any order; of several points of one size the least time counts. A
 * curve or line that cannot be used is reported through `skip`, counted, and the rest goes on. One
 * thread. Sizes in any unit, seconds. */

enum { CD_CURVE_SET_DRAWN = 8 }; /* curves that keep their points, for a chart */

typedef struct cd_curve_set_curve {
    const char *name, *op; /* op "": not said */
    cd_perf_curve fit;
    /* points that are kept; 0: not one of the first CD_CURVE_SET_DRAWN */
    size_t n;
    double *x, *t; /* (n) sizes, strictly ascending; seconds */
} cd_curve_set_curve;

typedef struct cd_curve_set {
    /* set by the caller */
    const char *op;                                /* only of this operator; NULL: all */
    size_t limit;                                  /* at most so many curves; 0: all */
    double tolerance;                              /* of cd_perf_curve_options; 0: its default */
    void (*skip)(void *ctx, const cdmpp_err *why); /* NULL: nobody listens */
    void *ctx;
    /* found */
    cd_arena arena;
    cd_curve_set_curve *curve; /* (n) */
    size_t n, cap, skipped;
} cd_curve_set;

void cd_curve_set_free(cd_curve_set *c); /* zeroed is fine */
/* Adds the curves of a file: what cdmpp-profile curves writes (its first line has tabs), or CSV
 * with the columns size and seconds, and curve (optional) for several. "-" is CSV on standard
 * input. Errors, with path and line: EIO, EPARSE, ESCHEMA, ERANGE (a size or time that is not above
 * 0), ENODATA, ENOMEM. */
cdmpp_status cd_curve_set_read(cd_curve_set *c, const char *path, cdmpp_err *err);
/* Adds the curves of a store: workloads of c->op whose shapes differ in one dimension,
 * "OPERAND.DIMENSION" (NULL: "0.0"). device NULL: each device has its own curves. Errors: EUSAGE
 * (dim), those of cd_store_open and cd_store_query, ERANGE (too many measurements), ENOMEM. */
cdmpp_status cd_curve_set_read_store(cd_curve_set *c, const char *path, const char *device,
                                     const char *dim, cdmpp_err *err);

/* ---- for people and programs (curve_set.c) ---- */
/* at (n_at): sizes at which to give seconds, with the interval of probability `level`. */
void cd_curve_set_print(const cd_curve_set *c, const double *at, size_t n_at, double level,
                        cd_buf *out);
/* an object */
void cd_curve_set_print_json(const cd_curve_set *c, const double *at, size_t n_at, double level,
                             cd_buf *out);
/* The first curves as an SVG file. Errors: EIO, ENOMEM. */
cdmpp_status cd_curve_set_draw(const cd_curve_set *c, const char *path, cdmpp_err *err);

/* network_programs -- a network by its name, its tasks, and a measured program for each of them.
 *
 *   source ─ graph ─ workload ─ program_select ─> what op_profile runs and op_curve puts into a
 *                                                 table
 *
 * One thread. */

typedef struct cd_network_programs {
    cd_graph *graph;
    cd_workload *workload;
    cd_program_select *select;
    size_t bad; /* tasks without a program */
} cd_network_programs;

/* rules: of a back end, NULL: TVM's. `o` is of measuring: logs, trials, target, hardware, the
 * measurer. `l` gets a note about each operator that is left out and each task without a program.
 * Free *out, after an error too. Errors: those of cd_network_source_read, cd_workload_build and
 * cd_program_select_run. */
cdmpp_status cd_network_programs_make(const cd_network_source *s, const cd_fusion_rules *rules,
                                      const cd_program_select_options *o,
                                      const cd_record_listener *l, cd_network_programs *out,
                                      cdmpp_err *err);
void cd_network_programs_free(cd_network_programs *x); /* zeroed is fine */
/* The chosen programs with their times, one record line each. Errors: those of cd_record_write,
 * ENOMEM. */
cdmpp_status cd_network_programs_put_records(cd_buf *b, cd_network_programs *x, cdmpp_err *err);

/* perf_curve_read -- curves of operators, line by line: op_curves.tsv(.xz) and what `cdmpp-profile
 * curves` writes.
 *
 *   set <tab> host <tab> operator <tab> device_id <tab> varied <tab> shape <tab> points_n:ms
 *   datasets  dell01  nn.dense  0  ((2, 2), (0, 0))  ((-1, 1), (47, 1))  1:0.0033 2:0.0030 ...
 *
 *   (1) the first line names the columns, in any order; host, operator and points_n:ms must be
 *       there, others are ignored;
 *   (2) points are put in the order of their sizes; a size that stands twice keeps its smallest
 *       time;
 *   (3) sizes and times are above 0 and finite; a bad line is an error with file and line, reading
 *       goes on behind it.
 * Plain, gzip, xz, zstd or "-". Memory is that of the longest line. A reader belongs to one
 * thread. */

typedef struct cd_curve {
    CD_KEEP const char *set, *host, *op, *varied, *shape; /* "" where there is none */
    long device_id;                                       /* below 0: a processor */
    size_t n;
    CD_KEEP const double *x, *t; /* (n) sizes; seconds */
} cd_curve;

typedef struct cd_curves cd_curves;
/* Open a table and read its header. Keeps `path`. Errors: EIO EPARSE (not readable), ESCHEMA (a
 * column is missing), ENOMEM. */
cdmpp_status cd_curves_open(CD_KEEP const char *path, CD_GIVE cd_curves **out, cdmpp_err *err);
/* The next curve, valid until the next call; at the end *more is false. After an error with *more
 * true go on, else stop. */
cdmpp_status cd_curves_next(cd_curves *r, cd_curve *out, bool *more, cdmpp_err *err);
void cd_curves_close(CD_TAKE cd_curves *r); /* NULL is fine */

/* size_list -- the sizes at which a curve is measured: "batch=1,4,8", "input=64,128,224" or
 * "input=1..4096": 1, 2, 4, ..., 4096. */

enum { CD_SIZE_LIST_MAX = 32, CD_SIZE_LIST_LARGEST = 1048576 };

typedef struct cd_size_list {
    bool input; /* sizes of the input; else batch sizes */
    size_t n;
    int v[CD_SIZE_LIST_MAX]; /* (n) ascending */
} cd_size_list;

/* False: the text is not 2 to CD_SIZE_LIST_MAX ascending numbers from 1 to CD_SIZE_LIST_LARGEST
 * behind "batch=" or "input=". A..B stands for A, the powers of two between, and B. */
bool cd_size_list_parse(const char *text, cd_size_list *out);
#endif
