/* A whole calibration with a made machine: what is written, and what is refused. */
#include "made_calibrate.h"

/* ---- what is written, and what is refused ---- */
static bool as_json = true;
static double each_s = 1;    /* of a program */
static double machine_noise; /* of the check at the beginning */

static cdmpp_status run_on(const char *device, double noise, bool force, size_t most, cd_buf *text,
                           cdmpp_err *err) {
    const cd_noise_program quiet = {1e-3, 1e-3 * exp(machine_noise), machine_noise};
    static cd_log log;
    made_clock c = {.each = each_s, .noise = noise};
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
                                    .json = as_json,
                                    .clock = &clock,
                                    .quiet = &quiet,
                                    .again = "cdmpp-tune calibrate",
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

/* ---- the verdict ---- */
/* How it ends is a sentence, and what to do next a command. */
TEST(the_verdict_is_a_sentence) {
    static const struct {
        double before, after, noise;
        bool out;
        const char *verdict, *next;
    } t[] = {
        {0.4, 0.2, 0.02, true,
         "better: median error of 40 held-out programs 38 to 14 %; written to here.cdmpp (removing "
         "it undoes this)\n",
         NULL},
        {0.2, 0.4, 0.02, false,
         "not better: median error of 40 held-out programs 14 to 38 %; nothing written\n",
         "next: cdmpp-tune calibrate --seconds 600\n"},
        {0.2, 0.4, 0.02, true,
         "not better: median error of 40 held-out programs 14 to 38 %; written to here.cdmpp "
         "(removing it undoes this)\n",
         NULL},
        {0.4, 0.2, 0.5, false,
         "too noisy: two times of the same program differ by 65 % (at most 10 %), median error of "
         "40 held-out programs 38 to 14 %; nothing written\n",
         "next, when other work has ended: rm -f 'log' && cdmpp-tune calibrate --seconds 300\n"},
        {0.4, 0.2, 0.5, true,
         "better: median error of 40 held-out programs 38 to 14 %; written to here.cdmpp (removing "
         "it undoes this); measured "
         "noise 65 %, its intervals are wider for that\n",
         NULL},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        const cd_calibrate_result r = {
            .noise = t[k].noise,
            .measured_noise = t[k].noise,
            .before = {.n = 40, .mean_log = t[k].before, .median = t[k].before > 0.3 ? 0.38 : 0.14},
            .after = {.n = 40, .mean_log = t[k].after, .median = t[k].after > 0.3 ? 0.38 : 0.14}};
        const cd_calibrate_measured m = {.late = true};
        const cd_calibrate_told told = {.result = &r,
                                        .measured = &m,
                                        .device = "d",
                                        .name = "n",
                                        .cpu = "c",
                                        .model = "m",
                                        .log = "log",
                                        .out = t[k].out ? "here.cdmpp" : NULL,
                                        .seconds = 300,
                                        .limit_s = 300,
                                        .again = "cdmpp-tune calibrate",
                                        .again_s = 600};
        cd_buf b = {0};
        cd_calibrate_text(&b, &told);
        const char *at = strstr(b.p, t[k].verdict);
        assert_non_null(at);
        assert_string_equal(at + strlen(t[k].verdict),
                            t[k].next ? t[k].next : ""); /* and nothing behind it */
        cd_buf_free(&b);
    }
}

/* Where measured numbers might choose other schedules, the text says that they do not. */
TEST(who_chooses_is_told) {
    for (int k = 0; k < 2; k++) {
        const cd_calibrate_result r = {.noise = 0, .before = {.n = 9}, .after = {.n = 9}};
        const cd_calibrate_measured m = {.late = true};
        const cd_calibrate_told told = {.result = &r,
                                        .measured = &m,
                                        .device = "zen4",
                                        .name = "n",
                                        .cpu = "c",
                                        .model = "m",
                                        .log = "log",
                                        .out = "x",
                                        .as_before = k};
        cd_buf b = {0};
        cd_calibrate_text(&b, &told);
        assert_int_equal(strstr(b.p, "schedules are chosen as before, as for zen4") != NULL, k);
        cd_buf_free(&b);
    }
}

/* A figure that goes the other way is not the one that is told. */
TEST(the_verdict_tells_what_decides) {
    const cd_calibrate_result r = {.noise = 0,
                                   .before = {.n = 9, .mean_log = log(2), .median = 0.3},
                                   .after = {.n = 9, .mean_log = log(1.5), .median = 0.4}};
    const cd_calibrate_measured m = {.late = true};
    const cd_calibrate_told told = {.result = &r,
                                    .measured = &m,
                                    .device = "d",
                                    .name = "n",
                                    .cpu = "c",
                                    .model = "m",
                                    .log = "log",
                                    .out = "x"};
    cd_buf b = {0};
    cd_calibrate_text(&b, &told);
    assert_non_null(strstr(b.p, "better: mean error of 9 held-out programs (as a factor) 2.00 to "
                                "1.50; written to x (removing it undoes this)\n"));
    cd_buf_free(&b);
}

/* Where there is no time for enough programs, the command that has it is told. */
TEST(too_few_programs_say_what_to_do) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    as_json = false;
    (void)unlink(log_path);
    assert_status(run_some(0, false, 15, &text, &err), CDMPP_OK);
    cd_buf_clear(&text);
    (void)unlink(log_path);
    each_s = 12;
    assert_status(run_some(0, false, 15, &text, &err), CDMPP_ENODATA);
    assert_non_null(strstr(err.msg, "there is no time for the 12 programs"));
    assert_string_equal(text.p, "next: cdmpp-tune calibrate --seconds 360\n");
    each_s = 1;
    as_json = true;
    cd_buf_free(&text);
}

