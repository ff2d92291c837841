/* ONNX files: the small ones in data/ (make_onnx.py), and what no writer of ONNX would write. */

#include "check.h"
#include "fault.h"
#include "tmp.h"

#include "base/core/core.h"
#include "base/io/io.h"
#include "profiler/network/onnx/onnx.h"
#include "read_onnx.h"

TEST(whole_models) {
    static const char *const dims[] = {"height=16", "batch=5"};
    static const char *const place[] = {"x[2]=16", "x[0]=2"};
    static const char *const alien[] = {"height=16", "batch=5", "depth=3"};
    const cd_onnx_options o = {.dim = dims, .n_dim = 2};
    const cd_onnx_options p = {.dim = place, .n_dim = 2};
    const cd_onnx_options b = {.batch = 7, .dim = dims, .n_dim = 1};
    onnx r = must("whole", &o);
    has_shape(r.g, "p", "5,8,4,4");
    has_shape(r.g, "f", "5,128");
    has_shape(r.g, "y", "5,10");
    assert_true(r.g->n_input == 1 && r.g->n_output == 1 && r.g->opset == 13);
    assert_string_equal(r.g->name, "whole");
    assert_string_equal(r.g->node[0].name, "conv");
    assert_true(tensor(r.g, "w")->is_weight && tensor(r.g, "x")->is_input &&
                tensor(r.g, "y")->is_output);
    assert_close(r.g->node[0].flop, 5.0 * 8 * 64 * (2 * 27 + 1), 1e-15, 0);
    cd_graph_free(r.g);
    r = must("whole", &b);
    has_shape(r.g, "y", "7,10");
    cd_graph_free(r.g);
    r = must("whole", &p);
    has_shape(r.g, "y", "2,10");
    cd_graph_free(r.g);
    refuse("whole", NULL, CDMPP_ESCHEMA, "dimension 0|batch|\"x\"|a batch size|--dim 'batch=N'");
    refuse("whole", &(cd_onnx_options){.batch = 2}, CDMPP_ESCHEMA, "dimension 2|height");
    refuse("whole", &(cd_onnx_options){.dim = alien, .n_dim = 3}, CDMPP_EUSAGE, "depth=3");
    refuse("whole", &(cd_onnx_options){.batch = 7, .dim = dims, .n_dim = 2}, CDMPP_EUSAGE,
           "batch size|expected 7|found 5");
    refuse("whole", &(cd_onnx_options){.batch = 7, .dim = place, .n_dim = 2}, CDMPP_EUSAGE,
           "x[0]|batch size|expected 7|found 2");
    refuse("whole", &(cd_onnx_options){.dim = (const char *const[]){"batch=x"}, .n_dim = 1},
           CDMPP_EUSAGE, "batch=x|NAME=NUMBER");
    refuse("unnamed", NULL, CDMPP_ESCHEMA, "x[0]=N");
    refuse("negative", NULL, CDMPP_ERANGE, "-1|x[1]=N");
    r = must("negative", &(cd_onnx_options){.dim = (const char *const[]){"x[1]=9"}, .n_dim = 1});
    has_shape(r.g, "y", "1,9,4");
    cd_graph_free(r.g);
}

