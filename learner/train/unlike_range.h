/* unlike_range -- how far outside of the columns' range a program of a known kind may lie and still
 * be like those of training.
 *
 *   programs of a fold ─┬─> new marks beside the other folds? ─────┐
 *                       └─> distance from the other folds' range ──┴─> limit
 *
 * It is the least limit at which at most 5 % of the programs are flagged, each task counting the
 * same, for either reason.
 *
 * The range's own limit (learner/model/calibration.h) is for rows alone. Where marks are compared
 * too it would flag further programs of tasks like those of training: this limit leaves to the
 * range what the marks leave of the 5 %. */
#ifndef CD_UNLIKE_RANGE_H
#define CD_UNLIKE_RANGE_H
#include "learner/model/model.h"
#include "learner/train/training_set.h"

typedef struct cd_unlike_range_program {
    double outside; /* distance; infinite: its marks are new */
    uint32_t group; /* its task on its device */
    uint32_t at;    /* of t->oof */
    double weight;  /* set by cd_unlike_range_limit: each group counts 1 */
} cd_unlike_range_program;
/* The limit for these programs, which are put in another order. */
double cd_unlike_range_limit(cd_unlike_range_program *v, size_t n);

/* unlike_law -- from errors of programs that were left out to the interval of the next kind
 * (cd_unlike_law, learner/model/model.h).
 *
 *   errors of kind 1 ─┐  mean of each kind ──> shift ─┐
 *   errors of kind 2 ─┼─ what is left of them ──> own ┴──> low, high
 *   ...              ─┘
 *
 *   (1) each kind counts the same, whatever its number of programs: each is one draw of "a kind
 *       that was never seen";
 *   (2) with many kinds low and high are quantiles of all errors, at p (1 + 1/kinds), as in
 *       calibration_pick.c;
 *   (3) few kinds do not reach that far: then the shift of the next one has the quantiles of
 *       Student's t, around no shift, and what programs have of their own is added in
 *       quadrature. */
enum { CD_UNLIKE_LAW_LEAST = 2 }; /* kinds; fewer say nothing of a further one */
typedef struct cd_unlike_error {
    double r;       /* ln(measured / answer) */
    uint32_t group; /* the kind */
    double weight;  /* set by the callee */
} cd_unlike_error;
/* Reorders e (n). Fewer than CD_UNLIKE_LAW_LEAST kinds: out->n is 0. */
void cd_unlike_law_of(cd_unlike_error *e, size_t n, double level, cd_unlike_law *out);
#endif
