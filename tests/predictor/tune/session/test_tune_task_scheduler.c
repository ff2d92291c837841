/* Which task is next and when it is enough, on planted tasks. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "predictor/tune/session/tune_task_scheduler.h"

enum { N = 3, ROUND = 8 };

typedef struct {
    cd_tune_task_scheduler *s;
    uint64_t n[N]; /* trials of each */
    double spent_s;
} rig;

/* Seconds of trial k of a task: falls along ln k with its own slope. */
static double planted(const double *slope, const double *start, uint32_t task, uint64_t k) {
    return start[task] * pow((double)(k + 1), -slope[task]);
}

static void give(rig *r, const double *slope, const double *start, uint32_t task, uint32_t n) {
    cdmpp_err err = {0};
    double s[ROUND];
    for (uint32_t k = 0; k < n; k++) s[k] = planted(slope, start, task, r->n[task]++);
    assert_ok(cd_tune_task_scheduler_add(r->s, task, s, n, 0.5 * n, &err));
    r->spent_s += 0.5 * n;
}

static cd_tune_task_scheduler_end run(rig *r, const double *slope, const double *start) {
    uint32_t task = N, n = 0;
    cd_tune_task_scheduler_end end;
    while (!(end = cd_tune_task_scheduler_next(r->s, r->spent_s, &task, &n))) {
        assert_true(task < N && n > 0 && n <= ROUND);
        give(r, slope, start, task, n);
    }
    return end;
}

static void open_rig(rig *r, const double *weight, const cd_tune_task_scheduler_options *o,
                     const char *group) {
    cdmpp_err err = {0};
    cd_tune_task_scheduler_task t[N];
    for (int i = 0; i < N; i++) t[i] = (cd_tune_task_scheduler_task){weight[i], 1e9, group, 0};
    memset(r, 0, sizeof *r);
    assert_ok(cd_tune_task_scheduler_new(t, N, o, &r->s, &err));
}

static const double alike[N] = {1, 1, 1}, slow[N] = {1e-3, 1e-3, 1e-3};

/* Every task once in their order; then most goes to the one whose weight x time is largest. */
static void test_weight_decides(void **state) {
    (void)state;
    const double weight[N] = {1, 20, 1}, slope[N] = {0.3, 0.3, 0.3};
    const cd_tune_task_scheduler_options o = {.trials = 40 * ROUND, .per_round = ROUND};
    uint32_t task, n;
    rig r;
    open_rig(&r, weight, &o, NULL);
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(cd_tune_task_scheduler_next(r.s, 0, &task, &n), CD_TUNE_GOES_ON);
        assert_int_equal(task, i);
        give(&r, slope, slow, task, n);
    }
    assert_int_equal(run(&r, slope, slow), CD_TUNE_NO_TRIALS);
    assert_int_equal(r.n[0] + r.n[1] + r.n[2], 40 * ROUND);
    assert_true(r.n[1] > 2 * (r.n[0] + r.n[2]));
    cd_tune_task_scheduler_free(r.s);
}

/* Of tasks that are equally fast after as many rounds the next round goes to the one that still
 * gains. */
static void test_gain_decides(void **state) {
    (void)state;
    const double flat[N] = {0, 0, 0};
    const double now = 1e-3;
    const double slope[N] = {0, 0, 0.5};
    const double start[N] = {now, now, now * sqrt(6 * ROUND)};
    const cd_tune_task_scheduler_options o = {.trials = 60 * ROUND, .per_round = ROUND};
    uint32_t task, n;
    rig r;
    open_rig(&r, alike, &o, NULL);
    for (int k = 0; k < 6; k++)
        for (uint32_t i = 0; i < N; i++) give(&r, i == 2 ? slope : flat, start, i, ROUND);
    for (uint32_t i = 0; i < N; i++)
        assert_close(cd_tune_task_scheduler_best(r.s, i), now, 1e-9, 0);
    assert_true(cd_tune_task_scheduler_gradient(r.s, 2) < cd_tune_task_scheduler_gradient(r.s, 0));
    assert_int_equal(cd_tune_task_scheduler_next(r.s, 0, &task, &n), CD_TUNE_GOES_ON);
    assert_int_equal(task, 2);
    cd_tune_task_scheduler_free(r.s);
}

