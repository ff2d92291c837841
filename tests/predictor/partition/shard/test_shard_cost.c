/* Costs of parts: laws on parts of one product, its model learned from made-up records. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fault.h"
#include "made_model.h"
#include "predictor/partition/shard/shard_cost_internal.h"

#define CHIP "llvm -keys=cpu -model=chip"
enum { EDGE = 512, PARTS = 6 };

static tmp_dir dir;
static cd_model *model;
static cd_task_registry *tasks, *parts_of;
static cd_schedule_db *book, *empty;
/* 64, 128 ... of the rows; the last one all of them under another name */
static cd_te_shard part[PARTS];
static const int64_t rows[PARTS] = {64, 128, 192, 256, 384, EDGE};
static uint32_t part_arg[3] = {0, 1, 2};
static cd_box box[PARTS][3];

static const uint32_t arg[3] = {0, 1, 2};
static const int64_t square[2] = {EDGE, EDGE};
static const cd_shard_net_tensor tensor[3] = {
    {.name = "a", .rank = 2, .shape = square, .element_bytes = 4, .from = CD_SHARD_NET_OUTSIDE},
    {.name = "b",
     .rank = 2,
     .shape = square,
     .element_bytes = 4,
     .from = CD_SHARD_NET_OUTSIDE,
     .constant = true},
    {.name = "d", .rank = 2, .shape = square, .element_bytes = 4, .from = 0, .result = true}};
static cd_shard_net_op op[2];
static cd_shard_net net = {
    .name = "one", .batch = 1, .n_tensor = 3, .n_op = 2, .tensor = tensor, .op = op};
static cd_machine machine;

static void put_task(cd_buf *b, int64_t m, int i) {
    cd_buf_putf(
        b,
        "%s{\"workload_key\": \"[\\\"p%d\\\"]\", \"ops\": [{\"name\": \"A\", \"shape\": [%lld, "
        "%d], \"dtype\": \"float32\"}, "
        "{\"name\": \"B\", \"shape\": [%d, %d], \"dtype\": \"float32\"}, {\"name\": \"C\", "
        "\"axis\": [[\"i\", 0, %lld], [\"j\", 0, %d]], "
        "\"reduce_axis\": [[\"k\", 0, %d]], \"reduce\": \"sum\", \"body\": \"A[i, k]*B[k, j]\"}, "
        "{\"name\": \"D\", \"axis\": [[\"i\", 0, %lld], [\"j\", 0, %d]], \"body\": \"max(C[i, j], "
        "0)\"}]}",
        i ? ", " : "", i, (long long)m, EDGE, EDGE, EDGE, (long long)m, EDGE, EDGE, (long long)m,
        EDGE);
}

static cdmpp_status make_parts(cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_puts(&b, "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [");
    for (int i = 0; i < PARTS; i++) put_task(&b, rows[i], i);
    cd_buf_puts(&b, "]}");
    CD_TRY(cd_task_registry_new(&parts_of, err));
    const cdmpp_status st = cd_task_registry_load_text(parts_of, "parts", b.p, b.n, err);
    cd_buf_free(&b);
    for (size_t i = 0; !st && i < PARTS; i++) {
        const cd_task *t = cd_task_registry_at(parts_of, i);
        box[i][0] = (cd_box){2, {0, 0}, {rows[i], EDGE}};
        box[i][1] = (cd_box){2, {0, 0}, {EDGE, EDGE}};
        box[i][2] = box[i][0];
        part[i] = (cd_te_shard){
            .dag = cd_task_registry_at(parts_of, i)->dag ? (cd_te_dag *)(uintptr_t)t->dag : NULL,
            .n_arg = 3,
            .of = part_arg,
            .box = box[i],
            .workload_key = t->workload_key};
    }
    return st;
}

static cdmpp_status make_book(cdmpp_err *err) {
    const cd_schedule_db_pick o = {.trials = 32, .seed = 1};
    CD_TRY(cd_schedule_db_new(&book, err));
    CD_TRY(cd_schedule_db_new(&empty, err));
    return cd_schedule_db_predict(book, model, tasks, &op[0].key, 1, &o, NULL, err);
}

