/* Stage order, and the DAG texts that TVM printed for 361 CPU and 210 GPU
 * tasks of the reference sets (CDMPP_DATA: lowered.tar.xz, read here member by member). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "base/core/core.h"
#include "base/io/io.h"
#include "features/task/task.h"

/* 0 and 1 feed 2, which feeds 3 and 4. The argument pushed last is visited first
 * and gets the lowest priority, so the outputs come in the order of `arg`. */
TEST(stage_order) {
    static const uint32_t in_ptr[] = {0, 0, 0, 2, 3, 4};
    static const uint32_t in[] = {1, 0, 2, 2};
    static const uint32_t arg[] = {0, 1, 3, 4};
    static const uint32_t want[] = {1, 0, 2, 3, 4};
    static const uint32_t swapped[] = {0, 1, 4, 3}, want_swapped[] = {1, 0, 2, 4, 3};
    const cd_te_reads r = {5, 4, in_ptr, in, arg}, s = {5, 4, in_ptr, in, swapped};
    uint32_t order[5], n;
    cd_arena a = {0};
    cdmpp_err err = {0};
    assert_ok(cd_te_stage_order(&a, &r, order, &n, &err));
    assert_int_equal(n, 5);
    assert_memory_equal(order, want, sizeof want);
    assert_ok(cd_te_stage_order(&a, &s, order, &n, &err));
    assert_memory_equal(order, want_swapped, sizeof want_swapped);
    static const uint32_t loop_ptr[] = {0, 1, 2}, loop[] = {1, 0}, start[] = {0};
    const cd_te_reads c = {2, 1, loop_ptr, loop, start};
    assert_status(cd_te_stage_order(&a, &c, order, &n, &err), CDMPP_ESCHEMA);
    cd_arena_free(&a);
}

typedef struct {
    char *p;
    size_t n;
} tar;

/* Content of a member whose name ends in `name`; NULL when absent. */
static const char *member(const tar *t, const char *name, size_t *len) {
    for (size_t at = 0; at + 512 <= t->n && t->p[at];) {
        const char *h = t->p + at;
        const size_t n = strtoul(h + 124, NULL, 8), m = strnlen(h, 100), k = strlen(name);
        if (m >= k && !memcmp(h + m - k, name, k) && at + 512 + n <= t->n) {
            *len = n;
            return h + 512;
        }
        at += 512 + (n + 511) / 512 * 512;
    }
    return NULL;
}

/* "dev/([hash,[1,2]],llvm).json" names the task whose key, less blanks and quotes, it holds. */
static const cd_task *task_of(const cd_task_registry *t, const char *file) {
    const char *beg = strstr(file, "/(");
    for (size_t i = 0; beg && i < cd_task_registry_count(t); i++) {
        const char *p = beg + 2, *key = cd_task_registry_at(t, i)->workload_key;
        for (; *key; key++) {
            if (*key == ' ' || *key == '"') continue;
            if (*p++ != *key) break;
        }
        if (!*key && *p == ',') return cd_task_registry_at(t, i);
    }
    return NULL;
}

static bool same_text(const cd_task *task, const char *text, size_t len) {
    static const char begin[] = "# DAG\n", end[] = "\n# STATE";
    cd_buf ours = {0};
    cd_te_dag_print(&ours, task->dag);
    bool same = len > sizeof begin - 1 + ours.n + sizeof end - 1 &&
                !memcmp(text, begin, sizeof begin - 1) &&
                !memcmp(text + sizeof begin - 1, ours.p, ours.n) &&
                !memcmp(text + sizeof begin - 1 + ours.n, end, sizeof end - 1);
    if (!same) print_error("%s:\n%s", task->workload_key, ours.p);
    cd_buf_free(&ours);
    return same;
}

