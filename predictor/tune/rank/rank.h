/* The door of predictor/tune/rank: other rooms include this header and no other of the room.
 *
 * A ranker says which candidates are worth a measurement (cd_tune_ranker_kind,
 * predictor/tune/core/core.h). Two of them ask a trained cost model; the others train an XGBoost
 * model on what is measured during the search. */
#ifndef CD_PREDICTOR_TUNE_RANK_DOOR_H
#define CD_PREDICTOR_TUNE_RANK_DOOR_H
#include "predictor/tune/core/core.h"

/* ---- tune_rank_model.c ---- */
/* profile tuner, else full; corrected by the measurements (learner/model/model.h) */
extern const cd_tune_ranker_kind cd_tune_rank_model;
/* its best candidates are ranked again by profile full */
extern const cd_tune_ranker_kind cd_tune_rank_twostage;

/* ---- tune_rank_boost.c: XGBoost, trained on the measurements ---- */
/* Ansor's own: 164 columns a store; a program's score is the sum over its stores */
extern const cd_tune_ranker_kind cd_tune_rank_ansor;
/* AutoTVM's features of the numbers in the steps, pairwise rank */
extern const cd_tune_ranker_kind cd_tune_rank_knob;
/* AutoTVM's features of loops, pairwise rank */
extern const cd_tune_ranker_kind cd_tune_rank_itervar;
/* AutoTVM's curves of touch and reuse, pairwise rank */
extern const cd_tune_ranker_kind cd_tune_rank_curve;
#endif
