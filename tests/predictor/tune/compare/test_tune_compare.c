/* Which tuners are compared, and at which numbers of trials. */
#include <string.h>

#include "check.h"
#include "predictor/tune/compare/compare.h"

static cdmpp_err err;

static void test_plans(void **state) {
    cd_tune_compare_plan p;
    (void)state;
    assert_ok(cd_tune_compare_read("random,ga", "1,20,300", false, &p, &err));
    assert_true(p.n_tuner == 2 && !strcmp(p.tuner[0]->name, "random") &&
                !strcmp(p.tuner[1]->name, "ga"));
    assert_true(p.n_at == 3 && p.at[0] == 1 && p.at[1] == 20 && p.at[2] == 300);
    assert_ok(cd_tune_compare_read(NULL, NULL, false, &p, &err));
    assert_true(p.n_tuner == 0 && p.n_at == 4 && p.at[0] == 10 && p.at[1] == 50 && p.at[2] == 100 &&
                p.at[3] == 300);
    assert_ok(cd_tune_compare_read("cdmpp", "5", true, &p, &err));
    assert_status(cd_tune_compare_read("cdmpp", "5", false, &p, &err), CDMPP_EUSAGE);
    assert_non_null(strstr(err.msg, "needs --cost-model"));
}

static void test_refused(void **state) {
    static const char *const tuners[] = {
        "", ",", "randam", "random,random", "random,,ga", "a-name-of-more-than-thirty-two-letters"};
    static const char *const at[] = {"", "0", "-1", "2,1", "2,2", "x", "1;2", "1,x", "1,,2"};
    cd_tune_compare_plan p;
    cd_buf b = {0};
    (void)state;
    for (size_t k = 0; k < sizeof tuners / sizeof *tuners; k++)
        if (cd_tune_compare_read(tuners[k], NULL, true, &p, &err) != CDMPP_EUSAGE)
            fail_msg("\"%s\"", tuners[k]);
    for (size_t k = 0; k < sizeof at / sizeof *at; k++)
        if (cd_tune_compare_read(NULL, at[k], true, &p, &err) != CDMPP_EUSAGE)
            fail_msg("\"%s\"", at[k]);
    for (int most = CD_TUNE_COMPARE_POINTS; most <= CD_TUNE_COMPARE_POINTS + 1; most++) {
        cd_buf_clear(&b);
        for (int k = 1; k <= most; k++) cd_buf_putf(&b, "%s%d", k > 1 ? "," : "", k);
        assert_int_equal(cd_tune_compare_read(NULL, b.p, true, &p, &err) == CDMPP_OK,
                         most == CD_TUNE_COMPARE_POINTS);
    }
    cd_buf_free(&b);
}

TESTS(NULL, NULL, test_plans, test_refused)
