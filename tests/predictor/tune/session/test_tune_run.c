/* The loop with a made-up measurer: everything is measured once, failures cost only themselves, a
 * killed run goes on. */
#include <stdlib.h>

#include "check.h"
#include "fault.h"
#include "predictor/tune/core/core.h"
#include "predictor/tune/session/tune_run.h"
#include "tune_toy.h"

enum { TASKS = 3, LOG = 2000 };

/* What a log would hold. */
typedef struct {
    uint32_t task;
    uint64_t key;
    int32_t length[TOY_KNOBS];
    uint32_t n_length;
    double seconds;
} line;

typedef struct {
    line log[LOG];
    size_t n;
    size_t stop_after; /* 0: never; so many lines are written, then it is interrupted */
    bool fail_all, fail_some, io;
    double clock;
    const cd_tune_unit *unit;
} fake;

static double value_of(const fake *f, const cd_tune_cand *c) {
    if (f->fail_all || (f->fail_some && c->choice[0].pick % 2)) return CD_TUNE_FAILED_S;
    return toy_seconds(c);
}

static cdmpp_status fake_measure(void *ctx, const cd_tune_task *t, const cd_tune_cand *c, size_t n,
                                 cd_tune_trial *out, size_t *done, cdmpp_err *err) {
    fake *f = ctx;
    *done = 0;
    for (size_t i = 0; i < n; i++) {
        if (f->stop_after && f->n >= f->stop_after) return CD_FAIL(err, EINTERRUPTED, "as told");
        if (f->io) return CD_FAIL(err, EIO, "as told");
        line *l = &f->log[f->n++];
        assert_true(f->n < LOG);
        *l =
            (line){.key = c[i].key, .n_length = c[i].step[0].n_list, .seconds = value_of(f, &c[i])};
        memcpy(l->length, c[i].step[0].list, l->n_length * sizeof *l->length);
        while (f->unit[l->task].of.task != t->task) l->task++;
        out[i] = (cd_tune_trial){
            .seconds = l->seconds, .error_no = l->seconds < CD_TUNE_FAILED_S ? 0 : 4, .run_s = 0.1};
        f->clock += 0.1;
        *done = i + 1;
    }
    return CDMPP_OK;
}
static double fake_now(void *ctx) { return ((fake *)ctx)->clock += 1e-4; }

/* The toy space with records followed exactly. */
static cdmpp_status follow(cd_tune_space *space, const cd_record *r, cd_tune_cand *out, bool *exact,
                           cdmpp_err *err) {
    toy_space *s = (toy_space *)space;
    for (uint32_t k = 0; k < s->knobs; k++)
        s->choice[k] = (cd_sketch_choice){.pick = (uint32_t)r->step[0].list[k] - 1,
                                          .n = s->sides,
                                          .kind = CD_SKETCH_CHOICE_TILE,
                                          .at = (uint16_t)k};
    *exact = true;
    return toy_give(s, out, err);
}
static cd_tune_space_kind followed;
static toy_space *ready[TASKS]; /* for tests that let memory run out: made before */
static cdmpp_status space(void *ctx, const cd_tune_task *t, uint64_t seed, cd_tune_space **out,
                          bool *naive, cdmpp_err *err) {
    (void)ctx, (void)seed, (void)err;
    toy_space *s = NULL;
    for (int i = 0; i < TASKS && !s; i++) s = ready[i], ready[i] = NULL;
    /* the last task's space is used up soon */
    if (!s) s = t->flop > 1 ? toy_new(4, 6, false) : toy_new(2, 3, true);
    followed = toy_kind;
    followed.follow = follow;
    s->space.kind = &followed;
    *naive = false;
    *out = &s->space;
    return CDMPP_OK;
}

typedef struct {
    fake f;
    cd_task task[TASKS];
    cd_tune_unit unit[TASKS];
    cd_tune_run *run;
    size_t rounds, told;
} rig;

static cdmpp_status on_round(void *ctx, const cd_tune_round *r, cdmpp_err *err) {
    rig *g = ctx;
    (void)err;
    g->rounds++;
    g->told += r->n;
    assert_true(r->best_s <= r->task_best_s_before);
    return CDMPP_OK;
}

static void open_rig(rig *g, const char *tuner, cd_tune_task_scheduler_options sched) {
    cdmpp_err err = {0};
    for (uint32_t i = 0; i < TASKS; i++) {
        g->task[i] =
            (cd_task){.workload_key = "k", .target = "llvm", .target_kind = "llvm", .desc = ""};
        g->unit[i] = (cd_tune_unit){
            .of = {.task = &g->task[i], .target = "llvm", .flop = i + 1 == TASKS ? 1 : 100},
            .weight = 1 + i,
            .name = "t"};
    }
    g->f.unit = g->unit;
    const cd_tune_run_options o = {.tuner = cd_tune_tuner_find(tuner),
                                   .seed = 3,
                                   .population = 32,
                                   .epsilon = -1,
                                   .sched = sched,
                                   .meter = {&g->f, fake_measure, fake_now},
                                   .round = on_round,
                                   .ctx = g,
                                   .space = space};
    assert_ok(cd_tune_run_new(g->unit, TASKS, &o, &g->run, &err));
    for (uint32_t i = 0; i < TASKS; i++)
        assert_int_equal(cd_tune_run_state(g->run, i)->status, CDMPP_OK);
}

