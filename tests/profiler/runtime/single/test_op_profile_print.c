/* A profile printed: every number is another one, so each stands in its own place; operators are
 * named once. */
#include <string.h>

#include "check.h"
#include "profiler/runtime/single/single_internal.h"

static cdmpp_err err;

/* Nodes: two Convs behind each other, a view, a Relu; an Add; nothing of the graph in the last
 * group. */
static cd_graph_node node[] = {{.name = "first", .op = "Conv"},
                               {.name = "second", .op = "Conv"},
                               {.name = "view", .op = "Reshape", .view = true},
                               {.name = "third", .op = "Relu"},
                               {.name = "sum", .op = "Add"}};
static const uint32_t four[] = {0, 1, 2, 3}, one[] = {4};
static cd_workload_group group[] = {{.task = 0, .n_node = 4, .node = four},
                                    {.task = CD_GRAPH_NONE, .n_node = 1, .node = one},
                                    {.task = 0, .n_node = 0},
                                    {.task = 0, .n_node = 4, .node = four}};
static cd_op_profile_group ran[] = {
    {.ran = true,
     .key = true,
     .alone_s = 0.5e-3,
     .place_s = 2e-3,
     .share = 0.25,
     .flop = 4e6,
     .read = 1024,
     .written = 2048,
     .bytes = {4096, 1024}},
    {.ran = true,
     .alone_s = 3e-3,
     .place_s = 4e-3,
     .share = 0.5,
     .flop = 2e6,
     .read = 512,
     .written = 512,
     .bytes = {8192, 0}},
    {.ran = false, .alone_s = 9, .place_s = 9, .share = 9, .flop = 8, .read = 16, .written = 32},
    {.ran = true,
     .alone_s = 5e-3,
     .place_s = 6e-3,
     .share = 0.125,
     .flop = 3e6,
     .read = 3072,
     .written = 1024,
     .bytes = {2048, 512}},
};
static cd_graph graph = {.name = "net", .node = node, .n_node = 5};
static cd_workload_task task[] = {{.task = 0, .weight = 17}, {.task = 0, .weight = 18}};
static cd_program_select_task chosen[2];
static cd_workload w = {.graph = &graph, .n_task = 2, .n_group = 4, .task = task, .group = group};
static const cd_program_select p = {.n = 2, .task = chosen};
static cd_op_profile n = {.n = 4,
                          .group = ran,
                          .n_ran = 3,
                          .wall_s = 21,
                          .passes = 22,
                          .memory = {.all = 3000000, .weights = 1000000, .inner_least = 2000000},
                          .rss_peak = 4000000};

static int set_up(void **state) {
    static cd_task_registry *tasks;
    (void)state;
    if (cd_task_registry_new(&tasks, &err) ||
        cd_task_registry_load(tasks, "tests/fuzz/seeds/taskfile/matmul.tasks.json", &err))
        return 1;
    w.tasks = tasks;
    n.pass.median_s = 0.5, n.pass.mean_s = 0.625, n.pass.min_s = 0.25, n.pass.std_s = 0.125,
    n.pass.ci = 0.0625, n.pass.n_kept = 23;
    chosen[0].tried = 31, chosen[0].failed = 32, chosen[0].from_log = true,
    chosen[0].item.out.time.median_s = 0.75, chosen[0].item.out.time.cv = 0.375;
    chosen[1].tried = 33, chosen[1].failed = 34, chosen[1].status = CDMPP_EBACKEND;
    snprintf(chosen[1].err.msg, sizeof chosen[1].err.msg, "no \"cc\"");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    cd_task_registry_free(w.tasks);
    return 0;
}

static void is(cd_buf *b, const char *want) {
    assert_string_equal(b->p, want);
    cd_buf_clear(b);
}

static void test_operators(void **state) {
    cd_buf b = {0};
    (void)state;
    cd_op_profile_operators(&b, &w, &group[0], '+');
    is(&b, "Conv+Relu"); /* the view is none, two Convs are one word */
    cd_op_profile_operators(&b, &w, &group[1], '+');
    is(&b, "Add");
    cd_op_profile_operators(&b, &w, &group[2], '+');
    is(&b, "layout_transform");
    cd_buf_free(&b);
}

