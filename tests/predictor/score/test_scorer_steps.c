/* A model of steps scores records and steps as it scores the data set that was made of them; of
 * rows it says what they lack. */
#include "predictor/score/score.h"
#include "check.h"

#include <string.h>

#include "made_model.h"

static tmp_dir dir;
static char h5[256];
static cd_task_registry *tasks;
static cd_model *model;

static const cd_task *task(void) { return cd_task_registry_at(tasks, 0); }

static int setup(void **state) {
    (void)state;
    static const char *const target[] = {"llvm -model=here"};
    static const char *const set[] = {
        "model.members=[tlp]", "net.device=false",     "net.slots=3",  "net.width=32",
        "net.embed=16",        "net.decoder_width=16", "net.layers=1", "net.norm=none",
        "fit.loss=1huber_log", "fit.epochs=200",       "fit.batch=32", "fit.rate=0.003"};
    cdmpp_err err = {0};
    char text[512], path[256];
    dir = tmp_make();
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "m.cdmpp"));
    cdmpp_status st = cd_task_registry_new(&tasks, &err);
    if (!st) st = cd_task_registry_load(tasks, MADE_TASKS, &err);
    if (!st) st = made_extract(&dir, task()->workload_key, target, 1, h5, &err);
    if (!st) st = made_learn(h5, set, sizeof set / sizeof *set, path, &err);
    if (!st) st = cd_model_load(path, &model, &err);
    if (st) print_error("%s\n", cdmpp_err_format(&err, text, sizeof text));
    return st != CDMPP_OK;
}

static int teardown(void **state) {
    (void)state;
    cd_model_free(model);
    cd_task_registry_free(tasks);
    tmp_remove(&dir);
    return 0;
}

/* What the model says of each program of the data set. */
static void of_dataset(double seconds[MADE_N]) {
    static uint32_t device[MADE_N];
    static cd_model_prediction pred[MADE_N];
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    cd_model_scratch *s = NULL;
    const char *path = h5;
    assert_ok(cd_dataset_load_within(&path, 1, &(cd_dataset_options){.steps = true}, &d, &err));
    assert_int_equal(d->n, MADE_N);
    const cd_program_view v = cd_program_view_dataset(d, device);
    assert_ok(cd_model_scratch_new(&s, &err));
    assert_ok(cd_model_predict(model, s, &v, NULL, MADE_N, pred, &err));
    for (size_t i = 0; i < MADE_N; i++) seconds[i] = pred[i].latency_s;
    cd_model_scratch_free(s);
    cd_dataset_free(d);
}

TEST(records_and_steps) {
    static double want[MADE_N];
    cdmpp_err err = {0};
    cd_scorer *s;
    double sum = 0;
    of_dataset(want);
    assert_true(cd_model_needs_steps(model) && !cd_model_needs_leaves(model));
    assert_ok(
        cd_scorer_new(model, tasks, &(cd_scorer_options){.which = {.device = "here"}}, &s, &err));
    for (int i = 0; i < MADE_N; i++) {
        cd_scored o[2];
        cd_buf line = {0}, steps = {0};
        const cd_aim aim = {.workload_key = task()->workload_key,
                            .task = task(),
                            .target = {"llvm -model=here", 16},
                            .flop = cd_task_flop(task())};
        made_record(&line, task()->workload_key, i, "llvm -model=here", 1, 0);
        made_steps(&steps, i);
        const cd_predict_line l = {line.p, line.n, "x.json", 1};
        const cd_candidate ask = {
            .form = CD_CANDIDATE_STEPS, .aim = &aim, .text = {steps.p, steps.n}};
        cd_scorer_start(s);
        assert_ok(cd_scorer_line(s, &l, &o[0], &err));
        assert_ok(cd_scorer_add(s, &ask, &o[1], &err));
        assert_ok(cd_scorer_finish(s, &err));
        for (int k = 0; k < 2; k++) {
            assert_int_equal(o[k].st, CDMPP_OK);
            assert_close(o[k].pred.latency_s, want[i], 1e-4, 0);
        }
        sum += fabs(want[i] / made_latency(i) - 1);
        cd_buf_free(&line);
        cd_buf_free(&steps);
    }
    if (sum / MADE_N > 0.2) fail_msg("mean error %g", sum / MADE_N);
    cd_scorer_free(s);
}

/* Rows beside a good candidate: they are refused, it is not. */
TEST(rows) {
    static float row[CD_N_COL];
    cdmpp_err err = {0};
    cd_scorer *s;
    cd_scored o[2];
    cd_buf line = {0};
    made_record(&line, task()->workload_key, 0, "llvm -model=here", 1, 0);
    const cd_predict_line l = {line.p, line.n, "x.json", 1};
    const cd_candidate ask = {.form = CD_CANDIDATE_ROWS_F32, .row = row, .n_row = 1};
    assert_ok(
        cd_scorer_new(model, tasks, &(cd_scorer_options){.which = {.device = "here"}}, &s, &err));
    cd_scorer_start(s);
    assert_ok(cd_scorer_add(s, &ask, &o[0], &err));
    assert_ok(cd_scorer_line(s, &l, &o[1], &err));
    assert_ok(cd_scorer_finish(s, &err));
    assert_int_equal(o[0].st, CDMPP_EMODEL);
    assert_non_null(strstr(o[0].err.msg, "steps of schedules"));
    assert_int_equal(o[1].st, CDMPP_OK);
    cd_scorer_free(s);
    cd_buf_free(&line);
}

TESTS(setup, teardown, records_and_steps, rows)
