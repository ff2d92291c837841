/* The model file: one written by version 0.1.0 stays readable, strange ones are
 * refused with a reason. (Training and damage: test_learner.c.) */
#include "learner/model.h"
#include "check.h"
#include "predict_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/sha256.h"
#include "features/cols.h"
#include "learner/config.h"

#define GOLDEN "tests/golden/model_v1.cdmpp"

static void golden_predicts(void **s) {
    (void)s;
    cdmpp_err err = {0};
    cd_model *m;
    cd_model_scratch *sc;
    static float row[2 * CD_N_COL];
    const int64_t ptr[] = {0, 1, 2};
    const uint32_t dev[] = {0, 1};
    double y[2];
    assert_ok(cd_model_load(GOLDEN, &m, &err));
    assert_ok(cd_model_scratch_new(&sc, &err));
    row[161] = 10;
    row[CD_N_COL + 161] = 20;
    assert_ok(predict_rows(m, sc, row, ptr, dev, 2, y, &err));
    assert_close(y[0], 1.0246580383817615e-06, 1e-6, 0); /* by the formula of docs/model.md in Python */
    assert_close(y[1], 1.5065894439982326e-04, 1e-6, 0);
    assert_int_equal(cd_model_n_device(m), 2);
    assert_string_equal(cd_model_device(m, 1), "zen5-avx512");
    const int64_t none[] = {0, 0};
    assert_status(predict_rows(m, sc, row, none, dev, 1, y, &err), CDMPP_EMODEL);
    cd_model_scratch_free(sc);
    cd_model_free(m);
}

/* The golden file with `from` replaced by `to` (same length) and a right checksum. */
static cdmpp_status patched(const char *from, const char *to, cdmpp_err *err) {
    char *p, hex[65];
    size_t n;
    cd_sha256 h;
    cd_model *m;
    assert_int_equal(cd_file_read(GOLDEN, 0, &p, &n, err), CDMPP_OK);
    char *at = memmem(p, n, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    cd_sha256_init(&h);
    cd_sha256_add(&h, p, n - 64);
    cd_sha256_hex(&h, hex);
    memcpy(p + n - 64, hex, 64);
    const cdmpp_status st = cd_model_from_bytes(p, n, &m, err);
    if (!st) cd_model_free(m);
    cd_free(p);
    return st;
}

static void refuses_with_a_reason(void **s) {
    (void)s;
    cdmpp_err err = {0};
    cd_model *m;
    assert_status(patched("\"slope\":", "\"slope\":", &err), CDMPP_OK);
    assert_status(patched("\"feature_digest\":\"", "\"feature_digest\":\"#", &err), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "the model was trained on #"));
    assert_status(patched("\"input_version\":1", "\"input_version\":9", &err), CDMPP_EMODEL);
    assert_status(patched("\"form\":\"rows\"", "\"form\":\"cows\"", &err), CDMPP_ESCHEMA);
    assert_string_equal(err.key, "model.parts[0].form");
    assert_status(patched("\"weight\"", "\"weighs\"", &err), CDMPP_ESCHEMA);
    assert_status(patched("\x01", "\x09", &err), CDMPP_EUNSUPPORTED);
    assert_status(cd_model_load("tests/golden/simplify.txt", &m, &err), CDMPP_EPARSE);
    assert_status(cd_model_load("tests/golden/no-such-model", &m, &err), CDMPP_EIO);
}

static void config_manual_is_current(void **s) {
    (void)s;
    cdmpp_err err = {0};
    size_t n, len;
    char *doc;
    cd_buf table = {0};
    const cd_conf_key *key = cd_config_keys(&n);
    cd_conf_doc(&table, key, n);
    assert_ok(cd_file_read("docs/config.md", 0, &doc, &len, &err));
    if (!strstr(doc, table.p)) fail_msg("docs/config.md: write it again with cdmpp-train --doc-config");
    cd_free(doc);
    cd_buf_free(&table);
}

int main(void) {
    const struct CMUnitTest t[] = {cmocka_unit_test(golden_predicts), cmocka_unit_test(refuses_with_a_reason),
                                   cmocka_unit_test(config_manual_is_current)};
    return cmocka_run_group_tests_name("model", t, NULL, NULL);
}
