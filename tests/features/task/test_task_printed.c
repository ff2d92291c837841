/* Texts in which TVM printed definitions beside their keys, read into the registry. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fault.h"
#include "tmp.h"

#include "features/dagtext/dagtext.h"
#include "features/task/task.h"

#define PLAIN "p0 = PLACEHOLDER [4]\nA(i) = max(p0[i], 0f)\n"
/* Padding 1 before, step 2; and one that begins without padding: calls have the same hash whatever
 * their arguments are. */
#define PAD_OF(guard, at, fill)                                                                    \
    "p0 = PLACEHOLDER [8]\nwide(a) = tir.if_then_else(" guard ", p0[" at "], " fill                \
    ")\np1 = PLACEHOLDER [3]\nsum(i) += (wide[((i*2) + k)]*p1[k])\n"
#define PAD(guard, at) PAD_OF(guard, at, "0f")
#define PAD_BOTH       PAD("((a >= 1) && (a < 9))", "(a - 1)")
#define PAD_ONES       PAD_OF("((a >= 1) && (a < 9))", "(a - 1)", "1f")
#define PAD_BEHIND     PAD("(a < 8)", "a")

static char *key_of(const char *text, const char *shapes, char *out, size_t n) {
    cdmpp_err err = {0};
    char hash[33];
    assert_ok(cd_dagtext_hash((cd_str){text, strlen(text)}, hash, &err));
    snprintf(out, n, "[\"%s\"%s]", hash, shapes);
    return out;
}

static cd_task_registry *load(const char *text, unsigned assume) {
    cdmpp_err err = {0};
    cd_task_registry *t;
    assert_ok(cd_task_registry_new(&t, &err));
    cd_task_registry_assume(t, assume);
    assert_ok(cd_task_registry_load_text(t, "run.out", text, strlen(text), &err));
    return t;
}

static const cd_task *find(const cd_task_registry *t, const char *key) {
    return cd_task_registry_find(t, (cd_str){key, strlen(key)});
}

/* A text of printf with a key once or twice. */
static void check_read(const char *form, const char *definition, const char *shapes, size_t tasks) {
    char key[200], text[2000];
    key_of(definition, shapes, key, sizeof key);
    snprintf(text, sizeof text, form, key, key);
    cd_task_registry *t = load(text, 0);
    const cd_task *task = find(t, key);
    if (!task || !task->dag || cd_task_registry_count(t) != tasks) print_error("%s", text);
    assert_int_equal(cd_task_registry_count(t), tasks);
    assert_true(task && task->dag);
    assert_null(cd_task_registry_unused(t, 0));
    cd_task_registry_free(t);
}

TEST(places) {
    check_read("noise\n== Task 0 (workload key: %s) ==\n" PLAIN "\nmore(\n", PLAIN, ", [4], [4]",
               1);
    check_read("%s\n" PLAIN, PLAIN, ", [4], [4]", 1);
    /* before its key */
    check_read(PLAIN "workload_key=%s. Done\n", PLAIN, ", [4], [4]", 1);
    /* between its lines */
    check_read("....***%s\r\np0 = PLACEHOLDER [4]\r\nA warning\r\nA(i) = max(p0[i], 0f)\r\n", PLAIN,
               ", [4], [4]", 1);
    /* twice, and lines behind it */
    check_read("%s\n" PLAIN "x\n%s\n" PLAIN PLAIN, PLAIN, ", [4], [4]", 1);
    check_read("%s\nnothing\n%s\n" PLAIN, PLAIN, ", [4], [4]", 1);
    check_read("%s\n" PLAIN, PLAIN, ", 4, 4", 1);
}

/* Shapes are not in the hash. */
#define PLAIN5 "p0 = PLACEHOLDER [5]\nA(i) = max(p0[i], 0f)\n"
#define PLUS   "p0 = PLACEHOLDER [4]\nA(i) = (p0[i] + 1f)\n"

/* A text of printf with the keys of PLAIN, PLUS and PLAIN5; which of them get a definition, a bit
 * each, and how many are told. */
