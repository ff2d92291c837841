/* hpo -- search for a configuration: draw, train a little, keep the best, train more.
 *
 *   space + base --draw--> trials --asha--> (trial, rung) --objective--> error
 *        ^                                       |                         |
 *        |                                       +------- journal ---------+
 *        +-- the winner: the base with the trial's settings and the full budget
 *
 * Decisions and results as a sequence; decision k may know the results before k - L + 1
 * and no others, L = tune.in_flight:
 *
 *   decision  0 1 2 3 4 5 ...        L = 3: 3 waits for result 0, 4 for 0 and 1, ...
 *
 *   (1) so the outcome is the same for any number of workers; more than L have nothing
 *       to do;
 *   (2) a result is in the journal before it counts. After a kill at any moment the same
 *       call goes on: what is in the journal is not trained again, and the outcome is
 *       the one that a run in one piece has;
 *   (3) a training that fails, or whose error is not finite, is recorded with its reason
 *       and counts as the worst; only an interrupt (EINTERRUPTED) and a journal that
 *       cannot be written end the search;
 *   (4) the objective is the validation error. Nothing here sees a test part. */
#ifndef CD_HPO_H
#define CD_HPO_H
#include <stdbool.h>
#include <stddef.h>

#include "learner/train/train.h"

/* hpo_asha -- which trial gets how much budget: asynchronous successive halving.
 *
 *   rung   budget    finished, best first             goes up
 *    0     small     t7 t3 t0 t9 t1 t4 t2 t8 t6       t7 t3 t0   (eta = 3)
 *    1     x eta     t3 t7 t0                         t3
 *    2     x eta^2   t3
 *
 * Li et al. 2020 (ASHA): whoever asks for work gets the best trial of the highest
 * rung that is among the best n/eta of its n finished ones and has not gone up yet;
 * if there is none, a new trial on rung 0. Nobody waits for a rung to be complete.
 *
 *   (1) the answer depends on the calls so far and on nothing else: the same tells
 *       between the same asks give the same answers. Who calls (autotune) fixes that
 *       order, so that the outcome is the same for any number of workers;
 *   (2) equal errors: the lower number is better. An infinite error (a failed trial)
 *       is the worst and never goes up;
 *   (3) the best of a rung is always among those that go up or have gone up;
 *   (4) when everything is finished and the top rung still has no finite result
 *       (fewer than eta trials below, or all that went up failed there), the best
 *       remaining one goes up all the same: some trial gets the full budget unless
 *       all fail.
 * No thread of its own; one caller at a time. */

#define CD_HPO_ASHA_RUNGS 16

typedef struct cd_hpo_asha cd_hpo_asha;

/* eta >= 2; 1 <= n_rung <= CD_HPO_ASHA_RUNGS. Errors: ENOMEM. */
cdmpp_status cd_hpo_asha_new(size_t n_trial, unsigned eta, unsigned n_rung,
                             CD_GIVE cd_hpo_asha **out, cdmpp_err *err);
void cd_hpo_asha_free(CD_TAKE cd_hpo_asha *a); /* NULL is fine */

/* The next piece of work; false: there is none until more is told. */
bool cd_hpo_asha_ask(cd_hpo_asha *a, size_t *trial, unsigned *rung);
/* The error of a piece of work that was asked for; INFINITY or NaN: it failed. */
void cd_hpo_asha_tell(cd_hpo_asha *a, size_t trial, unsigned rung, double error);
/* Asked for, not told yet. When 0 and cd_hpo_asha_ask is false, everything is over. */
size_t cd_hpo_asha_open(const cd_hpo_asha *a);
/* The best of the top rung; false: it has no finite result. */
bool cd_hpo_asha_best(const cd_hpo_asha *a, size_t *trial, double *error);

