/* Real numbers of options: the whole word, within the bounds, both included. */
#include "base/cli/cli.h"
#include "check.h"

TEST(numbers) {
    static const struct {
        const char *text;
        bool good;
        double v;
    } tab[] = {{"0.05", true, 0.05}, {"1e-3", true, 1e-3}, {"0", true, 0}, {"1", true, 1},
               {"1.0001", false, 0}, {"-0.1", false, 0},   {"", false, 0}, {"0.5x", false, 0},
               {"nan", false, 0},    {"x", false, 0}};
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        double v = 7;
        cdmpp_err err = {0};
        assert_int_equal(cd_option_number("share", tab[k].text, 0, 1, &v, &err),
                         tab[k].good ? CDMPP_OK : CDMPP_EUSAGE);
        assert_true(v == (tab[k].good ? tab[k].v : 7));
        if (!tab[k].good)
            assert_non_null(strstr(err.msg, "--share: expected a number in 0..1, found '"));
    }
    double v = 7;
    cdmpp_err err = {0};
    assert_ok(cd_option_number("share", NULL, 0, 1, &v, &err)); /* not given: as it was */
    assert_true(v == 7);
}

TESTS(NULL, NULL, numbers)
