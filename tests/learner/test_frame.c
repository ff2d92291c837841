/* frame: what goes in comes out; any change to a byte is noticed. */
#include "learner/frame.h"
#include "check.h"

#include <string.h>

static void made(cd_buf *file) {
    cd_buf header = {0}, weights = {0};
    cdmpp_err err = {0};
    cd_buf_puts(&header, "{\"a\":1}");
    cd_buf_put(&weights, "\0\1\2\3", 4);
    assert_ok(cd_frame_put(file, &header, &weights, &err));
    cd_buf_free(&header);
    cd_buf_free(&weights);
}

static void round_trip(void **s) {
    cd_buf f = {0};
    cd_str h, w;
    cdmpp_err err = {0};
    (void)s;
    made(&f);
    assert_int_equal(f.n, 32 + 7 + 4 + 64);
    assert_ok(cd_frame_get(f.p, f.n, &h, &w, &err));
    assert_true(cd_str_is(h, "{\"a\":1}") && w.n == 4 && !memcmp(w.p, "\0\1\2\3", 4));
    cd_buf_free(&f);
}

static void every_byte_counts(void **s) {
    cd_buf f = {0};
    cd_str h, w;
    cdmpp_err err = {0};
    (void)s;
    made(&f);
    for (size_t i = 0; i < f.n; i++) {
        f.p[i] = (char)(f.p[i] ^ 1);
        assert_true(cd_frame_get(f.p, f.n, &h, &w, &err) != CDMPP_OK);
        f.p[i] = (char)(f.p[i] ^ 1);
        assert_status(cd_frame_get(f.p, i, &h, &w, &err), CDMPP_EPARSE);
    }
    f.p[8] = 9;
    assert_status(cd_frame_get(f.p, f.n, &h, &w, &err), CDMPP_EUNSUPPORTED);
    cd_buf_free(&f);
}

int main(void) {
    const struct CMUnitTest t[] = {cmocka_unit_test(round_trip), cmocka_unit_test(every_byte_counts)};
    return cmocka_run_group_tests_name("frame", t, NULL, NULL);
}