/* Similar tasks show what is possible: one that is far behind its group has more before it. */
static void test_groups(void **state) {
    (void)state;
    const double slope[N] = {0, 0, 0}, start[N] = {1e-3, 1.9e-3, 1e-3};
    const cd_tune_task_scheduler_options o = {.trials = 3 * ROUND, .per_round = ROUND};
    rig alone, together;
    open_rig(&alone, alike, &o, NULL);
    open_rig(&together, alike, &o, "conv");
    assert_int_equal(run(&alone, slope, start), CD_TUNE_NO_TRIALS);
    assert_int_equal(run(&together, slope, start), CD_TUNE_NO_TRIALS);
    for (uint32_t i = 0; i < N; i++)
        assert_true(cd_tune_task_scheduler_gradient(together.s, i) >=
                    cd_tune_task_scheduler_gradient(alone.s, i));
    assert_true(cd_tune_task_scheduler_gradient(together.s, 1) <=
                cd_tune_task_scheduler_gradient(together.s, 0));
    cd_tune_task_scheduler_free(alone.s);
    cd_tune_task_scheduler_free(together.s);
}

/* Of 16 trials two tasks of 0.4 % of the time each get one; without the small first round they
 * would get five each. */
TEST(test_trials_go_where_time_is) {
    const double slope[N] = {0.1, 0.1, 0.1}, start[N] = {0.085e-3, 22.73e-3, 0.085e-3};
    const cd_tune_task_scheduler_options o = {.trials = 16, .per_round = 5};
    rig r;
    open_rig(&r, alike, &o, NULL);
    assert_int_equal(run(&r, slope, start), CD_TUNE_NO_TRIALS);
    assert_true(r.n[0] == 1 && r.n[1] == 14 && r.n[2] == 1);
    cd_tune_task_scheduler_free(r.s);
    const double thirds[N] = {2e-3, 1e-3, 1e-3};
    const cd_tune_task_scheduler_options many = {.trials = 400, .per_round = 4};
    open_rig(&r, alike, &many, NULL);
    assert_int_equal(run(&r, slope, thirds), CD_TUNE_NO_TRIALS);
    assert_in_range(r.n[0], 180, 220);
    assert_in_range(r.n[1], 90, 110);
    cd_tune_task_scheduler_free(r.s);
}

/* Fewer trials than tasks: those of much work have them. */
TEST(test_few_trials) {
    const cd_tune_task_scheduler_task t[4] = {
        {1, 1e6, NULL, 1e-6}, {2, 1e9, NULL, 1e-3}, {1, 1e9, NULL, 3e-3}, {1, 1e6, NULL, 2e-6}};
    const cd_tune_task_scheduler_options o = {.trials = 2, .per_round = 1};
    const uint32_t want[2] = {2, 1};
    cd_tune_task_scheduler *s;
    cdmpp_err err = {0};
    uint32_t task, n;
    assert_ok(cd_tune_task_scheduler_new(t, 4, &o, &s, &err));
    for (int k = 0; k < 2; k++) {
        assert_int_equal(cd_tune_task_scheduler_next(s, 0, &task, &n), CD_TUNE_GOES_ON);
        assert_true(task == want[k] && n == 1);
        assert_ok(cd_tune_task_scheduler_add(s, task, &(double){1e-3}, 1, 1, &err));
    }
    assert_int_equal(cd_tune_task_scheduler_next(s, 0, &task, &n), CD_TUNE_NO_TRIALS);
    cd_tune_task_scheduler_free(s);
    /* a single task has nobody to leave trials to */
    const cd_tune_task_scheduler_options alone = {.trials = 4, .per_round = 2};
    assert_ok(cd_tune_task_scheduler_new(t, 1, &alone, &s, &err));
    assert_int_equal(cd_tune_task_scheduler_next(s, 0, &task, &n), CD_TUNE_GOES_ON);
    assert_int_equal(n, 2);
    cd_tune_task_scheduler_free(s);
}

/* TVM's gradient (task_scheduler.py) by hand: alpha 0.2, beta 2, a window of 3 rounds; a group is
 * of tasks that are called alike. */
