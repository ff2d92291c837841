/* Replays of drawn networks against a slow reading of the same rules, and the laws of replay.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "made_replay.h"

/* ---- the slow reading: everything is looked at again at every step ---- */

typedef struct {
    double start[MAX_OP], end[MAX_OP], left[MAX_OP], copy_end[MAX_OP][MAX_DEVICE];
    bool started[MAX_OP], done[MAX_OP], asked[MAX_OP][MAX_DEVICE];
    double tail[MAX_OP], link_free[MAX_LINK];
} slow;

static const cd_replay_link *link_of(const cd_replay_net *n, uint32_t from, uint32_t to,
                                     uint32_t *at) {
    for (uint32_t k = 0; k < n->n_link; k++)
        if (n->link[k].from == from && n->link[k].to == to) return *at = k, &n->link[k];
    return NULL;
}

static double issue_time(const cd_replay_net *n, uint32_t k) {
    uint32_t j = 0;
    for (uint32_t i = 0; i <= k; i++) j += n->op[i].device == n->op[k].device;
    return j * n->device[n->op[k].device].issue_s;
}

static bool is_ready(const cd_replay_net *n, const slow *s, uint32_t k, double t) {
    if (issue_time(n, k) > t) return false;
    for (uint32_t j = 0; j < n->op[k].n_after; j++) {
        const uint32_t a = n->after[n->op[k].first + j];
        if (!s->done[a]) return false;
        if (n->op[a].device != n->op[k].device && !(s->copy_end[a][n->op[k].device] <= t))
            return false;
    }
    return true;
}

static bool choose(const cd_replay_net *n, const slow *s, uint32_t d, double t, uint32_t *out) {
    bool found = false;
    for (uint32_t k = 0; k < n->n_op; k++) {
        if (n->op[k].device != d || s->started[k]) continue;
        const bool ready = is_ready(n, s, k, t);
        if (n->device[d].policy == CD_REPLAY_STREAM) return *out = k, ready;
        if (ready &&
            (!found || (n->device[d].policy == CD_REPLAY_CRITICAL && s->tail[k] > s->tail[*out])))
            *out = k, found = true;
    }
    return found;
}

static double stretch_of(const cd_replay_net *n, const slow *s, uint32_t k) {
    double busy = 0;
    for (uint32_t j = 0; j < n->n_op; j++)
        if (n->op[j].device == n->op[k].device && s->started[j] && !s->done[j])
            busy += n->op[j].memory_share;
    const double share = n->op[k].memory_share;
    return busy > 1 ? 1 - share + share * busy : 1;
}

static void ask_copies(const cd_replay_net *n, slow *s, uint32_t k, double t) {
    for (uint32_t e = 0; e < n->n_op; e++)
        for (uint32_t j = 0; j < n->op[e].n_after; j++) {
            const uint32_t to = n->op[e].device;
            if (n->after[n->op[e].first + j] != k || to == n->op[k].device || s->asked[k][to])
                continue;
            uint32_t l = 0;
            const cd_replay_link *link = link_of(n, n->op[k].device, to, &l);
            s->asked[k][to] = true;
            s->link_free[l] = s->copy_end[k][to] =
                fmax(t, s->link_free[l]) +
                (link->latency_s + (double)n->op[k].bytes / link->bytes_per_s);
        }
}

static double slow_replay(const cd_replay_net *n, slow *s) {
    memset(s, 0, sizeof *s);
    for (uint32_t k = n->n_op; k-- > 0;) {
        double behind = 0;
        for (uint32_t e = k + 1; e < n->n_op; e++)
            for (uint32_t j = 0; j < n->op[e].n_after; j++)
                if (n->after[n->op[e].first + j] == k) behind = fmax(behind, s->tail[e]);
        s->tail[k] = n->op[k].seconds + n->device[n->op[k].device].gap_s + behind;
    }
    double t = 0, most = 0;
    for (;;) {
        for (uint32_t d = 0; d < n->n_device; d++)
            for (uint32_t k = 0;;) {
                uint32_t on = 0;
                for (uint32_t j = 0; j < n->n_op; j++)
                    on += n->op[j].device == d && s->started[j] && !s->done[j];
                if (on >= n->device[d].workers || !choose(n, s, d, t, &k)) break;
                s->started[k] = true;
                s->start[k] = t;
                s->left[k] = n->op[k].seconds + n->device[d].gap_s;
            }
        double next = INFINITY;
        for (uint32_t k = 0; k < n->n_op; k++) {
            if (s->started[k] && !s->done[k])
                next = fmin(next, t + s->left[k] * stretch_of(n, s, k));
            if (!s->started[k] && issue_time(n, k) > t) next = fmin(next, issue_time(n, k));
            for (uint32_t d = 0; d < n->n_device; d++)
                if (s->copy_end[k][d] > t) next = fmin(next, s->copy_end[k][d]);
        }
        if (isinf(next)) return most;
        bool over[MAX_OP] = {false};
        for (uint32_t k = 0; k < n->n_op; k++) {
            if (!s->started[k] || s->done[k]) continue;
            const double f = stretch_of(n, s, k);
            over[k] = t + s->left[k] * f <= next * (1 + 1e-12);
            s->left[k] -= (next - t) / f;
        }
        t = next;
        for (uint32_t k = 0; k < n->n_op; k++)
            if (over[k]) s->done[k] = true, most = s->end[k] = t, ask_copies(n, s, k, t);
    }
}

