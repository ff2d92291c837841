/* Texts in which TVM printed definitions beside their keys, read into the registry. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fault.h"
#include "tmp.h"

#include "features/dagtext/dagtext.h"
#include "features/task/task.h"

#define PLAIN "p0 = PLACEHOLDER [4]\nA(i) = max(p0[i], 0f)\n"
/* Padding 1 before, step 2; and one that begins without padding: calls have the same hash whatever their arguments are. */
#define PAD(guard, at) "p0 = PLACEHOLDER [8]\nwide(a) = tir.if_then_else(" guard ", p0[" at "], 0f)\np1 = PLACEHOLDER [3]\nsum(i) += (wide[((i*2) + k)]*p1[k])\n"
#define PAD_BOTH PAD("((a >= 1) && (a < 9))", "(a - 1)")
#define PAD_BEHIND PAD("(a < 8)", "a")

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

static const cd_task *find(const cd_task_registry *t, const char *key) { return cd_task_registry_find(t, (cd_str){key, strlen(key)}); }

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
    check_read("noise\n== Task 0 (workload key: %s) ==\n" PLAIN "\nmore(\n", PLAIN, ", [4], [4]", 1);
    check_read("%s\n" PLAIN, PLAIN, ", [4], [4]", 1);
    check_read(PLAIN "workload_key=%s. Done\n", PLAIN, ", [4], [4]", 1);                     /* before its key */
    check_read("....***%s\r\np0 = PLACEHOLDER [4]\r\nA warning\r\nA(i) = max(p0[i], 0f)\r\n", PLAIN, ", [4], [4]", 1); /* between its lines */
    check_read("%s\n" PLAIN "x\n%s\n" PLAIN PLAIN, PLAIN, ", [4], [4]", 1);                    /* twice, and lines behind it */
    check_read("%s\nnothing\n%s\n" PLAIN, PLAIN, ", [4], [4]", 1);
    check_read("%s\n" PLAIN, PLAIN, ", 4, 4", 1);
}

static void check_refused(const char *form, const char *definition, const char *shapes, unsigned assume, long line, const char *want) {
    char key[200], text[2000];
    key_of(definition, shapes, key, sizeof key);
    snprintf(text, sizeof text, form, key, key);
    cd_task_registry *t = load(text, assume);
    const cdmpp_err *said = cd_task_registry_unused(t, 0);
    const cd_task *task = find(t, key);
    if (!said || !strstr(said->msg, want)) print_error("want \"%s\", found \"%s\"\n", want, said ? said->msg : "nothing");
    assert_true(said && strstr(said->msg, want) && strstr(said->msg, key));
    assert_string_equal(said->path, "run.out");
    assert_int_equal(said->line, line);
    assert_null(cd_task_registry_unused(t, 1));
    assert_true(task && !task->dag && task->why && strstr(task->why->msg, want));
    cd_task_registry_free(t);
}

TEST(refused) {
    check_refused("a\n%s\n" PAD_BOTH, PAD_BOTH, ", [8], [3], [4]", 0, 2, "axis a of wide is open: its extent may be 9 or 10");
    check_refused("a\nb\n%s\np0 = PLACEHOLDER [4]\nA(i) = max(p0[i], 1f)\n", PLAIN, ", [4], [4]", 0, 3, "the text is not that of the key");
    check_refused("%s\np0 = PLACEHOLDER [4]\n[\"0123456789abcdef0123456789abcdef\", [3]]\n", PLAIN, ", [4], [4]", 0, 1, "the text is not that of the key");
    check_refused("%s\n" PAD_BOTH "%s\n" PAD_BEHIND, PAD_BOTH, ", [8], [3], [4]", CD_DAGTEXT_SYMMETRIC_PADDING, 6, "two texts have this workload key");
    check_refused("%s\n" PAD_BEHIND "%s\n" PAD_BOTH, PAD_BOTH, ", [8], [3], [4]", CD_DAGTEXT_SYMMETRIC_PADDING, 6, "two texts have this workload key");
}

TEST(assumed) {
    char key[200], text[2000];
    snprintf(text, sizeof text, "%s\n" PAD_BOTH, key_of(PAD_BOTH, ", [8], [3], [4]", key, sizeof key));
    cd_task_registry *t = load(text, CD_DAGTEXT_SYMMETRIC_PADDING | CD_DAGTEXT_FLOAT32);
    assert_int_equal(cd_task_registry_rest_count(t, CD_DAGTEXT_SYMMETRIC_PADDING), 1);
    assert_int_equal(cd_task_registry_rest_count(t, CD_DAGTEXT_FLOAT32), 0);
    assert_int_equal(find(t, key)->dag->op[1].shape[0], 10);
    cd_task_registry_free(t);
}

