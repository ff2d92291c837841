/* Errors keep the innermost place, and keys are put in front of each other. */
#include "check.h"

#include <string.h>

#include "base/core/core.h"

static cdmpp_status raise(cdmpp_err *err) { return CD_FAIL(err, ERANGE, "%d is too much", 7); }

static cdmpp_status forward(cdmpp_err *err) {
    CD_TRY(raise(err));
    return CDMPP_OK;
}

TEST(format) {
    cdmpp_err err = {0};
    char buf[600];
    assert_int_equal(forward(&err), CDMPP_ERANGE);
    assert_string_equal(cdmpp_err_format(&err, buf, sizeof buf), "7 is too much [ERANGE]");
    assert_int_equal(err.code, CDMPP_ERANGE);
    assert_non_null(strstr(err.src, "test_err.c"));
    assert_true(err.src_line > 0);
    assert_int_equal(cd_err_index(&err, CDMPP_ERANGE, 3), CDMPP_ERANGE);
    cd_err_index(&err, CDMPP_ERANGE, 1);
    cd_err_key(&err, CDMPP_ERANGE, "i");
    cd_err_key(&err, CDMPP_ERANGE, "task");
    cd_err_index(&err, CDMPP_ERANGE, 0);
    assert_string_equal(err.key, "[0].task.i[1][3]");
    cd_err_at(&err, CDMPP_ERANGE, "f.json", 12);
    assert_string_equal(cdmpp_err_format(&err, buf, sizeof buf),
                        "f.json:12: [0].task.i[1][3]: 7 is too much [ERANGE]");
    cd_err_at(&err, CDMPP_ERANGE, "outer", 99); /* the innermost place wins */
    assert_string_equal(err.path, "f.json");
    assert_int_equal(err.line, 12);
}

TEST(success_changes_nothing) {
    cdmpp_err err = {0};
    assert_int_equal(cd_err_key(&err, CDMPP_OK, "a"), CDMPP_OK);
    assert_int_equal(cd_err_index(&err, CDMPP_OK, 1), CDMPP_OK);
    assert_int_equal(cd_err_at(&err, CDMPP_OK, "f", 1), CDMPP_OK);
    assert_string_equal(err.key, "");
    assert_string_equal(err.path, "");
    assert_int_equal(forward(NULL), CDMPP_ERANGE);
    assert_int_equal(cd_err_at(NULL, CDMPP_EIO, "f", 1), CDMPP_EIO);
}

TEST(long_parts_fit) {
    cdmpp_err err = {0};
    char big[400], buf[64];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    memcpy(big + sizeof big - 8, "/f.json", 7);
    (void)CD_FAIL(&err, EIO, "%s", big);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    cd_err_add_place(&err, big, 1);
    assert_int_equal(strlen(err.path), sizeof err.path - 1);
    assert_string_equal(err.path + sizeof err.path - 8, "/f.json"); /* the tail says more */
    cd_err_add_key(&err, "inner");
    cd_err_add_key(&err, big); /* does not fit: the inner part stays */
    assert_string_equal(err.key, "inner");
    for (int i = 0; i < 50; i++) cd_err_add_index(&err, 123456789);
    assert_true(strlen(err.key) < sizeof err.key);
    assert_int_equal(strlen(cdmpp_err_format(&err, buf, sizeof buf)), sizeof buf - 1);
}

/* Paths of any length leave room for what is wrong, in the place of an error as in its text. */
TEST(the_reason_survives_long_paths) {
    char path[4000], buf[640], small[100];
    memset(path, 'd', sizeof path);
    strcpy(path + sizeof path - 12, "/rows.json");
    memcpy(path, "/home/", 6);
    cdmpp_err err = {0};
    (void)CD_FAIL(&err, EIO, "cannot read %s: %s", path, "no such file or folder");
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    assert_memory_equal(err.msg, "cannot read /home/ddd", 21);
    assert_non_null(strstr(err.msg, "d/rows.json: no such file or folder"));
    cd_err_at(&err, CDMPP_EIO, path, 17);
    assert_int_equal(strlen(err.path), sizeof err.path - 1);
    assert_memory_equal(err.path, "/home/ddd", 9);
    assert_non_null(strstr(cdmpp_err_format(&err, buf, sizeof buf), "/rows.json:17: cannot read "));
    assert_non_null(strstr(buf, "/rows.json: no such file or folder [EIO]"));
    (void)CD_FAIL(&err, ERANGE, "expected a number of leaves, found none");
    cd_err_at(&err, CDMPP_ERANGE, path, 17);
    cdmpp_err_format(&err, small, sizeof small);
    assert_int_equal(strlen(small), sizeof small - 1);
    assert_memory_equal(small, "/home/ddd", 9);
    assert_non_null(
        strstr(small, "/rows.json:17: expected a number of leaves, found none [ERANGE]"));
    assert_string_equal(cdmpp_err_format(&err, small, 4), "...");
    (void)CD_FAIL(&err, EIO, "first"); /* an error that is told again in other words */
    (void)CD_FAIL(&err, EIO, "%s, second", err.msg);
    assert_string_equal(err.msg, "first, second");
}

TEST(every_status_has_a_name) {
    for (int k = 0; k < CDMPP_STATUS_COUNT; k++) {
        cdmpp_err err = {.code = (cdmpp_status)k};
        char buf[200];
        assert_true(strlen(cdmpp_status_name((cdmpp_status)k)) >= 2);
        assert_int_equal(cdmpp_exit_code((cdmpp_status)k) == 0, k == CDMPP_OK);
        assert_non_null(
            strstr(cdmpp_err_format(&err, buf, sizeof buf), cdmpp_status_name((cdmpp_status)k)));
    }
    assert_int_equal(cdmpp_exit_code(CDMPP_EPARSE), 4);
    assert_int_equal(cdmpp_exit_code(CDMPP_STATUS_COUNT), 1);
    assert_string_equal(cdmpp_status_name(CDMPP_STATUS_COUNT), "?");
}

TESTS(NULL, NULL, format, success_changes_nothing, long_parts_fit, the_reason_survives_long_paths,
      every_status_has_a_name)
