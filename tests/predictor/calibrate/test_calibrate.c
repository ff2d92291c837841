/* A calibration with a made machine: what is chosen and measured, within a made clock. */
#include "made_calibrate.h"

#include "profiler/host/host.h"

/* ---- candidates ---- */
TEST(the_order_is_of_features_and_the_same_again) {
    cdmpp_err err = {0};
    cd_calibrate_pool p, q;
    const cd_calibrate_pool_options o = pool_options(4);
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    assert_true(p.n > N_TASK && p.n_order > 4 && p.n_order <= p.n);
    assert_ok(cd_calibrate_pool_build(&o, &q, &err));
    assert_int_equal(q.n, p.n);
    assert_int_equal(q.n_order, p.n_order);
    for (size_t i = 0; i < q.n_order; i++) {
        assert_int_equal(q.order[i], p.order[i]);
        assert_string_equal(q.v[q.order[i]].line, p.v[p.order[i]].line);
    }
    for (size_t i = 0; i < p.n_order; i++) {
        assert_true(p.v[p.order[i]].analytic_s > 0 && p.v[p.order[i]].analytic_s < 0.5);
        for (size_t k = 0; k < i; k++) assert_int_not_equal(p.order[i], p.order[k]);
    }
    cd_calibrate_pool_free(&p);
    cd_calibrate_pool_free(&q);
}

static uint64_t number_of(const char *line) {
    cdmpp_err err = {0};
    cd_arena a = {0};
    cd_record r;
    char key[300];
    assert_ok(cd_record_read(&a, line, strlen(line), &r, &err));
    snprintf(key, sizeof key, "%.*s", (int)r.workload_key.n, r.workload_key.p);
    cd_arena_free(&a);
    return cd_stable_id_name(key);
}

/* Threads change nothing. Where the time ends, tasks are left out by a number of their names: not
 * the networks that come last. */
TEST(the_best_are_the_same_by_threads_and_mixed) {
    cdmpp_err err = {0};
    cd_calibrate_pool p, q;
    cd_calibrate_pool_options o = pool_options(1);
    uint64_t before = 0;
    size_t best = 0;
    o.model = model;
    o.stands = "zen4";
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    o.jobs = 3;
    assert_ok(cd_calibrate_pool_build(&o, &q, &err));
    assert_int_equal(q.n, p.n);
    for (size_t i = 0; i < p.n; i++) {
        assert_string_equal(q.v[i].line, p.v[i].line);
        if (!p.v[i].best) continue;
        assert_true(number_of(p.v[i].line) > before);
        before = number_of(p.v[i].line);
        best++;
    }
    assert_true(best > 2);
    cd_calibrate_pool_free(&p);
    cd_calibrate_pool_free(&q);
}

/* Of each task at most one candidate is the best, which a replay would choose, too; best and others
 * take turns as long as there are both. */
TEST(the_best_of_each_task_takes_turns) {
    cdmpp_err err = {0};
    cd_calibrate_pool p;
    cd_calibrate_pool_options o = pool_options(3);
    const cd_schedule_db_pick pick = {
        .seed = 1, .target = o.target, .device = "zen4", .hardware = &o.hardware};
    cd_schedule_db *db;
    size_t best = 0, turns = 0;
    o.model = model;
    o.stands = "zen4";
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    assert_ok(cd_schedule_db_new(&db, &err));
    for (size_t i = 0; i < p.n; i++) {
        cd_arena a = {0};
        cd_record r;
        char key[300];
        if (!p.v[i].best) continue;
        best++;
        assert_ok(cd_record_read(&a, p.v[i].line, p.v[i].len, &r, &err));
        snprintf(key, sizeof key, "%.*s", (int)r.workload_key.n, r.workload_key.p);
        const char *const one = key;
        assert_null(cd_schedule_db_find(db, key)); /* one a task */
        assert_ok(cd_schedule_db_predict(db, model, tasks, &one, 1, &pick, NULL, &err));
        assert_non_null(cd_schedule_db_find(db, key));
        assert_string_equal(cd_schedule_db_find(db, key)->line, p.v[i].line);
        cd_arena_free(&a);
    }
    cd_schedule_db_free(db);
    assert_true(best > N_TASK / 2 && best <= N_TASK && p.n > 2 * best);
    for (size_t i = 0; i < 2 * best && i < p.n_order; i++)
        turns += p.v[p.order[i]].best == (i % 2 == 1);
    assert_int_equal(turns, 2 * best);
    cd_calibrate_pool_free(&p);
}

