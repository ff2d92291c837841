/* Networks of a calibration, run on a made machine by a law that is known: the law is found, kept
 * in the model and used by what reads it; too few networks make none. */
#include "predictor/calibrate/calibrate.h"
#include "check.h"
#include "fault.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "made_model.h"

static const cd_device machine = {.name = "made",
                                  .kind = CD_DEVICE_CPU,
                                  .clock_mhz = 3000,
                                  .cores = 4,
                                  .simd_bits = 256,
                                  .bandwidth_gb_s = 40,
                                  .l1_kb = 32,
                                  .l2_kb = 1024,
                                  .l3_kb = 32768};
static const char *const network[] = {"matmul", "add", "softmax", "layer-norm", "conv2d"};
enum { N = sizeof network / sizeof *network };

static tmp_dir dir;
static char model_path[256];
static cd_model *model;
static cd_log quiet;

static int setup(void **state) {
    (void)state;
    static const char *const target[] = {"llvm -model=zen4"}, *const set[] = {"train.rounds=10"};
    cdmpp_err err = {0};
    cd_task_registry *t = NULL;
    char h5[256];
    dir = tmp_make();
    cd_log_init(&quiet, "", stderr);
    quiet.level = CD_LOG_ERROR;
    snprintf(model_path, sizeof model_path, "%s", tmp_path(&dir, "m.cdmpp"));
    cdmpp_status st = cd_task_registry_new(&t, &err);
    if (!st) st = cd_task_registry_load(t, MADE_TASKS, &err);
    if (!st) st = made_extract(&dir, cd_task_registry_at(t, 0)->workload_key, target, 1, h5, &err);
    if (!st) st = made_learn(h5, set, 1, model_path, &err);
    if (!st) st = cd_model_load(model_path, &model, &err);
    cd_task_registry_free(t);
    return st != CDMPP_OK;
}

static int teardown(void **state) {
    (void)state;
    cd_model_free(model);
    tmp_remove(&dir);
    return 0;
}

/* ---- a machine whose networks take `lift` times their operators ---- */
typedef struct made_clock {
    double now, each; /* seconds; of a network, and of a program */
    double lift;
    const char *fails; /* network; NULL: none */
    size_t disturbed;  /* the run of this number takes three times as long; 0: none */
    size_t ran, asked; /* asked: on a GPU that was named */
    double until;      /* of networks; 0: not looked at */
} made_clock;

static double made_now(void *ctx) { return ((made_clock *)ctx)->now; }

static cdmpp_status made_measure(void *ctx, cd_record_program *job, size_t n,
                                 cd_measure_result *out, cdmpp_err *err) {
    made_clock *c = ctx;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const double s = 1e-3 * (1 + (double)(job[i].id.a % 100));
        out[i] = (cd_measure_result){
            .time = {.n = 2, .n_kept = 2, .number = 1, .sample_s = {s, s}, .kept = {true, true}}};
        c->now += c->each;
    }
    return CDMPP_OK;
}

static cdmpp_status made_network(void *ctx, const cd_network_loaded *l,
                                 const cd_network_run_options *o, cd_network_run **out,
                                 cdmpp_err *err) {
    made_clock *c = ctx;
    /* the first one's, too: the rest of the time, by the machine's clock */
    if (c->until > 0) assert_close(o->until_s - cd_clock_wall(), c->until - c->now, 0, 60);
    c->now += c->each;
    c->ran++;
    assert_true(!o->device || !strcmp(o->device, "pocl:0"));
    c->asked += o->device != NULL;
    /* those that the model chooses */
    assert_true(o->alone && o->schedules && cd_schedule_db_count(o->schedules) > 0);
    if (c->fails && !strcmp(l->graph->name, c->fails))
        return CD_FAIL(err, EBACKEND, "it does not run");
    cd_network_run *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "run");
    r->n = l->graph->n_node;
    if (!(r->node = CD_NEWN(&r->arena, cd_network_run_node, r->n + 1))) {
        cd_network_run_free(r);
        return CD_FAIL(err, ENOMEM, "nodes");
    }
    for (uint32_t i = 0; i < r->n; i++) {
        r->node[i].alone_s = 1e-3 * (double)(1 + strlen(l->graph->name));
        r->pass_s += (c->ran == c->disturbed ? 3 : 1) * c->lift * r->node[i].alone_s *
                     (double)l->graph->node[i].repeat;
    }
    *out = r;
    return CDMPP_OK;
}

