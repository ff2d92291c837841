/* words: by number and by name, and what is none. */
#include "base/text/text.h"
#include "check.h"

#include <string.h>

static cd_str str(const char *z) { return (cd_str){z, strlen(z)}; }

TEST(there_and_back) {
    static const char list[] = "a|bc|a b|d";
    static const char *const want[] = {"a", "bc", "a b", "d"};
    for (int k = 0; k < 4; k++) {
        assert_true(cd_str_is(cd_enum_names_at(list, k), want[k]));
        assert_int_equal(cd_enum_names_find(list, str(want[k])), k);
    }
    assert_int_equal(cd_enum_names_find("one", str("one")), 0);
}

TEST(none_of_them) {
    static const char *const none[] = {"", "b", "bcd", "a|bc", "|", "d|", "D"};
    for (size_t k = 0; k < sizeof none / sizeof *none; k++)
        assert_int_equal(cd_enum_names_find("a|bc|d", str(none[k])), -1);
    assert_int_equal(cd_enum_names_find("", str("a")), -1);
    for (int k = 3; k < 6; k++) assert_int_equal(cd_enum_names_at("a|bc|d", k).n, 0);
    assert_int_equal(cd_enum_names_at("", 0).n, 0);
}

TESTS(NULL, NULL, there_and_back, none_of_them)
