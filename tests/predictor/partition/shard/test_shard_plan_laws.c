/* What plans of splits must hold: gains, margins, waking, shares, pins, key operators, bad
 * input. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "made_snet_kinds.h"
#include "predictor/partition/shard/shard_plan_internal.h"

static cd_shard_plan *plan_of(ms_net *m, const cd_shard_plan_options *a) {
    cd_shard_plan *p = NULL;
    (void)m;
    assert_ok(cd_shard_plan_make(a, &p, NULL, &err));
    return p;
}

static void chain(ms_net *m, uint64_t seed, uint32_t n, int kind) {
    ms_begin(m, seed);
    uint32_t t = ms_tensor(m, 2, ms_shape, CD_SHARD_NET_OUTSIDE, false);
    for (uint32_t i = 0; i < n; i++) t = ms_op(m, &kinds, kind, t, t);
    m->tensor[t].result = true;
}

static void twice_as_fast_on_two_alike(void **state) {
    (void)state;
    static ms_net m;
    chain(&m, 1, 8, MS_DENSE);
    assert_ok(ms_machine(&m, 2, NULL, 0, 0, &err));
    m.machine.device[0].launch_s = m.machine.device[1].launch_s = m.machine.device[0].sync_s =
        m.machine.device[1].sync_s = 0;
    const cd_shard_plan_options a = ms_ask(&m);
    cd_shard_plan *p = plan_of(&m, &a);
    assert_close(p->predicted_gain, 2, 1e-9, 0);
    assert_close(p->ceiling, 2, 1e-9, 0);
    assert_close(p->rho, 1, 1e-9, 0);
    assert_true(p->split && strstr(p->verdict, "split 8 of 8 operators"));
    cd_shard_plan_free(p);
    ms_free(&m);
}

/* Halves that take less than half of the whole (a cache that only they fit into) raise the ceiling:
 * no gain is above it. */
static void no_gain_is_above_the_ceiling(void **state) {
    (void)state;
    static ms_net m;
    chain(&m, 1, 8, MS_DENSE);
    assert_ok(ms_machine(&m, 2, NULL, 0, 0, &err));
    m.machine.device[0].launch_s = m.machine.device[1].launch_s = m.machine.device[0].sync_s =
        m.machine.device[1].sync_s = 0;
    m.speed[0] = m.speed[1] = (ms_speed){.per_flop = 1e-6, .knee = (double)m.op[0].dag->flop / 2};
    const cd_shard_plan_options a = ms_ask(&m);
    cd_shard_plan *p = plan_of(&m, &a);
    assert_close(p->predicted_gain, 3, 1e-9, 0);
    assert_close(p->ceiling, 3, 1e-9, 0);
    for (uint32_t k = 0; k < p->n_op; k++) assert_close(p->op[k].ceiling, 3, 1e-9, 0);
    assert_non_null(strstr(p->verdict, "3.00x of at most 3.00x"));
    cd_shard_plan_free(p);
    ms_free(&m);
}

/* Each device alone, whole operators placed, and three ways to split: equal shares cost half on two
 * alike. */
static void baselines_by_name(void **state) {
    static const char *const name[] = {"d0", "d1", "place", "equal", "fixed 0.75", "greedy"};
    (void)state;
    static ms_net m;
    chain(&m, 1, 8, MS_DENSE);
    assert_ok(ms_machine(&m, 2, NULL, 0, 0, &err));
    m.machine.device[0].launch_s = m.machine.device[1].launch_s = m.machine.device[0].sync_s =
        m.machine.device[1].sync_s = 0;
    cd_shard_plan_options a = ms_ask(&m);
    a.fixed_share = 0.75;
    cd_shard_plan *p = plan_of(&m, &a);
    assert_int_equal(p->n_base, 6);
    for (int k = 0; k < 6; k++) assert_string_equal(p->base[k].name, name[k]);
    const double alone = p->base[0].predicted_s;
    assert_close(p->base[1].predicted_s, alone, 1e-9, 0);
    /* a chain has nothing to run side by side */
    assert_close(p->base[2].predicted_s, alone, 1e-9, 0);
    assert_close(p->base[3].predicted_s, alone / 2, 1e-9, 0);
    assert_close(p->base[4].predicted_s, alone * 0.75, 0.1, 0); /* by whole granules */
    assert_close(p->base[5].predicted_s, alone / 2, 1e-9, 0);
    cd_shard_plan_free(p);
    a.split = false;
    p = plan_of(&m, &a);
    assert_int_equal(p->n_base, 3); /* no way to split */
    cd_shard_plan_free(p);
    ms_free(&m);
}

