/* Records that were measured on one device, asked for another: the model moved by what it misses on
 * the first, closed forms beside it. */
#include "predictor/serve/serve.h"
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "made_model.h"

static tmp_dir dir;
static cd_task_registry *tasks;
static cd_model *model;
static cd_device here = {.name = "here", .kind = CD_DEVICE_GPU};
static cd_device there = {.name = "there", .kind = CD_DEVICE_GPU};

/* The model learns two devices, the second half as fast. */
static int setup(void **state) {
    (void)state;
    static const char *const target[] = {"llvm -model=here", "llvm -model=there"};
    static const char *const set[] = {"train.rounds=120"};
    cdmpp_err err = {0};
    char h5[256], path[256];
    dir = tmp_make();
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "m.cdmpp"));
    assert_ok(cd_task_registry_new(&tasks, &err));
    assert_ok(cd_task_registry_load(tasks, MADE_TASKS, &err));
    assert_ok(made_extract(&dir, cd_task_registry_at(tasks, 0)->workload_key, target, 2, h5, &err));
    assert_ok(made_learn(h5, set, 1, path, &err));
    assert_ok(cd_model_load(path, &model, &err));
    here.bandwidth_gb_s = 100, here.fp32_gflops = 1000, here.clock_mhz = 1000, here.cores = 10,
    here.core_threads = 2048;
    there = (cd_device){.name = "there",
                        .kind = CD_DEVICE_GPU,
                        .bandwidth_gb_s = 200,
                        .fp32_gflops = 4000,
                        .clock_mhz = 2000,
                        .cores = 20,
                        .core_threads = 2048};
    return 0;
}

static int teardown(void **state) {
    (void)state;
    cd_model_free(model);
    cd_task_registry_free(tasks);
    tmp_remove(&dir);
    return 0;
}

static char *answer(const cd_buf *records, const cd_stream_options *o, cd_stream_stats *n) {
    cdmpp_err err = {0};
    cd_threads *pool;
    cd_stream *s;
    char *out;
    size_t len;
    FILE *f = open_memstream(&out, &len);
    assert_ok(cd_threads_new(2, &pool, &err));
    assert_ok(cd_stream_new(model, tasks, o, pool, f, &s, &err));
    assert_ok(cd_stream_file(s, tmp_put(&dir, "in.json", records->p, records->n), &err));
    assert_ok(cd_stream_end(s, &err));
    *n = *cd_stream_counts(s);
    cd_stream_free(s);
    cd_threads_free(pool);
    fclose(f);
    return out;
}

static double number(const char *text, const char *key) {
    const char *at = strstr(text, key);
    if (!at) fail_msg("no %s in %s", key, text);
    return strtod(at + strlen(key), NULL);
}

/* 512 cubed of floats: 2^28 operations and 3 * 2^20 bytes. Times at the peaks of the destination:
 * 2^28 / 4e12, 3 * 2^20 / 2e11. */
TEST(half_of_what_the_model_misses_is_carried) {
    cd_buf b = {0};
    cd_stream_stats n;
    made_record(&b, cd_task_registry_at(tasks, 0)->workload_key, 9, "llvm -model=here",
                4 * made_latency(9), 0);
    char *plain = answer(&b, &(cd_stream_options){.device = "there"}, &n),
         *from = answer(&b, &(cd_stream_options){.device = "here"}, &n);
    char *out = answer(&b, &(cd_stream_options){.from = &here, .to = &there}, &n);
    const double on_here = number(from, "\"latency_s\":"),
                 on_there = number(plain, "\"latency_s\":"), measured = 4 * made_latency(9);
    const double balance = exp2(28) / 4e12 / (3 * exp2(20) / 2e11),
                 gamma = balance > 1 ? 0.5 / balance : 1 - 0.5 * balance;
    assert_close(number(out, "\"predicted_from_s\":"), on_here, 1e-7, 0);
    assert_close(number(out, "\"from_s\":"), measured, 1e-7, 0);
    assert_close(number(out, "\"latency_s\":"), on_there * sqrt(measured / on_here), 1e-6, 0);
    assert_close(number(out, "\"low_s\":") / number(plain, "\"low_s\":"), sqrt(measured / on_here),
                 1e-6, 0);
    assert_close(number(out, "\"gamma\":"), gamma, 1e-3, 0);
    assert_close(number(out, "\"closed_s\":"), measured * pow(0.5, gamma) * pow(0.25, 1 - gamma),
                 1e-3, 0);
    assert_non_null(strstr(out, "\"from\":\"here\",\"to\":\"there\""));
    assert_non_null(strstr(out, "\"closed_form\":\"roofline\""));
    free(plain), free(from), free(out);
    cd_buf_free(&b);
}

