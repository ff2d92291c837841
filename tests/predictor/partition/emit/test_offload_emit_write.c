/* A folder that several emissions go to: what an earlier one left goes, what others put there
 * stays. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
#include "base/core/mem.h"
#include "check.h"
#include "predictor/partition/emit/emit.h"
#include "tmp.h"

static cdmpp_err err;

static cd_emit_files files(const char *const *name, uint32_t n, const char *text) {
    cd_emit_files f = {0};
    for (uint32_t k = 0; k < n; k++)
        cd_buf_putf(cd_emit_add(&f, name[k], ""), "%s of %s\n", text, name[k]);
    return f;
}

static cdmpp_status emit(tmp_dir *d, const char *const *name, uint32_t n, const char *text) {
    cd_emit_files f = files(name, n, text);
    err = (cdmpp_err){0};
    const cdmpp_status st = cd_emit_write(&f, d->path, &err);
    cd_emit_files_free(&f);
    return st;
}

static bool there(tmp_dir *d, const char *name) { return !access(tmp_path(d, name), F_OK); }

static const char *const two[] = {"main.c", "region0.c"};
static const char *const three[] = {"main.c", "region0.c", "region1.c"};
static const char *const other[] = {"main.c", "region2.json"};

static void test_older_go(void **state) {
    (void)state;
    tmp_dir d = tmp_make();
    tmp_put(&d, "notes.txt", "mine", 4);
    tmp_put(&d, "region7.c", "mine too", 8); /* looks like one of ours, and is not */
    assert_ok(emit(&d, three, 3, "first"));
    assert_true(there(&d, "region1.c") && there(&d, CD_EMIT_LIST));
    assert_ok(emit(&d, two, 2, "second"));
    assert_true(there(&d, "region0.c") && !there(&d, "region1.c") && there(&d, "notes.txt") &&
                there(&d, "region7.c"));
    assert_ok(emit(&d, other, 2, "third"));
    assert_true(!there(&d, "region0.c") && there(&d, "region2.json"));
    assert_ok(emit(&d, other, 2, "third"));
    assert_true(there(&d, "main.c") && there(&d, "region2.json") && there(&d, "region7.c"));
    tmp_remove(&d);
}

/* One that was changed since is somebody's work: nothing is written. */
static void test_changed(void **state) {
    (void)state;
    tmp_dir d = tmp_make();
    char *text;
    size_t n;
    assert_ok(emit(&d, three, 3, "first"));
    tmp_put(&d, "region1.c", "by hand", 7);
    assert_status(emit(&d, two, 2, "second"), CDMPP_EINVALID);
    assert_non_null(strstr(err.path, "region1.c"));
    assert_ok(cd_file_read(tmp_path(&d, "main.c"), 100, &text, &n, &err));
    assert_string_equal(text, "first of main.c\n");
    cd_mem_free(text);
    unlink(tmp_path(&d, "region1.c"));
    assert_int_equal(symlink("main.c", tmp_path(&d, "region1.c")), 0);
    assert_status(emit(&d, two, 2, "second"), CDMPP_EINVALID);
    unlink(tmp_path(&d, "region1.c"));
    assert_ok(emit(&d, two, 2, "second"));
    tmp_put(&d, "region0.c", "by hand", 7); /* written anew: as ever */
    assert_ok(emit(&d, two, 2, "third"));
    tmp_remove(&d);
}

/* Stopped between: files of both emissions are in the list, and go with the next. */
static void test_stopped(void **state) {
    (void)state;
    tmp_dir d = tmp_make();
    char *list[2], both[4096];
    size_t n[2];
    assert_ok(emit(&d, other, 2, "second"));
    assert_ok(cd_file_read(tmp_path(&d, CD_EMIT_LIST), 4096, &list[0], &n[0], &err));
    assert_ok(emit(&d, three, 3, "first"));
    assert_ok(cd_file_read(tmp_path(&d, CD_EMIT_LIST), 4096, &list[1], &n[1], &err));
    tmp_put(&d, "region2.json", "second of region2.json\n", 23);
    tmp_put(&d, CD_EMIT_LIST, both, (size_t)snprintf(both, sizeof both, "%s%s", list[0], list[1]));
    assert_ok(emit(&d, two, 1, "third"));
    assert_true(there(&d, "main.c") && !there(&d, "region0.c") && !there(&d, "region1.c") &&
                !there(&d, "region2.json"));
    for (int k = 0; k < 2; k++) cd_mem_free(list[k]);
    tmp_remove(&d);
}

/* A list that is none, or that names what is not in the folder, removes nothing. */
static void test_list(void **state) {
    (void)state;
    static const char digest[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    static const char *const name[] = {
        "../out", "/etc/x",
        "",       ".",
        "..",     ".x",
        "a/b",    "0123456789012345678901234567890123456789012345678901234567890123456789"};
    tmp_dir d = tmp_make();
    char text[256];
    for (size_t k = 0; k < sizeof name / sizeof *name; k++) {
        tmp_put(&d, CD_EMIT_LIST, text,
                (size_t)snprintf(text, sizeof text, "%s  %s\n", digest, name[k]));
        assert_status(emit(&d, two, 2, "x"), CDMPP_ESCHEMA);
        assert_true(strstr(err.path, CD_EMIT_LIST) && err.line == 1 && !there(&d, "main.c"));
    }
    /* no end */
    tmp_put(&d, CD_EMIT_LIST, text, (size_t)snprintf(text, sizeof text, "%s  empty", digest));
    assert_status(emit(&d, two, 2, "x"), CDMPP_ESCHEMA);
    tmp_put(&d, CD_EMIT_LIST, "hello\n", 6);
    assert_status(emit(&d, two, 2, "x"), CDMPP_ESCHEMA);
    tmp_put(&d, CD_EMIT_LIST, text,
            (size_t)snprintf(text, sizeof text, "%s  empty\n%s  gone\n", digest, digest));
    tmp_put(&d, "empty", "", 0);
    assert_ok(emit(&d, two, 2, "x"));
    assert_true(!there(&d, "empty") && there(&d, "main.c"));
    tmp_remove(&d);
}

TESTS(NULL, NULL, test_older_go, test_changed, test_stopped, test_list)
