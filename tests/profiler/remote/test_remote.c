/* remote: workers that sleep, die and lie; jobs are answered in order all the same. The workers are
 * shell programs, and this program itself with --serve. */
#include "profiler/remote/remote.h"
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HELLO                                                                                      \
    "echo '{\"hello\":\"cdmpp-worker\",\"protocol\":1,\"version\":\"x\",\"device\":\"sh\"}'; "
/* Reads job and number of the lease; r: the number of the job, which is what it says it took. */
#define LOOP                                                                                       \
    "while read -r l; do n=${l#*:}; n=${n%%,*}; r=${l#*job-}; r=${r%%\\\\*}; r=${r%%\\\"*}; "
#define ANSWER                                                                                     \
    "echo "                                                                                        \
    "\"{\\\"lease\\\":$n,\\\"error_no\\\":0,\\\"costs\\\":[$r],\\\"total_s\\\":1,"                 \
    "\\\"timestamp\\\":1700000000}\"; "

enum { N = 24 };
static cdmpp_err err;
static char self[4096];

typedef struct seen {
    size_t n;
    double cost[N];
    cdmpp_status status[N];
    char host[N][16], why[N][300], device[N][16];
    double runs[N]; /* of the statistics; -1: none came */
    unsigned attempts[N], events, dropped;
    char last_event[400];
} seen;

static cdmpp_status on_answer(void *ctx, size_t job, const cd_remote_answer *a, cdmpp_err *e) {
    seen *s = ctx;
    (void)e;
    assert_int_equal(job, s->n); /* in order */
    s->status[job] = a->status;
    s->cost[job] = a->times && a->times->n_cost ? a->times->cost_s[0] : 0;
    s->attempts[job] = a->attempts;
    snprintf(s->device[job], sizeof s->device[job], "%s", a->device);
    s->runs[job] = a->times && a->times->has_stats ? a->times->stats.n : -1;
    snprintf(s->host[job], sizeof s->host[job], "%s", a->host);
    if (a->err) snprintf(s->why[job], sizeof s->why[job], "%s", a->err->msg);
    s->n++;
    return CDMPP_OK;
}

static void on_event(void *ctx, const char *host, const char *what) {
    seen *s = ctx;
    s->events++;
    s->dropped += strstr(what, "dropped") != NULL;
    snprintf(s->last_event, sizeof s->last_event, "%s: %s", host, what);
}

static cdmpp_status run(const char *const *script, size_t n_host, size_t n, seen *s) {
    const char *argv[4][4];
    cd_remote_host host[4];
    cd_str job[N];
    char text[N][16];
    static const char *const name[] = {"a", "b", "c", "d"};
    for (size_t k = 0; k < n_host; k++) {
        const char *const all[] = {"sh", "-c", script[k], NULL};
        memcpy(argv[k], all, sizeof all);
        host[k] = (cd_remote_host){name[k], argv[k]};
    }
    for (size_t i = 0; i < n; i++) {
        const int len = snprintf(text[i], sizeof text[i], "job-%zu", i + 1);
        job[i] = (cd_str){text[i], (size_t)len};
    }
    *s = (seen){0};
    const cd_remote_policy p = {
        .lease_s = 0.4, .start_s = 0.3, .silence_s = 0.25, .retry_s = 0.005, .max_failures = 3};
    const cd_remote_watch w = {on_answer, on_event, s, NULL};
    return cd_remote_run(host, n_host, &p, job, n, "", &w, &err);
}

static const char good[] = HELLO LOOP ANSWER "done";
/* So that both workers of a pair get jobs. */
static const char slow[] = HELLO LOOP "sleep 0.02; " ANSWER "done";

static void all_good(const seen *s, size_t n) {
    assert_int_equal(s->n, n);
    for (size_t i = 0; i < n; i++) {
        if (s->status[i]) fail_msg("job %zu: %s", i, s->why[i]);
        assert_true(s->cost[i] == (double)(i + 1));
    }
}

TEST(answers_come_in_order) {
    const char *const two[] = {slow, good, slow};
    seen s;
    assert_ok(run(two, 3, N, &s));
    all_good(&s, N);
    assert_int_equal(s.events, 0);
    assert_ok(run(two, 2, 0, &s));
    assert_int_equal(s.n, 0);
}