TEST(roles) {
    onnx r = must("stripped", NULL);
    assert_int_equal(r.g->n_input, 1);
    assert_true(tensor(r.g, "ids")->is_input);
    static const char *const weights[] = {"table", "q", "bias", "scale", "token"};
    for (size_t i = 0; i < 5; i++) assert_true(tensor(r.g, weights[i])->is_weight);
    assert_true(tensor(r.g, "qt")->is_weight && !tensor(r.g, "m")->is_weight);
    cd_graph_free(r.g);
    r = must("float_input", NULL); /* the image, though it is the last of the inputs */
    assert_true(r.g->n_input == 1 && tensor(r.g, "image")->is_input &&
                tensor(r.g, "w")->is_weight && tensor(r.g, "mask")->is_weight);
    cd_graph_free(r.g);
    r = must("float_input",
             &(cd_onnx_options){.input = (const char *const[]){"image", "mask"}, .n_input = 2});
    assert_true(r.g->n_input == 2 && tensor(r.g, "mask")->is_input);
    cd_graph_free(r.g);
    refuse("float_input",
           &(cd_onnx_options){.input = (const char *const[]){"picture"}, .n_input = 1},
           CDMPP_EUSAGE, "picture");
    r = must("no_heads", NULL);
    assert_int_equal(r.g->n_input, 2);
    cd_graph_free(r.g);
    r = must("fill", NULL); /* an initializer that is listed as input is none */
    assert_true(r.g->n_input == 1 && tensor(r.g, "w")->is_weight && tensor(r.g, "b")->is_weight);
    assert_close(cd_graph_flop(r.g), 4.0 * 36 * (2 * 27 + 1), 1e-15, 0);
    cd_graph_free(r.g);
    r = must("hollows", NULL);
    assert_true(tensor(r.g, "w")->is_weight && !tensor(r.g, "w")->fvalue);
    cd_graph_free(r.g);
}

TEST(batches) {
    onnx r = must("baked", &(cd_onnx_options){.batch = 3});
    has_shape(r.g, "r", "3,4,6");
    has_shape(r.g, "f", "3,24");
    has_shape(r.g, "y", "3,5");
    cd_graph_free(r.g);
    refuse("baked_deep", &(cd_onnx_options){.batch = 4}, CDMPP_ESCHEMA, "batch size of 2");
    refuse("baked", &(cd_onnx_options){.batch = -1}, CDMPP_EUSAGE, "-1");
    r = must("named_batch", &(cd_onnx_options){.batch = 6});
    has_shape(r.g, "y", "6,4");
    cd_graph_free(r.g);
    r = must("recurrent",
             &(cd_onnx_options){.batch = 3, .dim = (const char *const[]){"t=9"}, .n_dim = 1});
    has_shape(r.g, "h0", "1,3,8");
    has_shape(r.g, "y", "9,3,8");
    has_shape(r.g, "c", "1,3,8");
    cd_graph_free(r.g);
}

TEST(contents) {
    onnx r = must("constants", NULL);
    has_shape(r.g, "e", "2,3");
    has_shape(r.g, "y", "1,1,8,10");
    const cd_graph_tensor *k = tensor(r.g, "k");
    assert_true(k->value && k->value[0] == 4 && k->value[1] == -12);
    assert_int_equal(tensor(r.g, "wide")->value[0], -3);
    cd_graph_free(r.g);
    refuse("short_content", NULL, CDMPP_ESCHEMA, "\"to\"|24 bytes|20");
    r = must("older_forms", NULL);
    has_shape(r.g, "b", "1,3,6,4");
    has_shape(r.g, "f", "1,3,12,4");
    has_shape(r.g, "g1", "1,2,12,4");
    has_shape(r.g, "r", "1,2");
    assert_int_equal(r.n_miss, 0);
    cd_graph_free(r.g);
}

TEST(flow) {
    onnx r = must("if_known", NULL);
    has_shape(r.g, "y", "12");
    assert_true(r.n_miss == 0 && r.g->n_node == 4);
    cd_graph_free(r.g);
    r = must("if_data", NULL);
    missed(&r, 0, "if", "depends on the data");
    missed(&r, 1, "y", "\"z\"");
    assert_true(r.n_miss == 2 && r.g->n_output == 0);
    cd_graph_free(r.g);
    r = must("function", NULL);
    has_shape(r.g, "y", "2,8");
    assert_int_equal(r.g->n_node, 4);
    assert_close(cd_graph_node_float(&r.g->node[1], "alpha", 0), 0.25, 0, 0);
    assert_close(cd_graph_node_float(&r.g->node[3], "alpha", 0), 0.5, 0, 0);
    cd_graph_free(r.g);
    r = must("defaults", NULL);
    assert_close(cd_graph_node_float(&r.g->node[0], "alpha", 0), 0.75, 0, 0);
    assert_close(cd_graph_node_float(&r.g->node[1], "alpha", 0), 0.125, 0, 0);
    cd_graph_free(r.g);
    refuse("endless", NULL, CDMPP_ERANGE, "nested");
    r = must("unsorted", NULL);
    assert_string_equal(r.g->node[0].op, "Neg");
    assert_string_equal(r.g->node[2].op, "Exp");
    cd_graph_free(r.g);
}

