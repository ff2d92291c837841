/* Operators cut into tasks: every iteration once, what is before has ended, times played through
 * again, and when cutting pays. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fault.h"
#include "base/core/core.h"
#include "predictor/partition/games/games.h"

enum { OPS = 20, PARTS = 3, UNITS = 4 };

typedef struct {
    cd_pack_network net;
    cd_pack_work work[OPS];
    cd_pack_part part[OPS][PARTS];
    uint32_t after[OPS * OPS];
} made;

static void make(made *m, uint64_t seed, uint32_t units) {
    memset(m, 0, sizeof *m);
    m->net = (cd_pack_network){.n_work = OPS,
                               .work = m->work,
                               .after = m->after,
                               .units = units,
                               .launch_s = 0.01,
                               .sync_s = 0.05,
                               .byte_s = seed % 2 ? 0.001 : 0};
    for (uint32_t k = 0; k < OPS; k++) {
        m->work[k] =
            (cd_pack_work){"op",           1 + (uint32_t)(cd_rng_unit(seed, 4 * k) * PARTS),
                           m->part[k],     40 * cd_rng_unit(seed, 4 * k + 1),
                           m->net.n_after, 0};
        for (uint32_t p = 0; p < m->work[k].n_part; p++)
            m->part[k][p] = (cd_pack_part){1 + (uint32_t)(cd_rng_unit(seed, 1000 + 8 * k + p) * 30),
                                           cd_rng_unit(seed, 2000 + 8 * k + p) * (k % 3 ? 0.2 : 3)};
        for (uint32_t b = 0; b < k; b++)
            if (cd_rng_unit(seed, 3000 + OPS * k + b) < 0.15) m->after[m->net.n_after++] = b;
        m->work[k].n_after = m->net.n_after - m->work[k].first;
    }
}

/* The time at which all calls of an operator have ended; of a part alone; NaN: none. */
static double end_of(const cd_pack_network *n, const cd_pack_calls *c, uint32_t work, uint32_t part,
                     bool all) {
    double end = (double)NAN;
    for (uint32_t k = 0; k < c->first[n->units]; k++)
        if (c->call[k].work == work && (all || c->call[k].part == part))
            end = fmax(end, c->call[k].end_s);
    return end;
}

static bool only_on(const cd_pack_network *n, const cd_pack_calls *c, uint32_t unit, uint32_t work,
                    uint32_t part) {
    for (uint32_t k = 0; k < c->first[n->units]; k++)
        if (c->call[k].work == work && c->call[k].part == part &&
            (k < c->first[unit] || k >= c->first[unit + 1]))
            return false;
    return true;
}

/* Of a part's iterations those that a unit has. */
static double share_of(const cd_pack_network *n, const cd_pack_calls *c, uint32_t unit,
                       uint32_t work, uint32_t part) {
    double here = 0, all = 0;
    for (uint32_t k = 0; k < c->first[n->units]; k++)
        if (c->call[k].work == work && c->call[k].part == part) {
            all += c->call[k].end - c->call[k].begin;
            if (k >= c->first[unit] && k < c->first[unit + 1])
                here += c->call[k].end - c->call[k].begin;
        }
    return here / all;
}

/* The last part of an operator in the plan. */
static uint32_t last_of(const cd_pack_network *n, const cd_pack_calls *c, uint32_t work) {
    for (uint32_t k = 0; k < c->first[n->units]; k++)
        if (c->call[k].work == work && c->call[k].part == CD_PACK_WHOLE) return CD_PACK_WHOLE;
    return n->work[work].n_part - 1;
}

static void check_cover(const cd_pack_network *n, const cd_pack_calls *c) {
    for (uint32_t w = 0; w < n->n_work; w++) {
        uint32_t whole = 0, times[PARTS][30] = {{0}};
        for (uint32_t k = 0; k < c->first[n->units]; k++) {
            const cd_pack_call *x = &c->call[k];
            if (x->work != w) continue;
            if (x->part == CD_PACK_WHOLE) whole++, assert_true(x->begin == 0 && x->end == 1);
            for (uint32_t i = x->begin; i < x->end && x->part != CD_PACK_WHOLE; i++)
                times[x->part][i]++;
        }
        assert_true(whole <= 1);
        for (uint32_t p = 0; p < n->work[w].n_part; p++)
            for (uint32_t i = 0; i < n->work[w].part[p].iterations; i++)
                assert_int_equal(times[p][i] + whole, 1);
    }
}

