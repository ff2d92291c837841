/* Networks under rules: the plan against every baseline and against brute force, what stands on cut
 * edges, reasons, numbers in int8. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "made_rules.h"
#include "predictor/partition/offload/offload.h"

/* ---- a network, rules and made times together ---- */

typedef struct {
    cd_network_loaded l;
    cd_offload_rules *q;
    cd_offload_net_match r;
    double *seconds;
    cd_place_link link[12];
    cd_offload_plan_options ask;
} bench;

/* A host of 20 GFLOP/s and 10 GB/s; device d `fast` times that; links of rate and latency between
 * all. */
static void time_all(bench *b, double fast, double rate, double latency) {
    const uint32_t D = b->r.n_device, n = b->r.n_group;
    b->seconds = calloc((size_t)n * D + 1, sizeof *b->seconds);
    for (uint32_t g = 0; g < n; g++)
        for (uint32_t d = 0; d < D; d++) {
            const cd_network_node *x = &b->l.graph->node[g];
            b->seconds[(size_t)g * D + d] =
                (x->flop / 20e9 + (double)(x->read_bytes + x->write_bytes) / 10e9) /
                (d ? fast * d : 1);
        }
    uint32_t k = 0;
    for (uint32_t i = 0; i < D; i++)
        for (uint32_t j = 0; j < D; j++)
            if (i != j)
                b->link[k++] =
                    (cd_place_link){.from = i, .to = j, .latency_s = latency, .bytes_per_s = rate};
    b->ask = (cd_offload_plan_options){.rules = &b->r,
                                       .seconds = b->seconds,
                                       .link = b->link,
                                       .n_link = k,
                                       .start_s = 1e-6,
                                       .layout = CD_OFFLOAD_EDGE_NHWC};
}

static void with(bench *b, cd_network_loaded l, const char *rules, double fast, double rate,
                 double latency) {
    b->l = l;
    b->q = parsed(rules);
    assert_ok(
        cd_offload_match_apply(&(cd_offload_match_options){&b->l, b->q, 0, NULL}, &b->r, &err));
    time_all(b, fast, rate, latency);
}

static void done(bench *b) {
    cd_offload_match_done(&b->r);
    cd_offload_free(b->q);
    cd_network_load_free(&b->l);
    free(b->seconds);
}

static const char npu[] =
    "host cpu\n"
    "pattern npu conv_relu: conv2d -> bias_add? -> batch_norm? -> relu|clip? where 1.groups=1\n"
    "support npu dense bias_add\n"
    "refuse npu conv2d where kernel>=11\n"
    "format npu dtype=int8 layout=nchw\n";

/* ---- laws of any plan ---- */

static void laws(const bench *b, const cd_offload_net_plan *o) {
    const uint32_t n = b->r.n_group, D = b->r.n_device;
    const cd_workload *w = b->l.work;
    uint32_t seen = 0, cuts = 0;
    double copies = 0, seconds = 0;
    for (uint32_t g = 0; g < n; g++) {
        const cd_offload_group *x = &b->r.group[g];
        assert_true(o->where[g] < D);
        /* unsupported never leaves */
        assert_true(
            ((o->joint[g] == UINT32_MAX ? x->allowed : x->together | x->allowed) >> o->where[g]) &
            1);
        if (x->pin != CD_PLACE_FREE) assert_int_equal(o->where[g], x->pin);
        if (o->joint[g] != UINT32_MAX)
            assert_int_equal(o->where[g], b->r.joint[o->joint[g]].device);
        seconds += w->group[g].task == CD_GRAPH_NONE ? 0 : b->seconds[(size_t)g * D + o->where[g]];
    }
    for (uint32_t k = 0; k < o->n_region; k++) {
        const cd_offload_region *x = &o->region[k];
        assert_true(x->n > 0 && x->why && strlen(x->why) > 4);
        for (uint32_t i = 0; i < x->n; i++, seen++) {
            const uint32_t g = o->group[x->first + i];
            assert_int_equal(o->where[g], x->device);
            assert_int_equal(o->of[g], k);
            for (uint32_t j = 0; j < w->group[g].n_after; j++)
                assert_true(o->of[w->group[g].after[j]] <= k);
        }
    }
    assert_int_equal(seen, n);
    for (uint32_t k = 0; k < o->n_boundary; k++) { /* on cut edges, once each */
        const cd_offload_boundary *c = &o->boundary[k];
        assert_true(c->from != c->to &&
                    c->from == (c->group == CD_GRAPH_NONE ? 0 : o->where[c->group]));
        for (uint32_t j = 0; j < k; j++)
            assert_false(o->boundary[j].buffer == c->buffer && o->boundary[j].to == c->to);
        copies += c->seconds;
    }
    for (uint32_t g = 0; g < n; g++) /* by the workload alone */
        for (uint32_t i = 0; i < w->group[g].n_read; i++) {
            const cd_workload_buffer *x = &w->buffer[w->group[g].read[i]];
            if (x->is_const ||
                (x->group == CD_GRAPH_NONE &&
                 !(x->tensor != CD_GRAPH_NONE && b->l.source->tensor[x->tensor].is_input)))
                continue;
            const uint32_t from = x->group == CD_GRAPH_NONE ? 0 : o->where[x->group];
            bool there = false;
            for (uint32_t k = 0; k < o->n_boundary; k++)
                there = there || (o->boundary[k].buffer == w->group[g].read[i] &&
                                  o->boundary[k].to == o->where[g]);
            assert_int_equal(there, from != o->where[g]);
            cuts += there;
        }
    if (cuts == 0) assert_true(o->n_boundary == 0 || o->where[n - 1] != 0);
    assert_close(copies, o->cost.copies_s, 1e-9, 1e-15);
    assert_int_equal(o->n_boundary, o->cost.n_copy);
    assert_close(seconds + copies, o->cost.sum_s, 1e-9, 1e-15);
}

