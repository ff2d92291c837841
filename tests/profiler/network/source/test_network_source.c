/* A network by its name: the zoo's or a file's, as it is or as one iteration of its training; what
 * could not be read, as a list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io/io.h"
#include "check.h"
#include "fault.h"
#include "profiler/network/source/source.h"
#include "tmp.h"

static cdmpp_err err;

TEST(names_of_files) {
    tmp_dir dir = tmp_make();
    assert_true(cd_network_source_is_file(tmp_put(&dir, "plain", "x", 1)));
    /* a folder is none, though its name has a '/' */
    assert_false(cd_network_source_is_file(dir.path));
    assert_true(cd_network_source_is_file("nowhere/resnet-18") &&
                cd_network_source_is_file("x.onnx"));
    assert_true(!cd_network_source_is_file("resnet-18") && !cd_network_source_is_file(".onnx") &&
                !cd_network_source_is_file("x.onnx2"));
    tmp_remove(&dir);
}

/* The iteration is another graph, of the network's results and more. */
TEST(a_network_of_the_zoo) {
    const cd_onnx_miss *miss;
    cd_graph *g, *t;
    uint32_t n = 9;
    cd_network_source s = {.kind = CD_NETWORK_SOURCE_ZOO, .name = "gcn", .batch = 3, .size = 64};
    assert_ok(cd_network_source_read(&s, &g, &miss, &n, &err));
    assert_true(n == 0 && g->n_output == 1);
    s.training = true;
    assert_ok(cd_network_source_read(&s, &t, &miss, &n, &err));
    assert_true(n == 0 && t->n_node > 2 * g->n_node && t->n_output > g->n_output);
    assert_string_equal(t->tensor[t->output[0]].name, g->tensor[g->output[0]].name);
    assert_true(cd_graph_flop(t) > 1.5 * cd_graph_flop(g));
    cd_graph_free(g);
    cd_graph_free(t);
    s.name = "nobody";
    assert_status(cd_network_source_read(&s, &g, &miss, &n, &err), CDMPP_ESCHEMA);
    s = (cd_network_source){.kind = CD_NETWORK_SOURCE_ONNX, .name = "/nowhere/x.onnx"};
    assert_status(cd_network_source_read(&s, &g, &miss, &n, &err), CDMPP_EIO);
}

TEST(what_could_not_be_read) {
    static const cd_onnx_miss miss[] = {
        {.node = "n1", .op = "Odd \"one\"", .domain = "com.example", .reason = "why"},
        {.node = "n2", .op = "Even", .domain = "", .reason = "because"}};
    const cd_onnx_miss *none;
    cd_workload_options w = {0};
    cd_buf b = {0};
    cd_graph *g;
    uint32_t n;
    cd_network_source_put_misses(&b, miss, 2);
    assert_string_equal(
        b.p, "\"unsupported\":[{\"name\":\"n1\",\"op\":\"Odd "
             "\\\"one\\\"\",\"domain\":\"com.example\",\"reason\":\"why\"},"
             "{\"name\":\"n2\",\"op\":\"Even\",\"domain\":\"\",\"reason\":\"because\"}]");
    cd_buf_clear(&b);
    cd_network_source_put_misses(&b, NULL, 0);
    assert_string_equal(b.p, "\"unsupported\":[]");
    cd_buf_free(&b);
    assert_ok(cd_network_source_read(&(cd_network_source){.name = "gcn", .size = 64}, &g, &none, &n,
                                     &err));
    assert_ok(cd_network_source_missing(g, miss, 2, &w, &err));
    assert_int_equal(w.n_missing, 2);
    for (int k = 0; k < 2; k++)
        assert_true(w.missing[k].op == miss[k].op && w.missing[k].node == miss[k].node &&
                    w.missing[k].reason == miss[k].reason);
    cd_graph_free(g);
}

