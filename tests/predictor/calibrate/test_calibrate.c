/* A calibration with a made machine: what is chosen and measured, within a made clock; what a log of known times teaches; what is refused. */
#include "predictor/calibrate/calibrate.h"
#include "check.h"
#include "fault.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
#include "dataset/split/split.h"
#include "made_model.h"
#include "predictor/estimate/estimate.h"

static const cd_device machine = {.name = "made", .kind = CD_DEVICE_CPU, .clock_mhz = 3000, .cores = 4, .simd_bits = 256, .bandwidth_gb_s = 40, .l1_kb = 32, .l2_kb = 1024, .l3_kb = 32768};
enum { N_TASK = 15 };

static tmp_dir dir;
static char model_path[256], log_path[256];
static cd_task_registry *tasks;
static cd_model *model;

/* Products of several sizes: tasks whose programs are alike. The first is the task that the model is trained on. */
static cdmpp_status made_tasks(cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_puts(&b, "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [");
    for (int i = 1; i < N_TASK; i++) {
        const int m = 32 * i, n = 16 * (1 + i * 5 % 7);
        cd_buf_putf(&b, "%s{\"workload_key\": \"[\\\"made\\\", %d]\", \"ops\": [{\"name\": \"A\", \"shape\": [%d, 64], \"dtype\": \"float32\"},", i > 1 ? "," : "", i, m);
        cd_buf_putf(&b, "{\"name\": \"B\", \"shape\": [64, %d], \"dtype\": \"float32\"},", n);
        cd_buf_putf(&b, "{\"name\": \"C\", \"axis\": [[\"i\", 0, %d], [\"j\", 0, %d]], \"reduce_axis\": [[\"k\", 0, 64]], \"reduce\": \"sum\", \"body\": \"A[i, k]*B[k, j]\"},", m, n);
        cd_buf_putf(&b, "{\"name\": \"D\", \"axis\": [[\"i\", 0, %d], [\"j\", 0, %d]], \"body\": \"max(C[i, j], 0)\"}]}", m, n);
    }
    cd_buf_puts(&b, "]}");
    cdmpp_status st = cd_task_registry_new(&tasks, err);
    if (!st) st = cd_task_registry_load(tasks, MADE_TASKS, err);
    if (!st) st = cd_task_registry_load_text(tasks, "made.tasks.json", b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

static int setup(void **state) {
    (void)state;
    static const char *const target[] = {"llvm -model=zen4"}, *const set[] = {"train.rounds=60"};
    cdmpp_err err = {0};
    char h5[256], text[512];
    dir = tmp_make();
    snprintf(model_path, sizeof model_path, "%s", tmp_path(&dir, "m.cdmpp"));
    snprintf(log_path, sizeof log_path, "%s", tmp_path(&dir, "here.records.json"));
    cdmpp_status st = made_tasks(&err);
    if (!st) st = made_extract(&dir, cd_task_registry_at(tasks, 0)->workload_key, target, 1, h5, &err);
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

/* ---- a machine whose time goes by only when it measures ---- */
typedef struct made_clock {
    double now, each;           /* seconds; of a program */
    double noise;               /* of a second measurement, on the logarithm */
    size_t measured, fail_after;/* 0: never */
    uint64_t seen[512];
} made_clock;

static double made_now(void *ctx) { return ((made_clock *)ctx)->now; }

static cdmpp_status made_measure(void *ctx, cd_record_program *job, size_t n, cd_measure_result *out, cdmpp_err *err) {
    made_clock *c = ctx;
    for (size_t i = 0; i < n; i++) {
        bool again = false;
        assert_true(job[i].why.code == CDMPP_OK && job[i].code.n_arg > 0); /* it has code */
        if (c->fail_after && c->measured >= c->fail_after) return CD_FAIL(err, EINTERRUPTED, "killed");
        for (size_t k = 0; k < c->measured; k++) again |= c->seen[k] == job[i].id.a;
        const double s = 1e-3 * (1 + (double)(job[i].id.a % 100)) * (again ? exp(c->noise) : 1);
        out[i] = (cd_measure_result){.time = {.n = 2, .n_kept = 2, .number = 1, .sample_s = {s, s}, .kept = {true, true}}};
        c->seen[c->measured++ % 512] = job[i].id.a;
        c->now += c->each;
    }
    return CDMPP_OK;
}

static cd_calibrate_pool_options pool_options(uint32_t trials) {
    return (cd_calibrate_pool_options){.tasks = tasks, .target = "llvm -num-cores=1", .hardware = cd_target_hardware(false, 1, 64), .device = &machine, .trials = trials, .seed = 1};
}

static cdmpp_status measure_once(const cd_calibrate_pool *p, made_clock *c, double until, size_t most, cd_calibrate_measured *out, cdmpp_err *err) {
    const cd_calibrate_clock clock = {c, made_now, made_measure, NULL, NULL};
    cd_record_maker maker = {.tasks = tasks, .dialect = -1, .threads = 1, .cpus = 1};
    cd_record_log *log = NULL;
    CD_TRY(cd_record_log_open(log_path, false, &log, err));
    const cd_calibrate_measure_options o = {.pool = p, .maker = &maker, .log = log, .clock = &clock, .until_s = until, .most = most};
    cdmpp_status st = cd_program_new(&maker.program, err);
    if (!st) st = cd_calibrate_measure(&o, out, err);
    cd_program_free(maker.program);
    const cdmpp_status closed = cd_record_log_close(log, st ? NULL : err);
    return st ? st : closed;
}

static size_t lines_of_log(void) {
    cdmpp_err err = {0};
    char *text;
    size_t n, lines = 0;
    assert_ok(cd_file_read(log_path, 0, &text, &n, &err));
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    cd_mem_free(text);
    return lines;
}

/* ---- candidates ---- */
TEST(the_order_is_of_features_and_the_same_again) {
    cdmpp_err err = {0};
    cd_calibrate_pool p, q;
    const cd_calibrate_pool_options o = pool_options(4);
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    assert_true(p.n > N_TASK && p.n_order > 4 && p.n_order <= p.n);
    assert_ok(cd_calibrate_pool_build(&o, &q, &err));
    assert_int_equal(q.n, p.n);
    assert_int_equal(q.n_order, p.n_order);
    for (size_t i = 0; i < q.n_order; i++) {
        assert_int_equal(q.order[i], p.order[i]);
        assert_string_equal(q.v[q.order[i]].line, p.v[p.order[i]].line);
    }
    for (size_t i = 0; i < p.n_order; i++) {
        assert_true(p.v[p.order[i]].analytic_s > 0 && p.v[p.order[i]].analytic_s < 0.5);
        for (size_t k = 0; k < i; k++) assert_int_not_equal(p.order[i], p.order[k]);
    }
    cd_calibrate_pool_free(&p);
    cd_calibrate_pool_free(&q);
}

static uint64_t number_of(const char *line) {
    cdmpp_err err = {0};
    cd_arena a = {0};
    cd_record r;
    char key[300];
    assert_ok(cd_record_read(&a, line, strlen(line), &r, &err));
    snprintf(key, sizeof key, "%.*s", (int)r.workload_key.n, r.workload_key.p);
    cd_arena_free(&a);
    return cd_stable_id_name(key);
}

/* Threads change nothing. Where the time ends, tasks are left out by a number of their names: not the networks that come last. */
TEST(the_best_are_the_same_by_threads_and_mixed) {
    cdmpp_err err = {0};
    cd_calibrate_pool p, q;
    cd_calibrate_pool_options o = pool_options(1);
    uint64_t before = 0;
    size_t best = 0;
    o.model = model;
    o.stands = "zen4";
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    o.jobs = 3;
    assert_ok(cd_calibrate_pool_build(&o, &q, &err));
    assert_int_equal(q.n, p.n);
    for (size_t i = 0; i < p.n; i++) {
        assert_string_equal(q.v[i].line, p.v[i].line);
        if (!p.v[i].best) continue;
        assert_true(number_of(p.v[i].line) > before);
        before = number_of(p.v[i].line);
        best++;
    }
    assert_true(best > 2);
    cd_calibrate_pool_free(&p);
    cd_calibrate_pool_free(&q);
}

/* Of each task at most one candidate is the best, which a replay would choose, too; best and others take turns as long as there are both. */
TEST(the_best_of_each_task_takes_turns) {
    cdmpp_err err = {0};
    cd_calibrate_pool p;
    cd_calibrate_pool_options o = pool_options(3);
    const cd_schedule_db_pick pick = {.seed = 1, .target = o.target, .device = "zen4", .hardware = &o.hardware};
    cd_schedule_db *db;
    size_t best = 0, turns = 0;
    o.model = model;
    o.stands = "zen4";
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    assert_ok(cd_schedule_db_new(&db, &err));
    for (size_t i = 0; i < p.n; i++) {
        cd_arena a = {0};
        cd_record r;
        char key[300];
        if (!p.v[i].best) continue;
        best++;
        assert_ok(cd_record_read(&a, p.v[i].line, p.v[i].len, &r, &err));
        snprintf(key, sizeof key, "%.*s", (int)r.workload_key.n, r.workload_key.p);
        const char *const one = key;
        assert_null(cd_schedule_db_find(db, key)); /* one a task */
        assert_ok(cd_schedule_db_predict(db, model, tasks, &one, 1, &pick, NULL, &err));
        assert_non_null(cd_schedule_db_find(db, key));
        assert_string_equal(cd_schedule_db_find(db, key)->line, p.v[i].line);
        cd_arena_free(&a);
    }
    cd_schedule_db_free(db);
    assert_true(best > N_TASK / 2 && best <= N_TASK && p.n > 2 * best);
    for (size_t i = 0; i < 2 * best && i < p.n_order; i++) turns += p.v[p.order[i]].best == (i % 2 == 1);
    assert_int_equal(turns, 2 * best);
    cd_calibrate_pool_free(&p);
}

TEST(no_draw_begins_late) {
    cdmpp_err err = {0};
    cd_calibrate_pool p;
    made_clock c = {.now = 2};
    cd_calibrate_pool_options o = pool_options(4);
    o.now = made_now;
    o.ctx = &c;
    o.until_s = 1;
    assert_status(cd_calibrate_pool_build(&o, &p, &err), CDMPP_ENODATA);
    cd_calibrate_pool_free(&p);
    const cd_device nothing = {.kind = CD_DEVICE_CPU};
    o.device = &nothing;
    assert_status(cd_calibrate_pool_build(&o, &p, &err), CDMPP_ESCHEMA);
    cd_calibrate_pool_free(&p);
}

/* ---- measuring ---- */
TEST(the_time_is_kept) {
    cdmpp_err err = {0};
    cd_calibrate_pool p;
    cd_calibrate_measured m;
    made_clock c = {.each = 2};
    const cd_calibrate_pool_options o = pool_options(4);
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    (void)unlink(log_path);
    assert_ok(measure_once(&p, &c, 30, 0, &m, &err));
    assert_true(m.late);
    assert_true(c.now <= 30); /* the first batch is not known to be slow, so 30 is not near 8 */
    assert_true(c.now > 30 - 4 * 2 - 1);
    assert_int_equal(m.fresh, lines_of_log());
    assert_int_equal(m.fresh, m.programs + m.repeats);
    assert_int_equal(m.repeats, m.fresh / CD_CALIBRATE_TWICE);
    cd_calibrate_pool_free(&p);
}

/* Killed at any point, the same call goes on: all together measures what one run would have. */
TEST(a_killed_run_goes_on) {
    cdmpp_err err = {0};
    cd_calibrate_pool p;
    cd_calibrate_measured m;
    size_t whole, sum = 0;
    const cd_calibrate_pool_options o = pool_options(4);
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    (void)unlink(log_path);
    made_clock c = {.each = 1};
    assert_ok(measure_once(&p, &c, 1e9, 14, &m, &err));
    whole = lines_of_log();
    assert_int_equal(m.programs, 14);
    assert_false(m.late);
    (void)unlink(log_path);
    for (int k = 0; k < 20; k++) {
        made_clock killed = {.each = 1, .fail_after = 5};
        const cdmpp_status st = measure_once(&p, &killed, 1e9, 14, &m, &err);
        sum += m.fresh;
        if (!st) break;
        assert_int_equal(st, CDMPP_EINTERRUPTED);
    }
    assert_int_equal(lines_of_log(), whole);
    assert_int_equal(sum, whole);
    made_clock idle = {.each = 1};
    assert_ok(measure_once(&p, &idle, 1e9, 14, &m, &err));
    assert_int_equal(idle.measured, 0);
    assert_int_equal(m.programs, 14);
    cd_calibrate_pool_free(&p);
}

/* ---- the correction ---- */
/* One task in five each, by the rank of its number. */
static size_t part_of(const char *key) {
    size_t rank = 0;
    for (size_t i = 0; i < N_TASK; i++) rank += cd_stable_id_name(cd_task_registry_at(tasks, i)->workload_key) < cd_stable_id_name(key);
    return rank % CD_CALIBRATE_HELD;
}

static double small = 1;        /* further factor of programs whose first loop has a short inner part */

/* Programs of all tasks that take times[part] as long as the model says; the first of each is measured twice, with a difference. */
static void made_log_of(const double times[CD_CALIBRATE_HELD], double difference) {
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
            const double y = o.pred.median_s * (i % 7 < 3 ? small : 1) * times[part_of(key)] * exp(0.05 * (2 * cd_rng_unit(7, (uint64_t)(t * 4 + k)) - 1));
            made_record(&b, key, i, "llvm -model=new", y, 0);
            if (k == 0) made_record(&b, key, i, "llvm -model=new", y * exp(difference), 0);
            cd_buf_free(&line);
        }
    cd_buf_puts(&b, "no record\n");
    made_record(&b, cd_task_registry_at(tasks, 0)->workload_key, 3, "llvm -model=new", 1, 4); /* failed */
    tmp_put(&dir, "here.records.json", b.p, b.n);
    cd_scorer_free(s);
    cd_buf_free(&b);
}

static void made_log(double times, double difference) { made_log_of((double[]){times, times, times, times, times}, difference); }

static const char *const logs[] = {log_path};
static cd_calibrate_fit_options fit_options(void) { return (cd_calibrate_fit_options){.model = model, .tasks = tasks, .device = "zen4", .log = logs, .n_log = 1}; }

TEST(a_slower_machine_is_learned) {
    cdmpp_err err = {0};
    cd_calibrate_result r;
    const cd_calibrate_fit_options o = fit_options();
    made_log(3, 0.02);
    assert_ok(cd_calibrate_fit(&o, &r, &err));
    assert_int_equal(r.programs, 4 * N_TASK);
    assert_int_equal(r.tasks, N_TASK);
    assert_int_equal(r.held, 4 * N_TASK / CD_CALIBRATE_HELD);
    assert_int_equal(r.before.n, r.held);
    assert_int_equal(r.failed, 2);
    assert_true(r.before.mape > 0.55 && r.before.mean_log > 0.9);
    assert_true(r.after.mape < 0.2 && r.after.mean_log < 0.2);
    assert_true(r.crossed < r.alone && r.crossed < 0.3);
    assert_true(r.after.inside >= 0.7);
    assert_int_equal(r.pairs, N_TASK);
    assert_close(r.noise, 0.02, 1e-6, 1e-9);
    assert_false(cd_calibrate_noisy(&r));
    assert_close(exp(r.trees.bias), 3, 0.05, 0);
    cd_calibrate_result_free(&r);
}

/* Trees are believed where they learn what holds for other tasks, and not where there is nothing but noise. */
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

/* What a correction has seen is not what it is judged by: a part whose programs are off to the other side than all others is predicted worse than by nobody. */
TEST(a_correction_is_judged_by_what_it_has_not_seen) {
    cdmpp_err err = {0};
    cd_calibrate_result r;
    const cd_calibrate_fit_options o = fit_options();
    made_log_of((double[]){1, 2, 0.5, 2, 0.5}, 0.02);
    assert_ok(cd_calibrate_fit(&o, &r, &err));
    assert_true(r.crossed > r.alone);
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
    const cd_here h = {.stands = 0, .name = "new", .cpu = "x", .programs = 1, .widen = r.widen, .trees = r.trees};
    assert_ok(cd_file_read(model_path, 0, &file, &n, &err));
    assert_ok(cd_here_add(file, n, &h, "", &out, &err));
    assert_ok(cd_model_from_bytes(out.p, out.n, &m, &err));
    made_record(&line, cd_task_registry_at(tasks, 3)->workload_key, 9, "llvm -model=new", 1, 0); /* the machine's own name */
    const cd_predict_line l = {line.p, line.n, "", 1};
    for (int k = 0; k < 2; k++) {
        const cd_scorer_options so = {.which = {.device = k ? NULL : "zen4"}, .traits = !k};
        cd_scorer *s;
        assert_ok(cd_scorer_new(k ? m : model, tasks, &so, &s, &err));
        assert_ok(cd_scorer_run(s, &l, 1, k ? &after : &before, &err));
        assert_int_equal(k ? after.st : before.st, CDMPP_OK);
        cd_scorer_free(s);
    }
    assert_true(after.pred.median_s > 2 * before.pred.median_s && after.pred.median_s < 4 * before.pred.median_s);
    assert_close(after.model_s, after.pred.median_s, 1e-9, 0); /* by which candidates are ordered */
    cd_calibrate_result_free(&r);
    cd_model_free(m);
    cd_mem_free(file);
    cd_buf_free(&out);
    cd_buf_free(&line);
}

/* What is held out decides nothing that is told: with other times of these programs width and errors of the others are the same. The trees that are
 * written learn from them, too. */
TEST(held_out_programs_decide_nothing) {
    cdmpp_err err = {0};
    cd_calibrate_result r[2];
    const cd_calibrate_fit_options o = fit_options();
    for (int k = 0; k < 2; k++) {
        made_log_of((double[]){k ? 6 : 2, 2, 2, 2, 2}, 0.02);
        assert_ok(cd_calibrate_fit(&o, &r[k], &err));
    }
    assert_true(r[1].before.mean_log > r[0].before.mean_log + 1); /* they did change */
    assert_true(r[0].widen == r[1].widen && r[0].crossed == r[1].crossed && r[0].alone == r[1].alone);
    assert_close(r[1].after.mean_log, log(3), 0.2, 0); /* judged by trees that have not seen them */
    assert_true(r[0].after.mean_log < 0.2);
    for (int k = 0; k < 2; k++) cd_calibrate_result_free(&r[k]);
}

TEST(too_few_programs) {
    cdmpp_err err = {0};
    cd_calibrate_result r;
    cd_buf b = {0};
    const cd_calibrate_fit_options o = fit_options();
    for (int i = 0; i < 9; i++) made_record(&b, cd_task_registry_at(tasks, 0)->workload_key, i, "llvm -model=new", 1e-3, 0);
    tmp_put(&dir, "here.records.json", b.p, b.n);
    assert_status(cd_calibrate_fit(&o, &r, &err), CDMPP_ENODATA);
    cd_calibrate_result_free(&r);
    cd_buf_free(&b);
}

/* ---- what is written, and what is refused ---- */
static cdmpp_status run_on(const char *device, double noise, bool force, size_t most, cd_buf *text, cdmpp_err *err) {
    static cd_log log;
    made_clock c = {.each = 1, .noise = noise};
    const cd_calibrate_clock clock = {&c, made_now, made_measure, NULL, NULL};
    const cd_calibrate_options o = {.model = model_path, .out = tmp_path(&dir, "here.cdmpp"), .records = log_path, .device = device, .tasks = tasks, .target = "llvm -num-cores=1",
                                    .threads = 1, .seed = 1, .most = most, .limit_s = 59, .force = force, .json = true, .clock = &clock, .log = &log};
    if (!log.out) cd_log_init(&log, "", stderr), log.level = CD_LOG_ERROR;
    return cd_calibrate_run(&o, text, err);
}

static cdmpp_status run_some(double noise, bool force, size_t most, cd_buf *text, cdmpp_err *err) { return run_on("zen4", noise, force, most, text, err); }
static cdmpp_status run(double noise, bool force, cd_buf *text, cdmpp_err *err) { return run_some(noise, force, 40, text, err); }

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

/* Who gets fewer programs than the time allows is told why. */
TEST(an_early_end_is_told) {
    cd_calibrate_result r = {.programs = 20};
    const cd_calibrate_measured early = {.fresh = 20}, late = {.fresh = 20, .late = true};
    cd_calibrate_told t = {.result = &r, .device = "d", .name = "n", .cpu = "c", .model = "m", .log = "l", .seconds = 100, .limit_s = 300};
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
    const cd_calibrate_clock clock = {&c, made_now, made_measure, NULL, NULL};
    const char *const given[] = {path};
    const cd_calibrate_options o = {.model = model_path, .out = tmp_path(&dir, "board.cdmpp"), .given = given, .n_given = 1, .device = device, .tasks = tasks, .force = true, .json = true,
                                    .clock = &clock, .log = &log};
    if (!log.out) cd_log_init(&log, "", stderr), log.level = CD_LOG_ERROR;
    const cdmpp_status st = cd_calibrate_run(&o, text, err);
    assert_int_equal(c.measured, 0);
    return st;
}

/* The device of the logs is one more device of the model, and the one that stands for it answers as before. */
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
    assert_ok(run_given(log_path, NULL, &text, &err)); /* the only device that there is stands for it */
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
    for (int i = 0; i < 4; i++) made_record(&b, key, i, i < 3 ? "llvm -model=new" : "llvm -model=newer", 1e-3, 0);
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
TEST(every_allocation_may_fail) {
    made_log(3, 0.02);
    FAULT_SWEEP(f, 3) {
        cd_calibrate_result r = {0};
        const cd_calibrate_fit_options o = fit_options();
        f.step = f.k < 200 ? 1 : 23;
        f.st = cd_calibrate_fit(&o, &r, &f.err);
        cd_calibrate_result_free(&r);
    }
    FAULT_SWEEP(g, 3) {
        cd_calibrate_pool p = {0};
        cd_calibrate_pool_options o = pool_options(2);
        o.model = model;
        o.stands = "zen4";
        g.step = g.k < 200 ? 1 : 23;
        g.st = cd_calibrate_pool_build(&o, &p, &g.err);
        cd_calibrate_pool_free(&p);
    }
    cd_calibrate_pool p;
    cdmpp_err err = {0};
    const cd_calibrate_pool_options o = pool_options(2);
    assert_ok(cd_calibrate_pool_build(&o, &p, &err));
    FAULT_SWEEP(h, 3) {
        cd_calibrate_measured m;
        made_clock c = {.each = 1};
        h.step = h.k < 100 ? 1 : 23;
        (void)unlink(log_path);
        h.st = measure_once(&p, &c, 1e9, 5, &m, &h.err);
    }
    cd_calibrate_pool_free(&p);
}

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

TESTS(setup, teardown, the_order_is_of_features_and_the_same_again, the_best_of_each_task_takes_turns, the_best_are_the_same_by_threads_and_mixed, no_draw_begins_late, the_time_is_kept, a_killed_run_goes_on, a_slower_machine_is_learned, trees_are_believed_as_far_as_they_help,
      a_correction_is_judged_by_what_it_has_not_seen, a_scorer_corrects, held_out_programs_decide_nothing, too_few_programs, an_unknown_device_costs_no_time, what_is_no_better_is_refused, a_noisy_machine_is_refused, an_early_end_is_told, logs_of_a_device_make_it_one_of_the_model, logs_of_two_devices_are_refused, every_allocation_may_fail, every_allocation_of_a_run_may_fail)
