/* Search files: every mistake with its place; trials: inside, distinct, repeatable. */
#include "learner/hpo/hpo.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "scratch.h"

static const char *put(const char *text) {
    const char *path = scratch("space.yaml");
    scratch_write(path, text, strlen(text));
    return path;
}

static cdmpp_status load(cd_hpo_space *s, const char *text, cdmpp_err *err) {
    return cd_hpo_space_load(s, put(text), NULL, 0, err);
}

typedef struct {
    cd_hpo_space s;
    cd_config base;
    cd_arena a;
    cd_hpo_trial *trial;
    size_t n;
} drawn;

static void draw(drawn *d, const char *text) {
    cdmpp_err err = {0};
    *d = (drawn){0};
    if (load(&d->s, text, &err)) fail_msg("%s", d->s.diag.n ? d->s.diag.text.p : err.msg);
    assert_ok(cd_config_init(&d->base, &err));
    assert_ok(cd_hpo_space_sample(&d->s, &d->base, &d->a, &d->trial, &d->n, &err));
}

static void done(drawn *d) {
    cd_arena_free(&d->a);
    cd_config_free(&d->base);
    cd_hpo_space_free(&d->s);
}

static const char mistakes[] =
    "tune:\n  smapler: sobol\n  trials: 0\n  budget: train.ronds\nextra: 1\n"
    "space:\n"
    "  train.etaa: {real: [0.1, 1]}\n"
    "  train.eta: {reel: [0.1, 1]}\n"
    "  train.loss: {choice: [squared, hubert]}\n"
    "  train.max_depth: {log_int: [0, 40]}\n"
    "  train.lambda: {log_real: [0, 1]}\n"
    "  train.subsample: {real: [0.9, 0.5]}\n"
    "  train.colsample: 0.5\n"
    "  train.seed: {real: [1, 2]}\n"
    "  train.max_bin: {int: [16, 64], choice: [1, 2]}\n"
    "  split.seed: {choice: [1, 2]}\n"
    "  train.early_stop: {int: [1, 5], when: {train.min_child_weight: 1}}\n"
    "  train.min_child_weight: {when: {train.lost: mape}}\n"
    "  output.model: {fixed: x}\n"
    "  data.devices: {fixed: {a: b}}\n"
    "  train.rounds: {choice: 1}\n"
    "  data.files: {fixed: other.h5}\n"
    "  data.kind: {fixed: operators}\n";
static const char *const told[] = {
    "2:3: error: unknown key 'tune.smapler', did you mean 'tune.sampler'?",
    "3:11: error: tune.trials: expected integer in 1..100000, found '0'",
    "5:1: error: unknown key 'extra'",
    "7:3: error: unknown key 'train.etaa', did you mean 'train.eta'?",
    "8:15: error: train.eta: expected one of fixed|choice|int|log_int|real|log_real and perhaps "
    "when, found 'reel'",
    "9:34: error: train.loss: expected one of squared|huber|absolute|mape, found 'hubert'",
    "10:31: error: train.max_depth: expected integer in 1..30, found '0'",
    "11:29: error: train.lambda: expected a lowest value above 0, for a logarithm, found '0'",
    "12:33: error: train.subsample: expected a highest value above the lowest, found '0.5'",
    "13:20: error: train.colsample: expected a mapping like {choice: [1, 2]}, found '0.5'",
    "14:16: error: train.seed: expected a kind for an integer, found 'real'",
    "15:34: error: train.max_bin: expected one of fixed|choice|int|log_int|real|log_real and "
    "perhaps when, found 'choice' after int",
    "16:16: error: split.seed: expected 'fixed': it decides on the programs that are compared, "
    "found 'choice'",
    "17:42: error: train.early_stop: expected a condition on a key above, found "
    "'train.min_child_weight'",
    "18:35: error: unknown key 'train.lost', did you mean 'train.loss'?",
    "18:27: error: train.min_child_weight: expected one of fixed|choice|int|log_int|real|log_real "
    "and perhaps when, found a mapping",
    "19:18: error: output.model: expected this key to be left to the command line, found 'fixed'",
    "20:25: error: data.devices: expected a list of texts, found a mapping",
    "21:26: error: train.rounds: expected a list of values, found '1'",
    /* trials would train on the base's, and only the winner's last training on these */
    "22:16: error: data.files: expected this key to be left to the base: its data are read once, "
    "for all trials, found 'fixed'",
    "23:15: error: data.kind: expected this key to be left to the base: its data are read once, "
    "for all trials, found 'fixed'"};

