/* An explanation: its parts sum to the prediction, the larger nest has the larger part, JSON reads
 * back. */
#include "predictor/score/explain.h"
#include "check.h"
#include "fault.h"

#include <math.h>
#include <string.h>

#include "base/text/text.h"
#include "made_here.h"
#include "made_model.h"

/* Two products, the second with 5^3 times the work of the first, which it reads. */
#define TWO                                                                                        \
    "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [{\"workload_key\": "                \
    "\"[\\\"two\\\"]\", \"target\": \"llvm\", \"ops\": ["                                          \
    "{\"name\": \"A\", \"shape\": [64, 64], \"dtype\": \"float32\"}, {\"name\": \"B\", "           \
    "\"shape\": [320, 320], \"dtype\": \"float32\"},"                                              \
    "{\"name\": \"C\", \"axis\": [[\"i\", 0, 64], [\"j\", 0, 64]], \"reduce_axis\": [[\"k\", 0, "  \
    "64]], \"reduce\": \"sum\", \"body\": \"A[i, k]*A[k, j]\"},"                                   \
    "{\"name\": \"D\", \"axis\": [[\"i\", 0, 320], [\"j\", 0, 320]], \"reduce_axis\": [[\"k\", "   \
    "0, 320]], \"reduce\": \"sum\", \"body\": \"B[i, k]*C[k%64, j%64]\"}"                          \
    "]}]}"

static tmp_dir dir;
static cd_task_registry *tasks;
static cd_model *model;

static cdmpp_status load(cdmpp_err *err) {
    static const char *const target[] = {"llvm -model=one", "llvm -model=two"};
    static const char *const set[] = {"train.rounds=60", "model.members=[rows, program]"};
    char path[256], h5[256];
    CD_TRY(cd_task_registry_new(&tasks, err));
    CD_TRY(cd_task_registry_load(tasks, MADE_TASKS, err));
    CD_TRY(made_extract(&dir, cd_task_registry_at(tasks, 0)->workload_key, target, 2, h5, err));
    CD_TRY(cd_task_registry_load(tasks, tmp_put(&dir, "two.tasks.json", TWO, strlen(TWO)), err));
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "m.cdmpp"));
    CD_TRY(made_learn(h5, set, 2, path, err));
    return cd_model_load(path, &model, err);
}

