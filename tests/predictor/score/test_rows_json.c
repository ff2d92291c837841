/* Rows as text: what is read, and what is refused with a reason. */
#include "predictor/score/rows_json.h"
#include "check.h"

#include <math.h>
#include <string.h>

static cdmpp_status all(const char *text, double *v, size_t n_col, size_t *n, cdmpp_err *err) {
    cd_rows_json t = {.at = text, .end = text + strlen(text)};
    bool more = true;
    for (*n = 0;; (*n)++, v += n_col) {
        CD_TRY(cd_rows_json_next(&t, v, n_col, &more, err));
        if (!more) return CDMPP_OK;
    }
}

static void reads_rows(void **s) {
    (void)s;
    double v[8];
    size_t n;
    cdmpp_err err = {0};
    assert_ok(all(" [ [1 ,2.5] , [-0, 1e-3]\t]\r", v, 2, &n, &err));
    assert_int_equal(n, 2);
    assert_true(v[0] == 1 && v[1] == 2.5 && v[2] == 0 && v[3] == 1e-3);
    assert_ok(all("[]", v, 2, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(all("[[1e999,-1e999]]", v, 2, &n, &err));
    assert_true(isinf(v[0]) && isinf(v[1]) && v[1] < 0);
}

static void refuses(void **s) {
    (void)s;
    static const struct {
        const char *text, *want;
        cdmpp_status st;
    } bad[] = {{"", "'[' of the list", CDMPP_EPARSE},
               {"[", "'[' of a row", CDMPP_EPARSE},
               {"[1]", "'[' of a row", CDMPP_EPARSE},
               {"[[1,2]", "between rows, found end", CDMPP_EPARSE},
               {"[[1,2],]", "'[' of a row", CDMPP_EPARSE},
               {"[[1,2][1,2]]", "between rows, found byte 0x5b", CDMPP_EPARSE},
               {"[[1,]]", "a number in column 1", CDMPP_EPARSE},
               {"[[1 2]]", "between numbers", CDMPP_EPARSE},
               {"[[NaN,1]]", "a number in column 0", CDMPP_EPARSE},
               {"[[1,Infinity]]", "a number in column 1", CDMPP_EPARSE},
               {"[[null,1]]", "a number", CDMPP_EPARSE},
               {"[[\"1\",1]]", "a number", CDMPP_EPARSE},
               {"[[1,2]] x", "the end", CDMPP_EPARSE},
               {"[[1,2,3]]", "rows of 2 numbers, found 3", CDMPP_EMODEL},
               {"[[1]]", "rows of 2 numbers, found 1", CDMPP_EMODEL},
               {"[[]]", "found 0", CDMPP_EMODEL}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double v[8];
        size_t n;
        cdmpp_err err = {0};
        assert_status(all(bad[i].text, v, 2, &n, &err), bad[i].st);
        if (!strstr(err.msg, bad[i].want)) fail_msg("%s: %s", bad[i].text, err.msg);
    }
    double v[8];
    size_t n;
    cdmpp_err err = {0};
    assert_status(all("[[1,2],[3,4],[5]]", v, 2, &n, &err), CDMPP_EMODEL);
    assert_string_equal(err.key, "[2]");
}

TESTS(NULL, NULL, reads_rows, refuses)