static void check_many(const char *form, unsigned want, size_t told) {
    static const char *const definition[] = {PLAIN, PLUS, PLAIN5};
    static const char *const shapes[] = {", [4], [4]", ", [4], [4]", ", [5], [5]"};
    char key[3][200], text[2000];
    unsigned got = 0;
    for (int k = 0; k < 3; k++) key_of(definition[k], shapes[k], key[k], sizeof key[k]);
    snprintf(text, sizeof text, form, key[0], key[1], key[2]);
    cd_task_registry *t = load(text, 0);
    for (unsigned k = 0; k < 3; k++) {
        const cd_task *task = find(t, key[k]);
        if (task && task->dag) got |= 1U << k;
        if (task && task->dag) assert_int_equal(task->dag->op[0].shape[0], k == 2 ? 5 : 4);
    }
    size_t n = 0;
    for (const cdmpp_err *said; (said = cd_task_registry_unused(t, n)); n++)
        assert_non_null(strstr(said->msg, "the text is not that of the key"));
    if (got != want || n != told) print_error("%s%u, %zu are told\n", text, got, n);
    assert_int_equal(got, want);
    assert_int_equal(n, told);
    cd_task_registry_free(t);
}

TEST(several) {
    check_many("%1$s\n" PLAIN PLUS "%2$s\n", 3, 0); /* behind its key, then before its key */
    check_many(PLAIN "%1$s\n" PLUS "%2$s\n", 3, 0);
    check_many("%1$s\n" PLAIN PLUS "%2$s\n%3$s\n" PLAIN5, 7, 0);
    /* several keys in a line, in any order */
    check_many("[%1$s, %2$s, %3$s]\n" PLAIN PLUS PLAIN5, 7, 0);
    check_many("[%1$s, %2$s, %3$s]\n" PLAIN5 PLAIN PLUS, 7, 0);
    check_many(PLUS "%1$s %2$s\n" PLAIN, 3, 0);
    check_many("%1$s %1$s %2$s\n" PLAIN PLUS, 3, 0);
    check_many("%1$s %2$s\n" PLAIN, 1, 0); /* nothing follows that could be its definition */
    check_many("%1$s %2$s\n" PLAIN "p0 = PLACEHOLDER [7]\n", 1, 1);
    check_many("%1$s %2$s\n" PLAIN "p0 = PLACEHOLDER [7]\n%3$s\n", 1, 1);
    check_many("%1$s\n%2$s %3$s\n" PLAIN5 "p0 = PLACEHOLDER [7]\n", 4, 1);
    check_many("%1$s %2$s %3$s\n" PLUS "p0 = PLACEHOLDER [7]\n", 2, 2);
    /* the second text is not another one of this key */
    check_many("%1$s %1$s\n" PLAIN PLAIN5, 1, 0);
}

static void check_refused(const char *form, const char *definition, const char *shapes,
                          unsigned assume, long line, const char *want) {
    char key[200], text[2000];
    key_of(definition, shapes, key, sizeof key);
    snprintf(text, sizeof text, form, key, key);
    cd_task_registry *t = load(text, assume);
    const cdmpp_err *said = cd_task_registry_unused(t, 0);
    const cd_task *task = find(t, key);
    if (!said || !strstr(said->msg, want))
        print_error("want \"%s\", found \"%s\"\n", want, said ? said->msg : "nothing");
    assert_true(said && strstr(said->msg, want) && strstr(said->msg, key));
    assert_string_equal(said->path, "run.out");
    assert_int_equal(said->line, line);
    assert_null(cd_task_registry_unused(t, 1));
    assert_true(task && !task->dag && task->why && strstr(task->why->msg, want));
    cd_task_registry_free(t);
}

TEST(refused) {
    check_refused("a\n%s\n" PAD_BOTH, PAD_BOTH, ", [8], [3], [4]", 0, 2,
                  "axis a of wide is open: its extent may be 9 or 10");
    check_refused("a\nb\n%s\np0 = PLACEHOLDER [4]\nA(i) = max(p0[i], 1f)\n", PLAIN, ", [4], [4]", 0,
                  3, "the text is not that of the key");
    check_refused("%s\np0 = PLACEHOLDER [4]\n[\"0123456789abcdef0123456789abcdef\", [3]]\n", PLAIN,
                  ", [4], [4]", 0, 1, "the text is not that of the key");
    check_refused("%s\n" PAD_BOTH "%s\n" PAD_BEHIND, PAD_BOTH, ", [8], [3], [4]",
                  CD_DAGTEXT_SYMMETRIC_PADDING, 6, "two texts have this workload key");
    check_refused("%s\n" PAD_BEHIND "%s\n" PAD_BOTH, PAD_BOTH, ", [8], [3], [4]",
                  CD_DAGTEXT_SYMMETRIC_PADDING, 6, "two texts have this workload key");
}

