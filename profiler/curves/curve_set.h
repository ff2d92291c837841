/* curve_set -- curves out of tables or a store, each with the law that was fitted to it.
 *
 *   op_curves.tsv, CSV, store ──> points ──fit──> curves ──> text, JSON, chart
 *
 * Points of a curve may come in any order; of several points of one size the least time counts. A curve or line that cannot be used is reported through `skip`,
 * counted, and the rest goes on. One thread. Sizes in any unit, seconds. */
#ifndef CD_CURVE_SET_H
#define CD_CURVE_SET_H
#include "profiler/curves/perf_curve.h"

enum { CD_CURVE_SET_DRAWN = 8 };  /* curves that keep their points, for a chart */

typedef struct cd_curve_set_curve {
    const char *name, *op;      /* op "": not said */
    cd_perf_curve fit;
    size_t n;                   /* points that are kept; 0: not one of the first CD_CURVE_SET_DRAWN */
    double *x, *t;              /* (n) sizes, strictly ascending; seconds */
} cd_curve_set_curve;

typedef struct cd_curve_set {
    /* set by the caller */
    const char *op;             /* only of this operator; NULL: all */
    size_t limit;               /* at most so many curves; 0: all */
    double tolerance;           /* of cd_perf_curve_options; 0: its default */
    void (*skip)(void *ctx, const cdmpp_err *why); /* NULL: nobody listens */
    void *ctx;
    /* found */
    cd_arena arena;
    cd_curve_set_curve *curve;  /* (n) */
    size_t n, cap, skipped;
} cd_curve_set;

void cd_curve_set_free(cd_curve_set *c); /* zeroed is fine */
/* Adds the curves of a file: what cdmpp-profile curves writes (its first line has tabs), or CSV with the columns size and seconds, and curve (optional) for several.
 * "-" is CSV on standard input. Errors, with path and line: EIO, EPARSE, ESCHEMA, ERANGE (a size or time that is not above 0), ENODATA, ENOMEM. */
cdmpp_status cd_curve_set_read(cd_curve_set *c, const char *path, cdmpp_err *err);
/* Adds the curves of a store: workloads of c->op whose shapes differ in one dimension, "OPERAND.DIMENSION" (NULL: "0.0"). device NULL: each device has its
 * own curves. Errors: EUSAGE (dim), those of cd_store_open and cd_store_query, ERANGE (too many measurements), ENOMEM. */
cdmpp_status cd_curve_set_read_store(cd_curve_set *c, const char *path, const char *device, const char *dim, cdmpp_err *err);

/* ---- for people and programs (curve_set_report.c, curve_set_draw.c) ---- */
/* at (n_at): sizes at which to give seconds, with the interval of probability `level`. */
void cd_curve_set_print(const cd_curve_set *c, const double *at, size_t n_at, double level, cd_buf *out);
void cd_curve_set_print_json(const cd_curve_set *c, const double *at, size_t n_at, double level, cd_buf *out); /* an object */
/* The first curves as an SVG file. Errors: EIO, ENOMEM. */
cdmpp_status cd_curve_set_draw(const cd_curve_set *c, const char *path, cdmpp_err *err);
#endif
