/* A whole calibration with a made machine: what is written, and what is refused. */
#include "made_calibrate.h"

/* ---- what is written, and what is refused ---- */
static cdmpp_status run_on(const char *device, double noise, bool force, size_t most, cd_buf *text,
                           cdmpp_err *err) {
    static cd_log log;
    made_clock c = {.each = 1, .noise = noise};
    const cd_calibrate_clock clock = {.ctx = &c, .now = made_now, .measure = made_measure};
    const cd_calibrate_options o = {.model = model_path,
                                    .out = tmp_path(&dir, "here.cdmpp"),
                                    .records = log_path,
                                    .device = device,
                                    .tasks = tasks,
                                    .target = "llvm -num-cores=1",
                                    .threads = 1,
                                    .seed = 1,
                                    .most = most,
                                    .limit_s = 59,
                                    .force = force,
                                    .json = true,
                                    .clock = &clock,
                                    .log = &log};
    if (!log.out) cd_log_init(&log, "", stderr), log.level = CD_LOG_ERROR;
    return cd_calibrate_run(&o, text, err);
}

static cdmpp_status run_some(double noise, bool force, size_t most, cd_buf *text, cdmpp_err *err) {
    return run_on("zen4", noise, force, most, text, err);
}
static cdmpp_status run(double noise, bool force, cd_buf *text, cdmpp_err *err) {
    return run_some(noise, force, 40, text, err);
}

/* A device that is described and not in the model is refused before anything is measured. */
TEST(an_unknown_device_costs_no_time) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    (void)unlink(log_path);
    assert_status(run_on("granite-rapids", 0, true, 40, &text, &err), CDMPP_EMODEL);
    assert_int_not_equal(access(log_path, F_OK), 0);
    assert_int_equal(text.n, 0);
    cd_buf_free(&text);
}

TEST(what_is_no_better_is_refused) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    made_log_of((double[]){1, 2, 0.5, 2, 0.5}, 0.02);
    assert_status(run_some(0, false, 1, &text, &err), CDMPP_ERANGE);
    assert_non_null(strstr(err.msg, "the model alone is better"));
    assert_int_not_equal(access(tmp_path(&dir, "here.cdmpp"), F_OK), 0);
    cd_buf_free(&text);
}

TEST(a_noisy_machine_is_refused) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    char out[256];
    snprintf(out, sizeof out, "%s", tmp_path(&dir, "here.cdmpp"));
    (void)unlink(log_path);
    assert_status(run(0.3, false, &text, &err), CDMPP_ERANGE);
    assert_non_null(strstr(err.msg, "too noisy"));
    assert_non_null(strstr(text.p, "\"out\":null"));
    assert_int_not_equal(access(out, F_OK), 0);
    cd_buf_clear(&text);
    assert_ok(run(0.3, true, &text, &err)); /* nothing is measured again */
    assert_non_null(strstr(text.p, "\"measured_now\":0"));
    cd_model *m;
    assert_ok(cd_model_load(out, &m, &err));
    assert_non_null(cd_model_here(m));
    assert_int_equal(cd_model_here(m)->stands, 0);
    assert_non_null(strstr(cd_model_header(m), "\"before\":{\"n\":"));
    cd_model_free(m);
    cd_buf_free(&text);
    (void)unlink(out);
}

/* Who gets fewer programs than the time allows is told why. */
TEST(an_early_end_is_told) {
    cd_calibrate_result r = {.programs = 20};
    const cd_calibrate_measured early = {.fresh = 20}, late = {.fresh = 20, .late = true};
    cd_calibrate_told t = {.result = &r,
                           .device = "d",
                           .name = "n",
                           .cpu = "c",
                           .model = "m",
                           .log = "l",
                           .seconds = 100,
                           .limit_s = 300};
    for (int k = 0; k < 3; k++) {
        cd_buf b = {0};
        t.measured = k == 1 ? &late : &early;
        t.most = k == 2 ? 20 : 0;
        cd_calibrate_text(&b, &t);
        assert_int_equal(strstr(b.p, "every candidate is measured") != NULL, k == 0);
        cd_buf_free(&b);
    }
}

