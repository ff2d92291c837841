/* tune_replay_select -- a replay from its options to its runs: reads the model and the logs, leaves out the tasks that say nothing,
 * and plays every tuner on the others.
 *
 * A model looks good on the tasks that it was trained on. Therefore these are left out, unless `held_out` is false: the split of its
 * data set is made again from the model's header (learner/config/config.h). */
#ifndef CD_TUNE_REPLAY_SELECT_H
#define CD_TUNE_REPLAY_SELECT_H
#include "base/cli/cli.h"
#include "learner/config/config.h"
#include "predictor/tune/compare/tune_compare.h"
#include "predictor/tune/compare/tune_replay.h"

/* 0 and NULL: the default. */
typedef struct cd_tune_replay_options {
    const cd_tune_compare_plan *plan;
    cd_texts input, tasks;      /* logs and folders of logs; task definitions */
    const char *model, *device; /* cost model file */
    bool nearest, frozen, held_out;
    cd_texts data;              /* data set of the model, where it has moved */
    int min;                    /* leave out tasks with fewer different programs (default: 32) */
    int seeds, seed, trials, per_round, population, generations, jobs;
    double epsilon;             /* negative: the search's own */
    cd_log *log;
} cd_tune_replay_options;

typedef struct cd_tune_replay_set {
    const cd_tune_replay_options *o;
    cd_task_registry *tasks;
    struct cd_model *model;
    cd_heldout *held;           /* NULL: nothing is left out for the model's sake */
    cd_threads *pool;
    cd_tune_replay_logs logs;
    cd_tune_replay_spec spec;
    cd_tune_replay *replay;
    size_t n_all, n_seen, n_small, n_undefined; /* tasks of the logs; left out, and why */
    size_t min;
} cd_tune_replay_set;

/* Whether a tuner of the plan ranks, which needs task definitions. */
bool cd_tune_replay_ranks(const cd_tune_compare_plan *p);
/* Free *out after an error too. Errors: ENODATA (no task is left), EMODEL, EIO, ENOMEM ... */
cdmpp_status cd_tune_replay_set_run(const cd_tune_replay_options *o, cd_tune_replay_set *out, cdmpp_err *err);
void cd_tune_replay_set_free(cd_tune_replay_set *s); /* zeroed is fine */
#endif
