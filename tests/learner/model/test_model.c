/* The model file: one written by version 0.1.0 stays readable, strange ones are
 * refused with a reason. (Training and damage: test_learner.c.) */
#include "learner/model/model.h"
#include "check.h"
#include "predict_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "base/core/core.h"
#include "features/rows/rows.h"
#include "learner/config/config.h"

#define GOLDEN "tests/golden/model_v1.cdmpp"

TEST(golden_predicts) {
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
    /* by the formula of docs/reference/model.md in Python */
    assert_close(y[0], 1.0246580383817615e-06, 1e-6, 0);
    assert_close(y[1], 1.5065894439982326e-04, 1e-6, 0);
    assert_int_equal(cd_model_n_device(m), 2);
    assert_string_equal(cd_model_device(m, 1), "zen5-avx512");
    const int64_t none[] = {0, 0};
    assert_status(predict_rows(m, sc, row, none, dev, 1, y, &err), CDMPP_EMODEL);
    cd_model_scratch_free(sc);
    cd_model_free(m);
}

/* A program of one row and one of three, with numbers that no training set has. */
static void predict_two(const cd_model *m, cd_model_prediction p[2]) {
    cdmpp_err err = {0};
    cd_model_scratch *sc;
    static float row[4 * CD_N_COL];
    const int64_t ptr[] = {0, 1, 4};
    const uint32_t dev[] = {0, 1};
    const double flop[] = {1e8, -1};
    const cd_program_view v = {.n = 2, .row = row, .row_ptr = ptr, .device = dev, .flop = flop};
    for (int k = 0; k < 4 * CD_N_COL; k++)
        row[k] = 0.5f * (float)((k % CD_N_COL * 7 + k / CD_N_COL * 3) % 11);
    for (int r = 0; r < 4; r++) row[r * CD_N_COL + CD_COL_OUTER_PROD] = 12 + 2 * (float)r;
    assert_false(cd_model_needs_leaves(m));
    assert_ok(cd_model_scratch_new(&sc, &err));
    assert_ok(cd_model_predict(m, sc, &v, NULL, 2, p, &err));
    cd_model_scratch_free(sc);
}

static void assert_pred(const cd_model_prediction *p, const cd_model_prediction *want) {
    assert_close(p->latency_s, want->latency_s, 1e-5, 0);
    assert_close(p->median_s, want->median_s, 1e-5, 0);
    assert_close(p->low_s, want->low_s, 1e-5, 0);
    assert_close(p->high_s, want->high_s, 1e-5, 0);
    assert_close(p->rel_std, want->rel_std, 1e-5, 0);
    assert_int_equal(p->flags, want->flags);
    assert_true(p->order_s == p->median_s); /* no members for the order */
}

/* Trees, a perceptron and a transformer of feature rows, two folds each, with calibration. The
 * members' mean was compared with what the ONNX export of the file gives in numpy: equal to
 * 1e-6. */
TEST(golden_v2_predicts) {
    cdmpp_err err = {0};
    cd_model *m;
    cd_model_prediction p[2];
    static const cd_model_prediction want[] = {
        {6.60693082e-07, 8.56325629e-07, 9.62984619e-08, 1.41558959e-05, 1.51698427, 1, 0, 0, 0, 0},
        {2.57131582e-05, 4.47540445e-05, 1.25635555e-05, 0.000228612147, 0.881910292, 1, 0, 0, 0,
         0}};
    assert_ok(cd_model_load("tests/golden/model_v2.cdmpp", &m, &err));
    predict_two(m, p);
    for (int i = 0; i < 2; i++) assert_pred(&p[i], &want[i]);
    assert_string_equal(cd_model_device(m, 0), "zen5-avx2");
    assert_null(cd_model_tuner(m));
    cd_model_free(m);
}

/* Trees of two folds, and profile tuner. */
TEST(golden_v3_predicts) {
    cdmpp_err err = {0};
    cd_model *m;
    cd_model_prediction p[2], small[2];
    static const cd_model_prediction want[] = {{2.5577195e-07, 5.60582985e-07, 1.12460157e-07,
                                                3.04656647e-06, 1.00287692, 1, 0, 0, 0, 0},
                                               {1.88553659e-05, 4.13258658e-05, 8.29050024e-06,
                                                0.000224591185, 1.00287692, 1, 0, 0, 0, 0}},
                                     tuner[] = {{1.02668673e-07, 2.14899023e-07, 4.02109264e-08,
                                                 1.18833729e-06, 1.02932308, 1, 0, 0, 0, 0},
                                                {2.41475989e-05, 5.05440976e-05, 9.45758135e-06,
                                                 0.000279496087, 1.02932308, 1, 0, 0, 0, 0}};
    assert_ok(cd_model_load("tests/golden/model_v3.cdmpp", &m, &err));
    assert_non_null(cd_model_tuner(m));
    predict_two(m, p);
    predict_two(cd_model_tuner(m), small);
    for (int i = 0; i < 2; i++) {
        assert_pred(&p[i], &want[i]);
        assert_pred(&small[i], &tuner[i]);
    }
    assert_string_equal(cd_model_device(m, 1), "zen5-avx512");
    assert_string_equal(cd_model_digest(m),
                        "36ef44df780a9a16656cf5f976fe39c1a55dd3a145ef70337b4a8d4ed6bb419e");
    cd_model_free(m);
}

