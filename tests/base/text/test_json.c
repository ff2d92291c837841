/* JSON texts: the tree, typed reads, limits, and everything that is no JSON. */
#include "check.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"

static cd_arena mem; /* of all tests */

/* Parse a text in a block of its own, so that the sanitizer sees one byte too many. */
static cdmpp_status parse(cd_arena *a, const char *text, size_t len, const cd_json **out,
                          cdmpp_err *err) {
    char *own = cd_arena_alloc(a, len ? len : 1, 1);
    memcpy(own, text, len);
    return cd_json_parse(a, own, len, out, err);
}

static const char *const good[] = {"0",
                                   "-0",
                                   "1",
                                   "-1",
                                   "9223372036854775807",
                                   "-9223372036854775807",
                                   "9223372036854775808",
                                   "1.5",
                                   "-1.5e3",
                                   "1E5",
                                   "1e+5",
                                   "1e-5",
                                   "0.0",
                                   "0e0",
                                   "123456789012345678901234567890",
                                   "1e999",
                                   "-1e999",
                                   "1e-999",
                                   "null",
                                   "true",
                                   "false",
                                   "\"\"",
                                   "\"a\"",
                                   "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
                                   "\"\\u0041\"",
                                   "\"\\u00e9\"",
                                   "\"\\u20AC\"",
                                   "\"\\ud83d\\ude00\"",
                                   "\"\xc3\xa9\"",
                                   "\"\xe2\x82\xac\"",
                                   "\"\xf0\x9f\x98\x80\"",
                                   "\"\xef\xbf\xbf\"",
                                   "\"\xf4\x8f\xbf\xbf\"",
                                   "\"\x7f\"",
                                   "[]",
                                   "[1]",
                                   "[1,2]",
                                   "[[],[[]]]",
                                   "{}",
                                   "{\"a\":1}",
                                   "\xef\xbb\xbf[]",
                                   "{\"\":{}}",
                                   " \t\r\n[ \t\r\n1 \t\r\n, \t\r\n2 \t\r\n] \t\r\n",
                                   "{ \"a\" : [ ] , \"b\" : null }"};

static const struct {
    const char *text;
    int column;
} bad[] = {{"", 1},
           {" ", 2},
           {"nul", 1},
           {"nulL", 1},
           {"True", 1},
           {"tru", 1},
           {"NaN", 1},
           {"nan", 1},
           {"Infinity", 1},
           {"-Infinity", 2},
           {"+1", 1},
           {".5", 1},
           {"1.", 3},
           {"1.e5", 3},
           {"1e", 3},
           {"1e+", 4},
           {"-", 2},
           {"--1", 2},
           {"01", 3},
           {"-01", 4},
           {"00", 3},
           {"0x10", 2},
           {"1_000", 2},
           {"1 2", 3},
           {"[1 2]", 4},
           {"[", 2},
           {"]", 1},
           {"[1", 3},
           {"[1,", 4},
           {"[1,]", 4},
           {"[,1]", 2},
           {"[,]", 2},
           {"[1,,2]", 4},
           {"[]]", 3},
           {"[}", 2},
           {"{", 2},
           {"}", 1},
           {"{\"a\"", 5},
           {"{\"a\":", 6},
           {"{\"a\":1", 7},
           {"{\"a\":1,", 8},
           {"{\"a\":1,}", 8},
           {"{a:1}", 2},
           {"{1:1}", 2},
           {"{\"a\" 1}", 6},
           {"{\"a\",1}", 5},
           {"{\"a\":1]", 7},
           {"[1}", 3},
           {"\"", 2},
           {"\"a", 3},
           {"'a'", 1},
           {"\"\\", 3},
           {"\"\\a\"", 3},
           {"\"\\x41\"", 3},
           {"\"\\u\"", 3},
           {"\"\\u12\"", 3},
           {"\"\\u12g4\"", 3},
           {"\"\\ud800\"", 8},
           {"\"\\ud800\\u0041\"", 8},
           {"\"\\udc00\"", 8},
           {"\"\\ud800x\"", 8},
           {"\"\t\"", 2},
           {"\"a\nb\"", 3},
           {"\"01234567\n\"", 10},
           {"\"\x01\"", 2},
           {"\"\x1f\"", 2},
           {"\"\x80\"", 2},
           {"\"\xbf\"", 2},
           {"\"\xc0\x80\"", 2},
           {"\"\xc1\xbf\"", 2},
           {"\"\xc3\"", 2},
           {"\"\xc3(\"", 2},
           {"\"\xe0\x80\x80\"", 2},
           {"\"\xe2\x82\"", 2},
           {"\"\xed\xa0\x80\"", 2},
           {"\"\xf0\x80\x80\x80\"", 2},
           {"\"\xf4\x90\x80\x80\"", 2},
           {"\"\xf5\x80\x80\x80\"", 2},
           {"\"\xfe\"", 2},
           {"\"\xff\"", 2},
           {"\"\\n\xff\"", 4},
           {"\xef\xbb[]", 1},
           {"\xff\xfe[", 1},
           {"\"\\u0000\"", 8},
           {"// c", 1},
           {"[1] // c", 5},
           {"/**/1", 1},
           {"[1;2]", 3},
           {"\f1", 1},
           {"\v1", 1},
           {"\xa0", 1}};