static void test_as_the_slow_one(void **state) {
    (void)state;
    static made_replay m;
    static slow s;
    cdmpp_err err = {0};
    for (uint64_t seed = 0; seed < 60; seed++) {
        make_replay(&m, seed, false);
        cd_replay r;
        assert_ok(cd_replay_run(&m.n, &r, &err));
        const double want = slow_replay(&m.n, &s);
        for (uint32_t k = 0; k < m.n.n_op; k++) {
            /* all durations are short binary fractions */
            assert_true(r.op[k].start_s == s.start[k]);
            assert_true(r.op[k].end_s == s.end[k]);
        }
        assert_true(r.makespan_s == want);
        cd_replay_free(&r);
    }
}

static void test_shared_memory_as_the_slow_one(void **state) {
    (void)state;
    static made_replay m;
    static slow s;
    cdmpp_err err = {0};
    unsigned stretched = 0;
    for (uint64_t seed = 100; seed < 140; seed++) {
        make_replay(&m, seed, true);
        /* ties that rounding breaks would part the two on several */
        m.n.n_device = 1, m.n.n_link = 0;
        for (uint32_t k = 0; k < m.n.n_op; k++) m.op[k].device = 0;
        m.device[0].policy = CD_REPLAY_STREAM;
        m.device[0].workers = 3;
        cd_replay r;
        assert_ok(cd_replay_run(&m.n, &r, &err));
        const double want = slow_replay(&m.n, &s);
        assert_true(fabs(r.makespan_s - want) <= 1e-9 * want);
        for (uint32_t k = 0; k < m.n.n_op; k++)
            stretched +=
                r.op[k].end_s - r.op[k].start_s > 1.01 * (m.op[k].seconds + m.device[0].gap_s);
        cd_replay_free(&r);
    }
    assert_true(stretched > 50);
}

static void test_laws(void **state) {
    (void)state;
    static made_replay m;
    cdmpp_err err = {0};
    for (uint64_t seed = 200; seed < 300; seed++) {
        make_replay(&m, seed, seed & 1);
        cd_replay r, twice, bare;
        assert_ok(cd_replay_run(&m.n, &r, &err));
        assert_true(r.chain_s <= r.makespan_s * (1 + 1e-12));
        assert_true(r.makespan_s <= r.sum_s * (1 + 1e-12));
        for (uint32_t i = 1; i < r.n_path; i++)
            assert_true(r.op[r.path[i]].start_s >= r.op[r.path[i - 1]].start_s);
        double most = 0;
        for (uint32_t k = 0; k < m.n.n_op; k++) most = fmax(most, r.op[k].end_s);
        assert_true(most == r.makespan_s && r.op[r.path[r.n_path - 1]].end_s == most);
        for (uint32_t k = 0; k < m.n.n_op; k++) m.op[k].seconds *= 2;
        for (uint32_t d = 0; d < m.n.n_device; d++)
            m.device[d].gap_s *= 2, m.device[d].issue_s *= 2;
        for (uint32_t l = 0; l < m.n.n_link; l++)
            m.link[l].latency_s *= 2, m.link[l].bytes_per_s /= 2;
        assert_ok(cd_replay_run(&m.n, &twice, &err));
        assert_true(twice.makespan_s == 2 * r.makespan_s);
        m.device[m.n.n_device++] = (cd_replay_device){.name = "idle", .workers = 1};
        assert_ok(cd_replay_run(&m.n, &bare, &err));
        assert_true(bare.makespan_s == twice.makespan_s);
        cd_replay_free(&r);
        cd_replay_free(&twice);
        cd_replay_free(&bare);
    }
}

