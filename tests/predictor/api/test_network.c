/* Networks through the public handles: the same numbers as the rooms that cdmpp-replay calls,
 * errors, ownership. */
#include <stdlib.h>

#include "base/text/text.h"
#include "check.h"
#include "made_model.h"
#include "predictor/network_report/network_report.h"

static const char fork_text[] =
    "{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"networks\": ["
    " {\"name\": \"fork\", \"batch\": 4, \"device\": \"v100\", \"nodes\": ["
    "  {\"name\": \"a\", \"op\": \"Conv\", \"kind\": \"given\", \"given_s\": 1e-3, "
    "\"write_bytes\": 2000000, \"read_bytes\": 1500000},"
    "  {\"name\": \"b\", \"op\": \"Conv\", \"kind\": \"given\", \"given_s\": 2e-3, "
    "\"write_bytes\": 2000000, \"read_bytes\": 2000000, \"after\": [\"a\"]},"
    "  {\"name\": \"c\", \"kind\": \"given\", \"given_s\": 5e-4, \"write_bytes\": 1000000, "
    "\"read_bytes\": 2000000, \"after\": [\"a\"], \"repeat\": 2}]},"
    " {\"name\": \"gap\", \"nodes\": ["
    "  {\"name\": \"a\", \"kind\": \"given\", \"given_s\": 1e-3},"
    "  {\"name\": \"odd\", \"op\": \"Strange\", \"kind\": \"unknown\", \"why\": \"no definition of "
    "Strange\", \"after\": [\"a\"]}]}]}";

static tmp_dir dir;
static char graph[256], model[256];

static int set_up(void **state) {
    static const char *const set[] = {"train.rounds=20", "model.folds=2", "model.members=rows"};
    static const char *const target[] = {"llvm -keys=cpu -model=chip"};
    cd_task_registry *tasks = NULL;
    cdmpp_err err = {0};
    char h5[256], text[512];
    (void)state;
    dir = tmp_make();
    snprintf(graph, sizeof graph, "%s",
             tmp_put(&dir, "fork.json", fork_text, sizeof fork_text - 1));
    snprintf(model, sizeof model, "%s", tmp_path(&dir, "m.cdmpp"));
    cdmpp_status st = cd_task_registry_new(&tasks, &err);
    if (!st) st = cd_task_registry_load(tasks, MADE_TASKS, &err);
    if (!st)
        st = made_extract(&dir, cd_task_registry_at(tasks, 0)->workload_key, target, 1, h5, &err);
    if (!st) st = made_learn(h5, set, 3, model, &err);
    if (st) print_error("%s\n", cdmpp_err_format(&err, text, sizeof text));
    cd_task_registry_free(tasks);
    return st != CDMPP_OK;
}

static int tear_down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

static char *json_of(const cdmpp_estimate *e, int nodes) {
    cdmpp_err err = {0};
    size_t n = 0;
    assert_ok(cdmpp_estimate_json(e, nodes, NULL, 0, &n, &err));
    char *text = malloc(n + 1);
    assert_non_null(text);
    assert_status(cdmpp_estimate_json(e, nodes, text, n, &n, &err), CDMPP_ERANGE);
    assert_ok(cdmpp_estimate_json(e, nodes, text, n + 1, &n, &err));
    assert_int_equal(strlen(text), n);
    return text;
}

/* What the command prints for these options, with its warnings. */
static void expect_json(cd_network_estimate_options *o, const char *want) {
    cd_log log;
    cdmpp_err err = {0};
    cd_network_estimate e = {0};
    const cd_network_report r = {.e = &e, .ops = true, .deadline_s = NAN};
    cd_buf b = {0};
    cd_log_init(&log, "", NULL);
    log.keep = true;
    o->log = &log;
    assert_ok(cd_network_estimate_check(o, &err));
    assert_ok(cd_network_estimate_open(o, &e, &err));
    assert_ok(cd_network_estimate_run(&e, &err));
    cd_network_report_json(&r, &b);
    assert_string_equal(b.p, want);
    cd_buf_free(&b);
    cd_network_estimate_free(&e);
    cd_log_done(&log);
}

