/* The whole line: records of one task, with made-up latencies, are extracted,
 * learned and predicted; then what a predictor must refuse. */
#include "predictor/serve/serve.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "made_model.h"

static tmp_dir dir;
static char model_path[256];
static cd_task_registry *tasks;
static cd_model *model;

static void put_record(cd_buf *b, int i, const char *target, double cost, int error) {
    made_record(b, cd_task_registry_at(tasks, 0)->workload_key, i, target, cost, error);
}

static int setup(void **state) {
    (void)state;
    static const char *const target[] = {"llvm -model=here"}, *const set[] = {"train.rounds=120"};
    cdmpp_err err = {0};
    char text[512], h5[256];
    dir = tmp_make();
    snprintf(model_path, sizeof model_path, "%s", tmp_path(&dir, "m.cdmpp"));
    cdmpp_status st = cd_task_registry_new(&tasks, &err);
    if (!st) st = cd_task_registry_load(tasks, MADE_TASKS, &err);
    if (!st)
        st = made_extract(&dir, cd_task_registry_at(tasks, 0)->workload_key, target, 1, h5, &err);
    if (!st) st = made_learn(h5, set, 1, model_path, &err);
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

static cdmpp_status one(const char *device, const char *text, cd_scored *o) {
    cdmpp_err err = {0};
    cd_scorer *s;
    const cd_predict_line l = {text, strlen(text), "x.json", 7};
    const cd_scorer_options opt = {.which = {.device = device}};
    CD_TRY(cd_scorer_new(model, tasks, &opt, &s, &err));
    assert_ok(cd_scorer_run(s, &l, 1, o, &err));
    cd_scorer_free(s);
    return o->st;
}

static void predicts_what_was_learned(void **state) {
    (void)state;
    double sum = 0;
    for (int i = 0; i < MADE_N; i += 11) {
        cd_buf b = {0};
        cd_scored o;
        put_record(&b, i, "llvm -model=here", 5, 0);
        assert_int_equal(one(NULL, b.p, &o), CDMPP_OK);
        assert_close(o.measured_s, 5, 1e-9, 0); /* the record's own, not the one learned */
        sum += fabs(o.pred.latency_s / made_latency(i) - 1);
        cd_buf_free(&b);
    }
    if (sum / ((MADE_N + 10) / 11) > 0.2) fail_msg("mean error %g", sum / ((MADE_N + 10) / 11));
}

static void refuses(void **state) {
    (void)state;
    cd_scored o;
    cd_buf b = {0};
    assert_int_equal(one(NULL, "{", &o), CDMPP_EPARSE);
    assert_string_equal(o.err.path, "x.json");
    assert_int_equal(o.err.line, 7);
    put_record(&b, 3, "llvm -model=elsewhere", 1, 0);
    assert_int_equal(one(NULL, b.p, &o), CDMPP_EMODEL);
    assert_non_null(strstr(o.err.msg, "expected one of here, found 'elsewhere'"));
    assert_int_equal(one("here", b.p, &o), CDMPP_OK);
    assert_int_equal(one("nowhere", b.p, &o), CDMPP_EMODEL);
    cd_buf_clear(&b);
    put_record(&b, 3, "cuda -model=here", 1, 0); /* a CPU model, a GPU record */
    assert_int_equal(one(NULL, b.p, &o), CDMPP_EMODEL);
    cd_buf_clear(&b);
    put_record(&b, 3, "llvm", 1, 0); /* says nothing: a model of one device takes it */
    assert_int_equal(one(NULL, b.p, &o), CDMPP_OK);
    cd_buf_clear(&b);
    put_record(&b, 3, "llvm", 1e10, 4);
    assert_int_equal(one(NULL, b.p, &o), CDMPP_OK);
    assert_true(isnan(o.measured_s));
    *strstr(b.p, "matmul") = 'X'; /* another key */
    assert_int_equal(one(NULL, b.p, &o), CDMPP_ENOTASK);
    cd_buf_free(&b);
}

static void stream(const char *path, int jobs, bool eval, char **out, size_t *n,
                   cd_stream_stats *stats) {
    cdmpp_err err = {0};
    cd_threads *pool;
    cd_stream *s;
    cd_metric m;
    FILE *f = open_memstream(out, n);
    assert_ok(cd_threads_new(jobs, &pool, &err));
    assert_ok(cd_stream_new(model, tasks, &(cd_stream_options){.eval = eval}, pool, f, &s, &err));
    assert_ok(cd_stream_file(s, path, &err));
    assert_ok(cd_stream_end(s, &err));
    assert_ok(cd_stream_metrics(s, &m, &err));
    *stats = *cd_stream_counts(s);
    assert_int_equal(m.n, eval ? stats->scored - stats->unmeasured : 0);
    cd_stream_free(s);
    cd_threads_free(pool);
    fclose(f);
}

static void streams_in_order(void **state) {
    (void)state;
    cd_buf b = {0};
    cd_stream_stats st;
    char *one_job, *four, want[64];
    size_t n, n4;
    cd_buf_puts(&b, "# a comment\n\n");
    for (int i = 0; i < MADE_N; i++) {
        if (i == 100) cd_buf_puts(&b, "{\"i\": bad\n");
        put_record(&b, i, "llvm -model=here", i == 5 ? 1e10 : made_latency(i), i == 5 ? 4 : 0);
    }
    const char *path = tmp_put(&dir, "mixed.json", b.p, b.n);
    stream(path, 1, true, &one_job, &n, &st);
    assert_int_equal(st.lines, MADE_N + 1);
    assert_int_equal(st.bad, 1);
    assert_int_equal(st.reason[CDMPP_EPARSE], 1);
    assert_int_equal(st.unmeasured, 1);
    stream(path, 4, true, &four, &n4, &st);
    assert_int_equal(n, n4);
    assert_memory_equal(one_job, four, n);
    const char *p = one_job;
    for (int i = 0; i <= MADE_N; i++, p = strchr(p, '\n') + 1) {
        snprintf(want, sizeof want, "\"line\":%d,", i + 3);
        assert_non_null(strstr(p, want));
        assert_true(strstr(p, want) < strchr(p, '\n'));
        if (i == 100) assert_non_null(strstr(p, "\"error\":{\"code\":\"EPARSE\""));
    }
    assert_int_equal(*p, 0);
    assert_non_null(strstr(one_job, "\"measured_s\":null,\"error\":null}\n"));
    free(one_job);
    free(four);
    cd_buf_free(&b);
}

TESTS(setup, teardown, predicts_what_was_learned, refuses, streams_in_order)
