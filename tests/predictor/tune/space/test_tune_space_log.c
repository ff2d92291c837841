/* The space of a log: its order, near candidates, crossing, following. */
#include "predictor/tune/space/space.h"

#include <string.h>

#include "check.h"
#include "made_log.h"
#include "tmp.h"

static double by_number(int i) { return 1e-3 * (1 + i); }

static void read_logs(const cd_buf *b, cd_tune_replay_logs *l) {
    cdmpp_err err = {0};
    tmp_dir d = tmp_make();
    const char *path = tmp_put(&d, "a.json", b->p, b->n);
    assert_ok(cd_tune_replay_logs_read(NULL, &path, 1, l, &err));
    tmp_remove(&d);
}

static cd_tune_space *open_space(const cd_tune_replay_logs *l, uint64_t seed) {
    cdmpp_err err = {0};
    cd_tune_space *s;
    assert_ok(cd_tune_space_log(&l->log[0].of, l->log[0].cand, l->log[0].n, seed, &s, &err));
    return s;
}

static void test_order_is_that_of_the_choices(void **state) {
    (void)state;
    cd_buf forth = {0}, back = {0};
    for (int i = 0; i < 40; i++) planted_line(&forth, "t", 1 + i % 5, 1 + i / 5, 16, 1, 0);
    for (int i = 39; i >= 0; i--) planted_line(&back, "t", 1 + i % 5, 1 + i / 5, 16, 1, 0);
    cd_tune_replay_logs x, y;
    read_logs(&forth, &x);
    read_logs(&back, &y);
    assert_int_equal(x.log[0].n, 40);
    for (uint32_t i = 0; i < 40; i++) {
        const cd_tune_cand *c = &x.log[0].cand[i];
        assert_int_equal(c->row, i);
        assert_int_equal(c->key, y.log[0].cand[i].key);
        assert_int_equal(c->n_choice, 3); /* the class, two lengths; the unrolling never varies */
        assert_int_equal(c->choice[0].n, 1);
        assert_int_equal(c->choice[1].pick, i / 8);
        assert_int_equal(c->choice[2].pick, i % 8);
        assert_int_equal(c->choice[1].n, 5);
        assert_int_equal(c->choice[2].n, 8);
    }
    cd_tune_replay_logs_free(&x);
    cd_tune_replay_logs_free(&y);
    cd_buf_free(&forth);
    cd_buf_free(&back);
}

/* By value, whatever the bytes of the numbers are. */
TEST(test_order_is_by_value) {
    static const int length[] = {256, 3, 512, 1, 258, 2};
    cd_buf b = {0};
    cd_tune_replay_logs l;
    for (int i = 0; i < 6; i++) planted_line(&b, "t", length[i], length[(i + 2) % 6], 16, 1, 0);
    read_logs(&b, &l);
    assert_int_equal(l.log[0].n, 6);
    for (uint32_t i = 0; i < 6; i++) {
        static const int sorted[] = {1, 2, 3, 256, 258, 512};
        const cd_tune_cand *c = &l.log[0].cand[i];
        assert_true(c->n_step > 0 && c->step[0].list[0] == sorted[i] && c->choice[1].pick == i &&
                    c->row == i);
    }
    cd_tune_replay_logs_free(&l);
    cd_buf_free(&b);
}

static void test_changes_are_near(void **state) {
    (void)state;
    cd_buf b = {0};
    cd_tune_replay_logs l;
    cdmpp_err err = {0};
    for (int i = 0; i < 100; i++) planted_line(&b, "t", 1 + i % 10, 1 + i / 10, 16, 1, 0);
    read_logs(&b, &l);
    cd_tune_space *s = open_space(&l, 3);
    const cd_tune_cand *from = &l.log[0].cand[55];
    cd_tune_cand c, again;
    size_t one_number = 0;
    for (uint64_t i = 0; i < 200; i++) {
        assert_ok(s->kind->change(s, from, i, &c, &err));
        assert_int_not_equal(c.key, from->key);
        assert_ok(s->kind->change(s, from, i, &again, &err));
        assert_int_equal(c.key, again.key);
        one_number += (c.choice[1].pick == from->choice[1].pick) !=
                      (c.choice[2].pick == from->choice[2].pick);
    }
    /* 18 candidates differ in one number alone, and only 16 are looked at */
    assert_true(one_number == 200);
    cd_tune_space_free(s);
    cd_tune_replay_logs_free(&l);
    cd_buf_free(&b);
}

