/* Plans made again: when that ends, and what of a device's slowness stays. */
#include "check.h"
#include "made_plan.h"
#include "predictor/partition/run/plan_run_passes.c" /* what is between passes */

/* Two convolutions, one behind the other. */
static mp chain(int channels, int edge, uint32_t n_device) {
    mg m = mg_new("made", 13);
    const uint32_t x = mg_in(&m, 4, 1, channels, edge, edge);
    const uint32_t a =
        mg_op(&m, "Conv", "pads:1,1,1,1", 2, x, mg_w(&m, 4, channels, channels, 3, 3));
    mg_end(&m, mg_op(&m, "Conv", "pads:1,1,1,1", 2, a, mg_w(&m, 4, channels, channels, 3, 3)));
    mp p = mp_new(&m);
    for (uint32_t d = 0; d < n_device; d++)
        mp_device(&p, (const char *[]){"a", "b", "c"}[d], "cpu", 0);
    return p;
}

enum { ENOUGH = 25 };

/* Whatever was seen, device b will take a hundredth of a microsecond: no plan ever takes as long as
 * it was said to. */
static cdmpp_status lie(void *ctx, uint32_t op, uint32_t device, const cd_te_shard *part,
                        cd_shard_plan_estimate *out, cdmpp_err *err) {
    const cd_plan_run *r = ctx;
    (void)op, (void)part, (void)err;
    *out = (cd_shard_plan_estimate){.seconds = (device && r->replans < ENOUGH ? 1e-8 : 1e-3) /
                                               r->factor[device]};
    return CDMPP_OK;
}

/* Times that no plan meets end with the budget. */
static void test_never_as_said(void **state) {
    (void)state;
    mp p = chain(4, 6, 2);
    cdmpp_err err = {0};
    const double none = (double)NAN;
    cd_shard_plan *q = mp_plan(&p);
    mp_place(q, p.net.n_op - 1, 1);
    ((cd_shard_plan_part *)(uintptr_t)q->op[p.net.n_op - 1].part)->seconds = 1e-8;
    cd_plan_run *r = mp_open(&p, q);
    cd_shard_net net = p.net;
    cd_shard_net_op op[8];
    assert_true(net.n_op <= 8);
    memcpy(op, net.op, net.n_op * sizeof *op);
    for (uint32_t k = 0; k < net.n_op; k++) op[k].pin = k + 1 == net.n_op;
    net.op = op;
    const cd_shard_plan_options again = {.net = &net,
                                         .machine = &p.machine,
                                         .time = lie,
                                         .ctx = r,
                                         .margin = none,
                                         .least_s = none,
                                         .cover = none,
                                         .fixed_share = none};
    cd_plan_run_result o;
    assert_ok(cd_plan_run_watch(r, &again, &(cd_plan_run_watch_options){.drift = 4, .patience = 4},
                                1e-3, &o, &err));
    if (!(o.replans >= 1 && o.replans < ENOUGH))
        fail_msg("planned %u times in a budget of 1 ms", o.replans);
    assert_true(o.passes >= 3 && o.max_error < 1e-5);
    cd_plan_run_result_free(&o);
    cd_plan_run_close(r);
    cd_shard_plan_free(q);
    mp_free(&p);
}

static double part_s(cd_plan_run *r, uint32_t op) {
    cd_plan_run_result o;
    assert_true(mp_error(r, &o) < 1e-5);
    const double s = o.step[op].part_s[0];
    cd_plan_run_result_free(&o);
    return s;
}

/* Slowness told before a plan is made again holds in that too, and goes when it is taken away. */
static void test_slow_goes(void **state) {
    (void)state;
    enum { TIMES = 300 };
    mp p = chain(4, 12, 3);
    cd_shard_plan *q = mp_plan(&p);
    const uint32_t last = p.net.n_op - 1;
    mp_place(q, 0, 1);
    mp_place(q, last, 2);
    cd_plan_run *r = mp_open(&p, q);
    cd_plan_run_slow(r, 1, TIMES);
    cd_plan_run_break(r, 2, 0);
    const double slow = part_s(r, 0);
    assert_true(r->replans == 1 && r->now->number[2] == CD_PLAN_EXEC_NONE &&
                r->now->number[1] != CD_PLAN_EXEC_NONE);
    cd_plan_run_slow(r, 1, 0);
    const double back = part_s(r, 0);
    if (!(back * 10 < slow))
        fail_msg("%g s slowed %d times, %g s when that is taken away", slow, TIMES, back);
    cd_plan_run_close(r);
    cd_shard_plan_free(q);
    mp_free(&p);
}

