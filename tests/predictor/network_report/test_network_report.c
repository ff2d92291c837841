/* Reports of an estimate whose every number is another one: each column and key has its own. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "check.h"
#include "fault.h"
#include "predictor/network_report/network_report.h"
#include "tmp.h"

static const char graph[] =
    "{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"networks\": [{\"name\": \"fork, wide\", "
    "\"batch\": 4, \"device\": \"v100\", \"nodes\": ["
    "{\"name\": \"x\", \"kind\": \"free\"},"
    "{\"name\": \"a\", \"op\": \"Conv\", \"kind\": \"given\", \"given_s\": 0.25, \"after\": "
    "[\"x\"]},"
    "{\"name\": \"b\", \"op\": \"Say \\\"b\\\"\", \"kind\": \"given\", \"given_s\": 0.5, "
    "\"repeat\": 3, \"after\": [\"a\"]},"
    "{\"name\": \"odd\", \"op\": \"Strange\", \"kind\": \"unknown\", \"why\": \"nobody knows it\", "
    "\"after\": [\"b\"]}]}]}";

static tmp_dir dir;
static cd_network_estimate_options options;
static cd_network_estimate e;
static cd_network_estimate_case *c;
static const char *path, *what_if = "op=*,scale=1";
static cdmpp_err err;

/* Estimated once; then all results are other numbers. */
static int set_up(void **state) {
    static char file[256];
    (void)state;
    dir = tmp_make();
    snprintf(file, sizeof file, "%s", tmp_put(&dir, "fork.json", graph, strlen(graph)));
    path = file;
    options = cd_network_estimate_defaults();
    options.graph = (cd_texts){1, &path};
    options.replay_given = options.allow_missing = true;
    options.device = "v100";
    if (cd_network_estimate_open(&options, &e, &err) || cd_network_estimate_run(&e, &err) ||
        e.n_item != 1)
        return 1;
    c = e.item;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    cd_network_estimate_free(&e);
    tmp_remove(&dir);
    return 0;
}

static void number(void) {
    c->replay.makespan_s = 0.5, c->interval.low_s = 0.375, c->interval.high_s = 0.75,
    c->replay.chain_s = 0.125, c->replay.sum_s = 2;
    c->use[0] = (cd_network_estimate_use){
        .peak = 3 << 20, .least = 3 << 20, .weights = 1 << 20, .memory = (int64_t)7 << 30};
    c->missing_share = 0.0625, c->measured_s = 0.625, c->measured_median_s = 0.4, c->run_s = 1.25,
    c->before_s = 1.5;
    c->ops_s = 4, c->unlike_s = 1, c->given_s = 3, c->n_task = 17, c->n_bare = 13;
    c->unlike_of_s[0] = 0.5, c->unlike_of_s[1] = 0.75;
    c->cluster = (cd_parallel_result){
        .replay_s = 21, .closed_s = 22, .one_s = 23, .sent_s = 24, .sent_bytes = 25, .kept = 26};
    for (uint32_t k = 0; k < c->net->net.n_op; k++) {
        cd_node_cost_entry *n = &c->cost[0]->node[c->net->of[k]];
        c->replay.op[k] = (cd_replay_ran){.start_s = 0.5 + k,
                                          .end_s = 0.75 + k,
                                          .worker = 2 + k,
                                          .since = k ? k - 1 : UINT32_MAX};
        n->seconds = 0.25 + k, n->low_s = 0.125 + k, n->high_s = 0.375 + k;
        n->schedule = k ? "log.json:7" : NULL;
        n->flags = k ? CD_MODEL_OUT_OF_RANGE : 0;
    }
}

/* 8 items a second at 0.0288 an hour: 1 for a million. */
static cd_network_price hour = {0.0288, "USD"};
static const cd_network_prices prices = {.device = &hour};
static cd_network_report report(void) {
    return (cd_network_report){.e = &e, .measured = true, .prices = &prices, .deadline_s = NAN};
}

/* ---- CSV ---- */
static void csv_is(const cd_network_report *r, const char *text) {
    cd_buf b = {0};
    cd_network_report_csv(r, &b);
    assert_string_equal(b.p, text);
    cd_buf_free(&b);
}

