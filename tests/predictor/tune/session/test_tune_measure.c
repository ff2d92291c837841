/* Candidates measured on a board: a shell program that tells every program a time by the number of
 * its lease. What it did not answer is no trial. */
#include "predictor/tune/session/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "check.h"
#include "fault.h"
#include "tmp.h"

#define HELLO                                                                                      \
    "echo '{\"hello\":\"cdmpp-worker\",\"protocol\":1,\"version\":\"x\",\"device\":\"Board "       \
    "9\",\"model\":\"board-9\",\"isa\":\"aarch64\",\"cpus\":3}'; "
#define LOOP                                                                                       \
    "while read -r l; do case $l in *lease*) ;; *) continue ;; esac; n=${l#*:}; n=${n%%,*}; "
#define ANSWER                                                                                     \
    "echo "                                                                                        \
    "\"{\\\"lease\\\":$n,\\\"error_no\\\":0,\\\"costs\\\":[0.$n],\\\"total_s\\\":2,"               \
    "\\\"timestamp\\\":1700000000}\"; "

enum { N = 3 };
static cdmpp_err err;
static cd_task_registry *tasks;
static cd_tune_task task;
static cd_arena arena;
static cd_tune_cand cand[N]; /* the same schedule: the board does not mind */
static volatile sig_atomic_t stop;

static int set_up(void **state) {
    static const char *const file[] = {"examples/zen5/zen5.tasks.json.xz"};
    cd_program *p;
    (void)state;
    assert_ok(cd_task_registry_new(&tasks, &err));
    assert_ok(cd_task_registry_load_all(tasks, file, 1, NULL, &err));
    task = (cd_tune_task){.task = cd_task_registry_at(tasks, 0),
                          .target = "llvm",
                          .hardware = cd_target_hardware(false, 3, 64),
                          .flop = 1};
    assert_ok(cd_program_new(&p, &err));
    for (size_t i = 0; i < N; i++) assert_ok(cd_tune_baseline(&arena, p, &task, &cand[i], &err));
    cd_program_free(p);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    cd_arena_free(&arena);
    cd_task_registry_free(tasks);
    return 0;
}

typedef struct board {
    cd_remote_measure *remote;
    cd_tune_measure *m;
} board;

static cdmpp_status open_board(const char *script, cd_record_log *log, board *b, cdmpp_err *e) {
    static const char *const host[] = {"pi"};
    const cd_remote_measure_options o = {.host = host,
                                         .n_host = 1,
                                         .transport = script,
                                         .measure = {.stop = &stop, .pin = true},
                                         .policy = {.retry_s = 0.005}};
    *b = (board){0};
    CD_TRY(cd_remote_measure_open(&o, &b->remote, e));
    const cd_tune_measure_setup s = {.board = b->remote, .tasks = tasks, .log = log, .stop = &stop};
    return cd_tune_measure_new(&s, &b->m, e);
}

static void close_board(board *b) {
    cd_tune_measure_free(b->m);
    cd_remote_measure_close(b->remote);
}

TEST(a_batch) {
    tmp_dir d = tmp_make();
    cd_record_log *log;
    cd_tune_trial trial[N];
    board b;
    char *text;
    size_t done, n;
    assert_ok(cd_record_log_open(tmp_path(&d, "out.json"), false, &log, &err));
    assert_ok(open_board(HELLO LOOP ANSWER "done", log, &b, &err));
    const cd_tune_measure_kind k = cd_tune_measure_of(b.m);
    assert_ok(k.measure(k.ctx, &task, cand, N, trial, &done, &err));
    assert_int_equal(done, N);
    for (int i = 0; i < N; i++)
        assert_true(fabs(trial[i].seconds - 0.1 * (i + 1)) < 1e-12 && trial[i].error_no == 0 &&
                    trial[i].run_s == 2);
    close_board(&b);
    assert_ok(cd_record_log_close(log, &err));
    assert_ok(cd_file_read(tmp_path(&d, "out.json"), 0, &text, &n, &err));
    assert_non_null(strstr(text, "\"llvm -model=board-9\", [3, 64,"));
    cd_mem_free(text);
    tmp_remove(&d);
}

