/* unlike_law -- from errors of programs that were left out to the interval of the next kind (cd_unlike_law, learner/model/model.h).
 *
 *   errors of kind 1 ─┐  mean of each kind ──> shift ─┐
 *   errors of kind 2 ─┼─ what is left of them ──> own ┴──> low, high
 *   ...              ─┘
 *
 *   (1) each kind counts the same, whatever its number of programs: each is one draw of "a kind that was never seen";
 *   (2) with many kinds low and high are quantiles of all errors, at p (1 + 1/kinds), as in calibration_spread.c;
 *   (3) few kinds do not reach that far: then the shift of the next one has the quantiles of Student's t, around no shift, and what programs have of their own is added in
 *       quadrature. */
#ifndef CD_UNLIKE_LAW_H
#define CD_UNLIKE_LAW_H
#include "learner/model/model.h"

enum { CD_UNLIKE_LAW_LEAST = 2 }; /* kinds; fewer say nothing of a further one */
typedef struct cd_unlike_error {
    double r;                /* ln(measured / answer) */
    uint32_t group;          /* the kind */
    double weight;           /* set by the callee */
} cd_unlike_error;
/* Reorders e (n). Fewer than CD_UNLIKE_LAW_LEAST kinds: out->n is 0. */
void cd_unlike_law_of(cd_unlike_error *e, size_t n, double level, cd_unlike_law *out);
#endif