/* Where a network comes from, in OpBench's words. */
TEST(words_of_sources) {
    static const struct {
        int said;
        const char *name;
        int kind; /* -1: refused */
    } t[] = {
        {CD_NETWORK_SOURCE_ZOO, NULL, CD_NETWORK_SOURCE_ZOO},
        {CD_NETWORK_SOURCE_ZOO, "x.onnx", CD_NETWORK_SOURCE_ONNX},
        {CD_NETWORK_SOURCE_ONNX, "x", CD_NETWORK_SOURCE_ONNX},
        {CD_NETWORK_SOURCE_ZOO, "https://h/x.onnx", CD_NETWORK_SOURCE_ONNX},
        {CD_NETWORK_SOURCE_SIMPLE, "matmul", CD_NETWORK_SOURCE_ZOO},
        {CD_NETWORK_SOURCE_SIMPLE, "resnet-18", -1},
        {CD_NETWORK_SOURCE_SIMPLE, "x.onnx", -1},
        {CD_NETWORK_SOURCE_TRANSFORMERS, "bert", CD_NETWORK_SOURCE_ZOO},
        {CD_NETWORK_SOURCE_TRANSFORMERS, "dpn68", CD_NETWORK_SOURCE_ZOO},
        {CD_NETWORK_SOURCE_TRANSFORMERS, "vgg-16", -1},
        {CD_NETWORK_SOURCE_TRANSFORMERS, "nobody", CD_NETWORK_SOURCE_ZOO},
        {CD_NETWORK_SOURCE_LOCAL, "mobilenet", CD_NETWORK_SOURCE_ZOO},
        {CD_NETWORK_SOURCE_URL, "resnet-18", -1},
        {CD_NETWORK_SOURCE_URL, "http://h/x", CD_NETWORK_SOURCE_ONNX},
        {CD_NETWORK_SOURCE_REMOTE, "file:///x", CD_NETWORK_SOURCE_ONNX},
        {CD_NETWORK_SOURCE_URL, NULL, CD_NETWORK_SOURCE_ONNX},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        int kind = 9;
        const cdmpp_status st = cd_network_source_kind(t[k].said, t[k].name, &kind, &err);
        if (t[k].kind < 0) assert_status(st, CDMPP_EUSAGE);
        else if (st || kind != t[k].kind)
            fail_msg("%d %s: status %d, kind %d", t[k].said, t[k].name ? t[k].name : "", (int)st,
                     kind);
    }
}

/* ---- addresses: a curl of our own fetches ---- */

static const char *fetched(const char *address, cd_arena *a) {
    const char *path = NULL;
    return cd_network_source_fetch(a, address, &path, &err) ? NULL : path;
}

/* What stands in the file at `path`. */
static bool holds(const char *path, const char *text) {
    char *data;
    size_t n;
    assert_ok(cd_file_read(path, 1 << 20, &data, &n, &err));
    const bool same = n == strlen(text) && !memcmp(data, text, n);
    cd_mem_free(data);
    return same;
}

static void put_program(tmp_dir *dir, const char *name, const char *text) {
    assert_int_equal(chmod(tmp_put(dir, name, text, strlen(text)), 0755), 0);
}

