/* Two programs at the same time: those that do not meet, those that share a processor, those that
 * fail. */
#include "check.h"
#include "made_code.h"

#include <errno.h>
#include <sys/wait.h>

#include "profiler/host/host.h"
#include "profiler/measure/measure.h"

typedef struct {
    made_code made[3];
    cd_measure_item item[3];
    cd_measure *m;
} rig;

static void build(rig *r, const char *const *body, int n) {
    const cd_measure_options o = {
        .backend = "cpu", .isa = "native", .compiler = "gcc", .cache = "", .jobs = 1, .threads = 1};
    char name[16];
    cdmpp_err err = {0};
    assert_ok(cd_measure_open(&o, &r->m, &err));
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "p%d", i);
        made_code_set(&r->made[i], name, 4096, body[i]);
        r->item[i] = (cd_measure_item){.code = &r->made[i].code, .target = "llvm"};
    }
    assert_ok(cd_measure_build(r->m, r->item, (size_t)n, &err));
}

static void tear(rig *r, int n) {
    cd_measure_close(r->m);
    for (int i = 0; i < n; i++) made_code_free(&r->made[i]);
}

static void check_figures(const cd_corun_pair *p) {
    if (p->error_no) print_error("error %d of %d: %s\n", p->error_no, p->at, p->err.msg);
    assert_int_equal(p->error_no, 0);
    assert_true(p->spread >= 0);
    for (int k = 0; k < 2; k++) {
        assert_true(p->solo_s[k] > 1e-8 && p->solo_s[k] < 1e-2);
        assert_true(p->corun_s[k] > 1e-8);
        assert_true(fabs(p->slowdown[k] - p->corun_s[k] / p->solo_s[k]) < 1e-9);
    }
}

/* Two on one processor take turns: together they cannot be faster than one after the other. */
TEST(test_pairs) {
    static const char *const body[] = {
        MADE_ADD, "for (int k = 0; k < 20; k++) for (int i = 0; i < n; i++) c[i] += a[i] * b[i];"};
    rig r = {0};
    cd_corun_pair p;
    cdmpp_err err = {0};
    build(&r, body, 2);
    cd_corun_policy how = {
        .sharing = CD_CORUN_SHARED, .window_s = 0.06, .rounds = 3, .limit_s = 30};
    assert_ok(cd_corun_run(&r.item[0].build, &r.item[1].build, &how, &p, &err));
    check_figures(&p);
    /* Shares of one processor; with k other programs on it all the time the sum is 2 (1 + k) / (2 +
     * k). */
    if (p.spread < 0.05) assert_true(1 / p.slowdown[0] + 1 / p.slowdown[1] < 1.95);
    how.sharing = CD_CORUN_DISJOINT;
    if (cd_affinity_count() >= 2) {
        assert_ok(cd_corun_run(&r.item[0].build, &r.item[1].build, &how, &p, &err));
        check_figures(&p);
    }
    assert_int_equal(cd_corun_bytes(&r.made[0].code), 3 * 4096 * 4);
    how.threads = 2048;
    assert_status(cd_corun_run(&r.item[0].build, &r.item[1].build, &how, &p, &err), CDMPP_EUSAGE);
    tear(&r, 2);
}

/* Four on one place take turns: each gets a quarter of it, whoever else is on the machine; on two
 * places two share one. */
TEST(test_groups) {
    static const char *const body[] = {MADE_ADD};
    rig r = {0};
    cd_corun_group g;
    cdmpp_err err = {0};
    build(&r, body, 1);
    const cd_build *const all[] = {&r.item[0].build, &r.item[0].build, &r.item[0].build,
                                   &r.item[0].build, &r.item[0].build};
    const cd_corun_policy how = {.window_s = 0.08, .rounds = 3, .limit_s = 30};
    assert_ok(cd_corun_group_run(all, 4, 1, &how, &g, &err));
    assert_int_equal(g.error_no, 0);
    assert_int_equal(g.n, 4);
    for (int k = 0; k < 4; k++) {
        assert_true(g.solo_s[k] > 1e-8 && g.slowdown[k] > 1.5);
        assert_close(g.slowdown[k], g.corun_s[k] / g.solo_s[k], 1e-9, 0);
    }
    if (cd_affinity_count() >= 2) {
        assert_ok(cd_corun_group_run(all, 3, 2, &how, &g, &err));
        /* 0 and 2 share the place that 1 has not */
        assert_true(g.slowdown[0] + g.slowdown[2] > 1.3 * g.slowdown[1]);
    }
    assert_status(cd_corun_group_run(all, 5, 1, &how, &g, &err), CDMPP_EUSAGE);
    assert_status(cd_corun_group_run(all, 2, 3, &how, &g, &err), CDMPP_EUSAGE);
    assert_status(cd_corun_group_run(all, 2, 0, &how, &g, &err), CDMPP_EUSAGE);
    tear(&r, 1);
}