/* n lines of a definition behind their key. */
static void check_length(int n, const char *want) {
    char key[200];
    cd_buf b = {0}, all = {0};
    cd_buf_puts(&b, "p0 = PLACEHOLDER [4]\nA1(i) = max(p0[i], 0f)\n");
    for (int i = 2; i < n; i++) cd_buf_putf(&b, "A%d(i) = max(A%d[i], 0f)\n", i, i - 1);
    cd_buf_put(&b, "", 1);
    cd_buf_putf(&all, "%s\n%s", key_of(b.p, ", [4], [4]", key, sizeof key), b.p);
    cd_buf_put(&all, "", 1);
    cd_task_registry *t = load(all.p, 0);
    const cdmpp_err *said = cd_task_registry_unused(t, 0);
    assert_int_equal(said != NULL, want != NULL);
    if (want && !strstr(said->msg, want)) print_error("%s\n", said->msg);
    assert_true(!want || strstr(said->msg, want));
    assert_int_equal(find(t, key)->dag != NULL, want == NULL);
    cd_task_registry_free(t);
    b.n--; /* a line more between it and its key: it is no text before a key */
    cd_buf_putf(&b, "A(i) = A1[i]\n%s\n", key);
    cd_buf_put(&b, "", 1);
    t = load(b.p, 0);
    assert_null(find(t, key));
    cd_task_registry_free(t);
    cd_buf_free(&b);
    cd_buf_free(&all);
}

TEST(long_ones) {
    check_length(256, NULL);
    check_length(257, "more than 256");
    check_length(400, "more than 256");
}

/* A log, an empty file: what is wrong is not its first letter. */
TEST(nothing_printed) {
    static const char *const text[] = {
        "Tuning started\n[\"0123456789abcdef0123456789abcdef\", [4]]\n", "", " \n", "\n[1, 2]"};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        cdmpp_err err = {0};
        cd_task_registry *t;
        assert_ok(cd_task_registry_new(&t, &err));
        assert_int_equal(cd_task_registry_load_text(t, "run.out", text[i], strlen(text[i]), &err),
                         CDMPP_ESCHEMA);
        assert_string_equal(
            err.msg,
            "no task file (JSON or a pickle), and no definition that TVM printed is in it");
        assert_string_equal(err.path, "run.out");
        cd_task_registry_free(t);
    }
}

TEST(assumed) {
    char key[200], text[2000];
    snprintf(text, sizeof text, "%s\n" PAD_BOTH,
             key_of(PAD_BOTH, ", [8], [3], [4]", key, sizeof key));
    cd_task_registry *t = load(text, CD_DAGTEXT_SYMMETRIC_PADDING | CD_DAGTEXT_FLOAT32);
    assert_int_equal(cd_task_registry_rest_count(t, CD_DAGTEXT_SYMMETRIC_PADDING), 1);
    assert_int_equal(cd_task_registry_rest_count(t, CD_DAGTEXT_FLOAT32), 0);
    assert_int_equal(find(t, key)->dag->op[1].shape[0], 10);
    cd_task_registry_free(t);
}

TEST(names) {
    static const char *const good[] = {"float32", "symmetric-padding"};
    static const char *const bad[] = {"symmetric"};
    cdmpp_err err = {0};
    unsigned bits;
    assert_ok(cd_task_assumptions(good, 2, &bits, &err));
    assert_int_equal(bits, CD_DAGTEXT_SYMMETRIC_PADDING | CD_DAGTEXT_FLOAT32);
    assert_error(cd_task_assumptions(bad, 1, &bits, &err),
                 "--assume: expected symmetric-padding|float32, found 'symmetric' [EUSAGE]");
    assert_ok(cd_task_assumptions(NULL, 0, &bits, &err));
    assert_int_equal(bits, 0);
}

