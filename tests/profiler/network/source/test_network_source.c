/* A network by its name: the zoo's or a file's, as it is or as one iteration of its training; what could not be read, as a list. */
#include <string.h>

#include "check.h"
#include "profiler/network/source/source.h"
#include "tmp.h"

static cdmpp_err err;

TEST(names_of_files) {
    tmp_dir dir = tmp_make();
    assert_true(cd_network_source_is_file(tmp_put(&dir, "plain", "x", 1)));
    assert_false(cd_network_source_is_file(dir.path)); /* a folder is none, though its name has a '/' */
    assert_true(cd_network_source_is_file("nowhere/resnet-18") && cd_network_source_is_file("x.onnx"));
    assert_true(!cd_network_source_is_file("resnet-18") && !cd_network_source_is_file(".onnx") && !cd_network_source_is_file("x.onnx2"));
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
    static const cd_onnx_miss miss[] = {{.node = "n1", .op = "Odd \"one\"", .domain = "com.example", .reason = "why"}, {.node = "n2", .op = "Even", .domain = "", .reason = "because"}};
    const cd_onnx_miss *none;
    cd_workload_options w = {0};
    cd_buf b = {0};
    cd_graph *g;
    uint32_t n;
    cd_network_source_put_misses(&b, miss, 2);
    assert_string_equal(b.p, "\"unsupported\":[{\"name\":\"n1\",\"op\":\"Odd \\\"one\\\"\",\"domain\":\"com.example\",\"reason\":\"why\"},"
                             "{\"name\":\"n2\",\"op\":\"Even\",\"domain\":\"\",\"reason\":\"because\"}]");
    cd_buf_clear(&b);
    cd_network_source_put_misses(&b, NULL, 0);
    assert_string_equal(b.p, "\"unsupported\":[]");
    cd_buf_free(&b);
    assert_ok(cd_network_source_read(&(cd_network_source){.name = "gcn", .size = 64}, &g, &none, &n, &err));
    assert_ok(cd_network_source_missing(g, miss, 2, &w, &err));
    assert_int_equal(w.n_missing, 2);
    for (int k = 0; k < 2; k++) assert_true(w.missing[k].op == miss[k].op && w.missing[k].node == miss[k].node && w.missing[k].reason == miss[k].reason);
    cd_graph_free(g);
}

TESTS(NULL, NULL, names_of_files, a_network_of_the_zoo, what_could_not_be_read)
