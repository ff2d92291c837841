/* What is uncertain of the times on each device of a plan: each warning once for each device of the
 * models, in its words. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "predictor/partition/plan/partition_internal.h"

static char *said;
static size_t n_said;
static FILE *to;
static cd_log out;
static cd_partition_options options;
static cd_partition p;
static cd_shard_plan plan;

/* Three devices, a0 and a1 of one of the models, b of another. */
static void begin(void) {
    to = open_memstream(&said, &n_said);
    assert_non_null(to);
    cd_log_init(&out, "x", to);
    options = (cd_partition_options){.log = &out, .goal = -1};
    plan = (cd_shard_plan){.n_device = 3};
    p = (cd_partition){.o = &options, .plan = &plan, .net.name = "net"};
    p.machine.n = 3;
    for (int k = 0; k < 3; k++)
        p.machine.device[k] = (cd_machine_device){.name = k == 0 ? "a0" : k == 1 ? "a1" : "b0"};
    for (int k = 0; k < 3; k++)
        p.source[k] = (cd_shard_plan_source){.as = k < 2 ? "chip-a" : "chip-b", .model = "m.cdmpp"};
}

static void heard(const char *want) {
    (void)fclose(to);
    cd_log_done(&out);
    assert_string_equal(said, want);
    free(said);
    said = NULL;
}

TEST(stand_ins) {
    begin();
    assert_true(!cd_partition_was_there(&p, 0) && cd_partition_was_there(&p, 1) &&
                !cd_partition_was_there(&p, 2));
    for (uint32_t k = 0; k < 3; k++) cd_partition_say_stand_in(&p, k);
    p.source[0].stands = p.source[1].stands = p.source[2].stands = "t4";
    p.source[0].stands_spread = log(1.5), p.source[2].scaled = true;
    for (uint32_t k = 0; k < 3; k++) cd_partition_say_stand_in(&p, k);
    p.source[0].stands_spread = 0.005;
    cd_partition_say_stand_in(&p, 0);
    p.source[0].as = NULL;
    cd_partition_say_stand_in(&p, 0);
    p.source[0].guessed = true;
    cd_partition_say_stand_in(&p, 0);
    heard(
        "x: warning: chip-a is not in the model: t4 stands in; for that alone times may be off by "
        "up to 1.9x, and intervals allow for it\n"
        "x: warning: no model knows chip-b, nor another of its kind: t4 of the model stands for "
        "it. Its times are multiplied by the ratio of both rooflines, and may be 10 times shorter "
        "or longer\n"
        "x: warning: chip-a is not in the model: t4 stands in; times may be off, how far is not "
        "known\n"
        "x: warning: a0 is not in the model: t4 stands in; times may be off, how far is not known\n"
        "x: warning: this CPU () is not in the model: t4 stands in; times may be off, how far is "
        "not known. For yours: cdmpp-tune calibrate (5 minutes)\n");
}

/* A device that nobody measured and networks that nobody measured there are one doubt, in one
 * sentence. A plan of a file may be of another machine. */
TEST(one_warning_of_a_device) {
    begin();
    p.source[0].stands = p.source[2].stands = "t4";
    p.source[0].stands_spread = p.source[2].stands_spread = log(1.5);
    p.source[0].costs_spread = p.source[2].costs_spread = log(1.5);
    p.source[2].guessed = true;
    p.source[2].host = "AMD EPYC, zen3";
    options.plan = "a.plan.json";
    for (uint32_t k = 0; k < 3; k++)
        cd_partition_say_stand_in(&p, k), cd_partition_say_costs(&p, k);
    heard("x: warning: chip-a is not in the model: t4 stands in; for that alone times may be off "
          "by up to 2.6x, and intervals allow for it\n"
          "x: warning: the machine that the plan is for (AMD EPYC, zen3) is not in the model: t4 "
          "stands in; for that alone times may be off by up to 2.6x, and intervals allow for it\n");
}

/* Of this machine, for which the device of the same name stands, it is said besides. */
TEST(this_machine_is_another_device) {
    begin();
    p.source[1].guessed = true;
    assert_true(!cd_partition_was_there(&p, 1));
    heard("");
}

/* A law that is lent is named with the device that it was measured on. */
TEST(costs_that_are_lent) {
    static const char yaml[] = "- {devices: [chip-c], lent_to: [chip-a], lift: 1.1}\n";
    cd_diag diag = {0};
    cdmpp_err err = {0};
    begin();
    assert_ok(cd_network_cost_read("t", yaml, sizeof yaml - 1, &diag, &p.models.costs, &err));
    p.source[0].costs_spread = p.source[2].costs_spread = log(1.2);
    for (uint32_t k = 0; k < 3; k++) cd_partition_say_costs(&p, k);
    cd_network_cost_free(p.models.costs);
    heard("x: warning: no network was measured on chip-a: it is taken to add as much to its "
          "operators as on chip-c (cdmpp-replay --fit-network-cost). Its time may be 1.3 times "
          "shorter or longer\n"
          "x: warning: no network was measured on chip-b: it is taken to cost the sum of its "
          "operators (cdmpp-replay --fit-network-cost). Its time may be 1.3 times shorter or "
          "longer\n");
}

