/* Odd headers of model files, before weights as they are. */
#include "learner/model/model.h"
#include "odd.h"

typedef struct weights {
    cd_str w;
    uint32_t version;
} weights;

/* The header, as text, before the weights of a file. */
static cdmpp_status model(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    const weights *w = ctx;
    cd_buf b = {0}, header = {0}, rest = {0};
    cd_model *m = NULL;
    cd_buf_put(&header, text, n);
    cd_buf_put(&rest, w->w.p, w->w.n);
    cdmpp_status st = cd_container_put_as(CD_CONTAINER_MODEL, w->version, &b, &header, &rest, err);
    if (!st) st = cd_model_from_bytes(b.p, b.n, &m, err);
    cd_model_free(m);
    cd_buf_free(&b);
    cd_buf_free(&header);
    cd_buf_free(&rest);
    return st;
}

/* Around the header of a model file: all of it, or its members with their networks. */
static void odd_headers(const char *path, const odd_range *range, odd_read *read) {
    cdmpp_err err = {0};
    cd_container f;
    char *file;
    size_t n;
    assert_ok(cd_file_read(path, 0, &file, &n, &err));
    assert_ok(cd_container_get(CD_CONTAINER_MODEL, file, n, &f, &err));
    weights w = {f.weights, f.version};
    odd_within(f.header.p, f.header.n, true, range, read, &w);
    cd_mem_free(file);
}

TEST(version_1) { odd_headers("tests/golden/model_v1.cdmpp", NULL, model); }
TEST(version_2) { odd_headers("tests/golden/model_v2.cdmpp", &(odd_range){700, 1800}, model); }
TEST(version_3) { odd_headers("tests/golden/model_v3.cdmpp", NULL, model); }

/* One field of the header changed, wherever it stands: what is said of it. */
TEST(fields) {
    static const char *const path[] = {NULL, "tests/golden/model_v1.cdmpp",
                                       "tests/golden/model_v2.cdmpp",
                                       "tests/golden/model_v3.cdmpp"};
    static const struct {
        int version;
        const char *from, *to, *key, *msg;
    } of[] = {
        {1, "\"kind\":\"xgboost\"", "\"kind\":\"operators\"", "model",
         "a model of library operators"},
        {1, "\"form\":\"program\"", "\"form\":\"rows\"", "model.parts[1]",
         "a second part of this form"},
        {1, "\"form\":\"program\"", "\"form\":\"mlp\"", "model.parts[1].form",
         "expected \"rows\" or \"program\""},
        {1, "\"form\":\"program\"", "\"form\":7", "model.parts[1].form",
         "expected \"rows\" or \"program\""},
        {1, "\"parts\":[", "\"parts\":[],\"x\":[", "model",
         "expected an array of at least 1 items, found 0"},
        {2, "\"kinds\":[", "\"kind\":[", "model.kinds.kinds", "expected this key"},
        {2, "\"kinds\":[\"rows\",", "\"kinds\":[\"mlp\",\"rows\",", "model.kinds",
         "mlp: named twice"},
        {2, "\"kinds\":[\"rows\",",
         "\"kinds\":[\"rows\",\"rows\",\"rows\",\"rows\",\"rows\",\"rows\",\"rows\",\"rows\","
         "\"rows\",\"rows\",\"rows\",\"rows\",",
         "model.kinds", "expected at most"},
        {2, "\"kinds\":[\"rows\",", "\"kinds\":[\"trees\",", "model.kinds", "expected one of "},
        {2, "\"kinds\":[\"rows\",", "\"kinds\":[7,", "model.kinds",
         "expected a string, found integer"},
        {2, "\"kinds\":[\"rows\",\"mlp\",\"transformer\"]", "\"kinds\":[\"rows\",\"mlp\"]",
         "model.members", "a member of a kind that \"kinds\" does not have"},
        {2, "\"members\":[", "\"member\":[", "model.members.members", "expected this key"},
        {2, "\"members\":[", "\"members\":[],\"x\":[", "model.members",
         "expected an array of at least 1 items, found 0"},
        {2, "\"calib\":", "\"calibre\":", "model.calib.calib", "expected this key"},
        {3, "\"kinds\":[\"rows\"]", "\"kinds\":[\"rows\",\"mlp\"]", "model.members",
         "no member is a mlp"},
        {3, "\"weight\":[1]", "\"weight\":[0.5,0.5]", "model.calib", ""},
        {3, "\"tuner\":{\"at\":", "\"tuner\":{\"at\":-", "tuner.at", ""},
        {3, "\"tuner\":{\"at\":", "\"tuner\":{\"from\":", "tuner.at", "expected this key"},
    };
    unsigned wrong = 0;
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        cdmpp_err err = {0};
        cd_container f;
        char *file;
        size_t n;
        assert_ok(cd_file_read(path[of[k].version], 0, &file, &n, &err));
        assert_ok(cd_container_get(CD_CONTAINER_MODEL, file, n, &f, &err));
        weights w = {f.weights, f.version};
        const char *at = memmem(f.header.p, f.header.n, of[k].from, strlen(of[k].from));
        cd_buf b = {0};
        if (!at) fail_msg("no %s in %s", of[k].from, path[of[k].version]);
        cd_buf_put(&b, f.header.p, (size_t)(at - f.header.p));
        cd_buf_puts(&b, of[k].to);
        at += strlen(of[k].from);
        cd_buf_put(&b, at, (size_t)(f.header.p + f.header.n - at));
        const cdmpp_status st = model(&w, b.p, b.n, &err);
        if (!st || strcmp(err.key, of[k].key) != 0 || !strstr(err.msg, of[k].msg))
            print_error("%s -> %s: %d %s: %s\n", of[k].from, of[k].to, (int)st, err.key, err.msg),
                wrong++;
        cd_buf_free(&b);
        cd_mem_free(file);
    }
    assert_int_equal(wrong, 0);
}

TESTS(NULL, NULL, fields, version_1, version_2, version_3)
