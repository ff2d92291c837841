/* Our own text form: what it means, what it refuses, and that every task of the
 * reference sets (CDMPP_DATA) survives it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "base/cli/cli.h"
#include "base/core/core.h"
#include "base/io/io.h"
#include "features/task/task_internal.h"
#include "scratch.h"

#define SEEDS "tests/fuzz/seeds/taskfile/"

static cd_task_registry *load(const char *path) {
    cd_task_registry *t;
    cdmpp_err err = {0};
    assert_ok(cd_task_registry_new(&t, &err));
    assert_ok(cd_task_registry_load(t, path, &err));
    return t;
}

static void assert_survives(const cd_task_registry *t) {
    cd_task_registry *u;
    cd_buf out = {0};
    cdmpp_err err = {0};
    assert_ok(cd_task_registry_write(&out, t, &err));
    assert_ok(cd_task_registry_new(&u, &err));
    assert_ok(cd_task_registry_load_text(u, "again", out.p, out.n, &err));
    assert_int_equal(cd_task_registry_count(u), cd_task_registry_count(t));
    assert_int_equal(cd_task_registry_network_count(u), cd_task_registry_network_count(t));
    for (size_t i = 0; i < cd_task_registry_count(t); i++) {
        const cd_task *a = cd_task_registry_at(t, i), *b = cd_task_registry_at(u, i);
        assert_string_equal(a->workload_key, b->workload_key);
        assert_string_equal(a->target, b->target);
        assert_string_equal(a->target_kind, b->target_kind);
        assert_string_equal(a->desc, b->desc);
        assert_memory_equal(&a->hardware, &b->hardware, sizeof a->hardware);
        if (!cd_te_dag_equal(a->dag, b->dag)) print_error("%s\n", a->workload_key);
        assert_true(cd_te_dag_equal(a->dag, b->dag));
    }
    cd_buf_free(&out);
    cd_task_registry_free(u);
}

TEST(matmul) {
    cd_task_registry *t = load(SEEDS "matmul.tasks.json");
    cd_buf out = {0};
    const cd_task *task = cd_task_registry_at(t, 0);
    cd_te_dag_print(&out, task->dag);
    assert_string_equal(out.p, "A = PLACEHOLDER [512, 512]\nB = PLACEHOLDER [512, 512]\n"
                               "C(i, j) += (A[i, k]*B[k, j])\nD(i, j) = max(C[i, j], 0f)\n");
    assert_true(task->dag->flop == 512.0 * 512 * (512 * 2 + 1));
    assert_int_equal(task->hardware.num_cores, 8);
    assert_string_equal(task->target_kind, "llvm");
    assert_int_equal(cd_task_registry_network(t, 0)->weight[0], 3);
    assert_survives(t);
    cd_buf_free(&out);
    cd_task_registry_free(t);
}

TEST(rare_members) {
    cd_task_registry *t = load(SEEDS "rare.tasks.json");
    const cd_te_dag *d = cd_task_registry_at(t, 0)->dag;
    assert_int_equal(d->n_op, 4);
    assert_int_equal(d->n_tensor, 5);
    const cd_te_op *argmax = &d->op[d->tensor_op[d->arg[1]]];
    assert_int_equal(argmax->n_out, 2);
    assert_non_null(argmax->cond);
    assert_non_null(argmax->init);
    assert_true(d->flop == -1); /* an extent that is no literal */
    assert_survives(t);
    cd_task_registry_free(t);
}

/* Ops may come in any order that defines before it uses; stages get TVM's order. */
TEST(order_of_ops_is_free) {
    static const char text[] =
        "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [{\"workload_key\": \"k\", "
        "\"args\": [\"A\", \"B\", \"C\"], \"ops\": ["
        "{\"name\": \"B\", \"shape\": [4], \"dtype\": \"float32\"}, {\"name\": \"A\", \"shape\": "
        "[4], \"dtype\": \"float32\"},"
        "{\"name\": \"C\", \"axis\": [[\"i\", 0, 4]], \"body\": \"A[i] - B[i]\"}]}]}";
    cd_task_registry *t;
    cd_buf out = {0};
    cdmpp_err err = {0};
    assert_ok(cd_task_registry_new(&t, &err));
    assert_ok(cd_task_registry_load_text(t, "x", text, sizeof text - 1, &err));
    cd_te_dag_print(&out, cd_task_registry_at(t, 0)->dag);
    assert_string_equal(out.p, "A = PLACEHOLDER [4]\nB = PLACEHOLDER [4]\nC(i) = (A[i] - B[i])\n");
    assert_int_equal(cd_task_registry_at(t, 0)->dag->arg[0], 0);
    assert_survives(t);
    cd_buf_free(&out);
    cd_task_registry_free(t);
}

