/* wrap: this program, run again under the library, allocates what is asked and must be found
 * out. */
#include "profiler/wrap/wrap.h"
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text/text.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* has its own allocator and wants to be the first library */
#else
#define SANITIZED 0
#endif

enum { MB = 1000000, THREADS = 4, ROUNDS = 20000 };
static cdmpp_err err;
static char self[4096];

/* ---- what is watched ---- */
static void *volatile kept;

static void *churn(void *arg) {
    for (int i = 0; i < ROUNDS; i++) {
        char *p = malloc(100 + (size_t)(i % 7));
        p[0] = 1;
        p = realloc(p, 300);
        free(p);
    }
    return arg;
}

static void *span_churn(void *arg) {
    for (int i = 0; i < 100; i++) {
        cdmpp_span *s;
        cdmpp_span_cost c = {.size = sizeof c};
        if (cdmpp_span_begin("thread", &s, NULL)) abort();
        void *volatile p = malloc(5 * MB);
        if (cdmpp_span_end(s, &c, NULL) || c.heap_total < 5 * MB) abort();
        free(p);
    }
    return arg;
}

/* A span with another in it, which frees what came before both; and threads that allocate while a
 * span is open. */
static int spans(void) {
    cdmpp_span *out, *in;
    cdmpp_span_cost outer = {.size = sizeof outer};
    cdmpp_span_cost inner = {.size = sizeof inner};
    cdmpp_span_cost busy = {.size = sizeof busy};
    pthread_t t[THREADS];
    void *volatile before = malloc(4 * MB);
    for (int round = 0; round < 2; round++) {
        if (cdmpp_span_begin("outer", &out, NULL)) return 1;
        void *volatile a = malloc(10 * MB);
        free(a);
        if (cdmpp_span_begin("inner", &in, NULL)) return 1;
        void *volatile b = malloc(2 * MB);
        free(before);
        if (cdmpp_span_end(in, &inner, NULL)) return 1;
        before = malloc(1 * MB);
        if (cdmpp_span_end(out, &outer, NULL)) return 1;
        if (inner.missing[0] || inner.heap_peak < 2 * MB || inner.heap_peak > 3 * MB ||
            inner.heap_total < 2 * MB || inner.heap_total > 3 * MB)
            return 2;
        if (outer.heap_peak < 10 * MB || outer.heap_peak > 11 * MB || outer.heap_total < 13 * MB ||
            outer.heap_total > 14 * MB)
            return 3;
        /* 2 and 1 MB came; 4 MB went in the first round, 1 in the second */
        const int64_t left = (round ? 2 : -1) * MB;
        if (outer.heap_live < left - 100000 || outer.heap_live > left + 100000 ||
            inner.heap_live > outer.heap_live)
            return 4;
        if (outer.seconds < inner.seconds || inner.seconds < 0 || outer.device_peak ||
            outer.device_live)
            return 5;
        free(b);
    }
    if (cdmpp_span_begin("busy", &out, NULL)) return 1;
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, span_churn, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    if (cdmpp_span_end(out, &busy, NULL)) return 1;
    return busy.heap_peak < 5 * MB || busy.heap_total < THREADS * 100 * 5LL * MB ? 6 : 0;
}

static int watched(const char *what) {
    if (!strcmp(what, "peak")) { /* 10 MB and 5 MB at once, 5 MB left */
        void *volatile a = malloc(10 * MB);
        kept = calloc(5, MB);
        free(a);
        return 0;
    }
    if (!strcmp(what, "threads")) {
        pthread_t t[THREADS];
        for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, churn, NULL);
        for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
        return 0;
    }
    if (!strcmp(what, "fork")) { /* the child's 20 MB are not ours */
        kept = malloc(1 * MB);
        const pid_t pid = fork();
        if (!pid) {
            kept = malloc(20 * MB);
            exit(0);
        }
        waitpid(pid, NULL, 0);
        return 0;
    }
    if (!strcmp(what, "aligned")) {
        void *p = NULL;
        if (posix_memalign(&p, 4096, 2 * MB)) return 1;
        kept = aligned_alloc(64, 3 * 1024 * 1024);
        free(p);
        return 0;
    }
    if (!strcmp(what, "rss")) {
        char *p = malloc(64 * MB);
        memset(p, 1, 64 * MB);
        kept = p;
        return 0;
    }
    if (!strcmp(what, "spans")) return spans();
    if (!strcmp(what, "idle")) return 0;
    if (!strcmp(what, "abort")) abort();
    if (!strcmp(what, "sleep")) {
        const struct timespec t = {0, 100000000};
        nanosleep(&t, NULL);
    }
    return 7;
}

