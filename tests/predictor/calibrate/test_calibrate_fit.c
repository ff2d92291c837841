/* What a log of known times teaches. */
#include "made_calibrate.h"
#include "predictor/calibrate/calibrate_internal.h"

TEST(a_slower_machine_is_learned) {
    cdmpp_err err = {0};
    cd_calibrate_result r;
    const cd_calibrate_fit_options o = fit_options();
    made_log(3, 0.02);
    assert_ok(cd_calibrate_fit(&o, &r, &err));
    assert_int_equal(r.programs, 4 * N_TASK);
    assert_int_equal(r.tasks, N_TASK);
    assert_int_equal(r.before.n, r.programs);
    assert_int_equal(r.after.n, r.programs);
    assert_int_equal(r.failed, 2);
    assert_true(r.before.mape > 0.55 && r.before.mean_log > 0.9);
    assert_true(r.after.mape < 0.2 && r.after.mean_log < 0.2);
    assert_true(r.after.inside >= 0.8);
    assert_int_equal(r.pairs, N_TASK);
    assert_close(r.noise, 0.02, 1e-6, 1e-9);
    assert_false(cd_calibrate_noisy(&r));
    assert_close(exp(r.trees.bias), 3, 0.05, 0);
    cd_calibrate_result_free(&r);
}

/* What runs beside a program makes it slower: of two times that lie far apart, and of repeats, the
 * least counts. */
TEST(disturbed_times_are_not_learned) {
    cdmpp_err err = {0};
    cd_calibrate_result r;
    cd_buf b = {0};
    char *text;
    size_t n;
    const cd_calibrate_fit_options o = fit_options();
    made_log(3, 3);
    assert_ok(cd_calibrate_fit(&o, &r, &err));
    assert_true(r.after.mean_log < 0.2);
    assert_true(cd_calibrate_noisy(&r)); /* but it is told */
    cd_calibrate_result_free(&r);
    made_log(3, 0.02);
    assert_ok(cd_file_read(log_path, 0, &text, &n, &err));
    /* each time once more, and three of them forty times as long */
    for (char *at = text, *end; at < text + n; at = end + 1) {
        end = strchr(at, '\n');
        char *times = strstr(at, "\"r\": [["),
             *close = times && times < end ? strchr(times, ']') : NULL;
        if (close) cd_buf_put(&b, at, (size_t)(close - at));
        if (close)
            for (int k = 0; k < 3; k++) cd_buf_putf(&b, ", %.17g", 40 * strtod(times + 7, NULL));
        cd_buf_put(&b, close ? close : at, (size_t)(end + 1 - (close ? close : at)));
    }
    tmp_put(&dir, "here.records.json", b.p, b.n);
    assert_ok(cd_calibrate_fit(&o, &r, &err));
    assert_true(r.after.mean_log < 0.2);
    assert_close(exp(r.trees.bias), 3, 0.05, 0);
    cd_calibrate_result_free(&r);
    cd_mem_free(text);
    cd_buf_free(&b);
}

/* Trees are believed where they learn what holds for other tasks, and not where there is nothing
 * but noise. */
TEST(trees_are_believed_as_far_as_they_help) {
    cdmpp_err err = {0};
    cd_calibrate_result r[2];
    const cd_calibrate_fit_options o = fit_options();
    for (int k = 0; k < 2; k++) {
        small = k ? 4 : 1;
        made_log(1, 0.02);
        assert_ok(cd_calibrate_fit(&o, &r[k], &err));
        cd_calibrate_result_free(&r[k]);
    }
    small = 1;
    assert_true(r[0].share < 0.5 && r[1].share > 0.8);
    assert_true(r[0].trees.share == r[0].share && r[1].trees.share == r[1].share);
    assert_true(r[1].after.mean_log < 0.5 * r[1].before.mean_log);
}

/* What a correction has seen is not what it is judged by: a part whose programs are off to the
 * other side than all others is predicted worse than by nobody. */
TEST(a_correction_is_judged_by_what_it_has_not_seen) {
    cdmpp_err err = {0};
    cd_calibrate_result r;
    const cd_calibrate_fit_options o = fit_options();
    made_log_of((double[]){1, 2, 0.5, 2, 0.5}, 0.02);
    assert_ok(cd_calibrate_fit(&o, &r, &err));
    assert_true(r.after.mean_log > r.before.mean_log);
    cd_calibrate_result_free(&r);
}

