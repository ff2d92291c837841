/* uncertainty -- does a model know when it is wrong?
 *
 *   |-----low======median======high-----|   covered: low <= measured <= high
 *
 * e = |predicted/measured - 1|, l = |ln(predicted/measured)|: e makes light of a prediction
 * far too low, l does not. Programs are ordered by rel_std; the least certain
 * tenth is the round(n/10), at least one, with the largest, ties by position. */
#ifndef CD_UNCERTAINTY_H
#define CD_UNCERTAINTY_H
#include "base/core/core.h"
#include "learner/report/train_artifacts.h"

typedef struct cd_uncertainty {
    size_t n;
    double coverage;      /* share of programs inside their interval */
    double width;         /* median of high/low */
    double least_certain; /* mean e of the least certain tenth */
    double rest;          /* mean e of the others; NaN when there are none */
    double least_certain_log, rest_log; /* the same two of l */
    double out_of_range;  /* share of programs flagged */
} cd_uncertainty;

/* measured_s (n) and what the model says of the same programs. Without intervals every
 * figure is NaN. Errors: ENOMEM. */
cdmpp_status cd_uncertainty_compute(const double *measured_s, const cd_train_artifacts_score *s, size_t n, cd_uncertainty *out, cdmpp_err *err);
/* One JSON object; NaN becomes null. */
void cd_uncertainty_json(cd_buf *out, const cd_uncertainty *u);
/* A line "    test, n=12, 90 % interval holds ..." for people; nothing when there are no intervals. */
void cd_uncertainty_text(cd_buf *out, const char *part, double level, const cd_uncertainty *u);
#endif
