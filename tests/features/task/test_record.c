/* Measure records read and written; every mistake in a line is named. */
#include "check.h"
#include "fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "base/io/io.h"
#include "features/task/task.h"
#include "record_same.h"

static cd_arena mem; /* of all tests */

/* Written by TVM: the first record of its tutorial (v0.3) and a measured one. */
static const char *const tvm_line[] = {
    "{\"i\": [[\"[\\\"matmul_add\\\", 1024, 1024, 1024, \\\"float32\\\"]\", \"llvm -keys=cpu "
    "-link-params=0\", "
    "[18, 64, 64, 0, 0, 0, 0, 0]], [[], [[\"SP\", 2, 0, 1024, [2, 1, 4], 1], [\"SP\", 2, 4, 1024, "
    "[1, 1, 8], 1], "
    "[\"SP\", 2, 8, 1024, [4], 1], [\"RE\", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]], [\"FSP\", 4, 0, 0, "
    "2], "
    "[\"FSP\", 4, 3, 1, 2], [\"RE\", 4, [0, 3, 1, 4, 2, 5]], [\"CA\", 2, 4, 3], [\"FU\", 4, [0, "
    "1]], "
    "[\"AN\", 4, 0, 3], [\"PR\", 2, 0, \"auto_unroll_max_step$8\"], [\"AN\", 2, 9, 2], [\"AN\", 4, "
    "4, 2]]]], "
    "\"r\": [[0.0044742], 0, 0.335558, 1607112214], \"v\": \"v0.3\"}\n",
    "{\"i\": [[\"[\\\"491c9c57d68e30bca39227cdf3eff8ee\\\", [1, 1, 1, 168], [1, 1, 168, 672]]\", "
    "\"llvm -keys=cpu "
    "-link-params=0 -mcpu=skylake-avx512 -model=zen5-avx512\", [1, 64, 64, 0, 0, 0, 0, 0], \"\", "
    "2, []], [[], "
    "[[\"CI\", 7], [\"SP\", 3, 0, 1, [1, 1, 1], 1], [\"RE\", 3, [0, 4, 8, 12]], [\"CR\", 8], "
    "[\"FU\", 3, [0, 1]], "
    "[\"PR\", 3, 0, \"auto_unroll_max_step$64\"], [\"AN\", 3, 18, 2]]]], \"r\": [[9.41185e-06, "
    "9.28016e-06, "
    "9.3605e-06], 0, 0.142115, 1795228473], \"v\": \"v0.6\"}\n",
};

#define LINE(task, steps, result, version)                                                         \
    "{\"i\": [" task ", [[], [" steps "]]], \"r\": " result ", \"v\": \"" version "\"}"
#define T6             "[\"k\", \"llvm\", [1, 64, 64, 0, 0, 0, 0, 0], \"\", 1, [\"a\"]]"
#define R              "[[0.5], 0, 1.5, 7]"
#define STEPS(steps)   LINE(T6, steps, R, "v0.6")
#define TASK(task)     LINE(task, "", R, "v0.6")
#define RESULT(result) LINE(T6, "", result, "v0.6")

/* One step of every kind, all its fields different from zero. */
static const char every_step[] =
    STEPS("[\"AN\", 1, 2, 3], [\"FU\", 1, [2, 3]], [\"PR\", 1, 2, \"p$3\"], [\"RE\", 1, [1, 0]], "
          "[\"SP\", 1, 2, 3, [4, 5], 1], [\"FSP\", 1, 2, 3, 4], [\"FFSP\", 1, 2, [3, 4], 5, 1], "
          "[\"SA\", 1, 2, 3, -4], "
          "[\"CA\", 1, 2, 3], [\"CI\", 1], [\"CR\", 1], [\"CHR\", 1, \"shared\", [2, 3]], "
          "[\"CHW\", 1, \"local\"], "
          "[\"RF\", 1, 2, 3]");

/* Read, write, read: equal fields; `written` is for the caller to look at. */
static void round_trip(cd_arena *a, const char *line, size_t len, cd_buf *written) {
    cdmpp_err err = {0};
    cd_record r, again;
    cd_buf_clear(written);
    assert_ok(cd_record_read(a, line, len, &r, &err));
    assert_ok(cd_record_write(written, &r, &err));
    assert_ok(cd_record_read(a, written->p, written->n, &again, &err));
    const char *field = record_differs(&r, &again, 1e-5);
    if (field) fail_msg("%s differs in %s", field, line);
}