#define HEAD                                                                                       \
    "network,device,batch,latency_s,low_s,high_s,chain_s,sum_s,items_per_s,peak_bytes,memory_"     \
    "bytes,missing_share,measured_s,run_s,before_s,price_per_million,currency,error,unlike_share," \
    "unlike_reasons,cores\r\n"
#define OPS                                                                                        \
    "network,device,batch,name,op,worker,repeat,start_s,end_s,seconds,low_s,high_s,source,"        \
    "schedule,given_s,reason\r\n"

static void test_csv(void **state) {
    (void)state;
    cd_network_report r = report();
    number();
    csv_is(&r, HEAD "\"fork, "
                    "wide\",v100,4,0.5,0.375,0.75,0.125,2,8,3145728,7516192768,0.0625,0.625,1.25,1."
                    "5,1,USD,,0.25,\"range of features 12 %, dtype 19 %\",\r\n");
    r.prices = NULL; /* what is unknown is empty */
    c->measured_s = c->run_s = c->before_s = NAN;
    c->use[0].peak = -1, c->use[0].memory = 0;
    csv_is(&r, HEAD "\"fork, wide\",v100,4,0.5,0.375,0.75,0.125,2,8,,,0.0625,,,,,,,0.25,\"range of "
                    "features 12 %, dtype 19 %\",\r\n");
    r.ops = true;
    csv_is(&r, OPS "\"fork, wide\",v100,4,a,Conv,2,1,0.5,0.75,0.25,0.125,0.375,given,,0.25,\r\n"
                   "\"fork, wide\",v100,4,b,\"Say "
                   "\"\"b\"\"\",3,3,1.5,1.75,1.25,1.125,1.375,given,log.json:7,0.5,\r\n");
    r.ops = false;
    /* a processor of which 4 cores are used */
    cd_network_estimate_device *d = (cd_network_estimate_device *)(uintptr_t)c->device;
    const cd_network_estimate_device was = *d;
    const cd_device some = {.name = "v100", .kind = CD_DEVICE_CPU, .cores = 64, .cores_used = 4};
    d->gpu = false, d->about = &some;
    csv_is(&r, HEAD "\"fork, wide\",v100,4,0.5,0.375,0.75,0.125,2,8,,,0.0625,,,,,,,0.25,\"range of "
                    "features 12 %, dtype 19 %\",4\r\n");
    *d = was;
    c->st = CDMPP_EMODEL;
    snprintf(c->err.msg, sizeof c->err.msg, "no model, at all");
    csv_is(&r, HEAD "\"fork, wide\",v100,4,,,,,,,,,,,,,,,\"no model, at all\",,,\r\n");
    r.ops = true;
    csv_is(&r, OPS);
    c->st = CDMPP_OK;
}

/* ---- JSON ---- */
typedef struct {
    const char *key;
    double value; /* NaN: null */
} want;

static void object_is(const cd_json *o, const want *w, size_t n) {
    for (size_t k = 0; k < n; k++) {
        const cd_json *v = cd_json_get(o, w[k].key);
        double got = NAN;
        if (!v) fail_msg("no key %s", w[k].key);
        if (v->kind == CD_JSON_BOOL) got = (double)v->u.i;
        else assert_ok(cd_json_real_or_nan(v, &got, &err));
        if (isnan(w[k].value) ? !isnan(got) : !(fabs(got - w[k].value) < 1e-12))
            fail_msg("%s is %.17g, not %g", w[k].key, got, w[k].value);
    }
}
#define OBJECT_IS(o, w) object_is((o), (w), sizeof(w) / sizeof *(w))

static void text_is(const cd_json *o, const char *key, const char *text) {
    cd_str s;
    assert_ok(cd_json_need_str(o, key, &s, &err));
    assert_int_equal(s.n, strlen(text));
    assert_memory_equal(s.p, text, s.n);
}

static const cd_json *json_of(const cd_network_report *r, cd_arena *a) {
    cd_buf b = {0};
    const cd_json *root;
    cd_network_report_json(r, &b);
    const char *kept = cd_str_dup(a, (cd_str){b.p, b.n}); /* the tree points into it */
    assert_ok(cd_json_parse(a, kept, b.n, &root, &err));
    cd_buf_free(&b);
    return root;
}

