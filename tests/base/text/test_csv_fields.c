/* Fields of a line of CSV, as RFC 4180 has them. */
#include "base/text/text.h"
#include "check.h"

/* The fields with a bar between them; an error as its text. */
static void split(const char *line, size_t most, const char *want) {
    char text[100], got[200] = "";
    cd_str field[8];
    size_t n = 0;
    cdmpp_err err = {0};
    snprintf(text, sizeof text, "%s", line);
    const cdmpp_status st = cd_csv_fields_split(text, strlen(text), field, most, &n, &err);
    for (size_t k = 0; !st && k < n; k++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%.*s", k ? "|" : "",
                 (int)field[k].n, field[k].p);
    assert_string_equal(st ? err.msg : got, want);
}

TEST(fields) {
    split("a,b c,", 8, "a|b c|");
    split("", 8, "");
    split(",", 8, "|");
    split("a,,c", 3, "a||c");
    split("a,b,c", 2, "expected at most 2 fields, found more");
    split("\"a,b\",c", 8, "a,b|c");
    split("x,\"he said \"\"no\"\"\"", 8, "x|he said \"no\"");
    split("\"\",\"\"\"\"", 8, "|\"");
    split("a\"b,c", 8, "a\"b|c");
    split("\"a\",", 8, "a|");
    split("\"a", 8, "a quoted field has no end in its line");
    split("\"a\"\"", 8, "a quoted field has no end in its line");
    split("\"a\"b,c", 8, "expected a comma behind a quoted field");
}

/* What is written is read again. */
TEST(there_and_back) {
    static const char *const text[] = {"", "a", "\"", "a\"\"b", ",", "a,\"b\","};
    for (size_t k = 0; k < sizeof text / sizeof *text; k++) {
        cd_buf b = {0};
        cd_str field[2];
        size_t n;
        cdmpp_err err = {0};
        cd_csv_fields_put(&b, text[k], strlen(text[k]));
        cd_buf_puts(&b, ",end");
        assert_ok(cd_csv_fields_split(b.p, b.n, field, 2, &n, &err));
        assert_int_equal(n, 2);
        assert_true(cd_str_is(field[0], text[k]) && cd_str_is(field[1], "end"));
        cd_buf_free(&b);
    }
}

TESTS(NULL, NULL, fields, there_and_back)
