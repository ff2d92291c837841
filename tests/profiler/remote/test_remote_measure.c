/* Boards of a search: what they say of themselves, results in order, and which failures are the
 * program's and which the connection's. The boards are shell programs. */
#include "profiler/remote/remote_internal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "fault.h"

#define TASKS "examples/zen5/zen5.tasks.json.xz"
#define LOG   "examples/zen5/held_out.json"
#define HELLO                                                                                      \
    "echo '{\"hello\":\"cdmpp-worker\",\"protocol\":1,\"version\":\"x\",\"device\":\"Board "       \
    "9\",\"model\":\"board-9\",\"isa\":\"aarch64\",\"cpus\":3}'; "
/* n: the lease, from 1 */
#define LOOP                                                                                       \
    "while read -r l; do case $l in *lease*) ;; *) continue ;; esac; n=${l#*:}; n=${n%%,*}; "
#define ANSWER                                                                                     \
    "echo "                                                                                        \
    "\"{\\\"lease\\\":$n,\\\"error_no\\\":0,\\\"costs\\\":[0.$n,0.$((n+1))],\\\"total_s\\\":2,"    \
    "\\\"timestamp\\\":1700000000}\"; "

enum { N = 4 };
static cdmpp_err err;
static cd_record_maker maker = {.dialect = -1};
static cd_record_program program[N];
static const cd_record_program *job[N];
static volatile sig_atomic_t stop;

static int set_up(void **state) {
    static const char *const log[] = {LOG}, *const tasks[] = {TASKS};
    cd_record_reader *file;
    (void)state;
    assert_ok(cd_record_program_maker_open(&maker, tasks, 1, NULL, &err));
    assert_ok(cd_record_reader_open(log, 1, &file, &err));
    for (size_t i = 0; i < N; i++) {
        cd_recline l = {0};
        assert_ok(cd_record_reader_next(file, &l, &err));
        assert_ok(cd_record_program_make(&maker, &l, &program[i], &err));
        job[i] = &program[i];
    }
    cd_record_reader_close(file);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    for (size_t i = 0; i < N; i++) cd_record_program_free(&program[i]);
    cd_record_program_maker_close(&maker);
    return 0;
}

typedef struct seen {
    size_t n, notes;
    cd_measure_result out[N];
} seen;

static cdmpp_status on_result(void *ctx, size_t i, const cd_measure_result *m, cdmpp_err *e) {
    seen *s = ctx;
    (void)e;
    assert_int_equal(i, s->n);
    s->out[s->n++] = *m;
    return CDMPP_OK;
}

static void on_note(void *ctx, const char *text) {
    (void)text;
    ++*(size_t *)ctx;
}

static cd_remote_measure_options options(const char *board, const cd_record_listener *l) {
    static const char *const host[] = {"one", "two"};
    return (cd_remote_measure_options){.host = host,
                                       .n_host = 1,
                                       .transport = board,
                                       .measure = {.stop = &stop, .pin = true},
                                       .listener = l,
                                       .policy = {.start_s = 5, .retry_s = 0.005}};
}

static cdmpp_status run(const cd_remote_measure_options *o, bool one, seen *s, cdmpp_err *e) {
    cd_remote_measure *m = NULL;
    const cd_remote_measure_jobs j = {
        .tasks = maker.tasks, .job = job, .n = N, .one = one, .each = on_result, .ctx = s};
    *s = (seen){0};
    cdmpp_status st = cd_remote_measure_open(o, &m, e);
    if (!st) st = cd_remote_measure_run(m, &j, e);
    cd_remote_measure_close(m);
    return st;
}

static cd_remote_greeting hello(const char *text, cd_remote_about *a) {
    cd_arena arena = {0};
    const cd_json *m;
    assert_ok(cd_json_parse(&arena, text, strlen(text), &m, &err));
    const cd_remote_greeting g = cd_remote_hello_read(m, a);
    cd_arena_free(&arena);
    return g;
}

