/* Rules on networks of the zoo: names, groups, matches, contradictions; what is not supported never
 * leaves the host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "made_rules.h"
#include "predictor/partition/offload/offload_match_internal.h"

/* ---- operators ---- */

static uint32_t find(const cd_offload_ops *o, const char *type, uint32_t nth) {
    for (uint32_t k = 0; k < o->graph.n_op; k++)
        if (!strcmp(o->graph.op[k].type, type) && !nth--) return k;
    fail_msg("no %s", type);
    return 0;
}

static void has(const cd_offload_ops *o, uint32_t op, const char *key, const char *value) {
    const cd_offload_op *x = &o->graph.op[op];
    const char *is = NULL;
    for (uint32_t i = 0; i < x->n_attr && !is; i++)
        if (!strcmp(x->attr[i].key, key)) is = x->attr[i].value;
    if (!is || strcmp(is, value))
        fail_msg("%s (%s): %s is %s, expected %s", o->graph.op[op].name, o->graph.op[op].type, key,
                 is ? is : "absent", value);
}

/* Every operator reads earlier ones; groups and operators name each other; what runs is
 * somewhere. */
static void laws(const cd_network_loaded *l, const cd_offload_ops *o) {
    for (uint32_t k = 0; k < o->graph.n_op; k++) {
        const cd_offload_op *x = &o->graph.op[k];
        for (uint32_t i = 0; i < x->n_in; i++) assert_true(o->graph.in[x->first + i] < k);
        assert_true(x->name[0] && x->type[0]);
        for (uint32_t i = 0; i < o->of_n[k]; i++) {
            const uint32_t g = o->of[o->of_first[k] + i];
            bool back = false;
            for (uint32_t j = 0; j < o->in_n[g]; j++) back = back || o->in[o->in_first[g] + j] == k;
            assert_true(back);
        }
        if (o->node[k] != CD_GRAPH_NONE)
            assert_true(l->work->node[o->node[k]].state == CD_WORKLOAD_NODE_TASK ||
                        l->work->node[o->node[k]].state == CD_WORKLOAD_NODE_UNSUPPORTED);
    }
    for (uint32_t g = 0; g < l->work->n_group; g++) assert_true(o->in_n[g] > 0);
    for (uint32_t n = 0; n < l->work->n_node; n++) {
        bool is = false;
        for (uint32_t k = 0; k < o->graph.n_op; k++) is = is || (o->node[k] == n && o->of_n[k]);
        if (l->work->node[n].state == CD_WORKLOAD_NODE_TASK) assert_true(is);
    }
}

static void test_names(void **state) {
    (void)state;
    static const char *const net[] = {"resnet-18",    "squeezenet-1.1",
                                      "mobilenet-v2", "bert-tiny",
                                      "lstm",         "tests/profiler/data/opaque.onnx"};
    for (size_t k = 0; k < sizeof net / sizeof *net; k++) {
        cd_network_loaded l = load(net[k]);
        cd_arena a = {0};
        cd_offload_ops o;
        assert_ok(cd_offload_ops_list(&l, &a, &o, &err));
        laws(&l, &o);
        if (k == 0) {
            const uint32_t c = find(&o, "conv2d", 0), bn = find(&o, "batch_norm", 0);
            has(&o, c, "kernel", "7"), has(&o, c, "stride", "2"), has(&o, c, "in_c", "3"),
                has(&o, c, "c", "64"), has(&o, c, "h", "112"), has(&o, c, "dtype", "float32");
            has(&o, c, "groups", "1"), has(&o, c, "mac", "1"), has(&o, c, "shape", "1x64x112x112"),
                has(&o, c, "pad", "3"), has(&o, c, "bias", "0");
            assert_int_equal(o.graph.op[bn].n_in, 1);
            assert_int_equal(o.graph.in[o.graph.op[bn].first], c);
            has(&o, bn, "mac", "0");
            has(&o, find(&o, "max_pool2d", 0), "kernel", "3");
            find(&o, "layout_transform", 0);
            has(&o, find(&o, "dense", 0), "k", "512"), has(&o, find(&o, "dense", 0), "n", "1000");
            assert_string_equal(o.graph.op[find(&o, "bias_add", 0)].name +
                                    strlen(o.graph.op[find(&o, "dense", 0)].name),
                                ".bias");
        }
        if (k == 1) { /* a bias is an operator of its own, and who follows reads it */
            const uint32_t c = find(&o, "conv2d", 0), b = find(&o, "bias_add", 0),
                           r = find(&o, "relu", 0);
            has(&o, c, "bias", "1");
            assert_true(o.graph.in[o.graph.op[b].first] == c &&
                        o.graph.in[o.graph.op[r].first] == b && b == c + 1);
        }
        if (k == 2) has(&o, find(&o, "conv2d", 1), "depthwise", "1"), find(&o, "clip", 0);
        if (k == 3) {
            has(&o, find(&o, "dense", 0), "weights", "1"),
                has(&o, find(&o, "batch_matmul", 0), "weights", "0"), find(&o, "layer_norm", 0),
                find(&o, "take", 0);
            has(&o, find(&o, "transpose", 0), "perm", "0x2x1x3");
        }
        if (k == 4)
            has(&o, find(&o, "lstm", 0), "mac", "1"), assert_true(o.of_n[find(&o, "lstm", 0)] > 10);
        if (k == 5) assert_int_equal(o.of_n[find(&o, "magic", 0)], 1);
        cd_arena_free(&a);
        cd_network_load_free(&l);
    }
}

