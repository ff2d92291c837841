/* transform -- labels as a network sees them: seconds <-> z, both ways exact.
 *
 *   y seconds ---- forward ---> z = (f(y) - mean) / std ---- inverse ---> y
 *
 *   kind              f(y)                                           ends that continue
 *   none              y, mean 0, std 1                               low
 *   log               ln y                                           none
 *   box_cox           ((y/g)^lambda - 1)/lambda, g = geometric mean  lambda > 0 low, < 0 high
 *   yeo_johnson       ((1+y us)^lambda - 1)/lambda, microseconds     low; lambda < 0 high
 *   quantile_normal   normal quantile of the rank of ln y            both
 *   quantile_uniform  rank of ln y, 0..1, between up to 500 knots    both
 *   min_max           y, mean = least, std = largest - least         low
 *   standard          y                                              low
 *
 * (1) mean and std are those of f over the train labels, except where the table
 *     says otherwise, mean 0 and std 1 for the quantiles; a std of 0 counts as 1.
 * (2) lambda has the largest likelihood in -2..2. Box-Cox over the geometric mean
 *     gives the same z as without it and does not lose digits. Yeo-Johnson counts
 *     microseconds: in seconds 1+y hardly differs from 1 and f is a straight line.
 * (3) A formula ends where it would ask for a latency <= 0 or infinite (Box-Cox:
 *     lambda*f + 1 <= 0). Ten times below the fastest train label ("low") and ten
 *     times above the slowest ("high"), for the quantiles at the outermost knots,
 *     it goes on as a straight line of ln y over z with the slope it had there
 *     (quantiles: the mean slope between the knots, or the spread of ln y). So
 *     inverse is finite, > 0 and rises for every finite z, and forward is its
 *     inverse there too.
 * (4) inverse ends at CD_TRANSFORM_MIN_S and CD_TRANSFORM_MAX_S seconds; -inf and
 *     +inf give these, NaN stays NaN and is the caller's to refuse.
 * (5) Equal quantiles are one knot at their mean rank, so knots rise strictly.
 *
 * JSON: {"kind":"box_cox","lambda":..,"centre":..,"mean":..,"std":..,"log_range":[..,..],
 * "knots":[ln y..],"levels":[rank..]}, the last two for the quantiles only; numbers
 * with 17 digits, so that a transform read back is the same bit for bit.
 * A plain value: copy it, share it between threads. */
#ifndef CD_TRANSFORM_H
#define CD_TRANSFORM_H
#include "base/core/core.h"
#include "base/text/text.h"

#define CD_TRANSFORMS                                                                              \
    "none|log|box_cox|yeo_johnson|quantile_normal|quantile_uniform|min_max|standard"
typedef enum {
    CD_TRANSFORM_NONE,
    CD_TRANSFORM_LOG,
    CD_TRANSFORM_BOX_COX,
    CD_TRANSFORM_YEO_JOHNSON,
    CD_TRANSFORM_QUANTILE_NORMAL,
    CD_TRANSFORM_QUANTILE_UNIFORM,
    CD_TRANSFORM_MIN_MAX,
    CD_TRANSFORM_STANDARD
} cd_transform_kind;

#define CD_TRANSFORM_KNOTS 500
#define CD_TRANSFORM_MIN_S 1e-15
#define CD_TRANSFORM_MAX_S 1e15

/* Where the formula ends: ln y, z there, and d(ln y)/dz beyond. */
typedef struct cd_transform_end {
    bool on;
    double log_s, z, slope;
} cd_transform_end;

typedef struct cd_transform {
    cd_transform_kind kind;
    double lambda, centre, mean, std;
    double log_min, log_max; /* of the train labels */
    size_t n_knot;
    double knot[CD_TRANSFORM_KNOTS];  /* ln y */
    double level[CD_TRANSFORM_KNOTS]; /* rank, 0..1 */
    cd_transform_end low, high;       /* follow from the rest */
} cd_transform;

/* Fit to n >= 1 labels of the train part. Errors: ESCHEMA (no label), ENUMERIC (a
 * label that is not finite or not in MIN_S..MAX_S), ENOMEM. */
cdmpp_status cd_transform_fit(cd_transform_kind kind, const double *y_s, size_t n,
                              cd_transform *out, cdmpp_err *err);

/* y in MIN_S..MAX_S. */
double cd_transform_forward(const cd_transform *t, double y_s);
double cd_transform_inverse(const cd_transform *t, double z);
/* ln of the inverse and, where `slope` is not NULL, its derivative: d(seconds)/dz =
 * seconds * slope. Unlike the inverse it does not stop at (4), so a loss still
 * pulls a prediction back from out there. */
double cd_transform_log_s(const cd_transform *t, double z, double *slope);

/* Appends the JSON object. */
void cd_transform_write(cd_buf *out, const cd_transform *t);
/* Errors: ESCHEMA, ERANGE. */
cdmpp_status cd_transform_read(const cd_json *v, cd_transform *out, cdmpp_err *err);
#endif