/* ---- watching ---- */
static cd_process_profile_report watch(cd_arena *a, const char *what) {
    char flag[] = "--watched", word[16];
    snprintf(word, sizeof word, "%s", what);
    char *const argv[] = {self, flag, word, NULL};
    cd_process_profile_report r;
    assert_ok(cd_process_profile_run(a, argv, SANITIZED ? "" : NULL, &r, &err));
    return r;
}

static void need_library(void) {
    if (SANITIZED) skip();
}

/* Between `low` and a little more: what else the program and its libraries allocate. */
#define ABOUT(x, low) assert_in_range((uint64_t)(x), (uint64_t)(low), (uint64_t)(low) + 300000)

TEST(peak_and_live) {
    need_library();
    cd_arena a = {0};
    const cd_process_profile_report r = watch(&a, "peak");
    assert_true(r.has_heap);
    ABOUT(r.own.peak_bytes, 15 * MB);
    ABOUT(r.own.live_bytes, 5 * MB);
    ABOUT(r.own.total_bytes, 15 * MB);
    assert_int_equal(r.n_image, 1);
    assert_true(r.code == 0 && !r.signaled);
    cd_arena_free(&a);
}

TEST(counts_of_threads) {
    need_library();
    cd_arena a = {0};
    /* what libraries allocate at their start is no part of it */
    const cd_process_profile_report r = watch(&a, "threads"), idle = watch(&a, "idle");
    assert_in_range(r.own.n_malloc - idle.own.n_malloc, THREADS * ROUNDS, THREADS * ROUNDS + 50);
    assert_in_range(r.own.n_realloc - idle.own.n_realloc, THREADS * ROUNDS, THREADS * ROUNDS + 50);
    assert_in_range(r.own.n_free - idle.own.n_free, THREADS * ROUNDS, THREADS * ROUNDS + 50);
    /* 103 and 300 in the mean */
    assert_in_range(r.own.total_bytes - idle.own.total_bytes, THREADS * (ROUNDS * 403LL - 9),
                    THREADS * ROUNDS * 403LL + 100000);
    assert_true(r.own.live_bytes - idle.own.live_bytes >= 0 &&
                r.own.live_bytes - idle.own.live_bytes < 300000);
    cd_arena_free(&a);
}

TEST(children_apart) {
    need_library();
    cd_arena a = {0};
    const cd_process_profile_report r = watch(&a, "fork");
    assert_int_equal(r.n_image, 2);
    ABOUT(r.own.peak_bytes, 1 * MB);
    assert_true(r.image[1].pid != r.pid);
    assert_int_equal(r.image[1].parent, r.pid);
    ABOUT(r.image[1].peak_bytes, 21 * MB);
    cd_arena_free(&a);
}

TEST(aligned_memory) {
    need_library();
    cd_arena a = {0};
    const cd_process_profile_report r = watch(&a, "aligned");
    assert_int_equal(r.own.n_aligned, 2);
    ABOUT(r.own.peak_bytes, 2 * MB + 3 * 1024 * 1024);
    ABOUT(r.own.live_bytes, 3 * 1024 * 1024);
    cd_arena_free(&a);
}

TEST(spans_of_a_program) {
    need_library();
    cd_arena a = {0};
    const cd_process_profile_report r = watch(&a, "spans");
    assert_int_equal(r.code, 0);
    assert_true(r.n_span == 4 && !r.n_span_lost);
    /* the inner one ended first */
    const cd_process_profile_spans *inner = &r.span[0], *outer = &r.span[1];
    assert_string_equal(inner->name, "inner");
    assert_string_equal(outer->name, "outer");
    assert_true(inner->n == 2 && outer->n == 2 && outer->pid == r.pid &&
                outer->seconds >= inner->seconds);
    ABOUT(inner->peak_bytes, 2 * MB);
    ABOUT(outer->peak_bytes, 10 * MB);
    assert_in_range((uint64_t)outer->live_bytes, 900000, 1300000); /* -1 and 2 */
    ABOUT(outer->total_bytes, 26 * MB);
    assert_string_equal(r.span[2].name, "thread");
    assert_int_equal(r.span[2].n, THREADS * 100);
    cd_buf b = {0};
    cd_process_profile_put_text(&b, &r);
    assert_non_null(strstr(b.p, "\nspans: times, "));
    assert_non_null(strstr(b.p, "\n  thread                        400 "));
    cd_buf_clear(&b);
    cd_process_profile_put_json(&b, &r);
    const cd_json *j;
    assert_ok(cd_json_parse(&a, b.p, b.n, &j, &err));
    assert_non_null(strstr(b.p, "\"spans\":[{\"name\":\"inner\",\"pid\":"));
    assert_non_null(strstr(b.p, "],\"spans_lost\":0}"));
    cd_buf_free(&b);
    cd_arena_free(&a);
}

