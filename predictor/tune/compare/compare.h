/* The door of predictor/tune/compare: other rooms include this header and no other of the room.
 *
 * Which tuner is better? Two answers. A comparison runs several tuners on this machine
 * (tune_compare.h). A replay simulates them on logs, without a device: it takes the seconds from
 * the records (tune_replay.h), and tells how near each tuner came to the best known program
 * (tune_replay_stat.h). Nothing here prints: predictor/tune/report does. */
#ifndef CD_COMPARE_H
#define CD_COMPARE_H
#include "base/cli/cli.h"
#include "base/core/core.h"
#include "learner/config/config.h"
#include "predictor/tune/core/core.h"
#include "predictor/tune/session/session.h"

/* tune_compare -- several tuners on the same tasks, each with the whole budget and a log of its
 * own.
 *
 *   "random,ansor" ─> plan ─> session of each (OUT.random.json ...) ─> best seconds after 10, 50
 *     ... trials, by task and tuner
 *
 * The plan also says which tuners a replay of logs compares, and at which numbers of trials. */

enum { CD_TUNE_COMPARE_TUNERS = 16, CD_TUNE_COMPARE_POINTS = 32 };

typedef struct cd_tune_compare_plan {
    const cd_tune_tuner *tuner[CD_TUNE_COMPARE_TUNERS];
    size_t n_tuner;
    size_t at[CD_TUNE_COMPARE_POINTS]; /* numbers of trials, rising */
    size_t n_at;
} cd_tune_compare_plan;

/* tuners: names with commas, as of --compare; NULL: none. at: as of --at; NULL: 10,50,100,300.
 * Errors: EUSAGE. */
cdmpp_status cd_tune_compare_read(const char *tuners, const char *at, bool have_model,
                                  cd_tune_compare_plan *p, cdmpp_err *err);

typedef struct cd_tune_compare {
    const cd_tune_compare_plan *plan;
    uint32_t n_task;
    /* (n_task + 1, n_tuner, n_at + 1); the last task is the weighted sum, the first point 0
     * trials */
    double *seconds;
} cd_tune_compare;

/* Seconds of a task and tuner, (n_at + 1). CD_TUNE_FAILED_S or more: nothing ran yet. */
static inline double *cd_tune_compare_at(const cd_tune_compare *c, uint32_t task, size_t tuner) {
    return c->seconds + (task * c->plan->n_tuner + tuner) * (c->plan->n_at + 1);
}
/* Runs `base` (o, what, measure, model, out) with each tuner. curves: cd_tune_session_write_curves
 * of each; NULL: none. *failed adds up what sessions have. Free *out after an error too. Errors:
 * those of cd_tune_session_run. */
cdmpp_status cd_tune_compare_run(const cd_tune_session *base, const cd_tune_compare_plan *plan,
                                 const char *curves, cd_tune_compare *out, size_t *failed,
                                 cdmpp_err *err);
void cd_tune_compare_free(cd_tune_compare *c); /* zeroed is fine */

/* tune_replay_log -- measure logs as a replay takes them: one set of candidates for each task and
 * device.
 *
 *   file ──> line ──> record ─> (workload key, device) ─> candidate by its steps
 *                                                           seconds: median of its records' medians
 *   (1) equal steps are one candidate. It failed when all of its records did: CD_TUNE_FAILED_S;
 *   (2) tasks are in the order of key, then device; candidates in that of tune_space_log.h, so that
 *       nothing depends on the order of files and lines;
 *   (3) a line that is no record is counted, with its reason, and the first is kept; so are records
 *       without a result.
 * Read-only once read: share it. */

typedef struct cd_tune_replay_log {
    cd_tune_task of; /* of.task NULL: nobody defines it */
    /* workload key; -model= of the target, else the folder of the file */
    const char *key, *device;
    size_t n, n_failed, n_record;
    const cd_tune_cand *cand; /* (n) */
    const double *seconds;    /* (n) */
    /* (n) of building and measuring it: median over its records; 0 where they do not say */
    const double *cost_s;
    double best_s; /* CD_TUNE_FAILED_S: all failed */
} cd_tune_replay_log;

typedef struct cd_tune_replay_logs {
    cd_arena arena;
    cd_tune_replay_log *log; /* (n) */
    size_t n, lines, unmeasured, bad, reason[CDMPP_STATUS_COUNT];
    cdmpp_err first; /* of the bad lines */
} cd_tune_replay_logs;

/* tasks NULL: none is defined. Files and folders as of dataset/extract/extract.h. Free *out also
 * after an error. Errors: EIO, EUSAGE (nothing to read), ENOMEM. */
cdmpp_status cd_tune_replay_logs_read(CD_KEEP const cd_task_registry *tasks,
                                      const char *const *input, size_t n_input,
                                      cd_tune_replay_logs *out, cdmpp_err *err);
void cd_tune_replay_logs_free(cd_tune_replay_logs *l);

/* tune_replay -- tuners against logs: what each would have found, without a device.
 *
 *   for every task x tuner x seed:  ask a batch ─> candidates of the log ─> tell their recorded
 *     seconds ─> ask ...
 *
 *        run:  row    17   3  250 ...     which candidate each trial measured
 *              search 0.1 ... 0.3         processor seconds of the search up to it
 *
 *   (1) every run begins with a fresh space, ranker and search, and a seed that depends on the
 *       task's key and the number of the seed: the result is the same for any pool and any choice
 *       of other tasks, but for `search_s`, which is measured here;
 *   (2) the last batch of a run may be short; a run ends when the trials, or the candidates, are
 *       spent;
 *   (3) a tuner that asks twice for a candidate, or for one that the log lacks, is refused
 *       (EINVALID). */

