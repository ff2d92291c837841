/* calibration -- from what the members of an ensemble say to one answer and how sure it is.
 *
 *   kind 0 -- ln s --\   weights                      shift, tilt
 *   kind 1 -- ln s ---+---------> m = sum w[k] a[k] ---------------> point_log
 *   kind 2 -- ln s --/            |
 *   spread of the kinds, m, x ----+--> trees --> sigma ------------> sigma
 *                                 |  m + q_low sigma, q_mid, q_high
 *                                 '------------------------------> low_log, median_log, high_log
 *   x, range of training ----------------------------------------> flags
 *
 * A kind is a way of estimating (trees over rows, trees over program vectors, a
 * network). Training cuts its programs into F folds and makes of every kind F
 * estimators, the f-th without fold f. cd_calibration_fit sees of each program the answers
 * of the estimators that did not see it ("out of fold"); cd_calibration_apply sees of a new
 * program each kind's mean of ln s over its F estimators. F = 1: one estimator a kind,
 * and the programs of the fit are those of the validation part.
 *
 * (1) weights >= 0, sum 1, in twentieths: the least mean loss over the programs of the fit, each
 *     candidate at its own best shift (the kinds differ in bias, and the shift below mends
 *     that). A candidate must beat equal weights by 2 % of the loss times n_kind times
 *     its squared distance: a small validation part decides less than it seems to.
 * (2) sigma: trees on x, the spread of the kinds, their deviations, m and the distance from the
 *     range; those of fold f do not learn from fold f, a new program takes the geometric mean of
 *     all. With fewer than 300 programs or 20 tasks sigma is a + b * spread, b = 0 without evidence
 *     for it. It is scaled like a standard deviation: high_log - low_log = 2 * 1.645 sigma at level
 *     0.9, and more with few errors (cd_calibration_few).
 * (3) q_low, q_mid, q_high: quantiles of (ln y - m) / sigma where each task counts the same, so
 *     that the interval holds for a program of a new task (calibration_pick.c); q_mid is the
 *     plain median. A mean over F estimators errs less than one does, but a program of the fit has
 *     the answer of one only: sigma shrinks by sqrt(1 - 0.083 (F-1)/F), measured (calibration.c).
 * (4) point: exp(m + shift - tilt sigma^2), never outside the interval. |p/y - 1| counts an answer
 *   twice too slow
 *     as 100 % and one twice too fast as 50 %, so the least MAPE lies below the median: for
 *     ln y normal around m at exp(m - sigma^2), the median of y weighted by 1/y. shift and tilt
 *     (0..1.5) are
 *     fitted, tilt 1 preferred by a hair. Seconds that are to be added up (a network of operators)
 *     want the
 *     mean instead: exp(median_log + sigma^2/2) for the same normal law.
 * (5) out of range: the distance from the columns' [least, largest] of training
 *     (calibration_pick.c) is above that of 95 % of the fit's programs, each held against the
 *     other folds. So about 5 % of new tasks like the old are flagged; what is not unlike in any
 *     column is not, however foreign the network it is from.
 *
 * A plain table of numbers: no data set, no configuration. A cd_calibration is immutable, any
 * number of threads may apply it, each with a scratch of its own. The result of a fit
 * does not depend on the order of the programs nor on the number of threads; of more
 * than 30,000 programs a sample is taken. */
#ifndef CD_CALIBRATION_H
#define CD_CALIBRATION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "learner/loss/loss.h"

#define CD_CALIBRATION_MAX_KIND    8
#define CD_CALIBRATION_MAX_FOLD    64
#define CD_CALIBRATION_MAX_PROGRAM 30000 /* of a fit; a sample of them where there are more */
#define CD_CALIBRATION_POINTS      "mape|median"
typedef enum { CD_CALIBRATION_MAPE, CD_CALIBRATION_MEDIAN } cd_calibration_point;

/* What the fit sees; all arrays borrowed and finite. */
typedef struct cd_calibration_input {
    size_t n, n_kind, width, n_fold;
    const double *kind_log_s; /* (n_kind, n) out-of-fold answers, ln s */
    const double *log_y;      /* (n) measured, ln s */
    /* (n, width) program vectors, learner/inputs/tree_input.h PROGRAM form */
    const float *x;
    const uint32_t *fold;  /* (n) in 0..n_fold-1; NULL only where n_fold == 1 */
    const uint32_t *group; /* (n) task of the program, any numbers */
    const float *range;    /* (2, width) least and largest of the programs trained on, see
                                 cd_calibration_range_add; NULL: of x */
} cd_calibration_input;

