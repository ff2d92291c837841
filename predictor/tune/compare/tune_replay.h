/* tune_replay -- tuners against logs: what each would have found, without a device.
 *
 *   for every task x tuner x seed:   ask a batch ──> candidates of the log ──> tell their recorded seconds ──> ask ...
 *
 *        run:  row    17   3  250 ...     which candidate each trial measured
 *              search 0.1 ... 0.3         processor seconds of the search up to it
 *
 *   (1) every run begins with a fresh space, ranker and search, and a seed that depends on the task's key and the
 *       number of the seed: the result is the same for any pool and any choice of other tasks, but for `search_s`,
 *       which is measured here;
 *   (2) the last batch of a run may be short; a run ends when the trials, or the candidates, are spent;
 *   (3) a tuner that asks twice for a candidate, or for one that the log lacks, is refused (EINVALID). */
#ifndef CD_TUNE_REPLAY_H
#define CD_TUNE_REPLAY_H
#include "base/core/core.h"
#include "predictor/tune/compare/tune_replay_log.h"
#include "predictor/tune/session/session.h"

typedef struct cd_tune_replay_spec {
    const cd_tune_tuner *const *tuner; /* (n_tuner) */
    size_t n_tuner, n_seed;
    uint64_t seed;              /* the first; the others follow */
    size_t batch, trials;       /* both > 0 */
    cd_tune_ranker_setup ranker; /* of each; its seed and device are set here */
    uint32_t population, generations; /* 0: the search's own */
    double epsilon;             /* negative: the search's own */
    cd_threads *pool;           /* NULL: none */
} cd_tune_replay_spec;

typedef struct cd_tune_replay_run {
    size_t n;                   /* trials made */
    const uint32_t *row;        /* (n) candidates of the log */
    const double *search_s;     /* (n) */
} cd_tune_replay_run;

typedef struct cd_tune_replay {
    size_t n_log, n_tuner, n_seed;
    cd_tune_replay_run *run;         /* (n_log, n_tuner, n_seed) */
} cd_tune_replay;

static inline const cd_tune_replay_run *cd_tune_replay_at(const cd_tune_replay *r, size_t log, size_t tuner, size_t seed) {
    return &r->run[(log * r->n_tuner + tuner) * r->n_seed + seed];
}

/* Errors: EINVALID (see (3)), those of the tuners, with key and tuner; ENOMEM. */
cdmpp_status cd_tune_replay_play(const cd_tune_replay_logs *l, const cd_tune_replay_spec *s, CD_GIVE cd_tune_replay **out, cdmpp_err *err);
void cd_tune_replay_free(CD_TAKE cd_tune_replay *r); /* NULL is fine */
/* Seed number `seed` of the task. */
uint64_t cd_tune_replay_seed(const cd_tune_replay_log *l, uint64_t seed);
#endif
