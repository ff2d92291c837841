/* space -- what a search may vary: a file of keys and ranges -> configurations.
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
 *       be `fixed`; filter.* may carry the budget.
 * Read-only once loaded, any thread. */
#ifndef CD_HPO_SPACE_H
#define CD_HPO_SPACE_H
#include "learner/hpo/hpo_asha.h"
#include "learner/config/config.h"

#define CD_HPO_SAMPLERS "sobol|random"
typedef enum { CD_HPO_SAMPLER_SOBOL, CD_HPO_SAMPLER_RANDOM } cd_hpo_sampler;
#define CD_HPO_METRICS "mape|median|rmse_log|rank"
typedef enum { CD_HPO_METRIC_MAPE, CD_HPO_METRIC_MEDIAN, CD_HPO_METRIC_RMSE_LOG, CD_HPO_METRIC_RANK } cd_hpo_metric;

#define CD_HPO_PARAM_KINDS "fixed|choice|int|log_int|real|log_real"
typedef enum { CD_HPO_PARAM_FIXED, CD_HPO_PARAM_CHOICE, CD_HPO_PARAM_INT, CD_HPO_PARAM_LOG_INT, CD_HPO_PARAM_REAL, CD_HPO_PARAM_LOG_REAL } cd_hpo_param_kind;

/* Holds when the key's value is one of these; for a list, when it has one of these. */
typedef struct cd_hpo_space_condition {
    const cd_conf_key *key;
    cd_texts value;       /* as cd_conf_print_value prints them */
} cd_hpo_space_condition;

typedef struct cd_hpo_space_param {
    const cd_conf_key *key;
    cd_hpo_param_kind kind;
    double lo, hi;        /* INT to LOG_REAL, both included */
    cd_texts value;       /* FIXED: one, CHOICE: all, as YAML */
    size_t n_when;
    cd_hpo_space_condition *when;        /* all must hold */
} cd_hpo_space_param;

typedef struct cd_hpo_spec {
#define X(name, type, def, range, help) cd_cfg_##type name;
#include "learner/hpo/space_keys.def"
} cd_hpo_spec;

typedef struct cd_hpo_space {
    cd_hpo_spec tune;
    const cd_conf_key *budget;   /* key of tune.budget, INT or REAL */
    size_t n_param;
    cd_hpo_space_param *param;
    const char *path, *base;     /* of the file; of the configuration it names or "" */
    cd_arena arena;
    cd_diag diag;                /* every error so far */
} cd_hpo_space;

/* The settings of the table, for the manual. */
const cd_conf_key *cd_hpo_space_keys(size_t *n);
/* Free with cd_hpo_space_free also after an error. `set`: n_set assignments "tune.trials=8"
 * over the file. Errors: EIO, EPARSE, ESCHEMA, ERANGE, ENOMEM. */
cdmpp_status cd_hpo_space_load(cd_hpo_space *s, const char *path, const char *const *set, size_t n_set, cdmpp_err *err);
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
cdmpp_status cd_hpo_space_sample(const cd_hpo_space *s, const cd_config *base, cd_arena *a, CD_KEEP cd_hpo_trial **out, size_t *n,
                           cdmpp_err *err);
/* A configuration of its own: base, the trial's settings, the budget; borrows from
 * `base`. cd_config_free it, also after an error. */
cdmpp_status cd_hpo_space_config(const cd_hpo_space *s, const cd_config *base, const cd_hpo_trial *t, double budget, cd_config *out,
                             cdmpp_err *err);
#endif
