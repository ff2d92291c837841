/* objective_internal -- what objective.c and objective_rank.c share. */
#ifndef CD_OBJECTIVE_INTERNAL_H
#define CD_OBJECTIVE_INTERNAL_H
#include "learner/loss/objective.h"

/* The mean loss of pairs under the program scores; fills g and h of every program (the
 * derivative of n * loss). NaN: no pair. score (n). */
double cd_objective_pairs(cd_objective_part *p, const double *score);
#endif
