/* attribution -- which rows and leaves of a program its predicted time belongs to.
 *
 *   member: ln seconds --+-- rows, rank of rows, head sum: its seconds are a sum, its terms --+
 *                        |                                                                     +-> shares of a member
 *                        +-- any other: Shapley values of its seconds, rows in or out ---------+
 *   shares of members -- mean over folds, weighted like the kinds --> share of a row, of a leaf
 *
 * (1) Shares are >= 0 and sum to 1 up to rounding, over rows and over leaves; a row's is the sum of
 *     its leaves'. So share * seconds sums to the seconds, whichever of cd_model_prediction they are.
 * (2) The answer is a product of the kinds' seconds to the power of their weights. If every member
 *     had a term of it r % larger, the answer would be share * r % larger, to first order: that is
 *     what the weighted mean of shares means. Corrections (calibration.h) scale all terms alike.
 * (3) Players of a Shapley value are the rows, taken out of the program (no row: 0 s); of a network that
 *     reads leaves they are the leaves, whose columns become zeros, for the tree stays. Exact for
 *     up to CD_SHARE_EXACT players; then over CD_SHARE_ORDERS orders and their reverses, drawn
 *     with a fixed key; beyond CD_SHARE_DRAWN players in proportion to the seconds that each has
 *     alone. A value below 0 (the member answers less with the row than without) counts as 0.
 * (4) Members that see rows do not tell the leaves of a row apart: its share is divided by trip
 *     counts. The other way round leaves add up to rows.
 * Asks the heap; one thread, the model is shared. */
#ifndef CD_ATTRIBUTION_H
#define CD_ATTRIBUTION_H
#include "learner/model/model.h"

enum { CD_SHARE_EXACT = 7, CD_SHARE_ORDERS = 16, CD_SHARE_DRAWN = 48 };

/* The only program of v, with its leaves; leaf_row (leaves): the row of each. row (rows) and leaf (leaves)
 * are filled. Errors: those of cd_model_predict; EMODEL (no leaves, a row without one). */
cdmpp_status cd_attribution_shares(const cd_model *m, const cd_program_view *v, const int32_t *leaf_row, double *row, double *leaf,
                             cdmpp_err *err);

/* The columns of the row with most operations halfway between the least and the largest that the
 * model was trained on, (164). False: the model does not know (version 1). */
bool cd_model_middle(const cd_model *m, float *column);
#endif