TEST(unsupported) {
    onnx r = must("opaque", NULL);
    missed(&r, 0, "magic", "domain");
    missed(&r, 1, "s", "domain");
    missed(&r, 2, "behind", "\"s\"");
    assert_string_equal(r.miss[0].domain, "com.me");
    assert_string_equal(r.miss[0].op, "Magic");
    has_shape(r.g, "y", "2,7");
    assert_true(r.n_miss == 3 && r.g->n_output == 1 && r.g->n_node == 2);
    cd_graph_free(r.g);
    r = must("dynamic", NULL);
    missed(&r, 0, "nz", "depends on the data");
    missed(&r, 1, "after", "\"k\"");
    missed(&r, 2, "frob", "unknown operator Frobnicate");
    missed(&r, 3, "loop", "how often");
    assert_int_equal(r.g->n_node, 1);
    cd_graph_free(r.g);
    r = must("unknown_behind", NULL); /* what only an unknown operator reads is made all the same */
    missed(&r, 0, "frob", "unknown operator Frobnicate");
    missed(&r, 1, "re", "\"z\"");
    assert_true(r.g->n_node == 1 && r.g->n_output == 1 && tensor(r.g, "y")->is_output);
    cd_graph_free(r.g);
    r = must("known_behind", NULL); /* what is stated of a result is kept */
    missed(&r, 0, "frob", "unknown operator Frobnicate");
    missed(&r, 1, "gemm", "\"u\"");
    has_shape(r.g, "y", "2,6");
    assert_true(r.g->n_node == 3 && !r.g->node[0].opaque && r.g->node[1].opaque &&
                !r.g->node[2].opaque);
    cd_graph_free(r.g);
    r = must("sequence", NULL);
    missed(&r, 0, "t", "\"s\"");
    cd_graph_free(r.g);
}

TEST(invalid) {
    refuse("cycle", NULL, CDMPP_ESCHEMA, "cycle|\"a\"");
    refuse("twice", NULL, CDMPP_ESCHEMA, "\"a\"|twice");
    refuse("nowhere", NULL, CDMPP_ESCHEMA, "ghost|not defined");
    refuse("misfit", NULL, CDMPP_ESCHEMA, "product|[2,4]|[5,8]");
    refuse("overflow", NULL, CDMPP_ERANGE, "2^48");
    refuse("overflow_inside", NULL, CDMPP_ERANGE, "tile");
    refuse("old", NULL, CDMPP_EUNSUPPORTED, "opset 6|7 or more");
    refuse("no_such_file", NULL, CDMPP_EIO, "");
}

TEST(external_files) {
    onnx r = must("external_weight", NULL);
    has_shape(r.g, "y", "2,8");
    cd_graph_free(r.g);
    refuse("external_shape", NULL, CDMPP_EIO, "re|\"to\"|data.bin");
    refuse("external_outside", NULL, CDMPP_EIO, "../data.bin");
    tmp_dir d = tmp_make();
    cdmpp_err err = {0};
    const int64_t data[] = {99, 4, 2, 3};
    char *model;
    size_t n;
    assert_ok(cd_file_read("tests/profiler/data/external_shape.onnx", 0, &model, &n, &err));
    const char *path = tmp_put(&d, "m.onnx", model, n);
    tmp_put(&d, "data.bin", data, sizeof data);
    assert_ok(cd_onnx_read(path, NULL, &r.g, &r.miss, &r.n_miss, &err));
    has_shape(r.g, "y", "4,2,3");
    cd_graph_free(r.g);
    tmp_put(&d, "data.bin", data, sizeof data - 1); /* half a number is missing */
    assert_status(cd_onnx_read(path, NULL, &r.g, &r.miss, &r.n_miss, &err), CDMPP_EIO);
    cd_mem_free(model);
    tmp_remove(&d);
}