TEST(test_gradient_by_hand) {
    /* the best after each round */
    static const double after[6] = {8e-3, 7e-3, 5e-3, 4e-3, 3.5e-3, 2e-3};
    const cd_tune_task_scheduler_task t[4] = {
        {1, 1e9, "conv", 0}, {3, 1e9, "conv", 0}, {1, 1e9, "dense", 0}, {1, 1e9, NULL, 0}};
    const cd_tune_task_scheduler_options o = {.trials = 1000, .per_round = ROUND};
    cdmpp_err err = {0};
    cd_tune_task_scheduler *s;
    double v[ROUND];
    assert_ok(cd_tune_task_scheduler_new(t, 4, &o, &s, &err));
    assert_true(isinf(cd_tune_task_scheduler_gradient(s, 0)));
    for (int k = 0; k < 6; k++) {
        /* the last one is the best */
        for (int j = 0; j < ROUND; j++) v[j] = after[k] * (1 + ROUND - 1 - j);
        for (uint32_t i = 1; i < 4; i++)
            assert_ok(cd_tune_task_scheduler_add(s, i, v, ROUND, 1, &err));
        const double best = after[k], backward = k >= 3 ? (best - after[k - 3]) / 3 : 0,
                     next = best - best / (k + 1);
        for (uint32_t i = 2; i < 4; i++)
            assert_close(cd_tune_task_scheduler_gradient(s, i),
                         0.2 * backward + 0.8 * (next - best), 1e-9, 0);
        /* its group is no faster */
        assert_close(cd_tune_task_scheduler_gradient(s, 1),
                     3 * (0.2 * backward + 0.8 * (next - best)), 1e-9, 0);
    }
    for (int j = 0; j < ROUND; j++) v[j] = 0.5e-3;
    /* a fast one: twice its time is possible for the others of the group */
    assert_ok(cd_tune_task_scheduler_add(s, 0, v, ROUND, 1, &err));
    assert_close(cd_tune_task_scheduler_gradient(s, 1),
                 3 * (0.2 * (2e-3 - 5e-3) / 3 + 0.8 * (2 * 0.5e-3 - 2e-3)), 1e-9, 0);
    assert_close(cd_tune_task_scheduler_gradient(s, 2), 0.2 * (2e-3 - 5e-3) / 3 + 0.8 * -2e-3 / 6,
                 1e-9, 0);
    cd_tune_task_scheduler_free(s);
}

/* The extrapolation is right where the best falls along ln(trials). */
static void test_gain_is_extrapolated(void **state) {
    (void)state;
    const double slope[N] = {0.4, 0, 0};
    const cd_tune_task_scheduler_options o = {.trials = 1000, .per_round = ROUND};
    rig r;
    open_rig(&r, alike, &o, NULL);
    give(&r, slope, slow, 0, ROUND);
    assert_true(isinf(cd_tune_task_scheduler_gain(r.s, 0)));
    for (int k = 0; k < 9; k++) give(&r, slope, slow, 0, ROUND), give(&r, slope, slow, 1, ROUND);
    const double now = planted(slope, slow, 0, 79), then = planted(slope, slow, 0, 87);
    assert_close(cd_tune_task_scheduler_gain(r.s, 0), now - then, 1e-6, 0);
    assert_close(cd_tune_task_scheduler_gain(r.s, 1), 0, 0, 1e-15);
    /* an odd number of trials: the law goes through the half that is rounded up, and the last */
    give(&r, slope, slow, 0, 1);
    const double fall = log(planted(slope, slow, 0, 40) / planted(slope, slow, 0, 80)) /
                        log(81 / 41.0),
                 last = planted(slope, slow, 0, 80);
    assert_close(cd_tune_task_scheduler_gain(r.s, 0), last * (1 - pow(89 / 81.0, -fall)), 1e-9, 0);
    cd_tune_task_scheduler_free(r.s);
}

static void test_stops_when_it_does_not_pay(void **state) {
    (void)state;
    const double slope[N] = {0.3, 0.3, 0.3};
    cd_tune_task_scheduler_options o = {.trials = 100000, .per_round = ROUND, .runs = 1e3};
    uint64_t few, many;
    rig r;
    open_rig(&r, alike, &o, NULL);
    assert_int_equal(run(&r, slope, slow), CD_TUNE_NO_GAIN);
    few = r.n[0] + r.n[1] + r.n[2];
    /* a round costs 4 s: gain x runs is below */
    for (uint32_t i = 0; i < N; i++) assert_true(cd_tune_task_scheduler_gain(r.s, i) * 1e3 <= 4);
    cd_tune_task_scheduler_free(r.s);
    o.runs = 1e6;
    open_rig(&r, alike, &o, NULL);
    assert_int_equal(run(&r, slope, slow), CD_TUNE_NO_GAIN);
    many = r.n[0] + r.n[1] + r.n[2];
    assert_true(many > few);
    cd_tune_task_scheduler_free(r.s);
    o.runs = 0;
    o.min_gain = 0.05; /* (n/2)^-0.01 / n^-0.01: 0.7 % */
    const double flat[N] = {0.01, 0.01, 0.01};
    open_rig(&r, alike, &o, NULL);
    assert_int_equal(run(&r, flat, slow), CD_TUNE_NO_GAIN);
    assert_true(r.n[0] + r.n[1] + r.n[2] <= 12 * ROUND);
    cd_tune_task_scheduler_free(r.s);
}