/* A call begins when its unit is free and all before has ended, plus sync_s where another unit had
 * a part of that; never later. */
static void check_times(const cd_pack_network *n, const cd_pack_calls *c) {
    uint32_t waits = 0;
    double makespan = 0;
    for (uint32_t u = 0; u < n->units; u++)
        for (uint32_t k = c->first[u]; k < c->first[u + 1]; k++) {
            const cd_pack_call *x = &c->call[k];
            const cd_pack_work *w = &n->work[x->work];
            double ready = k > c->first[u] ? c->call[k - 1].end_s : 0, length = 0, foreign = 0,
                   share = 1;
            bool waits_here = false;
            const bool inner = x->part != CD_PACK_WHOLE && x->part;
            for (uint32_t e = 0; e < (inner ? 1 : w->n_after); e++) {
                const uint32_t from = inner ? x->work : n->after[w->first + e],
                               part = inner ? x->part - 1 : last_of(n, c, from);
                const bool other = !only_on(n, c, u, from, part);
                waits_here |= other;
                foreign += n->work[from].bytes * (1 - share_of(n, c, u, from, part));
                ready = fmax(ready, end_of(n, c, from, part, false) + (other ? n->sync_s : 0));
            }
            waits += waits_here;
            for (uint32_t p = 0; p < w->n_part; p++)
                if (x->part == CD_PACK_WHOLE) length += w->part[p].seconds;
                else if (p == x->part)
                    share = (double)(x->end - x->begin) / w->part[p].iterations,
                    length = w->part[p].seconds * share;
            length += foreign * share * n->byte_s;
            assert_true(fabs(x->start_s - ready) < 1e-12 &&
                        fabs(x->end_s - x->start_s - length - n->launch_s) < 1e-12);
            makespan = fmax(makespan, x->end_s);
        }
    assert_true(c->makespan_s == makespan);
    assert_int_equal(c->n_wait, waits);
}

static void drawn_networks(void **state) {
    (void)state;
    static made m;
    cdmpp_err err = {0};
    for (uint64_t seed = 0; seed < 30; seed++)
        for (uint32_t units = 1; units <= UNITS; units++) {
            cd_pack_calls best, one;
            double work = 0;
            make(&m, seed, units);
            assert_ok(cd_pack_cut(&m.net, &best, &err));
            check_cover(&m.net, &best);
            check_times(&m.net, &best);
            for (uint32_t k = 0; k < OPS; k++)
                for (uint32_t p = 0; p < m.work[k].n_part; p++) work += m.part[k][p].seconds;
            assert_true(fabs(best.work_s - work) < 1e-9 && best.makespan_s >= work / units &&
                        best.single_s >= work);
            for (double least = 4; least > 1e-3; least /= 3) {
                assert_ok(cd_pack_cut_by(&m.net, least, &one, &err));
                check_cover(&m.net, &one);
                check_times(&m.net, &one);
                cd_pack_calls_free(&one);
            }
            assert_ok(cd_pack_cut_by(&m.net, (double)INFINITY, &one, &err));
            assert_int_equal(one.first[units], OPS); /* nothing is cut */
            assert_true(best.makespan_s <= one.makespan_s);
            if (units == 1)
                assert_true(best.first[1] == OPS && !best.n_wait &&
                            fabs(best.makespan_s - best.single_s) < 1e-9);
            cd_pack_calls_free(&one);
            cd_pack_calls_free(&best);
        }
}

/* Two branches that are alike run side by side, whole; one long operator is cut; with dear waiting
 * it is not. */
