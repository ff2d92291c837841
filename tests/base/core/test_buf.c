/* A growing text: numbers, JSON escapes, other locales, and memory that runs out. */
#include "check.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/core.h"

TEST(grows) {
    cd_buf b = {0};
    char want[16];
    for (int i = 0; i < 10000; i++) cd_buf_putf(&b, "%05d", i);
    assert_int_equal(b.n, 50000);
    assert_int_equal(b.p[b.n], 0);
    for (int i = 0; i < 10000; i++) {
        snprintf(want, sizeof want, "%05d", i);
        assert_memory_equal(b.p + 5 * i, want, 5);
    }
    const size_t cap = b.cap;
    cd_buf_clear(&b);
    assert_string_equal(b.p, "");
    assert_int_equal(b.cap, cap);
    cd_buf_put(&b, NULL, 0);
    cd_buf_put(&b, "a\0b", 3);
    assert_int_equal(b.n, 3);
    cd_buf_free(&b);
    assert_null(b.p);
    cd_buf_clear(&b);
}

/* Exactly full, one less, one more. */
TEST(at_the_edge) {
    char text[600];
    memset(text, 'x', sizeof text);
    for (size_t n = 250; n < 262; n++) {
        cd_buf b = {0};
        cd_buf_put(&b, text, n);
        cd_buf_putf(&b, "%.*s", (int)n, text);
        assert_int_equal(b.n, 2 * n);
        assert_true(b.cap > b.n);
        assert_int_equal(strlen(b.p), b.n);
        cd_buf_free(&b);
    }
}

TEST(integers) {
    static const int64_t v[] = {0,  1,   -1,         9,         10,        -10,
                                99, 100, 2147483647, INT32_MIN, INT64_MAX, INT64_MIN};
    cd_buf b = {0};
    char want[32];
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        cd_buf_clear(&b);
        cd_buf_put_int(&b, v[i]);
        snprintf(want, sizeof want, "%" PRId64, v[i]);
        assert_string_equal(b.p, want);
    }
    cd_buf_free(&b);
}

TEST(reals) {
    static const struct {
        double v;
        const char *want;
    } t[] = {{0, "0"},
             {1, "1"},
             {0.0044742, "0.0044742"},
             {1e10, "1e+10"},
             {123456, "123456"},
             {1234567, "1.23457e+06"},
             {9.41185e-06, "9.41185e-06"},
             {0.5, "0.5"},
             {-2.5, "-2.5"},
             {1e-300, "1e-300"}};
    cd_buf b = {0};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        cd_buf_clear(&b);
        cd_buf_put_real6(&b, t[i].v);
        assert_string_equal(b.p, t[i].want);
    }
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8")) {
        cd_buf_clear(&b);
        cd_buf_put_real6(&b, 0.5);
        setlocale(LC_NUMERIC, "C");
        assert_string_equal(b.p, "0.5");
    }
    cd_buf_free(&b);
}

TEST(json_reals) {
    cd_buf b = {0};
    cd_buf_put_json_real(&b, 0.1);
    cd_buf_puts(&b, ",");
    cd_buf_put_json_real(&b, (double)NAN);
    cd_buf_puts(&b, ",");
    cd_buf_put_json_real(&b, (double)INFINITY);
    assert_string_equal(b.p, "0.10000000000000001,null,null");
    cd_buf_free(&b);
}

TEST(json_strings) {
    cd_buf b = {0};
    cd_buf_put_json_str(&b, "", 0);
    cd_buf_put_json_str(&b, "a\"b\\c\n\r\t/\x01\x1f\0\x7f\xc3\xa9", 15);
    assert_string_equal(b.p, "\"\"\"a\\\"b\\\\c\\n\\r\\t/\\u0001\\u001f\\u0000\\u007f\xc3\xa9\"");
    cd_buf_free(&b);
}

TESTS(NULL, NULL, grows, at_the_edge, integers, reals, json_reals, json_strings)