TEST(what_must_parse) {
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cdmpp_err err = {0};
        const cd_json *v = NULL;
        assert_ok(parse(&mem, good[i], strlen(good[i]), &v, &err));
        assert_non_null(v);
        cd_arena_reset(&mem);
    }
}

TEST(what_must_not) {
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cdmpp_err err = {0};
        const cd_json *v = NULL;
        if (parse(&mem, bad[i].text, strlen(bad[i].text), &v, &err) != CDMPP_EPARSE)
            fail_msg("accepted: %s", bad[i].text);
        int column = 0;
        if (sscanf(err.msg, "column %d: expected ", &column) != 1 || column != bad[i].column)
            fail_msg("%s: \"%s\", not column %d", bad[i].text, err.msg, bad[i].column);
        assert_null(v);
        cd_arena_reset(&mem);
    }
}

TEST(zero_byte_is_no_end) {
    cdmpp_err err = {0};
    const cd_json *v = NULL;
    assert_status(parse(&mem, "1\0", 2, &v, &err), CDMPP_EPARSE);
    assert_non_null(strstr(err.msg, "byte 0x00"));
    assert_status(parse(&mem, "\"\0\"", 3, &v, &err), CDMPP_EPARSE);
    assert_status(parse(&mem, "\"\\\0\"", 4, &v, &err), CDMPP_EPARSE);
}

TEST(depth) {
    cdmpp_err err = {0};
    const cd_json *v = NULL;
    char text[100000];
    memset(text, '[', CD_JSON_MAX_DEPTH);
    memset(text + CD_JSON_MAX_DEPTH, ']', CD_JSON_MAX_DEPTH);
    assert_ok(parse(&mem, text, 2 * CD_JSON_MAX_DEPTH, &v, &err));
    memset(text, '[', sizeof text);
    assert_status(parse(&mem, text, sizeof text, &v, &err), CDMPP_EPARSE);
    assert_non_null(strstr(err.msg, "deeper than 128"));
    for (size_t i = 0; i + 5 <= sizeof text; i += 5)
        memcpy(text + i, "{\"\":", 4), text[i + 4] = ' ';
    assert_status(parse(&mem, text, sizeof text, &v, &err), CDMPP_EPARSE);
    /* siblings are not depth */
    char *p = text;
    *p++ = '[';
    for (int i = 0; i < 1000; i++) p += sprintf(p, "%s[[]]", i ? "," : "");
    *p++ = ']';
    assert_ok(parse(&mem, text, (size_t)(p - text), &v, &err));
    assert_int_equal(v->n, 1000);
}

