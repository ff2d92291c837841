/* What the files of learner/loss share among themselves. */
#ifndef CD_LEARNER_LOSS_INTERNAL_H
#define CD_LEARNER_LOSS_INTERNAL_H
#include "learner/loss/loss.h"

/* net_loss_internal -- what net_loss.c and net_loss_rank.c share: the scratch memory and the
 * pairwise terms. */

struct cd_net_loss_scratch {
    cd_arena arena;
    size_t *order; /* (max_n) samples by group */
    size_t *place; /* (max_n) of one group: rank by prediction, then by label */
    double *score; /* (3 * max_n) of one group */
    double *pred;  /* (max_n) predictions of z */
    double *grad;  /* (max_n * width) */
};

/* ln(1 + e^x) and its slope. */
double cd_net_loss_softplus(double x, double *slope);
/* lambdarank: what a program is worth whose task has one that is `ratio` (0..1) of its time; what a
 * place (0: the first) counts. */
double cd_net_loss_gain(double ratio);
double cd_net_loss_discount(size_t place);
/* Adds the rank terms: values before weights to term, gradients with respect to
 * the predictions s->pred to s->grad (one of every `width`). s->order is by group. */
void cd_net_loss_rank_terms(const cd_net_loss *p, const cd_net_loss_batch *b,
                            const cd_net_loss_norm *norm, size_t width, double *term,
                            cd_net_loss_scratch *s);

/* objective_internal -- what objective.c and objective_rank.c share. */

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
