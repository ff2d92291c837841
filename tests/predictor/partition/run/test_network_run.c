/* Small networks run here with schedules of a book: values, what is drawn and said so, times that
 * fit each other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "run_replay.h"

#define DATA   "tests/profiler/data/"
#define TARGET "llvm -num-cores=1"

static cd_measure *measure;

static int up(void **state) {
    (void)state;
    cdmpp_err err = {0};
    const cd_measure_options o = {
        .threads = 1, .jobs = 1, .cache = "", .timing = {.budget_s = 0.005}};
    return cd_measure_open(&o, &measure, &err) != CDMPP_OK;
}

static int down(void **state) {
    (void)state;
    cd_measure_close(measure);
    return 0;
}

static cd_network_loaded load(const char *file) {
    static const char *const dim[] = {"height=16", "t=3"};
    const bool whole = strstr(file, "whole") != NULL, recurrent = strstr(file, "recurrent") != NULL;
    const cd_onnx_options o = {.dim = whole ? dim : dim + 1, .n_dim = whole || recurrent};
    cdmpp_err err = {0};
    cd_network_loaded l;
    assert_ok(cd_network_load(
        &(cd_network_load_options){
            .network = file, .batch = whole || recurrent ? 2 : 0, .target = TARGET, .onnx = &o},
        &l, &err));
    return l;
}

static cd_network_run *run(const cd_network_loaded *l, cd_network_run_options a) {
    cdmpp_err err = {0};
    cd_network_run *r = NULL;
    a.measure = measure;
    a.target = TARGET;
    a.trials = 1;
    a.budget_s = 0.02;
    const cdmpp_status st = cd_network_run_measure(l, &a, &r, &err);
    if (st) fail_msg("%s %s", err.key, err.msg);
    return r;
}

/* First all drawn; the book of these then is what runs again. */
static void test_book(void **state) {
    (void)state;
    cd_network_loaded l = load(DATA "whole.onnx");
    cd_schedule_db *book;
    cdmpp_err err = {0};
    assert_ok(cd_schedule_db_new(&book, &err));
    cd_network_run *r = run(
        &l,
        (cd_network_run_options){.schedules = book, .sampled = book, .alone = true, .check = true});
    assert_true(r->n == l.graph->n_node && r->n_ran == r->n && r->n_sampled == r->n && !r->n_left &&
                r->workers == 1);
    assert_true(r->max_error >= 0 && r->max_error < 1e-5);
    assert_true(r->pass_s > 0 && r->cold_s > 0 && r->memory.all > r->memory.weights &&
                r->memory.weights > 0);
    for (uint32_t k = 0; k < r->n; k++) {
        const cd_network_run_node *n = &r->node[k];
        assert_true(n->from == CD_NETWORK_RUN_SAMPLED &&
                    !strncmp(n->schedule, "drawn: best of", 14) && !n->why);
        assert_true(n->place_s > 0 && n->alone_s > 0 && n->warm_s > 0 && n->cool_s > 0 &&
                    n->start_s >= 0 && n->end_s >= n->start_s && n->worker == 0);
        if (k) assert_true(n->start_s >= r->node[k - 1].end_s);
        assert_non_null(cd_schedule_db_find(book, l.graph->node[k].key));
    }
    cd_network_run_free(r);
    for (size_t i = 0; i < cd_schedule_db_count(book); i++)
        assert_true(isnan(cd_schedule_db_at(book, i)->measured_s));
    r = run(&l, (cd_network_run_options){.schedules = book, .seed = 7});
    assert_true(r->n_ran == r->n && !r->n_sampled && isnan(r->max_error));
    for (uint32_t k = 0; k < r->n; k++) {
        assert_int_equal(r->node[k].from, CD_NETWORK_RUN_DB);
        assert_string_equal(r->node[k].schedule,
                            cd_schedule_db_find(book, l.graph->node[k].key)->origin);
        assert_true(isnan(r->node[k].warm_s) && isnan(r->node[k].cool_s));
    }
    double s;
    assert_int_equal(rr_replay(&l, r, RR_COOL, 1, &s, &err), CDMPP_ERANGE);
    cd_network_run_free(r);
    cd_schedule_db_free(book);
    cd_network_load_free(&l);
}

/* Replays of measured times: of one worker their sum; of more not above it and not below the
 * longest. */