/* Beside a worker that is right, whatever the other does. */
TEST(workers_that_fail) {
    static const struct {
        const char *script, *say;
    } bad[] = {
        {HELLO LOOP "sleep 60; done", "fell silent"},
        {HELLO LOOP
         "while :; do echo \"{\\\"lease\\\":$n,\\\"alive\\\":true}\"; sleep 0.05; done; done",
         "gave no answer in time"},
        {HELLO "k=0; " LOOP "k=$((k+1)); if [ $k = 2 ]; then kill -9 $$; fi; " ANSWER "done",
         "ended at work"},
        {HELLO LOOP "echo rubbish; done", "no message"},
        {HELLO LOOP "n=$((n+1)); " ANSWER "done", "lease that it has not"},
        {HELLO LOOP ANSWER ANSWER "done", "lease that it has not"},
        {HELLO LOOP "r=NaN; " ANSWER "done", "no message"},
        {HELLO LOOP "r=null; " ANSWER "done", "no time above 0"},
        {HELLO LOOP "r=-1; " ANSWER "done", "no time above 0"},
        {HELLO LOOP "r=1e99; " ANSWER "done", "no time above 0"},
        {HELLO LOOP "r=; " ANSWER "done", "without costs"},
        {HELLO LOOP "echo "
                    "\"{\\\"lease\\\":$n,\\\"error_no\\\":0,\\\"costs\\\":[1],\\\"total_s\\\":1,"
                    "\\\"timestamp\\\":1,\\\"stats\\\":{\\\"n\\\":-1}}\"; done",
         "statistics that are none"},
        {HELLO LOOP "printf '{\"lease\":'; exit; done", "ended at work"},
        {HELLO LOOP "yes | tr -d '\\n'; done", "without end"},
        {HELLO LOOP "yes \"{\\\"lease\\\":$n,\\\"alive\\\":true}\"; done", "too many lines"},
        {HELLO "exit 3", "ended"},
        {"echo welcome; echo last login; sleep 60", "did not say hello within 0.3 s"},
        {"yes welcome", "is no cdmpp-profile --worker"},
        {"echo '{\"hello\":\"cdmpp-worker\",\"protocol\":9}'; cat", "another version"},
        {"echo 'Permission denied (publickey).' >&2; exit 255",
         "it said: Permission denied (publickey)."},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        const char *const pair[] = {bad[k].script, slow};
        seen s;
        /* long enough for the silence */
        const size_t n = !strncmp(bad[k].script, "echo welcome", 12) ? N : 8;
        assert_ok(run(pair, 2, n, &s));
        if (!strstr(s.last_event, bad[k].say))
            fail_msg("case %zu: expected '%s', found '%s'", k, bad[k].say, s.last_event);
        all_good(&s, n);
    }
}

/* Alone, it is dropped, and what is left says why. */
TEST(nobody_is_left) {
    const char *const one[] = {HELLO LOOP "echo rubbish; done"};
    seen s;
    assert_ok(run(one, 1, 5, &s));
    assert_int_equal(s.n, 5);
    assert_int_equal(s.events, 3);
    assert_int_equal(s.dropped, 1);
    for (size_t i = 0; i < 5; i++) assert_int_equal(s.status[i], CDMPP_EBACKEND);
    assert_non_null(strstr(s.why[0], "no message"));
    assert_int_equal(s.attempts[0], 3);
}

TEST(a_job_is_not_tried_for_ever) {
    static const char picky[] = HELLO LOOP "if [ $r = 3 ]; then exit; fi; " ANSWER "done";
    const char *const three[] = {picky, picky, picky};
    seen s;
    assert_ok(run(three, 3, 6, &s));
    assert_int_equal(s.n, 6);
    assert_int_equal(s.status[2], CDMPP_EBACKEND);
    assert_int_equal(s.attempts[2], 3);
    for (size_t i = 0; i < 6; i++)
        assert_true(i == 2 || (!s.status[i] && s.cost[i] == (double)(i + 1)));
}

