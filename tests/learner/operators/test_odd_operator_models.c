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

/* One field of the header changed: what is said of it. */
TEST(fields) {
    static const struct {
        const char *from, *to;
        cdmpp_status st;
        const char *key, *msg;
    } of[] = {
        {"\"kind\":\"operators\"", "\"kind\":3", CDMPP_EMODEL, "model", "a model of programs"},
        {"\"kind\":\"operators\"", "\"kind\":\"trees\"", CDMPP_EMODEL, "model",
         "a model of programs"},
        {"\"feature_digest\":\"8795", "\"feature_digest\":\"9995", CDMPP_EMODEL, "model",
         "the model was trained on 9995"},
        {"\"feature_digest\":\"8795", "\"digest\":\"8795", CDMPP_ESCHEMA, "model.feature_digest",
         ""},
        {"\"kind\":\"gpu\",\"clock_mhz\":1530", "\"kind\":\"cpu\",\"clock_mhz\":1530",
         CDMPP_ESCHEMA, "model.devices[1].kind", "expected \"gpu\" or \"npu\""},
        {"[\"elementwise\"],\"kind\":\"gpu\",\"clock_mhz\":1530",
         "[\"nosuch\"],\"kind\":\"gpu\",\"clock_mhz\":1530", CDMPP_ESCHEMA,
         "model.devices[1].classes", "unknown class 'nosuch'"},
        {"[\"elementwise\"],\"kind\":\"gpu\",\"clock_mhz\":1530",
         "3,\"kind\":\"gpu\",\"clock_mhz\":1530", CDMPP_ESCHEMA, "model.devices[1].classes", ""},
        {"\"largest\":[0,0,655360,0,0,0]", "\"largest\":[0,0]", CDMPP_ESCHEMA, "model", ""},
        {"\"largest\":[0,0,655360,0,0,0]", "\"most\":[0,0,655360,0,0,0]", CDMPP_ESCHEMA,
         "model.largest", ""},
        {"\"largest\":", "\"sizes\":3,\"largest\":", CDMPP_ESCHEMA, "model.sizes", ""},
        {"\"largest\":", "\"sizes\":[1,2,3,4,5,6],\"largest\":", CDMPP_ESCHEMA, "model.sizes", ""},
        {"\"largest\":", "\"sizes\":[[],[],[],[],[],[]],\"largest\":", CDMPP_ESCHEMA, "model.sizes",
         ""},
        {"\"seen\":true", "\"seen\":false", CDMPP_ESCHEMA, "model.parts[1]",
         "a second part of this family"},
        {"\"seen\":true", "\"seen\":1", CDMPP_ESCHEMA, "model.parts[1].seen",
         "expected true or false"},
        {"\"bytes\":3660}]", "\"bytes\":3661}]", CDMPP_ERANGE, "model.parts[1].bytes", ""},
        {",{\"family\":\"elementwise\",\"seen\":true,\"bias\":0.023599040966124554,\"rounds\":3,"
         "\"bytes\":3660}",
         "", CDMPP_ESCHEMA, "model", "3660 bytes behind the last part"}};
    cdmpp_err err = {0};
    cd_container f;
    char *file;
    size_t n;
    unsigned wrong = 0;
    assert_ok(cd_file_read("tests/golden/operators_v1.cdmpp", 0, &file, &n, &err));
    assert_ok(cd_container_get(CD_CONTAINER_MODEL, file, n, &f, &err));
    weights w = {f.weights, f.version};
    /* of what later versions say */
    static const struct {
        const char *from, *to, *key, *msg;
    } later[] = {
        {"\"held\":\"large\"", "\"held\":\"small\"", "model.intervals[0].held", ""},
        {"\"device\":null", "\"dev\":null", "model.intervals[0].device", "expected this key"},
        {"\"between\":[0.1,0.3]", "\"between\":[0.1]", "model.intervals[1].between",
         "expected as many numbers as \"at\" has"},
        {"\"far\":2", "\"near\":2", "model.intervals[1].far", "expected this key"},
        {"\"times\":[0.1,0.2,0.3,0.4,0.5]", "\"times\":[0.1,0.2]", "model.intervals[0].times",
         "expected 5 numbers"},
        {"\"intervals\":[", "\"intervals\":7,\"x\":[", "model.intervals",
         "expected an array, found integer"},
        {"\"dtypes\":[\"float32\"", "\"dtypes\":[\"float33\"", "model.dtypes", ""},
        {"\"kinds\":[\"linear\"]", "\"kinds\":[\"line\"]", "model.kinds", ""},
    };
    for (size_t k = 0; k < sizeof later / sizeof *later; k++) {
        cd_buf all = {0}, b = {0};
        const char *end = f.header.p + f.header.n,
                   *mark = memmem(f.header.p, f.header.n, "\"largest\"", 9), *at;
        cd_buf_put(&all, f.header.p, (size_t)(mark - f.header.p));
        cd_buf_puts(&all, LATER);
        cd_buf_put(&all, mark, (size_t)(end - mark));
        at = strstr(all.p, later[k].from);
        assert_non_null(at);
        cd_buf_put(&b, all.p, (size_t)(at - all.p));
        cd_buf_puts(&b, later[k].to);
        at += strlen(later[k].from);
        cd_buf_put(&b, at, (size_t)(all.p + all.n - at));
        err = (cdmpp_err){0};
        const cdmpp_status st = model(&w, b.p, b.n, &err);
        if (!st || strcmp(err.key, later[k].key) || !strstr(err.msg, later[k].msg))
            print_error("%s -> %s: %d %s: %s\n", later[k].from, later[k].to, (int)st, err.key,
                        err.msg),
                wrong++;
        cd_buf_free(&all);
        cd_buf_free(&b);
    }
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        const char *at = memmem(f.header.p, f.header.n, of[k].from, strlen(of[k].from));
        cd_buf b = {0};
        assert_non_null(at);
        cd_buf_put(&b, f.header.p, (size_t)(at - f.header.p));
        cd_buf_puts(&b, of[k].to);
        at += strlen(of[k].from);
        cd_buf_put(&b, at, (size_t)(f.header.p + f.header.n - at));
        err = (cdmpp_err){0};
        const cdmpp_status st = model(&w, b.p, b.n, &err);
        if (st != of[k].st || strcmp(err.key, of[k].key) != 0 || !strstr(err.msg, of[k].msg))
            print_error("%s -> %s: %d %s: %s\n", of[k].from, of[k].to, (int)st, err.key, err.msg),
                wrong++;
        cd_buf_free(&b);
    }
    cd_mem_free(file);
    assert_int_equal(wrong, 0);
}

