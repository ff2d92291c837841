/* Keys, and what a pool picks: the best, but not ten twins. */
#include "check.h"
#include "predictor/tune/search/search.h"
#include "predictor/tune/search/search_internal.h"
#include "tune_toy.h"

static void test_keys(void **state) {
    cdmpp_err err = {0};
    cd_tune_key_set k = {0};
    double v;
    (void)state;
    assert_false(cd_tune_key_set_find(&k, 0, &v));
    /* all in one place */
    for (uint64_t i = 0; i < 5000; i++)
        assert_ok(cd_tune_key_set_put(&k, i << 40, (double)i, &err));
    assert_ok(cd_tune_key_set_put(&k, (uint64_t)7 << 40, 70, &err));
    assert_int_equal(k.n, 5000);
    for (uint64_t i = 0; i < 5000; i += 499)
        assert_true(cd_tune_key_set_find(&k, i << 40, &v) && v == (double)i);
    assert_true(cd_tune_key_set_find(&k, (uint64_t)7 << 40, &v) && v == 70);
    assert_false(cd_tune_key_set_find(&k, 1, NULL));
    cd_tune_key_set_clear(&k);
    assert_false(cd_tune_key_set_find(&k, 0, NULL));
    cd_tune_key_set_free(&k);
}

/* ---- a pool of given scores ---- */
static double given[64];
static cdmpp_status as_given(cd_tune_ranker *r, const cd_tune_task *t, const cd_tune_cand *c,
                             size_t n, double *score, cdmpp_err *err) {
    (void)r;
    (void)t;
    (void)err;
    for (size_t i = 0; i < n; i++) score[i] = given[c[i].row];
    return CDMPP_OK;
}
static cdmpp_status learn_nothing(cd_tune_ranker *r, const cd_tune_task *t, const cd_tune_cand *c,
                                  const double *s, size_t n, cdmpp_err *err) {
    (void)r;
    (void)t;
    (void)c;
    (void)s;
    (void)n;
    (void)err;
    return CDMPP_OK;
}
static const cd_tune_ranker_kind kind = {
    .name = "given", .rank = as_given, .learn = learn_nothing, .ready = toy_ready, .seconds = true};
static cd_tune_ranker ranker = {&kind};

typedef struct {
    toy_space *space;
    cd_tune_tried b;
    cd_tune_pool p;
} rig;

static void up(rig *r) {
    cdmpp_err err = {0};
    *r = (rig){.space = toy_new(4, 8, false)};
    const cd_tune_search_setup s = {.space = &r->space->space, .ranker = &ranker};
    assert_ok(cd_tune_tried_open(&r->b, &cd_tune_search_random, &s, &err));
    assert_ok(cd_tune_tried_begin(&r->b, 32, &err));
}

static void down(rig *r) {
    cd_tune_pool_free(&r->p);
    cd_tune_tried_close(&r->b);
    cd_tune_space_free(&r->space->space);
}

static void add(rig *r, const uint32_t knob[4], uint32_t row, double score) {
    cdmpp_err err = {0};
    cd_tune_cand c;
    size_t at;
    bool is_new;
    for (int k = 0; k < 4; k++)
        r->space->choice[k] = (cd_sketch_choice){
            .pick = knob[k], .n = 8, .kind = CD_SKETCH_CHOICE_TILE, .at = (uint16_t)k};
    assert_ok(toy_give(r->space, &c, &err));
    c.row = row;
    given[row] = score;
    assert_ok(cd_tune_pool_add(&r->p, &c, false, &at, &is_new, &err));
    assert_true(is_new && at == row);
    assert_ok(cd_tune_pool_add(&r->p, &c, false, &at, &is_new, &err));
    assert_true(!is_new && at == row);
}

/* Six twins of the best, all but as good, and one of another kind a little behind them. */
static void test_no_twins(void **state) {
    cdmpp_err err = {0};
    rig r;
    (void)state;
    up(&r);
    for (uint32_t i = 0; i < 6; i++) add(&r, (const uint32_t[]){1, 1, 1, i}, i, 1 - 0.001 * i);
    add(&r, (const uint32_t[]){5, 6, 4, 3}, 6, 0.95);
    add(&r, (const uint32_t[]){6, 2, 0, 1}, 7, 0.2);
    assert_ok(cd_tune_pool_rank(&r.p, &ranker, &r.space->space.of, &err));
    assert_ok(cd_tune_pool_pick(&r.p, &r.b, 3, &err));
    assert_int_equal(r.b.n_out, 3);
    assert_int_equal(r.b.out[0].row, 0);
    assert_int_equal(r.b.out[1].row, 6); /* before the twins */
    assert_int_equal(r.b.out[2].row, 1); /* but a bad stranger is no better than a good twin */
    down(&r);
}

static void test_what_is_known_is_not_picked(void **state) {
    cdmpp_err err = {0};
    rig r;
    (void)state;
    up(&r);
    for (uint32_t i = 0; i < 8; i++)
        add(&r, (const uint32_t[]){i, 7 - i, 1, 1}, i, i == 7 ? (double)-INFINITY : (double)i);
    assert_ok(cd_tune_pool_rank(&r.p, &ranker, &r.space->space.of, &err));
    assert_ok(cd_tune_tried_take(&r.b, &r.p.cand[6], &err));
    assert_ok(cd_tune_pool_pick(&r.p, &r.b, 2, &err));
    assert_int_equal(r.b.n_out, 2);
    assert_int_equal(r.b.out[1].row, 5);
    assert_ok(cd_tune_pool_keep(&r.p, &r.b, 3, &err));
    assert_int_equal(r.p.n, 3);
    assert_int_equal(r.p.n_scored, 0); /* the ranker may think otherwise by then */
    assert_int_equal(r.p.cand[0].row, 4);
    assert_ok(cd_tune_pool_rank(&r.p, &ranker, &r.space->space.of, &err));
    assert_ok(cd_tune_pool_pick(&r.p, &r.b, 32, &err));
    assert_int_equal(r.b.n_out, 5); /* no more, and never what is no program */
    down(&r);
}

static void test_good_are_the_best(void **state) {
    cdmpp_err err = {0};
    rig r;
    cd_tune_cand c;
    (void)state;
    up(&r);
    double seconds = 1;
    /* each faster than all before: the worst case for memory */
    for (uint64_t i = 0; i < 3000; i++) {
        const cdmpp_status st = toy_draw(&r.space->space, i, &c, &err);
        if (st) continue;
        const double s = i % 3 ? seconds *= 0.999 : CD_TUNE_FAILED_S;
        assert_ok(cd_tune_tried_tell(&r.b, &c, &s, 1, &err));
    }
    assert_int_equal(r.b.n_good, CD_TUNE_GOOD);
    for (size_t i = 1; i < r.b.n_good; i++) {
        assert_true(r.b.good[i - 1].seconds < r.b.good[i].seconds);
        assert_int_equal(r.b.good[i].cand.key,
                         cd_record_steps_key(r.b.good[i].cand.step, r.b.good[i].cand.n_step));
    }
    assert_true(r.b.n_copied <= 4 * CD_TUNE_GOOD);
    down(&r);
}

TESTS(NULL, NULL, test_keys, test_no_twins, test_what_is_known_is_not_picked,
      test_good_are_the_best)
