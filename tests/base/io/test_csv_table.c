/* A CSV file as a table: names, rows, numbers, and every mistake with its line. */
#include <string.h>
#include <zlib.h>

#include "base/io/io.h"
#include "check.h"
#include "fault.h"
#include "tmp.h"

static tmp_dir dir;

static int up(void **s) {
    (void)s;
    dir = tmp_make();
    return 0;
}

static int down(void **s) {
    (void)s;
    tmp_remove(&dir);
    return 0;
}

static cdmpp_status read_text(cd_csv_table *t, const char *text, cdmpp_err *err) {
    return cd_csv_table_read(t, tmp_put(&dir, "t.csv", text, strlen(text)), err);
}

TEST(rows) {
    cdmpp_err err = {0};
    cd_csv_table t;
    size_t col;
    double x;
    assert_ok(read_text(
        &t, "# note\n\n name ,\"size, MB\",s\n  # more\na, 1.5 ,-2e3\n\n b c ,\"7\",x\n", &err));
    assert_int_equal(t.n_col, 3);
    assert_int_equal(t.n_row, 2);
    assert_string_equal(t.name[0], "name");
    assert_string_equal(t.cell[0][0], "a");
    assert_string_equal(t.cell[1][0], "b c");
    assert_int_equal(t.line[0], 5);
    assert_int_equal(t.line[1], 7);
    assert_int_equal(cd_csv_table_find(&t, "s"), 2);
    assert_int_equal(cd_csv_table_find(&t, "t"), SIZE_MAX);
    assert_ok(cd_csv_table_need(&t, "s", &col, &err));
    assert_int_equal(col, 2);
    assert_ok(cd_csv_table_number(&t, 0, 2, &x, &err));
    assert_true(x == -2000);
    assert_status(cd_csv_table_number(&t, 1, 2, &x, &err), CDMPP_EPARSE);
    assert_string_equal(err.msg, "s: expected a number, found 'x'");
    assert_int_equal(err.line, 7);
    cd_csv_table_free(&t);
    assert_ok(read_text(&t, "a\nnan\ninf\n1 2\n", &err));
    for (size_t k = 0; k < 3; k++)
        assert_status(cd_csv_table_number(&t, k, 0, &x, &err), CDMPP_EPARSE);
    cd_csv_table_free(&t);
}

TEST(mistakes) {
    static const struct {
        const char *text;
        cdmpp_status st;
        const char *msg;
        long line;
    } bad[] = {{"a,b\n1\n", CDMPP_ESCHEMA, "expected 2 fields, found 1", 2},
               {"a,b\n1,2\n\n1,2,3\n", CDMPP_ESCHEMA, "expected 2 fields, found 3", 4},
               {"a,b,a\n", CDMPP_ESCHEMA, "two columns are called 'a'", 1},
               {"a\n\"\n", CDMPP_EPARSE, "a quoted field has no end in its line", 2},
               {"# only\n", CDMPP_ESCHEMA, "expected names of columns, found an empty file", 0},
               {"a,b\n", CDMPP_ENODATA, "no row behind the names", 0}};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        cdmpp_err err = {0};
        cd_csv_table t;
        assert_status(read_text(&t, bad[k].text, &err), bad[k].st);
        assert_string_equal(err.msg, bad[k].msg);
        assert_int_equal(err.line, bad[k].line);
        cd_csv_table_free(&t);
    }
    cdmpp_err err = {0};
    cd_csv_table t;
    size_t col;
    assert_ok(read_text(&t, "a,b\n1,2\n", &err));
    assert_status(cd_csv_table_need(&t, "c", &col, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.msg, "no column 'c'; there are a, b");
    cd_csv_table_free(&t);
    assert_ok(read_text(&t, "a\n1\n", &err));
    assert_status(cd_csv_table_need(&t, "c", &col, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.msg, "no column 'c'; there is a");
    cd_csv_table_free(&t);
}

TEST(any_allocation_may_fail) {
    tmp_put(&dir, "m.csv", "a,b\n1,2\n3,4\n", 12);
    FAULT_SWEEP(f, 1) {
        cd_csv_table t;
        f.st = cd_csv_table_read(&t, tmp_path(&dir, "m.csv"), &f.err);
        cd_csv_table_free(&t);
    }
}

static void told(void *ctx, const cdmpp_err *err) {
    cd_buf *b = ctx;
    cd_buf_putf(b, "%ld ", err->line);
}

static cdmpp_status read_good(cd_csv_table *t, const char *text, cd_buf *b, size_t *bad,
                              cdmpp_err *err) {
    return cd_csv_table_read_good(t, tmp_put(&dir, "g.csv", text, strlen(text)), told, b, bad, err);
}

/* Bad rows are told and left out; a bad line of names is none of them. */
TEST(good_rows) {
    cdmpp_err err = {0};
    cd_csv_table t;
    cd_buf b = {0};
    size_t bad = 9;
    assert_ok(read_good(&t, "a,b\n1,2\n3\n4,5,6\n7,8\n\"9,1\n", &b, &bad, &err));
    assert_int_equal(bad, 3);
    assert_string_equal(b.p, "3 4 6 ");
    assert_int_equal(t.n_row, 2);
    assert_string_equal(t.cell[1][0], "7");
    assert_int_equal(t.line[1], 5);
    cd_csv_table_free(&t);
    assert_status(read_good(&t, "a,a\n1,2\n", &b, &bad, &err), CDMPP_ESCHEMA);
    assert_int_equal(bad, 0);
    cd_csv_table_free(&t);
    assert_status(read_good(&t, "a,b\n1\n", &b, &bad, &err), CDMPP_ENODATA);
    assert_int_equal(bad, 1);
    cd_csv_table_free(&t);
    cd_buf_free(&b);
}

/* Empty cells: a packed table of a few kilobytes has not millions of them in memory. */
TEST(cells_that_are_too_many) {
    tmp_dir d = tmp_make();
    cd_csv_table t;
    cdmpp_err e = {0};
    const char *path = tmp_path(&d, "t.csv.gz");
    gzFile f = gzopen(path, "wb");
    char row[256];
    assert_non_null(f);
    for (int i = 0; i < 256; i++) gzprintf(f, "c%d%c", i, i < 255 ? ',' : '\n');
    memset(row, ',', 255);
    row[255] = '\n';
    for (int i = 0; i < 34000; i++) gzwrite(f, row, sizeof row);
    gzclose(f);
    assert_int_equal(cd_csv_table_read(&t, path, &e), CDMPP_ERANGE);
    assert_non_null(strstr(e.msg, "cells"));
    assert_string_equal(e.path, path);
    cd_csv_table_free(&t);
    tmp_remove(&d);
}

TESTS(up, down, rows, mistakes, good_rows, any_allocation_may_fail, cells_that_are_too_many)