TEST(tvm_lines_are_rewritten_byte_for_byte) {
    cd_buf b = {0};
    for (size_t i = 0; i < sizeof tvm_line / sizeof *tvm_line; i++) {
        round_trip(&mem, tvm_line[i], strlen(tvm_line[i]), &b);
        assert_string_equal(b.p, tvm_line[i]);
    }
    cd_buf_free(&b);
}

TEST(every_step_kind) {
    cd_buf b = {0};
    cdmpp_err err = {0};
    cd_record r;
    assert_ok(cd_record_read(&mem, every_step, strlen(every_step), &r, &err));
    assert_int_equal(r.n_step, CD_RECORD_STEP_COUNT);
    for (uint32_t k = 0; k < r.n_step; k++) {
        assert_int_equal(r.step[k].kind, k);
        assert_int_equal(r.step[k].stage, 1);
    }
    const cd_record_step *sp = &r.step[CD_RECORD_STEP_SP], *ffsp = &r.step[CD_RECORD_STEP_FFSP],
                         *chr = &r.step[CD_RECORD_STEP_CHR];
    assert_int_equal(sp->i[0], 2);
    assert_int_equal(sp->i[1], 3);
    assert_int_equal(sp->i[2], 1);
    assert_int_equal(sp->n_list, 2);
    assert_int_equal(sp->list[1], 5);
    assert_int_equal(ffsp->i[0], 2);
    assert_int_equal(ffsp->i[1], 5);
    assert_int_equal(ffsp->i[2], 1);
    assert_int_equal(ffsp->list[0], 3);
    assert_true(cd_str_is(chr->s, "shared"));
    assert_int_equal(chr->list[1], 3);
    assert_int_equal(r.step[CD_RECORD_STEP_SA].i[2], -4);
    assert_true(cd_str_is(r.step[CD_RECORD_STEP_PR].s, "p$3"));
    assert_string_equal(cd_record_step_code(CD_RECORD_STEP_FFSP), "FFSP");
    round_trip(&mem, every_step, strlen(every_step), &b);
    assert_memory_equal(b.p, every_step, strlen(every_step));
    cd_buf_free(&b);
}

TEST(versions_are_staged) {
    static const struct {
        const char *line;
        bool hardware, host, layout, inputs;
    } t[] = {
        {LINE("[\"k\", \"cuda\"]", "", R, "v0.2"), false, false, false, false},
        {LINE("[\"k\", \"cuda\", [1, 2, 3, 4, 5, 6, 7, 8]]", "", R, "v0.3"), true, false, false,
         false},
        {LINE("[\"k\", \"cuda\", [1, 2, 3, 4, 5, 6, 7, 8], \"llvm\"]", "", R, "v0.4"), true, true,
         false, false},
        {LINE("[\"k\", \"cuda\", [1, 2, 3, 4, 5, 6, 7, 8], \"\", 2]", "", R, "v0.5"), true, true,
         true, false},
        {LINE("[\"k\", \"cuda\", [-1, 2, 3, 4, 5, 6, 7, 8], \"\", 0, []]", "", R, "v0.6"), true,
         true, true, true},
    };
    cd_buf b = {0};
    cdmpp_err err = {0};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        cd_record r;
        assert_ok(cd_record_read(&mem, t[i].line, strlen(t[i].line), &r, &err));
        assert_int_equal(r.has_hardware, t[i].hardware);
        assert_int_equal(r.has_host, t[i].host);
        assert_int_equal(r.has_layout, t[i].layout);
        assert_int_equal(r.has_inputs, t[i].inputs);
        assert_int_equal(r.hardware.warp_size, t[i].hardware ? 8 : 0);
        round_trip(&mem, t[i].line, strlen(t[i].line), &b);
        assert_memory_equal(b.p, t[i].line, strlen(t[i].line));
    }
    cd_buf_free(&b);
}

TEST(members_come_in_any_order) {
    static const char line[] =
        "{ \"v\":\"v0.6\",\t\"r\":[[1e10,0,5e-324],8,-0.0,7.9],\"i\":[" T6 ",[[],[]]]}\r\n";
    cdmpp_err err = {0};
    cd_record r;
    assert_ok(cd_record_read(&mem, line, sizeof line - 1, &r, &err));
    assert_int_equal(r.n_cost, 3);
    assert_true(r.cost_s[0] == 1e10 && r.cost_s[1] == 0 && r.cost_s[2] > 0);
    assert_int_equal(r.error_no, 8);
    assert_false(signbit(r.total_s));
    assert_int_equal(r.timestamp, 7);
    assert_int_equal(r.layout_rewrite, 1);
    assert_true(cd_str_is(r.input[0], "a"));
}

