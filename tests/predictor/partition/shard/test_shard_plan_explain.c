/* Reasons in words: a planner's state made by hand, and the sentence that it has to give. */
#include <string.h>

#include "check.h"
#include "predictor/partition/shard/shard_plan_internal.h"

enum { WHOLE0, WHOLE1, SPLIT_A, SPLIT_B };
static cd_machine m;
static double alone[3];
static cd_te_shard_axis way = {.name = "H"};
static cd_shard_planner_option option[4];
static cd_shard_planner_kind kind;
static const uint32_t all[] = {WHOLE0, WHOLE1, SPLIT_B, SPLIT_A};
static cd_shard_planner_node node;
static cd_te_dag dag;
static cd_shard_net_op op;
static cd_shard_net net;
static cd_shard_plan_options ask;
static uint32_t wanted;
static cd_shard_planner_solution found;
static cd_shard_planner s;
static cd_shard_plan_part part[2];
static cd_shard_plan_op o;
static cd_shard_plan plan;
static const char *device[] = {"d0", "d1", "d2"};
static cd_arena a;

/* Two devices; on d0 3 ms, on d1 4 ms, split 2.5 ms. */
static void begin(void) {
    cd_arena_reset(&a);
    memset(&m, 0, sizeof m);
    m.n = 2;
    for (int d = 0; d < 3; d++)
        m.device[d] = (cd_machine_device){.name = device[d], .launch_s = (d + 1) * 1e-5};
    alone[0] = 3e-3, alone[1] = 4e-3, alone[2] = 2e-3;
    option[WHOLE0] =
        (cd_shard_planner_option){.name = "d0", .way = CD_SHARD_PLANNER_NONE, .seconds = 3e-3};
    option[WHOLE1] =
        (cd_shard_planner_option){.name = "d1", .way = CD_SHARD_PLANNER_NONE, .seconds = 4e-3};
    option[SPLIT_A] = (cd_shard_planner_option){.name = "H 3|5", .way = 0, .seconds = 2.5e-3};
    option[SPLIT_B] = (cd_shard_planner_option){.name = "H 4|4", .way = 0, .seconds = 2.75e-3};
    kind = (cd_shard_planner_kind){.allowed = 3,
                                   .free = true,
                                   .key = true,
                                   .n_way = 1,
                                   .n_option = 4,
                                   .way = &way,
                                   .alone = alone,
                                   .best = 3e-3,
                                   .together = 1.5e-3,
                                   .least = 2e-3,
                                   .fastest = 0,
                                   .option = option};
    node = (cd_shard_planner_node){.n_all = 4, .all = all, .key = true, .worth = true};
    op = (cd_shard_net_op){.name = "conv", .type = "Conv", .dag = &dag, .pin = UINT32_MAX};
    net = (cd_shard_net){.n_op = 1, .op = &op};
    ask = (cd_shard_plan_options){.split = true};
    wanted = WHOLE0;
    found = (cd_shard_planner_solution){.wanted = &wanted, .tight = CD_SHARD_PLANNER_NONE};
    s = (cd_shard_planner){.ask = &ask,
                           .net = &net,
                           .m = &m,
                           .n_device = 2,
                           .n_kind = 1,
                           .cover = 0.5,
                           .margin = 0.05,
                           .kind = &kind,
                           .node = &node};
    part[0] = (cd_shard_plan_part){0, 0, 3, 1e-3}, part[1] = (cd_shard_plan_part){1, 3, 8, 1e-3};
    o = (cd_shard_plan_op){
        .name = "conv", .dim = "", .n_part = 1, .part = part, .join = UINT32_MAX, .seconds = 3e-3};
    plan = (cd_shard_plan){.n_device = 2,
                           .n_op = 1,
                           .device = device,
                           .op = &o,
                           .predicted_s = 2e-3,
                           .predicted_gain = 1.5,
                           .ceiling = 1.75};
}

static void says(const char *text) {
    assert_string_equal(cd_shard_planner_explain(&s, &found, 0, &o, 0, &a), text);
}

