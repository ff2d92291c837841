/* Placements against every placement, replays for the makespan, and the laws of partition.h. */
#include "check.h"
#include "made_part.h"

static cdmpp_err err;

/* ---- the slow truth ---- */

static double least_sum(const cd_place_problem *p) {
    uint32_t where[MP_OPS] = {0};
    double least = (double)INFINITY;
    do least = fmin(least, mp_sum(p, where));
    while (mp_next(where, p->n_op, p->n_device));
    return least;
}

/* All placements that can be, each replayed. */
static double least_span(const cd_place_problem *p) {
    uint32_t where[MP_OPS] = {0};
    double least = (double)INFINITY;
    do {
        cd_place_cost cost;
        if (isinf(mp_sum(p, where))) continue;
        assert_ok(cd_place_evaluate(p, where, &cost, &err));
        least = fmin(least, cost.makespan_s);
    } while (mp_next(where, p->n_op, p->n_device));
    return least;
}

static void lawful(const cd_place_problem *p, const cd_place_plan *r, cd_place_goal goal) {
    uint32_t where[MP_OPS];
    cd_place_cost c;
    const double is = goal == CD_PLACE_SUM ? r->cost.sum_s : r->cost.makespan_s;
    assert_close(mp_sum(p, r->where), r->cost.sum_s, 1e-12, 0);
    assert_true(r->bound_s <= is * (1 + 1e-12));
    for (uint32_t d = 0; d <= p->n_device; d++) {
        if (d < p->n_device) cd_place_alone(p, d, where);
        else cd_place_greedy(p, where);
        assert_ok(cd_place_evaluate(p, where, &c, &err));
        assert_true(is <= (goal == CD_PLACE_SUM ? c.sum_s : c.makespan_s) * (1 + 1e-12));
    }
}

/* n graphs of `lo` to `hi` operators on D devices: exact, and as good as the best of all. */
static void against_all(uint64_t seed, int graphs, uint32_t lo, uint32_t hi, uint32_t D,
                        cd_place_goal goal, bool chain) {
    static made_part m;
    int possible = 0;
    for (int i = 0; i < graphs; i++) {
        cd_place_plan r;
        mp_make(&m, seed + (uint64_t)i, lo + (uint32_t)i % (hi - lo + 1), D, chain, i % 4 != 0);
        const double least = goal == CD_PLACE_SUM ? least_sum(&m.p) : least_span(&m.p);
        if (isinf(least)) {
            assert_status(cd_place_solve(&m.p, goal, 0, &r, &err), CDMPP_EINVALID);
            assert_non_null(strstr(err.msg, "no link from"));
        } else {
            assert_ok(cd_place_solve(&m.p, goal, 0, &r, &err));
            assert_true(r.exact);
            assert_close(goal == CD_PLACE_SUM ? r.cost.sum_s : r.cost.makespan_s, least, 1e-9,
                         1e-18);
            lawful(&m.p, &r, goal);
            possible++;
        }
        cd_place_plan_free(&r);
    }
    assert_true(possible > graphs / 2);
}

static void sum_of_two(void **state) {
    (void)state, against_all(1000, 1000, 1, 8, 2, CD_PLACE_SUM, false);
}
static void sum_of_more(void **state) {
    (void)state;
    against_all(5000, 700, 1, 8, 3, CD_PLACE_SUM, false);
    against_all(6000, 300, 1, 5, 5, CD_PLACE_SUM, false);
}
static void span_of_two(void **state) {
    (void)state, against_all(2000, 1000, 1, 8, 2, CD_PLACE_MAKESPAN, false);
}
static void span_of_more(void **state) {
    (void)state, against_all(3000, 200, 1, 5, 3, CD_PLACE_MAKESPAN, false);
}

