/* tune_task_scheduler -- which task of a network is measured next, and when enough is measured.
 *
 *   task   weight   trials   best          gradient = weight x (0.2 x what the last rounds brought
 *   conv       4       32    1.2 ms                    + 0.8 x what the next one may bring)
 *   dense      1       16    0.1 ms        the most negative one is next
 *
 *   (1) every task once, those of much work first, with at most an eighth of all trials together,
 *       because nobody knows yet where the time is; then by the gradient of Ansor's task scheduler,
 *       which goes by the share of the network's time: alpha 0.2, beta 2, a window of 3 rounds,
 *       groups of similar tasks, out of which goes who stays below half of the best speed;
 *   (2) the expected gain of a round is extrapolated: the best of a task falls along a line over
 *       ln(trials) through now and half as many trials; before two rounds nobody knows, and all is
 *       possible;
 *   (3) with `runs`, how often the network will run: over when no task has weight x gain x runs
 *       above the seconds that its round takes; with `min_gain`: over when the later half of each
 *       task's trials made the network faster by less than that share;
 *   (4) a task of which the first FAILED_ROUNDS rounds all failed, or whose space has no more, is
 *       left.
 * Pure arithmetic on what it is told. One thread. */
#ifndef CD_TUNE_TASK_SCHEDULER_H
#define CD_TUNE_TASK_SCHEDULER_H
#include "predictor/tune/core/core.h"

typedef struct cd_tune_task_scheduler cd_tune_task_scheduler;

typedef struct cd_tune_task_scheduler_task {
    double weight;     /* > 0 */
    double flop;       /* <= 0: unknown */
    const char *group; /* similar tasks have equal ones; NULL: like no other. Copied */
    /* seconds that it is expected to take, by any measure that compares tasks; 0: unknown */
    double work_s;
} cd_tune_task_scheduler_task;

typedef struct cd_tune_task_scheduler_options {
    uint64_t trials;          /* of all tasks; 0: no limit */
    uint64_t trials_per_task; /* 0: no limit */
    double seconds;           /* of tuning; 0: no limit */
    uint32_t per_round;       /* > 0 */
    /* trials of a task without a better one, after which it is left; 0: never */
    uint64_t early_stop;
    double runs, min_gain; /* (3); 0: not asked for */
} cd_tune_task_scheduler_options;

/* Why it is over. */
typedef enum cd_tune_task_scheduler_end {
    CD_TUNE_GOES_ON,
    CD_TUNE_NO_TRIALS,
    CD_TUNE_NO_TIME,
    CD_TUNE_NO_GAIN,
    CD_TUNE_NO_TASK
} cd_tune_task_scheduler_end;
const char *cd_tune_task_scheduler_says(cd_tune_task_scheduler_end e);

/* Errors: ENOMEM. */
cdmpp_status cd_tune_task_scheduler_new(const cd_tune_task_scheduler_task *task, uint32_t n,
                                        const cd_tune_task_scheduler_options *o,
                                        CD_GIVE cd_tune_task_scheduler **out, cdmpp_err *err);
void cd_tune_task_scheduler_free(CD_TAKE cd_tune_task_scheduler *s); /* NULL is fine */
/* The next task and how many trials it gets. spent_s: seconds of tuning so far. */
cd_tune_task_scheduler_end cd_tune_task_scheduler_next(cd_tune_task_scheduler *s, double spent_s,
                                                       uint32_t *task, uint32_t *n);
/* What a round of a task gave: seconds (n) in their order, CD_TUNE_FAILED_S where one failed. Also
 * for trials of an earlier run, with took_s 0. Errors: ENOMEM. */
cdmpp_status cd_tune_task_scheduler_add(cd_tune_task_scheduler *s, uint32_t task,
                                        const double *seconds, size_t n, double took_s,
                                        cdmpp_err *err);
/* Its space has no more. */
void cd_tune_task_scheduler_leave(cd_tune_task_scheduler *s, uint32_t task);

/* CD_TUNE_FAILED_S: none yet */
double cd_tune_task_scheduler_best(const cd_tune_task_scheduler *s, uint32_t task);
uint64_t cd_tune_task_scheduler_trials(const cd_tune_task_scheduler *s, uint32_t task);
/* (2), in seconds of one run of the task; infinity: unknown. */
double cd_tune_task_scheduler_gain(const cd_tune_task_scheduler *s, uint32_t task);
double cd_tune_task_scheduler_gradient(const cd_tune_task_scheduler *s, uint32_t task);
#endif