TEST(why_it_is_split) {
    begin();
    o = (cd_shard_plan_op){.dim = "H", .n_part = 2, .part = part, .seconds = 2.5e-3};
    says("split H 3|5: 2.5 ms against 3 ms on d0; nothing to exchange before it");
    o.exchange_s = 1e-4;
    says("split H 3|5: 2.5 ms against 3 ms on d0; waiting for another device before it costs 100 "
         "us");
    static const struct {
        int64_t bytes;
        const char *text;
    } t[] = {{1023, "1023 bytes"},          {1024, "1.0 KiB"},    {1536, "1.5 KiB"},
             {(1 << 20) - 1, "1024.0 KiB"}, {1 << 20, "1.0 MiB"}, {5 << 19, "2.5 MiB"}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        char want[160];
        snprintf(want, sizeof want,
                 "split H 3|5: 2.5 ms against 3 ms on d0; exchanging %s before it costs 100 us",
                 t[k].text);
        assert_string_equal(cd_shard_planner_explain(&s, &found, 0, &o, t[k].bytes, &a), want);
    }
    kind.fastest = CD_SHARD_PLANNER_NONE, o.exchange_s = 0, o.seconds = 1.5;
    says("split H 3|5: 1.5 s, which no device can do alone; nothing to exchange before it");
}

TEST(times_have_their_unit) {
    static const struct {
        double s;
        const char *text;
    } t[] = {
        {0.9994e-3, "999 us"}, {0.9996e-3, "1 ms"}, {0.9994, "999 ms"},         {0.9996, "1 s"},
        {12.34, "12.3 s"},     {2e-7, "0.2 us"},    {INFINITY, "infinite time"}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        char want[120];
        begin();
        o = (cd_shard_plan_op){.dim = "H", .n_part = 2, .part = part, .seconds = t[k].s};
        snprintf(want, sizeof want,
                 "split H 3|5: %s against 3 ms on d0; nothing to exchange before it", t[k].text);
        says(want);
    }
}

/* Hard reasons come before soft ones. */
TEST(why_it_is_not_split) {
    begin();
    says("not split: H 3|5 would save 500 us, exchanging with its neighbours costs more; on d0");
    s.least_s = 0.51e-3; /* the margin is not reached */
    says("not split: H 3|5 would take 2.5 ms against 3 ms on d0");
    s.least_s = 0, s.margin = 0.17;
    says("not split: H 3|5 would take 2.5 ms against 3 ms on d0");
    node.n_all = 2; /* no split option */
    says("not split, no part of it can run: on d0: 3 ms against 4 ms on d1");
    node.key = false;
    says("not split: not among the operators that make up 50 % of what can be saved; on d0");
    node.worth = false;
    says("not split: of 3 ms at most 1 ms could be saved; on d0");
    m.device[1].launch_s = 0.76e-3;
    says("not split: 3 ms is too short for a launch of 760 us; on d0");
    kind.allowed = 1; /* only launches of devices that may run it */
    says("not split: of 3 ms at most 1 ms could be saved; on d0");
    alone[1] = 6e-3;
    says("all on d0: d1 is 2 times slower, at most 1.50x");
    s.n_device = 3;
    says("not split: of 3 ms at most 1 ms could be saved; on d0");
    s.n_device = 2, found.refused = true, wanted = SPLIT_B;
    says("on d0: split H 4|4 it would take 2.75 ms against 3 ms, but the network as a whole gains "
         "too little");
    wanted = WHOLE1;
    says("all on d0: d1 is 2 times slower, at most 1.50x");
    kind.n_way = 0;
    says("not split, no dimension can be: on d0: 3 ms against 6 ms on d1");
    op.dag = NULL;
    says("not split, nobody defines it: on d0: 3 ms against 6 ms on d1");
    ask.split = false;
    says("on d0: 3 ms against 6 ms on d1");
    op.pin = 1;
    says("on d1: pinned");
    op.pin_why = "rules:7";
    says("on d1: pinned (rules:7)");
}

static const char *nobody(void *ctx, uint32_t of, uint32_t on, const cd_te_shard *shard) {
    (void)ctx, (void)of, (void)shard;
    return on == 1 ? "none lowers" : NULL;
}

