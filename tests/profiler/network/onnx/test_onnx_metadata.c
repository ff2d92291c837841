/* Texts in the metadata of ONNX files: written, replaced, read back, all other bytes as they
 * were. */
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "base/io/io.h"
#include "check.h"
#include "fault.h"
#include "profiler/network/onnx/onnx.h"
#include "tmp.h"

#define MODEL "tests/profiler/data/whole.onnx"
static cdmpp_err err;
static tmp_dir dir;

static int up(void **state) {
    (void)state;
    dir = tmp_make();
    return 0;
}
static int down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

static void holds(const char *path, const char *key, const char *want) {
    char *text;
    size_t n;
    assert_ok(cd_onnx_metadata(path, key, &text, &n, &err));
    if (!want) assert_null(text);
    else assert_true(text && n == strlen(want) && !strcmp(text, want));
    cd_mem_free(text);
}

static void test_round_trip(void **state) {
    char to[256], *before, *after;
    size_t n, m;
    cd_buf large = {0};
    (void)state;
    snprintf(to, sizeof to, "%s", tmp_put(&dir, "a.onnx", "", 0));
    holds(MODEL, "a", NULL);
    assert_ok(cd_onnx_metadata_write(MODEL, to, "a", "first", 5, &err));
    assert_ok(cd_file_read(MODEL, SIZE_MAX, &before, &n, &err));
    assert_ok(cd_file_read(to, SIZE_MAX, &after, &m, &err));
    assert_true(m == n + 2 + 3 + 7); /* tag and length, of the pair and of both texts */
    assert_memory_equal(before, after, n);
    cd_mem_free(after);
    /* longer than a length of one byte tells */
    for (int k = 0; k < 300; k++) cd_buf_puts(&large, "line\n");
    assert_ok(cd_onnx_metadata_write(to, to, "ab", large.p, large.n, &err));
    assert_ok(cd_onnx_metadata_write(to, to, "a", "", 0, &err)); /* in place of the first */
    holds(to, "a", "");
    holds(to, "ab", large.p);
    holds(to, "b", NULL);
    assert_ok(cd_file_read(to, SIZE_MAX, &after, &m, &err));
    assert_true(m == n + (3 + 4 + 3 + large.n) + (2 + 3 + 2));
    assert_memory_equal(before, after, n);
    cd_mem_free(after);
    cd_mem_free(before);
    cd_buf_free(&large);
}

/* The graph of an annotated file is the same. */
static void test_graph(void **state) {
    char to[256];
    cd_graph *g[2];
    const cd_onnx_miss *miss;
    uint32_t n_miss;
    (void)state;
    snprintf(to, sizeof to, "%s", tmp_put(&dir, "b.onnx", "", 0));
    assert_ok(cd_onnx_metadata_write("examples/resnet18.onnx", to, "cdmpp.plan", "{}", 2, &err));
    assert_ok(cd_onnx_read("examples/resnet18.onnx", NULL, &g[0], &miss, &n_miss, &err));
    assert_ok(cd_onnx_read(to, NULL, &g[1], &miss, &n_miss, &err));
    assert_int_equal(g[0]->n_node, g[1]->n_node);
    for (uint32_t k = 0; k < g[0]->n_node; k++)
        assert_string_equal(g[0]->node[k].op, g[1]->node[k].op);
    for (int k = 0; k < 2; k++) cd_graph_free(g[k]);
}

static void test_no_model(void **state) {
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {{"\x72\x05\x0a\x01", 4} /* ends in a pair */,
               {"\x72\x03\x0a\x05x", 5} /* a key longer than its pair */,
               {"\x07", 1} /* no wire type */,
               {"\x08", 1} /* no number */,
               {"\x02\x00", 2} /* field 0 */};
    char path[256], *text, *left;
    size_t n;
    (void)state;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        snprintf(path, sizeof path, "%s", tmp_put(&dir, "bad.onnx", bad[k].bytes, bad[k].n));
        assert_status(cd_onnx_metadata(path, "a", &text, &n, &err), CDMPP_EPARSE);
        assert_null(text);
        assert_status(cd_onnx_metadata_write(path, path, "a", "b", 1, &err), CDMPP_EPARSE);
        /* what could not be read is not written over */
        assert_ok(cd_file_read(path, SIZE_MAX, &left, &n, &err));
        assert_true(n == bad[k].n && !memcmp(left, bad[k].bytes, n));
        cd_mem_free(left);
        assert_false(cd_onnx_is_model(path));
    }
    assert_status(cd_onnx_metadata("tests/nosuch.onnx", "a", &text, &n, &err), CDMPP_EIO);
    assert_true(cd_onnx_is_model(MODEL) && !cd_onnx_is_model("tests/nosuch.onnx"));
    assert_false(cd_onnx_is_model(tmp_put(&dir, "p.json", "{\"schema\": 1}", 13)));
    assert_false(cd_onnx_is_model(tmp_put(&dir, "empty", "", 0)));
}

static void test_no_memory(void **state) {
    char to[256];
    (void)state;
    snprintf(to, sizeof to, "%s", tmp_put(&dir, "c.onnx", "", 0));
    FAULT_SWEEP(f, 3) f.st = cd_onnx_metadata_write(MODEL, to, "a", "b", 1, &f.err);
    fault_off();
    holds(to, "a", "b");
}

TESTS(up, down, test_round_trip, test_graph, test_no_model, test_no_memory)