TEST(refusals) {
    static const char refuses[] = HELLO LOOP
        "echo \"{\\\"lease\\\":$n,\\\"refused\\\":\\\"EUNSUPPORTED\\\",\\\"message\\\":\\\"no such "
        "thing\\\"}\"; done";
    const char *const both[] = {refuses, refuses}, *const one[] = {refuses, slow};
    seen s;
    assert_ok(run(both, 2, 4, &s));
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(s.status[i], CDMPP_EUNSUPPORTED);
        assert_int_equal(s.attempts[i], 2); /* each was asked once */
        assert_non_null(strstr(s.why[i], "no such thing"));
    }
    assert_int_equal(s.events, 0);
    assert_ok(run(one, 2, 8, &s));
    all_good(&s, 8);
}

TEST(a_missing_program) {
    const char *const argv[] = {"/nonexistent/worker", NULL};
    const cd_remote_host host = {"x", argv};
    const cd_str job = {"job-1", 5};
    seen s = {0};
    const cd_remote_policy p = {.retry_s = 0.001, .max_failures = 2};
    const cd_remote_watch w = {on_answer, on_event, &s, NULL};
    assert_ok(cd_remote_run(&host, 1, &p, &job, 1, "", &w, &err));
    assert_int_equal(s.status[0], CDMPP_EBACKEND);
    assert_non_null(strstr(s.last_event, "No such file"));
}

TEST(a_stop_ends_it) {
    static volatile sig_atomic_t stop = 1;
    const char *const argv[] = {"sleep", "60", NULL};
    const cd_remote_host host = {"x", argv};
    const cd_str job = {"job-1", 5};
    seen s = {0};
    const cd_remote_policy p = {0};
    const cd_remote_watch w = {on_answer, on_event, &s, &stop};
    assert_status(cd_remote_run(&host, 1, &p, &job, 1, "", &w, &err), CDMPP_EINTERRUPTED);
    assert_status(cd_remote_run(&host, 0, &p, &job, 1, "", &w, &err), CDMPP_EUSAGE);
}

/* ---- our own worker, measured time: its extent; it needs longer than a sign of life ---- */
static cdmpp_status fake_setup(void *ctx, const cd_json *setup, cdmpp_err *e) {
    return cd_err_key(e, cd_json_int(cd_json_get(setup, "bad"), 0, 99, ctx, e), "bad");
}

static cdmpp_status fake(void *ctx, cd_str line, cd_remote_times *out, cdmpp_err *e) {
    const int64_t *bad = ctx;
    static cd_arena a;
    cd_record r;
    cd_arena_reset(&a);
    CD_TRY(cd_record_read(&a, line.p, line.n, &r, e));
    if (r.n_step != 1) return CD_FAIL(e, EUNSUPPORTED, "expected one step");
    if (*bad == r.step[0].i[1]) _exit(1);
    const struct timespec t = {0, 80000000};
    nanosleep(&t, NULL);
    *out =
        (cd_remote_times){.n_cost = 2, .cost_s = {r.step[0].i[1], 1}, .total_s = 1, .timestamp = 5};
    out->has_stats = r.step[0].i[1] != 2;
    out->stats = (cd_remote_stats){.n = 7, .min_s = 1e-3, .cycles = -1};
    return CDMPP_OK;
}

static int serve(void) {
    int64_t bad = 0;
    const cd_remote_about about = {.device = "test"};
    const cd_remote_service s = {fake_setup, fake, &bad, &about, 0.02};
    cdmpp_err e = {0};
    return (int)cd_remote_serve(0, 1, &s, &e);
}

