/* Plans made again: when that ends, and what of a device's slowness stays. */
#include "check.h"
#include "made_plan.h"
#include "predictor/partition/run/plan_run_passes.c" /* what is between passes */

/* Two convolutions, one behind the other. */
static mp chain(int channels, int edge, uint32_t n_device) {
    mg m = mg_new("made", 13);
    const uint32_t x = mg_in(&m, 4, 1, channels, edge, edge);
    const uint32_t a = mg_op(&m, "Conv", "pads:1,1,1,1", 2, x, mg_w(&m, 4, channels, channels, 3, 3));
    mg_end(&m, mg_op(&m, "Conv", "pads:1,1,1,1", 2, a, mg_w(&m, 4, channels, channels, 3, 3)));
    mp p = mp_new(&m);
    for (uint32_t d = 0; d < n_device; d++) mp_device(&p, (const char *[]){"a", "b", "c"}[d], "cpu", 0);
    return p;
}

enum { ENOUGH = 25 };

/* Whatever was seen, device b will take a hundredth of a microsecond: no plan ever takes as long as it was said to. */
static cdmpp_status lie(void *ctx, uint32_t op, uint32_t device, const cd_te_shard *part, cd_shard_plan_estimate *out, cdmpp_err *err) {
    const cd_plan_run *r = ctx;
    (void)op, (void)part, (void)err;
    *out = (cd_shard_plan_estimate){.seconds = (device && r->replans < ENOUGH ? 1e-8 : 1e-3) / r->factor[device]};
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
    const cd_shard_plan_options again = {.net = &net, .machine = &p.machine, .time = lie, .ctx = r, .margin = none, .least_s = none, .cover = none, .fixed_share = none};
    cd_plan_run_result o;
    assert_ok(cd_plan_run_watch(r, &again, &(cd_plan_run_watch_options){.drift = 4, .patience = 4}, 1e-3, &o, &err));
    if (!(o.replans >= 1 && o.replans < ENOUGH)) fail_msg("planned %u times in a budget of 1 ms", o.replans);
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
    assert_true(r->replans == 1 && r->now->number[2] == CD_PLAN_EXEC_NONE && r->now->number[1] != CD_PLAN_EXEC_NONE);
    cd_plan_run_slow(r, 1, 0);
    const double back = part_s(r, 0);
    if (!(back * 10 < slow)) fail_msg("%g s slowed %d times, %g s when that is taken away", slow, TIMES, back);
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

/* What was seen before a device failed is no judgement of the plan behind it: passes in a row begin again. */
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

/* A plan that lost a device while it was compared is told by no number of its own, nor of the one behind it. */
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

TESTS(up, down, test_never_as_said, test_slow_goes, test_failure_within_patience, test_compare_failure)