static uint32_t weight(cd_graph *g, const char *name, cd_dtype t, cd_graph_shape s) {
    uint32_t at;
    assert_ok(cd_graph_weight(g, name, t, &s, &at, &err));
    return at;
}

static void attr_is(const cd_graph *g, uint32_t node, const char *key, const char *value) {
    cd_arena a = {0};
    cd_offload_attrs at = {.arena = &a};
    bool found = false;
    cd_offload_put_node(&at, g, &g->node[node]);
    for (uint32_t i = 0; i < at.n; i++)
        if (!strcmp(at.v[i].key, key)) assert_string_equal(at.v[i].value, value), found = true;
    assert_true(found);
    cd_arena_free(&a);
}

/* x, its scale, its zero point, w, ...: the second factor of a quantized operator is its fourth
 * operand, the bias of QLinearConv its ninth. */
static void test_quantized_operands(void **state) {
    (void)state;
    const cd_graph_shape image = {.rank = 4, .dim = {1, 8, 6, 6}};
    const cd_graph_shape filter = {.rank = 4, .dim = {16, 8, 3, 3}};
    const cd_graph_shape matrix = {.rank = 2, .dim = {4, 8}};
    const cd_graph_shape square = {.rank = 2, .dim = {8, 8}};
    const cd_graph_shape row = {.rank = 1, .dim = {16}};
    char type[64];
    uint32_t x, m, y;
    cd_graph *g;
    assert_ok(cd_graph_new("q", &g, &err));
    assert_ok(cd_graph_input(g, "x", CD_DTYPE(CD_T_UINT, 8), &image, &x, &err));
    assert_ok(cd_graph_input(g, "m", CD_DTYPE(CD_T_UINT, 8), &matrix, &m, &err));
    const uint32_t s = weight(g, "s", CD_F32, (cd_graph_shape){0}),
                   z = weight(g, "z", CD_DTYPE(CD_T_UINT, 8), (cd_graph_shape){0});
    const uint32_t w = weight(g, "w", CD_DTYPE(CD_T_UINT, 8), filter),
                   b = weight(g, "b", CD_DTYPE(CD_T_INT, 32), row);
    const uint32_t v = weight(g, "v", CD_DTYPE(CD_T_UINT, 8), square);
    assert_ok(cd_graph_add(g, "conv", "QLinearConv", (const uint32_t[]){x, s, z, w, s, z, s, z, b},
                           9, NULL, 0, &y, 1, &err));
    assert_ok(cd_graph_add(g, "plain", "QLinearConv", (const uint32_t[]){x, s, z, w, s, z, s, z}, 8,
                           NULL, 0, &y, 1, &err));
    assert_ok(cd_graph_add(g, "product", "QLinearMatMul",
                           (const uint32_t[]){m, s, z, v, s, z, s, z}, 8, NULL, 0, &y, 1, &err));
    assert_ok(cd_graph_add(g, "int", "ConvInteger", (const uint32_t[]){x, w, z}, 3, NULL, 0, &y, 1,
                           &err));
    cd_offload_op_type(g, &g->node[0], type, sizeof type);
    assert_string_equal(type, "conv2d");
    attr_is(g, 0, "bias", "1");
    attr_is(g, 1, "bias", "0");
    attr_is(g, 2, "weights", "1");
    attr_is(g, 3, "bias", "0");
    cd_graph_free(g);
}

