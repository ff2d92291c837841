/* tune_replay_log -- measure logs as a replay takes them: one set of candidates for each task and device.
 *
 *   file ──> line ──> record ──> (workload key, device) ──> candidate by its steps
 *                                                             seconds: median of its records' medians
 *   (1) equal steps are one candidate. It failed when all of its records did: CD_TUNE_FAILED_S;
 *   (2) tasks are in the order of key, then device; candidates in that of tune_space_log.h, so that nothing depends
 *       on the order of files and lines;
 *   (3) a line that is no record is counted, with its reason, and the first is kept; so are records without a result.
 * Read-only once read: share it. */
#ifndef CD_TUNE_REPLAY_LOG_H
#define CD_TUNE_REPLAY_LOG_H
#include "base/core/core.h"
#include "predictor/tune/core/core.h"

typedef struct cd_tune_replay_log {
    cd_tune_task of;            /* of.task NULL: nobody defines it */
    const char *key, *device;   /* workload key; -model= of the target, else the folder of the file */
    size_t n, n_failed, n_record;
    const cd_tune_cand *cand;   /* (n) */
    const double *seconds;      /* (n) */
    const double *cost_s;       /* (n) of building and measuring it: median over its records; 0 where they do not say */
    double best_s;              /* CD_TUNE_FAILED_S: all failed */
} cd_tune_replay_log;

typedef struct cd_tune_replay_logs {
    cd_arena arena;
    cd_tune_replay_log *log;         /* (n) */
    size_t n, lines, unmeasured, bad, reason[CDMPP_STATUS_COUNT];
    cdmpp_err first;            /* of the bad lines */
} cd_tune_replay_logs;

/* tasks NULL: none is defined. Files and folders as of dataset/extract/extract.h. Free *out also after an error.
 * Errors: EIO, EUSAGE (nothing to read), ENOMEM. */
cdmpp_status cd_tune_replay_logs_read(CD_KEEP const cd_task_registry *tasks, const char *const *input, size_t n_input, cd_tune_replay_logs *out,
                                 cdmpp_err *err);
void cd_tune_replay_logs_free(cd_tune_replay_logs *l);
/* Leave out the logs that keep() refuses; the number that stayed. */
size_t cd_tune_replay_logs_keep(cd_tune_replay_logs *l, bool (*keep)(const cd_tune_replay_log *, const void *), const void *arg);
#endif