static int set_up(void **state) {
    static const char *const set[] = {"train.rounds=20", "model.folds=2", "fit.epochs=1",
                                      "net.device=false"};
    static const char *const target[] = {CHIP};
    cdmpp_err err = {0};
    char h5[256], path[256];
    (void)state;
    dir = tmp_make();
    cdmpp_status st = cd_task_registry_new(&tasks, &err);
    if (!st) st = cd_task_registry_load(tasks, MADE_TASKS, &err);
    const cd_task *t = st ? NULL : cd_task_registry_at(tasks, 0);
    if (t)
        op[0] = (cd_shard_net_op){.name = "product",
                                  .type = "Dense",
                                  .key = t->workload_key,
                                  .dag = t->dag,
                                  .n_arg = 3,
                                  .arg = arg,
                                  .pin = UINT32_MAX};
    op[1] = (cd_shard_net_op){.name = "riddle",
                              .type = "Riddle",
                              .key = "[\"riddle\"]",
                              .n_arg = 3,
                              .arg = arg,
                              .pin = UINT32_MAX};
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "parts.cdmpp"));
    if (!st) st = made_extract(&dir, op[0].key, target, 1, h5, &err);
    if (!st) st = made_learn(h5, set, 4, path, &err);
    if (!st) st = cd_model_load(path, &model, &err);
    if (!st) st = make_parts(&err);
    if (!st) st = make_book(&err);
    machine.n = 4;
    machine.device[0] = (cd_machine_device){
        .name = "cpu0", .kind = "cpu", .target = CHIP, .as = "chip", .times = 1, .scale = 1};
    machine.device[1] = (cd_machine_device){
        .name = "slow", .kind = "cpu", .target = CHIP, .as = "chip", .times = 3, .scale = 2};
    machine.device[2] =
        (cd_machine_device){.name = "gpu0", .kind = "opencl", .as = "chip", .times = 1, .scale = 1};
    machine.device[3] = (cd_machine_device){
        .name = "other", .kind = "cpu", .target = CHIP, .as = "nobody", .times = 1, .scale = 1};
    if (st) print_error("%s: %s\n", err.key, err.msg);
    return st != CDMPP_OK;
}

static int tear_down(void **state) {
    (void)state;
    cd_schedule_db_free(book);
    cd_schedule_db_free(empty);
    cd_model_free(model);
    cd_task_registry_free(tasks);
    cd_task_registry_free(parts_of);
    tmp_remove(&dir);
    return 0;
}

/* One model for all devices of the machine, by their names there. */
static const cd_shard_cost_model *answers(const cd_model *m) {
    static cd_shard_cost_model all[CD_MACHINE_DEVICES];
    for (uint32_t k = 0; k < machine.n; k++)
        all[k] = (cd_shard_cost_model){.model = m, .device = machine.device[k].as};
    return m ? all : NULL;
}

static cd_shard_cost *open_with(const cd_model *m, const cd_schedule_db *b, uint32_t trials,
                                cd_threads *pool) {
    cdmpp_err err = {0};
    cd_shard_cost *p;
    const cd_shard_cost_options a = {.model = answers(m),
                                     .schedules = b,
                                     .machine = &machine,
                                     .net = &net,
                                     .trials = trials,
                                     .seed = 5,
                                     .pool = pool};
    assert_ok(cd_shard_cost_new(&a, &p, &err));
    return p;
}

static double asked(cd_shard_cost *p, uint32_t o, uint32_t device, const cd_te_shard *x) {
    cdmpp_err err = {0};
    cd_shard_plan_estimate out = {NAN, NAN};
    assert_ok(cd_shard_cost_time(p, o, device, x, &out, &err));
    assert_true(out.seconds > 0);
    assert_true(out.memory_share >= 0 && out.memory_share <= 1);
    return out.seconds;
}

