/* Structs that a caller owns are empty behind their free: it may come twice, and they may be filled
 * again. */
#include "emptied.h"
#include "learner/fit/fit.h"
#include "learner/fit/optim.h"
#include "learner/inputs/batch.h"
#include "learner/inputs/scaler.h"
#include "learner/model/member.h"
#include "learner/operators/operators.h"
#include "learner/tensor/tensor.h"
#include "learner/train/train_internal.h"
#include "learner/train/training_set.h"

TEST(structs_are_empty) {
    EMPTIED(cd_member, cd_member_free);
    EMPTIED(cd_fit_result, cd_fit_result_free);
    EMPTIED(cd_optim, cd_optim_free);
    EMPTIED(cd_library_op_score, cd_library_op_score_free);
    EMPTIED(cd_learner_result, cd_learner_result_free);
    EMPTIED(cd_library_op_train_result, cd_library_op_train_result_free);
    EMPTIED(cd_member_checkpoint, cd_member_checkpoint_free);
    EMPTIED(cd_training_set, cd_training_set_free);
    EMPTIED(cd_batch, cd_batch_free);
    EMPTIED(cd_scaler, cd_scaler_free);
    EMPTIED(cd_scaler_fit, cd_scaler_fit_free);
    EMPTIED(cd_params, cd_params_free);
    EMPTIED(cd_slab, cd_slab_free);
}

TESTS(NULL, NULL, structs_are_empty)
