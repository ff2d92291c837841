/* tune_run -- the loop that tunes tasks: ask, measure, tell, until it is enough.
 *
 *   known ──> told at once, never measured again (resume)
 *   first ──> measured before anything that is asked for (warm start)
 *
 *   scheduler ── task, n ──> search.ask ── candidates ──> meter ─ seconds ─> search.tell, scheduler
 *
 *   (1) a candidate is measured once: what is known, by the digest of its steps, is left out of a
 *       batch, and told;
 *   (2) what the meter has finished counts, however the batch ends: the meter has it in its log by
 *       then;
 *   (3) trials of before count as trials, in their order;
 *   (4) an ask that brings nothing new is repeated once, then the task is left.
 * One thread; the meter may have its own. */
#ifndef CD_TUNE_RUN_H
#define CD_TUNE_RUN_H
#include <signal.h>

#include "predictor/tune/core/core.h"
#include "predictor/tune/session/tune_task_scheduler.h"
#include "predictor/tune/session/tune_template.h"
#include "predictor/tune/session/tune_tuner.h"

/* What one candidate gave. */
typedef struct cd_tune_trial {
    double seconds;        /* CD_TUNE_FAILED_S: it failed */
    int error_no;          /* as in records */
    double build_s, run_s; /* wall time that it took; of compilers its share */
} cd_tune_trial;

/* Who measures: here (tune_meter.h), or made up. */
typedef struct cd_tune_measure_kind {
    void *ctx;
    /* n candidates of a task, in order, each written down as soon as it is measured. *done: so many
     * are in `out`, after an error too. Errors end the tuning: EINTERRUPTED, EIO, EBACKEND, ENOMEM;
     * a candidate that fails is none. */
    cdmpp_status (*measure)(void *ctx, const cd_tune_task *t, const cd_tune_cand *c, size_t n,
                            cd_tune_trial *out, size_t *done, cdmpp_err *err);
    double (*now)(void *ctx); /* seconds */
} cd_tune_measure_kind;

typedef struct cd_tune_unit { /* a task to tune */
    cd_tune_task of;
    double weight;
    const char *name; /* for people */
} cd_tune_unit;

/* Told after each round. */
typedef struct cd_tune_round {
    uint32_t task, number; /* number: of the round, from 1 */
    size_t n, failed;
    uint64_t trials, task_trials;
    double best_s, task_best_s_before;
    /* of this round; build_s, run_s: of measure_s, sums over its candidates */
    double search_s, measure_s, build_s, run_s;
    double total_s;   /* sum of weight x best over the tasks that have one */
    uint32_t without; /* tasks that have none */
} cd_tune_round;

typedef struct cd_tune_run_options {
    const cd_tune_tuner *tuner;
    const cd_tune_tuner *fallback; /* for tasks that no template fits; NULL: they are left */
    cd_tune_template_options templates;
    cd_tune_ranker_setup ranker; /* .model and so on, for the tuners that rank */
    uint64_t seed;
    uint32_t population, generations; /* 0: the search's own */
    double epsilon;                   /* negative: the search's own */
    cd_tune_task_scheduler_options sched;
    cd_tune_measure_kind meter;
    /* NULL: nobody listens */
    cdmpp_status (*round)(void *ctx, const cd_tune_round *r, cdmpp_err *err);
    void *ctx;
    const volatile sig_atomic_t *stop; /* NULL: nobody */
    /* Spaces by other means than cd_tune_space_sketch (tests); NULL: that. */
    cdmpp_status (*space)(void *ctx, const cd_tune_task *t, uint64_t seed,
                          CD_GIVE cd_tune_space **out, bool *naive, cdmpp_err *err);
} cd_tune_run_options;

typedef struct cd_tune_run cd_tune_run;

/* A point of a task's curve. */
typedef struct cd_tune_point {
    uint64_t key;
    double seconds, best_s; /* of this trial; so far */
    double cost_s;          /* build_s + run_s */
    bool before;            /* of an earlier run */
} cd_tune_point;

typedef struct cd_tune_task_state {
    bool fell_back;      /* no template fits it (why): the fallback searches */
    bool naive;          /* no rule fits it: its space is its naive program */
    cdmpp_status status; /* not OK: the task has no space, see why, and is left */
    cdmpp_err why;
    cd_tune_cand best; /* n_step only where best_s < CD_TUNE_FAILED_S */
    double best_s;
    const cd_tune_point *point;           /* (n_point) trials in their order */
    size_t n_point, failed, before, warm; /* before: of earlier runs; warm: tried first */
    int last_error;                       /* number of the last failed one; 0: none */
} cd_tune_task_state;

typedef struct cd_tune_times {
    double search_s, measure_s, build_s, run_s, wall_s; /* measure_s: all that the meter took */
    size_t trials;                                      /* of this run */
    uint32_t rounds;
} cd_tune_times;

/* Makes ranker, spaces and searches; a task that has no space costs only itself. Errors: those of
 * the ranker's open (EUSAGE, EMODEL), ENOMEM. */
cdmpp_status cd_tune_run_new(const cd_tune_unit *unit, uint32_t n, const cd_tune_run_options *o,
                             CD_GIVE cd_tune_run **out, cdmpp_err *err);
void cd_tune_run_free(CD_TAKE cd_tune_run *r); /* NULL is fine */
/* A measured record of a task: (1), (3). Errors: ENOMEM, those of follow but EREJECTED. */
cdmpp_status cd_tune_run_known(cd_tune_run *r, uint32_t task, const cd_record *rec, double seconds,
                               cdmpp_err *err);
/* A record of this or a like task, to be tried first; *taken (may be NULL): a program of this task
 * follows it. */
cdmpp_status cd_tune_run_first(cd_tune_run *r, uint32_t task, const cd_record *rec, bool *taken,
                               cdmpp_err *err);
/* *end: why it is over. Errors: those of meter, search and ranker. */
cdmpp_status cd_tune_run_go(cd_tune_run *r, cd_tune_task_scheduler_end *end, cdmpp_err *err);
CD_KEEP const cd_tune_task_state *cd_tune_run_state(const cd_tune_run *r, uint32_t task);
CD_KEEP const cd_tune_times *cd_tune_run_times(const cd_tune_run *r);
CD_KEEP const cd_tune_task_scheduler *cd_tune_run_sched(const cd_tune_run *r);
#endif