static void each_once(const rig *g) {
    cd_tune_key_set seen[TASKS] = {{0}};
    cdmpp_err err = {0};
    for (size_t i = 0; i < g->f.n; i++) {
        const line *l = &g->f.log[i];
        assert_false(cd_tune_key_set_find(&seen[l->task], l->key, NULL));
        assert_ok(cd_tune_key_set_put(&seen[l->task], l->key, 0, &err));
    }
    for (int k = 0; k < TASKS; k++) cd_tune_key_set_free(&seen[k]);
}

static double best_of(const rig *g, uint32_t task) {
    double best = CD_TUNE_FAILED_S;
    for (size_t i = 0; i < g->f.n; i++)
        if (g->f.log[i].task == task && g->f.log[i].seconds < best) best = g->f.log[i].seconds;
    return best;
}

static void close_rig(rig *g) {
    cd_tune_run_free(g->run);
    g->run = NULL;
}

static void check_books(const rig *g) {
    size_t n = 0;
    for (uint32_t i = 0; i < TASKS; i++) {
        const cd_tune_task_state *s = cd_tune_run_state(g->run, i);
        n += s->n_point;
        assert_close(s->best_s, best_of(g, i), 0, 0);
        if (s->n_point) assert_close(s->point[s->n_point - 1].best_s, s->best_s, 0, 0);
        if (s->best_s < CD_TUNE_FAILED_S)
            assert_int_equal(cd_record_steps_key(s->best.step, s->best.n_step), s->best.key);
    }
    assert_int_equal(n, g->f.n);
}

static void test_to_the_end(void **state) {
    (void)state;
    cdmpp_err err = {0};
    static const char *const tuner[] = {"random", "gridsearch", "ga"};
    for (int k = 0; k < 3; k++) {
        rig *g = calloc(1, sizeof *g);
        cd_tune_task_scheduler_end end;
        open_rig(g, tuner[k], (cd_tune_task_scheduler_options){.trials = 200, .per_round = 7});
        assert_ok(cd_tune_run_go(g->run, &end, &err));
        assert_int_equal(end, CD_TUNE_NO_TRIALS);
        assert_int_equal(g->f.n, 200);
        assert_int_equal(g->told, 200);
        each_once(g);
        check_books(g);
        /* 3 x 3, one of them no program */
        assert_true(cd_tune_run_state(g->run, TASKS - 1)->n_point <= 8);
        const cd_tune_times *t = cd_tune_run_times(g->run);
        assert_int_equal(t->trials, 200);
        assert_true(t->measure_s + t->search_s <= t->wall_s + 1e-9);
        assert_close(t->run_s, 20, 1e-9, 0);
        close_rig(g);
        free(g);
    }
}

/* Killed anywhere and begun again with its log: as many trials, none twice, none lost. */
static void test_killed_and_resumed(void **state) {
    (void)state;
    cdmpp_err err = {0};
    const size_t stops[] = {1, 7, 40, 41, 42, 99};
    for (size_t k = 0; k < sizeof stops / sizeof *stops; k++) {
        rig *g = calloc(1, sizeof *g);
        cd_tune_task_scheduler_end end;
        g->f.stop_after = stops[k];
        open_rig(g, "random", (cd_tune_task_scheduler_options){.trials = 100, .per_round = 7});
        assert_status(cd_tune_run_go(g->run, &end, &err), CDMPP_EINTERRUPTED);
        assert_int_equal(g->f.n, stops[k]);
        check_books(g);
        close_rig(g);
        g->f.stop_after = 0;
        g->told = 0;
        open_rig(g, "random", (cd_tune_task_scheduler_options){.trials = 100, .per_round = 7});
        for (size_t i = 0; i < g->f.n; i++) {
            const line *l = &g->f.log[i];
            const cd_record_step step = {.kind = CD_RECORD_STEP_SP,
                                         .i = {0, 512, 1},
                                         .n_list = l->n_length,
                                         .list = l->length};
            const cd_record r = {
                .n_step = 1, .step = &step, .error_no = l->seconds < CD_TUNE_FAILED_S ? 0 : 4};
            assert_ok(cd_tune_run_known(g->run, l->task, &r, l->seconds, &err));
            /* a line that stands there twice */
            assert_ok(cd_tune_run_known(g->run, l->task, &r, l->seconds, &err));
        }
        assert_ok(cd_tune_run_go(g->run, &end, &err));
        assert_int_equal(g->f.n, 100);
        assert_int_equal(g->told, 100 - stops[k]);
        each_once(g);
        check_books(g);
        close_rig(g);
        free(g);
    }
}