static const struct {
    const char *line;
    cdmpp_status status;
    const char *key, *msg;
} wrong[] = {
    {"", CDMPP_EPARSE, "", "end of text"},
    {"[]", CDMPP_ESCHEMA, "", "expected an object, found array"},
    {"{}", CDMPP_ESCHEMA, "", "found no \"i\""},
    {"{\"i\": 1, \"x\": 2}", CDMPP_ESCHEMA, "", "found \"x\""},
    {"{\"i\": 1, \"i\": 2}", CDMPP_EPARSE, "i", "expected this key once, found it twice"},
    {LINE(T6, "", R, "v0.1"), CDMPP_EUNSUPPORTED, "v", "\"v0.1\" is not one of v0.2"},
    {LINE(T6, "", R, "v0.7"), CDMPP_EUNSUPPORTED, "v", "\"v0.7\" is not one of v0.2"},
    {LINE(T6, "", R, "v0.61"), CDMPP_EUNSUPPORTED, "v", "v0.61"},
    {"{\"i\": [], \"r\": [], \"v\": 6}", CDMPP_ESCHEMA, "v", "expected a string, found integer"},
    {"{\"i\": [], \"r\": [], \"v\": \"v0.6\"}", CDMPP_ESCHEMA, "i",
     "expected [task, state], found 0 items"},
    {TASK("[\"k\"]"), CDMPP_ESCHEMA, "i[0]", "at least 2 items, found 1"},
    {TASK("[3, \"llvm\"]"), CDMPP_ESCHEMA, "i[0][0]", "expected a string, found integer"},
    {TASK("[\"k\", null]"), CDMPP_ESCHEMA, "i[0][1]", "expected a string, found null"},
    {TASK("[\"k\", \"llvm\", [1, 2]]"), CDMPP_ESCHEMA, "i[0][2]", "8 hardware parameters, found 2"},
    {TASK("[\"k\", \"llvm\", [1, 64, 2.5, 0, 0, 0, 0, 0]]"), CDMPP_ESCHEMA, "i[0][2][2]",
     "an integer, found number"},
    {TASK("[\"k\", \"llvm\", [1, 64, 64, 0, 0, 0, 0, 2147483648]]"), CDMPP_ERANGE, "i[0][2][7]",
     "2147483648"},
    {TASK("[\"k\", \"llvm\", [1, 64, 64, 0, 0, 0, 0, 0], \"\"]"), CDMPP_ESCHEMA, "i[0][4]",
     "layout rewrite"},
    {TASK("[\"k\", \"llvm\", [1, 64, 64, 0, 0, 0, 0, 0], 5]"), CDMPP_ESCHEMA, "i[0][3]",
     "expected a string"},
    {TASK("[\"k\", \"llvm\", [1, 64, 64, 0, 0, 0, 0, 0], \"\", 3]"), CDMPP_ERANGE, "i[0][4]",
     "3 is outside [0, 2]"},
    {TASK("[\"k\", \"llvm\", [1, 64, 64, 0, 0, 0, 0, 0], \"\", 0, [1]]"), CDMPP_ESCHEMA,
     "i[0][5][0]", "a string"},
    {TASK("[\"k\", \"llvm\", [1, 64, 64, 0, 0, 0, 0, 0], \"\", 0, [], 1]"), CDMPP_ESCHEMA, "i[0]",
     "found 7"},
    {"{\"i\": [" T6 ", [[1], []]], \"r\": " R ", \"v\": \"v0.6\"}", CDMPP_ESCHEMA, "i[1][0]",
     "empty list of stages"},
    {"{\"i\": [" T6 ", [[]]], \"r\": " R ", \"v\": \"v0.6\"}", CDMPP_ESCHEMA, "i[1]",
     "[stages, steps], found 1"},
    {STEPS("1"), CDMPP_ESCHEMA, "i[1][1][0]", "expected an array, found integer"},
    {STEPS("[]"), CDMPP_ESCHEMA, "i[1][1][0]", "at least 1 items, found 0"},
    {STEPS("[7]"), CDMPP_ESCHEMA, "i[1][1][0][0]", "expected a string, found integer"},
    {STEPS("[\"CI\", 0], [\"SPX\", 1]"), CDMPP_EUNSUPPORTED, "i[1][1][1][0]",
     "step \"SPX\" is not one of AN FU PR RE SP FSP FFSP SA CA CI CR CHR CHW RF"},
    {STEPS("[\"PPT\", 1]"), CDMPP_EUNSUPPORTED, "i[1][1][0][0]", "\"PPT\""},
    {STEPS("[\"S\", 1]"), CDMPP_EUNSUPPORTED, "i[1][1][0][0]", "\"S\""},
    {STEPS("[\"\", 1]"), CDMPP_EUNSUPPORTED, "i[1][1][0][0]", "\"\""},
    {STEPS("[\"CI\"]"), CDMPP_ESCHEMA, "i[1][1][0]", "expected 2 items in step CI, found 1"},
    {STEPS("[\"CI\", 1, 2]"), CDMPP_ESCHEMA, "i[1][1][0]", "expected 2 items in step CI, found 3"},
    {STEPS("[\"CI\", -1]"), CDMPP_ERANGE, "i[1][1][0][1]", "-1 is outside"},
    {STEPS("[\"CI\", 2147483648]"), CDMPP_ERANGE, "i[1][1][0][1]", "2147483648 is outside"},
    {STEPS("[\"CI\", 99999999999999999999]"), CDMPP_ESCHEMA, "i[1][1][0][1]",
     "an integer, found number"},
    {STEPS("[\"AN\", 1, 2, 12]"), CDMPP_ERANGE, "i[1][1][0][3]", "12 is outside [0, 11]"},
    {STEPS("[\"SP\", 1, 2, 3, 4, 1]"), CDMPP_ESCHEMA, "i[1][1][0][4]",
     "expected an array, found integer"},
    {STEPS("[\"CI\", 1], [\"SP\", 1, 2, 3, [1, 2, 3, 0], 1]"), CDMPP_ERANGE, "i[1][1][1][4][3]",
     "0 is outside [1"},
    {STEPS("[\"SP\", 1, 2, 3, [4, \"x\"], 1]"), CDMPP_ESCHEMA, "i[1][1][0][4][1]",
     "an integer, found string"},
    {STEPS("[\"SP\", 1, 2, 3, [4], 2]"), CDMPP_ERANGE, "i[1][1][0][5]", "2 is outside [0, 1]"},
    {STEPS("[\"FSP\", 1, 2, 3, 0]"), CDMPP_ERANGE, "i[1][1][0][4]", "0 is outside [1"},
    {STEPS("[\"PR\", 1, 2, 3]"), CDMPP_ESCHEMA, "i[1][1][0][3]",
     "expected a string, found integer"},
    {RESULT("[[0.5], 0, 1.5]"), CDMPP_ESCHEMA, "r", "[costs, error, total, timestamp], found 3"},
    {RESULT("[0.5, 0, 1.5, 7]"), CDMPP_ESCHEMA, "r[0]", "expected an array, found number"},
    {RESULT("[[], 0, 1.5, 7]"), CDMPP_ESCHEMA, "r[0]", "at least one cost"},
    {RESULT("[[1, -0.5], 0, 1.5, 7]"), CDMPP_ERANGE, "r[0][1]", "-0.5 is outside [0, 1e+10]"},
    {RESULT("[[1e999], 0, 1.5, 7]"), CDMPP_ERANGE, "r[0][0]",
     "expected a finite number, found inf"},
    {RESULT("[[1.1e10], 0, 1.5, 7]"), CDMPP_ERANGE, "r[0][0]", "1.1e+10 is outside"},
    {RESULT("[[\"1\"], 0, 1.5, 7]"), CDMPP_ESCHEMA, "r[0][0]", "a number, found string"},
    {RESULT("[[0.5], 9, 1.5, 7]"), CDMPP_ERANGE, "r[1]", "9 is outside [0, 8]"},
    {RESULT("[[0.5], 0, 1e999, 7]"), CDMPP_ERANGE, "r[2]", "inf"},
    {RESULT("[[0.5], 0, 1.5, 1e99]"), CDMPP_ERANGE, "r[3]", "1e+99"},
    {RESULT("[[NaN], 0, 1.5, 7]"), CDMPP_EPARSE, "", "'N'"},
    {RESULT("[[inf], 0, 1.5, 7]"), CDMPP_EPARSE, "", "'i'"},
    {RESULT("[[-Infinity], 0, 1.5, 7]"), CDMPP_EPARSE, "", "'I'"},
    {LINE("[\"\xff\", \"llvm\"]", "", R, "v0.2"), CDMPP_EPARSE, "",
     "expected UTF-8, found byte 0xff"},
};

