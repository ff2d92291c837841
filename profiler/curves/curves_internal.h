/* What the files of profiler/curves share among themselves. */
#ifndef CD_PROFILER_CURVES_INTERNAL_H
#define CD_PROFILER_CURVES_INTERNAL_H
#include "profiler/curves/curves.h"

/* curve_set_internal -- how readers add to a curve_set. */

bool cd_curve_set_full(const cd_curve_set *c); /* c->limit */
/* Counts and reports what cannot be used. */
void cd_curve_set_skip(cd_curve_set *c, const cdmpp_err *why);
/* Sorts points (n) by size in place, keeps the least time of each size; how many are left, 0: out
 * of memory. */
size_t cd_curve_set_sort(double *x, double *t, size_t n);
/* Fits and adds; name and op are copied. A curve that cannot be fitted is skipped. Errors:
 * ENOMEM. */
cdmpp_status cd_curve_set_add(cd_curve_set *c, const char *name, const char *op, const double *x,
                              const double *t, size_t n, cdmpp_err *err);

/* perf_curve_internal -- what the files of perf_curve share.
 *
 *   points (x, t, keep) ─ _prepare ─> s ─ _lines, _stairs, _table ─> candidates ─ perf_curve.c ─>
 *                                                                    choice ─ _residual ─> knots */

enum { CD_PERF_CURVE_CAP = 4 }; /* residuals above so many s count as that */

typedef struct cd_perf_curve_points {
    size_t n, n_kept;
    const double *x, *t; /* (n) borrowed */
    double *w;           /* (n) 1/T^2; 0: left out */
    double *keep;        /* (n) 1, or 0: left out */
    double *work;        /* (8 n + 16) scratch */
    double s, local;     /* see perf_curve.h (3) */
    bool warmup;
} cd_perf_curve_points;

typedef struct cd_perf_curve_candidate {
    cd_perf_curve_form form;
    uint32_t n_param, n_break;
    double param[CD_PERF_CURVE_PARAM];
    double break_se[2]; /* stairs: of w */
    double loss, score;
} cd_perf_curve_candidate;

/* Outliers, local noise, s. Sorts in work. */
void cd_perf_curve_prepare(cd_perf_curve_points *p, double tolerance);

/* The law at x; columns are the derivatives by each parameter. */
double cd_perf_curve_candidate_eval(const cd_perf_curve_candidate *c, double x);
void cd_perf_curve_candidate_gradient(const cd_perf_curve_candidate *c, double x,
                                      double *g /* (CD_PERF_CURVE_PARAM) */);
/* sum min((ln t/f)/s, cap)^2 over kept points. */
double cd_perf_curve_candidate_loss(const cd_perf_curve_candidate *c,
                                    const cd_perf_curve_points *p);

/* Symmetric positive system of up to 6; a row that depends on others gets 0. a is destroyed. */
void cd_perf_curve_solve_linear(double a[CD_PERF_CURVE_PARAM][CD_PERF_CURVE_PARAM], double *b,
                                uint32_t n);
/* The inverse in place of a; false: singular. */
bool cd_perf_curve_invert_matrix(double a[CD_PERF_CURVE_PARAM][CD_PERF_CURVE_PARAM], uint32_t n);

/* breaks 1 or 2; flat: the first slope is 0 (hinge). False: too few points. */
bool cd_perf_curve_fit_stairs(const cd_perf_curve_points *p, cd_perf_curve_candidate *out);
/* Two-sided quantile of Student's t. */
double cd_perf_curve_student(double level, double freedom);

/* The rising curve next to the points: block values at each point to fit (n), knots to kx, kt (n).
 * Returns the number of knots. */
uint32_t cd_perf_curve_fit_table(const cd_perf_curve_points *p, double *fit, double *kx, double *kt,
                                 double *beyond);
/* Knots of the law, moved by the residuals that neighbours share; 0: they share none and `always`
 * is not set. *noise: of what is left. kx, kt: (n + 3). */
uint32_t cd_perf_curve_fit_residual(const cd_perf_curve_points *p, const cd_perf_curve_candidate *c,
                                    bool always, double *kx, double *kt, double *share,
                                    double *noise);
#endif