/* Nobody counts: times are there, and bytes are said to be unknown. */
TEST(span_without_the_library) {
    cdmpp_span *s;
    cdmpp_span_cost c = {.size = sizeof c};
    assert_int_equal(cdmpp_span_begin("", &s, &err), CDMPP_EINVALID);
    assert_int_equal(cdmpp_span_end(NULL, &c, &err), CDMPP_EINVALID);
    assert_ok(cdmpp_span_begin("alone", &s, &err));
    assert_ok(cdmpp_span_end(s, &c, &err));
    assert_true(c.seconds >= 0 && c.cpu_seconds >= 0 && c.heap_peak == CDMPP_UNKNOWN &&
                c.heap_live == CDMPP_UNKNOWN && c.device_peak == CDMPP_UNKNOWN);
    assert_non_null(strstr(c.missing, "libcdmpp-wrap.so is not loaded"));
    assert_ok(cdmpp_span_begin("alone", &s, &err));
    c.size = 8;
    assert_int_equal(cdmpp_span_end(s, &c, &err), CDMPP_EUSAGE);
    assert_ok(cdmpp_span_begin("alone", &s, &err));
    assert_ok(cdmpp_span_end(s, NULL, &err));
}

TEST(resident_memory) {
    cd_arena a = {0};
    const cd_process_profile_report r = watch(&a, "rss");
    assert_true(r.max_rss_kb >= 62500);
    if (SANITIZED) {
        cd_arena_free(&a);
        return;
    }
    assert_true(r.rss_own);
    assert_in_range(r.max_rss_kb, 62500, 62500 + 40000);
    cd_arena_free(&a);
}

/* The watcher's own memory is not the watched one's. */
TEST(small_programs_stay_small) {
    need_library();
    cd_arena a = {0};
    char *big = malloc(100 * MB), word[] = "true";
    memset(big, 1, 100 * MB);
    char *const argv[] = {word, NULL};
    cd_process_profile_report r;
    assert_ok(cd_process_profile_run(&a, argv, NULL, &r, &err));
    assert_true(r.rss_own);
    assert_true(r.max_rss_kb < 20000);
    free(big);
    cd_arena_free(&a);
}

TEST(ends_and_times) {
    cd_arena a = {0};
    cd_process_profile_report r = watch(&a, "sleep");
    assert_int_equal(r.code, 7);
    /* a sanitizer's start takes time on both processors */
    assert_true(r.wall_s >= 0.1 && r.user_s + r.sys_s < r.wall_s + 1);
    r = watch(&a, "abort");
    assert_true(r.signaled);
    assert_int_equal(r.code, SIGABRT);
    assert_false(r.rss_own);
    char none[] = "/nonexistent/program";
    char *const argv[] = {none, NULL};
    assert_status(cd_process_profile_run(&a, argv, "", &r, &err), CDMPP_EIO);
    cd_arena_free(&a);
}

/* ---- printing: every number is another one ---- */
static const cd_process_profile_heap child = {.pid = 12,
                                              .parent = 11,
                                              .n_malloc = 1,
                                              .n_calloc = 2,
                                              .n_realloc = 4,
                                              .n_aligned = 8,
                                              .n_free = 16,
                                              .total_bytes = 5000000,
                                              .live_bytes = 1500000,
                                              .peak_bytes = 2250000,
                                              .name = "child"};
static const cd_process_profile_heap own = {.pid = 11,
                                            .parent = 10,
                                            .n_malloc = 100,
                                            .n_calloc = 200,
                                            .n_realloc = 300,
                                            .n_aligned = 400,
                                            .n_free = 500,
                                            .total_bytes = 7000000,
                                            .live_bytes = 3000000,
                                            .peak_bytes = 4000000,
                                            .high_water_kb = 777,
                                            .name = "a \"b\""};

/* The kernel counts in KiB: 1000 of them are 1.024 MB. */
static const cd_process_profile_spans conv = {.pid = 11,
                                              .name = "conv",
                                              .n = 6,
                                              .seconds = 0.25,
                                              .peak_bytes = 1000000,
                                              .live_bytes = -2000000,
                                              .total_bytes = 3000000,
                                              .device_peak_bytes = 4000000,
                                              .device_live_bytes = 5000000};