/* Having a device in the plan costs once, however many operators it takes part in; too much, and
 * nobody wakes it. */
static void waking_is_paid_once(void **state) {
    (void)state;
    static ms_net m;
    chain(&m, 1, 8, MS_DENSE);
    assert_ok(ms_machine(&m, 2, NULL, 0, 0, &err));
    m.machine.device[0].launch_s = m.machine.device[1].launch_s = m.machine.device[0].sync_s =
        m.machine.device[1].sync_s = 0;
    const cd_shard_plan_options a = ms_ask(&m);
    cd_shard_plan *p = plan_of(&m, &a);
    const double alone = p->base[0].predicted_s, both = p->predicted_s;
    cd_shard_plan_free(p);
    for (int i = 0; i < 2; i++) {
        m.machine.device[1].wake_s = (i ? 0.6 : 0.3) * alone;
        p = plan_of(&m, &a);
        assert_int_equal(p->split, !i);
        assert_close(p->predicted_s, i ? alone : both + 0.3 * alone, 1e-12, 0);
        assert_close(p->base[0].predicted_s, alone, 1e-12, 0);
        assert_close(p->base[1].predicted_s, alone + m.machine.device[1].wake_s, 1e-12, 0);
        cd_shard_plan_free(p);
    }
    ms_free(&m);
}

/* A part's time is drawn towards its share of the whole, but along the innermost axis. */
static void shares_steady_parts(void **state) {
    (void)state;
    static ms_net m;
    uint32_t drawn = 0, same = 0;
    for (int kind = MS_CONV; kind <= MS_DENSE; kind++) {
        chain(&m, 1, 1, kind);
        assert_ok(ms_machine(&m, 2, NULL, 0, 0, &err));
        cd_shard_planner s[2];
        for (int i = 0; i < 2; i++) {
            cd_shard_plan_options a = ms_ask(&m);
            a.steady = 0.5 * i;
            assert_ok(cd_shard_planner_begin(&s[i], &a, &err));
            assert_ok(cd_shard_planner_kinds(&s[i], &err));
            assert_ok(cd_shard_planner_nodes(&s[i], &err));
        }
        for (uint32_t k = 2; k < s[0].kind[0].n_option && k < s[1].kind[0].n_option; k++) {
            const cd_shard_planner_option *x = &s[0].kind[0].option[k],
                                          *y = &s[1].kind[0].option[k];
            if (strcmp(x->name, y->name) != 0) break;
            const cd_te_shard_axis *v = &s[0].kind[0].way[x->way];
            const cd_te_op *op = &m.op[0].dag->op[v->op];
            const double share = (double)(x->part[0].hi - x->part[0].lo) / (double)v->extent,
                         alone = s[0].kind[0].alone[0] - m.machine.device[0].launch_s;
            const double t = x->part[0].seconds - m.machine.device[0].launch_s,
                         u = y->part[0].seconds - m.machine.device[0].launch_s;
            const bool inner = !v->reduce && v->axis + 1 == op->n_axis;
            if (x->part[0].device) continue;
            assert_close(u, inner ? t : sqrt(t * share * alone), 1e-9, 0);
            inner ? same++ : drawn++;
        }
        cd_arena_free(&s[0].arena);
        cd_arena_free(&s[1].arena);
        ms_free(&m);
    }
    print_message("%u parts drawn to their share, %u not\n", drawn, same);
    assert_true(drawn > 0 && same > 0);
}