TEST(what_a_hello_says) {
    cd_remote_about a = {
        .device = "A \"chip\"", .model = "chip-a", .isa = "avx2", .cpus = 12, .core = "little"};
    cd_remote_about b;
    cd_buf text = {0};
    cd_remote_hello_put(&text, &a);
    assert_int_equal(hello(text.p, &b), CD_REMOTE_HELLO);
    assert_string_equal(b.device, a.device);
    assert_string_equal(b.model, a.model);
    assert_string_equal(b.isa, a.isa);
    assert_int_equal(b.cpus, 12);
    assert_string_equal(b.core, "little");
    assert_true(cd_remote_hello_suits(&b, &(cd_remote_policy){0}) &&
                cd_remote_hello_suits(&b, &(cd_remote_policy){.core = "little"}));
    assert_false(cd_remote_hello_suits(&b, &(cd_remote_policy){.core = "big"}));
    cd_buf_free(&text);
    /* what cannot be is not said: a name of two words, instructions of nobody or of "whatever I
     * am", a number of processors that is none */
    assert_int_equal(hello("{\"hello\":\"cdmpp-worker\",\"protocol\":1,\"device\":\"d\",\"model\":"
                           "\"a b\",\"isa\":\"native\",\"cpus\":0}",
                           &b),
                     CD_REMOTE_HELLO);
    assert_true(!b.model[0] && !b.isa[0] && !b.cpus);
    assert_int_equal(hello("{\"hello\":\"cdmpp-worker\",\"protocol\":1,\"model\":7,\"isa\":"
                           "\"mips\",\"cpus\":\"4\"}",
                           &b),
                     CD_REMOTE_HELLO);
    assert_true(!b.device[0] && !b.model[0] && !b.isa[0] && !b.cpus && !b.core[0]);
    assert_int_equal(hello("{\"hello\":\"cdmpp-worker\",\"protocol\":2}", &b),
                     CD_REMOTE_OTHER_PROTOCOL);
    assert_int_equal(hello("{\"hello\":\"world\",\"protocol\":1}", &b), CD_REMOTE_NO_HELLO);
}

TEST(a_board_is_asked) {
    static const struct {
        const char *board;
        cdmpp_status st;
        const char *say;
    } c[] = {{"echo welcome; " HELLO "cat", CDMPP_OK, ""},
             {"echo 'no route' >&2; exit 255", CDMPP_EBACKEND,
              "one is no cdmpp-profile --worker, or cannot be reached; it said: no route"},
             {"yes hello", CDMPP_EBACKEND, "one is no cdmpp-profile --worker"},
             {"sleep 60", CDMPP_EBACKEND, "one did not say hello within 0.05 s"},
             {"echo '{\"hello\":\"cdmpp-worker\",\"protocol\":9}'; cat", CDMPP_EBACKEND,
              "one speaks another version"}};
    for (size_t k = 0; k < sizeof c / sizeof *c; k++) {
        cd_remote_measure *m = NULL;
        cd_remote_measure_options o = options(c[k].board, NULL);
        if (!strncmp(c[k].board, "sleep", 5)) o.policy.start_s = 0.05;
        assert_status(cd_remote_measure_open(&o, &m, &err), c[k].st);
        if (c[k].st && strncmp(err.msg, c[k].say, strlen(c[k].say)) != 0)
            fail_msg("case %zu: %s", k, err.msg);
        if (c[k].st) continue;
        assert_string_equal(cd_remote_measure_about(m)->model, "board-9");
        assert_string_equal(cd_remote_measure_name(m), "one");
        cd_remote_measure_close(m);
    }
    cd_remote_measure *m;
    cd_remote_measure_options o = options("cat", NULL);
    o.n_host = 0;
    assert_status(cd_remote_measure_open(&o, &m, &err), CDMPP_EUSAGE);
    stop = 1;
    o = options("cat", NULL);
    assert_status(cd_remote_measure_open(&o, &m, &err), CDMPP_EINTERRUPTED);
    stop = 0;
}

/* A record made of a result has the worker's costs. */
TEST(results_in_order) {
    seen s;
    const cd_remote_measure_options o = options(HELLO LOOP ANSWER "done", NULL);
    assert_ok(run(&o, false, &s, &err));
    assert_int_equal(s.n, N);
    for (size_t i = 0; i < N; i++) {
        cd_record r;
        assert_ok(cd_record_program_record(&program[i], &s.out[i], &r, &err));
        assert_int_equal(r.n_cost, 2);
        assert_true(r.cost_s[0] == 0.1 * (double)(i + 1) ||
                    (r.cost_s[0] > 0.1 * (double)i + 0.09 && r.cost_s[0] < 0.1 * (double)i + 0.11));
        assert_true(r.total_s == 2 && r.timestamp == 1700000000 && r.error_no == 0);
    }
}