/* What later versions say is written as it was read. */
TEST(written_again) {
    cdmpp_err err = {0};
    cd_container f, again;
    char *file;
    size_t n;
    cd_library_op_model *m = NULL, *back = NULL;
    cd_buf header = {0}, rest = {0}, b = {0}, out = {0};
    assert_ok(cd_file_read("tests/golden/operators_v1.cdmpp", 0, &file, &n, &err));
    assert_ok(cd_container_get(CD_CONTAINER_MODEL, file, n, &f, &err));
    const char *mark = memmem(f.header.p, f.header.n, "\"largest\"", 9);
    cd_buf_put(&header, f.header.p, (size_t)(mark - f.header.p));
    cd_buf_puts(
        &header,
        "\"kinds\":[\"linear\"],\"dtypes\":[\"float32\",\"float16\"],\"intervals\":"
        "[" SPREAD("device-shift", "\"t4\"",
                   ",\"between\":[0.1,0.3],\"freedom\":3,\"far\":2,\"other\":[1.5,2],\"other_"
                   "freedom\":4") "," SPREAD("device-shift", "null",
                                             ",\"between\":[0.1,0.3],\"freedom\":3,\"far\":2,"
                                             "\"other\":[1.5,2],\"other_freedom\":4") "],");
    cd_buf_put(&header, mark, (size_t)(f.header.p + f.header.n - mark));
    cd_buf_put(&rest, f.weights.p, f.weights.n);
    assert_ok(cd_container_put_as(CD_CONTAINER_MODEL, f.version, &b, &header, &rest, &err));
    assert_ok(cd_library_op_model_from_bytes(b.p, b.n, &m, &err));
    assert_ok(cd_library_op_model_encode(m, "", &out, &err));
    assert_ok(cd_container_get(CD_CONTAINER_MODEL, out.p, out.n, &again, &err));
    static const char *const want[] = {
        "\"kinds\":[\"linear\"]",
        "\"dtypes\":[\"float32\",\"float16\"]",
        "{\"held\":\"device-shift\",\"classes\":[\"bmm\",\"conv\"],\"device\":\"t4\",",
        "\"device\":null",
        "\"far\":2,",
        "\"other_freedom\":4"};
    for (size_t k = 0; k < sizeof want / sizeof *want; k++)
        if (!memmem(again.header.p, again.header.n, want[k], strlen(want[k])))
            fail_msg("no %s", want[k]);
    assert_ok(cd_library_op_model_from_bytes(out.p, out.n, &back, &err));
    cd_library_op_model_free(m);
    cd_library_op_model_free(back);
    cd_buf_free(&header);
    cd_buf_free(&rest);
    cd_buf_free(&b);
    cd_buf_free(&out);
    cd_mem_free(file);
}

TESTS(NULL, NULL, files, fields, written_again)