TEST(where_it_runs) {
    begin();
    ask.split = false;
    part[0].device = 1; /* the slower one */
    says("on d1: 4 ms, with what must be copied better than 3 ms on d0");
    alone[0] = 4e-3;
    says("on d1: 4 ms against 4 ms on d0");
    s.n_device = 3, kind.allowed = 7; /* the fastest of the others */
    says("on d1: 4 ms, with what must be copied better than 2 ms on d2");
    s.n_device = 2, part[0].device = 0, alone[1] = INFINITY;
    says("all on d0: no time is known on d1");
    ask.why = nobody;
    says("all on d0: no time is known on d1 (none lowers)");
    kind.allowed = 1;
    says("all on d0: no other device may run it");
    kind.allowed = 3, alone[0] = INFINITY; /* of all: the first */
    assert_string_equal(cd_shard_planner_without_time(&s, &kind, CD_SHARD_PLANNER_NONE, &a), "d0");
    alone[0] = alone[1] = 1;
    assert_null(cd_shard_planner_without_time(&s, &kind, CD_SHARD_PLANNER_NONE, &a));
}

static void verdict(const char *text) {
    assert_string_equal(cd_shard_planner_verdict(&s, &found, &plan, &a), text);
}

TEST(what_the_plan_does) {
    double base[3] = {3e-3, 9e-3, 6e-3};
    begin();
    found.base_s = base, found.alone_s = 3e-3, found.rho = 3;
    o.dim = "H", o.n_part = 2;
    verdict("split 1 of 1 operators: 2 ms against 3 ms, 1.50x of at most 1.75x");
    o.dim = "";
    verdict("split none, placed on 2 devices: 2 ms, 1.50x of at most 1.75x");
    o.n_part = 1;
    verdict("do not split, all on d0: no split saves 5 % of 3 ms; at most 1.75x");
    found.rho = 38; /* twice what the margin allows: (1 - 0.05) / 0.05 */
    verdict("do not split, all on d0: d1 is 38 times slower and would have to be 2 times faster to "
            "be worth it; at most 1.75x");
    found.tight = 1, s.limit[1] = 2.5e9;
    verdict("do not split, all on d0: d1 is 38 times slower and would have to be 2 times faster to "
            "be worth it; at most 1.75x; a better plan does not fit into 2.5 GB of d1");
    found.tight = CD_SHARD_PLANNER_NONE, s.n_device = 3;
    verdict("do not split, all on d0: no split saves 5 % of 3 ms; at most 1.75x");
    s.n_device = 2, s.margin = 0, found.rho = 1e9;
    verdict("do not split, all on d0: no split saves 0 % of 3 ms; at most 1.75x");
    s.n_device = 1;
    verdict("all on d0");
    s.n_device = 2, found.alone = CD_SHARD_PLANNER_NONE;
    verdict("all on d0");
}

/* Why a device has no time for all: operators without a time, operators that it may not run, or its
 * memory. */
TEST(why_a_device_cannot_do_all) {
    double base[] = {3e-3, INFINITY};
    cd_shard_net_op two[2];
    cd_shard_planner_node nodes[2];
    begin();
    two[0] = two[1] = op, two[1].name = "add", nodes[0] = nodes[1] = node;
    net.n_op = 2, net.op = two, s.node = nodes, found.base_s = base, found.rho = INFINITY;
    verdict("do not split, all on d0: all of it does not fit into d1, or cannot be brought there");
    kind.allowed = 1;
    verdict("do not split, all on d0: d1 may not run 2 of 2 operators");
    kind.allowed = 3, alone[1] = INFINITY;
    verdict("do not split, all on d0: 2 of 2 operators have no time on d1, the first is conv");
    ask.why = nobody;
    verdict("do not split, all on d0: 2 of 2 operators have no time on d1, the first is conv: none "
            "lowers");
    cd_arena_free(&a);
}

TESTS(NULL, NULL, why_it_is_split, times_have_their_unit, why_it_is_not_split, where_it_runs,
      what_the_plan_does, why_a_device_cannot_do_all)