static const char *line_of(cd_shard_cost *p, uint32_t device, const cd_te_shard *x) {
    cdmpp_err err = {0};
    const char *line = NULL;
    assert_ok(cd_shard_cost_schedule(p, 0, device, x, &line, &err));
    return line;
}

/* What the model says to a line, as a mean: with the spread of programs that are like the training,
 * as an unlike one has a wider interval or none, and no longer time. */
static double truth(const char *line, const cd_task_registry *t) {
    cdmpp_err err = {0};
    cd_scorer *s;
    cd_scored out;
    const cd_predict_line l = {line, strlen(line), "", 1};
    assert_ok(cd_scorer_new(model, t, &(cd_scorer_options){0}, &s, &err));
    assert_ok(cd_scorer_run(s, &l, 1, &out, &err));
    assert_ok(out.st);
    cd_scorer_free(s);
    assert_true(out.pred.like_std > 0);
    return out.pred.median_s * exp(out.pred.like_std * out.pred.like_std / 2);
}

static void test_whole_is_the_book(void **state) {
    (void)state;
    cd_shard_cost *p = open_with(model, book, 0, NULL);
    const double whole = asked(p, 0, 0, NULL);
    assert_close(whole, truth(cd_schedule_db_at(book, 0)->line, tasks), 1e-12, 0);
    assert_string_equal(line_of(p, 0, NULL), cd_schedule_db_at(book, 0)->line);
    assert_true(asked(p, 0, 0, &part[PARTS - 1]) == whole); /* all of the axis */
    assert_true(asked(p, 0, 1, NULL) == 6 * whole);         /* scale 2, run three times */
    size_t failed;
    assert_int_equal(cd_shard_cost_asked(p, &failed), 1);
    assert_int_equal(failed, 0);
    cd_shard_cost_free(p);
}

/* A part's record is one that readers take, of a program that lowers, and its time is the model's
 * for it. */
static void test_schedules_follow(void **state) {
    cdmpp_err err = {0};
    cd_arena mem = {0};
    cd_program *prog;
    (void)state;
    assert_ok(cd_program_new(&prog, &err));
    cd_shard_cost *p = open_with(model, book, 0, NULL);
    for (int i = 0; i < PARTS - 1; i++) {
        cd_record r;
        const double s = asked(p, 0, 0, &part[i]);
        const char *line = line_of(p, 0, &part[i]);
        assert_non_null(line);
        assert_null(strchr(line, '\n'));
        assert_ok(cd_record_read(&mem, line, strlen(line), &r, &err));
        assert_true(cd_str_is(r.workload_key, part[i].workload_key));
        /* where that is poor */
        assert_true(r.origin.n > 14 && (!memcmp(r.origin.p, "as the whole's", 14) ||
                                        !memcmp(r.origin.p, "best of 64", 10)));
        const cd_task *t = cd_task_registry_find(cd_shard_cost_tasks(p), r.workload_key);
        assert_non_null(t);
        assert_true(cd_te_dag_equal(t->dag, part[i].dag));
        assert_ok(cd_program_lower(prog, t, &r, &err));
        assert_close(s, truth(line, cd_shard_cost_tasks(p)), 1e-12, 0);
    }
    cd_shard_cost_free(p);
    cd_program_free(prog);
    cd_arena_free(&mem);
}