TEST(addresses) {
    tmp_dir dir = tmp_make();
    cd_arena a = {0};
    char *before = strdup(getenv("PATH")), path[2048];
    assert_int_equal(setenv("XDG_CACHE_HOME", dir.path, 1), 0);
    snprintf(path, sizeof path, "%s:%s", dir.path, before);
    assert_int_equal(setenv("PATH", path, 1), 0);
    assert_string_equal(fetched("file:///a/b.onnx", &a), "/a/b.onnx");
    /* It counts its calls; the output is behind -o, the address is the last word. */
    put_program(&dir, "curl",
                "#!/bin/sh\necho x >>\"$XDG_CACHE_HOME/calls\"\ncase $6 in *bad*) echo 'curl: (22) "
                "not found'; exit 22;; esac\nprintf 'of %s' \"$6\" >\"$5\"\n");
    const char *one = fetched("https://h/n/net.onnx?raw=1", &a);
    assert_true(one && holds(one, "of https://h/n/net.onnx?raw=1") && strstr(one, "/net.onnx"));
    const char *two = fetched("https://h/m/net.onnx?raw=1", &a);
    assert_true(two && strcmp(one, two) && holds(two, "of https://h/m/net.onnx?raw=1"));
    assert_true(fetched("https://h/n/net.onnx?raw=1", &a) != NULL);
    snprintf(path, sizeof path, "%s/calls", dir.path);
    assert_true(holds(path, "x\nx\n")); /* the first address was not fetched again */
    assert_null(fetched("https://h/bad.onnx", &a));
    assert_true(err.code == CDMPP_EIO && strstr(err.msg, "exit status 22") &&
                strstr(err.msg, "not found"));
    FAULT_SWEEP(f, 1) {
        const char *to;
        cd_arena b = {0};
        f.st = cd_network_source_fetch(&b, "https://h/n/net.onnx?raw=1", &to, &f.err);
        cd_arena_free(&b);
    }
    FAULT_SWEEP(f, 3) {
        const char *to;
        cd_arena b = {0};
        f.st = cd_network_source_fetch(&b, "https://h/o/net.onnx", &to, &f.err);
        cd_arena_free(&b);
    }
    assert_int_equal(setenv("PATH", "/nowhere", 1), 0);
    assert_null(fetched("https://h/other.onnx", &a));
    assert_true(err.code == CDMPP_EBACKEND && strstr(err.msg, "curl or wget"));
    assert_int_equal(setenv("PATH", before, 1), 0);
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    free(before);
    cd_arena_free(&a);
    tmp_remove(&dir);
}

TEST(archives) {
    tmp_dir dir = tmp_make();
    cd_arena a = {0};
    char line[3000], address[1500];
    assert_int_equal(setenv("XDG_CACHE_HOME", dir.path, 1), 0);
    (void)tmp_put(&dir, "x.onnx", "a network", 9);
    (void)tmp_put(&dir, "x.pb", "its input", 9);
    snprintf(line, sizeof line,
             "cd '%s' && mkdir net && mv x.* net && tar -czf one.tar.gz net && cp net/x.onnx "
             "net/y.onnx && tar -czf two.tgz net",
             dir.path);
    assert_int_equal(system(line), 0);
    snprintf(address, sizeof address, "file://%s/one.tar.gz", dir.path);
    const char *path = fetched(address, &a);
    assert_true(path && holds(path, "a network"));
    snprintf(address, sizeof address, "file://%s/two.tgz", dir.path);
    assert_null(fetched(address, &a));
    assert_true(err.code == CDMPP_EIO && strstr(err.msg, "2 files *.onnx"));
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    cd_arena_free(&a);
    tmp_remove(&dir);
}

/* ---- sizes ---- */

TEST(ranges) {
    cd_size_range r;
    assert_true(cd_network_sizes_parse("1..64", &r) && r.low == 1 && r.high == 64 &&
                r.n == CD_SIZE_RANGE_SIZES);
    assert_true(cd_network_sizes_parse("16..512:7", &r) && r.low == 16 && r.high == 512 &&
                r.n == 7);
    static const char *const not [] = {"", "1", "1..", "..4", "1..4:", "1..4:3x", "a..b", "1.4"};
    for (size_t k = 0; k < sizeof not / sizeof *not ; k++)
        assert_false(cd_network_sizes_parse(not [k], &r));
}