static void test_failures(void **state) {
    (void)state;
    cdmpp_err err = {0};
    rig *g = calloc(1, sizeof *g);
    cd_tune_task_scheduler_end end;
    g->f.fail_some = true;
    open_rig(g, "random", (cd_tune_task_scheduler_options){.trials = 120, .per_round = 8});
    assert_ok(cd_tune_run_go(g->run, &end, &err));
    check_books(g);
    assert_true(cd_tune_run_state(g->run, 0)->failed > 0 &&
                cd_tune_run_state(g->run, 0)->best_s < CD_TUNE_FAILED_S);
    close_rig(g);
    memset(&g->f, 0, sizeof g->f);
    g->f.fail_all = true; /* every task is left, and says so */
    open_rig(g, "random", (cd_tune_task_scheduler_options){.trials = 1000, .per_round = 8});
    assert_ok(cd_tune_run_go(g->run, &end, &err));
    assert_int_equal(end, CD_TUNE_NO_TASK);
    for (uint32_t i = 0; i < TASKS; i++) {
        const cd_tune_task_state *s = cd_tune_run_state(g->run, i);
        assert_true(s->n_point && s->failed == s->n_point && s->last_error == 4);
    }
    close_rig(g);
    memset(&g->f, 0, sizeof g->f);
    g->f.io = true; /* a full disk ends it */
    open_rig(g, "random", (cd_tune_task_scheduler_options){.trials = 1000, .per_round = 8});
    assert_status(cd_tune_run_go(g->run, &end, &err), CDMPP_EIO);
    close_rig(g);
    free(g);
}

/* What is to be tried first is measured first, once. */
static void test_warm(void **state) {
    (void)state;
    cdmpp_err err = {0};
    rig *g = calloc(1, sizeof *g);
    cd_tune_task_scheduler_end end;
    bool taken;
    const int32_t length[4] = {4, 3, 2, 5}, no[4] = {6, 6, 1, 1};
    const cd_record_step step = {
        .kind = CD_RECORD_STEP_SP, .i = {0, 512, 1}, .n_list = 4, .list = length};
    const cd_record_step bad = {
        .kind = CD_RECORD_STEP_SP, .i = {0, 512, 1}, .n_list = 4, .list = no};
    const cd_record r = {.n_step = 1, .step = &step}, none = {.n_step = 1, .step = &bad};
    open_rig(g, "random", (cd_tune_task_scheduler_options){.trials = 50, .per_round = 5});
    for (int k = 0; k < 2; k++) assert_ok(cd_tune_run_first(g->run, 1, &r, &taken, &err));
    assert_true(taken);
    assert_ok(cd_tune_run_first(g->run, 1, &none, &taken, &err));
    assert_false(taken);
    assert_ok(cd_tune_run_go(g->run, &end, &err));
    size_t at = 0;
    while (g->f.log[at].task != 1) at++;
    assert_memory_equal(g->f.log[at].length, length, sizeof length);
    assert_int_equal(cd_tune_run_state(g->run, 1)->warm, 1);
    each_once(g);
    close_rig(g);
    free(g);
}

/* Out of memory anywhere: an error, nothing leaked, and what was measured is in the books or the
 * error was told. */
static void test_out_of_memory(void **state) {
    (void)state;
    const int32_t length[4] = {4, 3, 2, 5};
    const cd_record_step step = {
        .kind = CD_RECORD_STEP_SP, .i = {0, 512, 1}, .n_list = 4, .list = length};
    const cd_record rec = {.n_step = 1, .step = &step};
    FAULT_SWEEP(f, 1) {
        fault_off();
        rig *g = calloc(1, sizeof *g);
        cd_tune_task_scheduler_end end;
        for (int i = 0; i < TASKS; i++) ready[i] = toy_new(3, 4, i == 1);
        for (uint32_t i = 0; i < TASKS; i++) {
            g->task[i] =
                (cd_task){.workload_key = "k", .target = "llvm", .target_kind = "llvm", .desc = ""};
            g->unit[i] = (cd_tune_unit){.of = {.task = &g->task[i], .target = "llvm", .flop = 100},
                                        .weight = 1,
                                        .name = "t"};
        }
        g->f.unit = g->unit;
        const cd_tune_run_options o = {.tuner = cd_tune_tuner_find("random"),
                                       .epsilon = -1,
                                       .sched = {.trials = 60, .per_round = 7},
                                       .meter = {&g->f, fake_measure, fake_now},
                                       .space = space};
        fault_on(&f);
        f.st = cd_tune_run_new(g->unit, TASKS, &o, &g->run, &f.err);
        if (!f.st) f.st = cd_tune_run_known(g->run, 0, &rec, 1e-3, &f.err);
        if (!f.st) f.st = cd_tune_run_first(g->run, 1, &rec, NULL, &f.err);
        if (!f.st) f.st = cd_tune_run_go(g->run, &end, &f.err);
        close_rig(g);
        for (int i = 0; i < TASKS; i++)
            if (ready[i]) cd_tune_space_free(&ready[i]->space), ready[i] = NULL;
        free(g);
    }
}

TESTS(NULL, NULL, test_to_the_end, test_killed_and_resumed, test_failures, test_warm,
      test_out_of_memory)
