/* What a task takes in a network over alone: the law's terms against numbers worked out by hand, on
 * both sides of each threshold. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "predictor/estimate/estimate.h"
#include "predictor/estimate/estimate_internal.h"

static const char text[] =
    "- devices: [a]\n  lift: 1.5\n  lift_from: 2\n  call_s: 1e-3\n  refill_bytes_per_s: 1e6\n"
    "- devices: [everything]\n  lift: 3\n";
static cd_network_cost *fits;
static cdmpp_err err;

static int set_up(void **state) {
    cd_diag diag = {0};
    (void)state;
    return cd_network_cost_read("t.yaml", text, strlen(text), &diag, &fits, &err) != CDMPP_OK;
}

static int tear_down(void **state) {
    (void)state;
    cd_network_cost_free(fits);
    return 0;
}

static cd_device device(const char *name, cd_device_kind kind, double l2_kb, double l3_kb) {
    return (cd_device){.name = name, .kind = kind, .l2_kb = l2_kb, .l3_kb = l3_kb};
}

/* What a node says of itself, else its definition: inputs once, results once; -1 where nobody knows
 * or no number holds it. */
TEST(test_bytes_of_a_node) {
    static const char tasks[] =
        "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": ["
        "{\"workload_key\": \"small\", \"ops\": [{\"name\": \"A\", \"shape\": [4, 8], \"dtype\": "
        "\"float32\"}, {\"name\": \"B\", \"axis\": [[\"i\", 0, 4], [\"j\", 0, 8]], \"body\": "
        "\"A[i, j] + 1\"},"
        "{\"name\": \"C\", \"axis\": [[\"i\", 0, 4]], \"body\": \"B[i, 0]\"}]},"
        "{\"workload_key\": \"huge\", \"ops\": [{\"name\": \"A\", \"shape\": [2000000000, "
        "2000000000, 2000000000], \"dtype\": \"float32\"}, {\"name\": \"B\", \"axis\": [[\"i\", 0, "
        "4]], \"body\": \"A[i, 0, 0]\"}]}]}";
    static const struct {
        const char *key;
        int64_t read, write, moved, result;
    } t[] = {
        {"small", -1, -1, 4 * 32 + 4 * 4, 16}, {"huge", -1, -1, -1, -1}, {"small", 7, 5, 12, 5},
        {"small", 7, -1, 4 * 32 + 4 * 4, 16},  {"other", -1, 3, -1, 3},  {NULL, -1, -1, -1, -1},
        {NULL, INT64_MAX, 1, -1, 1},           {NULL, 0, 0, 0, 0}};
    cd_task_registry *known;
    assert_ok(cd_task_registry_new(&known, &err));
    assert_ok(cd_task_registry_load_text(known, "t.json", tasks, sizeof tasks - 1, &err));
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cd_network_node n = {.key = t[k].key, .read_bytes = t[k].read, .write_bytes = t[k].write};
        const cd_network_graph g = {.n_node = 1, .node = &n};
        int64_t result;
        assert_int_equal(cd_node_cost_moved(&g, known, 0, &result), t[k].moved);
        assert_int_equal(result, t[k].result);
    }
    cd_task_registry_free(known);
    const cd_device d = {.bandwidth_gb_s = 2}, none = {0};
    assert_true(cd_node_cost_share(1000000000, 1, &d) == 0.5 &&
                cd_node_cost_share(3000000000, 1, &d) == 1 && cd_node_cost_share(0, 1, &d) == 0);
    assert_true(cd_node_cost_share(1, 0, &d) == 0 && cd_node_cost_share(1, 1, &none) == 0 &&
                cd_node_cost_share(1, 1, NULL) == 0 &&
                cd_node_cost_share(1000000000, 0.25, &d) == 1);
}

/* Tables say KiB: 1000 of them are 1,024,000 bytes. */
static void test_cache_is_in_kib(void **state) {
    (void)state;
    cd_device d = device("a", CD_DEVICE_CPU, 10, 1000);
    assert_close(cd_network_cost_cache(&d), 1024000, 0, 0);
    d.kind = CD_DEVICE_GPU; /* its third level, where it has one */
    assert_close(cd_network_cost_cache(&d), 1024000, 0, 0);
    d.l3_kb = 0;
    assert_close(cd_network_cost_cache(&d), 10240, 0, 0);
    d.kind = CD_DEVICE_CPU;
    assert_true(isnan(cd_network_cost_cache(&d)));
    d.l3_kb = CD_DEVICE_UNKNOWN;
    assert_true(isnan(cd_network_cost_cache(&d)));
    assert_true(isnan(cd_network_cost_cache(NULL)));
}

