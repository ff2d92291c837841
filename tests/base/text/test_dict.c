/* Texts to numbers: the order of coming, none lost when the table grows. */
#include "base/text/text.h"
#include "check.h"
#include "fault.h"

TEST(numbers_are_the_order) {
    cdmpp_err err = {0};
    cd_dict d = {0};
    char text[16];
    uint32_t k;
    assert_false(cd_dict_find(&d, (cd_str){"a", 1}, &k));
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "%u", i * 7);
        assert_ok(cd_dict_add(&d, (cd_str){text, strlen(text)}, &k, &err));
        assert_int_equal(k, i);
    }
    assert_int_equal(d.n, 1000);
    for (uint32_t i = 0; i < 7000; i++) {
        snprintf(text, sizeof text, "%u", i);
        const cd_str s = {text, strlen(text)};
        assert_int_equal(cd_dict_find(&d, s, &k), i % 7 == 0);
        if (i % 7) continue;
        assert_int_equal(k, i / 7);
        assert_string_equal(d.text[k], text);
        assert_ok(cd_dict_add(&d, s, &k, &err)); /* again: the same */
        assert_int_equal(k, i / 7);
    }
    assert_int_equal(d.n, 1000);
    /* by its length, not by its end: "7" */
    assert_false(cd_dict_find(&d, (cd_str){"70", 1}, &k) && k != 1);
    cd_dict_free(&d);
    assert_int_equal(d.n, 0);
}

TEST(any_allocation_may_fail) {
    FAULT_SWEEP(f, 1) {
        cd_dict d = {0};
        f.st = CDMPP_OK;
        uint32_t k = 0;
        for (uint32_t i = 0; i < 40 && !f.st; i++) {
            const char c = (char)('0' + i);
            f.st = cd_dict_add(&d, (cd_str){&c, 1}, &k, &f.err);
            if (!f.st) assert_int_equal(k, i);
        }
        cd_dict_free(&d);
    }
}

TESTS(NULL, NULL, numbers_are_the_order, any_allocation_may_fail)