/* The same task in our text form, with a tag, N elements after padding and what fills them. */
static void put_full(char *out, size_t n, const char *key, int padded, const char *fill) {
    cd_buf k = {0};
    cd_buf_put_json_str(&k, key, strlen(key));
    cd_buf_put(&k, "", 1);
    snprintf(out, n,
             "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [{\"workload_key\": %s, "
             "\"ops\": ["
             "{\"name\": \"p0\", \"shape\": [8], \"dtype\": \"float32\"},"
             "{\"name\": \"wide\", \"tag\": \"injective,pad\", \"axis\": [[\"a\", 0, %d]], "
             "\"body\": \"if_then_else(a >= 1 && a < 9, p0[a - 1], %s)\"},"
             "{\"name\": \"p1\", \"shape\": [3], \"dtype\": \"float32\"},"
             "{\"name\": \"sum\", \"axis\": [[\"i\", 0, 4]], \"reduce_axis\": [[\"k\", 0, 3]], "
             "\"reduce\": \"sum\", \"body\": \"wide[i*2 + k]*p1[k]\"}]}]}",
             k.p, padded, fill);
    cd_buf_free(&k);
}

/* A definition that is no print goes first, whatever the order of the files; a print that differs
 * is told. */
TEST(with_others) {
    for (int order = 0; order < 2; order++)
        for (int padded = 9; padded < 11; padded++)
            for (unsigned assume = 0; assume < 2; assume++) {
                char key[200], full[2000], text[2000];
                cdmpp_err err = {0};
                cd_task_registry *t;
                key_of(PAD_BOTH, ", [8], [3], [4]", key, sizeof key);
                put_full(full, sizeof full, key, padded, "0.0");
                snprintf(text, sizeof text, "a\n%s\n" PAD_BOTH, key);
                assert_ok(cd_task_registry_new(&t, &err));
                cd_task_registry_assume(t, assume);
                assert_ok(cd_task_registry_load_text(t, "first", order ? full : text,
                                                     strlen(order ? full : text), &err));
                assert_ok(cd_task_registry_load_text(t, "second", order ? text : full,
                                                     strlen(order ? text : full), &err));
                const cd_task *task = find(t, key);
                const bool differ = assume && padded == 9;
                const cdmpp_err *said = cd_task_registry_unused(t, 0);
                assert_non_null(task->dag);
                assert_int_equal(task->dag->op[1].shape[0], padded);
                assert_string_equal(task->dag->op[1].tag, "injective,pad");
                assert_int_equal(cd_task_registry_rest_count(t, CD_DAGTEXT_SYMMETRIC_PADDING), 0);
                assert_int_equal(said != NULL, differ);
                assert_true(!differ || (strstr(said->msg, "differs and goes first") &&
                                        strstr(said->msg, key) && said->line == 2));
                if (differ) assert_string_equal(said->path, order ? "second" : "first");
                assert_null(cd_task_registry_unused(t, 1));
                assert_int_equal(task->twin != NULL, differ);
                assert_true(!differ ||
                            (task->twin->dag->op[1].shape[0] == 10 && !task->twin->twin));
                cd_task_registry_free(t);
            }
}

/* One text after another under one key, as files "0", "1", ... */
static cd_task_registry *load_each(const char *const *text, size_t n) {
    cdmpp_err err = {0};
    cd_task_registry *t;
    assert_ok(cd_task_registry_new(&t, &err));
    cd_task_registry_assume(t, CD_DAGTEXT_SYMMETRIC_PADDING);
    for (size_t i = 0; i < n; i++) {
        const char name[] = {(char)('0' + i), 0};
        assert_ok(cd_task_registry_load_text(t, name, text[i], strlen(text[i]), &err));
    }
    return t;
}

/* Two prints, and a definition that agrees with the later one: each is there once. */
TEST(later_print_agrees) {
    char key[200], full[2000], both[1000], ones[1000];
    snprintf(both, sizeof both, "%s\n" PAD_BOTH,
             key_of(PAD_BOTH, ", [8], [3], [4]", key, sizeof key));
    snprintf(ones, sizeof ones, "%s\n" PAD_ONES, key);
    put_full(full, sizeof full, key, 10, "1.0");
    cd_task_registry *t = load_each((const char *const[]){both, ones, full}, 3),
                     *print = load_each((const char *const[]){both}, 1);
    const cd_task *task = find(t, key);
    assert_string_equal(task->dag->op[1].tag, "injective,pad");
    assert_true(task->twin && !task->twin->twin &&
                cd_te_dag_equal(task->twin->dag, find(print, key)->dag));
    assert_string_equal(cd_task_registry_unused(t, 0)->path, "1");
    assert_string_equal(cd_task_registry_unused(t, 1)->path, "0");
    assert_null(cd_task_registry_unused(t, 2));
    cd_task_registry_free(t);
    cd_task_registry_free(print);
}

