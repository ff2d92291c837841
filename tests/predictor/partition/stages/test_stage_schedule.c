/* Stages against every sequence of stages; blocks; contention planted and found again. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/core/core.h"
#include "check.h"
#include "predictor/partition/stages/stage_schedule.h"
#include "tmp.h"

enum { SMALL = 10, MOST = 80 };
static cdmpp_err err;

typedef struct {
    cd_stage_graph g;
    cd_stage_op op[MOST];
    uint32_t after[MOST * 4];
    double t[MOST];
    uint64_t seed;
} made;

static void make(made *m, uint64_t seed, uint32_t n, double edges) {
    memset(m, 0, sizeof *m);
    m->seed = seed;
    m->g = (cd_stage_graph){n, 0, m->op, m->after};
    for (uint32_t k = 0; k < n; k++) {
        m->t[k] = 0.1 + cd_rng_unit(seed, k);
        m->op[k] = (cd_stage_op){"op", m->g.n_after, 0};
        for (uint32_t j = 0; j < k && m->op[k].n_after < 3; j++)
            if (cd_rng_unit(seed, 1000 + k * 64 + j) < edges / n)
                m->after[m->g.n_after++] = j, m->op[k].n_after++;
    }
}

/* The slowest group, a tenth more for each other one; some stages cannot be. */
static double cost_of(const made *m, uint64_t set, uint32_t groups, double slowest) {
    return groups > 1 && cd_rng_unit(m->seed ^ 77, set * 4) < 0.2
               ? (double)INFINITY
               : 0.2 + slowest * (1 + 0.1 * (groups - 1));
}

static double asked(const cd_stage_step *s, void *ctx) {
    const made *m = ctx;
    uint64_t set = 0;
    double slowest = 0;
    for (uint32_t g = 0; g < s->n_group; g++) {
        double t = 0;
        for (uint32_t i = s->first[g]; i < s->first[g + 1]; i++)
            t += m->t[s->op[i]], set |= (uint64_t)1 << s->op[i];
        slowest = fmax(slowest, t);
    }
    return cost_of(m, set, s->n_group, slowest);
}

/* ---- the slow truth: all subsets of all subsets ---- */

static bool reads(const made *m, uint32_t k, uint32_t j) {
    for (uint32_t i = 0; i < m->op[k].n_after; i++)
        if (m->after[m->op[k].first + i] == j) return true;
    return false;
}

static double slow_stage(const made *m, uint32_t set, const cd_stage_options *a) {
    uint32_t group[SMALL], groups = 0, size[SMALL] = {0}, n = 0;
    double t[SMALL] = {0}, slowest = 0;
    for (uint32_t k = 0; k < m->g.n_op; k++) group[k] = k;
    for (uint32_t round = 0; round < m->g.n_op; round++)
        for (uint32_t k = 0; k < m->g.n_op; k++)
            for (uint32_t j = 0; j < k; j++)
                if ((set >> k & 1) && (set >> j & 1) && reads(m, k, j))
                    group[k] = group[j] = group[k] < group[j] ? group[k] : group[j];
    for (uint32_t k = 0; k < m->g.n_op; k++)
        if (set >> k & 1) t[group[k]] += m->t[k], size[group[k]]++, n++;
    for (uint32_t k = 0; k < m->g.n_op; k++) {
        groups += size[k] > 0, slowest = fmax(slowest, t[k]);
        if (a->r && size[k] > a->r) return (double)INFINITY;
    }
    if (a->r && a->s && n > a->r * a->s) return (double)INFINITY;
    return !a->s || groups <= a->s ? cost_of(m, set, groups, slowest) : (double)INFINITY;
}

static double slow_search(const made *m, const cd_stage_options *a) {
    static double cost[1 << SMALL], stage[1 << SMALL];
    uint32_t behind[SMALL] = {0};
    for (uint32_t k = 0; k < m->g.n_op; k++)
        for (uint32_t j = 0; j < m->g.n_op; j++) behind[j] |= (uint32_t)reads(m, k, j) << k;
    for (uint32_t set = 1; set < 1u << m->g.n_op; set++) {
        stage[set] = slow_stage(m, set, a);
        cost[set] = (double)INFINITY;
        for (uint32_t end = set; end; end = (end - 1) & set) {
            bool ok = true;
            for (uint32_t k = 0; k < m->g.n_op && ok; k++)
                ok = !(end >> k & 1) || !(behind[k] & set & ~end);
            if (ok) cost[set] = fmin(cost[set], cost[set & ~end] + stage[end]);
        }
    }
    return cost[(1u << m->g.n_op) - 1];
}