/* A golden file with `from` replaced by `to` (same length) and a right checksum. */
static cdmpp_status patched_file(const char *file, const char *from, const char *to, cd_model **m,
                                 cdmpp_err *err) {
    char *p, hex[65];
    size_t n;
    cd_sha256 h;
    assert_int_equal(cd_file_read(file, 0, &p, &n, err), CDMPP_OK);
    char *at = memmem(p, n, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    cd_sha256_init(&h);
    cd_sha256_add(&h, p, n - 64);
    cd_sha256_hex(&h, hex);
    memcpy(p + n - 64, hex, 64);
    const cdmpp_status st = cd_model_from_bytes(p, n, m, err);
    cd_mem_free(p);
    return st;
}

static cdmpp_status patched(const char *from, const char *to, cdmpp_err *err) {
    cd_model *m;
    const cdmpp_status st = patched_file(GOLDEN, from, to, &m, err);
    if (!st) cd_model_free(m);
    return st;
}

/* A shift that puts the point at the lower quantile, and one at the upper. */
TEST(interval_holds_the_point) {
    static const char *const to[] = {"\"shift\":-9.36479602043942427",
                                     "\"shift\": 9.36479602043942427"};
    cdmpp_err err = {0};
    for (int k = 0; k < 2; k++) {
        cd_model *m;
        cd_model_prediction p[2];
        assert_ok(patched_file("tests/golden/model_v2.cdmpp", "\"shift\":-0.36479602043942427",
                               to[k], &m, &err));
        predict_two(m, p);
        for (int i = 0; i < 2; i++) {
            assert_true(log(p[i].latency_s / p[i].low_s) > 0.249 * p[i].rel_std);
            assert_true(log(p[i].high_s / p[i].latency_s) > 0.249 * p[i].rel_std);
        }
        cd_model_free(m);
    }
}

/* Models of input version 1 read rows as they come, for they were trained so. */
TEST(order_of_rows) {
    cdmpp_err err = {0};
    for (int k = 1; k <= 2; k++) {
        cd_model *m;
        assert_ok(patched_file(GOLDEN, "\"input_version\":1",
                               k == 1 ? "\"input_version\":1" : "\"input_version\":2", &m, &err));
        assert_int_equal(cd_model_orders_rows(m), k == 2);
        cd_model_free(m);
    }
}

TEST(refuses_with_a_reason) {
    cdmpp_err err = {0};
    cd_model *m;
    assert_status(patched("\"slope\":", "\"slope\":", &err), CDMPP_OK);
    assert_status(patched("\"feature_digest\":\"", "\"feature_digest\":\"#", &err), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "the model was trained on #"));
    assert_status(patched("\"input_version\":1", "\"input_version\":9", &err), CDMPP_EMODEL);
    assert_status(patched("\"kind\":\"xgboost\",\"input_version\":1,",
                          "\"kind\":\"llm-operators\",\"integer\":1,", &err),
                  CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "cdmpp-replay --llm"));
    assert_status(patched("\"form\":\"rows\"", "\"form\":\"cows\"", &err), CDMPP_ESCHEMA);
    assert_string_equal(err.key, "model.parts[0].form");
    static const char *const range[][2] = {{"[-17.61", "[-717.1"},
                                           {"[-17.61", "[9999.1"},
                                           {",2.1359", ",-18.59"},
                                           {",2.1359", ",722.59"}};
    for (size_t k = 0; k < 4; k++) { /* exp() of its ends is a latency, the lower one first */
        assert_status(patched(range[k][0], range[k][1], &err), CDMPP_ERANGE);
        assert_string_equal(err.msg, "log_range");
    }
    assert_status(patched("-17.612965907934182", "-700.00000000000000", &err), CDMPP_OK);
    assert_status(patched("2.135991563824908", "700.0000000000000", &err), CDMPP_OK);
    assert_status(patched("\"weight\"", "\"weighs\"", &err), CDMPP_ESCHEMA);
    assert_status(patched("\x01", "\x09", &err), CDMPP_EUNSUPPORTED);
    assert_status(cd_model_load("tests/golden/simplify.txt", &m, &err), CDMPP_EPARSE);
    assert_status(cd_model_load("tests/golden/no-such-model", &m, &err), CDMPP_EIO);
}

TEST(config_manual_is_current) {
    cdmpp_err err = {0};
    size_t n, len;
    char *doc;
    cd_buf table = {0};
    const cd_conf_key *key = cd_config_keys(&n);
    cd_conf_doc(&table, key, n);
    assert_ok(cd_file_read("docs/reference/config.md", 0, &doc, &len, &err));
    if (!strstr(doc, table.p))
        fail_msg("docs/reference/config.md: write it again with cdmpp-train --doc-config");
    cd_mem_free(doc);
    cd_buf_free(&table);
}

TESTS(NULL, NULL, golden_predicts, golden_v2_predicts, golden_v3_predicts, interval_holds_the_point,
      order_of_rows, refuses_with_a_reason, config_manual_is_current)
