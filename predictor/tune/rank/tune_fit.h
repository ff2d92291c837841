/* tune_fit -- trees grown on what a search has measured, from nothing each time.
 *
 *   program i  ──  rows start[i] .. start[i+1] of x  ──  label y[i] in [0, 1], 1: the fastest of its task
 *
 *   pack_sum   score = sum over rows; squared error weighted by y          Ansor (TVM v0.9)
 *   pairs      score of its one row; of each pair the faster one is above  AutoTVM, XGBoost's rank:pairwise
 *
 * Both stop when the figure of their search has not improved on the training set for a while: the error of
 * pack_sum (looked at after every other tree, to 6 decimals), autotvm's average recall of pairs.
 * One thread; the same trees for the same input and seed. */
#ifndef CD_TUNE_FIT_H
#define CD_TUNE_FIT_H
#include <stddef.h>
#include <stdint.h>

#include "learner/trees/trees.h"

enum { CD_TUNE_FIT_RECALL = 64 }; /* the plan of autotvm's tuner */

typedef struct cd_tune_fit {
    const float *x;             /* (start[n], width) */
    size_t width, n;
    const size_t *start;        /* (n + 1) */
    const double *y;            /* (n) */
    uint64_t seed;
} cd_tune_fit;

/* A booster for cd_xgb_predict. Errors: EBACKEND, EMODEL, ENOMEM. */
cdmpp_status cd_tune_fit_pack_sum(const cd_tune_fit *f, CD_GIVE cd_xgb **out, cdmpp_err *err);
cdmpp_status cd_tune_fit_pairs(const cd_tune_fit *f, CD_GIVE cd_xgb **out, cdmpp_err *err);

typedef struct cd_tune_place {
    double v;
    size_t i;
} cd_tune_place;

/* autotvm's a-recall@top: the mean over m = 1 .. top of how many of the first m - 1 by score are among the m fastest,
 * over m. rank (n): 0 the fastest. place (n): scratch. Equal scores: the later one first. */
double cd_tune_fit_recall(const float *score, const size_t *rank, size_t n, size_t top, cd_tune_place *place);
#endif
