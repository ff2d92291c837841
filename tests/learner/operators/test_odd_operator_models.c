/* Odd headers of files of operator models, before weights as they are. */
#include "learner/operators/operators.h"
#include "odd.h"

typedef struct weights { cd_str w; uint32_t version; } weights;

/* The header, as text, before the weights of a file. */
static cdmpp_status model(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    const weights *w = ctx;
    cd_buf b = {0}, header = {0}, rest = {0};
    cd_library_op_model *m = NULL;
    cd_buf_put(&header, text, n);
    cd_buf_put(&rest, w->w.p, w->w.n);
    cdmpp_status st = cd_container_put_as(CD_CONTAINER_MODEL, w->version, &b, &header, &rest, err);
    if (!st) st = cd_library_op_model_from_bytes(b.p, b.n, &m, err);
    cd_library_op_model_free(m);
    cd_buf_free(&b);
    cd_buf_free(&header);
    cd_buf_free(&rest);
    return st;
}

/* Around the header of a model file. */
static void odd_headers(const char *path, odd_read *read) {
    cdmpp_err err = {0};
    cd_container f;
    char *file;
    size_t n;
    assert_ok(cd_file_read(path, 0, &file, &n, &err));
    assert_ok(cd_container_get(CD_CONTAINER_MODEL, file, n, &f, &err));
    weights w = {f.weights, f.version};
    odd_of(f.header.p, f.header.n, true, read, &w);
    cd_mem_free(file);
}

TEST(files) { odd_headers("tests/golden/operators_v1.cdmpp", model); }

TESTS(NULL, NULL, files)