static double by_goal(const cd_offload_plan_options *a, const cd_place_cost *c) {
    return a->goal == CD_PLACE_SUM ? c->sum_s : c->makespan_s;
}

static void test_zoo(void **state) {
    (void)state;
    static const char *const net[] = {"resnet-18", "squeezenet-1.1", "mobilenet-v2",
                                      "bert-tiny", "inception-v1",   "alexnet",
                                      "lstm",      "densenet-121"};
    uint32_t better = 0, exact = 0, all = 0;
    for (size_t k = 0; k < sizeof net / sizeof *net; k++)
        for (int t = 0; t < 4; t++) {
            bench b;
            with(&b, load(net[k]), npu, t & 1 ? 20 : 3, t & 1 ? 12e9 : 1e9, t & 1 ? 5e-6 : 50e-6);
            b.ask.goal = t & 2 ? CD_PLACE_MAKESPAN : CD_PLACE_SUM;
            cd_offload_net_plan o;
            assert_ok(cd_offload_plan_make(&b.ask, NULL, &o, &err));
            laws(&b, &o);
            const double plan = by_goal(&b.ask, &o.cost);
            for (uint32_t i = 0; i < 3; i++)
                assert_true(plan <= by_goal(&b.ask, &o.base[i].cost) * (1 + 1e-12));
            if (isfinite(o.bound_s)) assert_true(o.bound_s <= plan * (1 + 1e-9));
            better += plan < 0.999 * by_goal(&b.ask, &o.base[1].cost);
            exact += o.exact, all++;
            cd_offload_net_plan_free(&o);
            done(&b);
        }
    if (better < 5 || exact < all / 2)
        fail_msg("%u better than greedy, %u exact, of %u", better, exact, all);
}

/* Every placement of a small network. */
static void test_brute(void **state) {
    (void)state;
    for (uint32_t t = 0; t < 60; t++) {
        bench b;
        with(&b, load("alexnet"),
             t & 1 ? npu
                   : "host cpu\nsupport npu conv2d bias_add relu\nsupport npu max_pool2d where "
                     "c<=200\nplace Conv_2 cpu\n",
             1 + (double)(cd_rng_at(3, t) % 9), 1e8 * (double)(1 + cd_rng_at(4, t) % 50), 1e-5);
        const uint32_t n = b.r.n_group;
        double best = (double)INFINITY;
        cd_offload_net_plan o, x;
        assert_ok(cd_offload_plan_make(&b.ask, NULL, &o, &err));
        assert_true(o.exact);
        assert_true(n <= 16);
        uint32_t *where = calloc(n, sizeof *where);
        uint32_t free_bits = 0, bit[16];
        for (uint32_t g = 0; g < n; g++)
            if (b.r.group[g].allowed == 3) bit[free_bits++] = g;
        for (uint32_t g = 0; g < n; g++) where[g] = b.r.group[g].allowed & 1 ? 0 : 1;
        const uint32_t step = free_bits > 8 ? 37 : 1; /* of many, some */
        for (uint32_t m = 0; m < 1u << free_bits; m += step) {
            for (uint32_t i = 0; i < free_bits; i++) where[bit[i]] = m >> i & 1;
            assert_ok(cd_offload_plan_make(&b.ask, where, &x, &err));
            best = fmin(best, x.cost.sum_s);
            if (m % 5 == 0) laws(&b, &x);
            cd_offload_net_plan_free(&x);
        }
        if (step == 1) assert_close(o.cost.sum_s, best, 1e-9, 0);
        else assert_true(o.cost.sum_s <= best * (1 + 1e-9));
        free(where);
        cd_offload_net_plan_free(&o);
        done(&b);
    }
}

