/* Programs that work, lie, crash, hang, abort, eat memory and write where they must not. */
#include "check.h"
#include "made_code.h"
#include "tmp.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/measure/measure.h"

/* Limits that no machine reaches, however loaded: max_repeat ends a measurement. */
static cd_measure_options options(void) {
    return (cd_measure_options){
        .backend = "cpu",
        .isa = "native",
        .compiler = "gcc",
        .cache = "",
        .jobs = 2,
        .threads = 1,
        .run_limit_s = 600,
        .build_limit_s = 600,
        .timing = {.budget_s = 300, .warmup_s = 0.001, .max_repeat = 5, .min_repeat_s = 0.0005}};
}

static cd_measure *open_ok(const cd_measure_options *o) {
    cd_measure *m = NULL;
    cdmpp_err err = {0};
    assert_ok(cd_measure_open(o, &m, &err));
    return m;
}

typedef struct {
    const char *body, *said;
    int error_no;
} program;

TEST(test_programs) {
    static const program p[] = {
        {MADE_ADD, "", 0},
        {"*(volatile int *)8 = 1;", "signal 11", 4},
        {MADE_ADD, "", 0},
        {"__builtin_trap();", "signal", 4},
        {"void abort(void); abort();", "signal 6", 4},
        {"void _exit(int); _exit(3);", "exit status 3", 4},
        {"c[n] = 1;", "outside of buffer 2", 4},
        {"c[-1] = 1;", "outside of buffer 2", 4},
        {"nonsense;", "compiler", 2},
        {MADE_ADD, "", 0},
    };
    enum { N = sizeof p / sizeof *p };
    static made_code made[N];
    static cd_measure_item item[N];
    cdmpp_err err = {0};
    char name[32];
    const cd_measure_options o = options();
    cd_measure *m = open_ok(&o);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "p%d", i);
        made_code_set(&made[i], name, 4096, p[i].body);
        item[i] = (cd_measure_item){.code = &made[i].code, .target = "llvm"};
    }
    assert_ok(cd_measure_build(m, item, N, &err));
    for (int i = 0; i < N; i++) {
        assert_ok(cd_measure_run(m, &item[i], &err));
        const cd_measure_result *r = &item[i].out;
        if (r->error_no != p[i].error_no || !strstr(r->err.msg, p[i].said))
            print_error("%s: %d %s\n", p[i].body, r->error_no, r->err.msg);
        assert_int_equal(r->error_no, p[i].error_no);
        assert_int_equal(!r->status, !p[i].error_no);
        assert_non_null(strstr(r->err.msg, p[i].said));
        if (p[i].error_no) continue;
        assert_true(r->time.min_s > 1e-8 && r->time.min_s < 1); /* seconds, nothing else */
        assert_true(r->time.n >= 2 && r->attempts >= 1 && r->quiet_before >= 1);
    }
    cd_measure_close(m);
    for (int i = 0; i < N; i++) made_code_free(&made[i]);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* What is late is ended, and the next program gets a fresh worker: it ends in time too, sooner or
 * later, where the machine is loaded. */
TEST(test_late) {
    made_code hang, add;
    cdmpp_err err = {0};
    cd_measure_options o = options();
    o.run_limit_s = 1;
    cd_measure *m = open_ok(&o);
    made_code_set(&hang, "hang", 64, "for (volatile int i = 0; ; ) {}");
    made_code_set(&add, "add", 64, MADE_ADD);
    cd_measure_item item[] = {{.code = &hang.code, .target = "llvm"},
                              {.code = &add.code, .target = "llvm"}};
    assert_ok(cd_measure_build(m, item, 2, &err));
    assert_ok(cd_measure_run(m, &item[0], &err));
    assert_int_equal(item[0].out.error_no, 7);
    assert_non_null(strstr(item[0].out.err.msg, "still running"));
    for (int k = 0; k < 600 && (!k || item[1].out.error_no == 7); k++) {
        item[1].out = (cd_measure_result){0}; /* one that has failed is not run again */
        assert_ok(cd_measure_run(m, &item[1], &err));
    }
    assert_int_equal(item[1].out.error_no, 0);
    cd_measure_close(m);
    made_code_free(&hang);
    made_code_free(&add);
}

