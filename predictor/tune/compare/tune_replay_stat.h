/* tune_replay_stat -- what replays say: how near to the best known program a tuner came, and when.
 *
 *   ratio = best known seconds of the log / best seconds found so far      0: nothing ran yet; 1: the best
 *
 *   (1) a run that ended early, all candidates measured, keeps its last value;
 *   (2) figures of a row are over tasks, of each the mean over seeds; quartiles between ranks are linear;
 *   (3) tasks of which nothing ran are in no figure;
 *   (4) a win: no other tuner is better in that task by more than 1e-9; tuners share it.
 * Simulated seconds: cost_s of what was measured, plus search_s of the run. */
#ifndef CD_TUNE_REPLAY_STAT_H
#define CD_TUNE_REPLAY_STAT_H
#include "predictor/tune/compare/tune_replay.h"

/* After so many trials; CD_TUNE_FAILED_S: nothing ran. */
double cd_tune_replay_best(const cd_tune_replay_log *l, const cd_tune_replay_run *r, size_t trials);
double cd_tune_replay_ratio(const cd_tune_replay_log *l, const cd_tune_replay_run *r, size_t trials);
/* Seconds of measuring, of searching, until so many trials were made. */
double cd_tune_replay_measure_s(const cd_tune_replay_log *l, const cd_tune_replay_run *r, size_t trials);
double cd_tune_replay_search_s(const cd_tune_replay_run *r, size_t trials);

typedef struct cd_tune_replay_row {
    size_t tuner, trials;
    double low, median, high, mean; /* ratios: quartiles and mean over tasks */
    double measure_s, search_s;     /* mean over runs */
    size_t n_task, n_seed, wins;
} cd_tune_replay_row;

/* Of each tuner and, within it, each of at (n_at): n_tuner * n_at rows. Errors: ENODATA (see (3)), ENOMEM. */
cdmpp_status cd_tune_replay_table(const cd_tune_replay_logs *l, const cd_tune_replay *r, const size_t *at, size_t n_at,
                             CD_GIVE cd_tune_replay_row **out, cdmpp_err *err);

/* Quartiles over all tasks and seeds of a tuner. */
typedef struct cd_tune_replay_curve {
    size_t n;
    double *x, *low, *median, *high; /* (n) x: trials, or simulated seconds; one block from x on */
} cd_tune_replay_curve;
/* Errors: ENODATA, ENOMEM. */
cdmpp_status cd_tune_replay_by_trials(const cd_tune_replay_logs *l, const cd_tune_replay *r, size_t tuner, size_t trials, cd_tune_replay_curve *out,
                                 cdmpp_err *err);
/* n points from the shortest first trial to the end of the longest run, evenly on a logarithmic scale. */
cdmpp_status cd_tune_replay_by_seconds(const cd_tune_replay_logs *l, const cd_tune_replay *r, size_t tuner, size_t n, cd_tune_replay_curve *out,
                                  cdmpp_err *err);
void cd_tune_replay_curve_free(cd_tune_replay_curve *c);
/* p of 0..1; v (n), n > 0, is sorted. */
double cd_tune_replay_quantile(double *v, size_t n, double p);
#endif
