/* Odd headers of files of operator models, before weights as they are. */
#include "learner/operators/operators.h"
#include "odd.h"

#define SPREAD(held, device, more)                                                                 \
    "{\"held\":\"" held "\",\"classes\":[\"bmm\",\"conv\"],\"device\":" device                     \
    ",\"rows\":100,\"devices\":2,\"at\":[-3,0.5],\"scale\":[0.1,0.2],\"times\":[0.1,0.2,0.3,0.4,"  \
    "0.5],\"shared\":0.5" more "}"
#define LATER                                                                                      \
    "\"kinds\":[\"linear\"],\"dtypes\":[\"float32\",\"float16\"],\"intervals\":[" SPREAD(          \
        "large", "null",                                                                           \
        "") "," SPREAD("device-shift", "null",                                                     \
                       ",\"between\":[0.1,0.3],\"freedom\":3,\"far\":2,\"other\":[1.5,2],\"other_" \
                       "freedom\":4") "," SPREAD("large-shift", "null",                            \
                                                 ",\"between\":[0.1,0.3],\"freedom\":3") "],"

typedef struct weights {
    cd_str w;
    uint32_t version;
} weights;

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
    cd_buf b = {0}; /* the same with what later versions say of kinds, types and intervals */
    const char *at = memmem(f.header.p, f.header.n, "\"largest\"", 9);
    assert_non_null(at);
    cd_buf_put(&b, f.header.p, (size_t)(at - f.header.p));
    cd_buf_puts(&b, LATER);
    cd_buf_put(&b, at, f.header.n - (size_t)(at - f.header.p));
    odd_of(b.p, b.n, true, read, &w);
    cd_buf_free(&b);
    cd_mem_free(file);
}

TEST(files) { odd_headers("tests/golden/operators_v1.cdmpp", model); }

TESTS(NULL, NULL, files)