static void compare_set(const char *set, size_t want) {
    const char *root = getenv("CDMPP_DATA");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/lowered.tar.xz", root ? root : "", set);
    FILE *f = root ? fopen(path, "rb") : NULL;
    if (!f) {
        print_message("skipped: no %s/lowered.tar.xz under CDMPP_DATA\n", set);
        skip();
    }
    fclose(f);
    tar t;
    cd_task_registry *tasks;
    cdmpp_err err = {0};
    size_t n, checked = 0;
    assert_ok(cd_file_read(path, 0, &t.p, &t.n, &err));
    snprintf(path, sizeof path, "%s/%s/network_info/all_tasks.pkl", root, set);
    assert_ok(cd_task_registry_new(&tasks, &err));
    assert_ok(cd_task_registry_load(tasks, path, &err));
    const char *index = member(&t, "index.tsv", &n), *end = index + n;
    assert_non_null(index);
    while (index < end) {
        char line[1024], *tab;
        const char *nl = memchr(index, '\n', (size_t)(end - index));
        snprintf(line, sizeof line, "%.*s", (int)((nl ? nl : end) - index), index);
        index = nl ? nl + 1 : end;
        if (!(tab = strchr(line, '\t'))) continue;
        *tab = '\0';
        const cd_task *task = task_of(tasks, tab + 1);
        const char *text = member(&t, line, &n);
        assert_non_null(task);
        assert_non_null(text);
        assert_true(same_text(task, text, n));
        checked++;
    }
    assert_int_equal(checked, want);
    cd_task_registry_free(tasks);
    cd_mem_free(t.p);
}

/* ---- equality ---- */

static cd_task_registry *load(const char *ops) {
    cd_task_registry *t;
    cd_buf b = {0};
    cdmpp_err err = {0};
    cd_buf_putf(
        &b,
        "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [{\"workload_key\": \"k\", %s}]}",
        ops);
    assert_ok(cd_task_registry_new(&t, &err));
    assert_ok(cd_task_registry_load_text(t, "x", b.p, b.n, &err));
    cd_buf_free(&b);
    return t;
}

static bool equal(const char *x, const char *y) {
    cd_task_registry *a = load(x), *b = load(y);
    const cd_te_dag *d = cd_task_registry_at(a, 0)->dag, *e = cd_task_registry_at(b, 0)->dag;
    assert_int_equal(cd_te_dag_equal(d, e), cd_te_dag_equal(e, d));
    const bool same = cd_te_dag_equal(d, e);
    cd_task_registry_free(a);
    cd_task_registry_free(b);
    return same;
}

/* Operations of the kind of the output: of 8 elements, or of sums of 3. */
TEST(flops) {
    static const struct {
        const char *body;
        double n;
    } tab[] = {{"A[i]", 0},
               {"A[i] + 1", 1},
               {"A[i]*A[i] - A[i]/2", 3},
               {"exp(A[i])", 0},
               {"pow(A[i] + 1, A[i]*A[i] + 2)", 3},
               {"A[(i + 1) % 8]", 0},
               {"float32(i + 1)", 0},
               {"float32(i + 1)*2", 1},
               {"min(A[i], max(A[i], 1))", 2},
               {"select(A[i] > 1, A[i]*2, A[i] + 1 + 1)", 3},
               {"select(i > 1, A[i]*2*3, A[i])", 2},
               {"select(!(A[i] > 1), A[i], 0)", 1},
               {"i + i*2", 2},
               {"int32(A[i] + 1)", 0},
               {"A[i] > 1 && !(A[i] > 2)", 2},
               {"call_pure_extern:float32('f', A[i])", -1}};
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++)
        for (int reduce = 0; reduce < 2; reduce++) {
            char text[400];
            if (reduce && k > 11) continue; /* of floats only */
            snprintf(text, sizeof text,
                     "\"ops\": [{\"name\": \"A\", \"shape\": [8], \"dtype\": \"float32\"}, "
                     "{\"name\": \"B\", \"axis\": [[\"i\", 0, 8]], %s\"body\": \"%s\"}]",
                     reduce ? "\"reduce_axis\": [[\"k\", 0, 3]], \"reduce\": \"sum\", " : "",
                     tab[k].body);
            cd_task_registry *t = load(text);
            const double want = tab[k].n < 0 ? -1
                                : reduce     ? 8 * 3 * (tab[k].n + 1)
                                             : 8 * tab[k].n,
                         got = cd_task_registry_at(t, 0)->dag->flop;
            if (got < want || got > want) fail_msg("%s: %g, not %g", tab[k].body, got, want);
            cd_task_registry_free(t);
        }
}