TEST(sizes_of_a_range) {
    static const char *dim[] = {"batch=2", "seq=1..64", "n=1..8"};
    cd_arena a = {0};
    cd_network_sizes z;
    cd_network_source s = {.kind = CD_NETWORK_SOURCE_ONNX, .dim = dim, .n_dim = 2};
    assert_ok(cd_network_sizes_read(&a, NULL, &(cd_texts){2, dim}, &z, &err));
    static const int64_t want[] = {1, 3, 8, 23, 64};
    assert_string_equal(z.over, "seq");
    assert_true(z.place == 1 && z.n == 5 && !memcmp(z.size, want, sizeof want));
    assert_ok(cd_network_sizes_at(&z, &a, 23, &s, &err));
    assert_string_equal(s.dim[0], "batch=2");
    assert_string_equal(s.dim[1], "seq=23");
    assert_ok(cd_network_sizes_read(&a, "1..4:3", &(cd_texts){1, dim}, &z, &err));
    assert_string_equal(z.over, "batch");
    s = (cd_network_source){.kind = CD_NETWORK_SOURCE_ONNX, .dim = dim, .n_dim = 1};
    assert_ok(cd_network_sizes_at(&z, &a, 2, &s, &err));
    assert_true(s.batch == 2 && s.dim == dim && z.place == SIZE_MAX && z.n == 3 && z.size[1] == 2);
    assert_ok(cd_network_sizes_read(&a, "4", &(cd_texts){1, dim}, &z, &err));
    assert_null(z.over);
    assert_status(cd_network_sizes_read(&a, NULL, &(cd_texts){3, dim}, &z, &err), CDMPP_EUSAGE);
    assert_status(cd_network_sizes_read(&a, "1..4", &(cd_texts){2, dim}, &z, &err), CDMPP_EUSAGE);
    /* two sizes */
    assert_status(cd_network_sizes_read(&a, "1..2", &(cd_texts){0, NULL}, &z, &err), CDMPP_EUSAGE);
    assert_status(cd_network_sizes_read(&a, "1..64:2", &(cd_texts){0, NULL}, &z, &err),
                  CDMPP_EUSAGE);
    assert_status(cd_network_sizes_read(&a, "0..64", &(cd_texts){0, NULL}, &z, &err), CDMPP_EUSAGE);
    cd_arena_free(&a);
}

/* A network of the zoo has no names of dimensions but the batch. */
TEST(sizes_of_the_zoo) {
    static const char *batch[] = {"batch=1..8:3"}, *other[] = {"seq=1..8"};
    cd_arena a = {0};
    cd_network_sizes z;
    cd_network_source s = {.kind = CD_NETWORK_SOURCE_ZOO, .name = "gcn", .dim = batch, .n_dim = 1};
    assert_ok(cd_network_sizes_read(&a, NULL, &(cd_texts){1, batch}, &z, &err));
    assert_ok(cd_network_sizes_at(&z, &a, 8, &s, &err));
    assert_true(s.batch == 8 && !s.n_dim);
    assert_ok(cd_network_sizes_read(&a, NULL, &(cd_texts){1, other}, &z, &err));
    s.dim = other, s.n_dim = 1;
    assert_status(cd_network_sizes_at(&z, &a, 8, &s, &err), CDMPP_EUSAGE);
    cd_arena_free(&a);
}

TEST(sizes_without_memory) {
    static const char *dim[] = {"batch=2", "seq=1..64"};
    FAULT_SWEEP(f, 1) {
        cd_arena a = {0};
        cd_network_sizes z;
        cd_network_source s = {.kind = CD_NETWORK_SOURCE_ONNX, .dim = dim, .n_dim = 2};
        f.st = cd_network_sizes_read(&a, NULL, &(cd_texts){2, dim}, &z, &f.err);
        if (!f.st) f.st = cd_network_sizes_at(&z, &a, 23, &s, &f.err);
        cd_arena_free(&a);
    }
}

TESTS(NULL, NULL, names_of_files, a_network_of_the_zoo, what_could_not_be_read, words_of_sources,
      addresses, archives, ranges, sizes_of_a_range, sizes_of_the_zoo, sizes_without_memory)
