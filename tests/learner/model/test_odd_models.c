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

TESTS(NULL, NULL, version_1, version_2, version_3)