/* Anything that differs makes another definition; only what variables are called inside does not
 * count. */
TEST(equality) {
    static const char whole[] =
        "\"args\": [\"A\", \"C\", \"E\", \"P.v0\", \"P.v1\"], \"ops\": [{\"name\": \"A\", "
        "\"shape\": [8, 8], \"dtype\": \"float32\"}, {\"name\": \"C\", \"shape\": [8], \"dtype\": "
        "\"float32\", \"layout_free\": true},"
        "{\"name\": \"M\", \"axis\": [[\"i\", 0, 8]], \"body\": \"select(i < 4, 2.5, C[i])\", "
        "\"tag\": \"mm\", \"const_matrix\": true},"
        "{\"name\": \"S\", \"axis\": [{\"name\": \"i\", \"ref\": \"y\", \"min\": 0, \"extent\": "
        "8}], \"reduce_axis\": [[\"k\", 1, 6]], \"reduce\": \"sum\", \"where\": \"k <= y\", "
        "\"init\": \"M[y]\","
        "\"body\": \"A[y, k]*M[k]\", \"simplify_const\": true, \"flop\": 100},"
        "{\"name\": \"P\", \"axis\": [[\"i\", 0, 8]], \"reduce_axis\": [[\"k\", 0, 8]], "
        "\"reduce\": {\"lhs\": [\"p\", \"q\"], \"rhs\": [\"r\", \"s\"],"
        "\"result\": [\"p + r\", \"max(q, s)\"], \"identity\": [\"0.0\", \"-1.0\"]}, \"body\": "
        "[\"A[i, k]\", \"A[k, i]\"]},"
        "{\"name\": \"E\", \"axis\": [[\"i\", 0, 8]], \"body\": \"exp(S[i]) + float32(i)\"}]";
    static const struct {
        const char *from, *to;
        bool same;
    } tab[] = {
        {"", "", true},
        {"[\"A\", \"C\", \"E\"", "[\"C\", \"A\", \"E\"", false},
        {"[8, 8]", "[8, 9]", false},
        {"[8, 8]", "[9, 8]", false},
        {"\"layout_free\": true", "\"layout_free\": false", false},
        {"mm", "mn", false},
        {"i < 4", "i < 5", false},
        {"i < 4", "i <= 4", false},
        {"2.5", "2.25", false},
        {"\"const_matrix\": true", "\"const_matrix\": false", false},
        {"\"simplify_const\": true", "\"simplify_const\": false", false},
        {"100", "101", false},
        {"[\"k\", 1, 6]", "[\"k\", 1, 5]", false},
        {"[\"k\", 1, 6]", "[\"k\", 0, 6]", false},
        {"[\"k\", 1, 6]", "[\"k\", 1, 6], [\"l\", 0, 1]", false},
        {"\"reduce\": \"sum\"", "\"reduce\": \"max\"", false},
        {"\"where\": \"k <= y\",", "", false},
        {"k <= y", "k < y", false},
        {"\"init\": \"M[y]\",", "", false},
        {"\"M[y]\"", "\"M[y] + 1\"", false},
        {"A[y, k]", "A[k, y]", false},
        {"p + r", "r + p", false},
        {"max(q", "min(q", false},
        {"-1.0", "-2.0", false},
        {"\"A[i, k]\", \"A[k, i]\"", "\"A[k, i]\", \"A[i, k]\"", false},
        {"[\"p\", \"q\"]", "[\"q\", \"p\"]", false},
        {"exp(", "log(", false},
        {"float32(i)", "float32(int64(i))", false},
    };
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        char text[sizeof whole + 100];
        const char *at = strstr(whole, tab[k].from);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, tab[k].to,
                 at + strlen(tab[k].from));
        if (equal(whole, text) != tab[k].same) fail_msg("%s for %s", tab[k].to, tab[k].from);
    }
    static const char one[] =
        "\"ops\": [{\"name\": \"A\", \"shape\": [8, 8], \"dtype\": \"float32\"}, {\"name\": \"B\", "
        "\"axis\": [%s], \"body\": \"A[%s]\"}]";
    static const char *const axes[][2] = {
        {"[\"i\", 0, 8], [\"j\", 0, 8]", "i, j"},
        {"{\"name\": \"i\", \"ref\": \"j\", \"min\": 0, \"extent\": 8}, {\"name\": \"j\", \"ref\": "
         "\"i\", \"min\": 0, \"extent\": 8}",
         "j, i"},
        {"[\"j\", 0, 8], [\"i\", 0, 8]", "j, i"},
        {"[\"i\", 0, 8], [\"j\", 0, 8]", "j, i"}};
    /* names count, the letters of a text do not */
    static const bool same[] = {true, true, false, false};
    for (size_t k = 0; k < 4; k++) {
        char x[400], y[400];
        snprintf(x, sizeof x, one, axes[0][0], axes[0][1]);
        snprintf(y, sizeof y, one, axes[k][0], axes[k][1]);
        assert_int_equal(equal(x, y), same[k]);
    }
}