/* On a chain nothing overlaps: both goals agree, and with the table over places, by hand. */
static void chain_is_chain(void **state) {
    (void)state;
    static made_part m;
    for (uint64_t s = 0; s < 200; s++) {
        const uint32_t D = 2 + (uint32_t)s % 3, n = 20;
        mp_make(&m, 70000 + s, n, D, true, true);
        double best[MP_OPS][8];
        for (uint32_t k = 0; k < n; k++) {
            const cd_place_value *x = NULL;
            for (uint32_t v = 0; v < m.p.n_value && k; v++)
                if (m.value[v].from == k - 1 && m.value[v].n_to) x = &m.value[v];
            for (uint32_t d = 0; d < D; d++) {
                double from = k ? (double)INFINITY : 0;
                for (uint32_t e = 0; e < D && k; e++) {
                    double copy = 0;
                    for (uint32_t l = 0; l < m.p.n_link && x; l++)
                        if (m.link[l].from == e && m.link[l].to == d)
                            copy =
                                m.link[l].latency_s + m.link[l].convert_s +
                                (double)x->bytes * ((m.link[l].packed > 0 ? m.link[l].packed : 1) /
                                                        m.link[l].bytes_per_s +
                                                    m.link[l].convert_s_per_byte);
                    from = fmin(from, best[k - 1][e] + copy);
                }
                best[k][d] = m.op[k].pin == CD_PLACE_FREE || m.op[k].pin == d
                                 ? from + m.seconds[k * D + d]
                                 : (double)INFINITY;
            }
        }
        double least = (double)INFINITY;
        for (uint32_t d = 0; d < D; d++) least = fmin(least, best[n - 1][d]);
        cd_place_plan r, q;
        assert_ok(cd_place_solve(&m.p, CD_PLACE_SUM, 0, &r, &err));
        assert_true(r.exact);
        assert_close(r.cost.sum_s, least, 1e-9, 0);
        assert_ok(cd_place_solve(&m.p, CD_PLACE_MAKESPAN, 0, &q, &err));
        assert_true(q.cost.makespan_s <= r.cost.makespan_s * (1 + 1e-12));
        cd_place_plan_free(&r);
        cd_place_plan_free(&q);
    }
}

/* The cut of two devices against elimination: a third device that supports nothing changes the
 * method only. */
static void cut_equals_elimination(void **state) {
    (void)state;
    static made_part m;
    static double wide[MP_OPS * 3];
    for (uint64_t s = 0; s < 200; s++) {
        cd_place_plan r, q;
        mp_make(&m, 90000 + s, 40, 2, false, true);
        assert_ok(cd_place_solve(&m.p, CD_PLACE_SUM, 0, &r, &err));
        for (uint32_t k = 0; k < 40; k++)
            wide[k * 3] = m.seconds[k * 2], wide[k * 3 + 1] = m.seconds[k * 2 + 1],
                     wide[k * 3 + 2] = (double)INFINITY;
        cd_place_problem p = m.p;
        m.device[2] = (cd_place_device){"none", 0};
        p.n_device = 3, p.seconds = wide;
        assert_ok(cd_place_solve(&p, CD_PLACE_SUM, 0, &q, &err));
        if (q.exact) assert_close(r.cost.sum_s, q.cost.sum_s, 1e-9, 0);
        else assert_true(r.cost.sum_s <= q.cost.sum_s * (1 + 1e-9));
        cd_place_plan_free(&r);
        cd_place_plan_free(&q);
    }
}

/* ---- regions ---- */