static void test_networks_are_lifted_from_there(void **state) {
    (void)state;
    cd_device d = device("a", CD_DEVICE_CPU, 10, 1000);
    const double from = 2 * 1024000.0;
    assert_close(cd_node_cost_law(fits, NULL, &d, (cd_node_cost_bytes){from - 1, from - 1}).lift, 1,
                 0, 0);
    assert_close(cd_node_cost_law(fits, NULL, &d, (cd_node_cost_bytes){from, from}).lift, 1, 0, 0);
    assert_close(cd_node_cost_law(fits, NULL, &d, (cd_node_cost_bytes){from + 1, from + 1}).lift,
                 1.5, 0, 0);
    d.l3_kb = CD_DEVICE_UNKNOWN; /* nobody knows whether it is large */
    assert_close(cd_node_cost_law(fits, NULL, &d, (cd_node_cost_bytes){1e12, 1e12}).lift, 1, 0, 0);
    const cd_device all = device("everything", CD_DEVICE_CPU, 10, 1000),
                    none = device("none", CD_DEVICE_CPU, 10, 1000);
    assert_close(cd_node_cost_law(fits, NULL, &all, (cd_node_cost_bytes){0, 0}).lift, 3, 0, 0);
    const cd_node_cost_scaling_law l =
        cd_node_cost_law(fits, NULL, &none, (cd_node_cost_bytes){1e12, 1e12});
    assert_true(l.lift == 1 && l.call_s == 0 && l.refill_bytes_per_s == 0 && l.stays_bytes == 0);
}

/* 1.5 times, a call, and weights under two times 10 KiB at a megabyte a second. */
static void test_seconds_of_a_task(void **state) {
    static const struct {
        int64_t weights;
        double more;
    } row[] = {{-1, 0}, {0, 0}, {1, 1e-6}, {20479, 0.020479}, {20480, 0}, {1 << 30, 0}};
    (void)state;
    const cd_device d = device("a", CD_DEVICE_CPU, 10, 1000);
    const cd_node_cost_scaling_law large = cd_node_cost_law(fits, NULL, &d,
                                                            (cd_node_cost_bytes){1e9, 1e9}),
                                   small =
                                       cd_node_cost_law(fits, NULL, &d, (cd_node_cost_bytes){0, 0});
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        assert_close(cd_node_cost_law_s(&large, 2, row[k].weights), 3 + 1e-3 + row[k].more, 1e-15,
                     0);
        assert_close(cd_node_cost_law_s(&small, 2, row[k].weights), 2 + 1e-3 + row[k].more, 1e-15,
                     0);
    }
    /* no cache of its own is known: nothing had stayed */
    cd_device bare = device("a", CD_DEVICE_CPU, CD_DEVICE_UNKNOWN, 1000);
    const cd_node_cost_scaling_law l =
        cd_node_cost_law(fits, NULL, &bare, (cd_node_cost_bytes){0, 0});
    assert_close(cd_node_cost_law_s(&l, 2, 1), 2 + 1e-3, 1e-15, 0);
}

/* ---- networks: a task, three runs of a task by a record, a table of which rows are picked, and
 * what has no law ---- */
enum { NODES = 6 };
typedef struct {
    cd_network_node node[NODES];
    cd_node_cost_entry entry[NODES];
    cd_network_graph g;
    cd_node_cost c;
} made;

static void make(made *m) {
    static const cd_cost_source source[NODES] = {CD_COST_MODEL, CD_COST_RECORD,  CD_COST_MODEL,
                                                 CD_COST_GIVEN, CD_COST_LIBRARY, CD_COST_MODEL};
    static const cd_node_kind kind[NODES] = {CD_NODE_TASK, CD_NODE_TASK,    CD_NODE_TASK,
                                             CD_NODE_TASK, CD_NODE_LIBRARY, CD_NODE_GIVEN};
    static const int64_t weights[NODES] = {1000, 20000, 5000, 1000, 1000, 1000};
    for (int k = 0; k < NODES; k++) {
        m->node[k] = cd_network_node_init("n", k == 2 ? "Embedding" : "dense", kind[k]);
        m->node[k].weight_bytes = weights[k];
        m->entry[k] = (cd_node_cost_entry){.seconds = k + 1,
                                           .low_s = k + 0.5,
                                           .high_s = k + 2,
                                           .source = source[k],
                                           .bytes = 300,
                                           .moved = k == 1 ? 0 : 1000 * (k + 1)};
    }
    m->node[1].repeat = 3;
    m->g = (cd_network_graph){.n_node = NODES, .node = m->node};
    m->c = (cd_node_cost){.n = NODES, .node = m->entry, .traffic = 512000};
}