TEST(no_draw_begins_late) {
    cdmpp_err err = {0};
    cd_calibrate_pool p;
    made_clock c = {.now = 2};
    cd_calibrate_pool_options o = pool_options(4);
    o.now = made_now;
    o.ctx = &c;
    o.until_s = 1;
    assert_status(cd_calibrate_pool_build(&o, &p, &err), CDMPP_ENODATA);
    cd_calibrate_pool_free(&p);
    const cd_device nothing = {.kind = CD_DEVICE_CPU};
    o.device = &nothing;
    assert_status(cd_calibrate_pool_build(&o, &p, &err), CDMPP_ESCHEMA);
    cd_calibrate_pool_free(&p);
}

/* ---- measuring ---- */
TEST(the_time_is_kept) {
    cdmpp_err err = {0};
    cd_calibrate_pool p;
    cd_calibrate_measured m;
    made_clock c = {.each = 2};
    const cd_calibrate_pool_options o = pool_options(4);
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    (void)unlink(log_path);
    assert_ok(measure_once(&p, &c, 30, 0, &m, &err));
    assert_true(m.late);
    assert_true(c.now <= 30); /* the first batch is not known to be slow, so 30 is not near 8 */
    assert_true(c.now > 30 - 4 * 2 - 1);
    assert_int_equal(m.fresh, lines_of_log());
    assert_int_equal(m.fresh, m.programs + m.repeats);
    assert_int_equal(m.repeats, m.fresh / CD_CALIBRATE_TWICE);
    cd_calibrate_pool_free(&p);
}

/* What is done with each program afterwards takes its part of the time, also of those that the log
 * had. */
TEST(time_is_left_for_the_fit) {
    cdmpp_err err = {0};
    cd_calibrate_pool p;
    cd_calibrate_measured m;
    const cd_calibrate_pool_options o = pool_options(4);
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    (void)unlink(log_path);
    after_s = 1;
    for (int k = 0; k < 2; k++) {
        made_clock c = {.each = 1};
        assert_ok(measure_once(&p, &c, k ? 44 : 40, 0, &m, &err));
        assert_true(m.late);
        assert_true(c.now + after_s * (double)m.programs <= (k ? 44 : 40));
        assert_true(c.now + after_s * (double)m.programs > (k ? 44 : 40) - 2 * 4 - 1);
        assert_true(k == 0 || m.fresh < 30);
    }
    after_s = 0;
    cd_calibrate_pool_free(&p);
}

/* Programs in the log of which this order has none are learned from, too. */
TEST(programs_of_an_earlier_order_take_time) {
    cdmpp_err err = {0};
    cd_calibrate_pool p;
    cd_calibrate_measured m;
    const cd_calibrate_pool_options o = pool_options(4);
    made_clock c = {.each = 1};
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    made_log(1, 0.02); /* four of each task */
    after_s = 1;
    assert_ok(measure_once(&p, &c, 4 * N_TASK + 20, 0, &m, &err));
    after_s = 0;
    assert_true(m.fresh > 0 && m.late);
    assert_true(m.known >= 4 * N_TASK + m.programs);
    assert_true(c.now + 4 * N_TASK + (double)m.programs <= 4 * N_TASK + 20);
    cd_calibrate_pool_free(&p);
}

/* Where the clock ends what is late, the run uses all of its time, whatever the slowest program
 * took, and what was cut is not in the log. */
