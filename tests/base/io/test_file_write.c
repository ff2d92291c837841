/* Files as a whole: written in one step, and listed. */
#include "check.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/io.h"
#include "tmp.h"

static size_t n_files(const char *folder) {
    cd_arena a = {0};
    cdmpp_err err = {0};
    const char *const *list = NULL;
    size_t n = 0;
    assert_ok(cd_file_list(&a, folder, NULL, NULL, &list, &n, &err));
    cd_arena_free(&a);
    return n;
}

TEST(write_replaces) {
    tmp_dir d = tmp_make();
    cdmpp_err err = {0};
    char *data = NULL;
    size_t n;
    struct stat st;
    const char *path = tmp_path(&d, "f"), *link = tmp_path(&d, "link");
    assert_ok(cd_file_write(path, "one", 3, &err));
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(symlink("f", link), 0);
    assert_ok(cd_file_write(link, "second", 6, &err));
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_ok(cd_file_read(path, 0, &data, &n, &err));
    assert_string_equal(data, "second");
    cd_mem_free(data);
    assert_ok(cd_file_write(path, NULL, 0, &err));
    assert_int_equal(n_files(d.path), 2); /* no temporary left: f, and f by its link */
    tmp_remove(&d);
}

TEST(write_fails) {
    tmp_dir d = tmp_make();
    cdmpp_err err = {0};
    char *temp = NULL;
    assert_status(cd_file_write("/dev/full", "x", 1, &err), CDMPP_EIO);
    assert_string_equal(err.path, "/dev/full");
    assert_non_null(strstr(err.msg, "No space left"));
    assert_ok(cd_file_write("/dev/null", "x", 1, &err));
    const char *path = tmp_path(&d, "no/such");
    assert_status(cd_file_write(path, "x", 1, &err), CDMPP_EIO);
    assert_string_equal(err.path, path);
    /* the name is taken by a folder meanwhile */
    path = tmp_path(&d, "folder");
    assert_ok(cd_file_temp(path, &temp, &err));
    assert_int_equal(n_files(d.path), 1);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_status(cd_file_publish(temp, path, &err), CDMPP_EIO);
    assert_int_equal(n_files(d.path), 0);
    assert_ok(cd_file_temp(tmp_path(&d, "x"), &temp, &err));
    cd_file_discard(temp);
    assert_int_equal(n_files(d.path), 0);
    tmp_remove(&d);
}

/* A file is replaced, and what is no file stays what it is. */
TEST(only_files_are_replaced) {
    tmp_dir d = tmp_make();
    cdmpp_err err = {0};
    char *temp = NULL;
    const char *link = tmp_path(&d, "link");
    assert_int_equal(symlink("/dev/null", link), 0);
    static const char *const no[] = {"/dev/null", "/tmp", NULL};
    for (int k = 0; k < 3; k++) {
        const char *path = no[k] ? no[k] : link;
        assert_status(cd_file_replaceable(path, &err), CDMPP_EIO);
        assert_string_equal(err.path, path);
        assert_status(cd_file_temp(path, &temp, &err), CDMPP_EIO);
        assert_null(temp);
    }
    assert_ok(cd_file_replaceable(tmp_put(&d, "f", "", 0), &err));
    assert_ok(cd_file_replaceable(tmp_path(&d, "none"), &err));
    tmp_remove(&d);
}

TEST(names_of_one_file) {
    tmp_dir d = tmp_make();
    char f[256], other[256];
    snprintf(f, sizeof f, "%s", tmp_put(&d, "f", "same", 4));
    snprintf(other, sizeof other, "%s", tmp_put(&d, "g", "same", 4));
    assert_true(cd_file_same(f, f) && cd_file_same("none", "none"));
    assert_false(cd_file_same(f, other) || cd_file_same(f, "none") || cd_file_same("none", f) ||
                 cd_file_same("/dev/null", "/dev/full"));
    assert_int_equal(symlink("f", tmp_path(&d, "soft")), 0);
    assert_int_equal(link(f, tmp_path(&d, "hard")), 0);
    assert_true(cd_file_same(f, tmp_path(&d, "soft")) && cd_file_same(tmp_path(&d, "hard"), f));
    assert_false(cd_file_same(tmp_path(&d, "soft"), other));
    tmp_remove(&d);
}

static bool ends_in_json(const char *path, void *ctx) {
    ++*(int *)ctx;
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ".json") == 0;
}