static void check(const cd_node_cost_entry *e, int k, double lift, double more) {
    assert_close(e->seconds, (k + 1) * lift + more, 1e-15, 0);
    assert_close(e->low_s, (k + 0.5) * lift + more, 1e-15, 0);
    assert_close(e->high_s, (k + 2) * lift + more, 1e-15, 0);
}

static void test_tasks_of_models_and_records_change(void **state) {
    made m;
    (void)state;
    const cd_device d = device("a", CD_DEVICE_CPU, 10, 1000);
    const cd_node_cost_scaling_law l =
        cd_node_cost_law(fits, NULL, &d, (cd_node_cost_bytes){1e9, 1e9});
    make(&m);
    cd_node_cost_in_place(&m.c, &m.g, &l);
    check(&m.entry[0], 0, 1.5, 1e-3 + 1e-3);
    check(&m.entry[1], 1, 1.5, 1e-3 + 20e-3);
    check(&m.entry[2], 2, 1.5, 1e-3 + 0.3e-3); /* no more than what it hands on */
    for (int k = 3; k < NODES; k++) check(&m.entry[k], k, 1, 0);
    make(&m);
    m.node[2].op = "Gather_2";
    m.entry[2].bytes = -1; /* unknown: the whole table */
    cd_node_cost_in_place(&m.c, &m.g, &l);
    check(&m.entry[2], 2, 1.5, 1e-3 + 5e-3);
    make(&m);
    m.entry[2].bytes = 6000; /* more than there is */
    cd_node_cost_in_place(&m.c, &m.g, &l);
    check(&m.entry[2], 2, 1.5, 1e-3 + 5e-3);
}

static void test_row_of_a_fit(void **state) {
    made m;
    (void)state;
    make(&m);
    const cd_device d = device("a", CD_DEVICE_CPU, 10, 1000);
    const cd_network_cost_row r = cd_node_cost_row(&m.c, &m.g, &d, 17);
    assert_close(r.alone_s, 1 + 3 * 2 + 3, 1e-15, 0);
    assert_close(r.calls, 5, 0, 0);
    assert_close(r.refill_bytes[0], 1000 + 3 * 20000 + 300, 0, 0);
    assert_close(r.rest_s, 7, 1e-15, 0);
    assert_close(r.moved_caches, 0.5, 1e-15, 0);
    assert_close(cd_node_cost_row(&m.c, &m.g, &d, 9).rest_s, 0, 0, 0); /* workers side by side */
}

/* Of measured times: limits are 2, 12, 48 and more times 10 KiB; an operator without a time makes
 * the row none. */
static void test_row_of_measured_times(void **state) {
    made m;
    (void)state;
    make(&m);
    const cd_device d = device("a", CD_DEVICE_CPU, 10, 1000);
    double alone[NODES];
    for (int k = 0; k < NODES; k++)
        alone[k] = k + 1, m.node[k].repeat = m.node[k].repeat ? m.node[k].repeat : 1;
    cd_network_cost_row r = cd_node_cost_row_alone(&m.g, NULL, alone, &d);
    double want = 0, calls = 0;
    for (int k = 0; k < NODES; k++)
        if (m.node[k].kind != CD_NODE_FREE)
            want += alone[k] * (double)m.node[k].repeat, calls += (double)m.node[k].repeat;
    assert_close(r.alone_s, want, 1e-15, 0);
    assert_close(r.calls, calls, 0, 0);
    assert_close(r.rest_s, 0, 0, 0);
    for (int k = 1; k < CD_NETWORK_COST_LIMITS; k++)
        assert_true(r.refill_bytes[k] >= r.refill_bytes[k - 1]);
    const double before[2] = {r.refill_bytes[1], r.refill_bytes[2]};
    m.node[0].weight_bytes = 200 * 1024; /* more than 12 times 10 KiB, less than 48 times */
    r = cd_node_cost_row_alone(&m.g, NULL, alone, &d);
    assert_true(r.refill_bytes[1] < before[0] && r.refill_bytes[2] > before[1]);
    alone[0] = NAN;
    assert_true(isnan(cd_node_cost_row_alone(&m.g, NULL, alone, &d).alone_s));
}

