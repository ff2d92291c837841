/* library_op_score -- how wrong predictions of operators are, by class, device and distance
 * from what was trained on.
 *
 *   predicted, measured of rows -> groups (class, device) -> table
 *                               -> totals (class, seen device?, within sizes?)
 *
 * One owner, one thread. */
#ifndef CD_LIBRARY_OP_SCORE_H
#define CD_LIBRARY_OP_SCORE_H
#include "base/core/core.h"
#include "learner/operators/library_op_model.h"

typedef struct cd_library_op_score_row {
    cd_library_op_class class;
    const char *device; /* borrowed: outlives the score */
    bool seen, beyond;  /* device trained on; larger than any training row */
    double error;       /* predicted / measured - 1 */
    double inside;      /* 1: the interval holds the measured time, 0: it does not, NaN: there is none */
} cd_library_op_score_row;

typedef struct cd_library_op_score {
    cd_library_op_score_row *row; /* owned */
    size_t n, cap;
} cd_library_op_score;

typedef struct cd_library_op_score_sum {
    size_t n;
    double mape, median, bias, within20; /* mean and median |error|, median error, share with |error| <= 0.2 */
    double inside;      /* share of rows with an interval that holds the measured time; NaN: none has one */
} cd_library_op_score_sum;

/* Appends a row. Errors: ENOMEM. */
cdmpp_status cd_library_op_score_add(cd_library_op_score *s, const cd_library_op_score_row *row, cdmpp_err *err);
/* Of rows that `want` says yes to (NULL: all); n 0: the rest is NaN. Errors: ENOMEM. */
typedef bool cd_library_op_score_want(const cd_library_op_score_row *r, const void *ctx);
cdmpp_status cd_library_op_score_sum_of(const cd_library_op_score *s, cd_library_op_score_want *want, const void *ctx, cd_library_op_score_sum *out, cdmpp_err *err);
/* A Markdown table, one row for each class and device, then totals. Errors: ENOMEM. */
cdmpp_status cd_library_op_score_text(cd_library_op_score *s, cd_buf *out, cdmpp_err *err);
/* A list of objects, one for each class and device: {"class":"..","device":"..","seen":true,"n":9,
 * "mape":..,"median":..,"bias":..,"within20":..,"inside":.. or null}. Errors: ENOMEM. */
cdmpp_status cd_library_op_score_json(cd_library_op_score *s, cd_buf *out, cdmpp_err *err);
void cd_library_op_score_free(cd_library_op_score *s);
#endif