static void test_a_child_has_the_choices_of_its_parents(void **state) {
    (void)state;
    cd_buf b = {0};
    cd_tune_replay_logs l;
    cdmpp_err err = {0};
    planted_task(&b, "t", 256, by_number); /* all 8 x 8 x 4: every mix is there */
    read_logs(&b, &l);
    cd_tune_space *s = open_space(&l, 3);
    const cd_tune_cand *x = &l.log[0].cand[0], *y = &l.log[0].cand[255];
    size_t own = 0;
    for (uint64_t i = 0; i < 100; i++) {
        cd_tune_cand c;
        assert_ok(s->kind->cross(s, x, y, i, &c, &err));
        assert_true(c.key != x->key && c.key != y->key);
        bool mixed = true;
        for (uint32_t k = 1; k < c.n_choice; k++)
            mixed = mixed && (c.choice[k].pick == x->choice[k].pick ||
                              c.choice[k].pick == y->choice[k].pick);
        own += mixed;
    }
    assert_true(own > 60); /* the others drew a parent, whose nearest they are */
    cd_tune_space_free(s);
    cd_tune_replay_logs_free(&l);
    cd_buf_free(&b);
}

static void test_draws_reach_all_alike(void **state) {
    (void)state;
    cd_buf b = {0};
    cd_tune_replay_logs l;
    cdmpp_err err = {0};
    size_t seen[16] = {0};
    planted_task(&b, "t", 16, by_number);
    read_logs(&b, &l);
    cd_tune_space *s = open_space(&l, 9);
    for (uint64_t i = 0; i < 16000; i++) {
        cd_tune_cand c;
        assert_ok(s->kind->draw(s, i, &c, &err));
        seen[c.row]++;
    }
    /* 1000, deviation 31 */
    for (int i = 0; i < 16; i++) assert_true(seen[i] > 850 && seen[i] < 1150);
    cd_tune_space_free(s);
    cd_tune_replay_logs_free(&l);
    cd_buf_free(&b);
}

static void test_follow_finds_the_same_and_the_nearest(void **state) {
    (void)state;
    cd_buf b = {0};
    cd_tune_replay_logs l;
    cdmpp_err err = {0};
    cd_arena a = {0};
    planted_line(&b, "t", 4, 4, 16, 1, 0);
    planted_line(&b, "t", 4, 64, 16, 1, 0);
    planted_line(&b, "t", 64, 64, 512, 1, 0);
    read_logs(&b, &l);
    cd_tune_space *s = open_space(&l, 1);
    cd_tune_cand c;
    cd_record r;
    bool exact;
    static const char near[] =
        "[[\"SP\",2,0,512,[4,32],1],[\"PR\",2,0,\"auto_unroll_max_step$16\"]]";
    static const char same[] =
        "[[\"SP\",2,0,512,[4,64],1],[\"PR\",2,0,\"auto_unroll_max_step$16\"]]";
    static const char other[] = "[[\"SP\",2,0,512,[4],1]]";
    assert_ok(cd_record_read_steps(&a, near, strlen(near), &r, &err));
    assert_ok(s->kind->follow(s, &r, &c, &exact, &err));
    assert_false(exact);
    assert_int_equal(c.step[0].list[1], 64);
    assert_int_equal(c.step[0].list[0], 4);
    assert_ok(cd_record_read_steps(&a, same, strlen(same), &r, &err));
    assert_ok(s->kind->follow(s, &r, &c, &exact, &err));
    assert_true(exact);
    assert_ok(cd_record_read_steps(&a, other, strlen(other), &r, &err));
    assert_int_equal(s->kind->follow(s, &r, &c, &exact, &err), CDMPP_ENODATA);
    cd_arena_free(&a);
    cd_tune_space_free(s);
    cd_tune_replay_logs_free(&l);
    cd_buf_free(&b);
}

static void test_few_candidates(void **state) {
    (void)state;
    cd_buf b = {0};
    cd_tune_replay_logs l;
    cdmpp_err err = {0};
    cd_tune_cand c;
    planted_line(&b, "t", 4, 4, 16, 1, 0);
    read_logs(&b, &l);
    cd_tune_space *s = open_space(&l, 1);
    const cd_tune_cand *all;
    size_t n;
    assert_ok(s->kind->list(s, &all, &n, &err));
    assert_int_equal(n, 1);
    assert_ok(s->kind->draw(s, 7, &c, &err));
    assert_int_equal(s->kind->change(s, all, 0, &c, &err), CDMPP_ENODATA);
    assert_int_equal(s->kind->cross(s, all, all, 0, &c, &err), CDMPP_ENODATA);
    cd_tune_space_free(s);
    assert_ok(cd_tune_space_log(&l.log[0].of, NULL, 0, 1, &s, &err));
    assert_int_equal(s->kind->draw(s, 0, &c, &err), CDMPP_ENODATA);
    cd_tune_space_free(s);
    cd_tune_replay_logs_free(&l);
    cd_buf_free(&b);
}

TESTS(NULL, NULL, test_order_is_by_value, test_order_is_that_of_the_choices, test_changes_are_near,
      test_a_child_has_the_choices_of_its_parents, test_draws_reach_all_alike,
      test_follow_finds_the_same_and_the_nearest, test_few_candidates)
