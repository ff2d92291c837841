/* A model of facts scores records, steps and the data set that was made of them to the same bits;
 * of rows it says what they lack; a described device that it does not know has analytic times of
 * its own. */
#include "predictor/score/score.h"
#include "check.h"

#include <string.h>

#include "fault.h"
#include "made_scorer.h"

#define TARGET "llvm -model=zen4"
static made_scorer made;
enum { COLUMNS, PRIOR, NET, N_MODEL };
static cd_model *model[N_MODEL]; /* trees of columns, of a prior, a network of columns */

static const cd_task *task(void) { return cd_task_registry_at(made.tasks, 0); }

static cdmpp_status learn(const char *name, const char *use, const char *members, const char *net,
                          cd_model **m, cdmpp_err *err) {
    const char *const set[] = {use, members, net, "train.rounds=40", "fit.steps=40"};
    return made_learn_model(&made.dir, name, made.h5, set, 5, m, err);
}

static int setup(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cdmpp_status st = made_scorer_up(&made, TARGET, &err);
    if (!st)
        st = learn("columns", "train.facts=columns", "model.members=[rows, program]",
                   "net.facts=false", &model[COLUMNS], &err);
    if (!st)
        st = learn("prior", "train.facts=prior", "model.members=[rows, program]", "net.facts=false",
                   &model[PRIOR], &err);
    if (!st)
        st = learn("net", "train.facts=columns", "model.members=[mlp]", "net.facts=true",
                   &model[NET], &err);
    return made_scorer_told(st, &err);
}

static int teardown(void **state) {
    (void)state;
    for (int k = 0; k < N_MODEL; k++) cd_model_free(model[k]);
    made_scorer_down(&made);
    return 0;
}

/* What the model says of each program of the data set, whose analytic times are computed again. */
static void of_dataset(const cd_model *m, double seconds[MADE_N]) {
    static uint32_t device[MADE_N];
    static float analytic[MADE_N * CD_N_ANALYTIC];
    static cd_model_prediction pred[MADE_N];
    cdmpp_err err = {0};
    cd_model_scratch *s = NULL;
    cd_dataset *d = made_scorer_facts(made.h5, CD_FACTS_OF_CPU, m, MADE_N, analytic);
    const cd_program_view v = cd_program_view_facts(d, device, analytic, CD_FACTS_OF_CPU),
                          none = cd_program_view_dataset(d, device);
    assert_ok(cd_model_scratch_new(&s, &err));
    assert_ok(cd_model_predict(m, s, &v, NULL, MADE_N, pred, &err));
    for (size_t i = 0; i < MADE_N; i++) seconds[i] = pred[i].latency_s;
    assert_status(cd_model_predict(m, s, &none, NULL, 1, pred, &err), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "facts of "));
    analytic[2 * CD_N_ANALYTIC] = NAN; /* one without */
    assert_status(cd_model_predict(m, s, &v, NULL, MADE_N, pred, &err), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "program 2"));
    cd_model_scratch_free(s);
    cd_dataset_free(d);
}

static cd_scorer *scorer(const cd_model *m, const char *device) {
    cdmpp_err err = {0};
    cd_scorer *s;
    assert_ok(cd_scorer_new(
        m, made.tasks,
        &(cd_scorer_options){.which = {.device = device, .nearest = true, .devices = made.devices}},
        &s, &err));
    return s;
}

/* Program i as a record and as steps. */
static void score(cd_scorer *s, int i, cd_scored o[2]) {
    cdmpp_err err = {0};
    cd_buf line = {0}, steps = {0};
    const cd_aim aim = {.workload_key = task()->workload_key,
                        .task = task(),
                        .target = {TARGET, sizeof TARGET - 1},
                        .flop = cd_task_flop(task())};
    made_record(&line, task()->workload_key, i, TARGET, 1, 0);
    made_steps(&steps, i);
    const cd_predict_line l = {line.p, line.n, "x.json", 1};
    const cd_candidate ask = {.form = CD_CANDIDATE_STEPS, .aim = &aim, .text = {steps.p, steps.n}};
    cd_scorer_start(s);
    assert_ok(cd_scorer_line(s, &l, &o[0], &err));
    assert_ok(cd_scorer_add(s, &ask, &o[1], &err));
    assert_ok(cd_scorer_finish(s, &err));
    for (int k = 0; k < 2; k++) assert_int_equal(o[k].st, CDMPP_OK);
    cd_buf_free(&line);
    cd_buf_free(&steps);
}