/* One op C(i, j) over A[4,8] (float32) and B[4] (int64), with this body. */
static cdmpp_status body(const char *expr, char *printed, size_t n, cdmpp_err *err) {
    cd_buf b = {0}, out = {0};
    cd_task_registry *t;
    cd_buf_puts(&b, "{\"schema\":\"cdmpp.tasks\",\"version\":1,\"tasks\":[{\"workload_key\":\"k\","
                    "\"args\":[\"A\",\"B\",\"C\"],\"ops\":["
                    "{\"name\":\"A\",\"shape\":[4,8],\"dtype\":\"float32\"},{\"name\":\"B\","
                    "\"shape\":[4],\"dtype\":\"int64\"},"
                    "{\"name\":\"C\",\"axis\":[[\"i\",0,4],[\"j\",0,8]],\"body\":");
    cd_buf_put_json_str(&b, expr, strlen(expr));
    cd_buf_puts(&b, "}]}]}");
    assert_int_equal(cd_task_registry_new(&t, err), CDMPP_OK);
    const cdmpp_status st = cd_task_registry_load_text(t, "x", b.p, b.n, err);
    if (!st) {
        cd_te_dag_print(&out, cd_task_registry_at(t, 0)->dag);
        snprintf(printed, n, "%s", strstr(out.p, "C(i, j) = ") + 10);
        printed[strcspn(printed, "\n")] = '\0';
        assert_survives(t);
    }
    cd_buf_free(&b);
    cd_buf_free(&out);
    cd_task_registry_free(t);
    return st;
}

TEST(notation) {
    static const struct {
        const char *text, *want;
    } good[] = {
        {"A[i, j] + 1 - 2*A[i, j]", "((A[i, j] + 1f) - (2f*A[i, j]))"},
        {"i - (j - 1)", "(i - (j - 1))"},
        {"(i*8 + j) // 4 % 3", "floormod(floordiv(((i*8) + j), 4), 3)"},
        {"truncmod(i, 4) + truncdiv(j, 2)", "((i % 4) + (j/2))"},
        {"-i - -5", "((0 - i) - -5)"},
        {"select(i < 3 && j >= 1 || !(i == j), 1.5, A[i, j])",
         "select((((i < 3) && (j >= 1)) || !(i == j)), 1.5f, A[i, j])"},
        {"float32(i)/2", "(float32(i)/2f)"},
        {"B[i] + 1", "(B[i] + (int64)1)"},
        {"exp(A[i, j])*if_then_else(true, A[i, j], 0)",
         "(tir.exp(A[i, j])*tir.if_then_else((bool)1, A[i, j], 0f))"},
        {"min(max(A[i, j], -1e-3), inf)", "min(max(A[i, j], -0.001f), inff)"},
        {"call_pure_extern:float32('it\\'s', A[i, j])", "tir.call_pure_extern(\"it's\", A[i, j])"},
        {"isnan:bool(A[i, j])", "tir.isnan(A[i, j])"},
        {"1:int8 + 2:int8", "((int8)1 + (int8)2)"},
    };
    for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
        char printed[300] = "";
        cdmpp_err err = {0};
        assert_ok(body(good[k].text, printed, sizeof printed, &err));
        assert_string_equal(printed, good[k].want);
    }
}

