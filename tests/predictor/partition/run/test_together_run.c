/* Two small products measured with one and two threads, shared out, and run together; what is
 * printed; what is refused. */
#include <math.h>
#include <string.h>
#include <sys/wait.h>

#include "base/io/io.h"
#include "check.h"
#include "fault.h"
#include "predictor/partition/report/report.h"
#include "predictor/partition/run/run.h"
#include "prog.h"
#include "profiler/host/host.h"
#include "tmp.h"

#define PRODUCT(n)                                                                                 \
    "{\"workload_key\": \"[\\\"p" #n "\\\"]\", \"ops\": [{\"name\": \"A\", \"shape\": [" #n        \
    ", 64], \"dtype\": \"float32\"},"                                                              \
    "{\"name\": \"B\", \"shape\": [64, 48], \"dtype\": \"float32\"}, {\"name\": \"C\", \"axis\": " \
    "[[\"i\", 0, " #n "], [\"j\", 0, 48]],"                                                        \
    "\"reduce_axis\": [[\"k\", 0, 64]], \"reduce\": \"sum\", \"body\": \"A[i, k]*B[k, j]\"}], "    \
    "\"args\": [\"A\", \"B\", \"C\"]}"
/* Rows in parallel. */
#define RECORD(n, steps)                                                                           \
    "{\"i\": [[\"[\\\"p" #n "\\\"]\", " PROG_CPU ", \"\", 0, []], [[], " steps                     \
    "]], \"r\": [[0.1], 0, 0.5, 1600000000], \"v\": \"v0.6\"}\n"
#define ROWS "[[\"AN\", 2, 0, 3]]"

static cdmpp_err err;
static tmp_dir dir;
static const char *tasks, *log_path, *empty;
static int threads;

static const char *put(const char *name, const char *text) {
    return tmp_put(&dir, name, text, strlen(text));
}

static int up(void **state) {
    static char t[600], l[600], e[600];
    (void)state;
    dir = tmp_make();
    tasks = strcpy(
        t, put("t.tasks.json", "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [" PRODUCT(
                                   32) "," PRODUCT(64) "]}"));
    log_path = strcpy(l, put("l.json", RECORD(32, ROWS) RECORD(64, ROWS)));
    empty = strcpy(e, put("e.json", ""));
    threads = cd_affinity_count() >= 2 ? 2 : 1;
    return 0;
}

static int down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

static cd_together_options options(const char *const *file) {
    return (cd_together_options){.measure = {.task_file = &tasks,
                                             .n_task_file = 1,
                                             .threads = threads,
                                             .target = "llvm",
                                             .best = {.path = file, .n_path = 1, .max = 2},
                                             .measure = {.cache = dir.path,
                                                         .jobs = 1,
                                                         .timing = {.budget_s = 0.002,
                                                                    .warmup_s = 1e-4,
                                                                    .min_repeat_s = 1e-4}}},
                                 .run = true,
                                 .policy = {.window_s = 0.005, .rounds = 2, .limit_s = 60}};
}

/* What is kept measured best; equal shares are the tuned ones here, so they do not run. */
static void check_ways(const cd_together *t) {
    assert_true(t->ran && t->way[CD_TOGETHER_ONE_BY_ONE].there && !t->way[CD_TOGETHER_EQUAL].there);
    assert_int_equal(t->way[CD_TOGETHER_TUNED].there, threads == 2);
    for (int k = 0; k < CD_TOGETHER_WAYS; k++) {
        const cd_together_way *w = &t->way[k];
        if (!w->there) continue;
        assert_true(w->best_s > 0 && w->best_s <= w->pass_s && w->low_s <= w->high_s);
        assert_true(t->way[t->kept].pass_s <= w->pass_s);
    }
}

static void check_table(const cd_together *t) {
    const cd_cotune_table *m = &t->table;
    assert_int_equal(m->n_op, 2);
    assert_int_equal(m->threads, threads);
    for (int k = 0; k < 2; k++) {
        assert_string_equal(m->name[k], k ? "[\"p64\"]" : "[\"p32\"]");
        assert_true(isinf(m->seconds[k][0]) && m->seconds[k][1] > 1e-8 && m->seconds[k][1] < 1);
        /* it may leave a thread idle */
        if (threads == 2) assert_true(m->seconds[k][2] <= m->seconds[k][1]);
        assert_true(m->bytes[k] == 4 * ((k ? 64 : 32) * (64 + 48) + 64 * 48));
    }
    assert_close(t->tuned.sequential_s, m->seconds[0][threads] + m->seconds[1][threads], 1e-12, 0);
}