TEST(mistakes_are_named) {
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cdmpp_err err = {0};
        cd_record r;
        assert_status(cd_record_read(&mem, wrong[i].line, strlen(wrong[i].line), &r, &err),
                      wrong[i].status);
        if (strcmp(err.key, wrong[i].key) != 0 || !strstr(err.msg, wrong[i].msg))
            fail_msg("%s\n  gives \"%s: %s\"\n  not   \"%s: %s\"", wrong[i].line, err.key, err.msg,
                     wrong[i].key, wrong[i].msg);
        assert_int_equal(cd_record_read(&mem, wrong[i].line, strlen(wrong[i].line), &r, NULL),
                         wrong[i].status);
        cd_arena_reset(&mem);
    }
}

/* Every truncation of a record is an error; none may read past its end. */
TEST(truncations) {
    const size_t len = strlen(tvm_line[0]) - 1; /* without '\n' */
    for (size_t n = 0; n < len; n++) {
        char *cut = malloc(n + 1); /* its own block, for the sanitizer */
        cdmpp_err err = {0};
        cd_record r;
        memcpy(cut, tvm_line[0], n);
        assert_status(cd_record_read(&mem, cut, n, &r, &err), CDMPP_EPARSE);
        assert_non_null(strstr(err.msg, "found end of text"));
        free(cut);
        cd_arena_reset(&mem);
    }
}