/* ---- groups ---- */

static cd_offload_net_match applied(const cd_network_loaded *l, const cd_offload_rules *q,
                                    uint32_t n, const char *const *device) {
    cd_offload_net_match r;
    assert_ok(cd_offload_match_apply(&(cd_offload_match_options){l, q, n, device}, &r, &err));
    return r;
}

static uint32_t group_of(const cd_offload_net_match *r, const char *type, uint32_t nth) {
    return r->ops.of[r->ops.of_first[find(&r->ops, type, nth)]];
}

static void test_groups(void **state) {
    (void)state;
    cd_network_loaded l = load("resnet-18");
    cd_offload_rules *q =
        parsed("host cpu\npattern npu conv_bn_relu: conv2d -> batch_norm -> relu?\nsupport npu "
               "dense bias_add\nrefuse npu conv2d where kernel>=7\n");
    cd_offload_net_match r = applied(&l, q, 0, NULL);
    cd_buf b = {0};
    const uint32_t first = group_of(&r, "conv2d", 0), second = group_of(&r, "conv2d", 1),
                   sum = group_of(&r, "add", 0), pool = group_of(&r, "max_pool2d", 0);
    assert_int_equal(r.group[first].allowed, 1);
    assert_non_null(strstr(r.group[first].why[1], "x.rules:4: refuse"));
    assert_int_equal(r.group[second].allowed, 3); /* by the match alone */
    assert_null(r.group[second].why[1]);
    assert_int_equal(r.group[pool].allowed, 1);
    assert_non_null(strstr(r.group[pool].why[1], "no support line for max_pool2d"));
    /* the add behind conv and batch norm is in their group */
    assert_int_equal(r.group[sum].allowed, 1);
    assert_non_null(strstr(r.group[sum].why[1], "(add)"));
    assert_int_equal(r.group[group_of(&r, "dense", 0)].allowed, 3);
    assert_true(r.n_cut > 0 && r.n_joint == 0);
    bool told = false;
    for (uint32_t c = 0; c < r.n_cut; c++) {
        cd_buf_clear(&b);
        cd_offload_match_print_cut(&r, c, &b);
        if (r.cut[c].group == sum)
            told = r.cut[c].stops && strstr(b.p, "cuts through group") &&
                   strstr(b.p, "(add) is not in it, and npu cannot run it");
    }
    assert_true(told);
    cd_offload_match_done(&r);
    cd_offload_free(q);
    /* the cut does no harm */
    q = parsed("host cpu\npattern npu conv_bn: conv2d -> batch_norm\nsupport npu add relu\n");
    r = applied(&l, q, 0, NULL);
    assert_int_equal(r.group[sum].allowed, 3);
    for (uint32_t c = 0; c < r.n_cut; c++) assert_false(r.cut[c].stops);
    cd_offload_match_done(&r);
    cd_offload_free(q);
    cd_buf_free(&b);
    cd_network_load_free(&l);
}

/* A match over two groups: both or none. */
static void test_joint(void **state) {
    (void)state;
    cd_network_loaded l = load("resnet-18");
    cd_offload_rules *q = parsed("host cpu\npattern npu two: conv2d -> batch_norm -> relu -> "
                                 "conv2d -> batch_norm\nsupport npu add relu\n");
    cd_offload_net_match r = applied(&l, q, 0, NULL);
    assert_int_equal(r.n_joint, 8);
    for (uint32_t i = 0; i < r.n_joint; i++) {
        const cd_offload_match *m = &r.joint[i];
        assert_true(m->n_op == 2 && m->device == 1 && m->taken && m->line == 2);
        for (uint32_t k = 0; k < 2; k++)
            assert_true(r.group[r.member[m->first + k]].allowed == 1 &&
                        r.group[r.member[m->first + k]].together == 2);
    }
    cd_offload_match_done(&r);
    cd_offload_free(q);
    /* without add and relu it cannot */
    q = parsed("host cpu\npattern npu two: conv2d -> batch_norm -> relu -> conv2d -> batch_norm\n");
    r = applied(&l, q, 0, NULL);
    assert_int_equal(r.n_joint, 0);
    cd_offload_match_done(&r);
    cd_offload_free(q);
    cd_network_load_free(&l);
}