typedef struct cd_calibration_options {
    double level; /* of the interval, 0.5..0.99 */
    cd_calibration_point point;
    cd_tree_loss objective; /* of the weights: CD_TREE_LOSS_MAPE or any other of r */
    uint64_t seed;
    bool plain;       /* sigma as with few programs, whatever there are */
    cd_threads *pool; /* borrowed; NULL: this thread alone */
} cd_calibration_options;
/* level 0.9, MAPE, MAPE, seed 0, not plain, no pool. */
cd_calibration_options cd_calibration_options_default(void);

/* What the fit found, over its own programs, every sigma from trees that did not see the program's
 * fold. */
typedef struct cd_calibration_info {
    size_t n_kind, n_sigma; /* n_sigma: boosters; 0: the form of two numbers */
    size_t n, n_group;      /* programs and tasks */
    double n_independent;   /* errors that tell something new, tasks..programs */
    double weight[CD_CALIBRATION_MAX_KIND];
    double shift, tilt, q_low, q_mid, q_high, shrink;
    double mape_median, mape_point; /* fractions, of exp(median_log) and exp(point_log) */
    double decile_ratio;            /* mean |e| of the point, least certain tenth over the rest */
    double decile_ratio_log;        /* the same of |ln y - median_log| */
    /* share of programs that the range of the other folds would flag */
    double flagged;
} cd_calibration_info;

typedef struct cd_calibration cd_calibration;

/* Are e independent errors (info.n_independent) too few for quantiles of the level? The interval is
 * then wider than all of them. */
bool cd_calibration_few(double e, double level);

/* Errors: ESCHEMA (sizes, fewer than 2 programs), ERANGE (level), ENUMERIC (an input that is not
 * finite), EBACKEND, ENOMEM. */
cdmpp_status cd_calibration_fit(const cd_calibration_input *in, const cd_calibration_options *opt,
                                CD_GIVE cd_calibration **out, cdmpp_err *err);
void cd_calibration_free(CD_TAKE cd_calibration *c); /* NULL is fine */
cd_calibration_info cd_calibration_info_of(const cd_calibration *c);

/* Widen range (2, width) by n rows of x; the first call of a range has first = true. */
void cd_calibration_range_add(float *range, const float *x, size_t n, size_t width, bool first);
/* Sum over columns of how far x lies outside, in widths of the range and at most 1 each; *n: how
 * many do. */
double cd_calibration_outside_of(const float *range, const float *x, size_t width, size_t *n);

#define CD_CALIBRATION_OUT_OF_RANGE 1u

/* What apply writes; each array (n), NULL: not wanted. All ln s except sigma and flags. */
typedef struct cd_calibration_output {
    double *point_log;  /* the answer */
    double *median_log; /* as often too slow as too fast */
    double *sigma;      /* of ln y, see (2) */
    double *low_log, *high_log;
    uint32_t *flags; /* CD_CALIBRATION_OUT_OF_RANGE */
    double *outside; /* cd_calibration_outside_of; not a logarithm */
} cd_calibration_output;

/* Bytes that apply needs, whatever n is; 16-byte aligned. */
size_t cd_calibration_scratch_bytes(const cd_calibration *c);
/* n programs: kind_log_s (n_kind, n), x (n, width). fold -1: new programs; else programs of the
 * fit, all of this fold, which are answered as new ones: by the booster of sigma that their errors
 * are not in. No heap, once the boosters were read from a file. Errors: ENUMERIC (an answer that is
 * not finite), EBACKEND; out is then partly written. */
cdmpp_status cd_calibration_apply(const cd_calibration *c, const double *kind_log_s, const float *x,
                                  size_t n, int fold, void *scratch,
                                  const cd_calibration_output *out, cdmpp_err *err);

/* One JSON object to `json`, the boosters of sigma to `blob`, whose sizes are in the object.
 * Errors: EBACKEND, ENOMEM. */
cdmpp_status cd_calibration_write(const cd_calibration *c, cd_buf *json, cd_buf *blob,
                                  cdmpp_err *err);
/* `blob` (n bytes) is exactly what write appended and has been compared with a checksum: XGBoost's
 * own reader trusts it. Everything in the object is checked. Errors: ESCHEMA, ERANGE, EMODEL,
 * EBACKEND, ENOMEM. */
cdmpp_status cd_calibration_read(const cd_json *v, const void *blob, size_t n,
                                 CD_GIVE cd_calibration **out, cdmpp_err *err);
/* Kinds and columns that apply expects: for the reader of a model to compare. */
size_t cd_calibration_n_kind(const cd_calibration *c);
size_t cd_calibration_width(const cd_calibration *c);
/* (2, width) least and largest of the programs trained on. */
CD_KEEP const float *cd_calibration_range(const cd_calibration *c);
#endif
