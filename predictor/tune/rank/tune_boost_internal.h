/* The insides of the rankers by XGBoost.
 *
 *   candidate ── tune_feat ──> row (cache by key and task)      seen[k] = where its rows are
 *   learn     ──> sample, x                                     kept for ever
 *   rank      ──> trees, made anew if there are new samples     of the task; one for all tasks of Ansor's
 *
 * (1) learn only copies; training happens when somebody asks for a rank after it.
 * (2) Before there is enough to train on, ranks are random numbers of the candidates' keys, and -infinity for
 *     what is no program.
 * Private to tune_rank_boost.c and tune_boost_trees.c. */
#ifndef CD_TUNE_BOOST_INTERNAL_H
#define CD_TUNE_BOOST_INTERNAL_H

#include "predictor/tune/rank/tune_feat.h"
#include "predictor/tune/rank/tune_fit.h"
#include "predictor/tune/core/core.h"

enum {
    CD_TUNE_BOOST_WARM_UP = 100,        /* of Ansor's model; its task scheduler takes a round of every task instead */
    CD_TUNE_BOOST_LEAST = 8,            /* autotvm's waits for a plan; no search here plans for fewer */
    CD_TUNE_BOOST_CACHE = 32 << 20      /* floats */
};

typedef struct cd_tune_seen {
    size_t at, n;               /* floats of row; n == 0: no program */
} cd_tune_seen;

typedef struct cd_tune_boost_sample {
    size_t task, at, n;         /* floats of x */
    double seconds;
} cd_tune_boost_sample;

typedef struct cd_tune_boost_task {
    const cd_task *task;
    char *target;
    size_t n, n_good;           /* samples; those that did not fail */
    double best_s;
    cd_xgb *trees;              /* NULL: none yet, or shared */
    size_t width, n_fitted;
} cd_tune_boost_task;

typedef struct cd_tune_boost {
    cd_tune_ranker base;
    cd_tune_feat_kind features;
    bool shared, frozen;        /* shared: one set of trees for all tasks */
    uint64_t seed;
    cd_tune_feat feat;
    cd_tune_row row;
    cd_tune_key_set known;         /* key -> number of seen */
    cd_tune_seen *seen;
    cd_tune_boost_task *task;
    cd_tune_boost_sample *sample;
    float *x, *input, *output;
    size_t n_seen, cap_seen, n_task, cap_task, n_sample, cap_sample, n_x, cap_x, cap_input, cap_output;
    cd_xgb *trees;              /* shared */
    size_t n_fitted, n_round;   /* n_round: samples of the first learn */
} cd_tune_boost;

/* list: where the pointer to n items of `size` bytes is; room for `add` more. Errors: ENOMEM. */
cdmpp_status cd_tune_boost_room(void *list, size_t n, size_t add, size_t *cap, size_t size, cdmpp_err *err);
/* The trees for a task that is ready. Errors: EBACKEND, EMODEL, ENOMEM. */
cdmpp_status cd_tune_boost_trees(cd_tune_boost *r, size_t task, CD_KEEP const cd_xgb **trees, size_t *width, cdmpp_err *err);
#endif