/* A joint match leaves as a whole, and only where it pays. */
static void test_joint(void **state) {
    (void)state;
    static const char two[] = "host cpu\npattern npu two: conv2d -> batch_norm -> relu -> conv2d "
                              "-> batch_norm\nsupport npu add relu\n";
    uint32_t used[2] = {0};
    for (int t = 0; t < 4; t++) {
        bench b;
        with(&b, load("resnet-18"), two, 20, t & 1 ? 20e9 : 1e6, 1e-6);
        b.ask.goal = t & 2 ? CD_PLACE_MAKESPAN : CD_PLACE_SUM;
        cd_offload_net_plan o;
        assert_ok(cd_offload_plan_make(&b.ask, NULL, &o, &err));
        laws(&b, &o);
        for (uint32_t i = 0; i < b.r.n_joint; i++) {
            const uint32_t *m = b.r.member + b.r.joint[i].first;
            assert_int_equal(o.joint[m[0]], o.joint[m[1]]);
            assert_int_equal(o.where[m[0]], o.where[m[1]]);
            used[t & 1] += o.where[m[0]] == 1;
        }
        for (uint32_t i = 0; i < 3; i++)
            assert_true(by_goal(&b.ask, &o.cost) <= by_goal(&b.ask, &o.base[i].cost) * (1 + 1e-12));
        cd_offload_net_plan_free(&o);
        done(&b);
    }
    if (used[1] <= 8 || used[0])
        fail_msg("%u joint matches used over a fast link, %u over a slow one", used[1], used[0]);
}

/* ---- detection: heads of many small operators ---- */

static uint32_t add(cd_graph *g, const char *name, const char *op, uint32_t x, uint32_t w,
                    const cd_graph_attr *a, uint32_t n) {
    const uint32_t in[2] = {x, w};
    uint32_t out;
    assert_ok(cd_graph_add(g, name, op, in, w == CD_GRAPH_NONE ? 1 : 2, a, n, &out, 1, &err));
    return out;
}

static uint32_t conv(cd_graph *g, const char *name, uint32_t x, int64_t from, int64_t to,
                     int64_t stride) {
    static const int64_t three[] = {3, 3}, pads[] = {1, 1, 1, 1};
    const int64_t strides[] = {stride, stride};
    const cd_graph_attr a[] = {
        {.name = "kernel_shape", .kind = CD_GRAPH_ATTR_INTS, .n = 2, .ints = three},
        {.name = "pads", .kind = CD_GRAPH_ATTR_INTS, .n = 4, .ints = pads},
        {.name = "strides", .kind = CD_GRAPH_ATTR_INTS, .n = 2, .ints = strides}};
    uint32_t w;
    char weight[40];
    snprintf(weight, sizeof weight, "%s.w", name);
    assert_ok(cd_graph_weight(g, weight, CD_F32, &(cd_graph_shape){4, {to, from, 3, 3}}, &w, &err));
    return add(g, name, "Conv", x, w, a, 3);
}