static double program_s; /* of an option */

static cdmpp_status run(made_clock *c, double until, cd_network_cost_fit *f, cdmpp_err *err) {
    const cd_calibrate_clock clock = {
        .ctx = c, .now = made_now, .measure = made_measure, .network = made_network};
    const cd_calibrate_networks_options o = {.network = network,
                                             .n_network = N,
                                             .model = model,
                                             .stands = "zen4",
                                             .about = &machine,
                                             .target = "llvm -num-cores=1",
                                             .hardware = cd_target_hardware(false, 1, 64),
                                             .gpu = "pocl:0",
                                             .threads = 1,
                                             .seed = 1,
                                             .clock = &clock,
                                             .until_s = until,
                                             .program_s = program_s,
                                             .log = &quiet};
    return cd_calibrate_networks(&o, f, err);
}

TEST(the_law_of_the_machine_is_found) {
    cdmpp_err err = {0};
    cd_network_cost_fit f;
    made_clock c = {.each = 1, .lift = 1.2};
    assert_ok(run(&c, 100, &f, &err));
    assert_int_equal(c.ran, N);
    assert_int_equal(c.asked, N);
    assert_int_equal(f.networks, N);
    assert_close(f.lift, 1.2, 1e-9, 0);
    assert_close(f.call_s, 0, 0, 0);
    assert_true(f.spread < 1e-6);
}

TEST(a_network_that_fails_is_left_out) {
    cdmpp_err err = {0};
    cd_network_cost_fit f;
    made_clock c = {.each = 1, .lift = 1.2, .fails = "add"};
    assert_ok(run(&c, 100, &f, &err));
    assert_int_equal(f.networks, N - 1);
    assert_close(f.lift, 1.2, 1e-9, 0);
}

/* A pass that something else ran beside is run again. */
TEST(an_odd_run_is_repeated) {
    cdmpp_err err = {0};
    cd_network_cost_fit f;
    made_clock c = {.each = 1, .lift = 1.2, .disturbed = 2};
    assert_ok(run(&c, 100, &f, &err));
    assert_int_equal(c.ran, N + 1);
    assert_close(f.lift, 1.2, 1e-9, 0);
}

/* What no network takes is no law of the machine, however often it was measured. */
TEST(a_machine_that_others_use_has_no_law) {
    static const double lift[] = {2.3, 0.5};
    for (int k = 0; k < 2; k++) {
        cdmpp_err err = {0};
        cd_network_cost_fit f;
        made_clock c = {.each = 1, .lift = lift[k]};
        assert_ok(run(&c, 100, &f, &err));
        assert_int_equal(c.ran, 2 * N);
        assert_int_equal(f.networks, 0);
    }
}

/* Each network is told when the time is over; where it is over before the first, none begins. A
 * second run of an odd one needs as much time as the first. */
TEST(the_time_of_the_first_is_limited) {
    cdmpp_err err = {0};
    cd_network_cost_fit f;
    made_clock c = {.each = 1000, .lift = 1.2, .until = 10000};
    assert_ok(run(&c, 10000, &f, &err));
    assert_int_equal(c.ran, N);
    made_clock over = {.now = 100, .each = 1, .lift = 1.2};
    assert_ok(run(&over, 100, &f, &err));
    assert_int_equal(over.ran, 0);
    made_clock odd = {.each = 10, .lift = 1.2, .disturbed = 1};
    assert_ok(run(&odd, 19, &f, &err));
    assert_int_equal(odd.ran, 1);
    assert_int_equal(f.networks, 0);
}

/* Where programs are slow none begins: one or two programs of each are more than what is left. */
TEST(slow_programs_leave_no_time) {
    cdmpp_err err = {0};
    cd_network_cost_fit f;
    made_clock c = {.each = 1, .lift = 1.2};
    program_s = 1000;
    assert_ok(run(&c, 100, &f, &err));
    assert_int_equal(c.ran, 0);
    program_s = 10;
    assert_ok(run(&c, 100, &f, &err));
    assert_int_equal(c.ran, N);
    program_s = 0;
}

/* No network begins that would end late; three make no law. */
TEST(too_few_make_none) {
    cdmpp_err err = {0};
    cd_network_cost_fit f;
    made_clock c = {.each = 10, .lift = 1.2};
    assert_ok(run(&c, 35, &f, &err));
    assert_int_equal(c.ran, 3);
    assert_int_equal(f.networks, 0);
}

/* ---- in the model ---- */
static size_t most = 40; /* programs */

