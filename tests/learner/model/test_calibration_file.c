/* A calibration as JSON and weights: there and back, and texts that lie. */
#include "learner/model/calibration.h"
#include "check.h"

#include <string.h>

#include "base/core/arena.h"
#include "made_calib.h"
#include "odd.h"

static cdmpp_status read_text(const char *text, size_t n_text, const cd_buf *blob, size_t n,
                              cd_calibration **out, cdmpp_err *err) {
    cd_arena a = {0};
    const cd_json *v;
    cdmpp_status st = cd_json_parse(&a, text, n_text, &v, err);
    if (!st) st = cd_calibration_read(v, blob->p, n, out, err);
    cd_arena_free(&a);
    return st;
}

TEST(there_and_back) {
    cdmpp_err err = {0};
    cd_buf json = {0}, blob = {0}, again = {0}, blob2 = {0};
    cd_calibration *c = NULL;
    assert_ok(cd_calibration_write(fitted, &json, &blob, &err));
    assert_ok(read_text(json.p, json.n, &blob, blob.n, &c, &err));
    same_answers(c, NULL, cd_calibration_options_default());
    assert_int_equal(cd_calibration_n_kind(c), KINDS);
    assert_int_equal(cd_calibration_width(c), W);
    const cd_calibration_info a = cd_calibration_info_of(fitted), b = cd_calibration_info_of(c);
    assert_memory_equal(&a, &b, sizeof a);
    assert_ok(cd_calibration_write(c, &again, &blob2, &err));
    assert_string_equal(json.p, again.p);
    cd_calibration_free(c);
    cd_buf_free(&json);
    cd_buf_free(&again);
    cd_buf_free(&blob);
    cd_buf_free(&blob2);
}

/* The text with what stands between `key` and the next `end` replaced. */
static void replace(const char *text, const char *key, char end, const char *by, cd_buf *out) {
    const char *at = strstr(text, key);
    assert_non_null(at);
    at += strlen(key);
    cd_buf_clear(out);
    cd_buf_put(out, text, (size_t)(at - text));
    cd_buf_puts(out, by);
    cd_buf_puts(out, strchr(at, end));
}

static const struct {
    const char *key, *by, *where;
    char end;
    cdmpp_status st;
} bad[] = {
    {"\"level\":", "2", "level", ',', CDMPP_ERANGE},
    {"\"level\":", "1e999", "level", ',', CDMPP_ERANGE},
    {"\"point\":", "\"mean\"", "point", ',', CDMPP_ESCHEMA},
    {"\"weight\":[", "0.5,0.6", "weight", ']', CDMPP_ERANGE},
    {"\"weight\":[", "2,-1", "weight", ']', CDMPP_ERANGE},
    {"\"weight\":[", "", "weight", ']', CDMPP_ESCHEMA},
    {"\"weight\":[", "0,0,0,0,0,0,0,0,1", "weight", ']', CDMPP_ERANGE},
    /* trees over another width, told by the member of the booster */
    {"\"weight\":[", "1", "sigma.learner.learner_model_param.num_feature", ']', CDMPP_EMODEL},
    {"\"q\":[", "1,0,2", "q", ']', CDMPP_ERANGE},
    {"\"q\":[", "0,1", "q", ']', CDMPP_ESCHEMA},
    {"\"q\":[", "-1,null,1", "q", ']', CDMPP_ESCHEMA},
    {"\"raw\":[", "0,1", "sigma.raw", ']', CDMPP_ERANGE},
    {"\"scale\":", "0", "sigma.scale", ',', CDMPP_ERANGE},
    {"\"bytes\":[", "1", "sigma.bytes", ']', CDMPP_ESCHEMA},
    {"\"bytes\":[", "1000000000,1,1,1,1", "sigma.bytes", ']', CDMPP_ESCHEMA},
    {"\"low\":[", "0", "range.high", ']', CDMPP_ESCHEMA},
    {"\"low\":[", "", "range.low", ']', CDMPP_ESCHEMA},
    {"\"low\":[", "9,9,9,9,9,9,9,9", "range", ']', CDMPP_ERANGE},
    {"\"limit\":", "-1", "range.limit", '}', CDMPP_ERANGE},
    {"\"flagged\":", "true", "fit.flagged", '}', CDMPP_ESCHEMA},
};

TEST(hostile_text) {
    cdmpp_err err = {0};
    cd_buf json = {0}, blob = {0}, text = {0};
    cd_calibration *c = NULL;
    assert_ok(cd_calibration_write(fitted, &json, &blob, &err));
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        replace(json.p, bad[k].key, bad[k].end, bad[k].by, &text);
        err = (cdmpp_err){0};
        assert_status(read_text(text.p, text.n, &blob, blob.n, &c, &err), bad[k].st);
        assert_string_equal(err.key, bad[k].where);
    }
    assert_status(read_text(json.p, json.n, &blob, blob.n - 1, &c, &err), CDMPP_ESCHEMA);
    assert_status(read_text("[]", 2, &blob, blob.n, &c, &err), CDMPP_ESCHEMA);
    cd_buf_put(&blob, "x", 1);
    assert_status(read_text(json.p, json.n, &blob, blob.n, &c, &err), CDMPP_ESCHEMA);
    cd_buf_free(&json);
    cd_buf_free(&blob);
    cd_buf_free(&text);
}

static cdmpp_status odd_text(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    const cd_buf *blob = ctx;
    cd_calibration *c = NULL;
    const cdmpp_status st = read_text(text, n, blob, blob->n, &c, err);
    if (!st) cd_calibration_free(c);
    return st;
}

TEST(odd_ones) {
    cdmpp_err err = {0};
    cd_buf json = {0}, blob = {0};
    assert_ok(cd_calibration_write(fitted, &json, &blob, &err));
    odd_of(json.p, json.n, true, odd_text, &blob);
    cd_buf_free(&json);
    cd_buf_free(&blob);
}

TESTS(setup, teardown, there_and_back, hostile_text, odd_ones)