static void check_case(const cd_json *o) {
    static const want w[] = {{"batch", 4},
                             {"latency_s", 0.5},
                             {"low_s", 0.375},
                             {"high_s", 0.75},
                             {"level", 0.9},
                             {"chain_s", 0.125},
                             {"sum_s", 2},
                             {"items_per_s", 8},
                             {"peak_bytes", 3 << 20},
                             {"weight_bytes", 1 << 20},
                             {"memory_bytes", 7516192768.0},
                             {"fits", 1},
                             {"missing_share", 0.0625},
                             {"unlike_share", 0.25},
                             {"given_share", 0.75},
                             {"tasks", 17},
                             {"tasks_without_schedule", 13},
                             {"measured_s", 0.625},
                             {"measured_median_s", 0.4},
                             {"error", -0.2},
                             {"error_of_median", 0.25},
                             {"run_s", 1.25},
                             {"run_error", -0.6},
                             {"run_cold_s", NAN},
                             {"run_left_out", 0},
                             {"run_drawn", 0},
                             {"before_s", 1.5},
                             {"price_per_hour", 0.0288},
                             {"price_per_million", 1}};
    static const want nodes[] = {{"model", 0},  {"library", 0}, {"given", 2},  {"record", 0},
                                 {"scaled", 0}, {"free", 1},    {"missing", 1}};
    static const want parallel[] = {{"latency_s", 21},    {"closed_form_s", 22},
                                    {"one_device_s", 23}, {"links_s", 24},
                                    {"sent_bytes", 25},   {"kept_micro_batches", 26}};
    OBJECT_IS(o, w);
    OBJECT_IS(cd_json_get(o, "nodes"), nodes);
    OBJECT_IS(cd_json_get(o, "parallel"), parallel);
    text_is(o, "device", "v100");
    text_is(o, "currency", "USD");
    text_is(cd_json_get(o, "parallel"), "plan", "pp=2");
    const want reasons[] = {{cd_trained_on_reason(0), 0.125}, {cd_trained_on_reason(1), 0.1875}};
    OBJECT_IS(cd_json_get(o, "unlike_reasons"), reasons);
    assert_int_equal(cd_json_get(o, "unlike_reasons")->n, 2);
    const cd_json *missing = cd_json_get(o, "missing");
    assert_int_equal(missing->n, 1);
    text_is(missing->u.child, "name", "odd");
    text_is(missing->u.child, "op", "Strange");
    text_is(missing->u.child, "why", "nobody knows it");
}

static void check_ops(const cd_json *list) {
    static const want first[] = {{"worker", 2},     {"repeat", 1},     {"start_s", 0.5},
                                 {"end_s", 0.75},   {"seconds", 0.25}, {"low_s", 0.125},
                                 {"high_s", 0.375}, {"critical", 0},   {"out_of_range", 0},
                                 {"given_s", 0.25}};
    static const want second[] = {{"worker", 3},     {"repeat", 3},     {"start_s", 1.5},
                                  {"end_s", 1.75},   {"seconds", 1.25}, {"low_s", 1.125},
                                  {"high_s", 1.375}, {"critical", 1},   {"out_of_range", 1},
                                  {"given_s", 0.5}};
    const cd_json *a = list->u.child, *b = a->next;
    assert_int_equal(list->n, 2);
    OBJECT_IS(a, first);
    OBJECT_IS(b, second);
    const want share[] = {{"share", c->net->net.op[0].seconds / 4}};
    OBJECT_IS(a, share);
    text_is(a, "name", "a");
    text_is(b, "op", "Say \"b\"");
    text_is(b, "source", "given");
    text_is(b, "schedule", "log.json:7");
    text_is(b, "device", "v100");
    assert_int_equal(cd_json_get(a, "schedule")->kind, CD_JSON_NULL);
}

