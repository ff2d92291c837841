/* tune_resume -- uses earlier measurements: those of an earlier run with the same log, and those of
 * similar tasks.
 *
 *   resume  records of --out of the very task, target and hardware
 *           ──> known: told, counted, not measured again
 *   warm    logs, stores ──> the best of the same task; where it has none, the best of the nearest
 *           shapes of the same operator (store.h)
 *           ──> the program of this task that follows it ──> measured first
 *
 * "Same operator": equal DAGs but for the sizes. One thread. */
#ifndef CD_TUNE_RESUME_H
#define CD_TUNE_RESUME_H
#include "predictor/tune/session/tune_run.h"

enum { CD_TUNE_WARM_BEST = 4 }; /* candidates of a task at most */

typedef struct cd_tune_resume_tally {
    size_t lines, bad;   /* of the log; bad: no records */
    size_t known, other; /* of these tasks; of other ones, or for another target */
    /* candidates to be tried first; near: of them adapted from another shape */
    size_t first, near;
} cd_tune_resume_tally;

#endif