/* ---- bytes that no writer of ONNX would write ---- */
static cdmpp_status parse(const cd_buf *b, cdmpp_err *err) {
    onnx r = {0};
    memset(err, 0, sizeof *err);
    const cdmpp_status st =
        cd_onnx_parse(b->p, b->n, "made", NULL, NULL, &r.g, &r.miss, &r.n_miss, err);
    assert_true(!st == !!r.g);
    cd_graph_free(r.g);
    return st;
}

static void varint(cd_buf *b, uint64_t v) {
    for (; v > 127; v >>= 7) cd_buf_put(b, &(char){(char)(v | 128)}, 1);
    cd_buf_put(b, &(char){(char)v}, 1);
}

static void field(cd_buf *b, unsigned number, const cd_buf *content) {
    varint(b, number << 3 | 2);
    varint(b, content->n);
    if (content->n) cd_buf_put(b, content->p, content->n);
}

TEST(damaged) {
    cdmpp_err err = {0};
    char *p;
    size_t n;
    assert_ok(cd_file_read("tests/profiler/data/fill.onnx", 0, &p, &n, &err));
    /* every prefix; the shortest end between two fields and hold no graph or opset */
    for (size_t k = 0; k < n; k++) {
        cd_buf b = {.p = p, .n = k};
        const cdmpp_status st = parse(&b, &err);
        assert_true(st == CDMPP_EPARSE || st == CDMPP_ESCHEMA || st == CDMPP_EUNSUPPORTED);
    }
    for (size_t k = 0; k < n; k++) { /* every byte changed: any answer, no crash */
        p[k] = (char)(p[k] ^ 0x55);
        parse(&(cd_buf){.p = p, .n = n}, &err);
        p[k] = (char)(p[k] ^ 0x55);
    }
    cd_mem_free(p);
    /* no graph */
    assert_int_equal(parse(&(cd_buf){.p = (char[]){"\x08\x07"}, .n = 2}, &err), CDMPP_ESCHEMA);
    tmp_dir d = tmp_make();
    onnx r;
    assert_status(
        cd_onnx_read(tmp_put(&d, "empty.onnx", "", 0), NULL, &r.g, &r.miss, &r.n_miss, &err),
        CDMPP_EPARSE);
    assert_status(cd_onnx_read(d.path, NULL, &r.g, &r.miss, &r.n_miss, &err), CDMPP_EIO);
    tmp_remove(&d);
}

/* 5,000 graphs in one another, as attributes of nodes. */
TEST(nesting) {
    cdmpp_err err;
    cd_buf b = {0}, out = {0};
    for (int k = 0; k < 5000; k++) {
        /* AttributeProto.g, NodeProto.attribute, GraphProto.node */
        static const unsigned chain[] = {6, 5, 1};
        cd_buf_clear(&out);
        field(&out, chain[k % 3], &b);
        const cd_buf swap = b;
        b = out, out = swap;
    }
    while (b.n && (b.p[0] >> 3) != 1) { /* up to a graph */
        cd_buf_clear(&out);
        field(&out, (b.p[0] >> 3) == 6 ? 5 : 1, &b);
        const cd_buf swap = b;
        b = out, out = swap;
    }
    cd_buf_clear(&out);
    field(&out, 7, &b);
    assert_int_equal(parse(&out, &err), CDMPP_ERANGE);
    assert_non_null(strstr(err.msg, "nested deeper than 64"));
    cd_buf_free(&b);
    cd_buf_free(&out);
}