/* A program that ends every worker has failed; the others are measured. */
TEST(a_program_breaks_workers) {
    seen s;
    size_t notes = 0;
    const cd_record_listener l = {.note = on_note, .ctx = &notes};
    const cd_remote_measure_options o = options(
        HELLO "k=0; " LOOP "[ $n -ge 2 ] && [ $n -le 4 ] && exit; n=$n; " ANSWER "done", &l);
    assert_ok(run(&o, false, &s, &err));
    assert_int_equal(s.n, N);
    assert_int_equal(notes, 3);
    for (size_t i = 0; i < N; i++) assert_int_equal(s.out[i].error_no, i == 1 ? 4 : 0);
    assert_int_equal(s.out[1].status, CDMPP_EBACKEND);
}

/* What was answered before counts; nobody makes up the rest. */
TEST(the_connection_is_lost) {
    char board[1000];
    seen s;
    snprintf(board, sizeof board,
             "f=%s/cdmpp-lost-%ld; [ -e $f ] && { echo gone >&2; exit 1; }; %s", "/tmp",
             (long)getpid(),
             HELLO LOOP "if [ $n -gt 2 ]; then touch $f; exit 1; fi; " ANSWER "done");
    const cd_remote_measure_options o = options(board, NULL);
    assert_status(run(&o, false, &s, &err), CDMPP_EBACKEND);
    assert_int_equal(s.n, 2);
    assert_non_null(strstr(err.msg, "the connection to one is lost, after 2 of 4 programs"));
    snprintf(board, sizeof board, "/tmp/cdmpp-lost-%ld", (long)getpid());
    assert_int_equal(remove(board), 0);
}

TEST(a_refusal_ends_it) {
    seen s;
    const cd_remote_measure_options o = options(
        HELLO LOOP
        "echo \"{\\\"lease\\\":$n,\\\"refused\\\":\\\"ENOTASK\\\",\\\"message\\\":\\\"none\\\"}\"; "
        "done",
        NULL);
    assert_status(run(&o, false, &s, &err), CDMPP_ENOTASK);
    assert_int_equal(s.n, 0);
    assert_non_null(strstr(err.msg, "one refuses a program"));
}

/* The first board answers when the second one has had a program; of one board it does not wait. */
TEST(boards_of_two_kinds) {
    char board[1000];
    seen s;
    snprintf(board, sizeof board,
             "f=/tmp/cdmpp-two-%ld; if [ $1 = two ]; then echo "
             "'{\"hello\":\"cdmpp-worker\",\"protocol\":1,\"device\":\"Other\"}'; else %s fi; %s",
             (long)getpid(), HELLO,
             LOOP "[ $1 = two ] && touch $f; while [ ! -e $f ]; do sleep 0.01; done; " ANSWER
                  "done");
    cd_remote_measure_options o = options(board, NULL);
    o.n_host = 2;
    assert_status(run(&o, false, &s, &err), CDMPP_EUSAGE);
    assert_non_null(strstr(err.msg, "boards of one search are of one kind"));
    assert_ok(run(&o, true, &s, &err));
    assert_int_equal(s.n, N);
    snprintf(board, sizeof board, "/tmp/cdmpp-two-%ld", (long)getpid());
    assert_int_equal(remove(board), 0);
}

TEST(no_memory) {
    seen s;
    const cd_remote_measure_options o = options(HELLO LOOP ANSWER "done", NULL);
    FAULT_SWEEP(f, 3) {
        f.step = 5; /* each run begins two processes */
        f.st = run(&o, false, &s, &f.err);
    }
}

TESTS(set_up, tear_down, what_a_hello_says, a_board_is_asked, results_in_order,
      a_program_breaks_workers, the_connection_is_lost, a_refusal_ends_it, boards_of_two_kinds,
      no_memory)