static void a_graph_with_times(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cdmpp_network *n = NULL;
    cdmpp_estimate *e = NULL;
    const cdmpp_estimate_options o = {
        .size = sizeof o, .device = "v100", .given_times = 1, .level = 0.8};
    assert_ok(cdmpp_network_load_graph(graph, NULL, &n, &err));
    assert_int_equal(cdmpp_network_count(n), 2);
    assert_string_equal(cdmpp_network_name(n, 0), "fork");
    assert_string_equal(cdmpp_network_name(n, 1), "gap");
    assert_null(cdmpp_network_name(n, 2));
    assert_ok(cdmpp_estimate_network(n, &o, &e, &err));
    cdmpp_network_free(n); /* the estimate does not need it */
    assert_int_equal(cdmpp_estimate_count(e), 2);

    cdmpp_estimate_total t = {.size = sizeof t};
    assert_ok(cdmpp_estimate_row(e, 0, &t, &err));
    assert_string_equal(t.network, "fork");
    assert_string_equal(t.device, "v100");
    assert_int_equal(t.batch, 4);
    assert_int_equal(t.status, CDMPP_OK);
    assert_int_equal(t.n_node, 3);
    assert_true(t.seconds >= 4e-3 && isnan(t.low) && isnan(t.high));
    double sum = 0, last = 0;
    for (size_t k = 0; k < t.n_node; k++) {
        cdmpp_estimate_op op = {.size = sizeof op};
        assert_ok(cdmpp_estimate_node(e, 0, k, &op, &err));
        assert_string_equal(op.source, "given");
        assert_string_equal(op.type, k < 2 ? "Conv" : "");
        assert_close(op.end - op.start, op.seconds * (double)op.repeat, 1e-9, 0);
        sum += op.seconds * (double)op.repeat;
        last = fmax(last, op.end);
    }
    assert_close(sum, 4e-3, 1e-12, 0);
    assert_close(last, t.seconds, 1e-12, 0);

    assert_ok(cdmpp_estimate_row(e, 1, &t, &err));
    assert_int_equal(t.status, CDMPP_ESCHEMA);
    assert_non_null(strstr(t.error, "Strange"));
    assert_true(isnan(t.seconds) && t.peak_bytes == -1 && t.n_node == 0);

    char *json = json_of(e, 1);
    cd_network_estimate_options a = cd_network_estimate_defaults();
    const char *path = graph;
    a.graph = (cd_texts){1, &path};
    a.device = "v100";
    a.replay_given = true;
    a.level = 0.8;
    expect_json(&a, json);
    free(json);
    cdmpp_estimate_free(e);
}

/* A time that a model gives has both ends of an interval that holds it, or neither, and then a
 * reason. */
static void intervals_of_ops(const cdmpp_estimate *e, size_t n) {
    size_t without = 0;
    cdmpp_err err = {0};
    for (size_t k = 0; k < n; k++) {
        cdmpp_estimate_op op = {.size = sizeof op};
        assert_ok(cdmpp_estimate_node(e, 0, k, &op, &err));
        assert_true(op.seconds >= 0 && isfinite(op.seconds));
        assert_true(!isnan(op.low) == !isnan(op.high));
        if (!isnan(op.low)) assert_true(op.low <= op.seconds && op.seconds <= op.high);
        else assert_true(op.flags & CDMPP_FLAG_OUT_OF_RANGE && op.reason && *op.unlike);
        without += isnan(op.low) ? 1 : 0;
    }
    assert_true(without > 0);
}

