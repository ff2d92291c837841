/* curve_set_internal -- how readers add to a curve_set. */
#ifndef CD_CURVE_SET_INTERNAL_H
#define CD_CURVE_SET_INTERNAL_H
#include "profiler/curves/curve_set.h"

bool cd_curve_set_full(const cd_curve_set *c); /* c->limit */
/* Counts and reports what cannot be used. */
void cd_curve_set_skip(cd_curve_set *c, const cdmpp_err *why);
/* Sorts points (n) by size in place, keeps the least time of each size; how many are left, 0: out of memory. */
size_t cd_curve_set_sort(double *x, double *t, size_t n);
/* Fits and adds; name and op are copied. A curve that cannot be fitted is skipped. Errors: ENOMEM. */
cdmpp_status cd_curve_set_add(cd_curve_set *c, const char *name, const char *op, const double *x, const double *t, size_t n, cdmpp_err *err);
#endif