static void regions_are_convex(void **state) {
    (void)state;
    static made_part m;
    for (uint64_t s = 0; s < 1000; s++) {
        const uint32_t n = 2 + (uint32_t)s % 30;
        uint32_t where[MP_OPS], read[MP_OPS][MP_OPS] = {{0}}, reach[MP_OPS][MP_OPS] = {{0}};
        cd_place_regions r;
        mp_make(&m, 11000 + s, n, 3, false, true);
        for (uint32_t k = 0; k < n; k++) where[k] = mp_below(&m, 3), m.op[k].pin = CD_PLACE_FREE;
        assert_ok(cd_place_merge_regions(&m.p, where, &r, &err));
        uint32_t seen = 0, R = r.n_region;
        for (uint32_t i = 0; i < R; i++)
            for (uint32_t j = 0; j < r.region[i].n_op; j++, seen++) {
                assert_int_equal(r.of[r.member[r.region[i].first + j]], i);
                assert_int_equal(where[r.member[r.region[i].first + j]], r.region[i].device);
            }
        assert_int_equal(seen, n);
        for (uint32_t v = 0; v < m.p.n_value; v++)
            for (uint32_t j = 0; j < m.value[v].n_to; j++) {
                const uint32_t a = r.of[m.value[v].from], b = r.of[m.to[m.value[v].first + j]];
                assert_true(a <= b); /* in an order to run in: no cycle, so convex */
                if (a != b) read[a][b] = 1;
            }
        for (uint32_t len = 1; len < R; len++) /* reach: by a way of two steps or more */
            for (uint32_t a = 0; a < R; a++)
                for (uint32_t b = a + 1; b < R; b++)
                    for (uint32_t c = a + 1; c < b && !reach[a][b]; c++)
                        reach[a][b] = (read[a][c] || reach[a][c]) && (read[c][b] || reach[c][b]);
        for (uint32_t a = 0; a < R; a++) /* maximal */
            for (uint32_t b = a + 1; b < R; b++)
                assert_false(read[a][b] && r.region[a].device == r.region[b].device &&
                             !reach[a][b]);
        double sum = 0;
        for (uint32_t i = 0; i < R; i++) sum += r.region[i].seconds;
        double all = 0;
        for (uint32_t k = 0; k < n; k++) all += m.seconds[k * 3 + where[k]];
        if (isfinite(all)) assert_close(sum, all, 1e-9, 0);
        cd_place_regions_free(&r);
    }
}

static const double good[] = {1e-3, 2e-3, 3e-3, 1e-3};
static made_part pair_of(void) {
    made_part m;
    mp_make(&m, 1, 2, 2, true, true);
    for (int i = 0; i < 4; i++) m.seconds[i] = good[i];
    for (uint32_t i = 0; i < 2; i++) m.op[i].pin = CD_PLACE_FREE;
    m.p.n_value = 1, m.p.n_to = 1, m.to[0] = 1, m.value[0] = (cd_place_value){0, 1000, 0, 1};
    return m;
}
#define PAIR(m)                                                                                    \
    made_part m = pair_of();                                                                       \
    m.p.op = m.op, m.p.value = m.value, m.p.to = m.to, m.p.device = m.device, m.p.link = m.link,   \
    m.p.seconds = m.seconds;                                                                       \
    m.op[0].name = "a", m.op[1].name = "b"

/* ---- bad input ---- */

static void fails(const cd_place_problem *p, cdmpp_status want, const char *text) {
    cd_place_plan r;
    assert_status(cd_place_solve(p, CD_PLACE_SUM, 0, &r, &err), want);
    if (!strstr(err.msg, text)) fail_msg("%s: no \"%s\"", err.msg, text);
    cd_place_plan_free(&r);
}