/* At a time that is over nothing is compiled, and nothing runs on; without it the same measurer
 * goes on as before. Its processor time is told with that of its processes. */
TEST(test_until) {
    made_code hang, add;
    cdmpp_err err = {0};
    const cd_measure_options o = options();
    cd_measure *m = open_ok(&o);
    made_code_set(&hang, "hang", 64, "for (volatile int i = 0; ; ) {}");
    made_code_set(&add, "add", 64, MADE_ADD);
    cd_measure_item item[] = {{.code = &hang.code, .target = "llvm"},
                              {.code = &add.code, .target = "llvm"}};
    cd_measure_until(m, 0);
    assert_ok(cd_measure_build(m, &item[1], 1, &err));
    assert_int_equal(item[1].out.error_no, 6);
    cd_measure_until(m, (double)INFINITY);
    item[1].out = (cd_measure_result){0};
    assert_ok(cd_measure_build(m, item, 2, &err));
    assert_int_equal(item[1].out.error_no, 0);
    cd_measure_until(m, 0);
    assert_ok(cd_measure_run(m, &item[0], &err));
    assert_int_equal(item[0].out.error_no, 7);
    cd_measure_until(m, (double)INFINITY);
    assert_ok(cd_measure_run(m, &item[1], &err));
    assert_int_equal(item[1].out.error_no, 0);
    assert_true(cd_measure_process_time(m) > 0);
    cd_measure_close(m);
    made_code_free(&hang);
    made_code_free(&add);
}

/* One that takes all memory it can get, under a limit. */
TEST(test_memory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* their shadow needs more addresses than any limit */
#else
    made_code made, big;
    cdmpp_err err = {0};
    cd_measure_options o = options();
    o.memory_bytes = (uint64_t)512 << 20;
    cd_measure *m = open_ok(&o);
    made_code_set(&made, "eat", 64,
                  "void *malloc(unsigned long); for (;;) { volatile char *p = malloc(1 << 20); for "
                  "(int i = 0; i < 1 << 20; i += 4096) p[i] = 1; }");
    made_code_set(&big, "big", (int64_t)1 << 28, MADE_ADD);
    cd_measure_item item[] = {{.code = &made.code}, {.code = &big.code}};
    item[0].target = item[1].target = "llvm";
    for (int i = 0; i < 2; i++)
        assert_ok(cd_measure_one(m, &item[i], &err)), assert_int_equal(item[i].out.error_no, 4);
    if (!strstr(item[0].out.err.msg, "signal 11")) fail_msg("%s", item[0].out.err.msg);
    assert_int_equal(item[1].out.status, CDMPP_ENOMEM);
    cd_measure_close(m);
    made_code_free(&made);
    made_code_free(&big);
#endif
}

TEST(test_check) {
    static const program p[] = {
        {"for (int i = n; i-- > 0;) c[i] = b[i] + a[i];", "", 0},
        /* one is never written */
        {"for (int i = 0; i < n - 1; i++) c[i] = a[i] + b[i];", "c[1023] is", 5},
        {"for (int i = 0; i < n; i++) c[i] = a[i] + b[(i + 1) % n];", "wrong result", 5},
        {"for (int i = 0; i < n; i++) c[i] = (a[i] + b[i]) * 1.00001f;", "", 0},
    };
    made_code good, made;
    cdmpp_err err = {0};
    const cd_measure_options o = options();
    cd_measure *m = open_ok(&o);
    made_code_set(&good, "good", 1024, MADE_ADD);
    for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
        made_code_set(&made, "made", 1024, p[i].body);
        cd_measure_item item = {.code = &made.code, .reference = &good.code, .target = "llvm"};
        assert_ok(cd_measure_one(m, &item, &err));
        assert_int_equal(item.out.error_no, p[i].error_no);
        assert_non_null(strstr(item.out.err.msg, p[i].said));
        assert_true(item.out.flags & CD_MEASURE_CHECKED);
        assert_true(p[i].error_no || item.out.max_error < 1e-4);
        made_code_free(&made);
    }
    made_code_free(&good);
    cd_measure_close(m);
}

