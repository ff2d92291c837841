/* Programs that end well, badly, late and never. */
#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profiler/host/host.h"

#define SH(text)                                                                                   \
    (const char *const[]) { "/bin/sh", "-c", (text), NULL }

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void assert_no_child(void) {
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

TEST(test_ends) {
    cd_subprocess j[] = {
        {.argv = SH("echo out; echo err >&2")},
        {.argv = SH("cat; exit 3"), .input = "given", .n_input = 5},
        {.argv = SH("kill -SEGV $$")},
        {.argv = SH("sleep 100"), .limit_s = 0.2},
        {.argv = (const char *const[]){"/nosuch/program", NULL}},
        {.argv = SH("exit 0"), .input = "never read", .n_input = 10},
    };
    cdmpp_err err = {0};
    char b[128];
    assert_ok(cd_subprocess_run(j, sizeof j / sizeof *j, 3, NULL, &err));
    assert_int_equal(j[0].end, CD_SPAWN_EXITED);
    assert_string_equal(j[0].text.p, "out\nerr\n");
    assert_int_equal(j[1].code, 3);
    assert_string_equal(j[1].text.p, "given");
    assert_int_equal(j[2].end, CD_SPAWN_SIGNALED);
    assert_int_equal(j[2].code, SIGSEGV);
    assert_non_null(strstr(cd_subprocess_say(&j[2], b, sizeof b), "signal 11"));
    assert_int_equal(j[3].end, CD_SPAWN_TIMED_OUT);
    assert_int_equal(j[4].end, CD_SPAWN_NOT_BEGUN);
    assert_int_equal(j[4].code, ENOENT);
    assert_int_equal(j[5].code, 0);
    for (size_t i = 0; i < sizeof j / sizeof *j; i++) cd_buf_free(&j[i].text);
    assert_no_child();
}

/* No more than `width` at a time, all of them in the end. */
TEST(test_width) {
    enum { N = 8 };
    cd_subprocess j[N];
    cdmpp_err err = {0};
    const char *const *nap = SH("sleep 0.05");
    for (int i = 0; i < N; i++) j[i] = (cd_subprocess){.argv = nap};
    const double t = now_s();
    assert_ok(cd_subprocess_run(j, N, 2, NULL, &err));
    assert_true(now_s() - t > 0.05 * N / 2);
    for (int i = 0; i < N; i++) assert_int_equal(j[i].code, 0), cd_buf_free(&j[i].text);
}

/* A large input and a larger output at the same time do not block each other. */
TEST(test_large) {
    const size_t n = (size_t)4 << 20;
    char *in = malloc(n);
    memset(in, 'x', n);
    cd_subprocess j = {.argv = SH("cat"), .input = in, .n_input = n, .limit_s = 20};
    cdmpp_err err = {0};
    assert_ok(cd_subprocess_run(&j, 1, 1, NULL, &err));
    assert_int_equal(j.end, CD_SPAWN_EXITED);
    assert_int_equal(j.code, 0);
    assert_int_equal(j.text.n, CD_SPAWN_TEXT);
    cd_buf_free(&j.text);
    free(in);
}

/* What a program has started ends with it. */
TEST(test_group) {
    cd_subprocess j = {.argv = SH("sleep 100 & echo $!; wait"), .limit_s = 0.2};
    cdmpp_err err = {0};
    assert_ok(cd_subprocess_run(&j, 1, 1, NULL, &err));
    const pid_t grandchild = (pid_t)strtol(j.text.p, NULL, 10);
    assert_true(grandchild > 1);
    int gone = 0;
    for (int i = 0; i < 200 && !gone; i++, usleep(10000)) { /* init may take a moment to bury it */
        char path[64], stat[256] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", (int)grandchild);
        FILE *f = fopen(path, "r");
        if (f && fgets(stat, sizeof stat, f) == NULL) stat[0] = 0;
        if (f) fclose(f);
        const char *p = strrchr(stat, ')');
        gone = !p || p[2] == 'Z';
    }
    assert_true(gone);
    cd_buf_free(&j.text);
}

static volatile sig_atomic_t stop;
static void on_alarm(int sig) { stop = sig; }

TEST(test_stopped) {
    cd_subprocess j[2] = {{.argv = SH("sleep 100")}, {.argv = SH("sleep 100")}};
    cdmpp_err err = {0};
    signal(SIGALRM, on_alarm);
    const double t = now_s();
    alarm(1);
    assert_status(cd_subprocess_run(j, 2, 1, &stop, &err), CDMPP_EINTERRUPTED);
    assert_true(now_s() - t < 5);
    assert_no_child();
    for (int i = 0; i < 2; i++) cd_buf_free(&j[i].text);
}

TESTS(NULL, NULL, test_ends, test_width, test_large, test_group, test_stopped)