static void the_zoo_with_a_model(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cdmpp_network *n = NULL;
    cdmpp_estimate *e = NULL;
    const char *const models[] = {model};
    const cdmpp_network_options of = {.size = sizeof of, .batch = 2};
    const cdmpp_estimate_options o = {.size = sizeof o,
                                      .model = models,
                                      .n_model = 1,
                                      .device = "chip",
                                      .trials = 2,
                                      .nthreads = 2};
    assert_ok(cdmpp_network_load("squeezenet-1.1", &of, &n, &err));
    assert_ok(cdmpp_estimate_network(n, &o, &e, &err));
    cdmpp_estimate_total t = {.size = sizeof t};
    assert_ok(cdmpp_estimate_row(e, 0, &t, &err));
    assert_int_equal(t.batch, 2);
    /* operators beyond what the made model learned, of which it has no law: a time, and no
     * interval */
    assert_true(t.seconds > 0 && isfinite(t.seconds) && isnan(t.low) && isnan(t.high) &&
                t.unlike_share > 0.01);
    intervals_of_ops(e, t.n_node);
    char *json = json_of(e, 1);
    const char *name = "squeezenet-1.1", *path = model;
    cd_network_estimate_options a = cd_network_estimate_defaults();
    a.network = (cd_texts){1, &name};
    a.cost_model = (cd_texts){1, &path};
    a.device = "chip";
    a.batch = "2";
    a.trials = 2;
    a.cache = "";
    expect_json(&a, json);
    free(json);
    cdmpp_estimate_free(e);
    cdmpp_network_free(n);
}

static void what_is_refused(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cdmpp_network *n = NULL;
    cdmpp_estimate *e = NULL;
    const char *const dims[] = {"height=16"};
    assert_status(cdmpp_network_load("resnet-19", NULL, &n, &err), CDMPP_ESCHEMA);
    assert_status(cdmpp_network_load("resnet-18", &(cdmpp_network_options){.batch = 1}, &n, &err),
                  CDMPP_EUSAGE);
    assert_status(cdmpp_network_load("resnet-18",
                                     &(cdmpp_network_options){.size = sizeof(cdmpp_network_options),
                                                              .layout = "nhcw"},
                                     &n, &err),
                  CDMPP_EUSAGE);
    assert_status(cdmpp_network_load(
                      "resnet-18",
                      &(cdmpp_network_options){.size = sizeof(cdmpp_network_options), .batch = -1},
                      &n, &err),
                  CDMPP_EUSAGE);
    assert_status(cdmpp_network_load_graph("/nowhere.json", NULL, &n, &err), CDMPP_EIO);
    assert_null(n);
    assert_ok(cdmpp_network_load_graph(
        graph,
        &(cdmpp_network_options){.size = sizeof(cdmpp_network_options), .dim = dims, .n_dim = 1},
        &n, &err));
    assert_status(cdmpp_estimate_network(n, NULL, &e, &err), CDMPP_EMODEL);
    assert_status(cdmpp_estimate_network(
                      n,
                      &(cdmpp_estimate_options){.size = sizeof(cdmpp_estimate_options), .level = 2},
                      &e, &err),
                  CDMPP_EUSAGE);
    assert_status(
        cdmpp_estimate_network(
            n, &(cdmpp_estimate_options){.size = sizeof(cdmpp_estimate_options), .trials = -1}, &e,
            &err),
        CDMPP_EUSAGE);
    assert_null(e);
    assert_ok(cdmpp_estimate_network(
        n,
        &(cdmpp_estimate_options){
            .size = sizeof(cdmpp_estimate_options), .given_times = 1, .allow_missing = 1},
        &e, &err));
    cdmpp_estimate_total t = {.size = sizeof t};
    cdmpp_estimate_op op = {.size = sizeof op};
    assert_ok(cdmpp_estimate_row(e, 1, &t, &err));
    assert_int_equal(t.status, CDMPP_OK);
    assert_status(cdmpp_estimate_row(e, 2, &t, &err), CDMPP_ERANGE);
    assert_status(cdmpp_estimate_node(e, 1, t.n_node, &op, &err), CDMPP_ERANGE);
    t.size = 8;
    assert_status(cdmpp_estimate_row(e, 0, &t, &err), CDMPP_EUSAGE);
    cdmpp_estimate_free(e);
    cdmpp_network_free(n);
    cdmpp_estimate_free(NULL);
    cdmpp_network_free(NULL);
}

static int run_suite(void) {
    const struct CMUnitTest t[] = {cmocka_unit_test(a_graph_with_times),
                                   cmocka_unit_test(the_zoo_with_a_model),
                                   cmocka_unit_test(what_is_refused)};
    unsetenv("CDMPP_MODELS");
    return cmocka_run_group_tests_name("network", t, set_up, tear_down);
}

SUITE(.run = run_suite)