/* The first operator on b, the last on c, others on a. */
static cd_shard_plan *on_three(mp *p) {
    static const double alone[3] = {1e-5, 1e-5, 1e-5};
    cd_shard_plan *q = mp_plan(p);
    for (uint32_t k = 0; k < q->n_op; k++) q->op[k].alone_s = alone;
    mp_place(q, 0, 1);
    mp_place(q, p->net.n_op - 1, 2);
    return q;
}

/* What was seen before a device failed is no judgement of the plan behind it: passes in a row begin
 * again. */
static void test_failure_within_patience(void **state) {
    (void)state;
    mp p = chain(4, 12, 3);
    cd_shard_plan *q = on_three(&p);
    cd_plan_run *r = mp_open(&p, q);
    cdmpp_err err = {0};
    cd_multi_action_time *ran = NULL;
    samples s = {0};
    watch w = {.drift = 1.01, .patience = MOST_PATIENCE};
    cd_plan_run_slow(r, 1, 3000);
    for (int k = 0; k < 6; k++) assert_ok(pass(r, &w, &s, &ran, &err));
    assert_true(w.n == 6 && w.device == 1 && !isnan(w.ratio[2][0]));
    cd_plan_run_break(r, 2, 0);
    assert_ok(pass(r, &w, &s, &ran, &err));
    assert_true(r->failures == 1 && s.n == 1 && w.n == 1 && isnan(w.ratio[2][0]));
    forget(&s);
    cd_mem_free(ran);
    cd_plan_run_close(r);
    cd_shard_plan_free(q);
    mp_free(&p);
}

/* A plan that lost a device while it was compared is told by no number of its own, nor of the one
 * behind it. */
static void test_compare_failure(void **state) {
    (void)state;
    mp p = chain(4, 6, 3);
    cd_shard_plan *q = on_three(&p);
    cdmpp_err err = {0};
    double seconds[3], total[3 * MANY], scratch[MANY];
    bool out[3] = {false};
    cd_plan_run *r[3] = {mp_open(&p, q), mp_open(&p, q), mp_open(&p, q)};
    cd_plan_run_break(r[1], 2, 0);
    assert_ok(cd_plan_run_compare(r, 3, 0.01, seconds, &err));
    assert_true(seconds[0] > 0 && isnan(seconds[1]) && seconds[2] > 0 && r[1]->replans == 1);
    turns t = {.total = total, .out = out, .cap = MANY};
    assert_ok(take_turns(r, 3, 0, &t, scratch, &err));
    cd_plan_run_break(r[2], 1, 0); /* between turns */
    assert_ok(take_turns(r, 3, 0, &t, scratch, &err));
    assert_true(!out[0] && !out[1] && out[2] && r[2]->replans == 1);
    for (int k = 0; k < 3; k++) cd_plan_run_break(r[k], 0, 0); /* all of them */
    assert_ok(cd_plan_run_compare(r, 3, 0.01, seconds, &err));
    assert_true(isnan(seconds[0]) && isnan(seconds[1]) && isnan(seconds[2]));
    for (int k = 0; k < 3; k++) cd_plan_run_close(r[k]);
    cd_shard_plan_free(q);
    mp_free(&p);
}

/* ---- numbers by hand: operator 0 of two parts and a join on devices 0 and 1, operator 1 whole on
 * device 2 ---- */
static cd_shard_plan_part first_parts[] = {{0, 0, 3, 0.2}, {1, 3, 8, 0.4}};
static cd_shard_plan_part second_parts[] = {{2, 0, 0, 0.25}};
static cd_shard_plan_op by_hand_op[] = {
    {.n_part = 2, .part = first_parts, .join = 1, .join_s = 0.1},
    {.n_part = 1, .part = second_parts, .join = UINT32_MAX}};
static cd_shard_plan by_hand_plan = {.n_op = 2, .op = by_hand_op};
static cd_plan_exec_piece by_hand_piece[] = {{.op = 0, .part = 0, .device = 0},
                                             {.op = 0, .part = 1, .device = 1},
                                             {.op = 0, .part = 2, .device = 1},
                                             {.op = 1, .part = 0, .device = 2}};
static uint32_t by_hand_first[] = {0, 3, 4};
static cd_plan_exec_origin by_hand_of[] = {{0, CD_PLAN_EXEC_COPY}, {0, 1}, {0, 0}, {0, 2}, {1, 0},
                                           {2, CD_PLAN_EXEC_COPY}};
static cd_plan_exec by_hand = {.plan = &by_hand_plan,
                               .n_piece = 4,
                               .piece = by_hand_piece,
                               .first = by_hand_first,
                               .of = by_hand_of,
                               .dn = {.n_action = 6}};

