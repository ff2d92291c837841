/* What is written reads back as the same tree. */
#include "base/text/text.h"

#include <math.h>

#include "check.h"

TEST(compact_and_spaced) {
    cd_buf b = {0};
    cd_json_writer w = {.out = &b};
    cd_json_write_open(&w, '{');
    cd_json_write_member_real(&w, "a", 0.5);
    cd_json_write_key(&w, "b"), cd_json_write_open(&w, '[');
    cd_json_write_int(&w, -3), cd_json_write_null(&w), cd_json_write_open(&w, '{'),
        cd_json_write_close(&w, '}');
    cd_json_write_close(&w, ']');
    cd_json_write_member_str(&w, "c\"", "x\ny");
    cd_json_write_member_bool(&w, "d", true);
    cd_json_write_member_real(&w, "e", (double)NAN);
    cd_json_write_member_str(&w, "f", NULL);
    cd_json_write_close(&w, '}');
    assert_string_equal(
        b.p, "{\"a\":0.5,\"b\":[-3,null,{}],\"c\\\"\":\"x\\ny\",\"d\":true,\"e\":null,\"f\":null}");
    cd_buf_clear(&b);
    w = (cd_json_writer){.out = &b, .colon = ": ", .sep = ", "};
    cd_json_write_open(&w, '['), cd_json_write_int(&w, 1), cd_json_write_open(&w, '{');
    cd_json_write_member_int(&w, "k", INT64_MIN), cd_json_write_close(&w, '}'),
        cd_json_write_close(&w, ']');
    assert_string_equal(b.p, "[1, {\"k\": -9223372036854775808}]");
    cd_arena a = {0};
    const cd_json *j;
    cdmpp_err err;
    assert_ok(cd_json_parse(&a, b.p, b.n, &j, &err));
    cd_arena_free(&a);
    cd_buf_free(&b);
}

TESTS(NULL, NULL, compact_and_spaced)