static cd_network_loaded ssd(void) {
    static const int64_t perm[] = {0, 2, 3, 1};
    cd_graph *g;
    cd_network_loaded l;
    uint32_t x, y, all[3], box;
    assert_ok(cd_graph_new("ssd", &g, &err));
    assert_ok(cd_graph_input(g, "image", CD_F32, &(cd_graph_shape){4, {1, 3, 64, 64}}, &x, &err));
    for (int64_t k = 0; k < 3; k++) {
        char name[3][24];
        for (int i = 0; i < 3; i++)
            snprintf(name[i], sizeof name[i],
                     i == 0   ? "conv%d"
                     : i == 1 ? "relu%d"
                              : "head%d",
                     (int)k);
        x = add(g, name[1], "Relu", conv(g, name[0], x, k ? 8 << (k - 1) : 3, 8 << k, 2),
                CD_GRAPH_NONE, NULL, 0);
        y = conv(g, name[2], x, 8 << k, 24, 1);
        snprintf(name[0], sizeof name[0], "last%d", (int)k);
        y = add(g, name[0], "Transpose", y, CD_GRAPH_NONE,
                &(cd_graph_attr){.name = "perm", .kind = CD_GRAPH_ATTR_INTS, .n = 4, .ints = perm},
                1);
        uint32_t shape;
        const int64_t to[] = {1, -1, 6};
        snprintf(name[1], sizeof name[1], "shape%d", (int)k);
        assert_ok(cd_graph_constant(g, name[1], CD_I64, &(cd_graph_shape){1, {3}}, to, NULL, &shape,
                                    &err));
        snprintf(name[2], sizeof name[2], "flat%d", (int)k);
        all[k] = add(g, name[2], "Reshape", y, shape, NULL, 0);
    }
    const cd_graph_attr axis = {.name = "axis", .kind = CD_GRAPH_ATTR_INT, .i = 1};
    const cd_graph_attr last = {.name = "axis", .kind = CD_GRAPH_ATTR_INT, .i = 2};
    assert_ok(cd_graph_add(g, "boxes", "Concat", all, 3, &axis, 1, &box, 1, &err));
    y = add(g, "scores", "Softmax", box, CD_GRAPH_NONE, &last, 1);
    const cd_dtype t = CD_F32;
    uint32_t out;
    assert_ok(cd_graph_opaque(g, "nms", "", "NonMaxSuppression", &y, 1,
                              &(cd_graph_shape){2, {10, 6}}, &t, &out, 1, &err));
    assert_ok(cd_graph_result(g, out, &err));
    assert_ok(cd_network_load(&(cd_network_load_options){.network = "",
                                                         .graph = g,
                                                         .target = "llvm -num-cores=1",
                                                         .layout = CD_WORKLOAD_LAYOUT_NCHW},
                              &l, &err));
    return l;
}

static void test_ssd(void **state) {
    (void)state;
    bench b;
    cd_offload_net_plan o;
    /* a costly link */
    with(&b, ssd(),
         "host cpu\nsupport npu conv2d relu transpose\nformat npu dtype=int8 layout=nhwc\n", 4,
         50e6, 200e-6);
    assert_ok(cd_offload_plan_make(&b.ask, NULL, &o, &err));
    laws(&b, &o);
    for (uint32_t g = 0; g < b.r.n_group; g++) assert_int_equal(o.where[g], 0); /* all stays */
    assert_true(o.base[1].cost.sum_s > 2 * o.cost.sum_s && o.base[1].cost.n_copy > 3);
    assert_true(o.n_undefined == 1 && o.exact && o.n_boundary == 0);
    assert_int_equal(o.n_region, 1);
    assert_non_null(strstr(o.region[0].why, "groups cannot be on npu"));
    assert_non_null(strstr(o.region[0].why, "the others there would compute"));
    assert_non_null(strstr(o.region[0].why, "us more"));
    cd_offload_net_plan_free(&o);
    done(&b);
    /* a fast one: the backbone leaves */
    with(&b, ssd(),
         "host cpu\nsupport npu conv2d relu transpose\nformat npu dtype=int8 layout=nhwc\n", 40,
         20e9, 1e-7);
    b.ask.start_s = 1e-8;
    b.ask.rate = 100e9;
    assert_ok(cd_offload_plan_make(&b.ask, NULL, &o, &err));
    laws(&b, &o);
    uint32_t away = 0;
    for (uint32_t g = 0; g < b.r.n_group; g++) away += o.where[g];
    assert_true(away >= 3 && o.n_boundary > 0);
    cd_offload_net_plan_free(&o);
    done(&b);
}

/* Element-wise work on a device that is as fast: the link decides, and with `mac` nothing can bring
 * it there. */
