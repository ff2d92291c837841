/* Intervals of the model that a calibration writes, on made programs whose truth is known: times of
 * the new machine are three times what the model says, off by a normal logarithm. Its instructions
 * are none that the device which stands for it was trained with. */
#include "check.h"
#include "predictor/calibrate/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "made_model.h"
#include "predictor/estimate/estimate.h"
#include "tmp.h"

enum { TASKS = 40, TRAINED = 5, DRAWN = 40, ASKED = 100, RUNS = 6 };
static const double off = 0.4; /* standard deviation on the logarithm */
static const char seen[] = "llvm -model=zen4 -mcpu=skylake-avx512",
                  fresh[] = "llvm -model=new -mcpu=core-avx2";

static tmp_dir dir;
static char model_path[256], log_path[256], tasks_path[256];
static cd_task_registry *tasks;
static cd_model *model;

static const char *key_of(int t) { return cd_task_registry_at(tasks, (size_t)t)->workload_key; }

static cdmpp_status make_tasks(cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_puts(&b, "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [");
    for (int i = 0; i < TASKS; i++) {
        const int m = 32 * (1 + i % 8), n = 32 * (1 + i / 8);
        cd_buf_putf(&b,
                    "%s{\"workload_key\": \"[\\\"made\\\", %d]\", \"ops\": [{\"name\": \"A\", "
                    "\"shape\": [%d, 64], \"dtype\": \"float32\"},",
                    i ? "," : "", i, m);
        cd_buf_putf(&b, "{\"name\": \"B\", \"shape\": [64, %d], \"dtype\": \"float32\"},", n);
        cd_buf_putf(
            &b,
            "{\"name\": \"C\", \"axis\": [[\"i\", 0, %d], [\"j\", 0, %d]], \"reduce_axis\": "
            "[[\"k\", 0, 64]], \"reduce\": \"sum\", \"body\": \"A[i, k]*B[k, j]\"},",
            m, n);
        cd_buf_putf(&b,
                    "{\"name\": \"D\", \"axis\": [[\"i\", 0, %d], [\"j\", 0, %d]], \"body\": "
                    "\"max(C[i, j], 0)\"}]}",
                    m, n);
    }
    cd_buf_puts(&b, "]}");
    snprintf(tasks_path, sizeof tasks_path, "%s", tmp_put(&dir, "made.tasks.json", b.p, b.n));
    cdmpp_status st = cd_task_registry_new(&tasks, err);
    if (!st) st = cd_task_registry_load(tasks, tasks_path, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status train(cdmpp_err *err) {
    static const char *const set[] = {"train.rounds=40"};
    cd_buf b = {0};
    cd_extract_stats s;
    char h5[256];
    for (int t = 0; t < TASKS; t++)
        for (int k = 0; k < TRAINED; k++)
            made_record(&b, key_of(t), (t * 37 + k * 11) % MADE_N, seen,
                        1e-6 * (1 + t % 8) * (1 + t / 8) * (1 + k), 0);
    snprintf(h5, sizeof h5, "%s", tmp_path(&dir, "made.h5"));
    const char *in[] = {tmp_put(&dir, "made.json", b.p, b.n)}, *task[] = {tasks_path};
    const cd_extract x = {.out = h5,
                          .input = in,
                          .n_input = 1,
                          .task_file = task,
                          .n_task_file = 1,
                          .jobs = 1,
                          .steps = true};
    cd_buf_free(&b);
    CD_TRY(cd_extract_logs(&x, &s, err));
    return made_learn(h5, set, 1, model_path, err);
}

static int setup(void **state) {
    (void)state;
    cdmpp_err err = {0};
    char text[512];
    dir = tmp_make();
    snprintf(model_path, sizeof model_path, "%s", tmp_path(&dir, "m.cdmpp"));
    snprintf(log_path, sizeof log_path, "%s", tmp_path(&dir, "new.records.json"));
    cdmpp_status st = make_tasks(&err);
    if (!st) st = train(&err);
    if (!st) st = cd_model_load(model_path, &model, &err);
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

/* ---- the truth ---- */
static double normal(uint64_t seed, uint64_t i) {
    return sqrt(-2 * log(fmax(cd_rng_unit(seed, 2 * i), 1e-12))) *
           cos(2 * 3.14159265358979323846 * cd_rng_unit(seed, 2 * i + 1));
}

/* Program k of a run: of one of the even tasks where it calibrates, else of the odd ones. */
static void draw(uint64_t run, uint64_t k, bool asked, int *task, int *program) {
    *task = 2 * (int)(cd_rng_at(100 + run, 3 * k) % (TASKS / 2)) + asked;
    *program = (int)(cd_rng_at(100 + run, 3 * k + 1) % MADE_N);
}

static cd_scored ask(const cd_model *m, const char *device, const char *key, int program) {
    cdmpp_err err = {0};
    cd_buf line = {0};
    cd_scored o;
    cd_scorer *s;
    made_record(&line, key, program, fresh, 1, 0);
    const cd_predict_line l = {line.p, line.n, "", 1};
    const cd_scorer_options so = {.which = {.device = device}};
    assert_ok(cd_scorer_new(m, tasks, &so, &s, &err));
    assert_ok(cd_scorer_run(s, &l, 1, &o, &err));
    assert_int_equal(o.st, CDMPP_OK);
    cd_scorer_free(s);
    cd_buf_free(&line);
    return o;
}

static double truth(uint64_t run, uint64_t k, const char *key, int program) {
    return 3 * ask(model, "zen4", key, program).pred.median_s * exp(off * normal(run, k));
}

/* ---- calibrated, and asked ---- */
static void calibrate(uint64_t run, cd_calibrate_result *r) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    for (uint64_t k = 0; k < DRAWN; k++) {
        int t, i;
        draw(run, k, false, &t, &i);
        made_record(&b, key_of(t), i, fresh, truth(run, k, key_of(t), i), 0);
    }
    tmp_put(&dir, "new.records.json", b.p, b.n);
    cd_buf_free(&b);
    const char *log[] = {log_path};
    const cd_calibrate_fit_options o = {.model = model,
                                        .tasks = tasks,
                                        .device = "zen4",
                                        .name = "new",
                                        .log = log,
                                        .n_log = 1,
                                        .given = true};
    assert_ok(cd_calibrate_fit(&o, r, &err));
}

/* The share of other tasks' programs that the written model holds, with intervals `times` as wide
 * as it says. */
static double inside(uint64_t run, const cd_calibrate_result *r, double times) {
    cdmpp_err err = {0};
    cd_buf out = {0};
    cd_model *m;
    char *file;
    size_t n, in = 0;
    const cd_here h = {.stands = 0,
                       .name = "new",
                       .cpu = "x",
                       .programs = 1,
                       .widen = times * r->widen,
                       .most = times < 1 ? 0 : r->most,
                       .marks = r->marks.p,
                       .trees = r->trees};
    assert_ok(cd_file_read(model_path, 0, &file, &n, &err));
    assert_ok(cd_here_add(file, n, &h, "", &out, &err));
    assert_ok(cd_model_from_bytes(out.p, out.n, &m, &err));
    for (uint64_t k = DRAWN; k < DRAWN + ASKED; k++) {
        int t, i;
        draw(run, k, true, &t, &i);
        const cd_scored o = ask(m, "new", key_of(t), i);
        const double y = truth(run, k, key_of(t), i);
        /* it was measured, so it is known of the machine */
        assert_false(o.pred.reason & CD_UNLIKE_FEATURE);
        in += o.pred.low_s <= y && y <= o.pred.high_s;
    }
    cd_model_free(m);
    cd_mem_free(file);
    cd_buf_free(&out);
    return (double)in / ASKED;
}

/* Of 40 programs the rank that is the end holds 90 +- 4.7 %, and 100 that are asked about tell it
 * to 3 %: the mean of six runs is within three deviations of 2.3 %. What the command tells of
 * itself is, too, and intervals of half the width are noticed. */
TEST(the_written_model_holds_nine_in_ten) {
    double held = 0, half = 0, told = 0;
    for (uint64_t run = 0; run < RUNS; run++) {
        cd_calibrate_result r;
        calibrate(run, &r);
        /* of who stands for it they are new */
        assert_true(ask(model, "zen4", key_of(0), 1).pred.reason & CD_UNLIKE_FEATURE);
        assert_int_equal(r.after.ranged, r.after.n);
        told += r.after.inside / RUNS;
        held += inside(run, &r, 1) / RUNS;
        half += inside(run, &r, 0.5) / RUNS;
        cd_calibrate_result_free(&r);
    }
    print_message("told %.3f, held %.3f, half as wide %.3f\n", told, held, half);
    assert_true(held > 0.83 && held < 0.97);
    assert_true(told > 0.83 && told < 0.97);
    assert_true(half < 0.83);
}

TESTS(setup, teardown, the_written_model_holds_nine_in_ten)