TEST(writer_refuses_what_reader_refuses) {
    cd_buf b = {0};
    cdmpp_err err = {0};
    cd_record good, r;
    const double bad_cost[] = {-1, (double)NAN, (double)INFINITY, 2e10};
    assert_ok(cd_record_read(&mem, every_step, strlen(every_step), &good, &err));
    for (size_t i = 0; i < 4; i++) {
        r = good;
        r.cost_s = &bad_cost[i];
        assert_status(cd_record_write(&b, &r, &err), CDMPP_ERANGE);
    }
    r = good, r.n_cost = 0;
    assert_status(cd_record_write(&b, &r, &err), CDMPP_ESCHEMA);
    r = good, r.total_s = (double)NAN;
    assert_status(cd_record_write(&b, &r, &err), CDMPP_ERANGE);
    r = good, r.has_host = false;
    assert_status(cd_record_write(&b, &r, &err), CDMPP_ESCHEMA);
    cd_record_step strange = {.kind = CD_RECORD_STEP_COUNT};
    r = good, r.step = &strange, r.n_step = 1;
    assert_status(cd_record_write(&b, &r, &err), CDMPP_EUNSUPPORTED);
    assert_int_equal(b.n, 0);
    cd_buf_free(&b);
}

TEST(steps_alone) {
    static const char text[] =
        "[[\"CI\", 1], [\"SP\", 3, 0, 64, [8, 2], 1], [\"PR\", 3, 0, \"auto_unroll_max_step$16\"]]";
    cd_buf b = {0};
    cd_record r = {0};
    cdmpp_err err = {0};
    assert_ok(cd_record_read_steps(&mem, text, sizeof text - 1, &r, &err));
    assert_ok(cd_record_write_steps(&b, &r, &err));
    assert_string_equal(b.p, text);
    cd_buf_free(&b);
}

/* Whatever is changed in a step, wherever it is: another key. What is the same at another place in
 * memory has the same. */
TEST(keys_tell_steps_apart) {
    cd_record r, again;
    cdmpp_err err = {0};
    enum { MOST = 256 };
    uint64_t key[MOST];
    uint32_t n = 0;
    assert_ok(cd_record_read(&mem, every_step, sizeof every_step - 1, &r, &err));
    assert_ok(cd_record_read(&mem, every_step, sizeof every_step - 1, &again, &err));
    key[n++] = cd_record_steps_key(r.step, r.n_step);
    assert_true(key[0] == cd_record_steps_key(again.step, again.n_step));
    for (uint32_t k = 0; k < r.n_step; k++) {
        cd_record_step *t = (cd_record_step *)(uintptr_t)&r.step[k];
        const cd_record_step was = *t;
        int32_t list[4] = {0};
        char text[32] = {0};
        for (uint32_t j = 0; j < was.n_list; j++) list[j] = was.list[j];
        if (was.s.n) memcpy(text, was.s.p, was.s.n);
        t->list = list, t->s.p = text;
#define ANOTHER(change, back) (change), key[n++] = cd_record_steps_key(r.step, r.n_step), (back)
        ANOTHER(t->kind = CD_RECORD_STEP_COUNT, t->kind = was.kind);
        ANOTHER(t->stage++, t->stage--);
        for (int j = 0; j < 3; j++) ANOTHER(t->i[j] += 7, t->i[j] -= 7);
        for (uint32_t j = 0; j < was.n_list; j++) ANOTHER(list[j] += 9, list[j] -= 9);
        ANOTHER(t->n_list++, t->n_list--);
        for (size_t j = 0; j < was.s.n; j++) ANOTHER(text[j]++, text[j]--);
        if (was.s.n) ANOTHER(t->s.n--, t->s.n++);
        assert_true(key[0] == cd_record_steps_key(r.step, r.n_step));
        *t = was;
    }
    key[n++] = cd_record_steps_key(r.step, r.n_step - 1);
    assert_true(n < MOST);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++) assert_true(key[i] != key[j]);
}