/* Every operator once, behind what it comes after; groups apart; costs as asked. */
static void lawful(made *m, const cd_stage_plan *p) {
    uint64_t done = 0;
    double sum = 0;
    for (uint32_t i = 0; i < p->n_stage; i++) {
        uint64_t now = 0;
        for (uint32_t g = 0; g < p->stage[i].n_group; g++) {
            uint64_t mine = 0;
            for (uint32_t j = p->stage[i].first[g]; j < p->stage[i].first[g + 1]; j++) {
                const uint32_t k = p->stage[i].op[j];
                for (uint32_t e = 0; e < m->op[k].n_after; e++)
                    assert_true((done | mine) >> m->after[m->op[k].first + e] & 1);
                assert_false((done | now | mine) >> k & 1);
                mine |= (uint64_t)1 << k;
            }
            now |= mine;
        }
        done |= now;
        assert_close(asked(&p->stage[i], m), p->stage[i].seconds, 1e-12, 0);
        sum += p->stage[i].seconds;
    }
    assert_close(sum, p->total_s, 1e-12, 0);
    assert_int_equal(__builtin_popcountll(done), m->g.n_op);
    assert_true(p->total_s <= p->alone_s * (1 + 1e-12));
}

static void equals_every_sequence(void **state) {
    (void)state;
    static made m;
    for (uint64_t s = 0; s < 1000; s++) {
        const cd_stage_options ask = {(uint32_t)(s % 3 ? s % 4 : 0),
                                      (uint32_t)(s % 5 ? 1 + s % 6 : 0), asked, &m, 0};
        cd_stage_plan p;
        make(&m, s, 1 + (uint32_t)s % SMALL, 2.5);
        assert_ok(cd_stage_search(&m.g, &ask, &p, &err));
        assert_close(p.total_s, slow_search(&m, &ask), 1e-12, 0);
        lawful(&m, &p);
        cd_stage_plan_free(&p);
    }
}

/* ---- a block of Inception-v3 ---- */