/* What memory brings, by the description: weights that the shared cache held alone, where the
 * network has more of them than it holds. A table of which rows are picked counts as none. */
static void test_row_of_a_description(void **state) {
    made m;
    (void)state;
    make(&m);
    cd_device d = device("a", CD_DEVICE_CPU, 10, 20); /* 24,000 bytes of weights */
    assert_close(cd_node_cost_weights(&m.g), 24000, 0, 0);
    assert_close(cd_node_cost_row(&m.c, &m.g, &d, 17).fetch_bytes_per_s, 0, 0, 0); /* no rate */
    d.bandwidth_gb_s = 3;
    cd_network_cost_row r = cd_node_cost_row(&m.c, &m.g, &d, 17);
    assert_close(r.fetch_bytes_per_s, 2e9, 1e-12, 0);
    assert_close(r.fetch_to, 2, 1e-12, 0);
    assert_close(r.fetch_s, (1000 + 3 * 20000 + 300) / 2e9, 1e-12, 0);
    d.probe[CD_DEVICE_PROBE_probe_memory] = 1.5; /* of one thread */
    assert_close(cd_node_cost_row(&m.c, &m.g, &d, 17).fetch_bytes_per_s, 1e9, 1e-12, 0);
    d.l3_kb = 24000 / 1024.0 / CD_NETWORK_COST_KEEPS; /* the cache holds all */
    assert_close(cd_node_cost_row(&m.c, &m.g, &d, 17).fetch_s, 0, 0, 0);
    d.l3_kb = 20;
    m.node[1].weight_bytes = 20 * 1024; /* as large as the cache: it comes from memory alone, too */
    assert_close(cd_node_cost_row(&m.c, &m.g, &d, 17).fetch_s, 1300 / 1e9, 1e-12, 0);
    d.l3_kb = 10;
    /* no level behind its own */
    assert_close(cd_node_cost_row(&m.c, &m.g, &d, 17).fetch_bytes_per_s, 0, 0, 0);
}

static void test_refills_are_of_large_networks(void **state) {
    static const char law[] = "- {devices: [a], refill_bytes_per_s: 1e6, refill_from: 2}\n";
    cd_network_cost *l;
    cd_diag diag = {0};
    (void)state;
    assert_ok(cd_network_cost_read("t.yaml", law, sizeof law - 1, &diag, &l, &err));
    const cd_device d = device("a", CD_DEVICE_CPU, 10, 1000);
    assert_close(
        cd_node_cost_law(l, NULL, &d, (cd_node_cost_bytes){1e12, 2 * 1024000.0}).refill_bytes_per_s,
        0, 0, 0);
    assert_close(cd_node_cost_law(l, NULL, &d, (cd_node_cost_bytes){0, 2 * 1024000.0 + 1})
                     .refill_bytes_per_s,
                 1e6, 0, 0);
    cd_network_cost_free(l);
}

/* --refill-gbs: what tasks read and write, at that rate. */
static void test_refill_of_all_that_moves(void **state) {
    made m;
    (void)state;
    make(&m);
    cd_node_cost_refill(&m.c, &m.g, 1e6);
    check(&m.entry[0], 0, 1, 1e-3);
    check(&m.entry[1], 1, 1, 0);
    check(&m.entry[2], 2, 1, 3e-3);
    for (int k = 3; k < NODES; k++) check(&m.entry[k], k, 1, 0);
    make(&m);
    cd_node_cost_refill(&m.c, &m.g, 0);
    for (int k = 0; k < NODES; k++) check(&m.entry[k], k, 1, 0);
}

TESTS(set_up, tear_down, test_bytes_of_a_node, test_cache_is_in_kib,
      test_networks_are_lifted_from_there, test_seconds_of_a_task,
      test_tasks_of_models_and_records_change, test_row_of_a_fit, test_row_of_measured_times,
      test_row_of_a_description, test_refills_are_of_large_networks, test_refill_of_all_that_moves)