TEST(tree) {
    static const char text[] =
        "{\"a\": [1, -2.5, \"x\"], \"b\\u0063\": {\"k\": true}, \"n\": null}";
    cdmpp_err err = {0};
    const cd_json *v = NULL, *c;
    assert_ok(parse(&mem, text, sizeof text - 1, &v, &err));
    assert_int_equal(v->kind, CD_JSON_OBJ);
    assert_int_equal(v->n, 3);
    c = cd_json_get(v, "a");
    assert_int_equal(c->n, 3);
    c = c->u.child;
    assert_true(c->kind == CD_JSON_INT && c->u.i == 1 && c->key.n == 0);
    c = c->next;
    assert_true(c->kind == CD_JSON_REAL && c->u.f == -2.5);
    c = c->next;
    assert_true(c->kind == CD_JSON_STR && cd_str_is(c->u.s, "x") && !c->next);
    c = cd_json_get(cd_json_get(v, "bc"), "k");
    assert_true(c->kind == CD_JSON_BOOL && c->u.i == 1);
    assert_int_equal(cd_json_get(v, "n")->kind, CD_JSON_NULL);
    assert_null(cd_json_get(v, "z"));
    assert_null(cd_json_get(cd_json_get(v, "a"), "a"));
    assert_null(cd_json_get(NULL, "a"));
}

TEST(escapes) {
    static const char text[] =
        "\"01234567\\\"\\\\\\/\\b\\f\\n\\r\\t|\\u0041\\u00e9\\u20ac\\ud83d\\ude00\xc3\xa9.\"";
    static const char want[] =
        "01234567\"\\/\b\f\n\r\t|A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9.";
    cdmpp_err err = {0};
    const cd_json *v = NULL;
    assert_ok(parse(&mem, text, sizeof text - 1, &v, &err));
    assert_int_equal(v->u.s.n, sizeof want - 1);
    assert_memory_equal(v->u.s.p, want, sizeof want - 1);
}

/* A special byte at every place of the 8-byte steps is found. */
TEST(special_bytes_at_every_place) {
    for (int c = 0; c < 256; c++)
        for (size_t at = 0; at < 20; at++) {
            cdmpp_err err = {0};
            const cd_json *v = NULL;
            char text[24] = "\"bbbbbbbbbbbbbbbbbbbb\"";
            text[1 + at] = (char)c;
            const cdmpp_status want =
                c >= ' ' && c < 128 && c != '"' && c != '\\' ? CDMPP_OK : CDMPP_EPARSE;
            /* a backslash before 'b' is an escape, before the last '"' it is not */
            if (c == '\\' && at < 19) continue;
            assert_status(parse(&mem, text, 22, &v, &err), want);
            if (!want) assert_int_equal(v->u.s.n, 20);
            cd_arena_reset(&mem);
        }
}

/* Whatever the length of its digits, a real is the nearest double, as strtod's. */
TEST(reals_are_nearest) {
    unsigned x = 7;
    for (int i = 0; i < 200000; i++) {
        char text[64], *p = text;
        x = x * 1664525 + 1013904223;
        const int whole = 1 + (int)(x >> 28) % 9, frac = (int)(x >> 20) % 17,
                  e = (int)(x >> 8) % 50 - 25;
        if (x & 1) *p++ = '-';
        for (int k = 0; k < whole; k++)
            *p++ = (char)((k == 0 ? '1' : '0') + (x = x * 1664525 + 1013904223, x >> 24) % 9);
        *p++ = '.';
        for (int k = 0; k <= frac; k++)
            *p++ = (char)('0' + (x = x * 1664525 + 1013904223, x >> 24) % 10);
        p += sprintf(p, "e%d", e);
        cdmpp_err err = {0};
        const cd_json *v = NULL;
        assert_ok(cd_json_parse(&mem, text, (size_t)(p - text), &v, &err));
        const double want = strtod(text, NULL);
        if (memcmp(&v->u.f, &want, sizeof want) != 0)
            fail_msg("%s: %.17g, not %.17g", text, v->u.f, want);
        cd_arena_reset(&mem);
    }
}