static void inception(void **state) {
    (void)state;
    /* Mixed_7: input; 1x1; 1x1 -> 1x3, 3x1; 1x1 -> 3x3 -> 1x3, 3x1; pool -> 1x1; concat. Mixed_6:
     * longer branches. */
    static const int e[] = {-1, 0, 0, 2, 2, 0, 5, 6, 6, 0, 9};
    static const int c[] = {-1, 0, 0, 2, 3, 0, 5, 6, 7, 8, 0, 10};
    static const uint32_t ends_e[] = {1, 3, 4, 7, 8, 10}, ends_c[] = {1, 4, 9, 11};
    for (int which = 0; which < 2; which++) {
        static made m;
        const int *from = which ? c : e, n = which ? 12 : 11;
        make(&m, 5, (uint32_t)n + 1, 0);
        m.g.n_after = 0;
        for (int k = 0; k < n; k++) {
            m.op[k] = (cd_stage_op){"conv", m.g.n_after, from[k] >= 0};
            if (from[k] >= 0) m.after[m.g.n_after++] = (uint32_t)from[k];
        }
        m.op[n] = (cd_stage_op){"concat", m.g.n_after, which ? 4 : 6};
        for (uint32_t j = 0; j < m.op[n].n_after; j++)
            m.after[m.g.n_after++] = which ? ends_c[j] : ends_e[j];
        for (uint32_t r = 0; r <= 3; r += 3) {
            cd_stage_solo solo = {
                .solo_s = m.t, .units = 2, .barrier_s = 0.01, .contention = {0, 1.1, 2, 0, 0}};
            const cd_stage_options ask = {r, r ? 8 : 0, cd_stage_solo_time, &solo, 0};
            cd_stage_plan p;
            struct timespec a, b;
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
            assert_ok(cd_stage_search(&m.g, &ask, &p, &err));
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
            const double took =
                (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
            print_message(
                "inception block of %d, r %u: %.4f s, %llu endings, %.3f of one after the other\n",
                n + 1, r, took, (unsigned long long)p.n_ending, p.total_s / p.alone_s);
            assert_true(took < 1 && p.total_s < p.alone_s);
            cd_stage_plan_free(&p);
        }
    }
}

static void blocks(void **state) {
    (void)state;
    static made m;
    uint32_t block[MOST], n;
    for (uint64_t s = 0; s < 300; s++) {
        const uint32_t most = 1 + (uint32_t)s % 20;
        make(&m, 900 + s, MOST, 3);
        assert_ok(cd_stage_blocks(&m.g, most, block, &n, &err));
        uint32_t size[MOST] = {0};
        for (uint32_t k = 0; k < MOST; k++) {
            assert_true(block[k] < n && ++size[block[k]] <= most);
            for (uint32_t j = 0; j < m.op[k].n_after; j++)
                assert_true(block[m.after[m.op[k].first + j]] <= block[k]);
        }
    }
    /* a -> b, c -> d -> e, f -> g: all meet at a, d, g */
    static const uint32_t after[] = {0, 0, 1, 2, 3, 3, 4, 5};
    static const cd_stage_op op[] = {{"a", 0, 0}, {"b", 0, 1}, {"c", 1, 1}, {"d", 2, 2},
                                     {"e", 4, 1}, {"f", 5, 1}, {"g", 6, 2}};
    const cd_stage_graph g = {7, 8, op, after};
    assert_ok(cd_stage_blocks(&g, 4, block, &n, &err));
    assert_int_equal(n, 2);
    assert_true(block[3] == 0 && block[4] == 1);
}

/* ---- contention ---- */

static void planted(void **state) {
    (void)state;
    const cd_contention truth = {2e10, 1.08, 1.9, 0, 0};
    cd_corun_row row[60];
    for (uint64_t i = 0; i < 60; i++) {
        cd_corun_row *r = &row[i];
        double s[2];
        r->shared = i % 3 == 0;
        for (int k = 0; k < 2; k++) {
            s[k] = cd_rng_unit(i, (uint64_t)k),
            r->solo_s[k] = 1e-3 * (1 + cd_rng_unit(i, 2 + (uint64_t)k));
            r->bytes[k] = s[k] * r->solo_s[k] * truth.peak_bytes_per_s;
        }
        for (int k = 0; k < 2; k++)
            r->slowdown[k] = cd_contention_slow(&truth, s[k], s[0] + s[1], 1, r->shared) *
                             (1 + 0.02 * (cd_rng_unit(i, 4 + (uint64_t)k) - 0.5));
    }
    const cd_contention by_hand = {1e10, 1.1, 2, 0, 0};
    assert_close(cd_contention_slow(&by_hand, 0.5, 1.5, 1, false), 1.25 * 1.1, 1e-12, 0);
    assert_close(cd_contention_slow(&by_hand, 0.5, 1.5, 2, true), 1.25 * 3, 1e-12, 0);
    assert_close(cd_contention_slow(&by_hand, 0.5, 0.9, 0, false), 1, 1e-12, 0);
    cd_contention c;
    assert_ok(cd_contention_fit(row, 60, &c, &err));
    assert_close(c.peak_bytes_per_s, truth.peak_bytes_per_s, 0.06, 0);
    assert_close(c.beside, truth.beside, 0.02, 0);
    assert_close(c.turn, truth.turn, 0.02, 0);
    assert_true(c.error < 0.03);
    assert_status(cd_contention_fit(row, 0, &c, &err), CDMPP_ENODATA);
    row[3].solo_s[0] = 0;
    assert_status(cd_contention_fit(row, 60, &c, &err), CDMPP_ERANGE);
}

static void table(void **state) {
    (void)state;
    static const char text[] =
        "first,second,sharing,threads,first_solo_s,second_solo_s,first_corun_s,second_corun_s,"
        "first_slowdown,second_slowdown,spread,first_flop,second_flop,first_bytes,second_bytes,"
        "error_no\n"
        "\"[\"\"a\"\", 1]\",b,disjoint,1,0.001,0.002,0.0011,0.0022,1.1,1.1,0.01,-1,-1,1000,2000,0\n"
        "a,b,shared,1,,,,,,,,-1,-1,1000,2000,4\n"
        "a,b,shared,1,0.001,0.002,0.002,0.004,2,2,0.01,-1,-1,1000,2000,0\n";
    tmp_dir d = tmp_make();
    cd_arena a = {0};
    cd_corun_row *row;
    size_t n;
    assert_ok(cd_contention_read(tmp_put(&d, "p.csv", text, sizeof text - 1), &a, &row, &n, &err));
    assert_int_equal(n, 2);
    assert_true(!row[0].shared && row[1].shared && row[0].bytes[1] == 2000 &&
                row[1].slowdown[0] == 2);
    assert_status(
        cd_contention_read(tmp_put(&d, "q.csv", "first,second\n1,2\n", 17), &a, &row, &n, &err),
        CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "no column 'first_solo_s'"));
    tmp_remove(&d);
    cd_arena_free(&a);
}