static void test_json(void **state) {
    cd_arena a = {0};
    (void)state;
    cd_network_report r = report();
    number();
    r.ops = true;
    options.run = true, options.parallel = "pp=2", options.what_if = (cd_texts){1, &what_if};
    const uint32_t path_was = c->replay.n_path;
    c->replay.n_path = 1, c->replay.path[0] = 1;
    /* graph files on one device: by name */
    const cd_json *root = json_of(&r, &a), *o = cd_json_get(root, "fork, wide");
    check_case(o);
    check_ops(cd_json_get(o, "operators"));
    e.graphs = false; /* else a table */
    const cd_json *data = json_of(&r, &a);
    text_is(data, "schema", "cdmpp.replay");
    data = cd_json_get(data, "result");
    o = cd_json_get(data, "estimates")->u.child;
    text_is(o, "network", "fork, wide");
    check_case(o);
    assert_int_equal(cd_json_get(data, "cheapest")->n, 1);
    assert_int_equal(cd_json_get(data, "cheapest")->u.child->u.i, 0);
    c->use[0].memory = 1 << 20; /* too little: nothing that fits has a price */
    c->use[0].least = 2 << 20;
    assert_int_equal(cd_json_get(cd_json_get(json_of(&r, &a), "result"), "cheapest")->n, 0);
    e.graphs = true;
    options.run = false, options.parallel = NULL, options.what_if.n = 0,
    c->replay.n_path = path_was;
    o = cd_json_get(json_of(&r, &a), "fork, wide"); /* what was not asked for has no key */
    static const char *const absent[] = {"run_s", "before_s", "parallel", "stand_in",
                                         "device_spread"};
    for (size_t k = 0; k < sizeof absent / sizeof *absent; k++)
        assert_null(cd_json_get(o, absent[k]));
    assert_int_equal(cd_json_get(o, "fits")->u.i, 0);
    c->device_spread = 0.5, c->device->stands = "t4", c->use[0].memory = 0;
    o = cd_json_get(json_of(&r, &a), "fork, wide");
    text_is(o, "stand_in", "t4");
    static const want spread[] = {{"device_spread", 0.5}, {"fits", NAN}, {"memory_bytes", NAN}};
    OBJECT_IS(o, spread);
    c->device_spread = 0, c->device->stands = NULL;
    cd_arena_free(&a);
}

/* ---- text ---- */
static void test_device_names(void **state) {
    cd_network_estimate_device d = {.name = "a100"};
    char text[CD_NETWORK_REPORT_DEVICE];
    (void)state;
    assert_string_equal(cd_network_report_device(&d, text), "a100");
    d.stands = "h100";
    assert_string_equal(cd_network_report_device(&d, text), "a100 (as h100)");
    d = (cd_network_estimate_device){.name = "zen4", .stands = "zen4", .guessed = true};
    assert_string_equal(cd_network_report_device(&d, text), "this CPU (as zen4)");
    d.gpu = true;
    assert_string_equal(cd_network_report_device(&d, text), "this GPU (as zen4)");
}

static void test_unlike(void **state) {
    cd_network_estimate_device d = {.name = "a100"};
    const cd_network_estimate_case one = {.device = &d, .unlike_s = 2, .unlike_else_s = 0.5};
    (void)state;
    assert_close(cd_network_estimate_unlike_s(&one), 2, 1e-12, 0);
    d.stands = "h100"; /* that is said apart: the rest counts */
    assert_close(cd_network_estimate_unlike_s(&one), 0.5, 1e-12, 0);
}

static const char *whose(void) {
    static char text[300];
    cd_buf b = {0};
    cd_network_report_whose(report().e, &b);
    (void)snprintf(text, sizeof text, "%.*s", (int)b.n, b.p ? b.p : "");
    cd_buf_free(&b);
    return text;
}

/* By where the times come from. */
static void test_whose(void **state) {
    cd_node_cost_entry *a = &c->cost[0]->node[c->net->of[0]], *b = &c->cost[0]->node[c->net->of[1]];
    const cd_cost_source was[] = {a->source, b->source};
    (void)state;
    assert_string_equal(whose(), "Latency of operators by the times in the file.");
    a->source = b->source = CD_COST_MODEL;
    assert_string_equal(whose(), "Latency of programs compiled by cdmpp with schedules that cdmpp "
                                 "chose; not of ONNX Runtime, PyTorch or TensorRT.");
    b->source = CD_COST_LIBRARY; /* a library's operators may well be those of PyTorch */
    options.records = (cd_texts){1, &path};
    assert_string_equal(
        whose(),
        "Latency of programs compiled by cdmpp with the schedules given, operators of libraries.");
    options.records.n = 0;
    c->st = CDMPP_EMODEL;
    assert_string_equal(whose(), "");
    c->st = CDMPP_OK, a->source = was[0], b->source = was[1];
}