TEST(our_own_worker) {
    const char *const argv[] = {self, "--serve", NULL};
    const cd_remote_host host[] = {{"x", argv}, {"y", argv}};
    char text[6][256];
    cd_str job[6];
    seen s = {0};
    for (int i = 0; i < 6; i++) {
        const int n = snprintf(text[i], sizeof text[i],
                               "{\"i\": [[\"[\\\"k\\\"]\", \"llvm\"], [[], [[\"SP\", 0, 0, %d, "
                               "[1], 1]]]], \"r\": [[1], 0, 1, 1], \"v\": \"v0.3\"}",
                               i + 1);
        job[i] = (cd_str){text[i], (size_t)n};
    }
    job[4] = (cd_str){"{\"i\": 3}", 8};
    const cd_remote_policy p = {.silence_s = 0.06, .lease_s = 5, .retry_s = 0.01};
    const cd_remote_watch w = {on_answer, on_event, &s, NULL};
    assert_ok(cd_remote_run(host, 2, &p, job, 6, "{\"bad\":3}", &w, &err));
    assert_int_equal(s.n, 6);
    for (int i = 0; i < 6; i++) {
        if (i == 2) assert_int_equal(s.status[i], CDMPP_EBACKEND); /* it ends every worker */
        else if (i == 4) assert_int_equal(s.status[i], CDMPP_ESCHEMA);
        else if (s.status[i]) fail_msg("job %d: %s", i, s.why[i]);
        else assert_true(s.cost[i] == i + 1);
        if (s.status[i]) continue;
        assert_true(s.runs[i] == (i == 1 ? -1 : 7)); /* statistics, where there are any */
        assert_string_equal(s.device[i], "test");
    }
}

TEST(a_setup_that_fails) {
    const char *const argv[] = {self, "--serve", NULL};
    const cd_remote_host host = {"x", argv};
    const cd_str job = {"job-1", 5};
    seen s = {0};
    const cd_remote_policy p = {0};
    const cd_remote_watch w = {on_answer, on_event, &s, NULL};
    assert_ok(cd_remote_run(&host, 1, &p, &job, 1, "{\"bad\":1000}", &w, &err));
    assert_int_equal(s.status[0], CDMPP_ERANGE);
    assert_non_null(strstr(s.why[0], "bad: "));
}

TEST(ways_to_a_host) {
    cd_arena a = {0};
    cd_remote_host h;
    const char *const more[] = {"--isa=avx2", "--cold"}, *const evil[] = {"--isa=$(reboot)"};
    assert_ok(cd_remote_reach(&a, "pi@board-1", 2222, NULL, more, 2, &h, &err));
    char all[256] = "";
    for (size_t i = 0; h.argv[i]; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s ", h.argv[i]);
    assert_string_equal(all, "ssh -o BatchMode=yes -o ServerAliveInterval=10 -p 2222 -- pi@board-1 "
                             "cdmpp-profile --worker --isa=avx2 --cold ");
    assert_ok(cd_remote_reach(&a, "pi@board-1", 0, NULL, NULL, 0, &h, &err));
    assert_string_equal(h.argv[5], "--");
    assert_status(cd_remote_reach(&a, "b", 0, NULL, evil, 1, &h, &err), CDMPP_EUSAGE);
    assert_status(cd_remote_reach(&a, "-oProxyCommand=x", 0, NULL, NULL, 0, &h, &err),
                  CDMPP_EUSAGE);
    assert_status(cd_remote_reach(&a, "a b", 0, NULL, NULL, 0, &h, &err), CDMPP_EUSAGE);
    assert_status(cd_remote_reach(&a, "", 0, NULL, NULL, 0, &h, &err), CDMPP_EUSAGE);
    assert_ok(cd_remote_reach(&a, "b", 7, "exec x", more, 1, &h, &err));
    assert_string_equal(h.argv[2], "exec x");
    assert_string_equal(h.argv[4], "b");
    assert_string_equal(h.argv[5], "7");
    assert_string_equal(h.argv[6], "--isa=avx2");
    cd_arena_free(&a);
}

static int serve_program(int argc, char **argv) {
    (void)argc, (void)argv;
    return serve();
}

static int run_suite(void) {
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_in_order),
        cmocka_unit_test(workers_that_fail),
        cmocka_unit_test(nobody_is_left),
        cmocka_unit_test(a_job_is_not_tried_for_ever),
        cmocka_unit_test(refusals),
        cmocka_unit_test(a_missing_program),
        cmocka_unit_test(a_stop_ends_it),
        cmocka_unit_test(our_own_worker),
        cmocka_unit_test(ways_to_a_host),
        cmocka_unit_test(a_setup_that_fails),
    };
    return cmocka_run_group_tests_name("remote", tests, NULL, NULL);
}

SUITE(.run = run_suite, .word = "--serve", .program = serve_program)