/* hpo_space -- what a search may vary: a file of keys and ranges -> configurations.
 *
 *   tune:  {sampler: sobol, trials: 64, budget: train.rounds, ...}   space_keys.def
 *   space:
 *     train.eta:       {log_real: [0.02, 0.5]}
 *     train.loss:      {choice: [squared, huber]}
 *     train.max_depth: {int: [3, 12], when: {train.loss: huber}}
 *     train.seed:      {fixed: 7}
 *
 *   point u in [0,1)^n_param --> sets "train.eta=0.0613" --> base + sets = a trial
 *
 *   (1) parameter k is coordinate k of a point, whether its condition holds or not;
 *   (2) a parameter whose `when` does not hold keeps the base's value. Conditions look
 *       at the configuration as the parameters before have left it;
 *   (3) trials differ: a point that gives the configuration of an earlier trial is
 *       passed over, and a space with fewer configurations gives fewer trials;
 *   (4) trial t is the same for any number of trials;
 *   (5) what decides on the data that are compared (data.*, filter.*, split.*) can only
 *       be `fixed`; filter.* may carry the budget. data.files and data.kind are the
 *       base's: data are read once, for all trials.
 * Read-only once loaded, any thread. */

#define CD_HPO_SAMPLERS "sobol|random"
typedef enum { CD_HPO_SAMPLER_SOBOL, CD_HPO_SAMPLER_RANDOM } cd_hpo_sampler;
#define CD_HPO_METRICS "mape|median|rmse_log|rank"
typedef enum {
    CD_HPO_METRIC_MAPE,
    CD_HPO_METRIC_MEDIAN,
    CD_HPO_METRIC_RMSE_LOG,
    CD_HPO_METRIC_RANK
} cd_hpo_metric;

#define CD_HPO_PARAM_KINDS "fixed|choice|int|log_int|real|log_real"
typedef enum {
    CD_HPO_PARAM_FIXED,
    CD_HPO_PARAM_CHOICE,
    CD_HPO_PARAM_INT,
    CD_HPO_PARAM_LOG_INT,
    CD_HPO_PARAM_REAL,
    CD_HPO_PARAM_LOG_REAL
} cd_hpo_param_kind;

/* Holds when the key's value is one of these; for a list, when it has one of these. */
typedef struct cd_hpo_space_condition {
    const cd_conf_key *key;
    cd_texts value; /* as cd_conf_print_value prints them */
} cd_hpo_space_condition;

typedef struct cd_hpo_space_param {
    const cd_conf_key *key;
    cd_hpo_param_kind kind;
    double lo, hi;  /* INT to LOG_REAL, both included */
    cd_texts value; /* FIXED: one, CHOICE: all, as YAML */
    size_t n_when;
    cd_hpo_space_condition *when; /* all must hold */
} cd_hpo_space_param;

typedef struct cd_hpo_spec {
#define X(name, type, def, range, help) cd_cfg_##type name;
#include "learner/hpo/space_keys.def"
} cd_hpo_spec;

typedef struct cd_hpo_space {
    cd_hpo_spec tune;
    const cd_conf_key *budget; /* key of tune.budget, INT or REAL */
    size_t n_param;
    cd_hpo_space_param *param;
    const char *path, *base; /* of the file; of the configuration it names or "" */
    cd_arena arena;
    cd_diag diag; /* every error so far */
} cd_hpo_space;

/* The settings of the table, for the manual. */
const cd_conf_key *cd_hpo_space_keys(size_t *n);
/* Free with cd_hpo_space_free also after an error. `set`: n_set assignments "tune.trials=8"
 * over the file. Errors: EIO, EPARSE, ESCHEMA, ERANGE, ENOMEM. */
cdmpp_status cd_hpo_space_load(cd_hpo_space *s, const char *path, const char *const *set,
                               size_t n_set, cdmpp_err *err);
void cd_hpo_space_free(cd_hpo_space *s);

/* Rungs, and the budget of rung r: max_budget / eta^(top - r), an integer for an
 * integer key. The top rung is always exactly max_budget. */
unsigned cd_hpo_space_rungs(const cd_hpo_space *s);
double cd_hpo_space_budget(const cd_hpo_space *s, unsigned rung);