/* The results of a reference are kept for the next programs of it, each in a process of its own; of
 * another one it runs anew. */
TEST(test_reference_runs_once) {
    static const char *const body[] = {MADE_ADD, "for (int i = 0; i < n; i++) c[i] = 0;",
                                       "for (int i = n; i-- > 0;) c[i] = b[i] + a[i];"};
    static const int reference[] = {0, 0, 0, 1, 1, 0};
    static const int program_of[] = {0, 1, 2, 0, 1, 1};
    static const int error_no[] = {0, 5, 0, 0, 5, 5};
    tmp_dir d = tmp_make();
    char path[256], text[900];
    made_code good[2], made;
    cdmpp_err err = {0};
    const cd_measure_options o = options();
    cd_measure *m = open_ok(&o);
    snprintf(path, sizeof path, "%s", tmp_path(&d, "runs"));
    for (int k = 0; k < 2; k++) {
        snprintf(text, sizeof text,
                 "int open(const char *, int, ...), close(int); long write(int, const void *, "
                 "unsigned long); const int f = open(\"%s\", 02101, 0600);"
                 /* O_WRONLY, O_CREAT, O_APPEND */
                 "if (write(f, \"%d\", 1) != 1) c[0] = 9; close(f); " MADE_ADD,
                 path, k);
        made_code_set(&good[k], k ? "other" : "good", 1024, text);
    }
    for (int i = 0; i < 6; i++) {
        made_code_set(&made, "made", 1024, body[program_of[i]]);
        cd_measure_item item = {
            .code = &made.code, .reference = &good[reference[i]].code, .target = "llvm"};
        assert_ok(cd_measure_one(m, &item, &err));
        assert_int_equal(item.out.error_no, error_no[i]);
        assert_true(item.out.flags & CD_MEASURE_CHECKED);
        made_code_free(&made);
    }
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    fclose(f);
    assert_string_equal(text, "010");
    for (int k = 0; k < 2; k++) made_code_free(&good[k]);
    cd_measure_close(m);
    tmp_remove(&d);
}

/* A reference that does not end: the first program waits for it, the next ones do not. */
TEST(test_reference_late) {
    made_code hang, made;
    cdmpp_err err = {0};
    cd_measure_options o = options();
    o.run_limit_s = 0.4;
    cd_measure *m = open_ok(&o);
    made_code_set(&hang, "hang", 64, "for (volatile int i = 0; ; ) {}");
    made_code_set(&made, "made", 64, MADE_ADD);
    cd_measure_item item[] = {{.code = &made.code, .reference = &hang.code, .target = "llvm"},
                              {.code = &made.code, .reference = &hang.code, .target = "llvm"}};
    assert_ok(cd_measure_build(m, item, 2, &err));
    assert_ok(cd_measure_run(m, &item[0], &err));
    assert_int_equal(item[0].out.error_no, 7);
    assert_non_null(strstr(item[0].out.err.msg, "its reference is still running"));
    const cd_measure_item next = item[1];
    /* a loaded machine may be late again */
    for (int k = 0; k < 60 && (!k || item[1].out.error_no == 7); k++) {
        item[1] = next;
        assert_ok(cd_measure_run(m, &item[1], &err));
    }
    assert_int_equal(item[1].out.error_no, 4);
    assert_non_null(strstr(item[1].out.err.msg, "did not end"));
    cd_measure_close(m);
    made_code_free(&hang);
    made_code_free(&made);
}