TEST(late_programs_are_cut) {
    cdmpp_err err = {0};
    cd_calibrate_pool p;
    cd_calibrate_measured m;
    const cd_calibrate_pool_options o = pool_options(4);
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    for (int cuts = 0; cuts < 2; cuts++) {
        made_clock c = {.each = 0.5, .slow = 2, .slow_s = 20};
        (void)unlink(log_path);
        made_cuts = cuts ? made_until : NULL;
        assert_ok(measure_once(&p, &c, 40, 0, &m, &err));
        assert_true(m.late && c.now <= 40);
        assert_int_equal(m.failed, 0);
        assert_int_equal(m.fresh, lines_of_log());
        assert_int_equal(m.fresh > 20, cuts); /* 21.5 s are for four programs, and 18.5 for 37 */
    }
    made_clock hangs = {.each = 0.5, .slow = 9, .slow_s = 100}; /* it would end at 104 */
    (void)unlink(log_path);
    assert_ok(measure_once(&p, &hangs, 40, 0, &m, &err));
    assert_true(m.late);
    assert_close(hangs.now, 40, 0, 0);
    assert_int_equal(m.fresh, 8);
    assert_int_equal(lines_of_log(), 8);
    made_cuts = NULL;
    cd_calibrate_pool_free(&p);
}

/* After the first programs it is known how long one takes: where there is no time for as many as
 * are needed, no more are measured. */
TEST(a_run_that_cannot_succeed_ends_at_once) {
    cdmpp_err err = {0};
    cd_calibrate_pool p;
    cd_calibrate_measured m;
    const cd_calibrate_pool_options o = pool_options(4);
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    least = 12;
    for (int k = 0; k < 2; k++) {
        made_clock c = {.each = k ? 2 : 4};
        (void)unlink(log_path);
        assert_ok(measure_once(&p, &c, 40, 0, &m, &err));
        assert_int_equal(m.hopeless, !k);
        assert_int_equal(m.programs == 4, !k); /* a batch */
    }
    made_clock more = {.each = 4}; /* what the log has counts */
    assert_ok(measure_once(&p, &more, 40, 0, &m, &err));
    assert_false(m.hopeless);
    least = 0;
    cd_calibrate_pool_free(&p);
}

/* This machine's clock, and that of its processors, which cannot say when a program is late. */
TEST(the_clocks_of_this_machine) {
    cdmpp_err err = {0};
    cd_measure *m = NULL;
    const cd_measure_options o = {.cache = ""};
    assert_ok(cd_measure_open(&o, &m, &err));
    for (int k = 0; k < 2; k++) {
        cd_calibrate_here here = {.measure = m, .cpu_time = k};
        const cd_calibrate_clock c = cd_calibrate_clock_here(&here);
        const double own = cd_process_time_own(), wall = cd_clock_wall(), now = c.now(c.ctx);
        assert_int_equal(c.cpu_time, k);
        assert_int_equal(c.until == NULL, k);
        assert_true(now >= (k ? own : wall));
        /* what measures has done nothing yet */
        if (k) assert_true(now <= cd_process_time_own() + 1);
    }
    cd_measure_close(m);
}

/* A fit of more programs takes longer, less than in proportion; of none it takes what it takes to
 * begin. */
TEST(what_a_fit_takes) {
    cdmpp_err err = {0};
    cd_calibrate_pool p;
    cd_calibrate_costs costs;
    double ticks = 0;
    const cd_calibrate_pool_options o = pool_options(4);
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    const cd_calibrate_costs_options co = {.model = model,
                                           .tasks = tasks,
                                           .device = "zen4",
                                           .pool = &p,
                                           .programs = 8,
                                           .now = made_tick,
                                           .ctx = &ticks};
    assert_ok(cd_calibrate_costs_of(&co, &costs, &err));
    assert_int_equal(costs.programs, 8);
    assert_close(costs.begin_s, 1, 0, 0); /* a second between two looks at the clock */
    assert_close(costs.line_s, 0.125, 0, 0);
    assert_close(costs.trees_s, 1, 0, 0);
    const double few = cd_calibrate_costs_s(&costs, 8), many = cd_calibrate_costs_s(&costs, 80);
    assert_true(few >= 1 + 1 + 6 && many > 4 * few && many < 10 * few);
    assert_true(cd_calibrate_costs_s(&costs, 0) >= 1 && cd_calibrate_costs_s(&costs, 0) < 2);
    cd_calibrate_pool_free(&p);
}