/* No two operators on one worker at the same time, none before its data. */
static void test_tracks_do_not_overlap(void **state) {
    (void)state;
    static made_replay m;
    cdmpp_err err = {0};
    for (uint64_t seed = 300; seed < 340; seed++) {
        make_replay(&m, seed, true);
        cd_replay r;
        assert_ok(cd_replay_run(&m.n, &r, &err));
        for (uint32_t a = 0; a < m.n.n_op; a++) {
            for (uint32_t b = 0; b < a; b++)
                if (m.op[a].device == m.op[b].device && r.op[a].worker == r.op[b].worker)
                    assert_true(r.op[a].start_s >= r.op[b].end_s ||
                                r.op[b].start_s >= r.op[a].end_s);
            for (uint32_t j = 0; j < m.op[a].n_after; j++)
                assert_true(r.op[a].start_s >= r.op[m.after[m.op[a].first + j]].end_s);
        }
        cd_replay_free(&r);
    }
}

static void test_small_by_hand(void **state) {
    (void)state;
    cdmpp_err err = {0};
    const uint32_t after[] = {0, 0, 1, 2};
    cd_replay_op op[] = {
        {.name = "a", .seconds = 1, .bytes = 100, .like = 0, .first = 0, .n_after = 0},
        {.name = "b", .seconds = 2, .bytes = 10, .like = 1, .first = 0, .n_after = 1},
        {.name = "c", .device = 1, .seconds = 1, .bytes = 20, .like = 2, .first = 1, .n_after = 1},
        {.name = "d", .seconds = 1, .bytes = 5, .like = 3, .first = 2, .n_after = 2}};
    const cd_replay_device device[] = {{.name = "cpu", .workers = 1},
                                       {.name = "gpu", .workers = 1}};
    const cd_replay_link link[] = {{0, 1, 0.5, 100}, {1, 0, 0.5, 100}};
    const cd_replay_net n = {4, 4, 2, 2, op, after, device, link};
    cd_replay r;
    assert_ok(cd_replay_run(&n, &r, &err));
    /* a ends at 1, is copied until 2.5; c runs to 3.5, is copied until 4.2; d runs to 5.2 */
    assert_true(fabs(r.makespan_s - 5.2) < 1e-12 && fabs(r.chain_s - 5.2) < 1e-12);
    assert_int_equal(r.n_copy, 2);
    assert_int_equal(r.n_path, 3);
    assert_int_equal(r.path[1], 2);
    /* a until its copy is there, and b; then b, c's copy, d: 35 */
    assert_int_equal(r.peak[0], 110);
    assert_int_equal(r.peak[1], 120);
    cd_replay_free(&r);
}

/* At one time: ends in the order of devices, then copies in the order of their making; the last one
 * is what was waited for. */
TEST(test_ties) {
    cdmpp_err err = {0};
    const uint32_t after[] = {0, 1, 2};
    const cd_replay_op op[] = {
        {.name = "a", .seconds = 1, .bytes = 100, .like = 0},
        {.name = "b", .device = 1, .seconds = 1, .bytes = 100, .like = 1},
        {.name = "c", .device = 2, .seconds = 2, .like = 2},
        {.name = "d", .device = 2, .seconds = 1, .like = 3, .first = 0, .n_after = 3}};
    const cd_replay_device device[] = {
        {.name = "x", .workers = 1}, {.name = "y", .workers = 1}, {.name = "z", .workers = 2}};
    const cd_replay_link link[] = {{0, 2, 0, 100}, {1, 2, 0, 100}};
    const cd_replay_net n = {4, 3, 3, 2, op, after, device, link};
    cd_replay r;
    assert_ok(cd_replay_run(&n, &r, &err)); /* a and b end at 1; their copies end at 2, as c does */
    assert_int_equal(r.n_copy, 2);
    assert_true(r.copy[0].op == 0 && r.copy[1].op == 1);
    assert_true(r.op[3].ready_s == 2);
    assert_int_equal(r.op[3].since, 1);
    assert_int_equal(r.n_path, 2);
    assert_int_equal(r.path[0], 1);
    cd_replay_free(&r);
}

static void test_bad_networks(void **state) {
    (void)state;
    cdmpp_err err = {0};
    const uint32_t after[] = {1, 0, 7};
    cd_replay_op op[] = {{.name = "x", .seconds = 1, .first = 0, .n_after = 1},
                         {.name = "y", .seconds = 1, .first = 1, .n_after = 1}};
    const cd_replay_device device[] = {{.name = "a", .workers = 1}, {.name = "b", .workers = 1}};
    cd_replay_net n = {2, 3, 2, 0, op, after, device, NULL};
    cd_replay r;
    assert_status(cd_replay_run(&n, &r, &err), CDMPP_EINVALID); /* a cycle */
    cd_replay_free(&r);
    op[0].n_after = 0;
    op[1].device = 1;
    assert_status(cd_replay_run(&n, &r, &err), CDMPP_EINVALID); /* no link */
    cd_replay_free(&r);
    op[1].first = 2;
    assert_status(cd_replay_run(&n, &r, &err), CDMPP_EINVALID); /* an edge to nowhere */
    cd_replay_free(&r);
    op[1].n_after = 0;
    op[1].seconds = NAN;
    assert_status(cd_replay_run(&n, &r, &err), CDMPP_ERANGE);
    cd_replay_free(&r);
    op[1].seconds = op[0].seconds = 1e308; /* each is a number, their sum is none */
    assert_status(cd_replay_run(&n, &r, &err), CDMPP_ERANGE);
    cd_replay_free(&r);
    op[1].seconds = op[0].seconds = 1;
    op[1].runs = (double)INFINITY;
    assert_status(cd_replay_run(&n, &r, &err), CDMPP_ERANGE);
    cd_replay_free(&r);
    op[1].runs = 0;
    op[1].bytes = op[0].bytes = INT64_MAX;
    assert_status(cd_replay_run(&n, &r, &err), CDMPP_ERANGE);
    cd_replay_free(&r);
    n = (cd_replay_net){.n_device = 1, .device = device};
    assert_ok(cd_replay_run(&n, &r, &err)); /* nothing takes no time */
    assert_true(r.makespan_s == 0 && r.n_path == 0);
    cd_replay_free(&r);
}

