/* Rules of a back end: their file, and what they do to the groups of a network. */
#include <string.h>

#include "fault.h"
#include "made_graph.h"
#include "profiler/network/workload/workload.h"
#include "profiler/network/zoo/zoo.h"
#include "tmp.h"

static cdmpp_err err;

/* A file with these rules, read; free it. */
static cd_fusion_rules rules(const char *list) {
    tmp_dir d = tmp_make();
    char text[2048];
    cd_fusion_rules r;
    const int n =
        snprintf(text, sizeof text, "{\"schema\":\"cdmpp.fusion_rules/1\",\"rules\":[%s]}", list);
    assert_ok(cd_fusion_rules_read(tmp_put(&d, "r.json", text, (size_t)n), &r, &err));
    tmp_remove(&d);
    return r;
}

/* Groups of the graph under the rules (NULL: TVM's), and the rules that were missing:
 * "Conv+Relu,...". */
static uint32_t groups(const cd_graph *g, const char *list, char *open, size_t n_open) {
    cd_fusion_rules r = {0};
    cd_workload *w;
    if (list) r = rules(list);
    assert_ok(cd_workload_build(
        g, &(cd_workload_options){.layout = CD_WORKLOAD_LAYOUT_NCHW, .rules = list ? &r : NULL}, &w,
        &err));
    const uint32_t n = w->n_group;
    *open = 0;
    for (uint32_t k = 0; k < w->open.n; k++)
        snprintf(open + strlen(open), n_open - strlen(open), "%s%s+%s", k ? "," : "",
                 w->open.rule[k].first, w->open.rule[k].second);
    cd_workload_free(w);
    cd_fusion_rules_free(&r);
    return n;
}

/* Conv with a bias, batch norm, Relu. */
static cd_graph *conv_bn_relu(void) {
    gm m = {0};
    assert_ok(cd_graph_new("n", &m.g, &err));
    uint32_t x = gm_add(&m, "Conv", "", gm_x(&m, 1, 8, 6, 6), gm_w(&m, 8, 8, 1, 1), gm_w(&m, 8));
    x = gm_add(&m, "BatchNormalization", "", x, gm_w(&m, 8), gm_w(&m, 8), gm_w(&m, 8), gm_w(&m, 8));
    x = gm_add(&m, "Relu", "", x);
    assert_ok(m.st);
    assert_ok(cd_graph_result(m.g, x, &err));
    return m.g;
}

#define RULE(a, b, f) "{\"first\":\"" a "\",\"second\":\"" b "\",\"fused\":" f "}"

TEST(test_pairs) {
    cd_graph *g = conv_bn_relu();
    char open[256];
    const uint32_t all = groups(g, NULL, open, sizeof open);
    assert_int_equal(groups(g,
                            RULE("Conv", "BatchNormalization",
                                 "true") "," RULE("BatchNormalization", "Relu", "true"),
                            open, sizeof open),
                     all);
    assert_string_equal(open, "");
    assert_int_equal(groups(g,
                            RULE("Conv", "BatchNormalization",
                                 "true") "," RULE("BatchNormalization", "Relu", "false"),
                            open, sizeof open),
                     all + 1);
    assert_string_equal(open, "");
    assert_int_equal(groups(g,
                            RULE("Conv", "BatchNormalization",
                                 "false") "," RULE("BatchNormalization", "Relu", "true"),
                            open, sizeof open),
                     all + 1);
    assert_int_equal(groups(g,
                            RULE("Conv", "BatchNormalization",
                                 "false") "," RULE("BatchNormalization", "Relu", "false"),
                            open, sizeof open),
                     all + 2);
    cd_graph_free(g);
}

/* What no rule speaks of stays apart and is listed, null as well as no rule. */
TEST(test_not_known) {
    cd_graph *g = conv_bn_relu();
    char open[256];
    const uint32_t all = groups(g, NULL, open, sizeof open);
    assert_int_equal(groups(g, "", open, sizeof open), all + 2);
    assert_string_equal(open, "Conv+BatchNormalization,BatchNormalization+Relu");
    assert_int_equal(groups(g,
                            RULE("Conv", "BatchNormalization",
                                 "true") "," RULE("BatchNormalization", "Relu", "null"),
                            open, sizeof open),
                     all + 1);
    assert_string_equal(open, "BatchNormalization+Relu");
    cd_graph_free(g);
}

/* A rule with `before` counts only where that operator is in the group, and stands above the
 * pair's. */
