/* The whole line: records of one task, with made-up latencies, are extracted,
 * learned and predicted; then what a predictor must refuse. */
#include "predictor/stream.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "dataset/extract.h"
#include "learner/learner.h"
#include "tmp.h"

#define TASKS "tests/fuzz/seeds/taskfile/matmul.tasks.json"
enum { N = 7 * 7 * 5 };
static tmp_dir dir;
static char log_path[256], model_path[256];
static cd_tasks *tasks;
static cd_model *model;

static double latency(int i) { return 1e-3 * exp2(i % 7) / (1 + i / 7 % 7); }

/* Split the three loops of C by powers of two. */
static void put_record(cd_buf *b, int i, const char *target, double cost, int error) {
    const char *key = cd_tasks_at(tasks, 0)->workload_key;
    cd_buf_puts(b, "{\"i\": [[");
    cd_buf_put_json_str(b, key, strlen(key));
    cd_buf_putf(b, ", \"%s\", [8, 64, 64, 0, 0, 0, 0, 0], \"\", 0, []], [[], [[\"SP\", 2, 0, 512, [%d], 1], "
                   "[\"SP\", 2, 2, 512, [%d], 1], [\"SP\", 2, 4, 512, [%d], 1]]]], ", target, 1 << i % 7, 1 << i / 7 % 7, 1 << i / 49);
    cd_buf_putf(b, "\"r\": [[%.9g, %.9g, %.9g], %d, 1, 1600000000], \"v\": \"v0.6\"}\n", cost, cost,
                error ? cost : 1.01 * cost, error);
}

static cdmpp_status extract(const char *out, cdmpp_err *err) {
    const char *in[] = {log_path}, *task[] = {TASKS};
    cd_extract_stats s;
    const cd_extract x = {.out = out, .input = in, .n_input = 1, .task_file = task, .n_task_file = 1, .jobs = 1};
    return cd_extract_logs(&x, &s, err);
}

static cdmpp_status learn(const char *h5, cdmpp_err *err) {
    char set[300];
    cd_config c;
    cd_learned l = {0};
    cdmpp_status st = cd_config_init(&c, err);
    snprintf(set, sizeof set, "data.files=\"%s\"", h5);
    if (!st) st = cd_config_set(&c, set, err);
    if (!st) st = cd_config_set(&c, "split.kind=record", err);
    if (!st) st = cd_config_set(&c, "train.rounds=120", err);
    if (!st) st = cd_learner_train(&c, NULL, NULL, NULL, NULL, &l, err);
    if (!st) st = cd_file_write(model_path, l.file.p, l.file.n, err);
    cd_learned_free(&l);
    cd_config_free(&c);
    return st;
}

static int setup(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_buf b = {0};
    char text[512];
    dir = tmp_make();
    snprintf(log_path, sizeof log_path, "%s", tmp_path(&dir, "log.json"));
    snprintf(model_path, sizeof model_path, "%s", tmp_path(&dir, "m.cdmpp"));
    const char *h5 = tmp_path(&dir, "d.h5");
    cdmpp_status st = cd_tasks_new(&tasks, &err);
    if (!st) st = cd_tasks_load(tasks, TASKS, &err);
    for (int i = 0; !st && i < N; i++) put_record(&b, i, "llvm -model=here", latency(i), 0);
    if (!st) st = cd_file_write(log_path, b.p, b.n, &err);
    if (!st) st = extract(h5, &err);
    if (!st) st = learn(h5, &err);
    if (!st) st = cd_model_load(model_path, &model, &err);
    if (st) print_error("%s\n", cdmpp_err_format(&err, text, sizeof text));
    cd_buf_free(&b);
    return st != CDMPP_OK;
}

static int teardown(void **state) {
    (void)state;
    cd_model_free(model);
    cd_tasks_free(tasks);
    tmp_remove(&dir);
    return 0;
}