/* Two bytes become a struct: a million of them. */
TEST(bomb) {
    cdmpp_err err;
    cd_buf graph = {0}, model = {0};
    const cd_buf nothing = {0};
    for (int k = 0; k < 1000000; k++) field(&graph, 5, &nothing); /* initializers */
    field(&model, 7, &graph);
    assert_int_equal(parse(&model, &err), CDMPP_ERANGE);
    assert_non_null(strstr(err.msg, "MiB"));
    cd_buf_free(&graph);
    cd_buf_free(&model);
}

/* A file of 3 GiB, most of it one weight: a hole on the disk that is never read. */
TEST(giant) {
    cdmpp_err err = {0};
    cd_buf tensor_head = {0}, graph_head = {0}, file = {0};
    const uint64_t hole = (uint64_t)3 << 30;
    onnx r = {0};
    tmp_dir d = tmp_make();
    /* dims, float, name, raw_data */
    cd_buf_put(&tensor_head, "\x08\x80\x80\x80\x80\x03\x10\x01\x42\x01w\x4a", 12);
    varint(&tensor_head, hole);
    varint(&graph_head, 5 << 3 | 2);
    varint(&graph_head, tensor_head.n + hole);
    cd_buf_put(&file, "\x42\x02\x10\x0d\x3a", 5); /* opset 13; graph */
    varint(&file, graph_head.n + tensor_head.n + hole);
    cd_buf_put(&file, graph_head.p, graph_head.n);
    cd_buf_put(&file, tensor_head.p, tensor_head.n);
    const char *path = tmp_put(&d, "giant.onnx", file.p, file.n);
    assert_int_equal(truncate(path, (off_t)(file.n + hole)), 0);
    assert_ok(cd_onnx_read(path, NULL, &r.g, &r.miss, &r.n_miss, &err));
    has_shape(r.g, "w", "805306368");
    cd_graph_free(r.g);
    assert_int_equal(truncate(path, (off_t)(file.n + hole - 1)), 0);
    assert_status(cd_onnx_read(path, NULL, &r.g, &r.miss, &r.n_miss, &err), CDMPP_EPARSE);
    tmp_remove(&d);
    cd_buf_free(&tensor_head);
    cd_buf_free(&graph_head);
    cd_buf_free(&file);
}

/* Every allocation refused in turn: an error, and nothing is left behind. */
TEST(refused) {
    static const char *const names[] = {"whole",  "function",  "if_known", "loop_known",
                                        "opaque", "constants", "defaults"};
    static const char *const dims[] = {"height=16", "batch=5"};
    for (size_t i = 0; i < 6; i++) {
        const cd_onnx_options o = {.dim = dims, .n_dim = i == 0 ? 2 : 0};
        FAULT_SWEEP(f, 1) {
            onnx r;
            f.st = open_with(&r, names[i], &o);
            cd_graph_free(r.g);
        }
    }
}

/* The graphs of the reference set: all of them, nothing unsupported (shapes and operations:
 * scripts/check_onnx.sh). */
TEST(reference) {
    cd_arena a = {0};
    cdmpp_err err = {0};
    const char *const *path;
    char folder[512];
    size_t n;
    const char *root = getenv("CDMPP_DATA");
    if (!root) skip();
    snprintf(folder, sizeof folder, "%s/onnx", root);
    assert_ok(cd_file_list(&a, folder, NULL, NULL, &path, &n, &err));
    size_t seen = 0;
    for (size_t i = 0; i < n; i++) {
        onnx r;
        if (!strstr(path[i], ".onnx")) continue;
        assert_ok(cd_onnx_read(path[i], NULL, &r.g, &r.miss, &r.n_miss, &err));
        assert_true(r.n_miss == 0 && r.g->n_input == 1 && r.g->n_output >= 1);
        cd_graph_free(r.g);
        seen++;
    }
    assert_int_equal(seen, 27);
    cd_arena_free(&a);
}

TESTS(NULL, NULL, whole_models, roles, batches, contents, flow, unsupported, invalid,
      external_files, damaged, nesting, bomb, giant, refused, reference)