static void test_no_mac(void **state) {
    (void)state;
    static const char elements[] =
        "host cpu\nsupport npu relu clip add multiply softmax layer_norm max_pool2d concatenate "
        "transpose erf divide global_avg_pool2d conv2d where groups=1\n"
        "support npu relu clip add multiply softmax layer_norm max_pool2d concatenate transpose "
        "erf divide\n";
    static const char *const net[] = {"squeezenet-1.1", "bert-tiny", "densenet-121"};
    uint32_t sent = 0;
    for (size_t k = 0; k < 3; k++)
        for (int fast = 0; fast < 2; fast++) {
            bench b;
            cd_offload_net_plan o;
            with(&b, load(net[k]), elements, fast ? 1000 : 1, fast ? 1e15 : 5e9, fast ? 0 : 1e-6);
            b.ask.mac = fast;
            if (fast) b.ask.rate = 1e15, b.ask.start_s = 0;
            assert_ok(cd_offload_plan_make(&b.ask, NULL, &o, &err));
            laws(&b, &o);
            for (uint32_t i = 0; i < o.n_region; i++)
                assert_true(o.region[i].device == 0 || o.region[i].mac);
            assert_true(by_goal(&b.ask, &o.cost) <= by_goal(&b.ask, &o.base[2].cost) * (1 + 1e-12));
            sent += o.n_pruned;
            cd_offload_net_plan_free(&o);
            done(&b);
        }
    assert_true(sent > 0);
}

static void test_three_devices(void **state) {
    (void)state;
    bench b;
    cd_offload_net_plan o;
    cd_buf lp = {0}, text = {0}, json = {0};
    with(&b, load("squeezenet-1.1"),
         "host cpu\nsupport npu conv2d bias_add relu where kernel=1\nsupport npu bias_add "
         "relu\nsupport gpu conv2d bias_add relu max_pool2d where kernel=3\nsupport gpu bias_add "
         "relu\n"
         "format npu dtype=int8 layout=nchw\nformat gpu layout=nchw\n",
         30, 50e9, 1e-7);
    b.ask.start_s = 1e-8;
    assert_ok(cd_offload_plan_make(&b.ask, NULL, &o, &err));
    laws(&b, &o);
    uint32_t n[3] = {0};
    for (uint32_t g = 0; g < b.r.n_group; g++) n[o.where[g]]++;
    assert_true(n[0] && n[1] && n[2]);
    bool between = false;
    /* npu to gpu: no layout, though both are entered through it */
    for (uint32_t k = 0; k < o.n_boundary; k++)
        if (o.boundary[k].from && o.boundary[k].to)
            between = true,
            assert_true(o.boundary[k].edge->n == 1 && o.boundary[k].edge->n_all == 3);
    assert_true(between);
    assert_ok(cd_place_lp(&o.part, CD_PLACE_SUM, &lp, &err));
    assert_non_null(strstr(lp.p, "Minimize"));
    cd_offload_plan_text(&o, &text);
    assert_non_null(strstr(text.p, "greedy"));
    cd_offload_plan_json(&o, &json);
    cd_arena a = {0};
    const cd_json *v;
    assert_ok(cd_json_parse(&a, json.p, json.n, &v, &err));
    cd_arena_free(&a);
    cd_buf_free(&lp), cd_buf_free(&text), cd_buf_free(&json);
    cd_offload_net_plan_free(&o);
    done(&b);
}

static void test_faults(void **state) {
    (void)state;
    bench b;
    cd_offload_net_plan o;
    with(&b, load("alexnet"), npu, 3, 1e9, 1e-5);
    uint32_t some = 0;
    while (b.r.group[some].allowed != 3) some++;
    b.seconds[2 * some + 1] = (double)NAN;
    assert_status(cd_offload_plan_make(&b.ask, NULL, &o, &err), CDMPP_ERANGE);
    assert_non_null(strstr(err.msg, "on npu"));
    cd_offload_net_plan_free(&o);
    b.seconds[2 * some + 1] = 1e-3;
    b.ask.n_link = 0; /* no link: all at home */
    assert_ok(cd_offload_plan_make(&b.ask, NULL, &o, &err));
    for (uint32_t g = 0; g < b.r.n_group; g++) assert_int_equal(o.where[g], 0);
    assert_true(isinf(o.base[1].cost.sum_s) != 0);
    uint32_t where[64] = {0};
    cd_offload_net_plan_free(&o);
    for (uint32_t g = 0; g < b.r.n_group; g++)
        if (!(b.r.group[g].allowed & 2)) {
            where[g] = 1;
            break;
        }
    assert_status(cd_offload_plan_make(&b.ask, where, &o, &err), CDMPP_EINVALID);
    assert_non_null(strstr(err.msg, "cannot be on npu"));
    cd_offload_net_plan_free(&o);
    done(&b);
}