static void text_of_a_report(void **state) {
    (void)state;
    cd_process_profile_heap image[] = {own, child};
    cd_process_profile_report r = {.pid = 11,
                                   .code = 3,
                                   .wall_s = 1.5,
                                   .user_s = 0.25,
                                   .sys_s = 0.125,
                                   .max_rss_kb = 1000,
                                   .rss_own = true,
                                   .minor_faults = 21,
                                   .major_faults = 22,
                                   .waited = 23,
                                   .preempted = 24,
                                   .has_heap = true,
                                   .own = own,
                                   .image = image,
                                   .n_image = 5,
                                   .n_lost = 3,
                                   .span = &conv,
                                   .n_span = 3,
                                   .n_span_lost = 2,
                                   .why_no_heap = ""};
    cd_buf b = {0};
    cd_process_profile_put_text(&b, &r);
    assert_null(strstr(b.p, "packages"));
    cd_buf_clear(&b);
    r.energy_j = 30;
    cd_process_profile_put_text(&b, &r);
    assert_non_null(strstr(
        b.p,
        "preempted\npackages of the processors: 30.000 J, 20.0 W, other programs included\nheap"));
    cd_buf_clear(&b);
    r.energy_j = 0;
    cd_process_profile_put_text(&b, &r);
    assert_string_equal(
        b.p,
        "exit status 3, wall 1.500000 s, user 0.250000 s, system 0.125000 s\n"
        "resident peak 1.024 MB; faults 21 minor, 22 major; switches 23 waiting, 24 preempted\n"
        "heap peak 4.000 MB, live at the end 3.000 MB; 700 allocations of 7.000 MB, 300 "
        "reallocations, 500 freed\n"
        "  child[12]: heap peak 2.250 MB, live at the end 1.500 MB; 11 allocations of 5.000 MB, 4 "
        "reallocations, 16 freed\n"
        "  and 3 processes more\n"
        "spans: times, seconds together; heap: peak, left, asked for; device: peak, left (MB)\n"
        "  conv                            6     0.250000       1.000     -2.000      3.000       "
        "4.000      5.000\n"
        "  and 2 spans more\n");
    cd_buf_clear(&b);
    r.signaled = true, r.rss_own = r.has_heap = false,
    r.n_image = r.n_lost = r.n_span = r.n_span_lost = 0, r.why_no_heap = "it is static";
    cd_process_profile_put_text(&b, &r);
    assert_string_equal(b.p, "signal 3, wall 1.500000 s, user 0.250000 s, system 0.125000 s\n"
                             "resident peak 1.024 MB (of it and its children); faults 21 minor, 22 "
                             "major; switches 23 waiting, 24 preempted\n"
                             "heap not known: it is static\n");
    cd_buf_free(&b);
}

