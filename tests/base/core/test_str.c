/* Runs of bytes: compared, copied, matched with stars. */
#include "base/core/core.h"
#include "check.h"

TEST(equal) {
    const cd_str none = {NULL, 0}, abc = {"abcd", 3};
    assert_true(cd_str_is(abc, "abc") && !cd_str_is(abc, "abcd") && !cd_str_is(abc, "abd") &&
                !cd_str_is(abc, ""));
    assert_true(cd_str_eq(none, (cd_str){"x", 0}) && cd_str_eq(abc, (cd_str){"abce", 3}));
    assert_false(cd_str_eq(abc, (cd_str){"abd", 3}) || cd_str_eq(abc, (cd_str){"ab", 2}) ||
                 cd_str_eq(abc, none));
    cd_arena a = {0};
    assert_string_equal(cd_str_dup(&a, abc), "abc");
    assert_string_equal(cd_str_dup(&a, none), "");
    cd_arena_free(&a);
}

/* Against the definition: a star stands for any letters. */
static bool slow(const char *p, const char *s) {
    if (!*p) return !*s;
    if (*p == '*') return slow(p + 1, s) || (*s && slow(p, s + 1));
    return *p == *s && slow(p + 1, s + 1);
}

TEST(stars) {
    char p[6], s[6];
    for (unsigned i = 0; i < 729; i++)
        /* patterns of at most 6 of a, b, *; names of at most 6 of a, b */
        for (unsigned j = 0; j < 64; j++) {
            size_t n = 0, m = 0;
            for (unsigned k = i; k && n < 5; k /= 3) p[n++] = "ab*"[k % 3];
            for (unsigned k = j; k > 1 && m < 5; k /= 2) s[m++] = "ab"[k % 2];
            p[n] = s[m] = 0;
            if (cd_str_fits(p, s) != slow(p, s)) fail_msg("'%s' '%s'", p, s);
        }
}

TEST(utf8) {
    static const char *const good[] = {"",
                                       "a",
                                       "\xc3\xa9",
                                       "\xe2\x82\xac",
                                       "\xed\x9f\xbf",
                                       "\xf0\x9f\x98\x80",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",
                                      "\xc0\xaf",
                                      "\xc3",
                                      "\xe2\x82",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "a\xff"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(cd_str_is_utf8((cd_str){good[i], strlen(good[i])}));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(cd_str_is_utf8((cd_str){bad[i], strlen(bad[i])}));
}

TEST(shorter) {
    static const struct {
        size_t n;
        const char *text, *middle, *words;
    } t[] = {
        {20, "short", "short", "short"},
        {12, "/home/anna/work/a.yaml", "/ho...a.yaml", "/home/ann..."},
        {50, "cannot read /home/anna/work/project/measurements/of/today/first/a.yaml: no such file",
         "cannot read /ho...today/first/a.yaml: no such file",
         "cannot read /home/a...y/first/a.yaml: no such file"},
        {3, "abcdef", "...", "..."},
        {0, "abcdef", "", ""},
    };
    char buf[200];
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        strcpy(buf, t[i].text);
        cd_str_cut_middle(buf, t[i].n);
        assert_true(strlen(buf) <= t[i].n);
        assert_string_equal(buf, t[i].middle);
        strcpy(buf, t[i].text);
        cd_str_shorten(buf, t[i].n);
        assert_true(strlen(buf) <= t[i].n);
        assert_string_equal(buf, t[i].words);
    }
}

/* For all lengths: not longer than asked, no letter of several bytes torn apart, and the words
 * around a long one stay as long as they can. */
TEST(shorter_of_any_length) {
    char all[400] = "cannot read '", buf[400];
    for (int k = 0; k < 60; k++) strcat(all, k % 9 ? "\xc3\xa9" : "/");
    strcat(all, "/f.json': no such file");
    for (size_t n = 0; n <= strlen(all); n++)
        for (int words = 0; words < 2; words++) {
            strcpy(buf, all);
            words ? cd_str_shorten(buf, n) : cd_str_cut_middle(buf, n);
            assert_true(strlen(buf) <= n && strlen(buf) + 4 >= n);
            assert_true(cd_str_is_utf8((cd_str){buf, strlen(buf)}));
            if (words && n >= 70) assert_non_null(strstr(buf, "/f.json': no such file"));
            if (words && n >= 70) assert_memory_equal(buf, "cannot read '/", 14);
        }
}

TESTS(NULL, NULL, equal, stars, utf8, shorter, shorter_of_any_length)
