/* Profiles tuner and two-stage: what each answers, and that a file with them holds together. */
#include "check.h"
#include "made_api.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "base/core/core.h"

static made_api api;
static made_programs all;
static made_out full, tuner, both;
static cdmpp_model *model;
static char path[256];

static int set_up(void **state) {
    static const char *const set[] = {"train.rounds=40", "model.folds=2", "model.tuner=true",
                                      "fit.epochs=3", "net.device=false"};
    static const char *const target[] = {MADE_TARGET};
    cdmpp_err err = {0};
    char h5[256];
    (void)state;
    if (made_setup(&api)) return 1;
    made_programs_init(&all, cdmpp_tasks_key(api.tasks, 0), MADE_N);
    snprintf(path, sizeof path, "%s", tmp_path(&api.dir, "tuner.cdmpp"));
    cdmpp_status st = made_extract(&api.dir, cdmpp_tasks_key(api.tasks, 0), target, 1, h5, &err);
    if (!st) st = made_learn(h5, set, 5, path, &err);
    if (!st) st = cdmpp_model_load(path, &model, &err);
    if (st) print_error("%s: %s\n", err.key, err.msg);
    return st != CDMPP_OK;
}

static int tear_down(void **state) {
    (void)state;
    cdmpp_model_free(model);
    made_programs_free(&all);
    made_teardown(&api);
    return 0;
}

static void score(const char *profile, cdmpp_form form, size_t n, made_out *o) {
    const cdmpp_options opt = {.size = sizeof opt, .profile = profile};
    cdmpp_context *c;
    cdmpp_err err = {0};
    const cdmpp_batch b = made_batch_of(&api, &all, form, 0, n);
    const cdmpp_result r = made_result(o);
    assert_ok(cdmpp_context_new(model, api.tasks, &opt, &c, &err));
    assert_ok(cdmpp_score(c, &b, &r, &err));
    assert_ok(cdmpp_score(c, &b, &r, &err)); /* what a call leaves behind does not matter */
    cdmpp_context_free(c);
}