static void when_cutting_pays(void **state) {
    (void)state;
    const cd_pack_part part = {16, 1};
    const uint32_t after[] = {0, 1};
    const cd_pack_work branch[] = {{"a", 1, &part, 0, 0, 0},
                                   {"b", 1, &part, 0, 0, 0},
                                   {"c", 1, &part, 0, 0, 1},
                                   {"d", 1, &part, 0, 1, 1}};
    cd_pack_network n = {.n_work = 4,
                         .n_after = 2,
                         .work = branch,
                         .after = after,
                         .units = 2,
                         .launch_s = 1e-3,
                         .sync_s = 1e-2};
    cd_pack_calls c;
    cdmpp_err err = {0};
    assert_ok(cd_pack_cut(&n, &c, &err));
    assert_int_equal(c.first[2], 4);
    assert_int_equal(c.n_wait, 0);
    assert_true(fabs(c.makespan_s - 2.002) < 1e-9 && fabs(c.serial_s - 4 * (0.5 + 0.011)) < 1e-9 &&
                fabs(c.single_s - 4.004) < 1e-9);
    cd_pack_calls_free(&c);
    n.n_work = 1;
    assert_ok(cd_pack_cut(&n, &c, &err));
    assert_int_equal(c.first[2], 2);
    assert_true(c.call[0].begin == 0 && c.call[0].end == 8 && c.call[1].begin == 8 &&
                c.call[1].end == 16 && fabs(c.makespan_s - 0.501) < 1e-9);
    cd_pack_calls_free(&c);
    /* a long operator and a short one behind it are both cut, unless what the short one reads is
     * dear to bring */
    const cd_pack_part small = {2, 0.1};
    const cd_pack_work two[] = {{"a", 1, &part, 100, 0, 0}, {"s", 1, &small, 1, 0, 1}};
    n.n_work = 2, n.work = two, n.sync_s = 1e-3;
    assert_ok(cd_pack_cut(&n, &c, &err));
    assert_true(c.first[2] == 4 && fabs(c.makespan_s - (0.501 + 1e-3 + 0.051)) < 1e-9);
    cd_pack_calls_free(&c);
    n.byte_s = 0.04;
    assert_ok(cd_pack_cut(&n, &c, &err));
    assert_true(c.first[2] == 2 && fabs(c.makespan_s - 1.102) < 1e-9 &&
                fabs(c.serial_s - (0.5 + 2e-3 + 0.05 + 0.5 * 100 * 0.04 * 0.5 + 2e-3)) < 1e-9);
    cd_pack_calls_free(&c);
    n.byte_s = 0;
    n.n_work = 4, n.sync_s = 10;
    const uint32_t chain[] = {0, 1, 2};
    const cd_pack_work line[] = {{"a", 1, &part, 0, 0, 0},
                                 {"b", 1, &part, 0, 0, 1},
                                 {"c", 1, &part, 0, 1, 1},
                                 {"d", 1, &part, 0, 2, 1}};
    n.work = line, n.after = chain, n.n_after = 3;
    assert_ok(cd_pack_cut(&n, &c, &err));
    assert_true(c.first[2] == 4 && fabs(c.makespan_s - 4.004) < 1e-9);
    cd_pack_calls_free(&c);
}

static void bad_input(void **state) {
    (void)state;
    const cd_pack_part good = {4, 1}, none = {0, 1}, below = {4, -1};
    const uint32_t self[] = {0}, far[] = {7};
    cd_pack_work w = {"a", 1, &good, 0, 0, 0};
    cd_pack_network n = {.n_work = 1, .work = &w, .after = self, .units = 2};
    cd_pack_calls c;
    cdmpp_err err = {0};
#define REFUSED(want)                                                                              \
    assert_status(cd_pack_cut(&n, &c, &err), want);                                                \
    cd_pack_calls_free(&c)
    n.units = 0;
    REFUSED(CDMPP_ERANGE);
    n.units = 2, n.sync_s = -1;
    REFUSED(CDMPP_ERANGE);
    n.sync_s = 0, n.byte_s = (double)NAN;
    REFUSED(CDMPP_ERANGE);
    n.byte_s = 0, w.bytes = -1;
    REFUSED(CDMPP_ERANGE);
    w.bytes = 0, w.n_part = 0;
    REFUSED(CDMPP_ERANGE);
    w.n_part = 1, w.part = &none;
    REFUSED(CDMPP_ERANGE);
    w.part = &below;
    REFUSED(CDMPP_ERANGE);
    w.part = &good, w.n_after = 1;
    REFUSED(CDMPP_EINVALID); /* more edges than there are */
    n.n_after = 1;
    REFUSED(CDMPP_EINVALID); /* after itself */
    n.after = far;
    REFUSED(CDMPP_EINVALID);
}

static void no_memory(void **state) {
    (void)state;
    static made m;
    make(&m, 3, 2);
    FAULT_SWEEP(f, 10) {
        cd_pack_calls c;
        f.st = cd_pack_cut(&m.net, &c, &f.err);
        cd_pack_calls_free(&c);
    }
}

TESTS(NULL, NULL, drawn_networks, when_cutting_pays, bad_input, no_memory)