typedef struct cd_tune_replay_spec {
    const cd_tune_tuner *const *tuner; /* (n_tuner) */
    size_t n_tuner, n_seed;
    uint64_t seed;                    /* the first; the others follow */
    size_t batch, trials;             /* both > 0 */
    cd_tune_ranker_setup ranker;      /* of each; its seed and device are set here */
    uint32_t population, generations; /* 0: the search's own */
    double epsilon;                   /* negative: the search's own */
    cd_threads *pool;                 /* NULL: none */
} cd_tune_replay_spec;

typedef struct cd_tune_replay_run {
    size_t n;               /* trials made */
    const uint32_t *row;    /* (n) candidates of the log */
    const double *search_s; /* (n) */
} cd_tune_replay_run;

typedef struct cd_tune_replay {
    size_t n_log, n_tuner, n_seed;
    cd_tune_replay_run *run; /* (n_log, n_tuner, n_seed) */
} cd_tune_replay;

static inline const cd_tune_replay_run *cd_tune_replay_at(const cd_tune_replay *r, size_t log,
                                                          size_t tuner, size_t seed) {
    return &r->run[(log * r->n_tuner + tuner) * r->n_seed + seed];
}

/* Errors: EINVALID (see (3)), those of the tuners, with key and tuner; ENOMEM. */
cdmpp_status cd_tune_replay_play(const cd_tune_replay_logs *l, const cd_tune_replay_spec *s,
                                 CD_GIVE cd_tune_replay **out, cdmpp_err *err);
void cd_tune_replay_free(CD_TAKE cd_tune_replay *r); /* NULL is fine */

/* tune_replay_select -- a replay from its options to its runs: reads the model and the logs, leaves
 * out the tasks that say nothing, and plays every tuner on the others.
 *
 * A model looks good on the tasks that it was trained on. Therefore these are left out, unless
 * `held_out` is false: the split of its data set is made again from the model's header
 * (learner/config/config.h). */

/* 0 and NULL: the default. */
typedef struct cd_tune_replay_options {
    const cd_tune_compare_plan *plan;
    cd_texts input, tasks;      /* logs and folders of logs; task definitions */
    const char *model, *device; /* cost model file */
    bool nearest, frozen, held_out;
    cd_texts data; /* data set of the model, where it has moved */
    int min;       /* leave out tasks with fewer different programs (default: 32) */
    int seeds, seed, trials, per_round, population, generations, jobs;
    double epsilon; /* negative: the search's own */
    cd_log *log;
} cd_tune_replay_options;

typedef struct cd_tune_replay_set {
    const cd_tune_replay_options *o;
    cd_task_registry *tasks;
    struct cd_model *model;
    cd_heldout *held; /* NULL: nothing is left out for the model's sake */
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
cdmpp_status cd_tune_replay_set_run(const cd_tune_replay_options *o, cd_tune_replay_set *out,
                                    cdmpp_err *err);
void cd_tune_replay_set_free(cd_tune_replay_set *s); /* zeroed is fine */

/* tune_replay_stat -- what replays say: how near to the best known program a tuner came, and when.
 *
 *   ratio = best known seconds of the log / best seconds found so far  0: nothing ran yet; 1: the
 *     best
 *
 *   (1) a run that ended early, all candidates measured, keeps its last value;
 *   (2) figures of a row are over tasks, of each the mean over seeds; quartiles between ranks are
 *       linear;
 *   (3) tasks of which nothing ran are in no figure;
 *   (4) a win: no other tuner is better in that task by more than 1e-9; tuners share it.
 * Simulated seconds: cost_s of what was measured, plus search_s of the run. */

/* After so many trials; CD_TUNE_FAILED_S: nothing ran. */
double cd_tune_replay_best(const cd_tune_replay_log *l, const cd_tune_replay_run *r, size_t trials);
double cd_tune_replay_ratio(const cd_tune_replay_log *l, const cd_tune_replay_run *r,
                            size_t trials);
/* Seconds of measuring, of searching, until so many trials were made. */
double cd_tune_replay_measure_s(const cd_tune_replay_log *l, const cd_tune_replay_run *r,
                                size_t trials);

typedef struct cd_tune_replay_row {
    size_t tuner, trials;
    double low, median, high, mean; /* ratios: quartiles and mean over tasks */
    double measure_s, search_s;     /* mean over runs */
    size_t n_task, n_seed, wins;
} cd_tune_replay_row;

/* Of each tuner and, within it, each of at (n_at): n_tuner * n_at rows. Errors: ENODATA (see (3)),
 * ENOMEM. */
cdmpp_status cd_tune_replay_table(const cd_tune_replay_logs *l, const cd_tune_replay *r,
                                  const size_t *at, size_t n_at, CD_GIVE cd_tune_replay_row **out,
                                  cdmpp_err *err);

/* Quartiles over all tasks and seeds of a tuner. */
typedef struct cd_tune_replay_curve {
    size_t n;
    double *x, *low, *median, *high; /* (n) x: trials, or simulated seconds; one block from x on */
} cd_tune_replay_curve;
/* Errors: ENODATA, ENOMEM. */
cdmpp_status cd_tune_replay_by_trials(const cd_tune_replay_logs *l, const cd_tune_replay *r,
                                      size_t tuner, size_t trials, cd_tune_replay_curve *out,
                                      cdmpp_err *err);
/* n points from the shortest first trial to the end of the longest run, evenly on a logarithmic
 * scale. */
cdmpp_status cd_tune_replay_by_seconds(const cd_tune_replay_logs *l, const cd_tune_replay *r,
                                       size_t tuner, size_t n, cd_tune_replay_curve *out,
                                       cdmpp_err *err);
void cd_tune_replay_curve_free(cd_tune_replay_curve *c);
#endif
