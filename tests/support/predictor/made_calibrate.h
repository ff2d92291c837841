/* A machine, tasks, a model and logs for tests of calibration. The machine's clock goes by only
 * when it measures. */
#ifndef MADE_CALIBRATE_H
#define MADE_CALIBRATE_H
#include "predictor/calibrate/calibrate.h"
#include "check.h"
#include "fault.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
#include "dataset/split/split.h"
#include "made_model.h"
#include "predictor/estimate/estimate.h"

static const cd_device machine = {.name = "made",
                                  .kind = CD_DEVICE_CPU,
                                  .clock_mhz = 3000,
                                  .cores = 4,
                                  .simd_bits = 256,
                                  .bandwidth_gb_s = 40,
                                  .l1_kb = 32,
                                  .l2_kb = 1024,
                                  .l3_kb = 32768};
enum { N_TASK = 15 };

static tmp_dir dir;
static char model_path[256], log_path[256];
static cd_task_registry *tasks;
static cd_model *model;

/* Products of several sizes: tasks whose programs are alike. The first is the task that the model
 * is trained on. */
static inline cdmpp_status made_tasks(cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_puts(&b, "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [");
    for (int i = 1; i < N_TASK; i++) {
        const int m = 32 * i, n = 16 * (1 + i * 5 % 7);
        cd_buf_putf(&b,
                    "%s{\"workload_key\": \"[\\\"made\\\", %d]\", \"ops\": [{\"name\": \"A\", "
                    "\"shape\": [%d, 64], \"dtype\": \"float32\"},",
                    i > 1 ? "," : "", i, m);
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
    cdmpp_status st = cd_task_registry_new(&tasks, err);
    if (!st) st = cd_task_registry_load(tasks, MADE_TASKS, err);
    if (!st) st = cd_task_registry_load_text(tasks, "made.tasks.json", b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

static inline int setup(void **state) {
    (void)state;
    static const char *const target[] = {"llvm -model=zen4"}, *const set[] = {"train.rounds=60"};
    cdmpp_err err = {0};
    char h5[256], text[512];
    dir = tmp_make();
    snprintf(model_path, sizeof model_path, "%s", tmp_path(&dir, "m.cdmpp"));
    snprintf(log_path, sizeof log_path, "%s", tmp_path(&dir, "here.records.json"));
    cdmpp_status st = made_tasks(&err);
    if (!st)
        st = made_extract(&dir, cd_task_registry_at(tasks, 0)->workload_key, target, 1, h5, &err);
    if (!st) st = made_learn(h5, set, 1, model_path, &err);
    if (!st) st = cd_model_load(model_path, &model, &err);
    if (st) print_error("%s\n", cdmpp_err_format(&err, text, sizeof text));
    return st != CDMPP_OK;
}

static inline int teardown(void **state) {
    (void)state;
    cd_model_free(model);
    cd_task_registry_free(tasks);
    tmp_remove(&dir);
    return 0;
}

/* ---- a machine whose time goes by only when it measures ---- */
typedef struct made_clock {
    double now, each;            /* seconds; of a program */
    double noise;                /* of a second measurement, on the logarithm */
    size_t measured, fail_after; /* 0: never */
    size_t slow;                 /* the number of a program that takes slow_s; 0: none */
    double slow_s;
    double until; /* what is not done then is given up; 0: nothing is */
    uint64_t seen[512];
} made_clock;

static inline double made_now(void *ctx) { return ((made_clock *)ctx)->now; }

static inline cdmpp_status made_measure(void *ctx, cd_record_program *job, size_t n,
                                        cd_measure_result *out, cdmpp_err *err) {
    made_clock *c = ctx;
    for (size_t i = 0; i < n; i++) {
        bool again = false;
        const double takes = c->slow && c->measured + 1 == c->slow ? c->slow_s : c->each;
        if (c->until > 0 && c->now + takes > c->until) return c->now = c->until, CDMPP_OK;
        assert_true(job[i].why.code == CDMPP_OK && job[i].code.n_arg > 0); /* it has code */
        if (c->fail_after && c->measured >= c->fail_after)
            return CD_FAIL(err, EINTERRUPTED, "killed");
        for (size_t k = 0; k < c->measured; k++) again |= c->seen[k] == job[i].id.a;
        const double s = 1e-3 * (1 + (double)(job[i].id.a % 100)) * (again ? exp(c->noise) : 1);
        out[i] = (cd_measure_result){
            .time = {.n = 2, .n_kept = 2, .number = 1, .sample_s = {s, s}, .kept = {true, true}}};
        c->seen[c->measured++ % 512] = job[i].id.a;
        c->now += takes;
    }
    return CDMPP_OK;
}

static inline void made_until(void *ctx, double until_s) { ((made_clock *)ctx)->until = until_s; }
static void (*made_cuts)(void *ctx, double until_s) = NULL; /* of measure_once: made_until */

/* A clock that goes by a second with each look at it. */
static inline double made_tick(void *ctx) { return (*(double *)ctx)++; }

static inline cd_calibrate_pool_options pool_options(uint32_t trials) {
    return (cd_calibrate_pool_options){.tasks = tasks,
                                       .target = "llvm -num-cores=1",
                                       .hardware = cd_target_hardware(false, 1, 64),
                                       .device = &machine,
                                       .trials = trials,
                                       .seed = 1};
}

static size_t least = 0;   /* programs that are needed */
static double after_s = 0; /* of each program, behind its measurement */

static inline cdmpp_status measure_once(const cd_calibrate_pool *p, made_clock *c, double until,
                                        size_t most, cd_calibrate_measured *out, cdmpp_err *err) {
    const cd_calibrate_clock clock = {
        .ctx = c, .now = made_now, .measure = made_measure, .until = made_cuts};
    cd_record_maker maker = {.tasks = tasks, .dialect = -1, .threads = 1, .cpus = 1};
    cd_record_log *log = NULL;
    CD_TRY(cd_record_log_open(log_path, false, &log, err));
    /* a quarter is for what is not foreseen */
    const cd_calibrate_costs after = {.line_s = after_s / 1.25};
    const cd_calibrate_measure_options o = {.pool = p,
                                            .maker = &maker,
                                            .log = log,
                                            .clock = &clock,
                                            .until_s = until,
                                            .end_s = until,
                                            .after = &after,
                                            .least = least,
                                            .most = most};
    cdmpp_status st = cd_program_new(&maker.program, err);
    if (!st) st = cd_calibrate_measure(&o, out, err);
    cd_program_free(maker.program);
    const cdmpp_status closed = cd_record_log_close(log, st ? NULL : err);
    return st ? st : closed;
}

static inline size_t lines_of_log(void) {
    cdmpp_err err = {0};
    char *text;
    size_t n, lines = 0;
    assert_ok(cd_file_read(log_path, 0, &text, &n, &err));
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    cd_mem_free(text);
    return lines;
}

/* One task in five each, by the rank of its number. */
static inline size_t part_of(const char *key) {
    size_t rank = 0;
    for (size_t i = 0; i < N_TASK; i++)
        rank +=
            cd_stable_id_name(cd_task_registry_at(tasks, i)->workload_key) < cd_stable_id_name(key);
    return rank % CD_CALIBRATE_PARTS;
}

/* further factor of programs whose first loop has a short inner part */
static double small = 1;

/* Programs of all tasks that take times[part] as long as the model says; the first of each is
 * measured twice, with a difference. */
static inline void made_log_of(const double times[CD_CALIBRATE_PARTS], double difference) {
    cd_buf b = {0};
    cdmpp_err err = {0};
    const cd_scorer_options so = {.which = {.device = "zen4"}};
    cd_scorer *s;
    assert_ok(cd_scorer_new(model, tasks, &so, &s, &err));
    for (int t = 0; t < N_TASK; t++)
        for (int k = 0; k < 4; k++) {
            cd_buf line = {0};
            cd_scored o;
            const char *key = cd_task_registry_at(tasks, (size_t)t)->workload_key;
            const int i = (t * 37 + k * 11) % MADE_N;
            made_record(&line, key, i, "llvm -model=new", 1, 0);
            const cd_predict_line l = {line.p, line.n, "", 1};
            assert_ok(cd_scorer_run(s, &l, 1, &o, &err));
            assert_int_equal(o.st, CDMPP_OK);
            const double y = o.pred.median_s * (i % 7 < 3 ? small : 1) * times[part_of(key)] *
                             exp(0.05 * (2 * cd_rng_unit(7, (uint64_t)(t * 4 + k)) - 1));
            made_record(&b, key, i, "llvm -model=new", y, 0);
            if (k == 0) made_record(&b, key, i, "llvm -model=new", y * exp(difference), 0);
            cd_buf_free(&line);
        }
    cd_buf_puts(&b, "no record\n");
    /* failed */
    made_record(&b, cd_task_registry_at(tasks, 0)->workload_key, 3, "llvm -model=new", 1, 4);
    tmp_put(&dir, "here.records.json", b.p, b.n);
    cd_scorer_free(s);
    cd_buf_free(&b);
}

static inline void made_log(double times, double difference) {
    made_log_of((double[]){times, times, times, times, times}, difference);
}

static const char *const logs[] = {log_path};
static inline cd_calibrate_fit_options fit_options(void) {
    return (cd_calibrate_fit_options){
        .model = model, .tasks = tasks, .device = "zen4", .log = logs, .n_log = 1};
}
#endif