/* Neighbours split alike: dense after dense nothing, conv after conv its halo and nothing else. */
static void alike_exchange_only_halos(void **state) {
    (void)state;
    static ms_net m;
    const uint32_t apart[] = {0, 1};
    for (int kind = MS_CONV; kind <= MS_DENSE; kind++) {
        chain(&m, 1, 3, kind);
        assert_ok(ms_machine(&m, 2, apart, 1e-9, 1e-12, &err));
        cd_shard_plan_options a = ms_ask(&m);
        a.granules = 2;
        cd_shard_planner s;
        assert_ok(cd_shard_planner_begin(&s, &a, &err));
        assert_ok(cd_shard_planner_kinds(&s, &err));
        assert_ok(cd_shard_planner_nodes(&s, &err));
        cd_shard_planner_moves moves = {0};
        const cd_shard_planner_option *h = &s.kind[0].option[2]; /* the first dimension, 3|3 */
        assert_string_equal(strchr(h->name, ' '), " 3|3");
        const double t = cd_shard_planner_exchange(&s, 0, h, 1, h, &moves);
        if (kind == MS_DENSE) assert_true(t == 0 && !moves.n);
        else {
            assert_int_equal(moves.n, 2); /* a row each way */
            for (uint32_t i = 0; i < 2; i++) assert_int_equal(moves.move[i].copy.bytes, MS_C * 4);
            assert_close(t, 1e-9 + MS_C * 4 * 1e-12, 1e-9, 0);
        }
        cd_mem_free(moves.move);
        cd_arena_free(&s.arena);
        ms_free(&m);
    }
    chain(&m, 1, 3, MS_CONV); /* in one memory: only waiting */
    assert_ok(ms_machine(&m, 2, NULL, 0, 0, &err));
    const cd_shard_plan_options a = ms_ask(&m);
    cd_shard_plan *p = plan_of(&m, &a);
    assert_string_equal(p->op[1].dim, p->op[0].dim);
    for (uint32_t i = 0; i < p->n_copy; i++)
        if (p->copy[i].before == 1)
            assert_true(!p->copy[i].bytes && p->copy[i].from != p->copy[i].to &&
                        p->copy[i].seconds == 2e-6);
    cd_shard_plan_free(p);
    ms_free(&m);
}

static void thirty_times_slower(void **state) {
    (void)state;
    static ms_net m;
    chain(&m, 1, 5, MS_CONV);
    assert_ok(ms_machine(&m, 2, NULL, 0, 0, &err));
    m.speed[0].per_flop = 1e-3, m.speed[1].per_flop = 31e-3;
    cd_shard_plan_options a = ms_ask(&m);
    a.margin = (double)NAN, a.least_s = (double)NAN;
    cd_shard_plan *p = plan_of(&m, &a);
    assert_false(p->split);
    assert_true(p->predicted_s == p->base[0].predicted_s && p->predicted_gain == 1 && !p->n_copy);
    assert_close(p->rho, 31, 1e-3, 0);
    assert_close(p->ceiling, 1 + 1.0 / 31, 1e-3, 0);
    assert_string_equal(p->verdict, "do not split, all on d0: d1 is 31 times slower and would have "
                                    "to be 1.63 times faster to be worth it; at most 1.03x");
    assert_string_equal(p->op[0].why, "all on d0: d1 is 31 times slower, at most 1.03x");
    cd_shard_plan_free(p);
    ms_free(&m);
}

/* What saves less than the margin is the single device's plan, to the bit. */
static void margins(void **state) {
    (void)state;
    static ms_net m;
    chain(&m, 1, 4, MS_DENSE);
    assert_ok(ms_machine(&m, 2, NULL, 0, 0, &err));
    cd_shard_plan_options a = ms_ask(&m);
    a.margin = 0.6; /* half is the most that can be saved */
    cd_shard_plan *p = plan_of(&m, &a);
    assert_true(!p->split && p->predicted_s == p->base[0].predicted_s &&
                !strncmp(p->verdict, "do not split, all on d0", 23));
    cd_shard_plan_free(p);
    /* no operator saves a second, but all of them what a baseline shows */
    a.margin = 0, a.least_s = 1;
    p = plan_of(&m, &a);
    assert_true(p->split && p->predicted_s <= p->base[3].predicted_s);
    cd_shard_plan_free(p);
    a.least_s = 0, m.machine.device[1].launch_s = 1;
    p = plan_of(&m, &a);
    assert_false(p->split);
    cd_shard_plan_free(p);
    a.split = false;
    p = plan_of(&m, &a);
    assert_true(!p->split && p->n_base == 3 && !strcmp(p->verdict, "all on d0"));
    cd_shard_plan_free(p);
    ms_free(&m);
}

static void pins(void **state) {
    (void)state;
    static ms_net m;
    chain(&m, 1, 4, MS_DENSE);
    assert_ok(ms_machine(&m, 2, NULL, 0, 0, &err));
    m.op[1].pin = 1, m.op[1].pin_why = "rules:7", m.op[2].allowed = 1, m.op[3].dag = NULL;
    const cd_shard_plan_options a = ms_ask(&m);
    cd_shard_plan *p = plan_of(&m, &a);
    assert_true(p->split && p->op[0].dim[0] && !p->op[1].dim[0] && !p->op[2].dim[0] &&
                !p->op[3].dim[0]);
    assert_int_equal(p->op[1].part[0].device, 1);
    assert_int_equal(p->op[2].part[0].device, 0);
    assert_string_equal(p->op[1].why, "on d1: pinned (rules:7)");
    assert_string_equal(p->op[2].why, "all on d0: no other device may run it");
    assert_true(isinf(p->base[1].predicted_s) && isinf(p->op[2].alone_s[1]) && isinf(p->rho));
    ms_check_replay(&m, p);
    cd_shard_plan_free(p);
    cd_shard_plan_options c = ms_ask(&m);
    c.dims = "X,nothing", m.op[1].pin = UINT32_MAX;
    p = plan_of(&m, &c);
    assert_false(p->split);
    cd_shard_plan_free(p);
    ms_free(&m);
}