/* What took the place of a print is none: neither a text that cannot be read nor another definition
 * takes it away. */
TEST(stays_replaced) {
    char key[200], full[2000], other[2000], both[1000], behind[1000];
    snprintf(both, sizeof both, "%s\n" PAD_BOTH,
             key_of(PAD_BOTH, ", [8], [3], [4]", key, sizeof key));
    snprintf(behind, sizeof behind, "%s\n" PAD_BEHIND, key);
    put_full(other, sizeof other, key, 9, "0.0");
    for (int padded = 9; padded < 11; padded++) {
        put_full(full, sizeof full, key, padded, "1.0");
        cd_task_registry *t = load_each((const char *const[]){both, full, behind, other}, 4);
        const cd_task *task = find(t, key);
        assert_true(task->dag && task->dag->op[1].shape[0] == padded);
        assert_string_equal(task->dag->op[1].tag, "injective,pad");
        assert_int_equal(cd_task_registry_rest_count(t, CD_DAGTEXT_SYMMETRIC_PADDING), 0);
        cd_task_registry_free(t);
    }
}

static tmp_dir dir;

/* *.out, where nothing else defines tasks; what prints no definition is passed over. */
TEST(folder) {
    static const char none[] = "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": []}";
    char key[200], text[2000];
    cdmpp_err err = {0};
    cd_task_registry *t;
    key_of(PLAIN, ", [4], [4]", key, sizeof key);
    snprintf(text, sizeof text, "%s\n" PLAIN, key);
    tmp_put(&dir, "a.out", text, strlen(text));
    tmp_put(&dir, "b.out", "nothing\n", 8);
    assert_ok(cd_task_registry_new(&t, &err));
    assert_ok(cd_task_registry_load(t, dir.path, &err));
    assert_int_equal(cd_task_registry_count(t), 1);
    cd_task_registry_free(t);
    tmp_put(&dir, "c.tasks.json", none, strlen(none));
    assert_ok(cd_task_registry_new(&t, &err));
    assert_ok(cd_task_registry_load(t, dir.path, &err));
    assert_int_equal(cd_task_registry_count(t), 0);
    cd_task_registry_free(t);
}

TEST(no_memory) {
    char key[200], plain[200], text[3000], two[3000], full[2000];
    key_of(PAD_BOTH, ", [8], [3], [4]", key, sizeof key);
    key_of(PLAIN, ", [4], [4]", plain, sizeof plain);
    snprintf(text, sizeof text, "%s\n" PAD_BOTH "%s\n" PAD_BEHIND PAD_BOTH "%s\n" PLAIN, key, key,
             key);
    snprintf(two, sizeof two, "%s %s\n" PAD_BOTH PLAIN "%s\n" PAD_ONES "%s %s\n" PLAIN, key, plain,
             key, plain, plain);
    for (int i = 0; i < 4; i++) {
        put_full(full, sizeof full, key, i & 1 ? 10 : 9, i ? "1.0" : "0.0");
        FAULT_SWEEP(f, 10) {
            cd_task_registry *t = NULL;
            const char *run = i < 2 ? two : text;
            f.st = cd_task_registry_new(&t, &f.err);
            if (!f.st) cd_task_registry_assume(t, 1);
            if (!f.st) f.st = cd_task_registry_load_text(t, "run.out", run, strlen(run), &f.err);
            if (!f.st) f.st = cd_task_registry_load_text(t, "full", full, strlen(full), &f.err);
            cd_task_registry_free(t);
        }
    }
}

static int up(void **state) {
    (void)state;
    dir = tmp_make();
    return 0;
}
static int down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

TESTS(up, down, places, several, refused, long_ones, nothing_printed, assumed, names, with_others,
      later_print_agrees, stays_replaced, folder, no_memory)