TEST(list_is_sorted) {
    static const char *const name[] = {"b.json",    "a/z.json", "a.json", "a/b/c.json",
                                       "a/b/d.txt", "a-.json",  "Z.json"};
    static const char *const want[] = {"Z.json",     "a-.json",  "a.json",
                                       "a/b/c.json", "a/z.json", "b.json"};
    tmp_dir d = tmp_make();
    cd_arena a = {0};
    cdmpp_err err = {0};
    const char *const *list = NULL;
    size_t n = 0;
    int asked = 0;
    mkdir(tmp_path(&d, "a"), 0700);
    mkdir(tmp_path(&d, "a/b"), 0700);
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) tmp_put(&d, name[i], "", 0);
    assert_int_equal(symlink("..", tmp_path(&d, "a/loop")), 0);
    assert_int_equal(symlink("nowhere", tmp_path(&d, "a/dangling")), 0);
    assert_ok(cd_file_list(&a, d.path, ends_in_json, &asked, &list, &n, &err));
    assert_int_equal(asked, 7);
    assert_int_equal(n, 6);
    for (size_t i = 0; i < n; i++) assert_string_equal(list[i], tmp_path(&d, want[i]));
    assert_ok(cd_file_list(&a, tmp_path(&d, "a/b/d.txt"), NULL, NULL, &list, &n, &err));
    assert_int_equal(n, 1);
    assert_status(cd_file_list(&a, tmp_path(&d, "none"), NULL, NULL, &list, &n, &err), CDMPP_EIO);
    cd_arena_free(&a);
    tmp_remove(&d);
}

/* Another file has the name of a temporary: the next one is taken. */
TEST(temporaries_have_new_names) {
    tmp_dir d = tmp_make();
    cdmpp_err err = {0};
    char *temp[70], *data, name[64], path[256];
    size_t n;
    snprintf(path, sizeof path, "%s", tmp_path(&d, "f"));
    snprintf(name, sizeof name, "f.tmp%ld.0", (long)getpid());
    tmp_put(&d, name, "mine", 4);
    assert_ok(cd_file_write(path, "x", 1, &err));
    assert_ok(cd_file_read(tmp_path(&d, name), 0, &data, &n, &err));
    assert_string_equal(data, "mine");
    cd_mem_free(data);
    assert_int_equal(n_files(d.path), 2);
    /* more than a signal's handler removes: the others work all the same */
    for (int k = 0; k < 70; k++) assert_ok(cd_file_temp(path, &temp[k], &err));
    assert_int_equal(n_files(d.path), 72);
    cd_file_remove_temps();
    assert_int_equal(n_files(d.path), 2 + 70 - 64);
    for (int k = 69; k > 0; k--) cd_file_discard(temp[k]);
    cd_file_discard(NULL);
    assert_int_equal(n_files(d.path), 2);
    /* it is gone meanwhile */
    assert_status(cd_file_publish(temp[0], path, &err), CDMPP_EIO);
    assert_string_equal(err.path, path);
    assert_non_null(strstr(err.msg, "cannot write: No such file"));
    for (int k = 0; k < 1000; k++) {
        snprintf(name, sizeof name, "f.tmp%ld.%d", (long)getpid(), k);
        tmp_put(&d, name, "", 0);
    }
    assert_status(cd_file_write(path, "x", 1, &err), CDMPP_EIO);
    assert_non_null(strstr(err.msg, "cannot create a file in this folder: File exists"));
    tmp_remove(&d);
}

/* Devices are written to as they are; what is neither file nor folder is not listed. */
TEST(no_files) {
    tmp_dir d = tmp_make();
    cd_arena a = {0};
    cdmpp_err err = {0};
    const char *const *list = NULL;
    size_t n = 7;
    char hex[65];
    assert_int_equal(mkfifo(tmp_path(&d, "pipe"), 0600), 0);
    assert_int_equal(symlink("/dev/full", tmp_path(&d, "full")), 0);
    assert_ok(cd_file_list(&a, d.path, NULL, NULL, &list, &n, &err));
    assert_int_equal(n, 0);
    assert_status(cd_file_write(tmp_path(&d, "full"), "x", 1, &err), CDMPP_EIO);
    assert_non_null(strstr(err.msg, "cannot write"));
    assert_status(cd_file_write(d.path, "x", 1, &err), CDMPP_EIO);
    assert_non_null(strstr(err.msg, "cannot open for writing: Is a directory"));
    assert_status(cd_file_digest(tmp_path(&d, "none"), hex, &err), CDMPP_EIO);
    assert_status(cd_file_list(&a, "", NULL, NULL, &list, &n, &err), CDMPP_EIO);
    assert_int_equal(symlink("round", tmp_path(&d, "round")), 0); /* a link to itself */
    assert_status(cd_file_list(&a, d.path, NULL, NULL, &list, &n, &err), CDMPP_EIO);
    assert_string_equal(err.path, tmp_path(&d, "round"));
    assert_status(cd_file_make_folder(tmp_path(&d, "no/such"), &err), CDMPP_EIO);
    assert_ok(cd_file_make_folder(tmp_path(&d, "new"), &err));
    assert_ok(cd_file_make_folder(tmp_path(&d, "new"), &err));
    cd_arena_free(&a);
    tmp_remove(&d);
}

TESTS(NULL, NULL, temporaries_have_new_names, no_files, write_replaces, write_fails,
      only_files_are_replaced, names_of_one_file, list_is_sorted)