static int setup(void **state) {
    (void)state;
    char text[512];
    cdmpp_err err = {0};
    dir = tmp_make();
    const cdmpp_status st = load(&err);
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

static cdmpp_status explain(const char *text, const char *device, cd_explanation *e,
                            cdmpp_err *err) {
    const cd_predict_line l = {text, strlen(text), "x.json", 7};
    const cd_device_match_options which = {.device = device};
    return cd_explain(model, tasks, &which, &l, e, err);
}

static double sum(const double *share, size_t n, double seconds) {
    double s = 0;
    for (size_t k = 0; k < n; k++) s += share[k] * seconds;
    return s;
}

static void parts_sum_to_the_prediction(void **state) {
    (void)state;
    for (int i = 0; i < MADE_N; i += 60)
        for (int d = 0; d < 2; d++) {
            cdmpp_err err = {0};
            cd_buf b = {0};
            cd_explanation e;
            made_record(&b, cd_task_registry_at(tasks, 0)->workload_key, i, "llvm", 1, 0);
            assert_ok(explain(b.p, d ? "two" : "one", &e, &err));
            assert_string_equal(e.device, d ? "two" : "one");
            assert_int_equal(e.n_row, 2);
            assert_int_equal(e.n_leaf, 3);
            assert_close(sum(e.row_share, e.n_row, e.pred.latency_s), e.pred.latency_s, 1e-12, 0);
            assert_close(sum(e.leaf_share, e.n_leaf, e.pred.latency_s), e.pred.latency_s, 1e-12, 0);
            size_t columns = 0;
            for (size_t g = 0; g < CD_EXPLAIN_GROUPS; g++) columns += e.group[g].n_col;
            assert_int_equal(columns, CD_N_COL);
            cd_explain_free(&e);
            cd_buf_free(&b);
        }
}

static const char two[] =
    "{\"i\": [[\"[\\\"two\\\"]\", \"llvm -model=one\", " MADE_HARDWARE ", \"\", 0, []], [[], []]], "
    "\"r\": [[1], 0, 1, 1600000000], \"v\": \"v0.6\"}";

static void the_larger_nest_has_more(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_explanation e;
    double of_d = 0;
    assert_ok(explain(two, NULL, &e, &err));
    for (size_t r = 0; r < e.n_row; r++) of_d += strcmp(e.buffer[r], "D") == 0 ? e.row_share[r] : 0;
    if (of_d < 0.8) fail_msg("the nest of 125 times the work has %g of the time", of_d);
    cd_explain_free(&e);
}

static void shows(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_explanation e;
    cd_buf b = {0};
    assert_ok(explain(two, NULL, &e, &err));
    cd_explain_text(&b, &e);
    assert_false(b.oom);
    assert_non_null(strstr(b.p, "     D[i_1, j_1] = (D[i_1, j_1] + "));
    assert_non_null(strstr(b.p, "buffers (90 columns)"));
    const char *line = strstr(b.p, "as in the middle of training\n"); /* each group, in order */
    for (size_t g = 0; g < CD_EXPLAIN_GROUPS; g++) {
        char end[120];
        const double more = (e.group[g].latency_s - e.pred.latency_s) / e.pred.latency_s;
        snprintf(end, sizeof end, "%+6.0f %% %10.3e s   %s (%zu columns)\n", 100 * more,
                 e.group[g].latency_s, e.group[g].name, e.group[g].n_col);
        assert_non_null(line = strstr(line, end));
    }
    line = strstr(b.p, "feature row\n");
    for (size_t r = 0; r < e.n_row; r++) {
        char end[80];
        snprintf(end, sizeof end, "   %zu %s\n", r, e.buffer[r]);
        assert_non_null(line = strstr(line, end));
    }
    const char *nest = e.nest; /* a leaf's line is its store */
    for (int32_t at = 0; at < e.leaf_line[1]; at++) nest = strchr(nest, '\n') + 1;
    assert_int_equal(strncmp(nest + strspn(nest, " "), "C[i, j] = (C[i, j]", 18), 0);
    cd_explain_free(&e);
    cd_buf_free(&b);
}

static void json_reads_back(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_explanation e;
    cd_buf b = {0};
    cd_arena a = {0};
    const cd_json *v, *leaf;
    double total, part, all = 0;
    const cd_predict_line line = {two, strlen(two), "x.json", 7};
    assert_ok(explain(two, NULL, &e, &err));
    cd_explain_json(&b, &e, &line);
    assert_ok(cd_json_parse(&a, b.p, b.n, &v, &err));
    assert_ok(cd_json_need_real(v, "latency_s", 0, 1e9, &total, &err));
    assert_ok(cd_json_need(v, "leaves", &leaf, &err));
    assert_ok(cd_json_arr(leaf, e.n_leaf, &leaf, &err));
    for (; leaf; leaf = leaf->next) {
        assert_ok(cd_json_need_real(leaf, "seconds", 0, 1e9, &part, &err));
        all += part;
    }
    assert_close(all, total, 1e-9, 0);
    assert_non_null(cd_json_get(v, "nest"));
    cd_arena_free(&a);
    cd_buf_free(&b);
    cd_explain_free(&e);
}

static void refuses(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_explanation e;
    assert_status(explain("{", NULL, &e, &err), CDMPP_EPARSE);
    assert_string_equal(err.path, "x.json");
    assert_int_equal(err.line, 7);
    cd_explain_free(&e);
    err = (cdmpp_err){0};
    assert_status(explain(two, "three", &e, &err), CDMPP_EMODEL);
    cd_explain_free(&e);
}

static double scored(const cd_model *m, const cd_device_match_options *which,
                     cd_model_prediction *out) {
    cdmpp_err err = {0};
    cd_scorer *s;
    cd_scored o;
    assert_ok(cd_scorer_new(m, tasks, &(cd_scorer_options){.which = *which}, &s, &err));
    assert_ok(cd_scorer_run(s, &(cd_predict_line){two, strlen(two), "x.json", 7}, 1, &o, &err));
    assert_ok(o.st);
    *out = o.pred;
    cd_scorer_free(s);
    return out->latency_s;
}

/* The made models have a law of no reason but unlike operators, and the larger product has more
 * loops than what they learned: who scores and who explains have no interval, and say why. */
static void same_interval(const cd_model_prediction *e, const cd_model_prediction *want) {
    assert_true(isnan(want->low_s) && isnan(want->high_s) && isnan(want->rel_std));
    assert_true(isnan(e->low_s) && isnan(e->high_s) && isnan(e->rel_std));
    assert_true(want->flags & CD_MODEL_OUT_OF_RANGE && want->reason);
    assert_int_equal(e->reason, want->reason);
    assert_close(e->like_std, want->like_std, 1e-12, 0);
}

/* Of a corrected model, and of a device that it does not know: the prediction is the one that it
 * gives for the record, and groups are corrected like it. */
static void explains_what_is_answered(void **state) {
    (void)state;
    static const char yaml[] = "- {name: one, kind: cpu, clock_mhz: 3000, cores: 4}\n- {name: two, "
                               "kind: cpu, clock_mhz: 3000, cores: 64}\n"
                               "- {name: three, kind: cpu, clock_mhz: 3000, cores: 5}\n";
    const cd_predict_line l = {two, strlen(two), "x.json", 7};
    cdmpp_err err = {0};
    cd_diag diag = {0};
    cd_device_table *devices;
    cd_model *here;
    cd_explanation e, plain;
    cd_model_prediction want;
    assert_ok(cd_device_table_load(tmp_put(&dir, "devices.yaml", yaml, strlen(yaml)), &diag,
                                   &devices, &err));
    assert_ok(made_here(tmp_path(&dir, "m.cdmpp"), 0, 4, &here, &err));
    for (int k = 0; k < 2; k++) {
        const cd_device_match_options which = {
            .device = k ? "three" : "mine", .nearest = true, .devices = devices};
        const cd_device_match_options other = {
            .device = k ? "three" : "one", .nearest = true, .devices = devices};
        assert_ok(cd_explain(here, tasks, &which, &l, &e, &err));
        assert_ok(cd_explain(model, tasks, &other, &l, &plain, &err));
        assert_close(e.pred.latency_s, scored(here, &which, &want), 1e-12, 0);
        same_interval(&e.pred, &want);
        assert_true(k ? e.pred.latency_s == plain.pred.latency_s
                      : e.pred.latency_s > 1.2 * plain.pred.latency_s);
        for (size_t g = 0; g < CD_EXPLAIN_GROUPS; g++)
            assert_true(k ? e.group[g].latency_s == plain.group[g].latency_s
                          : e.group[g].latency_s > 1.2 * plain.group[g].latency_s);
        cd_explain_free(&plain);
        cd_explain_free(&e);
    }
    cd_model_free(here);
    cd_device_table_free(devices);
    cd_diag_free(&diag);
}

/* The k-th allocation fails, for k spread over all of them. */
static void memory_runs_out(void **state) {
    (void)state;
    FAULT_SWEEP(f, 1) {
        cd_explanation e;
        cd_buf b = {0};
        f.step = 1 + f.k / 16;
        f.st = explain(two, NULL, &e, &f.err);
        if (!f.st) cd_explain_text(&b, &e);
        if (b.oom) f.st = CDMPP_ENOMEM;
        cd_explain_free(&e);
        cd_buf_free(&b);
    }
}

TESTS(setup, teardown, parts_sum_to_the_prediction, the_larger_nest_has_more, shows,
      json_reads_back, refuses, explains_what_is_answered, memory_runs_out)