TEST(comments) {
    assert_true(cd_record_is_comment("", 0));
    assert_true(cd_record_is_comment("# note", 6));
    assert_true(cd_record_is_comment(" {", 2));
    assert_true(cd_record_is_comment("\r", 1));
    assert_false(cd_record_is_comment("{", 1));
}

/* Let every single allocation fail in turn: an error each time, nothing lost. */
static void failing_at_every_allocation(void **st) {
    (void)st;
    FAULT_SWEEP(f, 3) {
        cd_arena own = {0};
        cd_buf b = {0};
        cd_record r;
        f.st = cd_record_read(&own, every_step, strlen(every_step), &r, &f.err);
        if (!f.st) f.st = cd_record_write(&b, &r, &f.err);
        cd_buf_free(&b);
        cd_arena_free(&own);
    }
}

/* A tar archive read as lines: what precedes a record on its line is a header,
 * which ends in zeros. */
static char *after_header(char *line, size_t *len) {
    char *zero = memrchr(line, '\0', *len);
    if (zero) *len -= (size_t)(zero + 1 - line);
    return zero ? zero + 1 : line;
}

typedef struct census {
    long n, same_bytes, failed, other;
} census;

/* Every record of an archive: read(write(read(line))) = read(line), field by field. */
static census archive(const char *folder, const char *name) {
    char path[512], *line = NULL;
    census c = {0};
    cd_arena a = {0};
    cd_buf b = {0};
    cdmpp_err err = {0};
    cd_file_lines *l = NULL;
    size_t len = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(cd_file_lines_open(path, 0, &l, &err));
    for (;;) {
        assert_ok(cd_file_lines_next(l, &line, &len, &err));
        if (!line) break;
        const char *text = after_header(line, &len);
        if (cd_record_is_comment(text, len) || *text != '{') continue;
        round_trip(&a, text, len, &b);
        c.n++;
        if (b.n == len + 1 && memcmp(b.p, text, len) == 0) c.same_bytes++;
        /* Python wrote it; TVM writes 1e+10 */
        else if (strstr(text, "[[10000000000.0], ")) c.failed++;
        else c.other++;
        cd_arena_reset(&a);
    }
    cd_file_lines_close(l);
    cd_buf_free(&b);
    cd_arena_free(&a);
    return c;
}

TEST(reference_sets) {
    static const struct {
        const char *name;
        census want;
    } set[] = {{"tenset-cpu/records.tar.xz", {7808, 7808, 0, 0}},
               {"gpu-ansor/v100.tar.xz", {151405, 151263, 142, 0}},
               {"gpu-ansor/k80.tar.xz", {77199, 77199, 0, 0}},
               {"gpu-ansor/mi50.tar.xz", {46453, 46453, 0, 0}}};
    const char *data = getenv("CDMPP_DATA");
    if (!data) skip();
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        const census c = archive(data, set[i].name);
        print_message(
            "%s: %ld records, %ld byte-equal, %ld with a cost of 10000000000.0, %ld other\n",
            set[i].name, c.n, c.same_bytes, c.failed, c.other);
        assert_memory_equal(&c, &set[i].want, sizeof c);
    }
}

static int release(void **state) {
    (void)state;
    cd_arena_free(&mem);
    return 0;
}

TESTS(NULL, release, tvm_lines_are_rewritten_byte_for_byte, every_step_kind, versions_are_staged,
      members_come_in_any_order, mistakes_are_named, truncations,
      writer_refuses_what_reader_refuses, comments, steps_alone, keys_tell_steps_apart,
      failing_at_every_allocation, reference_sets)