static void test_text(void **state) {
    cd_buf b = {0};
    (void)state;
    cd_network_report r = report();
    number();
    options.run = true, options.parallel = "pp=2", options.what_if = (cd_texts){1, &what_if};
    cd_network_report_text(&r, &b);
    static const char head[] = "network     device   batch  before  latency  speed-up  parallel    "
                               "from      to  measured    error  run here    error   chain  sum  "
                               "items/s  memory   given  unlike  missing    a million\n";
    static const char row[] = "fork, wide  v100         4   1.5 s   500 ms    3.000x      21 s  "
                              "375 ms  750 ms    625 ms  -20.0 %    1.25 s  -60.0 %  125 ms  2 s   "
                              "     8   3 MiB  75.0 %    25 %    6.2 %  1.000 USD *\n";
    const char *table = strchr(b.p, '\n') + 1; /* below the line that says whose latency it is */
    assert_true(!strncmp(b.p, "Latency of ", 11));
    if (strncmp(table, head, sizeof head - 1) != 0 ||
        strncmp(table + sizeof head - 1, row, sizeof row - 1) != 0)
        fail_msg("%s%s%s", b.p, head, row);
    assert_non_null(strstr(b.p, "\nagainst the measured: mean error 20.0 %, most 20.0 % (n=1)\n"));
    assert_non_null(strstr(b.p, "\nagainst the run here: mean error 60.0 %, most 60.0 % (n=1)\n"));
    assert_non_null(
        strstr(b.p, "\nfork, wide: cheapest is v100 with batch 4, 500 ms, 1.000 USD a million\n"));
    assert_null(strstr(b.p, "at most 15 %")); /* nothing is left of it */
    options.run = false, options.parallel = NULL, options.what_if.n = 0;
    cd_buf_clear(&b);
    c->use[0].least = (int64_t)8 << 30, c->unlike_s = 0; /* more than there is */
    r.deadline_s = 0.4, r.ops = true;
    cd_network_report_text(&r, &b);
    assert_null(strstr(b.p, "unlike"));
    assert_null(strstr(b.p, "run here"));
    assert_non_null(strstr(b.p, " 3 MiB (!) "));
    assert_non_null(strstr(b.p, "\nfork, wide: no device with a price is fast enough and fits\n"));
    /* 3.75 s of three runs of b come first */
    assert_non_null(strstr(b.p, "    3.75 s  93.75 %     3.375 s    4.125 s  "));
    assert_non_null(strstr(b.p, " b (3 times) (out of range) [log.json:7]\n"));
    assert_non_null(strstr(b.p, "    250 ms   6.25 %      125 ms     375 ms  "));
    assert_non_null(strstr(b.p, "   missing             Strange odd: nobody knows it\n"));
    assert_true(strstr(b.p, "3.75 s") < strstr(b.p, "250 ms   6.25"));
    cd_buf_free(&b);
}

/* ---- page ---- */
static void list_is(const cd_json *ops, const char *key, double first, double second) {
    const want pair[] = {{key, first}, {key, second}};
    const cd_json *v = cd_json_get(ops, key);
    if (!v) fail_msg("no list %s", key);
    assert_int_equal(v->n, 2);
    for (const cd_json *x = v->u.child, *k = x; k; k = k->next) {
        double got;
        if (k->kind == CD_JSON_BOOL) got = (double)k->u.i;
        else assert_ok(cd_json_real_or_nan(k, &got, &err));
        if (!(fabs(got - pair[k != x].value) < 1e-9)) fail_msg("%s of %d is %g", key, k != x, got);
    }
}

