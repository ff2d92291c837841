/* calib -- from what the members of an ensemble say to one answer and how sure it is.
 *
 *   kind 0 -- ln s --\   weights                      shift, tilt
 *   kind 1 -- ln s ---+---------> m = sum w[k] a[k] ---------------> point_log
 *   kind 2 -- ln s --/            |                   median shift
 *                                 |------------------------------> median_log
 *   spread of the kinds, m, x --> trees --> sigma
 *                                 |  m + q_low sigma .. m + q_high sigma
 *                                 '------------------------------> low_log .. high_log
 *   x, range of training ----------------------------------------> flags
 *
 * A kind is a way of estimating (trees over rows, trees over program vectors, a
 * network). Training cuts its programs into F folds and makes of every kind F
 * estimators, the f-th without fold f. cd_calib_fit sees of each program the answers
 * of the estimators that did not see it ("out of fold"); cd_calib_apply sees of a new
 * program each kind's mean of ln s over its F estimators. F = 1: one estimator a kind,
 * and the programs of the fit are those of the validation part.
 *
 * A plain table of numbers: no data set, no configuration. A cd_calib is immutable, any
 * number of threads may apply it, each with a scratch of its own. The result of a fit
 * does not depend on the order of the programs nor on the number of threads. */
#ifndef CD_CALIB_H
#define CD_CALIB_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "learner/loss.h"

#define CD_CALIB_MAX_KIND 8
#define CD_CALIB_MAX_FOLD 64
#define CD_CALIB_POINTS "mape|median"
typedef enum { CD_CALIB_MAPE, CD_CALIB_MEDIAN } cd_calib_point;

/* What the fit sees; all arrays borrowed and finite. */
typedef struct cd_calib_in {
    size_t n, n_kind, width, n_fold;
    const double *kind_log_s; /* (n_kind, n) out-of-fold answers, ln s */
    const double *log_y;      /* (n) measured, ln s */
    const float *x;           /* (n, width) program vectors, learner/input.h PROGRAM form */
    const uint32_t *fold;     /* (n) in 0..n_fold-1; NULL only where n_fold == 1 */
    const uint32_t *group;    /* (n) task of the program, any numbers */
    const float *range;       /* (2, width) least and largest of the programs trained on, see
                                 cd_calib_range_add; NULL: of x */
    const double *spread2;    /* (n_kind, n_kind) or NULL: mean over programs that no estimator saw and over
                                 folds f of (a[j][f] - mean a[j]) (a[k][f] - mean a[k]); diagonal alone is fine */
} cd_calib_in;

typedef struct cd_calib_opt {
    double level;         /* of the interval, 0.5..0.99 */
    cd_calib_point point;
    cd_loss objective;    /* of the weights: CD_LOSS_MAPE or any other of r */
    uint64_t seed;
    int nthread;          /* for XGBoost, >= 1 */
} cd_calib_opt;
/* level 0.9, MAPE, MAPE, seed 0, 1 thread. */
cd_calib_opt cd_calib_opt_default(void);

/* What the fit found, over its own programs, every sigma from trees that did not see the program's fold. */
typedef struct cd_calib_info {
    size_t n_kind, n_fold, n_sigma;  /* n_sigma: boosters; 0: the form of two numbers */
    double weight[CD_CALIB_MAX_KIND];
    double shift, tilt, median_shift, q_low, q_high, shrink;
    double mape_median, mape_point;  /* fractions, of exp(median_log) and exp(point_log) */
    double decile_ratio;             /* mean |e| of the least certain tenth over that of the rest */
    double flagged;                  /* share of programs that would be flagged by the range of the other folds */
} cd_calib_info;

typedef struct cd_calib cd_calib;

/* Errors: ESCHEMA (sizes, a fold without programs), ENUMERIC (an input that is not finite),
 * EBACKEND, ENOMEM. */
cdmpp_status cd_calib_fit(const cd_calib_in *in, const cd_calib_opt *opt, CD_GIVE cd_calib **out, cdmpp_err *err);
void cd_calib_free(CD_TAKE cd_calib *c); /* NULL is fine */
cd_calib_info cd_calib_info_of(const cd_calib *c);

/* Widen range (2, width) by n rows of x; the first call of a range has first = true. */
void cd_calib_range_add(float *range, const float *x, size_t n, size_t width, bool first);

#define CD_FLAG_OUT_OF_RANGE 1u

/* What apply writes; each array (n), NULL: not wanted. All ln s except sigma and flags. */
typedef struct cd_calib_out {
    double *point_log;         /* the answer */
    double *median_log;        /* as often too high as too low */
    double *sigma;             /* of ln(y): half the interval's width is about 1.64 sigma at level 0.9 */
    double *low_log, *high_log;
    uint32_t *flags;           /* CD_FLAG_OUT_OF_RANGE */
} cd_calib_out;

/* Bytes that apply needs, whatever n is; 16-byte aligned. */
size_t cd_calib_scratch_bytes(const cd_calib *c);
/* n new programs: kind_log_s (n_kind, n), x (n, width). No heap but inside XGBoost.
 * Errors: ENUMERIC (an answer that is not finite), EBACKEND; out is then partly written. */
cdmpp_status cd_calib_apply(const cd_calib *c, const double *kind_log_s, const float *x, size_t n, void *scratch,
                            const cd_calib_out *out, cdmpp_err *err);
/* Columns of one program vector outside the range of training; *worst, where not NULL: the farthest of them. */
size_t cd_calib_outside(const cd_calib *c, const float *x, size_t *worst);

/* One JSON object to `json`, the boosters of sigma to `blob`, whose sizes are in the object.
 * Errors: EBACKEND, ENOMEM. */
cdmpp_status cd_calib_write(const cd_calib *c, cd_buf *json, cd_buf *blob, cdmpp_err *err);
/* `blob` (n bytes) is exactly what write appended and has been compared with a checksum: XGBoost's own reader trusts
 * it. Everything in the object is checked. Errors: ESCHEMA, ERANGE, EMODEL, EBACKEND, ENOMEM. */
cdmpp_status cd_calib_read(const cd_json *v, const void *blob, size_t n, CD_GIVE cd_calib **out, cdmpp_err *err);
/* Kinds and columns that apply expects: for the reader of a model to compare. */
size_t cd_calib_n_kind(const cd_calib *c);
size_t cd_calib_width(const cd_calib *c);
#endif
