/* What the files of learner/loss share among themselves. */
#ifndef CD_LEARNER_LOSS_INTERNAL_H
#define CD_LEARNER_LOSS_INTERNAL_H
#include "learner/loss/loss.h"

/* net_loss_internal -- the scratch memory and the
 * pairwise terms. */

struct cd_net_loss_scratch {
    cd_arena arena;
    size_t *order; /* (max_n) samples by group */
    size_t *place; /* (max_n) of one group: rank by prediction, then by label */
    double *score; /* (3 * max_n) of one group */
    double *pred;  /* (max_n) predictions of z */
    double *grad;  /* (max_n * width) */
};

/* objective_internal -- what objective.c and net_loss.c share. */

/* A program of a task in an order. */
typedef struct cd_objective_place {
    uint32_t group;
    double score, log_s;
    size_t i;
} cd_objective_place;

/* The mean loss of the order of tasks under the program scores; fills g and h of every program (the
 * derivative of n * loss). NaN: no task has two different latencies. score (n). */
double cd_objective_order(cd_objective_part *p, cd_rank_loss l, const double *score);
#endif