/* Together or alone, in any order, on any number of threads. */
static void answers_of(const cd_schedule_db *b, uint32_t trials, int threads, bool backwards,
                       bool together, double s[PARTS], char line[PARTS][4096]) {
    cdmpp_err err = {0};
    cd_threads *pool = NULL;
    cd_shard_cost_want want[2 * PARTS];
    if (threads > 1) assert_ok(cd_threads_new(threads, &pool, &err));
    cd_shard_cost *p = open_with(model, b, trials, pool);
    for (uint32_t i = 0; i < 2 * PARTS; i++) want[i] = (cd_shard_cost_want){0, 0, &part[i % PARTS]};
    if (together) assert_ok(cd_shard_cost_prepare(p, want, 2 * PARTS, &err));
    if (together) assert_int_equal(cd_shard_cost_asked(p, NULL), PARTS);
    for (int i = 0; i < PARTS; i++) {
        const int k = backwards ? PARTS - 1 - i : i;
        s[k] = asked(p, 0, 0, &part[k]);
        snprintf(line[k], sizeof line[k], "%s", line_of(p, 0, &part[k]));
    }
    assert_int_equal(cd_shard_cost_asked(p, NULL), PARTS);
    cd_shard_cost_free(p);
    cd_threads_free(pool);
}

static void test_equal_questions_equal_answers(void **state) {
    static char x[PARTS][4096], y[PARTS][4096];
    (void)state;
    for (int way = 0; way < 6; way++) {
        const cd_schedule_db *b = way % 2 ? book : empty;
        double s[PARTS], t[PARTS];
        answers_of(b, 12, 1, false, false, s, x);
        answers_of(b, 12, way < 2 ? 1 : 3, way < 4, way >= 2, t, y);
        assert_memory_equal(s, t, sizeof s);
        for (int i = 0; i < PARTS; i++) assert_string_equal(x[i], y[i]);
    }
}

/* Nobody chose a schedule for the whole: drawn ones, no worse than the few. */
static void test_drawn_where_none_is_followed(void **state) {
    (void)state;
    cd_shard_cost *p = open_with(model, empty, 0, NULL), *none = open_with(NULL, empty, 0, NULL);
    char best[64];
    /* as cdmpp-replay draws */
    snprintf(best, sizeof best, "best of %d predicted by ", CD_SCHEDULE_DB_TRIALS);
    assert_true(isfinite(asked(p, 0, 0, NULL)));
    assert_non_null(strstr(line_of(p, 0, NULL), best));
    for (int i = 0; i < PARTS - 1; i++) {
        assert_true(isfinite(asked(p, 0, 0, &part[i])));
        assert_non_null(strstr(line_of(p, 0, &part[i]), best));
        /* to be run, though nobody knows its time */
        assert_non_null(strstr(line_of(none, 0, &part[i]), "drawn"));
    }
    cd_shard_cost_free(p);
    cd_shard_cost_free(none);
}

static void test_more_candidates_are_no_slower(void **state) {
    (void)state;
    cd_shard_cost *few = open_with(model, book, 0, NULL), *many = open_with(model, book, 64, NULL);
    double a = 0, b = 0;
    for (int i = 0; i < PARTS - 1; i++) {
        a += log(asked(few, 0, 0, &part[i]));
        b += log(asked(many, 0, 0, &part[i]));
    }
    assert_true(b <= a + 0.05);
    cd_shard_cost_free(few);
    cd_shard_cost_free(many);
}

static void test_reasons_are_kept(void **state) {
    (void)state;
    cd_shard_cost *p = open_with(model, book, 0, NULL), *none = open_with(NULL, book, 0, NULL);
    assert_null(cd_shard_cost_why(p, 0, 0, NULL)); /* nobody asked */
    assert_true(isinf(asked(p, 1, 0, NULL)));
    assert_string_equal(cd_shard_cost_why(p, 1, 0, NULL), "nobody defines it");
    assert_true(isinf(asked(p, 0, 2, &part[0]))); /* a GPU's program for a CPU's model */
    assert_non_null(cd_shard_cost_why(p, 0, 2, &part[0]));
    assert_true(isinf(asked(p, 0, 3, &part[0])));
    assert_non_null(strstr(cd_shard_cost_why(p, 0, 3, &part[0]), "nobody"));
    assert_non_null(line_of(p, 3, &part[0])); /* it can be run all the same */
    assert_non_null(line_of(p, 2, &part[0]));
    assert_non_null(strstr(line_of(p, 2, &part[0]), "\"opencl\"")); /* a GPU's schedule, drawn */
    assert_true(isinf(asked(none, 0, 0, &part[0])));
    assert_non_null(strstr(cd_shard_cost_why(none, 0, 0, &part[0]), "no model"));
    assert_null(cd_shard_cost_why(p, 0, 0, &part[0]));
    size_t failed;
    assert_int_equal(cd_shard_cost_asked(p, &failed), 3);
    assert_int_equal(failed, 3);
    cd_shard_cost_free(p);
    cd_shard_cost_free(none);
}