/* Only the operators that save most are looked at. */
static void key_operators(void **state) {
    (void)state;
    static ms_net m;
    ms_begin(&m, 1);
    uint32_t t = ms_tensor(&m, 2, ms_shape, CD_SHARD_NET_OUTSIDE, false);
    t = ms_op(&m, &kinds, MS_ADD, t, t), t = ms_op(&m, &kinds, MS_CONV, t, t),
    t = ms_op(&m, &kinds, MS_DENSE, t, t);
    assert_ok(ms_machine(&m, 2, NULL, 0, 0, &err));
    m.machine.device[0].sync_s = m.machine.device[1].sync_s = m.machine.device[0].launch_s =
        m.machine.device[1].launch_s = 0;
    cd_shard_plan_options a = ms_ask(&m);
    a.cover = 0.5; /* conv has 600 of 816 operations */
    cd_shard_plan *p = plan_of(&m, &a), *q;
    assert_true(p->op[1].dim[0] && !p->op[2].dim[0] && strstr(p->op[2].why, "make up 50 %"));
    a.cover = 1;
    q = plan_of(&m, &a);
    assert_true(q->op[2].dim[0] != 0 && q->predicted_s <= p->predicted_s);
    cd_shard_plan_free(p);
    cd_shard_plan_free(q);
    ms_free(&m);
}

/* Announced questions change nothing; of two devices all are announced. */
static void announced(void **state) {
    (void)state;
    static ms_net m;
    for (uint64_t seed = 200; seed < 210; seed++) {
        cd_shard_plan *p, *q;
        cd_buf b = {0}, c = {0};
        ms_begin(&m, seed);
        assert_ok(ms_machine(&m, 2 + (uint32_t)seed % 2, NULL, 0, 0, &err));
        ms_draw(&m, &kinds, 8);
        ms_speeds(&m);
        cd_shard_plan_options a = ms_ask(&m);
        p = plan_of(&m, &a);
        m.asked = 0, a.prepare = ms_prepare;
        q = plan_of(&m, &a);
        if (m.machine.n == 2) assert_true(m.told >= m.asked);
        assert_true(m.told > 0);
        cd_shard_plan_write(p, &b), cd_shard_plan_write(q, &c);
        assert_string_equal(b.p, c.p);
        cd_buf_free(&b), cd_buf_free(&c);
        cd_shard_plan_free(p), cd_shard_plan_free(q);
        ms_free(&m);
    }
}

static void fails(ms_net *m, const cd_shard_plan_options *a, cdmpp_status want, const char *text) {
    cd_shard_plan *p, **base;
    (void)m;
    assert_status(cd_shard_plan_make(a, &p, &base, &err), want);
    assert_true(!p && !base);
    if (!strstr(err.msg, text)) fail_msg("%s: no \"%s\"", err.msg, text);
}

static void bad_input(void **state) {
    (void)state;
    static ms_net m;
    chain(&m, 1, 3, MS_DENSE);
    const uint32_t apart[] = {0, 1};
    assert_ok(ms_machine(&m, 2, apart, 0, 0, &err));
    cd_shard_plan_options a = ms_ask(&m);
    a.margin = -1, fails(&m, &a, CDMPP_ERANGE, "margin -1");
    a = ms_ask(&m), a.cover = 1.5, fails(&m, &a, CDMPP_ERANGE, "cover 1.5");
    a = ms_ask(&m), a.fixed_share = 2, fails(&m, &a, CDMPP_ERANGE, "fixed share 2");
    a = ms_ask(&m), m.nan = true, m.op[1].key = "another";
    fails(&m, &a, CDMPP_ERANGE, "operator op1, all of it on d1: nan seconds");
    m.nan = false;
    m.op[0].allowed = 4, fails(&m, &a, CDMPP_EINVALID, "operator op0 (Gemm): no device may run it"),
    m.op[0].allowed = 0;
    m.op[0].pin = 5, fails(&m, &a, CDMPP_EINVALID, "pinned to device 5 of 2"),
    m.op[0].pin = UINT32_MAX;
    m.infinite = true, m.op[0].pin = 1,
    fails(&m, &a, CDMPP_EINVALID, "node op0 (Gemm) has no time on d1, where it is pinned: d1"),
    m.infinite = false;
    m.machine.links.n = 0,
    fails(&m, &a, CDMPP_EINVALID, "no device that can run it has links from and to d0"),
    m.op[0].pin = UINT32_MAX;
    cd_shard_plan *p = plan_of(&m, &a); /* no link: all on the first */
    assert_true(!p->split && isinf(p->base[1].predicted_s) &&
                p->predicted_s == p->base[0].predicted_s);
    cd_shard_plan_free(p);
    m.infinite = true;
    p = plan_of(&m, &a);
    assert_true(!p->split && p->op[0].part[0].device == 0);
    cd_shard_plan_free(p);
    m.arg[0][0] = m.arg[2][0], fails(&m, &a, CDMPP_EINVALID, "a cycle, or a wrong order");
    ms_free(&m);
}