TEST(test_chains) {
    cd_graph *g = conv_bn_relu();
    char open[256];
    const uint32_t all = groups(g, NULL, open, sizeof open);
#define CHAIN(f)                                                                                   \
    ",{\"before\":\"Conv\",\"first\":\"BatchNormalization\",\"second\":\"Relu\",\"fused\":" f "}"
    assert_int_equal(groups(g,
                            RULE("Conv", "BatchNormalization", "true") "," RULE(
                                "BatchNormalization", "Relu", "false") CHAIN("true"),
                            open, sizeof open),
                     all);
    assert_int_equal(groups(g,
                            RULE("Conv", "BatchNormalization", "true") "," RULE(
                                "BatchNormalization", "Relu", "true") CHAIN("false"),
                            open, sizeof open),
                     all + 1);
    assert_int_equal(groups(g,
                            RULE("Conv", "BatchNormalization", "false") "," RULE(
                                "BatchNormalization", "Relu", "true") CHAIN("false"),
                            open, sizeof open),
                     all + 1);
    assert_int_equal(groups(g,
                            RULE("Conv", "BatchNormalization", "true") "," RULE(
                                "BatchNormalization", "Relu", "true") CHAIN("null"),
                            open, sizeof open),
                     all);
    cd_graph_free(g);
}

/* Relu is read by Sigmoid and by the Add behind it: it needs the rule for several readers, too. */
TEST(test_several_readers) {
    gm m = {0};
    char open[256];
    assert_ok(cd_graph_new("n", &m.g, &err));
    const uint32_t r = gm_add(&m, "Relu", "", gm_x(&m, 4, 8));
    assert_ok(cd_graph_result(m.g, gm_add(&m, "Add", "", gm_add(&m, "Sigmoid", "", r), r), &err));
#define PAIRS                                                                                      \
    RULE("Relu", "Sigmoid", "true")                                                                \
    "," RULE("Relu", "Add", "true") "," RULE("Sigmoid", "Add", "true")
    assert_int_equal(groups(m.g, NULL, open, sizeof open), 1);
    assert_int_equal(groups(m.g, PAIRS, open, sizeof open), 2);
    assert_string_equal(open, "Relu+*");
    assert_int_equal(groups(m.g, PAIRS "," RULE("Relu", "*", "true"), open, sizeof open), 1);
    assert_string_equal(open, "");
    assert_int_equal(groups(m.g, PAIRS "," RULE("Relu", "*", "false"), open, sizeof open), 2);
    assert_string_equal(open, "");
    assert_int_equal(groups(m.g,
                            RULE("Relu", "*", "true") "," PAIRS "," RULE("Sigmoid", "Add", "false"),
                            open, sizeof open),
                     3);
    cd_graph_free(m.g);
}

/* A reader behind a view is a reader. */
TEST(test_readers_behind_views) {
    gm m = {0};
    char open[256];
    assert_ok(cd_graph_new("n", &m.g, &err));
    const uint32_t r = gm_add(&m, "Relu", "", gm_x(&m, 4, 8)), flat = gm_add(&m, "Flatten", "", r);
    assert_ok(
        cd_graph_result(m.g, gm_add(&m, "Add", "", gm_add(&m, "Sigmoid", "", flat), flat), &err));
    assert_int_equal(groups(m.g, PAIRS "," RULE("Relu", "*", "false"), open, sizeof open), 2);
    assert_int_equal(groups(m.g, PAIRS "," RULE("Relu", "*", "true"), open, sizeof open), 1);
    cd_graph_free(m.g);
}

TEST(test_names) {
    gm m = {0};
    assert_ok(cd_graph_new("n", &m.g, &err));
    const uint32_t x = gm_x(&m, 1, 8, 6, 6);
    gm_add(&m, "Conv", "group=8", x, gm_w(&m, 8, 1, 3, 3));
    gm_add(&m, "Conv", "group=4", x, gm_w(&m, 8, 2, 3, 3));
    gm_add(&m, "Conv", "", gm_x(&m, 1, 1, 6, 6), gm_w(&m, 8, 1, 3, 3));
    gm_add(&m, "Relu", "", x);
    static const char *const want[] = {"DepthwiseConv", "Conv", "Conv", "Relu"};
    for (uint32_t k = 0; k < 4; k++)
        assert_string_equal(cd_fusion_rules_name(m.g, &m.g->node[k]), want[k]);
    cd_graph_free(m.g);
}

