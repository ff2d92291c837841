/* Keys of a configuration to the options of a network and its training: each arrives where its name
 * says, with its value. */
#include <string.h>

#include "check.h"
#include "features/device/device.h"
#include "learner/config/config.h"

static cdmpp_err err;

static void every_number_apart(cd_config *c) {
    c->net_layers = 3, c->net_width = 40, c->net_heads = 5, c->net_ff = 41, c->net_slots = 6,
    c->net_head_first = 42, c->net_head_width = 43, c->net_head_depth = 7;
    c->net_embed = 44, c->net_decoder_width = 45, c->net_decoder_depth = 8, c->net_side_width = 46,
    c->net_side_depth = 9, c->net_dropout = 0.25, c->net_dropout_mlp = 0.125;
    c->fit_rate = 0.5, c->fit_warmup = 11, c->fit_cycle = 12, c->fit_gamma = 0.75,
    c->fit_decay = 0.375, c->fit_clip = 13, c->fit_ema = 0.625, c->fit_batch = 14;
    c->fit_slices = 15, c->fit_target_batch = 16, c->fit_epochs = 17, c->fit_steps = 18,
    c->fit_eval_every = 19, c->fit_patience = 20, c->fit_seed = 21;
    c->fit_loss = "1huber_log";
}

static void numbers_are_there(const cd_fit_spec *s) {
    const cd_net_config *n = &s->net;
    assert_true(n->layers == 3 && n->width == 40 && n->heads == 5 && n->ff == 41 && n->slots == 6 &&
                n->head_first == 42 && n->head_width == 43 && n->head_depth == 7);
    assert_true(n->embed == 44 && n->decoder_width == 45 && n->decoder_depth == 8 &&
                n->side_width == 46 && n->side_depth == 9 && n->dropout == 0.25 &&
                n->dropout_mlp == 0.125);
    assert_true(n->n_out == 1 && n->temperature == 1);
    assert_true(s->lrate.lr == 0.5 && s->lrate.warmup == 11 && s->lrate.up == 12 &&
                s->lrate.down == 12 && s->lrate.gamma == 0.75 && s->lrate.per == 0);
    assert_true(s->optim.decay == 0.375 && s->optim.clip == 13 && s->ema == 0.625 &&
                s->batch == 14 && s->slices == 15 && s->target_batch == 16);
    assert_true(s->max_epochs == 17 && s->max_steps == 18 && s->eval_every == 19 &&
                s->patience == 20 && s->seed == 21);
    assert_string_equal(s->loss, "1huber_log");
}

TEST(numbers) {
    cd_config c;
    assert_ok(cd_config_init(&c, &err));
    every_number_apart(&c);
    for (int k = CD_MEMBER_MLP; k <= CD_MEMBER_LSTM; k++) {
        const cd_fit_spec s = cd_net_options_fit(&c, (cd_member_kind)k, 33);
        assert_int_equal(s.net.kind, k == CD_MEMBER_MLP   ? CD_NET_MLP
                                     : k == CD_MEMBER_TSF ? CD_NET_TSF
                                                          : CD_NET_LSTM);
        numbers_are_there(&s);
    }
    cd_config_free(&c);
}

/* Each choice by itself, from its first value to its second: only what it is about changes. */
TEST(choices) {
    cd_config c;
    assert_ok(cd_config_init(&c, &err));
    for (int on = 0; on < 2; on++) {
        c.net_pre_norm = c.net_skip = c.net_trips = c.net_context = c.net_derived = c.net_device =
            c.net_program = c.net_facts = c.fit_decay_all = c.fit_freeze = on;
        c.net_tokens = c.net_head = c.net_norm = c.net_act = c.net_position = c.fit_label =
            c.fit_scale = c.fit_optimizer = c.fit_schedule = c.fit_figure = on;
        for (int k = CD_MEMBER_MLP; k <= CD_MEMBER_LSTM; k++) {
            const cd_fit_spec s = cd_net_options_fit(&c, (cd_member_kind)k, 33);
            const cd_net_config *n = &s.net;
            assert_true(n->pre_norm == on && n->skip == on && n->trips == on && n->context == on &&
                        n->derived == on && n->device == on && n->program == on &&
                        s.decay_all == on && s.freeze_encoder == on);
            assert_true((int)n->head == on && (int)n->norm == on && (int)n->act == on &&
                        (int)n->position == on && (int)s.transform == on && (int)s.scale == on);
            assert_true((int)s.optim.kind == on && (int)s.lrate.kind == on && (int)s.figure == on &&
                        n->w_dev == (on ? 33 : 0));
            assert_false(n->facts); /* train.facts is none */
            /* only transformers read rows */
            assert_int_equal(n->tokens, k == CD_MEMBER_TSF ? (cd_net_tokens)on : CD_TOKENS_LEAVES);
        }
    }
    c.train_facts = CD_FACTS_USE_PRIOR; /* of trees; networks have columns all the same */
    assert_true(cd_net_options_fit(&c, CD_MEMBER_MLP, 33).net.facts);
    cd_config_free(&c);
}

/* What is wrong of a network is said once, with its key; trees need none of it. */
TEST(wrong_ones) {
    static const struct {
        int64_t heads;
        const char *loss, *members, *key;
    } t[] = {{4, "1huber_log", "transformer", NULL},
             {7, "1huber_log", "transformer", "net.heads"},
             {4, "1nothing", "mlp", "fit.loss"},
             {7, "1nothing", "rows", NULL}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cd_config c;
        const char *member[] = {t[k].members};
        assert_ok(cd_config_init(&c, &err));
        c.net_heads = t[k].heads, c.net_width = 192, c.fit_loss = t[k].loss,
        c.model_members = (cd_texts){1, member};
        err = (cdmpp_err){0};
        cd_net_options_check(&c, "a.yaml", &err);
        assert_int_equal(c.diag.n, t[k].key != NULL);
        if (t[k].key) assert_string_equal(err.key, t[k].key);
        cd_config_free(&c);
    }
}

TESTS(NULL, NULL, numbers, choices, wrong_ones)