/* The data inside the page. */
static const cd_json *page_of(const cd_network_report *r, cd_arena *a) {
    static const char begin[] = "id=\"data\">", end[] = "</script>";
    char *text;
    size_t n;
    const cd_json *root;
    const char *file = tmp_path(&dir, "page.html");
    assert_ok(cd_network_report_html(r, file, &err));
    assert_ok(cd_file_read(file, 0, &text, &n, &err));
    const char *from = strstr(text, begin);
    assert_non_null(from);
    from += sizeof begin - 1;
    const size_t length = (size_t)(strstr(from, end) - from);
    assert_ok(cd_json_parse(a, cd_str_dup(a, (cd_str){from, length}), length, &root, &err));
    cd_mem_free(text);
    return root;
}

TEST(test_page) {
    cd_arena a = {0};
    cd_network_report r = report();
    number();
    r.deadline_s = 0.7, options.what_if = (cd_texts){1, &what_if};
    c->replay.op[1].since = UINT32_MAX; /* a on its own is as long as anything */
    c->cost[0]->node[c->net->of[0]].unlike = "dtype",
    c->cost[0]->node[c->net->of[1]].unlike = "dtype";
    const cd_json *root = page_of(&r, &a), *o = cd_json_get(root, "cases")->u.child,
                  *ops = cd_json_get(o, "ops");
    static const want sums[] = {{"batch", 4},
                                {"latency", 0.5},
                                {"low", 0.375},
                                {"high", 0.75},
                                {"chain", 0.125},
                                {"sum", 2},
                                {"items", 8},
                                {"missing", 0.0625},
                                {"unlike", 0.25},
                                {"measured", 0.625},
                                {"run", 1.25},
                                {"before", 1.5},
                                {"price", 1},
                                {"hour", 0.0288},
                                {"peak", 3 << 20},
                                {"weights", 1 << 20},
                                {"memory", 7516192768.0},
                                {"best", 1}};
    OBJECT_IS(o, sums);
    static const want limits[] = {{"level", 0.9}, {"deadline", 0.7}};
    OBJECT_IS(root, limits);
    text_is(o, "network", "fork, wide");
    text_is(o, "device", "v100");
    text_is(o, "currency", "USD");
    text_is(o, "why", "range of features 12 %, dtype 19 %");
    assert_null(cd_json_get(o, "small"));
    assert_null(cd_json_get(o, "error"));
    list_is(ops, "start", 0.5e9, 1.5e9), list_is(ops, "end", 0.75e9, 1.75e9),
        list_is(ops, "low", 0.125e9, 3 * 1.125e9), list_is(ops, "high", 0.375e9, 3 * 1.375e9);
    list_is(ops, "lane", 0, 0), list_is(ops, "worker", 2, 3),
        list_is(ops, "source", CD_COST_GIVEN, CD_COST_GIVEN), list_is(ops, "type", 0, 1);
    list_is(ops, "schedule", -1, 0), list_is(ops, "unlike", 0, 0);
    static const char *const key[] = {"types", "schedules", "reasons"};
    static const char *const first[] = {"Conv", "log.json:7", "dtype"};
    for (int k = 0; k < 3; k++) {
        const cd_json *v = cd_json_get(o, key[k]);
        assert_int_equal(v->n, k ? 1 : 2);
        assert_true(v->u.child->kind == CD_JSON_STR && cd_str_is(v->u.child->u.s, first[k]));
    }
    const cd_json *after = cd_json_get(ops, "after");
    assert_true(after->u.child->n == 0 && after->u.child->next->n == 1 &&
                after->u.child->next->u.child->u.i == 0);
    assert_int_equal(cd_json_get(root, "sources")->n, 7);
    assert_true(cd_json_get(root, "what_if")->n == 1 &&
                cd_str_is(cd_json_get(root, "what_if")->u.child->u.s, what_if));
    cd_str foot;
    assert_ok(cd_json_need_str(root, "foot", &foot, &err));
    /* times are given: none was asked */
    assert_true(foot.n > 13 && !memcmp(foot.p, "cdmpp-replay ", 13) &&
                !memmem(foot.p, foot.n, "models", 6));
    c->st = CDMPP_EMODEL, c->use[0].least = (int64_t)8 << 30;
    snprintf(c->err.msg, sizeof c->err.msg, "no model");
    o = cd_json_get(page_of(&r, &a), "cases")->u.child;
    text_is(o, "error", "no model");
    assert_null(cd_json_get(o, "latency"));
    c->st = CDMPP_OK, c->use[0].peak = c->use[0].weights = -1;
    o = cd_json_get(page_of(&r, &a), "cases")->u.child;
    assert_int_equal(cd_json_get(o, "small")->u.i, 1);
    assert_true(!cd_json_get(o, "peak") && !cd_json_get(o, "weights") &&
                cd_json_get(o, "best")->u.i == 0);
    options.what_if.n = 0;
    c->cost[0]->node[c->net->of[0]].unlike = c->cost[0]->node[c->net->of[1]].unlike = NULL;
    cd_arena_free(&a);
}

