/* Every allocation of a plan fails once: an error, nothing lost. */
#include "check.h"
#include "fault.h"
#include "made_part.h"
#include "predictor/partition/offload/offload_rules.h"
#include "predictor/partition/shard/shard_select.h"
#include "predictor/partition/stages/stage_schedule.h"
#include "predictor/partition/games/games.h"

typedef cdmpp_status job(cdmpp_err *err);
static made_part m;

static cdmpp_status place_by(cd_place_goal goal, uint32_t D, cdmpp_err *err) {
    cd_place_plan r;
    cd_place_regions g = {0};
    cd_buf b = {0};
    mp_make(&m, 12, 7, D, false, true);
    cdmpp_status st = cd_place_solve(&m.p, goal, 0, &r, err);
    if (!st) st = cd_place_merge_regions(&m.p, r.where, &g, err);
    if (!st) st = cd_place_lp(&m.p, goal, &b, err);
    if (!st && b.oom) st = CDMPP_ENOMEM;
    cd_buf_free(&b);
    cd_place_regions_free(&g);
    cd_place_plan_free(&r);
    return st;
}
static cdmpp_status place_sum(cdmpp_err *err) { return place_by(CD_PLACE_SUM, 2, err); }
static cdmpp_status place_more(cdmpp_err *err) { return place_by(CD_PLACE_SUM, 3, err); }
static cdmpp_status place_span(cdmpp_err *err) { return place_by(CD_PLACE_MAKESPAN, 2, err); }

static cdmpp_status split(cdmpp_err *err) {
    static const double share[2][2] = {{1, 0}, {0.5, 0.5}}, exchange[] = {0, 1, 1, 0};
    static const cd_shard_select_option option[] = {{"cpu", -1, 1, share[0]},
                                                    {"H", 2, 0.6, share[1]}};
    static const cd_shard_select_op op[] = {{"a", 2, option}, {"b", 2, option}, {"c", 2, option}};
    static const cd_shard_select_edge edge[] = {{0, 1, exchange}, {1, 2, exchange}};
    static const char *const device[] = {"cpu", "npu"};
    const cd_shard_select_problem p = {3, 2, 2, op, edge, device};
    cd_shard_select_plan r;
    cdmpp_status st = CDMPP_OK;
    for (size_t most = 0; most < 3 && !st; most += 2) { /* all at once; windows */
        st = cd_shard_select_solve(&p, most, &r, err);
        cd_shard_select_plan_free(&r);
    }
    return st;
}

static double one(const cd_offload_match *match, const uint32_t *op, uint32_t n, uint32_t device,
                  void *ctx) {
    return (void)match, (void)op, (void)ctx, n + device;
}
static cdmpp_status offload(cdmpp_err *err) {
    static const char text[] =
        "host cpu\npattern npu p: a -> b\nsupport npu a where c=1\nplace z cpu\n";
    static const uint32_t in[] = {0, 1};
    static const cd_offload_op op[] = {
        {"x", "a", 0, 0, 0, NULL}, {"y", "b", 0, 0, 1, NULL}, {"z", "a", 0, 1, 1, NULL}};
    static const cd_place_link link[] = {{0, 1, 0, 1, 0, 0, 0}, {1, 0, 0, 1, 0, 0, 0}};
    static const int64_t bytes[] = {1, 1, 1};
    const cd_offload_graph g = {3, 2, op, in};
    const cd_offload_options ask = {one, NULL, bytes, link, 2};
    cd_offload_rules *r = NULL;
    cd_offload o = {0};
    cd_offload_plan p = {0};
    cdmpp_status st = cd_offload_parse("x", text, sizeof text - 1, &r, err);
    if (!st) st = cd_offload_apply(r, &g, &o, err);
    if (!st) st = cd_offload_choose(r, &g, &o, &ask, &p, err);
    cd_offload_plan_free(&p);
    cd_offload_done(&o);
    cd_offload_free(r);
    return st;
}

static double stage(const cd_stage_step *s, void *ctx) { return (void)ctx, 1 + 0.1 * s->n_group; }
static double thread(uint32_t op, const uint32_t *threads, uint32_t n, void *ctx) {
    return (void)n, (void)ctx, 1.0 / threads[op];
}
static cdmpp_status schedule(cdmpp_err *err) {
    static const uint32_t after[] = {0, 0};
    static const cd_stage_op op[] = {{"a", 0, 0}, {"b", 0, 1}, {"c", 1, 1}};
    static const cd_pack_op tasks[] = {{"a", 3, 1, 0, 0}, {"b", 2, 1, 0, 1}};
    static const double seconds[] = {1, 2, 3, 1};
    const cd_stage_graph g = {3, 2, op, after};
    const cd_stage_options ask = {0, 0, stage, NULL, 0};
    cd_stage_plan p;
    cd_game_result r = {0};
    cd_cotune c = {0};
    cd_pack k = {0};
    uint32_t block[3], n;
    cdmpp_status st = cd_stage_search(&g, &ask, &p, err);
    if (!st) st = cd_stage_blocks(&g, 2, block, &n, err);
    if (!st) st = cd_game_play(&(cd_game){2, 2, NULL, seconds, NULL}, 0, &r, err);
    if (!st) st = cd_cotune_search(2, 4, thread, NULL, &c, err);
    if (!st) st = cd_pack_make(tasks, 2, after, 2, 2, &k, err);
    cd_stage_plan_free(&p);
    cd_game_free(&r);
    cd_cotune_free(&c);
    cd_pack_free(&k);
    return st;
}

static void memory(void **state) {
    (void)state;
    job *const all[] = {place_sum, place_more, place_span, split, offload, schedule};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) FAULT_SWEEP(f, 1) f.st = all[i](&f.err);
}

TESTS(NULL, NULL, memory)