static void test_replay(void **state) {
    (void)state;
    cd_network_loaded l = load(DATA "recurrent.onnx");
    cd_network_run *r = run(&l, (cd_network_run_options){.alone = true});
    cdmpp_err err = {0};
    for (int t = 0; t < 4; t++) {
        double sum = 0, most = 0, one, two;
        for (uint32_t k = 0; k < r->n; k++) {
            const cd_network_run_node *n = &r->node[k];
            const double s = (const double[]){n->place_s, n->alone_s, n->warm_s, n->cool_s}[t];
            sum += s;
            most = s > most ? s : most;
        }
        assert_ok(rr_replay(&l, r, (rr_time)t, 1, &one, &err));
        assert_ok(rr_replay(&l, r, (rr_time)t, 2, &two, &err));
        assert_true(fabs(one - sum) <= 1e-9 * sum && two <= one * (1 + 1e-12) && two >= most);
    }
    double rate = 0, longer = 0;
    assert_ok(rr_refill(&l, r, &rate, &err));
    for (uint32_t k = 0; k < r->n; k++)
        longer += (double)(l.graph->node[k].read_bytes + l.graph->node[k].write_bytes) / rate -
                  (r->node[k].place_s - r->node[k].warm_s);
    assert_true(isinf(rate) || (rate > 0 && fabs(longer) < 1e-12));
    /* In place against the whole: other processes may disturb either. */
    double place;
    assert_ok(rr_replay(&l, r, RR_PLACE, 1, &place, &err));
    assert_true(r->pass_s < 50 * place && r->pass_s > place / 50);
    cd_network_run_free(r);
    cd_network_load_free(&l);
}

/* Two workers: values stay right, and each node begins when what it comes after has ended. */
static void test_workers(void **state) {
    (void)state;
    cd_network_loaded l = load(DATA "recurrent.onnx");
    cd_network_run *r = run(&l, (cd_network_run_options){.workers = 2, .check = true});
    if (!(r->workers == 2 && r->max_error >= 0 && r->max_error < 1e-5))
        fail_msg("%u workers, error %g", r->workers, r->max_error);
    for (uint32_t k = 0; k < r->n; k++) {
        const cd_network_node *n = &l.graph->node[k];
        assert_true(r->node[k].worker < 2);
        for (uint32_t e = 0; e < n->n_after; e++)
            assert_true(r->node[l.graph->after[n->first + e]].end_s <= r->node[k].start_s);
    }
    cd_network_run_free(r);
    cd_network_load_free(&l);
}

/* What has no program is left out and says why. */
static void test_left_out(void **state) {
    (void)state;
    cd_network_loaded l = load(DATA "opaque.onnx");
    cd_network_run *r = run(&l, (cd_network_run_options){0});
    assert_true(r->n_left == 3 && r->n_ran == r->n - 3 && r->n_ran > 0);
    for (uint32_t k = 0; k < r->n; k++) {
        assert_int_equal(r->node[k].from == CD_NETWORK_RUN_NOTHING,
                         l.graph->node[k].kind == CD_NODE_UNKNOWN);
        assert_int_equal(r->node[k].from == CD_NETWORK_RUN_NOTHING, r->node[k].why != NULL);
        assert_int_equal(r->node[k].from == CD_NETWORK_RUN_NOTHING, isnan(r->node[k].place_s));
    }
    cd_network_run_free(r);
    cd_network_load_free(&l);
    l = load(DATA "dynamic.onnx");
    r = run(&l, (cd_network_run_options){0});
    assert_int_equal(r->n_left, 4);
    cd_network_run_free(r);
    cd_network_load_free(&l);
}

/* The same network on an OpenCL device, where there is one: right values, times by its events. */
static void test_opencl(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_network_loaded l;
    cd_network_run *r = NULL;
    static const char *const dim[] = {"height=16"};
    assert_ok(cd_network_load(
        &(cd_network_load_options){.network = DATA "whole.onnx",
                                   .batch = 2,
                                   .target = "opencl",
                                   .onnx = &(cd_onnx_options){.dim = dim, .n_dim = 1}},
        &l, &err));
    const cdmpp_status st = cd_network_run_measure(
        &l,
        &(cd_network_run_options){
            .measure = measure, .target = "opencl", .trials = 2, .budget_s = 0.02, .check = true},
        &r, &err);
    if (st == CDMPP_EBACKEND) { /* no device here */
        print_message("%s\n", err.msg);
        cd_network_load_free(&l);
        skip();
    }
    if (st) fail_msg("%s %s", err.key, err.msg);
    assert_true(r->n_ran == r->n && r->max_error >= 0 && r->max_error < 1e-4 && r->pass_s > 0 &&
                r->memory.all > r->memory.weights);
    for (uint32_t k = 0; k < r->n; k++) {
        assert_true(r->node[k].place_s > 0 && isnan(r->node[k].warm_s));
        if (k) assert_true(r->node[k].start_s >= r->node[k - 1].end_s);
    }
    cd_network_run_free(r);
    cd_network_load_free(&l);
}

/* What is left of the time limits programs and passes. */
static void test_until(void **state) {
    (void)state;
    cd_network_loaded l = load(DATA "recurrent.onnx");
    cd_network_run_options a = {.measure = measure,
                                .target = TARGET,
                                .trials = 1,
                                .budget_s = 0.02,
                                .until_s = cd_clock_wall() - 1};
    cd_network_run *r = NULL;
    cdmpp_err err = {0};
    assert_status(cd_network_run_measure(&l, &a, &r, &err), CDMPP_EBACKEND);
    assert_non_null(strstr(err.msg, "the time is over"));
    r = run(&l, (cd_network_run_options){.until_s = cd_clock_wall() + 1e6});
    assert_true(r->pass_s > 0);
    cd_network_run_free(r);
    cd_network_load_free(&l);
}

TESTS(up, down, test_book, test_replay, test_workers, test_left_out, test_opencl, test_until)