/* One trial: what is set over the base, and the same as a JSON object of the
 * parameters whose conditions hold. */
typedef struct cd_hpo_trial {
    cd_texts set;
    const char *params;
} cd_hpo_trial;

/* Trials 0 .. *n - 1, *n <= tune.trials; texts live in `a`. Errors: ENOMEM, and those of
 * cd_config_set when a value does not fit the base. */
cdmpp_status cd_hpo_space_sample(const cd_hpo_space *s, const cd_config *base, cd_arena *a,
                                 CD_KEEP cd_hpo_trial **out, size_t *n, cdmpp_err *err);
/* A configuration of its own: base, the trial's settings, the budget; borrows from
 * `base`. cd_config_free it, also after an error. */
cdmpp_status cd_hpo_space_config(const cd_hpo_space *s, const cd_config *base,
                                 const cd_hpo_trial *t, double budget, cd_config *out,
                                 cdmpp_err *err);

/* Train with `c`, in which the budget is already set, and measure. Called by several
 * threads at once, `worker` < cd_threads_count tells them apart. */
typedef cdmpp_status cd_hpo_objective_fn(void *ctx, const cd_config *c, double budget, int worker,
                                         double *valid_error, cdmpp_err *err);

typedef enum { CD_HPO_RUNNING, CD_HPO_DONE, CD_HPO_FAILED } cd_hpo_state;

typedef struct cd_hpo_event {
    size_t trial;
    unsigned rung;
    double budget, error; /* error: of DONE, else NaN */
    cd_hpo_state state;
    bool known; /* from the journal */
    double seconds;
    const char *params; /* JSON object */
    const char *reason; /* of FAILED, else "" */
} cd_hpo_event;

typedef void cd_hpo_event_fn(void *ctx, const cd_hpo_event *e);

typedef struct cd_hpo_options {
    const cd_hpo_space *space;
    const cd_config *base;
    const char *journal;  /* path */
    const char *identity; /* digest of the data: another one is another search */
    cd_hpo_objective_fn *objective;
    cd_hpo_event_fn *tell; /* NULL is fine. One call at a time, from any thread */
    void *ctx;             /* of both */
} cd_hpo_options;

typedef struct cd_hpo_result {
    size_t n_trial;
    const cd_hpo_trial *trial; /* (n_trial) */
    unsigned n_rung;
    double *error;       /* (n_trial, n_rung) NaN: not trained, INFINITY: failed */
    const char **reason; /* (n_trial) of the failure, else NULL */
    /* trainings of this call; from the journal; failed among both */
    size_t n_new, n_known, n_failed;
    size_t torn; /* bytes of the journal that a kill had damaged */
    size_t best; /* trial with the least error on the top rung */
    double best_error;
    cd_arena arena;
} cd_hpo_result;

/* `pool` NULL: one worker. Errors: those of cd_hpo_space_sample and cd_hpo_journal, EINTERRUPTED,
 * ENUMERIC (every trial failed; the first reason is in the message), ENOMEM. cd_hpo_result_free
 * it, also after an error. */
cdmpp_status cd_hpo(const cd_hpo_options *s, cd_threads *pool, cd_hpo_result *out, cdmpp_err *err);
void cd_hpo_result_free(cd_hpo_result *f);

/* One line: {"trial":..,"rung":..,"budget":..,"state":..,"valid_error":..,"params":{..}}. */
void cd_hpo_event_json(cd_buf *out, const cd_hpo_event *e);
/* A result as one line for people, without a line end; not for CD_HPO_RUNNING. */
void cd_hpo_event_text(cd_buf *out, const cd_hpo_event *e);
/* The best trials, one a line, at most `max` of them, and how many there were. */
void cd_hpo_result_table(cd_buf *out, const cd_hpo_result *f, const cd_hpo_space *s, size_t max);
/* The settings of a search as YAML; what its error is called. */
void cd_hpo_space_print(cd_buf *out, const cd_hpo_space *s);