static cdmpp_status one(const char *device, const char *text, cd_scored *o) {
    cdmpp_err err = {0};
    cd_scorer *s;
    const cd_line l = {text, strlen(text), "x.json", 7};
    CD_TRY(cd_scorer_new(model, tasks, device, &s, &err));
    assert_ok(cd_scorer_run(s, &l, 1, o, &err));
    cd_scorer_free(s);
    return o->st;
}

static void predicts_what_was_learned(void **state) {
    (void)state;
    double sum = 0;
    for (int i = 0; i < N; i += 11) {
        cd_buf b = {0};
        cd_scored o;
        put_record(&b, i, "llvm -model=here", 5, 0);
        assert_int_equal(one(NULL, b.p, &o), CDMPP_OK);
        assert_close(o.measured_s, 5, 1e-9, 0); /* the record's own, not the one learned */
        sum += fabs(o.pred.latency_s / latency(i) - 1);
        cd_buf_free(&b);
    }
    if (sum / ((N + 10) / 11) > 0.2) fail_msg("mean error %g", sum / ((N + 10) / 11));
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

static void stream(const char *path, int jobs, bool eval, char **out, size_t *n, cd_stream_stats *stats) {
    cdmpp_err err = {0};
    cd_threads *pool;
    cd_stream *s;
    cd_metrics m;
    FILE *f = open_memstream(out, n);
    assert_ok(cd_threads_new(jobs, &pool, &err));
    assert_ok(cd_stream_new(model, tasks, NULL, pool, f, &s, &err));
    cd_stream_options(s, eval, false);
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
    for (int i = 0; i < N; i++) {
        if (i == 100) cd_buf_puts(&b, "{\"i\": bad\n");
        put_record(&b, i, "llvm -model=here", i == 5 ? 1e10 : latency(i), i == 5 ? 4 : 0);
    }
    const char *path = tmp_put(&dir, "mixed.json", b.p, b.n);
    stream(path, 1, true, &one_job, &n, &st);
    assert_int_equal(st.lines, N + 1);
    assert_int_equal(st.bad, 1);
    assert_int_equal(st.reason[CDMPP_EPARSE], 1);
    assert_int_equal(st.unmeasured, 1);
    stream(path, 4, true, &four, &n4, &st);
    assert_int_equal(n, n4);
    assert_memory_equal(one_job, four, n);
    const char *p = one_job;
    for (int i = 0; i <= N; i++, p = strchr(p, '\n') + 1) {
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

static void public_calls(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cdmpp_tasks *t;
    cdmpp_model *m;
    cdmpp_scratch *s;
    cd_scored o;
    cd_buf b = {0};
    double y = -1;
    assert_ok(cdmpp_tasks_new(&t, &err));
    assert_ok(cdmpp_tasks_load(t, TASKS, &err));
    assert_true(cdmpp_tasks_count(t) >= 1);
    assert_ok(cdmpp_model_load(model_path, &m, &err));
    assert_ok(cdmpp_scratch_new(m, t, NULL, &s, &err));
    put_record(&b, 9, "llvm -model=here", 1, 0);
    assert_status(cdmpp_predict_line(s, b.p, 10, &y, &err), CDMPP_EPARSE);
    assert_true(y == -1);
    assert_ok(cdmpp_predict_line(s, b.p, b.n, &y, &err));
    assert_int_equal(one(NULL, b.p, &o), CDMPP_OK);
    assert_true(y == o.pred.latency_s);
    assert_true(cdmpp_model_info(m)[0] == '{');
    assert_status(cdmpp_model_load(TASKS, &m, &err), CDMPP_EPARSE);
    cdmpp_scratch_free(s);
    cdmpp_model_free(m);
    cdmpp_tasks_free(t);
    cd_buf_free(&b);
}

int main(void) {
    const struct CMUnitTest t[] = {cmocka_unit_test(predicts_what_was_learned), cmocka_unit_test(refuses),
                                   cmocka_unit_test(streams_in_order), cmocka_unit_test(public_calls)};
    return cmocka_run_group_tests_name("predict", t, setup, teardown);
}
