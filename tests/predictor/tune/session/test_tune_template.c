/* Tuners of templates in a run: best first, for a described processor, and who takes the tasks that
 * no template fits. */
#include <string.h>

#include "made_template.h"
#include "predictor/tune/session/session.h"

enum { TASKS = 2, WANT = 4 };

/* Seconds that rise, so that the first of each task is its best. */
typedef struct {
    double clock;
    size_t n;
    uint64_t key[64];
} fake;

static cdmpp_status measure(void *ctx, const cd_tune_task *t, const cd_tune_cand *c, size_t n,
                            cd_tune_trial *out, size_t *done, cdmpp_err *err) {
    fake *f = ctx;
    (void)t, (void)err;
    for (*done = 0; *done < n; ++*done) {
        assert_true(f->n < 64);
        f->key[f->n++] = c[*done].key;
        out[*done] = (cd_tune_trial){.seconds = f->clock += 0.1, .run_s = 0.1};
    }
    return CDMPP_OK;
}
static double now(void *ctx) { return ((fake *)ctx)->clock; }

typedef struct {
    fake f;
    cd_device device;
    cd_tune_unit unit[TASKS];
    cd_tune_run *run;
} rig;

/* A matrix product, and a task that has no template. */
static void open_rig(rig *g, const cd_task_registry *t, const char *tuner, const char *fallback) {
    cdmpp_err err = {0};
    *g =
        (rig){.device = {
                  .name = "c", .kind = CD_DEVICE_CPU, .simd_bits = 256, .l1_kb = 32, .l2_kb = 256}};
    const size_t task[TASKS] = {T_MM, T_DEPTHWISE};
    for (int i = 0; i < TASKS; i++)
        g->unit[i] = (cd_tune_unit){.of = {.task = cd_task_registry_at(t, task[i]),
                                           .target = "llvm",
                                           .hardware = {1, 64, 64, 0, 0, 0, 0, 0},
                                           .flop = 100},
                                    .weight = 1,
                                    .name = "t"};
    const cd_tune_run_options o = {.tuner = cd_tune_tuner_find(tuner),
                                   .fallback = fallback ? cd_tune_tuner_find(fallback) : NULL,
                                   .templates = {.machine = &g->device},
                                   .epsilon = -1,
                                   .sched = {.trials_per_task = WANT, .per_round = 3},
                                   .meter = {&g->f, measure, now}};
    assert_ok(cd_tune_run_new(g->unit, TASKS, &o, &g->run, &err));
}

static void go(rig *g) {
    cd_tune_task_scheduler_end end;
    cdmpp_err err = {0};
    assert_ok(cd_tune_run_go(g->run, &end, &err));
}

static void test_best_first(void **state) {
    static const char *const tuner[] = {"template", "bolt"};
    for (int k = 0; k < 2; k++) {
        rig g;
        cd_tune_space *s;
        const cd_tune_cand *all;
        size_t n;
        cd_template_machine m;
        cdmpp_err err = {0};
        open_rig(&g, *state, tuner[k], NULL);
        go(&g);
        assert_ok(cd_tune_template_space(
            &g.unit[0].of, &(cd_tune_template_options){.machine = &g.device}, 0, &s, &m, &err));
        assert_ok(s->kind->list(s, &all, &n, &err));
        assert_int_equal(g.f.n, WANT);
        for (size_t i = 0; i < WANT; i++) assert_int_equal(g.f.key[i], all[i].key);
        const cd_tune_task_state *without = cd_tune_run_state(g.run, 1);
        assert_int_equal(without->status, CDMPP_EUNSUPPORTED);
        assert_non_null(strstr(without->why.msg, "depthwise"));
        assert_true(!without->fell_back && !without->n_point);
        cd_tune_space_free(s);
        cd_tune_run_free(g.run);
    }
}

static void test_fallback(void **state) {
    rig g;
    open_rig(&g, *state, "template", "random");
    go(&g);
    const cd_tune_task_state *with = cd_tune_run_state(g.run, 0),
                             *without = cd_tune_run_state(g.run, 1);
    assert_true(!with->fell_back && with->n_point == WANT);
    assert_true(without->fell_back && !without->status && without->n_point == WANT);
    assert_non_null(strstr(without->why.msg, "depthwise"));
    cd_tune_run_free(g.run);
    open_rig(&g, *state, "template", "ansor"); /* with a ranker of its own */
    go(&g);
    assert_int_equal(cd_tune_run_state(g.run, 1)->n_point, WANT);
    cd_tune_run_free(g.run);
}

TESTS(up, down, test_best_first, test_fallback)