TEST(refusals) {
    static const struct {
        const char *text;
        cdmpp_status want;
        const char *msg;
    } bad[] = {
        {"", CDMPP_EPARSE, "expected an expression"},
        {"i +", CDMPP_EPARSE, "found the end"},
        {"i j", CDMPP_EPARSE, "expected an operator"},
        {"(i", CDMPP_EPARSE, "expected )"},
        {"A[i, j", CDMPP_EPARSE, "expected ]"},
        {"k", CDMPP_ESCHEMA, "no axis \"k\""},
        {"Z[i]", CDMPP_ESCHEMA, "no tensor \"Z\""},
        {"C[i, j]", CDMPP_ESCHEMA, "no tensor"},
        {"A[i]", CDMPP_ESCHEMA, "1 indices"},
        {"A[i, j] + i", CDMPP_ESCHEMA, "float32 and int32"},
        {"A[i, j] - (1 - 2)", CDMPP_ESCHEMA, "float32 and int32"},
        {"i / 2", CDMPP_ESCHEMA, "write //"},
        {"!i", CDMPP_ESCHEMA, "no condition"},
        {"i && j", CDMPP_ESCHEMA, "no conditions"},
        {"min(i)", CDMPP_EPARSE, "two arguments"},
        {"f()", CDMPP_EPARSE, "needs a type"},
        {"99999999999", CDMPP_ERANGE, "int64"},
        {"1.2.3", CDMPP_EPARSE, "no number"},
        {"1:int33x", CDMPP_ESCHEMA, "no type"},
        {"'open", CDMPP_EPARSE, "'"},
        {"A[A[i, j], j]", CDMPP_ESCHEMA, "not an integer"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        char printed[300];
        cdmpp_err err = {0};
        const cdmpp_status st = body(bad[k].text, printed, sizeof printed, &err);
        if (st != bad[k].want || !strstr(err.msg, bad[k].msg))
            print_error("\"%s\": %s\n", bad[k].text, st ? err.msg : "accepted");
        assert_int_equal(st, bad[k].want);
        assert_non_null(strstr(err.msg, bad[k].msg));
    }
    char deep[4001] = "";
    cdmpp_err err = {0};
    memset(deep, '(', 2000);
    assert_status(body(deep, deep, 0, &err), CDMPP_EUNSUPPORTED);
    for (size_t i = 0; i < 2000; i++) memcpy(deep + 2 * i, "1+", 3);
    assert_status(body(deep, deep, 0, &err), CDMPP_EUNSUPPORTED);
}

/* A file's op that is read behind A (4) and B (4, int64), or its arguments. */
static cdmpp_status member(const char *op, const char *args, cdmpp_err *err) {
    cd_buf b = {0};
    cd_task_registry *t;
    cd_buf_putf(&b,
                "{\"schema\":\"cdmpp.tasks\",\"version\":1,\"tasks\":[{\"workload_key\":\"k\",%s%s%"
                "s\"ops\":["
                "{\"name\":\"A\",\"shape\":[4],\"dtype\":\"float32\"},{\"name\":\"B\",\"shape\":[4]"
                ",\"dtype\":\"int64\"}%s%s]}]}",
                args ? "\"args\":" : "", args ? args : "", args ? "," : "", op ? "," : "",
                op ? op : "");
    assert_int_equal(cd_task_registry_new(&t, err), CDMPP_OK);
    const cdmpp_status st = cd_task_registry_load_text(t, "x", b.p, b.n, err);
    if (!st) assert_survives(t);
    cd_buf_free(&b);
    cd_task_registry_free(t);
    return st;
}
#define AXIS    "\"name\":\"C\",\"axis\":[[\"i\",0,4]],"
#define LONG_30 "abcdefghijklmnopqrstuvwxyz0123"
#define LONG_60 LONG_30 LONG_30

TEST(members) {
    static const struct {
        const char *op, *args, *said;
    } t[] = {
        {NULL, "[\"A\", \"Z\"]", "x: tasks[0].args[1]: no tensor \"Z\" [ESCHEMA]"},
        {NULL, "[1]", "x: tasks[0].args[0]: expected a string, found integer [ESCHEMA]"},
        {NULL, "[\"A\"]", "x: tasks[0]: 1 of 2 ops are not needed for the arguments [ESCHEMA]"},
        {NULL, "[]", "x: tasks[0].args: expected an array of at least 1 items, found 0 [ESCHEMA]"},
        {"7", NULL, "x: tasks[0].ops[2]: expected an object, found integer [ESCHEMA]"},
        {"{" AXIS "\"body\":\"i\",\"" LONG_60 "abc\":1}", NULL,
         "x: tasks[0].ops[2]: unknown member "
         "\"abcdefghijklmnopqrstuvwxyz0123abcdefghijklmnopqrstuvwxyz0123\" [ESCHEMA]"},
        {"{\"axis\":[],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2].name: expected a string, found nothing [ESCHEMA]"},
        {"{\"name\":\"a\\u0000b\",\"axis\":[],\"body\":\"1\"}", NULL,
         "x: column 173: expected no \\u0000, found 'b' [EPARSE]"},
        {"{\"name\":\"A\",\"axis\":[],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2]: a second tensor \"A\": give one of them a \"ref\" [ESCHEMA]"},
        {"{\"name\":\"2x\",\"axis\":[],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2]: \"2x\" cannot be used in expressions: give the op a \"ref\" "
         "[ESCHEMA]"},
        {"{\"name\":\"!" LONG_60 "\",\"axis\":[],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2]: \"!abcdefghijklmnopqrstuvwxyz0123abcdefghijklmnopqrstuvwxyz012\" "
         "cannot be used in expressions: give the op a \"ref\" [ESCHEMA]"},
        {"{" AXIS "\"body\":\"i\",\"layout_free\":1}", NULL,
         "x: tasks[0].ops[2].layout_free: expected true or false, found integer [ESCHEMA]"},
        {"{" AXIS "\"body\":\"i\",\"flop\":-1}", NULL,
         "x: tasks[0].ops[2].flop: a negative count [ERANGE]"},
        {"{" AXIS "\"body\":\"i\",\"flop\":\"1\"}", NULL,
         "x: tasks[0].ops[2].flop: expected a number, found string [ESCHEMA]"},
        {"{" AXIS "\"body\":7}", NULL,
         "x: tasks[0].ops[2].body: expected an array, found integer [ESCHEMA]"},
        {"{" AXIS "\"body\":[]}", NULL,
         "x: tasks[0].ops[2].body: expected an array of at least 1 items, found 0 [ESCHEMA]"},
        {"{" AXIS "\"body\":[\"i\", 3]}", NULL,
         "x: tasks[0].ops[2].body[1]: expected a string, found integer [ESCHEMA]"},
        {"{" AXIS "\"body\":\"'text'\"}", NULL,
         "x: tasks[0].ops[2].body[0]: a text is no value of a tensor [ESCHEMA]"},
        {"{\"name\":\"C\",\"axis\":7,\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2].axis: expected an array, found integer [ESCHEMA]"},
        {"{\"name\":\"C\",\"axis\":[7],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2].axis[0]: expected an array, found integer [ESCHEMA]"},
        {"{\"name\":\"C\",\"axis\":[[\"i\",0,4,1]],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2].axis[0]: expected [name, min, extent], found 4 items [ESCHEMA]"},
        {"{\"name\":\"C\",\"axis\":[[1,0,4]],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2].axis[0]: expected a string, found integer [ESCHEMA]"},
        {"{\"name\":\"C\",\"axis\":[[\"a\\u0000\",0,4]],\"body\":\"1\"}", NULL,
         "x: column 186: expected no \\u0000, found '\"' [EPARSE]"},
        {"{\"name\":\"C\",\"axis\":[[\"i.1\",0,4],[\"!\",0,4]],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2].axis[1]: \"!\" cannot be used in expressions: give a \"ref\" "
         "[ESCHEMA]"},
        {"{\"name\":\"C\",\"axis\":[[\"i\",0,4],[\"i\",0,4]],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2].axis[1]: a second axis \"i\": give one of them a \"ref\" [ESCHEMA]"},
        {"{\"name\":\"C\",\"axis\":[[\"i\",0,\"j\"]],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2].axis[0].extent.column 2: no axis \"j\" [ESCHEMA]"},
        {"{\"name\":\"C\",\"axis\":[[\"i\",\"(\",4]],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2].axis[0].min.column 2: expected an expression, found the end [EPARSE]"},
        {"{\"name\":\"C\",\"axis\":[[\"i\",0,4.5]],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2].axis[0].extent: expected an integer, found number 4.5 [ESCHEMA]"},
        {"{\"name\":\"C\",\"axis\":[[\"i\",0,3000000000]],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2].axis[0].extent: 3000000000 does not fit the axis' type [ERANGE]"},
        {"{\"name\":\"C\",\"axis\":[{\"min\":0}],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2].axis[0].name: expected a string, found nothing [ESCHEMA]"},
        {"{\"name\":\"C\",\"axis\":[{\"name\":\"i\",\"ref\":7}],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2].axis[0].ref: expected a string, found integer [ESCHEMA]"},
        {"{\"name\":\"C\",\"axis\":[{\"name\":\"i\",\"dtype\":7}],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2].axis[0].dtype: expected a string, found integer [ESCHEMA]"},
        {"{\"name\":\"C\",\"axis\":[{\"name\":\"i\",\"dtype\":\"int\"}],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2].axis[0].dtype: expected a type of integers [ESCHEMA]"},
        {"{\"name\":\"C\",\"axis\":[{\"name\":\"i\",\"dtype\":\"float32\"}],\"body\":\"1\"}", NULL,
         "x: tasks[0].ops[2].axis[0].dtype: expected a type of integers [ESCHEMA]"},
        {"{\"name\":\"C\",\"axis\":[{\"name\":\"i\",\"dtype\":\"int64\",\"min\":0}],\"body\":"
         "\"1\"}",
         NULL, "x: tasks[0].ops[2].axis[0].extent: expected an integer, found nothing [ESCHEMA]"},
        {"{\"name\":\"C\",\"axis\":[[\"i\",0,1],[\"i1\",0,1],[\"i2\",0,1],[\"i3\",0,1],[\"i4\",0,1]"
         ",[\"i5\",0,1],[\"i6\",0,1],[\"i7\",0,1],"
         "[\"j\",0,1],[\"j1\",0,1],[\"j2\",0,1],[\"j3\",0,1],[\"j4\",0,1],[\"j5\",0,1],[\"j6\",0,1]"
         ",[\"j7\",0,1],[\"k\",0,1]],\"body\":\"1\"}",
         NULL, "taken"},
        {"{" AXIS "\"reduce_axis\":[[\"k\",0,4]],\"body\":\"A[k]\"}", NULL,
         "x: tasks[0].ops[2]: \"reduce_axis\" without \"reduce\" [ESCHEMA]"},
        {"{" AXIS "\"where\":\"i < 2\",\"body\":\"A[i]\"}", NULL,
         "x: tasks[0].ops[2]: \"where\" without \"reduce\" [ESCHEMA]"},
        {"{" AXIS "\"init\":\"1\",\"body\":\"A[i]\"}", NULL,
         "x: tasks[0].ops[2]: \"init\" without \"reduce\" [ESCHEMA]"},
        {"{" AXIS "\"reduce\":\"product\",\"body\":\"A[i]\"}", NULL,
         "x: tasks[0].ops[2].reduce: expected sum, max, min or an object [ESCHEMA]"},
        {"{" AXIS "\"reduce\":\"sum\",\"body\":[\"A[i]\",\"B[i]\"]}", NULL,
         "x: tasks[0].ops[2].reduce: \"sum\" combines one value, not 2 [ESCHEMA]"},
        {"{" AXIS "\"reduce\":7,\"body\":\"A[i]\"}", NULL,
         "x: tasks[0].ops[2].reduce.lhs: expected an array, found nothing [ESCHEMA]"},
        {"{" AXIS "\"reduce\":{\"lhs\":[\"x\",\"z\"],\"rhs\":[\"y\"],\"result\":\"x + "
         "y\",\"identity\":\"0\"},\"body\":\"A[i]\"}",
         NULL, "x: tasks[0].ops[2].reduce.lhs: expected 1 names, found 2 [ESCHEMA]"},
        {"{" AXIS "\"reduce\":{\"lhs\":[\"x\"],\"rhs\":[7],\"result\":\"x + "
         "y\",\"identity\":\"0\"},\"body\":\"A[i]\"}",
         NULL, "x: tasks[0].ops[2].reduce.rhs: expected a string, found integer [ESCHEMA]"},
        {"{" AXIS "\"reduce\":{\"lhs\":[\"x\"],\"rhs\":[\"y\"],\"result\":\"x + "
         "i\",\"identity\":\"0\"},\"body\":\"A[i]\"}",
         NULL, "x: tasks[0].ops[2].reduce.result[0].column 6: no axis \"i\" [ESCHEMA]"},
        {"{" AXIS "\"reduce\":{\"lhs\":[\"x\"],\"rhs\":[\"y\"],\"result\":[\"x\",\"y\"],"
         "\"identity\":\"0\"},\"body\":\"A[i]\"}",
         NULL, "x: tasks[0].ops[2].reduce.result: expected 1 expressions, found 2 [ESCHEMA]"},
        {"{" AXIS "\"reduce\":\"sum\",\"init\":[\"0\",\"1\"],\"body\":\"A[i]\"}", NULL,
         "x: tasks[0].ops[2].init: expected 1 expressions, found 2 [ESCHEMA]"},
        {"{" AXIS "\"reduce\":\"sum\",\"where\":true,\"body\":\"A[i]\"}", NULL,
         "x: tasks[0].ops[2].where: expected a string, found boolean [ESCHEMA]"},
        {"{" AXIS "\"reduce\":\"min\",\"where\":\"i\",\"body\":\"A[i]\"}", NULL,
         "x: tasks[0].C: the condition of a reduction is not a bool [ESCHEMA]"},
        {"{\"name\":\"C\",\"dtype\":\"float32\"}", NULL,
         "x: tasks[0].ops[2].shape: expected an array, found nothing [ESCHEMA]"},
        {"{\"name\":\"C\",\"shape\":[2,-1],\"dtype\":\"float32\"}", NULL,
         "x: tasks[0].ops[2].shape[1]: -1 is outside [0, 9223372036854775807] [ERANGE]"},
        {"{\"name\":\"C\",\"shape\":[2]}", NULL,
         "x: tasks[0].ops[2].dtype: expected a string, found nothing [ESCHEMA]"},
        {"{\"name\":\"C\",\"shape\":[2],\"dtype\":\"float\"}", NULL,
         "x: tasks[0].ops[2].dtype: expected a type like float32 [ESCHEMA]"},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cdmpp_err err = {0};
        char said[512] = "taken";
        if (member(t[k].op, t[k].args, &err)) cdmpp_err_format(&err, said, sizeof said);
        assert_string_equal(said, t[k].said);
    }
}

/* A task whose key is written with escapes, and which comes twice: the line of the second is told
 * all the same. */
TEST(escaped_member_names) {
    static const char text[] = "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [\n"
                               "{\"workload_key\": \"k\", \"ops\": [{\"name\": \"A\", \"shape\": "
                               "[8], \"dtype\": \"float32\"}]},\n"
                               "{\"workload_ke\\u0079\": \"k\",\n \"ops\": [{\"name\": \"A\", "
                               "\"shape\": [9], \"dtype\": \"float32\"}]},\n"
                               "{\"workload_ke\\u0079\": \"k\",\n \"op\\u0073\": [{\"name\": "
                               "\"A\", \"shape\": [7], \"dtype\": \"float32\"}]}]}";
    cd_task_registry *t;
    cdmpp_err err = {0};
    assert_ok(cd_task_registry_new(&t, &err));
    assert_ok(cd_task_registry_load_text(t, "x", text, sizeof text - 1, &err));
    assert_int_equal(cd_task_registry_unused(t, 0)->line, 4);
    assert_int_equal(cd_task_registry_unused(t, 1)->line, 0);
    cd_task_registry_free(t);
}

/* A range that reads a tensor is told as such, not as a tensor that nobody reads. */
TEST(ranges_read_nothing) {
    static const char *const range[] = {"\"n[0]\", 4", "0, \"n[0]\""};
    for (size_t k = 0; k < 2; k++) {
        cd_task_registry *t;
        cd_buf b = {0};
        cdmpp_err err = {0};
        cd_buf_putf(&b,
                    "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [{\"workload_key\": "
                    "\"k\", \"args\": [\"A\", \"S\"], \"ops\": ["
                    "{\"name\": \"A\", \"shape\": [8], \"dtype\": \"float32\"}, {\"name\": \"n\", "
                    "\"axis\": [[\"i\", 0, 1]], \"body\": \"i + 3\"},"
                    "{\"name\": \"S\", \"axis\": [], \"reduce_axis\": [[\"k\", %s]], \"reduce\": "
                    "\"sum\", \"body\": \"A[k]\"}]}]}",
                    range[k]);
        assert_ok(cd_task_registry_new(&t, &err));
        assert_status(cd_task_registry_load_text(t, "x", b.p, b.n, &err), CDMPP_EUNSUPPORTED);
        assert_non_null(strstr(err.msg, "the range of an axis reads a tensor"));
        cd_buf_free(&b);
        cd_task_registry_free(t);
    }
}

static void survives(const char *set) {
    char path[4096];
    const char *root = getenv("CDMPP_DATA");
    snprintf(path, sizeof path, "%s/%s/network_info/all_tasks.pkl", root ? root : "", set);
    FILE *f = root ? fopen(path, "rb") : NULL;
    if (!f) {
        print_message("skipped: no %s under CDMPP_DATA\n", set);
        skip();
    }
    fclose(f);
    cd_task_registry *t = load(path);
    assert_survives(t);
    cd_task_registry_free(t);
}

static void cpu_set(void **state) {
    (void)state;
    survives("tenset-cpu");
}
static void gpu_set(void **state) {
    (void)state;
    survives("gpu-ansor");
}

static bool same(const char *a, const char *b) {
    return cd_task_same_key((cd_str){a, strlen(a)}, (cd_str){b, strlen(b)});
}

/* TVM has written shapes one after another, and each as a list. */
static void forms_of_keys(void **state) {
    (void)state;
    assert_true(same("[\"h\", 1, 64, 56]", "[\"h\", [1, 64], [56]]") &&
                same("[\"h\", [1], [2]]", "[\"h\",1,2]"));
    /* both say where a shape ends */
    assert_false(same("[\"h\", [1, 64], [56]]", "[\"h\", [1], [64, 56]]"));
    assert_false(same("[\"h\", 1, 64]", "[\"h\", 16, 4]") ||
                 same("[\"h\", 1]", "[\"h\", [1, 2]]") || same("[\"a b\", 1]", "[\"ab\", [1]]"));
    cd_task_registry *t = load(SEEDS "matmul.tasks.json"); /* ["matmul", 512] */
    cdmpp_err err = {0};
    const size_t n = cd_task_registry_count(t);
    const char nested[] = "[\"matmul\", [512]]", other[] = "[\"matmul\", [51], [2]]";
    const cd_task *task = cd_task_registry_find(t, (cd_str){nested, sizeof nested - 1});
    assert_ptr_equal(task, cd_task_registry_at(t, 0));
    assert_null(cd_task_registry_find(t, (cd_str){other, sizeof other - 1}));
    const char nets[] = "{\"net\": [\"[\\\"matmul\\\", [512]]\"]}";
    assert_ok(cd_task_registry_load_text(t, "nets", nets, sizeof nets - 1, &err));
    /* a network's key in the other form is no further task */
    assert_int_equal(cd_task_registry_count(t), n);
    cd_task_registry_free(t);
}

static size_t index_of(const cd_task_registry *t, const char *key) {
    const cd_task *task = cd_task_registry_find(t, (cd_str){key, strlen(key)});
    return task ? cd_task_registry_index(t, task) : SIZE_MAX;
}

/* Keys of networks, in this order, into an empty registry. */
static cd_task_registry *named(const char *a, const char *b, const char *c) {
    cd_task_registry *t;
    cdmpp_err err = {0};
    char nets[200];
    assert_ok(cd_task_registry_new(&t, &err));
    const int n = snprintf(nets, sizeof nets, "{\"net\": [\"%s\", \"%s\", \"%s\"]}", a, b, c);
    assert_ok(cd_task_registry_load_text(t, "nets", nets, (size_t)n, &err));
    return t;
}

/* Two nested keys of one flat form: who came as which task stays that task. */
static void twins_of_a_flat_key(void **state) {
    (void)state;
    const char *flat = "[1, 64, 56]", *one = "[[1, 64], [56]]", *two = "[[1], [64, 56]]";
    cd_task_registry *t = named(flat, one, two);
    assert_int_equal(cd_task_registry_count(t), 2);
    assert_true(index_of(t, flat) == 0 && index_of(t, one) == 0 && index_of(t, two) == 1);
    cd_task_registry_free(t);
    t = named(one, flat, two);
    assert_int_equal(cd_task_registry_count(t), 2);
    assert_true(index_of(t, flat) == 0 && index_of(t, one) == 0 && index_of(t, two) == 1);
    cd_task_registry_free(t);
    t = named(one, two, flat); /* of which of the two is not known: of none */
    assert_int_equal(cd_task_registry_count(t), 3);
    assert_true(index_of(t, one) == 0 && index_of(t, two) == 1 && index_of(t, flat) == 2);
    cd_task_registry_free(t);
    t = named(one, two, one);
    assert_true(index_of(t, flat) == SIZE_MAX);
    cd_task_registry_free(t);
}

/* A key keeps its first definition. That another file's is not used is said, with its place; the
 * same one again is not worth a word. */
TEST(another_definition_is_said) {
    static const char two[] =
        "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [\n"
        "  {\"workload_key\": \"[\\\"7d44c6e3c81cd80f61ff2265b2bae89a\\\", [1, 256], [768, 256], "
        "[1, 768], [1, 768]]\", \"target\": \"llvm\", \"ops\": [{\"name\": \"A\", \"shape\": [8], "
        "\"dtype\": \"float32\"},\n"
        "    {\"name\": \"B\", \"axis\": [[\"i\", 0, 8]], \"body\": \"A[i]\"}]},\n"
        "  {\"workload_key\": \"[\\\"matmul\\\", 512]\", \"target\": \"llvm\", \"ops\": "
        "[{\"name\": \"A\", \"shape\": [8], \"dtype\": \"float32\"},\n"
        "    {\"name\": \"B\", \"axis\": [[\"i\", 0, 8]], \"body\": \"A[i]\"}]}]}\n";
    const char *const path[] = {SEEDS "matmul.tasks.json", SEEDS "matmul.tasks.json",
                                scratch("two.tasks.json"), "tests/fuzz/seeds/pickle/gru_p4.pkl"};
    char said[1000] = "", want[1000];
    cd_task_registry *t;
    cdmpp_err err = {0};
    cd_log lg;
    FILE *to = fmemopen(said, sizeof said, "w");
    scratch_write(path[2], two, strlen(two));
    cd_log_init(&lg, "x", to);
    assert_ok(cd_task_registry_new(&t, &err));
    assert_ok(cd_task_registry_load_all(t, path, 2, &lg, &err));
    fflush(to);
    assert_string_equal(said, "");
    assert_ok(cd_task_registry_load_all(t, path + 2, 2, &lg, &err));
    fclose(to);
    cd_log_done(&lg);
    snprintf(want, sizeof want,
             "x: warning: %s:4: an earlier definition differs and goes first: workload key "
             "[\"matmul\", 512] [ESCHEMA]\n"
             "x: warning: %s: an earlier definition differs and goes first: workload key [%s] "
             "[ESCHEMA]\n",
             path[2], path[3],
             "\"7d44c6e3c81cd80f61ff2265b2bae89a\", [1, 256], [768, 256], [1, 768], [1, 768]");
    assert_string_equal(said, want);
    assert_int_equal(cd_task_registry_at(t, 0)->dag->n_op, 4);
    assert_int_equal(cd_task_registry_at(t, 1)->dag->n_op, 2);
    cd_task_registry_free(t);
}

/* A network keeps its first tasks. Others, or another weight, are told with file and name; the same
 * ones in another order are not. */
TEST(another_network_is_told) {
    static const char
        first[] =
            "{\"net\": [\"[\\\"a\\\"]\", {\"workload_key\": \"[\\\"b\\\"]\", \"weight\": 3}]}",
        same[] = "{\"net\": [{\"workload_key\": \"[\\\"b\\\"]\", \"weight\": 2}, \"[\\\"a\\\"]\", "
                 "\"[\\\"b\\\"]\"], \"other\": [\"[\\\"a\\\"]\"]}",
        weight[] = "{\"other\": [\"[\\\"a\\\"]\"], \"net\": [\"[\\\"a\\\"]\", \"[\\\"b\\\"]\"]}",
        more[] = "{\"net\": [\"[\\\"a\\\"]\", {\"workload_key\": \"[\\\"b\\\"]\", \"weight\": 3}, "
                 "\"[\\\"c\\\"]\"]}";
    cd_task_registry *t;
    cdmpp_err err = {0};
    char text[400];
    assert_ok(cd_task_registry_new(&t, &err));
    assert_ok(cd_task_registry_load_text(t, "first", first, sizeof first - 1, &err));
    assert_ok(cd_task_registry_load_text(t, "same", same, sizeof same - 1, &err));
    assert_null(cd_task_registry_unused(t, 0));
    assert_ok(cd_task_registry_load_text(t, "weight.json", weight, sizeof weight - 1, &err));
    assert_ok(cd_task_registry_load_text(t, "more.json", more, sizeof more - 1, &err));
    assert_string_equal(
        cdmpp_err_format(cd_task_registry_unused(t, 0), text, sizeof text),
        "weight.json: not used, an earlier network of this name has other tasks: net [ESCHEMA]");
    assert_string_equal(cd_task_registry_unused(t, 1)->path, "more.json");
    assert_null(cd_task_registry_unused(t, 2));
    assert_int_equal(cd_task_registry_network_count(t), 2);
    assert_int_equal(cd_task_registry_network(t, 0)->weight[1], 3);
    cd_task_registry_free(t);
}

/* What a sum, a least and a largest begin with, by type. */
TEST(identities) {
    static const struct {
        cd_dtype t;
        double max, least;
    } t[] = {{CD_DTYPE(CD_T_FLOAT, 16), 65504, -65504},
             {CD_F32, 3.40282346638528859812e38, -3.40282346638528859812e38},
             {CD_DTYPE(CD_T_FLOAT, 64), 1.7976931348623157e308, -1.7976931348623157e308},
             {CD_DTYPE(CD_T_BFLOAT, 16), 3.3895313892515355e38, -3.3895313892515355e38},
             {CD_DTYPE(CD_T_INT, 8), 127, -128},
             {CD_DTYPE(CD_T_UINT, 8), 255, 0},
             {CD_I32, 2147483647, -2147483648.0},
             {CD_I64, 9223372036854775807.0, -9223372036854775808.0},
             {CD_BOOL, 1, 0}};
    cd_expr_pool p;
    assert_int_equal(cd_expr_pool_init(&p, NULL, NULL), CDMPP_OK);
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        const double want[] = {0, t[k].max, t[k].least};
        for (int i = 0; i < 3; i++) {
            const cd_expr *e = cd_te_identity(&p,
                                              i == 0   ? CD_ADD
                                              : i == 1 ? CD_MIN
                                                       : CD_MAX,
                                              t[k].t);
            assert_true(e->type == t[k].t &&
                        e->op == (cd_expr_dtype_is_float(t[k].t) ? CD_FLOAT : CD_INT));
            assert_true((e->op == CD_FLOAT ? e->u.f : (double)e->u.i) == want[i]);
        }
    }
    cd_expr_pool_free(&p);
}

TESTS(NULL, NULL, identities, matmul, another_definition_is_said, another_network_is_told,
      forms_of_keys, twins_of_a_flat_key, rare_members, members, escaped_member_names,
      order_of_ops_is_free, notation, refusals, ranges_read_nothing, cpu_set, gpu_set)