/* Rules that allow all pairs of a network leave TVM's groups as they are. */
TEST(test_all_allowed) {
    static const char *const names[] = {"mobilenet-v3", "squeezenet-1.1", "bert-tiny",
                                        "densenet-121"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        cd_graph *g;
        cd_workload *tvm, *w = NULL;
        cd_fusion_rules r = {0};
        assert_ok(cd_zoo_build(names[k], &(cd_zoo_options){0}, &g, &err));
        assert_ok(cd_workload_build(g, NULL, &tvm, &err));
        /* allow what was missing, until nothing is */
        for (uint32_t open = 1; open; open = w->open.n) {
            for (uint32_t i = 0; w && i < w->open.n; i++)
                assert_ok(cd_fusion_rules_add(&r, NULL, w->open.rule[i].first,
                                              w->open.rule[i].second, CD_FUSION_FUSED, &err));
            cd_workload_free(w);
            assert_ok(cd_workload_build(g, &(cd_workload_options){.rules = &r}, &w, &err));
        }
        assert_true(r.n >= (k == 1 ? 1 : 3)); /* squeezenet: Conv and Relu */
        assert_int_equal(w->n_group, tvm->n_group);
        assert_int_equal(w->n_task, tvm->n_task);
        cd_workload_free(w);
        cd_workload_free(tvm);
        cd_fusion_rules_free(&r);
        cd_graph_free(g);
    }
}

TEST(test_bad_files) {
    static const char *const text[] = {
        "{",
        "[]",
        "{\"schema\":\"other\",\"rules\":[]}",
        "{\"schema\":\"cdmpp.fusion_rules/1\"}",
        "{\"schema\":\"cdmpp.fusion_rules/1\",\"rules\":[3]}",
        "{\"schema\":\"cdmpp.fusion_rules/"
        "1\",\"rules\":[{\"first\":\"Conv\",\"second\":\"Relu\"}]}",
        "{\"schema\":\"cdmpp.fusion_rules/"
        "1\",\"rules\":[{\"first\":\"Conv\",\"second\":\"Relu\",\"fused\":1}]}",
        "{\"schema\":\"cdmpp.fusion_rules/"
        "1\",\"rules\":[{\"first\":\"\",\"second\":\"Relu\",\"fused\":true}]}",
        "{\"schema\":\"cdmpp.fusion_rules/"
        "1\",\"rules\":[{\"first\":\"Conv\",\"second\":\"Relu\",\"fused\":true,\"before\":7}]}"};
    static const char *const key[] = {"",
                                      "",
                                      "",
                                      "rules",
                                      "rules[0]",
                                      "rules[0].fused",
                                      "rules[0].fused",
                                      "rules[0].first",
                                      "rules[0].before"};
    tmp_dir d = tmp_make();
    for (size_t k = 0; k < sizeof text / sizeof *text; k++) {
        cd_fusion_rules r;
        err = (cdmpp_err){0};
        assert_int_not_equal(
            cd_fusion_rules_read(tmp_put(&d, "r.json", text[k], strlen(text[k])), &r, &err),
            CDMPP_OK);
        assert_non_null(strstr(err.path, "r.json"));
        if (*key[k] && !strstr(err.key, key[k])) fail_msg("%s: key %s", text[k], err.key);
        cd_fusion_rules_free(&r);
    }
    tmp_remove(&d);
}

TEST(test_faults) {
    tmp_dir d = tmp_make();
    const char *text = "{\"schema\":\"cdmpp.fusion_rules/1\",\"rules\":[" RULE(
                   "Conv", "BatchNormalization", "true") "]}",
               *path = tmp_put(&d, "r.json", text, strlen(text));
    cd_graph *g = conv_bn_relu();
    FAULT_SWEEP(f, 3) {
        cd_fusion_rules r;
        cd_workload *w = NULL;
        f.st = cd_fusion_rules_read(path, &r, &f.err);
        if (!f.st) f.st = cd_workload_build(g, &(cd_workload_options){.rules = &r}, &w, &f.err);
        cd_workload_free(w);
        cd_fusion_rules_free(&r);
    }
    cd_graph_free(g);
    tmp_remove(&d);
}

TESTS(NULL, NULL, test_pairs, test_not_known, test_chains, test_several_readers,
      test_readers_behind_views, test_names, test_all_allowed, test_bad_files, test_faults)