static void test_interval(void **state) {
    (void)state;
    static made_replay m;
    cdmpp_err err = {0};
    make_replay(&m, 401, false);
    cd_replay_interval a, b, c;
    assert_ok(cd_replay_sample(&m.n, 0.9, 0.3, 1, &a, &err));
    assert_ok(cd_replay_sample(&m.n, 0.9, 0.3, 1, &b, &err));
    assert_true(a.low_s == b.low_s && a.high_s == b.high_s && a.mean_s == b.mean_s);
    assert_true(a.low_s < a.mean_s && a.mean_s < a.high_s);
    /* errors in common do not average out */
    assert_ok(cd_replay_sample(&m.n, 0.9, 1, 1, &c, &err));
    assert_true(c.high_s - c.low_s > a.high_s - a.low_s);
    /* the same, known of each operator */
    for (uint32_t k = 0; k < m.n.n_op; k++) m.op[k].shared = 1;
    assert_ok(cd_replay_sample(&m.n, 0.9, 0.3, 1, &b, &err));
    assert_true(b.low_s == c.low_s && b.high_s == c.high_s);
    for (uint32_t k = 0; k < m.n.n_op; k++) m.op[k].spread = 0;
    cd_replay r;
    assert_ok(cd_replay_run(&m.n, &r, &err));
    assert_ok(cd_replay_sample(&m.n, 0.9, 0.3, 1, &a, &err));
    assert_true(a.low_s == r.makespan_s && a.high_s == r.makespan_s);
    cd_replay_free(&r);
    assert_status(cd_replay_sample(&m.n, 1, 0.3, 1, &a, &err), CDMPP_ERANGE);
}

/* 10^5 operators take about 0.1 s of processor time; ten times the bar of one second would be
 * another complexity, also in slow builds. */
static void test_large(void **state) {
    (void)state;
    enum { N = 100000 };
    cdmpp_err err = {0};
    cd_replay_op *op = calloc(N, sizeof *op);
    uint32_t *after = calloc(2 * N, sizeof *after);
    assert_true(op && after);
    uint32_t m = 0;
    for (uint32_t k = 0; k < N; k++) {
        op[k] = (cd_replay_op){.name = "op",
                               .device = k & 1,
                               .like = k,
                               .seconds = 1e-6 * (double)(1 + k % 7),
                               .bytes = 8,
                               .first = m};
        for (uint32_t j = 0; j < 2 && k > 8; j++, op[k].n_after++)
            after[m++] = k - 1 - (uint32_t)pick(k, j, 8);
    }
    const cd_replay_device device[] = {{.name = "a", .workers = 4},
                                       {.name = "b", .workers = 1, .policy = CD_REPLAY_STREAM}};
    const cd_replay_link link[] = {{0, 1, 1e-6, 1e9}, {1, 0, 1e-6, 1e9}};
    const cd_replay_net n = {N, m, 2, 2, op, after, device, link};
    const clock_t begin = clock();
    cd_replay r;
    assert_ok(cd_replay_run(&n, &r, &err));
    const double took = (double)(clock() - begin) / CLOCKS_PER_SEC;
    print_message("100,000 operators, %u copies: %.3f s\n", r.n_copy, took);
    assert_true(took < 10);
    assert_true(r.chain_s <= r.makespan_s * (1 + 1e-9) && r.makespan_s <= r.sum_s * (1 + 1e-9));
    cd_replay_free(&r);
    free(op);
    free(after);
}

TESTS(NULL, NULL, test_as_the_slow_one, test_shared_memory_as_the_slow_one, test_laws,
      test_tracks_do_not_overlap, test_small_by_hand, test_ties, test_bad_networks, test_interval,
      test_large)