/* A file for each of several cases; names that differ only in what a path cannot have get a
 * number. */
TEST(test_traces) {
    cd_network_report r = report();
    cd_network_estimate_case *const was = e.item, two[3] = {*c, *c, *c};
    char *text;
    size_t n;
    number();
    assert_ok(cd_network_report_trace(&r, tmp_path(&dir, "alone.json"), &err));
    assert_ok(cd_file_read(tmp_path(&dir, "alone.json"), 0, &text, &n, &err));
    assert_non_null(strstr(text, "\"traceEvents\""));
    cd_mem_free(text);
    two[1].st = CDMPP_EMODEL; /* has none */
    e.item = two, e.n_item = 3;
    assert_ok(cd_network_report_trace(&r, tmp_path(&dir, "t.x.json"), &err));
    assert_ok(cd_network_report_trace(&r, tmp_path(&dir, "plain"), &err));
    e.item = was, e.n_item = 1;
    static const char *const there[] = {"t.x.fork,_wide.v100.4.json",
                                        "t.x.fork,_wide.v100.4.2.json", "plain.fork,_wide.v100.4",
                                        "plain.fork,_wide.v100.4.2"};
    static const char *const not_there[] = {"t.x.json", "plain", "t.x.fork,_wide.v100.4.3.json"};
    for (size_t k = 0; k < sizeof there / sizeof *there; k++)
        assert_int_equal(access(tmp_path(&dir, there[k]), R_OK), 0);
    for (size_t k = 0; k < sizeof not_there / sizeof *not_there; k++)
        assert_int_not_equal(access(tmp_path(&dir, not_there[k]), R_OK), 0);
}

/* At the deadline is fast enough, behind it is not. */
static void test_deadline(void **state) {
    (void)state;
    for (int late = 0; late < 2; late++) {
        cd_buf b = {0};
        cd_network_report r = report();
        number();
        r.deadline_s = late ? 0.499 : 0.5;
        cd_network_report_text(&r, &b);
        assert_int_equal(strstr(b.p, "cheapest under the deadline is v100") == NULL, late);
        cd_buf_free(&b);
    }
}

/* V100: 300 W by the data sheet, 8 items a second. */
static void test_energy(void **state) {
    (void)state;
    const cd_device *was = c->device->about;
    cd_device some = {.kind = CD_DEVICE_CPU, .tdp_w = 300, .cores = 4, .cores_used = -1};
    static const struct {
        double tdp_w, used, deadline_s;
        const char *text, *json;
    } t[] = {{300, -1, 0.5, "37.5 J *", "\"power_w\":300,\"energy_j\":37.5"},
             {300, 1, 0.5,
              "\nfork, wide: least energy under the deadline is that of v100 with batch 4, 500 ms, "
              "at most 9.38 J (75 W)\n",
              "\"energy_j\":9.375"},
             {300, 4, 0.5, "37.5 J *", "\"least_energy\":[0]"},
             {-1, -1, 0.5, "no device whose power is known is fast enough and fits",
              "\"power_w\":null,\"energy_j\":null"},
             {300, -1, 0.499, "no device whose power is known is fast enough and fits",
              "\"least_energy\":[]"},
             {300, -1, NAN, ": least energy is that of v100", "\"energy_j\":37.5"}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cd_buf b = {0};
        cd_network_report r = report();
        number();
        some.tdp_w = t[k].tdp_w, some.cores_used = t[k].used;
        ((cd_network_estimate_device *)(uintptr_t)c->device)->about = &some;
        r.energy = true, r.deadline_s = t[k].deadline_s;
        cd_network_report_text(&r, &b);
        if (!strstr(b.p, t[k].text)) fail_msg("%zu: %s", k, b.p);
        cd_buf_clear(&b);
        e.graphs = false;
        cd_network_report_json(&r, &b);
        e.graphs = true;
        if (!strstr(b.p, t[k].json)) fail_msg("%zu: %s", k, b.p);
        cd_buf_free(&b);
    }
    ((cd_network_estimate_device *)(uintptr_t)c->device)->about = was;
}