/* ---- logs in the place of measurements ---- */
static cdmpp_status run_given(const char *path, const char *device, cd_buf *text, cdmpp_err *err) {
    static cd_log log;
    made_clock c = {.each = 1};
    const cd_calibrate_clock clock = {.ctx = &c, .now = made_now, .measure = made_measure};
    const char *const given[] = {path};
    const cd_calibrate_options o = {.model = model_path,
                                    .out = tmp_path(&dir, "board.cdmpp"),
                                    .given = given,
                                    .n_given = 1,
                                    .device = device,
                                    .tasks = tasks,
                                    .force = true,
                                    .json = true,
                                    .clock = &clock,
                                    .log = &log};
    if (!log.out) cd_log_init(&log, "", stderr), log.level = CD_LOG_ERROR;
    const cdmpp_status st = cd_calibrate_run(&o, text, err);
    assert_int_equal(c.measured, 0);
    return st;
}

/* The device of the logs is one more device of the model, and the one that stands for it answers as before. */
TEST(logs_of_a_device_make_it_one_of_the_model) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    cd_model *m;
    char out[256];
    made_log(3, 0.02); /* of "new", which nobody describes */
    (void)unlink(tmp_path(&dir, "board.cdmpp"));
    assert_status(run_given(log_path, "zen5", &text, &err), CDMPP_EMODEL);
    snprintf(out, sizeof out, "%s", tmp_path(&dir, "board.cdmpp"));
    assert_int_not_equal(access(out, F_OK), 0);
    cd_buf_clear(&text);
    assert_ok(
        run_given(log_path, NULL, &text, &err)); /* the only device that there is stands for it */
    assert_non_null(strstr(text.p, "\"name\":\"new\""));
    assert_ok(cd_model_load(out, &m, &err));
    assert_int_equal(cd_model_n_device(m), 2);
    assert_string_equal(cd_model_device(m, 1), "new");
    assert_string_equal(cd_model_here(m)->cpu, "logs of new");
    cd_model_free(m);
    cd_buf_free(&text);
}

TEST(logs_of_two_devices_are_refused) {
    cdmpp_err err = {0};
    cd_buf b = {0}, text = {0};
    const char *key = cd_task_registry_at(tasks, 0)->workload_key;
    cd_buf_puts(&b, "no record\n");
    for (int i = 0; i < 4; i++)
        made_record(&b, key, i, i < 3 ? "llvm -model=new" : "llvm -model=newer", 1e-3, 0);
    const char *path = tmp_put(&dir, "two.json", b.p, b.n);
    assert_status(run_given(path, "zen4", &text, &err), CDMPP_EUSAGE);
    assert_non_null(strstr(err.msg, "found new and newer"));
    assert_int_equal(err.line, 5);
    path = tmp_put(&dir, "two.json", "no record\n", 10);
    assert_status(run_given(path, "zen4", &text, &err), CDMPP_ENODATA);
    cd_buf_free(&b);
    cd_buf_free(&text);
}

/* ---- memory ---- */
/* All of it: no half file is left, and what was measured stays in the log. */
TEST(every_allocation_of_a_run_may_fail) {
    const char *out = tmp_path(&dir, "here.cdmpp");
    (void)unlink(log_path);
    FAULT_SWEEP(f, 3) {
        cd_buf text = {0};
        f.step = f.k < 40 ? 1 : 157;
        f.st = run(0, true, &text, &f.err);
        if (f.st) assert_int_not_equal(access(out, F_OK), 0);
        cd_buf_free(&text);
    }
    assert_int_equal(access(out, F_OK), 0);
    made_log(3, 0.02);
    FAULT_SWEEP(g, 3) {
        cd_buf text = {0};
        g.step = g.k < 40 ? 1 : 157;
        g.st = run_given(log_path, "zen4", &text, &g.err);
        cd_buf_free(&text);
    }
}

TESTS(setup, teardown, an_unknown_device_costs_no_time, what_is_no_better_is_refused,
      a_noisy_machine_is_refused, an_early_end_is_told, logs_of_a_device_make_it_one_of_the_model,
      logs_of_two_devices_are_refused, every_allocation_of_a_run_may_fail)