/* Two ends of intervals, or none of both. */
static bool same_end(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* The made model has a law of unlike operators alone, so a program beyond the range of training has
 * no interval: it says that it is one. All have times, and all of these candidates that are in
 * range an interval around theirs. How many have one. */
static size_t intervals_hold(const made_out *o, size_t n) {
    size_t with = 0;
    for (size_t i = 0; i < n; i++) {
        const bool none = isnan(o->low[i]);
        assert_true(isfinite(o->seconds[i]) && o->seconds[i] > 0 && isfinite(o->score[i]) &&
                    o->score[i] > 0);
        assert_int_equal(none, o->reason[i] & CDMPP_REASON_RANGE ? 1 : 0);
        assert_true(none == !!isnan(o->high[i]));
        assert_true(none == !!isnan(o->rel_std[i]));
        assert_true(none ? (o->flags[i] & CDMPP_FLAG_OUT_OF_RANGE) != 0
                         : o->low[i] <= o->seconds[i] && o->seconds[i] <= o->high[i]);
        with += !none;
    }
    return with;
}

static void profiles(void **state) {
    (void)state;
    char *p;
    size_t n;
    cdmpp_err err = {0};
    assert_int_equal(cdmpp_model_n_profile(model), 3);
    assert_string_equal(cdmpp_model_profile(model, 1), "tuner");
    assert_string_equal(cdmpp_model_profile(model, 2), "two-stage");
    assert_ok(cd_file_read(path, 0, &p, &n, &err));
    assert_int_equal(p[8], 3); /* the file's version: programs that know no tuner refuse it */
    cd_mem_free(p);
    score("full", CDMPP_RECORDS, all.n, &full);
    score("tuner", CDMPP_RECORDS, all.n, &tuner);
    assert_memory_not_equal(full.seconds, tuner.seconds, all.n * sizeof *full.seconds);
    const size_t with = intervals_hold(&tuner, all.n);
    assert_true(with > all.n / 2 && with < all.n);
    assert_true(intervals_hold(&full, all.n) > all.n / 2);
    score("tuner", CDMPP_PACKED, all.n, &both);
    assert_memory_equal(both.seconds, tuner.seconds, all.n * sizeof *both.seconds);
}

/* The whole model's answer for the tuner's best eighth, the tuner's order behind it. */
static void two_stages(void **state) {
    (void)state;
    const size_t n = all.n, k = n / 8 > 16 ? n / 8 : 16;
    size_t looked = 0, best = 0;
    score("full", CDMPP_STEPS, n, &full);
    score("tuner", CDMPP_STEPS, n, &tuner);
    score("two-stage", CDMPP_STEPS, n, &both);
    for (size_t i = 0; i < n; i++) {
        size_t faster = 0;
        for (size_t j = 0; j < n; j++)
            faster +=
                tuner.score[j] > tuner.score[i] || (tuner.score[j] == tuner.score[i] && j < i);
        if (faster < k) {
            assert_true(both.seconds[i] == full.seconds[i] && both.score[i] == full.score[i] &&
                        same_end(both.low[i], full.low[i]));
            looked++;
        }
        if (both.score[i] > both.score[best]) best = i;
    }
    assert_int_equal(looked, k);
    assert_true(both.seconds[best] == full.seconds[best]);
    assert_true(intervals_hold(&both, n) > n / 2);
    score("two-stage", CDMPP_STEPS, 10, &both); /* fewer than the least: the whole model sees all */
    assert_memory_equal(both.seconds, full.seconds, 10 * sizeof *both.seconds);
}

/* Two programs many times: of equal ones the first are looked at, and the faster one's copies
 * behind them as well. */
static void equal_ones(void **state) {
    (void)state;
    enum { SLOW = 30, FAST = 10, LOOKED = 16 };
    const cdmpp_options opt = {.size = sizeof opt, .profile = "two-stage"};
    cdmpp_text text[SLOW + FAST];
    cdmpp_batch b = made_batch_of(&api, &all, CDMPP_STEPS, 0, SLOW + FAST);
    const cdmpp_result r = made_result(&both);
    cdmpp_context *c;
    cdmpp_err err = {0};
    size_t slow = 0, fast = 0;
    score("full", CDMPP_STEPS, all.n, &full);
    score("tuner", CDMPP_STEPS, all.n, &tuner);
    for (size_t i = 0; i < all.n; i++) {
        if (tuner.seconds[i] > tuner.seconds[slow]) slow = i;
        if (tuner.seconds[i] < tuner.seconds[fast]) fast = i;
    }
    for (size_t i = 0; i < SLOW + FAST; i++) text[i] = all.steps[i < SLOW ? slow : fast];
    b.text = text;
    assert_ok(cdmpp_context_new(model, api.tasks, &opt, &c, &err));
    assert_ok(cdmpp_score(c, &b, &r, &err));
    for (size_t i = 0; i < SLOW + FAST; i++) {
        const size_t of = i < SLOW ? slow : fast;
        const bool whole = same_end(both.low[i], full.low[of]) &&
                           same_end(both.high[i], full.high[of]) &&
                           both.seconds[i] == full.seconds[of];
        assert_int_equal(whole, i < LOOKED - FAST || i >= SLOW);
    }
    cdmpp_context_free(c);
}

static void failures_stay(void **state) {
    (void)state;
    const cdmpp_options opt = {.size = sizeof opt, .profile = "two-stage"};
    const cdmpp_text text[] = {{"[]", 2}, {"nonsense", 8}, {"[[\"XX\",1]]", 10}};
    cdmpp_batch b = made_batch_of(&api, &all, CDMPP_STEPS, 0, 3);
    const cdmpp_result r = made_result(&both);
    cdmpp_context *c;
    cdmpp_err err = {0};
    b.text = text;
    assert_ok(cdmpp_context_new(model, api.tasks, &opt, &c, &err));
    assert_ok(cdmpp_score(c, &b, &r, &err));
    assert_true(both.status[1] != CDMPP_OK && both.score[1] == 0 && isinf(both.seconds[1]));
    b.n = 0;
    assert_ok(cdmpp_score(c, &b, &r, &err));
    b.n = 1;
    b.text = text + 1;
    assert_ok(cdmpp_score(c, &b, &r, &err));
    assert_true(both.score[0] == CDMPP_SCORE_NONE);
    cdmpp_context_free(c);
}

/* Key tuner.at and a kind, changed by hand under a right checksum: refused, never a wrong
 * answer. */
static void damage(void **state) {
    (void)state;
    static const char *const from[] = {
        "\"tuner\":{\"at\":", "\"tuner\":{\"at\":", "\"kinds\":[\"transformer\"]"};
    static const char *const to[] = {"\"tuner\":{\"at\":9", "\"tuner\":{\"at\":-",
                                     "\"kinds\":[\"transfusion\"]"};
    for (size_t k = 0; k < sizeof from / sizeof *from; k++) {
        char *p, hex[65];
        size_t n;
        cdmpp_err err = {0};
        cdmpp_model *m;
        cd_sha256 h;
        assert_ok(cd_file_read(path, 0, &p, &n, &err));
        char *at = memmem(p, n, from[k], strlen(from[k]));
        assert_non_null(at);
        memcpy(at, to[k], strlen(to[k]));
        cd_sha256_init(&h);
        cd_sha256_add(&h, p, n - 64);
        cd_sha256_hex(&h, hex);
        memcpy(p + n - 64, hex, 64);
        assert_true(cdmpp_model_read(p, n, &m, &err) != CDMPP_OK);
        assert_non_null(strstr(err.key, "tuner"));
        cd_mem_free(p);
    }
}

TESTS(set_up, tear_down, profiles, two_stages, equal_ones, failures_stay, damage)