static void test_ends(void **state) {
    (void)state;
    const double slope[N] = {0.1, 0.1, 0.1};
    cdmpp_err err = {0};
    uint32_t task, n;
    rig r;
    cd_tune_task_scheduler_options o = {.trials_per_task = ROUND + 3, .per_round = ROUND};
    open_rig(&r, alike, &o, NULL);
    assert_int_equal(run(&r, slope, slow), CD_TUNE_NO_TRIALS);
    for (int i = 0; i < N; i++) assert_int_equal(r.n[i], ROUND + 3);
    cd_tune_task_scheduler_free(r.s);
    o = (cd_tune_task_scheduler_options){.seconds = 40, .per_round = ROUND};
    open_rig(&r, alike, &o, NULL);
    assert_int_equal(run(&r, slope, slow), CD_TUNE_NO_TIME);
    assert_true(r.spent_s >= 40 && r.spent_s < 45);
    cd_tune_task_scheduler_free(r.s);
    o = (cd_tune_task_scheduler_options){.early_stop = 2 * ROUND, .per_round = ROUND};
    const double flat[N] = {0, 0, 0};
    open_rig(&r, alike, &o, NULL);
    assert_int_equal(run(&r, flat, slow), CD_TUNE_NO_TASK);
    for (int i = 0; i < N; i++) assert_true(r.n[i] == 3 * ROUND);
    cd_tune_task_scheduler_free(r.s);
    /* all fail: left after some rounds */
    o = (cd_tune_task_scheduler_options){.trials = 1000, .per_round = ROUND};
    open_rig(&r, alike, &o, NULL);
    for (int k = 0; k < 4; k++) {
        double s[ROUND];
        for (int j = 0; j < ROUND; j++) s[j] = CD_TUNE_FAILED_S;
        assert_ok(cd_tune_task_scheduler_add(r.s, 0, s, ROUND, 1, &err));
    }
    cd_tune_task_scheduler_leave(r.s, 1);
    for (int k = 0; k < 5; k++) {
        assert_int_equal(cd_tune_task_scheduler_next(r.s, 0, &task, &n), CD_TUNE_GOES_ON);
        assert_int_equal(task, 2);
        give(&r, slope, slow, task, n);
    }
    cd_tune_task_scheduler_leave(r.s, 2);
    assert_int_equal(cd_tune_task_scheduler_next(r.s, 0, &task, &n), CD_TUNE_NO_TASK);
    cd_tune_task_scheduler_free(r.s);
}

/* Trials of an earlier run are rounds as well, and cost nothing now. */
static void test_resumed(void **state) {
    (void)state;
    cdmpp_err err = {0};
    double s[5 * ROUND];
    uint32_t task, n;
    rig r;
    const cd_tune_task_scheduler_options o = {.trials = 5 * ROUND + 2, .per_round = ROUND};
    for (int k = 0; k < 5 * ROUND; k++) s[k] = 1e-3 / (k + 1);
    open_rig(&r, alike, &o, NULL);
    assert_ok(cd_tune_task_scheduler_add(r.s, 1, s, 5 * ROUND, 0, &err));
    assert_int_equal(cd_tune_task_scheduler_trials(r.s, 1), 5 * ROUND);
    assert_int_equal(cd_tune_task_scheduler_next(r.s, 0, &task, &n), CD_TUNE_GOES_ON);
    assert_int_equal(task, 0);
    assert_int_equal(n, 1); /* a first look */
    cd_tune_task_scheduler_free(r.s);
}

TESTS(NULL, NULL, test_weight_decides, test_gain_decides, test_groups, test_trials_go_where_time_is,
      test_few_trials, test_gradient_by_hand, test_gain_is_extrapolated,
      test_stops_when_it_does_not_pay, test_ends, test_resumed)