TEST(numbers) {
    static const struct {
        const char *text;
        cd_json_kind kind;
        int64_t i;
        double f;
    } t[] = {{"9223372036854775807", CD_JSON_INT, INT64_MAX, 0},
             {"-9223372036854775807", CD_JSON_INT, -INT64_MAX, 0},
             {"-9223372036854775808", CD_JSON_INT, INT64_MIN, 0},
             {"-9223372036854775809", CD_JSON_REAL, 0, -9223372036854775808.0},
             {"9223372036854775808", CD_JSON_REAL, 0, 9223372036854775808.0},
             {"99999999999999999999", CD_JSON_REAL, 0, 1e20},
             {"18446744073709551617", CD_JSON_REAL, 0, 18446744073709551616.0},
             {"-0", CD_JSON_INT, 0, 0},
             {"0.1", CD_JSON_REAL, 0, 0.1},
             {"5e-324", CD_JSON_REAL, 0, 5e-324},
             {"1.7976931348623157e308", CD_JSON_REAL, 0, 1.7976931348623157e308},
             {"1e99999999999", CD_JSON_REAL, 0, (double)INFINITY},
             {"-1e999", CD_JSON_REAL, 0, -(double)INFINITY},
             {"1e-99999999999", CD_JSON_REAL, 0, 0},
             {"0.000000000000000000000000000001", CD_JSON_REAL, 0, 1e-30},
             {"9007199254740993.0", CD_JSON_REAL, 0, 9007199254740992.0}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cdmpp_err err = {0};
        const cd_json *v = NULL;
        assert_ok(parse(&mem, t[k].text, strlen(t[k].text), &v, &err));
        assert_int_equal(v->kind, t[k].kind);
        if (t[k].kind == CD_JSON_INT) assert_true(v->u.i == t[k].i);
        else assert_true(v->u.f == t[k].f);
    }
    char *big = cd_arena_alloc(&mem, 1000, 1);
    cdmpp_err err = {0};
    const cd_json *v = NULL;
    memset(big, '1', 1000);
    assert_ok(cd_json_parse(&mem, big, 300, &v, &err));
    assert_status(cd_json_parse(&mem, big, 1000, &v, &err), CDMPP_EPARSE);
}