TEST(costs_and_models) {
    begin();
    for (uint32_t k = 0; k < 3; k++) cd_partition_say_costs(&p, k);
    p.source[0].costs_spread = p.source[1].costs_spread = log(1.25),
    p.source[2].costs_spread = (double)NAN;
    for (uint32_t k = 0; k < 3; k++) cd_partition_say_costs(&p, k);
    cd_partition_say_models(&p); /* one model for all */
    p.source[2].model = NULL;
    cd_partition_say_models(&p);
    p.source[2].model = "n.cdmpp";
    cd_partition_say_models(&p);
    heard(
        "x: warning: no network was measured on chip-a: it is taken to cost the sum of its "
        "operators (cdmpp-replay --fit-network-cost). Its time may be 1.4 times shorter or longer\n"
        "x: warning: there is no fit of what a network costs on any device (" CD_NETWORK_COST_FILE
        "): nothing is added for it\n"
        "x: warning: a0 and b0 are predicted by two models: what one of them gets wrong, the other "
        "need not\n");
}

/* A plan of a file repeats what it was made with, where this command has asked nobody; what is
 * unlike the training it says in any case. */
TEST(said_again) {
    begin();
    cd_shard_plan_source of_file[3] = {p.source[0], p.source[1], p.source[2]};
    options.plan = "a.plan.json";
    cd_partition_say_again(&p);
    of_file[1].unlike = 0.1, of_file[2].unlike = 0.5, of_file[2].unlike_of[0] = 0.5,
    of_file[2].model = "n.cdmpp", of_file[2].stands = "t4";
    plan.source = of_file;
    options.stages = CD_PARTITION_STAGES_PARALLEL; /* asks for times: models were named just now */
    cd_partition_say_again(&p);
    assert_true(p.source[2].unlike == 0.5 && !p.machine.device[2].as);
    options.stages = -1;
    of_file[0].unlike = of_file[1].unlike = (double)NAN;
    cd_partition_say_again(&p);
    assert_string_equal(p.machine.device[2].as, "chip-b");
    heard("x: warning: a.plan.json does not say who answered for its devices: whether others stood "
          "for them is not known\n"
          "x: warning: net: 50 % of the time on b0 is of programs unlike those that the model was "
          "trained on (range of features 50 %): do not rely on it\n"
          "x: warning: m.cdmpp does not say what it was trained on: types, operators and "
          "intrinsics that it has not seen cannot be told (train it again)\n"
          "x: warning: chip-b is not in the model: t4 stands in; times may be off, how far is not "
          "known\n"
          "x: warning: a0 and b0 are predicted by two models: what one of them gets wrong, the "
          "other need not\n"
          "x: warning: net: 50 % of the time on b0 is of programs unlike those that the model was "
          "trained on (range of features 50 %): do not rely on it\n");
}

/* A batch may be what is unlike. */
TEST(the_batch_is_said) {
    begin();
    options.batch = 16;
    cd_shard_plan_source of_file[3] = {p.source[0], p.source[1], p.source[2]};
    of_file[2].unlike = of_file[2].unlike_of[CD_UNLIKE_BIT_RANGE] = 0.5;
    plan.source = of_file;
    cd_partition_say_again(&p);
    (void)fflush(to);
    assert_non_null(
        strstr(said, "x: warning: net (batch 16): 50 % of the time on b0 is of programs unlike"));
    (void)fclose(to);
    cd_log_done(&out);
    free(said);
    said = NULL;
}

/* Only where the order of the devices decides: they prefer two layouts, nobody named one, and the
 * network has images. */
TEST(the_layout_is_said) {
    cd_shard_net_op op[2] = {{.type = "Relu"}, {.type = "Conv"}};
    for (int images = 0; images < 2; images++) {
        begin();
        p.net.op = op;
        p.net.n_op = images ? 2 : 1;
        for (int k = 0; k < 3; k++) p.machine.device[k].target = "llvm";
        cd_partition_say_layout(&p);
        p.machine.device[2].target = "cuda";
        cd_partition_say_layout(&p);
        options.layout = "nchw";
        cd_partition_say_layout(&p);
        options.layout = NULL;
        p.machine.device[0].target = "opencl";
        cd_partition_say_layout(&p);
        heard(!images ? ""
                      : "x: warning: net: images of the plan are nhwc, as a0 has them, the first "
                        "of the devices; b0 has nchw: with --layout nchw or another order of "
                        "--devices the plan is another one, and may be faster\n"
                        "x: warning: net: images of the plan are nchw, as a0 has them, the first "
                        "of the devices; a1 has nhwc: with --layout nhwc or another order of "
                        "--devices the plan is another one, and may be faster\n");
    }
}

TESTS(NULL, NULL, stand_ins, one_warning_of_a_device, this_machine_is_another_device,
      costs_that_are_lent, costs_and_models, said_again, the_batch_is_said, the_layout_is_said)