static void test_what_is_refused(void **state) {
    cdmpp_err err = {0};
    cd_shard_plan_estimate out;
    (void)state;
    cd_shard_cost *p = open_with(model, book, 0, NULL);
    assert_status(cd_shard_cost_time(p, 2, 0, NULL, &out, &err), CDMPP_EINVALID);
    assert_status(cd_shard_cost_time(p, 0, 4, NULL, &out, &err), CDMPP_EINVALID);
    assert_status(cd_shard_cost_prepare(p, &(cd_shard_cost_want){7, 0, NULL}, 1, &err),
                  CDMPP_EINVALID);
    cd_shard_cost_free(p);
    p = open_with(model, book, 0, NULL);
    machine.device[1].scale = NAN;
    cd_shard_cost *q = NULL;
    const cd_shard_cost_options a = {.model = answers(model), .machine = &machine, .net = &net};
    assert_status(cd_shard_cost_new(&a, &q, &err), CDMPP_EINVALID);
    machine.device[1].scale = 2;
    cd_shard_cost_free(p);
}

/* Parts as te_part.h cuts them: all of an axis is the whole, a sum's part ends where the whole goes
 * on, joins are drawn. */
static void test_real_parts(void **state) {
    cdmpp_err err = {0};
    cd_arena mem = {0};
    cd_te_shard_axis *way;
    uint32_t n;
    cd_program *prog;
    (void)state;
    assert_ok(cd_program_new(&prog, &err));
    assert_ok(cd_te_shard_axes(op[0].dag, &mem, &way, &n, &err));
    assert_int_equal(n, 3);
    cd_shard_cost *p = open_with(model, book, 0, NULL);
    const double whole = asked(p, 0, 0, NULL);
    for (uint32_t k = 0; k < n; k++) {
        const int64_t cut[][2] = {{0, EDGE}, {0, EDGE / 2}, {EDGE / 2, EDGE}, {EDGE / 8, EDGE / 2}};
        for (int i = 0; i < 4; i++) {
            cd_te_shard *x;
            cd_record r;
            assert_ok(cd_te_shard_make(op[0].dag, &way[k], cut[i][0], cut[i][1], &x, &err));
            const double s = asked(p, 0, 0, x);
            const char *line = line_of(p, 0, x);
            assert_true(isfinite(s));
            if (!i && !way[k].reduce) assert_true(s == whole);
            assert_ok(cd_record_read(&mem, line, strlen(line), &r, &err));
            assert_ok(cd_program_lower(
                prog, cd_task_registry_find(cd_shard_cost_tasks(p), r.workload_key), &r, &err));
            if (way[k].reduce && strstr(line, "as the whole's"))
                assert_int_equal(r.step[0].kind, CD_RECORD_STEP_CHW);
            cd_te_shard_free(x);
        }
        if (!way[k].reduce) continue;
        cd_te_shard *x;
        assert_ok(cd_te_shard_join(op[0].dag, &way[k], 2, &x, &err));
        assert_true(isfinite(asked(p, 0, 0, x)));
        assert_non_null(line_of(p, 0, x));
        cd_te_shard_free(x);
    }
    cd_shard_cost_free(p);
    cd_program_free(prog);
    cd_arena_free(&mem);
}

/* A partial sum is tiled as the whole's sum is, wherever its lengths allow: without a model, so
 * that nothing else is tried. */
