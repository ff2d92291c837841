/* tune_session -- one tuner on all tasks: opened, warmed, run, its results checked.
 *
 *   tasks ──> resume (tune_resume.h) ──> rounds (tune_run.h) measured here (tune_measure.h)
 *         ──> results (tune_result.h)
 *
 *   cd_measure_open(&cd_tune_session_measure(&o))  first of all: it forks, and a fork wants no
 *                                                  threads; or of o.host
 *   cd_tune_session_open_board(&o, listener)       boards, which measure in place of this machine
 *   cd_tune_session s = {.o = &o, .what = &tasks, .measure = m, .model = model,
 *                        .tuner = t, .out = "log.json"};
 *   cd_tune_session_run(&s) ──> cd_tune_session_finish(&s)
 *                           ──> files (below), text (predictor/tune/report/report.h)
 *
 * One thread. Messages and progress go to the caller's log. */
#ifndef CD_TUNE_SESSION_H
#define CD_TUNE_SESSION_H
#include "base/cli/cli.h"
#include "predictor/tune/session/tune_result.h"
#include "predictor/tune/session/tune_resume.h"
#include "predictor/tune/session/tune_tasks.h"

/* 0 and NULL: the default. */
typedef struct cd_tune_session_options {
    const char *device;   /* of the cost model; NULL: by the target */
    bool nearest, frozen; /* cd_tune_ranker_setup */
    int seed, population, generations;
    double epsilon; /* share of random candidates; negative: the search's own */
    /* cd_tune_task_scheduler_options */
    int trials, trials_per_task, per_round, seconds, early_stopping, runs;
    double min_gain; /* share */
    /* of tuners of templates: searches the tasks that no template fits; NULL: nobody */
    const cd_tune_tuner *fallback;
    const struct cd_device *machine; /* templates are for this one; NULL: this processor */
    cd_texts warm;                   /* logs and stores of earlier measurements */
    const char *stats;               /* a JSON object of each round is appended to this file */
    /* cd_measure_options */
    int threads, jobs, budget_ms, timeout_s, build_timeout_s, memory_mb, cache_mb;
    const char *isa, *cflags, *cache, *gpu;
    cd_texts host;         /* boards of one kind that measure; none: this machine */
    int port, lease_s;     /* of ssh; of a program */
    const char *transport; /* cd_remote_reach */
    const char *core;      /* cores that measure, of CD_CORE_TYPES; NULL: any */
    bool no_pin;
    /* compare the results of the best programs only, not of every candidate */
    bool no_check;
    cd_log *log;
    const volatile sig_atomic_t *stop;
} cd_tune_session_options;

typedef struct cd_tune_session {
    const cd_tune_session_options *o;
    const cd_tune_tasks *what;
    cd_measure *measure;          /* NULL: board */
    cd_remote_measure *board;     /* NULL: measure */
    const struct cd_model *model; /* NULL: none */
    const cd_tune_tuner *tuner;   /* NULL: nothing is tuned, only untuned programs are measured */
    const char *out;              /* the log that grows */
    const char *use;              /* a command that uses it, for reports; NULL: none */
    /* fp32 of the device that measures, of one core of a processor; 0: nobody says. For reports */
    double peak_gflops;
    /* set by cd_tune_session_run */
    cd_describe_namer namer; /* the meter's */
    cd_tune_measure *meter;
    cd_record_log *records;
    FILE *stats;
    cd_tune_run *run; /* NULL: nothing was tuned */
    cd_tune_task_scheduler_end end;
    cd_tune_resume_tally warm;
    cd_tune_result *result; /* (what->n) */
    cd_progress progress;
    bool disturbed;  /* others used the processors: it was said */
    uint64_t trials; /* so far, those of before too */
    /* tasks without a space, without a good candidate, without a program */
    size_t failed;
} cd_tune_session;

/* How programs are measured, by the options. */
cd_measure_options cd_tune_session_measure(const cd_tune_session_options *o);
/* The boards of the options; `l` (borrowed until they are closed) hears of workers that failed.
 * What the first one is goes to the log. It is an error where nobody says how many processors it
 * has (EUSAGE). Other errors: those of cd_remote_measure_open. */
cdmpp_status cd_tune_session_open_board(const cd_tune_session_options *o,
                                        const cd_record_listener *l,
                                        CD_GIVE cd_remote_measure **out, cdmpp_err *err);
/* Tune, then check and measure the best programs. Free after an error too. Errors: EINTERRUPTED,
 * EIO, EBACKEND, ENOMEM, those of rankers. */
cdmpp_status cd_tune_session_run(cd_tune_session *s, cdmpp_err *err);
/* Close the log of records; an error of its last lines. Errors: EIO. */
cdmpp_status cd_tune_session_finish(cd_tune_session *s, cdmpp_err *err);
void cd_tune_session_free(cd_tune_session *s); /* zeroed is fine */

/* The state of a task; NULL: nothing was tuned. */
const cd_tune_task_state *cd_tune_session_state(const cd_tune_session *s, uint32_t task);
/* Sums of weight x seconds, untuned and of the programs that are kept; false: some task has none of
 * them. */
bool cd_tune_session_totals(const cd_tune_session *s, double *untuned, double *kept);
/* A warning for each task that is worse, wrong or without a program; adds to s->failed. */
void cd_tune_session_warn(cd_tune_session *s);

/* ---- files (tune_session.c); errors: EIO, ENOMEM ---- */
/* The record of the program that is kept of each task, for TVM's apply_history_best. */
cdmpp_status cd_tune_session_write_best(const cd_tune_session *s, const char *path, cdmpp_err *err);
/* Every trial, in the layout of OpBench's op_costs:
 * task_name,trial,costs,all_cost,best_cost,best_all_cost,cmp; seconds. */
cdmpp_status cd_tune_session_write_curves(const cd_tune_session *s, const char *path,
                                          cdmpp_err *err);
/* The program that is kept of each task as source with a host program (tune_emit.h). Also EUSAGE:
 * not in that language. */
cdmpp_status cd_tune_session_write_code(const cd_tune_session *s, cd_dialect dialect,
                                        const char *folder, cdmpp_err *err);
#endif