static cdmpp_status calibrate(made_clock *c, double limit, const char *out, cd_buf *text,
                              cdmpp_err *err) {
    const cd_calibrate_clock clock = {
        .ctx = c, .now = made_now, .measure = made_measure, .network = made_network};
    char log[256];
    cd_task_registry *t = NULL;
    snprintf(log, sizeof log, "%s", tmp_path(&dir, "here.records.json"));
    CD_TRY(cd_task_registry_new(&t, err));
    cdmpp_status st = cd_task_registry_load(t, MADE_TASKS, err);
    const cd_calibrate_options o = {.model = model_path,
                                    .out = out,
                                    .records = log,
                                    .device = "zen4",
                                    .tasks = t,
                                    .network = network,
                                    .n_network = N,
                                    .target = "llvm -num-cores=1",
                                    .threads = 1,
                                    .seed = 1,
                                    .most = most,
                                    .limit_s = limit,
                                    .force = true,
                                    .json = true,
                                    .clock = &clock,
                                    .log = &quiet};
    if (!st) st = cd_calibrate_run(&o, text, err);
    cd_task_registry_free(t);
    return st;
}

/* Who opens the model finds the law under the machine's name, and the stand-in's stays as it
 * was. */
TEST(the_model_brings_the_law) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    char out[256];
    const char *path = out;
    const cd_texts models = {1, &path};
    const cd_model_set_options so = {.model = &models};
    cd_model_set set = {0};
    cd_model *m;
    made_clock c = {.each = 1, .lift = 1.2};
    snprintf(out, sizeof out, "%s", tmp_path(&dir, "here.cdmpp"));
    assert_ok(calibrate(&c, 200, out, &text, &err));
    assert_non_null(strstr(text.p, "\"networks\":{\"n\":5,\"lift\":1.2"));
    assert_ok(cd_model_load(out, &m, &err));
    assert_ok(cd_model_set_open(&so, &set, &err));
    const cd_network_cost_fit *f = cd_network_cost_find(set.costs, cd_model_here(m)->name, NULL);
    assert_non_null(f);
    assert_close(f->lift, 1.2, 1e-9, 0);
    assert_string_equal(f->source, "cdmpp-tune calibrate");
    assert_true(cd_network_cost_find(set.costs, "granite-rapids", NULL) != f);
    /* its name comes before that of a description */
    assert_ptr_equal(cd_network_cost_find(set.costs, cd_model_here(m)->name, &machine), f);
    cd_model_set_free(&set);
    cd_model_free(m);
    cd_buf_free(&text);
}

/* What networks leave of their quarter is for more programs, and the limit is kept. */
TEST(what_networks_leave_is_measured) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    made_clock c = {.each = 3, .lift = 1.2};
    char out[256];
    snprintf(out, sizeof out, "%s", tmp_path(&dir, "more.cdmpp"));
    (void)unlink(tmp_path(&dir, "here.records.json"));
    most = 0;
    assert_ok(calibrate(&c, 200, out, &text, &err));
    most = 40;
    assert_int_equal(c.ran, N);
    assert_true(c.now > 180 && c.now <= 200);
    cd_buf_free(&text);
}

/* A short limit is of programs alone. */
TEST(a_short_run_runs_no_network) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    made_clock c = {.each = 1, .lift = 1.2};
    char out[256];
    snprintf(out, sizeof out, "%s", tmp_path(&dir, "short.cdmpp"));
    (void)unlink(tmp_path(&dir, "here.records.json"));
    assert_ok(calibrate(&c, 70, out, &text, &err));
    assert_int_equal(c.ran, 0);
    assert_null(strstr(text.p, "\"networks\""));
    cd_buf_free(&text);
}

TEST(every_allocation_may_fail) {
    FAULT_SWEEP(f, 3) {
        cd_network_cost_fit fit;
        made_clock c = {.each = 1, .lift = 1.2};
        f.step = f.k < 100 ? 1 : 997;
        f.st = run(&c, 100, &fit, &f.err);
    }
}

TESTS(setup, teardown, the_law_of_the_machine_is_found, a_network_that_fails_is_left_out,
      an_odd_run_is_repeated, a_machine_that_others_use_has_no_law,
      the_time_of_the_first_is_limited, slow_programs_leave_no_time, too_few_make_none,
      the_model_brings_the_law, what_networks_leave_is_measured, a_short_run_runs_no_network,
      every_allocation_may_fail)