/* ---- what stands at the boundary ---- */

/* By the words of BYOC: neighbours that undo each other go, kinds pass each other; how many are
 * left of each kind. */
static uint32_t reduced(const cd_offload_edge *e, bool layout) {
    int chain[8];
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_all; i++) {
        if (e->all[i].layout != layout) continue;
        chain[n++] = e->all[i].to;
        const int from = n > 1 ? chain[n - 2] : e->all[i].from;
        assert_int_equal(from, e->all[i].from);
    }
    if (!n) return 0;
    int first = -1;
    for (uint32_t i = 0; i < e->n_all && first < 0; i++)
        if (e->all[i].layout == layout) first = e->all[i].from;
    return chain[n - 1] != first;
}

static void test_boundary(void **state) {
    (void)state;
    uint32_t cancelled = 0;
    for (int x = 0; x < 8 * 8 * 8; x++) {
        const cd_offload_edge_format f = {(cd_offload_edge_dtype)(x & 3),
                                          (cd_offload_edge_layout)(x >> 2 & 1), 1e9},
                                     t = {(cd_offload_edge_dtype)(x >> 3 & 3),
                                          (cd_offload_edge_layout)(x >> 5 & 1), 1e9},
                                     h = {(cd_offload_edge_dtype)(x >> 6 & 3),
                                          (cd_offload_edge_layout)(x >> 8 & 1), 1e9};
        cd_offload_edge e;
        cd_offload_edge_make(&f, &t, &h, &e);
        /* what the ends are alone decides */
        assert_int_equal(e.n, (f.dtype != t.dtype) + (f.layout != t.layout));
        assert_int_equal(e.n, reduced(&e, false) + reduced(&e, true));
        assert_true(e.n <= e.n_all);
        cancelled += e.n_all - e.n;
        for (uint32_t i = 0; i < e.n; i++) assert_true(e.step[i].from != e.step[i].to);
        if (f.dtype == t.dtype && f.layout == t.layout) assert_true(e.s_per_byte == 0);
        assert_true(e.packed ==
                    (f.dtype == CD_OFFLOAD_EDGE_INT8 || t.dtype == CD_OFFLOAD_EDGE_INT8 ? 0.25
                     : f.dtype == CD_OFFLOAD_EDGE_FLOAT32 && t.dtype == CD_OFFLOAD_EDGE_FLOAT32
                         ? 1
                         : 0.5));
    }
    assert_true(cancelled > 100);
    const cd_offload_edge_format host = {CD_OFFLOAD_EDGE_FLOAT32, CD_OFFLOAD_EDGE_NHWC, 4e9};
    const cd_offload_edge_format npu8 = {CD_OFFLOAD_EDGE_INT8, CD_OFFLOAD_EDGE_NCHW, 4e9};
    cd_offload_edge e;
    cd_buf b = {0};
    cd_offload_edge_make(&host, &npu8, &host, &e);
    cd_offload_edge_print(&e, &b);
    assert_string_equal(b.p, "quantise float32 -> int8, layout nhwc -> nchw");
    /* 4 bytes read and 1 written; 1 and 1 */
    assert_close(e.s_per_byte, (5 / 8.0 + 2 / 8.0) / 4e9, 1e-12, 0);
    const cd_place_link l = cd_offload_edge_link(
        &(cd_place_link){.from = 0, .to = 1, .latency_s = 1e-6, .bytes_per_s = 1e9}, &e, 2e-6);
    assert_close(l.convert_s, 4e-6, 1e-12, 0);
    assert_true(l.packed == 0.25);
    cd_buf_clear(&b);
    cd_offload_edge_make(&npu8, &host, &host, &e);
    cd_offload_edge_print(&e, &b);
    assert_string_equal(b.p, "layout nchw -> nhwc, dequantise int8 -> float32");
    cd_buf_free(&b);
}

TESTS(NULL, NULL, test_zoo, test_brute, test_joint, test_ssd, test_no_mac, test_three_devices,
      test_faults, test_boundary)