TEST(same_bits) {
    static double want[MADE_N];
    for (int k = 0; k < N_MODEL; k++) {
        cd_scorer *s = scorer(model[k], "zen4");
        assert_true(cd_model_needs_facts(model[k]) && !cd_model_needs_leaves(model[k]) &&
                    !cd_model_needs_steps(model[k]));
        of_dataset(model[k], want);
        for (int i = 0; i < MADE_N; i++) {
            cd_scored o[2];
            score(s, i, o);
            /* products of other sizes round otherwise */
            assert_close(o[0].pred.latency_s, want[i], k == NET ? 1e-4 : 0, 0);
            assert_true(o[1].pred.latency_s == o[0].pred.latency_s);
        }
        cd_scorer_free(s);
    }
}

/* Another device stands for it in the trees; its own clock counts in the prior. */
TEST(unknown_device) {
    static const char text[] =
        "- name: slow one\n  kind: cpu\n  clock_mhz: 100\n  cores: 8\n  cores_used: 1\n  lanes: "
        "32\n  simd_bits: 512\n  bandwidth_gb_s: 10\n"
        "  l1_kb: 32\n  l2_kb: 1024\n  l3_kb: 16384\n";
    cdmpp_err err = {0};
    cd_diag diag = {0};
    cd_device_table *own = NULL;
    cd_scorer *known = scorer(model[PRIOR], "zen4"), *s;
    assert_ok(cd_device_table_read("own.yaml", text, sizeof text - 1, &diag, &own, &err));
    assert_ok(cd_scorer_new(
        model[PRIOR], made.tasks,
        &(cd_scorer_options){.which = {.device = "slow one", .nearest = true, .devices = own},
                             .peaks = own},
        &s, &err));
    int slower = 0;
    for (int i = 0; i < MADE_N; i += 7) {
        cd_scored a[2], b[2];
        score(known, i, a);
        score(s, i, b);
        assert_true(b[0].which.unknown && b[0].which.own && !a[0].which.own);
        slower += b[0].pred.median_s > a[0].pred.median_s;
        /* by its own peaks */
        assert_close(b[0].least_s, cd_device_least_s(b[0].which.own, &task()->dag->least), 1e-12,
                     0);
        assert_true(b[0].least_s > 0 && b[0].pred.latency_s >= b[0].least_s);
        assert_true(b[0].which.doubt.shift >= CD_DEVICE_LAW_LEAST_SHIFT &&
                    a[0].which.doubt.shift == 0);
        assert_true(b[0].pred.rel_std >= hypot(b[0].which.doubt.shift, b[0].which.doubt.own) &&
                    b[0].pred.rel_std > a[0].pred.rel_std);
    }
    if (slower < MADE_N / 7 * 9 / 10) fail_msg("%d of %d are slower", slower, MADE_N / 7);
    cd_scorer_free(known);
    cd_scorer_free(s);
    cd_device_table_free(own);
    cd_diag_free(&diag);
}

/* Rows beside a good candidate: they are refused, it is not. */
TEST(rows) {
    static float row[CD_N_COL];
    cdmpp_err err = {0};
    cd_scored o[3];
    cd_scorer *s = scorer(model[PRIOR], "zen4");
    const cd_candidate ask = {.form = CD_CANDIDATE_ROWS_F32, .row = row, .n_row = 1};
    cd_scorer_start(s);
    assert_ok(cd_scorer_add(s, &ask, &o[0], &err));
    assert_ok(cd_scorer_finish(s, &err));
    assert_int_equal(o[0].st, CDMPP_EMODEL);
    assert_non_null(strstr(o[0].err.msg, "facts of loop nests"));
    score(s, 3, o + 1);
    cd_scorer_free(s);
}

/* Nothing leaks where memory ends; the second batch of the same size asks for none. */
TEST(no_memory) {
    cd_buf line = {0};
    made_record(&line, task()->workload_key, 5, TARGET, 1, 0);
    const cd_predict_line l = {line.p, line.n, "x.json", 1};
    FAULT_SWEEP(f, 3) {
        cd_scored o;
        cd_scorer *s = NULL;
        f.st = cd_scorer_new(model[PRIOR], made.tasks,
                             &(cd_scorer_options){.which = {.device = "zen4"}}, &s, &f.err);
        if (!f.st) f.st = cd_scorer_run(s, &l, 1, &o, &f.err);
        if (!f.st) f.st = o.st;
        cd_scorer_free(s);
    }
    cdmpp_err err = {0};
    cd_scored o;
    cd_scorer *s = scorer(model[PRIOR], "zen4");
    assert_ok(cd_scorer_run(s, &l, 1, &o, &err));
    assert_ok(cd_scorer_run(s, &l, 1, &o, &err));
    fault_all();
    const cdmpp_status st = cd_scorer_run(s, &l, 1, &o, &err);
    fault_off();
    assert_ok(st);
    assert_int_equal(o.st, CDMPP_OK);
    cd_scorer_free(s);
    cd_buf_free(&line);
}

TESTS(setup, teardown, same_bits, unknown_device, rows, no_memory)
