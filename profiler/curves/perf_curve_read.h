/* perf_curve_read -- curves of operators, line by line: op_curves.tsv(.xz) and what `cdmpp-profile curves` writes.
 *
 *   set <tab> host <tab> operator <tab> device_id <tab> varied <tab> shape <tab> points_n:ms
 *   datasets  dell01  nn.dense  0  ((2, 2), (0, 0))  ((-1, 1), (47, 1))  1:0.0033 2:0.0030 ...
 *
 *   (1) the first line names the columns, in any order; host, operator and points_n:ms must be there, others are ignored;
 *   (2) points are put in the order of their sizes; a size that stands twice keeps its smallest time;
 *   (3) sizes and times are above 0 and finite; a bad line is an error with file and line, reading goes on behind it.
 * Plain, gzip, xz, zstd or "-". Memory is that of the longest line. A reader belongs to one thread. */
#ifndef CD_PERF_CURVE_READ_H
#define CD_PERF_CURVE_READ_H

#include "base/core/core.h"

typedef struct cd_curve {
    CD_KEEP const char *set, *host, *op, *varied, *shape; /* "" where there is none */
    long device_id;             /* below 0: a processor */
    size_t n;
    CD_KEEP const double *x, *t; /* (n) sizes; seconds */
} cd_curve;

typedef struct cd_curves cd_curves;
/* Open a table and read its header. Keeps `path`. Errors: EIO EPARSE (not readable), ESCHEMA (a column is missing), ENOMEM. */
cdmpp_status cd_curves_open(CD_KEEP const char *path, CD_GIVE cd_curves **out, cdmpp_err *err);
/* The next curve, valid until the next call; at the end *more is false. After an error with *more true go on, else stop. */
cdmpp_status cd_curves_next(cd_curves *r, cd_curve *out, bool *more, cdmpp_err *err);
void cd_curves_close(CD_TAKE cd_curves *r); /* NULL is fine */
#endif