/* ---- expressions as text ---- */

/* Axes i, j (int32) and L (int64); tensors A (float32) and N (int32). */
static const char *const axis_name[] = {"i", "j", "L"}, *const tensor_name[] = {"A", "N"};

static const cd_expr *axis_of(const void *ctx, cd_str name) {
    for (uint32_t k = 0; k < 3; k++)
        if (cd_str_is(name, axis_name[k])) return ((const cd_expr *const *)ctx)[k];
    return NULL;
}

static bool tensor_of(const void *ctx, cd_str name, uint32_t *number, cd_dtype *type) {
    (void)ctx;
    *number = cd_str_is(name, "N");
    *type = *number ? CD_I32 : CD_F32;
    return *number || cd_str_is(name, "A");
}

static const char *name_of(const void *ctx, cd_expr_op kind, uint32_t number) {
    (void)ctx;
    return kind == CD_VAR ? axis_name[number] : tensor_name[number];
}

/* What is written, and that it reads back as the same expression. Numbers have the fewest digits,
 * expressions the fewest parentheses. */
TEST(expressions_as_text) {
    static const char *const tab[][2] = {
        {"1.0", "1.0"},
        {"2.5", "2.5"},
        {"10.0", "1e+01"},
        {"12.0", "12.0"},
        {"100.0", "1e+02"},
        {"101.5", "101.5"},
        {"0.0", "0.0"},
        {"-0.5", "-0.5"},
        {"-3.0", "-3.0"},
        {"1e-7", "1e-07"},
        {"0.1", "0.1"},
        {"0.30000000000000004", "0.30000000000000004"},
        {"1e300", "1e+300"},
        {"16777217.0", "16777217.0"},
        {"inf", "inf"},
        {"-inf", "-inf"},
        {"nan", "nan"},
        {"2.5:float16", "2.5:float16"},
        {"3:float64", "3.0:float64"},
        {"inf:float64", "inf:float64"},
        {"7", "7"},
        {"-7", "-7"},
        {"7:int64", "7:int64"},
        {"-2147483648", "-2147483648"},
        {"true", "true"},
        {"false", "false"},
        {"L + 1", "L + 1:int64"},
        {"(i + j) + 1", "i + j + 1"},
        {"i + (j + 1)", "i + (j + 1)"},
        {"i - (j - 1)", "i - (j - 1)"},
        {"(i*8 + j) // 4 % 3", "(i*8 + j) // 4 % 3"},
        {"i*(j // 2)", "i*(j // 2)"},
        {"(i*j) // 2", "i*j // 2"},
        {"i*(j + 1)", "i*(j + 1)"},
        {"(i*j) + 1", "i*j + 1"},
        {"A[i]/(A[j]*2)", "A[i]/(A[j]*2.0)"},
        {"truncdiv(i, 2) + truncmod(j, 3)", "truncdiv(i, 2) + truncmod(j, 3)"},
        {"truncdiv(i + 1, 2)*3", "truncdiv(i + 1, 2)*3"},
        {"i == 1", "i == 1"},
        {"i != 1", "i != 1"},
        {"i < 1", "i < 1"},
        {"i <= 1", "i <= 1"},
        {"i > 1", "i > 1"},
        {"i >= 1", "i >= 1"},
        {"(i < 1 && j < 2) || i == j", "i < 1 && j < 2 || i == j"},
        {"i < 1 && (j < 2 || i == j)", "i < 1 && (j < 2 || i == j)"},
        {"!(i < 1)", "!(i < 1)"},
        {"!!(i < 1) && !true", "!!(i < 1) && !true"},
        {"(i < 1) == (j < 2)", "(i < 1) == (j < 2)"},
        {"select(i < 3 && j >= 1, 1.0, 0.5)", "select(i < 3 && j >= 1, 1.0, 0.5)"},
        {"min(i, max(j, 2))", "min(i, max(j, 2))"},
        {"float32(i)", "float32(i)"},
        {"int64(i)*L", "int64(i)*L"},
        {"A[i, j + 1]*max(A[0], 0.0)", "A[i, j + 1]*max(A[0], 0.0)"},
        {"N[N[i], 2]", "N[N[i], 2]"},
        {"exp(A[i])", "exp(A[i])"},
        {"exp:float32(A[i])", "exp(A[i])"},
        {"isnan:bool(A[i])", "isnan:bool(A[i])"},
        {"f:float32()", "f:float32()"},
        {"if_then_else(i < 2, A[i], 0.0)", "if_then_else(i < 2, A[i], 0.0)"},
        {"if_then_else:float16(i < 2, A[i], 0.0)", "if_then_else:float16(i < 2, A[i], 0.0)"},
        {"max:float32(A[i])", "max:float32(A[i])"},
        {"float32:float32(A[i])", "float32:float32(A[i])"},
        {"g:float32('a\\'b\\\\c', '')", "g:float32('a\\'b\\\\c', '')"},
    };
    cd_te_dag *d = NULL;
    cdmpp_err err = {0};
    assert_ok(cd_te_dag_new(&d, &err));
    const cd_expr *const axis[] = {cd_expr_new_var(&d->pool, CD_I32, 0),
                                   cd_expr_new_var(&d->pool, CD_I32, 1),
                                   cd_expr_new_var(&d->pool, CD_I64, 2)};
    const cd_te_scope scope = {axis_of, tensor_of, axis};
    const cd_names names = {name_of, NULL};
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        const cd_expr *e, *again;
        cd_buf b = {0};
        assert_ok(cd_te_parse(&d->pool, &d->arena, (cd_str){tab[k][0], strlen(tab[k][0])}, CD_BOOL,
                              &scope, &e, &err));
        assert_ok(cd_te_unparse(&b, e, &names, &err));
        assert_string_equal(b.p, tab[k][1]);
        assert_ok(
            cd_te_parse(&d->pool, &d->arena, (cd_str){b.p, b.n}, CD_BOOL, &scope, &again, &err));
        assert_ptr_equal(again, e);
        cd_buf_free(&b);
    }
    cd_buf b = {0};
    const cd_expr *bad = cd_expr_new_call(&d->pool, CD_F32, "no name", axis, 1);
    assert_status(cd_te_unparse(&b, bad, &names, &err), CDMPP_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "\"no name\""));
    cd_buf_free(&b);
    cd_te_dag_free(d);
}