/* ---- noise ---- */
/* Ends of the interval of a program, ln, of the model (k 0) or of what was written. */
static void ends_of(const char *path, const char *device, double *low, double *high) {
    cdmpp_err err = {0};
    cd_model *m;
    cd_scorer *s;
    cd_scored o;
    cd_buf line = {0};
    assert_ok(cd_model_load(path, &m, &err));
    const cd_scorer_options so = {.which = {.device = device}};
    made_record(&line, cd_task_registry_at(tasks, 0)->workload_key, 9, "llvm -model=new", 1, 0);
    const cd_predict_line l = {line.p, line.n, "", 1};
    assert_ok(cd_scorer_new(m, tasks, &so, &s, &err));
    assert_ok(cd_scorer_run(s, &l, 1, &o, &err));
    assert_int_equal(o.st, CDMPP_OK);
    *low = log(o.pred.median_s / o.pred.low_s);
    *high = log(o.pred.high_s / o.pred.median_s);
    cd_scorer_free(s);
    cd_model_free(m);
    cd_buf_free(&line);
}

/* A log that teaches much would make intervals narrow. Of a noisy machine they are no narrower than
 * before, and wider by the noise; the file says how noisy it was. */
TEST(noise_goes_into_the_intervals) {
    cdmpp_err err = {0};
    cd_buf text = {0};
    double before[2], quiet[2], noisy[2];
    char out[256];
    snprintf(out, sizeof out, "%s", tmp_path(&dir, "here.cdmpp"));
    ends_of(model_path, "zen4", &before[0], &before[1]);
    for (int k = 0; k < 3; k++) {
        cd_model *m;
        made_log(3, k == 2
                        ? log(1.8)
                        : 0.002); /* by the check at the beginning, or by programs measured twice */
        machine_noise = k == 1 ? log(1.8) : 0;
        cd_buf_clear(&text);
        assert_ok(run_some(0, true, 1, &text, &err));
        assert_ok(cd_model_load(out, &m, &err));
        const char *name = cd_model_here(m)->name;
        assert_close(cd_model_here(m)->noise, k ? log(1.8) : 0.002, 1e-6, 0);
        double *ends = k ? noisy : quiet;
        ends_of(out, name, &ends[0], &ends[1]);
        cd_model_free(m);
        for (int e = 0; k && e < 2; e++) {
            assert_true(noisy[e] >= before[e]);
            assert_true(noisy[e] >= cd_here_noise_log(log(1.8)) * 0.999);
        }
        if (!k) assert_true(quiet[0] + quiet[1] < before[0] + before[1]); /* else it says nothing */
    }
    machine_noise = 0;
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

/* The device of the logs is one more device of the model, and the one that stands for it answers as
 * before. */
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
    /* the only device that there is stands for it */
    assert_ok(run_given(log_path, NULL, &text, &err));
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
      a_noisy_machine_is_refused, the_verdict_is_a_sentence, who_chooses_is_told,
      the_verdict_tells_what_decides, too_few_programs_say_what_to_do,
      noise_goes_into_the_intervals, an_early_end_is_told,
      logs_of_a_device_make_it_one_of_the_model, logs_of_two_devices_are_refused,
      every_allocation_of_a_run_may_fail)
