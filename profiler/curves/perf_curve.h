/* perf_curve -- the time of an operator as a function of its size: which law it follows, and where the law changes.
 *
 *   constant   ________      affine  /        hinge      /      slopes   _/      stairs     __|   table: any other
 *                                   /               ____/              _/               __|      rising curve
 *                                  /                                  /              __|
 *
 *   constant   T = a                              affine   T = a + m1 x
 *   hinge      T = a + m2 max(x - x0, 0)          stairs   T = a + c ceil(x / w)      waves of a GPU: w work fits at once
 *   slopes     T = a + m1 min(x, x0) + m2 clip(x - x0, 0, x1 - x0) + m3 max(x - x1, 0)     two or three slopes, no jump
 *   table      the rising curve next to the points (isotonic regression): levels, linear between; irregular: not even that fits
 *
 *   (1) parameters are such that T rises with x (no slope below 0) and a >= 0: launching takes no negative time;
 *   (2) fits are in relative error: weights 1 / T^2, points far off their neighbours left out (a high first point is a warm-up),
 *       the rest by Huber's weights;
 *   (3) the noise s is measured without any form, from how far points lie off the line between their neighbours (median), and
 *       `tolerance` is added to it: a form is not refused for deviations that do not matter. The form is chosen by BIC with that known
 *       variance: smallest  sum min(r/s, 4)^2 + k ln n,  a break counted as two parameters since it is searched for (Zhang
 *       and Siegmund 2007); without the tolerance BIC takes ripples of 1 % on noiseless GPU curves for breaks;
 *   (4) a form whose mean square of r/s is above 1 + 10/sqrt(n) does not fit: then table, or irregular where points fall
 *       as often as they rise: the table does not fit either, or the noise is above 25 %;
 *   (5) times are predicted by more than the named law: by the law that is chosen at a fifth of the tolerance (or the table), corrected by
 *       the residuals that neighbours share: ln(t/T) of the points times a share (0 .. 1, by leave-one-out regression of each residual on
 *       its neighbours'), with lines between the points. White noise has share 0. Stairs are not corrected;
 *   (6) EOP's class: flat constant; linear affine, or whatever a line explains to 98 % of its variance (the rule behind EOP's
 *       figures, see r2_affine); piecewise the others;
 *   (7) the first break of a law is known no better than the points allow: `turn` ends at the nearest points, left and right, where a
 *       break would fit worse than chance explains at level 0.9. The noise is that of the residuals, and the tolerance too where fewer
 *       than 8 points are left over for it;
 *   (8) sizes ascend strictly; times are finite and above 0. At least 3 points; stairs need 12.
 * Sizes in any unit, times in seconds. No state, any thread. The forms are those of EOP's operator benchmark; isotonic regression: Barlow 1972.
 * How well they fit is measured in docs/reference/patterns.md. */
#ifndef CD_PERF_CURVE_H
#define CD_PERF_CURVE_H

#include "base/core/core.h"

typedef enum { CD_PERF_CURVE_CONSTANT, CD_PERF_CURVE_AFFINE, CD_PERF_CURVE_HINGE, CD_PERF_CURVE_SLOPES, CD_PERF_CURVE_STAIRS, CD_PERF_CURVE_TABLE, CD_PERF_CURVE_IRREGULAR, CD_N_PERF_CURVE } cd_perf_curve_form;
#define CD_PERF_CURVE_FORMS "constant|affine|hinge|slopes|stairs|table|irregular"
/* EOP's three classes: launch bound, throughput bound, a change between regimes; and none of them. */
typedef enum { CD_PERF_CURVE_FLAT, CD_PERF_CURVE_LINEAR, CD_PERF_CURVE_PIECEWISE, CD_PERF_CURVE_UNCLEAR } cd_perf_curve_class;
#define CD_PERF_CURVE_CLASSES "flat|linear|piecewise|unclear"

enum { CD_PERF_CURVE_PARAM = 6 };

typedef struct cd_perf_curve_options {
    double tolerance;           /* relative; 0: 0.05 */
    uint32_t forms;             /* 1 << form of those allowed; 0: all. A table is there in any case */
} cd_perf_curve_options;

typedef struct cd_perf_curve_turn {
    double at;                  /* the first break of the law, or the width of a step */
    double low, high;           /* see (7); NaN: the law has no break, or it may be anywhere among the points */
    bool rough;                 /* few points: `at` is one of many that fit as well */
} cd_perf_curve_turn;

typedef struct cd_perf_curve {
    cd_perf_curve_form form;
    uint32_t n, n_left_out;     /* points; of which outliers */
    bool warmup;                /* the first one was left out as too slow */
    double x_min, x_max;        /* of the points */
    /* a, slopes (or c), then breaks (or w) with their standard errors; NaN: not known (a break between two points of a gap) */
    uint32_t n_param, n_break;
    double param[CD_PERF_CURVE_PARAM], se[CD_PERF_CURVE_PARAM];
    double cov[CD_PERF_CURVE_PARAM][CD_PERF_CURVE_PARAM];
    cd_perf_curve_turn turn;
    double noise;               /* relative, of the points round the form (robust standard deviation) */
    double local_noise;         /* of the points round their neighbours */
    double misfit;              /* mean square of (r/s), see (4) */
    double follow;              /* see (5) */
    double score[CD_N_PERF_CURVE]; /* BIC; infinity: not tried or not possible. Of a table: its misfit */
    double r2_affine;           /* of the affine fit by plain least squares after a median of three: the rule behind EOP's "linear" */
    uint32_t n_knot;            /* table, irregular and where residuals are followed: T at knots, linear between, `beyond` after the last */
    double *knot_x, *knot_t;    /* (n_knot) */
    double beyond;              /* seconds a unit */
} cd_perf_curve;

/* Fit n points. *out is to be freed. Errors: EINVALID (see (8); names the point), ENOMEM. o NULL: defaults. */
cdmpp_status cd_perf_curve_fit(const double *x, const double *t, size_t n, const cd_perf_curve_options *o, CD_GIVE cd_perf_curve *out, cdmpp_err *err);
void cd_perf_curve_free(cd_perf_curve *p); /* zeroed is fine */

/* Seconds at size x >= 0; never falls when x grows. Outside x_min .. x_max by the form's own law. */
double cd_perf_curve_eval(const cd_perf_curve *p, double x);
/* The law alone, without the correction by residuals; of a table the table. */
double cd_perf_curve_eval_law(const cd_perf_curve *p, double x);
/* One more measurement at x lies in low .. high with probability `level` (0.9): noise, and uncertainty of the parameters. Widens
 * outside of the points of a table by the distance. */
void cd_perf_curve_interval(const cd_perf_curve *p, double x, double level, double *low, double *high);
/* Does the law change at a place that is known? Then p->turn says where. */
static inline bool cd_perf_curve_turns(const cd_perf_curve *p) { return p->turn.high >= p->turn.low; }
/* "at 40, between 39 and 41", or "between 4 and 16". */
void cd_perf_curve_turn_put(cd_buf *b, const cd_perf_curve_turn *t);
/* (6) */
cd_perf_curve_class cd_perf_curve_classify(const cd_perf_curve *p);
/* "constant", "affine" ... */
const char *cd_perf_curve_form_name(cd_perf_curve_form f);
#endif
