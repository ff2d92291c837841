/* patterns_int -- what the files of patterns share. Not a door.
 *
 *   points (x, t, keep) ── patterns_prep ──> s ── patterns_lines, patterns_stairs, patterns_table ──> candidates ── patterns ──> choice */
#ifndef CD_PATTERNS_INT_H
#define CD_PATTERNS_INT_H
#include "profiler/curves/perf_curve.h"

enum { CD_PATTERN_CAP = 4 }; /* residuals above so many s count as that */

typedef struct cd_ppoints {
    size_t n, n_kept;
    const double *x, *t;        /* (n) borrowed */
    double *w;                  /* (n) 1/T^2; 0: left out */
    double *keep;               /* (n) 1, or 0: left out */
    double *work;               /* (8 n + 16) of whoever needs it for a while */
    double s, local;            /* see patterns.h (3) */
    bool warmup;
} cd_ppoints;

typedef struct cd_pcand {
    cd_pattern_form form;
    uint32_t n_param, n_break;
    double param[CD_PATTERN_PARAM];
    double break_se[2];         /* stairs: of w */
    double loss, score;
} cd_pcand;

/* Outliers, local noise, s. Sorts in work. */
void cd_pattern_prepare(cd_ppoints *p, double tolerance);
double cd_pattern_median(double *v, size_t n); /* n > 0; changes the order of v */

/* The law at x; columns are the derivatives by each parameter. */
double cd_pcand_at(const cd_pcand *c, double x);
void cd_pcand_gradient(const cd_pcand *c, double x, double *g /* (CD_PATTERN_PARAM) */);
/* sum min((ln t/f)/s, cap)^2 over kept points. */
double cd_pcand_loss(const cd_pcand *c, const cd_ppoints *p);

/* Symmetric positive system of up to 6; a row that depends on others gets 0. a is destroyed. */
void cd_psolve(double a[CD_PATTERN_PARAM][CD_PATTERN_PARAM], double *b, uint32_t n);
/* The inverse in place of a; false: singular. */
bool cd_pinvert(double a[CD_PATTERN_PARAM][CD_PATTERN_PARAM], uint32_t n);

void cd_pfit_constant(const cd_ppoints *p, cd_pcand *out);
void cd_pfit_affine(const cd_ppoints *p, cd_pcand *out);
/* breaks 1 or 2; flat: the first slope is 0 (hinge). False: too few points. */
bool cd_pfit_lines(const cd_ppoints *p, uint32_t breaks, bool flat, cd_pcand *out);
bool cd_pfit_stairs(const cd_ppoints *p, cd_pcand *out);

/* The rising curve next to the points: block values at each point to fit (n), knots to kx, kt (n). Returns the number of knots. */
uint32_t cd_pfit_table(const cd_ppoints *p, double *fit, double *kx, double *kt, double *beyond);
/* Knots of the law moved by what points are off together; 0: nothing is and `always` is not set. *noise: of what is left then. kx, kt: (n + 3). */
uint32_t cd_pfollow(const cd_ppoints *p, const cd_pcand *c, bool always, double *kx, double *kt, double *share, double *noise);
double cd_ptable_at(const double *kx, const double *kt, uint32_t n, double beyond, double x);
#endif