static void test_devices(void **state) {
    (void)state;
    static const char *const four[] = {"cpu0", "npu0", "npu1", "ocl0"};
    static const char *const wrong[] = {"npu0", "cpu0"};
    cd_network_loaded l = load("squeezenet-1.1");
    cd_offload_rules *q = parsed("host cpu\nsupport npu conv2d bias_add relu\nplace Conv_2 npu\n");
    cd_offload_net_match r = applied(&l, q, 4, four);
    const uint32_t conv = group_of(&r, "conv2d", 0), pool = group_of(&r, "max_pool2d", 0);
    assert_int_equal(r.group[pool].allowed, 1 | 8); /* nothing is said of ocl0 */
    assert_int_equal(r.group[conv].allowed, 2 | 4);
    assert_int_equal(r.group[conv].pin, CD_PLACE_FREE);
    assert_string_equal(r.group[conv].pin_why, "x.rules:3");
    cd_offload_match_done(&r);
    assert_status(cd_offload_match_apply(&(cd_offload_match_options){&l, q, 2, wrong}, &r, &err),
                  CDMPP_EINVALID);
    assert_non_null(strstr(err.msg, "the first device is npu0"));
    cd_offload_match_done(&r);
    assert_status(cd_offload_match_apply(&(cd_offload_match_options){&l, q, 1, four}, &r, &err),
                  CDMPP_EINVALID);
    assert_non_null(strstr(err.msg, "which is none of the devices"));
    assert_int_equal(err.line, 3);
    cd_offload_match_done(&r);
    cd_offload_free(q);
    cd_network_load_free(&l);
}

/* ---- contradictions ---- */

static void refused(const cd_network_loaded *l, const char *text, cdmpp_status want, long line,
                    const char *part) {
    cd_offload_rules *q = parsed(text);
    cd_offload_net_match r;
    assert_status(cd_offload_match_apply(&(cd_offload_match_options){l, q, 0, NULL}, &r, &err),
                  want);
    if (err.line != line || !strstr(err.msg, part) || strcmp(err.path, "x.rules"))
        fail_msg("%s:%ld: %s: expected line %ld, \"%s\"", err.path, err.line, err.msg, line, part);
    cd_offload_match_done(&r);
    cd_offload_free(q);
}

static void test_contradictions(void **state) {
    (void)state;
    cd_network_loaded l = load("squeezenet-1.1");
    const char *all = "host cpu\nsupport npu conv2d bias_add relu\n";
    char text[512];
    cd_arena a = {0};
    cd_offload_ops o;
    assert_ok(cd_offload_ops_list(&l, &a, &o, &err));
    const char *conv = o.graph.op[find(&o, "conv2d", 0)].name,
               *relu = o.graph.op[find(&o, "relu", 0)].name;
    /* one group, two devices */
    snprintf(text, sizeof text, "%splace %s npu\nplace %s cpu\n", all, conv, relu);
    refused(&l, text, CDMPP_EINVALID, 4, "line 3 places");
    /* the group has a relu too */
    snprintf(text, sizeof text, "host cpu\nsupport npu conv2d bias_add\nplace %s npu\n", conv);
    refused(&l, text, CDMPP_EINVALID, 3, "no support line for relu");
    snprintf(text, sizeof text, "%srefuse npu relu where c>=64\nplace %s npu\n", all, relu);
    refused(&l, text, CDMPP_EINVALID, 4, "x.rules:3: refuse");
    snprintf(text, sizeof text, "%splace nobody npu\n", all);
    refused(&l, text, CDMPP_ESCHEMA, 3, "no operator of that name");
    cd_arena_free(&a);
    cd_network_load_free(&l);
}

/* ---- format lines ---- */

static void bad(const char *text, long line, const char *part) {
    cd_offload_rules *q;
    assert_true(cd_offload_parse("x.rules", text, strlen(text), &q, &err) != CDMPP_OK);
    if (err.line != line || !strstr(err.msg, part))
        fail_msg("line %ld: %s: expected line %ld, \"%s\"", err.line, err.msg, line, part);
}

