/* One line of a log by its place, "FILE:LINE", and the program that it is. */
#include "check.h"
#include "base/cli/cli.h"
#include "dataset/extract/extract.h"
#include "tmp.h"

static tmp_dir dir;

static int up(void **s) {
    (void)s;
    dir = tmp_make();
    tmp_put(&dir, "a.json", "one\n\nthree\n", 11);
    tmp_put(&dir, "b.json:2", "odd\nname\n", 9);
    return 0;
}

static int down(void **s) {
    (void)s;
    tmp_remove(&dir);
    return 0;
}

TEST(places) {
    static const struct {
        const char *where, *path;
        long line;
        const char *text;
    } tab[] = {{"a.json", "a.json", 1, "one"},     {"a.json:1", "a.json", 1, "one"},
               {"a.json:2", "a.json", 2, ""},      {"a.json:3", "a.json", 3, "three"},
               {"b.json:2", "b.json:2", 1, "odd"}, {"b.json:2:2", "b.json:2", 2, "name"}};
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        cd_buf path = {0}, text = {0};
        cdmpp_err err = {0};
        long line = 0;
        assert_ok(cd_extract_line(tmp_path(&dir, tab[k].where), &path, &line, &text, &err));
        assert_string_equal(path.p, tmp_path(&dir, tab[k].path));
        assert_int_equal(line, tab[k].line);
        assert_int_equal(text.n, strlen(tab[k].text));
        if (text.n) assert_string_equal(text.p, tab[k].text);
        cd_buf_free(&path);
        cd_buf_free(&text);
    }
}

TEST(no_such_place) {
    static const struct {
        const char *where;
        cdmpp_status st;
        const char *msg;
    } tab[] = {{"a.json:4", CDMPP_EUSAGE, "expected at least 4 lines, found 3"},
               {"a.json:0", CDMPP_EIO, "cannot open"},
               {"a.json:x", CDMPP_EIO, "cannot open"},
               {"a.json:", CDMPP_EIO, "cannot open"},
               {"a.json:2x", CDMPP_EIO, "cannot open"},
               {"c.json", CDMPP_EIO, "cannot open"}};
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        cd_buf path = {0}, text = {0};
        cdmpp_err err = {0};
        long line;
        assert_status(cd_extract_line(tmp_path(&dir, tab[k].where), &path, &line, &text, &err),
                      tab[k].st);
        assert_non_null(strstr(err.msg, tab[k].msg));
        cd_buf_free(&path);
        cd_buf_free(&text);
    }
}

TEST(the_program) {
    static const char *const tasks[] = {"tests/fuzz/program.tasks.json"};
    cd_buf out = {0};
    cdmpp_err err = {0};
    cd_log lg;
    cd_log_init(&lg, "x", stderr);
    assert_ok(
        cd_extract_print(tasks, 1, 0, "tests/fuzz/seeds/program/scalar.json:1", &lg, &out, &err));
    assert_non_null(strstr(out.p, "realize "));
    cd_buf_clear(&out);
    assert_status(
        cd_extract_print(NULL, 0, 0, "tests/fuzz/seeds/program/scalar.json", &lg, &out, &err),
        CDMPP_ENOTASK);
    assert_non_null(strstr(err.msg, "no task file defines scalar"));
    assert_string_equal(err.path, "tests/fuzz/seeds/program/scalar.json");
    assert_int_equal(err.line, 1);
    assert_status(cd_extract_print(tasks, 1, 0, tmp_path(&dir, "a.json:3"), &lg, &out, &err),
                  CDMPP_EPARSE);
    assert_int_equal(err.line, 3);
    cd_buf_clear(&out);
    assert_ok(cd_extract_tasks(tasks, 1, 0, &lg, &out, &(size_t){0}, &err));
    assert_non_null(strstr(out.p, "\"schema\": \"cdmpp.tasks\""));
    cd_buf_free(&out);
    cd_log_done(&lg);
}

TESTS(up, down, places, no_such_place, the_program)