/* What is said of a device counts as it is, also where a part of its cores is used; of the others
 * the data sheet's. */
static void test_power_that_is_said(void **state) {
    (void)state;
    const cd_device *was = c->device->about;
    const cd_device some = {.kind = CD_DEVICE_CPU, .tdp_w = 300, .cores = 4, .cores_used = 1};
    static const char *const good[] = {"V100=120"};
    static const char *const bad[][2] = {{"v100", "expected DEVICE=W"},
                                         {"v100=", "expected DEVICE=W"},
                                         {"v100=0", "watts above 0"},
                                         {"v100=12W", "expected DEVICE=W"},
                                         {"t4=70", "nothing is asked about the device 't4'"}};
    static const char *const twice[] = {"v100=1", "V100=2"};
    cd_arena a = {0};
    cd_buf b = {0};
    cd_network_report r = report();
    number();
    ((cd_network_estimate_device *)(uintptr_t)c->device)->about = &some;
    assert_ok(cd_network_powers_read(NULL, 0, &e, &a, &r.power_w, &err));
    r.energy = true;
    cd_network_report_text(&r, &b);
    assert_non_null(strstr(b.p, "at most 9.38 J (75 W)"));
    ((cd_network_estimate_device *)(uintptr_t)c->device)->about = was;
    cd_buf_clear(&b);
    assert_ok(cd_network_powers_read(good, 1, &e, &a, &r.power_w, &err));
    cd_network_report_text(&r, &b);
    assert_non_null(strstr(b.p, "at most 15 J (120 W)"));
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        assert_status(cd_network_powers_read(bad[k], 1, &e, &a, &r.power_w, &err), CDMPP_EUSAGE);
        if (!strstr(err.msg, bad[k][1])) fail_msg("%s: %s", bad[k][0], err.msg);
    }
    assert_status(cd_network_powers_read(twice, 2, &e, &a, &r.power_w, &err), CDMPP_EUSAGE);
    cd_buf_free(&b);
    cd_arena_free(&a);
    FAULT_SWEEP(f, 1) {
        cd_arena each = {0};
        f.st = cd_network_powers_read(good, 1, &e, &each, &r.power_w, &f.err);
        cd_arena_free(&each);
    }
}

static void test_prices_are_read(void **state) {
    static const char text[] =
        "device,price_per_hour,currency\n# comment\n\nk80,7,EUR\nV100,2.5,USD\n";
    static const struct {
        const char *text;
        cdmpp_status want;
    } bad[] = {{"device,price_per_hour\nv100,-1\n", CDMPP_ERANGE},
               {"v100,1,USD\nv100,2,USD\n", CDMPP_EINVALID},
               {"v100\n", CDMPP_EPARSE}};
    cd_network_prices p = {0};
    (void)state;
    assert_ok(cd_network_prices_read(tmp_put(&dir, "p.csv", text, strlen(text)), &e, &p, &err));
    assert_close(p.device[0].per_hour, 2.5, 0, 0);
    assert_string_equal(p.device[0].currency, "USD");
    cd_network_prices_free(&p);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        p = (cd_network_prices){0};
        assert_status(cd_network_prices_read(
                          tmp_put(&dir, "p.csv", bad[k].text, strlen(bad[k].text)), &e, &p, &err),
                      bad[k].want);
        cd_network_prices_free(&p);
    }
}

TESTS(set_up, tear_down, test_device_names, test_unlike, test_whose, test_csv, test_json, test_text,
      test_page, test_traces, test_deadline, test_energy, test_power_that_is_said,
      test_prices_are_read)