/* Killed at any point, the same call goes on: all together measures what one run would have. */
TEST(a_killed_run_goes_on) {
    cdmpp_err err = {0};
    cd_calibrate_pool p;
    cd_calibrate_measured m;
    size_t whole, sum = 0;
    const cd_calibrate_pool_options o = pool_options(4);
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    (void)unlink(log_path);
    made_clock c = {.each = 1};
    assert_ok(measure_once(&p, &c, 1e9, 14, &m, &err));
    whole = lines_of_log();
    assert_int_equal(m.programs, 14);
    assert_false(m.late);
    (void)unlink(log_path);
    for (int k = 0; k < 20; k++) {
        made_clock killed = {.each = 1, .fail_after = 5};
        const cdmpp_status st = measure_once(&p, &killed, 1e9, 14, &m, &err);
        sum += m.fresh;
        /* in the middle of a batch: what was measured is kept */
        if (!k) assert_int_equal(m.fresh, 5);
        if (!st) break;
        assert_int_equal(st, CDMPP_EINTERRUPTED);
    }
    assert_int_equal(lines_of_log(), whole);
    assert_int_equal(sum, whole);
    made_clock idle = {.each = 1};
    assert_ok(measure_once(&p, &idle, 1e9, 14, &m, &err));
    assert_int_equal(idle.measured, 0);
    assert_int_equal(m.programs, 14);
    cd_calibrate_pool_free(&p);
}

/* ---- memory ---- */
TEST(every_allocation_of_a_trial_may_fail) {
    cd_calibrate_pool p;
    cdmpp_err err = {0};
    double ticks = 0;
    const cd_calibrate_pool_options o = pool_options(2);
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    FAULT_SWEEP(f, 3) {
        cd_calibrate_costs costs;
        const cd_calibrate_costs_options co = {.model = model,
                                               .tasks = tasks,
                                               .device = "zen4",
                                               .pool = &p,
                                               .programs = 4,
                                               .now = made_tick,
                                               .ctx = &ticks};
        f.step = f.k < 100 ? 1 : 23;
        f.st = cd_calibrate_costs_of(&co, &costs, &f.err);
    }
    cd_calibrate_pool_free(&p);
}

TEST(every_allocation_of_measuring_may_fail) {
    FAULT_SWEEP(g, 3) {
        cd_calibrate_pool p = {0};
        cd_calibrate_pool_options o = pool_options(2);
        o.model = model;
        o.stands = "zen4";
        g.step = g.k < 200 ? 1 : 23;
        g.st = cd_calibrate_pool_build(&o, &p, &g.err);
        cd_calibrate_pool_free(&p);
    }
    cd_calibrate_pool p;
    cdmpp_err err = {0};
    const cd_calibrate_pool_options o = pool_options(2);
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    FAULT_SWEEP(h, 3) {
        cd_calibrate_measured m;
        made_clock c = {.each = 1};
        h.step = h.k < 100 ? 1 : 23;
        (void)unlink(log_path);
        h.st = measure_once(&p, &c, 1e9, 5, &m, &h.err);
    }
    cd_calibrate_pool_free(&p);
}

TESTS(setup, teardown, the_order_is_of_features_and_the_same_again,
      the_best_are_the_same_by_threads_and_mixed, the_best_of_each_task_takes_turns,
      no_draw_begins_late, the_time_is_kept, time_is_left_for_the_fit,
      programs_of_an_earlier_order_take_time, late_programs_are_cut,
      a_run_that_cannot_succeed_ends_at_once, the_clocks_of_this_machine, what_a_fit_takes,
      a_killed_run_goes_on, every_allocation_of_a_trial_may_fail,
      every_allocation_of_measuring_may_fail)