/* The file that is written is one that the command reads, with the same times. */
static void check_csv(const cd_together *t) {
    cd_cotune_table back = {0};
    cd_buf b = {0};
    cd_together_csv(t, &b);
    const char *path = put("times.csv", b.p);
    cd_buf_free(&b);
    assert_ok(cd_cotune_read(&path, 1, (uint32_t)threads, NULL, &back, &err));
    assert_int_equal(back.n_op, 2);
    for (int k = 0; k < 2; k++) {
        assert_string_equal(back.name[k], t->table.name[k]);
        for (int n = 1; n <= threads; n++)
            assert_close(back.seconds[k][n], t->table.seconds[k][n], 0, 1e-8);
    }
    cd_arena_free(&back.arena);
}

static void check_prints(const cd_together *t) {
    cd_buf b = {0};
    const cd_json *j;
    cd_arena a = {0};
    cd_partition_report_together(t, &b);
    assert_non_null(strstr(b.p, "program 1: [\"p64\"]"));
    assert_non_null(strstr(b.p, "run here"));
    assert_non_null(strstr(b.p, "kept: "));
    cd_buf_clear(&b);
    cd_partition_report_together_json(t, &b);
    assert_ok(cd_json_parse(&a, b.p, b.n, &j, &err));
    assert_non_null(strstr(
        b.p,
        "\"measured\":[{\"name\":\"[\\\"p32\\\"]\",\"threads\":1,\"error_no\":0,\"seconds\":"));
    assert_non_null(strstr(b.p, "\"ways\":[{\"name\":\"one after the other\",\"predicted_s\":"));
    cd_arena_free(&a);
    cd_buf_free(&b);
    FAULT_SWEEP(f, 3) {
        cd_partition_report_together(t, &b);
        cd_together_csv(t, &b);
        f.st = b.oom ? CDMPP_ENOMEM : CDMPP_OK;
        cd_buf_free(&b);
    }
    FAULT_SWEEP(f, 3) {
        cd_partition_report_together_json(t, &b);
        f.st = b.oom ? CDMPP_ENOMEM : CDMPP_OK;
        cd_buf_free(&b);
    }
}

TEST(test_two_products) {
    cd_together t;
    const cd_together_options o = options(&log_path);
    assert_ok(cd_together_make(&o, &t, &err));
    check_table(&t);
    check_ways(&t);
    check_csv(&t);
    check_prints(&t);
    cd_together_free(&t);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
}

TEST(test_refused) {
    cd_together t;
    cd_together_options o = options(&empty);
    assert_status(cd_together_make(&o, &t, &err), CDMPP_ENODATA);
    cd_together_free(&t);
    o = options(&log_path);
    o.measure.threads = 4096;
    assert_status(cd_together_make(&o, &t, &err), CDMPP_EUSAGE);
    cd_together_free(&t);
    /* No step can have stage 9: the program is an error with each number of threads. */
    static char bad[600];
    const char *const path = strcpy(bad, put("bad.json", RECORD(32, "[[\"AN\", 9, 0, 3]]")));
    o = options(&path);
    assert_status(cd_together_make(&o, &t, &err), CDMPP_ENODATA);
    assert_non_null(strstr(err.msg, "no time with one thread"));
    assert_int_equal(t.programs->bad, threads);
    cd_together_free(&t);
}

/* Without the run: what runs is forked, and refuses nothing. */
TEST(test_no_memory) {
    cd_together_options o = options(&log_path);
    o.run = false;
    FAULT_SWEEP(f, 10) {
        cd_together t;
        f.step = 5;
        f.st = cd_together_make(&o, &t, &f.err);
        cd_together_free(&t);
    }
}

TESTS(up, down, test_two_products, test_refused, test_no_memory)