TEST(test_times_of_operators_and_parts) {
    static const double from[] = {0.25, 0.375, 0.5, 1, 1.25, 3};
    static const double to[] = {0.375, 0.75, 0.875, 1.125, 2, 4};
    samples s = {0};
    cdmpp_err err = {0};
    cd_plan_run_result o = {0};
    double scratch[40];
    /* more than there is room for at first; the middle is 18 times as long, the 17th */
    for (unsigned i = 0; i < 35; i++) {
        cd_multi_action_time ran[6];
        for (int k = 0; k < 6; k++)
            ran[k] = (cd_multi_action_time){.start_s = (1 + i) * from[k], .end_s = (1 + i) * to[k]};
        assert_ok(take(&s, &by_hand, ran, 1 + i, &err));
    }
    assert_ok(fill_steps(&s, &by_hand, 17, scratch, &o, &err));
    assert_true(s.n == 35 && s.total[34] == 35);
    assert_true(o.step[0].seconds == 18 * 0.875 && o.step[0].start_s == 18 * 0.25 &&
                o.step[0].end_s == 18 * 1.125);
    assert_true(o.step[1].seconds == 18 * 0.75 && o.step[1].start_s == 18 * 1.25 &&
                o.step[1].end_s == 18 * 2);
    assert_true(o.step[0].part_s[0] == 18 * 0.375 && o.step[0].part_s[1] == 18 * 0.375 &&
                o.step[0].part_s[2] == 18 * 0.125 && o.step[1].part_s[0] == 18 * 0.75);
    cd_plan_run_result_free(&o);
    forget(&s);
}

/* Device 1 takes twice as long as it was said to, then device 2 does, then device 1 again. */
TEST(test_drift) {
    double slow[3][4] = {{0.2, 0.8, 0.2, 0.25}, {0.2, 0.4, 0.1, 0.5}, {0.1, 0.4, 0.1, 0.125}};
    double piece[4];
    double now[4];
    samples s = {.n = 1, .n_piece = 4, .piece = piece};
    watch w = {.drift = 1.5, .patience = 3};
    static const struct {
        int pass;
        bool drifts;
        unsigned n;
        uint32_t device;
    } t[] = {{0, false, 1, 1}, {0, false, 2, 1}, {1, false, 1, 2},
             {2, false, 1, 1}, {0, false, 2, 1}, {2, true, 3, 1}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        memcpy(piece, slow[t[k].pass], sizeof piece);
        assert_int_equal(drifts(&w, &s, &by_hand, 4), t[k].drifts);
        assert_true(w.n == t[k].n && w.device == t[k].device);
    }
    ratios(&s, &by_hand, 4, now);
    assert_close(now[0], 0.5, 1e-12, 0);
    assert_close(now[1], 1, 1e-12, 0); /* part and join */
    assert_close(now[2], 0.5, 1e-12, 0);
    assert_true(isnan(now[3]));
    for (int d = 0; d < 3; d++) assert_close(w.ratio[d][2], now[d], 1e-12, 0);
    w.drift = 2.5; /* nobody is so much slower: counting begins again */
    assert_false(drifts(&w, &s, &by_hand, 4));
    assert_int_equal(w.n, 0);
    by_hand_op[1].part = (cd_shard_plan_part[]){{2, 0, 0, INFINITY}}; /* nobody said how long */
    ratios(&s, &by_hand, 4, now);
    assert_true(isnan(now[2]));
    by_hand_op[1].part = second_parts;
}

/* Ranks of the median's interval; passes are enough at every eighth, where the median is known
 * well. */
TEST(test_known_medians) {
    double v[100], low, high;
    bool done;
    cdmpp_err err = {0};
    for (int k = 0; k < 100; k++) v[k] = (37 * k) % 100;
    assert_true(median(v, 100, &low, &high) == 49.5 && low == 41 && high == 59);
    for (int k = 0; k < 5; k++) v[k] = (3 * k) % 5;
    assert_true(median(v, 5, &low, &high) == 2 && low == 0 && high == 4);
    for (int k = 0; k < 100; k++) v[k] = 1;
    samples s = {.total = v};
    for (s.n = 1; s.n < 20; s.n++) {
        assert_ok(enough(&s, &done, &err));
        assert_int_equal(done, s.n % 8 == 0);
    }
    s.n = 16;
    for (int k = 0; k < 16; k++) v[k] = 1 + 0.1 * k;
    assert_ok(enough(&s, &done, &err));
    assert_false(done);
}

TESTS(up, down, test_never_as_said, test_slow_goes, test_failure_within_patience,
      test_compare_failure, test_times_of_operators_and_parts, test_drift, test_known_medians)