/* Where a text is wrong, and how. */
TEST(texts_refused) {
    static const struct {
        const char *text, *key, *msg;
    } bad[] = {
        {"", "column 1", "expected an expression, found the end"},
        {"i + \x01", "column 5", "expected an expression, found '?'"},
        {"i \t+\n )", "column 7", "expected an expression, found ')'"},
        {"3000000000", "column 11", "an integer that does not fit its type (write 5:int64)"},
        {"99999999999999999999999", "column 24", "a number of 23 characters"},
        {"1111111111111111111111111111111111111111111111111111111111111111.5", "column 67",
         "a number of 66 characters"},
        {"1e", "column 3", "\"1e\" is no number"},
        {"1.5:int32", "column 10", "a fraction with a type of integers"},
        {"inf:int32", "column 10", "a fraction with a type of integers"},
        {"f:float32('abc", "column 15", "expected ', found the end"},
        {"f:float32('abc\\", "column 16", "expected ', found the end"},
        {"f:float32('a\0b')", "column 13", "a NUL in a string"},
        {"select(i < 1, A[0], i == 1)", "column 28", NULL},
        {"select(i, 1, 2)", "column 16", "select needs a condition first"},
        {"select(1, 2)", "column 13", "select needs three arguments"},
        {"min(1)", "column 7", "two arguments are needed"},
        {"float32(1, 2)", "column 14", "a cast needs one argument"},
        {"if_then_else(i < 1, A[0], i == 1)", "column 34", NULL},
        {"if_then_else(i < 1)", "column 20", "a call without arguments needs a type (f:float32())"},
        {"f()", "column 4", "a call without arguments needs a type (f:float32())"},
        {"i:float32", "column 10", "expected (, found the end"},
        {"i:flott32(1)", "column 10", "\"flott32\" is no type"},
        {"k", "column 2", "no axis \"k\""},
        {"B[i]", "column 3", "no tensor \"B\" above"},
        {"A[i", "column 4", "expected ], found the end"},
        {"(i", "column 3", "expected ), found the end"},
        {"-", "column 2", "expected an expression, found the end"},
        {"-in", "column 4", "no axis \"in\""},
        {"-infx", "column 6", "no axis \"infx\""},
        {"-nanx", "column 6", "no axis \"nanx\""},
        {"!i", "column 3", "! of something that is no condition"},
        {"!", "column 2", "expected an expression, found the end"},
        {"i j", "column 3", NULL},
        {"-i.", "column 4", "no axis \"i.\""},
    };
    cd_te_dag *d = NULL;
    cdmpp_err err = {0};
    const cd_expr *e;
    unsigned wrong = 0;
    assert_ok(cd_te_dag_new(&d, &err));
    const cd_expr *const axis[] = {cd_expr_new_var(&d->pool, CD_I32, 0),
                                   cd_expr_new_var(&d->pool, CD_I32, 1),
                                   cd_expr_new_var(&d->pool, CD_I64, 2)};
    const cd_te_scope scope = {axis_of, tensor_of, axis};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        const size_t n = strlen(bad[k].text);
        /* the one with a NUL */
        const cd_str text = {bad[k].text, n && bad[k].text[n - 1] == 'a' ? n + 4 : n};
        err = (cdmpp_err){0};
        const cdmpp_status st = cd_te_parse(&d->pool, &d->arena, text, CD_BOOL, &scope, &e, &err);
        if (!st || strcmp(err.key, bad[k].key) || (bad[k].msg && strcmp(err.msg, bad[k].msg)))
            print_error("%s: %d, %s: %s\n", bad[k].text, (int)st, err.key, err.msg), wrong++;
        assert_int_equal(cd_te_parse(&d->pool, &d->arena, text, CD_BOOL, &scope, &e, NULL), st);
    }
    assert_ok(cd_te_parse(&d->pool, &d->arena, (cd_str){"-nan", 4}, CD_BOOL, &scope, &e, &err));
    assert_true(e->op == CD_FLOAT && isnan(e->u.f));
    assert_ok(
        cd_te_parse(&d->pool, &d->arena, (cd_str){"-2:float32", 10}, CD_BOOL, &scope, &e, &err));
    assert_true(e->op == CD_FLOAT && e->u.f == -2);
    for (size_t k = 0; k < 4; k++) { /* words that are values */
        static const char *const word[] = {"true", "false", "inf", "nan"};
        assert_false(cd_te_is_identifier(word[k], strlen(word[k])));
    }
    assert_int_equal(wrong, 0);
    cd_te_dag_free(d);
}

static void cpu_texts(void **state) {
    (void)state;
    compare_set("tenset-cpu", 361);
}
static void gpu_texts(void **state) {
    (void)state;
    compare_set("gpu-ansor", 210);
}

TESTS(NULL, NULL, stage_order, flops, equality, texts_refused, expressions_as_text, cpu_texts,
      gpu_texts)