static double nan_time(const cd_stage_step *s, void *ctx) {
    return (void)s, (void)ctx, (double)NAN;
}
static double never(const cd_stage_step *s, void *ctx) {
    return (void)s, (void)ctx, (double)INFINITY;
}

static void bad_input(void **state) {
    (void)state;
    static made m;
    cd_stage_plan p;
    cd_stage_options ask = {3, 8, nan_time, &m, 0};
    make(&m, 1, 6, 3);
    assert_status(cd_stage_search(&m.g, &ask, &p, &err), CDMPP_ERANGE);
    cd_stage_plan_free(&p);
    ask.time = never;
    assert_status(cd_stage_search(&m.g, &ask, &p, &err), CDMPP_EINVALID);
    cd_stage_plan_free(&p);
    ask.time = asked, ask.most = 2;
    assert_status(cd_stage_search(&m.g, &ask, &p, &err), CDMPP_ERANGE);
    cd_stage_plan_free(&p);
    m.op[0].first = 0, m.op[0].n_after = 1, m.after[0] = 0;
    assert_status(cd_stage_search(&m.g, &ask, &p, &err), CDMPP_EINVALID);
    assert_non_null(strstr(err.msg, "cycle"));
    cd_stage_plan_free(&p);
    for (int k = 0; k < 6; k++) m.op[k].n_after = 0;
    m.op[4].first = 0, m.op[4].n_after = 1, m.after[0] = 4; /* those before it can run */
    assert_status(cd_stage_search(&m.g, &ask, &p, &err), CDMPP_EINVALID);
    assert_non_null(strstr(err.msg, "operator 4 ("));
    cd_stage_plan_free(&p);
    /* operators need not be in order */
    m.op[4].n_after = 0, m.op[0].first = 0, m.op[0].n_after = 1, ask.most = 0;
    assert_ok(cd_stage_search(&m.g, &ask, &p, &err));
    cd_stage_plan_free(&p);
    m.op[0].n_after = 0, m.op[4].n_after = 1;
    m.after[0] = 99;
    assert_status(cd_stage_search(&m.g, &ask, &p, &err), CDMPP_EINVALID);
    assert_non_null(strstr(err.msg, "operator 4 ("));
    assert_non_null(strstr(err.msg, "comes after 99 of 6"));
    cd_stage_plan_free(&p);
    make(&m, 1, 65, 0);
    assert_status(cd_stage_search(&m.g, &ask, &p, &err), CDMPP_ERANGE);
    cd_stage_plan_free(&p);
}

/* Alone 4 s in 4 pieces and 1 s in 3, on two units: halves and two thirds, each with 0.3 s for a
 * start and 0.1 s for the barrier. */
TEST(test_split_times) {
    const uint32_t first[] = {0, 1}, pair[] = {0, 2}, op[] = {0, 1, 2};
    const double solo_s[] = {4, 1, 4};
    const int64_t iterations[] = {4, 3, 1};
    cd_stage_solo t = {
        .solo_s = solo_s, .iterations = iterations, .units = 2, .barrier_s = 0.1, .split_s = 0.3};
    const cd_stage_step one = {.n_group = 1, .first = first, .op = op};
    const cd_stage_step two = {.n_group = 1, .first = first, .op = op + 1};
    const cd_stage_step three = {.n_group = 1, .first = first, .op = op + 2};
    const cd_stage_step both = {.n_group = 1, .first = pair, .op = op};
    assert_float_equal((float)cd_stage_solo_time(&one, &t), 2.4F, 1e-6F);
    assert_int_equal(cd_stage_solo_split(&one, &t), 2);
    assert_float_equal((float)cd_stage_solo_time(&two, &t), 2.0F / 3 + 0.4F, 1e-6F);
    assert_int_equal(cd_stage_solo_split(&two, &t), 2);
    t.split_s = 0.4; /* two thirds and 0.4 s are more than all of it */
    assert_int_equal(cd_stage_solo_split(&two, &t), 0);
    assert_float_equal((float)cd_stage_solo_time(&two, &t), 1.1F, 1e-6F);
    /* one piece; two operators */
    assert_true(!cd_stage_solo_split(&three, &t) && !cd_stage_solo_split(&both, &t));
    t.units = 8;
    assert_int_equal(cd_stage_solo_split(&one, &t), 4); /* no more than it has */
    t.iterations = NULL;
    assert_int_equal(cd_stage_solo_split(&one, &t), 0);
    t.iterations = iterations, t.units = 1;
    assert_int_equal(cd_stage_solo_split(&one, &t), 0);
}

TESTS(NULL, NULL, equals_every_sequence, inception, blocks, planted, table, bad_input,
      test_split_times)