/* hpo_objective -- the search whose objective is a training on loaded data.
 *
 *   -j 8, in_flight 4             ->  4 trainings side by side, 2 threads each
 *   room in train.memory for two  ->  2 trainings side by side, 4 threads each; of data on disk one
 *
 * The outcome is the same for any number side by side.
 * The validation figures of cd_learner_try are all that a trial sees; the test part
 * is left to the training of the winner, which is the caller's. */

/* What a training says of its data, and what the bounded memory changed: lines, once each. One call
 * at a time, from any thread. */
typedef void cd_hpo_note_fn(void *ctx, const char *lines);

typedef struct cd_hpo_objective {
    const cd_hpo_space *space;
    const cd_config *base;
    const cd_dataset *data; /* what base->data_files hold */
    const char *journal;
    int jobs;                   /* threads; <= 0: one per CPU */
    int at_once;                /* trainings at the same time, at most */
    cd_hpo_event_fn *tell;      /* NULL is fine */
    cd_hpo_note_fn *note;       /* NULL is fine */
    cd_progress_event_fn *tick; /* of every training; NULL is fine */
    void *ctx;                  /* of all */
} cd_hpo_objective;

/* As cd_hpo. */
cdmpp_status cd_hpo_objective_run(const cd_hpo_objective *t, cd_hpo_result *out, cdmpp_err *err);

/* hpo_run -- the search of a command, from its files to the best configuration.
 *
 *   space file + base configuration + "--set"s  ->  data set  ->  search
 *       ->  the winner as a configuration file, ready to use
 *
 * Prints nothing: the caller gets every result as it comes, and the found. */

typedef struct cd_hpo_run {
    const char *space;      /* the search file */
    const char *config;     /* the base; NULL: tune.base of the search file */
    const char *const *set; /* (n_set) "tune.x=y" goes to the search, the rest to the base */
    size_t n_set;
    const char *out; /* the winner's file; the journal is "<out>.journal.jsonl" */
    /* NULL: that; the caller then removes it when nothing is left to go on with */
    const char *journal;
    int jobs;
    cd_hpo_event_fn *tell;      /* NULL is fine */
    cd_hpo_note_fn *note;       /* NULL is fine */
    cd_progress_event_fn *tick; /* NULL is fine */
    void *ctx;                  /* of all */
} cd_hpo_run;

typedef struct cd_hpo_run_state {
    cd_hpo_space space;
    cd_config base;
    cd_hpo_result found;
    cd_config best; /* borrows from base */
    char journal[4096];
    cd_arena arena;
} cd_hpo_run_state;

/* Read and check everything: `space`, `base`. Errors are in the lists of both and of
 * cd_hpo_space_load, cd_config_load, cd_config_set; `data`: also that the files are there. */
cdmpp_status cd_hpo_run_read(const cd_hpo_run *cmd, bool data, cd_hpo_run_state *s, cdmpp_err *err);
/* Search and write cmd->out: `found`, `best`. Errors: those of loading and of cd_hpo, EIO. */
cdmpp_status cd_hpo_run_search(const cd_hpo_run *cmd, cd_hpo_run_state *s, cdmpp_err *err);
/* Search nothing: write the configuration of one trial with the full budget to cmd->out. A trial is
 * the same whatever came out of it, so no data and no journal are read. Errors: ERANGE (the search
 * has no such trial), those of cd_hpo_space_sample, EIO. */
cdmpp_status cd_hpo_run_config(const cd_hpo_run *cmd, cd_hpo_run_state *s, size_t trial,
                               cdmpp_err *err);
/* The end of a search: the best trials, the winner and its file `out`, as text and as an object of
 * schema "cdmpp.search". */
void cd_hpo_run_text(cd_buf *b, const cd_hpo_run_state *s, const char *out);
void cd_hpo_run_json(cd_buf *b, const cd_hpo_run_state *s, const char *out);
/* After any of the two, and after an error. */
void cd_hpo_run_free(cd_hpo_run_state *s);
#endif