static void test_format(void **state) {
    (void)state;
    cd_offload_rules *q = parsed(
        "host cpu\nformat npu dtype=int8 layout=nchw  # as it likes it\nformat gpu rate=2e9\n");
    cd_buf b = {0};
    assert_string_equal(cd_offload_format(q, 1, "dtype"), "int8");
    assert_string_equal(cd_offload_format(q, 1, "layout"), "nchw");
    assert_null(cd_offload_format(q, 1, "rate"));
    assert_string_equal(cd_offload_format(q, 2, "rate"), "2e9");
    cd_offload_print(q, UINT32_MAX, false, &b);
    assert_non_null(strstr(b.p, "2  format  npu dtype=int8 layout=nchw"));
    cd_buf_free(&b);
    cd_offload_free(q);
    bad("host cpu\nformat cpu dtype=int8\n", 2, "the host's values");
    bad("host cpu\nformat npu\n", 2, "expected dtype=");
    bad("host cpu\nformat npu dtype=int4\n", 2, "expected one of int8");
    bad("host cpu\nformat npu rate=0\n", 2, "bytes a second");
    bad("host cpu\nformat npu colour=red\n", 2, "expected dtype=");
    bad("host cpu\nformat npu dtype=int8 dtype=int8\n", 2, "twice");
    bad("host cpu\nformat npu dtype=int8\nformat npu layout=nhwc\n", 3, "line 2 has one already");
}

/* ---- drawn rules ---- */

static const char *const types[] = {"conv2d",
                                    "bias_add",
                                    "relu",
                                    "clip",
                                    "add",
                                    "dense",
                                    "batch_matmul",
                                    "max_pool2d",
                                    "concatenate",
                                    "layer_norm",
                                    "transpose",
                                    "take",
                                    "softmax",
                                    "layout_transform",
                                    "global_avg_pool2d",
                                    "multiply",
                                    "batch_norm",
                                    "erf",
                                    "divide"};
static const char *const wheres[] = {"",
                                     " where c%16",
                                     " where kernel<=3",
                                     " where groups=1",
                                     " where elements<100000",
                                     " where k<=512",
                                     " where dtype=int8"};

static uint32_t below(uint64_t *g, uint32_t n) { return (uint32_t)(cd_rng_at(7, ++*g) % n); }

static void draw(uint64_t *g, char *text, size_t room) {
    size_t n = (size_t)snprintf(text, room, "host cpu\n");
    enum { T = sizeof types / sizeof *types, W = sizeof wheres / sizeof *wheres };
    for (uint32_t i = 0, lines = 2 + below(g, 6); i < lines; i++)
        n += (size_t)snprintf(text + n, room - n, "support npu %s %s%s\n", types[below(g, T)],
                              types[below(g, T)], wheres[below(g, W)]);
    if (below(g, 2))
        n += (size_t)snprintf(text + n, room - n,
                              "pattern npu a: conv2d -> bias_add? -> batch_norm? -> relu|clip?\n");
    if (below(g, 2))
        n += (size_t)snprintf(
            text + n, room - n,
            "pattern npu b: conv2d -> bias_add -> relu -> conv2d -> bias_add -> relu\n");
    if (below(g, 2))
        n += (size_t)snprintf(text + n, room - n, "refuse npu %s where c>=%u\n", types[below(g, T)],
                              1 + below(g, 512));
    assert_true(n < room);
}

/* From the operators up, without what offload_match.c knows: is operator k covered on the device by
 * a support line, or by a match whose groups all may be there? */
static bool covered(const cd_offload_net_match *r, uint32_t k) {
    const cd_offload *f = &r->found;
    if (f->able[(size_t)k * f->n_device + 1]) return true;
    for (uint32_t m = 0; m < f->n_match; m++) {
        bool in = false, all = f->match[m].device == 1;
        for (uint32_t i = 0; i < f->match[m].n_op; i++) {
            const uint32_t op = f->member[f->match[m].first + i];
            in = in || op == k;
            for (uint32_t j = 0; j < r->ops.of_n[op]; j++)
                all = all && ((r->group[r->ops.of[r->ops.of_first[op] + j]].allowed |
                               r->group[r->ops.of[r->ops.of_first[op] + j]].together) &
                              2);
        }
        if (in && all) return true;
    }
    return false;
}