/* Parallel programs, more than one: libgomp begins anew in every worker. */
TEST(test_parallel) {
    made_code made;
    cdmpp_err err = {0};
    cd_measure_options o = options();
    o.threads = 2;
    cd_measure *m = open_ok(&o);
    made_code_set(&made, "par", 1024,
                  "int omp_get_max_threads(void);\n#pragma omp parallel for\nfor (int i = 0; i < "
                  "n; i++) c[i] = omp_get_max_threads() == 2 ? a[i] : a[1 << 28];");
    made.code.parallel = true;
    for (int i = 0; i < 3; i++) {
        cd_measure_item item = {.code = &made.code, .target = "llvm -num-cores=7"};
        assert_ok(cd_measure_one(m, &item, &err));
        if (item.out.error_no) print_error("%s\n", item.out.err.msg);
        assert_int_equal(item.out.error_no, 0);
        assert_int_equal((item.out.flags & CD_MEASURE_CACHED) != 0, i > 0);
    }
    cd_measure_close(m);
    made_code_free(&made);
}

/* Others' data between two runs: a repeat is one run, and data that there is no memory for are an
 * error. */
TEST(test_data_of_others) {
    static const size_t bytes[] = {0, 1 << 20, (size_t)1 << 60};
    made_code made;
    cdmpp_err err = {0};
    const cd_measure_options o = options();
    cd_measure *m = open_ok(&o);
    made_code_set(&made, "others", 64, MADE_ADD);
    for (int i = 0; i < 3; i++) {
        cd_measure_item item = {.code = &made.code, .target = "llvm", .others_bytes = bytes[i]};
        assert_ok(cd_measure_one(m, &item, &err));
        assert_int_equal(item.out.error_no, i < 2 ? 0 : 4);
        if (i < 2) assert_true((item.out.time.number == 1) == (i == 1));
        else assert_non_null(strstr(item.out.err.msg, "to flush the caches"));
    }
    cd_measure_close(m);
    made_code_free(&made);
}

TEST(test_targets) {
    made_code made;
    cdmpp_err err = {0};
    cd_measure *m = NULL;
    cd_measure_options o = options();
    o.backend = "abacus";
    assert_status(cd_measure_open(&o, &m, &err), CDMPP_EUSAGE);
    assert_non_null(strstr(err.msg, "cpu"));
    o.backend = NULL;
    o.isa = NULL;
    m = open_ok(&o);
    made_code_set(&made, "add", 64, MADE_ADD);
    cd_measure_item item[] = {{.code = &made.code}, {.code = &made.code}, {.code = &made.code}};
    item[0].target = "llvm -mcpu=quantum9";
    item[1].target = "llvm -keys=cpu";
    item[2].target = "hexagon";
    assert_ok(cd_measure_build(m, item, 3, &err));
    for (int i = 0; i < 3; i++) assert_ok(cd_measure_run(m, &item[i], &err));
    assert_int_equal(item[0].out.error_no, 2);
    assert_non_null(strstr(item[0].out.err.msg, "quantum9"));
    assert_int_equal(item[1].out.error_no, 0);
    assert_int_equal(item[2].out.error_no, 4);
    cd_measure_close(m);
    made_code_free(&made);
}

static volatile sig_atomic_t stop;
static void on_alarm(int sig) { stop = sig; }

/* ^C while a program hangs: everything is gone. At its limit the program would have an error of its
 * own, and the run none. */
TEST(test_stopped) {
    made_code made;
    cdmpp_err err = {0};
    cd_measure_options o = options();
    o.stop = &stop;
    cd_measure *m = open_ok(&o);
    made_code_set(&made, "hang", 64, "for (volatile int i = 0; ; ) {}");
    cd_measure_item item = {.code = &made.code, .target = "llvm"};
    assert_ok(cd_measure_build(m, &item, 1, &err));
    signal(SIGALRM, on_alarm);
    alarm(1);
    assert_status(cd_measure_run(m, &item, &err), CDMPP_EINTERRUPTED);
    cd_measure_close(m);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    made_code_free(&made);
}

TESTS(NULL, NULL, test_programs, test_late, test_until, test_memory, test_check,
      test_reference_runs_once, test_reference_late, test_parallel, test_data_of_others,
      test_targets, test_stopped)