TEST(every_mistake_in_one_run) {
    cdmpp_err err = {0};
    cd_hpo_space s;
    assert_status(load(&s, mistakes, &err), CDMPP_ESCHEMA);
    char want[4096], *at = want, *end = want + sizeof want;
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        at += snprintf(at, (size_t)(end - at), "%s:%s\n", s.path, told[i]);
    assert_string_equal(s.diag.text.p, want);
    cd_hpo_space_free(&s);
}

TEST(settings) {
    cdmpp_err err = {0};
    cd_hpo_space s;
    const char *set[] = {"tune.trials=9", "tune.max_budget=270"};
    static const char *const bad[][2] = {
        {"tune: {budget: train.ronds}\nspace: {train.eta: {real: [0.1, 1]}}\n",
         ":1:16: error: unknown key 'train.ronds', did you mean 'train.rounds'?"},
        {"tune: {budget: train.loss}\nspace: {train.eta: {real: [0.1, 1]}}\n",
         ":1:16: error: tune.budget: expected the key of a number, found 'train.loss'"},
        {"tune: {max_budget: 100.5}\nspace: {train.eta: {real: [0.1, 1]}}\n",
         ":1:20: error: train.rounds: expected integer in 1..100000, found '100.5'"},
        {"tune: {min_budget: 601}\nspace: {train.eta: {real: [0.1, 1]}}\n",
         ":1:20: error: tune.min_budget: expected at most tune.max_budget 600, found 601"},
        {"space: {train.rounds: {int: [1, 5]}}\n",
         ":1:24: error: train.rounds: expected this key to be left to tune.budget, found 'int'"},
        {"tune: {trials: 3}\n",
         ": error: space: expected a mapping of keys to what they may be, found a mapping"},
        {"space: {}\n",
         ":1:8: error: space: expected a mapping of keys to what they may be, found a mapping"},
        {"", ": error: space: expected a mapping of keys to what they may be, found a mapping"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_true(load(&s, bad[i][0], &err) != CDMPP_OK);
        if (!strstr(s.diag.text.p, bad[i][1]))
            fail_msg("wanted %s\nfound %s", bad[i][1], s.diag.text.p);
        cd_hpo_space_free(&s);
        err = (cdmpp_err){0};
    }
    assert_ok(cd_hpo_space_load(
        &s,
        put("tune: {base: b.yaml, eta: 3, min_budget: 10}\nspace: {train.eta: {real: [0.1, 1]}}\n"),
        set, 2, &err));
    assert_int_equal(s.tune.trials, 9);
    assert_int_equal(cd_hpo_space_rungs(&s), 4);
    for (unsigned r = 0, b = 10; r < 4; r++, b *= 3) assert_true(cd_hpo_space_budget(&s, r) == b);
    s.tune.max_budget = 100, s.tune.min_budget = 7; /* from the top: 100, 33, 11 */
    assert_int_equal(cd_hpo_space_rungs(&s), 3);
    assert_true(cd_hpo_space_budget(&s, 0) == 11 && cd_hpo_space_budget(&s, 1) == 33 &&
                cd_hpo_space_budget(&s, 2) == 100);
    s.tune.min_budget = 100;
    assert_int_equal(cd_hpo_space_rungs(&s), 1);
    cd_hpo_space_free(&s);
}

/* Number behind "key": in the parameters of a trial; NaN when it is not there. */
static double number(const cd_hpo_trial *t, const char *key) {
    char mark[64];
    snprintf(mark, sizeof mark, "\"%s\":", key);
    const char *p = strstr(t->params, mark);
    return p ? strtod(p + strlen(mark), NULL) : (double)NAN;
}

static const char wide[] =
    "tune: {trials: 512, try_base: false, sampler: %s}\n"
    "space:\n"
    "  train.loss: {choice: [squared, huber, mape]}\n"
    "  train.eta: {log_real: [0.01, 1]}\n"
    "  train.subsample: {real: [0.25, 0.75], when: {train.loss: [squared, mape]}}\n"
    "  train.max_depth: {int: [2, 5]}\n"
    "  train.max_bin: {log_int: [16, 1024]}\n"
    "  train.seed: {fixed: 7}\n"
    "  train.min_child_weight: {real: [1, 300], when: {train.max_depth: 5, train.loss: squared}}\n";

TEST(values_are_inside_and_spread) {
    for (int k = 0; k < 2; k++) {
        cdmpp_err err = {0};
        drawn d;
        char text[2000];
        size_t loss[4] = {0}, depth[6] = {0}, low_eta = 0, low_bin = 0, weights = 0;
        snprintf(text, sizeof text, wide, k ? "random" : "sobol");
        draw(&d, text);
        assert_int_equal(d.n, 512);
        for (size_t i = 0; i < d.n; i++) {
            cd_config c;
            const cd_hpo_trial *t = &d.trial[i];
            assert_ok(cd_hpo_space_config(&d.s, &d.base, t, 200, &c, &err));
            assert_true(c.train_eta >= 0.01 && c.train_eta <= 1 && c.train_max_depth >= 2 &&
                        c.train_max_depth <= 5);
            assert_true(c.train_max_bin >= 16 && c.train_max_bin <= 1024);
            assert_true(c.train_rounds == 200 && c.train_seed == 7 &&
                        isnan(number(t, "train.seed")));
            assert_true(c.train_eta == number(t, "train.eta") &&
                        c.train_max_bin == (int64_t)number(t, "train.max_bin"));
            if (c.train_loss == CD_TREE_LOSS_HUBER)
                assert_true(c.train_subsample == d.base.train_subsample &&
                            isnan(number(t, "train.subsample")));
            else
                assert_true(c.train_subsample >= 0.25 && c.train_subsample <= 0.75 &&
                            c.train_subsample == number(t, "train.subsample"));
            const bool weight = c.train_max_depth == 5 && c.train_loss == CD_TREE_LOSS_SQUARED;
            assert_true(weight == !isnan(number(t, "train.min_child_weight")));
            loss[c.train_loss]++, depth[c.train_max_depth]++, low_eta += c.train_eta < 0.1,
                low_bin += c.train_max_bin < 128, weights += weight;
            cd_config_free(&c);
        }
        const size_t off = k ? 60 : 2; /* of 512: even, or within 5 deviations */
        for (int f = 0; f < 4; f++)
            if (f != CD_TREE_LOSS_ABSOLUTE) assert_in_range(loss[f], 170 - off, 171 + off);
        for (int v = 2; v <= 5; v++) assert_in_range(depth[v], 128 - off, 128 + off);
        assert_in_range(low_eta, 256 - off, 256 + off);
        assert_in_range(low_bin, 256 - off, 256 + off);
        assert_in_range(weights, 43 - 30, 43 + 30);
        done(&d);
    }
}

TEST(more_trials_are_the_same_trials) {
    for (int k = 0; k < 2; k++) {
        drawn few, many;
        char text[2000];
        snprintf(text, sizeof text, wide, k ? "random" : "sobol");
        draw(&many, text);
        char *p = strstr(text, "512");
        memcpy(p, " 20", 3);
        draw(&few, text);
        assert_int_equal(few.n, 20);
        for (size_t i = 0; i < 20; i++)
            assert_string_equal(few.trial[i].params, many.trial[i].params);
        memcpy(strstr(text, "try_base: false"), "seed: 5        ", 15);
        done(&many);
        draw(&many, text);
        assert_string_not_equal(few.trial[1].params, many.trial[2].params);
        done(&few);
        done(&many);
    }
}

/* A list meets a condition when it has one of the values. */
TEST(conditions_on_lists) {
    drawn d;
    size_t with = 0;
    draw(&d, "tune: {try_base: false, trials: 40}\n"
             "space:\n"
             "  split.valid_names: {fixed: [a, b]}\n"
             "  train.eta: {real: [0.1, 0.2], when: {split.valid_names: [c, b]}}\n"
             "  train.lambda: {real: [0.1, 0.2], when: {split.valid_names: c}}\n"
             "  train.subsample: {real: [0.1, 0.2], when: {split.test_names: a}}\n"
             "  train.max_bin: {choice: [16, 32]}\n");
    for (size_t i = 0; i < d.n; i++) {
        if (!isnan(number(&d.trial[i], "train.eta"))) with++;
        assert_true(isnan(number(&d.trial[i], "train.lambda")) &&
                    isnan(number(&d.trial[i], "train.subsample")));
    }
    assert_int_equal(with, 40);
    done(&d);
}

TEST(small_spaces_end) {
    drawn d;
    draw(&d, "tune: {trials: 100}\nspace: {train.loss: {choice: [squared, huber, mape]}, "
             "train.max_depth: {int: [8, 9]}}\n");
    assert_int_equal(d.n, 6);
    /* trial 0 is the base: huber, 8 */
    assert_string_equal(d.trial[0].params, "{\"train.loss\":\"huber\",\"train.max_depth\":8}");
    assert_int_equal(d.trial[0].set.n, 0);
    for (size_t i = 0; i < d.n; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(d.trial[i].params, d.trial[j].params);
    done(&d);
    draw(&d, "space: {train.seed: {fixed: 3}}\n");
    assert_int_equal(d.n, 1); /* nothing varies: one configuration */
    assert_string_equal(d.trial[0].set.v[0], "train.seed=3");
    done(&d);
}

TEST(texts_and_lists) {
    cdmpp_err err = {0};
    drawn d;
    cd_config c;
    draw(&d, "tune: {budget: filter.max_std_ratio, min_budget: 0.1, max_budget: 0.8, eta: 2, "
             "try_base: false}\n"
             "space:\n  split.valid_names: {fixed: [a, 'b \"c\"']}\n  data.devices: {fixed: 'x: "
             "#y'}\n  train.eta: {choice: [0.1, 0.25]}\n");
    assert_int_equal(d.n, 2);
    assert_true(cd_hpo_space_budget(&d.s, 0) == 0.1);
    assert_ok(cd_hpo_space_config(&d.s, &d.base, &d.trial[0], 0.2, &c, &err));
    assert_string_equal(c.split_valid_names.v[1], "b \"c\"");
    assert_string_equal(c.data_devices.v[0], "x: #y");
    assert_true(c.filter_max_std_ratio == 0.2);
    cd_config_free(&c);
    done(&d);
}

TEST(manual_has_the_settings) {
    size_t n, len;
    cdmpp_err err = {0};
    cd_buf table = {0};
    char *doc;
    const cd_conf_key *key = cd_hpo_space_keys(&n);
    cd_conf_doc(&table, key, n);
    assert_ok(cd_file_read("docs/reference/autotune.md", 0, &doc, &len, &err));
    if (!strstr(doc, table.p))
        fail_msg("docs/reference/autotune.md: write the table again with cdmpp-train --autotune - "
                 "--doc-config");
    cd_mem_free(doc);
    cd_buf_free(&table);
}

TESTS(NULL, NULL, every_mistake_in_one_run, settings, values_are_inside_and_spread,
      more_trials_are_the_same_trials, small_spaces_end, conditions_on_lists, texts_and_lists,
      manual_has_the_settings)
