/* tune_result -- is what was found right, and is it faster than what there was before?
 *
 *   best, untuned ─> compiled ─> each compared with the reference on the task's real shapes
 *                             ─> measured in turn: untuned, best, untuned, best ...     medians of
 *     REPEATS
 *
 *   (1) both are measured in the same minutes by turns, so that what disturbs one disturbs the
 *       other;
 *   (2) a best one whose results are wrong is none: the untuned one is kept (WRONG);
 *   (3) a best one that is slower is refused: the untuned one is kept (WORSE).
 * Of cd_tune_measure's thread. */
#ifndef CD_TUNE_RESULT_H
#define CD_TUNE_RESULT_H
#include "predictor/tune/session/tune_measure.h"

typedef enum cd_tune_verdict {
    CD_TUNE_BETTER, /* tuned is kept */
    CD_TUNE_WORSE,
    CD_TUNE_WRONG,
    CD_TUNE_FAILS,   /* untuned is kept */
    CD_TUNE_ALONE,   /* tuned is kept: there is no untuned one that runs */
    CD_TUNE_NONE,    /* neither runs */
    CD_TUNE_UNTUNED, /* nothing was tuned: untuned is kept */
} cd_tune_verdict;
const char *cd_tune_verdict_name(cd_tune_verdict v); /* "better", "worse" ... */

typedef struct cd_tune_side {
    cd_tune_cand cand; /* in the result's arena */
    cd_record_program job;
    cd_measure_item item;
    bool there;
    double seconds, max_error; /* CD_TUNE_FAILED_S: does not run */
    bool checked;
    cdmpp_err why; /* where it is not there, wrong, or does not run */
} cd_tune_side;

typedef struct cd_tune_result {
    cd_arena arena;
    cd_tune_side untuned, tuned;
    cd_tune_verdict verdict;
} cd_tune_result;

/* `best` NULL: only the untuned one. Errors: EINTERRUPTED, EIO, EBACKEND, ENOMEM. Free after an
 * error too. */
cdmpp_status cd_tune_result_make(cd_tune_measure *m, const cd_tune_task *t,
                                 const cd_tune_cand *best, cd_tune_result *out, cdmpp_err *err);
void cd_tune_result_free(cd_tune_result *r); /* zeroed is fine */
/* The side that is kept; NULL: neither runs. */
CD_KEEP cd_tune_side *cd_tune_result_kept(cd_tune_result *r);
/* Its record, with what it took. Lives with the result. Errors: ENOMEM. */
cdmpp_status cd_tune_result_record(cd_tune_side *s, cd_record *out, cdmpp_err *err);
#endif