static void bad_input(void **state) {
    (void)state;
    {
        PAIR(m);
        m.seconds[3] = (double)NAN;
        fails(&m.p, CDMPP_ERANGE, "operator 1 (b) on d1: ");
    }
    {
        PAIR(m);
        m.seconds[0] = -1;
        fails(&m.p, CDMPP_ERANGE, "operator 0 (a) on d0");
    }
    {
        PAIR(m);
        m.seconds[0] = m.seconds[1] = (double)INFINITY;
        fails(&m.p, CDMPP_ESCHEMA, "operator 0 (a): no device");
    }
    {
        PAIR(m);
        m.seconds[2] = (double)INFINITY, m.op[1].pin = 0, m.op[1].pin_why = "r.txt:3";
        fails(&m.p, CDMPP_EINVALID, "r.txt:3: d0 does not support");
    }
    {
        PAIR(m);
        m.op[0].pin = 7;
        fails(&m.p, CDMPP_EINVALID, "device 7 of 2");
    }
    {
        PAIR(m);
        m.value[0].bytes = -1;
        fails(&m.p, CDMPP_ERANGE, "value 0 of a: -1 bytes");
    }
    {
        PAIR(m);
        m.to[0] = 9;
        fails(&m.p, CDMPP_EINVALID, "read by operator 9");
    }
    {
        PAIR(m);
        m.value[0].from = 9;
        fails(&m.p, CDMPP_EINVALID, "of operator 9");
    }
    {
        PAIR(m);
        m.to[0] = 0;
        fails(&m.p, CDMPP_EINVALID, "reads its own result");
    }
    {
        PAIR(m);
        m.p.n_value = 2, m.p.n_to = 2, m.value[1] = (cd_place_value){1, 5, 1, 1}, m.to[1] = 0;
        fails(&m.p, CDMPP_EINVALID, "a cycle");
    }
    {
        PAIR(m);
        m.link[1] = m.link[0];
        fails(&m.p, CDMPP_EINVALID, "links 0 and 1 are both from d0 to d1");
    }
    {
        PAIR(m);
        m.link[0].bytes_per_s = 0;
        fails(&m.p, CDMPP_ERANGE, "link d0 to d1");
    }
    {
        PAIR(m);
        m.p.n_device = 0;
        fails(&m.p, CDMPP_ERANGE, "0 devices");
    }
    {
        PAIR(m);
        m.p.n_link = 0, m.op[0].pin = 0, m.op[1].pin = 1;
        fails(&m.p, CDMPP_EINVALID,
              "a on d0 is read by b on d1, and there is no link from d0 to d1");
    }
}

/* Whose device is none of the problem's: named, wherever it stands. */
TEST(regions_of_a_bad_placement) {
    PAIR(m);
    cd_place_regions r;
    const struct {
        uint32_t where[2];
        const char *why;
    } t[] = {{{0, 2}, "operator 1 (b): device 2 of 2"},
             {{7, 0}, "operator 0 (a): device 7 of 2"},
             {{1, 1}, NULL}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        assert_status(cd_place_merge_regions(&m.p, t[k].where, &r, &err),
                      t[k].why ? CDMPP_EINVALID : CDMPP_OK);
        if (t[k].why) assert_string_equal(err.msg, t[k].why);
        else assert_true(r.n_region == 1 && r.region[0].device == 1 && r.region[0].n_op == 2);
        cd_place_regions_free(&r);
    }
}

/* 0 bytes are an order: it costs the link's latency and no more. No operator: no plan, no time. */
static void small_things(void **state) {
    (void)state;
    PAIR(m);
    cd_place_plan r;
    m.op[0].pin = 0, m.op[1].pin = 1, m.value[0].bytes = 0;
    m.link[0] = (cd_place_link){0, 1, 1e-5, 1e8, 0, 0, 0};
    assert_ok(cd_place_solve(&m.p, CD_PLACE_MAKESPAN, 0, &r, &err));
    assert_close(r.cost.copies_s, 1e-5, 1e-12, 0);
    assert_close(r.cost.makespan_s, 1e-3 + 1e-5 + 1e-3, 1e-12, 0);
    cd_place_plan_free(&r);
    m.p.n_op = m.p.n_value = m.p.n_to = 0;
    for (int goal = 0; goal < 2; goal++) {
        assert_ok(cd_place_solve(&m.p, (cd_place_goal)goal, 0, &r, &err));
        assert_true(r.cost.sum_s == 0 && r.cost.makespan_s == 0);
        cd_place_plan_free(&r);
    }
}

TESTS(NULL, NULL, sum_of_two, sum_of_more, span_of_two, span_of_more, chain_is_chain,
      cut_equals_elimination, regions_are_convex, regions_of_a_bad_placement, bad_input,
      small_things)