static void json_of_a_report(void **state) {
    (void)state;
    cd_process_profile_heap image[] = {own, child};
    cd_process_profile_report r = {.pid = 11,
                                   .code = 3,
                                   .wall_s = 1.5,
                                   .user_s = 0.25,
                                   .sys_s = 0.125,
                                   .max_rss_kb = 1000,
                                   .rss_own = true,
                                   .minor_faults = 21,
                                   .major_faults = 22,
                                   .waited = 23,
                                   .preempted = 24,
                                   .has_heap = true,
                                   .own = own,
                                   .image = image,
                                   .n_image = 5,
                                   .n_lost = 3,
                                   .span = &conv,
                                   .n_span = 3,
                                   .n_span_lost = 2,
                                   .why_no_heap = ""};
    cd_buf b = {0};
#define OWN                                                                                        \
    "{\"pid\":11,\"parent\":10,\"name\":\"a "                                                      \
    "\\\"b\\\"\",\"peak_bytes\":4000000,\"live_bytes\":3000000,\"total_bytes\":7000000,"           \
    "\"malloc\":100,"                                                                              \
    "\"calloc\":200,\"realloc\":300,\"aligned\":400,\"free\":500,\"max_rss_kb\":777}"
    cd_process_profile_put_json(&b, &r);
    assert_string_equal(
        b.p,
        "{\"exit\":3,\"wall_s\":1.5,\"user_s\":0.25,\"sys_s\":0.125,\"package_energy_j\":null,"
        "\"max_rss_kb\":1000,\"max_rss_of\":\"program\",\"minor_faults\":21,"
        "\"major_faults\":22,\"voluntary_switches\":23,\"involuntary_switches\":24,\"heap\":" OWN
        ",\"why_no_heap\":\"\",\"processes\":[" OWN
        ",{\"pid\":12,\"parent\":11,\"name\":\"child\",\"peak_bytes\":2250000,\"live_bytes\":"
        "1500000,\"total_bytes\":5000000,\"malloc\":1,"
        "\"calloc\":2,\"realloc\":4,\"aligned\":8,\"free\":16,\"max_rss_kb\":null}],\"processes_"
        "lost\":3,\"spans\":[{\"name\":\"conv\",\"pid\":11,"
        "\"times\":6,\"seconds\":0.25,\"peak_bytes\":1000000,\"live_bytes\":-2000000,\"total_"
        "bytes\":3000000,\"device_peak_bytes\":4000000,"
        "\"device_live_bytes\":5000000}],\"spans_lost\":2}");
    cd_buf_clear(&b);
    r.signaled = true, r.rss_own = r.has_heap = false,
    r.n_image = r.n_lost = r.n_span = r.n_span_lost = 0, r.why_no_heap = "it is static";
    cd_process_profile_put_json(&b, &r);
    assert_string_equal(
        b.p, "{\"signal\":3,\"wall_s\":1.5,\"user_s\":0.25,\"sys_s\":0.125,\"package_energy_j\":"
             "null,\"max_rss_kb\":1000,\"max_rss_of\":\"tree\",\"minor_faults\":21,"
             "\"major_faults\":22,\"voluntary_switches\":23,\"involuntary_switches\":24,\"heap\":"
             "null,\"why_no_heap\":\"it is static\","
             "\"processes\":[],\"processes_lost\":0,\"spans\":[],\"spans_lost\":0}");
    cd_buf_free(&b);
}

/* A shell and what it runs, its own environment kept. */
TEST(shells) {
    need_library();
    cd_arena a = {0};
    cd_buf b = {0};
    char sh[] = "sh", c[] = "-c",
         text[] = "test -n \"$LD_PRELOAD\" && ls / >/dev/null; exec cat </dev/null";
    char *const argv[] = {sh, c, text, NULL};
    cd_process_profile_report r;
    assert_ok(cd_process_profile_run(&a, argv, NULL, &r, &err));
    assert_int_equal(r.code, 0);
    assert_true(r.n_image >= 3);
    assert_string_equal(r.own.name, "cat");
    cd_process_profile_put_json(&b, &r);
    const cd_json *v;
    assert_ok(cd_json_parse(&a, b.p, b.n, &v, &err));
    assert_int_equal(cd_json_get(v, "processes")->n, r.n_image);
    cd_buf_clear(&b);
    cd_process_profile_put_text(&b, &r);
    assert_non_null(strstr(b.p, "  ls["));
    assert_non_null(strstr(b.p, "  sh["));
    cd_buf_free(&b);
    cd_arena_free(&a);
}

TEST(without_the_library) {
    cd_arena a = {0};
    char word[] = "true";
    char *const argv[] = {word, NULL};
    cd_process_profile_report r;
    assert_ok(cd_process_profile_run(&a, argv, "", &r, &err));
    assert_false(r.has_heap);
    assert_string_equal(r.why_no_heap, "not asked for");
    /* the loader complains and goes on */
    assert_ok(cd_process_profile_run(&a, argv, "/nonexistent.so", &r, &err));
    assert_false(r.has_heap);
    assert_non_null(strstr(r.why_no_heap, "did not load"));
    cd_arena_free(&a);
}

static int watched_program(int argc, char **argv) { return argc > 2 ? watched(argv[2]) : 2; }

static int run_suite(void) {
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peak_and_live),
        cmocka_unit_test(counts_of_threads),
        cmocka_unit_test(children_apart),
        cmocka_unit_test(aligned_memory),
        cmocka_unit_test(resident_memory),
        cmocka_unit_test(small_programs_stay_small),
        cmocka_unit_test(ends_and_times),
        cmocka_unit_test(shells),
        cmocka_unit_test(without_the_library),
        cmocka_unit_test(text_of_a_report),
        cmocka_unit_test(json_of_a_report),
        cmocka_unit_test(spans_of_a_program),
        cmocka_unit_test(span_without_the_library),
    };
    return cmocka_run_group_tests_name("wrap", tests, NULL, NULL);
}

SUITE(.run = run_suite, .word = "--watched", .program = watched_program)