static void test_sums_keep_the_tiles(void **state) {
    cdmpp_err err = {0};
    cd_arena mem = {0};
    cd_te_shard_axis *way;
    uint32_t n;
    (void)state;
    cd_record r, of;
    cd_te_shard *x;
    const char *line = cd_schedule_db_at(book, 0)->line;
    assert_ok(cd_te_shard_axes(op[0].dag, &mem, &way, &n, &err));
    assert_true(way[n - 1].reduce);
    assert_ok(cd_te_shard_make(op[0].dag, &way[n - 1], 0, EDGE / 2, &x, &err));
    assert_ok(cd_record_read(&mem, line, strlen(line), &of, &err));
    cd_shard_cost *p = open_with(NULL, book, 0, NULL);
    line = line_of(p, 0, x);
    assert_ok(cd_record_read(&mem, line, strlen(line), &r, &err));
    assert_non_null(strstr(line, "as the whole's"));
    assert_int_equal(r.step[0].kind, CD_RECORD_STEP_CHW);
    uint32_t same = 0, tiled = 0;
    for (uint32_t k = 0; k < of.n_step; k++) {
        if (of.step[k].kind != CD_RECORD_STEP_SP || of.step[k].stage != 2) continue;
        for (uint32_t j = 0; j < r.n_step; j++)
            if (r.step[j].kind == CD_RECORD_STEP_SP && r.step[j].stage == 2 &&
                r.step[j].i[0] == of.step[k].i[0] && r.step[j].n_list == of.step[k].n_list)
                same += !memcmp(r.step[j].list, of.step[k].list,
                                r.step[j].n_list * sizeof *r.step[j].list);
        tiled++;
    }
    assert_true(tiled >= 3 && same + 1 >= tiled); /* the sum's own lengths may have had to change */
    cd_te_shard_free(x);
    cd_shard_cost_free(p);
    cd_arena_free(&mem);
}

/* A device without a target runs what the book's schedules are for: the same programs. */
static void test_untold_target(void **state) {
    (void)state;
    cd_machine before = machine;
    machine.device[0].target = "llvm -keys=cpu -mcpu=core-avx2"; /* the task's, so the book's */
    machine.device[1].target = NULL;
    cd_shard_cost *p = open_with(model, book, 0, NULL);
    const double s = asked(p, 0, 0, &part[0]);
    assert_true(asked(p, 0, 1, &part[0]) == 6 * s);
    assert_int_equal(cd_shard_cost_asked(p, NULL), 1);
    assert_ptr_equal(line_of(p, 1, &part[0]), line_of(p, 0, &part[0]));
    cd_shard_cost_free(p);
    machine = before;
}

/* Parameters that another operator makes are not packed, of parts neither. */
static void test_plain_stays_plain(void **state) {
    cdmpp_err err = {0};
    cd_arena mem = {0};
    (void)state;
    for (int n = 0; n < 2; n++) {
        const cd_shard_cost_options a = {.model = answers(model),
                                         .schedules = n ? book : empty,
                                         .machine = &machine,
                                         .net = &net,
                                         .plain = &op[0].key,
                                         .n_plain = 1,
                                         .trials = 4};
        cd_shard_cost *p;
        cd_record r;
        assert_ok(cd_shard_cost_new(&a, &p, &err));
        const char *line = line_of(p, 0, &part[0]);
        assert_ok(cd_record_read(&mem, line, strlen(line), &r, &err));
        assert_int_equal(r.layout_rewrite, 0);
        cd_shard_cost_free(p);
        p = open_with(model, n ? book : empty, 4, NULL);
        line = line_of(p, 0, &part[0]);
        assert_ok(cd_record_read(&mem, line, strlen(line), &r, &err));
        assert_int_equal(r.layout_rewrite, 2);
        cd_shard_cost_free(p);
    }
    cd_arena_free(&mem);
}