/* Who asks the model that is written gets the corrected answer. */
TEST(a_scorer_corrects) {
    cdmpp_err err = {0};
    cd_calibrate_result r;
    cd_buf out = {0}, line = {0};
    cd_model *m;
    cd_scored before, after;
    char *file;
    size_t n;
    const cd_calibrate_fit_options o = fit_options();
    made_log(3, 0.02);
    assert_ok(cd_calibrate_fit(&o, &r, &err));
    const cd_here h = {.stands = 0,
                       .name = "new",
                       .cpu = "x",
                       .programs = 1,
                       .widen = r.widen,
                       .most = r.most,
                       .trees = r.trees};
    assert_ok(cd_file_read(model_path, 0, &file, &n, &err));
    assert_ok(cd_here_add(file, n, &h, "", &out, &err));
    assert_ok(cd_model_from_bytes(out.p, out.n, &m, &err));
    /* the machine's own name */
    made_record(&line, cd_task_registry_at(tasks, 3)->workload_key, 9, "llvm -model=new", 1, 0);
    const cd_predict_line l = {line.p, line.n, "", 1};
    for (int k = 0; k < 2; k++) {
        const cd_scorer_options so = {.which = {.device = k ? NULL : "zen4"}, .traits = !k};
        cd_scorer *s;
        assert_ok(cd_scorer_new(k ? m : model, tasks, &so, &s, &err));
        assert_ok(cd_scorer_run(s, &l, 1, k ? &after : &before, &err));
        assert_int_equal(k ? after.st : before.st, CDMPP_OK);
        cd_scorer_free(s);
    }
    assert_true(after.pred.median_s > 2 * before.pred.median_s &&
                after.pred.median_s < 4 * before.pred.median_s);
    assert_close(after.model_s, after.pred.median_s, 1e-9, 0); /* by which candidates are ordered */
    cd_calibrate_result_free(&r);
    cd_model_free(m);
    cd_mem_free(file);
    cd_buf_free(&out);
    cd_buf_free(&line);
}

/* The programs of a part are answered by the others: where they alone take three times as long,
 * they are off by that, and the others by nothing. */
TEST(a_part_is_answered_by_the_others) {
    cdmpp_err err = {0};
    cd_calibrate_result r[2];
    const cd_calibrate_fit_options o = fit_options();
    for (int k = 0; k < 2; k++) {
        made_log_of((double[]){k ? 6 : 2, 2, 2, 2, 2}, 0.02);
        assert_ok(cd_calibrate_fit(&o, &r[k], &err));
    }
    assert_true(r[0].after.mean_log < 0.2);
    assert_close(r[1].after.mean_log, log(3) / CD_CALIBRATE_PARTS, 0.15, 0);
    assert_close(r[1].before.mean_log - r[0].before.mean_log, log(3) / CD_CALIBRATE_PARTS, 0.02, 0);
    for (int k = 0; k < 2; k++) cd_calibrate_result_free(&r[k]);
}

/* One more draw is as likely between any two of n, or beyond them: nine of ten times it is at most
 * the bound, and the one below would be too low. */
TEST(one_more_is_below_the_bound) {
    double v[200];
    for (size_t n = 1; n < sizeof v / sizeof *v; n++) {
        /* the order is not theirs */
        for (size_t i = 0; i < n; i++) v[i] = (double)((i * 7 + 3) % n);
        for (size_t i = 0; n % 7 == 0 && i < n; i++) v[i] = (double)(n - 1 - i);
        const size_t k = (size_t)cd_calibrate_bound(v, n) + 1; /* how many are at or below */
        assert_true(k == n || 10 * k >= 9 * (n + 1));
        assert_true(10 * (k - 1) < 9 * (n + 1));
        assert_true(n > 8 || k == n);
    }
    assert_close(cd_calibrate_bound((double[]){5, 1, 2, 3, 4, 10, 9, 8, 7, 6}, 10), 10, 0, 0);
    assert_close(cd_calibrate_bound(v, 0), 1, 0, 0);
}

TEST(too_few_programs) {
    cdmpp_err err = {0};
    cd_calibrate_result r;
    cd_buf b = {0};
    const cd_calibrate_fit_options o = fit_options();
    for (int i = 0; i < 9; i++)
        made_record(&b, cd_task_registry_at(tasks, 0)->workload_key, i, "llvm -model=new", 1e-3, 0);
    tmp_put(&dir, "here.records.json", b.p, b.n);
    assert_status(cd_calibrate_fit(&o, &r, &err), CDMPP_ENODATA);
    cd_calibrate_result_free(&r);
    cd_buf_free(&b);
}

/* ---- memory ---- */
TEST(every_allocation_of_a_fit_may_fail) {
    made_log(3, 0.02);
    FAULT_SWEEP(f, 3) {
        cd_calibrate_result r = {0};
        const cd_calibrate_fit_options o = fit_options();
        f.step = f.k < 200 ? 1 : 23;
        f.st = cd_calibrate_fit(&o, &r, &f.err);
        cd_calibrate_result_free(&r);
    }
}

TESTS(setup, teardown, a_slower_machine_is_learned, disturbed_times_are_not_learned,
      trees_are_believed_as_far_as_they_help, a_correction_is_judged_by_what_it_has_not_seen,
      a_scorer_corrects, a_part_is_answered_by_the_others, one_more_is_below_the_bound,
      too_few_programs, every_allocation_of_a_fit_may_fail)