/* A locale with another decimal point changes nothing; skipped where none is installed. */
TEST(other_locale) {
    static const char *const name[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    cdmpp_err err = {0};
    const cd_json *v = NULL;
    size_t k = 0;
    while (k < 4 && !setlocale(LC_NUMERIC, name[k])) k++;
    if (k == 4) skip();
    assert_ok(parse(&mem, "1.25e-30", 8, &v, &err));
    setlocale(LC_NUMERIC, "C");
    assert_true(v->u.f == 1.25e-30);
}

TEST(typed_reads) {
    cdmpp_err err = {0};
    const cd_json *v = NULL, *c = NULL;
    int64_t i = 0;
    double f = 0;
    cd_str s = {0};
    assert_ok(parse(&mem, "[7, 2.5, \"x\", null]", 19, &v, &err));
    const cd_json *seven = v->u.child, *half = seven->next, *x = half->next, *null = x->next;
    assert_ok(cd_json_int(seven, 7, 7, &i, &err));
    assert_int_equal(i, 7);
    assert_status(cd_json_int(seven, 8, 9, &i, &err), CDMPP_ERANGE);
    assert_string_equal(err.msg, "7 is outside [8, 9]");
    assert_status(cd_json_int(half, 0, 9, &i, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.msg, "expected an integer, found number 2.5");
    assert_status(cd_json_int(NULL, 0, 9, &i, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.msg, "expected an integer, found nothing");
    assert_ok(cd_json_real(seven, &f, &err));
    assert_true(f == 7);
    assert_ok(cd_json_real(half, &f, &err));
    assert_true(f == 2.5);
    assert_status(cd_json_real(null, &f, &err), CDMPP_ESCHEMA);
    assert_ok(cd_json_str(x, &s, &err));
    assert_true(cd_str_is(s, "x"));
    assert_status(cd_json_str(seven, &s, &err), CDMPP_ESCHEMA);
    assert_ok(cd_json_arr(v, 4, &c, &err));
    assert_ptr_equal(c, seven);
    assert_status(cd_json_arr(v, 5, &c, &err), CDMPP_ESCHEMA);
    assert_status(cd_json_arr(x, 0, &c, &err), CDMPP_ESCHEMA);
    assert_string_equal(cd_str_dup(&mem, s), "x");
    assert_true(cd_str_eq((cd_str){NULL, 0}, (cd_str){"", 0}));
    assert_false(cd_str_eq(s, (cd_str){"y", 1}));
    assert_false(cd_str_is(s, "xy"));
}

TEST(members_that_must_be_there) {
    static const char text[] = "{\"n\": 7, \"x\": 2.5, \"s\": \"t\", \"z\": null, \"m\": -1}";
    cdmpp_err err = {0};
    const cd_json *v = NULL;
    uint64_t n = 0;
    double f = 0;
    cd_str s = {0};
    assert_ok(parse(&mem, text, sizeof text - 1, &v, &err));
    assert_ok(cd_json_need_count(v, "n", &n, &err));
    assert_true(n == 7);
    assert_status(cd_json_need_count(v, "m", &n, &err), CDMPP_ERANGE);
    assert_string_equal(err.key, "m");
    assert_ok(cd_json_need_real(v, "x", 2.5, 2.5, &f, &err));
    assert_true(f == 2.5);
    err = (cdmpp_err){0};
    assert_status(cd_json_need_real(v, "x", 3, 4, &f, &err), CDMPP_ERANGE);
    assert_string_equal(err.key, "x");
    assert_string_equal(err.msg, "expected a number in 3..4, found 2.5");
    assert_ok(cd_json_need_str(v, "s", &s, &err));
    assert_true(cd_str_is(s, "t"));
    err = (cdmpp_err){0};
    assert_status(cd_json_need_str(v, "none", &s, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.key, "none");
    assert_ok(cd_json_real_or_nan(cd_json_get(v, "z"), &f, &err));
    assert_true(isnan(f));
    assert_ok(cd_json_real_or_nan(cd_json_get(v, "n"), &f, &err));
    assert_true(f == 7);
    assert_status(cd_json_real_or_nan(cd_json_get(v, "s"), &f, &err), CDMPP_ESCHEMA);
    assert_status(cd_json_real_or_nan(NULL, &f, &err), CDMPP_ESCHEMA);
}

TEST(words_and_lists_of_numbers) {
    static const char text[] = "{\"w\": \"two\", \"up\": [1, 2, 2.5], \"flat\": [1, 1], \"down\": "
                               "[2, 1], \"no\": [\"x\"]}";
    cdmpp_err err = {0};
    const cd_json *v = NULL;
    double f[3];
    size_t n = 0;
    int word = -1;
    cd_buf b = {0};
    assert_ok(parse(&mem, text, sizeof text - 1, &v, &err));
    assert_ok(cd_json_need_word(v, "w", "one|two", &word, &err));
    assert_int_equal(word, 1);
    assert_status(cd_json_need_word(v, "w", "one|three", &word, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.msg, "expected one of one|three, found 'two'");
    assert_ok(cd_json_need_reals(v, "up", 1, 3, 1, 2.5, CD_JSON_RISING, f, &n, &err));
    assert_int_equal(n, 3);
    cd_json_put_reals(&b, "up", f, n, 17);
    assert_string_equal(b.p, "\"up\":[1,2,2.5]");
    cd_buf_free(&b);
    assert_status(cd_json_need_reals(v, "up", 4, 9, 1, 3, CD_JSON_RISING, f, &n, &err),
                  CDMPP_ESCHEMA);
    assert_status(cd_json_need_reals(v, "up", 0, 2, 1, 3, CD_JSON_RISING, f, &n, &err),
                  CDMPP_ERANGE);
    assert_status(cd_json_need_reals(v, "up", 1, 3, 1.5, 3, CD_JSON_ANY, f, &n, &err),
                  CDMPP_ERANGE);
    assert_status(cd_json_need_reals(v, "up", 1, 3, 1, 2, CD_JSON_ANY, f, &n, &err), CDMPP_ERANGE);
    assert_ok(cd_json_need_reals(v, "flat", 1, 3, 1, 1, CD_JSON_NOT_FALLING, f, &n, &err));
    assert_status(cd_json_need_reals(v, "flat", 1, 3, 1, 1, CD_JSON_RISING, f, &n, &err),
                  CDMPP_ERANGE);
    assert_ok(cd_json_need_reals(v, "down", 1, 3, 1, 2, CD_JSON_ANY, f, &n, &err));
    assert_status(cd_json_need_reals(v, "down", 1, 3, 1, 2, CD_JSON_NOT_FALLING, f, &n, &err),
                  CDMPP_ERANGE);
    err = (cdmpp_err){0};
    assert_status(cd_json_need_reals(v, "no", 1, 3, 1, 2, CD_JSON_ANY, f, &n, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.key, "no");
}

/* "a=1;b=[2]": the members of a text, then how it ended. */
static const char *walked(const char *text, char *out) {
    cd_str rest = {text, strlen(text)}, key, value;
    bool more = true;
    cdmpp_err err = {0};
    out[0] = '\0';
    while (cd_json_member(&rest, &key, &value, &more, &err) == CDMPP_OK && more)
        sprintf(out + strlen(out), "%.*s=%.*s;", (int)key.n, key.p, (int)value.n, value.p);
    return strcat(out, err.code ? err.msg : "end");
}

TEST(walks_members) {
    static const char *const pair[][2] = {
        {"{}", "end"},
        {" { } ", "end"},
        {"{\"a\":1}", "a=1;end"},
        {"{ \"a\" : -1.5 , \"b\":\"x,}\\\"]\" }\r", "a=-1.5;b=\"x,}\\\"]\";end"},
        {"{\"a\":[1,{\"c\":\"]\"},[]],\"b\":{\"d\":[]}}",
         "a=[1,{\"c\":\"]\"},[]];b={\"d\":[]};end"},
        {"{\"a\":}", "a=;end"}, /* whoever reads the value sees that there is none */
        {"{\"a\":1,}", "a=1;column 2: expected a string, found '}'"},
        {"{\"a\":1", "column 7: expected '}', found end of text"},
        {"{\"a\" \x7f", "column 6: expected ':', found byte 0x7f"},
        {"{\"a\" ~", "column 6: expected ':', found '~'"},
        {"{\"a\":[1}", "column 9: expected ',' or '}', found end of text"},
        {"{\"a\" 1}", "column 6: expected ':', found '1'"},
        {"{\"a", "column 4: expected '\"', found end of text"},
        {"{\"a\":\"b}", "column 9: expected '}', found end of text"},
        {"{\"a\":\"b\\", "column 9: expected '}', found end of text"},
        {"{1:2}", "column 2: expected a string, found '1'"},
        {"{\"a\":1}}", "a=1;column 2: expected end of text, found '}'"},
        {"{\"a\":1]", "column 7: expected ',' or '}', found ']'"},
        {"", "column 1: expected '{', found end of text"},
        {"[1]", "column 1: expected '{', found '['"}};
    char out[300];
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        const size_t n = strlen(pair[i][0]);
        char *exact = malloc(n + 1);
        memcpy(exact, pair[i][0], n + 1);
        assert_string_equal(walked(exact, out), pair[i][1]);
        free(exact);
    }
}

TEST(members_once) {
    static const char *const pair[][2] = {{"{}", ""},
                                          {"{\"a\":1,\"b\":{\"a\":2,\"a\":3}}", ""},
                                          {"{\"a\":1,\"b\":2,\"a\":[]}", "a"},
                                          {"{\"b\":1,\"ab\":2,\"b\":3,\"b\":4}", "b"},
                                          {"[1]", ""},
                                          {"{\"a\":1,", ""}};
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        cdmpp_err err = {0};
        cd_str twice;
        assert_ok(cd_json_members_once((cd_str){pair[i][0], strlen(pair[i][0])}, &twice, &err));
        assert_true(cd_str_is(twice, pair[i][1]));
        if (twice.n) assert_true(twice.p > strstr(pair[i][0], pair[i][1])); /* the later one */
    }
}

TEST(single_numbers) {
    const char *text = " -12.5e1 ,", *none[] = {"", " ", "x", "-", "01", "+1", ".5", "nan"};
    double v;
    assert_ptr_equal(cd_json_number(text, text + 10, &v), text + 9);
    assert_true(v == -125);
    assert_ptr_equal(cd_json_number(text, text + 4, &v), text + 4);
    assert_true(v == -12);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_null(cd_json_number(none[i], none[i] + strlen(none[i]), &v));
}

/* A mistake in a text of several lines is told with its line; the column is counted in that
 * line. */
TEST(mistakes_have_their_line) {
    static const char text[] = "{\n \"a\": 1,\n \"b\": x\n}";
    cdmpp_err err = {0};
    const cd_json *v = NULL;
    assert_status(parse(&mem, text, sizeof text - 1, &v, &err), CDMPP_EPARSE);
    assert_int_equal(err.line, 3);
    assert_string_equal(err.msg, "column 7: expected a value, found 'x'");
}

/* A number that no double holds is refused where it is read, not where it stands. */
TEST(only_finite_numbers_are_read) {
    static const char *const text[] = {"1e999", "-1e999"};
    for (size_t i = 0; i < 2; i++) {
        cdmpp_err err = {0};
        const cd_json *v = NULL;
        double f;
        assert_ok(parse(&mem, text[i], strlen(text[i]), &v, &err));
        assert_status(cd_json_real(v, &f, &err), CDMPP_ERANGE);
        assert_string_equal(err.msg, i ? "expected a finite number, found -inf"
                                       : "expected a finite number, found inf");
    }
}

/* ---- keys that come twice, and what else other programs write ---- */
TEST(own_texts_have_a_key_once) {
    static const struct {
        const char *text, *key;
        long line;
    } t[] = {{"{\"a\":1,\"a\":1}", "a", 0},
             {"[{\"b\":{\"c\":[0,{\"d\":1,\"e\":2,\"d\":3}]}}]", "[0].b.c[1].d", 0},
             {"{\"a\":\n{\"x\":1,\n\"y\":2,\n\"x\":3}}", "a.x", 4},
             {"{\"\\u0061\":1,\"a\":2}", "a", 0},
             {"{\"\":1,\"\":2}", "", 0}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        cdmpp_err err = {0};
        const cd_json *v = NULL;
        assert_status(parse(&mem, t[i].text, strlen(t[i].text), &v, &err), CDMPP_EPARSE);
        assert_string_equal(err.msg, "expected this key once, found it twice");
        assert_string_equal(err.key, t[i].key);
        assert_int_equal(err.line, t[i].line);
    }
}

static const cd_json *foreign(const char *text, cd_buf *said) {
    cdmpp_err err = {0};
    const cd_json *v = NULL;
    char *own = cd_arena_alloc(&mem, strlen(text) + 1, 1);
    memcpy(own, text, strlen(text));
    assert_ok(cd_json_parse_foreign(&mem, (cd_str){own, strlen(text)}, said, &v, &err));
    return v;
}

TEST(of_other_programs_the_last_one_counts) {
    cd_buf said = {0};
    const cd_json *v = foreign("{\"a\":1,\"b\":2,\n\"a\":[3],\"c\":{\"x\":1,\"x\":2,\"x\":3}}",
                               &said),
                  *x = cd_json_get(cd_json_get(v, "c"), "x");
    assert_int_equal(v->n, 3);
    assert_int_equal(cd_json_get(v, "a")->u.child->u.i, 3);
    assert_int_equal(x->u.i, 3);
    assert_null(x->next);
    assert_string_equal(said.p, "line 2: c.x: the key is given twice, the last one counts\nline 2: "
                                "c.x: the key is given twice, the last one counts\n"
                                "line 2: a: the key is given twice, the last one counts\n");
    cd_buf_free(&said);
    assert_int_equal(foreign("{\"a\":1,\"a\":2}", NULL)->n, 1);
}

/* As a slow look at all pairs says, for objects of all sizes; a large one takes no square of its
 * size. */
TEST(keys_of_large_objects) {
    for (int n = 1; n <= 100000; n = n < 40 ? n + 1 : n * 7) {
        cd_buf text = {0}, said = {0};
        const int distinct = n < 5 ? n : n - n / 5;
        cd_buf_puts(&text, "{");
        for (int i = 0; i < n; i++)
            cd_buf_putf(&text, "%s\"k%d\":%d", i ? "," : "", i % distinct, i);
        cd_buf_puts(&text, "}");
        const cd_json *v = foreign(text.p, &said);
        assert_int_equal(v->n, distinct);
        for (const cd_json *c = v->u.child; c; c = c->next) {
            const int k = atoi(c->key.p + 1);
            assert_int_equal(c->u.i, k + distinct < n ? k + distinct : k);
        }
        if (n - distinct > 10) assert_non_null(strstr(said.p, "more keys are given twice"));
        cd_buf_free(&text);
        cd_buf_free(&said);
        cd_arena_reset(&mem);
    }
}

TEST(numbers_and_texts_as_python_writes_them) {
    const cd_json *v =
        foreign("[NaN, Infinity, -Infinity, \"\\u0000\\ud800x\\udc00\", \"\\ud83d\\ude00\"]", NULL)
            ->u.child;
    assert_true(v->kind == CD_JSON_REAL && isnan(v->u.f));
    assert_true(v->next->u.f == (double)INFINITY && v->next->next->u.f == -(double)INFINITY);
    assert_true(cd_str_is(v->next->next->next->u.s, "\xef\xbf\xbd\xef\xbf\xbdx\xef\xbf\xbd"));
    assert_true(cd_str_is(v->next->next->next->next->u.s, "\xf0\x9f\x98\x80"));
    static const char *const no[] = {"Nan",     "Inf",  "-inf",    "-NaN",     "+Infinity",
                                     "Infinit", "[1,]", "{'a':1}", "[1] // c", "\xfe\xff"};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        cdmpp_err err = {0};
        assert_status(cd_json_parse_foreign(&mem, (cd_str){no[i], strlen(no[i])}, NULL, &v, &err),
                      CDMPP_EPARSE);
    }
}

static int release(void **state) {
    (void)state;
    cd_arena_free(&mem);
    return 0;
}

/* "0," is two bytes of a text and a whole node of a tree. */
TEST(as_many_values_as_there_may_be) {
    const size_t n = 2 * (size_t)CD_JSON_MAX_VALUES + 3;
    char *text = malloc(n);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++) text[i] = i % 2 ? '0' : ',';
    text[0] = '[';
    for (int more = 0; more < 2; more++) { /* [0,..,0] of the limit, then of one more */
        const size_t len = 2 * ((size_t)CD_JSON_MAX_VALUES + (size_t)more) + 1;
        cd_arena a = {0};
        cdmpp_err e = {0};
        const cd_json *v = NULL;
        const char kept = text[len - 1];
        text[len - 1] = ']';
        const cdmpp_status st = cd_json_parse(&a, text, len, &v, &e);
        assert_int_equal(st, more ? CDMPP_ERANGE : CDMPP_OK);
        if (more) assert_string_equal(e.msg, "JSON of more than 4194304 values");
        else assert_int_equal(v->n, CD_JSON_MAX_VALUES);
        text[len - 1] = kept;
        cd_arena_free(&a);
    }
    free(text);
}

TESTS(NULL, release, what_must_parse, what_must_not, zero_byte_is_no_end, depth, tree, escapes,
      special_bytes_at_every_place, reals_are_nearest, numbers, other_locale, typed_reads,
      walks_members, members_once, single_numbers, members_that_must_be_there,
      words_and_lists_of_numbers, mistakes_have_their_line, only_finite_numbers_are_read,
      own_texts_have_a_key_once, of_other_programs_the_last_one_counts, keys_of_large_objects,
      numbers_and_texts_as_python_writes_them, as_many_values_as_there_may_be)