TEST(names) {
    static const char *const good[] = {"float32", "symmetric-padding"}, *const bad[] = {"symmetric"};
    cdmpp_err err = {0};
    unsigned bits;
    assert_ok(cd_task_assumptions(good, 2, &bits, &err));
    assert_int_equal(bits, CD_DAGTEXT_SYMMETRIC_PADDING | CD_DAGTEXT_FLOAT32);
    assert_error(cd_task_assumptions(bad, 1, &bits, &err), "--assume: expected symmetric-padding|float32, found 'symmetric' [EUSAGE]");
    assert_ok(cd_task_assumptions(NULL, 0, &bits, &err));
    assert_int_equal(bits, 0);
}

/* The same task in our text form, with a tag and N elements after padding. */
static void put_full(char *out, size_t n, const char *key, int padded) {
    cd_buf k = {0};
    cd_buf_put_json_str(&k, key, strlen(key));
    cd_buf_put(&k, "", 1);
    snprintf(out, n,
             "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [{\"workload_key\": %s, \"ops\": ["
             "{\"name\": \"p0\", \"shape\": [8], \"dtype\": \"float32\"},"
             "{\"name\": \"wide\", \"tag\": \"injective,pad\", \"axis\": [[\"a\", 0, %d]], \"body\": \"if_then_else(a >= 1 && a < 9, p0[a - 1], 0.0)\"},"
             "{\"name\": \"p1\", \"shape\": [3], \"dtype\": \"float32\"},"
             "{\"name\": \"sum\", \"axis\": [[\"i\", 0, 4]], \"reduce_axis\": [[\"k\", 0, 3]], \"reduce\": \"sum\", \"body\": \"wide[i*2 + k]*p1[k]\"}]}]}",
             k.p, padded);
    cd_buf_free(&k);
}

/* A definition that says more takes the place of an equal print; one that differs is told. */
TEST(with_others) {
    for (int order = 0; order < 2; order++)
        for (int padded = 9; padded < 11; padded++)
            for (unsigned assume = 0; assume < 2; assume++) {
                char key[200], full[2000], text[2000];
                cdmpp_err err = {0};
                cd_task_registry *t;
                key_of(PAD_BOTH, ", [8], [3], [4]", key, sizeof key);
                put_full(full, sizeof full, key, padded);
                snprintf(text, sizeof text, "%s\n" PAD_BOTH, key);
                assert_ok(cd_task_registry_new(&t, &err));
                cd_task_registry_assume(t, assume);
                assert_ok(cd_task_registry_load_text(t, "first", order ? full : text, strlen(order ? full : text), &err));
                assert_ok(cd_task_registry_load_text(t, "second", order ? text : full, strlen(order ? text : full), &err));
                const cd_task *task = find(t, key);
                const bool differ = assume && padded == 9, print = differ && !order;
                assert_non_null(task->dag);
                assert_int_equal(task->dag->op[1].shape[0], print ? 10 : padded);
                assert_string_equal(task->dag->op[1].tag, print ? "" : "injective,pad");
                assert_int_equal(cd_task_registry_unused(t, 0) != NULL, differ);
                assert_int_equal(task->twin != NULL, differ);
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
    char key[200], text[3000], full[2000];
    key_of(PAD_BOTH, ", [8], [3], [4]", key, sizeof key);
    snprintf(text, sizeof text, "%s\n" PAD_BOTH "%s\n" PAD_BEHIND PAD_BOTH "%s\n" PLAIN, key, key, key);
    put_full(full, sizeof full, key, 10);
    FAULT_SWEEP(f, 10) {
        cd_task_registry *t = NULL;
        f.st = cd_task_registry_new(&t, &f.err);
        if (!f.st) cd_task_registry_assume(t, 1);
        if (!f.st) f.st = cd_task_registry_load_text(t, "run.out", text, strlen(text), &f.err);
        if (!f.st) f.st = cd_task_registry_load_text(t, "full", full, strlen(full), &f.err);
        cd_task_registry_free(t);
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

TESTS(up, down, places, refused, assumed, names, with_others, folder, no_memory)