/* The trials before the loss count, and they alone. */
TEST(a_batch_that_is_cut_off) {
    cd_tune_trial trial[N];
    board b;
    size_t done;
    char script[800];
    snprintf(script, sizeof script, "f=/tmp/cdmpp-cut-%ld; [ -e $f ] && exit 1; %s", (long)getpid(),
             HELLO LOOP "if [ $n = 3 ]; then touch $f; exit; fi; " ANSWER "done");
    assert_ok(open_board(script, NULL, &b, &err));
    const cd_tune_measure_kind k = cd_tune_measure_of(b.m);
    assert_status(k.measure(k.ctx, &task, cand, N, trial, &done, &err), CDMPP_EBACKEND);
    assert_int_equal(done, 2);
    close_board(&b);
    snprintf(script, sizeof script, "/tmp/cdmpp-cut-%ld", (long)getpid());
    assert_int_equal(remove(script), 0);
}

/* Both sides are measured by turns, untuned first: the first two leases of the second worker are
 * their first times. */
TEST(two_sides) {
    cd_tune_result r;
    board b;
    assert_ok(open_board(HELLO LOOP "[ $n -lt 10 ] || n=9; " ANSWER "done", NULL, &b, &err));
    assert_ok(cd_tune_result_make(b.m, &task, &cand[0], &r, &err));
    /* of 1 3 5 and 2 4 6: above 50 ms three times */
    assert_true(fabs(r.untuned.seconds - 0.3) < 1e-12 && fabs(r.tuned.seconds - 0.4) < 1e-12);
    assert_int_equal(r.verdict, CD_TUNE_WORSE);
    cd_tune_result_free(&r);
    close_board(&b);
}

/* A side that fails in the check is not measured again. */
TEST(a_side_that_fails) {
    cd_tune_result r;
    board b;
    assert_ok(open_board(HELLO "c=0; while read -r l; do case $l in *check*true*) c=1 ;; *lease*) "
                               "n=${l#*:}; n=${n%%,*}; case $c$n in 12) echo "
                               "'{\"lease\":2,\"error_no\":5,\"costs\":[1e10],\"total_s\":2,"
                               "\"timestamp\":1,\"message\":\"off\"}' ;; *) " ANSWER
                               ";; esac ;; esac; done",
                         NULL, &b, &err));
    assert_ok(cd_tune_result_make(b.m, &task, &cand[0], &r, &err));
    assert_int_equal(r.verdict, CD_TUNE_WRONG);
    assert_true(r.tuned.seconds == CD_TUNE_FAILED_S);
    assert_string_equal(r.tuned.why.msg, "off");
    cd_tune_result_free(&r);
    close_board(&b);
}

TEST(no_memory) {
    FAULT_SWEEP(f, 3) {
        cd_tune_trial trial[N];
        cd_tune_result r = {0};
        board b;
        size_t done;
        /* most allocations are those of lowering, and each run begins four processes */
        f.step = 499;
        f.st = open_board(HELLO LOOP "[ $n -lt 10 ] || n=9; " ANSWER "done", NULL, &b, &f.err);
        if (!f.st) {
            const cd_tune_measure_kind k = cd_tune_measure_of(b.m);
            f.st = k.measure(k.ctx, &task, cand, N, trial, &done, &f.err);
            if (!f.st) f.st = cd_tune_result_make(b.m, &task, &cand[0], &r, &f.err);
            cd_tune_result_free(&r);
        }
        close_board(&b);
    }
}

TESTS(set_up, tear_down, a_batch, a_batch_that_is_cut_off, two_sides, a_side_that_fails, no_memory)
