/* Keys that nothing reads are told, those of a base and defaults are not. */
#include "learner/config/config.h"

#include "check.h"
#include "tmp.h"

static void told(const char *text, const char *set, const char *want) {
    cdmpp_err err = {0};
    tmp_dir d = tmp_make();
    cd_config c;
    cd_buf b = {0};
    static const char base[] = "net: {width: 8}\ntrain: {eta: 0.5}\noperators: {seed: 3}\n";
    tmp_put(&d, "base.yaml", base, sizeof base - 1);
    const char *top = tmp_put(&d, "top.yaml", text, strlen(text));
    assert_ok(cd_config_init(&c, &err));
    assert_ok(cd_config_read(&c, top, &set, set ? 1 : 0, &err));
    cd_config_unused(&c, &b);
    assert_string_equal(b.n ? b.p : "", want);
    cd_buf_free(&b);
    cd_config_free(&c);
    tmp_remove(&d);
}

TEST(members) {
    told("model: {members: [rows]}\ntrain: {rounds: 3}\n", NULL, "");
    told("model: {members: [rows]}\nnet: {width: 8, layers: 0}\nfit: {rate: 0.1}\ndevice: "
         "{features: both, file: d.yaml}\n",
         NULL,
         "keys without effect: device.features, net.layers, net.width, fit.rate (no member is a "
         "network)\n");
    told("model: {members: [transformer]}\ntrain: {rounds: 3, memory: 10}\nnet: {width: 8, skip: "
         "true, values: 2}\n",
         NULL,
         "keys without effect: train.rounds (no member is of trees); net.skip (no member is an "
         "lstm); net.values (no member is a tlp)\n");
    told("model: {members: [lstm]}\nnet: {skip: true, tokens: leaves}\n", NULL,
         "keys without effect: net.tokens (no member is a transformer)\n");
    told("model: {members: [tlp]}\nnet: {values: 3, skip: true}\n", NULL,
         "keys without effect: net.skip (no member is an lstm)\n");
    /* members for the order, and the small network of the tuner, read keys too */
    told("model: {members: [rows], order: [transformer]}\nnet: {width: 8, tokens: leaves}\n", NULL,
         "");
    told("model: {members: [transformer], order: [rows]}\ntrain: {rounds: 8}\n", NULL, "");
    told("model: {members: [rows], tuner: true}\nfit: {rate: 0.1}\n", NULL, "");
}

TEST(other_keys) {
    told("operators: {seed: 3}\n", NULL,
         "keys without effect: operators.seed (the data are programs)\n");
    told("data: {kind: operators, files: [x.csv], devices: [t4]}\noperators: {seed: 3}\ntrain: "
         "{rounds: 3}\ndevice: {file: d.yaml}\noutput: {model: m}\n",
         NULL,
         "keys without effect: train.rounds (the data are operators: only operators.*, "
         "data.devices, device.file and output.model are about them)\n");
    told("model: {members: [sums]}\ntrain: {facts: columns, facts_without: [work]}\n", NULL,
         "keys without effect: train.facts (no member reads facts)\n");
    told("model: {members: [rows]}\ntrain: {facts: columns, facts_without: [work]}\n", NULL, "");
    told("model: {members: [rows]}\ntrain: {facts: none, facts_without: [work]}\n", NULL,
         "keys without effect: train.facts_without (train.facts is none)\n");
    told("model: {members: [mlp]}\nnet: {facts: true}\n", NULL,
         "keys without effect: net.facts (train.facts is none)\n");
    told("model: {members: [mlp]}\nnet: {facts: false}\n", NULL, "");
    told("model: {members: [mlp]}\nfit: {cycle: 4, gamma: 0.5}\n", NULL,
         "keys without effect: fit.cycle (fit.schedule is not cyclic); fit.gamma (fit.schedule is "
         "not exponential)\n");
    told("model: {members: [mlp]}\nfit: {cycle: 4, schedule: cyclic}\n", NULL, "");
    told("model: {members: [mlp]}\nfit: {gamma: 0.4, schedule: exponential}\n", NULL, "");
    told("data: {seed: 3}\nsplit: {train_best: 0.5}\n", NULL,
         "keys without effect: data.seed (nothing is drawn); split.train_best "
         "(split.train_per_task is 0)\n");
    told(
        "data: {seed: 3}\nfilter: {max_per_task: 3}\nsplit: {train_best: 0.5, train_per_task: 4}\n",
        NULL, "");
}

/* Of a base nothing is told, of an assignment everything. */
TEST(who_gave_it) {
    told("base: base.yaml\nmodel: {members: [rows]}\n", NULL, "");
    told("base: base.yaml\nmodel: {members: [rows]}\nnet: {ff: 4}\n", NULL,
         "keys without effect: net.ff (no member is a network)\n");
    told("model: {members: [rows]}\n", "net.heads=2",
         "keys without effect: net.heads (no member is a network)\n");
    told("model: {members: [rows]}\n", "train.eta=0.5", "");
}

TESTS(NULL, NULL, members, other_keys, who_gave_it)