static const char *none_lowers(void *ctx, uint32_t op, uint32_t device, const cd_te_shard *part) {
    (void)ctx, (void)op, (void)part;
    return device == 1 ? "none of 64 drawn schedules lowers" : NULL;
}

/* Where no time is known nobody knows whether the device could; that it may not is another
 * thing. */
static void no_time_is_not_cannot(void **state) {
    (void)state;
    static ms_net m;
    chain(&m, 1, 3, MS_DENSE);
    assert_ok(ms_machine(&m, 2, NULL, 0, 0, &err));
    cd_shard_plan_options a = ms_ask(&m);
    a.why = none_lowers;
    m.infinite = true, m.op[2].allowed = 1;
    cd_shard_plan *p = plan_of(&m, &a);
    assert_string_equal(p->op[0].why,
                        "all on d0: no time is known on d1 (none of 64 drawn schedules lowers)");
    assert_string_equal(p->op[2].why, "all on d0: no other device may run it");
    assert_string_equal(p->verdict, "do not split, all on d0: 2 of 3 operators have no time on d1, "
                                    "the first is op0: none of 64 drawn schedules lowers");
    cd_shard_plan_free(p);
    m.infinite = false, m.op[0].allowed = m.op[1].allowed = 1;
    p = plan_of(&m, &a);
    assert_string_equal(p->verdict, "do not split, all on d0: d1 may not run 3 of 3 operators");
    cd_shard_plan_free(p);
    m.infinite = true, m.op[0].allowed = 0, m.op[0].pin = 1;
    fails(&m, &a, CDMPP_EINVALID,
          "node op0 (Gemm) has no time on d1 (none of 64 drawn schedules lowers), where it is "
          "pinned: d1");
    ms_free(&m);
}

/* Tensors without elements move nothing. */
static void nothing_in_it(void **state) {
    (void)state;
    static ms_net m;
    static const int64_t none[] = {0, 4};
    const uint32_t apart[] = {0, 1};
    ms_begin(&m, 1);
    assert_ok(ms_machine(&m, 2, apart, 1, 1, &err));
    const uint32_t t = ms_tensor(&m, 2, none, CD_SHARD_NET_OUTSIDE, false),
                   u = ms_tensor(&m, 2, none, 0, false);
    m.tensor[u].result = true;
    m.arg[0][0] = t, m.arg[0][1] = u;
    m.op[0] = (cd_shard_net_op){"op", "?", NULL, NULL, NULL, 2, m.arg[0], 1, NULL, 0};
    m.net.n_op = 1;
    const cd_shard_plan_options a = ms_ask(&m);
    cd_shard_plan *p = plan_of(&m, &a);
    assert_true(!p->n_copy && p->op[0].exchange_s == 0 && p->op[0].part[0].device == 1);
    cd_shard_plan_free(p);
    m.net.n_op = 0; /* a network of nothing */
    m.tensor[u].from = CD_SHARD_NET_OUTSIDE;
    p = plan_of(&m, &a);
    assert_true(p->predicted_s == 0 && !p->split);
    cd_shard_plan_free(p);
    ms_free(&m);
}

TESTS(ms_up, ms_down, baselines_by_name, twice_as_fast_on_two_alike, no_gain_is_above_the_ceiling,
      waking_is_paid_once, shares_steady_parts, alike_exchange_only_halos, thirty_times_slower,
      margins, pins, key_operators, announced, bad_input, no_time_is_not_cannot, nothing_in_it)