static void test_drawn(void **state) {
    (void)state;
    static const char *const net[] = {"squeezenet-1.1", "mobilenet-v2", "bert-tiny", "resnet-18"};
    uint64_t g = 0;
    uint32_t there = 0, kept = 0;
    for (size_t k = 0; k < 4; k++) {
        cd_network_loaded l = load(net[k]);
        for (int t = 0; t < 60; t++) {
            char text[2048];
            draw(&g, text, sizeof text);
            cd_offload_rules *q;
            /* drawn contradictions */
            if (cd_offload_parse("x.rules", text, strlen(text), &q, &err)) continue;
            cd_offload_net_match r = applied(&l, q, 0, NULL);
            for (uint32_t i = 0; i < r.n_group; i++) {
                bool each = true;
                assert_true(r.group[i].allowed & 1);
                for (uint32_t j = 0; j < r.ops.in_n[i]; j++)
                    each = each && covered(&r, r.ops.in[r.ops.in_first[i] + j]);
                if ((r.group[i].allowed | r.group[i].together) & 2) assert_true(each), there++;
                else kept++;
                bool alone = true; /* where support lines suffice it must be allowed */
                for (uint32_t j = 0; j < r.ops.in_n[i]; j++)
                    alone = alone && r.found.able[(size_t)r.ops.in[r.ops.in_first[i] + j] * 2 + 1];
                if (alone) assert_true(r.group[i].allowed & 2);
                assert_int_equal(r.group[i].why[1] == NULL, (r.group[i].allowed & 2) != 0);
            }
            cd_offload_match_done(&r);
            cd_offload_free(q);
        }
        cd_network_load_free(&l);
    }
    assert_true(there > 500 && kept > 500);
}

/* What nothing defines stays, whatever rules say. */
static void test_undefined(void **state) {
    (void)state;
    cd_network_loaded l = load("tests/profiler/data/opaque.onnx");
    cd_offload_rules *q = parsed("host cpu\nsupport npu magic relu\n");
    cd_offload_net_match r = applied(&l, q, 0, NULL);
    assert_int_equal(r.group[0].allowed, 1);
    assert_non_null(strstr(r.group[0].why[1], "nothing defines it"));
    assert_int_equal(r.group[1].allowed, 3);
    cd_offload_match_done(&r);
    cd_offload_free(q);
    cd_network_load_free(&l);
}

/* Operators that multiply and add, which an accelerator is for; and names that have no row of their
 * own. */
TEST(test_products_and_other_names) {
    static const char *const mac[] = {"Conv", "ConvTranspose", "ConvInteger",   "QLinearConv",
                                      "Gemm", "MatMul",        "MatMulInteger", "QLinearMatMul",
                                      "LSTM", "GRU",           "RNN",           "Einsum"},
                             *const other[] = {"Relu",    "Add",        "MaxPool", "Convert",
                                               "Softmax", "QLinearAdd", ""};
    static const char *const text[][2] = {{"HardSwish", "hard_swish"}, {"Relu", "relu"},
                                          {"Sub", "subtract"},         {"Trilu", "trilu"},
                                          {"Concat", "concatenate"},   {"ReduceL2", "reduce_l2"},
                                          {"MatMul", "batch_matmul"}};
    const cd_graph g = {0};
    for (size_t k = 0; k < sizeof mac / sizeof *mac; k++)
        if (!cd_offload_is_mac(&(cd_graph_node){.op = mac[k]})) fail_msg("%s", mac[k]);
    for (size_t k = 0; k < sizeof other / sizeof *other; k++)
        if (cd_offload_is_mac(&(cd_graph_node){.op = other[k]})) fail_msg("%s", other[k]);
    for (size_t k = 0; k < sizeof text / sizeof *text; k++) {
        char to[40];
        cd_offload_op_type(&g, &(cd_graph_node){.op = text[k][0]}, to, sizeof to);
        assert_string_equal(to, text[k][1]);
    }
}

TESTS(NULL, NULL, test_products_and_other_names, test_names, test_quantized_operands, test_groups,
      test_joint, test_devices, test_contradictions, test_format, test_drawn, test_undefined)