#define HEAD                                                                                       \
    "net: 500.0000 ms a pass (median of 23, 95 % interval +-6.2 %), 3 of 4 groups, 2 tasks (1 "    \
    "without a program)\n"                                                                         \
    "memory: weights 1.0 MB, most of the rest at once 2.0 MB, block 3.0 MB, resident peak 4.0 "    \
    "MB\n"                                                                                         \
    "group   alone ms   place ms  share%   GFLOP/s   args KiB   live KiB  operators (*: key)\n"    \
    "    0     0.5000     2.0000   25.0*      2.00        3.0        4.0  Conv+Relu\n"
static void test_text(void **state) {
    cd_buf b = {0};
    (void)state;
    assert_ok(cd_op_profile_text(&b, &w, &p, &n, false, &err));
    is(&b, HEAD "    1     3.0000     4.0000   50.0       0.50        1.0        8.0  Add\n    3   "
                "  5.0000     6.0000   12.5       0.50        4.0        2.0  Conv+Relu\n");
    assert_ok(cd_op_profile_text(&b, &w, &p, &n, true, &err));
    is(&b, HEAD);
    cd_buf_free(&b);
}

static void test_csv(void **state) {
    cd_buf b = {0};
    (void)state;
    assert_ok(cd_op_profile_csv(&b, &w, &p, &n, false, &err));
    is(&b, "group,operators,alone_s,in_place_s,share,key,flop,read_bytes,written_bytes,live_bytes,"
           "scratch_bytes\n0,Conv+Relu,0.0005,0.002,0.25,1,4000000,1024,2048,4096,1024\n1,Add,0."
           "003,0.004,0.5,0,2000000,512,512,8192,0\n"
           "3,Conv+Relu,0.005,0.006,0.125,0,3000000,3072,1024,2048,512\n");
    assert_ok(cd_op_profile_csv(&b, &w, &p, &n, true, &err));
    /* by type: 2 and 6 ms are one row */
    is(&b, "op_name,op_time,op_proportion\nConv_Relu,8000000.0,37.5\nAdd,4000000.0,50\n");
    cd_buf_free(&b);
}

static void test_json(void **state) {
    cd_buf b = {0};
    (void)state;
    assert_ok(cd_op_profile_json(&b, &w, &p, &n, &err));
    static const char *const part[] = {
        "{\"network\":\"net\",\"pass\":{\"median_s\":0.5,\"mean_s\":0.625,\"min_s\":0.25,\"std_s\":"
        "0.125,\"ci\":0.0625,\"n\":23,\"runs\":22,\"wall_s\":21},"
        "\"memory\":{\"block_bytes\":3000000,\"weight_bytes\":1000000,\"inner_bytes\":2000000,"
        "\"rss_peak_bytes\":4000000},\"groups\":[{\"group\":0,\"name\":\"first\",\"operators\":"
        "\"Conv+Relu\",\"workload_key\":",
        ",\"ran\":true,\"alone_s\":0.0005,\"in_place_s\":0.002,\"share\":0.25,\"key\":true,\"live_"
        "bytes\":4096,\"scratch_bytes\":1024,\"flop\":4000000,\"read_bytes\":1024,\"written_"
        "bytes\":2048},{\"group\":1,\"name\":\"sum\",\"operators\":\"Add\","
        "\"ran\":true,\"alone_s\":0.003,\"in_place_s\":0.004,\"share\":0.5,\"key\":false,\"live_"
        "bytes\":8192,\"scratch_bytes\":0,\"flop\":2000000,\"read_bytes\":512,\"written_bytes\":"
        "512},{\"group\":2,\"name\":\"\",\"operators\":\"layout_transform\",",
        ",\"ran\":false,\"flop\":8,\"read_bytes\":16,\"written_bytes\":32},{\"group\":3,",
        "}],\"tasks\":[{\"workload_key\":",
        ",\"weight\":17,\"tried\":31,\"failed\":32,\"from_log\":true,\"median_s\":0.75,\"cv\":0."
        "375},{",
        ",\"weight\":18,\"tried\":33,\"failed\":34,\"from_log\":false,\"error\":\"no "
        "\\\"cc\\\"\"}]}"};
    const char *at = b.p;
    for (size_t k = 0; k < sizeof part / sizeof *part; k++) {
        at = strstr(at, part[k]);
        if (!at) fail_msg("no %s in %s", part[k], b.p);
        at += strlen(part[k]);
    }
    assert_int_equal(*at, 0);
    cd_buf_free(&b);
}

TESTS(set_up, tear_down, test_operators, test_text, test_csv, test_json)
