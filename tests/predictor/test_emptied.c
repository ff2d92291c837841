/* Structs that a caller owns are empty behind their free: it may come twice, and they may be filled
 * again. */
#include "emptied.h"
#include "predictor/estimate/estimate.h"
#include "predictor/network/network_internal.h"
#include "predictor/partition/emit/emit.h"
#include "predictor/partition/games/cotune.h"
#include "predictor/partition/games/game.h"
#include "predictor/partition/games/pack.h"
#include "predictor/partition/offload/offload.h"
#include "predictor/partition/plan/partition_rules.h"
#include "predictor/partition/placement/place.h"
#include "predictor/partition/shard/shard_select.h"
#include "predictor/partition/stages/stage_schedule.h"
#include "predictor/replay/replay.h"
#include "predictor/score/explain.h"
#include "predictor/tune/compare/compare.h"
#include "predictor/tune/core/core.h"
#include "predictor/tune/rank/rank_internal.h"
#include "predictor/tune/search/search_internal.h"

TEST(of_a_search) {
    EMPTIED(cd_tune_pool, cd_tune_pool_free);
    EMPTIED(cd_tune_key_set, cd_tune_key_set_free);
    EMPTIED(cd_tune_row, cd_tune_row_free);
    EMPTIED(cd_tune_feat, cd_tune_feat_free);
    EMPTIED(cd_tune_touches, cd_tune_touches_free);
    EMPTIED(cd_tune_replay_logs, cd_tune_replay_logs_free);
    EMPTIED(cd_tune_replay_curve, cd_tune_replay_curve_free);
}

TEST(of_a_network) {
    EMPTIED(cd_torch_trace, cd_torch_trace_free);
    EMPTIED(cd_parallel_net, cd_parallel_net_free);
    EMPTIED(cd_replay, cd_replay_free);
    EMPTIED(cd_explanation, cd_explain_free);
}

TEST(of_a_plan) {
    EMPTIED(cd_emit_files, cd_emit_files_free);
    EMPTIED(cd_stage_plan, cd_stage_plan_free);
    EMPTIED(cd_partition_rules, cd_partition_rules_close);
    EMPTIED(cd_place_plan, cd_place_plan_free);
    EMPTIED(cd_place_regions, cd_place_regions_free);
    EMPTIED(cd_shard_select_plan, cd_shard_select_plan_free);
    EMPTIED(cd_offload, cd_offload_done);
    EMPTIED(cd_offload_plan, cd_offload_plan_free);
    EMPTIED(cd_offload_net_match, cd_offload_match_done);
    EMPTIED(cd_offload_net_plan, cd_offload_net_plan_free);
    EMPTIED(cd_cotune, cd_cotune_free);
    EMPTIED(cd_game_result, cd_game_free);
    EMPTIED(cd_pack, cd_pack_free);
}

TESTS(NULL, NULL, of_a_search, of_a_network, of_a_plan)
