/* Files that are named twice are found whatever they are called, and said. */
#include "base/io/io.h"
#include "check.h"
#include "fault.h"
#include "tmp.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tmp_dir dir;

static int up(void **state) {
    cdmpp_err err = {0};
    (void)state;
    dir = tmp_make();
    for (int i = 0; i < 6; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%d", i);
        if (cd_file_write(tmp_path(&dir, name), name, 1, &err)) return 1;
    }
    return chdir(dir.path) || symlink("1", "one") || link("2", "two") || mkfifo("pipe", 0600);
}

static int down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

static void once(size_t n, const char **path, size_t left, const char *want) {
    cdmpp_err err = {0};
    cd_buf said = {0};
    assert_ok(cd_file_once(path, &n, &said, &err));
    assert_int_equal(n, left);
    assert_string_equal(said.n ? said.p : "", want);
    cd_buf_free(&said);
}

TEST(names_of_one_file) {
    const char *none[] = {"1", "2", "3"};
    const char *same[] = {"1", "2", "1"};
    const char *other[] = {"one", "2", "two", "1", "3"};
    once(3, none, 3, "");
    once(3, same, 2, "1 is given twice: it is read once");
    assert_true(!strcmp(same[0], "1") && !strcmp(same[1], "2"));
    once(5, other, 3, "two is the file 2; 1 is the file one: each is read once");
    assert_true(!strcmp(other[0], "one") && !strcmp(other[1], "2") && !strcmp(other[2], "3"));
    const char *dot[] = {"./1", "1"};
    once(2, dot, 1, "1 is the file ./1: it is read once");
    once(0, NULL, 0, "");
}

/* Many are counted. What is no file, or is not there, is told by whoever opens it. */
TEST(many_and_none) {
    const char *many[] = {"0", "0", "0", "0", "0", "0", "0"};
    const char *no[] = {"pipe", "pipe", "nothing", "nothing"};
    once(7, many, 1,
         "0 is given twice; 0 is given twice; 0 is given twice; 3 more: each is read once");
    once(4, no, 4, "");
}

TEST(without_memory) {
    FAULT_SWEEP(f, 1) {
        const char *path[] = {"1", "2", "one"};
        size_t n = 3;
        cd_buf said = {0};
        f.st = cd_file_once(path, &n, &said, &f.err);
        if (!f.st) assert_int_equal(n, 2);
        cd_buf_free(&said);
    }
}

TESTS(up, down, names_of_one_file, many_and_none, without_memory)