TEST(test_faults) {
    static const char *const body[] = {MADE_ADD, "*(volatile int *)8 = 1;",
                                       "for (volatile int i = 0; ; ) {}"};
    rig r = {0};
    cd_corun_pair p;
    cdmpp_err err = {0};
    volatile sig_atomic_t stop = 1;
    build(&r, body, 3);
    cd_corun_policy how = {
        .sharing = CD_CORUN_SHARED, .window_s = 0.01, .rounds = 1, .limit_s = 0.5};
    assert_ok(cd_corun_run(&r.item[1].build, &r.item[0].build, &how, &p, &err));
    assert_int_equal(p.error_no, 4);
    assert_int_equal(p.at, 0);
    assert_non_null(strstr(p.err.msg, "signal"));
    assert_ok(cd_corun_run(&r.item[0].build, &r.item[2].build, &how, &p, &err));
    assert_int_equal(p.error_no, 7);
    assert_int_equal(p.at, 1);
    how.stop = &stop;
    how.limit_s = 30;
    assert_status(cd_corun_run(&r.item[0].build, &r.item[2].build, &how, &p, &err),
                  CDMPP_EINTERRUPTED);
    tear(&r, 3);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
    assert_int_equal(errno, ECHILD);
}

/* All on one processor: two one by one and one alone. The pass of two is longer than that of its
 * longer program, and all quartiles are in order. */
TEST(test_ways) {
    static const char *const body[] = {
        MADE_ADD, "for (int k = 0; k < 50; k++) for (int i = 0; i < n; i++) c[i] += a[i] * b[i];"};
    rig r = {0};
    cd_corun_ways g;
    cdmpp_err err = {0};
    build(&r, body, 2);
    const cd_build *const first = &r.item[0].build, *const second = &r.item[1].build;
    const cd_corun_way way[] = {{2, false, {first, second}, {1, 1}},
                                {1, true, {first}, {1}},
                                {2, true, {first, second}, {1, 1}}};
    const cd_corun_policy how = {.window_s = 0.01, .rounds = 5, .limit_s = 30};
    const unsigned n = cd_affinity_count() >= 2 ? 3 : 2;
    assert_ok(cd_corun_ways_run(way, n, &how, &g, &err));
    assert_int_equal(g.error_no, 0);
    for (unsigned w = 0; w < n; w++)
        assert_true(0 < g.best_s[w] && g.best_s[w] <= g.low_s[w] && g.low_s[w] <= g.pass_s[w] &&
                    g.pass_s[w] <= g.high_s[w]);
    assert_true(g.best_s[0] > 2 * g.best_s[1]); /* the second program is much the longer one */
    if (n == 3) assert_true(g.best_s[2] > 2 * g.best_s[1]); /* a pass ends with the last program */
    assert_status(cd_corun_ways_run(way, 0, &how, &g, &err), CDMPP_EUSAGE);
    assert_status(cd_corun_ways_run(way, 4, &how, &g, &err), CDMPP_EUSAGE);
    const cd_corun_way none = {0}, wide = {1, true, {first}, {4096}};
    assert_status(cd_corun_ways_run(&none, 1, &how, &g, &err), CDMPP_EUSAGE);
    assert_status(cd_corun_ways_run(&wide, 1, &how, &g, &err), CDMPP_EUSAGE);
    tear(&r, 2);
}

TEST(test_ways_that_fail) {
    static const char *const body[] = {MADE_ADD, "*(volatile int *)8 = 1;",
                                       "for (volatile int i = 0; ; ) {}"};
    rig r = {0};
    cd_corun_ways g;
    cdmpp_err err = {0};
    volatile sig_atomic_t stop = 1;
    build(&r, body, 3);
    cd_corun_policy how = {.window_s = 0.01, .rounds = 1, .limit_s = 0.5};
    const cd_build *const good = &r.item[0].build;
    const cd_corun_way crash[] = {{1, true, {good}, {1}},
                                  {2, false, {good, &r.item[1].build}, {1, 1}}};
    const cd_corun_way hang = {1, false, {&r.item[2].build}, {1}};
    assert_ok(cd_corun_ways_run(crash, 2, &how, &g, &err));
    assert_int_equal(g.error_no, 4);
    assert_int_equal(g.way, 1);
    assert_non_null(strstr(g.err.msg, "signal"));
    assert_ok(cd_corun_ways_run(&hang, 1, &how, &g, &err));
    assert_int_equal(g.error_no, 7);
    how.stop = &stop;
    assert_status(cd_corun_ways_run(&hang, 1, &how, &g, &err), CDMPP_EINTERRUPTED);
    tear(&r, 3);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
    assert_int_equal(errno, ECHILD);
}

TESTS(NULL, NULL, test_pairs, test_groups, test_faults, test_ways, test_ways_that_fail)
