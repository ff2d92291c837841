/* unlike_range -- how far outside of the columns' range a program of a known kind may lie and still be like those of training.
 *
 *   programs of a fold ──> new marks beside the other folds? ──┐
 *                     └──> distance from the other folds' range ┴─> the least limit at which at most 5 % of the programs are flagged, each
 *                                                                   task counting the same, for either reason
 *
 * The range's own limit (learner/model/calibration.h) is for rows alone. Where marks are compared too it would flag further programs of tasks like
 * those of training: this limit leaves to the range what the marks leave of the 5 %. */
#ifndef CD_UNLIKE_RANGE_H
#define CD_UNLIKE_RANGE_H
#include "learner/model/model.h"
#include "learner/train/training_set.h"

typedef struct cd_unlike_range_program {
    double outside;             /* distance; infinite: its marks are new */
    uint32_t group;             /* its task on its device */
    uint32_t at;                /* of t->oof */
    double weight;              /* set by cd_unlike_range_limit: each group counts 1 */
} cd_unlike_range_program;
/* The limit for these programs, which are put in another order. */
double cd_unlike_range_limit(cd_unlike_range_program *v, size_t n);

/* to->range, a distance as cd_model_prediction.outside; where marks alone flag 5 %, the largest distance of a program out of fold. And the law of programs that are out of range, by how
 * far off the model is out of fold for the farthest tasks; kind_log_s (n_kind, n_oof) as its members answered, NULL: no law. Errors: ENOMEM, those of cd_evaluate_answers. */
cdmpp_status cd_unlike_range(const cd_training_set *t, const double *kind_log_s, const cd_model *m, cd_trained_on *to, cdmpp_err *err);
#endif
