/* split_thin: which programs of a task that trains stay, counted by brute force. */
#include "check.h"
#include "dataset/split/split.h"
#include "fault.h"
#include "made_split.h"

static cd_split *split(made_split *f, int64_t n, double best, cd_split_kind kind) {
    cdmpp_err err = {0};
    cd_split *s = NULL;
    const cd_split_spec p = {.kind = kind,
                             .seed = 3,
                             .valid = 0.2,
                             .test = 0.2,
                             .train_per_task = n,
                             .train_best = best};
    assert_ok(cd_split_make(&f->d, f->keep, &p, &s, &err));
    return s;
}

/* How many programs of the task and device of program i train, and how many of these are faster
 * than i. */
static size_t beside(const made_split *f, const cd_split *s, size_t i, bool faster) {
    size_t n = 0;
    for (size_t k = 0; k < MADE_N; k++)
        n += f->task[k] == f->task[i] && f->dev[k] == f->dev[i] &&
             s->part[k] == CD_SPLIT_PART_TRAIN && (!faster || f->y[k] < f->y[i]);
    return n;
}

TEST(fastest_and_drawn) {
    static made_split f;
    made_split_build(&f, 0);
    cd_split *all = split(&f, 0, 0.5, CD_SPLIT_TASK), *s = split(&f, 4, 0.5, CD_SPLIT_TASK);
    size_t thinned = 0, slow = 0;
    for (size_t i = 0; i < MADE_N; i++) {
        if (all->part[i] != CD_SPLIT_PART_TRAIN) {
            assert_int_equal(s->part[i], all->part[i]); /* validation and test are as without */
            continue;
        }
        const size_t faster = beside(&f, all, i, true);
        thinned += s->part[i] == CD_SPLIT_PART_NONE;
        assert_int_equal(beside(&f, s, i, false),
                         beside(&f, all, i, false) < 4 ? beside(&f, all, i, false) : 4);
        if (faster < 2) assert_int_equal(s->part[i], CD_SPLIT_PART_TRAIN); /* half of 4 */
        slow += faster >= 4 && s->part[i] == CD_SPLIT_PART_TRAIN;
    }
    assert_true(thinned > 30 && slow > 15); /* not the fastest alone */
    assert_int_equal(s->n_thinned, thinned);
    assert_int_equal(s->n_unused, 0);
    assert_int_equal(s->n_program[CD_SPLIT_PART_TRAIN] + thinned,
                     all->n_program[CD_SPLIT_PART_TRAIN]);
    assert_string_equal(s->hash[CD_SPLIT_PART_TEST], all->hash[CD_SPLIT_PART_TEST]);
    assert_string_not_equal(s->hash[CD_SPLIT_PART_TRAIN], all->hash[CD_SPLIT_PART_TRAIN]);
    cd_buf b = {0};
    cd_split_notes(&b, s);
    assert_non_null(strstr(b.p, "programs of tasks that train are left out"));
    cd_buf_free(&b);
    cd_split_free(all);
    cd_split_free(s);
}

/* A share of 1: none is slower than one that is left out. A share of 0: a smaller limit keeps a
 * subset. */
TEST(shares) {
    static made_split f;
    made_split_build(&f, 0);
    cd_split *best = split(&f, 3, 1, CD_SPLIT_TASK), *three = split(&f, 3, 0, CD_SPLIT_TASK),
             *two = split(&f, 2, 0, CD_SPLIT_TASK), *many = split(&f, 5, 0, CD_SPLIT_TASK);
    for (size_t i = 0; i < MADE_N; i++) {
        if (best->part[i] == CD_SPLIT_PART_TRAIN) assert_true(beside(&f, many, i, true) < 3);
        if (two->part[i] == CD_SPLIT_PART_TRAIN)
            assert_int_equal(three->part[i], CD_SPLIT_PART_TRAIN);
    }
    assert_int_equal(many->n_thinned, 0); /* as many as there are */
    assert_string_not_equal(best->digest, three->digest);
    cd_split_free(best);
    cd_split_free(three);
    cd_split_free(two);
    cd_split_free(many);
}

/* By record as by task; the order of programs is nothing, ties go by key. */
TEST(order_is_nothing) {
    static made_split f, g;
    made_split_build(&f, 0);
    made_split_build(&g, 1);
    for (int i = 0; i < MADE_N; i++) f.y[i] = g.y[i] = 1e-3;
    cd_split *s = split(&f, 2, 0.5, CD_SPLIT_RECORD), *t = split(&g, 2, 0.5, CD_SPLIT_RECORD);
    for (int i = 0; i < MADE_N; i++) assert_int_equal(s->part[i], t->part[MADE_N - 1 - i]);
    assert_true(s->n_thinned > 20);
    cd_split_free(s);
    cd_split_free(t);
}

static void out_of_memory(void **st) {
    (void)st;
    static made_split f;
    made_split_build(&f, 0);
    const cd_split_spec p = {
        .kind = CD_SPLIT_TASK, .seed = 3, .valid = 0.2, .test = 0.2, .train_per_task = 2};
    FAULT_SWEEP(w, 1) {
        cd_split *s = NULL;
        w.st = cd_split_make(&f.d, f.keep, &p, &s, &w.err);
        cd_split_free(s);
    }
}

TESTS(NULL, NULL, fastest_and_drawn, shares, order_is_nothing, out_of_memory)