/* A device of another kind, of ten times the peaks: a tenth of the time. */
static void test_another_kind_goes_by_the_rooflines(void **state) {
    /* logarithms of ratios to the reference */
    static float here[CD_N_DEVICE_COL], there[CD_N_DEVICE_COL];
    cdmpp_err err = {0};
    cd_shard_cost_model by[CD_MACHINE_DEVICES];
    cd_shard_cost *p, *q;
    (void)state;
    here[CD_N_DEVICE_KIND + CD_DEVICE_COL_flops] =
        here[CD_N_DEVICE_KIND + CD_DEVICE_COL_bandwidth] = 1;
    for (uint32_t k = 0; k < machine.n; k++)
        by[k] = (cd_shard_cost_model){
            .model = model, .device = machine.device[k].as, .here = here, .there = there};
    const cd_shard_cost_options a = {
        .model = by, .schedules = book, .machine = &machine, .net = &net, .seed = 5};
    assert_ok(cd_shard_cost_new(&a, &p, &err));
    q = open_with(model, book, 0, NULL);
    assert_close(asked(p, 0, 0, NULL), asked(q, 0, 0, NULL) / 10, 1e-6, 0);
    assert_close(asked(p, 0, 0, &part[0]), asked(q, 0, 0, &part[0]) / 10, 1e-6, 0);
    cd_shard_cost_free(p);
    cd_shard_cost_free(q);
}

/* Every allocation fails once: an error and nothing lost, or an answer. */
static cdmpp_status all_of_it(const cd_model *m, cdmpp_err *err) {
    const cd_shard_cost_options a = {
        .model = answers(m), .schedules = book, .machine = &machine, .net = &net, .seed = 5};
    const cd_shard_cost_want want[] = {{0, 0, &part[3]}, {0, 0, NULL}, {1, 0, NULL}};
    cd_shard_cost *p = NULL;
    cd_shard_plan_estimate out;
    cdmpp_status st = cd_shard_cost_new(&a, &p, err);
    if (st) return st;
    st = cd_shard_cost_prepare(p, want, 3, err);
    if (!st) st = cd_shard_cost_time(p, 0, 0, &part[0], &out, err);
    if (!st) st = cd_shard_cost_time(p, 0, 0, &part[1], &out, err);
    cd_shard_cost_free(p);
    return st;
}

static void test_out_of_memory(void **state) {
    (void)state;
    for (int with = 0; with < 2; with++) FAULT_SWEEP(f, 1) {
            f.step = 1 + (f.k / 40) * (with ? 11 : 1); /* all of the first, then ever fewer */
            f.st = all_of_it(with ? model : NULL, &f.err);
        }
}

/* Bytes of all arguments; too many to count are unknown. */
TEST(test_moved) {
    const cd_te_dag *dag = part[0].dag;
    cd_te_dag other = *dag;
    int64_t shape[2] = {1, 1};
    assert_int_equal(cd_shard_cost_moved(dag), 4 * (64 * EDGE + EDGE * EDGE + 64 * EDGE));
    cd_te_op *ops = malloc(dag->n_op * sizeof *ops);
    memcpy(ops, dag->op, dag->n_op * sizeof *ops);
    other.op = ops;
    for (uint32_t k = 0; k < dag->n_op; k++)
        if (ops[k].rank == 2) ops[k].shape = shape;
    assert_int_equal(cd_shard_cost_moved(&other), 4 * 3);
    shape[0] = shape[1] = (int64_t)1 << 30; /* each can be counted: 4 EiB; all together cannot */
    assert_int_equal(cd_shard_cost_moved(&other), -1);
    shape[1] = (int64_t)1 << 40;
    assert_int_equal(cd_shard_cost_moved(&other), -1);
    free(ops);
}

TESTS(set_up, tear_down, test_moved, test_whole_is_the_book, test_schedules_follow,
      test_equal_questions_equal_answers, test_drawn_where_none_is_followed,
      test_more_candidates_are_no_slower, test_reasons_are_kept, test_what_is_refused,
      test_plain_stays_plain, test_real_parts, test_sums_keep_the_tiles, test_untold_target,
      test_another_kind_goes_by_the_rooflines, test_out_of_memory)