TEST(without_a_time_nothing_is_scaled) {
    cd_buf b = {0};
    cd_stream_stats n;
    made_record(&b, cd_task_registry_at(tasks, 0)->workload_key, 3, "llvm -model=here", 1e10, 4);
    cd_buf_puts(&b, "{\"i\": bad\n");
    made_record(&b, cd_task_registry_at(tasks, 0)->workload_key, 3, "llvm -model=here", 1, 0);
    char *out = answer(&b, &(cd_stream_options){.from = &here, .to = &there}, &n);
    assert_true(n.lines == 3 && n.bad == 2 && n.scored == 1);
    assert_non_null(strstr(out, "\"line\":1,\"error\":{\"code\":\"EINVALID\""));
    assert_non_null(strstr(out, "\"line\":2,\"error\":{\"code\":\"EPARSE\""));
    free(out);
    cd_buf_free(&b);
}

/* 2^28 operations at 1000 GFLOP/s: 268 us on either device. */
TEST(peaks_bound_what_was_measured_and_what_is_answered) {
    static const char peaks[] = "- {name: here, kind: gpu, fp32_gflops: 1000}\n- {name: there, "
                                "kind: gpu, fp32_gflops: 100}\n";
    cd_buf b = {0};
    cd_stream_stats n;
    cd_diag diag = {0};
    cd_device_table *t;
    cdmpp_err err = {0};
    assert_ok(
        cd_device_table_load(tmp_put(&dir, "d.yaml", peaks, sizeof peaks - 1), &diag, &t, &err));
    made_record(&b, cd_task_registry_at(tasks, 0)->workload_key, 9, "llvm -model=here", 100e-6, 0);
    made_record(&b, cd_task_registry_at(tasks, 0)->workload_key, 9, "llvm -model=here", 300e-6, 0);
    char *out = answer(&b, &(cd_stream_options){.from = &here, .to = &there, .devices = t}, &n);
    assert_true(n.bad == 1 && n.scored == 1);
    assert_non_null(
        strstr(out, "\"line\":1,\"error\":{\"code\":\"ERANGE\",\"message\":\"0.0001 s is 2.68 "
                    "times the peak of here, which needs 0.000268 s at least\""));
    const char *second = strstr(out, "\"line\":2");
    assert_non_null(second);
    const double least = exp2(28) / 1e11;
    assert_true(number(second, "\"latency_s\":") >= least * (1 - 1e-8) &&
                number(second, "\"low_s\":") >= least * (1 - 1e-8));
    assert_non_null(strstr(second, "peak of the device"));
    free(out);
    cd_device_table_free(t);
    cd_diag_free(&diag);
    cd_buf_free(&b);
}

TEST(a_model_that_does_not_know_a_device_is_an_error) {
    cdmpp_err err = {0};
    cd_threads *pool;
    cd_stream *s = NULL;
    cd_device other = there;
    other.name = "nowhere";
    assert_ok(cd_threads_new(1, &pool, &err));
    assert_status(cd_stream_new(model, tasks, &(cd_stream_options){.from = &other, .to = &there},
                                pool, stdout, &s, &err),
                  CDMPP_EMODEL);
    cd_threads_free(pool);
}

TESTS(setup, teardown, half_of_what_the_model_misses_is_carried, without_a_time_nothing_is_scaled,
      peaks_bound_what_was_measured_and_what_is_answered,
      a_model_that_does_not_know_a_device_is_an_error)
