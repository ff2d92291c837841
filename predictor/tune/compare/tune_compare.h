/* tune_compare -- several tuners on the same tasks, each with the whole budget and a log of its own.
 *
 *   "random,ansor" ──> plan ──> session of each (OUT.random.json ...) ──> best seconds after 10, 50 ... trials, by task and tuner
 *
 * The plan also says which tuners a replay of logs compares, and at which numbers of trials. */
#ifndef CD_TUNE_COMPARE_H
#define CD_TUNE_COMPARE_H
#include "predictor/tune/session/session.h"

enum { CD_TUNE_COMPARE_TUNERS = 16, CD_TUNE_COMPARE_POINTS = 32 };

typedef struct cd_tune_compare_plan {
    const cd_tune_tuner *tuner[CD_TUNE_COMPARE_TUNERS];
    size_t n_tuner;
    size_t at[CD_TUNE_COMPARE_POINTS]; /* numbers of trials, rising */
    size_t n_at;
} cd_tune_compare_plan;

/* tuners: names with commas, as of --compare; NULL: none. at: as of --at; NULL: 10,50,100,300. Errors: EUSAGE. */
cdmpp_status cd_tune_compare_read(const char *tuners, const char *at, bool have_model, cd_tune_compare_plan *p, cdmpp_err *err);

typedef struct cd_tune_compare {
    const cd_tune_compare_plan *plan;
    uint32_t n_task;
    double *seconds;            /* (n_task + 1, n_tuner, n_at + 1); the last task is the weighted sum, the first point 0 trials */
} cd_tune_compare;

/* Seconds of a task and tuner, (n_at + 1). CD_TUNE_FAILED_S or more: nothing ran yet. */
static inline double *cd_tune_compare_at(const cd_tune_compare *c, uint32_t task, size_t tuner) {
    return c->seconds + (task * c->plan->n_tuner + tuner) * (c->plan->n_at + 1);
}
/* Runs `base` (o, what, measure, model, out) with each tuner. curves: cd_tune_session_write_curves of each; NULL: none. *failed adds up
 * what sessions have. Free *out after an error too. Errors: those of cd_tune_session_run. */
cdmpp_status cd_tune_compare_run(const cd_tune_session *base, const cd_tune_compare_plan *plan, const char *curves, cd_tune_compare *out, size_t *failed, cdmpp_err *err);
void cd_tune_compare_free(cd_tune_compare *c); /* zeroed is fine */
#endif
